/* input_folder.c - folders of arrays: tables say which file is what; which are there, and do they fit together? */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/record.h"
#include "base/size.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "store/store.h" /* GS_LINK_SPLITS */

/* ---- files that nothing reads ------------------------------------------------ */

#define NEAR 2u        /* letters that differ: val_idx.npy, feature.npy */
#define LONGEST 32u    /* of names that could be near */
#define MOST_NAMED 4u  /* in the line about all others */

/* Letters to add, drop or change to make `b` of `a`; both are shorter than LONGEST. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[LONGEST + 1];
    const size_t n = strlen(b);

    for (unsigned k = 0; k <= n; k++)
        row[k] = k;
    for (unsigned i = 0; a[i] != '\0'; i++) {
        unsigned before = row[0];
        row[0] = i + 1;
        for (unsigned k = 0; k < n; k++) {
            const unsigned change = before + (a[i] != b[k]);
            before = row[k + 1];
            row[k + 1] = GS_MIN(change, GS_MIN(before, row[k]) + 1);
        }
    }
    return row[n];
}

const char *gs_part__near_name(const char *name, const char *const *names)
{
    const char *best = NULL;
    unsigned nearest = NEAR + 1;

    for (size_t i = 0; names[i] != NULL && strlen(name) < LONGEST; i++) {
        const unsigned d = strlen(names[i]) < LONGEST ? distance(name, names[i]) : NEAR + 1;
        if (d < nearest) {
            best = names[i];
            nearest = d;
        }
    }
    return best;
}

bool gs_part__near_file(char *out, size_t room, const char *folder, const char *name)
{
    const char *const last = gs_path_name(name);
    unsigned nearest = NEAR + 1;
    GS_FREED char *const whole = gs_path_join(folder, name);

    if (whole == NULL || strlen(last) >= LONGEST)
        return false;
    whole[strlen(whole) - strlen(last)] = '\0';
    GS_ENDS(gs_closedir_at) DIR *const d = opendir(whole);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        const unsigned far = strlen(e->d_name) < LONGEST && e->d_name[0] != '.' ? distance(last, e->d_name) : NEAR + 1;
        if (far < nearest) {
            nearest = far;
            snprintf(out, room, "%.*s%s", (int)(last - name), name, e->d_name);
        }
    }
    return nearest <= NEAR;
}

/* Bytes of a table's name before .gz; of other names, all. */
static size_t stem_bytes(const char *name)
{
    const size_t n = strlen(name);
    return n > 3 && strcmp(name + n - 3, ".gz") == 0 ? n - 3 : n;
}

/* Whether `name` is one that is read, or that with another ending of a packed table. */
static bool is_called(const char *name, const char *read)
{
    const size_t stem = stem_bytes(read);

    if (strcmp(name, read) == 0)
        return true;
    return read[stem] != '\0' && strncmp(name, read, stem) == 0 &&
           (name[stem] == '\0' || strcmp(name + stem, ".zst") == 0);
}

static bool is_missing(const char *folder, const char *name)
{
    static const char *const ends[] = {"", ".gz", ".zst"};
    const size_t stem = stem_bytes(name);
    bool missing = true;

    for (size_t i = 0; i < (name[stem] != '\0' ? GS_ARRAY_LEN(ends) : 1) && missing; i++) {
        char one[LONGEST * 2];
        snprintf(one, sizeof(one), "%.*s%s", (int)stem, name, ends[i]);
        GS_FREED char *const path = gs_path_join(folder, one);
        missing = path != NULL && gs_path_is_absent(path);
    }
    return missing;
}

/* The array's name within the folder `dir`; NULL where it is in another. */
static const char *name_in(const gs_part_array *a, const char *dir)
{
    const size_t n = strlen(dir);

    if (n == 0)
        return strchr(a->name, '/') == NULL ? a->name : NULL;
    return strncmp(a->name, dir, n) == 0 && a->name[n] == '/' && strchr(a->name + n + 1, '/') == NULL ? a->name + n + 1
                                                                                                      : NULL;
}

