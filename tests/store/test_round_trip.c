/* What the writer was given is what a reader finds. */
#include "tiny_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "store/chunk_view.h"
#include "store/edge_scan.h"

static uint32_t element(const void *p, uint32_t width, uint64_t k)
{
    uint32_t v = 0;
    memcpy(&v, (const char *)p + k * width, width);
    return v;
}

/* Each edge of the chunk is found once in `left` and struck out. */
static void strike_out(const gs_chunk_view *v, const gs_chunk_table *t, gs_direction d, uint32_t i,
                       uint32_t j, const tiny_graph *g, bool *left)
{
    for (uint32_t r = 0; r < v->targets; r++)
        for (uint32_t k = v->start[r]; k < v->start[r + 1]; k++) {
            const uint32_t target = (uint32_t)gs_interval_first(t, i) + element(v->target, v->index_bytes, r);
            const uint32_t operand = (uint32_t)gs_interval_first(t, j) + element(v->index, v->index_bytes, k);
            const tiny_edge want = {.source = d == GS_BY_DEST ? operand : target,
                                    .dest = d == GS_BY_DEST ? target : operand,
                                    .type = v->type ? element(v->type, v->type_bytes, k) : 0,
                                    .weight = v->weight ? v->weight[k] : 0};
            uint32_t e = 0;
            while (e < g->edges && (!left[e] || memcmp(&g->edge[e], &want, sizeof(want)) != 0))
                e++;
            if (e == g->edges)
                fail_msg("edge %u -> %u of chunk (%u, %u) was not put in", want.source, want.dest, i, j);
            left[e] = false;
        }
}

static void check_edges(const gs_store *s, const tiny_graph *g, gs_direction d)
{
    const gs_chunk_table *t = gs_store_chunks(s);
    char *path = gs_store_edges_path(s, d);
    uint64_t file_bytes;
    char *bytes = NULL;
    bool *left = malloc(g->edges + 1);

    memset(left, true, g->edges + 1);
    gs_assert_ok(gs_file_read_all(&bytes, &file_bytes, path, GS_GIB));
    char *aligned = gs_alloc_pages(file_bytes + 1);
    memcpy(aligned, bytes, file_bytes);
    for (uint32_t i = 0; i < t->parts; i++)
        for (uint32_t j = 0; j < t->parts; j++) {
            const gs_chunk *c = gs_chunk_at(t, d, i, j);
            const gs_chunk_expect expect = {gs_interval_rows(t, i),
                                            gs_interval_rows(t, j),
                                            gs_index_bytes(t),
                                            c->edges,
                                            c->targets,
                                            c->operands,
                                            c->largest};
            gs_chunk_view v;
            assert_true(c->offset + c->length <= file_bytes);
            if (c->length == 0)
                continue;
            gs_assert_ok(gs_chunk_view_make(&v, aligned + c->offset, c->length, &expect, true));
            strike_out(&v, t, d, i, j, g, left);
        }
    for (uint32_t e = 0; e < g->edges; e++)
        if (left[e])
            fail_msg("edge %u -> %u is in no chunk", g->edge[e].source, g->edge[e].dest);
    gs_free_pages(aligned, file_bytes + 1);
    gs_free(bytes);
    gs_free(path);
    free(left);
}

static void check_array(const gs_store *s, gs_array_id id, gs_dtype dtype, uint32_t width, const void *want)
{
    const gs_array_info *a = gs_store_array(s, id);
    char *path = gs_store_array_path(s, id), *data = NULL;
    uint64_t bytes;
    assert_true(a->present);
    assert_int_equal(a->dtype, dtype);
    assert_int_equal(a->width, width);
    assert_int_equal(a->row_bytes, width * gs_dtype_bytes(dtype));
    assert_int_equal(a->bytes, gs_store_get_info(s)->vertices * a->row_bytes);
    gs_assert_ok(gs_file_read_all(&data, &bytes, path, GS_GIB));
    assert_int_equal(bytes, gs_align_up(a->bytes, 4096));
    assert_memory_equal(data, want, a->bytes);
    gs_free(data);
    gs_free(path);
}

