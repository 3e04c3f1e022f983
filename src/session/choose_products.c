/* choose_products.c - the attributes that edges are cut by, as WiseGraph has them, and what each way would take. */
#include "session/choose_products.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "base/option_table.h"
#include "cost/cost.h"
#include "program/products.h"
#include "ranks/ranks.h"
#include "schedule/simulate.h"
#include "session/session.h"
#include "session/session_plan.h"
#include "store/edge_scan.h"

/* The words of .products, in their order. */
enum { AUTO, EDGES, RUNS, PAIRS };

static const gs_products ways[] = {GS_PRODUCTS_OF_EDGES, GS_PRODUCTS_OF_RUNS, GS_PRODUCTS_OF_PAIRS};
#define WAYS GS_ARRAY_LEN(ways)
_Static_assert(WAYS == GS_COST_WAYS, "what was measured is known of each way");

static gs_status count_runs(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    uint64_t *const runs = context;

    (void)target;
    (void)operand;
    for (uint32_t t = 0; t < v->targets; t++)
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++)
            *runs += k == v->start[t] ||
                     gs_type_at(v->type, v->type_bytes, k) != gs_type_at(v->type, v->type_bytes, k - 1);
    return GS_OK;
}

/* Runs for each edge of a direction of the store. */
static gs_status runs_per_edge(const gs_session *s, uint32_t direction, double *out)
{
    const gs_scan_key key = {.kind = GS_SCAN_RUNS, .direction = direction};
    uint64_t runs = 0;
    const gs_scan_answer answer = {{&runs}, {sizeof(runs)}};

    if (!gs_scans_find(s->edges.scans, &key, &answer)) {
        GS_ENDS(gs_scan_share_end) gs_scan_share share = {0};
        GS_TRY(gs_scan_share_take(&share, s));
        GS_TRY(gs_scan_share_check(s));
        GS_TRY(gs_edge_scan(s->store, (gs_direction)direction, gs_session_left(&s->memory) / 2, share.wanted,
                            count_runs, &runs));
        if (share.ranks > 1)
            GS_TRY(gs_ranks_sum_u64(&runs, 1));
        gs_scans_keep(s->edges.scans, &key, &answer);
    }
    *out = (double)runs / (double)gs_store_get_info(s->store)->edges;
    return GS_OK;
}

/* Seconds of the stage's edge program, an edge. */
static double edge_seconds(const gs_session *s, const gs_stage *stage, gs_products products)
{
    const gs_cost *const cost = gs_session_host_cost(s) != NULL ? gs_session_host_cost(s) : &s->machine.cost;
    gs_stage so = *stage;
    gs_work w = {.amount = {0}};

    so.products = products;
    gs_edge_program_work(&w, s->program, &so, 1);
    return gs_cost_seconds(cost, &w);
}

/* Pairs for each edge of a stage, in the portions that a device makes of a chunk (gs_pair_portion()).
 * Those of a whole chunk are the runs of its other copy, where a vertex's edges lie by its own type. A part
 * of a chunk's edges has the more of its pairs, the more evenly they are spread over them; that they are
 * quite even is the most that there may be. So as many parts are assumed as keep what such a part has below a
 * portion. */
static double pairs_per_edge(const gs_session *s, gs_stage *stage, const gs_edge_products *p, double of_chunk)
{
    const double chunks = pow(gs_store_chunks(s->store)->parts, 2);
    const double edges = (double)gs_store_get_info(s->store)->edges / chunks, pairs = of_chunk * edges;
    const double most = stage->pair_portion = gs_pair_portion(gs_stage_product_widths(stage, p), pairs);
    double parts = ceil(edges / (most * GS_PORTION_PAIR_EDGES)), each = pairs;

    for (parts = fmax(parts, 1);; parts = ceil(parts * 1.1)) {
        each = parts == 1 ? pairs : pairs * (1 - pow(1 - 1 / parts, edges / pairs));
        if (each <= most || edges / parts <= 1)
            return fmin(parts * each / edges, 1);
    }
}

