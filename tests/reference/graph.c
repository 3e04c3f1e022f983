/* graph.c - an input folder as a graph in memory. */
#include <stdlib.h>
#include <string.h>

#include "reference.h"

static ref_npy read_in(const char *dir, const char *name)
{
    char *path = ref_path(dir, name);
    ref_npy a = ref_npy_read(path);
    free(path);
    return a;
}

static bool has(const char *dir, const char *name)
{
    char *path = ref_path(dir, name);
    const bool there = ref_npy_exists(path);
    free(path);
    return there;
}

static void read_edges(ref_graph *g, const char *dir)
{
    ref_npy a = read_in(dir, "edges.npy");
    g->edges = a.shape[0];
    g->source = ref_alloc(g->edges, sizeof(int64_t));
    g->target = ref_alloc(g->edges, sizeof(int64_t));
    for (size_t i = 0; i < g->edges; i++) {
        g->source[i] = ref_npy_int(&a, 2 * i);
        g->target[i] = ref_npy_int(&a, 2 * i + 1);
    }
    free(a.bytes);
}

/* Types and weights of edges, where there are any. */
static void read_edge_data(ref_graph *g, const char *dir)
{
    g->types = 1;
    if (has(dir, "edge_types.npy")) {
        ref_npy a = read_in(dir, "edge_types.npy");
        g->type = ref_alloc(g->edges, sizeof(int64_t));
        for (size_t i = 0; i < g->edges; i++) {
            g->type[i] = ref_npy_int(&a, i);
            if (g->type[i] >= (int64_t)g->types)
                g->types = (size_t)g->type[i] + 1;
        }
        free(a.bytes);
    }
    if (has(dir, "edge_weights.npy")) {
        ref_npy a = read_in(dir, "edge_weights.npy");
        g->weight = ref_alloc(g->edges, sizeof(double));
        for (size_t i = 0; i < g->edges; i++)
            g->weight[i] = ref_npy_real(&a, i);
        free(a.bytes);
    }
}

static void read_labels(ref_graph *g, const char *dir)
{
    ref_npy a = read_in(dir, "labels.npy");
    g->vertices = a.shape[0];
    g->label = ref_alloc(g->vertices, sizeof(int64_t));
    for (size_t v = 0; v < g->vertices; v++) {
        g->label[v] = ref_npy_int(&a, v);
        if (g->label[v] >= (int64_t)g->classes)
            g->classes = (size_t)g->label[v] + 1;
    }
    free(a.bytes);
}

static void read_split(ref_graph *g, const char *dir, const char *name, uint8_t split)
{
    ref_npy a = read_in(dir, name);
    for (size_t i = 0; i < a.shape[0]; i++)
        g->split[ref_npy_int(&a, i)] = split;
    free(a.bytes);
}

static void read_dense(ref_graph *g, const char *dir)
{
    ref_npy a = read_in(dir, "features.npy");
    g->width = a.shape[1];
    g->feature = ref_alloc(g->vertices * g->width, sizeof(double));
    for (size_t i = 0; i < g->vertices * g->width; i++)
        g->feature[i] = ref_npy_real(&a, i);
    free(a.bytes);
}

static void read_sparse(ref_graph *g, const char *dir)
{
    ref_npy start = read_in(dir, "features_indptr.npy"), column = read_in(dir, "features_indices.npy"),
            value = read_in(dir, "features_data.npy");
    for (size_t i = 0; i < column.shape[0]; i++)
        if (ref_npy_int(&column, i) >= (int64_t)g->width)
            g->width = (size_t)ref_npy_int(&column, i) + 1;
    g->feature = ref_alloc(g->vertices * g->width, sizeof(double));
    for (size_t v = 0; v < g->vertices; v++)
        for (int64_t i = ref_npy_int(&start, v); i < ref_npy_int(&start, v + 1); i++)
            g->feature[v * g->width + (size_t)ref_npy_int(&column, (size_t)i)] += ref_npy_real(&value, (size_t)i);
    free(start.bytes);
    free(column.bytes);
    free(value.bytes);
}

ref_graph ref_graph_read(const char *dir)
{
    ref_graph g = {0};
    read_labels(&g, dir);
    read_edges(&g, dir);
    read_edge_data(&g, dir);
    g.split = ref_alloc(g.vertices, 1);
    read_split(&g, dir, "train_idx.npy", REF_TRAIN);
    read_split(&g, dir, "valid_idx.npy", REF_VALID);
    read_split(&g, dir, "test_idx.npy", REF_TEST);
    if (has(dir, "features.npy"))
        read_dense(&g, dir);
    else
        read_sparse(&g, dir);
    return g;
}

void ref_graph_free(ref_graph *g)
{
    free(g->source);
    free(g->target);
    free(g->type);
    free(g->weight);
    free(g->feature);
    free(g->label);
    free(g->split);
    *g = (ref_graph){0};
}

typedef struct pair {
    int64_t source, target;
} pair;

static int by_source(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    return x->target < y->target ? -1 : x->target > y->target;
}

void ref_graph_undirect(ref_graph *g)
{
    if (g->type != NULL || g->weight != NULL)
        ref_die("the reverse of typed or weighted edges is not made here");
    pair *sorted = ref_alloc(g->edges, sizeof(pair));
    for (size_t i = 0; i < g->edges; i++)
        sorted[i] = (pair){g->source[i], g->target[i]};
    qsort(sorted, g->edges, sizeof(pair), by_source);
    g->source = realloc(g->source, 2 * g->edges * sizeof(int64_t));
    g->target = realloc(g->target, 2 * g->edges * sizeof(int64_t));
    if (g->source == NULL || g->target == NULL)
        ref_die("out of memory");
    size_t n = g->edges;
    for (size_t i = 0; i < g->edges; i++) {
        const pair back = {sorted[i].target, sorted[i].source};
        if (bsearch(&back, sorted, g->edges, sizeof(pair), by_source) != NULL)
            continue;
        g->source[n] = back.source;
        g->target[n++] = back.target;
    }
    g->edges = n;
    free(sorted);
}

void ref_graph_round(ref_graph *g, const char *type)
{
    if (strcmp(type, "f32") == 0)
        return;
    const bool bf16 = strcmp(type, "bf16") == 0;
    if (!bf16 && strcmp(type, "f16") != 0)
        ref_die("--feature-type %s: f32, bf16 or f16", type);
    for (size_t i = 0; i < g->vertices * g->width; i++) {
        const float v = (float)g->feature[i];
        g->feature[i] = bf16 ? ref_round_bf16(v) : ref_round_f16(v);
    }
}
