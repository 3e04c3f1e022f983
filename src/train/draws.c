/* draws.c - the batches of a store: which lists are in memory, what a batch may have, which group is drawn. */
#include "train/draws.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/option_table.h"
#include "base/size.h"
#include "ranks/ranks.h"
#include "session/edges.h"
#include "session/store_rows.h"
#include "train/control.h" /* gs_shuffles */
#include "train/options.h"

/* -- the expected reads of a cache that sees one group of batches ahead. */

#define SETTLING 6u /* groups after which what the cache holds has settled */

/* What is cached, in items: used next by batch d of the group; not used by the group any more. */
typedef struct holding {
    double due[GS_GROUP_FORESEEN];
    double unknown;
} holding;

/* Items whose next use is not known yet meet a new group of `group` batches, each of which uses a share p of all. */
static void foresee(holding *h, double p, uint32_t group)
{
    double left = h->unknown;
    for (uint32_t d = 0; d < group; d++) {
        h->due[d] = left * p;
        left -= h->due[d];
    }
    h->unknown = left;
}

/* Gives up what is used last until at most `slots` stay. */
static void evict(holding *h, double slots, uint32_t next, uint32_t group)
{
    double all = h->unknown;
    for (uint32_t d = next; d < group; d++)
        all += h->due[d];
    for (uint32_t d = group + 1; d-- > next && all > slots;) {
        double *const last = d == group ? &h->unknown : &h->due[d];
        const double gone = GS_MIN(*last, all - slots);
        *last -= gone;
        all -= gone;
    }
}

/* One group; items that it reads. */
static double run_group(holding *h, double uses, double p, double slots, uint32_t group)
{
    double misses = 0;
    foresee(h, p, group);
    for (uint32_t k = 0; k < group; k++) {
        double left = uses;
        misses += uses - GS_MIN(h->due[k], uses);
        h->due[k] = 0;
        for (uint32_t d = k + 1; d < group; d++) {
            h->due[d] += left * p;
            left -= left * p;
        }
        h->unknown += left;
        evict(h, slots, k + 1, group);
    }
    return misses;
}

double gs_group_misses(double uses, double items, double slots, uint32_t group)
{
    const double p = GS_MIN(uses / items, 1);
    holding h = {.unknown = GS_MIN(slots, items)}; /* it fills up in time */
    double misses = 0;

    assert(group > 0 && group <= GS_GROUP_FORESEEN && items > 0);
    for (uint32_t i = 0; i < SETTLING * GS_GROUP_FORESEEN / group; i++)
        misses = run_group(&h, uses, p, slots, group);
    return misses / group;
}

/* Items are read with the same chance p each, so a gap is as long as k items with a chance of (1 - p)^k. */
gs_group_read gs_group_read_of(double misses, double items, uint64_t item_bytes, uint64_t gap, const gs_cost *c)
{
    const double p = GS_MIN(misses / items, 1), along = floor((double)gap / (double)item_bytes),
                 begin = c->block_seconds > 0 ? c->block_seconds : c->request_seconds;
    gs_group_read r = {0};

    if (p <= 0)
        return r;
    /* Those that are not read along, of along + 1 / p items in the mean. */
    const double gaps = misses * pow(1 - p, along + 1);
    r.requests = GS_MAX(gaps, 1);
    r.bytes = (items - gaps * (along + 1 / p)) * (double)item_bytes;
    r.seconds = r.bytes / c->read_bps + r.requests * begin;
    return r;
}

/* Most shares of the host's memory: for the in-edges of all vertices, and for a group of more than one batch. */
#define LISTS_SHARE 0.6
#define GROUP_SHARE 0.5
/* The program alone takes more, so a smaller budget is refused, once it is known what would do. */
#define LEAST_HOST (16 * GS_MIB)
/* Lists of so many bytes and more may stay in the store: what reads them there has a window of as much. */
#define STREAMED_FROM (8 * GS_MIB)
/* Most share of the host's memory for batches that coefficients are made of. */
#define COVER_SHARE 0.25
/* An edge of the longest list, while lists are put in order by type. */
#define SORT_BYTES 48u
/* Batches drawn by trial, and from which size on these say what a batch has. */
#define TRIALS 16u
#define TRIED_TARGETS 256u

