/* verify.c - reads every byte of a store and says what is wrong.
 *
 * Manifest, chunk table and checksums were verified when the store was opened. Here: the edges, then of vertex arrays
 * each block's checksum, zero padding, and what the values must be: finite features, labels below the number of
 * classes, split sizes as promised, input ids that are a permutation. */
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "store/store_internal.h"

/* ---- numbers ----------------------------------------------------------- */

static uint64_t features_f32(const uint32_t *v, uint64_t count)
{
    uint32_t bad = 0;
    for (uint64_t k = 0; k < count; k++)
        bad |= (v[k] & 0x7F800000u) == 0x7F800000u;
    for (uint64_t k = 0; bad && k < count; k++)
        if ((v[k] & 0x7F800000u) == 0x7F800000u)
            return k;
    return count;
}

/* bf16 and f16: all bits of the exponent set means infinite or NaN. */
static uint64_t features_16(const uint16_t *v, uint64_t count, uint16_t exponent)
{
    uint16_t bad = 0;
    for (uint64_t k = 0; k < count; k++)
        bad |= (v[k] & exponent) == exponent;
    for (uint64_t k = 0; bad && k < count; k++)
        if ((v[k] & exponent) == exponent)
            return k;
    return count;
}

/* How many of `count` numbers stand before the first one that is not finite. */
static uint64_t finite_numbers(gs_dtype type, const void *data, uint64_t count)
{
    switch (type) {
    case GS_BF16:
        return features_16(data, count, 0x7F80);
    case GS_F16:
        return features_16(data, count, 0x7C00);
    default:
        return features_f32(data, count);
    }
}

/* ---- edges ------------------------------------------------------------- */

/* Reads every edge chunk and says what is wrong.
 *
 * A chunk: its checksum, its padding, every index, and that the list of distinct
 * operand rows is what the indices hold. All of them: that both directions have the
 * same edges, that a symmetric graph is one, and that degrees and loops are
 * what the edges give.
 *
 * Edge sets are compared without sorting: each edge hashes to 64 bits and a
 * chunk's hashes are summed, which does not depend on their order. What should
 * be equal is added from one side and subtracted from the other; what is
 * left in the end must be 0. */

#define WINDOW_BYTES (16 * GS_MIB)

typedef struct edge_scan {
    const gs_store *store;
    const gs_store_info *info;
    const gs_chunk_table *table;
    uint64_t *directions; /* [P * P] by destination minus by source; NULL where shared */
    uint64_t *mirror;     /* [P * P] a chunk minus its mirror image; NULL where not symmetric */
    uint64_t *degree;     /* [interval_rows] edges of each row of the target interval */
    uint32_t *loops;      /* [interval_rows] those that end where they begin */
    float *said;          /* [interval_rows] of the array that `degree` or `loops` must equal */
    uint64_t *present;    /* a bit an operand row of the chunk */
    uint64_t loop_sum, degree_max;
    gs_window window;
    gs_direction direction;
    uint32_t target, operand; /* the chunk at hand */
    uint32_t first, end;      /* target intervals that are there */
    gs_arena arrays;
} edge_scan;

/* splitmix64's finaliser (Steele et al., OOPSLA'14): each bit of the input changes
 * half of those of the output. */
static inline uint64_t mix(uint64_t v)
{
    v = (v ^ (v >> 30)) * 0xBF58476D1CE4E5B9ull;
    v = (v ^ (v >> 27)) * 0x94D049BB133111EBull;
    return v ^ (v >> 31);
}

/* `extra`: of type, weight and features. Row ids are below 2^32. */
static inline uint64_t edge_hash(uint64_t source, uint64_t dest, uint64_t extra)
{
    return mix(mix(source << 32 | dest) + extra * 0x9E3779B97F4A7C15ull);
}

static gs_status chunk_fail(const edge_scan *s, const char *what)
{
    return gs_fail(GS_EFORMAT, "%s: chunk (%u, %u) %s: %s" GS_STORE_DAMAGED, s->window.path, s->target,
                   s->operand, gs_chunk__direction_name(s->direction), what);
}

/* The listed operand rows (distinct, in range: deep check) are as many as the
 * distinct ones in `index`, and each of those is listed. Leaves `present` 0. */
