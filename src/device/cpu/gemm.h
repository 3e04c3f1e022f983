/* gemm.h - dense products, by oneDNN or the device's own kernel. */
#ifndef GS_DEVICE_CPU_GEMM_H
#define GS_DEVICE_CPU_GEMM_H

#include "device/cpu/cpu.h"

/* c[m, n] = op(a) op(b) + beta c, rows contiguous, op 'N' or 'T', on the calling thread of a parallel region. */
bool gs_cpu__sgemm(char ta, char tb, uint32_t m, uint32_t n, uint32_t k, const float *a, uint32_t lda, const float *b,
                   uint32_t ldb, float beta, float *c, uint32_t ldc);
/* c[m, n] = a b + beta c, where a row has the same bits whatever m is. */
bool gs_cpu__steady_rows(uint32_t m, uint32_t n, uint32_t k, const float *a, uint32_t lda, const float *b, uint32_t ldb,
                         float beta, float *c, uint32_t ldc);
/* to[cols, rows] = from[rows, cols]. */
void gs_cpu__transpose(float *to, const float *from, uint32_t rows, uint32_t cols);
/* Transposes the weights of the launch's steps, or lays them out in pairs of bf16, once a stage and pass. */
void gs_cpu__transpose_weights(gs_cpu *cpu, const gs_vertex_launch *l);
/* Floats of the stage's transposed matrices. */
uint64_t gs_cpu__transposed_matrix_floats(const gs_program *p, const gs_stage *stage);
/* Where those of a transposed product are. */
const float *gs_cpu__transposed_matrices(const gs_cpu *cpu, const gs_edge_program_launch *l, const gs_instr *in);
/* The stage's matrices, transposed where they are to be multiplied by so, once a pass. */
void gs_cpu__transpose_matrices(gs_cpu *cpu, const gs_edge_program_launch *l);
/* Floats of the gradients that are added up beside the other sums of a stage, and in how many parts at most; or both 0,
 * as they are too large for that. */
typedef struct gs_cpu_outers {
    uint64_t floats;
    uint32_t parts;
} gs_cpu_outers;

gs_cpu_outers gs_cpu__outers_beside(const gs_stage *stage);
/* Is the operator's weight laid out anew there? */
bool gs_cpu__is_transposed(const gs_cpu *cpu, gs_op op);
/* The rows [first, first + rows) of a product, on the calling thread. False when oneDNN fails. */
bool gs_cpu__product_rows(const gs_cpu_kernels *k, const gs_cpu_step *s, uint32_t first, uint32_t rows);
/* Are the sums of a lot the transpose of the gradient? */
bool gs_cpu__outer_is_transposed(const gs_cpu_step *s);
/* sum = (or +=) a' b over the rows [first, first + rows), on the calling thread; b' a where it is transposed. */
bool gs_cpu__outer_rows(const gs_cpu_step *s, uint32_t first, uint32_t rows, float *sum, bool add);
/* grad += a' b over all rows, on all threads. */
gs_status gs_cpu__outer(gs_cpu *cpu, const gs_cpu_step *s, uint32_t rows);
/* Floats of partial sums that an outer product of this shape wants. */
uint64_t gs_cpu__outer_floats(uint32_t out, uint32_t in);
/* Bytes that oneDNN may take for packing, all threads together. */
uint64_t gs_cpu__gemm_bytes(const gs_cpu *cpu);
/* First calls on every thread: the library makes its code and its threads there. */
gs_status gs_cpu__gemm_warm(const gs_cpu *cpu);

#endif /* GS_DEVICE_CPU_GEMM_H */
