/* Label propagation: lists as asked for, capacities that hold, who may move, intervals exactly full. */
#include "graphs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/integers.h"
#include "partition/intervals.h"

/* A graph as a matrix of weights, and who puts its pairs. */
typedef struct matrix {
    uint32_t n;
    uint32_t *weight; /* [n][n], symmetric, diagonal 0 */
    uint32_t times;   /* each pair is put so often */
} matrix;

static matrix matrix_make(uint32_t n) { return (matrix){n, calloc((size_t)n * n, 4), 1}; }

static void link_pair(matrix *m, uint32_t u, uint32_t v, uint32_t weight)
{
    m->weight[(size_t)u * m->n + v] = m->weight[(size_t)v * m->n + u] = weight;
}

static matrix random_matrix(uint32_t n, uint32_t edges, uint64_t seed)
{
    matrix m = matrix_make(n);
    for (uint64_t i = 0; i < edges; i++) {
        const uint64_t r = gs_part__mix(seed << 32 | i), u = r % n, v = (r >> 32) % n;
        if (u != v)
            link_pair(&m, (uint32_t)u, (uint32_t)v, 1 + (uint32_t)(r >> 20 & 7));
    }
    return m;
}

static gs_status put_matrix(void *context, gs_lp_sink *sink)
{
    const matrix *m = context;
    gs_status st = GS_OK;
    for (uint32_t u = m->n; u-- > 0;)
        for (uint32_t v = 0; v < m->n; v++)
            for (uint32_t k = 0; k < m->times && st == GS_OK; k++)
                if (m->weight[(size_t)u * m->n + v] != 0)
                    st = gs_lp__put(sink, 0, u, v, m->weight[(size_t)u * m->n + v]);
    return st;
}

typedef struct fixture {
    gs_partition_options opt;
    gs_part_job job;
    matrix m;
    gs_lp_graph g;
} fixture;

static void fixture_open(fixture *b, const char *dir, matrix m, bool weighted, uint64_t buffers, uint32_t threads)
{
    b->opt = test_options("lp", 2, 64 * GS_MIB);
    gs_part__job_init(&b->job, &b->opt, dir);
    b->job.dir = dir;
    b->job.buffers = buffers;
    b->job.threads = threads;
    b->m = m;
    b->g = (gs_lp_graph){.vertices = m.n, .weighted = weighted, .fd = -1};
    gs_assert_ok(gs_lp__graph_make(&b->g, &b->job, put_matrix, &b->m));
}

static void fixture_close(fixture *b)
{
    gs_lp__graph_free(&b->g);
    gs_part__job_free(&b->job);
}

/* -- lists ------------------------------------------------------------------------ */

static gs_status compare_list(void *context, const gs_lp_vertex *v)
{
    const fixture *b = context;
    const uint32_t entry = b->g.weighted ? 2 : 1;
    uint32_t k = 0;
    for (uint32_t u = 0; u < b->m.n; u++) {
        const uint32_t weight = b->m.weight[(size_t)v->id * b->m.n + u];
        if (weight == 0)
            continue;
        assert_true(k < v->degree);
        assert_int_equal(v->list[k * entry], u);
        if (b->g.weighted)
            assert_int_equal(v->list[k * entry + 1], weight * b->m.times);
        k++;
    }
    assert_int_equal(v->degree, k);
    return GS_OK;
}

static void test_lists__are_sorted_and_equal_pairs_are_one(void **state)
{
    for (int weighted = 0; weighted < 2; weighted++) {
        for (int small = 0; small < 2; small++) {
            fixture b;
            matrix m = random_matrix(400, 9000, 1);
            m.times = 3;
            /* the small bound cuts ranges: 4096 pairs at once of about 54,000 */
            fixture_open(&b, *state, m, weighted, small ? 256 * GS_KIB : 16 * GS_MIB, 1);
            gs_assert_ok(gs_lp__each(&b.g, &b.job, 0, 1, compare_list, &b));
            fixture_close(&b);
            free(m.weight);
        }
    }
}

typedef struct counts {
    uint32_t *degree;
    bool *has; /* [n][n] */
    uint32_t n;
} counts;

static gs_status count_list(void *context, const gs_lp_vertex *v)
{
    const counts *c = context;
    c->degree[v->id] = v->degree;
    for (uint32_t k = 0; k < v->degree; k++)
        c->has[(size_t)v->id * c->n + v->list[k]] = true;
    return GS_OK;
}

