#include "session/batch_tables.h"

#include <string.h>

#include "base/alloc.h"
#include "base/radix.h"
#include "session/session.h"
#include "session/tables.h"

/* ---- lists of rows ------------------------------------------------------- */

gs_status gs_row_list_open(gs_row_list *l, uint32_t most)
{
    l->named = gs_malloc_array(most, sizeof(*l->named));
    l->order = gs_malloc_array(most, sizeof(*l->order));
    l->scratch = gs_malloc_array(most, sizeof(*l->scratch));
    return l->named != NULL && l->order != NULL && l->scratch != NULL
               ? GS_OK
               : gs_fail(GS_ENOMEM, "out of memory for a list of rows of tables");
}

void gs_row_list_close(gs_row_list *l)
{
    gs_free(l->named);
    gs_free(l->order);
    gs_free(l->scratch);
    *l = (gs_row_list){0};
}

void gs_row_list_make(gs_row_list *l, const uint32_t *vertex, uint32_t rows)
{
    l->rows = rows;
    gs_radix_order(l->order, l->scratch, vertex, rows);
    for (uint32_t k = 0; k < rows; k++)
        l->named[k] = vertex[l->order[k]];
}

/* ---- opening ------------------------------------------------------------- */

uint64_t gs_batch_tables_bytes(const gs_session *session, uint32_t most)
{
    return session->program->tables == 0 ? 0 : most * GS_ROW_LIST_BYTES;
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
    if ((st = gs_row_list_open(&b->list, most)) != GS_OK)
        return st;
    return find_tables(b);
}

void gs_batch_tables_close(gs_batch_tables *b)
{
    if (b->lock != NULL)
        pthread_mutex_destroy(&b->own);
    gs_free(b->of);
    gs_row_list_close(&b->list);
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
static gs_status update_rows(void *context, uint64_t first, uint64_t rows, float *const *row)
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
            st = gs_session_sweep_named(b->whole, b->of[t], &column, 1, b->list.named, b->list.rows, bring_rows, &g);
    }
    return st;
}

/* The session that has the tables reads for one device at a time. */
gs_status gs_batch_tables_fetch(gs_batch_tables *b, const gs_batch *batch)
{
    if (b->session->program->tables == 0)
        return GS_OK;
    gs_row_list_make(&b->list, batch->vertex, batch->vertices);
    pthread_mutex_lock(b->lock);
    const gs_status st = bring_all(b);
    pthread_mutex_unlock(b->lock);
    return st;
}

const float *gs_batch_tables_gradient(const gs_batch_tables *b, uint32_t t, uint32_t *width)
{
    const gs_table *const table = &b->session->program->table[t];
    *width = table->width;
    return table->gradient == GS_NONE ? NULL : gs_exec_rows(b->session->run.exec, table->gradient);
}

gs_status gs_batch_tables_update(const gs_batch_tables *b, uint32_t t, const gs_row_list *list, const float *gradient,
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
        st = gs_session_sweep_named(b->whole, b->of[t], column, 1 + states, list->named, list->rows, update_rows, &g);
    *finite = g.finite;
    return st;
}
