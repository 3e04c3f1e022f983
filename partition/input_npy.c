/* input_npy.c - a folder of .npy files: which are there, do they fit together? */
#include "partition/input_npy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/edge_block.h"
#include "partition/input_files.h"
#include "partition/input_unread.h"
#include "partition/job.h"
#include "partition/npy_edges.h"

#define META_LIMIT (16 * GS_MIB)
#define SCAN_EDGES 65536u

static bool is_there(const gs_part_file *f) { return f->npy.fd >= 0; }

/* Truth values are no ids: a mask read as ids would name vertices 0 and 1 alone. */
static bool holds_ids(const gs_npy *npy) { return gs_part__is_integer(npy->dtype) && !npy->truth; }

/* -- meta.json ------------------------------------------------------------ */

typedef struct meta {
    uint64_t vertices, features, classes, edge_types; /* 0: not said */
    const char *says; /* where `vertices` is from, after the input's path */
} meta;

static gs_status meta_number(uint64_t *out, const cJSON *root, const char *key, const char *path)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, key);
    if (item == NULL || cJSON_IsNull(item))
        return GS_OK;
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > 1e15 ||
        floor(item->valuedouble) != item->valuedouble)
        return gs_fail(GS_EFORMAT, "%s: \"%s\" is not a whole number of 0 or more; correct or remove it", path, key);
    for (const cJSON *other = item->next; other != NULL; other = other->next) /* which one readers disagree on */
        if (strcmp(other->string, key) == 0)
            return gs_fail(GS_EFORMAT, "%s: \"%s\" is there twice; remove one", path, key);
    *out = (uint64_t)item->valuedouble;
    return GS_OK;
}

static gs_status meta_parse(meta *m, const char *text, const char *path)
{
    cJSON *root = cJSON_ParseWithOpts(text, NULL, true); /* and nothing behind it */
    gs_status st;

    if (!cJSON_IsObject(root))
        st = gs_fail(GS_EFORMAT, "%s: is not a JSON object; correct or remove it", path);
    else if ((st = meta_number(&m->vertices, root, "num_nodes", path)) == GS_OK &&
             (st = meta_number(&m->features, root, "num_features", path)) == GS_OK &&
             (st = meta_number(&m->classes, root, "num_classes", path)) == GS_OK)
        st = meta_number(&m->edge_types, root, "num_edge_types", path);
    cJSON_Delete(root);
    return st;
}

