/* limits_gpu.c - ceilings of a device with memory of its own, measured by the calls that a run makes. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/size.h"
#include "device/device.h"
#include "io/disk_probe.h"
#include "train/limits.h"

/* ---- reads past the host ------------------------------------------------- */

#define LARGE_BYTES (8 * GS_MIB)
#define SMALL_BYTES (16 * GS_BLOCK_BYTES)
#define READS_MOST 512u /* of a size */
#define LOAD_ROUNDS 3        /* of which the shortest counts */

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

    for (uint32_t i = 0; i < reads; i++) {
        const uint32_t place = i % GS_DEVICE_READS;
        const gs_device_read r = {.file = s->file, .offset = offset_of(s, i, reads), .bytes = bytes,
                                  .to = s->arena + place * LARGE_BYTES, .mark = s->mark[i]};
        GS_TRY(gs_device_begin_read(s->device, &r, &number[place]));
    }
    for (uint32_t k = 0; k < GS_MIN(reads, GS_DEVICE_READS); k++) {
        bool done = false;
        GS_TRY(gs_device_poll_read(s->device, number[k], true, &done));
    }
    return GS_OK;
}

/* Seconds of one of as many reads of `bytes` as the file has room for, with others under way. */
static gs_status time_reads(loads *s, uint64_t bytes, double *seconds)
{
    const uint32_t reads = (uint32_t)GS_MIN(s->file_bytes / bytes, (uint64_t)READS_MOST);
    gs_status st = find_marks(s, bytes, reads);

    *seconds = 1e30;
    for (int round = 0; round < LOAD_ROUNDS && st == GS_OK; round++) {
        const double begin = gs_now();
        st = read_all(s, bytes, reads);
        *seconds = GS_MIN(*seconds, (gs_now() - begin) / reads);
    }
    return st;
}

static gs_status measure_loads(gs_limits *l, loads *s, const char *path)
{
    double large = 0, small = 0;

    GS_TRY(gs_device_open_reads(s->device, s->arena, GS_DEVICE_READS * LARGE_BYTES));
    GS_TRY(gs_device_add_file(s->device, path, &s->file));
    GS_TRY(time_reads(s, LARGE_BYTES, &large));
    GS_TRY(time_reads(s, SMALL_BYTES, &small));
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
    GS_FREED loads *const s = gs_calloc(1, sizeof(*s));
    gs_status st;

    l->link[GS_LINK_FROM_DISK] = (gs_link){0, 0};
    GS_NEED(s != NULL, "out of memory for measuring reads past the host");
    if ((st = gs_disk_probe_open(&probe, dir, bytes, GS_IO_AUTO, 0, 0, LARGE_BYTES)) != GS_OK)
        goto done;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", probe.sync_fd); /* the file has no other name */
    *s = (loads){.device = d, .fd = probe.sync_fd, .file_bytes = bytes};
    if ((st = gs_device_probe_reads(d, path)) == GS_OK && (st = gs_disk_probe_write(&probe, &written)) == GS_OK &&
        (st = take_memory(s)) == GS_OK)
        st = measure_loads(l, s, path);
    if (st == GS_EUNSUPPORTED)
        st = GS_OK; /* it cannot */
    gs_device_give_memory(d);
done:
    gs_disk_probe_close(&probe);
    gs_free_pages(s->host, LARGE_BYTES);
    return st;
}

/* ---- copies, sums, products ---------------------------------------------- */

#define COPY_BYTES (64 * GS_MIB) /* of the largest copy */
#define COPIES_MOST 256u         /* that are asked for one behind the other */
#define ROUNDS 3                 /* of which the shortest counts */
#define LAUNCHES 500u
#define EDGES_MOST 1000000u
#define EDGES_LEAST 16384u
#define PRODUCT_SECONDS 50e-6    /* that a product's rows are chosen for, by the device's attributes */

static const uint32_t degree[] = {2, 16, 128}, width[] = {16, 64, 256};

