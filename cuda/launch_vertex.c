/* Vertex programs: generated kernels for runs of elementwise instructions, cuBLAS for products, fixed kernels
 * for sums and the loss, one after the other in the stream. */
#include "base/philox.h"
#include "base/size.h"
#include "cuda/cuda_device.h"
#include "cuda/launch.h"
#include "cuda/gpu_params.h"
#include "cuda/streams.h"

/* ---- launches that every program has ---- */

gs_status gs_cuda_add_own(void *context, const gs_own_launch *l)
{
    gs_cuda *const c = context;
    gs_add_args a = {.acc = l->acc, .src = l->own, .count = l->rows * l->width, .scale = l->scale, .width = l->width,
                     .how = l->dtype == GS_BF16  ? GS_ADD_BF16
                            : l->dtype == GS_F16 ? GS_ADD_F16
                                                 : GS_ADD_F32};
    return gs_cuda_launch_alone(c, GS_CUDA_ADD, a.count, &a);
}

gs_status gs_cuda_copy(void *context, void *to, const void *from, uint64_t bytes)
{
    gs_cuda *const c = context;
    gs_status st = gs_cuda_begin(c);
    if (st == GS_OK)
        st = gs_cuda_check(c, c->d->copy_within((gs_cu_memory)to, (gs_cu_memory)from, bytes, c->streams.compute),
                           "copying");
    return gs_cuda_end(c, st);
}

_Static_assert(GS_DEVICE_PICK_TABLES == GS_PICK_TABLES, "a launch names as many devices as a kernel");

/* Lanes of a row: enough for 128 bytes side by side, and then for a few loads of each. */
static uint32_t lanes_of_row(uint32_t row_bytes, uint32_t unit)
{
    uint32_t lanes = 1;
    while (lanes < 32 && lanes * unit < row_bytes && (lanes * unit < 128 || lanes * unit * GS_PICK_COPIES < row_bytes))
        lanes *= 2;
    return lanes;
}

gs_status gs_cuda_pick_rows(void *context, const gs_pick_launch *l)
{
    gs_cuda *const c = context;
    gs_pick_args a = {.sent = l->sent, .place = l->place, .to = l->to, .rows_kept = l->rows_kept,
                      .first_sent = l->first_sent, .rows = l->rows, .devices = l->devices, .row_bytes = l->row_bytes,
                      .unit = GS_MIN(l->row_bytes & -l->row_bytes, 16u)};
    a.lanes = lanes_of_row(a.row_bytes, a.unit);
    for (uint32_t d = 0; d < l->devices; d++)
        a.kept[d] = l->kept[d];
    GS_TRY(gs_cuda_enter(c));
    return gs_cuda_launch_in(c, c->streams.in, c->fixed[GS_CUDA_PICK], gs_cuda_blocks((uint64_t)a.rows * a.lanes), 1, 0,
                             &a, "gs_pick_rows");
}

/* A kernel fetches them where it reaches the host's memory, without a copy on the host; else all rows are copied. */
gs_status gs_cuda_send_rows(void *context, const gs_rows_launch *l)
{
    gs_cuda *const c = context;
    const uint64_t bytes = l->rows * l->row_bytes;
    const gs_cu_memory from = gs_cuda_reached(c, l->from, bytes),
                       bits = gs_cuda_reached(c, l->bits, (l->rows + 63) / 64 * sizeof(*l->bits));
    const gs_u64 together = l->row_bytes | from | (gs_cu_memory)l->to;
    gs_send_args a = {.from = (const gs_u8 *)from, .bits = (const gs_u64 *)bits, .to = l->to, .rows = l->rows,
                      .row_bytes = l->row_bytes, .unit = (gs_u32)GS_MIN(together & -together, 16u)};

    GS_TRY(gs_cuda_enter(c));
    if (from == 0 || bits == 0)
        return gs_cuda_transfer(c, GS_DEVICE_FROM_HOST, NULL, l->to, l->from, bytes);
    a.lanes = lanes_of_row(a.row_bytes, a.unit);
    return gs_cuda_launch_in(c, c->streams.in, c->fixed[GS_CUDA_SEND],
                             gs_cuda_blocks((a.rows + GS_SEND_ROWS - 1) / GS_SEND_ROWS * a.lanes), 1, 0, &a,
                             "gs_send_rows");
}

