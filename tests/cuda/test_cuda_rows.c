/* Sums of rows, as they are and by type, against plain loops in the order of the edges. Without hubs the bits
 * are the same; a hub's pieces are added up apart, so its sums agree to rounding. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "device_fixture.h"
#include "gpu_devices.h"
#include "host_gpu.h"

static const uint32_t widths[] = {1,  2,  3,  4,  5,   6,   7,   8,   12,  16,  17,  31,
                                  33, 40, 64, 65, 100, 128, 129, 256, 257, 300, 602, 1433};
#define WIDTHS GS_ARRAY_LEN(widths)

typedef enum how { ROWS, PICK, SPLIT } how;

/* Of sums of rows: what the rows are, and whether each is multiplied by a number. */
typedef struct row_kind {
    gs_dtype dtype;
    bool scaled;
} row_kind;

static const row_kind kinds[] = {{GS_F32, false}, {GS_F32, true}, {GS_BF16, false},
                                 {GS_BF16, true}, {GS_F16, false}, {GS_F16, true}};
#define KINDS GS_ARRAY_LEN(kinds)

typedef struct rows_case {
    how how;
    row_kind kind;
    uint32_t index_bytes, type_bytes, targets, operand_rows, width, types;
    void *target, *index, *type;
    uint32_t *start;
    uint64_t largest; /* as a launch is told */
    float *operand, *before, *want; /* operand: as float32 */
    void *rows;   /* the operand in the kind's type */
    float *scale; /* or NULL */
    double *size; /* sums of magnitudes */
    size_t acc_floats, operand_floats;
} rows_case;

static uint32_t type_at(const rows_case *c, uint32_t k) { return random_below(k % 5 == 0 ? k : k / 4, 11, c->types); }

static void expect(rows_case *c)
{
    const size_t narrow = c->width, many = narrow * c->types;
    for (uint32_t t = 0; t < c->targets; t++)
        for (uint32_t k = c->start[t]; k < c->start[t + 1]; k++) {
            const size_t shift = c->how == ROWS ? 0 : type_at(c, k) * narrow, row = random_below(k, 7, c->operand_rows);
            const size_t from = c->how == PICK ? row * many + shift : row * narrow;
            const size_t to = c->how == SPLIT ? (2 * t + 1) * many + shift : (2 * t + 1) * narrow;
            for (uint32_t col = 0; col < c->width; col++) {
                volatile const float copy = c->operand[from + col] * (c->scale != NULL ? c->scale[row] : 1);
                c->want[to + col] += copy;
                c->size[to + col] += fabs((double)copy);
            }
        }
}

static void make_case(rows_case *c, const uint32_t *degree)
{
    c->start = test_malloc((c->targets + 1) * sizeof(uint32_t));
    c->start[0] = 0;
    for (uint32_t t = 0; t < c->targets; t++)
        c->start[t + 1] = c->start[t] + degree[t];
    const uint32_t edges = c->start[c->targets];
    c->target = test_malloc((size_t)c->targets * c->index_bytes);
    c->index = test_malloc((size_t)edges * c->index_bytes + 1);
    c->type = test_malloc((size_t)edges * c->type_bytes + 1);
    for (uint32_t t = 0; t < c->targets; t++)
        put_number(c->target, c->index_bytes, t, 2 * t + 1);
    for (uint32_t k = 0; k < edges; k++) {
        put_number(c->index, c->index_bytes, k, random_below(k, 7, c->operand_rows));
        put_number(c->type, c->type_bytes, k, type_at(c, k));
    }
    c->operand_floats = (size_t)c->operand_rows * c->width * (c->how == PICK ? c->types : 1);
    c->acc_floats = (2 * (size_t)c->targets + 1) * c->width * (c->how == SPLIT ? c->types : 1);
    c->operand = random_floats(c->operand_floats, 8, -3, 3);
    for (size_t i = 0; c->kind.dtype != GS_F32 && i < c->operand_floats; i += 19)
        c->operand[i] *= 1e-6f; /* below what float16 has without leading zeros */
    c->rows = test_malloc(c->operand_floats * sizeof(float));
    gs_convert_from_f32(c->rows, c->kind.dtype, c->operand, c->operand_floats);
    gs_convert_to_f32(c->operand, c->rows, c->kind.dtype, c->operand_floats);
    c->scale = c->kind.scaled ? random_floats(c->operand_rows, 12, 0.01f, 2) : NULL;
    c->before = random_floats(c->acc_floats, 9, -3, 3);
    c->want = random_floats(c->acc_floats, 9, -3, 3);
    c->size = test_malloc(c->acc_floats * sizeof(double));
    for (size_t i = 0; i < c->acc_floats; i++)
        c->size[i] = fabs((double)c->before[i]);
    expect(c);
}

