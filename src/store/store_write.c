/* store_write.c - the life of a store's directory before it is a store.
 *
 *   (nothing, or an empty folder) --begin--> marker + files in the making
 *   marker + files --finish--> manifest, no marker: a store
 *   marker + files --abandon--> (nothing)
 *   a store --begin with force--> marker + (old files removed)
 *
 * The marker tells an unfinished store from files that merely have its names:
 * only a folder that is known to be ours is ever emptied. */
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
#include "store/store_internal.h"

#define MANIFEST_TMP GS_MANIFEST_NAME ".tmp" /* what gs_file_write_atomic() leaves when it is killed */

static bool is_store_name(const char *name)
{
    char buf[GS_FILE_NAME_BYTES];
    for (unsigned k = 0; k < GS_STORE_FILES; k++)
        if (strcmp(name, gs_store__file_name(buf, k)) == 0)
            return true;
    return strcmp(name, GS_MARKER_NAME) == 0 || strcmp(name, MANIFEST_TMP) == 0;
}

/* Removes dir/name if it is there. Records no error: it may run after one. */
static int remove_name(const char *dir, const char *name)
{
    char *path = gs_path_join(dir, name);
    if (path == NULL)
        return ENOMEM;
    const int err = unlink(path) != 0 && errno != ENOENT ? errno : 0;
    gs_free(path);
    return err;
}

/* The manifest first, so that the folder is never a store with files missing. The marker stays. */
static int remove_files(const char *dir)
{
    int err = 0;
    for (unsigned k = 0; k < GS_STORE_FILES && err == 0; k++) {
        char buf[GS_FILE_NAME_BYTES];
        err = remove_name(dir, gs_store__file_name(buf, k));
    }
    return err ? err : remove_name(dir, MANIFEST_TMP);
}

static bool has(const char *dir, const char *name)
{
    char *path = gs_path_join(dir, name);
    const bool there = path != NULL && gs_path_exists(path);
    gs_free(path);
    return there;
}

static bool has_our_manifest(const char *dir)
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

typedef struct listing {
    bool any;          /* there are entries */
    char foreign[256]; /* one that is no part of a store, "" for none */
} listing;

static gs_status list(listing *out, const char *dir)
{
    DIR *d = opendir(dir);
    *out = (listing){0};
    if (d == NULL)
        return gs_fail_errno(errno, "%s", dir);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        out->any = true;
        if (!is_store_name(e->d_name))
            snprintf(out->foreign, sizeof(out->foreign), "%s", e->d_name);
    }
    closedir(d);
    return GS_OK;
}

static gs_status sync_dir(const char *dir)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return gs_fail_errno(errno, "%s", dir);
    const int err = fsync(fd) != 0 ? errno : 0;
    close(fd);
    /* EINVAL: this file system cannot sync folders; nothing more can be done. */
    return err != 0 && err != EINVAL ? gs_fail_errno(err, "%s: sync failed", dir) : GS_OK;
}

