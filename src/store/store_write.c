/* store_write.c - a store's folder from its first file to its manifest.
 *
 *   begin    a staging folder beside the folder (base/temporary.h), once what is there may be replaced
 *   files    written into the staging folder by the caller
 *   finish   tables, manifest, everything synced; then the staging folder takes its place
 *
 * Only a folder that is known to be a store's is ever replaced. */
#include "store/store_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/temporary.h"
#include "store/store_internal.h"

/* Versions that wrote a store in its place left these when they were killed. */
#define MANIFEST_TMP GS_MANIFEST_NAME ".tmp"
#define GS_MARKER_NAME "store.unfinished"

static bool is_store_name(const char *name)
{
    char buf[GS_FILE_NAME_BYTES];
    for (unsigned k = 0; k < GS_STORE_FILES; k++)
        if (strcmp(name, gs_store__file_name(buf, k)) == 0)
            return true;
    return strcmp(name, GS_MARKER_NAME) == 0 || strcmp(name, MANIFEST_TMP) == 0;
}

bool gs_store_is_at(const char *dir)
{
    char *path = gs_path_join(dir, GS_MANIFEST_NAME), *text = NULL;
    uint64_t bytes = 0;
    bool ours = false;
    if (path != NULL && gs_file_read_all(&text, &bytes, path, GS_MANIFEST_LIMIT) == GS_OK)
        ours = strstr(text, "\"" GS_MANIFEST_FORMAT "\"") != NULL;
    gs_free(text);
    gs_free(path);
    return ours;
}

/* The name of an entry that is no part of a store, "" where there is none. */
static gs_status find_foreign(char *out, size_t capacity, const char *dir)
{
    DIR *d = opendir(dir);
    out[0] = '\0';
    if (d == NULL)
        return gs_fail_errno(errno, "%s", dir);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && !is_store_name(e->d_name))
            snprintf(out, capacity, "%s", e->d_name);
    closedir(d);
    return GS_OK;
}

/* May the folder, which is not empty, be replaced? */
static gs_status may_replace(const char *dir, bool force)
{
    const bool store = gs_store_is_at(dir), begun = gs_path_has(dir, GS_MARKER_NAME);
    char foreign[256];
    gs_status st;

    if (force) /* what a killed run left must not keep a store from being made again */
        gs_temporary_sweep(dir, foreign);
    st = find_foreign(foreign, sizeof(foreign), dir);
    if (st != GS_OK)
        return st;
    if (force && gs_is_temporary(foreign))
        return gs_fail(GS_EEXIST, "%s: is in use: a run keeps \"%s\" in it; try again when it has ended", dir, foreign);
    if (foreign[0] != '\0' && !gs_is_temporary(foreign))
        return gs_fail(GS_EEXIST, "%s: holds \"%s\", which is no part of a store; choose another folder", dir,
                       foreign);
    if (!store && !begun && !gs_path_has(dir, gs_store_edges_name(GS_BY_DEST)))
        return gs_fail(GS_EEXIST,
                       "%s: holds files, and it is not sure that they are a store's; remove them or choose "
                       "another folder",
                       dir);
    if (!force)
        return gs_fail(GS_EEXIST, "%s: holds %s already; use .force to replace it", dir,
                       store ? "a store" : "an unfinished store");
    return GS_OK;
}

static bool is_store(void *context, const char *dir)
{
    (void)context;
    return gs_store_is_at(dir);
}

gs_status gs_store_check_outside(const char *dir)
{
    char *const own = gs_path_without_slashes(dir);
    char *const beside = own != NULL && gs_path_is_dir(own) ? gs_path_join(own, "../any") : NULL;
    bool inside = false;
    gs_status st = own != NULL ? gs_path_climb(&inside, beside != NULL ? beside : own, is_store, NULL)
                               : gs_fail(GS_ENOMEM, "%s: out of memory", dir);

    if (st == GS_OK && inside)
        st = gs_fail(GS_EEXIST, "%s: is in the folder of a store; choose another folder", dir);
    gs_free(beside);
    gs_free(own);
    return st;
}

gs_status gs_store_begin(gs_staging **out, const char *dir, bool force)
{
    static const gs_staging_kind kind = {is_store_name, may_replace};
    const gs_status st = gs_store_check_outside(dir);
    return st == GS_OK ? gs_staging_begin(out, dir, &kind, force) : st;
}

