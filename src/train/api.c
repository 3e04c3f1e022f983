/* api.c - the calls of the public interface that need no run. */
#include <errno.h>
#include <stdio.h>

#include <cJSON.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/option_table.h"
#include "base/size.h"
#include "base/status.h"
#include "compile/compile.h"
#include "gnnstream.h"
#include "session/session_plan.h"
#include "store/store.h"
#include "store/store_write.h"
#include "train/options.h"
#include "train/provenance.h"
#include "train/run_internal.h"

/* ---- stores and weights -------------------------------------------------- */

#define VERIFY_MEMORY (256 * GS_MIB)

const char *gs_version(void) { return GS_VERSION; }

/* Rows that one pass by destination needs if each interval reads every source it has once, a vertex. */
static double sources_per_vertex(const gs_chunk_table *t)
{
    uint64_t sum = 0;
    for (uint64_t c = 0; c < (uint64_t)t->parts * t->parts; c++)
        sum += t->chunk[GS_BY_DEST][c].operands;
    return (double)sum / (double)t->vertices;
}

/* A store, a shard, or the first of a folder of shards. */
static gs_status open_any(gs_store **out, const char *store)
{
    char *folder = NULL;
    gs_status st = gs_run__folder(&folder, store);

    if (st == GS_OK)
        st = gs_store_open_part(out, folder);
    gs_free(folder);
    return st;
}

gs_status gs_inspect_types(gs_type_table *out, const char *store)
{
    gs_store *s = NULL;
    gs_status st;

    if ((st = gs_check_argument(out, "out")) != GS_OK || (st = gs_check_argument(store, "store")) != GS_OK ||
        (st = open_any(&s, store)) != GS_OK)
        return st;
    const gs_type_table *const types = gs_store_get_info(s)->types;
    *out = types != NULL ? *types : (gs_type_table){0};
    gs_store_close(s);
    return GS_OK;
}

gs_status gs_inspect_features(gs_feature_table *out, const char *store)
{
    gs_store *s = NULL;
    gs_status st;

    if ((st = gs_check_argument(out, "out")) != GS_OK || (st = gs_check_argument(store, "store")) != GS_OK ||
        (st = open_any(&s, store)) != GS_OK)
        return st;
    const gs_feature_table *const named = gs_store_get_info(s)->named;
    *out = named != NULL ? *named : (gs_feature_table){0};
    gs_store_close(s);
    return GS_OK;
}

gs_status gs_inspect(gs_store_summary *out, const char *store)
{
    gs_store *s = NULL;
    const gs_store_info *info;
    const gs_store_shard *shard;
    gs_status st;

    if ((st = gs_check_argument(out, "out")) != GS_OK || (st = gs_check_argument(store, "store")) != GS_OK ||
        (st = open_any(&s, store)) != GS_OK)
        return st;
    info = gs_store_get_info(s);
    shard = gs_store_get_shard(s);
    *out = (gs_store_summary){
        .vertices = info->vertices,
        .edges = info->edges,
        .self_loops = info->self_loops,
        .parts = info->parts,
        .interval_rows = info->interval_rows,
        .features = info->features,
        .classes = info->classes,
        .edge_types = info->edge_types,
        .train = info->train,
        .valid = info->valid,
        .test = info->test,
        .max_in_degree = info->max_in_degree,
        .max_out_degree = info->max_out_degree,
        .total_bytes = info->total_bytes,
        .table_bytes = gs_store_table_bytes(s),
        .name_bytes = info->name_bytes,
        .edge_type_name_bytes = info->edge_type_name_bytes,
        .train_links = info->links[0],
        .valid_links = info->links[1],
        .test_links = info->links[2],
        .seed = info->seed,
        .id = info->id,
        .sources_per_vertex = sources_per_vertex(gs_store_chunks(s)),
        .symmetric = info->symmetric,
        .weights = info->weights,
        .edge_features = info->edge_features,
        .shards = shard != NULL ? shard->ranks : 0,
        .shard = shard != NULL && gs_store_is_at(store) ? shard->rank : GS_ALL_SHARDS,
        .vertex_types = info->types != NULL ? info->types->types : 0,
    };
    if (info->features != 0)
        snprintf(out->feature_type, sizeof(out->feature_type), "%s", gs_dtype_name(info->feature_type));
    if (info->edge_features != 0)
        snprintf(out->edge_feature_type, sizeof(out->edge_feature_type), "%s", gs_dtype_name(info->edge_feature_type));
    snprintf(out->method, sizeof(out->method), "%s", info->method);
    out->link_classes = info->link_classes;
    if (info->link_labels)
        snprintf(out->link_task, sizeof(out->link_task), "%s",
                 gs_train_task_name(info->link_classes > 0 ? GS_TRAIN_TASK_EDGE_CLASSIFY : GS_TRAIN_TASK_EDGE_REGRESS));
    if (info->classes != 0)
        snprintf(out->task, sizeof(out->task), "%s", gs_train_task_name(info->labels));
    gs_store_close(s);
    return GS_OK;
}