static uint64_t folder_bytes(const gs_store *s)
{
    static const char *const names[] = {"manifest.json",    "chunks.bin",     "sums.bin",   "edges.dest.bin",
                                        "edges.source.bin", "features.bin",   "labels.bin", "split.bin",
                                        "in_degree.bin",    "out_degree.bin", "loops.bin",  "input_id.bin"};
    uint64_t sum = 0;
    for (size_t k = 0; k < GS_ARRAY_LEN(names); k++) {
        struct stat sb;
        if (stat(gs_test_path(gs_store_dir(s), "%s", names[k]), &sb) == 0)
            sum += (uint64_t)sb.st_size;
    }
    return sum;
}

static void check_info(const gs_store *s, const tiny_graph *g)
{
    const gs_store_info *i = gs_store_get_info(s);
    uint64_t splits[4] = {0};
    for (uint32_t v = 0; g->splits && v < g->vertices; v++)
        splits[tiny_split(v)]++;
    assert_int_equal(i->vertices, g->vertices);
    assert_int_equal(i->edges, g->edges);
    assert_int_equal(i->parts, g->parts);
    assert_int_equal(i->interval_rows, g->interval_rows);
    assert_int_equal(i->features, g->features);
    assert_int_equal(i->feature_type, g->feature_type);
    assert_int_equal(i->classes, g->classes);
    assert_int_equal(i->train, splits[1]);
    assert_int_equal(i->valid, splits[2]);
    assert_int_equal(i->test, splits[3]);
    assert_int_equal(i->symmetric, g->symmetric);
    assert_int_equal(i->weights, g->weights);
    assert_int_equal(i->edge_types, g->edge_types);
    assert_string_equal(i->method, "natural");
    assert_true(i->seed == 0xFEDCBA9876543210ull);
    assert_int_equal(i->feature_id != 0, g->features != 0);
    assert_int_equal(i->total_bytes, folder_bytes(s));
}

static void round_trip(const char *dir, const tiny_graph *g)
{
    gs_store *s = NULL;
    const uint64_t live = gs_alloc_live_bytes();
    tiny_write(dir, g);
    gs_assert_ok(gs_store_open(&s, dir));
    assert_string_equal(gs_store_dir(s), dir);
    assert_true(gs_store_table_bytes(s) >=
                (uint64_t)g->parts * g->parts * sizeof(gs_chunk) * (g->shared ? 1 : 2));
    assert_true(gs_store_table_bytes(s) <= gs_alloc_live_bytes() - live);
    check_info(s, g);
    check_edges(s, g, GS_BY_DEST);
    check_edges(s, g, GS_BY_SOURCE);
    gs_assert_ok(gs_store_verify(s, 8 * GS_MIB));
    gs_store_close(s);
    assert_int_equal(gs_alloc_live_bytes(), live); /* nothing is kept */
}

static void test_store__plain_graph_round_trips(void **state)
{
    round_trip(*state, &tiny_plain);
}
static void test_store__typed_weighted_graph_round_trips(void **state)
{
    round_trip(*state, &tiny_rich);
}

static void test_store__arrays_are_where_the_paths_say(void **state)
{
    const tiny_graph *g = &tiny_plain;
    gs_store *s = NULL;
    float features[5 * 3], in[5] = {3, 3, 1, 1, 1}, out[5] = {2, 2, 2, 2, 1}, loops[5] = {0, 1, 0, 0, 0};
    int32_t labels[5] = {0, 1, -1, 0, 1};
    uint8_t splits[5] = {0, 1, 2, 3, 0};
    uint32_t ids[5] = {4, 3, 2, 1, 0};

    for (uint32_t v = 0; v < 5; v++)
        for (uint32_t k = 0; k < 3; k++)
            features[v * 3 + k] = tiny_feature(v, k);
    tiny_write(*state, g);
    gs_assert_ok(gs_store_open(&s, *state));
    check_array(s, GS_ARRAY_FEATURES, GS_F32, 3, features);
    check_array(s, GS_ARRAY_LABELS, GS_I32, 1, labels);
    check_array(s, GS_ARRAY_SPLIT, GS_U8, 1, splits);
    check_array(s, GS_ARRAY_IN_DEGREE, GS_F32, 1, in);
    check_array(s, GS_ARRAY_OUT_DEGREE, GS_F32, 1, out);
    check_array(s, GS_ARRAY_LOOPS, GS_F32, 1, loops);
    check_array(s, GS_ARRAY_INPUT_ID, GS_U32, 1, ids);
    assert_int_equal(gs_store_get_info(s)->self_loops, 1);
    assert_int_equal(gs_store_get_info(s)->max_in_degree, 3);
    assert_int_equal(gs_store_get_info(s)->max_out_degree, 2);
    gs_store_close(s);
}

