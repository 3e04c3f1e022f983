#include "session/batch_named.h"

#include "base/alloc.h"
#include "base/index_width.h"
#include "base/size.h"
#include "store/chunk_table.h"
#include "store/store.h"

/* How stages use features. */
typedef struct uses {
    uint32_t array;
    bool sums, named; /* some stage sums them; they may be named */
} uses;

/* A sum of rows of float32 over in-edges finds rows by number, as a vertex program's tile does. Scales of its rows have
 * the batch's numbers. */
static bool may_name(const gs_program *p, const gs_stage *s, const gs_array_use *u)
{
    gs_row_sum rows;
    if (u->role == GS_USE_LOAD)
        return true;
    return u->role == GS_USE_OPERAND && u->sum != GS_NONE && s->direction == GS_BY_DEST && !s->sum[u->sum].self &&
           p->array[u->array].dtype == GS_F32 && gs_sum_of_rows(&rows, s, u->sum) && rows.types == GS_TYPES_NONE &&
           rows.scale == GS_NONE;
}

static uses uses_of(const gs_program *p)
{
    uses x = {.array = 0};
    while (x.array < p->arrays && p->array[x.array].store_id != GS_ARRAY_FEATURES)
        x.array++;
    x.named = x.array < p->arrays;
    for (uint32_t k = 0; k < p->stages; k++)
        for (gs_array_use u = {0}; gs_stage_next_use(&p->stage[k], &u);)
            if (u.array == x.array) {
                x.named = x.named && may_name(p, &p->stage[k], &u);
                x.sums = x.sums || u.role == GS_USE_OPERAND;
            }
    return x;
}

static bool loads(const gs_stage *s, uint32_t array)
{
    for (uint32_t r = 0; r < s->regs; r++)
        if (s->reg[r].kind == GS_REG_LOAD && s->reg[r].array == array)
            return true;
    return false;
}

static uint64_t tile_bytes(const gs_program *p, const gs_plan *plan, uint32_t array)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < plan->tasks; i++)
        if (plan->task[i].kind == GS_TASK_VERTEX && loads(&p->stage[plan->task[i].stage], array))
            rows = GS_MAX(rows, plan->task[i].rows);
    return rows * p->array[array].width * gs_dtype_bytes(p->array[array].dtype);
}

static uint64_t edge_bytes(const gs_batch_limits *l) { return (l->edges + GS_MIN(l->vertices, l->edges)) * 4; }

uint64_t gs_batch_named_bytes(const gs_program *p, const gs_plan *plan, const gs_batch_limits *limits)
{
    const uses x = uses_of(p);
    return x.named ? tile_bytes(p, plan, x.array) + (x.sums ? edge_bytes(limits) : 0) : 0;
}

gs_status gs_batch_named_open(gs_batch_named *n, const gs_program *p, const gs_plan *plan,
                              const gs_batch_limits *limits)
{
    const uses x = uses_of(p);

    *n = (gs_batch_named){0};
    if (!x.named)
        return GS_OK;
    n->bytes = tile_bytes(p, plan, x.array);
    n->tile = gs_alloc_pages(n->bytes);
    n->target = x.sums ? gs_malloc_array(GS_MIN(limits->vertices, limits->edges), sizeof(*n->target)) : NULL;
    n->index = x.sums ? gs_malloc_array(limits->edges, sizeof(*n->index)) : NULL;
    if (n->tile == NULL || (x.sums && (n->target == NULL || n->index == NULL))) {
        gs_batch_named_close(n);
        return gs_fail(GS_ENOMEM, "out of memory for rows of features of a batch");
    }
    n->rows = (gs_exec_named){.array = x.array, .tile = n->tile};
    return GS_OK;
}

void gs_batch_named_close(gs_batch_named *n)
{
    if (n->tile != NULL)
        gs_free_pages(n->tile, n->bytes);
    gs_free(n->target);
    gs_free(n->index);
    *n = (gs_batch_named){0};
}

void gs_batch_named_fill(gs_batch_named *n, const gs_batch *b, const void *all)
{
    const gs_chunk_view *const v = &b->view[GS_BY_DEST];

    n->rows.all = all;
    n->rows.row = b->vertex;
    n->rows.edges = &n->edges;
    n->edges = (gs_edges){0};
    if (n->index == NULL || b->edges == 0)
        return;
    for (uint32_t t = 0; t < v->targets; t++)
        n->target[t] = gs_index_at(v->target, v->index_bytes, t);
#pragma omp parallel for schedule(static) if (b->edges > 65536)
    for (uint64_t k = 0; k < b->edges; k++)
        n->index[k] = b->vertex[gs_index_at(v->index, v->index_bytes, k)];
    n->edges = (gs_edges){.index_bytes = 4, .targets = v->targets, .target = n->target, .start = v->start,
                          .index = n->index};
}
