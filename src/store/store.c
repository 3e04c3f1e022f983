/* store.c - opens a store: manifest, real file sizes, tables, in that order.
 *
 * Nothing is allocated for a count before the file that holds the counted
 * things is known to be that big. */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/size.h"
#include "store/store_internal.h"
#include "store/store_write.h" /* gs_store_edges_name */

/* ---- files ------------------------------------------------------------- */

/* Which files a store has, how big they must be, and what one
 * record of the chunk table may say. Used before writing and after reading. */

static const char *const array_stem[GS_ARRAY_COUNT] = {
#define X(id, stem) [id] = stem,
    GS_ARRAY_MAP(X)
#undef X
};

const char *gs_array_stem(gs_array_id id)
{
    return array_stem[id];
}

const char *gs_store_edges_name(gs_direction d)
{
    return d == GS_BY_DEST ? "edges.dest.bin" : "edges.source.bin";
}

const char *gs_chunk__direction_name(gs_direction d)
{
    return d == GS_BY_DEST ? "by destination" : "by source";
}

const char *gs_store__file_name(char buf[GS_FILE_NAME_BYTES], unsigned k)
{
    static const char *const fixed[GS_FILE_ARRAY0] = {
        [GS_FILE_MANIFEST] = GS_MANIFEST_NAME, [GS_FILE_CHUNKS] = "chunks.bin",
        [GS_FILE_SUMS] = "sums.bin",           [GS_FILE_DEST] = "edges.dest.bin",
        [GS_FILE_SOURCE] = "edges.source.bin",
    };
    if (k < GS_FILE_ARRAY0)
        return fixed[k];
    snprintf(buf, GS_FILE_NAME_BYTES, "%s.bin", array_stem[k - GS_FILE_ARRAY0]);
    return buf;
}

uint64_t gs_manifest__array_bytes(const gs_manifest *m, gs_array_id id)
{
    const struct gs_manifest_array *a = &m->array[id];
    if (id == GS_ARRAY_NAMES)
        return m->info.name_bytes;
    if (id == GS_ARRAY_EDGE_TYPE_NAMES)
        return m->info.edge_type_name_bytes;
    const uint64_t rows = gs_array_is_of_vertices(id) ? m->info.vertices : m->info.links[id - GS_ARRAY_TRAIN_LINKS];
    return a->present ? rows * a->width * gs_dtype_bytes(a->dtype) : 0;
}

uint64_t gs_manifest__sum_count(const gs_manifest *m)
{
    uint64_t count = 0;
    for (unsigned id = 0; id < GS_ARRAY_COUNT; id++)
        count += gs_div_up(gs_manifest__array_bytes(m, id), GS_SUM_BYTES);
    return count;
}

uint64_t gs_manifest__chunk_count(const gs_manifest *m)
{
    return (uint64_t)m->info.parts * m->info.parts * (m->shared ? 1 : 2);
}

bool gs_store__file_expected(const gs_manifest *m, unsigned k, uint64_t *bytes)
{
    switch (k) {
    case GS_FILE_CHUNKS:
        *bytes = gs_manifest__chunk_count(m) * GS_CHUNK_RECORD_BYTES;
        return true;
    case GS_FILE_SUMS:
        *bytes = gs_manifest__sum_count(m) * sizeof(uint64_t);
        return true;
    case GS_FILE_DEST:
        *bytes = m->edge_bytes[0];
        return true;
    case GS_FILE_SOURCE:
        *bytes = m->edge_bytes[1];
        return !m->shared;
    default:
        *bytes = gs_align_up(gs_manifest__array_bytes(m, k - GS_FILE_ARRAY0), GS_BLOCK_BYTES);
        return m->array[k - GS_FILE_ARRAY0].present;
    }
}

gs_status gs_store__file_size(uint64_t *bytes, const char *dir, const char *name)
{
    struct stat sb;
    GS_FREED char *path = gs_path_join(dir, name);
    GS_NEED(path != NULL, "%s/%s: no memory for its name", dir, name);
    if (lstat(path, &sb) != 0)
        return gs_fail_errno(errno, "%s", path);
    if (S_ISLNK(sb.st_mode))
        return gs_fail(GS_EFORMAT, "%s: is a link, and none is followed out of a store; put the file itself there",
                       path);
    if (!S_ISREG(sb.st_mode))
        return gs_fail(GS_ENOTFOUND, "%s: not a regular file", path);
    *bytes = (uint64_t)sb.st_size;
    return GS_OK;
}

