/* Plans of sequences: the derivative of an LSTM over in-edges has the right states at the start of every chunk, goes
 * through the chunks of a column from the last to the first, and loses nothing of what it adds up at the operand end,
 * in memory or spilled, at any budget that is not refused, on one device or on several that add to the same rows in
 * turn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan_sim.h"
#include "smallest_plan.h"
#include "support/moves.h"
#include "support/support.h"
#include "topologies.h"

enum { FEATURES, GATES, DH, DGATES, OUT, ARRAYS };
enum { WIDTH = 3, STAGES = 4 };

struct fixture {
    gs_program p;
    gs_array array[ARRAYS];
    gs_param param;
    gs_stage stage[STAGES];
    gs_pass pass;
    gs_reg reg[STAGES][4];
    gs_instr instr[STAGES][4];
    gs_edge_reg edge_reg[2][2];
    gs_chunk_table chunks;
    gs_chunk *chunk[2];
};

static gs_array array_of(const char *name, uint32_t width, int store_id)
{
    gs_array a = {.dtype = GS_F32, .width = width, .store_id = store_id};
    strncpy(a.name, name, sizeof(a.name) - 1);
    return a;
}

/* A stage whose vertex program makes array `to` from register 0, which is there already. */
static void store_from_first(struct fixture *f, uint32_t s, uint32_t to)
{
    gs_stage *st = &f->stage[s];
    f->reg[s][st->regs] = (gs_reg){GS_REG_TEMP, GS_F32, f->array[to].width, to};
    f->instr[s][0] = (gs_instr){.op = GS_OP_RELU, .dst = st->regs++, .a = {GS_FROM_REG, 0, 0}};
    st->instrs = 1;
}

static void load_first(struct fixture *f, uint32_t s, uint32_t a)
{
    f->reg[s][f->stage[s].regs++] = (gs_reg){GS_REG_LOAD, GS_F32, f->array[a].width, a};
}

/* gates of features; the state's last value; its derivative; and what comes of that. */
static void make_program(struct fixture *f)
{
    f->array[FEATURES] = array_of("features", 4 * WIDTH, 0);
    f->array[GATES] = array_of("gates", 4 * WIDTH, -1);
    f->array[DH] = array_of("dh", WIDTH, -1);
    f->array[DGATES] = array_of("dgates", 4 * WIDTH, -1);
    f->array[OUT] = array_of("out", 4 * WIDTH, -1);
    f->param = (gs_param){.name = "w", .dims = 2, .rows = 4 * WIDTH, .cols = WIDTH};
    for (uint32_t s = 0; s < STAGES; s++) {
        f->stage[s].reg = f->reg[s];
        f->stage[s].instr = f->instr[s];
    }
    load_first(f, 0, FEATURES);
    store_from_first(f, 0, GATES);

    f->edge_reg[0][0] = (gs_edge_reg){.kind = GS_EDGE_OPERAND, .width = 4 * WIDTH, .array = GATES};
    f->stage[1].edge_reg = f->edge_reg[0];
    f->stage[1].edge_regs = 1;
    f->stage[1].sums = 1;
    f->stage[1].sum[0] = (gs_sum){.kind = GS_SUM_LSTM, .reg = 0, .value = 0, .weight = 0};
    f->reg[1][f->stage[1].regs++] = (gs_reg){GS_REG_SUM, GS_F32, WIDTH, GS_NONE};
    store_from_first(f, 1, DH);

    f->edge_reg[1][0] = f->edge_reg[0][0];
    f->edge_reg[1][1] = (gs_edge_reg){.kind = GS_EDGE_TARGET, .width = WIDTH, .array = DH};
    f->stage[2].edge_reg = f->edge_reg[1];
    f->stage[2].edge_regs = 2;
    f->stage[2].sums = 1;
    f->stage[2].sum[0] = (gs_sum){.kind = GS_SUM_LSTM_BACK, .array = DGATES, .reg = GS_NONE, .value = 0, .score = 1,
                                  .learned = true};

    load_first(f, 3, DGATES);
    store_from_first(f, 3, OUT);
    f->pass = (gs_pass){"train", 0, STAGES};
    f->p = (gs_program){.arrays = ARRAYS, .params = 1, .stages = STAGES, .passes = 1, .array = f->array,
                        .param = &f->param, .stage = f->stage, .pass = &f->pass, .logits = GS_NONE};
}

