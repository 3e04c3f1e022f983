/* names_gather.c - distinct names in memory; where they fill it, a sorted run of them goes to a temporary file. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/temporary.h"
#include "partition/names_internal.h"

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
    gs_names *n = gs_calloc(1, sizeof(*n));
    gs_status st;

    if (n == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the names of vertices", path);
    n->fd = -1;
    n->path = path;
    n->dir = job->dir;
    n->memory = job->memory;
    n->seed = seed;
    n->room = GS_MIN(GS_MAX(job->memory / 16, LEAST_ROOM), MOST_ROOM);
    n->slots = GS_MIN(power_below(job->memory / 8 / (sizeof(*n->slot) + sizeof(*n->slot_key))), MOST_SLOTS);
    n->bytes = gs_malloc(n->room);
    n->slot = gs_calloc(n->slots, sizeof(*n->slot));
    n->slot_key = gs_malloc_array(n->slots, sizeof(*n->slot_key));
    if (n->bytes == NULL || n->slot == NULL || n->slot_key == NULL)
        st = gs_fail(GS_ENOMEM, "%s: no memory for the names of vertices", path);
    else
        st = gs_unnamed_file_called(&n->fd, &n->runs_path, job->dir, "tmp.names");
    if (st == GS_OK)
        *out = n;
    else
        gs_part__names_free(n);
    return st;
}

static void free_gathered(gs_names *n)
{
    gs_free(n->bytes);
    gs_free(n->slot);
    gs_free(n->slot_key);
    n->bytes = NULL;
    n->slot = NULL;
    n->slot_key = NULL;
}

void gs_part__names_forget(gs_names *n)
{
    free_gathered(n);
    gs_free(n->run);
    gs_free(n->runs_path);
    gs_free(n->key);
    gs_free(n->vertex);
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
    n->run = NULL;
    n->runs_path = NULL;
    n->key = NULL;
    n->vertex = NULL;
}

void gs_part__names_free(gs_names *n)
{
    if (n == NULL)
        return;
    gs_part__names_forget(n);
    gs_free(n->sums);
    gs_free(n);
}

uint64_t gs_names__hash(const gs_names *n, const char *name, size_t length)
{
    return gs_hash64_seeded(name, length, n->seed);
}

int gs_names__compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    return a_bytes != b_bytes ? (a_bytes < b_bytes ? -1 : 1) : memcmp(a, b, a_bytes);
}

static size_t length_at(const char *record) { return (unsigned char)record[0] | (size_t)(unsigned char)record[1] << 8; }

static int compare_records(const void *a, const void *b, void *context)
{
    const char *const bytes = context;
    const char *const p = bytes + *(const uint32_t *)a - 1, *const q = bytes + *(const uint32_t *)b - 1;
    return gs_names__compare(p + 2, length_at(p), q + 2, length_at(q));
}

static gs_status add_run(gs_names *n, uint64_t begin)
{
    if (!gs_grow(&n->run, n->runs, &n->run_cap, sizeof(*n->run)))
        return gs_fail(GS_ENOMEM, "%s: no memory for the list of runs", n->path);
    n->run[n->runs++] = (gs_names_run){begin, n->runs_end};
    return GS_OK;
}

gs_status gs_names__flush(gs_names *n)
{
    const uint64_t begin = n->runs_end;
    char *const out = gs_malloc(WRITE_BYTES);
    uint64_t fill = 0, kept = 0;
    gs_status st = out != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory to write names", n->path);

    for (uint64_t i = 0; i < n->slots; i++)
        if (n->slot[i] != 0)
            n->slot[kept++] = n->slot[i];
    qsort_r(n->slot, kept, sizeof(*n->slot), compare_records, n->bytes);
    for (uint64_t i = 0; i < kept && st == GS_OK; i++) {
        const char *const record = n->bytes + n->slot[i] - 1;
        const uint64_t bytes = 2 + length_at(record);
        if (fill + bytes > WRITE_BYTES) {
            st = gs_pwrite_exact(n->fd, out, fill, n->runs_end, n->runs_path);
            n->runs_end += fill;
            fill = 0;
        }
        memcpy(out + fill, record, bytes);
        fill += bytes;
    }
    if (st == GS_OK && (st = gs_pwrite_exact(n->fd, out, fill, n->runs_end, n->runs_path)) == GS_OK) {
        n->runs_end += fill;
        if (kept != 0)
            st = add_run(n, begin);
    }
    memset(n->slot, 0, n->slots * sizeof(*n->slot));
    n->held = 0;
    n->fill = 0;
    gs_free(out);
    return st;
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
    gs_status st;

    *key = gs_names__hash(n, name, length);
    uint64_t at = find_slot(n, *key);
    while (n->slot[at] != 0) {
        const char *const record = n->bytes + n->slot[at] - 1;
        if (n->slot_key[at] == *key && length_at(record) == length && memcmp(record + 2, name, length) == 0)
            return GS_OK;
        at = (at + 1) & (n->slots - 1);
    }
    if (n->fill + 2 + length > n->room || n->held >= n->slots / 4 * 3) {
        if ((st = gs_names__flush(n)) != GS_OK)
            return st;
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
