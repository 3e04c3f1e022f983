/* A plan never uses a byte that is not there, never overwrites one that is
 * still needed, never waits in a circle, and never holds more than its budget:
 * shown by running plans of many shapes in random legal orders. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "cache_plan.h"
#include "plan_sim.h"
#include "schedule/schedule_internal.h"
#include "smallest_plan.h"
#include "support/support.h"

/* ---- a program with every shape of stage ---- */

enum { FEATURES, DEGREE, SPLIT, Y, H, G, ARRAYS };

struct fixture {
    gs_program p;
    gs_array array[ARRAYS];
    gs_stage stage[5];
    gs_pass pass[2];
    gs_param param[1];
    gs_reg reg[5][8];
    gs_instr instr[5][8];
    gs_edge_reg edge_reg[4];
    gs_chunk_table chunks;
    gs_chunk *chunk[2];
    gs_edge_set set[2];
    gs_granules granules;
    gs_row_runs rows[5];
    gs_chunk *left[2];
};

static gs_array array_of(const char *name, gs_dtype t, uint32_t width, int store_id)
{
    gs_array a = {.dtype = t, .width = width, .store_id = store_id};
    strncpy(a.name, name, sizeof(a.name) - 1);
    return a;
}

static gs_reg load(const struct fixture *f, uint32_t a)
{
    return (gs_reg){GS_REG_LOAD, f->array[a].dtype, f->array[a].width, a};
}
static gs_reg temp(uint32_t width, uint32_t array) { return (gs_reg){GS_REG_TEMP, GS_F32, width, array}; }
static gs_reg sum_reg(uint32_t width) { return (gs_reg){GS_REG_SUM, GS_F32, width, GS_NONE}; }

static void add_reg(struct fixture *f, uint32_t s, gs_reg r) { f->reg[s][f->stage[s].regs++] = r; }
static void add_instr(struct fixture *f, uint32_t s, uint32_t dst, uint32_t a)
{
    f->instr[s][f->stage[s].instrs++] = (gs_instr){.op = GS_OP_RELU, .dst = dst, .a = {GS_FROM_REG, a, 0}};
}

