#include "train/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/philox.h"
#include "base/size.h"
#include "device/device.h" /* gs_device_measure_* */
#include "io/disk_probe.h"

/* ---- the processors ------------------------------------------------------ */

/* Tall and thin, as a tile of vertices times a layer's weights is. */
const uint32_t gs_limits_gemm_shape[GS_LIMIT_GEMMS][3] = {
    {8192, 256, 64}, {8192, 64, 256}, {8192, 128, 128}, {8192, 602, 64}, {8192, 64, 16}};
static const uint32_t gather_width[GS_LIMIT_GATHERS] = {16, 64, 256};
#define EDGE_COUNT 1000000u
#define EDGE_SECONDS 0.2
#define LINK_BYTES (64 * GS_MIB)         /* of a large copy */
#define LINK_STRIDE (4 * GS_BLOCK_BYTES) /* from one small copy to the next, which are no neighbours */
#define LINK_RUNS 5
#define GATHER_TABLE_BYTES (64 * GS_MIB) /* beyond any cache that a core has to itself */

void gs_limits_make_chunk(uint16_t *target, uint32_t *start, uint16_t *index, uint32_t targets, uint32_t degree)
{
    uint32_t word[4];

    for (uint32_t t = 0; t < targets; t++)
        target[t] = (uint16_t)(t * (GS_LIMITS_ROWS / targets));
    for (uint32_t t = 0; t <= targets; t++)
        start[t] = t * degree;
    for (uint32_t k = 0; k < targets * degree; k++) {
        if (k % 4 == 0)
            gs_philox4x32(word, (const uint32_t[4]){k, 1, 0, 0}, (const uint32_t[2]){17, 0});
        index[k] = (uint16_t)(word[k % 4] % GS_LIMITS_ROWS);
    }
}

/* Sums of one chunk, over and over; the best time. */
static gs_status measure_edges(gs_device *d, uint32_t degree, uint32_t width, double *edges_per_second)
{
    const uint32_t targets = EDGE_COUNT / degree < GS_LIMITS_ROWS ? EDGE_COUNT / degree : GS_LIMITS_ROWS;
    const double until = gs_now() + EDGE_SECONDS;
    double best = 1e30;
    GS_ENDS(gs_arena_free) gs_arena memory = {0};
    uint16_t *const target = gs_arena_take(&memory, targets, sizeof(*target)),
             *const index = gs_arena_take(&memory, (uint64_t)targets * degree, sizeof(*index));
    uint32_t *const start = gs_arena_take(&memory, targets + 1, sizeof(*start));
    float *const operand = gs_arena_take(&memory, (uint64_t)GS_LIMITS_ROWS * width, sizeof(float)),
          *const acc = gs_arena_take(&memory, (uint64_t)GS_LIMITS_ROWS * width, sizeof(float));

    GS_NEED(!memory.is_short, "out of memory for measuring edge sums");
    gs_limits_make_chunk(target, start, index, targets, degree);
    const gs_edge_launch l = {.edges = {.index_bytes = 2, .targets = targets, .target = target, .start = start,
                                        .index = index},
                              .operand = operand, .acc = acc, .width = width};
    for (int run = 0; run < 3 || gs_now() < until; run++) {
        const double begin = gs_now();
        GS_TRY(gs_device_run_edges(d, &l));
        best = GS_MIN(best, gs_now() - begin);
    }
    *edges_per_second = (double)targets * degree / best;
    return GS_OK;
}

static gs_status measure_all_edges(gs_device *d, gs_limits *l)
{
    static const uint32_t degree[] = {2, 16, 128}, width[] = {16, 64, 256};

    for (uint32_t i = 0; i < GS_LIMIT_EDGES; i++) {
        l->found.edges[i].degree = degree[i / GS_ARRAY_LEN(width)];
        l->found.edges[i].width = width[i % GS_ARRAY_LEN(width)];
        GS_TRY(measure_edges(d, l->found.edges[i].degree, l->found.edges[i].width,
                             &l->found.edges[i].edges_per_second));
    }
    return GS_OK;
}

/* Seconds of a copy of `bytes` between two buffers of LINK_BYTES, one every `stride` bytes; of several times all, the
 * shortest. */
