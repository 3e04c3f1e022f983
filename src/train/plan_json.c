/* plan_json.c - a plan as JSON: what `plan --json` prints, and what stands in a trace beside what was measured. */
#include <cJSON.h>
#include <errno.h>
#include <stdio.h>

#include "base/status.h"
#include "gnnstream.h"

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
        {"dense_flops", x->dense_flops}, {"edge_flops", x->edge_flops}, {"cached_bytes", (double)x->cached_bytes},
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
    cJSON_AddBoolToObject(o, "no_hoist", x->no_hoist != GS_NOT_TAKEN);
    cJSON_AddBoolToObject(o, "no_move", x->no_move != GS_NOT_TAKEN);
    cJSON_AddBoolToObject(o, "no_fuse", x->no_fuse != GS_NOT_TAKEN);
    cJSON_AddBoolToObject(o, "no_prune", x->no_prune != GS_NOT_TAKEN);
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
    cJSON *const ways = p->ways > 0 ? cJSON_AddArrayToObject(o, "ways") : NULL;
    for (uint32_t i = 0; i < p->ways; i++) {
        cJSON *const one = add_object(ways);
        cJSON_AddStringToObject(one, "devices", p->way[i].words);
        cJSON_AddNumberToObject(one, "seconds", p->way[i].seconds);
        cJSON_AddBoolToObject(one, "taken", p->way[i].taken);
    }
    cJSON *const rows = p->batch_devices > 0 ? cJSON_AddArrayToObject(o, "batch_rows") : NULL;
    for (uint32_t d = 0; rows != NULL && d < p->batch_devices; d++)
        cJSON_AddItemToArray(rows, cJSON_CreateNumber((double)p->batch_rows[d]));
    if (p->batch_devices > 0) {
        cJSON_AddNumberToObject(o, "steps", p->steps);
        cJSON_AddNumberToObject(o, "batch_group", p->batch_group);
        cJSON_AddNumberToObject(o, "batch_ring", (double)p->batch_ring);
        cJSON_AddNumberToObject(o, "step_seconds", p->step_seconds);
        cJSON_AddNumberToObject(o, "draw_seconds", p->draw_seconds);
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

gs_status gs_print_plan(void *file, const gs_plan_report *plan)
{
    gs_status st;

    if ((st = gs_check_argument(file, "file")) != GS_OK || (st = gs_check_argument(plan, "plan")) != GS_OK)
        return st;
    cJSON *const o = cJSON_CreateObject();
    if (o != NULL)
        fill(o, plan);
    char *const text = cJSON_PrintUnformatted(o);
    if (text == NULL)
        st = gs_fail(GS_ENOMEM, "the plan as JSON: out of memory");
    else if (fputs(text, file) == EOF)
        st = gs_fail_errno(errno, "the plan as JSON: cannot write");
    cJSON_free(text);
    cJSON_Delete(o);
    return st;
}
