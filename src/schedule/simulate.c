/* simulate.c - how long a plan takes: links and work of its tasks, bytes in flight, and the walk over its lanes. */
#include "schedule/simulate.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "plan/lanes.h"
#include "program/products.h"

/* ---- links ---------------------------------------------------------------- */

/* How fast is the link that a copy goes over? A topology file says it, or a measurement, or a guess. */

#define USUAL_BPS 10e9 /* without a cost model */
#define USUAL_SECONDS 0.2e-6

const gs_cost *gs_cost_on(const gs_cost *cost, const gs_cost *host_cost, const gs_topology *t, uint32_t device)
{
    return host_cost != NULL && t->on_host[device] ? host_cost : cost;
}

gs_link_way gs_link_way_of(gs_plan_link link)
{
    return link.from == GS_DISK ? GS_LINK_FROM_DISK
           : link.from == GS_HOST ? GS_LINK_TO_DEVICE
           : link.to == GS_HOST ? GS_LINK_FROM_DEVICE
                                : GS_LINK_BETWEEN;
}

gs_link gs_link_of(const gs_topology *t, const gs_cost *cost, gs_plan_link link)
{
    const double said = gs_link_said_bps(t, link);
    gs_link out = cost != NULL ? gs_cost_link(cost, gs_link_way_of(link)) : (gs_link){USUAL_BPS, USUAL_SECONDS};

    if (said > 0)
        out.bps = said;
    return out;
}

double gs_link_seconds(const gs_topology *t, const gs_cost *cost, const gs_cost *host_cost, const gs_link_load *l)
{
    const bool disk = gs_link_driver(l->link) == GS_DRIVER_IO;
    const gs_cost *const on = disk ? cost : gs_cost_on(cost, host_cost, t, gs_link_device(l->link));
    const gs_link link =
        disk ? (gs_link){l->link.from == GS_DISK ? cost->read_bps : cost->write_bps, cost->request_seconds}
             : gs_link_of(t, on, l->link);
    const double picking = l->picked > 0 && on != NULL ? (double)l->picked * on->pick_seconds : 0;
    return (double)l->requests * link.request_seconds + (double)l->bytes / link.bps + picking;
}

/* ---- work ----------------------------------------------------------------- */

/* What a compute task amounts to, in the terms of the cost model. */

static double sum_columns(const gs_stage *s, uint32_t sum)
{
    return s->reg[s->sum[sum].reg].width;
}

static uint32_t operand_width(const gs_stage *s, const gs_program *p, const gs_operand *o)
{
    return o->kind == GS_FROM_REG ? s->reg[o->index].width : o->kind == GS_FROM_PARAM ? p->param[o->index].cols : 0;
}

void gs_vertex_work(gs_work *w, const gs_program *p, const gs_stage *s, double rows)
{
    for (uint32_t i = 0; i < s->instrs; i++) {
        const gs_instr *const in = &s->instr[i];
        const uint32_t a = operand_width(s, p, &in->a), b = operand_width(s, p, &in->b);
        if (in->op == GS_OP_OUTER)
            w->amount[3] += 2 * rows * a * b;
        else if (in->op == GS_OP_FAN_OUTER)
            w->amount[3] += 2 * rows * (double)gs_param_elements(&p->param[in->dst]);
        else if (in->op == GS_OP_MIX_OUTER)
            w->amount[1] += rows * a * p->param[in->dst].cols;
        else if (in->op == GS_OP_MIX || in->op == GS_OP_MIX_T)
            w->amount[1] += rows * s->reg[in->dst].width * p->param[in->b.index].rows;
        else if (gs_op_classof(in->op) == GS_CLASS_MATMUL)
            w->amount[2] += 2 * rows * (double)p->param[in->b.index].rows * p->param[in->b.index].cols;
        else /* a reduction and a loss without a gradient have no register to write */
            w->amount[gs_op_is(in->op, GS_FACT_HARD) ? 5 : 1] +=
                rows * GS_MAX(a, gs_op_into_param(in->op) || in->dst == GS_NONE ? 0 : s->reg[in->dst].width);
    }
    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind != GS_REG_TEMP || s->reg[r].array != GS_NONE)
            w->amount[4] += rows * s->reg[r].width * gs_dtype_bytes(s->reg[r].dtype) / (double)sizeof(float);
}

