/* Kernels of sums over edges: their registers, how lanes share the columns, their sums.
 *
 * A group of lanes takes a target and goes over its edges in order, so a sum does not depend on anything but
 * the chunk. Targets with very many edges (hubs) are cut in pieces by the launch's sizes alone, each with sums of its
 * own, which a second kernel adds up in the order of the pieces.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "cuda/text_internal.h"

/* ---- rows of memory ----
 *
 * Rows of memory that an edge kernel reads: the arrays, parameters and chunk's own pointers that it needs, and how they
 * come into a lane's registers, for all edges of a target or for a burst of edges at a time. */

/* Index in a.all.in[] of a register's rows at the operand end, or of a parameter. */
static uint32_t gen_input(gs_gen_writer *w, bool param, uint32_t index)
{
    const uint32_t i = gs_generate_input(w->k->input, &w->k->inputs, GS_EDGE_INPUTS, param, index);
    if (i == GS_NONE)
        gs_gen_refuse(w, "its edge program reads too many arrays and parameters");
    return i;
}

uint32_t gs_gen_own(gs_gen_writer *w, gs_kernel_own_kind kind, uint32_t index)
{
    gs_edge_kernel *const k = w->k;
    for (uint32_t i = 0; i < k->owns; i++)
        if (k->own[i].kind == kind && k->own[i].index == index)
            return i;
    if (k->owns == GS_EDGE_OWNS) {
        gs_gen_refuse(w, "its edge program reads too many arrays of targets");
        return 0;
    }
    k->own[k->owns] = (gs_kernel_own){kind, index};
    return k->owns++;
}

/* Stores the register that the kernel keeps. */
static void gen_keep_edge(gs_gen_writer *w)
{
    const uint32_t width = gs_gen_width(w, w->k->kept);
    char name[16], row[64];
    snprintf(name, sizeof(name), "r%u", w->k->kept);
    snprintf(row, sizeof(row), "own[%u] + (gs_u64)place * %uu", gs_gen_own(w, GS_OWN_ACC, 0), width);
    gs_gen_store(w, name, row, width);
}

/* Is the register a row of a table: a product by a matrix, made before? */
static bool gen_is_made(const gs_gen_writer *w, uint32_t r)
{
    for (uint32_t i = 0; i < w->s->edge_instrs; i++)
        if (w->s->edge_instr[i].dst == r)
            return gs_op_on_edges(w->s->edge_instr[i].op);
    return false;
}

static bool gen_needs_place(const gs_gen_writer *w)
{
    bool made = w->k->keeps;
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        made |= w->needed[r] && gen_is_made(w, r);
    return made;
}

static bool gen_is_typed(const gs_gen_writer *w, uint32_t r)
{
    return w->needed[r] && w->per_edge[r] && (w->s->edge_reg[r].kind != GS_EDGE_TEMP || gen_is_made(w, r));
}

/* Rows of sums may have two bytes a number, those of an edge program if they are of bfloat16. Ids count as float32. */
static gs_dtype dtype_of(const gs_gen_writer *w, uint32_t r)
{
    const gs_edge_reg *const reg = &w->s->edge_reg[r];
    const bool rows = (reg->kind == GS_EDGE_OPERAND || reg->kind == GS_EDGE_TARGET) && reg->array < w->p->arrays;
    const gs_dtype type = rows ? w->p->array[reg->array].dtype : GS_F32;
    return gs_dtype_is_half(type) ? type : GS_F32;
}

/* Registers that come from memory: those that all edges of a target share, now; those that change with the edge, for a
 * burst of edges ("burst7[b]"), and from there as the edge b's. */
static void gen_load_registers(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++) {
        char name[16], row[64];
        if (!w->needed[r] || w->per_edge[r] || w->s->edge_reg[r].kind == GS_EDGE_TEMP)
            continue;
        snprintf(name, sizeof(name), "r%u", r);
        gs_gen_declare(w, name, gs_gen_shape_of(w, gs_gen_width(w, r)));
        const bool half = dtype_of(w, r) == GS_BF16;
        snprintf(row, sizeof(row), half ? "(const char *)own[%u] + row * %uu" : "own[%u] + row * %uu",
                 gs_gen_own(w, GS_OWN_ROWS, r), (half ? 2 : 1) * gs_gen_width(w, r));
        gs_gen_load(w, name, row, gs_gen_width(w, r), half);
    }
}

/* Slots whose columns all lanes have, in every slice. */
static uint32_t whole_slots(const gs_gen_writer *w)
{
    const gs_edge_kernel *const k = w->k;
    return GS_MIN(k->slice, k->width - (k->slices - 1) * k->slice) / (k->lanes * k->vector);
}

/* Is it one number for all of a lane's columns? */
static bool is_one(const gs_gen_writer *w, uint32_t r)
{
    const gs_gen_shape s = gs_gen_shape_of(w, gs_gen_width(w, r));
    return s == GS_GEN_SINGLE || (s == GS_GEN_GROUPED && w->k->one_group);
}

/* Of features the columns are numbered, not reached: how wide a number is, the launch says. */
static void point_feature(gs_gen_writer *w, uint32_t r)
{
    const gs_edge_reg *const reg = &w->s->edge_reg[r];
    const uint32_t each = gs_gen_each(w, reg->width);
    if (is_one(w, r)) {
        fprintf(w->out, "    const gs_u32 at%u = %uu + slice / %uu;\n", r, reg->first, each);
        return;
    }
    fprintf(w->out, "    gs_u32 at%u[%u];\n", r, w->k->slots);
    gs_gen_each_slot(w);
    fprintf(w->out, "        (void)within;\n        at%u[s] = %uu + ", r, reg->first);
    fprintf(w->out, gs_gen_ragged(w) ? "gs_column_within(c, end - %uu)" : "c", w->k->vector);
    fprintf(w->out, " / %uu;\n    }\n", each);
}

