/* pair_rank.c - ranks of pairs among all vertices, and areas under curves. */
#include "pairs/pair_rank.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "ranks/ranks.h"

#define QUERIES (2 * GS_RANK_PAIRS) /* of a block: one for each end of its pairs */
#define PIECE 256u                  /* vertices whose scores are in memory at a time, */
#define BLOCK 64u                   /* with so many queries, of each thread */
#define KEY_SLOTS (4 * QUERIES)     /* a power of two */
#define LANES_MOST 16u
#define KNOWN_LEAST (64 * 1024u)    /* known pairs that there is room for, and at most: */
#define KNOWN_MOST (4 * 1024 * 1024u)
#define MOST_DRAWS 64u              /* of random pairs, until one is not known */
#define NO_QUERY UINT32_MAX
#define BEST_MOST (1024 * 1024u)    /* destinations of all sources of a block; one source has all that are asked for */

struct gs_pair_ranks {
    gs_pair_rank_options o;
    gs_arena arrays;
    const gs_cpu_kernels *kernels;
    gs_pair_source split[GS_LINK_SPLITS]; /* those that are there */
    bool there[GS_LINK_SPLITS];
    gs_pair *room;     /* of the largest bucket of all */
    uint64_t room_pairs;
    gs_pair *pair;     /* [GS_RANK_PAIRS] of the block at hand */
    uint32_t pairs;
    /* of its ends: */
    uint32_t *end, *order, *spare, *place; /* [QUERIES] */
    uint32_t ends;     /* distinct ones, [ends] first in `end` */
    float *row;        /* [QUERIES, width] */
    /* of a decoder that projects: its rows as heads, then as tails; and pieces of all rows likewise */
    gs_perceptron perceptron;
    float *projected, *piece; /* [2][QUERIES, width]; [PIECE, width] */
    /* of its queries, that of pair p with a given head p, with a given tail pairs + p: */
    float *query;      /* [QUERIES, width] */
    const float *lin2; /* of the decoder's values at hand */
    float *own;        /* [QUERIES] scores of the pairs themselves */
    uint32_t *greater, *equal; /* [QUERIES] others */
    /* which queries ask for the same: */
    uint64_t *key;     /* [KEY_SLOTS] 0: free */
    uint32_t *first, *next; /* [KEY_SLOTS] the first query of a key, and those behind it */
    /* known pairs of these, by their other end: */
    uint32_t known, most_known, at; /* at: those before it have gone by */
    uint32_t *known_key, *known_end, *known_order, *known_spare; /* [most_known] */
    float *panel[2];   /* [gs_pair_end] beside given ends of this kind, [PIECE] side by side; or both the same */
    float *score;      /* [threads][BLOCK, PIECE] */
    float *own_panel;
    uint32_t *best_id, *bests; /* [top pairs + 1, top] the best destinations so far, the last for those that come from
                                * another rank, and [pairs] how many; with `top` */
    float *best;
    float *above, *below; /* [most_scores] of pairs and of random ones */
    uint64_t most_scores, scores;
};

/* ---- memory ---------------------------------------------------------------- */

uint32_t gs_pair_ranks_top_pairs(const gs_pair_ranks *r)
{
    return GS_MAX(GS_MIN(GS_RANK_PAIRS, BEST_MOST / GS_MAX(r->o.top, 1u)), 1u);
}

static uint64_t best_numbers(const gs_pair_ranks *r) { return (uint64_t)gs_pair_ranks_top_pairs(r) * r->o.top; }

static uint64_t panel_floats(const gs_pair_rank_options *o)
{
    return (1ull + o->decoder->projects) * PIECE * o->width;
}

/* Of a decoder that projects. */
static uint64_t projected_floats(const gs_pair_rank_options *o)
{
    return o->decoder->projects ? (2ull * QUERIES + PIECE) * o->width : 0;
}

