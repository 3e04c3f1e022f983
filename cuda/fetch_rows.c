/* Copies of some rows of an interval that is in host memory (NeuGraph's selective loading, from the host to the
 * device).
 *
 * A chunk names the rows that its edges read. Where they are at most half of the interval's, and the others' bytes
 * are worth it, the device reads them from the host itself, row by row, to their places in a staged copy with marks of
 * the rows that are there; the next chunk that reads the interval adds those that it needs besides. So no row is copied
 * twice.
 */
#include "base/size.h"
#include "cuda/cuda_internal.h"

void gs_cuda_bind_used(gs_cuda *c, uint32_t b, uint32_t rows, uint32_t used, uint32_t used_rows, uint32_t index_bytes)
{
    gs_cuda_bind *const bind = &c->bind[b];
    if (c->bind[used].bytes == 0)
        return;
    bind->rows = rows;
    bind->used = used;
    bind->used_rows = used_rows;
    bind->index_bytes = index_bytes;
}

/* Where the device reads this host memory in place; 0: nowhere. */
static gs_cu_memory mapped_at(const gs_cuda *c, const gs_cuda_bind *b)
{
    const gs_cuda_memory *const m = &c->memory;
    for (uint32_t i = 0; i < m->registered; i++) {
        const char *const first = m->pinned[i].memory;
        if (m->mapped[i] != 0 && b->host >= first && b->host + b->bytes <= first + m->pinned[i].bytes)
            return m->mapped[i] + (uint64_t)(b->host - first);
    }
    return 0;
}

bool gs_cuda_fetches(const gs_cuda *c, const gs_cuda_bind *b)
{
    if (b->rows == 0 || b->how != GS_CUDA_IN || 2ull * b->used_rows > b->rows || !c->in_pass)
        return false;
    return (b->rows - b->used_rows) * (b->bytes / b->rows) >= c->fetch_saves && mapped_at(c, b) != 0;
}

uint32_t gs_cuda_find_marked(const gs_cuda *c, const gs_cuda_bind *b)
{
    const gs_cuda_memory *const m = &c->memory;
    for (uint32_t i = 0; b->rows > 0 && b->how == GS_CUDA_IN && i < m->pieces; i++)
        if (m->piece[i].present != 0 && m->piece[i].host == b->host && m->piece[i].bytes == b->bytes)
            return i;
    return GS_NONE;
}

gs_status gs_cuda_fetch(gs_cuda *c, const gs_cuda_bind *b, const gs_cuda_piece *p, bool fresh)
{
    gs_fetch_args a = {.list = (const void *)c->bind[b->used].at,
                       .from = (const char *)mapped_at(c, b),
                       .to = (char *)gs_cuda_piece_at(c, p),
                       .present = (gs_u8 *)p->present,
                       .fetched = (gs_u64 *)(c->state + c->loss_offset + offsetof(gs_pass_totals, fetched)),
                       .count = b->used_rows,
                       .index_bytes = b->index_bytes,
                       .row_bytes = (uint32_t)(b->bytes / b->rows)};
    gs_status st = GS_OK;
    if (fresh)
        st = gs_cuda_check(c, c->d->fill(p->present, 0, b->rows, c->in), "clearing marks");
    if (st == GS_OK)
        st = gs_cuda_launch_in(c, c->in, c->fixed[GS_CUDA_FETCH], gs_div_up(a.count, GS_BLOCK_LANES / 32), 1, 0, &a,
                               "gs_fetch_rows");
    return st;
}
