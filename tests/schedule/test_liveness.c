/* Arrays and sums that are never there at the same time share their place, and nobody notices: random programs of three
 * passes, laid out in host memory whole and in part, with stages that leave rows out, run with every byte watched. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan_sim.h"
#include "support/support.h"

enum { MOST_STAGES = 12, MOST_ARRAYS = 28, MOST_REGS = 10 };

struct fixture {
    gs_program p;
    gs_array array[MOST_ARRAYS];
    gs_stage stage[MOST_STAGES];
    gs_pass pass[3];
    gs_reg reg[MOST_STAGES][MOST_REGS];
    gs_instr instr[MOST_STAGES][4];
    gs_edge_reg edge_reg[MOST_STAGES][GS_STAGE_SUMS * GS_ROW_SUM_REGS + 2];
    gs_instr product[MOST_STAGES][GS_STAGE_SUMS];
    gs_chunk_table chunks;
    gs_chunk *chunk[2];
    gs_row_runs rows[MOST_STAGES];
    gs_param param;
    uint32_t seed;
};

static uint32_t draw(struct fixture *f, uint32_t below)
{
    f->seed = f->seed * 1664525u + 1013904223u;
    return (f->seed >> 8) % below;
}

static uint32_t add_array(struct fixture *f, uint32_t width, int store_id)
{
    f->array[f->p.arrays] = (gs_array){.dtype = GS_F32, .width = width, .store_id = store_id};
    return f->p.arrays++;
}

static uint32_t add_reg(gs_stage *s, gs_reg_kind kind, uint32_t width, uint32_t array)
{
    s->reg[s->regs] = (gs_reg){kind, GS_F32, width, array};
    return s->regs++;
}

static gs_stage *add_stage(struct fixture *f)
{
    const uint32_t k = f->p.stages++;
    gs_stage *const s = &f->stage[k];
    s->reg = f->reg[k];
    s->instr = f->instr[k];
    s->edge_reg = f->edge_reg[k];
    s->edge_instr = f->product[k];
    return s;
}

static void store(struct fixture *f, gs_stage *s, uint32_t from, uint32_t width)
{
    const uint32_t to = add_reg(s, GS_REG_TEMP, width, add_array(f, width, -1));
    s->instr[s->instrs++] = (gs_instr){.op = GS_OP_RELU, .dst = to, .a = {GS_FROM_REG, from, 0}};
}

/* An array of the store or the setup pass, or one that the pass has made. */
static uint32_t any_array(struct fixture *f, uint32_t first, uint32_t lasting)
{
    const uint32_t own = f->p.arrays - first;
    return own > 0 && draw(f, 4) > 0 ? first + draw(f, own) : draw(f, lasting);
}

/* `scale`: the array that its rows are multiplied by, or GS_NONE. Plans do not look at how wide it is. */
static void add_sum(struct fixture *f, gs_stage *s, uint32_t array, uint32_t scale)
{
    const uint32_t width = f->array[array].width, reg = add_reg(s, GS_REG_SUM, width, GS_NONE);
    const bool self = draw(f, 2) == 0;
    gs_stage_add_row_sum(s, &(gs_row_sum){.array = array, .scale = scale}, width, reg, self);
}

/* A maximum over edges of a row at one end, beside a row at the other. */
static void add_edge_program(struct fixture *f, gs_stage *s, uint32_t operand, uint32_t target)
{
    const uint32_t width = f->array[operand].width;
    const uint32_t first = s->edge_regs;
    s->edge_reg[first] = (gs_edge_reg){.kind = GS_EDGE_OPERAND, .width = width, .array = operand};
    s->edge_reg[first + 1] = (gs_edge_reg){.kind = GS_EDGE_TARGET, .width = f->array[target].width, .array = target};
    s->edge_regs += 2;
    s->sum[s->sums++] =
        (gs_sum){.kind = GS_SUM_MAX, .reg = add_reg(s, GS_REG_SUM, width, GS_NONE), .value = first};
}

