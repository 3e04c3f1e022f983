/* Registers of an edge kernel as a lane holds them. */
#include <string.h>

#include "base/alloc.h"
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

/* A loop over the lane's vectors, with c its first column and `within` the condition that it is there. */
static void each_slot(gs_gen_writer *w)
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
    each_slot(w);
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
    each_slot(w);
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
    each_slot(w); /* lanes without columns hold anything, as 0 / 0 */
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
    each_slot(w);
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
    each_slot(w);
    fprintf(w->out,
            "        float t = 0.0f;\n        if (within)\n            for (int q = 0; q < %u; q++) t += fold[(c - "
            "slice) / %uu * %u + q];\n",
            from / to, gs_gen_each(w, to), from / to);
    fprintf(w->out, "        r%u[s] = t;\n    }\n", in->dst);
}

/* Ids are u32 in registers of floats. The key is the same for all edges, and the compiler takes it out of the loop. */
static void write_mask(gs_gen_writer *w, const gs_instr *in)
{
    const uint32_t width = gs_gen_width(w, in->dst);
    const gs_gen_shape s = gs_gen_shape_of(w, width);
    char scale[48], column[32];
    gs_generate_constant(scale, sizeof(scale), 1.0f / (1.0f - in->alpha));
    fprintf(w->out, "    gs_u32 key%u[4] = {%uu, a.all.epoch, 0, 0};\n", in->dst, in->site);
    fprintf(w->out, "    gs_philox(key%u, a.all.key[0], a.all.key[1]);\n", in->dst);
    fprintf(w->out, "    const gs_draw draw%u = gs_edge_draw(chunk, &a.all, it.target, k, r%u, r%u, %d);\n", in->dst,
            in->a.index, in->b.index, in->self);
    const char *const value = "gs_draw_bits(&draw%u, %s, %uu, key%u) >= %uu ? %s : 0.0f;\n";
    if (s == GS_GEN_SINGLE) {
        fprintf(w->out, "    r%u = ", in->dst);
        fprintf(w->out, value, in->dst, "0", 1u, in->dst, gs_generate_threshold(in->alpha), scale);
        return;
    }
    if (s == GS_GEN_GROUPED && w->k->one_group) {
        snprintf(column, sizeof(column), "slice / %uu", gs_gen_each(w, width));
        fprintf(w->out, "    r%u[0] = ", in->dst);
        fprintf(w->out, value, in->dst, column, (uint32_t)gs_div_up(width, 4), in->dst,
                gs_generate_threshold(in->alpha), scale);
        return;
    }
    each_slot(w);
    fprintf(w->out, "        (void)within;\n");
    if (s == GS_GEN_GROUPED) {
        snprintf(column, sizeof(column), "c / %uu", gs_gen_each(w, width));
        fprintf(w->out, "        r%u[s] = ", in->dst);
    } else {
        snprintf(column, sizeof(column), "c + v");
        fprintf(w->out, "        for (int v = 0; v < %u; v++) r%u[%u * s + v] = ", w->k->vector, in->dst, w->k->vector);
    }
    fprintf(w->out, value, in->dst, column, (uint32_t)gs_div_up(width, 4), in->dst, gs_generate_threshold(in->alpha),
            scale);
    fprintf(w->out, "    }\n");
}

