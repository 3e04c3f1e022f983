#include "pairs/pair_batch.h"

#include <unistd.h>

#include "base/dtype.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "ranks/ranks.h"
#include "store/chunk_view.h"

#define NO_BLOCK UINT64_MAX

/* ---- links ----------------------------------------------------------------- */

/* Number k of the array's u32. */
static gs_status link_number(gs_pair_source *s, uint64_t k, uint32_t *out)
{
    const uint64_t at = k * sizeof(*out), block = at / GS_SUM_BYTES;

    if (block != s->block) {
        GS_TRY(gs_block_reader_next(&s->reader, block, &s->in_block));
        s->block = block;
    }
    *out = ((const uint32_t *)s->reader.block)[at % GS_SUM_BYTES / sizeof(*out)];
    return GS_OK;
}

static gs_status read_link(gs_pair_source *s, uint64_t k, gs_pair *out, uint32_t *label)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    const uint32_t width = s->reader.info->width;
    uint32_t row[4] = {0};

    for (uint32_t c = 0; c < width; c++)
        GS_TRY(link_number(s, k * width + c, &row[c]));
    const bool ends = row[0] < info->vertices && row[1] < info->vertices, typed = info->edge_types > 0;
    if (!ends || (typed && row[2] >= info->edge_types) ||
        (info->link_labels && !gs_store_is_link_label(info, row[width - 1])))
        return gs_fail(GS_EFORMAT, "%s: link %lu is between rows, of a type or a label that there are not; verify the "
                       "store", s->reader.path, k);
    *out = (gs_pair){row[0], row[1], typed ? row[2] : 0};
    if (label != NULL)
        *label = row[width - 1];
    return GS_OK;
}

static gs_status count_links(gs_pair_source *s)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    uint64_t bucket = 0;

    GS_TRY(gs_block_reader_open(&s->reader, s->store, s->array));
    s->pairs = info->links[s->array - GS_ARRAY_TRAIN_LINKS];
    for (uint64_t k = 0; k < s->pairs; k++) {
        gs_pair p = {0};
        GS_TRY(read_link(s, k, &p, NULL));
        const uint64_t of = (uint64_t)(p.source / info->interval_rows) * info->parts +
                            p.destination / info->interval_rows;
        if (of < bucket)
            return gs_fail(GS_EFORMAT, "%s: link %lu is out of order; verify the store", s->reader.path, k);
        while (bucket < of)
            s->first[++bucket] = k;
    }
    while (bucket < (uint64_t)info->parts * info->parts)
        s->first[++bucket] = s->pairs;
    return GS_OK;
}

/* ---- edges ----------------------------------------------------------------- */

/* A bucket is a chunk by destination. */
static const gs_chunk *chunk_of(const gs_pair_source *s, uint64_t bucket)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    return gs_chunk_at(t, GS_BY_DEST, (uint32_t)(bucket % t->parts), (uint32_t)(bucket / t->parts));
}

static gs_status count_edges(gs_pair_source *s)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);

    for (uint64_t b = 0; b < (uint64_t)t->parts * t->parts; b++) {
        s->first[b + 1] = s->first[b] + chunk_of(s, b)->edges;
        s->chunk_bytes = GS_MAX(s->chunk_bytes, chunk_of(s, b)->length);
    }
    s->pairs = s->first[(uint64_t)t->parts * t->parts];
    if ((s->path = gs_store_edges_path(s->store, GS_BY_DEST)) == NULL ||
        (s->chunk = gs_alloc_pages(GS_MAX(s->chunk_bytes, GS_BLOCK_BYTES))) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for chunks of edges");
    uint64_t bytes;
    return gs_file_open_own(&s->fd, &bytes, s->path);
}

/* False: a type that there is not. */
static bool list_edges(gs_pair *pair, const gs_chunk_view *v, uint32_t source, uint32_t destination, uint32_t types)
{
    bool good = true;

    for (uint32_t t = 0; t < v->targets; t++)
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++, pair++) {
            *pair = (gs_pair){.source = source + gs_index_at(v->index, v->index_bytes, k),
                              .destination = destination + gs_index_at(v->target, v->index_bytes, t),
                              .type = v->type == NULL ? 0 : gs_type_at(v->type, v->type_bytes, k)};
            good = good && pair->type < types;
        }
    return good;
}

static gs_status read_chunk(gs_pair_source *s, const gs_chunk *c)
{
    const gs_extent own = gs_store_edges_extent(s->store, GS_BY_DEST);

    GS_TRY(gs_extent_check(own, c->offset, c->length, s->path));
    return gs_pread_exact(s->fd, s->chunk, c->length, c->offset - own.first, s->path);
}

/* The pairs of the chunk whose bytes are there. */
static gs_status take_edges(gs_pair_source *s, uint64_t bucket, gs_pair *pair)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    const gs_chunk *const c = chunk_of(s, bucket);
    const uint32_t source = (uint32_t)(bucket / t->parts), destination = (uint32_t)(bucket % t->parts);
    const gs_chunk_expect expect = {.target_rows = gs_interval_rows(t, destination),
                                    .operand_rows = gs_interval_rows(t, source),
                                    .index_bytes = gs_index_bytes(t), .edges = c->edges, .targets = c->targets,
                                    .operands = c->operands, .largest = c->largest};
    gs_chunk_view v;

    if (gs_hash64(s->chunk, c->length) != c->checksum)
        return gs_fail(GS_EFORMAT, "%s: chunk (%u, %u) does not match its checksum; make the store again", s->path,
                       destination, source);
    GS_TRY(gs_chunk_view_make(&v, s->chunk, c->length, &expect, true));
    const uint32_t types = GS_MAX(gs_store_get_info(s->store)->edge_types, 1);
    if (v.type_bytes != t->data.type_bytes ||
        !list_edges(pair, &v, source * t->interval_rows, destination * t->interval_rows, types))
        return gs_fail(GS_EFORMAT, "%s: chunk (%u, %u) has other types than the store; make the store again", s->path,
                       destination, source);
    return GS_OK;
}

