/* The wrapper around a device's table: arguments are checked here, once, so
 * that a device may assume them. */
#include "device/device.h"

#include <assert.h>
#include <stddef.h>

#include "base/alloc.h"
#include "device/device_internal.h"

struct gs_device {
    const gs_device_ops *ops;
    void *context;
};

gs_status gs_device_open(gs_device **out, const char *spec, unsigned threads)
{
    const gs_device_ops *ops = NULL;
    void *context = NULL;

    assert(out != NULL && spec != NULL);
    const gs_status st = gs_device__find(&ops, &context, spec, threads);
    if (st != GS_OK)
        return st;
    gs_device *const d = gs_malloc(sizeof(*d));
    if (d == NULL) {
        ops->close(context);
        return gs_fail(GS_ENOMEM, "device %s: out of memory", spec);
    }
    *d = (gs_device){.ops = ops, .context = context};
    *out = d;
    return GS_OK;
}

void gs_device_close(gs_device *d)
{
    if (d == NULL)
        return;
    d->ops->close(d->context);
    gs_free(d);
}

const char *gs_device_name(const gs_device *d) { return d->ops->name(d->context); }
bool gs_device_unified(const gs_device *d) { return d->ops->unified(d->context); }

uint64_t gs_device_scratch_bytes(const gs_device *d, const gs_program *p)
{
    return d->ops->scratch_bytes(d->context, p);
}

gs_status gs_device_prepare(gs_device *d, const gs_program *p) { return d->ops->prepare(d->context, p); }

gs_status gs_device_run_vertex(gs_device *d, const gs_vertex_launch *l)
{
    assert(l != NULL && l->program != NULL && l->stage != NULL);
    if (l->rows == 0 || l->stage->instrs == 0)
        return GS_OK;
    if (l->stage->regs > 0 && l->reg == NULL)
        return gs_fail(GS_EINVAL, "stage \"%s\": the launch has no registers", l->stage->name);
    return d->ops->run_vertex(d->context, l);
}

gs_status gs_device_run_edges(gs_device *d, const gs_edge_launch *l)
{
    assert(l != NULL);
    if (l->index_bytes != 2 && l->index_bytes != 4)
        return gs_fail(GS_EINVAL, "edge launch: indices of %u bytes; only 2 and 4 exist", l->index_bytes);
    if (l->targets == 0 || l->width == 0 || l->start[l->targets] == l->start[0])
        return GS_OK;
    return d->ops->run_edges(d->context, l);
}

gs_status gs_device_add(gs_device *d, float *acc, const float *src, uint64_t count)
{
    return count == 0 ? GS_OK : d->ops->add(d->context, acc, src, count);
}

gs_status gs_device_zero(gs_device *d, void *memory, uint64_t bytes)
{
    return bytes == 0 ? GS_OK : d->ops->zero(d->context, memory, bytes);
}

gs_status gs_device_measure_gemm(gs_device *d, uint32_t rows, uint32_t in, uint32_t out, double *flops_per_second)
{
    if (rows == 0 || in == 0 || out == 0)
        return gs_fail(GS_EINVAL, "cannot measure a product of %u x %u x %u: every size must be at least 1", rows,
                       in, out);
    return d->ops->measure_gemm(d->context, rows, in, out, flops_per_second);
}

gs_status gs_device_measure_gather(gs_device *d, uint64_t table_rows, uint32_t width, double *bytes_per_second)
{
    if (table_rows == 0 || table_rows > UINT32_MAX || width == 0)
        return gs_fail(GS_EINVAL, "cannot measure a gather from %llu rows of %u floats: 1 to 2^32 - 1 rows, and a width",
                       (unsigned long long)table_rows, width);
    return d->ops->measure_gather(d->context, table_rows, width, bytes_per_second);
}

gs_status gs_device_measure_copy(gs_device *d, double *bytes_per_second)
{
    return d->ops->measure_copy(d->context, bytes_per_second);
}
