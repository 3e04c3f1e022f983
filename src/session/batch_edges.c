#include "session/batch_edges.h"

#include <string.h>

#include "base/alloc.h"
#include "base/index_width.h"
#include "base/size.h"

/* ---- memory ---------------------------------------------------------------- */

static uint32_t expanded_levels(const gs_hop_needs *n) { return n->layered ? n->levels - 1 : n->levels; }

/* Does stage k need edges by source of its own? */
static bool flips(const gs_hop_needs *n, const gs_program *p, uint32_t k)
{
    return p->stage[k].sums > 0 && p->stage[k].direction == GS_BY_SOURCE && n->operands[k] < expanded_levels(n);
}

static gs_batch_flip *flip_of(gs_batch_edges *e, uint32_t operands)
{
    for (uint32_t i = 0; i < e->flips; i++)
        if (e->flip[i].operands == operands)
            return &e->flip[i];
    return NULL;
}

static gs_status add_flip(gs_batch_edges *e, uint32_t operands, const gs_batch_limits *limits, uint64_t edges)
{
    const uint32_t ix = gs_batch_index_bytes(limits);
    gs_batch_flip *const f = &e->flip[e->flips++];

    *f = (gs_batch_flip){.operands = operands, .rows = GS_MIN(limits->vertices, limits->edges), .edges = edges};
    f->target = gs_malloc_array(f->rows + 1, ix);
    f->start = gs_malloc_array(limits->vertices + 2ull, sizeof(*f->start));
    f->index = gs_malloc_array(edges + 1, ix);
    f->type = limits->type_bytes > 0 ? gs_malloc_array(edges + 1, limits->type_bytes) : NULL;
    f->weight = limits->weights ? gs_malloc_array(edges + 1, sizeof(*f->weight)) : NULL;
    if (f->target == NULL || f->start == NULL || f->index == NULL || (limits->type_bytes > 0 && f->type == NULL) ||
        (limits->weights && f->weight == NULL))
        return gs_fail(GS_ENOMEM, "out of memory for the edges of a batch");
    e->bytes += f->rows * ix + limits->vertices * sizeof(*f->start) +
                edges * (ix + limits->type_bytes + (limits->weights ? sizeof(*f->weight) : 0));
    return GS_OK;
}

