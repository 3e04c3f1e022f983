/* regrid.c - which finer grid of the same graph would do with the budgets?
 *
 * A store's chunks are as they are, so what a finer grid needs is not planned but derived from the least that this
 * grid needs. Sums and rows at either end of edges go down with the rows of an interval, and so does the ring, but for
 * the tiles of vertex programs; tables of the plan and of chunks go up by the number of chunks that are more. Estimates
 * are on the safe side: the store that is named may turn out to need less.
 */
#include "schedule/regrid.h"

#include "base/size.h"
#include "schedule/deal.h"

#define MOST_PARTS 16384u  /* as partition has it */
#define CHUNK_BYTES 256u   /* of tables besides the plan, a chunk: the store's, the run's, those of a few edge sets */
#define CHUNK_TASKS 3u     /* of an edge pass, a chunk, at most: a read, the operand rows' read, a compute */
#define TASK_BYTES 64u     /* of a task besides the task itself: what it waits for, its registers and runs */
#define MARGIN 16u         /* estimates may be too small by so much of themselves */

/* Rows of a finer grid's interval, of so many that a stage runs for now, at most. */
static uint64_t finer_rows(const gs_layout *l, uint64_t rows, uint32_t parts)
{
    return GS_MIN(rows, gs_div_up(l->chunks->vertices, parts));
}

static uint64_t finer_arena(const gs_layout *l, uint32_t parts)
{
    uint64_t least = GS_BLOCK_BYTES;
    for (uint32_t s = 0; s < l->program->stages; s++) {
        const uint64_t scratch = l->stage[s].scratch_bytes, held = gs_layout_held_bytes(l, s) - scratch;
        const bool back = gs_stage_is_back(&l->program->stage[s]);
        const uint64_t now = back ? l->chunks->interval_rows : GS_MAX(l->span[s], 1), then = finer_rows(l, now, parts);
        double bytes = (double)held * (double)then / (double)now;
        if (back)
            bytes *= gs_layout_least_slots(parts) / gs_layout_least_slots(l->parts);
        least = GS_MAX(least, scratch + (uint64_t)bytes + 2 * GS_BLOCK_BYTES);
    }
    return least;
}

/* Bytes of the ring that do not shrink with the intervals. */
static uint64_t tile_bytes(const gs_layout *l)
{
    uint64_t most = 0;
    for (uint32_t s = 0; s < l->program->stages; s++) {
        uint64_t row = 0;
        for (const gs_array_use *u = gs_layout_uses(l, s); u < gs_layout_uses(l, s + 1); u++)
            row += u->role == GS_USE_LOAD || u->role == GS_USE_STORE ? l->row_bytes[u->array] : 0;
        most = GS_MAX(most, row * l->stage[s].tile_rows);
    }
    return most;
}

/* Tables of a chunk more: those that stand besides the plan, and its tasks. */
static uint64_t chunk_tables(const gs_layout *l)
{
    uint64_t bytes = CHUNK_BYTES;
    for (uint32_t s = 0; s < l->program->stages; s++)
        bytes += l->program->stage[s].sums > 0 ? CHUNK_TASKS * (GS_TASK_COUNTED_BYTES + TASK_BYTES) : 0;
    return bytes;
}

uint32_t gs_regrid_parts(const gs_layout *l, uint64_t staging, uint64_t ring, uint64_t tables)
{
    const gs_schedule_config *const cfg = l->config;
    const uint64_t tiles = tile_bytes(l), more = chunk_tables(l);

    for (uint64_t p = l->parts + 1ull; p <= GS_MIN(MOST_PARTS, l->chunks->vertices); p += GS_MAX(p / 16, 1)) {
        const double shrinks = (double)l->parts / (double)p;
        const uint64_t device = cfg->device_fixed + finer_arena(l, (uint32_t)p) + (uint64_t)((double)staging * shrinks);
        const uint64_t chunks = p * p - (uint64_t)l->parts * l->parts;
        const uint64_t host = cfg->host_fixed + cfg->host_varies + tables + tables / 8 + chunks * more +
                              (uint64_t)((double)ring * shrinks) + tiles +
                              gs_layout_host_devices(l) * device;
        if (host + host / MARGIN <= cfg->host_memory && device + device / MARGIN <= cfg->device_memory)
            return (uint32_t)p;
    }
    return 0;
}