static gs_status meta_load(meta *m, const char *dir)
{
    char *path = gs_path_join(dir, "meta.json"), *text = NULL;
    uint64_t bytes;
    gs_status st = GS_OK;

    if (path == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", dir);
    if (!gs_path_is_absent(path) && (st = gs_file_read_all(&text, &bytes, path, META_LIMIT)) == GS_OK)
        st = meta_parse(m, text, path);
    gs_free(text);
    gs_free(path);
    return st;
}

/* -- do the files fit together? ------------------------------------------- */

static gs_status check_edges(gs_part_input *in)
{
    const gs_npy *e = &in->edge.npy;
    if (!holds_ids(e))
        return gs_fail(GS_EFORMAT, "%s: has type %s; edges are pairs of integers (int64 or int32)", in->edge.path,
                       e->truth ? "bool" : gs_dtype_name(e->dtype));
    if (e->dims != 2 || (e->shape[1] != 2 && e->shape[0] != 2))
        return gs_fail(GS_EFORMAT, "%s: has shape [%llu, %llu]; edges are [E, 2], or [2, E]", in->edge.path,
                       (unsigned long long)e->shape[0], (unsigned long long)e->shape[1]);
    in->two_rows = e->shape[0] == 2 && (e->shape[1] != 2 || in->two_rows != in->edge.transposed);
    in->edges = in->two_rows ? e->shape[1] : e->shape[0];
    if (is_there(&in->type)) {
        const gs_npy *t = &in->type.npy;
        if (!gs_part__is_integer(t->dtype) || t->shape[1] != 1 || t->shape[0] != in->edges)
            return gs_fail(GS_EFORMAT, "%s: is %s [%llu, %llu]; edge types are integers [%llu], one an edge",
                           in->type.path, gs_dtype_name(t->dtype), (unsigned long long)t->shape[0],
                           (unsigned long long)t->shape[1], (unsigned long long)in->edges);
        in->typed = true;
    }
    if (is_there(&in->weight)) {
        const gs_npy *w = &in->weight.npy;
        if (w->shape[1] != 1 || w->shape[0] != in->edges)
            return gs_fail(GS_EFORMAT,
                           "%s: is %s [%llu, %llu]; edge weights are numbers [%llu], one an edge",
                           in->weight.path, gs_dtype_name(w->dtype), (unsigned long long)w->shape[0],
                           (unsigned long long)w->shape[1], (unsigned long long)in->edges);
        in->weighted = true;
    }
    return GS_OK;
}

/* Columns of a CSR matrix that no meta.json states: the largest index + 1. */
static gs_status scan_columns(gs_part_input *in)
{
    const gs_npy *x = &in->indices.npy;
    const uint64_t piece = 65536;
    int64_t *ids = gs_malloc_array(piece, 8);
    void *raw = gs_malloc_array(piece, 8);
    int64_t most = -1;
    gs_status st = ids && raw ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory to read it", in->indices.path);

    for (uint64_t at = 0; st == GS_OK && at < x->shape[0]; at += piece) {
        const uint64_t n = GS_MIN(piece, x->shape[0] - at);
        if ((st = gs_npy_read_rows(x, raw, at, n, in->indices.path)) != GS_OK)
            break;
        gs_part__to_i64(ids, raw, x->dtype, n);
        for (uint64_t i = 0; i < n && st == GS_OK; i++) {
            most = GS_MAX(most, ids[i]);
            if (ids[i] < 0)
                st = gs_fail(GS_EFORMAT, "%s: row %llu: column %lld is below 0", in->indices.path,
                             (unsigned long long)(at + i), (long long)ids[i]);
        }
    }
    if (st == GS_OK && most < 0)
        st = gs_fail(GS_EFORMAT,
                     "%s: holds no value, so it does not say how many columns there are; state num_features in "
                     "meta.json",
                     in->indices.path);
    if (st == GS_OK && most >= INT32_MAX)
        st = gs_fail(GS_EFORMAT, "%s: holds column %s; state num_features in meta.json", in->indices.path,
                     GS_PART_I64(most));
    if (st == GS_OK)
        in->features = (uint32_t)(most + 1);
    gs_free(ids);
    gs_free(raw);
    return st;
}

static gs_status check_csr(gs_part_input *in, const meta *m)
{
    const gs_npy *p = &in->indptr.npy, *x = &in->indices.npy, *d = &in->data.npy;

    if (!holds_ids(p) || p->shape[1] != 1 || p->shape[0] < 2)
        return gs_fail(GS_EFORMAT, "%s: must be integers [N + 1]", in->indptr.path);
    if (!holds_ids(x) || x->shape[1] != 1)
        return gs_fail(GS_EFORMAT, "%s: must be integers, one a stored value", in->indices.path);
    if (d->shape[1] != 1 || d->shape[0] != x->shape[0])
        return gs_fail(GS_EFORMAT, "%s: must be numbers [%llu], as long as %s", in->data.path,
                       (unsigned long long)x->shape[0], in->indices.path);
    in->form = GS_FORM_CSR;
    in->vertices = p->shape[0] - 1;
    if (m->features > INT32_MAX)
        return gs_fail(GS_EFORMAT, "%s/meta.json: num_features is %llu", in->path, (unsigned long long)m->features);
    in->features = (uint32_t)m->features;
    return in->features != 0 ? GS_OK : scan_columns(in);
}

static gs_status check_features(gs_part_input *in, const meta *m)
{
    const gs_npy *f = &in->feature.npy;

    if (is_there(&in->indptr) && is_there(&in->feature))
        return gs_fail(GS_EFORMAT, "%s: has both features.npy and features_indptr.npy; keep one", in->path);
    if (is_there(&in->indptr))
        return check_csr(in, m);
    if (!is_there(&in->feature))
        return GS_OK;
    if (f->dims != 2 || f->shape[1] == 0 || f->shape[1] > INT32_MAX)
        return gs_fail(GS_EFORMAT, "%s: has shape [%llu, %llu]; features are [N, F]", in->feature.path,
                       (unsigned long long)f->shape[0], (unsigned long long)f->shape[1]);
    if (m->features != 0 && m->features != f->shape[1])
        return gs_fail(GS_EFORMAT, "%s: has %llu columns, but %llu features are stated", in->feature.path,
                       (unsigned long long)f->shape[1], (unsigned long long)m->features);
    in->form = GS_FORM_DENSE;
    in->vertices = f->shape[0];
    in->features = (uint32_t)f->shape[1];
    return GS_OK;
}

static gs_status check_labels(gs_part_input *in, const meta *m)
{
    const gs_npy *l = &in->label.npy;

    if (!is_there(&in->label))
        return GS_OK;
    if (in->form != GS_FORM_NONE && in->vertices != l->shape[0])
        return gs_fail(GS_EFORMAT, "%s: has %llu rows, but there are features of %llu vertices", in->label.path,
                       (unsigned long long)l->shape[0], (unsigned long long)in->vertices);
    in->vertices = l->shape[0];
    if (m->classes > INT32_MAX)
        return gs_fail(GS_EFORMAT, "%s/meta.json: num_classes is %llu; at most %d are supported", in->path,
                       (unsigned long long)m->classes, INT32_MAX);
    in->classes = (uint32_t)m->classes;
    return GS_OK;
}

/* No file but the edges says how many vertices there are. */
static gs_status scan_vertices(gs_part_input *in)
{
    gs_part_edge_block b;
    uint32_t most = 0;
    gs_status st = gs_part__edge_block_make(&b, in, SCAN_EDGES);

    in->vertices = UINT32_MAX - 1u; /* any id that a store could hold */
    for (uint64_t at = 0; st == GS_OK && at < in->edges; at += b.count) {
        if ((st = gs_part__npy_edges(in, &b, at, GS_MIN(SCAN_EDGES, in->edges - at))) != GS_OK)
            break;
        for (uint64_t i = 0; i < b.count; i++)
            most = GS_MAX(most, GS_MAX(b.src[i], b.dst[i]));
    }
    gs_part__edge_block_free(&b);
    in->vertices = in->edges == 0 ? 0 : (uint64_t)most + 1;
    return st;
}

/* Several labels a vertex may lie beside one class a vertex; .task says which are meant. */
static gs_status open_labels(gs_part_input *in, const char *task)
{
    const bool several = task != NULL && strcmp(task, "multilabel") == 0;
    static const char *const name[] = {"labels.npy", "labels_multi.npy"};
    gs_status st = gs_part__file_open(&in->label, in->path, name[several], false);

    if (st == GS_OK && !is_there(&in->label) && (task == NULL || several)) {
        gs_part__file_close(&in->label);
        st = gs_part__file_open(&in->label, in->path, name[!several], false);
    }
    if (st != GS_OK || task != NULL || strstr(in->label.path, name[0]) == NULL)
        return st;
    char *const multi = gs_path_join(in->path, name[1]);
    if (multi != NULL && gs_path_exists(multi))
        snprintf(in->note, sizeof(in->note),
                 "labels_multi.npy: is not read beside labels.npy; .task multilabel takes it");
    gs_free(multi);
    return GS_OK;
}

static gs_status open_all(gs_part_input *in, const char *task)
{
    gs_status st;
    if ((st = gs_part__file_open(&in->edge, in->path, "edges.npy", true)) != GS_OK ||
        (st = gs_part__file_open(&in->type, in->path, "edge_types.npy", false)) != GS_OK ||
        (st = gs_part__file_open(&in->weight, in->path, "edge_weights.npy", false)) != GS_OK ||
        (st = gs_part__file_open(&in->feature, in->path, "features.npy", false)) != GS_OK ||
        (st = gs_part__file_open(&in->indptr, in->path, "features_indptr.npy", false)) != GS_OK ||
        (st = open_labels(in, task)) != GS_OK ||
        (st = gs_part__file_open(&in->split[0], in->path, "train_idx.npy", false)) != GS_OK ||
        (st = gs_part__file_open(&in->split[1], in->path, "valid_idx.npy", false)) != GS_OK ||
        (st = gs_part__file_open(&in->split[2], in->path, "test_idx.npy", false)) != GS_OK)
        return st;
    if (!is_there(&in->indptr))
        return GS_OK;
    if ((st = gs_part__file_open(&in->indices, in->path, "features_indices.npy", true)) != GS_OK)
        return st;
    return gs_part__file_open(&in->data, in->path, "features_data.npy", true);
}

static gs_status check_all(gs_part_input *in, const meta *m)
{
    gs_status st;

    if ((in->text == NULL && (st = check_edges(in)) != GS_OK) || (st = check_features(in, m)) != GS_OK ||
        (st = check_labels(in, m)) != GS_OK)
        return st;
    if (in->vertices != 0 && m->vertices != 0 && in->vertices != m->vertices)
        return gs_fail(GS_EFORMAT, "%s%s is %llu, but the %s have %llu rows", in->path, m->says,
                       (unsigned long long)m->vertices, in->form == GS_FORM_NONE ? "labels" : "features",
                       (unsigned long long)in->vertices);
    if (in->vertices == 0)
        in->vertices = m->vertices;
    if (m->edge_types > 65536)
        return gs_fail(GS_EUNSUPPORTED, "%s/meta.json: num_edge_types is %llu; at most 65536 are supported", in->path,
                       (unsigned long long)m->edge_types);
    in->edge_types = in->typed ? (uint32_t)m->edge_types : 0;
    return in->vertices != 0 ? GS_OK : scan_vertices(in);
}

gs_status gs_part__files_check(gs_part_input *in, uint64_t vertices, uint64_t features)
{
    return check_all(in, &(meta){.vertices = vertices, .features = features,
                                 .says = ": the stated number of vertices"});
}

gs_status gs_part__npy_folder(gs_part_input *in, gs_part_job *job)
{
    meta m = {.says = "/meta.json: num_nodes"};
    gs_status st;

    gs_part__warn_of_unread(in->path, &gs_part__known_npy, job);
    if ((st = meta_load(&m, in->path)) != GS_OK || (st = open_all(in, job->opt->task)) != GS_OK)
        return st;
    return check_all(in, &m);
}
