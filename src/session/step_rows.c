#include "session/step_rows.h"

#include "base/alloc.h"
#include "base/size.h"
#include "session/session.h"

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

static bool take_sums(gs_step_rows *r)
{
    const gs_program *const p = r->tables->session->program;
    bool got = true;

    for (uint32_t t = 0; t < p->tables && got; t++)
        if (p->table[t].gradient != GS_NONE) {
            r->sum[t] = gs_malloc_array((size_t)r->rows.most * p->table[t].width, sizeof(float));
            got = r->sum[t] != NULL;
        }
    return got;
}

gs_status gs_step_rows_open(gs_step_rows *r, const gs_batch_tables *tables, uint32_t step, uint32_t most)
{
    const gs_session *const s = tables->session;
    gs_unique *const u = &r->rows;

    *r = (gs_step_rows){.tables = tables, .alone = true};
    if (gs_step_rows_bytes(s, step, most) == 0)
        return GS_OK;
    u->most = most_rows(s, step, most);
    u->bits = gs_unique_bits(u->most);
    u->slot = gs_calloc((size_t)1 << u->bits, sizeof(*u->slot));
    u->slot_of = gs_malloc_array(u->most, sizeof(*u->slot_of));
    u->vertex = gs_malloc_array(u->most, sizeof(*u->vertex));
    r->row = gs_malloc_array(most, sizeof(*r->row));
    r->sum = gs_calloc(s->program->tables, sizeof(*r->sum));
    if (u->slot == NULL || u->slot_of == NULL || u->vertex == NULL || r->row == NULL || r->sum == NULL ||
        !take_sums(r))
        return gs_fail(GS_ENOMEM, "out of memory for the rows of tables that the batches of a step have");
    return gs_row_list_open(&r->list, u->most);
}

void gs_step_rows_close(gs_step_rows *r)
{
    for (uint32_t t = 0; r->sum != NULL && t < r->tables->session->program->tables; t++)
        gs_free(r->sum[t]);
    gs_free(r->sum);
    gs_free(r->row);
    gs_free(r->rows.slot);
    gs_free(r->rows.slot_of);
    gs_free(r->rows.vertex);
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
        const float *const gradient = gs_batch_tables_gradient(pass, t, &width);
        if (gradient != NULL)
            add_rows(r->sum[t], gradient, r->row, batch->vertices, had, width);
    }
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

static const gs_row_list *list_of(const gs_step_rows *r) { return r->alone ? &r->tables->list : &r->list; }

uint32_t gs_step_rows_count(const gs_step_rows *r) { return list_of(r)->rows; }

const float *gs_step_rows_gradient(const gs_step_rows *r, uint32_t t, uint32_t *width)
{
    *width = r->tables->session->program->table[t].width;
    return r->alone ? gs_batch_tables_gradient(r->tables, t, width) : r->sum[t];
}

gs_status gs_step_rows_update(const gs_step_rows *r, uint32_t t, uint32_t states, gs_batch_row_fn *fn, void *context,
                              bool *finite)
{
    uint32_t width;
    return gs_batch_tables_update(r->tables, t, list_of(r), gs_step_rows_gradient(r, t, &width), states, fn, context,
                                  finite);
}