static void row_sum_work(gs_work *w, const gs_program *p, const gs_task *t, const gs_chunk *c)
{
    const gs_stage *const s = &p->stage[t->stage];
    gs_row_sum rows = {0};
    (void)gs_sum_of_rows(&rows, s, t->sum);
    const gs_array *const a = &p->array[rows.array];
    const double width = GS_MIN(sum_columns(s, t->sum), (double)a->width);
    w->kind = GS_WORK_SUM;
    w->amount[1] = (double)c->edges;
    w->amount[2] = (double)c->edges * width;
    w->amount[3] = c->operands * width * (double)gs_dtype_bytes(a->dtype) / sizeof(float);
    w->amount[4] = c->targets * width;
}

/* Does the register stand for runs or pairs, where products are made for these: of runs what is of the target
 * end, or the product; of pairs what is multiplied, and what it is made of? */
static bool is_of_products(const gs_stage *s, uint32_t reg)
{
    const unsigned of = gs_edge_attributes(s, reg);
    return (s->products == GS_PRODUCTS_OF_RUNS && (of & GS_OF_TARGET) != 0) ||
           (s->products == GS_PRODUCTS_OF_PAIRS && (of & ~(unsigned)(GS_OF_OPERAND | GS_OF_TYPE)) == 0);
}

/* To find the pair of an edge takes as long as to compute so many numbers. */
#define PAIR_NUMBERS 16

void gs_edge_program_work(gs_work *w, const gs_program *p, const gs_stage *s, double edges)
{
    const bool runs = s->products == GS_PRODUCTS_OF_RUNS, pairs = s->products == GS_PRODUCTS_OF_PAIRS;
    const double share = gs_stage_product_share(s);
    double computed = pairs ? PAIR_NUMBERS : 0, gathered = 0, hard = 0, products = 0;

    for (uint32_t i = 0; i < s->edge_instrs; i++) {
        const gs_instr *const in = &s->edge_instr[i];
        if (gs_edge_reg_only_rows(s, in->dst))
            continue;
        if (gs_op_on_edges(in->op)) {
            products += 2.0 * s->edge_reg[in->dst].width * s->edge_reg[in->a.index].width;
            if (runs || pairs) /* rows are added up before, or once a pair, and both sides are written by type */
                computed += (runs ? 1 : share) * s->edge_reg[in->a.index].width +
                            share * (s->edge_reg[in->a.index].width + s->edge_reg[in->dst].width);
            continue;
        }
        *(gs_op_is(in->op, GS_FACT_HARD) ? &hard : &computed) +=
            (is_of_products(s, in->dst) ? share : 1) *
            GS_MAX(s->edge_reg[in->dst].width, in->a.kind == GS_FROM_REG ? s->edge_reg[in->a.index].width : 0);
    }
    for (gs_array_use u = {0}; gs_stage_next_use(s, &u);)
        gathered += u.role != GS_USE_OPERAND || u.sum != GS_NONE
                        ? 0
                        : (pairs ? share : 1) * s->edge_reg[u.reg].width * gs_dtype_bytes(p->array[u.array].dtype) /
                              (double)sizeof(float);
    for (uint32_t i = 0; i < s->sums; i++) {
        if (s->sum[i].kind == GS_SUM_OUTER) { /* rows are put in order by type before */
            const double in = s->edge_reg[s->sum[i].score].width, out = s->edge_reg[s->sum[i].value].width;
            products += 2 * in * out;
            computed += share * (in + out) + (pairs ? in : 0); /* the targets' rows of a pair are added up */
            continue;
        }
        computed += gs_stage_sums_rows(s, i) ? 0 : (pairs ? 1 : share) * sum_columns(s, i);
        uint32_t first = 0; /* of those by these scores, which have one exponential */
        while (first < i && !gs_same_scores(s, first, i))
            first++;
        hard += first == i && s->sum[i].kind == GS_SUM_ATTEND ? s->edge_reg[s->sum[i].score].width : 0;
    }
    w->kind = GS_WORK_EDGES;
    w->amount[1] = edges;
    w->amount[2] = edges * computed;
    w->amount[3] = edges * gathered;
    w->amount[4] = edges * hard;
    w->amount[5] = edges * share * products;
}

