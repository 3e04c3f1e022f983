/* batch_draw.c - a device that has the in-edges of all vertices, and all rows of what the program loads, draws batches
 * itself: their targets alone come from the host, and how many rows and edges there are goes back. */
#include <string.h>

#include "batch/batches_internal.h"

/* ---- may it? -------------------------------------------------------------- */

/* Arrays of which the device has all rows. */
static bool is_picked(int id)
{
    return id == GS_ARRAY_FEATURES || id == GS_ARRAY_LABELS || id == GS_ARRAY_INPUT_ID || id == GS_ARRAY_VERTEX_TYPE;
}

/* Can it make all rows that the program loads? */
static bool makes_rows(const gs_batches *b)
{
    const gs_program *const p = b->session->program;
    uint32_t picked = 0;

    for (uint32_t a = 0; a < p->arrays; a++) {
        const int id = p->array[a].store_id;
        if (id < 0 || id == GS_ARRAY_SPLIT || id == GS_ARRAY_IN_DEGREE || id == GS_ARRAY_LOOPS)
            continue;
        if (!is_picked(id) || gs_store_array(b->session->store, (gs_array_id)id)->row_bytes % 2 != 0)
            return false;
        picked++;
    }
    return picked <= GS_BATCH_DRAW_PICKS;
}

static bool can_draw(const gs_batches *b, const gs_plain_draws *law)
{
    const gs_batch_limits *const l = &b->shape.limits;
    bool can = b->device_bytes > 0 && b->kept.devices == 1 && b->kept.rows == law->in->vertices &&
               b->session->program->tables == 0 && b->session->pairs.upstream == GS_NONE && b->fit == NULL &&
               l->edges < 1u << 31 && l->vertices < (1u << 31) / GS_DEVICE_DRAW_FANOUT;

    for (uint32_t h = 0; h < law->hops; h++)
        can = can && law->fanout[h] > 0 && law->fanout[h] <= GS_DEVICE_DRAW_FANOUT;
    return can && makes_rows(b);
}

/* ---- memory of the device ------------------------------------------------- */

static uint64_t take(uint64_t *bytes, uint64_t more)
{
    const uint64_t at = *bytes;
    *bytes = gs_align_up(at + more, GS_BLOCK_BYTES);
    return at;
}

/* Where its in-edges, its rows of batches and what drawing needs lie, from `memory` on; bytes of all. */
static uint64_t lay_out(const gs_batches *b, gs_draw_launch *l, const uint8_t *table[GS_ARRAY_COUNT], uint8_t *memory)
{
    const gs_adjacency *const in = b->draw.law.in;
    const gs_program *const p = b->session->program;
    const uint32_t rows = b->shape.limits.vertices;
    uint64_t n = 0;

    l->most_rows = rows;
    l->most_edges = (uint32_t)b->shape.limits.edges;
    l->type_bytes = in->type == NULL ? 0 : in->data.type_bytes;
    l->weights = in->weight != NULL;
    l->first = (const uint32_t *)(void *)(memory + take(&n, (in->vertices + 1ull) * sizeof(uint32_t)));
    l->other = (const uint32_t *)(void *)(memory + take(&n, in->edges * sizeof(uint32_t)));
    l->type = memory + take(&n, in->edges * l->type_bytes);
    l->weight = (const float *)(void *)(memory + take(&n, l->weights ? in->edges * sizeof(float) : 0));
    l->own = in->loops == NULL ? NULL
                               : (const uint32_t *)(void *)(memory + take(&n, in->vertices * sizeof(uint32_t)));
    l->vertex = (uint32_t *)(void *)(memory + take(&n, rows * sizeof(uint32_t)));
    l->scratch = memory + take(&n, gs_device_draw_bytes(gs_batches_device(b), l));
    for (uint32_t a = 0; a < p->arrays; a++) {
        const int id = p->array[a].store_id;
        if (id >= 0 && id != GS_ARRAY_FEATURES && is_picked(id))
            table[id] = memory + take(&n, gs_store_array(b->session->store, (gs_array_id)id)->bytes);
    }
    return n;
}

bool gs_batches_draw_by(gs_batches *b, const gs_sampler *s, uint64_t bytes)
{
    gs_batch_draw *const d = &b->draw;
    const uint8_t *table[GS_ARRAY_COUNT];
    gs_draw_launch l;

    *d = (gs_batch_draw){.on = false};
    if (s == NULL || !gs_sampler_draws_plainly(&d->law, s) || !can_draw(b, &d->law))
        return false;
    d->bytes = lay_out(b, &l, table, NULL);
    d->on = d->bytes <= bytes;
    return d->on;
}

