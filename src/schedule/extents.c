/* extents.c - a treap of free extents (Seidel and Aragon, "Randomized search trees", 1996). */
#include "schedule/extents.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/size.h"

static void look_below(gs_extents *e, uint32_t n)
{
    gs_extent_node *const x = &e->node[n];
    x->most = GS_MAX(x->bytes, GS_MAX(e->node[x->left].most, e->node[x->right].most));
}

/* All of `a` is below all of `b`. */
static uint32_t join(gs_extents *e, uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return a + b;
    if (e->node[a].priority > e->node[b].priority) {
        e->node[a].right = join(e, e->node[a].right, b);
        look_below(e, a);
        return a;
    }
    e->node[b].left = join(e, a, e->node[b].left);
    look_below(e, b);
    return b;
}

/* *low: those that begin before `at`; *high: the others. */
static void split(gs_extents *e, uint32_t n, uint64_t at, uint32_t *low, uint32_t *high)
{
    if (n == 0) {
        *low = *high = 0;
    } else if (e->node[n].at < at) {
        *low = n;
        split(e, e->node[n].right, at, &e->node[n].right, high);
        look_below(e, n);
    } else {
        *high = n;
        split(e, e->node[n].left, at, low, &e->node[n].left);
        look_below(e, n);
    }
}

/* 0 where there are no bytes. */
static uint32_t new_node(gs_extents *e, uint64_t at, uint64_t bytes)
{
    const uint32_t n = bytes > 0 ? e->unused : 0;

    if (n == 0)
        return 0;
    e->unused = e->node[n].right;
    e->random = e->random * 1664525u + 1013904223u;
    e->node[n] = (gs_extent_node){.at = at, .bytes = bytes, .most = bytes, .priority = e->random};
    return n;
}

static void free_node(gs_extents *e, uint32_t n)
{
    if (n == 0)
        return;
    e->node[n].right = e->unused;
    e->unused = n;
}

gs_status gs_extents_make(gs_extents *out, uint64_t capacity, uint32_t taken)
{
    gs_extents e = {.random = 1};
    const uint32_t nodes = taken + 1; /* free ones lie between taken ones */

    if ((e.node = gs_calloc((uint64_t)nodes + 1, sizeof(*e.node))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t n = nodes; n > 0; n--)
        free_node(&e, n);
    e.root = new_node(&e, 0, capacity);
    *out = e;
    return GS_OK;
}

void gs_extents_drop(gs_extents *e)
{
    gs_free(e->node);
    *e = (gs_extents){0};
}

static uint32_t lowest(const gs_extents *e, uint32_t n, uint64_t from, uint64_t bytes)
{
    const gs_extent_node *const x = &e->node[n];
    uint32_t found = 0;

    if (n == 0 || x->most < bytes)
        return 0;
    if (x->at > from && (found = lowest(e, x->left, from, bytes)) != 0)
        return found;
    const uint64_t end = x->at + x->bytes, first = GS_MAX(x->at, from);
    return end >= first && end - first >= bytes ? n : lowest(e, x->right, from, bytes);
}

uint64_t gs_extents_find(const gs_extents *e, uint64_t from, uint64_t bytes, uint64_t *end)
{
    const uint32_t n = lowest(e, e->root, from, bytes);

    if (n == 0)
        return GS_EXTENTS_NONE;
    *end = e->node[n].at + e->node[n].bytes;
    return GS_MAX(e->node[n].at, from);
}

static uint32_t first_of(const gs_extents *e, uint32_t n)
{
    while (e->node[n].left != 0)
        n = e->node[n].left;
    return n;
}

static uint32_t last_of(const gs_extents *e, uint32_t n)
{
    while (e->node[n].right != 0)
        n = e->node[n].right;
    return n;
}

void gs_extents_take(gs_extents *e, uint64_t at, uint64_t bytes)
{
    uint32_t low, high, within;

    split(e, e->root, at + 1, &low, &high);
    split(e, low, e->node[last_of(e, low)].at, &low, &within);
    const gs_extent_node x = e->node[within];
    assert(within != 0 && x.at <= at && x.at + x.bytes >= at + bytes);
    free_node(e, within);
    const uint32_t before = new_node(e, x.at, at - x.at),
                   after = new_node(e, at + bytes, x.at + x.bytes - (at + bytes));
    e->root = join(e, join(e, low, before), join(e, after, high));
}

void gs_extents_give(gs_extents *e, uint64_t at, uint64_t bytes)
{
    uint64_t first = at, end = at + bytes;
    uint32_t low, high, next;

    split(e, e->root, at, &low, &high);
    const uint32_t last = last_of(e, low);
    if (last != 0 && e->node[last].at + e->node[last].bytes == at) {
        first = e->node[last].at;
        split(e, low, first, &low, &next);
        free_node(e, next);
    }
    const uint32_t after = first_of(e, high);
    if (after != 0 && e->node[after].at == end) {
        end += e->node[after].bytes;
        split(e, high, e->node[after].at + 1, &next, &high);
        free_node(e, next);
    }
    e->root = join(e, join(e, low, new_node(e, first, end - first)), high);
}
