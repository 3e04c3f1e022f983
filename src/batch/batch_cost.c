/* batch_cost.c - what a batch costs: the time of the plan's tasks, each cut to the batch, the pages that these touch,
 * and what batches of an epoch took.
 */
#include <math.h>

#include "schedule/simulate.h"
#include "batch/batches_internal.h"

/* ---- time ----------------------------------------------------------------- */

/* Edges of a stage and the rows at their ends, as a chunk has them. */
static gs_chunk chunk_of(const gs_edges *v, uint32_t operands)
{
    const uint64_t edges = v->targets == 0 ? 0 : v->start[v->targets] - v->start[0];
    return (gs_chunk){.edges = edges, .targets = v->targets, .operands = (uint32_t)GS_MIN(operands, edges)};
}

/* False: nothing of the task is left. */
static bool task_work(gs_work *w, const gs_session *s, const gs_batch_edges *e, const gs_task *task)
{
    const uint32_t file = task->file - s->program->arrays;
    gs_task t = *task;
    gs_edge_set set[2] = {{0}, {0}};
    gs_chunk chunk;

    if (!gs_task_bind(&t, &e->binding, s->program))
        return false;
    if (gs_task_goes_over_edges(&t)) {
        chunk = chunk_of(&e->edges[t.stage], e->binding.vertices);
        if (chunk.edges == 0)
            return false;
        set[file] = (gs_edge_set){.chunk = &chunk};
    }
    const uint32_t rest = t.kind == GS_TASK_VERTEX ? t.rows - gs_task_whole_rows(&t, &e->binding) : 0;
    t.rows -= rest;
    gs_task_work(w, s->program, set, 1, &t);
    if (rest > 0)
        gs_vertex_work(w, s->program, &e->needs.rest[t.stage], rest);
    return true;
}

double gs_batch_picking(const gs_session *s, uint64_t picked)
{
    const gs_work picking = {.kind = GS_WORK_MEMORY, .amount = {1, 2 * (double)picked}};
    return picked > 0 ? gs_cost_seconds(&s->machine.cost, &picking) : 0;
}

void gs_batch_predict(gs_predicted *out, const gs_session *s, const gs_batch_edges *e, uint64_t picked,
                      uint64_t copied, double bps)
{
    const double speed = bps > 0 ? bps : gs_cost_link(&s->machine.cost, GS_LINK_TO_DEVICE).bps;
    gs_predicted x = {.stall_seconds = copied > 0 && speed > 0 ? (double)copied / speed : 0};

    x.vertex_seconds = gs_batch_picking(s, picked);
    for (uint32_t i = 0; i < s->plan->tasks; i++) { /* all are of batches */
        gs_work w;
        if (!task_work(&w, s, e, &s->plan->task[i]))
            continue;
        *(w.kind == GS_WORK_SUM || w.kind == GS_WORK_EDGES ? &x.edge_seconds : &x.vertex_seconds) +=
            gs_cost_seconds(&s->machine.cost, &w);
    }
    x.seconds = x.edge_seconds + x.vertex_seconds + x.stall_seconds;
    snprintf(x.bottleneck, sizeof(x.bottleneck), "%s", x.stall_seconds > x.seconds / 2  ? "copies to the device"
                                                       : x.edge_seconds > x.seconds / 2 ? "edge sums"
                                                                                        : "vertex programs");
    *out = x;
}

void gs_batch_observe(gs_fit *fit, const gs_session *s, const gs_batch_edges *e)
{
    for (uint32_t i = 0; i < s->plan->tasks; i++) { /* all are of batches */
        double begin, end;
        gs_work w;
        if (gs_exec_is_joined(s->run.exec, i) || !task_work(&w, s, e, &s->plan->task[i]))
            continue;
        gs_exec_span(s->run.exec, i, &begin, &end);
        gs_fit_add(fit, &w, end - begin, gs_cost_seconds(&s->machine.cost, &w), 1);
    }
}

void gs_batch_amounts(gs_pass_report *out, const gs_session *s, const gs_batch_edges *e)
{
    const double most = (double)out->edges;

    out->dense_flops = out->edge_flops = 0;
    out->edges = out->rows = 0;
    for (uint32_t k = 0; k < s->program->stages; k++) {
        const uint64_t edges = s->program->stage[k].sums == 0 ? 0 : chunk_of(&e->edges[k], 0).edges;
        double dense, edge;
        gs_stage_flops(s->program, &s->program->stage[k], e->whole[k], edges, &dense, &edge);
        out->dense_flops += dense;
        out->edge_flops += edge;
        if (e->rows[k] > e->whole[k]) {
            gs_stage_flops(s->program, &e->needs.rest[k], e->rows[k] - e->whole[k], 0, &dense, &edge);
            out->dense_flops += dense;
        }
        out->edges += edges;
        out->rows += e->rows[k];
    }
    if (most > 0)
        out->edge_bytes = (uint64_t)((double)out->edge_bytes * ((double)out->edges / most));
}

