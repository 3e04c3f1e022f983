/* batches.c - a training on batches: one program, one plan of the largest batch, to which each is bound. */
#include "batch/batches.h"

#include <string.h>

#include "base/clock.h"
#include "batch/batches_internal.h"
#include "session/describe.h"
#include "session/session_plan.h"

/* The plan is compared with no other: there is one block and nothing to stage. What it takes is charged where the
 * session over the whole graph is planned. */
#define ANY_MEMORY (1ull << 56)
/* On host memory a tile's rows of features are picked for it: with those, it stays in a second-level cache. */
#define TILE_BYTES GS_MIB
/* No batch is predicted to take less. */
#define LEAST_SECONDS 1e-9

/* ---- the plan ------------------------------------------------------------ */

static void make_table(gs_batches *b)
{
    const gs_batch_limits *const l = &b->shape.limits;

    for (int d = 0; d < 2; d++)
        b->chunk[d] = (gs_chunk){.length = GS_BLOCK_BYTES, .edges = GS_MAX(l->edges, 1), .targets = l->vertices,
                                 .operands = l->vertices};
    b->table = (gs_chunk_table){.vertices = l->vertices, .parts = 1, .interval_rows = l->vertices,
                                .data = l->data,
                                .chunk = {&b->chunk[0], &b->chunk[1]}};
}

static gs_status make_plan(gs_batches *b)
{
    gs_session *const s = b->session;
    const gs_schedule_config config = {.program = s->program, .chunks = &b->table, .array_sum_bytes = GS_SUM_BYTES,
                                       .host_memory = ANY_MEMORY, .device_memory = ANY_MEMORY,
                                       .topology = &gs_topology_host, .stop = s->config.options->stop, .no_swap = true,
                                       .frames_apart = gs_session_has_memories(s),
                                       .unstaged_bytes = gs_session_has_memories(s) ? 0 : TILE_BYTES};
    const gs_hop_cut cut = s->config.options->no_prune      ? GS_CUT_NOTHING
                           : gs_session_has_memories(s) ? GS_CUT_ROWS /* a GPU has a kernel for whole stages alone */
                                                        : GS_CUT_RESTS;
    GS_ENDS(gs_hop_needs_drop) gs_hop_needs needs = {0};

    gs_cost_defaults(&s->machine.cost, 1);
    for (int d = 0; d < 2; d++)
        s->edges.set[d] = (gs_edge_set){.chunk = &b->chunk[d]};
    GS_TRY(gs_schedule(&s->plan, &config));
    GS_TRY(gs_hop_needs_find(&needs, s->program, (gs_hop_ends){s->pairs.rows, s->pairs.upstream}, b->shape.hops, cut));
    GS_TRY(gs_batch_edges_open(&b->edges, &needs, s->program, &b->shape.limits, b->shape.edges_of));
    b->edges.feature_type = gs_store_get_info(s->store)->edge_feature_type;
    return GS_OK;
}

/* Arrays of the store that batches pick rows of, but for features: bits of gs_array_id. */
static uint32_t wanted_arrays(const gs_session *s)
{
    static const gs_array_id picked[] = {GS_ARRAY_LABELS, GS_ARRAY_INPUT_ID, GS_ARRAY_VERTEX_TYPE};
    uint32_t wanted = 0;

    for (size_t i = 0; i < GS_ARRAY_LEN(picked); i++)
        wanted |= (uint32_t)(gs_program_stored(s->program, picked[i]) != GS_NONE) << picked[i];
    return wanted;
}

static uint64_t narrow_bytes(const gs_session *s)
{
    uint64_t bytes = 0;
    for (int id = 0; id < GS_ARRAY_COUNT; id++)
        bytes += wanted_arrays(s) >> id & 1 ? gs_store_array(s->store, (gs_array_id)id)->bytes : 0;
    return bytes;
}

/* rows[k]: most rows of the first k hops. */
static void bound_rows(uint32_t *rows, const gs_batch_shape *shape, uint32_t levels)
{
    rows[0] = 0;
    for (uint32_t k = 1; k <= levels; k++)
        rows[k] = (uint32_t)GS_MIN(shape->limits.vertices, shape->targets + (k > 1 ? shape->edges_of[k - 1] : 0));
}

static uint32_t features_of(const gs_program *p) { return gs_program_stored(p, GS_ARRAY_FEATURES); }