gs_status gs_verify(const char *store, uint64_t memory)
{
    gs_store *s = NULL;
    gs_status st = gs_check_argument(store, "store");

    if (st == GS_OK && (st = open_any(&s, store)) == GS_OK)
        st = gs_store_verify(s, memory != 0 ? memory : VERIFY_MEMORY);
    gs_store_close(s);
    return st;
}

void gs_shard_options_sized(gs_shard_options *options, size_t size)
{
    const gs_shard_options defaults = {.size = sizeof(defaults)};
    gs_options_give(options, size, &defaults, sizeof(defaults));
}

gs_status gs_shard(const char *store, uint32_t ranks, const char *out, const gs_shard_options *options)
{
    gs_shard_options o = {.size = sizeof(o)};
    gs_store *s = NULL;
    gs_status st;

    if ((st = gs_check_argument(store, "store")) != GS_OK || (st = gs_check_argument(out, "out")) != GS_OK ||
        (options != NULL && (st = gs_options_take(&o, sizeof(o), offsetof(gs_shard_options, progress), options,
                                                  "options", "gs_shard_options_init")) != GS_OK) ||
        (st = gs_store_open(&s, store)) != GS_OK)
        return st;
    const gs_shard_job job = {ranks, o.force, o.progress, o.context, o.stop};
    st = gs_store_write_shards(s, out, &job);
    gs_store_close(s);
    return st;
}

gs_status gs_inspect_weights(gs_weights_summary *out, const char *path)
{
    gs_provenance p;
    gs_status st;

    if ((st = gs_check_argument(out, "out")) != GS_OK || (st = gs_check_argument(path, "path")) != GS_OK ||
        (st = gs_provenance_read(&p, path)) != GS_OK)
        return st;
    *out = p.summary;
    gs_provenance_free(&p);
    return GS_OK;
}

/* ---- a model through the compiler ---------------------------------------- */

typedef struct gs_printer {
    FILE *out;
    bool dot;
} gs_printer;

static void show(void *context, const char *after, const gs_ir *ir)
{
    const gs_printer *p = context;
    if (p->dot) {
        gs_ir_print_dot(ir, after, p->out);
        return;
    }
    fprintf(p->out, "== %s\n", after);
    gs_ir_print(ir, p->out);
    fputc('\n', p->out);
}

static gs_train_task task_of(const gs_train_options *o)
{
    return o->task == NULL ? GS_TRAIN_TASK_CLASSIFY : (gs_train_task)gs_choice(o, task);
}

/* Takes `ir`. */
static gs_status compile(gs_printer *p, gs_ir *ir, const gs_train_options *o, const gs_model_graph *g, gs_loss loss)
{
    const gs_train_task task = gs_loss_task(loss);
    const gs_dtype labels = gs_train_task_labels(task);
    const uint32_t width = task == GS_TRAIN_TASK_CLASSIFY ? 1 : g->classes;
    const gs_leaf leaves[] = {
        {"features", 0, GS_F32, g->features}, {"labels", 1, labels, width}, {"split", 2, GS_U8, 1},
        {"in_degree", 3, GS_F32, 1},          {"loops", 4, GS_F32, 1},  {"input_id", 5, GS_U32, 1},
    };
    const gs_compile_options options = {
        .pass = "train", .leaf = leaves, .leaves = sizeof(leaves) / sizeof(leaves[0]), .metrics = true, .loss = loss,
        .no_move = o->no_move, .no_fuse = o->no_fuse, .hoist = !o->no_hoist, .holders = true,
        .edges_per_vertex = g->edges_per_vertex, .show = show,
        .typed = !o->no_batch && g->edge_types > g->edges_per_vertex, /* where a run would try them */
        .context = p,
    };
    gs_program *program = gs_program_new();
    gs_status st;

    if (program == NULL) {
        gs_ir_free(ir);
        return gs_fail(GS_ENOMEM, "out of memory for the compiled model");
    }
    st = gs_compile(program, ir, &options);
    if (st == GS_OK && !p->dot) {
        fputs("== the compiled epoch\n", p->out);
        gs_program_print(program, p->out);
    }
    gs_program_free(program);
    return st;
}

