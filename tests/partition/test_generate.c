/* Generated graphs: the shape asked for, the same on any thread count, and
 * with the signal that sbm promises. */
#include "graphs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/philox.h"
#include "base/size.h"
#include "partition/generate.h"

static const char *const files[] = {"edges.npy",     "features.npy", "labels.npy", "train_idx.npy",
                                    "valid_idx.npy", "test_idx.npy", "meta.json"};

/* All of an array; free with free(). */
static void *load(const char *dir, const char *name, gs_dtype dtype, uint64_t rows, uint64_t cols)
{
    gs_npy npy;
    char *path = strdup(gs_test_path(dir, "%s", name));
    gs_assert_ok(gs_npy_open(&npy, path));
    assert_int_equal(npy.dtype, dtype);
    assert_int_equal(npy.shape[0], rows);
    assert_int_equal(npy.shape[1], cols);
    void *data = malloc(npy.data_bytes + 1);
    gs_assert_ok(gs_npy_read_rows(&npy, data, 0, rows, path));
    gs_npy_close(&npy);
    free(path);
    return data;
}

static gs_generate_options options(uint64_t n, uint64_t e, uint32_t f, uint32_t c)
{
    return (gs_generate_options){.size = sizeof(gs_generate_options), .vertices = n, .edges = e, .features = f,
                                 .classes = c, .seed = 3};
}

static void test_generate__rmat_has_the_shape_asked_for(void **state)
{
    enum { N = 3000, E = 40000 };
    const gs_generate_options o = options(N, E, 7, 5);
    uint32_t degree[N] = {0}, most = 0, seen[5] = {0};

    gs_assert_ok(gs_generate("rmat", gs_test_path(*state, "g"), &o));
    char *g = strdup(gs_test_path(*state, "g"));
    int64_t *pairs = load(g, "edges.npy", GS_I64, E, 2), *labels = load(g, "labels.npy", GS_I64, N, 1);
    for (int i = 0; i < E; i++) {
        assert_in_range(pairs[2 * i], 0, N - 1);
        assert_in_range(pairs[2 * i + 1], 0, N - 1);
        assert_true(pairs[2 * i] != pairs[2 * i + 1]);
        degree[pairs[2 * i]]++;
    }
    /* Skewed, and not by id: the first eighth of the ids has about an eighth of the edges. */
    uint64_t first = 0;
    for (int v = 0; v < N; v++) {
        most = GS_MAX(most, degree[v]);
        first += v < N / 8 ? degree[v] : 0;
        assert_in_range(labels[v], 0, 4);
        seen[labels[v]]++;
    }
    assert_true(most > 8 * E / N);
    assert_in_range(first, E / 16, E / 4);
    for (int k = 0; k < 5; k++)
        assert_in_range(seen[k], N / 10, 3 * N / 10);
    free(load(g, "features.npy", GS_F32, N, 7));
    gs_partition_options p = test_options("fennel", 3, 16 * GS_MIB);
    gs_assert_ok(gs_partition(g, gs_test_path(*state, "s"), &p, NULL));
    free(pairs);
    free(labels);
    free(g);
}

/* R-MAT by its definition: at each level a number of 16 bits chooses the quadrant, of probabilities 0.57, 0.19, 0.19
 * and 0.05 rounded to 1/65536; of 320,000 such numbers some lie on each of the bounds. */
static void test_generate__rmat_takes_quadrants_by_their_probabilities(void **state)
{
    enum { N = 1 << 16, E = 20000, LEVELS = 16 };
    static const double to[3] = {0.57, 0.57 + 0.19, 0.57 + 0.19 + 0.19};
    const gs_generate_options o = options(N, E, 0, 2);
    gs_gen g = {.opt = &o, .n = N, .edges = E, .classes = 2, .ids = gs_part__permute_make(N, 3, 1)};
    int64_t *const pairs = malloc(E * sizeof(*pairs) * 2);
    (void)state;

    gs_random_key(g.key, 3, 1);
    gs_gen__rmat_edges(&g, pairs, 7, E);
    for (uint32_t i = 0; i < E; i++) {
        uint64_t ends[2] = {0, 0};
        for (uint32_t attempt = 0; ends[0] == ends[1]; attempt++) {
            ends[0] = ends[1] = 0;
            for (uint32_t level = 0; level < LEVELS; level++) {
                const uint32_t counter[4] = {i + 7, 0, attempt, GS_GEN_EDGE | level / 8};
                uint32_t drawn[4];
                gs_philox4x32(drawn, counter, g.key);
                const long r = drawn[level % 8 / 2] >> 16 * (level % 2) & 0xffff;
                const int quadrant = (r >= lround(65536 * to[0])) + (r >= lround(65536 * to[1])) +
                                     (r >= lround(65536 * to[2]));
                ends[0] = 2 * ends[0] + (uint64_t)quadrant / 2;
                ends[1] = 2 * ends[1] + (uint64_t)quadrant % 2;
            }
        }
        assert_int_equal(pairs[2 * i], gs_part__scramble(&g.ids, ends[0]));
        assert_int_equal(pairs[2 * i + 1], gs_part__scramble(&g.ids, ends[1]));
    }
    free(pairs);
}

