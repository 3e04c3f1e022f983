/* spans.c - a list that stays sorted: what is set cuts what was there. */
#include "plan/spans.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

static bool is_first_behind(const gs_spans *s, uint32_t k, uint64_t at)
{
    return k < s->count && gs_spans_at(s, k)->end > at && (k == 0 || gs_spans_at(s, k - 1)->end <= at);
}

uint32_t gs_spans_find(gs_spans *s, uint64_t at)
{
    uint32_t low = 0, high = s->count;

    if (is_first_behind(s, s->found, at))
        return s->found;
    GS_BISECT(low, high, gs_spans_at(s, middle)->end <= at);
    return s->found = low;
}

/* With those at its ends that are the same it is one, so what is filled piece by piece is one in the end. */
static void join_ends(const gs_spans *s, gs_span *x, uint32_t *first, uint32_t *end)
{
    const uint32_t before = *first > 0 && gs_spans_at(s, *first - 1)->end == x->begin ? *first - 1 : *first;
    const uint32_t behind = *end < s->count && gs_spans_at(s, *end)->begin == x->end ? *end + 1 : *end;
    const gs_span *const a = before < behind ? gs_spans_at(s, before) : x;
    const gs_span *const b = before < behind ? gs_spans_at(s, behind - 1) : x;

    if (a->who == x->who && a->from == x->from && a->begin < x->begin) {
        x->begin = a->begin;
        *first = before;
    }
    if (b->who == x->who && b->from == x->from && b->end > x->end) {
        x->end = b->end;
        *end = behind;
    }
}

static void move_gap(gs_spans *s, uint32_t to)
{
    const uint32_t free = s->room - s->count;

    if (to < s->gap)
        memmove(s->span + to + free, s->span + to, (s->gap - to) * sizeof(*s->span));
    else if (to > s->gap)
        memmove(s->span + s->gap, s->span + s->gap + free, (to - s->gap) * sizeof(*s->span));
    s->gap = to;
}

/* Room for `more` spans beside those that are there. */
static gs_status grow(gs_spans *s, uint32_t more)
{
    if (s->count + more <= s->room)
        return GS_OK;
    move_gap(s, s->count);
    return gs_grow_by(&s->span, s->count, more, &s->room, sizeof(*s->span))
               ? GS_OK
               : gs_fail(GS_ENOMEM, "out of memory: which rank has what");
}

/* `pieces` in place of [first, end). */
static gs_status replace(gs_spans *s, uint32_t first, uint32_t end, const gs_span *piece, uint32_t pieces)
{
    if (first + pieces == end) { /* most take the place of what was there in the pass before */
        for (uint32_t i = 0; i < pieces; i++)
            *gs_spans_at(s, first + i) = piece[i];
        return GS_OK;
    }
    GS_TRY(grow(s, pieces));
    move_gap(s, end);
    memcpy(s->span + first, piece, pieces * sizeof(*piece));
    s->gap = first + pieces;
    s->count += s->gap - end;
    return GS_OK;
}

gs_status gs_spans_set(gs_spans *s, gs_span x)
{
    uint32_t first = gs_spans_find(s, x.begin), end = first, pieces = 0;
    gs_span piece[3];

    if (x.begin >= x.end)
        return GS_OK;
    while (end < s->count && gs_spans_at(s, end)->begin < x.end)
        end++;
    join_ends(s, &x, &first, &end);
    if (end > first && gs_spans_at(s, first)->begin < x.begin) {
        piece[pieces] = *gs_spans_at(s, first);
        piece[pieces++].end = x.begin;
    }
    piece[pieces++] = x;
    if (end > first && gs_spans_at(s, end - 1)->end > x.end) {
        piece[pieces] = *gs_spans_at(s, end - 1);
        piece[pieces++].begin = x.end;
    }
    return replace(s, first, end, piece, pieces);
}
