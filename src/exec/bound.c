/* bound.c - a batch is bound to the plan: rows and edges of it, where they are, and how they come to a device. */
#include "exec/bound.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"
#include "exec/load.h"

/* ---- rows of several GPUs ------------------------------------------------- */

/* Rows that devices keep are picked from the memories of all of them. */

/* Of rows that the host sends: copied and picked before the next ones. */
#define SENT_BYTES (2 * GS_MIB)

static uint32_t sent_room(uint32_t most, uint64_t row_bytes)
{
    return (uint32_t)GS_MIN(most, GS_MAX(SENT_BYTES / row_bytes, 1));
}

uint64_t gs_exec_spread_bytes(uint64_t row_bytes, uint32_t most, uint32_t rows)
{
    return gs_align_up(most * sizeof(uint32_t), GS_BLOCK_BYTES) +
           gs_align_up(sent_room(most, row_bytes) * row_bytes, GS_BLOCK_BYTES) +
           gs_align_up(rows * row_bytes, GS_BLOCK_BYTES);
}

static uint64_t row_bytes_of(const gs_exec_config *c)
{
    const gs_array *const a = &c->program->array[c->spread.array];
    return a->width * gs_dtype_bytes(a->dtype);
}

static uint64_t kept_bytes(const gs_exec_config *c)
{
    return c->spread.on ? gs_exec_spread_bytes(row_bytes_of(c), c->interval_rows, c->spread.rows) : 0;
}

uint64_t gs_exec__spread_bytes(const gs_exec_config *c) { return kept_bytes(c) + c->draw_bytes; }

void gs_exec__lay_spread(gs_exec *e, const gs_exec_config *c, uint8_t *memory)
{
    gs_exec_spread_memory *const m = &e->spread;
    m->draw = memory + kept_bytes(c);
    if (!c->spread.on)
        return;
    m->row_bytes = row_bytes_of(c);
    m->room = sent_room(c->interval_rows, m->row_bytes);
    m->place = memory;
    m->sent = m->place + gs_align_up(c->interval_rows * sizeof(uint32_t), GS_BLOCK_BYTES);
    m->kept = m->sent + gs_align_up(m->room * m->row_bytes, GS_BLOCK_BYTES);
}

/* A graph on its way to a slot of the device. */
typedef struct sending {
    const gs_exec *e;
    const gs_exec_graph *graph;
    gs_exec_sent *counts;
} sending;

static gs_device *device_of(const gs_exec *e) { return e->on[0].device; }

/* Begins a copy to the device, which is counted. */
static gs_status send_bytes(const sending *s, void *to, const void *from, uint64_t bytes)
{
    s->counts->copied_in_bytes += bytes;
    return bytes == 0 ? GS_OK : gs_device_transfer(device_of(s->e), GS_DEVICE_FROM_HOST, NULL, to, from, bytes);
}

static gs_status wait_sent(const gs_exec *e) { return gs_exec__wait_copied(device_of(e), GS_DEVICE_FROM_HOST); }

const void *gs_exec_kept_memory(const gs_exec *e) { return e->spread.kept; }

gs_status gs_exec_keep_rows(gs_exec *e, uint32_t array, uint32_t first, uint32_t rows)
{
    const gs_exec_spread_memory *const m = &e->spread;
    const gs_status st = gs_device_transfer(device_of(e), GS_DEVICE_FROM_HOST, NULL, m->kept + first * m->row_bytes,
                                            gs_exec_rows(e, array), rows * m->row_bytes);
    return st != GS_OK ? st : wait_sent(e);
}

/* As many rows of the graph from `row` on as the buffer has room for those among them that the host sends, which are
 * *sent. */
static uint32_t next_rows(const sending *t, uint32_t row, uint32_t *sent)
{
    const gs_exec_spread *const s = t->graph->spread;
    for (*sent = 0; row < t->graph->binding.vertices; row++) {
        if (s->place[row] < s->rows_kept)
            continue;
        if (*sent == t->e->spread.room)
            break;
        ++*sent;
    }
    return row;
}

/* Where a slot has an array that is brought. */
static uint8_t *rows_in_slot(const gs_exec *e, uint32_t slot, const gs_resident *r)
{
    const gs_exec_device *const x = &e->on[0];
    return slot > 0     ? gs_exec__second_at(e, x, r->offset)
           : e->outside ? gs_exec__there_at(e, x, r->offset)
                        : x->resident + r->offset;
}

static uint8_t *slot_rows(const sending *t, const gs_resident *r) { return rows_in_slot(t->e, t->graph->slot, r); }