/* Devices that one spec names. */
typedef struct several {
    gs_device *device[GS_DEVICE_COUNT_MOST];
    uint32_t devices;
} several;

static gs_status open_several(several *s, const char *spec)
{
    const uint32_t named = GS_MAX(gs_device_count(spec), 1);

    for (s->devices = 0; s->devices < GS_MIN(named, GS_DEVICE_COUNT_MOST); s->devices++)
        GS_TRY(gs_device_open_with(&s->device[s->devices],
                                   &(gs_device_config){.spec = spec, .index = s->devices}));
    return GS_OK;
}

static void give_memory(several *s)
{
    for (uint32_t i = 0; i < s->devices; i++)
        gs_device_quiet(s->device[i]);
    for (uint32_t i = 0; i < s->devices; i++)
        gs_device_give_memory(s->device[i]);
}

static void close_several(several *s)
{
    give_memory(s);
    for (uint32_t i = 0; i < s->devices; i++)
        gs_device_close(s->device[i]);
}

/* ---- copies ---- */

typedef struct copier {
    gs_device *device;
    const gs_device *peer;
    char *to, *from;
    gs_device_way way;
} copier;

static gs_status wait_for_transfers(gs_device *d, gs_device_way way)
{
    uint64_t number = 0;
    bool done = false;
    GS_TRY(gs_device_mark_transfers(d, way, &number));
    return gs_device_poll_transfers(d, way, number, true, &done);
}

static gs_status copy_all(const copier *c, uint64_t bytes, uint32_t copies)
{
    for (uint32_t i = 0; i < copies; i++) {
        const uint64_t at = (uint64_t)i * bytes % COPY_BYTES;
        GS_TRY(gs_device_transfer(c->device, c->way, c->peer, c->to + at, c->from + at, bytes));
    }
    return wait_for_transfers(c->device, c->way);
}

static gs_status time_copies(const copier *c, uint64_t bytes, double *bps)
{
    const uint32_t copies = (uint32_t)GS_MIN(COPY_BYTES / bytes, (uint64_t)COPIES_MOST);
    double best = 1e30;
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = gs_now();
        GS_TRY(copy_all(c, bytes, copies));
        best = GS_MIN(best, gs_now() - begin);
    }
    *bps = (double)copies * (double)bytes / best;
    return GS_OK;
}

/* A way's copies of all sizes; what a copy takes beside its bytes is that of the smallest. */
static double *copy_bps(gs_limits *l, int size, gs_link_way way)
{
    return way == GS_LINK_TO_DEVICE     ? &l->found.copies[size].in_bps
           : way == GS_LINK_FROM_DEVICE ? &l->found.copies[size].out_bps
                                        : &l->found.copies[size].between_bps;
}

static gs_status measure_way(gs_limits *l, gs_link_way way, const copier *c)
{
    static const uint64_t bytes[GS_LIMIT_COPIES] = {4096, 65536, GS_MIB, 16 * GS_MIB, COPY_BYTES};
    double most = 0;
    for (int i = 0; i < GS_LIMIT_COPIES; i++) {
        l->found.copies[i].bytes = bytes[i];
        GS_TRY(time_copies(c, bytes[i], copy_bps(l, i, way)));
        most = GS_MAX(most, *copy_bps(l, i, way));
    }
    const double small = (double)bytes[0] / *copy_bps(l, 0, way);
    l->link[way] = (gs_link){most, GS_MAX(small - (double)bytes[0] / most, 0)};
    return GS_OK;
}