static void manifest_of(gs_manifest *m, const gs_store_contents *c)
{
    const gs_array_info *f = &c->array[GS_ARRAY_FEATURES];
    *m = (gs_manifest){.version = 2, .info = c->info, .shared = c->chunks.shared, .data = c->chunks.data};
    for (unsigned id = 0; id < GS_ARRAY_COUNT; id++)
        if (c->array[id].present) {
            m->array[id] = (struct gs_manifest_array){true, c->array[id].dtype, c->array[id].width};
            m->version = id >= GS_ARRAY_TRAIN_LINKS ? 3 : m->version;
        }
    m->version = c->info.edge_features > 0 ? GS_STORE_EDGE_FEATURES : m->version;
    m->version = c->info.types != NULL ? GS_STORE_VERTEX_TYPES : m->version;
    m->version = c->info.link_labels ? GS_STORE_LINK_LABELS : m->version;
    m->version = c->info.named != NULL ? GS_STORE_NAMED_FEATURES : m->version;
    m->version = c->array[GS_ARRAY_EDGE_TYPE_NAMES].present ? GS_STORE_EDGE_TYPE_NAMES : m->version;
    m->info.total_bytes = 0;
    m->info.name_bytes = c->array[GS_ARRAY_NAMES].present ? c->array[GS_ARRAY_NAMES].bytes : 0;
    m->info.edge_type_name_bytes = c->array[GS_ARRAY_EDGE_TYPE_NAMES].bytes;
    m->info.feature_id = 0;
    if (f->present)
        m->info.feature_id =
            gs_hash64(f->sums, gs_div_up(gs_manifest__array_bytes(m, GS_ARRAY_FEATURES), GS_SUM_BYTES) *
                                   sizeof(uint64_t));
}

/* Checks that figures which the caller gives twice are the same. */
static gs_status contents_check(const gs_store_contents *c, const gs_manifest *m, const char *dir)
{
    const gs_chunk_table *t = &c->chunks;
    if (t->vertices != m->info.vertices || t->parts != m->info.parts ||
        t->interval_rows != m->info.interval_rows || t->data.weights != m->info.weights)
        return gs_fail(GS_EINVAL, "%s: the chunk table and the store's numbers disagree", dir);
    for (unsigned id = 0; id < GS_ARRAY_COUNT; id++)
        if (c->array[id].present && c->array[id].bytes != 0 &&
            c->array[id].bytes != gs_manifest__array_bytes(m, id))
            return gs_fail(GS_EINVAL, "%s/%s.bin: said to have %llu bytes of rows instead of %llu", dir,
                           gs_array_stem(id), (unsigned long long)c->array[id].bytes,
                           (unsigned long long)gs_manifest__array_bytes(m, id));
    return GS_OK;
}

/* Records of one direction, checked; empty chunks stand where the next begins. */
static gs_status pack_direction(char *records, const gs_manifest *m, const gs_store_contents *c,
                                gs_direction d, const char *path)
{
    const uint64_t square = (uint64_t)m->info.parts * m->info.parts;
    gs_table_walk walk = {0};
    gs_status st;
    for (uint64_t k = 0; k < square; k++) {
        gs_chunk chunk = c->chunks.chunk[d][k];
        if (chunk.edges == 0)
            chunk.offset = walk.end;
        if ((st = gs_store__check_chunk(m, d, k, &chunk, &walk, path)) != GS_OK)
            return st;
        gs_store__record_save(records + k * GS_CHUNK_RECORD_BYTES, &chunk);
    }
    return gs_store__check_walk(m, d, &walk, path);
}

/* Creates (or empties) a file, writes, syncs and closes it. */
static gs_status write_file(const char *path, const void *data, uint64_t bytes)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return gs_fail_errno(errno, "%s", path);
    gs_status st = gs_pwrite_exact(fd, data, bytes, 0, path);
    if (st == GS_OK && fsync(fd) != 0)
        st = gs_fail_errno(errno, "%s: sync failed", path);
    if (close(fd) != 0 && st == GS_OK)
        return gs_fail_errno(errno, "%s: close failed", path);
    return st;
}

