/* Sums of neighbours' rows: one target after the other, one edge after the
 * other, vectors along the row (Seastar's vertex-parallel, edge-sequential order).
 *
 * A column's sum adds the edges in order to what `acc` held, whatever the
 * vector width, the slice of columns or the thread, so results are the same bits for
 * all of them. Rows come from all over memory: what bounds this code is how many cache
 * lines are on their way, so rows are prefetched some edges ahead, over the
 * ends of targets.
 *
 * Up to MAX_TILE vectors of a row stay in registers over all edges of a target. The last
 * vector ends where the row ends and may overlap the one before it: both
 * then hold the same sums, and no width needs a remainder loop.
 *
 * Rows of bfloat16 and float16 become float32 as they are loaded, and a row may be multiplied by a number of its own.
 * That product is rounded before it is added, so sums are those of a float32 copy of the rows, bit for bit.
 */
#include "base/dtype.h"
#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd_rows.h"

#define MAX_TILE 8 /* vectors: half the registers of AVX2, the other half is for rows on their way */
#define LINE 64    /* bytes of a cache line */

/* How far ahead: enough rows to keep the line fill buffers busy, few enough to
 * stay in L1. Measured on Zen 3 at 64, 256 and 1024 bytes a row; flat around these. */
#define AHEAD_BYTES 4096
#define AHEAD_MIN 4
#define AHEAD_MAX 32

/* How a row is added: its numbers; those times the edge's count; those times a number of the row, and perhaps the
 * count, from three types. */
typedef enum edge_form { PLAIN, COUNTED, SCALED, BF16, F16 } edge_form;

typedef struct edge_walk {
    const void *index;
    const uint8_t *count; /* PLAIN: not looked at; SCALED and after: may be NULL */
    const char *operand;  /* first column of the slice */
    const float *scale;   /* SCALED and after: of row i at i * scale_step */
    size_t scale_step;
    size_t stride;        /* bytes between rows */
    uint32_t columns;
    uint32_t last;        /* last edge that may be prefetched */
    uint32_t ahead;
} edge_walk;

GS_INLINE size_t row_of(const edge_walk *w, uint32_t k, const uint32_t index_bytes)
{
    return index_bytes == 2 ? ((const uint16_t *)w->index)[k] : ((const uint32_t *)w->index)[k];
}

GS_INLINE uint32_t bytes_of(const edge_form form) { return form >= BF16 ? sizeof(uint16_t) : sizeof(float); }

/* `bytes` of the row of the edge `ahead` of k, by lines, and the line that the row's end may straddle into. */
GS_INLINE void prefetch_row(const edge_walk *w, uint32_t k, const uint32_t index_bytes, const uint32_t bytes,
                            const edge_form form)
{
    const uint32_t next = w->last - k > w->ahead ? k + w->ahead : w->last;
    const size_t at = row_of(w, next, index_bytes);
    const char *const row = w->operand + at * w->stride;
    for (uint32_t b = 0; b < bytes; b += LINE)
        __builtin_prefetch(row + b);
    __builtin_prefetch(row + (size_t)w->columns * bytes_of(form) - 1);
    if (form >= SCALED)
        __builtin_prefetch(w->scale + at * w->scale_step);
}

/* How often the edge counts. */
GS_INLINE float count_of(const edge_walk *w, uint32_t k, const edge_form form)
{
    return form == COUNTED || (form >= SCALED && w->count != NULL) ? (float)w->count[k] : 1.0f;
}

GS_INLINE float scale_of(const edge_walk *w, size_t row, const edge_form form)
{
    return form >= SCALED ? w->scale[row * w->scale_step] : 1.0f;
}

