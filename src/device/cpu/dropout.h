/* dropout.h - what masks and dropout draw with. */
#ifndef GS_DEVICE_CPU_DROPOUT_H
#define GS_DEVICE_CPU_DROPOUT_H

#include "device/cpu/kernels.h"

/* All but the keys. */
void gs_cpu__dropout(gs_cpu_dropout *out, const gs_instr *in, uint32_t epoch);
/* Keys with which edge_mask draws. */
void gs_cpu__edge_mask(gs_cpu_dropout *out, const gs_instr *in, uint64_t seed, uint32_t epoch);

#endif /* GS_DEVICE_CPU_DROPOUT_H */
