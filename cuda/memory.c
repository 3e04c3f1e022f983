/* Where on the device is this host memory?
 *
 *   arena    sums and registers; its addresses are the device's from the start
 *   mirrors  lasting copies of host ranges; launches write them alone, so the host's bytes age
 *   staging  pieces in a ring, one after the other: copies of what launches read, room for what they write. A piece
 *            stays, and serves the launches that come, until its room is wanted again or the host
 *            says that its own bytes changed
 *
 * A piece that gives way may be in use by launches under way: the streams that fill its room wait for them.
 */
#include "base/size.h"
#include "cuda/cuda_internal.h"

#define ALIGNMENT 256u

/* ---- taking and giving back ---- */

/* Mapped too, where the driver does: then the device can read it in place. */
static gs_status pin(gs_cuda *c, const gs_device_range *r)
{
    gs_cuda_memory *const m = &c->memory;
    if (r->bytes == 0)
        return GS_OK;
    const gs_status st = gs_cuda_check(
        c, c->d->host_register(r->memory, r->bytes, GS_CU_HOST_PORTABLE | GS_CU_HOST_MAPPED), "pinning host memory");
    if (st != GS_OK)
        return st;
    if (c->d->host_pointer(&m->mapped[m->registered], r->memory, 0) != 0)
        m->mapped[m->registered] = 0;
    m->pinned[m->registered++] = *r;
    return GS_OK;
}

void gs_cuda_give_memory(void *context)
{
    gs_cuda *const c = context;
    gs_cuda_memory *const m = &c->memory;
    gs_cuda_quiet(c);
    gs_cuda_leave(c);
    gs_cuda_give_orders(c);
    for (uint32_t i = 0; i < m->registered; i++)
        c->d->host_unregister(m->pinned[i].memory);
    if (m->base != 0)
        c->d->memory_free(m->base);
    *m = (gs_cuda_memory){.base = 0};
}

gs_status gs_cuda_take_memory(void *context, const gs_device_memory *want, void **arena)
{
    gs_cuda *const c = context;
    gs_cuda_memory *const m = &c->memory;
    uint64_t at = gs_align_up(want->arena_bytes, ALIGNMENT);
    gs_status st;

    gs_cuda_give_memory(c);
    m->arena_bytes = want->arena_bytes;
    m->mirrors = want->mirrors;
    for (uint32_t i = 0; i < want->mirrors; i++) {
        m->mirror[i] = want->mirror[i];
        m->mirror_offset[i] = at;
        at += gs_align_up(want->mirror[i].bytes, ALIGNMENT);
    }
    const uint64_t orders = at;
    at += gs_align_up(want->orders.targets * sizeof(uint32_t), ALIGNMENT);
    m->staging_offset = at;
    m->staging_bytes = gs_align_down(want->staging_bytes, ALIGNMENT);
    st = gs_cuda_check(c, c->d->memory_alloc(&m->base, at + m->staging_bytes + ALIGNMENT), "taking .device_memory");
    const uint64_t mirrors = orders - gs_align_up(want->arena_bytes, ALIGNMENT);
    if (st == GS_OK)
        st = gs_cuda_take_orders(c, &want->orders, orders);
    if (st == GS_OK && mirrors > 0) /* as the host's memory is: rows that nobody writes are read */
        st = gs_cuda_check(c, c->d->fill(m->base + gs_align_up(want->arena_bytes, ALIGNMENT), 0, mirrors, c->compute),
                           "clearing mirrors");
    for (int i = 0; i < 2 && st == GS_OK; i++)
        st = pin(c, &want->host[i]);
    if (st == GS_OK)
        *arena = (void *)m->base;
    else
        gs_cuda_give_memory(c);
    return st;
}

/* ---- mirrors ---- */

static bool within(const void *p, uint64_t bytes, const void *range, uint64_t range_bytes)
{
    const uintptr_t at = (uintptr_t)p, begin = (uintptr_t)range;
    return at >= begin && at + bytes <= begin + range_bytes;
}