/* What a file of this name was meant to be: a file that is read and missing, or NULL. */
static const char *meant(const char *folder, const char *dir, const gs_part_array *table, const char *name)
{
    const char *best = NULL;
    unsigned nearest = NEAR + 1;

    for (const gs_part_array *a = table; a->name != NULL; a++) {
        const char *const own = name_in(a, dir);
        for (size_t i = 0; own != NULL && i < GS_ARRAY_LEN(a->other) && a->other[i] != NULL; i++)
            if (is_called(name, a->other[i]) && is_missing(folder, own))
                return own;
    }
    for (const gs_part_array *a = table; a->name != NULL && strlen(name) < LONGEST; a++) {
        const char *const own = name_in(a, dir);
        const unsigned d = own != NULL && strlen(own) < LONGEST ? distance(name, own) : NEAR + 1;
        if (d < nearest && is_missing(folder, own)) {
            best = own;
            nearest = d;
        }
    }
    return best;
}

static bool is_read(const gs_part_array *table, const char *dir, const char *name)
{
    for (const gs_part_array *a = table; a->name != NULL; a++)
        if (name_in(a, dir) != NULL && is_called(name, name_in(a, dir)))
            return true;
    return false;
}

static bool is_file(int folder, const char *name)
{
    struct stat s;
    return fstatat(folder, name, &s, 0) == 0 && S_ISREG(s.st_mode);
}

static void warn_in(const char *folder, const char *dir, const gs_part_array *table, const gs_part_job *job)
{
    char others[600] = "";
    size_t used = 0, count = 0;
    GS_ENDS(gs_closedir_at) DIR *const d = job->opt->warn != NULL ? opendir(folder) : NULL;

    if (d == NULL)
        return;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || is_read(table, dir, e->d_name) || !is_file(dirfd(d), e->d_name))
            continue;
        const char *const name = meant(folder, dir, table, e->d_name);
        if (name != NULL)
            gs_part__warn(job, "%s/%s: is not read; was %s meant?", folder, e->d_name, name);
        else if (count++ < MOST_NAMED && used < sizeof(others))
            used += (size_t)snprintf(others + used, sizeof(others) - used, "%s%s", count > 1 ? ", " : "", e->d_name);
    }
    if (count != 0)
        gs_part__warn(job, "%s: nothing reads %s%s", folder, others, count > MOST_NAMED ? " and others" : "");
}

void gs_part__arrays_warn(const char *path, const char *dir, const gs_part_array *table, const gs_part_job *job)
{
    GS_FREED char *const folder = *dir != '\0' ? gs_path_join(path, dir) : gs_strdup(path);

    if (folder != NULL)
        warn_in(folder, dir, table, job);
}

/* ---- tables of arrays --------------------------------------------------------- */

gs_status gs_part__table_open(gs_part_file *f, gs_part_job *job, const char *dir, const char *name, gs_dtype as)
{
    static const char *const ends[] = {".gz", "", ".zst"};
    char file[300];

    for (size_t i = 0; i < GS_ARRAY_LEN(ends); i++) {
        snprintf(file, sizeof(file), "%.*s%s", (int)stem_bytes(name), name, ends[i]);
        char *const path = gs_path_join(dir, file);
        GS_NEED(path != NULL, "%s: no memory for a path", dir);
        if (!gs_path_is_absent(path))
            return gs_part__table_read(f, job, path, as); /* which takes the path */
        gs_free(path);
    }
    return GS_OK;
}

gs_status gs_part__arrays_open(gs_part_input *in, gs_part_job *job, const char *dir, const gs_part_array *table)
{
    for (const gs_part_array *a = table; a->name != NULL; a++) {
        gs_part_file *const f = (gs_part_file *)(void *)((char *)in + a->role);
        if (a->kept == GS_PART_TABLE)
            GS_TRY(gs_part__table_open(f, job, dir, a->name, a->as));
        else if (a->kept == GS_PART_NPY)
            GS_TRY(gs_part__file_open(f, dir, a->name, f == &in->edge));
    }
    return GS_OK;
}

