/* Batches for other programs: what a loader hands out is the input's own edges, features and labels, the same from
 * memory and from disk, and the same again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

#include "base/npy.h"
#include "gnnstream.h"

#define VERTICES 9000u
#define EDGES 60000u
#define FEATURES 900u /* 31 MiB of float32 */
#define CLASSES 5u
#define SMALL (27ull << 20) /* of which features do not stay in memory */

static char *folder;
static const char *stores[2]; /* features at rest as float32, and as bfloat16 */

typedef struct raw {
    int64_t *edge;   /* [edges][2], ascending */
    uint64_t edges;
    float *features; /* [VERTICES, FEATURES] */
    int64_t *label;
} raw;
static raw input;
static uint32_t id_of[2][VERTICES]; /* of each row of the stores */

static void *read_npy(const char *name, uint64_t *rows)
{
    const char *const path = gs_test_path(gs_test_path(folder, "graph"), name);
    gs_npy n = {.fd = -1};
    gs_assert_ok(gs_npy_open(&n, path));
    void *const all = malloc(n.data_bytes);
    gs_assert_ok(gs_npy_read_rows(&n, all, 0, n.shape[0], path));
    *rows = n.shape[0];
    gs_npy_close(&n);
    return all;
}

static int by_ends(const void *a, const void *b)
{
    const int64_t *const x = a, *const y = b;
    for (int k = 0; k < 2; k++)
        if (x[k] != y[k])
            return x[k] > y[k] ? 1 : -1;
    return 0;
}

static int make(void **state)
{
    gs_generate_options g;
    gs_partition_options p;
    uint64_t rows;

    (void)state;
    folder = gs_test_temp_dir();
    gs_generate_options_init(&g);
    g.vertices = VERTICES;
    g.edges = EDGES;
    g.features = FEATURES;
    g.classes = CLASSES;
    gs_assert_ok(gs_generate("sbm", gs_test_path(folder, "graph"), &g));
    gs_partition_options_init(&p);
    p.parts = 5;
    p.method = "random";
    gs_assert_ok(gs_partition(gs_test_path(folder, "graph"), stores[0] = gs_test_path(folder, "f32"), &p, NULL));
    p.feature_type = "bf16";
    gs_assert_ok(gs_partition(gs_test_path(folder, "graph"), stores[1] = gs_test_path(folder, "bf16"), &p, NULL));
    for (int k = 0; k < 2; k++) {
        FILE *const ids = fopen(gs_test_path(stores[k], "input_id.bin"), "r");
        assert_true(ids != NULL && fread(id_of[k], sizeof(id_of[k]), 1, ids) == 1);
        fclose(ids);
    }
    input.edge = read_npy("edges.npy", &input.edges);
    input.features = read_npy("features.npy", &rows);
    input.label = read_npy("labels.npy", &rows);
    qsort(input.edge, input.edges, 2 * sizeof(*input.edge), by_ends);
    return 0;
}

static int remove_all(void **state)
{
    (void)state;
    free(input.edge);
    free(input.features);
    free(input.label);
    gs_test_temp_remove(folder);
    return 0;
}

static gs_train_options options(const char *sampler, uint32_t batch_size, const char *fanout)
{
    gs_train_options o;
    gs_train_options_init(&o);
    o.sampler = sampler;
    o.batch_size = batch_size;
    o.fanout = fanout;
    o.threads = 2;
    return o;
}

/* A batch with all of its arrays. */
typedef struct held {
    gs_loader_batch b;
    gs_loader_arrays a;
} held;

static void take(held *h, gs_loader *l)
{
    gs_assert_ok(gs_loader_next(l, &h->b));
    const uint64_t n = h->b.vertices, m = h->b.edges + 1;
    h->a = (gs_loader_arrays){.vertex = malloc(n * sizeof(int64_t)), .source = malloc(m * sizeof(int64_t)),
                              .destination = malloc(m * sizeof(int64_t)),
                              .features = malloc(n * FEATURES * sizeof(float)), .classes = malloc(n * sizeof(int64_t)),
                              .split = malloc(n), .row = malloc(n * sizeof(int64_t))};
    gs_assert_ok(gs_loader_fill(l, &h->a));
}

