/* run_batches.c - a run that trains on batches: how many are a group, what of features is in memory, and the epochs. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/machine.h"
#include "base/size.h"
#include "batch/batch_rows.h"
#include "batch/batch_tables.h"
#include "model/model.h"
#include "ranks/ranks.h"
#include "session/edges.h"
#include "session/session_plan.h"
#include "train/draws.h"
#include "train/options.h"
#include "train/run_internal.h"

struct gs_run_batches {
    gs_draws draws;
    gs_run_pairs *pairs;   /* until they are taken; NULL: targets are of a split */
    gs_seed_source seeds;  /* they are */
    uint64_t pair_bytes;
    const gs_train_options *options; /* while it opens */
    gs_batch_shape shape;
    gs_batch_devices *engine;
    uint32_t devices, step; /* that train, a batch each at a time; batches of a step, 1 of one device */
    bool may_draw;        /* a GPU may draw them */
    uint32_t drawn_group; /* batches of a group where it does not: of what it draws a group takes next to nothing */
    bool may_spread, spreads; /* rows of features may stay in the memory of GPUs; some do */
    uint64_t device_memory; /* of each, as the options say */
    gs_batch_room room;   /* of features */
    uint32_t reading_group; /* batches of a group where features of all vertices have no room; then also: */
    uint64_t cache_bytes, most_ring; /* what rows of them may take; the ring of each device may be */
    uint32_t side;        /* batches of a device whose rows are read at once; how long those of a batch take to read: */
    double read_seconds[2]; /* each by itself; so */
    const gs_draws_group *followed; /* the engine has its batches behind those of the group in use; else NULL */
    uint32_t followed_epoch, followed_first;
    bool there, stepped;  /* the device has the parameters; it has changed them since it has */
    bool traces;
    gs_batch_trace trace; /* of the epoch at hand */
};

/* Batches of a group, for each thread, where features are in memory: it need not be known for long. */
#define BATCHES_PER_THREAD 2u
/* A group has so many batches at first. More are drawn at a time where an epoch then reads less by this part, and their
 * arenas take at most this share of the host's memory. */
#define SMALL_GROUP 8u
#define WORTHWHILE 0.02
#define LARGE_GROUP_SHARE 0.25
/* What a batch has, of its limits: these are a quarter above the largest trial. */
#define TYPICAL_SHARE 0.8
/* Share of what groups leave, for rows of features that stay from batch to batch where they cannot all be there. */
#define CACHE_SHARE 0.5
/* Reads of the next batch go through a ring that has room for all of them, but of no more than this share of the host's
 * memory. */
#define RING_SHARE 0.0625

gs_batches *gs_run_batches_lead(const gs_run_batches *b) { return gs_batch_devices_lead(b->engine); }
bool gs_run_batches_may_stream(const gs_run_batches *b) { return gs_draws_may_stream(&b->draws); }

/* Has the model learned rows of vertices? Then no batch goes in parts. */
static gs_status find_tables(bool *learns_rows, const gs_train_options *o, const char *store)
{
    GS_ENDS(gs_model_close_at) gs_model *model = NULL;
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;

    GS_TRY(gs_session_open_model(&model, o));
    *learns_rows = gs_model_learns_rows(model, 1);
    if (*learns_rows || !gs_model_learns_rows(model, 0))
        return GS_OK;
    GS_TRY(gs_session_open_store(&s, store));
    *learns_rows = gs_store_get_info(s)->features == 0;
    return GS_OK;
}

/* So many batches of a group, or fewer: whole steps, as devices wait for each other where a group ends, or a multiple
 * of the devices. */
static uint32_t group_of(const gs_run_batches *b, uint64_t batches)
{
    const uint32_t of = b->step <= batches ? b->step : b->devices;
    return GS_MAX((uint32_t)batches / of, 1) * of;
}

static gs_status open_seeds(void *context, const gs_seed_source **out, const gs_store *store)
{
    gs_run_batches *const b = context;

    GS_TRY(gs_run_pairs_open(&b->pairs, store, b->options, false));
    b->pair_bytes = gs_run_pairs_bytes(b->pairs);
    b->seeds = gs_run_pairs_seeds(b->pairs);
    *out = &b->seeds;
    return GS_OK;
}

