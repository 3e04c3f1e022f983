/* Products of edges by the matrices of their types, one for each run: edges of one target and one type, which lie side
 * by side (program/products.h).
 *
 * A launch is taken a portion of its runs at a time. The rows of a run are added up, in the place that it has among the
 * portion's runs by type, so each type's sums are multiplied, and added to the gradient of its matrix, as one block of
 * rows. Then the products are added to their targets, in the order of the edges. Sums and additions are edge
 * programs and sums of rows themselves: of the stage as it is before its product, and behind it. A run is never cut,
 * and portions are cut by the launch alone, so nothing depends on the number of threads. */
#include "device/cpu/edge_runs.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/size.h"
#include "device/cpu/edge_program.h"
#include "device/cpu/gemm.h"
#include "program/products.h"

#define PORTION_BYTES (2 * GS_MIB) /* of rows */
#define PORTION_LEAST 1024u        /* runs */
#define PORTION_MOST 16384u
#define PORTION_LISTS 9u           /* 32-bit numbers of a run */
#define PRODUCT_ROWS 64u           /* that a thread multiplies at a time */
#define GRADIENT_ROWS 8u           /* of a type's matrix: those that stand in registers together */

/* A stage before its product and behind it. */
struct gs_cpu_run_stage {
    const gs_stage *of;
    gs_run_products p;
    gs_reg sum;           /* of `before` */
    gs_stage before;      /* the sum of `value`, for each run */
    gs_stage after;       /* the stage's sums, of the product as a row of the operand end */
    const float **rows;   /* [edge_regs] of `after` */
    void *memory;
};

/* ---- before any launch ---- */

static bool by_runs(const gs_stage *s) { return s->products == GS_PRODUCTS_OF_RUNS; }

static uint64_t stage_bytes(const gs_stage *s)
{
    return s->edge_regs * (sizeof(gs_edge_reg) + sizeof(float *)) + s->edge_instrs * sizeof(gs_instr);
}

static void split_stage(gs_cpu_run_stage *r, const gs_stage *s)
{
    gs_edge_reg *const reg = (gs_edge_reg *)((char *)r->memory + s->edge_regs * sizeof(float *));
    gs_instr *const instr = (gs_instr *)(void *)(reg + s->edge_regs);

    r->of = s;
    r->rows = r->memory;
    r->before = r->after = *s;
    r->sum = (gs_reg){.kind = GS_REG_SUM, .width = s->edge_reg[r->p.value].width, .array = GS_NONE};
    r->before.sums = r->before.regs = 1;
    r->before.reg = &r->sum;
    r->before.sum[0] = (gs_sum){.kind = GS_SUM_ADD, .value = r->p.value, .score = GS_NONE, .lse = GS_NONE,
                                .weight = GS_NONE, .array = GS_NONE};
    memcpy(reg, s->edge_reg, s->edge_regs * sizeof(*reg));
    memcpy(instr, s->edge_instr, s->edge_instrs * sizeof(*instr));
    r->after.edge_reg = reg;
    r->after.edge_instr = instr;
    if (r->p.instr == GS_NONE)
        return;
    reg[r->p.product] =
        (gs_edge_reg){.kind = GS_EDGE_OPERAND, .width = s->edge_reg[r->p.product].width, .array = GS_NONE};
    memmove(instr + r->p.instr, instr + r->p.instr + 1, (s->edge_instrs - r->p.instr - 1) * sizeof(*instr));
    r->after.edge_instrs--;
}

uint64_t gs_cpu__run_stage_bytes(const gs_program *p)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < p->stages; s++)
        if (by_runs(&p->stage[s]))
            bytes += sizeof(gs_cpu_run_stage) + stage_bytes(&p->stage[s]) + GS_BLOCK_BYTES;
    return bytes;
}

void gs_cpu__free_run_stages(gs_cpu *cpu)
{
    for (uint32_t i = 0; i < cpu->run_stages; i++)
        gs_free(cpu->run_stage[i].memory);
    gs_free(cpu->run_stage);
    cpu->run_stage = NULL;
    cpu->run_stages = 0;
}

gs_status gs_cpu__prepare_run_stages(gs_cpu *cpu, const gs_program *p)
{
    uint32_t stages = 0;

    gs_cpu__free_run_stages(cpu);
    for (uint32_t s = 0; s < p->stages; s++)
        stages += by_runs(&p->stage[s]);
    if (stages == 0)
        return GS_OK;
    if ((cpu->run_stage = gs_calloc(stages, sizeof(*cpu->run_stage))) == NULL)
        return gs_fail(GS_ENOMEM, "device cpu: out of memory for products of edges");
    for (uint32_t s = 0; s < p->stages; s++) {
        gs_cpu_run_stage *const r = &cpu->run_stage[cpu->run_stages];
        if (!by_runs(&p->stage[s]))
            continue;
        if (!gs_stage_find_runs(&r->p, &p->stage[s]))
            return gs_fail(GS_EINVAL, "stage \"%s\": its products are not those of runs", p->stage[s].name);
        if ((r->memory = gs_malloc(stage_bytes(&p->stage[s]))) == NULL)
            return gs_fail(GS_ENOMEM, "device cpu: out of memory for products of edges");
        split_stage(r, &p->stage[s]);
        cpu->run_stages++;
    }
    return GS_OK;
}