/* Counts what a way has of products: of runs, or of pairs, which are runs in the other direction. */
static gs_status count_products(const gs_session *s, gs_stage *stage, gs_products way)
{
    const uint32_t other = way == GS_PRODUCTS_OF_PAIRS;
    const uint32_t direction = gs_store_chunks(s->store)->shared ? GS_BY_DEST : stage->direction ^ other;
    gs_edge_products p;
    double of_chunk = 0;

    if (!gs_stage_find_products(&p, stage, way))
        return GS_OK;
    GS_TRY(runs_per_edge(s, direction, &of_chunk));
    if (way == GS_PRODUCTS_OF_RUNS)
        stage->runs_per_edge = of_chunk;
    else
        stage->pairs_per_edge = pairs_per_edge(s, stage, &p, of_chunk);
    return GS_OK;
}

static bool is_possible(const gs_stage *stage, gs_products way)
{
    return way == GS_PRODUCTS_OF_EDGES ||
           (way == GS_PRODUCTS_OF_RUNS ? stage->runs_per_edge : stage->pairs_per_edge) > 0;
}

/* The one that is asked for, where the stage can have it, or the shortest. */
static gs_products choose_way(const gs_session *s, const gs_stage *stage, int asked)
{
    gs_products best = GS_PRODUCTS_OF_EDGES;

    if (asked != AUTO)
        return is_possible(stage, ways[asked - EDGES]) ? ways[asked - EDGES] : GS_PRODUCTS_OF_EDGES;
    for (uint32_t i = 1; i < WAYS; i++)
        if (is_possible(stage, ways[i]) && edge_seconds(s, stage, ways[i]) < edge_seconds(s, stage, best))
            best = ways[i];
    return best;
}

/* Devices on host memory make them. Predictions, whose bits depend on no budget, only where that is asked for: the
 * edges are read beforehand as far as a budget allows. */
static bool can_choose(const gs_session *s, int asked)
{
    if (asked == EDGES || (asked == AUTO && s->pass.train == GS_NONE))
        return false;
    return s->config.batch == NULL && !gs_session_has_memories(s) && gs_store_get_info(s->store)->edges > 0 &&
           gs_edge_scan_least(s->store) <= gs_session_left(&s->memory) / 2;
}

/* ---- what was measured ---- */

/* Runs of so many epochs measure before the first one, which takes less than one; others have what such runs left. */
#define LONG_EPOCHS 100u
/* Runs and pairs that are predicted to take longer than so many times the shortest are not measured: they want scratch
 * of their own. */
#define UNLIKELY 3.0
/* Of a stage's pieces every so-and-so-many-th is measured: so they are from all over the pass. */
#define EVERY (GS_TRIAL_PIECES / GS_TRIAL_ROUNDS)

static uint64_t stage_edges(const gs_session *s, uint32_t stage)
{
    const uint64_t parts = gs_store_chunks(s->store)->parts;
    const gs_chunk *const chunk = s->edges.set[s->edges.stage_set[stage]].chunk;
    uint64_t edges = 0;

    for (uint64_t i = 0; i < parts * parts; i++)
        edges += chunk[i].edges;
    return edges;
}

/* May what was measured count? Where one device has all edges, and launches go to the program's own stages. */
static bool may_measure(const gs_session *s)
{
    return gs_choice(s->config.options, products) == AUTO && s->pass.train != GS_NONE && s->machine.devices == 1 &&
           gs_ranks_count() == 1 && s->config.batch == NULL && s->config.cluster == NULL && s->program->tables == 0 &&
           !gs_train_is_of_pairs(s->config.options);
}

static bool is_long(const gs_session *s) { return s->config.timed || gs_session_epochs(s) >= LONG_EPOCHS; }

static bool is_of_training(const gs_session *s, uint32_t stage)
{
    const gs_pass *const pass = &s->program->pass[s->pass.train];
    return stage >= pass->first_stage && stage < pass->first_stage + pass->stages;
}

static void load_record(const gs_session *s, gs_cost_record *out)
{
    gs_cost_record_load(out, gs_device_name(s->machine.device[s->machine.kind[0]]));
}

/* The stage, however its products are made, on this store. 0: no memory to tell. */
static double key_of(const gs_session *s, uint32_t stage)
{
    gs_stage *const so = &s->program->stage[stage];
    const gs_products way = so->products;
    char *text = NULL;
    size_t bytes = 0;
    FILE *const f = open_memstream(&text, &bytes);
    double key = 0;

    if (f == NULL)
        return 0;
    so->products = GS_PRODUCTS_OF_EDGES;
    gs_program_print_stage(s->program, stage, f);
    so->products = way;
    if (fclose(f) == 0)
        key = (double)(gs_hash64_seeded(text, bytes, gs_store_get_info(s->store)->id) >> 15);
    free(text);
    return key;
}