static void write_instr(gs_gen_writer *w, const gs_instr *in)
{
    const gs_gen_shape s = gs_gen_shape_of(w, gs_gen_width(w, in->dst));
    char name[16], text[3][64] = {"", "", ""};
    const char *const a[3] = {text[0], text[1], text[2]};
    snprintf(name, sizeof(name), "r%u", in->dst);
    gs_gen_declare(w, name, s);
    if (in->op == GS_OP_EDGE_MASK) {
        write_mask(w, in);
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

void gs_gen_keep_edge(gs_gen_writer *w)
{
    const uint32_t width = gs_gen_width(w, w->k->kept);
    char name[16], row[64];
    snprintf(name, sizeof(name), "r%u", w->k->kept);
    snprintf(row, sizeof(row), "own[%u] + (gs_u64)place * %uu", gs_gen_own(w, GS_OWN_ACC, 0), width);
    gs_gen_store(w, name, row, width);
}

/* ---- inputs ---- */

static uint32_t input_of(gs_gen_writer *w, bool param, uint32_t index)
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

bool gs_gen_is_made(const gs_gen_writer *w, uint32_t r)
{
    for (uint32_t i = 0; i < w->s->edge_instrs; i++)
        if (w->s->edge_instr[i].dst == r)
            return gs_op_by_type(w->s->edge_instr[i].op);
    return false;
}

bool gs_gen_needs_place(const gs_gen_writer *w)
{
    bool made = w->k->keeps;
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        made |= w->needed[r] && gs_gen_is_made(w, r);
    return made;
}

bool gs_gen_is_batched(const gs_gen_writer *w, uint32_t r)
{
    return w->needed[r] && w->per_edge[r] && (w->s->edge_reg[r].kind != GS_EDGE_TEMP || gs_gen_is_made(w, r));
}

/* Of a row of sums the first register alone has another type. */
static gs_dtype dtype_of(const gs_gen_writer *w, uint32_t r) { return r == 0 ? w->k->rows.dtype : GS_F32; }

void gs_gen_load_registers(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++) {
        char name[16], row[64];
        if (!w->needed[r] || w->per_edge[r] || w->s->edge_reg[r].kind == GS_EDGE_TEMP)
            continue;
        snprintf(name, sizeof(name), "r%u", r);
        snprintf(row, sizeof(row), "own[%u] + row * %uu", gs_gen_own(w, GS_OWN_ROWS, r), gs_gen_width(w, r));
        gs_gen_declare(w, name, gs_gen_shape_of(w, gs_gen_width(w, r)));
        gs_gen_load(w, name, row, gs_gen_width(w, r));
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

/* Registers whose rows differ from edge to edge are reached from the lane's own columns of row 0, so that an address
 * is one multiplication and addition: at7[0] those of the slots that all lanes have, the others' apart, as lanes
 * without columns load the last one. Narrow ones have a number a slot, at places of its own. */
void gs_gen_point_batch(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++) {
        const gs_edge_reg *const reg = &w->s->edge_reg[r];
        const uint32_t each = gs_gen_each(w, reg->width), bytes = (uint32_t)gs_dtype_bytes(dtype_of(w, r));
        char start[64];
        if (!gs_gen_is_batched(w, r) || reg->kind == GS_EDGE_WEIGHT)
            continue;
        if (reg->kind == GS_EDGE_TARGET)
            snprintf(start, sizeof(start), "(const char *)(own[%u] + row * %uu)", gs_gen_own(w, GS_OWN_ROWS, r),
                     w->p->array[reg->array].width);
        else
            snprintf(start, sizeof(start), "(const char *)a.all.in[%u]", input_of(w, false, r));
        if (is_one(w, r)) {
            fprintf(w->out, "    const char *const at%u = gs_made_address(%s + slice / %uu * %uu);\n", r, start, each,
                    bytes);
            continue;
        }
        fprintf(w->out, "    const char *at%u[%u];\n", r, w->k->slots);
        each_slot(w);
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

/* batch7[b] = the register's columns of the row of the edge's operand, type or place. */
static void load_of_edge(gs_gen_writer *w, uint32_t r)
{
    const gs_edge_reg *const reg = &w->s->edge_reg[r];
    const gs_dtype dtype = dtype_of(w, r);
    const bool wide = gs_gen_shape_of(w, reg->width) == GS_GEN_WIDE && !is_one(w, r);
    const uint32_t v = w->k->vector, whole = wide ? whole_slots(w) : 0, row = w->k->lanes * v;
    char from[192], at[32];
    if (reg->kind == GS_EDGE_WEIGHT) {
        fprintf(w->out, "    batch%u[b] = chunk->weight == 0 ? 1.0f : chunk->weight[k];\n", r);
        return;
    }
    for (uint32_t s = 0; s < (is_one(w, r) ? 1 : w->k->slots); s++) {
        snprintf(at, sizeof(at), is_one(w, r) ? "at%u" : "at%u[%u]", r, s < whole ? 0 : s);
        write_address(w, from, sizeof(from), at, r);
        if (s > 0 && s < whole)
            snprintf(from + strlen(from), sizeof(from) - strlen(from), " + %u",
                     s * row * (uint32_t)gs_dtype_bytes(dtype));
        if (wide && v > 1 && dtype == GS_F32)
            fprintf(w->out, "    gs_load%u(batch%u[b] + %u, (const float *)(const void *)(%s));\n", v, r, v * s, from);
        else if (wide && v > 1)
            fprintf(w->out, "    gs_load%u_%s(batch%u[b] + %u, %s);\n", v, gs_dtype_name(dtype), r, v * s, from);
        else if (gs_gen_shape_of(w, reg->width) == GS_GEN_SINGLE)
            fprintf(w->out, "    batch%u[b] = gs_of_%s(%s, 0);\n", r, gs_dtype_name(dtype), from);
        else
            fprintf(w->out, "    batch%u[b][%u] = gs_of_%s(%s, 0);\n", r, s, gs_dtype_name(dtype), from);
    }
}

bool gs_gen_needs_type(const gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        if (w->needed[r] && w->s->edge_reg[r].typed)
            return true;
    for (uint32_t i = 0; i < w->k->sums; i++)
        if (w->s->sum[w->k->sum[i]].kind == GS_SUM_ADD_TYPE)
            return true;
    return false;
}

void gs_gen_declare_batch(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        if (gs_gen_is_batched(w, r)) {
            char name[32];
            snprintf(name, sizeof(name), "batch%u[%u]", r, w->k->batch);
            gs_gen_declare(w, name, gs_gen_shape_of(w, gs_gen_width(w, r)));
        }
}

void gs_gen_load_batch(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        if (gs_gen_is_batched(w, r))
            load_of_edge(w, r);
}

void gs_gen_take_batch(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        if (gs_gen_is_batched(w, r)) {
            const gs_gen_shape s = gs_gen_shape_of(w, gs_gen_width(w, r));
            const char *const at = s == GS_GEN_SINGLE ? "" : "[i]";
            char name[16];
            snprintf(name, sizeof(name), "r%u", r);
            gs_gen_declare(w, name, s);
            gs_gen_over(w, s);
            fprintf(w->out, "%s%s = batch%u[b]%s;\n", name, at, r, at);
        }
}

void gs_gen_load_params(gs_gen_writer *w)
{
    bool *const seen = gs_calloc(w->p->params + 1, 1);
    for (uint32_t i = 0; seen != NULL && i < w->s->edge_instrs; i++)
        for (uint32_t o = 0; o < gs_op_inputs(w->s->edge_instr[i].op); o++) {
            const gs_operand *const from = gs_instr_operand(&w->s->edge_instr[i], o);
            char name[16], row[32];
            if (!w->needed[w->s->edge_instr[i].dst] || gs_op_by_type(w->s->edge_instr[i].op) ||
                from->kind != GS_FROM_PARAM || seen[from->index])
                continue;
            seen[from->index] = true;
            snprintf(name, sizeof(name), "p%u", from->index);
            snprintf(row, sizeof(row), "a.all.in[%u]", input_of(w, true, from->index));
            gs_gen_declare(w, name, gs_gen_shape_of(w, w->p->param[from->index].cols));
            gs_gen_load(w, name, row, w->p->param[from->index].cols);
        }
    gs_free(seen);
}
