/* exec.c - takes and gives back everything that a run holds. */
#include "exec/exec.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "exec/bound.h"
#include "exec/load.h"
#include "exec/lane.h"
#include "exec/messages.h"

#define REQUESTS 1024u
/* Chunks are often smaller than a piece: a queue of many of them, but of no more bytes than the plan says. */
#define DEPTH 256u

static gs_status no_memory(const char *what, uint64_t bytes)
{
    char text[32];
    return gs_fail(GS_ENOMEM, "out of memory: %s of %s could not be had", what,
                   gs_size_format(text, sizeof(text), bytes));
}

/* What the plan has in RESIDENT, where a bound graph is sent to a device. */
static uint64_t resident_bytes(const gs_exec *e)
{
    return gs_align_up(GS_MAX(e->plan->region_bytes[GS_REGION_RESIDENT] - gs_exec__left_out(e), 1), GS_BLOCK_BYTES);
}

/* Behind the arena of a device to which graphs are sent. */
static uint64_t sent_bytes(const gs_exec *e, const gs_exec_config *c)
{
    return resident_bytes(e) + e->piece_bytes + gs_exec__spread_bytes(c) +
           (e->slots > 1 ? gs_exec_slot_bytes(e->program, e->plan, e->piece_bytes) : 0);
}

static void lay_sent(gs_exec *e, const gs_exec_config *c, gs_exec_device *x)
{
    x->resident = x->arena + x->arena_bytes;
    x->pieces[0] = x->resident + resident_bytes(e);
    x->pieces[1] = x->pieces[0] + e->piece_bytes;
    x->second = x->pieces[1] + e->piece_bytes;
    gs_exec__lay_spread(e, c, e->slots < 2 ? x->pieces[1]
                                           : x->pieces[1] + gs_exec_slot_bytes(e->program, e->plan, e->piece_bytes));
}

/* Takes the arena of a device, with what graphs are sent to behind it. `pins`: the host's memory, once for all. */
static gs_status take_arena(gs_exec *e, const gs_exec_config *c, gs_exec_device *x, bool pins)
{
    gs_device_memory m = {.arena_bytes = x->arena_bytes, .aligned = e->plan->loads};
    void *arena = NULL;

    for (int r = GS_REGION_RING; pins && r < GS_REGION_ARENA; r++)
        m.host[r - GS_REGION_RING] = (gs_device_range){e->region[r], e->region_bytes[r]};
    if (pins)
        m.host[GS_DEVICE_HOST_RANGES - 1] =
            (gs_device_range){e->plan->row_bits, e->plan->row_words * sizeof(*e->plan->row_bits)};
    if (pins && c->sends)
        m.host[GS_REGION_RESIDENT - GS_REGION_RING].bytes = e->slots * gs_exec_bound_bytes(e->program, e->plan);
    m.arena_bytes += c->sends ? sent_bytes(e, c) : 0;
    GS_TRY(gs_device_take_memory(x->device, &m, &arena));
    x->arena = arena;
    if (!c->sends)
        return GS_OK;
    lay_sent(e, c, x);
    return gs_device_join(&x->device, 1);
}

static gs_status take_arenas(gs_exec *e, const gs_exec_config *c)
{
    for (uint32_t d = 0; d < e->devices; d++) {
        e->on[d].arena_bytes = gs_align_up(GS_MAX(e->plan->arena_bytes[d], 1), GS_BLOCK_BYTES);
        /* the last one has memory of its own where any has; outside, nothing that passes copy is the host's */
        GS_TRY(take_arena(e, c, &e->on[d], d + 1 == e->devices && !e->outside));
    }
    return GS_OK;
}

/* Places memory that devices copy from near to them. */
static void place_near(const gs_exec *e, const gs_exec_config *c, void *memory, uint64_t bytes)
{
    uint64_t nodes = 0;
    for (uint32_t d = 0; c->node != NULL && d < e->devices; d++)
        nodes |= c->node[d] == GS_TREE_NO_NODE ? 0 : 1ull << c->node[d];
    (void)gs_tree_bind_memory(c->tree, memory, bytes, nodes);
}

