/* cache.c - Belady's choice of holds, and their addresses. */
#include "schedule/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/runs.h"

/* -- the lowest free address at each time. */

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
    uint64_t small;          /* stays of fewer bytes take the highest address */
    gs_arena arrays;
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
    GS_BISECT(low, high, p->address[middle]->at + p->address[middle]->bytes <= at);
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

/* The highest of those. */
static uint64_t highest_for(const placing *p, const gs_cache_stay *x)
{
    uint64_t at, until = UINT64_MAX;

    while ((at = gs_extents_find_last(&p->free, until, x->bytes)) != GS_EXTENTS_NONE) {
        uint64_t below = UINT64_MAX;
        for (uint32_t i = back_after(p, at); i < p->backs && p->address[i]->at < at + x->bytes; i++)
            if (p->address[i]->from <= x->until)
                below = GS_MIN(below, p->address[i]->at);
        if (below == UINT64_MAX)
            return at;
        until = below;
    }
    return GS_CACHE_NOWHERE;
}

static void place(placing *p, uint32_t i)
{
    gs_cache_stay *const x = &p->stay[i];

    x->at = x->bytes > 0 && x->bytes < p->small ? highest_for(p, x) : lowest_for(p, x);
    if (!takes_bytes(x))
        return;
    gs_extents_take(&p->free, x->at, x->bytes);
    if (leaves(x)) {
        p->next[i] = p->ending[x->until];
        p->ending[x->until] = i + 1;
    }
}

/* At the epoch's beginning all are there that are there always or come back. */
static void fit_all(placing *p, uint32_t count)
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

static uint64_t largest_of(const gs_cache_stay *stay, uint32_t count)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < count; i++)
        largest = GS_MAX(largest, stay[i].bytes);
    return largest;
}

gs_status gs_first_fit(gs_cache_stay *stay, uint32_t count, uint32_t accesses, uint64_t capacity,
                       const gs_cache_fixed *fixed, uint32_t fixeds, bool by_size)
{
    placing p = {.stay = stay, .small = by_size ? gs_div_up(largest_of(stay, count), 2) : 0};
    gs_status st;

    p.back = gs_arena_take(&p.arrays, count, sizeof(gs_cache_stay *));
    p.address = gs_arena_take(&p.arrays, count, sizeof(gs_cache_stay *));
    p.ending = gs_arena_take(&p.arrays, accesses + 1ull, sizeof(*p.ending));
    p.next = gs_arena_take(&p.arrays, count, sizeof(*p.next));
    st = p.arrays.is_short ? gs_fail(GS_ENOMEM, "out of memory while planning") : GS_OK;
    if (st == GS_OK && (st = gs_extents_make(&p.free, capacity, count + fixeds)) == GS_OK) {
        for (uint32_t i = 0; i < fixeds; i++)
            if (fixed[i].bytes > 0)
                gs_extents_take(&p.free, fixed[i].place, fixed[i].bytes);
        qsort(stay, count, sizeof(*stay), by_time);
        fit_all(&p, count);
    }
    gs_extents_drop(&p.free);
    gs_arena_free(&p.arrays);
    return st;
}

/* Epochs simulated to see what they hold at their ends: what the first ones do is due to the empty beginning. */
#define EPOCHS 6u

/* A unit in memory, by when it is used next; the furthest is at the heap's top. */
typedef struct waiting {
    uint64_t next;
    uint32_t unit;
} waiting;

typedef struct choosing {
    const gs_cache_access *access;
    uint32_t accesses, units;
    uint64_t capacity, used;
    gs_cache_parts parts;
    uint32_t *following; /* [accesses] of the same unit, in this epoch or (at most as large) the next */
    uint64_t *since;     /* [units] time of the access after which it is held; UINT64_MAX: it is not */
    uint64_t *until;     /* [units] its next use */
    bool *fixed;         /* [units] there all the time */
    bool *over;          /* [units] there at the beginning, so it must be at the end; no epoch's end is in reach else */
    bool *hold, *best;   /* [accesses] */
    waiting *heap;       /* entries that are out of date are skipped */
    uint64_t heaped;
    waiting *taken;      /* off the heap, to be put back where it was in vain */
    gs_arena arrays;
} choosing;

/* -- the heap -------------------------------------------------------------------- */

static void push(choosing *c, waiting w)
{
    uint64_t at = c->heaped++;
    for (; at > 0 && c->heap[(at - 1) / 2].next < w.next; at = (at - 1) / 2)
        c->heap[at] = c->heap[(at - 1) / 2];
    c->heap[at] = w;
}

