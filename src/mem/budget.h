/* budget.h - who holds how much of a memory budget?
 *
 * A budget is a number of bytes and a list of named items. Taking more than is
 * left fails and changes nothing; the text lists every item, so that a person
 * sees what the memory is for. Units: bytes. Not thread-safe: one thread plans.
 */
#ifndef GS_MEM_BUDGET_H
#define GS_MEM_BUDGET_H

#include <stdint.h>

#include "base/status.h"

#define GS_BUDGET_ITEMS 32

typedef struct gs_budget {
    const char *name; /* "host memory", "device memory" */
    uint64_t limit;
    uint64_t used;
    uint32_t items;
    struct {
        const char *what; /* static string */
        uint64_t bytes;
    } item[GS_BUDGET_ITEMS];
} gs_budget;

void gs_budget_init(gs_budget *b, const char *name, uint64_t limit);
/* GS_EBUDGET when it does not fit, GS_EINVAL for one name too many. Items of the same name add up. */
gs_status gs_budget_take(gs_budget *b, const char *what, uint64_t bytes);
static inline uint64_t gs_budget_left(const gs_budget *b) { return b->limit - b->used; }
/* "host memory 256.0 MiB: params 1.0 MiB, ring 64.0 MiB, ..." into buf; returns buf. */
char *gs_budget_describe(const gs_budget *b, char *buf, uint64_t cap);

#endif /* GS_MEM_BUDGET_H */
