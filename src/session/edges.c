/* edges.c - the edge sets of a plan: what chunks need, and what may be left out. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/dtype.h"
#include "base/size.h"
#include "ranks/ranks.h"
#include "session/edges.h"
#include "session/session.h"
#include "session/store_rows.h"
#include "store/edge_scan.h"

/* ---- edge sets, and what chunks need -------------------------------------- */

/* The edge sets of a run, and which rows their chunks need. */

/* Bits of rows, and answers of scans, get one part in so many of what the budget leaves; copies of the edges, one of
 * each direction, as much as the answers between them. All live only while plans are made, before the run takes its
 * buffers, which are most of what is left. */
#define NEED_SHARE 16
#define SCANS_SHARE 8
#define NEED_MOST (64 * GS_MIB)
#define SETS_EXPECTED 6 /* edge sets of a model of a few layers */

gs_status gs_session_list_edges(gs_session *s)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);

    const uint64_t left = gs_session_left(&s->memory);

    const uint64_t share = (s->config.trial ? GS_MIN(left, gs_machine_free_memory()) : left) / SCANS_SHARE;

    if (s->edges.scans != NULL)
        s->edges.scans->most = GS_MAX(s->edges.scans->bytes, share);
    for (int d = 0; d < 2 && s->edges.scans != NULL; d++)
        s->edges.scans->copy[d].most = share / 2;
    s->edges.sets = 2;
    for (uint32_t d = 0; d < 2; d++)
        s->edges.set[d] = (gs_edge_set){.chunk = t->chunk[d]};
    if (s->edges.stage_set == NULL)
        s->edges.stage_set = gs_calloc(s->program->stages + 1, sizeof(*s->edges.stage_set));
    GS_NEED(s->edges.stage_set != NULL, "out of memory for the plan");
    for (uint32_t k = 0; k < s->program->stages; k++)
        s->edges.stage_set[k] = t->shared ? GS_BY_DEST : s->program->stage[k].direction;
    return GS_OK;
}

bool gs_session_uses_set(const gs_session *s, uint32_t set)
{
    for (uint32_t k = 0; k < s->program->stages; k++)
        if (s->program->stage[k].sums > 0 && s->edges.stage_set[k] == set)
            return true;
    return false;
}

gs_granules gs_session_granules_within(const gs_chunk_table *t, uint64_t left)
{
    const uint64_t chunks = (uint64_t)t->parts * t->parts * SETS_EXPECTED;
    const uint64_t most = GS_MIN(left / NEED_SHARE, NEED_MOST);

    /* One interval needs all of itself, and a chunk that no buffer can hold is not looked into. */
    if (t->parts == 1 || GS_MAX(t->longest, GS_BLOCK_BYTES) > left / 2)
        return (gs_granules){0};
    for (uint32_t rows = GS_GRANULE_ROWS; rows <= t->interval_rows / 2; rows *= 2) {
        const gs_granules g = gs_granules_of(t, rows);
        if (chunks * g.words * sizeof(uint64_t) <= most)
            return g;
    }
    return (gs_granules){0};
}

gs_granules gs_session_granules(const gs_session *s)
{
    return gs_session_granules_within(gs_store_chunks(s->store), gs_session_left(&s->memory));
}

gs_granules gs_session_rows(const gs_session *s)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    const uint64_t chunks = (uint64_t)t->parts * t->parts * SETS_EXPECTED;
    const gs_granules rows = gs_granules_of(t, 1);
    /* ranks that are planned in place of more: each would know what all of those need */
    const gs_cluster *const k = s->config.cluster;
    const double times = k != NULL && k->all > 0 ? (double)k->all / k->ranks : 1;
    const bool several_gpus = gs_session_has_memories(s) && s->machine.devices > 1; /* one alone reaches the host's */

    if (s->config.options->no_pack || s->machine.wires.alone || several_gpus ||
        times * times * (double)(chunks * rows.words * sizeof(uint64_t)) >
            (double)(gs_session_left(&s->memory) / NEED_SHARE))
        return (gs_granules){0};
    return gs_granules_of(t, gs_store_lot(s->store));
}

/* A copy of the edges that scans make, while programs are compared. */
static gs_edge_copy *copy_of(const gs_session *s, uint32_t direction)
{
    const uint32_t d = gs_store_chunks(s->store)->shared ? GS_BY_DEST : direction;
    return s->edges.scans == NULL ? NULL : &s->edges.scans->copy[d];
}

