/* gnnstream_store.h - a part of gnnstream.h: raw graphs and the stores that are made of them.
 *
 * Programs include <gnnstream.h>, which includes this and says what units, errors, threads and `size` are.
 */
#ifndef GS_GNNSTREAM_STORE_H
#define GS_GNNSTREAM_STORE_H

#include "gnnstream_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- raw graphs ---------------------------------------------------------- */

typedef struct gs_generate_options {
    size_t size; /* gs_generate_options_init() sets it */
    uint64_t vertices;
    uint64_t edges; /* directed; "sbm" gives both directions of each */
    uint32_t features, classes;
    uint64_t seed;
    bool force; /* replace what is in the folder */
    gs_progress_fn progress; /* may be NULL */
    void *context;
    const volatile int *stop; /* may be NULL */
} gs_generate_options;

/* The defaults; gs_generate_options_sized() for callers that include no header: `size` is of their struct. */
GS_API void gs_generate_options_sized(gs_generate_options *options, size_t size);
static inline void gs_generate_options_init(gs_generate_options *options)
{
    gs_generate_options_sized(options, sizeof(*options));
}

/* Writes a folder of .npy files that gs_partition() reads. `kind` is "rmat"
 * (Graph500's; labels and features random) or "sbm" (planted classes; features carry a
 * noisy signal of the class). Memory does not grow with edges or features.
 * GS_EINVAL, GS_EEXIST, GS_EIO, GS_EINTERRUPTED. */
GS_API gs_status gs_generate(const char *kind, const char *folder, const gs_generate_options *options);

/* ---- stores -------------------------------------------------------------- */

typedef struct gs_partition_options {
    size_t size; /* gs_partition_options_init() sets it */
    const char *format;       /* NULL: found by looking; else one of those of `partition --format` */
    const char *method;       /* "metis", "lp", "fennel", "random", "natural"; NULL: metis where it fits, else fennel */
    const char *feature_type; /* at rest: "f32" (also where NULL), "bf16", "f16" */
    uint32_t parts;           /* intervals; 0: chosen by size */
    uint32_t random_features; /* 0: none; else columns, where the input has no features */
    uint64_t memory;          /* bytes resident at most, 12 MiB of them the program's; 0: half of what is free */
    uint64_t seed;
    bool undirected;          /* add the reverse of each edge that lacks it */
    bool force;               /* replace an existing store */
    gs_progress_fn progress;  /* may be NULL */
    void *context;
    const volatile int *stop; /* may be NULL */
    gs_warn_fn warn;          /* may be NULL; as `progress`, with `context` */
    const char *split;        /* "0.6,0.2,0.2": train, valid, test drawn from the seed; NULL: as the input says */
    const char *task;         /* that labels are of: "classify", "multilabel", "regress"; NULL: as their numbers say */
    const char *ids;          /* of edge lists and CSV: "keep" (numbers from 0), "compact"; NULL: found by looking */
    uint32_t shards;          /* 0: a store; else as many as there are ranks (mpirun), each of which makes its shard, in
                               * the folder of its number in `store`: of arrays, .method lp, random or natural */
    uint32_t ranks;           /* that the order is for: each of as many runs of intervals has about as many edges, by
                               * .method metis or lp; 0: as many as .shards, or one */
} gs_partition_options;

typedef struct gs_partition_report {
    uint64_t vertices, edges, store_bytes, peak_bytes;
    uint32_t parts;
    char method[16];     /* that was used */
    char note[256];      /* why it is not the one asked for, or "" */
    double cut_fraction; /* edges between different intervals */
    double seconds, read_seconds, order_seconds, edge_seconds, array_seconds;
} gs_partition_report;

/* The defaults; gs_partition_options_sized() for callers that include no header: `size` is of their struct. */
GS_API void gs_partition_options_sized(gs_partition_options *options, size_t size);
static inline void gs_partition_options_init(gs_partition_options *options)
{
    gs_partition_options_sized(options, sizeof(*options));
}

/* Makes the store `store` of the graph at `input`. On failure nothing that
 * looks like a store is left. `report` may be NULL.
 * GS_ENOTFOUND, GS_EFORMAT, GS_EEXIST, GS_EBUDGET, GS_EIO, GS_EINTERRUPTED. */
GS_API gs_status gs_partition(const char *input, const char *store, const gs_partition_options *options,
                              gs_partition_report *report);

typedef struct gs_shard_options {
    size_t size; /* gs_shard_options_init() sets it */
    bool force;  /* replace shards that are there */
    gs_progress_fn progress; /* may be NULL */
    void *context;
    const volatile int *stop; /* may be NULL */
} gs_shard_options;

/* The defaults; gs_shard_options_sized() for callers that include no header: `size` is of their struct. */
GS_API void gs_shard_options_sized(gs_shard_options *options, size_t size);
static inline void gs_shard_options_init(gs_shard_options *options)
{
    gs_shard_options_sized(options, sizeof(*options));
}

/* Cuts a store into shards for `ranks` ranks, in folders 0, 1, ... of `out`: each has its intervals' edges and rows.
 * Every byte is checked on the way. On failure none takes its place. `options` may be NULL.
 * GS_EINVAL (no such number of ranks, or fewer intervals), GS_ENOTFOUND, GS_EFORMAT, GS_EEXIST, GS_EIO,
 * GS_EINTERRUPTED. */
GS_API gs_status gs_shard(const char *store, uint32_t ranks, const char *out, const gs_shard_options *options);

/* Names of the formats that it reads, as .format takes them, with | between them; lives as long as the program. */
GS_API const char *gs_input_formats(void);

