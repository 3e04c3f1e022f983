/* describe.c - what a plan would do, for people; and what two sessions are compared by. */
#include "session/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/size.h"
#include "plan/links.h"
#include "schedule/simulate.h"
#include "session/choose_products.h"
#include "session/session.h"
#include "session/session_plan.h"
#include "session/tables.h"

/* What a plan has of a pass under the same names. */
#define SAME_AS_PLANNED(X)                                                                               \
    X(blocks) X(tasks) X(read_bytes) X(read_requests) X(edges) X(rows) X(skipped_bytes) X(written_bytes) \
    X(cached_bytes) X(edge_bytes) X(upload_bytes) X(forward_bytes) X(download_bytes) X(dense_flops)      \
    X(edge_flops) X(products) X(product_edges) X(order)

gs_status gs_session_describe_pass(const gs_session *s, gs_pass_report *out, uint32_t pass)
{
    const gs_plan_pass *const planned = &s->plan->pass[pass];
    const uint32_t parts = s->config.batch != NULL ? 1 : gs_store_chunks(s->store)->parts;
    gs_predicted x;
    const gs_simulation_input input = {s->plan, s->program, s->edges.set, parts, &s->machine.cost,
                                       &s->machine.wires, pass, gs_session_host_cost(s)};

    GS_TRY(s->config.batch != NULL ? gs_simulate(&x, &input) : gs_simulate_once(&x, s->plan, &input));
#define X(member) .member = planned->member,
    *out = (gs_pass_report){
        SAME_AS_PLANNED(X)
        .predicted = x,
        .recomputes = s->variant.recompute,
        .keeps = s->variant.keep,
        .lean = s->variant.lean,
        .batches = s->variant.typed,
        .splits = s->variant.split,
        .width = s->variant.width,
        .no_hoist = s->variant.no_hoist,
        .no_move = s->variant.no_move,
        .no_fuse = s->variant.no_fuse,
        .no_prune = s->variant.no_prune,
    };
#undef X
    snprintf(out->name, sizeof(out->name), "%s", s->program->pass[pass].name);
    return GS_OK;
}

/* Files in the order of GS_FILE_EDGES; the last entry takes what there is no room for. What the run rounds has its
 * type behind its name. */
static gs_file_report *file_report(const gs_session *s, gs_plan_report *out, uint32_t file)
{
    static const char *const edges[] = {"edges by destination", "edges by source", "edges of a stage"};
    const uint32_t at = GS_MIN(file, GS_PLAN_FILES - 1), arrays = s->program->arrays;
    gs_file_report *const f = &out->file[at];
    const gs_array *const a = file < arrays ? &s->program->array[file] : NULL;
    const char *const name = a == NULL ? edges[GS_MIN(file - arrays, 2)] : a->name;
    const bool rounded = a != NULL && a->store_id < 0 && a->dtype != GS_F32;

    out->files = GS_MAX(out->files, at + 1);
    if (at < file)
        snprintf(f->name, sizeof(f->name), "others");
    else
        snprintf(f->name, sizeof(f->name), "%.*s%s%s", (int)sizeof(f->name) - 8, name, rounded ? ", " : "",
                 rounded ? gs_dtype_name(a->dtype) : "");
    return f;
}

/* Bytes of an array that are on the disk, as its other intervals are kept in memory. */
static uint64_t spilled_bytes(const gs_session *s, uint32_t array)
{
    uint64_t bytes = gs_store_get_info(s->store)->vertices * s->program->array[array].width * sizeof(float);
    for (uint32_t i = 0; i < s->plan->residents; i++)
        if (s->plan->resident[i].file == array && s->plan->resident[i].memory == GS_HOST)
            bytes -= GS_MIN(bytes, s->plan->resident[i].bytes);
    return bytes;
}