/* Empty tables of what so many chunks need, where there is none yet. */
static gs_status take_needs(gs_edge_set *set, const gs_needs *needs, uint64_t chunks)
{
    const uint64_t words = needs->granules.words, rows = needs->rows.words;

    if (words > 0 && (set->need = gs_calloc(chunks * words, sizeof(*set->need))) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the rows that chunks need");
    if (rows > 0 && (set->rows = gs_calloc(chunks * rows, sizeof(*set->rows))) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the rows that chunks need");
    return GS_OK;
}

/* What is asked of scans: the finer of the two. */
static gs_granules asked(const gs_needs *needs) { return needs->rows.words > 0 ? needs->rows : needs->granules; }
static uint64_t *asked_table(const gs_edge_set *set)
{
    return (uint64_t *)(uintptr_t)(set->rows != NULL ? set->rows : set->need);
}

/* Granules of what is known row by row. */
static void find_granules(const gs_edge_set *set, const gs_needs *needs, uint64_t chunks)
{
    uint64_t *to = (uint64_t *)(uintptr_t)set->need;

    for (uint64_t i = 0; set->rows != NULL && i < chunks; i++, to += needs->granules.words)
        for (uint32_t w = 0; w < needs->rows.words; w++)
            for (uint64_t left = set->rows[i * needs->rows.words + w]; left != 0;) {
                const uint32_t row = w * 64 + (uint32_t)__builtin_ctzll(left), g = row / needs->granules.rows;
                const uint32_t end = (g + 1) * needs->granules.rows - w * 64; /* of the granule, in this word */
                to[g / 64] |= 1ull << (g % 64);
                left = end >= 64 ? 0 : left >> end << end;
            }
}

/* Of a store that is not there; to find them again takes as long as to keep them. */
static void draw_needs(const gs_session *s, uint32_t d, const gs_needs *needs)
{
    const gs_edge_set *const set = &s->edges.set[d];
    const bool rows = set->rows != NULL && needs->rows.rows > 1;

    gs_store_draw_needs(s->store, (gs_direction)d, rows ? needs->rows : asked(needs), rows, asked_table(set));
    if (rows)
        gs_store_draw_needs(s->store, (gs_direction)d, needs->granules, false, (uint64_t *)(uintptr_t)set->need);
    else
        find_granules(set, needs, (uint64_t)gs_store_chunks(s->store)->parts * gs_store_chunks(s->store)->parts);
}

gs_status gs_session_read_needs(gs_session *s, const gs_needs *needs)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    const uint64_t chunks = (uint64_t)t->parts * t->parts;
    const gs_granules g = asked(needs);
    GS_ENDS(gs_scan_share_end) gs_scan_share share = {0};

    GS_TRY(gs_scan_share_take(&share, s));
    for (uint32_t d = 0; d < 2; d++) {
        if (!gs_session_uses_set(s, d))
            continue;
        GS_TRY(take_needs(&s->edges.set[d], needs, chunks));
        if (gs_store_is_shape(s->store)) {
            draw_needs(s, d, needs);
            continue;
        }
        uint64_t *const bits = asked_table(&s->edges.set[d]);
        const gs_scan_key key = {.kind = GS_SCAN_NEED, .direction = d, .coarse_rows = g.rows};
        const gs_scan_answer answer = {{bits}, {chunks * g.words * sizeof(*bits)}};
        if (!gs_scans_find(s->edges.scans, &key, &answer)) {
            GS_TRY(gs_scan_share_check(s));
            GS_TRY(gs_edge_needs(s->store, (gs_direction)d, gs_session_left(&s->memory) / 2, share.wanted,
                                 copy_of(s, d), g, bits));
            GS_TRY(gs_scan_share_chunks(&share, bits, g.words * sizeof(*bits)));
            gs_scans_keep(s->edges.scans, &key, &answer);
        }
        find_granules(&s->edges.set[d], needs, chunks);
    }
    return GS_OK;
}

static void drop_needs(gs_session *s, uint32_t sets)
{
    for (uint32_t k = 0; k < sets; k++) {
        gs_free(s->edges.set[k].need);
        gs_free(s->edges.set[k].rows);
        s->edges.set[k].need = s->edges.set[k].rows = NULL;
    }
}

void gs_session_drop_needs(gs_session *s) { drop_needs(s, s->edges.sets); }
void gs_session_drop_read_needs(gs_session *s) { drop_needs(s, GS_MIN(s->edges.sets, 2u)); }

/* ---- targets or a part of the width for each device? ------------------------ */

/* An edge pass that is dealt by targets brings each device all rows that its targets' edges name, of which it has made
 * a share itself. One that is dealt by the rows' width (gs_program_part_widths()) brings each device its part of all
 * rows, and takes the sums from there to who has the rows: 2 V (N - 1) / N rows over links for N devices and V
 * vertices, whatever the edges are. But each device has all edges, which count where they come anew in each epoch.
 */

/* From so many devices on: of two, each needs the other's half of all rows at the most. */
#define PART_DEVICES 3u

static bool are_alike(const gs_topology *t)
{
    for (uint32_t d = 0; d < t->devices; d++) {
        const gs_topology_switch *const a = &t->at[0], *const b = &t->at[gs_topology_switch_of(t, d)];
        if (t->in_place[d] || t->on_host[d] != t->on_host[0] || t->memory[d] != t->memory[0] ||
            t->speed[d] != t->speed[0] || a->devices != b->devices || a->host_bps != b->host_bps)
            return false;
    }
    return true;
}

bool gs_session_may_part(const gs_session *s)
{
    const gs_topology *const t = &s->machine.wires;

    if (t->devices < 2 || t->devices > GS_STAGE_PARTS || t->across.network || t->place.said)
        return false;
    return t->width || (t->devices >= PART_DEVICES && are_alike(t) && !s->config.options->no_width);
}

/* Rows that devices get of others where each has a run of target intervals, as the counts of the store's chunks let
 * expect, and bytes of the edges. */
static void expect_by_targets(const gs_session *s, uint32_t direction, double *rows, double *bytes)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    const uint32_t devices = s->machine.devices;

    *rows = *bytes = 0;
    for (uint32_t d = 0; d < devices; d++) {
        const uint32_t first = (uint32_t)((uint64_t)t->parts * d / devices);
        const uint32_t end = (uint32_t)((uint64_t)t->parts * (d + 1) / devices);
        for (uint32_t o = 0; o < t->parts; o++) {
            const double all = gs_interval_rows(t, o);
            double left = 1;
            for (uint32_t k = first; k < end; k++) {
                const gs_chunk *const c = gs_chunk_at(t, (gs_direction)direction, k, o);
                left *= 1 - (all > 0 ? c->operands / all : 0);
                *bytes += (double)c->length;
            }
            *rows += o >= first && o < end ? 0 : all * (1 - left);
        }
    }
}

