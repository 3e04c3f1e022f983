/* Sums of rows, as they are and by type, against plain loops in the order of the edges. Without hubs the bits
 * are the same; a hub's pieces are added up apart, so its sums agree to rounding. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "cuda/cuda_internal.h" /* orders of targets */
#include "device_fixture.h"
#include "gpu_devices.h"

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
    uint32_t first_edge; /* edges before it belong to nobody */
    void *target, *index, *type;
    uint32_t *start;
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
    c->start[0] = c->first_edge;
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

static void launch(gs_device *d, const rows_case *c, float *acc)
{
    const gs_edge_launch l = {.edges = {.index_bytes = c->index_bytes, .targets = c->targets, .target = c->target,
                                        .start = c->start, .index = c->index, .operand_rows = c->operand_rows,
                                        .type = c->type, .type_bytes = c->type_bytes,
                                        .target_rows = 2 * c->targets + 1},
                              .operand = c->rows, .acc = acc, .dtype = c->kind.dtype, .scale = c->scale,
                              .width = c->width, .types = c->how == ROWS ? 0 : c->types, .pick = c->how == PICK};
    device_forget(d);
    gs_alloc_freeze(true);
    const uint64_t frozen = gs_alloc_frozen_count();
    gs_assert_ok(gs_device_run_edges(d, &l));
    assert_int_equal(gs_alloc_frozen_count(), frozen);
    gs_alloc_freeze(false);
    device_wait(d);
}

static void check(gs_device *d, rows_case c, const uint32_t *degree, double tolerance)
{
    make_case(&c, degree);
    float *const acc = test_malloc(c.acc_floats * sizeof(float));
    memcpy(acc, c.before, c.acc_floats * sizeof(float));
    launch(d, &c, acc);
    for (size_t i = 0; i < c.acc_floats; i++)
        if (!(fabs((double)acc[i] - (double)c.want[i]) <= tolerance * c.size[i]))
            fail_msg("%s%s, width %u, how %d, element %zu: %.9g, not %.9g", gs_dtype_name(c.kind.dtype),
                     c.kind.scaled ? ", scaled" : "", c.width, (int)c.how, i, (double)acc[i], (double)c.want[i]);
    test_free(acc);
    free_case(&c);
}

static uint32_t types_of(how h, uint32_t i) { return h == ROWS ? 1 : 1 + i % 4 * 3; }

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
    for (uint32_t i = 0; i < ALL; i++) {
        const how h = i % WAYS <= SPLIT ? i % WAYS : ROWS;
        const row_kind rows = kinds[i % WAYS <= SPLIT ? 0 : i % WAYS - SPLIT];
        const uint32_t w = i / WAYS, wide = widths[w] * types_of(h, w);
        array[i] = (gs_array){.dtype = rows.dtype, .width = h == PICK ? wide : widths[w], .store_id = -1};
        reg[i] =
            (gs_reg){.kind = GS_REG_SUM, .dtype = GS_F32, .width = h == SPLIT ? wide : widths[w], .array = GS_NONE};
        stage[i] = (gs_stage){.regs = 1, .reg = &reg[i], .edge_reg = edge_reg[i], .edge_instr = &product[i]};
        gs_stage_add_row_sum(&stage[i],
                             &(gs_row_sum){.array = i, .scale = rows.scaled ? ALL : GS_NONE, .types = by[h]}, widths[w],
                             0, false);
    }
    array[ALL] = (gs_array){.dtype = GS_F32, .width = 1, .store_id = -1};
    program = (gs_program){.arrays = ALL + 1, .array = array, .stages = ALL, .stage = stage, .logits = GS_NONE};
    gs_assert_ok(gs_device_prepare(d, &program));
}

static void test_cuda_rows__every_width_and_way_in_the_order_of_the_edges(void **state)
{
    static const uint32_t bytes[][2] = {{2, 1}, {2, 2}, {4, 1}, {4, 4}}; /* of indices, of types */
    uint32_t degree[50];
    gs_device *const d = open_gpu(16 * GS_MIB);
    (void)state;
    prepare(d);
    for (uint32_t t = 0; t < 50; t++)
        degree[t] = t % 5 == 0 ? 0 : random_below(t, 3, 20);
    for (uint32_t i = 0; i < WIDTHS; i++)
        for (how h = ROWS; h <= SPLIT; h++)
            check(d, (rows_case){.how = h, .index_bytes = bytes[i % 4][0], .type_bytes = bytes[i % 4][1], .targets = 50,
                                 .operand_rows = 37, .width = widths[i], .types = types_of(h, i), .first_edge = i % 3},
                  degree, 0);
    for (uint32_t i = 0; i < WIDTHS * KINDS; i++)
        check(d, (rows_case){.kind = kinds[i % KINDS], .index_bytes = i % 4 < 2 ? 2 : 4, .type_bytes = 1, .targets = 50,
                             .operand_rows = 37, .width = widths[i / KINDS], .types = 1, .first_edge = i % 3},
              degree, 0);
    gs_device_close(d);
}