uint64_t gs_batches_draw_bytes(const gs_batches *b) { return b->draw.on ? b->draw.bytes : 0; }

/* ---- opening -------------------------------------------------------------- */

/* Number of the list that stage k sums over. */
static uint32_t list_of(const gs_batches *b, uint32_t k)
{
    const gs_stage *const s = &b->session->program->stage[k];
    const gs_batch_draw *const d = &b->draw;
    uint32_t list = 0;

    if (s->direction != GS_BY_SOURCE)
        return 0;
    const uint32_t operands = GS_MIN(b->edges.needs.operands[k], d->law.hops);
    while (list < d->launch[0].lists && d->launch[0].list[list].operands != operands)
        list++;
    return list;
}

/* The lists that stages sum over: by destination, and by source of edges into the first hops. */
static void find_lists(gs_batches *b)
{
    const gs_program *const p = b->session->program;
    gs_draw_launch *const l = &b->draw.launch[0];

    l->lists = 1;
    for (uint32_t k = 0; k < p->stages; k++)
        if (p->stage[k].sums > 0 && p->stage[k].direction == GS_BY_SOURCE && b->edges.needs.operands[k] > 0 &&
            list_of(b, k) == l->lists)
            l->list[l->lists++].operands = GS_MIN(b->edges.needs.operands[k], b->draw.law.hops);
}

/* Lists where a slot has its pieces, which have room for all (gs_batch_edges_piece_bytes()). */
static void place_lists(const gs_batches *b, gs_draw_launch *l, uint8_t *memory)
{
    const uint64_t edges = b->shape.limits.edges, rows = GS_MIN(b->shape.limits.vertices, edges);
    uint64_t n = 0;

    for (uint32_t k = 0; k < l->lists; k++) {
        l->list[k].target = memory + take(&n, rows * l->index_bytes);
        l->list[k].start = (uint32_t *)(void *)(memory + take(&n, (rows + 1) * sizeof(uint32_t)));
        l->list[k].index = memory + take(&n, edges * l->index_bytes);
        l->list[k].type = memory + take(&n, edges * l->type_bytes);
        l->list[k].weight = (float *)(void *)(memory + take(&n, l->weights ? edges * sizeof(float) : 0));
    }
}

/* What a slot's batches are drawn into. */
static void open_slot(gs_batches *b, uint32_t slot, const uint8_t *const table[GS_ARRAY_COUNT])
{
    const gs_program *const p = b->session->program;
    gs_batch_draw *const d = &b->draw;
    gs_draw_launch *const l = &d->launch[slot];
    uint32_t n = 0;

    place_lists(b, l, gs_exec_slot_pieces(b->session->run.exec, slot));
    for (uint32_t a = 0; a < p->arrays; a++) {
        const int id = p->array[a].store_id;
        void *const to = id < 0 ? NULL : gs_exec_slot_rows(b->session->run.exec, slot, a);
        if (to == NULL)
            continue;
        if (id == GS_ARRAY_SPLIT)
            l->split = to;
        else if (id == GS_ARRAY_IN_DEGREE)
            l->in_degree = to;
        else if (id == GS_ARRAY_LOOPS)
            l->loops = to;
        else
            d->pick[slot][n++] = (gs_pick_launch){
                .kept = {id == GS_ARRAY_FEATURES ? gs_exec_kept_memory(b->session->run.exec) : table[id]},
                .place = l->vertex, .to = to, .devices = 1, .rows_kept = d->law.in->vertices,
                .row_bytes = (uint32_t)gs_store_array(b->session->store, (gs_array_id)id)->row_bytes};
    }
    d->picks = n;
}

/* Self loops of each vertex, some at a time. */
static gs_status put_loops(gs_exec *e, const uint32_t *to, const gs_adjacency *in)
{
    uint32_t own[4096];

    for (uint32_t first = 0, n; first < in->vertices; first += n) {
        n = GS_MIN(in->vertices - first, (uint32_t)GS_ARRAY_LEN(own));
        for (uint32_t i = 0; i < n; i++)
            own[i] = gs_adjacency_loops(in, first + i);
        GS_TRY(gs_exec_put(e, to + first, own, n * sizeof(*own)));
    }
    return GS_OK;
}

