/* emit_chunks.c - reads of edge chunks, several to a request where they are small.
 *
 * A file of edges holds the chunks of a target interval one after the other. A block of targets goes over the operand
 * intervals in order, so it takes one chunk here and one there: small requests, each of which costs the disk
 * microseconds beside its bytes. So for a few operand intervals at a time each target's chunks are read
 * together, and stay in the ring until the last of those intervals is done.
 */
#include "schedule/emit_chunks.h"

#include "base/size.h"
#include "schedule/emit_cache.h"
#include "schedule/emit_cells.h"
#include "schedule/emit_rows.h"

/* A longer request is no faster. */
#define REQUEST_BYTES (256 * GS_KIB)
/* All targets' chunks of a group take at most this share of the host's memory. */
#define GROUP_SHARE 16u

gs_status gs_emit__load_chunk(struct emitter *e, uint32_t target, uint32_t operand, struct unit *out)
{
    return gs_emit__load_chunks(e, target, operand, 1, out);
}

bool gs_emit__chunk_stays(const struct emitter *e, uint32_t target, uint32_t operand)
{
    const gs_chunk *const c = gs_layout_chunk(e->l, e->stage, target, operand);
    return c->offset + c->length <= e->c->kept_edges[e->l->stage_set[e->stage]];
}

/* Where it is without a read. */
static gs_status find_chunk(struct emitter *e, uint32_t target, uint32_t operand, struct unit *out, bool *there)
{
    const gs_chunk *c = gs_layout_chunk(e->l, e->stage, target, operand);
    const uint32_t file = GS_FILE_EDGES(e->l->program, e->l->stage_set[e->stage]);

    *out = (struct unit){.read = GS_NONE, .ring = NOT_STAGED};
    *there = c->edges == 0;
    if (c->edges == 0)
        return GS_OK;
    if (!gs_emit__chunk_stays(e, target, operand))
        return gs_emit__cached_chunk(e, target, operand, out, there);
    out->place = gs_place_on_host(GS_REGION_RESIDENT, e->c->places.offset[file] + c->offset);
    e->pass->cached_bytes += c->length;
    *there = true;
    return GS_OK;
}

/* One read of chunks [first, first + count) of a target, which lie side by side in the file; empty ones between them
 * have no bytes. The last one gives the ring its place back. */
static gs_status read_chunks(struct emitter *e, uint32_t target, uint32_t first, uint32_t count, struct unit *out)
{
    const gs_chunk *const c = gs_layout_chunk(e->l, e->stage, target, first), *const end = c + count - 1;
    gs_task t = {.kind = GS_TASK_MOVE, .check = GS_CHECK_CHUNK,
                 .file = GS_FILE_EDGES(e->l->program, e->l->stage_set[e->stage]), .target = target, .operand = first,
                 .source = gs_place_on_disk(c->offset), .bytes = end->offset + end->length - c->offset};
    struct unit all;
    gs_status st = gs_emit__take_ring(e, t.bytes, &all);

    if (st != GS_OK)
        return st;
    t.place = all.place;
    if ((st = gs_emit__add_read(e, &t, t.bytes, &all)) != GS_OK)
        return st;
    for (uint32_t k = 0; k < count; k++) {
        if (c[k].edges == 0)
            continue;
        out[k].place = gs_place_on_host(all.place.region, all.place.offset + (c[k].offset - c->offset));
        out[k].read = all.read;
        out[k].ring = k + 1 == count ? all.ring : NOT_STAGED;
        gs_emit__cache_cost(e, gs_emit__chunk_unit(e, target, first + k), e->pass->read_bytes - c[k].length);
    }
    return GS_OK;
}

gs_status gs_emit__load_chunks(struct emitter *e, uint32_t target, uint32_t first, uint32_t count, struct unit *out)
{
    const gs_chunk *const c = gs_layout_chunk(e->l, e->stage, target, first);
    uint32_t begin = 0, end = 0; /* to be read, with edges at either end; none where they are equal */
    gs_status st = GS_OK;

    for (uint32_t k = 0; k < count && st == GS_OK; k++) {
        bool there;
        if ((st = find_chunk(e, target, first + k, &out[k], &there)) != GS_OK || there)
            continue;
        if (end > begin && c[k].offset != c[end - 1].offset + c[end - 1].length) {
            st = read_chunks(e, target, first + begin, end - begin, out + begin);
            end = begin;
        }
        begin = end > begin ? begin : k;
        end = k + 1;
    }
    return st == GS_OK && end > begin ? read_chunks(e, target, first + begin, end - begin, out + begin) : st;
}

uint32_t gs_emit__group_end(const struct emitter *e, struct block b, uint32_t operand, uint64_t *bytes)
{
    const uint64_t most = GS_MIN(REQUEST_BYTES * b.count, e->l->config->host_memory / GROUP_SHARE);
    uint32_t end = operand;

    *bytes = 0;
    if (e->c->chunks_alone)
        return operand + 1;
    while (end < e->l->parts && end - operand < GS_CHUNK_GROUP) {
        uint64_t more = 0;
        for (uint32_t t = 0; t < b.count; t++)
            more += gs_layout_chunk(e->l, e->stage, b.first + t, end)->length;
        if (end > operand && *bytes + more > most)
            break;
        *bytes += more;
        end++;
    }
    return end;
}
