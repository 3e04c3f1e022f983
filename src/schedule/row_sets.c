/* row_sets.c - which rows each stage must make: sets of rows as bits, what is asked of them, and what edges add. */
#include "schedule/row_sets.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

/* The search for row sets. After a failure (`status`) every set is GS_ALL_ROWS. */
struct finder {
    const gs_row_sets_config *c;
    gs_row_sets out;
    gs_status status;
    uint64_t words;      /* of a set */
    bool closed;         /* gaps of sets are filled as they are made: what is computed in them must be right */
    uint32_t train, none;
    struct {
        uint32_t direction, of, set;
    } known[32];         /* reaches that were found */
    uint32_t knowns;
    uint32_t *array;     /* [arrays] outside this set an array's rows are 0 */
    uint32_t *demand;    /* [most registers of a stage] */
    struct support {
        uint32_t reduced;  /* rows that sums over all vertices need */
        uint32_t operands, targets; /* edges outside of either add 0 */
        uint32_t *reg;     /* [regs] outside this set a register is 0; NULL: not known */
        bool loss, everything;
    } *support;          /* [stages] */
};

/* ---- bits ----------------------------------------------------------------- */

/* Sets of rows as numbers: equal sets are one, nearly full ones are all rows. */

/* A set of more rows than this is taken as all: what it saves is not worth a file of edges. */
#define NEARLY_ALL 0.9

static uint64_t rows_in(const struct finder *f, const uint64_t *bits)
{
    uint64_t n = 0;
    for (uint64_t w = 0; w < f->words; w++)
        n += (uint64_t)__builtin_popcountll(bits[w]);
    return n * f->out.granules.rows;
}

static bool get(const uint64_t *bits, uint32_t g) { return bits[g / 64] >> (g % 64) & 1; }

static void fill(uint64_t *bits, uint32_t first, uint32_t end)
{
    for (uint32_t k = first; k < end; k++)
        bits[k / 64] |= 1ull << (k % 64);
}

/* Gaps within an interval, and at its ends, that are too short to leave out. */
static void fill_gaps(const struct finder *f, uint64_t *bits)
{
    const gs_granules g = f->out.granules;
    for (uint32_t i = 0; i < f->c->chunks->parts; i++) {
        uint64_t *const of = bits + (uint64_t)i * g.words;
        const uint32_t rows = gs_interval_rows(f->c->chunks, i), all = (uint32_t)gs_div_up(rows, g.rows);
        const uint32_t short_end = gs_short_end(rows);
        uint32_t end = UINT32_MAX;
        for (uint32_t k = 0; k < all; k++) {
            if (!get(of, k))
                continue;
            if (end == UINT32_MAX ? (uint64_t)k * g.rows < short_end : (uint64_t)(k - end) * g.rows < GS_ROW_GAP)
                fill(of, end == UINT32_MAX ? 0 : end, k);
            end = k + 1;
        }
        if (end < all && rows - end * g.rows < short_end)
            fill(of, end, all);
    }
}

/* Takes `bits`. */
static uint32_t number_of(struct finder *f, uint64_t *bits)
{
    if (f->closed)
        fill_gaps(f, bits);
    if ((double)rows_in(f, bits) > NEARLY_ALL * (double)f->c->chunks->vertices) {
        gs_free(bits);
        return GS_ALL_ROWS;
    }
    for (uint32_t s = 1; s < f->out.sets; s++)
        if (memcmp(f->out.bits[s], bits, f->words * sizeof(*bits)) == 0) {
            gs_free(bits);
            return s;
        }
    if (!gs_grow(&f->out.bits, f->out.sets, &f->out.room, sizeof(*f->out.bits))) {
        gs_free(bits);
        f->status = gs_fail(GS_ENOMEM, "out of memory for the rows that a loss sees");
        return GS_ALL_ROWS;
    }
    f->out.bits[f->out.sets] = bits;
    return f->out.sets++;
}