static void random_stage(struct fixture *f, uint32_t first, uint32_t lasting)
{
    gs_stage *const s = add_stage(f);
    const uint32_t what = draw(f, 4), a = any_array(f, first, lasting), b = any_array(f, first, lasting);
    s->direction = draw(f, 2);
    if (what == 1 || what == 2)
        add_sum(f, s, a, draw(f, 3) == 0 ? any_array(f, first, lasting) : GS_NONE);
    if (what == 2 && b != a)
        add_sum(f, s, b, GS_NONE);
    if (what == 3)
        add_edge_program(f, s, a, b);
    const uint32_t c = any_array(f, first, lasting), from = add_reg(s, GS_REG_LOAD, f->array[c].width, c);
    if (s->sums > 0 && draw(f, 3) > 0)
        store(f, s, s->sum[0].reg, s->reg[s->sum[0].reg].width);
    if (s->sums == 0 || draw(f, 2) == 0)
        store(f, s, from, 1 + draw(f, 40));
}

static void random_program(struct fixture *f)
{
    static const char *const names[] = {"setup", "train", "eval"};
    uint32_t lasting;

    add_array(f, 33, 0);
    add_array(f, 5, 3);
    lasting = f->p.arrays;
    for (uint32_t k = 0; k < 3; k++) {
        const uint32_t first = f->p.arrays, stages = 1 + draw(f, k == 0 ? 2 : 5);
        snprintf(f->pass[k].name, sizeof(f->pass[k].name), "%s", names[k]);
        f->pass[k].first_stage = f->p.stages;
        for (uint32_t s = 0; s < stages; s++)
            random_stage(f, first, lasting);
        f->pass[k].stages = stages;
        lasting = k == 0 ? f->p.arrays : lasting;
    }
    f->p.stage = f->stage;
    f->p.array = f->array;
    f->p.pass = f->pass;
    f->p.passes = 3;
    f->p.logits = GS_NONE;
}

static void make_chunks(struct fixture *f, uint64_t vertices, uint32_t parts)
{
    f->chunks =
        (gs_chunk_table){.vertices = vertices, .parts = parts, .interval_rows = (uint32_t)gs_div_up(vertices, parts)};
    for (int d = 0; d < 2; d++) {
        uint64_t at = 0;
        f->chunks.chunk[d] = f->chunk[d] = calloc((uint64_t)parts * parts, sizeof(gs_chunk));
        for (uint32_t i = 0; i < parts * parts; i++) {
            gs_chunk *const c = &f->chunk[d][i];
            if (draw(f, 4) == 0)
                continue;
            *c = (gs_chunk){.edges = 900, .targets = 1, .operands = 1, .offset = at, .length = GS_BLOCK_BYTES};
            at += c->length;
        }
    }
}

/* In the passes after the first, some stages leave rows out: few, or most of them and every second interval. */
static void leave_rows_out(struct fixture *f, uint32_t kinds)
{
    for (uint32_t s = f->pass[1].first_stage; s < f->p.stages; s++) {
        const uint32_t parts = f->chunks.parts, share = draw(f, kinds + 1);
        if (share == 0)
            continue;
        gs_row_runs *const r = &f->rows[s];
        *r = (gs_row_runs){.first = calloc(parts + 1, sizeof(*r->first)), .run = calloc(parts, sizeof(*r->run))};
        for (uint32_t i = 0; i < parts; i++) {
            const uint32_t rows = gs_interval_rows(&f->chunks, i), left = share == 1 ? rows / 4 : rows * 7 / 8;
            if (share == 1 || i % 2 == 0)
                r->run[r->first[i]] = (gs_row_run){draw(f, left + 1), rows - left};
            r->first[i + 1] = r->first[i] + (share == 1 || i % 2 == 0);
        }
    }
}

static void drop(struct fixture *f)
{
    for (uint32_t s = 0; s < f->p.stages; s++) {
        free(f->rows[s].first);
        free(f->rows[s].run);
    }
    free(f->chunk[0]);
    free(f->chunk[1]);
}