static void drop(held *h)
{
    free(h->a.vertex);
    free(h->a.source);
    free(h->a.destination);
    free(h->a.features);
    free(h->a.classes);
    free(h->a.split);
    free(h->a.row);
}

static void assert_same(const held *x, const held *y)
{
    assert_memory_equal(&x->b, &y->b, sizeof(x->b));
    assert_memory_equal(x->a.vertex, y->a.vertex, x->b.vertices * sizeof(int64_t));
    assert_memory_equal(x->a.source, y->a.source, x->b.edges * sizeof(int64_t));
    assert_memory_equal(x->a.destination, y->a.destination, x->b.edges * sizeof(int64_t));
    assert_memory_equal(x->a.features, y->a.features, x->b.vertices * FEATURES * sizeof(float));
    assert_memory_equal(x->a.classes, y->a.classes, x->b.vertices * sizeof(int64_t));
}

static bool is_edge(int64_t source, int64_t destination)
{
    const int64_t ends[2] = {source, destination};
    return bsearch(ends, input.edge, input.edges, sizeof(ends), by_ends) != NULL;
}

static uint64_t in_edges(int64_t vertex)
{
    uint64_t n = 0;
    for (uint64_t k = 0; k < input.edges; k++)
        n += input.edge[2 * k + 1] == vertex;
    return n;
}

/* Edges of the batch are edges of the input; of targets with all in-edges they are all. Rows are the input's. */
static void assert_is_of_the_input(const held *h, bool all, float rounding)
{
    uint64_t *const degree = calloc(h->b.vertices, sizeof(*degree));

    for (uint64_t k = 0; k < h->b.edges; k++) {
        assert_true(is_edge(h->a.vertex[h->a.source[k]], h->a.vertex[h->a.destination[k]]));
        degree[h->a.destination[k]]++;
    }
    for (uint32_t i = 0; all && i < h->b.targets && i < 5; i++)
        assert_int_equal(degree[i], in_edges(h->a.vertex[i]));
    for (uint32_t i = 0; i < h->b.vertices; i++) {
        const float *const row = &input.features[(uint64_t)h->a.vertex[i] * FEATURES];
        assert_int_equal(h->a.classes[i], input.label[h->a.vertex[i]]);
        for (uint32_t c = 0; c < FEATURES; c += 7)
            gs_assert_close(h->a.features[(uint64_t)i * FEATURES + c], row[c], rounding);
    }
    free(degree);
}

/* Each training vertex is of one batch, whose features are the input's, in float32 and rounded to 8 bits. */
static void test_loader__an_epoch_has_each_vertex_once(void **state)
{
    (void)state;
    for (int half = 0; half < 2; half++) {
        const gs_train_options o = options("neighbor", 700, "0,3");
        uint8_t *const seen = calloc(VERTICES, 1);
        gs_store_summary summary;
        gs_loader_report r;
        gs_loader *l = NULL;
        uint64_t targets = 0;

        gs_assert_ok(gs_inspect(&summary, stores[half]));
        gs_assert_ok(gs_loader_open(&l, stores[half], &o, GS_SEEDS_TRAIN, NULL, 0));
        gs_assert_ok(gs_loader_inspect(l, &r));
        assert_true(r.features_in_memory && r.edges_in_memory);
        assert_int_equal(r.batches, (summary.train + 699) / 700);
        assert_int_equal(r.label_columns, 1);
        for (uint32_t k = 0; k < r.batches; k++) {
            held h;
            take(&h, l);
            assert_int_equal(h.b.number, k);
            assert_int_equal(h.b.hop_end[0], h.b.targets);
            assert_int_equal(h.b.hop_end[2], h.b.vertices);
            for (uint32_t i = 0; i < h.b.vertices; i++)
                assert_int_equal(id_of[half][h.a.row[i]], h.a.vertex[i]);
            for (uint32_t i = 0; i < h.b.targets; i++, targets++) {
                assert_int_equal(h.a.split[i], 1);
                assert_int_equal(seen[h.a.vertex[i]]++, 0);
            }
            if (k < 2)
                assert_is_of_the_input(&h, true, half ? 1.0f / 128 : 0);
            drop(&h);
        }
        gs_loader_batch none;
        gs_assert_fails(gs_loader_next(l, &none), GS_ENOTFOUND, NULL);
        assert_int_equal(targets, summary.train);
        gs_loader_close(l);
        free(seen);
    }
}