/* burst7[b] = the lane's columns of the edge's features. */
static void load_feature(gs_gen_writer *w, uint32_t r)
{
    const gs_edge_reg *const reg = &w->s->edge_reg[r];
    const gs_gen_shape shape = gs_gen_shape_of(w, reg->width);
    const uint32_t v = shape == GS_GEN_WIDE && !is_one(w, r) ? w->k->vector : 1;
    for (uint32_t s = 0; s < (is_one(w, r) ? 1 : w->k->slots); s++)
        for (uint32_t j = 0; j < v; j++) {
            char to[32] = "", at[32];
            if (shape != GS_GEN_SINGLE)
                snprintf(to, sizeof(to), "[%u]", v * s + j);
            snprintf(at, sizeof(at), is_one(w, r) ? "at%u" : "at%u[%u] + %uu", r, s, j);
            fprintf(w->out, "    burst%u[b]%s = gs_feature(own[%u], &a.all, k, %uu, %s);\n", r, to,
                    gs_gen_own(w, GS_OWN_FEATURES, 0), reg->columns, at);
        }
}

/* Registers whose rows differ from edge to edge are reached from the lane's own columns of row 0, so that an address
 * is one multiplication and addition: at7[0] those of the slots that all lanes have, the others' apart, as lanes
 * without columns load the last one. Narrow ones have a number a slot, at places of its own. */
static void gen_point_typed(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++) {
        const gs_edge_reg *const reg = &w->s->edge_reg[r];
        const uint32_t each = gs_gen_each(w, reg->width), bytes = (uint32_t)gs_dtype_bytes(dtype_of(w, r));
        char start[64];
        if (!gen_is_typed(w, r) || reg->kind == GS_EDGE_WEIGHT)
            continue;
        if (reg->kind == GS_EDGE_FEATURES) {
            point_feature(w, r);
            continue;
        }
        if (reg->kind == GS_EDGE_TARGET)
            snprintf(start, sizeof(start), "(const char *)(own[%u] + row * %uu)", gs_gen_own(w, GS_OWN_ROWS, r),
                     w->p->array[reg->array].width);
        else
            snprintf(start, sizeof(start), "(const char *)a.all.in[%u]", gen_input(w, false, r));
        if (is_one(w, r)) {
            fprintf(w->out, "    const char *const at%u = gs_made_address(%s + slice / %uu * %uu);\n", r, start, each,
                    bytes);
            continue;
        }
        fprintf(w->out, "    const char *at%u[%u];\n", r, w->k->slots);
        gs_gen_each_slot(w);
        fprintf(w->out, "        (void)within;\n        at%u[s] = gs_made_address(%s + ", r, start);
        fprintf(w->out, gs_gen_ragged(w) ? "gs_column_within(c, end - %uu)" : "c", w->k->vector);
        fprintf(w->out, " / %uu * %uu);\n    }\n", each, bytes);
    }
}

/* The address of the register's row for an edge, from the lane's columns `at` on. */
static void write_address(const gs_gen_writer *w, char *to, size_t room, const char *at, uint32_t r)
{
    const gs_edge_reg *const reg = &w->s->edge_reg[r];
    const uint32_t bytes = reg->width * (uint32_t)gs_dtype_bytes(dtype_of(w, r));
    if (reg->kind == GS_EDGE_TEMP)
        snprintf(to, room, "gs_edge_row(%s, place, %uu)", at, bytes);
    else if (reg->kind == GS_EDGE_TARGET)
        snprintf(to, room, "gs_edge_row(%s, type, %uu)", at, bytes);
    else if (reg->typed)
        snprintf(to, room, "gs_edge_row(gs_edge_row(%s, operand, %uu), type, %uu)", at,
                 w->p->array[reg->array].width * 4, bytes);
    else
        snprintf(to, room, "gs_edge_row(%s, operand, %uu)", at, bytes);
}

/* burst7[b] = the register's columns of the row of the edge's operand, type or place. */
static void load_of_edge(gs_gen_writer *w, uint32_t r)
{
    const gs_edge_reg *const reg = &w->s->edge_reg[r];
    const gs_dtype dtype = dtype_of(w, r);
    const bool wide = gs_gen_shape_of(w, reg->width) == GS_GEN_WIDE && !is_one(w, r);
    const uint32_t v = w->k->vector, whole = wide ? whole_slots(w) : 0, row = w->k->lanes * v;
    char from[192], at[32];
    if (reg->kind == GS_EDGE_WEIGHT) {
        fprintf(w->out, "    burst%u[b] = chunk->weight == 0 ? 1.0f : chunk->weight[k];\n", r);
        return;
    }
    if (reg->kind == GS_EDGE_FEATURES) {
        load_feature(w, r);
        return;
    }
    for (uint32_t s = 0; s < (is_one(w, r) ? 1 : w->k->slots); s++) {
        snprintf(at, sizeof(at), is_one(w, r) ? "at%u" : "at%u[%u]", r, s < whole ? 0 : s);
        write_address(w, from, sizeof(from), at, r);
        if (s > 0 && s < whole)
            snprintf(from + strlen(from), sizeof(from) - strlen(from), " + %u",
                     s * row * (uint32_t)gs_dtype_bytes(dtype));
        if (wide && v > 1 && dtype == GS_F32)
            fprintf(w->out, "    gs_load%u(burst%u[b] + %u, (const float *)(const void *)(%s));\n", v, r, v * s, from);
        else if (wide && v > 1)
            fprintf(w->out, "    gs_load%u_%s(burst%u[b] + %u, %s);\n", v, gs_dtype_name(dtype), r, v * s, from);
        else if (gs_gen_shape_of(w, reg->width) == GS_GEN_SINGLE)
            fprintf(w->out, "    burst%u[b] = gs_of_%s(%s, 0);\n", r, gs_dtype_name(dtype), from);
        else
            fprintf(w->out, "    burst%u[b][%u] = gs_of_%s(%s, 0);\n", r, s, gs_dtype_name(dtype), from);
    }
}

