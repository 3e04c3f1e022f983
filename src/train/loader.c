/* loader.c - batches of a store for programs that train by themselves: drawn and read as those of a run are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/machine.h"
#include "base/option_table.h"
#include "base/size.h"
#include "batch/batch_rows.h"
#include "sample/random_draw.h"
#include "sample/unique.h"
#include "session/store_rows.h"
#include "train/control.h" /* gs_shuffles */
#include "train/draws.h"
#include "train/options.h"

/* Batches of a group, for each thread, where features are in memory: it need not be known for long. */
#define BATCHES_PER_THREAD 2u
/* Shares of the host's memory, where features are read: most for groups, whose future the cache knows, and for reads
 * that go ahead. */
#define GROUP_SHARE 0.25
#define RING_SHARE 0.0625
/* A batch may have so many times the rows that one had by trial (gs_draws_widen()). */
#define MOST_WIDER 4u
/* Rows that are picked at a time, where they are named: as many as a batch of neighbours has. */
#define PICKED 65536u

/* Pairs whose ends batches are of. */
typedef struct pair_list {
    uint32_t *row; /* [2 * count] of the store: sources, then destinations */
    uint32_t *of_type[2], of_types[2]; /* rows that random sources, and destinations, are of, where vertices have types,
                                        * and how many; one list where both are of one type. NULL: of all */
    uint32_t count, batch_size, vertices;
    gs_loader_wrong wrong;
    double amount;
    bool shuffled, leave_out;
    uint64_t seed;
    gs_unique unique; /* of the batch at hand */
    gs_arena memory;  /* of it */
    gs_seed_source source;
} pair_list;

/* A batch of them, where its seeds are. */
typedef struct pair_batch {
    uint32_t pairs, wrong;
    const uint32_t *pair;   /* [pairs] which they are */
    const uint32_t *end[2]; /* rows of the batch: sources, then random ones; destinations likewise */
} pair_batch;

struct gs_loader {
    gs_draws draws;
    pair_list pairs;
    gs_batch_rows rows;
    uint32_t most;      /* rows of a batch that `rows` has room for */
    bool reads;         /* features are read from the disk */
    uint64_t bytes;     /* of memory, but for what the draws take */
    uint32_t epoch, next; /* the batch that comes next */
    const gs_batch *batch; /* at hand; NULL: none */
    bool filled;        /* its features were picked, so that rows are in step with the next one */
    /* Of rows that are named; NULL: batches are drawn. */
    uint32_t *row_of;   /* [vertices] by id */
    uint32_t *picked;   /* [most] of the piece at hand */
    gs_batch piece;
};

GS_ENDS_BY(gs_loader, gs_loader_close)

static uint64_t array_bytes(const gs_loader *l, gs_array_id id)
{
    const gs_array_info *const a = gs_store_array(l->draws.store, id);
    return a->present ? a->bytes : 0;
}

/* ---- memory --------------------------------------------------------------- */

static uint64_t pair_bytes(const pair_list *p)
{
    const uint64_t random = p->of_types[0] + (p->of_type[1] == p->of_type[0] ? 0ull : p->of_types[1]);
    return p->row == NULL ? 0
                          : (2ull * p->count + random) * sizeof(*p->row) +
                                (sizeof(*p->unique.slot) << p->unique.bits) +
                                2ull * p->unique.most * sizeof(*p->unique.vertex);
}

/* Arrays that are in memory whatever there is. */
static uint32_t narrow_arrays(const gs_loader *l)
{
    static const gs_array_id narrow[] = {GS_ARRAY_INPUT_ID, GS_ARRAY_LABELS, GS_ARRAY_SPLIT};
    uint32_t wanted = 0;

    for (uint32_t k = 0; k < GS_ARRAY_LEN(narrow); k++)
        wanted |= gs_store_array(l->draws.store, narrow[k])->present ? 1u << narrow[k] : 0;
    return wanted;
}

static uint64_t bytes_of(const gs_loader *l, uint32_t wanted)
{
    uint64_t bytes = 0;
    for (uint32_t id = 0; id < GS_ARRAY_COUNT; id++)
        bytes += wanted >> id & 1 ? array_bytes(l, (gs_array_id)id) : 0;
    return bytes;
}

/* The largest group within a share of memory. */
static uint32_t group_within(const gs_draws *d, uint64_t bytes)
{
    const uint64_t fit = bytes / (2 * d->limits.arena_bytes);
    return (uint32_t)GS_MAX(GS_MIN(GS_MIN(fit, GS_BATCH_GROUP), gs_sampler_batches(d->sampler)), 1);
}

/* Memory that all takes but a cache of rows, with the draws' group; arrays of `wanted` are there whole. */
static uint64_t bytes_taken(gs_loader *l, uint32_t wanted, uint64_t ring)
{
    const gs_draws *const d = &l->draws;

    l->bytes = bytes_of(l, wanted) + pair_bytes(&l->pairs);
    if (l->reads)
        l->bytes += gs_batch_rows_reading(d->store, l->most) + gs_batch_rows_ahead(ring, l->most);
    return gs_draws_list_bytes(d) + gs_sampler_bytes(d->sampler) + gs_draws_group_bytes(d) + l->bytes;
}

