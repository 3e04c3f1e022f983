/* rows_window.c - rows to their place in the output, each byte written once.
 *
 * A row is copied into the windows of the output that it lies in; a window is written when its last byte
 * has come. It is as long as what one checksum covers, and its checksum is taken while it is in the cache.
 */
#include "partition/rows_window.h"

#include <string.h>

#include "base/hash.h"
#include "base/size.h"
#include "partition/rows_pool.h"

static uint64_t window_bytes(const gs_rows *r, uint64_t w)
{
    return GS_MIN(GS_SUM_BYTES, r->bytes - w * GS_SUM_BYTES);
}

/* A full window: its checksum, and off to the disk. Padding is written with it. */
static gs_status close_window(gs_rows *r, uint64_t w)
{
    const uint32_t slot = r->slot[w];
    const uint64_t bytes = window_bytes(r, w), padded = gs_align_up(bytes, GS_BLOCK_BYTES);
    char *const data = r->pool.data + slot * GS_SUM_BYTES;

    memset(data + bytes, 0, padded - bytes);
    r->sums[w] = gs_hash64(data, bytes);
    r->slot[w] = GS_ROWS_NO_SLOT;
    return gs_rows__write_slot(r, r->file, slot, padded, w * GS_SUM_BYTES);
}

gs_status gs_rows__place(gs_rows *r, uint64_t position, const char *row)
{
    uint64_t at = position * r->row_bytes, left = r->row_bytes;
    gs_status st;

    while (left > 0) {
        const uint64_t w = at / GS_SUM_BYTES, inside = at % GS_SUM_BYTES, take = GS_MIN(left, GS_SUM_BYTES - inside);
        if (r->slot[w] == GS_ROWS_NO_SLOT && (st = gs_rows__take_slot(r, &r->slot[w])) != GS_OK)
            return st;
        const uint32_t slot = r->slot[w];
        memcpy(r->pool.data + slot * GS_SUM_BYTES + inside, row, take);
        r->pool.filled[slot] += (uint32_t)take;
        if (r->pool.filled[slot] == window_bytes(r, w) && (st = close_window(r, w)) != GS_OK)
            return st;
        row += take;
        at += take;
        left -= take;
    }
    return GS_OK;
}
