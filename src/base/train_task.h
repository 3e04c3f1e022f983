/* train_task.h - what a model is trained for, and what labels say of it.
 *
 * The store keeps one class a vertex (GS_TRAIN_TASK_CLASSIFY: i32 [N], -1 for none), a truth value for each label
 * (GS_TRAIN_TASK_MULTILABEL: u8 [N, labels], GS_LABEL_UNKNOWN where it is not known) or numbers (GS_TRAIN_TASK_REGRESS:
 * f32 [N, numbers], NaN where none is known). It stands in base because the store and the operators both speak of it.
 */
#ifndef GS_BASE_TRAIN_TASK_H
#define GS_BASE_TRAIN_TASK_H

#include <stdbool.h>

#include "base/dtype.h"

#define GS_TRAIN_TASK_MAP(X) /* enum, name, element type of its labels at rest */ \
    X(GS_TRAIN_TASK_CLASSIFY, "classify", GS_I32)                                 \
    X(GS_TRAIN_TASK_MULTILABEL, "multilabel", GS_U8)                              \
    X(GS_TRAIN_TASK_REGRESS, "regress", GS_F32)

typedef enum gs_train_task {
#define X(id, name, dtype) id,
    GS_TRAIN_TASK_MAP(X)
#undef X
    GS_TRAIN_TASK_COUNT
} gs_train_task;

#define GS_LABEL_UNKNOWN 255 /* of a u8 label */

const char *gs_train_task_name(gs_train_task t);
/* false where `name` is none of the above. */
bool gs_train_task_parse(gs_train_task *out, const char *name);
gs_dtype gs_train_task_labels(gs_train_task t);
/* The task whose labels have this type at rest; false where no task's do. */
bool gs_train_task_of_labels(gs_train_task *out, gs_dtype t);

#endif /* GS_BASE_TRAIN_TASK_H */
