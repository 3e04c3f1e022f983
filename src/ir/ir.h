/* ir.h - the typed dataflow graph of a model, and its derivative.
 * (Public part: what model, compile and train need. The room's owner extends it.)
 *
 * Every value has a graph type: S one row a source (seen from an edge),
 * D one row a destination (= a vertex), E one row an edge, P a parameter.
 */
#ifndef GS_IR_IR_H
#define GS_IR_IR_H

#include <stdint.h>
#include <stdio.h>

#include "base/status.h"
#include "tensor/op.h"

typedef struct gs_ir gs_ir;

void gs_ir_free(gs_ir *ir); /* NULL is allowed */
/* Adds mean cross-entropy over the training vertices on the root, then the
 * gradient of every parameter (reverse mode), as IR again. */
gs_status gs_ir_add_loss(gs_ir *ir);
gs_status gs_ir_differentiate(gs_ir *ir);
void gs_ir_print(const gs_ir *ir, FILE *out);

#endif /* GS_IR_IR_H */