/* Chunks of random sizes; a third of them is empty, and no edge starts in interval 1. */
static void make_chunks(struct fixture *f, uint64_t vertices, uint32_t parts, uint32_t seed)
{
    const uint64_t n = (uint64_t)parts * parts;
    f->chunks =
        (gs_chunk_table){.vertices = vertices, .parts = parts, .interval_rows = (uint32_t)gs_div_up(vertices, parts)};
    for (int d = 0; d < 2; d++) {
        uint64_t at = 0;
        assert_non_null(f->chunk[d] = calloc(n, sizeof(*f->chunk[d])));
        for (uint64_t i = 0; i < n; i++) {
            gs_chunk *c = &f->chunk[d][i];
            seed = seed * 1664525u + 1013904223u;
            if ((seed >> 8) % 3 == 0 || (parts > 2 && i % parts == 1))
                continue;
            c->edges = 1 + (seed >> 12) % 3000;
            c->targets = c->operands = 1;
            c->offset = at;
            c->length = gs_align_up(c->edges * 4, GS_BLOCK_BYTES);
            at += c->length;
        }
        f->chunks.chunk[d] = f->chunk[d];
    }
}

static void drop(struct fixture *f)
{
    free(f->chunk[0]);
    free(f->chunk[1]);
}

static gs_schedule_config config_of(const struct fixture *f, uint64_t host, uint64_t device)
{
    return (gs_schedule_config){.program = &f->p, .chunks = &f->chunks, .array_sum_bytes = 65536, .host_memory = host,
                                .device_memory = device, .topology = &gs_topology_host, .host_fixed = 1 * GS_MIB,
                                .device_fixed = 64 * GS_KIB};
}

static uint32_t count_tasks(const gs_plan *p, gs_task_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->tasks; i++)
        n += p->task[i].kind == kind;
    return n;
}

static void run_plan(uint64_t vertices, uint32_t parts, uint64_t host, uint64_t device, bool spill, uint32_t seed)
{
    struct fixture f = {0};
    gs_plan *plan = NULL;
    make_program(&f);
    make_chunks(&f, vertices, parts, seed);
    gs_assert_ok(gs_program_check(&f.p));
    gs_schedule_config c = config_of(&f, host, device);
    c.force_spill = spill;
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_true(plan->host_bytes <= host && plan->device_bytes <= device);
    plan_sim_run(plan, &c, 0, 2, seed);
    gs_plan_free(plan);
    drop(&f);
}

static void test_sequence_plan__is_safe_in_any_order(void **state)
{
    static const uint32_t of[][2] = {{900, 1}, {900, 3}, {3000, 8}, {3007, 17}}; /* vertices, parts */
    (void)state;
    for (uint32_t seed = 1; seed < 6; seed++)
        for (uint32_t spill = 0; spill < 2; spill++)
            for (uint32_t k = 0; k < GS_ARRAY_LEN(of); k++)
                if (gs_test_takes(seed + spill + k, 2))
                    run_plan(of[k][0], of[k][1], 16 * GS_MIB, 8 * GS_MIB, spill, seed);
}

/* Small arenas: several blocks, groups of chunks, rows added up over blocks. */
static void test_sequence_plan__several_blocks(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed < 4; seed++) {
        if (gs_test_takes(seed, 2))
            run_plan(20000, 9, 5 * GS_MIB, 700 * GS_KIB, false, seed);
        if (gs_test_takes(seed + 1, 2))
            run_plan(20000, 9, 5 * GS_MIB, 700 * GS_KIB, true, seed);
        if (gs_test_takes(seed, 2))
            run_plan(20000, 16, 5 * GS_MIB, 500 * GS_KIB, true, seed);
    }
}

/* With memory for a state at each chunk's start no chunk is unrolled twice; with less, some are. */
static void test_sequence_plan__memory_saves_work(void **state)
{
    struct fixture f = {0};
    gs_plan *much = NULL, *little = NULL;
    (void)state;
    make_program(&f);
    make_chunks(&f, 20000, 9, 3);
    const gs_schedule_config large = config_of(&f, 64 * GS_MIB, 32 * GS_MIB),
                             small = config_of(&f, 5 * GS_MIB, 700 * GS_KIB);
    gs_assert_ok(gs_schedule(&much, &large));
    gs_assert_ok(gs_schedule(&little, &small));
    assert_int_equal(count_tasks(much, GS_TASK_BACK), count_tasks(little, GS_TASK_BACK));
    assert_true(count_tasks(much, GS_TASK_UNROLL) < count_tasks(much, GS_TASK_BACK));
    assert_true(count_tasks(little, GS_TASK_UNROLL) > count_tasks(much, GS_TASK_UNROLL));
    gs_plan_free(much);
    gs_plan_free(little);
    drop(&f);
}

/* Of groups that need as few states the smallest is taken: of 4 operand intervals, in groups of 2, the first 2 are
 * unrolled for the second group's start, and one of each group for the other; groups of 3 would take 5. */
