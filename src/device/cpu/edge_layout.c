/* Where the values of a tile of edges lie: places of slots, edges of a tile, steps that are done row by row. */
#include "base/size.h"
#include "device/cpu/edge_program.h"

#define SLOT_BYTES (48 * GS_KIB)   /* slots of a tile: about a first-level cache */
#define TILE_BYTES (192 * GS_KIB)  /* slots and gathered rows: a part of a second-level one, */
#define TYPED_BYTES (384 * GS_KIB) /* a larger one, with matrices beside */
#define TILE_STEP 8

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

/* That it writes, one behind the other. */
static uint32_t slots_of(const gs_cpu_edge_step *s)
{
    return s->kind == GS_CPU_EDGE_NUMBERS ? s->lists : s->dst != GS_NONE;
}

/* Slots whose values are not needed at the same time share a place. Only operators of one operand may write over
 * theirs: rows of other steps are written in vectors that overlap. */
static void place_slots(gs_cpu_edge_plan *plan)
{
    for (uint32_t i = 0; i < plan->steps; i++) {
        for (uint32_t k = 0; k < slots_of(&plan->step[i]); k++)
            plan->slot[plan->step[i].dst + k].last = i;
        note_last(plan, &plan->step[i].a, i);
        note_last(plan, &plan->step[i].b, i);
        note_last(plan, &plan->step[i].c, i);
    }
    for (uint32_t i = 0; plan->picked != GS_NONE && i < 2; i++)
        plan->picked_at[i] = find_place(plan, plan->slot[plan->picked].width);
    for (uint32_t i = 0; i < plan->steps; i++) {
        const gs_cpu_edge_step *const s = &plan->step[i];
        const gs_cpu_edge_value dst = {.form = GS_CPU_EDGE_SLOT, .slot = s->dst};
        if (s->kind == GS_CPU_EDGE_UNARY)
            release(plan, &s->a, i);
        for (uint32_t k = 0; k < slots_of(s); k++)
            plan->slot[s->dst + k].offset = find_place(plan, s->width);
        if (s->kind != GS_CPU_EDGE_UNARY)
            release(plan, &s->a, i);
        release(plan, &s->b, i);
        if (s->dst != GS_NONE)
            release(plan, &dst, i); /* nobody reads it */
    }
}

/* Is it a slot of numbers side by side, one number for all, or nothing? */
static bool is_side_by_side(const gs_cpu_edge_value *v, uint32_t width)
{
    return v->form == GS_CPU_EDGE_NOTHING || (v->form == GS_CPU_EDGE_SLOT && v->width == width) ||
           (v->form == GS_CPU_EDGE_FIXED && v->width == 1);
}

/* Can the step be one of several that are done row by row? Its rows have a vector at least, or those of a tile are one
 * row of whole vectors. */
static bool is_link(const gs_cpu_edge_plan *plan, const gs_cpu_edge_step *s, uint32_t lanes)
{
    const bool one = s->kind == GS_CPU_EDGE_UNARY &&
                     (s->op == GS_OP_RELU || s->op == GS_OP_LEAKY_RELU || s->op == GS_OP_STEP || s->op == GS_OP_NEG);
    const bool two = (s->kind == GS_CPU_EDGE_BINARY || s->kind == GS_CPU_EDGE_FLAT) &&
                     s->c.form == GS_CPU_EDGE_NOTHING && (s->b.width == s->width || s->b.width == 1);
    if (s->width < lanes)
        return (one || (two && s->kind == GS_CPU_EDGE_FLAT)) && plan->tile % lanes == 0 &&
               is_side_by_side(&s->a, s->width) && is_side_by_side(&s->b, s->width);
    return (one || two) && (s->a.width == s->width || s->a.width == 1);
}

/* Does the step use the result of the one before it, which no other does, as its first operand or a sum's or product's
 * second one, and as no other? */
static bool follows(const gs_cpu_edge_plan *plan, uint32_t step)
{
    const gs_cpu_edge_step *const s = &plan->step[step];
    const uint32_t slot = plan->step[step - 1].dst;
    const bool first = s->a.form == GS_CPU_EDGE_SLOT && s->a.slot == slot,
               second = s->b.form == GS_CPU_EDGE_SLOT && s->b.slot == slot;
    return plan->step[step - 1].width == s->width && plan->slot[slot].last == step && first != second &&
           (first || s->op == GS_OP_ADD || s->op == GS_OP_MUL);
}

/* ---- sums together ---- */