static void test_store__symmetric_graph_shares_one_file(void **state)
{
    const char *dir = *state;
    gs_store *s = NULL;
    round_trip(dir, &tiny_symmetric);
    gs_assert_ok(gs_store_open(&s, dir));
    const gs_chunk_table *t = gs_store_chunks(s);
    char *by_dest = gs_store_edges_path(s, GS_BY_DEST), *by_source = gs_store_edges_path(s, GS_BY_SOURCE);
    assert_true(t->shared);
    assert_ptr_equal(t->chunk[0], t->chunk[1]);
    assert_string_equal(by_dest, by_source);
    assert_false(gs_path_exists(gs_test_path(dir, "edges.source.bin")));
    gs_free(by_dest);
    gs_free(by_source);
    gs_store_close(s);
}

/* Symmetric, but with a file for each direction: allowed, and checked. */
static void test_store__symmetric_graph_may_have_two_files(void **state)
{
    tiny_graph g = tiny_symmetric;
    g.shared = false;
    round_trip(*state, &g);
}

static void test_store__wide_intervals_have_4_byte_indices(void **state)
{
    static const tiny_edge edges[] = {
        {0, 69999, 0, 0}, {69999, 0, 0, 0}, {65536, 65536, 0, 0}, {70123, 3, 0, 0}};
    const tiny_graph g = {.vertices = 70124,
                          .parts = 2,
                          .interval_rows = 70000,
                          .edge = edges,
                          .edges = 4,
                          .features = 1,
                          .feature_type = GS_F32};
    round_trip(*state, &g); /* features fill several checksum blocks too */
}

static void test_store__bare_graph_without_edges_round_trips(void **state)
{
    const tiny_graph g = {.vertices = 1,
                          .parts = 1,
                          .interval_rows = 1,
                          .edge = (const tiny_edge[1]){{0}},
                          .edges = 0,
                          .feature_type = GS_F32};
    round_trip(*state, &g);
}

static void test_store__same_contents_give_same_bytes(void **state)
{
    const char *dir = *state;
    size_t bytes[2];
    tiny_write(gs_test_path(dir, "a"), &tiny_rich);
    tiny_write(gs_test_path(dir, "b"), &tiny_rich);
    unsigned char *a = tiny_read(gs_test_path(dir, "a"), "manifest.json", &bytes[0]);
    unsigned char *b = tiny_read(gs_test_path(dir, "b"), "manifest.json", &bytes[1]);
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(a, b, bytes[0]); /* it holds the checksums of everything else */
    free(a);
    free(b);
}

static void test_store__missing_store_is_not_found(void **state)
{
    gs_store *s = NULL;
    gs_assert_fails(gs_store_open(&s, *state), GS_ENOTFOUND, "no store here");
    gs_assert_fails(gs_store_open(&s, gs_test_path(*state, "nowhere")), GS_ENOTFOUND, "nowhere");
    assert_null(s);
}

static void test_verify__memory_bound_is_kept_or_refused(void **state)
{
    gs_store *s = NULL;
    tiny_write(*state, &tiny_plain);
    gs_assert_ok(gs_store_open(&s, *state));
    gs_assert_fails(gs_store_verify(s, 4096), GS_EBUDGET, "at least");
    for (uint64_t memory = GS_SUM_BYTES + 4096; memory <= 64 * GS_MIB; memory *= 4) {
        const uint64_t live = gs_alloc_live_bytes();
        gs_assert_ok(gs_store_verify(s, memory));
        assert_int_equal(gs_alloc_live_bytes(), live);
    }
    gs_store_close(s);
}