gs_status gs_store__check_files(const gs_manifest *m, const gs_extent *extent, const char *dir, uint64_t *total)
{
    uint64_t sum = 0;
    for (unsigned k = GS_FILE_CHUNKS; k < GS_STORE_FILES; k++) {
        char buf[GS_FILE_NAME_BYTES];
        const char *name = gs_store__file_name(buf, k);
        uint64_t expected = 0, real = 0;
        if (!gs_store__file_expected(m, k, &expected))
            continue;
        if (extent != NULL && k >= GS_FILE_DEST)
            expected = extent[k].bytes;
        const gs_status st = gs_store__file_size(&real, dir, name);
        if (st == GS_ENOTFOUND)
            return gs_fail(GS_EFORMAT, "%s/%s: missing" GS_STORE_DAMAGED, dir, name);
        if (st != GS_OK)
            return st;
        if (real != expected)
            return gs_fail(GS_EFORMAT, "%s/%s: has %lu bytes instead of %lu" GS_STORE_DAMAGED, dir, name,
                           real, expected);
        sum += real;
    }
    *total = sum;
    return GS_OK;
}

void gs_store__record_load(gs_chunk *c, const void *record, uint32_t version)
{
    uint64_t v[6], largest = 0;
    _Static_assert(sizeof(v) == GS_CHUNK_RECORD_BYTES, "six u64 a record");
    memcpy(v, record, sizeof(v));
    if (version >= 2) { /* above the targets */
        largest = v[4] >> 32;
        v[4] &= UINT32_MAX;
    }
    /* Counts that do not fit become 2^32 - 1, which no interval can have. */
    *c = (gs_chunk){.offset = v[0],
                    .length = v[1],
                    .edges = v[2],
                    .checksum = v[3],
                    .targets = (uint32_t)GS_MIN(v[4], (uint64_t)UINT32_MAX),
                    .operands = (uint32_t)GS_MIN(v[5], (uint64_t)UINT32_MAX),
                    .largest = largest};
}

void gs_store__record_save(void *record, const gs_chunk *c)
{
    const uint64_t v[6] = {c->offset, c->length, c->edges, c->checksum, c->largest << 32 | c->targets,
                           c->operands};
    memcpy(record, v, sizeof(v));
}

static gs_chunk_table table_shape(const gs_manifest *m)
{
    return (gs_chunk_table){
        .vertices = m->info.vertices, .parts = m->info.parts, .interval_rows = m->info.interval_rows};
}

/* A fault of a record that follows `end` bytes of chunks, in words; NULL: it has none. */
static const char *chunk_fault(const gs_manifest *m, gs_direction d, uint64_t k, const gs_chunk *c,
                               uint64_t end)
{
    const gs_chunk_table t = table_shape(m);
    const uint32_t target_rows = gs_interval_rows(&t, (uint32_t)(k / t.parts));
    const uint32_t operand_rows = gs_interval_rows(&t, (uint32_t)(k % t.parts));

    if (c->offset != end)
        return "does not start where the chunk before it ends";
    if (c->edges == 0)
        return c->length || c->targets || c->operands || c->checksum || c->largest
                   ? "has no edges, but a length, rows or a checksum"
                   : NULL;
    if (c->edges > UINT32_MAX)
        return "has more than 4294967295 edges";
    if (c->targets == 0 || c->targets > target_rows || c->targets > c->edges)
        return "has a number of targets that its interval and its edges cannot have";
    if (c->operands == 0 || c->operands > operand_rows || c->operands > c->edges)
        return "has a number of operands that its interval and its edges cannot have";
    if (m->version >= 2 && (c->largest < gs_div_up(c->edges, c->targets) || c->largest > c->edges - c->targets + 1))
        return "has a largest degree that its targets and its edges cannot have";
    if (c->length !=
        gs_chunk_bytes(c->edges, c->targets, c->operands, gs_index_bytes(&t), m->data))
        return "has a length that is not that of its counts";
    if (c->length > m->edge_bytes[m->shared ? 0 : d] - end)
        return "reaches beyond the end of its file";
    return NULL;
}

