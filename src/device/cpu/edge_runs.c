/* Products of edges by the matrices of their types, one for each run: edges of one target and one type, which
 * lie side by side; or one for each pair of a row of the operand end and a type, wherever its edges lie
 * (program/products.h).
 *
 * A launch is taken a portion of its runs at a time. The rows of a run are added up, in the place that it has
 * among the portion's runs by type, so each type's sums are multiplied, and added to the gradient of its
 * matrix, as one block of rows. Then the products are added to their targets, in the order of the edges. Sums
 * and additions are edge programs and sums of rows themselves: of the stage as it is before its product, and
 * behind it. A run is never cut, and portions are cut by the launch alone, so nothing depends on the number
 * of threads.
 *
 * Of pairs the same: what a pair has is computed once, as the sum of an edge of its own. Behind the product a
 * stage goes over the portion's edges, whose operand is the pair's product; outer products are made of what
 * the edges of a pair have at their targets, added up. Pairs are found in the order of edges, by a hash table
 * of the portion. */
#include "device/cpu/edge_runs.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/size.h"
#include "device/cpu/edge_program.h"
#include "device/cpu/gemm.h"
#include "program/products.h"

#define PRODUCT_ROWS 64u /* that a thread multiplies at a time */
#define GRADIENT_ROWS 8u /* of a type's matrix: those that stand in registers together */

/* A stage before its product and behind it. */
struct gs_cpu_run_stage {
    const gs_stage *of;
    gs_products way;
    gs_edge_products p;
    gs_reg sum;           /* of `before` */
    gs_stage before;      /* the sum of `value`, for each run or pair */
    gs_stage after;       /* the stage's sums, of the product as a row of the operand end */
    const float **rows;   /* [edge_regs] of `after` */
    void *memory;
};

/* ---- before any launch ---- */

static bool by_edges(const gs_stage *s) { return s->products == GS_PRODUCTS_OF_EDGES; }

/* Ways of runs and pairs that a stage is made ready for. */
static const gs_products split_ways[] = {GS_PRODUCTS_OF_RUNS, GS_PRODUCTS_OF_PAIRS};
#define SPLIT_WAYS GS_ARRAY_LEN(split_ways)

static bool has_way(const gs_stage *s, uint32_t w)
{
    return s->products == split_ways[w] || (s->tried >> split_ways[w] & 1) != 0;
}

static uint32_t count_ways(const gs_stage *s)
{
    uint32_t ways = 0;
    for (uint32_t w = 0; w < SPLIT_WAYS; w++)
        ways += has_way(s, w);
    return ways;
}

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
        bytes += count_ways(&p->stage[s]) * (sizeof(gs_cpu_run_stage) + stage_bytes(&p->stage[s]) + GS_BLOCK_BYTES);
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

static gs_status prepare_run_stage(gs_cpu_run_stage *r, const gs_stage *s, gs_products way)
{
    if (!gs_stage_find_products(&r->p, s, way))
        return gs_fail(GS_EINVAL, "stage \"%s\": its products are not those of runs or pairs", s->name);
    if ((r->memory = gs_malloc(stage_bytes(s))) == NULL)
        return gs_fail(GS_ENOMEM, "device cpu: out of memory for products of edges");
    r->way = way;
    split_stage(r, s);
    return GS_OK;
}

gs_status gs_cpu__prepare_run_stages(gs_cpu *cpu, const gs_program *p)
{
    uint32_t stages = 0;

    gs_cpu__free_run_stages(cpu);
    for (uint32_t s = 0; s < p->stages; s++)
        stages += count_ways(&p->stage[s]);
    if (stages == 0)
        return GS_OK;
    if ((cpu->run_stage = gs_calloc(stages, sizeof(*cpu->run_stage))) == NULL)
        return gs_fail(GS_ENOMEM, "device cpu: out of memory for products of edges");
    for (uint32_t s = 0; s < p->stages; s++)
        for (uint32_t w = 0; w < SPLIT_WAYS; w++)
            if (has_way(&p->stage[s], w)) {
                GS_TRY(prepare_run_stage(&cpu->run_stage[cpu->run_stages], &p->stage[s], split_ways[w]));
                cpu->run_stages++;
            }
    return GS_OK;
}

/* Runs or pairs that are made at a time. */
static uint32_t portion_of(const gs_stage *s, gs_products way, gs_product_widths w)
{
    return way == GS_PRODUCTS_OF_PAIRS && s->pair_portion > 0 ? s->pair_portion : gs_product_portion(w);
}

