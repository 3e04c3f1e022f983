/* relations.c - words in a table under a lock that readers share. */
#include "partition/relations.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"

#define MOST_WORDS 65536u
#define MOST_BYTES (1u << 20) /* of all words: they are beside what .memory is divided into */
#define LEAST_SLOTS 1024u
#define TOLD_BYTES 600u /* of words in a line */

typedef struct word {
    const char *text; /* owned, without a 0 */
    uint32_t length, number;
} word;

struct gs_relations {
    const char *path;
    pthread_rwlock_t lock; /* guards all below but `type`, until words are ordered */
    word *word; /* [count] by number; ordered by gs_part__relations_order() */
    uint32_t count, cap, bytes;
    uint32_t *slot; /* [slots] number + 1; 0: free */
    uint32_t slots;
    uint32_t *type; /* [count] */
};

gs_status gs_part__relations_make(gs_relations **out, const char *path)
{
    gs_relations *const r = gs_calloc(1, sizeof(*r));

    if (r == NULL || (r->slot = gs_calloc(LEAST_SLOTS, sizeof(*r->slot))) == NULL) {
        gs_free(r);
        return gs_fail(GS_ENOMEM, "%s: no memory for the names of edge types", path);
    }
    r->path = path;
    r->slots = LEAST_SLOTS;
    pthread_rwlock_init(&r->lock, NULL);
    *out = r;
    return GS_OK;
}

void gs_part__relations_free(gs_relations *r)
{
    if (r == NULL)
        return;
    for (uint32_t k = 0; k < r->count; k++)
        gs_free((void *)(uintptr_t)r->word[k].text);
    gs_free(r->word);
    gs_free(r->slot);
    gs_free(r->type);
    pthread_rwlock_destroy(&r->lock);
    gs_free(r);
}

/* The slot of a word, or the free one where it belongs. Under the lock. */
static uint32_t *find(const gs_relations *r, const char *text, size_t length)
{
    uint32_t at = (uint32_t)gs_hash64(text, length) & (r->slots - 1);

    while (r->slot[at] != 0) {
        const word *const w = &r->word[r->slot[at] - 1];
        if (w->length == length && memcmp(w->text, text, length) == 0)
            break;
        at = (at + 1) & (r->slots - 1);
    }
    return &r->slot[at];
}

static bool widen(gs_relations *r)
{
    uint32_t *const old = r->slot, *const wider = gs_calloc(r->slots * 2ull, sizeof(*wider));

    if (wider == NULL)
        return false;
    r->slot = wider;
    r->slots *= 2;
    for (uint32_t k = 0; k < r->count; k++)
        *find(r, r->word[k].text, r->word[k].length) = k + 1;
    gs_free(old);
    return true;
}

/* A word that no one has read before. Under the lock, as its only holder. */
static gs_status enter(gs_relations *r, uint32_t *slot, const char *text, size_t length)
{
    if (r->count == MOST_WORDS || r->bytes + length > MOST_BYTES)
        return gs_fail(GS_EUNSUPPORTED, "%s: more than %u edge types, or 1 MiB of their names; is the column of types "
                       "another one?", r->path, MOST_WORDS);
    char *const own = gs_malloc(length);
    if (own == NULL || !gs_grow(&r->word, r->count, &r->cap, sizeof(*r->word))) {
        gs_free(own);
        return gs_fail(GS_ENOMEM, "%s: no memory for the names of edge types", r->path);
    }
    memcpy(own, text, length);
    r->bytes += (uint32_t)length;
    r->word[r->count] = (word){own, (uint32_t)length, r->count};
    *slot = ++r->count;
    if (r->count * 2 > r->slots && !widen(r))
        return gs_fail(GS_ENOMEM, "%s: no memory for the names of edge types", r->path);
    return GS_OK;
}

gs_status gs_part__relations_number(gs_relations *r, uint32_t *out, const char *text, size_t length)
{
    gs_status st = GS_OK;

    pthread_rwlock_rdlock(&r->lock);
    uint32_t number = *find(r, text, length);
    pthread_rwlock_unlock(&r->lock);
    if (number == 0) {
        pthread_rwlock_wrlock(&r->lock);
        uint32_t *const slot = find(r, text, length); /* another may have been faster */
        if (*slot == 0)
            st = enter(r, slot, text, length);
        number = *find(r, text, length);
        pthread_rwlock_unlock(&r->lock);
    }
    *out = number - 1;
    return st;
}

static int shorter_first(const void *a, const void *b)
{
    const word *const x = a, *const y = b;
    return x->length != y->length ? (x->length > y->length) - (x->length < y->length)
                                  : memcmp(x->text, y->text, x->length);
}

/* The store keeps numbers: which word has which is said once. */
static void tell_of(const gs_relations *r, const gs_part_job *job)
{
    char text[TOLD_BYTES] = "";
    size_t used = 0;
    uint32_t told = 0;

    for (; told < r->count && used + r->word[told].length + 16 < sizeof(text); told++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u %.*s", told == 0 ? "" : ", ", told,
                                 (int)r->word[told].length, r->word[told].text);
    gs_part__warn(job, "%s: edge types are words, numbered shortest first, those of one length by their bytes: %s%s",
                  r->path, text, told < r->count ? ", ..." : "");
}

gs_status gs_part__relations_order(gs_relations *r, const gs_part_job *job)
{
    if ((r->type = gs_malloc_array(GS_MAX(r->count, 1), sizeof(*r->type))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the names of edge types", r->path);
    qsort(r->word, r->count, sizeof(*r->word), shorter_first);
    for (uint32_t k = 0; k < r->count; k++)
        r->type[r->word[k].number] = k;
    tell_of(r, job);
    return GS_OK;
}

const uint32_t *gs_part__relations_type(const gs_relations *r) { return r->type; }