static bool operands_match(edge_scan *s, const gs_chunk_view *v)
{
    uint64_t found = 0, listed = 0;
    for (uint64_t k = 0; k < v->edges; k++) {
        const uint32_t row = gs_index_at(v->index, v->index_bytes, k);
        const uint64_t bit = 1ull << (row % 64);
        found += (s->present[row / 64] & bit) == 0;
        s->present[row / 64] |= bit;
    }
    for (uint32_t k = 0; k < v->operands; k++) {
        const uint32_t row = gs_index_at(v->operand, v->index_bytes, k);
        listed += s->present[row / 64] >> (row % 64) & 1;
        s->present[row / 64] &= ~(1ull << (row % 64));
    }
    return found == v->operands && listed == v->operands;
}

/* Type and weight of edge k, as bits, and a hash of its features. */
static uint64_t edge_extra(const gs_chunk_view *v, uint64_t k)
{
    uint64_t extra = v->type ? gs_chunk__type(v, k) : 0;
    if (v->weight != NULL) {
        uint32_t bits;
        memcpy(&bits, &v->weight[k], sizeof(bits));
        extra |= (uint64_t)bits << 32;
    }
    if (v->feature != NULL)
        extra = mix(extra) ^ gs_hash64((const char *)v->feature + k * v->feature_bytes, v->feature_bytes);
    return extra;
}

static gs_status attributes_check(const edge_scan *s, const gs_chunk_view *v)
{
    if (!gs_edge_data_equal(gs_chunk_view_data(v), s->table->data))
        return chunk_fail(s, "its edges carry other types, weights or features than the manifest says");
    for (uint64_t k = 0; v->type != NULL && k < v->edges; k++)
        if (gs_chunk__type(v, k) >= s->info->edge_types)
            return chunk_fail(s, "the type of an edge is out of range");
    for (uint64_t k = 0; v->weight != NULL && k < v->edges; k++)
        if (!__builtin_isfinite(v->weight[k]))
            return chunk_fail(s, "the weight of an edge is not finite");
    const uint64_t numbers = v->feature != NULL ? v->edges * s->info->edge_features : 0;
    if (finite_numbers(s->info->edge_feature_type, v->feature, numbers) != numbers)
        return chunk_fail(s, "a feature of an edge is not finite");
    return GS_OK;
}

/* Sum of the hashes of target -> operand, or with `back` of operand -> target.
 * `plain`: edges carry nothing. With both constant the loop has no branch. */
static inline __attribute__((always_inline)) uint64_t hash_sum(const gs_chunk_view *v, uint64_t first_target,
                                                               uint64_t first_operand, bool back, bool plain)
{
    uint64_t sum = 0;
    for (uint32_t t = 0; t < v->targets; t++) {
        const uint64_t target = first_target + gs_index_at(v->target, v->index_bytes, t);
        for (uint64_t k = v->start[t]; k < v->start[t + 1]; k++) {
            const uint64_t operand = first_operand + gs_index_at(v->index, v->index_bytes, k);
            const uint64_t extra = plain ? 0 : edge_extra(v, k);
            sum += back ? edge_hash(operand, target, extra) : edge_hash(target, operand, extra);
        }
    }
    return sum;
}

static uint64_t hash_edges(const edge_scan *s, const gs_chunk_view *v, bool back)
{
    const uint64_t target = gs_interval_first(s->table, s->target),
                   operand = gs_interval_first(s->table, s->operand);
    const bool plain = v->type == NULL && v->weight == NULL && v->feature == NULL;
    if (back)
        return plain ? hash_sum(v, target, operand, true, true) : hash_sum(v, target, operand, true, false);
    return plain ? hash_sum(v, target, operand, false, true) : hash_sum(v, target, operand, false, false);
}

/* Adds and subtracts what must cancel over the whole store. */
static void hashes_add(edge_scan *s, const gs_chunk_view *v)
{
    const uint64_t here = (uint64_t)s->target * s->table->parts + s->operand;
    const uint64_t twin = (uint64_t)s->operand * s->table->parts + s->target;
    if (s->direction == GS_BY_SOURCE) {
        if (s->directions != NULL)
            s->directions[twin] -= hash_edges(s, v, false);
        return;
    }
    const uint64_t back = hash_edges(s, v, true); /* operand -> target is source -> destination here */
    if (s->directions != NULL)
        s->directions[here] += back;
    if (s->mirror != NULL) {
        s->mirror[here] += back;
        s->mirror[twin] -= hash_edges(s, v, false);
    }
}

