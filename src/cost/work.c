/* work.c - how many amounts each kind of work has. */
#include "cost/cost.h"

static const uint32_t amounts[GS_WORK_KINDS] = {
    [GS_WORK_MEMORY] = 3, [GS_WORK_SUM] = 6,       [GS_WORK_EDGES] = 7,
    [GS_WORK_VERTEX] = 7, [GS_WORK_CHECK] = 2,     [GS_WORK_SUBMIT] = 1,
    [GS_WORK_TO_DEVICE] = 2, [GS_WORK_FROM_DEVICE] = 2, [GS_WORK_BETWEEN] = 2,
    [GS_WORK_FROM_DISK] = 2,
};

uint32_t gs_work_beside(gs_work_kind k)
{
    return k <= GS_WORK_VERTEX ? amounts[k] - 1 : GS_WORK_AMOUNTS;
}

uint32_t gs_work_amounts(gs_work_kind k)
{
    return amounts[k];
}