gs_status gs_store__check_chunk(const gs_manifest *m, gs_direction d, uint64_t k, const gs_chunk *c,
                                gs_table_walk *walk, const char *path)
{
    const char *fault = chunk_fault(m, d, k, c, walk->end);
    if (fault != NULL)
        return gs_fail(GS_EFORMAT, "%s: chunk (%lu, %lu) %s %s" GS_STORE_DAMAGED, path,
                       k / m->info.parts, k % m->info.parts,
                       gs_chunk__direction_name(d), fault);
    walk->end += c->length;
    /* Each has fewer than 2^32 edges and there are at most 2^32: no overflow. */
    walk->edges += c->edges;
    return GS_OK;
}

gs_status gs_store__check_walk(const gs_manifest *m, gs_direction d, const gs_table_walk *walk,
                               const char *path)
{
    if (walk->edges != m->info.edges)
        return gs_fail(GS_EFORMAT, "%s: chunks %s have %lu edges, the manifest %lu" GS_STORE_DAMAGED, path,
                       gs_chunk__direction_name(d), walk->edges,
                       m->info.edges);
    if (walk->end != m->edge_bytes[d])
        return gs_fail(GS_EFORMAT, "%s: chunks %s end at byte %lu, %s at %lu" GS_STORE_DAMAGED, path,
                       gs_chunk__direction_name(d), walk->end, gs_store_edges_name(d),
                       m->edge_bytes[d]);
    return GS_OK;
}

gs_status gs_store__check_twins(const gs_manifest *m, const gs_chunk *const chunk[2], const char *path)
{
    const uint64_t p = m->info.parts;
    for (uint64_t i = 0; i < p; i++)
        for (uint64_t j = 0; j < p; j++) {
            const gs_chunk *a = &chunk[GS_BY_DEST][i * p + j], *b = &chunk[GS_BY_SOURCE][j * p + i];
            if (a->edges != b->edges || a->targets != b->operands || a->operands != b->targets)
                return gs_fail(GS_EFORMAT,
                               "%s: chunk (%lu, %lu) by destination and (%lu, %lu) by source differ in "
                               "counts" GS_STORE_DAMAGED,
                               path, i, j, j,
                               i);
        }
    return GS_OK;
}

/* ---- owners ------------------------------------------------------------- */

/* What a row counts beside its edges: a dense product of 64 columns takes as long as to gather some four rows. */
#define EDGES_A_ROW 4u

static uint64_t edges_at(const gs_chunk_table *t, uint32_t interval)
{
    uint64_t edges = 0;

    for (uint32_t d = 0; d < 2; d++)
        for (uint32_t o = 0; o < t->parts; o++)
            edges += gs_chunk_at(t, (gs_direction)d, interval, o)->edges;
    return edges;
}

static uint64_t weight_of(const gs_chunk_table *t, uint32_t interval)
{
    return edges_at(t, interval) + EDGES_A_ROW * gs_interval_rows(t, interval);
}

/* As many intervals for each owner; true: nobody has then an eighth more than its share of the edges, as in stores
 * whose order was made for so many ranks, and in those of graphs without hubs. */
static bool deal_evenly(const gs_chunk_table *t, uint32_t owners, uint32_t *first)
{
    uint64_t most = 0, all = 0;

    for (uint32_t k = 0; k < owners; k++) {
        uint64_t own = 0;
        first[k] = (uint32_t)((uint64_t)t->parts * k / owners);
        for (uint32_t i = first[k]; i < (uint64_t)t->parts * (k + 1) / owners; i++)
            own += edges_at(t, i);
        most = GS_MAX(most, own);
        all += own;
    }
    first[owners] = t->parts;
    return t->parts >= owners && (double)most <= 1.125 * (double)all / owners;
}