static gs_cpu_run_needs needs_of(const gs_program *p, const gs_stage *stage, gs_products way)
{
    gs_cpu_run_stage r = {.memory = NULL};
    gs_cpu_run_needs n = {0};

    if (!gs_stage_find_products(&r.p, stage, way))
        return n;
    const gs_product_widths w = gs_stage_product_widths(stage, &r.p);
    n.floats = gs_portion_floats(w, portion_of(stage, way, w), way == GS_PRODUCTS_OF_PAIRS);
    r.sum = (gs_reg){.kind = GS_REG_SUM, .width = w.in, .array = GS_NONE};
    r.before = *stage;
    r.before.sums = r.before.regs = 1;
    r.before.reg = &r.sum;
    r.before.sum[0] = (gs_sum){.kind = GS_SUM_ADD, .value = r.p.value};
    n.before = gs_cpu__edge_needs(p, &r.before);
    return n;
}

/* Of the same stage before its product, whichever way that is made. */
gs_cpu_run_needs gs_cpu__run_needs(const gs_program *p, const gs_stage *stage)
{
    gs_cpu_run_needs n = {0};

    for (uint32_t w = 0; w < SPLIT_WAYS; w++) {
        const gs_cpu_run_needs of = has_way(stage, w) ? needs_of(p, stage, split_ways[w]) : n;
        n.floats = GS_MAX(n.floats, of.floats);
        n.before = of.before;
    }
    return n;
}

/* ---- a portion ---- */

typedef struct portion {
    gs_cpu *cpu;
    const gs_edge_program_launch *l;
    gs_cpu_run_stage *s;
    gs_product_widths w;
    bool pairs;
    uint32_t types, most;
    const float *matrix;             /* [in, out] of each type */
    uint32_t target, edge;           /* where the next one begins */
    uint32_t first_target, first_edge, targets, edges, runs, groups; /* runs: or pairs */
    float *sum, *product, *side;     /* of each run, by type */
    void *place;                     /* [runs] of the launch's indices: where its rows are */
    uint32_t *start;                 /* [runs + 1] the first edge of each */
    uint32_t *target_start;          /* [targets + 1] the first run of each; of pairs the first edge */
    uint32_t *type, *order, *spare;  /* [runs] */
    uint32_t *row;                   /* [runs] of its target */
    uint32_t *group;                 /* [groups + 1] where runs of a type begin */
    uint16_t *run_type;              /* [runs] */
    void *operand;                   /* [pairs] of the launch's indices */
    uint32_t *table, table_mask;     /* a pair's number and 1, by its hash */
    uint32_t *pair;                  /* [edges] */
    void *pick, *by_pair;            /* [edges] of the launch's indices: where the product is; targets' rows by pair */
} portion;

static void put_index(void *list, uint32_t bytes, uint32_t i, uint32_t value)
{
    if (bytes == 2)
        ((uint16_t *)list)[i] = (uint16_t)value;
    else
        ((uint32_t *)list)[i] = value;
}

static uint32_t end_of_run(const gs_edges *e, uint32_t k, uint32_t end)
{
    const uint32_t type = gs_type_at(e->type, e->type_bytes, k++);
    while (k < end && gs_type_at(e->type, e->type_bytes, k) == type)
        k++;
    return k;
}

/* The next runs: of a target that has more, those that there is room for. */
static void next_runs(portion *k)
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

/* The number of an edge's pair; GS_NONE: it would be one more than there is room for. */
static uint32_t pair_of(portion *k, uint32_t edge)
{
    const gs_edges *const e = &k->l->edges;
    const uint32_t operand = gs_index_at(e->index, e->index_bytes, edge),
                   type = gs_type_at(e->type, e->type_bytes, edge);
    uint32_t at = (uint32_t)(((uint64_t)operand * k->types + type) * 0x9e3779b97f4a7c15u >> 40) & k->table_mask;

    for (; k->table[at] != 0; at = (at + 1) & k->table_mask) {
        const uint32_t pair = k->table[at] - 1;
        if (k->type[pair] == type && gs_index_at(k->operand, e->index_bytes, pair) == operand)
            return pair;
    }
    if (k->runs == k->most)
        return GS_NONE;
    put_index(k->operand, e->index_bytes, k->runs, operand);
    k->type[k->runs] = type;
    k->table[at] = ++k->runs;
    return k->runs - 1;
}

