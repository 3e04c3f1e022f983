/* batch_tables.c - rows of learned tables that a batch, and a step of several, has. */
#include "batch/batch_tables.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "batch/batch_rows.h"
#include "ranks/ranks.h"
#include "session/session.h"

/* ---- opening ------------------------------------------------------------- */

uint64_t gs_batch_tables_bytes(const gs_session *session, uint32_t most)
{
    return session->program->tables == 0 && gs_store_get_shard(session->store) == NULL ? 0 : most * GS_ROW_LIST_BYTES;
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
                               gs_batch_tables *first, gs_batch_rows *features)
{
    *b = (gs_batch_tables){.whole = whole, .session = session, .features = features};
    if (session->program->tables == 0 && features == NULL)
        return GS_OK;
    pthread_mutex_init(&b->own, NULL);
    b->lock = first != NULL ? first->lock : &b->own;
    if ((b->of = gs_malloc_array(session->program->tables + 1, sizeof(*b->of))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the numbers of tables");
    GS_TRY(gs_row_list_open(&b->list, most));
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

/* ---- before and behind a pass -------------------------------------------- */

static gs_status bring_all(gs_batch_tables *b, uint32_t of, uint32_t rows)
{
    const gs_program *const p = b->session->program, *const w = b->whole->program;

    for (uint32_t t = 0; t < p->tables; t++) {
        float *const to = gs_exec_rows(b->session->run.exec, p->table[t].array);
        if (to != NULL) /* no pass reads it where it has no place */
            GS_TRY(gs_session_read_rows_for(b->whole, w->table[b->of[t]].array, of, rows, &b->list, to));
    }
    return GS_OK;
}

/* The session that has the tables reads for one device at a time. Of ranks the rows are there already. */
gs_status gs_batch_tables_fetch(gs_batch_tables *b, const gs_batch *batch)
{
    if (b->session->program->tables == 0 || gs_ranks_count() > 1)
        return GS_OK;
    gs_row_list_make(&b->list, batch->vertex, batch->vertices);
    pthread_mutex_lock(b->lock);
    const gs_status st = bring_all(b, 0, batch->vertices);
    pthread_mutex_unlock(b->lock);
    return st;
}

static gs_status pick_features(void *context, const gs_row_list *own, void *to)
{
    return gs_batch_rows_pick(context, GS_ARRAY_FEATURES, own->named, own->rows, to);
}

static gs_status fetch_features(gs_batch_tables *b, uint32_t of, uint32_t rows)
{
    const uint32_t array = gs_program_stored(b->session->program, GS_ARRAY_FEATURES);
    void *const to = array == GS_NONE ? NULL : gs_exec_staged_rows(b->session->run.exec, array, 0);

    return to == NULL ? GS_OK
                      : gs_session_fetch_rows_for(b->whole, gs_store_array(b->whole->store,
                                                                           GS_ARRAY_FEATURES)->row_bytes,
                                                  of, rows, &b->list, pick_features, b->features, to);
}

gs_status gs_batch_tables_fetch_for(gs_batch_tables *b, uint32_t of, const gs_batch *batch)
{
    uint32_t rows = batch->vertices;

    if (!gs_batch_tables_are_apart(b))
        return GS_OK;
    if (of == gs_ranks_self())
        gs_row_list_make(&b->list, batch->vertex, rows);
    GS_TRY(gs_ranks_share_of(of, &rows, sizeof(rows)));
    if (b->features != NULL)
        GS_TRY(fetch_features(b, of, rows));
    return bring_all(b, of, rows);
}

/* Behind a pass: the gradient of the batch's rows of a table, in its order; no rows: no result depends on it. */
static gs_row_array gradient_of(const gs_batch_tables *b, uint32_t t)
{
    const gs_table *const table = &b->session->program->table[t];
    const bool is_there = table->gradient != GS_NONE;
    return (gs_row_array){is_there ? gs_exec_rows(b->session->run.exec, table->gradient) : NULL, table->width};
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
    uint64_t bytes = unique_bytes((uint32_t)rows) + rows * GS_ROW_LIST_BYTES + most * sizeof(uint32_t) +
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
    GS_NEED(!r->arrays.is_short, "out of memory for the rows of tables that the batches of a step have");
    return gs_row_list_open(&r->list, r->rows.most);
}

void gs_step_rows_close(gs_step_rows *r)
{
    gs_arena_free(&r->arrays);
    gs_row_list_close(&r->list);
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

/* Finds out where the step has these rows. */
static void place_rows(gs_step_rows *r, const uint32_t *vertex, uint32_t rows)
{
    for (uint32_t i = 0; i < rows; i++) {
        gs_unique_prefetch(&r->rows, vertex[GS_MIN(i + ROWS_AHEAD, rows - 1)]);
        r->row[i] = gs_unique_put(&r->rows, vertex[i]);
    }
}

void gs_step_rows_add(gs_step_rows *r, const gs_batch_tables *pass, const gs_batch *batch)
{
    const uint32_t had = r->rows.count;

    if (!gs_step_rows_adds(r))
        return;
    place_rows(r, batch->vertex, batch->vertices);
    for (uint32_t t = 0; t < r->tables->session->program->tables; t++) {
        const gs_row_array x = gradient_of(pass, t);
        if (x.row != NULL)
            add_rows(r->sum[t], x.row, r->row, batch->vertices, had, x.width);
    }
}

/* Gradients of a table of a rank's batch. */
typedef struct sent_rows {
    gs_step_rows *r;
    uint32_t table, width, had;
} sent_rows;

static gs_status add_sent(void *context, const gs_row_list *own, const float *row)
{
    const sent_rows *const x = context;

    place_rows(x->r, own->named, own->rows);
    add_rows(x->r->sum[x->table], row, x->r->row, own->rows, x->had, x->width);
    return GS_OK;
}

gs_status gs_step_rows_add_of(gs_step_rows *r, const gs_batch_tables *pass, uint32_t of)
{
    sent_rows x = {.r = r, .had = r->rows.count};
    uint32_t rows = pass->list.rows;

    if (!gs_step_rows_adds(r))
        return GS_OK;
    GS_TRY(gs_ranks_share_of(of, &rows, sizeof(rows)));
    for (x.table = 0; x.table < pass->session->program->tables; x.table++) {
        const uint32_t array = pass->whole->program->table[pass->of[x.table]].array;
        const gs_row_array own = gradient_of(pass, x.table);
        x.width = own.width;
        if (r->sum[x.table] != NULL)
            GS_TRY(gs_session_send_rows_of(pass->whole, array, of, rows, &pass->list, gs_row_at, &own, add_sent, &x));
    }
    return GS_OK;
}

void gs_step_rows_divide(gs_step_rows *r, double mass)
{
    const float scale = mass > 0 ? (float)(1.0 / mass) : 0.0f;

    if (r->alone)
        return;
    gs_row_list_make(&r->list, r->rows.vertex, r->rows.count);
    for (uint32_t t = 0; t < r->tables->session->program->tables; t++) {
        const uint64_t n = (uint64_t)r->rows.count * r->tables->session->program->table[t].width;
        float *const sum = r->sum[t];
#pragma omp parallel for simd schedule(static) if (n > 16384)
        for (uint64_t k = 0; k < (sum == NULL ? 0 : n); k++)
            sum[k] *= scale;
    }
}

/* ---- behind it ----------------------------------------------------------- */

const gs_row_list *gs_step_rows_list(const gs_step_rows *r) { return r->alone ? &r->tables->list : &r->list; }

gs_row_array gs_step_rows_gradient(const gs_step_rows *r, uint32_t t)
{
    return r->alone ? gradient_of(r->tables, t)
                    : (gs_row_array){r->sum[t], r->tables->session->program->table[t].width};
}
