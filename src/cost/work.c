/* work.c - the kinds of work: their names, and how many amounts each has. */
#include "cost/cost.h"

static const struct {
    const char *name;
    uint32_t amounts;
} kind[GS_WORK_KINDS] = {
    [GS_WORK_MEMORY] = {"memory", 3},          [GS_WORK_SUM] = {"sums of rows", 6},
    [GS_WORK_EDGES] = {"edge programs", 7},    [GS_WORK_VERTEX] = {"vertex programs", 7},
    [GS_WORK_CHECK] = {"checksums", 2},        [GS_WORK_SUBMIT] = {"requests", 1},
    [GS_WORK_TO_DEVICE] = {"copies to devices", 2},
    [GS_WORK_FROM_DEVICE] = {"copies from devices", 2},
    [GS_WORK_BETWEEN] = {"copies between devices", 2},
};

uint32_t gs_work_beside(gs_work_kind k)
{
    return k <= GS_WORK_VERTEX ? kind[k].amounts - 1 : GS_WORK_AMOUNTS;
}

uint32_t gs_work_amounts(gs_work_kind k)
{
    return kind[k].amounts;
}

const char *gs_work_name(gs_work_kind k)
{
    return kind[k].name;
}
