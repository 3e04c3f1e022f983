/* limits_disk.c - the disk's part of the ceilings, through gs_io. */
#include "train/limits.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/size.h"
#include "io/disk_probe.h"

#define READ_SECONDS 2.5
#define RANDOM_SECONDS 0.5
#define DEPTH_SECONDS 0.2
#define WRITE_SECONDS 2.0      /* at least, */
#define WRITE_SECONDS_MOST 8.0 /* and no pass begins after this */
#define WRITE_PASSES 3         /* at least, where the disk is not too slow */
#define WRITE_PASSES_MOST 32

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first pass turns reserved blocks into written ones, as the first epoch of
 * a run does; later ones overwrite, as all others do. The median is of those. */
static gs_status measure_write(gs_disk_probe *p, double *bps)
{
    double rate[WRITE_PASSES_MOST];
    const double start = gs_now();
    uint32_t passes = 0;

    for (double passed = 0; passes < WRITE_PASSES_MOST; passed = gs_now() - start) {
        const bool enough = passed >= WRITE_SECONDS && passes >= WRITE_PASSES;
        if (enough || (passed >= WRITE_SECONDS_MOST && passes > 0))
            break;
        const gs_status st = gs_disk_probe_write(p, &rate[passes]);
        if (st != GS_OK)
            return st;
        passes++;
    }
    qsort(rate, passes, sizeof(rate[0]), by_value);
    *bps = rate[passes / 2];
    return GS_OK;
}

static gs_status measure_sequential(gs_disk_probe *p, double *read_bps, double *write_bps)
{
    double r, w;
    gs_status st;

    if ((st = measure_write(p, &w)) != GS_OK || (st = gs_disk_probe_check(p)) != GS_OK ||
        (st = gs_disk_probe_read(p, false, 0, READ_SECONDS, &r)) != GS_OK)
        return st;
    *read_bps = r;
    *write_bps = w;
    return GS_OK;
}

static gs_status check_size(const char *dir, uint64_t bytes)
{
    if (bytes >= GS_MIB)
        return GS_OK;
    return gs_fail(GS_EINVAL, "%s: a file of %llu bytes cannot measure a disk; give at least 1M", dir,
                   (unsigned long long)bytes);
}

gs_status gs_limits_disk(double *read_bps, double *write_bps, const char *dir, uint64_t bytes, uint64_t memory)
{
    gs_disk_probe p;
    gs_status st;

    if ((st = check_size(dir, bytes)) != GS_OK ||
        (st = gs_disk_probe_open(&p, dir, gs_align_down(bytes, GS_BLOCK_BYTES), GS_IO_AUTO, 0, 0, memory)) != GS_OK)
        return st;
    st = measure_sequential(&p, read_bps, write_bps);
    gs_disk_probe_close(&p);
    return st;
}

/* The same reads with fewer and more of them under way than the engine's depth. */
static gs_status measure_depths(gs_limits *l, const char *dir, uint64_t bytes)
{
    static const uint32_t depth[GS_LIMITS_DEPTHS] = {1, 8, 128};
    gs_status st = GS_OK;

    for (uint32_t d = 0; d < GS_LIMITS_DEPTHS && st == GS_OK; d++) {
        gs_disk_probe p;
        double ignored;
        l->depth[d] = depth[d];
        st = gs_disk_probe_open(&p, dir, gs_align_down(bytes / 4, GS_BLOCK_BYTES), GS_IO_AUTO, depth[d], 0,
                                GS_PROBE_RING_BYTES);
        if (st != GS_OK)
            return st;
        st = gs_disk_probe_write(&p, &ignored);
        for (uint32_t i = 0; i < GS_LIMITS_RUNS && st == GS_OK; i++)
            st = gs_disk_probe_read(&p, true, l->random_read[i].bytes, DEPTH_SECONDS, &l->at_depth[i][d]);
        gs_disk_probe_close(&p);
    }
    return st;
}

gs_status gs_limits_measure_disk(gs_limits *out, const char *dir, uint64_t bytes)
{
    gs_limits l = *out;
    gs_disk_probe p;
    gs_status st;

    if ((st = check_size(dir, bytes)) != GS_OK ||
        (st = gs_disk_probe_open(&p, dir, gs_align_down(bytes, GS_BLOCK_BYTES), GS_IO_AUTO, 0, 0,
                                 GS_PROBE_RING_BYTES)) != GS_OK)
        return st;
    snprintf(l.io_name, sizeof(l.io_name), "%s", gs_io_backend_name(p.io));
    if ((st = measure_sequential(&p, &l.disk_read_bps, &l.disk_write_bps)) != GS_OK)
        goto done;
    for (uint32_t i = 0; i < GS_LIMITS_RUNS; i++) {
        l.random_read[i].bytes = GS_BLOCK_BYTES << (2 * i);
        st = gs_disk_probe_read(&p, true, l.random_read[i].bytes, RANDOM_SECONDS, &l.random_read[i].bps);
        if (st != GS_OK)
            goto done;
    }
    l.disk_direct = gs_io_is_direct(p.io, p.file);
done:
    gs_disk_probe_close(&p);
    if (st == GS_OK && (st = measure_depths(&l, dir, bytes)) == GS_OK)
        *out = l;
    return st;
}