/* Every allocation in turn fails: an error with a text, nothing leaked. */
static void test_store__out_of_memory_is_an_error(void **state)
{
    const char *dir = *state;
    gs_store *s = NULL, *whole = NULL;
    gs_status st = GS_ENOMEM;
    uint64_t n;

    tiny_write(dir, &tiny_rich);
    gs_assert_ok(gs_store_open(&whole, dir));
    for (n = 1; n < 1000 && st != GS_OK; n++) {
        const uint64_t live = gs_alloc_live_bytes();
        gs_alloc_fail_nth(n);
        st = gs_store_open(&s, dir);
        if (st == GS_OK)
            break;
        assert_int_equal(st, GS_ENOMEM);
        assert_null(s);
        assert_int_equal(gs_alloc_live_bytes(), live);
    }
    assert_in_range(n, 8, 100);
    gs_alloc_fail_nth(0);
    gs_store_close(s);
    st = GS_ENOMEM;
    for (n = 1; n < 1000 && st != GS_OK; n++) {
        const uint64_t live = gs_alloc_live_bytes();
        gs_alloc_fail_nth(n);
        st = gs_store_verify(whole, GS_MIB);
        assert_true(st == GS_OK || st == GS_ENOMEM);
        assert_int_equal(gs_alloc_live_bytes(), live);
    }
    assert_in_range(n, 20, 200);
    gs_alloc_fail_nth(0);
    gs_store_close(whole);
}

/* ---- copies of edges that scans make ---- */

typedef struct seen {
    uint64_t chunks, sum; /* sum: of a number for each edge */
} seen;

static gs_status see(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    seen *const s = context;
    s->chunks++;
    for (uint32_t r = 0; r < v->targets; r++)
        for (uint32_t k = v->start[r]; k < v->start[r + 1]; k++)
            s->sum += ((target * 31ull + element(v->target, v->index_bytes, r)) * 31 + operand) * 31 +
                      element(v->index, v->index_bytes, k) + k * 1000003ull;
    return GS_OK;
}

static seen scan(const gs_store *s, gs_direction d, const uint8_t *wanted, gs_edge_copy *copy)
{
    seen out = {0};
    gs_assert_ok(gs_edge_scan_copied(s, d, GS_MIB, wanted, copy, see, &out));
    return out;
}

static void check_copy(const char *temp, const tiny_graph *g, gs_direction d)
{
    const char *dir = gs_test_path(temp, "copied-%d-%u-%d", (int)d, g->edge_types, g->symmetric);
    uint8_t first[64] = {0}; /* the first chunk that has edges */
    gs_edge_copy copy = {.most = 8};
    gs_store *s;
    seen none = {0};

    tiny_write(dir, g);
    gs_assert_ok(gs_store_open(&s, dir));
    const gs_chunk_table *const t = gs_store_chunks(s);
    uint32_t k = 0;
    while (t->chunk[d][k].edges == 0)
        k++;
    first[k] = 1;
    const seen all = scan(s, d, NULL, NULL), one = scan(s, d, first, NULL);
    assert_true(all.chunks > one.chunks && one.chunks == 1);
    seen little = {0}; /* by the smallest window, of a file that is to leave the page cache */
    gs_assert_ok(gs_edge_scan(s, d, gs_edge_scan_least(s), NULL, see, &little));
    assert_memory_equal(&little, &all, sizeof(all));
    seen now = scan(s, d, NULL, &copy); /* it has no room */
    assert_null(copy.bytes);
    assert_memory_equal(&now, &all, sizeof(all));
    copy.most = GS_MIB;
    now = scan(s, d, first, &copy); /* it has this one now, */
    assert_non_null(copy.bytes);
    assert_memory_equal(&now, &one, sizeof(one));
    now = scan(s, d, NULL, &copy); /* and all */
    assert_memory_equal(&now, &all, sizeof(all));
    char *const path = gs_store_edges_path(s, d); /* from now on nothing is read */
    assert_int_equal(truncate(path, 0), 0);
    gs_free(path);
    assert_int_not_equal(gs_edge_scan_copied(s, d, GS_MIB, NULL, NULL, see, &none), GS_OK);
    now = scan(s, d, NULL, &copy);
    assert_memory_equal(&now, &all, sizeof(all));
    now = scan(s, d, first, &copy);
    assert_memory_equal(&now, &one, sizeof(one));
    gs_free(copy.bytes);
    gs_store_close(s);
}