/* A hub keeps a share of its edges, the same at both ends; others keep all. */
static void test_lists__a_hub_is_thinned_at_both_ends(void **state)
{
    enum { N = 3000 };
    counts c = {calloc(N, 4), calloc((size_t)N * N, 1), N};
    matrix m = matrix_make(N);
    fixture b;
    for (uint32_t v = 1; v < N; v++) {
        link_pair(&m, 0, v, 1);
        if (v > 1)
            link_pair(&m, v, v - 1, 1);
    }
    fixture_open(&b, *state, m, false, 256 * GS_KIB, 1); /* lists above 1024 are thinned */
    gs_assert_ok(gs_lp__each(&b.g, &b.job, 0, 1, count_list, &c));
    assert_in_range(c.degree[0], 900, 1150);
    for (uint32_t v = 1; v < N; v++) {
        assert_int_equal(c.has[v], c.has[(size_t)v * N]);
        assert_int_equal(c.degree[v], (v > 1) + (v + 1 < N) + c.has[v]);
    }
    fixture_close(&b);
    free(m.weight);
    free(c.degree);
    free(c.has);
}

/* -- moves --------------------------------------------------------------------------- */

/* Three vertices want label 0, which has room for two. Two of them would next like label 1 (as does B, which
 * follows them), one label 2, and that one has the smallest id: the two go. */
static void test_moves__the_larger_group_with_one_second_choice_goes(void **state)
{
    enum { Z, X, Y, A, B, C, COUNT };
    uint32_t of[COUNT] = {[Z] = 3, [X] = 4, [Y] = 5, [A] = 0, [B] = 1, [C] = 2}, size[6] = {1, 1, 1, 1, 1, 1};
    gs_lp_labels l = {.of = of, .size = size, .count = 6, .most = 3};
    matrix m = matrix_make(COUNT);
    fixture b;

    for (uint32_t v = Z; v <= Y; v++)
        link_pair(&m, v, A, 9);
    link_pair(&m, X, B, 4);
    link_pair(&m, Y, B, 4);
    link_pair(&m, Z, C, 5);
    fixture_open(&b, *state, m, true, GS_MIB, 2);
    const uint32_t want[COUNT] = {[Z] = 3, [X] = 0, [Y] = 0};
    gs_assert_ok(gs_lp__propagate(&l, &b.g, &b.job, 1));
    for (uint32_t v = Z; v <= Y; v++)
        assert_int_equal(of[v], want[v]);
    fixture_close(&b);
    free(m.weight);
}

static void check_sizes(const gs_lp_labels *l, const gs_lp_graph *g)
{
    uint64_t *size = calloc(l->count, 8);
    for (uint64_t v = 0; v < g->vertices; v++)
        size[l->of[v]] += gs_lp_weight(g, v);
    for (uint32_t i = 0; i < l->count; i++) {
        assert_int_equal(size[i], l->size[i]);
        assert_true(size[i] <= GS_MAX(gs_lp__capacity(l, i), 1));
    }
    free(size);
}

static void test_moves__capacities_hold_and_threads_do_not_matter(void **state)
{
    enum { N = 900, MOST = 12 };
    uint32_t first[N];
    for (uint32_t threads = 1; threads <= 5; threads += 2) {
        uint32_t of[N], size[N], labels = 0;
        gs_lp_labels l = {.of = of, .size = size, .count = N, .most = MOST};
        matrix m = random_matrix(N, 6000, 2);
        fixture b;
        fixture_open(&b, *state, m, true, 2 * GS_MIB, threads);
        for (uint32_t v = 0; v < N; v++) {
            of[v] = v;
            size[v] = 1;
        }
        gs_assert_ok(gs_lp__propagate(&l, &b.g, &b.job, 8));
        check_sizes(&l, &b.g);
        for (uint32_t i = 0; i < N; i++)
            labels += size[i] != 0;
        assert_true(labels < N / 2); /* something happened */
        assert_true(b.g.blocks >= 5);
        if (threads == 1)
            memcpy(first, of, sizeof(of));
        assert_memory_equal(first, of, sizeof(of));
        fixture_close(&b);
        free(m.weight);
    }
}

/* -- contraction ----------------------------------------------------------------------- */

static void test_contract__adds_up_what_runs_between_labels(void **state)
{
    enum { N = 200, LABELS = 7 };
    uint32_t of[N], size[LABELS + 2] = {0};
    gs_lp_labels l = {.of = of, .size = size, .count = LABELS + 2}; /* labels 3 and 8 are not in use */
    matrix m = random_matrix(N, 2500, 3), want = matrix_make(LABELS);
    fixture b, c = {0};

    fixture_open(&b, *state, m, true, GS_MIB, 2);
    for (uint32_t v = 0; v < N; v++) {
        of[v] = v % LABELS + (v % LABELS >= 3);
        size[of[v]]++;
        for (uint32_t u = 0; u < N; u++)
            if (u % LABELS != v % LABELS)
                want.weight[v % LABELS * LABELS + u % LABELS] += m.weight[(size_t)v * N + u];
    }
    want.times = 1;
    c.m = want;
    gs_assert_ok(gs_lp__contract(&c.g, &l, &b.g, &b.job));
    assert_int_equal(l.count, LABELS);
    assert_int_equal(c.g.vertices, LABELS);
    for (uint32_t v = 0; v < N; v++)
        assert_int_equal(of[v], v % LABELS);
    for (uint32_t i = 0; i < LABELS; i++)
        assert_int_equal(c.g.weight[i], N / LABELS + (i < N % LABELS));
    gs_assert_ok(gs_lp__each(&c.g, &b.job, 0, 1, compare_list, &c));
    gs_lp__graph_free(&c.g);
    fixture_close(&b);
    free(m.weight);
    free(want.weight);
}

