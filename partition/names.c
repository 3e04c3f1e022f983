/* names.c - distinct names in memory, in sorted runs on disk where they fill it, merged into names.bin; and a table of
 * key -> vertex.
 *
 * names.bin (docs/format.md): the name of each input vertex, 0 first, with a line feed behind it. */
#include "partition/edge_text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/external_sort.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/temporary.h"
#include "store/store_write.h"

typedef struct name_run {
    uint64_t begin, end; /* bytes in the file of runs */
} name_run;

/* A record in memory and in a run: its length in two bytes, then the name. */
struct gs_names {
    const char *path;
    const char *dir;
    uint64_t memory, seed;
    gs_arena arrays; /* of what is gathered, until names are numbered; then of the table */
    char *bytes;         /* [room] records */
    uint64_t fill, room;
    uint32_t *slot;      /* [slots] 1 + where in `bytes`; 0: empty. A power of two */
    uint64_t slots, held;
    uint64_t *slot_key;  /* [slots] */
    int fd;              /* of the runs */
    char *runs_path;     /* for messages */
    uint64_t runs_end;
    name_run *run;
    uint32_t runs, run_cap;
    /* the result */
    uint64_t count;
    gs_array_info info;
    uint64_t *key;       /* [cap] an open table */
    uint32_t *vertex;    /* [cap] UINT32_MAX: empty */
    uint64_t cap;
};

/* ---- distinct names in memory; where they fill it, a sorted run of them goes to a temporary file. */

#define LEAST_ROOM (64u * GS_KIB)
#define MOST_ROOM (64u * GS_MIB)
#define MOST_SLOTS (1u << 23) /* of which three quarters are names of 10 letters that fill the room */
#define WRITE_BYTES (256u * GS_KIB)

static uint64_t power_below(uint64_t n)
{
    uint64_t p = 1024;
    while (p * 2 <= n)
        p *= 2;
    return p;
}

gs_status gs_part__names_make(gs_names **out, const gs_part_job *job, const char *path, uint64_t seed)
{
    GS_ENDS(gs_part__names_free_at) gs_names *n = gs_calloc(1, sizeof(*n));

    GS_NEED(n != NULL, "%s: no memory for the names of vertices", path);
    n->fd = -1;
    n->path = path;
    n->dir = job->dir;
    n->memory = job->memory;
    n->seed = seed;
    n->room = GS_MIN(GS_MAX(job->memory / 16, LEAST_ROOM), MOST_ROOM);
    n->slots = GS_MIN(power_below(job->memory / 8 / (sizeof(*n->slot) + sizeof(*n->slot_key))), MOST_SLOTS);
    n->bytes = gs_arena_take(&n->arrays, n->room, 1);
    n->slot = gs_arena_take(&n->arrays, n->slots, sizeof(*n->slot));
    n->slot_key = gs_arena_take(&n->arrays, n->slots, sizeof(*n->slot_key));
    GS_NEED(!n->arrays.is_short, "%s: no memory for the names of vertices", path);
    GS_TRY(gs_unnamed_file_called(&n->fd, &n->runs_path, job->dir, "tmp.names"));
    *out = GS_HANDED_OVER(n);
    return GS_OK;
}

void gs_part__names_forget(gs_names *n)
{
    gs_arena_free(&n->arrays);
    gs_free(n->run);
    gs_free(n->runs_path);
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
    n->run = NULL;
    n->runs_path = NULL;
}

void gs_part__names_free(gs_names *n)
{
    if (n == NULL)
        return;
    gs_part__names_forget(n);
    gs_free(n->info.sums);
    gs_free(n);
}

static uint64_t name_hash(const gs_names *n, const char *name, size_t length)
{
    return gs_hash64_seeded(name, length, n->seed);
}

/* Shortest first, then by bytes. */
static int compare_names(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    return a_bytes != b_bytes ? (a_bytes < b_bytes ? -1 : 1) : memcmp(a, b, a_bytes);
}

