/* sweep.c - rows of arrays of the run, side by side, in the order of the store: read, changed, written.
 *
 * Passes are idle, so io is the sweep's alone. Tiles that are kept in host memory stay where they are; those of the
 * run's file go through two halves of a buffer: one is computed on while the other is written out, then read into.
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
} tile;

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

static uint64_t place_in_file(const sweep *s, uint32_t k, const tile *t)
{
    const uint32_t array = s->c->column[k].array;
    const uint64_t row = row_bytes(s, k), per = s->e->chunks.interval_rows;
    const gs_resident *const r = gs_exec__resident_of(s->e, array);
    const uint64_t kept = r != NULL ? gs_div_up(r->bytes, row * per) : 0;
    return s->e->plan->spill.first[array] + (t->first / per - kept) * gs_align_up(row * per, GS_BLOCK_BYTES) +
           t->first % per * row;
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
        const gs_status reaped = gs_exec__reap(s->e, &done, 1, &count);
        if (reaped != GS_OK)
            return reaped;
        const gs_status ended = count > 0 ? take_in(s, &done) : GS_OK;
        st = st == GS_OK ? ended : st;
    }
    return st;
}

/* Hands over the tile's reads or writes, of what is spilled. */
static gs_status transfer(sweep *s, const tile *t, bool write)
{
    gs_status st = GS_OK;

    for (uint32_t k = 0; k < s->c->columns && st == GS_OK; k++) {
        const gs_exec_column *const column = &s->c->column[k];
        const uint64_t bytes = gs_align_up(t->rows * row_bytes(s, k), GS_BLOCK_BYTES);
        if (!(write ? column->write : column->read) || kept_rows(s, k, t) != NULL)
            continue;
        const gs_io_request r = {.file = s->e->files.io_file[column->array], .write = write, .length = bytes,
                                 .offset = place_in_file(s, k, t), .memory = staged_rows(s, k, t), .tag = t->half};
        if ((st = gs_io_submit(s->e->files.io, &r)) != GS_OK)
            break;
        s->under_way[t->half]++;
        *(write ? s->written : s->read) += bytes;
    }
    gs_io_completion done;
    while (st == GS_OK && gs_io_reap(s->e->files.io, &done, 1, false) > 0) /* which also begins them */
        st = take_in(s, &done);
    return st;
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

/* The tile that begins at `first`, or one of no rows behind the last. */
static tile tile_at(const sweep *s, uint64_t first, uint32_t half)
{
    const uint64_t per = s->e->chunks.interval_rows, all = s->e->chunks.vertices;
    const uint64_t left = first < all ? GS_MIN(per - first % per, all - first) : 0;
    return (tile){first, GS_MIN(left, s->c->tile), half};
}

static gs_status go_over(sweep *s)
{
    tile now = tile_at(s, 0, 0);
    gs_status st = transfer(s, &now, false);

    while (now.rows > 0 && st == GS_OK) {
        const tile next = tile_at(s, now.first + now.rows, 1 - now.half);
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