/* Counts the bytes that updating tables moves after the pass. */
static void describe_tables(const gs_session *s, gs_plan_report *out)
{
    for (uint32_t i = 0; i < s->program->tables && s->pass.train != GS_NONE; i++) {
        const gs_table *const t = &s->program->table[i];
        const uint32_t array[] = {t->gradient, t->array, t->state[0], t->state[1]};
        for (size_t k = 0; k < GS_ARRAY_LEN(array) && t->gradient != GS_NONE; k++)
            if (array[k] != GS_NONE) {
                gs_file_report *const f = file_report(s, out, array[k]);
                f->read_bytes += spilled_bytes(s, array[k]);
                f->written_bytes += k == 0 ? 0 : spilled_bytes(s, array[k]);
            }
    }
}

/* Counts the bytes that the training pass moves, file by file. */
static void describe_files(const gs_session *s, gs_plan_report *out)
{
    const gs_plan_pass *const pass = &s->plan->pass[s->pass.train != GS_NONE ? s->pass.train : 0];

    for (uint32_t f = 0; f < s->program->arrays + s->edges.sets; f++)
        (void)file_report(s, out, f);
    for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
        const gs_task *const t = &s->plan->task[i];
        if (gs_task_reads(t))
            file_report(s, out, t->file)->read_bytes += gs_task_bytes(s->plan, t);
        else if (gs_task_writes(t))
            file_report(s, out, t->file)->written_bytes += t->bytes;
    }
    for (uint32_t i = 0; i < s->plan->residents; i++) {
        const gs_resident *const r = &s->plan->resident[i];
        gs_file_report *const f = file_report(s, out, r->file);
        *(r->memory == GS_HOST ? &f->kept_bytes
                               : &out->device_kept_bytes[f - out->file][r->memory - GS_DEVICE_MEMORIES]) += r->bytes;
    }
}

static void name_memory(char *out, size_t room, uint32_t memory)
{
    if (gs_is_device_memory(memory))
        snprintf(out, room, "device %u", (memory - GS_DEVICE_MEMORIES) % GS_PLAN_DEVICES);
    else
        snprintf(out, room, "%s", memory == GS_DISK ? "disk" : "host");
}

static void name_link(gs_link_report *out, gs_plan_link link, const char *peers)
{
    if (gs_link_driver(link) == GS_DRIVER_PEER)
        snprintf(out->from, sizeof(out->from), "%s", peers);
    else
        name_memory(out->from, sizeof(out->from), link.from);
    name_memory(out->to, sizeof(out->to), link.to);
}

static void describe_links(const gs_session *s, gs_plan_report *out)
{
    gs_link_load load[GS_PLAN_LINKS];
    const gs_session_machine *const m = &s->machine;
    const char *const peers = m->wires.across.network ? "network" : s->plan->ring ? "ring" : "chain";

    out->links = gs_plan_links(s->plan);
    for (uint32_t p = 0; p < out->passes; p++) {
        gs_plan_load_links(load, s->plan, p);
        for (uint32_t l = 0; l < out->links; l++) {
            name_link(&out->link[l], load[l].link, peers);
            out->link[l].pass[p].bytes = load[l].bytes;
            out->link[l].pass[p].requests = load[l].requests;
            out->link[l].pass[p].seconds =
                gs_link_seconds(&m->wires, &m->cost, gs_session_host_cost(s), &load[l]);
        }
    }
}

/* Do any copies go this way, at a speed that the topology does not say? */
static bool link_counts(const gs_session *s, gs_link_way way)
{
    static const gs_plan_link first[GS_LINK_WAYS] = { /* of the first device */
        [GS_LINK_TO_DEVICE] = {GS_HOST, GS_DEVICE_MEMORIES}, [GS_LINK_FROM_DEVICE] = {GS_DEVICE_MEMORIES, GS_HOST},
        [GS_LINK_BETWEEN] = {GS_DEVICE_MEMORIES, GS_DEVICE_MEMORIES},
        [GS_LINK_FROM_DISK] = {GS_DISK, GS_DEVICE_MEMORIES},
    };
    uint64_t bytes = 0;

    for (uint32_t p = 0; p < s->plan->passes; p++) {
        const gs_plan_pass *const pass = &s->plan->pass[p];
        bytes += way == GS_LINK_TO_DEVICE ? pass->upload_bytes
                 : way == GS_LINK_BETWEEN ? pass->forward_bytes
                 : way == GS_LINK_FROM_DISK ? pass->loaded_bytes
                                          : pass->download_bytes;
    }
    return bytes > 0 && !(gs_link_said_bps(&s->machine.wires, first[way]) > 0);
}

