/* learning.h - what a model is trained for, and what labels say of it.
 *
 * The store keeps one class a vertex (GS_LEARN_CLASSIFY: i32 [N], -1 for none), a truth value for each label
 * (GS_LEARN_MULTILABEL: u8 [N, labels], GS_LABEL_UNKNOWN where it is not known) or numbers (GS_LEARN_REGRESS:
 * f32 [N, numbers], NaN where none is known). It stands in base because the store and the operators both speak of it.
 */
#ifndef GS_BASE_LEARNING_H
#define GS_BASE_LEARNING_H

#include <stdbool.h>

#include "base/dtype.h"

#define GS_LEARN_MAP(X) /* enum, name, element type of its labels at rest */ \
    X(GS_LEARN_CLASSIFY, "classify", GS_I32)                                 \
    X(GS_LEARN_MULTILABEL, "multilabel", GS_U8)                              \
    X(GS_LEARN_REGRESS, "regress", GS_F32)

typedef enum gs_learning {
#define X(id, name, dtype) id,
    GS_LEARN_MAP(X)
#undef X
    GS_LEARN_COUNT
} gs_learning;

#define GS_LABEL_UNKNOWN 255 /* of a u8 label */

const char *gs_learning_name(gs_learning t);
/* false where `name` is none of the above. */
bool gs_learning_parse(gs_learning *out, const char *name);
gs_dtype gs_learning_labels(gs_learning t);
/* The task whose labels have this type at rest; false where no task's do. */
bool gs_learning_of_labels(gs_learning *out, gs_dtype t);

#endif /* GS_BASE_LEARNING_H */
