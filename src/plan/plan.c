/* plan.c - a plan owns its arrays; what a task moves. */
#include "plan/plan.h"

#include "base/alloc.h"
#include "base/size.h"

void gs_plan_free(gs_plan *p)
{
    if (p == NULL)
        return;
    gs_free(p->task);
    gs_free(p->dep);
    gs_free(p->reg);
    gs_free(p->run);
    gs_free(p->row_bits);
    gs_free(p->ahead);
    gs_free(p->resident);
    gs_free(p->pass);
    gs_free(p->spill.first);
    gs_free(p->spill.bytes);
    gs_free(p->maker);
    gs_free(p);
}

uint64_t gs_task_bytes(const gs_plan *plan, const gs_task *t)
{
    uint64_t bytes = 0;
    if (gs_task_moves_rows(t))
        return t->moved_rows * t->row_bytes;
    if (t->kind != GS_TASK_MOVE || t->runs == 0)
        return t->bytes;
    for (uint32_t r = 0; r < t->runs; r++) { /* a copy's last run ends where its rows do */
        const gs_block_run run = plan->run[t->first_run + r];
        bytes += GS_MIN((run.first + (uint64_t)run.blocks) * GS_BLOCK_BYTES, t->bytes) - run.first * GS_BLOCK_BYTES;
    }
    return bytes;
}

bool gs_task_next_rows(const gs_plan *plan, const gs_task *t, gs_row_stretch *x)
{
    const uint64_t *const bits = plan->row_bits + t->first_word, rows = t->bytes / t->row_bytes;

    x->first = gs_next_bit(bits, x->first + x->rows, rows, true);
    x->rows = gs_next_bit(bits, x->first, rows, false) - x->first;
    return x->rows > 0;
}

uint32_t gs_task_requests(const gs_task *t)
{
    return t->kind == GS_TASK_MOVE && t->runs > 0 ? t->runs : 1;
}

/* A place of the numbers that the sum's operand rows are multiplied by, where there are some. */
static uint32_t scales(const gs_program *p, const gs_task *t)
{
    gs_row_sum rows;
    return gs_sum_of_rows(&rows, &p->stage[t->stage], t->sum) && rows.scale != GS_NONE ? 1 : 0;
}

uint32_t gs_task_registers(const gs_task *t, const gs_program *p)
{
    const gs_stage *const s = &p->stage[t->stage];
    switch (t->kind) {
    case GS_TASK_EDGES:
        return t->sum == GS_NONE ? s->edge_regs + s->sums * GS_SUM_PLACES : scales(p, t);
    case GS_TASK_SELF:
        return scales(p, t);
    case GS_TASK_VERTEX:
        return s->regs;
    case GS_TASK_BEGIN:
    case GS_TASK_FINISH:
        return GS_SUM_PLACES;
    case GS_TASK_UNROLL:
    case GS_TASK_BACK:
        return GS_STATE_PLACES;
    default:
        return 0;
    }
}

const char *gs_task_word(const gs_task *t)
{
    static const char *const kind[GS_TASK_KINDS] = {
        [GS_TASK_ZERO] = "zero",     [GS_TASK_BEGIN] = "begin", [GS_TASK_FINISH] = "finish",
        [GS_TASK_SELF] = "self",     [GS_TASK_EDGES] = "edges", [GS_TASK_COPY] = "copy",
        [GS_TASK_UNROLL] = "unroll", [GS_TASK_BACK] = "back",   [GS_TASK_STATISTICS] = "statistics",
        [GS_TASK_VERTEX] = "vertex",
    };
    static const char *const io[] = {[GS_LANE_READ] = "read", [GS_LANE_WRITE] = "write"};
    static const char *const device[GS_DEVICE_LANES] = {
        [GS_LANE_UPLOAD] = "upload", [GS_LANE_FORWARD] = "forward", [GS_LANE_DOWNLOAD] = "download",
        [GS_LANE_LOAD] = "load",
    };
    const uint32_t lane = gs_task_lane(t);

    if (t->kind != GS_TASK_MOVE)
        return kind[t->kind];
    if (gs_task_driver(t) == GS_DRIVER_RANKS)
        return t->place.memory >= GS_RANK_MEMORIES ? "send" : "receive";
    return lane < GS_LANE_DEVICES ? io[lane] : device[(lane - GS_LANE_DEVICES) % GS_DEVICE_LANES];
}
