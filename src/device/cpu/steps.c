/* Vertex launches: instructions to steps with pointers, steps to runs, and the partial sums of a run. */
#include "device/cpu/steps.h"

#include <assert.h>
#include <string.h>

#include "base/philox.h" /* gs_random_key */
#include "base/size.h"
#include "device/cpu/edge_program.h"
#include "device/cpu/gemm.h"

/* ---- partial sums of lots ---- */

#define PARTIAL_BYTES (2 * GS_MIB) /* of all lots together, where that leaves GS_CPU_LOTS_LEAST of them */
#define SMALL_BYTES (256 * GS_KIB) /* of a gradient: a part of a second-level cache */
/* Strips of 128 rows: a gradient of [256, 256] is made at half the speed that 256 have (237 of 450 GFLOP/s on two
 * threads of Zen 5), and adding up the lots takes as long again. */
#define SMALL_OF_FEW (128 * GS_KIB)
#define FEW_ROWS 4096u

bool gs_cpu__outer_is_small(uint32_t out, uint32_t in, uint32_t rows)
{
    return (uint64_t)out * in * sizeof(float) <= (rows < FEW_ROWS ? SMALL_OF_FEW : SMALL_BYTES);
}

uint32_t gs_cpu__most_lots(uint64_t floats)
{
    const uint64_t lots = PARTIAL_BYTES / GS_MAX(floats * sizeof(float), 1u);
    return (uint32_t)GS_MAX(GS_MIN(lots, (uint64_t)GS_CPU_LOTS), (uint64_t)GS_CPU_LOTS_LEAST);
}

/* Fewer floats than these have more lots, but not more than so many floats in all. */
uint64_t gs_cpu__partial_floats(uint64_t floats)
{
    return GS_MIN(GS_CPU_LOTS * floats, GS_MAX(PARTIAL_BYTES / sizeof(float), GS_CPU_LOTS_LEAST * floats));
}

/* ---- runs of steps ----
 *
 * Runs of steps. Consecutive steps whose rows depend on the same rows only can run
 * block by block with no waiting in between. Two things end a run: an outer
 * product too large for partial sums in every lot, and memory that is used twice. Registers
 * may lie over one another (program.h: SSA, so that schedule can overlay them), which is in
 * order instruction by instruction, but one block's new rows may lie on
 * another block's old ones when their rows differ in place or length.
 */

/* Rows of a cheap sequence at a time: about a second-level cache. Not less: memory is fetched ahead along an array, and
 * each change to rows of another one waits (GAT of 200,000 vertices on a thread of Zen 5: 218 ms an epoch with what a
 * first-level cache holds, 203 with 256 KiB, 196 with this). */
#define BLOCK_BYTES GS_MIB
#define BLOCK_MIN 8
#define BLOCK_MAX 512

static bool is_apart(gs_cpu_range a, gs_cpu_range b, uint32_t rows)
{
    return a.p + a.row_bytes * rows <= b.p || b.p + b.row_bytes * rows <= a.p;
}

/* True where writing step b's result block by block may touch memory that an earlier
 * step's other blocks still need. */
static bool collide(const gs_cpu_step *earlier, const gs_cpu_step *b, uint32_t rows)
{
    const gs_cpu_range w = b->reg[0];
    if (b->dst == NULL)
        return false;
    for (uint32_t i = 0; i < earlier->regs; i++) {
        const gs_cpu_range r = earlier->reg[i];
        if (!is_apart(w, r, rows) && (w.p != r.p || w.row_bytes != r.row_bytes))
            return true;
    }
    return false;
}

bool gs_cpu__stands_alone(const gs_cpu_step *s, uint32_t rows)
{
    return (s->op == GS_OP_OUTER || s->op == GS_OP_FAN_OUTER) &&
           !gs_cpu__outer_is_small(s->weight.rows, s->weight.cols, rows);
}

static void cut_runs(gs_cpu_step *step, uint32_t n, uint32_t rows)
{
    for (uint32_t first = 0, end; first < n; first = end) {
        for (end = first + 1;
             end < n && !gs_cpu__stands_alone(&step[first], rows) && !gs_cpu__stands_alone(&step[end], rows); end++) {
            uint32_t i = first;
            while (i < end && !collide(&step[i], &step[end], rows))
                i++;
            if (i < end)
                break;
        }
        step[first].run.end = end;
    }
}

