/* What is asked of a device that reads files by itself. */
#include "device/device_reads.h"

#include <assert.h>

#include "base/size.h"
#include "device/device_table.h"

gs_status gs_device_probe_reads(gs_device *d, const char *path)
{
    if (d->ops->probe_reads == NULL)
        return gs_fail(GS_EUNSUPPORTED, "device %s has no memory of its own", gs_device_name(d));
    return d->ops->probe_reads(d->context, path);
}

gs_status gs_device_open_reads(gs_device *d, void *first, uint64_t bytes)
{
    assert((uintptr_t)first % GS_BLOCK_BYTES == 0);
    return d->ops->open_reads(d->context, first, bytes);
}

gs_status gs_device_add_file(gs_device *d, const char *path, uint32_t *file)
{
    return d->ops->add_file(d->context, path, file);
}

gs_status gs_device_begin_read(gs_device *d, const gs_device_read *r, uint64_t *number)
{
    assert(r->offset % GS_BLOCK_BYTES == 0 && r->bytes % GS_BLOCK_BYTES == 0 && r->bytes > 0);
    assert((uintptr_t)r->to % GS_BLOCK_BYTES == 0);
    return d->ops->read_file(d->context, r, number);
}

gs_status gs_device_poll_read(gs_device *d, uint64_t number, bool wait, bool *done)
{
    return d->ops->poll_read(d->context, number, wait, done);
}