static uint64_t *new_bits(struct finder *f)
{
    uint64_t *bits = f->status == GS_OK ? gs_calloc(f->words, sizeof(*bits)) : NULL;
    if (bits == NULL && f->status == GS_OK)
        f->status = gs_fail(GS_ENOMEM, "out of memory for the rows that a loss sees");
    return bits;
}

/* Copies. */
static uint32_t add(struct finder *f, const uint64_t *from)
{
    uint64_t *bits = new_bits(f);
    if (bits == NULL)
        return GS_ALL_ROWS;
    memcpy(bits, from, f->words * sizeof(*bits));
    return number_of(f, bits);
}

/* Rows of both sets, or of either. */
static uint32_t combine(struct finder *f, uint32_t a, uint32_t b, bool both)
{
    if (a == b || a == GS_ALL_ROWS || b == f->none)
        return both ? b : a;
    if (b == GS_ALL_ROWS || a == f->none)
        return both ? a : b;
    uint64_t *bits = new_bits(f);
    for (uint64_t w = 0; bits != NULL && w < f->words; w++)
        bits[w] = both ? f->out.bits[a][w] & f->out.bits[b][w] : f->out.bits[a][w] | f->out.bits[b][w];
    return bits == NULL ? GS_ALL_ROWS : number_of(f, bits);
}

static uint32_t unite(struct finder *f, uint32_t a, uint32_t b) { return combine(f, a, b, false); }
static uint32_t meet(struct finder *f, uint32_t a, uint32_t b) { return combine(f, a, b, true); }

/* Operand ends of the edges of `direction` whose targets are in `of`. */
static uint32_t reach(struct finder *f, uint32_t direction, uint32_t of)
{
    if (of == GS_ALL_ROWS || of == f->none)
        return of;
    if (f->c->chunks->shared)
        direction = GS_BY_DEST;
    for (uint32_t k = 0; k < f->knowns; k++)
        if (f->known[k].direction == direction && f->known[k].of == of)
            return f->known[k].set;
    uint64_t *bits = new_bits(f);
    if (bits == NULL)
        return GS_ALL_ROWS;
    if ((f->status = f->c->reach(f->c->context, direction, f->out.bits[of], bits)) != GS_OK) {
        gs_free(bits);
        return GS_ALL_ROWS;
    }
    const uint32_t set = number_of(f, bits);
    if (f->knowns < GS_ARRAY_LEN(f->known)) {
        f->known[f->knowns].direction = direction;
        f->known[f->knowns].of = of;
        f->known[f->knowns++].set = set;
    }
    return set;
}

/* ---- demand --------------------------------------------------------------- */

/* On which rows does what a vertex program loads change anything?
 *
 * Off the rows where a product's one side is 0, its other side may be any number: the gradient of a softmax multiplies
 * what the forward pass kept by a gradient that few rows have. So the kept rows beside those need not be made; they
 * read as 0. The other side must be a number there, though: nothing that could make an infinity of such a 0 may lie
 * between the load and the product.
 */

/* What is known of a register while a stage is looked at. */
struct demand {
    struct finder *f;
    const uint32_t *support; /* [regs] outside of it, 0 */
    uint32_t *rows;          /* [regs] found: where its value counts */
    bool *tame;              /* [regs] a number, whatever loads and sums are 0 */
    uint32_t all;            /* rows that the stage runs for */
};

static bool is_reg(const gs_operand *o) { return o->kind == GS_FROM_REG; }
static bool is_tame(const struct demand *d, const gs_operand *o) { return !is_reg(o) || d->tame[o->index]; }