static gs_schedule_config config_of(struct fixture *f, uint64_t host, uint64_t device)
{
    return (gs_schedule_config){.program = &f->p, .chunks = &f->chunks, .array_sum_bytes = 65536, .host_memory = host,
                                .device_memory = device, .topology = &gs_topology_host, .host_fixed = 1 * GS_MIB,
                                .device_fixed = 64 * GS_KIB, .needs = {.stage_rows = f->rows}};
}

/* Bytes of all that is kept, each by itself. */
static uint64_t apart(const gs_plan *plan)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->residents; i++)
        bytes += gs_align_up(plan->resident[i].bytes, 65536);
    return bytes;
}

/* Bytes of all that is spilled, each by itself. */
static uint64_t spilled_apart(const gs_plan *plan, uint32_t arrays)
{
    uint64_t bytes = 0;
    for (uint32_t a = 0; a < arrays; a++)
        bytes += plan->spill.bytes[a];
    return bytes;
}

static void test_lives__nobody_notices(void **state)
{
    (void)state;
    uint32_t smaller = 0, in_place = 0, zeroed = 0, spill_smaller = 0;

    for (uint32_t k = 0; k < 80; k++) {
        struct fixture f = {.seed = 77 * k + 1};
        gs_plan *plan = NULL;
        random_program(&f);
        make_chunks(&f, 300 + 250 * draw(&f, 3), 1 + draw(&f, 4));
        if (k % 3 > 0)
            leave_rows_out(&f, 2);
        gs_schedule_config c = config_of(&f, 64 * GS_MIB, k % 4 == 3 ? 1 * GS_MIB : 32 * GS_MIB);
        gs_assert_ok(gs_schedule(&plan, &c));
        smaller += plan->region_bytes[GS_REGION_RESIDENT] < apart(plan);
        assert_int_equal(plan->pass[1].read_bytes, 0);
        for (uint32_t i = 0; i < plan->tasks; i++) {
            zeroed += plan->task[i].kind == GS_TASK_ZERO && plan->task[i].rows == 0 &&
                      plan->task[i].place.region == GS_REGION_RESIDENT;
            in_place += plan->task[i].kind == GS_TASK_EDGES && plan->task[i].place.region == GS_REGION_RESIDENT;
        }
        plan_sim_run(plan, &c, GS_NONE, 5, k);
        /* And with less memory than that, down to where nothing is kept. */
        for (uint32_t part = 8; part-- > 2;) {
            gs_plan *tight = NULL;
            c.host_memory = plan->host_bytes / 8 * part;
            const gs_status st = gs_schedule(&tight, &c);
            if (st == GS_EBUDGET)
                break;
            gs_assert_ok(st);
            assert_true(tight->host_bytes <= c.host_memory);
            spill_smaller += tight->spill.total < spilled_apart(tight, f.p.arrays);
            plan_sim_run(tight, &c, GS_NONE, 5, k + part);
            gs_plan_free(tight);
        }
        gs_plan_free(plan);
        drop(&f);
    }
    /* else the test looked at nothing */
    assert_true(smaller > 20 && in_place > 50 && zeroed > 50 && spill_smaller > 20);
}

/* Sums of an array's rows of which nothing is stored, and behind them an array that takes its bytes; of two intervals,
 * of which the other device alone needs the first one's rows. */
static void read_last(struct fixture *f)
{
    const uint32_t input = add_array(f, 33, 0);
    for (uint32_t k = 0; k < 4; k++) {
        gs_stage *const s = add_stage(f);
        if (k == 1) {
            add_sum(f, s, f->p.arrays - 1, GS_NONE);
            s->sum[0].self = false;
            continue;
        }
        const uint32_t from = k < 3 ? input : f->p.arrays - 1;
        store(f, s, add_reg(s, GS_REG_LOAD, f->array[from].width, from), 33);
    }
    f->pass[0] = (gs_pass){.name = "train", .stages = 4};
    f->p.stage = f->stage;
    f->p.array = f->array;
    f->p.pass = f->pass;
    f->p.passes = 1;
    f->p.logits = GS_NONE;
    make_chunks(f, 900, 2);
    f->chunk[0][0] = (gs_chunk){.edges = 0};
    f->chunk[0][2] = (gs_chunk){.edges = 900, .targets = 1, .operands = 1, .length = GS_BLOCK_BYTES};
}

