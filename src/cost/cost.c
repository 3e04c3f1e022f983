/* cost.c - seconds of a piece of work, and the guesses where nothing was measured. */
#include "cost/cost.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/outfile.h"
#include "base/record.h"
#include "base/size.h"

/* ---- work -------------------------------------------------------------- */

/* How many amounts each kind of work has. */

static const uint32_t amounts[GS_WORK_KINDS] = {
    [GS_WORK_MEMORY] = 3, [GS_WORK_SUM] = 6,       [GS_WORK_EDGES] = 7,
    [GS_WORK_VERTEX] = 7, [GS_WORK_CHECK] = 2,     [GS_WORK_SUBMIT] = 1,
    [GS_WORK_TO_DEVICE] = 2, [GS_WORK_FROM_DEVICE] = 2, [GS_WORK_BETWEEN] = 2,
    [GS_WORK_FROM_DISK] = 2,
};

uint32_t gs_work_beside(gs_work_kind k)
{
    return k <= GS_WORK_VERTEX ? amounts[k] - 1 : GS_WORK_AMOUNTS;
}

static uint32_t amounts_of(gs_work_kind k)
{
    return amounts[k];
}

/* ---- least squares ----------------------------------------------------- */

/* Coefficients by least squares over tasks that were timed.
 *
 * As DAHA fits its cost model on the machine's own runs. Amounts are scaled to equal
 * size before the equations are solved, as they differ by nine orders of magnitude. A
 * coefficient that would be negative is held at 0 and the rest solved again (seven unknowns: no
 * more is needed), and a small ridge holds what the observations do not determine at its prior,
 * times what makes the prior as a whole fit: a machine that others use is slower in all.
 *
 * The tasks of one model on one store hardly tell an operation from a number loaded, and what tells them apart is
 * less than seconds vary by. With a ridge of 1e-4 and the prior as it is, that noise shared the time out: after the
 * same run of 128 columns three times on a busy machine, rows of 512 columns took 0.50, 2.04 and 0.51 times as long as
 * those, and now 0.59, 0.62 and 0.51; they did take 0.6. More than this, and what a task takes beside its amounts
 * drowns.
 */

#define RIDGE 2e-3

void gs_fit_add(gs_fit *f, const gs_work *w, double seconds, double expected, double tasks)
{
    const uint32_t n = amounts_of(w->kind);
    if (!(seconds >= 0) || !isfinite(seconds) || !(expected > 0) || !isfinite(expected))
        return;
    f->tasks[w->kind] += tasks;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++)
            f->square[w->kind][i][j] += w->amount[i] * w->amount[j] / expected;
        f->product[w->kind][i] += w->amount[i] * seconds / expected;
    }
}

void gs_fit_add_newer(gs_fit *f, double share, const gs_fit *newer)
{
    for (int k = 0; k < GS_WORK_KINDS; k++) {
        f->tasks[k] = f->tasks[k] * share + newer->tasks[k];
        for (int i = 0; i < GS_WORK_AMOUNTS; i++) {
            for (int j = 0; j < GS_WORK_AMOUNTS; j++)
                f->square[k][i][j] = f->square[k][i][j] * share + newer->square[k][i][j];
            f->product[k][i] = f->product[k][i] * share + newer->product[k][i];
        }
    }
}

/* Gauss with partial pivoting; false where the matrix is singular. */
static bool solve(double a[GS_WORK_AMOUNTS][GS_WORK_AMOUNTS + 1], uint32_t n)
{
    for (uint32_t c = 0; c < n; c++) {
        uint32_t pivot = c;
        for (uint32_t r = c + 1; r < n; r++)
            pivot = fabs(a[r][c]) > fabs(a[pivot][c]) ? r : pivot;
        if (!(fabs(a[pivot][c]) > 1e-12))
            return false;
        for (uint32_t k = 0; k <= n; k++) {
            const double swap = a[c][k];
            a[c][k] = a[pivot][k];
            a[pivot][k] = swap;
        }
        for (uint32_t r = 0; r < n; r++) {
            const double by = r == c ? 0 : a[r][c] / a[c][c];
            for (uint32_t k = c; by != 0 && k <= n; k++)
                a[r][k] -= by * a[c][k];
        }
    }
    for (uint32_t c = 0; c < n; c++)
        a[c][n] /= a[c][c];
    return true;
}