static gs_status open_splits(gs_pair_ranks *r)
{
    uint64_t all = 0;

    for (uint32_t k = 0; k < GS_LINK_SPLITS; k++) {
        r->there[k] = gs_pair_source_is_there(r->o.store, k);
        if (!r->there[k])
            continue;
        GS_TRY(gs_pair_source_open(&r->split[k], r->o.store, k));
        r->room_pairs = GS_MAX(r->room_pairs, r->split[k].largest);
        r->most_scores = k > 0 ? GS_MAX(r->most_scores, r->split[k].pairs) : 0;
        all += r->split[k].pairs;
    }
    r->most_known = (uint32_t)GS_MIN(GS_MAX(2 * all, KNOWN_LEAST), KNOWN_MOST);
    if (gs_store_get_info(r->o.store)->edge_types > 0)
        r->most_scores = 0;
    return GS_OK;
}

static bool take_memory(gs_pair_ranks *r)
{
    const uint64_t width = r->o.width;

    r->room = gs_arena_take(&r->arrays, r->room_pairs + 1, sizeof(*r->room));
    r->pair = gs_arena_take(&r->arrays, GS_RANK_PAIRS, sizeof(*r->pair));
    r->end = gs_arena_take(&r->arrays, 4ull * QUERIES, sizeof(*r->end));
    r->row = gs_arena_take(&r->arrays, 2 * QUERIES * width, sizeof(*r->row));
    r->own = gs_arena_take(&r->arrays, QUERIES, sizeof(*r->own));
    r->greater = gs_arena_take(&r->arrays, 2ull * QUERIES, sizeof(*r->greater));
    r->key = gs_arena_take(&r->arrays, KEY_SLOTS, sizeof(*r->key));
    r->first = gs_arena_take(&r->arrays, KEY_SLOTS + QUERIES, sizeof(*r->first));
    r->known_key = gs_arena_take(&r->arrays, 4ull * r->most_known, sizeof(*r->known_key));
    r->panel[0] = gs_arena_take(&r->arrays, panel_floats(&r->o) + LANES_MOST * width, sizeof(float));
    r->projected = gs_arena_take(&r->arrays, projected_floats(&r->o) + 1, sizeof(*r->projected));
    r->score = gs_arena_take(&r->arrays, (uint64_t)r->o.threads * BLOCK * PIECE, sizeof(*r->score));
    r->above = gs_arena_take(&r->arrays, 2 * r->most_scores + 1, sizeof(*r->above));
    r->best = gs_arena_take(&r->arrays, best_numbers(r) + r->o.top + 1, sizeof(*r->best));
    r->best_id = gs_arena_take(&r->arrays, best_numbers(r) + r->o.top + GS_RANK_PAIRS, sizeof(*r->best_id));
    if (r->arrays.is_short)
        return false;
    r->order = r->end + QUERIES;
    r->spare = r->order + QUERIES;
    r->place = r->spare + QUERIES;
    r->query = r->row + QUERIES * width;
    r->equal = r->greater + QUERIES;
    r->next = r->first + KEY_SLOTS;
    r->known_end = r->known_key + r->most_known;
    r->known_order = r->known_end + r->most_known;
    r->known_spare = r->known_order + r->most_known;
    r->own_panel = r->panel[0] + panel_floats(&r->o);
    r->panel[1] = r->panel[0] + (r->o.decoder->projects ? PIECE * width : 0);
    r->piece = r->projected + 2 * QUERIES * width;
    r->below = r->above + r->most_scores;
    r->bests = r->best_id + best_numbers(r) + r->o.top;
    return true;
}