/* An LSTM's steps are dense products; a derivative does them again, and two more. */
static void sequence_work(gs_work *w, const gs_program *p, const gs_sum *m, double edges, bool back)
{
    const double width = p->param[m->weight].cols;
    w->kind = GS_WORK_VERTEX;
    w->amount[5] = edges * (back ? 2 : 1) * 5 * width;
    w->amount[2] = edges * (back ? 2 : 1) * 8 * width * width;
    w->amount[3] = back && m->learned ? edges * 8 * width * width : 0;
    w->amount[4] = edges * (back ? 3 : 1) * 4 * width;
}

void gs_stage_work_find(gs_stage_work *out, const gs_program *p, const gs_stage *s)
{
    *out = (gs_stage_work){.row = {.kind = GS_WORK_VERTEX, .amount = {1}}, .edge = {.amount = {1}}};
    gs_vertex_work(&out->row, p, s, 1);
    if (s->sums == 0 || !gs_sum_is_sequence(&s->sum[0]))
        gs_edge_program_work(&out->edge, p, s, 1);
}

/* Amounts are whole numbers, or quarters, so those of many are exact. */
static void times(gs_work *w, const gs_work *one, double many)
{
    *w = *one;
    for (uint32_t k = 1; k < GS_WORK_AMOUNTS; k++)
        w->amount[k] *= many;
}

void gs_task_work_by(gs_work *w, const gs_program *p, const gs_stage_work *of, const gs_edge_set *set, uint32_t parts,
                    const gs_task *t)
{
    const gs_stage *const s = &p->stage[t->stage];
    const bool edges = gs_task_goes_over_edges(t);
    const uint64_t at = (uint64_t)t->target * parts + t->operand;
    const gs_chunk *const c = edges ? &set[t->file - p->arrays].chunk[at] : NULL;

    *w = (gs_work){.kind = GS_WORK_MEMORY, .amount = {1}};
    switch (t->kind) {
    case GS_TASK_ZERO:
        w->amount[1] = (double)t->bytes / sizeof(float);
        break;
    case GS_TASK_SELF:
    case GS_TASK_BEGIN:
    case GS_TASK_FINISH:
        w->amount[1] = (t->kind == GS_TASK_SELF ? 3 : 1) * (double)t->rows * sum_columns(s, t->sum);
        break;
    case GS_TASK_EDGES:
        if (gs_task_sums_rows(t))
            row_sum_work(w, p, t, c);
        else if (gs_sum_is_sequence(&s->sum[0]))
            sequence_work(w, p, &s->sum[0], (double)c->edges, false);
        else
            times(w, &of->edge, (double)c->edges);
        break;
    case GS_TASK_COPY:
        w->amount[1] = 2 * (double)t->bytes / sizeof(float);
        break;
    case GS_TASK_UNROLL:
    case GS_TASK_BACK:
        sequence_work(w, p, &s->sum[0], (double)c->edges, t->kind == GS_TASK_BACK);
        break;
    case GS_TASK_VERTEX:
        times(w, &of->row, t->rows);
        break;
    default:
        break;
    }
}

void gs_task_work(gs_work *w, const gs_program *p, const gs_edge_set *set, uint32_t parts, const gs_task *t)
{
    gs_stage_work of;
    if (t->kind == GS_TASK_VERTEX || (t->kind == GS_TASK_EDGES && !gs_task_sums_rows(t)))
        gs_stage_work_find(&of, p, &p->stage[t->stage]);
    gs_task_work_by(w, p, &of, set, parts, t);
}

