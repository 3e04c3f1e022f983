/* batch_slot.c - a batch meets the plan: its rows are picked and its edges cut for each stage, and on a device with
 * memory of its own both are sent there. Where that has two slots, a thread picks batches and one sends them, while a
 * pass runs on the one before these. */
#include <assert.h>
#include <math.h>
#include <omp.h>
#include <string.h>

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
static gs_status fill_left(gs_batches *b, void *dst, const gs_batch *batch, uint32_t place)
{
    gs_batches_kept *const k = &b->kept;
    gs_batch_places *const p = &k->places[place];
    gs_batch_spread_find(p, k->of, batch->vertex, batch->vertices, k->own, k->devices);
    k->run[place].from_peers = p->from_peers;
    return gs_batch_rows_pick(&b->rows, GS_ARRAY_FEATURES, p->left, p->lefts, dst);
}

static gs_status fill_array(gs_batches *b, int id, void *dst, const gs_batch *batch, uint32_t place)
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
        if (b->tables.features != NULL) /* they have come from all ranks */
            return GS_OK;
        if (b->kept.rows > 0)
            return fill_left(b, dst, batch, place);
        return gs_batch_rows_pick(&b->rows, GS_ARRAY_FEATURES, batch->vertex, batch->vertices, dst);
    default:
        return gs_batch_rows_pick(&b->rows, (gs_array_id)id, batch->vertex, batch->vertices, dst);
    }
}

