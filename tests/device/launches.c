#include "launches.h"

#include <string.h>

#include "base/size.h"
#include "support/support.h"

#define ALIGNMENT 256u
#define COPIES 256u

/* Memory of the host that a launch names, and where its copy is in the arena. */
typedef struct copied {
    char *host;
    uint64_t bytes, offset;
    bool back;
    void *name; /* the pointer to it, in the launch */
} copied;

typedef struct copies {
    gs_device *d;
    uint32_t count;
    uint64_t bytes; /* of the arena */
    copied at[COPIES];
} copies;

/* The pointer at `name` is to `bytes` that the launch uses. What several pointers name is copied once. */
static void add(copies *k, void *name, uint64_t bytes, bool back)
{
    copied c = {.bytes = bytes, .back = back, .name = name};
    memcpy(&c.host, name, sizeof(c.host));
    if (c.host == NULL || bytes == 0)
        return;
    assert_true(k->count < COPIES);
    const uint64_t shift = (uintptr_t)c.host % ALIGNMENT; /* accesses of 16 bytes are aligned as on the host */
    c.offset = k->bytes + shift;
    for (uint32_t i = 0; i < k->count; i++)
        if (k->at[i].host == c.host && k->at[i].bytes >= bytes)
            c.offset = k->at[i].offset;
    if (c.offset == k->bytes + shift)
        k->bytes += gs_align_up(shift + bytes, ALIGNMENT);
    k->at[k->count++] = c;
}

static gs_status wait_for(gs_device *d, gs_device_way way)
{
    uint64_t number = 0;
    bool done = false;
    const gs_status st = gs_device_mark_transfers(d, way, &number);
    return st == GS_OK ? gs_device_poll_transfers(d, way, number, true, &done) : st;
}

/* An arena with the copies, which the launch's pointers name from now on. */
static gs_status bring(copies *k)
{
    void *arena = NULL;
    gs_status st = gs_device_take_memory(k->d, &(gs_device_memory){.arena_bytes = k->bytes}, &arena);
    if (st == GS_OK)
        st = gs_device_join(&k->d, 1);
    for (uint32_t i = 0; i < k->count && st == GS_OK; i++) {
        const copied *const c = &k->at[i];
        char *const place = (char *)arena + c->offset;
        st = gs_device_transfer(k->d, GS_DEVICE_FROM_HOST, NULL, place, c->host, c->bytes);
        memcpy(c->name, &place, sizeof(place));
    }
    return st == GS_OK ? wait_for(k->d, GS_DEVICE_FROM_HOST) : st;
}

/* After the launch, which gave `st`. */
static gs_status take_back(copies *k, gs_status st)
{
    bool done = false;
    if (st == GS_OK)
        st = gs_device_poll(k->d, gs_device_last_launch(k->d), true, &done);
    for (uint32_t i = 0; i < k->count && st == GS_OK; i++) {
        const copied *const c = &k->at[i];
        const char *place;
        memcpy(&place, c->name, sizeof(place));
        if (c->back)
            st = gs_device_transfer(k->d, GS_DEVICE_TO_HOST, NULL, c->host, place, c->bytes);
    }
    if (st == GS_OK)
        st = wait_for(k->d, GS_DEVICE_TO_HOST);
    gs_device_give_memory(k->d);
    return st;
}

static void add_edges(copies *k, gs_edges *e)
{
    const uint64_t edges = e->start[e->targets];
    assert_true(e->start[0] == 0);
    add(k, &e->target, (uint64_t)e->targets * e->index_bytes, false);
    add(k, &e->start, (e->targets + 1ull) * sizeof(uint32_t), false);
    add(k, &e->index, edges * e->index_bytes, false);
    add(k, &e->weight, edges * sizeof(float), false);
    add(k, &e->type, edges * e->type_bytes, false);
    e->end = edges;
}

static void add_accumulator(copies *k, gs_accumulator *a, uint64_t rows, uint32_t width, uint32_t heads)
{
    add(k, &a->acc, rows * width * sizeof(float), true);
    add(k, &a->maximum, rows * heads * sizeof(float), true);
    add(k, &a->norm, rows * heads * sizeof(float), true);
}

gs_status launch_vertex(gs_device *d, const gs_vertex_launch *l)
{
    void *reg[COPIES];
    gs_vertex_launch there = *l;
    copies k = {.d = d};

    if (gs_device_unified(d))
        return gs_device_run_vertex(d, l);
    assert_true(l->stage->regs <= COPIES);
    for (uint32_t r = 0; r < l->stage->regs; r++) {
        const gs_reg *const g = &l->stage->reg[r];
        reg[r] = l->reg[r];
        add(&k, &reg[r], (uint64_t)l->rows * g->width * gs_dtype_bytes(g->dtype), true);
    }
    there.reg = reg;
    const gs_status st = bring(&k);
    return take_back(&k, st == GS_OK ? gs_device_run_vertex(d, &there) : st);
}

static void add_edge_launch(copies *k, gs_edge_launch *l)
{
    const uint64_t wide = (uint64_t)l->width * GS_MAX(l->types, 1);
    add_edges(k, &l->edges);
    add(k, &l->operand, l->edges.operand_rows * (l->pick ? wide : l->width) * gs_dtype_bytes(l->dtype), false);
    add(k, &l->scale, l->edges.operand_rows * sizeof(float), false);
    add(k, &l->acc, l->edges.target_rows * (l->pick ? l->width : wide) * sizeof(float), true);
}

