/* batch_devices.c - several devices train batches: a thread for each, which sleeps between passes. */
#include "session/batch_devices.h"

#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/machine.h"
#include "base/size.h"
#include "session/batches_internal.h"

#define SPEC_BYTES 32u

typedef struct member {
    gs_batch_devices *all;
    gs_batches *engine;
    gs_train_options options; /* of one device */
    char spec[SPEC_BYTES];
    gs_batch group[GS_BATCH_GROUP]; /* its batches of the group */
    pthread_t thread;
    bool started;
    gs_batch_pass *pass; /* of the round at hand */
    gs_status status;
    char why[GS_ERROR_BYTES];
} member;

struct gs_batch_devices {
    uint32_t devices;
    member *at; /* [devices] */
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    uint64_t rounds;
    uint32_t running;
    bool quit;
};

/* ---- opening ------------------------------------------------------------- */

gs_status gs_batch_devices_count(uint32_t *out, const gs_train_options *o)
{
    const uint32_t several = gs_device_count(o->device);

    *out = GS_MAX(several, 1);
    if (gs_device_gpus_beside(o->device) != NULL)
        return gs_fail(GS_EUNSUPPORTED, ".device %s: batches are trained on devices of one kind; use cpu:N or "
                       "cuda:0,1, or .sampler none", o->device);
    if (several > GS_BATCH_DEVICES)
        return gs_fail(GS_EUNSUPPORTED, ".device %s: batches are trained on %u devices at most", o->device,
                       GS_BATCH_DEVICES);
    return GS_OK;
}

/* One of cpu:N is "cpu" with its share of the threads; of "cuda:0,1", one of the numbers. */
static void name_one(member *m, const gs_train_options *o, uint32_t device, uint32_t devices)
{
    const char *number = o->device;

    m->options = *o;
    if (devices == 1 && strncmp(o->device, "cpu:", 4) != 0)
        return;
    if (strncmp(o->device, "cpu", 3) == 0) {
        const uint32_t threads = o->threads != 0 ? o->threads : gs_machine_cpus();
        m->options.threads = GS_MAX(threads / devices, 1);
        snprintf(m->spec, sizeof(m->spec), "cpu");
    } else {
        number = strchr(number, ':') + 1;
        for (uint32_t d = 0; d < device; d++)
            number = strchr(number, ',') + 1;
        snprintf(m->spec, sizeof(m->spec), "cuda:%.*s", (int)GS_MIN(strcspn(number, ","), 8), number);
    }
    m->options.device = m->spec;
    m->options.topology = NULL;
}

gs_status gs_batch_devices_open(gs_batch_devices **out, const gs_session_config *config)
{
    gs_batch_devices *d = gs_calloc(1, sizeof(*d));
    gs_session_config one = *config;
    uint32_t devices;
    gs_status st;

    if (d == NULL)
        return gs_fail(GS_ENOMEM, "out of memory");
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->begin, NULL);
    pthread_cond_init(&d->end, NULL);
    if ((st = gs_batch_devices_count(&devices, config->options)) == GS_OK &&
        (d->at = gs_calloc(devices, sizeof(*d->at))) == NULL)
        st = gs_fail(GS_ENOMEM, "out of memory");
    for (uint32_t k = 0; st == GS_OK && k < devices; k++) {
        member *const m = &d->at[k];
        m->all = d;
        name_one(m, config->options, k, devices);
        one.options = &m->options;
        st = gs_batches_open(&m->engine, &one);
        d->devices++;
    }
    if (st != GS_OK) {
        gs_batch_devices_close(d);
        return st;
    }
    *out = d;
    return GS_OK;
}

void gs_batch_devices_close(gs_batch_devices *d)
{
    if (d == NULL)
        return;
    pthread_mutex_lock(&d->lock);
    d->quit = true;
    pthread_cond_broadcast(&d->begin);
    pthread_mutex_unlock(&d->lock);
    for (uint32_t k = 0; k < d->devices; k++)
        if (d->at[k].started)
            pthread_join(d->at[k].thread, NULL);
    for (uint32_t k = d->devices; k-- > 0;)
        gs_batches_close(d->at[k].engine);
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->begin);
    pthread_cond_destroy(&d->end);
    gs_free(d->at);
    gs_free(d);
}

gs_batches *gs_batch_devices_at(const gs_batch_devices *d, uint32_t device) { return d->at[device].engine; }

void gs_batch_devices_set_cache(gs_batch_devices *d, uint64_t bytes, uint32_t group)
{
    for (uint32_t k = 0; k < d->devices; k++)
        gs_batches_set_cache(d->at[k].engine, bytes / d->devices, (uint32_t)gs_div_up(group, d->devices));
}

#define FREE_SHARE 0.9 /* of a GPU's memory */

static const gs_device *device_at(const gs_batch_devices *d, uint32_t k) { return gs_batches_device(d->at[k].engine); }

static bool reach_all(const gs_batch_devices *d)
{
    bool all = true;
    for (uint32_t k = 0; k < d->devices; k++)
        for (uint32_t i = 0; i < d->devices; i++)
            all = all && (i == k || gs_device_reaches(device_at(d, k), device_at(d, i)).reaches);
    return all;
}

/* Of each device; 0 where it does not say. */
static uint64_t free_memory(const gs_batch_devices *d)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t k = 0; k < d->devices; k++) {
        uint64_t bytes = 0;
        uint32_t sharing = 1;
        for (uint32_t i = 0; i < d->devices; i++)
            sharing += i != k && gs_device_reaches(device_at(d, k), device_at(d, i)).same;
        if (gs_device_free_memory(device_at(d, k), &bytes) != GS_OK)
            return 0;
        least = GS_MIN(least, bytes / sharing);
    }
    return (uint64_t)(FREE_SHARE * (double)least);
}