/* From memory, from the disk, on any number of threads, begun anywhere: the same batches. */
static void test_loader__memory_and_disk_give_the_same(void **state)
{
    static const struct {
        const char *sampler, *fanout;
        uint32_t size, mib;
    } cases[] = {{"neighbor", "4,3", 300, 25}, {"neighbor", "8", 64, 29}, {"cluster", NULL, 2, 60},
                 {"saint-walk", NULL, 200, 27}};

    (void)state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        gs_train_options o = options(cases[k].sampler, cases[k].size, cases[k].fanout);
        gs_loader *memory = NULL, *disk = NULL;
        gs_loader_report r;

        gs_assert_ok(gs_loader_open(&memory, stores[0], &o, GS_SEEDS_ALL, NULL, 0));
        o.host_memory = (uint64_t)cases[k].mib << 20;
        o.threads = 1;
        gs_assert_ok(gs_loader_open(&disk, stores[0], &o, GS_SEEDS_ALL, NULL, 0));
        gs_assert_ok(gs_loader_inspect(disk, &r));
        assert_true(r.host_bytes <= o.host_memory);
        assert_true(k == 2 || !r.features_in_memory);
        for (uint32_t epoch = 1; epoch < 3; epoch++) {
            const uint32_t from = epoch == 2 ? r.batches / 2 : 0;
            bool again = false;
            gs_assert_ok(gs_loader_begin(memory, epoch, from));
            gs_assert_ok(gs_loader_begin(disk, epoch, from));
            for (uint32_t i = from; i < r.batches && i < from + 12; i++) {
                held x, y;
                if (i == from + 2 && !again) { /* back to a batch of the group at hand */
                    again = true;
                    i = from;
                    gs_assert_ok(gs_loader_begin(memory, epoch, i));
                    gs_assert_ok(gs_loader_begin(disk, epoch, i));
                }
                if (i % 5 == 3) { /* passed over, and so is what was read for it */
                    gs_assert_ok(gs_loader_next(memory, &x.b));
                    gs_assert_ok(gs_loader_next(disk, &x.b));
                    continue;
                }
                take(&x, memory);
                take(&y, disk);
                assert_same(&x, &y);
                if (i == from)
                    assert_is_of_the_input(&x, false, 0);
                drop(&x);
                drop(&y);
            }
        }
        gs_loader_close(memory);
        gs_loader_close(disk);
    }
}

/* Vertices that are listed, in their own order or none. */
static void test_loader__of_listed_vertices(void **state)
{
    static const int64_t ids[] = {8999, 4, 17, 3000, 5};
    gs_train_options o = options("neighbor", 2, "0");
    gs_loader *l = NULL;
    gs_loader_report r;
    int found = 0;

    (void)state;
    gs_assert_ok(gs_loader_open(&l, stores[0], &o, GS_SEEDS_LISTED, ids, 5));
    gs_assert_ok(gs_loader_inspect(l, &r));
    assert_int_equal(r.batches, 3);
    for (uint32_t k = 0; k < 3; k++) {
        held h;
        take(&h, l);
        for (uint32_t i = 0; i < h.b.targets; i++)
            for (int j = 0; j < 5; j++)
                found += ids[j] == h.a.vertex[i];
        assert_is_of_the_input(&h, true, 0);
        drop(&h);
    }
    assert_int_equal(found, 5);
    gs_loader_close(l);
}