uint64_t gs_pair_ranks_bytes(const gs_pair_ranks *r)
{
    const uint64_t width = r->o.width;
    uint64_t bytes = (r->room_pairs + 1 + GS_RANK_PAIRS) * sizeof(*r->room) + 4ull * QUERIES * sizeof(*r->end) +
                     2ull * QUERIES * width * sizeof(*r->row) + 3ull * QUERIES * sizeof(*r->own) +
                     KEY_SLOTS * (sizeof(*r->key) + sizeof(*r->first)) + QUERIES * sizeof(*r->next) +
                     4ull * r->most_known * sizeof(*r->known_key) +
                     (panel_floats(&r->o) + LANES_MOST * width + projected_floats(&r->o) + 1) * sizeof(float) +
                     (r->o.decoder->projects ? gs_perceptron_bytes(r->o.width) : 0) +
                     (uint64_t)r->o.threads * BLOCK * PIECE * sizeof(*r->score) +
                     (2 * r->most_scores + 1) * sizeof(*r->above) +
                     (best_numbers(r) + r->o.top + 1) * sizeof(*r->best) +
                     (best_numbers(r) + r->o.top + GS_RANK_PAIRS) * sizeof(*r->best_id);

    for (uint32_t k = 0; k < GS_LINK_SPLITS; k++)
        bytes += r->there[k] ? gs_pair_source_bytes(&r->split[k]) : 0;
    return bytes;
}

gs_status gs_pair_ranks_open(gs_pair_ranks **out, const gs_pair_rank_options *options)
{
    GS_ENDS(gs_pair_ranks_close_at) gs_pair_ranks *r = gs_calloc(1, sizeof(*r));

    GS_NEED(r != NULL, "no memory for ranks of pairs");
    r->o = *options;
    GS_TRY(gs_cpu_kernels_find(&r->kernels));
    if (r->o.decoder->projects)
        GS_TRY(gs_perceptron_open(&r->perceptron, r->kernels, r->o.width, r->o.threads, 2));
    GS_TRY(open_splits(r));
    GS_NEED(take_memory(r), "no memory for ranks of pairs");
    *out = GS_HANDED_OVER(r);
    return GS_OK;
}

void gs_pair_ranks_close(gs_pair_ranks *r)
{
    if (r == NULL)
        return;
    for (uint32_t k = 0; k < GS_LINK_SPLITS; k++)
        if (r->split[k].store != NULL)
            gs_pair_source_close(&r->split[k]);
    gs_perceptron_close(&r->perceptron);
    gs_arena_free(&r->arrays);
    gs_free(r);
}

static gs_status check_stop(const gs_pair_ranks *r)
{
    return r->o.stop != NULL && *r->o.stop ? gs_fail(GS_EINTERRUPTED, "interrupted") : GS_OK;
}

/* ---- rows and scores of pairs ---------------------------------------------- */

/* Rows of the block's ends: that of pair p's source is row place[p], of its destination place[pairs + p]. */
static gs_status fetch_ends(gs_pair_ranks *r, const gs_pair_rows *rows, const gs_decoder_values *values)
{
    const uint32_t n = 2 * r->pairs;
    uint32_t *const all = r->place; /* their vertices, until their places are known */

    for (uint32_t p = 0; p < r->pairs; p++) {
        all[p] = r->pair[p].source;
        all[r->pairs + p] = r->pair[p].destination;
    }
    gs_radix_order(r->order, r->spare, all, n);
    r->ends = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (k == 0 || all[r->order[k]] != r->end[r->ends - 1])
            r->end[r->ends++] = all[r->order[k]];
        r->spare[r->order[k]] = r->ends - 1;
    }
    memcpy(r->place, r->spare, n * sizeof(*r->place));
    for (uint32_t k = 0; k < r->ends; k++)
        r->order[k] = k;
    const gs_row_list list = {.rows = r->ends, .named = r->end, .order = r->order};
    GS_TRY(rows->fetch(rows->context, &list, r->o.width, r->row));
    if (!r->o.decoder->projects)
        return GS_OK;
    gs_perceptron_take(&r->perceptron, values);
    for (uint32_t end = GS_PAIR_HEAD; end <= GS_PAIR_TAIL; end++)
        gs_perceptron_project(&r->perceptron, r->projected + (uint64_t)end * QUERIES * r->o.width, r->row, r->ends,
                              (gs_pair_end)end);
    return GS_OK;
}