static void make_program(struct fixture *f, uint32_t features, uint32_t hidden)
{
    f->array[FEATURES] = array_of("features", GS_F32, features, 0);
    f->array[DEGREE] = array_of("in_degree", GS_F32, 1, 3);
    f->array[SPLIT] = array_of("split", GS_U8, 1, 2);
    f->array[Y] = array_of("y", GS_F32, hidden, -1);
    f->array[H] = array_of("h", GS_F32, hidden + 3, -1);
    f->array[G] = array_of("g", GS_F32, 7, -1);
    for (uint32_t s = 0; s < 5; s++) {
        f->stage[s].reg = f->reg[s];
        f->stage[s].instr = f->instr[s];
    }
    /* 0: vertex only; two temps in a row */
    add_reg(f, 0, load(f, FEATURES));
    add_reg(f, 0, load(f, DEGREE));
    add_reg(f, 0, temp(hidden, GS_NONE));
    add_reg(f, 0, temp(hidden, GS_NONE));
    add_reg(f, 0, temp(hidden, Y));
    add_instr(f, 0, 2, 0);
    add_instr(f, 0, 3, 2);
    add_instr(f, 0, 4, 3);
    f->param[0] = (gs_param){.dims = 1, .rows = 1, .cols = hidden, .fixed = true, .statistic = GS_STATISTIC_MEAN,
                             .running = GS_NONE}; /* of all rows: stage 1 reads it */
    f->instr[0][f->stage[0].instrs++] = (gs_instr){.op = GS_OP_MEAN_ALL, .dst = 0, .a = {GS_FROM_REG, 3, 0}};
    /* 1: in-edges, own row too; two stores */
    f->stage[1].sums = 1;
    f->stage[1].sum[0] = (gs_sum){.array = Y, .reg = 0, .self = true};
    add_reg(f, 1, sum_reg(hidden));
    add_reg(f, 1, load(f, SPLIT));
    add_reg(f, 1, temp(hidden + 3, H));
    add_reg(f, 1, temp(7, G));
    add_instr(f, 1, 2, 0);
    add_instr(f, 1, 3, 2);
    f->instr[1][0].b = (gs_operand){.kind = GS_FROM_PARAM};
    /* 2: out-edges, two sums of two arrays, loads of a store array and a made one */
    f->stage[2].sums = 2;
    f->stage[2].direction = GS_BY_SOURCE;
    f->stage[2].sum[0] = (gs_sum){.array = G, .reg = 0};
    f->stage[2].sum[1] = (gs_sum){.array = H, .reg = 1, .self = true};
    add_reg(f, 2, sum_reg(7));
    add_reg(f, 2, sum_reg(hidden + 3));
    add_reg(f, 2, load(f, H));
    add_reg(f, 2, load(f, FEATURES));
    add_reg(f, 2, temp(7, GS_NONE));
    add_instr(f, 2, 4, 0);
    /* 3 (second pass): straight from the store, the same array twice */
    f->stage[3].sums = 2;
    f->stage[3].sum[0] = (gs_sum){.array = FEATURES, .reg = 0};
    f->stage[3].sum[1] = (gs_sum){.array = FEATURES, .reg = 1, .self = true};
    add_reg(f, 3, sum_reg(features));
    add_reg(f, 3, sum_reg(features));
    add_reg(f, 3, load(f, DEGREE));
    add_reg(f, 3, temp(features, GS_NONE));
    add_instr(f, 3, 3, 0);
    /* 4: an edge program over rows of both ends, beside a plain sum */
    f->stage[4].sums = 3;
    f->stage[4].sum[0] = (gs_sum){.kind = GS_SUM_ATTEND, .reg = 0, .lse = 1, .value = 0, .score = 1};
    f->stage[4].sum[1] = (gs_sum){.kind = GS_SUM_MAX, .reg = 2, .value = 3};
    f->stage[4].sum[2] = (gs_sum){.array = FEATURES, .reg = 3};
    f->stage[4].edge_regs = 4;
    f->stage[4].edge_reg = f->edge_reg;
    f->edge_reg[0] = (gs_edge_reg){GS_EDGE_OPERAND, features, FEATURES, false};
    f->edge_reg[1] = (gs_edge_reg){GS_EDGE_TARGET, 1, DEGREE, false};
    f->edge_reg[2] = (gs_edge_reg){GS_EDGE_TARGET, features, FEATURES, false};
    f->edge_reg[3] = (gs_edge_reg){GS_EDGE_TEMP, 5, GS_NONE, false};
    add_reg(f, 4, sum_reg(features));
    add_reg(f, 4, sum_reg(1));
    add_reg(f, 4, sum_reg(5));
    add_reg(f, 4, sum_reg(features));
    add_reg(f, 4, temp(features, GS_NONE));
    add_instr(f, 4, 4, 0);
    f->pass[0] = (gs_pass){"train", 0, 3};
    f->pass[1] = (gs_pass){"eval", 3, 2};
    f->p = (gs_program){.arrays = ARRAYS, .stages = 5, .passes = 2, .array = f->array, .stage = f->stage,
                        .pass = f->pass, .param = f->param, .params = 1, .logits = GS_NONE};
}

/* Chunks of random sizes, a third of them empty. */
static void make_chunks(struct fixture *f, uint64_t vertices, uint32_t parts, bool shared, uint32_t seed)
{
    const uint64_t n = (uint64_t)parts * parts;
    f->chunks = (gs_chunk_table){.vertices = vertices, .parts = parts, .shared = shared,
                                 .interval_rows = (uint32_t)gs_div_up(vertices, parts)};
    for (int d = 0; d < 2; d++) {
        uint64_t at = 0;
        f->chunk[d] = calloc(n, sizeof(*f->chunk[d]));
        for (uint64_t i = 0; i < n; i++) {
            seed = seed * 1664525u + 1013904223u;
            gs_chunk *c = &f->chunk[d][i];
            if ((seed >> 8) % 3 == 0)
                continue;
            c->edges = 1 + (seed >> 12) % 5000;
            c->targets = c->operands = 1;
            c->offset = at;
            c->length = gs_align_up(c->edges * 4, GS_BLOCK_BYTES);
            at += c->length;
        }
        f->chunks.chunk[d] = f->chunk[shared ? 0 : d];
    }
}