/* Degrees and loops of the rows of the target interval. */
static void edges_count(edge_scan *s, const gs_chunk_view *v)
{
    for (uint32_t t = 0; t < v->targets; t++) {
        const uint32_t local = gs_index_at(v->target, v->index_bytes, t);
        s->degree[local] += v->start[t + 1] - v->start[t];
        if (s->target != s->operand)
            continue; /* a loop's ends are in one interval */
        for (uint64_t k = v->start[t]; k < v->start[t + 1]; k++)
            s->loops[local] += gs_index_at(v->index, v->index_bytes, k) == local;
    }
}

/* Edges lead between vertices of the types that theirs says. Each direction looks at the target ends, which are all
 * ends; where they share one copy, an edge stands for its reverse, too. `said`: types of the target rows. */
static bool ends_fit(const edge_scan *s, const gs_chunk_view *v)
{
    const gs_type_table *const t = s->info->types;

    for (uint32_t k = 0; t != NULL && t->relations > 0 && v->type_bytes > 0 && k < v->targets; k++) {
        const uint32_t type = (uint32_t)s->said[gs_index_at(v->target, v->index_bytes, k)];
        for (uint64_t e = v->start[k]; e < v->start[k + 1]; e++) {
            const gs_relation *const r = &t->relation[gs_chunk__type(v, e)];
            if ((s->direction == GS_BY_DEST ? r->destination : r->source) != type ||
                (s->table->shared && r->source != type))
                return false;
        }
    }
    return true;
}

static gs_status chunk_verify(edge_scan *s)
{
    const gs_chunk_table *t = s->table;
    const gs_chunk *c = gs_chunk_at(t, s->direction, s->target, s->operand);
    const gs_chunk_expect expect = {.target_rows = gs_interval_rows(t, s->target),
                                    .operand_rows = gs_interval_rows(t, s->operand),
                                    .index_bytes = gs_index_bytes(t),
                                    .edges = c->edges,
                                    .targets = c->targets,
                                    .operands = c->operands,
                                    .largest = c->largest};
    const void *data = NULL;
    gs_chunk_view v;
    gs_status st;

    if (c->length == 0)
        return GS_OK;
    GS_TRY(gs_window__get(&s->window, &data, c->offset, c->length, UINT64_MAX));
    if (gs_hash64(data, c->length) != c->checksum)
        return chunk_fail(s, "checksum mismatch");
    if ((st = gs_chunk_view_make(&v, data, c->length, &expect, true)) != GS_OK)
        return chunk_fail(s, gs_last_error());
    GS_TRY(attributes_check(s, &v));
    if (!ends_fit(s, &v))
        return chunk_fail(s, "an edge ends at a vertex of another type than its own type says");
    if (!gs_chunk__padding_is_zero(&v, data, c->length))
        return chunk_fail(s, "its padding is not zero");
    if (!operands_match(s, &v))
        return chunk_fail(s, "its list of operands is not what its edges name");
    edges_count(s, &v);
    hashes_add(s, &v);
    return GS_OK;
}

/* Rows of the target interval in one of the arrays that count edges. */
static gs_status load_said(edge_scan *s, gs_array_id id)
{
    const uint64_t offset = gs_interval_first(s->table, s->target) * sizeof(float);
    const uint64_t rows = gs_interval_rows(s->table, s->target), there = gs_store_array_extent(s->store, id).first;
    GS_FREED char *path = gs_store_array_path(s->store, id);
    uint64_t bytes;
    GS_CLOSED int fd = -1;

    GS_NEED(path != NULL, "%s: no memory to verify its degrees", gs_store_dir(s->store));
    GS_TRY(gs_file_open_own(&fd, &bytes, path));
    return gs_pread_exact(fd, s->said, rows * sizeof(float), offset - there, path);
}

static gs_status count_fail(const edge_scan *s, gs_array_id id, uint32_t local, double counted)
{
    return gs_fail(GS_EFORMAT, "%s/%s.bin: row %lu says %.9g, but it has %.9g such edges" GS_STORE_DAMAGED,
                   gs_store_dir(s->store), gs_array_stem(id),
                   gs_interval_first(s->table, s->target) + local, (double)s->said[local], counted);
}