/* A product, which is called with as many rows as possible. */
static bool is_dense(const gs_cpu_step *s) { return gs_cpu__is_product(s->op) || gs_op_is_outer(s->op); }

/* Bytes a row that step `at` touches and no step from `first` on before it. */
static uint64_t new_bytes(const gs_cpu_step *step, uint32_t first, uint32_t at)
{
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < step[at].regs; r++) {
        bool known = false;
        for (uint32_t i = first; i < at && !known; i++)
            for (uint32_t k = 0; k < step[i].regs; k++)
                known |= step[i].reg[k].p == step[at].reg[r].p;
        bytes += known ? 0 : step[at].reg[r].row_bytes;
    }
    return bytes;
}

/* Within a run [first, end): sequences without products, their block sizes, and where
 * a lot's partial sums go. */
static void find_blocks(gs_cpu_step *step, uint32_t first, uint32_t end)
{
    uint64_t partial = 0;
    for (uint32_t i = first, stop; i < end; i = stop) {
        uint64_t row_bytes = 0;
        for (stop = i; stop < end && !is_dense(&step[stop]); stop++) {
            row_bytes += new_bytes(step, i, stop);
            step[stop].partial = partial;
            if (gs_cpu__has_partial(step[stop].op))
                partial += gs_cpu__lot_floats(step[stop].op, 1, step[stop].width);
        }
        if (gs_op_is_outer(step[i].op)) {
            step[i].partial = partial;
            partial += gs_cpu__lot_floats(step[i].op, step[i].weight.rows, step[i].weight.cols);
        }
        const uint64_t rows = BLOCK_BYTES / GS_MAX(row_bytes, 1u) / BLOCK_MIN * BLOCK_MIN;
        step[i].run.cheap_end = stop;
        step[i].run.block_rows = (uint32_t)GS_MAX(GS_MIN(rows, (uint64_t)BLOCK_MAX), (uint64_t)BLOCK_MIN);
        stop = GS_MAX(stop, i + 1); /* a product stands alone */
    }
    step[first].run.partial = partial;
}

/* The window of the register `range` in the run [first, end) of n steps: none where its memory is used by another run
 * or has something else on it, too. */
static gs_cpu_window window_of(const gs_cpu_step *step, uint32_t first, uint32_t end, uint32_t n, gs_cpu_range range,
                               uint32_t rows)
{
    uint32_t from = n, to = first;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < step[i].regs; k++) {
            const gs_cpu_range r = step[i].reg[k];
            if (is_apart(r, range, rows))
                continue;
            if (i < first || i >= end || !r.temporary || r.p != range.p || r.row_bytes != range.row_bytes)
                return GS_CPU_WHOLE;
            from = GS_MIN(from, i);
            to = i;
        }
    for (uint32_t i = from; i <= to; i++)
        if (gs_op_is_outer(step[i].op))
            return GS_CPU_STRIP_WINDOW;
    return GS_CPU_PART_WINDOW;
}

static void find_windows(gs_cpu_step *step, uint32_t n, uint32_t rows)
{
    for (uint32_t first = 0, end; first < n; first = end) {
        end = step[first].run.end;
        for (uint32_t i = first; i < end; i++)
            for (uint32_t k = 0; k < step[i].regs; k++) {
                gs_cpu_range *const r = &step[i].reg[k];
                r->window = r->temporary ? window_of(step, first, end, n, *r, rows) : GS_CPU_WHOLE;
                step[i].windows |= r->window != GS_CPU_WHOLE;
            }
    }
}

/* Were partial sums of this size prepared for? */
static bool has_room(const gs_cpu *cpu, const gs_cpu_step *first, uint32_t rows)
{
    if (gs_cpu__stands_alone(first, rows))
        return gs_cpu__outer_floats(first->weight.rows / GS_MAX(first->weight.matrices, 1u), first->weight.cols) <=
               cpu->room[GS_CPU_OUTER].floats;
    return gs_cpu__partial_floats(first->run.partial) <= cpu->room[GS_CPU_PARTIAL].floats;
}

static bool is_multiplied(gs_op op) { return op == GS_OP_MUL; }

/* The step that makes the register, if `fits` its operator and its only reader is instruction `reader`; else
 * `reader`. */