/* Rows that each chunk needs: a few granules, in clumps. One in `sparse` clumps is needed. */
static void make_needs(struct fixture *f, uint32_t sparse, uint32_t seed)
{
    const uint64_t n = (uint64_t)f->chunks.parts * f->chunks.parts;
    f->granules = gs_granules_of(&f->chunks, GS_GRANULE_ROWS);
    for (int d = 0; d < 2; d++) {
        uint64_t *need = calloc(n * f->granules.words, sizeof(*need));
        for (uint64_t i = 0; i < n; i++) {
            const uint32_t rows = gs_interval_rows(&f->chunks, (uint32_t)(i % f->chunks.parts));
            const uint32_t granules = (rows + GS_GRANULE_ROWS - 1) / GS_GRANULE_ROWS;
            if (f->chunks.chunk[d][i].edges == 0)
                continue;
            for (uint32_t g = 0; g < granules; g++) {
                seed = seed * 1664525u + 1013904223u;
                const bool on = g == granules / 2 || (seed >> 8) % sparse == 0;
                for (uint32_t k = 0; on && k < 1 + (seed >> 20) % 9 && g + k < granules; k++)
                    need[i * f->granules.words + (g + k) / 64] |= 1ull << ((g + k) % 64);
            }
        }
        f->set[d] = (gs_edge_set){f->chunks.chunk[d], need};
    }
}

static bool in_runs(const gs_row_runs *r, uint32_t interval, uint32_t row)
{
    for (uint32_t k = r->first[interval]; k < r->first[interval + 1]; k++)
        if (row >= r->run[k].first && row - r->run[k].first < r->run[k].rows)
            return true;
    return false;
}

/* Every stage runs for the same rows: up to three runs an interval, none in some. What chunks need is within. */
static void make_rows(struct fixture *f, uint32_t seed)
{
    const uint32_t parts = f->chunks.parts, words = f->granules.words;
    gs_row_runs r = {.first = calloc(parts + 1, sizeof(*r.first)), .run = calloc(3 * parts, sizeof(*r.run))};
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t at = 0, n = r.first[i];
        for (int k = 0; k < 3 && i % 5 != 3; k++) {
            seed = seed * 1664525u + 1013904223u;
            const uint32_t first = at + 16 * ((seed >> 8) % 30), rows = 16 + 16 * ((seed >> 16) % 100);
            if (first + rows > gs_interval_rows(&f->chunks, i))
                break;
            r.run[n++] = (gs_row_run){first, rows};
            at = first + rows + GS_ROW_GAP;
        }
        r.first[i + 1] = n;
    }
    for (int s = 0; s < 5; s++)
        f->rows[s] = r;
    /* Stage 1 stores only a part of an interval's first run; later stages read 0 for the others. */
    f->rows[1] = (gs_row_runs){.first = calloc(parts + 1, sizeof(*r.first)), .run = calloc(3 * parts, sizeof(*r.run))};
    for (uint32_t i = 0; i < parts; i++) {
        f->rows[1].first[i + 1] = f->rows[1].first[i] + (r.first[i + 1] > r.first[i]);
        gs_row_run *part = &f->rows[1].run[f->rows[1].first[i]];
        *part = r.run[r.first[i]];
        if (part->rows > 48) {
            part->first += 16;
            part->rows -= 32;
        }
    }
    for (int d = 0; d < 2; d++) {
        f->left[d] = malloc((uint64_t)parts * parts * sizeof(gs_chunk));
        memcpy(f->left[d], f->chunks.chunk[d], (uint64_t)parts * parts * sizeof(gs_chunk));
        for (uint32_t i = 0; i < parts * parts; i++) {
            uint64_t *need = (uint64_t *)(uintptr_t)f->set[d].need + (uint64_t)i * words, any = 0;
            for (uint32_t g = 0; g < words * 64; g++)
                if (!in_runs(&r, i % parts, g * GS_GRANULE_ROWS))
                    need[g / 64] &= ~(1ull << (g % 64));
            for (uint32_t w = 0; w < words; w++)
                any |= need[w];
            if (any == 0 || r.first[i / parts] == r.first[i / parts + 1])
                f->left[d][i].edges = f->left[d][i].length = 0;
        }
        f->set[d].chunk = f->left[d];
    }
}

