/* checks.c - checks that are counted, and words about those that fail. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "matrix.h"

/* All that were given out, so that none goes stale. */
typedef struct given_text {
    struct given_text *next;
    char *characters;
} given_text;

static unsigned checks, failures;

static void failed(const char *fmt, va_list args)
{
    failures++;
    fputs("FAIL ", stdout);
    vprintf(fmt, args);
    fputc('\n', stdout);
    fflush(stdout);
}

bool check(bool holds, const char *fmt, ...)
{
    checks++;
    if (!holds) {
        va_list args;
        va_start(args, fmt);
        failed(fmt, args);
        va_end(args);
    }
    return holds;
}

bool check_near(double a, double b, double tolerance, const char *fmt, ...)
{
    const bool holds = fabs(a - b) <= tolerance * fabs(b) + 1e-30;

    checks++;
    if (!holds) {
        va_list args;
        va_start(args, fmt);
        failed(fmt, args);
        va_end(args);
        printf("     | %.9g, expected %.9g within a relative %g\n", a, b, tolerance);
    }
    return holds;
}

void note(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fputs("NOTE ", stdout);
    vprintf(fmt, args);
    fputc('\n', stdout);
    va_end(args);
}

int check_report(void)
{
    printf("%u checks, %u failures\n", checks, failures);
    return failures == 0 && checks > 0 ? 0 : 1;
}

bool in_turn(size_t i, size_t m, size_t of) { return getenv("GS_TEST_ALL") != NULL || i % of == m % of; }

const char *text(const char *fmt, ...)
{
    static given_text *given;
    given_text *const t = ref_alloc(1, sizeof(*t));
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&t->characters, fmt, args) < 0)
        ref_die("out of memory");
    va_end(args);
    t->next = given;
    given = t;
    return t->characters;
}
