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

/* ---- what a kernel needs ---- */

static void need(gs_gen_writer *w, uint32_t reg)
{
    w->needed[reg] = true;
    w->per_edge[reg] = w->s->edge_reg[reg].kind != GS_EDGE_TARGET;
}

/* Marks, from the sums backwards, what they depend on; then, forwards, what changes with the edge. */
static void find_needs(gs_gen_writer *w)
{
    const gs_stage *const s = w->s;
    memset(w->needed, 0, sizeof(w->needed));
    for (uint32_t i = 0; i < w->k->sums; i++) {
        const gs_sum *const sum = &s->sum[w->k->sum[i]];
        need(w, sum->value);
        if (sum->kind == GS_SUM_ATTEND)
            need(w, sum->score);
    }
    for (uint32_t i = s->edge_instrs; i-- > 0;) {
        const gs_instr *const in = &s->edge_instr[i];
        for (int o = 0; o < 2 && w->needed[in->dst]; o++)
            if ((o == 0 ? in->a : in->b).kind == GS_FROM_REG)
                need(w, (o == 0 ? in->a : in->b).index);
    }
    for (uint32_t i = 0; i < s->edge_instrs; i++) {
        const gs_instr *const in = &s->edge_instr[i];
        w->per_edge[in->dst] = in->op == GS_OP_EDGE_MASK || (in->a.kind == GS_FROM_REG && w->per_edge[in->a.index]) ||
                               (in->b.kind == GS_FROM_REG && w->per_edge[in->b.index]);
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
        if (w->needed[in->dst] && (in->op == GS_OP_FOLD || in->op == GS_OP_ROWSUM || in->op == GS_OP_ROWMAX))
            unit = common_multiple(unit, gs_gen_each(w, gs_gen_width(w, in->dst)));
    }
    return (uint32_t)unit;
}

/* Vectors of 4 and 2 where rows are whole ones and none spans two groups of columns. */
static uint32_t vector_of(const gs_gen_writer *w)
{
    for (uint32_t v = 4; v > 1; v /= 2) {
        bool fits = w->k->width % v == 0;
        for (uint32_t r = 0; r < w->s->edge_regs; r++)
            if (w->needed[r] && gs_gen_shape_of(w, gs_gen_width(w, r)) == GS_GEN_GROUPED)
                fits = fits && gs_gen_each(w, gs_gen_width(w, r)) % v == 0;
        if (fits)
            return v;
    }
    return 1;
}

/* Two vectors a lane, and enough lanes for the slice (feature-adaptive groups). */
static void choose_group(gs_gen_writer *w)
{
    gs_edge_kernel *const k = w->k;
    k->vector = vector_of(w);
    const uint32_t step = (uint32_t)common_multiple(unit_of(w), k->vector), most = 32 * k->vector * 2;
    k->slice = k->width <= most ? k->width : GS_MAX(most / step, 1u) * step;
    k->slices = (uint32_t)gs_div_up(k->width, k->slice);
    k->slice = (uint32_t)gs_div_up(gs_div_up(k->width, k->slices), step) * step; /* equal slices */
    k->slices = (uint32_t)gs_div_up(k->width, k->slice);
    for (k->lanes = 1; k->lanes < 32 && k->lanes * k->vector < k->slice; k->lanes *= 2)
        ;
    k->slots = (uint32_t)gs_div_up(k->slice, k->lanes * k->vector);
}


/* ---- sums ---- */

static const gs_sum *sum_at(const gs_gen_writer *w, uint32_t i) { return &w->s->sum[w->k->sum[i]]; }
static uint32_t sum_width(const gs_gen_writer *w, uint32_t i) { return gs_gen_width(w, sum_at(w, i)->value); }
static uint32_t heads_of(const gs_gen_writer *w, uint32_t i)
{
    return sum_at(w, i)->kind == GS_SUM_ATTEND ? gs_gen_width(w, sum_at(w, i)->score) : 0;
}

static const char *neutral_of(gs_sum_kind kind)
{
    return kind == GS_SUM_MAX ? "gs_float_of_bits(0xff800000u)" : kind == GS_SUM_MIN ? "gs_float_of_bits(0x7f800000u)" : "0.0f";
}

/* Floats before sum i within a hub's piece. */
static uint32_t offset_of(const gs_gen_writer *w, uint32_t i)
{
    uint32_t at = 0;
    for (uint32_t k = 0; k < i; k++)
        at += (uint32_t)gs_align_up(sum_width(w, k) + 2 * heads_of(w, k), 4);
    return at;
}

/* One of a sum's parts: x its rows, m the running maxima, n the norms. `state` is the name's first letter,
 * `rows` names the pointer. */