static void random_case(struct fixture *f)
{
    random_program(f);
    make_chunks(f, 300 + 250 * draw(f, 3), 2 + draw(f, 4));
    leave_rows_out(f, 1);
}

/* Devices with little memory of their own, of which one may be stages behind: who takes a place on the disk waits for
 * those that still read from there. */
static void test_lives__devices_may_be_stages_apart(void **state)
{
    (void)state;
    const gs_topology devices = {.devices = 2, .switches = 1, .at = {{0, 2, 0, 0}}, .on_host = {true, true}};
    uint32_t smaller = 0;

    for (uint32_t k = 0; k < 60; k++) {
        struct fixture f = {.seed = 91 * k + 5};
        gs_plan *plan = NULL;
        gs_status st = GS_EBUDGET;
        (k % 2 == 0 ? random_case : read_last)(&f);
        gs_schedule_config c = config_of(&f, 64 * GS_MIB, 0);
        c.topology = &devices;
        c.no_chain = k % 3 == 0;
        c.force_spill = k % 5 > 0;
        c.no_sizes = true;
        while (st == GS_EBUDGET && c.device_memory < GS_MIB) {
            c.device_memory += 48 * GS_KIB;
            st = gs_schedule(&plan, &c);
        }
        gs_assert_ok(st);
        assert_true(plan->devices == 2 && plan->pass[0].upload_bytes > 0);
        smaller += plan->spill.total < spilled_apart(plan, f.p.arrays);
        plan_sim_run(plan, &c, GS_NONE, 9, k);
        gs_plan_free(plan);
        drop(&f);
    }
    assert_true(smaller > 30); /* else the test looked at nothing */
}

/* a -> b -> c -> d, each the only one that needs the one before: two places are enough. With sums, one and a half: a
 * stage's sum becomes the array that it stores, in its place. */
static void chain(struct fixture *f, bool sums)
{
    uint32_t last = add_array(f, 64, 0);
    for (uint32_t k = 0; k < 6; k++) {
        gs_stage *const s = add_stage(f);
        uint32_t from;
        if (sums) {
            add_sum(f, s, last, GS_NONE);
            from = s->sum[0].reg;
        } else {
            from = add_reg(s, GS_REG_LOAD, 64, last);
        }
        store(f, s, from, 64);
        last = f->p.arrays - 1;
    }
    snprintf(f->pass[0].name, sizeof(f->pass[0].name), "train");
    f->pass[0].stages = 6;
    f->p.stage = f->stage;
    f->p.array = f->array;
    f->p.pass = f->pass;
    f->p.passes = 1;
    f->p.logits = GS_NONE;
}

static void test_lives__a_chain_needs_two_places(void **state)
{
    const uint64_t array = 4096 * 64 * 4, edges = 65536; /* room for whole checksum blocks */
    (void)state;
    for (int sums = 0; sums < 2; sums++) {
        struct fixture f = {.seed = 5};
        gs_plan *plan = NULL;
        chain(&f, sums != 0);
        make_chunks(&f, 4096, 1);
        f.chunk[0][0] = f.chunk[1][0] = (gs_chunk){.edges = 900, .targets = 1, .operands = 1, .length = GS_BLOCK_BYTES};
        for (uint32_t k = 0; k < 6; k++)
            f.stage[k].direction = GS_BY_DEST;
        const gs_schedule_config c = config_of(&f, 64 * GS_MIB, 32 * GS_MIB);
        gs_assert_ok(gs_schedule(&plan, &c));
        /* features, two arrays; the last one is read by nobody but was asked for */
        assert_int_equal(plan->region_bytes[GS_REGION_RESIDENT], 3 * array + (sums ? edges : 0));
        plan_sim_run(plan, &c, 0, 3, 1);
        gs_plan_free(plan);
        drop(&f);
    }
}

