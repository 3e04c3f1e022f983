#include "session/store_rows.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"

gs_status gs_block_reader_open(gs_block_reader *r, const gs_store *store, gs_array_id id)
{
    gs_status st;

    *r = (gs_block_reader){.info = gs_store_array(store, id), .fd = -1, .opened = true,
                           .extent = gs_store_array_extent(store, id)};
    if (!r->info->present)
        return gs_fail(GS_EINVAL, "%s: the store has no %s", gs_store_dir(store), gs_array_stem(id));
    r->path = gs_store_array_path(store, id);
    r->block = gs_malloc(GS_SUM_BYTES);
    if (r->path == NULL || r->block == NULL)
        st = gs_fail(GS_ENOMEM, "%s: out of memory", gs_store_dir(store));
    else
        st = gs_store_open_array(&r->fd, store, id);
    if (st != GS_OK)
        gs_block_reader_close(r);
    return st;
}

void gs_block_reader_close(gs_block_reader *r)
{
    if (!r->opened)
        return;
    if (r->fd >= 0)
        close(r->fd);
    gs_free(r->path);
    gs_free(r->block);
    *r = (gs_block_reader){0};
}

gs_status gs_block_reader_next(gs_block_reader *r, uint64_t index, uint64_t *bytes)
{
    const uint64_t at = index * GS_SUM_BYTES, n = GS_MIN(GS_SUM_BYTES, r->info->bytes - at);
    gs_status st = gs_extent_check(r->extent, at, n, r->path);

    if (st == GS_OK)
        st = gs_pread_exact(r->fd, r->block, n, at - r->extent.first, r->path);
    if (st != GS_OK)
        return st;
    if (gs_hash64(r->block, n) != r->info->sums[index])
        return gs_fail(GS_EFORMAT, "%s: bytes %llu to %llu do not match their checksum; make the store again", r->path,
                       (unsigned long long)at, (unsigned long long)(at + n));
    *bytes = n;
    return GS_OK;
}