static void drop(struct fixture *f)
{
    free(f->left[0]);
    free(f->left[1]);
    free(f->rows[0].first);
    free(f->rows[0].run);
    free(f->rows[1].first);
    free(f->rows[1].run);
    free((void *)(uintptr_t)f->set[0].need);
    free((void *)(uintptr_t)f->set[1].need);
    free(f->chunk[0]);
    free(f->chunk[1]);
}

static gs_schedule_config config_of(const struct fixture *f, uint64_t host, uint64_t device)
{
    return (gs_schedule_config){.program = &f->p, .chunks = &f->chunks, .array_sum_bytes = 65536,
                                .host_memory = host, .device_memory = device, .unified = true,
                                .host_fixed = 1 * GS_MIB, .device_fixed = 64 * GS_KIB};
}

static void assert_within(const gs_plan *p, const gs_schedule_config *c)
{
    uint64_t regions = 0;
    for (int r = 1; r < GS_REGION_COUNT; r++)
        regions += p->region_bytes[r];
    assert_true(p->host_bytes <= c->host_memory);
    assert_true(p->device_bytes <= c->device_memory);
    assert_true(p->host_bytes >= c->host_fixed + c->device_fixed + regions);
}

/* ---- tests ---- */

static void run_plan(uint64_t vertices, uint32_t parts, uint64_t host, uint64_t device, bool shared, uint32_t seed)
{
    struct fixture f = {0};
    gs_plan *plan = NULL;
    make_program(&f, 37, 16);
    make_chunks(&f, vertices, parts, shared, seed);
    const gs_schedule_config c = config_of(&f, host, device);
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_within(plan, &c);
    plan_sim_run(plan, &c, 0, 2, seed);
    plan_sim_run(plan, &c, 1, 2, seed + 1);
    gs_plan_free(plan);
    drop(&f);
}

static void test_plan__everything_in_memory_moves_nothing(void **state)
{
    (void)state;
    struct fixture f = {0};
    gs_plan *plan = NULL;
    make_program(&f, 37, 16);
    make_chunks(&f, 5000, 3, false, 7);
    const gs_schedule_config c = config_of(&f, 256 * GS_MIB, 128 * GS_MIB);
    gs_assert_ok(gs_schedule(&plan, &c));
    for (uint32_t p = 0; p < 2; p++) {
        assert_int_equal(plan->pass[p].read_bytes, 0);
        assert_int_equal(plan->pass[p].written_bytes, 0);
        plan_sim_run(plan, &c, p, 2, 3);
    }
    gs_plan_free(plan);
    drop(&f);
}

static void test_plan__is_safe_in_any_order(void **state)
{
    (void)state;
    run_plan(6000, 1, 10 * GS_MIB, 4 * GS_MIB, false, 1);
    run_plan(6000, 2, 6 * GS_MIB, 2 * GS_MIB, false, 2);
    run_plan(6000, 8, 5 * GS_MIB, 2 * GS_MIB, false, 3);
    run_plan(6000, 8, 5 * GS_MIB, 2 * GS_MIB, true, 4);
    run_plan(6007, 17, 5 * GS_MIB, 2 * GS_MIB, false, 5);
    run_plan(9001, 5, 7 * GS_MIB, 3 * GS_MIB, false, 6);
}

static void test_plan__is_safe_with_columns_in_any_order(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 8; k++) {
        struct fixture f = {0};
        make_program(&f, 37, 16);
        make_chunks(&f, 6007, 5 + k % 13, k % 2 == 0, k);
        const gs_schedule_config c = config_of(&f, 64 * GS_MIB, (3 + k % 3) * GS_MIB);
        gs_plan *plan = shuffled_plan_make(&c, k % 4 * 300 * GS_KIB, k);
        plan_sim_run(plan, &c, 0, 2, k);
        plan_sim_run(plan, &c, 1, 2, k);
        gs_plan_free(plan);
        drop(&f);
    }
}

