/* Registers of an edge kernel as a lane holds them, the instructions on them, and its sums. */

#include "base/size.h"
#include "cuda/text_internal.h"

/* ---- registers ---- */

gs_status gs_gen_refuse(gs_gen_writer *w, const char *what)
{
    if (w->st == GS_OK)
        w->st = gs_fail(GS_EUNSUPPORTED, "device cuda: stage \"%s\": %s; use .device cpu", w->s->name, what);
    return w->st;
}

gs_gen_shape gs_gen_shape_of(const gs_gen_writer *w, uint32_t width)
{
    return width == 1 ? GS_GEN_SINGLE : width == w->k->width ? GS_GEN_WIDE : GS_GEN_GROUPED;
}

uint32_t gs_gen_length(const gs_gen_writer *w, gs_gen_shape s)
{
    const uint32_t grouped = w->k->one_group ? 1 : w->k->slots;
    return s == GS_GEN_SINGLE ? 1 : s == GS_GEN_GROUPED ? grouped : w->k->slots * w->k->vector;
}

bool gs_gen_ragged(const gs_gen_writer *w)
{
    return w->k->slice * w->k->slices != w->k->width || w->k->slots * w->k->lanes * w->k->vector != w->k->slice;
}

/* ---- text ---- */

void gs_gen_each_slot(gs_gen_writer *w)
{
    fprintf(w->out, "    GS_UNROLL for (int s = 0; s < %u; s++) {\n        const gs_u32 c = base + s * %uu;\n",
            w->k->slots, w->k->lanes * w->k->vector);
    if (gs_gen_ragged(w))
        fprintf(w->out, "        const int within = c < end;\n");
    else
        fprintf(w->out, "        const int within = 1;\n");
}

void gs_gen_declare(gs_gen_writer *w, const char *name, gs_gen_shape s)
{
    if (s == GS_GEN_SINGLE)
        fprintf(w->out, "    float %s;\n", name);
    else
        fprintf(w->out, "    float %s[%u];\n", name, gs_gen_length(w, s));
}

/* Number `index` of the row at `row`: of float32, or of bfloat16 at an address of bytes. */
static const char *element(char text[128], const char *row, bool half, const char *index, uint32_t each)
{
    char at[32];
    snprintf(at, sizeof(at), each > 0 ? "%s / %uu" : "%s", index, each);
    snprintf(text, 128, half ? "gs_of_bf16(%s, %s)" : "(%s)[%s]", row, at);
    return text;
}

/* name = the lane's part of the row of `width` numbers at `row`. */
void gs_gen_load(gs_gen_writer *w, const char *name, const char *row, uint32_t width, bool half)
{
    const gs_gen_shape s = gs_gen_shape_of(w, width);
    const uint32_t v = w->k->vector, each = s == GS_GEN_GROUPED ? gs_gen_each(w, width) : 0;
    char text[128];
    if (s == GS_GEN_SINGLE) {
        fprintf(w->out, "    %s = %s;\n", name, element(text, row, half, "0", 0));
        return;
    }
    if (s == GS_GEN_GROUPED && w->k->one_group) {
        fprintf(w->out, "    %s[0] = %s;\n", name, element(text, row, half, "slice", each));
        return;
    }
    gs_gen_each_slot(w);
    if (s == GS_GEN_GROUPED || v == 1) {
        fprintf(w->out, "        %s[s] = within ? %s : 0.0f;\n", name, element(text, row, half, "c", each));
    } else {
        fprintf(w->out, half ? "        if (within)\n            gs_load%u_bf16(%s + %u * s, %s + c * 2);\n"
                             : "        if (within)\n            gs_load%u(%s + %u * s, (%s) + c);\n", v, name, v, row);
        fprintf(w->out, "        else\n            for (int v = 0; v < %u; v++) %s[%u * s + v] = 0.0f;\n", v, name, v);
    }
    fprintf(w->out, "    }\n");
}