/* Of place `slot`: a source as a head, a destination as a tail. */
static const float *end_row(const gs_pair_ranks *r, uint32_t slot)
{
    const uint64_t at = (uint64_t)r->place[slot] * r->o.width;
    if (!r->o.decoder->projects)
        return r->row + at;
    return r->projected + (slot < r->pairs ? 0 : (uint64_t)QUERIES * r->o.width) + at;
}

/* Query q and its pair's own score, after fetch_ends(). */
static void make_query(gs_pair_ranks *r, uint32_t q, const gs_decoder_values *values)
{
    const bool head = q < r->pairs;
    r->lin2 = values->lin2;
    const uint32_t p = head ? q : q - r->pairs, width = r->o.width;
    const float *const type = r->o.decoder->of_types ? values->types + (uint64_t)r->pair[p].type * width : NULL;
    float score[LANES_MOST];

    r->o.decoder->query(r->query + (uint64_t)q * width, end_row(r, q), type, width,
                        head ? GS_PAIR_HEAD : GS_PAIR_TAIL);
    r->kernels->pair_pack(r->own_panel, end_row(r, head ? q + r->pairs : p), 1, width);
    const gs_cpu_pairs one = {.score = score, .stride = LANES_MOST, .query = r->query + (uint64_t)q * width,
                              .panel = r->own_panel, .queries = 1, .vectors = 1, .width = width,
                              .similarity = r->o.decoder->similarity, .weight = values->lin2};
    r->kernels->pair_scores(&one);
    r->own[q] = score[0];
}

/* That all scores have, and that no rank needs. */
static float bias_of(const gs_pair_ranks *r, const gs_decoder_values *values)
{
    return r->o.decoder->projects ? values->lin2_bias[0] : 0;
}

gs_status gs_pair_ranks_score(gs_pair_ranks *r, float *score, const gs_pair *pair, uint32_t pairs,
                              const gs_pair_rows *rows, const gs_decoder_values *values)
{
    r->pairs = pairs;
    if (pair != r->pair)
        memcpy(r->pair, pair, pairs * sizeof(*pair));
    GS_TRY(fetch_ends(r, rows, values));
    for (uint32_t p = 0; p < pairs; p++) {
        make_query(r, p, values);
        score[p] = r->own[p] + bias_of(r, values);
    }
    return GS_OK;
}

/* ---- known pairs ------------------------------------------------------------ */

static uint32_t slot_of(const gs_pair_ranks *r, uint64_t key)
{
    uint32_t at = (uint32_t)(key * 0x9E3779B97F4A7C15ull >> 40) & (KEY_SLOTS - 1);
    while (r->key[at] != 0 && r->key[at] != key)
        at = (at + 1) & (KEY_SLOTS - 1);
    return at;
}

/* What is asked: which vertices are at the other end of an edge of a type at this one. Never 0. */
static uint64_t key_of(uint32_t end, uint32_t type, gs_pair_end which)
{
    return ((uint64_t)end << 32 | (uint64_t)type << 2 | (uint64_t)which << 1) + 1;
}

static uint64_t pair_key(const gs_pair *p, gs_pair_end which)
{
    return key_of(which == GS_PAIR_HEAD ? p->source : p->destination, p->type, which);
}

static void note_queries(gs_pair_ranks *r)
{
    memset(r->key, 0, KEY_SLOTS * sizeof(*r->key));
    for (uint32_t q = 0; q < 2 * r->pairs; q++) {
        const gs_pair_end which = q < r->pairs ? GS_PAIR_HEAD : GS_PAIR_TAIL;
        const uint64_t key = pair_key(&r->pair[q % r->pairs], which);
        const uint32_t at = slot_of(r, key);
        r->next[q] = r->key[at] == 0 ? NO_QUERY : r->first[at];
        r->key[at] = key;
        r->first[at] = q;
    }
    r->known = 0;
}

