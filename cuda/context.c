/* Calls of the driver: about which GPU, and what failed. */
#include "cuda/context.h"

#include <stdio.h>

#include "base/size.h"
#include "cuda/cuda_device.h"

/* CUresult after which the context is of no use, by what ended it (cuda.h has their names). */
static bool is_kernel_failure(gs_cu_result r) { return r == 700 || r == 702 || r == 710 || (r >= 714 && r <= 719); }
static bool is_lost(gs_cu_result r) { return r == 46 || r == 214 || r == 220 || r == 226 || r == 709 || r == 999; }

gs_status gs_cuda_check(const gs_cuda *c, gs_cu_result r, const char *what)
{
    const char *name = NULL, *text = NULL;
    if (r == 0)
        return GS_OK;
    if (c->d->error_name(r, &name) != 0 || name == NULL)
        name = "unknown error";
    if (c->d->error_text(r, &text) != 0 || text == NULL)
        text = "";
    if (r == GS_CU_OUT_OF_MEMORY)
        return gs_fail(GS_ENOMEM, "device cuda:%d: %s: the GPU is out of memory (%s); give less .device_memory",
                       c->device, what, name);
    if (is_kernel_failure(r)) /* kernels are not waited for, so others may hear of it first */
        return gs_fail(GS_EDEVICE, "device cuda:%d: a kernel failed, at the latest at %s: %s (%s)", c->device, what,
                       text, name);
    if (is_lost(r))
        return gs_fail(GS_EDEVICE, "device cuda:%d: the GPU is lost, at %s: %s (%s); the kernel's log may say why",
                       c->device, what, text, name);
    return gs_fail(GS_EDEVICE, "device cuda:%d: %s: %s (%s)", c->device, what, text, name);
}

/* Errors of calls that the system may refuse: locked memory is bounded (RLIMIT_MEMLOCK, containers), not all can be
 * pinned (a call of the system failed: 304), and what a library of the process has pinned before us stays so (712).
 * Where nothing is known but that it failed (999), the GPU may be lost: then it does not answer, either. */
static bool may_refuse(const gs_cuda *c, gs_cu_result r)
{
    size_t unused = 0, total = 0;
    if (r == 999)
        return c->d->memory_info(&unused, &total) == 0;
    return r == 1 || r == GS_CU_OUT_OF_MEMORY || r == 304 || r == 712 || r == 800 || r == 801;
}

gs_status gs_cuda_pin(gs_cuda *c, void *memory, uint64_t bytes, unsigned flags, bool *pinned)
{
    const gs_cu_result r = c->d->host_register(memory, bytes, flags);
    const char *name = NULL;
    char size[32];
    *pinned = r == 0;
    if (r == 0 || !may_refuse(c, r))
        return gs_cuda_check(c, r, "pinning host memory");
    if (c->d->error_name(r, &name) != 0 || name == NULL)
        name = "unknown error";
    snprintf(c->unpinned, sizeof(c->unpinned),
             "device cuda:%d: %s of host memory cannot be pinned (%s; see ulimit -l): copies are slower", c->device,
             gs_size_format(size, sizeof(size), bytes), name);
    return GS_OK;
}

/* The context that this thread's calls are about; a device that closes leaves nothing behind. */
static _Thread_local gs_cu_handle current;

gs_status gs_cuda_enter(const gs_cuda *c)
{
    if (current == c->context)
        return GS_OK;
    const gs_status st = gs_cuda_check(c, c->d->context_set(c->context), "turning to the GPU");
    current = st == GS_OK ? c->context : NULL;
    return st;
}

void gs_cuda_left(void) { current = NULL; }
