/* api.c - the calls of the public interface that need no run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/dtype.h"
#include "base/option_table.h"
#include "base/record.h"
#include "base/size.h"
#include "compile/compile.h"
#include "session/session_plan.h"
#include "session/store_rows.h"
#include "store/edge_scan.h"
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

/* A store, a shard, or the first of a folder of shards, of which something is said to `out`. */
static gs_status open_any(gs_store **s, const void *out, const char *store)
{
    GS_FREED char *folder = NULL;

    GS_TRY(gs_check_argument(out, "out"));
    GS_TRY(gs_check_argument(store, "store"));
    GS_TRY(gs_run__folder(&folder, store));
    return gs_store_open_part(s, folder);
}

gs_status gs_inspect_types(gs_type_table *out, const char *store)
{
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;

    GS_TRY(open_any(&s, out, store));
    const gs_type_table *const types = gs_store_get_info(s)->types;
    *out = types != NULL ? *types : (gs_type_table){0};
    return GS_OK;
}

gs_status gs_inspect_features(gs_feature_table *out, const char *store)
{
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;

    GS_TRY(open_any(&s, out, store));
    const gs_feature_table *const named = gs_store_get_info(s)->named;
    *out = named != NULL ? *named : (gs_feature_table){0};
    return GS_OK;
}

/* What a store's manifest has under the same names. */
#define SAME_IN_STORE(X)                                                                              \
    X(vertices) X(edges) X(self_loops) X(parts) X(interval_rows) X(features) X(classes) X(edge_types) \
    X(train) X(valid) X(test) X(max_in_degree) X(max_out_degree) X(total_bytes) X(name_bytes)         \
    X(edge_type_name_bytes) X(seed) X(id) X(symmetric) X(weights) X(edge_features)

gs_status gs_inspect(gs_store_summary *out, const char *store)
{
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;

    GS_TRY(open_any(&s, out, store));
    const gs_store_info *const info = gs_store_get_info(s);
    const gs_store_shard *const shard = gs_store_get_shard(s);
#define X(member) .member = info->member,
    *out = (gs_store_summary){
        SAME_IN_STORE(X)
        .table_bytes = gs_store_table_bytes(s),
        .train_links = info->links[0],
        .valid_links = info->links[1],
        .test_links = info->links[2],
        .sources_per_vertex = sources_per_vertex(gs_store_chunks(s)),
        .shards = shard != NULL ? shard->ranks : 0,
        .shard = shard != NULL && gs_store_is_at(store) ? shard->rank : GS_ALL_SHARDS,
        .vertex_types = info->types != NULL ? info->types->types : 0,
    };
#undef X
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
    return GS_OK;
}

gs_status gs_verify(const char *store, uint64_t memory)
{
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;

    GS_TRY(open_any(&s, &s, store));
    return gs_store_verify(s, memory != 0 ? memory : VERIFY_MEMORY);
}

void gs_shard_options_sized(gs_shard_options *options, size_t size)
{
    const gs_shard_options defaults = {.size = sizeof(defaults)};
    gs_options_give(options, size, &defaults, sizeof(defaults));
}

gs_status gs_shard(const char *store, uint32_t ranks, const char *out, const gs_shard_options *options)
{
    gs_shard_options o = {.size = sizeof(o)};
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;

    GS_TRY(gs_check_argument(store, "store"));
    GS_TRY(gs_check_argument(out, "out"));
    if (options != NULL)
        GS_TRY(gs_options_take(&o, sizeof(o), offsetof(gs_shard_options, progress), options, "options",
                               "gs_shard_options_init"));
    GS_TRY(gs_store_open(&s, store));
    const gs_shard_job job = {ranks, o.force, o.progress, o.context, o.stop};
    return gs_store_write_shards(s, out, &job);
}

gs_status gs_inspect_weights(gs_weights_summary *out, const char *path)
{
    GS_ENDS(gs_provenance_free) gs_provenance p = {0};

    GS_TRY(gs_check_argument(out, "out"));
    GS_TRY(gs_check_argument(path, "path"));
    GS_TRY(gs_provenance_read(&p, path));
    *out = p.summary;
    return GS_OK;
}

/* ---- edges for programs that keep a graph themselves: compressed sparse columns, by ids ---- */

#define SCAN_MEMORY (256 * GS_MIB)

/* Edges of one relation, or of all; ids count from the first vertex of their type. */
typedef struct columns {
    uint64_t interval_rows;
    uint32_t *id;            /* [vertices] in the input, of each row */
    uint32_t relation;
    uint64_t first_source, first, destinations;
    int64_t *start, *source; /* the caller's; source NULL: edges are counted */
} columns;

