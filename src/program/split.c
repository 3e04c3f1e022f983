/* split.c - a program whose stages are several: sums apart from what comes of them, and sums in parts.
 *
 * Devices may then have other columns of the one than of the other (schedule/deals.c), or each some columns of the
 * rows. What is computed stays the same to the bit.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "program/program.h"

/* ---- halves ------------------------------------------------------------ */

/* Stages in two: an edge pass that stores its sums, and a vertex program that loads them.
 *
 * Devices that are not alike may then have other columns of the one than of the other: sums go to where products are
 * fast, or rows that products made narrow to where edges are (schedule/deals.c).
 */

/* All that its edge pass makes is a register that its vertex program reads. */
static bool can_split(const gs_stage *s)
{
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].kind == GS_SUM_OUTER || s->sum[i].kind == GS_SUM_LSTM_BACK)
            return false;
    return s->sums > 0 && s->instrs > 0;
}

static bool is_setup(const gs_program *p, uint32_t stage)
{
    const uint32_t setup = gs_program_pass(p, "setup");
    return setup != GS_NONE && stage >= p->pass[setup].first_stage &&
           stage - p->pass[setup].first_stage < p->pass[setup].stages;
}

/* Register `from`, a sum's, becomes a register of the stage that makes it, which stores it in the array: its number. */
static uint32_t store_sum(gs_stage *sums, const gs_reg *from, uint32_t array)
{
    const uint32_t to = sums->regs;

    sums->reg[sums->regs++] = *from;
    sums->reg[sums->regs++] = (gs_reg){GS_REG_TEMP, GS_F32, from->width, array};
    sums->instr[sums->instrs++] = (gs_instr){.op = GS_OP_MUL, .dst = to + 1, .a = {.kind = GS_FROM_REG, .index = to},
                                             .b = {.kind = GS_FROM_CONST, .value = 1}};
    return to;
}

/* ---- a list of stages that grows ---------------------------------------- */

typedef struct stage_list {
    gs_stage *stage; /* NULL: memory is short */
    uint32_t *at;    /* [stages + 1] that there were: their first one now */
    uint32_t stages;
} stage_list;

/* `each`: most that come of one. */
static gs_status list_begin(stage_list *l, const gs_program *p, uint32_t each)
{
    *l = (stage_list){gs_calloc((uint64_t)each * p->stages + 1, sizeof(*l->stage)),
                      gs_calloc(p->stages + 1ull, sizeof(*l->at)), 0};
    if (l->stage != NULL && l->at != NULL)
        return GS_OK;
    gs_free(l->stage);
    gs_free(l->at);
    return gs_fail(GS_ENOMEM, "no memory for the stages of the program");
}

/* The program has these. */
static void list_end(stage_list *l, gs_program *p)
{
    l->at[p->stages] = l->stages;
    for (uint32_t i = 0; i < p->passes; i++) {
        const uint32_t first = p->pass[i].first_stage, end = first + p->pass[i].stages;
        p->pass[i].first_stage = l->at[first];
        p->pass[i].stages = l->at[end] - l->at[first];
    }
    gs_free(l->at);
    gs_free(p->stage);
    p->stage = l->stage;
    p->stages = l->stages;
}

/* `whole` gives its edge pass to *sums, and loads what that stores. */
static gs_status split_stage(gs_program *p, gs_stage *sums, gs_stage *whole, uint32_t stage)
{
    *sums = *whole;
    snprintf(sums->name, sizeof(sums->name), "%.55s, sums", whole->name);
    sums->regs = sums->instrs = 0;
    sums->reg = gs_calloc(4ull * GS_STAGE_SUMS, sizeof(*sums->reg));
    sums->instr = gs_calloc(2ull * GS_STAGE_SUMS, sizeof(*sums->instr));
    whole->sums = whole->edge_regs = whole->edge_instrs = 0;
    whole->edge_reg = NULL;
    whole->edge_instr = NULL;
    GS_NEED(sums->reg != NULL && sums->instr != NULL, "no memory for a stage of the program");
    for (uint32_t i = 0; i < sums->sums; i++) {
        uint32_t *const of[] = {&sums->sum[i].reg, &sums->sum[i].lse};
        for (int k = 0; k < (sums->sum[i].kind == GS_SUM_ATTEND ? 2 : 1); k++) {
            gs_reg *const r = &whole->reg[*of[k]];
            gs_array a = {.dtype = GS_F32, .width = r->width, .store_id = -1};
            uint32_t array;
            snprintf(a.name, sizeof(a.name), "sums.%u.%u", stage, sums->instrs);
            GS_TRY(gs_program_add_array(p, &array, &a));
            *of[k] = store_sum(sums, r, array);
            *r = (gs_reg){GS_REG_LOAD, GS_F32, r->width, array};
        }
    }
    return GS_OK;
}

