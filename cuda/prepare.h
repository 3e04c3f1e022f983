/* prepare.h - a program: kernels, memory, scratch. */
#ifndef GS_CUDA_PREPARE_H
#define GS_CUDA_PREPARE_H

#include "program/program.h"

typedef struct gs_cuda gs_cuda;

uint64_t gs_cuda_scratch_bytes(const void *context, const gs_program *p);
gs_status gs_cuda_prepare(void *context, const gs_program *p);
void gs_cuda_drop_program(gs_cuda *c);

#endif /* GS_CUDA_PREPARE_H */
