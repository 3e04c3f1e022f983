/* One launch: what it reads goes in, kernels run, what it wrote comes out. */
#include <stdio.h>

#include "base/size.h"
#include "cuda/cuda_internal.h"

static gs_cu_handle event_of(gs_cu_handle *events, uint64_t ticket) { return events[ticket % GS_CUDA_FLIGHT]; }

gs_status gs_cuda_wait(gs_cuda *c, uint64_t ticket)
{
    gs_status st = GS_OK;
    /* One after the other: a launch that copies back may end after the next. */
    while (c->waited < ticket && st == GS_OK) {
        st = gs_cuda_check(c, c->d->event_synchronize(event_of(c->finished, c->waited + 1)), "a launch");
        c->waited += st == GS_OK;
    }
    return st;
}

/* All streams, also behind one that failed: host memory is given back after this. The first failure counts. */
gs_status gs_cuda_synchronize(gs_cuda *c)
{
    const struct {
        gs_cu_handle stream;
        const char *what;
    } all[] = {{c->in, "copying to the device"}, {c->compute, "a launch"}, {c->out, "copying from the device"}};
    gs_status st = gs_cuda_enter(c);
    char why[512] = "";

    if (st != GS_OK)
        return st;
    for (size_t k = 0; k <= GS_ARRAY_LEN(all); k++) {
        const gs_status now = k < GS_ARRAY_LEN(all)
                                  ? gs_cuda_check(c, c->d->stream_synchronize(all[k].stream), all[k].what)
                                  : gs_cuda_wait_for_peers(c);
        if (st == GS_OK && now != GS_OK)
            snprintf(why, sizeof(why), "%s", gs_last_error());
        st = st == GS_OK ? now : st;
    }
    if (st != GS_OK)
        return gs_fail(st, "%s", why);
    c->waited = c->ticket;
    return GS_OK;
}

void gs_cuda_quiet(void *context)
{
    gs_cuda *const c = context;
    char why[512];
    snprintf(why, sizeof(why), "%s", gs_last_error());
    if (gs_cuda_synchronize(c) != GS_OK)
        (void)gs_fail(GS_EDEVICE, "%s", why);
}

gs_status gs_cuda_copy_in(gs_cuda *c, gs_cu_memory to, const void *from, uint64_t bytes, gs_cu_handle stream,
                          const char *what)
{
    c->copied_bytes.in += bytes;
    return gs_cuda_check(c, c->d->copy_in(to, from, bytes, stream), what);
}

gs_status gs_cuda_copy_out(gs_cuda *c, void *to, gs_cu_memory from, uint64_t bytes, gs_cu_handle stream,
                           const char *what)
{
    c->copied_bytes.out += bytes;
    return gs_cuda_check(c, c->d->copy_out(to, from, bytes, stream), what);
}

gs_status gs_cuda_begin(gs_cuda *c)
{
    const uint64_t next = c->ticket + 1; /* its events were those of GS_CUDA_FLIGHT launches before */
    gs_status st = gs_cuda_enter(c);
    if (st == GS_OK && next > GS_CUDA_FLIGHT)
        st = gs_cuda_wait(c, next - GS_CUDA_FLIGHT);
    c->ticket++;
    c->binds = 0;
    return st;
}

uint32_t gs_cuda_bind_range(gs_cuda *c, const void *host, uint64_t bytes, int how)
{
    if (c->binds == GS_CUDA_BINDS)
        return GS_CUDA_BINDS - 1; /* refused by gs_cuda_stage() */
    c->bind[c->binds] = (gs_cuda_bind){.host = (char *)(uintptr_t)host, .bytes = host == NULL ? 0 : bytes, .how = how};
    return c->binds++;
}

static gs_status copy_in(gs_cuda *c, const gs_cuda_bind *b)
{
    const gs_status st = gs_cuda_wait_for_range(c, b->host, b->bytes, c->in);
    return st != GS_OK ? st : gs_cuda_copy_in(c, b->at, b->host, b->bytes, c->in, "copying to the device");
}

/* Into a piece that has, or gets, all of the range. */
static gs_status stage_whole(gs_cuda *c, gs_cuda_bind *b, bool *copied)
{
    uint32_t piece = gs_cuda_find_piece(c, b->host, b->bytes);
    const bool fresh = piece == GS_NONE;
    gs_status st = GS_OK;

    if (fresh && (st = gs_cuda_take_piece(c, b->host, b->bytes, 0, c->ticket, &piece)) != GS_OK)
        return st;
    gs_cuda_piece *const p = &c->memory.piece[piece];
    /* What an earlier launch wrote there may still be on its way back. */
    if (!fresh && b->back && (st = gs_cuda_wait_in(c, p->ticket, c->compute)) != GS_OK)
        return st;
    p->ticket = c->ticket;
    b->at = gs_cuda_piece_at(c, p) + (uint64_t)(b->host - p->host);
    if (b->back) { /* other copies of these bytes are of before */
        const char *const host = p->host;
        p->host = NULL;
        if (fresh && b->how == GS_CUDA_INOUT && (st = copy_in(c, b)) == GS_OK)
            *copied = true;
        gs_cuda_forget(c, b->host, b->bytes);
        p->host = host;
    } else if (fresh) {
        p->host = NULL; /* it waits for other copies, not for itself */
        st = copy_in(c, b);
        p->host = b->host;
        *copied = true;
    }
    return st;
}