static gs_status open_draws(gs_run_batches *b, const gs_session_config *config, bool stream)
{
    const gs_train_options *const o = config->options;
    const bool pairs = gs_train_is_of_pairs(o);
    const gs_draws *const d = &b->draws;
    gs_draws_request request = {.store = config->store, .options = o, .stream = stream, .split = GS_SPLIT_TRAIN,
                                .open_seeds = pairs ? open_seeds : NULL, .context = b,
                                .refused = config->refused, .trial = config->trial};

    GS_TRY(gs_batch_devices_count(&b->devices, o));
    GS_TRY(find_tables(&request.all_there, o, config->store));
    b->options = o;
    b->step = b->devices > 1 ? gs_batches_per_step_of(o) : 1;
    request.all_there = request.all_there || pairs || gs_ranks_count() > 1; /* none of these goes in parts */
    GS_TRY(gs_draws_open(&b->draws, &request));
    b->shape.limits = d->limits;
    b->shape.hops = d->options.hops;
    b->shape.coefficients = d->options.coverage > 0;
    b->shape.targets = d->options.hops == 0 ? d->limits.vertices : gs_sampler_most_targets(d->sampler);
    b->shape.edge_types = gs_store_get_info(d->store)->edge_types;
    gs_draws_bound_edges(d, b->shape.edges_of);
    b->draws.group = group_of(b, GS_MIN(GS_MIN(d->most_group, SMALL_GROUP), gs_sampler_batches(d->sampler)));
    return GS_OK;
}

/* What groups of so many batches leave of the host's memory, before there is a cache. */
static uint64_t left_of(gs_run_batches *b, uint64_t host, uint32_t group)
{
    const uint64_t taken = gs_draws_list_bytes(&b->draws) + gs_sampler_bytes(b->draws.sampler) +
                           gs_batch_devices_bytes(b->engine) + group * b->shape.limits.arena_bytes + b->pair_bytes;
    return host > taken ? host - taken : 0;
}

/* Bytes of features that are read for a batch, in the mean, where all vertices are as likely. */
static double feature_reads(gs_run_batches *b, uint64_t host, uint32_t group)
{
    const uint32_t of = GS_MAX(group / b->devices, 1), most = b->shape.limits.vertices;
    const uint64_t bytes = (uint64_t)(CACHE_SHARE * (double)left_of(b, host, group)) / b->devices;
    const gs_row_cache_shape cache = gs_row_cache_shape_of(b->draws.store, bytes, of, most, 1);
    const double vertices = (double)gs_store_get_info(b->draws.store)->vertices,
                 row_bytes = (double)gs_store_array(b->draws.store, GS_ARRAY_FEATURES)->row_bytes,
                 part = GS_MIN(TYPICAL_SHARE * most / vertices, 1);

    if (cache.slots == 0)
        return TYPICAL_SHARE * most * GS_MAX(row_bytes, (double)GS_BLOCK_BYTES);
    const double items = ceil(vertices / cache.rows_per_item);
    return gs_group_misses(items * (1 - pow(1 - part, cache.rows_per_item)), items, cache.slots, of) *
           (double)cache.item_bytes;
}

/* How rows are read: of `side` of a device's batches at once. */
typedef struct reading {
    gs_group_read once; /* of all of these, in the mean */
    double seconds;     /* of a batch with its reads, as far as it waits for these, in the mean */
} reading;

/* Reads of what comes next go ahead as far as the ring has room, but for a group's first ones. All devices read from
 * one disk. False: there is no room for so many. */
static bool predict_reading(reading *out, gs_run_batches *b, uint64_t host, uint32_t side)
{
    const gs_batches *const lead = gs_run_batches_lead(b);
    const gs_session *const s = gs_batches_session(lead);
    const gs_cost *const c = &s->machine.cost;
    const uint32_t of = GS_MAX(b->reading_group / b->devices, 1), most = b->shape.limits.vertices;
    const gs_row_cache_shape cache = gs_row_cache_shape_of(b->draws.store, b->cache_bytes / b->devices, of, most, side);
    const double vertices = (double)gs_store_get_info(b->draws.store)->vertices, typical = TYPICAL_SHARE * most,
                 others = pow(1 - GS_MIN(typical / vertices, 1), (double)side * cache.rows_per_item),
                 items = ceil(vertices / GS_MAX(cache.rows_per_item, 1));
    const uint32_t reads = (uint32_t)gs_div_up(of, side);

    if (cache.slots == 0 || cache.side != side)
        return false;
    const uint64_t block = gs_align_up(cache.item_bytes, GS_BLOCK_BYTES), gap = gs_batches_gap(c),
                   row_floats = gs_store_array(b->draws.store, GS_ARRAY_FEATURES)->row_bytes / sizeof(float);
    const double misses = gs_group_misses(items * (1 - others), items, cache.slots, reads);
    out->once = gs_group_read_of(misses, items, block, gap > 0 ? gap : GS_BLOCK_BYTES, c);
    out->once.seconds *= b->devices;
    const gs_work check = {.kind = GS_WORK_CHECK, .amount = {1, out->once.bytes}},
                  copy = {.kind = GS_WORK_MEMORY, .amount = {1, 2 * typical * (double)row_floats}};
    const double ring = GS_MAX(RING_SHARE * (double)host / b->devices, (double)GS_BATCH_RING),
                 computing = side * gs_batches_seconds(lead), waits = out->once.seconds,
                 ahead = GS_MIN(GS_MIN(ring / GS_MAX(out->once.bytes, 1), 1) * waits, computing),
                 copies = (side - 1) * gs_cost_seconds(c, &copy);
    out->seconds = (reads * (computing + gs_cost_seconds(c, &check) + copies + waits) - (reads - 1) * ahead) /
                   (reads * side);
    return true;
}

