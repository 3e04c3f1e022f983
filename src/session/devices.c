/* devices.c - the devices of a run, and the memory of one that has its own, beside sums and registers.
 *
 * Launches read and write host memory through copies. For any single launch there must be room; twice that lets the
 * copies for one launch go on while another computes; what is left holds lasting copies of resident data.
 */
#include <string.h>

#include "base/size.h"
#include "schedule/schedule.h"
#include "session/session.h"

#define PIECE_SLACK 512u /* bytes a copy is rounded up by, at the most */

/* Where GPUs are plugged in says which are chains: those of one switch, made neighbours; and which memory is theirs. */
static void look_around(gs_session *s, bool chains)
{
    char place[GS_DEVICE_COUNT_MOST][GS_DEVICE_PLACE_BYTES];
    const char *at[GS_DEVICE_COUNT_MOST];
    gs_device *given[GS_DEVICE_COUNT_MOST];
    uint32_t group[GS_DEVICE_COUNT_MOST], sorted[GS_DEVICE_COUNT_MOST], n = 0;

    s->machine.tree = gs_tree_open();
    for (uint32_t d = 0; d < s->machine.devices; d++) {
        given[d] = s->machine.device[d];
        gs_device_bus_place(given[d], place[d]);
        at[d] = place[d];
    }
    gs_tree_groups(s->machine.tree, at, s->machine.devices, group);
    for (uint32_t g = 0; chains && n < s->machine.devices; g++)
        for (uint32_t d = 0; d < s->machine.devices; d++)
            if (group[d] == g) {
                sorted[n] = g;
                s->machine.device[n++] = given[d];
            }
    if (chains)
        gs_topology_of_groups(&s->machine.wires, sorted, n);
    s->machine.device[0] = s->machine.device[0];
    for (uint32_t d = 0; d < s->machine.devices; d++) {
        gs_device_bus_place(s->machine.device[d], place[0]);
        s->machine.node[d] = gs_tree_node(s->machine.tree, place[0]);
    }
}

gs_status gs_session_open_devices(gs_session *s)
{
    const gs_train_options *const o = s->config.options;
    const uint32_t several = gs_device_count(o->device), devices = several > 0 ? several : 1;
    gs_status st = GS_OK;

    if (several == 0 && o->topology != NULL)
        return gs_fail(GS_EINVAL, ".topology %s: is for several devices; use it with .device cpu:N or cuda:A,B",
                       o->topology);
    for (uint32_t d = 0; d < GS_MIN(devices, GS_DEVICE_COUNT_MOST) && st == GS_OK; d++) {
        st = gs_device_open_with(
            &s->machine.device[d],
            &(gs_device_config){.spec = o->device, .threads = o->threads, .matmul = o->matmul, .index = d});
        s->machine.devices += st == GS_OK;
    }
    s->machine.device[0] = s->machine.device[0];
    if (st != GS_OK)
        return st;
    if (!gs_device_unified(s->machine.device[0]))
        look_around(s, o->topology == NULL);
    if (several == 0)
        return GS_OK;
    s->machine.topology = &s->machine.wires;
    if (s->machine.wires.devices == 0)
        gs_topology_one_switch(&s->machine.wires, devices);
    return o->topology != NULL ? gs_topology_load(&s->machine.wires, o->topology, devices) : GS_OK;
}

static bool same_gpu(const gs_device *a, const gs_device *b)
{
    char at[2][GS_DEVICE_PLACE_BYTES];
    gs_device_bus_place(a, at[0]);
    gs_device_bus_place(b, at[1]);
    return strcmp(at[0], at[1]) == 0;
}

uint64_t gs_session_free_device_memory(const gs_session *s)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t d = 0; d < s->machine.devices; d++) {
        uint32_t sharing = 0;
        for (uint32_t k = 0; k < s->machine.devices; k++)
            sharing += same_gpu(s->machine.device[d], s->machine.device[k]);
        least = GS_MIN(least, gs_device_free_memory(s->machine.device[d]) / sharing);
    }
    return least;
}

static uint64_t row_bytes(const gs_program *p, uint32_t array)
{
    return p->array[array].width * (uint64_t)gs_dtype_bytes(p->array[array].dtype);
}

