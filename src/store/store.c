/* store.c - opens a store: manifest, real file sizes, tables, in that order.
 *
 * Nothing is allocated for a count before the file that holds the counted
 * things is known to be that big. */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "store/store_internal.h"
#include "store/store_write.h" /* gs_store_edges_name */

#define MOST_TRIES 10 /* to open a store that others replace meanwhile */

struct gs_store {
    char *dir;
    int folder; /* the one that was opened, whatever takes its place */
    int ids;    /* input_id.bin, which is read last, when the store may long have been replaced */
    gs_store_info info;
    gs_chunk_table table;
    gs_array_info array[GS_ARRAY_COUNT];
    gs_chunk *chunks; /* both directions, one after the other */
    uint64_t *sums;   /* all arrays' checksums, in the order of gs_array_id */
    uint64_t table_bytes;
};

/* All `bytes` bytes of dir/name, which has that size, into a new buffer. */
static gs_status load_file(void **out, const char *dir, const char *name, uint64_t bytes, uint64_t checksum)
{
    char *path = gs_path_join(dir, name);
    void *data = gs_malloc(bytes);
    uint64_t real = 0;
    int fd = -1;
    gs_status st;

    if (path == NULL || data == NULL) {
        st = gs_fail(GS_ENOMEM, "%s/%s: no memory for its %llu bytes", dir, name, (unsigned long long)bytes);
        goto done;
    }
    if ((st = gs_file_open_own(&fd, &real, path)) != GS_OK ||
        (st = gs_pread_exact(fd, data, bytes, 0, path)) != GS_OK)
        goto done;
    if (gs_hash64(data, bytes) != checksum) {
        st = gs_fail(GS_EFORMAT, "%s: checksum mismatch" GS_STORE_DAMAGED, path);
        goto done;
    }
    *out = data;
    data = NULL;
done:
    if (fd >= 0)
        close(fd);
    gs_free(data);
    gs_free(path);
    return st;
}