static uint32_t maker_of(const gs_vertex_launch *l, const gs_operand *o, uint32_t reader, bool (*fits)(gs_op op))
{
    uint32_t maker = reader, readers = 0;
    if (o->kind != GS_FROM_REG || l->stage->reg[o->index].array != GS_NONE)
        return reader;
    for (uint32_t i = 0; i < l->stage->instrs; i++) {
        const gs_instr *const in = &l->stage->instr[i];
        const gs_operand *const read[] = {&in->a, &in->b, &in->c};
        for (int r = 0; r < 3; r++)
            readers += read[r]->kind == GS_FROM_REG && read[r]->index == o->index;
        if (i < reader && !gs_op_into_param(in->op) && fits(in->op) && in->dst == o->index)
            maker = i;
    }
    return readers == 1 ? maker : reader;
}

/* The sum of two products that nothing else reads: both go where the sum goes, the second one added to the first, and
 * the step of the sum has nothing left to do. No step in between may use that memory. */
static void join_products(gs_cpu_step *step, const gs_vertex_launch *l, uint32_t sum)
{
    const gs_instr *const in = &l->stage->instr[sum];
    if (in->op != GS_OP_ADD)
        return;
    const uint32_t a = maker_of(l, &in->a, sum, gs_cpu__is_product), b = maker_of(l, &in->b, sum, gs_cpu__is_product);
    if (a == sum || b == sum || a == b || step[a].width != step[sum].width || step[b].width != step[sum].width)
        return;
    const gs_cpu_range to = step[sum].reg[0];
    const uint32_t first = GS_MIN(a, b), second = GS_MAX(a, b);
    for (uint32_t i = first; i < sum; i++)
        for (uint32_t r = i == first || i == second ? 1 : 0; r < step[i].regs; r++)
            if (!is_apart(to, step[i].reg[r], l->rows))
                return;
    step[a].dst = step[b].dst = step[sum].dst;
    step[a].reg[0] = step[b].reg[0] = to;
    step[second].adds = true;
    step[sum].joined = true;
}

static bool is_rows(gs_cpu_operand o) { return o.shape == GS_CPU_FULL || o.shape == GS_CPU_ROW; }

/* Sums of groups of columns of a product of numbers at the same place, which stands right before and which nothing else
 * reads: the sums take its operands, and its step has nothing left to do. */
static void join_fold(gs_cpu_step *step, const gs_vertex_launch *l, uint32_t fold)
{
    const gs_instr *const in = &l->stage->instr[fold];
    if (in->op != GS_OP_FOLD || fold == 0 || maker_of(l, &in->a, fold, is_multiplied) != fold - 1)
        return;
    gs_cpu_step *const f = &step[fold], *const m = f - 1;
    if (!is_rows(m->a) || !is_rows(m->b))
        return;
    for (uint32_t r = 1; r < m->regs; r++)
        if (!is_apart(f->reg[0], m->reg[r], l->rows))
            return;
    f->a = m->a;
    f->b = m->b;
    for (f->regs = 1; f->regs < m->regs; f->regs++)
        f->reg[f->regs] = m->reg[f->regs];
    m->joined = true;
}

static bool is_concat(gs_op op) { return op == GS_OP_CONCAT; }

/* The instruction that writes the register, or NULL. */
static const gs_instr *writer_of(const gs_vertex_launch *l, const gs_operand *o)
{
    for (uint32_t i = 0; i < l->stage->instrs && o->kind == GS_FROM_REG; i++)
        if (!gs_op_into_param(l->stage->instr[i].op) && l->stage->instr[i].dst == o->index)
            return &l->stage->instr[i];
    return NULL;
}

/* Columns of 0 as ir has them (gs_ir__zeros()): which degrees are below 0. */
static bool is_zeros(const gs_vertex_launch *l, gs_operand o)
{
    static const gs_op path[] = {GS_OP_EXPAND, GS_OP_STEP, GS_OP_NEG};
    for (uint32_t i = 0; i < GS_ARRAY_LEN(path); i++) {
        const gs_instr *const in = writer_of(l, &o);
        if (in == NULL || in->op != path[i])
            return false;
        o = in->a;
    }
    const gs_reg *const r = &l->stage->reg[o.index];
    return r->kind == GS_REG_LOAD && strcmp(l->program->array[r->array].name, "in_degree") == 0;
}

/* A product, or a gradient, of columns beside columns of 0, which stand for a part of a matrix and which nothing else
 * reads: it takes the columns alone, by their part, and the step that lays both side by side has nothing left to do. No
 * step in between may use their memory. */
