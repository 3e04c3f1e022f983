/* scans.c - what scans of edge files said, each answer beside its question; and which rank scans what. */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "ranks/ranks.h"
#include "session/edges.h"
#include "session/session.h"

/* ---- what scans said ------------------------------------------------------ */

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

/* Its bytes stay counted. */
static void drop_last(gs_scans *s)
{
    const gs_scan_key *const k = &s->scan[--s->count].key;
    gs_free(k->targets);
    gs_free(k->operands);
    for (int p = 0; p < 2; p++)
        gs_free(s->scan[s->count].packed[p]);
}

/* ---- bytes without those of 0 ---- */

/* Of each word of 8 bytes, one that says which of them are not 0, and those; 0 comes before how many words of 0 follow
 * one another, less 1. Tables of chunks are most of what is packed, a few bytes of each word. */
#define PACK_WORDS 256u

/* The bytes of the word at `at`, and 0 behind the end. */
static uint64_t word_at(const uint8_t *from, uint64_t at, uint64_t bytes)
{
    uint64_t word = 0;
    memcpy(&word, from + at, GS_MIN(bytes - at, sizeof(word)));
    return word;
}

/* A bit for each byte of the word that is not 0. */
static uint32_t bytes_in(uint64_t word)
{
    word |= word >> 4;
    word |= word >> 2;
    word |= word >> 1;
    return (uint32_t)(((word & 0x0101010101010101u) * 0x0102040810204080u) >> 56);
}

static uint32_t words_of_0(const uint8_t *from, uint64_t at, uint64_t bytes)
{
    uint32_t n = 1;
    while (n < PACK_WORDS && at + n * sizeof(uint64_t) < bytes && word_at(from, at + n * sizeof(uint64_t), bytes) == 0)
        n++;
    return n;
}

/* Gives their number; with `out` NULL that is all. */
static uint64_t pack(uint8_t *out, const uint8_t *from, uint64_t bytes)
{
    uint64_t packed = 0;
    uint32_t words = 1;

    for (uint64_t at = 0; at < bytes; at += words * sizeof(uint64_t)) {
        const uint64_t word = word_at(from, at, bytes);
        const uint32_t mask = bytes_in(word);
        words = mask == 0 ? words_of_0(from, at, bytes) : 1;
        if (out != NULL) {
            uint8_t *to = out + packed;
            *to++ = (uint8_t)mask;
            *to = (uint8_t)(words - 1); /* where there are no others */
            for (uint32_t left = mask; left != 0; left &= left - 1)
                *to++ = (uint8_t)(word >> 8 * __builtin_ctz(left));
        }
        packed += 1 + (mask == 0 ? 1 : (uint32_t)__builtin_popcount(mask));
    }
    return packed;
}

static void unpack(uint8_t *to, uint64_t bytes, const uint8_t *packed)
{
    for (uint64_t at = 0; at < bytes;) {
        const uint32_t mask = *packed++;
        uint64_t n = sizeof(uint64_t), word = 0;
        if (mask == 0) {
            n *= *packed++ + 1u;
            memset(to + at, 0, GS_MIN(n, bytes - at));
        } else {
            for (uint32_t left = mask; left != 0; left &= left - 1)
                word |= (uint64_t)*packed++ << 8 * __builtin_ctz(left);
            memcpy(to + at, &word, GS_MIN(n, bytes - at));
        }
        at += n;
    }
}

/* ---- questions and answers ---- */