/* Does less cross the links where the width of the stage's rows is dealt? */
static bool is_less_by_width(const gs_session *s, uint32_t stage)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    const double devices = s->machine.devices, row = 4.0 * gs_stage_parted_width(s->program, stage);
    double rows, edges;

    expect_by_targets(s, t->shared ? GS_BY_DEST : s->program->stage[stage].direction, &rows, &edges);
    const double parts = 2 * (double)t->vertices * (devices - 1) / devices;
    return parts * row + (s->variant.counts_edges ? (devices - 1) * edges : 0) < rows * row;
}

static gs_status part_widths(gs_session *s)
{
    GS_FREED bool *const takes = gs_calloc(s->program->stages + 1ull, sizeof(*takes));

    GS_NEED(takes != NULL, "no memory for the stages of the program");
    for (uint32_t k = 0; k < s->program->stages; k++)
        takes[k] = gs_stage_parted_width(s->program, k) >= s->machine.devices &&
                   (s->machine.wires.width || is_less_by_width(s, k));
    return gs_program_part_widths(s->program, s->machine.devices, takes);
}

gs_status gs_session_cut_stages(gs_session *s)
{
    if (s->machine.wires.place.said)
        s->variant.split = GS_TAKEN_SHORTER;
    if (s->machine.wires.width)
        s->variant.width = GS_TAKEN_SHORTER;
    const gs_status st = s->variant.split != GS_NOT_TAKEN ? gs_program_split(s->program) : GS_OK;
    return st == GS_OK && s->variant.width != GS_NOT_TAKEN && gs_session_may_part(s) ? part_widths(s) : st;
}

/* ---- what may be left out ------------------------------------------------- */

/* Only what the loss can see: row sets from the splits, and the edges between them.
 *
 * When a session opens, the edge files are read once for each set whose neighbours must be known and once
 * for each pruned edge set, to count it; when it starts, those are written to the
 * spill folder as edge files of the run, in the format of a store's.
 */

/* Sets that a model of a few layers makes, for the choice of granules. */
#define SETS_AT_MOST 24
#define SETS_SHARE 16 /* of what the budget leaves */
#define TRIAL_SHARE 2 /* of free memory, for what a trial looks for at a time */

static uint64_t scan_memory(const gs_session *s) { return gs_session_left(&s->memory) / 2; }

/* As fine as the budget allows: single rows for all but the largest graphs. */
static gs_granules row_granules(const gs_session *s)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    uint32_t rows = 1;
    while (rows < GS_ROW_GAP && (uint64_t)t->parts * gs_granules_of(t, rows).words * 8 * SETS_AT_MOST >
                                    2 * scan_memory(s) / SETS_SHARE)
        rows *= 2;
    return gs_granules_of(t, rows);
}

