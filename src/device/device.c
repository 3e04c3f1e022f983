/* The wrapper around a device's table: arguments are checked here, once, so
 * that a device may assume them. */
#include "device/device.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "device/device_table.h"

gs_status gs_device_open(gs_device **out, const char *spec, unsigned threads)
{
    return gs_device_open_with(out, &(gs_device_config){.spec = spec, .threads = threads});
}

gs_status gs_device_open_with(gs_device **out, const gs_device_config *config)
{
    const gs_device_ops *ops = NULL;
    void *context = NULL;

    assert(out != NULL && config->spec != NULL);
    const gs_status st = gs_device__find(&ops, &context, config);
    if (st != GS_OK)
        return st;
    gs_device *const d = gs_malloc(sizeof(*d));
    if (d == NULL) {
        ops->close(context);
        return gs_fail(GS_ENOMEM, "device %s: out of memory", config->spec);
    }
    *d = (gs_device){.ops = ops, .context = context};
    *out = d;
    return GS_OK;
}

void gs_device_close(gs_device *d)
{
    if (d == NULL)
        return;
    d->ops->close(d->context);
    gs_free(d);
}

const char *gs_device_name(const gs_device *d) { return d->ops->name(d->context); }
gs_status gs_device_free_memory(const gs_device *d, uint64_t *bytes)
{
    *bytes = 0;
    return d->ops->free_memory == NULL ? GS_OK : d->ops->free_memory(d->context, bytes);
}
bool gs_device_unified(const gs_device *d) { return d->ops->unified(d->context); }

gs_device_libraries gs_device_libraries_bytes(const gs_device *d)
{
    return d->ops->libraries == NULL ? (gs_device_libraries){0, 0} : d->ops->libraries(d->context);
}

void gs_device_set_budget(gs_device *d, uint64_t bytes)
{
    if (d->ops->set_budget != NULL)
        d->ops->set_budget(d->context, bytes);
}

uint64_t gs_device_scratch_bytes(const gs_device *d, const gs_program *p)
{
    return d->ops->scratch_bytes(d->context, p);
}

gs_status gs_device_prepare(gs_device *d, const gs_program *p) { return d->ops->prepare(d->context, p); }

gs_status gs_device_run_vertex(gs_device *d, const gs_vertex_launch *l)
{
    assert(l != NULL && l->program != NULL && l->stage != NULL);
    if (l->rows == 0 || l->stage->instrs == 0)
        return GS_OK;
    if (l->stage->regs > 0 && l->reg == NULL)
        return gs_fail(GS_EINVAL, "stage \"%s\": the launch has no registers", l->stage->name);
    return d->ops->run_vertex(d->context, l);
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
    gs_status st = check_operand(l->dtype, l->scale != NULL, l->types > 0);
    if (st != GS_OK || (st = check_edges("edge launch", e)) != GS_OK)
        return st;
    if (l->types > 0 && e->type == NULL && !gs_edges_none(e))
        return gs_fail(GS_EINVAL, "edge launch: columns by the type of edges that have none");
    if (l->types > 0 && e->type_bytes != 1 && e->type_bytes != 2 && e->type_bytes != 4)
        return gs_fail(GS_EINVAL, "edge launch: edge types of %u bytes; only 1, 2 and 4 exist", e->type_bytes);
    return l->width == 0 || gs_edges_none(e) ? GS_OK : d->ops->run_edges(d->context, l);
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
    gs_status st = check_edges("edge program", &l->edges);
    if (st != GS_OK || gs_edges_none(&l->edges))
        return st;
    for (uint32_t i = 0; i < l->stage->sums && st == GS_OK; i++) {
        gs_row_sum rows;
        if (gs_sum_of_rows(&rows, l->stage, i) && l->sum[i].acc != NULL)
            st = run_row_sum(d, l, i, &rows);
    }
    return st == GS_OK && gs_stage_has_edge_program(l->stage) ? d->ops->run_edge_program(d->context, l) : st;
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
    return st != GS_OK || rows == 0 || width == 0 ? st : d->ops->begin_sum(d->context, kind, sum, rows, width, heads);
}

gs_status gs_device_finish_sum(gs_device *d, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                               uint32_t heads)
{
    const gs_status st = check_sum(kind, sum, width, heads);
    return st != GS_OK || rows == 0 || width == 0 ? st : d->ops->finish_sum(d->context, kind, sum, rows, width, heads);
}