/* Of ways that a device is ready for, bits 1 << gs_products. */
static unsigned ready_ways(const gs_stage *stage) { return stage->tried | 1u << stage->products; }

/* Ways to try: those that may be shortest. None, where the stage has but one. */
static unsigned likely_ways(const gs_session *s, const gs_stage *stage)
{
    unsigned likely = 0;

    if (!is_possible(stage, GS_PRODUCTS_OF_RUNS) && !is_possible(stage, GS_PRODUCTS_OF_PAIRS))
        return 0; /* nor has a sequence an edge program whose seconds could be asked for */
    const double least = edge_seconds(s, stage, stage->products);
    for (uint32_t i = 0; i < WAYS; i++)
        if (ways[i] == GS_PRODUCTS_OF_EDGES ||
            (is_possible(stage, ways[i]) && edge_seconds(s, stage, ways[i]) <= UNLIKELY * least))
            likely |= 1u << ways[i];
    return (likely & (likely - 1)) == 0 ? 0 : likely;
}

/* Has the device be ready for them, where the run measures, or what was measured is known. */
static void choose_tried(gs_session *s)
{
    gs_cost_record record;
    bool loaded = false;

    for (uint32_t k = 0; k < s->program->stages; k++) {
        gs_stage *const stage = &s->program->stage[k];
        stage->tried = may_measure(s) && is_of_training(s, k) ? likely_ways(s, stage) : 0;
        if (stage->tried == 0 || is_long(s))
            continue;
        if (!loaded)
            load_record(s, &record);
        loaded = true;
        if (gs_cost_record_stage(&record, key_of(s, k)) == NULL)
            stage->tried = 0;
    }
}

/* The plan stays as it is, but for what it says of products. */
static void take_way(gs_session *s, uint32_t k, gs_products way)
{
    gs_plan_pass *const pass = &s->plan->pass[s->pass.train];
    gs_stage *const stage = &s->program->stage[k];
    const uint64_t edges = stage_edges(s, k);
    double dense[2], of_edges[2], products[2];

    for (int i = 0; i < 2; i++) {
        gs_stage_flops(s->program, stage, 0, edges, &dense[i], &of_edges[i]);
        products[i] = gs_stage_product_share(stage) * (double)edges;
        stage->products = way;
    }
    pass->dense_flops += dense[1] - dense[0];
    pass->edge_flops += of_edges[1] - of_edges[0];
    pass->products += products[1] - products[0];
}

/* Products of edges need no scratch that other stages push out of caches meanwhile, which launches on trial, one behind
 * the other, do not show: they are taken if they are no longer than so many times the shortest. */
#define AS_GOOD 1.03

/* Of those that the stage is ready for; GS_NONE: nothing was measured of them. */
static uint32_t shortest_way(const gs_stage *stage, const gs_cost_stage *of)
{
    const unsigned ready = ready_ways(stage);
    uint32_t best = GS_NONE;
    double least = INFINITY;

    for (uint32_t i = 0; i < WAYS; i++) {
        const double seconds = ways[i] == GS_PRODUCTS_OF_EDGES ? of->seconds[i] / AS_GOOD : of->seconds[i];
        if ((ready >> ways[i] & 1) == 0 || seconds <= 0 || seconds >= least)
            continue;
        best = i;
        least = seconds;
    }
    return best;
}

/* Takes what was measured to be shortest. True: that is known of every stage. */
static bool take_measured(gs_session *s, const gs_cost_record *record)
{
    bool all = true;

    for (uint32_t k = 0; k < s->program->stages; k++) {
        const gs_stage *const stage = &s->program->stage[k];
        const gs_cost_stage *const of = stage->tried != 0 ? gs_cost_record_stage(record, key_of(s, k)) : NULL;
        const uint32_t best = of != NULL ? shortest_way(stage, of) : GS_NONE;

        all = all && (stage->tried == 0 || of != NULL);
        if (best != GS_NONE)
            take_way(s, k, ways[best]);
    }
    return all;
}

static bool any_tried(const gs_session *s)
{
    for (uint32_t k = 0; k < s->program->stages; k++)
        if (s->program->stage[k].tried != 0)
            return true;
    return false;
}