/* ---- rows with labels ---------------------------------------------------- */

static void mark_row(const gs_session *s, gs_granules g, uint64_t *bits, uint64_t row)
{
    const uint32_t per = gs_store_chunks(s->store)->interval_rows;
    const uint64_t k = row % per / g.rows;
    bits[row / per * g.words + k / 64] |= 1ull << (k % 64);
}

static gs_status read_splits(const gs_session *s, gs_granules g, uint64_t *train, uint64_t *labelled)
{
    gs_block_reader r = {0};
    gs_status st = gs_block_reader_open(&r, s->store, GS_ARRAY_SPLIT);

    while (gs_block_reader_more(&r, &st))
        for (uint64_t i = 0; i < r.bytes; i++) {
            const unsigned char split = ((const unsigned char *)r.block)[i];
            if (split != GS_SPLIT_NONE)
                mark_row(s, g, labelled, r.at + i);
            if (split == GS_SPLIT_TRAIN)
                mark_row(s, g, train, r.at + i);
        }
    gs_block_reader_close(&r);
    return st;
}

/* ---- who names whom ------------------------------------------------------ */

typedef struct reaching {
    const gs_session *s;
    gs_granules g;
    const uint64_t *targets;
    uint64_t *operands;
} reaching;

static gs_status mark_reached(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    const reaching *const r = context;
    const uint64_t *const from = r->targets + (uint64_t)target * r->g.words;
    uint64_t *const to = r->operands + (uint64_t)operand * r->g.words;
    const uint32_t shift = (uint32_t)__builtin_ctz(r->g.rows);

    for (uint32_t t = 0; t < v->targets; t++) {
        const uint32_t g = gs_index_at(v->target, v->index_bytes, t) >> shift;
        if (!(from[g / 64] >> (g % 64) & 1))
            continue;
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++) {
            const uint32_t o = gs_index_at(v->index, v->index_bytes, k) >> shift;
            to[o / 64] |= 1ull << (o % 64);
        }
    }
    return GS_OK;
}

static bool any_bit(const uint64_t *bits, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++)
        if (bits[w] != 0)
            return true;
    return false;
}

/* Chunks whose target interval has rows of the set. */
static gs_status reach(void *context, uint32_t direction, const uint64_t *targets, uint64_t *operands)
{
    reaching *const r = context;
    const uint32_t parts = gs_store_chunks(r->s->store)->parts;
    const uint64_t words = (uint64_t)parts * r->g.words;
    const gs_scan_key key = {
        .kind = GS_SCAN_REACH, .direction = direction, .rows = r->g.rows, .targets = targets, .words = words};
    const gs_scan_answer answer = {{operands}, {words * sizeof(*operands)}};
    gs_scan_share share;

    if (gs_scans_find(r->s->edges.scans, &key, &answer))
        return GS_OK;
    GS_TRY(gs_scan_share_check(r->s));
    GS_FREED uint8_t *const wanted = gs_calloc((uint64_t)parts * parts, 1);
    GS_NEED(wanted != NULL, "out of memory for the rows that a loss sees");
    gs_scan_share_describe(&share, r->s);
    for (uint32_t i = share.first; i < share.end; i++)
        memset(wanted + (uint64_t)i * parts, any_bit(targets + (uint64_t)i * r->g.words, r->g.words), parts);
    r->targets = targets;
    r->operands = operands;
    GS_TRY(gs_edge_scan_copied(r->s->store, (gs_direction)direction, scan_memory(r->s), wanted,
                               copy_of(r->s, direction), mark_reached, r));
    if (share.ranks > 1)
        GS_TRY(gs_ranks_unite(operands, words));
    gs_scans_keep(r->s->edges.scans, &key, &answer);
    return GS_OK;
}

/* ---- edge sets ----------------------------------------------------------- */

typedef struct counting {
    gs_edge_filter filter;
    gs_granules coarse;
    uint32_t parts, direction;
    gs_chunk *chunk;
    uint64_t *need;
} counting;

typedef struct counting_sets {
    gs_edge_data data; /* that edges carry */
    uint32_t sets;
    counting set[GS_EDGE_SETS];
} counting_sets;

static gs_status count_chunk(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    const counting_sets *const of = context;

    for (uint32_t i = 0; i < of->sets; i++) {
        const counting *const c = &of->set[i];
        const uint64_t k = (uint64_t)target * c->parts + operand;
        gs_chunk *const out = &c->chunk[k];
        gs_edge_filter_count(&c->filter, target, operand, v, out, c->need ? c->need + k * c->coarse.words : NULL,
                             c->coarse);
        out->length = gs_chunk_bytes(out->edges, out->targets, out->operands, v->index_bytes, of->data);
    }
    return GS_OK;
}