/* One target's edges [k, end) for `tile` vectors of type V (constants, so that all is unrolled). */
#define DEFINE_TILE(NAME, V, BYTES)                                                                            \
    GS_INLINE V##_v NAME##_term(const char *row, uint32_t at, float scale, const edge_form form)               \
    {                                                                                                          \
        const V##_v x = form == BF16  ? V##_load_bf16((const uint16_t *)row + at)                              \
                        : form == F16 ? V##_load_f16((const uint16_t *)row + at)                               \
                                      : V##_load((const float *)row + at);                                     \
        return form >= SCALED ? V##_rounded(x * scale) : x;                                                    \
    }                                                                                                          \
    GS_INLINE void NAME(float *acc, const edge_walk *w, uint32_t k, uint32_t end, const uint32_t tile,         \
                        const uint32_t index_bytes, const edge_form form)                                      \
    {                                                                                                          \
        const uint32_t lanes = (BYTES) / 4, tail = w->columns - lanes;                                         \
        V##_v sum[MAX_TILE];                                                                                   \
        _Pragma("GCC unroll 8") for (uint32_t v = 0; v < tile; v++)                                            \
            sum[v] = V##_load(acc + (v + 1 < tile ? v * lanes : tail));                                        \
        for (; k < end; k++) {                                                                                 \
            const size_t at = row_of(w, k, index_bytes);                                                       \
            const char *const row = w->operand + at * w->stride;                                               \
            const float times = count_of(w, k, form), scale = scale_of(w, at, form);                           \
            prefetch_row(w, k, index_bytes, tile * lanes * bytes_of(form), form);                              \
            _Pragma("GCC unroll 8") for (uint32_t v = 0; v < tile; v++)                                        \
            {                                                                                                  \
                const V##_v x = NAME##_term(row, v + 1 < tile ? v * lanes : tail, scale, form);                \
                sum[v] += form == PLAIN ? x : x * times;                                                       \
            }                                                                                                  \
        }                                                                                                      \
        _Pragma("GCC unroll 8") for (uint32_t v = 0; v < tile; v++)                                            \
            V##_store(acc + (v + 1 < tile ? v * lanes : tail), sum[v]);                                        \
    }

DEFINE_TILE(tile4, gs_v4, 16)
#if GS_LANES >= 8
DEFINE_TILE(tile8, gs_v8, 32)
#endif
#if GS_LANES >= 16
DEFINE_TILE(tile16, gs_v16, 64)
#endif

#if GS_LANES == 16
#define WIDEST_TILE tile16
#define WIDEST_TERM tile16_term
#elif GS_LANES == 8
#define WIDEST_TILE tile8
#define WIDEST_TERM tile8_term
#else
#define WIDEST_TILE tile4
#define WIDEST_TERM tile4_term
#endif

/* Number `c` of a row. */
GS_INLINE float number_of(const char *row, uint32_t c, float scale, const edge_form form)
{
    const float x = form == BF16  ? gs_number_from_bf16(((const uint16_t *)row)[c])
                    : form == F16 ? gs_number_from_f16(((const uint16_t *)row)[c])
                                  : ((const float *)row)[c];
    return form >= SCALED ? gs_number_rounded(x * scale) : x;
}

/* Fewer than 4 columns. */
GS_INLINE void narrow(float *acc, const edge_walk *w, uint32_t k, uint32_t end, const uint32_t columns,
                      const uint32_t index_bytes, const edge_form form)
{
    float sum[3];
    for (uint32_t c = 0; c < columns; c++)
        sum[c] = acc[c];
    for (; k < end; k++) {
        const size_t at = row_of(w, k, index_bytes);
        const char *const row = w->operand + at * w->stride;
        const float times = count_of(w, k, form), scale = scale_of(w, at, form);
        prefetch_row(w, k, index_bytes, 1, form);
        for (uint32_t c = 0; c < columns; c++) {
            const float x = number_of(row, c, scale, form);
            sum[c] += form == PLAIN ? x : x * times;
        }
    }
    for (uint32_t c = 0; c < columns; c++)
        acc[c] = sum[c];
}

/* `count` (a constant, at most 4) edges of a row too wide for the registers: sums go through the
 * first-level cache once for all of them. The last vector is added before any
 * is stored, as it may overlap the last of the loop. */
