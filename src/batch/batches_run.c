/* batches_run.c - a batch meets the plan: its rows are picked, its edges are cut for each stage, its pass is run. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/size.h"
#include "batch/batches_internal.h"

/* ---- rows ---------------------------------------------------------------- */

/* Only the targets are of the loss, whatever split other rows are of. */
static void fill_split(uint8_t *dst, const gs_batch *b)
{
    memset(dst, GS_SPLIT_TRAIN, b->targets);
    memset(dst + b->targets, GS_SPLIT_NONE, b->vertices - b->targets);
}

static void fill_out_degree(float *dst, const gs_batch *b)
{
    const gs_chunk_view *const v = &b->view[GS_BY_SOURCE];
    memset(dst, 0, b->vertices * sizeof(*dst));
    for (uint32_t t = 0; t < v->targets; t++)
        dst[gs_index_at(v->target, v->index_bytes, t)] = (float)(v->start[t + 1] - v->start[t]);
}

static void fill_floats(float *dst, const float *from, uint32_t rows)
{
    if (from != NULL)
        memcpy(dst, from, rows * sizeof(*dst));
    else
        memset(dst, 0, rows * sizeof(*dst));
}

/* Of features, what no device keeps. */
static gs_status fill_left(gs_batches *b, void *dst, const gs_batch *batch)
{
    gs_batches_kept *const k = &b->kept;
    gs_batch_spread_find(&k->places, k->of, batch->vertex, batch->vertices, k->own, k->devices);
    k->run.from_peers = k->places.from_peers;
    return gs_batch_rows_pick(&b->rows, GS_ARRAY_FEATURES, k->places.left, k->places.lefts, dst);
}

static gs_status fill_array(gs_batches *b, int id, void *dst, const gs_batch *batch)
{
    switch (id) {
    case GS_ARRAY_SPLIT:
        fill_split(dst, batch);
        return GS_OK;
    case GS_ARRAY_IN_DEGREE:
        fill_floats(dst, batch->in_degree, batch->vertices);
        return GS_OK;
    case GS_ARRAY_LOOPS:
        fill_floats(dst, batch->loops, batch->vertices);
        return GS_OK;
    case GS_ARRAY_OUT_DEGREE:
        fill_out_degree(dst, batch);
        return GS_OK;
    case GS_ARRAY_FEATURES:
        if (b->kept.rows > 0)
            return fill_left(b, dst, batch);
        return gs_batch_rows_pick(&b->rows, GS_ARRAY_FEATURES, batch->vertex, batch->vertices, dst);
    default:
        return gs_batch_rows_pick(&b->rows, (gs_array_id)id, batch->vertex, batch->vertices, dst);
    }
}

static gs_status fill_rows(gs_batches *b, const gs_batch *batch)
{
    const gs_program *const p = b->session->program;
    gs_status st = GS_OK;

    for (uint32_t a = 0; a < p->arrays && st == GS_OK; a++) {
        void *const dst = p->array[a].store_id < 0 ? NULL : gs_exec_rows(b->session->run.exec, a);
        if (dst != NULL && (b->named.tile == NULL || a != b->named.rows.array))
            st = fill_array(b, p->array[a].store_id, dst, batch);
    }
    return st;
}

/* ---- the loss ------------------------------------------------------------ */

static double known_labels(const gs_session *s, const uint8_t *rows, uint32_t targets)
{
    const gs_array_info *const info = gs_store_array(s->store, GS_ARRAY_LABELS);
    const uint64_t n = (uint64_t)targets * info->width;
    uint64_t known = 0;
    for (uint64_t k = 0; k < n; k++)
        known += info->dtype == GS_F32   ? !isnan(((const float *)(const void *)rows)[k])
                 : info->dtype == GS_I32 ? ((const int32_t *)(const void *)rows)[k] >= 0
                                         : rows[k] != GS_LABEL_UNKNOWN;
    return (double)known;
}