static gs_edge_filter filter_of(const gs_session *s, const gs_pruned_edges *l)
{
    return (gs_edge_filter){.granules = s->edges.rows.granules, .targets = s->edges.rows.bits[l->targets],
                            .operands = s->edges.rows.bits[l->operands],
                            .seen_words = gs_edge_filter_words(gs_store_chunks(s->store))};
}

static uint64_t need_bytes(const counting *c) { return c->need == NULL ? 0 : c->coarse.words * sizeof(*c->need); }

/* What is asked of a scan about a set, and where its answer goes. */
static gs_scan_key key_of(const counting *c)
{
    return (gs_scan_key){.kind = GS_SCAN_COUNT,
                         .direction = c->direction,
                         .rows = c->filter.granules.rows,
                         .coarse_rows = c->coarse.rows,
                         .targets = c->filter.targets,
                         .operands = c->filter.operands,
                         .words = (uint64_t)c->parts * c->filter.granules.words};
}

static gs_scan_answer answer_of(const counting *c)
{
    const uint64_t n = (uint64_t)c->parts * c->parts;
    return (gs_scan_answer){{c->chunk, c->need}, {n * sizeof(*c->chunk), n * need_bytes(c)}};
}

/* The tables of set k, empty. */
static gs_status begin_count(gs_session *s, uint32_t k, const gs_needs *needs, counting *c)
{
    const uint64_t n = (uint64_t)c->parts * c->parts;
    gs_pruned_edges *const l = &s->edges.pruned[k];

    l->chunk = c->chunk = gs_calloc(n, sizeof(*c->chunk));
    s->edges.set[k].chunk = c->chunk;
    if (c->chunk == NULL || take_needs(&s->edges.set[k], needs, n) != GS_OK)
        return gs_fail(GS_ENOMEM, "no memory for the tables of %llu chunks", (unsigned long long)n);
    c->need = asked_table(&s->edges.set[k]);
    return GS_OK;
}

/* One chunk after the other in the set's file. */
static void place_chunks(gs_pruned_edges *l, uint64_t chunks)
{
    for (uint64_t i = 0; i < chunks; i++) {
        l->chunk[i].offset = l->bytes;
        l->bytes += l->chunk[i].length;
    }
}

/* Counts the pruned edges of all sets of a direction: their chunk tables, checksums still missing. The edges are gone
 * over once, where there is a set for which they were not before. */
static gs_status count_sets_of(gs_session *s, uint32_t direction, const gs_needs *needs, uint64_t *seen)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    counting_sets of = {.data = t->data};
    GS_ENDS(gs_scan_share_end) gs_scan_share share = {0};

    for (uint32_t k = 2; k < s->edges.sets; k++) {
        counting *const c = &of.set[of.sets];
        if (s->edges.pruned[k].direction != direction)
            continue;
        *c = (counting){.filter = filter_of(s, &s->edges.pruned[k]), .coarse = asked(needs), .parts = t->parts,
                        .direction = direction};
        c->filter.seen = seen;
        GS_TRY(begin_count(s, k, needs, c));
        const gs_scan_key key = key_of(c);
        const gs_scan_answer answer = answer_of(c);
        of.sets += !gs_scans_find(s->edges.scans, &key, &answer);
    }
    if (of.sets > 0) {
        GS_TRY(gs_scan_share_check(s));
        GS_TRY(gs_scan_share_take(&share, s));
        GS_TRY(gs_edge_scan_copied(s->store, (gs_direction)direction, scan_memory(s), share.wanted,
                                   copy_of(s, direction), count_chunk, &of));
    }
    for (uint32_t i = 0; i < of.sets; i++) {
        GS_TRY(gs_scan_share_chunks(&share, of.set[i].chunk, sizeof(*of.set[i].chunk)));
        GS_TRY(gs_scan_share_chunks(&share, of.set[i].need, need_bytes(&of.set[i])));
        const gs_scan_key key = key_of(&of.set[i]);
        const gs_scan_answer answer = answer_of(&of.set[i]);
        gs_scans_keep(s->edges.scans, &key, &answer);
    }
    return GS_OK;
}

static gs_status count_all(gs_session *s, const gs_needs *needs)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    GS_FREED uint64_t *const seen = gs_calloc(gs_edge_filter_words(t), sizeof(*seen));

    GS_NEED(seen != NULL, "out of memory for the rows that a loss sees");
    for (uint32_t d = 0; d < 2; d++)
        GS_TRY(count_sets_of(s, d, needs, seen));
    for (uint32_t k = 2; k < s->edges.sets; k++) {
        place_chunks(&s->edges.pruned[k], (uint64_t)t->parts * t->parts);
        find_granules(&s->edges.set[k], needs, (uint64_t)t->parts * t->parts);
    }
    return GS_OK;
}