static gs_status take_regions(gs_exec *e, const gs_exec_config *c)
{
    static const char *const what[GS_REGION_COUNT] = {"", "the staging ring", "resident data", ""};
    for (int r = GS_REGION_RING; r < GS_REGION_COUNT; r++) {
        const uint64_t staged = e->slots < 2 ? 0 : r == GS_REGION_RING ? e->slots * e->piece_bytes
                                                                     : gs_exec_bound_bytes(e->program, e->plan);
        e->region_bytes[r] = gs_align_up(GS_MAX(e->plan->region_bytes[r] + staged, 1), GS_BLOCK_BYTES);
        if (r == GS_REGION_ARENA)
            return take_arenas(e, c);
        if ((e->region[r] = gs_alloc_pages(e->region_bytes[r])) == NULL)
            return no_memory(what[r], e->region_bytes[r]);
        place_near(e, c, e->region[r], e->region_bytes[r]);
    }
    return GS_OK;
}

static gs_status take_devices(gs_exec *e, const gs_exec_config *c)
{
    uint32_t regs = 1, edge_regs = 1;
    for (uint32_t s = 0; s < c->program->stages; s++) {
        regs = GS_MAX(regs, c->program->stage[s].regs);
        edge_regs = GS_MAX(edge_regs, c->program->stage[s].edge_regs);
    }
    e->devices = GS_MAX(c->plan->devices, 1);
    e->on = gs_arena_take(&e->arrays, e->devices, sizeof(*e->on));
    for (uint32_t d = 0; e->on != NULL && d < e->devices; d++)
        e->on[d] = (gs_exec_device){.device = c->device[d], .reg = gs_arena_take(&e->arrays, regs, sizeof(void *)),
                                    .edge_rows = gs_arena_take(&e->arrays, edge_regs, sizeof(float *))};
    return e->arrays.is_short ? no_memory("tables", e->plan->table_bytes) : GS_OK;
}

static gs_status take_tables(gs_exec *e, const gs_exec_config *c)
{
    const uint64_t chunks = (uint64_t)c->parts * c->parts, tasks = e->plan->tasks + 1ull;
    e->chunks.sets = c->sets;
    e->files.count = c->program->arrays + c->sets;
    e->files.file = gs_arena_take(&e->arrays, e->files.count, sizeof(*e->files.file));
    e->files.io_file = gs_arena_take(&e->arrays, e->files.count, sizeof(*e->files.io_file));
    e->transfers.runs_left = gs_arena_take(&e->arrays, tasks, sizeof(*e->transfers.runs_left));
    e->chunks.seen = gs_arena_take(&e->arrays, chunks * c->sets, 1);
    if (c->trace)
        e->span = gs_arena_take(&e->arrays, tasks, sizeof(*e->span));
    if (c->trace && gs_devices_have_memory(c->device, c->plan->devices))
        e->kernels = gs_arena_take(&e->arrays, tasks, sizeof(*e->kernels));
    if (e->arrays.is_short)
        return no_memory("tables", e->plan->table_bytes);
    if (!c->bound)
        memcpy(e->files.file, c->file, e->files.count * sizeof(*e->files.file));
    memset(e->files.io_file, 0xff, e->files.count * sizeof(*e->files.io_file));
    return GS_OK;
}

static bool file_is_used(const gs_exec *e, uint32_t file)
{
    for (uint32_t i = 0; i < e->plan->tasks; i++) {
        const gs_task *t = &e->plan->task[i];
        if (gs_task_is_transfer(t) && t->file == file)
            return true;
    }
    const bool made = file < e->program->arrays && e->program->array[file].store_id < 0; /* then some task writes it */
    if (made && (e->program->array[file].lasting || e->program->array[file].result)) /* between passes, too */
        return e->plan->spill.bytes[file] > 0;
    for (uint32_t i = 0; i < e->plan->residents && !made; i++)
        if (e->plan->resident[i].file == file && e->plan->resident[i].load)
            return true;
    return false;
}

