/* input_types.c - features with names, and several types of vertices and edges as one graph; the folders whose arrays
 * lie by type: nodes/TYPE and edges/SOURCE__RELATION__DESTINATION, and IGB's heterogeneous graphs. */
#include "partition/input_files.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/size.h"
#include "store/store.h" /* gs_is_feature_name() */

/* ---- features with names of their own: the arrays features/NAME.npy and edge_features/NAME.npy of a folder, which
 * become the last columns of the rows that features.npy and edge_features.npy have. */

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
    GS_ENDS(gs_closedir_at) DIR *const d = opendir(folder);

    if (d == NULL)
        return gs_fail_errno(errno, "%s: cannot open", folder);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
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
            return gs_fail(GS_EFORMAT, "%s/%s: '%.*s' is no name that a text could say: letters, digits and '_', at "
                           "most %u, no digit first, and none of type, weight, x, in_degree, loops, loop_weight, "
                           "gcn_norm", folder, e->d_name, (int)(n - 4), e->d_name, GS_TYPE_NAME_BYTES - 1);
        if (out->count == GS_MOST_NAMED_FEATURES)
            return gs_fail(GS_EUNSUPPORTED, "%s: has more than %u arrays", folder, GS_MOST_NAMED_FEATURES);
        memcpy(out->name[out->count++], name, sizeof(name));
    }
    qsort(out->name, out->count, sizeof(out->name[0]), by_text);
    return GS_OK;
}

static gs_status open_folder(gs_part_named **out, const gs_part_job *job, const char *path, const char *name)
{
    GS_FREED char *const folder = gs_path_join(path, name);
    char file[GS_TYPE_NAME_BYTES + 8];

    GS_NEED(folder != NULL, "%s: no memory for a path", path);
    if (!gs_path_is_dir(folder))
        return GS_OK;
    gs_part_named *const n = *out = gs_calloc(1, sizeof(*n));
    GS_NEED(n != NULL, "%s: no memory to read it", folder);
    for (uint32_t k = 0; k < GS_MOST_NAMED_FEATURES; k++)
        n->file[k].npy.fd = -1;
    GS_TRY(list_names(n, folder, job));
    for (uint32_t k = 0; k < n->count; k++) {
        snprintf(file, sizeof(file), "%s.npy", n->name[k]);
        GS_TRY(gs_part__file_open(&n->file[k], folder, file, true));
        if (n->file[k].npy.shape[1] == 0)
            return gs_fail(GS_EFORMAT, "%s: has no columns; features are numbers [N] or [N, K]", n->file[k].path);
    }
    return GS_OK;
}

