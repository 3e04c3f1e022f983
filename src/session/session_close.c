/* session_close.c - closing a session in whatever state it is. */
#include <pthread.h>

#include "base/alloc.h"
#include "base/temporary.h"
#include "session/prune.h"
#include "session/session.h"
#include "session/tables.h"

/* Held, so that who looks for lost memory sees that it is on purpose. */
static gs_session *given_up;
static pthread_mutex_t given_up_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep(gs_session *s)
{
    pthread_mutex_lock(&given_up_lock);
    s->next = given_up;
    given_up = s;
    pthread_mutex_unlock(&given_up_lock);
}

void gs_session_close(gs_session *s)
{
    if (s == NULL)
        return;
    const bool gave_up = gs_exec_gave_up(s->run.exec);
    gs_exec_close(s->run.exec);
    gs_scratch_remove(&s->run.spill);
    if (gave_up) { /* the run may still work with the rest */
        keep(s);
        return;
    }
    for (uint32_t f = 0; s->run.path != NULL && f < s->program->arrays + s->edges.sets; f++)
        gs_free(s->run.path[f]);
    gs_free(s->run.path);
    for (uint32_t k = 0; k < s->edges.sets; k++)
        gs_free(s->run.chunk[k]);
    gs_session_drop_needs(s);
    gs_session_drop_pruned(s);
    gs_session_drop_labels(s);
    gs_free(s->edges.stage_set);
    gs_session_free_tables(s);
    gs_params_free(&s->run.params);
    gs_plan_free(s->plan);
    gs_program_free(s->program);
    for (uint32_t d = 0; d < s->machine.devices; d++)
        gs_device_close(s->machine.device[d]);
    gs_tree_close(s->machine.tree);
    gs_store_close(s->store);
    gs_free(s);
}
