/* residency.c - furthest next use, over batches that are known.
 *
 * Items get numbers by a hash table. Each cached item is in the list of its *due*, the batch that uses it next; the
 * item to give up is any of the furthest list. Dues from `batches` on stand for items that no batch of the group uses
 * again, the often used before the seldom used. A batch's items are all at hand at once, so the best that can stay is
 * of what was there and of what it brings: an item that comes later than all others is not kept at all. */
#include "sample/residency.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "sample/unique.h"

#define NONE GS_RESIDENCY_NONE
#define COUNTS 16u /* dues behind the last batch: used 15 times and more, 14 times, ..., 0 times */

/* An item that is cached, or used in this group. */
typedef struct item {
    uint32_t slot;         /* NONE: not cached */
    uint32_t before, next; /* in its due's list */
    uint32_t entry;        /* of the step: its first row */
    uint16_t due, uses;
} item;

typedef struct use {
    uint32_t item;
    uint16_t due; /* after this use */
} use;

struct gs_residency {
    uint32_t rows_per_item, capacity, most_batches, batch_rows;
    uint64_t most_uses, most_items, bytes;
    /* between groups: */
    uint32_t *cached;   /* [capacity] number of the item in each slot; NONE: free */
    /* of a group: */
    const gs_batch *batch;
    uint32_t batches, at;
    gs_unique unique;   /* item numbers to items */
    item *item;         /* [most_items] */
    use *use;           /* [most_uses] */
    uint64_t *first;    /* [most_batches + 1] of each batch's uses */
    uint32_t *head;     /* [most_batches + COUNTS] lists of cached items */
    uint32_t furthest;  /* no list behind this one has items */
    uint32_t *free;     /* [capacity] slots */
    uint32_t frees;
    /* of a step: */
    uint32_t *place, *from, *keep, *spare; /* [batch_rows] */
    uint32_t *missed;                      /* [batch_rows] uses by due */
    uint32_t *count;                       /* [most_batches + COUNTS + 1] */
};

/* ---- lists --------------------------------------------------------------- */

static void link_item(gs_residency *r, uint32_t i, uint16_t due)
{
    item *x = &r->item[i];
    x->due = due;
    x->before = NONE;
    x->next = r->head[due];
    if (x->next != NONE)
        r->item[x->next].before = i;
    r->head[due] = i;
    r->furthest = GS_MAX(r->furthest, due);
}

static void unlink_item(gs_residency *r, uint32_t i)
{
    const item *x = &r->item[i];
    if (x->before != NONE)
        r->item[x->before].next = x->next;
    else
        r->head[x->due] = x->next;
    if (x->next != NONE)
        r->item[x->next].before = x->before;
}

/* A slot for an item of this due: a free one, or that of an item that is due later; NONE where there is none. */
static uint32_t take_slot(gs_residency *r, uint16_t due)
{
    if (r->frees > 0)
        return r->free[--r->frees];
    while (r->furthest > 0 && r->head[r->furthest] == NONE)
        r->furthest--;
    const uint32_t i = r->head[r->furthest];
    if (i == NONE || r->furthest <= due)
        return NONE;
    const uint32_t slot = r->item[i].slot;
    unlink_item(r, i);
    r->item[i].slot = NONE;
    return slot;
}

/* ---- a group ------------------------------------------------------------- */

static uint32_t number_of(gs_residency *r, uint32_t name)
{
    const uint32_t before = r->unique.count, i = gs_unique_put(&r->unique, name);
    assert(i != GS_UNIQUE_NONE);
    if (i == before)
        r->item[i] = (item){.slot = NONE, .due = UINT16_MAX};
    return i;
}

/* Each batch's items, once each. `due` says meanwhile in which batch an item was seen last. */
static void list_uses(gs_residency *r)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < r->batches; k++) {
        const gs_batch *b = &r->batch[k];
        r->first[k] = n;
        assert(b->vertices <= r->batch_rows);
        for (uint32_t v = 0; v < b->vertices; v++)
            gs_unique_prefetch(&r->unique, b->vertex[v] / r->rows_per_item);
        for (uint32_t v = 0; v < b->vertices; v++) {
            const uint32_t i = number_of(r, b->vertex[v] / r->rows_per_item);
            if (r->item[i].due == k)
                continue;
            r->item[i].due = (uint16_t)k;
            r->item[i].uses++;
            r->use[n++].item = i;
        }
    }
    r->first[r->batches] = n;
}

