/* The gradients of the matrices of edges' types: sums over edges of rows' outer products, each in the place of the
 * edge's type. A portion of a launch's edges is put in order by type; threads compute what the edges bring, tile by
 * tile, and put it where the edges of its type lie together; then each type's product is made, a few rows of its matrix
 * at a time, by one thread and in the order of the edges. So nothing depends on the number of threads, and a large type
 * is many threads' work.
 */
#include "base/index_width.h"
#include "base/size.h"
#include "device/cpu/edge_program.h"
#include "device/cpu/team.h"
#include "device/cpu/edge_typed.h"

#define KEPT_BYTES (2 * GS_MIB) /* of a portion's rows */
#define PORTION_LEAST 1024u     /* edges */
#define PORTION_MOST 16384u
#define MATRIX_ROWS 8 /* that a thread takes: those that stand in registers together */

/* Edges of a portion for rows of so many columns, both sides together. */
static uint32_t portion_edges(uint64_t columns)
{
    const uint64_t fit = KEPT_BYTES / sizeof(float) / GS_MAX(columns, (uint64_t)1);
    return (uint32_t)GS_MIN(GS_MAX(fit, (uint64_t)PORTION_LEAST), (uint64_t)PORTION_MOST);
}

uint64_t gs_cpu__kept_floats(const gs_stage *stage)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < stage->sums; i++) {
        const gs_sum *const m = &stage->sum[i];
        if (m->kind != GS_SUM_OUTER || m->value >= stage->edge_regs || m->score >= stage->edge_regs)
            continue;
        const uint64_t columns = (uint64_t)stage->edge_reg[m->score].width + stage->edge_reg[m->value].width;
        most = GS_MAX(most, portion_edges(columns) * (columns + 5) + 1);
    }
    return most;
}

typedef struct outer_task {
    const gs_cpu *cpu;
    gs_cpu_edge_plan plan;
    float *grad;
    uint32_t in, out;
    uint32_t from, edges;    /* of the portion */
    float *kept[2];          /* [edges, in], [edges, out], by type */
    uint32_t *type, *order, *spare, *place; /* [edges] */
    uint32_t *group;         /* [groups + 1] where those of a type begin */
    uint32_t groups;
} outer_task;

/* Which edge goes where. */
static void sort_portion(outer_task *k)
{
    const gs_edges *const e = &k->plan.l->edges;
    for (uint32_t i = 0; i < k->edges; i++)
        k->type[i] = gs_type_at(e->type, e->type_bytes, k->from + i);
    gs_cpu_edge_order(k->type, k->edges, k->plan.types, k->order, k->spare);
    k->groups = 0;
    for (uint32_t i = 0; i < k->edges; i++) {
        k->place[k->order[i]] = i;
        if (i == 0 || k->type[k->order[i]] != k->type[k->order[i - 1]])
            k->group[k->groups++] = i;
    }
    k->group[k->groups] = k->edges;
}

/* Keeps the rows that a tile's worth of edges brings. */
static void keep_piece(const outer_task *k, uint32_t piece)
{
    const gs_edge_program_launch *const l = k->plan.l;
    const uint32_t from = k->from + piece * k->plan.tile, to = GS_MIN(from + k->plan.tile, k->from + k->edges);
    const gs_cpu_edge_work work = {.first = gs_cpu_edge_owner(&l->edges, from),
                                   .end = l->edges.targets,
                                   .from = from,
                                   .to = to,
                                   .kept = {k->kept[0], k->kept[1]},
                                   .place = k->place,
                                   .place_first = k->from,
                                   .scratch = gs_cpu__tile(k->cpu)};
    k->cpu->k->edge_program(&k->plan, &work);
}

/* Some rows of the gradient of one type's matrix. */
static void add_rows(const outer_task *k, uint32_t item, uint32_t blocks)
{
    const uint32_t group = item / blocks, row = item % blocks * MATRIX_ROWS, first = k->group[group];
    const uint32_t type = k->type[k->order[first]];
    k->cpu->k->outer(k->grad + ((uint64_t)type * k->in + row) * k->out, k->kept[0] + (uint64_t)first * k->in + row,
                     k->in, k->kept[1] + (uint64_t)first * k->out, k->group[group + 1] - first,
                     GS_MIN((uint32_t)MATRIX_ROWS, k->in - row), k->out);
}

static void run_portion(outer_task *k)
{
    const uint32_t blocks = (uint32_t)gs_div_up(k->in, MATRIX_ROWS),
                   pieces = (uint32_t)gs_div_up(k->edges, k->plan.tile);
    sort_portion(k);
    const int before = gs_cpu__enter(k->cpu, pieces);
#pragma omp parallel for schedule(dynamic, 1)
    for (uint32_t i = 0; i < pieces; i++)
        keep_piece(k, i);
#pragma omp parallel for schedule(dynamic, 4)
    for (uint32_t i = 0; i < k->groups * blocks; i++)
        add_rows(k, i, blocks);
    gs_cpu__leave(before);
}

static gs_status run_outer(gs_cpu *cpu, const gs_edge_program_launch *l, uint32_t index)
{
    const gs_sum *const m = &l->stage->sum[index];
    outer_task k = {.cpu = cpu};
    const gs_status st = gs_cpu__plan_edges(&k.plan, cpu, l, index);

    if (st != GS_OK)
        return st;
    k.in = l->stage->edge_reg[m->score].width;
    k.out = l->stage->edge_reg[m->value].width;
    if (l->grad == NULL || m->weight >= l->program->params || l->grad[m->weight] == NULL ||
        gs_param_elements(&l->program->param[m->weight]) != (uint64_t)k.plan.types * k.in * k.out)
        return gs_fail(GS_EINVAL, "stage \"%s\", sum %u: no gradient of matrices that these rows fit", l->stage->name,
                       index);
    const uint32_t most = portion_edges((uint64_t)k.in + k.out);
    if (cpu->room[GS_CPU_KEPT].floats < gs_cpu__kept_floats(l->stage))
        return gs_fail(GS_EINVAL, "stage \"%s\": not prepared for outer products of edges", l->stage->name);
    k.grad = l->grad[m->weight];
    k.kept[0] = cpu->room[GS_CPU_KEPT].at;
    k.kept[1] = k.kept[0] + (uint64_t)most * k.in;
    k.type = (uint32_t *)(void *)(k.kept[1] + (uint64_t)most * k.out);
    k.order = k.type + most;
    k.spare = k.order + most;
    k.place = k.spare + most;
    k.group = k.place + most;
    for (uint32_t at = l->edges.start[0], end = l->edges.start[l->edges.targets]; at < end; at += k.edges) {
        k.from = at;
        k.edges = GS_MIN(most, end - at);
        run_portion(&k);
    }
    return GS_OK;
}

gs_status gs_cpu__run_outers(gs_cpu *cpu, const gs_edge_program_launch *l)
{
    gs_status st = GS_OK;
    for (uint32_t i = 0; i < l->stage->sums && st == GS_OK; i++)
        if (l->stage->sum[i].kind == GS_SUM_OUTER)
            st = run_outer(cpu, l, i);
    return st;
}