/* Rows that the device fetches one by one from pinned memory: bits before them say which. */
static gs_status measure_picks(gs_limits *l, gs_device *d, char *to, char *host)
{
    const uint64_t rows = COPY_BYTES / 2 / GS_LIMITS_PICKED_ROW, picked = gs_limits_pick((void *)host, rows);
    const gs_rows_launch launch = {.to = to, .from = host + COPY_BYTES / 2, .bits = (void *)host, .rows = rows,
                                   .row_bytes = GS_LIMITS_PICKED_ROW};
    double best = 1e30;

    for (int round = 0; round < ROUNDS; round++) {
        const double begin = gs_now();
        GS_TRY(gs_device_send_rows(d, &launch));
        GS_TRY(wait_for_transfers(d, GS_DEVICE_FROM_HOST));
        best = GS_MIN(best, gs_now() - begin);
    }
    l->found.pick_bps = (double)(picked * GS_LIMITS_PICKED_ROW) / best;
    return GS_OK;
}

static gs_status measure_copies(gs_limits *l, several *s)
{
    char *const host = gs_alloc_pages(COPY_BYTES);
    void *arena[2] = {NULL, NULL};
    gs_status st = host == NULL ? gs_fail(GS_ENOMEM, "out of memory for measuring copies") : GS_OK;

    for (uint32_t i = 0; i < GS_MIN(s->devices, 2u) && st == GS_OK; i++) {
        const gs_device_range pinned = {i == 0 ? host : NULL, i == 0 ? COPY_BYTES : 0};
        const gs_device_memory m = {.arena_bytes = COPY_BYTES, .host = {pinned}};
        st = gs_device_take_memory(s->device[i], &m, &arena[i]);
    }
    if (st == GS_OK && (st = gs_device_join(s->device, GS_MIN(s->devices, 2u))) == GS_OK)
        st = measure_way(l, GS_LINK_TO_DEVICE, &(copier){s->device[0], NULL, arena[0], host, GS_DEVICE_FROM_HOST});
    if (st == GS_OK)
        st = measure_picks(l, s->device[0], arena[0], host);
    if (st == GS_OK)
        st = measure_way(l, GS_LINK_FROM_DEVICE, &(copier){s->device[0], NULL, host, arena[0], GS_DEVICE_TO_HOST});
    if (st == GS_OK && s->devices > 1)
        st = measure_way(l, GS_LINK_BETWEEN,
                         &(copier){s->device[1], s->device[0], arena[1], arena[0], GS_DEVICE_FROM_PEER});
    give_memory(s);
    gs_free_pages(host, COPY_BYTES);
    return st;
}

/* ---- sums of rows, and launches ---- */

/* A program whose stages are the sums of rows of each width. */
typedef struct sums_program {
    gs_array array[GS_ARRAY_LEN(width)];
    gs_reg reg[GS_ARRAY_LEN(width)];
    gs_edge_reg row[GS_ARRAY_LEN(width)];
    gs_stage stage[GS_ARRAY_LEN(width)];
    gs_program program;
} sums_program;

static void make_sums(sums_program *p)
{
    memset(p, 0, sizeof(*p));
    for (uint32_t i = 0; i < GS_ARRAY_LEN(width); i++) {
        p->array[i] = (gs_array){.dtype = GS_F32, .width = width[i], .store_id = -1};
        p->reg[i] = (gs_reg){.kind = GS_REG_SUM, .dtype = GS_F32, .width = width[i], .array = GS_NONE};
        p->row[i] = (gs_edge_reg){.kind = GS_EDGE_OPERAND, .width = width[i], .array = i};
        p->stage[i] = (gs_stage){.sums = 1, .sum = {{.kind = GS_SUM_ADD}}, .regs = 1, .reg = &p->reg[i],
                                 .edge_regs = 1, .edge_reg = &p->row[i]};
    }
    p->program = (gs_program){.arrays = GS_ARRAY_LEN(width), .array = p->array, .stages = GS_ARRAY_LEN(width),
                              .stage = p->stage, .logits = GS_NONE};
}

/* On the device: rows, sums, and the edges of a chunk. */
typedef struct sums {
    gs_device *device;
    char *operand, *acc, *image; /* of the arena */
    char *host;                  /* the edges, as they are made */
    uint64_t rows_bytes, image_bytes;
    uint32_t edges;
} sums;