static gs_status note_known(void *context, const gs_pair *pair, uint64_t count)
{
    gs_pair_ranks *const r = context;

    for (uint64_t k = 0; k < count; k++)
        for (int which = GS_PAIR_HEAD; which <= GS_PAIR_TAIL; which++) {
            const uint32_t at = slot_of(r, pair_key(&pair[k], (gs_pair_end)which));
            if (r->key[at] == 0)
                continue;
            if (r->known == r->most_known)
                return GS_EBUDGET;
            r->known_key[r->known] = at;
            r->known_end[r->known++] = which == GS_PAIR_HEAD ? pair[k].destination : pair[k].source;
        }
    return check_stop(r);
}

/* GS_EBUDGET: there is no room for all that are known of this block. */
static gs_status find_known(gs_pair_ranks *r)
{
    note_queries(r);
    for (uint32_t k = 0; k < GS_LINK_SPLITS; k++)
        if (r->there[k])
            GS_TRY(gs_pair_source_each(&r->split[k], r->room, note_known, r));
    gs_radix_order(r->known_order, r->known_spare, r->known_end, r->known);
    return GS_OK;
}

/* ---- ranks ------------------------------------------------------------------ */

/* What is known is no other: its score is not a number, which is neither above another nor equal to one. */
static void strike_known(const gs_pair_ranks *r, float *score, uint32_t first_query, uint32_t queries, uint64_t first,
                         uint32_t known_end)
{
    for (uint32_t k = r->at; k < known_end; k++) {
        const uint32_t i = r->known_order[k];
        for (uint32_t q = r->first[r->known_key[i]]; q != NO_QUERY; q = r->next[q])
            if (q - first_query < queries)
                score[(uint64_t)(q - first_query) * PIECE + (r->known_end[i] - first)] = NAN;
    }
}

/* A piece of all rows to the panels. */
static void pack_rows(gs_pair_ranks *r, const float *row, uint32_t rows)
{
    if (!r->o.decoder->projects) {
        r->kernels->pair_pack(r->panel[0], row, rows, r->o.width);
        return;
    }
    for (uint32_t given = GS_PAIR_HEAD; given <= GS_PAIR_TAIL; given++) {
        gs_perceptron_project(&r->perceptron, r->piece, row, rows, (gs_pair_end)(1 - given));
        r->kernels->pair_pack(r->panel[given], r->piece, rows, r->o.width);
    }
}

/* Scores of queries that ask for the same end with the rows of the panel: [BLOCK, PIECE] of the thread. */
static float *score_rows(const gs_pair_ranks *r, uint32_t first_query, uint32_t queries, uint32_t rows)
{
    const uint32_t lanes = r->kernels->lanes;
    float *const score = r->score + (uint64_t)omp_get_thread_num() * BLOCK * PIECE;
    const gs_cpu_pairs some = {.score = score, .stride = PIECE, .query = r->query + (uint64_t)first_query * r->o.width,
                               .panel = r->panel[first_query >= r->pairs], .queries = queries,
                               .vectors = (rows + lanes - 1) / lanes, .width = r->o.width,
                               .similarity = r->o.decoder->similarity, .weight = r->lin2};

    r->kernels->pair_scores(&some);
    return score;
}

static void count_block(gs_pair_ranks *r, uint32_t first_query, uint64_t first, uint32_t rows, uint32_t known_end)
{
    const uint32_t queries = GS_MIN(BLOCK, (first_query < r->pairs ? 1 : 2) * r->pairs - first_query);
    float *const score = score_rows(r, first_query, queries, rows);

    strike_known(r, score, first_query, queries, first, known_end);
    for (uint32_t q = 0; q < queries; q++) {
        const float own = r->own[first_query + q], *const s = score + (uint64_t)q * PIECE;
        uint32_t greater = 0, equal = 0;
        for (uint32_t k = 0; k < rows; k++) {
            greater += s[k] > own;
            equal += s[k] == own;
        }
        r->greater[first_query + q] += greater;
        r->equal[first_query + q] += equal;
    }
}

