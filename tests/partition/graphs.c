#include "graphs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/philox.h"
#include "base/size.h"
#include "store/chunk_view.h"

void write_npy(const char *dir, const char *name, gs_dtype dtype, const void *data, uint64_t rows, uint64_t cols)
{
    gs_outfile o = GS_OUTFILE_NONE;
    uint64_t offset;
    const char *path = gs_test_path(dir, "%s", name);
    gs_assert_ok(gs_npy_create(&o, &offset, path, dtype, rows, cols));
    gs_assert_ok(gs_outfile_write(&o, data, rows * (cols ? cols : 1) * gs_dtype_bytes(dtype), offset));
    gs_assert_ok(gs_outfile_finish(&o));
}

void write_edges(const char *dir, const edge_list *list, bool types, bool weights)
{
    int64_t *pairs = malloc((list->count + 1) * 16);
    uint8_t *type = malloc(list->count + 1);
    float *weight = malloc((list->count + 1) * 4);
    for (size_t i = 0; i < list->count; i++) {
        pairs[2 * i] = list->at[i].u;
        pairs[2 * i + 1] = list->at[i].v;
        type[i] = (uint8_t)list->at[i].type;
        weight[i] = list->at[i].weight;
    }
    write_npy(dir, "edges.npy", GS_I64, pairs, list->count, 2);
    if (types)
        write_npy(dir, "edge_types.npy", GS_U8, type, list->count, 0);
    if (weights)
        write_npy(dir, "edge_weights.npy", GS_F32, weight, list->count, 0);
    free(pairs);
    free(type);
    free(weight);
}

float feature_at(uint64_t v, uint64_t c)
{
    return c % 3 == 0 ? (float)((v * 31 + c) % 97) : ((float)(v % 1000) + 0.1f) / ((float)c + 3.0f);
}

void write_features(const char *dir, uint64_t n, uint64_t width)
{
    float *rows = malloc(n * width * 4);
    for (uint64_t v = 0; v < n; v++)
        for (uint64_t c = 0; c < width; c++)
            rows[v * width + c] = feature_at(v, c);
    write_npy(dir, "features.npy", GS_F32, rows, n, width);
    free(rows);
}

edge_list random_graph(uint32_t n, size_t edges, uint64_t seed, bool types, bool weights)
{
    edge_list list = {malloc((edges + 1) * sizeof(edge)), edges};
    uint32_t key[2];
    gs_random_key(key, seed, 77);
    for (size_t i = 0; i < edges; i++) {
        const uint32_t counter[4] = {(uint32_t)i, 0, 0, 0};
        uint32_t r[4];
        gs_philox4x32(r, counter, key);
        edge *e = &list.at[i];
        *e = (edge){r[0] % n, r[1] % n, types ? r[2] % 5 : 0, weights ? (float)(r[3] % 1000) / 7 : 0};
        if (i % 11 == 3) /* a hub */
            e->v = n / 2;
        if (i % 17 == 5) /* a self loop */
            e->v = e->u;
        if (i % 13 == 7 && i > 0) { /* a duplicate pair, perhaps of another type and weight */
            e->u = list.at[i - 1].u;
            e->v = list.at[i - 1].v;
        }
    }
    return list;
}

void edges_free(edge_list *list)
{
    free(list->at);
    list->at = NULL;
}

static int by_edge(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    if (x->u != y->u)
        return x->u < y->u ? -1 : 1;
    if (x->v != y->v)
        return x->v < y->v ? -1 : 1;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    return (x->weight > y->weight) - (x->weight < y->weight);
}

void sort_edges(edge_list *list) { qsort(list->at, list->count, sizeof(edge), by_edge); }

void add_reverses(edge_list *list)
{
    const size_t count = list->count;
    list->at = realloc(list->at, 2 * (count + 1) * sizeof(edge));
    for (size_t i = 0; i < count; i++) {
        bool lacks = true;
        for (size_t k = 0; k < count && lacks; k++)
            lacks = !(list->at[k].u == list->at[i].v && list->at[k].v == list->at[i].u);
        if (lacks) {
            list->at[list->count] = list->at[i];
            list->at[list->count].u = list->at[i].v;
            list->at[list->count++].v = list->at[i].u;
        }
    }
}