static double time_copies(gs_device *d, uint8_t *to, const uint8_t *from, uint64_t bytes, uint64_t stride)
{
    const uint64_t copies = LINK_BYTES / stride;
    double best = 1e30;

    for (int run = 0; run < LINK_RUNS; run++) {
        const double begin = gs_now();
        for (uint64_t i = 0; i < copies; i++)
            (void)gs_device_transfer(d, GS_DEVICE_FROM_HOST, NULL, to + i * stride, from + i * stride, bytes);
        best = GS_MIN(best, gs_now() - begin);
    }
    return best / (double)copies;
}

uint64_t gs_limits_pick(uint64_t *bits, uint64_t rows)
{
    uint64_t picked = 0;

    for (uint64_t w = 0; w < rows / 64; w++) {
        uint32_t r[4];
        gs_philox4x32(r, (const uint32_t[4]){(uint32_t)w, 2, 0, 0}, (const uint32_t[2]){17, 0});
        bits[w] = (uint64_t)r[0] << 32 | r[1];
        picked += (uint64_t)__builtin_popcountll(bits[w]);
    }
    return picked;
}

/* Bytes a second of rows that are copied one by one; of several times, the best. */
static gs_status measure_picks(gs_device *d, uint8_t *to, const uint8_t *from, double *bps)
{
    const uint64_t rows = LINK_BYTES / GS_LIMITS_PICKED_ROW;
    GS_FREED uint64_t *const bits = gs_malloc_array(rows / 64, sizeof(*bits));
    double best = 1e30;

    GS_NEED(bits != NULL, "out of memory for measuring copies");
    const uint64_t picked = gs_limits_pick(bits, rows);
    const gs_rows_launch launch = {.to = to, .from = from, .bits = bits, .rows = rows,
                                   .row_bytes = GS_LIMITS_PICKED_ROW};
    for (int run = 0; run < LINK_RUNS; run++) {
        const double begin = gs_now();
        GS_TRY(gs_device_send_rows(d, &launch));
        best = GS_MIN(best, gs_now() - begin);
    }
    *bps = (double)(picked * GS_LIMITS_PICKED_ROW) / best;
    return GS_OK;
}

/* Devices that share the processors copy with one thread each, and all ways alike. Runs of blocks take longer than
 * their bytes do in a large copy. */
static gs_status measure_links(gs_device *d, gs_limits *l)
{
    uint8_t *const from = gs_alloc_pages(LINK_BYTES), *const to = gs_alloc_pages(LINK_BYTES);
    gs_status st = GS_OK;

    if (from == NULL || to == NULL) {
        st = gs_fail(GS_ENOMEM, "out of memory for measuring copies");
        goto done;
    }
    memset(from, 1, LINK_BYTES);
    memset(to, 1, LINK_BYTES);
    const double bps = LINK_BYTES / time_copies(d, to, from, LINK_BYTES, LINK_BYTES);
    const double block = time_copies(d, to, from, GS_BLOCK_BYTES, LINK_STRIDE);
    for (int w = 0; w <= GS_LINK_BETWEEN; w++)
        l->link[w] = (gs_link){bps, GS_MAX(0, block - GS_BLOCK_BYTES / bps)};
    st = measure_picks(d, to, from, &l->found.pick_bps);
done:
    gs_free_pages(from, LINK_BYTES);
    gs_free_pages(to, LINK_BYTES);
    return st;
}

gs_status gs_limits_measure_device(gs_limits *out, unsigned threads)
{
    gs_limits l = *out;
    GS_ENDS(gs_device_close_at) gs_device *d = NULL;

    GS_TRY(gs_device_open(&d, "cpu", threads));
    snprintf(l.found.device, sizeof(l.found.device), "%s", gs_device_name(d));
    GS_TRY(gs_device_measure_copy(d, &l.found.copy_bps));
    GS_TRY(measure_links(d, &l));
    for (uint32_t i = 0; i < GS_LIMIT_GEMMS; i++) {
        const uint32_t *const s = gs_limits_gemm_shape[i];
        l.found.gemm[i].rows = s[0];
        l.found.gemm[i].in = s[1];
        l.found.gemm[i].out = s[2];
        GS_TRY(gs_device_measure_gemm(d, s[0], s[1], s[2], &l.found.gemm[i].flops));
    }
    for (uint32_t i = 0; i < GS_LIMIT_GATHERS; i++) {
        const uint32_t width = l.found.gather[i].width = gather_width[i];
        GS_TRY(gs_device_measure_gather(d, GATHER_TABLE_BYTES / (width * sizeof(float)), width,
                                        &l.found.gather[i].bps));
    }
    GS_TRY(measure_all_edges(d, &l));
    *out = l;
    return GS_OK;
}