/* The first columns wait for the disk, the last ones compute: better in turn. */
static void test_order__is_taken_where_the_simulation_says_so(void **state)
{
    (void)state;
    uint32_t found = 0;
    for (uint32_t k = 0; k < 8; k++) {
        struct fixture f = {0};
        make_program(&f, 37, 16);
        make_chunks(&f, 9001, 17, false, k);
        for (uint32_t i = 0; i < 2 * 17 * 17; i++)
            f.chunk[i % 2][i / 2].edges *= i / 2 / 17 >= 8 ? 20 : 1;
        const gs_schedule_config c = config_of(&f, (4 + k % 2) * GS_MIB, 1 * GS_MIB);
        found += ordered_plan_check(&c, f.chunk, 1e8 * (1 + k), k);
        drop(&f);
    }
    assert_true(found > 2);
}

/* The last task before `i` of the pass that is a compute or, for `writes`, a write; GS_NONE for none. */
static uint32_t last_before(const gs_plan *p, const gs_plan_pass *pass, uint32_t i, bool writes)
{
    while (i-- > pass->first_task)
        if (p->task[i].kind != GS_TASK_READ && (p->task[i].kind == GS_TASK_WRITE) == writes)
            return i;
    return GS_NONE;
}

static bool waits_for(const gs_plan *p, const gs_task *t, uint32_t task)
{
    for (uint32_t i = 0; i < t->deps; i++)
        if (p->dep[t->first_dep + i] == task)
            return true;
    return task == GS_NONE;
}

static void test_plan__without_pipeline_reads_wait_for_what_is_before_them(void **state)
{
    (void)state;
    struct fixture f = {0};
    gs_plan *plan = NULL;
    uint32_t reads = 0;
    make_program(&f, 37, 16);
    make_chunks(&f, 9000, 5, false, 11);
    gs_schedule_config c = config_of(&f, 6 * GS_MIB, 2 * GS_MIB);
    c.no_pipeline = true;
    c.force_spill = true;
    gs_assert_ok(gs_schedule(&plan, &c));
    for (uint32_t p = 0; p < 2; p++) {
        const gs_plan_pass *const pass = &plan->pass[p];
        for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
            if (plan->task[i].kind != GS_TASK_READ)
                continue;
            assert_true(waits_for(plan, &plan->task[i], last_before(plan, pass, i, false)));
            assert_true(waits_for(plan, &plan->task[i], last_before(plan, pass, i, true)));
            reads++;
        }
        plan_sim_run(plan, &c, p, 2, 5);
    }
    assert_true(reads > 20);
    gs_plan_free(plan);
    drop(&f);
}

/* At exactly the budget that a refusal names, the plan exists and is safe. */
static void test_budget__smallest_named_works(void **state)
{
    (void)state;
    for (uint32_t parts = 1; parts <= 9; parts += 4) {
        struct fixture f = {0};
        make_program(&f, 37, 16);
        make_chunks(&f, 20000, parts, false, parts);
        gs_schedule_config c = config_of(&f, 512 * GS_MIB, 100 * GS_KIB);
        gs_plan *const plan = plan_smallest(&c);
        assert_within(plan, &c);
        plan_sim_run(plan, &c, 0, 1, 9);
        plan_sim_run(plan, &c, 1, 1, 9);
        gs_plan_free(plan);
        drop(&f);
    }
}

/* More memory never moves more bytes. */
static void test_plan__more_memory_moves_fewer_bytes(void **state)
{
    (void)state;
    struct fixture f = {0};
    uint64_t before = UINT64_MAX;
    make_program(&f, 37, 16);
    make_chunks(&f, 20000, 8, false, 11);
    for (uint64_t host = 6 * GS_MIB; host <= 24 * GS_MIB; host += 2 * GS_MIB) {
        gs_plan *plan = NULL;
        const gs_schedule_config c = config_of(&f, host, 2 * GS_MIB);
        gs_assert_ok(gs_schedule(&plan, &c));
        const uint64_t moved = plan->pass[0].read_bytes + plan->pass[0].written_bytes +
                               plan->pass[1].read_bytes + plan->pass[1].written_bytes;
        assert_true(moved <= before);
        before = moved;
        gs_plan_free(plan);
    }
    assert_int_equal(before, 0);
    drop(&f);
}