static gs_status degrees_check(edge_scan *s, gs_array_id id)
{
    const uint32_t rows = gs_interval_rows(s->table, s->target);
    const gs_status st = load_said(s, id);
    for (uint32_t r = 0; st == GS_OK && r < rows; r++)
        if (s->said[r] != (float)s->degree[r]) /* rounded to nearest above 2^24, like any f32 */
            return count_fail(s, id, r, (double)s->degree[r]);
    return st;
}

static gs_status loops_check(edge_scan *s)
{
    const uint32_t rows = gs_interval_rows(s->table, s->target);
    for (uint32_t r = 0; r < rows; r++)
        s->loop_sum += s->loops[r];
    if (!gs_store_array(s->store, GS_ARRAY_LOOPS)->present)
        return GS_OK; /* "self_loops" is 0 then, and sums_check() compares that */
    GS_TRY(load_said(s, GS_ARRAY_LOOPS));
    for (uint32_t r = 0; r < rows; r++)
        if (s->said[r] != (float)s->loops[r])
            return count_fail(s, GS_ARRAY_LOOPS, r, (double)s->loops[r]);
    return GS_OK;
}

/* All chunks of one target interval, then what they add up to. */
static gs_status interval_verify(edge_scan *s)
{
    const uint32_t rows = gs_interval_rows(s->table, s->target);

    memset(s->degree, 0, rows * sizeof(*s->degree));
    memset(s->loops, 0, rows * sizeof(*s->loops));
    if (s->info->types != NULL)
        GS_TRY(load_said(s, GS_ARRAY_VERTEX_TYPE));
    for (s->operand = 0; s->operand < s->table->parts; s->operand++)
        GS_TRY(chunk_verify(s));
    for (uint32_t r = 0; r < rows; r++)
        s->degree_max = GS_MAX(s->degree_max, s->degree[r]);
    if (s->direction == GS_BY_DEST)
        GS_TRY(loops_check(s));
    if (s->table->shared)
        GS_TRY(degrees_check(s, GS_ARRAY_OUT_DEGREE));
    return degrees_check(s, s->direction == GS_BY_DEST ? GS_ARRAY_IN_DEGREE : GS_ARRAY_OUT_DEGREE);
}

static gs_status manifest_fail(const edge_scan *s, const char *key, uint64_t said, uint64_t counted)
{
    return gs_fail(GS_EFORMAT,
                   "%s/" GS_MANIFEST_NAME ": \"%s\" is %lu, but the edges give %lu" GS_STORE_DAMAGED,
                   gs_store_dir(s->store), key, said, counted);
}

static bool is_shard(const edge_scan *s) { return gs_store_get_shard(s->store) != NULL; }

static gs_status direction_verify(edge_scan *s, gs_direction d, uint64_t window_bytes)
{
    const uint64_t said = d == GS_BY_DEST ? s->info->max_in_degree : s->info->max_out_degree;
    gs_status st = gs_window__open(&s->window, gs_store_edges_path(s->store, d),
                                    gs_store_edges_extent(s->store, d).first, window_bytes, 0);

    s->direction = d;
    s->degree_max = 0;
    for (s->target = s->first; st == GS_OK && s->target < s->end; s->target++)
        if ((st = interval_verify(s)) != GS_OK)
            break;
    gs_window__close(&s->window);
    if (st == GS_OK && is_shard(s)) /* others may have more */
        return s->degree_max > said ? manifest_fail(s, "max_degree", said, s->degree_max) : GS_OK;
    if (st == GS_OK && s->degree_max != said)
        return manifest_fail(s, d == GS_BY_DEST ? "max_in_degree" : "max_out_degree", said, s->degree_max);
    if (st == GS_OK && s->table->shared && s->degree_max != s->info->max_out_degree)
        return manifest_fail(s, "max_out_degree", s->info->max_out_degree, s->degree_max);
    return st;
}

