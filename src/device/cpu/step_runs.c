/* Runs of steps. Consecutive steps whose rows depend on the same rows only can run
 * block by block with no waiting in between. Two things end a run: an outer
 * product too large for partial sums in every lot, and memory that is used twice. Registers
 * may lie over one another (program.h: SSA, so that schedule can overlay them), which is in
 * order instruction by instruction, but one block's new rows may lie on
 * another block's old ones when their rows differ in place or length.
 */
#include "base/size.h"
#include "device/cpu/gemm.h"
#include "device/cpu/lots.h"
#include "device/cpu/step_runs.h"

#define BLOCK_BYTES (256 * GS_KIB) /* rows of a cheap sequence at a time: well inside a second-level cache */
#define BLOCK_MIN 8
#define BLOCK_MAX 256

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

uint32_t gs_cpu__find_runs(gs_cpu *cpu, const gs_vertex_launch *l)
{
    const uint32_t n = l->stage->instrs;
    for (uint32_t i = 0; i < n; i++)
        join_products(cpu->step, l, i);
    for (uint32_t i = 0; i < n; i++)
        join_fold(cpu->step, l, i);
    cut_runs(cpu->step, n, l->rows);
    for (uint32_t i = 0; i < n; i = cpu->step[i].run.end) {
        find_blocks(cpu->step, i, cpu->step[i].run.end);
        if (!has_room(cpu, &cpu->step[i], l->rows))
            return i;
    }
    return n;
}