void gs_chunk_deal(const gs_chunk_table *t, uint32_t owners, uint32_t *first)
{
    double total = 0, before = 0;
    uint32_t at = 0;

    if (deal_evenly(t, owners, first))
        return;
    for (uint32_t i = 0; i < t->parts; i++)
        total += (double)weight_of(t, i);
    first[0] = 0;
    first[owners] = t->parts;
    for (uint32_t k = 1; k < owners; k++) {
        const uint32_t most = t->parts > owners - k ? t->parts - (owners - k) : 0; /* those behind have one each */
        while (at < most) { /* up to the bound between two intervals that is nearest to the share */
            const double own = (double)weight_of(t, at);
            if (at > first[k - 1] && before + own / 2 > total * k / owners)
                break;
            before += own;
            at++;
        }
        first[k] = at;
    }
}

/* ---- shards --------------------------------------------------------------- */

bool gs_store_deals_array(gs_array_id id)
{
    return gs_array_is_of_vertices(id) && id != GS_ARRAY_LABELS && id != GS_ARRAY_SPLIT && id != GS_ARRAY_INPUT_ID;
}

/* Chunks of a target interval are side by side, and so are those of a rank's intervals. */
static gs_extent edges_of(const gs_chunk_table *t, const gs_store_shard *x, gs_direction d)
{
    const gs_chunk *const first = gs_chunk_at(t, d, x->first[x->rank], 0);
    const gs_chunk *const last = gs_chunk_at(t, d, x->first[x->rank + 1] - 1, t->parts - 1);
    return (gs_extent){first->offset, last->offset + last->length - first->offset};
}

gs_extent gs_shard_rows(const gs_store_shard *x, uint32_t rank, uint64_t interval_bytes, uint64_t all)
{
    const uint64_t first = gs_align_down(x->first[rank] * interval_bytes, GS_SUM_BYTES);
    const uint64_t end = GS_MIN(gs_align_up(x->first[rank + 1] * interval_bytes, GS_SUM_BYTES), all);
    return (gs_extent){first, end - first};
}

/* Whole checksum blocks around the rows. What ids are called is rank 0's to write; lists of pairs are for all. */
gs_extent gs_store__part_of(const gs_manifest *m, const gs_chunk_table *t, const gs_store_shard *x, unsigned k)
{
    uint64_t all = 0;

    if (!gs_store__file_expected(m, k, &all))
        return (gs_extent){0, 0};
    if (k < GS_FILE_ARRAY0)
        return edges_of(t, x, k == GS_FILE_DEST ? GS_BY_DEST : GS_BY_SOURCE);
    const gs_array_id id = (gs_array_id)(k - GS_FILE_ARRAY0);
    if (!gs_array_is_of_vertices(id))
        return (gs_extent){0, id >= GS_ARRAY_TRAIN_LINKS || x->rank == 0 ? all : 0};
    if (!gs_store_deals_array(id))
        return (gs_extent){0, all};
    return gs_shard_rows(x, x->rank,
                         (uint64_t)t->interval_rows * m->array[id].width * gs_dtype_bytes(m->array[id].dtype), all);
}

gs_status gs_extent_check(gs_extent x, uint64_t first, uint64_t bytes, const char *path)
{
    if (gs_extent_has(x, first, bytes))
        return GS_OK;
    return gs_fail(GS_EFORMAT, "%s: bytes %lu to %lu of the store's are not in this shard, which has %lu to %lu", path,
                   first, first + bytes, x.first, x.first + x.bytes);
}

bool gs_store_has_shard(const char *dir, uint32_t rank)
{
    bool there = false;

    for (uint32_t k = 0; k < GS_SHARDS_MOST && !there; k++) {
        char name[32];
        snprintf(name, sizeof(name), "%u/" GS_SHARD_FILE, k);
        there = (k == rank || rank == GS_SHARDS_MOST) && gs_path_has(dir, name);
    }
    return there;
}

/* ---- opening ----------------------------------------------------------- */

#define SMALL_TABLE GS_MIB /* smaller tables have room */
#define MOST_TRIES 10 /* to open a store that others replace meanwhile */