/* Columns of a run's sum, of its product, and of the widest other side of an outer product. */
typedef struct run_widths {
    uint32_t in, out, side;
} run_widths;

static run_widths widths_of(const gs_stage *s, const gs_run_products *p)
{
    run_widths w = {.in = s->edge_reg[p->value].width,
                    .out = p->instr == GS_NONE ? 0 : s->edge_reg[p->product].width};
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].kind == GS_SUM_OUTER)
            w.side = GS_MAX(w.side, s->edge_reg[s->sum[i].score].width);
    return w;
}

static uint32_t portion_runs(run_widths w)
{
    const uint64_t fit = PORTION_BYTES / sizeof(float) / ((uint64_t)w.in + w.out + w.side);
    return (uint32_t)GS_MIN(GS_MAX(fit, (uint64_t)PORTION_LEAST), (uint64_t)PORTION_MOST);
}

gs_cpu_run_needs gs_cpu__run_needs(const gs_program *p, const gs_stage *stage)
{
    gs_cpu_run_stage r = {.memory = NULL};
    gs_cpu_run_needs n = {0};

    if (!by_runs(stage) || !gs_stage_find_runs(&r.p, stage))
        return n;
    const run_widths w = widths_of(stage, &r.p);
    const uint32_t most = portion_runs(w);
    n.floats = (uint64_t)most * (w.in + w.out + w.side + PORTION_LISTS) + PORTION_LISTS;
    r.sum = (gs_reg){.kind = GS_REG_SUM, .width = w.in, .array = GS_NONE};
    r.before = *stage;
    r.before.sums = r.before.regs = 1;
    r.before.reg = &r.sum;
    r.before.sum[0] = (gs_sum){.kind = GS_SUM_ADD, .value = r.p.value};
    n.before = gs_cpu__edge_needs(p, &r.before);
    return n;
}

/* ---- a portion ---- */

typedef struct portion {
    gs_cpu *cpu;
    const gs_edge_program_launch *l;
    gs_cpu_run_stage *s;
    run_widths w;
    uint32_t types, most;
    const float *matrix;             /* [in, out] of each type */
    uint32_t target, edge;           /* where the next one begins */
    uint32_t first_target, targets, runs, groups;
    float *sum, *product, *side;     /* of each run, by type */
    void *place;                     /* [runs] of the launch's indices: where its rows are */
    uint32_t *start;                 /* [runs + 1] the first edge of each */
    uint32_t *target_start;          /* [targets + 1] the first run of each */
    uint32_t *type, *order, *spare;  /* [runs] */
    uint32_t *row;                   /* [runs] of its target */
    uint32_t *group;                 /* [groups + 1] where runs of a type begin */
    uint16_t *run_type;              /* [runs] */
} portion;

static uint32_t end_of_run(const gs_edges *e, uint32_t k, uint32_t end)
{
    const uint32_t type = gs_type_at(e->type, e->type_bytes, k++);
    while (k < end && gs_type_at(e->type, e->type_bytes, k) == type)
        k++;
    return k;
}

/* The next runs: of a target that has more, those that there is room for. */
static void next_portion(portion *k)
{
    const gs_edges *const e = &k->l->edges;

    k->first_target = k->target;
    k->targets = k->runs = 0;
    while (k->target < e->targets && k->runs < k->most && k->targets < k->most) {
        const uint32_t end = e->start[k->target + 1];
        k->target_start[k->targets++] = k->runs;
        for (; k->edge < end && k->runs < k->most; k->runs++) {
            k->start[k->runs] = k->edge;
            k->type[k->runs] = gs_type_at(e->type, e->type_bytes, k->edge);
            k->row[k->runs] = gs_index_at(e->target, e->index_bytes, k->target);
            k->edge = end_of_run(e, k->edge, end);
        }
        k->target += k->edge == end;
    }
    k->target_start[k->targets] = k->runs;
    k->start[k->runs] = k->edge;
}

static void sort_runs(portion *k)
{
    gs_cpu_edge_order(k->type, k->runs, k->types, k->order, k->spare);
    k->groups = 0;
    for (uint32_t i = 0; i < k->runs; i++) {
        const uint32_t run = k->order[i];
        if (k->l->edges.index_bytes == 2)
            ((uint16_t *)k->place)[run] = (uint16_t)i;
        else
            ((uint32_t *)k->place)[run] = i;
        k->run_type[run] = (uint16_t)k->type[run];
        if (i == 0 || k->type[run] != k->type[k->order[i - 1]])
            k->group[k->groups++] = i;
    }
    k->group[k->groups] = k->runs;
}

