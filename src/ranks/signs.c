/* signs.c - a thread in each rank tells the others every second that it is there, and hears of them. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "ranks/ranks_internal.h"

#define EVERY 1.0
#define LOOK_EVERY 1e-3 /* while goodbyes are on their way */
#define LET_OTHERS_SPEAK 3.0

enum { HERE, GOODBYE };

typedef struct sign {
    gs_ranks_message sent, heard;
    uint8_t out, in;             /* HERE or GOODBYE */
    bool made, sending, hearing; /* the messages are there; under way */
    bool left;                   /* its goodbye was heard: nothing comes any more */
    double last; /* gs_now() when it was heard */
} sign;

static struct {
    pthread_t thread;
    pthread_mutex_t lock; /* guards the next two */
    double patience;
    bool on, quit;
    sign of[GS_RANKS_MOST];
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const gs_ranks_piece one_byte = {0, 1};

static int make(const gs_ranks_module *m, uint32_t rank)
{
    sign *const s = &watch.of[rank];
    int error = 0;

    if (!s->made && (error = m->make(&s->sent, GS_RANKS_SIGNS, true, rank, &s->out, &one_byte, 1)) == 0)
        error = m->make(&s->heard, GS_RANKS_SIGNS, false, rank, &s->in, &one_byte, 1);
    s->made = error == 0;
    return error;
}

/* Takes what has come, and asks for the next, but for what comes behind a goodbye. */
static int hear(const gs_ranks_module *m, uint32_t rank)
{
    sign *const s = &watch.of[rank];
    bool done = false;
    int error = 0;

    while (!s->left) {
        if (!s->hearing && (error = m->begin(&s->heard)) != 0)
            return error;
        s->hearing = true;
        if ((error = m->test(&s->heard, &done)) != 0 || !done)
            return error;
        s->hearing = false;
        s->last = gs_now();
        s->left = s->in == GOODBYE;
    }
    return 0;
}

/* Nothing new is sent before the last is taken, so that none pile up. */
static int tell(const gs_ranks_module *m, uint32_t rank)
{
    sign *const s = &watch.of[rank];
    bool done = true;
    int error = 0;

    if (s->sending && (error = m->test(&s->sent, &done)) != 0)
        return error;
    if (!done)
        return 0;
    s->sending = true;
    return m->begin(&s->sent);
}

/* One rank that is there says so: the first. */
static void give_up(uint32_t lost, double quiet, bool first)
{
    char why[160];

    snprintf(why, sizeof(why), "rank %u has not answered for %.3g s; see whether it runs and its machine is there, or "
             "set .io_timeout", lost, quiet);
    if (!first)
        gs_sleep(LET_OTHERS_SPEAK);
    gs_ranks_abort(why);
}

static void *run(void *arg)
{
    const gs_ranks_module *const m = gs_ranks__module();
    double before = gs_now();

    (void)arg;
    for (;;) {
        pthread_mutex_lock(&watch.lock);
        const bool quit = watch.quit;
        const double patience = watch.patience;
        pthread_mutex_unlock(&watch.lock);
        if (quit)
            return NULL;
        const double now = gs_now(), slept = now - before;
        uint32_t lost = gs_ranks_count(), first = gs_ranks_self();
        before = now;
        for (uint32_t r = 0; r < gs_ranks_count(); r++) {
            sign *const s = &watch.of[r];
            if (r == gs_ranks_self())
                continue;
            if (slept > 4 * EVERY) /* this process was stopped: others may have spoken */
                s->last += slept;
            if (make(m, r) != 0 || hear(m, r) != 0 || tell(m, r) != 0)
                s->last -= EVERY;
            if (patience > 0 && now - s->last > patience)
                lost = GS_MIN(lost, r);
            else
                first = GS_MIN(first, r);
        }
        if (lost < gs_ranks_count())
            give_up(lost, now - watch.of[lost].last, first == gs_ranks_self());
        gs_sleep(EVERY / 4);
    }
}

gs_status gs_ranks__start_watch(void)
{
    const double now = gs_now();

    for (uint32_t r = 0; r < GS_RANKS_MOST; r++)
        watch.of[r] = (sign){.last = now};
    watch.quit = false;
    const int error = pthread_create(&watch.thread, NULL, run, NULL);
    watch.on = error == 0;
    return error == 0 ? GS_OK : gs_fail_errno(error, "no thread to watch the other ranks");
}

/* Has the rank heard this one's goodbye, and said its own? */
static bool has_parted(const gs_ranks_module *m, uint32_t rank)
{
    sign *const s = &watch.of[rank];
    bool done = true;

    if (make(m, rank) != 0 || hear(m, rank) != 0 || (s->sending && m->test(&s->sent, &done) != 0))
        return true; /* there is nobody to wait for */
    s->sending = !done;
    if (done && s->out != GOODBYE) {
        s->out = GOODBYE;
        s->sending = m->begin(&s->sent) == 0;
    }
    return s->left && !s->sending;
}

/* MPI may wait for ever where it closes over a message that nobody takes, so every rank says which is its last. */
static void part(void)
{
    const gs_ranks_module *const m = gs_ranks__module();
    const double begin = gs_now();

    for (;;) {
        uint32_t missing = gs_ranks_count();
        for (uint32_t r = 0; r < gs_ranks_count(); r++)
            if (r != gs_ranks_self() && !has_parted(m, r))
                missing = GS_MIN(missing, r);
        if (missing == gs_ranks_count())
            break;
        if (watch.patience > 0 && gs_now() - begin > watch.patience)
            give_up(missing, gs_now() - begin, gs_ranks_self() == (missing == 0 ? 1 : 0));
        gs_sleep(LOOK_EVERY);
    }
    for (uint32_t r = 0; r < gs_ranks_count(); r++)
        if (watch.of[r].made) {
            (void)m->drop(&watch.of[r].sent);
            (void)m->drop(&watch.of[r].heard);
        }
}

void gs_ranks__stop_watch(void)
{
    if (!watch.on)
        return;
    pthread_mutex_lock(&watch.lock);
    watch.quit = true;
    pthread_mutex_unlock(&watch.lock);
    pthread_join(watch.thread, NULL);
    watch.on = false;
    part();
}

void gs_ranks_watch(double seconds)
{
    pthread_mutex_lock(&watch.lock);
    watch.patience = seconds;
    pthread_mutex_unlock(&watch.lock);
}