static gs_status count_rows(void *context, uint64_t first, uint64_t rows, const float *row, const uint32_t *id)
{
    gs_pair_ranks *const r = context;
    const uint32_t blocks = (r->pairs + BLOCK - 1) / BLOCK; /* of queries with given ends of one kind */

    (void)id;
    for (uint64_t at = 0; at < rows; at += PIECE) {
        const uint32_t n = (uint32_t)GS_MIN(PIECE, rows - at);
        uint32_t known_end;
        while (r->at < r->known && r->known_end[r->known_order[r->at]] < first + at) /* rows of an earlier rank */
            r->at++;
        known_end = r->at;
        while (known_end < r->known && r->known_end[r->known_order[known_end]] < first + at + n)
            known_end++;
        pack_rows(r, row + at * r->o.width, n);
#pragma omp parallel for schedule(dynamic, 1) num_threads(r->o.threads)
        for (uint32_t k = 0; k < 2 * blocks; k++)
            count_block(r, k % blocks * BLOCK + (k < blocks ? 0 : r->pairs), first + at, n, known_end);
        r->at = known_end;
    }
    return check_stop(r);
}

static void add_ranks(const gs_pair_ranks *r, gs_pair_figures *sum)
{
    static const double bound[3] = {1, 3, 10};

    for (uint32_t q = 0; q < 2 * r->pairs; q++) {
        const double rank = 1 + r->greater[q] + r->equal[q] / 2.0;
        sum->mrr += 1 / rank;
        for (int k = 0; k < 3; k++)
            sum->hits[k] += rank <= bound[k];
    }
}

typedef struct finding {
    gs_pair_ranks *r;
    gs_pair_figures sum;
    const gs_pair_rows *rows;
    const gs_decoder_values *values;
    uint64_t done;
    bool by_auc;
} finding;

/* Of r->pair[r->pairs]. */
static gs_status rank_block(finding *f)
{
    gs_pair_ranks *const r = f->r;

    GS_TRY(find_known(r));
    GS_TRY(fetch_ends(r, f->rows, f->values));
    for (uint32_t q = 0; q < 2 * r->pairs; q++)
        make_query(r, q, f->values);
    memset(r->greater, 0, 2ull * QUERIES * sizeof(*r->greater));
    r->at = 0;
    GS_TRY(f->rows->each(f->rows->context, false, count_rows, r));
    GS_TRY(gs_ranks_sum_u32(r->greater, 2ull * QUERIES)); /* with those that are equal, which lie behind */
    add_ranks(r, &f->sum);
    return GS_OK;
}

/* ---- the best --------------------------------------------------------------- */

/* Takes those of `rows` scores that belong to the best of query q, in their order. */
static void take_best(gs_pair_ranks *r, uint32_t q, const float *score, const uint32_t *id, uint32_t rows)
{
    const uint32_t top = r->o.top;
    float *const best = r->best + (uint64_t)q * top;
    uint32_t *const best_id = r->best_id + (uint64_t)q * top, n = r->bests[q];

    for (uint32_t k = 0; k < rows; k++) {
        uint32_t at = n;
        while (at > 0 && (score[k] > best[at - 1] || (score[k] == best[at - 1] && id[k] < best_id[at - 1])))
            at--;
        if (at == top)
            continue;
        n += n < top;
        memmove(best + at + 1, best + at, (n - 1 - at) * sizeof(*best));
        memmove(best_id + at + 1, best_id + at, (n - 1 - at) * sizeof(*best_id));
        best[at] = score[k];
        best_id[at] = id[k];
    }
    r->bests[q] = n;
}

static gs_status take_rows(void *context, uint64_t first, uint64_t rows, const float *row, const uint32_t *id)
{
    gs_pair_ranks *const r = context;

    (void)first;
    for (uint64_t at = 0; at < rows; at += PIECE) {
        const uint32_t n = (uint32_t)GS_MIN(PIECE, rows - at);
        pack_rows(r, row + at * r->o.width, n);
#pragma omp parallel for schedule(dynamic, 1) num_threads(r->o.threads)
        for (uint32_t q = 0; q < r->pairs; q += BLOCK) {
            const uint32_t queries = GS_MIN(BLOCK, r->pairs - q);
            const float *const score = score_rows(r, q, queries, n);
            for (uint32_t k = 0; k < queries; k++)
                take_best(r, q + k, score + (uint64_t)k * PIECE, id + at, n);
        }
    }
    return check_stop(r);
}