static size_t length_at(const char *record) { return (unsigned char)record[0] | (size_t)(unsigned char)record[1] << 8; }

static int compare_records(const void *a, const void *b, void *context)
{
    const char *const bytes = context;
    const char *const p = bytes + *(const uint32_t *)a - 1, *const q = bytes + *(const uint32_t *)b - 1;
    return compare_names(p + 2, length_at(p), q + 2, length_at(q));
}

static gs_status add_run(gs_names *n, uint64_t begin)
{
    GS_NEED(gs_grow(&n->run, n->runs, &n->run_cap, sizeof(*n->run)), "%s: no memory for the list of runs", n->path);
    n->run[n->runs++] = (name_run){begin, n->runs_end};
    return GS_OK;
}

/* What is in memory becomes a run. */
static gs_status flush_names(gs_names *n)
{
    const uint64_t begin = n->runs_end;
    GS_FREED char *const out = gs_malloc(WRITE_BYTES);
    uint64_t fill = 0, kept = 0;

    GS_NEED(out != NULL, "%s: no memory to write names", n->path);
    for (uint64_t i = 0; i < n->slots; i++)
        if (n->slot[i] != 0)
            n->slot[kept++] = n->slot[i];
    qsort_r(n->slot, kept, sizeof(*n->slot), compare_records, n->bytes);
    for (uint64_t i = 0; i < kept; i++) {
        const char *const record = n->bytes + n->slot[i] - 1;
        const uint64_t bytes = 2 + length_at(record);
        if (fill + bytes > WRITE_BYTES) {
            GS_TRY(gs_pwrite_exact(n->fd, out, fill, n->runs_end, n->runs_path));
            n->runs_end += fill;
            fill = 0;
        }
        memcpy(out + fill, record, bytes);
        fill += bytes;
    }
    GS_TRY(gs_pwrite_exact(n->fd, out, fill, n->runs_end, n->runs_path));
    n->runs_end += fill;
    if (kept != 0)
        GS_TRY(add_run(n, begin));
    memset(n->slot, 0, n->slots * sizeof(*n->slot));
    n->held = 0;
    n->fill = 0;
    return GS_OK;
}

/* Where the name of this key is, or the empty slot where it belongs. */
static uint64_t find_slot(const gs_names *n, uint64_t key)
{
    uint64_t at = key & (n->slots - 1);
    while (n->slot[at] != 0 && n->slot_key[at] != key)
        at = (at + 1) & (n->slots - 1);
    return at;
}

/* Two names of one key are both kept: the second one as an entry that nothing finds, and numbering tells. */
gs_status gs_part__names_add(gs_names *n, const char *name, size_t length, uint64_t *key)
{
    *key = name_hash(n, name, length);
    uint64_t at = find_slot(n, *key);
    while (n->slot[at] != 0) {
        const char *const record = n->bytes + n->slot[at] - 1;
        if (n->slot_key[at] == *key && length_at(record) == length && memcmp(record + 2, name, length) == 0)
            return GS_OK;
        at = (at + 1) & (n->slots - 1);
    }
    if (n->fill + 2 + length > n->room || n->held >= n->slots / 4 * 3) {
        GS_TRY(flush_names(n));
        at = find_slot(n, *key);
    }
    char *const record = n->bytes + n->fill;
    record[0] = (char)(length & 255);
    record[1] = (char)(length >> 8);
    memcpy(record + 2, name, length);
    n->slot[at] = (uint32_t)n->fill + 1;
    n->slot_key[at] = *key;
    n->fill += 2 + length;
    n->held++;
    return GS_OK;
}

/* ---- runs of sorted names merged into names.bin, and a table of key -> vertex.
 *
 * names.bin (docs/format.md): the name of each input vertex, 0 first, with a line feed behind it. */

#define LEAST_BUFFER (GS_MOST_NAME + 2u)
#define MOST_BUFFER (256u * GS_KIB)
#define NONE UINT32_MAX