uint64_t gs_draws_list_bytes(const gs_draws *d) { return d->in->bytes + (d->out != NULL ? d->out->bytes : 0); }

static const gs_sampler_facts *facts_of(const gs_draws *d) { return gs_sampler_facts_of(d->options.kind); }

/* The rows of a split, or all. */
static gs_status list_targets(gs_draws *d, gs_split split, uint64_t most)
{
    GS_ENDS(gs_block_reader_close) gs_block_reader r = {0};
    gs_status st = GS_OK;

    if ((d->target = gs_malloc_array(most + 1, sizeof(*d->target))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the list of vertices that batches are of");
    if (split == GS_SPLIT_NONE) {
        for (d->targets = 0; d->targets < most; d->targets++)
            d->target[d->targets] = d->targets;
        return GS_OK;
    }
    st = gs_block_reader_open(&r, d->store, GS_ARRAY_SPLIT);
    while (gs_block_reader_more(&r, &st))
        for (uint64_t i = 0; i < r.bytes && d->targets < most; i++)
            if (((const uint8_t *)r.block)[i] == split)
                d->target[d->targets++] = (uint32_t)(r.at + i);
    return st;
}

/* Limits of batches in either order that epochs have. */
static gs_status fit_orders(gs_draws *d, gs_shuffles shuffles)
{
    uint32_t vertices = 0;
    uint64_t edges = 0;

    for (int ordered = 0; ordered < 2; ordered++) {
        if (shuffles == (ordered ? GS_SHUFFLES_ALWAYS : GS_SHUFFLES_NEVER))
            continue;
        d->options.ordered = ordered != 0;
        d->options.most_vertices = 0;
        d->options.most_edges = 0;
        GS_TRY(gs_sampler_fit(&d->options, d->in, d->out, d->target, d->targets, TRIALS));
        vertices = GS_MAX(vertices, d->options.most_vertices);
        edges = GS_MAX(edges, d->options.most_edges);
    }
    d->options.most_vertices = vertices;
    d->options.most_edges = edges;
    return GS_OK;
}

/* Of GS_EBUDGET: the host's memory of which `share` is `need`. */
static void note_need(const gs_draws_request *q, uint64_t host, double share, uint64_t need)
{
    if (q->refused != NULL)
        *q->refused = (gs_refusal){.host = GS_MAX((uint64_t)((double)need / share), host) + 1, .have = host};
}

/* What the program and the lists leave of the host's memory, for what is drawn before a run is planned. */
static uint64_t beside_lists(const gs_draws *d, uint64_t host)
{
    const uint64_t taken = gs_draws_list_bytes(d) + LEAST_HOST;
    return host > taken ? host - taken : 0;
}

/* A batch of many targets has about as many rows as any other, and far fewer than its fanouts could reach. */
static gs_status narrow_limits(gs_draws *d, const gs_draws_request *q, uint64_t host)
{
    const uint32_t coverage = d->options.coverage;
    const bool parts = facts_of(d)->has_parts; /* of which a row could be in several */
    bool drawn = d->options.batch_size >= TRIED_TARGETS && !(parts && q->all_there);
    gs_status st;

    for (uint32_t h = 0; h < d->options.hops; h++)
        drawn &= d->options.fanout[h] > 0;
    if (!drawn)
        return GS_OK;
    if (d->in->columns != NULL)
        d->options.arena_bytes = GS_MAX(GS_MIN((uint64_t)(GROUP_SHARE * (double)host), beside_lists(d, host)), 1);
    d->options.coverage = 0; /* coefficients do not change what a batch has */
    if ((st = fit_orders(d, (gs_shuffles)gs_choice(q->options, shuffle))) == GS_EBUDGET)
        note_need(q, host, GROUP_SHARE, d->options.arena_bytes);
    d->options.coverage = coverage;
    d->options.arena_bytes = 0; /* limits do not depend on the budget */
    return st;
}

bool gs_draws_may_stream(const gs_draws *d)
{
    return !d->options.weighted && gs_store_get_shard(d->store) == NULL &&
           (d->in == NULL || (d->in->columns == NULL && d->in->edges * sizeof(uint32_t) > STREAMED_FROM));
}

/* Lists of out-edges are needed, too. */
static bool needs_out(const gs_draws *d)
{
    return facts_of(d)->needs_out && !gs_store_get_info(d->store)->symmetric;
}

/* Ranks that have shards give each other their lists. */
static gs_status share_lists(const gs_draws *d, gs_adjacency *a)
{
    const gs_store_shard *const shard = gs_store_get_shard(d->store);
    return shard == NULL ? GS_OK : gs_adjacency_share(a, shard, gs_ranks_share_parts);
}

/* All in memory within `share` of it each, or none; with what puts them in order by type. */
static gs_status load_lists(gs_draws *d, uint64_t share)
{
    const volatile int *const stop = d->options.stop;
    const uint64_t each = SORT_BYTES + gs_store_chunks(d->store)->data.feature_bytes;
    const uint64_t sort = d->options.by_type ? each * gs_store_get_info(d->store)->max_in_degree : 0;
    gs_status st = gs_adjacency_load(&d->in, d->store, GS_BY_DEST, share - GS_MIN(sort, share), stop);

    if (st == GS_OK && (st = share_lists(d, d->in)) == GS_OK && d->options.by_type)
        st = gs_adjacency_sort_types(d->in);
    if (st == GS_OK && needs_out(d) &&
        (st = gs_adjacency_load(&d->out, d->store, GS_BY_SOURCE, share, stop)) == GS_OK)
        st = share_lists(d, d->out);
    if (st != GS_OK) {
        gs_adjacency_free(d->in);
        d->in = NULL;
    }
    return st;
}

/* Draws by weight look at the weights of whole lists, and a shard has not all of them. */
static gs_status refuse_streamed(gs_draws *d, const gs_draws_request *q, uint64_t host)
{
    char why[GS_ERROR_BYTES];

    snprintf(why, sizeof(why), "%s", gs_last_error());
    note_need(q, host, LISTS_SHARE, gs_adjacency_bytes(d->store) + gs_adjacency_read_bytes(d->store));
    return gs_fail(GS_EBUDGET, "%s: %s", d->options.weighted ? ".weighted: edges that are drawn by weight are in memory"
                                                             : ".sampler: edges of shards are in memory", why);
}

/* In memory, where they fit; else they stay in the store, which gives the same batches. */
static gs_status load_edges(gs_draws *d, const gs_draws_request *q, uint64_t host)
{
    const volatile int *const stop = d->options.stop;
    gs_status st = q->stream ? GS_EBUDGET
                             : load_lists(d, (uint64_t)(LISTS_SHARE * (double)host / (needs_out(d) ? 2 : 1)));

    if (st == GS_EBUDGET && (d->options.weighted || gs_store_get_shard(d->store) != NULL))
        return refuse_streamed(d, q, host);
    if (st == GS_EBUDGET && (st = gs_adjacency_stream(&d->in, d->store, GS_BY_DEST, stop)) == GS_OK && needs_out(d))
        st = gs_adjacency_stream(&d->out, d->store, GS_BY_SOURCE, stop);
    const bool counts = facts_of(d)->needs_out_places && !gs_store_get_info(d->store)->symmetric;
    if (st == GS_OK && counts)
        st = gs_adjacency_count(&d->out, d->store, GS_BY_SOURCE, stop);
    return st == GS_OK && counts ? share_lists(d, d->out) : st;
}

/* Coefficients of edges in the store: numbers of batches for each vertex. A budget for many of them is not tried, as
 * that draws all these batches. */
static gs_status check_coverage(gs_draws *d, const gs_draws_request *q, uint64_t host)
{
    const uint64_t list = 4ull * d->options.coverage * d->in->vertices,
                   need = gs_sampler_cover_bytes(d->in->vertices, d->options.coverage) + list,
                   share = (uint64_t)(LISTS_SHARE * (double)beside_lists(d, host));
    char have[16], want[16];

    d->options.cover_bytes = (uint64_t)(COVER_SHARE * (double)beside_lists(d, host));
    if (d->options.coverage == 0 || d->in->columns == NULL || need <= share)
        return GS_OK;
    if (need < host / 4)
        note_need(q, host, 1, (uint64_t)((double)need / LISTS_SHARE) + gs_draws_list_bytes(d) + LEAST_HOST);
    return gs_fail(GS_EBUDGET, ".coverage %u: takes %s where edges do not fit in memory, and .host_memory leaves %s "
                   "for it; use a smaller one, more memory, or leave it out", d->options.coverage,
                   gs_size_format(want, sizeof(want), need), gs_size_format(have, sizeof(have), share));
}

/* What the store has no use for, before anything is read. */
static gs_status check_sampler(const gs_draws *d, const gs_draws_request *q)
{
    const gs_train_options *const o = q->options;
    const gs_store_info *const info = gs_store_get_info(d->store);

    if (d->options.weighted && !info->weights)
        return gs_fail(GS_ENOTFOUND, ".weighted: the edges of %s have no weights; leave it out, or partition an "
                       "input whose edges have some", q->store);
    if (d->options.by_type && info->edge_types == 0)
        return gs_fail(GS_ENOTFOUND, ".by_type: the edges of %s have no types; leave it out", q->store);
    if (facts_of(d)->needs_edges && info->edges == 0)
        return gs_fail(GS_EINVAL, ".sampler %s: draws subgraphs by edges, and %s has none; use neighbor, cluster or "
                       "none", o->sampler, q->store);
    if (facts_of(d)->counts_intervals && d->options.batch_size > info->parts)
        return gs_fail(GS_EINVAL, ".batch_size %u%s: counts intervals of the store with .sampler %s, and %s has %u; "
                       "use 1 to %u", d->options.batch_size, o->batch_size == 0 ? " (the default)" : "", o->sampler,
                       q->store, info->parts, info->parts);
    if (d->options.coverage > 0 && info->weights && !o->ignore_edge_weights)
        return gs_fail(GS_EUNSUPPORTED, ".coverage: coefficients take the place of the edge weights of %s; leave it "
                       "out, or say .ignore_edge_weights", q->store);
    return GS_OK;
}

/* The rows that losses are of. */
static gs_status take_targets(gs_draws *d, const gs_draws_request *q)
{
    const gs_store_info *const info = gs_store_get_info(d->store);
    const uint64_t most[] = {info->vertices, info->train, info->valid, info->test};
    static const char *const names[] = {"", "training", "validation", "test"}, *const files[] = {"", "train", "valid",
                                                                                               "test"};

    if (q->target != NULL || q->open_seeds != NULL)
        return GS_OK;
    if (q->split != GS_SPLIT_NONE && (!gs_store_array(d->store, GS_ARRAY_SPLIT)->present || most[q->split] == 0))
        return gs_fail(GS_ENOTFOUND, "%s: the store has no %s vertices; its input needs a %s_idx.npy", q->store,
                       names[q->split], files[q->split]);
    return list_targets(d, q->split, most[q->split]);
}

static gs_status check_trial(const gs_draws *d, const gs_draws_request *q)
{
    return !q->trial || gs_store_get_shard(d->store) == NULL
               ? GS_OK
               : gs_fail(GS_ENOMEM, "a budget is not tried, as a shard has a part of the edges");
}

gs_status gs_draws_open(gs_draws *d, const gs_draws_request *q)
{
    const gs_train_options *const o = q->options;
    const uint64_t host = GS_MAX(o->host_memory != 0 ? o->host_memory : gs_machine_free_memory(), LEAST_HOST);

    *d = (gs_draws){.target = q->target, .targets = q->targets, .group = 1, .lock = PTHREAD_MUTEX_INITIALIZER,
                    .changed = PTHREAD_COND_INITIALIZER,
                    .threads = gs_ranks_threads(o->threads)};
    GS_TRY(gs_session_open_store(&d->store, q->store));
    GS_TRY(check_trial(d, q));
    GS_TRY(take_targets(d, q));
    GS_TRY(gs_batch_options_read(&d->options, o));
    GS_TRY(check_sampler(d, q));
    if (q->open_seeds != NULL)
        GS_TRY(q->open_seeds(q->context, &d->options.seeds, d->store));
    GS_TRY(load_edges(d, q, host));
    GS_TRY(check_coverage(d, q, host));
    GS_TRY(narrow_limits(d, q, host));
    GS_TRY(gs_sampler_open(&d->sampler, d->in, d->out, d->target, d->targets, &d->options));
    d->limits = *gs_sampler_limits(d->sampler);
    const uint64_t fit = (uint64_t)(GROUP_SHARE * (double)host) / d->limits.arena_bytes;
    d->most_group = (uint32_t)GS_MAX(GS_MIN(fit, GS_BATCH_GROUP), 1);
    return GS_OK;
}

void gs_draws_wait(gs_draws *d)
{
    const double began = gs_now();

    if (!d->has_thread)
        return;
    pthread_mutex_lock(&d->lock);
    while (d->made < d->asked)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
    d->waited += gs_now() - began;
}

/* The same for one group, which was asked for. */
static void wait_for(gs_draws *d, gs_draws_group *g)
{
    const double began = gs_now();

    pthread_mutex_lock(&d->lock);
    while (!g->drew)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
    d->waited += gs_now() - began;
}

static void end_thread(gs_draws *d)
{
    if (!d->has_thread)
        return;
    gs_draws_wait(d);
    pthread_mutex_lock(&d->lock);
    d->ends = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    d->has_thread = false;
}

static void free_arenas(gs_draws *d)
{
    for (uint32_t g = 0; g < 2; g++) {
        gs_free(d->drawn[g].seeds);
        d->drawn[g].seeds = NULL;
        for (uint32_t k = 0; k < GS_BATCH_GROUP; k++) {
            gs_batch_arena_free(d->drawn[g].arena[k]);
            d->drawn[g].arena[k] = NULL;
        }
    }
    gs_batch_arena_free(d->spare);
    d->spare = NULL;
}

void gs_draws_close(gs_draws *d)
{
    end_thread(d);
    free_arenas(d);
    gs_sampler_close(d->sampler);
    gs_adjacency_free(d->in);
    gs_adjacency_free(d->out);
    gs_free(d->target);
    gs_store_close(d->store);
    *d = (gs_draws){0};
}

/* Targets that a group has at most. */
static uint64_t seeds_of(const gs_draws *d) { return (uint64_t)d->group * gs_sampler_most_targets(d->sampler); }

uint64_t gs_draws_group_bytes(const gs_draws *d)
{
    const uint64_t group = d->seeds_alone ? seeds_of(d) * sizeof(uint32_t) : d->group * d->limits.arena_bytes;
    return (d->ahead ? 2 : 1) * group + (d->seeds_alone ? d->limits.arena_bytes : 0);
}

gs_status gs_draws_start(gs_draws *d)
{
    for (uint32_t g = 0; g < (d->ahead ? 2u : 1u); g++) {
        if (d->seeds_alone && (d->drawn[g].seeds = gs_malloc_array(seeds_of(d), sizeof(uint32_t))) == NULL)
            return gs_fail(GS_ENOMEM, "no memory for the targets of batches");
        for (uint32_t k = 0; k < d->group && !d->seeds_alone; k++)
            GS_TRY(gs_batch_arena_make(&d->drawn[g].arena[k], d->sampler));
    }
    return d->seeds_alone ? gs_batch_arena_make(&d->spare, d->sampler) : GS_OK;
}

/* Beside a GPU's threads: the one that asks for its launches and the one that picks rows. Either of them standing still
 * for a time slice of the drawing ones costs an H200 two batches. */
#define THREADS_OF_GPU 2u

/* Draws the group whose numbers are set. */
static void draw_group(gs_draws *d, gs_draws_group *g, bool ahead)
{
    const uint32_t threads = ahead && d->threads > THREADS_OF_GPU ? d->threads - THREADS_OF_GPU : d->threads;
    bool wanted[GS_BATCH_GROUP];

    g->began = gs_now();
    g->failure.st = GS_OK;
    for (uint32_t k = 0; k < g->held; k++)
        wanted[k] = d->deal == NULL || gs_batch_deal_of(d->deal, g->first + k) == d->own;
    for (uint32_t k = 0; k < g->held && d->seeds_alone; k++)
        gs_sampler_seeds(&g->batch[k], d->sampler, g->seeds + (uint64_t)k * gs_sampler_most_targets(d->sampler),
                         g->epoch, g->first + k);
    const gs_status st = d->seeds_alone ? GS_OK
                                        : gs_sampler_draw_group(g->batch, d->sampler, g->arena, g->held, g->epoch,
                                                                g->first, threads, wanted);
    if (st != GS_EBUDGET || !facts_of(d)->has_parts) /* else those that overflow go in parts */
        gs_failure_keep(&g->failure, st);
    g->ended = gs_now();
}

/* One thread for all groups, which goes from one to the next where that is asked for by then: on processors that are
 * all busy a new thread, and those that it would start, would wait for a time slice before the first batch. */
static void *draw_groups(void *context)
{
    gs_draws *const d = context;

    pthread_mutex_lock(&d->lock);
    for (;;) {
        while (d->made == d->asked && !d->ends)
            pthread_cond_wait(&d->changed, &d->lock);
        if (d->made == d->asked)
            break;
        gs_draws_group *const g = &d->drawn[d->queue[d->made % 2]];
        pthread_mutex_unlock(&d->lock);
        draw_group(d, g, true);
        pthread_mutex_lock(&d->lock);
        d->made++;
        __atomic_store_n(&g->drew, true, __ATOMIC_RELEASE); /* pairs with gs_draws_next() */
        pthread_cond_broadcast(&d->changed);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

const gs_draws_group *gs_draws_next(const gs_draws *d)
{
    const gs_draws_group *const g = &d->drawn[1 - d->now];

    return g->held > 0 && __atomic_load_n(&g->drew, __ATOMIC_ACQUIRE) && g->failure.st == GS_OK ? g : NULL;
}

/* What it took counts where it is taken: it may have been drawn in the epoch before. */
static void count(gs_draws *d, const gs_draws_group *g)
{
    d->seconds += g->ended - g->began;
    for (uint32_t i = 0; i < g->held; i++)
        d->amount += (double)g->batch[i].edges + g->batch[i].vertices;
}

/* Says which group is to be drawn; false: the epoch has no such batch. */
static bool aim(gs_draws *d, gs_draws_group *g, uint32_t epoch, uint32_t number)
{
    const uint32_t all = gs_sampler_batches(d->sampler);

    g->epoch = epoch;
    g->first = number;
    g->held = number < all ? GS_MIN(d->group, all - number) : 0;
    return g->held > 0;
}

/* In the place of the group that is not in use. Behind the last group of an epoch comes the first one of the next. */
static void draw_ahead(gs_draws *d, uint32_t epoch, uint32_t number)
{
    gs_draws_group *const g = &d->drawn[1 - d->now];

    if (number == gs_sampler_batches(d->sampler) && epoch < d->last_epoch) {
        epoch++;
        number = 0;
    }
    g->drew = false;
    if (!d->ahead || !aim(d, g, epoch, number))
        return;
    d->has_thread = d->has_thread || pthread_create(&d->thread, NULL, draw_groups, d) == 0;
    if (!d->has_thread) {
        g->held = 0; /* it is drawn when it is wanted */
        return;
    }
    pthread_mutex_lock(&d->lock);
    d->queue[d->asked++ % 2] = 1 - d->now;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

static bool has(const gs_draws_group *g, uint32_t epoch, uint32_t number)
{
    return g->epoch == epoch && number - g->first < g->held;
}

/* The group that has the batch is in use from here on, and the one behind it is asked for before this one is waited
 * for: that takes the place of the group in use before, and the thread goes on with it. */
static gs_status take_group(gs_draws *d, uint32_t epoch, uint32_t number)
{
    gs_draws_group *g = &d->drawn[1 - d->now];

    if (has(g, epoch, number)) {
        d->now = 1 - d->now;
        draw_ahead(d, epoch, g->first + g->held);
        wait_for(d, g);
    } else {
        gs_draws_wait(d);
        g = &d->drawn[d->now];
        if (aim(d, g, epoch, number))
            draw_group(d, g, false);
        if (g->failure.st == GS_OK)
            draw_ahead(d, epoch, g->first + g->held);
    }
    if (g->failure.st == GS_OK)
        count(d, g);
    else
        g->held = 0;
    return gs_failure_tell(&g->failure);
}

gs_status gs_draws_take(const gs_batch **out, bool *drew, gs_draws *d, uint32_t epoch, uint32_t number)
{
    *drew = !has(&d->drawn[d->now], epoch, number);
    if (*drew)
        GS_TRY(take_group(d, epoch, number));
    const gs_draws_group *const g = &d->drawn[d->now];
    *out = &g->batch[number - g->first];
    return GS_OK;
}

gs_batch_arena *gs_draws_part_arena(const gs_draws *d, const gs_batch *whole)
{
    const gs_draws_group *const g = &d->drawn[d->now];
    return d->seeds_alone ? d->spare : g->arena[whole->number - g->first];
}

void gs_draws_overflow(gs_draws *d, uint32_t number)
{
    gs_draws_group *const g = &d->drawn[d->now];
    g->batch[number - g->first].overflows = true;
}

void gs_draws_order(gs_draws *d, bool ordered)
{
    gs_draws_wait(d);
    if (ordered != d->options.ordered)
        d->drawn[0].held = d->drawn[1].held = 0;
    d->options.ordered = ordered;
    gs_sampler_order(d->sampler, ordered);
}

void gs_draws_bound_edges(const gs_draws *d, uint64_t edges_of[GS_SAMPLE_HOPS + 2])
{
    const gs_sampler_options *const o = &d->options;
    const uint64_t all = d->limits.edges;
    const uint64_t types = o->by_type ? gs_store_get_info(d->store)->edge_types : 1;
    uint64_t frontier = gs_sampler_most_targets(d->sampler), sum = 0;

    for (uint32_t h = 0; h <= GS_SAMPLE_HOPS; h++) {
        uint64_t most = all, drawn;
        if (h < o->hops && o->fanout[h] > 0 && gs_mul_u64(&drawn, types * o->fanout[h], frontier))
            most = GS_MIN(drawn, all);
        sum = GS_MIN(sum + (h < o->hops || o->hops == 0 ? most : 0), all);
        frontier = most;
        edges_of[h + 1] = sum;
    }
}

gs_status gs_draws_widen(gs_draws *d)
{
    const gs_batch_limits had = d->limits;

    gs_draws_wait(d);
    if (d->group == 1)
        return gs_fail(GS_EBUDGET, "a batch has more than %u vertices or %lu edges, and there is no room for more; use "
                       "more memory or a smaller .batch_size", had.vertices, had.edges);
    free_arenas(d);
    d->drawn[0].held = d->drawn[1].held = 0;
    gs_sampler_close(d->sampler);
    d->sampler = NULL;
    d->options.most_vertices = (uint32_t)GS_MIN(2ull * had.vertices, UINT32_MAX);
    d->options.most_edges = 2 * had.edges;
    GS_TRY(gs_sampler_open(&d->sampler, d->in, d->out, d->target, d->targets, &d->options));
    d->limits = *gs_sampler_limits(d->sampler);
    d->group /= 2;
    return gs_draws_start(d);
}

uint64_t gs_draws_read(const gs_draws *d)
{
    return gs_adjacency_bytes_read(d->in) + (d->out != NULL ? gs_adjacency_bytes_read(d->out) : 0);
}
