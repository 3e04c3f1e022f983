/* load.c - chunks that a device reads past the host, and what is loaded before the first pass. */
#include "exec/load.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "exec/exec_run.h"
#include "exec/lane.h"
#include "ranks/ranks.h"

/* ---- reads past the host -------------------------------------------------- */

/* Chunks that a device reads past the host.
 *
 * Nobody on the host sees these bytes, and a chunk whose indices are wrong has a kernel write anywhere. So the host
 * reads them once when the run opens, in the order of the files, as it does with chunks that come by way of it when
 * they come first: the checksum, then every index. From then on a mark stands for the bytes, which the device makes of
 * whatever it reads before a launch sees it.
 */

/* A stretch of a file, through the ring. */
#define STRETCH_BYTES (16 * GS_MIB)

static uint64_t *mark_of(const gs_exec *e, const gs_task *t)
{
    const uint64_t set = t->file - e->program->arrays, parts = e->chunks.parts;
    assert(set < e->chunks.sets);
    return &e->direct.mark[(set * parts + t->target) * parts + t->operand];
}

/* ---- opening ---- */

/* Files, and the part of the arena that chunks go to. */
static gs_status open_files(gs_exec *e)
{
    gs_exec_device *const x = &e->on[0];
    uint64_t first = UINT64_MAX, end = 0;

    for (uint32_t i = 0; i < e->plan->tasks; i++) {
        const gs_task *const t = &e->plan->task[i];
        if (gs_task_driver(t) != GS_DRIVER_DIRECT)
            continue;
        first = GS_MIN(first, t->place.offset);
        end = GS_MAX(end, t->place.offset + t->bytes);
    }
    GS_TRY(gs_device_open_reads(x->device, x->arena + first, end - first));
    for (uint32_t i = 0; i < e->plan->tasks; i++) {
        const gs_task *const t = &e->plan->task[i];
        if (gs_task_driver(t) == GS_DRIVER_DIRECT && e->direct.file[t->file] == GS_NONE)
            GS_TRY(gs_device_add_file(x->device, e->files.file[t->file].path, &e->direct.file[t->file]));
    }
    return GS_OK;
}

static int by_place(const void *a, const void *b)
{
    const gs_task *const x = *(const gs_task *const *)a, *const y = *(const gs_task *const *)b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->source.offset > y->source.offset) - (x->source.offset < y->source.offset);
}

/* Chunks [0, count) lie side by side, or are the same one again. */
static gs_status check_stretch(gs_exec *e, const gs_task *const *load, uint32_t count)
{
    uint8_t *const ring = e->region[GS_REGION_RING];
    const gs_task *const last = load[count - 1];

    GS_TRY(gs_exec__read_now(e, load[0]->file, load[0]->source.offset, ring,
                             last->source.offset + last->bytes - load[0]->source.offset));
    for (uint32_t i = 0; i < count; i++) {
        const gs_task *const t = load[i];
        const uint8_t *const data = ring + (t->source.offset - load[0]->source.offset);
        const gs_resident chunk = {.file = t->file, .bytes = t->bytes, .target = t->target, .operand = t->operand};
        if (i > 0 && t->source.offset == load[i - 1]->source.offset)
            continue;
        GS_TRY(gs_exec__check_loaded(e, &chunk, data));
        *mark_of(e, t) = gs_fingerprint64(data, t->bytes);
    }
    return GS_OK;
}

static gs_status check_all(gs_exec *e, const gs_task *const *load, uint32_t count)
{
    const uint64_t most = GS_MIN(STRETCH_BYTES, e->region_bytes[GS_REGION_RING]);

    for (uint32_t first = 0, end; first < count; first = end) {
        const gs_task *const begin = load[first];
        for (end = first + 1; end < count && load[end]->file == begin->file; end++) {
            const uint64_t before = load[end - 1]->source.offset, at = load[end]->source.offset;
            if ((at != before && at != before + load[end - 1]->bytes) ||
                at + load[end]->bytes - begin->source.offset > most)
                break;
        }
        GS_TRY(check_stretch(e, load + first, end - first));
    }
    return GS_OK;
}

