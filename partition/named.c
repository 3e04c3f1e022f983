/* named.c - features with names of their own: the arrays features/NAME.npy and edge_features/NAME.npy of a folder,
 * which become the last columns of the rows that features.npy and edge_features.npy have. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "store/store.h" /* gs_is_feature_name() */

#define NUMBERS 65536u /* of rows that are put together at once */

/* ---- the files ------------------------------------------------------------------- */

void gs_part__named_close(gs_part_input *in)
{
    for (int k = 0; k < 2; k++) {
        for (uint32_t i = 0; in->named[k] != NULL && i < in->named[k]->count; i++)
            gs_part__file_close(&in->named[k]->file[i]);
        gs_free(in->named[k]);
        in->named[k] = NULL;
    }
}

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

/* Names of the files NAME.npy in the folder, without the ending, in order; of others a warning. */
static gs_status list_names(gs_part_named *out, const char *folder, const gs_part_job *job)
{
    DIR *const d = opendir(folder);
    gs_status st = GS_OK;

    if (d == NULL)
        return gs_fail_errno(errno, "%s: cannot open", folder);
    for (const struct dirent *e; st == GS_OK && (e = readdir(d)) != NULL;) {
        const size_t n = strlen(e->d_name);
        char name[GS_TYPE_NAME_BYTES];
        if (e->d_name[0] == '.')
            continue;
        if (n <= 4 || strcmp(e->d_name + n - 4, ".npy") != 0) {
            gs_part__warn(job, "%s/%s: is not read; features with a name are in NAME.npy", folder, e->d_name);
            continue;
        }
        memcpy(name, e->d_name, GS_MIN(n - 4, sizeof(name) - 1));
        name[GS_MIN(n - 4, sizeof(name) - 1)] = '\0';
        if (n - 4 >= sizeof(name) || !gs_is_feature_name(name))
            st = gs_fail(GS_EFORMAT, "%s/%s: '%.*s' is no name that a text could say: letters, digits and '_', at most "
                         "%u, no digit first, and none of type, weight, x, in_degree, loops, loop_weight, gcn_norm",
                         folder, e->d_name, (int)(n - 4), e->d_name, GS_TYPE_NAME_BYTES - 1);
        else if (out->count == GS_MOST_NAMED_FEATURES)
            st = gs_fail(GS_EUNSUPPORTED, "%s: has more than %u arrays", folder, GS_MOST_NAMED_FEATURES);
        else
            memcpy(out->name[out->count++], name, sizeof(name));
    }
    closedir(d);
    qsort(out->name, out->count, sizeof(out->name[0]), by_text);
    return st;
}

static gs_status open_folder(gs_part_named **out, const gs_part_job *job, const char *path, const char *name)
{
    GS_FREED char *const folder = gs_path_join(path, name);
    gs_part_named *n = NULL;
    gs_status st = folder != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory for a path", path);

    if (st == GS_OK && gs_path_is_dir(folder)) {
        *out = n = gs_calloc(1, sizeof(*n));
        st = n != NULL ? list_names(n, folder, job) : gs_fail(GS_ENOMEM, "%s: no memory to read it", folder);
    }
    for (uint32_t k = 0; n != NULL && k < n->count; k++)
        n->file[k].npy.fd = -1;
    for (uint32_t k = 0; n != NULL && k < n->count && st == GS_OK; k++) {
        char file[GS_TYPE_NAME_BYTES + 8];
        snprintf(file, sizeof(file), "%s.npy", n->name[k]);
        if ((st = gs_part__file_open(&n->file[k], folder, file, true)) == GS_OK && n->file[k].npy.shape[1] == 0)
            st = gs_fail(GS_EFORMAT, "%s: has no columns; features are numbers [N] or [N, K]", n->file[k].path);
    }
    return st;
}

gs_status gs_part__named_open(gs_part_input *in, const gs_part_job *job, const char *folder)
{
    const gs_status st = open_folder(&in->named[0], job, folder, "features");
    return st == GS_OK ? open_folder(&in->named[1], job, folder, "edge_features") : st;
}