/* Of the plan's memory what batches touch, with the rows of features in it or without. */
static gs_status count_plan(gs_batches *b)
{
    const gs_session *const s = b->session;
    const uint64_t named = gs_batch_named_bytes(s->program, s->plan, &b->shape.limits);
    uint32_t hop[GS_SAMPLE_HOPS + 2];

    bound_rows(hop, &b->shape, b->edges.needs.levels);
    gs_batch_edges_bind(&b->edges, hop);
    GS_TRY(gs_batch_memory(&b->copies, s->program, s->plan, &b->edges.binding, GS_NONE));
    b->names = b->copies;
    if (named == 0)
        return GS_OK;
    GS_TRY(gs_batch_memory(&b->names, s->program, s->plan, &b->edges.binding, features_of(s->program)));
    b->names += named;
    return GS_OK;
}

static uint64_t piece_bytes(const gs_batches *b)
{
    return gs_batch_edges_piece_bytes(&b->edges, &b->shape.limits, b->shape.coefficients ? b->shape.targets : 0);
}

/* On a GPU: what the plan has in memory, the edges, parameters with their gradients and the kernels' scratch. The host
 * has what is copied there. */
static void count_device(gs_batches *b)
{
    const gs_session *const s = b->session;
    const uint64_t *const region = s->plan->region_bytes, scratch = gs_device_scratch_bytes(s->machine.device[0],
                                                                                            s->program);
    b->device_bytes = region[GS_REGION_RESIDENT] + region[GS_REGION_ARENA] + 4 * GS_BLOCK_BYTES +
                      piece_bytes(b) +
                      2 * gs_params_elements(s->program) * sizeof(float) +
                      gs_params_sums(s->program) * sizeof(double) + scratch;
    b->bytes -= region[GS_REGION_ARENA] + scratch;
    b->copies = b->names = gs_exec_bound_bytes(s->program, s->plan);
}

static gs_status count_bytes(gs_batches *b)
{
    gs_session *const s = b->session;
    const uint64_t one = gs_params_elements(s->program) * sizeof(float);

    b->bytes = s->plan->host_bytes - s->plan->region_bytes[GS_REGION_RESIDENT] + b->edges.bytes + narrow_bytes(s) +
               (features_of(s->program) == GS_NONE ? 0 : gs_batch_rows_reading(s->store, b->shape.limits.vertices)) +
               gs_batch_tables_bytes(s, b->shape.limits.vertices) + 3 * one +
               gs_params_sums(s->program) * sizeof(double) +
               gs_device_scratch_bytes(s->machine.device[0], s->program) + gs_session_label_bytes(s) +
               (s->config.timed ? s->plan->tasks * GS_EXEC_TRACE_TASK_BYTES + sizeof(*b->fit) : 0);
    if (gs_session_has_memories(s)) {
        count_device(b);
        return GS_OK;
    }
    GS_TRY(count_plan(b));
    if (b->wire != NULL) {
        b->device_bytes = b->copies + piece_bytes(b) + 2 * GS_BLOCK_BYTES;
        b->copies = b->names = gs_exec_bound_bytes(s->program, s->plan);
    }
    return GS_OK;
}

/* Products with the matrix of an edge's type, edge by edge, where that is fewer than one for each vertex and type. */
static gs_variant variant_of(const gs_batch_shape *b)
{
    const double all = (double)b->edge_types * b->limits.vertices;
    return (gs_variant){.typed = all > (double)b->limits.edges ? GS_TAKEN_SHORTER : GS_NOT_TAKEN};
}

