/* The wrapper around a device's tables: arguments are checked here, once, so
 * that a device may assume them. */
#include "device/device.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "device/device_table.h"

/* ---- host memory: a copy is made when it is asked for, and there is nothing to wait for ---- */

static gs_status no_own(const char *what)
{
    return gs_fail(GS_EUNSUPPORTED, "%s: the device has no memory of its own", what);
}

static gs_status take_pages(const gs_device_memory *m, void **arena)
{
    char text[32];
    return (*arena = gs_alloc_pages(m->arena_bytes)) != NULL
               ? GS_OK
               : gs_fail(GS_ENOMEM, "out of memory: device memory of %s could not be had",
                         gs_size_format(text, sizeof(text), m->arena_bytes));
}

/* Those of the rows that have their bit. */
static gs_status copy_rows(const gs_rows_launch *l)
{
    for (uint64_t first = 0; first < l->rows; first += 64)
        for (uint64_t left = l->bits[first / 64]; left != 0; left &= left - 1) {
            const uint64_t at = (first + (uint64_t)__builtin_ctzll(left)) * l->row_bytes;
            memcpy((uint8_t *)l->to + at, (const uint8_t *)l->from + at, l->row_bytes);
        }
    return GS_OK;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define X(type, name, arguments, ...) static type host_##name arguments { __VA_ARGS__; }
GS_DEVICE_OF_MEMORY(X)
GS_DEVICE_OF_LINKS(X)
GS_DEVICE_OF_PARAMS(X)
GS_DEVICE_OF_READS(X)
#undef X
#pragma GCC diagnostic pop

#define X(type, name, ...) .name = host_##name,
const gs_device_own_memory gs_device__host_memory = {GS_DEVICE_OF_MEMORY(X)};
const gs_device_links gs_device__host_links = {GS_DEVICE_OF_LINKS(X)};
const gs_device_params gs_device__host_params = {GS_DEVICE_OF_PARAMS(X)};
const gs_device_reads gs_device__host_reads = {GS_DEVICE_OF_READS(X)};
#undef X

/* ---- opening ---- */

/* One table of a device. Each has nothing but pointers to functions. */
typedef struct noun {
    const char *name;
    const void *table;
    size_t bytes;
} noun;

static bool is_complete(const noun *n)
{
    typedef void entry(void);
    for (size_t at = 0; at < n->bytes; at += sizeof(entry *)) {
        entry *e;
        memcpy(&e, (const char *)n->table + at, sizeof(e));
        if (e == NULL)
            return false;
    }
    return true;
}

static gs_status check_noun(const noun *n, const char *device)
{
    const char *const fault = n->table == NULL  ? "is not there"
                              : !is_complete(n) ? "has an entry without a function"
                                                : NULL;
    return fault == NULL ? GS_OK
                         : gs_fail(GS_EUNSUPPORTED, "device %s: its table \"%s\" %s (device_table.h)", device, n->name,
                                   fault);
}

gs_status gs_device__check(const gs_device_ops *ops, const char *device)
{
    const noun nouns[] = {
        {"compute", ops->compute, sizeof(*ops->compute)}, {"ceilings", ops->ceilings, sizeof(*ops->ceilings)},
        {"memory", ops->memory, sizeof(*ops->memory)},    {"links", ops->links, sizeof(*ops->links)},
        {"params", ops->params, sizeof(*ops->params)},    {"reads", ops->reads, sizeof(*ops->reads)},
    };
    for (size_t i = 0; i < GS_ARRAY_LEN(nouns); i++)
        GS_TRY(check_noun(&nouns[i], device));
    return GS_OK;
}

gs_status gs_device_open(gs_device **out, const char *spec, unsigned threads)
{
    return gs_device_open_with(out, &(gs_device_config){.spec = spec, .threads = threads});
}

gs_status gs_device_open_with(gs_device **out, const gs_device_config *config)
{
    const gs_device_ops *ops = NULL;
    GS_FREED gs_device *d = gs_calloc(1, sizeof(*d));

    assert(out != NULL && config->spec != NULL);
    GS_NEED(d != NULL, "device %s: out of memory", config->spec);
    GS_TRY(gs_device__find(&ops, &d->context, config));
    const gs_status st = gs_device__check(ops, config->spec);
    if (st != GS_OK) {
        ops->close(d->context);
        return st;
    }
    d->ops = *ops;
    *out = GS_HANDED_OVER(d);
    return GS_OK;
}

void gs_device_close(gs_device *d)
{
    if (d == NULL)
        return;
    d->ops.close(d->context);
    gs_free(d);
}

const char *gs_device_name(const gs_device *d) { return d->ops.name(d->context); }
bool gs_device_rounds(const gs_device *d) { return d->ops.rounds != NULL && d->ops.rounds(d->context); }
gs_status gs_device_free_memory(const gs_device *d, uint64_t *bytes)
{
    return d->ops.memory->free_memory(d->context, bytes);
}
bool gs_device_unified(const gs_device *d) { return d->ops.memory == &gs_device__host_memory; }

gs_device_libraries gs_device_libraries_bytes(const gs_device *d) { return d->ops.memory->libraries(d->context); }

void gs_device_set_budget(gs_device *d, uint64_t bytes) { d->ops.memory->set_budget(d->context, bytes); }

uint64_t gs_device_scratch_bytes(const gs_device *d, const gs_program *p)
{
    return d->ops.compute->scratch_bytes(d->context, p);
}

gs_status gs_device_prepare(gs_device *d, const gs_program *p) { return d->ops.compute->prepare(d->context, p); }

gs_status gs_device_run_vertex(gs_device *d, const gs_vertex_launch *l)
{
    assert(l != NULL && l->program != NULL && l->stage != NULL);
    if (l->rows == 0 || l->stage->instrs == 0)
        return GS_OK;
    if (l->stage->regs > 0 && l->reg == NULL)
        return gs_fail(GS_EINVAL, "stage \"%s\": the launch has no registers", l->stage->name);
    return d->ops.compute->run_vertex(d->context, l);
}

/* Rows that are summed: of what type, times numbers of their own, by type of the edges? */
static gs_status check_operand(gs_dtype dtype, bool scaled, bool typed)
{
    if (dtype != GS_F32 && dtype != GS_BF16 && dtype != GS_F16)
        return gs_fail(GS_EINVAL, "edge launch: rows of %s; only f32, bf16 and f16 can be summed",
                       gs_dtype_name(dtype));
    if (typed && (dtype != GS_F32 || scaled))
        return gs_fail(GS_EINVAL, "edge launch by type: rows of %s%s; only f32 rows as they are can be summed by type",
                       gs_dtype_name(dtype), scaled ? ", scaled" : "");
    return GS_OK;
}

static gs_status check_edges(const char *what, const gs_edges *e)
{
    if (e->index_bytes != 2 && e->index_bytes != 4)
        return gs_fail(GS_EINVAL, "%s: indices of %u bytes; only 2 and 4 exist", what, e->index_bytes);
    return GS_OK;
}

gs_status gs_device_run_edges(gs_device *d, const gs_edge_launch *l)
{
    assert(l != NULL);
    const gs_edges *const e = &l->edges;
    GS_TRY(check_operand(l->dtype, l->scale != NULL, l->types > 0));
    GS_TRY(check_edges("edge launch", e));
    if (l->types > 0 && e->type == NULL && !gs_edges_none(e))
        return gs_fail(GS_EINVAL, "edge launch: columns by the type of edges that have none");
    if (l->types > 0 && e->type_bytes != 1 && e->type_bytes != 2 && e->type_bytes != 4)
        return gs_fail(GS_EINVAL, "edge launch: edge types of %u bytes; only 1, 2 and 4 exist", e->type_bytes);
    return l->width == 0 || gs_edges_none(e) ? GS_OK : d->ops.compute->run_edges(d->context, l);
}

/* A sum of an edge program that has a faster way. */
static gs_status run_row_sum(gs_device *d, const gs_edge_program_launch *l, uint32_t sum, const gs_row_sum *rows)
{
    const gs_array *const array = &l->program->array[rows->array];
    const uint32_t to = l->stage->reg[l->stage->sum[sum].reg].width, width = GS_MIN(array->width, to);
    const gs_edge_launch one = {.edges = l->edges, .dtype = array->dtype, .operand = l->rows[rows->reg],
                                .scale = rows->scale == GS_NONE ? NULL : l->rows[rows->scale_reg],
                                .acc = l->sum[sum].acc, .width = width,
                                .types = rows->types == GS_TYPES_NONE ? 0 : GS_MAX(array->width, to) / width,
                                .pick = rows->types == GS_TYPES_OF_ROWS};
    return gs_device_run_edges(d, &one);
}

gs_status gs_device_run_edge_program(gs_device *d, const gs_edge_program_launch *l)
{
    assert(l != NULL && l->program != NULL && l->stage != NULL);
    assert(!l->whole || (gs_stage_frames_sums(l->stage) && gs_device_unified(d)));
    GS_TRY(check_edges("edge program", &l->edges));
    if (gs_edges_none(&l->edges) && !l->whole)
        return GS_OK;
    for (uint32_t i = 0; i < l->stage->sums; i++) {
        gs_row_sum rows;
        if (gs_sum_of_rows(&rows, l->stage, i) && l->sum[i].acc != NULL)
            GS_TRY(run_row_sum(d, l, i, &rows));
    }
    return gs_stage_has_edge_program(l->stage) ? d->ops.compute->run_edge_program(d->context, l) : GS_OK;
}

static gs_status check_sum(gs_sum_kind kind, const gs_accumulator *sum, uint32_t width, uint32_t heads)
{
    if (sum->acc == NULL)
        return gs_fail(GS_EINVAL, "a sum over edges has no memory");
    if (kind == GS_SUM_ATTEND && (heads == 0 || width % heads != 0 || sum->maximum == NULL || sum->norm == NULL))
        return gs_fail(GS_EINVAL, "attention of %u heads over %u columns, or without memory for maximum and norm",
                       heads, width);
    return GS_OK;
}

gs_status gs_device_begin_sum(gs_device *d, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                              uint32_t heads)
{
    const gs_status st = check_sum(kind, sum, width, heads);
    return st != GS_OK || rows == 0 || width == 0
               ? st
               : d->ops.compute->begin_sum(d->context, kind, sum, rows, width, heads);
}

gs_status gs_device_finish_sum(gs_device *d, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                               uint32_t heads)
{
    const gs_status st = check_sum(kind, sum, width, heads);
    return st != GS_OK || rows == 0 || width == 0
               ? st
               : d->ops.compute->finish_sum(d->context, kind, sum, rows, width, heads);
}

static gs_status check_sequence(const gs_sequence_launch *l)
{
    assert(l != NULL);
    GS_TRY(check_edges("lstm launch", &l->edges));
    if (l->width == 0 || l->gates == NULL || l->weight == NULL || l->state == NULL || l->cell == NULL)
        return gs_fail(GS_EINVAL, "lstm launch: its rows, its weight or its states have no memory");
    return GS_OK;
}

gs_status gs_device_run_sequence(gs_device *d, const gs_sequence_launch *l)
{
    const gs_status st = check_sequence(l);
    if (st != GS_OK || gs_edges_none(&l->edges))
        return st;
    return d->ops.compute->run_sequence(d->context, l);
}

gs_status gs_device_run_sequence_back(gs_device *d, const gs_sequence_launch *l)
{
    const gs_status st = check_sequence(l);
    if (st != GS_OK || gs_edges_none(&l->edges))
        return st;
    if (l->d_state == NULL || l->d_cell == NULL || l->d_gates == NULL)
        return gs_fail(GS_EINVAL, "lstm launch: its gradients have no memory");
    return d->ops.compute->run_sequence_back(d->context, l);
}

gs_status gs_device_copy(gs_device *d, void *to, const void *from, uint64_t bytes)
{
    return bytes == 0 ? GS_OK : d->ops.compute->copy(d->context, to, from, bytes);
}

gs_status gs_device_finish_statistic(gs_device *d, gs_statistic kind, float *dst, const double *sums, uint32_t cols,
                                     uint64_t rows)
{
    if (kind == GS_STATISTIC_NONE || rows == 0)
        return gs_fail(GS_EINVAL, "a statistic of no kind or of no rows");
    return d->ops.compute->finish_statistic(d->context, kind, dst, sums, cols, rows);
}

gs_status gs_device_add_own(gs_device *d, const gs_own_launch *l)
{
    const gs_status st = check_operand(l->dtype, l->scale != NULL, false);
    return st != GS_OK || l->rows == 0 || l->width == 0 ? st : d->ops.compute->add_own(d->context, l);
}

gs_status gs_device_zero(gs_device *d, void *memory, uint64_t bytes)
{
    return bytes == 0 ? GS_OK : d->ops.compute->zero(d->context, memory, bytes);
}

/* ---- memory of its own ---- */

gs_status gs_device_take_memory(gs_device *d, const gs_device_memory *m, void **arena)
{
    gs_device_give_memory(d);
    d->arena_bytes = m->arena_bytes;
    const gs_status st = d->ops.memory->take_memory(d->context, m, &d->arena);
    if (st == GS_OK)
        *arena = d->arena;
    else
        gs_device_give_memory(d);
    return st;
}

void gs_device_give_memory(gs_device *d)
{
    d->ops.memory->give_memory(d->context, d->arena, d->arena_bytes);
    d->arena = NULL;
}

const char *gs_device_unpinned(const gs_device *d) { return d->ops.memory->unpinned(d->context); }

gs_status gs_device_time_launches(gs_device *d) { return d->ops.memory->time_launches(d->context); }

bool gs_device_launch_span(const gs_device *d, uint64_t first, uint64_t last, double span[2])
{
    return first <= last && d->ops.memory->launch_span(d->context, first, last, span);
}

bool gs_device_speed(const gs_device *d, gs_gpu_speed *out) { return d->ops.links->speed(d->context, out); }

void gs_device_quiet(gs_device *d) { d->ops.memory->quiet(d->context); }

gs_status gs_device_begin_pass(gs_device *d, const gs_device_pass *pass)
{
    return d->ops.compute->begin_pass(d->context, pass);
}

gs_status gs_device_step_in(gs_device *d) { return d->ops.memory->step_in(d->context); }

gs_status gs_device_follow(gs_device *d, void *stream) { return d->ops.memory->follow(d->context, stream); }

gs_status gs_device_lead(gs_device *d, void *stream) { return d->ops.memory->lead(d->context, stream); }

void gs_device_step_aside(gs_device *d) { d->ops.memory->step_aside(d->context); }

bool gs_device_has(const gs_device *d, const void *memory) { return d->ops.memory->has(d->context, memory); }

gs_status gs_device_begin_group(gs_device *d) { return d->ops.memory->begin_group(d->context); }

gs_status gs_device_end_group(gs_device *d, gs_status st) { return d->ops.memory->end_group(d->context, st); }

gs_status gs_device_end_pass(gs_device *d) { return d->ops.compute->end_pass(d->context); }
uint64_t gs_device_last_launch(const gs_device *d) { return d->ops.memory->last_launch(d->context); }

gs_status gs_device_poll(gs_device *d, uint64_t launch, bool wait, bool *done)
{
    *done = true;
    return d->ops.memory->poll(d->context, launch, wait, done);
}

gs_device_copied gs_device_take_copied(gs_device *d) { return d->ops.memory->take_copied(d->context); }

bool gs_device_steps(const gs_device *d) { return d->ops.params != &gs_device__host_params; }

gs_status gs_device_keep_params(gs_device *d, const float *const *param, uint32_t states)
{
    return d->ops.params->keep_params(d->context, param, states);
}

gs_status gs_device_gradient_norm(gs_device *d, double *out) { return d->ops.params->gradient_norm(d->context, out); }

gs_status gs_device_step(gs_device *d, const gs_update *u) { return d->ops.params->step(d->context, u); }

gs_status gs_device_fetch_params(gs_device *d, float *const *param)
{
    return d->ops.params->fetch_params(d->context, param);
}

gs_status gs_device_fetch_state(gs_device *d, uint32_t run, float *const *state)
{
    return d->ops.params->fetch_state(d->context, run, state);
}

gs_status gs_device_put_state(gs_device *d, uint32_t run, const float *const *state)
{
    return d->ops.params->put_state(d->context, run, state);
}

gs_status gs_device_fetch_previous(gs_device *d, float *const *param)
{
    return d->ops.params->fetch_previous(d->context, param);
}

void gs_device_leave_params(gs_device *d) { d->ops.params->leave_params(d->context); }

bool gs_device_stepped_well(const gs_device *d) { return d->ops.params->stepped_well(d->context); }

gs_status gs_device_pick_rows(gs_device *d, const gs_pick_launch *l)
{
    if (l->devices == 0 || l->devices > GS_DEVICE_PICK_TABLES || l->row_bytes % 2 != 0)
        return gs_fail(GS_EINVAL, "rows of %u bytes that %u devices keep: an even number, and 1 to %u", l->row_bytes,
                       l->devices, GS_DEVICE_PICK_TABLES);
    return l->rows == 0 ? GS_OK : d->ops.memory->pick_rows(d->context, l);
}

uint64_t gs_device_draw_bytes(const gs_device *d, const gs_draw_launch *l) { return d->ops.memory->draw_bytes(l); }

gs_status gs_device_draw(gs_device *d, const gs_draw_launch *l, gs_draw_counts *out)
{
    assert(l->hops > 0 && l->hops <= GS_DEVICE_DRAW_HOPS && l->lists <= GS_DEVICE_DRAW_LISTS && l->targets_held > 0);
    return d->ops.memory->draw(d->context, l, out);
}

gs_status gs_device_peek(gs_device *d, void *to, const void *from, uint64_t bytes)
{
    return d->ops.memory->peek(d->context, to, from, bytes);
}

/* ---- several that run one plan together ---- */

void gs_device_bus_place(const gs_device *d, char place[GS_DEVICE_PLACE_BYTES])
{
    place[0] = '\0';
    d->ops.links->bus_place(d->context, place);
}

gs_device_reach gs_device_reaches(const gs_device *d, const gs_device *peer)
{
    return d->ops.links != peer->ops.links ? (gs_device_reach){.reaches = false}
                                           : d->ops.links->reaches(d->context, peer->context);
}

gs_status gs_device_open_peer(gs_device *d, const gs_device *peer, bool *open)
{
    *open = d == peer;
    return d == peer || d->ops.links != peer->ops.links ? GS_OK
                                                        : d->ops.links->open_peer(d->context, peer->context, open);
}

/* Of those that are linked as `one` is; answers how many they are. */
static uint32_t list_contexts(void **context, const gs_device *one, gs_device *const *device, uint32_t devices)
{
    uint32_t alike = 0;
    for (uint32_t d = 0; d < devices; d++)
        if (device[d]->ops.links == one->ops.links)
            context[alike++] = device[d]->context;
    return alike;
}

bool gs_devices_have_memory(gs_device *const *device, uint32_t devices)
{
    while (devices > 0 && gs_device_unified(device[devices - 1]))
        devices--;
    return devices > 0;
}

gs_status gs_device_join(gs_device *const *device, uint32_t devices)
{
    void *context[GS_DEVICE_COUNT_MOST];
    if (devices > GS_DEVICE_COUNT_MOST)
        return gs_fail(GS_EINVAL, "%u devices; at most %u can run together", devices, GS_DEVICE_COUNT_MOST);
    const gs_device *const last = device[devices - 1]; /* processors, which are not joined, come first */
    return last->ops.links->join(context, list_contexts(context, last, device, devices));
}

gs_status gs_device_transfer(gs_device *d, gs_device_way way, const gs_device *peer, void *to, const void *from,
                             uint64_t bytes)
{
    return bytes == 0 ? GS_OK
                      : d->ops.links->transfer(d->context, way, peer == NULL ? NULL : peer->context, to, from, bytes);
}

gs_status gs_device_send_rows(gs_device *d, const gs_rows_launch *l)
{
    return d->ops.links->send_rows(d->context, l);
}

gs_status gs_device_mark_transfers(gs_device *d, gs_device_way way, uint64_t *number)
{
    *number = 0;
    return d->ops.links->mark_transfers(d->context, way, number);
}

gs_status gs_device_poll_transfers(gs_device *d, gs_device_way way, uint64_t number, bool wait, bool *done)
{
    *done = true;
    return d->ops.links->poll_transfers(d->context, way, number, wait, done);
}

gs_status gs_device_go_behind(gs_device *d, gs_device_way way, gs_device_way of, uint64_t number)
{
    return d->ops.links->go_behind(d->context, way, of, number);
}

gs_status gs_device_fetch_part(gs_device *d, void *part, uint64_t bytes)
{
    return d->ops.links->fetch_part(d->context, part, bytes);
}

gs_status gs_device_put_part(gs_device *d, const void *part, uint64_t bytes)
{
    return d->ops.links->put_part(d->context, part, bytes);
}

/* part[0] += part[1] + ..., in the order of the devices, so that it is the same every time. */
static void add_f32(float *sum, const float *part, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        sum[i] += part[i];
}

static void add_f64(double *sum, const double *part, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        sum[i] += part[i];
}

static void add_parts(void *const *part, uint32_t devices, uint64_t count, bool f64)
{
    for (uint32_t d = 1; d < devices; d++) {
        if (f64)
            add_f64(part[0], part[d], count);
        else
            add_f32(part[0], part[d], count);
    }
}

/* On the host, where those of devices with memory of their own come and go. */
static gs_status reduce_by_host(gs_device *const *device, uint32_t devices, void *const *part, uint64_t count, bool f64)
{
    const uint64_t bytes = count * (f64 ? sizeof(double) : sizeof(float));

    for (uint32_t d = 0; d < devices; d++)
        GS_TRY(gs_device_fetch_part(device[d], part[d], bytes));
    add_parts(part, devices, count, f64);
    for (uint32_t d = 0; d < devices; d++) {
        if (d > 0)
            memcpy(part[d], part[0], bytes);
        GS_TRY(gs_device_put_part(device[d], part[d], bytes));
    }
    return GS_OK;
}

gs_status gs_device_all_reduce(gs_device *const *device, uint32_t devices, void *const *part, uint64_t count, bool f64)
{
    void *context[GS_DEVICE_COUNT_MOST];
    const gs_device *const one = device[0];
    if (devices == 1)
        return GS_OK;
    if (list_contexts(context, one, device, devices) < devices || !one->ops.links->sums_alone(one->context))
        return reduce_by_host(device, devices, part, count, f64);
    return one->ops.links->all_reduce(context, devices, part, count, f64);
}

/* ---- reads of files by the device itself ---- */

gs_status gs_device_probe_reads(gs_device *d, const char *path)
{
    return d->ops.reads->probe_reads(d->context, path);
}

gs_status gs_device_open_reads(gs_device *d, void *first, uint64_t bytes)
{
    assert((uintptr_t)first % GS_BLOCK_BYTES == 0);
    return d->ops.reads->open_reads(d->context, first, bytes);
}

gs_status gs_device_add_file(gs_device *d, const char *path, uint32_t *file)
{
    return d->ops.reads->add_file(d->context, path, file);
}

gs_status gs_device_begin_read(gs_device *d, const gs_device_read *r, uint64_t *number)
{
    assert(r->offset % GS_BLOCK_BYTES == 0 && r->bytes % GS_BLOCK_BYTES == 0 && r->bytes > 0);
    assert((uintptr_t)r->to % GS_BLOCK_BYTES == 0);
    return d->ops.reads->begin_read(d->context, r, number);
}

gs_status gs_device_poll_read(gs_device *d, uint64_t number, bool wait, bool *done)
{
    return d->ops.reads->poll_read(d->context, number, wait, done);
}

/* ---- ceilings ---- */

gs_status gs_device_measure_gemm(gs_device *d, uint32_t rows, uint32_t in, uint32_t out, double *flops_per_second)
{
    if (rows == 0 || in == 0 || out == 0)
        return gs_fail(GS_EINVAL, "cannot measure a product of %u x %u x %u: every size must be at least 1", rows,
                       in, out);
    return d->ops.ceilings->measure_gemm(d->context, rows, in, out, flops_per_second);
}

gs_status gs_device_measure_gather(gs_device *d, uint64_t table_rows, uint32_t width, double *bytes_per_second)
{
    if (table_rows == 0 || table_rows > UINT32_MAX || width == 0)
        return gs_fail(GS_EINVAL,
                       "cannot measure a gather from %llu rows of %u floats: 1 to 2^32 - 1 rows, and a width",
                       (unsigned long long)table_rows, width);
    return d->ops.ceilings->measure_gather(d->context, table_rows, width, bytes_per_second);
}

gs_status gs_device_measure_copy(gs_device *d, double *bytes_per_second)
{
    return d->ops.ceilings->measure_copy(d->context, bytes_per_second);
}