/* What the mean of the batch's loss is over: as gs_session_read_labels() has it of all training vertices. */
static double mass_of(const gs_batches *b, const gs_batch *batch)
{
    const gs_session *const s = b->session;
    const float *const weight = b->whole->labels.weight;
    const uint32_t array = gs_program_stored(s->program, GS_ARRAY_LABELS);
    double sum = 0;

    if (batch->loss_weight != NULL) /* factors make the sum the mean over all training vertices, on average */
        return b->whole->labels.mass / (double)gs_store_get_info(s->store)->train;
    const uint8_t *const labels = array == GS_NONE ? NULL : gs_exec_rows(s->run.exec, array);
    if (s->labels.task != GS_TRAIN_TASK_CLASSIFY)
        return known_labels(s, labels, batch->targets);
    if (weight == NULL)
        return batch->targets;
    for (uint32_t t = 0; t < batch->targets; t++) {
        const int32_t class = ((const int32_t *)(const void *)labels)[t];
        sum += class < 0 ? 0 : (double)weight[class];
    }
    return sum;
}

void gs_batches_begin(gs_batches *b, const gs_batch *batch, uint32_t batches)
{
    gs_batches_kept *const k = &b->kept;

    if (k->rows == 0 || b->rows.plan == NULL) { /* of rows that devices keep, what is left is not known yet */
        gs_batch_rows_begin(&b->rows, batch, k->rows == 0 ? batches : 0);
        return;
    }
    for (uint32_t i = 0; i < batches; i++) { /* the cache is of what no device keeps */
        gs_batch_places p = {.left = k->lists + (uint64_t)i * b->shape.limits.vertices};
        gs_batch_spread_find(&p, k->of, batch[i].vertex, batch[i].vertices, k->own, k->devices);
        k->group[i] = batch[i];
        k->group[i].vertex = p.left;
        k->group[i].vertices = p.lefts;
    }
    gs_batch_rows_begin(&b->rows, k->group, batches);
}

void gs_batches_pause(gs_batches *b)
{
    gs_exec_forget(b->session->run.exec);
    gs_drop_pages(b->named.tile, b->named.bytes);
}

/* ---- a pass -------------------------------------------------------------- */

/* Gradients are added to those that are there: of the losses' mean, or of their sum. */
static gs_status run_pass(gs_batches *b, gs_batch_pass *p, bool mean)
{
    gs_session *const s = b->session, *const w = b->whole;
    const gs_batch *const batch = p->batch;
    const uint64_t read = b->rows.read_bytes;
    const double waited = b->rows.wait_seconds;
    gs_status st;

    p->began = gs_now();
    if ((st = fill_rows(b, batch)) != GS_OK || (st = gs_batch_tables_fetch(&b->tables, batch)) != GS_OK)
        return st;
    gs_batch_edges_fill(&b->edges, batch);
    b->graph = (gs_exec_graph){.binding = b->edges.binding, .edges = b->edges.edges};
    if (b->kept.rows > 0)
        b->graph.spread = &b->kept.run;
    if (b->device_bytes > 0) {
        b->graph.piece = b->piece;
        b->graph.pieces = gs_batch_edges_pieces(&b->edges, batch, b->piece);
    }
    if (b->named.tile != NULL) {
        gs_batch_named_fill(&b->named, batch, b->rows.features);
        b->graph.named = &b->named.rows;
    }
    gs_exec_bind(s->run.exec, &b->graph);
    p->mass = mass_of(b, batch);
    const gs_exec_args args = {
        .param = (const float *const *)s->run.params.value,
        .grad = s->run.params.grad,
        .made = s->run.params.value,
        .statistic = s->run.params.statistic,
        .seed = s->config.options->seed,
        .epoch = p->key,
        .loss_scale = !mean ? 1.0f : p->mass > 0 ? (float)(1.0 / p->mass) : 0.0f,
        .loss_smoothing = (float)s->config.options->label_smoothing,
        .loss_weight = w->labels.weight,
        .loss_factor = batch->loss_weight,
        .stop = s->config.options->stop,
    };
    gs_params_zero_sums(&s->run.params);
    p->picked = gs_now();
    if ((st = gs_exec_run(s->run.exec, s->pass.train, &args, &p->stats)) != GS_OK)
        return st;
    p->ended = gs_now();
    p->pick_seconds = p->picked - p->began - (b->rows.wait_seconds - waited);
    p->stats.read_bytes += b->rows.read_bytes - read;
    p->stats.stall_seconds += b->rows.wait_seconds - waited;
    if (b->fit != NULL)
        gs_batch_observe(b->fit, s, &b->edges);
    return GS_OK;
}

