/* Ceilings: what the machine does at best with as little as possible around it.
 * Each repeats a short run for half a second and gives the best of them, as others may
 * share the machine. */
#include <dnnl.h>
#include <omp.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/philox.h"
#include "base/size.h"
#include "device/cpu/cpu.h"
#include "device/cpu/gemm.h"

#define SECONDS 0.5
#define ALL UINT64_MAX               /* tasks: all threads */
#define COPY_BYTES (128 * GS_MIB)   /* more than last-level caches hold */
#define GATHER_ROWS (1u << 20)      /* at most, rows a repetition */
#define GATHER_BYTES (256 * GS_MIB) /* about, a repetition */

/* Runs BODY until SECONDS have passed (at least twice: the first one warms) and
 * leaves the best time in BEST. */
#define MEASURE(BEST, BODY)                                                                    \
    do {                                                                                       \
        const double until_ = gs_now() + SECONDS;                                              \
        (BEST) = 1e30;                                                                         \
        for (int run_ = 0; run_ < 2 || gs_now() < until_; run_++) {                            \
            const double start_ = gs_now();                                                    \
            BODY;                                                                              \
            const double took_ = gs_now() - start_;                                            \
            (BEST) = GS_MIN(BEST, took_);                                                      \
        }                                                                                      \
    } while (0)

/* Page-aligned floats with a value everywhere, touched by the threads that will use them. */
static float *filled(uint64_t floats)
{
    float *const p = gs_alloc_pages(floats * sizeof(float));
    if (p == NULL)
        return NULL;
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < floats; i++)
        p[i] = 1.0f;
    return p;
}

static void drop(float *p, uint64_t floats) { gs_free_pages(p, floats * sizeof(float)); }

/* The library's own product of whole matrices, on all threads. */
gs_status gs_cpu__measure_gemm(void *context, uint32_t rows, uint32_t in, uint32_t out, double *flops_per_second)
{
    const uint64_t a_floats = (uint64_t)rows * in, b_floats = (uint64_t)out * in, c_floats = (uint64_t)rows * out;
    const int before = gs_cpu__enter(context, ALL);
    float *const a = filled(a_floats), *const b = filled(b_floats), *const c = filled(c_floats);
    gs_status st = GS_OK;
    bool fine = true;
    double best = 0;

    if (a == NULL || b == NULL || c == NULL) {
        st = gs_fail(GS_ENOMEM, "device cpu: out of memory for a product of %u x %u x %u", rows, in, out);
        goto done;
    }
    MEASURE(best,
            fine = fine && dnnl_sgemm('N', 'T', rows, out, in, 1.0f, a, in, b, in, 0.0f, c, out) == dnnl_success);
    if (fine)
        *flops_per_second = 2.0 * (double)a_floats * out / best;
    else
        st = gs_fail(GS_EDEVICE, "device cpu: oneDNN could not multiply %u x %u x %u", rows, in, out);
done:
    drop(a, a_floats);
    drop(b, b_floats);
    drop(c, c_floats);
    gs_cpu__leave(before);
    return st;
}

static void fill_index(uint32_t *index, uint32_t n, uint64_t table_rows)
{
    for (uint32_t i = 0; i < n; i += 4) {
        uint32_t word[4];
        gs_philox4x32(word, (const uint32_t[4]){i, 0, 0, 0}, (const uint32_t[2]){17, 0});
        for (uint32_t j = 0; j < 4 && i + j < n; j++)
            index[i + j] = (uint32_t)(((uint64_t)word[j] * table_rows) >> 32);
    }
}

/* One repetition: every thread its share of the rows. */
static float gather_all(const gs_cpu *cpu, const float *table, const uint32_t *index, uint32_t rows, uint32_t width,
                        uint32_t ahead)
{
    float sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        const uint64_t threads = (uint64_t)omp_get_num_threads(), me = (uint64_t)omp_get_thread_num();
        const uint64_t first = rows * me / threads, end = rows * (me + 1) / threads;
        sum += cpu->k->gather(table, index + first, end - first, width, ahead);
    }
    return sum;
}

gs_status gs_cpu__measure_gather(void *context, uint64_t table_rows, uint32_t width, double *bytes_per_second)
{
    static const uint32_t aheads[] = {4, 8, 16, 32, 64}; /* the best distance depends on the machine */
    const gs_cpu *const cpu = context;
    const uint64_t row_bytes = width * sizeof(float);
    const uint32_t rows = (uint32_t)GS_MAX(GS_MIN(GATHER_BYTES / row_bytes, (uint64_t)GATHER_ROWS), 1024u);
    const int before = gs_cpu__enter(cpu, ALL);
    uint32_t *const index = gs_malloc_array(rows, sizeof(*index));
    float *const table = filled(table_rows * width);
    volatile float sink = 0;
    gs_status st = GS_OK;
    double best = 1e30;

    if (index == NULL || table == NULL) {
        st = gs_fail(GS_ENOMEM, "device cpu: out of memory for a table of %llu rows of %u floats",
                     (unsigned long long)table_rows, width);
        goto done;
    }
    fill_index(index, rows, table_rows);
    for (size_t a = 0; a < GS_ARRAY_LEN(aheads); a++) {
        for (int run = 0; run < 4; run++) {
            const double start = gs_now();
            sink = sink + gather_all(cpu, table, index, rows, width, aheads[a]);
            const double took = gs_now() - start;
            best = GS_MIN(best, took);
        }
    }
    *bytes_per_second = (double)rows * (double)row_bytes / best;
done:
    gs_free(index);
    drop(table, table_rows * width);
    gs_cpu__leave(before);
    return st;
}

static void copy_all(float *to, const float *from)
{
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < COPY_BYTES; i += GS_MIB)
        memcpy((char *)to + i, (const char *)from + i, GS_MIB);
}

/* Bytes copied from one place to another a second, each counted once. */
gs_status gs_cpu__measure_copy(void *context, double *bytes_per_second)
{
    const uint64_t floats = COPY_BYTES / sizeof(float);
    const int before = gs_cpu__enter(context, ALL);
    float *const from = filled(floats), *const to = filled(floats);
    gs_status st = GS_OK;
    double best = 0;

    if (from == NULL || to == NULL) {
        st = gs_fail(GS_ENOMEM, "device cpu: out of memory for measuring copies");
        goto done;
    }
    MEASURE(best, copy_all(to, from));
    *bytes_per_second = (double)COPY_BYTES / best;
done:
    drop(from, floats);
    drop(to, floats);
    gs_cpu__leave(before);
    return st;
}