/* Two hubs that meet in one stretch of edges, one that begins with the first edge and one that ends with the last. */
static void test_cuda_rows__hubs_are_the_same_to_rounding(void **state)
{
    static const uint32_t hub_widths[] = {0, 3, 10, 14, 21}; /* in widths[] */
    uint32_t degree[40];
    gs_device *const d = open_gpu(16 * GS_MIB);
    (void)state;
    prepare(d);
    for (uint32_t t = 0; t < 40; t++)
        degree[t] = random_below(t, 4, 9);
    degree[0] = 3000;
    degree[20] = 5000;
    degree[21] = 1500;
    degree[39] = 2100;
    for (size_t i = 0; i < GS_ARRAY_LEN(hub_widths); i++)
        for (how h = ROWS; h <= SPLIT; h++)
            check(d,
                  (rows_case){.how = h, .index_bytes = 4, .type_bytes = 2, .targets = 40, .operand_rows = 300,
                              .width = widths[hub_widths[i]], .types = types_of(h, hub_widths[i]),
                              .first_edge = 5 * (uint32_t)i},
                  degree, 1e-5); /* of the magnitudes: the plain loop rounds too */
    for (size_t i = 0; i < GS_ARRAY_LEN(hub_widths) * KINDS; i++)
        check(d,
              (rows_case){.kind = kinds[i % KINDS], .index_bytes = 4, .type_bytes = 2, .targets = 40,
                          .operand_rows = 300, .width = widths[hub_widths[i / KINDS]], .types = 1},
              degree, 1e-5);
    gs_device_close(d);
}

/* ---- targets by degree ---- */

/* The case's chunk in one stretch of memory, as a store has it. */
static void *in_one_stretch(rows_case *c, uint64_t *bytes)
{
    const uint32_t edges = c->start[c->targets];
    void **const part[] = {&c->target, (void **)&c->start, &c->index, &c->type};
    const uint64_t size[] = {(uint64_t)c->targets * c->index_bytes, (c->targets + 1ull) * 4,
                             (uint64_t)edges * c->index_bytes, (uint64_t)edges * c->type_bytes};
    uint64_t at = 0;
    for (size_t i = 0; i < GS_ARRAY_LEN(part); i++)
        at += gs_align_up(size[i], 16);
    *bytes = at;
    char *const whole = test_malloc(at);
    at = 0;
    for (size_t i = 0; i < GS_ARRAY_LEN(part); i++) {
        memcpy(whole + at, *part[i], size[i]);
        test_free(*part[i]);
        *part[i] = whole + at;
        at += gs_align_up(size[i], 16);
    }
    return whole;
}

/* The sums, by a device that mirrors the chunk and may keep `orders`; what it copied in. */
static uint64_t sum_mirrored(const rows_case *c, void *chunk, uint64_t bytes, gs_device_orders orders, float *acc)
{
    gs_device *d = NULL;
    void *arena = NULL;
    gs_device_range mirror = {chunk, bytes};
    const gs_device_memory memory = {.staging_bytes = 16 * GS_MIB, .mirrors = 1, .mirror = &mirror, .orders = orders};
    choose_gpu();
    gs_assert_ok(gs_device_open(&d, "cuda", 1));
    gs_assert_ok(gs_device_take_memory(d, &memory, &arena));
    prepare(d);
    memcpy(acc, c->before, c->acc_floats * sizeof(float));
    launch(d, c, acc);
    const uint64_t in = gs_device_take_copied(d).in;
    gs_device_close(d);
    return in;
}

/* In both ways the same bits; `kept`: bytes of the order that is made, 0: none is. */
static void check_order(rows_case c, const uint32_t *degree, uint64_t kept)
{
    const gs_device_orders room = {.targets = c.targets, .chunks = 1, .most = c.targets};
    uint64_t bytes = 0;
    make_case(&c, degree);
    void *const chunk = in_one_stretch(&c, &bytes);
    float *const plain = test_malloc(c.acc_floats * sizeof(float));
    float *const ordered = test_malloc(c.acc_floats * sizeof(float));
    const uint64_t without = sum_mirrored(&c, chunk, bytes, (gs_device_orders){0}, plain);
    assert_int_equal(sum_mirrored(&c, chunk, bytes, room, ordered) - without, kept);
    assert_memory_equal(plain, ordered, c.acc_floats * sizeof(float));
    for (size_t i = 0; i < c.acc_floats; i++)
        assert_true(fabs((double)ordered[i] - (double)c.want[i]) <= 1e-5 * c.size[i]);
    test_free(plain);
    test_free(ordered);
    c.target = c.index = c.type = NULL;
    c.start = NULL;
    free_case(&c);
    test_free(chunk);
}

