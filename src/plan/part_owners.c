/* part_owners.c - which rank has the bytes that a plan's moves take. */
#include "plan/part_owners.h"

#include "base/alloc.h"
#include "base/dtype.h"
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
    gs_spans *const s = spans_of(o, t, &t->source);
    const uint64_t first = t->source.offset;

    for (uint64_t at = begin; at < end;) {
        const uint32_t k = s == NULL ? 0 : gs_spans_find(s, first + at);
        const gs_span *const span = s == NULL || k == s->count ? NULL : gs_spans_at(s, k);
        stretch x = {.begin = at, .end = end, .who = ANYONE, .from = GS_NONE};
        if (span != NULL && span->begin <= first + at)
            x = (stretch){at, GS_MIN(end, span->end - first), span->who, span->from};
        else if (span != NULL)
            x.end = GS_MIN(end, span->begin - first);
        GS_TRY(fn(o, i, &x));
        at = x.end;
    }
    return GS_OK;
}

static gs_status each_stretch(gs_owners *o, uint32_t i, stretch_fn *fn)
{
    const gs_task *const t = &o->plan->task[i];

    if (gs_task_moves_rows(t)) {
        for (gs_row_stretch x = {0}; gs_task_next_rows(o->plan, t, &x);)
            GS_TRY(cut(o, i, x.first * t->row_bytes, (x.first + x.rows) * t->row_bytes, fn));
        return GS_OK;
    }
    if (t->runs == 0)
        return cut(o, i, 0, t->bytes, fn);
    for (uint32_t r = 0; r < t->runs; r++) {
        const gs_block_run run = o->plan->run[t->first_run + r];
        const uint64_t at = run.first * GS_BLOCK_BYTES;
        GS_TRY(cut(o, i, at, GS_MIN(at + run.blocks * GS_BLOCK_BYTES, t->bytes), fn));
    }
    return GS_OK;
}

static gs_status put(gs_owners *o, uint32_t i, const stretch *x, uint32_t who, uint32_t from)
{
    const gs_task *const t = &o->plan->task[i];
    return gs_spans_set(spans_of(o, t, &t->place),
                        (gs_span){t->place.offset + x->begin, t->place.offset + x->end, who, from});
}

static uint16_t bit(uint32_t rank) { return (uint16_t)(1u << rank); }

/* ---- rows that are dealt --------------------------------------------------- */

bool gs_owners_deal(const gs_owners *o, uint32_t file)
{
    if (o->rows == NULL || file >= o->program->arrays)
        return false;
    const int id = o->program->array[file].store_id;
    return id < 0 ? o->program->array[file].lasting : (o->rows->arrays >> id & 1) != 0;
}

uint32_t gs_owners_of(const gs_owners *o, uint32_t interval)
{
    uint32_t k = 0;
    while (interval >= o->rows->first[k + 1])
        k++;
    return k;
}

/* Of a cache's rows of one interval all are its owner's, with what checksums take in before them. */
static gs_piece piece_of(const gs_owners *o, const gs_resident *r, uint32_t rank)
{
    const gs_array *const a = &o->program->array[r->file];
    const uint64_t interval = (uint64_t)o->interval_rows * a->width * gs_dtype_bytes(a->dtype);
    const uint32_t owner = gs_owners_of(o, r->target);
    const uint64_t last = rank + 1 == o->ranks ? UINT64_MAX : interval * o->rows->first[rank + 1];
    gs_piece p = {.begin = rank == owner ? r->first : GS_MAX(r->first, interval * o->rows->first[rank]),
                  .end = GS_MIN(r->first + r->bytes, last), .rank = rank};

    if (rank < owner || p.end < p.begin)
        p.end = p.begin = r->first;
    return p;
}

gs_piece gs_owners_loaded(const gs_owners *o, uint32_t resident, uint32_t rank)
{
    return o->loaded[(uint64_t)resident * o->ranks + rank];
}

/* One more stretch of a resident's file that a rank wants. */
static void want(gs_owners *o, uint32_t resident, uint32_t rank, uint64_t begin, uint64_t end)
{
    gs_piece *const p = &o->loaded[(uint64_t)resident * o->ranks + rank];

    *p = (gs_piece){p->end == p->begin ? begin : GS_MIN(p->begin, begin), GS_MAX(p->end, end), rank};
}

/* The place of a read is of the interval's rows as a whole, though those that nobody needs are not read. */
static gs_status follow_dealt(gs_owners *o, uint32_t i)
{
    const gs_task *const t = &o->plan->task[i];
    const uint32_t owner = gs_owners_of(o, t->target);

    o->readers[i] |= bit(owner);
    return gs_spans_set(spans_of(o, t, &t->place),
                        (gs_span){t->place.offset, t->place.offset + t->bytes, owner, i});
}

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

static void want_loaded(gs_owners *o, uint32_t i, const stretch *x)
{
    const gs_task *const t = &o->plan->task[i];
    const uint32_t r = x->from & ~LOADED;
    const gs_resident *const k = &o->plan->resident[r];
    const uint64_t first = k->first + (t->source.offset - k->offset);

    want(o, r, t->device, first + x->begin, first + x->end);
}

