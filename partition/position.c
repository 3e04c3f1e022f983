/* position.c - from intervals to rows: which rows of an interval lie together?
 *
 * Rows that the same other intervals need should be neighbours, so that a selective read is a few long
 * runs, whether it is for one interval or for a block of them. So an interval's rows, where few are
 * labelled those first and with them those that they hear, are sorted by the set of groups of intervals
 * that need them, for 9 groups of neighbouring intervals, then for 18, then for each interval. With
 * 2.1M vertices and 58M edges in 36 parts by METIS and gaps read through where that is faster, an interval
 * needs 0.25 of the rows of the others (0.36 where rows are sorted by the set of intervals at
 * once, 0.09 are named by edges), two 0.28 (0.41, 0.18), four 0.35 (0.52, 0.32).
 */
#include "partition/position.h"

#include <omp.h>
#include <string.h>

#include "base/alloc.h"
#include "base/external_sort.h"
#include "base/philox.h"
#include "base/size.h"
#include "partition/grid.h"
#include "partition/job.h"
#include "partition/permute.h"
#include "partition/sort.h"
#include "partition/vertex_order.h"

#define NEED_BITS 64u /* of a set of intervals, or of neighbours where there are more */
#define WIDE 9u
#define NARROW 18u

/* Sets in the order of a Gray code differ little from one to the next. */
static uint64_t gray_place(uint64_t set)
{
    for (uint32_t shift = 1; shift < 64; shift *= 2)
        set ^= set >> shift;
    return set;
}

/* The groups, of `groups` equal ones, that a set of `bits` bits meets. */
static uint64_t in_groups(uint64_t set, uint32_t bits, uint32_t groups)
{
    uint64_t out = 0;
    for (; set != 0; set &= set - 1)
        out |= 1ull << (uint32_t)__builtin_ctzll(set) * groups / bits;
    return out;
}

/* Vertices that nobody else needs come first, those that most intervals need come last. */
static uint64_t need_key(uint64_t need, uint32_t bits)
{
    const uint32_t count = (uint32_t)__builtin_popcountll(need);

    if (need == 0)
        return 0;
    if (count * 2 > bits)
        return 2ull << 59 | count;
    return 1ull << 59 | gray_place(in_groups(need, bits, WIDE)) << NARROW | gray_place(in_groups(need, bits, NARROW));
}

/* Buffers of one thread for one interval. */
typedef struct bench {
    gs_part_key16 *keys, *spare;
} bench;

/* Sorts w->keys, whose `type` is a place in ids; what is equal keeps its order. */
static void sort_keys(bench *w, uint32_t n)
{
    gs_part_key16 *const sorted = gs_part__sort16(w->keys, w->spare, n, 64, 0, 0);
    w->spare = sorted == w->keys ? w->spare : w->keys;
    w->keys = sorted;
}

static uint64_t need_of(const gs_part_order *o, uint32_t id) { return o->need != NULL ? o->need[id] : 0; }

static void order_interval(gs_part_order *o, uint32_t interval, const gs_permute *random, bench *w)
{
    uint32_t *const ids = o->input_id + (uint64_t)interval * o->grid.rows;
    const uint32_t n = gs_part__grid_capacity(&o->grid, interval), bits = GS_MIN(o->grid.parts, NEED_BITS);

    for (uint32_t i = 0; i < n; i++)
        w->keys[i] =
            (gs_part_key16){random != NULL ? gs_part__permute(random, ids[i]) : gray_place(need_of(o, ids[i])), i, 0};
    sort_keys(w, n);
    if (random == NULL) {
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t id = ids[w->keys[i].type];
            const uint64_t level = o->level != NULL ? o->level[id] : GS_PART_LEARNED;
            w->keys[i].key = level << 61 | need_key(need_of(o, id), bits);
        }
        sort_keys(w, n);
    }
    uint32_t *const moved = (uint32_t *)w->spare;
    for (uint32_t i = 0; i < n; i++)
        moved[i] = ids[w->keys[i].type];
    memcpy(ids, moved, (size_t)n * 4);
}

static gs_status order_all(gs_part_order *o, gs_part_job *job, bool is_random)
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
                order_interval(o, i, is_random ? &random : NULL, &w);
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
        o->groups = o->need != NULL || random ? (uint32_t)o->grid.vertices : GS_PART_LEVELS * o->grid.parts;
        if ((st = order_all(o, job, random)) != GS_OK)
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
    const gs_external_sort *s = o->chunked[0];
    const uint64_t width = 1ull << o->region_shift, piece = 4096;
    uint64_t most = 0, *count = gs_malloc_array(width, 8);
    uint32_t *records = gs_malloc_array(piece, s->spec.words * 4u);
    gs_status st =
        count && records ? GS_OK : gs_fail(GS_ENOMEM, "no memory to count %llu chunks", (unsigned long long)width);

    for (uint32_t region = 0; st == GS_OK && region < s->spec.buckets; region++) {
        gs_sort_cursor at = gs_sort_first(s, region);
        uint64_t got = 1;
        if (gs_sort_records(s, region) <= cap)
            continue; /* so has each of its chunks */
        memset(count, 0, width * 8);
        while (st == GS_OK && got != 0 && (st = gs_sort_read(s, &at, records, piece, &got)) == GS_OK) {
            for (uint32_t *r = records; r < records + got * s->spec.words; r += s->spec.words) {
                const uint64_t t = gs_fastdiv_of(o->grid.by_rows, o->position[r[1]]);
                const uint64_t chunk = t * o->grid.parts + gs_fastdiv_of(o->grid.by_rows, o->position[r[0]]);
                count[chunk - region * width]++;
                most = GS_MAX(most, count[chunk - region * width]);
            }
        }
    }
    if (st == GS_OK)
        *edges = most;
    gs_free(count);
    gs_free(records);
    return st;
}
