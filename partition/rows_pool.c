/* rows_pool.c - slots of memory, filled and written, and reads that run ahead. */
#include "partition/rows_pool.h"

#include <string.h>

#include "base/size.h"
#include "partition/job.h"

#define WRITE_TAG (1ull << 32)

/* Waits for one read or write and takes note of it. */
static gs_status reap(gs_rows *r)
{
    gs_io_completion done;

    if (gs_io_reap(r->io, &done, 1, true) == 0)
        return gs_fail(GS_EIO, "%s: nothing is being read or written that could be waited for", r->path);
    const bool write = done.tag >= WRITE_TAG;
    const uint64_t which = write ? done.tag - WRITE_TAG : done.tag % GS_ROWS_PIECES;
    if (done.status != GS_OK)
        return gs_io_explain(r->io, write ? &r->pool.written[which] : &r->reading[which], &done);
    if (write) {
        r->pool.vacant[r->pool.vacancies++] = (uint32_t)which;
        r->pool.writes--;
    } else {
        r->read_done[which] = done.tag + 1;
    }
    return GS_OK;
}

/* Under way at once: what follows is computing. */
static gs_status submit(gs_rows *r, const gs_io_request *request)
{
    const gs_status st = gs_io_submit(r->io, request);
    if (st == GS_OK)
        gs_io_reap(r->io, NULL, 0, false);
    return st;
}

void gs_rows__begin_reading(gs_rows *r) { memset(r->read_done, 0, sizeof(r->read_done)); }

gs_status gs_rows__read_piece(gs_rows *r, uint32_t file, uint64_t number, char *buffer, uint64_t offset, uint64_t bytes,
                              uint64_t needed)
{
    gs_io_request *const q = &r->reading[number % GS_ROWS_PIECES];
    *q = (gs_io_request){
        .file = file, .offset = offset, .length = bytes, .needed = needed, .memory = buffer, .tag = number};
    return submit(r, q);
}

gs_status gs_rows__wait_piece(gs_rows *r, uint64_t number)
{
    gs_status st = GS_OK;
    while (st == GS_OK && r->read_done[number % GS_ROWS_PIECES] != number + 1)
        st = reap(r);
    return st;
}

void gs_rows__abandon(gs_rows *r)
{
    gs_io_completion done;
    while (gs_io_reap(r->io, &done, 1, true) != 0)
        ;
}

gs_status gs_rows__drain(gs_rows *r)
{
    gs_status st = GS_OK;
    while (r->pool.writes != 0 && st == GS_OK)
        st = reap(r);
    return st;
}

void gs_rows__cut_pool(gs_rows *r, uint64_t slot_bytes)
{
    gs_rows_pool *const p = &r->pool;

    p->slot_bytes = slot_bytes;
    p->slots = p->vacancies = (uint32_t)(p->bytes / slot_bytes);
    p->most_writes = GS_MAX(GS_MIN(GS_ROWS_WRITES, p->slots / 4), 1);
    for (uint32_t i = 0; i < p->slots; i++)
        p->vacant[i] = i;
}

gs_status gs_rows__take_slot(gs_rows *r, uint32_t *slot)
{
    gs_rows_pool *const p = &r->pool;

    while (p->vacancies == 0) {
        if (p->writes == 0) /* what is open together always fits */
            return gs_fail(GS_EBUDGET, "%s: too many write windows; raise .memory", r->path);
        const gs_status st = reap(r);
        if (st != GS_OK)
            return st;
    }
    *slot = p->vacant[--p->vacancies];
    p->filled[*slot] = 0;
    return GS_OK;
}

gs_status gs_rows__write_slot(gs_rows *r, uint32_t file, uint32_t slot, uint64_t bytes, uint64_t offset)
{
    gs_rows_pool *const p = &r->pool;

    while (p->writes >= p->most_writes) {
        const gs_status st = reap(r);
        if (st != GS_OK)
            return st;
    }
    p->writes++;
    p->written[slot] = (gs_io_request){.file = file, .write = true, .offset = offset, .length = bytes,
                                       .memory = p->data + slot * p->slot_bytes, .tag = WRITE_TAG + slot};
    return submit(r, &p->written[slot]);
}

gs_status gs_rows__check(const gs_rows *r, uint64_t row)
{
    gs_part__tick(r->job, "writing features", (double)row / (double)r->in->vertices);
    return gs_part__job_result(r->job);
}