/* One run as it is read. */
typedef struct source {
    char *buffer;
    uint64_t at, have; /* bytes of the buffer */
    uint64_t next, end; /* of the file */
} source;

typedef struct merge {
    gs_names *n;
    gs_part_job *job;
    source *source;
    uint32_t *heap; /* of sources, the least name first */
    uint32_t heaped;
    char *buffers;
    uint64_t buffer_bytes;
    gs_external_sort *keys;      /* of the names in order */
    char last[GS_MOST_NAME];
    size_t last_length;
    gs_array_writer out;
    gs_arena memory;
} merge;

static const char *record_of(const merge *m, uint32_t s, size_t *length)
{
    const char *const p = m->source[s].buffer + m->source[s].at;
    *length = length_at(p);
    return p + 2;
}

/* The whole of the next record is in the buffer, or the run is at its end. */
static gs_status refill(merge *m, source *s)
{
    const uint64_t left = s->have - s->at, take = GS_MIN(m->buffer_bytes - left, s->end - s->next);

    if (left >= LEAST_BUFFER || take == 0)
        return GS_OK;
    memmove(s->buffer, s->buffer + s->at, left);
    s->at = 0;
    s->have = left + take;
    const gs_status st = gs_pread_exact(m->n->fd, s->buffer + left, take, s->next, m->n->runs_path);
    s->next += take;
    return st;
}

static bool is_less(const merge *m, uint32_t a, uint32_t b)
{
    size_t n, k;
    const char *const p = record_of(m, a, &n), *const q = record_of(m, b, &k);
    return compare_names(p, n, q, k) < 0;
}

static void sift(merge *m, uint32_t at)
{
    for (;;) {
        uint32_t least = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < m->heaped; child++)
            if (is_less(m, m->heap[child], m->heap[least]))
                least = child;
        if (least == at)
            return;
        const uint32_t swap = m->heap[at];
        m->heap[at] = m->heap[least];
        m->heap[least] = swap;
        at = least;
    }
}

/* The next vertex is called so. */
static gs_status put_name(merge *m, const char *name, size_t length)
{
    const uint64_t key = name_hash(m->n, name, length);
    uint32_t record[2];

    memcpy(record, &key, 8);
    GS_TRY(gs_sort_append(m->keys, 0, 0, record, 1));
    m->n->count++;
    memcpy(m->last, name, length);
    m->last_length = length;
    GS_TRY(gs_array_put(&m->out, name, length));
    return gs_array_put(&m->out, "\n", 1);
}

static gs_status merge_runs(merge *m)
{
    gs_names *const n = m->n;

    for (uint64_t i = 0; m->heaped > 0; i++) {
        size_t length;
        const uint32_t s = m->heap[0];
        const char *const name = record_of(m, s, &length);
        if (n->count == 0 || compare_names(name, length, m->last, m->last_length) != 0)
            GS_TRY(put_name(m, name, length));
        m->source[s].at += 2 + length;
        GS_TRY(refill(m, &m->source[s]));
        if (m->source[s].at == m->source[s].have)
            m->heap[0] = m->heap[--m->heaped];
        sift(m, 0);
        if (i % 65536 == 0)
            GS_TRY(gs_part__job_result(m->job));
    }
    GS_TRY(gs_array_end(&m->out, &n->info, GS_U8, 1));
    return gs_sort_finish(m->keys);
}

static gs_status open_runs(merge *m)
{
    gs_names *const n = m->n;
    const uint64_t each = n->memory / 8 / GS_MAX(n->runs, 1u);

    m->buffer_bytes = GS_MIN(GS_MAX(each, 2 * LEAST_BUFFER), MOST_BUFFER);
    m->source = gs_arena_take(&m->memory, n->runs, sizeof(*m->source));
    m->heap = gs_arena_take(&m->memory, n->runs, sizeof(*m->heap));
    m->buffers = gs_arena_take(&m->memory, n->runs, m->buffer_bytes);
    GS_NEED(!m->memory.is_short, "%s: no memory to sort its names", n->path);
    for (uint32_t s = 0; s < n->runs; s++) {
        m->source[s] = (source){.buffer = m->buffers + s * m->buffer_bytes, .next = n->run[s].begin,
                                .end = n->run[s].end};
        GS_TRY(refill(m, &m->source[s]));
        m->heap[m->heaped++] = s;
    }
    for (uint32_t at = m->heaped / 2; at-- > 0;)
        sift(m, at);
    return GS_OK;
}