static gs_status read_input_ids(uint32_t *id, const gs_store *store)
{
    GS_ENDS(gs_block_reader_close) gs_block_reader r = {0};
    gs_status st = gs_block_reader_open(&r, store, GS_ARRAY_INPUT_ID);

    while (gs_block_reader_more(&r, &st))
        memcpy((char *)id + r.at, r.block, r.bytes);
    return st;
}

/* start[d + 1] counts edges of d; or start[d] is the place of the next one. */
static gs_status take_chunk(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    const columns *const c = context;
    const uint32_t *const to = c->id + target * c->interval_rows, *const from = c->id + operand * c->interval_rows;

    for (uint32_t t = 0; t < v->targets; t++)
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++) {
            if (c->relation != GS_ALL_RELATIONS && gs_type_at(v->type, v->type_bytes, k) != c->relation)
                continue;
            const uint64_t d = to[gs_index_at(v->target, v->index_bytes, t)] - c->first;
            if (d >= c->destinations)
                return gs_fail(GS_EFORMAT, "an edge of type %u ends at a vertex of another type", c->relation);
            if (c->source == NULL)
                c->start[d + 1]++;
            else
                c->source[c->start[d]++] = from[gs_index_at(v->index, v->index_bytes, k)] - (int64_t)c->first_source;
        }
    return GS_OK;
}

