/* Sums of an edge kernel: where they are, what an edge does to them, and pieces of hubs. */
#include "base/size.h"
#include "cuda/text_internal.h"

static const gs_sum *sum_at(const gs_gen_writer *w, uint32_t i) { return &w->s->sum[w->k->sum[i]]; }
static uint32_t sum_width(const gs_gen_writer *w, uint32_t i) { return gs_gen_width(w, sum_at(w, i)->value); }
static bool by_type_of(const gs_gen_writer *w, uint32_t i) { return sum_at(w, i)->kind == GS_SUM_ADD_TYPE; }
/* Rows of the sum that a target has. */
static uint32_t types_of(const gs_gen_writer *w, uint32_t i)
{
    return by_type_of(w, i) ? w->s->reg[sum_at(w, i)->reg].width / sum_width(w, i) : 1;
}
static uint32_t heads_of(const gs_gen_writer *w, uint32_t i)
{
    return sum_at(w, i)->kind == GS_SUM_ATTEND ? gs_gen_width(w, sum_at(w, i)->score) : 0;
}

static const char *neutral_of(gs_sum_kind kind)
{
    return kind == GS_SUM_MAX   ? "gs_float_of_bits(0xff800000u)"
           : kind == GS_SUM_MIN ? "gs_float_of_bits(0x7f800000u)"
                                : "0.0f";
}

/* Floats before sum i within a hub's piece. */
static uint32_t offset_of(const gs_gen_writer *w, uint32_t i)
{
    uint32_t at = 0;
    for (uint32_t k = 0; k < i; k++)
        at += (uint32_t)gs_align_up((uint64_t)sum_width(w, k) * types_of(w, k) + 2 * heads_of(w, k), 4);
    return at;
}

/* One of a sum's parts: x its rows, m the running maxima, n the norms. `state` is the name's first letter,
 * `rows` names the pointer. */
typedef void part_fn(gs_gen_writer *w, const char *name, const char *row, uint32_t width, const char *neutral);