/* ---- do the files fit together? ------------------------------------------------ */

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
    GS_ENDS(cJSON_Delete_at) cJSON *root = cJSON_ParseWithOpts(text, NULL, true); /* and nothing behind it */

    if (!cJSON_IsObject(root))
        return gs_fail(GS_EFORMAT, "%s: is not a JSON object; correct or remove it", path);
    GS_TRY(meta_number(&m->vertices, root, "num_nodes", path));
    GS_TRY(meta_number(&m->features, root, "num_features", path));
    GS_TRY(meta_number(&m->classes, root, "num_classes", path));
    return meta_number(&m->edge_types, root, "num_edge_types", path);
}

static gs_status meta_load(meta *m, const char *dir)
{
    GS_FREED char *path = gs_path_join(dir, "meta.json");
    GS_FREED char *text = NULL;
    uint64_t bytes;

    GS_NEED(path != NULL, "%s: no memory for a path", dir);
    if (gs_path_is_absent(path))
        return GS_OK;
    GS_TRY(gs_file_read_all(&text, &bytes, path, META_LIMIT));
    return meta_parse(m, text, path);
}

gs_status gs_part__stated_vertices(uint64_t *out, const char *dir)
{
    meta m = {.vertices = *out};
    const gs_status st = meta_load(&m, dir);

    *out = m.vertices;
    return st;
}

/* -- the files -------------------------------------------------------------- */

static gs_status check_edge_features(gs_part_input *in)
{
    const gs_npy *const f = &in->edge_feature.npy;

    if (f->shape[0] != in->edges || f->shape[1] == 0)
        return gs_fail(GS_EFORMAT, "%s: is %s [%lu, %lu]; edge features are numbers [%lu, K], a row an edge",
                       in->edge_feature.path, gs_dtype_name(f->dtype), f->shape[0], f->shape[1], in->edges);
    if (f->shape[1] > GS_MOST_EDGE_FEATURES)
        return gs_fail(GS_EUNSUPPORTED, "%s: has %lu columns; an edge has at most %u features", in->edge_feature.path,
                       f->shape[1], GS_MOST_EDGE_FEATURES);
    if (in->edges > UINT32_MAX)
        return gs_fail(GS_EUNSUPPORTED, "%s: %lu edges; those with features are fewer than 2^32", in->edge_feature.path,
                       in->edges);
    in->edge_features = (uint32_t)f->shape[1];
    return GS_OK;
}

gs_status gs_part__edges_check(gs_part_input *in)
{
    const gs_npy *e = &in->edge.npy;
    if (!holds_ids(e))
        return gs_fail(GS_EFORMAT, "%s: has type %s; edges are pairs of integers (int64 or int32)", in->edge.path,
                       e->truth ? "bool" : gs_dtype_name(e->dtype));
    if (e->dims != 2 || (e->shape[1] != 2 && e->shape[0] != 2))
        return gs_fail(GS_EFORMAT, "%s: has shape [%lu, %lu]; edges are [E, 2], or [2, E]", in->edge.path, e->shape[0],
                       e->shape[1]);
    in->two_rows = e->shape[0] == 2 && (e->shape[1] != 2 || in->two_rows != in->edge.transposed);
    in->edges = in->two_rows ? e->shape[1] : e->shape[0];
    if (is_there(&in->type)) {
        const gs_npy *t = &in->type.npy;
        if (!gs_part__is_integer(t->dtype) || t->shape[1] != 1 || t->shape[0] != in->edges)
            return gs_fail(GS_EFORMAT, "%s: is %s [%lu, %lu]; edge types are integers [%lu], one an edge",
                           in->type.path, gs_dtype_name(t->dtype), t->shape[0], t->shape[1], in->edges);
        in->typed = true;
    }
    if (is_there(&in->weight)) {
        const gs_npy *w = &in->weight.npy;
        if (w->shape[1] != 1 || w->shape[0] != in->edges)
            return gs_fail(GS_EFORMAT, "%s: is %s [%lu, %lu]; edge weights are numbers [%lu], one an edge",
                           in->weight.path, gs_dtype_name(w->dtype), w->shape[0], w->shape[1], in->edges);
        in->weighted = true;
    }
    return is_there(&in->edge_feature) ? check_edge_features(in) : GS_OK;
}

