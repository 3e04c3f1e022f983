#include "base/learning.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *name;
    gs_dtype labels;
} tasks[GS_LEARN_COUNT] = {
#define X(id, task_name, dtype) [id] = {task_name, dtype},
    GS_LEARN_MAP(X)
#undef X
};

const char *gs_learning_name(gs_learning t)
{
    assert((unsigned)t < GS_LEARN_COUNT);
    return tasks[t].name;
}

bool gs_learning_parse(gs_learning *out, const char *name)
{
    for (unsigned t = 0; t < GS_LEARN_COUNT; t++)
        if (strcmp(name, tasks[t].name) == 0) {
            *out = (gs_learning)t;
            return true;
        }
    return false;
}

gs_dtype gs_learning_labels(gs_learning t)
{
    assert((unsigned)t < GS_LEARN_COUNT);
    return tasks[t].labels;
}

bool gs_learning_of_labels(gs_learning *out, gs_dtype labels)
{
    for (unsigned t = 0; t < GS_LEARN_COUNT; t++)
        if (tasks[t].labels == labels) {
            *out = (gs_learning)t;
            return true;
        }
    return false;
}