/* How many times as long as the prior says the tasks took, by least squares. */
static double slower(const gs_fit *f, const double *prior, gs_work_kind k)
{
    double square = 0, product = 0;
    for (uint32_t i = 0; i < amounts_of(k); i++) {
        product += prior[i] * f->product[k][i];
        for (uint32_t j = 0; j < amounts_of(k); j++)
            square += prior[i] * prior[j] * f->square[k][i][j];
    }
    return product > 0 && square > 0 ? product / square : 1;
}

/* Solves for the amounts in `used`, which `prior` has; x of the others is 0. */
static bool solve_used(const gs_fit *f, const double *prior, gs_work_kind k, const bool *used, double *x)
{
    double a[GS_WORK_AMOUNTS][GS_WORK_AMOUNTS + 1], scale[GS_WORK_AMOUNTS];
    uint32_t at[GS_WORK_AMOUNTS], n = 0;

    for (uint32_t i = 0; i < amounts_of(k); i++)
        if (used[i]) {
            scale[n] = sqrt(f->square[k][i][i]);
            at[n++] = i;
        }
    for (uint32_t r = 0; r < n; r++) {
        for (uint32_t c = 0; c < n; c++)
            a[r][c] = f->square[k][at[r]][at[c]] / (scale[r] * scale[c]) + (r == c ? RIDGE : 0);
        a[r][n] = f->product[k][at[r]] / scale[r] + RIDGE * prior[at[r]] * scale[r];
    }
    memset(x, 0, GS_WORK_AMOUNTS * sizeof(*x));
    if (n == 0 || !solve(a, n))
        return false;
    for (uint32_t r = 0; r < n; r++)
        x[at[r]] = a[r][n] / scale[r];
    return true;
}

static bool fit_kind(const gs_fit *f, gs_cost *c, gs_work_kind k)
{
    const uint32_t n = amounts_of(k);
    const double times = slower(f, c->seconds[k], k);
    bool used[GS_WORK_AMOUNTS] = {false};
    double x[GS_WORK_AMOUNTS], prior[GS_WORK_AMOUNTS];

    for (uint32_t i = 0; i < n; i++) {
        used[i] = f->square[k][i][i] > 0;
        prior[i] = c->seconds[k][i] * times;
    }
    for (;;) {
        uint32_t worst = n;
        if (!solve_used(f, prior, k, used, x))
            return false;
        for (uint32_t i = 0; i < n; i++) /* by what it takes away, in seconds */
            if (x[i] < 0 &&
                (worst == n || x[i] * sqrt(f->square[k][i][i]) < x[worst] * sqrt(f->square[k][worst][worst])))
                worst = i;
        if (worst == n)
            break;
        used[worst] = false;
    }
    for (uint32_t i = 0; i < n; i++)
        if (f->square[k][i][i] > 0) /* what never occurred keeps its prior */
            c->seconds[k][i] = x[i];
    return true;
}

void gs_fit_solve(const gs_fit *f, gs_cost *c)
{
    for (int k = 0; k < GS_WORK_KINDS; k++)
        if (f->tasks[k] >= GS_FIT_TASKS && fit_kind(f, c, (gs_work_kind)k))
            c->source[k] = GS_COST_FITTED;
}

/* ---- what a GPU's attributes say --------------------------------------- */

/* Seconds of a piece of work on a GPU that nobody has measured, from its attributes. */

/* What of the attributes a run sees, guessed: of memory's rate for rows that are gathered, and for rows read one after
 * the other; of lanes that have work; of products of tall and thin matrices; of pinned copies, whose packets have
 * headers. */
#define GATHERED 0.75
#define STREAMED 0.85
#define BUSY_LANES 0.4
#define PRODUCTS 0.6
#define COPIES 0.85
/* Threads that compute exponentials, of those that multiply: 16 of 64 or 128 a processor. */
#define SPECIAL 6.0
/* Asking for a kernel takes some 3 us; a sum has up to two, a vertex program some more. */
#define KERNEL 3e-6
#define GPU_COPY_SECONDS 3e-6