/* Columns of a CSR matrix that no meta.json states: the largest index + 1. */
static gs_status scan_columns(gs_part_input *in)
{
    const gs_npy *x = &in->indices.npy;
    const uint64_t piece = 65536;
    GS_FREED int64_t *ids = gs_malloc_array(piece, 8);
    GS_FREED void *raw = gs_malloc_array(piece, 8);
    int64_t most = -1;

    GS_NEED(ids != NULL && raw != NULL, "%s: no memory to read it", in->indices.path);
    for (uint64_t at = 0; at < x->shape[0]; at += piece) {
        const uint64_t n = GS_MIN(piece, x->shape[0] - at);
        GS_TRY(gs_npy_read_rows(x, raw, at, n, in->indices.path));
        gs_part__to_i64(ids, raw, x->dtype, n);
        for (uint64_t i = 0; i < n; i++) {
            most = GS_MAX(most, ids[i]);
            if (ids[i] < 0)
                return gs_fail(GS_EFORMAT, "%s: row %lu: column %lld is below 0", in->indices.path, at + i,
                               (long long)ids[i]);
        }
    }
    if (most < 0)
        return gs_fail(GS_EFORMAT, "%s: holds no value, so it does not say how many columns there are; state "
                       "num_features in meta.json", in->indices.path);
    if (most >= INT32_MAX)
        return gs_fail(GS_EFORMAT, "%s: holds column %s; state num_features in meta.json", in->indices.path,
                       GS_PART_I64(most));
    in->features = (uint32_t)(most + 1);
    return GS_OK;
}

static gs_status check_csr(gs_part_input *in, const meta *m)
{
    const gs_npy *p = &in->indptr.npy, *x = &in->indices.npy, *d = &in->data.npy;

    if (!holds_ids(p) || p->shape[1] != 1 || p->shape[0] < 2)
        return gs_fail(GS_EFORMAT, "%s: must be integers [N + 1]", in->indptr.path);
    if (!holds_ids(x) || x->shape[1] != 1)
        return gs_fail(GS_EFORMAT, "%s: must be integers, one a stored value", in->indices.path);
    if (d->shape[1] != 1 || d->shape[0] != x->shape[0])
        return gs_fail(GS_EFORMAT, "%s: must be numbers [%lu], as long as %s", in->data.path, x->shape[0],
                       in->indices.path);
    in->form = GS_FORM_CSR;
    in->vertices = p->shape[0] - 1;
    if (m->features > INT32_MAX)
        return gs_fail(GS_EFORMAT, "%s/meta.json: num_features is %lu", in->path, m->features);
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
        return gs_fail(GS_EFORMAT, "%s: has shape [%lu, %lu]; features are [N, F]", in->feature.path, f->shape[0],
                       f->shape[1]);
    if (m->features != 0 && m->features != f->shape[1])
        return gs_fail(GS_EFORMAT, "%s: has %lu columns, but %lu features are stated", in->feature.path, f->shape[1],
                       m->features);
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
    if (l->shape[1] == 0)
        return gs_fail(GS_EFORMAT, "%s: has 0 columns of labels", in->label.path);
    if (in->form != GS_FORM_NONE && in->vertices != l->shape[0])
        return gs_fail(GS_EFORMAT, "%s: has %lu rows, but there are features of %lu vertices", in->label.path,
                       l->shape[0], in->vertices);
    in->vertices = l->shape[0];
    if (m->classes > INT32_MAX)
        return gs_fail(GS_EFORMAT, "%s/meta.json: num_classes is %lu; at most %d are supported", in->path, m->classes,
                       INT32_MAX);
    in->classes = (uint32_t)m->classes;
    return GS_OK;
}