/* Arrays of the run have one file, which the first of them opens. */
static bool has_place_in_other(gs_exec_files *x, uint32_t file)
{
    for (uint32_t f = 0; x->file[file].create && f < file; f++)
        if (x->file[f].create && x->io_file[f] != GS_NONE && strcmp(x->file[f].path, x->file[file].path) == 0) {
            x->io_file[file] = x->io_file[f];
            return true;
        }
    return false;
}

static gs_status open_files(gs_exec *e, const gs_exec_config *c)
{
    const struct gs_io_buffer buffers[] = {
        {e->region[GS_REGION_RING], e->region_bytes[GS_REGION_RING]},
    };
    const gs_io_config io = {.backend = c->io, .requests = c->bound ? 1 : REQUESTS, .depth = c->bound ? 1 : DEPTH,
                             .flight_bytes = e->plan->flight_bytes, .buffers = buffers,
                             .buffer_count = GS_ARRAY_LEN(buffers)};

    GS_TRY(gs_io_open(&e->files.io, &io));
    gs_io_set_patience(e->files.io, e->patience.look);
    for (uint32_t f = 0; f < e->files.count && !c->bound; f++) {
        if (!file_is_used(e, f) || has_place_in_other(&e->files, f))
            continue;
        const gs_io_mode mode = e->files.file[f].create ? GS_IO_CREATE : GS_IO_READ;
        GS_TRY(gs_io_add_file(e->files.io, &e->files.io_file[f], e->files.file[f].path, mode));
        for (char *const *p = e->files.file[f].stripe; p != NULL && *p != NULL; p++)
            GS_TRY(gs_io_add_stripe(e->files.io, e->files.io_file[f], *p));
        if (e->files.file[f].create)
            GS_TRY(gs_io_set_size(e->files.io, e->files.io_file[f], e->plan->spill.total));
    }
    return GS_OK;
}

/* What is there before the first pass. Ranks wait here for what others send them: none begins where another has failed
 * before, and who fails from then on ends all. */
static gs_status load(gs_exec *e)
{
    if (e->plan->ranks == 0)
        return gs_exec__load(e, GS_NONE);
    GS_TRY(gs_ranks_agree(GS_OK));
    const gs_status st = gs_exec__load(e, GS_NONE);
    if (st != GS_OK && gs_exec__load_has_messages(e->plan))
        gs_ranks_abort(gs_last_error());
    return st;
}

gs_status gs_exec_open(gs_exec **out, const gs_exec_config *config)
{
    gs_exec *e = gs_calloc(1, sizeof(*e));
    gs_status st;

    if (e == NULL)
        return no_memory("the run", sizeof(*e));
    e->program = config->program;
    e->plan = config->plan;
    e->progress.pass = GS_NONE;
    e->chunks.parts = config->parts;
    e->chunks.interval_rows = config->interval_rows;
    e->chunks.vertices = config->vertices;
    e->chunks.index_bytes = config->index_bytes;
    e->chunks.data = config->edge_data;
    e->chunks.edge_types = config->edge_types;
    e->chunks.feature_type = config->edge_feature_type;
    e->chunks.chunk = config->chunk;
    e->files.verify = !config->no_verify;
    e->bound = config->bound;
    e->piece_bytes = gs_align_up(config->piece_bytes, GS_BLOCK_BYTES);
    e->slots = GS_MAX(config->slots, 1);
    e->wire = config->wire;
    e->defers = gs_devices_have_memory(config->device, GS_MAX(config->plan->devices, 1));
    for (uint32_t a = 0; a < e->program->arrays; a++)
        e->outside = e->outside || e->program->array[a].outside;
    gs_exec__take_patience(e, config);
    if ((st = gs_exec__check_bound(e)) != GS_OK || (st = gs_lanes_open(&e->lanes, e->plan)) != GS_OK ||
        (st = take_devices(e, config)) != GS_OK ||
        (st = gs_exec__take_lanes(e)) != GS_OK || (st = gs_exec__take_shares(e, config->gradients)) != GS_OK ||
        (st = take_tables(e, config)) != GS_OK || (st = take_regions(e, config)) != GS_OK ||
        (st = gs_exec__take_messages(e)) != GS_OK || (st = open_files(e, config)) != GS_OK ||
        (st = gs_exec__several_open(e, config)) != GS_OK ||
        (!e->bound && ((st = load(e)) != GS_OK || (st = gs_exec__merge_chunks(e)) != GS_OK ||
                       (st = gs_exec__open_direct(e)) != GS_OK)))
        goto done;
    *out = GS_HANDED_OVER(e);
done:
    gs_exec_close(e);
    return st;
}