/* -- exact intervals ---------------------------------------------------------------------- */

static void test_exact__who_loses_least_moves(void **state)
{
    enum { N = 8 }; /* label 0 has five of four; vertex 3 has one friend there, vertex 4 two and one elsewhere */
    uint32_t of[N] = {0, 0, 0, 0, 0, 1, 1, 1}, size[2] = {5, 3};
    const uint32_t want[N] = {0, 0, 0, 0, 1, 1, 1, 1};
    const gs_part_grid grid = gs_part__grid_make(N, 2);
    gs_lp_labels l = {.of = of, .size = size, .count = 2, .grid = &grid};
    matrix m = matrix_make(N);
    fixture b;

    link_pair(&m, 0, 1, 1);
    link_pair(&m, 1, 2, 1);
    link_pair(&m, 0, 2, 1);
    link_pair(&m, 3, 0, 1);
    link_pair(&m, 3, 1, 1);
    link_pair(&m, 4, 0, 1);
    link_pair(&m, 4, 5, 1);
    fixture_open(&b, *state, m, false, GS_MIB, 2);
    gs_assert_ok(gs_lp__make_exact(&l, &b.g, &b.job));
    assert_memory_equal(of, want, sizeof(of));
    assert_int_equal(size[0], 4);
    fixture_close(&b);
    free(m.weight);
}

/* All in one label, most of them with no edge at all: every interval is filled all the same. */
static void test_exact__fills_every_interval(void **state)
{
    enum { N = 103, PARTS = 9 };
    uint32_t of[N] = {0}, size[PARTS] = {N};
    const gs_part_grid grid = gs_part__grid_make(N, PARTS);
    gs_lp_labels l = {.of = of, .size = size, .count = grid.parts, .grid = &grid};
    matrix m = matrix_make(N);
    fixture b;

    link_pair(&m, 5, 50, 1);
    fixture_open(&b, *state, m, false, GS_MIB, 1);
    gs_assert_ok(gs_lp__make_exact(&l, &b.g, &b.job));
    for (uint32_t i = 0; i < grid.parts; i++)
        assert_int_equal(size[i], gs_part__grid_capacity(&grid, i));
    check_sizes(&l, &b.g);
    fixture_close(&b);
    free(m.weight);
}

/* -- as a whole ------------------------------------------------------------------------------ */

static uint64_t sources(const gs_store *s)
{
    const gs_chunk_table *t = gs_store_chunks(s);
    uint64_t sum = 0;
    for (uint32_t c = 0; c < t->parts * t->parts; c++)
        sum += t->chunk[GS_BY_DEST][c].operands;
    return sum;
}

/* Planted communities: nearly as good as METIS, less than half of what random order reads. */
static void test_lp__finds_planted_communities(void **state)
{
    static const char *const methods[] = {"lp", "metis", "random"};
    gs_generate_options g = {.size = sizeof(g), .vertices = 20000, .edges = 400000, .classes = 4, .seed = 5};
    char *input = strdup(gs_test_path(*state, "input"));
    uint64_t alpha[3];

    gs_assert_ok(gs_generate("sbm", input, &g));
    for (int k = 0; k < 3; k++) {
        gs_partition_options o = test_options(methods[k], 10, 256 * GS_MIB);
        gs_partition_report r;
        gs_store *s = NULL;
        gs_assert_ok(gs_partition(input, gs_test_path(*state, "s%d", k), &o, &r));
        assert_string_equal(r.method, methods[k]);
        gs_assert_ok(gs_store_open(&s, gs_test_path(*state, "s%d", k)));
        alpha[k] = sources(s);
        gs_store_close(s);
    }
    assert_true((double)alpha[0] <= 1.15 * (double)alpha[1]);
    assert_true((double)alpha[0] <= 0.55 * (double)alpha[2]);
    free(input);
}