/* As many batches at once as are predicted to be done soonest, of those that cut a group evenly. */
static void choose_side(gs_run_batches *b, uint64_t host)
{
    const uint32_t most = GS_MAX(b->reading_group / b->devices, 1);
    double least = INFINITY;
    reading r;

    b->side = 1;
    for (uint32_t side = 1; side <= most && predict_reading(&r, b, host, side); side++) {
        if (side > 1 && gs_div_up(most, side) == gs_div_up(most, side - 1))
            continue; /* as many reads of fewer batches have more room for a cache */
        const double read = r.once.seconds / side;
        b->read_seconds[0] = side == 1 ? read : b->read_seconds[0];
        if (r.seconds >= (1 - WORTHWHILE) * least)
            continue;
        least = r.seconds;
        b->side = side;
        b->read_seconds[1] = read;
    }
}

/* Bytes that are read for a batch. */
static double reads_of(gs_run_batches *b, uint64_t host, uint32_t group)
{
    const gs_draws *const d = &b->draws;
    const uint32_t passes = d->in->columns != NULL ? gs_sampler_passes(&d->options, d->out != NULL) : 0;
    const double edges = (double)(d->in->edges * sizeof(uint32_t)) * passes / group;
    return edges + (b->room.keeps ? 0 : feature_reads(b, host, group));
}

/* The longest known future that is worth its memory. */
static void choose_group(gs_run_batches *b, uint64_t host)
{
    const uint64_t room = (uint64_t)(LARGE_GROUP_SHARE * (double)host);
    double least = reads_of(b, host, b->draws.group);

    for (uint64_t group = 2ull * b->draws.group;
         group <= GS_MIN(GS_BATCH_GROUP, gs_sampler_batches(b->draws.sampler)) &&
         group * b->shape.limits.arena_bytes <= room;
         group *= 2) {
        const double reads = reads_of(b, host, (uint32_t)group);
        if (reads < (1 - WORTHWHILE) * least) {
            least = reads;
            b->draws.group = (uint32_t)group;
        }
    }
}

static void set_room(gs_run_batches *b)
{
    b->room.group = b->draws.group;
    b->room.side = b->side;
    gs_batch_devices_set_room(b->engine, &b->room);
}

/* The cache is as large as without a ring: who reads ahead does not read more. A device's next batch is known where a
 * group has two of its batches. */
static void choose_ring(gs_run_batches *b, uint64_t host)
{
    const double share = RING_SHARE * (double)host / b->devices,
                 reads = b->side > 1 ? share : GS_MIN(feature_reads(b, host, b->reading_group), share);
    const bool follows = b->reading_group >= 2 * b->devices;

    b->most_ring = follows ? GS_MAX(gs_align_up((uint64_t)reads, GS_MIB), GS_BATCH_RING) : 0;
    b->room.ring = b->room.keeps ? 0 : b->most_ring;
    set_room(b);
}

/* Rows of features are in memory from one batch to the next, where not all can be. */
static void choose_cache(gs_run_batches *b, const gs_session_config *config)
{
    const uint64_t budget = config->options->host_memory, host = budget != 0 ? budget : gs_machine_free_memory(),
                   all = gs_batch_rows_bytes(b->draws.store);
    const bool shard = gs_store_get_shard(b->draws.store) != NULL; /* whose rows all ask for, so no future is known */

    b->room.keeps = all <= left_of(b, host, b->draws.group) && !config->options->no_cache;
    if (!shard && (!b->room.keeps || (b->draws.in->columns != NULL && all <= left_of(b, host, b->draws.group) / 2)))
        choose_group(b, host);
    b->reading_group = b->draws.group;
    const uint64_t left = left_of(b, host, b->draws.group);
    if (shard || (b->room.keeps && b->draws.in->columns == NULL))
        b->draws.group = group_of(b, GS_MIN(b->draws.group, GS_MAX(BATCHES_PER_THREAD * b->draws.threads, b->step)));
    b->cache_bytes = shard ? 0 : (uint64_t)(CACHE_SHARE * (double)(b->room.keeps ? all : left));
    b->room.cache = b->room.keeps ? 0 : b->cache_bytes;
    choose_side(b, host);
    set_room(b);
    if (!shard)
        choose_ring(b, host);
    b->room.slots = !config->options->no_pipeline && gs_batch_devices_has_slots(b->engine, b->device_memory) ? 2 : 1;
    set_room(b);
    b->draws.ahead = gs_batches_sends(gs_run_batches_lead(b)) && !config->options->no_pipeline &&
                     (config->options->epochs > 1 || b->draws.group < gs_sampler_batches(b->draws.sampler));
}