struct gs_store {
    char *dir;
    uint32_t sharers; /* owners beside the first */
    int folder; /* the one that was opened, whatever takes its place */
    double fuller; /* above 0: a shape, there is no folder */
    int ids;    /* input_id.bin, which is read last, when the store may long have been replaced */
    gs_store_info info;
    gs_chunk_table table;
    gs_array_info array[GS_ARRAY_COUNT];
    gs_chunk *chunks; /* both directions, one after the other */
    uint64_t *sums;   /* all arrays' checksums, in the order of gs_array_id */
    uint64_t table_bytes;
    gs_store_shard shard; /* ranks 0: a whole store */
    gs_extent extent[GS_STORE_FILES];
};

/* All `bytes` bytes of dir/name, which has that size, into a new buffer. */
static gs_status load_file(void **out, const char *dir, const char *name, uint64_t bytes, uint64_t checksum)
{
    GS_FREED char *path = gs_path_join(dir, name);
    GS_FREED void *data = gs_malloc(bytes);
    uint64_t real = 0;
    GS_CLOSED int fd = -1;

    GS_NEED(path != NULL && data != NULL, "%s/%s: no memory for its %lu bytes", dir, name, bytes);
    GS_TRY(gs_file_open_own(&fd, &real, path));
    GS_TRY(gs_pread_exact(fd, data, bytes, 0, path));
    if (gs_hash64(data, bytes) != checksum)
        return gs_fail(GS_EFORMAT, "%s: checksum mismatch" GS_STORE_DAMAGED, path);
    *out = GS_HANDED_OVER(data);
    return GS_OK;
}

static gs_status load_manifest(gs_manifest *m, const char *dir, uint64_t *manifest_bytes)
{
    GS_FREED char *path = gs_path_join(dir, GS_MANIFEST_NAME);
    GS_FREED char *text = NULL;
    GS_NEED(path != NULL, "%s: no memory to open it", dir);
    if (gs_path_is_absent(path) && gs_store_has_shard(dir, GS_SHARDS_MOST))
        return gs_fail(GS_EINVAL, "%s: holds shards of a store, one for each rank: start as many by `mpirun -n N`, or "
                       "give the store", dir);
    if (gs_path_is_absent(path)) /* and not only out of reach */
        return gs_fail(GS_ENOTFOUND, "%s: no store here (it has no " GS_MANIFEST_NAME "); make one with partition",
                       dir);
    GS_TRY(gs_file_read_own(&text, manifest_bytes, path, GS_MANIFEST_LIMIT));
    return gs_manifest__parse(m, text, *manifest_bytes, path);
}

/* Records to gs_chunk, in place: one never reaches past the record that it came from. Then the checks. */
static gs_status unpack_table(gs_chunk *chunks, const gs_manifest *m, const char *path)
{
    const uint64_t square = (uint64_t)m->info.parts * m->info.parts, count = gs_manifest__chunk_count(m);
    gs_table_walk walk = {0};

    _Static_assert(sizeof(gs_chunk) == GS_CHUNK_RECORD_BYTES, "unpacked in place");
    for (uint64_t k = 0; k < count; k++) {
        const gs_direction d = k < square ? GS_BY_DEST : GS_BY_SOURCE;
        gs_chunk c;
        gs_store__record_load(&c, (const char *)chunks + k * GS_CHUNK_RECORD_BYTES, m->version);
        if (k == square)
            walk = (gs_table_walk){0};
        GS_TRY(gs_store__check_chunk(m, d, k % square, &c, &walk, path));
        chunks[k] = c;
        if (k % square == square - 1)
            GS_TRY(gs_store__check_walk(m, d, &walk, path));
    }
    return gs_store__check_twins(m, (const gs_chunk *const[2]){chunks, m->shared ? chunks : chunks + square},
                                 path);
}

/* The kernel ends a process that takes more than the machine or its cgroup has: tables of many parts are refused before
 * they are read. Pages of the program, which a cgroup need not be charged for, count as if it were. */
static gs_status check_room(const char *dir, const gs_manifest *m, uint64_t bytes)
{
    const uint64_t own = gs_process_resident_bytes();
    const uint64_t free_bytes = bytes < SMALL_TABLE ? UINT64_MAX : gs_machine_free_memory();
    char need[32], beside[32], have[32];

    if (bytes + own < free_bytes)
        return GS_OK;
    return gs_fail(GS_ENOMEM, "%s: its tables of %u parts need %s of memory beside the program's %s, and %s are free; "
                   "give it more, or partition again with fewer .parts", dir, m->info.parts,
                   gs_size_format(need, sizeof(need), bytes), gs_size_format(beside, sizeof(beside), own),
                   gs_size_format(have, sizeof(have), free_bytes));
}

