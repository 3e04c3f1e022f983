/* run_tables.c - learned rows of vertices: a step of the optimiser, over all of them (docs/design/tables.md). */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/size.h"
#include "session/tables.h"
#include "train/run_internal.h"

/* ---- in files ---- */

#define EXPONENT 0x7F800000u /* all ones: infinite or not a number */

bool gs_run__rows_are_finite(const float *value, uint64_t count)
{
    uint32_t most = 0;

#pragma omp simd reduction(max : most)
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &value[i], sizeof(bits));
        most = GS_MAX(most, bits & EXPONENT);
    }
    return most != EXPONENT;
}

typedef struct source {
    gs_session *session;
    uint32_t array;
} source;

static gs_status rows_of(void *context, uint64_t first, uint64_t rows, float *dst)
{
    const source *const x = context;
    return gs_exec_read_rows(x->session->run.exec, x->array, first, rows, dst);
}

static uint32_t array_of(const gs_table *t, uint32_t rows)
{
    return rows == GS_RUN_ROWS ? t->array : rows == GS_RUN_ROWS_BEST ? t->best : t->state[rows - GS_RUN_ROWS_STATE];
}

static gs_status write_rows(void *context, uint32_t rows, uint32_t table, gs_outfile *o, uint64_t at)
{
    gs_run *const r = context;
    gs_session *const s = r->session;
    source x = {s, array_of(&s->program->table[table], rows)};
    const gs_logits_job job = {.store = s->store, .classes = s->program->table[table].width, .source = rows_of,
                               .form = GS_LOGITS_ROWS, .memory = s->memory.logits, .context = &x,
                               .scratch_dir = gs_session_scratch_dir(s)}; /* a run that was stopped is saved, too */
    return gs_logits_write(o, at, &job);
}

typedef struct reading {
    int fd;
    uint64_t at, row;
    bool finite; /* they must be */
    const char *path;
} reading;

/* Each from its place in the file: those of a tile may lie anywhere. */
static gs_status take_rows(void *context, uint64_t rows, float *const *row, const uint32_t *id)
{
    const reading *const f = context;
    gs_status st = GS_OK;

    for (uint64_t r = 0; r < rows && st == GS_OK; r++)
        st = gs_pread_exact(f->fd, (char *)row[0] + r * f->row, f->row, f->at + id[r] * f->row, f->path);
    if (st != GS_OK || !f->finite || gs_run__rows_are_finite(row[0], rows * f->row / sizeof(float)))
        return st;
    return gs_fail(GS_EFORMAT, "%s: a table has numbers that are not finite; the weights are of no use", f->path);
}

static gs_status read_rows(void *context, uint32_t rows, uint32_t table, int fd, uint64_t at, const char *path)
{
    gs_run *const r = context;
    gs_session *const s = r->session;
    const gs_exec_column column = {.array = array_of(&s->program->table[table], rows), .write = true};
    reading f = {.fd = fd, .at = at, .row = s->program->table[table].width * sizeof(float), .path = path,
                 .finite = rows == GS_RUN_ROWS};
    return gs_session_sweep(s, table, &column, 1, true, take_rows, &f);
}

gs_safetensors_tables gs_run__tables(gs_run *r, gs_run_rows rows)
{
    return (gs_safetensors_tables){.vertices = gs_store_get_info(r->session->store)->vertices, .run = rows,
                                   .write = write_rows, .read = read_rows, .context = r,
                                   .declared = r->session->declared, .declareds = r->session->declareds};
}

/* ---- the norm ---- */

typedef struct adding {
    uint32_t width;
    double sum;
} adding;

#define ADDED_ROWS 256u

/* Rows by themselves, then row after row: the bits are the same for all threads and tiles. */
double gs_run__add_squares(double sum, const float *row, uint64_t rows, uint32_t width)
{
    for (uint64_t first = 0; first < rows; first += ADDED_ROWS) {
        const uint64_t n = GS_MIN(rows - first, ADDED_ROWS);
        double of_row[ADDED_ROWS];
#pragma omp parallel for schedule(static)
        for (uint64_t r = 0; r < n; r++) {
            const float *const g = row + (first + r) * width;
            of_row[r] = 0;
            for (uint32_t c = 0; c < width; c++)
                of_row[r] += (double)g[c] * (double)g[c];
        }
        for (uint64_t r = 0; r < n; r++)
            sum += of_row[r];
    }
    return sum;
}

static gs_status add_squares(void *context, uint64_t rows, float *const *row, const uint32_t *id)
{
    adding *const a = context;
    (void)id;
    a->sum = gs_run__add_squares(a->sum, row[0], rows, a->width);
    return GS_OK;
}

gs_status gs_run__gradient_norm(double *out, gs_session *s, const gs_optim *o)
{
    const gs_program *const p = s->program;
    gs_status st = GS_OK;

    *out = 0;
    if (o->clip <= 0)
        return GS_OK;
    double rest = 0;
    if (!gs_session_steps_on_device(s))
        rest = gs_optim_norm(&s->run.params);
    else if ((st = gs_session_gradient_norm(s, &rest)) != GS_OK)
        return st;
    adding a = {.sum = rest * rest};
    for (uint32_t t = 0; t < p->tables && st == GS_OK; t++) {
        const gs_exec_column column = {.array = p->table[t].gradient, .read = true};
        a.width = p->table[t].width;
        if (column.array != GS_NONE)
            st = gs_session_sweep(s, t, &column, 1, false, add_squares, &a);
    }
    *out = p->tables > 0 ? sqrt(a.sum) : rest;
    return st;
}

/* ---- the step ---- */

gs_status gs_run__refuse_table(const char *name)
{
    return gs_fail(GS_EDEVICE, "the update left numbers that are not finite in table %s; lower .lr; nothing was saved",
                   name);
}

typedef struct stepping {
    gs_update u;
    const gs_table *table;
} stepping;

#define SHARE_ROWS 64u

/* Columns: the rows, their gradient, the state. */
static gs_status step_rows(void *context, uint64_t rows, float *const *row, const uint32_t *id)
{
    const stepping *const x = context;
    const uint32_t width = x->table->width;
    bool finite = true;

    (void)id;
#pragma omp parallel for schedule(static) reduction(&& : finite)
    for (uint64_t first = 0; first < rows; first += SHARE_ROWS) {
        const uint64_t at = first * width;
        gs_optim_rows r = {.value = row[0] + at, .grad = row[1] + at};
        r.count = GS_MIN(rows - first, SHARE_ROWS) * width;
        for (uint32_t k = 0; k < gs_update_states(&x->u); k++)
            r.state[k] = row[2 + k] + at;
        gs_optim_apply_to(&x->u, &r);
        finite = finite && gs_run__rows_are_finite(r.value, r.count);
    }
    return finite ? GS_OK : gs_run__refuse_table(x->table->name);
}

gs_status gs_run__step_tables(gs_session *s, const gs_update *u)
{
    gs_status st = GS_OK;

    for (uint32_t t = 0; t < s->program->tables && st == GS_OK; t++) {
        const gs_table *const table = &s->program->table[t];
        const gs_exec_column column[GS_EXEC_COLUMNS] = {{.array = table->array, .read = true, .write = true},
                                                        {.array = table->gradient, .read = true},
                                                        {.array = table->state[0], .read = true, .write = true},
                                                        {.array = table->state[1], .read = true, .write = true}};
        stepping x = {.u = *u, .table = table};
        if (table->gradient != GS_NONE)
            st = gs_session_sweep(s, t, column, 2 + gs_update_states(u), false, step_rows, &x);
    }
    return st;
}
