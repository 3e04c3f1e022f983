/* formulas.h - what does each elementwise operator compute, and how exact must a device be?
 *
 * The formulas in float64 that tests compare devices, compiled programs and the graph's folding with; written
 * apart from the engine's own. Tests go over this table and the engine's (tensor/op.h), so a new operator is tested
 * everywhere once it has its line here.
 */
#ifndef GS_TESTS_SUPPORT_FORMULAS_H
#define GS_TESTS_SUPPORT_FORMULAS_H

#include <stdbool.h>
#include <stddef.h>

#include "tensor/op.h"

/* Operands in [low, high) of an operator with one: errors in units of the last place of the wanted value, or of
 * `least` where the value is smaller. */
typedef struct op_range {
    float low, high;
    double ulps, least; /* least 0: of the smallest normal number */
} op_range;

typedef struct op_formula {
    gs_op op;
    double (*value)(double x, double y, double z, double alpha);
    float alpha;     /* of tests */
    bool positive;   /* operands of tests are above 0 */
    op_range gpu;    /* on a GPU, other `ulps` and `least`, where they are not 0: CUDA's guide has larger bounds */
    op_range range[5]; /* ends with one where low == high */
} op_formula;

/* The first of the operator. Fails the test where it is not of form EACH. */
const op_formula *op_formula_of(gs_op op);
/* Formula i of the table, which may have an operator with several alphas; NULL past its end. */
const op_formula *op_formula_at(size_t i);

#endif /* GS_TESTS_SUPPORT_FORMULAS_H */