static gs_status print_model(FILE *file, const gs_train_options *options, const gs_model_graph *graph, bool dot)
{
    gs_printer p = {.out = file, .dot = dot};
    const gs_model_config config = {
        .layers = options->layers,
        .in_width = graph->features,
        .hidden = options->hidden,
        .classes = graph->classes,
        .heads = options->heads,
        .bases = options->bases,
        .edge_types = graph->edge_types,
        .edge_weights = graph->edge_weights,
        .edge_features = graph->edge_features,
        .act = options->activation,
        .dropout = (float)options->dropout,
        .input_dropout = (float)options->input_dropout,
        .training = true,
        .self_loops = graph->self_loops,
    };
    gs_model *model = NULL;
    gs_ir *ir = NULL;
    gs_loss loss;
    gs_status st;

    if (!(graph->edges_per_vertex >= 0 && graph->edges_per_vertex <= 1e9))
        return gs_fail(GS_EINVAL, ".edges_per_vertex %g: must be from 0 to 1e9", graph->edges_per_vertex);
    if ((st = gs_train_options_check(options)) != GS_OK || (st = gs_session_open_model(&model, options)) != GS_OK)
        return st;
    st = gs_model_build(&ir, model, &config);
    if (st == GS_OK && !dot)
        fprintf(file, "== the text\n%s\n", gs_model_text(model));
    gs_model_close(model);
    if (st != GS_OK)
        return st;
    show(&p, "as the text says", ir);
    if ((st = gs_session_find_loss(&loss, options, task_of(options))) != GS_OK ||
        (st = gs_ir_add_loss(ir, loss, gs_train_task_labels(gs_loss_task(loss)))) != GS_OK ||
        (st = gs_ir_differentiate(ir)) != GS_OK) {
        gs_ir_free(ir);
        return st;
    }
    return compile(&p, ir, options, graph, loss);
}

gs_status gs_print_model(void *file, const gs_train_options *options, const gs_model_graph *graph, bool dot)
{
    gs_train_options own;
    gs_status st;

    if ((st = gs_check_argument(file, "file")) != GS_OK || (st = gs_train_options_read(&own, options)) != GS_OK ||
        (st = gs_check_argument(graph, "graph")) != GS_OK)
        return st;
    return print_model(file, &own, graph, dot);
}

/* ---- a plan as JSON ------------------------------------------------------ */

/* A name and a number; which of them could not be added is seen by the text that does not come. */
typedef struct item {
    const char *name;
    double value;
} item;

static void add_numbers(cJSON *to, const item *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cJSON_AddNumberToObject(to, items[i].name, items[i].value);
}

#define ADD(to, ...) \
    add_numbers(to, (const item[]){__VA_ARGS__}, sizeof((const item[]){__VA_ARGS__}) / sizeof(item))

/* A new object at the end of `list`. */
static cJSON *add_object(cJSON *list)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddItemToArray(list, o);
    return o;
}

