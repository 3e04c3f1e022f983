/* part_owners.c - which rank has the bytes that a plan's moves take. */
#include "plan/part_owners.h"

#include "base/alloc.h"
#include "base/size.h"

/* Who has bytes of the store: whoever reads them. */
#define ANYONE UINT32_MAX
/* What brought such bytes: a read, or, so marked, a resident that was loaded. GS_NONE: nobody, they are 0. */
#define LOADED 0x80000000u

/* A stretch of a move. */
typedef struct stretch {
    uint64_t begin, end;
    uint32_t who, from;
} stretch;

typedef gs_status stretch_fn(gs_owners *o, uint32_t task, const stretch *x);

gs_status gs_owners_refuse(const char *what)
{
    return gs_fail(GS_EUNSUPPORTED, "ranks do not send %s yet; train on one rank, with .device cpu:N", what);
}

static gs_spans *spans_of(gs_owners *o, const gs_task *t, const gs_place *p)
{
    if (p->memory == GS_DISK)
        return t->file < o->program->arrays && o->program->array[t->file].store_id < 0 ? &o->file : NULL;
    if (p->memory != GS_HOST)
        return NULL;
    return p->region == GS_REGION_RING ? &o->ring : &o->resident;
}

/* Calls `fn` with the stretches of [begin, end) at the move's source that have one owner. */
static gs_status cut(gs_owners *o, uint32_t i, uint64_t begin, uint64_t end, stretch_fn *fn)
{
    const gs_task *const t = &o->plan->task[i];
    const gs_spans *const s = spans_of(o, t, &t->source);
    const uint64_t first = t->source.offset;
    gs_status st = GS_OK;

    for (uint64_t at = begin; at < end && st == GS_OK;) {
        const uint32_t k = s == NULL ? 0 : gs_spans_find(s, first + at);
        const gs_span *const span = s == NULL || k == s->count ? NULL : &s->span[k];
        stretch x = {.begin = at, .end = end, .who = ANYONE, .from = GS_NONE};
        if (span != NULL && span->begin <= first + at)
            x = (stretch){at, GS_MIN(end, span->end - first), span->who, span->from};
        else if (span != NULL)
            x.end = GS_MIN(end, span->begin - first);
        st = fn(o, i, &x);
        at = x.end;
    }
    return st;
}

static gs_status each_stretch(gs_owners *o, uint32_t i, stretch_fn *fn)
{
    const gs_task *const t = &o->plan->task[i];
    gs_status st = GS_OK;

    if (t->runs == 0)
        return cut(o, i, 0, t->bytes, fn);
    for (uint32_t r = 0; r < t->runs && st == GS_OK; r++) {
        const gs_block_run run = o->plan->run[t->first_run + r];
        const uint64_t at = run.first * GS_BLOCK_BYTES;
        st = cut(o, i, at, GS_MIN(at + run.blocks * GS_BLOCK_BYTES, t->bytes), fn);
    }
    return st;
}

static gs_status put(gs_owners *o, uint32_t i, const stretch *x, uint32_t who, uint32_t from)
{
    const gs_task *const t = &o->plan->task[i];
    return gs_spans_set(spans_of(o, t, &t->place),
                        (gs_span){t->place.offset + x->begin, t->place.offset + x->end, who, from});
}

static uint16_t bit(uint32_t rank) { return (uint16_t)(1u << rank); }

/* ---- each kind of move ---------------------------------------------------- */

/* Who made what is in the run's file has it there. */
static gs_status follow_read(gs_owners *o, uint32_t i, const stretch *x)
{
    if (x->who != ANYONE)
        o->readers[i] |= bit(x->who);
    return put(o, i, x, x->who, i);
}

/* Whole blocks are written: behind the last row may be what another had there before. */
static gs_status follow_write(gs_owners *o, uint32_t i, const stretch *x)
{
    const bool padding = x->begin > 0 && x->begin + GS_BLOCK_BYTES > o->plan->task[i].bytes;

    if (o->writer == GS_NONE && x->who != ANYONE)
        o->writer = x->who;
    if (x->who != ANYONE && o->writer != x->who && !padding)
        return gs_owners_refuse("rows of several ranks that are written together");
    return put(o, i, x, o->writer == GS_NONE ? ANYONE : o->writer, GS_NONE);
}

static gs_status follow_download(gs_owners *o, uint32_t i, const stretch *x)
{
    return put(o, i, x, o->plan->task[i].device, GS_NONE);
}

