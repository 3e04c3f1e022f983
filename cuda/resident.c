#include "cuda/resident.h"

#include <stdbool.h>

#include "cuda/driver.h"

#define GPUS 64u /* that are told apart */

static bool noted[GPUS];
static uint64_t contexts_bytes, compiler_bytes;

static uint64_t growth(uint64_t from, uint64_t to) { return to > from ? to - from : 0; }

void gs_cuda_note_resident(int gpu, const gs_cuda_resident *r)
{
    const unsigned at = (unsigned)gpu % GPUS;
    if (noted[at])
        return;
    noted[at] = true;
    contexts_bytes += growth(r->before, r->made);
    compiler_bytes += growth(r->made, r->compiled);
}

gs_device_libraries gs_cuda_libraries(const void *context)
{
    const uint64_t libraries = gs_cuda_libraries_bytes();
    (void)context;
    if (libraries == 0)
        return (gs_device_libraries){0, 0};
    return (gs_device_libraries){.held = libraries + contexts_bytes + compiler_bytes,
                                 .later = GS_CUDA_FIRST_USE_BYTES + growth(compiler_bytes, GS_CUDA_COMPILER_BYTES)};
}
