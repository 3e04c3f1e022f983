/* sweep.c - rows of arrays of the run, side by side, in the order of the store: read, changed, written.
 *
 * Passes are idle, so io is the sweep's alone. Tiles that are kept in host memory stay where they are; those of the
 * run's file go through two halves of a buffer: one is computed on while the other is written out, then read into.
 * Where rows are named, a tile's are those of a tile of all, and of the file the blocks that they are in. A rank goes
 * over its own rows.
 */
#include <assert.h>

#include "base/size.h"
#include "exec/exec_run.h"
#include "exec/load.h"

typedef struct sweep {
    gs_exec *e;
    const gs_exec_sweep_config *c;
    uint64_t *read, *written;
    uint32_t under_way[2]; /* transfers of each half */
} sweep;

typedef struct tile {
    uint64_t first, rows;
    uint32_t half;
    uint32_t name, names; /* of config->named: the first that is here, and how many */
} tile;

/* Of a column of a tile: bytes [begin, end) go in one request. */
typedef struct piece {
    uint64_t begin, end;
    uint32_t name; /* the first of the tile's that is behind it */
} piece;

/* Between two named rows so many bytes are read, and written, along. */
#define GAP_BYTES GS_BLOCK_BYTES

static uint64_t row_bytes(const sweep *s, uint32_t k)
{
    return 4ull * s->e->program->array[s->c->column[k].array].width;
}

/* Where the rows are in host memory for good, or NULL. */
static float *kept_rows(const sweep *s, uint32_t k, const tile *t)
{
    const gs_resident *const r = gs_exec__resident_of(s->e, s->c->column[k].array);
    const uint64_t row = row_bytes(s, k);
    const bool kept = r != NULL && (t->first + t->rows) * row <= r->bytes;
    return kept ? (float *)(void *)(s->e->region[GS_REGION_RESIDENT] + r->offset + t->first * row) : NULL;
}

static float *staged_rows(const sweep *s, uint32_t k, const tile *t)
{
    uint8_t *at = s->c->buffer;
    for (uint32_t i = 0; i < k; i++)
        at += 2 * s->c->tile * row_bytes(s, i);
    return (float *)(void *)(at + t->half * s->c->tile * row_bytes(s, k));
}

static gs_status take_in(sweep *s, gs_io_completion *done)
{
    s->under_way[done->tag]--;
    if (done->status == GS_OK)
        return GS_OK;
    return gs_fail_errno(done->error, "%s: cannot read or write rows that are spilled",
                         s->e->files.file[s->c->column[0].array].path);
}

/* Until all transfers of the half are over, also after one that failed. */
static gs_status drain(sweep *s, uint32_t half)
{
    gs_status st = GS_OK;

    while (s->under_way[half] > 0) {
        gs_io_completion done;
        uint32_t count;
        GS_TRY(gs_exec__reap(s->e, &done, 1, &count));
        const gs_status ended = count > 0 ? take_in(s, &done) : GS_OK;
        st = st == GS_OK ? ended : st;
    }
    return st;
}

/* The tile's next piece, from `p->name` on; false: it has no more. */
static bool next_piece(const sweep *s, const tile *t, uint64_t row, piece *p)
{
    const uint64_t all = gs_align_up(t->rows * row, GS_BLOCK_BYTES);
    const uint32_t *const named = s->c->named;

    if (p->name == t->names)
        return false;
    *p = (piece){.end = named == NULL ? all : 0, .name = named == NULL ? t->names : p->name};
    for (bool first = true; p->name < t->names; p->name++, first = false) {
        const uint64_t at = (named[t->name + p->name] - t->first) * row, begin = gs_align_down(at, GS_BLOCK_BYTES);
        if (first)
            p->begin = begin;
        else if (begin > p->end + GAP_BYTES)
            break;
        p->end = GS_MIN(gs_align_up(at + row, GS_BLOCK_BYTES), all);
    }
    return true;
}

/* The queue is full: some of it ends, whichever half it is of. */
static gs_status make_room(sweep *s)
{
    gs_io_completion done;
    uint32_t count;
    const gs_status st = gs_exec__reap(s->e, &done, 1, &count);
    return st == GS_OK && count > 0 ? take_in(s, &done) : st;
}

static gs_status submit(sweep *s, const gs_io_request *r)
{
    gs_status st;

    while ((st = gs_io_submit(s->e->files.io, r)) == GS_EAGAIN)
        if ((st = make_room(s)) != GS_OK)
            return st;
    s->under_way[r->tag] += st == GS_OK;
    return st;
}