/* Does any pass read or write files? Where all is in memory, epochs tell nothing of a disk, and need not. */
static bool disk_counts(const gs_session *s)
{
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < s->plan->passes; p++)
        bytes += s->plan->pass[p].read_bytes + s->plan->pass[p].written_bytes;
    return bytes > 0;
}

static bool has_edge_programs(const gs_program *p)
{
    bool any = false;

    for (uint32_t k = 0; k < p->stages; k++)
        any = any || (p->stage[k].sums > 0 && gs_stage_has_edge_program(&p->stage[k]));
    return any;
}

static bool counts(const gs_session *s, int kind)
{
    if (kind >= GS_WORK_LINKS)
        return link_counts(s, kind - GS_WORK_LINKS);
    if (kind == GS_WORK_CHECK || kind == GS_WORK_SUBMIT)
        return disk_counts(s);
    return kind != GS_WORK_EDGES || has_edge_programs(s->program); /* most models have none */
}

static gs_cost_source worst_of(const gs_session *s, const gs_cost *c, gs_cost_source worst)
{
    for (int k = 0; k < GS_WORK_KINDS; k++)
        if (counts(s, k))
            worst = GS_MIN(worst, c->source[k]);
    return worst;
}

static const char *least_known(const gs_session *s)
{
    const gs_cost *const host = gs_session_host_cost(s);
    const gs_cost_source disk = disk_counts(s) ? s->machine.cost.disk_source : GS_COST_FITTED;
    const gs_cost_source worst = worst_of(s, &s->machine.cost, disk);
    return gs_cost_source_name(host == NULL ? worst : worst_of(s, host, worst));
}

/* Appends a word to a list. */
static void add_word(char *list, size_t size, const char *word)
{
    const size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", word);
}

/* Which kinds of work are known how well, on the devices of which less is known; and how busy the machine was when
 * that was found out. */
static void describe_costs(const gs_session *s, gs_plan_report *out)
{
    static const char *const word[GS_WORK_KINDS] = {
        [GS_WORK_MEMORY] = "sums' memory", [GS_WORK_SUM] = "row sums", [GS_WORK_EDGES] = "edge programs",
        [GS_WORK_VERTEX] = "vertex programs", [GS_WORK_CHECK] = "checksums", [GS_WORK_SUBMIT] = "requests",
        [GS_WORK_TO_DEVICE] = "copies to devices", [GS_WORK_FROM_DEVICE] = "copies to the host",
        [GS_WORK_BETWEEN] = "copies between devices", [GS_WORK_FROM_DISK] = "reads past the host"};
    const gs_cost *const cost = &s->machine.cost, *const host = gs_session_host_cost(s);
    char *const list[] = {[GS_COST_DEFAULT] = out->guessed, [GS_COST_CEILING] = out->measured,
                          [GS_COST_FITTED] = out->fitted};

    if (disk_counts(s))
        add_word(list[cost->disk_source], sizeof(out->fitted), "the disk");
    for (int k = 0; k < GS_WORK_KINDS; k++) {
        const gs_cost_source of = host == NULL ? cost->source[k] : GS_MIN(cost->source[k], host->source[k]);
        if (counts(s, k))
            add_word(list[of], sizeof(out->fitted), word[k]);
    }
    if (out->fitted[0] != '\0')
        out->others = host == NULL ? cost->others : GS_MAX(cost->others, host->others);
}

/* A trial's plan may be one without a list of tasks. */
static double pass_seconds(const gs_session *s, uint32_t pass)
{
    gs_pass_report r;
    if (pass == GS_NONE || s->config.trial)
        return 0;
    return gs_session_describe_pass(s, &r, pass) == GS_OK ? r.predicted.seconds : 0;
}

double gs_session_epoch_seconds(const gs_session *s)
{
    const uint32_t evaluating = s->pass.eval != GS_NONE ? s->pass.eval : s->pass.predict;
    return pass_seconds(s, s->pass.train != GS_NONE ? s->pass.train : evaluating) + pass_seconds(s, s->pass.forward);
}