/* ---- bytes in flight ------------------------------------------------------ */

/* How many bytes should the disk have under way?
 *
 * One thread hands requests to the disk. Between two looks at it that thread computes (a device on host memory), or
 * verifies what has come; and where devices have memory of their own, a place in the ring is free, for the next read,
 * when a copy is over. So a request that could begin waits as long as one of those takes, and the disk's own latency
 * comes on top. With bytes for that time under way, and a quarter more, the disk has work.
 */

#define SLACK 1.25
#define USUAL_BYTES (16 * GS_MIB) /* without a cost model */

/* Lengths of gaps. A random moment falls into a long one more often, so the gap that it meets is longer than the
 * mean. */
typedef struct gap {
    double seconds, squares;
} gap;

static void add(gap *g, double seconds)
{
    g->seconds += seconds;
    g->squares += seconds * seconds;
}

/* Expected seconds of the gap that a random moment falls into. */
static double met(const gap *g) { return g->seconds > 0 ? g->squares / g->seconds : 0; }

/* Seconds to verify what comes with the task. */
static double check_seconds(const gs_simulation_input *in, const gs_task *t)
{
    if (t->check == GS_CHECK_NONE)
        return 0;
    const gs_work check = {GS_WORK_CHECK, {gs_task_requests(t), (double)gs_task_bytes(in->plan, t)}};
    return gs_cost_seconds(in->cost, &check);
}

static double move_seconds(const gs_simulation_input *in, const gs_task *t)
{
    const uint64_t bytes = gs_task_bytes(in->plan, t);
    const gs_link_load load = {gs_task_way(t), bytes, gs_task_requests(t), gs_task_moves_rows(t) ? bytes : 0};
    return gs_link_seconds(in->topology, in->cost, in->host_cost, &load);
}

/* Seconds between two looks at the disk: the longest of a computation of the thread that feeds it, a verification, and
 * a copy over a link. */
static double between_looks(const gs_simulation_input *in)
{
    gap computing = {0}, checking = {0}, copying = {0};
    const bool computes = gs_plan_lanes(in->plan) == GS_LANE_DEVICES + 1; /* that thread has the only lane of them */
    const gs_plan_pass *const pass = &in->plan->pass[in->pass];
    gs_work w;

    for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
        const gs_task *const t = &in->plan->task[i];
        if (gs_task_lane(t) == GS_LANE_READ)
            add(&checking, check_seconds(in, t) / gs_task_requests(t)); /* which come one by one */
        else if (gs_task_is_copy(t) && t->source.memory == GS_HOST)
            add(&copying, move_seconds(in, t));
        else if (computes && t->kind != GS_TASK_MOVE) {
            gs_task_work(&w, in->program, in->set, in->parts, t);
            add(&computing, gs_cost_seconds(in->cost, &w));
        }
    }
    return GS_MAX(met(&computing), GS_MAX(met(&checking), met(&copying)));
}

uint64_t gs_flight_bytes(const gs_simulation_input *in)
{
    if (in->cost == NULL)
        return USUAL_BYTES;
    const double wanted = SLACK * in->cost->read_bps * (in->cost->latency_seconds + between_looks(in));
    const uint64_t bytes = wanted < (double)GS_FLIGHT_MOST ? gs_align_up((uint64_t)wanted, GS_MIB) : GS_FLIGHT_MOST;
    return GS_MAX(bytes, GS_FLIGHT_LEAST);
}

/* ---- the walk ------------------------------------------------------------- */

/* Drives the lane machine (plan/lanes.h) with a cost model's clock.
 *
 * A plan without copies as tasks has one thread, which submits, verifies and computes: the order of events is that of
 * exec/lane.c, what changes there changes here. A plan with them has a thread for each lane of a device: every task
 * begins when its lane, what it waits for, and the link or disk that it goes over are free, and links and the disk
 * serve tasks in the order of the plan. The driving thread then only verifies what has come.
 */