typedef struct gs_store_summary {
    uint64_t vertices, edges, self_loops;
    uint32_t parts, interval_rows;
    uint32_t features;    /* columns; 0: none */
    uint32_t classes;     /* 0: no labels; of multilabel and regress: columns of the labels */
    uint32_t edge_types;  /* 0: untyped */
    uint64_t train, valid, test; /* vertices of each split */
    uint64_t max_in_degree, max_out_degree;
    uint64_t total_bytes; /* of all files */
    uint64_t table_bytes; /* held in memory while the store is open */
    uint64_t seed;
    double sources_per_vertex; /* alpha: distinct sources of each interval's in-edges, summed, over vertices */
    bool symmetric;       /* one copy of the edges serves both directions */
    bool weights;         /* edges carry weights */
    char feature_type[8]; /* "f32", "bf16", "f16", or "" */
    char method[16];      /* how the vertex order was made */
    char task[16];        /* that the labels are of: "classify", "multilabel", "regress", or "" */
    uint64_t name_bytes;  /* of names.bin, the ids that vertices had in the input; 0: numbers from 0, as they are */
    uint64_t id;          /* checksum of its manifest: names what is in it */
    uint64_t train_links, valid_links, test_links; /* pairs of vertices that .task link is of, beside the edges */
    uint32_t edge_features; /* numbers of each edge; 0: none */
    char edge_feature_type[8]; /* "f32", "bf16", "f16", or "" */
    uint32_t vertex_types;  /* 0: one without a name (gs_inspect_types()) */
    char link_task[16];     /* that labels of these pairs are of: "edge-classify", "edge-regress"; "": they have none */
    uint32_t link_classes;  /* of "edge-classify" */
    uint64_t edge_type_name_bytes; /* of edge_type_names.bin, the words that types of edges were; 0: numbers */
    uint32_t shards;        /* it is one of so many shards of a store, and the figures but total_bytes are those of the
                             * store; 0: it is whole */
    uint32_t shard;         /* which: from 0; GS_ALL_SHARDS: the folder of all, and total_bytes are of the first */
} gs_store_summary;

#define GS_ALL_SHARDS UINT32_MAX

/* Reads the manifest and the tables. GS_ENOTFOUND, GS_EFORMAT, GS_EIO. */
GS_API gs_status gs_inspect(gs_store_summary *out, const char *store);

#define GS_TYPE_NAME_BYTES 64u /* of a name of vertices or edges, with its 0: letters, digits, '_', '-' and '.' */
#define GS_MOST_VERTEX_TYPES 64u
#define GS_MOST_RELATIONS 256u

/* Of the input's vertices, those from `first` on. */
typedef struct gs_vertex_type {
    char name[GS_TYPE_NAME_BYTES];
    uint64_t first, vertices;
    uint32_t features; /* columns; 0: none. In the store's rows they are the first columns, and zeros follow */
} gs_vertex_type;

/* A type of edges: edges of type k lead from the vertices of one type to those of one type. */
typedef struct gs_relation {
    char name[GS_TYPE_NAME_BYTES];
    uint32_t source, destination; /* types of vertices */
} gs_relation;

typedef struct gs_type_table {
    uint32_t types, relations; /* 0 and 0: all vertices are of one type without a name */
    uint32_t labelled;         /* the type that labels and splits are of; `types` where none is */
    gs_vertex_type type[GS_MOST_VERTEX_TYPES];
    gs_relation relation[GS_MOST_RELATIONS];
} gs_type_table;

/* Types of vertices and of edges of a store. Errors as of gs_inspect(). */
GS_API gs_status gs_inspect_types(gs_type_table *out, const char *store);

#define GS_ALL_RELATIONS UINT32_MAX

/* In-edges as compressed sparse columns, for programs that keep a graph themselves: those of vertex d are `source`
 * [start[d], start[d + 1]), ids in ascending order. Of all edges by ids in the input, `relation` GS_ALL_RELATIONS; or
 * of the type `relation`, whose ids count from the first of their type. Two calls: without `source` `start`, of
 * [vertices at their ends + 1], is filled; with it, of [start's last], it is read, and stands. `memory` is for reading
 * (0: 256 MiB), with 4 bytes a vertex besides. Blocks. GS_EINVAL: no such type; GS_EBUDGET: a chunk is larger; errors
 * as of gs_inspect(). */
GS_API gs_status gs_read_in_edges(int64_t *start, int64_t *source, const char *store, uint32_t relation,
                                  uint64_t memory);

#define GS_MOST_NAMED_FEATURES 64u

/* Columns of the features with a name of their own, as a text says it (u.NAME, e.NAME): letters, digits and '_'. */
typedef struct gs_named_feature {
    char name[GS_TYPE_NAME_BYTES];
    uint32_t first, columns;
} gs_named_feature;

/* They are the last columns, in this order. Those before them are x, in a text; where there are none, all are. */
typedef struct gs_feature_table {
    uint32_t vertices, edges; /* named features of each */
    gs_named_feature vertex[GS_MOST_NAMED_FEATURES], edge[GS_MOST_NAMED_FEATURES];
} gs_feature_table;

/* Named features of a store; none: 0 and 0. Errors as of gs_inspect(). */
GS_API gs_status gs_inspect_features(gs_feature_table *out, const char *store);

/* Writes the id that each vertex had in the input to the file `path`, one a line, in the order of gs_predict()'s rows:
 * names, or numbers that were compacted; from 0 where ids are as they are.
 * GS_ENOTFOUND, GS_EFORMAT, GS_EIO, GS_EEXIST. */
GS_API gs_status gs_write_ids(const char *store, const char *path);

/* Reads every byte of the store and checks it against its checksums and
 * against the others. `memory` bounds its buffers; 0: 256 MiB. */
GS_API gs_status gs_verify(const char *store, uint64_t memory);

#ifdef __cplusplus
}
#endif

#endif /* GS_GNNSTREAM_STORE_H */
