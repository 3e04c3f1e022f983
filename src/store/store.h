/* store.h - read side of a store: which file, which bytes, are they whole?
 *
 * partition/ writes a store once; training reads it many times. This header
 * answers where the bytes of a chunk or of rows of a vertex array are, and what
 * their checksums are. It moves no bulk data itself; io/ reads the extents.
 *
 * A store is a directory; docs/format.md is its reference:
 *   manifest.json      written last and atomically: no manifest, no store
 *   edges.dest.bin     chunks by destination, edges.source.bin by source
 *   chunks.bin         the chunk table (a record of 48 bytes a chunk)
 *   NAME.bin           one vertex array each, rows in store order, dense
 *   sums.bin           checksums of every GS_SUM_BYTES of each vertex array
 *
 * Threads: a store never changes after gs_store_open(), so any number of
 * threads may query one. Opening and closing belong to a single thread.
 */
#ifndef GS_STORE_STORE_H
#define GS_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/alloc.h"
#include "base/status.h"
#include "gnnstream_store.h" /* gs_type_table */
#include "store/chunk_table.h"

/* The newest; what needs no more than version 2 is written as that. 1 is read, too: its chunk table says nothing of
 * degrees. */
#define GS_STORE_VERSION 8
#define GS_STORE_EDGE_FEATURES 4 /* the first that has features of edges */
#define GS_STORE_VERTEX_TYPES 5  /* the first that has types of vertices */
#define GS_STORE_LINK_LABELS 6   /* the first that has labels of links; types of vertices need not be there */
#define GS_STORE_NAMED_FEATURES 7 /* the first that has features with names; neither need be there */
#define GS_STORE_EDGE_TYPE_NAMES 8 /* the first whose types of edges have names; nor need those */
#define GS_MOST_NAME 4096u     /* bytes of a vertex' name */
#define GS_SUM_BYTES 65536ull /* a checksum covers this many bytes of an array's file */

/* Vertex arrays that a store may hold. */
#define GS_ARRAY_MAP(X) /* enum, file stem */                                         \
    X(GS_ARRAY_FEATURES, "features")     /* [N, F] f32 | bf16 | f16 */                \
    X(GS_ARRAY_LABELS, "labels")         /* of a task; base/dtype.h says which types   */  \
    X(GS_ARRAY_SPLIT, "split")           /* [N] u8: gs_split */                       \
    X(GS_ARRAY_IN_DEGREE, "in_degree")   /* [N] f32: in-edges, self loops included */ \
    X(GS_ARRAY_OUT_DEGREE, "out_degree") /* [N] f32 */                                \
    X(GS_ARRAY_LOOPS, "loops")           /* [N] f32: self loops; only if there are any */ \
    X(GS_ARRAY_INPUT_ID, "input_id")     /* [N] u32: the id this row had in the input */ \
    X(GS_ARRAY_VERTEX_TYPE, "vertex_type") /* [N] f32: number of its type; only if there are several */ \
    X(GS_ARRAY_NAMES, "names")           /* no rows: the name of input id 0, 1, ..., a line feed behind each */ \
    X(GS_ARRAY_EDGE_TYPE_NAMES, "edge_type_names") /* the same of types of edges that were words */ \
    X(GS_ARRAY_TRAIN_LINKS, "train_links") /* no rows of vertices: pairs that losses on edges are of, see below */ \
    X(GS_ARRAY_VALID_LINKS, "valid_links") \
    X(GS_ARRAY_TEST_LINKS, "test_links")

typedef enum gs_array_id {
#define X(id, stem) id,
    GS_ARRAY_MAP(X)
#undef X
    GS_ARRAY_COUNT
} gs_array_id;

/* Links: pairs of vertices with a type, that a model is to score, beside the graph's edges. A row is of u32: source and
 * destination, rows in store order, their type where edges have types, and their label where links have labels: a
 * class, or the bits of a float32. Rows are in order of bucket, which is the source's interval and then the
 * destination's, then of source, destination, type and label. */
#define GS_LINK_SPLITS 3u
/* Is there a row for each vertex? */
static inline bool gs_array_is_of_vertices(gs_array_id id) { return id < GS_ARRAY_NAMES; }

typedef enum gs_split { GS_SPLIT_NONE = 0, GS_SPLIT_TRAIN = 1, GS_SPLIT_VALID = 2, GS_SPLIT_TEST = 3 } gs_split;

typedef struct gs_store gs_store;

/* A vertex array at rest. The file's size is `bytes` rounded up to
 * GS_BLOCK_BYTES, zero padded; the last checksum covers what is left of `bytes`
 * after whole GS_SUM_BYTES pieces, padding excluded. */
