/* clock.h - seconds on a clock that never goes back. */
#ifndef GS_BASE_CLOCK_H
#define GS_BASE_CLOCK_H

double gs_now(void); /* seconds since an arbitrary start */

#endif /* GS_BASE_CLOCK_H */