static gs_status open_output(merge *m)
{
    const gs_sort_spec spec = {.dir = m->n->dir, .name = "tmp.keys", .buckets = 1, .writers = 1, .words = 2,
                               .memory = 256 * GS_KIB};
    GS_TRY(gs_array_begin(&m->out, m->n->dir, GS_ARRAY_NAMES));
    return gs_sort_make(&m->keys, &spec);
}

/* -- key -> vertex ------------------------------------------------------------------- */

static uint64_t slot_of(const gs_names *n, uint64_t key)
{
    return (uint64_t)((unsigned __int128)key * n->cap >> 64); /* keys are spread evenly */
}

uint32_t gs_part__names_vertex(const gs_names *n, uint64_t key)
{
    uint64_t at = slot_of(n, key);
    while (n->key[at] != key || n->vertex[at] == NONE)
        at = at + 1 == n->cap ? 0 : at + 1;
    return n->vertex[at];
}

static bool enter(gs_names *n, uint64_t key, uint32_t vertex)
{
    uint64_t at = slot_of(n, key);
    while (n->vertex[at] != NONE) {
        if (n->key[at] == key)
            return false;
        at = at + 1 == n->cap ? 0 : at + 1;
    }
    n->key[at] = key;
    n->vertex[at] = vertex;
    return true;
}

static gs_status make_table(merge *m, bool *same)
{
    gs_names *const n = m->n;
    gs_sort_cursor at = gs_sort_first(m->keys, 0);
    uint32_t piece[2 * 1024], vertex = 0;
    uint64_t got = 1;
    gs_status st = GS_OK;

    n->cap = n->count + n->count / 2 + 1; /* 18 bytes a name: less than the tables of the vertices, later */
    n->key = gs_arena_take(&n->arrays, n->cap, sizeof(*n->key));
    n->vertex = gs_arena_take(&n->arrays, n->cap, sizeof(*n->vertex));
    GS_NEED(!n->arrays.is_short, "%s: no memory for %lu names", n->path, n->count);
    memset(n->vertex, 0xff, n->cap * sizeof(*n->vertex));
    while (got > 0 && !*same && (st = gs_sort_read(m->keys, &at, piece, 1024, &got)) == GS_OK)
        for (uint64_t i = 0; i < got; i++) {
            uint64_t key;
            memcpy(&key, piece + 2 * i, 8);
            *same |= !enter(n, key, vertex++);
        }
    return st;
}

static void merge_end(merge *m)
{
    gs_array_writer_free(&m->out);
    gs_sort_free(m->keys);
    gs_arena_free(&m->memory);
}

gs_status gs_part__names_number(gs_names *n, gs_part_job *job, uint64_t *count, bool *same)
{
    GS_ENDS(merge_end) merge m = {.n = n, .job = job, .out = GS_ARRAY_WRITER_NONE};

    *same = false;
    GS_TRY(flush_names(n));
    gs_arena_free(&n->arrays); /* before the merge's buffers */
    gs_part__tick(job, "sorting names", 0);
    GS_TRY(open_output(&m));
    GS_TRY(open_runs(&m));
    GS_TRY(merge_runs(&m));
    *count = n->count;
    if (n->count >= NONE - 1u)
        return gs_fail(GS_EUNSUPPORTED, "%s: %lu vertices; a store holds fewer than 2^32 - 1", n->path, n->count);
    GS_TRY(gs_part__job_plan(job, n->count, 0, 0));
    return make_table(&m, same);
}

gs_array_info gs_part__names_info(const gs_names *n) { return n->info; }