/* The reverse; of a narrow one the lane of its first column writes. */
void gs_gen_store(gs_gen_writer *w, const char *name, const char *row, uint32_t width)
{
    const gs_gen_shape s = gs_gen_shape_of(w, width);
    const uint32_t v = w->k->vector;
    if (s == GS_GEN_SINGLE) {
        fprintf(w->out, "    if (base == 0)\n        (%s)[0] = %s;\n", row, name);
        return;
    }
    if (s == GS_GEN_GROUPED && w->k->one_group) {
        fprintf(w->out, "    if (base %% %uu == 0)\n        (%s)[slice / %uu] = %s[0];\n", gs_gen_each(w, width), row,
                gs_gen_each(w, width), name);
        return;
    }
    gs_gen_each_slot(w);
    if (s == GS_GEN_GROUPED)
        fprintf(w->out, "        if (within && c %% %uu == 0)\n            (%s)[c / %uu] = %s[s];\n",
                gs_gen_each(w, width), row, gs_gen_each(w, width), name);
    else if (v == 1)
        fprintf(w->out, "        if (within)\n            (%s)[c] = %s[s];\n", row, name);
    else
        fprintf(w->out, "        if (within)\n            gs_store%u((%s) + c, %s + %u * s);\n", v, row, name, v);
    fprintf(w->out, "    }\n");
}

/* The value of a register of shape `of`, where the loop is over values of shape `in`. */
static void gen_reference(const gs_gen_writer *w, char *text, size_t bytes, const char *name, gs_gen_shape of,
                          gs_gen_shape in)
{
    if (of == GS_GEN_SINGLE)
        snprintf(text, bytes, "%s", name);
    else if (of == GS_GEN_GROUPED && w->k->one_group)
        snprintf(text, bytes, "%s[0]", name);
    else if (of == in || w->k->vector == 1)
        snprintf(text, bytes, "%s[i]", name);
    else
        snprintf(text, bytes, "%s[i / %u]", name, w->k->vector);
}

static void operand(const gs_gen_writer *w, char *text, size_t bytes, const gs_operand *o, gs_gen_shape in)
{
    char name[16];
    if (o->kind == GS_FROM_CONST) {
        gs_generate_constant(text, bytes, o->value);
        return;
    }
    const bool param = o->kind == GS_FROM_PARAM;
    snprintf(name, sizeof(name), "%c%u", param ? 'p' : 'r', o->index);
    gen_reference(w, text, bytes, name,
                  gs_gen_shape_of(w, param ? w->p->param[o->index].cols : gs_gen_width(w, o->index)), in);
}

void gs_gen_over(gs_gen_writer *w, gs_gen_shape s)
{
    if (s == GS_GEN_SINGLE)
        fprintf(w->out, "    ");
    else
        fprintf(w->out, "    GS_UNROLL for (int i = 0; i < %u; i++)\n        ", gs_gen_length(w, s));
}

/* ---- instructions ---- */

#define LEAST "gs_float_of_bits(0xff800000u)" /* minus infinity */

/* Sums (or maxima) of neighbouring lanes' columns through shuffles: all columns, or groups of a power of two of lanes,
 * or of whole slots. */