static void give_devices(gs_exec *e)
{
    for (uint32_t d = 0; e->on != NULL && d < e->devices; d++)
        gs_device_quiet(e->on[d].device);
    for (uint32_t d = 0; e->on != NULL && d < e->devices; d++)
        gs_device_give_memory(e->on[d].device);
}

void gs_exec_close(gs_exec *e)
{
    if (e == NULL || gs_exec__keep(e))
        return;
    gs_exec__several_close(e);
    gs_io_close(e->files.io); /* first: the kernel may still write into the regions */
    give_devices(e);
    for (int r = GS_REGION_RING; r < GS_REGION_ARENA; r++)
        if (e->region[r] != NULL)
            gs_free_pages(e->region[r], e->region_bytes[r]);
    gs_exec__give_messages(e);
    gs_lanes_close(&e->lanes);
    gs_arena_free(&e->arrays);
    gs_free(e);
}

/* Rows of one interval of a spilled array, through the ring (passes are idle). */
static gs_status read_spilled(gs_exec *e, uint32_t array, uint64_t first, uint64_t bytes, float *dst)
{
    uint64_t at = gs_exec__spilled_at(e, array, first), left = bytes;
    uint8_t *to = (uint8_t *)dst;
    const uint64_t room = e->region_bytes[GS_REGION_RING];

    while (left > 0) {
        const uint64_t begin = gs_align_down(at, GS_BLOCK_BYTES), skip = at - begin;
        const uint64_t n = GS_MIN(room, gs_align_up(skip + left, GS_BLOCK_BYTES));
        GS_TRY(gs_exec__read_now(e, array, begin, e->region[GS_REGION_RING], n));
        const uint64_t got = GS_MIN(n - skip, left);
        memcpy(to, e->region[GS_REGION_RING] + skip, got);
        to += got;
        at += got;
        left -= got;
    }
    return GS_OK;
}

gs_status gs_exec_read_rows(gs_exec *e, uint32_t array, uint64_t first, uint64_t rows, float *dst)
{
    const uint64_t row_bytes = 4ull * e->program->array[array].width;
    const gs_resident *r = gs_exec__resident_of(e, array);

    gs_exec__forget_ahead(e); /* a spilled row comes by way of the ring */
    while (rows > 0) {
        const uint64_t from = first % e->chunks.interval_rows, n = GS_MIN(rows, e->chunks.interval_rows - from);
        if (r != NULL && (first + n) * row_bytes <= r->bytes)
            memcpy(dst, e->region[GS_REGION_RESIDENT] + r->offset + first * row_bytes, n * row_bytes);
        else
            GS_TRY(read_spilled(e, array, first, n * row_bytes, dst));
        first += n;
        rows -= n;
        dst += n * e->program->array[array].width;
    }
    return GS_OK;
}

void gs_exec_span(const gs_exec *e, uint32_t task, double *begin, double *end)
{
    const double *const span = e->kernels != NULL && e->kernels[task][1] > 0 ? e->kernels[task] : e->span[task];
    *begin = span[0];
    *end = span[1];
}

const char *gs_exec_io_name(const gs_exec *e)
{
    return gs_io_backend_name(e->files.io);
}

const char *gs_exec_io_note(const gs_exec *e)
{
    return gs_io_fallback_reason(e->files.io);
}