typedef void part_fn(gs_gen_writer *w, const char *name, const char *row, uint32_t width, const char *neutral);

static void each_part(gs_gen_writer *w, const char *state, const char *rows, part_fn *body)
{
    for (uint32_t i = 0; i < w->k->sums; i++) {
        static const char part[] = "xmn";
        for (int q = 0; q < (heads_of(w, i) > 0 ? 3 : 1); q++) {
            char name[32], row[32];
            snprintf(name, sizeof(name), "%s%c%u", state, part[q], i);
            snprintf(row, sizeof(row), "%s%c%u", rows, part[q], i);
            body(w, name, row, q == 0 ? sum_width(w, i) : heads_of(w, i),
                 q == 0 ? neutral_of(sum_at(w, i)->kind) : q == 1 ? "gs_float_of_bits(0xff800000u)" : "0.0f");
        }
    }
}

static void declare_part(gs_gen_writer *w, const char *name, const char *row, uint32_t width, const char *neutral)
{
    (void)row, (void)neutral;
    gs_gen_declare(w, name, gs_gen_shape_of(w, width));
}

static void load_part(gs_gen_writer *w, const char *name, const char *row, uint32_t width, const char *neutral)
{
    (void)neutral;
    gs_gen_load(w, name, row, width);
}

static void store_part(gs_gen_writer *w, const char *name, const char *row, uint32_t width, const char *neutral)
{
    (void)neutral;
    gs_gen_store(w, name, row, width);
}

static void clear_part(gs_gen_writer *w, const char *name, const char *row, uint32_t width, const char *neutral)
{
    const gs_gen_shape s = gs_gen_shape_of(w, width);
    (void)row;
    gs_gen_over(w, s);
    fprintf(w->out, "%s%s = %s;\n", name, s == GS_GEN_SINGLE ? "" : "[i]", neutral);
}

/* Pointers PREFIXx0, PREFIXm0, ...: to the target's rows, or into the piece's. */
static void point(gs_gen_writer *w, const char *prefix, bool piece, const char *slot)
{
    for (uint32_t i = 0; i < w->k->sums; i++) {
        const uint32_t width = sum_width(w, i), heads = heads_of(w, i), at = offset_of(w, i);
        static const char part[] = "xmn", *const array[] = {"acc", "maximum", "norm"};
        for (uint32_t q = 0; q < (heads > 0 ? 3u : 1u); q++) {
            fprintf(w->out, "    float *const %s%c%u = ", prefix, part[q], i);
            if (piece)
                fprintf(w->out, "a.partial + (gs_u64)%s * %uu + %u;\n", slot, w->k->row_floats,
                        at + (q == 0 ? 0 : width + (q - 1) * heads));
            else
                fprintf(w->out, "a.%s[%u] + row * %uu;\n", array[q], i, q == 0 ? width : heads);
        }
    }
}

/* One more edge: its value, and score, are there. */
static void add_edge(gs_gen_writer *w, uint32_t i)
{
    const gs_sum *const sum = sum_at(w, i);
    const gs_gen_shape s = gs_gen_shape_of(w, sum_width(w, i));
    const char *const at = s == GS_GEN_SINGLE ? "" : "[i]";
    char value[64], name[16];
    snprintf(name, sizeof(name), "r%u", sum->value);
    gs_gen_reference(w, value, sizeof(value), name, s, s);
    if (sum->kind == GS_SUM_ATTEND) {
        const gs_gen_shape h = gs_gen_shape_of(w, heads_of(w, i));
        const char *const e = h == GS_GEN_SINGLE ? "" : "[i]";
        char weight[64], scale[64];
        snprintf(name, sizeof(name), "e%u", i);
        gs_gen_declare(w, name, h);
        gs_gen_reference(w, weight, sizeof(weight), name, h, s);
        snprintf(name, sizeof(name), "g%u", i);
        gs_gen_declare(w, name, h);
        gs_gen_reference(w, scale, sizeof(scale), name, h, s);
        fprintf(w->out, h == GS_GEN_SINGLE ? "    {\n" : "    GS_UNROLL for (int i = 0; i < (int)(sizeof(e%u) / sizeof(float)); i++) {\n", i);
        fprintf(w->out, "        const float most = gs_larger(r%u%s, m%u%s);\n        g%u%s = gs_rescale(m%u%s, most);\n", sum->score, e,
                i, e, i, e, i, e);
        fprintf(w->out, "        e%u%s = expf(r%u%s - gs_base_of(most));\n        n%u%s = n%u%s * g%u%s + e%u%s;\n        m%u%s = most;\n    }\n",
                i, e, sum->score, e, i, e, i, e, i, e, i, e, i, e);
        gs_gen_over(w, s);
        fprintf(w->out, "x%u%s = x%u%s * %s + %s * %s;\n", i, at, i, at, scale, weight, value);
        return;
    }
    gs_gen_over(w, s);
    if (sum->kind == GS_SUM_ADD)
        fprintf(w->out, "x%u%s += %s;\n", i, at, value);
    else
        fprintf(w->out, "x%u%s = gs_%s(%s, x%u%s);\n", i, at, sum->kind == GS_SUM_MAX ? "larger" : "smaller", value, i, at);
}