static bool fold_by_shuffle(gs_gen_writer *w, const gs_instr *in)
{
    const gs_edge_kernel *const k = w->k;
    const uint32_t a = in->a.index, each = gs_gen_each(w, gs_gen_width(w, in->dst)), row = k->lanes * k->vector;
    const uint32_t span = each / k->vector;
    const bool most = in->op == GS_OP_ROWMAX;
    const bool all = gs_gen_width(w, in->dst) == 1, narrow = (span & (span - 1)) == 0 && span <= k->lanes,
               wide = each % row == 0;
    const bool whole = k->one_group && !all && each == k->slice; /* all that a group has */
    if (gs_gen_shape_of(w, gs_gen_width(w, a)) != GS_GEN_WIDE || (!all && !narrow && !wide && !whole))
        return false;
    fprintf(w->out, "    float f%u[%u];\n", in->dst, k->slots);
    gs_gen_each_slot(w); /* lanes without columns hold anything, as 0 / 0 */
    fprintf(w->out, "        (void)c;\n        f%u[s] = %s;\n", in->dst, most ? LEAST : "0.0f");
    fprintf(w->out,
            most
                ? "        for (int v = 0; v < %u && within; v++) f%u[s] = gs_larger(r%u[%u * s + v], f%u[s]);\n    }\n"
                : "        for (int v = 0; v < %u && within; v++) f%u[s] += r%u[%u * s + v];\n    }\n",
            k->vector, in->dst, a, k->vector, in->dst);
    if (most) {
        fprintf(w->out, "    r%u = %s;\n    GS_UNROLL for (int s = 0; s < %u; s++) r%u = gs_larger(f%u[s], r%u);\n",
                in->dst, LEAST, k->slots, in->dst, in->dst, in->dst);
        fprintf(w->out, "    r%u = gs_group_max(r%u, %uu);\n", in->dst, in->dst, k->lanes);
    } else if (all || whole) {
        const char *const at = whole ? "[0]" : "";
        fprintf(w->out, "    r%u%s = 0.0f;\n    GS_UNROLL for (int s = 0; s < %u; s++) r%u%s += f%u[s];\n", in->dst, at,
                k->slots, in->dst, at, in->dst);
        fprintf(w->out, "    r%u%s = gs_group_sum(r%u%s, %uu, %uu);\n", in->dst, at, in->dst, at, k->lanes, k->lanes);
    } else if (narrow) {
        fprintf(w->out, "    GS_UNROLL for (int s = 0; s < %u; s++) r%u[s] = gs_group_sum(f%u[s], %uu, %uu);\n",
                k->slots, in->dst, in->dst, span, k->lanes);
    } else {
        const uint32_t slots = each / row;
        fprintf(w->out, "    GS_UNROLL for (int s = 0; s < %u; s += %u) {\n        float t = 0.0f;\n", k->slots, slots);
        fprintf(w->out,
                "        for (int q = 0; q < %u; q++) t += f%u[s + q];\n        t = gs_group_sum(t, %uu, %uu);\n",
                slots, in->dst, k->lanes, k->lanes);
        fprintf(w->out, "        for (int q = 0; q < %u; q++) r%u[s + q] = t;\n    }\n", slots, in->dst);
    }
    return true;
}

static void fold_by_memory(gs_gen_writer *w, const gs_instr *in)
{
    gs_edge_kernel *const k = w->k;
    const uint32_t a = in->a.index, from = gs_gen_width(w, a), to = gs_gen_width(w, in->dst),
                   each = gs_gen_each(w, from);
    char source[32];
    k->shared_floats = GS_MAX(k->shared_floats, k->slice);
    fprintf(w->out, "    gs_group_sync(%uu);\n", k->lanes);
    gs_gen_each_slot(w);
    fprintf(w->out, "        for (gs_u32 v = 0; v < %u; v++)\n", k->vector);
    snprintf(source, sizeof(source), gs_gen_shape_of(w, from) == GS_GEN_WIDE ? "r%u[%u * s + v]" : "r%u[s]", a,
             k->vector);
    fprintf(
        w->out,
        "            if (within && (c + v) %% %uu == 0)\n                fold[(c + v - slice) / %uu] = %s;\n    }\n",
        each, each, source);
    fprintf(w->out, "    gs_group_sync(%uu);\n", k->lanes);
    if (in->op == GS_OP_ROWMAX) {
        fprintf(w->out, "    r%u = fold[0];\n    for (int q = 1; q < %u; q++) r%u = gs_larger(fold[q], r%u);\n",
                in->dst, from, in->dst, in->dst);
        return;
    }
    if (to == 1) {
        fprintf(w->out, "    r%u = 0.0f;\n    for (int q = 0; q < %u; q++) r%u += fold[q];\n", in->dst, from, in->dst);
        return;
    }
    gs_gen_each_slot(w);
    fprintf(w->out,
            "        float t = 0.0f;\n        if (within)\n            for (int q = 0; q < %u; q++) t += fold[(c - "
            "slice) / %uu * %u + q];\n",
            from / to, gs_gen_each(w, to), from / to);
    fprintf(w->out, "        r%u[s] = t;\n    }\n", in->dst);
}