static void free_case(rows_case *c)
{
    void *const all[] = {c->target, c->index, c->type, c->start, c->operand, c->before, c->want, c->size,
                         c->rows,   c->scale};
    for (size_t i = 0; i < GS_ARRAY_LEN(all); i++)
        test_free(all[i]);
}

static gs_edge_launch launch_of(const rows_case *c, float *acc)
{
    return (gs_edge_launch){.edges = {.index_bytes = c->index_bytes, .targets = c->targets, .target = c->target,
                                      .start = c->start, .index = c->index, .operand_rows = c->operand_rows,
                                      .type = c->type, .type_bytes = c->type_bytes,
                                      .target_rows = 2 * c->targets + 1, .largest = c->largest},
                            .operand = c->rows, .acc = acc, .dtype = c->kind.dtype, .scale = c->scale,
                            .width = c->width, .types = c->how == ROWS ? 0 : c->types, .pick = c->how == PICK};
}

static void launch(gs_device *d, const rows_case *c, float *acc)
{
    const gs_edge_launch l = launch_of(c, acc);
    gs_alloc_freeze(true);
    const uint64_t frozen = gs_alloc_frozen_count();
    gs_assert_ok(launch_edges(d, &l));
    assert_int_equal(gs_alloc_frozen_count(), frozen);
    gs_alloc_freeze(false);
}

static void compare(const rows_case *c, const float *acc, double tolerance)
{
    for (size_t i = 0; i < c->acc_floats; i++)
        if (!(fabs((double)acc[i] - (double)c->want[i]) <= tolerance * c->size[i]))
            fail_msg("%s%s, width %u, how %d, element %zu: %.9g, not %.9g", gs_dtype_name(c->kind.dtype),
                     c->kind.scaled ? ", scaled" : "", c->width, (int)c->how, i, (double)acc[i], (double)c->want[i]);
}

static float *sums_before(const rows_case *c)
{
    float *const acc = test_malloc(c->acc_floats * sizeof(float));
    memcpy(acc, c->before, c->acc_floats * sizeof(float));
    return acc;
}

static void check(gs_device *d, rows_case c, const uint32_t *degree, double tolerance)
{
    make_case(&c, degree);
    float *const acc = sums_before(&c);
    launch(d, &c, acc);
    compare(&c, acc, tolerance);
    test_free(acc);
    free_case(&c);
}

static uint32_t types_of(how h, uint32_t i) { return h == ROWS ? 1 : 1 + i % 4 * 3; }

static const uint32_t hub_widths[] = {0, 3, 10, 14, 21}; /* in widths[] */
#define HUB_WIDTHS GS_ARRAY_LEN(hub_widths)

/* Of what is tried the part that is tried by default: numbers of widths[], and of widths or hub_widths times kinds. */
static bool takes_width(size_t w) { return takes_shape(w, 3, w / 6 % 3); }
static bool takes_width_of_kind(size_t i) { return takes_shape(i, 3, i / 6 % 3); }
static bool takes_hub_width(size_t i) { return takes_shape(i, 1, 0); }

/* Does a test below sum rows of this width so? Kernels that none has are not compiled: with a sanitizer that takes
 * longer than all that is run. */
static bool is_launched(size_t w, how h, size_t kind)
{
    const bool plain = kind == 0 && (takes_width(w) || (h == ROWS && (widths[w] == 8 || widths[w] == 64)));
    bool hub = false;
    for (size_t i = 0; i < HUB_WIDTHS; i++)
        hub |= hub_widths[i] == w &&
               ((kind == 0 && takes_hub_width(i)) || (h == ROWS && takes_width_of_kind(i * KINDS + kind)));
    return plain || hub || (h == ROWS && takes_width_of_kind(w * KINDS + kind));
}

/* A program whose stages sum rows of every width in every way, so that one device is prepared for all. */
static void prepare(gs_device *d)
{
    enum { WAYS = SPLIT + KINDS, ALL = WIDTHS * WAYS }; /* PICK, SPLIT, and ROWS of each kind */
    static gs_array array[ALL + 1];
    static gs_stage stage[ALL];
    static gs_reg reg[ALL];
    static gs_program program;
    static gs_edge_reg edge_reg[ALL][GS_ROW_SUM_REGS];
    static gs_instr product[ALL];
    static const gs_sum_types by[] = {[ROWS] = GS_TYPES_NONE, [PICK] = GS_TYPES_OF_ROWS, [SPLIT] = GS_TYPES_OF_SUM};
    uint32_t i = 0;
    for (uint32_t at = 0; at < ALL; at++) {
        const uint32_t w = at / WAYS, way = at % WAYS, kind = way <= SPLIT ? 0 : way - SPLIT;
        const how h = way <= SPLIT ? way : ROWS;
        const row_kind rows = kinds[kind];
        const uint32_t wide = widths[w] * types_of(h, w);
        if (!is_launched(w, h, kind))
            continue;
        array[i] = (gs_array){.dtype = rows.dtype, .width = h == PICK ? wide : widths[w], .store_id = -1};
        reg[i] =
            (gs_reg){.kind = GS_REG_SUM, .dtype = GS_F32, .width = h == SPLIT ? wide : widths[w], .array = GS_NONE};
        stage[i] = (gs_stage){.regs = 1, .reg = &reg[i], .edge_reg = edge_reg[i], .edge_instr = &product[i]};
        gs_stage_add_row_sum(&stage[i],
                             &(gs_row_sum){.array = i, .scale = rows.scaled ? ALL : GS_NONE, .types = by[h]}, widths[w],
                             0, false);
        i++;
    }
    array[ALL] = (gs_array){.dtype = GS_F32, .width = 1, .store_id = -1};
    program = (gs_program){.arrays = ALL + 1, .array = array, .stages = i, .stage = stage, .logits = GS_NONE};
    gs_assert_ok(gs_device_prepare(d, &program));
}