/* The sums of a piece (names with q in front) to those before it. */
static void add_piece(gs_gen_writer *w, uint32_t i)
{
    const gs_sum *const sum = sum_at(w, i);
    const gs_gen_shape s = gs_gen_shape_of(w, sum_width(w, i));
    const char *const at = s == GS_GEN_SINGLE ? "" : "[i]";
    if (sum->kind == GS_SUM_ATTEND) {
        const gs_gen_shape h = gs_gen_shape_of(w, heads_of(w, i));
        const char *const e = h == GS_GEN_SINGLE ? "" : "[i]";
        char ours[64], theirs[64], name[16];
        snprintf(name, sizeof(name), "g%u", i);
        gs_gen_declare(w, name, h);
        gs_gen_reference(w, ours, sizeof(ours), name, h, s);
        snprintf(name, sizeof(name), "e%u", i);
        gs_gen_declare(w, name, h);
        gs_gen_reference(w, theirs, sizeof(theirs), name, h, s);
        fprintf(w->out, h == GS_GEN_SINGLE ? "    {\n" : "    GS_UNROLL for (int i = 0; i < (int)(sizeof(e%u) / sizeof(float)); i++) {\n", i);
        fprintf(w->out, "        const float most = gs_larger(qm%u%s, m%u%s);\n        g%u%s = gs_rescale(m%u%s, most);\n", i, e, i, e, i,
                e, i, e);
        fprintf(w->out, "        e%u%s = gs_rescale(qm%u%s, most);\n        n%u%s = n%u%s * g%u%s + qn%u%s * e%u%s;\n        m%u%s = most;\n    }\n",
                i, e, i, e, i, e, i, e, i, e, i, e, i, e, i, e);
        gs_gen_over(w, s);
        fprintf(w->out, "x%u%s = x%u%s * %s + qx%u%s * %s;\n", i, at, i, at, ours, i, at, theirs);
        return;
    }
    gs_gen_over(w, s);
    if (sum->kind == GS_SUM_ADD)
        fprintf(w->out, "x%u%s += qx%u%s;\n", i, at, i, at);
    else
        fprintf(w->out, "x%u%s = gs_%s(qx%u%s, x%u%s);\n", i, at, sum->kind == GS_SUM_MAX ? "larger" : "smaller", i, at, i, at);
}

/* ---- kernels ---- */

/* All lanes have read before one of them writes what the others read too. */
static void sync_before_store(gs_gen_writer *w)
{
    bool narrow = false;
    for (uint32_t i = 0; i < w->k->sums; i++)
        narrow |= sum_width(w, i) != w->k->width || heads_of(w, i) > 0;
    if (narrow && w->k->lanes > 1)
        fprintf(w->out, "    gs_group_sync(%uu);\n", w->k->lanes);
}

static void write_head(gs_gen_writer *w, const char *suffix)
{
    const gs_edge_kernel *const k = w->k;
    fprintf(w->out, "\nGS_KERNEL(%s%s, gs_edge_args)\n{\n", k->name, suffix);
    fprintf(w->out, "    const gs_u32 item = gs_block_x() * %uu + gs_lane() / %uu, slice = gs_block_y() * %uu;\n",
            GS_BLOCK_LANES / k->lanes, k->lanes, k->slice);
    fprintf(w->out, "    const gs_u32 base = slice + gs_lane() %% %uu * %uu;\n", k->lanes, k->vector);
    if (gs_gen_ragged(w))
        fprintf(w->out, "    const gs_u32 end = slice + %uu < %uu ? slice + %uu : %uu;\n", k->slice, k->width, k->slice, k->width);
}

