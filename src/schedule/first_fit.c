/* first_fit.c - the lowest free address at each time. */
#include "schedule/first_fit.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "schedule/runs.h"

/* Places that are taken at access `now`. Units that come back before the epoch's end leave their place free in
 * between, to those that are gone by then. */
typedef struct placing {
    gs_extents free;
    gs_cache_stay *stay;     /* [stays], in the order of by_time */
    gs_cache_stay **back;    /* [backs] those that come back, by access */
    gs_cache_stay **address; /* [backs] the same by address */
    uint32_t backs, came;    /* `came` of them have come back */
    uint32_t *ending, *next; /* [accesses], [stays]: 1 + the stays that end with an access, as lists */
    uint32_t now;            /* all that ends before this access has left */
} placing;

static int kind_of(const gs_cache_stay *x) { return x->from == x->to ? 0 : x->to < x->from ? 1 : 2; }

static int by_time(const void *a, const void *b)
{
    const gs_cache_stay *x = a, *y = b;
    if (kind_of(x) != kind_of(y))
        return kind_of(x) - kind_of(y);
    return (x->from > y->from) - (x->from < y->from);
}

static int by_address(const void *a, const void *b)
{
    const gs_cache_stay *const *x = a, *const *y = b;
    return ((*x)->at > (*y)->at) - ((*x)->at < (*y)->at);
}

static bool leaves(const gs_cache_stay *x) { return x->to > x->from || (x->to < x->from && x->until < x->from); }

static bool takes_bytes(const gs_cache_stay *x) { return x->at != GS_CACHE_NOWHERE && x->bytes > 0; }

static void go_on(placing *p, uint32_t now)
{
    for (; p->now < now; p->now++)
        for (uint32_t i = p->ending[p->now]; i != 0; i = p->next[i - 1])
            gs_extents_give(&p->free, p->stay[i - 1].at, p->stay[i - 1].bytes);
    for (; p->came < p->backs && p->back[p->came]->from <= now; p->came++)
        gs_extents_take(&p->free, p->back[p->came]->at, p->back[p->came]->bytes);
}

/* The first that ends after `at` of those that come back, by address. */
static uint32_t back_after(const placing *p, uint64_t at)
{
    uint32_t low = 0, high = p->backs;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (p->address[middle]->at + p->address[middle]->bytes <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The lowest address that is free now, and to which nothing comes back while `x` is there. */
static uint64_t lowest_for(const placing *p, const gs_cache_stay *x)
{
    uint64_t at = 0, end;

    if (x->bytes == 0)
        return 0;
    while ((at = gs_extents_find(&p->free, at, x->bytes, &end)) != GS_EXTENTS_NONE) {
        uint64_t fits = at;
        for (uint32_t i = back_after(p, at); i < p->backs && p->address[i]->at < fits + x->bytes; i++)
            if (p->address[i]->from <= x->until)
                fits = p->address[i]->at + p->address[i]->bytes;
        if (fits + x->bytes <= end)
            return fits;
        at = fits;
    }
    return GS_CACHE_NOWHERE;
}

static void place(placing *p, uint32_t i)
{
    gs_cache_stay *const x = &p->stay[i];

    x->at = lowest_for(p, x);
    if (!takes_bytes(x))
        return;
    gs_extents_take(&p->free, x->at, x->bytes);
    if (leaves(x)) {
        p->next[i] = p->ending[x->until];
        p->ending[x->until] = i + 1;
    }
}

/* At the epoch's beginning all are there that are there always or come back. */
static void place_all(placing *p, uint32_t count)
{
    uint32_t i = 0;

    for (; i < count && kind_of(&p->stay[i]) < 2; i++) {
        place(p, i);
        if (kind_of(&p->stay[i]) == 1 && takes_bytes(&p->stay[i]) && leaves(&p->stay[i])) {
            p->address[p->backs] = p->back[p->backs] = &p->stay[i];
            p->backs++;
        }
    }
    qsort(p->address, p->backs, sizeof(gs_cache_stay *), by_address);
    for (; i < count; i++) {
        go_on(p, p->stay[i].from);
        place(p, i);
    }
}

gs_status gs_first_fit(gs_cache_stay *stay, uint32_t count, uint32_t accesses, uint64_t capacity,
                       const gs_cache_fixed *fixed, uint32_t fixeds)
{
    placing p = {.stay = stay,
                 .back = gs_malloc_array(count + 1ull, sizeof(gs_cache_stay *)),
                 .address = gs_malloc_array(count + 1ull, sizeof(gs_cache_stay *)),
                 .ending = gs_calloc(accesses + 1ull, sizeof(*p.ending)),
                 .next = gs_malloc_array(count + 1ull, sizeof(*p.next))};
    gs_status st = GS_OK;

    if (p.back == NULL || p.address == NULL || p.ending == NULL || p.next == NULL)
        st = gs_fail(GS_ENOMEM, "out of memory while planning");
    if (st == GS_OK && (st = gs_extents_make(&p.free, capacity, count + fixeds)) == GS_OK) {
        for (uint32_t i = 0; i < fixeds; i++)
            if (fixed[i].bytes > 0)
                gs_extents_take(&p.free, fixed[i].place, fixed[i].bytes);
        qsort(stay, count, sizeof(*stay), by_time);
        place_all(&p, count);
    }
    gs_extents_drop(&p.free);
    gs_free(p.back);
    gs_free(p.address);
    gs_free(p.ending);
    gs_free(p.next);
    return st;
}
