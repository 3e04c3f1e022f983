/* batch_tables.c - rows of learned tables that a batch, and a step of several, has. */
#include "batch/batch_tables.h"

#include <string.h>

#include "base/alloc.h"
#include "base/radix.h"
#include "base/size.h"
#include "session/session.h"
#include "session/tables.h"

#define LIST_BYTES (3 * sizeof(uint32_t)) /* of each row of a list */

/* ---- lists of rows ------------------------------------------------------- */

/* GS_ENOMEM. Release with list_close() in any case. */
static gs_status list_open(gs_row_list *l, uint32_t most)
{
    l->named = gs_arena_take(&l->arrays, most, sizeof(*l->named));
    l->order = gs_arena_take(&l->arrays, most, sizeof(*l->order));
    l->scratch = gs_arena_take(&l->arrays, most, sizeof(*l->scratch));
    return l->arrays.is_short ? gs_fail(GS_ENOMEM, "out of memory for a list of rows of tables") : GS_OK;
}

static void list_close(gs_row_list *l)
{
    gs_arena_free(&l->arrays);
    *l = (gs_row_list){0};
}

/* The list of these vertices, which are distinct. */
static void list_make(gs_row_list *l, const uint32_t *vertex, uint32_t rows)
{
    l->rows = rows;
    gs_radix_order(l->order, l->scratch, vertex, rows);
    for (uint32_t k = 0; k < rows; k++)
        l->named[k] = vertex[l->order[k]];
}

/* ---- opening ------------------------------------------------------------- */

uint64_t gs_batch_tables_bytes(const gs_session *session, uint32_t most)
{
    return session->program->tables == 0 ? 0 : most * LIST_BYTES;
}

/* By name: the two programs have passes of their own, and may come upon tables in another order. */
static gs_status find_tables(gs_batch_tables *b)
{
    const gs_program *const p = b->session->program, *const w = b->whole->program;

    for (uint32_t t = 0; t < p->tables; t++) {
        uint32_t k = 0;
        while (k < w->tables && strcmp(w->table[k].name, p->table[t].name) != 0)
            k++;
        if (k == w->tables)
            return gs_fail(GS_EINVAL, "table %s: is of training alone, and no evaluation has it", p->table[t].name);
        b->of[t] = k;
    }
    return GS_OK;
}