gs_status gs_program_split(gs_program *p)
{
    stage_list list;
    gs_status st = GS_OK;

    GS_TRY(list_begin(&list, p, 2));
    for (uint32_t s = 0; s < p->stages; s++) {
        list.at[s] = list.stages;
        if (st == GS_OK && can_split(&p->stage[s]) && !is_setup(p, s))
            st = split_stage(p, &list.stage[list.stages++], &p->stage[s], s);
        list.stage[list.stages++] = p->stage[s];
    }
    list_end(&list, p);
    return st;
}

/* ---- widths ------------------------------------------------------------ */

/* Edge passes in parts, each of which sums some columns of rows over all edges, on a device of its own (WiseGraph's
 * split of the width).
 *
 * Who makes rows stores them as so many arrays, of some columns each. A part's stage sums one of them and stores its
 * sums; the stage itself loads the sums of all parts, side by side. Each element is added up over the same edges in the
 * same order as before, so all bits stay.
 */

/* Columns of parts begin at multiples of so many, where there are as many for each. */
#define PART_COLUMNS 4u

/* Column at which part k of so many begins, of a row of `width`. */
static uint32_t part_begins(uint32_t width, uint32_t parts, uint32_t k)
{
    const uint32_t unit = width >= PART_COLUMNS * parts ? PART_COLUMNS : 1;
    const uint32_t units = (width + unit - 1) / unit;
    return GS_MIN(width, (uint32_t)((uint64_t)units * k / parts) * unit);
}

/* An array of which parts can be made where it is made. */
static bool has_parts(const gs_program *p, uint32_t array)
{
    const gs_array *const a = &p->array[array];
    return a->store_id < 0 && !a->lasting && !a->outside && a->dtype == GS_F32;
}

/* Does every column of an edge register depend on the same column of others, or on registers of one? */
static bool goes_by_columns(const gs_program *p, const gs_stage *s, const gs_instr *i)
{
    bool narrow = s->edge_reg[i->dst].width == 1;

    for (uint32_t k = 0; k < gs_op_inputs(i->op); k++) {
        const gs_operand *const o = gs_instr_operand(i, k);
        if (o->kind == GS_FROM_PARAM && gs_param_elements(&p->param[o->index]) != 1)
            return false;
        narrow = narrow && (o->kind != GS_FROM_REG || s->edge_reg[o->index].width == 1);
    }
    return gs_op_is_each(i->op) || narrow;
}

uint32_t gs_stage_parted_width(const gs_program *p, uint32_t stage)
{
    const gs_stage *const s = &p->stage[stage];

    if (!can_split(s) || is_setup(p, stage) || s->products != GS_PRODUCTS_OF_EDGES || gs_stage_has_types(s))
        return 0;
    const uint32_t width = s->reg[s->sum[0].reg].width;
    for (uint32_t i = 0; i < s->sums; i++) {
        const gs_sum_kind kind = s->sum[i].kind;
        if ((kind != GS_SUM_ADD && kind != GS_SUM_MAX && kind != GS_SUM_MIN) || s->reg[s->sum[i].reg].width != width ||
            s->edge_reg[s->sum[i].value].width != width)
            return 0;
    }
    for (uint32_t r = 0; r < s->edge_regs; r++) {
        const gs_edge_reg *const g = &s->edge_reg[r];
        const bool of_array = g->kind == GS_EDGE_OPERAND || g->kind == GS_EDGE_TARGET;
        if (g->width != 1 && (g->width != width || (of_array ? !has_parts(p, g->array) : g->kind != GS_EDGE_TEMP)))
            return 0;
    }
    for (uint32_t i = 0; i < s->edge_instrs; i++)
        if (!goes_by_columns(p, s, &s->edge_instr[i]))
            return 0;
    return width > 1 ? width : 0;
}

typedef struct parting {
    gs_program *p;
    uint32_t parts;
    const bool *takes; /* [stages] whose edge pass is parted */
    uint32_t arrays;   /* that there were, */
    uint32_t *part;    /* [arrays] the first array of its parts; 0: it has none */
    bool *whole;       /* [arrays] it is read as a whole, too */
} parting;

/* Adds `parts` arrays of the columns of one of `width`. */
static gs_status add_parts(parting *x, uint32_t *first, const char *name, uint32_t width)
{
    *first = x->p->arrays;
    for (uint32_t k = 0; k < x->parts; k++) {
        const uint32_t from = part_begins(width, x->parts, k);
        gs_array a = {.dtype = GS_F32, .width = part_begins(width, x->parts, k + 1) - from, .store_id = -1};
        uint32_t index;
        snprintf(a.name, sizeof(a.name), "%.50s from %u", name, from);
        GS_TRY(gs_program_add_array(x->p, &index, &a));
    }
    return GS_OK;
}

