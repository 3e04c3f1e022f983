#include "tiny_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "store/chunk_view.h"
#include "store/store_internal.h"

static const tiny_edge plain_edges[] = {
    {0, 1, 0, 0}, {1, 1, 0, 0}, {2, 1, 0, 0}, {3, 0, 0, 0}, {3, 0, 0, 0},
    {4, 2, 0, 0}, {0, 3, 0, 0}, {2, 4, 0, 0}, {1, 0, 0, 0},
};
const tiny_graph tiny_plain = {.vertices = 5,
                               .parts = 2,
                               .interval_rows = 3,
                               .edge = plain_edges,
                               .edges = GS_ARRAY_LEN(plain_edges),
                               .features = 3,
                               .classes = 3,
                               .feature_type = GS_F32,
                               .splits = true};

static const tiny_edge symmetric_edges[] = {
    {0, 1, 0, 0}, {1, 0, 0, 0}, {0, 4, 0, 0}, {4, 0, 0, 0}, {2, 3, 0, 0},
    {3, 2, 0, 0}, {3, 3, 0, 0}, {3, 4, 0, 0}, {4, 3, 0, 0},
};
const tiny_graph tiny_symmetric = {.vertices = 5,
                                   .parts = 2,
                                   .interval_rows = 3,
                                   .edge = symmetric_edges,
                                   .edges = GS_ARRAY_LEN(symmetric_edges),
                                   .symmetric = true,
                                   .shared = true,
                                   .features = 3,
                                   .classes = 3,
                                   .feature_type = GS_F16,
                                   .splits = true};

static const tiny_edge rich_edges[] = {
    {0, 1, 2, 0.5f}, {1, 1, 0, 1.f}, {2, 1, 1, -2.f}, {3, 0, 1, 4.f},  {3, 0, 0, 0.f},
    {4, 2, 2, 8.f},  {0, 3, 0, 3.f}, {2, 4, 2, 1.f},  {6, 5, 1, .25f}, {5, 6, 0, 7.f},
};
const tiny_graph tiny_rich = {.vertices = 7,
                              .parts = 3,
                              .interval_rows = 3,
                              .edge = rich_edges,
                              .edges = GS_ARRAY_LEN(rich_edges),
                              .weights = true,
                              .edge_types = 3,
                              .features = 2,
                              .classes = 2,
                              .feature_type = GS_BF16,
                              .splits = true};

float tiny_feature(uint32_t v, uint32_t column)
{
    return (float)v + 0.25f * (float)column - 1.f;
}
int32_t tiny_label(const tiny_graph *g, uint32_t v)
{
    return v == 2 ? -1 : (int32_t)(v % g->classes);
}
uint8_t tiny_split(uint32_t v)
{
    return (uint8_t)(v % 4);
}
uint32_t tiny_input_id(const tiny_graph *g, uint32_t v)
{
    return g->vertices - 1 - v;
}

static void *allocate(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    assert_non_null(p);
    return p;
}

static uint32_t target_of(const tiny_edge *e, gs_direction d)
{
    return d == GS_BY_DEST ? e->dest : e->source;
}
static uint32_t operand_of(const tiny_edge *e, gs_direction d)
{
    return d == GS_BY_DEST ? e->source : e->dest;
}

static gs_direction sort_direction; /* qsort has no context */
static int by_target_type_operand(const void *a, const void *b)
{
    const tiny_edge *x = a, *y = b;
    const uint32_t key[2][3] = {{target_of(x, sort_direction), x->type, operand_of(x, sort_direction)},
                                {target_of(y, sort_direction), y->type, operand_of(y, sort_direction)}};
    for (int k = 0; k < 3; k++)
        if (key[0][k] != key[1][k])
            return key[0][k] < key[1][k] ? -1 : 1;
    return 0;
}

static void put(const void *where, uint32_t width, uint64_t k, uint32_t value)
{
    memcpy((char *)(uintptr_t)where + k * width, &value, width);
}