static int by_id(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Places moved to the ends of their lists: back to the beginnings, and each list in order. */
static void finish_lists(const columns *c)
{
    memmove(c->start + 1, c->start, c->destinations * sizeof(*c->start));
    c->start[0] = 0;
#pragma omp parallel for schedule(dynamic, 4096)
    for (uint64_t d = 0; d < c->destinations; d++)
        qsort(c->source + c->start[d], (size_t)(c->start[d + 1] - c->start[d]), sizeof(*c->source), by_id);
}

static gs_status find_relation(columns *c, const gs_store *s)
{
    const gs_store_info *const info = gs_store_get_info(s);
    const gs_type_table *const t = info->types;

    c->destinations = info->vertices;
    if (c->relation == GS_ALL_RELATIONS)
        return GS_OK;
    if (c->relation >= info->edge_types)
        return gs_fail(GS_EINVAL, "relation %u: %s has %u types of edges, from 0", c->relation, gs_store_dir(s),
                       info->edge_types);
    if (t != NULL && t->types > 0) {
        c->first_source = t->type[t->relation[c->relation].source].first;
        c->first = t->type[t->relation[c->relation].destination].first;
        c->destinations = t->type[t->relation[c->relation].destination].vertices;
    }
    return GS_OK;
}

gs_status gs_read_in_edges(int64_t *start, int64_t *source, const char *store, uint32_t relation, uint64_t memory)
{
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;

    GS_TRY(gs_check_argument(start, "start"));
    GS_TRY(gs_check_argument(store, "store"));
    GS_TRY(gs_store_open(&s, store));
    const uint64_t vertices = gs_store_get_info(s)->vertices;
    columns c = {.relation = relation, .start = start, .source = source,
                 .interval_rows = gs_store_get_info(s)->interval_rows};
    GS_TRY(find_relation(&c, s));
    GS_FREED uint32_t *const id = gs_malloc_array(vertices, sizeof(*id));
    GS_NEED((c.id = id) != NULL, "out of memory for the ids of %lu vertices", vertices);
    if (source == NULL)
        memset(start, 0, (c.destinations + 1) * sizeof(*start));
    GS_TRY(read_input_ids(id, s));
    GS_TRY(gs_edge_scan(s, GS_BY_DEST, memory != 0 ? memory : SCAN_MEMORY, NULL, take_chunk, &c));
    if (source != NULL)
        finish_lists(&c);
    for (uint64_t d = 0; source == NULL && d < c.destinations; d++)
        start[d + 1] += start[d];
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

GS_ENDS_BY(gs_program, gs_program_free)

/* Takes `ir`. */
static gs_status compile(gs_printer *p, gs_ir **ir, const gs_train_options *o, const gs_model_graph *g, gs_loss loss)
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
    GS_ENDS(gs_program_free_at) gs_program *const program = gs_program_new();
    gs_ir *const taken = *ir;

    GS_NEED(program != NULL, "out of memory for the compiled model");
    *ir = NULL;
    GS_TRY(gs_compile(program, taken, &options));
    if (!p->dot) {
        fputs("== the compiled epoch\n", p->out);
        gs_program_print(program, p->out);
    }
    return GS_OK;
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
    GS_ENDS(gs_model_close_at) gs_model *model = NULL;
    GS_ENDS(gs_ir_free_at) gs_ir *ir = NULL;
    gs_loss loss;

    if (!(graph->edges_per_vertex >= 0 && graph->edges_per_vertex <= 1e9))
        return gs_fail(GS_EINVAL, ".edges_per_vertex %g: must be from 0 to 1e9", graph->edges_per_vertex);
    GS_TRY(gs_train_options_check(options));
    GS_TRY(gs_session_open_model(&model, options));
    GS_TRY(gs_model_build(&ir, model, &config));
    if (!dot)
        fprintf(file, "== the text\n%s\n", gs_model_text(model));
    show(&p, "as the text says", ir);
    GS_TRY(gs_session_find_loss(&loss, options, task_of(options)));
    GS_TRY(gs_ir_add_loss(ir, loss, gs_train_task_labels(gs_loss_task(loss))));
    GS_TRY(gs_ir_differentiate(ir));
    return compile(&p, &ir, options, graph, loss);
}

gs_status gs_print_model(void *file, const gs_train_options *options, const gs_model_graph *graph, bool dot)
{
    gs_train_options own;

    GS_TRY(gs_check_argument(file, "file"));
    GS_TRY(gs_train_options_read(&own, options));
    GS_TRY(gs_check_argument(graph, "graph"));
    return print_model(file, &own, graph, dot);
}

/* ---- a plan as JSON ------------------------------------------------------ */

/* Which of the values could not be added is seen by the text that does not come. Members have their own names there. */
#define PART(of, kind, member) GS_FIELD(of, member, kind, #member)

#define PASS(kind, member) PART(gs_pass_report, kind, member)
#define PREDICTED(member) GS_FIELD(gs_pass_report, predicted.member, REAL, #member)
static const gs_field pass_fields[] = {
    PASS(TEXT, name), GS_FIELD(gs_pass_report, blocks, U32, "parts"), PASS(U32, tasks), PASS(U64, read_bytes),
    PASS(U64, read_requests), PASS(U64, skipped_bytes), PASS(U64, written_bytes), PASS(U64, edges), PASS(U64, rows),
    PASS(U64, edge_bytes), PASS(U64, upload_bytes), PASS(U64, forward_bytes), PASS(U64, download_bytes),
    PASS(REAL, dense_flops), PASS(REAL, edge_flops), PASS(REAL, products), PASS(U64, product_edges),
    PASS(U64, cached_bytes), PREDICTED(seconds), PREDICTED(read_seconds), PREDICTED(write_seconds),
    PREDICTED(edge_seconds), PREDICTED(vertex_seconds), PREDICTED(check_seconds), PREDICTED(stall_seconds),
    GS_FIELD(gs_pass_report, predicted.bottleneck, TEXT, "bottleneck"),
    GS_FIELD(gs_pass_report, order.tried, U32, "orders_tried"),
    GS_FIELD(gs_pass_report, order.store_seconds, REAL, "store_order_seconds"),
    GS_FIELD(gs_pass_report, order.best_seconds, REAL, "best_order_seconds"),
    GS_FIELD(gs_pass_report, order.taken, BOOL, "reordered"),
    PASS(SOME, recomputes), PASS(SOME, keeps), PASS(SOME, lean), PASS(SOME, batches), PASS(SOME, splits),
    PASS(SOME, width),
    PASS(SOME, no_hoist), PASS(SOME, no_move), PASS(SOME, no_fuse), PASS(SOME, no_prune),
};
_Static_assert(sizeof(gs_taken) == sizeof(uint32_t), "GS_FIELD_SOME of it");

#define PRODUCT(kind, member) PART(gs_product_report, kind, member)
static const gs_field product_fields[] = {
    PRODUCT(TEXT, stage), PRODUCT(U64, edges), PRODUCT(U64, runs), PRODUCT(REAL, edge_seconds),
    PRODUCT(REAL, run_seconds), PRODUCT(U64, pairs), PRODUCT(REAL, pair_seconds), PRODUCT(BOOL, by_runs),
    PRODUCT(BOOL, by_pairs), PRODUCT(BOOL, measured),
};
#define FILE_OF(kind, member) PART(gs_file_report, kind, member)
static const gs_field file_fields[] = {
    FILE_OF(TEXT, name), FILE_OF(U64, read_bytes), FILE_OF(U64, written_bytes), FILE_OF(U64, kept_bytes),
};
static const gs_field link_fields[] = {PART(gs_link_report, TEXT, from), PART(gs_link_report, TEXT, to)};
static const gs_field way_fields[] = {
    GS_FIELD(gs_way_report, words, TEXT, "devices"), PART(gs_way_report, REAL, seconds),
    PART(gs_way_report, BOOL, taken),
};
static const gs_field program_fields[] = {
    GS_FIELD(gs_program_report, words, TEXT, "program"), PART(gs_program_report, REAL, seconds),
    PART(gs_program_report, U64, host_bytes), PART(gs_program_report, BOOL, taken),
};
static const gs_field item_fields[] = {
    PART(gs_memory_item, TEXT, name), PART(gs_memory_item, U64, bytes), PART(gs_memory_item, BOOL, device),
};

#define PLAN(kind, member) PART(gs_plan_report, kind, member)
#define PLAN_ROWS(member, number, key, table, ...) GS_ROWS(gs_plan_report, member, number, key, table, __VA_ARGS__)
/* Of as many devices as train batches. */
#define BATCH_LIST(kind, member, key)                                                                           \
    GS_FIELD(gs_plan_report, member, kind, key, .count = GS_PLAN_DEVICES, .counted = true, .may_lack = true,     \
             .counter = offsetof(gs_plan_report, batch_devices))
static const gs_field known_fields[] = {
    PLAN(TEXT, fitted), GS_FIELD(gs_plan_report, measured, TEXT, "ceiling"),
    GS_FIELD(gs_plan_report, guessed, TEXT, "default"), PLAN(REAL, others),
};
static const gs_field first_fields[] = {
    PLAN(U64, vertices), PLAN(U64, edges), PLAN(U64, parameters), PLAN(U64, host_memory), PLAN(U64, host_bytes),
    PLAN(U64, device_memory), PLAN(U64, device_bytes), PLAN(U32, devices), PLAN(U64, spill_bytes),
    PLAN(U64, flight_bytes), PLAN(BOOL, unified), PLAN_ROWS(pass, passes, "passes", pass_fields),
    GS_FIELD(gs_plan_report, basis, TEXT, "predicted_from"),
};
static const gs_field choice_fields[] = {
    PLAN_ROWS(way, ways, "ways", way_fields, .may_lack = true),
    PLAN_ROWS(program, programs, "programs", program_fields, .may_lack = true),
    PLAN_ROWS(product_stage, product_stages, "product_stages", product_fields, .may_lack = true),
    BATCH_LIST(U64, batch_rows, "batch_rows"),
};
static const gs_field batch_fields[] = {
    PLAN(U64, batch_ring), PLAN(U32, batch_side), PLAN(REAL, batch_read_seconds), PLAN(REAL, batch_read_alone_seconds),
    PLAN(U32, steps), PLAN(U32, batch_group), PLAN(REAL, step_seconds), PLAN(REAL, draw_seconds),
    PLAN(REAL, pick_seconds), PLAN(REAL, send_seconds), PLAN(REAL, compute_seconds), PLAN(U64, draw_bytes),
    BATCH_LIST(U32, batch_share, "batches_of_a_step"),
};
static const gs_field run_fields[] = {PLAN(U32, epochs), PLAN(U32, evaluations), PLAN(REAL, run_seconds)};
static const gs_field pair_field[] = {PLAN(U64, pair_bytes)};
static const gs_field memory_field[] = {PLAN_ROWS(item, items, "memory", item_fields)};

/* A new object at the end of `list`. */
static cJSON *add_object(cJSON *list)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddItemToArray(list, o);
    return o;
}

