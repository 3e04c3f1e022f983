/* saint_steps.c - the vertices of GraphSAINT's batches of a group, of lists that stay in the store.
 *
 * They are drawn in steps: edges that are followed are named by their places in lists, and a pass over the columns says
 * where they lead. */
#include "base/size.h"
#include "sample/columns.h"

static gs_status take_answers(const gs_column_pass *w, uint32_t query)
{
    const gs_status st = gs_columns__ask(w, query);
    for (uint32_t k = 0; k < w->batches && st == GS_OK; k++)
        gs_saint__take_step(&w->batch[k], w->s, w->arena[k], query);
    return st;
}

static gs_status draw_edges(const gs_column_pass *in, const gs_column_pass *out)
{
    const gs_status st = take_answers(in, 0);
    return st == GS_OK && out != NULL ? take_answers(out, 1) : st;
}

static gs_status draw_walks(const gs_column_pass *along)
{
    gs_status st = GS_OK;

    for (uint32_t step = 0; step < along->s->options.walk_length && st == GS_OK; step++) {
        for (uint32_t k = 0; k < along->batches; k++)
            gs_saint__ask_step(&along->batch[k], along->s, along->arena[k]);
        st = take_answers(along, 0);
    }
    return st;
}

gs_status gs_saint__draw_columns(gs_batch *b, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t batches,
                                 uint32_t threads)
{
    const gs_column_pass in = {s, s->in->columns, b, arena, batches, threads};
    gs_column_pass out = in;
    gs_status st = GS_OK;

#pragma omp parallel for schedule(dynamic) num_threads((int)GS_MAX(threads, 1u)) if (threads > 1)
    for (uint32_t k = 0; k < batches; k++)
        gs_saint__begin(&b[k], s, arena[k]);
    if (s->out != NULL)
        out.columns = s->out->columns;
    if (s->options.kind == GS_SAMPLER_SAINT_EDGE)
        st = draw_edges(&in, s->out != NULL ? &out : NULL);
    else if (s->options.kind == GS_SAMPLER_SAINT_WALK)
        st = draw_walks(&out);
    return st == GS_OK ? gs_sample__check_stop(s) : st;
}
