/* batch_devices.c - several devices train batches: which batch is whose, their plans and memory, and their threads. */
#include "batch/batch_devices.h"

#include <assert.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/clock.h"
#include "batch/batches_internal.h"
#include "ranks/ranks.h"

typedef struct gs_batch_member {
    gs_batch_devices *all;
    uint32_t number;
    gs_batches *engine;
    gs_train_options options; /* of one device */
    char spec[32];
    gs_exec_wire wire;  /* of its switch; the first of a switch has that of all */
    gs_exec_wire *over; /* this device's; NULL: batches are not sent */
    double waits; /* seconds for each of a pass, as its speed is less than that of what it runs on */
    gs_batch group[2][GS_BATCH_GROUP]; /* its batches of groups, */
    uint32_t last;                     /* of which this was filled last */
    pthread_t thread;
    bool started;
    gs_failure failure; /* of a round */
} gs_batch_member;

struct gs_batch_devices {
    uint32_t devices, gpus; /* of this process: of several ranks each has the device of its number */
    bool said;           /* a file says which shares they have */
    gs_batch_member *at; /* [devices] processors before GPUs */
    gs_batch_deal deal;
    float *statistics; /* [GS_BATCH_ROUND][gs_batches_statistics()] of the passes of a round; NULL: there are none */
    gs_step_rows rows; /* of learned tables */
    pthread_mutex_t lock;
    pthread_cond_t begin, end, next;
    gs_batch_pass *pass; /* [passes] of the round at hand */
    uint32_t passes, added; /* the first so many of them have added their rows' gradients */
    uint64_t rounds;
    uint32_t running;
    bool quit;
};

/* ---- which batch is whose ------------------------------------------------- */

/* Of those that would be done first, the first. */
static uint32_t first_done(const gs_batch_deal *d)
{
    double soonest = INFINITY;
    uint32_t best = 0;
    for (uint32_t k = 0; k < d->devices; k++) {
        const double end = d->rate[k] > 0 ? (d->share[k] + 1) / d->rate[k] : INFINITY;
        best = end < soonest ? k : best;
        soonest = GS_MIN(soonest, end);
    }
    return best;
}

