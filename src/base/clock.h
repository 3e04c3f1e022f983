/* clock.h - seconds on a clock that never goes back. */
#ifndef GS_BASE_CLOCK_H
#define GS_BASE_CLOCK_H

#include <time.h>

double gs_now(void); /* seconds since an arbitrary start */
double gs_processor_now(void); /* seconds that the process's threads have had of processors, together */
double gs_thread_now(void);    /* the same of this thread alone */
void gs_sleep(double seconds);
/* The moment so far from now, of CLOCK_MONOTONIC. */
struct timespec gs_seconds_from_now(double seconds);

#endif /* GS_BASE_CLOCK_H */