static waiting pop(choosing *c)
{
    const waiting top = c->heap[0], last = c->heap[--c->heaped];
    uint64_t at = 0;
    for (;;) {
        uint64_t child = 2 * at + 1;
        if (child >= c->heaped)
            break;
        if (child + 1 < c->heaped && c->heap[child + 1].next > c->heap[child].next)
            child++;
        if (c->heap[child].next <= last.next)
            break;
        c->heap[at] = c->heap[child];
        at = child;
    }
    c->heap[at] = last;
    return top;
}

/* -- which holds ------------------------------------------------------------------- */

static bool is_held(const choosing *c, waiting w)
{
    return c->since[w.unit] != UINT64_MAX && c->until[w.unit] == w.next;
}

static void forget(choosing *c, uint32_t unit, uint64_t bytes)
{
    c->hold[c->since[unit] % c->accesses] = false;
    c->since[unit] = UINT64_MAX;
    c->used -= bytes;
}

/* Makes room for `bytes` by what is used after `next`; takes nothing away where that is not enough. */
static bool make_room(choosing *c, uint64_t bytes, uint64_t next)
{
    uint64_t freed = 0, taken = 0;

    while (c->used - freed + bytes > c->capacity && c->heaped > 0 && c->heap[0].next > next) {
        const waiting w = pop(c);
        if (!is_held(c, w))
            continue;
        c->taken[taken++] = w;
        freed += c->access[c->since[w.unit] % c->accesses].bytes;
    }
    const bool enough = c->used - freed + bytes <= c->capacity;
    for (uint64_t i = 0; i < taken; i++) {
        if (enough)
            forget(c, c->taken[i].unit, c->access[c->since[c->taken[i].unit] % c->accesses].bytes);
        else
            push(c, c->taken[i]);
    }
    return enough;
}

static void keep(choosing *c, uint64_t now, uint64_t next, bool may_go)
{
    const gs_cache_access *const a = &c->access[now % c->accesses];
    c->since[a->unit] = now;
    c->until[a->unit] = next;
    c->used += a->bytes;
    c->hold[now % c->accesses] = true;
    if (may_go)
        push(c, (waiting){next, a->unit});
}

/* `rolling`: one epoch after the other, each deciding for itself; else one epoch like all, in which what is there at
 * the beginning is there at the end, and nothing else is. False: that cannot be. */
static bool step(choosing *c, uint64_t now, bool rolling)
{
    const uint32_t k = (uint32_t)(now % c->accesses), f = c->following[k];
    const gs_cache_access *const a = &c->access[k];
    const uint64_t next = now - k + f + (f <= k ? c->accesses : 0);
    const bool there = c->since[a->unit] != UINT64_MAX, over = !rolling && f <= k && c->over[a->unit];

    if (c->fixed[a->unit])
        return true;
    if (there) { /* this hold ends here, kept; the next one is a new decision */
        c->since[a->unit] = UINT64_MAX;
        c->used -= a->bytes;
    }
    const bool brings = !a->serves && (a->whole || c->parts != GS_PARTS_PASS);
    if ((!there && !brings) || c->access[f].made || (f <= k && a->renewed))
        return !over;
    if (over) {
        if (!make_room(c, a->bytes, 0))
            return false;
        keep(c, now, next, false);
        return true;
    }
    if ((rolling || f > k) && make_room(c, a->bytes, next))
        keep(c, now, next, true);
    return true;
}

static void begin(choosing *c)
{
    memset(c->hold, 0, c->accesses * sizeof(*c->hold));
    memset(c->since, 0xff, c->units * sizeof(*c->since));
    c->used = c->heaped = 0;
}

/* One epoch that begins and ends with the units of `over`, which stay for their first use. Bytes read, or
 * UINT64_MAX where some unit cannot be there at the end; it is taken out of `over`. */
static uint64_t repeat_epoch(choosing *c)
{
    uint64_t read = 0;

    begin(c);
    for (uint32_t k = 0; k < c->accesses; k++) {
        const gs_cache_access *const a = &c->access[k];
        if (c->following[k] > k || !c->over[a->unit])
            continue;
        c->since[a->unit] = k; /* of the epoch before */
        c->used += a->bytes;
    }
    for (uint32_t k = 0; k < c->accesses; k++) {
        const gs_cache_access *const a = &c->access[k];
        read += c->since[a->unit] == UINT64_MAX && !c->fixed[a->unit] ? a->cost : 0;
        if (!step(c, k, false)) {
            c->over[a->unit] = false;
            return UINT64_MAX;
        }
    }
    return read;
}