gs_status gs_part__named_open(gs_part_input *in, const gs_part_job *job, const char *folder)
{
    GS_TRY(open_folder(&in->named[0], job, folder, "features"));
    return open_folder(&in->named[1], job, folder, "edge_features");
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

/* Columns of rows that are put together: those without a name, as many as the widest has, and those with names. */
typedef struct all_columns {
    gs_named_feature *named; /* the caller's, room for GS_MOST_NAMED_FEATURES; */
    uint32_t *count;         /* so many so far */
    uint64_t base, columns;  /* without a name; all */
    gs_dtype as;             /* of all files, or float32 */
    bool any;                /* a file was added, which says so */
} all_columns;

static void widen(all_columns *c, const gs_npy *npy)
{
    c->as = !c->any || c->as == npy->dtype ? npy->dtype : GS_F32;
    c->any = true;
}

/* The feature of this name, a new one of so many columns where there is none. */
static gs_status find_name(all_columns *c, const char *name, const gs_part_file *f)
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

/* Adds the columns of a part of the rows; its files may be missing. GS_EFORMAT, GS_EUNSUPPORTED. */
static gs_status columns_add(all_columns *c, const gs_part_file *x, const gs_part_named *named)
{
    if (x->npy.fd >= 0) {
        widen(c, &x->npy);
        c->columns += x->npy.shape[1] > c->base ? x->npy.shape[1] - c->base : 0;
        c->base = GS_MAX(c->base, x->npy.shape[1]);
    }
    for (uint32_t k = 0; named != NULL && k < named->count; k++) {
        widen(c, &named->file[k].npy);
        GS_TRY(find_name(c, named->name[k], &named->file[k]));
    }
    for (uint32_t k = 0; k < *c->count; k++)
        c->named[k].first = (uint32_t)(k == 0 ? c->base : c->named[k - 1].first + c->named[k - 1].columns);
    return GS_OK;
}

/* Rows that are put together, and one file's of them. */
typedef struct joined_rows {
    const all_columns *c;
    char *line;  /* [rows, columns] */
    void *raw;   /* [rows, a file's columns] */
    float *wide; /* the same */
    uint64_t at, count;
} joined_rows;

static gs_status check_finite(const gs_part_file *f, const joined_rows *r)
{
    const uint64_t own = f->npy.shape[1];

    for (uint64_t i = 0; i < r->count * own; i++)
        if (!isfinite(r->wide[i]))
            return gs_fail(GS_EFORMAT, "%s: row %lu, column %lu: is not a finite number", f->path, r->at + i / own,
                           i % own);
    return GS_OK;
}

/* Columns of a file, from `first` on; `own`: one with a name. */
static gs_status place(joined_rows *r, const gs_part_file *f, uint64_t first, bool own)
{
    const uint64_t columns = f->npy.shape[1], number = gs_dtype_bytes(r->c->as);
    const char *const from = f->npy.dtype != r->c->as ? (const char *)r->wide : r->raw;

    GS_TRY(gs_npy_read_rows(&f->npy, r->raw, r->at, r->count, f->path));
    if (own || f->npy.dtype != r->c->as)
        gs_part__to_f32(r->wide, r->raw, f->npy.dtype, r->count * columns);
    if (own)
        GS_TRY(check_finite(f, r));
    for (uint64_t i = 0; i < r->count; i++)
        memcpy(r->line + (i * r->c->columns + first) * number, from + i * columns * number, columns * number);
    return GS_OK;
}

static gs_status place_all(joined_rows *r, const gs_part_file *x, const gs_part_named *named)
{
    GS_TRY(x->npy.fd >= 0 ? place(r, x, 0, false) : GS_OK);
    for (uint32_t k = 0; named != NULL && k < named->count; k++)
        for (uint32_t i = 0; i < *r->c->count; i++)
            if (strcmp(r->c->named[i].name, named->name[k]) == 0)
                GS_TRY(place(r, &named->file[k], r->c->named[i].first, true));
    return GS_OK;
}

/* Its rows, 0 where it has no such columns. */
static gs_status columns_put(const all_columns *c, gs_made *m, gs_part_job *job, const gs_part_file *x,
                             const gs_part_named *named, uint64_t count)
{
    const uint64_t number = gs_dtype_bytes(c->as), step = GS_MAX(NUMBERS / c->columns, 1);
    GS_ENDS(gs_arena_free) gs_arena memory = {0};
    joined_rows r = {.c = c};

    if (x->npy.fd < 0 && (named == NULL || named->count == 0))
        return gs_part__made_fill(m, 0, count * c->columns * number);
    r.line = gs_arena_take(&memory, step * c->columns, number);
    r.raw = gs_arena_take(&memory, step * c->columns, sizeof(double));
    r.wide = gs_arena_take(&memory, step * c->columns, sizeof(float));
    GS_NEED(!memory.is_short, "%s: no memory to read it", x->npy.fd >= 0 ? x->path : named->file[0].path);
    for (; r.at < count; r.at += step) {
        r.count = GS_MIN(step, count - r.at);
        memset(r.line, 0, r.count * c->columns * number);
        GS_TRY(gs_part__job_result(job));
        GS_TRY(place_all(&r, x, named));
        GS_TRY(gs_part__made_put(m, r.line, r.count * c->columns * number));
    }
    return GS_OK;
}

/* ---- of an input of one type ------------------------------------------------------ */

/* `x` becomes the rows of itself and of all with names. */
static gs_status join(all_columns *c, gs_part_input *in, gs_part_job *job, gs_part_file *x, uint64_t count,
                      bool of_edges)
{
    const unsigned most = of_edges ? GS_MOST_EDGE_FEATURES : INT32_MAX;
    GS_ENDS(gs_part__file_close) gs_part_file from = *x;
    GS_ENDS(gs_part__made_free) gs_made m = {0};

    *x = (gs_part_file){.npy.fd = -1};
    GS_TRY(columns_add(c, &from, in->named[of_edges]));
    if (c->columns > most)
        return gs_fail(GS_EUNSUPPORTED, "%s: has features of %lu columns, at most %u are supported", in->path,
                       c->columns, most);
    if (of_edges && count > UINT32_MAX)
        return gs_fail(GS_EUNSUPPORTED, "%s: %lu edges; those with features are fewer than 2^32", in->path, count);
    GS_TRY(gs_part__made_begin(&m, x, job, gs_path_join(in->path, of_edges ? "edge features" : "features")));
    GS_TRY(columns_put(c, &m, job, &from, in->named[of_edges], count));
    GS_TRY(gs_part__made_end(&m, c->as, count, c->columns));
    x->npy.dims = 2;
    return GS_OK;
}

gs_status gs_part__named_join(gs_part_input *in, gs_part_job *job)
{
    if (in->named[0] == NULL && in->named[1] == NULL)
        return GS_OK;
    GS_NEED((in->names_of = gs_calloc(1, sizeof(*in->names_of))) != NULL, "%s: no memory for the names of features",
            in->path);
    all_columns vertex = {.named = in->names_of->vertex, .count = &in->names_of->vertices};
    all_columns edge = {.named = in->names_of->edge, .count = &in->names_of->edges};
    if (in->named[0] != NULL && in->named[0]->count > 0) {
        GS_TRY(join(&vertex, in, job, &in->feature, in->vertices, false));
        in->form = GS_FORM_DENSE;
        in->features = (uint32_t)vertex.columns;
    }
    if (in->named[1] != NULL && in->named[1]->count > 0) {
        GS_TRY(join(&edge, in, job, &in->edge_feature, in->edges, true));
        in->edge_features = (uint32_t)edge.columns;
    }
    return GS_OK;
}

/* ---- types and relations ------------------------------------------------------------ */

#define PIECE 65536u /* edges, or numbers of rows, that are read at once */
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

static bool is_there(const gs_part_file *f) { return f->npy.fd >= 0; }

/* ---- types and their arrays ------------------------------------------------------- */

gs_status gs_part__types_make(gs_part_types *t, const char *path)
{
    *t = (gs_part_types){.table = gs_calloc(1, sizeof(*t->table)),
                         .part = gs_calloc(GS_PART_MOST_TYPES, sizeof(*t->part))};
    GS_NEED(t->table != NULL && t->part != NULL, "%s: no memory for the types of vertices", path);
    for (uint32_t k = 0; k < GS_PART_MOST_TYPES; k++)
        gs_part__files_reset(&t->part[k]);
    return GS_OK;
}

void gs_part__types_free(gs_part_types *t)
{
    for (uint32_t k = 0; t->part != NULL && k < GS_PART_MOST_TYPES; k++) {
        gs_part__files_close(&t->part[k]);
        gs_free(t->part[k].path);
    }
    gs_free(t->part);
    gs_free(t->table);
    *t = (gs_part_types){0};
}

gs_part_input *gs_part__type_part(const gs_part_types *t, uint32_t type) { return &t->part[type]; }

gs_part_input *gs_part__relation_part(const gs_part_types *t, uint32_t relation)
{
    return &t->part[GS_MOST_VERTEX_TYPES + relation];
}

static gs_status check_name(const char *name, const char *place)
{
    const size_t n = strlen(name);

    if (n == 0 || n >= GS_TYPE_NAME_BYTES || strspn(name, LETTERS) != n)
        return gs_fail(GS_EFORMAT, "%s: '%.80s' is no name of a type: letters, digits, '_', '-' and '.', at most %u",
                       place, name, GS_TYPE_NAME_BYTES - 1);
    return GS_OK;
}

gs_status gs_part__type_find(uint32_t *out, gs_part_types *t, const char *name, bool add, const char *place)
{
    gs_type_table *const table = t->table;

    for (uint32_t k = 0; k < table->types; k++)
        if (strcmp(table->type[k].name, name) == 0) {
            *out = k;
            return GS_OK;
        }
    if (!add)
        return gs_fail(GS_EFORMAT, "%s: there are no vertices of type '%.80s'; add their table, or correct the name",
                       place, name);
    if (table->types == GS_MOST_VERTEX_TYPES)
        return gs_fail(GS_EUNSUPPORTED, "%s: more than %u types of vertices", place, GS_MOST_VERTEX_TYPES);

    GS_TRY(check_name(name, place));
    *out = table->types++;
    snprintf(table->type[*out].name, GS_TYPE_NAME_BYTES, "%s", name);
    return GS_OK;
}

gs_status gs_part__relation_add(gs_part_types *t, const char *name, uint32_t source, uint32_t destination,
                                const char *place)
{
    gs_type_table *const table = t->table;

    GS_TRY(check_name(name, place));
    if (table->relations == GS_MOST_RELATIONS)
        return gs_fail(GS_EUNSUPPORTED, "%s: more than %u types of edges", place, GS_MOST_RELATIONS);
    gs_relation *const r = &table->relation[table->relations++];
    snprintf(r->name, sizeof(r->name), "%s", name);
    r->source = source;
    r->destination = destination;
    return GS_OK;
}

/* ---- do they fit together? -------------------------------------------------------- */

/* Rows of one of a type's arrays. */
static gs_status fit_rows(gs_vertex_type *v, const gs_part_file *f, const char **says)
{
    const uint64_t rows = f->npy.shape[0];

    if (!is_there(f))
        return GS_OK;
    if (*says != NULL && v->vertices != rows)
        return gs_fail(GS_EFORMAT, "%s: has %lu rows, but %s says that there are %lu vertices of type %s", f->path,
                       rows, *says, v->vertices, v->name);
    v->vertices = rows;
    *says = f->path;
    return GS_OK;
}

/* *said: whether anything says how many vertices there are. */
static gs_status check_type(const gs_part_types *t, uint32_t k, bool *said)
{
    gs_vertex_type *const v = &t->table->type[k];
    const gs_part_input *const p = gs_part__type_part(t, k);
    const gs_npy *const f = &p->feature.npy;
    const char *says = v->vertices > 0 ? "the stated number" : NULL;

    if (is_there(&p->feature) && (f->dims != 2 || f->shape[1] == 0 || f->shape[1] > INT32_MAX))
        return gs_fail(GS_EFORMAT, "%s: has shape [%lu, %lu]; features are [N, F]", p->feature.path, f->shape[0],
                       f->shape[1]);
    if (is_there(&p->label) && p->label.npy.shape[1] == 0)
        return gs_fail(GS_EFORMAT, "%s: has 0 columns of labels", p->label.path);
    GS_TRY(fit_rows(v, &p->feature, &says));
    GS_TRY(fit_rows(v, &p->label, &says));
    for (uint32_t i = 0; p->named[0] != NULL && i < p->named[0]->count; i++)
        GS_TRY(fit_rows(v, &p->named[0]->file[i], &says));
    v->features = is_there(&p->feature) ? (uint32_t)f->shape[1] : 0;
    *said = says != NULL;
    if (!is_there(&p->label) && !is_there(&p->split[0]) && !is_there(&p->split[1]) && !is_there(&p->split[2]))
        return GS_OK;
    if (t->table->labelled != t->table->types)
        return gs_fail(GS_EUNSUPPORTED,
                       "labels or splits of two types of vertices, %s and %s: a loss is of one; remove the other's",
                       t->table->type[t->table->labelled].name, v->name);
    t->table->labelled = k;
    return GS_OK;
}

/* One end of each edge of a relation: as the reader of edges gives it, but for its bound. */
typedef struct ends {
    const gs_part_input *part;
    gs_part_edge_block block;
    uint64_t at;
} ends;

static void ends_drop(ends *e) { gs_part__edge_block_free(&e->block); }

static gs_status next_edges(ends *e, uint64_t most, gs_part_job *job)
{
    const uint64_t count = GS_MIN(GS_MIN(PIECE, most), e->part->edges - e->at);

    GS_TRY(gs_part__job_result(job));
    GS_TRY(gs_part__npy_edges(e->part, &e->block, e->at, count));
    e->at += count;
    return GS_OK;
}

/* Vertices of types that only edges speak of: as many as the largest id says. */
static gs_status count_by_edges(const gs_part_types *t, const bool *said, gs_part_job *job)
{
    gs_type_table *const table = t->table;

    for (uint32_t r = 0; r < table->relations; r++) {
        const gs_relation *const rel = &table->relation[r];
        GS_ENDS(ends_drop) ends e = {.part = gs_part__relation_part(t, r)};
        gs_part__relation_part(t, r)->vertices = UINT32_MAX - 1u; /* any id that a store could hold */
        if (said[rel->source] && said[rel->destination])
            continue;
        GS_TRY(gs_part__edge_block_make(&e.block, e.part, PIECE));
        while (e.at < e.part->edges) {
            GS_TRY(next_edges(&e, PIECE, job));
            for (uint64_t i = 0; i < e.block.count; i++) {
                uint64_t *const u = &table->type[rel->source].vertices;
                uint64_t *const v = &table->type[rel->destination].vertices;
                *u = said[rel->source] ? *u : GS_MAX(*u, (uint64_t)e.block.src[i] + 1);
                *v = said[rel->destination] ? *v : GS_MAX(*v, (uint64_t)e.block.dst[i] + 1);
            }
        }
    }
    return GS_OK;
}

/* Numbers the vertices of all types one behind the other. */
static gs_status number_vertices(gs_part_input *in, const gs_part_types *t, gs_part_job *job)
{
    gs_type_table *const table = t->table;
    bool said[GS_MOST_VERTEX_TYPES] = {false};

    table->labelled = table->types;
    for (uint32_t k = 0; k < table->types; k++)
        GS_TRY(check_type(t, k, &said[k]));
    GS_TRY(count_by_edges(t, said, job));
    in->vertices = 0;
    for (uint32_t k = 0; k < table->types; k++) {
        table->type[k].first = in->vertices;
        in->vertices += table->type[k].vertices;
        if (in->vertices >= UINT32_MAX)
            return gs_fail(GS_EUNSUPPORTED, "%s: %lu vertices or more; a store holds fewer than 2^32 - 1", in->path,
                           in->vertices);
    }
    return GS_OK;
}

/* ---- edges ------------------------------------------------------------------------- */

/* Arrays of all edges that are being made. */
typedef struct joining {
    gs_part_input *in;
    gs_part_job *job;
    const gs_part_types *t;
    gs_made edge, type, weight, feature;
    gs_feature_table *names;
    uint32_t *pair; /* [2 * PIECE] */
    uint16_t *number; /* [PIECE] */
    float *weights;   /* [PIECE] */
    void *wide, *raw; /* labels as they are made, and as in a file */
    gs_dtype as;      /* of the labels that are being made */
    uint64_t columns;
    gs_arena memory; /* of the arrays above */
} joining;

static gs_status wrong_end(const ends *e, uint64_t row, uint32_t id, const gs_vertex_type *v, const char *end)
{
    return gs_fail(GS_EFORMAT, "%s: row %lu: %s %u is not one of the %lu vertices of type %s (ids start at 0)",
                   e->part->edge.path, row, end, id, v->vertices, v->name);
}

static gs_status put_edges(joining *j, const ends *e, uint32_t number, bool back)
{
    const gs_relation *const r = &j->t->table->relation[number];
    const gs_vertex_type *const from = &j->t->table->type[back ? r->destination : r->source];
    const gs_vertex_type *const to = &j->t->table->type[back ? r->source : r->destination];
    const gs_part_edge_block *const b = &e->block;

    for (uint64_t i = 0; i < b->count; i++) {
        if (b->src[i] >= from->vertices)
            return wrong_end(e, b->first + i, b->src[i], from, "source");
        if (b->dst[i] >= to->vertices)
            return wrong_end(e, b->first + i, b->dst[i], to, "destination");
        j->pair[2 * i + back] = (uint32_t)(from->first + b->src[i]);
        j->pair[2 * i + !back] = (uint32_t)(to->first + b->dst[i]);
        j->number[i] = (uint16_t)number;
        j->weights[i] = b->weight != NULL ? b->weight[i] : 1.0f;
    }
    GS_TRY(gs_part__made_put(&j->edge, j->pair, b->count * 2 * sizeof(*j->pair)));
    GS_TRY(gs_part__made_put(&j->type, j->number, b->count * sizeof(*j->number)));
    return j->in->weighted ? gs_part__made_put(&j->weight, j->weights, b->count * sizeof(*j->weights)) : GS_OK;
}

/* All edges of a part as those of the relation `number`. */
static gs_status join_relation(joining *j, const gs_part_input *part, uint32_t number, bool back)
{
    GS_ENDS(ends_drop) ends e = {.part = part};

    GS_TRY(gs_part__edge_block_make(&e.block, part, PIECE));
    while (e.at < part->edges) {
        GS_TRY(next_edges(&e, PIECE, j->job));
        GS_TRY(put_edges(j, &e, number, back));
    }
    return GS_OK;
}

static gs_status join_edge_features(joining *j, uint32_t relations, bool both)
{
    all_columns c = {.named = j->names->edge, .count = &j->names->edges};

    for (uint32_t r = 0; r < relations; r++) {
        const gs_part_input *const part = gs_part__relation_part(j->t, r);
        GS_TRY(columns_add(&c, &part->edge_feature, part->named[1]));
    }
    if (c.columns == 0)
        return GS_OK;
    if (c.columns > GS_MOST_EDGE_FEATURES)
        return gs_fail(GS_EUNSUPPORTED, "%s: edges have %lu features in all; at most %u are supported", j->in->path,
                       c.columns, GS_MOST_EDGE_FEATURES);
    GS_TRY(gs_part__made_begin(&j->feature, &j->in->edge_feature, j->job, gs_path_join(j->in->path, "edge features")));
    for (uint32_t r = 0; r < relations * (both ? 2 : 1); r++) {
        const gs_part_input *const part = gs_part__relation_part(j->t, r % relations);
        GS_TRY(columns_put(&c, &j->feature, j->job, &part->edge_feature, part->named[1], part->edges));
    }
    return gs_part__made_end(&j->feature, c.as, j->in->edges, c.columns);
}

/* With .undirected each relation has a reverse behind all others. */
static gs_status add_reverses(const gs_part_types *t, uint32_t relations, const char *path)
{
    gs_part_types own = *t;
    char name[GS_TYPE_NAME_BYTES + 8];

    for (uint32_t r = 0; r < relations; r++) {
        const gs_relation *const rel = &t->table->relation[r];
        snprintf(name, sizeof(name), "rev_%s", rel->name);
        GS_TRY(gs_part__relation_add(&own, name, rel->destination, rel->source, path));
    }
    return GS_OK;
}

static gs_status join_edges(joining *j)
{
    const uint32_t relations = j->t->table->relations;
    const bool both = j->job->opt->undirected;
    gs_part_input *const in = j->in;

    for (uint32_t r = 0; r < relations; r++) {
        in->weighted |= gs_part__relation_part(j->t, r)->weighted;
        in->edges += gs_part__relation_part(j->t, r)->edges * (both ? 2 : 1);
    }
    if (both)
        GS_TRY(add_reverses(j->t, relations, in->path));
    GS_TRY(gs_part__made_begin(&j->edge, &in->edge, j->job, gs_path_join(in->path, "edges")));
    GS_TRY(gs_part__made_begin(&j->type, &in->type, j->job, gs_path_join(in->path, "types of edges")));
    if (in->weighted)
        GS_TRY(gs_part__made_begin(&j->weight, &in->weight, j->job, gs_path_join(in->path, "weights")));
    for (uint32_t r = 0; r < relations * (both ? 2 : 1); r++)
        GS_TRY(join_relation(j, gs_part__relation_part(j->t, r % relations), r, r >= relations));
    GS_TRY(gs_part__made_end(&j->edge, GS_U32, in->edges, 2));
    GS_TRY(gs_part__made_end(&j->type, GS_U16, in->edges, 1));
    if (in->weighted)
        GS_TRY(gs_part__made_end(&j->weight, GS_F32, in->edges, 1));
    return join_edge_features(j, relations, both);
}

/* ---- rows of vertices --------------------------------------------------------------- */

static gs_status join_features(joining *j)
{
    const gs_type_table *const table = j->t->table;
    all_columns c = {.named = j->names->vertex, .count = &j->names->vertices};
    GS_ENDS(gs_part__made_free) gs_made m = {0};

    for (uint32_t k = 0; k < table->types; k++)
        GS_TRY(columns_add(&c, &gs_part__type_part(j->t, k)->feature, gs_part__type_part(j->t, k)->named[0]));
    if (c.columns == 0)
        return GS_OK;
    if (c.columns > INT32_MAX)
        return gs_fail(GS_EUNSUPPORTED, "%s: vertices have %lu features in all; at most %d are supported", j->in->path,
                       c.columns, INT32_MAX);
    GS_TRY(gs_part__made_begin(&m, &j->in->feature, j->job, gs_path_join(j->in->path, "features")));
    for (uint32_t k = 0; k < table->types; k++) {
        const gs_part_input *const part = gs_part__type_part(j->t, k);
        GS_TRY(columns_put(&c, &m, j->job, &part->feature, part->named[0], table->type[k].vertices));
    }
    GS_TRY(gs_part__made_end(&m, c.as, j->in->vertices, c.columns));
    j->in->feature.npy.dims = 2;
    return GS_OK;
}

/* No label: NaN in floats, -1 in whole numbers, of which one is a class. */
static gs_status put_none(joining *j, gs_made *m, uint64_t rows)
{
    return gs_part__made_fill(m, 0xff, rows * j->columns * gs_dtype_bytes(j->as));
}

static gs_status put_labels(joining *j, gs_made *m, const gs_part_file *f)
{
    const uint64_t rows = f->npy.shape[0], step = GS_MAX(PIECE / j->columns, 1);

    for (uint64_t at = 0; at < rows; at += step) {
        const uint64_t count = GS_MIN(step, rows - at);
        GS_TRY(gs_part__job_result(j->job));
        GS_TRY(gs_npy_read_rows(&f->npy, j->raw, at, count, f->path));
        if (j->as == GS_I64)
            gs_part__to_i64(j->wide, j->raw, f->npy.dtype, count);
        else
            gs_part__to_f64(j->wide, j->raw, f->npy.dtype, count * j->columns);
        GS_TRY(gs_part__made_put(m, j->wide, count * j->columns * 8));
    }
    return GS_OK;
}

/* As many rows as all vertices, of which those of one type have labels. */
static gs_status join_labels(joining *j)
{
    const gs_type_table *const table = j->t->table;
    const gs_vertex_type *const v = &table->type[table->labelled];
    gs_part_input *const part = gs_part__type_part(j->t, table->labelled);
    GS_ENDS(gs_part__made_free) gs_made m = {0};

    if (table->labelled == table->types)
        return GS_OK;
    j->in->label_first = v->first;
    j->in->label_vertices = v->vertices;
    for (int k = 0; k < 3; k++) {
        j->in->split[k] = part->split[k];
        part->split[k] = (gs_part_file){.npy.fd = -1};
    }
    if (!is_there(&part->label))
        return GS_OK;
    j->columns = part->label.npy.shape[1];
    j->as = j->columns == 1 && gs_part__is_integer(part->label.npy.dtype) ? GS_I64 : GS_F64;
    j->wide = gs_arena_take(&j->memory, GS_MAX(PIECE, j->columns), 8);
    j->raw = gs_arena_take(&j->memory, GS_MAX(PIECE, j->columns), 8);
    GS_NEED(!j->memory.is_short, "%s: no memory to read it", part->label.path);
    GS_TRY(gs_part__made_begin(&m, &j->in->label, j->job, gs_strdup(part->label.path)));
    GS_TRY(put_none(j, &m, v->first));
    GS_TRY(put_labels(j, &m, &part->label));
    GS_TRY(put_none(j, &m, j->in->vertices - v->first - v->vertices));
    return gs_part__made_end(&m, j->as, j->in->vertices, j->columns);
}

static void joining_end(joining *j)
{
    gs_part__made_free(&j->edge);
    gs_part__made_free(&j->type);
    gs_part__made_free(&j->weight);
    gs_part__made_free(&j->feature);
    gs_arena_free(&j->memory);
    gs_free(j->names);
}

gs_status gs_part__types_join(gs_part_input *in, gs_part_job *job, gs_part_types *t)
{
    GS_ENDS(joining_end) joining j = {.in = in, .job = job, .t = t};

    GS_TRY(number_vertices(in, t, job));
    const uint64_t vertices = in->vertices;
    j.pair = gs_arena_take(&j.memory, 2 * PIECE, sizeof(*j.pair));
    j.number = gs_arena_take(&j.memory, PIECE, sizeof(*j.number));
    j.weights = gs_arena_take(&j.memory, PIECE, sizeof(*j.weights));
    j.names = gs_calloc(1, sizeof(*j.names));
    GS_NEED(!j.memory.is_short && j.names != NULL, "%s: no memory to read it", in->path);
    GS_TRY(join_edges(&j));
    GS_TRY(join_features(&j));
    GS_TRY(join_labels(&j));
    if (j.names->vertices + j.names->edges > 0) {
        in->names_of = j.names;
        j.names = NULL; /* now the input's */
    }
    in->types = t->table;
    t->table = NULL;
    GS_TRY(gs_part__files_check(in, vertices, 0));
    in->edge_types = in->types->relations;
    return GS_OK;
}

/* ---- the folder of .npy files by type ------------------------------------------------ */

/* Others' names are torch_geometric's and DGL's attributes. */
static const gs_part_array node_arrays[] = {
    {GS_PART_ROLE(feature), "features.npy", GS_PART_NPY, 0, {"x.npy", "feat.npy", "node_feat.npy"}},
    {GS_PART_ROLE(label), "labels.npy", GS_PART_NPY, 0, {"y.npy", "label.npy"}},
    {GS_PART_ROLE(split[0]), "train_idx.npy", GS_PART_NPY, 0, {"train_mask.npy"}},
    {GS_PART_ROLE(split[1]), "valid_idx.npy", GS_PART_NPY, 0, {"val_mask.npy", "valid_mask.npy"}},
    {GS_PART_ROLE(split[2]), "test_idx.npy", GS_PART_NPY, 0, {"test_mask.npy"}},
    {0, "meta.json", GS_PART_OWN, 0, {NULL}},
    {0},
};
static const gs_part_array relation_arrays[] = {
    {GS_PART_ROLE(edge), "edges.npy", GS_PART_NPY, 0, {"edge_index.npy"}},
    {GS_PART_ROLE(weight), "edge_weights.npy", GS_PART_NPY, 0, {"edge_weight.npy"}},
    {GS_PART_ROLE(edge_feature), "edge_features.npy", GS_PART_NPY, 0, {"edge_attr.npy", "edge_feat.npy"}},
    {0},
};

#define MOST_FOLDERS 1024u

typedef struct names {
    char *name[MOST_FOLDERS];
    uint32_t count;
} names;

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Folders in `path`, in order of their names. */
static gs_status list_folders(names *out, const char *path)
{
    GS_ENDS(gs_closedir_at) DIR *const d = opendir(path);

    out->count = 0;
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        GS_FREED char *const folder = e->d_name[0] != '.' ? gs_path_join(path, e->d_name) : NULL;
        if (folder == NULL || !gs_path_is_dir(folder))
            continue;
        if (out->count == MOST_FOLDERS)
            return gs_fail(GS_EUNSUPPORTED, "%s: more than %u folders", path, MOST_FOLDERS);
        GS_NEED((out->name[out->count] = gs_strdup(e->d_name)) != NULL, "%s: no memory for a name", path);
        out->count++;
    }
    qsort(out->name, out->count, sizeof(out->name[0]), by_name);
    return GS_OK;
}

