/* cli_progress.c - a line on stderr about how far something is. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "training.h"

/* ---- the line ------------------------------------------------------------ */

#define LOG_SECONDS 60.0
#define USUAL_COLUMNS 80
#define LEAST_BAR 8
#define MOST_BAR 40

static atomic_bool line_open; /* threads that show, and one that ends it for an error */

double cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool cli_shows_progress(void)
{
    static atomic_int terminal = -1;

    if (terminal < 0) {
        const char *const term = getenv("TERM");
        terminal = isatty(STDERR_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
    }
    return terminal != 0;
}

static unsigned columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : USUAL_COLUMNS;
}

static double last_line = -1; /* cli_now(); -1: nothing has begun */

void cli_log_begin(void) { last_line = cli_now(); }

/* In a log: has a minute passed since this last said so, or was first asked? One thread at a time. */
static bool log_is_due(void)
{
    const char *const text = getenv("GS_LOG_EVERY");
    const double stated = text != NULL ? strtod(text, NULL) : 0, every = stated > 0 ? stated : LOG_SECONDS;
    const double t = cli_now();

    if (last_line < 0) /* the first question is asked when something begins */
        last_line = t;
    if (t - last_line < every)
        return false;
    last_line = t;
    return true;
}

/* Now, cut to the terminal's width. */
static void show_line(const char *line)
{
    if (!cli_shows_progress()) {
        fprintf(stderr, "gnnstream: %s\n", line);
        return;
    }
    fprintf(stderr, "\r\033[K%.*s", (int)columns() - 1, line);
    fflush(stderr);
    line_open = true;
}

static char *bar_of(char *out, unsigned width, double done)
{
    const unsigned inside = width - 2, full = (unsigned)(done * inside);

    out[0] = '[';
    for (unsigned k = 0; k < inside; k++)
        out[1 + k] = k < full ? '#' : '-';
    out[1 + inside] = ']';
    out[width] = '\0';
    return out;
}

/* Of one that fits beside `used` columns, or 0. */
static unsigned bar_width(unsigned used)
{
    const unsigned all = columns();

    if (!cli_shows_progress() || used + LEAST_BAR + 2 > all)
        return 0;
    return all - used - 2 < MOST_BAR ? all - used - 2 : MOST_BAR;
}

void cli_progress(void *context, const char *what, double done)
{
    char line[320], bar[MOST_BAR + 1];

    (void)context;
    if (!cli_shows_progress() && !log_is_due())
        return;
    if (done < 0) {
        show_line(what);
        return;
    }
    done = done > 1 ? 1 : done;
    const int n = snprintf(line, sizeof(line) - sizeof(bar) - 1, "%.200s: %.0f %%", what, 100 * done);
    const unsigned width = bar_width((unsigned)n);
    if (width > 0)
        snprintf(line + n, sizeof(line) - (size_t)n, " %s", bar_of(bar, width, done));
    show_line(line);
}

void cli_progress_end(void)
{
    if (atomic_exchange(&line_open, false))
        fputs("\r\033[K", stderr);
}

/* ---- a run --------------------------------------------------------------- */

/* One line about a run: rewritten five times a second on a terminal, once a minute in a log.
 *
 * A thread of its own asks the run how far it is; the thread that runs it says how epochs went. What is left is counted
 * from the plan's tasks, at the pace of the last epoch, or of this one so far where it is the first.
 */

#define LINES_A_SECOND 5
#define TOO_EARLY 0.02 /* of a pass: what is left of it is anybody's guess */

struct cli_watch {
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;  /* `over` was set */
    bool over;
    const char *what;     /* that opening the run is at */
    double what_began;
    const gs_run *run;    /* NULL while it cannot be asked */
    gs_epoch_report last; /* .epoch is 0 before the first */
    /* The thread's own. */
    gs_progress seen;     /* when it last looked */
    double pass_began;
};

