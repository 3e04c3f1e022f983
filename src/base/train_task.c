#include "base/train_task.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *name;
    gs_dtype labels;
} tasks[GS_TRAIN_TASK_COUNT] = {
#define X(id, task_name, dtype) [id] = {task_name, dtype},
    GS_TRAIN_TASK_MAP(X)
#undef X
};

const char *gs_train_task_name(gs_train_task t)
{
    assert((unsigned)t < GS_TRAIN_TASK_COUNT);
    return tasks[t].name;
}

bool gs_train_task_parse(gs_train_task *out, const char *name)
{
    for (unsigned t = 0; t < GS_TRAIN_TASK_COUNT; t++)
        if (strcmp(name, tasks[t].name) == 0) {
            *out = (gs_train_task)t;
            return true;
        }
    return false;
}

gs_dtype gs_train_task_labels(gs_train_task t)
{
    assert((unsigned)t < GS_TRAIN_TASK_COUNT);
    return tasks[t].labels;
}

bool gs_train_task_of_labels(gs_train_task *out, gs_dtype labels)
{
    for (unsigned t = 0; t < GS_TRAIN_TASK_COUNT; t++)
        if (tasks[t].labels == labels) {
            *out = (gs_train_task)t;
            return true;
        }
    return false;
}
