/* watch.c - what is seen of a pass while it runs: progress, patience of callers, the trace. */
#include "exec/watch.h"

#include <math.h>

#include "base/alloc.h"
#include "base/size.h"
#include "exec/exec_run.h"

/* ---- progress ------------------------------------------------------------- */

/* How far a pass has come, for any thread that asks. Relaxed atomics: what is counted orders nothing. */

void gs_exec__enter_progress(gs_exec *e, uint32_t pass)
{
    const gs_ahead *const list = e->plan->ahead + e->plan->pass[pass].first_ahead;

    __atomic_store_n(&e->progress.tasks, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&e->progress.bytes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&e->progress.pass, pass, __ATOMIC_RELAXED);
    for (uint32_t k = 0; k < e->lanes.ahead; k++)
        if (e->lanes.state[list[k].task] == GS_FETCHED)
            gs_exec__count(e, list[k].task);
}

void gs_exec__count(gs_exec *e, uint32_t task)
{
    const gs_task *const t = &e->plan->task[task];

    __atomic_fetch_add(&e->progress.tasks, 1, __ATOMIC_RELAXED);
    if (gs_task_is_transfer(t))
        __atomic_fetch_add(&e->progress.bytes, gs_task_bytes(e->plan, t), __ATOMIC_RELAXED);
}

void gs_exec_get_progress(const gs_exec *e, gs_exec_progress *out)
{
    out->pass = __atomic_load_n(&e->progress.pass, __ATOMIC_RELAXED);
    out->tasks = __atomic_load_n(&e->progress.tasks, __ATOMIC_RELAXED);
    out->bytes = __atomic_load_n(&e->progress.bytes, __ATOMIC_RELAXED);
}

/* ---- watching ------------------------------------------------------------- */

gs_status gs_exec_watch_open(gs_exec_watch **out, const gs_exec_fault *found)
{
    gs_exec_watch *const w = gs_calloc(1, sizeof(*w));

    if (w == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: looking for what is not finite");
    pthread_mutex_init(&w->lock, NULL);
    w->first.stage = GS_NONE;
    w->explains = found != NULL;
    if (found != NULL)
        w->first = *found;
    *out = w;
    return GS_OK;
}

gs_exec_fault gs_exec_watch_close(gs_exec_watch *w)
{
    const gs_exec_fault first = w->first;

    pthread_mutex_destroy(&w->lock);
    gs_free(w);
    return first;
}

/* Rows that a launch reads are older than those that it stores; registers are in the order of their instructions. */
static bool is_before(const gs_exec_fault *a, const gs_exec_fault *b)
{
    if (b->stage == GS_NONE || a->stage != b->stage)
        return b->stage == GS_NONE || a->stage < b->stage;
    return a->stored != b->stored ? b->stored : a->reg < b->reg;
}

/* Looks at rows as they lie at `from`, some at a time. The lock is held. */
static gs_status look(gs_exec_watch *w, gs_device *d, const void *from, const gs_reg *r, uint32_t rows,
                      gs_exec_fault fault)
{
    const uint64_t size = gs_dtype_bytes(r->dtype), count = (uint64_t)rows * r->width, most = sizeof(w->piece) / size;

    for (uint64_t at = 0; at < count; at += most) {
        const uint64_t n = GS_MIN(count - at, most);
        const gs_status st = gs_device_peek(d, w->piece, (const char *)from + at * size, n * size);
        if (st != GS_OK)
            return st;
        gs_convert_to_f32(w->number, w->piece, r->dtype, n);
        for (uint64_t i = 0; i < n; i++)
            if (!isfinite(w->number[i])) {
                fault.row += (at + i) / r->width;
                fault.column = (uint32_t)((at + i) % r->width);
                fault.value = w->number[i];
                w->first = fault;
                return GS_OK;
            }
    }
    return GS_OK;
}

static bool is_number(gs_dtype t) { return t == GS_F32 || t == GS_BF16 || t == GS_F16; }

gs_status gs_exec__watch_vertex(gs_exec *e, gs_exec_device *x, const gs_task *t, bool stored)
{
    gs_exec_watch *const w = e->args->watch;
    const gs_stage *const s = &e->program->stage[t->stage];
    gs_status st = GS_OK;

    pthread_mutex_lock(&w->lock);
    /* before the launch: temporaries may take the place of sums */
    if (w->explains && !stored && t->stage == w->first.stage && w->first.row - t->first_row < t->rows)
        gs_exec__explain_row(e, x, t, (uint32_t)(w->first.row - t->first_row), w->number, GS_ARRAY_LEN(w->number),
                             &w->first);
    for (uint32_t r = 0; r < s->regs && st == GS_OK && !w->explains; r++) {
        const gs_exec_fault fault = {.stage = t->stage, .stored = stored, .reg = r, .row = t->first_row};
        const void *const from = gs_exec__at(e, x, e->plan->reg[t->first_reg + r]);
        const bool has_rows = s->reg[r].kind != GS_REG_TEMP || s->reg[r].array != GS_NONE;
        if (from != NULL && has_rows && (s->reg[r].kind == GS_REG_TEMP) == stored && is_number(s->reg[r].dtype) &&
            is_before(&fault, &w->first))
            st = look(w, x->device, from, &s->reg[r], t->rows, fault);
    }
    pthread_mutex_unlock(&w->lock);
    return st;
}
