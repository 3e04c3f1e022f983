/* spans.h - stretches of a memory or file, each with who has its bytes. */
#ifndef GS_PLAN_SPANS_H
#define GS_PLAN_SPANS_H

#include <stdint.h>

#include "base/status.h"

typedef struct gs_span {
    uint64_t begin, end;
    uint32_t who;  /* a rank, or what the caller means by other numbers */
    uint32_t from; /* likewise: what brought the bytes */
} gs_span;

/* Ascending, none over another. All zero is an empty list; free `span` with gs_free(). The room that is left lies where
 * spans were added last, as those that come next are mostly behind them: so few are moved, of however many. */
typedef struct gs_spans {
    gs_span *span;
    uint32_t count, room;
    uint32_t gap;   /* of them are before that room */
    uint32_t found; /* by the last search: rows that are asked for one after the other are mostly of one span */
} gs_spans;

static inline gs_span *gs_spans_at(const gs_spans *s, uint32_t k)
{
    return &s->span[k < s->gap ? k : k + (s->room - s->count)];
}

/* Keeps the room. */
static inline void gs_spans_empty(gs_spans *s) { s->count = s->gap = s->found = 0; }

/* What was at [x.begin, x.end) is x now. GS_ENOMEM. */
gs_status gs_spans_set(gs_spans *s, gs_span x);
/* The first that ends behind `at`, as an index; `count` where none does. */
uint32_t gs_spans_find(gs_spans *s, uint64_t at);

#endif /* GS_PLAN_SPANS_H */
