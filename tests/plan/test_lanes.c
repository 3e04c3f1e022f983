/* The lane machine against its own rules: order within lanes, waits between them, what is read ahead of the next run;
 * every legal order of a small plan ends; and what breaks a rule is named. */
#include <string.h>

#include "base/size.h"
#include "plan/lanes.h"
#include "support/moves.h"
#include "support/support.h"

#define COMPUTE (GS_LANE_DEVICES + GS_LANE_COMPUTE)

/* Pass 0: two reads, a compute each, a write of what the last one made. Pass 1: one read. */
enum { READ_0, COMPUTE_0, READ_1, COMPUTE_1, WRITE_1, READ_2, TASKS };

struct fixture {
    gs_task task[TASKS];
    uint32_t dep[8];
    gs_ahead ahead[1];
    gs_plan_pass pass[2];
    gs_plan plan;
    gs_lanes lanes;
};

static void make(struct fixture *f)
{
    *f = (struct fixture){
        .task = {{READS},
                 {.kind = GS_TASK_ZERO, .first_dep = 0, .deps = 1},
                 {READS},
                 {.kind = GS_TASK_ZERO, .first_dep = 1, .deps = 1},
                 {WRITES, .first_dep = 2, .deps = 1},
                 {READS}},
        .dep = {READ_0, READ_1, COMPUTE_1, COMPUTE_0},
        .ahead = {{.task = READ_0, .first_dep = 3, .deps = 1}},
        .pass = {{.first_task = READ_0, .tasks = 5, .aheads = 1}, {.first_task = READ_2, .tasks = 1, .first_ahead = 1}},
    };
    f->plan = (gs_plan){.tasks = TASKS, .deps = 4, .passes = 2, .aheads = 1, .task = f->task, .dep = f->dep,
                        .ahead = f->ahead, .pass = f->pass};
    gs_assert_ok(gs_lanes_open(&f->lanes, &f->plan));
}

static void begin(gs_lanes *l, uint32_t lane, uint32_t task)
{
    assert_int_equal(gs_lanes_ready(l, lane), task);
    gs_lanes_begin(l, lane);
    assert_null(gs_lanes_fault(l));
}

static void finish(gs_lanes *l, uint32_t task)
{
    assert_false(gs_lanes_is_done(l, task) && !gs_lanes_is_ahead(l, task));
    gs_lanes_finish(l, task);
    assert_true(gs_lanes_is_done(l, task));
    assert_null(gs_lanes_fault(l));
}

static void test_lanes__a_task_begins_in_its_turn_and_when_its_waits_are_over(void **state)
{
    (void)state;
    struct fixture f;
    make(&f);
    gs_lanes *const l = &f.lanes;
    gs_lanes_enter(l, 0);
    assert_int_equal(l->lanes, 3);
    assert_int_equal(gs_lanes_ready(l, COMPUTE), GS_NONE);
    assert_int_equal(gs_lanes_next(l, COMPUTE), COMPUTE_0);
    assert_int_equal(gs_lanes_missing_dep(l, COMPUTE_0), READ_0);
    begin(l, GS_LANE_READ, READ_0);
    begin(l, GS_LANE_READ, READ_1);
    assert_int_equal(gs_lanes_next(l, GS_LANE_READ), GS_NONE);
    finish(l, READ_1);
    assert_int_equal(gs_lanes_ready(l, COMPUTE), GS_NONE); /* not its turn */
    finish(l, READ_0);
    assert_true(gs_lanes_are_over(l, GS_LANE_READ));
    begin(l, COMPUTE, COMPUTE_0);
    begin(l, COMPUTE, COMPUTE_1); /* a lane may have several under way */
    finish(l, COMPUTE_0);
    assert_int_equal(gs_lanes_missing_dep(l, WRITE_1), COMPUTE_1);
    finish(l, COMPUTE_1);
    assert_false(gs_lanes_are_over(l, GS_LANE_WRITE));
    begin(l, GS_LANE_WRITE, WRITE_1);
    assert_false(gs_lanes_are_over(l, GS_LANE_WRITE));
    finish(l, WRITE_1);
    assert_true(gs_lanes_are_over(l, GS_LANE_WRITE));
    gs_lanes_close(l);
}

/* Runs pass 0 up to COMPUTE_0; its read may be made again then. */
static void run_half(gs_lanes *l)
{
    begin(l, GS_LANE_READ, READ_0);
    finish(l, READ_0);
    begin(l, COMPUTE, COMPUTE_0);
    assert_int_equal(gs_lanes_ready_ahead(l), GS_NONE);
    finish(l, COMPUTE_0);
    assert_int_equal(gs_lanes_ready_ahead(l), GS_NONE); /* this run's reads first */
    begin(l, GS_LANE_READ, READ_1);
    assert_int_equal(gs_lanes_ready_ahead(l), READ_0);
    gs_lanes_begin_ahead(l);
    assert_null(gs_lanes_fault(l));
    assert_null(gs_lanes_next_ahead(l));
    assert_true(gs_lanes_is_ahead(l, READ_0) && gs_lanes_is_done(l, READ_0));
    finish(l, READ_1);
    assert_true(gs_lanes_are_over(l, GS_LANE_READ)); /* what is read ahead is not this run's */
}