static gs_status refuse(const gs_loader *l, uint64_t host, uint64_t need)
{
    char have[16], want[16];
    return gs_fail(GS_EBUDGET, ".host_memory %s: a loader of these %s takes at least %s; give it more%s",
                   gs_size_format(have, sizeof(have), host), l->row_of != NULL ? "rows" : "batches",
                   gs_size_format(want, sizeof(want), need),
                   l->row_of != NULL ? "" : ", or use a smaller .batch_size");
}

/* Features stay in memory where they have room beside a small group; else a group is large, and what is left has a
 * ring and a cache of rows. */
static gs_status open_rows(gs_loader *l, uint64_t host)
{
    gs_draws *const d = &l->draws;
    const uint32_t narrow = narrow_arrays(l), features = gs_store_get_info(d->store)->features > 0;
    uint32_t wanted = narrow | features << GS_ARRAY_FEATURES;
    gs_row_cache_shape cache = {0};
    uint64_t ring = 0, taken;

    l->most = (uint32_t)GS_MIN((uint64_t)MOST_WIDER * d->limits.vertices, gs_store_get_info(d->store)->vertices);
    d->ahead = true;
    d->group = GS_MIN(BATCHES_PER_THREAD * d->threads, gs_sampler_batches(d->sampler));
    if ((taken = bytes_taken(l, wanted, 0)) > host && features) {
        wanted = narrow;
        l->reads = true;
        d->group = group_within(d, (uint64_t)(GROUP_SHARE * (double)host));
        ring = GS_MAX(gs_align_up((uint64_t)(RING_SHARE * (double)host), GS_MIB), GS_BATCH_RING);
        taken = bytes_taken(l, wanted, ring);
    }
    if (taken > host) {
        d->group = 1;
        ring = l->reads ? GS_BATCH_RING : 0;
        if ((taken = bytes_taken(l, wanted, ring)) > host)
            return refuse(l, host, taken);
    }
    if (l->reads) {
        cache = gs_row_cache_shape_of(d->store, host - taken, d->group, l->most, 1);
        l->bytes += gs_row_cache_bytes(d->store, &cache, l->most);
    }
    GS_TRY(gs_batch_rows_open(&l->rows, d->store, wanted, NULL, features ? l->most : 0, &cache, ring));
    return gs_draws_start(d);
}

