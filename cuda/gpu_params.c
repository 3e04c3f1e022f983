/* Parameters: those that the device keeps for a run, with the optimiser's step, and those of a pass. */
#include "cuda/gpu_params.h"

#include <math.h>
#include <string.h>

#include "base/size.h"
#include "cuda/cuda_device.h"
#include "cuda/file_reads.h"
#include "cuda/streams.h"

/* ---- of a run ----
 *
 * The optimiser's step where parameters, gradients and its state are: one kernel over all of them, as they lie one
 * after the other. */

void gs_cuda_drop_params(gs_cuda *c)
{
    if (c->state.moments != 0)
        c->d->memory_free(c->state.moments);
    c->state.moments = c->state.previous = 0;
    c->state.states = c->state.fault = 0;
    c->state.kept = false;
}

static gs_status clear(const gs_cuda *c, gs_cu_memory memory, uint64_t bytes)
{
    return gs_cuda_check(c, c->d->fill(memory, 0, bytes, c->streams.compute), "clearing memory");
}

/* The learned tensors, laid out from `at` on as parameters are that are kept: to `out`, or from `in` where that is not
 * NULL. Waits, also after a failure: the host's memory goes. */
static gs_status move(gs_cuda *c, gs_cu_memory at, float *const *out, const float *const *in, const char *what)
{
    gs_status st = GS_OK;

    GS_TRY(gs_cuda_enter(c));
    for (uint32_t i = 0; i < c->program->params && st == GS_OK; i++) {
        const gs_param *const p = &c->program->param[i];
        const uint64_t bytes = gs_param_elements(p) * sizeof(float);
        const gs_cu_memory there = at + c->state.param_offset[i];
        if (!p->fixed)
            st = in != NULL ? gs_cuda_copy_in(c, there, in[i], bytes, what)
                            : gs_cuda_copy_out(c, out[i], there, bytes, what);
    }
    const gs_status ended = gs_cuda_synchronize(c);
    return st != GS_OK ? st : ended;
}

gs_status gs_cuda_keep_params(void *context, const float *const *param, uint32_t states)
{
    gs_cuda *const c = context;
    const uint64_t bytes = (states + 1) * c->state.learned_bytes + sizeof(c->state.fault);

    if (c->program == NULL || states > 2)
        return gs_fail(GS_EINVAL, "device cuda: parameters of no program, or of an optimiser with %u runs of state",
                       states);
    GS_TRY(gs_cuda_synchronize(c));
    if (c->state.states != states) /* those of before have another size */
        gs_cuda_drop_params(c);
    c->state.kept = false;
    c->state.fault = 0;
    /* between them, too */
    GS_TRY(clear(c, c->state.at, c->state.learned_bytes));
    if (c->state.moments == 0)
        GS_TRY(gs_cuda_check(c, c->d->memory_alloc(&c->state.moments, bytes), "memory for the optimizer's state"));
    GS_TRY(clear(c, c->state.moments, bytes));
    c->state.previous = c->state.moments + states * c->state.learned_bytes;
    c->state.states = states;
    GS_TRY(move(c, c->state.at, NULL, param, "copying parameters"));
    c->state.kept = true;
    return GS_OK;
}

/* The word that a step sets. */
static gs_cu_memory step_fault(const gs_cuda *c) { return c->state.previous + c->state.learned_bytes; }

/* Their partial sums stand where cuBLAS works, which does nothing between passes; the host adds them in order. */
gs_status gs_cuda_gradient_norm(void *context, double *out)
{
    gs_cuda *const c = context;
    double partial[GS_SQUARES], sum = 0;
    gs_status st;

    _Static_assert(sizeof(partial) <= GS_CUDA_LEAST_WORKSPACE, "the workspace holds the partial sums");
    if (!c->state.kept || c->in_pass)
        return gs_fail(GS_EINVAL, "device cuda: the norm of gradients that are not there");
    const gs_cu_memory at = c->state.at + c->state.workspace_offset;
    gs_squares_args a = {.value = (const float *)(c->state.at + c->state.grads_offset),
                         .partial = (double *)at,
                         .count = c->state.learned_bytes / sizeof(float)};
    if ((st = gs_cuda_begin(c)) == GS_OK)
        st = gs_cuda_launch_fixed(c, GS_CUDA_SQUARES, GS_SQUARES / GS_BLOCK_LANES, 1, 0, &a);
    if ((st = gs_cuda_end(c, st)) == GS_OK)
        st = gs_cuda_copy_out(c, partial, at, sizeof(partial), "copying the gradients' norm");
    const gs_status ended = gs_cuda_synchronize(c); /* also after a failure: `partial` goes */
    if (st != GS_OK || ended != GS_OK)
        return st != GS_OK ? st : ended;
    for (gs_u32 i = 0; i < GS_SQUARES; i++)
        sum += partial[i];
    *out = sqrt(sum);
    return GS_OK;
}