void gs_session_recall_products(gs_session *s)
{
    gs_cost_record record;

    if (!any_tried(s))
        return;
    load_record(s, &record);
    (void)take_measured(s, &record);
}

/* A way is behind by more than chance after so many rounds: logarithms of how many times as long it takes. */
static const double surely_behind[GS_TRIAL_ROUNDS] = {0.50, 0.15, 0.06, 0.06};

bool gs_way_trial_goes_on(const gs_way_trial *t)
{
    return (t->ways & (t->ways - 1)) != 0 && t->rounds < GS_TRIAL_ROUNDS;
}

/* How far a way is behind the shortest of each of its first rounds: the mean logarithm, of several without the
 * largest, as what disturbs a measurement makes it longer. */
static double way_behind(const gs_way_trial *t, uint32_t way, uint32_t rounds)
{
    double sum = 0, largest = 0;

    for (uint32_t r = 0; r < rounds; r++) {
        double least = t->seconds[way][r];
        for (uint32_t i = 0; i < WAYS; i++)
            if (t->of[i] > r)
                least = fmin(least, t->seconds[i][r]);
        const double behind = least > 0 ? log(t->seconds[way][r] / least) : 0;
        sum += behind;
        largest = fmax(largest, behind);
    }
    return rounds >= 2 ? (sum - largest) / (rounds - 1) : sum;
}

static bool is_on_trial(const gs_way_trial *t, uint32_t i) { return (t->ways >> ways[i] & 1) != 0; }

/* Of those that are still on trial. */
static uint32_t leading_way(const gs_way_trial *t)
{
    uint32_t best = GS_NONE;
    for (uint32_t i = 0; i < WAYS; i++)
        if (is_on_trial(t, i) &&
            (best == GS_NONE || way_behind(t, i, t->of[i]) < way_behind(t, best, t->of[best])))
            best = i;
    return best;
}

static void end_round(gs_way_trial *t)
{
    for (uint32_t i = 0; i < WAYS; i++)
        t->of[i] += is_on_trial(t, i);
    t->rounds++;
    const uint32_t best = leading_way(t);
    const double least = way_behind(t, best, t->rounds);
    for (uint32_t i = 0; i < WAYS; i++)
        if (is_on_trial(t, i) && way_behind(t, i, t->rounds) > least + surely_behind[t->rounds - 1])
            t->ways &= ~(1u << ways[i]);
}

void gs_way_trial_add(gs_way_trial *t, double edges, const double seconds[GS_COST_WAYS])
{
    if (edges <= 0 || !gs_way_trial_goes_on(t))
        return;
    t->edges[t->rounds] += edges;
    for (uint32_t i = 0; i < WAYS; i++)
        if (is_on_trial(t, i))
            t->seconds[i][t->rounds] += seconds[i];
    if (2 * GS_TRIAL_PIECES * t->edges[t->rounds] >= t->stage_edges) /* half a piece at least */
        end_round(t);
}

void gs_way_trial_end(const gs_way_trial *t, double seconds[GS_COST_WAYS])
{
    gs_way_trial so = *t;
    double edges = 0, least = 0;

    memset(seconds, 0, WAYS * sizeof(*seconds));
    if (so.rounds == 0 && so.edges[0] > 0)
        end_round(&so); /* all that there was */
    const uint32_t best = leading_way(&so);
    if (best == GS_NONE || so.rounds == 0)
        return;
    for (uint32_t r = 0; r < so.of[best]; r++) {
        edges += so.edges[r];
        least += so.seconds[best][r];
    }
    for (uint32_t i = 0; i < WAYS; i++) {
        double behind = way_behind(&so, i, so.of[i]) - way_behind(&so, best, so.of[i]);
        if (!is_on_trial(&so, i)) /* it left for one that is no shorter than the best */
            behind = fmax(behind, surely_behind[GS_TRIAL_ROUNDS - 1]);
        seconds[i] = so.of[i] > 0 ? least / edges * exp(behind) : 0;
    }
}

typedef struct rehearsal {
    gs_session *session;
    gs_way_trial *trial; /* [stages] */
    uint32_t *pieces;    /* [stages] that were seen */
    unsigned warm;       /* ways that have run: their scratch is there */
} rehearsal;