gs_status gs_cuda_zero(void *context, void *memory, uint64_t bytes)
{
    gs_cuda *const c = context;
    gs_status st = gs_cuda_begin(c);
    if (st == GS_OK)
        st = gs_cuda_check(c, c->d->fill((gs_cu_memory)memory, 0, bytes, c->streams.compute), "clearing memory");
    return gs_cuda_end(c, st);
}

/* What kernels are told of a sum's memory. */
static gs_frame_args frame_of(gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                              uint32_t heads)
{
    const bool attends = kind == GS_SUM_ATTEND;
    return (gs_frame_args){.acc = sum->acc,
                           .maximum = attends ? sum->maximum : NULL,
                           .norm = attends ? sum->norm : NULL,
                           .count = (uint64_t)rows * width,
                           .heads_count = attends ? (uint64_t)rows * heads : 0,
                           .each = attends ? width / heads : 1,
                           .neutral = kind == GS_SUM_MAX || kind == GS_SUM_MIN ? GS_NO_EDGE : 0,
                           .beside = sum->beside};
}

gs_status gs_cuda_begin_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows,
                                uint32_t width, uint32_t heads)
{
    gs_cuda *const c = context;
    gs_frame_args a = frame_of(kind, sum, rows, width, heads);
    return gs_cuda_launch_alone(c, GS_CUDA_BEGIN, a.count, &a);
}

gs_status gs_cuda_finish_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows,
                                 uint32_t width, uint32_t heads)
{
    gs_cuda *const c = context;
    gs_frame_args a = frame_of(kind, sum, rows, width, heads);
    gs_status st;

    if (kind != GS_SUM_MAX && kind != GS_SUM_MIN && kind != GS_SUM_ATTEND)
        return GS_OK;
    st = gs_cuda_begin(c);
    if (st == GS_OK && kind != GS_SUM_ATTEND)
        st = gs_cuda_launch_fixed(c, GS_CUDA_FINISH_MOST, gs_cuda_blocks(a.count), 1, 0, &a);
    if (st == GS_OK && kind == GS_SUM_ATTEND)
        st = gs_cuda_launch_fixed(c, GS_CUDA_FINISH_ATTEND, gs_cuda_blocks(a.count), 1, 0, &a);
    if (st == GS_OK && kind == GS_SUM_ATTEND)
        st = gs_cuda_launch_fixed(c, GS_CUDA_FINISH_LSE, gs_cuda_blocks(a.heads_count), 1, 0, &a);
    return gs_cuda_end(c, st);
}

/* ---- vertex programs ---- */

static gs_cu_memory reg(const gs_cuda *c, uint32_t index) { return c->where[index]; }

/* ---- products ---- */

/* For cuBLAS, which is column-major: C' = B' A'. */
gs_status gs_cuda_multiply(gs_cuda *c, bool ta, bool tb, uint32_t m, uint32_t n, uint32_t k, gs_cu_memory a,
                           uint32_t lda, gs_cu_memory b, uint32_t ldb, float beta, gs_cu_memory to)
{
    const float one = 1.0f;
    const gs_cu_result r =
        c->d->gemm(c->blas, tb ? GS_CUBLAS_T : GS_CUBLAS_N, ta ? GS_CUBLAS_T : GS_CUBLAS_N, (int)n, (int)m, (int)k,
                   &one, (const void *)b, GS_CUBLAS_F32, (int)ldb, (const void *)a, GS_CUBLAS_F32, (int)lda, &beta,
                   (void *)to, GS_CUBLAS_F32, (int)n, c->compute_type, GS_CUBLAS_DEFAULT_ALGORITHM);
    if (r == 0)
        return GS_OK;
    GS_TRY(gs_cuda_synchronize(c)); /* it has numbers of its own for what happened before */
    return gs_fail(GS_EDEVICE, "device cuda: cuBLAS could not multiply [%u, %u] by [%u, %u] (its status %d)", m, k, k,
                   n, r);
}