/* On the disk too, in whole stages: the array that a stage reads and the one that it writes. */
static void test_lives__a_spilled_chain_needs_two_places(void **state)
{
    const uint64_t array = 4096 * 64 * 4;
    struct fixture f = {.seed = 5};
    gs_plan *plan = NULL;
    (void)state;
    chain(&f, false);
    make_chunks(&f, 4096, 4);
    gs_schedule_config c = config_of(&f, 64 * GS_MIB, 32 * GS_MIB);
    c.force_spill = true;
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_int_equal(plan->spill.total, 2 * array);
    assert_int_equal(spilled_apart(plan, f.p.arrays), 6 * array);
    plan_sim_run(plan, &c, 0, 5, 1);
    gs_plan_free(plan);
    drop(&f);
}

/* Tiles that are not written, as all that is read there is 0, are no place for another array. */
static void test_lives__what_is_written_in_part_shares_no_disk(void **state)
{
    const uint64_t array = 4096 * 64 * 4;
    uint32_t first[] = {0, 1};
    gs_row_run run = {0, 1000};
    gs_row_runs held[7] = {[3] = {.first = first, .run = &run}};
    struct fixture f = {.seed = 5};
    gs_plan *plan = NULL;
    (void)state;
    chain(&f, false);
    assert_int_equal(f.p.arrays, GS_ARRAY_LEN(held));
    make_chunks(&f, 4096, 1);
    gs_schedule_config c = config_of(&f, 64 * GS_MIB, 32 * GS_MIB);
    c.force_spill = true;
    c.needs.array_rows = held;
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_int_equal(plan->spill.total, 3 * array);
    plan_sim_run(plan, &c, 0, 5, 1);
    gs_plan_free(plan);
    drop(&f);
}

/* What nobody reads may still be on its way to the disk when the next owner of its place is written. */
static void test_lives__who_takes_a_place_on_the_disk_waits_for_the_owner(void **state)
{
    (void)state;
    struct fixture f = {.seed = 5};
    gs_plan *plan = NULL;
    chain(&f, false);
    f.stage[1].reg[0].array = 0; /* the first array is written for nothing */
    make_chunks(&f, 4096, 4);
    gs_schedule_config c = config_of(&f, 64 * GS_MIB, 32 * GS_MIB);
    c.force_spill = true;
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_int_equal(plan->spill.first[1], plan->spill.first[2]);
    for (uint32_t seed = 1; seed < 20; seed++)
        plan_sim_run(plan, &c, 0, 3, seed);
    gs_plan_free(plan);
    drop(&f);
}

static void set_width(struct fixture *f, uint32_t stage, uint32_t width)
{
    gs_reg *const stored = &f->stage[stage].reg[f->stage[stage].regs - 1];
    stored->width = f->array[stored->array].width = width;
}

/* The task begins when the other is done, or something that begins then. */
static bool waits_for(const gs_plan *p, uint32_t task, uint32_t other)
{
    for (uint32_t d = 0; d < p->task[task].deps; d++) {
        const uint32_t k = p->dep[p->task[task].first_dep + d];
        if (k == other || (k > other && waits_for(p, k, other)))
            return true;
    }
    return false;
}

/* Pairs of writes to the same bytes, of which the second waits for the first. */
static uint32_t ordered_writes(const gs_plan *p)
{
    uint32_t pairs = 0;
    for (uint32_t i = 0; i < p->tasks; i++)
        for (uint32_t j = 0; j < i; j++) {
            const gs_task *const a = &p->task[j], *const b = &p->task[i];
            if (!gs_task_writes(a) || !gs_task_writes(b) || a->place.offset >= b->place.offset + b->bytes ||
                b->place.offset >= a->place.offset + a->bytes)
                continue;
            assert_true(waits_for(p, i, j));
            pairs++;
        }
    return pairs;
}

