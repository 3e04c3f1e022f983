/* cost.c - seconds of a piece of work, and the guesses where nothing was measured. */
#include "cost/cost.h"

#include <math.h>
#include <string.h>

/* What a byte that the disk moves takes of a computation beside it: measured on two cores, 9 to 29 picoseconds. */
#define BESIDE 12e-12

/* Products of a few edges by the matrix of their type take so many times as long an operation as those of many rows. */
#define BATCHES 3

/* Guess for a link that nobody has measured: half of PCIe 4 with 16 lanes, and the time to tell a driver of a copy. */
#define COPY_BPS 10e9
#define COPY_SECONDS 3e-6
/* And for the disk, to wherever it reads. */
#define DISK_BPS 2e9
#define DISK_SECONDS 15e-6
/* Where bytes seem to take no time, as all copies that were seen were small. */
#define COPY_BPS_MOST 1e12

_Static_assert(GS_WORK_KINDS - GS_WORK_LINKS == (int)GS_LINK_WAYS, "each way of a link is a kind of work");

/* Seconds for each of an amount on one core of a server of 2020; the first does not get shorter with more threads. */
static const double guess[GS_WORK_KINDS][GS_WORK_AMOUNTS] = {
    [GS_WORK_MEMORY] = {3e-6, 0.5e-9, BESIDE},
    [GS_WORK_SUM] = {8e-6, 1e-9, 0.1e-9, 0.2e-9, 0.2e-9, BESIDE},
    [GS_WORK_EDGES] = {15e-6, 4e-9, 0.4e-9, 0.2e-9, 3e-9, 1.0 / 20e9, BESIDE},
    [GS_WORK_VERTEX] = {5e-6, 0.3e-9, 1.0 / 60e9, 1.0 / 40e9, 0.3e-9, 3e-9, BESIDE},
    [GS_WORK_CHECK] = {0.5e-6, 1.0 / 12e9},
    [GS_WORK_SUBMIT] = {6e-6},
    [GS_WORK_TO_DEVICE] = {COPY_SECONDS, 1 / COPY_BPS},
    [GS_WORK_FROM_DEVICE] = {COPY_SECONDS, 1 / COPY_BPS},
    [GS_WORK_BETWEEN] = {COPY_SECONDS, 1 / COPY_BPS},
    [GS_WORK_FROM_DISK] = {DISK_SECONDS, 1 / DISK_BPS},
};

const char *gs_cost_source_name(gs_cost_source s)
{
    static const char *const name[] = {"default", "ceiling", "fitted"};
    return name[s];
}

void gs_cost_defaults(gs_cost *out, uint32_t threads)
{
    memset(out, 0, sizeof(*out));
    for (int k = 0; k < GS_WORK_KINDS; k++)
        for (uint32_t a = 0; a < GS_WORK_AMOUNTS; a++) { /* what a kind does not name is 0 */
            /* One thread drives and verifies. */
            const bool alone = a == 0 || a == gs_work_beside((gs_work_kind)k) || k == GS_WORK_CHECK ||
                               k >= GS_WORK_SUBMIT || threads == 0;
            out->seconds[k][a] = guess[k][a] / (alone ? 1 : threads);
        }
    out->read_bps = DISK_BPS;
    out->write_bps = 1.5e9;
    out->request_seconds = DISK_SECONDS;
    out->latency_seconds = 100e-6;
}

double gs_cost_seconds(const gs_cost *c, const gs_work *w)
{
    double seconds = 0;
    for (uint32_t a = 0; a < gs_work_amounts(w->kind); a++)
        seconds += c->seconds[w->kind][a] * w->amount[a];
    return seconds;
}

gs_link gs_cost_link(const gs_cost *c, gs_link_way way)
{
    const double *const seconds = c->seconds[GS_WORK_LINKS + way];
    return (gs_link){seconds[1] > 1 / COPY_BPS_MOST ? 1 / seconds[1] : COPY_BPS_MOST, seconds[0]};
}

double gs_cost_seconds_beside(const gs_cost *c, const gs_work *w, double busy, double bps)
{
    const uint32_t beside = gs_work_beside(w->kind);
    const double alone = gs_cost_seconds(c, w),
                 taken = beside < GS_WORK_AMOUNTS ? c->seconds[w->kind][beside] * bps : 0;
    /* A second of the disk takes `taken` of it; a model of a disk that takes it all is none. */
    const double longer = taken < 0.75 ? alone / (1 - taken) : 4 * alone;
    return longer <= busy ? longer : alone + (taken < 0.75 ? taken : 0.75) * (busy > 0 ? busy : 0);
}

static double larger(double a, double b) { return a > b ? a : b; }
static double smaller(double a, double b) { return a < b ? a : b; }