/* Of s->chunks. */
static void set_table(gs_store *s, const gs_manifest *m)
{
    const uint64_t square = (uint64_t)m->info.parts * m->info.parts, count = gs_manifest__chunk_count(m);

    s->table_bytes += count * sizeof(gs_chunk);
    s->table = (gs_chunk_table){
        .vertices = m->info.vertices,
        .parts = m->info.parts,
        .interval_rows = m->info.interval_rows,
        .shared = m->shared,
        .data = m->data,
        .chunk = {s->chunks, m->shared ? s->chunks : s->chunks + square},
    };
    for (uint64_t k = 0; k < count; k++)
        s->table.longest = GS_MAX(s->table.longest, s->chunks[k].length);
}

static gs_status load_table(gs_store *s, const gs_manifest *m)
{
    const uint64_t count = gs_manifest__chunk_count(m), bytes = count * GS_CHUNK_RECORD_BYTES;
    char buf[GS_FILE_NAME_BYTES];
    const char *name = gs_store__file_name(buf, GS_FILE_CHUNKS);
    void *data = NULL;

    GS_TRY(check_room(s->dir, m, bytes));
    GS_TRY(load_file(&data, s->dir, name, bytes, m->chunks_checksum));
    s->chunks = data;
    GS_FREED char *path = gs_path_join(s->dir, name);
    GS_NEED(path != NULL, "%s: no memory to open it", s->dir);
    GS_TRY(unpack_table(s->chunks, m, path));
    set_table(s, m);
    return GS_OK;
}

/* `sums`: of all arrays; NULL: there are none. */
static void set_arrays(gs_store *s, const gs_manifest *m, const uint64_t *sums)
{
    for (unsigned id = 0; id < GS_ARRAY_COUNT; id++) {
        const uint64_t array_bytes = gs_manifest__array_bytes(m, id);
        if (!m->array[id].present)
            continue;
        s->array[id] = (gs_array_info){.present = true,
                                       .dtype = m->array[id].dtype,
                                       .width = m->array[id].width,
                                       .row_bytes = m->array[id].width * gs_dtype_bytes(m->array[id].dtype),
                                       .bytes = array_bytes,
                                       .sums = sums};
        sums += sums != NULL ? gs_div_up(array_bytes, GS_SUM_BYTES) : 0;
    }
}

static gs_status load_sums(gs_store *s, const gs_manifest *m)
{
    const uint64_t bytes = gs_manifest__sum_count(m) * sizeof(uint64_t);
    char buf[GS_FILE_NAME_BYTES];
    void *data = NULL;

    GS_TRY(load_file(&data, s->dir, gs_store__file_name(buf, GS_FILE_SUMS), bytes, m->sums_checksum));
    s->sums = data;
    s->table_bytes += bytes;

    set_arrays(s, m, s->sums);
    const gs_array_info *f = &s->array[GS_ARRAY_FEATURES];
    if (f->present &&
        gs_hash64(f->sums, gs_div_up(f->bytes, GS_SUM_BYTES) * sizeof(uint64_t)) != m->info.feature_id)
        return gs_fail(GS_EFORMAT,
                       "%s/" GS_MANIFEST_NAME ": \"feature_id\" is not that of sums.bin" GS_STORE_DAMAGED,
                       s->dir);
    return GS_OK;
}

/* Opens dir/name in the folder that was opened; no link. */
static gs_status open_in(int *fd, const gs_store *s, const char *name)
{
    *fd = openat(s->folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    return *fd >= 0 ? GS_OK : gs_fail_errno(errno, "%s/%s: cannot open", s->dir, name);
}

static gs_status open_folder(gs_store *s, const char *dir)
{
    char buf[GS_FILE_NAME_BYTES];

    GS_NEED((s->dir = gs_strdup(dir)) != NULL, "%s: no memory to open it", dir);
    s->folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s->folder < 0)
        return gs_fail_errno(errno, "%s: cannot open", dir);
    return open_in(&s->ids, s, gs_store__file_name(buf, GS_FILE_ARRAY0 + GS_ARRAY_INPUT_ID));
}