/* Log-sum-exps of no edges are infinite; sums by maximum, too, in some rows, so only plain ones pass. */
static void find_tame(struct demand *d, const gs_stage *s)
{
    for (uint32_t r = 0; r < s->regs; r++)
        d->tame[r] = s->reg[r].kind == GS_REG_LOAD;
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].reg != GS_NONE)
            d->tame[s->sum[i].reg] = s->sum[i].kind == GS_SUM_ADD;
    for (uint32_t i = 0; i < s->instrs; i++) {
        const gs_instr *const in = &s->instr[i];
        if (in->dst != GS_NONE && !gs_op_into_param(in->op))
            d->tame[in->dst] = in->op != GS_OP_DIV && !gs_op_is(in->op, GS_FACT_DIVERGES) && is_tame(d, &in->a) &&
                               is_tame(d, &in->b) && is_tame(d, &in->c);
    }
}

static void ask(struct demand *d, const gs_operand *o, uint32_t rows)
{
    if (is_reg(o))
        d->rows[o->index] = unite(d->f, d->rows[o->index], rows);
}

/* Both sides of a product on `rows`: of one of them only those where the other is not 0. */
static void ask_product(struct demand *d, const gs_operand *a, const gs_operand *b, uint32_t rows)
{
    const bool a_masks = is_reg(a) && d->support[a->index] != GS_ALL_ROWS && is_reg(b) && is_tame(d, b),
               b_masks = is_reg(b) && d->support[b->index] != GS_ALL_ROWS && is_reg(a) && is_tame(d, a);
    ask(d, a, b_masks && !a_masks ? meet(d->f, rows, d->support[b->index]) : rows);
    ask(d, b, a_masks ? meet(d->f, rows, d->support[a->index]) : rows);
}

static void ask_operands(struct demand *d, const gs_instr *in)
{
    const bool reduces = gs_op_into_param(in->op) || in->dst == GS_NONE || gs_op_classof(in->op) == GS_CLASS_LOSS;
    const uint32_t rows = reduces ? d->all : d->rows[in->dst];

    if (in->op == GS_OP_MUL || gs_op_is_outer(in->op)) {
        ask_product(d, &in->a, &in->b, rows);
        return;
    }
    ask(d, &in->a, rows);
    ask(d, &in->b, rows);
    ask(d, &in->c, rows);
}

/* out[regs]: of the registers that stage k loads, the rows on which their value changes something, where its vertex
 * program runs for `rows`. */
static void demand(struct finder *f, uint32_t *out, uint32_t k, uint32_t rows)
{
    const gs_stage *const s = &f->c->program->stage[k];
    bool *const tame = gs_calloc(s->regs + 1, sizeof(*tame));
    struct demand d = {.f = f, .support = f->support[k].reg, .rows = out, .tame = tame, .all = rows};

    for (uint32_t r = 0; r < s->regs; r++)
        out[r] = s->reg[r].kind == GS_REG_TEMP && s->reg[r].array == GS_NONE ? f->none : rows;
    if (tame == NULL || d.support == NULL) {
        gs_free(tame);
        return; /* loads count on all rows */
    }
    for (uint32_t r = 0; r < s->regs; r++)
        out[r] = s->reg[r].kind == GS_REG_LOAD ? f->none : out[r];
    find_tame(&d, s);
    for (uint32_t i = s->instrs; i-- > 0;)
        ask_operands(&d, &s->instr[i]);
    gs_free(tame);
}

/* ---- support -------------------------------------------------------------- */

/* Outside which rows is a value 0?
 *
 * The gradient of a loss is 0 off the training rows; what products, masks and scalings make
 * of 0 is 0; a sum over edges is 0 where no edge names a row that is not.
 */

/* Outside `operand` at the one end or `target` at the other, an edge's value is 0. */
struct ends {
    uint32_t operand, target;
};

/* A constant 0 adds nothing; any other operand that is no register is not 0 anywhere. */
static uint32_t operand_rows(const struct finder *f, const gs_operand *o, const uint32_t *reg)
{
    if (o->kind == GS_FROM_REG)
        return reg[o->index];
    return o->kind == GS_FROM_CONST && o->value == 0 ? f->none : GS_ALL_ROWS;
}

