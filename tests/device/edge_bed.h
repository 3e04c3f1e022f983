/* edge_bed.h - edge programs put together one register at a time, run in one launch or
 * several, and computed once more in float64 from what program.h says, edge by edge. */
#ifndef GS_TESTS_DEVICE_EDGE_BED_H
#define GS_TESTS_DEVICE_EDGE_BED_H

#include "device_fixture.h"

#define BED_MAX 32

typedef struct edge_bed {
    gs_program program;
    gs_stage stage;
    gs_param param[BED_MAX];
    gs_reg reg[BED_MAX];
    gs_edge_reg edge_reg[BED_MAX];
    gs_instr instr[BED_MAX];
    const float *weight[BED_MAX];  /* of parameters */
    const float *rows[BED_MAX];    /* of edge registers */
    const float *edge_weight;      /* or NULL */
    uint8_t *type;                 /* of edges, or NULL */
    uint32_t types;                /* bed_make_typed(): how many; else 0 */
    gs_array array[BED_MAX];       /* of rows at either end */
    bool parallel;                 /* edges of the same ends are one after the other, and stay in one launch */
    /* the graph: targets[] are every second row of target_rows */
    uint32_t index_bytes, targets, target_rows, operand_rows, edges;
    void *target, *index;
    uint32_t *start;
    /* float64 results, by sum: [target_rows, width], [target_rows, heads] */
    double *want[GS_STAGE_SUMS], *want_lse[GS_STAGE_SUMS];
    double *size[GS_STAGE_SUMS];   /* sums of magnitudes: what errors are relative to */
} edge_bed;

/* degree[t] edges of target t, to random operand rows. */
void bed_init(edge_bed *b, uint32_t index_bytes, uint32_t targets, const uint32_t *degree, uint32_t operand_rows);
void bed_free(edge_bed *b);

/* Edge registers: random rows in [low, high). */
uint32_t bed_operand(edge_bed *b, uint32_t width, float low, float high);
uint32_t bed_target(edge_bed *b, uint32_t width, float low, float high);
uint32_t bed_weight(edge_bed *b);
uint32_t bed_param(edge_bed *b, uint32_t width); /* a parameter's index */
/* A matrix [in, out] of positive numbers for each type, after bed_make_typed(). */
uint32_t bed_matrices(edge_bed *b, uint32_t in, uint32_t out);
/* Input ids (u32): row r has the id 3 * r + first. */
uint32_t bed_operand_id(edge_bed *b, uint32_t first);
uint32_t bed_target_id(edge_bed *b, uint32_t first);
/* Gives every target runs of edges to one operand, of several types. */
void bed_make_parallel(edge_bed *b);
/* Gives every edge one of so many types; before registers and sums that go by them. */
void bed_make_typed(edge_bed *b, uint32_t types);
/* `width` columns for each type, of which the edge takes those of its own. */
uint32_t bed_by_type(edge_bed *b, gs_edge_reg_kind end, uint32_t width, float low, float high);
/* A new register of this width that the instruction writes. */
uint32_t bed_do(edge_bed *b, gs_op op, uint32_t width, gs_operand x, gs_operand y);
/* Sums; returns the index of the sum. */
uint32_t bed_sum(edge_bed *b, gs_sum_kind kind, uint32_t value);
uint32_t bed_attend(edge_bed *b, uint32_t value, uint32_t score);

uint32_t bed_sum_width(const edge_bed *b, uint32_t sum);
uint32_t bed_heads(const edge_bed *b, uint32_t sum);

void bed_expect(edge_bed *b); /* fills want, want_lse, size */

/* Accumulators of all sums. */
typedef struct bed_result {
    gs_accumulator sum[GS_STAGE_SUMS];
} bed_result;

/* All of the bed's edges, into `sum` [sums]; seed and epoch are the bed's own. */
gs_edge_program_launch bed_launch(const edge_bed *b, const gs_accumulator *sum);
/* Prepares, begins, runs in `pieces` launches, finishes. Launch i has the edges [degree * i / pieces,
 * degree * (i + 1) / pieces) of each target. Nothing may allocate in a launch. */
void bed_run(const edge_bed *b, gs_device *d, uint32_t pieces, bed_result *r);
void bed_result_free(bed_result *r);
void bed_compare(const edge_bed *b, const bed_result *r, double tolerance);
/* The same bits in both. */
void bed_same(const edge_bed *b, const bed_result *x, const bed_result *y);
/* bed_expect(), then on every device: once, in 3 launches, and with any number of threads the same bits. */
void bed_check(edge_bed *b, double tolerance);

#endif /* GS_TESTS_DEVICE_EDGE_BED_H */