/* shard.json, where there is one. */
static gs_status load_shard(gs_store_shard *out, gs_extent *extent, const gs_manifest *m, const char *dir,
                            uint64_t *bytes)
{
    GS_FREED char *const path = gs_path_join(dir, GS_SHARD_FILE);
    GS_FREED char *text = NULL;

    *bytes = 0;
    GS_NEED(path != NULL, "%s: no memory to open it", dir);
    if (gs_path_is_absent(path))
        return GS_OK;
    GS_TRY(gs_file_read_own(&text, bytes, path, GS_SHARD_LIMIT));
    return gs_shard__parse(out, extent, m, text, *bytes, path);
}

/* What shard.json says of files is what the deal makes of the tables. */
static gs_status check_extents(gs_store *s, const gs_manifest *m)
{
    for (unsigned k = GS_FILE_DEST; k < GS_STORE_FILES; k++) {
        char buf[GS_FILE_NAME_BYTES];
        gs_extent x = {0};
        if (s->shard.ranks == 0)
            gs_store__file_expected(m, k, &x.bytes);
        else
            x = gs_store__part_of(m, &s->table, &s->shard, k);
        if (s->shard.ranks > 0 && (x.first != s->extent[k].first || x.bytes != s->extent[k].bytes))
            return gs_fail(GS_EFORMAT, "%s/" GS_SHARD_FILE ": says another part of %s than rank %u has of %u; shard "
                           "the store again", s->dir, gs_store__file_name(buf, k), s->shard.rank, s->shard.ranks);
        s->extent[k] = x;
    }
    return GS_OK;
}

/* `part`: it may be a shard. */
static void drop_names(const gs_manifest *m)
{
    gs_free(m->info.types);
    gs_free(m->info.named);
}

static gs_status load_store(gs_store **out, const char *dir, bool part)
{
    GS_ENDS(drop_names) gs_manifest m = {0};
    gs_store_shard shard = {0};
    gs_extent extent[GS_STORE_FILES] = {{0}};
    uint64_t manifest_bytes = 0, file_bytes = 0, shard_bytes = 0;
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;

    GS_TRY(load_manifest(&m, dir, &manifest_bytes));
    GS_TRY(load_shard(&shard, extent, &m, dir, &shard_bytes));
    if (!part && shard.ranks > 0)
        return gs_fail(GS_EINVAL, "%s: is shard %u of %u of a store, one rank's part: start %u ranks by mpirun, with "
                       "the folder of all shards, or give the store", dir, shard.rank, shard.ranks, shard.ranks);
    GS_TRY(gs_store__check_files(&m, shard.ranks > 0 ? extent : NULL, dir, &file_bytes));
    GS_NEED((s = gs_calloc(1, sizeof(*s))) != NULL, "%s: no memory to open it", dir);
    s->folder = s->ids = -1;
    s->info = m.info;
    m.info.types = NULL; /* now the store's */
    m.info.named = NULL;
    GS_TRY(open_folder(s, dir));
    s->shard = shard;
    memcpy(s->extent, extent, sizeof(extent));
    s->info.total_bytes = manifest_bytes + file_bytes + shard_bytes;
    s->table_bytes = sizeof(*s) + strlen(dir) + 1 + (s->info.types != NULL ? sizeof(*s->info.types) : 0) +
                     (s->info.named != NULL ? sizeof(*s->info.named) : 0);
    GS_TRY(load_table(s, &m));
    GS_TRY(check_extents(s, &m));
    GS_TRY(load_sums(s, &m));
    *out = GS_HANDED_OVER(s);
    return GS_OK;
}