/* Of the largest batch, where nothing else is known. */
static gs_status predict(gs_batches *b)
{
    gs_session *const s = b->session;
    gs_pass_report x;

    gs_session_recall_batch_cost(s, &s->machine.cost);
    GS_TRY(gs_session_describe_pass(s, &x, s->pass.train));
    b->predicted = x.predicted;
    b->amounts = x;
    if (s->config.timed && (b->fit = gs_calloc(1, sizeof(*b->fit))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for what timed batches say");
    return GS_OK;
}

gs_status gs_batches_open(gs_batches **out, const gs_session_config *config, gs_exec_wire *wire)
{
    const gs_batch_shape *const shape = config->batch;
    GS_ENDS(gs_batches_close_at) gs_batches *b = gs_calloc(1, sizeof(*b));

    GS_NEED(b != NULL, "out of memory");
    b->shape = *shape;
    b->wire = wire;
    GS_TRY(gs_session_prepare(&b->session, config, NULL, variant_of(shape)));
    make_table(b);
    GS_TRY(make_plan(b));
    GS_TRY(count_bytes(b));
    GS_TRY(predict(b));
    *out = GS_HANDED_OVER(b);
    return GS_OK;
}

/* Learned rows are what the step before left, what a loss of pairs says is not there before the pass, and a profile
 * times tasks that are alone: these are not sent before. */
void gs_batches_set_room(gs_batches *b, const gs_batch_room *room)
{
    const bool may = b->device_bytes > 0 && b->session->program->tables == 0 && b->fit == NULL &&
                     b->session->pairs.upstream == GS_NONE && gs_store_get_shard(b->session->store) == NULL;

    b->slots.count = may ? GS_MIN(room->slots, GS_EXEC_SLOTS) : 1;
    if (features_of(b->session->program) == GS_NONE)
        return;
    b->keeps = room->keeps;
    b->cache = gs_row_cache_shape_of(b->session->store, room->cache, room->group, b->shape.limits.vertices,
                                     room->side);
    b->ring = room->ring;
}

void gs_batches_keep_rows(gs_batches *b, uint32_t rows, uint32_t devices, uint32_t own)
{
    b->kept.rows = rows;
    b->kept.devices = devices;
    b->kept.own = own;
    b->draw.on = false;
}

static uint64_t kept_bytes(const gs_batches *b, uint32_t rows)
{
    return gs_exec_spread_bytes(gs_store_array(b->session->store, GS_ARRAY_FEATURES)->row_bytes,
                                b->shape.limits.vertices, rows);
}

uint32_t gs_batches_rows_within(const gs_batches *b, uint64_t bytes)
{
    const gs_store *const s = b->session->store;

    if (gs_batches_device_bytes(b) == 0 || features_of(b->session->program) == GS_NONE ||
        !gs_store_array(s, GS_ARRAY_OUT_DEGREE)->present)
        return 0;
    const uint64_t beside = kept_bytes(b, 0) + GS_BLOCK_BYTES;
    return bytes <= beside ? 0
                           : (uint32_t)GS_MIN((bytes - beside) / gs_store_array(s, GS_ARRAY_FEATURES)->row_bytes,
                                              gs_store_get_info(s)->vertices);
}

bool gs_batches_gain(const gs_batches *b, uint64_t rows)
{
    const gs_store *const s = b->session->store;
    return rows * gs_store_array(s, GS_ARRAY_FEATURES)->row_bytes > gs_store_get_info(s)->vertices * sizeof(uint32_t);
}

uint32_t gs_batches_kept_rows(const gs_batches *b)
{
    const gs_batches_kept *const k = &b->kept;
    return k->rows == 0 ? 0 : (k->rows + k->devices - 1 - k->own) / k->devices;
}

const gs_device *gs_batches_device(const gs_batches *b) { return b->session->machine.device[0]; }

/* With the optimiser's state and the parameters before the last step, as who has two slots steps by himself. */
uint64_t gs_batches_slot_bytes(const gs_batches *b)
{
    const uint64_t one = gs_params_elements(b->session->program) * sizeof(float);
    return gs_exec_slot_bytes(b->session->program, b->session->plan, piece_bytes(b)) +
           (GS_PARAMS_STATES + 1) * one + GS_BLOCK_BYTES;
}

bool gs_batches_sends(const gs_batches *b) { return b->device_bytes > 0; }

static uint64_t sent_bytes(const gs_batches *b)
{
    return b->device_bytes + (b->slots.count > 1 ? gs_batches_slot_bytes(b) : 0);
}

uint64_t gs_batches_device_bytes(const gs_batches *b)
{
    return b->wire != NULL ? 0
                           : sent_bytes(b) + (b->kept.rows > 0 ? kept_bytes(b, gs_batches_kept_rows(b)) : 0) +
                                 gs_batches_draw_bytes(b);
}

/* Of the host, for rows that devices keep: which they are, a batch's and, with a cache, a group's. */
static uint64_t lists_bytes(const gs_batches *b)
{
    const uint64_t list = b->shape.limits.vertices * sizeof(uint32_t), group = b->cache.slots > 0 ? b->cache.group : 0,
                   slots = GS_MAX(b->slots.count, 1);
    return b->kept.rows == 0 ? 0
                             : gs_batch_spread_bytes(b->session->store) + 2 * slots * list +
                                   group * (list + sizeof(gs_batch));
}

uint64_t gs_batches_bytes(const gs_batches *b)
{
    const bool names = b->keeps && gs_store_get_shard(b->session->store) == NULL;
    return b->bytes + (b->keeps ? gs_batch_rows_bytes(b->session->store) : 0) +
           (names ? b->names : GS_MAX(b->copies, b->names)) +
           gs_row_cache_bytes(b->session->store, &b->cache, b->shape.limits.vertices) +
           gs_batch_rows_ahead(b->ring, b->shape.limits.vertices) + lists_bytes(b) +
           (b->slots.count > 1 ? GS_EXEC_SLOTS * gs_align_up(piece_bytes(b), GS_BLOCK_BYTES) + b->copies : 0) +
           (b->wire != NULL ? sent_bytes(b) : 0);
}

void gs_batches_take_typical(gs_batches *b, const gs_batch *batch)
{
    const gs_store *const s = b->session->store;
    const bool used = features_of(b->session->program) != GS_NONE;
    const uint64_t rows = used ? batch->vertices * gs_store_array(s, GS_ARRAY_FEATURES)->row_bytes : 0;
    uint64_t copied = 0;

    gs_batch_edges_fill(&b->edges, batch);
    gs_exec_piece piece[GS_BATCH_PIECES];
    for (uint32_t n = b->device_bytes == 0 ? 0 : gs_batch_edges_pieces(&b->edges, batch, piece); n-- > 0;)
        copied += piece[n].bytes;
    for (uint32_t t = 0; t < b->session->program->tables && b->device_bytes > 0; t++) { /* rows, and their gradients */
        const gs_table *const table = &b->session->program->table[t];
        copied += (uint64_t)batch->vertices * table->width * sizeof(float) * (table->gradient == GS_NONE ? 1 : 2);
    }
    gs_batch_amounts(&b->amounts, b->session, &b->edges);
    gs_batch_predict(&b->predicted, b->session, &b->edges, rows / sizeof(float),
                     copied + (b->device_bytes == 0 ? 0 : rows), b->wire != NULL ? b->wire->bps : 0);
    b->picking = gs_batch_picking(b->session, rows / sizeof(float));
    b->drawing = b->session->machine.cost.draw_seconds * ((double)batch->edges + batch->vertices);
}

/* Where tasks pick the rows that they load, and such tasks were timed, it is in what they take. What drawing and
 * picking take a device is not known. */
gs_batch_lanes gs_batches_lanes(const gs_batches *b)
{
    const gs_predicted *const x = &b->predicted;
    const bool timed = b->session->machine.cost.draw_seconds > 0, named = b->keeps && b->names != b->copies;
    const bool known = (timed && named) || b->draw.on;

    return (gs_batch_lanes){.pick = known ? 0 : b->picking, .send = b->draw.on ? 0 : x->stall_seconds,
                            .compute = x->seconds - x->stall_seconds - b->picking, .slots = GS_MAX(b->slots.count, 1)};
}

static gs_predicted predicted_of(const gs_batches *b)
{
    const gs_batch_lanes l = gs_batches_lanes(b);
    gs_predicted x = b->predicted;

    x.vertex_seconds -= b->picking - l.pick;
    x.seconds = l.slots > 1 ? GS_MAX(l.compute, GS_MAX(l.pick, l.send)) : l.pick + l.send + l.compute;
    return x;
}

uint32_t gs_batches_side(const gs_batches *b) { return GS_MAX(b->cache.side, 1); }
double gs_batches_seconds(const gs_batches *b) { return GS_MAX(predicted_of(b).seconds, LEAST_SECONDS); }
double gs_batches_drawing(const gs_batches *b) { return b->draw.on ? 0 : b->drawing; }

gs_status gs_batches_describe(const gs_batches *b, gs_pass_report *out)
{
    GS_TRY(gs_session_describe_pass(b->session, out, b->session->pass.train));
    snprintf(out->name, sizeof(out->name), "batch");
    out->predicted = predicted_of(b);
    out->dense_flops = b->amounts.dense_flops;
    out->edge_flops = b->amounts.edge_flops;
    out->edge_bytes = b->amounts.edge_bytes;
    out->edges = b->amounts.edges;
    out->rows = b->amounts.rows;
    return GS_OK;
}

void gs_batches_close(gs_batches *b)
{
    if (b == NULL)
        return;
    gs_batch_slots_close(&b->slots);
    gs_batch_rows_close(&b->rows);
    gs_batch_spread_close(&b->kept.which);
    for (uint32_t k = 0; k < GS_EXEC_SLOTS; k++) {
        gs_free(b->kept.places[k].place);
        gs_free(b->kept.places[k].left);
    }
    gs_free(b->kept.group);
    gs_free(b->kept.lists);
    gs_batch_named_close(&b->named);
    gs_batch_tables_close(&b->tables);
    gs_session_close(b->session);
    gs_batch_edges_close(&b->edges);
    gs_free(b->fit);
    gs_free(b);
}

/* ---- starting ------------------------------------------------------------ */

/* Parameters and gradients of the same names are those of the whole graph's session; statistics are the batch's own. */
static gs_status share_params(gs_batches *b)
{
    gs_session *const s = b->session, *const w = b->whole;
    gs_params *const p = &s->run.params;

    for (uint32_t i = 0; i < s->program->params; i++) {
        uint32_t k = 0;
        if (s->program->param[i].statistic != GS_STATISTIC_NONE)
            continue;
        while (k < w->program->params && strcmp(w->program->param[k].name, s->program->param[i].name) != 0)
            k++;
        if (k == w->program->params)
            return gs_fail(GS_EINVAL, "parameter %s: is of training alone, and no evaluation has it",
                           s->program->param[i].name);
        p->value[i] = w->run.params.value[k];
        if (!b->beside)
            p->grad[i] = w->run.params.grad[k];
        w->program->param[k].learns = s->program->param[i].learns;
    }
    return GS_OK;
}

static gs_status open_exec(gs_batches *b)
{
    gs_session *const s = b->session;
    const gs_exec_config config = {
        .program = s->program,
        .plan = s->plan,
        .device = s->machine.device,
        .gradients = true,
        .parts = 1,
        .interval_rows = b->table.interval_rows,
        .vertices = b->table.vertices,
        .index_bytes = gs_index_bytes(&b->table),
        .edge_data = b->table.data,
        .edge_types = gs_store_get_info(s->store)->edge_types,
        .edge_feature_type = gs_store_get_info(s->store)->edge_feature_type,
        .sets = 2,
        .say_after = 60,
        .bound = true,
        .trace = s->config.timed,
        .spread = {.on = b->kept.rows > 0, .array = features_of(s->program), .rows = gs_batches_kept_rows(b)},
        .sends = gs_batches_sends(b),
        .piece_bytes = gs_batches_sends(b) ? piece_bytes(b) : 0,
        .slots = b->slots.count,
        .wire = b->wire,
        .draw_bytes = gs_batches_draw_bytes(b),
    };
    return gs_exec_open(&s->run.exec, &config);
}

/* All of them, in the memory of the evaluation; or NULL. */
static const uint8_t *features_in(const gs_session *w)
{
    const uint32_t a = features_of(w->program);
    return a == GS_NONE ? NULL : gs_exec_kept_rows(w->run.exec, a);
}

static gs_status take_lists(gs_batches *b)
{
    gs_batches_kept *const k = &b->kept;
    const uint32_t most = b->shape.limits.vertices, group = b->rows.plan != NULL ? b->cache.group : 0;

    bool there = true;
    for (uint32_t i = 0; i < b->slots.count; i++) {
        k->places[i].place = gs_malloc_array(most, sizeof(*k->places[i].place));
        k->places[i].left = gs_malloc_array(most, sizeof(*k->places[i].left));
        k->run[i].place = k->places[i].place;
        there = there && k->places[i].place != NULL && k->places[i].left != NULL;
    }
    k->group = gs_calloc(group + 1ull, sizeof(*k->group));
    k->lists = gs_malloc_array((size_t)most * group + 1, sizeof(*k->lists));
    if (!there || k->group == NULL || k->lists == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for lists of rows that stay in devices' memory");
    return GS_OK;
}

/* The device's part of the rows: as many at a time as a batch has. */
static gs_status keep_rows(gs_batches *b, const gs_batches *keeper)
{
    gs_batches_kept *const k = &b->kept;
    const uint32_t array = features_of(b->session->program);

    if (k->rows == 0)
        return GS_OK;
    if (keeper == NULL)
        GS_TRY(gs_batch_spread_open(&k->which, b->session->store, k->rows));
    k->of = keeper == NULL ? &k->which : keeper->kept.of;
    for (uint32_t i = 0; i < GS_EXEC_SLOTS; i++)
        k->run[i] = (gs_exec_spread){.array = array, .devices = k->devices, .rows_kept = k->rows,
                                     .kept = {gs_exec_kept_memory(b->session->run.exec)}};
    GS_TRY(take_lists(b));
    gs_batch_rows_apart(&b->rows, true);
    for (uint32_t at = 0, from = 0, n;; at += n) {
        n = gs_batch_spread_list(k->places[0].left, k->of, b->shape.limits.vertices, k->own, k->devices, &from);
        if (n == 0)
            break;
        GS_TRY(gs_batch_rows_pick(&b->rows, GS_ARRAY_FEATURES, k->places[0].left, n,
                                  gs_exec_rows(b->session->run.exec, array)));
        GS_TRY(gs_exec_keep_rows(b->session->run.exec, array, at, n));
    }
    gs_batch_rows_apart(&b->rows, false);
    return GS_OK;
}

gs_status gs_batches_meet(gs_batches *b, gs_batches *const *all)
{
    gs_batches_kept *const k = &b->kept;

    for (uint32_t d = 0; d < k->devices && k->devices > 1 && k->rows > 0; d++) {
        bool open = false;
        GS_TRY(gs_device_open_peer(b->session->machine.device[0], all[d]->session->machine.device[0], &open));
        if (!open)
            return gs_fail(GS_EDEVICE, ".device: device %u does not reach device %u any more, whose rows of features "
                           "it was to read; use .no_spread", k->own, d);
        for (uint32_t i = 0; i < GS_EXEC_SLOTS; i++)
            k->run[i].kept[d] = gs_exec_kept_memory(all[d]->session->run.exec);
    }
    return GS_OK;
}

uint64_t gs_batches_gap(const gs_cost *c)
{
    const double request = c->block_seconds > 0 ? c->block_seconds : c->request_seconds;
    const uint64_t bytes = (uint64_t)(c->read_bps * request);
    return c->disk_source == GS_COST_DEFAULT ? 0 : GS_MAX(bytes, 1);
}

gs_status gs_batches_start(gs_batches *b, gs_session *whole, gs_batches *first, const gs_batches *keeper)
{
    gs_session *const s = b->session;
    const uint8_t *const features = first != NULL ? first->rows.features : features_in(whole);
    const uint32_t wanted = wanted_arrays(s) | (uint32_t)(b->keeps && features == NULL) << GS_ARRAY_FEATURES;
    const bool shard = gs_store_get_shard(s->store) != NULL;
    const uint32_t most = b->shape.limits.vertices, picked = features_of(s->program) == GS_NONE ? 0 : most;

    b->whole = whole;
    b->beside = first != NULL;
    GS_TRY(gs_params_alloc(&s->run.params, s->program, true, 0));
    GS_TRY(share_params(b));
    GS_TRY(gs_device_prepare(s->machine.device[0], s->program));
    GS_TRY(gs_batch_rows_open(&b->rows, s->store, wanted, features, picked, &b->cache, b->ring));
    GS_TRY(gs_batch_tables_open(&b->tables, whole, s, most, first == NULL ? NULL : &first->tables,
                                shard && picked > 0 ? &b->rows : NULL));
    gs_batch_rows_apart(&b->rows, shard); /* other ranks' batches are not known */
    b->rows.gap = gs_batches_gap(&s->machine.cost);
    if (b->rows.features != NULL && b->device_bytes == 0 && !shard)
        GS_TRY(gs_batch_named_open(&b->named, s->program, s->plan, &b->shape.limits));
    GS_TRY(open_exec(b));
    GS_TRY(keep_rows(b, keeper));
    GS_TRY(gs_batch_draw_open(b));
    return gs_batch_slots_open(b);
}

/* ---- a group ------------------------------------------------------------- */

void gs_batches_begin(gs_batches *b, const gs_batch *batch, uint32_t batches)
{
    gs_batches_kept *const k = &b->kept;
    const bool left = k->rows > 0 && b->rows.plan != NULL; /* the cache is of what no device keeps */

    gs_batch_slots_quiet(&b->slots);
    for (uint32_t i = 0; i < batches && left; i++) {
        gs_batch_places p = {.left = k->lists + (uint64_t)i * b->shape.limits.vertices};
        gs_batch_spread_find(&p, k->of, batch[i].vertex, batch[i].vertices, k->own, k->devices);
        k->group[i] = batch[i];
        k->group[i].vertex = p.left;
        k->group[i].vertices = p.lefts;
    }
    /* without a cache, what is left of rows that devices keep is not known yet */
    gs_batch_rows_begin(&b->rows, left ? k->group : batch, left || (k->rows == 0 && !b->rows.apart) ? batches : 0);
    gs_batch_slots_queue(&b->slots, batch, batches, false);
}

/* What is read of the store is planned group by group. */
bool gs_batches_can_follow(const gs_batches *b)
{
    return b->slots.threads > 0 && (features_of(b->session->program) == GS_NONE || b->rows.features != NULL ||
                                    b->rows.array[GS_ARRAY_FEATURES] != NULL || b->draw.on);
}

void gs_batches_pass_over(gs_batches *b)
{
    gs_batch_slots_quiet(&b->slots);
    gs_batch_rows_pass(&b->rows);
    gs_batch_slots_skip(&b->slots);
}

void gs_batches_pause(gs_batches *b)
{
    gs_batch_slots_quiet(&b->slots);
    gs_exec_forget(b->session->run.exec);
    gs_drop_pages(b->named.tile, b->named.bytes);
}

/* ---- a pass -------------------------------------------------------------- */

void gs_batches_set_loss(gs_batches *b, gs_batch_loss loss) { b->loss = loss; }

/* What the pass "train" came to, with what the loss before it did. */
static void add_loss(gs_exec_stats *to, const gs_exec_stats *x)
{
    to->metrics.loss_sum = x->metrics.loss_sum;
    to->entered = x->entered;
    to->seconds += x->seconds;
    to->compute_seconds += x->compute_seconds;
    to->edge_seconds += x->edge_seconds;
    to->stall_seconds += x->stall_seconds;
    to->copied_in_bytes += x->copied_in_bytes;
    to->copied_out_bytes += x->copied_out_bytes;
}

/* Of pairs: rows of the targets, and what their loss says of these, which the pass "train" begins with. Rows behind
 * them are read as 0. */
static gs_status run_loss(gs_batches *b, gs_batch_pass *p, const gs_exec_args *args, bool mean)
{
    gs_session *const s = b->session;
    const uint32_t width = s->program->array[s->pairs.upstream].width, targets = p->batch->targets;
    float *const upstream = gs_exec_rows(s->run.exec, s->pairs.upstream);
    const double began = gs_now();
    gs_exec_args forward = *args;
    double loss = 0;
    forward.grad = NULL;
    GS_TRY(gs_exec_run(s->run.exec, s->pass.forward, &forward, &p->stats));
    const uint32_t read = GS_MAX(b->edges.zeroed[s->pairs.upstream], targets);
    memset(upstream + (uint64_t)targets * width, 0, (uint64_t)(read - targets) * width * sizeof(*upstream));
    const double from = gs_now();
    GS_TRY(b->loss.of_rows(b->loss.context, s, p->batch, gs_exec_rows(s->run.exec, s->pairs.rows), upstream, mean,
                           &loss, &p->mass));
    p->stats.compute_seconds += gs_now() - from;
    p->stats.seconds = gs_now() - began;
    p->stats.metrics.loss_sum = loss;
    gs_params_zero_sums(&s->run.params);
    return gs_exec_send_array(s->run.exec, s->pairs.upstream, &p->stats.copied_in_bytes);
}

/* Gradients are added to those that are there: of the losses' mean, or of their sum. */
static gs_status run_pass(gs_batches *b, gs_batch_pass *p, bool mean)
{
    gs_session *const s = b->session, *const w = b->whole;
    const gs_batch *const batch = p->batch;
    gs_batch_slot *slot;
    double stalled;

    GS_TRY(gs_batch_slots_take(&slot, &stalled, b, batch));
    if ((p->overflows = slot->batch.overflows))
        return GS_OK;
    if (batch->seeds_alone) {
        p->drawn = slot->batch;
        p->batch = &p->drawn;
    }
    p->began = slot->began;
    p->picked = slot->picked;
    p->sending = slot->sending;
    p->sent = slot->arrived;
    p->mass = slot->mass;
    gs_exec_bind(s->run.exec, &slot->graph);
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
    p->started = gs_now();
    if (b->loss.of_rows != NULL)
        GS_TRY(run_loss(b, p, &args, mean));
    const gs_exec_stats of_loss = p->stats;
    GS_TRY(gs_exec_run(s->run.exec, s->pass.train, &args, &p->stats));
    if (b->loss.of_rows != NULL)
        add_loss(&p->stats, &of_loss);
    p->ended = gs_now();
    p->pick_seconds = p->picked - p->began - slot->waited;
    p->stats.read_bytes += slot->read_bytes;
    p->stats.copied_in_bytes += slot->sent.copied_in_bytes;
    p->stats.copied_out_bytes += slot->batch.seeds_alone ? sizeof(gs_draw_counts) : 0;
    p->stats.forwarded_bytes += slot->sent.forwarded_bytes;
    p->stats.stall_seconds += stalled;
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
    GS_TRY(run_pass(b, p, true));
    if (!p->overflows)
        gs_batches_follow(b, p->batch, NULL);
    return GS_OK;
}

/* ---- a step on the device ------------------------------------------------ */

/* What is learned is laid out alike in all runs of floats of `whole`, as its values are. */

static uint32_t learned(const gs_program *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->params; i++)
        n += !p->param[i].fixed;
    return n;
}

bool gs_batches_can_step(const gs_batches *b)
{
    return b->slots.count > 1 && gs_device_steps(gs_batches_device(b)) &&
           learned(b->session->program) == learned(b->whole->program);
}

/* Each parameter's part of a run; until the next call. */
static float **parts_of(const gs_batches *b, float *run)
{
    const gs_params *const p = &b->session->run.params;
    float **const part = b->slots.part;

    for (uint32_t i = 0; i < p->count; i++)
        part[i] = b->session->program->param[i].fixed ? NULL : run + (p->value[i] - b->whole->run.params.values);
    return part;
}

static uint32_t states_of(const gs_params *p)
{
    uint32_t n = 0;
    while (n < GS_PARAMS_STATES && p->state[n] != NULL)
        n++;
    return n;
}

gs_status gs_batches_keep_params(gs_batches *b)
{
    gs_device *const d = b->session->machine.device[0];
    const gs_params *const w = &b->whole->run.params;
    const uint32_t states = states_of(w);

    GS_TRY(gs_device_keep_params(d, (const float *const *)b->session->run.params.value, states));
    for (uint32_t k = 0; k < states; k++)
        GS_TRY(gs_device_put_state(d, k, (const float *const *)parts_of(b, w->state[k])));
    return GS_OK;
}

gs_status gs_batches_fetch_params(gs_batches *b, bool stepped)
{
    gs_device *const d = b->session->machine.device[0];
    const gs_params *const w = &b->whole->run.params;

    GS_TRY(gs_device_fetch_params(d, b->session->run.params.value));
    for (uint32_t k = 0; k < states_of(w); k++)
        GS_TRY(gs_device_fetch_state(d, k, parts_of(b, w->state[k])));
    if (stepped)
        GS_TRY(gs_device_fetch_previous(d, parts_of(b, w->previous)));
    gs_device_leave_params(d);
    return GS_OK;
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

/* In the place of the batch where the device drew it, else of the next one: nothing is ahead of that then. */
void gs_batches_begin_parts(gs_batches *b)
{
    gs_batch_slots_quiet(&b->slots);
    b->slots.parts = b->slots.taken - (b->slots.taken > b->slots.passed);
    gs_batch_rows_pass(&b->rows);
    gs_batch_rows_apart(&b->rows, true);
}

gs_status gs_batches_run_part(gs_batches *b, gs_batch_pass *p)
{
    GS_TRY(run_pass(b, p, false));
    gs_batches_follow(b, p->batch, NULL);
    return GS_OK;
}

void gs_batches_end_parts(gs_batches *b)
{
    const bool drawn = b->slots.parts < b->slots.taken;

    gs_batch_rows_apart(&b->rows, false);
    gs_batch_slots_release(b);
    if (!drawn)
        gs_batch_slots_skip(&b->slots);
}