/* Of an array that an edge pass reads by parts. */
static bool reads_parts(const parting *x, uint32_t stage, const gs_array_use *u)
{
    const bool edges = u->role == GS_USE_OPERAND || u->role == GS_USE_TARGET || u->role == GS_USE_OWN;
    return x->takes[stage] && edges && x->p->array[u->array].width > 1;
}

/* Who has parts, and who is still read as a whole? */
static gs_status list_parts(parting *x)
{
    gs_program *const p = x->p;

    for (uint32_t s = 0; s < p->stages; s++)
        for (gs_array_use u = {0}; gs_stage_next_use(&p->stage[s], &u);) {
            const bool by_parts = reads_parts(x, s, &u);
            if (by_parts && x->part[u.array] == 0) {
                char name[GS_NAME_BYTES];
                snprintf(name, sizeof(name), "%s", p->array[u.array].name);
                GS_TRY(add_parts(x, &x->part[u.array], name, p->array[u.array].width));
            }
            x->whole[u.array] = x->whole[u.array] || (!by_parts && u.role != GS_USE_STORE);
        }
    for (uint32_t a = 0; a < x->arrays; a++)
        x->whole[a] = x->whole[a] || p->array[a].result || a == p->logits;
    for (uint32_t k = 0; k < p->results; k++)
        x->whole[p->result[k]] = true;
    return GS_OK;
}

/* The stage's edge pass for part k of its columns, which stores its sums in arrays from `sums` on: of each sum, one a
 * part. */
static gs_status part_stage(const parting *x, gs_stage *out, const gs_stage *of, uint32_t k, const uint32_t *sums)
{
    const uint32_t width = of->reg[of->sum[0].reg].width, from = part_begins(width, x->parts, k);
    const uint32_t columns = part_begins(width, x->parts, k + 1) - from;

    *out = *of;
    snprintf(out->name, sizeof(out->name), "%.40s, columns from %u", of->name, from);
    out->alone = 1 + k;
    out->regs = out->instrs = 0;
    out->reg = gs_calloc(2ull * of->sums, sizeof(*out->reg));
    out->instr = gs_calloc(of->sums, sizeof(*out->instr));
    out->edge_reg = gs_calloc(of->edge_regs + 1ull, sizeof(*out->edge_reg));
    out->edge_instr = gs_calloc(of->edge_instrs + 1ull, sizeof(*out->edge_instr));
    if (out->reg == NULL || out->instr == NULL || out->edge_reg == NULL || out->edge_instr == NULL)
        return gs_fail(GS_ENOMEM, "no memory for a stage of the program");
    memcpy(out->edge_instr, of->edge_instr, of->edge_instrs * sizeof(*out->edge_instr));
    for (uint32_t r = 0; r < of->edge_regs; r++) {
        gs_edge_reg *const g = &out->edge_reg[r];
        *g = of->edge_reg[r];
        if (g->width == 1)
            continue;
        g->width = columns;
        g->array = g->array == GS_NONE ? GS_NONE : x->part[g->array] + k;
    }
    for (uint32_t i = 0; i < of->sums; i++) {
        gs_reg sum = of->reg[of->sum[i].reg];
        sum.width = columns;
        out->sum[i].reg = store_sum(out, &sum, sums[i] + k);
    }
    return GS_OK;
}

/* Room for so many registers and instructions more, these in front of and behind those that are there. */
static gs_status grow_stage(gs_stage *s, uint32_t regs, uint32_t before, uint32_t behind)
{
    gs_reg *const reg = gs_calloc(s->regs + regs + 1ull, sizeof(*reg));
    gs_instr *const instr = gs_calloc(s->instrs + before + behind + 1ull, sizeof(*instr));

    if (reg == NULL || instr == NULL) {
        gs_free(reg);
        gs_free(instr);
        return gs_fail(GS_ENOMEM, "no memory for a stage of the program");
    }
    memcpy(reg, s->reg, s->regs * sizeof(*reg));
    memcpy(instr + before, s->instr, s->instrs * sizeof(*instr));
    gs_free(s->reg);
    gs_free(s->instr);
    s->reg = reg;
    s->instr = instr;
    s->instrs += before;
    return GS_OK;
}