static void write_walk(gs_gen_writer *w)
{
    const gs_edge_kernel *const k = w->k;
    char *body = NULL;
    size_t bytes = 0;
    FILE *const out = w->out, *const text = open_memstream(&body, &bytes);
    if (text == NULL) {
        w->st = gs_fail(GS_ENOMEM, "device cuda: out of memory for the text of kernels");
        return;
    }
    w->out = text; /* how much shared memory it takes is known afterwards */
    gs_gen_load_registers(w, false);
    gs_gen_load_params(w);
    gs_gen_write_instrs(w, false);
    each_part(w, "", "", declare_part);
    fprintf(w->out, "    if (it.slot != GS_NO_SLOT) {\n");
    each_part(w, "", "", clear_part);
    fprintf(w->out, "    } else {\n");
    point(w, "row_", false, "");
    each_part(w, "", "row_", load_part);
    fprintf(w->out, "    }\n    GS_UNROLL_EDGES for (gs_u32 k = it.from; k < it.to; k++) {\n");
    fprintf(w->out, "    const gs_u64 operand = gs_number(a.index, a.index_bytes, k);\n    (void)operand;\n");
    if (k->rows)
        fprintf(w->out, "    const gs_u64 shift = a.type == 0 ? 0 : (gs_u64)gs_number(a.type, a.type_bytes, k) * %uu;\n", k->width);
    gs_gen_load_registers(w, true);
    gs_gen_write_instrs(w, true);
    for (uint32_t i = 0; i < k->sums; i++)
        add_edge(w, i);
    fprintf(w->out, "    }\n");
    sync_before_store(w);
    fprintf(w->out, "    if (it.slot != GS_NO_SLOT) {\n");
    point(w, "row_", true, "it.slot");
    each_part(w, "", "row_", store_part);
    fprintf(w->out, "    } else {\n");
    point(w, "row_", false, "");
    each_part(w, "", "row_", store_part);
    fprintf(w->out, "    }\n}\n");
    w->out = out;
    fclose(text);
    write_head(w, "");
    if (k->shared_floats > 0)
        fprintf(w->out, "    GS_SHARED(shared);\n    float *const fold = shared + gs_lane() / %uu * %uu;\n", k->lanes, k->shared_floats);
    fprintf(w->out, "    const gs_item it = gs_edge_item(&a, item);\n    if (it.from >= it.to)\n        return;\n");
    fprintf(w->out, "    const gs_u64 row = gs_number(a.target, a.index_bytes, it.target);\n    (void)row;\n%s", body);
    free(body); /* open_memstream's */
}

static void write_merge(gs_gen_writer *w)
{
    write_head(w, "_merge");
    fprintf(w->out, "    const gs_item it = gs_merge_item(&a, item);\n    if (it.from >= it.to)\n        return;\n");
    fprintf(w->out, "    const gs_u64 row = gs_number(a.target, a.index_bytes, it.target);\n");
    point(w, "row_", false, "");
    each_part(w, "", "", declare_part);
    each_part(w, "", "row_", load_part);
    fprintf(w->out, "    for (gs_u32 slot = it.slot; slot == it.slot || gs_slot_within(&a, slot, it.target); slot = gs_next_slot(slot)) {\n");
    point(w, "from_", true, "slot");
    each_part(w, "q", "", declare_part);
    each_part(w, "q", "from_", load_part);
    for (uint32_t i = 0; i < w->k->sums; i++)
        add_piece(w, i);
    fprintf(w->out, "    }\n");
    sync_before_store(w);
    each_part(w, "", "row_", store_part);
    fprintf(w->out, "}\n");
}

static void write_kernel(gs_gen_writer *w)
{
    w->k->row_floats = offset_of(w, w->k->sums);
    choose_group(w);
    write_walk(w);
    write_merge(w);
}

void gs_generate_rows(FILE *out, gs_edge_kernel *k, uint32_t width)
{
    gs_edge_reg reg = {.kind = GS_EDGE_OPERAND, .width = width, .array = 0};
    const gs_stage s = {.name = "sums of rows", .sums = 1, .sum = {{.kind = GS_SUM_ADD, .value = 0}}, .edge_regs = 1, .edge_reg = &reg};
    gs_gen_writer w = {.out = out, .k = k, .s = &s};
    *k = (gs_edge_kernel){.rows = true, .width = width, .sums = 1};
    snprintf(k->name, sizeof(k->name), "gs_rows_%u", width);
    find_needs(&w);
    write_kernel(&w);
}

/* Together where the widest register's columns are the frame's: else each sum alone. */
static gs_status place_sums(gs_gen_writer *w, gs_edge_kernel *k, uint32_t *count)
{
    *count = 0;
    k[0] = (gs_edge_kernel){.sums = 0};
    for (uint32_t i = 0; i < w->s->sums; i++) {
        if (w->s->sum[i].kind > GS_SUM_ATTEND)
            return gs_gen_refuse(w, "sums of this kind are not there");
        if (w->s->sum[i].kind >= GS_SUM_ADD)
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