/* Into a piece that has, or gets, the rows that are used. */
static gs_status stage_used(gs_cuda *c, gs_cuda_bind *b, bool *copied)
{
    uint32_t piece = gs_cuda_find_marked(c, b);
    const bool fresh = piece == GS_NONE;
    gs_status st = GS_OK;

    if (fresh && (st = gs_cuda_take_piece(c, b->host, b->bytes, b->rows, c->ticket, &piece)) != GS_OK)
        return st;
    gs_cuda_piece *const p = &c->memory.piece[piece];
    p->ticket = c->ticket;
    b->at = gs_cuda_piece_at(c, p);
    *copied = true;
    if ((st = gs_cuda_wait_for_range(c, b->host, b->bytes, c->in)) != GS_OK)
        return st;
    return gs_cuda_fetch(c, b, p, fresh);
}

static gs_status stage_one(gs_cuda *c, gs_cuda_bind *b, bool *copied)
{
    b->back = false;
    if (b->bytes == 0 || (b->at = gs_cuda_fixed_place(c, b->host, b->bytes)) != 0)
        return GS_OK;
    b->back = b->how != GS_CUDA_IN;
    if (gs_cuda_find_piece(c, b->host, b->bytes) == GS_NONE &&
        (gs_cuda_find_marked(c, b) != GS_NONE || gs_cuda_fetches(c, b)))
        return stage_used(c, b, copied);
    return stage_whole(c, b, copied);
}

gs_status gs_cuda_stage(gs_cuda *c)
{
    bool copied = false;
    gs_status st = GS_OK;

    if (c->binds == GS_CUDA_BINDS)
        return gs_fail(GS_EUNSUPPORTED, "device cuda: a launch uses more than %u arrays; use .device cpu",
                       GS_CUDA_BINDS - 1);
    for (uint32_t i = 0; i < c->binds && st == GS_OK; i++)
        st = stage_one(c, &c->bind[i], &copied);
    if (st == GS_EAGAIN) { /* in pieces that are too small: all anew, in one stretch */
        if ((st = gs_cuda_synchronize(c)) != GS_OK)
            return st;
        c->waited = c->ticket - 1; /* not this launch, whose copies are only now asked for */
        gs_cuda_clear_pieces(c);
        for (uint32_t i = 0; i < c->binds && st == GS_OK; i++)
            st = stage_one(c, &c->bind[i], &copied);
    }
    if (st == GS_EAGAIN) {
        char text[32];
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < c->binds; i++)
            bytes += c->bind[i].bytes;
        return gs_fail(GS_EBUDGET,
                       "device cuda: a launch that uses %s does not fit the staging memory; give more .device_memory",
                       gs_size_format(text, sizeof(text), bytes));
    }
    if (st == GS_OK && copied) {
        st = gs_cuda_check(c, c->d->event_record(event_of(c->copied, c->ticket), c->in), "an event");
        if (st == GS_OK)
            st = gs_cuda_check(c, c->d->stream_wait(c->compute, event_of(c->copied, c->ticket), 0), "an event");
    }
    return st;
}

gs_status gs_cuda_end(gs_cuda *c, gs_status st)
{
    const gs_cu_handle computed = event_of(c->computed, c->ticket), finished = event_of(c->finished, c->ticket);
    bool back = false;

    for (uint32_t i = 0; i < c->binds && st == GS_OK; i++) {
        const gs_cuda_bind *const b = &c->bind[i];
        if (!b->back)
            continue;
        if (!back && ((st = gs_cuda_check(c, c->d->event_record(computed, c->compute), "an event")) != GS_OK ||
                      (st = gs_cuda_check(c, c->d->stream_wait(c->out, computed, 0), "an event")) != GS_OK))
            break;
        back = true;
        st = gs_cuda_copy_out(c, b->host, b->at, b->bytes, c->out, "copying from the device");
    }
    /* Recorded after a failure too: who waits for this launch must not wait for one of eight before. */
    const gs_status recorded = gs_cuda_check(c, c->d->event_record(finished, back ? c->out : c->compute), "an event");
    return st != GS_OK ? st : recorded;
}

gs_status gs_cuda_launch_in(gs_cuda *c, gs_cu_handle stream, gs_cu_handle function, uint64_t blocks_x,
                            uint32_t blocks_y, uint32_t shared, void *args, const char *what)
{
    void *list[] = {args};
    char text[128];
    if (blocks_x == 0 || blocks_y == 0)
        return GS_OK;
    if (blocks_x > INT32_MAX || blocks_y > UINT16_MAX)
        return gs_fail(GS_EUNSUPPORTED, "device cuda: a launch is too large; use a store with more .parts");
    snprintf(text, sizeof(text), "kernel %s", what);
    return gs_cuda_check(
        c, c->d->launch(function, (unsigned)blocks_x, blocks_y, 1, GS_BLOCK_LANES, 1, 1, shared, stream, list, NULL),
        text);
}

gs_status gs_cuda_launch(gs_cuda *c, gs_cu_handle function, uint64_t blocks_x, uint32_t blocks_y, uint32_t shared,
                         void *args, const char *what)
{
    return gs_cuda_launch_in(c, c->compute, function, blocks_x, blocks_y, shared, args, what);
}