/* Guess for rows that are copied one by one to a device on host memory: by one thread, which waits for each row. */
#define PICKED_BPS 4e9
/* And for those that a GPU fetches from the host's memory itself: of a copy's speed, as rows are short. */
#define PICKED_SHARE 0.5

/* The defaults for what a GPU does: of `out` all but what the disk and the thread that reads it do. All of `g` is
 * known. */
static void gpu_defaults(gs_cost *out, const gs_gpu_speed *g)
{
    const double gathered = sizeof(float) / (GATHERED * g->memory_bps),
                 streamed = sizeof(float) / (STREAMED * g->memory_bps), lane = 1 / (BUSY_LANES * g->lane_ops),
                 product = 1 / (PRODUCTS * g->product_flops), link = 1 / (COPIES * g->host_bps),
                 between = g->linked_bps > 0 ? 1 / (COPIES * g->linked_bps) : link;
    const double seconds[GS_WORK_LINKS + GS_LINK_WAYS][GS_WORK_AMOUNTS] = {
        [GS_WORK_MEMORY] = {KERNEL, streamed},
        /* an edge: its index; a target: its sums, read and written, where each has but a few edges of a chunk */
        [GS_WORK_SUM] = {2 * KERNEL, streamed, gathered, 0, 2 * streamed},
        [GS_WORK_EDGES] = {2 * KERNEL, streamed, lane, gathered, SPECIAL * lane, 1.5 * product},
        [GS_WORK_VERTEX] = {3 * KERNEL, lane, product, product, streamed, SPECIAL * lane},
        [GS_WORK_TO_DEVICE] = {GPU_COPY_SECONDS, link},
        [GS_WORK_FROM_DEVICE] = {GPU_COPY_SECONDS, link},
        [GS_WORK_BETWEEN] = {GPU_COPY_SECONDS, between},
    };
    for (int k = 0; k < GS_WORK_LINKS + GS_LINK_WAYS; k++)
        if (k != GS_WORK_CHECK && k != GS_WORK_SUBMIT && k != GS_WORK_FROM_DISK) /* the host's, the disk's */
            memcpy(out->seconds[k], seconds[k], sizeof(seconds[k]));
    out->pick_seconds = (1 / PICKED_SHARE - 1) * link;
}

/* ---- costs ------------------------------------------------------------- */

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
    out->pick_seconds = 1 / PICKED_BPS;
}