static bool is_list(const gs_cpu_edge_value *v) { return v->form == GS_CPU_EDGE_SLOT && v->width == 1; }

static bool is_same_value(const gs_cpu_edge_value *a, const gs_cpu_edge_value *b)
{
    return a->form == b->form && a->width == b->width && a->p == b->p && a->slot == b->slot && !a->half && !b->half;
}

/* A sum of rows of a vector or more, each times a number that a step wrote. */
static bool is_wide_sum(const gs_cpu_edge_step *s, uint32_t lanes)
{
    return s->kind == GS_CPU_EDGE_SUM && s->fold == GS_SUM_ADD && s->width >= lanes && s->a.width == s->width &&
           !s->a.half && is_list(&s->b);
}

/* A sum of such numbers, or of their products. */
static bool is_sum_of_numbers(const gs_cpu_edge_step *s)
{
    return s->kind == GS_CPU_EDGE_SUM && s->fold == GS_SUM_ADD && s->width == 1 && is_list(&s->a) &&
           (s->b.form == GS_CPU_EDGE_NOTHING || is_list(&s->b));
}

/* How many steps from the first one on are sums that one walk over the edges adds up. */
static uint32_t count_together(const gs_cpu_edge_step *s, uint32_t steps, uint32_t lanes)
{
    const gs_cpu_edge_step *wide = NULL;
    uint32_t rows = 0, numbers = 0, n = 0;
    for (; n < steps; n++) {
        const bool more_rows = is_wide_sum(&s[n], lanes) && (wide == NULL || is_same_value(&s[n].a, &wide->a));
        rows += more_rows;
        numbers += is_sum_of_numbers(&s[n]);
        if ((!more_rows && !is_sum_of_numbers(&s[n])) || rows > GS_CPU_EDGE_TOGETHER || numbers > GS_CPU_EDGE_TOGETHER)
            break;
        wide = more_rows ? &s[n] : wide;
    }
    return wide == NULL ? 1 : n;
}

/* Is it a number an edge, of rows at its ends, and the other step a sum of those at the operand end? */
static bool is_dot_of_summed(const gs_cpu_edge_step *dot, const gs_cpu_edge_step *sum, uint32_t lanes)
{
    const bool first = dot->a.form == GS_CPU_EDGE_OPERAND;
    return dot->kind == GS_CPU_EDGE_FOLD && dot->width == 1 && is_wide_sum(sum, lanes) &&
           is_same_value(first ? &dot->a : &dot->b, &sum->a) && sum->a.form == GS_CPU_EDGE_OPERAND &&
           (first ? &dot->b : &dot->a)->form == GS_CPU_EDGE_TARGET && !(first ? &dot->b : &dot->a)->half &&
           sum->width % lanes == 0 && sum->width <= GS_CPU_DOT_VECTORS * lanes && sum->b.slot != dot->dst;
}

/* A sum of rows whose products with those of the targets are made before it goes there, if its numbers are. */
static void move_sum_to_dot(gs_cpu_edge_plan *plan, uint32_t dot, uint32_t lanes)
{
    for (uint32_t i = dot + 1; i < plan->steps; i++) {
        const gs_cpu_edge_step s = plan->step[i];
        bool late = !is_dot_of_summed(&plan->step[dot], &s, lanes);
        for (uint32_t k = dot; k < i; k++)
            late |= plan->step[k].dst == s.b.slot;
        if (late)
            continue;
        memmove(&plan->step[dot + 2], &plan->step[dot + 1], (i - dot - 1) * sizeof(s));
        plan->step[dot + 1] = s;
        return;
    }
}

/* Sums with steps between them that make their numbers go to the last of them. */
static void move_sums(gs_cpu_edge_plan *plan, uint32_t lanes)
{
    for (uint32_t i = 0; i < plan->steps; i++)
        if (plan->step[i].kind == GS_CPU_EDGE_UNLESS) /* steps that may be left out are counted */
            return;
    for (uint32_t i = 0; i < plan->steps; i++)
        move_sum_to_dot(plan, i, lanes);
    for (uint32_t i = plan->steps; i-- > 1;) {
        const gs_cpu_edge_step s = plan->step[i - 1];
        const gs_cpu_edge_kind next = plan->step[i].kind;
        uint32_t end = i;
        if ((!is_wide_sum(&s, lanes) && !is_sum_of_numbers(&s)) ||
            (i > 1 && is_dot_of_summed(&plan->step[i - 2], &s, lanes)))
            continue;
        for (; end < plan->steps; end++)
            if (plan->step[end].kind != GS_CPU_EDGE_FLAT && plan->step[end].kind != GS_CPU_EDGE_COPY)
                break;
        if (next == GS_CPU_EDGE_SUM || end == plan->steps || plan->step[end].kind != GS_CPU_EDGE_SUM)
            continue;
        memmove(&plan->step[i - 1], &plan->step[i], (end - i) * sizeof(s));
        plan->step[end - 1] = s;
    }
}