static gs_status read_edges(gs_pair_source *s, uint64_t bucket, gs_pair *pair)
{
    const gs_chunk *const c = chunk_of(s, bucket);

    if (c->edges == 0)
        return GS_OK;
    GS_TRY(read_chunk(s, c));
    return take_edges(s, bucket, pair);
}

/* A rank has the chunks of its target intervals: rank after rank gets the one that it wants. */
static gs_status read_shared(gs_pair_source *s, uint64_t bucket, gs_pair *pair)
{
    const uint32_t self = gs_ranks_self(), *const first = gs_store_get_shard(s->store)->first;
    uint64_t all[GS_RANKS_MOST];

    GS_TRY(gs_ranks_gather(all, &bucket, sizeof(bucket)));
    for (uint32_t r = 0, owner; r < gs_ranks_count(); r++) {
        const gs_chunk *const c = all[r] == GS_NO_BUCKET ? NULL : chunk_of(s, all[r]);
        if (c == NULL || c->edges == 0)
            continue;
        for (owner = 0; all[r] % gs_store_chunks(s->store)->parts >= first[owner + 1];)
            owner++;
        if (owner == self)
            GS_TRY(read_chunk(s, c));
        if (owner != r && (owner == self || r == self))
            GS_TRY(gs_ranks_pass(owner == self, owner == self ? r : owner, s->chunk, c->length));
        if (r == self)
            GS_TRY(take_edges(s, bucket, pair));
    }
    return GS_OK;
}

/* ---- either ---------------------------------------------------------------- */

bool gs_pair_source_is_there(const gs_store *store, uint32_t split)
{
    return gs_store_array(store, (gs_array_id)(GS_ARRAY_TRAIN_LINKS + split))->present ||
           (split == 0 && gs_store_get_info(store)->edges > 0);
}

gs_status gs_pair_source_open(gs_pair_source *s, const gs_store *store, uint32_t split)
{
    const uint64_t buckets = (uint64_t)gs_store_get_info(store)->parts * gs_store_get_info(store)->parts;
    const gs_array_id links = (gs_array_id)(GS_ARRAY_TRAIN_LINKS + split);
    gs_status st;

    *s = (gs_pair_source){.store = store, .fd = -1, .block = NO_BLOCK, .array = GS_ARRAY_COUNT};
    if ((s->first = gs_calloc(buckets + 1, sizeof(*s->first))) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the places of %lu buckets", buckets);
    if (gs_store_array(store, links)->present)
        s->array = links;
    st = s->array == links ? count_links(s) : count_edges(s);
    for (uint64_t b = 0; b < buckets; b++)
        s->largest = GS_MAX(s->largest, s->first[b + 1] - s->first[b]);
    return st;
}

void gs_pair_source_close(gs_pair_source *s)
{
    gs_block_reader_close(&s->reader);
    if (s->path != NULL && s->fd >= 0)
        close(s->fd);
    if (s->chunk != NULL)
        gs_free_pages(s->chunk, GS_MAX(s->chunk_bytes, GS_BLOCK_BYTES));
    gs_free(s->path);
    gs_free(s->first);
    *s = (gs_pair_source){0};
}

uint64_t gs_pair_source_bytes(const gs_pair_source *s)
{
    const uint64_t parts = gs_store_get_info(s->store)->parts;
    return (parts * parts + 1) * sizeof(*s->first) +
           (s->array == GS_ARRAY_COUNT ? GS_MAX(s->chunk_bytes, GS_BLOCK_BYTES) : GS_SUM_BYTES);
}

bool gs_pair_source_is_shared(const gs_pair_source *s)
{
    return s->array == GS_ARRAY_COUNT && s->store != NULL && gs_store_get_shard(s->store) != NULL;
}

gs_status gs_pair_source_read(gs_pair_source *s, uint64_t bucket, gs_pair *pair, uint32_t *label)
{
    if (gs_pair_source_is_shared(s))
        return read_shared(s, bucket, pair);
    if (s->array == GS_ARRAY_COUNT)
        return read_edges(s, bucket, pair);
    for (uint64_t k = 0; k < s->first[bucket + 1] - s->first[bucket]; k++)
        GS_TRY(read_link(s, s->first[bucket] + k, &pair[k], label != NULL ? &label[k] : NULL));
    return GS_OK;
}

gs_status gs_pair_source_at(gs_pair_source *s, uint64_t k, gs_pair *out) { return read_link(s, k, out, NULL); }

gs_status gs_pair_source_each(gs_pair_source *s, gs_pair *room, gs_pair_fn *fn, void *context)
{
    const uint64_t parts = gs_store_get_info(s->store)->parts;
    gs_status st = GS_OK;

    for (uint64_t b = 0; b < parts * parts && st == GS_OK; b++) {
        const uint64_t n = s->first[b + 1] - s->first[b];
        if (n > 0 && (st = gs_pair_source_read(s, b, room, NULL)) == GS_OK)
            st = fn(context, room, n);
    }
    return st;
}