/* ---- the disk ------------------------------------------------------------ */

#define READ_SECONDS 2.5
#define RANDOM_SECONDS 0.5
#define DEPTH_SECONDS 0.2
#define WRITE_SECONDS 2.0      /* at least, */
#define WRITE_SECONDS_MOST 8.0 /* and no pass begins after this */
#define WRITE_PASSES 3         /* at least, where the disk is not too slow */
#define WRITE_PASSES_MOST 32

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
        GS_TRY(gs_disk_probe_write(p, &rate[passes]));
        passes++;
    }
    qsort(rate, passes, sizeof(rate[0]), gs_by_value);
    *bps = rate[passes / 2];
    return GS_OK;
}

static gs_status measure_sequential(gs_disk_probe *p, double *read_bps, double *write_bps)
{
    double r, w;

    GS_TRY(measure_write(p, &w));
    GS_TRY(gs_disk_probe_check(p));
    GS_TRY(gs_disk_probe_read(p, false, 0, READ_SECONDS, &r));
    *read_bps = r;
    *write_bps = w;
    return GS_OK;
}

static gs_status check_size(const char *dir, uint64_t bytes)
{
    if (bytes >= GS_MIB)
        return GS_OK;
    return gs_fail(GS_EINVAL, "%s: a file of %lu bytes cannot measure a disk; give at least 1M", dir, bytes);
}

gs_status gs_limits_disk(double *read_bps, double *write_bps, const char *dir, uint64_t bytes, uint64_t memory)
{
    GS_ENDS(gs_disk_probe_close) gs_disk_probe p = {.sync_fd = -1};

    GS_TRY(check_size(dir, bytes));
    GS_TRY(gs_disk_probe_open(&p, dir, gs_align_down(bytes, GS_BLOCK_BYTES), GS_IO_AUTO, 0, 0, memory));
    return measure_sequential(&p, read_bps, write_bps);
}

/* The same reads with fewer and more of them under way than the engine's depth. */
static gs_status measure_depths(gs_limits *l, const char *dir, uint64_t bytes)
{
    static const uint32_t depth[GS_LIMIT_DEPTHS] = {1, 8, 128};

    for (uint32_t d = 0; d < GS_LIMIT_DEPTHS; d++) {
        GS_ENDS(gs_disk_probe_close) gs_disk_probe p = {.sync_fd = -1};
        double ignored;
        l->found.depth[d] = depth[d];
        GS_TRY(gs_disk_probe_open(&p, dir, gs_align_down(bytes / 4, GS_BLOCK_BYTES), GS_IO_AUTO, depth[d], 0,
                                  GS_PROBE_RING_BYTES));
        GS_TRY(gs_disk_probe_write(&p, &ignored));
        for (uint32_t i = 0; i < GS_LIMIT_SIZES; i++)
            GS_TRY(gs_disk_probe_read(&p, true, l->found.random_read[i].bytes, DEPTH_SECONDS,
                                      &l->found.random_read[i].at_depth[d]));
    }
    return GS_OK;
}

gs_status gs_limits_measure_disk(gs_limits *out, const char *dir, uint64_t bytes)
{
    gs_limits l = *out;
    GS_ENDS(gs_disk_probe_close) gs_disk_probe p = {.sync_fd = -1};

    GS_TRY(check_size(dir, bytes));
    GS_TRY(gs_disk_probe_open(&p, dir, gs_align_down(bytes, GS_BLOCK_BYTES), GS_IO_AUTO, 0, 0, GS_PROBE_RING_BYTES));
    snprintf(l.found.io, sizeof(l.found.io), "%s", gs_io_backend_name(p.io));
    GS_TRY(measure_sequential(&p, &l.found.disk_read_bps, &l.found.disk_write_bps));
    for (uint32_t i = 0; i < GS_LIMIT_SIZES; i++) {
        l.found.random_read[i].bytes = GS_BLOCK_BYTES << (2 * i);
        GS_TRY(gs_disk_probe_read(&p, true, l.found.random_read[i].bytes, RANDOM_SECONDS, &l.found.random_read[i].bps));
    }
    l.found.disk_direct = gs_io_is_direct(p.io, p.file);
    gs_disk_probe_close(&p);
    GS_TRY(measure_depths(&l, dir, bytes));
    *out = l;
    return GS_OK;
}
