/* thread_check.h - are so many threads to be had?
 *
 * OpenMP ends the program where one is not, with what was being written left behind; so this is asked before.
 */
#ifndef GS_BASE_THREAD_CHECK_H
#define GS_BASE_THREAD_CHECK_H

#include "base/status.h"

/* Starts `threads` - 1 beside the caller's and lets them end. GS_ENOMEM: the system gives fewer. Blocks for some tens
 * of microseconds a thread. */
gs_status gs_threads_check(unsigned threads);

/* The same, and starts OpenMP's for the caller's parallel loops while memory is there: they stay. */
gs_status gs_threads_begin(unsigned threads);

#endif /* GS_BASE_THREAD_CHECK_H */