struct sim {
    const gs_simulation_input *in;
    const gs_plan_pass *pass;
    gs_lanes lanes;
    gs_predicted out;      /* of the run being simulated */
    gs_stage_work *work;    /* [stages] */
    double *end;            /* [tasks] when each of the plan's is over; of a transfer: has arrived */
    double now;             /* of the driving thread */
    double wire_free[GS_WIRES]; /* has moved all that was submitted */
    double wire_seconds;    /* that wires between devices and the host were busy */
    /* with one thread: what is under way, in the order in which it will arrive */
    uint32_t *flying;       /* [tasks + aheads of the pass] */
    uint32_t first, last;
    /* with a thread for each lane of a device */
    double begin, over;     /* of the run: lanes begin together */
    double lane_free[GS_PLAN_LANES];
    double busy[GS_PLAN_DEVICES][2];          /* of each device: along edges, other */
    const gs_task *before[GS_PLAN_DEVICES];   /* what it computed last, NULL: nothing yet */
    double launched[GS_PLAN_DEVICES];         /* when that, or what was launched with it first, began */
};

static const gs_task *task_at(const struct sim *s, uint32_t task) { return &s->in->plan->task[task]; }

#define AHEAD 8 /* tasks */

static void find_work(const struct sim *s, gs_work *w, const gs_task *t)
{
    const gs_plan *const p = s->in->plan;
    const gs_task *const soon = t + AHEAD < p->task + p->tasks ? t + AHEAD : t;

    if (soon->kind == GS_TASK_EDGES) /* what is known of chunks stands far apart */
        __builtin_prefetch(&s->in->set[soon->file - s->in->program->arrays]
                                .chunk[(uint64_t)soon->target * s->in->parts + soon->operand]);
    gs_task_work_by(w, s->in->program, &s->work[t->stage], s->in->set, s->in->parts, t);
}

/* ---- resources ---- */

static const gs_cost *cost_on(const struct sim *s, const gs_task *t)
{
    return gs_cost_on(s->in->cost, s->in->host_cost, s->in->topology, t->device);
}

/* A wire moves what it is given in order: until when? */
static double take_wire(struct sim *s, gs_plan_link link, double seconds, double begin)
{
    const uint32_t wire = gs_link_wire(s->in->topology, link);

    s->wire_seconds += wire >= GS_WIRE_SWITCHES && wire < GS_WIRE_PEERS ? seconds : 0;
    s->wire_free[wire] = GS_MAX(s->wire_free[wire], begin) + seconds;
    return s->wire_free[wire];
}

/* A rank whose device computes on host memory has one thread, which computes, copies and sees to messages: what the
 * others take is missing to the first. */
static void take_thread(struct sim *s, uint32_t device, double seconds)
{
    if (!s->in->topology->across.network || !s->in->topology->on_host[device])
        return;
    s->lane_free[GS_LANE_DEVICES + device * GS_DEVICE_LANES + GS_LANE_COMPUTE] += seconds;
    s->busy[device][1] += seconds;
}

#define MESSAGE_SECONDS 10e-6 /* of each end's processor, beside the bytes, which are packed and copied there */

/* From rank to rank. What it takes beside its bytes, others do not wait for. */
static double pass_on(struct sim *s, const gs_task *t, double took, double begin)
{
    const gs_plan_link way = gs_task_way(t);
    const gs_work copy = {GS_WORK_MEMORY, {1, (double)gs_task_bytes(s->in->plan, t) / sizeof(float)}};
    const double hand = MESSAGE_SECONDS + gs_cost_seconds(s->in->cost, &copy);

    take_thread(s, way.from - GS_DEVICE_MEMORIES, hand);
    take_thread(s, way.to - GS_DEVICE_MEMORIES, hand);
    return take_wire(s, way, took, begin + hand) + s->in->topology->across.seconds + hand;
}