static void write_instr(gs_gen_writer *w, const gs_instr *in)
{
    const gs_gen_shape s = gs_gen_shape_of(w, gs_gen_width(w, in->dst));
    char name[16], text[3][64] = {"", "", ""};
    const char *const a[3] = {text[0], text[1], text[2]};
    snprintf(name, sizeof(name), "r%u", in->dst);
    gs_gen_declare(w, name, s);
    if (in->op == GS_OP_EDGE_MASK) {
        gs_gen_take_mask(w, in);
        return;
    }
    if (in->op == GS_OP_IS_LOOP) {
        fprintf(w->out, "    r%u = gs_bits_of_float(r%u) == gs_bits_of_float(r%u) ? 1.0f : 0.0f;\n", in->dst,
                in->a.index, in->b.index);
        return;
    }
    if (gs_gen_folds(in->op)) {
        if (gs_gen_width(w, in->a.index) != gs_gen_width(w, in->dst)) {
            if (!fold_by_shuffle(w, in))
                fold_by_memory(w, in);
            return;
        }
        gs_gen_over(w, s);
        operand(w, text[0], sizeof(text[0]), &in->a, s);
        gen_reference(w, text[1], sizeof(text[1]), name, s, s);
        fprintf(w->out, "%s = %s;\n", a[1], a[0]);
        return;
    }
    for (uint32_t k = 0; k < gs_op_inputs(in->op); k++)
        operand(w, text[k], sizeof(text[k]), gs_instr_operand(in, k), s);
    gs_gen_over(w, s);
    fprintf(w->out, s == GS_GEN_SINGLE ? "%s = " : "%s[i] = ", name);
    if (w->k->rows.scaled) /* the bits of a scaled copy */
        fprintf(w->out, "gs_times(%s, %s)", a[0], a[1]);
    else if (!gs_generate_value(w->out, in->op, a, in->alpha)) {
        char what[96];
        snprintf(what, sizeof(what), "%s along edges is not there", gs_op_name(in->op));
        gs_gen_refuse(w, what);
    }
    fprintf(w->out, ";\n");
}

void gs_gen_write_instrs(gs_gen_writer *w, bool per_edge)
{
    for (uint32_t i = 0; i < w->s->edge_instrs && w->st == GS_OK; i++) {
        const gs_instr *const in = &w->s->edge_instr[i];
        if (w->needed[in->dst] && w->per_edge[in->dst] == per_edge && !gs_op_on_edges(in->op))
            write_instr(w, in);
    }
}

/* ---- sums ---- */

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

/* The first of the kernel's sums that attends by the same scores as sum i, whose maxima and norms are its own. */
static uint32_t scorer_of(const gs_gen_writer *w, uint32_t i)
{
    uint32_t k = 0;
    while (!gs_same_scores(w->s, w->k->sum[k], w->k->sum[i]))
        k++;
    return k;
}

static bool scores_itself(const gs_gen_writer *w, uint32_t i) { return heads_of(w, i) > 0 && scorer_of(w, i) == i; }

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

/* What is written of a sum's parts: x its rows, m the running maxima, n the norms. Of a largest or least value what
 * memory has may be that there was no edge. */
typedef enum part_act { DECLARE, LOAD, STORE, CLEAR, OPEN } part_act;

static void write_part(gs_gen_writer *w, part_act act, const char *name, const char *row, uint32_t width,
                       const char *neutral)
{
    const gs_gen_shape s = gs_gen_shape_of(w, width);
    const char *const at = s == GS_GEN_SINGLE ? "" : "[i]";
    if (act == DECLARE) {
        gs_gen_declare(w, name, s);
    } else if (act == LOAD) {
        gs_gen_load(w, name, row, width, false);
    } else if (act == STORE) {
        gs_gen_store(w, name, row, width);
    } else {
        gs_gen_over(w, s);
        if (act == CLEAR)
            fprintf(w->out, "%s%s = %s;\n", name, at, neutral);
        else
            fprintf(w->out, "%s%s = gs_opened(%s%s, %s);\n", name, at, name, at, neutral);
    }
}

