/* threads.c - pieces moved by a few threads that call pread() and pwrite(),
 * for systems where io_uring is not to be had. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "io/io_internal.h"

typedef struct threads {
    /* the owner's alone */
    gs_io__list queued;   /* waits for submit() */
    uint32_t workers;     /* started */
    pthread_t worker[GS_IO__THREADS];
    /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t work;  /* to the workers: `todo` has something, or `stop` */
    pthread_cond_t ended; /* to the owner: `done` has something */
    gs_io__list todo, done;
    uint32_t under_way;   /* in todo, with a worker or in done */
    bool stop;
} threads;

static int64_t transfer(const gs_io__piece *p)
{
    const ssize_t n = p->write ? pwrite(p->fd, p->memory, p->length, (off_t)p->offset)
                               : pread(p->fd, p->memory, p->length, (off_t)p->offset);
    return n >= 0 ? n : -errno;
}

static void *worker_main(void *context)
{
    threads *t = context;

    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (t->todo.head == NULL && !t->stop)
            pthread_cond_wait(&t->work, &t->lock);
        gs_io__piece *const p = gs_io__pop(&t->todo);
        if (p == NULL)
            break;
        pthread_mutex_unlock(&t->lock);
        p->result = transfer(p);
        pthread_mutex_lock(&t->lock);
        gs_io__push(&t->done, p);
        pthread_cond_signal(&t->ended);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void threads_close(void *context)
{
    threads *t = context;

    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_broadcast(&t->work);
    pthread_mutex_unlock(&t->lock);
    for (uint32_t i = 0; i < t->workers; i++)
        pthread_join(t->worker[i], NULL);
    pthread_cond_destroy(&t->ended);
    pthread_cond_destroy(&t->work);
    pthread_mutex_destroy(&t->lock);
    gs_free(t);
}

/* Signals belong to the program's own threads, so workers block them all.
 * One worker is enough to go on. */
static int start_workers(threads *t, uint32_t wanted)
{
    sigset_t all, before;
    int error = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (t->workers < wanted && error == 0) {
        error = pthread_create(&t->worker[t->workers], NULL, worker_main, t);
        if (error == 0)
            t->workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return t->workers > 0 ? 0 : error;
}

static gs_status threads_open(void **context, const gs_io_config *config, char *note)
{
    threads *t = gs_calloc(1, sizeof(*t));
    pthread_condattr_t monotonic;
    int error;

    (void)note;
    GS_NEED(t != NULL, "out of memory for the threads that read and write");
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->work, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&t->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    error = start_workers(t, config->depth < GS_IO__THREADS ? config->depth : GS_IO__THREADS);
    if (error != 0) {
        threads_close(t);
        return gs_fail_errno(error, "cannot start a thread that reads and writes");
    }
    *context = t;
    return GS_OK;
}

static const char *threads_name(const void *context)
{
    (void)context;
    return "threads";
}

static void threads_add_file(void *context, uint32_t file, int fd)
{
    (void)context; /* pieces carry their descriptor */
    (void)file;
    (void)fd;
}

static void threads_queue(void *context, gs_io__piece *piece)
{
    threads *t = context;
    gs_io__push(&t->queued, piece);
}

/* Under the lock. */
static void wait_for_one(threads *t, double wait)
{
    const struct timespec until = isinf(wait) ? (struct timespec){0} : gs_seconds_from_now(wait);
    int late = 0;

    while (t->done.head == NULL && t->under_way > 0 && late == 0)
        late = isinf(wait) ? pthread_cond_wait(&t->ended, &t->lock)
                           : pthread_cond_timedwait(&t->ended, &t->lock, &until);
}

static void threads_submit(void *context, double wait)
{
    threads *t = context;
    uint32_t count = 0;

    for (const gs_io__piece *p = t->queued.head; p != NULL; p = p->next)
        count++;
    if (count == 0 && wait == 0)
        return;
    pthread_mutex_lock(&t->lock);
    gs_io__splice(&t->todo, &t->queued);
    t->under_way += count;
    if (count == 1)
        pthread_cond_signal(&t->work);
    else if (count > 1)
        pthread_cond_broadcast(&t->work);
    if (wait > 0)
        wait_for_one(t, wait);
    pthread_mutex_unlock(&t->lock);
}

static void threads_collect(void *context, gs_io__list *ended)
{
    threads *t = context;

    pthread_mutex_lock(&t->lock);
    for (const gs_io__piece *p = t->done.head; p != NULL; p = p->next)
        t->under_way--;
    gs_io__splice(ended, &t->done);
    pthread_mutex_unlock(&t->lock);
}

const gs_io__ops gs_io__threads_ops = {
    .open = threads_open,
    .close = threads_close,
    .name = threads_name,
    .add_file = threads_add_file,
    .queue = threads_queue,
    .submit = threads_submit,
    .collect = threads_collect,
};