gs_partition_options test_options(const char *method, uint32_t parts, uint64_t memory)
{
    return (gs_partition_options){.size = sizeof(gs_partition_options), .method = method, .parts = parts,
                                  .memory = memory + TEST_PROCESS_BYTES, .feature_type = "f32", .seed = 5};
}

static uint32_t index_at(const void *section, uint64_t i, uint32_t bytes)
{
    return bytes == 2 ? ((const uint16_t *)section)[i] : ((const uint32_t *)section)[i];
}

static uint32_t type_at(const gs_chunk_view *v, uint64_t i)
{
    if (v->type_bytes == 0)
        return 0;
    return v->type_bytes == 1 ? ((const uint8_t *)v->type)[i] : ((const uint16_t *)v->type)[i];
}

/* Appends a chunk's edges; checks ascending operands within type within target. */
static void decode_chunk(edge_list *list, const gs_chunk_view *v, const uint32_t *ids, uint64_t first_target,
                         uint64_t first_operand, gs_direction d)
{
    for (uint32_t t = 0; t < v->targets; t++) {
        const uint32_t target = ids[first_target + index_at(v->target, t, v->index_bytes)];
        uint64_t before = 0;
        for (uint32_t i = v->start[t]; i < v->start[t + 1]; i++) {
            const uint32_t local = index_at(v->index, i, v->index_bytes), type = type_at(v, i);
            const uint64_t place = (uint64_t)type << 32 | local;
            assert_true(i == v->start[t] || place >= before);
            before = place;
            const uint32_t operand = ids[first_operand + local];
            list->at[list->count++] = (edge){d == GS_BY_DEST ? operand : target, d == GS_BY_DEST ? target : operand,
                                             type, v->weight ? v->weight[i] : 0};
        }
    }
}

edge_list decode(const gs_store *s, gs_direction d)
{
    const gs_chunk_table *t = gs_store_chunks(s);
    edge_list list = {malloc((gs_store_get_info(s)->edges + 1) * sizeof(edge)), 0};
    uint32_t *ids = read_array(s, GS_ARRAY_INPUT_ID);
    char *path = gs_store_edges_path(s, d), *data;
    uint64_t bytes, end = 0;

    gs_assert_ok(gs_file_read_all(&data, &bytes, path, UINT32_MAX));
    for (uint32_t i = 0; i < t->parts; i++) {
        for (uint32_t k = 0; k < t->parts; k++) {
            const gs_chunk *c = gs_chunk_at(t, d, i, k);
            if (c->edges == 0)
                continue;
            assert_int_equal(c->offset, end); /* file order, no gaps */
            end += c->length;
            const gs_chunk_expect expect = {gs_interval_rows(t, i), gs_interval_rows(t, k), gs_index_bytes(t),
                                            c->edges, c->targets, c->operands, c->largest};
            void *copy = gs_alloc_pages(c->length);
            memcpy(copy, data + c->offset, c->length);
            gs_chunk_view v;
            gs_assert_ok(gs_chunk_view_make(&v, copy, c->length, &expect, true));
            decode_chunk(&list, &v, ids, gs_interval_first(t, i), gs_interval_first(t, k), d);
            gs_free_pages(copy, c->length);
        }
    }
    assert_int_equal(end, bytes);
    gs_free(data);
    gs_free(path);
    gs_free(ids);
    sort_edges(&list);
    return list;
}

void assert_same_edges(const edge_list *got, const edge_list *want)
{
    assert_int_equal(got->count, want->count);
    for (size_t i = 0; i < got->count; i++) {
        const edge *g = &got->at[i], *w = &want->at[i];
        if (by_edge(g, w) != 0)
            fail_msg("edge %zu: got %u -> %u type %u weight %g, want %u -> %u type %u weight %g", i, g->u, g->v,
                     g->type, (double)g->weight, w->u, w->v, w->type, (double)w->weight);
    }
}