/* The graph's rows come to where a pass finds them. Each launch is one of the copies, so it has what was sent before
 * it, and what is sent next does not come over what it reads. */
static gs_status send_spread(const sending *t)
{
    const gs_exec_spread *const s = t->graph->spread;
    const gs_exec_spread_memory *const m = &t->e->spread;

    if (s == NULL)
        return GS_OK;
    const uint32_t rows = t->graph->binding.vertices;
    const uint8_t *const host = gs_exec_staged_rows(t->e, s->array, t->graph->slot);
    uint8_t *const to = slot_rows(t, gs_exec__resident_of(t->e, s->array));
    gs_pick_launch l = {.sent = m->sent, .devices = s->devices, .rows_kept = s->rows_kept,
                        .row_bytes = (uint32_t)m->row_bytes};
    for (uint32_t k = 0; k < s->devices; k++)
        l.kept[k] = s->kept[k];
    t->counts->forwarded_bytes += s->from_peers * m->row_bytes;
    GS_TRY(send_bytes(t, m->place, s->place, rows * sizeof(*s->place)));
    for (uint32_t row = 0, sent = 0, end; row < rows; row = end, l.first_sent += sent) {
        end = next_rows(t, row, &sent);
        l.place = (const uint32_t *)(const void *)m->place + row;
        l.to = to + row * m->row_bytes;
        l.rows = end - row;
        GS_TRY(send_bytes(t, m->sent, host + l.first_sent * m->row_bytes, sent * m->row_bytes));
        GS_TRY(gs_device_pick_rows(device_of(t->e), &l));
    }
    return GS_OK;
}

/* ---- sent ----------------------------------------------------------------- */

/* A graph is sent to a device with memory of its own, and its edges are found there; results are copied back. */

static uint64_t graph_bytes(const gs_exec *e, const gs_exec_graph *graph, const gs_resident *r)
{
    const gs_array *const a = &e->program->array[r->file];
    return GS_MIN((uint64_t)graph->binding.vertices * a->width * gs_dtype_bytes(a->dtype), r->bytes);
}

/* Are these rows of an array that a bound graph brings, or a result of the run? */
static bool crosses(const gs_program *p, const gs_resident *r)
{
    const gs_array *const a = r->file < p->arrays ? &p->array[r->file] : NULL;
    return a != NULL && !a->outside && (r->load || a->lasting || a->result);
}

/* Is it an array of rows that graphs bring? */
static bool is_brought(const gs_program *p, const gs_resident *r)
{
    return crosses(p, r) && !p->array[r->file].result;
}

/* Sends the rows that the graph has of each array that no stage makes, but for the array of which devices keep rows. */
static gs_status send_rows(const sending *t)
{
    const gs_exec *const e = t->e;

    for (uint32_t i = 0; i < e->plan->residents; i++) {
        const gs_resident *const r = &e->plan->resident[i];
        if (!is_brought(e->program, r) || (t->graph->spread != NULL && r->file == t->graph->spread->array))
            continue;
        GS_TRY(send_bytes(t, slot_rows(t, r), gs_exec_staged_rows(e, r->file, t->graph->slot),
                          graph_bytes(e, t->graph, r)));
    }
    return GS_OK;
}

static gs_status check_pieces(const gs_exec *e, const gs_exec_graph *graph, uint64_t *bytes)
{
    *bytes = 0;
    for (uint32_t i = 0; i < graph->pieces; i++) {
        if (graph->piece[i].bytes > e->piece_bytes - *bytes)
            return gs_fail(GS_EINVAL, "a graph in memory has more bytes of edges than the run was opened for");
        *bytes += gs_align_up(graph->piece[i].bytes, GS_BLOCK_BYTES);
    }
    return GS_OK;
}

/* With two slots, where the host has a graph's pieces, each from a whole block on. */
static uint8_t *staged_pieces(const gs_exec *e, uint32_t slot)
{
    return e->region[GS_REGION_RING] + slot * e->piece_bytes;
}

gs_status gs_exec_stage(gs_exec *e, const gs_exec_graph *graph)
{
    uint64_t at;

    GS_TRY(check_pieces(e, graph, &at));
    at = 0;
    for (uint32_t i = 0; i < graph->pieces; i++) {
        memcpy(staged_pieces(e, graph->slot) + at, graph->piece[i].memory, graph->piece[i].bytes);
        at += gs_align_up(graph->piece[i].bytes, GS_BLOCK_BYTES);
    }
    return GS_OK;
}