/* After both directions: nothing may be left of what should cancel. */
static gs_status sums_check(const edge_scan *s)
{
    const uint32_t p = s->table->parts;
    if (is_shard(s) ? s->loop_sum > s->info->self_loops : s->loop_sum != s->info->self_loops)
        return manifest_fail(s, "self_loops", s->info->self_loops, s->loop_sum);
    for (uint64_t k = 0; k < (uint64_t)p * p; k++) {
        const unsigned i = (unsigned)(k / p), j = (unsigned)(k % p);
        if (i < s->first || i >= s->end || j < s->first || j >= s->end) /* a shard has one of the two */
            continue;
        if (s->directions != NULL && s->directions[k] != 0)
            return gs_fail(GS_EFORMAT,
                           "%s: chunk (%u, %u) by destination and (%u, %u) by source hold different "
                           "edges" GS_STORE_DAMAGED,
                           gs_store_dir(s->store), i, j, j, i);
        if (s->mirror != NULL && s->mirror[k] != 0)
            return gs_fail(GS_EFORMAT,
                           "%s: the graph is said to be symmetric, but chunks (%u, %u) and (%u, %u) are not "
                           "mirror images" GS_STORE_DAMAGED,
                           gs_store_dir(s->store), i, j, j, i);
    }
    return GS_OK;
}

/* Bytes that the scan needs beside the window. */
static uint64_t table_bytes(const gs_chunk_table *t, bool symmetric)
{
    const uint64_t square = (uint64_t)t->parts * t->parts, rows = t->interval_rows;
    const uint64_t sums = (t->shared ? 0u : 1u) + (symmetric ? 1u : 0u);
    return square * sums * sizeof(uint64_t) + rows * (sizeof(uint64_t) + sizeof(uint32_t) + sizeof(float)) +
           gs_div_up(rows, 64) * sizeof(uint64_t);
}

static uint64_t largest_chunk(const gs_chunk_table *t)
{
    uint64_t largest = GS_BLOCK_BYTES;
    for (int d = 0; d < (t->shared ? 1 : 2); d++)
        for (uint64_t k = 0; k < (uint64_t)t->parts * t->parts; k++)
            largest = GS_MAX(largest, t->chunk[d][k].length);
    return largest;
}

static gs_status scan_alloc(edge_scan *s)
{
    const uint64_t square = (uint64_t)s->table->parts * s->table->parts, rows = s->table->interval_rows;
    const bool both = !s->table->shared, symmetric = s->info->symmetric;

    s->directions = both ? gs_arena_take(&s->arrays, square, sizeof(uint64_t)) : NULL;
    s->mirror = symmetric ? gs_arena_take(&s->arrays, square, sizeof(uint64_t)) : NULL;
    s->degree = gs_arena_take(&s->arrays, rows, sizeof(*s->degree));
    s->loops = gs_arena_take(&s->arrays, rows, sizeof(*s->loops));
    s->said = gs_arena_take(&s->arrays, rows, sizeof(*s->said));
    s->present = gs_arena_take(&s->arrays, gs_div_up(rows, 64), sizeof(*s->present));
    GS_NEED(!s->arrays.is_short, "%s: no memory to verify its edges", gs_store_dir(s->store));
    return GS_OK;
}

/* The edge part of gs_store_verify(). */
static gs_status verify_edges(const gs_store *store, uint64_t memory)
{
    edge_scan s = {.store = store,
                   .info = gs_store_get_info(store),
                   .table = gs_store_chunks(store),
                   .window = GS_WINDOW_NONE,
                   .end = gs_store_chunks(store)->parts};
    const gs_store_shard *const shard = gs_store_get_shard(store);
    const uint64_t tables = table_bytes(s.table, s.info->symmetric), chunk = largest_chunk(s.table);
    char need[16], have[16];
    gs_status st;

    if (shard != NULL) {
        s.first = shard->first[shard->rank];
        s.end = shard->first[shard->rank + 1];
    }
    if (memory < tables || memory - tables < chunk)
        return gs_fail(GS_EBUDGET, "%s: verifying its edges takes at least %s of memory, and %s are allowed",
                       gs_store_dir(store), gs_size_format(need, sizeof(need), tables + chunk),
                       gs_size_format(have, sizeof(have), memory));
    const uint64_t window =
        gs_align_down(GS_MIN(memory - tables, GS_MAX(chunk, WINDOW_BYTES)), GS_BLOCK_BYTES);
    if ((st = scan_alloc(&s)) == GS_OK && (st = direction_verify(&s, GS_BY_DEST, window)) == GS_OK &&
        !s.table->shared)
        st = direction_verify(&s, GS_BY_SOURCE, window);
    if (st == GS_OK)
        st = sums_check(&s);
    gs_arena_free(&s.arrays);
    return st;
}

/* ---- all files --------------------------------------------------------- */

#define FILE_WINDOW_BYTES (8 * GS_MIB) /* enough for an SSD's full sequential rate */