static void test_cuda_rows__by_degree_all_bits_are_the_same(void **state)
{
    static const uint32_t order_widths[] = {0, 3, 9, 14, 21};
    enum { MANY = 700 };
    uint32_t skewed[MANY], even[MANY];
    (void)state;
    for (uint32_t t = 0; t < MANY; t++) {
        even[t] = 5 + t % 2;
        skewed[t] = t % 16 == 3 ? 40 + random_below(t, 5, 300) : random_below(t, 4, 7);
    }
    skewed[100] = 3000; /* hubs, cut in pieces */
    skewed[101] = 1500;
    for (size_t i = 0; i < GS_ARRAY_LEN(order_widths); i++)
        for (how h = ROWS; h <= SPLIT; h++) {
            const uint32_t w = order_widths[i];
            const rows_case c = {.how = h, .index_bytes = i % 2 == 0 ? 2 : 4, .type_bytes = 1, .targets = MANY,
                                 .operand_rows = 60, .width = widths[w], .types = types_of(h, w)};
            check_order(c, skewed, MANY * sizeof(uint32_t));
            if (i == 0)
                check_order(c, even, 0); /* an order would save nothing */
        }
}

/* Where a chunk was there is another one: of other degrees, then of fewer targets, for which the order kept names too
 * many. */
static void test_cuda_rows__an_order_that_was_kept_for_another_chunk(void **state)
{
    enum { MANY = 300, WIDTH_8 = 7 };
    uint32_t degree[MANY];
    uint64_t bytes = 0;
    rows_case c = {.how = ROWS, .index_bytes = 4, .type_bytes = 1, .targets = MANY, .operand_rows = 60,
                   .width = widths[WIDTH_8], .types = 1};
    gs_device *d = NULL;
    void *arena = NULL;
    (void)state;
    for (uint32_t t = 0; t < MANY; t++)
        degree[t] = t % 16 == 3 ? 90 : 2;
    make_case(&c, degree);
    char *const chunk = in_one_stretch(&c, &bytes);
    gs_device_range mirror = {chunk, bytes};
    const gs_device_memory memory = {.staging_bytes = 16 * GS_MIB, .mirrors = 1, .mirror = &mirror,
                                     .orders = {.targets = MANY, .chunks = 1, .most = MANY}};
    choose_gpu();
    gs_assert_ok(gs_device_open(&d, "cuda", 1));
    gs_assert_ok(gs_device_take_memory(d, &memory, &arena));
    prepare(d);
    float *const acc = test_malloc(c.acc_floats * sizeof(float));
    for (int round = 0; round < 3; round++) {
        memcpy(acc, c.before, c.acc_floats * sizeof(float));
        launch(d, &c, acc); /* which tells the device of changed memory first */
        assert_memory_equal(acc, c.want, c.acc_floats * sizeof(float));
        memcpy(c.want, c.before, c.acc_floats * sizeof(float));
        for (uint32_t t = 0; t < MANY; t++)
            c.start[t + 1] = c.start[t] + degree[MANY - 1 - t];
        c.targets = round == 0 ? MANY : MANY - 20;
        expect(&c);
    }
    test_free(acc);
    gs_device_close(d);
    c.target = c.index = c.type = NULL;
    c.start = NULL;
    free_case(&c);
    test_free(chunk);
}

/* Of 12 targets in blocks of 4, 4 edges a step: by hand. */
static void test_cuda_rows__what_blocks_hold(void **state)
{
    static const uint32_t degree[12] = {1, 9, 0, 40, 2, 9, 9, 1, 4, 0, 17, 600};
    static const uint32_t falling[12] = {11, 3, 10, 1, 5, 6, 8, 4, 0, 7, 2, 9};
    uint32_t start[13] = {7}, order[12];
    (void)state;
    for (uint32_t t = 0; t < 12; t++)
        start[t + 1] = start[t] + degree[t];
    gs_cuda_sort_targets(order, start, 12);
    assert_memory_equal(order, falling, sizeof(order));
    assert_int_equal(gs_cuda_held_steps(NULL, start, 12, 4, 512), 4 * (10 + 3 + 5)); /* the last is a hub */
    assert_int_equal(gs_cuda_held_steps(order, start, 12, 4, 512), 4 * (10 + 3 + 1));
    assert_int_equal(gs_cuda_held_steps(order, start, 12, 8, 512), 8 * (10 + 1));
    assert_int_equal(gs_cuda_held_steps(NULL, start, 12, 4, 600), 4 * (10 + 3 + 150));
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
    choose_gpu();
    for (int i = 0; i < 2; i++)
        gs_assert_ok(gs_device_open(&d[i], spec[i], 1));
    gs_assert_ok(gs_device_measure_copy(d[0], &bps[0]));
    gs_assert_ok(gs_device_measure_transfer(d[1], &bps[1]));
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
        cmocka_unit_test(test_cuda_rows__by_degree_all_bits_are_the_same),
        cmocka_unit_test(test_cuda_rows__an_order_that_was_kept_for_another_chunk),
        cmocka_unit_test(test_cuda_rows__what_blocks_hold),
        cmocka_unit_test(test_cuda_rows__a_gpu_is_measured_whichever_was_opened_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
