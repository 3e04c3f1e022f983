#include "mem/budget.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

/* Longest line that describes every item: names are short static strings. */
#define DESCRIPTION_BYTES 1536u

void gs_budget_init(gs_budget *b, const char *name, uint64_t limit)
{
    memset(b, 0, sizeof(*b));
    b->name = name;
    b->limit = limit;
}

/* Index of the item called `what`, or the first unused one; GS_BUDGET_ITEMS
 * when there is neither. */
static uint32_t find_item(const gs_budget *b, const char *what)
{
    for (uint32_t i = 0; i < b->items; i++)
        if (strcmp(b->item[i].what, what) == 0)
            return i;
    return b->items;
}

gs_status gs_budget_take(gs_budget *b, const char *what, uint64_t bytes)
{
    assert(b != NULL && what != NULL && b->used <= b->limit);

    const uint32_t i = find_item(b, what);
    if (i == GS_BUDGET_ITEMS)
        return gs_fail(GS_EINVAL, "%s: no room for item '%s': a budget lists at most %d items", b->name, what,
                       GS_BUDGET_ITEMS);
    if (bytes > gs_budget_left(b)) {
        char want[32], left[32], list[DESCRIPTION_BYTES];
        return gs_fail(GS_EBUDGET, "%s takes %s but %s is left of %s; raise that budget or make the run smaller", what,
                       gs_size_format(want, sizeof(want), bytes),
                       gs_size_format(left, sizeof(left), gs_budget_left(b)),
                       gs_budget_describe(b, list, sizeof(list)));
    }
    if (i == b->items) {
        b->item[i].what = what;
        b->items++;
    }
    b->item[i].bytes += bytes; /* at most b->used, so it cannot overflow */
    b->used += bytes;
    return GS_OK;
}

char *gs_budget_describe(const gs_budget *b, char *buf, uint64_t cap)
{
    char size[32];
    uint64_t at = 0;

    assert(buf != NULL && cap > 0);
    /* snprintf() returns what it would have written; a full buffer stays cut. */
    at += (uint64_t)snprintf(buf, cap, "%s %s", b->name, gs_size_format(size, sizeof(size), b->limit));
    for (uint32_t i = 0; i < b->items && at < cap; i++)
        at += (uint64_t)snprintf(buf + at, cap - at, "%s %s %s", i == 0 ? ":" : ",", b->item[i].what,
                                 gs_size_format(size, sizeof(size), b->item[i].bytes));
    return buf;
}