/* Hands over the reads or writes of a column of the tile. */
static gs_status transfer_column(sweep *s, const tile *t, uint32_t k, bool write)
{
    const uint32_t array = s->c->column[k].array;
    uint8_t *const memory = (uint8_t *)staged_rows(s, k, t);
    const uint64_t at = gs_exec__spilled_at(s->e, array, t->first);

    for (piece p = {0}; next_piece(s, t, row_bytes(s, k), &p);) {
        const gs_io_request r = {.file = s->e->files.io_file[array], .write = write, .length = p.end - p.begin,
                                 .offset = at + p.begin, .memory = memory + p.begin, .tag = t->half};
        GS_TRY(submit(s, &r));
        *(write ? s->written : s->read) += r.length;
    }
    return GS_OK;
}

/* The same of all columns, where they are spilled. */
static gs_status transfer(sweep *s, const tile *t, bool write)
{
    for (uint32_t k = 0; k < s->c->columns; k++)
        if ((write ? s->c->column[k].write : s->c->column[k].read) && kept_rows(s, k, t) == NULL)
            GS_TRY(transfer_column(s, t, k, write));
    gs_io_completion done;
    while (gs_io_reap(s->e->files.io, &done, 1, false) > 0) /* which also begins them */
        GS_TRY(take_in(s, &done));
    return GS_OK;
}

static gs_status compute(sweep *s, const tile *t)
{
    float *row[GS_EXEC_COLUMNS];
    for (uint32_t k = 0; k < s->c->columns; k++) {
        float *const kept = kept_rows(s, k, t);
        row[k] = kept != NULL ? kept : staged_rows(s, k, t);
    }
    return s->c->fn(s->c->context, t->first, t->rows, row);
}

static uint64_t end_of(const sweep *s)
{
    const uint64_t all = s->e->chunks.vertices;
    return s->e->plan->ranks > 0 ? GS_MIN(all, s->e->plan->own_rows[1]) : all;
}

/* The tile of `first`, or one of no rows behind the last. */
static tile tile_at(const sweep *s, uint64_t first, uint32_t half)
{
    const uint64_t per = s->e->chunks.interval_rows, all = end_of(s);
    const uint64_t left = first < all ? GS_MIN(per - first % per, all - first) : 0;
    return (tile){.first = first, .rows = GS_MIN(left, s->c->tile), .half = half, .names = left > 0};
}

/* The one that has name number `name`, or one of no rows behind the last. */
static tile named_tile(const sweep *s, uint32_t name, uint32_t half)
{
    const uint32_t *const named = s->c->named, names = s->c->names;
    const uint64_t per = s->e->chunks.interval_rows, row = name < names ? named[name] : end_of(s);
    tile t = tile_at(s, row - row % per % s->c->tile, half);

    t.name = name;
    for (t.names = 0; name + t.names < names && named[name + t.names] < t.first + t.rows;)
        t.names++;
    if (name == names)
        t.rows = 0;
    return t;
}

static tile next_tile(const sweep *s, const tile *now)
{
    const uint32_t half = 1 - now->half;
    return s->c->named == NULL ? tile_at(s, now->first + now->rows, half)
                               : named_tile(s, now->name + now->names, half);
}

static gs_status go_over(sweep *s)
{
    tile now = s->c->named == NULL ? tile_at(s, s->e->plan->own_rows[0], 0) : named_tile(s, 0, 0);
    gs_status st = transfer(s, &now, false);

    while (now.rows > 0 && st == GS_OK) {
        const tile next = next_tile(s, &now);
        if ((st = drain(s, now.half)) != GS_OK || (st = drain(s, next.half)) != GS_OK ||
            (next.rows > 0 && (st = transfer(s, &next, false)) != GS_OK) || (st = compute(s, &now)) != GS_OK ||
            (st = transfer(s, &now, true)) != GS_OK)
            break;
        now = next;
    }
    return st;
}

gs_status gs_exec_sweep(gs_exec *e, const gs_exec_sweep_config *config, uint64_t *read, uint64_t *written)
{
    sweep s = {.e = e, .c = config, .read = read, .written = written};
    gs_status st;

    assert(config->columns <= GS_EXEC_COLUMNS);
    gs_exec__forget_ahead(e);
    st = go_over(&s);
    for (uint32_t half = 0; half < 2 && !gs_exec_gave_up(e); half++) { /* the buffer is the caller's */
        const gs_status ended = drain(&s, half);
        st = st == GS_OK ? ended : st;
    }
    return st;
}