gs_status gs_cuda_step(void *context, const gs_update *u)
{
    gs_cuda *const c = context;

    if (!c->state.kept || c->in_pass || c->state.states != u->states)
        return gs_fail(GS_EINVAL, "device cuda: a step of parameters that are not there, or of another optimiser's");
    gs_step_args a = {.value = (float *)c->state.at,
                      .grad = (const float *)(c->state.at + c->state.grads_offset),
                      .first = (float *)c->state.moments,
                      .second = (float *)(c->state.moments + (u->states > 1 ? c->state.learned_bytes : 0)),
                      .previous = (float *)c->state.previous,
                      .fault = (gs_u32 *)step_fault(c),
                      .count = c->state.learned_bytes / sizeof(float),
                      .update = *u};
    return gs_cuda_launch_alone(c, GS_CUDA_STEP, a.count / 4, &a);
}

static gs_status bring(gs_cuda *c, float *const *param, gs_cu_memory at)
{
    if (!c->state.kept)
        return gs_fail(GS_EINVAL, "device cuda: parameters that are not there");
    return move(c, at, param, NULL, "copying parameters");
}

gs_status gs_cuda_fetch_params(void *context, float *const *param)
{
    gs_cuda *const c = context;
    return bring(c, param, c->state.at);
}

gs_status gs_cuda_fetch_previous(void *context, float *const *param)
{
    gs_cuda *const c = context;
    return bring(c, param, c->state.previous);
}

void gs_cuda_leave_params(void *context) { ((gs_cuda *)context)->state.kept = false; }

bool gs_cuda_stepped_well(const void *context) { return ((const gs_cuda *)context)->state.fault == 0; }

/* One run of the optimiser's state: to `out`, or from `in` where that is not NULL. */
static gs_status move_state(gs_cuda *c, uint32_t run, float *const *out, const float *const *in)
{
    if (!c->state.kept || run >= c->state.states)
        return gs_fail(GS_EINVAL, "device cuda: run %u of an optimiser's state that is not there", run);
    return move(c, c->state.moments + run * c->state.learned_bytes, out, in, "copying the optimizer's state");
}

gs_status gs_cuda_fetch_state(void *context, uint32_t run, float *const *state)
{
    return move_state(context, run, state, NULL);
}

gs_status gs_cuda_put_state(void *context, uint32_t run, const float *const *state)
{
    return move_state(context, run, NULL, state);
}

/* ---- of a pass ----
 *
 * A pass: parameters go to the device before its launches, and what they added up comes back after them; but for those
 * that the device keeps for the run (above). */

gs_cu_memory gs_cuda_part(const gs_cuda *c, const void *host)
{
    for (uint32_t i = 0; c->in_pass && i < c->program->params; i++) {
        if (c->pass.grad != NULL && c->pass.grad[i] == host)
            return gs_cuda_grad(c, i);
        if (c->pass.statistic != NULL && c->pass.statistic[i] == host)
            return gs_cuda_sums(c, i);
    }
    return 0;
}

/* Parameters that are memory of the device already, or their gradients, where the caller has them. */
static gs_status take_there(gs_cuda *c, bool gradients)
{
    const gs_device_there *const there = c->pass.there;

    for (uint32_t i = 0; i < c->program->params; i++) {
        const uint64_t bytes = gs_param_elements(&c->program->param[i]) * sizeof(float);
        if (c->program->param[i].fixed)
            continue;
        if (!gradients)
            GS_TRY(gs_cuda_check(c, c->d->copy_within(gs_cuda_param(c, i), (gs_cu_memory)there->param[i], bytes,
                                                      c->streams.compute), "copying parameters"));
        else if (there->grad != NULL && there->grad[i] != NULL)
            GS_TRY(gs_cuda_check(c, c->d->copy_within((gs_cu_memory)there->grad[i], gs_cuda_grad(c, i), bytes,
                                                      c->streams.compute), "copying gradients"));
    }
    return GS_OK;
}

