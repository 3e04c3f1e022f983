/* spread.c - rows that devices keep are picked from the memories of all of them. */
#include "exec/spread.h"

#include "base/size.h"
#include "exec/load.h"

/* Of rows that the host sends: copied and picked before the next ones. */
#define SENT_BYTES (2 * GS_MIB)

static uint32_t sent_room(uint32_t most, uint64_t row_bytes)
{
    return (uint32_t)GS_MIN(most, GS_MAX(SENT_BYTES / row_bytes, 1));
}

uint64_t gs_exec_spread_bytes(uint64_t row_bytes, uint32_t most, uint32_t rows)
{
    return gs_align_up(most * sizeof(uint32_t), GS_BLOCK_BYTES) +
           gs_align_up(sent_room(most, row_bytes) * row_bytes, GS_BLOCK_BYTES) +
           gs_align_up(rows * row_bytes, GS_BLOCK_BYTES);
}

static uint64_t row_bytes_of(const gs_exec_config *c)
{
    const gs_array *const a = &c->program->array[c->spread.array];
    return a->width * gs_dtype_bytes(a->dtype);
}

uint64_t gs_exec__spread_bytes(const gs_exec_config *c)
{
    return c->spread.on ? gs_exec_spread_bytes(row_bytes_of(c), c->interval_rows, c->spread.rows) : 0;
}

void gs_exec__lay_spread(gs_exec *e, const gs_exec_config *c, uint8_t *memory)
{
    gs_exec_spread_memory *const m = &e->spread;
    if (!c->spread.on)
        return;
    m->row_bytes = row_bytes_of(c);
    m->room = sent_room(c->interval_rows, m->row_bytes);
    m->place = memory;
    m->sent = m->place + gs_align_up(c->interval_rows * sizeof(uint32_t), GS_BLOCK_BYTES);
    m->kept = m->sent + gs_align_up(m->room * m->row_bytes, GS_BLOCK_BYTES);
}

gs_status gs_exec__send(gs_exec *e, void *to, const void *from, uint64_t bytes)
{
    e->stats.copied_in_bytes += bytes;
    return bytes == 0 ? GS_OK : gs_device_transfer(e->on[0].device, GS_DEVICE_FROM_HOST, NULL, to, from, bytes);
}

gs_status gs_exec__wait_sent(gs_exec *e)
{
    gs_device *const d = e->on[0].device;
    uint64_t number = 0;
    bool done = false;
    const gs_status st = gs_device_mark_transfers(d, GS_DEVICE_FROM_HOST, &number);
    return st != GS_OK ? st : gs_device_poll_transfers(d, GS_DEVICE_FROM_HOST, number, true, &done);
}

const void *gs_exec_kept_memory(const gs_exec *e) { return e->spread.kept; }

gs_status gs_exec_keep_rows(gs_exec *e, uint32_t array, uint32_t first, uint32_t rows)
{
    const gs_exec_spread_memory *const m = &e->spread;
    const gs_status st = gs_exec__send(e, m->kept + first * m->row_bytes, gs_exec_rows(e, array), rows * m->row_bytes);
    return st != GS_OK ? st : gs_exec__wait_sent(e);
}

/* As many rows of the graph from `row` on as the buffer has room for those among them that the host sends, which are
 * *sent. */
static uint32_t next_rows(const gs_exec *e, uint32_t row, uint32_t *sent)
{
    const gs_exec_spread *const s = e->graph->spread;
    for (*sent = 0; row < e->graph->vertices; row++) {
        if (s->place[row] < s->rows_kept)
            continue;
        if (*sent == e->spread.room)
            break;
        ++*sent;
    }
    return row;
}

static gs_status wait_for_launch(gs_device *d)
{
    bool done = false;
    return gs_device_poll(d, gs_device_last_launch(d), true, &done);
}

gs_status gs_exec__copy_in_spread(gs_exec *e)
{
    const gs_exec_spread *const s = e->graph->spread;
    const gs_exec_spread_memory *const m = &e->spread;
    gs_device *const d = e->on[0].device;
    gs_status st;

    if (s == NULL)
        return GS_OK;
    const gs_resident *const r = gs_exec__resident_of(e, s->array);
    const uint8_t *const host = gs_exec_rows(e, s->array);
    uint8_t *const to = e->on[0].resident + r->offset;
    gs_pick_launch l = {.sent = m->sent, .devices = s->devices, .rows_kept = s->rows_kept,
                        .row_bytes = (uint32_t)m->row_bytes};
    for (uint32_t k = 0; k < s->devices; k++)
        l.kept[k] = s->kept[k];
    e->stats.forwarded_bytes += s->from_peers * m->row_bytes;
    st = gs_exec__send(e, m->place, s->place, e->graph->vertices * sizeof(*s->place));
    for (uint32_t row = 0, sent = 0, end; row < e->graph->vertices && st == GS_OK; row = end, l.first_sent += sent) {
        end = next_rows(e, row, &sent);
        if (row > 0 && (st = wait_for_launch(d)) != GS_OK) /* which reads the buffer */
            break;
        l.place = (const uint32_t *)(const void *)m->place + row;
        l.to = to + row * m->row_bytes;
        l.rows = end - row;
        if ((st = gs_exec__send(e, m->sent, host + l.first_sent * m->row_bytes, sent * m->row_bytes)) == GS_OK &&
            (st = gs_exec__wait_sent(e)) == GS_OK)
            st = gs_device_pick_rows(d, &l);
    }
    return st;
}
