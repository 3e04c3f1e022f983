/* layer_edges.h - the edges of a graph in memory, as sums of a device take them: one block, by either end. */
#ifndef GS_SESSION_LAYER_EDGES_H
#define GS_SESSION_LAYER_EDGES_H

#include "device/device.h"
#include "gnnstream.h" /* gs_layer_graph */

/* Edges of one end have the other's row as their index. */
typedef struct gs_layer_edges {
    gs_edges by[2]; /* by destination, by source */
    void *block;    /* of all arrays */
    float *in_degree, *out_degree, *loops; /* [vertices] */
    uint64_t self_loops;
} gs_layer_edges;

/* GS_EINVAL: an end that is no vertex, a type that is none, a weight that is not finite; more edges or vertices than
 * 32 bits count. GS_ENOMEM. Free after a failure too. */
gs_status gs_layer_edges_make(gs_layer_edges *out, const gs_layer_graph *graph);
void gs_layer_edges_free(gs_layer_edges *e);

#endif /* GS_SESSION_LAYER_EDGES_H */