gs_status gs_part__named_check(const gs_part_input *in, uint64_t rows, bool of_edges)
{
    const gs_part_named *const n = in->named[of_edges];

    for (uint32_t k = 0; n != NULL && k < n->count; k++)
        if (n->file[k].npy.shape[0] != rows)
            return gs_fail(GS_EFORMAT, "%s: has %lu rows; there are %lu %s", n->file[k].path, n->file[k].npy.shape[0],
                           rows, of_edges ? "edges" : "vertices");
    return GS_OK;
}

/* ---- their columns --------------------------------------------------------------- */

static void widen(gs_part_columns *c, const gs_npy *npy)
{
    c->as = !c->any || c->as == npy->dtype ? npy->dtype : GS_F32;
    c->any = true;
}

/* The feature of this name, a new one of so many columns where there is none. */
static gs_status find_name(gs_part_columns *c, const char *name, const gs_part_file *f)
{
    const uint64_t columns = f->npy.shape[1];
    uint32_t k = 0;

    while (k < *c->count && strcmp(c->named[k].name, name) != 0)
        k++;
    if (k == GS_MOST_NAMED_FEATURES)
        return gs_fail(GS_EUNSUPPORTED, "%s: more than %u features with names", f->path, GS_MOST_NAMED_FEATURES);
    if (k < *c->count && c->named[k].columns != columns)
        return gs_fail(GS_EFORMAT, "%s: has %lu columns, and %s of another type has %u", f->path, columns, name,
                       c->named[k].columns);
    if (k == *c->count) {
        snprintf(c->named[k].name, sizeof(c->named[k].name), "%s", name);
        c->named[(*c->count)++].columns = (uint32_t)GS_MIN(columns, UINT32_MAX);
        c->columns += columns;
    }
    return GS_OK;
}

gs_status gs_part__columns_add(gs_part_columns *c, const gs_part_file *x, const gs_part_named *named)
{
    gs_status st = GS_OK;

    if (x->npy.fd >= 0) {
        widen(c, &x->npy);
        c->columns += x->npy.shape[1] > c->base ? x->npy.shape[1] - c->base : 0;
        c->base = GS_MAX(c->base, x->npy.shape[1]);
    }
    for (uint32_t k = 0; named != NULL && k < named->count && st == GS_OK; k++) {
        widen(c, &named->file[k].npy);
        st = find_name(c, named->name[k], &named->file[k]);
    }
    for (uint32_t k = 0; k < *c->count; k++)
        c->named[k].first = (uint32_t)(k == 0 ? c->base : c->named[k - 1].first + c->named[k - 1].columns);
    return st;
}

/* Rows that are put together, and one file's of them. */
typedef struct rows {
    const gs_part_columns *c;
    char *line;  /* [rows, columns] */
    void *raw;   /* [rows, a file's columns] */
    float *wide; /* the same */
    uint64_t at, count;
} rows;

static gs_status check_finite(const gs_part_file *f, const rows *r)
{
    const uint64_t own = f->npy.shape[1];

    for (uint64_t i = 0; i < r->count * own; i++)
        if (!isfinite(r->wide[i]))
            return gs_fail(GS_EFORMAT, "%s: row %lu, column %lu: is not a finite number", f->path, r->at + i / own,
                           i % own);
    return GS_OK;
}

/* Columns of a file, from `first` on; `own`: one with a name. */
static gs_status place(rows *r, const gs_part_file *f, uint64_t first, bool own)
{
    const uint64_t columns = f->npy.shape[1], number = gs_dtype_bytes(r->c->as);
    const char *from = r->raw;
    gs_status st = gs_npy_read_rows(&f->npy, r->raw, r->at, r->count, f->path);

    if (st == GS_OK && (own || f->npy.dtype != r->c->as))
        gs_part__to_f32(r->wide, r->raw, f->npy.dtype, r->count * columns);
    if (st == GS_OK && own)
        st = check_finite(f, r);
    if (f->npy.dtype != r->c->as)
        from = (const char *)r->wide;
    for (uint64_t i = 0; i < r->count && st == GS_OK; i++)
        memcpy(r->line + (i * r->c->columns + first) * number, from + i * columns * number, columns * number);
    return st;
}