gs_status gs_batch_draw_open(gs_batches *b)
{
    gs_batch_draw *const d = &b->draw;
    gs_draw_launch *const l = &d->launch[0];
    const gs_adjacency *const in = d->law.in;
    gs_exec *const e = b->session->run.exec;
    const uint8_t *table[GS_ARRAY_COUNT] = {0};

    if (!d->on)
        return GS_OK;
    *l = (gs_draw_launch){.hops = d->law.hops, .key = {d->law.key[0], d->law.key[1]},
                          .weighted = d->law.weighted, .by_types = d->law.by_type ? in->edge_types : 0,
                          .index_bytes = gs_batch_index_bytes(&b->shape.limits), .in_split = GS_SPLIT_TRAIN,
                          .out_split = GS_SPLIT_NONE};
    memcpy(l->fanout, d->law.fanout, sizeof(l->fanout));
    lay_out(b, l, table, gs_exec_draw_memory(e));
    find_lists(b);
    d->launch[1] = *l;
    for (uint32_t k = 0; k < GS_MAX(b->slots.count, 1); k++)
        open_slot(b, k, table);
    GS_TRY(gs_exec_put(e, l->first, in->first32, (in->vertices + 1ull) * sizeof(uint32_t)));
    GS_TRY(gs_exec_put(e, l->other, in->other, in->edges * sizeof(uint32_t)));
    if (l->type_bytes > 0)
        GS_TRY(gs_exec_put(e, l->type, in->type, in->edges * l->type_bytes));
    if (l->weights)
        GS_TRY(gs_exec_put(e, l->weight, in->weight, in->edges * sizeof(float)));
    if (l->own != NULL)
        GS_TRY(put_loops(e, l->own, in));
    for (int id = 0; id < GS_ARRAY_COUNT; id++)
        if (table[id] != NULL)
            GS_TRY(gs_exec_put(e, table[id], b->rows.array[id], gs_store_array(b->session->store, id)->bytes));
    return GS_OK;
}

/* ---- a batch -------------------------------------------------------------- */

/* The batch as the host knows it then. */
static void take_counts(gs_batch *batch, const gs_draw_counts *n, uint32_t hops)
{
    batch->vertices = n->rows[hops];
    batch->expanded = n->rows[hops - 1];
    memcpy(batch->hop_end, n->rows, (hops + 1) * sizeof(*n->rows));
    batch->edges = n->edges[hops];
}

/* Edges of each stage, addresses of the device, and the binding: as gs_batch_edges_fill() of a batch on the host. */
static void fill_edges(gs_batches *b, const gs_batch *batch, const gs_draw_launch *l, const gs_draw_counts *n)
{
    gs_batch_edges *const e = &b->edges;
    const gs_hop_needs *const needs = &e->needs;
    uint32_t hop[GS_SAMPLE_HOPS + 2] = {0};

    memcpy(hop + 1, batch->hop_end, needs->levels * sizeof(*hop));
    gs_batch_edges_bind(e, hop);
    for (uint32_t k = 0; k < e->program->stages; k++) {
        const gs_stage *const s = &e->program->stage[k];
        const uint32_t level = GS_MIN(needs->targets[k], l->hops + 1);
        if (s->sums == 0)
            continue;
        e->edges[k] = (gs_edges){0};
        if (level == 0 || (s->direction == GS_BY_SOURCE && needs->operands[k] == 0))
            continue;
        const uint32_t list = list_of(b, k);
        e->edges[k] = (gs_edges){.index_bytes = l->index_bytes, .targets = n->list[list].targets[level - 1],
                                 .target = l->list[list].target, .start = l->list[list].start,
                                 .index = l->list[list].index, .type_bytes = l->type_bytes,
                                 .type = l->type_bytes > 0 ? l->list[list].type : NULL,
                                 .weight = l->weights ? l->list[list].weight : NULL,
                                 .end = n->list[list].ends[level - 1],
                                 .largest = n->list[list].largest};
    }
}

gs_status gs_batch_draw_fill(gs_batches *b, gs_batch_slot *slot)
{
    gs_batch_draw *const d = &b->draw;
    const uint32_t number = slot->place;
    gs_batch *const batch = &slot->batch;
    gs_draw_launch *const l = &d->launch[number];
    gs_draw_counts n;

    l->targets = batch->vertex;
    l->targets_held = batch->targets;
    l->number = batch->number;
    l->epoch = batch->epoch;
    GS_TRY(gs_device_draw(b->session->machine.device[0], l, &n));
    if ((batch->overflows = n.overflows != 0))
        return GS_OK;
    take_counts(batch, &n, l->hops);
    gs_batch_edges_use(&b->edges, (uint32_t)(slot - b->slots.slot));
    fill_edges(b, batch, l, &n);
    for (uint32_t k = 0; k < d->picks; k++)
        d->pick[number][k].rows = batch->vertices;
    slot->graph = (gs_exec_graph){.binding = b->edges.binding, .edges = b->edges.edges, .slot = number,
                                  .pick = d->pick[number], .picks = d->picks};
    return GS_OK;
}
