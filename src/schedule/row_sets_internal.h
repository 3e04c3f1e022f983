/* row_sets_internal.h - sets of rows and what a program's values are outside them, for row_sets.c.
 *
 *   row_bits      sets as numbers: union, intersection, what their edges name; equal ones are one
 *   row_support   outside which rows every register and array is 0
 *   row_demand    on which rows a vertex program's loads count
 *   row_sets      from the last stage to the first: which rows are needed
 */
#ifndef GS_SCHEDULE_ROW_SETS_INTERNAL_H
#define GS_SCHEDULE_ROW_SETS_INTERNAL_H

#include <stdbool.h>

#include "schedule/row_sets.h"

/* The search for row sets. After a failure (`status`) every set is GS_ALL_ROWS. */
struct finder {
    const gs_row_sets_config *c;
    gs_row_sets out;
    gs_status status;
    uint64_t words;      /* of a set */
    bool closed;         /* gaps of sets are filled as they are made: what is computed in them must be right */
    uint32_t train, none;
    struct {
        uint32_t direction, of, set;
    } known[32];         /* reaches that were found */
    uint32_t knowns;
    uint32_t *array;     /* [arrays] outside this set an array's rows are 0 */
    uint32_t *demand;    /* [most registers of a stage] */
    struct support {
        uint32_t reduced;  /* rows that sums over all vertices need */
        uint32_t operands, targets; /* edges outside of either add 0 */
        uint32_t *reg;     /* [regs] outside this set a register is 0; NULL: not known */
        bool loss, everything;
    } *support;          /* [stages] */
};

uint32_t gs_rows__add(struct finder *f, const uint64_t *bits); /* copies */
uint32_t gs_rows__unite(struct finder *f, uint32_t a, uint32_t b);
uint32_t gs_rows__meet(struct finder *f, uint32_t a, uint32_t b);
/* Operand ends of the edges of `direction` whose targets are in `of`. */
uint32_t gs_rows__reach(struct finder *f, uint32_t direction, uint32_t of);

/* True where a vertex program could make more of rows that were summed over some of their edges than numbers: a
 * quotient, a logarithm. Then rows beside the needed ones must be computed as if they were needed. */
bool gs_rows__unsafe(const gs_program *p);
/* Fills f->array and f->support of every stage but those of "setup". */
gs_status gs_rows__support(struct finder *f);
/* out[regs]: of the registers that stage k loads, the rows on which their value changes something, where its vertex
 * program runs for `rows`. */
void gs_rows__demand(struct finder *f, uint32_t *out, uint32_t k, uint32_t rows);

#endif /* GS_SCHEDULE_ROW_SETS_INTERNAL_H */