double gs_cost_seconds(const gs_cost *c, const gs_work *w)
{
    double seconds = 0;
    for (uint32_t a = 0; a < amounts_of(w->kind); a++)
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
    for (int i = 0; i < GS_LIMIT_EDGES; i++) {
        const double degree = l->found.edges[i].degree, width = l->found.edges[i].width;
        const double count = l->edge_count > 0 ? l->edge_count : 1e6,
                     targets = smaller(count / larger(degree, 1), 65536), edges = targets * degree;
        if (!(l->found.edges[i].edges_per_second > 0))
            return;
        const gs_work w = {GS_WORK_SUM,
                           {1, edges, edges * width, 65536 * (1 - exp(-edges / 65536)) * width, targets * width}};
        const double seconds = edges / l->found.edges[i].edges_per_second;
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
    const double copied = l->link[GS_LINK_TO_DEVICE].bps;
    if (l->found.pick_bps > 0 && copied > 0) /* beside what a byte takes in a long copy */
        c->pick_seconds = larger(1 / l->found.pick_bps - 1 / copied, 0);
}

static void take_disk(gs_cost *c, const gs_limits *l)
{
    double request = 1;
    if (!(l->found.disk_read_bps > 0) || !(l->found.disk_write_bps > 0))
        return;
    c->read_bps = l->found.disk_read_bps;
    c->write_bps = l->found.disk_write_bps;
    for (int i = 0; i < GS_LIMIT_SIZES; i++) {
        const double bytes = (double)l->found.random_read[i].bytes, bps = l->found.random_read[i].bps;
        if (bps > 0 && bps < c->read_bps && bytes / bps - bytes / c->read_bps < request)
            request = bytes / bps - bytes / c->read_bps;
    }
    c->request_seconds = request < 1e-3 ? request : c->request_seconds;
    const double first = (double)l->found.random_read[0].bytes, alone = l->found.random_read[0].at_depth[0];
    const double many = l->found.random_read[0].bps;
    c->block_seconds = many > 0 && many < c->read_bps ? fmin(first / many - first / c->read_bps, 1e-3) : 0;
    if (l->found.depth[0] == 1 && alone > 0 && alone < c->read_bps)
        c->latency_seconds = first / alone - first / c->read_bps;
    c->disk_source = GS_COST_CEILING;
    c->seconds[GS_WORK_FROM_DISK][0] = c->request_seconds; /* until that is measured */
    c->seconds[GS_WORK_FROM_DISK][1] = 1 / c->read_bps;
}

/* A narrow product's time is mostly that of its floats, which are an amount of their own: the fastest shape says what
 * operations take. Gradients' products run as fast as others (fitted to epochs: 0.9 to 1.1 times as long). */
static void take_products(gs_cost *c, const gs_limits *l, unsigned rounding)
{
    double fastest = 0;

    for (int i = 0; i < GS_LIMIT_GEMMS; i++)
        fastest = larger(fastest, l->found.gemm[i].flops);
    if (rounding > 0 && rounding <= GS_LIMITS_ROUNDED && l->rounded[rounding - 1] > 0)
        fastest = l->rounded[rounding - 1];
    if (!(fastest > 0) || !(l->found.copy_bps > 0))
        return;
    const double moved = sizeof(float) / l->found.copy_bps / 2; /* a copied float is read and written */
    c->seconds[GS_WORK_VERTEX][2] = c->seconds[GS_WORK_VERTEX][3] = 1 / fastest;
    c->seconds[GS_WORK_EDGES][5] = BATCHES / fastest;
    c->seconds[GS_WORK_VERTEX][1] = smaller(c->seconds[GS_WORK_VERTEX][1], moved);
    c->seconds[GS_WORK_VERTEX][4] = moved;
    c->source[GS_WORK_VERTEX] = GS_COST_CEILING;
    c->seconds[GS_WORK_MEMORY][1] = moved;
    c->source[GS_WORK_MEMORY] = GS_COST_CEILING;
}

/* Kernels that work of a kind is, by and large. */
static void take_launches(gs_cost *c, const gs_limits *l)
{
    static const double kernels[] = {[GS_WORK_MEMORY] = 1, [GS_WORK_SUM] = 2, [GS_WORK_EDGES] = 2,
                                     [GS_WORK_VERTEX] = 3};
    for (int k = GS_WORK_MEMORY; k <= GS_WORK_VERTEX && l->found.launch_seconds > 0; k++)
        c->seconds[k][0] = kernels[k] * l->found.launch_seconds;
}

/* Coefficients that a ceiling gives are taken from it; what it lacks stays. `rounding`: of products. */
static void take_limits(gs_cost *c, const gs_limits *l, unsigned rounding)
{
    take_disk(c, l);
    take_links(c, l);
    take_launches(c, l);
    take_products(c, l, rounding);
    take_edges(c, l);
}

/* ---- the record of a machine as JSON, read without trust ---------------- */

#define VERSION 5
#define FILE_MOST (1u << 20)
#define RATE_MOST 1e15 /* of anything, a second */
#define SLOWER_MOST 4.0
#define LINK_SECONDS_MOST 1.0 /* of telling a driver of a copy */

/* ---- which file ---------------------------------------------------------- */

/* Model name and number of processors. */
static void machine_name(char *out, size_t capacity)
{
    char model[GS_PROCESSOR_BYTES];

    gs_processor_name(model);
    snprintf(out, capacity, "%s, %u processors", model, gs_machine_cpus());
}

/* $XDG_CACHE_HOME/gnnstream or ~/.cache/gnnstream, made where `make`; NULL for neither. */
static char *cache_folder(bool make)
{
    const char *const cache = getenv("XDG_CACHE_HOME"), *const home = getenv("HOME");
    GS_FREED char *parent = NULL;
    char *folder = NULL;

    if (cache != NULL && cache[0] == '/')
        parent = gs_strdup(cache);
    else if (home != NULL && home[0] == '/')
        parent = gs_path_join(home, ".cache");
    if (parent != NULL && (!make || mkdir(parent, 0700) == 0 || gs_path_is_dir(parent)))
        folder = gs_path_join(parent, "gnnstream");
    if (folder != NULL && make && mkdir(folder, 0700) != 0 && !gs_path_is_dir(folder)) {
        gs_free(folder);
        folder = NULL;
    }
    return folder;
}

static char *record_path(const char *machine, const char *device, bool make)
{
    char key[256], name[64];
    GS_FREED char *const folder = cache_folder(make);

    if (folder == NULL)
        return NULL;
    snprintf(key, sizeof(key), "%s|%s", machine, device);
    snprintf(name, sizeof(name), "machine-%016lx.json", gs_hash64(key, strlen(key)));
    return gs_path_join(folder, name);
}

/* ---- fields -------------------------------------------------------------- */

/* Ways of copies, which runs are fitted to. The way from the disk to a device is measured alone. */
#define COPY_WAYS GS_LINK_FROM_DISK

#define REALS(of, member, key, ...) GS_FIELD(of, member, REAL, key, .least = -1e300, .most = 1e300, __VA_ARGS__)
#define RATE(of, member, key, ...) GS_FIELD(of, member, REAL, key, .most = RATE_MOST, __VA_ARGS__)
/* The sums of `kinds` kinds of work from `first` on. */
#define FIT(member, prefix, first, kinds) \
    REALS(gs_cost_record, member.tasks[first], prefix "tasks", .count = (kinds)), \
        REALS(gs_cost_record, member.square[first], prefix "square", \
              .count = (kinds) * GS_WORK_AMOUNTS * GS_WORK_AMOUNTS), \
        REALS(gs_cost_record, member.product[first], prefix "product", .count = (kinds) * GS_WORK_AMOUNTS)

/* What may lack came after the first records, and so did all that is of copies and of batches. */
static const gs_field record_fields[] = {
    RATE(gs_cost_record, read_bps, "epoch_read_bps"),
    RATE(gs_cost_record, write_bps, "epoch_write_bps"),
    GS_FIELD(gs_cost_record, slower_sum, REAL, "slower_sum", .least = -1e3, .most = 1e3),
    RATE(gs_cost_record, slower_weight, "slower_weight"),
    RATE(gs_cost_record, others_sum, "others_sum", .may_lack = true),
    RATE(gs_cost_record, others_weight, "others_weight", .may_lack = true),
    FIT(fit, "", 0, GS_WORK_LINKS),
};
static const gs_field copy_fields[] = {FIT(fit, "link_", GS_WORK_LINKS, COPY_WAYS)};
static const gs_field batch_fields[] = {
    FIT(batch_fit, "batch_", 0, GS_WORK_LINKS),
    RATE(gs_cost_record, draw_seconds, "batch_draw_seconds"),
    RATE(gs_cost_record, draw_amount, "batch_draw_amount"),
};
_Static_assert(sizeof(gs_link) == 2 * sizeof(double), "a link is two numbers of a list");
static const gs_field limit_fields[] = {
    RATE(gs_limits, found.disk_read_bps, "disk_read_bps"),
    RATE(gs_limits, found.disk_write_bps, "disk_write_bps"),
    RATE(gs_limits, found.copy_bps, "copy_bps"),
    RATE(gs_limits, link[0], "links", .count = 2 * COPY_WAYS, .may_lack = true),
    RATE(gs_limits, found.pick_bps, "pick_bps", .may_lack = true),
    RATE(gs_limits, link[GS_LINK_FROM_DISK], "disk_to_device", .count = 2, .may_lack = true),
    GS_FIELD(gs_limits, found.launch_seconds, REAL, "launch_seconds", .most = LINK_SECONDS_MOST, .may_lack = true),
    GS_FIELD(gs_limits, edge_count, U32, "edge_count", .most = UINT32_MAX, .may_lack = true),
    RATE(gs_limits, rounded[0], "rounded", .count = GS_LIMITS_ROUNDED, .may_lack = true),
};

/* Rows of numbers of the figures, each kind of rows a list of all their numbers. */
typedef enum number_kind { REAL, COUNT, BYTES } number_kind; /* double, uint32_t, uint64_t */
#define MOST_COLUMNS 4
#define MOST_NUMBERS 32

typedef struct rows {
    const char *key;
    size_t row_bytes;
    int rows, columns;
    struct {
        number_kind kind;
        size_t at; /* of the first row */
    } column[MOST_COLUMNS];
} rows;

#define AT(field) offsetof(gs_limits_report, field)
#define ROWS(field) sizeof(((gs_limits_report *)0)->field[0])
_Static_assert(GS_LIMIT_DEPTHS == 3, "depths in the table below");
static const rows limit_rows[] = {
    {"random_read", ROWS(random_read), GS_LIMIT_SIZES, 2,
     {{BYTES, AT(random_read[0].bytes)}, {REAL, AT(random_read[0].bps)}}},
    {"depth", ROWS(depth), GS_LIMIT_DEPTHS, 1, {{COUNT, AT(depth)}}},
    {"at_depth", ROWS(random_read), GS_LIMIT_SIZES, GS_LIMIT_DEPTHS,
     {{REAL, AT(random_read[0].at_depth[0])}, {REAL, AT(random_read[0].at_depth[1])},
      {REAL, AT(random_read[0].at_depth[2])}}},
    {"gemm", ROWS(gemm), GS_LIMIT_GEMMS, 4,
     {{COUNT, AT(gemm[0].rows)}, {COUNT, AT(gemm[0].in)}, {COUNT, AT(gemm[0].out)}, {REAL, AT(gemm[0].flops)}}},
    {"gather", ROWS(gather), GS_LIMIT_GATHERS, 2, {{COUNT, AT(gather[0].width)}, {REAL, AT(gather[0].bps)}}},
    {"edges", ROWS(edges), GS_LIMIT_EDGES, 3,
     {{COUNT, AT(edges[0].degree)}, {COUNT, AT(edges[0].width)}, {REAL, AT(edges[0].edges_per_second)}}},
};

static gs_field numbers_of(const rows *t)
{
    return (gs_field){.name = t->key, .kind = GS_FIELD_REAL, .least = 0, .most = RATE_MOST,
                      .count = (uint32_t)(t->rows * t->columns)};
}

/* ---- reading ------------------------------------------------------------- */

static bool same_text(const cJSON *object, const char *key, const char *text)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) && strcmp(item->valuestring, text) == 0;
}