static void join_columns(gs_cpu_step *step, const gs_vertex_launch *l, uint32_t product)
{
    gs_cpu_step *const s = &step[product];
    const gs_instr *const in = &l->stage->instr[product];
    const bool outer = in->op == GS_OP_OUTER;
    if (!outer && in->op != GS_OP_MATMUL && in->op != GS_OP_MATMUL_T)
        return;
    const uint32_t concat = maker_of(l, outer ? &in->b : &in->a, product, is_concat);
    if (concat == product || gs_cpu__stands_alone(s, l->rows))
        return;
    const gs_instr *const of = &l->stage->instr[concat];
    const bool behind = is_zeros(l, of->a);
    if (behind == is_zeros(l, of->b))
        return;
    const gs_cpu_range kept = step[concat].reg[behind ? 2 : 1];
    for (uint32_t i = concat + 1; i <= product; i++)
        if (step[i].dst != NULL && !is_apart(step[i].reg[0], kept, l->rows))
            return;
    s->weight.first = behind ? l->stage->reg[of->a.index].width : 0;
    s->weight.some = l->stage->reg[(behind ? of->b : of->a).index].width;
    s->a_width = outer ? s->a_width : s->weight.some;
    *(outer ? &s->b.p : &s->a.p) = (const float *)(const void *)kept.p;
    s->reg[1] = kept;
    step[concat].joined = true;
}

/* Columns that only such steps read. */
static void leave_out_zeros(gs_cpu_step *step, const gs_vertex_launch *l, uint32_t zeros)
{
    const gs_instr *const in = &l->stage->instr[zeros];
    bool read = in->op != GS_OP_EXPAND || l->stage->reg[in->dst].array != GS_NONE;
    for (uint32_t i = zeros + 1; i < l->stage->instrs && !read; i++)
        for (uint32_t o = 0; o < gs_op_inputs(l->stage->instr[i].op); o++) {
            const gs_operand *const of = gs_instr_operand(&l->stage->instr[i], o);
            read |= of->kind == GS_FROM_REG && of->index == in->dst && !(step[i].joined && is_concat(step[i].op));
        }
    step[zeros].joined |= !read;
}

/* Joins products and finds the runs and blocks of the launch's steps, all looked up. Returns the number of steps, or
 * the first one of a run whose partial sums were not prepared for. */
static uint32_t find_runs(gs_cpu *cpu, const gs_vertex_launch *l)
{
    const uint32_t n = l->stage->instrs;
    for (uint32_t i = 0; i < n; i++)
        join_products(cpu->step, l, i);
    for (uint32_t i = 0; i < n; i++)
        join_fold(cpu->step, l, i);
    for (uint32_t i = 0; i < n; i++)
        join_columns(cpu->step, l, i);
    for (uint32_t i = 0; i < n; i++)
        leave_out_zeros(cpu->step, l, i);
    cut_runs(cpu->step, n, l->rows);
    if (l->rows >= FEW_ROWS)
        find_windows(cpu->step, n, l->rows);
    for (uint32_t i = 0; i < n; i = cpu->step[i].run.end) {
        find_blocks(cpu->step, i, cpu->step[i].run.end);
        if (!has_room(cpu, &cpu->step[i], l->rows))
            return i;
    }
    return n;
}

/* ---- keys with which masks and dropout draw ---- */

/* Elements are kept when their 24 random bits times 2^-24 are at least p, that is when the bits
 * are at least p * 2^24, which a double holds exactly. All but the keys. */
static void dropout_of(gs_cpu_dropout *out, const gs_instr *in, uint32_t epoch)
{
    const float p = in->alpha;
    assert(p >= 0.0f && p < 1.0f);
    const double exact = (double)p * 0x1p24;
    const uint32_t whole = (uint32_t)exact;
    *out = (gs_cpu_dropout){.site = in->site,
                            .epoch = epoch,
                            .threshold = whole + ((double)whole < exact),
                            .scale = 1.0f / (1.0f - p)};
}

void gs_cpu__edge_mask(gs_cpu_dropout *out, const gs_instr *in, uint64_t seed, uint32_t epoch)
{
    dropout_of(out, in, epoch);
    gs_random_edge_key(out->key, seed, in->site, epoch);
}

/* ---- instructions to steps ----
 *
 * Instructions of a launch to steps: every operand looked up, once a launch, before anything is written. That the
 * program obeys program.h was proved before (gs_program_check()); what is refused here is what the launch lacks.
 */