/* The least memory that is allowed, a hub that all know, and the same order for any number of processors. */
static void test_lp__memory_and_processors_do_not_matter_to_its_limits(void **state)
{
    enum { N = 30000 };
    edge_list list = {malloc(3 * N * sizeof(edge)), 0};
    uint64_t read[2];

    for (uint32_t v = 1; v < N; v++) {
        list.at[list.count++] = (edge){v, 0, 0, 0};
        list.at[list.count++] = (edge){v, v / 100 * 100 + v * 7 % 100, 0, 0};
    }
    write_edges(*state, &list, false, false);
    sort_edges(&list);
    for (int k = 0; k < 2; k++) {
        gs_partition_options o = test_options("lp", 20, 3 * GS_MIB);
        const cpu_set_t all = use_cpus(k == 1);
        gs_store *s = partition_and_check(*state, gs_test_path(*state, "s%d", k), &o, &list, N, NULL);
        sched_setaffinity(0, sizeof(all), &all);
        read[k] = sources(s);
        gs_store_close(s);
    }
    assert_int_equal(read[0], read[1]);
    edges_free(&list);
}

/* METIS looks through all vertices without edges for each of them where they outnumber the others. */
static void test_lp__components_take_no_square_of_time(void **state)
{
    enum { N = 600000, RING = 1000 };
    edge_list list = {malloc((RING + 1) * sizeof(edge)), 0};
    const clock_t start = clock();

    for (uint32_t v = 0; v < RING; v++)
        list.at[list.count++] = (edge){v, (v + 1) % RING, 0, 0};
    list.at[list.count++] = (edge){N - 1, 0, 0, 0};
    write_edges(*state, &list, false, false);
    for (int k = 0; k < 2; k++) {
        gs_partition_options o = test_options(k == 0 ? "lp" : "metis", 4, 128 * GS_MIB);
        gs_partition_report r;
        gs_assert_ok(gs_partition(*state, gs_test_path(*state, "s%d", k), &o, &r));
        assert_true(r.cut_fraction < 0.02); /* a ring in four parts: some 4 of 1,000 edges, and METIS's slack */
    }
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 8);
    edges_free(&list);
}

/* Small components are bundled, those of 3 or more here are not; lists keep their order. */
static void test_metis_bundles__small_components_become_vertices(void **state)
{
    enum { SMALL = 5000, RING = 600, N = SMALL * 2 + RING };
    static idx_t starts[N + 1], neighbour[2 * N], weight[2 * N];
    gs_metis_graph g = {.vertices = N, .start = starts, .neighbour = neighbour, .edge_weight = weight};
    gs_metis_bundles b;
    idx_t edges = 0, sum = 0;

    (void)state;
    for (idx_t v = 0; v < N; v++) { /* pairs, the ring in the middle of them */
        const bool ring = v >= SMALL && v < SMALL + RING;
        const idx_t pair = v < SMALL ? v ^ 1 : ((v - RING) ^ 1) + RING, at = v - SMALL;
        starts[v] = edges;
        neighbour[edges] = ring ? SMALL + (at + RING - 1) % RING : pair;
        weight[edges++] = v;
        if (ring) {
            neighbour[edges] = SMALL + (at + 1) % RING;
            weight[edges++] = -v;
        }
    }
    starts[N] = edges;
    gs_assert_ok(gs_part__metis_bundle(&b, &g, 16)); /* 10,600 / 16 / 32: at most 20 in a bundle */
    assert_int_equal(b.vertices, RING + SMALL * 2 / 20);
    assert_int_equal(g.vertices, b.vertices);
    for (idx_t v = 0; v < N; v++)
        if (v < SMALL || v >= SMALL + RING)
            assert_in_range(b.of[v], RING, b.vertices - 1);
        else
            assert_int_equal(b.of[v], v - SMALL);
    for (idx_t v = 0; v < b.vertices; v++) {
        assert_int_equal(g.start[v], 2 * GS_MIN(v, RING));
        assert_int_equal(b.weight[v], v < RING ? 1 : 20);
        sum += b.weight[v];
    }
    assert_int_equal(sum, N);
    for (idx_t v = 0; v < RING; v++) {
        assert_int_equal(g.neighbour[2 * v], (v + RING - 1) % RING);
        assert_int_equal(g.neighbour[2 * v + 1], (v + 1) % RING);
        assert_int_equal(g.edge_weight[2 * v], SMALL + v);
        assert_int_equal(g.edge_weight[2 * v + 1], -SMALL - v);
    }
    gs_part__metis_bundles_free(&b);
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_lists__are_sorted_and_equal_pairs_are_one),
        T(test_lists__a_hub_is_thinned_at_both_ends),
        T(test_moves__the_larger_group_with_one_second_choice_goes),
        T(test_moves__capacities_hold_and_threads_do_not_matter),
        T(test_contract__adds_up_what_runs_between_labels),
        T(test_exact__who_loses_least_moves),
        T(test_exact__fills_every_interval),
        T(test_lp__finds_planted_communities),
        T(test_lp__components_take_no_square_of_time),
        T(test_metis_bundles__small_components_become_vertices),
        T(test_lp__memory_and_processors_do_not_matter_to_its_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