static gs_status load_manifest(gs_manifest *m, const char *dir, uint64_t *manifest_bytes)
{
    char *path = gs_path_join(dir, GS_MANIFEST_NAME), *text = NULL;
    gs_status st;
    if (path == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to open it", dir);
    if (gs_path_is_absent(path)) /* and not only out of reach */
        st = gs_fail(GS_ENOTFOUND,
                     "%s: no store here (it has no " GS_MANIFEST_NAME "); make one with partition", dir);
    else if ((st = gs_file_read_own(&text, manifest_bytes, path, GS_MANIFEST_LIMIT)) == GS_OK)
        st = gs_manifest__parse(m, text, *manifest_bytes, path);
    gs_free(text);
    gs_free(path);
    return st;
}

/* Records to gs_chunk, in place: one never reaches past the record that it came from. Then the checks. */
static gs_status unpack_table(gs_chunk *chunks, const gs_manifest *m, const char *path)
{
    const uint64_t square = (uint64_t)m->info.parts * m->info.parts, count = gs_manifest__chunk_count(m);
    gs_table_walk walk = {0};
    gs_status st;

    _Static_assert(sizeof(gs_chunk) == GS_CHUNK_RECORD_BYTES, "unpacked in place");
    for (uint64_t k = 0; k < count; k++) {
        const gs_direction d = k < square ? GS_BY_DEST : GS_BY_SOURCE;
        gs_chunk c;
        gs_store__record_load(&c, (const char *)chunks + k * GS_CHUNK_RECORD_BYTES, m->version);
        if (k == square)
            walk = (gs_table_walk){0};
        if ((st = gs_store__check_chunk(m, d, k % square, &c, &walk, path)) != GS_OK)
            return st;
        chunks[k] = c;
        if (k % square == square - 1 && (st = gs_store__check_walk(m, d, &walk, path)) != GS_OK)
            return st;
    }
    return gs_store__check_twins(m, (const gs_chunk *const[2]){chunks, m->shared ? chunks : chunks + square},
                                 path);
}

static gs_status load_table(gs_store *s, const gs_manifest *m)
{
    const uint64_t count = gs_manifest__chunk_count(m);
    char buf[GS_FILE_NAME_BYTES];
    const char *name = gs_store__file_name(buf, GS_FILE_CHUNKS);
    void *data = NULL;
    gs_status st = load_file(&data, s->dir, name, count * GS_CHUNK_RECORD_BYTES, m->chunks_checksum);
    if (st != GS_OK)
        return st;
    s->chunks = data;
    char *path = gs_path_join(s->dir, name);
    if (path == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to open it", s->dir);
    st = unpack_table(s->chunks, m, path);
    gs_free(path);
    if (st != GS_OK)
        return st;
    s->table_bytes += count * sizeof(gs_chunk);
    const uint64_t square = (uint64_t)m->info.parts * m->info.parts;
    s->table = (gs_chunk_table){
        .vertices = m->info.vertices,
        .parts = m->info.parts,
        .interval_rows = m->info.interval_rows,
        .shared = m->shared,
        .weights = m->info.weights,
        .type_bytes = m->type_bytes,
        .chunk = {s->chunks, m->shared ? s->chunks : s->chunks + square},
    };
    return GS_OK;
}

static gs_status load_sums(gs_store *s, const gs_manifest *m)
{
    const uint64_t bytes = gs_manifest__sum_count(m) * sizeof(uint64_t);
    char buf[GS_FILE_NAME_BYTES];
    void *data = NULL;
    gs_status st = load_file(&data, s->dir, gs_store__file_name(buf, GS_FILE_SUMS), bytes, m->sums_checksum);
    if (st != GS_OK)
        return st;
    s->sums = data;
    s->table_bytes += bytes;

    const uint64_t *next = s->sums;
    for (unsigned id = 0; id < GS_ARRAY_COUNT; id++) {
        const uint64_t array_bytes = gs_manifest__array_bytes(m, id);
        if (!m->array[id].present)
            continue;
        s->array[id] = (gs_array_info){.present = true,
                                       .dtype = m->array[id].dtype,
                                       .width = m->array[id].width,
                                       .row_bytes = id == GS_ARRAY_NAMES ? 1 : array_bytes / m->info.vertices,
                                       .bytes = array_bytes,
                                       .sums = next};
        next += gs_div_up(array_bytes, GS_SUM_BYTES);
    }
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

    if ((s->dir = gs_strdup(dir)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to open it", dir);
    s->folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s->folder < 0)
        return gs_fail_errno(errno, "%s: cannot open", dir);
    return open_in(&s->ids, s, gs_store__file_name(buf, GS_FILE_ARRAY0 + GS_ARRAY_INPUT_ID));
}

static gs_status load_store(gs_store **out, const char *dir)
{
    gs_manifest m = {0};
    uint64_t manifest_bytes = 0, file_bytes = 0;
    gs_store *s = NULL;
    gs_status st;

    if ((st = load_manifest(&m, dir, &manifest_bytes)) != GS_OK ||
        (st = gs_store__check_files(&m, dir, &file_bytes)) != GS_OK)
        goto done;
    if ((s = gs_calloc(1, sizeof(*s))) == NULL) {
        st = gs_fail(GS_ENOMEM, "%s: no memory to open it", dir);
        goto done;
    }
    s->folder = s->ids = -1;
    if ((st = open_folder(s, dir)) != GS_OK)
        goto done;
    s->info = m.info;
    s->info.total_bytes = manifest_bytes + file_bytes;
    s->table_bytes = sizeof(*s) + strlen(dir) + 1;
    if ((st = load_table(s, &m)) != GS_OK || (st = load_sums(s, &m)) != GS_OK)
        goto done;
    *out = s;
    s = NULL; /* now the caller's */
done:
    gs_store_close(s);
    return st;
}

gs_status gs_store_open(gs_store **out, const char *dir)
{
    gs_status st = GS_EIO;

    assert(out != NULL && dir != NULL);
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        const int before = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        gs_store *s = NULL;

        st = load_store(&s, dir);
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

void gs_store_close(gs_store *s)
{
    if (s == NULL)
        return;
    if (s->ids >= 0)
        close(s->ids);
    if (s->folder >= 0)
        close(s->folder);
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
const gs_chunk_table *gs_store_chunks(const gs_store *s)
{
    return &s->table;
}
const gs_array_info *gs_store_array(const gs_store *s, gs_array_id id)
{
    return &s->array[id];
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