/* Arrays of one parameter in a pass, there and here; NULL: none. */
typedef struct exchange {
    const void *param;
    float *grad, *made;
    double *sums;
    uint64_t bytes, sum_bytes;
} exchange;

static exchange exchange_of(const gs_cuda *c, uint32_t i)
{
    const gs_device_pass *const pass = &c->pass;
    const gs_param *const p = &pass->program->param[i];
    const bool statistic = p->statistic != GS_STATISTIC_NONE;
    const bool here = !c->state.kept && pass->there == NULL; /* learned ones are the host's */
    return (exchange){.param = pass->param != NULL && (here || p->fixed) ? pass->param[i] : NULL,
                      .grad = pass->grad != NULL && here ? pass->grad[i] : NULL,
                      .made = statistic && pass->made != NULL ? pass->made[i] : NULL,
                      .sums = statistic && pass->statistic != NULL && !c->state.kept ? pass->statistic[i] : NULL,
                      .bytes = gs_param_elements(p) * sizeof(float),
                      .sum_bytes = 2ull * p->cols * sizeof(double)};
}

gs_status gs_cuda_begin_pass(void *context, const gs_device_pass *pass)
{
    gs_cuda *const c = context;
    bool copied = pass->loss_weight != NULL;

    if (pass->program != c->program)
        return gs_fail(GS_EINVAL, "device cuda: a pass of a program that was not prepared");
    GS_TRY(gs_cuda_enter(c));
    c->pass = *pass;
    GS_TRY(gs_cuda_check(
        c, c->d->fill(c->state.at + c->state.grads_offset, 0, c->state.added_bytes, c->streams.compute),
        "clearing gradients and the loss"));
    for (uint32_t i = 0; i < pass->program->params; i++) {
        const exchange x = exchange_of(c, i);
        copied = copied || x.param != NULL || x.grad != NULL || x.sums != NULL;
        if (x.param != NULL)
            GS_TRY(gs_cuda_copy_in(c, gs_cuda_param(c, i), x.param, x.bytes, "copying parameters"));
        if (x.grad != NULL)
            GS_TRY(gs_cuda_copy_in(c, gs_cuda_grad(c, i), x.grad, x.bytes, "copying gradients"));
        if (x.sums != NULL)
            GS_TRY(gs_cuda_copy_in(c, gs_cuda_sums(c, i), x.sums, x.sum_bytes, "copying statistics"));
    }
    if (pass->loss_weight != NULL)
        GS_TRY(gs_cuda_copy_in(c, c->state.at + c->state.weight_offset, pass->loss_weight,
                               gs_program_loss_width(pass->program) * sizeof(float),
                               "copying the weights of the loss"));
    if (pass->there != NULL)
        GS_TRY(take_there(c, false));
    /* the host may change them, as another device's pass does that ends before this one begins to compute */
    if (copied && pass->there == NULL)
        GS_TRY(gs_cuda_check(c, c->d->stream_synchronize(c->streams.compute), "the begin of a pass"));
    c->in_pass = true;
    return GS_OK;
}

static void add_metrics(gs_metrics *to, const gs_loss_part *from)
{
    to->loss_sum += from->loss_sum;
    to->valid_loss += from->valid_loss;
    for (int s = 0; s < 4; s++) {
        to->rows[s] += from->rows[s];
        to->correct[s] += from->correct[s];
    }
}

/* Adds figures that kernels have column by column (args.h) to the host's. */
static void add_columns(gs_metrics *to, const double *from, uint32_t columns)
{
    for (uint32_t c = 0; c < columns; c++) {
        to->loss_sum += from[(uint64_t)GS_LOSS_OF_TRAIN * columns + c];
        to->valid_loss += from[(uint64_t)GS_LOSS_OF_VALID * columns + c];
        for (uint32_t s = 0; s < GS_LOSS_SPLITS; s++) {
            to->rows[s + 1] += (uint64_t)from[(uint64_t)(GS_LOSS_KNOWN + s) * columns + c];
            for (uint32_t k = 0; to->column != NULL && k < GS_LOSS_SUMS; k++)
                to->column[((uint64_t)s * columns + c) * GS_LOSS_SUMS + k] +=
                    from[(uint64_t)(s * GS_LOSS_SUMS + k) * columns + c];
        }
    }
}