static void test_scan__a_copy_has_the_edges_of_the_file(void **state)
{
    check_copy(*state, &tiny_plain, GS_BY_DEST);
    check_copy(*state, &tiny_plain, GS_BY_SOURCE);
    check_copy(*state, &tiny_symmetric, GS_BY_SOURCE); /* the same file as of the other direction */
    check_copy(*state, &tiny_rich, GS_BY_SOURCE);
}

/* ---- reads past the page cache, as the linker wraps them ---- */

static struct {
    bool refused;           /* those past the cache fail */
    uint32_t past, through; /* reads of either kind */
} reads;

gs_status __real_gs_pread_exact(int fd, void *dst, uint64_t bytes, uint64_t at, const char *path);
gs_status __wrap_gs_pread_exact(int fd, void *dst, uint64_t bytes, uint64_t at, const char *path);
gs_status __wrap_gs_pread_exact(int fd, void *dst, uint64_t bytes, uint64_t at, const char *path)
{
    const bool past = (fcntl(fd, F_GETFL) & O_DIRECT) != 0;

    ++*(past ? &reads.past : &reads.through);
    if (past && reads.refused)
        return gs_fail_errno(EINVAL, "%s: read refused", path);
    return __real_gs_pread_exact(fd, dst, bytes, at, path);
}

/* The smallest window takes a read for each chunk. */
static void test_scan__reads_that_are_refused_past_the_cache_go_through_it(void **state)
{
    const char *dir = gs_test_path(*state, "refused");
    gs_store *s;
    seen all = {0}, past = {0}, through = {0};

    tiny_write(dir, &tiny_plain);
    gs_assert_ok(gs_store_open(&s, dir));
    const uint64_t least = gs_edge_scan_least(s);
    gs_assert_ok(gs_edge_scan(s, GS_BY_DEST, GS_MIB, NULL, see, &all)); /* it may stay in the cache */
    memset(&reads, 0, sizeof(reads));
    gs_assert_ok(gs_edge_scan(s, GS_BY_DEST, least, NULL, see, &past));
    assert_memory_equal(&past, &all, sizeof(all));
    const uint32_t needed = reads.past + reads.through;
    const bool direct = reads.past > 0; /* this file system takes the flag */
    assert_true(needed > 1 && (!direct || reads.through == 0));
    memset(&reads, 0, sizeof(reads));
    reads.refused = true;
    gs_assert_ok(gs_edge_scan(s, GS_BY_DEST, least, NULL, see, &through));
    reads.refused = false;
    assert_memory_equal(&through, &all, sizeof(all));
    assert_int_equal(reads.through, needed);
    assert_int_equal(reads.past, direct); /* asked once */
    gs_store_close(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, gs_test_temp_setup, gs_test_temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_store__plain_graph_round_trips),
        TEST(test_store__typed_weighted_graph_round_trips),
        TEST(test_store__arrays_are_where_the_paths_say),
        TEST(test_store__symmetric_graph_shares_one_file),
        TEST(test_store__symmetric_graph_may_have_two_files),
        TEST(test_store__wide_intervals_have_4_byte_indices),
        TEST(test_store__bare_graph_without_edges_round_trips),
        TEST(test_store__same_contents_give_same_bytes),
        TEST(test_store__missing_store_is_not_found),
        TEST(test_verify__memory_bound_is_kept_or_refused),
        TEST(test_store__out_of_memory_is_an_error),
        TEST(test_scan__a_copy_has_the_edges_of_the_file),
        TEST(test_scan__reads_that_are_refused_past_the_cache_go_through_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