/* ---- pages of memory ------------------------------------------------------ */

/* The kernel may map so much where one byte is touched. */
#define PAGE (2 * GS_MIB)

/* A bit for each page of the region that some task touches. */
typedef struct touched {
    const gs_program *p;
    const gs_plan *plan;
    const gs_binding *binding;
    uint64_t *bits;
} touched;

/* Bytes [begin, end) from `at` on. */
static void mark(const touched *t, gs_place at, uint64_t begin, uint64_t end)
{
    if (at.region != GS_REGION_RESIDENT)
        return;
    for (uint64_t k = (at.offset + begin) / PAGE; begin < end && k < gs_div_up(at.offset + end, PAGE); k++)
        t->bits[k / 64] |= 1ull << (k % 64);
}

/* Registers of the rows that the stage runs for. */
static void mark_vertex(const touched *t, const gs_task *k, uint32_t left)
{
    const gs_stage *const s = &t->p->stage[k->stage];

    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind != GS_REG_LOAD || s->reg[r].array != left)
            mark(t, t->plan->reg[k->first_reg + r], 0, k->rows * s->reg[r].width * gs_dtype_bytes(s->reg[r].dtype));
}

static void mark_sum(const touched *t, const gs_task *k)
{
    const gs_stage *const s = &t->p->stage[k->stage];
    const uint64_t bytes = (uint64_t)k->rows * s->reg[s->sum[k->sum].reg].width * sizeof(float);
    for (int i = 0; i < GS_SUM_PLACES; i++)
        mark(t, t->plan->reg[k->first_reg + (uint32_t)i], 0, bytes);
}

/* Sums that begin in the task which goes over their edges. */
static void mark_whole(const touched *t, const gs_task *k)
{
    const gs_stage *const s = &t->p->stage[k->stage];
    gs_task one = *k;
    for (one.sum = 0, one.first_reg += s->edge_regs; one.sum < s->sums; one.sum++, one.first_reg += GS_SUM_PLACES)
        if (!gs_stage_sums_rows(s, one.sum))
            mark_sum(t, &one);
}

static void mark_task(const touched *t, const gs_task *k, uint32_t left)
{
    gs_task there = *k;
    uint64_t begin, end;

    for (uint32_t r = 0; r < t->p->stage[k->stage].regs; r++)
        if (gs_task_zeroes(&begin, &end, k, t->binding, t->p, r))
            mark(t, t->plan->reg[k->first_reg + r], begin, end);
    if (!gs_task_bind(&there, t->binding, t->p))
        return;
    if (k->kind == GS_TASK_VERTEX)
        mark_vertex(t, &there, left);
    else if (k->kind == GS_TASK_BEGIN || k->kind == GS_TASK_FINISH)
        mark_sum(t, &there);
    else if (k->kind == GS_TASK_EDGES && k->whole != 0)
        mark_whole(t, &there);
    else if (k->kind == GS_TASK_ZERO || k->kind == GS_TASK_COPY)
        mark(t, there.place, 0, there.bytes); /* sums are touched where they begin */
}

/* Rows that are there before the pass: of the store, or learned. */
static bool is_brought(const gs_program *p, const gs_resident *r)
{
    return r->load || (r->file < p->arrays && p->array[r->file].lasting);
}

gs_status gs_batch_memory(uint64_t *out, const gs_program *p, const gs_plan *plan, const gs_binding *most,
                          uint32_t left)
{
    const uint64_t all = plan->region_bytes[GS_REGION_RESIDENT], words = all / PAGE / 64 + 2;
    const touched t = {p, plan, most, gs_calloc(words, sizeof(*t.bits))};
    uint64_t pages = 0;

    GS_NEED(t.bits != NULL, "out of memory for the pages of a plan");
    if (gs_program_has_sequences(p)) /* states of all rows */
        mark(&t, gs_place_on_host(GS_REGION_RESIDENT, 0), 0, all);
    for (uint32_t i = 0; i < plan->residents; i++)
        if (is_brought(p, &plan->resident[i]) && plan->resident[i].file != left)
            mark(&t, gs_place_on_host(GS_REGION_RESIDENT, plan->resident[i].offset), 0, plan->resident[i].bytes);
    for (uint32_t i = 0; i < plan->tasks; i++)
        mark_task(&t, &plan->task[i], left);
    for (uint64_t k = 0; k < words; k++)
        pages += (uint64_t)__builtin_popcountll(t.bits[k]);
    gs_free(t.bits);
    *out = GS_MIN(pages * PAGE, all);
    return GS_OK;
}