static void each_part(gs_gen_writer *w, uint32_t i, const char *state, const char *rows, part_fn *body)
{
    static const char part[] = "xmn";
    for (int q = 0; q < (heads_of(w, i) > 0 ? 3 : 1); q++) {
        char name[32], row[64];
        snprintf(name, sizeof(name), "%s%c%u", state, part[q], i);
        if (by_type_of(w, i))
            snprintf(row, sizeof(row), "%s%c%u + type_now * %uu", rows, part[q], i, sum_width(w, i));
        else
            snprintf(row, sizeof(row), "%s%c%u", rows, part[q], i);
        body(w, name, row, q == 0 ? sum_width(w, i) : heads_of(w, i),
             q == 0 ? neutral_of(sum_at(w, i)->kind) : q == 1 ? "gs_float_of_bits(0xff800000u)" : "0.0f");
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

/* What memory has of a largest or least value may be that there was no edge. */
static void open_part(gs_gen_writer *w, const char *name, const char *row, uint32_t width, const char *neutral)
{
    const gs_gen_shape s = gs_gen_shape_of(w, width);
    const char *const at = s == GS_GEN_SINGLE ? "" : "[i]";
    (void)row;
    gs_gen_over(w, s);
    fprintf(w->out, "%s%s = gs_opened(%s%s, %s);\n", name, at, name, at, neutral);
}

static void open_sum(gs_gen_writer *w, uint32_t i)
{
    if (sum_at(w, i)->kind == GS_SUM_MAX || sum_at(w, i)->kind == GS_SUM_MIN)
        each_part(w, i, "", "row_", open_part);
}

/* Writes `body` for each of the sums that do not go by type, or for each of the others. */
static void each_sum(gs_gen_writer *w, bool by_type, const char *state, const char *rows, part_fn *body)
{
    for (uint32_t i = 0; i < w->k->sums; i++)
        if (by_type_of(w, i) == by_type)
            each_part(w, i, state, rows, body);
}

static bool any_by_type(const gs_gen_writer *w)
{
    for (uint32_t i = 0; i < w->k->sums; i++)
        if (by_type_of(w, i))
            return true;
    return false;
}

/* Pointers PREFIXx0, PREFIXm0, ...: to the target's rows, or into the piece's. */
static void point(gs_gen_writer *w, const char *prefix, bool piece, const char *slot)
{
    for (uint32_t i = 0; i < w->k->sums; i++) {
        const uint32_t width = sum_width(w, i), heads = heads_of(w, i), at = offset_of(w, i);
        static const char part[] = "xmn";
        for (uint32_t q = 0; q < (heads > 0 ? 3u : 1u); q++) {
            fprintf(w->out, "    float *const %s%c%u = ", prefix, part[q], i);
            if (piece)
                fprintf(w->out, "chunk->partial + (gs_u64)%s * %uu + %u;\n", slot, w->k->row_floats,
                        at + (q == 0 ? 0 : width + (q - 1) * heads));
            else
                fprintf(w->out, "own[%u] + row * %uu;\n", gs_gen_own(w, GS_OWN_ACC + q, i),
                        q == 0 ? width * types_of(w, i) : heads);
        }
    }
}

/* A number a head, declared as `letter` and the sum's number; `text`: how an element of the sum's row has it. */
static void declare_of_heads(gs_gen_writer *w, char letter, uint32_t i, char text[64])
{
    const gs_gen_shape h = gs_gen_shape_of(w, heads_of(w, i)), s = gs_gen_shape_of(w, sum_width(w, i));
    char name[16];
    snprintf(name, sizeof(name), "%c%u", letter, i);
    gs_gen_declare(w, name, h);
    gs_gen_reference(w, text, 64, name, h, s);
}

/* Begins a loop over heads. */
static void over_heads(gs_gen_writer *w, uint32_t i)
{
    if (gs_gen_shape_of(w, heads_of(w, i)) == GS_GEN_SINGLE)
        fprintf(w->out, "    {\n");
    else
        fprintf(w->out, "    GS_UNROLL for (int i = 0; i < %u; i++) {\n",
                gs_gen_length(w, gs_gen_shape_of(w, heads_of(w, i))));
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
        char weight[64];
        declare_of_heads(w, 'e', i, weight);
        over_heads(w, i);
        fprintf(w->out, "        e%u%s = expf(score%u[b]%s - gs_base_of(m%u%s));\n", i, e, i, e, i, e);
        fprintf(w->out, "        n%u%s += e%u%s;\n    }\n", i, e, i, e);
        gs_gen_over(w, s);
        fprintf(w->out, "x%u%s += %s * %s;\n", i, at, weight, value);
        return;
    }
    gs_gen_over(w, s);
    if (sum->kind == GS_SUM_ADD || sum->kind == GS_SUM_ADD_TYPE)
        fprintf(w->out, "x%u%s += %s;\n", i, at, value);
    else
        fprintf(w->out, "x%u%s = gs_%s(%s, x%u%s);\n", i, at, sum->kind == GS_SUM_MAX ? "larger" : "smaller", value, i,
                at);
}

bool gs_gen_attends(const gs_gen_writer *w)
{
    for (uint32_t i = 0; i < w->k->sums; i++)
        if (heads_of(w, i) > 0)
            return true;
    return false;
}

void gs_gen_declare_scores(gs_gen_writer *w)
{
    for (uint32_t i = 0; i < w->k->sums; i++) {
        char name[32];
        if (heads_of(w, i) == 0)
            continue;
        snprintf(name, sizeof(name), "score%u[%u]", i, w->k->burst);
        gs_gen_declare(w, name, gs_gen_shape_of(w, heads_of(w, i)));
    }
}

void gs_gen_keep_scores(gs_gen_writer *w)
{
    for (uint32_t i = 0; i < w->k->sums; i++) {
        const gs_gen_shape h = gs_gen_shape_of(w, GS_MAX(heads_of(w, i), 1u));
        const char *const e = h == GS_GEN_SINGLE ? "" : "[i]";
        if (heads_of(w, i) == 0)
            continue;
        gs_gen_over(w, h);
        fprintf(w->out, "score%u[b]%s = r%u%s;\n", i, e, sum_at(w, i)->score, e);
    }
}

/* The maxima with the scores of all edges of the burst. */
void gs_gen_rescale_sums(gs_gen_writer *w)
{
    for (uint32_t i = 0; i < w->k->sums; i++) {
        const gs_gen_shape h = gs_gen_shape_of(w, GS_MAX(heads_of(w, i), 1u)),
                           s = gs_gen_shape_of(w, sum_width(w, i));
        const char *const e = h == GS_GEN_SINGLE ? "" : "[i]", *const at = s == GS_GEN_SINGLE ? "" : "[i]";
        char scale[64];
        if (heads_of(w, i) == 0)
            continue;
        fprintf(w->out, "    {\n");
        declare_of_heads(w, 'g', i, scale);
        over_heads(w, i);
        fprintf(w->out,
                "        float most = m%u%s;\n        GS_UNROLL for (gs_u32 b = 0; b < %uu; b++)\n            if (b < "
                "count)\n                most = gs_larger(score%u[b]%s, most);\n",
                i, e, w->k->burst, i, e);
        fprintf(w->out,
                "        g%u%s = gs_rescale(m%u%s, most);\n        m%u%s = most;\n        n%u%s *= g%u%s;\n    }\n",
                i, e, i, e, i, e, i, e, i, e);
        gs_gen_over(w, s);
        fprintf(w->out, "x%u%s *= %s;\n    }\n", i, at, scale);
    }
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
        char ours[64], theirs[64];
        declare_of_heads(w, 'g', i, ours);
        declare_of_heads(w, 'e', i, theirs);
        over_heads(w, i);
        fprintf(w->out,
                "        const float most = gs_larger(qm%u%s, m%u%s);\n        g%u%s = gs_rescale(m%u%s, most);\n", i,
                e, i, e, i, e, i, e);
        fprintf(w->out,
                "        e%u%s = gs_rescale(qm%u%s, most);\n        n%u%s = n%u%s * g%u%s + qn%u%s * e%u%s;\n        "
                "m%u%s = most;\n    }\n",
                i, e, i, e, i, e, i, e, i, e, i, e, i, e, i, e);
        gs_gen_over(w, s);
        fprintf(w->out, "x%u%s = x%u%s * %s + qx%u%s * %s;\n", i, at, i, at, ours, i, at, theirs);
        return;
    }
    gs_gen_over(w, s);
    if (sum->kind == GS_SUM_ADD || sum->kind == GS_SUM_ADD_TYPE)
        fprintf(w->out, "x%u%s += qx%u%s;\n", i, at, i, at);
    else
        fprintf(w->out, "x%u%s = gs_%s(qx%u%s, x%u%s);\n", i, at, sum->kind == GS_SUM_MAX ? "larger" : "smaller", i, at,
                i, at);
}