/* Sums over all blocks of an array. */
typedef struct array_scan {
    const gs_store *store;
    gs_array_id id;
    uint64_t splits[4]; /* rows of each gs_split */
    uint64_t *seen;     /* GS_ARRAY_INPUT_ID: a bit an input id */
    uint64_t typed[GS_MOST_VERTEX_TYPES]; /* rows of each type of vertices */
    struct name_scan *names; /* of names */
    uint64_t column, row[2], last; /* of links: which comes, that of the pair at hand, bucket of the one before */
} array_scan;

/* Checks `count` elements of which the first is element `first` of the array.
 * Gives the number of good ones before the first bad one: `count` if all are. */
typedef uint64_t (*element_check)(array_scan *scan, const void *data, uint64_t count);

static uint64_t features_check(array_scan *scan, const void *data, uint64_t count)
{
    return finite_numbers(gs_store_get_info(scan->store)->feature_type, data, count);
}

/* 0, 1, or not known. */
static uint64_t truths_check(const uint8_t *v, uint64_t count)
{
    for (uint64_t k = 0; k < count; k++)
        if (v[k] > 1 && v[k] != GS_LABEL_UNKNOWN)
            return k;
    return count;
}

/* Not infinite; not a number where none is known. */
static uint64_t numbers_check(const uint32_t *v, uint64_t count)
{
    for (uint64_t k = 0; k < count; k++)
        if ((v[k] & 0x7FFFFFFFu) == 0x7F800000u)
            return k;
    return count;
}

static uint64_t labels_check(array_scan *scan, const void *data, uint64_t count)
{
    const gs_train_task task = gs_store_get_info(scan->store)->labels;
    if (task != GS_TRAIN_TASK_CLASSIFY)
        return task == GS_TRAIN_TASK_MULTILABEL ? truths_check(data, count) : numbers_check(data, count);
    const int32_t *v = data, classes = (int32_t)gs_store_get_info(scan->store)->classes;
    for (uint64_t k = 0; k < count; k++)
        if (v[k] < -1 || v[k] >= classes)
            return k;
    return count;
}

static uint64_t split_check(array_scan *scan, const void *data, uint64_t count)
{
    const uint8_t *v = data;
    for (uint64_t k = 0; k < count; k++) {
        if (v[k] > GS_SPLIT_TEST)
            return k;
        scan->splits[v[k]]++;
    }
    return count;
}

/* N ids below N, none twice: a permutation. */
static uint64_t input_id_check(array_scan *scan, const void *data, uint64_t count)
{
    const uint64_t vertices = gs_store_get_info(scan->store)->vertices;
    const uint32_t *v = data;
    for (uint64_t k = 0; k < count; k++) {
        const uint64_t bit = 1ull << (v[k] % 64);
        if (v[k] >= vertices || (scan->seen[v[k] / 64] & bit) != 0)
            return k;
        scan->seen[v[k] / 64] |= bit;
    }
    return count;
}

/* A whole number below that of the types; and as many of each as the manifest says. */
static uint64_t types_check(array_scan *scan, const void *data, uint64_t count)
{
    const gs_type_table *const t = gs_store_get_info(scan->store)->types;
    const float *const v = data;

    for (uint64_t k = 0; k < count; k++) {
        if (!(v[k] >= 0 && v[k] < (float)t->types) || v[k] != (float)(uint32_t)v[k])
            return k;
        if (scan->typed[(uint32_t)v[k]]++ == t->type[(uint32_t)v[k]].vertices)
            return k;
    }
    return count;
}

/* Progress of reading the names. */
typedef struct name_scan {
    uint64_t names;
    uint32_t length, last_length;
    unsigned char name[GS_MOST_NAME], last[GS_MOST_NAME];
} name_scan;

/* Each is longer than the one before it, or as long and behind it by its bytes: so none is there twice. */
static uint64_t names_check(array_scan *scan, const void *data, uint64_t count)
{
    const unsigned char *v = data;
    name_scan *const n = scan->names;

    for (uint64_t k = 0; k < count; k++) {
        if (v[k] != '\n') {
            if (n->length == GS_MOST_NAME || v[k] == 0)
                return k;
            n->name[n->length++] = v[k];
            continue;
        }
        const bool longer = n->length > n->last_length, as_long = n->length == n->last_length;
        if (n->length == 0 || (!longer && !(as_long && memcmp(n->name, n->last, n->length) > 0)))
            return k;
        memcpy(n->last, n->name, n->length);
        n->last_length = n->length;
        n->length = 0;
        n->names++;
    }
    return count;
}

