/* input_graphbolt.c - GraphBolt's folders, before its own preprocessing: metadata.yaml names one file of edges (numpy
 * [2, E], or CSV), features of the vertices, and, for each split, a list of vertices with their labels. */
#include "partition/input_graphbolt.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/input_npy.h"
#include "partition/input_table.h"
#include "partition/input_unread.h"
#include "partition/job.h"
#include "partition/made_array.h"
#include "partition/yaml_tree.h"

#define NAME "metadata.yaml"
#define PIECE 65536u

typedef struct graphbolt {
    gs_part_input *in;
    gs_part_job *job;
    gs_yaml *yaml;
    uint64_t vertices, classes;
    gs_part_file label[3]; /* of the vertices in each split */
} graphbolt;

bool gs_part__graphbolt_looks(const char *path) { return gs_path_has(path, NAME); }

/* -- one file that the metadata names ------------------------------------------------- */

static gs_status missing(const graphbolt *g, gs_yaml_node path, const char *name)
{
    char near[300];

    if (gs_part__near_file(near, sizeof(near), g->in->path, name))
        return gs_part__yaml_wrong(g->yaml, path, "there is no file %s; was %s meant?", name, near);
    return gs_part__yaml_wrong(g->yaml, path, "there is no file %s in %s", name, g->in->path);
}