/* All lanes have read before one of them writes what the others read too, or written before they read. */
static void sync(gs_gen_writer *w)
{
    bool narrow = false;
    for (uint32_t i = 0; i < w->k->sums; i++)
        narrow |= sum_width(w, i) != w->k->width || heads_of(w, i) > 0;
    if (narrow && w->k->lanes > 1)
        fprintf(w->out, "    gs_group_sync(%uu);\n", w->k->lanes);
}

/* ---- what the kernels do with them ---- */

uint32_t gs_gen_row_floats(const gs_gen_writer *w) { return offset_of(w, w->k->sums); }

/* Before the first edge. By type, all rows of a piece are cleared, and `type_now` is the one whose sums lanes hold. */
void gs_gen_begin_sums(gs_gen_writer *w)
{
    each_sum(w, false, "", "", declare_part);
    each_sum(w, true, "", "", declare_part);
    fprintf(w->out, "    if (it.slot != GS_NO_SLOT) {\n");
    each_sum(w, false, "", "", clear_part);
    if (any_by_type(w)) {
        point(w, "row_", true, "it.slot");
        each_sum(w, true, "", "", clear_part);
        for (uint32_t i = 0; i < w->k->sums; i++) {
            if (!by_type_of(w, i))
                continue;
            fprintf(w->out, "    for (gs_u32 type_now = 0; type_now < %u; type_now++) {\n", types_of(w, i));
            each_part(w, i, "", "row_", store_part);
            fprintf(w->out, "    }\n");
        }
    }
    fprintf(w->out, "    } else {\n");
    point(w, "row_", false, "");
    each_sum(w, false, "", "row_", load_part);
    for (uint32_t i = 0; i < w->k->sums; i++)
        open_sum(w, i);
    fprintf(w->out, "    }\n");
    for (uint32_t i = 0; i < w->k->sums; i++)
        if (by_type_of(w, i))
            fprintf(w->out,
                    "    float *const now_x%u = gs_made_rows(it.slot != GS_NO_SLOT ? chunk->partial + "
                    "(gs_u64)it.slot * %uu + %u : own[%u] + row * %uu);\n",
                    i, w->k->row_floats, offset_of(w, i), gs_gen_own(w, GS_OWN_ACC, i),
                    sum_width(w, i) * types_of(w, i));
    if (any_by_type(w))
        fprintf(w->out, "    gs_u32 type_now = GS_NO_SLOT;\n");
}