/* Creates the marker, which must survive a crash before anything is removed. */
static gs_status mark(const char *dir)
{
    char *path = gs_path_join(dir, GS_MARKER_NAME);
    if (path == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to begin a store", dir);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    const gs_status st = fd < 0 ? gs_fail_errno(errno, "%s", path) : sync_dir(dir);
    if (fd >= 0)
        close(fd);
    gs_free(path);
    return st;
}

/* May the non-empty folder be emptied? */
static gs_status may_replace(const char *dir, const listing *l, bool force)
{
    const bool store = has_our_manifest(dir), begun = has(dir, GS_MARKER_NAME);
    if (l->foreign[0] != '\0')
        return gs_fail(GS_EEXIST, "%s: holds \"%s\", which is no part of a store; choose another folder", dir,
                       l->foreign);
    if (!store && !begun && !has(dir, gs_store_edges_name(GS_BY_DEST)))
        return gs_fail(GS_EEXIST,
                       "%s: holds files, and it is not sure that they are a store's; remove them or choose "
                       "another folder",
                       dir);
    if (!force)
        return gs_fail(GS_EEXIST, "%s: holds %s already; use .force to replace it", dir,
                       store ? "a store" : "an unfinished store");
    return GS_OK;
}

gs_status gs_store_begin(const char *dir, bool force)
{
    listing l;
    gs_status st;
    int err;

    if ((st = gs_mkdir(dir)) != GS_OK || (st = list(&l, dir)) != GS_OK)
        return st;
    if (l.any && (st = may_replace(dir, &l, force)) != GS_OK)
        return st;
    if ((st = mark(dir)) != GS_OK)
        return st;
    if ((err = remove_files(dir)) != 0)
        return gs_fail_errno(err, "%s: removing the old store failed", dir);
    return l.any ? sync_dir(dir) : GS_OK;
}

void gs_store_abandon(const char *dir)
{
    if (!has(dir, GS_MARKER_NAME))
        return; /* never begun, or finished: not ours to remove */
    if (remove_files(dir) != 0)
        return;
    remove_name(dir, GS_MARKER_NAME);
    rmdir(dir); /* fails, as it should, where something else is inside */
}

static void manifest_of(gs_manifest *m, const gs_store_contents *c)
{
    const gs_array_info *f = &c->array[GS_ARRAY_FEATURES];
    *m = (gs_manifest){.info = c->info, .shared = c->chunks.shared, .type_bytes = c->chunks.type_bytes};
    for (unsigned id = 0; id < GS_ARRAY_COUNT; id++)
        if (c->array[id].present)
            m->array[id] = (struct gs_manifest_array){true, c->array[id].dtype, c->array[id].width};
    m->info.total_bytes = 0;
    m->info.feature_id = 0;
    if (f->present)
        m->info.feature_id =
            gs_hash64(f->sums, gs_div_up(gs_manifest__array_bytes(m, GS_ARRAY_FEATURES), GS_SUM_BYTES) *
                                   sizeof(uint64_t));
}

/* What the caller says twice must be the same. */
static gs_status contents_check(const gs_store_contents *c, const gs_manifest *m, const char *dir)
{
    const gs_chunk_table *t = &c->chunks;
    if (t->vertices != m->info.vertices || t->parts != m->info.parts ||
        t->interval_rows != m->info.interval_rows || t->weights != m->info.weights)
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

/* Creates (or empties) a file, writes and closes it; gs_store_finish() syncs them all. */
static gs_status write_file(const char *path, const void *data, uint64_t bytes)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return gs_fail_errno(errno, "%s", path);
    const gs_status st = gs_pwrite_exact(fd, data, bytes, 0, path);
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
    return sync_dir(dir);
}

static gs_status write_manifest(const gs_manifest *m, const char *dir)
{
    char *text = NULL, *path = gs_path_join(dir, GS_MANIFEST_NAME);
    uint64_t bytes = 0;
    gs_status st = path != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory to write the manifest", dir);
    if (st == GS_OK && (st = gs_manifest__format(&text, &bytes, m)) == GS_OK)
        st = gs_file_write_atomic(path, text, bytes);
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

gs_status gs_store_finish(const char *dir, const gs_store_contents *contents)
{
    gs_manifest m;
    uint64_t total = 0;
    gs_status st;
    int err;

    manifest_of(&m, contents);
    if ((st = edge_sizes(&m, dir)) != GS_OK || (st = gs_manifest__check(&m, dir)) != GS_OK ||
        (st = contents_check(contents, &m, dir)) != GS_OK || (st = write_table(&m, contents, dir)) != GS_OK ||
        (st = write_sums(&m, contents, dir)) != GS_OK ||
        (st = gs_store__check_files(&m, dir, &total)) != GS_OK)
        return st == GS_EFORMAT ? GS_EINVAL : st; /* nothing was read: the caller's numbers are wrong */
    if ((st = sync_files(&m, dir)) != GS_OK || (st = write_manifest(&m, dir)) != GS_OK)
        return st;
    if ((err = remove_name(dir, GS_MARKER_NAME)) != 0)
        return gs_fail_errno(err, "%s/" GS_MARKER_NAME ": could not be removed", dir);
    return sync_dir(dir);
}