/* Rows by ids, in any order, some twice, more than are picked at a time: the input's, from memory and from the disk. */
static void test_loader__picks_rows_by_ids(void **state)
{
    enum { MANY = 70000, FEW = 700 };
    static int64_t ids[MANY], row[MANY], class[MANY], wrong[] = {3, VERTICES};
    static float features[FEW * FEATURES];
    static uint16_t rest[FEW * FEATURES];
    gs_train_options o = options("none", 1, NULL);

    (void)state;
    for (uint32_t k = 0; k < MANY; k++)
        ids[k] = (int64_t)(k * 7919ull * (k % 3 + 1) % VERTICES);
    for (int half = 0; half < 2; half++)
        for (int disk = 0; disk < 2; disk++) {
            const gs_loader_arrays many = {.row = row, .classes = class};
            const gs_loader_arrays few = {.features = features}, at_rest = {.features_at_rest = rest};
            const gs_loader_arrays no_edges = {.source = row}, both = {.features = features, .features_at_rest = rest};
            gs_loader_report r;
            gs_loader_batch none;
            gs_loader *l = NULL;

            o.host_memory = disk ? 10ull << 20 : 0;
            gs_assert_ok(gs_loader_open_rows(&l, stores[half], &o));
            gs_assert_ok(gs_loader_inspect(l, &r));
            assert_int_equal(r.features_in_memory, !disk);
            assert_true(r.host_bytes <= (disk ? o.host_memory : 50ull << 20));
            assert_int_equal(r.feature_row_bytes, FEATURES * (half ? 2 : 4));
            gs_assert_ok(gs_loader_pick(l, ids, MANY, &many));
            for (uint32_t k = 0; k < MANY; k++) {
                assert_int_equal(id_of[half][row[k]], ids[k]);
                assert_int_equal(class[k], input.label[ids[k]]);
            }
            for (uint32_t from = 0; from < 4 * FEW; from += FEW / 2) { /* some are in the cache by then */
                gs_assert_ok(gs_loader_pick(l, ids + from, FEW, &few));
                for (uint64_t k = 0; k < FEW * FEATURES; k += 11)
                    gs_assert_close(features[k], input.features[ids[from + k / FEATURES] * FEATURES + k % FEATURES],
                                    half ? 1.0f / 128 : 0);
            }
            if (half) {
                gs_assert_ok(gs_loader_pick(l, ids, FEW, &at_rest));
                gs_assert_ok(gs_loader_pick(l, ids, FEW, &few));
                for (uint64_t k = 0; k < FEW * FEATURES; k++) {
                    const uint32_t wide = (uint32_t)rest[k] << 16;
                    assert_memory_equal(&features[k], &wide, sizeof(wide));
                }
            }
            gs_assert_fails(gs_loader_pick(l, wrong, 2, &few), GS_EINVAL, "ids[1] is 9000: the store has vertices 0");
            gs_assert_fails(gs_loader_pick(l, ids, 1, &no_edges), GS_EINVAL, "rows are picked by ids");
            gs_assert_fails(gs_loader_pick(l, ids, 1, &both), GS_EINVAL, "leave one of them NULL");
            gs_assert_fails(gs_loader_next(l, &none), GS_EINVAL, "use gs_loader_pick()");
            gs_loader_close(l);
        }
    o.host_memory = 1 << 20;
    gs_loader *l = NULL;
    gs_assert_fails(gs_loader_open_rows(&l, stores[0], &o), GS_EBUDGET, "a loader of these rows takes at least");
}

/* In-edges of each vertex, in order, as the input has them. */
static void test_loader__in_edges_as_columns(void **state)
{
    int64_t *const start = calloc(VERTICES + 1, sizeof(*start)), *const degree = calloc(VERTICES, sizeof(*degree));
    int64_t *const source = calloc(input.edges, sizeof(*source));

    (void)state;
    gs_assert_ok(gs_read_in_edges(start, NULL, stores[0], GS_ALL_RELATIONS, 0));
    assert_int_equal(start[0], 0);
    assert_int_equal(start[VERTICES], input.edges);
    gs_assert_ok(gs_read_in_edges(start, source, stores[0], GS_ALL_RELATIONS, 1 << 20));
    for (uint64_t k = 0; k < input.edges; k++) { /* ascending by source, so lists grow in their order */
        const int64_t d = input.edge[2 * k + 1];
        assert_int_equal(source[start[d] + degree[d]++], input.edge[2 * k]);
    }
    for (uint32_t d = 0; d < VERTICES; d++)
        assert_int_equal(start[d] + degree[d], start[d + 1]);
    gs_assert_fails(gs_read_in_edges(start, NULL, stores[0], 0, 0), GS_EINVAL, "has 0 types of edges");
    gs_assert_fails(gs_read_in_edges(start, NULL, stores[0], GS_ALL_RELATIONS, 64), GS_EBUDGET, NULL);
    free(start);
    free(degree);
    free(source);
}

