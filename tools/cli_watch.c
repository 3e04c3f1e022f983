/* cli_watch.c - one line about a run under way, rewritten five times a second, where stderr is a terminal.
 *
 * A thread of its own asks the run how far it is; the thread that runs it says how epochs went.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "cli.h"

#define LINES_A_SECOND 5

struct cli_watch {
    const gs_run *run;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;  /* `over` was set */
    bool over;
    gs_epoch_report last; /* .epoch is 0 before the first */
};

static void show(const gs_run *run, const gs_epoch_report *last)
{
    gs_progress p;
    char line[160];
    int n;

    if (gs_run_progress(run, &p) != GS_OK || p.tasks == 0)
        return;
    n = snprintf(line, sizeof(line), "epoch %u of %u: %s %.0f %%", p.epoch < p.epochs ? p.epoch + 1 : p.epoch, p.epochs,
                 p.pass, 100.0 * p.tasks_done / p.tasks);
    if (last->epoch != 0)
        n += snprintf(line + n, sizeof(line) - (size_t)n, "; loss %.4f", last->loss);
    if (last->epoch != 0 && isfinite(last->accuracy[1]))
        n += snprintf(line + n, sizeof(line) - (size_t)n, ", valid %.4f", last->accuracy[1]);
    if (last->epoch != 0)
        snprintf(line + n, sizeof(line) - (size_t)n, ", %.3f s an epoch", last->seconds);
    cli_progress(NULL, line, -1);
}

static void *watch(void *context)
{
    cli_watch *const w = context;
    struct timespec until;

    pthread_mutex_lock(&w->lock);
    clock_gettime(CLOCK_REALTIME, &until);
    while (!w->over) {
        until.tv_nsec += 1000000000 / LINES_A_SECOND;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&w->wake, &w->lock, &until) != 0)
            show(w->run, &w->last);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

cli_watch *cli_watch_begin(const gs_run *run)
{
    cli_watch *const w = cli_shows_progress() ? calloc(1, sizeof(*w)) : NULL;

    if (w == NULL)
        return NULL;
    w->run = run;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    if (pthread_create(&w->thread, NULL, watch, w) == 0)
        return w;
    free(w); /* no line, then */
    return NULL;
}

void cli_watch_epoch(cli_watch *w, const gs_epoch_report *e)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->last = *e;
    pthread_mutex_unlock(&w->lock);
}

void cli_watch_end(cli_watch *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
    cli_progress_end();
}