/* Ends that are vertices, types that edges have, buckets in order. A row may begin in the block before. */
static uint64_t links_check(array_scan *scan, const void *data, uint64_t count)
{
    const gs_store_info *const i = gs_store_get_info(scan->store);
    const uint64_t width = gs_store_array(scan->store, scan->id)->width;
    const uint32_t *const v = data;

    for (uint64_t k = 0; k < count; k++) {
        const uint64_t column = scan->column;
        scan->column = (column + 1) % width;
        const bool label = i->link_labels && column == width - 1;
        if (label ? !gs_store_is_link_label(i, v[k]) : v[k] >= (column < 2 ? i->vertices : i->edge_types))
            return k;
        if (column >= 2)
            continue;
        scan->row[column] = v[k] / i->interval_rows;
        const uint64_t bucket = scan->row[0] * i->parts + scan->row[1];
        if (column == 1 && bucket < scan->last)
            return k;
        scan->last = column == 1 ? bucket : scan->last;
    }
    return count;
}

/* Rules of an element, for the check above and the message. Degrees and
 * loops were compared with the edges. */
#define GS_NAME_FAULT "a name is empty, too long, holds a byte of 0 or does not follow the one before it"
#define GS_LINK_FAULT "a link is between rows, of a type or a label that there are not, or out of order"
static const struct {
    element_check check;
    const char *fault;
} element[GS_ARRAY_COUNT] = {
    [GS_ARRAY_FEATURES] = {features_check, "a feature is not finite"},
    [GS_ARRAY_LABELS] = {labels_check,
                         "is no label: a class is -1 or below their number, one of several is 0, 1 or 255, a number is "
                         "not infinite"},
    [GS_ARRAY_SPLIT] = {split_check, "the split is not 0, 1, 2 or 3"},
    [GS_ARRAY_INPUT_ID] = {input_id_check, "the input id is out of range or that of an earlier row"},
    [GS_ARRAY_VERTEX_TYPE] = {types_check, "the type is none of the manifest's, or has more rows than it says"},
    [GS_ARRAY_NAMES] = {names_check, GS_NAME_FAULT},
    [GS_ARRAY_EDGE_TYPE_NAMES] = {names_check, GS_NAME_FAULT},
    [GS_ARRAY_TRAIN_LINKS] = {links_check, GS_LINK_FAULT},
    [GS_ARRAY_VALID_LINKS] = {links_check, GS_LINK_FAULT},
    [GS_ARRAY_TEST_LINKS] = {links_check, GS_LINK_FAULT},
};

static gs_status block_check(array_scan *scan, const gs_window *w, const void *data, uint64_t block,
                             uint64_t bytes)
{
    const gs_array_info *a = gs_store_array(scan->store, scan->id);
    const uint64_t size = gs_dtype_bytes(a->dtype), first = block * (GS_SUM_BYTES / size);

    if (gs_hash64(data, bytes) != a->sums[block])
        return gs_fail(GS_EFORMAT, "%s: checksum mismatch in rows %lu to %lu (bytes %lu to %lu)" GS_STORE_DAMAGED,
                       w->path, first / a->width, (first + bytes / size - 1) / a->width,
                       (uint64_t)(block * GS_SUM_BYTES), (uint64_t)(block * GS_SUM_BYTES + bytes - 1));
    if (element[scan->id].check == NULL)
        return GS_OK;
    const uint64_t good = element[scan->id].check(scan, data, bytes / size);
    if (good != bytes / size)
        return gs_fail(GS_EFORMAT, "%s: row %lu: %s" GS_STORE_DAMAGED, w->path,
                       (first + good) / a->width, element[scan->id].fault);
    return GS_OK;
}

/* Bytes from the end of the rows to the end of the file. */
static gs_status padding_check(gs_window *w, uint64_t bytes)
{
    const uint64_t block = gs_align_down(bytes, GS_BLOCK_BYTES), end = gs_align_up(bytes, GS_BLOCK_BYTES);
    const void *data = NULL;
    gs_status st = block == end ? GS_OK : gs_window__get(w, &data, block, end - block, UINT64_MAX);
    if (st != GS_OK || block == end)
        return st;
    for (uint64_t k = bytes - block; k < end - block; k++)
        if (((const unsigned char *)data)[k] != 0)
            return gs_fail(GS_EFORMAT, "%s: byte %lu of the padding is not zero" GS_STORE_DAMAGED, w->path,
                           block + k);
    return GS_OK;
}

