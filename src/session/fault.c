#include "session/fault.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dtype.h" /* gs_index_at */
#include "base/file.h"
#include "ranks/ranks.h"
#include "session/session.h"
#include "store/edge_scan.h"

/* ---- words ---- */

/* A number that stands between '.'s, or behind "layer". */
const char *gs_session_layer_of(const char *name, char *buf, size_t bytes)
{
    const char *at = strstr(name, "layer");

    *buf = '\0';
    at = at != NULL && isdigit((unsigned char)at[5]) ? at + 5 : NULL;
    for (const char *dot = strchr(name, '.'); at == NULL && dot != NULL; dot = strchr(dot + 1, '.')) {
        const size_t digits = strspn(dot + 1, "0123456789");
        if (digits > 0 && dot[1 + digits] == '.')
            at = dot + 1;
    }
    if (at != NULL)
        snprintf(buf, bytes, "layer %lu, ", strtoul(at, NULL, 10));
    return buf;
}

static const char *value_text(float v) { return isnan(v) ? "not a number" : v > 0 ? "infinite" : "-infinite"; }

/* ---- what a register is made of ---- */

static const gs_instr *writer_of(const gs_stage *s, uint32_t reg)
{
    for (uint32_t i = 0; i < s->instrs; i++)
        if (!gs_op_into_param(s->instr[i].op) && s->instr[i].dst == reg)
            return &s->instr[i];
    return NULL;
}

/* The parameter nearest to the register among what it is made of in its stage, or GS_NONE. */
static uint32_t param_of(const gs_stage *s, uint32_t reg, uint32_t depth)
{
    const gs_instr *const in = writer_of(s, reg);
    uint32_t found = GS_NONE;

    for (uint32_t k = 0; in != NULL && k < 3; k++)
        if (gs_instr_operand(in, k)->kind == GS_FROM_PARAM)
            return gs_instr_operand(in, k)->index;
    for (uint32_t k = 0; in != NULL && k < 3 && depth > 0 && found == GS_NONE; k++)
        if (gs_instr_operand(in, k)->kind == GS_FROM_REG)
            found = param_of(s, gs_instr_operand(in, k)->index, depth - 1);
    return found;
}

/* The array whose rows the sum adds up, or the first that its edges read. */
static uint32_t summed_array(const gs_stage *s, uint32_t reg)
{
    uint32_t found = GS_NONE;

    for (gs_array_use u = {0}; gs_stage_next_use(s, &u);) {
        if (u.role != GS_USE_OPERAND && u.role != GS_USE_TARGET)
            continue;
        if (u.sum != GS_NONE && s->sum[u.sum].reg == reg)
            return u.array;
        found = found == GS_NONE ? u.array : found;
    }
    return found;
}

/* ---- at which vertex ---- */

/* A vertex by the number that the input gave it; its place in the store where that cannot be read. */
static uint64_t input_id(const gs_store *s, uint64_t row)
{
    uint32_t id = (uint32_t)row;
    int fd = -1;

    if (gs_store_open_array(&fd, s, GS_ARRAY_INPUT_ID) == GS_OK &&
        gs_pread_exact(fd, &id, sizeof(id), row * sizeof(id), "input_id") != GS_OK)
        id = (uint32_t)row;
    if (fd >= 0)
        close(fd);
    return id;
}

typedef struct negative_edge {
    const gs_chunk_table *table;
    uint64_t target, source; /* source: of the edge with the least weight */
    float weight;
} negative_edge;

static gs_status look_at_edges(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    negative_edge *const n = context;
    const uint64_t first = gs_interval_first(n->table, target);

    for (uint32_t t = 0; v->weight != NULL && t < v->targets; t++) {
        if (first + gs_index_at(v->target, v->index_bytes, t) != n->target)
            continue;
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++)
            if (v->weight[k] < n->weight) {
                n->weight = v->weight[k];
                n->source = gs_interval_first(n->table, operand) + gs_index_at(v->index, v->index_bytes, k);
            }
    }
    return GS_OK;
}

/* "; the edge 1 -> 2 has the weight -3": that into the vertex with the least weight, where that is negative. */
static void say_negative_edge(const gs_session *s, uint64_t row, char *text, size_t bytes)
{
    negative_edge n = {.table = gs_store_chunks(s->store), .target = row};

    *text = '\0';
    if (!gs_store_get_info(s->store)->weights || s->config.options->ignore_edge_weights ||
        gs_edge_scan(s->store, GS_BY_DEST, gs_edge_scan_least(s->store), NULL, look_at_edges, &n) != GS_OK ||
        n.weight >= 0)
        return;
    snprintf(text, bytes, "; the edge %" PRIu64 " -> %" PRIu64 " has the weight %g", input_id(s->store, n.source),
             input_id(s->store, row), (double)n.weight);
}