gs_fit gs_batches_take_fit(gs_batches *b)
{
    const gs_fit taken = *b->fit;
    *b->fit = (gs_fit){0};
    return taken;
}

const gs_session *gs_batches_session(const gs_batches *b) { return b->session; }

/* ---- statistics of a batch ----------------------------------------------- */

uint32_t gs_batches_statistics(const gs_batches *b)
{
    const gs_program *const p = b->session->program;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->params; i++)
        n += p->param[i].statistic != GS_STATISTIC_NONE ? p->param[i].cols : 0;
    return n;
}

/* Floats of all of them, one after the other; `in`: from the list to the parameters. */
static void move_statistics(const gs_batches *b, float *list, bool in)
{
    const gs_program *const p = b->session->program;
    for (uint32_t i = 0; i < p->params; i++) {
        const gs_param *const q = &p->param[i];
        float *const value = b->session->run.params.value[i];
        if (q->statistic == GS_STATISTIC_NONE)
            continue;
        memcpy(in ? value : list, in ? list : value, q->cols * sizeof(*list));
        list += q->cols;
    }
}

void gs_batches_copy_statistics(const gs_batches *b, float *out)
{
    if (out != NULL)
        move_statistics(b, out, false);
}

void gs_batches_follow(gs_batches *b, const gs_batch *batch, const float *statistics)
{
    if (statistics != NULL)
        move_statistics(b, (float *)(uintptr_t)statistics, true);
    gs_params_follow(&b->session->run.params, b->session->program, batch->vertices);
}

gs_status gs_batches_run(gs_batches *b, gs_batch_pass *p)
{
    gs_batches_clear(b);
    const gs_status st = run_pass(b, p, true);
    if (st == GS_OK)
        gs_batches_follow(b, p->batch, NULL);
    return st;
}

/* ---- a step of several passes -------------------------------------------- */

void gs_batches_clear(gs_batches *b)
{
    gs_params_zero_grads(b->beside ? &b->session->run.params : &b->whole->run.params);
}

/* Values are in the memory of `whole`, and gradients have the same places in theirs. */
void gs_batches_collect(const gs_batches *b)
{
    const gs_params *const p = &b->session->run.params, *const w = &b->whole->run.params;

    for (uint32_t i = 0; i < b->session->program->params; i++) {
        const gs_param *const q = &b->session->program->param[i];
        if (q->statistic != GS_STATISTIC_NONE || q->fixed)
            continue;
        float *const sum = w->grads + (p->value[i] - w->values);
        for (uint64_t k = 0, n = gs_param_elements(q); k < n; k++)
            sum[k] += p->grad[i][k];
    }
}

gs_status gs_batches_add(gs_batches *b, gs_batch_pass *p) { return run_pass(b, p, false); }

void gs_batches_divide(gs_batches *b, double mass)
{
    gs_params *const p = &b->whole->run.params;
    const float scale = mass > 0 ? (float)(1.0 / mass) : 0.0f;

    for (uint64_t k = 0; k < p->elements; k++)
        p->grads[k] *= scale;
}

void gs_batches_pass(gs_batches *b) { gs_batch_rows_pass(&b->rows); }

void gs_batches_begin_parts(gs_batches *b)
{
    gs_batch_rows_pass(&b->rows);
    gs_batch_rows_apart(&b->rows, true);
}

gs_status gs_batches_run_part(gs_batches *b, gs_batch_pass *p)
{
    const gs_status st = run_pass(b, p, false);
    if (st == GS_OK)
        gs_batches_follow(b, p->batch, NULL);
    return st;
}

const gs_batch_tables *gs_batches_tables(const gs_batches *b) { return &b->tables; }
uint32_t gs_batches_most_rows(const gs_batches *b) { return b->shape.limits.vertices; }

void gs_batches_end_parts(gs_batches *b) { gs_batch_rows_apart(&b->rows, false); }
