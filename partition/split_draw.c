/* split_draw.c - splits drawn from the seed.
 *
 * Each vertex has a random key; in order of keys the first share is for training, the next for validation, the next
 * for test. Where a share ends is found by counting keys by their upper bits, then sorting the few that share the
 * upper bits of the end: nothing of O(N) is held but the result. */
#include "partition/split_draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "base/size.h"
#include "store/store.h" /* gs_split */

#define BUCKETS 65536u
#define BUCKET_SHIFT 48

typedef struct draw {
    const int32_t *labels;
    uint64_t vertices, candidates;
    uint32_t key[2];
    uint64_t *count;  /* [BUCKETS] keys of each */
    uint64_t *sorted; /* keys of one bucket */
    uint64_t end[3];  /* the first key after each share */
    bool all[3];      /* no key comes after it */
} draw;

gs_status gs_part__split_shares(double share[3], const char *text)
{
    const char *p = text;
    double sum = 0;

    for (int i = 0; i < 3; i++) {
        char *after;
        share[i] = strtod(p, &after);
        if (after == p || !(share[i] >= 0 && share[i] <= 1) || *after != (i < 2 ? ',' : '\0'))
            return gs_fail(GS_EINVAL, ".split %s: must be three shares from 0 to 1 for training, validation and test, "
                                      "such as 0.6,0.2,0.2", text);
        p = after + 1;
        sum += share[i];
    }
    return sum <= 1 + 1e-9 ? GS_OK : gs_fail(GS_EINVAL, ".split %s: the shares are more than 1 together", text);
}

static bool is_candidate(const draw *d, uint64_t v) { return d->labels == NULL || d->labels[v] >= 0; }

static uint64_t key_of(const draw *d, uint64_t v)
{
    const uint32_t counter[4] = {(uint32_t)v, 0, 0, 0};
    uint32_t word[4];
    gs_philox4x32(word, counter, d->key);
    return (uint64_t)word[1] << 32 | word[0];
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t u = *(const uint64_t *)a, v = *(const uint64_t *)b;
    return (u > v) - (u < v);
}

/* The key with `rank` keys before it. */
static gs_status find_end(draw *d, int share, uint64_t rank)
{
    uint64_t before = 0, found = 0;
    uint32_t bucket = 0;

    d->all[share] = rank >= d->candidates;
    if (d->all[share])
        return GS_OK;
    while (before + d->count[bucket] <= rank)
        before += d->count[bucket++];
    if ((d->sorted = gs_malloc_array(d->count[bucket], 8)) == NULL)
        return gs_fail(GS_ENOMEM, ".split: no memory for %llu keys", (unsigned long long)d->count[bucket]);
    for (uint64_t v = 0; v < d->vertices; v++) {
        const uint64_t key = key_of(d, v);
        if (key >> BUCKET_SHIFT == bucket && is_candidate(d, v))
            d->sorted[found++] = key;
    }
    qsort(d->sorted, found, 8, compare_keys);
    d->end[share] = d->sorted[rank - before];
    gs_free(d->sorted);
    d->sorted = NULL;
    return GS_OK;
}

static void count_keys(draw *d)
{
    for (uint64_t v = 0; v < d->vertices; v++)
        if (is_candidate(d, v)) {
            d->count[key_of(d, v) >> BUCKET_SHIFT]++;
            d->candidates++;
        }
}

static void assign(const draw *d, uint8_t *split, uint64_t count[3])
{
    memset(count, 0, 3 * sizeof(*count));
    for (uint64_t v = 0; v < d->vertices; v++) {
        const uint64_t key = key_of(d, v);
        int share = 0;
        while (share < 3 && !d->all[share] && key >= d->end[share])
            share++;
        if (share == 3 || !is_candidate(d, v))
            continue;
        split[v] = (uint8_t)(GS_SPLIT_TRAIN + share);
        count[share]++;
    }
}

gs_status gs_part__split_draw(uint8_t **split, uint64_t count[3], const gs_part_input *in, const int32_t *labels,
                              const gs_part_job *job)
{
    draw d = {.labels = labels, .vertices = in->vertices};
    double share[3], sum = 0;
    uint8_t *drawn = NULL;
    gs_status st;

    if (*split != NULL)
        return gs_fail(GS_EINVAL, ".split %s: %s has splits of its own; leave the option out", job->opt->split,
                       in->path);
    if ((st = gs_part__split_shares(share, job->opt->split)) != GS_OK)
        return st;
    gs_random_key(d.key, job->opt->seed, GS_RANDOM_SPLIT);
    d.count = gs_calloc(BUCKETS, sizeof(*d.count));
    drawn = gs_calloc(in->vertices, 1);
    if (d.count == NULL || drawn == NULL)
        st = gs_fail(GS_ENOMEM, "%s: no memory for the splits", in->path);
    else
        count_keys(&d);
    for (int i = 0; i < 3 && st == GS_OK; i++) {
        sum += share[i];
        st = find_end(&d, i, (uint64_t)llround(GS_MIN(sum, 1.0) * (double)d.candidates));
    }
    if (st == GS_OK) {
        assign(&d, drawn, count);
        *split = drawn;
        drawn = NULL; /* now the caller's */
    }
    gs_free(drawn);
    gs_free(d.count);
    return st;
}