/* One behind the other, or in one copy where they were staged. */
static gs_status send_pieces(const sending *t)
{
    uint8_t *const to = t->e->on[0].pieces[t->graph->slot];
    uint64_t bytes, at = 0;

    GS_TRY(check_pieces(t->e, t->graph, &bytes));
    if (t->e->slots > 1)
        return send_bytes(t, to, staged_pieces(t->e, t->graph->slot), bytes);
    for (uint32_t i = 0; i < t->graph->pieces; i++) {
        GS_TRY(send_bytes(t, to + at, t->graph->piece[i].memory, t->graph->piece[i].bytes));
        at += gs_align_up(t->graph->piece[i].bytes, GS_BLOCK_BYTES);
    }
    return GS_OK;
}

/* Until the wire has carried what was sent from `began` on. */
static void wait_for_wire(gs_exec_wire *w, uint64_t bytes, double began)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    const double until = w->busy = GS_MAX(w->busy, began) + (double)bytes / w->bps;
    pthread_mutex_unlock(&w->lock);
    gs_sleep(GS_MAX(until - gs_now(), 0));
}

/* Of a graph that was made there. */
static gs_status pick_all(gs_exec *e, const gs_exec_graph *graph)
{
    for (uint32_t k = 0; k < graph->picks; k++)
        GS_TRY(gs_device_pick_rows(device_of(e), &graph->pick[k]));
    return wait_sent(e);
}

void *gs_exec_slot_pieces(const gs_exec *e, uint32_t slot) { return e->on[0].pieces[slot]; }

void *gs_exec_slot_rows(const gs_exec *e, uint32_t slot, uint32_t array)
{
    const gs_resident *const r = gs_exec__resident_of(e, array);
    return r == NULL ? NULL : rows_in_slot(e, slot, r);
}

void *gs_exec_draw_memory(const gs_exec *e) { return e->spread.draw; }

gs_status gs_exec_put(gs_exec *e, const void *to, const void *from, uint64_t bytes)
{
    GS_TRY(gs_device_transfer(device_of(e), GS_DEVICE_FROM_HOST, NULL, (void *)(uintptr_t)to, from, bytes));
    return wait_sent(e);
}

gs_status gs_exec_send(gs_exec *e, const gs_exec_graph *graph, gs_exec_sent *out)
{
    const sending t = {.e = e, .graph = graph, .counts = out};
    const double began = gs_now();
    gs_status st;

    *out = (gs_exec_sent){0};
    if (e->on[0].resident == NULL)
        return GS_OK;
    if (graph->picks > 0)
        return pick_all(e, graph);
    if ((st = send_pieces(&t)) != GS_OK || (st = send_rows(&t)) != GS_OK || (st = send_spread(&t)) != GS_OK)
        return st;
    wait_for_wire(e->wire, out->copied_in_bytes, began);
    return wait_sent(e);
}

gs_status gs_exec_send_array(gs_exec *e, uint32_t array, uint64_t *sent)
{
    gs_exec_sent counts = {0};
    const sending t = {.e = e, .graph = e->graph, .counts = &counts};

    if (e->on[0].resident == NULL)
        return GS_OK;
    const gs_resident *const r = gs_exec__resident_of(e, array);
    const gs_status st = send_bytes(&t, slot_rows(&t, r), gs_exec_rows(e, array), graph_bytes(e, e->graph, r));
    *sent += counts.copied_in_bytes;
    return st != GS_OK ? st : wait_sent(e);
}

/* Bytes of those of the first `residents` that are such, one array behind the other. */
static uint64_t bytes_of(const gs_program *p, const gs_plan *plan, uint32_t residents,
                         bool (*is)(const gs_program *p, const gs_resident *r))
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < residents; i++)
        bytes += is(p, &plan->resident[i]) ? gs_align_up(plan->resident[i].bytes, GS_BLOCK_BYTES) : 0;
    return bytes;
}

/* Rows of the second slot lie one array behind the other, behind its pieces. */
uint64_t gs_exec_slot_bytes(const gs_program *program, const gs_plan *plan, uint64_t piece_bytes)
{
    return gs_align_up(piece_bytes, GS_BLOCK_BYTES) + bytes_of(program, plan, plan->residents, is_brought);
}

void *gs_exec__second_at(const gs_exec *e, const gs_exec_device *x, uint64_t offset)
{
    uint64_t at = 0;

    for (uint32_t i = 0; i < e->plan->residents; i++) {
        const gs_resident *const r = &e->plan->resident[i];
        if (!is_brought(e->program, r))
            continue;
        if (offset >= r->offset && offset - r->offset < r->bytes)
            return x->second + at + (offset - r->offset);
        at += gs_align_up(r->bytes, GS_BLOCK_BYTES);
    }
    return x->resident + offset;
}

