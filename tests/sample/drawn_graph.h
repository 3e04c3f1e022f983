/* drawn_graph.h - a small graph with all that makes samplers stumble, as a list of edges and as an adjacency, and the
 * check that a batch is a part of it. The list is the truth; all is found in it by plain search. */
#ifndef GS_TESTS_DRAWN_GRAPH_H
#define GS_TESTS_DRAWN_GRAPH_H

#include "support/support.h"

#include "sample/sampler.h"

typedef struct drawn_edge {
    uint32_t source, dest, type;
    float weight;
} drawn_edge;

typedef struct drawn_graph {
    uint32_t vertices, edges;
    drawn_edge *edge;     /* [edges] by destination, type, source */
    uint32_t *first;      /* [vertices + 1] */
    uint32_t *out_degree; /* [vertices] */
    gs_adjacency in, out;
    uint32_t *target;     /* every third vertex */
    uint32_t targets;
} drawn_graph;

/* Vertex 0 is a hub of a third of the edges; every seventh vertex has no in-edges; self loops and edges that are there
 * twice or more. Free with drawn_graph_free(). */
drawn_graph *drawn_graph_make(uint32_t vertices, uint32_t edges, uint32_t parts, uint32_t types, bool weights,
                              uint32_t seed);
/* The same for edges given: any list. */
drawn_graph *drawn_graph_of(const drawn_edge *edge, uint32_t edges, uint32_t vertices, uint32_t parts, uint32_t types,
                            bool weights);
void drawn_graph_free(drawn_graph *g);

/* The chunks pass a deep check, hold the same edges in both directions, each edge is one of the graph with its type and
 * weight (where `weights`), at most as often as there (unless `repeats`); rows are distinct, targets first. */
void drawn_graph_check(const drawn_graph *g, const gs_batch *b, const gs_batch_limits *l, bool repeats, bool weights);

/* Edge k of a batch by destination: ends in rows of the graph. */
drawn_edge drawn_batch_edge(const gs_batch *b, uint64_t k, uint32_t *row);

#endif /* GS_TESTS_DRAWN_GRAPH_H */
