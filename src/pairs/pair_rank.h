/* pair_rank.h - how well do rows of vertices tell pairs of a split from others?
 *
 * Exact: a pair's tail is ranked among all vertices that make no known pair with its head and type, and so is its head;
 * pairs of all splits are known. Rows go by once for each GS_RANK_PAIRS pairs, in the order of the store, and only
 * scores of a few of them are in memory at a time. One thread calls; of several ranks each, with rows of its own where
 * all of them go by, and what they have counted is added.
 */
#ifndef GS_PAIRS_PAIR_RANK_H
#define GS_PAIRS_PAIR_RANK_H

#include "device/cpu/kernels.h"
#include "pairs/decoder.h"
#include "pairs/pair_batch.h"
#include "session/tables.h" /* gs_row_list */

#define GS_RANK_PAIRS 2048u

/* Who has rows of vertices, [width] each; with their input ids where they are asked for, else NULL. */
typedef gs_status gs_rows_piece_fn(void *context, uint64_t first, uint64_t rows, const float *row, const uint32_t *id);
typedef struct gs_pair_rows {
    void *context;
    /* Rows by list, as gs_session_read_rows(). */
    gs_status (*fetch)(void *context, const gs_row_list *list, uint32_t width, float *to);
    /* All of them, piece by piece; a rank goes over its own. */
    gs_status (*each)(void *context, bool ids, gs_rows_piece_fn *fn, void *argument);
} gs_pair_rows;

typedef struct gs_pair_rank_options {
    const gs_store *store;
    const gs_decoder *decoder;
    uint32_t width, threads;
    uint32_t top; /* of gs_pair_ranks_top(), at most the number of vertices; 0: it is not called */
    uint64_t seed;
    const volatile int *stop;
} gs_pair_rank_options;

/* Of one split; NaN where it has no pairs. */
typedef struct gs_pair_figures {
    double mrr, hits[3]; /* the mean of 1 / rank; parts of ranks of at most 1, 3 and 10. A rank is the mean one where
                          * scores are equal */
    double auc;          /* of pairs, and as many random ones that are not known: how often a pair's score is above one
                          * of theirs, half where they are equal */
} gs_pair_figures;

typedef struct gs_pair_ranks gs_pair_ranks;

/* GS_ENOMEM, GS_EIO, GS_EFORMAT. Blocks while it reads where pairs are. */
gs_status gs_pair_ranks_open(gs_pair_ranks **out, const gs_pair_rank_options *options);
void gs_pair_ranks_close(gs_pair_ranks *r); /* NULL is allowed */
GS_ENDS_BY(gs_pair_ranks, gs_pair_ranks_close)
/* Memory that it takes, its copy of the splits' buckets and pairs included. */
uint64_t gs_pair_ranks_bytes(const gs_pair_ranks *r);
/* Ranks of the pairs of a split (1 valid, 2 test); or, with `by_auc`, of them and random ones. GS_EINTERRUPTED, GS_EIO;
 * GS_EBUDGET: an end has more known pairs than there is room for. */
gs_status gs_pair_ranks_find(gs_pair_ranks *r, gs_pair_figures *out, uint32_t split, bool by_auc,
                             const gs_pair_rows *rows, const gs_decoder_values *values);
/* The `top` best destinations of all vertices for each pair's source and type, the best first, by input id: of equal
 * scores the lowest first. *id and *score [pairs, top] stand until the next call; gs_pair_ranks_top_pairs() at most. */
uint32_t gs_pair_ranks_top_pairs(const gs_pair_ranks *r);
gs_status gs_pair_ranks_top(gs_pair_ranks *r, const uint32_t **id, const float **score, const gs_pair *pair,
                            uint32_t pairs, const gs_pair_rows *rows, const gs_decoder_values *values);
/* Scores of pairs, GS_RANK_PAIRS at most. */
gs_status gs_pair_ranks_score(gs_pair_ranks *r, float *score, const gs_pair *pair, uint32_t pairs,
                              const gs_pair_rows *rows, const gs_decoder_values *values);

#endif /* GS_PAIRS_PAIR_RANK_H */