gs_status gs_batch_tables_open(gs_batch_tables *b, gs_session *whole, gs_session *session, uint32_t most,
                               gs_batch_tables *first)
{
    gs_status st;

    *b = (gs_batch_tables){.whole = whole, .session = session};
    if (session->program->tables == 0)
        return GS_OK;
    pthread_mutex_init(&b->own, NULL);
    b->lock = first != NULL ? first->lock : &b->own;
    if ((b->of = gs_malloc_array(session->program->tables, sizeof(*b->of))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the numbers of tables");
    if ((st = list_open(&b->list, most)) != GS_OK)
        return st;
    return find_tables(b);
}

void gs_batch_tables_close(gs_batch_tables *b)
{
    if (b->lock != NULL)
        pthread_mutex_destroy(&b->own);
    gs_free(b->of);
    list_close(&b->list);
    *b = (gs_batch_tables){0};
}

/* ---- rows of a tile ------------------------------------------------------ */

/* What goes over a table; `at`: the first of named[] that is not behind. */
typedef struct going {
    const gs_row_list *list;
    uint32_t at, width;
    float *bring;          /* where rows go to, by their places; or */
    const float *gradient;
    gs_batch_row_fn *fn;
    void *context;
    uint32_t states;
    bool finite;
} going;

/* Ends behind the last name below `end`. */
static uint32_t names_below(const going *g, uint64_t end)
{
    uint32_t k = g->at;
    while (k < g->list->rows && g->list->named[k] < end)
        k++;
    return k;
}

static gs_status bring_rows(void *context, uint64_t first, uint64_t rows, float *const *row)
{
    going *const g = context;
    const uint32_t from = g->at, end = names_below(g, first + rows);
    const uint64_t width = g->width;

#pragma omp parallel for schedule(static) if ((end - from) * width > 16384)
    for (uint32_t k = from; k < end; k++)
        memcpy(g->bring + g->list->order[k] * width, row[0] + (g->list->named[k] - first) * width,
               width * sizeof(float));
    g->at = end;
    return GS_OK;
}

/* Columns: the rows, their state. */
static gs_status update_window(void *context, uint64_t first, uint64_t rows, float *const *row)
{
    going *const g = context;
    const uint32_t from = g->at, end = names_below(g, first + rows);
    const uint64_t width = g->width;
    bool finite = true;

#pragma omp parallel for schedule(static) reduction(&& : finite) if ((end - from) * width > 4096)
    for (uint32_t k = from; k < end; k++) {
        const uint64_t at = (g->list->named[k] - first) * width;
        float *const state[2] = {g->states > 0 ? row[1] + at : NULL, g->states > 1 ? row[2] + at : NULL};
        const bool good = g->fn(g->context, row[0] + at, state, g->gradient + g->list->order[k] * width, g->width);
        finite = finite && good;
    }
    g->at = end;
    g->finite = g->finite && finite;
    return GS_OK;
}

/* ---- before and behind a pass -------------------------------------------- */

static gs_status bring_all(gs_batch_tables *b)
{
    const gs_program *const p = b->session->program, *const w = b->whole->program;
    gs_status st = GS_OK;

    for (uint32_t t = 0; t < p->tables && st == GS_OK; t++) {
        const gs_exec_column column = {.array = w->table[b->of[t]].array, .read = true};
        going g = {.list = &b->list, .width = p->table[t].width,
                   .bring = gs_exec_rows(b->session->run.exec, p->table[t].array)};
        if (g.bring != NULL) /* no pass reads it where it has no place */
            st = gs_session_sweep_named(b->whole, &column, 1, b->list.named, b->list.rows, bring_rows, &g);
    }
    return st;
}

/* The session that has the tables reads for one device at a time. */
gs_status gs_batch_tables_fetch(gs_batch_tables *b, const gs_batch *batch)
{
    if (b->session->program->tables == 0)
        return GS_OK;
    list_make(&b->list, batch->vertex, batch->vertices);
    pthread_mutex_lock(b->lock);
    const gs_status st = bring_all(b);
    pthread_mutex_unlock(b->lock);
    return st;
}

/* Behind a pass: the gradient of the batch's rows of a table, [list.rows, *width] in the batch's order; NULL: no result
 * depends on it. */
static const float *gradient_of(const gs_batch_tables *b, uint32_t t, uint32_t *width)
{
    const gs_table *const table = &b->session->program->table[t];
    *width = table->width;
    return table->gradient == GS_NONE ? NULL : gs_exec_rows(b->session->run.exec, table->gradient);
}

/* Each row of the list, once, with `states` runs of state and row order[k] of the gradient; blocks while it reads and
 * writes. *finite: all are. */
static gs_status update_rows(const gs_batch_tables *b, uint32_t t, const gs_row_list *list, const float *gradient,
                                 uint32_t states, gs_batch_row_fn *fn, void *context, bool *finite)
{
    const gs_table *const table = &b->whole->program->table[b->of[t]];
    const gs_exec_column column[] = {{.array = table->array, .read = true, .write = true},
                                     {.array = table->state[0], .read = true, .write = true},
                                     {.array = table->state[1], .read = true, .write = true}};
    going g = {.list = list, .width = table->width, .gradient = gradient, .fn = fn, .context = context,
               .states = states, .finite = true};
    gs_status st = GS_OK;

    if (gradient != NULL)
        st = gs_session_sweep_named(b->whole, column, 1 + states, list->named, list->rows, update_window, &g);
    *finite = g.finite;
    return st;
}

/* ---- rows of a step ------------------------------------------------------- */

#define ROWS_AHEAD 16u /* whose slots are asked for before they are looked at */

/* ---- opening ------------------------------------------------------------- */

/* Batches of a step may have all their rows in common, or none. */
static uint32_t most_rows(const gs_session *session, uint32_t step, uint32_t most)
{
    return (uint32_t)GS_MIN((uint64_t)step * most, gs_store_get_info(session->store)->vertices);
}

static uint64_t unique_bytes(uint32_t rows)
{
    return ((uint64_t)sizeof(uint64_t) << gs_unique_bits(rows)) + 2ull * rows * sizeof(uint32_t);
}

uint64_t gs_step_rows_bytes(const gs_session *session, uint32_t step, uint32_t most)
{
    const gs_program *const p = session->program;
    const uint64_t rows = most_rows(session, step, most);
    uint64_t bytes = unique_bytes((uint32_t)rows) + rows * LIST_BYTES + most * sizeof(uint32_t) +
                     p->tables * sizeof(float *);

    for (uint32_t t = 0; t < p->tables; t++)
        bytes += p->table[t].gradient == GS_NONE ? 0 : rows * p->table[t].width * sizeof(float);
    return p->tables == 0 || step < 2 ? 0 : bytes;
}

static void take_sums(gs_step_rows *r)
{
    const gs_program *const p = r->tables->session->program;

    r->sum = gs_arena_take(&r->arrays, p->tables, sizeof(*r->sum));
    for (uint32_t t = 0; t < p->tables && r->sum != NULL; t++)
        if (p->table[t].gradient != GS_NONE)
            r->sum[t] = gs_arena_take(&r->arrays, (size_t)r->rows.most * p->table[t].width, sizeof(float));
}

gs_status gs_step_rows_open(gs_step_rows *r, const gs_batch_tables *tables, uint32_t step, uint32_t most)
{
    const gs_session *const s = tables->session;

    *r = (gs_step_rows){.tables = tables, .alone = true};
    if (gs_step_rows_bytes(s, step, most) == 0)
        return GS_OK;
    gs_unique_take(&r->rows, &r->arrays, most_rows(s, step, most));
    r->row = gs_arena_take(&r->arrays, most, sizeof(*r->row));
    take_sums(r);
    if (r->arrays.is_short)
        return gs_fail(GS_ENOMEM, "out of memory for the rows of tables that the batches of a step have");
    return list_open(&r->list, r->rows.most);
}

void gs_step_rows_close(gs_step_rows *r)
{
    gs_arena_free(&r->arrays);
    list_close(&r->list);
    *r = (gs_step_rows){0};
}

/* ---- a step -------------------------------------------------------------- */

void gs_step_rows_take_one(gs_step_rows *r) { r->alone = true; }

void gs_step_rows_clear(gs_step_rows *r)
{
    if (!gs_step_rows_adds(r))
        return;
    r->alone = false;
    gs_unique_clear(&r->rows);
}

/* Rows from `had` on are new. */
static void add_rows(float *sum, const float *gradient, const uint32_t *row, uint32_t rows, uint32_t had,
                     uint64_t width)
{
#pragma omp parallel for schedule(static) if (rows * width > 16384)
    for (uint32_t i = 0; i < rows; i++) {
        float *const to = sum + row[i] * width;
        const float *const from = gradient + i * width;
        if (row[i] >= had)
            for (uint64_t c = 0; c < width; c++)
                to[c] = from[c];
        else
            for (uint64_t c = 0; c < width; c++)
                to[c] += from[c];
    }
}

void gs_step_rows_add(gs_step_rows *r, const gs_batch_tables *pass, const gs_batch *batch)
{
    const uint32_t had = r->rows.count;

    if (!gs_step_rows_adds(r))
        return;
    for (uint32_t i = 0; i < batch->vertices; i++) {
        gs_unique_prefetch(&r->rows, batch->vertex[GS_MIN(i + ROWS_AHEAD, batch->vertices - 1)]);
        r->row[i] = gs_unique_put(&r->rows, batch->vertex[i]);
    }
    for (uint32_t t = 0; t < r->tables->session->program->tables; t++) {
        uint32_t width;
        const float *const gradient = gradient_of(pass, t, &width);
        if (gradient != NULL)
            add_rows(r->sum[t], gradient, r->row, batch->vertices, had, width);
    }
}

void gs_step_rows_divide(gs_step_rows *r, double mass)
{
    const float scale = mass > 0 ? (float)(1.0 / mass) : 0.0f;

    if (r->alone)
        return;
    list_make(&r->list, r->rows.vertex, r->rows.count);
    for (uint32_t t = 0; t < r->tables->session->program->tables; t++) {
        const uint64_t n = (uint64_t)r->rows.count * r->tables->session->program->table[t].width;
        float *const sum = r->sum[t];
#pragma omp parallel for simd schedule(static) if (n > 16384)
        for (uint64_t k = 0; k < (sum == NULL ? 0 : n); k++)
            sum[k] *= scale;
    }
}

/* ---- behind it ----------------------------------------------------------- */

static const gs_row_list *list_of(const gs_step_rows *r) { return r->alone ? &r->tables->list : &r->list; }

uint32_t gs_step_rows_count(const gs_step_rows *r) { return list_of(r)->rows; }

const float *gs_step_rows_gradient(const gs_step_rows *r, uint32_t t, uint32_t *width)
{
    *width = r->tables->session->program->table[t].width;
    return r->alone ? gradient_of(r->tables, t, width) : r->sum[t];
}

gs_status gs_step_rows_update(const gs_step_rows *r, uint32_t t, uint32_t states, gs_batch_row_fn *fn, void *context,
                              bool *finite)
{
    uint32_t width;
    return update_rows(r->tables, t, list_of(r), gs_step_rows_gradient(r, t, &width), states, fn, context,
                                  finite);
}