static void names_free(names *n)
{
    for (uint32_t k = 0; k < n->count; k++)
        gs_free(n->name[k]);
    n->count = 0;
}

static bool npy_looks(const char *path, const gs_part_head *head)
{
    (void)head;
    return gs_path_has(path, "nodes") && gs_path_has(path, "edges") && !gs_path_has(path, "edges.npy");
}

static gs_status open_nodes(gs_part_types *t, gs_part_job *job, const char *folder, const char *name)
{
    uint32_t type = 0;

    GS_TRY(gs_part__type_find(&type, t, name, true, folder));
    gs_part__arrays_warn(folder, "", node_arrays, job);
    GS_TRY(gs_part__stated_vertices(&t->table->type[type].vertices, folder));
    GS_TRY(gs_part__arrays_open(gs_part__type_part(t, type), job, folder, node_arrays));
    return gs_part__named_open(gs_part__type_part(t, type), job, folder);
}

/* The longest type that `name` begins with, before "__", or ends with, behind it; its bytes, 0 where there is none. */
static size_t type_at_end(uint32_t *out, const gs_type_table *t, const char *name, bool begin)
{
    const size_t n = strlen(name);
    size_t longest = 0;

    for (uint32_t k = 0; k < t->types; k++) {
        const size_t m = strlen(t->type[k].name);
        if (m + 2 > n || m <= longest)
            continue;
        const char *const at = begin ? name : name + n - m, *const bar = begin ? name + m : name + n - m - 2;
        if (memcmp(at, t->type[k].name, m) == 0 && memcmp(bar, "__", 2) == 0) {
            longest = m;
            *out = k;
        }
    }
    return longest;
}

