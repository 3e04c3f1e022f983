#include "base/thread_check.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"

/* All of them are there at the same time: each waits for the lock that the caller has. */
static void *wait_for(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

gs_status gs_threads_check(unsigned threads)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *const thread = gs_malloc_array(threads, sizeof(*thread));
    unsigned started = 0;
    int error = 0;

    if (thread == NULL)
        return gs_fail(GS_ENOMEM, "out of memory");
    pthread_mutex_lock(&lock);
    for (; error == 0 && started + 1 < threads; started += error == 0)
        error = pthread_create(&thread[started], NULL, wait_for, &lock);
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    gs_free(thread);
    if (error == 0)
        return GS_OK;
    return gs_fail(GS_ENOMEM,
                   "%u threads could not be had: %s; raise what limits this program's (ulimit -v or -u, a container)",
                   threads, strerror(error));
}

gs_status gs_threads_begin(unsigned threads)
{
    const gs_status st = gs_threads_check(threads);
    atomic_uint there = 0;

    if (st != GS_OK)
        return st;
#pragma omp parallel num_threads(threads)
    atomic_fetch_add_explicit(&there, 1, memory_order_relaxed);
    return GS_OK;
}