static gs_status follow_upload(gs_owners *o, uint32_t i, const stretch *x)
{
    const uint32_t to = o->plan->task[i].device, rank = x->who == ANYONE ? to : x->who;
    gs_piece *const last = o->pieces > 0 ? &o->piece[o->pieces - 1] : NULL;

    if (x->who == ANYONE && x->from != GS_NONE && (x->from & LOADED) != 0)
        want_loaded(o, i, x);
    else if (x->who == ANYONE && x->from != GS_NONE)
        o->readers[x->from] |= bit(to);
    if (last != NULL && last->rank == rank && last->end == x->begin) {
        last->end = x->end;
        return GS_OK;
    }
    GS_NEED(gs_grow(&o->piece, o->pieces, &o->piece_room, sizeof(*o->piece)), "out of memory: which rank has what");
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
        if (gs_task_reads(t) && gs_owners_deal(o, t->file))
            return follow_dealt(o, i);
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

static gs_status begin_dealt(gs_owners *o, uint32_t r)
{
    const gs_resident *const k = &o->plan->resident[r];

    for (uint32_t rank = 0; rank < o->ranks; rank++) {
        const gs_piece p = piece_of(o, k, rank);
        if (p.end == p.begin)
            continue;
        want(o, r, rank, p.begin, p.end);
        GS_TRY(gs_spans_set(&o->resident, (gs_span){k->offset + p.begin - k->first, k->offset + p.end - k->first, rank,
                                                      LOADED | r}));
    }
    return GS_OK;
}

/* Of what stays on the hosts, and no pass writes, each rank has the rows of its own intervals. */
static gs_status begin_lasting(gs_owners *o, const gs_resident *k)
{
    const uint64_t interval = sizeof(float) * o->program->array[k->file].width * o->interval_rows;

    for (uint32_t rank = 0; rank < o->ranks; rank++) {
        const uint64_t begin = GS_MAX(k->first, interval * o->rows->first[rank]),
                       end = GS_MIN(k->first + k->bytes, interval * o->rows->first[rank + 1]);
        if (begin < end)
            GS_TRY(gs_spans_set(&o->resident, (gs_span){k->offset + begin - k->first, k->offset + end - k->first, rank,
                                                          GS_NONE}));
    }
    return GS_OK;
}

/* What devices keep comes from what is kept on their hosts. */
static void want_kept(gs_owners *o, uint32_t r)
{
    const gs_resident *const host = &o->plan->resident[r];

    for (uint32_t i = 0; i < o->plan->residents; i++) {
        const gs_resident *const k = &o->plan->resident[i];
        if (k->memory != GS_HOST && k->load && k->made_by == GS_NONE && k->file == host->file &&
            k->first >= host->first && k->first + k->bytes <= host->first + host->bytes)
            want(o, r, k->memory - GS_DEVICE_MEMORIES, k->first, k->first + k->bytes);
    }
}

/* What a host keeps before the first pass: of rows that are dealt each rank has its own, of others all have all. */
static gs_status begin_kept(gs_owners *o, uint32_t r)
{
    const gs_resident *const k = &o->plan->resident[r];

    if (gs_owners_deal(o, k->file))
        return k->load ? begin_dealt(o, r) : begin_lasting(o, k);
    if (!k->load)
        return GS_OK;
    want_kept(o, r);
    return gs_spans_set(&o->resident, (gs_span){k->offset, k->offset + k->bytes, ANYONE, LOADED | r});
}

gs_status gs_owners_begin(gs_owners *o)
{
    gs_spans_empty(&o->ring);
    gs_spans_empty(&o->resident);
    gs_spans_empty(&o->file);
    for (uint32_t r = 0; r < o->plan->residents; r++)
        if (o->plan->resident[r].memory == GS_HOST)
            GS_TRY(begin_kept(o, r));
    return GS_OK;
}

static gs_status follow_pass(gs_owners *o, uint32_t pass)
{
    const gs_plan_pass *const p = &o->plan->pass[pass];
    for (uint32_t i = p->first_task; i < p->first_task + p->tasks; i++)
        GS_TRY(gs_owners_follow(o, i));
    return GS_OK;
}

gs_status gs_owners_open(gs_owners *o, const gs_plan *plan, const gs_program *program)
{
    const uint32_t setup = gs_program_pass(program, "setup");

    o->plan = plan;
    o->program = program;
    o->readers = gs_calloc((size_t)plan->tasks + 1, sizeof(*o->readers));
    o->loaded = gs_calloc(((size_t)plan->residents + 1) * o->ranks, sizeof(*o->loaded));
    o->seen = gs_calloc((size_t)plan->tasks + 1, sizeof(*o->seen));
    GS_NEED(o->readers != NULL && o->loaded != NULL && o->seen != NULL, "out of memory: which rank has what");
    GS_TRY(gs_owners_begin(o));
    if (setup != GS_NONE)
        GS_TRY(follow_pass(o, setup));
    for (uint32_t turn = 0; turn < 2; turn++)
        for (uint32_t p = 0; p < plan->passes; p++)
            for (uint32_t time = 0; time < 2 && p != setup; time++)
                GS_TRY(follow_pass(o, p));
    return GS_OK;
}

void gs_owners_close(gs_owners *o)
{
    gs_free(o->ring.span);
    gs_free(o->resident.span);
    gs_free(o->file.span);
    gs_free(o->piece);
    gs_free(o->readers);
    gs_free(o->loaded);
    gs_free(o->seen);
}