GS_INLINE void wide_step(float *acc, const edge_walk *w, uint32_t k, const uint32_t count, const uint32_t index_bytes,
                         const edge_form form)
{
    const char *row[4];
    float times[4], scale[4];
    for (uint32_t e = 0; e < count; e++) {
        const size_t at = row_of(w, k + e, index_bytes);
        row[e] = w->operand + at * w->stride;
        times[e] = count_of(w, k + e, form);
        scale[e] = scale_of(w, at, form);
    }

    const uint32_t tail = w->columns - GS_LANES;
    gs_vf last = gs_load(acc + tail);
    for (uint32_t e = 0; e < count; e++) {
        const gs_vf x = WIDEST_TERM(row[e], tail, scale[e], form);
        last += form == PLAIN ? x : x * times[e];
    }
    for (uint32_t c = 0; c < tail; c += GS_LANES) {
        gs_vf sum = gs_load(acc + c);
        for (uint32_t e = 0; e < count; e++) {
            const gs_vf x = WIDEST_TERM(row[e], c, scale[e], form);
            sum += form == PLAIN ? x : x * times[e];
        }
        gs_store(acc + c, sum);
    }
    gs_store(acc + tail, last);
}

GS_INLINE void wide(float *acc, const edge_walk *w, uint32_t k, uint32_t end, const uint32_t index_bytes,
                    const edge_form form)
{
    const uint32_t bytes = w->columns * bytes_of(form);
    for (; end - k >= 4; k += 4) {
        for (uint32_t e = 0; e < 4; e++)
            prefetch_row(w, k + e, index_bytes, bytes, form);
        wide_step(acc, w, k, 4, index_bytes, form);
    }
    for (; k < end; k++) {
        prefetch_row(w, k, index_bytes, bytes, form);
        wide_step(acc, w, k, 1, index_bytes, form);
    }
}

/* A part of a launch: targets [first, end), from column `column` on. */
typedef struct share {
    const gs_edge_launch *l;
    uint32_t first, end, column;
} share;

/* case N: all targets of the share with one body, chosen outside the loop. */
#define CASE(N, SUM)                                                                                           \
    case N:                                                                                                    \
        for (uint32_t t = s->first; t < s->end; t++) {                                                         \
            float *const acc = s->l->acc + row_of(&target, t, index_bytes) * (size_t)s->l->width + s->column;  \
            const uint32_t k = s->l->edges.start[t], stop = s->l->edges.start[t + 1];                          \
            SUM;                                                                                               \
        }                                                                                                      \
        break
#define TILE_CASE(NAME, N) CASE(N, NAME(acc, w, k, stop, N, index_bytes, form))

/* Rows narrower than the narrowest vector. */
GS_INLINE void walk_narrow(const share *s, const edge_walk *w, const uint32_t index_bytes, const edge_form form)
{
    const edge_walk target = {.index = s->l->edges.target};
    switch (w->columns) {
        CASE(1, narrow(acc, w, k, stop, 1, index_bytes, form));
        CASE(2, narrow(acc, w, k, stop, 2, index_bytes, form));
        CASE(3, narrow(acc, w, k, stop, 3, index_bytes, form));
    }
}

#if GS_LANES > 4
/* Rows narrower than two vectors of 4 (of 8): those of full width would not fit in. */
GS_INLINE void walk_tile4(const share *s, const edge_walk *w, const uint32_t index_bytes, const edge_form form)
{
    const edge_walk target = {.index = s->l->edges.target};
    switch ((w->columns + 3) / 4) {
        TILE_CASE(tile4, 1);
        TILE_CASE(tile4, 2);
    }
}
#endif

#if GS_LANES > 8
GS_INLINE void walk_tile8(const share *s, const edge_walk *w, const uint32_t index_bytes, const edge_form form)
{
    const edge_walk target = {.index = s->l->edges.target};
    switch ((w->columns + 7) / 8) {
        TILE_CASE(tile8, 1);
        TILE_CASE(tile8, 2);
    }
}
#endif