/* a, b, c: the rows outside of which the operands are 0. */
static uint32_t value_rows(struct finder *f, const gs_instr *in, uint32_t a, uint32_t b, uint32_t c)
{
    switch (gs_op_facts_of(in->op)->zero) {
    case GS_ZERO_FIRST:
        return a;
    case GS_ZERO_ALL:
        return unite(f, a, b);
    case GS_ZERO_CHOICE:
        return unite(f, b, c);
    case GS_ZERO_POWER:
        return in->alpha > 0 ? a : GS_ALL_ROWS;
    case GS_ZERO_ANY:
        return meet(f, a, b);
    case GS_ZERO_TRAIN:
        return f->train;
    case GS_ZERO_LOST:
        break;
    }
    return GS_ALL_ROWS;
}

/* The same of an operand of an edge program, at the edge's two ends. */
static struct ends operand_ends(const struct finder *f, const gs_operand *o, const struct ends *reg)
{
    const uint32_t rows = o->kind == GS_FROM_CONST && o->value == 0 ? f->none : GS_ALL_ROWS;
    return o->kind == GS_FROM_REG ? reg[o->index] : (struct ends){rows, rows};
}

static void edge_program(struct finder *f, const gs_stage *s, struct ends *reg)
{
    for (uint32_t r = 0; r < s->edge_regs; r++) {
        const gs_edge_reg *er = &s->edge_reg[r];
        reg[r] = (struct ends){GS_ALL_ROWS, GS_ALL_ROWS};
        if (er->kind == GS_EDGE_OPERAND)
            reg[r].operand = f->array[er->array];
        else if (er->kind == GS_EDGE_TARGET)
            reg[r].target = f->array[er->array];
    }
    for (uint32_t i = 0; i < s->edge_instrs; i++) {
        const gs_instr *in = &s->edge_instr[i];
        const struct ends a = operand_ends(f, &in->a, reg), b = operand_ends(f, &in->b, reg),
                          c = operand_ends(f, &in->c, reg);
        reg[in->dst].operand = value_rows(f, in, a.operand, b.operand, c.operand);
        reg[in->dst].target = value_rows(f, in, a.target, b.target, c.target);
    }
}

/* Finds the support of the stage's sums, and the edges that they need. Maximum, minimum and softmax look at every edge
 * of a target. */
static void edge_sums(struct finder *f, const gs_stage *s, struct support *out, const struct ends *edge, uint32_t *reg)
{
    out->operands = out->targets = s->sums ? f->none : GS_ALL_ROWS;
    for (uint32_t i = 0; i < s->sums; i++) {
        const gs_sum *m = &s->sum[i];
        gs_row_sum r;
        const bool rows = gs_sum_of_rows(&r, s, i), outer = m->kind == GS_SUM_OUTER;
        const bool plain = rows || outer || m->kind == GS_SUM_ADD || m->kind == GS_SUM_ADD_TYPE;
        const uint32_t own = !rows                 ? GS_ALL_ROWS
                             : r.scale == GS_NONE ? f->array[r.array]
                                                  : meet(f, f->array[r.array], f->array[r.scale]);
        struct ends e = rows ? (struct ends){own, GS_ALL_ROWS} : edge[m->value];
        if (outer) /* 0 where one of the two is */
            e = (struct ends){meet(f, e.operand, edge[m->score].operand),
                              meet(f, e.target, edge[m->score].target)};
        uint32_t set = meet(f, reach(f, 1 - s->direction, e.operand), e.target);
        if (m->self)
            set = unite(f, set, own);
        reg[m->reg] = set;
        if (outer)
            out->reduced = unite(f, out->reduced, set);
        if (m->kind == GS_SUM_ATTEND)
            reg[m->lse] = GS_ALL_ROWS;
        out->operands = unite(f, out->operands, plain ? e.operand : GS_ALL_ROWS);
        out->targets = unite(f, out->targets, m->kind == GS_SUM_ATTEND ? GS_ALL_ROWS : e.target);
    }
}