/* The edges of one chunk, sorted, to bytes; appends them to `file`. */
static void write_chunk(FILE *file, gs_chunk *c, const tiny_graph *g, tiny_edge *e, uint32_t n,
                        gs_direction d, uint32_t target, uint32_t operand)
{
    const uint32_t type_bytes = g->edge_types ? 1 : 0, ix = g->interval_rows <= 65536 ? 2 : 4;
    gs_chunk_expect counts = {.index_bytes = ix, .edges = n};
    unsigned char *used = allocate(g->interval_rows);
    gs_chunk_view v;

    *c = (gs_chunk){.offset = (uint64_t)ftell(file)};
    if (n == 0) {
        free(used);
        return;
    }
    sort_direction = d;
    qsort(e, n, sizeof(*e), by_target_type_operand);
    for (uint32_t k = 0, of_target = 0; k < n; k++) {
        const bool next = k == 0 || target_of(&e[k], d) != target_of(&e[k - 1], d);
        of_target = next ? 1 : of_target + 1;
        c->largest = GS_MAX(c->largest, of_target);
        counts.targets += next;
        counts.operands += used[operand_of(&e[k], d) % g->interval_rows]++ == 0;
    }
    c->edges = n;
    c->targets = counts.targets;
    c->operands = counts.operands;
    c->length = gs_chunk_bytes(n, counts.targets, counts.operands, ix, (gs_edge_data){type_bytes, g->weights, 0});
    char *data = allocate(c->length);
    gs_chunk_layout(&v, data, &counts, (gs_edge_data){type_bytes, g->weights, 0});
    for (uint32_t k = 0, t = 0; k < n; k++) {
        if (k == 0 || target_of(&e[k], d) != target_of(&e[k - 1], d)) {
            put(v.start, 4, t, k);
            put(v.target, ix, t++, target_of(&e[k], d) - target * g->interval_rows);
        }
        put(v.index, ix, k, operand_of(&e[k], d) - operand * g->interval_rows);
        if (type_bytes)
            put(v.type, 1, k, e[k].type);
        if (g->weights)
            memcpy((char *)(uintptr_t)v.weight + 4 * k, &e[k].weight, 4);
    }
    put(v.start, 4, counts.targets, n);
    for (uint32_t row = 0, o = 0; row < g->interval_rows; row++)
        if (used[row])
            put(v.operand, ix, o++, row);
    c->checksum = gs_hash64(data, c->length);
    assert_int_equal(fwrite(data, 1, c->length, file), c->length);
    free(data);
    free(used);
}

static gs_chunk *write_edges(const char *dir, const tiny_graph *g, gs_direction d)
{
    gs_chunk *table = allocate((size_t)g->parts * g->parts * sizeof(*table));
    tiny_edge *some = allocate(g->edges * sizeof(*some));
    FILE *file = fopen(gs_test_path(dir, "%s", gs_store_edges_name(d)), "wb");
    assert_non_null(file);
    for (uint32_t i = 0; i < g->parts; i++)
        for (uint32_t j = 0; j < g->parts; j++) {
            uint32_t n = 0;
            for (uint32_t k = 0; k < g->edges; k++)
                if (target_of(&g->edge[k], d) / g->interval_rows == i &&
                    operand_of(&g->edge[k], d) / g->interval_rows == j)
                    some[n++] = g->edge[k];
            write_chunk(file, &table[i * g->parts + j], g, some, n, d, i, j);
        }
    fclose(file);
    free(some);
    return table;
}