typedef struct gs_array_info {
    bool present;
    gs_dtype dtype;
    uint32_t width;        /* elements a row */
    uint64_t row_bytes;
    uint64_t bytes;        /* rows * row_bytes, of links theirs; of names, all of them */
    const uint64_t *sums;  /* [ceil(bytes / GS_SUM_BYTES)] */
} gs_array_info;

typedef struct gs_store_info {
    uint64_t vertices, edges, self_loops;
    uint32_t parts, interval_rows;
    uint32_t features;     /* 0: none */
    gs_dtype feature_type;
    uint32_t classes;      /* 0: no labels; of multilabel and regress: columns of the labels */
    gs_train_task labels;        /* the task that they are of */
    uint64_t train, valid, test;
    bool symmetric, weights;
    uint32_t edge_types;   /* number of types, 0: untyped */
    uint32_t edge_features; /* numbers of an edge; 0: none */
    gs_dtype edge_feature_type;
    uint64_t max_in_degree, max_out_degree;
    uint64_t id;           /* the manifest's checksum, which covers those of all files: names the store's content */
    uint64_t feature_id;   /* checksum over the feature file's checksums: names its content */
    char method[16];       /* how the order was made: metis, fennel, ... */
    uint64_t seed;
    uint64_t total_bytes;  /* of all files */
    uint64_t name_bytes;   /* of the array of names; 0: ids are the input's own numbers from 0 */
    uint64_t edge_type_name_bytes; /* of the array of these; 0: types were numbers, or have names in .types */
    uint64_t links[GS_LINK_SPLITS]; /* rows of the arrays of links */
    const gs_type_table *types; /* of vertices and edges, the store's own; NULL: one type of vertices, without a name */
    const gs_feature_table *named; /* features with names, the store's own; NULL: none */
    bool link_labels;      /* links have labels: */
    uint32_t link_classes; /* classes, so many; 0: numbers */
} gs_store_info;

/* u32 of a link. */
static inline uint32_t gs_store_link_width(const gs_store_info *info)
{
    return 2u + (info->edge_types > 0) + info->link_labels;
}
/* Is it a label of such a store? */
static inline bool gs_store_is_link_label(const gs_store_info *info, uint32_t label)
{
    return info->link_classes > 0 ? label < info->link_classes : (label & 0x7F800000u) != 0x7F800000u;
}

/* Opens the store in `dir`: parses the manifest, checks every number against
 * the real sizes of the files, loads the tables.
 *   GS_ENOTFOUND  no manifest.json in `dir`
 *   GS_EFORMAT    wrong version, a file too short, an extent outside its file, ...
 *   GS_EIO; GS_ENOMEM, also where its tables are larger than what is free
 * On GS_OK the caller owns *out and releases it with gs_store_close(). */
gs_status gs_store_open(gs_store **out, const char *dir);
/* The same, also of a shard, which gs_store_open() refuses: who opens one asks for the bytes alone that are there. */
gs_status gs_store_open_part(gs_store **out, const char *dir);
void gs_store_close(gs_store *s); /* NULL is allowed */
GS_ENDS_BY(gs_store, gs_store_close)
/* The same store for one more owner, who closes it, too: tables of many parts are worth reading once. Owners are of one
 * thread. */
gs_store *gs_store_share(gs_store *s);

#define GS_SHARDS_MOST 16u
#define GS_SHARD_NAME_BYTES 96u

/* One rank's part of a store, in a folder with the manifest and the tables of the whole: the edges of its intervals in
 * both directions, and the rows of their vertices. */
typedef struct gs_store_shard {
    uint32_t rank, ranks;
    uint32_t first[GS_SHARDS_MOST + 1]; /* [ranks + 1] the first interval of each (gs_chunk_deal()) */
    uint64_t store_id;                  /* gs_store_info.id of the store, and of its shards */
    char name[GS_SHARD_NAME_BYTES];     /* the last part of the store's path */
} gs_store_shard;

/* NULL: it is a whole store. */
const gs_store_shard *gs_store_get_shard(const gs_store *s);
/* Has a shard only its own rows of the array? All have those of the others. */
bool gs_store_deals_array(gs_array_id id);
/* Does the folder have rank `rank`'s shard, in a folder of that number? GS_SHARDS_MOST: any rank's. */
bool gs_store_has_shard(const char *dir, uint32_t rank);

/* Bytes of a store's file that a folder has: its own file begins with them. Of a whole store all. */
typedef struct gs_extent {
    uint64_t first, bytes;
} gs_extent;
/* The bytes that shard `rank` has of an array of which it has its own rows: whole checksum blocks around them, within
 * the file's `all`. */