static void expect(gs_record *r, const char *key, double v, double most)
{
    if (!(v >= 0 && v <= most))
        gs_record_refuse(r, key, "has a number that cannot be");
}

static void rows_read(gs_record *r, const rows *t, gs_limits_report *l)
{
    const gs_field f = numbers_of(t);
    double v[MOST_NUMBERS] = {0};

    gs_record_read(r, &f, 1, v);
    for (int i = 0; r->st == GS_OK && i < t->rows * t->columns; i++) {
        const int column = i % t->columns;
        void *const to = (char *)l + (size_t)(i / t->columns) * t->row_bytes + t->column[column].at;
        if (t->column[column].kind != REAL)
            expect(r, t->key, v[i], UINT32_MAX);
        if (t->column[column].kind == REAL)
            *(double *)to = v[i];
        else if (t->column[column].kind == COUNT)
            *(uint32_t *)to = r->st == GS_OK ? (uint32_t)v[i] : 0;
        else
            *(uint64_t *)to = r->st == GS_OK ? (uint64_t)v[i] : 0;
    }
}

static void limits_read(gs_record *of, gs_limits *l)
{
    char where[GS_WHERE_BYTES];
    gs_record r = gs_record_open(of, "limits", where);

    gs_record_read(&r, GS_FIELDS(limit_fields), l);
    for (int i = 0; i < GS_LINK_WAYS; i++)
        expect(&r, "links", l->link[i].request_seconds, LINK_SECONDS_MOST);
    for (size_t i = 0; i < GS_ARRAY_LEN(limit_rows); i++)
        rows_read(&r, &limit_rows[i], &l->found);
    gs_record_close(of, &r);
}