/* What is read into the cache is there when it is used and not overwritten before, an epoch begins with what the one before
 * has left, and other passes between two epochs change nothing of it. */
static void test_plan__cache_is_safe_in_any_order(void **state)
{
    uint32_t brought = 0, left = 0;
    (void)state;
    for (uint32_t k = 0; k < 8; k++) {
        struct fixture f = {0};
        make_program(&f, 37, 16);
        make_chunks(&f, 6000, 4 + k % 5, k % 3 == 0, k);
        make_needs(&f, 4, k);
        gs_schedule_config c = config_of(&f, 64 * GS_MIB, 1 * GS_MIB);
        if (k % 4 == 3) {
            c.sets = 2;
            c.set = f.set;
            c.granules = f.granules;
        }
        gs_plan *plan = cache_plan_make(&c, (k + 1) * 200 * GS_KIB, k % 2 == 0);
        for (uint32_t i = 0; i < plan->tasks; i++)
            brought += plan->task[i].kind == GS_TASK_READ && plan->task[i].place.region == GS_REGION_RESIDENT;
        for (uint32_t i = 0; i < plan->residents; i++)
            left += plan->resident[i].first != 0;
        plan_sim_run(plan, &c, 0, 3, k);
        plan_sim_run(plan, &c, GS_NONE, 4, k + 1);
        gs_plan_free(plan);
        drop(&f);
    }
    assert_true(brought > 20 && left > 20);
}

static void test_plan__forced_spill_keeps_nothing(void **state)
{
    (void)state;
    struct fixture f = {0};
    gs_plan *plan = NULL;
    make_program(&f, 37, 16);
    make_chunks(&f, 5000, 3, false, 7);
    gs_schedule_config c = config_of(&f, 256 * GS_MIB, 128 * GS_MIB);
    c.force_spill = true;
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_int_equal(plan->residents, 0);
    assert_true(plan->pass[0].written_bytes >= 5000ull * 4 * (16 + 19 + 7));
    plan_sim_run(plan, &c, 0, 2, 3);
    gs_plan_free(plan);
    drop(&f);
}

/* Runs of rows: what chunks use is read, in fewer bytes than whole intervals take, and on
 * a disk that takes long for each request in fewer requests. */
static void run_selective(uint64_t vertices, uint32_t parts, bool shared, uint32_t sparse, uint32_t seed)
{
    struct fixture f = {0};
    gs_plan *whole = NULL, *some = NULL, *few = NULL;
    make_program(&f, 37, 16);
    make_chunks(&f, vertices, parts, shared, seed);
    make_needs(&f, sparse, seed);
    gs_schedule_config c = config_of(&f, 64 * GS_MIB, 4 * GS_MIB);
    c.force_spill = true;
    gs_assert_ok(gs_schedule(&whole, &c));
    c.sets = 2;
    c.set = f.set;
    c.granules = f.granules;
    gs_assert_ok(gs_schedule(&some, &c));
    plan_sim_run(some, &c, 0, 2, seed);
    plan_sim_run(some, &c, 1, 2, seed);
    c.disk_bps = 1e9;
    c.disk_request_seconds = 20e-6;
    gs_assert_ok(gs_schedule(&few, &c));
    plan_sim_run(few, &c, 0, 2, seed);
    for (uint32_t p = 0; p < 2; p++) {
        assert_true(some->pass[p].read_bytes + some->pass[p].skipped_bytes == whole->pass[p].read_bytes);
        assert_true(some->pass[p].read_bytes <= whole->pass[p].read_bytes);
        assert_true(few->pass[p].read_requests <= some->pass[p].read_requests);
    }
    assert_true(some->pass[0].skipped_bytes > 0);
    gs_plan_free(whole);
    gs_plan_free(some);
    gs_plan_free(few);
    drop(&f);
}

