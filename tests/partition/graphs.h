/* graphs.h - what the partition tests share: inputs written by hand, and a
 * store decoded back into a list of edges between input ids. */
#ifndef GS_TESTS_PARTITION_GRAPHS_H
#define GS_TESTS_PARTITION_GRAPHS_H

#include <sched.h>

#include "support/support.h"

#include "base/dtype.h"
#include "gnnstream.h"
#include "store/store.h"

typedef struct edge {
    uint32_t u, v, type;
    float weight;
} edge;

typedef struct edge_list {
    edge *at;
    size_t count;
} edge_list;

/* One array as DIR/NAME.npy; cols 0: one dimension. */
void write_npy(const char *dir, const char *name, gs_dtype dtype, const void *data, uint64_t rows, uint64_t cols);
/* edges.npy as int64; edge_types.npy and edge_weights.npy if asked for. */
void write_edges(const char *dir, const edge_list *list, bool types, bool weights);
/* n x width floats, some exact integers, some not: value (v, c) is known by feature_at(). */
float feature_at(uint64_t v, uint64_t c);
void write_features(const char *dir, uint64_t n, uint64_t width);

/* A seeded graph with duplicates, self loops and a hub. */
edge_list random_graph(uint32_t n, size_t edges, uint64_t seed, bool types, bool weights);
void edges_free(edge_list *list);
void sort_edges(edge_list *list);
/* Adds what an undirected graph lacks, slowly. */
void add_reverses(edge_list *list);

/* `memory` beside what a process has of its own. */
#define TEST_PROCESS_BYTES (12 * GS_MIB)
gs_partition_options test_options(const char *method, uint32_t parts, uint64_t memory);

/* All edges of one direction, each chunk checked deeply and for its order; sorted. */
edge_list decode(const gs_store *s, gs_direction d);
void assert_same_edges(const edge_list *got, const edge_list *want);
/* Whole array file; free with gs_free(). */
void *read_array(const gs_store *s, gs_array_id id);
/* Partitions, verifies, compares both directions, degrees and ids with `want`. Close the result. */
gs_store *partition_and_check(const char *input, const char *dir, const gs_partition_options *o, const edge_list *want,
                              uint64_t vertices, gs_partition_report *report);
/* Every file of the two stores has the same bytes. */
void assert_same_store(const char *a, const char *b);
/* One processor, or all that were there; returns what was before. */
cpu_set_t use_cpus(bool one);
/* Nothing at all is left at `dir`. */
void assert_gone(const char *dir);

#endif /* GS_TESTS_PARTITION_GRAPHS_H */