bool gs_run_batches_spread(gs_run_batches *b, uint32_t share)
{
    const bool had = b->spreads;
    const gs_sampler *const drawn = b->may_draw ? b->draws.sampler : NULL;

    b->spreads = share > 0 && b->may_spread && gs_batch_devices_spread(b->engine, b->device_memory, share, drawn);
    if (!b->spreads)
        gs_batch_devices_do_not_spread(b->engine);
    if (!b->draws.seeds_alone)
        b->drawn_group = b->draws.group;
    b->draws.seeds_alone = gs_batches_draw_bytes(gs_run_batches_lead(b)) > 0;
    b->draws.group = b->draws.seeds_alone ? GS_MIN(GS_BATCH_GROUP, gs_run_batches_count(b)) : b->drawn_group;
    set_room(b);
    return had || b->spreads;
}

void gs_run_batches_describe_devices(const gs_run_batches *b, gs_plan_report *out)
{
    out->batch_devices = b->devices;
    out->batch_group = b->draws.group;
    out->batch_ring = b->room.ring;
    out->batch_side = b->room.keeps ? 0 : gs_batches_side(gs_run_batches_lead(b));
    if (out->batch_side > 0 && b->read_seconds[0] > 0) {
        out->batch_read_alone_seconds = b->read_seconds[0];
        out->batch_read_seconds = b->read_seconds[out->batch_side > 1];
    }
    out->draw_bytes = gs_batches_draw_bytes(gs_run_batches_lead(b));
    out->draw_seconds = gs_batch_devices_deal(b->engine)->step * gs_run_batches_drawing(b);
    const gs_batch_lanes lanes = gs_batch_devices_lanes(b->engine);
    const gs_batch_drawing drawing = {.seconds = gs_run_batches_drawing(b), .batches = gs_run_batches_count(b),
                                      .group = b->draws.group, .ahead = b->draws.ahead};
    out->step_seconds = gs_batch_devices_seconds(b->engine, &drawing);
    out->pick_seconds = lanes.pick;
    out->send_seconds = lanes.send;
    out->compute_seconds = lanes.compute;
    out->steps = (uint32_t)gs_div_up(gs_sampler_batches(b->draws.sampler), gs_batch_devices_deal(b->engine)->step);
    for (uint32_t d = 0; d < b->devices; d++) {
        out->batch_rows[d] = gs_batches_kept_rows(gs_batch_devices_at(b->engine, d));
        out->batch_share[d] = gs_batch_devices_deal(b->engine)->share[d];
    }
}

uint32_t gs_run_batches_rates(const gs_run_batches *b, double rate[GS_BATCH_DEVICES])
{
    memcpy(rate, gs_batch_devices_deal(b->engine)->rate, GS_BATCH_DEVICES * sizeof(*rate));
    return b->devices;
}

/* Halves the group, where that leaves a batch for each device. */
static bool halve_group(gs_run_batches *b)
{
    const uint32_t had = b->draws.group;
    b->draws.group = group_of(b, b->draws.group / 2);
    return b->draws.group < had;
}

/* First no batch is sent ahead, then no group is drawn ahead. Where all features stay, half of the group goes and half
 * of that; then a cache takes their place, which may be more, but less can be made of it. Then the ring becomes the
 * least, reads do not go ahead, what a small group has not goes, then the cache, and half of the group. */
bool gs_run_batches_shrink(gs_run_batches *b)
{
    const uint64_t had = gs_run_batches_bytes(b);
    gs_batch_room *const room = &b->room;

    if (room->slots > 1) {
        room->slots = 1;
    } else if (b->draws.ahead) {
        b->draws.ahead = false;
    } else if (room->ring > 0) {
        room->ring = room->ring > GS_BATCH_RING ? GS_BATCH_RING : 0;
    } else if (room->keeps && b->draws.group > b->devices) {
        (void)halve_group(b);
    } else if (room->keeps) {
        *room = (gs_batch_room){.cache = b->cache_bytes, .ring = b->most_ring, .slots = 1};
        b->draws.group = b->reading_group;
    } else if (b->draws.group <= SMALL_GROUP || !halve_group(b)) {
        room->cache = 0;
        set_room(b);
        if (gs_run_batches_bytes(b) == had)
            (void)halve_group(b);
        return gs_run_batches_bytes(b) < had;
    }
    set_room(b);
    return true;
}

/* With a batch of the middle of an epoch for predictions, where drawing one reads nothing. */
static gs_status open_devices(gs_run_batches *b, const gs_session_config *config)
{
    gs_batch_arena *arena = NULL;
    gs_batch typical = {0};
    gs_status st = GS_OK;

    if (b->draws.in->columns == NULL && (st = gs_batch_arena_make(&arena, b->draws.sampler)) == GS_OK)
        st = gs_sampler_draw(&typical, b->draws.sampler, arena, 0, gs_sampler_batches(b->draws.sampler) / 2);
    if (st == GS_OK || st == GS_EBUDGET) /* it has no room */
        st = gs_batch_devices_open(&b->engine, config, typical.edges > 0 ? &typical : NULL);
    gs_batch_arena_free(arena);
    return st;
}

