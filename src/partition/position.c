/* position.c - from intervals to rows: which rows of an interval lie together?
 *
 * Rows that the same other intervals need should be neighbours, so that a
 * selective read is a few long runs. An interval's vertices are sorted by the
 * set of intervals that need them, where few are labelled those first and with
 * them those that they hear, and cut into groups of equal size; within a
 * group input order stays, so that feature rows can be moved in one pass over
 * the input with one write stream a group (rows.c).
 */
#include <omp.h>
#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "partition/partition_internal.h"

/* Of all intervals together. Finer groups make runs that a chunk needs whole: with 2.1M vertices and 58M edges in
 * 32 parts by METIS, and gaps of up to 256 rows read through, a part needs 0.66 of the rows of the others with
 * 512 groups, 0.47 with 4096, 0.35 if rows were sorted one by one. Each is a write stream of rows.c. */
#define MOST_GROUPS 4096u

/* Of an interval; levels alone need no more. */
static uint32_t groups_of(const gs_part_order *o, bool random)
{
    return o->need == NULL && !random ? 1 : GS_MAX(1, MOST_GROUPS / o->grid.parts);
}

/* Groups of n rows of one level, of `all` rows that share `groups`. */
static uint32_t level_groups(uint32_t n, uint32_t all, uint32_t groups)
{
    return n == 0 ? 0 : GS_MAX(1, (uint32_t)((uint64_t)groups * n / all));
}

/* Sets in Gray-code order differ little from one to the next. Vertices that
 * nobody else needs come first, those that most intervals need come last. */
static uint64_t need_key(uint64_t need, uint32_t most)
{
    const uint32_t count = (uint32_t)__builtin_popcountll(need);
    uint64_t gray = need;

    if (need == 0)
        return 0;
    if (count * 2 > most)
        return 2ull << 62 | count;
    for (uint32_t shift = 1; shift < 64; shift *= 2)
        gray ^= gray >> shift;
    return 1ull << 62 | gray >> 2;
}

/* Buffers of one thread for one interval. */
typedef struct bench {
    gs_part_key16 *keys, *spare;
} bench;

/* Reorders ids [0, n) of an interval, ascending, into groups by `keys` (whose
 * `type` is the place in ids); count[]: how many are of each level. */
static void regroup(uint32_t *ids, uint32_t n, uint32_t groups, const uint32_t count[GS_PART_LEVELS], const bench *w)
{
    const gs_part_key16 *sorted = gs_part__sort16(w->keys, w->spare, n, 64, 0, 0);
    uint32_t *const group = (uint32_t *)(sorted == w->keys ? w->spare : w->keys), *const moved = group + n;
    uint32_t next[MOST_GROUPS + GS_PART_LEVELS], first = 0, row = 0;

    for (int level = 0; level < GS_PART_LEVELS; level++) {
        const uint32_t of = level_groups(count[level], n, groups);
        for (uint32_t k = 0; k < of; k++)
            next[first + k] = row + (uint32_t)gs_div_up((uint64_t)k * count[level], of);
        for (uint32_t r = 0; r < count[level]; r++)
            group[sorted[row + r].type] = first + (uint32_t)((uint64_t)r * of / count[level]);
        row += count[level];
        first += of;
    }
    for (uint32_t i = 0; i < n; i++)
        moved[next[group[i]]++] = ids[i];
    memcpy(ids, moved, (size_t)n * 4);
}

static void group_interval(gs_part_order *o, uint32_t interval, const gs_permute *random, const bench *w)
{
    uint32_t *const ids = o->input_id + (uint64_t)interval * o->grid.rows;
    const uint32_t n = gs_part__grid_capacity(&o->grid, interval), parts = o->grid.parts;

    uint32_t count[GS_PART_LEVELS] = {0};

    for (uint32_t i = 0; i < n; i++) {
        const uint64_t level = o->level != NULL ? o->level[ids[i]] : GS_PART_LABELLED;
        const uint64_t need = o->need != NULL ? need_key(o->need[ids[i]], GS_MIN(parts, 64)) : 0;
        const uint64_t key = random != NULL ? gs_part__permute(random, ids[i]) : level << 61 | need >> 3;
        w->keys[i] = (gs_part_key16){key, i, 0};
        count[level]++;
    }
    regroup(ids, n, groups_of(o, random != NULL), count, w);
}