/* The same of rows that are named: nothing is known of the next ones, so what is left is a cache alone. */
static gs_status open_named_rows(gs_loader *l, uint64_t host)
{
    const gs_store *const s = l->draws.store;
    const uint64_t vertices = gs_store_get_info(s)->vertices;
    const uint32_t features = gs_store_get_info(s)->features > 0;
    const uint32_t narrow = narrow_arrays(l) & ~(1u << GS_ARRAY_INPUT_ID), all = narrow | features << GS_ARRAY_FEATURES;
    gs_row_cache_shape cache = {0};

    l->most = (uint32_t)GS_MIN(PICKED, vertices);
    const uint64_t lists = (vertices + l->most) * sizeof(uint32_t);
    l->reads = features && lists + bytes_of(l, all) > host;
    l->bytes = lists + bytes_of(l, l->reads ? narrow : all) + (l->reads ? gs_batch_rows_reading(s, l->most) : 0);
    if (l->bytes > host)
        return refuse(l, host, l->bytes);
    if (l->reads) {
        cache = gs_row_cache_shape_of(s, host - l->bytes, 1, l->most, 1);
        l->bytes += gs_row_cache_bytes(s, &cache, l->most);
    }
    if ((l->picked = gs_malloc_array(l->most, sizeof(*l->picked))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the rows that are picked");
    return gs_batch_rows_open(&l->rows, s, l->reads ? narrow : all, NULL, features ? l->most : 0, &cache, 0);
}

/* ---- which vertices ------------------------------------------------------- */

static gs_status check_range(const int64_t *id, uint64_t count, uint64_t vertices)
{
    for (uint64_t k = 0; k < count; k++)
        if (id[k] < 0 || (uint64_t)id[k] >= vertices)
            return gs_fail(GS_EINVAL, "ids[%lu] is %lld: the store has vertices 0 to %lu", k, (long long)id[k],
                           vertices - 1);
    return GS_OK;
}

static gs_status check_ids(uint32_t *id, const int64_t *given, uint64_t count, uint64_t vertices)
{
    GS_TRY(check_range(given, count, vertices));
    for (uint64_t k = 0; k < count; k++)
        id[k] = (uint32_t)given[k];
    qsort(id, count, sizeof(*id), gs_by_number);
    for (uint64_t k = 1; k < count; k++)
        if (id[k] == id[k - 1])
            return gs_fail(GS_EINVAL, "ids: vertex %u is there more than once", id[k]);
    return GS_OK;
}

/* *row: [count] ascending, the caller's. */
static gs_status rows_of_ids(uint32_t **row, const char *path, const int64_t *given, uint64_t count)
{
    GS_ENDS(gs_store_close_at) gs_store *store = NULL;
    GS_FREED uint32_t *id = NULL;

    GS_TRY(gs_store_open(&store, path));
    if (given == NULL || count == 0 || count > UINT32_MAX)
        return gs_fail(GS_EINVAL, "ids: none given; batches are of one vertex at the least");
    id = gs_malloc_array(count, sizeof(*id));
    *row = gs_malloc_array(count, sizeof(**row));
    GS_NEED(id != NULL && *row != NULL, "out of memory for the list of vertices that batches are of");
    GS_TRY(check_ids(id, given, count, gs_store_get_info(store)->vertices));
    GS_TRY(gs_rows_of_ids(*row, store, id, NULL, count));
    qsort(*row, count, sizeof(**row), gs_by_number);
    return GS_OK;
}

/* ---- pairs ---------------------------------------------------------------- */

static uint32_t wrong_of(const pair_list *p, uint32_t pairs)
{
    return p->wrong == GS_WRONG_NONE ? 0 : (uint32_t)ceil(pairs * p->amount);
}

/* Random vertices, of the type that ends of this kind have, take their places behind these; which: 0 sources, 1
 * destinations. */
static void draw_ends(pair_list *p, uint32_t *end, uint32_t count, uint32_t which, uint32_t epoch, uint32_t number)
{
    uint32_t key[2];

    gs_random_key(key, p->seed, GS_RANDOM_PAIRS);
    gs_random_stream r = gs_random_stream_of(key, which, number, epoch);
    const uint32_t *const rows = p->of_type[which], most = rows != NULL ? p->of_types[which] : p->vertices;
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t at = gs_random_below(&r, most);
        end[k] = gs_unique_put(&p->unique, rows != NULL ? rows[at] : at);
    }
}

static gs_status fill_pairs(void *context, gs_batch_seeds *out, void *memory, uint32_t epoch, uint32_t number)
{
    pair_list *const p = context;
    const gs_order order = gs_order_of(p->seed, epoch, p->count);
    const uint32_t first = number * p->batch_size, n = GS_MIN(p->batch_size, p->count - first), wrong = wrong_of(p, n);
    pair_batch *const b = memory;
    uint32_t *const pair = (uint32_t *)(b + 1), *const source = pair + n, *const destination = source + n + wrong,
             *const vertex = destination + n + wrong;

    gs_unique_clear(&p->unique);
    for (uint32_t i = 0; i < n; i++) {
        pair[i] = p->shuffled ? gs_order_at(&order, first + i) : first + i;
        source[i] = gs_unique_put(&p->unique, p->row[pair[i]]);
        destination[i] = gs_unique_put(&p->unique, p->row[p->count + pair[i]]);
    }
    draw_ends(p, source + n, p->wrong == GS_WRONG_PAIRS ? wrong : 0, 0, epoch, number);
    draw_ends(p, destination + n, wrong, 1, epoch, number);
    memcpy(vertex, p->unique.vertex, p->unique.count * sizeof(*vertex));
    *b = (pair_batch){.pairs = n, .wrong = wrong, .pair = pair, .end = {source, destination}};
    *out = (gs_batch_seeds){.vertex = vertex, .vertices = p->unique.count, .end = {source, destination},
                            .edges = p->leave_out ? n : 0, .of_caller = b};
    return GS_OK;
}

static gs_status open_pairs(void *context, const gs_seed_source **out, const gs_store *store)
{
    pair_list *const p = context;
    const uint32_t pairs = GS_MIN(p->batch_size, p->count);
    const double wrong = p->wrong == GS_WRONG_NONE ? 0 : ceil(pairs * p->amount);

    if (2 * (pairs + wrong) > INT32_MAX)
        return gs_fail(GS_EINVAL, ".amount %g: makes batches of more than 2147483647 ends; use less, or a smaller "
                       ".batch_size", p->amount);
    const uint32_t most = 2 * (pairs + (uint32_t)wrong);
    p->source = (gs_seed_source){.context = p, .fill = fill_pairs, .batches = (p->count - 1) / p->batch_size + 1,
                                 .bytes = sizeof(pair_batch) + (pairs + 2ull * most) * sizeof(uint32_t),
                                 .most_vertices = GS_MIN(most, p->vertices), .most_edges = pairs,
                                 .both_ways = gs_store_get_info(store)->symmetric};
    *out = &p->source;
    gs_unique_take(&p->unique, &p->memory, p->source.most_vertices);
    return p->memory.is_short ? gs_fail(GS_ENOMEM, "out of memory for the ends of a batch's pairs") : GS_OK;
}

static void close_pairs(pair_list *p)
{
    gs_free(p->row);
    gs_free(p->of_type[0]);
    if (p->of_type[1] != p->of_type[0])
        gs_free(p->of_type[1]);
    gs_arena_free(&p->memory);
}

static gs_status check_ends(uint32_t *id, const gs_loader_pairs *given, uint64_t vertices)
{
    for (uint64_t k = 0; k < 2 * given->pairs; k++) {
        const int64_t end = k < given->pairs ? given->source[k] : given->destination[k - given->pairs];
        if (end < 0 || (uint64_t)end >= vertices)
            return gs_fail(GS_EINVAL, "%s[%lu] is %lld: the store has vertices 0 to %lu",
                           k < given->pairs ? "source" : "destination", k % given->pairs, (long long)end, vertices - 1);
        id[k] = (uint32_t)end;
    }
    return GS_OK;
}

/* The one type that the ends of this kind are of: random ones are of it, too. */
static gs_status type_of_ends(const gs_vertex_type **out, const gs_type_table *types, const int64_t *end,
                              uint64_t pairs, const char *what)
{
    uint32_t t = 0;

    while (t + 1 < types->types && (uint64_t)end[0] >= types->type[t].first + types->type[t].vertices)
        t++;
    *out = &types->type[t];
    for (uint64_t k = 0; k < pairs; k++)
        if ((uint64_t)end[k] < types->type[t].first ||
            (uint64_t)end[k] >= types->type[t].first + types->type[t].vertices)
            return gs_fail(GS_EINVAL, "%s[%lu] is %lld, which is of another type than %s[0], %s: random vertices are "
                           "of the type of those that are given; give pairs of one type", what, k, (long long)end[k],
                           what, types->type[t].name);
    return GS_OK;
}

/* Rows of all vertices of a type; the caller's. */
static gs_status rows_of_type(uint32_t **row, const gs_store *store, const gs_vertex_type *type)
{
    if ((*row = gs_malloc_array(GS_MAX(type->vertices, 1), sizeof(**row))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the vertices that random ends may be");
    return gs_rows_of_range(*row, store, type->first, type->vertices);
}

/* Which vertices random ends may be, where there are random ends and vertices have types. */
static gs_status take_types(pair_list *p, const gs_store *store, const gs_loader_pairs *given)
{
    const gs_type_table *const types = gs_store_get_info(store)->types;
    const gs_vertex_type *type[2];

    if (types == NULL || given->wrong == GS_WRONG_NONE)
        return GS_OK;
    GS_TRY(type_of_ends(&type[0], types, given->source, given->pairs, "source"));
    GS_TRY(type_of_ends(&type[1], types, given->destination, given->pairs, "destination"));
    GS_TRY(rows_of_type(&p->of_type[1], store, type[1]));
    if (type[0] == type[1])
        p->of_type[0] = p->of_type[1];
    else if (given->wrong == GS_WRONG_PAIRS)
        GS_TRY(rows_of_type(&p->of_type[0], store, type[0]));
    for (int which = 0; which < 2; which++)
        p->of_types[which] = p->of_type[which] != NULL ? (uint32_t)type[which]->vertices : 0;
    return GS_OK;
}

static gs_status check_given(const gs_loader_pairs *given)
{
    if (given->pairs == 0 || given->source == NULL || given->destination == NULL || given->pairs > INT32_MAX)
        return gs_fail(GS_EINVAL, "pairs: %lu given; batches are of 1 to 2147483647 of them", given->pairs);
    if ((uint32_t)given->wrong > GS_WRONG_DESTINATIONS)
        return gs_fail(GS_EINVAL, "wrong %d: must be one of gs_loader_wrong", (int)given->wrong);
    if (given->wrong != GS_WRONG_NONE &&
        !(given->amount > 0 && given->amount <= 65536 &&
          (given->wrong == GS_WRONG_PAIRS || given->amount == floor(given->amount))))
        return gs_fail(GS_EINVAL, ".amount %g: must be above 0 and at most 65536, of destinations a whole number",
                       given->amount);
    return GS_OK;
}

static gs_status take_pairs(pair_list *p, const char *path, const gs_train_options *o, const gs_loader_pairs *given)
{
    GS_ENDS(gs_store_close_at) gs_store *store = NULL;
    GS_FREED uint32_t *id = NULL, *order = NULL, *spare = NULL;

    GS_TRY(check_given(given));
    GS_TRY(gs_store_open(&store, path));
    const uint64_t vertices = gs_store_get_info(store)->vertices, ends = 2 * given->pairs;
    *p = (pair_list){.count = (uint32_t)given->pairs, .batch_size = gs_count(o, batch_size), .seed = o->seed,
                     .vertices = (uint32_t)vertices, .wrong = given->wrong, .amount = given->amount,
                     .shuffled = gs_choice(o, shuffle) != GS_SHUFFLES_NEVER, .leave_out = given->leave_out};
    p->row = gs_malloc_array(ends, sizeof(*p->row));
    id = gs_malloc_array(ends, sizeof(*id));
    order = gs_malloc_array(ends, sizeof(*order));
    spare = gs_malloc_array(ends, sizeof(*spare));
    if (p->row == NULL || id == NULL || order == NULL || spare == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the pairs that batches are of");
    GS_TRY(check_ends(id, given, vertices));
    gs_radix_order(order, spare, id, (uint32_t)ends);
    GS_TRY(gs_rows_of_ids(p->row, store, id, order, ends));
    return take_types(p, store, given);
}

/* ---- opening -------------------------------------------------------------- */

static gs_status check(const gs_train_options *o, gs_loader_seeds seeds)
{
    GS_TRY(gs_options_check_ranges(o));
    if (!gs_train_on_batches(o))
        return gs_fail(GS_EINVAL, ".sampler none: a loader hands out batches; use neighbor, cluster or a saint- one");
    if (gs_choice(o, shuffle) == GS_SHUFFLES_ADAPTIVE)
        return gs_fail(GS_EINVAL, ".shuffle adaptive: goes by the loss, which a loader does not know; use always or "
                       "never");
    if ((uint32_t)seeds > GS_SEEDS_LISTED)
        return gs_fail(GS_EINVAL, "seeds %d: must be one of gs_loader_seeds", (int)seeds);
    return GS_OK;
}

static gs_status open_draws(gs_loader *l, const char *store, const gs_train_options *o, gs_loader_seeds seeds,
                            const int64_t *ids, uint64_t count)
{
    gs_draws_request request = {.store = store, .options = o, .targets = (uint32_t)count};

    if (l->pairs.row != NULL) {
        request.open_seeds = open_pairs;
        request.context = &l->pairs;
    } else if (seeds == GS_SEEDS_LISTED) {
        GS_TRY(rows_of_ids(&l->draws.target, store, ids, count)); /* freed with the draws */
        request.target = l->draws.target;
    } else {
        request.targets = 0;
        request.split = (gs_split)seeds;
    }
    GS_TRY(gs_draws_open(&l->draws, &request));
    gs_sampler_order(l->draws.sampler, gs_choice(o, shuffle) == GS_SHUFFLES_NEVER);
    return GS_OK;
}

/* Of pairs, or where that is NULL of seeds. */
static gs_status open_loader(gs_loader **out, const char *store, const gs_train_options *options,
                             gs_loader_seeds seeds, const int64_t *ids, uint64_t count, const gs_loader_pairs *pairs)
{
    gs_train_options o;
    GS_ENDS(gs_loader_close_at) gs_loader *l = NULL;

    if (out == NULL || store == NULL || options == NULL)
        return gs_fail(GS_EINVAL, "out, store and options are due");
    GS_TRY(gs_train_options_read(&o, options));
    GS_TRY(check(&o, seeds));
    GS_NEED((l = gs_calloc(1, sizeof(*l))) != NULL, "out of memory");
    if (pairs != NULL)
        GS_TRY(take_pairs(&l->pairs, store, &o, pairs));
    GS_TRY(open_draws(l, store, &o, seeds, ids, count));
    GS_TRY(open_rows(l, o.host_memory != 0 ? o.host_memory : gs_machine_free_memory()));
    l->epoch = 1;
    *out = GS_HANDED_OVER(l);
    return GS_OK;
}

gs_status gs_loader_open(gs_loader **out, const char *store, const gs_train_options *options, gs_loader_seeds seeds,
                         const int64_t *ids, uint64_t count)
{
    return open_loader(out, store, options, seeds, ids, count, NULL);
}

gs_status gs_loader_open_pairs(gs_loader **out, const char *store, const gs_train_options *options,
                               const gs_loader_pairs *pairs)
{
    if (options == NULL || pairs == NULL)
        return gs_fail(GS_EINVAL, "options and pairs are due");
    if (options->sampler == NULL || strcmp(options->sampler, "neighbor") != 0)
        return gs_fail(GS_EINVAL, ".sampler %s: batches of pairs are drawn by neighbor", options->sampler == NULL
                       ? "none" : options->sampler);
    return open_loader(out, store, options, GS_SEEDS_ALL, NULL, 0, pairs);
}

gs_status gs_loader_open_rows(gs_loader **out, const char *store, const gs_train_options *options)
{
    gs_train_options o;
    GS_ENDS(gs_loader_close_at) gs_loader *l = NULL;

    if (out == NULL || store == NULL || options == NULL)
        return gs_fail(GS_EINVAL, "out, store and options are due");
    GS_TRY(gs_train_options_read(&o, options));
    GS_TRY(gs_options_check_ranges(&o));
    GS_NEED((l = gs_calloc(1, sizeof(*l))) != NULL, "out of memory");
    GS_TRY(gs_store_open(&l->draws.store, store));
    const uint64_t vertices = gs_store_get_info(l->draws.store)->vertices;
    if ((l->row_of = gs_calloc(vertices, sizeof(*l->row_of))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the rows of %lu vertices", vertices);
    GS_TRY(open_named_rows(l, o.host_memory != 0 ? o.host_memory : gs_machine_free_memory()));
    GS_TRY(gs_rows_of_range(l->row_of, l->draws.store, 0, vertices));
    *out = GS_HANDED_OVER(l);
    return GS_OK;
}

void gs_loader_close(gs_loader *l)
{
    if (l == NULL)
        return;
    gs_batch_rows_close(&l->rows);
    gs_draws_close(&l->draws);
    close_pairs(&l->pairs);
    gs_free(l->row_of);
    gs_free(l->picked);
    gs_free(l);
}

gs_status gs_loader_inspect(const gs_loader *l, gs_loader_report *out)
{
    if (l == NULL || out == NULL)
        return gs_fail(GS_EINVAL, "the loader and out are due");
    const gs_draws *const d = &l->draws;
    const gs_store_info *const info = gs_store_get_info(d->store);
    *out = (gs_loader_report){
        .features = info->features,
        .edge_features = info->edge_features,
        .edge_types = info->edge_types,
        .label_columns = info->classes == 0                         ? 0
                         : info->labels == GS_TRAIN_TASK_CLASSIFY ? 1
                                                                    : info->classes,
        .edge_weights = d->limits.data.weights,
        .features_in_memory = info->features > 0 && !l->reads,
        .host_bytes = l->bytes,
        .feature_row_bytes = gs_store_array(d->store, GS_ARRAY_FEATURES)->row_bytes,
    };
    if (l->row_of == NULL) {
        out->batches = gs_sampler_batches(d->sampler);
        out->edges_in_memory = d->in->columns == NULL;
        out->group = d->group;
        out->host_bytes += gs_draws_list_bytes(d) + gs_sampler_bytes(d->sampler) + gs_draws_group_bytes(d);
    }
    if (out->label_columns > 0)
        snprintf(out->task, sizeof(out->task), "%s", gs_train_task_name(info->labels));
    return GS_OK;
}

/* ---- batches -------------------------------------------------------------- */

gs_status gs_loader_begin(gs_loader *l, uint32_t epoch, uint32_t first)
{
    if (l == NULL || epoch == 0)
        return gs_fail(GS_EINVAL, "the loader is due, and epochs count from 1");
    l->epoch = epoch;
    l->next = first;
    l->batch = NULL;
    l->filled = false; /* of a group that is at hand, rows that follow are not those of this batch */
    return GS_OK;
}

/* Rows are picked of the batches of the group at hand from `batch` on. */
static void begin_rows(gs_loader *l, const gs_batch *batch)
{
    const gs_draws_group *const g = gs_draws_now(&l->draws);
    gs_batch_rows_begin(&l->rows, batch, g->first + g->held - batch->number);
}

/* The batch, with room for it. */
static gs_status take(const gs_batch **batch, bool *drew, gs_loader *l)
{
    for (;;) {
        GS_TRY(gs_draws_take(batch, drew, &l->draws, l->epoch, l->next));
        if (!(*batch)->overflows)
            return GS_OK;
        if (2ull * l->draws.limits.vertices > l->most && l->most < gs_store_get_info(l->draws.store)->vertices)
            return gs_fail(GS_EBUDGET, "batch %u of epoch %u has over %u vertices, far more than others; use a smaller "
                           ".batch_size", l->next, l->epoch, l->most);
        GS_TRY(gs_draws_widen(&l->draws));
    }
}

gs_status gs_loader_next(gs_loader *l, gs_loader_batch *out)
{
    const gs_batch *b;
    bool drew;

    if (l == NULL || out == NULL)
        return gs_fail(GS_EINVAL, "the loader and out are due");
    if (l->row_of != NULL)
        return gs_fail(GS_EINVAL, "the loader picks rows by their ids, and draws no batches: use gs_loader_pick()");
    l->batch = NULL;
    if (l->next >= gs_sampler_batches(l->draws.sampler))
        return gs_fail(GS_ENOTFOUND, "the epoch has no more batches");
    GS_TRY(take(&b, &drew, l));
    if (drew || !l->filled)
        begin_rows(l, b);
    l->batch = b;
    l->filled = false;
    l->next++;
    *out = (gs_loader_batch){.epoch = b->epoch, .number = b->number, .vertices = b->vertices, .targets = b->targets,
                             .hops = b->hops, .edges = b->edges};
    memcpy(out->hop_end, b->hop_end, sizeof(out->hop_end));
    if (l->pairs.row != NULL) {
        out->pairs = ((const pair_batch *)b->seeds)->pairs;
        out->wrong = ((const pair_batch *)b->seeds)->wrong;
    }
    return GS_OK;
}

/* ---- arrays --------------------------------------------------------------- */

static void fill_edges(const gs_loader *l, const gs_loader_arrays *a)
{
    const gs_chunk_view *const v = &l->batch->view[GS_BY_DEST];
    const gs_store_info *const info = gs_store_get_info(l->draws.store);

    for (uint32_t t = 0; t < v->targets && a->destination != NULL; t++)
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++)
            a->destination[k] = gs_index_at(v->target, v->index_bytes, t);
    for (uint64_t k = 0; k < v->edges && a->source != NULL; k++)
        a->source[k] = gs_index_at(v->index, v->index_bytes, k);
    for (uint64_t k = 0; k < v->edges && a->edge_type != NULL; k++)
        a->edge_type[k] = gs_type_at(v->type, v->type_bytes, k);
    if (v->edges > 0 && a->edge_weight != NULL)
        memcpy(a->edge_weight, v->weight, v->edges * sizeof(*v->weight));
    if (v->edges > 0 && a->edge_features != NULL)
        gs_convert_to_f32(a->edge_features, v->feature, info->edge_feature_type, v->edges * info->edge_features);
}

static void fill_numbers(int64_t *out, const uint32_t *from, uint32_t count)
{
    for (uint32_t k = 0; k < count && out != NULL; k++)
        out[k] = from[k];
}

static void fill_seeds(const gs_loader *l, const gs_loader_arrays *a)
{
    const pair_batch *const b = l->batch->seeds;
    const bool paired = l->pairs.wrong == GS_WRONG_PAIRS;

    if (b == NULL)
        return;
    fill_numbers(a->pair, b->pair, b->pairs);
    fill_numbers(a->pair_source, b->end[0], b->pairs + (paired ? b->wrong : 0));
    fill_numbers(a->pair_destination, b->end[1], b->pairs + b->wrong);
}

/* Numbers as they are at rest come to the end of an array of wider ones, which are then made from the first on: none is
 * written over before it is read. */
static gs_status pick_narrow(gs_loader *l, gs_array_id id, void *out, size_t wide, size_t narrow, uint64_t columns,
                             const void **at)
{
    const gs_batch *const b = l->batch;
    *at = (char *)out + (uint64_t)b->vertices * columns * (wide - narrow);
    return gs_batch_rows_pick(&l->rows, id, b->vertex, b->vertices, (void *)(uintptr_t)*at);
}

/* Numbers of 32 bits, with a sign or without. */
static gs_status fill_whole(gs_loader *l, gs_array_id id, bool sign, int64_t *out)
{
    const void *at;

    GS_TRY(pick_narrow(l, id, out, sizeof(*out), sizeof(uint32_t), 1, &at));
    for (uint32_t i = 0; i < l->batch->vertices; i++) {
        uint32_t number;
        memcpy(&number, (const char *)at + i * sizeof(number), sizeof(number));
        out[i] = sign ? (int64_t)(int32_t)number : (int64_t)number;
    }
    return GS_OK;
}

/* Truth values, or numbers. */
static gs_status fill_labels(gs_loader *l, float *out)
{
    const uint32_t columns = gs_store_get_info(l->draws.store)->classes;
    const void *at;

    if (gs_store_array(l->draws.store, GS_ARRAY_LABELS)->dtype == GS_F32)
        return gs_batch_rows_pick(&l->rows, GS_ARRAY_LABELS, l->batch->vertex, l->batch->vertices, out);
    GS_TRY(pick_narrow(l, GS_ARRAY_LABELS, out, sizeof(*out), 1, columns, &at));
    for (uint64_t i = 0; i < (uint64_t)l->batch->vertices * columns; i++) {
        const uint8_t label = ((const uint8_t *)at)[i];
        out[i] = label == GS_LABEL_UNKNOWN ? NAN : label;
    }
    return GS_OK;
}

static gs_status fill_features(gs_loader *l, float *out)
{
    const gs_array_info *const a = gs_store_array(l->draws.store, GS_ARRAY_FEATURES);
    const size_t narrow = gs_dtype_bytes(a->dtype);
    const void *at;

    GS_TRY(pick_narrow(l, GS_ARRAY_FEATURES, out, sizeof(*out), narrow, a->width, &at));
    for (uint64_t i = 0; narrow < sizeof(*out) && i < (uint64_t)l->batch->vertices * a->width; i++) {
        uint16_t half;
        memcpy(&half, (const char *)at + i * sizeof(half), sizeof(half));
        out[i] = a->dtype == GS_BF16 ? gs_f32_from_bf16(half) : gs_f32_from_f16(half);
    }
    return GS_OK;
}

/* GS_EINVAL names an array that the store has not got. */
static gs_status check_arrays(const gs_loader *l, const gs_loader_arrays *a)
{
    const gs_store_info *const info = gs_store_get_info(l->draws.store);
    const bool classes = info->classes > 0 && info->labels == GS_TRAIN_TASK_CLASSIFY;
    const struct {
        const char *name;
        bool wanted, there;
    } of[] = {
        {"edge_type", a->edge_type != NULL, info->edge_types > 0},
        {"edge_weight", a->edge_weight != NULL, l->draws.limits.data.weights},
        {"edge_features", a->edge_features != NULL, info->edge_features > 0},
        {"features", a->features != NULL, info->features > 0},
        {"features_at_rest", a->features_at_rest != NULL, info->features > 0},
        {"classes", a->classes != NULL, classes},
        {"labels", a->labels != NULL, info->classes > 0 && !classes},
        {"pair", a->pair != NULL || a->pair_source != NULL || a->pair_destination != NULL, l->pairs.row != NULL},
        {"split", a->split != NULL, gs_store_array(l->draws.store, GS_ARRAY_SPLIT)->present},
    };

    for (uint32_t k = 0; k < GS_ARRAY_LEN(of); k++)
        if (of[k].wanted && !of[k].there)
            return gs_fail(GS_EINVAL, ".%s: %s has none; leave it NULL", of[k].name, gs_store_dir(l->draws.store));
    if (a->features != NULL && a->features_at_rest != NULL)
        return gs_fail(GS_EINVAL, ".features and .features_at_rest: are the same rows; leave one of them NULL");
    return GS_OK;
}

/* Arrays of the batch's vertices. */
static gs_status fill_rows(gs_loader *l, const gs_loader_arrays *a)
{
    const gs_batch *const b = l->batch;

    for (uint32_t i = 0; i < b->vertices && a->row != NULL; i++)
        a->row[i] = b->vertex[i];
    if (a->vertex != NULL)
        GS_TRY(fill_whole(l, GS_ARRAY_INPUT_ID, false, a->vertex));
    if (a->classes != NULL)
        GS_TRY(fill_whole(l, GS_ARRAY_LABELS, true, a->classes));
    if (a->labels != NULL)
        GS_TRY(fill_labels(l, a->labels));
    if (a->split != NULL)
        GS_TRY(gs_batch_rows_pick(&l->rows, GS_ARRAY_SPLIT, b->vertex, b->vertices, a->split));
    if (a->features == NULL && a->features_at_rest == NULL)
        return GS_OK; /* rows that are read stay behind: they begin again at the next batch */
    const gs_status st =
        a->features != NULL
            ? fill_features(l, a->features)
            : gs_batch_rows_pick(&l->rows, GS_ARRAY_FEATURES, b->vertex, b->vertices, a->features_at_rest);
    l->batch = st == GS_OK ? b : NULL;
    l->filled = st == GS_OK;
    return st;
}

gs_status gs_loader_fill(gs_loader *l, const gs_loader_arrays *arrays)
{
    if (l == NULL || arrays == NULL)
        return gs_fail(GS_EINVAL, "the loader and arrays are due");
    if (l->batch == NULL || l->filled)
        return gs_fail(GS_EINVAL, "there is no batch to fill arrays of: gs_loader_next() comes first, each time");
    GS_TRY(check_arrays(l, arrays));
    fill_edges(l, arrays);
    fill_seeds(l, arrays);
    return fill_rows(l, arrays);
}

/* ---- rows that are named --------------------------------------------------- */

static gs_status check_pick(const gs_loader *l, const int64_t *ids, uint64_t count, const gs_loader_arrays *a)
{
    if (l == NULL || a == NULL || (ids == NULL && count > 0))
        return gs_fail(GS_EINVAL, "the loader, ids and arrays are due");
    if (l->row_of == NULL)
        return gs_fail(GS_EINVAL, "the loader draws batches: gs_loader_open_rows() opens one that picks rows by ids");
    if (a->vertex != NULL || a->source != NULL || a->destination != NULL || a->edge_type != NULL ||
        a->edge_weight != NULL || a->edge_features != NULL)
        return gs_fail(GS_EINVAL, ".vertex, .source, .destination, .edge_*: rows are picked by ids, and have no edges "
                       "here; leave them NULL");
    GS_TRY(check_arrays(l, a));
    return check_range(ids, count, gs_store_get_info(l->draws.store)->vertices);
}

/* The arrays from place `at` on. */
static gs_loader_arrays arrays_from(const gs_loader *l, const gs_loader_arrays *a, uint64_t at)
{
    const gs_store_info *const info = gs_store_get_info(l->draws.store);
    const uint64_t row_bytes = gs_store_array(l->draws.store, GS_ARRAY_FEATURES)->row_bytes;
    gs_loader_arrays b = {0};

    b.features = a->features != NULL ? a->features + at * info->features : NULL;
    b.features_at_rest = a->features_at_rest != NULL ? (char *)a->features_at_rest + at * row_bytes : NULL;
    b.classes = a->classes != NULL ? a->classes + at : NULL;
    b.labels = a->labels != NULL ? a->labels + at * info->classes : NULL;
    b.split = a->split != NULL ? a->split + at : NULL;
    b.row = a->row != NULL ? a->row + at : NULL;
    return b;
}

gs_status gs_loader_pick(gs_loader *l, const int64_t *ids, uint64_t count, const gs_loader_arrays *arrays)
{
    GS_TRY(check_pick(l, ids, count, arrays));
    for (uint64_t at = 0; at < count; at += l->piece.vertices) {
        const gs_loader_arrays a = arrays_from(l, arrays, at);
        l->piece = (gs_batch){.vertex = l->picked, .vertices = (uint32_t)GS_MIN(l->most, count - at)};
        l->batch = &l->piece;
        for (uint32_t i = 0; i < l->piece.vertices; i++)
            l->picked[i] = l->row_of[ids[at + i]];
        if (a.features != NULL || a.features_at_rest != NULL)
            gs_batch_rows_begin(&l->rows, l->batch, 1);
        GS_TRY(fill_rows(l, &a));
    }
    return GS_OK;
}