GS_INLINE void walk_full(const share *s, const edge_walk *w, const uint32_t index_bytes, const edge_form form)
{
    const edge_walk target = {.index = s->l->edges.target};
    switch (w->columns > MAX_TILE * GS_LANES ? 0 : (w->columns + GS_LANES - 1) / GS_LANES) {
        CASE(0, wide(acc, w, k, stop, index_bytes, form));
        TILE_CASE(WIDEST_TILE, 1);
        TILE_CASE(WIDEST_TILE, 2);
        TILE_CASE(WIDEST_TILE, 3);
        TILE_CASE(WIDEST_TILE, 4);
        TILE_CASE(WIDEST_TILE, 5);
        TILE_CASE(WIDEST_TILE, 6);
        TILE_CASE(WIDEST_TILE, 7);
        TILE_CASE(WIDEST_TILE, 8);
    }
}

GS_INLINE void walk(const share *s, const edge_walk *w, const uint32_t index_bytes, const edge_form form)
{
    if (w->columns < 4)
        walk_narrow(s, w, index_bytes, form);
#if GS_LANES > 4
    else if (w->columns < 8)
        walk_tile4(s, w, index_bytes, form);
#endif
#if GS_LANES > 8
    else if (w->columns < 16)
        walk_tile8(s, w, index_bytes, form);
#endif
    else
        walk_full(s, w, index_bytes, form);
}

static void walk_plain_2(const share *s, const edge_walk *w) { walk(s, w, 2, PLAIN); }
static void walk_plain_4(const share *s, const edge_walk *w) { walk(s, w, 4, PLAIN); }
static void walk_counted_2(const share *s, const edge_walk *w) { walk(s, w, 2, COUNTED); }
static void walk_counted_4(const share *s, const edge_walk *w) { walk(s, w, 4, COUNTED); }
/* These look at the width of an index edge by edge: code for each width would take as long to compile again. */
static void walk_scaled(const share *s, const edge_walk *w) { walk(s, w, s->l->edges.index_bytes, SCALED); }
static void walk_bf16(const share *s, const edge_walk *w) { walk(s, w, s->l->edges.index_bytes, BF16); }
static void walk_f16(const share *s, const edge_walk *w) { walk(s, w, s->l->edges.index_bytes, F16); }

static edge_form form_of(const gs_edge_launch *l)
{
    if (l->dtype == GS_F32)
        return l->scale != NULL ? SCALED : l->edges.count != NULL ? COUNTED : PLAIN;
    return l->dtype == GS_BF16 ? BF16 : F16;
}

void GS_KERNEL(edges)(const gs_edge_launch *l, uint32_t first, uint32_t end, uint32_t column, uint32_t columns)
{
    static void (*const walks[][2])(const share *s, const edge_walk *w) = {
        [PLAIN] = {walk_plain_2, walk_plain_4}, [COUNTED] = {walk_counted_2, walk_counted_4},
        [SCALED] = {walk_scaled, walk_scaled},  [BF16] = {walk_bf16, walk_bf16},
        [F16] = {walk_f16, walk_f16},
    };
    static const float one = 1.0f;
    if (first == end || l->edges.start[first] == l->edges.start[end])
        return;
    const edge_form form = form_of(l);
    const uint32_t number = bytes_of(form), ahead = AHEAD_BYTES / (columns * number);
    const share s = {.l = l, .first = first, .end = end, .column = column};
    const edge_walk w = {.index = l->edges.index,
                         .count = l->edges.count,
                         .operand = (const char *)l->operand + (size_t)column * number,
                         .scale = l->scale != NULL ? l->scale : &one,
                         .scale_step = l->scale != NULL ? 1 : 0,
                         .stride = (size_t)l->width * number,
                         .columns = columns,
                         .last = l->edges.start[end] - 1,
                         .ahead = ahead < AHEAD_MIN ? AHEAD_MIN : ahead > AHEAD_MAX ? AHEAD_MAX : ahead};
    walks[form][l->edges.index_bytes == 2 ? 0 : 1](&s, &w);
}

/* `form`: a constant. */
GS_INLINE void add_row(float *acc, const char *row, uint32_t width, float scale, const edge_form form)
{
    uint32_t c = 0;
    for (; c + GS_LANES <= width; c += GS_LANES)
        gs_store(acc + c, gs_load(acc + c) + WIDEST_TERM(row, c, scale, form));
    for (; c < width; c++)
        acc[c] += number_of(row, c, scale, form);
}

