/* Kernels of sums over edges: their registers, how lanes share the columns, their sums.
 *
 * A group of lanes takes a target and goes over its edges in order, so a sum does not depend on anything but
 * the chunk. Targets with very many edges (hubs) are cut in pieces by the launch's sizes alone, each with sums of its
 * own, which a second kernel adds up in the order of the pieces.
 */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "cuda/text_internal.h"

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
        for (uint32_t o = 0; o < gs_op_inputs(in->op) && w->needed[in->dst] && !gs_op_by_type(in->op); o++) {
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
        w->per_edge[in->dst] = in->op == GS_OP_EDGE_MASK || gs_op_by_type(in->op);
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
        if (gs_gen_is_typed(w, r))
            floats += gs_gen_length(w, gs_gen_shape_of(w, gs_gen_width(w, r)));
    const bool draws = gs_gen_draws(w);
    const uint32_t most = is_row_sum(w) ? BURST_FLOATS : draws ? DRAWN_FLOATS : PROGRAM_FLOATS;
    while (sizes[i] > 1 && (sizes[i] * floats > most || (sizes[i] > w->k->lanes && !gs_gen_draws_alone(w))))
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
    gs_gen_load_registers(w);
    gs_gen_load_params(w);
    gs_gen_point_typed(w);
    gs_gen_begin_draws(w);
    gs_gen_write_instrs(w, false);
    gs_gen_begin_sums(w);
}

static void write_rows(gs_gen_writer *w)
{
    gs_gen_declare_typed(w);
    gs_gen_declare_scores(w);
}

/* Statements of an edge, as far as its scores, or its values, need them. */
static void write_part(gs_gen_writer *w, bool scores)
{
    bool all[GS_GEN_EDGE_REGS];
    memcpy(all, w->needed, sizeof(all));
    memset(w->needed, 0, sizeof(w->needed));
    mark(w, scores, !scores);
    gs_gen_take_typed(w);
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
        gs_gen_keep_edge(w);
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
            gs_gen_needs_type(w), gs_gen_needs_place(w));
    fprintf(w->out, "#define GS_WALK_DRAWS %d\n", gs_gen_draws(w));
    define(w, "GS_WALK_OPEN", write_open);
    define(w, "GS_WALK_ROWS", write_rows);
    define(w, "GS_WALK_LOAD", gs_gen_load_typed);
    define(w, "GS_WALK_COUNT", gs_gen_count_draws);
    define(w, "GS_WALK_DRAW", gs_gen_make_draws);
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
