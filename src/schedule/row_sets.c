/* row_sets.c - from the last stage of a program to the first: which rows are needed? */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/row_sets_internal.h"

/* Rows of the array where it is 0 need not be made: what was never stored reads as 0. */
static void need(struct finder *f, uint32_t *needed, uint32_t array, uint32_t set)
{
    needed[array] = gs_rows__unite(f, needed[array], gs_rows__meet(f, set, f->array[array]));
}

/* Rows that stage k must run for, and what it needs of others. */
static void settle(struct finder *f, uint32_t *needed, uint32_t k, uint32_t reported)
{
    const gs_program *p = f->c->program;
    const gs_stage *s = &p->stage[k];
    const struct support *sup = &f->support[k];
    struct gs_stage_rows *out = &f->out.stage[k];
    uint32_t rows = sup->everything ? GS_ALL_ROWS : sup->reduced;

    if (sup->loss)
        rows = gs_rows__unite(f, rows, reported);
    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind == GS_REG_TEMP && s->reg[r].array != GS_NONE) {
            const uint32_t array = s->reg[r].array;
            const uint32_t held = array == p->logits         ? GS_ALL_ROWS
                                  : p->array[array].result ? f->array[array] /* the rest reads as 0 */
                                                             : needed[array];
            rows = gs_rows__unite(f, rows, held);
            f->out.array[array] = sup->everything ? GS_ALL_ROWS : held;
        }
    out->rows = rows;
    out->targets = sup->everything ? GS_ALL_ROWS : gs_rows__meet(f, rows, sup->targets);
    out->operands = sup->everything ? GS_ALL_ROWS : sup->operands;

    /* Where edges from few rows count, all of those are taken: finding which of them are named costs a pass over the
     * edges. */
    const uint32_t read = s->sums == 0                   ? f->none
                          : out->operands != GS_ALL_ROWS ? out->operands
                                                         : gs_rows__reach(f, s->direction, out->targets);
    gs_rows__demand(f, f->demand, k, rows);
    for (gs_array_use u = {0}; gs_stage_next_use(s, &u);) {
        if (u.role == GS_USE_OPERAND || u.role == GS_USE_SCALE)
            need(f, needed, u.array, read);
        else if (u.role == GS_USE_TARGET || u.role == GS_USE_OWN)
            need(f, needed, u.array, u.role == GS_USE_TARGET && f->c->few_loads ? out->targets : rows);
        else if (u.role == GS_USE_LOAD)
            need(f, needed, u.array, f->c->few_loads ? f->demand[u.reg] : rows);
    }
}

static gs_status settle_all(struct finder *f)
{
    const gs_program *p = f->c->program;
    uint32_t *needed = gs_malloc_array(p->arrays + 1, sizeof(*needed));

    if (needed == NULL)
        return f->status = gs_fail(GS_ENOMEM, "out of memory for the rows that a loss sees");
    for (uint32_t a = 0; a < p->arrays; a++)
        needed[a] = f->none;
    for (uint32_t q = p->passes; q-- > 0;) {
        const gs_pass *pass = &p->pass[q];
        const uint32_t reported = f->c->reported[q] == NULL ? GS_ALL_ROWS : gs_rows__add(f, f->c->reported[q]);
        for (uint32_t k = pass->first_stage + pass->stages; k-- > pass->first_stage && f->status == GS_OK;)
            settle(f, needed, k, reported);
    }
    gs_free(needed);
    return f->status;
}

static size_t most_regs(const gs_program *p)
{
    size_t regs = 1;
    for (uint32_t k = 0; k < p->stages; k++)
        regs = GS_MAX(regs, p->stage[k].regs);
    return regs;
}