gs_status gs_run_batches_open(gs_run_batches **out, const gs_session_config *config, bool stream)
{
    GS_ENDS(gs_run_batches_close_at) gs_run_batches *b = gs_calloc(1, sizeof(*b));
    gs_session_config own = *config;

    GS_NEED(b != NULL, "out of memory");
    own.batch = &b->shape;
    GS_TRY(open_draws(b, config, stream));
    GS_TRY(open_devices(b, &own));
    b->device_memory = config->options->device_memory;
    b->draws.deal = gs_ranks_count() > 1 ? gs_batch_devices_deal(b->engine) : NULL;
    b->draws.own = gs_ranks_self();
    choose_cache(b, config);
    b->may_spread = !config->options->no_spread && !config->options->no_cache &&
                    gs_store_get_shard(b->draws.store) == NULL;
    b->may_draw = !config->options->no_draw && b->devices == 1 && gs_batches_per_step_of(config->options) == 1;
    b->traces = config->options->trace != NULL;
    *out = GS_HANDED_OVER(b);
    return GS_OK;
}

void gs_run_batches_close(gs_run_batches *b)
{
    if (b == NULL)
        return;
    gs_batch_devices_close(b->engine);
    gs_batch_trace_close(&b->trace);
    gs_run_pairs_close(b->pairs);
    gs_draws_close(&b->draws);
    gs_free(b);
}

gs_run_pairs *gs_run_batches_take_pairs(gs_run_batches *b)
{
    gs_run_pairs *const pairs = b->pairs;

    for (uint32_t d = 0; d < b->devices && pairs != NULL; d++)
        gs_batches_set_loss(gs_batch_devices_at(b->engine, d), gs_run_pairs_loss(pairs, d));
    b->pairs = NULL;
    return pairs;
}

uint64_t gs_run_batches_bytes(const gs_run_batches *b)
{
    return gs_batch_devices_bytes(b->engine) + gs_draws_group_bytes(&b->draws) + b->pair_bytes +
           (b->traces ? gs_batch_trace_bytes(gs_run_batches_count(b)) : 0);
}

gs_status gs_run_batches_start(gs_run_batches *b, gs_session *whole)
{
    GS_TRY(gs_batch_devices_start(b->engine, whole));
    if (b->traces)
        GS_TRY(gs_batch_trace_open(&b->trace, gs_run_batches_count(b)));
    return gs_draws_start(&b->draws);
}

void gs_run_batches_pause(gs_run_batches *b)
{
    if (b != NULL)
        gs_batch_devices_pause(b->engine);
}

/* ---- timed --------------------------------------------------------------- */

gs_status gs_run_batches_write_trace(const gs_run_batches *b, const char *other, FILE *out, const char *path)
{
    return gs_batch_trace_write(&b->trace, b->devices, other, out, path);
}

void gs_run_batches_observe(gs_run_batches *b, const gs_epoch_report *e, gs_profile *p)
{
    const gs_fit fit = gs_batches_take_fit(gs_run_batches_lead(b));
    gs_profile_add_batches(p, e, &fit);
    if (b->draws.in->columns != NULL) /* a disk's seconds are no thread's */
        return;
    p->draw_seconds += b->draws.seconds * b->draws.threads;
    p->draw_amount += b->draws.amount;
}

double gs_run_batches_drawing(const gs_run_batches *b)
{
    return gs_batches_drawing(gs_run_batches_lead(b)) / b->draws.threads;
}

uint32_t gs_run_batches_count(const gs_run_batches *b) { return gs_sampler_batches(b->draws.sampler); }

/* ---- a step -------------------------------------------------------------- */

/* 0 where none are clipped. Over the rows in the order of the batches: no budget changes a bit. Each rank has rows of
 * its own. */
static gs_status gradient_norm(double *out, const gs_run *r, const gs_step_rows *b)
{
    const gs_program *const p = r->session->program;
    const bool apart = gs_ranks_count() > 1;
    double sum = 0;

    *out = 0;
    if (r->optim.clip <= 0)
        return GS_OK;
    const double rest = gs_optim_norm(&r->session->run.params);
    sum = apart ? 0 : rest * rest;

    for (uint32_t t = 0; t < p->tables; t++) {
        const gs_row_array x = gs_step_rows_gradient(b, t);
        sum = x.row == NULL ? sum : gs_run__add_squares(sum, x.row, gs_step_rows_list(b)->rows, x.width);
    }
    if (apart && p->tables > 0) {
        GS_TRY(gs_ranks_sum_f64(&sum, 1));
        sum += rest * rest;
    }
    *out = p->tables > 0 ? sqrt(sum) : rest;
    return GS_OK;
}

