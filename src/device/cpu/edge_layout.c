/* Where the values of a tile of edges lie in a thread's scratch, and how many edges a tile has. */
#include "base/size.h"
#include "device/cpu/edge_layout.h"

#define TILE_BYTES (24 * GS_KIB) /* slots and gathered rows of a tile: most of a first-level cache */
#define TYPED_BYTES (384 * GS_KIB) /* of a second-level one, with matrices beside */
#define TILE_STEP 8
#define TILE_MOST 256 /* edges of a tile without typed products */

static void note_last(gs_cpu_edge_plan *plan, const gs_cpu_edge_value *v, uint32_t step)
{
    if (v->form == GS_CPU_EDGE_SLOT)
        plan->slot[v->slot].last = step;
}

/* A free place of the same width, or a new one. */
static uint64_t find_place(gs_cpu_edge_plan *plan, uint32_t width)
{
    for (uint32_t i = 0; i < plan->slots; i++)
        if (plan->slot[i].free && plan->slot[i].width == width) {
            plan->slot[i].free = false;
            return plan->slot[i].offset;
        }
    plan->floats += width;
    return plan->floats - width;
}

static void release(gs_cpu_edge_plan *plan, const gs_cpu_edge_value *v, uint32_t step)
{
    if (v->form == GS_CPU_EDGE_SLOT && plan->slot[v->slot].last == step)
        plan->slot[v->slot].free = true;
}

/* Slots whose values are not needed at the same time share a place. Only operators of one operand may write over
 * theirs: rows of other steps are written in vectors that overlap. */
static void place_slots(gs_cpu_edge_plan *plan)
{
    for (uint32_t i = 0; i < plan->steps; i++) {
        if (plan->step[i].dst != GS_NONE)
            plan->slot[plan->step[i].dst].last = i;
        note_last(plan, &plan->step[i].a, i);
        note_last(plan, &plan->step[i].b, i);
        note_last(plan, &plan->step[i].c, i);
    }
    for (uint32_t i = 0; i < plan->steps; i++) {
        const gs_cpu_edge_step *const s = &plan->step[i];
        const gs_cpu_edge_value dst = {.form = GS_CPU_EDGE_SLOT, .slot = s->dst};
        if (s->kind == GS_CPU_EDGE_UNARY)
            release(plan, &s->a, i);
        if (s->dst != GS_NONE)
            plan->slot[s->dst].offset = find_place(plan, s->width);
        if (s->kind != GS_CPU_EDGE_UNARY)
            release(plan, &s->a, i);
        release(plan, &s->b, i);
        if (s->dst != GS_NONE)
            release(plan, &dst, i); /* nobody reads it */
    }
}

/* As many edges as leave what a tile needs in a near cache: the first level's, or, where typed products are to be
 * more than an edge or two, the second's. */
static void choose_tile(gs_cpu_edge_plan *plan)
{
    const uint64_t room = plan->typed ? TYPED_BYTES : TILE_BYTES,
                   most = plan->typed ? GS_CPU_TILE_EDGES : TILE_MOST;
    uint64_t bytes = 4 * sizeof(uint32_t) + plan->floats * sizeof(float);
    for (uint32_t g = 0; g < plan->gathers; g++)
        bytes += plan->gather[g].bytes;
    const uint64_t edges = room / bytes / TILE_STEP * TILE_STEP;
    plan->tile = (uint32_t)GS_MAX(GS_MIN(edges, most), (uint64_t)TILE_STEP);
}

/* Rows of at least a vector, times a number that is there: kernels_edge_rows.c. */
static bool has_only_rows(const gs_cpu_edge_plan *plan, uint32_t lanes)
{
    const gs_cpu_edge_step *const s = &plan->step[0];
    return plan->steps == 1 && (s->kind == GS_CPU_EDGE_SUM || s->kind == GS_CPU_EDGE_SUM_TYPE) &&
           s->fold != GS_SUM_MAX && s->fold != GS_SUM_MIN && s->width >= lanes && s->a.width == s->width &&
           (s->a.form == GS_CPU_EDGE_OPERAND || s->a.form == GS_CPU_EDGE_OPERAND_TYPE) &&
           (s->b.form == GS_CPU_EDGE_NOTHING || s->b.width == 1) && !(s->a.half && plan->types > 0);
}

void gs_cpu__lay_out_edges(gs_cpu_edge_plan *plan, uint32_t lanes)
{
    plan->only_rows = has_only_rows(plan, lanes);
    place_slots(plan);
    choose_tile(plan);
}

uint64_t gs_cpu__edge_tile_floats(uint64_t floats, uint64_t edges)
{
    return (floats + 2 * GS_CPU_TILE_NUMBERS) * edges;
}

static uint64_t most_edge_floats(uint64_t floats, bool typed)
{
    const uint64_t room = typed ? TYPED_BYTES : TILE_BYTES, most = typed ? GS_CPU_TILE_EDGES : TILE_MOST;
    return GS_MAX(gs_cpu__edge_tile_floats(floats, TILE_STEP),
                  room / sizeof(float) + gs_cpu__edge_tile_floats(0, most));
}

/* ---- before any launch ---- */

bool gs_cpu__is_half(const gs_program *program, const gs_edge_reg *r)
{
    return (r->kind == GS_EDGE_OPERAND || r->kind == GS_EDGE_TARGET) && r->array < program->arrays &&
           program->array[r->array].dtype == GS_BF16;
}

/* Values that are copied to be kept. */
static uint64_t outer_floats(const gs_stage *stage, const gs_sum *sum)
{
    const bool there = sum->value < stage->edge_regs && sum->score < stage->edge_regs;
    return there ? 2ull * stage->edge_reg[sum->value].width + 2ull * stage->edge_reg[sum->score].width : 0;
}

gs_cpu_edge_needs gs_cpu__edge_needs(const gs_program *program, const gs_stage *stage)
{
    gs_cpu_edge_needs n = {0};
    uint64_t floats = 0;

    for (uint32_t s = 0; s < stage->sums; s++)
        if (!gs_stage_sums_rows(stage, s) && !gs_sum_is_sequence(&stage->sum[s]) &&
            stage->sum[s].reg < stage->regs) {
            const uint64_t width = stage->reg[stage->sum[s].reg].width;
            floats += 4 * width + (stage->sum[s].kind == GS_SUM_OUTER ? outer_floats(stage, &stage->sum[s]) : 0);
            n.row_floats += 3 * width;
            n.steps += 6;
        }
    if (n.steps == 0)
        return n;
    for (uint32_t i = 0; i < stage->edge_instrs; i++) {
        const gs_instr *const in = &stage->edge_instr[i];
        const uint64_t to = in->dst < stage->edge_regs ? stage->edge_reg[in->dst].width : 0;
        const uint64_t from =
            in->a.kind == GS_FROM_REG && in->a.index < stage->edge_regs ? stage->edge_reg[in->a.index].width : 0;
        const uint32_t steps = gs_op_inputs(in->op) > 2 ? 4 : 3; /* its own, and copies of operands */
        floats += steps * GS_MAX(to, from);
        n.steps += steps;
    }
    for (uint32_t r = 0; r < stage->edge_regs; r++)
        if (gs_cpu__is_half(program, &stage->edge_reg[r])) { /* a copy in float32 */
            floats += stage->edge_reg[r].width;
            n.steps++;
        }
    n.states = stage->edge_regs;
    n.floats = most_edge_floats(floats, gs_stage_has_typed(stage));
    return n;
}