/* The best of each rank's vertices come to rank 0, whose are the best of all then. */
static gs_status join_bests(gs_pair_ranks *r)
{
    const uint32_t self = gs_ranks_self(), top = r->o.top;
    float *const score = r->best + best_numbers(r);
    uint32_t *const id = r->best_id + best_numbers(r);

    for (uint32_t of = 1; of < gs_ranks_count(); of++)
        for (uint32_t q = 0; q < r->pairs && (self == 0 || self == of); q++) {
            const uint64_t at = self == 0 ? best_numbers(r) : (uint64_t)q * top;
            uint32_t n = r->bests[q];
            GS_TRY(gs_ranks_pass(self > 0, self == 0 ? of : 0, &n, sizeof(n)));
            if (n == 0)
                continue;
            GS_TRY(gs_ranks_pass(self > 0, self == 0 ? of : 0, r->best + at, n * sizeof(*r->best)));
            GS_TRY(gs_ranks_pass(self > 0, self == 0 ? of : 0, r->best_id + at, n * sizeof(*r->best_id)));
            if (self == 0)
                take_best(r, q, score, id, n);
        }
    return GS_OK;
}

gs_status gs_pair_ranks_top(gs_pair_ranks *r, const uint32_t **id, const float **score, const gs_pair *pair,
                            uint32_t pairs, const gs_pair_rows *rows, const gs_decoder_values *values)
{
    r->pairs = pairs;
    memcpy(r->pair, pair, pairs * sizeof(*pair));
    memset(r->bests, 0, pairs * sizeof(*r->bests));
    GS_TRY(fetch_ends(r, rows, values));
    for (uint32_t q = 0; q < pairs; q++)
        make_query(r, q, values);
    *id = r->best_id;
    *score = r->best;
    GS_TRY(rows->each(rows->context, true, take_rows, r));
    GS_TRY(join_bests(r));
    for (uint64_t k = 0; k < (uint64_t)pairs * r->o.top; k++)
        r->best[k] += bias_of(r, values);
    return GS_OK;
}

/* ---- random pairs ----------------------------------------------------------- */

static void draw_pair(const gs_pair_ranks *r, gs_pair *out, uint64_t number, uint32_t split, uint32_t draw)
{
    const uint32_t vertices = (uint32_t)gs_store_get_info(r->o.store)->vertices;
    uint32_t key[2];

    gs_random_key(key, r->o.seed, GS_RANDOM_PAIRS);
    gs_random_stream s = gs_random_stream_of(key, (uint32_t)number, (uint32_t)(number >> 32) | split << 24, ~draw);
    out->source = gs_random_below(&s, vertices);
    out->destination = gs_random_below(&s, vertices);
    out->type = 0;
}

/* A random pair for each of the block: `draw` says which try; those that are known, or of one vertex, are drawn anew.
 * Keys are heads: a known pair is one whose head asks and whose tail is the one drawn. */
static gs_status draw_block(finding *f, uint32_t split)
{
    gs_pair_ranks *const r = f->r;
    uint32_t wrong = r->pairs;
    bool *const bad = (bool *)r->score; /* [pairs] */

    memset(bad, 1, r->pairs);
    for (uint32_t draw = 0; wrong > 0 && draw < MOST_DRAWS; draw++) {
        for (uint32_t p = 0; p < r->pairs; p++)
            if (bad[p])
                draw_pair(r, &r->pair[p], f->done + p, split, draw);
        GS_TRY(find_known(r));
        for (uint32_t p = 0; p < r->pairs; p++)
            bad[p] = bad[p] && r->pair[p].source == r->pair[p].destination;
        for (uint32_t k = 0; k < r->known; k++)
            for (uint32_t q = r->first[r->known_key[k]]; q != NO_QUERY; q = r->next[q])
                if (q < r->pairs && r->pair[q].destination == r->known_end[k])
                    bad[q] = true;
        wrong = 0;
        for (uint32_t p = 0; p < r->pairs; p++)
            wrong += bad[p];
    }
    return GS_OK;
}

