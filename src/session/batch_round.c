/* batch_round.c - passes of several devices at the same time: a thread for each, which sleeps between rounds. */
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"
#include "session/batch_devices_internal.h"

/* ---- threads ------------------------------------------------------------- */

static void wait_for_speed(const gs_batch_member *m, double seconds, gs_exec_stats *stats)
{
    const double more = seconds * m->waits;

    if (more <= 0)
        return;
    gs_sleep(more);
    stats->compute_seconds += more;
}

static float *statistics_of(const gs_batch_devices *d, uint32_t pass)
{
    return d->statistics == NULL ? NULL : d->statistics + (uint64_t)pass * gs_batches_statistics(d->at[0].engine);
}

static gs_status run_pass(gs_batch_member *m, gs_batch_pass *p, float *statistics)
{
    const double began = gs_now();

    if (p->batch == NULL) {
        gs_batches_pass(m->engine);
        return GS_OK;
    }
    const gs_status st = gs_batches_add(m->engine, p->batch, p->key, &p->mass, &p->stats);
    if (st != GS_OK)
        return st;
    gs_batches_copy_statistics(m->engine, statistics);
    wait_for_speed(m, gs_now() - began, &p->stats);
    return GS_OK;
}

/* Waits until all batches before it have added their rows of tables, or will not, as a pass has failed. Batches are
 * dealt to the device that is done with them first, so about in the order in which they end. */
static void add_rows(gs_batch_member *m, uint32_t number, gs_status of_pass)
{
    gs_batch_devices *const d = m->all;
    const gs_batch_pass *const p = &d->pass[number];

    if (!gs_step_rows_adds(&d->rows)) /* no device waits for others within a step */
        return;
    pthread_mutex_lock(&d->lock);
    while (d->added < number)
        pthread_cond_wait(&d->next, &d->lock);
    pthread_mutex_unlock(&d->lock);
    if (of_pass == GS_OK && p->batch != NULL)
        gs_step_rows_add(&d->rows, gs_batches_tables(m->engine), p->batch);
    pthread_mutex_lock(&d->lock);
    d->added++;
    pthread_cond_broadcast(&d->next);
    pthread_mutex_unlock(&d->lock);
}

/* The device's passes of the round, in their order. Those behind one that failed are passed over, as others wait for
 * them. */
static void run_passes(gs_batch_member *m)
{
    const gs_batch_devices *const d = m->all;

    m->status = GS_OK;
    for (uint32_t i = 0; i < d->passes; i++) {
        if (d->pass[i].device != m->number)
            continue;
        if (m->status == GS_OK && (m->status = run_pass(m, &d->pass[i], statistics_of(d, i))) != GS_OK)
            snprintf(m->why, sizeof(m->why), "%s", gs_last_error());
        add_rows(m, i, m->status);
    }
}