static uint16_t due_unknown(const gs_residency *r, uint32_t uses)
{
    return (uint16_t)(r->batches + COUNTS - 1 - GS_MIN(uses, COUNTS - 1));
}

/* From the last batch to the first: when is each used next? */
static void find_dues(gs_residency *r)
{
    for (uint32_t i = 0; i < r->unique.count; i++)
        r->item[i].due = due_unknown(r, r->item[i].uses);
    for (uint32_t k = r->batches; k-- > 0;)
        for (uint64_t u = r->first[k]; u < r->first[k + 1]; u++) {
            item *x = &r->item[r->use[u].item];
            r->use[u].due = x->due;
            x->due = (uint16_t)k;
        }
}

void gs_residency_begin(gs_residency *r, const gs_batch *batch, uint32_t batches)
{
    assert(batches <= r->most_batches);
    r->batch = batch;
    r->batches = batches;
    r->at = r->furthest = r->frees = 0;
    memset(r->head, 0xff, (batches + COUNTS) * sizeof(*r->head));
    gs_unique_clear(&r->unique);
    for (uint32_t slot = 0; slot < r->capacity; slot++)
        if (r->cached[slot] == NONE)
            r->free[r->frees++] = slot;
        else
            r->item[number_of(r, r->cached[slot])].slot = slot;
    const uint32_t kept = r->unique.count; /* the first items */
    list_uses(r);
    find_dues(r);
    for (uint32_t i = 0; i < kept; i++)
        link_item(r, i, r->item[i].due);
}

/* ---- a step -------------------------------------------------------------- */

static void find_slots(gs_residency *r, const gs_batch *b, gs_residency_step *step)
{
    uint32_t name = NONE, i = NONE;
    for (uint32_t e = 0; e < b->vertices; e++) {
        const uint32_t of = b->vertex[r->place[e]] / r->rows_per_item;
        if (of != name || e == 0) {
            name = of;
            i = gs_unique_find(&r->unique, of);
            r->item[i].entry = e;
            *(r->item[i].slot != NONE ? &step->hits : &step->reads) += 1;
        }
        r->from[e] = r->item[i].slot;
        r->keep[e] = NONE;
    }
}

/* Uses of the batch whose items are read, the soonest due first, into missed[]; how many. Those cached are due anew. */
static uint32_t order_missed(gs_residency *r)
{
    const uint64_t first = r->first[r->at], end = r->first[r->at + 1];
    uint32_t n = 0;
    memset(r->count, 0, (r->batches + COUNTS + 1) * sizeof(*r->count));
    for (uint64_t u = first; u < end; u++) {
        const uint32_t i = r->use[u].item;
        if (r->item[i].slot == NONE) {
            r->count[r->use[u].due + 1]++;
            continue;
        }
        unlink_item(r, i);
        link_item(r, i, r->use[u].due);
    }
    for (uint32_t d = 0; d < r->batches + COUNTS; d++)
        r->count[d + 1] += r->count[d];
    for (uint64_t u = first; u < end; u++)
        if (r->item[r->use[u].item].slot == NONE) {
            r->missed[r->count[r->use[u].due]++] = (uint32_t)(u - first);
            n++;
        }
    return n;
}

void gs_residency_next(gs_residency *r, gs_residency_step *step)
{
    const gs_batch *b = &r->batch[r->at];

    assert(r->at < r->batches);
    gs_radix_order(r->place, r->spare, b->vertex, b->vertices);
    *step = (gs_residency_step){.rows = b->vertices, .place = r->place, .from = r->from, .keep = r->keep};
    find_slots(r, b, step);
    const uint32_t missed = order_missed(r);
    for (uint32_t m = 0; m < missed; m++) {
        const use *u = &r->use[r->first[r->at] + r->missed[m]];
        const uint32_t slot = take_slot(r, u->due);
        if (slot == NONE)
            break; /* those that follow are due later still */
        r->item[u->item].slot = slot;
        r->cached[slot] = r->unique.vertex[u->item];
        r->keep[r->item[u->item].entry] = slot;
        link_item(r, u->item, u->due);
    }
    r->at++;
}

