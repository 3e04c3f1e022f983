#include "session/batch_memory.h"

#include "base/alloc.h"
#include "base/size.h"

/* The kernel may map so much where one byte is touched. */
#define PAGE (2 * GS_MIB)

/* A bit for each page of the region that some task touches. */
typedef struct touched {
    const gs_program *p;
    const gs_plan *plan;
    const gs_hop_needs *needs;
    const uint32_t *rows_of;
    uint64_t *bits;
} touched;

static void mark(const touched *t, gs_place at, uint64_t first, uint64_t end)
{
    if (at.region != GS_REGION_RESIDENT)
        return;
    for (uint64_t k = (at.offset + first) / PAGE; first < end && k < gs_div_up(at.offset + end, PAGE); k++)
        t->bits[k / 64] |= 1ull << (k % 64);
}

static uint32_t rows_of(const touched *t, uint32_t stage) { return t->rows_of[t->needs->rows[stage]]; }

static uint64_t zeroed_rows(const touched *t, uint32_t array)
{
    return gs_hop_aligned(t->rows_of[t->needs->zeroed[array]], t->rows_of[t->needs->levels]);
}

/* Registers of the rows that the stage runs for, and what is zeroed behind them. */
static void mark_vertex(const touched *t, const gs_task *k, uint32_t left)
{
    const gs_stage *const s = &t->p->stage[k->stage];
    const uint64_t all = rows_of(t, k->stage),
                   rows = all > k->first_row ? GS_MIN(k->rows, all - k->first_row) : 0;

    for (uint32_t r = 0; r < s->regs; r++) {
        const gs_reg *const reg = &s->reg[r];
        const gs_place at = t->plan->reg[k->first_reg + r];
        const uint64_t bytes = reg->width * gs_dtype_bytes(reg->dtype);
        if (reg->kind == GS_REG_LOAD && reg->array == left)
            continue;
        mark(t, at, 0, rows * bytes);
        if (reg->kind == GS_REG_TEMP && reg->array != GS_NONE && k->first_row == 0)
            mark(t, at, all * bytes, zeroed_rows(t, reg->array) * bytes);
    }
}

static void mark_sum(const touched *t, const gs_task *k)
{
    const gs_stage *const s = &t->p->stage[k->stage];
    const uint64_t bytes = (uint64_t)rows_of(t, k->stage) * s->reg[s->sum[k->sum].reg].width * sizeof(float);
    for (int i = 0; i < GS_SUM_PLACES; i++)
        mark(t, t->plan->reg[k->first_reg + (uint32_t)i], 0, bytes);
}

static void mark_task(const touched *t, const gs_task *k, uint32_t left)
{
    const gs_stage *const s = &t->p->stage[k->stage];
    switch (k->kind) {
    case GS_TASK_VERTEX:
        mark_vertex(t, k, left);
        return;
    case GS_TASK_BEGIN:
    case GS_TASK_FINISH:
        mark_sum(t, k);
        return;
    case GS_TASK_ZERO:
        mark(t, k->place, 0,
             k->sum < s->sums && gs_stage_sums_rows(s, k->sum)
                 ? GS_MIN(k->bytes, (uint64_t)rows_of(t, k->stage) * s->reg[s->sum[k->sum].reg].width * sizeof(float))
                 : k->bytes);
        return;
    case GS_TASK_COPY:
        mark(t, k->place, 0, k->bytes);
        return;
    default:
        return; /* sums are touched where they begin */
    }
}

/* Rows that are there before the pass: of the store, or learned. */
static bool is_brought(const gs_program *p, const gs_resident *r)
{
    return r->load || (r->file < p->arrays && p->array[r->file].lasting);
}

gs_status gs_batch_memory(uint64_t *out, const gs_program *p, const gs_plan *plan, const gs_hop_needs *needs,
                          const uint32_t *rows, uint32_t left)
{
    const uint64_t all = plan->region_bytes[GS_REGION_RESIDENT], words = all / PAGE / 64 + 2;
    const touched t = {p, plan, needs, rows, gs_calloc(words, sizeof(*t.bits))};
    uint64_t pages = 0;

    if (t.bits == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the pages of a plan");
    if (gs_program_has_sequences(p)) /* states of all rows */
        mark(&t, (gs_place){GS_REGION_RESIDENT, 0}, 0, all);
    for (uint32_t i = 0; i < plan->residents; i++)
        if (is_brought(p, &plan->resident[i]) && plan->resident[i].file != left)
            mark(&t, (gs_place){GS_REGION_RESIDENT, plan->resident[i].offset}, 0, plan->resident[i].bytes);
    for (uint32_t i = 0; i < plan->tasks; i++)
        mark_task(&t, &plan->task[i], left);
    for (uint64_t k = 0; k < words; k++)
        pages += (uint64_t)__builtin_popcountll(t.bits[k]);
    gs_free(t.bits);
    *out = GS_MIN(pages * PAGE, all);
    return GS_OK;
}