static gs_status run_product(gs_cuda *c, const gs_vertex_launch *l, const gs_instr *in)
{
    const gs_param *const w = &l->program->param[in->op == GS_OP_OUTER ? in->dst : in->b.index];
    if (in->op == GS_OP_OUTER) /* grad[out, in] += a[., out]' b[., in] */
        return gs_cuda_multiply(c, true, false, w->rows, w->cols, l->rows, reg(c, in->a.index), w->rows,
                                reg(c, in->b.index), w->cols, 1.0f, gs_cuda_grad(c, in->dst));
    const bool transposed = in->op == GS_OP_MATMUL_T;
    const uint32_t from = transposed ? w->cols : w->rows, to = transposed ? w->rows : w->cols;
    return gs_cuda_multiply(c, false, transposed, l->rows, to, from, reg(c, in->a.index), from,
                            gs_cuda_param(c, in->b.index), w->cols, 0.0f, reg(c, in->dst));
}

/* A matrix for each type, one above the other in the parameter: rows by each of them, as one product of many; back, the
 * sum over them; and the gradient of all. */
static gs_status run_fan(gs_cuda *c, const gs_vertex_launch *l, const gs_instr *in)
{
    const bool outer = in->op == GS_OP_FAN_OUTER, back = in->op == GS_OP_FAN_T;
    const gs_param *const p = &l->program->param[outer ? in->dst : in->b.index];
    const uint32_t width = l->stage->reg[back ? in->dst : in->a.index].width, out = p->cols, types = p->rows / width,
                   wide = types * out;
    const uint64_t matrix = (uint64_t)width * out;
    const gs_cu_memory w = outer ? gs_cuda_grad(c, in->dst) : gs_cuda_param(c, in->b.index), a = reg(c, in->a.index);
    const float one = 1.0f, zero = 0.0f;
    gs_cu_result r;

    if (back) {
        for (uint32_t t = 0; t < types; t++)
            GS_TRY(gs_cuda_multiply(c, false, true, l->rows, width, out, a + (uint64_t)t * out * sizeof(float), wide,
                                    w + t * matrix * sizeof(float), out, t == 0 ? 0.0f : 1.0f, reg(c, in->dst)));
        return GS_OK;
    }
    if (outer)
        r = c->d->gemm_batched(c->blas, GS_CUBLAS_N, GS_CUBLAS_T, (int)out, (int)width, (int)l->rows, &one,
                               (const void *)reg(c, in->b.index), GS_CUBLAS_F32, (int)wide, out, (const void *)a,
                               GS_CUBLAS_F32, (int)width, 0, &one, (void *)w, GS_CUBLAS_F32, (int)out,
                               (long long)matrix, (int)types, c->compute_type, GS_CUBLAS_DEFAULT_ALGORITHM);
    else
        r = c->d->gemm_batched(c->blas, GS_CUBLAS_N, GS_CUBLAS_N, (int)out, (int)l->rows, (int)width, &one,
                               (const void *)w, GS_CUBLAS_F32, (int)out, (long long)matrix, (const void *)a,
                               GS_CUBLAS_F32, (int)width, 0, &zero, (void *)reg(c, in->dst), GS_CUBLAS_F32, (int)wide,
                               out, (int)types, c->compute_type, GS_CUBLAS_DEFAULT_ALGORITHM);
    if (r == 0)
        return GS_OK;
    GS_TRY(gs_cuda_synchronize(c));
    return gs_fail(GS_EDEVICE, "device cuda: cuBLAS could not multiply %u rows by %u matrices [%u, %u] (its status %d)",
                   l->rows, types, width, out, r);
}

/* ---- fixed kernels ---- */