/* A chunk of two intervals of GS_LIMITS_ROWS rows; `edges` of it, so many a target, to operands anywhere. */
static gs_status make_chunk(const sums *s, gs_edges *e, uint32_t edges, uint32_t of_target)
{
    const uint32_t targets = GS_MAX(GS_MIN(edges / of_target, GS_LIMITS_ROWS), 1);
    const uint64_t start_at = 2ull * GS_LIMITS_ROWS, index_at = start_at + 4ull * (GS_LIMITS_ROWS + 16);

    gs_limits_make_chunk((void *)s->host, (void *)(s->host + start_at), (void *)(s->host + index_at), targets,
                         of_target);
    *e = (gs_edges){.index_bytes = 2, .targets = targets, .target = s->image,
                    .start = (const uint32_t *)(const void *)(s->image + start_at), .index = s->image + index_at,
                    .operand_rows = GS_LIMITS_ROWS, .target_rows = GS_LIMITS_ROWS,
                    .end = (uint64_t)targets * of_target};
    GS_TRY(gs_device_transfer(s->device, GS_DEVICE_FROM_HOST, NULL, s->image, s->host, s->image_bytes));
    return wait_for_transfers(s->device, GS_DEVICE_FROM_HOST);
}

/* Seconds of one of `launches`, asked for one behind the other; the shortest of several times. */
static gs_status time_launches(gs_device *d, const gs_edge_launch *l, uint32_t launches, double *seconds)
{
    *seconds = 1e30;
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = gs_now();
        bool done = false;
        for (uint32_t i = 0; i < launches; i++)
            GS_TRY(gs_device_run_edges(d, l));
        GS_TRY(gs_device_poll(d, gs_device_last_launch(d), true, &done));
        *seconds = GS_MIN(*seconds, (gs_now() - begin) / launches);
    }
    return GS_OK;
}

static gs_status measure_chunks(gs_limits *l, const sums *s)
{
    gs_edge_launch launch = {.operand = s->operand, .acc = (float *)(void *)s->acc, .width = width[0]};

    GS_TRY(make_chunk(s, &launch.edges, 1, 1));
    GS_TRY(time_launches(s->device, &launch, LAUNCHES, &l->found.launch_seconds));
    l->edge_count = s->edges;
    for (uint32_t i = 0; i < GS_LIMIT_EDGES; i++) {
        double seconds = 0;
        l->found.edges[i].degree = degree[i / GS_ARRAY_LEN(width)];
        l->found.edges[i].width = launch.width = width[i % GS_ARRAY_LEN(width)];
        if (i % GS_ARRAY_LEN(width) == 0)
            GS_TRY(make_chunk(s, &launch.edges, s->edges, l->found.edges[i].degree));
        GS_TRY(time_launches(s->device, &launch, 1, &seconds));
        l->found.edges[i].edges_per_second = (double)launch.edges.end / seconds;
    }
    return GS_OK;
}

/* As many as a device reads the rows of in 0.1 ms, by its attributes. */
static uint32_t edges_for(const gs_device *d)
{
    gs_gpu_speed speed;
    if (!gs_device_speed(d, &speed))
        return EDGES_MOST;
    return (uint32_t)GS_MAX(GS_MIN(speed.memory_bps * 1e-4 / 256, (double)EDGES_MOST), (double)EDGES_LEAST);
}