static gs_status run_way(gs_device *device, gs_stage *stage, uint32_t i, const gs_edge_program_launch *l,
                         double *seconds)
{
    const gs_products before = stage->products;
    const double begin = gs_processor_now();

    stage->products = ways[i];
    const gs_status st = gs_device_run_edge_program(device, l);
    stage->products = before;
    *seconds = gs_processor_now() - begin;
    return st;
}

/* Sums become what they may. What runs first on some edges finds less in caches, and their sums may have no memory yet:
 * so that is not counted, nor is the first time of a way. */
static gs_status try_ways(rehearsal *r, gs_device *device, gs_stage *stage, gs_way_trial *t, uint32_t turn,
                          const gs_edge_program_launch *l)
{
    double seconds[WAYS] = {0};
    const unsigned cold = t->ways & ~r->warm, first = cold != 0 ? cold : t->ways & -t->ways;
    gs_status st = GS_OK;

    for (uint32_t i = 0; i < WAYS && st == GS_OK; i++)
        if ((first >> ways[i] & 1) != 0)
            st = run_way(device, stage, i, l, &seconds[i]);
    r->warm |= first;
    for (uint32_t i = 0; i < WAYS && st == GS_OK; i++) {
        const uint32_t way = (turn + i) % WAYS;
        if (is_on_trial(t, way))
            st = run_way(device, stage, way, l, &seconds[way]);
    }
    gs_way_trial_add(t, (double)(l->edges.start[l->edges.targets] - l->edges.start[0]), seconds);
    return st;
}

/* The targets of about 1 / `pieces` of a launch's edges, from `*target` on. */
static gs_edges next_piece(const gs_edges *e, uint32_t *target, uint32_t piece, uint32_t pieces)
{
    const uint64_t edges = e->start[e->targets] - e->start[0], end = edges * (piece + 1) / pieces;
    gs_edges part = *e;

    part.start = e->start + *target;
    part.target = (const char *)e->target + (size_t)*target * e->index_bytes;
    part.targets = 0;
    while (*target < e->targets && e->start[*target + 1] - e->start[0] <= end) {
        part.targets++;
        ++*target;
    }
    part.end = e->end != 0 ? part.start[part.targets] - part.start[0] : 0;
    return part;
}

static gs_status compare_ways(void *context, gs_device *device, const gs_edge_program_launch *l)
{
    rehearsal *const r = context;
    const uint32_t k = (uint32_t)(l->stage - r->session->program->stage);
    gs_way_trial *const t = &r->trial[k];
    const double edges = l->edges.start[l->edges.targets] - l->edges.start[0];
    const uint32_t pieces = (uint32_t)fmax(round(GS_TRIAL_PIECES * edges / t->stage_edges), 1);
    gs_edge_program_launch part = *l;

    for (uint32_t i = 0, target = 0; i < pieces && gs_way_trial_goes_on(t); i++) {
        const uint32_t piece = r->pieces[k]++;
        part.edges = next_piece(&l->edges, &target, i, pieces);
        if (piece % EVERY == 0 && !gs_edges_none(&part.edges))
            GS_TRY(try_ways(r, device, &r->session->program->stage[k], t, piece / EVERY, &part));
    }
    return GS_OK;
}

static void add_measured(const gs_session *s, const gs_way_trial *t, gs_cost_record *record)
{
    for (uint32_t k = 0; k < s->program->stages; k++) {
        gs_cost_stage so = {.key = key_of(s, k)};
        if (s->program->stage[k].tried == 0 || so.key == 0)
            continue;
        gs_way_trial_end(&t[k], so.seconds);
        for (uint32_t i = 0; i < WAYS; i++)
            if (so.seconds[i] > 0) {
                gs_cost_record_add_stage(record, &so);
                break;
            }
    }
}