/* `state`: the names' first letter; `rows` names the pointer. */
static void each_part(gs_gen_writer *w, uint32_t i, const char *state, const char *rows, part_act act)
{
    static const char part[] = "xmn";
    for (int q = 0; q < (heads_of(w, i) > 0 ? 3 : 1); q++) {
        char name[32], row[64];
        snprintf(name, sizeof(name), "%s%c%u", state, part[q], i);
        if (by_type_of(w, i))
            snprintf(row, sizeof(row), "%s%c%u + type_now * %uu", rows, part[q], i, sum_width(w, i));
        else
            snprintf(row, sizeof(row), "%s%c%u", rows, part[q], i);
        write_part(w, act, name, row, q == 0 ? sum_width(w, i) : heads_of(w, i),
                   q == 0 ? neutral_of(sum_at(w, i)->kind) : q == 1 ? "gs_float_of_bits(0xff800000u)" : "0.0f");
    }
}

static void open_sum(gs_gen_writer *w, uint32_t i)
{
    if (sum_at(w, i)->kind == GS_SUM_MAX || sum_at(w, i)->kind == GS_SUM_MIN)
        each_part(w, i, "", "row_", OPEN);
}

/* Likewise of each of the sums that do not go by type, or of each of the others. */
static void each_sum(gs_gen_writer *w, bool by_type, const char *state, const char *rows, part_act act)
{
    for (uint32_t i = 0; i < w->k->sums; i++)
        if (by_type_of(w, i) == by_type)
            each_part(w, i, state, rows, act);
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

/* How an element of sum i's row has the number of its head that is called `letter` and `of`. */
static void refer_to_heads(const gs_gen_writer *w, char letter, uint32_t of, uint32_t i, char text[64])
{
    char name[16];
    snprintf(name, sizeof(name), "%c%u", letter, of);
    gen_reference(w, text, 64, name, gs_gen_shape_of(w, heads_of(w, i)), gs_gen_shape_of(w, sum_width(w, i)));
}

/* A number a head, declared as `letter` and the sum's number, and referred to. */
static void declare_of_heads(gs_gen_writer *w, char letter, uint32_t i, char text[64])
{
    char name[16];
    snprintf(name, sizeof(name), "%c%u", letter, i);
    gs_gen_declare(w, name, gs_gen_shape_of(w, heads_of(w, i)));
    refer_to_heads(w, letter, i, i, text);
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
    gen_reference(w, value, sizeof(value), name, s, s);
    if (sum->kind == GS_SUM_ATTEND) {
        const gs_gen_shape h = gs_gen_shape_of(w, heads_of(w, i));
        const char *const e = h == GS_GEN_SINGLE ? "" : "[i]";
        char weight[64];
        if (scores_itself(w, i)) {
            declare_of_heads(w, 'e', i, weight);
            over_heads(w, i);
            fprintf(w->out, "        e%u%s = expf(score%u[b]%s - gs_base_of(m%u%s));\n", i, e, i, e, i, e);
            fprintf(w->out, "        n%u%s += e%u%s;\n    }\n", i, e, i, e);
        }
        refer_to_heads(w, 'e', scorer_of(w, i), i, weight);
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
        if (!scores_itself(w, i))
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
        if (!scores_itself(w, i))
            continue;
        gs_gen_over(w, h);
        fprintf(w->out, "score%u[b]%s = r%u%s;\n", i, e, sum_at(w, i)->score, e);
    }
}

/* The maxima with the scores of all edges of the burst. */
void gs_gen_rescale_sums(gs_gen_writer *w)
{
    for (uint32_t i = 0; i < w->k->sums; i++) {
        const gs_gen_shape h = gs_gen_shape_of(w, GS_MAX(heads_of(w, i), 1u));
        const char *const e = h == GS_GEN_SINGLE ? "" : "[i]";
        char scale[64];
        if (!scores_itself(w, i))
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
        for (uint32_t k = i; k < w->k->sums; k++) {
            const gs_gen_shape s = gs_gen_shape_of(w, sum_width(w, k));
            if (heads_of(w, k) == 0 || scorer_of(w, k) != i)
                continue;
            refer_to_heads(w, 'g', i, k, scale);
            gs_gen_over(w, s);
            fprintf(w->out, "x%u%s *= %s;\n", k, s == GS_GEN_SINGLE ? "" : "[i]", scale);
        }
        fprintf(w->out, "    }\n");
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
    each_sum(w, false, "", "", DECLARE);
    each_sum(w, true, "", "", DECLARE);
    fprintf(w->out, "    if (it.slot != GS_NO_SLOT) {\n");
    each_sum(w, false, "", "", CLEAR);
    if (any_by_type(w)) {
        point(w, "row_", true, "it.slot");
        each_sum(w, true, "", "", CLEAR);
        for (uint32_t i = 0; i < w->k->sums; i++) {
            if (!by_type_of(w, i))
                continue;
            fprintf(w->out, "    for (gs_u32 type_now = 0; type_now < %u; type_now++) {\n", types_of(w, i));
            each_part(w, i, "", "row_", STORE);
            fprintf(w->out, "    }\n");
        }
    }
    fprintf(w->out, "    } else {\n");
    point(w, "row_", false, "");
    each_sum(w, false, "", "row_", LOAD);
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
        each_sum(w, true, "", "now_", STORE);
        fprintf(w->out, "    }\n    type_now = type;\n");
        sync(w);
        each_sum(w, true, "", "now_", LOAD);
        fprintf(w->out, "    }\n");
    }
    for (uint32_t i = 0; i < w->k->sums; i++)
        add_edge(w, i);
}

/* Maxima and norms of sums that have none of their own. */
static void copy_norms(gs_gen_writer *w)
{
    for (uint32_t i = 0; i < w->k->sums; i++) {
        if (heads_of(w, i) == 0 || scores_itself(w, i))
            continue;
        const char *const e = gs_gen_shape_of(w, heads_of(w, i)) == GS_GEN_SINGLE ? "" : "[i]";
        const uint32_t k = scorer_of(w, i);
        over_heads(w, i);
        fprintf(w->out, "        m%u%s = m%u%s;\n        n%u%s = n%u%s;\n    }\n", i, e, k, e, i, e, k, e);
    }
}

void gs_gen_end_sums(gs_gen_writer *w)
{
    copy_norms(w);
    sync(w);
    if (any_by_type(w))
        each_sum(w, true, "", "now_", STORE);
    fprintf(w->out, "    if (it.slot != GS_NO_SLOT) {\n");
    point(w, "row_", true, "it.slot");
    each_sum(w, false, "", "row_", STORE);
    fprintf(w->out, "    } else {\n");
    point(w, "row_", false, "");
    each_sum(w, false, "", "row_", STORE);
    fprintf(w->out, "    }\n");
}

/* Pieces of a hub to its sums, in their order. Eight are loaded at once: one after the other, each would be waited for,
 * and a hub of 10^5 edges has hundreds. */
void gs_gen_merge_sums(gs_gen_writer *w)
{
    fprintf(w->out, "    const gs_u32 pieces = gs_pieces_of(chunk, a.all.first_edge, it);\n");
    point(w, "row_", false, "");
    for (uint32_t i = 0; i < w->k->sums; i++) {
        fprintf(w->out, "    for (gs_u32 type_now = 0; type_now < %u; type_now++) {\n", types_of(w, i));
        each_part(w, i, "", "", DECLARE);
        each_part(w, i, "", "row_", LOAD);
        open_sum(w, i);
        fprintf(w->out, "    GS_UNROLL_8 for (gs_u32 p = 0; p < pieces; p++) {\n");
        point(w, "from_", true, "gs_piece_slot(it, p)");
        each_part(w, i, "q", "", DECLARE);
        each_part(w, i, "q", "from_", LOAD);
        add_piece(w, i);
        fprintf(w->out, "    }\n");
        sync(w);
        each_part(w, i, "", "row_", STORE);
        fprintf(w->out, "    }\n");
    }
}