/* No file but the edges says how many vertices there are. */
static gs_status scan_vertices(gs_part_input *in)
{
    GS_ENDS(gs_part__edge_block_free) gs_part_edge_block b = {0};
    uint32_t most = 0;

    GS_TRY(gs_part__edge_block_make(&b, in, SCAN_EDGES));
    in->vertices = UINT32_MAX - 1u; /* any id that a store could hold */
    for (uint64_t at = 0; at < in->edges; at += b.count) {
        GS_TRY(gs_part__npy_edges(in, &b, at, GS_MIN(SCAN_EDGES, in->edges - at)));
        for (uint64_t i = 0; i < b.count; i++)
            most = GS_MAX(most, GS_MAX(b.src[i], b.dst[i]));
    }
    in->vertices = in->edges == 0 ? 0 : (uint64_t)most + 1;
    return GS_OK;
}

/* Several labels a vertex may lie beside one class a vertex; .task says which are meant. */
static gs_status open_labels(gs_part_input *in, const char *task)
{
    const bool several = task != NULL && strcmp(task, "multilabel") == 0;
    static const char *const name[] = {"labels.npy", "labels_multi.npy"};

    GS_TRY(gs_part__file_open(&in->label, in->path, name[several], false));
    if (!is_there(&in->label) && (task == NULL || several)) {
        gs_part__file_close(&in->label);
        GS_TRY(gs_part__file_open(&in->label, in->path, name[!several], false));
    }
    if (task != NULL || strstr(in->label.path, name[0]) == NULL)
        return GS_OK;
    GS_FREED char *const multi = gs_path_join(in->path, name[1]);
    if (multi != NULL && gs_path_exists(multi))
        snprintf(in->note, sizeof(in->note),
                 "labels_multi.npy: is not read beside labels.npy; .task multilabel takes it");
    return GS_OK;
}

static gs_status check_all(gs_part_input *in, const meta *m)
{
    if (in->text == NULL)
        GS_TRY(gs_part__edges_check(in));
    GS_TRY(check_features(in, m));
    GS_TRY(check_labels(in, m));
    if (in->vertices != 0 && m->vertices != 0 && in->vertices != m->vertices)
        return gs_fail(GS_EFORMAT, "%s%s is %lu, but the %s have %lu rows", in->path, m->says, m->vertices,
                       in->form == GS_FORM_NONE ? "labels" : "features", in->vertices);
    if (in->vertices == 0)
        in->vertices = m->vertices;
    if (m->edge_types > 65536)
        return gs_fail(GS_EUNSUPPORTED, "%s/meta.json: num_edge_types is %lu; at most 65536 are supported", in->path,
                       m->edge_types);
    in->edge_types = in->typed ? (uint32_t)m->edge_types : 0;
    return in->vertices != 0 ? GS_OK : scan_vertices(in);
}

gs_status gs_part__files_check(gs_part_input *in, uint64_t vertices, uint64_t features)
{
    return check_all(in, &(meta){.vertices = vertices, .features = features,
                                 .says = ": the stated number of vertices"});
}

/* ---- a folder of .npy files --------------------------------------------------- */

static const char *const split_name[GS_LINK_SPLITS] = {"train", "valid", "test"};

