/* interp.h - runs a program as program.h describes it: float64, whole graph in memory,
 * no tiles, no chunks. An oracle for what compile makes; shares only headers with the engine.
 */
#ifndef GS_TESTS_COMPILE_INTERP_H
#define GS_TESTS_COMPILE_INTERP_H

#include <stdint.h>

#include "program/program.h"

/* A graph and its vertex arrays. Store ids as tests choose them: */
enum { ID_FEATURES, ID_LABELS, ID_SPLIT, ID_IN_DEGREE, ID_LOOPS, ID_INPUT_ID, ID_COUNT };

#define TEST_TYPES 3

typedef struct test_graph {
    uint32_t n, m, features;
    const uint32_t *src, *dst;
    const uint32_t *type;          /* [m], below TEST_TYPES */
    const double *weight;          /* [m] */
    const double *store[ID_COUNT]; /* [n * width], every type as double */
} test_graph;

typedef struct interp {
    const gs_program *p;
    const test_graph *g;
    double **param;      /* [params], the caller's */
    double **grad;       /* [params], made here, zeroed at each run */
    double **array;      /* [arrays]; the run's own are freed by interp_close() */
    bool set_up;         /* the pass "setup" has run */
    uint64_t seed;
    uint32_t epoch;
    double loss_scale;
    double loss_sum;     /* results of a run */
    uint64_t rows[4], correct[4];
} interp;

void interp_open(interp *x, const gs_program *p, const test_graph *g, double **param);
void interp_close(interp *x);
void interp_run(interp *x, uint32_t pass);

#endif
