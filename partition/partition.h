/* partition.h - raw input to a store, under a memory bound.
 *
 * Reads a folder of .npy files, a SNAP edge list or a MatrixMarket file; finds
 * a vertex order; buckets the edges on disk; sorts and writes each chunk both
 * ways; permutes the vertex arrays. Edges are never all in memory. Blocks.
 */
#ifndef GS_PARTITION_PARTITION_H
#define GS_PARTITION_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"

typedef struct gs_partition_options {
    const char *format;     /* NULL: by looking; "npy", "snap", "mtx" */
    const char *method;     /* NULL: "metis" where it fits, else "fennel"; "metis", "fennel", "random", "natural" */
    uint32_t parts;         /* 0: auto */
    uint64_t memory;        /* bytes; 0: half of what is free */
    gs_dtype feature_type;  /* GS_F32, GS_BF16, GS_F16 */
    uint32_t random_features; /* 0: none; else columns, where the input has no features */
    bool undirected;        /* add the reverse of each edge that lacks it */
    bool force;             /* replace an existing store */
    uint64_t seed;
    /* Progress for people: what is being done, and how far (0..1). May be NULL. */
    void (*progress)(void *context, const char *what, double done);
    void *context;
    const volatile int *stop; /* nonzero: clean up and return GS_EINTERRUPTED; may be NULL */
} gs_partition_options;

typedef struct gs_partition_report {
    uint64_t vertices, edges, store_bytes, peak_bytes;
    uint32_t parts;
    char method[16];        /* used */
    char note[256];         /* why the method differs from the one asked for, "" */
    double cut_fraction;    /* edges between different intervals */
    double seconds, read_seconds, order_seconds, edge_seconds, array_seconds;
} gs_partition_report;

/* On failure nothing that looks like a store is left at `store_dir`. */
gs_status gs_partition_run(const char *input, const char *store_dir, const gs_partition_options *options,
                           gs_partition_report *report);

typedef struct gs_generate_options {
    uint64_t vertices, edges; /* edges: directed; sbm gives both directions of each */
    uint32_t features, classes;
    uint64_t seed;
    bool force;
    void (*progress)(void *context, const char *what, double done);
    void *context;
    const volatile int *stop;
} gs_generate_options;

/* Writes a folder of .npy files (edges, features, labels, three splits, meta.json). `kind` is
 * "rmat" (Graph500's a, b, c, d; labels and features random) or "sbm" (planted classes:
 * edges mostly inside a class's communities, features carry a noisy signal of the class). Memory O(1) in
 * edges and features: everything is streamed. */
gs_status gs_generate_run(const char *kind, const char *out_dir, const gs_generate_options *options);

#endif /* GS_PARTITION_PARTITION_H */
