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
    return strcmp(name, GS_MARKER_NAME) == 0 || strcmp(name, MANIFEST_TMP) == 0 || strcmp(name, GS_SHARD_FILE) == 0;
}

bool gs_store_is_at(const char *dir)
{
    GS_FREED char *path = gs_path_join(dir, GS_MANIFEST_NAME);
    GS_FREED char *text = NULL;
    uint64_t bytes = 0;
    bool ours = false;
    if (path != NULL && gs_file_read_all(&text, &bytes, path, GS_MANIFEST_LIMIT) == GS_OK)
        ours = strstr(text, "\"" GS_MANIFEST_FORMAT "\"") != NULL;
    return ours;
}

/* The name of an entry that is no part of a store, "" where there is none. */
static gs_status find_foreign(char *out, size_t capacity, const char *dir)
{
    GS_ENDS(gs_closedir_at) DIR *d = opendir(dir);
    out[0] = '\0';
    if (d == NULL)
        return gs_fail_errno(errno, "%s", dir);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && !is_store_name(e->d_name))
            snprintf(out, capacity, "%s", e->d_name);
    return GS_OK;
}

/* May the folder, which is not empty, be replaced? */
static gs_status may_replace(const char *dir, bool force)
{
    const bool store = gs_store_is_at(dir), begun = gs_path_has(dir, GS_MARKER_NAME);
    char foreign[256];

    if (force) /* what a killed run left must not keep a store from being made again */
        gs_temporary_sweep(dir, foreign);
    GS_TRY(find_foreign(foreign, sizeof(foreign), dir));
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
    GS_FREED char *const own = gs_path_without_slashes(dir);
    GS_FREED char *const beside = own != NULL && gs_path_is_dir(own) ? gs_path_join(own, "../any") : NULL;
    bool inside = false;
    gs_status st = own != NULL ? gs_path_climb(&inside, beside != NULL ? beside : own, is_store, NULL)
                               : gs_fail(GS_ENOMEM, "%s: out of memory", dir);

    if (st == GS_OK && inside)
        st = gs_fail(GS_EEXIST, "%s: is in the folder of a store; choose another folder", dir);
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
            return gs_fail(GS_EINVAL, "%s/%s.bin: said to have %lu bytes of rows instead of %lu", dir,
                           gs_array_stem(id), c->array[id].bytes, gs_manifest__array_bytes(m, id));
    return GS_OK;
}

/* Records of one direction, checked; empty chunks stand where the next begins. */
static gs_status pack_direction(char *records, const gs_manifest *m, const gs_store_contents *c,
                                gs_direction d, const char *path)
{
    const uint64_t square = (uint64_t)m->info.parts * m->info.parts;
    gs_table_walk walk = {0};
    for (uint64_t k = 0; k < square; k++) {
        gs_chunk chunk = c->chunks.chunk[d][k];
        if (chunk.edges == 0)
            chunk.offset = walk.end;
        GS_TRY(gs_store__check_chunk(m, d, k, &chunk, &walk, path));
        gs_store__record_save(records + k * GS_CHUNK_RECORD_BYTES, &chunk);
    }
    return gs_store__check_walk(m, d, &walk, path);
}

static gs_status sync_and_close(int fd, gs_status st, const char *path)
{
    if (st == GS_OK && fsync(fd) != 0)
        st = gs_fail_errno(errno, "%s: sync failed", path);
    if (close(fd) != 0 && st == GS_OK)
        st = gs_fail_errno(errno, "%s: close failed", path);
    return st;
}

/* Creates (or empties) a file, writes, syncs and closes it. */
static gs_status write_file(const char *path, const void *data, uint64_t bytes)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return gs_fail_errno(errno, "%s", path);
    return sync_and_close(fd, gs_pwrite_exact(fd, data, bytes, 0, path), path);
}