gs_status launch_edges(gs_device *d, const gs_edge_launch *l)
{
    gs_edge_launch there = *l;
    copies k = {.d = d};

    if (gs_device_unified(d))
        return gs_device_run_edges(d, l);
    add_edge_launch(&k, &there);
    const gs_status st = bring(&k);
    return take_back(&k, st == GS_OK ? gs_device_run_edges(d, &there) : st);
}

gs_status launch_edge_group(gs_device *d, const gs_edge_launch *l, uint32_t count)
{
    gs_edge_launch there[LAUNCH_GROUP];
    copies k = {.d = d};

    assert_true(count <= LAUNCH_GROUP && !gs_device_unified(d));
    memcpy(there, l, count * sizeof(*l));
    for (uint32_t i = 0; i < count; i++)
        add_edge_launch(&k, &there[i]);
    gs_status st = bring(&k);
    if (st != GS_OK)
        return take_back(&k, st);
    st = gs_device_begin_group(d);
    for (uint32_t i = 0; i < count && st == GS_OK; i++)
        st = gs_device_run_edges(d, &there[i]);
    return take_back(&k, gs_device_end_group(d, st));
}

static uint32_t columns_of(const gs_program *p, const gs_edge_reg *r)
{
    return r->typed ? p->array[r->array].width : r->width;
}

gs_status launch_edge_program(gs_device *d, const gs_edge_program_launch *l)
{
    const gs_stage *const s = l->stage;
    const float *row[COPIES];
    gs_accumulator sum[GS_STAGE_SUMS];
    gs_edge_program_launch there = *l;
    copies k = {.d = d};

    if (gs_device_unified(d) || gs_edges_none(&l->edges))
        return gs_device_run_edge_program(d, l);
    assert_true(s->edge_regs <= COPIES);
    add_edges(&k, &there.edges);
    for (uint32_t r = 0; r < s->edge_regs; r++) {
        const gs_edge_reg *const g = &s->edge_reg[r];
        const uint64_t of = g->kind == GS_EDGE_TARGET    ? l->edges.target_rows
                            : g->kind == GS_EDGE_OPERAND ? l->edges.operand_rows
                                                         : 0;
        row[r] = l->rows[r];
        const bool half = of > 0 && g->array < l->program->arrays && l->program->array[g->array].dtype == GS_BF16;
        add(&k, &row[r], of * columns_of(l->program, g) * (half ? sizeof(uint16_t) : sizeof(float)), false);
    }
    for (uint32_t i = 0; i < s->sums; i++) {
        const gs_sum *const m = &s->sum[i];
        if (m->kind == GS_SUM_OUTER)
            continue;
        sum[i] = l->sum[i];
        add_accumulator(&k, &sum[i], l->edges.target_rows, s->reg[m->reg].width,
                        m->kind == GS_SUM_ATTEND ? s->edge_reg[m->score].width : 0);
    }
    there.rows = row;
    there.sum = sum;
    const gs_status st = bring(&k);
    return take_back(&k, st == GS_OK ? gs_device_run_edge_program(d, &there) : st);
}

gs_status launch_begin_sum(gs_device *d, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                           uint32_t heads)
{
    gs_accumulator there = *sum;
    copies k = {.d = d};

    if (gs_device_unified(d))
        return gs_device_begin_sum(d, kind, sum, rows, width, heads);
    add_accumulator(&k, &there, rows, width, heads);
    const gs_status st = bring(&k);
    return take_back(&k, st == GS_OK ? gs_device_begin_sum(d, kind, &there, rows, width, heads) : st);
}

gs_status launch_finish_sum(gs_device *d, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                            uint32_t heads)
{
    gs_accumulator there = *sum;
    copies k = {.d = d};

    if (gs_device_unified(d))
        return gs_device_finish_sum(d, kind, sum, rows, width, heads);
    add_accumulator(&k, &there, rows, width, heads);
    const gs_status st = bring(&k);
    return take_back(&k, st == GS_OK ? gs_device_finish_sum(d, kind, &there, rows, width, heads) : st);
}

static gs_status sequence(gs_device *d, const gs_sequence_launch *l,
                          gs_status (*run)(gs_device *d, const gs_sequence_launch *l))
{
    const uint64_t state = l->edges.target_rows * (uint64_t)l->width * sizeof(float),
                   gates = l->edges.operand_rows * 4ull * l->width * sizeof(float),
                   weight = 4ull * l->width * l->width * sizeof(float);
    gs_sequence_launch there = *l;
    copies k = {.d = d};

    if (gs_device_unified(d))
        return run(d, l);
    add_edges(&k, &there.edges);
    add(&k, &there.gates, gates, false);
    add(&k, &there.weight, weight, false);
    add(&k, &there.state, state, true);
    add(&k, &there.cell, state, true);
    add(&k, &there.d_state, state, true);
    add(&k, &there.d_cell, state, true);
    add(&k, &there.d_gates, gates, true);
    add(&k, &there.d_weight, weight, true);
    const gs_status st = bring(&k);
    return take_back(&k, st == GS_OK ? run(d, &there) : st);
}

gs_status launch_sequence(gs_device *d, const gs_sequence_launch *l)
{
    return sequence(d, l, gs_device_run_sequence);
}

gs_status launch_sequence_back(gs_device *d, const gs_sequence_launch *l)
{
    return sequence(d, l, gs_device_run_sequence_back);
}