static void vertex_program(struct finder *f, const gs_stage *s, struct support *out, uint32_t *reg)
{
    for (uint32_t i = 0; i < s->instrs; i++) {
        const gs_instr *in = &s->instr[i];
        const gs_op_class class = gs_op_classof(in->op);
        const uint32_t a = operand_rows(f, &in->a, reg), b = operand_rows(f, &in->b, reg),
                       c = operand_rows(f, &in->c, reg);
        out->loss = out->loss || class == GS_CLASS_LOSS;
        if (gs_op_is_outer(in->op))
            out->reduced = unite(f, out->reduced, meet(f, a, b));
        else if (in->op == GS_OP_COLSUM)
            out->reduced = unite(f, out->reduced, a);
        else if (gs_op_into_param(in->op))
            out->everything = true;
        else if (in->dst != GS_NONE)
            reg[in->dst] = value_rows(f, in, a, b, c);
    }
    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind == GS_REG_TEMP && s->reg[r].array != GS_NONE)
            f->array[s->reg[r].array] = reg[r];
}

static bool is_setup(const gs_pass *p) { return strcmp(p->name, "setup") == 0; }

static void find_stage(struct finder *f, const gs_stage *s, struct support *out, struct ends *edge)
{
    if ((out->reg = gs_malloc_array(s->regs + 1, sizeof(*out->reg))) == NULL) {
        f->status = gs_fail(GS_ENOMEM, "out of memory for the rows that a loss sees");
        return;
    }
    for (uint32_t r = 0; r < s->regs; r++)
        out->reg[r] = s->reg[r].kind == GS_REG_LOAD ? f->array[s->reg[r].array] : GS_ALL_ROWS;
    edge_program(f, s, edge);
    edge_sums(f, s, out, edge, out->reg);
    vertex_program(f, s, out, out->reg);
}

/* Fills f->array and f->support of every stage but those of "setup". */
static gs_status find_support(struct finder *f)
{
    const gs_program *p = f->c->program;
    /* A state goes through all the edges of a vertex, and its gradient back through all of them. */
    const bool sequences = gs_program_has_sequences(p);
    uint32_t edge_regs = 1;

    for (uint32_t k = 0; k < p->stages; k++)
        edge_regs = GS_MAX(edge_regs, p->stage[k].edge_regs);
    GS_FREED struct ends *edge = gs_calloc(edge_regs, sizeof(*edge));
    if (edge == NULL)
        f->status = gs_fail(GS_ENOMEM, "out of memory for the rows that a loss sees");
    for (uint32_t q = 0; q < p->passes && f->status == GS_OK; q++)
        for (uint32_t k = p->pass[q].first_stage; k < p->pass[q].first_stage + p->pass[q].stages; k++) {
            struct support *out = &f->support[k];
            *out = (struct support){.reduced = f->none};
            out->everything = sequences || is_setup(&p->pass[q]) || f->c->reported[q] == NULL ||
                              gs_program_needs_all_rows(p, q);
            if (!out->everything && f->status == GS_OK)
                find_stage(f, &p->stage[k], out, edge);
        }
    return f->status;
}

/* ---- what rows that lack some of their edges could become ---- */

enum taint {
    CLEAN,
    NOT_ZERO, /* of such rows, but a maximum with a constant above 0: a degree, counted */
    PARTIAL,
    INFINITE, /* the log-sum-exp of no edges */
};

static enum taint operand_taint(const gs_operand *o, const enum taint *reg)
{
    return o->kind == GS_FROM_REG ? reg[o->index] : CLEAN;
}