/* The optimiser's step after a batch or several, with the learned rows of their vertices. */
static gs_status step_batch(gs_run *r)
{
    const gs_step_rows *const b = gs_batch_devices_rows(r->batches->engine);
    gs_session *const s = r->session;
    double norm;

    GS_TRY(gradient_norm(&norm, r, b));
    const gs_update u = gs_optim_next(&r->optim, norm);
    gs_optim_apply(&u, &s->run.params);
    for (uint32_t t = 0; t < s->program->tables; t++) {
        const gs_row_array gradient = gs_step_rows_gradient(b, t);
        if (gradient.row != NULL)
            GS_TRY(gs_run__step_rows(r, &u, &s->program->table[b->tables->of[t]], gs_step_rows_list(b), gs_row_at,
                                     &gradient));
    }
    return GS_OK;
}

/* ---- who has the parameters ---------------------------------------------- */

/* A GPU that is alone steps by itself on batches that are a step each, within an epoch, with the bits of the host's
 * step: so not where gradients are clipped, as it adds up their norm in another order. */

static bool device_steps(const gs_run *r)
{
    return r->batches->devices == 1 && r->optim.clip == 0 && r->session->program->tables == 0 &&
           gs_batches_can_step(gs_run_batches_lead(r->batches));
}

static gs_status give_params(gs_run *r)
{
    gs_run_batches *const b = r->batches;

    if (!b->there)
        GS_TRY(gs_batches_keep_params(gs_run_batches_lead(b)));
    b->there = true;
    return GS_OK;
}

/* The host has them again, as the last step left them, which is looked at. */
static gs_status take_params(gs_run *r, uint32_t epoch)
{
    gs_run_batches *const b = r->batches;

    if (!b->there)
        return GS_OK;
    const bool stepped = b->stepped;
    b->there = b->stepped = false;
    const gs_status st = gs_batches_fetch_params(gs_run_batches_lead(b), stepped);
    if (st != GS_OK) {
        r->whole = false;
        return st;
    }
    return stepped ? gs_run__check_step(r, epoch) : GS_OK;
}

/* The device knows of the steps before the pass whether they were good; the host looks at what it has. */
static gs_status check_pass(gs_run *r, uint32_t epoch, double loss)
{
    const bool good = isfinite(loss) && gs_device_stepped_well(gs_batches_device(gs_run_batches_lead(r->batches)));
    const gs_status st = r->batches->there && !good ? take_params(r, epoch) : GS_OK;

    return st != GS_OK || r->batches->there ? st : gs_run__check_pass(r, epoch, loss);
}

static gs_status step_there(gs_run *r)
{
    const gs_update u = gs_optim_next(&r->optim, 0);

    r->has_previous = r->batches->stepped = true;
    return gs_device_step((gs_device *)(uintptr_t)gs_batches_device(gs_run_batches_lead(r->batches)), &u);
}

/* ---- an epoch ------------------------------------------------------------ */

/* Once the next group of the epoch is drawn, its batches are picked and sent behind those of this one. */
static void follow(gs_run_batches *b, uint32_t epoch)
{
    const gs_draws_group *const next = b->followed == NULL ? gs_draws_next(&b->draws) : NULL;

    if (next == NULL || next->epoch != epoch || !gs_batch_devices_follow(b->engine, next->batch, next->held))
        return;
    b->followed = next;
    b->followed_epoch = epoch;
    b->followed_first = next->first;
}

/* The batch of this number; with it a group is sampled, where it is not in memory. */
static gs_status draw(const gs_batch **out, gs_run_batches *b, uint32_t epoch, uint32_t number)
{
    bool drew;

    GS_TRY(gs_draws_take(out, &drew, &b->draws, epoch, number));
    const gs_draws_group *const group = gs_draws_now(&b->draws);
    if (drew) {
        if (b->followed != group || b->followed_epoch != epoch || b->followed_first != group->first)
            gs_batch_devices_begin(b->engine, group->batch, group->held);
        b->followed = NULL;
        gs_batch_trace_add(&b->trace, (gs_batch_span){.begin = group->began, .end = group->ended, .batch = number,
                                                      .part = GS_BATCH_DRAW});
    }
    follow(b, epoch);
    return GS_OK;
}

/* Sums of a step's passes. */
typedef struct pass_sums {
    double loss, mass;
} pass_sums;

/* Seconds of a device. */
typedef struct busy {
    double pick, copy, compute, edge, stall;
} busy;

static double total(const busy *x) { return x->pick + x->copy + x->compute + x->stall; }

