/* score_pairs.c - scores of the pairs of a file, logits of their labels, or the best destinations of sources (.top). */
#include <string.h>

#include "base/hash.h"
#include "base/npy.h"
#include "base/size.h"
#include "ranks/ranks.h"
#include "train/run_internal.h"

#define PAIR_COLUMNS 3u           /* at most */
#define ENDS (2 * GS_RANK_PAIRS)  /* of the pairs of a batch */
#define NAMES (5ull * ENDS)       /* that batch_of() makes of them */

static gs_pair_rank_options file_options(const gs_store *store, const gs_train_options *o)
{
    gs_pair_rank_options of_ranks = gs_run_pairs__rank_options(store, o);
    of_ranks.top = (uint32_t)GS_MIN(o->top, gs_store_get_info(store)->vertices);
    return of_ranks;
}

static gs_label_step_options label_options(const gs_store *store, const gs_train_options *o)
{
    gs_label_step_options of_step = gs_run_pairs__label_options(store, o);
    of_step.most_pairs = GS_RANK_PAIRS;
    of_step.most_rows = ENDS;
    return of_step;
}

static gs_status check_classes(const gs_label_step_options *o)
{
    return o->columns > 0 ? GS_OK
                          : gs_fail(GS_ENOTFOUND, "the weights do not say how many classes edges have; give .classes");
}

gs_status gs_run_pairs_score_bytes(uint64_t *out, const gs_store *store, const gs_train_options *o)
{
    const gs_pair_rank_options of_ranks = file_options(store, o);
    const gs_label_step_options of_labels = label_options(store, o);
    const bool labels = gs_run_pairs_have_labels(o);
    GS_ENDS(gs_pair_ranks_close_at) gs_pair_ranks *ranks = NULL;

    GS_TRY(labels ? check_classes(&of_labels) : gs_pair_ranks_open(&ranks, &of_ranks));
    *out = (labels ? gs_label_step_bytes(&of_labels) + NAMES * sizeof(uint32_t) : gs_pair_ranks_bytes(ranks)) +
           gs_store_get_info(store)->vertices * sizeof(uint32_t) +
           GS_RANK_PAIRS * (sizeof(gs_pair) + sizeof(float) + PAIR_COLUMNS * sizeof(int64_t)) + GS_SUM_BYTES +
           of_ranks.top * sizeof(int64_t);
    return GS_OK;
}

/* What scoring the pairs of a file holds. */
typedef struct scoring {
    const gs_store *store;
    const char *path;
    gs_npy npy;
    uint32_t ends, columns, types, top;
    gs_pair_ranks *ranks;
    bool labelled;         /* in the place of ranks: */
    gs_label_step labels;
    uint32_t *names;       /* [NAMES] */
    uint32_t *row_of;      /* [vertices] of an input id */
    void *raw;
    gs_pair *pair;
    float *score;
    int64_t *target;       /* [top] */
} scoring;

static gs_status find_rows(scoring *x)
{
    GS_ENDS(gs_block_reader_close) gs_block_reader reader = {0};
    gs_status st = gs_block_reader_open(&reader, x->store, GS_ARRAY_INPUT_ID);

    while (gs_block_reader_more(&reader, &st))
        for (uint64_t k = 0; k < reader.bytes / sizeof(uint32_t); k++) {
            const uint32_t id = ((const uint32_t *)reader.block)[k];
            if (id < gs_store_get_info(x->store)->vertices)
                x->row_of[id] = (uint32_t)(reader.at / sizeof(uint32_t) + k);
        }
    return st;
}

/* Are there as many columns as pairs, or sources, have? */
static gs_status check_columns(const scoring *x)
{
    const gs_npy *const npy = &x->npy;
    const bool typed = x->columns > x->ends;
    const char *const shape = x->columns == 1 ? "[M]" : x->columns == 2 ? "[M, 2]" : "[M, 3]";
    const char *const what = !typed ? "" : x->ends == 1 ? ": source and type" : ": source, destination and type";

    if ((npy->dtype == GS_I64 || npy->dtype == GS_I32) && npy->shape[1] == x->columns &&
        (npy->dims == 2 || x->columns == 1))
        return GS_OK;
    return gs_fail(GS_EFORMAT, "%s: is %s [%lu, %lu]; %s are int64 or int32 %s%s", x->path, gs_dtype_name(npy->dtype),
                   npy->shape[0], npy->shape[1],
                   x->ends == 1 ? "sources whose best targets are wanted" : "pairs to score", shape, what);
}