/* The last evaluation may be the pass that stores logits. */
double gs_session_run_seconds(const gs_session *s)
{
    const double epochs = s->pass.train != GS_NONE ? gs_session_epochs(s) : 0;
    const uint32_t last = s->pass.predict != GS_NONE ? s->pass.predict : s->pass.eval;
    const double epoch = pass_seconds(s, s->pass.train) + pass_seconds(s, s->pass.forward);
    const uint32_t runs = gs_session_evaluations(s);

    return pass_seconds(s, gs_program_pass(s->program, "setup")) + epochs * epoch +
           (runs - 1) * pass_seconds(s, s->pass.eval) + pass_seconds(s, last);
}

static gs_way_report *next_way(gs_plan_report *out, double seconds, bool taken)
{
    gs_way_report *const w = &out->way[out->ways++];
    w->seconds = seconds;
    w->taken = taken;
    return w;
}

/* Which devices have a stage's columns. */
static void describe_part(char *out, size_t size, uint32_t devices, uint32_t like, const gs_plan_part *part)
{
    const uint32_t two = devices == 2;

    if (part->like > 0 && part->others == 1)
        snprintf(out, size, "each device as fast as it is");
    else if (part->like > 0 && part->others > 0)
        snprintf(out, size, "those worse than device %u: %g of that", like, part->others);
    else if (part->like > 0)
        snprintf(out, size, "%s%u alone", two ? "device " : "devices like ", like);
    else
        snprintf(out, size, "%s%u alone", two ? "device " : "devices unlike ", two ? 1 - like : like);
}

static void describe_deal(gs_way_report *w, uint32_t devices, const gs_plan_deal *d)
{
    char edges[sizeof(w->words) / 2 - 16], vertices[sizeof(edges)];

    describe_part(edges, sizeof(edges), devices, d->like, &d->edges);
    describe_part(vertices, sizeof(vertices), devices, d->like, &d->vertices);
    if (d->by_stage)
        snprintf(w->words, sizeof(w->words), "stage by stage, from the best of these on");
    else if (strcmp(edges, vertices) == 0)
        snprintf(w->words, sizeof(w->words), "%s", edges);
    else
        snprintf(w->words, sizeof(w->words), "edges: %s; vertices: %s", edges, vertices);
}

/* Kinds of devices; and where some of those that were taken are better than others, how columns are dealt. */
static void describe_ways(const gs_session *s, gs_plan_report *out)
{
    const gs_session_machine *const m = &s->machine;

    for (uint32_t i = 0; i < m->ways; i++) {
        gs_way_report *const w = next_way(out, m->way[i].seconds, i == m->way_taken);
        snprintf(w->words, sizeof(w->words), "%s%s", m->way[i].device, i > 0 ? " alone" : "");
    }
    const gs_plan_deals *const deals = &s->plan->deals;
    for (uint32_t i = 0; i < deals->count; i++)
        describe_deal(next_way(out, deals->deal[i].seconds, i == deals->taken), m->devices, &deals->deal[i]);
}

gs_status gs_session_describe(const gs_session *s, gs_plan_report *out)
{
    const gs_store_info *const info = gs_store_get_info(s->store);

    *out = (gs_plan_report){
        .vertices = info->vertices,
        .edges = info->edges,
        .parameters = gs_session_learned(s),
        .host_memory = s->memory.host,
        .device_memory = s->memory.device_most,
        .host_bytes = s->plan->host_bytes,
        .device_bytes = s->plan->device_bytes,
        .devices = s->machine.devices,
        .unified = !gs_session_has_memories(s),
        .passes = GS_MIN(s->program->passes, GS_PLAN_PASSES),
        .items = s->memory.items,
    };
    if (s->pass.train != GS_NONE) {
        out->epochs = gs_session_epochs(s);
        out->evaluations = gs_session_evaluations(s);
        out->run_seconds = gs_session_run_seconds(s);
    }
    out->spill_bytes = gs_session_spill_bytes(s);
    out->flight_bytes = s->plan->flight_bytes;
    for (uint32_t p = 0; p < out->passes; p++)
        GS_TRY(gs_session_describe_pass(s, &out->pass[p], p));
    describe_files(s, out);
    describe_tables(s, out);
    describe_links(s, out);
    describe_ways(s, out);
    out->programs = s->programs;
    memcpy(out->program, s->compared, sizeof(out->program));
    gs_session_describe_products(s, out);
    for (uint32_t d = 0; d < s->plan->devices; d++) {
        out->budget_of[d] = s->memory.device + gs_topology_more(&s->machine.wires, d, s->memory.device);
        out->bytes_of[d] = s->memory.device_fixed + s->plan->arena_bytes[d];
    }
    snprintf(out->basis, sizeof(out->basis), "%s", least_known(s));
    describe_costs(s, out);
    memcpy(out->item, s->memory.item, sizeof(out->item));
    return GS_OK;
}