static void test_sequence_plan__equal_groups_are_small(void **state)
{
    struct fixture f = {0};
    gs_plan *plan = NULL;
    (void)state;
    make_program(&f);
    make_chunks(&f, 20000, 5, 3);
    for (int i = 0; i < 2 * 25; i++)
        if (i % 5 != 1) /* where no edge starts */
            f.chunk[i / 25][i % 25] = (gs_chunk){.edges = 100, .targets = 1, .operands = 1, .length = GS_BLOCK_BYTES,
                                                 .offset = (uint64_t)(i % 25) * GS_BLOCK_BYTES};
    for (uint64_t device = 512 * GS_KIB; plan == NULL; device += 64 * GS_KIB) { /* the least, for few states */
        const gs_schedule_config c = config_of(&f, 8 * GS_MIB, device);
        const gs_status st = gs_schedule(&plan, &c);
        assert_true(st == GS_OK || st == GS_EBUDGET);
    }
    assert_int_equal(count_tasks(plan, GS_TASK_UNROLL), count_tasks(plan, GS_TASK_BACK));
    gs_plan_free(plan);
    drop(&f);
}

/* At exactly the budgets that refusals name, the plan exists and is right. */
static void test_sequence_plan__smallest_budget_works(void **state)
{
    (void)state;
    for (uint32_t parts = 1; parts <= 10; parts += 3) {
        struct fixture f = {0};
        make_program(&f);
        make_chunks(&f, 60000, parts, parts);
        gs_schedule_config c = config_of(&f, 512 * GS_MIB, 100 * GS_KIB);
        gs_plan *const plan = plan_smallest(&c);
        assert_true(plan->host_bytes <= c.host_memory && plan->device_bytes <= c.device_memory);
        plan_sim_run(plan, &c, 0, 1, 9);
        gs_plan_free(plan);
        drop(&f);
    }
}

static void run_several(const gs_topology *topology, uint64_t vertices, uint32_t parts, uint64_t host, uint64_t device,
                        bool chain, bool spill, uint32_t seed)
{
    struct fixture f = {0};
    gs_plan *plan = NULL;
    make_program(&f);
    make_chunks(&f, vertices, parts, seed);
    gs_schedule_config c = config_of(&f, host, device);
    c.topology = topology;
    c.no_chain = !chain;
    c.force_spill = spill;
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_int_equal(plan->devices, topology->devices);
    assert_true(plan->host_bytes <= host && plan->device_bytes <= device);
    assert_true(parts != 16 || plan->pass[0].blocks > topology->devices);
    plan_sim_run(plan, &c, 0, 2, seed);
    plan_sim_run_parts(plan, &c, NULL, 2, seed + 1);
    gs_plan_free(plan);
    drop(&f);
}

static void test_sequence_plan__several_devices_add_to_the_same_rows(void **state)
{
    static const struct {
        uint32_t vertices, parts;
        uint64_t device;
    } of[] = {{900, 1, 2 * GS_MIB}, {900, 3, 2 * GS_MIB}, {3007, 17, 2 * GS_MIB}, {20000, 9, 1 * GS_MIB},
              {30000, 16, 700 * GS_KIB}}; /* the last: several rounds, groups of chunks */
    uint32_t seed = 1;
    (void)state;
    for (size_t t = 0; t < GS_ARRAY_LEN(all); t++)
        for (int chain = 0; chain < 2; chain++)
            for (int spill = 0; spill < 2; spill++) {
                for (size_t k = 0; k < GS_ARRAY_LEN(of); k++, seed++)
                    if (gs_test_takes(t + k + 2 * (size_t)chain + (size_t)spill, 4)) /* each shape once */
                        run_several(all[t], of[k].vertices, of[k].parts, 32 * GS_MIB, of[k].device, chain, spill, seed);
            }
}

/* How often the derivative's rows go over wires, in whole intervals, where every chunk has edges: from the host and
 * back once a chain and round, or, without chains, once a device; and nothing but the first zeroes them. */
static void count_travels(const gs_plan *p, uint32_t travels[3], uint32_t *zeroed, uint64_t interval_bytes)
{
    memset(travels, 0, 3 * sizeof(*travels));
    *zeroed = 0;
    for (uint32_t i = 0; i < p->tasks; i++) {
        const gs_task *const t = &p->task[i];
        if (t->stage != 2 || t->bytes != interval_bytes)
            continue;
        if (gs_task_is_copy(t) && t->chunk_bytes == 0)
            travels[is_task(t, "upload") ? 0 : is_task(t, "forward") ? 1 : 2]++;
        *zeroed += t->kind == GS_TASK_ZERO;
    }
}