static bool unsafe_instr(const gs_stage *s, const gs_instr *in, enum taint *reg)
{
    const enum taint a = operand_taint(&in->a, reg), b = operand_taint(&in->b, reg), c = operand_taint(&in->c, reg);
    const enum taint most = GS_MAX(GS_MAX(a, b), c);
    const bool reduces = gs_op_into_param(in->op);

    const bool above = in->op == GS_OP_MAX && in->b.kind == GS_FROM_CONST && in->b.value > 0;
    if (!reduces && in->dst != GS_NONE)
        reg[in->dst] = most == CLEAN || most == INFINITE ? most : above ? NOT_ZERO : PARTIAL;
    /* A sum may be kept as it is: a product by a constant, to an array that only edges read. */
    if (most == INFINITE)
        return !(in->op == GS_OP_MUL && in->b.kind == GS_FROM_CONST && s->reg[in->dst].array != GS_NONE);
    return in->op == GS_OP_DIV ? b == PARTIAL : gs_op_is(in->op, GS_FACT_DIVERGES) && a != CLEAN;
}

bool gs_rows__unsafe(const gs_program *p)
{
    enum taint *array = gs_calloc(p->arrays + 1, sizeof(*array)), *reg = NULL;
    bool unsafe = array == NULL;

    for (uint32_t q = 0; q < p->passes && !unsafe; q++)
        for (uint32_t k = p->pass[q].first_stage; k < p->pass[q].first_stage + p->pass[q].stages && !unsafe; k++) {
            const gs_stage *s = &p->stage[k];
            reg = gs_calloc(s->regs + 1, sizeof(*reg));
            if (reg == NULL || is_setup(&p->pass[q])) {
                unsafe = reg == NULL;
                gs_free(reg);
                continue;
            }
            for (uint32_t r = 0; r < s->regs; r++)
                reg[r] = s->reg[r].kind == GS_REG_LOAD ? array[s->reg[r].array] : CLEAN;
            for (uint32_t i = 0; i < s->sums; i++) {
                if (s->sum[i].reg != GS_NONE) /* a sequence's derivative has none */
                    reg[s->sum[i].reg] = PARTIAL;
                if (s->sum[i].kind == GS_SUM_ATTEND)
                    reg[s->sum[i].lse] = INFINITE;
            }
            for (uint32_t i = 0; i < s->instrs; i++)
                unsafe = unsafe || unsafe_instr(s, &s->instr[i], reg);
            for (uint32_t r = 0; r < s->regs; r++)
                if (s->reg[r].kind == GS_REG_TEMP && s->reg[r].array != GS_NONE)
                    array[s->reg[r].array] = GS_MAX(reg[r], PARTIAL);
            gs_free(reg);
        }
    gs_free(array);
    return unsafe;
}

/* ---- sets ----------------------------------------------------------------- */

/* From the last stage of a program to the first: which rows are needed? */

static bool is_of_train(const struct finder *f, uint32_t array)
{
    bool is = false;
    for (uint32_t k = 0; k < f->c->of_trains; k++)
        is = is || f->c->of_train[k] == array;
    return is;
}

/* Rows of the array where it is 0 need not be made: what was never stored reads as 0. */
static void need(struct finder *f, uint32_t *needed, uint32_t array, uint32_t set)
{
    needed[array] = unite(f, needed[array], meet(f, set, f->array[array]));
}