static gs_status open_scoring(scoring *x, const gs_run *r)
{
    const gs_train_options *const o = &r->options;
    const gs_pair_rank_options of_ranks = file_options(r->session->store, o);
    const bool labelled = gs_run_pairs_have_labels(o);
    const bool typed = (labelled || of_ranks.decoder->of_types) && gs_store_get_info(of_ranks.store)->edge_types > 0;
    const uint32_t ends = of_ranks.top > 0 ? 1 : 2;

    *x = (scoring){.store = of_ranks.store, .path = o->edges, .npy = {.fd = -1}, .ends = ends, .columns = ends + typed,
                   .types = GS_MAX(gs_store_get_info(of_ranks.store)->edge_types, 1), .top = of_ranks.top,
                   .labelled = labelled};
    GS_TRY(gs_npy_open(&x->npy, x->path));
    GS_TRY(check_columns(x));
    x->row_of = gs_calloc(gs_store_get_info(x->store)->vertices, sizeof(*x->row_of));
    x->raw = gs_malloc_array((size_t)GS_RANK_PAIRS * PAIR_COLUMNS, sizeof(int64_t));
    x->pair = gs_malloc_array(GS_RANK_PAIRS, sizeof(*x->pair));
    x->score = gs_malloc_array(GS_RANK_PAIRS, sizeof(*x->score));
    x->target = gs_malloc_array(x->top + 1ull, sizeof(*x->target));
    if (x->row_of == NULL || x->raw == NULL || x->pair == NULL || x->score == NULL || x->target == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to score its pairs", x->path);
    GS_TRY(find_rows(x));
    if (!x->labelled)
        return gs_pair_ranks_open(&x->ranks, &of_ranks);
    const gs_label_step_options of_labels = label_options(x->store, o);
    if ((x->names = gs_malloc_array(NAMES, sizeof(*x->names))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to score its pairs", x->path);
    GS_TRY(check_classes(&of_labels));
    return gs_label_step_open(&x->labels, &of_labels);
}

static void close_scoring(scoring *x)
{
    gs_npy_close(&x->npy);
    gs_pair_ranks_close(x->ranks);
    gs_label_step_close(&x->labels);
    gs_free(x->names);
    gs_free(x->row_of);
    gs_free(x->raw);
    gs_free(x->pair);
    gs_free(x->score);
    gs_free(x->target);
}

static gs_status read_pairs(scoring *x, uint64_t first, uint32_t pairs)
{
    const uint64_t vertices = gs_store_get_info(x->store)->vertices;

    GS_TRY(gs_npy_read_rows(&x->npy, x->raw, first, pairs, x->path));
    for (uint32_t p = 0; p < pairs; p++) {
        int64_t v[PAIR_COLUMNS] = {0};
        for (uint32_t c = 0; c < x->columns; c++) {
            const uint64_t k = (uint64_t)p * x->columns + c;
            v[c] = x->npy.dtype == GS_I64 ? ((const int64_t *)x->raw)[k] : ((const int32_t *)x->raw)[k];
            const bool vertex = c < x->ends;
            if (v[c] < 0 || (uint64_t)v[c] >= (vertex ? vertices : x->types))
                return gs_fail(GS_EFORMAT, "%s: row %lu: %s %lld is none of the store's %lu", x->path, first + p,
                               vertex ? "vertex" : "type", (long long)v[c], (vertex ? vertices : x->types));
        }
        x->pair[p] = (gs_pair){x->row_of[v[0]], x->row_of[v[x->ends - 1]], (uint32_t)v[x->ends]};
    }
    return GS_OK;
}

/* Rank 0 alone writes. */
static gs_status put(gs_outfile *file, const void *x, uint64_t bytes, uint64_t at)
{
    return file->path == NULL ? GS_OK : gs_outfile_write(file, x, bytes, at);
}

static gs_status write_scores(scoring *x, gs_run *r, uint64_t first, uint32_t pairs, const gs_pair_rows *rows,
                              const gs_decoder_values *values)
{
    GS_TRY(gs_pair_ranks_score(x->ranks, x->score, x->pair, pairs, rows, values));
    return put(&r->files.scores, x->score, pairs * sizeof(*x->score),
               r->files.scores_offset + first * sizeof(*x->score));
}

/* The pairs' ends, each once, as the rows of a batch. */
static gs_pair_batch batch_of(const scoring *x, uint32_t pairs)
{
    uint32_t *const end = x->names, *const order = end + ENDS, *const spare = order + ENDS, *const row = spare + ENDS,
             *const vertex = row + ENDS;
    gs_pair_batch b = {.pairs = pairs, .pair = x->pair, .slots = 2 * pairs, .row = row, .vertex = vertex};

    for (uint32_t p = 0; p < pairs; p++) {
        end[p] = x->pair[p].source;
        end[pairs + p] = x->pair[p].destination;
    }
    gs_radix_order(order, spare, end, b.slots);
    for (uint32_t k = 0; k < b.slots; k++) {
        if (k == 0 || end[order[k]] != vertex[b.rows - 1])
            vertex[b.rows++] = end[order[k]];
        row[order[k]] = b.rows - 1;
    }
    return b;
}

static gs_status write_labels(scoring *x, gs_run *r, uint64_t first, uint32_t pairs, const gs_pair_rows *rows,
                              const gs_decoder_values *values)
{
    const gs_pair_batch batch = batch_of(x, pairs);
    const uint64_t row = x->labels.o.columns * sizeof(float);
    uint32_t *const order = x->names + ENDS;

    for (uint32_t k = 0; k < batch.rows; k++)
        order[k] = k;
    const gs_row_list list = {.rows = batch.rows, .named = order + 3 * ENDS /* batch.vertex */, .order = order};

    GS_TRY(rows->fetch(rows->context, &list, x->labels.o.width, x->labels.rows));
    gs_label_step_forward(&x->labels, &batch, values);
    return put(&r->files.scores, x->labels.logit, pairs * row, r->files.scores_offset + first * row);
}

static gs_status write_top(scoring *x, gs_run *r, uint64_t first, uint32_t sources, const gs_pair_rows *rows,
                           const gs_decoder_values *values)
{
    const uint64_t row = x->top * sizeof(*x->target), scores = x->top * sizeof(float);
    const uint32_t *id;
    const float *score;

    GS_TRY(gs_pair_ranks_top(x->ranks, &id, &score, x->pair, sources, rows, values));
    for (uint64_t k = 0; k < sources; k++) {
        for (uint32_t t = 0; t < x->top; t++)
            x->target[t] = id[k * x->top + t];
        GS_TRY(put(&r->files.targets, x->target, row, r->files.targets_offset + (first + k) * row));
    }
    return put(&r->files.scores, score, sources * scores, r->files.scores_offset + first * scores);
}

/* Ranks, each of which reads a file of its own machine, have come to `st`, and the same pairs. */
static gs_status alike(gs_status st, const void *pairs, size_t bytes)
{
    return st != GS_OK ? gs_ranks_agree(st)
                       : gs_run__same_of_ranks(gs_hash64(pairs, bytes), "has other pairs than rank 0: give all "
                                               "machines the same file of .edges");
}

gs_status gs_run_pairs_score(gs_run *r)
{
    const gs_decoder_values values = gs_run_pairs__values(r->session, r->session->run.params.value);
    const gs_pair_rows rows = gs_run_pairs__rows(r);
    GS_ENDS(close_scoring) scoring x = {.npy = {.fd = -1}};

    GS_TRY(alike(open_scoring(&x, r), x.npy.shape, sizeof(x.npy.shape)));
    const uint32_t block = x.top > 0 ? gs_pair_ranks_top_pairs(x.ranks) : GS_RANK_PAIRS;
    for (uint64_t at = 0; at < x.npy.shape[0]; at += block) {
        const uint32_t n = (uint32_t)GS_MIN(block, x.npy.shape[0] - at);
        GS_TRY(alike(read_pairs(&x, at, n), x.pair, n * sizeof(*x.pair)));
        GS_TRY(x.labelled  ? write_labels(&x, r, at, n, &rows, &values)
               : x.top > 0 ? write_top(&x, r, at, n, &rows, &values)
                           : write_scores(&x, r, at, n, &rows, &values));
    }
    return GS_OK;
}