/* Do registers or sums go by the type of the edge? */
static bool gen_needs_type(const gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        if (w->needed[r] && w->s->edge_reg[r].typed)
            return true;
    for (uint32_t i = 0; i < w->k->sums; i++)
        if (w->s->sum[w->k->sum[i]].kind == GS_SUM_ADD_TYPE)
            return true;
    return false;
}

static void gen_declare_typed(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        if (gen_is_typed(w, r)) {
            char name[32];
            snprintf(name, sizeof(name), "burst%u[%u]", r, w->k->burst);
            gs_gen_declare(w, name, gs_gen_shape_of(w, gs_gen_width(w, r)));
        }
}

static void gen_load_typed(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        if (gen_is_typed(w, r))
            load_of_edge(w, r);
}

static void gen_take_typed(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        if (gen_is_typed(w, r)) {
            const gs_gen_shape s = gs_gen_shape_of(w, gs_gen_width(w, r));
            const char *const at = s == GS_GEN_SINGLE ? "" : "[i]";
            char name[16];
            snprintf(name, sizeof(name), "r%u", r);
            gs_gen_declare(w, name, s);
            gs_gen_over(w, s);
            fprintf(w->out, "%s%s = burst%u[b]%s;\n", name, at, r, at);
        }
}

static void gen_load_params(gs_gen_writer *w)
{
    GS_FREED bool *const seen = gs_calloc(w->p->params + 1, 1);
    for (uint32_t i = 0; seen != NULL && i < w->s->edge_instrs; i++)
        for (uint32_t o = 0; o < gs_op_inputs(w->s->edge_instr[i].op); o++) {
            const gs_operand *const from = gs_instr_operand(&w->s->edge_instr[i], o);
            char name[16], row[32];
            if (!w->needed[w->s->edge_instr[i].dst] || gs_op_on_edges(w->s->edge_instr[i].op) ||
                from->kind != GS_FROM_PARAM || seen[from->index])
                continue;
            seen[from->index] = true;
            snprintf(name, sizeof(name), "p%u", from->index);
            snprintf(row, sizeof(row), "a.all.in[%u]", gen_input(w, true, from->index));
            gs_gen_declare(w, name, gs_gen_shape_of(w, w->p->param[from->index].cols));
            gs_gen_load(w, name, row, w->p->param[from->index].cols, false);
        }
}

/* ---- masks ----
 *
 * Masks of edges (program.h, edge_mask): random bits cost some 45 instructions, so no two lanes of a group make the
 * same. The draws of a burst, each of 4 columns of an edge, are divided among the lanes, and whoever needs a column's
 * bit reads it from the lane that made it. An edge's rank among its parallels comes from one bit an edge, which the
 * lane that loads the edge's numbers has, and from the burst before. */

/* How the draws of a mask are laid out: draw `four` of edge b, less the slice's first, is number
 * b / edges * rounds + four / lanes of lane b % edges * fours + four % lanes. */
typedef struct draw_layout {
    uint32_t width, each;   /* columns of the mask; of the frame to one of them */
    uint32_t fours;         /* draws of an edge that a group needs at the most */
    uint32_t edges, rounds; /* edges at once; or draws a lane makes of one edge */
    uint32_t draws;         /* of a lane, for a burst */
} draw_layout;

static draw_layout layout_of(const gs_gen_writer *w, const gs_instr *in)
{
    const gs_edge_kernel *const k = w->k;
    draw_layout d = {.width = gs_gen_width(w, in->dst), .rounds = 1};
    d.each = gs_gen_each(w, d.width);
    for (uint32_t i = 0; i < k->slices; i++) {
        const uint32_t first = i * k->slice / d.each, last = (GS_MIN((i + 1) * k->slice, k->width) - 1) / d.each;
        d.fours = GS_MAX(d.fours, last / 4 - first / 4 + 1);
    }
    d.edges = GS_MAX(k->lanes / d.fours, 1u);
    if (d.fours > k->lanes)
        d.rounds = (uint32_t)gs_div_up(d.fours, k->lanes);
    d.draws = (uint32_t)gs_div_up(k->burst, d.edges) * d.rounds;
    return d;
}

static bool is_needed(const gs_gen_writer *w, const gs_instr *in)
{
    return in->op == GS_OP_EDGE_MASK && w->needed[in->dst];
}

/* Masks of edges. A draw is 4 columns of an edge. Before the first edge; what a burst's draws are made of (its numbers
 * are at hand); the draws; and the mask of edge b from them. */