/* ", at vertex 2 by rsqrt of -2", with an edge that may be why. */
static void say_vertex(const gs_session *s, const gs_exec_fault *f, char *text, size_t bytes)
{
    const bool division = f->operands > 0 && f->op == GS_OP_DIV;
    bool negative = false;
    size_t n;

    n = (size_t)snprintf(text, bytes, ", at vertex %" PRIu64, input_id(s->store, f->row));
    if (f->operands > 0)
        n += (size_t)snprintf(text + n, bytes - n, " by %s%s", division ? "a division" : gs_op_name(f->op),
                              division && f->operand[1] == 0 ? " by 0" : "");
    for (uint32_t k = 0; k < f->operands && n < bytes; k++) {
        n += (size_t)snprintf(text + n, bytes - n, "%s%g", k > 0 ? ", " : division ? ": of " : " of ",
                              (double)f->operand[k]);
        negative = negative || f->operand[k] < 0;
    }
    if (negative && n < bytes)
        say_negative_edge(s, f->row, text + n, bytes - n);
}

#define LONGEST_WAY 32u

static void describe(const gs_session *session, const gs_exec_fault *f, char *text)
{
    const gs_program *const p = session->program;
    const gs_stage *const s = &p->stage[f->stage];
    const gs_reg *const r = &s->reg[f->reg];
    const bool is_sum = r->kind == GS_REG_SUM;
    const uint32_t array = is_sum ? summed_array(s, f->reg) : r->array;
    const uint32_t param = f->stored ? param_of(s, f->reg, LONGEST_WAY) : GS_NONE;
    const char *const name = array != GS_NONE ? p->array[array].name : "";
    char layer[32], vertex[240];

    say_vertex(session, f, vertex, sizeof(vertex));
    if (*gs_session_layer_of(name, layer, sizeof(layer)) == '\0' && param != GS_NONE)
        gs_session_layer_of(p->param[param].name, layer, sizeof(layer));
    snprintf(text, GS_FAULT_TEXT, "%s%s %s (stage %s), whose column %u is %s%s%s%s", layer,
             is_sum ? "the sum over edges of" : "array", name, s->name, f->column, value_text(f->value),
             param != GS_NONE ? ", of parameter " : "", param != GS_NONE ? p->param[param].name : "", vertex);
}

/* ---- looking ---- */

/* Looks where a training pass left all arrays finite. */
static void look_at_gradients(const gs_session *s, char *text)
{
    const gs_params *const params = &s->run.params;
    const uint32_t bad = gs_params_find_nonfinite(params->grad, s->program);
    char layer[32];

    if (bad != GS_NONE)
        snprintf(text, GS_FAULT_TEXT, "%sthe gradient of parameter %s",
                 gs_session_layer_of(s->program->param[bad].name, layer, sizeof(layer)), s->program->param[bad].name);
}

/* Of several ranks: that of the earliest stage, and its lowest row. */
static gs_status take_first(gs_exec_fault *fault)
{
    gs_exec_fault all[GS_RANKS_MOST];

    GS_TRY(gs_ranks_gather(all, fault, sizeof(*fault)));
    for (uint32_t r = 0; r < gs_ranks_count(); r++)
        if (all[r].stage < fault->stage || (all[r].stage == fault->stage && all[r].row < fault->row))
            *fault = all[r];
    return GS_OK;
}

/* Where it is, and then what made it. */
static gs_status watch_pass(gs_session *s, uint32_t pass, uint32_t epoch, gs_exec_fault *fault)
{
    gs_exec_watch *watch = NULL;
    gs_exec_stats stats;

    *fault = (gs_exec_fault){.stage = GS_NONE};
    for (int look = 0; look < 2 && (look == 0 || fault->stored); look++) {
        GS_TRY(gs_exec_watch_open(&watch, look == 0 ? NULL : fault));
        const gs_status st = gs_session_watch(s, pass, epoch, watch, &stats);
        *fault = gs_exec_watch_close(watch);
        GS_TRY(st);
        GS_TRY(take_first(fault));
    }
    return GS_OK;
}

/* What is computed once comes before the pass. */
void gs_session_find_fault(gs_session *s, uint32_t pass, uint32_t epoch, char *text)
{
    const uint32_t setup = gs_program_pass(s->program, "setup");
    gs_exec_fault fault = {.stage = GS_NONE};
    gs_status ran = GS_OK;

    *text = '\0';
    if (setup != GS_NONE)
        ran = watch_pass(s, setup, 0, &fault);
    if (ran == GS_OK && fault.stage == GS_NONE)
        ran = watch_pass(s, pass, epoch, &fault);
    if (fault.stage != GS_NONE)
        describe(s, &fault, text);
    else if (ran == GS_OK && pass == s->pass.train && !gs_session_steps_on_device(s))
        look_at_gradients(s, text);
}

gs_status gs_session_explain_logits(gs_session *s, gs_status st)
{
    char where[GS_FAULT_TEXT], text[GS_FAULT_TEXT];

    if (st != GS_EDEVICE)
        return st;
    snprintf(text, sizeof(text), "%s", gs_last_error());
    gs_session_find_fault(s, s->pass.predict, 0, where);
    return gs_fail(st, "%s%s%s", text, *where != '\0' ? "; first in " : "", where);
}