gs_extent gs_shard_rows(const gs_store_shard *x, uint32_t rank, uint64_t interval_bytes, uint64_t all);
gs_extent gs_store_array_extent(const gs_store *s, gs_array_id id);
gs_extent gs_store_edges_extent(const gs_store *s, gs_direction d);
/* Are these bytes of the store's file among them? */
static inline bool gs_extent_has(gs_extent x, uint64_t first, uint64_t bytes)
{
    return first >= x.first && first - x.first <= x.bytes && bytes <= x.bytes - (first - x.first);
}
/* GS_EFORMAT: they are not. `path` is of the folder's own file. */
gs_status gs_extent_check(gs_extent x, uint64_t first, uint64_t bytes, const char *path);

/* What a graph is like that is not there. */
typedef struct gs_store_shape {
    uint64_t vertices, edges;
    uint32_t features, classes; /* features of float32 */
    uint32_t parts;   /* P; fewer where intervals of as many rows each are fewer */
    uint32_t owners;  /* intervals, in order, belong to so many, to each as many; divides `parts` */
    double remote;    /* part of the edges between intervals of different owners, 0 to 1 */
    double inside;    /* part of the edges with both ends in one interval; below 0: as in others of the owner */
    double idle;      /* part of an owner's intervals, its last, that have no edges, 0 to below 1; one has some */
    double fuller;    /* gs_shape_fuller() */
} gs_store_shape;

/* A store of counts alone, without a file: edges of an owner, and those between two, are spread evenly, and which rows
 * of an interval they name is drawn. For plans, which look at tables and gs_edge_needs(); it cannot be scanned. `name`
 * stands for its folder. GS_EINVAL: more than a store can have; GS_ENOMEM. */
gs_status gs_store_open_shape(gs_store **out, const char *name, const gs_store_shape *shape);
bool gs_store_is_shape(const gs_store *s);
/* How often the rows of others that have edges are named: as in R-MAT, where the fuller half of them has this part of
 * the edges, the fuller half of each half again, and so on; 0.5: all alike. Such that of rows with `each` edges on
 * average edges begin with the part `ends`. */
double gs_shape_fuller(double ends, double each);
/* Of granules of so many rows with `each` edges a row, the part that edges name. */
double gs_shape_named(double fuller, double each, double rows);
/* Rows that are drawn as one: of a million lots as large a part is named as of their rows one by one, near enough, and
 * intervals are whole lots. 1 for fewer vertices, and for a store that is there. */
uint32_t gs_store_lot(const gs_store *s);
/* gs_edge_needs() of such a store: draws the granules of rows that each chunk names; those of lots: the lots that
 * stand for single rows. */
void gs_store_draw_needs(const gs_store *s, gs_direction d, gs_granules g, bool lots, uint64_t *bits);

const char *gs_store_dir(const gs_store *s);
const gs_store_info *gs_store_get_info(const gs_store *s);
const gs_chunk_table *gs_store_chunks(const gs_store *s);
const gs_array_info *gs_store_array(const gs_store *s, gs_array_id id);
/* Bytes of tables that an open store keeps in memory. */
uint64_t gs_store_table_bytes(const gs_store *s);

/* Another store may take the place of this one at any time (store_write.h). What is open by then, this store's folder
 * among it, stays as it is. So open files, then ask whether the folder's name was theirs all the while: GS_EIO where
 * not. */
gs_status gs_store_check_place(const gs_store *s);
/* Opens an array's file of the folder that was opened, for reading; input ids whatever has become of it. The caller
 * closes it. */
gs_status gs_store_open_array(int *fd, const gs_store *s, gs_array_id id);

/* May features have this name? Letters, digits and '_', no digit first, and nothing that has a meaning of its own in
 * models' texts, behind u., v. or e. */
bool gs_is_feature_name(const char *name);

/* Paths of the files; free with gs_free(). A shared store gives the same edge
 * file for both directions. */
char *gs_store_array_path(const gs_store *s, gs_array_id id);
char *gs_store_edges_path(const gs_store *s, gs_direction d);
const char *gs_array_stem(gs_array_id id);

/* Reads every byte: checksums, every index, that both directions hold the same
 * edges (by count per chunk and an order-free hash), degrees, that input ids are a permutation, splits and labels
 * in range, features finite. Blocks. `memory` bounds its buffers in bytes. */
gs_status gs_store_verify(const gs_store *s, uint64_t memory);

#endif /* GS_STORE_STORE_H */
