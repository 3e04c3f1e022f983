/* limits_loads.c - how fast a device reads a file past the host, by the calls that a run makes. */
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/size.h"
#include "device/device.h"
#include "io/disk_probe.h"
#include "train/limits.h"

#define LARGE_BYTES (8 * GS_MIB)
#define SMALL_BYTES (16 * GS_BLOCK_BYTES)
#define READS_MOST 512u /* of a size */
#define ROUNDS 3        /* of which the shortest counts */

typedef struct loads {
    gs_device *device;
    int fd;              /* of the file, by way of the host */
    uint64_t file_bytes;
    uint32_t file;       /* the device's number of it */
    uint8_t *arena;      /* GS_DEVICE_READS places of LARGE_BYTES */
    uint8_t *host;       /* LARGE_BYTES */
    uint64_t mark[READS_MOST];
} loads;

static uint64_t offset_of(const loads *s, uint64_t i, uint32_t reads)
{
    return gs_align_down(s->file_bytes / reads * i, GS_BLOCK_BYTES);
}

/* What the file has where the reads will be. */
static gs_status find_marks(loads *s, uint64_t bytes, uint32_t reads)
{
    for (uint32_t i = 0; i < reads; i++) {
        uint64_t got = 0;
        while (got < bytes) {
            const ssize_t n = pread(s->fd, s->host + got, bytes - got, (off_t)(offset_of(s, i, reads) + got));
            if (n <= 0)
                return gs_fail(GS_EIO, "the file for measuring reads past the host cannot be read");
            got += (uint64_t)n;
        }
        s->mark[i] = gs_fingerprint64(s->host, bytes);
    }
    return GS_OK;
}

/* A read's place is that of the one GS_DEVICE_READS before it, which is over when it begins. */
static gs_status read_all(const loads *s, uint64_t bytes, uint32_t reads)
{
    uint64_t number[GS_DEVICE_READS] = {0};
    gs_status st = GS_OK;

    for (uint32_t i = 0; i < reads && st == GS_OK; i++) {
        const uint32_t place = i % GS_DEVICE_READS;
        const gs_device_read r = {.file = s->file, .offset = offset_of(s, i, reads), .bytes = bytes,
                                  .to = s->arena + place * LARGE_BYTES, .mark = s->mark[i]};
        st = gs_device_begin_read(s->device, &r, &number[place]);
    }
    for (uint32_t k = 0; k < GS_MIN(reads, GS_DEVICE_READS) && st == GS_OK; k++) {
        bool done = false;
        st = gs_device_poll_read(s->device, number[k], true, &done);
    }
    return st;
}

/* Seconds of one of as many reads of `bytes` as the file has room for, with others under way. */
static gs_status time_reads(loads *s, uint64_t bytes, double *seconds)
{
    const uint32_t reads = (uint32_t)GS_MIN(s->file_bytes / bytes, (uint64_t)READS_MOST);
    gs_status st = find_marks(s, bytes, reads);

    *seconds = 1e30;
    for (int round = 0; round < ROUNDS && st == GS_OK; round++) {
        const double begin = gs_now();
        st = read_all(s, bytes, reads);
        *seconds = GS_MIN(*seconds, (gs_now() - begin) / reads);
    }
    return st;
}

static gs_status measure(gs_limits *l, loads *s, const char *path)
{
    double large = 0, small = 0;
    gs_status st;

    if ((st = gs_device_open_reads(s->device, s->arena, GS_DEVICE_READS * LARGE_BYTES)) != GS_OK ||
        (st = gs_device_add_file(s->device, path, &s->file)) != GS_OK ||
        (st = time_reads(s, LARGE_BYTES, &large)) != GS_OK || (st = time_reads(s, SMALL_BYTES, &small)) != GS_OK)
        return st;
    const double bps = (double)LARGE_BYTES / large;
    l->link[GS_LINK_FROM_DISK] = (gs_link){bps, GS_MAX(small - (double)SMALL_BYTES / bps, 0)};
    return GS_OK;
}

static gs_status take_memory(loads *s)
{
    void *arena = NULL;
    const gs_device_memory m = {.arena_bytes = GS_DEVICE_READS * LARGE_BYTES, .aligned = true};
    const gs_status st = gs_device_take_memory(s->device, &m, &arena);

    s->arena = arena;
    if (st == GS_OK && (s->host = gs_alloc_pages(LARGE_BYTES)) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for measuring reads past the host");
    return st;
}

gs_status gs_limits_measure_loads(gs_limits *l, gs_device *d, const char *dir, uint64_t bytes)
{
    gs_disk_probe probe = {.sync_fd = -1};
    char path[48];
    double written;
    loads *const s = gs_calloc(1, sizeof(*s));
    gs_status st;

    l->link[GS_LINK_FROM_DISK] = (gs_link){0, 0};
    if (s == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for measuring reads past the host");
    if ((st = gs_disk_probe_open(&probe, dir, bytes, GS_IO_AUTO, 0, 0, LARGE_BYTES)) != GS_OK)
        goto done;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", probe.sync_fd); /* the file has no other name */
    *s = (loads){.device = d, .fd = probe.sync_fd, .file_bytes = bytes};
    if ((st = gs_device_probe_reads(d, path)) == GS_OK && (st = gs_disk_probe_write(&probe, &written)) == GS_OK &&
        (st = take_memory(s)) == GS_OK)
        st = measure(l, s, path);
    if (st == GS_EUNSUPPORTED)
        st = GS_OK; /* it cannot */
    gs_device_give_memory(d);
done:
    gs_disk_probe_close(&probe);
    gs_free_pages(s->host, LARGE_BYTES);
    gs_free(s);
    return st;
}