static bool add_file(cJSON *list, const gs_plan_report *p, uint32_t file)
{
    cJSON *const o = add_object(list);
    bool ok = gs_record_write(o, GS_FIELDS(file_fields), &p->file[file]);

    cJSON *const kept = cJSON_AddArrayToObject(o, "device_kept_bytes");
    for (uint32_t d = 0; d < p->devices && p->links > 2 && ok; d++) /* with memory of their own */
        ok = cJSON_AddItemToArray(kept, cJSON_CreateNumber((double)p->device_kept_bytes[file][d]));
    return ok;
}

/* A pass's bytes, requests and seconds of a link. */
static bool add_transfer(cJSON *o, const char *name, uint64_t bytes, uint64_t requests, double seconds)
{
    return cJSON_AddStringToObject(o, "name", name) != NULL &&
           cJSON_AddNumberToObject(o, "bytes", (double)bytes) != NULL &&
           cJSON_AddNumberToObject(o, "requests", (double)requests) != NULL &&
           cJSON_AddNumberToObject(o, "seconds", seconds) != NULL;
}

static bool add_link(cJSON *list, const gs_plan_report *p, const gs_link_report *x)
{
    cJSON *const o = add_object(list);
    bool ok = gs_record_write(o, GS_FIELDS(link_fields), x);

    cJSON *const passes = cJSON_AddArrayToObject(o, "passes");
    for (uint32_t i = 0; i < p->passes && ok; i++)
        ok = add_transfer(add_object(passes), p->pass[i].name, x->pass[i].bytes, x->pass[i].requests,
                          x->pass[i].seconds);
    return ok;
}