/* The next edges, as many as there is room for, and for their pairs. */
static void next_pairs(portion *k)
{
    const gs_edges *const e = &k->l->edges;
    const uint32_t most = k->most * GS_PORTION_PAIR_EDGES;
    bool full = false;

    memset(k->table, 0, ((uint64_t)k->table_mask + 1) * sizeof(*k->table));
    k->first_target = k->target;
    k->first_edge = k->edge;
    k->targets = k->runs = k->edges = 0;
    while (k->target < e->targets && !full && k->targets < most) {
        const uint32_t end = e->start[k->target + 1];
        k->target_start[k->targets++] = k->edges;
        for (; k->edge < end && !full; k->edge += !full) {
            const uint32_t pair = k->edges == most ? GS_NONE : pair_of(k, k->edge);
            full = pair == GS_NONE;
            if (!full)
                k->pair[k->edges++] = pair;
        }
        k->target += k->edge == end;
    }
    k->target_start[k->targets] = k->edges;
}

static void sort_runs(portion *k)
{
    gs_cpu_edge_order(k->type, k->runs, k->types, k->order, k->spare);
    k->groups = 0;
    for (uint32_t i = 0; i < k->runs; i++) {
        const uint32_t run = k->order[i];
        put_index(k->place, k->l->edges.index_bytes, run, i);
        k->run_type[run] = (uint16_t)k->type[run];
        if (i == 0 || k->type[run] != k->type[k->order[i - 1]])
            k->group[k->groups++] = i;
    }
    k->group[k->groups] = k->runs;
}

/* The edges of a portion read the products of their pairs. */
static void pick_products(const portion *k)
{
    const uint32_t bytes = k->l->edges.index_bytes;
    for (uint32_t i = 0; i < k->edges; i++)
        put_index(k->pick, bytes, i, gs_index_at(k->place, bytes, k->pair[i]));
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
    for (uint32_t i = 0; k->pairs && i <= k->runs; i++)
        k->start[i] = i;
    if (k->pairs) { /* an edge each */
        l.edges.index = k->operand;
        l.edges.type = k->run_type;
        l.edges.type_bytes = sizeof(*k->run_type);
        l.edges.weight = NULL;
        l.edges.feature = NULL;
    }
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
                             k->matrix + (uint64_t)type * k->w.in * k->w.out, next - first, k->w.in, k->w.out,
                             false);
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

/* For each pair the sum of the rows that its edges have at their targets. */
static gs_status add_up_targets(const portion *k, const gs_sum *m)
{
    const gs_edges *const e = &k->l->edges;
    const uint32_t width = k->l->stage->edge_reg[m->score].width, bytes = e->index_bytes;
    gs_edge_launch l = {.edges = *e, .dtype = GS_F32, .operand = k->l->rows[m->score], .acc = k->side, .width = width};

    memset(k->side, 0, (uint64_t)k->runs * width * sizeof(*k->side));
    memset(k->start, 0, ((uint64_t)k->runs + 1) * sizeof(*k->start));
    for (uint32_t i = 0; i < k->edges; i++)
        k->start[k->pair[i] + 1]++;
    for (uint32_t i = 0; i < k->runs; i++) {
        k->start[i + 1] += k->start[i];
        k->spare[i] = k->start[i];
    }
    for (uint32_t t = 0; t < k->targets; t++)
        for (uint32_t i = k->target_start[t]; i < k->target_start[t + 1]; i++)
            put_index(k->by_pair, bytes, k->spare[k->pair[i]]++, gs_index_at(e->target, bytes, k->first_target + t));
    l.edges.targets = l.edges.target_rows = k->runs;
    l.edges.target = k->place;
    l.edges.start = k->start;
    l.edges.index = k->by_pair;
    l.edges.operand_rows = e->target_rows;
    l.edges.end = l.edges.largest = 0;
    return gs_cpu__run_edges(k->cpu, &l);
}

/* Rows of the targets, of each run in its place. */
static void list_targets(const portion *k, const gs_sum *m)
{
    const uint32_t side = k->l->stage->edge_reg[m->score].width;
    const float *const rows = k->l->rows[m->score];
    const int before = gs_cpu__enter(k->cpu, k->runs);
#pragma omp parallel for schedule(static)
    for (uint32_t i = 0; i < k->runs; i++)
        memcpy(k->side + (uint64_t)i * side, rows + (uint64_t)k->row[k->order[i]] * side, side * sizeof(*rows));
    gs_cpu__leave(before);
}

/* Rows of the targets with what runs or pairs have of the operand end. */
static gs_status add_outer(const portion *k, const gs_sum *m)
{
    const uint32_t side = k->l->stage->edge_reg[m->score].width, blocks = (uint32_t)gs_div_up(side, GRADIENT_ROWS);
    float *const grad = k->l->grad[m->weight];
    gs_status st = GS_OK;

    if (k->pairs)
        st = add_up_targets(k, m);
    else
        list_targets(k, m);
    const int before = gs_cpu__enter(k->cpu, k->groups * blocks);
#pragma omp parallel for schedule(dynamic, 4)
    for (uint32_t i = 0; i < k->groups * blocks; i++)
        add_rows(k, grad, side, i, blocks);
    gs_cpu__leave(before);
    return st;
}

