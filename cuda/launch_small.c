/* Launches that every program has. */
#include "cuda/launch_small.h"

#include "cuda/context.h"
#include "cuda/cuda_device.h"
#include "cuda/streams.h"

gs_status gs_cuda_add_own(void *context, const gs_own_launch *l)
{
    gs_cuda *const c = context;
    gs_add_args a = {.acc = l->acc, .src = l->own, .count = l->rows * l->width, .scale = l->scale, .width = l->width,
                     .how = l->dtype == GS_BF16  ? GS_ADD_BF16
                            : l->dtype == GS_F16 ? GS_ADD_F16
                                                 : GS_ADD_F32};
    gs_status st = gs_cuda_begin(c);
    if (st == GS_OK)
        st = gs_cuda_launch(c, c->fixed[GS_CUDA_ADD], gs_cuda_blocks(a.count), 1, 0, &a, "gs_add");
    return gs_cuda_end(c, st);
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
    gs_status st = gs_cuda_begin(c);
    if (st == GS_OK)
        st = gs_cuda_launch(c, c->fixed[GS_CUDA_PICK], gs_cuda_blocks((uint64_t)a.rows * a.lanes), 1, 0, &a,
                            "gs_pick_rows");
    return gs_cuda_end(c, st);
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
    gs_status st = gs_cuda_begin(c);
    if (st == GS_OK)
        st = gs_cuda_launch(c, c->fixed[GS_CUDA_BEGIN], gs_cuda_blocks(a.count), 1, 0, &a, "gs_begin");
    return gs_cuda_end(c, st);
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
        st = gs_cuda_launch(c, c->fixed[GS_CUDA_FINISH_MOST], gs_cuda_blocks(a.count), 1, 0, &a, "gs_finish_most");
    if (st == GS_OK && kind == GS_SUM_ATTEND)
        st = gs_cuda_launch(c, c->fixed[GS_CUDA_FINISH_ATTEND], gs_cuda_blocks(a.count), 1, 0, &a, "gs_finish_attend");
    if (st == GS_OK && kind == GS_SUM_ATTEND)
        st = gs_cuda_launch(c, c->fixed[GS_CUDA_FINISH_LSE], gs_cuda_blocks(a.heads_count), 1, 0, &a, "gs_finish_lse");
    return gs_cuda_end(c, st);
}