static gs_status measure_sums(gs_limits *l, gs_device *d)
{
    sums s = {.device = d, .edges = edges_for(d), .rows_bytes = 4ull * GS_LIMITS_ROWS * width[GS_ARRAY_LEN(width) - 1]};
    GS_FREED sums_program *const p = gs_calloc(1, sizeof(*p));
    void *arena = NULL;
    gs_status st;

    s.image_bytes = gs_align_up(2ull * GS_LIMITS_ROWS + 4ull * (GS_LIMITS_ROWS + 16) + 2ull * s.edges, 4096);
    s.host = gs_alloc_pages(s.image_bytes);
    if (p == NULL || s.host == NULL) {
        st = gs_fail(GS_ENOMEM, "out of memory for measuring edge sums");
        goto done;
    }
    make_sums(p);
    const gs_device_memory m = {.arena_bytes = 2 * s.rows_bytes + s.image_bytes};
    if ((st = gs_device_prepare(d, &p->program)) != GS_OK || (st = gs_device_take_memory(d, &m, &arena)) != GS_OK ||
        (st = gs_device_join(&d, 1)) != GS_OK)
        goto done;
    s.operand = arena;
    s.acc = s.operand + s.rows_bytes;
    s.image = s.acc + s.rows_bytes;
    if ((st = gs_device_zero(d, arena, 2 * s.rows_bytes)) == GS_OK)
        st = measure_chunks(l, &s);
done:
    gs_device_quiet(d);
    gs_device_give_memory(d);
    gs_free_pages(s.host, s.image_bytes);
    return st;
}

/* ---- products ---- */

static uint32_t rows_for(const gs_device *d, uint32_t in, uint32_t out)
{
    gs_gpu_speed speed = {.product_flops = 1e13};
    (void)gs_device_speed(d, &speed);
    return (uint32_t)GS_MAX(GS_MIN(speed.product_flops * PRODUCT_SECONDS / (2.0 * in * out), 1e6), 256);
}

/* Every shape with factors as they are; the fastest one with rounded ones. */
static gs_status measure_products(gs_limits *l, const char *spec)
{
    for (unsigned p = 0; p < 1 + GS_LIMITS_ROUNDED; p++) {
        GS_ENDS(gs_device_close_at) gs_device *d = NULL;
        GS_TRY(gs_device_open_with(&d, &(gs_device_config){.spec = spec, .matmul = (gs_matmul)p}));
        for (uint32_t i = 0; i < GS_LIMIT_GEMMS; i++) {
            const uint32_t *const shape = gs_limits_gemm_shape[i];
            const uint32_t rows = rows_for(d, shape[1], shape[2]);
            double flops = 0;
            GS_TRY(gs_device_measure_gemm(d, rows, shape[1], shape[2], &flops));
            if (p > 0) {
                l->rounded[p - 1] = GS_MAX(l->rounded[p - 1], flops);
                continue;
            }
            l->found.gemm[i].rows = rows;
            l->found.gemm[i].in = shape[1];
            l->found.gemm[i].out = shape[2];
            l->found.gemm[i].flops = flops;
        }
    }
    return GS_OK;
}

gs_status gs_limits_measure_gpu(gs_limits *out, const char *spec, const char *dir)
{
    gs_limits l = *out;
    several s = {.devices = 0};
    gs_status st = open_several(&s, spec);

    if (st == GS_OK) {
        snprintf(l.found.device, sizeof(l.found.device), "%s", gs_device_name(s.device[0]));
        if ((st = gs_device_measure_copy(s.device[0], &l.found.copy_bps)) == GS_OK &&
            (st = measure_copies(&l, &s)) == GS_OK)
            st = measure_sums(&l, s.device[0]);
        if (st == GS_OK && dir != NULL)
            st = gs_limits_measure_loads(&l, s.device[0], dir, GS_LIMITS_LOAD_BYTES);
    }
    close_several(&s);
    if (st == GS_OK)
        st = measure_products(&l, spec);
    for (int i = 0; i < GS_LIMIT_GATHERS && st == GS_OK; i++) { /* those of the largest degree, whose sums are few */
        const int at = GS_LIMIT_EDGES - GS_LIMIT_GATHERS + i;
        l.found.gather[i].width = l.found.edges[at].width;
        l.found.gather[i].bps = l.found.edges[at].edges_per_second * l.found.edges[at].width * sizeof(float);
    }
    if (st == GS_OK)
        *out = l;
    return st;
}