static gs_status place_all(rows *r, const gs_part_file *x, const gs_part_named *named)
{
    gs_status st = x->npy.fd >= 0 ? place(r, x, 0, false) : GS_OK;

    for (uint32_t k = 0; named != NULL && k < named->count; k++)
        for (uint32_t i = 0; i < *r->c->count && st == GS_OK; i++)
            if (strcmp(r->c->named[i].name, named->name[k]) == 0)
                st = place(r, &named->file[k], r->c->named[i].first, true);
    return st;
}

gs_status gs_part__columns_put(const gs_part_columns *c, gs_made *m, gs_part_job *job, const gs_part_file *x,
                               const gs_part_named *named, uint64_t count)
{
    const uint64_t number = gs_dtype_bytes(c->as), step = GS_MAX(NUMBERS / c->columns, 1);
    GS_ENDS(gs_arena_free) gs_arena memory = {0};
    rows r = {.c = c};
    gs_status st = GS_OK;

    if (x->npy.fd < 0 && (named == NULL || named->count == 0))
        return gs_part__made_fill(m, 0, count * c->columns * number);
    r.line = gs_arena_take(&memory, step * c->columns, number);
    r.raw = gs_arena_take(&memory, step * c->columns, sizeof(double));
    r.wide = gs_arena_take(&memory, step * c->columns, sizeof(float));
    if (memory.is_short)
        st = gs_fail(GS_ENOMEM, "%s: no memory to read it", x->npy.fd >= 0 ? x->path : named->file[0].path);
    for (; r.at < count && st == GS_OK; r.at += step) {
        r.count = GS_MIN(step, count - r.at);
        memset(r.line, 0, r.count * c->columns * number);
        if ((st = gs_part__job_result(job)) == GS_OK && (st = place_all(&r, x, named)) == GS_OK)
            st = gs_part__made_put(m, r.line, r.count * c->columns * number);
    }
    return st;
}

/* ---- of an input of one type ------------------------------------------------------ */

/* `x` becomes the rows of itself and of all with names. */
static gs_status join(gs_part_columns *c, gs_part_input *in, gs_part_job *job, gs_part_file *x, uint64_t count,
                      bool of_edges)
{
    gs_part_file all = {.npy.fd = -1};
    gs_made m = {0};
    gs_status st = gs_part__columns_add(c, x, in->named[of_edges]);

    if (st == GS_OK && c->columns > (of_edges ? GS_MOST_EDGE_FEATURES : INT32_MAX))
        st = gs_fail(GS_EUNSUPPORTED, "%s: has features of %lu columns, at most %u are supported", in->path, c->columns,
                     of_edges ? GS_MOST_EDGE_FEATURES : INT32_MAX);
    if (st == GS_OK && of_edges && count > UINT32_MAX)
        st = gs_fail(GS_EUNSUPPORTED, "%s: %lu edges; those with features are fewer than 2^32", in->path, count);
    if (st == GS_OK && (st = gs_part__made_begin(&m, &all, job, gs_path_join(in->path, of_edges ? "edge features"
                                                                                                : "features"))) ==
                           GS_OK &&
        (st = gs_part__columns_put(c, &m, job, x, in->named[of_edges], count)) == GS_OK)
        st = gs_part__made_end(&m, c->as, count, c->columns);
    gs_part__made_free(&m);
    all.npy.dims = 2;
    gs_part__file_close(x);
    *x = all;
    return st;
}

gs_status gs_part__named_join(gs_part_input *in, gs_part_job *job)
{
    gs_status st = GS_OK;

    if (in->named[0] == NULL && in->named[1] == NULL)
        return GS_OK;
    if ((in->names_of = gs_calloc(1, sizeof(*in->names_of))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the names of features", in->path);
    gs_part_columns vertex = {.named = in->names_of->vertex, .count = &in->names_of->vertices};
    gs_part_columns edge = {.named = in->names_of->edge, .count = &in->names_of->edges};
    if (in->named[0] != NULL && in->named[0]->count > 0) {
        st = join(&vertex, in, job, &in->feature, in->vertices, false);
        in->form = GS_FORM_DENSE;
        in->features = (uint32_t)vertex.columns;
    }
    if (st == GS_OK && in->named[1] != NULL && in->named[1]->count > 0) {
        st = join(&edge, in, job, &in->edge_feature, in->edges, true);
        in->edge_features = (uint32_t)edge.columns;
    }
    return st;
}