static void test_cuda_rows__every_width_and_way_in_the_order_of_the_edges(void **state)
{
    static const uint32_t bytes[][2] = {{2, 1}, {2, 2}, {4, 1}, {4, 4}}; /* of indices, of types */
    uint32_t degree[50];
    gs_device *const d = open_gpu();
    (void)state;
    prepare(d);
    for (uint32_t t = 0; t < 50; t++)
        degree[t] = t % 5 == 0 ? 0 : random_below(t, 3, 20);
    for (uint32_t i = 0; i < WIDTHS; i++)
        for (how h = ROWS; h <= SPLIT && takes_width(i); h++)
            check(d, (rows_case){.how = h, .index_bytes = bytes[i % 4][0], .type_bytes = bytes[i % 4][1], .targets = 50,
                                 .operand_rows = 37, .width = widths[i], .types = types_of(h, i)},
                  degree, 0);
    for (uint32_t i = 0; i < WIDTHS * KINDS; i++) {
        if (!takes_width_of_kind(i))
            continue;
        check(d, (rows_case){.kind = kinds[i % KINDS], .index_bytes = i % 4 < 2 ? 2 : 4, .type_bytes = 1, .targets = 50,
                             .operand_rows = 37, .width = widths[i / KINDS], .types = 1},
              degree, 0);
    }
    gs_device_close(d);
}

/* Two hubs that meet in one stretch of edges, one that begins with the first edge and one that ends with the last. */
static void test_cuda_rows__hubs_are_the_same_to_rounding(void **state)
{
    uint32_t degree[40];
    gs_device *const d = open_gpu();
    (void)state;
    prepare(d);
    for (uint32_t t = 0; t < 40; t++)
        degree[t] = random_below(t, 4, 9);
    degree[0] = 3000;
    degree[20] = 5000;
    degree[21] = 1500;
    degree[39] = 2100;
    for (size_t i = 0; i < HUB_WIDTHS; i++)
        for (how h = ROWS; h <= SPLIT && takes_hub_width(i); h++)
            check(d,
                  (rows_case){.how = h, .index_bytes = 4, .type_bytes = 2, .targets = 40, .operand_rows = 300,
                              .width = widths[hub_widths[i]], .types = types_of(h, hub_widths[i])},
                  degree, 1e-5); /* of the magnitudes: the plain loop rounds too */
    for (size_t i = 0; i < HUB_WIDTHS * KINDS; i++) {
        if (!takes_width_of_kind(i))
            continue;
        check(d,
              (rows_case){.kind = kinds[i % KINDS], .index_bytes = 4, .type_bytes = 2, .targets = 40,
                          .operand_rows = 300, .width = widths[hub_widths[i / KINDS]], .types = 1},
              degree, 1e-5);
    }
    gs_device_close(d);
}

/* Sums of a chunk whose largest degree is said to be `largest`, and the launches that they took. */
static uint64_t sums_launches(gs_device *d, rows_case *c, uint64_t largest, float *acc)
{
    c->largest = largest;
    memcpy(acc, c->before, c->acc_floats * sizeof(float));
    (void)host_gpu_take_counts();
    launch(d, c, acc);
    return real_gpu() ? 0 : host_gpu_take_counts().launches;
}

/* Pieces have 64 edges here. Where no target has more, nothing is cut and nothing merged, with the same bits as if
 * nobody knew; and nobody's word of a degree changes a sum. */