gs_status gs_batch_edges_open(gs_batch_edges *e, gs_hop_needs *needs, const gs_program *p,
                              const gs_batch_limits *limits, const uint64_t *edges_of)
{
    gs_status st = GS_OK;

    *e = (gs_batch_edges){.needs = *needs, .program = p};
    *needs = (gs_hop_needs){0};
    e->edges = gs_calloc(p->stages + 1, sizeof(*e->edges));
    e->rows = gs_calloc(p->stages + 1, sizeof(*e->rows));
    e->whole = gs_calloc(p->stages + 1, sizeof(*e->whole));
    e->zeroed = gs_calloc(p->arrays + 1, sizeof(*e->zeroed));
    if (e->edges == NULL || e->rows == NULL || e->whole == NULL || e->zeroed == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the edges of a batch");
    for (uint32_t k = 0; k < p->stages && st == GS_OK; k++)
        if (flips(&e->needs, p, k) && flip_of(e, e->needs.operands[k]) == NULL)
            st = add_flip(e, e->needs.operands[k], limits, edges_of[e->needs.operands[k]]);
    return st;
}

void gs_batch_edges_close(gs_batch_edges *e)
{
    for (uint32_t i = 0; i < e->flips; i++) {
        gs_batch_flip *const f = &e->flip[i];
        gs_free(f->target);
        gs_free(f->start);
        gs_free(f->index);
        gs_free(f->type);
        gs_free(f->weight);
    }
    gs_free(e->edges);
    gs_free(e->rows);
    gs_free(e->whole);
    gs_free(e->zeroed);
    gs_hop_needs_drop(&e->needs);
    *e = (gs_batch_edges){0};
}

/* ---- a batch ---------------------------------------------------------------- */

static gs_edges edges_of(const gs_chunk_view *v)
{
    return (gs_edges){.index_bytes = v->index_bytes, .targets = v->targets, .target = v->target, .start = v->start,
                      .index = v->index, .weight = v->weight, .type = v->type, .type_bytes = v->type_bytes,
                      .largest = v->largest};
}

/* Targets below `rows`, which are the first ones. */
static uint32_t targets_below(const gs_edges *e, uint32_t rows)
{
    uint32_t first = 0, end = e->targets;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        if (gs_index_at(e->target, e->index_bytes, middle) < rows)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* One edge of `v` to its place in `f`. */
static void put_edge(gs_batch_flip *f, const gs_chunk_view *v, uint32_t target, uint64_t from, uint32_t to)
{
    gs_index_put(f->index, v->index_bytes, to, target);
    if (v->weight != NULL)
        f->weight[to] = v->weight[from];
    if (v->type_bytes > 0)
        gs_type_put(f->type, v->type_bytes, to, gs_type_at(v->type, v->type_bytes, from));
}

/* The first `targets` of `v`, by their operands, which are below `rows`: a counting sort, so that the edges of an
 * operand keep the order of the targets. */
static gs_edges flip(gs_batch_flip *f, const gs_chunk_view *v, uint32_t targets, uint32_t rows)
{
    const uint32_t edges = targets == 0 ? 0 : v->start[targets], ix = v->index_bytes;
    uint32_t *const start = f->start, used = 0, largest = 0;

    memset(start, 0, (rows + 2ull) * sizeof(*start));
    for (uint32_t k = 0; k < edges; k++)
        start[gs_index_at(v->index, ix, k) + 2]++;
    for (uint32_t r = 0; r < rows; r++)
        start[r + 2] += start[r + 1];
    for (uint32_t t = 0; t < targets; t++)
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++)
            put_edge(f, v, gs_index_at(v->target, ix, t), k, start[gs_index_at(v->index, ix, k) + 1]++);
    for (uint32_t r = 0; r < rows; r++) { /* start[r] is where r begins now; rows without edges go */
        if (start[r] == start[r + 1])
            continue;
        largest = GS_MAX(largest, start[r + 1] - start[r]);
        gs_index_put(f->target, ix, used, r);
        start[used++] = start[r];
    }
    start[used] = edges;
    f->targets = used;
    f->taken = edges;
    return (gs_edges){.index_bytes = ix, .targets = used, .target = f->target, .start = start, .index = f->index,
                      .weight = v->weight == NULL ? NULL : f->weight, .type = v->type == NULL ? NULL : f->type,
                      .type_bytes = v->type_bytes, .largest = largest};
}

void gs_batch_edges_fill(gs_batch_edges *e, const gs_batch *b)
{
    const gs_hop_needs *const n = &e->needs;
    gs_edges flipped[GS_BATCH_FLIPS], whole[2] = {{0}, {0}};

    for (int d = 0; d < 2 && b->edges > 0; d++)
        whole[d] = edges_of(&b->view[d]);
    for (uint32_t i = 0; i < e->flips; i++) {
        const uint32_t operands = e->flip[i].operands;
        const uint32_t targets = b->edges == 0 ? 0 : targets_below(&whole[0], gs_hop_rows(b, operands));
        e->flip[i].targets = e->flip[i].taken = 0;
        flipped[i] = targets == 0 ? (gs_edges){0}
                                  : flip(&e->flip[i], &b->view[0], targets, gs_hop_rows(b, operands + 1));
    }
    for (uint32_t a = 0; a < e->program->arrays; a++)
        e->zeroed[a] = gs_hop_aligned(gs_hop_rows(b, n->zeroed[a]), b->vertices);
    for (uint32_t k = 0; k < e->program->stages; k++) {
        const gs_stage *const s = &e->program->stage[k];
        e->rows[k] = gs_hop_rows(b, n->rows[k]);
        e->whole[k] = GS_MIN(gs_hop_aligned(gs_hop_rows(b, n->whole[k]), b->vertices), e->rows[k]);
        if (s->sums == 0)
            continue;
        e->edges[k] = flips(n, e->program, k) ? flipped[flip_of(e, n->operands[k]) - e->flip] : whole[s->direction];
        e->edges[k].targets = targets_below(&e->edges[k], gs_hop_rows(b, n->targets[k]));
    }
}

/* ---- where they are --------------------------------------------------------- */

/* Does a stage go over edges in these bytes? */
static bool are_used(const gs_batch_edges *e, const void *bytes, uint64_t length)
{
    const uintptr_t from = (uintptr_t)bytes;
    for (uint32_t k = 0; k < e->program->stages; k++) {
        const uintptr_t at = (uintptr_t)e->edges[k].start;
        if (e->edges[k].targets > 0 && at >= from && at < from + length)
            return true;
    }
    return false;
}

uint32_t gs_batch_edges_pieces(const gs_batch_edges *e, const gs_batch *b, gs_exec_piece piece[GS_BATCH_PIECES])
{
    uint32_t n = 0;

    for (int d = 0; d < 2 && b->edges > 0; d++)
        if (are_used(e, b->bytes[d], b->chunk[d].length))
            piece[n++] = (gs_exec_piece){b->bytes[d], b->chunk[d].length};
    if (b->loss_weight != NULL && b->targets > 0)
        piece[n++] = (gs_exec_piece){b->loss_weight, b->targets * sizeof(*b->loss_weight)};
    for (uint32_t i = 0; i < e->flips; i++) {
        const gs_batch_flip *const f = &e->flip[i];
        const uint64_t ix = b->edges > 0 ? b->view[0].index_bytes : 0, edges = f->taken;
        if (f->targets == 0)
            continue;
        piece[n++] = (gs_exec_piece){f->target, f->targets * ix};
        piece[n++] = (gs_exec_piece){f->start, (f->targets + 1ull) * sizeof(*f->start)};
        piece[n++] = (gs_exec_piece){f->index, edges * ix};
        if (f->type != NULL)
            piece[n++] = (gs_exec_piece){f->type, edges * b->view[0].type_bytes};
        if (f->weight != NULL)
            piece[n++] = (gs_exec_piece){f->weight, edges * sizeof(*f->weight)};
    }
    return n;
}

uint64_t gs_batch_edges_piece_bytes(const gs_batch_edges *e, const gs_batch_limits *limits, uint32_t factors)
{
    return limits->chunk_bytes[0] + limits->chunk_bytes[1] + e->bytes + factors * sizeof(float) +
           GS_BATCH_PIECES * GS_BLOCK_BYTES;
}
