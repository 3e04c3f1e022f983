#include "base/clock.h"

#include <math.h>

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double gs_now(void) { return seconds_of(CLOCK_MONOTONIC); }
double gs_processor_now(void) { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }
double gs_thread_now(void) { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

void gs_sleep(double seconds)
{
    const double whole = floor(seconds);
    const struct timespec t = {.tv_sec = (time_t)whole, .tv_nsec = (long)((seconds - whole) * 1e9)};
    nanosleep(&t, NULL);
}

struct timespec gs_seconds_from_now(double seconds)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    const double end = (double)t.tv_nsec * 1e-9 + seconds, whole = floor(end);
    return (struct timespec){.tv_sec = t.tv_sec + (time_t)whole, .tv_nsec = (long)((end - whole) * 1e9)};
}
