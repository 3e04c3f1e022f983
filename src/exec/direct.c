/* direct.c - chunks that a device reads past the host.
 *
 * Nobody on the host sees these bytes, and a chunk whose indices are wrong has a kernel write anywhere. So the host
 * reads them once when the run opens, in the order of the files, as it does with chunks that come by way of it when
 * they come first: the checksum, then every index. From then on a mark stands for the bytes, which the device makes of
 * whatever it reads before a launch sees it.
 */
#include "exec/direct.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "exec/lane.h"
#include "exec/load.h"

/* A stretch of a file, through the ring. */
#define STRETCH_BYTES (16 * GS_MIB)

static uint64_t *mark_of(const gs_exec *e, const gs_task *t)
{
    const uint64_t set = t->file - e->program->arrays, parts = e->chunks.parts;
    return &e->direct.mark[(set * parts + t->target) * parts + t->operand];
}

/* ---- opening ---- */

/* Files, and the part of the arena that chunks go to. */
static gs_status open_files(gs_exec *e)
{
    gs_exec_device *const x = &e->on[0];
    uint64_t first = UINT64_MAX, end = 0;
    gs_status st;

    for (uint32_t i = 0; i < e->plan->tasks; i++) {
        const gs_task *const t = &e->plan->task[i];
        if (gs_task_driver(t) != GS_DRIVER_DIRECT)
            continue;
        first = GS_MIN(first, t->place.offset);
        end = GS_MAX(end, t->place.offset + t->bytes);
    }
    if ((st = gs_device_open_reads(x->device, x->arena + first, end - first)) != GS_OK)
        return st;
    for (uint32_t i = 0; i < e->plan->tasks && st == GS_OK; i++) {
        const gs_task *const t = &e->plan->task[i];
        if (gs_task_driver(t) == GS_DRIVER_DIRECT && e->direct.file[t->file] == GS_NONE)
            st = gs_device_add_file(x->device, e->files.file[t->file].path, &e->direct.file[t->file]);
    }
    return st;
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
    gs_status st = gs_exec__read_now(e, load[0]->file, load[0]->source.offset, ring,
                                     last->source.offset + last->bytes - load[0]->source.offset);

    for (uint32_t i = 0; i < count && st == GS_OK; i++) {
        const gs_task *const t = load[i];
        const uint8_t *const data = ring + (t->source.offset - load[0]->source.offset);
        const gs_resident chunk = {.file = t->file, .bytes = t->bytes, .target = t->target, .operand = t->operand};
        if (i > 0 && t->source.offset == load[i - 1]->source.offset)
            continue;
        if ((st = gs_exec__check_loaded(e, &chunk, data)) == GS_OK)
            *mark_of(e, t) = gs_fingerprint64(data, t->bytes);
    }
    return st;
}

static gs_status check_all(gs_exec *e, const gs_task *const *load, uint32_t count)
{
    const uint64_t most = GS_MIN(STRETCH_BYTES, e->region_bytes[GS_REGION_RING]);
    gs_status st = GS_OK;

    for (uint32_t first = 0, end; first < count && st == GS_OK; first = end) {
        const gs_task *const begin = load[first];
        for (end = first + 1; end < count && load[end]->file == begin->file; end++) {
            const uint64_t before = load[end - 1]->source.offset, at = load[end]->source.offset;
            if ((at != before && at != before + load[end - 1]->bytes) ||
                at + load[end]->bytes - begin->source.offset > most)
                break;
        }
        st = check_stretch(e, load + first, end - first);
    }
    return st;
}

static gs_status check_chunks(gs_exec *e)
{
    const gs_task **const load = gs_malloc_array((size_t)e->plan->tasks + 1, sizeof(*load));
    uint32_t count = 0;

    if (load == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: the list of chunks that a device reads");
    for (uint32_t i = 0; i < e->plan->tasks; i++)
        if (gs_task_driver(&e->plan->task[i]) == GS_DRIVER_DIRECT)
            load[count++] = &e->plan->task[i];
    qsort(load, count, sizeof(*load), by_place);
    const gs_status st = check_all(e, load, count);
    gs_free(load);
    return st;
}

gs_status gs_exec__open_direct(gs_exec *e)
{
    const uint64_t chunks = (uint64_t)e->chunks.sets * e->chunks.parts * e->chunks.parts;
    gs_exec_direct *const s = &e->direct;
    gs_status st;

    if (!e->plan->loads)
        return GS_OK;
    s->mark = gs_calloc(chunks, sizeof(*s->mark));
    s->file = gs_malloc_array(e->files.count, sizeof(*s->file));
    if (s->mark == NULL || s->file == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: the marks of chunks");
    memset(s->file, 0xff, e->files.count * sizeof(*s->file));
    st = open_files(e);
    return st == GS_OK ? check_chunks(e) : st;
}

void gs_exec__close_direct(gs_exec *e)
{
    gs_free(e->direct.mark);
    gs_free(e->direct.file);
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