static gs_status fill_rows(gs_batches *b, const gs_batch *batch, uint32_t place)
{
    const gs_program *const p = b->session->program;

    for (uint32_t a = 0; a < p->arrays; a++) {
        void *const dst = p->array[a].store_id < 0 ? NULL : gs_exec_staged_rows(b->session->run.exec, a, place);
        if (dst != NULL && (b->named.tile == NULL || a != b->named.rows.array))
            GS_TRY(fill_array(b, p->array[a].store_id, dst, batch, place));
    }
    return GS_OK;
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
static double mass_of(const gs_batches *b, const gs_batch *batch, uint32_t place)
{
    const gs_session *const s = b->session;
    const float *const weight = b->whole->labels.weight;
    const uint32_t array = gs_program_stored(s->program, GS_ARRAY_LABELS);
    double sum = 0;

    if (b->loss.of_rows != NULL) /* it says that */
        return 0;
    if (batch->loss_weight != NULL) /* factors make the sum the mean over all training vertices, on average */
        return b->whole->labels.mass / (double)gs_store_get_info(s->store)->train;
    const uint8_t *const labels = array == GS_NONE ? NULL : gs_exec_staged_rows(s->run.exec, array, place);
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

    GS_TRY(fill_rows(b, batch, slot->place));
    GS_TRY(gs_batch_tables_fetch(&b->tables, batch));
    gs_batch_edges_use(&b->edges, (uint32_t)(slot - b->slots.slot));
    gs_batch_edges_fill(&b->edges, batch);
    *g = (gs_exec_graph){.binding = b->edges.binding, .edges = b->edges.edges, .slot = slot->place};
    if (b->kept.rows > 0)
        g->spread = &b->kept.run[slot->place];
    if (b->device_bytes > 0) {
        g->piece = slot->piece;
        g->pieces = gs_batch_edges_pieces(&b->edges, batch, slot->piece);
    }
    if (b->named.tile != NULL) {
        gs_batch_named_fill(&b->named, batch, b->rows.features);
        g->named = &b->named.rows;
    }
    slot->mass = mass_of(b, batch, slot->place);
    return b->slots.count > 1 ? gs_exec_stage(b->session->run.exec, g) : GS_OK;
}

/* Drawn on the device; the loss' mass is known here, by the targets' labels. */
static gs_status draw(gs_batches *b, gs_batch_slot *slot)
{
    const uint32_t labels = gs_program_stored(b->session->program, GS_ARRAY_LABELS);

    GS_TRY(gs_batch_draw_fill(b, slot));
    if (slot->batch.overflows)
        return GS_OK;
    if (labels != GS_NONE)
        GS_TRY(gs_batch_rows_pick(&b->rows, GS_ARRAY_LABELS, slot->batch.vertex, slot->batch.targets,
                                  gs_exec_staged_rows(b->session->run.exec, labels, slot->place)));
    slot->mass = mass_of(b, &slot->batch, slot->place);
    return GS_OK;
}

/* Of a batch that the device draws nothing is picked here: it is drawn where it is sent, as one thread asks the device
 * for both. */
static gs_status pick_slot(gs_batches *b, gs_batch_slot *slot)
{
    const uint64_t read = b->rows.read_bytes;
    const double waited = b->rows.wait_seconds;
    gs_status st = GS_OK;

    slot->began = gs_now();
    if (!slot->batch.seeds_alone)
        st = pick(b, slot);
    slot->picked = gs_now();
    slot->read_bytes = b->rows.read_bytes - read;
    slot->waited = b->rows.wait_seconds - waited;
    return st;
}

static gs_status send_slot(gs_batches *b, gs_batch_slot *slot)
{
    const bool draws = slot->batch.seeds_alone;

    if (draws) {
        slot->began = gs_now();
        GS_TRY(draw(b, slot));
        if (slot->batch.overflows)
            return GS_OK;
        slot->picked = gs_now();
    }
    slot->sending = gs_now();
    GS_TRY(gs_exec_send(b->session->run.exec, &slot->graph, &slot->sent));
    if (draws)
        slot->sent.copied_in_bytes += slot->batch.targets * sizeof(*slot->batch.vertex);
    slot->arrived = gs_now();
    return GS_OK;
}

static gs_status fill_slot(gs_batches *b, uint64_t number, const gs_batch *batch)
{
    gs_batch_slot *const slot = &b->slots.slot[number % GS_BATCH_SETS];

    slot->batch = *batch;
    slot->place = (uint32_t)(number % GS_MAX(b->slots.count, 1));
    GS_TRY(pick_slot(b, slot));
    return send_slot(b, slot);
}

/* ---- the next ones ------------------------------------------------------- */

/* The batch that is picked next, under the lock; NULL: there is none, or it is none that is sent ahead. */
static const gs_batch *next_batch(gs_batch_slots *s)
{
    if (s->next == s->group[0].batches && s->group[1].batches > 0) {
        s->group[0] = s->group[1];
        s->group[1].batches = 0;
        s->next = 0;
    }
    if (s->next == s->group[0].batches)
        return NULL;
    const gs_batch *const batch = &s->group[0].batch[s->next];
    return batch->vertices == 0 || batch->targets == 0 || batch->overflows ? NULL : batch;
}

static bool may_pick(gs_batch_slots *s)
{
    return !s->hold && !s->failed && s->begun - s->sent < GS_EXEC_SLOTS && s->begun - s->passed < GS_BATCH_SETS &&
           next_batch(s) != NULL;
}

static bool may_send(const gs_batch_slots *s)
{
    return !s->hold && s->sent < s->picked && s->sent - s->passed < GS_EXEC_SLOTS;
}

static void begin_pick(gs_batch_slots *s)
{
    gs_batch_slot *const slot = &s->slot[s->begun % GS_BATCH_SETS];

    slot->batch = *next_batch(s);
    slot->place = (uint32_t)(s->begun % GS_EXEC_SLOTS);
    slot->failure.st = GS_OK;
    s->begun++;
    s->next++;
}

static void take_threads(const gs_batches *b)
{
    if (b->session->config.options->threads > 0)
        omp_set_num_threads((int)b->session->config.options->threads);
}

static void *pick_ahead(void *arg)
{
    gs_batches *const b = arg;
    gs_batch_slots *const s = &b->slots;

    take_threads(b);
    pthread_mutex_lock(&s->lock);
    while (!s->quit) {
        if (!may_pick(s)) {
            pthread_cond_wait(&s->change, &s->lock);
            continue;
        }
        gs_batch_slot *const slot = &s->slot[s->begun % GS_BATCH_SETS];
        begin_pick(s);
        pthread_mutex_unlock(&s->lock);
        gs_failure_keep(&slot->failure, pick_slot(b, slot));
        pthread_mutex_lock(&s->lock);
        s->failed |= slot->failure.st != GS_OK;
        s->picked++;
        pthread_cond_broadcast(&s->change);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void *send_ahead(void *arg)
{
    gs_batches *const b = arg;
    gs_batch_slots *const s = &b->slots;

    take_threads(b);
    pthread_mutex_lock(&s->lock);
    while (!s->quit) {
        if (!may_send(s)) {
            pthread_cond_wait(&s->change, &s->lock);
            continue;
        }
        gs_batch_slot *const slot = &s->slot[s->sent % GS_BATCH_SETS];
        s->sends = true;
        pthread_mutex_unlock(&s->lock);
        if (slot->failure.st == GS_OK)
            gs_failure_keep(&slot->failure, send_slot(b, slot));
        pthread_mutex_lock(&s->lock);
        s->failed |= slot->failure.st != GS_OK;
        s->sends = false;
        s->sent++;
        pthread_cond_broadcast(&s->change);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

gs_status gs_batch_slots_open(gs_batches *b)
{
    void *(*const run[])(void *) = {pick_ahead, send_ahead};
    gs_batch_slots *const s = &b->slots;

    if (s->count < 2)
        return GS_OK;
    if ((s->part = gs_malloc_array(b->session->program->params + 1ull, sizeof(*s->part))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for where a device's parameters are");
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->change, NULL);
    for (; s->threads < GS_ARRAY_LEN(run); s->threads++) {
        const int error = pthread_create(&s->thread[s->threads], NULL, run[s->threads], b);
        GS_NEED(error == 0, "a thread that picks batches could not be had: %s", strerror(error));
    }
    return GS_OK;
}

void gs_batch_slots_close(gs_batch_slots *s)
{
    if (s->part == NULL)
        return;
    gs_free(s->part);
    s->part = NULL;
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
    while (s->threads > 0)
        pthread_join(s->thread[--s->threads], NULL);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->change);
}

/* ---- taken --------------------------------------------------------------- */

static void hold(gs_batch_slots *s)
{
    s->hold = true;
    while (s->begun > s->picked || s->sends)
        pthread_cond_wait(&s->change, &s->lock);
}

static void go_on(gs_batch_slots *s)
{
    s->hold = false;
    pthread_cond_broadcast(&s->change);
}

void gs_batch_slots_quiet(gs_batch_slots *s)
{
    if (s->threads == 0)
        return;
    pthread_mutex_lock(&s->lock);
    hold(s);
    pthread_mutex_unlock(&s->lock);
}

/* What was ahead is none of the batches that come now. */
static void drop_ahead(gs_batch_slots *s)
{
    hold(s);
    s->begun = s->picked = s->sent = s->taken;
    s->failed = false;
}

void gs_batch_slots_queue(gs_batch_slots *s, const gs_batch *batch, uint32_t batches, bool behind)
{
    if (s->threads == 0)
        return;
    pthread_mutex_lock(&s->lock);
    (void)next_batch(s); /* the group at hand may be over */
    if (!behind) {
        drop_ahead(s);
        s->next = 0;
    }
    s->group[behind].batch = batch;
    s->group[behind].batches = batches;
    if (!behind) {
        s->group[1].batches = 0;
        go_on(s);
    }
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
}

void gs_batch_slots_skip(gs_batch_slots *s)
{
    if (s->threads == 0)
        return;
    pthread_mutex_lock(&s->lock);
    (void)next_batch(s);
    s->next += s->next < s->group[0].batches;
    go_on(s);
    pthread_mutex_unlock(&s->lock);
}

void gs_batch_slots_release(gs_batches *b)
{
    gs_batch_slots *const s = &b->slots;

    if (s->threads == 0 || b->rows.apart)
        return;
    pthread_mutex_lock(&s->lock);
    s->passed = s->taken;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
}

static bool is_same(const gs_batch *a, const gs_batch *b) { return a->number == b->number && a->epoch == b->epoch; }

/* Under the lock: is it the one that is taken next, or that is picked next? */
static bool is_ahead(gs_batch_slots *s, const gs_batch *batch)
{
    const gs_batch *const next = s->begun > s->taken ? &s->slot[s->taken % GS_BATCH_SETS].batch : next_batch(s);
    return next != NULL && is_same(next, batch);
}

/* False: it is not ahead, and nothing is; what follows it in the group may be. */
static bool take_ahead(gs_batch_slots *s, const gs_batch *batch)
{
    pthread_mutex_lock(&s->lock);
    s->passed = s->taken;
    s->failed &= s->begun > s->taken;
    const bool ahead = is_ahead(s, batch);
    if (ahead) {
        go_on(s);
        while (s->sent == s->taken)
            pthread_cond_wait(&s->change, &s->lock);
    } else {
        drop_ahead(s);
        for (s->next = 0; s->next < s->group[0].batches && !is_same(&s->group[0].batch[s->next], batch);)
            s->next++;
        s->next += s->next < s->group[0].batches;
        s->begun = s->picked = s->sent = s->taken + 1;
    }
    s->taken++;
    assert(s->taken <= s->sent && s->sent <= s->picked && s->picked <= s->begun);
    pthread_mutex_unlock(&s->lock);
    return ahead;
}

gs_status gs_batch_slots_take(gs_batch_slot **out, double *stalled, gs_batches *b, const gs_batch *batch)
{
    gs_batch_slots *const s = &b->slots;
    const double began = gs_now();
    const bool alone = s->threads == 0 || b->rows.apart, ahead = !alone && take_ahead(s, batch);
    const uint64_t number = b->rows.apart ? s->parts : alone ? 0 : s->taken - 1;
    gs_batch_slot *const slot = *out = &s->slot[number % GS_BATCH_SETS];

    if (ahead) {
        *stalled = gs_now() - began;
        return gs_failure_tell(&slot->failure);
    }
    const gs_status st = fill_slot(b, number, batch);
    *stalled = slot->waited;
    return st;
}