/* Others' names are torch_geometric's and DGL's attributes. */
static const gs_part_array npy_arrays[] = {
    {GS_PART_ROLE(edge), "edges.npy", GS_PART_NPY, 0, {"edge_index.npy"}},
    {GS_PART_ROLE(type), "edge_types.npy", GS_PART_NPY, 0, {"edge_type.npy"}},
    {GS_PART_ROLE(weight), "edge_weights.npy", GS_PART_NPY, 0, {"edge_weight.npy"}},
    {GS_PART_ROLE(edge_feature), "edge_features.npy", GS_PART_NPY, 0, {"edge_attr.npy", "edge_feat.npy"}},
    {GS_PART_ROLE(feature), "features.npy", GS_PART_NPY, 0, {"x.npy", "feat.npy", "node_feat.npy"}},
    {GS_PART_ROLE(indptr), "features_indptr.npy", GS_PART_NPY, 0, {NULL}},
    {GS_PART_ROLE(indices), "features_indices.npy", GS_PART_OWN, 0, {NULL}},
    {GS_PART_ROLE(data), "features_data.npy", GS_PART_OWN, 0, {NULL}},
    {GS_PART_ROLE(label), "labels.npy", GS_PART_OWN, 0, {"y.npy", "label.npy"}},
    {GS_PART_ROLE(label), "labels_multi.npy", GS_PART_OWN, 0, {NULL}},
    {GS_PART_ROLE(split[0]), "train_idx.npy", GS_PART_NPY, 0, {"train_mask.npy"}},
    {GS_PART_ROLE(split[1]), "valid_idx.npy", GS_PART_NPY, 0, {"val_mask.npy", "valid_mask.npy"}},
    {GS_PART_ROLE(split[2]), "test_idx.npy", GS_PART_NPY, 0, {"test_mask.npy"}},
    {GS_PART_ROLE(link[0]), "train_edges.npy", GS_PART_NPY, 0, {NULL}},
    {GS_PART_ROLE(link[1]), "valid_edges.npy", GS_PART_NPY, 0, {"val_edges.npy"}},
    {GS_PART_ROLE(link[2]), "test_edges.npy", GS_PART_NPY, 0, {NULL}},
    {GS_PART_ROLE(link_type[0]), "train_edge_types.npy", GS_PART_NPY, 0, {NULL}},
    {GS_PART_ROLE(link_type[1]), "valid_edge_types.npy", GS_PART_NPY, 0, {"val_edge_types.npy"}},
    {GS_PART_ROLE(link_type[2]), "test_edge_types.npy", GS_PART_NPY, 0, {NULL}},
    {GS_PART_ROLE(link_label[0]), "train_edge_labels.npy", GS_PART_NPY, 0, {NULL}},
    {GS_PART_ROLE(link_label[1]), "valid_edge_labels.npy", GS_PART_NPY, 0, {"val_edge_labels.npy"}},
    {GS_PART_ROLE(link_label[2]), "test_edge_labels.npy", GS_PART_NPY, 0, {NULL}},
    {0, "meta.json", GS_PART_OWN, 0, {NULL}},
    {0},
};

static bool is_floating(const gs_part_file *f) { return f->npy.dtype == GS_F32 || f->npy.dtype == GS_F64; }

/* All splits have labels or none has, classes or numbers. */
static gs_status check_link_labels(const gs_part_input *in, uint64_t pairs, uint32_t split)
{
    const gs_part_file *const own = &in->link_label[split], *other = NULL;

    for (uint32_t k = 0; k < GS_LINK_SPLITS && other == NULL; k++)
        other = is_there(&in->link_label[k]) ? &in->link_label[k] : NULL;
    if (other == NULL)
        return GS_OK;
    if (!is_there(own))
        return gs_fail(GS_EFORMAT, "%s: has no labels, and pairs of another split have (%s); add %s_edge_labels.npy",
                       in->link[split].path, other->path, split_name[split]);
    if (own->npy.shape[0] != pairs || own->npy.shape[1] != 1 ||
        (!is_floating(own) && !gs_part__is_integer(own->npy.dtype)))
        return gs_fail(GS_EFORMAT, "%s: is %s [%lu, %lu]; labels of edges are integers, classes, or f32 or f64, "
                       "numbers, [%lu]", own->path, gs_dtype_name(own->npy.dtype), own->npy.shape[0], own->npy.shape[1],
                       pairs);
    if (is_floating(own) != is_floating(other))
        return gs_fail(GS_EFORMAT, "%s: is %s and %s is %s; give all splits classes, or all of them numbers", own->path,
                       gs_dtype_name(own->npy.dtype), other->path, gs_dtype_name(other->npy.dtype));
    return GS_OK;
}