static gs_status score_block(finding *f, uint32_t split)
{
    gs_pair_ranks *const r = f->r;
    const uint32_t n = r->pairs;

    GS_TRY(gs_pair_ranks_score(r, r->above + r->scores, r->pair, n, f->rows, f->values));
    GS_TRY(draw_block(f, split));
    GS_TRY(gs_pair_ranks_score(r, r->below + r->scores, r->pair, n, f->rows, f->values));
    r->scores += n;
    return GS_OK;
}

static int by_score(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Mann and Whitney's statistic over the number of comparisons. */
static double area(gs_pair_ranks *r)
{
    uint64_t less = 0, upto = 0;
    double sum = 0;

    qsort(r->above, r->scores, sizeof(*r->above), by_score);
    qsort(r->below, r->scores, sizeof(*r->below), by_score);
    for (uint64_t k = 0; k < r->scores; k++) {
        while (less < r->scores && r->below[less] < r->above[k])
            less++;
        while (upto < r->scores && r->below[upto] <= r->above[k])
            upto++;
        sum += (double)less + (double)(upto - less) / 2;
    }
    return sum / (double)r->scores / (double)r->scores;
}

/* ---- a split ---------------------------------------------------------------- */

/* A block whose known pairs have no room is halved. */
static gs_status find_block(finding *f, const gs_pair *pair, uint32_t pairs, uint32_t split)
{
    gs_pair_ranks *const r = f->r;

    memcpy(r->pair, pair, pairs * sizeof(*pair));
    r->pairs = pairs;
    gs_status st = f->by_auc ? score_block(f, split) : rank_block(f);
    if (st != GS_EBUDGET) {
        f->done += st == GS_OK ? pairs : 0;
        return st;
    }
    if (pairs == 1)
        return gs_fail(GS_EBUDGET, "%s: a vertex has more than %u known pairs of one type, more than there is room for",
                       gs_store_dir(r->o.store), r->most_known);
    if ((st = find_block(f, pair, pairs / 2, split)) == GS_OK)
        st = find_block(f, pair + pairs / 2, pairs - pairs / 2, split);
    return st;
}

/* Blocks of a split. Its pairs are read one by one, as what is known is read through the same source meanwhile. */
static gs_status each_block(finding *f, uint32_t split, gs_pair *block)
{
    gs_pair_source *const s = &f->r->split[split];
    const uint64_t parts = gs_store_get_info(s->store)->parts;
    uint32_t n = 0;

    for (uint64_t b = 0; b < parts * parts; b++)
        for (uint64_t k = s->first[b]; k < s->first[b + 1]; k++) {
            GS_TRY(gs_pair_source_at(s, k, &block[n]));
            if (++n < GS_RANK_PAIRS)
                continue;
            GS_TRY(find_block(f, block, n, split));
            n = 0;
        }
    return n > 0 ? find_block(f, block, n, split) : GS_OK;
}

gs_status gs_pair_ranks_find(gs_pair_ranks *r, gs_pair_figures *out, uint32_t split, bool by_auc,
                             const gs_pair_rows *rows, const gs_decoder_values *values)
{
    finding f = {.r = r, .rows = rows, .values = values, .by_auc = by_auc};
    gs_pair block[GS_RANK_PAIRS];

    *out = (gs_pair_figures){.mrr = NAN, .hits = {NAN, NAN, NAN}, .auc = NAN};
    if (!r->there[split] || r->split[split].pairs == 0)
        return GS_OK;
    r->scores = 0;
    GS_TRY(each_block(&f, split, block));
    const double queries = 2 * (double)f.done;
    if (by_auc) {
        out->auc = area(r);
        return GS_OK;
    }
    out->mrr = f.sum.mrr / queries;
    for (int k = 0; k < 3; k++)
        out->hits[k] = f.sum.hits[k] / queries;
    return GS_OK;
}
