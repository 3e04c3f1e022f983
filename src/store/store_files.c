/* store_files.c - which files a store has, how big they must be, and what one
 * record of the chunk table may say. Used before writing and after reading. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "store/store_internal.h"
#include "store/store_write.h" /* gs_store_edges_name */

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
        return a->present ? m->info.name_bytes : 0;
    return a->present ? m->info.vertices * a->width * gs_dtype_bytes(a->dtype) : 0;
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
    gs_status st = GS_OK;
    char *path = gs_path_join(dir, name);
    if (path == NULL)
        return gs_fail(GS_ENOMEM, "%s/%s: no memory for its name", dir, name);
    if (lstat(path, &sb) != 0)
        st = gs_fail_errno(errno, "%s", path);
    else if (S_ISLNK(sb.st_mode))
        st = gs_fail(GS_EFORMAT, "%s: is a link, and none is followed out of a store; put the file itself there", path);
    else if (!S_ISREG(sb.st_mode))
        st = gs_fail(GS_ENOTFOUND, "%s: not a regular file", path);
    else
        *bytes = (uint64_t)sb.st_size;
    gs_free(path);
    return st;
}

gs_status gs_store__check_files(const gs_manifest *m, const char *dir, uint64_t *total)
{
    uint64_t sum = 0;
    for (unsigned k = GS_FILE_CHUNKS; k < GS_STORE_FILES; k++) {
        char buf[GS_FILE_NAME_BYTES];
        const char *name = gs_store__file_name(buf, k);
        uint64_t expected = 0, real = 0;
        if (!gs_store__file_expected(m, k, &expected))
            continue;
        const gs_status st = gs_store__file_size(&real, dir, name);
        if (st == GS_ENOTFOUND)
            return gs_fail(GS_EFORMAT, "%s/%s: missing" GS_STORE_DAMAGED, dir, name);
        if (st != GS_OK)
            return st;
        if (real != expected)
            return gs_fail(GS_EFORMAT, "%s/%s: has %llu bytes instead of %llu" GS_STORE_DAMAGED, dir, name,
                           (unsigned long long)real, (unsigned long long)expected);
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
        gs_chunk_bytes(c->edges, c->targets, c->operands, gs_index_bytes(&t), m->type_bytes, m->info.weights))
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
        return gs_fail(GS_EFORMAT, "%s: chunk (%llu, %llu) %s %s" GS_STORE_DAMAGED, path,
                       (unsigned long long)(k / m->info.parts), (unsigned long long)(k % m->info.parts),
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
        return gs_fail(GS_EFORMAT, "%s: chunks %s have %llu edges, the manifest %llu" GS_STORE_DAMAGED, path,
                       gs_chunk__direction_name(d), (unsigned long long)walk->edges,
                       (unsigned long long)m->info.edges);
    if (walk->end != m->edge_bytes[d])
        return gs_fail(GS_EFORMAT, "%s: chunks %s end at byte %llu, %s at %llu" GS_STORE_DAMAGED, path,
                       gs_chunk__direction_name(d), (unsigned long long)walk->end, gs_store_edges_name(d),
                       (unsigned long long)m->edge_bytes[d]);
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
                               "%s: chunk (%llu, %llu) by destination and (%llu, %llu) by source differ in "
                               "counts" GS_STORE_DAMAGED,
                               path, (unsigned long long)i, (unsigned long long)j, (unsigned long long)j,
                               (unsigned long long)i);
        }
    return GS_OK;
}
