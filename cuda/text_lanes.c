/* Registers of an edge kernel as a lane holds them, and the instructions on them. */
#include <string.h>

#include "base/size.h"
#include "cuda/text_internal.h"

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

/* name = the lane's part of the row of `width` numbers at `row`. */
void gs_gen_load(gs_gen_writer *w, const char *name, const char *row, uint32_t width)
{
    const gs_gen_shape s = gs_gen_shape_of(w, width);
    const uint32_t v = w->k->vector;
    if (s == GS_GEN_SINGLE) {
        fprintf(w->out, "    %s = (%s)[0];\n", name, row);
        return;
    }
    if (s == GS_GEN_GROUPED && w->k->one_group) {
        fprintf(w->out, "    %s[0] = (%s)[slice / %uu];\n", name, row, gs_gen_each(w, width));
        return;
    }
    gs_gen_each_slot(w);
    if (s == GS_GEN_GROUPED)
        fprintf(w->out, "        %s[s] = within ? (%s)[c / %uu] : 0.0f;\n", name, row, gs_gen_each(w, width));
    else if (v == 1)
        fprintf(w->out, "        %s[s] = within ? (%s)[c] : 0.0f;\n", name, row);
    else
        fprintf(w->out,
                "        if (within)\n            gs_load%u(%s + %u * s, (%s) + c);\n        else\n"
                "            for (int v = 0; v < %u; v++) %s[%u * s + v] = 0.0f;\n",
                v, name, v, row, v, name, v);
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
void gs_gen_reference(const gs_gen_writer *w, char *text, size_t bytes, const char *name, gs_gen_shape of,
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
    gs_gen_reference(w, text, bytes, name,
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
        gs_gen_reference(w, text[1], sizeof(text[1]), name, s, s);
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
        if (w->needed[in->dst] && w->per_edge[in->dst] == per_edge && !gs_op_by_type(in->op))
            write_instr(w, in);
    }
}