static void add_pass(cJSON *list, const gs_pass_report *x)
{
    const gs_predicted *const p = &x->predicted;
    cJSON *const o = add_object(list);

    cJSON_AddStringToObject(o, "name", x->name);
    ADD(o, {"parts", x->blocks}, {"tasks", x->tasks}, {"read_bytes", (double)x->read_bytes},
        {"read_requests", (double)x->read_requests}, {"skipped_bytes", (double)x->skipped_bytes},
        {"written_bytes", (double)x->written_bytes}, {"edges", (double)x->edges}, {"rows", (double)x->rows},
        {"edge_bytes", (double)x->edge_bytes}, {"upload_bytes", (double)x->upload_bytes},
        {"forward_bytes", (double)x->forward_bytes}, {"download_bytes", (double)x->download_bytes},
        {"dense_flops", x->dense_flops}, {"edge_flops", x->edge_flops}, {"products", x->products},
        {"product_edges", (double)x->product_edges}, {"cached_bytes", (double)x->cached_bytes},
        {"seconds", p->seconds}, {"read_seconds", p->read_seconds}, {"write_seconds", p->write_seconds},
        {"edge_seconds", p->edge_seconds}, {"vertex_seconds", p->vertex_seconds},
        {"check_seconds", p->check_seconds}, {"stall_seconds", p->stall_seconds});
    cJSON_AddStringToObject(o, "bottleneck", p->bottleneck);
    ADD(o, {"orders_tried", x->order.tried}, {"store_order_seconds", x->order.store_seconds},
        {"best_order_seconds", x->order.best_seconds});
    cJSON_AddBoolToObject(o, "reordered", x->order.taken);
    cJSON_AddBoolToObject(o, "recomputes", x->recomputes != GS_NOT_TAKEN);
    cJSON_AddBoolToObject(o, "lean", x->lean != GS_NOT_TAKEN);
    cJSON_AddBoolToObject(o, "batches", x->batches != GS_NOT_TAKEN);
    cJSON_AddBoolToObject(o, "splits", x->splits != GS_NOT_TAKEN);
    cJSON_AddBoolToObject(o, "width", x->width != GS_NOT_TAKEN);
    cJSON_AddBoolToObject(o, "no_hoist", x->no_hoist != GS_NOT_TAKEN);
    cJSON_AddBoolToObject(o, "no_move", x->no_move != GS_NOT_TAKEN);
    cJSON_AddBoolToObject(o, "no_fuse", x->no_fuse != GS_NOT_TAKEN);
    cJSON_AddBoolToObject(o, "no_prune", x->no_prune != GS_NOT_TAKEN);
}

static void add_products(cJSON *list, const gs_product_report *x)
{
    cJSON *const o = add_object(list);

    cJSON_AddStringToObject(o, "stage", x->stage);
    ADD(o, {"edges", (double)x->edges}, {"runs", (double)x->runs}, {"edge_seconds", x->edge_seconds},
        {"run_seconds", x->run_seconds}, {"pairs", (double)x->pairs}, {"pair_seconds", x->pair_seconds});
    cJSON_AddBoolToObject(o, "by_runs", x->by_runs);
    cJSON_AddBoolToObject(o, "by_pairs", x->by_pairs);
    cJSON_AddBoolToObject(o, "measured", x->measured);
}

static void add_file(cJSON *list, const gs_plan_report *p, uint32_t file)
{
    const gs_file_report *const f = &p->file[file];
    cJSON *const o = add_object(list);

    cJSON_AddStringToObject(o, "name", f->name);
    ADD(o, {"read_bytes", (double)f->read_bytes}, {"written_bytes", (double)f->written_bytes},
        {"kept_bytes", (double)f->kept_bytes});
    cJSON *const kept = cJSON_AddArrayToObject(o, "device_kept_bytes");
    for (uint32_t d = 0; d < p->devices && p->links > 2; d++) /* with memory of their own */
        cJSON_AddItemToArray(kept, cJSON_CreateNumber((double)p->device_kept_bytes[file][d]));
}

static void add_link(cJSON *list, const gs_plan_report *p, const gs_link_report *x)
{
    cJSON *const o = add_object(list);

    cJSON_AddStringToObject(o, "from", x->from);
    cJSON_AddStringToObject(o, "to", x->to);
    cJSON *const passes = cJSON_AddArrayToObject(o, "passes");
    for (uint32_t i = 0; i < p->passes; i++) {
        cJSON *const pass = add_object(passes);
        cJSON_AddStringToObject(pass, "name", p->pass[i].name);
        ADD(pass, {"bytes", (double)x->pass[i].bytes}, {"requests", (double)x->pass[i].requests},
            {"seconds", x->pass[i].seconds});
    }
}