/* The sum of a launch, of rows or of a program's values; of a stage before its product or behind it. */
static gs_status run_sum(const portion *k, const gs_edge_program_launch *l, uint32_t sum)
{
    gs_row_sum rows;
    const gs_sum *const m = &l->stage->sum[sum];

    if (!gs_sum_of_rows(&rows, l->stage, sum))
        return GS_OK; /* the program's */
    const gs_edge_launch of_rows = {.edges = l->edges, .dtype = GS_F32, .operand = l->rows[rows.reg],
                                    .scale = rows.scale_reg == GS_NONE ? NULL : l->rows[rows.scale_reg],
                                    .acc = l->sum[sum].acc, .width = l->stage->edge_reg[m->value].width,
                                    .types = rows.types == GS_TYPES_NONE ? 0 : k->types,
                                    .pick = rows.types == GS_TYPES_OF_ROWS};
    return gs_cpu__run_edges(k->cpu, &of_rows);
}

static gs_status add_up_runs(const portion *k)
{
    const gs_accumulator sum = {.acc = k->sum};
    gs_edge_program_launch l = *k->l;

    memset(k->sum, 0, (uint64_t)k->runs * k->w.in * sizeof(*k->sum));
    l.stage = &k->s->before;
    l.edges.targets = k->runs;
    l.edges.target = k->place;
    l.edges.start = k->start;
    l.edges.target_rows = k->runs;
    l.sum = &sum;
    const gs_status st = run_sum(k, &l, 0);
    return st != GS_OK ? st : gs_cpu__run_sums(k->cpu, &l);
}

/* Runs [first, end) by type. */
static void multiply(const portion *k, uint32_t first, uint32_t end)
{
    for (uint32_t next; first < end; first = next) {
        const uint32_t type = k->type[k->order[first]];
        for (next = first + 1; next < end && k->type[k->order[next]] == type; next++)
            ;
        k->cpu->k->by_matrix(k->product + (uint64_t)first * k->w.out, k->sum + (uint64_t)first * k->w.in,
                             k->matrix + (uint64_t)type * k->w.in * k->w.out, next - first, k->w.in, k->w.out);
    }
}

static void multiply_runs(const portion *k)
{
    const uint32_t blocks = (uint32_t)gs_div_up(k->runs, PRODUCT_ROWS);
    const int before = gs_cpu__enter(k->cpu, blocks);
#pragma omp parallel for schedule(dynamic, 1)
    for (uint32_t i = 0; i < blocks; i++)
        multiply(k, i * PRODUCT_ROWS, GS_MIN((i + 1) * PRODUCT_ROWS, k->runs));
    gs_cpu__leave(before);
}

/* Some rows of the gradient of one type's matrix. */
static void add_rows(const portion *k, float *grad, uint32_t side, uint32_t item, uint32_t blocks)
{
    const uint32_t group = item / blocks, row = item % blocks * GRADIENT_ROWS, first = k->group[group];
    const uint32_t type = k->type[k->order[first]];
    k->cpu->k->outer(grad + ((uint64_t)type * side + row) * k->w.in, k->side + (uint64_t)first * side + row, side,
                     k->sum + (uint64_t)first * k->w.in, k->group[group + 1] - first,
                     GS_MIN(GRADIENT_ROWS, side - row), k->w.in);
}

/* Rows of the targets with the sums of their runs. */
static void add_outer(const portion *k, const gs_sum *m)
{
    const uint32_t side = k->l->stage->edge_reg[m->score].width, blocks = (uint32_t)gs_div_up(side, GRADIENT_ROWS);
    const float *const rows = k->l->rows[m->score];
    float *const grad = k->l->grad[m->weight];
    const int before = gs_cpu__enter(k->cpu, k->groups * blocks);
#pragma omp parallel for schedule(static)
    for (uint32_t i = 0; i < k->runs; i++)
        memcpy(k->side + (uint64_t)i * side, rows + (uint64_t)k->row[k->order[i]] * side, side * sizeof(*rows));
#pragma omp parallel for schedule(dynamic, 4)
    for (uint32_t i = 0; i < k->groups * blocks; i++)
        add_rows(k, grad, side, i, blocks);
    gs_cpu__leave(before);
}