static gs_status run_regroup(gs_cuda *c, const gs_vertex_launch *l, const gs_instr *in)
{
    gs_regroup_args a = {.from = (const float *)reg(c, in->a.index),
                         .to = (float *)reg(c, in->dst),
                         .rows = l->rows,
                         .from_width = l->stage->reg[in->a.index].width,
                         .to_width = l->stage->reg[in->dst].width,
                         .how = in->op == GS_OP_EXPAND   ? GS_REGROUP_EXPAND
                                : in->op == GS_OP_TILE   ? GS_REGROUP_TILE
                                : in->op == GS_OP_ACROSS ? GS_REGROUP_ACROSS
                                : in->op == GS_OP_CONCAT ? GS_REGROUP_CONCAT
                                : in->op == GS_OP_PART   ? GS_REGROUP_PART
                                : in->op == GS_OP_ROWMAX ? GS_REGROUP_MOST
                                : in->op == GS_OP_MIX    ? GS_REGROUP_MIX
                                : in->op == GS_OP_MIX_T  ? GS_REGROUP_MIX_T
                                                         : GS_REGROUP_FOLD,
                         .other = in->op == GS_OP_CONCAT ? (const float *)reg(c, in->b.index) : NULL,
                         .first = in->site};
    if (a.how == GS_REGROUP_MIX || a.how == GS_REGROUP_MIX_T) {
        const gs_param *const w = &l->program->param[in->b.index];
        a.other = (const float *)gs_cuda_param(c, in->b.index);
        a.blocks = a.how == GS_REGROUP_MIX ? w->rows : w->cols;
    }
    if (a.how == GS_REGROUP_FOLD && a.to_width == 1)
        return gs_cuda_launch_fixed(c, GS_CUDA_ROW_SUMS, gs_div_up(a.rows, GS_BLOCK_LANES / 32), 1, 0, &a);
    return gs_cuda_launch_fixed(c, GS_CUDA_REGROUP, gs_cuda_blocks((uint64_t)a.rows * a.to_width), 1, 0, &a);
}

/* Parts of rows whose sums are made side by side. */
static void cut_rows(gs_u32 *part_rows, gs_u32 *parts, uint32_t rows)
{
    *part_rows = (gs_u32)GS_MAX(gs_div_up(rows, GS_CUDA_COLSUM_PARTS), 64ull);
    *parts = (gs_u32)gs_div_up(rows, *part_rows);
}

static gs_status run_colsum(gs_cuda *c, const gs_vertex_launch *l, const gs_instr *in)
{
    gs_colsum_args a = {.from = (const float *)reg(c, in->a.index),
                        .partial = (float *)(c->state.at + c->state.scratch_offset),
                        .grad = (float *)gs_cuda_grad(c, in->dst),
                        .rows = l->rows,
                        .width = l->program->param[in->dst].cols};
    cut_rows(&a.part_rows, &a.parts, l->rows);
    GS_TRY(gs_cuda_launch_fixed(c, GS_CUDA_COLSUM_PART, gs_div_up(a.width, GS_BLOCK_COLUMNS), a.parts,
                                GS_BLOCK_LANES * sizeof(float), &a));
    return gs_cuda_launch_fixed(c, GS_CUDA_COLSUM_TOTAL, gs_cuda_blocks(a.width), 1, 0, &a);
}

static gs_status run_moments(gs_cuda *c, const gs_vertex_launch *l, const gs_instr *in)
{
    gs_moments_args a = {.from = (const float *)reg(c, in->a.index),
                         .partial = (double *)(c->state.at + c->state.scratch_offset),
                         .sums = (double *)gs_cuda_sums(c, in->dst),
                         .rows = l->rows,
                         .width = l->program->param[in->dst].cols};
    cut_rows(&a.part_rows, &a.parts, l->rows);
    GS_TRY(gs_cuda_launch_fixed(c, GS_CUDA_MOMENTS_PART, gs_div_up(a.width, GS_BLOCK_COLUMNS), a.parts,
                                2 * GS_BLOCK_LANES * sizeof(double), &a));
    return gs_cuda_launch_fixed(c, GS_CUDA_MOMENTS_TOTAL, gs_cuda_blocks(2ull * a.width), 1, 0, &a);
}

static gs_status run_mix_outer(gs_cuda *c, const gs_vertex_launch *l, const gs_instr *in)
{
    const gs_param *const w = &l->program->param[in->dst];
    gs_mix_args m = {.a = (const float *)reg(c, in->a.index),
                     .b = (const float *)reg(c, in->b.index),
                     .partial = (float *)(c->state.at + c->state.scratch_offset),
                     .rows = l->rows,
                     .m = w->rows,
                     .n = w->cols,
                     .each = l->stage->reg[in->a.index].width / w->rows};
    gs_colsum_args sum = {
        .partial = m.partial, .grad = (float *)gs_cuda_grad(c, in->dst), .rows = l->rows, .width = w->rows * w->cols};
    cut_rows(&sum.part_rows, &sum.parts, l->rows);
    m.part_rows = sum.part_rows;
    GS_TRY(gs_cuda_launch_fixed(c, GS_CUDA_MIX_PART, gs_div_up(sum.width, GS_BLOCK_LANES / 32), sum.parts, 0, &m));
    return gs_cuda_launch_fixed(c, GS_CUDA_COLSUM_TOTAL, gs_cuda_blocks(sum.width), 1, 0, &sum);
}