bool gs_scans_find(const gs_scans *s, const gs_scan_key *k, const gs_scan_answer *a)
{
    for (uint32_t i = 0; s != NULL && i < s->count; i++) {
        const uint64_t *const known = s->scan[i].bytes;
        if (!same_question(&s->scan[i].key, k) || known[0] != a->bytes[0] || known[1] != a->bytes[1])
            continue;
        for (int p = 0; p < 2; p++)
            unpack(a->part[p], a->bytes[p], s->scan[i].packed[p]);
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

void gs_scans_keep(gs_scans *s, const gs_scan_key *k, const gs_scan_answer *a)
{
    const uint64_t set = k->words * sizeof(uint64_t);
    uint64_t packed[2], bytes = (k->targets != NULL ? set : 0) + (k->operands != NULL ? set : 0);
    bool whole = true;

    if (s == NULL || s->count == GS_SCANS)
        return;
    for (int p = 0; p < 2; p++)
        bytes += packed[p] = pack(NULL, a->part[p], a->bytes[p]);
    if (bytes > s->most - s->bytes)
        return;
    gs_scan_key *const key = &s->scan[s->count].key;
    *key = *k;
    key->targets = copy_of(k->targets, set, &whole);
    key->operands = copy_of(k->operands, set, &whole);
    for (int p = 0; p < 2; p++) {
        uint8_t *const to = s->scan[s->count].packed[p] = gs_malloc(packed[p]);
        s->scan[s->count].bytes[p] = a->bytes[p];
        whole = whole && to != NULL;
        if (to != NULL)
            pack(to, a->part[p], a->bytes[p]);
    }
    s->count++;
    s->bytes += bytes;
    if (!whole)
        drop_last(s);
}

void gs_scans_drop(gs_scans *s)
{
    while (s->count > 0)
        drop_last(s);
    for (int d = 0; d < 2; d++)
        gs_free(s->copy[d].bytes);
    gs_cuts_drop(&s->cuts);
    gs_store_close(s->store);
    *s = (gs_scans){0};
}

/* ---- ranks ---------------------------------------------------------------- */

_Static_assert(GS_SHARDS_MOST == GS_RANKS_MOST, "a shard for each rank");

/* The first interval of each of so many ranks, [ranks + 1]: whose columns and rows they are. */
static void deal(const gs_session *s, uint32_t ranks, uint32_t *first)
{
    const gs_store_shard *const shard = gs_store_get_shard(s->store);

    if (shard != NULL && shard->ranks == ranks)
        memcpy(first, shard->first, (ranks + 1) * sizeof(*first));
    else if (ranks == 1) /* the tables need not be gone over */
        memcpy(first, (uint32_t[]){0, gs_store_chunks(s->store)->parts}, 2 * sizeof(*first));
    else
        gs_chunk_deal(gs_store_chunks(s->store), ranks, first);
}

gs_status gs_session_open_store(gs_store **out, const char *dir)
{
    const uint32_t self = gs_ranks_self(), ranks = gs_ranks_count();
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;

    GS_TRY(ranks == 1 ? gs_store_open(&s, dir) : gs_store_open_part(&s, dir));
    const gs_store_shard *const x = gs_store_get_shard(s);
    if (x != NULL && (x->ranks != ranks || x->rank != self))
        return gs_fail(GS_EINVAL, "%s: is shard %u of %u, and this is rank %u of %u; %s", dir, x->rank, x->ranks, self,
                       ranks, x->ranks != ranks ? "start a rank for each shard" : "name the shards in their order");
    *out = GS_HANDED_OVER(s);
    return GS_OK;
}

const uint32_t *gs_session_owners(gs_session *s)
{
    const gs_topology *const t = &s->machine.wires;

    if (!t->across.network || (t->place.said && !t->across.shards))
        return NULL;
    deal(s, t->devices, s->machine.owners);
    return s->machine.owners;
}

uint32_t gs_session_dealt_arrays(const gs_session *s)
{
    uint32_t arrays = 0;

    for (unsigned id = 0; id < GS_ARRAY_COUNT && s->machine.wires.across.shards; id++)
        arrays |= gs_store_deals_array((gs_array_id)id) ? 1u << id : 0;
    return arrays;
}

gs_status gs_scan_share_check(const gs_session *s)
{
    if (!s->config.trial || gs_store_get_shard(s->store) == NULL)
        return GS_OK;
    return gs_fail(GS_ENOMEM, "a budget is not tried, as a shard has a part of the edges");
}

/* A trial is of one rank, and others may make none. */
void gs_scan_share_describe(gs_scan_share *out, const gs_session *s)
{
    const uint32_t ranks = s->config.trial ? 1 : gs_ranks_count(), self = s->config.trial ? 0 : gs_ranks_self();

    *out = (gs_scan_share){.ranks = ranks, .parts = gs_store_chunks(s->store)->parts};
    deal(s, ranks, out->deal);
    out->first = out->deal[self];
    out->end = out->deal[self + 1];
}

gs_status gs_scan_share_take(gs_scan_share *out, const gs_session *s)
{
    gs_scan_share_describe(out, s);
    if (out->ranks == 1)
        return GS_OK;
    if ((out->wanted = gs_calloc((uint64_t)out->parts * out->parts, 1)) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for what ranks read of the edges");
    memset(out->wanted + (uint64_t)out->first * out->parts, 1, (uint64_t)(out->end - out->first) * out->parts);
    return GS_OK;
}

gs_status gs_scan_share_chunks(const gs_scan_share *x, void *table, uint64_t chunk_bytes)
{
    const uint64_t row = x->parts * chunk_bytes;

    for (uint32_t r = 0; r < x->ranks && x->ranks > 1 && table != NULL; r++)
        GS_TRY(gs_ranks_share_of(r, (char *)table + x->deal[r] * row, (x->deal[r + 1] - x->deal[r]) * row));
    return GS_OK;
}
