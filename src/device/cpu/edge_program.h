/* edge_program.h - launches over edges, and what is made for one before it: its plan, masks' keys, scratch. */
#ifndef GS_DEVICE_CPU_EDGE_PROGRAM_H
#define GS_DEVICE_CPU_EDGE_PROGRAM_H

#include "device/cpu/cpu.h"

/* Keys with which edge_mask draws. */
void gs_cpu__edge_mask(gs_cpu_dropout *out, const gs_instr *in, uint64_t seed, uint32_t epoch);

/* Scratch of the edge program of a stage. */
typedef struct gs_cpu_edge_needs {
    uint32_t steps, states;
    uint64_t floats;     /* of scratch, a thread */
    uint64_t row_floats; /* of the accumulators of one target */
    uint64_t packed;     /* floats: numbers of an operand interval */
} gs_cpu_edge_needs;

gs_cpu_edge_needs gs_cpu__edge_needs(const gs_program *program, const gs_stage *stage);

/* Are the register's rows of bfloat16? */
static inline bool gs_cpu__is_half(const gs_program *program, const gs_edge_reg *r)
{
    return (r->kind == GS_EDGE_OPERAND || r->kind == GS_EDGE_TARGET) && r->array < program->arrays &&
           program->array[r->array].dtype == GS_BF16;
}

/* Is it a number of each row at the operand end? */
static inline bool gs_cpu__is_number(const gs_program *program, const gs_edge_reg *r)
{
    return r->kind == GS_EDGE_OPERAND && r->width == 1 && !r->typed && r->array < program->arrays &&
           program->array[r->array].dtype == GS_F32;
}

/* edge_uses.c: is the sum one of the plan's of `outer`? */
bool gs_cpu__is_planned(const gs_stage *stage, uint32_t sum, uint32_t outer);
/* Are the register's zeros left out of its products, whose results are so wide? */
bool gs_cpu__takes_sparse(const gs_cpu *cpu, const gs_stage *stage, uint32_t reg, uint32_t width);
/* cpu->edge_state of a plan: all that is known before values are looked up. */
void gs_cpu__find_edge_uses(const gs_cpu *cpu, const gs_edge_program_launch *l, uint32_t outer);

/* edge_layout.c: places of slots, edges of a tile, whether it only adds rows; floats of scratch of so many edges, and
 * at the most. */
void gs_cpu__lay_out_edges(gs_cpu_edge_plan *plan, uint32_t lanes);
uint64_t gs_cpu__tile_floats(uint64_t floats, uint64_t edges);
uint64_t gs_cpu__most_tile_floats(uint64_t floats, bool products);

gs_status gs_cpu__run_edges(void *context, const gs_edge_launch *l);

/* Floats of the rows that are kept for gradients, or of their sums. */
uint64_t gs_cpu__kept_floats(const gs_stage *stage);

/* Most pieces that the targets with very many edges are cut in, all together. */
#define GS_CPU_HUB_PIECES 128

/* `outer` of a plan: those of one matrix for all edges, beside the other sums. */
#define GS_CPU_OUTERS_BESIDE (GS_NONE - 1)

/* Fills `plan` for the launch's sums but OUTER, or for the one `outer` (else GS_NONE), or for all that are taken
 * together (GS_CPU_OUTERS_BESIDE), with the room that prepare took; GS_EINVAL names the stage and the instruction or
 * sum. */
gs_status gs_cpu__plan_edges(gs_cpu_edge_plan *plan, const gs_cpu *cpu, const gs_edge_program_launch *l,
                             uint32_t outer);

/* The launch's sums but those of rows and OUTER; its matrices are transposed. */
gs_status gs_cpu__run_sums(gs_cpu *cpu, const gs_edge_program_launch *l);
gs_status gs_cpu__run_edge_program(void *context, const gs_edge_program_launch *l);
gs_status gs_cpu__begin_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                            uint32_t heads);
gs_status gs_cpu__finish_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                             uint32_t heads);

#endif /* GS_DEVICE_CPU_EDGE_PROGRAM_H */