static void test_generate__splits_are_disjoint_shares(void **state)
{
    enum { N = 1013 };
    const gs_generate_options o = options(N, 5000, 0, 3);
    const uint64_t want[] = {N / 10, N * 2 / 10 - N / 10, N * 4 / 10 - N * 2 / 10};
    uint8_t seen[N] = {0};

    gs_assert_ok(gs_generate("rmat", gs_test_path(*state, "g"), &o));
    char *g = strdup(gs_test_path(*state, "g"));
    for (int k = 0; k < 3; k++) {
        int64_t *ids = load(g, files[3 + k], GS_I64, want[k], 1);
        for (uint64_t i = 0; i < want[k]; i++) {
            assert_in_range(ids[i], 0, N - 1);
            assert_true(i == 0 || ids[i] > ids[i - 1]);
            assert_int_equal(seen[ids[i]]++, 0);
        }
        free(ids);
    }
    free(g);
}

static void test_generate__same_bytes_for_any_thread_count(void **state)
{
    static const char *const kinds[] = {"rmat", "sbm"};
    for (int k = 0; k < 2; k++) {
        char *dirs[2];
        const gs_generate_options o = options(5000, 300000, 33, 4);
        for (int i = 0; i < 2; i++) {
            dirs[i] = strdup(gs_test_path(*state, "%s-%d", kinds[k], i));
            const cpu_set_t all = use_cpus(i == 0);
            gs_assert_ok(gs_generate(kinds[k], dirs[i], &o));
            sched_setaffinity(0, sizeof(all), &all);
        }
        for (size_t f = 0; f < GS_ARRAY_LEN(files); f++) {
            char *data[2];
            uint64_t bytes[2];
            for (int i = 0; i < 2; i++)
                gs_assert_ok(gs_file_read_all(&data[i], &bytes[i], gs_test_path(dirs[i], "%s", files[f]), UINT32_MAX));
            assert_int_equal(bytes[0], bytes[1]);
            assert_memory_equal(data[0], data[1], bytes[0]);
            gs_free(data[0]);
            gs_free(data[1]);
        }
        free(dirs[0]);
        free(dirs[1]);
    }
}

/* Nearest class mean, the means estimated from the training vertices: what a
 * linear model could do on `rows`. */
static double accuracy(const float *rows, const int64_t *labels, const int64_t *train, uint64_t trained, int n, int f,
                       int classes)
{
    double *mean = calloc((size_t)classes * (size_t)f, sizeof(double));
    int *count = calloc((size_t)classes, sizeof(int)), right = 0;

    for (uint64_t i = 0; i < trained; i++) {
        count[labels[train[i]]]++;
        for (int c = 0; c < f; c++)
            mean[labels[train[i]] * f + c] += (double)rows[train[i] * f + c];
    }
    for (int k = 0; k < classes; k++)
        for (int c = 0; c < f; c++)
            mean[k * f + c] /= count[k] ? count[k] : 1;
    for (int v = 0; v < n; v++) {
        int best = 0;
        double nearest = INFINITY;
        for (int k = 0; k < classes; k++) {
            double d = 0;
            for (int c = 0; c < f; c++) {
                const double x = (double)rows[v * f + c] - mean[k * f + c];
                d += x * x;
            }
            if (d < nearest) {
                nearest = d;
                best = k;
            }
        }
        right += best == labels[v];
    }
    free(mean);
    free(count);
    return (double)right / n;
}

/* Rows averaged over in-neighbours and self, as a convolution without weights. */
static float *average(const float *rows, const int64_t *pairs, int edges, int n, int f)
{
    float *out = malloc((size_t)n * (size_t)f * 4), *degree = malloc((size_t)n * 4);
    memcpy(out, rows, (size_t)n * (size_t)f * 4);
    for (int v = 0; v < n; v++)
        degree[v] = 1;
    for (int i = 0; i < edges; i++) {
        degree[pairs[2 * i + 1]]++;
        for (int c = 0; c < f; c++)
            out[pairs[2 * i + 1] * f + c] += rows[pairs[2 * i] * f + c];
    }
    for (int v = 0; v < n; v++)
        for (int c = 0; c < f; c++)
            out[v * f + c] /= degree[v];
    free(degree);
    return out;
}

