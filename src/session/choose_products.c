/* choose_products.c - the attributes that edges are cut by, as WiseGraph has them, and what each way would take. */
#include "session/choose_products.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/option_table.h"
#include "program/products.h"
#include "ranks/ranks.h"
#include "schedule/simulate.h"
#include "session/session.h"
#include "store/edge_scan.h"

/* The words of .products, in their order. */
enum { AUTO, EDGES, RUNS, PAIRS };

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
        gs_scan_share share;
        gs_status st = gs_scan_share_take(&share, s);
        if (st == GS_OK)
            st = gs_scan_share_check(s);
        if (st == GS_OK)
            st = gs_edge_scan(s->store, (gs_direction)direction, gs_session_left(&s->memory) / 2, share.wanted,
                              count_runs, &runs);
        gs_free(share.wanted);
        if (st != GS_OK || (share.ranks > 1 && (st = gs_ranks_sum_u64(&runs, 1)) != GS_OK))
            return st;
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
    double of_chunk;
    gs_status st;

    if (!gs_stage_find_products(&p, stage, way))
        return GS_OK;
    if ((st = runs_per_edge(s, direction, &of_chunk)) != GS_OK)
        return st;
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
    static const gs_products ways[] = {GS_PRODUCTS_OF_EDGES, GS_PRODUCTS_OF_RUNS, GS_PRODUCTS_OF_PAIRS};
    gs_products best = GS_PRODUCTS_OF_EDGES;

    if (asked != AUTO)
        return is_possible(stage, ways[asked - EDGES]) ? ways[asked - EDGES] : GS_PRODUCTS_OF_EDGES;
    for (uint32_t i = 1; i < sizeof(ways) / sizeof(ways[0]); i++)
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
    for (uint32_t d = 0; d < s->machine.devices; d++)
        if (!gs_device_unified(s->machine.device[d]))
            return false;
    return s->config.batch == NULL && gs_store_get_info(s->store)->edges > 0 &&
           gs_edge_scan_least(s->store) <= gs_session_left(&s->memory) / 2;
}

gs_status gs_session_choose_products(gs_session *s)
{
    const int asked = gs_choice(s->config.options, products);
    gs_status st = GS_OK;

    for (uint32_t k = 0; k < s->program->stages && st == GS_OK && can_choose(s, asked); k++) {
        gs_stage *const stage = &s->program->stage[k];
        stage->runs_per_edge = stage->pairs_per_edge = 0;
        if (asked != PAIRS)
            st = count_products(s, stage, GS_PRODUCTS_OF_RUNS);
        if (asked != RUNS && st == GS_OK)
            st = count_products(s, stage, GS_PRODUCTS_OF_PAIRS);
        stage->products = st == GS_OK ? choose_way(s, stage, asked) : GS_PRODUCTS_OF_EDGES;
    }
    return st;
}

bool gs_session_leave_pairs(gs_session *s)
{
    bool any = false;

    for (uint32_t k = 0; k < s->program->stages; k++) {
        gs_stage *const stage = &s->program->stage[k];
        if (stage->products != GS_PRODUCTS_OF_PAIRS)
            continue;
        stage->pairs_per_edge = 0;
        stage->products = choose_way(s, stage, AUTO);
        any = true;
    }
    return any;
}

static uint64_t stage_edges(const gs_session *s, uint32_t stage)
{
    const uint64_t parts = gs_store_chunks(s->store)->parts;
    const gs_chunk *const chunk = s->edges.set[s->edges.stage_set[stage]].chunk;
    uint64_t edges = 0;

    for (uint64_t i = 0; i < parts * parts; i++)
        edges += chunk[i].edges;
    return edges;
}

void gs_session_describe_products(const gs_session *s, gs_plan_report *out)
{
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
    }
}
