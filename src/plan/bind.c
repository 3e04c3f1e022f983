/* bind.c - tasks of a plan, cut to the rows of a graph. */
#include "plan/bind.h"

#include "base/size.h"

static uint32_t rows_of(const gs_binding *b, uint32_t stage) { return b->rows != NULL ? b->rows[stage] : b->vertices; }

/* Sums of rows are zeroed as bytes. States of a sequence are too, of all rows: who has no edges keeps them. */
static void cut_zero(gs_task *t, const gs_stage *s, uint64_t rows)
{
    if (t->sum < s->sums && gs_stage_sums_rows(s, t->sum))
        t->bytes = GS_MIN(t->bytes, rows * s->reg[s->sum[t->sum].reg].width * sizeof(float));
}

bool gs_task_bind(gs_task *t, const gs_binding *b, const gs_program *p)
{
    const uint32_t rows = rows_of(b, t->stage);

    switch (t->kind) {
    case GS_TASK_VERTEX:
    case GS_TASK_SELF:
        if (t->first_row >= rows)
            return false;
        t->rows = (uint32_t)GS_MIN(t->rows, rows - t->first_row);
        return true;
    case GS_TASK_BEGIN:
    case GS_TASK_FINISH:
    case GS_TASK_EDGES:
        t->rows = GS_MIN(t->rows, rows);
        return t->rows > 0;
    case GS_TASK_ZERO:
        cut_zero(t, &p->stage[t->stage], rows);
        return t->bytes > 0;
    default:
        return true;
    }
}

uint32_t gs_task_whole_rows(const gs_task *t, const gs_binding *b)
{
    const uint32_t whole = b->whole != NULL ? b->whole[t->stage] : UINT32_MAX;
    return whole > t->first_row ? (uint32_t)GS_MIN(t->rows, whole - t->first_row) : 0;
}

bool gs_task_zeroes(uint64_t *begin, uint64_t *end, const gs_task *t, const gs_binding *b, const gs_program *p,
                    uint32_t reg)
{
    const gs_reg *const r = &p->stage[t->stage].reg[reg];

    if (t->kind != GS_TASK_VERTEX || t->first_row > 0 || b->zeroed == NULL || r->kind != GS_REG_TEMP ||
        r->array == GS_NONE)
        return false;
    const uint64_t row = (uint64_t)r->width * gs_dtype_bytes(p->array[r->array].dtype);
    *begin = rows_of(b, t->stage) * row;
    *end = b->zeroed[r->array] * row;
    return *begin < *end;
}