static gs_status write_table(gs_manifest *m, const gs_store_contents *c, const char *dir)
{
    const uint64_t square = (uint64_t)m->info.parts * m->info.parts;
    const uint64_t bytes = gs_manifest__chunk_count(m) * GS_CHUNK_RECORD_BYTES;
    GS_FREED char *path = gs_path_join(dir, "chunks.bin");
    GS_FREED char *records = gs_malloc(bytes);

    GS_NEED(path != NULL && records != NULL, "%s: no memory to write the chunk table", dir);
    GS_TRY(pack_direction(records, m, c, GS_BY_DEST, path));
    if (!m->shared)
        GS_TRY(pack_direction(records + square * GS_CHUNK_RECORD_BYTES, m, c, GS_BY_SOURCE, path));
    GS_TRY(gs_store__check_twins(m, c->chunks.chunk, path));
    m->chunks_checksum = gs_hash64(records, bytes);
    return write_file(path, records, bytes);
}

static gs_status write_sums(gs_manifest *m, const gs_store_contents *c, const char *dir)
{
    const uint64_t count = gs_manifest__sum_count(m);
    GS_FREED char *path = gs_path_join(dir, "sums.bin");
    GS_FREED uint64_t *sums = gs_malloc_array(count, sizeof(*sums));
    uint64_t next = 0;

    GS_NEED(path != NULL && sums != NULL, "%s: no memory to write the checksums", dir);
    for (unsigned id = 0; id < GS_ARRAY_COUNT; id++) {
        const uint64_t n = gs_div_up(gs_manifest__array_bytes(m, id), GS_SUM_BYTES);
        if (n > 0)
            memcpy(sums + next, c->array[id].sums, n * sizeof(*sums));
        next += n;
    }
    m->sums_checksum = gs_hash64(sums, count * sizeof(*sums));
    return write_file(path, sums, count * sizeof(*sums));
}

static gs_status sync_files(const gs_manifest *m, const char *dir)
{
    for (unsigned k = GS_FILE_CHUNKS; k < GS_STORE_FILES; k++) {
        char buf[GS_FILE_NAME_BYTES];
        uint64_t bytes = 0;
        if (!gs_store__file_expected(m, k, &bytes))
            continue;
        GS_FREED char *path = gs_path_join(dir, gs_store__file_name(buf, k));
        GS_NEED(path != NULL, "%s: no memory to sync its files", dir);
        GS_CLOSED const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fsync(fd) != 0)
            return gs_fail_errno(errno, "%s: sync failed", path);
    }
    return GS_OK;
}