/* The relation that the folder's name says. */
static gs_status open_named(gs_part_types *t, gs_part_job *job, const char *folder, const char *name,
                            const gs_part_array *arrays)
{
    gs_part_input *const part = gs_part__relation_part(t, t->table->relations);
    uint32_t source = 0, destination = 0;
    const size_t from = type_at_end(&source, t->table, name, true), n = strlen(name);
    const size_t to = type_at_end(&destination, t->table, name, false);
    char relation[2 * GS_TYPE_NAME_BYTES];

    if (from == 0 || to == 0 || from + to + 4 >= n || n - from - to - 4 >= sizeof(relation))
        return gs_fail(GS_EFORMAT, "%s: is not named SOURCE__RELATION__DESTINATION, of types that have a "
                       "folder %s", folder, arrays == relation_arrays ? "in nodes/" : "beside it");
    snprintf(relation, sizeof(relation), "%.*s", (int)(n - from - to - 4), name + from + 2);
    GS_TRY(gs_part__relation_add(t, relation, source, destination, folder));
    gs_part__arrays_warn(folder, "", arrays, job);
    GS_NEED((part->path = gs_strdup(folder)) != NULL, "%s: no memory for a path", folder);
    GS_TRY(gs_part__arrays_open(part, job, folder, arrays));
    GS_TRY(gs_part__edges_check(part));
    GS_TRY(gs_part__named_open(part, job, folder));
    return gs_part__named_check(part, part->edges, true);
}