void *read_array(const gs_store *s, gs_array_id id)
{
    char *path = gs_store_array_path(s, id), *data;
    uint64_t bytes;
    gs_assert_ok(gs_file_read_all(&data, &bytes, path, UINT32_MAX));
    assert_int_equal(bytes, gs_align_up(gs_store_array(s, id)->bytes, GS_BLOCK_BYTES));
    for (uint64_t i = gs_store_array(s, id)->bytes; i < bytes; i++)
        assert_int_equal(data[i], 0);
    gs_free(path);
    return data;
}

static void check_degrees(const gs_store *s, const edge_list *want, uint64_t n)
{
    float *in = read_array(s, GS_ARRAY_IN_DEGREE), *out = read_array(s, GS_ARRAY_OUT_DEGREE), *loops = NULL;
    uint32_t *ids = read_array(s, GS_ARRAY_INPUT_ID);
    double *count = calloc(3 * n, sizeof(double));

    for (size_t i = 0; i < want->count; i++) {
        count[want->at[i].v]++;
        count[n + want->at[i].u]++;
        count[2 * n + want->at[i].u] += want->at[i].u == want->at[i].v;
    }
    if (gs_store_array(s, GS_ARRAY_LOOPS)->present)
        loops = read_array(s, GS_ARRAY_LOOPS);
    for (uint64_t p = 0; p < n; p++) {
        assert_true(in[p] == (float)count[ids[p]]);
        assert_true(out[p] == (float)count[n + ids[p]]);
        assert_true((loops ? loops[p] : 0) == (float)count[2 * n + ids[p]]);
    }
    free(count);
    gs_free(in);
    gs_free(out);
    gs_free(loops);
    gs_free(ids);
}

gs_store *partition_and_check(const char *input, const char *dir, const gs_partition_options *o, const edge_list *want,
                              uint64_t vertices, gs_partition_report *report)
{
    gs_partition_report own;
    gs_store *s = NULL;

    gs_assert_ok(gs_partition(input, dir, o, report ? report : &own));
    gs_assert_ok(gs_store_open(&s, dir));
    gs_assert_ok(gs_store_verify(s, 64 * GS_MIB));
    assert_int_equal(gs_store_get_info(s)->vertices, vertices);
    assert_int_equal(gs_store_get_info(s)->edges, want->count);
    for (int d = 0; d < 2; d++) {
        if (d == 1 && gs_store_chunks(s)->shared)
            break;
        edge_list got = decode(s, (gs_direction)d);
        assert_same_edges(&got, want);
        edges_free(&got);
    }
    check_degrees(s, want, vertices);
    return s;
}

void assert_gone(const char *dir)
{
    if (gs_path_exists(dir)) {
        const int rc = rmdir(dir); /* works for an empty folder only */
        if (rc != 0)
            fail_msg("%s was left with files in it", dir);
    }
}

cpu_set_t use_cpus(bool one)
{
    cpu_set_t before, only;
    int first = 0;

    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&only);
    CPU_SET(first, &only);
    if (one)
        assert_int_equal(sched_setaffinity(0, sizeof(only), &only), 0);
    return before;
}

void assert_same_store(const char *a, const char *b)
{
    DIR *const d = opendir(a);
    int files = 0;

    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char *one = NULL, *other = NULL, *first = gs_path_join(a, e->d_name), *second = gs_path_join(b, e->d_name);
        uint64_t n = 0, m = 0;
        if (e->d_name[0] != '.') {
            gs_assert_ok(gs_file_read_all(&one, &n, first, GS_GIB));
            gs_assert_ok(gs_file_read_all(&other, &m, second, GS_GIB));
            if (n != m || memcmp(one, other, n) != 0)
                fail_msg("%s and %s differ", first, second);
            files++;
        }
        gs_free(one);
        gs_free(other);
        gs_free(first);
        gs_free(second);
    }
    closedir(d);
    assert_true(files >= 7);
}