void GS_KERNEL(add_own)(const gs_own_launch *l, uint64_t first, uint64_t end)
{
    const size_t stride = (size_t)l->width * (l->dtype == GS_F32 ? sizeof(float) : sizeof(uint16_t));
    for (uint64_t r = first; r < end; r++) {
        float *const acc = l->acc + r * l->width;
        const char *const row = (const char *)l->own + r * stride;
        const float scale = l->scale != NULL ? l->scale[r] : 1.0f;
        if (l->dtype == GS_BF16)
            add_row(acc, row, l->width, scale, BF16);
        else if (l->dtype == GS_F16)
            add_row(acc, row, l->width, scale, F16);
        else
            add_row(acc, row, l->width, scale, SCALED);
    }
}

void GS_KERNEL(add)(float *acc, const float *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        acc[i] += src[i];
}

/* `tile` (a constant) vectors, in registers while all rows are added to them. */
GS_INLINE void add_rows_tile(float *acc, const float *src, uint64_t stride, uint32_t rows, const uint32_t tile)
{
    gs_vf sum[4];
    for (uint32_t v = 0; v < tile; v++)
        sum[v] = gs_load(acc + v * GS_LANES);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t v = 0; v < tile; v++)
            sum[v] += gs_load(src + r * stride + v * GS_LANES);
    for (uint32_t v = 0; v < tile; v++)
        gs_store(acc + v * GS_LANES, sum[v]);
}

void GS_KERNEL(add_rows)(float *acc, const float *src, uint64_t stride, uint32_t rows, size_t n)
{
    size_t i = 0;
    for (; i + 4 * GS_LANES <= n; i += 4 * GS_LANES)
        add_rows_tile(acc + i, src + i, stride, rows, 4);
    for (; i + GS_LANES <= n; i += GS_LANES)
        add_rows_tile(acc + i, src + i, stride, rows, 1);
    for (; i < n; i++)
        for (uint32_t r = 0; r < rows; r++)
            acc[i] += src[r * stride + i];
}

/* The ceiling that `edges` is held against: the same rows, added up in registers
 * without a place to add them to. First `whole` vectors of a row (a constant up
 * to 8), then one that ends where the row ends; narrower rows by numbers. */
GS_INLINE float gather_rows(const float *table, const uint32_t *index, size_t n, const uint32_t width,
                            const uint32_t ahead, const uint32_t whole)
{
    gs_vf sum[8] = {{0}};
    float rest = 0;
    for (size_t k = 0; k < n; k++) {
        const float *const row = table + (size_t)index[k] * width;
        const char *const next = (const char *)(table + (size_t)index[k + ahead < n ? k + ahead : n - 1] * width);
        for (size_t b = 0; b < whole * sizeof(gs_vf); b += LINE)
            __builtin_prefetch(next + b);
        __builtin_prefetch(next + width * sizeof(float) - 1);
        uint32_t v = 0;
        for (; v + 8 <= whole; v += 8)
            for (uint32_t i = 0; i < 8; i++)
                sum[i] += gs_load(row + (v + i) * GS_LANES);
        for (; v < whole; v++)
            sum[v % 8] += gs_load(row + v * GS_LANES);
        if (whole > 0)
            sum[7] += gs_load(row + width - GS_LANES);
        for (uint32_t c = 0; whole == 0 && c < width; c++)
            rest += row[c];
    }
    for (uint32_t v = 0; v < 8; v++)
        rest += gs_lanes_sum(sum[v]);
    return rest;
}

#define GATHER(N) \
    case N:       \
        return gather_rows(table, index, n, width, ahead, N)

float GS_KERNEL(gather)(const float *table, const uint32_t *index, size_t n, uint32_t width, uint32_t ahead)
{
    switch (width / GS_LANES) {
        GATHER(0);
        GATHER(1);
        GATHER(2);
        GATHER(3);
        GATHER(4);
        GATHER(5);
        GATHER(6);
        GATHER(7);
        GATHER(8);
    default:
        return gather_rows(table, index, n, width, ahead, width / GS_LANES);
    }
}