static bool gen_draws(const gs_gen_writer *w)
{
    bool draws = false;
    for (uint32_t i = 0; i < w->s->edge_instrs; i++)
        draws |= is_needed(w, &w->s->edge_instr[i]);
    return draws;
}

/* May a burst have more edges than the group has lanes? */
static bool gen_draws_alone(const gs_gen_writer *w)
{
    bool alone = true;
    for (uint32_t i = 0; i < w->s->edge_instrs; i++)
        alone &= !is_needed(w, &w->s->edge_instr[i]) || layout_of(w, &w->s->edge_instr[i]).fours == 1;
    return alone;
}

/* Keys are the same for all edges; those of the first mask come with the launch. */
static void gen_begin_draws(gs_gen_writer *w)
{
    w->k->draws = gen_draws(w);
    if (!w->k->draws)
        return;
    fprintf(w->out, "    gs_u32 parallels = gs_first_parallel(chunk, &a.all, it.target, it.from);\n");
    fprintf(w->out, "    gs_u32 last[2] = {gs_index(chunk->index, a.all.index_bytes, it.from), "
                    "gs_edge_type(chunk, &a.all, it.from)};\n");
    for (uint32_t i = 0, masks = 0; i < w->s->edge_instrs; i++) {
        const gs_instr *const in = &w->s->edge_instr[i];
        if (!is_needed(w, in))
            continue;
        if (masks++ == 0) {
            w->k->site = in->site;
            fprintf(w->out, "    const gs_u32 *const round%u = a.all.round;\n", in->dst);
            continue;
        }
        fprintf(w->out, "    gs_u32 key%u[4] = {%uu, a.all.epoch, 0, 0}, round%u[GS_ROUND_KEYS];\n", in->dst, in->site,
                in->dst);
        fprintf(w->out, "    gs_philox(key%u, a.all.key[0], a.all.key[1]);\n", in->dst);
        fprintf(w->out, "    gs_round_keys(round%u, gs_made_number(key%u[0]), gs_made_number(key%u[1]));\n", in->dst,
                in->dst, in->dst);
    }
}

/* "r3", or where the id is the operand's, what loads it. */
static void write_id(gs_gen_writer *w, char text[64], uint32_t r)
{
    if (w->s->edge_reg[r].kind == GS_EDGE_OPERAND)
        snprintf(text, 64, "a.all.in[%u][operand]", gen_input(w, false, r));
    else
        snprintf(text, 64, "r%u", r);
}

static void count_draws(gs_gen_writer *w, const gs_instr *in)
{
    const draw_layout d = layout_of(w, in);
    const uint32_t lanes = w->k->lanes, each = GS_MIN(d.fours, lanes);
    char source[64], destination[64];
    write_id(w, source, in->a.index);
    write_id(w, destination, in->b.index);
    fprintf(w->out, "    gs_draw draw%u[%u];\n    GS_UNROLL for (gs_u32 o = 0; o < %uu; o++) {\n", in->dst, d.draws,
            d.draws);
    if (d.fours == 1) { /* the edges whose numbers the lane has */
        fprintf(w->out, "        const gs_u32 b = o * %uu + gs_lane() %% %uu %% GS_WALK_TYPED;\n", lanes, lanes);
        fprintf(w->out, "        const gs_u32 operand = own_index[o], type = own_drawn[o];\n");
    } else {
        fprintf(w->out, "        const gs_u32 b = gs_column_within(o / %uu * %uu + gs_lane() %% %uu / %uu, "
                        "GS_WALK_TYPED - 1);\n", d.rounds, d.edges, lanes, each);
        fprintf(w->out, "        const gs_u32 operand = gs_group_read(own_index[0], b, %uu);\n", lanes);
        fprintf(w->out, "        const gs_u32 type = gs_group_read(own_drawn[0], b, %uu);\n", lanes);
    }
    fprintf(w->out, "        const gs_u32 rank = first + b - gs_first_in_typed(parallel, first, b, parallels);\n");
    fprintf(w->out, "        draw%u[o] = gs_edge_draw(%s, %s, rank, type, slice / %uu / 4 + o %% %uu * %uu + gs_lane() "
                    "%% %uu %% %uu, %uu, %d);\n    }\n",
            in->dst, source, destination, d.each, d.rounds, lanes, lanes, each, (uint32_t)gs_div_up(d.width, 4),
            in->self);
}

static void gen_count_draws(gs_gen_writer *w)
{
    if (!gen_draws(w))
        return;
    fprintf(w->out, "    const gs_u32 parallel = gs_parallel_edges(own_index, own_drawn, GS_WALK_TYPED, "
                    "GS_WALK_LANES, operands[GS_WALK_TYPED - 1], last);\n");
    for (uint32_t i = 0; i < w->s->edge_instrs; i++)
        if (is_needed(w, &w->s->edge_instr[i]))
            count_draws(w, &w->s->edge_instr[i]);
    fprintf(w->out, "    parallels = gs_first_in_typed(parallel, first, GS_WALK_TYPED - 1, parallels);\n");
}

/* A mask of one column is its values; others are bits. */
static void gen_make_draws(gs_gen_writer *w)
{
    for (uint32_t i = 0; i < w->s->edge_instrs; i++) {
        const gs_instr *const in = &w->s->edge_instr[i];
        if (!is_needed(w, in))
            continue;
        const draw_layout d = layout_of(w, in);
        char scale[48];
        gs_generate_constant(scale, sizeof(scale), 1.0f / (1.0f - in->alpha));
        fprintf(w->out, "    gs_u32 kept%u[%u];\n    GS_UNROLL for (gs_u32 o = 0; o < %uu; o++)\n", in->dst, d.draws,
                d.draws);
        fprintf(w->out, "        kept%u[o] = gs_draw_kept(&draw%u[o], round%u, %uu, %uu)", in->dst, in->dst, in->dst,
                gs_generate_threshold(in->alpha), GS_MIN(d.width, 4u));
        if (d.width == 1)
            fprintf(w->out, " ? gs_bits_of_float(%s) : 0", scale);
        fprintf(w->out, ";\n");
    }
}