#define CROWDED 2560u /* the first of 256 vertices with many in-edges, which are a batch; trials see others */
#define LINE 9216u    /* vertices, each with one in-edge, of the next one */

static const char *make_line(uint32_t crowd)
{
    const char *const text = gs_test_path(folder, "line-%u.txt", crowd);
    const char *const store = gs_test_path(folder, "line-%u", crowd);
    FILE *const out = fopen(text, "w");
    gs_partition_options p;

    assert_non_null(out);
    for (uint32_t v = 0; v < LINE; v++)
        for (uint32_t k = 0; k < (v - CROWDED < 256 ? crowd : 1); k++)
            fprintf(out, "%u %u\n", (v + 1 + k * 300) % LINE, v);
    fclose(out);
    gs_partition_options_init(&p);
    p.parts = 1;
    p.method = "natural";
    p.ids = "keep";
    gs_assert_ok(gs_partition(text, store, &p, NULL));
    return store;
}

/* A batch that is far larger than those that were tried is whole, too; if it is too large, that is said. */
/* Pairs that are edges of the input, every other one; left out, no batch has one of its own. */
static void test_loader__of_pairs(void **state)
{
    enum { PAIRS = 900, SIZE = 256 };
    int64_t end[2][PAIRS], pair[SIZE], source[3 * SIZE], destination[3 * SIZE];
    bool seen[PAIRS] = {false};
    gs_train_options o = options("neighbor", SIZE, "0,3");
    const gs_loader_pairs given = {.source = end[0], .destination = end[1], .pairs = PAIRS,
                                   .wrong = GS_WRONG_PAIRS, .amount = 1.5, .leave_out = true};
    gs_loader *l[2] = {NULL, NULL}; /* from memory, from the disk */
    uint32_t all = 0;

    (void)state;
    for (uint32_t k = 0; k < PAIRS; k++)
        for (int e = 0; e < 2; e++)
            end[e][k] = input.edge[4 * k + e];
    gs_assert_ok(gs_loader_open_pairs(&l[0], stores[0], &o, &given));
    o.host_memory = SMALL;
    o.threads = 1;
    gs_assert_ok(gs_loader_open_pairs(&l[1], stores[0], &o, &given));
    for (uint32_t n = 0; n < 4; n++) {
        held h[2];
        for (int d = 0; d < 2; d++) {
            gs_assert_ok(gs_loader_next(l[d], &h[d].b));
            const gs_loader_arrays a = {.pair = pair, .pair_source = source, .pair_destination = destination};
            gs_assert_ok(gs_loader_fill(l[d], &a));
            gs_assert_ok(gs_loader_begin(l[d], 1, n)); /* once more, for all the rest */
            take(&h[d], l[d]);
        }
        const uint32_t pairs = h[0].b.pairs;
        assert_int_equal(pairs, n < 3 ? SIZE : PAIRS - 3 * SIZE);
        assert_int_equal(h[0].b.wrong, (pairs * 3 + 1) / 2);
        assert_same(&h[0], &h[1]);
        assert_is_of_the_input(&h[0], false, 0);
        for (uint32_t k = 0; k < pairs + h[0].b.wrong; k++) {
            assert_true(source[k] < h[0].b.targets && destination[k] < h[0].b.targets);
            if (k >= pairs)
                continue;
            assert_int_equal(h[0].a.vertex[source[k]], end[0][pair[k]]);
            assert_int_equal(h[0].a.vertex[destination[k]], end[1][pair[k]]);
            assert_false(seen[pair[k]]);
            seen[pair[k]] = true;
            for (uint64_t e = 0; e < h[0].b.edges; e++)
                assert_false(h[0].a.source[e] == source[k] && h[0].a.destination[e] == destination[k]);
        }
        all += pairs;
        drop(&h[0]);
        drop(&h[1]);
    }
    assert_int_equal(all, PAIRS);
    gs_loader_close(l[0]);
    gs_loader_close(l[1]);
}