char *gs_session_program_text(const gs_program *p, size_t *bytes)
{
    char *text = NULL;
    FILE *const f = open_memstream(&text, bytes);

    if (f == NULL)
        return NULL;
    gs_program_print(p, f);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

/* By which checkpoints know kinds: reads and writes come first, copies and loads last. */
static uint64_t number_of(const gs_task *t)
{
    const uint32_t lane = gs_task_lane(t);
    if (t->kind != GS_TASK_MOVE)
        return 1u + t->kind;
    return lane < GS_LANE_DEVICES ? lane : GS_TASK_KINDS + (lane - GS_LANE_DEVICES) % GS_DEVICE_LANES;
}

static void add_task(gs_hash_stream *h, const gs_plan *p, const gs_task *t)
{
    const bool disk = gs_task_is_transfer(t), peer = gs_task_driver(t) == GS_DRIVER_PEER;
    const uint64_t field[] = {
        number_of(t), t->stage, t->file, t->sum, t->target, t->operand, t->rows,
        peer ? t->source.memory - GS_DEVICE_MEMORIES : 0, t->device, t->first_row,
        disk ? gs_task_on_disk(t)->offset : 0, t->bytes, t->chunk_bytes,
        disk ? gs_task_off_disk(t)->region : t->place.region, disk ? GS_REGION_NONE : t->source.region,
    };

    gs_hash_add(h, field, sizeof(field));
    if (t->kind == GS_TASK_MOVE && t->runs > 0)
        gs_hash_add(h, p->run + t->first_run, t->runs * sizeof(*p->run));
    if (gs_task_moves_rows(t))
        gs_hash_add(h, p->row_bits + t->first_word, gs_task_row_words(t) * sizeof(*p->row_bits));
}

static void add_plan(gs_hash_stream *h, const gs_plan *p)
{
    for (uint32_t i = 0; i < p->tasks; i++)
        add_task(h, p, &p->task[i]);
    for (uint32_t i = 0; i < p->residents; i++) {
        const gs_resident *const r = &p->resident[i];
        const uint64_t field[] = {r->file, r->memory - GS_HOST, r->first, r->bytes, r->load,
                                  r->made_by, r->target, r->operand};
        gs_hash_add(h, field, sizeof(field));
    }
}

gs_status gs_session_plan_id(const gs_session *s, uint64_t *out)
{
    gs_hash_stream *const h = gs_hash_begin();
    const uint64_t devices = s->machine.devices;
    size_t bytes;
    char *const text = h == NULL ? NULL : gs_session_program_text(s->program, &bytes);

    if (text != NULL) {
        gs_hash_add(h, &devices, sizeof(devices));
        gs_hash_add(h, text, bytes);
        add_plan(h, s->plan);
        *out = gs_hash_so_far(h);
    }
    gs_hash_end(h);
    free(text);
    return text != NULL ? GS_OK : gs_fail(GS_ENOMEM, "no memory to tell the plan");
}

void gs_session_maker(const gs_session *s, char out[GS_MAKER_BYTES])
{
    char model[GS_PROCESSOR_BYTES];

    gs_processor_name(model);
    size_t used = (size_t)snprintf(out, GS_MAKER_BYTES, "gnnstream %s on %s", GS_VERSION, model);
    for (uint32_t k = s->machine.kinds; k-- > 0 && used < GS_MAKER_BYTES;) { /* processors first */
        const char *const name = gs_device_name(s->machine.device[s->machine.kind[k]]), *threads = strrchr(name, ',');
        const bool cut = threads != NULL && strstr(threads, " thread") != NULL; /* their number does not matter */
        used += (size_t)snprintf(out + used, GS_MAKER_BYTES - used, "%s%.*s%s", k + 1 < s->machine.kinds ? ", " : ": ",
                                 (int)(cut ? (size_t)(threads - name) : strlen(name)), name, cut ? ")" : "");
    }
}

/* -- seconds of a pass by stage and by what was busy, and who was waited for.
 *
 * Of each task the executor knows when it began and ended. Where a device stands still before a computation, the task
 * that this one waits for and that ended last is to blame for as long as it was under way; for the time before, what
 * that one waited for; and so on back to when the device stopped. Time in which nothing that it waits for was under way
 * is that of the queue which the task stood in: its link's. */

/* What works for a stage: columns of the table. */
typedef enum worker { VERTICES, EDGES, READS, WRITES, UPLOADS, FORWARDS, DOWNLOADS, LOADS, WORKERS } worker;

static const char *const worker_name[WORKERS] = {
    [VERTICES] = "vertex programs", [EDGES] = "edges",         [READS] = "reads",         [WRITES] = "writes",
    [UPLOADS] = "to devices",       [FORWARDS] = "between devices", [DOWNLOADS] = "to the host",
    [LOADS] = "disk to devices",
};

typedef struct row {
    uint32_t tasks;
    uint64_t bytes;
    double predicted, measured, floor, waited;
    double until; /* of lane `lane`, the last one that was looked at: when it was busy last */
    uint32_t lane;
} row;

typedef struct table {
    const gs_session *s;
    double flops, gather_bps;
    row *row; /* [stages][WORKERS] */
} table;

static worker worker_of(const gs_task *t)
{
    static const worker of_device[GS_DEVICE_LANES] = {[GS_LANE_UPLOAD] = UPLOADS, [GS_LANE_FORWARD] = FORWARDS,
                                                      [GS_LANE_DOWNLOAD] = DOWNLOADS, [GS_LANE_LOAD] = LOADS};
    const uint32_t lane = gs_task_lane(t);

    if (t->kind != GS_TASK_MOVE)
        return gs_task_goes_over_edges(t) ? EDGES : VERTICES;
    return lane == GS_LANE_READ    ? READS
           : lane == GS_LANE_WRITE ? WRITES
                                   : of_device[(lane - GS_LANE_DEVICES) % GS_DEVICE_LANES];
}

static row *row_of(const table *a, const gs_task *t) { return &a->row[t->stage * WORKERS + worker_of(t)]; }

/* Seconds of products at their rate, and of the rows that edges gather. */
static double floor_of(const table *a, const gs_work *w)
{
    const double products = w->kind == GS_WORK_VERTEX ? w->amount[2] + w->amount[3]
                            : w->kind == GS_WORK_EDGES ? w->amount[5]
                                                         : 0;
    const double gathered = w->kind == GS_WORK_SUM ? w->amount[2] : w->kind == GS_WORK_EDGES ? w->amount[3] : 0;
    return (a->flops > 0 ? products / a->flops : 0) +
           (a->gather_bps > 0 ? gathered * sizeof(float) / a->gather_bps : 0);
}

static void add_costs(const table *a, row *r, const gs_task *t)
{
    const gs_session *const s = a->s;
    const gs_session_machine *const m = &s->machine;
    const gs_cost *const host = gs_session_host_cost(s);
    gs_work w;

    if (t->kind == GS_TASK_MOVE) {
        const uint64_t bytes = gs_task_bytes(s->plan, t);
        gs_link_load load = {gs_task_way(t), bytes, gs_task_requests(t), gs_task_moves_rows(t) ? bytes : 0};
        r->bytes += load.bytes;
        r->predicted += gs_link_seconds(&m->wires, &m->cost, host, &load);
        load.requests = load.picked = 0;
        r->floor += gs_link_seconds(&m->wires, &m->cost, host, &load);
        return;
    }
    gs_task_work(&w, s->program, s->edges.set, gs_store_chunks(s->store)->parts, t);
    r->predicted += gs_cost_seconds(gs_cost_on(&m->cost, host, &m->wires, t->device), &w) /
                    gs_topology_speed(&m->wires, t->device);
    r->floor += floor_of(a, &w);
}

/* Time in which at least one of its lane's tasks was under way, as these come in the order in which they begin. */
static void add_span(row *r, const gs_task *t, double begin, double end)
{
    if (r->lane != gs_task_lane(t))
        r->until = 0;
    r->lane = gs_task_lane(t);
    r->measured += GS_MAX(end - GS_MAX(begin, r->until), 0);
    r->until = GS_MAX(r->until, end);
}

/* Of what a task waits for, that which ended last; GS_NONE: it waits for nothing of this pass. */
static uint32_t last_dep(const gs_session *s, uint32_t task, double *end)
{
    const gs_task *const t = &s->plan->task[task];
    uint32_t last = GS_NONE;

    *end = 0;
    for (uint32_t i = 0; i < t->deps; i++) {
        double began, ended;
        gs_exec_span(s->run.exec, s->plan->dep[t->first_dep + i], &began, &ended);
        if (ended > *end) {
            *end = ended;
            last = s->plan->dep[t->first_dep + i];
        }
    }
    return last;
}

/* The device stood still from `from` until the task began. */
static void blame(const table *a, uint32_t task, double from, double until)
{
    double end;

    for (uint32_t at = last_dep(a->s, task, &end); at != GS_NONE && until > from;) {
        row *const r = row_of(a, &a->s->plan->task[at]);
        double begin, ended;
        until = GS_MIN(until, end);
        if (until <= from)
            break;
        gs_exec_span(a->s->run.exec, at, &begin, &ended);
        const uint32_t before = last_dep(a->s, at, &end);
        const double since = GS_MAX(from, GS_MIN(end > 0 ? end : begin, until));
        r->waited += until - since; /* under way, and before that in its queue */
        until = since;
        at = before;
    }
}

/* gs_lanes: tasks of a pass by lane, in the order in which these take them. */
static void look_at_lanes(const table *a)
{
    const gs_plan_pass *const pass = &a->s->plan->pass[a->s->pass.train];
    const uint32_t lanes = gs_plan_lanes(a->s->plan);

    for (uint32_t lane = 0; lane < lanes; lane++) {
        const bool computes = lane >= GS_LANE_DEVICES && (lane - GS_LANE_DEVICES) % GS_DEVICE_LANES == GS_LANE_COMPUTE;
        double last = 0;
        for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
            const gs_task *const t = &a->s->plan->task[i];
            double begin, end;
            if (gs_task_lane(t) != lane || gs_exec_is_joined(a->s->run.exec, i))
                continue;
            gs_exec_span(a->s->run.exec, i, &begin, &end);
            row *const r = row_of(a, t);
            r->tasks++;
            add_costs(a, r, t);
            add_span(r, t, begin, end);
            if (computes && last > 0 && begin > last)
                blame(a, i, last, begin);
            last = GS_MAX(last, end);
        }
    }
}

gs_status gs_session_explain(const gs_session *s, double flops, double gather_bps, gs_why_fn why, void *context)
{
    const gs_program *const p = s->program;
    const gs_pass *const pass = &p->pass[s->pass.train];
    const table a = {s, flops, gather_bps, gs_calloc((size_t)p->stages * WORKERS, sizeof(row))};

    GS_NEED(a.row != NULL, "no memory for the seconds of %u stages", p->stages);
    look_at_lanes(&a);
    for (uint32_t k = pass->first_stage; k < pass->first_stage + pass->stages; k++)
        for (uint32_t w = 0; w < WORKERS; w++) {
            const row *const r = &a.row[k * WORKERS + w];
            const gs_why_row out = {p->stage[k].name, worker_name[w], r->tasks,    r->bytes,
                                    r->predicted,     r->measured,    r->floor,  r->waited};
            if (r->tasks > 0)
                why(context, &out);
        }
    gs_free(a.row);
    return GS_OK;
}