/* What a pass came to: its tensors to the host's, its figures to `loss` and c->state. */
static gs_status fetch_results(gs_cuda *c, gs_loss_part *loss, bool counts)
{
    for (uint32_t i = 0; i < c->pass.program->params; i++) {
        const exchange x = exchange_of(c, i);
        if (x.grad != NULL)
            GS_TRY(gs_cuda_copy_out(c, x.grad, gs_cuda_grad(c, i), x.bytes, "copying gradients"));
        if (x.sums != NULL)
            GS_TRY(gs_cuda_copy_out(c, x.sums, gs_cuda_sums(c, i), x.sum_bytes, "copying statistics"));
        if (x.made != NULL)
            GS_TRY(gs_cuda_copy_out(c, x.made, gs_cuda_param(c, i), x.bytes, "copying statistics"));
    }
    GS_TRY(gs_cuda_copy_out(c, loss, c->state.at + c->state.loss_offset, sizeof(*loss), "copying the loss"));
    if (c->state.loss_columns > 0)
        GS_TRY(gs_cuda_copy_out(c, c->state.columns, c->state.at + c->state.columns_offset,
                                (uint64_t)GS_LOSS_FIGURES * c->state.loss_columns * sizeof(double),
                                "copying the figures of columns"));
    if (counts)
        GS_TRY(gs_cuda_copy_out(c, c->state.found, c->state.at + c->state.found_offset,
                                c->state.founds * sizeof(*c->state.found), "copying what was found"));
    if (c->state.kept)
        GS_TRY(gs_cuda_copy_out(c, &c->state.fault, step_fault(c), sizeof(c->state.fault), "copying what steps say"));
    return gs_cuda_check(c, c->d->stream_synchronize(c->streams.compute), "the end of a pass");
}

gs_status gs_cuda_end_pass(void *context)
{
    gs_cuda *const c = context;
    const gs_device_pass *const pass = &c->pass;
    const bool counts = pass->metrics != NULL && pass->metrics->found != NULL && c->state.founds > 0;
    gs_loss_part loss;
    gs_status st = gs_cuda_enter(c);

    if (pass->there != NULL) {
        c->in_pass = false;
        return st == GS_OK ? take_there(c, true) : st;
    }
    if (st == GS_OK)
        st = pass->sends_beside ? gs_cuda_wait(c, c->streams.ticket) : gs_cuda_synchronize(c);

    c->in_pass = false;
    gs_cuda_settle_reads(c); /* of a pass that ended early: the disk may still write there */
    GS_TRY(st);
    GS_TRY(fetch_results(c, &loss, counts));
    if (pass->metrics != NULL) {
        add_metrics(pass->metrics, &loss);
        add_columns(pass->metrics, c->state.columns, c->state.loss_columns);
    }
    for (uint32_t i = 0; counts && i < c->state.founds; i++)
        pass->metrics->found[i] += c->state.found[i];
    return GS_OK;
}

/* ---- statistics ---- */

/* The parameter whose sums these are, in the pass under way. */
static uint32_t statistic_of(const gs_cuda *c, const double *sums)
{
    for (uint32_t i = 0; c->in_pass && c->pass.statistic != NULL && i < c->program->params; i++)
        if (c->pass.statistic[i] == sums && c->program->param[i].statistic != GS_STATISTIC_NONE)
            return i;
    return GS_NONE;
}

gs_status gs_cuda_finish_statistic(void *context, gs_statistic kind, float *dst, const double *sums, uint32_t cols,
                                   uint64_t rows)
{
    gs_cuda *const c = context;
    const uint32_t param = statistic_of(c, sums);

    if (param == GS_NONE) { /* no pass: the sums are the host's */
        for (uint32_t i = 0; i < cols; i++) {
            const double mean = sums[i] / (double)rows, variance = sums[cols + i] / (double)rows - mean * mean;
            dst[i] = (float)(kind == GS_STATISTIC_MEAN ? mean : GS_MAX(variance, 0.0));
        }
        return GS_OK;
    }
    gs_statistic_args a = {.sums = (const double *)gs_cuda_sums(c, param),
                           .to = (float *)gs_cuda_param(c, param),
                           .rows = rows,
                           .width = cols,
                           .variance = kind == GS_STATISTIC_VARIANCE};
    return gs_cuda_launch_alone(c, GS_CUDA_STATISTIC, cols, &a);
}