/* Ways to use devices and programs that were compared. */
static void add_choices(cJSON *o, const gs_plan_report *p)
{
    cJSON *const ways = p->ways > 0 ? cJSON_AddArrayToObject(o, "ways") : NULL;
    for (uint32_t i = 0; i < p->ways; i++) {
        cJSON *const one = add_object(ways);
        cJSON_AddStringToObject(one, "devices", p->way[i].words);
        cJSON_AddNumberToObject(one, "seconds", p->way[i].seconds);
        cJSON_AddBoolToObject(one, "taken", p->way[i].taken);
    }
    cJSON *const programs = p->programs > 0 ? cJSON_AddArrayToObject(o, "programs") : NULL;
    for (uint32_t i = 0; i < p->programs; i++) {
        cJSON *const one = add_object(programs);
        cJSON_AddStringToObject(one, "program", p->program[i].words);
        cJSON_AddNumberToObject(one, "seconds", p->program[i].seconds);
        cJSON_AddNumberToObject(one, "host_bytes", (double)p->program[i].host_bytes);
        cJSON_AddBoolToObject(one, "taken", p->program[i].taken);
    }
}

static void add_batch_reads(cJSON *o, const gs_plan_report *p)
{
    cJSON_AddNumberToObject(o, "batch_ring", (double)p->batch_ring);
    cJSON_AddNumberToObject(o, "batch_side", p->batch_side);
    cJSON_AddNumberToObject(o, "batch_read_seconds", p->batch_read_seconds);
    cJSON_AddNumberToObject(o, "batch_read_alone_seconds", p->batch_read_alone_seconds);
}

static void fill(cJSON *o, const gs_plan_report *p)
{
    ADD(o, {"vertices", (double)p->vertices}, {"edges", (double)p->edges}, {"parameters", (double)p->parameters},
        {"host_memory", (double)p->host_memory}, {"host_bytes", (double)p->host_bytes},
        {"device_memory", (double)p->device_memory}, {"device_bytes", (double)p->device_bytes},
        {"devices", p->devices}, {"spill_bytes", (double)p->spill_bytes},
        {"flight_bytes", (double)p->flight_bytes});
    cJSON_AddBoolToObject(o, "unified", p->unified);
    cJSON *const passes = cJSON_AddArrayToObject(o, "passes");
    for (uint32_t i = 0; i < p->passes; i++)
        add_pass(passes, &p->pass[i]);
    cJSON_AddStringToObject(o, "predicted_from", p->basis);
    cJSON *const known = cJSON_AddObjectToObject(o, "known_from");
    cJSON_AddStringToObject(known, "fitted", p->fitted);
    cJSON_AddStringToObject(known, "ceiling", p->measured);
    cJSON_AddStringToObject(known, "default", p->guessed);
    cJSON_AddNumberToObject(known, "others", p->others);
    cJSON *const files = cJSON_AddArrayToObject(o, "files");
    for (uint32_t i = 0; i < p->files; i++)
        add_file(files, p, i);
    cJSON *const links = cJSON_AddArrayToObject(o, "links");
    for (uint32_t i = 0; i < p->links; i++)
        add_link(links, p, &p->link[i]);
    cJSON *const memories = p->devices > 1 ? cJSON_AddArrayToObject(o, "memories") : NULL;
    for (uint32_t d = 0; memories != NULL && d < p->devices; d++) {
        cJSON *const one = add_object(memories);
        cJSON_AddNumberToObject(one, "bytes", (double)p->bytes_of[d]);
        cJSON_AddNumberToObject(one, "budget", (double)p->budget_of[d]);
    }
    add_choices(o, p);
    cJSON *const products = p->product_stages > 0 ? cJSON_AddArrayToObject(o, "product_stages") : NULL;
    for (uint32_t i = 0; i < p->product_stages; i++)
        add_products(products, &p->product_stage[i]);
    cJSON *const rows = p->batch_devices > 0 ? cJSON_AddArrayToObject(o, "batch_rows") : NULL;
    for (uint32_t d = 0; rows != NULL && d < p->batch_devices; d++)
        cJSON_AddItemToArray(rows, cJSON_CreateNumber((double)p->batch_rows[d]));
    if (p->batch_devices > 0) {
        add_batch_reads(o, p);
        cJSON_AddNumberToObject(o, "steps", p->steps);
        cJSON_AddNumberToObject(o, "batch_group", p->batch_group);
        cJSON_AddNumberToObject(o, "step_seconds", p->step_seconds);
        cJSON_AddNumberToObject(o, "draw_seconds", p->draw_seconds);
        cJSON_AddNumberToObject(o, "pick_seconds", p->pick_seconds);
        cJSON_AddNumberToObject(o, "send_seconds", p->send_seconds);
        cJSON_AddNumberToObject(o, "compute_seconds", p->compute_seconds);
        cJSON_AddNumberToObject(o, "draw_bytes", (double)p->draw_bytes);
    }
    cJSON *const share = p->batch_devices > 0 ? cJSON_AddArrayToObject(o, "batches_of_a_step") : NULL;
    for (uint32_t d = 0; share != NULL && d < p->batch_devices; d++)
        cJSON_AddItemToArray(share, cJSON_CreateNumber(p->batch_share[d]));
    if (p->run_seconds > 0)
        ADD(o, {"epochs", p->epochs}, {"evaluations", p->evaluations}, {"run_seconds", p->run_seconds});
    cJSON *const memory = cJSON_AddArrayToObject(o, "memory");
    for (uint32_t i = 0; i < p->items; i++) {
        cJSON *const one = add_object(memory);
        cJSON_AddStringToObject(one, "name", p->item[i].name);
        cJSON_AddNumberToObject(one, "bytes", (double)p->item[i].bytes);
        cJSON_AddBoolToObject(one, "device", p->item[i].device);
    }
}