/* ---- what they took ------------------------------------------------------- */

/* Memory is for the last spans of an epoch. */
#define MOST_SPANS 65536u
#define OF_A_DEVICE 3u /* tracks: its computations, what is picked for it, copies */

static uint32_t spans_of(uint32_t batches)
{
    return (uint32_t)GS_MIN((uint64_t)batches * GS_BATCH_TRACED_PARTS, MOST_SPANS);
}

uint64_t gs_batch_trace_bytes(uint32_t batches) { return spans_of(batches) * sizeof(gs_batch_span); }

gs_status gs_batch_trace_open(gs_batch_trace *t, uint32_t batches)
{
    *t = (gs_batch_trace){.most = spans_of(batches)};
    t->span = gs_malloc_array(t->most, sizeof(*t->span));
    return t->span != NULL ? GS_OK : gs_fail(GS_ENOMEM, "out of memory for the trace");
}

void gs_batch_trace_close(gs_batch_trace *t)
{
    gs_free(t->span);
    *t = (gs_batch_trace){0};
}

void gs_batch_trace_add(gs_batch_trace *t, gs_batch_span span)
{
    if (t->span != NULL)
        t->span[t->spans++ % t->most] = span;
}

void gs_batch_trace_add_pass(gs_batch_trace *t, const gs_batch_pass *p)
{
    const double at[][2] = {{p->began, p->picked}, {p->sending, p->sent}, {p->stats.entered, p->stats.computed},
                            {p->stats.computed, p->ended}};
    const bool copied = p->stats.copied_in_bytes + p->stats.copied_out_bytes > 0;

    for (uint16_t k = GS_BATCH_PICK; k <= GS_BATCH_RETURN && p->batch != NULL; k++) {
        if (k != GS_BATCH_PICK && k != GS_BATCH_COMPUTE && !copied)
            continue;
        const double *const span = at[k - GS_BATCH_PICK];
        gs_batch_trace_add(t, (gs_batch_span){.begin = span[0], .end = span[1], .batch = p->batch->number,
                                              .vertices = p->batch->vertices, .edges = p->batch->edges, .part = k,
                                              .device = (uint16_t)p->device});
    }
}

/* ---- written ------------------------------------------------------------- */

static uint32_t track_of(const gs_batch_span *s)
{
    static const uint32_t of[] = {[GS_BATCH_DRAW] = 0,    [GS_BATCH_STEP] = 1, [GS_BATCH_COMPUTE] = 2,
                                  [GS_BATCH_PICK] = 3, [GS_BATCH_SEND] = 4, [GS_BATCH_RETURN] = 2};
    return 1 + of[s->part] + (s->part < GS_BATCH_PICK ? 0 : OF_A_DEVICE * s->device);
}

static void write_tracks(FILE *out, uint32_t devices)
{
    static const char *const of[OF_A_DEVICE] = {"device", "rows of device", "copies of device"};

    gs_trace_track(out, 1, "drawing");
    gs_trace_track(out, 2, "optimiser");
    for (uint32_t k = 0; k < devices * OF_A_DEVICE; k++) {
        char name[32];
        snprintf(name, sizeof(name), "%s %u", of[k % OF_A_DEVICE], k / OF_A_DEVICE);
        gs_trace_track(out, 3 + k, name);
    }
}

static void write_span(const gs_batch_span *s, double origin, FILE *out)
{
    static const char *const name[] = {"draw", "step", "pick", "send", "compute", "return"};

    fprintf(out,
            ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%.1f,\"dur\":%.1f,\"name\":\"%s\",\"args\":{\"batch\":%u",
            track_of(s), (s->begin - origin) * 1e6, (s->end - s->begin) * 1e6, name[s->part], s->batch);
    if (s->vertices > 0)
        fprintf(out, ",\"vertices\":%u,\"edges\":%llu", s->vertices, (unsigned long long)s->edges);
    fputs("}}", out);
}

gs_status gs_batch_trace_write(const gs_batch_trace *t, uint32_t devices, const char *other, FILE *out,
                               const char *path)
{
    const uint64_t first = t->spans > t->most ? t->spans - t->most : 0;
    double origin = INFINITY;

    for (uint64_t k = first; k < t->spans; k++)
        origin = GS_MIN(origin, t->span[k % t->most].begin);
    gs_trace_begin(out, other, "batches");
    write_tracks(out, devices);
    for (uint64_t k = first; k < t->spans; k++)
        write_span(&t->span[k % t->most], origin, out);
    return gs_trace_end(out, path);
}