gs_status gs_store__of_table(gs_store **out, const char *name, const gs_manifest *m, gs_chunk *chunks, double fuller)
{
    gs_store *const s = gs_calloc(1, sizeof(*s));
    char *const dir = gs_strdup(name);

    if (s == NULL || dir == NULL) {
        gs_free(s);
        gs_free(dir);
        return gs_fail(GS_ENOMEM, "%s: out of memory", name);
    }
    *s = (gs_store){.dir = dir, .folder = -1, .ids = -1, .info = m->info, .chunks = chunks,
                    .fuller = fuller};
    set_table(s, m);
    set_arrays(s, m, NULL);
    *out = s;
    return GS_OK;
}

static gs_status open_store(gs_store **out, const char *dir, bool part)
{
    gs_status st = GS_EIO;

    assert(out != NULL && dir != NULL);
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        const int before = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        gs_store *s = NULL;

        st = load_store(&s, dir, part);
        const bool same = before < 0 || gs_path_is_open_at(dir, before);
        if (before >= 0)
            close(before);
        if (same) {
            if (st == GS_OK)
                *out = s;
            return st;
        }
        gs_store_close(s); /* of two stores, perhaps: another has taken the place meanwhile */
        st = gs_fail(GS_EIO, "%s: is replaced again and again while it is opened", dir);
    }
    return st;
}

gs_status gs_store_open(gs_store **out, const char *dir) { return open_store(out, dir, false); }
gs_status gs_store_open_part(gs_store **out, const char *dir) { return open_store(out, dir, true); }

gs_store *gs_store_share(gs_store *s)
{
    s->sharers++;
    return s;
}

void gs_store_close(gs_store *s)
{
    if (s == NULL || s->sharers-- > 0)
        return;
    if (s->ids >= 0)
        close(s->ids);
    if (s->folder >= 0)
        close(s->folder);
    gs_free(s->info.types);
    gs_free(s->info.named);
    gs_free(s->sums);
    gs_free(s->chunks);
    gs_free(s->dir);
    gs_free(s);
}

gs_status gs_store_check_place(const gs_store *s)
{
    if (gs_path_is_open_at(s->dir, s->folder))
        return GS_OK;
    return gs_fail(GS_EIO, "%s: was replaced or removed while it was opened; start again", s->dir);
}

gs_status gs_store_open_array(int *fd, const gs_store *s, gs_array_id id)
{
    char buf[GS_FILE_NAME_BYTES];

    if (id != GS_ARRAY_INPUT_ID)
        return open_in(fd, s, gs_store__file_name(buf, GS_FILE_ARRAY0 + id));
    *fd = fcntl(s->ids, F_DUPFD_CLOEXEC, 0);
    return *fd >= 0 ? GS_OK : gs_fail_errno(errno, "%s: cannot open its input ids", s->dir);
}

const char *gs_store_dir(const gs_store *s)
{
    return s->dir;
}
const gs_store_info *gs_store_get_info(const gs_store *s)
{
    return &s->info;
}
bool gs_store_is_shape(const gs_store *s)
{
    return s->fuller > 0;
}
double gs_store__fuller(const gs_store *s)
{
    return s->fuller;
}
const gs_chunk_table *gs_store_chunks(const gs_store *s)
{
    return &s->table;
}
const gs_array_info *gs_store_array(const gs_store *s, gs_array_id id)
{
    return &s->array[id];
}
const gs_store_shard *gs_store_get_shard(const gs_store *s)
{
    return s->shard.ranks > 0 ? &s->shard : NULL;
}
gs_extent gs_store_array_extent(const gs_store *s, gs_array_id id)
{
    return s->extent[GS_FILE_ARRAY0 + id];
}
gs_extent gs_store_edges_extent(const gs_store *s, gs_direction d)
{
    return s->extent[s->table.shared || d == GS_BY_DEST ? GS_FILE_DEST : GS_FILE_SOURCE];
}
uint64_t gs_store_table_bytes(const gs_store *s)
{
    return s->table_bytes;
}

char *gs_store_array_path(const gs_store *s, gs_array_id id)
{
    char buf[GS_FILE_NAME_BYTES];
    return gs_path_join(s->dir, gs_store__file_name(buf, GS_FILE_ARRAY0 + id));
}

char *gs_store_edges_path(const gs_store *s, gs_direction d)
{
    return gs_path_join(s->dir, gs_store_edges_name(s->table.shared ? GS_BY_DEST : d));
}