static gs_status open_relation(gs_part_types *t, gs_part_job *job, const char *folder, const char *name)
{
    return open_named(t, job, folder, name, relation_arrays);
}

typedef gs_status open_fn(gs_part_types *t, gs_part_job *job, const char *folder, const char *name);

static gs_status open_each(gs_part_types *t, gs_part_job *job, const char *path, const char *family, open_fn *open)
{
    GS_FREED char *const folder = *family != '\0' ? gs_path_join(path, family) : gs_strdup(path);
    GS_ENDS(names_free) names in = {.count = 0};

    GS_NEED(folder != NULL, "%s: no memory for a path", path);
    GS_TRY(list_folders(&in, folder));
    if (in.count == 0)
        return gs_fail(GS_EFORMAT, "%s: holds no folder, one for each type", folder);
    for (uint32_t k = 0; k < in.count; k++) {
        GS_FREED char *const one = gs_path_join(folder, in.name[k]);
        GS_NEED(one != NULL, "%s: no memory for a path", path);
        GS_TRY(open(t, job, one, in.name[k]));
    }
    return GS_OK;
}

static gs_status npy_read(gs_part_input *in, gs_part_job *job)
{
    GS_ENDS(gs_part__types_free) gs_part_types t = {0};

    GS_TRY(gs_part__types_make(&t, in->path));
    GS_TRY(open_each(&t, job, in->path, "nodes", open_nodes));
    GS_TRY(open_each(&t, job, in->path, "edges", open_relation));
    return gs_part__types_join(in, job, &t);
}