/* Rows that stage k must run for, and what it needs of others. */
static void settle(struct finder *f, uint32_t *needed, uint32_t k, uint32_t reported)
{
    const gs_program *p = f->c->program;
    const gs_stage *s = &p->stage[k];
    const struct support *sup = &f->support[k];
    struct gs_stage_rows *out = &f->out.stage[k];
    uint32_t rows = sup->everything ? GS_ALL_ROWS : sup->reduced;

    if (sup->loss)
        rows = unite(f, rows, reported);
    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind == GS_REG_TEMP && s->reg[r].array != GS_NONE) {
            const uint32_t array = s->reg[r].array;
            const uint32_t held = is_of_train(f, array)      ? f->train
                                  : array == p->logits     ? GS_ALL_ROWS
                                  : p->array[array].result ? f->array[array] /* the rest reads as 0 */
                                                             : needed[array];
            rows = unite(f, rows, held);
            f->out.array[array] = sup->everything ? GS_ALL_ROWS : held;
        }
    out->rows = rows;
    out->targets = sup->everything ? GS_ALL_ROWS : meet(f, rows, sup->targets);
    out->operands = sup->everything ? GS_ALL_ROWS : sup->operands;

    /* Where edges from few rows count, all of those are taken: finding which of them are named costs a pass over the
     * edges. */
    const uint32_t read = s->sums == 0                   ? f->none
                          : out->operands != GS_ALL_ROWS ? out->operands
                                                         : reach(f, s->direction, out->targets);
    demand(f, f->demand, k, rows);
    for (gs_array_use u = {0}; gs_stage_next_use(s, &u);) {
        if (gs_use_by_edges(u.role))
            need(f, needed, u.array, read);
        else if (u.role == GS_USE_TARGET || u.role == GS_USE_OWN)
            need(f, needed, u.array, u.role == GS_USE_TARGET && f->c->few_loads ? out->targets : rows);
        else if (u.role == GS_USE_LOAD)
            need(f, needed, u.array, f->c->few_loads ? f->demand[u.reg] : rows);
    }
}

static gs_status settle_all(struct finder *f)
{
    const gs_program *p = f->c->program;
    GS_FREED uint32_t *needed = gs_malloc_array(p->arrays + 1, sizeof(*needed));

    if (needed == NULL)
        return f->status = gs_fail(GS_ENOMEM, "out of memory for the rows that a loss sees");
    for (uint32_t a = 0; a < p->arrays; a++)
        needed[a] = f->none;
    for (uint32_t q = p->passes; q-- > 0;) {
        const gs_pass *pass = &p->pass[q];
        const uint32_t reported = f->c->reported[q] == NULL ? GS_ALL_ROWS : add(f, f->c->reported[q]);
        for (uint32_t k = pass->first_stage + pass->stages; k-- > pass->first_stage && f->status == GS_OK;)
            settle(f, needed, k, reported);
    }
    return f->status;
}

static size_t most_regs(const gs_program *p)
{
    size_t regs = 1;
    for (uint32_t k = 0; k < p->stages; k++)
        regs = GS_MAX(regs, p->stage[k].regs);
    return regs;
}

static gs_status finder_open(struct finder *f)
{
    const gs_program *p = f->c->program;

    f->words = (uint64_t)f->c->chunks->parts * f->out.granules.words;
    f->out.room = 16;
    f->out.sets = 1;
    f->out.stages = p->stages;
    f->out.bits = gs_calloc(f->out.room, sizeof(*f->out.bits));
    f->out.stage = gs_calloc(p->stages + 1, sizeof(*f->out.stage));
    f->out.array = gs_calloc(p->arrays + 1, sizeof(*f->out.array));
    f->array = gs_calloc(p->arrays + 1, sizeof(*f->array));
    f->support = gs_calloc(p->stages + 1, sizeof(*f->support));
    f->demand = gs_calloc(most_regs(p), sizeof(*f->demand));
    uint64_t *empty = gs_calloc(f->words, sizeof(*empty));
    if (f->out.bits == NULL || f->out.stage == NULL || f->out.array == NULL || f->array == NULL || f->support == NULL ||
        f->demand == NULL || empty == NULL) {
        gs_free(empty);
        return gs_fail(GS_ENOMEM, "out of memory for the rows that a loss sees");
    }
    f->out.bits[1] = empty;
    f->none = 1;
    f->out.sets = 2;
    f->closed = gs_rows__unsafe(p);
    f->train = add(f, f->c->train);
    for (uint32_t k = 0; k < f->c->of_trains; k++)
        f->array[f->c->of_train[k]] = f->train;
    return f->status;
}