static void *member_thread(void *arg)
{
    gs_batch_member *const m = arg;
    gs_batch_devices *const d = m->all;

    omp_set_num_threads((int)GS_MAX(m->options.threads, 1));
    pthread_mutex_lock(&d->lock);
    for (uint64_t seen = 0;;) {
        while (!d->quit && d->rounds == seen)
            pthread_cond_wait(&d->begin, &d->lock);
        if (d->quit)
            break;
        seen = d->rounds;
        pthread_mutex_unlock(&d->lock);
        run_passes(m);
        pthread_mutex_lock(&d->lock);
        if (--d->running == 0)
            pthread_cond_signal(&d->end);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

void gs_batch_devices__open_round(gs_batch_devices *d)
{
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->begin, NULL);
    pthread_cond_init(&d->end, NULL);
    pthread_cond_init(&d->next, NULL);
}

static uint64_t statistics_bytes(const gs_batch_devices *d)
{
    return (uint64_t)GS_BATCH_ROUND * gs_batches_statistics(d->at[0].engine) * sizeof(float);
}

uint64_t gs_batch_devices__round_bytes(const gs_batch_devices *d)
{
    const gs_batches *const first = d->at[0].engine;
    return statistics_bytes(d) +
           gs_step_rows_bytes(gs_batches_session(first), d->deal.step, gs_batches_most_rows(first));
}

gs_status gs_batch_devices__start_round(gs_batch_devices *d)
{
    const gs_batches *const first = d->at[0].engine;
    const uint64_t bytes = statistics_bytes(d);
    const gs_status st = gs_step_rows_open(&d->rows, gs_batches_tables(first), d->deal.step,
                                           gs_batches_most_rows(first));

    if (st != GS_OK)
        return st;
    if (bytes > 0 && (d->statistics = gs_malloc(bytes)) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for statistics of batches");
    for (uint32_t k = 0; k < d->devices && d->devices > 1; k++) {
        const int error = pthread_create(&d->at[k].thread, NULL, member_thread, &d->at[k]);
        d->at[k].started = error == 0;
        if (error != 0)
            return gs_fail(GS_ENOMEM, "a thread for device %u could not be had: %s", k, strerror(error));
    }
    return GS_OK;
}

void gs_batch_devices__close_round(gs_batch_devices *d)
{
    pthread_mutex_lock(&d->lock);
    d->quit = true;
    pthread_cond_broadcast(&d->begin);
    pthread_mutex_unlock(&d->lock);
    for (uint32_t k = 0; k < d->devices; k++)
        if (d->at[k].started)
            pthread_join(d->at[k].thread, NULL);
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->begin);
    pthread_cond_destroy(&d->end);
    pthread_cond_destroy(&d->next);
    gs_step_rows_close(&d->rows);
    gs_free(d->statistics);
}

/* ---- a round ------------------------------------------------------------- */

void gs_batch_devices_begin(gs_batch_devices *d, const gs_batch *batch, uint32_t batches)
{
    for (uint32_t k = 0; k < d->devices; k++) {
        gs_batch_member *const m = &d->at[k];
        uint32_t n = 0;
        for (uint32_t i = 0; i < batches; i++) {
            if (gs_batch_deal_of(&d->deal, batch[i].number) != k)
                continue;
            m->group[n] = batch[i];
            if (batch[i].targets == 0) /* it is passed over, and nothing is read for it */
                m->group[n].vertices = 0;
            n++;
        }
        gs_batches_begin(m->engine, m->group, n);
    }
}

void gs_batch_devices_clear(gs_batch_devices *d)
{
    for (uint32_t k = 0; k < d->devices; k++)
        gs_batches_clear(d->at[k].engine);
    gs_step_rows_clear(&d->rows);
}

/* Threads that have nothing to do in this round are woken, too, and sleep again. */
static void run_round(gs_batch_devices *d)
{
    pthread_mutex_lock(&d->lock);
    d->rounds++;
    d->running = d->devices;
    pthread_cond_broadcast(&d->begin);
    while (d->running > 0)
        pthread_cond_wait(&d->end, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

/* Running statistics go on batch by batch, in the order of the batches. */
gs_status gs_batch_devices_run(gs_batch_devices *d, gs_batch_pass *pass, uint32_t passes)
{
    d->pass = pass;
    d->passes = passes;
    d->added = 0;
    if (d->devices == 1)
        run_passes(&d->at[0]);
    else
        run_round(d);
    for (uint32_t k = 0; k < d->devices; k++) {
        const gs_batch_member *const m = &d->at[k];
        if (m->status != GS_OK)
            return d->devices == 1 ? m->status : gs_fail(m->status, "%s", m->why);
    }
    for (uint32_t i = 0; i < passes; i++)
        if (pass[i].batch != NULL)
            gs_batches_follow(d->at[pass[i].device].engine, pass[i].batch, statistics_of(d, i));
    return GS_OK;
}

gs_status gs_batch_devices_run_alone(gs_batch_devices *d, gs_batch_pass *pass)
{
    const double began = gs_now();
    gs_step_rows_take_one(&d->rows);
    const gs_status st = gs_batches_run(d->at[0].engine, pass->batch, pass->key, &pass->mass, &pass->stats);

    if (st == GS_OK)
        wait_for_speed(&d->at[0], gs_now() - began, &pass->stats);
    return st;
}

void gs_batch_devices_reduce(gs_batch_devices *d, double mass)
{
    for (uint32_t k = 1; k < d->devices; k++)
        gs_batches_collect(d->at[k].engine);
    gs_batches_divide(d->at[0].engine, mass);
    gs_step_rows_divide(&d->rows, mass);
}

const gs_step_rows *gs_batch_devices_rows(const gs_batch_devices *d) { return &d->rows; }