/* When the bytes of a move that could begin then have arrived. */
static double move(struct sim *s, const gs_task *t, double begin)
{
    const double took = move_seconds(s->in, t);
    const gs_plan_link way = gs_task_way(t);

    if (gs_link_driver(way) == GS_DRIVER_PEER && s->in->topology->across.network)
        return pass_on(s, t, took, begin);
    double end = take_wire(s, way, took, begin);
    if (gs_task_is_copy(t)) {
        take_thread(s, t->device, took);
        return end;
    }
    if (gs_task_driver(t) == GS_DRIVER_DIRECT) {
        const gs_plan_link to = gs_link_to(t->device);
        const double bps = gs_link_of(s->in->topology, cost_on(s, t), to).bps;
        const double passed = take_wire(s, to, (double)t->bytes / bps, begin);
        end = GS_MAX(end, passed);
    }
    *(gs_task_reads(t) ? &s->out.read_seconds : &s->out.write_seconds) += took;
    return end + s->in->cost->latency_seconds;
}

static bool is_along_edges(const gs_work *w) { return w->kind == GS_WORK_SUM || w->kind == GS_WORK_EDGES; }

/* ---- one thread submits, verifies and computes ---- */

static void spend(struct sim *s, double seconds, double *on)
{
    s->now += seconds;
    *on += seconds;
}

static void submit(struct sim *s, uint32_t task)
{
    const gs_task *const t = task_at(s, task);
    const gs_work work = {GS_WORK_SUBMIT, {gs_task_requests(t)}};
    spend(s, gs_cost_seconds(s->in->cost, &work), &s->out.check_seconds);
    s->end[task] = move(s, t, s->now);
    s->flying[s->last++] = task;
}

static void feed(struct sim *s)
{
    static const uint32_t lane[] = {GS_LANE_WRITE, GS_LANE_READ};
    uint32_t task;

    for (size_t k = 0; k < GS_ARRAY_LEN(lane); k++)
        while ((task = gs_lanes_ready(&s->lanes, lane[k])) != GS_NONE) {
            gs_lanes_begin(&s->lanes, lane[k]);
            submit(s, task);
        }
    while ((task = gs_lanes_ready_ahead(&s->lanes)) != GS_NONE) {
        gs_lanes_begin_ahead(&s->lanes);
        submit(s, task);
    }
}

/* Takes what has arrived by now. */
static void reap(struct sim *s)
{
    for (; s->first < s->last && s->end[s->flying[s->first]] <= s->now; s->first++) {
        spend(s, check_seconds(s->in, task_at(s, s->flying[s->first])), &s->out.check_seconds);
        gs_lanes_finish(&s->lanes, s->flying[s->first]);
    }
}

static void pump(struct sim *s, bool wait)
{
    feed(s);
    if (wait && s->first < s->last)
        s->now = GS_MAX(s->now, s->end[s->flying[s->first]]);
    reap(s);
    feed(s);
}

/* Until the task may begin; GS_NONE: until all transfers of the run itself are over. */
static void wait_for(struct sim *s, uint32_t task)
{
    const gs_lanes *const l = &s->lanes;
    const double begin = s->now;

    while (s->first < s->last &&
           (task == GS_NONE ? !gs_lanes_are_over(l, GS_LANE_READ) || !gs_lanes_are_over(l, GS_LANE_WRITE)
                            : gs_lanes_missing_dep(l, task) != GS_NONE))
        pump(s, true);
    s->out.stall_seconds += s->now - begin;
}

static void run_on_one_thread(struct sim *s)
{
    const uint32_t lane = GS_LANE_DEVICES + GS_LANE_COMPUTE;
    const double begin = s->now;
    uint32_t task;
    gs_work w;

    memmove(s->flying, s->flying + s->first, (s->last - s->first) * sizeof(*s->flying)); /* read ahead of this run */
    s->last -= s->first;
    s->first = 0;
    while ((task = gs_lanes_next(&s->lanes, lane)) != GS_NONE) {
        pump(s, false);
        wait_for(s, task);
        gs_lanes_begin(&s->lanes, lane);
        find_work(s, &w, task_at(s, task));
        spend(s, gs_cost_seconds_beside(s->in->cost, &w, s->wire_free[GS_WIRE_DISK] - s->now, s->in->cost->read_bps),
              is_along_edges(&w) ? &s->out.edge_seconds : &s->out.vertex_seconds);
        gs_lanes_finish(&s->lanes, task);
    }
    pump(s, false);
    wait_for(s, GS_NONE);
    s->out.seconds = s->now - begin;
}

