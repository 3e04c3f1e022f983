/* scans.c - answers of scans, each beside its question. */
#include "session/scans.h"

#include <string.h>

#include "base/alloc.h"

static bool same_set(const uint64_t *a, const uint64_t *b, uint64_t words)
{
    return a == NULL || b == NULL ? a == b : memcmp(a, b, words * sizeof(*a)) == 0;
}

static bool same_question(const gs_scan_key *a, const gs_scan_key *b)
{
    return a->kind == b->kind && a->direction == b->direction && a->rows == b->rows &&
           a->coarse_rows == b->coarse_rows && a->words == b->words && same_set(a->targets, b->targets, a->words) &&
           same_set(a->operands, b->operands, a->words);
}

bool gs_scans_find(const gs_scans *s, const gs_scan_key *k, const gs_scan_answer *a)
{
    for (uint32_t i = 0; s != NULL && i < s->count; i++) {
        const gs_scan_answer *const known = &s->scan[i].answer;
        if (!same_question(&s->scan[i].key, k) || known->bytes[0] != a->bytes[0] || known->bytes[1] != a->bytes[1])
            continue;
        for (int p = 0; p < 2; p++)
            if (a->bytes[p] > 0)
                memcpy(a->part[p], known->part[p], a->bytes[p]);
        return true;
    }
    return false;
}

/* NULL for nothing; *whole: false where there is no memory for it. */
static void *copy_of(const void *from, uint64_t bytes, bool *whole)
{
    void *const to = from == NULL || bytes == 0 ? NULL : gs_malloc_array(bytes, 1);
    if (to != NULL)
        memcpy(to, from, bytes);
    *whole = *whole && (to != NULL || from == NULL || bytes == 0);
    return to;
}

static void drop_one(gs_scan_key *k, gs_scan_answer *a)
{
    gs_free((void *)(uintptr_t)k->targets);
    gs_free((void *)(uintptr_t)k->operands);
    gs_free(a->part[0]);
    gs_free(a->part[1]);
}

void gs_scans_keep(gs_scans *s, const gs_scan_key *k, const gs_scan_answer *a)
{
    const uint64_t set = k->words * sizeof(uint64_t);
    const uint64_t bytes = (k->targets != NULL ? set : 0) + (k->operands != NULL ? set : 0) + a->bytes[0] + a->bytes[1];
    bool whole = true;

    if (s == NULL || s->count == GS_SCANS || bytes > s->most - s->bytes)
        return;
    gs_scan_key key = *k;
    key.targets = copy_of(k->targets, set, &whole);
    key.operands = copy_of(k->operands, set, &whole);
    gs_scan_answer answer = *a;
    for (int p = 0; p < 2; p++)
        answer.part[p] = copy_of(a->part[p], a->bytes[p], &whole);
    if (!whole) {
        drop_one(&key, &answer);
        return;
    }
    s->scan[s->count].key = key;
    s->scan[s->count++].answer = answer;
    s->bytes += bytes;
}

void gs_scans_drop(gs_scans *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        drop_one(&s->scan[i].key, &s->scan[i].answer);
    *s = (gs_scans){0};
}
