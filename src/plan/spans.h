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

/* Ascending, none over another. All zero is an empty list; free `span` with gs_free(). */
typedef struct gs_spans {
    gs_span *span;
    uint32_t count, room;
    uint32_t found; /* by the last search: rows that are asked for one after the other are mostly of one span */
} gs_spans;

/* What was at [x.begin, x.end) is x now. GS_ENOMEM. */
gs_status gs_spans_set(gs_spans *s, gs_span x);
/* The first that ends behind `at`, as an index; `count` where none does. */
uint32_t gs_spans_find(gs_spans *s, uint64_t at);

#endif /* GS_PLAN_SPANS_H */