/* word = the bits of edge b's draw `four`. */
static void read_kept(gs_gen_writer *w, const gs_instr *in, const draw_layout *d)
{
    const uint32_t lanes = w->k->lanes;
    if (d->rounds == 1) {
        fprintf(w->out, "        const gs_u32 word = gs_group_read(kept%u[b / %uu], b %% %uu * %uu + four, %uu);\n",
                in->dst, d->edges, d->edges, d->fours, lanes);
        return;
    }
    fprintf(w->out, "        gs_u32 word = 0;\n        GS_UNROLL for (gs_u32 o = 0; o < %uu; o++) {\n", d->rounds);
    fprintf(w->out, "            const gs_u32 its = gs_group_read(kept%u[b * %uu + o], four %% %uu, %uu);\n", in->dst,
            d->rounds, lanes, lanes);
    fprintf(w->out, "            word = four / %uu == o ? its : word;\n        }\n", lanes);
}

void gs_gen_take_mask(gs_gen_writer *w, const gs_instr *in)
{
    const draw_layout d = layout_of(w, in);
    const gs_gen_shape s = gs_gen_shape_of(w, d.width);
    char scale[48];
    gs_generate_constant(scale, sizeof(scale), 1.0f / (1.0f - in->alpha));
    if (d.width == 1) {
        fprintf(w->out, s == GS_GEN_SINGLE ? "    r%u" : "    r%u[0]", in->dst);
        fprintf(w->out, " = gs_float_of_bits(gs_group_read(kept%u[b / %uu], b %% %uu, %uu));\n", in->dst, d.edges,
                d.edges, w->k->lanes);
        return;
    }
    if (s == GS_GEN_GROUPED && w->k->one_group) {
        fprintf(w->out, "    {\n        const gs_u32 column = slice / %uu, four = 0;\n", d.each);
        read_kept(w, in, &d);
        fprintf(w->out, "        r%u[0] = word >> column %% 4 & 1 ? %s : 0.0f;\n    }\n", in->dst, scale);
        return;
    }
    gs_gen_each_slot(w);
    fprintf(w->out, "        (void)within;\n        const gs_u32 column = c / %uu;\n", d.each);
    fprintf(w->out, "        const gs_u32 four = column / 4 - slice / %uu / 4;\n", d.each);
    read_kept(w, in, &d);
    if (s == GS_GEN_GROUPED)
        fprintf(w->out, "        r%u[s] = word >> column %% 4 & 1 ? %s : 0.0f;\n    }\n", in->dst, scale);
    else
        fprintf(w->out, "        for (gs_u32 v = 0; v < %uu; v++)\n            r%u[%uu * s + v] = word >> (column + v) "
                        "%% 4 & 1 ? %s : 0.0f;\n    }\n",
                w->k->vector, in->dst, w->k->vector, scale);
}

/* ---- the kernel ---- */

#define MOST_WIDTH 8192u /* of a frame of widths that do not divide each other */
#define SHARED_MOST (48u * 1024) /* bytes that a block of any GPU has without asking */

/* ---- what a kernel needs ---- */

/* Marks, from the sums backwards, what their scores, or their values, depend on. */
static void mark(gs_gen_writer *w, bool scores, bool values)
{
    const gs_stage *const s = w->s;
    if (w->k->keeps && values)
        w->needed[w->k->kept] = true;
    for (uint32_t i = 0; i < w->k->sums; i++) {
        const gs_sum *const sum = &s->sum[w->k->sum[i]];
        if (values)
            w->needed[sum->value] = true;
        if (sum->kind == GS_SUM_ATTEND && scores)
            w->needed[sum->score] = true;
    }
    for (uint32_t i = s->edge_instrs; i-- > 0;) {
        const gs_instr *const in = &s->edge_instr[i];
        for (uint32_t o = 0; o < gs_op_inputs(in->op) && w->needed[in->dst] && !gs_op_on_edges(in->op); o++) {
            const gs_operand *const from = gs_instr_operand(in, o);
            /* ids at the operand end are loaded by who draws */
            if (from->kind == GS_FROM_REG &&
                !(in->op == GS_OP_EDGE_MASK && s->edge_reg[from->index].kind == GS_EDGE_OPERAND))
                w->needed[from->index] = true;
        }
    }
}

/* Finds the registers that the sums depend on; then, forwards, those that change with the edge. */
static void find_needs(gs_gen_writer *w)
{
    const gs_stage *const s = w->s;
    memset(w->needed, 0, sizeof(w->needed));
    mark(w, true, true);
    for (uint32_t r = 0; r < s->edge_regs; r++)
        w->per_edge[r] = s->edge_reg[r].kind != GS_EDGE_TARGET || s->edge_reg[r].typed;
    for (uint32_t i = 0; i < s->edge_instrs; i++) {
        const gs_instr *const in = &s->edge_instr[i];
        w->per_edge[in->dst] = in->op == GS_OP_EDGE_MASK || gs_op_on_edges(in->op);
        for (uint32_t o = 0; o < gs_op_inputs(in->op); o++)
            w->per_edge[in->dst] |=
                gs_instr_operand(in, o)->kind == GS_FROM_REG && w->per_edge[gs_instr_operand(in, o)->index];
    }
}