static const float *loss_weight(const gs_cuda *c, const gs_vertex_launch *l)
{
    return l->loss_weight == NULL ? NULL : (const float *)(c->state.at + c->state.weight_offset);
}

static gs_status run_loss_columns(gs_cuda *c, const gs_vertex_launch *l, const gs_instr *in)
{
    static const gs_columns_loss columns_loss[GS_LOSSES] = {
#define X(id, name, task, is) [GS_LOSS_##id] = GS_COLUMNS_##id,
        GS_LOSS_MAP(X)
#undef X
    };
    const gs_dtype labels = l->stage->reg[in->b.index].dtype;
    const gs_loss loss = gs_op_facts_of(in->op)->loss;
    gs_columns_args a = {.logits = (const float *)reg(c, in->a.index),
                         .label = (const void *)reg(c, in->b.index),
                         .split = (const gs_u8 *)reg(c, in->c.index),
                         .gradient = gs_op_is_loss_grad(in->op) ? (float *)reg(c, in->dst) : NULL,
                         .partial = (double *)(c->state.at + c->state.scratch_offset),
                         .total = (double *)(c->state.at + c->state.columns_offset),
                         .weight = loss_weight(c, l),
                         .factor = l->loss_factor,
                         .rows = l->rows,
                         .classes = l->stage->reg[in->a.index].width,
                         .loss = columns_loss[loss],
                         .numbers = gs_loss_task(loss) == GS_TRAIN_TASK_REGRESS,
                         .label_type = labels == GS_F32   ? GS_LABEL_FLOATS
                                       : labels == GS_I32 ? GS_LABEL_WHOLE
                                                          : GS_LABEL_BYTES,
                         .scale = l->loss_scale};
    cut_rows(&a.part_rows, &a.parts, l->rows);
    const uint64_t figures = (uint64_t)GS_LOSS_FIGURES * a.classes;
    GS_TRY(gs_cuda_launch_fixed(c, GS_CUDA_LOSS_COLUMNS, gs_div_up(a.classes, GS_BLOCK_COLUMNS), a.parts,
                                GS_LOSS_FIGURES * GS_BLOCK_LANES * sizeof(double), &a));
    return gs_cuda_launch_fixed(c, GS_CUDA_LOSS_COLUMNS_TOTAL, gs_cuda_blocks(figures), 1, 0, &a);
}

static gs_status run_loss(gs_cuda *c, const gs_vertex_launch *l, const gs_instr *in)
{
    const uint32_t groups = GS_BLOCK_LANES / 32;
    gs_loss_args a = {.logits = (const float *)reg(c, in->a.index),
                      .label = (const int *)reg(c, in->b.index),
                      .split = (const gs_u8 *)reg(c, in->c.index),
                      .gradient = gs_op_is_loss_grad(in->op) ? (float *)reg(c, in->dst) : NULL,
                      .part = (gs_loss_part *)(c->state.at + c->state.scratch_offset),
                      .total = (gs_loss_part *)(c->state.at + c->state.loss_offset),
                      .rows = l->rows,
                      .classes = l->stage->reg[in->a.index].width,
                      .weight = loss_weight(c, l),
                      .factor = l->loss_factor,
                      .found = (gs_u32 *)(c->state.at + c->state.found_offset),
                      .scale = l->loss_scale,
                      .smoothing = l->loss_smoothing};
    a.parts = (uint32_t)GS_MIN(gs_div_up(l->rows, groups), (uint64_t)GS_CUDA_LOSS_PARTS);
    GS_TRY(gs_cuda_launch_fixed(c, GS_CUDA_LOSS, a.parts, 1, groups * sizeof(gs_loss_part), &a));
    return gs_cuda_launch_fixed(c, GS_CUDA_LOSS_TOTAL, 1, 1, GS_BLOCK_LANES * sizeof(gs_loss_part), &a);
}