static gs_status check_chunks(gs_exec *e)
{
    GS_FREED const gs_task **const load = gs_malloc_array((size_t)e->plan->tasks + 1, sizeof(*load));
    uint32_t count = 0;

    GS_NEED(load != NULL, "out of memory: the list of chunks that a device reads");
    for (uint32_t i = 0; i < e->plan->tasks; i++)
        if (gs_task_driver(&e->plan->task[i]) == GS_DRIVER_DIRECT)
            load[count++] = &e->plan->task[i];
    qsort(load, count, sizeof(*load), by_place);
    return check_all(e, load, count);
}

gs_status gs_exec__open_direct(gs_exec *e)
{
    const uint64_t chunks = (uint64_t)e->chunks.sets * e->chunks.parts * e->chunks.parts;
    gs_exec_direct *const s = &e->direct;

    if (!e->plan->loads)
        return GS_OK;
    s->mark = gs_arena_take(&e->arrays, chunks, sizeof(*s->mark));
    s->file = gs_arena_take(&e->arrays, e->files.count, sizeof(*s->file));
    GS_NEED(!e->arrays.is_short, "out of memory: the marks of chunks");
    memset(s->file, 0xff, e->files.count * sizeof(*s->file));
    GS_TRY(open_files(e));
    return check_chunks(e);
}

/* ---- in a pass ---- */

static gs_status explain(const gs_exec *e, const gs_task *t, gs_status st)
{
    if (st == GS_OK || st == GS_EDEVICE)
        return st;
    return gs_fail(st, "%s: chunk (%u, %u), read straight to the device: %s; run `gnnstream verify`, or read by way "
                   "of the host with .disk_to_device no", e->files.file[t->file].path, t->target, t->operand,
                   gs_last_error());
}

gs_status gs_exec__load_chunk(gs_exec_lane *l, const gs_task *t, uint64_t *number)
{
    const gs_exec *const e = l->e;
    const gs_exec_device *const x = &e->on[l->device];
    const gs_device_read r = {.file = e->direct.file[t->file], .offset = t->source.offset, .bytes = t->bytes,
                              .to = gs_exec__at(e, x, t->place), .mark = *mark_of(e, t)};

    l->bytes += t->bytes;
    return explain(e, t, gs_device_begin_read(x->device, &r, number));
}

gs_status gs_exec__poll_chunk(gs_exec_lane *l, const gs_task *t, uint64_t number, bool wait, bool *done)
{
    return explain(l->e, t, gs_device_poll_read(l->e->on[l->device].device, number, wait, done));
}

/* ---- loading -------------------------------------------------------------- */

/* What is in memories before the first pass, and what devices keep of what a pass has made once for all.
 *
 * Arrays and chunks of the host's memory are read where they stay, in large pieces. Those of a device come from the
 * host's memory where they are in it, else through the ring, which is nobody's between passes.
 */

#define PIECE_BYTES (64 * GS_MIB)

const gs_resident *gs_exec__resident_of(const gs_exec *e, uint32_t file)
{
    for (uint32_t i = 0; i < e->plan->residents; i++)
        if (e->plan->resident[i].memory == GS_HOST && e->plan->resident[i].file == file)
            return &e->plan->resident[i];
    return NULL;
}

uint64_t gs_exec__spilled_at(const gs_exec *e, uint32_t array, uint64_t row)
{
    const gs_array *const a = &e->program->array[array];
    const uint64_t bytes = a->width * (uint64_t)gs_dtype_bytes(a->dtype), per = e->chunks.interval_rows;
    const gs_resident *const kept = gs_exec__resident_of(e, array);
    const uint64_t interval = row / per - (kept != NULL ? gs_div_up(kept->bytes, bytes * per) : 0);
    return e->plan->spill.first[array] + interval * gs_align_up(bytes * per, GS_BLOCK_BYTES) + row % per * bytes;
}

gs_status gs_exec__read_now(gs_exec *e, uint32_t file, uint64_t offset, void *memory, uint64_t bytes)
{
    const gs_io_request r = {.file = e->files.io_file[file], .offset = offset - e->files.file[file].first,
                             .length = bytes, .memory = memory};
    gs_io_completion done;
    uint32_t count;
    GS_TRY(gs_io_submit(e->files.io, &r));
    GS_TRY(gs_exec__reap(e, &done, 1, &count));
    return done.status == GS_OK ? GS_OK : gs_io_explain(e->files.io, &r, &done);
}