gs_cu_memory gs_cuda_fixed_place(const gs_cuda *c, const void *host, uint64_t bytes)
{
    const gs_cuda_memory *const m = &c->memory;
    /* Launches name all operand rows of an interval, of which the arena may end with those that are needed. */
    if (m->base != 0 && within(host, 1, (const void *)m->base, m->arena_bytes))
        return (gs_cu_memory)host;
    for (uint32_t i = 0; i < m->mirrors; i++)
        if (within(host, bytes, m->mirror[i].memory, m->mirror[i].bytes))
            return m->base + m->mirror_offset[i] + ((uintptr_t)host - (uintptr_t)m->mirror[i].memory);
    return 0;
}

/* Copies what of the range is mirrored, one way or the other. */
static gs_status copy_mirrors(gs_cuda *c, char *host, uint64_t bytes, bool to_device)
{
    const gs_cuda_memory *const m = &c->memory;
    gs_status st = GS_OK;
    for (uint32_t i = 0; i < m->mirrors && st == GS_OK; i++) {
        char *const first = m->mirror[i].memory, *const end = first + m->mirror[i].bytes;
        /* Numbers, as the range may be all of memory. */
        const uintptr_t begin = GS_MAX((uintptr_t)host, (uintptr_t)first);
        const uintptr_t stop = GS_MIN((uintptr_t)host + bytes, (uintptr_t)end);
        if (begin >= stop)
            continue;
        char *const from = first + (begin - (uintptr_t)first), *const to = first + (stop - (uintptr_t)first);
        const gs_cu_memory at = m->base + m->mirror_offset[i] + (uint64_t)(from - first);
        const uint64_t n = (uint64_t)(to - from);
        st = to_device ? gs_cuda_copy_in(c, at, from, n, c->compute, "copying to a mirror")
                       : gs_cuda_copy_out(c, from, at, n, c->compute, "copying from a mirror");
    }
    return st;
}

gs_status gs_cuda_host_wrote(void *context, void *host, uint64_t bytes)
{
    gs_cuda *const c = context;
    gs_status st;
    gs_cuda_forget(c, host, bytes);
    for (uint32_t i = 0; i < c->memory.mirrors; i++) {
        const char *const first = c->memory.mirror[i].memory;
        if ((uintptr_t)host < (uintptr_t)first + c->memory.mirror[i].bytes &&
            (uintptr_t)first < (uintptr_t)host + bytes) {
            if ((st = gs_cuda_enter(c)) != GS_OK || (st = copy_mirrors(c, host, bytes, true)) != GS_OK)
                return st;
            return gs_cuda_check(c, c->d->stream_synchronize(c->compute), "copying to a mirror");
        }
    }
    return GS_OK;
}

gs_status gs_cuda_host_reads(void *context, void *host, uint64_t bytes)
{
    gs_cuda *const c = context;
    gs_status st;
    if ((st = gs_cuda_synchronize(c)) != GS_OK || (st = copy_mirrors(c, host, bytes, false)) != GS_OK)
        return st;
    return gs_cuda_check(c, c->d->stream_synchronize(c->compute), "copying from a mirror");
}

/* ---- staging ---- */

static bool overlap(const gs_cuda_piece *p, const char *host, uint64_t bytes)
{
    /* Differences wrap, so that no sum can go over the end of the addresses. */
    const uintptr_t piece = (uintptr_t)p->host, first = (uintptr_t)host;
    return p->host != NULL && (piece - first < bytes || first - piece < p->bytes);
}

uint32_t gs_cuda_find_piece(const gs_cuda *c, const char *host, uint64_t bytes)
{
    const gs_cuda_memory *const m = &c->memory;
    for (uint32_t i = 0; i < m->pieces; i++)
        if (m->piece[i].host != NULL && m->piece[i].present == 0 &&
            within(host, bytes, m->piece[i].host, m->piece[i].bytes))
            return i;
    return GS_NONE;
}

void gs_cuda_forget(gs_cuda *c, const char *host, uint64_t bytes)
{
    for (uint32_t i = 0; i < c->memory.pieces; i++)
        if (overlap(&c->memory.piece[i], host, bytes))
            c->memory.piece[i].host = NULL;
}

void gs_cuda_clear_pieces(gs_cuda *c)
{
    c->memory.pieces = 0;
    c->memory.head = 0;
}

