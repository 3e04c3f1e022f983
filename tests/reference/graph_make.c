/* graph_make.c - small graphs with the shapes that break things.
 *
 *   rough      directed; self loops (some twice), duplicate edges, vertices with
 *              no edge, no in-edge or no out-edge, vertices without a label
 *   tiny       the same on 20 vertices: fewer rows than parts and lanes
 *   short      the same on 160 vertices, for what is slow
 *   hub        undirected star and ring: one vertex has every other as neighbour
 *   symmetric  undirected at random, no loops, no duplicates
 *   typed      `rough` with three types of edges (a few vertices see one alone) and weights
 *   many       `rough` with 60 types of edges, more than a vertex has edges; half of them no edge has, one a third of
 *              the edges
 *   csr        `rough` with its features as CSR arrays, empty rows among them
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "reference.h"

typedef struct shape {
    const char *kind;
    size_t vertices, edges, width, classes;
} shape;

static const shape shapes[] = {
    {"rough", 613, 4096, 23, 5}, {"tiny", 20, 70, 3, 3},     {"hub", 300, 0, 17, 4},
    {"symmetric", 500, 1800, 32, 6}, {"csr", 401, 2000, 37, 4}, {"typed", 421, 2600, 23, 4},
    {"many", 421, 2600, 23, 4},  {"short", 160, 640, 23, 5},
};

typedef struct maker {
    shape is;
    ref_random random;
    size_t edges;
    int64_t (*edge)[2];
} maker;

static void add(maker *m, size_t u, size_t v)
{
    m->edge[m->edges][0] = (int64_t)u;
    m->edge[m->edges++][1] = (int64_t)v;
}

/* Towards small numbers, so that degrees differ. */
static size_t skewed(maker *m, size_t n)
{
    const double x = ref_random_uniform(&m->random);
    return (size_t)(x * x * (double)n);
}

/* The last tenth of the vertices has no edge at all, the tenth before no
 * out-edge, the one before that no in-edge. */
static void rough_edges(maker *m)
{
    const size_t n = m->is.vertices, tenth = n / 10;
    while (m->edges < m->is.edges) {
        const size_t u = skewed(m, n - 2 * tenth);
        size_t v = ref_random_below(&m->random, n - tenth);
        if (v >= n - 3 * tenth && v < n - 2 * tenth)
            continue;
        if (ref_random_below(&m->random, 40) == 0)
            v = u;
        const size_t copies = ref_random_below(&m->random, 25) == 0 ? 3 : 1;
        for (size_t i = 0; i < copies; i++)
            add(m, u, v);
    }
}

static void hub_edges(maker *m)
{
    const size_t n = m->is.vertices, hub = n / 3;
    for (size_t v = 0; v < n; v++) {
        const size_t next = (v + 1) % n;
        if (v != hub && next != hub) {
            add(m, v, next);
            add(m, next, v);
        }
        if (v != hub) {
            add(m, v, hub);
            add(m, hub, v);
        }
    }
}

static void symmetric_edges(maker *m)
{
    const size_t n = m->is.vertices;
    uint8_t *seen = ref_alloc(n * n, 1);
    while (m->edges < m->is.edges) {
        const size_t u = ref_random_below(&m->random, n), v = skewed(m, n);
        if (u == v || seen[u * n + v])
            continue;
        seen[u * n + v] = seen[v * n + u] = 1;
        add(m, u, v);
        add(m, v, u);
    }
    free(seen);
}

static void write_ints(const char *dir, const char *name, const int64_t *data, size_t n)
{
    char *path = ref_path(dir, name);
    ref_npy_write(path, "i8", n, 0, data);
    free(path);
}

/* Of each vertex: no sum of weights near 0 or below, which has no square root; so some lose their signs. The first have
 * weights of 0 alone. */
static void keep_degrees(const maker *m, float *weight)
{
    double *sum = ref_alloc(m->is.vertices, sizeof(double));
    for (size_t v = 0; v < m->is.vertices; v++)
        sum[v] = 0;
    for (size_t i = 0; i < m->edges; i++)
        sum[m->edge[i][1]] += (double)weight[i];
    for (size_t i = 0; i < m->edges; i++) {
        if (sum[m->edge[i][1]] < 1.0)
            weight[i] = 0.25f + fabsf(weight[i]);
        if (m->edge[i][1] < 6)
            weight[i] = 0;
    }
    free(sum);
}

/* Copies of an edge differ in type and weight. Low-numbered targets see type 0 alone; weights lie around 1, some
 * below 0. */
static void write_edge_data(maker *m, const char *dir, bool many)
{
    uint8_t *type = ref_alloc(m->edges, 1);
    float *weight = ref_alloc(m->edges, sizeof(float));
    for (size_t i = 0; i < m->edges; i++) {
        const size_t any = ref_random_below(&m->random, 3);
        type[i] = m->edge[i][1] < (int64_t)m->is.vertices / 8 ? 0 : (uint8_t)any;
        if (many) /* the last type occurs, so that their number can be seen */
            type[i] = (uint8_t)(i == 0 ? 59 : i % 3 == 0 ? 7 : ref_random_below(&m->random, 60) / 4 * 4 + i % 2);
        weight[i] = (float)(1.0 + 0.5 * ref_random_normal(&m->random));
    }
    keep_degrees(m, weight);
    char *path = ref_path(dir, "edge_types.npy");
    ref_npy_write(path, "u1", m->edges, 0, type);
    free(path);
    path = ref_path(dir, "edge_weights.npy");
    ref_npy_write(path, "f4", m->edges, 0, weight);
    free(path);
    free(type);
    free(weight);
}