/* Bytes of tables of so many pruned sets. */
static uint64_t sets_bytes(const gs_session *s, uint32_t sets, const gs_needs *needs)
{
    const uint64_t parts = gs_store_chunks(s->store)->parts, words = needs->granules.words + needs->rows.words;
    return sets * parts * parts * (sizeof(gs_chunk) + sizeof(gs_exec_chunk) + words * sizeof(uint64_t));
}

/* Is there room for them, which the run needs, too? */
static bool have_room(const gs_session *s, uint32_t sets, const gs_needs *needs)
{
    return sets_bytes(s, sets, needs) <= gs_session_left(&s->memory);
}

/* A budget is tried that the machine may not have: GS_ENOMEM where it has no room for what is looked for then. */
static gs_status check_trial(const gs_session *s, uint64_t bytes)
{
    if (!s->config.trial || bytes < gs_machine_free_memory() / TRIAL_SHARE)
        return GS_OK;
    return gs_fail(GS_ENOMEM, "no memory to try a budget");
}

static bool is_between(const gs_pruned_edges *p, uint32_t direction, const struct gs_stage_rows *r)
{
    return p->direction == direction && p->targets == r->targets && p->operands == r->operands;
}

static bool needs_pruned(const gs_session *s, uint32_t stage)
{
    const struct gs_stage_rows *const r = &s->edges.rows.stage[stage];
    return s->program->stage[stage].sums > 0 && (r->targets != GS_ALL_ROWS || r->operands != GS_ALL_ROWS);
}

static uint32_t direction_of(const gs_session *s, uint32_t stage)
{
    return gs_store_chunks(s->store)->shared ? GS_BY_DEST : s->program->stage[stage].direction;
}

/* Pruned sets that the stages need in all. */
static uint32_t count_sets(const gs_session *s)
{
    uint32_t sets = 0;

    for (uint32_t k = 0; k < s->program->stages; k++) {
        const struct gs_stage_rows *const r = &s->edges.rows.stage[k];
        const gs_pruned_edges p = {
            .direction = direction_of(s, k), .targets = r->targets, .operands = r->operands};
        uint32_t before = 0;
        while (before < k && !(needs_pruned(s, before) &&
                               is_between(&p, direction_of(s, before), &s->edges.rows.stage[before])))
            before++;
        sets += needs_pruned(s, k) && before == k;
    }
    return sets;
}

/* The edge set that the stage needs, listed when it is the first that wants it. GS_NONE: too many. */
static uint32_t set_for(gs_session *s, uint32_t stage)
{
    const struct gs_stage_rows *const r = &s->edges.rows.stage[stage];
    const uint32_t d = direction_of(s, stage);

    if (!needs_pruned(s, stage))
        return d;
    for (uint32_t k = 2; k < s->edges.sets; k++)
        if (is_between(&s->edges.pruned[k], d, r))
            return k;
    if (s->edges.sets == GS_EDGE_SETS)
        return GS_NONE;
    s->edges.pruned[s->edges.sets] = (gs_pruned_edges){.direction = d, .targets = r->targets, .operands = r->operands};
    return s->edges.sets++;
}

static gs_status list_stage(gs_session *s, uint32_t stage, bool *fits)
{
    const uint32_t set = set_for(s, stage), rows = s->edges.rows.stage[stage].rows;

    *fits = set != GS_NONE;
    if (!*fits)
        return GS_OK;
    s->edges.stage_set[stage] = set;
    return rows == GS_ALL_ROWS ? GS_OK : gs_row_sets_runs(&s->edges.stage_rows[stage], &s->edges.rows, rows);
}

static void forget(gs_session *s)
{
    gs_session_drop_pruned(s);
    gs_session_list_edges(s);
}

/* ---- the whole ----------------------------------------------------------- */

/* Rows that each pass reports on; NULL where it needs all of them. Where evaluation is a pass of its own (dropout,
 * batch statistics) the train pass needs the training rows alone. */
static void list_reported(const gs_session *s, const uint64_t **reported, const uint64_t *train,
                          const uint64_t *labelled)
{
    if (s->pass.train != GS_NONE)
        reported[s->pass.train] = s->pass.train_differs ? train : labelled;
    if (s->pass.eval != GS_NONE)
        reported[s->pass.eval] = labelled;
}

