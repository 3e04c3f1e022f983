#include "io/disk_probe.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/philox.h"
#include "base/size.h"
#include "base/temporary.h"

#define RUN_BYTES (4 * GS_MIB) /* of a sequential request, as a large interval gives them */
#define WINDOWS 5              /* parts of a measurement whose median counts */
#define BLOCK_WORDS (GS_BLOCK_BYTES / sizeof(uint64_t))

/* Incompressible, and no two blocks of the file alike: random words made once,
 * and each block's place written over its first word. */
static void fill_ring(gs_disk_probe *p)
{
    uint32_t key[2];
    gs_random_key(key, 0, GS_RANDOM_GENERATE);
    uint32_t *const word = (uint32_t *)(void *)p->ring;
    for (uint64_t i = 0; i < p->ring_bytes / 16; i++) {
        const uint32_t counter[4] = {(uint32_t)i, (uint32_t)(i >> 32), 0, 0};
        gs_philox4x32(&word[4 * i], counter, key);
    }
}

static void stamp(uint8_t *memory, uint64_t offset, uint64_t bytes)
{
    uint64_t *const word = (uint64_t *)(void *)memory;
    for (uint64_t block = 0; block < bytes / GS_BLOCK_BYTES; block++)
        word[block * BLOCK_WORDS] = offset + block * GS_BLOCK_BYTES;
}

/* Requests of a measurement: as many as the ring holds, but no more than keep
 * the kernel's queue full while completed ones are handed out again. */
static uint32_t request_count(const gs_disk_probe *p, uint64_t run_bytes)
{
    return (uint32_t)GS_MIN(p->ring_bytes / run_bytes, 512u);
}

static gs_status open_scratch(gs_disk_probe *p, const char *dir)
{
    char name[GS_TEMPORARY_BYTES];

    gs_temporary_name(name, "limits");
    GS_FREED char *const path = gs_path_join(dir, name);
    GS_NEED(path != NULL, "%s: out of memory", dir);
    GS_TRY(gs_io_add_file(p->io, &p->file, path, GS_IO_CREATE));
    p->sync_fd = open(path, O_RDONLY | O_CLOEXEC);
    const int err = errno;
    unlink(path); /* from here on nobody can leave it behind */
    return p->sync_fd < 0 ? gs_fail_errno(err, "%s: cannot be opened", path)
                          : gs_io_set_size(p->io, p->file, p->file_bytes);
}