/* Pads to whole blocks, writes, and notes the checksums. */
static void write_array(gs_store_contents *c, const char *dir, gs_array_id id, gs_dtype dtype, uint32_t width,
                        const void *rows)
{
    const uint64_t bytes = c->info.vertices * width * gs_dtype_bytes(dtype),
                   padded = gs_align_up(bytes, GS_BLOCK_BYTES);
    const uint64_t count = gs_div_up(bytes, GS_SUM_BYTES);
    char *data = allocate(padded);
    uint64_t *sums = allocate(count * sizeof(*sums));
    memcpy(data, rows, bytes);
    for (uint64_t k = 0; k < count; k++)
        sums[k] = gs_hash64(data + k * GS_SUM_BYTES, GS_MIN(bytes - k * GS_SUM_BYTES, GS_SUM_BYTES));
    gs_test_write_file(gs_test_path(dir, "%s.bin", gs_array_stem(id)), data, padded);
    c->array[id] = (gs_array_info){.present = true,
                                   .dtype = dtype,
                                   .width = width,
                                   .row_bytes = width * gs_dtype_bytes(dtype),
                                   .bytes = bytes,
                                   .sums = sums};
    free(data);
}

static void write_degrees(gs_store_contents *c, const char *dir, const tiny_graph *g)
{
    float *in = allocate(g->vertices * sizeof(float)), *out = allocate(g->vertices * sizeof(float));
    float *loops = allocate(g->vertices * sizeof(float));
    for (uint32_t k = 0; k < g->edges; k++) {
        in[g->edge[k].dest]++;
        out[g->edge[k].source]++;
        loops[g->edge[k].dest] += g->edge[k].source == g->edge[k].dest;
        c->info.self_loops += g->edge[k].source == g->edge[k].dest;
    }
    for (uint32_t v = 0; v < g->vertices; v++) {
        c->info.max_in_degree = GS_MAX(c->info.max_in_degree, (uint64_t)in[v]);
        c->info.max_out_degree = GS_MAX(c->info.max_out_degree, (uint64_t)out[v]);
    }
    write_array(c, dir, GS_ARRAY_IN_DEGREE, GS_F32, 1, in);
    write_array(c, dir, GS_ARRAY_OUT_DEGREE, GS_F32, 1, out);
    if (c->info.self_loops > 0)
        write_array(c, dir, GS_ARRAY_LOOPS, GS_F32, 1, loops);
    free(in);
    free(out);
    free(loops);
}

static void write_vertices(gs_store_contents *c, const char *dir, const tiny_graph *g)
{
    const size_t cells = (size_t)g->vertices * GS_MAX(g->features, 1u);
    float *f32 = allocate(cells * 4);
    void *any = allocate(cells * 4);
    for (uint32_t v = 0; v < g->vertices; v++)
        for (uint32_t k = 0; k < g->features; k++)
            f32[v * g->features + k] = tiny_feature(v, k);
    if (g->features) {
        if (g->feature_type == GS_F32)
            memcpy(any, f32, cells * 4);
        else
            gs_convert_from_f32(any, g->feature_type, f32, cells);
        write_array(c, dir, GS_ARRAY_FEATURES, g->feature_type, g->features, any);
    }
    for (uint32_t v = 0; g->classes && v < g->vertices; v++)
        ((int32_t *)any)[v] = tiny_label(g, v);
    if (g->classes)
        write_array(c, dir, GS_ARRAY_LABELS, GS_I32, 1, any);
    for (uint32_t v = 0; g->splits && v < g->vertices; v++) {
        ((uint8_t *)any)[v] = tiny_split(v);
        c->info.train += tiny_split(v) == GS_SPLIT_TRAIN;
        c->info.valid += tiny_split(v) == GS_SPLIT_VALID;
        c->info.test += tiny_split(v) == GS_SPLIT_TEST;
    }
    if (g->splits)
        write_array(c, dir, GS_ARRAY_SPLIT, GS_U8, 1, any);
    for (uint32_t v = 0; v < g->vertices; v++)
        ((uint32_t *)any)[v] = tiny_input_id(g, v);
    write_array(c, dir, GS_ARRAY_INPUT_ID, GS_U32, 1, any);
    free(any);
    free(f32);
}