/* `what` has a format and a path. CSV is read as numbers of `table`; GS_F32 stands for no CSV at all. */
static gs_status open_file(graphbolt *g, gs_part_file *f, gs_yaml_node what, gs_dtype table)
{
    const gs_yaml_node where = gs_part__yaml_get(g->yaml, what, "path");
    const gs_yaml_node how = gs_part__yaml_get(g->yaml, what, "format");
    const char *const name = gs_part__yaml_word(g->yaml, where), *const format = gs_part__yaml_word(g->yaml, how);

    if (name == NULL || *name == '\0')
        return gs_part__yaml_wrong(g->yaml, what, "a path is missing");
    char *const path = gs_path_join(g->in->path, name);
    if (path == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", g->in->path);
    const bool absent = gs_path_is_absent(path);
    if (!absent && format != NULL && strcmp(format, "csv") == 0 && table != GS_F32)
        return gs_part__table_read(f, g->job, path, table); /* which takes the path */
    gs_free(path);
    if (absent)
        return missing(g, where, name);
    if (format == NULL || strcmp(format, "numpy") != 0)
        return gs_part__yaml_wrong(g->yaml, how != 0 ? how : what,
                                   "%s: the format is %s; numpy%s is read: save it with numpy.save()", name,
                                   format != NULL ? format : "not stated", table != GS_F32 ? " or csv" : "");
    return gs_part__file_open(f, g->in->path, name, true);
}

/* -- the parts of the metadata -------------------------------------------------------- */

static gs_status read_edges(graphbolt *g, gs_yaml_node graph)
{
    static const char *const keys[] = {"nodes", "edges", "feature_data", NULL};
    const gs_yaml *const y = g->yaml;
    const gs_yaml_node nodes = gs_part__yaml_get(y, graph, "nodes"), edges = gs_part__yaml_get(y, graph, "edges");
    gs_status st;

    gs_part__yaml_warn_of_keys(y, graph, keys, g->job);
    if (gs_part__yaml_length(y, nodes) > 1 || gs_part__yaml_length(y, edges) > 1)
        return gs_fail(GS_EUNSUPPORTED, "%s/" NAME ": has %llu types of vertices and %llu of edges; a store of this "
                                        "format has one of each: make one of them",
                       g->in->path, (unsigned long long)gs_part__yaml_length(y, nodes),
                       (unsigned long long)gs_part__yaml_length(y, edges));
    if (gs_part__yaml_length(y, edges) == 0)
        return gs_part__yaml_wrong(y, graph, "graph: edges: no file of edges is listed");
    if ((st = gs_part__yaml_number(y, &g->vertices, gs_part__yaml_get(y, gs_part__yaml_item(y, nodes, 0), "num"),
                                   "the number of vertices (num)")) != GS_OK)
        return st;
    if (gs_part__yaml_get(y, graph, "feature_data") != 0)
        gs_part__warn(g->job, "%s/" NAME ": line %llu: feature_data of the graph is not read", g->in->path,
                      (unsigned long long)gs_part__yaml_line(y, gs_part__yaml_get(y, graph, "feature_data")));
    g->in->two_rows = true;
    return open_file(g, &g->in->edge, gs_part__yaml_item(y, edges, 0), GS_I64);
}

static bool is_word(const graphbolt *g, gs_yaml_node n, const char *key, const char *word)
{
    const char *const text = gs_part__yaml_word(g->yaml, gs_part__yaml_get(g->yaml, n, key));
    return text != NULL && strcmp(text, word) == 0;
}

/* Features of the vertices: those called feat, or the first; all others are named. */
static gs_status read_features(graphbolt *g, gs_yaml_node list)
{
    const gs_yaml *const y = g->yaml;
    gs_yaml_node chosen = 0;

    for (uint64_t k = 0; k < gs_part__yaml_length(y, list); k++) {
        const gs_yaml_node one = gs_part__yaml_item(y, list, k);
        if (is_word(g, one, "domain", "node") && (chosen == 0 || (is_word(g, one, "name", "feat") &&
                                                                  !is_word(g, chosen, "name", "feat"))))
            chosen = one;
    }
    for (uint64_t k = 0; k < gs_part__yaml_length(y, list); k++) {
        const gs_yaml_node one = gs_part__yaml_item(y, list, k);
        const char *const name = gs_part__yaml_word(y, gs_part__yaml_get(y, one, "name"));
        if (one != chosen)
            gs_part__warn(g->job, "%s/" NAME ": line %llu: the features '%.64s' are not read", g->in->path,
                          (unsigned long long)gs_part__yaml_line(y, one), name != NULL ? name : "without a name");
    }
    const gs_status st = chosen != 0 ? open_file(g, &g->in->feature, chosen, GS_F32) : GS_OK;
    if (st == GS_OK && g->in->feature.npy.fd >= 0)
        g->in->feature.npy.dims = 2; /* [N] is one column */
    return st;
}

/* One split: a list of vertices, and one of their labels. */
static gs_status read_set(graphbolt *g, int split, gs_yaml_node list)
{
    const gs_yaml *const y = g->yaml;
    const gs_yaml_node data = gs_part__yaml_get(y, gs_part__yaml_item(y, list, 0), "data");

    if (gs_part__yaml_length(y, list) > 1)
        return gs_part__yaml_wrong(y, list, "sets of several types; a store of this format has one");
    for (uint64_t k = 0; k < gs_part__yaml_length(y, data); k++) {
        const gs_yaml_node one = gs_part__yaml_item(y, data, k);
        const char *const name = gs_part__yaml_word(y, gs_part__yaml_get(y, one, "name"));
        const bool seeds = name == NULL ? k == 0 : strcmp(name, "seeds") == 0 || strcmp(name, "seed_nodes") == 0;
        const bool labels = name == NULL ? k == 1 : strcmp(name, "labels") == 0;
        gs_part_file *const f = seeds ? &g->in->split[split] : &g->label[split];
        if (!seeds && !labels)
            return gs_part__yaml_wrong(y, one, "a set of '%s'; sets of vertices are read: seeds, and their labels",
                                       name != NULL ? name : "more than two arrays");
        if (f->path != NULL)
            return gs_part__yaml_wrong(y, one, "a second array of %s in this set", seeds ? "seeds" : "labels");
        const gs_status st = open_file(g, f, one, GS_F32);
        if (st != GS_OK)
            return st;
    }
    if (g->label[split].path != NULL && g->in->split[split].path == NULL)
        return gs_part__yaml_wrong(y, data, "labels without seeds, the vertices that have them");
    return GS_OK;
}

static gs_status read_tasks(graphbolt *g, gs_yaml_node tasks)
{
    static const char *const keys[] = {"name", "num_classes", "train_set", "validation_set", "test_set", NULL};
    static const char *const sets[] = {"train_set", "validation_set", "test_set"};
    const gs_yaml_node task = gs_part__yaml_item(g->yaml, tasks, 0);
    gs_status st = gs_part__yaml_number(g->yaml, &g->classes, gs_part__yaml_get(g->yaml, task, "num_classes"),
                                        "num_classes");

    gs_part__yaml_warn_of_keys(g->yaml, task, keys, g->job);
    if (gs_part__yaml_length(g->yaml, tasks) > 1)
        gs_part__warn(g->job, "%s/" NAME ": line %llu: the first task is read, the others are not", g->in->path,
                      (unsigned long long)gs_part__yaml_line(g->yaml, tasks));
    for (int i = 0; i < 3 && st == GS_OK; i++)
        if (gs_part__yaml_get(g->yaml, task, sets[i]) != 0)
            st = read_set(g, i, gs_part__yaml_get(g->yaml, task, sets[i]));
    return st;
}

/* -- labels of splits to labels of all vertices ---------------------------------------- */

typedef struct scatter {
    double *all; /* [vertices] NaN for none: labels may be numbers of any type */
    void *raw;
    int64_t *id;
    double *value;
} scatter;

static gs_status scatter_set(graphbolt *g, scatter *s, int split)
{
    const gs_part_file *const ids = &g->in->split[split], *const labels = &g->label[split];
    const uint64_t n = ids->npy.shape[0];
    gs_status st;

    if (labels->npy.shape[0] != n || labels->npy.shape[1] != 1)
        return gs_fail(GS_EFORMAT, "%s: is [%llu, %llu]; labels are [%llu], one for each vertex of %s", labels->path,
                       (unsigned long long)labels->npy.shape[0], (unsigned long long)labels->npy.shape[1],
                       (unsigned long long)n, ids->path);
    if (!gs_part__is_integer(ids->npy.dtype) || ids->npy.truth || ids->npy.shape[1] != 1)
        return gs_fail(GS_EFORMAT, "%s: is %s [%llu, %llu]; seeds are vertices, integers [K]", ids->path,
                       gs_dtype_name(ids->npy.dtype), (unsigned long long)n, (unsigned long long)ids->npy.shape[1]);
    for (uint64_t at = 0; at < n; at += PIECE) {
        const uint64_t count = GS_MIN(PIECE, n - at);
        if ((st = gs_part__job_result(g->job)) != GS_OK ||
            (st = gs_npy_read_rows(&ids->npy, s->raw, at, count, ids->path)) != GS_OK)
            return st;
        gs_part__to_i64(s->id, s->raw, ids->npy.dtype, count);
        if ((st = gs_npy_read_rows(&labels->npy, s->raw, at, count, labels->path)) != GS_OK)
            return st;
        gs_part__to_f64(s->value, s->raw, labels->npy.dtype, count);
        for (uint64_t i = 0; i < count; i++) {
            if (s->id[i] < 0 || (uint64_t)s->id[i] >= g->in->vertices)
                return gs_fail(GS_EFORMAT, "%s: row %llu: vertex %s is not one of the %llu vertices (ids start at 0)",
                               ids->path, (unsigned long long)(at + i), GS_PART_I64(s->id[i]),
                               (unsigned long long)g->in->vertices);
            s->all[s->id[i]] = s->value[i];
        }
    }
    return GS_OK;
}

static gs_status scatter_labels(graphbolt *g)
{
    const uint64_t n = g->in->vertices;
    scatter s = {.all = gs_malloc_array(n, 8), .raw = gs_malloc_array(PIECE, 8), .id = gs_malloc_array(PIECE, 8),
                 .value = gs_malloc_array(PIECE, 8)};
    gs_made m = {0};
    gs_status st = GS_OK;

    if (s.all == NULL || s.raw == NULL || s.id == NULL || s.value == NULL)
        st = gs_fail(GS_ENOMEM, "%s: no memory for the labels", g->in->path);
    else
        memset(s.all, 0xff, n * 8); /* NaN */
    for (int i = 0; i < 3 && st == GS_OK; i++)
        if (g->label[i].path != NULL)
            st = scatter_set(g, &s, i);
    if (st == GS_OK && (st = gs_part__made_begin(&m, &g->in->label, g->job, gs_path_join(g->in->path, "labels"))) ==
                           GS_OK &&
        (st = gs_part__made_put(&m, s.all, n * 8)) == GS_OK)
        st = gs_part__made_end(&m, GS_F64, n, 1);
    gs_part__made_free(&m);
    gs_free(s.all);
    gs_free(s.raw);
    gs_free(s.id);
    gs_free(s.value);
    return st;
}

/* -- the whole --------------------------------------------------------------------------- */

static gs_status read_metadata(graphbolt *g)
{
    static const char *const keys[] = {"dataset_name", "graph", "feature_data", "tasks", NULL};
    const gs_yaml_node root = gs_part__yaml_root(g->yaml), graph = gs_part__yaml_get(g->yaml, root, "graph");
    const gs_yaml_node made = gs_part__yaml_get(g->yaml, root, "graph_topology");
    gs_status st;

    if (made != 0)
        return gs_part__yaml_wrong(g->yaml, made,
                                   "is of a folder that GraphBolt has preprocessed; give the one with its source, "
                                   "whose " NAME " has 'graph'");
    gs_part__yaml_warn_of_keys(g->yaml, root, keys, g->job);
    if (graph == 0)
        return gs_part__yaml_wrong(g->yaml, root, "'graph' is missing, with nodes and edges");
    if ((st = read_edges(g, graph)) != GS_OK ||
        (st = read_features(g, gs_part__yaml_get(g->yaml, root, "feature_data"))) != GS_OK ||
        (st = read_tasks(g, gs_part__yaml_get(g->yaml, root, "tasks"))) != GS_OK)
        return st;
    if (g->classes > INT32_MAX)
        return gs_fail(GS_EFORMAT, "%s/" NAME ": num_classes is %llu; at most %d are supported", g->in->path,
                       (unsigned long long)g->classes, INT32_MAX);
    if ((st = gs_part__files_check(g->in, g->vertices, 0)) != GS_OK)
        return st;
    for (int i = 0; i < 3; i++) {
        if (g->label[i].path == NULL)
            continue;
        g->in->classes = (uint32_t)g->classes;
        /* Where not even the tables of all vertices fit, the run ends soon, in a line that says what would do. */
        return g->in->vertices > g->job->memory / 20 ? GS_OK : scatter_labels(g);
    }
    return GS_OK;
}

gs_status gs_part__graphbolt_read(gs_part_input *in, gs_part_job *job)
{
    graphbolt g = {.in = in, .job = job, .label = {{.npy.fd = -1}, {.npy.fd = -1}, {.npy.fd = -1}}};
    char *const path = gs_path_join(in->path, NAME);
    gs_status st;

    if (path == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", in->path);
    if ((st = gs_part__yaml_open(&g.yaml, path)) == GS_OK)
        st = read_metadata(&g);
    for (int i = 0; i < 3; i++)
        gs_part__file_close(&g.label[i]);
    gs_part__yaml_close(g.yaml);
    gs_free(path);
    return st;
}