static void test_cuda_rows__nothing_is_cut_where_no_target_is_a_hub(void **state)
{
    static const uint64_t said[] = {0, 63, 64, 65, 1, UINT32_MAX};
    uint32_t degree[40];
    gs_device *const d = open_gpu();
    (void)state;
    prepare(d);
    for (int hub = 0; hub < 2; hub++) {
        rows_case c = {.how = ROWS, .index_bytes = 2, .type_bytes = 1, .targets = 40, .operand_rows = 300, .width = 64,
                       .types = 1};
        for (uint32_t t = 0; t < 40; t++)
            degree[t] = t == 7 ? 64u + (uint32_t)hub : random_below(t, 4, 40);
        make_case(&c, degree);
        float *const acc = sums_before(&c), *const unknown = sums_before(&c);
        for (size_t i = 0; i < GS_ARRAY_LEN(said); i++) {
            const bool cut = said[i] == 0 || said[i] > 64;
            const uint64_t launches = sums_launches(d, &c, said[i], i == 0 ? unknown : acc);
            if (!real_gpu())
                assert_int_equal(launches, cut ? 2 : 1);
            compare(&c, i == 0 ? unknown : acc, hub == 1 && cut ? 1e-5 : 0);
            if (i > 0 && (hub == 0 || cut))
                assert_memory_equal(acc, unknown, c.acc_floats * sizeof(float));
        }
        test_free(acc);
        test_free(unknown);
        free_case(&c);
    }
    gs_device_close(d);
}

/* Chunks of a group are launched together, as many as a launch takes (32), and each has the sums that it has alone: of
 * different sizes, some with hubs, some by another kernel. */
static void test_cuda_rows__a_group_is_one_launch_of_each_kernel(void **state)
{
    enum { CHUNKS = 41, NARROW = 5 }; /* of those that are not NARROW, 33 */
    rows_case c[CHUNKS];
    gs_edge_launch l[CHUNKS];
    float *acc[CHUNKS];
    gs_device *const d = open_gpu();
    (void)state;
    prepare(d);
    for (uint32_t i = 0; i < CHUNKS; i++) {
        uint32_t degree[40];
        for (uint32_t t = 0; t < 40; t++)
            degree[t] = random_below(t, 4 + i, 9) + (i % 7 == 3 && t % 13 == 2 ? 900 + 40 * i : 0);
        c[i] = (rows_case){.how = ROWS, .index_bytes = 4, .type_bytes = 1, .targets = 1 + i % 40, .operand_rows = 300,
                           .width = i % NARROW == 0 && i < 40 ? 8 : 64, .types = 1};
        make_case(&c[i], degree);
        acc[i] = sums_before(&c[i]);
        l[i] = launch_of(&c[i], acc[i]);
        l[i].operand = c[c[i].width == 64].rows; /* of one operand interval */
    }
    const uint64_t before = gs_device_last_launch(d);
    (void)host_gpu_take_counts();
    gs_assert_ok(launch_edge_group(d, l, CHUNKS));
    assert_int_equal(gs_device_last_launch(d), before + 1);
    if (!real_gpu()) /* 33 of 64 columns in two, 8 of 8 columns in one; the hubs of the first and the last */
        assert_int_equal(host_gpu_take_counts().launches, 2 + 1 + 2);
    for (uint32_t i = 0; i < CHUNKS; i++) {
        compare(&c[i], acc[i], i % 7 == 3 ? 1e-5 : 0);
        test_free(acc[i]);
    }
    for (uint32_t i = 0; i < CHUNKS; i++)
        free_case(&c[i]);
    gs_device_close(d);
}

/* Calls are about the GPU that a thread turned to last; opening another one turns to that. */
static void test_cuda_rows__a_gpu_is_measured_whichever_was_opened_last(void **state)
{
    static const char *const spec[] = {"cuda:0", "cuda:1"};
    gs_device *d[2];
    double bps[2] = {0, 0}, flops = 0;
    (void)state;
    if (real_gpu())
        skip(); /* there may be one */
    setenv("GS_HOST_GPUS", "2", 1);
    unsetenv("GS_HOST_GPU_MEMORY"); /* what is measured is large */
    choose_gpu();
    for (int i = 0; i < 2; i++)
        gs_assert_ok(gs_device_open(&d[i], spec[i], 1));
    gs_assert_ok(gs_device_measure_copy(d[0], &bps[0]));
    gs_assert_ok(gs_device_measure_gather(d[1], 64, 4, &bps[1]));
    gs_assert_ok(gs_device_measure_gemm(d[0], 64, 16, 16, &flops));
    assert_true(bps[0] > 0 && bps[1] > 0 && flops > 0);
    for (int i = 0; i < 2; i++)
        gs_device_close(d[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_rows__every_width_and_way_in_the_order_of_the_edges),
        cmocka_unit_test(test_cuda_rows__hubs_are_the_same_to_rounding),
        cmocka_unit_test(test_cuda_rows__nothing_is_cut_where_no_target_is_a_hub),
        cmocka_unit_test(test_cuda_rows__a_group_is_one_launch_of_each_kernel),
        cmocka_unit_test(test_cuda_rows__a_gpu_is_measured_whichever_was_opened_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