static gs_staging *write_files(gs_store_contents *c, const char *place, const tiny_graph *g, bool force)
{
    gs_staging *staging = NULL;

    *c = (gs_store_contents){
        .info = {.vertices = g->vertices,
                 .edges = g->edges,
                 .parts = g->parts,
                 .interval_rows = g->interval_rows,
                 .features = g->features,
                 .feature_type = g->feature_type,
                 .classes = g->classes,
                 .symmetric = g->symmetric,
                 .weights = g->weights,
                 .edge_types = g->edge_types,
                 .method = "natural",
                 .seed = 0xFEDCBA9876543210ull},
        .chunks = {.vertices = g->vertices,
                   .parts = g->parts,
                   .interval_rows = g->interval_rows,
                   .shared = g->shared,
                   .data = {g->edge_types ? 1 : 0, g->weights, 0}},
    };
    gs_assert_ok(gs_store_begin(&staging, place, force));
    const char *const dir = gs_staging_dir(staging);
    c->chunks.chunk[0] = write_edges(dir, g, GS_BY_DEST);
    c->chunks.chunk[1] = g->shared ? c->chunks.chunk[0] : write_edges(dir, g, GS_BY_SOURCE);
    write_degrees(c, dir, g);
    write_vertices(c, dir, g);
    return staging;
}

gs_staging *tiny_write_files(gs_store_contents *c, const char *dir, const tiny_graph *g)
{
    return write_files(c, dir, g, false);
}

gs_staging *tiny_write_over(gs_store_contents *c, const char *dir, const tiny_graph *g)
{
    return write_files(c, dir, g, true);
}

void tiny_contents_free(gs_store_contents *c)
{
    if (!c->chunks.shared)
        free((void *)(uintptr_t)c->chunks.chunk[1]);
    free((void *)(uintptr_t)c->chunks.chunk[0]);
    for (int id = 0; id < GS_ARRAY_COUNT; id++)
        free((void *)(uintptr_t)c->array[id].sums);
}

void tiny_write(const char *dir, const tiny_graph *g)
{
    gs_store_contents c;
    char kept[512]; /* `dir` may be one of gs_test_path()'s buffers, which come round again */
    snprintf(kept, sizeof(kept), "%s", dir);
    gs_staging *const staging = tiny_write_files(&c, kept, g);
    gs_assert_ok(gs_store_finish(staging, &c));
    gs_staging_close(staging);
    tiny_contents_free(&c);
}

