/* ir_tape.h - what has flowed to each node of a graph that is being differentiated.
 *
 * The gradient of a node is the sum of the contributions of all nodes that read it. A contribution may be narrower than
 * its node, where all columns have the same one.
 */
#ifndef GS_IR_IR_TAPE_H
#define GS_IR_IR_TAPE_H

#include "ir/ir_internal.h"

typedef struct gs_tape {
    gs_ir *ir;
    uint32_t *grad; /* per node: what has flowed to it, GS_IR_NONE for nothing */
    uint32_t *edge; /* per vertex value: what has flowed to it on in-edges, not yet summed */
    bool *needs;    /* something that gradients are wanted of is below it, and not only through flat operators */
} gs_tape;

/* A tape of the graph's nodes as they are now, to which nothing has flowed. Gradients are wanted of the parameters that
 * are learned, of the tables, and of the input of the name `input`, if it is not NULL. gs_tape__free() frees it, also
 * after GS_ENOMEM. */
gs_status gs_tape__open(gs_tape *t, gs_ir *ir, const char *input);
void gs_tape__free(gs_tape *t);

/* Adds contribution `c` to what flows to node `to`: a vertex value's gradient is accumulated, a parameter's is an
 * output. */
void gs_tape__flow(gs_tape *t, uint32_t to, uint32_t c);
/* The same for a contribution `c` on every in-edge. */
void gs_tape__flow_on_edges(gs_tape *t, uint32_t to, uint32_t c);
/* From a node to one of its inputs: from a value of edges it flows on edges. */
void gs_tape__pass(gs_tape *t, uint32_t from, uint32_t to, uint32_t c);

/* All that has flowed to node i, on in-edges too; GS_IR_NONE for nothing. */
uint32_t gs_tape__total(const gs_tape *t, uint32_t i);
/* The same as rows of the node's width, once nothing more flows there; GS_IR_NONE also after an error. */
uint32_t gs_tape__gradient(const gs_tape *t, uint32_t i);
/* A gradient with rows: one that is the same for all vertices (of a statistic) gets some. */
uint32_t gs_tape__rows(const gs_tape *t, uint32_t g);

#endif /* GS_IR_IR_TAPE_H */
