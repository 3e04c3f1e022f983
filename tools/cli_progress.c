/* cli_progress.c - how far something is: one line that is rewritten on a terminal, a line a minute in a log. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

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

unsigned cli_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : USUAL_COLUMNS;
}

static double last_line = -1; /* cli_now(); -1: nothing has begun */

void cli_log_begin(void) { last_line = cli_now(); }

bool cli_log_is_due(void)
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

void cli_show_line(const char *line)
{
    if (!cli_shows_progress()) {
        fprintf(stderr, "gnnstream: %s\n", line);
        return;
    }
    fprintf(stderr, "\r\033[K%.*s", (int)cli_columns() - 1, line);
    fflush(stderr);
    line_open = true;
}

char *cli_bar(char *out, unsigned width, double done)
{
    const unsigned inside = width - 2, full = (unsigned)(done * inside);

    out[0] = '[';
    for (unsigned k = 0; k < inside; k++)
        out[1 + k] = k < full ? '#' : '-';
    out[1 + inside] = ']';
    out[width] = '\0';
    return out;
}

unsigned cli_bar_width(unsigned used)
{
    const unsigned columns = cli_columns();

    if (!cli_shows_progress() || used + LEAST_BAR + 2 > columns)
        return 0;
    return columns - used - 2 < MOST_BAR ? columns - used - 2 : MOST_BAR;
}

void cli_progress(void *context, const char *what, double done)
{
    char line[320], bar[MOST_BAR + 1];

    (void)context;
    if (!cli_shows_progress() && !cli_log_is_due())
        return;
    if (done < 0) {
        cli_show_line(what);
        return;
    }
    done = done > 1 ? 1 : done;
    const int n = snprintf(line, sizeof(line) - sizeof(bar) - 1, "%.200s: %.0f %%", what, 100 * done);
    const unsigned width = cli_bar_width((unsigned)n);
    if (width > 0)
        snprintf(line + n, sizeof(line) - (size_t)n, " %s", cli_bar(bar, width, done));
    cli_show_line(line);
}

void cli_progress_end(void)
{
    if (atomic_exchange(&line_open, false))
        fputs("\r\033[K", stderr);
}