static gs_status write_table(gs_manifest *m, const gs_store_contents *c, const char *dir)
{
    const uint64_t square = (uint64_t)m->info.parts * m->info.parts;
    const uint64_t bytes = gs_manifest__chunk_count(m) * GS_CHUNK_RECORD_BYTES;
    char *path = gs_path_join(dir, "chunks.bin"), *records = gs_malloc(bytes);
    gs_status st;

    if (path == NULL || records == NULL) {
        st = gs_fail(GS_ENOMEM, "%s: no memory to write the chunk table", dir);
        goto done;
    }
    if ((st = pack_direction(records, m, c, GS_BY_DEST, path)) != GS_OK)
        goto done;
    if (!m->shared &&
        (st = pack_direction(records + square * GS_CHUNK_RECORD_BYTES, m, c, GS_BY_SOURCE, path)) != GS_OK)
        goto done;
    if ((st = gs_store__check_twins(m, c->chunks.chunk, path)) != GS_OK)
        goto done;
    m->chunks_checksum = gs_hash64(records, bytes);
    st = write_file(path, records, bytes);
done:
    gs_free(records);
    gs_free(path);
    return st;
}

static gs_status write_sums(gs_manifest *m, const gs_store_contents *c, const char *dir)
{
    const uint64_t count = gs_manifest__sum_count(m);
    char *path = gs_path_join(dir, "sums.bin");
    uint64_t *sums = gs_malloc_array(count, sizeof(*sums)), next = 0;
    gs_status st;

    if (path == NULL || sums == NULL) {
        st = gs_fail(GS_ENOMEM, "%s: no memory to write the checksums", dir);
        goto done;
    }
    for (unsigned id = 0; id < GS_ARRAY_COUNT; id++) {
        const uint64_t n = gs_div_up(gs_manifest__array_bytes(m, id), GS_SUM_BYTES);
        if (n > 0)
            memcpy(sums + next, c->array[id].sums, n * sizeof(*sums));
        next += n;
    }
    m->sums_checksum = gs_hash64(sums, count * sizeof(*sums));
    st = write_file(path, sums, count * sizeof(*sums));
done:
    gs_free(sums);
    gs_free(path);
    return st;
}

static gs_status sync_files(const gs_manifest *m, const char *dir)
{
    for (unsigned k = GS_FILE_CHUNKS; k < GS_STORE_FILES; k++) {
        char buf[GS_FILE_NAME_BYTES];
        uint64_t bytes = 0;
        if (!gs_store__file_expected(m, k, &bytes))
            continue;
        char *path = gs_path_join(dir, gs_store__file_name(buf, k));
        if (path == NULL)
            return gs_fail(GS_ENOMEM, "%s: no memory to sync its files", dir);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        const gs_status st = fd < 0 || fsync(fd) != 0 ? gs_fail_errno(errno, "%s: sync failed", path) : GS_OK;
        if (fd >= 0)
            close(fd);
        gs_free(path);
        if (st != GS_OK)
            return st;
    }
    return GS_OK;
}

static gs_status write_manifest(const gs_manifest *m, const char *dir)
{
    char *text = NULL, *path = gs_path_join(dir, GS_MANIFEST_NAME);
    uint64_t bytes = 0;
    gs_status st = path != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory to write the manifest", dir);
    if (st == GS_OK && (st = gs_manifest__format(&text, &bytes, m)) == GS_OK)
        st = write_file(path, text, bytes);
    gs_free(text);
    gs_free(path);
    return st;
}

/* Size of the edge file that the caller wrote. */
static gs_status edge_sizes(gs_manifest *m, const char *dir)
{
    gs_status st = gs_store__file_size(&m->edge_bytes[0], dir, gs_store_edges_name(GS_BY_DEST));
    if (st == GS_OK && !m->shared)
        st = gs_store__file_size(&m->edge_bytes[1], dir, gs_store_edges_name(GS_BY_SOURCE));
    return st;
}

gs_status gs_store_finish(gs_staging *staging, const gs_store_contents *contents)
{
    const char *const dir = gs_staging_dir(staging);
    gs_manifest m;
    uint64_t total = 0;
    gs_status st;

    manifest_of(&m, contents);
    if ((st = edge_sizes(&m, dir)) != GS_OK || (st = gs_manifest__check(&m, dir)) != GS_OK ||
        (st = contents_check(contents, &m, dir)) != GS_OK || (st = write_table(&m, contents, dir)) != GS_OK ||
        (st = write_sums(&m, contents, dir)) != GS_OK ||
        (st = gs_store__check_files(&m, dir, &total)) != GS_OK)
        return st == GS_EFORMAT ? GS_EINVAL : st; /* nothing was read: the caller's numbers are wrong */
    if ((st = sync_files(&m, dir)) != GS_OK || (st = write_manifest(&m, dir)) != GS_OK)
        return st;
    return gs_staging_publish(staging);
}