/* Passes of devices that worked at the same time took as long as those of the device that was busy longest. */
static void add_passes(gs_run_batches *b, gs_epoch_report *e, const gs_batch_pass *pass, uint32_t passes,
                       pass_sums *sums)
{
    busy of[GS_BATCH_DEVICES] = {0};
    const busy *longest = of;

    for (const gs_batch_pass *p = pass; p < pass + passes; p++) {
        gs_batch_trace_add_pass(&b->trace, p);
        const gs_exec_stats *const x = &p->stats;
        busy *const d = &of[p->device];
        sums->loss += x->metrics.loss_sum;
        sums->mass += p->mass;
        d->pick += p->pick_seconds;
        d->copy += p->sent - p->sending + x->entered - p->started + p->ended - x->computed;
        d->compute += x->compute_seconds;
        d->edge += x->edge_seconds;
        d->stall += x->stall_seconds;
        longest = total(d) > total(longest) ? d : longest;
        e->read_bytes += x->read_bytes;
        e->copied_in_bytes += x->copied_in_bytes;
        e->copied_out_bytes += x->copied_out_bytes;
        e->forwarded_bytes += x->forwarded_bytes;
    }
    e->pick_seconds += longest->pick;
    e->copy_seconds += longest->copy;
    e->compute_seconds += longest->compute;
    e->edge_seconds += longest->edge;
    e->stall_seconds += longest->stall;
}

/* A batch for which there is no room: its targets in parts, halved until each has room, in the arena where the batch is
 * not. */
static gs_status run_parts(gs_run *r, gs_epoch_report *e, const gs_batch *whole, uint32_t key, pass_sums *sums)
{
    gs_run_batches *const b = r->batches;
    const uint32_t device = gs_batch_deal_of(gs_batch_devices_deal(b->engine), whole->number);
    gs_batches *const engine = gs_batch_devices_at(b->engine, device);
    gs_batch_arena *const arena = gs_draws_part_arena(&b->draws, whole);
    const uint32_t targets = gs_sampler_targets(b->draws.sampler, whole->number);
    uint32_t count = (targets + 1) / 2, part = 0;
    gs_status st = GS_OK;

    gs_draws_wait(&b->draws);
    gs_batches_begin_parts(engine);
    for (uint32_t first = 0; first < targets && st == GS_OK;) {
        gs_batch batch;
        st = gs_sampler_draw_part(&batch, b->draws.sampler, arena, whole->epoch, whole->number, first, count);
        if (st == GS_EBUDGET && count > 1) {
            count = (count + 1) / 2;
            st = GS_OK;
            continue;
        }
        gs_batch_pass pass = {.batch = &batch, .device = device, .key = gs_batch_part_key(key, part++)};
        if (st != GS_OK || (st = gs_batches_run_part(engine, &pass)) != GS_OK)
            break;
        add_passes(b, e, &pass, 1, sums);
        first += batch.targets;
    }
    gs_batches_end_parts(engine);
    return st;
}

/* A batch that is a step: gradients are of the mean at once, which rounds less. *ran: not where the device that drew it
 * has no room, and it is to go in parts. */
static gs_status run_alone(gs_run *r, gs_epoch_report *e, const gs_batch *batch, uint32_t key, pass_sums *sums,
                           bool *ran)
{
    gs_batch_pass pass = {.batch = batch, .key = key};
    const gs_status st = gs_batch_devices_run_alone(r->batches->engine, &pass);

    *ran = !pass.overflows;
    if (*ran)
        add_passes(r->batches, e, &pass, 1, sums);
    else
        gs_draws_overflow(&r->batches->draws, batch->number);
    return st;
}

/* What can run at the same time of `count` batches from `first` on, *done of them: those of the group that is in
 * memory, up to one without room. That one follows, in parts. So gradients are added up in the order of a device's
 * batches, however many are a group. */
static gs_status run_round(gs_run *r, gs_epoch_report *e, uint32_t first, uint32_t count, uint32_t *done,
                           bool *teaches, pass_sums *sums)
{
    gs_run_batches *const b = r->batches;
    const gs_batch_deal *const deal = gs_batch_devices_deal(b->engine);
    const uint32_t key = (e->epoch - 1) * r->part.of + first + 1; /* of dropout */
    gs_batch_pass pass[GS_BATCH_ROUND] = {0};
    const gs_batch *batch;
    uint32_t n = 0;

    GS_TRY(draw(&batch, b, e->epoch, first));
    const gs_draws_group *const group = gs_draws_now(&b->draws);
    const uint32_t held = GS_MIN(GS_MIN(count, GS_BATCH_ROUND), group->first + group->held - first);
    for (; n < held && !batch[n].overflows; n++) {
        const bool teaching = batch[n].targets > 0;
        *teaches |= teaching;
        pass[n] = (gs_batch_pass){.batch = teaching ? &batch[n] : NULL, .key = key + n,
                                  .device = gs_batch_deal_of(deal, first + n)};
    }
    if (n > 0)
        GS_TRY(gs_batch_devices_run(b->engine, pass, n));
    add_passes(b, e, pass, n, sums);
    *done = n;
    if (n == held)
        return GS_OK;
    *done = n + 1;
    *teaches = true;
    return run_parts(r, e, &batch[n], key + n, sums);
}