static gs_status splits_check(const array_scan *scan, const gs_window *w)
{
    const gs_store_info *i = gs_store_get_info(scan->store);
    const uint64_t said[4] = {0, i->train, i->valid, i->test};
    for (unsigned k = GS_SPLIT_TRAIN; k <= GS_SPLIT_TEST; k++)
        if (scan->splits[k] != said[k])
            return gs_fail(GS_EFORMAT,
                           "%s: %lu rows of split %u, but the manifest says %lu" GS_STORE_DAMAGED, w->path,
                           scan->splits[k], k, said[k]);
    return GS_OK;
}

static gs_status names_end(const array_scan *scan, const gs_window *w)
{
    const gs_store_info *const i = gs_store_get_info(scan->store);
    const bool of_types = scan->id == GS_ARRAY_EDGE_TYPE_NAMES;
    const uint64_t named = of_types ? i->edge_types : i->vertices;

    if (scan->names->names == named && scan->names->length == 0)
        return GS_OK;
    return gs_fail(GS_EFORMAT, "%s: holds %lu names for %lu %s" GS_STORE_DAMAGED, w->path,
                   scan->names->names, named,
                   of_types ? "types of edges" : "vertices");
}

static void array_scan_end(array_scan *scan)
{
    gs_free(scan->names);
    gs_free(scan->seen);
}

static gs_status array_verify(const gs_store *s, gs_array_id id, uint64_t window_bytes)
{
    const gs_array_info *a = gs_store_array(s, id);
    const gs_extent x = gs_store_array_extent(s, id);
    const uint64_t end = GS_MIN(x.first + x.bytes, a->bytes); /* of a shard, perhaps before that of the rows */
    GS_ENDS(array_scan_end) array_scan scan = {.store = s, .id = id};
    GS_ENDS(gs_window__close) gs_window w = GS_WINDOW_NONE;

    GS_TRY(gs_window__open(&w, gs_store_array_path(s, id), x.first, window_bytes, 0));
    if (id == GS_ARRAY_INPUT_ID &&
        (scan.seen = gs_calloc(gs_div_up(gs_store_get_info(s)->vertices, 64), sizeof(*scan.seen))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a bit a vertex", w.path);
    if (element[id].check == names_check && (scan.names = gs_calloc(1, sizeof(*scan.names))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a name", w.path);
    for (uint64_t block = x.first / GS_SUM_BYTES; block * GS_SUM_BYTES < end; block++) {
        const uint64_t offset = block * GS_SUM_BYTES, bytes = GS_MIN(a->bytes - offset, GS_SUM_BYTES);
        const void *data = NULL;
        GS_TRY(gs_window__get(&w, &data, offset, bytes, UINT64_MAX));
        GS_TRY(block_check(&scan, &w, data, block, bytes));
    }
    if (x.bytes > 0 && end == a->bytes)
        GS_TRY(padding_check(&w, a->bytes));
    if (id == GS_ARRAY_SPLIT)
        GS_TRY(splits_check(&scan, &w));
    return scan.names != NULL && x.bytes > 0 ? names_end(&scan, &w) : GS_OK;
}

gs_status gs_store_verify(const gs_store *s, uint64_t memory)
{
    const uint64_t bitmap = gs_div_up(gs_store_get_info(s)->vertices, 64) * sizeof(uint64_t);
    const uint64_t least = bitmap + GS_SUM_BYTES;
    char need[16], have[16];

    if (memory < least)
        return gs_fail(GS_EBUDGET, "%s: verifying it takes at least %s of memory, and %s are allowed",
                       gs_store_dir(s), gs_size_format(need, sizeof(need), least),
                       gs_size_format(have, sizeof(have), memory));
    const uint64_t window = gs_align_down(GS_MIN(memory - bitmap, FILE_WINDOW_BYTES), GS_SUM_BYTES);
    for (unsigned id = 0; id < GS_ARRAY_COUNT; id++)
        GS_TRY(gs_store_array(s, id)->present ? array_verify(s, id, window) : GS_OK);
    return verify_edges(s, memory);
}