/* The stage loads a sum's parts, from arrays `first` on, and puts them side by side: instructions from `at` on. */
static void join_sum(const parting *x, gs_stage *s, uint32_t sum, uint32_t first, uint32_t at)
{
    uint32_t part[GS_STAGE_PARTS], left = x->parts;

    for (uint32_t k = 0; k < x->parts; k++) {
        part[k] = s->regs;
        s->reg[s->regs++] = (gs_reg){GS_REG_LOAD, GS_F32, x->p->array[first + k].width, first + k};
    }
    s->reg[sum].kind = GS_REG_TEMP;
    s->reg[sum].array = GS_NONE;
    while (left > 1) { /* pairs of neighbours */
        uint32_t made = 0;
        for (uint32_t k = 0; k + 1 < left; k += 2) {
            const uint32_t dst = left == 2 ? sum : s->regs;
            const uint32_t a = part[k], b = part[k + 1];
            if (dst != sum)
                s->reg[s->regs++] = (gs_reg){GS_REG_TEMP, GS_F32, s->reg[a].width + s->reg[b].width, GS_NONE};
            s->instr[at++] = (gs_instr){.op = GS_OP_CONCAT, .dst = dst, .a = {.kind = GS_FROM_REG, .index = a},
                                        .b = {.kind = GS_FROM_REG, .index = b}};
            part[made++] = dst;
        }
        if (left % 2 == 1)
            part[made++] = part[left - 1];
        left = made;
    }
}

/* The stage `whole` gives its edge pass to `parts` stages from *out on. */
static gs_status part_sums(parting *x, gs_stage *out, gs_stage *whole, uint32_t stage)
{
    uint32_t sums[GS_STAGE_SUMS];
    const uint32_t joins = whole->sums * (x->parts - 1), width = whole->reg[whole->sum[0].reg].width;
    gs_status st = GS_OK;

    for (uint32_t i = 0; i < whole->sums && st == GS_OK; i++) {
        char name[GS_NAME_BYTES];
        snprintf(name, sizeof(name), "sums.%u.%u", stage, i);
        st = add_parts(x, &sums[i], name, width);
    }
    for (uint32_t k = 0; k < x->parts && st == GS_OK; k++)
        st = part_stage(x, &out[k], whole, k, sums);
    if (st == GS_OK)
        st = grow_stage(whole, whole->sums * 2 * x->parts, joins, 0);
    for (uint32_t i = 0; i < whole->sums && st == GS_OK; i++)
        join_sum(x, whole, whole->sum[i].reg, sums[i], i * (x->parts - 1));
    gs_free(whole->edge_reg);
    gs_free(whole->edge_instr);
    whole->sums = whole->edge_regs = whole->edge_instrs = 0;
    whole->edge_reg = NULL;
    whole->edge_instr = NULL;
    return st;
}

/* What the stage stores and others read by parts, it stores so. */
static gs_status store_parts(const parting *x, gs_stage *s)
{
    const uint32_t regs = s->regs;
    uint32_t stored = 0;

    for (uint32_t r = 0; r < regs; r++)
        stored += s->reg[r].kind == GS_REG_TEMP && s->reg[r].array < x->arrays && x->part[s->reg[r].array] != 0;
    if (stored == 0)
        return GS_OK;
    GS_TRY(grow_stage(s, stored * x->parts, 0, stored * x->parts));
    for (uint32_t r = 0; r < regs; r++) {
        const uint32_t array = s->reg[r].array;
        if (s->reg[r].kind != GS_REG_TEMP || array >= x->arrays || x->part[array] == 0)
            continue;
        for (uint32_t k = 0; k < x->parts; k++) {
            const uint32_t part = x->part[array] + k;
            s->instr[s->instrs++] = (gs_instr){.op = GS_OP_PART, .dst = s->regs, .a = {.kind = GS_FROM_REG, .index = r},
                                               .site = part_begins(s->reg[r].width, x->parts, k)};
            s->reg[s->regs++] = (gs_reg){GS_REG_TEMP, GS_F32, x->p->array[part].width, part};
        }
        s->reg[r].array = x->whole[array] ? array : GS_NONE;
    }
    return GS_OK;
}

gs_status gs_program_part_widths(gs_program *p, uint32_t parts, const bool *takes)
{
    parting x = {.p = p, .parts = parts, .takes = takes, .arrays = p->arrays};
    stage_list list;
    gs_status st;

    GS_TRY(list_begin(&list, p, parts + 1));
    x.part = gs_calloc(p->arrays + 1ull, sizeof(*x.part));
    x.whole = gs_calloc(p->arrays + 1ull, sizeof(*x.whole));
    st = x.part == NULL || x.whole == NULL ? gs_fail(GS_ENOMEM, "no memory for the stages of the program")
                                           : list_parts(&x);
    for (uint32_t s = 0; s < p->stages; s++) {
        list.at[s] = list.stages;
        if (st == GS_OK && takes[s]) {
            st = part_sums(&x, &list.stage[list.stages], &p->stage[s], s);
            list.stages += parts;
        }
        if (st == GS_OK)
            st = store_parts(&x, &p->stage[s]);
        list.stage[list.stages++] = p->stage[s];
    }
    gs_free(x.part);
    gs_free(x.whole);
    list_end(&list, p);
    return st;
}