typedef struct lookup {
    const gs_vertex_launch *l;
    gs_cpu_step *step;
    const gs_instr *instr;
    uint32_t index;
    gs_status st; /* of what was looked up so far */
} lookup;

static void refuse(lookup *k, const char *what)
{
    k->st = gs_fail(GS_EINVAL, "stage \"%s\", instruction %u: %s", k->l->stage->name, k->index, what);
}

/* The register `index`, noted as one that the step touches; NULL after an error. */
static void *find_register(lookup *k, uint32_t index, gs_dtype dtype, uint32_t width)
{
    const gs_stage *const stage = k->l->stage;
    assert(index < stage->regs);
    if (k->l->reg[index] == NULL)
        refuse(k, "a register that the launch does not have");
    if (k->st != GS_OK)
        return NULL;
    const gs_reg *const r = &stage->reg[index];
    assert(r->dtype == dtype && (width == 0 || r->width == width));
    (void)dtype;
    (void)width;
    k->step->reg[k->step->regs++] =
        (gs_cpu_range){.p = k->l->reg[index],
                       .row_bytes = (uint64_t)r->width * gs_dtype_bytes(r->dtype),
                       .temporary = r->kind == GS_REG_TEMP && r->array == GS_NONE};
    return k->l->reg[index];
}

static void *operand_register(lookup *k, const gs_operand *o, gs_dtype dtype, uint32_t width)
{
    assert(o->kind == GS_FROM_REG);
    return find_register(k, o->index, dtype, width);
}

static uint32_t width_of(const lookup *k, const gs_operand *o)
{
    assert(o->kind == GS_FROM_REG && o->index < k->l->stage->regs);
    return k->l->stage->reg[o->index].width;
}

static gs_cpu_operand broadcast(lookup *k, const gs_operand *o)
{
    const uint32_t width = k->step->width;
    const gs_program *const p = k->l->program;

    if (o->kind == GS_FROM_CONST)
        return (gs_cpu_operand){&o->value, GS_CPU_SCALAR};
    if (o->kind == GS_FROM_PARAM) {
        const gs_param *const param = &p->param[o->index];
        assert(param->rows == 1 && (param->cols == width || param->cols == 1));
        return (gs_cpu_operand){k->l->param[o->index], param->cols == 1 ? GS_CPU_SCALAR : GS_CPU_ROW};
    }
    const bool column = width_of(k, o) == 1 && width != 1;
    return (gs_cpu_operand){operand_register(k, o, GS_F32, column ? 1 : width), column ? GS_CPU_COLUMN : GS_CPU_FULL};
}

static const gs_param *resolve_weight(lookup *k)
{
    const uint32_t index = k->instr->b.index;
    assert(k->instr->b.kind == GS_FROM_PARAM && index < k->l->program->params);
    const gs_param *const param = &k->l->program->param[index];
    k->step->weight.at = k->l->param[index];
    k->step->weight.rows = param->rows;
    k->step->weight.cols = param->cols;
    return param;
}

/* The narrow side says how many matrices there are. */
static void resolve_fan(lookup *k, const gs_param *w)
{
    gs_cpu_step *const s = k->step;
    const bool transposed = s->op == GS_OP_FAN_T;
    const uint32_t narrow = transposed ? k->l->stage->reg[k->instr->dst].width : width_of(k, &k->instr->a);
    assert(w->rows % narrow == 0);
    s->weight.matrices = w->rows / narrow;
    s->a_width = transposed ? s->weight.matrices * w->cols : narrow;
    s->dst = find_register(k, k->instr->dst, GS_F32, transposed ? narrow : s->weight.matrices * w->cols);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, s->a_width);
}

static void resolve_product(lookup *k, const gs_param *w)
{
    gs_cpu_step *const s = k->step;
    const bool transposed = s->op == GS_OP_MATMUL_T;
    s->a_width = transposed ? w->cols : w->rows;
    s->dst = find_register(k, k->instr->dst, GS_F32, transposed ? w->rows : w->cols);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, s->a_width);
}