/* ---- runs ---- */

static const gs_cuda_vertex_code *find_run(const gs_cuda *c, uint32_t stage, uint32_t first)
{
    for (uint32_t i = 0; i < c->code.vertices; i++)
        if (c->code.vertex[i].k.stage == stage && c->code.vertex[i].k.first == first)
            return &c->code.vertex[i];
    return NULL;
}

static gs_status run_elementwise(gs_cuda *c, const gs_vertex_launch *l, const gs_cuda_vertex_code *v)
{
    const gs_vertex_kernel *const k = &v->k;
    gs_vertex_args a = {.rows = l->rows, .epoch = l->epoch};
    uint32_t key[2];
    gs_random_key(key, l->seed, GS_RANDOM_DROPOUT);
    a.key[0] = key[0];
    a.key[1] = key[1];
    gs_random_key(key, l->seed, GS_RANDOM_EDGES);
    a.edge_key[0] = key[0];
    a.edge_key[1] = key[1];
    for (uint32_t i = 0; i < k->inputs; i++)
        a.in[i] = (const void *)(k->input[i].param ? gs_cuda_param(c, k->input[i].index) : reg(c, k->input[i].index));
    for (uint32_t i = 0; i < k->outputs; i++)
        a.out[i] = (float *)reg(c, k->output[i]);
    return gs_cuda_launch(c, v->run, gs_cuda_blocks(gs_div_up(k->width, 4) * l->rows), 1, 0, &a, k->name);
}

static gs_status run_instrs(gs_cuda *c, const gs_vertex_launch *l)
{
    const uint32_t stage = (uint32_t)(l->stage - l->program->stage);
    gs_status st = GS_OK;
    for (uint32_t i = 0; i < l->stage->instrs && st == GS_OK;) {
        const gs_instr *const in = &l->stage->instr[i];
        const gs_cuda_vertex_code *const v = find_run(c, stage, i);
        if (v != NULL) {
            st = run_elementwise(c, l, v);
            i = v->k.end;
            continue;
        }
        if (in->op == GS_OP_MATMUL || in->op == GS_OP_MATMUL_T || in->op == GS_OP_OUTER)
            st = run_product(c, l, in);
        else if (in->op == GS_OP_FAN || in->op == GS_OP_FAN_T || in->op == GS_OP_FAN_OUTER)
            st = run_fan(c, l, in);
        else if (in->op == GS_OP_MIX_OUTER)
            st = run_mix_outer(c, l, in);
        else if (in->op == GS_OP_COLSUM)
            st = run_colsum(c, l, in);
        else if (gs_op_classof(in->op) == GS_CLASS_STATISTIC)
            st = run_moments(c, l, in);
        else if (gs_op_classof(in->op) == GS_CLASS_LOSS)
            st = gs_op_has_column_sums(in->op) ? run_loss_columns(c, l, in) : run_loss(c, l, in);
        else
            st = run_regroup(c, l, in);
        i++;
    }
    return st;
}

static gs_status run_stage(gs_cuda *c, const gs_vertex_launch *l)
{
    const gs_status st = gs_cuda_begin(c);
    for (uint32_t r = 0; r < l->stage->regs; r++)
        c->where[r] = (gs_cu_memory)l->reg[r];
    return gs_cuda_end(c, st == GS_OK ? run_instrs(c, l) : st);
}

gs_status gs_cuda_run_vertex(void *context, const gs_vertex_launch *l)
{
    gs_cuda *const c = context;
    const gs_device_pass alone = {.program = l->program, .param = l->param, .grad = l->grad, .metrics = l->metrics,
                                  .statistic = l->statistic, .loss_weight = l->loss_weight};

    if (l->program != c->program)
        return gs_fail(GS_EINVAL, "device cuda: stage \"%s\" was not prepared", l->stage->name);
    if (c->in_pass)
        return run_stage(c, l);
    GS_TRY(gs_cuda_begin_pass(c, &alone));
    const gs_status st = run_stage(c, l), ended = gs_cuda_end_pass(c);
    return st != GS_OK ? st : ended;
}