static gs_status write_manifest(const gs_manifest *m, const char *dir)
{
    GS_FREED char *text = NULL, *path = gs_path_join(dir, GS_MANIFEST_NAME);
    uint64_t bytes = 0;
    GS_TRY(path != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory to write the manifest", dir));
    GS_TRY(gs_manifest__format(&text, &bytes, m));
    return write_file(path, text, bytes);
}

static uint64_t edge_bytes(const gs_chunk *chunk, uint64_t chunks)
{
    uint64_t bytes = 0;
    for (uint64_t k = 0; k < chunks; k++)
        bytes += chunk[k].length;
    return bytes;
}

/* Sizes of the edge files: that the caller wrote, or of which he wrote a part. */
static gs_status edge_sizes(gs_manifest *m, const gs_store_contents *c, const char *dir)
{
    const uint64_t square = (uint64_t)m->info.parts * m->info.parts;

    if (c->shard != NULL) {
        m->edge_bytes[0] = edge_bytes(c->chunks.chunk[0], square);
        m->edge_bytes[1] = m->shared ? 0 : edge_bytes(c->chunks.chunk[1], square);
        return GS_OK;
    }
    GS_TRY(gs_store__file_size(&m->edge_bytes[0], dir, gs_store_edges_name(GS_BY_DEST)));
    return m->shared ? GS_OK : gs_store__file_size(&m->edge_bytes[1], dir, gs_store_edges_name(GS_BY_SOURCE));
}

/* shard.json, for which the manifest is read as others will. */
static gs_status write_shard(const gs_store_contents *c, const gs_manifest *m, const gs_extent *extent, const char *dir)
{
    GS_FREED char *const path = gs_path_join(dir, GS_SHARD_FILE), *text = NULL;
    gs_store_shard x = *c->shard;
    gs_manifest read = {0};
    uint64_t bytes = 0;
    gs_status st = path != NULL ? gs_manifest__format(&text, &bytes, m) : gs_fail(GS_ENOMEM, "%s: out of memory", dir);

    if (st == GS_OK && (st = gs_manifest__parse(&read, text, bytes, path)) == GS_OK) {
        x.store_id = read.info.id;
        gs_free(text);
        text = NULL;
        if ((st = gs_shard__format(&text, &bytes, &x, extent, m)) == GS_OK)
            st = write_file(path, text, bytes);
    }
    gs_free(read.info.types);
    gs_free(read.info.named);
    return st;
}

gs_status gs_store_finish(gs_staging *staging, const gs_store_contents *contents)
{
    const char *const dir = gs_staging_dir(staging);
    gs_extent extent[GS_STORE_FILES] = {{0, 0}};
    const bool part = contents->shard != NULL;
    gs_manifest m;
    uint64_t total = 0;
    gs_status st;

    manifest_of(&m, contents);
    if ((st = edge_sizes(&m, contents, dir)) != GS_OK || (st = gs_manifest__check(&m, dir)) != GS_OK ||
        (st = contents_check(contents, &m, dir)) != GS_OK || (st = write_table(&m, contents, dir)) != GS_OK ||
        (st = write_sums(&m, contents, dir)) != GS_OK)
        return st == GS_EFORMAT ? GS_EINVAL : st; /* nothing was read: the caller's numbers are wrong */
    for (unsigned k = GS_FILE_DEST; k < GS_STORE_FILES && part; k++)
        extent[k] = gs_store__part_of(&m, &contents->chunks, contents->shard, k);
    if ((st = gs_store__check_files(&m, part ? extent : NULL, dir, &total)) != GS_OK)
        return st == GS_EFORMAT ? GS_EINVAL : st;
    if ((st = sync_files(&m, dir)) != GS_OK || (part && (st = write_shard(contents, &m, extent, dir)) != GS_OK) ||
        (st = write_manifest(&m, dir)) != GS_OK)
        return st;
    return part ? GS_OK : gs_staging_publish(staging);
}

/* ---- arrays --------------------------------------------------------------- */

gs_status gs_array_begin(gs_array_writer *w, const char *dir, gs_array_id id)
{
    char name[GS_FILE_NAME_BYTES];

    w->path = gs_path_join(dir, gs_store__file_name(name, GS_FILE_ARRAY0 + id));
    w->piece = gs_malloc(GS_SUM_BYTES);
    GS_NEED(w->path != NULL && w->piece != NULL, "%s: no memory for %s", dir, gs_array_stem(id));
    if ((w->fd = open(w->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) < 0)
        return gs_fail_errno(errno, "%s: cannot make this file", w->path);
    return GS_OK;
}

/* The piece, full or the last one, with zeros behind it. */
static gs_status put_piece(gs_array_writer *w)
{
    const uint64_t at = w->written, end = at + gs_align_up(w->fill, GS_BLOCK_BYTES);
    const uint64_t first = GS_MAX(at, w->here.first), last = GS_MIN(end, w->here.first + w->here.bytes);
    const uint32_t k = (uint32_t)(at / GS_SUM_BYTES);

    GS_NEED(gs_grow(&w->sums, k, &w->sums_room, sizeof(*w->sums)), "%s: no memory for its checksums", w->path);
    memset(w->piece + w->fill, 0, end - at - w->fill);
    w->sums[k] = gs_hash64(w->piece, w->fill);
    w->written += w->fill;
    w->fill = 0;
    if (first >= last)
        return GS_OK;
    return gs_pwrite_exact(w->fd, w->piece + (first - at), last - first, first - w->here.first, w->path);
}

gs_status gs_array_put(gs_array_writer *w, const void *bytes, uint64_t count)
{
    for (const char *from = bytes; count > 0;) {
        const uint64_t take = GS_MIN(count, GS_SUM_BYTES - w->fill);
        memcpy(w->piece + w->fill, from, take);
        w->fill += take;
        from += take;
        count -= take;
        if (w->fill == GS_SUM_BYTES)
            GS_TRY(put_piece(w));
    }
    return GS_OK;
}

gs_status gs_array_end(gs_array_writer *w, gs_array_info *info, gs_dtype dtype, uint32_t width)
{
    if (w->fill > 0)
        GS_TRY(put_piece(w));
    *info = (gs_array_info){.present = true, .dtype = dtype, .width = width, .bytes = w->written,
                            .row_bytes = width * gs_dtype_bytes(dtype), .sums = w->sums};
    w->sums = NULL; /* now the caller's */
    return GS_OK;
}

void gs_array_writer_free(gs_array_writer *w)
{
    gs_close_at(&w->fd);
    gs_free(w->path);
    gs_free(w->piece);
    gs_free(w->sums);
}

/* ---- shards --------------------------------------------------------------- */

#define COPY_BYTES (8 * GS_MIB)

typedef struct sharding {
    const gs_store *store;
    const gs_shard_job *job;
    gs_manifest m;
    gs_store_shard shard;                        /* of the rank at hand */
    gs_extent extent[GS_STORE_FILES];            /* likewise */
    gs_staging *staging[GS_SHARDS_MOST];
    char *place[GS_SHARDS_MOST];
    uint64_t done, total;                        /* bytes of all shards */
} sharding;

static gs_status go_on(sharding *x, uint64_t bytes)
{
    const gs_shard_job *const job = x->job;

    x->done += bytes;
    if (job->stop != NULL && *job->stop)
        return gs_fail(GS_EINTERRUPTED, "%s: interrupted", gs_store_dir(x->store));
    if (job->progress != NULL)
        job->progress(job->context, "copying shards", (double)x->done / (double)GS_MAX(x->total, 1));
    return GS_OK;
}

static void set_rank(sharding *x, uint32_t rank)
{
    x->shard.rank = rank;
    for (unsigned k = GS_FILE_DEST; k < GS_STORE_FILES; k++)
        x->extent[k] = gs_store__part_of(&x->m, gs_store_chunks(x->store), &x->shard, k);
}

/* Where a piece of file k that begins at byte `at` ends, and the checksum of it without padding. */
static uint64_t piece_at(const sharding *x, unsigned k, uint64_t at, uint64_t *covered, uint64_t *sum)
{
    if (k < GS_FILE_ARRAY0) {
        const gs_chunk_table *const t = gs_store_chunks(x->store);
        const gs_chunk *const c = t->chunk[k == GS_FILE_DEST ? GS_BY_DEST : GS_BY_SOURCE];
        uint64_t low = 0, high = (uint64_t)t->parts * t->parts;
        while (low + 1 < high) { /* the last that begins there: empty ones stand before it */
            const uint64_t mid = low + (high - low) / 2;
            *(c[mid].offset <= at ? &low : &high) = mid;
        }
        *covered = c[low].length;
        *sum = c[low].checksum;
        return at + c[low].length;
    }
    const gs_array_info *const a = gs_store_array(x->store, (gs_array_id)(k - GS_FILE_ARRAY0));
    *covered = GS_MIN(GS_SUM_BYTES, a->bytes - at);
    *sum = a->sums[at / GS_SUM_BYTES];
    return at + gs_align_up(*covered, GS_BLOCK_BYTES);
}

static gs_status copy_pieces(sharding *x, unsigned k, gs_window *from, int fd, const char *to)
{
    const gs_extent e = x->extent[k];

    for (uint64_t at = e.first, end; at < e.first + e.bytes; at = end) {
        uint64_t covered, sum;
        const void *data = NULL;
        end = piece_at(x, k, at, &covered, &sum);
        GS_TRY(gs_window__get(from, &data, at, end - at, e.first + e.bytes));
        if (gs_hash64(data, covered) != sum)
            return gs_fail(GS_EFORMAT, "%s: bytes %lu to %lu do not match their checksum" GS_STORE_DAMAGED,
                           from->path, at, at + covered);
        GS_TRY(gs_pwrite_exact(fd, data, end - at, at - e.first, to));
        GS_TRY(go_on(x, end - at));
    }
    return GS_OK;
}

/* The part of file k. */
static gs_status copy_part(sharding *x, unsigned k)
{
    char buf[GS_FILE_NAME_BYTES];
    const char *const name = gs_store__file_name(buf, k);
    GS_FREED char *const path = gs_path_join(gs_staging_dir(x->staging[x->shard.rank]), name);
    const uint64_t room = GS_MAX(gs_store_chunks(x->store)->longest, COPY_BYTES);
    GS_ENDS(gs_window__close) gs_window from = GS_WINDOW_NONE;

    GS_NEED(path != NULL, "%s: out of memory", name);
    GS_TRY(gs_window__open(&from, gs_path_join(gs_store_dir(x->store), name), 0, gs_align_up(room, GS_BLOCK_BYTES), 0));
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return fd < 0 ? gs_fail_errno(errno, "%s", path) : sync_and_close(fd, copy_pieces(x, k, &from, fd, path), path);
}

/* A table, as it is: opening the store has checked it, and its place is looked at in the end. */
static gs_status copy_table(sharding *x, unsigned k)
{
    char buf[GS_FILE_NAME_BYTES];
    const char *const name = gs_store__file_name(buf, k);
    GS_FREED char *const from = gs_path_join(gs_store_dir(x->store), name);
    GS_FREED char *const to = gs_path_join(gs_staging_dir(x->staging[x->shard.rank]), name), *data = NULL;
    uint64_t bytes = 0;

    GS_NEED(from != NULL && to != NULL, "%s: out of memory", name);
    GS_TRY(gs_file_read_own(&data, &bytes, from, UINT64_MAX - 1));
    GS_TRY(write_file(to, data, bytes));
    return go_on(x, 0); /* tables are little beside the rest, and not in the total */
}

static gs_status copy_rank(sharding *x, uint32_t rank)
{
    set_rank(x, rank);
    for (unsigned k = GS_FILE_CHUNKS; k < GS_STORE_FILES; k++) {
        uint64_t all;
        if (gs_store__file_expected(&x->m, k, &all))
            GS_TRY(k < GS_FILE_DEST ? copy_table(x, k) : copy_part(x, k));
    }
    return GS_OK;
}

/* shard.json and, last, the manifest. */
static gs_status finish_rank(sharding *x, uint32_t rank)
{
    GS_FREED char *const path = gs_path_join(gs_staging_dir(x->staging[rank]), GS_SHARD_FILE);
    GS_FREED char *text = NULL;
    uint64_t bytes = 0;

    set_rank(x, rank);
    GS_NEED(path != NULL, "%s: out of memory", x->place[rank]);
    GS_TRY(gs_shard__format(&text, &bytes, &x->shard, x->extent, &x->m));
    GS_TRY(write_file(path, text, bytes));
    return copy_table(x, GS_FILE_MANIFEST);
}

/* Anything but shards of these numbers, and what makes them? */
gs_status gs_store_check_shards(const char *out, uint32_t ranks, bool force, bool *there)
{
    GS_ENDS(gs_closedir_at) DIR *const d = opendir(out);

    *there = d != NULL;
    if (d == NULL)
        return errno == ENOENT ? gs_store_check_outside(out) : gs_fail_errno(errno, "%s: cannot hold shards", out);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        unsigned number = GS_SHARDS_MOST;
        char name[16];
        sscanf(e->d_name, "%u", &number);
        snprintf(name, sizeof(name), "%u", number);
        if (e->d_name[0] == '.' || strstr(e->d_name, ".unfinished.") != NULL)
            continue;
        if (strcmp(name, e->d_name) != 0 || number >= ranks)
            return gs_fail(GS_EEXIST, "%s: holds \"%s\", which is none of %u shards; choose another folder, or remove "
                           "it", out, e->d_name, ranks);
        if (!force)
            return gs_fail(GS_EEXIST, "%s: holds a shard %u already; use .force to replace it", out, number);
    }
    return GS_OK;
}

static gs_status check_room_of(const sharding *x, const char *out)
{
    char need[32], have[32];
    const uint64_t left = gs_disk_free(out);

    if (x->total <= left)
        return GS_OK;
    return gs_fail(GS_EIO, "%s: no space: the shards take %s, and the disk has %s left", out,
                   gs_size_format(need, sizeof(need), x->total), gs_size_format(have, sizeof(have), left));
}

static gs_status begin_shards(sharding *x, const char *out)
{
    for (uint32_t r = 0; r < x->job->ranks; r++) {
        char name[16];
        snprintf(name, sizeof(name), "%u", r);
        GS_NEED((x->place[r] = gs_path_join(out, name)) != NULL, "%s: out of memory", out);
        GS_TRY(gs_store_begin(&x->staging[r], x->place[r], x->job->force));
        set_rank(x, r);
        for (unsigned k = GS_FILE_DEST; k < GS_STORE_FILES; k++)
            x->total += x->extent[k].bytes;
    }
    return check_room_of(x, out);
}

static gs_status make_all(sharding *x, const char *out)
{
    GS_TRY(begin_shards(x, out));
    for (uint32_t r = 0; r < x->job->ranks; r++)
        GS_TRY(copy_rank(x, r));
    for (uint32_t r = 0; r < x->job->ranks; r++)
        GS_TRY(finish_rank(x, r));
    GS_TRY(gs_store_check_place(x->store));
    for (uint32_t r = 0; r < x->job->ranks; r++)
        GS_TRY(gs_staging_publish(x->staging[r]));
    return GS_OK;
}

static gs_status describe_store(sharding *x)
{
    GS_FREED char *const path = gs_path_join(gs_store_dir(x->store), GS_MANIFEST_NAME);
    GS_FREED char *text = NULL;
    GS_FREED char *const dir = gs_path_without_slashes(gs_store_dir(x->store));
    uint64_t bytes = 0;

    GS_NEED(path != NULL && dir != NULL, "out of memory");
    GS_TRY(gs_file_read_own(&text, &bytes, path, GS_MANIFEST_LIMIT));
    GS_TRY(gs_manifest__parse(&x->m, text, bytes, path));
    snprintf(x->shard.name, sizeof(x->shard.name), "%s", gs_path_name(dir));
    x->shard.ranks = x->job->ranks;
    x->shard.store_id = gs_store_get_info(x->store)->id;
    gs_chunk_deal(gs_store_chunks(x->store), x->job->ranks, x->shard.first);
    return GS_OK;
}

gs_status gs_store_write_shards(const gs_store *s, const char *out, const gs_shard_job *job)
{
    const uint32_t parts = gs_store_chunks(s)->parts;
    sharding x = {.store = s, .job = job};
    bool there = true;
    gs_status st;

    if (job->ranks < 2 || job->ranks > GS_SHARDS_MOST)
        return gs_fail(GS_EINVAL, "%u shards: a store has from 2 to %u, one for each rank", job->ranks, GS_SHARDS_MOST);
    if (job->ranks > parts)
        return gs_fail(GS_EINVAL, "%s: its %u intervals cannot be dealt to %u ranks; partition again with more .parts",
                       gs_store_dir(s), parts, job->ranks);
    if ((st = gs_store_check_shards(out, job->ranks, job->force, &there)) != GS_OK ||
        (st = describe_store(&x)) != GS_OK || (st = there ? GS_OK : gs_mkdir(out)) != GS_OK)
        goto done;
    st = make_all(&x, out);
    for (uint32_t r = 0; r < job->ranks; r++) {
        gs_staging_close(x.staging[r]);
        gs_free(x.place[r]);
    }
    if (st != GS_OK && !there)
        (void)rmdir(out); /* which fails where something is inside */
done:
    gs_free(x.m.info.types);
    gs_free(x.m.info.named);
    return st;
}