gs_status gs_part__links_of(gs_part_input *out, const gs_part_input *in, uint32_t split)
{
    const gs_part_file *const pairs = &in->link[split], *const types = &in->link_type[split];
    const gs_part_file *const labels = &in->link_label[split];

    *out = *in;
    out->edge = *pairs;
    out->type = *types;
    out->label = *labels;
    out->weight = out->edge_feature = (gs_part_file){.npy = {.fd = -1}};
    out->edges = out->edge_features = 0;
    out->text = NULL;
    out->typed = out->weighted = out->two_rows = false;
    if (!is_there(pairs) && (is_there(types) || is_there(labels)))
        return gs_fail(GS_EFORMAT, "%s: has %s of edges that are not there; add the pairs, or remove it",
                       is_there(types) ? types->path : labels->path, is_there(types) ? "types" : "labels");
    if (!is_there(pairs))
        return GS_OK;
    GS_TRY(gs_part__edges_check(out));
    GS_TRY(check_link_labels(in, out->edges, split));
    if (out->typed == in->typed)
        return GS_OK;
    if (out->typed)
        return gs_fail(GS_EFORMAT, "%s: has types, and the edges of the graph have none; add edge_types.npy, or remove "
                       "it", types->path);
    return gs_fail(GS_EFORMAT, "%s: needs a type for each of its %lu pairs, as the edges of the graph have types; add "
                   "%s_edge_types.npy", pairs->path, out->edges, split_name[split]);
}

static gs_status check_links(const gs_part_input *in)
{
    gs_part_input links;

    for (uint32_t k = 0; k < GS_LINK_SPLITS; k++)
        GS_TRY(gs_part__links_of(&links, in, k));
    return GS_OK;
}

/* Where no other array says how many vertices there are, those do. */
static gs_status open_named(gs_part_input *in, const gs_part_job *job, meta *m)
{
    GS_TRY(gs_part__named_open(in, job, in->path));
    const gs_part_named *const n = in->named[0];
    if (n == NULL || n->count == 0)
        return GS_OK;
    if (is_there(&in->indptr))
        return gs_fail(GS_EUNSUPPORTED, "%s: features in CSR beside those of %s/features, which have names; give them "
                       "as features.npy", in->indptr.path, in->path);
    if (m->vertices == 0 && !is_there(&in->feature) && !is_there(&in->label)) {
        m->vertices = n->file[0].npy.shape[0];
        m->says = ": the number of rows in features/";
    }
    return GS_OK;
}

static gs_status npy_open(gs_part_input *in, gs_part_job *job)
{
    meta m = {.says = "/meta.json: num_nodes"};

    gs_part__arrays_warn(in->path, "", npy_arrays, job);
    GS_TRY(meta_load(&m, in->path));
    GS_TRY(gs_part__arrays_open(in, job, in->path, npy_arrays));
    GS_TRY(open_labels(in, job->opt->task));
    GS_TRY(open_named(in, job, &m));
    if (is_there(&in->indptr)) {
        GS_TRY(gs_part__file_open(&in->indices, in->path, "features_indices.npy", true));
        GS_TRY(gs_part__file_open(&in->data, in->path, "features_data.npy", true));
    }
    GS_TRY(check_all(in, &m));
    GS_TRY(gs_part__named_check(in, in->vertices, false));
    GS_TRY(gs_part__named_check(in, in->edges, true));
    return check_links(in);
}

/* ---- the formats ----------------------------------------------------------------- */

const gs_part_format gs_part__folder_formats[] = {
    {.name = "npy", .words = "a folder with edges.npy", .has = {"edges.npy"}, .open = npy_open,
     .read = gs_part__named_join},
    {0},
};
