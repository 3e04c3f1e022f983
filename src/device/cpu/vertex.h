/* vertex.h - vertex launches: steps over threads. */
#ifndef GS_DEVICE_CPU_VERTEX_H
#define GS_DEVICE_CPU_VERTEX_H

#include "device/cpu/cpu.h"

gs_status gs_cpu__run_vertex(void *context, const gs_vertex_launch *l);

#endif /* GS_DEVICE_CPU_VERTEX_H */