/* Where the last owner had a part of the bytes, those before it had the others. */
static void test_lives__who_takes_a_place_on_the_disk_waits_for_all_owners(void **state)
{
    static const uint32_t width[][2] = {{16, 4}, {4, 16}, {64, 16}, {16, 16}, {40, 64}};
    (void)state;
    for (uint32_t k = 0; k < GS_ARRAY_LEN(width); k++) {
        struct fixture f = {.seed = 5};
        gs_plan *plan = NULL;
        chain(&f, false);
        f.stage[1].reg[0].array = f.stage[2].reg[0].array = 0; /* the first two arrays are written for nothing */
        set_width(&f, 0, width[k][0]);
        set_width(&f, 1, width[k][1]);
        make_chunks(&f, 4096, 4);
        gs_schedule_config c = config_of(&f, 64 * GS_MIB, 32 * GS_MIB);
        c.force_spill = true;
        gs_assert_ok(gs_schedule(&plan, &c));
        assert_int_equal(plan->spill.first[1], plan->spill.first[2]);
        assert_int_equal(plan->spill.first[1], plan->spill.first[3]);
        assert_true(ordered_writes(plan) >= 12);
        plan_sim_run(plan, &c, 0, 5, k + 1);
        gs_plan_free(plan);
        drop(&f);
    }
}

/* A sum becomes the array in its own place where the instruction allows it, and nowhere else. */
static void test_lives__sums_become_arrays_element_by_element(void **state)
{
    static const struct {
        gs_op op;
        uint32_t in_place;
    } ops[] = {{GS_OP_RELU, 6}, {GS_OP_DIV, 6}, {GS_OP_MATMUL_T, 0}, {GS_OP_TILE, 0}};
    (void)state;
    for (size_t k = 0; k < GS_ARRAY_LEN(ops); k++) {
        struct fixture f = {.seed = 5};
        gs_plan *plan = NULL;
        uint32_t in_place = 0;
        chain(&f, true);
        make_chunks(&f, 4096, 1);
        f.param = (gs_param){.dims = 2, .rows = 64, .cols = 64};
        f.p.param = &f.param;
        f.p.params = 1;
        for (uint32_t s = 0; s < 6; s++) {
            f.chunk[s % 2][0] = (gs_chunk){.edges = 900, .targets = 1, .operands = 1, .length = GS_BLOCK_BYTES};
            f.stage[s].sum[0].self = false;
            f.stage[s].instr[0].op = ops[k].op;
            f.stage[s].instr[0].b = (gs_operand){.kind = GS_FROM_PARAM};
        }
        const gs_schedule_config c = config_of(&f, 64 * GS_MIB, 32 * GS_MIB);
        gs_assert_ok(gs_schedule(&plan, &c));
        for (uint32_t i = 0; i + 1 < plan->tasks; i++) {
            const gs_task *t = &plan->task[i];
            const gs_place *reg = &plan->reg[plan->task[i + 1].first_reg];
            in_place +=
                t->kind == GS_TASK_EDGES && reg[1].region == t->place.region && reg[1].offset == t->place.offset;
        }
        assert_int_equal(in_place, ops[k].in_place);
        gs_plan_free(plan);
        drop(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lives__nobody_notices),
        cmocka_unit_test(test_lives__devices_may_be_stages_apart),
        cmocka_unit_test(test_lives__a_chain_needs_two_places),
        cmocka_unit_test(test_lives__a_spilled_chain_needs_two_places),
        cmocka_unit_test(test_lives__what_is_written_in_part_shares_no_disk),
        cmocka_unit_test(test_lives__who_takes_a_place_on_the_disk_waits_for_the_owner),
        cmocka_unit_test(test_lives__who_takes_a_place_on_the_disk_waits_for_all_owners),
        cmocka_unit_test(test_lives__sums_become_arrays_element_by_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