static void test_lanes__the_next_run_begins_with_what_was_read_ahead(void **state)
{
    (void)state;
    for (int arrives = 0; arrives < 2; arrives++) {
        struct fixture f;
        make(&f);
        gs_lanes *const l = &f.lanes;
        gs_lanes_enter(l, 0);
        run_half(l);
        if (arrives)
            finish(l, READ_0);
        gs_lanes_enter(l, 0);
        assert_null(gs_lanes_fault(l));
        assert_int_equal(gs_lanes_next(l, GS_LANE_READ), READ_1);
        assert_int_equal(gs_lanes_is_done(l, READ_0), arrives);
        assert_false(gs_lanes_is_done(l, COMPUTE_0));
        if (!arrives)
            finish(l, READ_0);
        begin(l, COMPUTE, COMPUTE_0);
        begin(l, GS_LANE_READ, READ_1);
        gs_lanes_close(l);
    }
}

static void test_lanes__another_pass_begins_with_nothing(void **state)
{
    (void)state;
    for (int forgotten = 0; forgotten < 2; forgotten++) {
        struct fixture f;
        make(&f);
        gs_lanes *const l = &f.lanes;
        gs_lanes_enter(l, 0);
        run_half(l);
        finish(l, READ_0);
        if (forgotten)
            gs_lanes_forget_ahead(l);
        else
            gs_lanes_enter(l, 1);
        assert_int_equal(gs_lanes_next(l, GS_LANE_READ), forgotten ? GS_NONE : READ_2);
        gs_lanes_enter(l, 0);
        assert_int_equal(gs_lanes_next(l, GS_LANE_READ), READ_0);
        assert_false(gs_lanes_is_done(l, READ_0));
        run_half(l);
        gs_lanes_close(l);
    }
}

/* Copies as tasks of one device: four lanes of its own beside reads and writes. */
static void test_lanes__one_device_with_copies_has_lanes_of_its_own(void **state)
{
    (void)state;
    struct fixture f;
    make(&f);
    gs_lanes_close(&f.lanes);
    f.plan.devices = 1;
    f.task[COMPUTE_0] = (gs_task){UPLOADS_TO(0), .first_dep = 0, .deps = 1};
    gs_assert_ok(gs_lanes_open(&f.lanes, &f.plan));
    gs_lanes_enter(&f.lanes, 0);
    assert_int_equal(f.lanes.lanes, GS_LANE_DEVICES + GS_DEVICE_LANES);
    assert_int_equal(gs_lanes_next(&f.lanes, GS_LANE_DEVICES + GS_LANE_UPLOAD), COMPUTE_0);
    assert_int_equal(gs_lanes_next(&f.lanes, COMPUTE), COMPUTE_1);
    assert_true(gs_lanes_are_over(&f.lanes, GS_LANE_DEVICES + GS_LANE_FORWARD));
    gs_lanes_close(&f.lanes);
}

static void assert_fault(gs_lanes *l, uint32_t task, gs_task_state is, const char *part)
{
    const uint8_t was = l->state[task];
    l->state[task] = (uint8_t)is;
    assert_non_null(gs_lanes_fault(l));
    assert_non_null(strstr(gs_lanes_fault(l), part));
    l->state[task] = was;
    assert_null(gs_lanes_fault(l));
}

static void test_lanes__what_breaks_a_rule_is_named(void **state)
{
    (void)state;
    struct fixture f;
    make(&f);
    gs_lanes_enter(&f.lanes, 0);
    begin(&f.lanes, GS_LANE_READ, READ_0);
    assert_fault(&f.lanes, READ_0, GS_WAITING, "has not begun");
    assert_fault(&f.lanes, READ_0, GS_DONE, "miscounted");
    assert_fault(&f.lanes, READ_0, GS_FETCHED, "for the next run");
    assert_fault(&f.lanes, READ_1, GS_UNDER_WAY, "before its turn");
    f.lanes.state[COMPUTE_0] = GS_DONE;
    f.lanes.lane[COMPUTE].next++;
    assert_string_equal(gs_lanes_fault(&f.lanes), "a task has begun before what it waits for was done");
    gs_lanes_close(&f.lanes);
}