static void test_loader__a_batch_larger_than_any_that_was_tried(void **state)
{
    (void)state;
    for (uint32_t crowd = 5; crowd <= 20; crowd += 15) {
        const char *const store = make_line(crowd);
        gs_train_options o = options("neighbor", 256, "30");
        gs_loader *l = NULL;
        gs_loader_batch b;

        o.shuffle = "never";
        gs_assert_ok(gs_loader_open(&l, store, &o, GS_SEEDS_ALL, NULL, 0));
        gs_assert_ok(gs_loader_begin(l, 1, CROWDED / 256 - 2));
        for (uint32_t k = 0; k < 5; k++) {
            if (k == 2 && crowd == 20) {
                gs_assert_fails(gs_loader_next(l, &b), GS_EBUDGET, "batch 10 of epoch 1");
                break;
            }
            gs_assert_ok(gs_loader_next(l, &b));
            assert_int_equal(b.number, CROWDED / 256 - 2 + k);
            assert_int_equal(b.edges, 256 * (k == 2 ? crowd : 1));
            assert_true(k == 2 ? b.vertices > 1000 : b.vertices == 257);
        }
        gs_loader_close(l);
    }
}

static void test_loader__refuses_in_words(void **state)
{
    static const int64_t twice[] = {3, 4, 3}, beyond[] = {9000};
    gs_train_options o = options("neighbor", 100, "2");
    gs_loader_arrays a = {.edge_weight = (float[1]){0}};
    gs_loader_batch b;
    gs_loader *l = NULL;

    (void)state;
    gs_assert_fails(gs_loader_open(&l, stores[0], &o, GS_SEEDS_LISTED, twice, 3), GS_EINVAL, NULL);
    assert_non_null(strstr(gs_last_error(), "vertex 3"));
    gs_assert_fails(gs_loader_open(&l, stores[0], &o, GS_SEEDS_LISTED, beyond, 1), GS_EINVAL, NULL);
    assert_non_null(strstr(gs_last_error(), "0 to 8999"));
    o.host_memory = 1 << 20;
    gs_assert_fails(gs_loader_open(&l, stores[0], &o, GS_SEEDS_ALL, NULL, 0), GS_EBUDGET, NULL);
    assert_non_null(strstr(gs_last_error(), "at least"));
    o.host_memory = 0;
    o.shuffle = "adaptive";
    gs_assert_fails(gs_loader_open(&l, stores[0], &o, GS_SEEDS_ALL, NULL, 0), GS_EINVAL, NULL);
    o = options("none", 0, NULL);
    gs_assert_fails(gs_loader_open(&l, stores[0], &o, GS_SEEDS_ALL, NULL, 0), GS_EINVAL, NULL);
    o = options("neighbor", 100, "2");
    gs_assert_fails(gs_loader_open(&l, folder, &o, GS_SEEDS_ALL, NULL, 0), GS_ENOTFOUND, NULL);
    assert_null(l);
    gs_assert_ok(gs_loader_open(&l, stores[0], &o, GS_SEEDS_ALL, NULL, 0));
    gs_assert_fails(gs_loader_fill(l, &a), GS_EINVAL, NULL);
    gs_assert_ok(gs_loader_next(l, &b));
    gs_assert_fails(gs_loader_fill(l, &a), GS_EINVAL, NULL);
    assert_non_null(strstr(gs_last_error(), ".edge_weight"));
    gs_loader_close(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loader__an_epoch_has_each_vertex_once),
        cmocka_unit_test(test_loader__memory_and_disk_give_the_same),
        cmocka_unit_test(test_loader__of_listed_vertices),
        cmocka_unit_test(test_loader__picks_rows_by_ids),
        cmocka_unit_test(test_loader__in_edges_as_columns),
        cmocka_unit_test(test_loader__of_pairs),
        cmocka_unit_test(test_loader__a_batch_larger_than_any_that_was_tried),
        cmocka_unit_test(test_loader__refuses_in_words),
    };
    return cmocka_run_group_tests(tests, make, remove_all);
}