static gs_status find_sets(gs_session *s, gs_granules g)
{
    const uint64_t words = (uint64_t)gs_store_chunks(s->store)->parts * g.words;
    GS_ENDS(gs_arena_free) gs_arena memory = {0};
    uint64_t *const train = gs_arena_take(&memory, words, sizeof(*train));
    uint64_t *const labelled = gs_arena_take(&memory, words, sizeof(*labelled));
    const uint64_t **const reported = gs_arena_take(&memory, s->program->passes, sizeof(*reported));
    reaching r = {.s = s, .g = g};
    const gs_row_sets_config config = {
        .program = s->program,
        .chunks = gs_store_chunks(s->store),
        .granules = g,
        .train = train,
        .reported = reported,
        .reach = reach,
        .context = &r,
    };

    GS_NEED(!memory.is_short, "out of memory for the rows that a loss sees");
    list_reported(s, reported, train, labelled);
    GS_TRY(read_splits(s, g, train, labelled));
    return gs_row_sets_find(&s->edges.rows, &config);
}

/* Pruned edges go to a file, so a store that can only be read, with no --spill, is trained whole. */
static bool can_write(const gs_session *s)
{
    return s->config.options->spill != NULL || access(gs_store_dir(s->store), W_OK | X_OK) == 0;
}

gs_status gs_session_prune(gs_session *s, gs_schedule_config *config)
{
    const bool left_on = !s->config.options->no_prune && s->variant.no_prune == GS_NOT_TAKEN;
    bool fits = true;

    if (!left_on || !s->pass.labelled || s->pass.train == GS_NONE || !can_write(s) ||
        gs_edge_scan_least(s->store) > scan_memory(s) || !have_room(s, 1, &config->needs))
        return GS_OK;
    const uint64_t bits = (uint64_t)gs_store_chunks(s->store)->parts * row_granules(s).words * sizeof(uint64_t);
    GS_TRY(check_trial(s, gs_edge_scan_least(s->store) + SETS_AT_MOST * bits));
    GS_TRY(find_sets(s, row_granules(s)));
    if (!have_room(s, count_sets(s), &config->needs)) {
        gs_row_sets_drop(&s->edges.rows);
        return GS_OK;
    }
    GS_TRY(check_trial(s, sets_bytes(s, count_sets(s), &config->needs)));
    s->edges.stage_rows = gs_calloc(s->program->stages + 1, sizeof(*s->edges.stage_rows));
    s->edges.array_rows = gs_calloc(s->program->arrays + 1, sizeof(*s->edges.array_rows));
    GS_NEED(s->edges.stage_rows != NULL && s->edges.array_rows != NULL, "out of memory for the rows that a loss sees");
    for (uint32_t k = 0; k < s->program->stages && fits; k++)
        GS_TRY(list_stage(s, k, &fits));
    if (fits)
        GS_TRY(count_all(s, &config->needs));
    for (uint32_t a = 0; a < s->program->arrays && fits; a++)
        if (s->edges.rows.array[a] != GS_ALL_ROWS)
            GS_TRY(gs_row_sets_runs(&s->edges.array_rows[a], &s->edges.rows, s->edges.rows.array[a]));
    if (!fits)
        forget(s); /* a model of more layers than edge sets: every stage runs for all rows */
    config->needs.stage_rows = s->edges.stage_rows;
    config->needs.array_rows = s->edges.array_rows;
    return GS_OK;
}

/* ---- files of the run ---------------------------------------------------- */

typedef struct writing {
    gs_edge_filter filter;
    const gs_chunk_table *table;
    gs_pruned_edges *pruned;
    const char *path;
    int fd;
    uint8_t *buffer;
    uint64_t capacity;
} writing;

static gs_status write_chunk(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    const writing *const w = context;
    gs_chunk *const c = &w->pruned->chunk[(uint64_t)target * w->table->parts + operand];
    const gs_chunk_expect counts = {.target_rows = gs_interval_rows(w->table, target),
                                    .operand_rows = gs_interval_rows(w->table, operand),
                                    .index_bytes = v->index_bytes,
                                    .edges = c->edges,
                                    .targets = c->targets,
                                    .operands = c->operands};
    gs_chunk_view out;

    memset(w->buffer, 0, c->length);
    gs_chunk_layout(&out, w->buffer, &counts, gs_chunk_view_data(v));
    gs_edge_filter_fill(&w->filter, target, operand, v, &out);
    c->checksum = gs_hash64(w->buffer, c->length);
    return gs_pwrite_exact(w->fd, w->buffer, c->length, c->offset, w->path);
}

static void mark_bytes(const gs_pruned_edges *l, uint64_t chunks, uint64_t first, uint64_t bytes, uint8_t *wanted)
{
    uint64_t low = 0, high = chunks;

    GS_BISECT(low, high, l->chunk[middle].offset + l->chunk[middle].length <= first);
    for (; low < chunks && l->chunk[low].offset < first + bytes; low++)
        wanted[low] = l->chunk[low].edges > 0;
}