static gs_status follow_upload(gs_owners *o, uint32_t i, const stretch *x)
{
    const uint32_t to = o->plan->task[i].device, rank = x->who == ANYONE ? to : x->who;
    gs_piece *const last = o->pieces > 0 ? &o->piece[o->pieces - 1] : NULL;

    if (x->who == ANYONE && x->from != GS_NONE)
        *((x->from & LOADED) != 0 ? &o->loaders[x->from & ~LOADED] : &o->readers[x->from]) |= bit(to);
    if (last != NULL && last->rank == rank && last->end == x->begin) {
        last->end = x->end;
        return GS_OK;
    }
    if (o->pieces == o->piece_room) {
        const uint32_t room = GS_MAX(2 * o->piece_room, 64);
        gs_piece *const more = gs_realloc(o->piece, room * sizeof(*more));
        if (more == NULL)
            return gs_fail(GS_ENOMEM, "out of memory: which rank has what");
        o->piece = more;
        o->piece_room = room;
    }
    o->piece[o->pieces++] = (gs_piece){x->begin, x->end, rank};
    return GS_OK;
}

/* Whose the pieces are has to be the same in every run of the pass, as it is known before the first. */
static gs_status compare(gs_owners *o, uint32_t i)
{
    uint32_t now = 1;

    for (uint32_t k = 0; k < o->pieces; k++)
        if (k == 0 || o->piece[k].rank != o->piece[k - 1].rank)
            now = (now * 31 + o->piece[k].rank) * 0x9E3779B1u + (uint32_t)o->piece[k].begin;
    now = GS_MAX(now, 1u);
    if (o->seen[i] != 0 && o->seen[i] != now)
        return gs_owners_refuse("rows that are one rank's first and another's later");
    o->seen[i] = now;
    return GS_OK;
}

gs_status gs_owners_follow(gs_owners *o, uint32_t i)
{
    const gs_task *const t = &o->plan->task[i];
    gs_status st;

    o->writer = GS_NONE;
    o->pieces = 0;
    switch (gs_task_driver(t)) {
    case GS_DRIVER_IO:
        return each_stretch(o, i, gs_task_reads(t) ? follow_read : follow_write);
    case GS_DRIVER_ENGINE:
        if (t->source.memory != GS_HOST)
            return each_stretch(o, i, follow_download);
        st = each_stretch(o, i, follow_upload);
        return st == GS_OK ? compare(o, i) : st;
    case GS_DRIVER_DIRECT:
        return gs_owners_refuse("chunks that devices read past the host");
    default:
        return GS_OK;
    }
}

/* ---- all passes ----------------------------------------------------------- */

gs_status gs_owners_begin(gs_owners *o)
{
    gs_status st = GS_OK;

    o->ring.count = o->resident.count = o->file.count = 0;
    for (uint32_t r = 0; r < o->plan->residents && st == GS_OK; r++) {
        const gs_resident *const k = &o->plan->resident[r];
        if (k->memory == GS_HOST && k->load)
            st = gs_spans_set(&o->resident, (gs_span){k->offset, k->offset + k->bytes, ANYONE, LOADED | r});
    }
    return st;
}

static gs_status follow_pass(gs_owners *o, uint32_t pass)
{
    const gs_plan_pass *const p = &o->plan->pass[pass];
    gs_status st = GS_OK;
    for (uint32_t i = p->first_task; i < p->first_task + p->tasks && st == GS_OK; i++)
        st = gs_owners_follow(o, i);
    return st;
}

gs_status gs_owners_open(gs_owners *o, const gs_plan *plan, const gs_program *program)
{
    const uint32_t setup = gs_program_pass(program, "setup");
    gs_status st;

    *o = (gs_owners){.plan = plan, .program = program};
    o->readers = gs_calloc((size_t)plan->tasks + 1, sizeof(*o->readers));
    o->loaders = gs_calloc((size_t)plan->residents + 1, sizeof(*o->loaders));
    o->seen = gs_calloc((size_t)plan->tasks + 1, sizeof(*o->seen));
    if (o->readers == NULL || o->loaders == NULL || o->seen == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: which rank has what");
    if ((st = gs_owners_begin(o)) == GS_OK && setup != GS_NONE)
        st = follow_pass(o, setup);
    for (uint32_t turn = 0; turn < 2; turn++)
        for (uint32_t p = 0; p < plan->passes; p++)
            for (uint32_t time = 0; time < 2 && p != setup && st == GS_OK; time++)
                st = follow_pass(o, p);
    return st;
}

void gs_owners_close(gs_owners *o)
{
    gs_free(o->ring.span);
    gs_free(o->resident.span);
    gs_free(o->file.span);
    gs_free(o->piece);
    gs_free(o->readers);
    gs_free(o->loaders);
    gs_free(o->seen);
}