#define STAGE_COLUMNS (1 + GS_COST_WAYS)
#define KEY_MOST 562949953421312.0

static void stages_read(gs_record *r, gs_cost_record *out)
{
    const cJSON *const all = cJSON_GetObjectItemCaseSensitive(r->object, "stages");
    const uint32_t count = (uint32_t)cJSON_GetArraySize(all);

    if (count % STAGE_COLUMNS != 0 || count > GS_COST_STAGES * STAGE_COLUMNS)
        expect(r, "stages", -1, 0);
    else if (count > 0)
        gs_record_read(r, &(gs_field){.name = "stages", .kind = GS_FIELD_REAL, .most = RATE_MOST, .count = count}, 1,
                       out->stage);
    out->stages = count / STAGE_COLUMNS;
    for (uint32_t k = 0; k < out->stages && r->st == GS_OK; k++)
        expect(r, "stages", out->stage[k].key, KEY_MOST);
}

void gs_cost_record_load(gs_cost_record *out, const char *device)
{
    char machine[192];
    GS_FREED char *text = NULL;
    uint64_t bytes = 0;
    gs_cost_record record;

    memset(out, 0, sizeof(*out));
    memset(&record, 0, sizeof(record));
    machine_name(machine, sizeof(machine));
    GS_FREED char *const path = record_path(machine, device, false);
    if (path == NULL || !gs_path_exists(path) || gs_file_read_all(&text, &bytes, path, FILE_MOST) != GS_OK)
        return;
    GS_ENDS(cJSON_Delete_at) cJSON *const root = cJSON_Parse(text);
    gs_record r = {.object = root, .path = path, .where = "", .advice = ""};
    if (!same_text(root, "machine", machine) || !same_text(root, "device", device) ||
        gs_record_number(&r, "version", VERSION, VERSION) != VERSION)
        return;
    gs_record_read(&r, GS_FIELDS(record_fields), &record);
    if (gs_record_has(&r, "link_tasks"))
        gs_record_read(&r, GS_FIELDS(copy_fields), &record);
    if (gs_record_has(&r, "batch_tasks"))
        gs_record_read(&r, GS_FIELDS(batch_fields), &record);
    stages_read(&r, &record);
    if (gs_record_has(&r, "limits"))
        limits_read(&r, &record.limits);
    if (r.st == GS_OK)
        *out = record;
}