/* "0:07", "12:31", "3:02:10". */
static char *duration(char out[24], double seconds)
{
    const unsigned long s = seconds < 0 ? 0 : seconds < 1e8 ? (unsigned long)(seconds + 0.5) : 100000000ul;

    if (s < 3600)
        snprintf(out, 24, "%lu:%02lu", s / 60, s % 60);
    else
        snprintf(out, 24, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    return out;
}

/* Passes as people know them. */
static const char *doing(const char *pass)
{
    return strcmp(pass, "setup") == 0 ? "computing what no epoch changes" : pass;
}

/* Parts of a line behind its head and bar, in this order. */
enum { PART_RATE, PART_LEFT, PART_RUN, PART_LOSS, PART_EPOCH, PARTS };
typedef char line_part[64];

/* "0:07 left" and "of the run 12:31", or "". */
static void say_left(line_part *part, const cli_watch *w, const gs_progress *p, double done)
{
    const double spent = cli_now() - w->pass_began;
    const bool trains = strcmp(p->pass, "train") == 0;
    char text[24];

    if (done < TOO_EARLY && w->last.epoch == 0)
        return;
    const double whole = trains && w->last.epoch != 0 ? w->last.seconds : spent / (done < TOO_EARLY ? TOO_EARLY : done);
    const double left = whole * (1 - done);
    const uint32_t after = p->epochs > p->epoch + 1 ? p->epochs - p->epoch - 1 : 0;
    snprintf(part[PART_LEFT], sizeof(line_part), "%s left", duration(text, left));
    if (trains && after > 0)
        snprintf(part[PART_RUN], sizeof(line_part), "of the run %s", duration(text, left + after * whole));
}

/* Of an epoch on batches how much was computing, and the most of what else there was: ", 83 % computing, 9 % drawing".
 */
static void say_parts(line_part *part, int n, const gs_epoch_report *last)
{
    const struct {
        const char *name;
        double seconds;
    } of[] = {{"drawing", last->sample_seconds}, {"picking", last->pick_seconds}, {"copying", last->copy_seconds},
              {"stepping", last->step_seconds}, {"waiting", last->stall_seconds}};
    int most = 0;

    if (last->sample_seconds <= 0 || last->seconds <= 0)
        return;
    for (int k = 1; k < (int)(sizeof(of) / sizeof(of[0])); k++)
        most = of[k].seconds > of[most].seconds ? k : most;
    snprintf(part[PART_EPOCH] + n, sizeof(line_part) - (size_t)n, ", %.0f %% computing, %.0f %% %s",
             100 * last->compute_seconds / last->seconds, 100 * of[most].seconds / last->seconds, of[most].name);
}

/* "; loss 0.1234, valid 0.8123" and ", 12.345 s an epoch", or "". */
static void say_figures(line_part *part, const gs_epoch_report *last)
{
    if (last->epoch == 0)
        return;
    const int n = snprintf(part[PART_LOSS], sizeof(line_part), "; loss %.4f", last->loss);
    if (isfinite(judged_by(last)))
        snprintf(part[PART_LOSS] + n, sizeof(line_part) - (size_t)n, ", valid %.4f", judged_by(last));
    say_parts(part, snprintf(part[PART_EPOCH], sizeof(line_part), ", %.3f s an epoch", last->seconds), last);
}

/* Leaves out parts that do not fit, in this order, that of the run last; the bar has the columns that are left. */
static size_t cut(line_part *part, size_t head, size_t columns)
{
    static const int first[] = {PART_EPOCH, PART_LOSS, PART_RATE, PART_LEFT, PART_RUN};
    size_t used = head + 5; /* a blank before the parts, and commas between rate and what is left */

    for (int k = 0; k < PARTS; k++)
        used += strlen(part[k]);
    for (int k = 0; k < PARTS && used + 1 > columns; k++) {
        used -= strlen(part[first[k]]);
        part[first[k]][0] = '\0';
    }
    return used;
}

static void show(cli_watch *w, const gs_progress *p)
{
    char line[640], head[80], bar[64];
    line_part part[PARTS] = {{0}};
    const double done = (double)p->tasks_done / p->tasks, spent = cli_now() - w->pass_began;
    const char *const what = doing(p->pass);

    if (what != p->pass || p->epochs == 0 || strcmp(p->pass, "predict") == 0)
        snprintf(head, sizeof(head), "%s %.0f %%", what, 100 * done);
    else
        snprintf(head, sizeof(head), "epoch %u of %u: %s %.0f %%", p->epoch < p->epochs ? p->epoch + 1 : p->epoch,
                 p->epochs, what, 100 * done);
    say_left(part, w, p, done);
    say_figures(part, &w->last);
    if (spent > 0.2 && p->bytes_done > 0)
        snprintf(part[PART_RATE], sizeof(line_part), "%s/s", cli_size((uint64_t)((double)p->bytes_done / spent)));
    const size_t used = cut(part, strlen(head), cli_shows_progress() ? columns() : sizeof(line));
    const unsigned width = bar_width((unsigned)used + 1);
    const bool rate = part[PART_RATE][0] != '\0', left = part[PART_LEFT][0] != '\0', of_run = part[PART_RUN][0] != '\0';
    snprintf(line, sizeof(line), "%s%s%s%s%s%s%s%s%s%s%s%s", head, width > 0 ? " " : "",
             width > 0 ? bar_of(bar, width, done) : "", rate ? " " : "", part[PART_RATE],
             left ? (rate ? ", " : " ") : "", part[PART_LEFT], of_run ? (rate || left ? ", " : " ") : "",
             part[PART_RUN], of_run && !left ? " left" : "", part[PART_LOSS], part[PART_EPOCH]);
    show_line(line);
}

/* Before the first pass: how far opening is, nobody knows. */
static void show_opening(const cli_watch *w)
{
    char line[80], since[24];

    if (!cli_shows_progress() && !log_is_due())
        return;
    snprintf(line, sizeof(line), "%s, %s so far", w->what, duration(since, cli_now() - w->what_began));
    show_line(line);
}

static void look(cli_watch *w)
{
    gs_progress p = {0};

    if (w->run != NULL && gs_run_progress(w->run, &p) != GS_OK)
        return;
    if (p.tasks == 0) {
        show_opening(w);
        return;
    }
    if (strcmp(p.pass, w->seen.pass) != 0 || p.epoch != w->seen.epoch || p.tasks_done < w->seen.tasks_done)
        w->pass_began = cli_now();
    w->seen = p;
    if (cli_shows_progress() || log_is_due())
        show(w, &p);
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
            look(w);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

cli_watch *cli_watch_begin(void)
{
    cli_watch *const w = calloc(1, sizeof(*w));

    if (w == NULL)
        return NULL;
    cli_log_begin();
    w->what = "opening the store";
    w->what_began = w->pass_began = cli_now();
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    if (pthread_create(&w->thread, NULL, watch, w) == 0)
        return w;
    free(w); /* no line, then */
    return NULL;
}

void cli_watch_open(void *watch, const char *what, const gs_run *run)
{
    cli_watch *const w = watch;

    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    if (strcmp(w->what, what) != 0)
        w->what_began = cli_now();
    w->what = what;
    w->run = run;
    pthread_mutex_unlock(&w->lock);
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