gs_status gs_exec__take_results(gs_exec *e)
{
    gs_device *const d = e->on[0].device;

    if (e->graph == NULL || e->on[0].resident == NULL)
        return GS_OK;
    for (uint32_t i = 0; i < e->plan->residents; i++) {
        const gs_resident *const r = &e->plan->resident[i];
        if (!crosses(e->program, r) || !e->program->array[r->file].result)
            continue;
        e->stats.copied_out_bytes += graph_bytes(e, e->graph, r);
        GS_TRY(gs_device_transfer(d, GS_DEVICE_TO_HOST, NULL, gs_exec_rows(e, r->file), e->on[0].resident + r->offset,
                                  graph_bytes(e, e->graph, r)));
    }
    return gs_exec__wait_copied(d, GS_DEVICE_TO_HOST);
}

/* NULL stays NULL. */
static const void *brought(const gs_exec *e, const gs_exec_device *x, const void *p)
{
    uint64_t at = 0;

    if (e->graph->picks > 0 || e->graph->there)
        return p; /* made there, or brought */
    for (uint32_t i = 0; i < e->graph->pieces && p != NULL; i++) {
        const gs_exec_piece *const piece = &e->graph->piece[i];
        const uintptr_t from = (uintptr_t)piece->memory, to = (uintptr_t)p;
        if (to >= from && to < from + piece->bytes)
            return x->pieces[e->slot] + at + (to - from);
        at += gs_align_up(piece->bytes, GS_BLOCK_BYTES);
    }
    return NULL;
}

/* Rows behind those that have a factor are not of the loss. */
const float *gs_exec__loss_factor(const gs_exec *e, const gs_exec_device *x, const gs_task *t)
{
    const float *const factor = e->args->loss_factor;
    const float *const there = factor == NULL || x->resident == NULL ? factor : brought(e, x, factor);
    return there == NULL ? NULL : there + t->first_row;
}

void gs_exec__brought_edges(const gs_exec *e, const gs_exec_device *x, gs_edges *edges)
{
    if (x->resident == NULL)
        return;
    edges->end = edges->targets == 0 ? 0 : edges->end;
    if (edges->end == 0)
        edges->targets = 0;
    edges->target = brought(e, x, edges->target);
    edges->start = brought(e, x, edges->start);
    edges->index = brought(e, x, edges->index);
    edges->weight = brought(e, x, edges->weight);
    edges->type = brought(e, x, edges->type);
    edges->feature = brought(e, x, edges->feature);
}

/* ---- bound ---------------------------------------------------------------- */

/* A plan of many rows runs on a graph of fewer, which is in memory: each task is cut to the rows that are
 * there.
 */

#define CACHE_LINE 64u
#define ROWS_AHEAD 4u /* of those that are picked, asked for before they are copied */

gs_status gs_exec__check_bound(const gs_exec *e)
{
    if (!e->bound)
        return GS_OK;
    if (e->chunks.parts != 1)
        return gs_fail(GS_EINVAL, "a graph in memory is bound to one interval");
    for (uint32_t i = 0; i < e->plan->tasks; i++)
        if (e->plan->task[i].kind == GS_TASK_MOVE)
            return gs_fail(GS_EINVAL, "a graph in memory is bound to a plan that keeps everything there");
    return GS_OK;
}

void gs_exec_bind(gs_exec *e, const gs_exec_graph *graph)
{
    e->graph = graph;
    e->slot = graph->slot;
    e->chunks.vertices = graph->binding.vertices;
}

/* ---- where rows are ------------------------------------------------------ */

/* Beside a device with memory of its own the host has rows that cross alone, one array behind the other: bytes of the
 * first `residents`. */
static uint64_t crossing_bytes(const gs_program *p, const gs_plan *plan, uint32_t residents)
{
    return bytes_of(p, plan, residents, crosses);
}

uint64_t gs_exec_bound_bytes(const gs_program *program, const gs_plan *plan)
{
    return crossing_bytes(program, plan, plan->residents);
}

void *gs_exec_rows(const gs_exec *e, uint32_t array)
{
    const gs_resident *const r = gs_exec__resident_of(e, array);
    uint8_t *const memory = e->region[GS_REGION_RESIDENT];

    if (r == NULL || e->on[0].resident == NULL)
        return r == NULL ? NULL : memory + r->offset;
    return crosses(e->program, r)
               ? memory + crossing_bytes(e->program, e->plan, (uint32_t)(r - e->plan->resident))
               : NULL;
}

void *gs_exec_staged_rows(const gs_exec *e, uint32_t array, uint32_t slot)
{
    uint8_t *const rows = gs_exec_rows(e, array);
    return rows == NULL ? NULL : rows + slot * crossing_bytes(e->program, e->plan, e->plan->residents);
}