/* Blocks of columns: as many as the weight has rows (transposed: columns) become as many as it has of the others. */
static void resolve_mix(lookup *k)
{
    gs_cpu_step *const s = k->step;
    const gs_param *const w = resolve_weight(k);
    const bool transposed = s->op == GS_OP_MIX_T;
    s->mix = (gs_cpu_mix){.weight = s->weight.at,
                          .from = transposed ? w->cols : w->rows,
                          .to = transposed ? w->rows : w->cols,
                          .from_stride = transposed ? 1 : w->cols,
                          .to_stride = transposed ? w->cols : 1};
    s->a_width = width_of(k, &k->instr->a);
    s->mix.each = s->a_width / s->mix.from;
    s->width = s->mix.to * s->mix.each;
    assert(s->a_width % s->mix.from == 0);
    s->dst = find_register(k, k->instr->dst, GS_F32, s->width);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, s->a_width);
}

static void resolve_mix_outer(lookup *k, const gs_param *w)
{
    gs_cpu_step *const s = k->step;
    s->mix.each = s->width / w->rows;
    assert(s->width % w->rows == 0);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, s->width);
    s->b.p = operand_register(k, &k->instr->b, GS_F32, w->cols * s->mix.each);
}

static void resolve_reduce(lookup *k)
{
    gs_cpu_step *const s = k->step;
    assert(k->instr->dst < k->l->program->params);
    if (k->l->grad == NULL || k->l->grad[k->instr->dst] == NULL) {
        refuse(k, "the launch has no place for this gradient");
        return;
    }
    const gs_param *const w = &k->l->program->param[k->instr->dst];
    s->grad = k->l->grad[k->instr->dst];
    s->weight.rows = w->rows;
    s->weight.cols = w->cols;
    if (s->op == GS_OP_COLSUM) {
        assert(w->rows == 1);
        s->a.p = operand_register(k, &k->instr->a, GS_F32, w->cols);
    } else if (s->op == GS_OP_MIX_OUTER) {
        resolve_mix_outer(k, w);
    } else if (s->op == GS_OP_FAN_OUTER) {
        assert(w->rows % s->width == 0);
        s->weight.matrices = w->rows / s->width;
        s->a.p = operand_register(k, &k->instr->a, GS_F32, s->width);
        s->b.p = operand_register(k, &k->instr->b, GS_F32, s->weight.matrices * w->cols);
    } else {
        s->weight.some = w->cols;
        s->a.p = operand_register(k, &k->instr->a, GS_F32, w->rows);
        s->b.p = operand_register(k, &k->instr->b, GS_F32, w->cols);
    }
}

static void resolve_loss(lookup *k)
{
    gs_cpu_step *const s = k->step;
    s->width = width_of(k, &k->instr->a);
    if (gs_op_is_loss_grad(s->op))
        s->dst = find_register(k, k->instr->dst, GS_F32, s->width);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, 0);
    s->source_type = k->l->stage->reg[k->instr->b.index].dtype;
    s->id = operand_register(k, &k->instr->b, s->source_type, s->source_type == GS_I32 ? 1 : s->width);
    s->split = operand_register(k, &k->instr->c, GS_U8, 1);
}

static void resolve_statistic(lookup *k)
{
    gs_cpu_step *const s = k->step;
    assert(k->instr->dst < k->l->program->params);
    if (k->l->statistic == NULL || k->l->statistic[k->instr->dst] == NULL)
        refuse(k, "the launch has no place for this statistic");
    else
        s->statistic = k->l->statistic[k->instr->dst];
    s->a.p = operand_register(k, &k->instr->a, GS_F32, k->l->program->param[k->instr->dst].cols);
}

/* Resolves the mask of the vertices themselves, which is drawn for their own edge. */
static void resolve_mask(lookup *k)
{
    gs_cpu_step *const s = k->step;
    gs_cpu__edge_mask(&s->dropout, k->instr, k->l->seed, k->l->epoch);
    s->split = operand_register(k, &k->instr->a, GS_U32, 1);
    s->id = operand_register(k, &k->instr->b, GS_U32, 1);
}

static void resolve_dropout(lookup *k)
{
    gs_cpu_step *const s = k->step;
    dropout_of(&s->dropout, k->instr, k->l->epoch);
    gs_random_key(s->dropout.key, k->l->seed, GS_RANDOM_DROPOUT);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, s->width);
    s->id = operand_register(k, &k->instr->b, GS_U32, 1);
}

static void resolve_cast(lookup *k)
{
    const gs_operand *const a = &k->instr->a;
    k->step->source_type = k->l->stage->reg[a->index].dtype;
    assert(gs_cpu__can_cast(k->step->source_type));
    k->step->source = operand_register(k, a, k->step->source_type, k->step->width);
}