static void test_generate__sbm_needs_the_graph(void **state)
{
    enum { N = 8000, E = 128000, F = 16, C = 16 };
    const gs_generate_options o = options(N, E, F, C);

    gs_assert_ok(gs_generate("sbm", gs_test_path(*state, "g"), &o));
    char *g = strdup(gs_test_path(*state, "g"));
    int64_t *pairs = load(g, "edges.npy", GS_I64, E, 2), *labels = load(g, "labels.npy", GS_I64, N, 1),
            *train = load(g, "train_idx.npy", GS_I64, N / 10, 1);
    float *rows = load(g, "features.npy", GS_F32, N, F);
    uint64_t inside = 0;

    for (int i = 0; i < E; i += 2) {
        assert_int_equal(pairs[2 * i], pairs[2 * i + 3]); /* its reverse */
        assert_int_equal(pairs[2 * i + 1], pairs[2 * i + 2]);
        assert_true(pairs[2 * i] != pairs[2 * i + 1]);
        inside += labels[pairs[2 * i]] == labels[pairs[2 * i + 1]];
    }
    assert_in_range(inside, 0.80 * E / 2, 0.89 * E / 2); /* 5 % of the labels are wrong */
    const double alone = accuracy(rows, labels, train, N / 10, N, F, C);
    float *one = average(rows, pairs, E, N, F), *two = average(one, pairs, E, N, F);
    const double with_graph = accuracy(two, labels, train, N / 10, N, F, C);
    print_message("features alone %.3f, averaged twice %.3f\n", alone, with_graph);
    assert_true(alone > 0.35 && alone < 0.62);
    assert_true(with_graph > 0.88 && with_graph < 0.98);
    free(one);
    free(two);
    free(rows);
    free(pairs);
    free(labels);
    free(train);
    free(g);
}

static volatile int stop;
static void stop_at_once(void *context, const char *what, double done)
{
    (void)context;
    (void)what;
    (void)done;
    stop = 1;
}

static void test_generate__refuses_and_cleans_up(void **state)
{
    gs_generate_options o = options(100, 1000, 3, 2);
    char *g = strdup(gs_test_path(*state, "g"));

    gs_assert_fails(gs_generate("grid", g, &o), GS_EINVAL, "kind: 'grid' is not known");
    o.edges = 1001;
    gs_assert_fails(gs_generate("sbm", g, &o), GS_EINVAL, ".edges 1001: is odd");
    o.edges = 1000;
    o.vertices = 1;
    gs_assert_fails(gs_generate("rmat", g, &o), GS_EINVAL, ".vertices 1:");
    o.vertices = 100;
    o.classes = 0;
    gs_assert_fails(gs_generate("sbm", g, &o), GS_EINVAL, ".classes 0:");
    o.classes = 2;
    o.stop = &stop;
    o.progress = stop_at_once;
    gs_assert_fails(gs_generate("sbm", g, &o), GS_EINTERRUPTED, "interrupted");
    assert_false(gs_path_exists(g));
    o.stop = NULL;
    gs_assert_ok(gs_generate("sbm", g, &o));
    gs_assert_fails(gs_generate("sbm", g, &o), GS_EEXIST, ".force");
    gs_test_write_file(gs_test_path(g, "mine.txt"), "x", 1);
    o.force = true;
    gs_test_write_file(gs_test_path(g, "edge_weights.npy"), "x", 1);
    gs_assert_fails(gs_generate("rmat", g, &o), GS_EEXIST, "holds edge_weights.npy");
    assert_true(gs_path_exists(gs_test_path(g, "mine.txt")));
    unlink(gs_test_path(g, "edge_weights.npy"));
    o.features = 0;
    gs_assert_ok(gs_generate("rmat", g, &o));
    assert_true(gs_path_exists(gs_test_path(g, "mine.txt"))); /* only its own files are replaced */
    assert_false(gs_path_exists(gs_test_path(g, "features.npy")));
    gs_assert_ok(gs_mkdir(gs_test_path(*state, "mine")));
    gs_test_write_file(gs_test_path(*state, "mine/notes.txt"), "x", 1);
    gs_assert_fails(gs_generate("rmat", gs_test_path(*state, "mine"), &o), GS_EEXIST, "no graph to replace");
    free(g);
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_generate__rmat_has_the_shape_asked_for),
        cmocka_unit_test(test_generate__rmat_takes_quadrants_by_their_probabilities),
        T(test_generate__splits_are_disjoint_shares),
        T(test_generate__same_bytes_for_any_thread_count),
        T(test_generate__sbm_needs_the_graph),
        T(test_generate__refuses_and_cleans_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