/* ---- a thread for each lane of a device ---- */

static double last_end(const struct sim *s, uint32_t first_dep, uint32_t deps, double begin)
{
    for (uint32_t i = 0; i < deps; i++)
        begin = GS_MAX(begin, s->end[s->in->plan->dep[first_dep + i]]);
    return begin;
}

/* One thread verifies what has come. */
static double transfer(struct sim *s, const gs_task *t, double begin)
{
    const double arrived = move(s, t, begin), check = check_seconds(s->in, t);
    s->out.check_seconds += check;
    return s->now = GS_MAX(s->now, arrived) + check;
}

/* `ready`: when all that the task waits for was done. What was there when the launch before it began is a part of that,
 * and takes no launch of its own. */
static double compute(struct sim *s, const gs_task *t, double ready, double begin)
{
    const gs_task *const before = s->before[t->device];
    const gs_cost *const cost = cost_on(s, t);
    gs_work w;
    find_work(s, &w, t);
    const bool joins = !s->in->topology->on_host[t->device] && is_along_edges(&w) && before != NULL &&
                       gs_tasks_go_together(before, t) && ready <= s->launched[t->device];
    const double alone = gs_cost_seconds(cost, &w), launch = joins ? cost->seconds[w.kind][0] : 0;
    const double took = (alone - launch) / gs_topology_speed(s->in->topology, t->device);
    s->busy[t->device][is_along_edges(&w) ? 0 : 1] += took;
    s->before[t->device] = t;
    if (!joins)
        s->launched[t->device] = begin;
    return begin + took;
}

static void read_ahead(struct sim *s)
{
    for (uint32_t task; (task = gs_lanes_ready_ahead(&s->lanes)) != GS_NONE;) {
        const gs_ahead *const a = gs_lanes_next_ahead(&s->lanes);
        const double begin = last_end(s, a->first_dep, a->deps, s->begin);
        gs_lanes_begin_ahead(&s->lanes);
        s->end[task] = transfer(s, task_at(s, task), begin);
        gs_lanes_finish(&s->lanes, task);
    }
}

#define MEETINGS 3 /* of ranks, from a pass to the next: what it came to, whether to go on, whether to save */

/* The device that computes longest speaks for all. */
static void sum_up(struct sim *s)
{
    double most = -1;

    for (uint32_t d = 0; d < s->in->plan->devices; d++) {
        const double busy = s->busy[d][0] + s->busy[d][1];
        if (busy <= most)
            continue;
        most = busy;
        s->out.edge_seconds = s->busy[d][0];
        s->out.vertex_seconds = s->busy[d][1];
    }
    s->over += s->in->topology->across.network ? MEETINGS * s->in->topology->across.meeting : 0;
    s->out.seconds = s->over - s->begin;
    s->out.stall_seconds = GS_MAX(s->out.seconds - most, 0); /* sums of other orders */
}

/* As waits point backward, the list's first task that has not begun always may: one walk knows all times. */
static void run_on_threads(struct sim *s)
{
    s->begin = s->over;
    s->wire_seconds = 0;
    memset(s->busy, 0, sizeof(s->busy));
    memset(s->before, 0, sizeof(s->before));
    for (uint32_t lane = 0; lane < s->lanes.lanes; lane++)
        s->lane_free[lane] = s->begin;
    for (uint32_t i = s->pass->first_task; i < s->pass->first_task + s->pass->tasks; i++) {
        const gs_task *const t = task_at(s, i);
        const uint32_t lane = gs_task_lane(t);
        if (gs_lanes_is_done(&s->lanes, i)) /* read ahead */
            continue;
        gs_lanes_begin(&s->lanes, lane);
        const double free = gs_task_is_transfer(t) ? s->begin : s->lane_free[lane];
        const double ready = last_end(s, t->first_dep, t->deps, s->begin), begin = GS_MAX(ready, free);
        s->end[i] = s->lane_free[lane] = lane < GS_LANE_DEVICES    ? transfer(s, t, begin)
                                         : t->kind == GS_TASK_MOVE ? move(s, t, begin)
                                                                   : compute(s, t, ready, begin);
        s->over = GS_MAX(s->over, s->end[i]);
        gs_lanes_finish(&s->lanes, i);
        read_ahead(s);
    }
    sum_up(s);
}