static void try_epoch(choosing *c, uint64_t *least)
{
    uint64_t read = UINT64_MAX;

    while (read == UINT64_MAX) /* ends: `over` gets smaller, and nothing at all always works */
        read = repeat_epoch(c);
    if (read < *least) {
        *least = read;
        memcpy(c->best, c->hold, c->accesses * sizeof(*c->best));
    }
}

/* What Belady's rule holds at the ends of epochs that run on differs from one to the next where a
 * scan is longer than the memory; each is tried as what all epochs begin with. Leaves the best epoch's at `hold`. */
static void choose_holds(choosing *c, bool across, bool *ends)
{
    uint64_t least = UINT64_MAX;

    memset(ends, 0, (uint64_t)EPOCHS * c->units * sizeof(*ends));
    begin(c);
    for (uint64_t now = 0; across && now < (uint64_t)EPOCHS * c->accesses; now++) {
        step(c, now, true);
        if (now % c->accesses + 1 == c->accesses)
            for (uint32_t u = 0; u < c->units; u++)
                ends[now / c->accesses * c->units + u] = c->since[u] != UINT64_MAX;
    }
    memset(c->over, 0, c->units * sizeof(*c->over));
    try_epoch(c, &least);
    for (uint32_t e = 0; across && e < EPOCHS; e++) {
        memcpy(c->over, ends + (uint64_t)e * c->units, c->units * sizeof(*c->over));
        try_epoch(c, &least);
    }
    memcpy(c->hold, c->best, c->accesses * sizeof(*c->hold));
}

static void link_accesses(choosing *c, uint32_t *last)
{
    memset(last, 0xff, c->units * sizeof(*last));
    for (uint32_t pass = 0; pass < 2; pass++) { /* twice round, backwards: the last access is followed by the first */
        for (uint32_t k = c->accesses; k-- > 0;) {
            c->following[k] = last[c->access[k].unit];
            last[c->access[k].unit] = k;
        }
    }
}

/* -- addresses ------------------------------------------------------------------------ */

/* Access k, and those after it while the unit is held. */
static uint32_t chain_end(const choosing *c, uint32_t k)
{
    uint32_t to = c->following[k];
    while (to != k && c->hold[to])
        to = c->following[to];
    return to;
}

static gs_cache_stay stay_from(const choosing *c, uint32_t k)
{
    const uint32_t to = chain_end(c, k), until = GS_MAX(c->access[to].until, to);
    return (gs_cache_stay){.bytes = c->access[k].bytes, .from = k, .to = to, .until = until};
}

static void apply_stay(gs_cache_plan *p, choosing *c, const gs_cache_stay *x)
{
    const bool found = x->at != GS_CACHE_NOWHERE;
    uint32_t k = x->from;
    p->short_of += found ? 0 : x->bytes;
    do {
        p->stays[k] = c->hold[k] = found;
        if (found)
            p->place[k] = p->place[c->following[k]] = x->at;
        k = c->following[k];
        p->hit[k] = p->hit[k] || found;
    } while (k != x->to);
    if (found)
        p->used_bytes = GS_MAX(p->used_bytes, x->at + x->bytes);
}

/* A stay is consecutive holds of one unit. It begins where a unit is held and was not held before; a unit that has no
 * such access is held for ever, and counts once, from its lowest access on. `held_before`, `seen`: [accesses]. */
static uint32_t list_stays(const choosing *c, gs_cache_stay *stay, bool *held_before, bool *seen)
{
    uint32_t count = 0;

    memset(held_before, 0, c->accesses * sizeof(*held_before));
    memset(seen, 0, c->accesses * sizeof(*seen));
    for (uint32_t k = 0; k < c->accesses; k++)
        if (c->hold[k])
            held_before[c->following[k]] = true;
    for (uint32_t for_ever = 0; for_ever < 2; for_ever++) {
        for (uint32_t k = 0; k < c->accesses; k++) {
            if (!c->hold[k] || seen[k] || (held_before[k] && !for_ever))
                continue;
            for (uint32_t i = k; c->hold[i] && !seen[i]; i = c->following[i])
                seen[i] = true;
            stay[count++] = stay_from(c, k);
        }
    }
    return count;
}