void gs_residency_forget(gs_residency *r)
{
    memset(r->cached, 0xff, r->capacity * sizeof(*r->cached));
    r->at = r->batches;
}

/* ---- opening ------------------------------------------------------------- */

static uint64_t lay_out(gs_residency *r, void *memory, uint32_t vertices)
{
    const uint64_t items = gs_div_up(vertices, r->rows_per_item);
    gs_placing placing = {.memory = memory, .bytes = gs_align_up(sizeof(*r), 64), .align = 64}, *const p = &placing;

    r->most_uses = r->most_batches * GS_MIN((uint64_t)r->batch_rows, items);
    r->most_items = GS_MIN(r->most_uses + r->capacity, items);
    r->unique = (gs_unique){.bits = gs_unique_bits((uint32_t)r->most_items), .most = (uint32_t)r->most_items};
    r->unique.slot = gs_place_array(p, 1ull << r->unique.bits, sizeof(uint64_t));
    r->unique.slot_of = gs_place_array(p, r->most_items, sizeof(uint32_t));
    r->unique.vertex = gs_place_array(p, r->most_items, sizeof(uint32_t));
    r->item = gs_place_array(p, r->most_items, sizeof(*r->item));
    r->use = gs_place_array(p, r->most_uses, sizeof(*r->use));
    r->first = gs_place_array(p, r->most_batches + 1ull, sizeof(*r->first));
    r->head = gs_place_array(p, r->most_batches + COUNTS, sizeof(*r->head));
    r->count = gs_place_array(p, r->most_batches + COUNTS + 1ull, sizeof(*r->count));
    r->cached = gs_place_array(p, r->capacity, sizeof(*r->cached));
    r->free = gs_place_array(p, r->capacity, sizeof(*r->free));
    uint32_t **const list[] = {&r->place, &r->from, &r->keep, &r->spare, &r->missed};
    for (uint32_t k = 0; k < GS_ARRAY_LEN(list); k++)
        *list[k] = gs_place_array(p, r->batch_rows, sizeof(uint32_t));
    return gs_align_up(p->bytes, GS_BLOCK_BYTES);
}

static gs_residency of_shape(uint32_t rows_per_item, uint32_t capacity, uint32_t batches, uint32_t batch_rows)
{
    assert(rows_per_item > 0 && batches <= GS_RESIDENCY_BATCHES);
    return (gs_residency){.rows_per_item = rows_per_item, .capacity = capacity, .most_batches = batches,
                          .batch_rows = batch_rows};
}

uint64_t gs_residency_bytes(uint32_t vertices, uint32_t rows_per_item, uint32_t capacity, uint32_t batches,
                            uint32_t batch_rows)
{
    gs_residency r = of_shape(rows_per_item, capacity, batches, batch_rows);
    return lay_out(&r, NULL, vertices);
}

gs_status gs_residency_open(gs_residency **out, uint32_t vertices, uint32_t rows_per_item, uint32_t capacity,
                            uint32_t batches, uint32_t batch_rows)
{
    const uint64_t bytes = gs_residency_bytes(vertices, rows_per_item, capacity, batches, batch_rows);
    gs_residency *r = gs_alloc_pages(bytes);
    char text[16];

    GS_NEED(r != NULL, "no memory to plan which rows of features stay (%s)", gs_size_format(text, sizeof(text), bytes));
    *r = of_shape(rows_per_item, capacity, batches, batch_rows);
    r->bytes = lay_out(r, r, vertices);
    gs_residency_forget(r);
    *out = r;
    return GS_OK;
}

void gs_residency_close(gs_residency *r)
{
    if (r != NULL)
        gs_free_pages(r, r->bytes);
}