/* ---- what it comes to ---- */

/* The resource that is busy longest, where it is busy nearly all the time: else an epoch is
 * made of waits that memory for reading ahead would remove. */
static const char *bottleneck(const struct sim *s)
{
    const gs_predicted *const x = &s->out;
    const double disk = x->read_seconds + x->write_seconds, computing = x->edge_seconds + x->vertex_seconds;
    const double device = computing + x->check_seconds;

    if (s->wire_seconds > 0 && s->wire_seconds / s->in->topology->switches > GS_MAX(disk, computing))
        return "copies to devices";
    if (GS_MAX(disk, device) < 0.75 * x->seconds)
        return "waiting";
    if (disk >= device)
        return x->read_seconds >= x->write_seconds ? "reading" : "writing";
    if (x->check_seconds >= GS_MAX(x->edge_seconds, x->vertex_seconds))
        return "checksums";
    return x->edge_seconds >= x->vertex_seconds ? "edge sums" : "vertex programs";
}

static void run_once(struct sim *s)
{
    gs_lanes_enter(&s->lanes, s->in->pass);
    s->out = (gs_predicted){0};
    if (s->lanes.lanes == GS_LANE_DEVICES + 1) /* the thread that feeds the disk has the only one of a device */
        run_on_one_thread(s);
    else
        run_on_threads(s);
}

gs_status gs_simulate(gs_predicted *out, const gs_simulation_input *in)
{
    struct sim s = {.in = in, .pass = &in->plan->pass[in->pass]};
    gs_status st = gs_lanes_open(&s.lanes, in->plan);

    s.end = gs_malloc_array((size_t)in->plan->tasks + 1, sizeof(*s.end));
    s.flying = gs_malloc_array((size_t)s.pass->tasks + s.pass->aheads + 1, sizeof(*s.flying));
    s.work = gs_malloc_array(in->program->stages + 1ull, sizeof(*s.work));
    if (st != GS_OK || s.end == NULL || s.flying == NULL || s.work == NULL) {
        st = gs_fail(GS_ENOMEM, "out of memory while planning");
        goto done;
    }
    for (uint32_t k = 0; k < in->program->stages; k++)
        gs_stage_work_find(&s.work[k], in->program, &in->program->stage[k]);
    run_once(&s);
    if (s.pass->aheads > 0) /* an epoch among epochs is what counts: the second begins with what the first read ahead */
        run_once(&s);
    snprintf(s.out.bottleneck, sizeof(s.out.bottleneck), "%s", bottleneck(&s));
    *out = s.out;
done:
    gs_lanes_close(&s.lanes);
    gs_free(s.work);
    gs_free(s.end);
    gs_free(s.flying);
    return st;
}

/* What a pass takes depends on its plan, and on these; never 0. */
static uint64_t costs_of(const gs_simulation_input *in)
{
    uint64_t sum = gs_hash64(in->cost, sizeof(*in->cost));

    if (in->host_cost != NULL)
        sum = gs_hash64_seeded(in->host_cost, sizeof(*in->host_cost), sum);
    return sum == 0 ? 1 : sum;
}

gs_status gs_simulate_once(gs_predicted *out, gs_plan *plan, const gs_simulation_input *in)
{
    gs_plan_pass *const pass = &plan->pass[in->pass];
    const uint64_t by = costs_of(in);

    if (pass->predicted_by != by) {
        GS_TRY(gs_simulate(&pass->predicted, in));
        pass->predicted_by = by;
    }
    *out = pass->predicted;
    return GS_OK;
}