static void test_plan__reads_runs_of_needed_rows(void **state)
{
    (void)state;
    run_selective(60000, 12, false, 200, 21);
    run_selective(60000, 12, true, 1000, 22);
    run_selective(40007, 17, false, 60, 23);
}

/* Stages that run for some rows: sums hold no others, tiles run for no others, files of the run get
 * no others, and what is read is still all that is used. */
static void run_pruned(uint64_t vertices, uint32_t parts, bool shared, uint64_t host, bool spill, uint32_t seed)
{
    struct fixture f = {0};
    gs_plan *all = NULL, *some = NULL;
    make_program(&f, 37, 16);
    f.stage[0].instrs--; /* no statistic: it would want all rows */
    f.instr[1][0].b = (gs_operand){0};
    make_chunks(&f, vertices, parts, shared, seed);
    make_needs(&f, 40, seed);
    gs_schedule_config c = config_of(&f, host, 4 * GS_MIB);
    c.force_spill = spill;
    gs_assert_ok(gs_schedule(&all, &c));
    make_rows(&f, seed);
    c.sets = 2;
    c.set = f.set;
    c.granules = f.granules;
    c.stage_rows = f.rows;
    gs_assert_ok(gs_schedule(&some, &c));
    assert_within(some, &c);
    for (uint32_t p = 0; p < 2; p++) {
        plan_sim_run(some, &c, p, 2, seed);
        assert_true(some->pass[p].rows < all->pass[p].rows);
        assert_true(some->pass[p].edges < all->pass[p].edges);
        assert_true(some->pass[p].read_bytes <= all->pass[p].read_bytes);
        assert_true(some->pass[p].blocks <= all->pass[p].blocks);
    }
    gs_plan_free(all);
    gs_plan_free(some);
    drop(&f);
}

static void test_plan__runs_for_needed_rows_alone(void **state)
{
    (void)state;
    run_pruned(60000, 12, false, 64 * GS_MIB, true, 31);
    run_pruned(60000, 12, true, 64 * GS_MIB, false, 32);
    run_pruned(40007, 17, false, 12 * GS_MIB, false, 33);
}

/* Rows 0-15 and 64-79 of 256 B each: two blocks of 4 KiB with a gap of three between. */
static void test_ring__waits_for_what_it_overwrites(void **state)
{
    (void)state;
    gs_ring_sim r;
    uint64_t a, b, c;
    uint32_t waits[8], n = 0;
    gs_ring_init(&r, 3 * GS_BLOCK_BYTES);
    gs_assert_ok(gs_ring_take(&r, 1, &a, waits, 8, &n));
    gs_assert_ok(gs_ring_take(&r, GS_BLOCK_BYTES, &b, waits, 8, &n));
    assert_int_equal(n, 0);
    assert_int_equal(gs_ring_take(&r, 2 * GS_BLOCK_BYTES, &c, waits, 8, &n), GS_EAGAIN);
    gs_ring_release(&r, b, 42);
    gs_assert_ok(gs_ring_take(&r, 2 * GS_BLOCK_BYTES, &c, waits, 8, &n)); /* steps over a, which is live */
    assert_int_equal(c, GS_BLOCK_BYTES);
    assert_int_equal(n, 1);
    assert_int_equal(waits[0], 42);
    gs_ring_drop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring__waits_for_what_it_overwrites),
        cmocka_unit_test(test_plan__everything_in_memory_moves_nothing),
        cmocka_unit_test(test_plan__is_safe_in_any_order),
        cmocka_unit_test(test_plan__without_pipeline_reads_wait_for_what_is_before_them),
        cmocka_unit_test(test_budget__smallest_named_works),
        cmocka_unit_test(test_plan__more_memory_moves_fewer_bytes),
        cmocka_unit_test(test_plan__cache_is_safe_in_any_order),
        cmocka_unit_test(test_plan__forced_spill_keeps_nothing),
        cmocka_unit_test(test_plan__reads_runs_of_needed_rows),
        cmocka_unit_test(test_plan__runs_for_needed_rows_alone),
        cmocka_unit_test(test_plan__is_safe_with_columns_in_any_order),
        cmocka_unit_test(test_order__is_taken_where_the_simulation_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