/* The chunks that `bench limits` sums: as tasks of an epoch are fitted. */
static void take_edges(gs_cost *c, const gs_limits *l)
{
    gs_fit f;

    memset(&f, 0, sizeof(f));
    for (int i = 0; i < GS_LIMITS_EDGES; i++) {
        const double degree = l->edges[i].degree, width = l->edges[i].width;
        const double count = l->edge_count > 0 ? l->edge_count : 1e6,
                     targets = smaller(count / larger(degree, 1), 65536), edges = targets * degree;
        if (!(l->edges[i].edges_per_second > 0))
            return;
        const gs_work w = {GS_WORK_SUM,
                           {1, edges, edges * width, 65536 * (1 - exp(-edges / 65536)) * width, targets * width}};
        const double seconds = edges / l->edges[i].edges_per_second;
        gs_fit_add(&f, &w, seconds, seconds, GS_FIT_TASKS);
    }
    gs_fit_solve(&f, c);
    c->source[GS_WORK_SUM] = GS_COST_CEILING;
}

static void take_links(gs_cost *c, const gs_limits *l)
{
    for (int w = 0; w < GS_LINK_WAYS; w++) {
        if (!(l->link[w].bps > 0))
            continue;
        c->seconds[GS_WORK_LINKS + w][0] = l->link[w].request_seconds;
        c->seconds[GS_WORK_LINKS + w][1] = 1 / l->link[w].bps;
        c->source[GS_WORK_LINKS + w] = GS_COST_CEILING;
    }
}

static void take_disk(gs_cost *c, const gs_limits *l)
{
    double request = 1;
    if (!(l->disk_read_bps > 0) || !(l->disk_write_bps > 0))
        return;
    c->read_bps = l->disk_read_bps;
    c->write_bps = l->disk_write_bps;
    for (int i = 0; i < GS_LIMITS_RUNS; i++) {
        const double bytes = (double)l->random_read[i].bytes, bps = l->random_read[i].bps;
        if (bps > 0 && bps < c->read_bps && bytes / bps - bytes / c->read_bps < request)
            request = bytes / bps - bytes / c->read_bps;
    }
    c->request_seconds = request < 1e-3 ? request : c->request_seconds;
    const double first = (double)l->random_read[0].bytes;
    if (l->depth[0] == 1 && l->at_depth[0][0] > 0 && l->at_depth[0][0] < c->read_bps)
        c->latency_seconds = first / l->at_depth[0][0] - first / c->read_bps;
    c->disk_source = GS_COST_CEILING;
    c->seconds[GS_WORK_FROM_DISK][0] = c->request_seconds; /* until that is measured */
    c->seconds[GS_WORK_FROM_DISK][1] = 1 / c->read_bps;
}

/* A narrow product's time is mostly that of its floats, which are an amount of their own: the fastest shape says what
 * operations take. Gradients' products run as fast as others (fitted to epochs: 0.9 to 1.1 times as long). */
static void take_products(gs_cost *c, const gs_limits *l, unsigned rounding)
{
    double fastest = 0;

    for (int i = 0; i < GS_LIMITS_GEMMS; i++)
        fastest = larger(fastest, l->gemm[i].flops);
    if (rounding > 0 && rounding <= GS_LIMITS_ROUNDED && l->rounded[rounding - 1] > 0)
        fastest = l->rounded[rounding - 1];
    if (!(fastest > 0) || !(l->copy_bps > 0))
        return;
    const double moved = sizeof(float) / l->copy_bps / 2; /* a copied float is read and written */
    c->seconds[GS_WORK_VERTEX][2] = c->seconds[GS_WORK_VERTEX][3] = 1 / fastest;
    c->seconds[GS_WORK_EDGES][5] = BATCHES / fastest;
    c->seconds[GS_WORK_VERTEX][1] = smaller(c->seconds[GS_WORK_VERTEX][1], moved);
    c->seconds[GS_WORK_VERTEX][4] = moved;
    c->source[GS_WORK_VERTEX] = GS_COST_CEILING;
    c->seconds[GS_WORK_MEMORY][1] = moved;
    c->source[GS_WORK_MEMORY] = GS_COST_CEILING;
}

/* Kernels that work of a kind is, by and large (cost_gpu.c has the same). */
static void take_launches(gs_cost *c, const gs_limits *l)
{
    static const double kernels[] = {[GS_WORK_MEMORY] = 1, [GS_WORK_SUM] = 2, [GS_WORK_EDGES] = 2,
                                     [GS_WORK_VERTEX] = 3};
    for (int k = GS_WORK_MEMORY; k <= GS_WORK_VERTEX && l->launch_seconds > 0; k++)
        c->seconds[k][0] = kernels[k] * l->launch_seconds;
}

void gs_cost_take_limits(gs_cost *c, const gs_limits *l, unsigned rounding)
{
    take_disk(c, l);
    take_links(c, l);
    take_launches(c, l);
    take_products(c, l, rounding);
    take_edges(c, l);
}