static void test_sequence_plan__rows_travel_along_chains(void **state)
{
    enum { PARTS = 8, ROWS = 1000 };
    (void)state;
    for (int chain = 0; chain < 2; chain++) {
        struct fixture f = {0};
        gs_plan *plan = NULL;
        uint32_t travels[3], zeroed;
        make_program(&f);
        make_chunks(&f, PARTS * ROWS, PARTS, 5);
        for (uint32_t i = 0; i < PARTS * PARTS; i++)
            f.chunk[0][i] =
                (gs_chunk){.edges = 100, .targets = 1, .operands = 1, .offset = 4096ull * i, .length = 4096};
        gs_schedule_config c = config_of(&f, 64 * GS_MIB, 8 * GS_MIB);
        c.topology = &pairs;
        c.no_chain = chain == 0;
        c.force_spill = true; /* nothing stays on the devices, so all of it travels */
        gs_assert_ok(gs_schedule(&plan, &c));
        count_travels(plan, travels, &zeroed, ROWS * 4ull * WIDTH * sizeof(float));
        /* One round, and with memory for all states two sweeps, the first of which leaves out the last interval: gates
         * come 2 * PARTS - 1 times to every chain, or device, and the gradient's rows go from it to the next one by the
         * host. */
        const uint32_t hosts = chain ? 2 : 4, gates = 2 * PARTS - 1;
        assert_int_equal(zeroed, PARTS);
        assert_int_equal(travels[0], hosts * gates + (hosts - 1) * PARTS);
        assert_int_equal(travels[1], (4 - hosts) * (gates + PARTS));
        assert_int_equal(travels[2], hosts * PARTS);
        plan_sim_run(plan, &c, 0, 2, 3);
        gs_plan_free(plan);
        drop(&f);
    }
}

/* In `bytes` of one device's memory: copies of an epoch, by the stage that they are for. */
static void count_copies(uint32_t copies[STAGES], uint64_t bytes)
{
    struct fixture f = {0};
    gs_plan *plan = NULL;
    make_program(&f);
    make_chunks(&f, 20000, 9, 4);
    gs_schedule_config c = config_of(&f, 64 * GS_MIB, bytes);
    c.topology = &one;
    gs_assert_ok(gs_schedule(&plan, &c));
    memset(copies, 0, STAGES * sizeof(*copies));
    for (uint32_t i = 0; i < plan->tasks; i++)
        copies[plan->task[i].stage] += gs_task_is_copy(&plan->task[i]);
    plan_sim_run(plan, &c, 0, 2, 7);
    gs_plan_free(plan);
    drop(&f);
}

/* The rows that are added to are the device's as much as those that a vertex program makes. */
static void test_sequence_plan__what_fits_one_device_is_not_copied(void **state)
{
    uint32_t all_fits[STAGES], little_fits[STAGES];
    (void)state;
    count_copies(all_fits, 32 * GS_MIB);
    count_copies(little_fits, 2 * GS_MIB);
    assert_int_equal(all_fits[0], 1); /* no edge starts in interval 1, so nobody reads it */
    assert_int_equal(all_fits[1] + all_fits[2], 0);
    assert_int_equal(all_fits[3], 9); /* what the last stage makes, which nobody reads */
    assert_true(little_fits[2] > 9);
}

static void test_sequence_plan__smallest_budgets_of_several_work(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 4; k++) {
        struct fixture f = {0};
        make_program(&f);
        make_chunks(&f, 60000, 1 + 3 * k, k);
        gs_schedule_config c = config_of(&f, 512 * GS_MIB, 100 * GS_KIB);
        c.topology = all[k + 1];
        gs_plan *const plan = plan_smallest(&c);
        assert_true(plan->host_bytes <= c.host_memory && plan->device_bytes <= c.device_memory);
        plan_sim_run(plan, &c, 0, 1, 9);
        gs_plan_free(plan);
        drop(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequence_plan__is_safe_in_any_order),
        cmocka_unit_test(test_sequence_plan__several_blocks),
        cmocka_unit_test(test_sequence_plan__memory_saves_work),
        cmocka_unit_test(test_sequence_plan__equal_groups_are_small),
        cmocka_unit_test(test_sequence_plan__smallest_budget_works),
        cmocka_unit_test(test_sequence_plan__several_devices_add_to_the_same_rows),
        cmocka_unit_test(test_sequence_plan__rows_travel_along_chains),
        cmocka_unit_test(test_sequence_plan__what_fits_one_device_is_not_copied),
        cmocka_unit_test(test_sequence_plan__smallest_budgets_of_several_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