static gs_status check_sequence(const gs_sequence_launch *l)
{
    assert(l != NULL);
    const gs_status st = check_edges("lstm launch", &l->edges);
    if (st != GS_OK)
        return st;
    if (l->width == 0 || l->gates == NULL || l->weight == NULL || l->state == NULL || l->cell == NULL)
        return gs_fail(GS_EINVAL, "lstm launch: its rows, its weight or its states have no memory");
    return GS_OK;
}

gs_status gs_device_run_sequence(gs_device *d, const gs_sequence_launch *l)
{
    const gs_status st = check_sequence(l);
    if (st != GS_OK || gs_edges_none(&l->edges))
        return st;
    return d->ops->run_sequence(d->context, l);
}

gs_status gs_device_run_sequence_back(gs_device *d, const gs_sequence_launch *l)
{
    const gs_status st = check_sequence(l);
    if (st != GS_OK || gs_edges_none(&l->edges))
        return st;
    if (l->d_state == NULL || l->d_cell == NULL || l->d_gates == NULL)
        return gs_fail(GS_EINVAL, "lstm launch: its gradients have no memory");
    return d->ops->run_sequence_back(d->context, l);
}

gs_status gs_device_copy(gs_device *d, void *to, const void *from, uint64_t bytes)
{
    return bytes == 0 ? GS_OK : d->ops->copy(d->context, to, from, bytes);
}

gs_status gs_device_finish_statistic(gs_device *d, gs_statistic kind, float *dst, const double *sums, uint32_t cols,
                                     uint64_t rows)
{
    if (kind == GS_STATISTIC_NONE || rows == 0)
        return gs_fail(GS_EINVAL, "a statistic of no kind or of no rows");
    return d->ops->finish_statistic(d->context, kind, dst, sums, cols, rows);
}

gs_status gs_device_add_own(gs_device *d, const gs_own_launch *l)
{
    const gs_status st = check_operand(l->dtype, l->scale != NULL, false);
    return st != GS_OK || l->rows == 0 || l->width == 0 ? st : d->ops->add_own(d->context, l);
}

gs_status gs_device_zero(gs_device *d, void *memory, uint64_t bytes)
{
    return bytes == 0 ? GS_OK : d->ops->zero(d->context, memory, bytes);
}

/* ---- devices with memory of their own; a unified one has nothing to do ---- */

gs_status gs_device_take_memory(gs_device *d, const gs_device_memory *m, void **arena)
{
    return d->ops->take_memory(d->context, m, arena);
}

void gs_device_give_memory(gs_device *d)
{
    if (d->ops->give_memory != NULL)
        d->ops->give_memory(d->context);
}

const char *gs_device_unpinned(const gs_device *d)
{
    return d->ops->unpinned != NULL ? d->ops->unpinned(d->context) : NULL;
}

gs_status gs_device_time_launches(gs_device *d)
{
    return d->ops->time_launches != NULL ? d->ops->time_launches(d->context) : GS_OK;
}

bool gs_device_launch_span(const gs_device *d, uint64_t first, uint64_t last, double span[2])
{
    return d->ops->launch_span != NULL && first <= last && d->ops->launch_span(d->context, first, last, span);
}

bool gs_device_speed(const gs_device *d, gs_gpu_speed *out)
{
    return d->ops->speed != NULL && d->ops->speed(d->context, out);
}

void gs_device_quiet(gs_device *d)
{
    if (d->ops->quiet != NULL)
        d->ops->quiet(d->context);
}

gs_status gs_device_begin_pass(gs_device *d, const gs_device_pass *pass)
{
    return d->ops->begin_pass == NULL ? GS_OK : d->ops->begin_pass(d->context, pass);
}

gs_status gs_device_begin_group(gs_device *d)
{
    return d->ops->begin_group == NULL ? GS_OK : d->ops->begin_group(d->context);
}

gs_status gs_device_end_group(gs_device *d, gs_status st)
{
    return d->ops->end_group == NULL ? st : d->ops->end_group(d->context, st);
}

gs_status gs_device_end_pass(gs_device *d) { return d->ops->end_pass == NULL ? GS_OK : d->ops->end_pass(d->context); }
uint64_t gs_device_last_launch(const gs_device *d)
{
    return d->ops->last_launch == NULL ? 0 : d->ops->last_launch(d->context);
}

gs_status gs_device_poll(gs_device *d, uint64_t launch, bool wait, bool *done)
{
    *done = true;
    return d->ops->poll == NULL ? GS_OK : d->ops->poll(d->context, launch, wait, done);
}

