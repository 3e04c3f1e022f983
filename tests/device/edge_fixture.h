/* edge_fixture.h - edge programs put together one register at a time, run in one launch or
 * several, and computed once more in float64 from what program.h says, edge by edge. */
#ifndef GS_TESTS_DEVICE_EDGE_FIXTURE_H
#define GS_TESTS_DEVICE_EDGE_FIXTURE_H

#include "device_fixture.h"

#define EDGES_MAX 32

typedef struct edge_fixture {
    gs_program program;
    gs_stage stage;
    gs_param param[EDGES_MAX];
    gs_reg reg[EDGES_MAX];
    gs_edge_reg edge_reg[EDGES_MAX];
    gs_instr instr[EDGES_MAX];
    const float *weight[EDGES_MAX]; /* of parameters */
    const float *rows[EDGES_MAX];  /* of edge registers */
    const float *edge_weight;      /* or NULL */
    uint8_t *type;                 /* of edges, or NULL */
    uint32_t *rank;                /* of edges among their parallels; edges_expect() makes it */
    uint32_t types;                /* edges_make_typed(): how many; else 0 */
    gs_array array[EDGES_MAX];     /* of rows at either end */
    bool parallel;                 /* edges of the same ends are one after the other, and stay in one launch */
    /* the graph: targets[] are every second row of target_rows */
    uint32_t index_bytes, targets, target_rows, operand_rows, edges;
    void *target, *index;
    uint32_t *start;
    /* float64 results, by sum: [target_rows, width], [target_rows, heads] */
    double *want[GS_STAGE_SUMS], *want_lse[GS_STAGE_SUMS];
    double *size[GS_STAGE_SUMS];   /* sums of magnitudes: what errors are relative to */
} edge_fixture;

/* degree[t] edges of target t, to random operand rows. */
void edges_init(edge_fixture *b, uint32_t index_bytes, uint32_t targets, const uint32_t *degree, uint32_t operand_rows);
void edges_free(edge_fixture *b);

/* Edge registers: random rows in [low, high). */
uint32_t add_operand(edge_fixture *b, uint32_t width, float low, float high);
uint32_t add_target(edge_fixture *b, uint32_t width, float low, float high);
uint32_t add_weight(edge_fixture *b);
/* Rounds the register's rows, of an even width, to bfloat16. Returns the register. */
uint32_t edges_halve(edge_fixture *b, uint32_t reg);
uint32_t edges_param(edge_fixture *b, uint32_t width); /* a parameter's index */
/* A matrix [in, out] of positive numbers for each type, after edges_make_typed(). */
uint32_t add_matrices(edge_fixture *b, uint32_t in, uint32_t out);
/* Input ids (u32): row r has the id 3 * r + first. */
uint32_t add_operand_id(edge_fixture *b, uint32_t first);
uint32_t add_target_id(edge_fixture *b, uint32_t first);
/* Gives every target runs of edges to one operand, of several types. */
void edges_make_parallel(edge_fixture *b);
/* Gives every edge one of so many types; before registers and sums that go by them. */
void edges_make_typed(edge_fixture *b, uint32_t types);
/* `width` columns for each type, of which the edge takes those of its own. */
uint32_t add_by_type(edge_fixture *b, gs_edge_reg_kind end, uint32_t width, float low, float high);
/* A new register of this width that the instruction writes. */
uint32_t add_op(edge_fixture *b, gs_op op, uint32_t width, gs_operand x, gs_operand y);
/* Sums; returns the index of the sum. */
uint32_t add_sum(edge_fixture *b, gs_sum_kind kind, uint32_t value);
uint32_t add_attend(edge_fixture *b, uint32_t value, uint32_t score);
uint32_t add_held(edge_fixture *b, gs_sum_kind kind, uint32_t value, uint32_t number);

uint32_t edges_sum_width(const edge_fixture *b, uint32_t sum);
uint32_t edges_heads(const edge_fixture *b, uint32_t sum);

void edges_expect(edge_fixture *b); /* fills want, want_lse, size */

/* Accumulators of all sums. */
typedef struct edges_result {
    gs_accumulator sum[GS_STAGE_SUMS];
} edges_result;

/* All of the fixture's edges, into `sum` [sums]; seed and epoch are the fixture's own. */
gs_edge_program_launch edges_launch(const edge_fixture *b, const gs_accumulator *sum);
/* Prepares, begins, runs in `pieces` launches, finishes. Launch i has the edges [degree * i / pieces,
 * degree * (i + 1) / pieces) of each target. Nothing may allocate in a launch. */
void edges_run(const edge_fixture *b, gs_device *d, uint32_t pieces, edges_result *r);
void edges_result_free(edges_result *r);
void edges_compare(const edge_fixture *b, const edges_result *r, double tolerance);
/* The same bits in both. */
void edges_same(const edge_fixture *b, const edges_result *x, const edges_result *y);
/* edges_expect(), then on every device: once, in 3 launches, and with any number of threads, and packed numbers, the
 * same bits. */
void edges_check(edge_fixture *b, double tolerance);

#endif /* GS_TESTS_DEVICE_EDGE_FIXTURE_H */