/* Of one chunk: its bytes, and the rows of its two intervals. Arrays named twice count twice. */
static uint64_t edge_launch_bytes(const gs_session *s, const gs_stage *stage)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    uint64_t chunk = 0, row = 0, pieces = 8;
    if (stage->sums == 0)
        return 0;
    for (int d = 0; d < 2; d++)
        for (uint64_t i = 0; i < (uint64_t)t->parts * t->parts; i++)
            chunk = GS_MAX(chunk, t->chunk[d][i].length);
    for (uint32_t i = 0; i < stage->sums; i++) { /* sums of rows have a launch each */
        uint64_t rows = 0;
        for (gs_array_use u = {0}; gs_stage_next_use(stage, &u);)
            rows += u.sum == i && (u.role == GS_USE_OPERAND || u.role == GS_USE_SCALE) ? row_bytes(s->program, u.array)
                                                                                       : 0;
        row = GS_MAX(row, rows);
    }
    for (gs_array_use u = {0}; gs_stage_next_use(stage, &u);) {
        const bool program = u.role == GS_USE_TARGET || u.role == GS_USE_BACK ||
                             (u.role == GS_USE_OPERAND && u.sum == GS_NONE);
        row += program ? row_bytes(s->program, u.array) : 0;
        pieces += program || u.role == GS_USE_OPERAND || u.role == GS_USE_SCALE;
    }
    row += pieces; /* marks of rows that are there, of pieces that hold some */
    return chunk + row * t->interval_rows + pieces * PIECE_SLACK;
}

/* Of one tile: the rows that it loads and stores. */
static uint64_t vertex_launch_bytes(const gs_session *s, const gs_stage *stage)
{
    const uint64_t rows = GS_MIN(gs_store_chunks(s->store)->interval_rows,
                                 gs_schedule_launch_rows(stage, s->memory.device));
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < stage->regs; r++)
        if (stage->reg[r].array != GS_NONE)
            bytes += rows * stage->reg[r].width * gs_dtype_bytes(stage->reg[r].dtype) + PIECE_SLACK;
    return bytes;
}

uint64_t gs_session_staging(const gs_session *s)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < s->program->stages; i++) {
        most = GS_MAX(most, edge_launch_bytes(s, &s->program->stage[i]));
        most = GS_MAX(most, vertex_launch_bytes(s, &s->program->stage[i]));
    }
    return gs_align_up(most, GS_BLOCK_BYTES);
}

/* Of all chunks that stages sum over: which of them will be mirrored is exec's to see. */
static gs_device_orders orders_of(const gs_session *s)
{
    const uint64_t parts = gs_store_chunks(s->store)->parts;
    gs_device_orders o = {0};
    for (uint32_t k = 0; k < s->edges.sets; k++)
        for (uint64_t i = 0; gs_session_uses_set(s, k) && i < parts * parts; i++) {
            const gs_chunk *const c = &s->edges.set[k].chunk[i];
            o.targets += c->targets;
            o.chunks += c->targets > 0;
            o.most = GS_MAX(o.most, c->targets);
        }
    return o;
}

uint64_t gs_session_order_bytes(const gs_session *s)
{
    const gs_device_orders o = orders_of(s);
    return o.most * sizeof(uint32_t) + o.chunks * (uint64_t)GS_DEVICE_ORDER_BYTES;
}

void gs_session_use_spare(gs_session *s)
{
    uint64_t spare = s->memory.device > s->plan->device_bytes ? s->memory.device - s->plan->device_bytes : 0;
    const uint64_t more = GS_MIN(spare, s->memory.staging);
    s->memory.staging += more;
    spare -= more;
    uint64_t resident = 0;
    for (uint32_t i = 0; i < s->plan->residents; i++)
        resident += gs_align_up(s->plan->resident[i].bytes, GS_BLOCK_BYTES);
    s->memory.mirror = GS_MIN(spare, resident);
    spare -= s->memory.mirror;
    s->memory.orders = orders_of(s);
    if (s->memory.mirror == 0 || s->memory.orders.targets * sizeof(uint32_t) + GS_BLOCK_BYTES > spare)
        s->memory.orders = (gs_device_orders){0};
    s->plan->device_bytes += more + s->memory.mirror;
    if (s->memory.orders.targets > 0)
        s->plan->device_bytes += s->memory.orders.targets * sizeof(uint32_t) + GS_BLOCK_BYTES;
}