/* ---- IGB's heterogeneous graphs ------------------------------------------------------ */

/* Beside one another: processed/TYPE/node_feat.npy, float32 [N, 1024], with labels of papers, and
 * processed/SOURCE__RELATION__DESTINATION/edge_index.npy [E, 2]. Reverse relations are the igb package's to add:
 * .undirected does. */
static const gs_part_array igbh_relation[] = {
    {GS_PART_ROLE(edge), "edge_index.npy", GS_PART_NPY, 0, {NULL}},
    {0},
};

#define IGBH_LOOK "paper__written_by__author/edge_index.npy"

static gs_status igbh_vertices(gs_part_types *t, gs_part_job *job, const char *folder, const char *name)
{
    uint32_t type = 0;
    GS_FREED char *const processed = gs_path_folder(folder);

    GS_NEED(processed != NULL, "%s: no memory for a path", folder);
    if (strstr(name, "__") != NULL)
        return GS_OK;
    GS_TRY(gs_part__type_find(&type, t, name, true, folder));
    return gs_part__igb_vertices(gs_part__type_part(t, type), job, processed, name);
}

static gs_status igbh_edges(gs_part_types *t, gs_part_job *job, const char *folder, const char *name)
{
    return strstr(name, "__") != NULL ? open_named(t, job, folder, name, igbh_relation) : GS_OK;
}

static gs_status igbh_read(gs_part_input *in, gs_part_job *job)
{
    const char *const within = gs_path_has(in->path, IGBH_LOOK) ? "" : "processed";
    GS_ENDS(gs_part__types_free) gs_part_types t = {0};

    GS_TRY(gs_part__types_make(&t, in->path));
    GS_TRY(open_each(&t, job, in->path, within, igbh_vertices));
    GS_TRY(open_each(&t, job, in->path, within, igbh_edges));
    return gs_part__types_join(in, job, &t);
}

/* ---- the formats ----------------------------------------------------------------- */

const gs_part_format gs_part__types_formats[] = {
    {.name = "npy-types", .words = "a folder with nodes/TYPE and edges/SOURCE__RELATION__DESTINATION",
     .has = {"nodes"}, .looks = npy_looks, .read = npy_read},
    {.name = "igbh", .words = "a folder with paper__written_by__author",
     .has = {IGBH_LOOK, "processed/" IGBH_LOOK}, .read = igbh_read},
    {0},
};