/* ---- writing ------------------------------------------------------------- */

static void rows_write(cJSON *o, const rows *t, const gs_limits_report *l)
{
    const gs_field f = numbers_of(t);
    double v[MOST_NUMBERS];

    for (int i = 0; i < t->rows * t->columns; i++) {
        const int column = i % t->columns;
        const void *const from = (const char *)l + (size_t)(i / t->columns) * t->row_bytes + t->column[column].at;
        v[i] = t->column[column].kind == REAL    ? *(const double *)from
               : t->column[column].kind == COUNT ? *(const uint32_t *)from
                                                 : (double)*(const uint64_t *)from;
    }
    (void)gs_record_write(o, &f, 1, v);
}

static char *record_text(const gs_cost_record *r, const char *machine, const char *device)
{
    const gs_field stages = {.name = "stages", .kind = GS_FIELD_REAL, .count = r->stages * STAGE_COLUMNS};
    GS_ENDS(cJSON_Delete_at) cJSON *const root = cJSON_CreateObject();
    char *text;

    cJSON_AddNumberToObject(root, "version", VERSION);
    cJSON_AddStringToObject(root, "machine", machine);
    cJSON_AddStringToObject(root, "device", device);
    (void)gs_record_write(root, GS_FIELDS(record_fields), r);
    (void)gs_record_write(root, GS_FIELDS(copy_fields), r);
    (void)gs_record_write(root, GS_FIELDS(batch_fields), r);
    (void)gs_record_write(root, &stages, r->stages > 0, r->stage);
    cJSON *const limits = cJSON_AddObjectToObject(root, "limits");
    (void)gs_record_write(limits, GS_FIELDS(limit_fields), &r->limits);
    for (size_t i = 0; i < GS_ARRAY_LEN(limit_rows); i++)
        rows_write(limits, &limit_rows[i], &r->limits.found);
    text = cJSON_Print(root);
    return text;
}