gs_status gs_cuda_wait_in(gs_cuda *c, uint64_t ticket, gs_cu_handle stream)
{
    if (ticket <= c->waited || ticket + GS_CUDA_FLIGHT <= c->ticket)
        return GS_OK;
    return gs_cuda_check(c, c->d->stream_wait(stream, c->finished[ticket % GS_CUDA_FLIGHT], 0), "waiting for a launch");
}

gs_status gs_cuda_wait_for_range(gs_cuda *c, const char *host, uint64_t bytes, gs_cu_handle stream)
{
    gs_status st = GS_OK;
    for (uint32_t i = 0; i < c->memory.pieces && st == GS_OK; i++)
        if (overlap(&c->memory.piece[i], host, bytes) && c->memory.piece[i].ticket != c->ticket)
            st = gs_cuda_wait_in(c, c->memory.piece[i].ticket, stream);
    return st;
}

/* The end of a piece of this launch in [offset, offset + size), or 0. */
static uint64_t in_use(const gs_cuda_memory *m, uint64_t offset, uint64_t size, uint64_t ticket)
{
    for (uint32_t i = 0; i < m->pieces; i++) {
        const gs_cuda_piece *const p = &m->piece[i];
        if (p->ticket == ticket && p->offset < offset + size && offset < p->offset + p->size)
            return p->offset + p->size;
    }
    return 0;
}

/* A place of `size` bytes without pieces of this launch: next fit, once around. */
static bool find_room(gs_cuda_memory *m, uint64_t size, uint64_t ticket, uint64_t *offset)
{
    uint64_t at = m->head;
    for (int rounds = 0; rounds < 2;) {
        if (at + size > m->staging_bytes) {
            at = 0;
            rounds++;
            if (size > m->staging_bytes)
                return false;
            continue;
        }
        const uint64_t after = in_use(m, at, size, ticket);
        if (after == 0) {
            *offset = at;
            return true;
        }
        at = after;
    }
    return false;
}

static gs_status drop_piece(gs_cuda *c, uint32_t i)
{
    gs_cuda_memory *const m = &c->memory;
    gs_status st = gs_cuda_wait_in(c, m->piece[i].ticket, c->in);
    if (st == GS_OK)
        st = gs_cuda_wait_in(c, m->piece[i].ticket, c->compute);
    m->piece[i] = m->piece[--m->pieces];
    return st;
}

/* The piece that was used longest ago gives its entry. */
static gs_status drop_oldest(gs_cuda *c, uint64_t ticket)
{
    const gs_cuda_memory *const m = &c->memory;
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < m->pieces; i++)
        if (m->piece[i].ticket < m->piece[oldest].ticket)
            oldest = i;
    return m->piece[oldest].ticket == ticket ? GS_EAGAIN : drop_piece(c, oldest);
}

gs_cu_memory gs_cuda_piece_at(const gs_cuda *c, const gs_cuda_piece *p)
{
    return c->memory.base + c->memory.staging_offset + p->offset + (uintptr_t)p->host % ALIGNMENT;
}

gs_status gs_cuda_take_piece(gs_cuda *c, const char *host, uint64_t bytes, uint64_t marks, uint64_t ticket,
                             uint32_t *piece)
{
    gs_cuda_memory *const m = &c->memory;
    const uint64_t shift = (uintptr_t)host % ALIGNMENT; /* as on the host: 16-byte accesses stay so */
    const uint64_t size = gs_align_up(shift + bytes, ALIGNMENT) + gs_align_up(marks, ALIGNMENT);
    uint64_t offset = 0;
    gs_status st;

    if (!find_room(m, size, ticket, &offset))
        return GS_EAGAIN;
    for (uint32_t i = 0; i < m->pieces;) {
        const gs_cuda_piece *const p = &m->piece[i];
        if (p->offset >= offset + size || offset >= p->offset + p->size)
            i++;
        else if ((st = drop_piece(c, i)) != GS_OK)
            return st;
    }
    if (m->pieces == GS_CUDA_PIECES && (st = drop_oldest(c, ticket)) != GS_OK)
        return st;
    m->head = offset + size;
    *piece = m->pieces++;
    m->piece[*piece] = (gs_cuda_piece){.host = host, .bytes = bytes, .offset = offset, .size = size, .ticket = ticket};
    if (marks > 0)
        m->piece[*piece].present = m->base + m->staging_offset + offset + gs_align_up(shift + bytes, ALIGNMENT);
    return GS_OK;
}