static gs_status print_json(void *file, cJSON *o)
{
    char *const text = o == NULL ? NULL : cJSON_PrintUnformatted(o);
    gs_status st = GS_OK;

    if (text == NULL)
        st = gs_fail(GS_ENOMEM, "the plan as JSON: out of memory");
    else if (fputs(text, file) == EOF)
        st = gs_fail_errno(errno, "the plan as JSON: cannot write");
    cJSON_free(text);
    cJSON_Delete(o);
    return st;
}

gs_status gs_print_plan(void *file, const gs_plan_report *plan)
{
    gs_status st;

    if ((st = gs_check_argument(file, "file")) != GS_OK || (st = gs_check_argument(plan, "plan")) != GS_OK)
        return st;
    cJSON *const o = cJSON_CreateObject();
    if (o != NULL)
        fill(o, plan);
    return print_json(file, o);
}

static void fill_cluster(cJSON *o, const gs_cluster_report *r)
{
    ADD(o, {"ranks", r->ranks}, {"planned", r->planned}, {"parts", r->parts}, {"vertices", (double)r->vertices},
        {"edges", (double)r->edges}, {"parameters", (double)r->parameters});
    cJSON *const links = cJSON_AddArrayToObject(o, "links");
    for (uint32_t l = 0; l < r->links; l++) {
        cJSON *const one = add_object(links);
        cJSON_AddStringToObject(one, "name", r->link[l].name);
        ADD(one, {"bytes", r->link[l].bytes}, {"seconds", r->link[l].seconds});
    }
    ADD(o, {"compute_seconds", r->compute_seconds}, {"disk_seconds", r->disk_seconds},
        {"network_seconds", r->network_seconds}, {"epoch_seconds", r->epoch_seconds},
        {"run_seconds", r->run_seconds});
    cJSON_AddStringToObject(o, "bound", r->bound);
    ADD(o, {"memory", (double)r->memory}, {"memory_bytes", (double)r->memory_bytes},
        {"table_bytes", (double)r->table_bytes}, {"store_bytes", (double)r->store_bytes},
        {"spill_bytes", (double)r->spill_bytes}, {"epoch_price", r->epoch_price}, {"run_price", r->run_price});
    fill(cJSON_AddObjectToObject(o, "plan"), &r->plan);
}

gs_status gs_print_cluster(void *file, const gs_cluster_report *report)
{
    gs_status st;

    if ((st = gs_check_argument(file, "file")) != GS_OK || (st = gs_check_argument(report, "report")) != GS_OK)
        return st;
    cJSON *const o = cJSON_CreateObject();
    if (o != NULL)
        fill_cluster(o, report);
    return print_json(file, o);
}