unsigned char *tiny_read(const char *dir, const char *name, size_t *bytes)
{
    FILE *file = fopen(gs_test_path(dir, "%s", name), "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    unsigned char *data = allocate(*bytes + 1);
    assert_int_equal(fread(data, 1, *bytes, file), *bytes);
    fclose(file);
    return data;
}

void tiny_replace(const char *dir, const char *name, const void *data, size_t bytes)
{
    gs_test_write_file(gs_test_path(dir, "%s", name), data, bytes);
}

void tiny_forge_manifest(const char *dir, const char *from, const char *to)
{
    size_t bytes;
    char *text = (char *)tiny_read(dir, GS_MANIFEST_NAME, &bytes), *at = strstr(text, from);
    char *forged = allocate(bytes + strlen(to) + 1);
    if (at == NULL)
        fail_msg("the manifest has no %s", from);
    const size_t n = (size_t)sprintf(forged, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    assert_true(gs_checksum_line_set(forged, n));
    tiny_replace(dir, GS_MANIFEST_NAME, forged, n);
    free(forged);
    free(text);
}

/* "key": "<16 digits>" in the manifest gets a new value. */
static void forge_hex(const char *dir, const char *key, uint64_t value)
{
    char from[64], to[64];
    size_t bytes;
    char *text = (char *)tiny_read(dir, GS_MANIFEST_NAME, &bytes), *at = strstr(text, key);
    assert_non_null(at);
    snprintf(from, sizeof(from), "%.*s", (int)(strcspn(at, "\n")), at);
    snprintf(to, sizeof(to), "%s:\t\"%016llx\",", key, (unsigned long long)value);
    tiny_forge_manifest(dir, from, to);
    free(text);
}

static void reseal_table(const char *dir)
{
    size_t bytes;
    unsigned char *data = tiny_read(dir, "chunks.bin", &bytes);
    forge_hex(dir, "\"chunks_checksum\"", gs_hash64(data, bytes));
    free(data);
}

/* The chunk that holds `offset` gets the checksum of its bytes. */
static void reseal_chunk(const char *dir, gs_direction d, size_t offset, const unsigned char *data)
{
    size_t bytes;
    unsigned char *records = tiny_read(dir, "chunks.bin", &bytes);
    const size_t count = bytes / GS_CHUNK_RECORD_BYTES;
    gs_manifest m;
    size_t manifest_bytes;
    char *text = (char *)tiny_read(dir, GS_MANIFEST_NAME, &manifest_bytes);
    gs_assert_ok(gs_manifest__parse(&m, text, manifest_bytes, "manifest"));
    const size_t first = d == GS_BY_SOURCE ? count / 2 : 0,
                 last = m.shared || d == GS_BY_SOURCE ? count : count / 2;
    for (size_t k = first; k < last; k++) {
        gs_chunk c;
        gs_store__record_load(&c, records + k * GS_CHUNK_RECORD_BYTES, m.version);
        if (offset < c.offset || offset >= c.offset + c.length)
            continue;
        c.checksum = gs_hash64(data + c.offset, c.length);
        gs_store__record_save(records + k * GS_CHUNK_RECORD_BYTES, &c);
    }
    tiny_replace(dir, "chunks.bin", records, bytes);
    free(text);
    free(records);
    reseal_table(dir);
}

/* sums.bin anew from the array files (all tiny: a block each), and what the manifest says of it. */
static void reseal_sums(const char *dir)
{
    size_t manifest_bytes;
    char *text = (char *)tiny_read(dir, GS_MANIFEST_NAME, &manifest_bytes);
    uint64_t sums[GS_ARRAY_COUNT], n = 0;
    gs_manifest m;
    gs_assert_ok(gs_manifest__parse(&m, text, manifest_bytes, "manifest"));
    for (unsigned id = 0; id < GS_ARRAY_COUNT; id++) {
        char name[GS_FILE_NAME_BYTES];
        size_t bytes;
        if (!m.array[id].present)
            continue;
        unsigned char *data = tiny_read(dir, gs_store__file_name(name, GS_FILE_ARRAY0 + id), &bytes);
        assert_true(gs_manifest__array_bytes(&m, id) <= GS_SUM_BYTES);
        sums[n++] = gs_hash64(data, gs_manifest__array_bytes(&m, id));
        free(data);
    }
    tiny_replace(dir, "sums.bin", sums, n * sizeof(*sums));
    forge_hex(dir, "\"sums_checksum\"", gs_hash64(sums, n * sizeof(*sums)));
    if (m.array[GS_ARRAY_FEATURES].present)
        forge_hex(dir, "\"feature_id\"", gs_hash64(sums, sizeof(*sums)));
    free(text);
}

void tiny_forge(const char *dir, const char *name, size_t offset, const void *what, size_t n)
{
    size_t bytes;
    unsigned char *data = tiny_read(dir, name, &bytes);
    assert_true(offset + n <= bytes);
    memcpy(data + offset, what, n);
    tiny_replace(dir, name, data, bytes);
    if (strcmp(name, "chunks.bin") == 0)
        reseal_table(dir);
    else if (strcmp(name, gs_store_edges_name(GS_BY_DEST)) == 0)
        reseal_chunk(dir, GS_BY_DEST, offset, data);
    else if (strcmp(name, gs_store_edges_name(GS_BY_SOURCE)) == 0)
        reseal_chunk(dir, GS_BY_SOURCE, offset, data);
    else
        reseal_sums(dir);
    free(data);
}

gs_status tiny_open_and_verify(const char *dir)
{
    gs_store *s = NULL;
    gs_status st = gs_store_open(&s, dir);
    if (st == GS_OK)
        st = gs_store_verify(s, GS_MIB);
    gs_store_close(s);
    return st;
}
