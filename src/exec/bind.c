/* bind.c - a plan of many rows runs on a graph of fewer, which is in memory: each task is cut to the rows that are
 * there. */
#include "exec/bind.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "exec/load.h"

#define CACHE_LINE 64u
#define ROWS_AHEAD 4u /* of those that are picked, asked for before they are copied */

gs_status gs_exec__check_bound(const gs_exec *e)
{
    if (!e->bound)
        return GS_OK;
    if (e->plan->devices > 0 || e->chunks.parts != 1)
        return gs_fail(GS_EINVAL, "a graph in memory is bound to one interval of a device to which no task copies");
    for (uint32_t i = 0; i < e->plan->tasks; i++)
        if (e->plan->task[i].kind == GS_TASK_MOVE)
            return gs_fail(GS_EINVAL, "a graph in memory is bound to a plan that keeps everything there");
    return GS_OK;
}

void gs_exec_bind(gs_exec *e, const gs_exec_graph *graph)
{
    e->graph = graph;
    e->chunks.vertices = graph->vertices;
}

/* ---- where rows are ------------------------------------------------------ */

bool gs_exec__crosses(const gs_program *p, const gs_resident *r)
{
    return r->file < p->arrays && (r->load || p->array[r->file].lasting || p->array[r->file].result);
}

/* Beside a device with memory of its own the host has rows that cross alone, one array behind the other: bytes of the
 * first `residents`. */
static uint64_t crossing_bytes(const gs_program *p, const gs_plan *plan, uint32_t residents)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < residents; i++)
        bytes += gs_exec__crosses(p, &plan->resident[i]) ? gs_align_up(plan->resident[i].bytes, GS_BLOCK_BYTES) : 0;
    return bytes;
}

uint64_t gs_exec_bound_bytes(const gs_program *program, const gs_plan *plan)
{
    return crossing_bytes(program, plan, plan->residents);
}

void *gs_exec_rows(const gs_exec *e, uint32_t array)
{
    const gs_resident *const r = gs_exec__resident_of(e, array);
    uint8_t *const memory = e->region[GS_REGION_RESIDENT];

    if (r == NULL || e->on[0].resident == NULL)
        return r == NULL ? NULL : memory + r->offset;
    return gs_exec__crosses(e->program, r)
               ? memory + crossing_bytes(e->program, e->plan, (uint32_t)(r - e->plan->resident))
               : NULL;
}

void gs_exec_forget(gs_exec *e)
{
    if (!gs_device_unified(e->on[0].device)) /* the host's memory is pinned for it */
        return;
    gs_drop_pages(e->region[GS_REGION_RESIDENT], e->region_bytes[GS_REGION_RESIDENT]);
    gs_drop_pages(e->on[0].arena, e->on[0].arena_bytes);
}

const void *gs_exec_kept_rows(const gs_exec *e, uint32_t array)
{
    const gs_array *const a = &e->program->array[array];
    const gs_resident *const r = gs_exec__resident_of(e, array);
    const bool all = r != NULL && r->load && r->first == 0 && r->offset < e->plan->lasting_bytes &&
                     r->bytes >= e->chunks.vertices * a->width * gs_dtype_bytes(a->dtype);
    return a->store_id >= 0 && all ? e->region[GS_REGION_RESIDENT] + r->offset : NULL;
}

static uint32_t rows_of(const gs_exec *e, uint32_t stage)
{
    return e->graph->rows != NULL ? e->graph->rows[stage] : e->graph->vertices;
}

/* Sums of rows are zeroed as bytes. States of a sequence are too, of all rows: who has no edges keeps them. */
static void clamp_zero(const gs_exec *e, gs_task *t, uint64_t rows)
{
    const gs_stage *const s = &e->program->stage[t->stage];
    if (t->sum < s->sums && gs_stage_sums_rows(s, t->sum))
        t->bytes = GS_MIN(t->bytes, rows * s->reg[s->sum[t->sum].reg].width * sizeof(float));
}

bool gs_exec__clamp(const gs_exec *e, gs_task *t)
{
    const uint32_t rows = rows_of(e, t->stage);

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
        clamp_zero(e, t, rows);
        return t->bytes > 0;
    default:
        return true;
    }
}

uint32_t gs_exec__whole_rows(const gs_exec *e, const gs_task *t)
{
    if (e->graph == NULL || e->graph->whole == NULL)
        return t->rows;
    const uint32_t whole = e->graph->whole[t->stage];
    return whole > t->first_row ? GS_MIN(t->rows, whole - t->first_row) : 0;
}

gs_status gs_exec__zero_behind(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    const gs_stage *const s = &e->program->stage[t->stage];
    const uint64_t first = rows_of(e, t->stage);
    gs_status st = GS_OK;

    if (t->kind != GS_TASK_VERTEX || t->first_row > 0 || e->graph->zeroed == NULL)
        return GS_OK;
    for (uint32_t r = 0; r < s->regs && st == GS_OK; r++) {
        const gs_reg *const reg = &s->reg[r];
        const uint64_t end = reg->kind == GS_REG_TEMP && reg->array != GS_NONE ? e->graph->zeroed[reg->array] : 0;
        if (first >= end)
            continue;
        const uint64_t row = (uint64_t)reg->width * gs_dtype_bytes(e->program->array[reg->array].dtype);
        const gs_place at =
            gs_place_on_host(GS_REGION_RESIDENT, gs_exec__resident_of(e, reg->array)->offset + first * row);
        st = gs_device_zero(x->device, gs_exec__at(e, x, at), (end - first) * row);
    }
    return st;
}

void gs_exec__load_named(const gs_exec *e, const gs_exec_device *x, const gs_task *t)
{
    const gs_stage *const s = &e->program->stage[t->stage];
    const gs_exec_named *const n = e->graph->named;
    const gs_array *const a = &e->program->array[n->array];
    const uint64_t bytes = a->width * gs_dtype_bytes(a->dtype);
    bool loads = false;

    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind == GS_REG_LOAD && s->reg[r].array == n->array) {
            x->reg[r] = n->tile;
            loads = true;
        }
    const uint32_t rows = loads ? t->rows : 0, *const row = n->row + t->first_row;
    const uint8_t *const all = n->all;
#pragma omp parallel for schedule(static) if (rows * bytes > 65536)
    for (uint32_t i = 0; i < rows; i++) {
        const uint8_t *const soon = all + row[GS_MIN(i + ROWS_AHEAD, rows - 1)] * bytes;
        for (uint64_t k = 0; k < bytes; k += CACHE_LINE)
            __builtin_prefetch(soon + k);
        memcpy((uint8_t *)n->tile + i * bytes, all + row[i] * bytes, bytes);
    }
}