gs_status gs_disk_probe_open(gs_disk_probe *out, const char *dir, uint64_t bytes, gs_io_backend backend,
                             uint32_t depth, uint64_t piece_bytes, uint64_t ring_bytes)
{
    GS_ENDS(gs_disk_probe_close) gs_disk_probe p = {.sync_fd = -1, .file_bytes = bytes, .ring_bytes = ring_bytes};

    if (bytes == 0 || bytes % GS_BLOCK_BYTES != 0)
        return gs_fail(GS_EINVAL, "%s: a file of %lu bytes to measure the disk with: give a multiple of %lu", dir,
                       bytes, GS_BLOCK_BYTES);
    if ((p.ring = gs_alloc_pages(p.ring_bytes)) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for %lu MiB of buffers", p.ring_bytes / GS_MIB);
    fill_ring(&p);
    const struct gs_io_buffer buffer = {.base = p.ring, .bytes = p.ring_bytes};
    const gs_io_config config = {.backend = backend, .requests = 512, .depth = depth, .piece_bytes = piece_bytes,
                                 .buffers = &buffer, .buffer_count = 1};
    GS_TRY(gs_io_open(&p.io, &config));
    GS_TRY(open_scratch(&p, dir));
    *out = p;
    p = (gs_disk_probe){.sync_fd = -1}; /* now the caller's */
    return GS_OK;
}

void gs_disk_probe_close(gs_disk_probe *p)
{
    gs_io_close(p->io);
    if (p->sync_fd >= 0)
        close(p->sync_fd);
    if (p->ring != NULL)
        gs_free_pages(p->ring, p->ring_bytes);
    *p = (gs_disk_probe){.sync_fd = -1};
}

/* --- a stream of requests --- */

typedef struct stream {
    gs_disk_probe *probe;
    gs_probe_pattern pattern;
    uint64_t run_bytes;
    uint64_t left;             /* requests still to be submitted */
    uint64_t done_bytes;
    bool check;                /* compare what was read with what was written */
    gs_io_request request[512]; /* by tag; one part of the ring each */
} stream;

static uint64_t place_of(const stream *s, uint64_t number)
{
    const uint64_t places = GS_MAX(s->probe->file_bytes / s->run_bytes, 1u);
    uint32_t key[2], bits[4];
    if (s->pattern != GS_PROBE_RANDOM_READ)
        return number % gs_div_up(s->probe->file_bytes, s->run_bytes);
    gs_random_key(key, 1, GS_RANDOM_GENERATE);
    gs_philox4x32(bits, (const uint32_t[4]){(uint32_t)number, (uint32_t)(number >> 32), 0, 0}, key);
    return (((uint64_t)bits[0] << 32) | bits[1]) % places;
}

static gs_status submit_next(stream *s, uint32_t tag)
{
    gs_disk_probe *const p = s->probe;
    gs_io_request *const r = &s->request[tag];
    const uint64_t offset = place_of(s, p->next) * s->run_bytes;

    *r = (gs_io_request){.file = p->file, .write = s->pattern == GS_PROBE_WRITE, .offset = offset,
                         .length = GS_MIN(s->run_bytes, p->file_bytes - offset),
                         .memory = p->ring + tag * s->run_bytes, .tag = tag};
    if (r->write)
        stamp(r->memory, offset, r->length);

    GS_TRY(gs_io_submit(p->io, r));
    p->next++;
    s->left--;
    return GS_OK;
}

/* Each block carries its own place: an answer from elsewhere shows. */
static gs_status check_blocks(const gs_io_request *r)
{
    const uint64_t *const word = r->memory;
    for (uint64_t block = 0; block < r->length / GS_BLOCK_BYTES; block++)
        if (word[block * BLOCK_WORDS] != r->offset + block * GS_BLOCK_BYTES)
            return gs_fail(GS_EIO, "the disk gave other bytes than were written at %lu of the measurement's file",
                           r->offset + block * GS_BLOCK_BYTES);
    return GS_OK;
}

/* Waits for some completions and submits as many again. */
static gs_status stream_turn(stream *s)
{
    gs_io_completion done[32];
    const uint32_t n = gs_io_reap(s->probe->io, done, GS_ARRAY_LEN(done), true);
    gs_status st = GS_OK;

    for (uint32_t i = 0; i < n; i++) {
        const gs_io_request *const r = &s->request[done[i].tag];
        if (done[i].status != GS_OK)
            st = gs_io_explain(s->probe->io, r, &done[i]);
        else if (s->check)
            st = check_blocks(r);
        if (st != GS_OK)
            return st;
        s->done_bytes += r->length;
        if (s->left > 0 && (st = submit_next(s, (uint32_t)done[i].tag)) != GS_OK)
            return st;
    }
    gs_io_reap(s->probe->io, NULL, 0, false); /* hand the new ones to the kernel now */
    return GS_OK;
}

static gs_status stream_start(stream *s)
{
    const uint32_t count = request_count(s->probe, s->run_bytes);
    for (uint32_t tag = 0; tag < count && s->left > 0; tag++)
        GS_TRY(submit_next(s, tag));
    gs_io_reap(s->probe->io, NULL, 0, false);
    return GS_OK;
}

/* Nothing may point into the ring when the next stream begins. */
static void stream_drain(stream *s)
{
    gs_io_completion done;
    while (gs_io_outstanding(s->probe->io) > 0)
        gs_io_reap(s->probe->io, &done, 1, true);
}

/* The whole file once. */
static gs_status run_whole(gs_disk_probe *p, gs_probe_pattern pattern, bool check)
{
    GS_ENDS(stream_drain) stream s = {.probe = p, .pattern = pattern, .run_bytes = RUN_BYTES, .check = check};
    gs_status st;

    s.left = gs_div_up(p->file_bytes, s.run_bytes);
    p->next = 0;
    if ((st = stream_start(&s)) == GS_OK)
        while (gs_io_outstanding(p->io) > 0 && (st = stream_turn(&s)) == GS_OK) {
        }
    return st;
}

gs_status gs_disk_probe_write(gs_disk_probe *p, double *bps)
{
    const double start = gs_now();

    GS_TRY(run_whole(p, GS_PROBE_WRITE, false));
    if (fsync(p->sync_fd) != 0)
        return gs_fail_errno(errno, "the file that measures the disk cannot be synced");
    *bps = (double)p->file_bytes / (gs_now() - start);
    return GS_OK;
}

gs_status gs_disk_probe_check(gs_disk_probe *p) { return run_whole(p, GS_PROBE_READ, true); }

gs_status gs_disk_probe_read(gs_disk_probe *p, bool random, uint64_t run_bytes, double seconds, double *bps)
{
    GS_ENDS(stream_drain) stream s = {.probe = p, .pattern = random ? GS_PROBE_RANDOM_READ : GS_PROBE_READ,
                                      .left = UINT64_MAX, .run_bytes = run_bytes == 0 ? RUN_BYTES : run_bytes};
    double rate[WINDOWS];

    assert(s.run_bytes % GS_BLOCK_BYTES == 0 && s.run_bytes <= p->ring_bytes);
    GS_TRY(stream_start(&s));
    for (int w = 0; w < WINDOWS; w++) {
        const uint64_t before = s.done_bytes;
        const double start = gs_now();
        double now = start;
        while (now - start < seconds / WINDOWS || s.done_bytes == before) {
            GS_TRY(stream_turn(&s));
            now = gs_now();
        }
        rate[w] = (double)(s.done_bytes - before) / (now - start);
    }
    qsort(rate, WINDOWS, sizeof(rate[0]), gs_by_value);
    *bps = rate[WINDOWS / 2];
    return GS_OK;
}