gs_status gs_cost_record_save(const gs_cost_record *r, const char *device)
{
    char machine[192];
    GS_FREED char *path = NULL;
    char *text = NULL;
    gs_status st = GS_OK;

    machine_name(machine, sizeof(machine));
    if ((path = record_path(machine, device, true)) == NULL)
        return gs_fail(GS_ENOTFOUND, "no folder to keep measurements in; set XDG_CACHE_HOME");
    if ((text = record_text(r, machine, device)) == NULL)
        st = gs_fail(GS_ENOMEM, "%s: out of memory", path);
    else
        st = gs_file_write_atomic(path, text, strlen(text));
    cJSON_free(text);
    return st;
}

const gs_cost_stage *gs_cost_record_stage(const gs_cost_record *r, double key)
{
    for (uint32_t k = 0; k < r->stages; k++)
        if (r->stage[k].key == key)
            return &r->stage[k];
    return NULL;
}

void gs_cost_record_add_stage(gs_cost_record *r, const gs_cost_stage *stage)
{
    const gs_cost_stage *const known = gs_cost_record_stage(r, stage->key);
    uint32_t at = known != NULL ? (uint32_t)(known - r->stage) : r->stages;

    if (at == GS_COST_STAGES)
        at--;
    r->stages = at >= r->stages ? at + 1 : r->stages;
    memmove(&r->stage[1], &r->stage[0], at * sizeof(*stage));
    r->stage[0] = *stage;
}

void gs_cost_from_record(gs_cost *out, const gs_cost_record *r, uint32_t threads, const gs_gpu_speed *gpu)
{
    gs_cost_defaults(out, threads);
    if (gpu != NULL)
        gpu_defaults(out, gpu);
    take_limits(out, &r->limits, gpu != NULL ? gpu->rounding : 0);
    gs_fit_solve(&r->fit, out);
    if (r->read_bps > 0) {
        out->read_bps = r->read_bps;
        out->disk_source = GS_COST_FITTED;
    }
    if (r->write_bps > 0)
        out->write_bps = r->write_bps;
    if (r->slower_weight > 0)
        gs_cost_slow_disk(out, exp(r->slower_sum / r->slower_weight));
    out->others = r->others_weight > 0 ? fmin(r->others_sum / r->others_weight, 1) : 0;
}

void gs_cost_take_batches(gs_cost *c, const gs_cost_record *r)
{
    gs_fit_solve(&r->batch_fit, c);
    c->draw_seconds = r->draw_amount > 0 ? r->draw_seconds / r->draw_amount : 0;
}

void gs_cost_slow_disk(gs_cost *c, double times)
{
    times = times > SLOWER_MOST ? SLOWER_MOST : times < 1 / SLOWER_MOST ? 1 / SLOWER_MOST : times;
    c->read_bps /= times;
    c->write_bps /= times;
    c->request_seconds *= times;
    c->block_seconds *= times;
    c->seconds[GS_WORK_FROM_DISK][0] *= times; /* it is the same disk */
    c->seconds[GS_WORK_FROM_DISK][1] *= times;
}

void gs_cost_record_slower(gs_cost_record *r, double times, double share)
{
    if (!(times > 0) || !isfinite(times))
        return;
    r->slower_sum = r->slower_sum * share + log(times);
    r->slower_weight = r->slower_weight * share + 1;
}

void gs_cost_record_others(gs_cost_record *r, double others, double share)
{
    r->others_sum = r->others_sum * share + others;
    r->others_weight = r->others_weight * share + 1;
}