void *gs_exec__outside_at(const gs_exec *e, uint64_t offset)
{
    for (uint32_t i = 0; i < e->graph->outsides; i++) {
        const gs_exec_outside *const o = &e->graph->outside[i];
        const gs_resident *const r = gs_exec__resident_of(e, o->array);
        if (o->rows != NULL && r != NULL && offset >= r->offset && offset - r->offset < r->bytes)
            return (uint8_t *)o->rows + (offset - r->offset);
    }
    return e->region[GS_REGION_RESIDENT] + offset;
}

/* Whole blocks of a place that a device does without, so that what lies behind stays as aligned as it was. */
static uint64_t hole_of(const gs_exec *e, const gs_resident *r)
{
    const uint64_t first = gs_align_up(r->offset, GS_BLOCK_BYTES);
    const uint64_t end = gs_align_down(r->offset + r->bytes, GS_BLOCK_BYTES);
    const bool outside = r->file < e->program->arrays && e->program->array[r->file].outside;
    return outside && end > first ? end - first : 0;
}

uint64_t gs_exec__left_out(const gs_exec *e)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; e->outside && i < e->plan->residents; i++)
        bytes += hole_of(e, &e->plan->resident[i]);
    return bytes;
}

void *gs_exec__there_at(const gs_exec *e, const gs_exec_device *x, uint64_t offset)
{
    uint64_t left_out = 0;

    for (uint32_t i = 0; i < e->plan->residents; i++) {
        const gs_resident *const r = &e->plan->resident[i];
        const bool within = offset >= r->offset && offset - r->offset < r->bytes;
        for (uint32_t k = 0; within && e->graph != NULL && k < e->graph->outsides; k++)
            if (e->graph->outside[k].array == r->file && e->graph->outside[k].rows != NULL)
                return (uint8_t *)e->graph->outside[k].rows + (offset - r->offset);
        left_out += r->offset < offset ? hole_of(e, r) : 0;
    }
    return x->resident + (offset - left_out);
}

void gs_exec_forget(gs_exec *e)
{
    if (e->on[0].resident != NULL) /* the host's memory is pinned for the device */
        return;
    gs_drop_pages(e->region[GS_REGION_RESIDENT], e->region_bytes[GS_REGION_RESIDENT]);
    gs_drop_pages(e->on[0].arena, e->on[0].arena_bytes);
}

const void *gs_exec_kept_rows(const gs_exec *e, uint32_t array)
{
    const gs_array *const a = &e->program->array[array];
    const gs_resident *const r = gs_exec__resident_of(e, array);
    const bool all = r != NULL && r->load && r->first == 0 && r->offset < e->plan->lasting_bytes &&
                     r->bytes >= e->chunks.vertices * a->width * gs_dtype_bytes(a->dtype);
    return a->store_id >= 0 && all ? e->region[GS_REGION_RESIDENT] + r->offset : NULL;
}

gs_status gs_exec__zero_behind(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    const uint32_t regs = e->program->stage[t->stage].regs;
    uint64_t begin, end;

    for (uint32_t r = 0; r < regs; r++)
        if (gs_task_zeroes(&begin, &end, t, &e->graph->binding, e->program, r)) {
            const gs_place at = gs_place_behind(e->plan->reg[t->first_reg + r], begin);
            GS_TRY(gs_device_zero(x->device, gs_exec__at(e, x, at), end - begin));
        }
    return GS_OK;
}

void gs_exec__load_named(const gs_exec *e, const gs_exec_device *x, const gs_task *t)
{
    const gs_stage *const s = &e->program->stage[t->stage];
    const gs_exec_named *const n = e->graph->named;
    const gs_array *const a = &e->program->array[n->array];
    const uint64_t bytes = a->width * gs_dtype_bytes(a->dtype);
    bool loads = false;

    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind == GS_REG_LOAD && s->reg[r].array == n->array) {
            x->reg[r] = n->tile;
            loads = true;
        }
    const uint32_t rows = loads ? t->rows : 0, *const row = n->row + t->first_row;
    const uint8_t *const all = n->all;
#pragma omp parallel for schedule(static) if (rows * bytes > 65536)
    for (uint32_t i = 0; i < rows; i++) {
        const uint8_t *const soon = all + row[GS_MIN(i + ROWS_AHEAD, rows - 1)] * bytes;
        for (uint64_t k = 0; k < bytes; k += CACHE_LINE)
            __builtin_prefetch(soon + k);
        memcpy((uint8_t *)n->tile + i * bytes, all + row[i] * bytes, bytes);
    }
}
