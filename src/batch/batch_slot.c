/* batch_slot.c - a batch meets the plan: its rows are picked and its edges cut for each stage, and on a device with
 * memory of its own both are sent there. Where that has two slots, a thread does this for the next batch of the group
 * while a pass runs on the one before it. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
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

    if (b->loss.of_rows != NULL) /* it says that */
        return 0;
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

/* ---- picked, and sent ---------------------------------------------------- */

static gs_status pick(gs_batches *b, gs_batch_slot *slot)
{
    gs_exec_graph *const g = &slot->graph;
    const gs_batch *const batch = &slot->batch;
    const uint32_t number = (uint32_t)(slot - b->slots.slot);
    gs_status st;

    if ((st = fill_rows(b, batch)) != GS_OK || (st = gs_batch_tables_fetch(&b->tables, batch)) != GS_OK)
        return st;
    gs_batch_edges_use(&b->edges, number);
    gs_batch_edges_fill(&b->edges, batch);
    *g = (gs_exec_graph){.binding = b->edges.binding, .edges = b->edges.edges, .slot = number};
    if (b->kept.rows > 0)
        g->spread = &b->kept.run;
    if (b->device_bytes > 0) {
        g->piece = slot->piece;
        g->pieces = gs_batch_edges_pieces(&b->edges, batch, slot->piece);
    }
    if (b->named.tile != NULL) {
        gs_batch_named_fill(&b->named, batch, b->rows.features);
        g->named = &b->named.rows;
    }
    slot->mass = mass_of(b, batch);
    return GS_OK;
}

/* Drawn on the device; the loss' mass is known here, by the targets' labels. */
static gs_status draw(gs_batches *b, gs_batch_slot *slot)
{
    const uint32_t labels = gs_program_stored(b->session->program, GS_ARRAY_LABELS);
    gs_status st = gs_batch_draw_fill(b, slot);

    if (st != GS_OK || slot->batch.overflows)
        return st;
    if (labels != GS_NONE)
        st = gs_batch_rows_pick(&b->rows, GS_ARRAY_LABELS, slot->batch.vertex, slot->batch.targets,
                                gs_exec_rows(b->session->run.exec, labels));
    slot->mass = mass_of(b, &slot->batch);
    return st;
}

static gs_status fill_slot(gs_batches *b, gs_batch_slot *slot, const gs_batch *batch)
{
    const uint64_t read = b->rows.read_bytes;
    const double waited = b->rows.wait_seconds;
    gs_status st;

    slot->batch = *batch;
    slot->began = gs_now();
    if ((st = batch->seeds_alone ? draw(b, slot) : pick(b, slot)) != GS_OK || slot->batch.overflows)
        return st;
    slot->picked = gs_now();
    slot->read_bytes = b->rows.read_bytes - read;
    slot->waited = b->rows.wait_seconds - waited;
    st = gs_exec_send(b->session->run.exec, &slot->graph, &slot->sent);
    if (batch->seeds_alone)
        slot->sent.copied_in_bytes += batch->targets * sizeof(*batch->vertex);
    slot->arrived = gs_now();
    return st;
}

/* ---- the next one -------------------------------------------------------- */

static void *fill_ahead(void *arg)
{
    gs_batches *const b = arg;
    gs_batch_slots *const s = &b->slots;

    if (b->session->config.options->threads > 0)
        omp_set_num_threads((int)b->session->config.options->threads);
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->next == NULL && !s->quit)
            pthread_cond_wait(&s->change, &s->lock);
        if (s->next == NULL)
            break;
        gs_batch_slot *const slot = &s->slot[1 - s->now];
        const gs_batch *const batch = s->next;
        pthread_mutex_unlock(&s->lock);
        slot->status = fill_slot(b, slot, batch);
        if (slot->status != GS_OK)
            snprintf(slot->why, sizeof(slot->why), "%s", gs_last_error());
        slot->ahead = true;
        pthread_mutex_lock(&s->lock);
        s->next = NULL;
        pthread_cond_broadcast(&s->change);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

gs_status gs_batch_slots_open(gs_batches *b)
{
    gs_batch_slots *const s = &b->slots;

    if (s->count < 2)
        return GS_OK;
    if ((s->part = gs_malloc_array(b->session->program->params + 1ull, sizeof(*s->part))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for where a device's parameters are");
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->change, NULL);
    const int error = pthread_create(&s->thread, NULL, fill_ahead, b);
    s->started = error == 0;
    return s->started ? GS_OK
                      : gs_fail(GS_ENOMEM, "a thread that picks batches could not be had: %s", strerror(error));
}

void gs_batch_slots_wait(gs_batch_slots *s)
{
    if (!s->started)
        return;
    pthread_mutex_lock(&s->lock);
    while (s->next != NULL)
        pthread_cond_wait(&s->change, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void gs_batch_slots_close(gs_batch_slots *s)
{
    gs_free(s->part);
    s->part = NULL;
    if (!s->started)
        return;
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->change);
    s->started = false;
}

void gs_batch_slots_begin(gs_batch_slots *s, const gs_batch *batch, uint32_t batches)
{
    gs_batch_slots_wait(s);
    s->group = batch;
    s->batches = batches;
    for (uint32_t k = 0; k < GS_EXEC_SLOTS; k++)
        s->slot[k].ahead = false;
}

static bool is_same(const gs_batch *a, const gs_batch *b) { return a->number == b->number && a->epoch == b->epoch; }

gs_status gs_batch_slots_take(gs_batch_slot **out, double *stalled, gs_batches *b, const gs_batch *batch)
{
    gs_batch_slots *const s = &b->slots;
    const double began = gs_now();
    gs_status st;

    gs_batch_slots_wait(s);
    s->now = s->started ? 1 - s->now : 0;
    gs_batch_slot *const slot = *out = &s->slot[s->now];
    const bool ahead = slot->ahead && !b->rows.apart && is_same(&slot->batch, batch);
    slot->ahead = false;
    if (ahead) {
        *stalled = gs_now() - began;
        return slot->status == GS_OK ? GS_OK : gs_fail(slot->status, "%s", slot->why);
    }
    st = fill_slot(b, slot, batch);
    *stalled = slot->waited;
    return st;
}

void gs_batch_slots_begin_next(gs_batches *b, const gs_batch *batch)
{
    gs_batch_slots *const s = &b->slots;
    uint32_t i = 0;

    while (s->started && i < s->batches && !is_same(&s->group[i], batch))
        i++;
    if (!s->started || b->rows.apart || i + 1 >= s->batches)
        return;
    const gs_batch *const next = &s->group[i + 1];
    if (next->vertices == 0 || next->targets == 0 || next->overflows)
        return;
    pthread_mutex_lock(&s->lock);
    s->next = next;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
}