static gs_status finder_open(struct finder *f)
{
    const gs_program *p = f->c->program;

    f->words = (uint64_t)f->c->chunks->parts * f->out.granules.words;
    f->out.room = 16;
    f->out.sets = 1;
    f->out.stages = p->stages;
    f->out.bits = gs_calloc(f->out.room, sizeof(*f->out.bits));
    f->out.stage = gs_calloc(p->stages + 1, sizeof(*f->out.stage));
    f->out.array = gs_calloc(p->arrays + 1, sizeof(*f->out.array));
    f->array = gs_calloc(p->arrays + 1, sizeof(*f->array));
    f->support = gs_calloc(p->stages + 1, sizeof(*f->support));
    f->demand = gs_calloc(most_regs(p), sizeof(*f->demand));
    uint64_t *empty = gs_calloc(f->words, sizeof(*empty));
    if (f->out.bits == NULL || f->out.stage == NULL || f->out.array == NULL || f->array == NULL || f->support == NULL ||
        f->demand == NULL || empty == NULL) {
        gs_free(empty);
        return gs_fail(GS_ENOMEM, "out of memory for the rows that a loss sees");
    }
    f->out.bits[1] = empty;
    f->none = 1;
    f->out.sets = 2;
    f->closed = gs_rows__unsafe(p);
    f->train = gs_rows__add(f, f->c->train);
    return f->status;
}

gs_status gs_row_sets_find(gs_row_sets *out, const gs_row_sets_config *config)
{
    struct finder f = {.c = config, .out = {.chunks = config->chunks, .granules = config->granules}};
    gs_status st;

    if ((st = finder_open(&f)) == GS_OK && (st = gs_rows__support(&f)) == GS_OK && (st = settle_all(&f)) == GS_OK) {
        *out = f.out;
        f.out = (gs_row_sets){0};
    }
    gs_row_sets_drop(&f.out);
    for (uint32_t k = 0; f.support != NULL && k < config->program->stages; k++)
        gs_free(f.support[k].reg);
    gs_free(f.demand);
    gs_free(f.array);
    gs_free(f.support);
    return st;
}

void gs_row_sets_drop(gs_row_sets *s)
{
    for (uint32_t k = 0; s->bits != NULL && k < s->sets; k++)
        gs_free(s->bits[k]);
    gs_free(s->bits);
    gs_free(s->stage);
    gs_free(s->array);
    *s = (gs_row_sets){0};
}

/* Runs of one interval into run[], or only their number. */
static uint32_t runs_of(gs_row_run *run, const gs_row_sets *s, const uint64_t *bits, uint32_t interval)
{
    const uint32_t rows = gs_interval_rows(s->chunks, interval), size = s->granules.rows;
    const uint32_t short_end = gs_short_end(rows);
    uint32_t n = 0, first = 0, end = 0; /* of the run at hand, in rows; none where end is 0 */

    for (uint32_t at = 0; at < rows; at += size) {
        const uint32_t g = at / size;
        if (!(bits[g / 64] >> (g % 64) & 1))
            continue;
        if (end > 0 && at - end >= GS_ROW_GAP) {
            if (run != NULL)
                run[n] = (gs_row_run){first, end - first};
            n++;
            end = 0;
        }
        if (end == 0)
            first = n == 0 && at < short_end ? 0 : at;
        end = GS_MIN(at + size, rows);
    }
    if (end > 0) {
        end = rows - end < short_end ? rows : end;
        if (run != NULL)
            run[n] = (gs_row_run){first, end - first};
        n++;
    }
    return n;
}

gs_status gs_row_sets_runs(gs_row_runs *out, const gs_row_sets *s, uint32_t id)
{
    const uint32_t parts = s->chunks->parts;
    gs_row_runs r = {.first = gs_malloc_array(parts + 1, sizeof(*r.first))};

    if (r.first != NULL) {
        r.first[0] = 0;
        for (uint32_t i = 0; i < parts; i++)
            r.first[i + 1] = r.first[i] + runs_of(NULL, s, s->bits[id] + (uint64_t)i * s->granules.words, i);
        r.run = gs_malloc_array(r.first[parts] + 1, sizeof(*r.run));
    }
    if (r.run == NULL) {
        gs_free(r.first);
        return gs_fail(GS_ENOMEM, "out of memory for the rows that a loss sees");
    }
    for (uint32_t i = 0; i < parts; i++)
        runs_of(r.run + r.first[i], s, s->bits[id] + (uint64_t)i * s->granules.words, i);
    *out = r;
    return GS_OK;
}