static gs_status add_products(const portion *k)
{
    const gs_stage *const after = &k->s->after;
    gs_edge_program_launch l = *k->l;
    gs_status st = GS_OK;

    memcpy(k->s->rows, k->l->rows, after->edge_regs * sizeof(*k->s->rows));
    k->s->rows[k->s->p.product] = k->product;
    l.stage = after;
    l.rows = k->s->rows;
    l.edges.targets = k->targets;
    l.edges.target = (const char *)k->l->edges.target + (uint64_t)k->first_target * k->l->edges.index_bytes;
    l.edges.start = k->target_start;
    l.edges.index = k->place;
    l.edges.operand_rows = k->runs;
    l.edges.type = k->run_type;
    l.edges.type_bytes = sizeof(*k->run_type);
    l.edges.weight = NULL;
    l.edges.feature = NULL;
    for (uint32_t i = 0; i < after->sums && st == GS_OK; i++)
        if (!gs_stage_sums_rows(k->s->of, i)) /* which have launches of their own */
            st = run_sum(k, &l, i);
    return st != GS_OK ? st : gs_cpu__run_sums(k->cpu, &l);
}

static gs_status run_portion(portion *k)
{
    const gs_stage *const stage = k->l->stage;
    gs_status st;

    sort_runs(k);
    if ((st = add_up_runs(k)) != GS_OK)
        return st;
    for (uint32_t i = 0; i < stage->sums; i++)
        if (stage->sum[i].kind == GS_SUM_OUTER)
            add_outer(k, &stage->sum[i]);
    if (k->s->p.instr == GS_NONE)
        return GS_OK;
    multiply_runs(k);
    return add_products(k);
}

/* ---- a launch ---- */

static gs_status refuse(const gs_edge_program_launch *l, const char *what)
{
    return gs_fail(GS_EINVAL, "stage \"%s\": %s", l->stage->name, what);
}

/* How many types there are, by what has a matrix for each. */
static gs_status find_types(portion *k)
{
    const gs_stage *const stage = k->l->stage;
    const gs_edges *const e = &k->l->edges;
    const gs_program *const p = k->l->program;

    if (k->s->p.instr != GS_NONE) {
        const gs_instr *const in = &stage->edge_instr[k->s->p.instr];
        k->types = (uint32_t)(gs_param_elements(&p->param[in->b.index]) / ((uint64_t)k->w.in * k->w.out));
        k->matrix = in->op == GS_OP_BY_TYPE ? k->l->param[in->b.index] : gs_cpu__transposed_matrices(k->cpu, k->l, in);
    }
    for (uint32_t i = 0; i < stage->sums; i++) {
        const gs_sum *const m = &stage->sum[i];
        if (m->kind != GS_SUM_OUTER)
            continue;
        const uint64_t one = (uint64_t)stage->edge_reg[m->score].width * k->w.in;
        const bool there = k->l->grad != NULL && m->weight < p->params && k->l->grad[m->weight] != NULL;
        const uint64_t all = there ? gs_param_elements(&p->param[m->weight]) : 0;
        if (!there || all % one != 0 || (k->types != 0 && all / one != k->types))
            return refuse(k->l, "no gradient of matrices that these rows fit");
        k->types = (uint32_t)(all / one);
    }
    return e->type == NULL || (e->type_bytes != 1 && e->type_bytes != 2)
               ? refuse(k->l, "columns by the type of edges that have none, or another number of types")
               : GS_OK;
}

static void place_lists(portion *k)
{
    const uint64_t most = k->most;

    k->sum = k->cpu->room[GS_CPU_KEPT].at;
    k->product = k->sum + most * k->w.in;
    k->side = k->product + most * k->w.out;
    k->place = k->side + most * k->w.side;
    k->start = (uint32_t *)k->place + most;
    k->target_start = k->start + most + 1;
    k->type = k->target_start + most + 1;
    k->order = k->type + most;
    k->spare = k->order + most;
    k->row = k->spare + most;
    k->group = k->row + most;
    k->run_type = (uint16_t *)(void *)(k->group + most + 1);
}

static gs_status run_by_runs(gs_cpu *cpu, const gs_edge_program_launch *l)
{
    portion k = {.cpu = cpu, .l = l, .edge = l->edges.start[0]};
    gs_status st = GS_OK;

    for (uint32_t i = 0; i < cpu->run_stages; i++)
        if (cpu->run_stage[i].of == l->stage)
            k.s = &cpu->run_stage[i];
    if (k.s == NULL)
        return refuse(l, "not prepared for products of runs");
    k.w = widths_of(l->stage, &k.s->p);
    k.most = portion_runs(k.w);
    gs_cpu__transpose_matrices(cpu, l);
    place_lists(&k);
    if ((st = find_types(&k)) != GS_OK)
        return st;
    while (k.target < l->edges.targets && st == GS_OK) {
        next_portion(&k);
        st = k.runs > 0 ? run_portion(&k) : GS_OK;
    }
    return st;
}

gs_status gs_cpu__run_edge_stage(void *context, const gs_edge_program_launch *l)
{
    return by_runs(l->stage) ? run_by_runs(context, l) : gs_cpu__run_edge_program(context, l);
}