/* Four chunks that are copied for this pass; three tasks of two chunks that are there; something else. */
static void test_lanes__chunks_of_one_operand_interval_are_ready_together(void **state)
{
    enum { UPLOADS = 4, FIRST_COPIED = UPLOADS, FIRST_THERE = 2 * UPLOADS, OTHER = FIRST_THERE + 3, ALL };
    const uint32_t compute = GS_LANE_DEVICES + GS_LANE_COMPUTE, upload = GS_LANE_DEVICES + GS_LANE_UPLOAD;
    gs_task task[ALL] = {[FIRST_THERE] = {.kind = GS_TASK_EDGES, .operand = 1, .sum = 0},
                         [FIRST_THERE + 1] = {.kind = GS_TASK_EDGES, .operand = 1, .sum = GS_NONE},
                         [FIRST_THERE + 2] = {.kind = GS_TASK_EDGES, .operand = 1, .target = 1},
                         [OTHER] = {.kind = GS_TASK_ZERO}};
    uint32_t dep[UPLOADS] = {0, 1, 2, 3};
    gs_plan_pass pass = {.tasks = ALL};
    gs_plan plan = {.tasks = ALL, .deps = UPLOADS, .passes = 1, .devices = 1, .task = task, .dep = dep, .pass = &pass};
    gs_lanes l;
    (void)state;
    for (uint32_t i = 0; i < UPLOADS; i++) {
        task[i] = (gs_task){UPLOADS_TO(0), .chunk_bytes = 4096};
        task[FIRST_COPIED + i] = (gs_task){.kind = GS_TASK_EDGES, .target = i, .first_dep = i, .deps = 1};
    }
    gs_assert_ok(gs_lanes_open(&l, &plan));
    gs_lanes_enter(&l, 0);
    for (uint32_t i = 0; i < UPLOADS; i++) { /* half of those that have come, rounded up */
        assert_int_equal(gs_lanes_ready_together(&l, compute), (i + 1) / 2);
        begin(&l, upload, i);
        finish(&l, i);
    }
    assert_int_equal(gs_lanes_ready_together(&l, compute), 2);
    for (uint32_t i = 0; i < UPLOADS; i++)
        begin(&l, compute, FIRST_COPIED + i);
    assert_int_equal(gs_lanes_ready_together(&l, compute), 3);
    for (uint32_t i = 0; i < 3; i++)
        begin(&l, compute, FIRST_THERE + i);
    assert_int_equal(gs_lanes_ready_together(&l, compute), 1);
    begin(&l, compute, OTHER);
    assert_int_equal(gs_lanes_ready_together(&l, compute), 0);
    gs_lanes_close(&l);
}

/* What a device was told need not be over for tasks of that device, but for all others. */
static void test_lanes__what_a_device_was_told_holds_up_others_alone(void **state)
{
    enum { UPLOAD, SUM, NEXT_SUM, ELSEWHERE, WRITE, ALL };
    const uint32_t compute = GS_LANE_DEVICES + GS_LANE_COMPUTE, upload = GS_LANE_DEVICES + GS_LANE_UPLOAD,
                   other = upload + GS_DEVICE_LANES;
    gs_task task[ALL] = {[UPLOAD] = {UPLOADS_TO(0), .chunk_bytes = 4096},
                         [SUM] = {.kind = GS_TASK_EDGES, .deps = 1},
                         [NEXT_SUM] = {.kind = GS_TASK_EDGES, .target = 1, .deps = 1},
                         [ELSEWHERE] = {UPLOADS_TO(1), .deps = 1},
                         [WRITE] = {WRITES, .deps = 1}};
    uint32_t dep[] = {UPLOAD};
    gs_plan_pass pass = {.tasks = ALL};
    gs_plan plan = {.tasks = ALL, .deps = 1, .passes = 1, .devices = 2, .task = task, .dep = dep, .pass = &pass};
    gs_lanes l;
    (void)state;

    for (int follows = 0; follows < 2; follows++) {
        gs_assert_ok(gs_lanes_open(&l, &plan));
        for (uint32_t k = GS_LANE_DEVICES; k < l.lanes; k++)
            l.follows[k] = follows != 0;
        gs_lanes_enter(&l, 0);
        begin(&l, upload, UPLOAD);
        assert_int_equal(gs_lanes_ready_together(&l, compute), 0);
        gs_lanes_tell(&l, UPLOAD);
        assert_null(gs_lanes_fault(&l));
        assert_false(gs_lanes_is_done(&l, UPLOAD));
        assert_int_equal(gs_lanes_ready_together(&l, compute), follows); /* the first alone: it would wait, too */
        assert_int_equal(gs_lanes_missing_dep(&l, SUM), follows ? GS_NONE : (uint32_t)UPLOAD);
        assert_int_equal(gs_lanes_ready(&l, other), GS_NONE);
        assert_int_equal(gs_lanes_ready(&l, GS_LANE_WRITE), GS_NONE);
        finish(&l, UPLOAD);
        assert_int_equal(gs_lanes_ready(&l, other), ELSEWHERE);
        assert_int_equal(gs_lanes_ready(&l, GS_LANE_WRITE), WRITE);
        assert_int_equal(gs_lanes_ready_together(&l, compute), 1); /* half of two that were copied */
        gs_lanes_close(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes__a_task_begins_in_its_turn_and_when_its_waits_are_over),
        cmocka_unit_test(test_lanes__the_next_run_begins_with_what_was_read_ahead),
        cmocka_unit_test(test_lanes__another_pass_begins_with_nothing),
        cmocka_unit_test(test_lanes__chunks_of_one_operand_interval_are_ready_together),
        cmocka_unit_test(test_lanes__one_device_with_copies_has_lanes_of_its_own),
        cmocka_unit_test(test_lanes__what_a_device_was_told_holds_up_others_alone),
        cmocka_unit_test(test_lanes__what_breaks_a_rule_is_named),
    };
    return cmocka_run_group_tests_name("plan/lanes", tests, NULL, NULL);
}
