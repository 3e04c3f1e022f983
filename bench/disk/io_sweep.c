/* io_sweep.c - which depth and which piece size does this disk want?
 *
 *     io_sweep DIR [MIB] [SECONDS] [uring|threads]
 *
 * Writes a file of MIB (default 1024) in DIR, proves that it reads back as
 * written, then reads it in pieces of 256K to 2M at depths of 4 to 128 for
 * SECONDS (default 0.7) each. One line a piece size, GB/s; then random reads at the engine's
 * own depth. Each figure is a median over fifths of its time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "io/disk_probe.h"

static const uint64_t pieces[] = {256 * GS_KIB, 512 * GS_KIB, GS_MIB, 2 * GS_MIB};
static const uint32_t depths[] = {4, 8, 16, 32, 64, 128};

static gs_status one(double *bps, const char *dir, uint64_t bytes, gs_io_backend backend, uint32_t depth,
                     uint64_t piece, double seconds, bool say)
{
    gs_disk_probe p;
    double written;
    gs_status st = gs_disk_probe_open(&p, dir, bytes, backend, depth, piece, GS_PROBE_RING_BYTES);
    if (st != GS_OK)
        return st;
    if ((st = gs_disk_probe_write(&p, &written)) != GS_OK || (st = gs_disk_probe_check(&p)) != GS_OK)
        goto done;
    if (say)
        printf("%s, %s, file of %llu MiB\n", gs_io_backend_name(p.io),
               gs_io_is_direct(p.io, p.file) ? "direct" : "buffered", (unsigned long long)(bytes / GS_MIB));
    st = gs_disk_probe_read(&p, false, 0, seconds, bps);
done:
    gs_disk_probe_close(&p);
    return st;
}

static gs_status sweep(const char *dir, uint64_t bytes, gs_io_backend backend, double seconds)
{
    gs_status st;
    bool say = true;
    for (size_t i = 0; i < GS_ARRAY_LEN(pieces); i++) {
        double bps[GS_ARRAY_LEN(depths)];
        for (size_t k = 0; k < GS_ARRAY_LEN(depths); k++, say = false)
            if ((st = one(&bps[k], dir, bytes, backend, depths[k], pieces[i], seconds, say)) != GS_OK)
                return st;
        if (i == 0) {
            printf("%8s", "piece");
            for (size_t k = 0; k < GS_ARRAY_LEN(depths); k++)
                printf("  depth %3u", depths[k]);
            printf("   GB/s\n");
        }
        printf("%7lluK", (unsigned long long)(pieces[i] / GS_KIB));
        for (size_t k = 0; k < GS_ARRAY_LEN(depths); k++)
            printf("  %9.2f", bps[k] * 1e-9);
        printf("\n");
        fflush(stdout);
    }
    return GS_OK;
}

static gs_status random_runs(const char *dir, uint64_t bytes, gs_io_backend backend, double seconds)
{
    gs_disk_probe p;
    double bps;
    gs_status st = gs_disk_probe_open(&p, dir, bytes, backend, 0, 0, GS_PROBE_RING_BYTES);
    if (st != GS_OK)
        return st;
    for (int pass = 0; pass < 3; pass++) {
        if ((st = gs_disk_probe_write(&p, &bps)) != GS_OK)
            goto done;
        printf("write, pass %d  %9.2f GB/s\n", pass + 1, bps * 1e-9);
    }
    for (uint64_t run = 4 * GS_KIB; run <= GS_MIB; run *= 4) {
        if ((st = gs_disk_probe_read(&p, true, run, seconds, &bps)) != GS_OK)
            goto done;
        printf("random %4lluK   %9.2f GB/s\n", (unsigned long long)(run / GS_KIB), bps * 1e-9);
    }
done:
    gs_disk_probe_close(&p);
    return st;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: io_sweep DIR [MIB] [SECONDS] [uring|threads]\n");
        return 2;
    }
    const uint64_t bytes = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1024) * GS_MIB;
    const double seconds = argc > 3 ? strtod(argv[3], NULL) : 0.7;
    const bool threads = argc > 4 && strcmp(argv[4], "threads") == 0;
    const gs_io_backend backend = threads ? GS_IO_THREADS : argc > 4 ? GS_IO_URING : GS_IO_AUTO;
    if (sweep(argv[1], bytes, backend, seconds) != GS_OK || random_runs(argv[1], bytes, backend, seconds) != GS_OK) {
        fprintf(stderr, "io_sweep: %s\n", gs_last_error());
        return 1;
    }
    return 0;
}