static uint64_t common_multiple(uint64_t a, uint64_t b)
{
    uint64_t x = a, y = b;
    while (y != 0) {
        const uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* Width of the frame of the needed registers. */
static uint64_t frame_width(const gs_gen_writer *w)
{
    uint64_t width = 1;
    for (uint32_t r = 0; r < w->s->edge_regs && width <= UINT32_MAX; r++)
        if (w->needed[r])
            width = common_multiple(width, gs_gen_width(w, r));
    return width;
}

static uint64_t widest(const gs_gen_writer *w)
{
    uint64_t width = 1;
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        if (w->needed[r])
            width = GS_MAX(width, gs_gen_width(w, r));
    return width;
}

/* Columns that one group must take together: those of a number that they fold into, or share a
 * maximum with, or add up to only once. */
static uint32_t unit_of(const gs_gen_writer *w)
{
    uint64_t unit = 1;
    for (uint32_t i = 0; i < w->k->sums; i++) {
        const gs_sum *const sum = &w->s->sum[w->k->sum[i]];
        unit = common_multiple(unit, gs_gen_each(w, gs_gen_width(w, sum->value)));
        if (sum->kind == GS_SUM_ATTEND)
            unit = common_multiple(unit, gs_gen_each(w, gs_gen_width(w, sum->score)));
    }
    for (uint32_t i = 0; i < w->s->edge_instrs; i++) {
        const gs_instr *const in = &w->s->edge_instr[i];
        if (w->needed[in->dst] && gs_gen_folds(in->op))
            unit = common_multiple(unit, gs_gen_each(w, gs_gen_width(w, in->dst)));
    }
    return (uint32_t)unit;
}

/* Vectors of 4 and 2 where rows are whole ones and none spans two groups of columns; of numbers of two bytes 8 at
 * first, so that a load has 16 bytes. */
static uint32_t vector_of(const gs_gen_writer *w)
{
    for (uint32_t v = w->k->rows.dtype == GS_F32 ? 4 : 8; v > 1; v /= 2) {
        bool fits = w->k->width % v == 0;
        for (uint32_t r = 0; r < w->s->edge_regs; r++)
            if (w->needed[r] && gs_gen_shape_of(w, gs_gen_width(w, r)) == GS_GEN_GROUPED)
                fits = fits && gs_gen_each(w, gs_gen_width(w, r)) % v == 0;
        if (fits)
            return v;
    }
    return 1;
}

/* Loads of so many edges go out together. What is under way in a processor must cover its share of the bandwidth times
 * the latency: of an H200 4.8 TB/s / 132 * 0.8 us = 29 KiB. With 24 numbers a lane, 1280 lanes (of 48 registers each)
 * have 120 KiB under way: enough where three quarters of them idle (targets of fewer edges than their neighbours in the
 * warp) or wait. */
#define BURST_FLOATS 24u
#define PROGRAM_FLOATS 20u /* where edges have instructions, whose values take registers, too */
/* Where edges have masks, what a burst's draws take is divided by more edges. Lanes have 80 registers then, where
 * attention is narrow, and a processor has 96 KiB under way at 64 columns. */
#define DRAWN_FLOATS 40u
#define DRAWN_BLOCKS 3u
#define BLOCKS 5u /* of a processor: a lane has 48 registers then, which sums of rows and narrow attention fit */

static bool is_row_sum(const gs_gen_writer *w) { return w->k->rows.width > 0; }

static void choose_burst(gs_gen_writer *w)
{
    static const uint32_t sizes[] = {8, 6, 4, 3, 2, 1};
    uint32_t floats = 0, i = 0;
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        if (gen_is_typed(w, r))
            floats += gs_gen_length(w, gs_gen_shape_of(w, gs_gen_width(w, r)));
    const bool draws = gen_draws(w);
    const uint32_t most = is_row_sum(w) ? BURST_FLOATS : draws ? DRAWN_FLOATS : PROGRAM_FLOATS;
    while (sizes[i] > 1 && (sizes[i] * floats > most || (sizes[i] > w->k->lanes && !gen_draws_alone(w))))
        i++;
    w->k->burst = sizes[i];
    const bool plain = is_row_sum(w) && w->k->rows.by == GS_TYPES_NONE;
    const bool narrow = w->k->slices == 1 && w->k->slots * w->k->vector <= 4;
    w->k->blocks = w->k->burst > 1 && (plain || (gs_gen_attends(w) && narrow)) ? draws ? DRAWN_BLOCKS : BLOCKS : 1;
}

/* Does every narrower register, or parameter, have one number for all columns of a slice? */
static bool is_one_group(const gs_gen_writer *w)
{
    const uint32_t slice = w->k->slice;
    bool one = true;
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        if (w->needed[r] && gs_gen_shape_of(w, gs_gen_width(w, r)) == GS_GEN_GROUPED)
            one = one && gs_gen_each(w, gs_gen_width(w, r)) % slice == 0;
    for (uint32_t i = 0; i < w->s->edge_instrs; i++)
        for (uint32_t o = 0; o < gs_op_inputs(w->s->edge_instr[i].op) && w->needed[w->s->edge_instr[i].dst]; o++) {
            const gs_operand *const from = gs_instr_operand(&w->s->edge_instr[i], o);
            if (from->kind == GS_FROM_PARAM &&
                gs_gen_shape_of(w, w->p->param[from->index].cols) == GS_GEN_GROUPED)
                one = one && gs_gen_each(w, w->p->param[from->index].cols) % slice == 0;
        }
    return one;
}

/* Up to two vectors a lane, or 4 numbers, and enough lanes for the slice (feature-adaptive groups). What an edge costs
 * beside its columns (its number, its address, a score) is paid once a group, so narrow rows have narrow groups. */
static void choose_group(gs_gen_writer *w)
{
    gs_edge_kernel *const k = w->k;
    k->vector = vector_of(w);
    const uint32_t step = (uint32_t)common_multiple(unit_of(w), k->vector), each = GS_MAX(k->vector, 4u);
    const uint32_t most = 32 * k->vector * 2, span = step / k->vector;
    /* heads whose lanes shuffles do not add up by themselves: a group each */
    const bool alone = step >= 32 && step <= most && (span & (span - 1)) != 0;
    k->slice = alone ? step : k->width <= most ? k->width : GS_MAX(most / step, 1u) * step;
    k->slices = (uint32_t)gs_div_up(k->width, k->slice);
    k->slice = (uint32_t)gs_div_up(gs_div_up(k->width, k->slices), step) * step; /* equal slices */
    k->slices = (uint32_t)gs_div_up(k->width, k->slice);
    for (k->lanes = 1; k->lanes < 32 && k->lanes * each < k->slice; k->lanes *= 2)
        ;
    k->slots = (uint32_t)gs_div_up(k->slice, k->lanes * k->vector);
    k->one_group = is_one_group(w);
    choose_burst(w);
}

/* ---- kernels ---- */

/* A macro of walk.inc: the statements that `write` writes. */
static void define(gs_gen_writer *w, const char *macro, void (*write)(gs_gen_writer *w))
{
    char *body = NULL;
    size_t bytes = 0;
    FILE *const out = w->out, *const text = open_memstream(&body, &bytes);
    if (text == NULL) {
        w->st = gs_fail(GS_ENOMEM, "device cuda: out of memory for the text of kernels");
        return;
    }
    w->out = text;
    write(w);
    w->out = out;
    fclose(text);
    fprintf(out, "#define %s \\\n", macro);
    for (size_t i = 0; i < bytes; i++)
        fputs(body[i] == '\n' ? " \\\n" : (const char[]){body[i], '\0'}, out);
    fputc('\n', out);
    free(body); /* open_memstream's */
}

static void write_open(gs_gen_writer *w)
{
    gen_load_registers(w);
    gen_load_params(w);
    gen_point_typed(w);
    gen_begin_draws(w);
    gs_gen_write_instrs(w, false);
    gs_gen_begin_sums(w);
}

static void write_rows(gs_gen_writer *w)
{
    gen_declare_typed(w);
    gs_gen_declare_scores(w);
}

/* Statements of an edge, as far as its scores, or its values, need them. */
static void write_part(gs_gen_writer *w, bool scores)
{
    bool all[GS_GEN_EDGE_REGS];
    memcpy(all, w->needed, sizeof(all));
    memset(w->needed, 0, sizeof(w->needed));
    mark(w, scores, !scores);
    gen_take_typed(w);
    gs_gen_write_instrs(w, true);
    memcpy(w->needed, all, sizeof(all));
}

static void write_score(gs_gen_writer *w)
{
    if (!gs_gen_attends(w))
        return;
    write_part(w, true);
    gs_gen_keep_scores(w);
}

static void write_add(gs_gen_writer *w)
{
    write_part(w, false);
    if (w->k->keeps)
        gen_keep_edge(w);
    else
        gs_gen_add_edge(w);
}

static void write_kernel(gs_gen_writer *w)
{
    gs_edge_kernel *const k = w->k;
    k->row_floats = gs_gen_row_floats(w);
    choose_group(w);
    fprintf(w->out, "\n#define GS_WALK %s\n#define GS_WALK_LANES %uu\n#define GS_WALK_VECTOR %uu\n", k->name,
            k->lanes, k->vector);
    fprintf(w->out, "#define GS_WALK_WIDTH %uu\n#define GS_WALK_SLICE %uu\n#define GS_WALK_SLICES %u\n", k->width,
            k->slice, k->slices);
    fprintf(w->out, "#define GS_WALK_BLOCKS %u\n", k->blocks);
    fprintf(w->out, "#define GS_WALK_TYPED %uu\n#define GS_WALK_TYPES %d\n#define GS_WALK_PLACES %d\n", k->burst,
            gen_needs_type(w), gen_needs_place(w));
    fprintf(w->out, "#define GS_WALK_DRAWS %d\n", gen_draws(w));
    define(w, "GS_WALK_OPEN", write_open);
    define(w, "GS_WALK_ROWS", write_rows);
    define(w, "GS_WALK_LOAD", gen_load_typed);
    define(w, "GS_WALK_COUNT", gen_count_draws);
    define(w, "GS_WALK_DRAW", gen_make_draws);
    define(w, "GS_WALK_SCORE", write_score);
    define(w, "GS_WALK_RESCALE", gs_gen_rescale_sums);
    define(w, "GS_WALK_ADD", write_add);
    define(w, "GS_WALK_CLOSE", gs_gen_end_sums);
    if (!k->keeps) {
        fprintf(w->out, "#define GS_WALK_MERGE %s_merge\n", k->name);
        define(w, "GS_WALK_PIECES", gs_gen_merge_sums);
    }
    if (GS_BLOCK_LANES / k->lanes * k->shared_floats * sizeof(float) > SHARED_MOST)
        gs_gen_refuse(w, "its edge program folds too many columns at once");
    fprintf(w->out, "#define GS_WALK_FOLD %u\n#include \"walk.inc\"\n", k->shared_floats);
}

/* As an edge program: of a scaled sum its registers are the row, the row's number and their product. */
void gs_generate_rows(FILE *out, gs_edge_kernel *k, const gs_row_sums *rows)
{
    const bool split = rows->by == GS_TYPES_OF_SUM;
    const uint32_t width = rows->width;
    gs_array array[] = {{.width = width * rows->types, .dtype = rows->dtype}, {.width = 1, .dtype = GS_F32}};
    gs_reg sum = {.width = width * rows->types};
    gs_edge_reg reg[] = {{.kind = GS_EDGE_OPERAND, .width = width, .typed = rows->by == GS_TYPES_OF_ROWS},
                         {.kind = GS_EDGE_OPERAND, .width = 1, .array = 1},
                         {.kind = GS_EDGE_TEMP, .width = width, .array = GS_NONE}};
    gs_instr product = {.op = GS_OP_MUL, .dst = 2, .a = {.kind = GS_FROM_REG}, .b = {.kind = GS_FROM_REG, .index = 1}};
    gs_stage s = {.name = "sums of rows", .sums = 1,
                  .sum = {{.kind = split ? GS_SUM_ADD_TYPE : GS_SUM_ADD, .value = rows->scaled ? 2 : 0}},
                  .reg = &sum, .edge_regs = rows->scaled ? 3 : 1, .edge_reg = reg,
                  .edge_instrs = rows->scaled ? 1 : 0, .edge_instr = &product};
    const gs_program p = {.arrays = 2, .array = array, .stages = 1, .stage = &s};
    gs_gen_writer w = {.out = out, .k = k, .p = &p, .s = &s};
    *k = (gs_edge_kernel){.rows = *rows, .width = width, .sums = 1};
    if (rows->by == GS_TYPES_NONE)
        snprintf(k->name, sizeof(k->name), "gs_%srows_%s_%u", rows->scaled ? "scaled_" : "",
                 gs_dtype_name(rows->dtype), width);
    else
        snprintf(k->name, sizeof(k->name), "gs_%s_%u_%u", split ? "split" : "pick", width, rows->types);
    find_needs(&w);
    write_kernel(&w);
}

/* Together where the widest register's columns are the frame's: else each sum alone. */
static gs_status place_sums(gs_gen_writer *w, gs_edge_kernel *k, uint32_t *count)
{
    *count = 0;
    k[0] = (gs_edge_kernel){.sums = 0};
    for (uint32_t i = 0; i < w->s->sums; i++) {
        if (gs_sum_is_sequence(&w->s->sum[i]))
            return gs_gen_refuse(w, "sums of this kind are not there");
        if (!gs_stage_sums_rows(w->s, i) && w->s->sum[i].kind != GS_SUM_OUTER) /* those are typed.cu's */
            k[0].sum[k[0].sums++] = i;
    }
    if (k[0].sums == 0)
        return GS_OK;
    *count = 1;
    w->k = &k[0];
    find_needs(w);
    if (frame_width(w) == widest(w))
        return GS_OK;
    const gs_edge_kernel all = k[0];
    *count = all.sums;
    for (uint32_t i = 0; i < all.sums; i++) {
        k[i] = (gs_edge_kernel){.sums = 1, .sum = {all.sum[i]}};
        w->k = &k[i];
        find_needs(w);
        if (frame_width(w) > GS_MAX(widest(w), MOST_WIDTH))
            return gs_gen_refuse(w, "widths of an edge program that do not divide each other");
    }
    return GS_OK;
}

gs_status gs_generate_edges(FILE *out, gs_edge_kernel *k, uint32_t *count, const gs_program *p, uint32_t stage)
{
    gs_gen_writer w = {.out = out, .k = k, .p = p, .s = &p->stage[stage]};
    if (w.s->edge_regs > GS_GEN_EDGE_REGS)
        return gs_gen_refuse(&w, "its edge program has too many registers");
    if (place_sums(&w, k, count) != GS_OK)
        return w.st;
    for (uint32_t i = 0; i < *count && w.st == GS_OK; i++) {
        w.k = &k[i];
        snprintf(w.k->name, sizeof(w.k->name), "gs_edges_%u_%u", stage, i);
        find_needs(&w);
        w.k->width = (uint32_t)frame_width(&w);
        write_kernel(&w);
    }
    return w.st;
}

gs_status gs_generate_keep(FILE *out, gs_edge_kernel *k, const gs_program *p, uint32_t stage, uint32_t reg)
{
    gs_gen_writer w = {.out = out, .k = k, .p = p, .s = &p->stage[stage]};
    *k = (gs_edge_kernel){.keeps = true, .kept = reg};
    if (w.s->edge_regs > GS_GEN_EDGE_REGS)
        return gs_gen_refuse(&w, "its edge program has too many registers");
    snprintf(k->name, sizeof(k->name), "gs_keep_%u_%u", stage, reg);
    find_needs(&w);
    if (frame_width(&w) > GS_MAX(widest(&w), MOST_WIDTH))
        return gs_gen_refuse(&w, "widths of an edge program that do not divide each other");
    k->width = (uint32_t)frame_width(&w);
    write_kernel(&w);
    return w.st;
}