/* The features of an edge. */
static const void *features_at(const gs_stage *s, const gs_edges *e, uint32_t edge)
{
    uint64_t columns = 0;
    for (uint32_t r = 0; r < s->edge_regs; r++)
        if (s->edge_reg[r].kind == GS_EDGE_FEATURES)
            columns = s->edge_reg[r].columns;
    return e->feature == NULL ? NULL : (const char *)e->feature + edge * columns * gs_dtype_bytes(e->feature_type);
}

/* The edges of the products that are added: runs, or the portion's own. */
static void set_edges(const portion *k, gs_edges *e)
{
    e->end = 0;
    e->targets = k->targets;
    e->target = (const char *)e->target + (uint64_t)k->first_target * e->index_bytes;
    e->start = k->target_start;
    e->operand_rows = k->runs;
    if (k->pairs) {
        e->index = k->pick;
        e->type = (const char *)e->type + (uint64_t)k->first_edge * e->type_bytes;
        e->weight = e->weight == NULL ? NULL : e->weight + k->first_edge;
        e->feature = features_at(k->l->stage, e, k->first_edge);
        return;
    }
    e->index = k->place;
    e->type = k->run_type;
    e->type_bytes = sizeof(*k->run_type);
    e->weight = NULL;
    e->feature = NULL;
}

static gs_status add_products(const portion *k)
{
    const gs_stage *const after = &k->s->after;
    gs_edge_program_launch l = *k->l;

    memcpy(k->s->rows, k->l->rows, after->edge_regs * sizeof(*k->s->rows));
    k->s->rows[k->s->p.product] = k->product;
    l.stage = after;
    l.rows = k->s->rows;
    set_edges(k, &l.edges);
    for (uint32_t i = 0; i < after->sums; i++)
        if (!gs_stage_sums_rows(k->s->of, i)) /* which have launches of their own */
            GS_TRY(run_sum(k, &l, i));
    return gs_cpu__run_sums(k->cpu, &l);
}

static gs_status run_portion(portion *k)
{
    const gs_stage *const stage = k->l->stage;

    sort_runs(k);
    GS_TRY(add_up_runs(k));
    for (uint32_t i = 0; i < stage->sums; i++)
        if (stage->sum[i].kind == GS_SUM_OUTER)
            GS_TRY(add_outer(k, &stage->sum[i]));
    if (k->s->p.instr == GS_NONE)
        return GS_OK;
    if (k->pairs)
        pick_products(k);
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
    if (!k->pairs)
        return;
    k->operand = k->group + 2 * most + 1;
    k->table = (uint32_t *)k->operand + most;
    for (k->table_mask = 1; k->table_mask < 2 * most; k->table_mask *= 2)
        ;
    k->table_mask--;
    k->target_start = k->table + k->table_mask + 1;
    k->pair = k->target_start + most * GS_PORTION_PAIR_EDGES + 1;
    k->pick = k->pair + most * GS_PORTION_PAIR_EDGES;
    k->by_pair = (uint32_t *)k->pick + most * GS_PORTION_PAIR_EDGES;
}

static gs_status run_by_portions(gs_cpu *cpu, const gs_edge_program_launch *l)
{
    portion k = {.cpu = cpu, .l = l, .edge = l->edges.start[0], .pairs = l->stage->products == GS_PRODUCTS_OF_PAIRS};

    for (uint32_t i = 0; i < cpu->run_stages; i++)
        if (cpu->run_stage[i].of == l->stage && cpu->run_stage[i].way == l->stage->products)
            k.s = &cpu->run_stage[i];
    if (k.s == NULL)
        return refuse(l, "not prepared for products of runs or pairs");
    k.w = gs_stage_product_widths(l->stage, &k.s->p);
    k.most = portion_of(l->stage, l->stage->products, k.w);
    gs_cpu__transpose_matrices(cpu, l);
    place_lists(&k);
    GS_TRY(find_types(&k));
    while (k.target < l->edges.targets) {
        (k.pairs ? next_pairs : next_runs)(&k);
        GS_TRY(k.runs > 0 ? run_portion(&k) : GS_OK);
    }
    return GS_OK;
}

gs_status gs_cpu__run_edge_stage(void *context, const gs_edge_program_launch *l)
{
    return by_edges(l->stage) ? gs_cpu__run_edge_program(context, l) : run_by_portions(context, l);
}