/* Checked as they come, but for chunks: those are when first used. A rank's part of an array may begin within what a
 * checksum covers. */
static gs_status load_on_host(gs_exec *e, const gs_resident *r)
{
    const bool edges = r->file >= e->program->arrays;
    const gs_exec_file *const f = &e->files.file[r->file];
    const uint64_t whole = gs_align_up(f->bytes, GS_BLOCK_BYTES);
    const uint64_t begin = edges ? r->first : gs_align_down(r->first, f->sum_bytes), last = r->first + r->bytes;
    const uint64_t end = edges ? last : GS_MIN(gs_align_up(last, f->sum_bytes), whole);
    uint8_t *const to = e->region[GS_REGION_RESIDENT] + r->offset - (r->first - begin);

    for (uint64_t at = begin; at < end; at += PIECE_BYTES) {
        const uint64_t n = GS_MIN(PIECE_BYTES, end - at);
        GS_TRY(gs_exec__read_now(e, r->file, at, to + (at - begin), n));
        if (!edges)
            GS_TRY(gs_exec__check_blocks(e, r->file, at, to + (at - begin), n));
    }
    return GS_OK;
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
    const uint64_t at = gs_exec__spilled_at(e, r->file, r->first / (a->width * (uint64_t)gs_dtype_bytes(a->dtype)));

    *from = e->region[GS_REGION_RING];
    return gs_exec__read_now(e, r->file, at, e->region[GS_REGION_RING], gs_align_up(r->bytes, GS_BLOCK_BYTES));
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
    GS_TRY(gs_device_transfer(x->device, GS_DEVICE_FROM_HOST, NULL, x->arena + r->offset, from, r->bytes));
    return gs_exec__wait_copied(x->device, GS_DEVICE_FROM_HOST);
}

/* Into the ring, from another rank. */
static gs_status receive(gs_exec *e, const gs_resident *r, const uint8_t **from)
{
    *from = e->region[GS_REGION_RING];
    return gs_ranks_pass(false, r->rank, e->region[GS_REGION_RING], r->bytes);
}

static gs_status load_on_device(gs_exec *e, const gs_resident *r)
{
    const bool edges = r->file >= e->program->arrays, far = e->plan->ranks > 0 && r->rank != e->plan->rank;
    const uint8_t *from = far ? NULL : kept_on_host(e, r->file, r->first, r->bytes);

    if (from == NULL)
        GS_TRY(far     ? receive(e, r, &from)
               : edges ? read_chunk(e, r, &from)
               : e->program->array[r->file].store_id >= 0 ? read_stored(e, r, &from)
                                                          : read_made(e, r, &from));
    if (edges)
        GS_TRY(gs_exec__check_loaded(e, r, from));
    if (r->memory >= GS_RANK_MEMORIES)
        return gs_ranks_pass(true, r->memory - GS_RANK_MEMORIES, (void *)(uintptr_t)from, r->bytes);
    return copy_to(e, r, from);
}

bool gs_exec__load_has_messages(const gs_plan *plan)
{
    for (uint32_t i = 0; i < plan->residents; i++) {
        const gs_resident *const r = &plan->resident[i];
        if (r->memory >= GS_RANK_MEMORIES || (r->memory != GS_HOST && r->rank != plan->rank))
            return true;
    }
    return false;
}

gs_status gs_exec__load(gs_exec *e, uint32_t pass)
{
    const gs_pass *const p = pass == GS_NONE ? NULL : &e->program->pass[pass];

    for (uint32_t i = 0; i < e->plan->residents; i++) {
        const gs_resident *const r = &e->plan->resident[i];
        const bool due = r->memory == GS_HOST || r->made_by == GS_NONE
                             ? p == NULL
                             : p != NULL && r->made_by >= p->first_stage && r->made_by - p->first_stage < p->stages;
        if (r->load && due && p != NULL)
            gs_exec__forget_ahead(e); /* the ring is needed */
        if (r->load && due)
            GS_TRY(r->memory == GS_HOST ? load_on_host(e, r) : load_on_device(e, r));
    }
    return GS_OK;
}