static gs_status group_all(gs_part_order *o, gs_part_job *job, bool is_random)
{
    const uint64_t bytes = (uint64_t)o->grid.rows * sizeof(gs_part_key16);
    const uint32_t threads = (uint32_t)GS_MAX(1, GS_MIN(job->threads, job->buffers / (2 * bytes)));
    const gs_permute random = gs_part__permute_make(o->grid.vertices, job->opt->seed, GS_RANDOM_PARTITION);

#pragma omp parallel num_threads(threads)
    {
        bench w = {gs_malloc(bytes), gs_malloc(bytes)};
        if (w.keys == NULL || w.spare == NULL)
            gs_part__job_fail(job, gs_fail(GS_ENOMEM, "no memory to order an interval of %u rows", o->grid.rows));
#pragma omp for schedule(dynamic, 1)
        for (uint32_t i = 0; i < o->grid.parts; i++)
            if (!gs_part__job_stop(job))
                group_interval(o, i, is_random ? &random : NULL, &w);
        gs_free(w.keys);
        gs_free(w.spare);
    }
    return gs_part__job_result(job);
}

static gs_status list_by_interval(gs_part_order *o)
{
    uint64_t *next = gs_malloc_array(o->grid.parts, 8);

    o->input_id = gs_malloc_array(o->grid.vertices, 4);
    if (next == NULL || o->input_id == NULL) {
        gs_free(next);
        return gs_fail(GS_ENOMEM, "no memory for the order of %llu vertices", (unsigned long long)o->grid.vertices);
    }
    for (uint32_t i = 0; i < o->grid.parts; i++)
        next[i] = (uint64_t)i * o->grid.rows;
    for (uint64_t v = 0; v < o->grid.vertices; v++)
        o->input_id[next[o->part[v]]++] = (uint32_t)v;
    gs_free(next);
    return GS_OK;
}

gs_status gs_part__positions(gs_part_order *o, gs_part_job *job)
{
    const bool random = strcmp(o->method, "random") == 0;
    gs_status st;

    if ((st = list_by_interval(o)) != GS_OK)
        return st;
    o->groups = 1;
    if (o->need != NULL || o->level != NULL || random) {
        o->groups = (groups_of(o, random) + (o->level != NULL ? GS_PART_LEVELS : 0)) * o->grid.parts;
        if ((st = group_all(o, job, random)) != GS_OK)
            return st;
    } else if (o->grid.parts > 1 && strcmp(o->method, "natural") != 0) {
        o->groups = o->grid.parts;
    }
    gs_free(o->need);
    gs_free(o->level);
    o->need = NULL;
    o->level = NULL;
    o->position = o->part; /* the same memory: interval numbers are needed no more */
    o->part = NULL;
    for (uint64_t p = 0; p < o->grid.vertices; p++)
        o->position[o->input_id[p]] = (uint32_t)p;
    return GS_OK;
}

gs_status gs_part__largest_chunk(uint64_t *edges, const gs_part_order *o, uint64_t cap)
{
    const gs_spill *s = o->chunked[0];
    const uint64_t width = 1ull << o->region_shift, piece = 4096;
    uint64_t most = 0, *count = gs_malloc_array(width, 8);
    uint32_t *records = gs_malloc_array(piece, s->words * 4u);
    gs_status st = count && records ? GS_OK : gs_fail(GS_ENOMEM, "no memory to count %llu chunks", (unsigned long long)width);

    for (uint32_t region = 0; st == GS_OK && region < s->streams; region++) {
        gs_spill_cursor at = gs_part__spill_first(s, region);
        uint64_t got = 1;
        if (gs_part__spill_records(s, region) <= cap)
            continue; /* so has each of its chunks */
        memset(count, 0, width * 8);
        while (st == GS_OK && got != 0 && (st = gs_part__spill_read(s, &at, records, piece, &got)) == GS_OK) {
            for (uint32_t *r = records; r < records + got * s->words; r += s->words) {
                const uint64_t t = gs_fastdiv_of(o->grid.by_rows, o->position[r[1]]);
                const uint64_t chunk = t * o->grid.parts + gs_fastdiv_of(o->grid.by_rows, o->position[r[0]]);
                most = GS_MAX(most, ++count[chunk - region * width]);
            }
        }
    }
    if (st == GS_OK)
        *edges = most;
    gs_free(count);
    gs_free(records);
    return st;
}
