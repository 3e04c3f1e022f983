/* spans.c - a list that stays sorted: what is set cuts what was there. */
#include "plan/spans.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

static bool is_first_behind(const gs_spans *s, uint32_t k, uint64_t at)
{
    return k < s->count && s->span[k].end > at && (k == 0 || s->span[k - 1].end <= at);
}

uint32_t gs_spans_find(gs_spans *s, uint64_t at)
{
    uint32_t low = 0, high = s->count;

    if (is_first_behind(s, s->found, at))
        return s->found;
    GS_BISECT(low, high, s->span[middle].end <= at);
    return s->found = low;
}

gs_status gs_spans_set(gs_spans *s, gs_span x)
{
    const uint32_t first = gs_spans_find(s, x.begin);
    uint32_t end = first, pieces = 0;
    gs_span piece[3];

    if (x.begin >= x.end)
        return GS_OK;
    while (end < s->count && s->span[end].begin < x.end)
        end++;
    if (end > first && s->span[first].begin < x.begin) {
        piece[pieces] = s->span[first];
        piece[pieces++].end = x.begin;
    }
    piece[pieces++] = x;
    if (end > first && s->span[end - 1].end > x.end) {
        piece[pieces] = s->span[end - 1];
        piece[pieces++].begin = x.end;
    }
    const uint32_t count = s->count - (end - first) + pieces;
    if (count > s->room) {
        const uint32_t room = 2 * count;
        gs_span *const more = gs_realloc(s->span, room * sizeof(*more));
        if (more == NULL)
            return gs_fail(GS_ENOMEM, "out of memory: which rank has what");
        s->span = more;
        s->room = room;
    }
    if (first + pieces != end) /* most take the place of what was there in the pass before */
        memmove(s->span + first + pieces, s->span + end, (s->count - end) * sizeof(*s->span));
    memcpy(s->span + first, piece, pieces * sizeof(*piece));
    s->count = count;
    return GS_OK;
}
