/* copy_in.c - a bound graph is copied to a device with memory of its own, and its edges are found there; results are
 * copied back. */
#include "exec/copy_in.h"

#include "base/size.h"
#include "exec/bind.h"
#include "exec/spread.h"

static uint64_t graph_bytes(const gs_exec *e, const gs_resident *r)
{
    const gs_array *const a = &e->program->array[r->file];
    return GS_MIN((uint64_t)e->graph->vertices * a->width * gs_dtype_bytes(a->dtype), r->bytes);
}

/* Copies the rows that the bound graph has of each array that no stage makes, but for the array of which devices keep
 * rows. */
static gs_status bring_rows(gs_exec *e)
{
    gs_status st = GS_OK;

    for (uint32_t i = 0; i < e->plan->residents && st == GS_OK; i++) {
        const gs_resident *const r = &e->plan->resident[i];
        if (!gs_exec__crosses(e->program, r) || e->program->array[r->file].result ||
            (e->graph->spread != NULL && r->file == e->graph->spread->array))
            continue;
        st = gs_exec__send(e, e->on[0].resident + r->offset, gs_exec_rows(e, r->file), graph_bytes(e, r));
    }
    return st;
}

/* Copies the pieces one behind the other; each begins at a whole block. */
static gs_status bring_pieces(gs_exec *e)
{
    uint64_t at = 0;
    gs_status st = GS_OK;

    for (uint32_t i = 0; i < e->graph->pieces && st == GS_OK; i++) {
        const gs_exec_piece *const p = &e->graph->piece[i];
        if (p->bytes > e->piece_bytes - at)
            return gs_fail(GS_EINVAL, "a graph in memory has more bytes of edges than the run was opened for");
        st = gs_exec__send(e, e->on[0].pieces + at, p->memory, p->bytes);
        at += gs_align_up(p->bytes, GS_BLOCK_BYTES);
    }
    return st;
}

gs_status gs_exec__copy_in(gs_exec *e)
{
    gs_status st;

    if (e->graph == NULL || e->on[0].resident == NULL)
        return GS_OK;
    if ((st = bring_rows(e)) != GS_OK || (st = bring_pieces(e)) != GS_OK ||
        (st = gs_exec__copy_in_spread(e)) != GS_OK)
        return st;
    return gs_exec__wait_sent(e);
}

gs_status gs_exec__take_results(gs_exec *e)
{
    gs_device *const d = e->on[0].device;
    uint64_t number = 0;
    bool done = false;
    gs_status st = GS_OK;

    if (e->graph == NULL || e->on[0].resident == NULL)
        return GS_OK;
    for (uint32_t i = 0; i < e->plan->residents && st == GS_OK; i++) {
        const gs_resident *const r = &e->plan->resident[i];
        if (!gs_exec__crosses(e->program, r) || !e->program->array[r->file].result)
            continue;
        e->stats.copied_out_bytes += graph_bytes(e, r);
        st = gs_device_transfer(d, GS_DEVICE_TO_HOST, NULL, gs_exec_rows(e, r->file), e->on[0].resident + r->offset,
                                graph_bytes(e, r));
    }
    if (st == GS_OK)
        st = gs_device_mark_transfers(d, GS_DEVICE_TO_HOST, &number);
    return st != GS_OK ? st : gs_device_poll_transfers(d, GS_DEVICE_TO_HOST, number, true, &done);
}

/* NULL stays NULL. */
static const void *brought(const gs_exec *e, const gs_exec_device *x, const void *p)
{
    uint64_t at = 0;

    for (uint32_t i = 0; i < e->graph->pieces && p != NULL; i++) {
        const gs_exec_piece *const piece = &e->graph->piece[i];
        const uintptr_t from = (uintptr_t)piece->memory, to = (uintptr_t)p;
        if (to >= from && to < from + piece->bytes)
            return x->pieces + at + (to - from);
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
    edges->end = edges->targets == 0 ? 0 : edges->start[edges->targets];
    if (edges->end == 0)
        edges->targets = 0;
    edges->target = brought(e, x, edges->target);
    edges->start = brought(e, x, edges->start);
    edges->index = brought(e, x, edges->index);
    edges->weight = brought(e, x, edges->weight);
    edges->type = brought(e, x, edges->type);
}