gs_status gs_session_measure_products(gs_session *s)
{
    gs_cost_record record;
    rehearsal r = {.session = s};

    if (!any_tried(s) || !is_long(s))
        return GS_OK;
    load_record(s, &record);
    if (take_measured(s, &record))
        return GS_OK;
    GS_FREED const void *const trial = r.trial = gs_calloc(s->program->stages, sizeof(*r.trial));
    GS_FREED const void *const pieces = r.pieces = gs_calloc(s->program->stages, sizeof(*r.pieces));
    GS_NEED(trial != NULL && pieces != NULL, "out of memory to measure products of edges");
    for (uint32_t k = 0; k < s->program->stages; k++)
        if (s->program->stage[k].tried != 0)
            r.trial[k] = (gs_way_trial){.ways = ready_ways(&s->program->stage[k]),
                                        .stage_edges = (double)stage_edges(s, k)};
    GS_TRY(gs_session_rehearse(s, s->pass.train, compare_ways, &r));
    load_record(s, &record); /* others may have written it meanwhile */
    add_measured(s, r.trial, &record);
    /* Where it cannot be kept, the same run would have other bits the next time. */
    if (gs_cost_record_save(&record, gs_device_name(s->machine.device[s->machine.kind[0]])) == GS_OK)
        (void)take_measured(s, &record);
    return GS_OK;
}

/* ---- before there is a plan ---- */

gs_status gs_session_choose_products(gs_session *s)
{
    const int asked = gs_choice(s->config.options, products);

    for (uint32_t k = 0; k < s->program->stages && can_choose(s, asked); k++) {
        gs_stage *const stage = &s->program->stage[k];
        stage->runs_per_edge = stage->pairs_per_edge = 0;
        stage->products = GS_PRODUCTS_OF_EDGES;
        if (asked != PAIRS)
            GS_TRY(count_products(s, stage, GS_PRODUCTS_OF_RUNS));
        if (asked != RUNS)
            GS_TRY(count_products(s, stage, GS_PRODUCTS_OF_PAIRS));
        stage->products = choose_way(s, stage, asked);
    }
    if (can_choose(s, asked))
        choose_tried(s);
    return GS_OK;
}

bool gs_session_leave_pairs(gs_session *s)
{
    bool any = false;

    for (uint32_t k = 0; k < s->program->stages; k++) {
        gs_stage *const stage = &s->program->stage[k];
        if ((ready_ways(stage) >> GS_PRODUCTS_OF_PAIRS & 1) == 0)
            continue;
        stage->pairs_per_edge = 0;
        stage->products = choose_way(s, stage, AUTO);
        stage->tried = stage->tried != 0 ? likely_ways(s, stage) : 0;
        any = true;
    }
    return any;
}

void gs_session_leave_ways(gs_session *s)
{
    for (uint32_t k = 0; k < s->program->stages; k++) {
        s->program->stage[k].products = GS_PRODUCTS_OF_EDGES;
        s->program->stage[k].tried = 0;
    }
}

/* In the place of what is predicted. */
static void describe_measured(gs_product_report *r, const gs_cost_stage *of)
{
    const double edges = (double)r->edges;

    r->measured = true;
    r->edge_seconds = edges * of->seconds[0];
    r->run_seconds = edges * of->seconds[1];
    r->pair_seconds = edges * of->seconds[2];
}

void gs_session_describe_products(const gs_session *s, gs_plan_report *out)
{
    gs_cost_record record = {0};

    if (any_tried(s))
        load_record(s, &record);
    for (uint32_t k = 0; k < s->program->stages && s->config.batch == NULL; k++) {
        const gs_stage *const stage = &s->program->stage[k];
        if (!gs_stage_by_type(stage) || out->product_stages == GS_PLAN_PRODUCTS)
            continue;
        gs_product_report *const r = &out->product_stage[out->product_stages++];
        const double edges = (double)stage_edges(s, k);
        snprintf(r->stage, sizeof(r->stage), "%s", stage->name);
        r->edges = (uint64_t)edges;
        r->runs = (uint64_t)(stage->runs_per_edge * edges + 0.5);
        r->edge_seconds = edges * edge_seconds(s, stage, GS_PRODUCTS_OF_EDGES);
        r->run_seconds = r->runs > 0 ? edges * edge_seconds(s, stage, GS_PRODUCTS_OF_RUNS) : 0;
        r->pairs = (uint64_t)(stage->pairs_per_edge * edges + 0.5);
        r->pair_seconds = r->pairs > 0 ? edges * edge_seconds(s, stage, GS_PRODUCTS_OF_PAIRS) : 0;
        r->by_runs = stage->products == GS_PRODUCTS_OF_RUNS;
        r->by_pairs = stage->products == GS_PRODUCTS_OF_PAIRS;
        const gs_cost_stage *const of = stage->tried != 0 ? gs_cost_record_stage(&record, key_of(s, k)) : NULL;
        if (of != NULL)
            describe_measured(r, of);
    }
}
