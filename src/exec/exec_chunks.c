/* exec_chunks.c - looks at chunks of edges in depth once, and makes views of their bytes. */

#include <string.h>

#include "base/dtype.h"
#include "base/size.h"
#include "exec/exec_run.h"

uint32_t gs_exec__interval_rows(const gs_exec *e, uint32_t interval)
{
    const uint64_t first = (uint64_t)interval * e->chunks.interval_rows;
    return (uint32_t)GS_MIN(e->chunks.interval_rows, e->chunks.vertices - first);
}

/* Checks what edges carry, as the chunk's own header says it, against the store. */
static gs_status check_edge_data(const gs_exec *e, const gs_chunk_view *v)
{
    if (!gs_edge_data_equal(gs_chunk_view_data(v), e->chunks.data))
        return gs_fail(GS_EFORMAT, "its edges carry other data than the store's");
    for (uint64_t k = 0; k < v->edges && v->type_bytes > 0; k++) {
        const uint32_t type = gs_type_at(v->type, v->type_bytes, k);
        if (type >= e->chunks.edge_types)
            return gs_fail(GS_EFORMAT, "an edge has type %u of %u", type, e->chunks.edge_types);
    }
    return GS_OK;
}

static uint8_t *seen_of(const gs_exec *e, const gs_task *t)
{
    const uint64_t set = t->file - e->program->arrays;
    return &e->chunks.seen[(set * e->chunks.parts + t->target) * e->chunks.parts + t->operand];
}

/* Pairs with the store below. Relaxed, as the state speaks of bytes that whoever asks has already. */
gs_chunk_state gs_exec__chunk_state(const gs_exec *e, const gs_task *t)
{
    return (gs_chunk_state)__atomic_load_n(seen_of(e, t), __ATOMIC_RELAXED);
}

void gs_exec__set_chunk_state(gs_exec *e, const gs_task *t, gs_chunk_state state)
{
    __atomic_store_n(seen_of(e, t), (uint8_t)state, __ATOMIC_RELAXED);
}

static const gs_exec_chunk *chunk_of(const gs_exec *e, const gs_task *t)
{
    return &e->chunks.chunk[t->file - e->program->arrays][(uint64_t)t->target * e->chunks.parts + t->operand];
}

uint64_t gs_exec__chunk_edges(const gs_exec *e, const gs_task *t) { return chunk_of(e, t)->edges; }

static gs_chunk_expect expect_of(const gs_exec *e, const gs_task *t)
{
    const gs_exec_chunk *const c = chunk_of(e, t);
    return (gs_chunk_expect){.target_rows = gs_exec__interval_rows(e, t->target),
                             .operand_rows = gs_exec__interval_rows(e, t->operand),
                             .index_bytes = e->chunks.index_bytes, .edges = c->edges, .targets = c->targets,
                             .operands = c->operands, .largest = c->largest};
}

/* Indices of a chunk are looked at in depth when its bytes are first used; after that its checksum stands for them.
 * Chunks that are not `from` the ring (copies of what is resident, too) have their checksum verified here too. */
static gs_status view_bytes(gs_exec *e, const gs_task *t, const void *data, gs_region from, gs_chunk_view *view)
{
    const gs_chunk_expect expect = expect_of(e, t);
    const bool first = gs_exec__chunk_state(e, t) == GS_CHUNK_UNSEEN;

    if (first && from != GS_REGION_RING)
        GS_TRY(gs_exec__check_chunks(e, t->file - e->program->arrays, t->target, t->operand, data, t->chunk_bytes));
    gs_status st = gs_chunk_view_make(view, data, t->chunk_bytes, &expect, first || !e->files.verify);
    if (st == GS_OK && (first || !e->files.verify))
        st = check_edge_data(e, view);
    if (st != GS_OK)
        return gs_fail(st, "%s: chunk (%u, %u): %s", e->files.file[t->file].path, t->target,
                       t->operand, gs_last_error());
    if (first)
        gs_exec__set_chunk_state(e, t, GS_CHUNK_CHECKED);
    return GS_OK;
}

gs_status gs_exec__view_chunk(gs_exec *e, const struct gs_exec_device *x, const gs_task *t, gs_chunk_view *view)
{
    const gs_chunk_expect expect = expect_of(e, t);
    const void *const data = gs_exec__at(e, x, t->chunk);
    const gs_chunk_state state = gs_exec__chunk_state(e, t);

    if (state == GS_CHUNK_MERGED)
        gs_chunk_merged_view(view, data, &expect);
    else if (state == GS_CHUNK_JOINED)
        gs_chunk_joined_view(view, data);
    else if (state == GS_CHUNK_ELSEWHERE)
        *view = (gs_chunk_view){.index_bytes = e->chunks.index_bytes};
    else if (gs_is_device_memory(t->chunk.memory)) /* checked on its way there */
        gs_chunk_view_place(view, data, &expect, e->chunks.data);
    else
        return view_bytes(e, t, data, t->chunk.region, view);
    return GS_OK;
}

gs_status gs_exec__check_upload(gs_exec *e, const gs_task *t)
{
    gs_chunk_view view;
    if (gs_exec__chunk_state(e, t) >= GS_CHUNK_MERGED)
        return GS_OK;
    return view_bytes(e, t, gs_exec__host(e, t->source), t->source.region, &view);
}

gs_status gs_exec__check_loaded(gs_exec *e, const gs_resident *r, const void *data)
{
    const gs_task t = {.file = r->file, .target = r->target, .operand = r->operand, .chunk_bytes = r->bytes};
    gs_chunk_view view;
    /* its bytes have come by no task, so nobody has verified them */
    return view_bytes(e, &t, data, GS_REGION_RESIDENT, &view);
}