/* When places are chosen: a row's numbers are read before its result takes the place of one of them. */
static void find_links(gs_cpu_edge_plan *plan, uint32_t lanes)
{
    uint32_t sure = 0; /* from here on steps are no more those that may be left out */
    for (uint32_t i = 0; i < plan->steps; i += plan->step[i].links + 1) {
        uint32_t next = i + 1;
        plan->turns += i >= sure;
        if (plan->step[i].kind == GS_CPU_EDGE_UNLESS)
            sure = GS_MAX(sure, next + plan->step[i].skipped);
        while (is_link(plan, &plan->step[i], lanes) && next < plan->steps && next - i <= GS_CPU_EDGE_LINKS &&
               is_link(plan, &plan->step[next], lanes) && follows(plan, next)) {
            gs_cpu_edge_step *const s = &plan->step[next++];
            if (s->a.form != GS_CPU_EDGE_SLOT || s->a.slot != plan->step[next - 2].dst)
                gs_cpu_swap_values(&s->a, &s->b);
        }
        if (plan->step[i].kind == GS_CPU_EDGE_SUM)
            next = i + count_together(&plan->step[i], plan->steps - i, lanes);
        else if (next < plan->steps && is_dot_of_summed(&plan->step[i], &plan->step[next], lanes))
            next++;
        plan->step[i].links = next - i - 1;
    }
}

static uint64_t slot_bytes(bool products) { return products ? TYPED_BYTES : SLOT_BYTES; }

/* As many edges as leave slots in the first-level cache and rows in the second one, where they were fetched to; all in
 * that where typed products are to be more than an edge or two. Whole vectors of them, as is_link() wants. */
static void choose_tile(gs_cpu_edge_plan *plan, uint32_t lanes)
{
    const uint64_t slots = 4 * sizeof(uint32_t) + plan->floats * sizeof(float);
    uint64_t bytes = slots;
    for (uint32_t g = 0; g < plan->gathers; g++)
        bytes += plan->gather[g].bytes;
    const uint64_t edges = GS_MIN((plan->products ? TYPED_BYTES : TILE_BYTES) / bytes,
                                  slot_bytes(plan->products) / slots),
                   step = edges < lanes ? TILE_STEP : GS_MAX(lanes, TILE_STEP);
    plan->tile = (uint32_t)GS_MAX(GS_MIN(edges / step * step, (uint64_t)GS_CPU_TILE_EDGES), (uint64_t)TILE_STEP);
}

/* Rows of at least a vector, times a number that is there: kernels_edge_sum.c. */
static bool has_only_rows(const gs_cpu_edge_plan *plan, uint32_t lanes)
{
    const gs_cpu_edge_step *const s = &plan->step[0];
    return plan->steps == 1 && (s->kind == GS_CPU_EDGE_SUM || s->kind == GS_CPU_EDGE_SUM_TYPE) &&
           (s->fold == GS_SUM_ADD || s->fold == GS_SUM_ADD_TYPE) && s->width >= lanes && s->a.width == s->width &&
           (s->a.form == GS_CPU_EDGE_OPERAND || s->a.form == GS_CPU_EDGE_OPERAND_TYPE) &&
           (s->b.form == GS_CPU_EDGE_NOTHING || s->b.width == 1) && !(s->a.half && plan->types > 0);
}

void gs_cpu__lay_out_edges(gs_cpu_edge_plan *plan, uint32_t lanes)
{
    plan->only_rows = has_only_rows(plan, lanes);
    move_sums(plan, lanes);
    place_slots(plan);
    choose_tile(plan, lanes);
    find_links(plan, lanes);
}

uint64_t gs_cpu__tile_floats(uint64_t floats, uint64_t edges)
{
    return (floats + 2 * GS_CPU_TILE_NUMBERS) * edges;
}

uint64_t gs_cpu__most_tile_floats(uint64_t floats, bool products)
{
    return GS_MAX(gs_cpu__tile_floats(floats, TILE_STEP),
                  slot_bytes(products) / sizeof(float) + gs_cpu__tile_floats(0, GS_CPU_TILE_EDGES));
}