gs_status gs_batch_deal_open(gs_batch_deal *out, uint32_t devices, uint32_t step, const double *rate)
{
    gs_batch_deal d = {.devices = devices, .step = step};

    assert(devices > 0 && devices <= GS_BATCH_DEVICES && step > 0);
    if ((d.device = gs_malloc_array(step, sizeof(*d.device))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the devices of a step's batches");
    for (uint32_t k = 0; k < devices; k++)
        d.rate[k] = rate[k];
    for (uint32_t i = 0; i < step; i++) {
        const uint32_t k = first_done(&d);
        d.device[i] = (uint8_t)k;
        d.share[k]++;
    }
    *out = d;
    return GS_OK;
}

void gs_batch_deal_close(gs_batch_deal *d)
{
    gs_free(d->device);
    *d = (gs_batch_deal){0};
}

uint32_t gs_batch_deal_of(const gs_batch_deal *d, uint32_t number) { return d->device[number % d->step]; }

/* A group begins anywhere in a step, and an epoch's last step, which may be short, ends its last group. */
uint32_t gs_batch_deal_most(const gs_batch_deal *d, uint32_t device, uint32_t group)
{
    uint32_t most = 0, held = 0;

    for (uint32_t i = 0; i < d->step + group; i++) {
        held += gs_batch_deal_of(d, i) == device;
        held -= i >= group && gs_batch_deal_of(d, i - group) == device;
        most = GS_MAX(most, held);
    }
    return most;
}

/* The one that runs batches of a device here; or of another rank's, what this one knows of it. */
static gs_batch_member *member_of(const gs_batch_devices *d, uint32_t device)
{
    return &d->at[gs_ranks_count() == 1 ? device : 0];
}

/* ---- threads ------------------------------------------------------------- */

/* Of what its threads did: where it has two slots, others pick. */
static void wait_for_speed(const gs_batch_member *m, gs_batch_pass *p)
{
    const double picked = gs_batches_lanes(m->engine).slots > 1 ? 0 : p->pick_seconds,
                 more = (p->ended - p->started + picked) * m->waits;

    if (more <= 0)
        return;
    gs_sleep(more);
    p->stats.compute_seconds += more;
    p->stats.computed += more;
    p->ended += more;
}

static float *statistics_of(const gs_batch_devices *d, uint32_t pass)
{
    return d->statistics == NULL ? NULL : d->statistics + (uint64_t)pass * gs_batches_statistics(d->at[0].engine);
}

static gs_status run_pass(gs_batch_member *m, gs_batch_pass *p, float *statistics)
{
    if (p->batch == NULL) {
        gs_batches_pass_over(m->engine);
        return GS_OK;
    }
    GS_TRY(gs_batches_add(m->engine, p));
    gs_batches_copy_statistics(m->engine, statistics);
    wait_for_speed(m, p);
    gs_batch_slots_release(m->engine); /* so it is when the next pass begins */
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
        gs_step_rows_add(&d->rows, &m->engine->tables, p->batch);
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

    m->failure.st = GS_OK;
    for (uint32_t i = 0; i < d->passes; i++) {
        if (d->pass[i].device != m->number)
            continue;
        if (m->failure.st == GS_OK)
            gs_failure_keep(&m->failure, run_pass(m, &d->pass[i], statistics_of(d, i)));
        add_rows(m, i, m->failure.st);
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

static void open_round(gs_batch_devices *d)
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

static uint64_t round_bytes(const gs_batch_devices *d)
{
    const gs_batches *const first = d->at[0].engine;
    return statistics_bytes(d) +
           gs_step_rows_bytes(first->session, d->deal.step, first->shape.limits.vertices);
}

static gs_status start_round(gs_batch_devices *d)
{
    const gs_batches *const first = d->at[0].engine;
    const uint64_t bytes = statistics_bytes(d);

    GS_TRY(gs_step_rows_open(&d->rows, &first->tables, d->deal.step, first->shape.limits.vertices));
    GS_NEED(bytes == 0 || (d->statistics = gs_malloc(bytes)) != NULL, "out of memory for statistics of batches");
    for (uint32_t k = 0; k < d->devices && d->devices > 1; k++) {
        const int error = pthread_create(&d->at[k].thread, NULL, member_thread, &d->at[k]);
        d->at[k].started = error == 0;
        GS_NEED(error == 0, "a thread for device %u could not be had: %s", k, strerror(error));
    }
    return GS_OK;
}

static void close_round(gs_batch_devices *d)
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

/* The device's batches of a group, in the list that the group before did not have; how many. */
static uint32_t list_group(gs_batch_member *m, const gs_batch *batch, uint32_t batches)
{
    uint32_t n = 0;

    m->last = 1 - m->last;
    for (uint32_t i = 0; i < batches; i++) {
        if (gs_batch_deal_of(&m->all->deal, batch[i].number) != m->number)
            continue;
        m->group[m->last][n] = batch[i];
        if (batch[i].targets == 0) /* it is passed over, and nothing is read for it */
            m->group[m->last][n].vertices = 0;
        n++;
    }
    return n;
}

void gs_batch_devices_begin(gs_batch_devices *d, const gs_batch *batch, uint32_t batches)
{
    for (gs_batch_member *m = d->at; m < d->at + d->devices; m++) {
        gs_batch_slots_quiet(&m->engine->slots); /* it may still look at the list that is filled */
        const uint32_t n = list_group(m, batch, batches);
        gs_batches_begin(m->engine, m->group[m->last], n);
    }
}

bool gs_batch_devices_follow(gs_batch_devices *d, const gs_batch *batch, uint32_t batches)
{
    bool can = true;

    for (const gs_batch_member *m = d->at; m < d->at + d->devices; m++)
        can = can && gs_batches_can_follow(m->engine);
    for (gs_batch_member *m = d->at; can && m < d->at + d->devices; m++) {
        const uint32_t n = list_group(m, batch, batches);
        gs_batch_slots_queue(&m->engine->slots, m->group[m->last], n, true);
    }
    return can;
}

void gs_batch_devices_clear(gs_batch_devices *d)
{
    for (uint32_t k = 0; k < d->devices; k++)
        gs_batches_clear(d->at[k].engine);
    gs_step_rows_clear(&d->rows);
}

/* Of ranks that have rows of others' batches: those of all devices' next passes come before these, and gradients of
 * learned ones go back behind them, in the order of the batches. */
static gs_status run_with_rows(gs_batch_devices *d)
{
    gs_batch_member *const m = &d->at[0];

    for (uint32_t i = 0, end; i < d->passes; i = end) {
        uint64_t busy = 0;
        for (end = i; end < d->passes && (busy >> d->pass[end].device & 1) == 0; end++)
            busy |= 1ull << d->pass[end].device;
        for (uint32_t k = i; k < end; k++)
            if (d->pass[k].batch != NULL)
                GS_TRY(gs_batch_tables_fetch_for(&m->engine->tables, d->pass[k].device, d->pass[k].batch));
        for (uint32_t k = i; k < end; k++)
            if (d->pass[k].device == m->number)
                GS_TRY(run_pass(m, &d->pass[k], statistics_of(d, k)));
        for (uint32_t k = i; k < end; k++)
            if (d->pass[k].batch != NULL)
                GS_TRY(gs_step_rows_add_of(&d->rows, &m->engine->tables, d->pass[k].device));
    }
    return GS_OK;
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

/* What a pass came to, and its statistics, come to all ranks from the one that ran it. */
static gs_status share_pass(gs_batch_devices *d, gs_batch_pass *p, float *statistics)
{
    gs_batch_pass all = *p;

    if (gs_ranks_count() == 1 || p->batch == NULL)
        return GS_OK;
    all.drawn.vertices = p->batch->vertices; /* which whoever did not draw it has not got */
    GS_TRY(gs_ranks_share_of(p->device, &all, sizeof(all)));
    all.batch = p->batch;
    all.stats.metrics.column = NULL;
    all.stats.metrics.found = NULL;
    *p = all;
    return gs_ranks_share_of(p->device, statistics, gs_batches_statistics(d->at[0].engine) * sizeof(*statistics));
}

/* Running statistics go on batch by batch, in the order of the batches. */
gs_status gs_batch_devices_run(gs_batch_devices *d, gs_batch_pass *pass, uint32_t passes)
{
    d->pass = pass;
    d->passes = passes;
    d->added = 0;
    if (gs_ranks_count() > 1 && gs_batch_tables_are_apart(&d->at[0].engine->tables))
        GS_TRY(run_with_rows(d));
    else if (d->devices == 1)
        run_passes(&d->at[0]);
    else
        run_round(d);
    for (uint32_t k = 0; k < d->devices; k++)
        GS_TRY(gs_failure_tell(&d->at[k].failure));
    for (uint32_t i = 0; i < passes; i++)
        GS_TRY(share_pass(d, &pass[i], statistics_of(d, i)));
    for (uint32_t i = 0; i < passes; i++)
        if (pass[i].batch != NULL)
            gs_batches_follow(member_of(d, pass[i].device)->engine,
                              gs_ranks_count() > 1 ? &pass[i].drawn : pass[i].batch, statistics_of(d, i));
    return GS_OK;
}

/* Ranks get what the first has made. */
static gs_status share_alone(gs_batch_devices *d, gs_batch_pass *pass)
{
    gs_batches *const own = d->at[0].engine;
    const gs_params *const p = &own->whole->run.params;

    if (gs_ranks_count() == 1)
        return GS_OK;
    if (gs_ranks_self() == 0)
        gs_batches_copy_statistics(own, d->statistics);
    GS_TRY(share_pass(d, pass, d->statistics));
    gs_step_rows_clear(&d->rows);
    GS_TRY(gs_step_rows_add_of(&d->rows, &own->tables, 0));
    gs_step_rows_divide(&d->rows, 1); /* they are of the mean */
    GS_TRY(gs_ranks_share(p->grads, p->elements * sizeof(*p->grads)));
    if (gs_ranks_self() > 0)
        gs_batches_follow(own, &pass->drawn, d->statistics);
    return GS_OK;
}

gs_status gs_batch_devices_run_alone(gs_batch_devices *d, gs_batch_pass *pass)
{
    gs_step_rows_take_one(&d->rows);
    if (gs_ranks_count() > 1)
        GS_TRY(gs_batch_tables_fetch_for(&d->at[0].engine->tables, 0, pass->batch));
    if (gs_ranks_self() == 0) {
        GS_TRY(gs_batches_run(d->at[0].engine, pass));
        if (!pass->overflows) {
            wait_for_speed(&d->at[0], pass);
            gs_batch_slots_release(d->at[0].engine);
        }
    }
    return share_alone(d, pass);
}

gs_status gs_batch_devices_reduce(gs_batch_devices *d, double mass)
{
    const gs_params *const p = &d->at[0].engine->whole->run.params;

    for (uint32_t k = 1; k < d->devices; k++)
        gs_batches_collect(d->at[k].engine);
    GS_TRY(gs_ranks_sum_f32(p->grads, p->elements)); /* as they are collected: in the order of the devices */
    gs_batches_divide(d->at[0].engine, mass);
    gs_step_rows_divide(&d->rows, mass);
    return GS_OK;
}

const gs_step_rows *gs_batch_devices_rows(const gs_batch_devices *d) { return &d->rows; }

/* ---- opening ------------------------------------------------------------- */

gs_status gs_batch_devices_count(uint32_t *out, const gs_train_options *o)
{
    const uint32_t several = gs_device_count(o->device);

    *out = GS_MAX(several, 1);
    if (several > GS_BATCH_DEVICES)
        return gs_fail(GS_EUNSUPPORTED, ".device %s: batches are trained on %u devices at most", o->device,
                       GS_BATCH_DEVICES);
    return GS_OK;
}

uint32_t gs_batch_devices_step(const gs_train_options *o)
{
    return o->batches_per_step != 0 ? o->batches_per_step : GS_MAX(gs_device_count(o->device), 1);
}

/* The one of `gpus`, "cuda:0,1", that has this number in their list. */
static void name_gpu(gs_batch_member *m, const char *gpus, uint32_t index)
{
    const char *number = strchr(gpus, ':');

    if (number++ == NULL) {
        snprintf(m->spec, sizeof(m->spec), "%.*s", (int)sizeof(m->spec) - 1, gpus);
        return;
    }
    for (uint32_t i = 0; i < index; i++)
        number = strchr(number, ',') + 1;
    snprintf(m->spec, sizeof(m->spec), "cuda:%.*s", (int)GS_MIN(strcspn(number, ","), 8), number);
}

/* One of cpu:N is "cpu" with its share of the threads. Beside GPUs, each of which has a thread that picks its rows, the
 * processors have the other threads. */
static void name_one(gs_batch_member *m, const gs_train_options *o, uint32_t device, uint32_t devices)
{
    const uint32_t threads = gs_ranks_threads(o->threads),
                   sharing = gs_ranks_count() > 1 ? 1 : devices; /* .threads are of a rank */
    const char *const beside = gs_device_gpus_beside(o->device);
    const bool parts = gs_device_words_of(o->device) == GS_DEVICES_PARTS;

    m->options = *o;
    if (devices == 1 && !parts)
        return;
    snprintf(m->spec, sizeof(m->spec), "cpu");
    if (beside != NULL) {
        m->options.threads = device > 0 || threads < devices ? 1 : threads - (devices - 1);
        if (device > 0)
            name_gpu(m, beside, device - 1);
    } else if (parts) {
        m->options.threads = GS_MAX(threads / sharing, 1);
    } else {
        name_gpu(m, o->device, device);
    }
    m->options.device = m->spec;
    m->options.topology = NULL;
}

/* What a topology file says: shares, and of cpu:N speeds, so that a device waits for as long as its own has it take,
 * and wires, so that batches are sent to it. */
static gs_status read_topology(gs_batch_devices *d, double *rate, uint32_t devices, const gs_train_options *o)
{
    const bool parts = gs_device_words_of(o->device) == GS_DEVICES_PARTS;
    gs_topology wires = {0};

    for (uint32_t k = 0; k < devices; k++)
        rate[k] = 1;
    if (gs_device_count(o->device) == 0)
        return GS_OK;
    GS_TRY(gs_topology_load(&wires, o->topology, devices));
    for (uint32_t k = 0; k < devices; k++) {
        const double speed = gs_topology_speed(&wires, k);
        const gs_topology_switch *const at = &wires.at[gs_topology_switch_of(&wires, k)];
        rate[k] = wires.place.said ? wires.place.edges[k] : speed;
        d->said = wires.place.said;
        if (!parts || gs_ranks_count() > 1)
            continue;
        d->at[k].waits = 1 / speed - 1;
        d->at[k].wire = (gs_exec_wire){.lock = PTHREAD_MUTEX_INITIALIZER, .bps = at->host_bps};
        d->at[k].over = at->host_bps > 0 ? &d->at[at->first].wire : NULL;
    }
    return GS_OK;
}

/* Batches a second of each device, in proportion to each other. */
static gs_status deal_batches(gs_batch_devices *d, double rate[GS_BATCH_DEVICES], const gs_session_config *config,
                              uint32_t devices)
{
    const gs_session_earlier *const e = config->earlier;

    for (uint32_t k = 0; k < d->devices && !d->said && d->gpus > 0 && d->gpus < d->devices; k++)
        rate[k] /= gs_batches_seconds(d->at[k].engine);
    if (e != NULL && e->batch_rates == devices)
        memcpy(rate, e->batch_rate, GS_BATCH_DEVICES * sizeof(*rate));
    return gs_batch_deal_open(&d->deal, devices, gs_batch_devices_step(config->options), rate);
}

static gs_status open_each(gs_batch_devices *d, const gs_session_config *config, uint32_t devices,
                           const gs_batch *typical)
{
    gs_session_config one = *config;
    const bool ranks = gs_ranks_count() > 1;

    for (uint32_t k = 0; k < (ranks ? 1 : devices); k++) {
        gs_batch_member *const m = &d->at[k];
        m->all = d;
        m->number = ranks ? gs_ranks_self() : k;
        name_one(m, config->options, k, devices);
        one.options = &m->options;
        GS_TRY(gs_batches_open(&m->engine, &one, m->over));
        if (typical != NULL)
            gs_batches_take_typical(m->engine, typical);
        d->gpus += gs_batches_device_bytes(m->engine) > 0;
        d->devices++;
    }
    return GS_OK;
}

GS_ENDS_BY(gs_batch_devices, gs_batch_devices_close)

gs_status gs_batch_devices_open(gs_batch_devices **out, const gs_session_config *config,
                                const gs_batch *typical)
{
    GS_ENDS(gs_batch_devices_close_at) gs_batch_devices *d = gs_calloc(1, sizeof(*d));
    double rate[GS_BATCH_DEVICES];
    uint32_t devices;

    GS_NEED(d != NULL, "out of memory");
    open_round(d);
    GS_TRY(gs_batch_devices_count(&devices, config->options));
    GS_NEED((d->at = gs_calloc(devices, sizeof(*d->at))) != NULL, "out of memory");
    GS_TRY(read_topology(d, rate, devices, config->options));
    GS_TRY(open_each(d, config, devices, typical));
    GS_TRY(deal_batches(d, rate, config, devices));
    *out = GS_HANDED_OVER(d);
    return GS_OK;
}

void gs_batch_devices_close(gs_batch_devices *d)
{
    if (d == NULL)
        return;
    close_round(d);
    for (uint32_t k = d->devices; k-- > 0;)
        gs_batches_close(d->at[k].engine);
    gs_batch_deal_close(&d->deal);
    gs_free(d->at);
    gs_free(d);
}

gs_batches *gs_batch_devices_at(const gs_batch_devices *d, uint32_t device) { return member_of(d, device)->engine; }
const gs_batch_deal *gs_batch_devices_deal(const gs_batch_devices *d) { return &d->deal; }

/* ---- how long do lanes take? ---------------------------------------------- */

#define SIMULATED 4096u /* batches, at most: by then a step takes as long as the one before */

/* When the last batches of a device were picked, sent and computed on; of number n in [n % GS_BATCH_SETS]. */
typedef struct lane_ends {
    double picked[GS_BATCH_SETS], sent[GS_BATCH_SETS], passed[GS_BATCH_SETS];
    uint64_t batches;
} lane_ends;

static double before(const double *end, uint64_t n, uint32_t back)
{
    return n < back ? 0 : end[(n - back) % GS_BATCH_SETS];
}

/* By the rules of gs_batch_slots: when the pass of the next batch is over, which was drawn at `drawn`, and whose
 * weights are there from `ready` on. */
static double simulate_batch(lane_ends *e, const gs_batch_lanes *l, double drawn, double ready)
{
    const uint64_t n = e->batches++;
    const bool ahead = l->slots > 1;
    double at = GS_MAX(GS_MAX(drawn, before(e->picked, n, 1)),
                       GS_MAX(before(e->sent, n, l->slots), before(e->passed, n, ahead ? GS_BATCH_SETS : 1)));

    at = e->picked[n % GS_BATCH_SETS] = at + l->pick;
    at = GS_MAX(at, GS_MAX(before(e->sent, n, 1), before(e->passed, n, l->slots)));
    at = e->sent[n % GS_BATCH_SETS] = at + l->send;
    return e->passed[n % GS_BATCH_SETS] = GS_MAX(at, GS_MAX(before(e->passed, n, 1), ready)) + l->compute;
}

/* The lanes of a device, whose speed a file may say. */
static gs_batch_lanes lanes_at(const gs_batch_devices *d, uint32_t k)
{
    const gs_batch_member *const m = member_of(d, k);
    gs_batch_lanes l = gs_batches_lanes(m->engine);
    l.compute *= 1 + m->waits;
    l.compute += l.slots < 2 ? l.pick * m->waits : 0;
    return l;
}

double gs_batch_devices_seconds(const gs_batch_devices *d, const gs_batch_drawing *g)
{
    const uint32_t step = d->deal.step, batches = GS_MAX(GS_MIN(g->batches, SIMULATED) / step, 1) * step,
                   group = g->batches < step ? step : g->group; /* of whole steps, if there were one */
    lane_ends end[GS_BATCH_DEVICES] = {0};
    double drawn = 0, taken = 0, ready = 0, over = 0;

    for (uint32_t i = 0; i < batches; i++) {
        const bool first = i % group == 0;
        const uint32_t k = gs_batch_deal_of(&d->deal, i);
        const gs_batch_lanes l = lanes_at(d, k);
        if (first && (i > 0 || !g->ahead)) /* ahead: the epoch before drew the first group */
            drawn = (g->ahead ? GS_MAX(drawn, taken) : over) + g->seconds * GS_MIN(group, batches - i);
        taken = first ? GS_MAX(drawn, over) : taken; /* then the next group may be drawn */
        const double passed = simulate_batch(&end[k], &l, drawn, ready);
        over = GS_MAX(over, passed);
        if ((i + 1) % step == 0)
            ready = over;
    }
    return over / (batches / step);
}

gs_batch_lanes gs_batch_devices_lanes(const gs_batch_devices *d)
{
    gs_batch_lanes most = {.slots = 1};

    for (uint32_t k = 0; k < d->devices; k++) {
        const gs_batch_lanes l = lanes_at(d, k);
        most.pick = GS_MAX(most.pick, d->deal.share[k] * l.pick);
        most.send = GS_MAX(most.send, d->deal.share[k] * l.send);
        most.compute = GS_MAX(most.compute, d->deal.share[k] * l.compute);
        most.slots = GS_MAX(most.slots, l.slots);
    }
    return most;
}

/* Processors come before GPUs. */
static uint32_t first_gpu(const gs_batch_devices *d) { return d->gpus > 0 ? d->devices - d->gpus : 0; }

gs_batches *gs_batch_devices_lead(const gs_batch_devices *d) { return d->at[first_gpu(d)].engine; }

/* The first has the features of all vertices for all. */
void gs_batch_devices_set_room(gs_batch_devices *d, const gs_batch_room *room)
{
    uint32_t most[GS_BATCH_DEVICES], sum = 0;

    for (uint32_t k = 0; k < d->devices; k++)
        sum += most[k] = gs_batch_deal_most(&d->deal, k, room->group);
    for (uint32_t k = 0; k < d->devices; k++) {
        gs_batch_room one = *room;
        one.cache = (uint64_t)((double)room->cache * most[k] / sum);
        one.group = GS_MAX(most[k], 1);
        gs_batches_set_room(d->at[k].engine, &one);
    }
}

#define FREE_SHARE 0.9 /* of a GPU's memory */

static const gs_device *device_at(const gs_batch_devices *d, uint32_t k) { return gs_batches_device(d->at[k].engine); }

static bool reach_all(const gs_batch_devices *d)
{
    bool all = true;
    for (uint32_t k = first_gpu(d); k < d->devices; k++)
        for (uint32_t i = first_gpu(d); i < d->devices; i++)
            all = all && (i == k || gs_device_reaches(device_at(d, k), device_at(d, i)).reaches);
    return all;
}

/* Of each GPU; 0 where it does not say. */
static uint64_t free_memory(const gs_batch_devices *d)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t k = first_gpu(d); k < d->devices; k++) {
        uint64_t bytes = 0;
        uint32_t sharing = 1;
        for (uint32_t i = first_gpu(d); i < d->devices; i++)
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

bool gs_batch_devices_spread(gs_batch_devices *d, uint64_t memory, uint32_t share, const gs_sampler *drawn)
{
    gs_batches *const lead = gs_batch_devices_lead(d);

    gs_batch_devices_do_not_spread(d);
    const uint64_t plan = gs_batches_device_bytes(lead);
    if (plan == 0)
        return false;
    const uint64_t all = memory != 0 ? memory : free_memory(d), left = all > plan ? all - plan : 0;
    const uint32_t rows = gs_batches_rows_within(lead, left / share);
    const uint64_t vertices = gs_batches_rows_within(lead, UINT64_MAX);
    const bool together = reach_all(d);
    /* Places of a batch's rows cross, too. Rows that stay are used as often as others at the least. */
    if (!gs_batches_gain(lead, together ? (uint64_t)rows * d->gpus : rows))
        return false;
    for (uint32_t k = first_gpu(d); k < d->devices; k++) {
        if (together)
            gs_batches_keep_rows(d->at[k].engine, (uint32_t)GS_MIN((uint64_t)rows * d->gpus, vertices), d->gpus,
                                 k - first_gpu(d));
        else
            gs_batches_keep_rows(d->at[k].engine, rows, 1, 0);
    }
    const uint64_t kept = gs_batches_device_bytes(lead) - plan;
    gs_batches_draw_by(lead, d->devices == 1 ? drawn : NULL, left / share - GS_MIN(kept, left / share));
    return true;
}

bool gs_batch_devices_has_slots(const gs_batch_devices *d, uint64_t memory)
{
    const gs_batches *const lead = gs_batch_devices_lead(d);
    const uint64_t plan = gs_batches_device_bytes(lead);

    if (plan == 0) /* on host memory, whose budget counts it */
        return gs_batches_sends(lead);
    const uint64_t all = memory != 0 ? memory : free_memory(d);
    return gs_batches_slot_bytes(lead) <= (all > plan ? all - plan : 0) / 4;
}

void gs_batch_devices_quiet(gs_batch_devices *d)
{
    for (uint32_t k = 0; k < d->devices; k++)
        gs_batch_slots_quiet(&d->at[k].engine->slots);
}

void gs_batch_devices_pause(gs_batch_devices *d)
{
    for (uint32_t k = 0; k < d->devices; k++)
        gs_batches_pause(d->at[k].engine);
}

/* The first device's features, and the first GPU's list of rows that stay, are there once for all. */
uint64_t gs_batch_devices_bytes(const gs_batch_devices *d)
{
    uint64_t bytes = round_bytes(d);
    for (uint32_t k = 0; k < d->devices; k++) {
        const gs_batches *const b = d->at[k].engine;
        const gs_store *const s = b->session->store;
        bytes += gs_batches_bytes(b) - (k > 0 && b->keeps ? gs_batch_rows_bytes(s) : 0) -
                 (k > first_gpu(d) && b->kept.rows > 0 ? gs_batch_spread_bytes(s) : 0);
    }
    return bytes;
}

gs_status gs_batch_devices_start(gs_batch_devices *d, gs_session *whole)
{
    gs_batches *gpu[GS_BATCH_DEVICES];
    const uint32_t lead = first_gpu(d);

    for (uint32_t k = 0; k < d->devices; k++)
        GS_TRY(gs_batches_start(d->at[k].engine, whole, k > 0 ? d->at[0].engine : NULL,
                                k > lead ? d->at[lead].engine : NULL));
    for (uint32_t k = lead; k < d->devices; k++)
        gpu[k - lead] = d->at[k].engine;
    for (uint32_t k = lead; k < d->devices; k++)
        GS_TRY(gs_batches_meet(d->at[k].engine, gpu));
    return start_round(d);
}