/* Labels, -1 for every ninth vertex; of the labelled a third each trains,
 * validates, tests, every seventh does none of it. */
static void write_labels(maker *m, const char *dir, int64_t *label)
{
    const size_t n = m->is.vertices;
    static const char *const name[3] = {"train_idx.npy", "valid_idx.npy", "test_idx.npy"};
    int64_t *list = ref_alloc(3 * n, sizeof(int64_t));
    size_t count[3] = {0, 0, 0};
    for (size_t v = 0; v < n; v++) {
        label[v] = v < m->is.classes ? (int64_t)v : (int64_t)ref_random_below(&m->random, m->is.classes);
        if (v >= m->is.classes && v % 9 == 4)
            label[v] = -1;
        if (label[v] < 0 || v % 7 == 6)
            continue;
        const size_t s = ref_random_below(&m->random, 3);
        list[s * n + count[s]++] = (int64_t)v;
    }
    write_ints(dir, "labels.npy", label, n);
    for (size_t s = 0; s < 3; s++)
        write_ints(dir, name[s], list + s * n, count[s]);
    free(list);
}

static void write_dense(maker *m, const char *dir, const float *feature)
{
    char *path = ref_path(dir, "features.npy");
    ref_npy_write(path, "f4", m->is.vertices, m->is.width, feature);
    free(path);
}

/* Every fourth element of a row, and nothing of every fifth row. The last
 * column occurs, so that the width can be seen. */
static void write_sparse(maker *m, const char *dir, const float *feature)
{
    const size_t n = m->is.vertices, w = m->is.width;
    int64_t *start = ref_alloc(n + 1, sizeof(int64_t));
    int32_t *column = ref_alloc(n * w, sizeof(int32_t));
    float *value = ref_alloc(n * w, sizeof(float));
    size_t k = 0;
    for (size_t v = 0; v < n; v++) {
        for (size_t c = v % 4; c < w && v % 5 != 2; c += 4) {
            column[k] = (int32_t)c;
            value[k++] = feature[v * w + c];
        }
        start[v + 1] = (int64_t)k;
    }
    write_ints(dir, "features_indptr.npy", start, n + 1);
    char *path = ref_path(dir, "features_indices.npy");
    ref_npy_write(path, "i4", k, 0, column);
    free(path);
    path = ref_path(dir, "features_data.npy");
    ref_npy_write(path, "f4", k, 0, value);
    free(path);
    free(start);
    free(column);
    free(value);
}

static void write_meta(const maker *m, const char *dir)
{
    char *path = ref_path(dir, "meta.json");
    FILE *f = ref_create(path);
    fprintf(f, "{\n \"num_nodes\": %zu,\n \"num_edges\": %zu,\n \"num_features\": %zu,\n \"num_classes\": %zu\n}\n",
            m->is.vertices, m->edges, m->is.width, m->is.classes);
    ref_close(f, path);
    free(path);
}

/* Noise, and a little of the label, so that training has something to find. */
static float *make_features(maker *m, const int64_t *label)
{
    const size_t n = m->is.vertices, w = m->is.width;
    float *feature = ref_alloc(n * w, sizeof(float));
    for (size_t i = 0; i < n * w; i++)
        feature[i] = (float)ref_random_normal(&m->random) + (label[i / w] == (int64_t)(i % w) ? 1.0f : 0.0f);
    return feature;
}

void ref_graph_make(const char *kind, const char *dir, uint64_t seed)
{
    maker m = {.random = ref_random_seed(seed)};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        if (strcmp(shapes[i].kind, kind) == 0)
            m.is = shapes[i];
    if (m.is.kind == NULL)
        ref_die("no graph kind \"%s\"", kind);
    mkdir(dir, 0777);
    m.edge = ref_alloc(m.is.edges + 4 * m.is.vertices + 4, sizeof(*m.edge));
    if (strcmp(kind, "hub") == 0)
        hub_edges(&m);
    else if (strcmp(kind, "symmetric") == 0)
        symmetric_edges(&m);
    else
        rough_edges(&m);
    int64_t *label = ref_alloc(m.is.vertices, sizeof(int64_t));
    write_labels(&m, dir, label);
    float *feature = make_features(&m, label);
    if (strcmp(kind, "csr") == 0)
        write_sparse(&m, dir, feature);
    else
        write_dense(&m, dir, feature);
    if (strcmp(kind, "typed") == 0 || strcmp(kind, "many") == 0)
        write_edge_data(&m, dir, kind[0] == 'm');
    char *path = ref_path(dir, "edges.npy");
    ref_npy_write(path, "i8", m.edges, 2, m.edge);
    free(path);
    write_meta(&m, dir);
    free(m.edge);
    free(label);
    free(feature);
}