void gs_batch_devices_do_not_spread(gs_batch_devices *d)
{
    for (uint32_t k = 0; k < d->devices; k++)
        gs_batches_keep_rows(d->at[k].engine, 0, 1, 0);
}

bool gs_batch_devices_spread(gs_batch_devices *d, uint64_t memory, uint32_t share)
{
    gs_batch_devices_do_not_spread(d);
    const uint64_t plan = gs_batches_device_bytes(d->at[0].engine);
    if (plan == 0)
        return false;
    const uint64_t all = memory != 0 ? memory : free_memory(d), left = all > plan ? all - plan : 0;
    const uint32_t rows = gs_batches_rows_within(d->at[0].engine, left / share);
    const uint64_t vertices = gs_batches_rows_within(d->at[0].engine, UINT64_MAX);
    const bool together = reach_all(d);
    /* Places of a batch's rows cross, too. Rows that stay are used as often as others at the least. */
    if (!gs_batches_gain(d->at[0].engine, together ? (uint64_t)rows * d->devices : rows))
        return false;
    for (uint32_t k = 0; k < d->devices; k++) {
        if (together)
            gs_batches_keep_rows(d->at[k].engine, (uint32_t)GS_MIN((uint64_t)rows * d->devices, vertices), d->devices,
                                 k);
        else
            gs_batches_keep_rows(d->at[k].engine, rows, 1, 0);
    }
    return true;
}

/* The first has them for all. */
void gs_batch_devices_keep_features(gs_batch_devices *d, bool keep)
{
    for (uint32_t k = 0; k < d->devices; k++)
        gs_batches_keep_features(d->at[k].engine, keep);
}

void gs_batch_devices_rest(gs_batch_devices *d)
{
    for (uint32_t k = 0; k < d->devices; k++)
        gs_batches_rest(d->at[k].engine);
}

uint64_t gs_batch_devices_bytes(const gs_batch_devices *d)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < d->devices; k++)
        bytes += gs_batches_bytes(d->at[k].engine) - (k > 0 ? gs_batches_shared_bytes(d->at[k].engine) : 0);
    return bytes;
}

/* ---- threads ------------------------------------------------------------- */

static void run_pass(member *m)
{
    gs_batch_pass *const p = m->pass;

    m->status = GS_OK;
    if (p->batch == NULL)
        return;
    m->status = gs_batches_add(m->engine, p->batch, p->key, &p->mass, &p->stats);
    if (m->status != GS_OK)
        snprintf(m->why, sizeof(m->why), "%s", gs_last_error());
}

static void *member_thread(void *arg)
{
    member *const m = arg;
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
        run_pass(m);
        pthread_mutex_lock(&d->lock);
        if (--d->running == 0)
            pthread_cond_signal(&d->end);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

gs_status gs_batch_devices_start(gs_batch_devices *d, gs_session *whole)
{
    gs_batches *engine[GS_BATCH_DEVICES];
    gs_status st = GS_OK;

    for (uint32_t k = 0; k < d->devices && st == GS_OK; k++)
        st = gs_batches_start(engine[k] = d->at[k].engine, whole, k > 0 ? d->at[0].engine : NULL);
    for (uint32_t k = 0; k < d->devices && st == GS_OK; k++)
        st = gs_batches_meet(d->at[k].engine, engine);
    for (uint32_t k = 0; k < d->devices && d->devices > 1 && st == GS_OK; k++) {
        const int error = pthread_create(&d->at[k].thread, NULL, member_thread, &d->at[k]);
        d->at[k].started = error == 0;
        if (error != 0)
            st = gs_fail(GS_ENOMEM, "a thread for device %u could not be had: %s", k, strerror(error));
    }
    return st;
}

/* ---- a round ------------------------------------------------------------- */

void gs_batch_devices_begin(gs_batch_devices *d, const gs_batch *batch, uint32_t batches)
{
    for (uint32_t k = 0; k < d->devices; k++) {
        member *const m = &d->at[k];
        uint32_t n = 0;
        for (uint32_t i = k; i < batches; i += d->devices)
            m->group[n++] = batch[i];
        gs_batches_begin(m->engine, m->group, n);
    }
}

void gs_batch_devices_clear(gs_batch_devices *d)
{
    for (uint32_t k = 0; k < d->devices; k++)
        gs_batches_clear(d->at[k].engine);
}

/* Running statistics go on batch by batch, in the order of the batches. */
gs_status gs_batch_devices_run(gs_batch_devices *d, gs_batch_pass *pass)
{
    for (uint32_t k = 0; k < d->devices; k++)
        d->at[k].pass = &pass[k];
    if (d->devices == 1) {
        run_pass(&d->at[0]);
    } else {
        pthread_mutex_lock(&d->lock);
        d->rounds++;
        d->running = d->devices;
        pthread_cond_broadcast(&d->begin);
        while (d->running > 0)
            pthread_cond_wait(&d->end, &d->lock);
        pthread_mutex_unlock(&d->lock);
    }
    for (uint32_t k = 0; k < d->devices; k++) {
        const member *const m = &d->at[k];
        if (m->status != GS_OK)
            return d->devices == 1 ? m->status : gs_fail(m->status, "%s", m->why);
        if (pass[k].batch != NULL)
            gs_batches_follow(m->engine, pass[k].batch);
    }
    return GS_OK;
}

void gs_batch_devices_reduce(gs_batch_devices *d, double mass)
{
    for (uint32_t k = 1; k < d->devices; k++)
        gs_batches_collect(d->at[k].engine);
    gs_batches_divide(d->at[0].engine, mass);
}
