/* gnnstream_loader.h - a part of gnnstream.h: batches of a store, for programs that train by themselves.
 *
 * A loader draws the batches that a run with the same options trains on, and reads the rows of their vertices: from
 * memory where all have room, else from the disk, where it knows what the next batches need and reads ahead. Programs
 * include <gnnstream.h>, which explains errors and blocking.
 */
#ifndef GS_GNNSTREAM_LOADER_H
#define GS_GNNSTREAM_LOADER_H

#include "gnnstream_base.h"
#include "gnnstream_options.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gs_loader gs_loader;

/* Which vertices batches are of. */
typedef enum gs_loader_seeds {
    GS_SEEDS_ALL = 0, /* of all vertices */
    GS_SEEDS_TRAIN = 1,
    GS_SEEDS_VALID = 2,
    GS_SEEDS_TEST = 3,
    GS_SEEDS_LISTED = 4, /* of those that are given */
} gs_loader_seeds;

/* What a batch of pairs has beside them: nothing; or so many random pairs, whose two ends may be any vertices; or
 * random destinations, so many for each pair. Where vertices have types, random ones are of the type that the given
 * sources, or destinations, have, all of which are of one. */
typedef enum gs_loader_wrong { GS_WRONG_NONE = 0, GS_WRONG_PAIRS = 1, GS_WRONG_DESTINATIONS = 2 } gs_loader_wrong;

/* Pairs whose ends batches are of. */
typedef struct gs_loader_pairs {
    const int64_t *source, *destination; /* [pairs] ids of vertices */
    uint64_t pairs;
    gs_loader_wrong wrong;
    double amount;  /* of these, for each pair; of destinations a whole number */
    bool leave_out; /* batches do without the edges that are their pairs, in a symmetric store either way */
} gs_loader_pairs;

#define GS_LOADER_HOPS 16

/* What a store's batches have. */
typedef struct gs_loader_report {
    uint32_t batches;       /* of an epoch */
    uint32_t features, edge_features, edge_types; /* columns, columns, types; 0: none */
    uint32_t label_columns; /* 0: no labels; 1: classes; of "multilabel" and "regress" theirs */
    char task[16];          /* that the labels are of, or "" */
    bool edge_weights;      /* edges have weights, or coefficients of .coverage */
    bool features_in_memory, edges_in_memory; /* all of them; else they are read from the disk */
    uint32_t group;         /* batches that are drawn at a time */
    uint64_t host_bytes;    /* memory that the loader takes */
    uint64_t feature_row_bytes; /* of a row of features as the store has them */
} gs_loader_report;

/* A batch: a small graph, whose rows are numbered from 0. */
typedef struct gs_loader_batch {
    uint32_t epoch, number;
    uint32_t vertices;
    uint32_t targets; /* the first so many rows are those that the batch is of */
    uint32_t hops;    /* that edges were drawn in; 0: .sampler has none */
    uint32_t hop_end[GS_LOADER_HOPS + 1]; /* rows that are reached in h hops, the targets at [0] */
    uint64_t edges;
    uint32_t pairs, wrong; /* of pairs: how many, and random ones; targets are the vertices at their ends */
} gs_loader_batch;

/* Arrays of the caller's, which gs_loader_fill() writes; NULL: not wanted. */
typedef struct gs_loader_arrays {
    int64_t *vertex;              /* [vertices] ids, as the input has them */
    int64_t *source, *destination; /* [edges] rows of the batch; edges are in the order of their destination */
    int64_t *edge_type;           /* [edges] */
    float *edge_weight;           /* [edges] */
    float *edge_features;         /* [edges, edge_features] */
    float *features;              /* [vertices, features] */
    int64_t *classes;             /* [vertices] labels of "classify"; -1: none */
    float *labels;                /* [vertices, label_columns] those of the other tasks; NaN: none */
    uint8_t *split;               /* [vertices] 0: none, 1: train, 2: validation, 3: test */
    int64_t *row;                 /* [vertices] rows of the store, whose order puts neighbours together */
    int64_t *pair;                /* [pairs] of pairs: which of those that were given */
    int64_t *pair_source;         /* [pairs + wrong] rows of the batch; [pairs] where destinations alone are random */
    int64_t *pair_destination;    /* [pairs + wrong] rows of the batch */
    void *features_at_rest;       /* [vertices, features] as the store has them: .feature_type of gs_store_summary */
} gs_loader_arrays;

/* Opens a loader over `store`. Of `options` those count that draw batches (.sampler, which is not "none", .batch_size,
 * .fanout, .replace, .weighted, .by_type, .walk_length, .coverage, .shuffle "always" or "never"), .seed, .threads,
 * .host_memory, which is what the loader may take (0: 80 % of what is free), and .stop; .model need not be given.
 * `ids`, [count], of GS_SEEDS_LISTED: vertices by their ids, in any order, each once. Edges that have room in memory
 * are read now, and what is left of it has rows of features. The caller ends with gs_loader_close(). GS_EINVAL,
 * GS_ENOTFOUND, GS_EFORMAT, GS_EBUDGET, GS_EIO, GS_ENOMEM, GS_EINTERRUPTED. */
GS_API gs_status gs_loader_open(gs_loader **out, const char *store, const gs_train_options *options,
                                gs_loader_seeds seeds, const int64_t *ids, uint64_t count);
/* The same of pairs, which are copied: .sampler is "neighbor", .batch_size counts them, and with .shuffle "never" they
 * come in the order in which they are given. */
GS_API gs_status gs_loader_open_pairs(gs_loader **out, const char *store, const gs_train_options *options,
                                      const gs_loader_pairs *pairs);
/* NULL is allowed. */
GS_API void gs_loader_close(gs_loader *l);
/* Does not block. */
GS_API gs_status gs_loader_inspect(const gs_loader *l, gs_loader_report *out);

/* The batches that come next are those of `epoch` from `first` on: an epoch's are the same whenever it is begun. */
GS_API gs_status gs_loader_begin(gs_loader *l, uint32_t epoch, uint32_t first);
/* The next batch, which stands until the one after. Draws, where it is not drawn yet, while what is needed next is read
 * and drawn by other threads. GS_ENOTFOUND: the epoch has no more. GS_EBUDGET: a batch is larger than memory allows. */
GS_API gs_status gs_loader_next(gs_loader *l, gs_loader_batch *out);
/* Fills arrays of that batch, once. Waits for rows that are read. GS_EINVAL: there is no batch, it was filled, or the
 * store has no such array. GS_EIO, GS_EFORMAT: after which the epoch is to be begun anew. */
GS_API gs_status gs_loader_fill(gs_loader *l, const gs_loader_arrays *arrays);

/* Opens a loader that draws no batches, for programs that do so themselves: rows are picked by ids. Of `options`
 * .host_memory counts (0: 80 % of what is free): 4 bytes a vertex say where its row is, and features are in memory
 * where they have room, else what is left has rows of them that were picked before. Close, inspect and errors as above;
 * there are no batches to begin. */
GS_API gs_status gs_loader_open_rows(gs_loader **out, const char *store, const gs_train_options *options);
/* Fills arrays of [count] vertices by their ids, in any order, some of them more than once: .features or
 * .features_at_rest, .classes, .labels, .split, .row. The least is read where ids are in the order of their .row.
 * Blocks while it reads. GS_EINVAL: an id that is none, of which nothing was picked; GS_EIO, GS_EFORMAT. */
GS_API gs_status gs_loader_pick(gs_loader *l, const int64_t *ids, uint64_t count, const gs_loader_arrays *arrays);

#ifdef __cplusplus
}
#endif

#endif /* GS_GNNSTREAM_LOADER_H */