/* Fixed units have their places, and keep them. `place_of`: [units]. */
static void place_fixed(gs_cache_plan *p, const gs_cache_input *in, uint64_t *place_of)
{
    memset(place_of, 0xff, in->units * sizeof(*place_of));
    for (uint32_t i = 0; i < in->fixeds; i++) {
        if (in->fixed[i].unit != UINT32_MAX)
            place_of[in->fixed[i].unit] = in->fixed[i].place;
        p->used_bytes = GS_MAX(p->used_bytes, in->fixed[i].place + in->fixed[i].bytes);
    }
    for (uint32_t k = 0; k < in->accesses; k++) {
        p->hit[k] = p->stays[k] = place_of[in->access[k].unit] != GS_CACHE_NOWHERE;
        p->place[k] = place_of[in->access[k].unit];
    }
}

static gs_status place_all(gs_cache_plan *p, choosing *c, const gs_cache_input *in)
{
    gs_cache_stay *const stay = gs_arena_take(&c->arrays, c->accesses, sizeof(*stay));
    bool *const held_before = gs_arena_take(&c->arrays, c->accesses, sizeof(*held_before));
    bool *const seen = gs_arena_take(&c->arrays, c->accesses, sizeof(*seen));
    uint64_t *const place_of = gs_arena_take(&c->arrays, in->units, sizeof(*place_of));

    if (c->arrays.is_short)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    const uint32_t count = list_stays(c, stay, held_before, seen);
    GS_TRY(gs_first_fit(stay, count, c->accesses, c->capacity, in->fixed, in->fixeds, in->parts == GS_PARTS_BY_SIZE));
    place_fixed(p, in, place_of);
    for (uint32_t i = 0; i < count; i++)
        apply_stay(p, c, &stay[i]);
    return GS_OK;
}

/* -- the plan ---------------------------------------------------------------------------- */

static gs_status plan_alloc(gs_cache_plan *p, uint32_t n)
{
    p->accesses = n;
    p->place = gs_arena_take(&p->arrays, n, sizeof(*p->place));
    p->hit = gs_arena_take(&p->arrays, n, sizeof(*p->hit));
    p->stays = gs_arena_take(&p->arrays, n, sizeof(*p->stays));
    if (p->arrays.is_short)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    memset(p->place, 0xff, n * sizeof(*p->place));
    return GS_OK;
}

static gs_status fill_plan(gs_cache_plan *p, choosing *c, const gs_cache_input *in)
{
    const uint64_t n = c->accesses;
    uint32_t *const last = gs_arena_take(&c->arrays, c->units, sizeof(*last));
    bool *const ends = gs_arena_take(&c->arrays, EPOCHS * (uint64_t)c->units, sizeof(*ends));

    c->following = gs_arena_take(&c->arrays, n, sizeof(*c->following));
    c->since = gs_arena_take(&c->arrays, c->units, sizeof(*c->since));
    c->until = gs_arena_take(&c->arrays, c->units, sizeof(*c->until));
    c->over = gs_arena_take(&c->arrays, c->units, sizeof(*c->over));
    c->fixed = gs_arena_take(&c->arrays, c->units, sizeof(*c->fixed));
    c->hold = gs_arena_take(&c->arrays, n, sizeof(*c->hold));
    c->best = gs_arena_take(&c->arrays, n, sizeof(*c->best));
    c->heap = gs_arena_take(&c->arrays, EPOCHS * n, sizeof(*c->heap));
    c->taken = gs_arena_take(&c->arrays, EPOCHS * n, sizeof(*c->taken));
    if (c->arrays.is_short)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    if (n > 0) {
        for (uint32_t i = 0; i < in->fixeds; i++) {
            if (in->fixed[i].unit != UINT32_MAX)
                c->fixed[in->fixed[i].unit] = true;
            c->capacity -= GS_MIN(c->capacity, in->fixed[i].bytes);
        }
        link_accesses(c, last);
        choose_holds(c, in->across, ends);
        c->capacity = in->capacity;
        GS_TRY(place_all(p, c, in));
    }
    for (uint32_t k = 0; k < n; k++)
        p->read_bytes += p->hit[k] ? 0 : c->access[k].cost;
    return GS_OK;
}

gs_status gs_cache_plan_make(gs_cache_plan *out, const gs_cache_input *in)
{
    choosing c = {.access = in->access, .accesses = in->accesses, .units = in->units, .capacity = in->capacity,
                  .parts = in->parts};
    gs_cache_plan p = {0};
    gs_status st = plan_alloc(&p, in->accesses);

    if (st == GS_OK)
        st = fill_plan(&p, &c, in);
    gs_arena_free(&c.arrays);
    if (st == GS_OK)
        *out = p;
    else
        gs_cache_plan_drop(&p);
    return st;
}

void gs_cache_plan_drop(gs_cache_plan *p)
{
    gs_arena_free(&p->arrays);
    *p = (gs_cache_plan){0};
}