gs_status gs_row_sets_find(gs_row_sets *out, const gs_row_sets_config *config)
{
    struct finder f = {.c = config, .out = {.chunks = config->chunks, .granules = config->granules}};
    gs_status st;

    if ((st = finder_open(&f)) == GS_OK && (st = find_support(&f)) == GS_OK && (st = settle_all(&f)) == GS_OK) {
        *out = f.out;
        f.out = (gs_row_sets){0};
    }
    gs_row_sets_drop(&f.out);
    for (uint32_t k = 0; f.support != NULL && k < config->program->stages; k++)
        gs_free(f.support[k].reg);
    gs_free(f.demand);
    gs_free(f.array);
    gs_free(f.support);
    return st;
}

void gs_row_sets_drop(gs_row_sets *s)
{
    for (uint32_t k = 0; s->bits != NULL && k < s->sets; k++)
        gs_free(s->bits[k]);
    gs_free(s->bits);
    gs_free(s->stage);
    gs_free(s->array);
    *s = (gs_row_sets){0};
}

/* The first granule from `g` on that is in the set (flip 0) or is not (flip ~0), or `end`. */
static uint32_t next_granule(const uint64_t *bits, uint32_t g, uint32_t end, uint64_t flip)
{
    while (g < end) {
        const uint64_t left = (bits[g / 64] ^ flip) >> (g % 64);
        if (left != 0)
            return GS_MIN(g + (uint32_t)__builtin_ctzll(left), end);
        g = (g / 64 + 1) * 64;
    }
    return end;
}

/* Runs of one interval into run[], or only their number. */
static uint32_t runs_of(gs_row_run *run, const gs_row_sets *s, const uint64_t *bits, uint32_t interval)
{
    const uint32_t rows = gs_interval_rows(s->chunks, interval), size = s->granules.rows;
    const uint32_t short_end = gs_short_end(rows), granules = (uint32_t)gs_div_up(rows, size);
    uint32_t n = 0, first = 0, end = 0; /* of the run at hand, in rows; none where end is 0 */

    for (uint32_t past, g = next_granule(bits, 0, granules, 0); g < granules;
         g = next_granule(bits, past, granules, 0)) {
        const uint32_t at = g * size;
        past = next_granule(bits, g, granules, ~UINT64_C(0));
        if (end > 0 && at - end >= GS_ROW_GAP) {
            if (run != NULL)
                run[n] = (gs_row_run){first, end - first};
            n++;
            end = 0;
        }
        if (end == 0)
            first = n == 0 && at < short_end ? 0 : at;
        end = (uint32_t)GS_MIN((uint64_t)past * size, (uint64_t)rows);
    }
    if (end > 0) {
        end = rows - end < short_end ? rows : end;
        if (run != NULL)
            run[n] = (gs_row_run){first, end - first};
        n++;
    }
    return n;
}

gs_status gs_row_sets_runs(gs_row_runs *out, const gs_row_sets *s, uint32_t id)
{
    const uint32_t parts = s->chunks->parts;
    gs_row_runs r = {.first = gs_malloc_array(parts + 1, sizeof(*r.first))};

    if (r.first != NULL) {
        r.first[0] = 0;
        for (uint32_t i = 0; i < parts; i++)
            r.first[i + 1] = r.first[i] + runs_of(NULL, s, s->bits[id] + (uint64_t)i * s->granules.words, i);
        r.run = gs_malloc_array(r.first[parts] + 1, sizeof(*r.run));
    }
    if (r.run == NULL) {
        gs_free(r.first);
        return gs_fail(GS_ENOMEM, "out of memory for the rows that a loss sees");
    }
    for (uint32_t i = 0; i < parts; i++)
        runs_of(r.run + r.first[i], s, s->bits[id] + (uint64_t)i * s->granules.words, i);
    *out = r;
    return GS_OK;
}