/* An edge: edges of one type lie together, so sums by type seldom change places. */
void gs_gen_add_edge(gs_gen_writer *w)
{
    if (any_by_type(w)) {
        fprintf(w->out, "    if (type_now != type) {\n    if (type_now != GS_NO_SLOT) {\n");
        each_sum(w, true, "", "now_", store_part);
        fprintf(w->out, "    }\n    type_now = type;\n");
        sync(w);
        each_sum(w, true, "", "now_", load_part);
        fprintf(w->out, "    }\n");
    }
    for (uint32_t i = 0; i < w->k->sums; i++)
        add_edge(w, i);
}

void gs_gen_end_sums(gs_gen_writer *w)
{
    sync(w);
    if (any_by_type(w))
        each_sum(w, true, "", "now_", store_part);
    fprintf(w->out, "    if (it.slot != GS_NO_SLOT) {\n");
    point(w, "row_", true, "it.slot");
    each_sum(w, false, "", "row_", store_part);
    fprintf(w->out, "    } else {\n");
    point(w, "row_", false, "");
    each_sum(w, false, "", "row_", store_part);
    fprintf(w->out, "    }\n");
}

/* Pieces of a hub to its sums. */
void gs_gen_merge_sums(gs_gen_writer *w)
{
    point(w, "row_", false, "");
    for (uint32_t i = 0; i < w->k->sums; i++) {
        fprintf(w->out, "    for (gs_u32 type_now = 0; type_now < %u; type_now++) {\n", types_of(w, i));
        each_part(w, i, "", "", declare_part);
        each_part(w, i, "", "row_", load_part);
        open_sum(w, i);
        fprintf(w->out, "    for (gs_u32 slot = it.slot; slot == it.slot || gs_slot_within(chunk, a.all.first_edge, "
                        "slot, it.target); slot = gs_next_slot(slot)) {\n");
        point(w, "from_", true, "slot");
        each_part(w, i, "q", "", declare_part);
        each_part(w, i, "q", "from_", load_part);
        add_piece(w, i);
        fprintf(w->out, "    }\n");
        sync(w);
        each_part(w, i, "", "row_", store_part);
        fprintf(w->out, "    }\n");
    }
}
