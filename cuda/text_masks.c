/* Masks of edges (program.h, edge_mask): random bits cost some 45 instructions, so no two lanes of a group make the
 * same. The draws of a burst, each of 4 columns of an edge, are divided among the lanes, and whoever needs a column's
 * bit reads it from the lane that made it. An edge's rank among its parallels comes from one bit an edge, which the
 * lane that loads the edge's numbers has, and from the burst before. */
#include "base/size.h"
#include "cuda/text_internal.h"

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

bool gs_gen_draws(const gs_gen_writer *w)
{
    bool draws = false;
    for (uint32_t i = 0; i < w->s->edge_instrs; i++)
        draws |= is_needed(w, &w->s->edge_instr[i]);
    return draws;
}

bool gs_gen_draws_alone(const gs_gen_writer *w)
{
    bool alone = true;
    for (uint32_t i = 0; i < w->s->edge_instrs; i++)
        alone &= !is_needed(w, &w->s->edge_instr[i]) || layout_of(w, &w->s->edge_instr[i]).fours == 1;
    return alone;
}

/* Keys are the same for all edges; those of the first mask come with the launch. */
void gs_gen_begin_draws(gs_gen_writer *w)
{
    w->k->draws = gs_gen_draws(w);
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
        snprintf(text, 64, "a.all.in[%u][operand]", gs_gen_input(w, false, r));
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

void gs_gen_count_draws(gs_gen_writer *w)
{
    if (!gs_gen_draws(w))
        return;
    fprintf(w->out, "    const gs_u32 parallel = gs_parallel_edges(own_index, own_drawn, GS_WALK_TYPED, "
                    "GS_WALK_LANES, operands[GS_WALK_TYPED - 1], last);\n");
    for (uint32_t i = 0; i < w->s->edge_instrs; i++)
        if (is_needed(w, &w->s->edge_instr[i]))
            count_draws(w, &w->s->edge_instr[i]);
    fprintf(w->out, "    parallels = gs_first_in_typed(parallel, first, GS_WALK_TYPED - 1, parallels);\n");
}

/* A mask of one column is its values; others are bits. */
void gs_gen_make_draws(gs_gen_writer *w)
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
