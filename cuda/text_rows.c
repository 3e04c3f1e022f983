/* Rows of memory that an edge kernel reads: the arrays, parameters and chunk's own pointers that it needs, and how they
 * come into a lane's registers, for all edges of a target or for a burst of edges at a time. */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "cuda/text_internal.h"

uint32_t gs_gen_input(gs_gen_writer *w, bool param, uint32_t index)
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

void gs_gen_keep_edge(gs_gen_writer *w)
{
    const uint32_t width = gs_gen_width(w, w->k->kept);
    char name[16], row[64];
    snprintf(name, sizeof(name), "r%u", w->k->kept);
    snprintf(row, sizeof(row), "own[%u] + (gs_u64)place * %uu", gs_gen_own(w, GS_OWN_ACC, 0), width);
    gs_gen_store(w, name, row, width);
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

bool gs_gen_is_typed(const gs_gen_writer *w, uint32_t r)
{
    return w->needed[r] && w->per_edge[r] && (w->s->edge_reg[r].kind != GS_EDGE_TEMP || gs_gen_is_made(w, r));
}

/* Rows of sums may have two bytes a number, those of an edge program if they are of bfloat16. Ids count as float32. */
static gs_dtype dtype_of(const gs_gen_writer *w, uint32_t r)
{
    const gs_edge_reg *const reg = &w->s->edge_reg[r];
    const bool rows = (reg->kind == GS_EDGE_OPERAND || reg->kind == GS_EDGE_TARGET) && reg->array < w->p->arrays;
    const gs_dtype type = rows ? w->p->array[reg->array].dtype : GS_F32;
    return type == GS_BF16 || type == GS_F16 ? type : GS_F32;
}

/* gs_gen_load() of a row of bfloat16, at an address of bytes. */
static void load_halves(gs_gen_writer *w, const char *name, const char *row, uint32_t width)
{
    const bool wide = gs_gen_shape_of(w, width) == GS_GEN_WIDE;
    const uint32_t v = w->k->vector;
    if (!wide && w->k->one_group) {
        fprintf(w->out, "    %s[0] = gs_of_bf16(%s, slice / %uu);\n", name, row, gs_gen_each(w, width));
        return;
    }
    gs_gen_each_slot(w);
    if (!wide)
        fprintf(w->out, "        %s[s] = within ? gs_of_bf16(%s, c / %uu) : 0.0f;\n", name, row, gs_gen_each(w, width));
    else if (v == 1)
        fprintf(w->out, "        %s[s] = within ? gs_of_bf16(%s, c) : 0.0f;\n", name, row);
    else
        fprintf(w->out,
                "        if (within)\n            gs_load%u_bf16(%s + %u * s, %s + c * 2);\n        else\n"
                "            for (int v = 0; v < %u; v++) %s[%u * s + v] = 0.0f;\n",
                v, name, v, row, v, name, v);
    fprintf(w->out, "    }\n");
}

void gs_gen_load_registers(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++) {
        char name[16], row[64];
        if (!w->needed[r] || w->per_edge[r] || w->s->edge_reg[r].kind == GS_EDGE_TEMP)
            continue;
        snprintf(name, sizeof(name), "r%u", r);
        gs_gen_declare(w, name, gs_gen_shape_of(w, gs_gen_width(w, r)));
        if (dtype_of(w, r) == GS_BF16) {
            snprintf(row, sizeof(row), "(const char *)own[%u] + row * %uu", gs_gen_own(w, GS_OWN_ROWS, r),
                     2 * gs_gen_width(w, r));
            load_halves(w, name, row, gs_gen_width(w, r));
            continue;
        }
        snprintf(row, sizeof(row), "own[%u] + row * %uu", gs_gen_own(w, GS_OWN_ROWS, r), gs_gen_width(w, r));
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
void gs_gen_point_typed(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++) {
        const gs_edge_reg *const reg = &w->s->edge_reg[r];
        const uint32_t each = gs_gen_each(w, reg->width), bytes = (uint32_t)gs_dtype_bytes(dtype_of(w, r));
        char start[64];
        if (!gs_gen_is_typed(w, r) || reg->kind == GS_EDGE_WEIGHT)
            continue;
        if (reg->kind == GS_EDGE_TARGET)
            snprintf(start, sizeof(start), "(const char *)(own[%u] + row * %uu)", gs_gen_own(w, GS_OWN_ROWS, r),
                     w->p->array[reg->array].width);
        else
            snprintf(start, sizeof(start), "(const char *)a.all.in[%u]", gs_gen_input(w, false, r));
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

void gs_gen_declare_typed(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        if (gs_gen_is_typed(w, r)) {
            char name[32];
            snprintf(name, sizeof(name), "burst%u[%u]", r, w->k->burst);
            gs_gen_declare(w, name, gs_gen_shape_of(w, gs_gen_width(w, r)));
        }
}

void gs_gen_load_typed(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        if (gs_gen_is_typed(w, r))
            load_of_edge(w, r);
}

void gs_gen_take_typed(gs_gen_writer *w)
{
    for (uint32_t r = 0; r < w->s->edge_regs; r++)
        if (gs_gen_is_typed(w, r)) {
            const gs_gen_shape s = gs_gen_shape_of(w, gs_gen_width(w, r));
            const char *const at = s == GS_GEN_SINGLE ? "" : "[i]";
            char name[16];
            snprintf(name, sizeof(name), "r%u", r);
            gs_gen_declare(w, name, s);
            gs_gen_over(w, s);
            fprintf(w->out, "%s%s = burst%u[b]%s;\n", name, at, r, at);
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
            snprintf(row, sizeof(row), "a.all.in[%u]", gs_gen_input(w, true, from->index));
            gs_gen_declare(w, name, gs_gen_shape_of(w, w->p->param[from->index].cols));
            gs_gen_load(w, name, row, w->p->param[from->index].cols);
        }
    gs_free(seen);
}
