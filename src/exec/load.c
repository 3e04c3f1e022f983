/* load.c - what is in memories before the first pass, and what devices keep of what a pass has made once for all.
 *
 * Arrays and chunks of the host's memory are read where they stay, in large pieces. Those of a device come from the
 * host's memory where they are in it, else through the ring, which is nobody's between passes.
 */
#include "exec/load.h"

#include "base/size.h"
#include "exec/exec_run.h"

#define PIECE_BYTES (64 * GS_MIB)

const gs_resident *gs_exec__resident_of(const gs_exec *e, uint32_t file)
{
    for (uint32_t i = 0; i < e->plan->residents; i++)
        if (e->plan->resident[i].memory == GS_HOST && e->plan->resident[i].file == file)
            return &e->plan->resident[i];
    return NULL;
}

gs_status gs_exec__read_now(gs_exec *e, uint32_t file, uint64_t offset, void *memory, uint64_t bytes)
{
    const gs_io_request r = {.file = e->files.io_file[file], .offset = offset, .length = bytes, .memory = memory};
    gs_io_completion done;
    uint32_t count;
    gs_status st;
    if ((st = gs_io_submit(e->files.io, &r)) != GS_OK || (st = gs_exec__reap(e, &done, 1, &count)) != GS_OK)
        return st;
    return done.status == GS_OK ? GS_OK : gs_io_explain(e->files.io, &r, &done);
}

/* Checked as they come, but for chunks: those are when first used. */
static gs_status load_on_host(gs_exec *e, const gs_resident *r)
{
    const bool edges = r->file >= e->program->arrays;
    const gs_exec_file *const f = &e->files.file[r->file];
    const uint64_t whole = gs_align_up(f->bytes, GS_BLOCK_BYTES);
    const uint64_t end = edges ? r->bytes : GS_MIN(gs_align_up(r->bytes, f->sum_bytes), whole - r->first);
    uint8_t *const to = e->region[GS_REGION_RESIDENT] + r->offset;
    gs_status st = GS_OK;

    for (uint64_t at = 0; at < end && st == GS_OK; at += PIECE_BYTES) {
        const uint64_t n = GS_MIN(PIECE_BYTES, end - at);
        st = gs_exec__read_now(e, r->file, r->first + at, to + at, n);
        if (st == GS_OK && !edges)
            st = gs_exec__check_blocks(e, r->file, r->first + at, to + at, n);
    }
    return st;
}

/* Where the host has these bytes of the file for good, or NULL. */
static const uint8_t *kept_on_host(const gs_exec *e, uint32_t file, uint64_t first, uint64_t bytes)
{
    for (uint32_t i = 0; i < e->plan->residents; i++) {
        const gs_resident *const r = &e->plan->resident[i];
        if (r->memory == GS_HOST && r->file == file && r->offset < e->plan->lasting_bytes && r->first <= first &&
            first + bytes <= r->first + r->bytes)
            return e->region[GS_REGION_RESIDENT] + r->offset + (first - r->first);
    }
    return NULL;
}

/* Into the ring, from what the run has written. *from: its first byte there. */
static gs_status read_made(gs_exec *e, const gs_resident *r, const uint8_t **from)
{
    const gs_array *const a = &e->program->array[r->file];
    const uint64_t row = a->width * (uint64_t)gs_dtype_bytes(a->dtype), interval = row * e->chunks.interval_rows;
    const gs_resident *const kept = gs_exec__resident_of(e, r->file);
    const uint64_t place = gs_align_up(interval, GS_BLOCK_BYTES);
    const uint64_t number = r->first / interval - (kept ? gs_div_up(kept->bytes, interval) : 0);

    *from = e->region[GS_REGION_RING];
    return gs_exec__read_now(e, r->file, e->plan->spill.first[r->file] + number * place, e->region[GS_REGION_RING],
                             gs_align_up(r->bytes, GS_BLOCK_BYTES));
}

/* Into the ring, whole checksum blocks of the store's file. */
static gs_status read_stored(gs_exec *e, const gs_resident *r, const uint8_t **from)
{
    const gs_exec_file *const f = &e->files.file[r->file];
    const uint64_t begin = gs_align_down(r->first, f->sum_bytes), whole = gs_align_up(f->bytes, GS_BLOCK_BYTES);
    const uint64_t bytes = GS_MIN(gs_align_up(r->first + r->bytes, f->sum_bytes), whole) - begin;
    uint8_t *const ring = e->region[GS_REGION_RING];
    gs_status st = gs_exec__read_now(e, r->file, begin, ring, bytes);

    *from = ring + (r->first - begin);
    return st == GS_OK ? gs_exec__check_blocks(e, r->file, begin, ring, bytes) : st;
}

static gs_status read_chunk(gs_exec *e, const gs_resident *r, const uint8_t **from)
{
    *from = e->region[GS_REGION_RING];
    return gs_exec__read_now(e, r->file, r->first, e->region[GS_REGION_RING], r->bytes);
}

static gs_status copy_to(gs_exec *e, const gs_resident *r, const uint8_t *from)
{
    const gs_exec_device *const x = &e->on[r->memory - GS_DEVICE_MEMORIES];
    uint64_t number;
    bool done;
    gs_status st = gs_device_transfer(x->device, GS_DEVICE_FROM_HOST, NULL, x->arena + r->offset, from, r->bytes);

    if (st != GS_OK || gs_device_unified(x->device))
        return st;
    st = gs_device_mark_transfers(x->device, GS_DEVICE_FROM_HOST, &number);
    return st == GS_OK ? gs_device_poll_transfers(x->device, GS_DEVICE_FROM_HOST, number, true, &done) : st;
}

static gs_status load_on_device(gs_exec *e, const gs_resident *r)
{
    const bool edges = r->file >= e->program->arrays;
    const uint8_t *from = kept_on_host(e, r->file, r->first, r->bytes);
    gs_status st = GS_OK;

    if (from == NULL)
        st = edges                                          ? read_chunk(e, r, &from)
             : e->program->array[r->file].store_id >= 0 ? read_stored(e, r, &from)
                                                        : read_made(e, r, &from);
    if (st == GS_OK && edges)
        st = gs_exec__check_loaded(e, r, from);
    return st == GS_OK ? copy_to(e, r, from) : st;
}

gs_status gs_exec__load(gs_exec *e, uint32_t pass)
{
    const gs_pass *const p = pass == GS_NONE ? NULL : &e->program->pass[pass];
    gs_status st = GS_OK;

    for (uint32_t i = 0; i < e->plan->residents && st == GS_OK; i++) {
        const gs_resident *const r = &e->plan->resident[i];
        const bool due = r->memory == GS_HOST || r->made_by == GS_NONE
                             ? p == NULL
                             : p != NULL && r->made_by >= p->first_stage && r->made_by - p->first_stage < p->stages;
        if (r->load && due && p != NULL)
            gs_exec__forget_ahead(e); /* the ring is needed */
        if (r->load && due)
            st = r->memory == GS_HOST ? load_on_host(e, r) : load_on_device(e, r);
    }
    return st;
}
