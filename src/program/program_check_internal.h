/* program_check_internal.h - what the files that check a program share. */
#ifndef GS_PROGRAM_PROGRAM_CHECK_INTERNAL_H
#define GS_PROGRAM_PROGRAM_CHECK_INTERNAL_H

#include "program/program.h"

typedef struct gs_checker {
    const gs_program *p;
    uint32_t stage, instr; /* where we are; instr GS_NONE: none */
    bool *array_ready;     /* rows are there for the stages that follow, in this pass */
    bool *reg_ready;       /* registers of the stage written so far */
    uint32_t *made;        /* [params] of a statistic: the stage of this pass that makes it, or GS_NONE */
} gs_checker;

#define FAIL(c, ...) gs_program__fail(c, __VA_ARGS__)

/* Records what is wrong, with the stage and instruction; GS_EINVAL. */
gs_status gs_program__fail(const gs_checker *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A statistic is there in the stages after the one that makes it. */
bool gs_program__param_is_there(const gs_checker *c, uint32_t i);
/* Is `width` right for an elementwise operator whose operands have width `in` after broadcasting? */
gs_status gs_program__check_width(const gs_checker *c, const gs_instr *i, uint32_t in, uint32_t width);
gs_status gs_program__check_probability(const gs_checker *c, const gs_instr *i);

/* program_check_edges.c: the edge program of a stage, then its sums; marks registers of sums as ready. */
gs_status gs_program__check_edges(gs_checker *c, const gs_stage *s);

#endif /* GS_PROGRAM_PROGRAM_CHECK_INTERNAL_H */