/* Of several ranks, the chunks that this one reads or loads; others are holes in its file. */
static void mark_own(const gs_session *s, uint32_t k, uint8_t *wanted)
{
    const gs_plan *const p = s->run.part;
    const uint32_t file = GS_FILE_EDGES(s->program, k);
    const uint64_t parts = gs_store_chunks(s->store)->parts;

    for (const gs_task *t = p->task; t < p->task + p->tasks; t++)
        if (gs_task_reads(t) && t->file == file)
            mark_bytes(&s->edges.pruned[k], parts * parts, t->source.offset, t->bytes, wanted);
    for (const gs_resident *r = p->resident; r < p->resident + p->residents; r++)
        if (r->file == file && r->load)
            mark_bytes(&s->edges.pruned[k], parts * parts, r->first, r->bytes, wanted);
}

static gs_status write_set(gs_session *s, uint32_t k, const char *path)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    const uint64_t n = (uint64_t)t->parts * t->parts;
    gs_pruned_edges *const l = &s->edges.pruned[k];
    GS_FREED uint8_t *const wanted = gs_calloc(n, 1);
    writing w = {.filter = filter_of(s, l), .table = t, .pruned = l, .path = path, .fd = -1,
                 .capacity = GS_BLOCK_BYTES};
    gs_status st = GS_ENOMEM;

    w.filter.seen = gs_calloc(w.filter.seen_words, sizeof(uint64_t));
    for (uint64_t i = 0; i < n; i++)
        w.capacity = GS_MAX(w.capacity, l->chunk[i].length);
    w.buffer = gs_alloc_pages(w.capacity);
    if (wanted == NULL || w.filter.seen == NULL || w.buffer == NULL) {
        st = gs_fail(st, "out of memory for the pruned edges");
        goto done;
    }
    if (s->run.part == NULL)
        for (uint64_t i = 0; i < n; i++)
            wanted[i] = l->chunk[i].edges > 0;
    else
        mark_own(s, k, wanted);
    if ((w.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) < 0) {
        st = gs_fail_errno(errno, "%s: cannot be written", path);
        goto done;
    }
    if (ftruncate(w.fd, (off_t)l->bytes) != 0)
        st = gs_fail_errno(errno, "%s: cannot be written", path);
    else if ((st = gs_edge_scan(s->store, (gs_direction)l->direction, scan_memory(s), wanted, write_chunk, &w)) ==
                 GS_OK &&
             fsync(w.fd) != 0)
        st = gs_fail_errno(errno, "%s: cannot be written", path);
    (void)posix_fadvise(w.fd, 0, 0, POSIX_FADV_DONTNEED); /* advice: the run reads around the page cache */
done:
    if (w.fd >= 0)
        close(w.fd);
    if (w.buffer != NULL)
        gs_free_pages(w.buffer, w.capacity);
    gs_free(w.filter.seen);
    return st;
}

gs_status gs_session_write_pruned(gs_session *s)
{
    for (uint32_t k = 2; k < s->edges.sets; k++) {
        gs_pruned_edges *const l = &s->edges.pruned[k];
        char name[32];
        snprintf(name, sizeof(name), "edges%u.bin", k);
        GS_NEED((l->path = gs_path_join(s->run.spill.own[l->folder].path, name)) != NULL, "out of memory");
        GS_TRY(write_set(s, k, l->path));
    }
    gs_row_sets_drop(&s->edges.rows);
    return GS_OK;
}

void gs_session_drop_pruned(gs_session *s)
{
    for (uint32_t k = 2; k < s->edges.sets; k++) {
        gs_free(s->edges.pruned[k].chunk);
        gs_free(s->edges.pruned[k].path);
        gs_free(s->edges.set[k].need);
        gs_free(s->edges.set[k].rows);
        s->edges.pruned[k] = (gs_pruned_edges){0};
        s->edges.set[k] = (gs_edge_set){0};
    }
    gs_session_drop_runs(s);
    gs_row_sets_drop(&s->edges.rows);
}

static void drop_runs(gs_row_runs **runs, uint32_t count)
{
    for (uint32_t k = 0; *runs != NULL && k < count; k++) {
        gs_free((*runs)[k].first);
        gs_free((*runs)[k].run);
    }
    gs_free(*runs);
    *runs = NULL;
}

void gs_session_drop_runs(gs_session *s)
{
    if (s->program == NULL)
        return;
    drop_runs(&s->edges.stage_rows, s->program->stages);
    drop_runs(&s->edges.array_rows, s->program->arrays);
}