/* The passes of `count` batches from `first` on. *teaches: there was a target. */
static gs_status run_passes(gs_run *r, gs_epoch_report *e, uint32_t first, uint32_t count, bool *teaches,
                            pass_sums *sums)
{
    gs_run_batches *const b = r->batches;
    const gs_batch *batch;
    bool ran = false;
    uint32_t n = 0;

    GS_TRY(draw(&batch, b, e->epoch, first));
    if (count == 1 && batch->targets > 0 && !batch->overflows &&
        gs_batch_deal_of(gs_batch_devices_deal(b->engine), first) == 0) {
        *teaches = true;
        if (device_steps(r))
            GS_TRY(give_params(r));
        GS_TRY(run_alone(r, e, batch, (e->epoch - 1) * r->part.of + first + 1, sums, &ran));
        if (ran)
            return GS_OK;
    }
    GS_TRY(take_params(r, e->epoch));
    gs_batch_devices_clear(b->engine);
    for (uint32_t done = 0; done < count; done += n)
        GS_TRY(run_round(r, e, first + done, count - done, &n, teaches, sums));
    const double reduce = gs_now();
    GS_TRY(gs_batch_devices_reduce(b->engine, sums->mass));
    e->step_seconds += gs_now() - reduce;
    return GS_OK;
}

/* A step: the passes of its batches and what the optimiser makes of them, after which the weights are whole again. */
static gs_status train_step(gs_run *r, gs_epoch_report *e, uint32_t first, uint32_t count)
{
    pass_sums sums = {0};
    bool teaches = false;
    gs_status st = run_passes(r, e, first, count, &teaches, &sums);

    if (st != GS_OK || !teaches || (st = check_pass(r, e->epoch, sums.loss)) != GS_OK)
        return st;
    r->part.loss += sums.loss;
    r->part.mass += sums.mass;
    const double update = gs_now();
    if (!r->batches->stepped || r->session->run.params.fixed_elements > 0) /* else the device has the copy */
        gs_run__before_step(r);
    r->whole = false;
    GS_TRY(r->batches->there ? step_there(r) : step_batch(r));
    e->step_seconds += gs_now() - update;
    gs_batch_trace_add(&r->batches->trace, (gs_batch_span){.begin = update, .end = gs_now(), .batch = first,
                                                           .part = GS_BATCH_STEP});
    st = r->batches->there ? GS_OK : gs_run__check_step(r, e->epoch);
    r->whole = st == GS_OK;
    return st;
}

/* Until they are done, or it is stopped. */
static gs_status train_steps(gs_run *r, gs_epoch_report *e)
{
    gs_epoch_part *const p = &r->part;

    while (p->batches < p->of) {
        const uint32_t count = GS_MIN(gs_batches_per_step_of(&r->options), p->of - p->batches);
        GS_TRY(gs_run__check_stop(r));
        GS_TRY(train_step(r, e, p->batches, count));
        p->batches += count;
        if (p->batches < p->of && (gs_run__checkpoint_is_due(r) || gs_run__tables_are_shared(r))) {
            GS_TRY(take_params(r, e->epoch));
            GS_TRY(gs_run__checkpoint_if_due(r));
        }
    }
    return GS_OK;
}

/* The parameters of a pass that failed come home, too: they are those of the step before it. */
static gs_status end_steps(gs_run *r, uint32_t epoch, gs_status st)
{
    gs_failure first = {0};

    gs_failure_keep(&first, st);
    const gs_status taken = take_params(r, epoch);
    return st == GS_OK || (st == GS_EINTERRUPTED && taken != GS_OK) ? taken : gs_failure_tell(&first);
}

gs_status gs_run_batches_epoch(gs_run *r, gs_epoch_report *e)
{
    gs_run_batches *const b = r->batches;
    gs_epoch_part *const p = &r->part;
    const uint64_t read = gs_draws_read(&b->draws), *const swept = r->session->run.swept;
    const uint64_t before[3] = {swept[0], swept[1], swept[2]};

    gs_batch_devices_quiet(b->engine); /* of an epoch that was stopped */
    b->followed = NULL;
    b->draws.seconds = b->draws.amount = b->draws.waited = 0;
    b->trace.spans = 0;
    gs_draws_order(&b->draws, !gs_control_shuffles(&r->control));
    b->draws.last_epoch = gs_control_keeps_order(&r->control) ? r->options.epochs : 0;
    p->of = gs_sampler_batches(b->draws.sampler);
    GS_TRY(end_steps(r, e->epoch, train_steps(r, e)));
    e->sample_seconds = b->draws.seconds;
    e->stall_seconds += b->draws.waited;
    e->read_bytes += gs_draws_read(&b->draws) - read + swept[0] - before[0];
    e->written_bytes += swept[1] - before[1];
    e->sent_bytes += swept[2] - before[2];
    return GS_OK;
}