/* Each one's memory, of several devices. */
static bool add_memories(cJSON *o, const gs_plan_report *p)
{
    cJSON *const memories = p->devices > 1 ? cJSON_AddArrayToObject(o, "memories") : NULL;
    bool ok = true;

    for (uint32_t d = 0; d < p->devices && p->devices > 1 && ok; d++) {
        cJSON *const one = add_object(memories);
        ok = cJSON_AddNumberToObject(one, "bytes", (double)p->bytes_of[d]) != NULL &&
             cJSON_AddNumberToObject(one, "budget", (double)p->budget_of[d]) != NULL;
    }
    return ok;
}

static bool fill(cJSON *o, const gs_plan_report *p)
{
    bool ok = gs_record_write(o, GS_FIELDS(first_fields), p) &&
              gs_record_write(cJSON_AddObjectToObject(o, "known_from"), GS_FIELDS(known_fields), p);

    cJSON *const files = cJSON_AddArrayToObject(o, "files");
    for (uint32_t i = 0; i < p->files && ok; i++)
        ok = add_file(files, p, i);
    cJSON *const links = cJSON_AddArrayToObject(o, "links");
    for (uint32_t i = 0; i < p->links && ok; i++)
        ok = add_link(links, p, &p->link[i]);
    return ok && add_memories(o, p) && gs_record_write(o, GS_FIELDS(choice_fields), p) &&
           (p->batch_devices == 0 || gs_record_write(o, GS_FIELDS(batch_fields), p)) &&
           (!(p->run_seconds > 0) || gs_record_write(o, GS_FIELDS(run_fields), p)) &&
           (p->pair_bytes == 0 || gs_record_write(o, GS_FIELDS(pair_field), p)) &&
           gs_record_write(o, GS_FIELDS(memory_field), p);
}

/* Takes `o`, of which all is there where `whole`. */
static gs_status print_json(void *file, cJSON *o, bool whole)
{
    char *const text = whole ? cJSON_PrintUnformatted(o) : NULL;
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
    GS_TRY(gs_check_argument(file, "file"));
    GS_TRY(gs_check_argument(plan, "plan"));
    cJSON *const o = cJSON_CreateObject();
    return print_json(file, o, fill(o, plan));
}

#define LINKS_AT offsetof(gs_cluster_report, link)
#define CLUSTER(kind, member) PART(gs_cluster_report, kind, member)
static const gs_field cluster_link_fields[] = {
    {.name = "name", .kind = GS_FIELD_TEXT, .at = offsetof(gs_cluster_report, link[0].name) - LINKS_AT},
    {.name = "bytes", .kind = GS_FIELD_REAL, .at = offsetof(gs_cluster_report, link[0].bytes) - LINKS_AT},
    {.name = "seconds", .kind = GS_FIELD_REAL, .at = offsetof(gs_cluster_report, link[0].seconds) - LINKS_AT},
};
static const gs_field cluster_fields[] = {
    CLUSTER(U32, ranks), CLUSTER(U32, planned), CLUSTER(U32, parts), CLUSTER(U64, vertices), CLUSTER(U64, edges),
    CLUSTER(U64, parameters), GS_ROWS(gs_cluster_report, link, links, "links", cluster_link_fields),
    CLUSTER(REAL, compute_seconds), CLUSTER(REAL, disk_seconds), CLUSTER(REAL, network_seconds),
    CLUSTER(REAL, epoch_seconds), CLUSTER(REAL, run_seconds), CLUSTER(TEXT, bound), CLUSTER(U64, memory),
    CLUSTER(U64, memory_bytes), CLUSTER(U64, table_bytes), CLUSTER(U64, store_bytes), CLUSTER(U64, spill_bytes),
    CLUSTER(REAL, epoch_price), CLUSTER(REAL, run_price),
};

gs_status gs_print_cluster(void *file, const gs_cluster_report *report)
{
    GS_TRY(gs_check_argument(file, "file"));
    GS_TRY(gs_check_argument(report, "report"));
    cJSON *const o = cJSON_CreateObject();
    return print_json(file, o, gs_record_write(o, GS_FIELDS(cluster_fields), report) &&
                                   fill(cJSON_AddObjectToObject(o, "plan"), &report->plan));
}
