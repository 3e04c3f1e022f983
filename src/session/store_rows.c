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
    r->at = r->extent.first;
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

    GS_TRY(gs_extent_check(r->extent, at, n, r->path));
    GS_TRY(gs_pread_exact(r->fd, r->block, n, at - r->extent.first, r->path));
    if (gs_hash64(r->block, n) != r->info->sums[index])
        return gs_fail(GS_EFORMAT, "%s: bytes %llu to %llu do not match their checksum; make the store again", r->path,
                       (unsigned long long)at, (unsigned long long)(at + n));
    *bytes = n;
    return GS_OK;
}

bool gs_block_reader_more(gs_block_reader *r, gs_status *st)
{
    if (*st != GS_OK)
        return false;
    r->at += r->bytes;
    if (r->at >= GS_MIN(r->extent.first + r->extent.bytes, r->info->bytes))
        return false;
    *st = gs_block_reader_next(r, r->at / GS_SUM_BYTES, &r->bytes);
    return *st == GS_OK;
}

/* ---- rows of ids ---------------------------------------------------------- */

/* Ids of which rows are asked for, and these. */
typedef struct id_list {
    const uint32_t *id, *order; /* [count]; order NULL: as they are; id NULL: those from `first` on */
    uint64_t first, count;
    uint32_t *row; /* [count] */
} id_list;

/* Of the list's ids by order, the k-th. */
static uint32_t id_at(const id_list *l, uint64_t k) { return l->id[l->order != NULL ? l->order[k] : k]; }

/* Notes the row of a vertex, as often as it is in the list: how often. */
static uint64_t note_row(const id_list *l, uint32_t row, uint32_t id)
{
    uint64_t first = 0, end = l->count;

    if (l->id == NULL) {
        if (id < l->first || id - l->first >= l->count)
            return 0;
        l->row[id - l->first] = row;
        return 1;
    }
    GS_BISECT(first, end, id_at(l, middle) < id);
    for (; end < l->count && id_at(l, end) == id; end++)
        l->row[l->order != NULL ? l->order[end] : end] = row;
    return end - first;
}

static gs_status note_rows(const gs_store *store, const id_list *l)
{
    gs_block_reader r = {0};
    uint64_t found = 0;
    gs_status st = gs_block_reader_open(&r, store, GS_ARRAY_INPUT_ID);

    while (gs_block_reader_more(&r, &st)) {
        const uint32_t *const id = r.block;
        for (uint64_t i = 0; i < r.bytes / sizeof(*id); i++)
            found += note_row(l, (uint32_t)(r.at / sizeof(*id) + i), id[i]);
    }
    gs_block_reader_close(&r);
    if (st != GS_OK || found == l->count)
        return st;
    return gs_fail(GS_EFORMAT, "%s: input_id.bin is no permutation; see gnnstream verify", gs_store_dir(store));
}

gs_status gs_rows_of_ids(uint32_t *row, const gs_store *store, const uint32_t *id, const uint32_t *order,
                         uint64_t count)
{
    return note_rows(store, &(id_list){.id = id, .order = order, .count = count, .row = row});
}

gs_status gs_rows_of_range(uint32_t *row, const gs_store *store, uint64_t first, uint64_t count)
{
    return note_rows(store, &(id_list){.first = first, .count = count, .row = row});
}