gs_device_copied gs_device_take_copied(gs_device *d)
{
    return d->ops->take_copied == NULL ? (gs_device_copied){0, 0} : d->ops->take_copied(d->context);
}

bool gs_device_steps(const gs_device *d) { return d->ops->step != NULL; }

static gs_status check_steps(const gs_device *d)
{
    return gs_device_steps(d) ? GS_OK
                              : gs_fail(GS_EUNSUPPORTED, "device %s: its parameters are the host's", gs_device_name(d));
}

gs_status gs_device_keep_params(gs_device *d, const float *const *param, uint32_t states)
{
    const gs_status st = check_steps(d);
    return st != GS_OK ? st : d->ops->keep_params(d->context, param, states);
}

gs_status gs_device_gradient_norm(gs_device *d, double *out)
{
    const gs_status st = check_steps(d);
    return st != GS_OK ? st : d->ops->gradient_norm(d->context, out);
}

gs_status gs_device_step(gs_device *d, const gs_update *u)
{
    const gs_status st = check_steps(d);
    return st != GS_OK ? st : d->ops->step(d->context, u);
}

gs_status gs_device_fetch_params(gs_device *d, float *const *param)
{
    const gs_status st = check_steps(d);
    return st != GS_OK ? st : d->ops->fetch_params(d->context, param);
}

gs_status gs_device_fetch_state(gs_device *d, uint32_t run, float *const *state)
{
    const gs_status st = check_steps(d);
    return st != GS_OK ? st : d->ops->fetch_state(d->context, run, state);
}

gs_status gs_device_put_state(gs_device *d, uint32_t run, const float *const *state)
{
    const gs_status st = check_steps(d);
    return st != GS_OK ? st : d->ops->put_state(d->context, run, state);
}

gs_status gs_device_fetch_previous(gs_device *d, float *const *param)
{
    const gs_status st = check_steps(d);
    return st != GS_OK ? st : d->ops->fetch_previous(d->context, param);
}

bool gs_device_stepped_well(const gs_device *d) { return !gs_device_steps(d) || d->ops->stepped_well(d->context); }

gs_status gs_device_pick_rows(gs_device *d, const gs_pick_launch *l)
{
    if (d->ops->pick_rows == NULL)
        return gs_fail(GS_EUNSUPPORTED, "device %s: it computes on host memory, no rows are picked there",
                       gs_device_name(d));
    if (l->devices == 0 || l->devices > GS_DEVICE_PICK_TABLES || l->row_bytes % 2 != 0)
        return gs_fail(GS_EINVAL, "rows of %u bytes that %u devices keep: an even number, and 1 to %u", l->row_bytes,
                       l->devices, GS_DEVICE_PICK_TABLES);
    return l->rows == 0 ? GS_OK : d->ops->pick_rows(d->context, l);
}

gs_status gs_device_peek(gs_device *d, void *to, const void *from, uint64_t bytes)
{
    if (!gs_device_unified(d))
        return d->ops->peek(d->context, to, from, bytes);
    memcpy(to, from, bytes);
    return GS_OK;
}

gs_status gs_device_measure_gemm(gs_device *d, uint32_t rows, uint32_t in, uint32_t out, double *flops_per_second)
{
    if (rows == 0 || in == 0 || out == 0)
        return gs_fail(GS_EINVAL, "cannot measure a product of %u x %u x %u: every size must be at least 1", rows,
                       in, out);
    return d->ops->measure_gemm(d->context, rows, in, out, flops_per_second);
}

gs_status gs_device_measure_gather(gs_device *d, uint64_t table_rows, uint32_t width, double *bytes_per_second)
{
    if (table_rows == 0 || table_rows > UINT32_MAX || width == 0)
        return gs_fail(GS_EINVAL,
                       "cannot measure a gather from %llu rows of %u floats: 1 to 2^32 - 1 rows, and a width",
                       (unsigned long long)table_rows, width);
    return d->ops->measure_gather(d->context, table_rows, width, bytes_per_second);
}

gs_status gs_device_measure_copy(gs_device *d, double *bytes_per_second)
{
    return d->ops->measure_copy(d->context, bytes_per_second);
}

gs_status gs_device_measure_transfer(gs_device *d, double *bytes_per_second)
{
    if (d->ops->measure_transfer == NULL)
        return gs_fail(GS_EUNSUPPORTED, "device %s: it computes on host memory, nothing is copied", gs_device_name(d));
    return d->ops->measure_transfer(d->context, bytes_per_second);
}