static void resolve_round(lookup *k)
{
    k->step->rounded = find_register(k, k->instr->dst, GS_BF16, 0);
    k->step->a.p = operand_register(k, &k->instr->a, GS_F32, k->step->width);
}

/* One side has a whole number of columns for each column of the other. */
static void resolve_groups(lookup *k)
{
    gs_cpu_step *const s = k->step;
    s->a_width = width_of(k, &k->instr->a);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, 0);
    assert(s->a_width % s->width == 0 || s->width % s->a_width == 0);
}

static void resolve_columns(lookup *k)
{
    gs_cpu_step *const s = k->step;
    s->first = k->instr->site;
    s->a_width = width_of(k, &k->instr->a);
    s->a.p = operand_register(k, &k->instr->a, GS_F32, 0);
    assert(s->op == GS_OP_PART ? s->first + s->width <= s->a_width : s->a_width < s->width);
    if (s->op != GS_OP_PART)
        s->b.p = operand_register(k, &k->instr->b, GS_F32, s->width - s->a_width);
}

/* An element of the elements at the same place: operands of one function are rows, of more they may stretch. */
static void resolve_each(lookup *k)
{
    gs_cpu_step *const s = k->step;
    if (gs_op_inputs(s->op) == 1) {
        s->a.p = operand_register(k, &k->instr->a, GS_F32, s->width);
        return;
    }
    s->a = broadcast(k, &k->instr->a);
    s->b = broadcast(k, &k->instr->b);
    if (gs_op_inputs(s->op) == 3)
        s->c = broadcast(k, &k->instr->c);
}

static void resolve_elementwise(lookup *k)
{
    gs_cpu_step *const s = k->step;

    s->width = k->l->stage->reg[k->instr->dst].width;
    if (s->op != GS_OP_ROUND)
        s->dst = find_register(k, k->instr->dst, GS_F32, 0);
    if (s->op == GS_OP_ROUND)
        resolve_round(k);
    else if (s->op == GS_OP_DROPOUT)
        resolve_dropout(k);
    else
        switch (gs_op_form_of(s->op)) {
        case GS_FORM_TYPE: resolve_cast(k); break;
        case GS_FORM_DRAW: resolve_mask(k); break;
        case GS_FORM_COLUMNS: resolve_columns(k); break;
        case GS_FORM_ROW:
        case GS_FORM_FEWER:
        case GS_FORM_MORE: resolve_groups(k); break;
        default: resolve_each(k); break;
        }
}

static void resolve_step(lookup *k)
{
    const gs_op op = k->instr->op;
    *k->step = (gs_cpu_step){.op = op, .alpha = k->instr->alpha};
    assert(gs_op_is(op, GS_FACT_VERTEX));
    if (gs_cpu__is_product(op)) {
        const gs_param *const w = resolve_weight(k);
        if (op == GS_OP_FAN || op == GS_OP_FAN_T)
            resolve_fan(k, w);
        else
            resolve_product(k, w);
        k->step->width = k->l->stage->reg[k->instr->dst].width;
    } else if (op == GS_OP_MIX || op == GS_OP_MIX_T) {
        resolve_mix(k);
    } else if (gs_op_is_outer(op) || op == GS_OP_COLSUM) {
        k->step->width = width_of(k, &k->instr->a);
        resolve_reduce(k);
    } else if (gs_op_classof(op) == GS_CLASS_STATISTIC) {
        k->step->width = width_of(k, &k->instr->a);
        resolve_statistic(k);
    } else if (gs_op_classof(op) == GS_CLASS_LOSS) {
        resolve_loss(k);
    } else {
        resolve_elementwise(k);
    }
}

gs_status gs_cpu__resolve(gs_cpu *cpu, const gs_vertex_launch *l)
{
    const uint32_t n = l->stage->instrs;
    lookup k = {.l = l};

    for (; k.index < n && k.st == GS_OK; k.index++) {
        k.step = &cpu->step[k.index];
        k.instr = &l->stage->instr[k.index];
        if (k.index >= cpu->steps)
            refuse(&k, "not prepared for so many instructions");
        else
            resolve_step(&k);
    }
    if (k.st == GS_OK && (k.index = find_runs(cpu, l)) < n)
        refuse(&k, "not prepared for a gradient of this size");
    return k.st;
}
