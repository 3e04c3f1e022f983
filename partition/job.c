/* job.c - failures, interrupts and the memory bound of one partitioning run. */
#include "partition/job.h"

#include <stdio.h>
#include <string.h>

#include "base/machine.h"
#include "base/size.h"

/* Bytes a vertex costs at worst: interval or position (4), which intervals
 * need it (8), input id (4); later position, input id, two degrees, label. */
#define TABLE_BYTES_PER_VERTEX 20u
#define LEAST_BUFFERS (1u * GS_MIB)

void gs_part__job_init(gs_part_job *job, const gs_partition_options *opt, const char *place)
{
    memset(job, 0, sizeof(*job));
    job->opt = opt;
    job->place = place;
    job->threads = GS_MIN(gs_machine_cpus(), GS_PART_MOST_THREADS);
    job->memory = opt->memory != 0 ? opt->memory : gs_machine_free_memory() / 2;
    job->buffers = job->memory / 4; /* until N is known */
    job->owner = pthread_self();
    job->failed = GS_OK;
    pthread_mutex_init(&job->lock, NULL);
}

void gs_part__job_free(gs_part_job *job) { pthread_mutex_destroy(&job->lock); }

/* Code, stacks and the C library's own heap; a share of a small bound. */
static uint64_t reserve_bytes(uint64_t memory) { return GS_MIN(24 * GS_MIB, memory / 8); }

gs_status gs_part__job_plan(gs_part_job *job, uint64_t vertices, uint64_t edges)
{
    const uint64_t tables = vertices * TABLE_BYTES_PER_VERTEX;
    const uint64_t usable = job->memory - reserve_bytes(job->memory);
    char need[32], have[32];

    if (usable < tables + LEAST_BUFFERS)
        return gs_fail(GS_EBUDGET,
                       ".memory %s: is too little for %llu vertices and %llu edges; give at least %s with .memory",
                       gs_size_format(have, sizeof(have), job->memory), (unsigned long long)vertices,
                       (unsigned long long)edges,
                       gs_size_format(need, sizeof(need), (tables + LEAST_BUFFERS) / 7 * 8 + 8));
    job->buffers = usable - tables;
    return GS_OK;
}

void gs_part__job_fail(gs_part_job *job, gs_status st)
{
    if (st == GS_OK)
        return;
    pthread_mutex_lock(&job->lock);
    if (job->failed == GS_OK) {
        job->failed = st;
        snprintf(job->message, sizeof(job->message), "%s", gs_last_error());
    }
    pthread_mutex_unlock(&job->lock);
    __atomic_store_n(&job->halted, 1, __ATOMIC_RELEASE); /* pairs with the load in gs_part__job_stop() */
}

bool gs_part__job_stop(gs_part_job *job)
{
    if (__atomic_load_n(&job->halted, __ATOMIC_ACQUIRE))
        return true;
    if (job->opt->stop == NULL || *job->opt->stop == 0)
        return false;
    gs_part__job_fail(job, gs_fail(GS_EINTERRUPTED, "%s: interrupted; nothing was kept", job->place));
    return true;
}

gs_status gs_part__job_result(gs_part_job *job)
{
    if (!gs_part__job_stop(job))
        return GS_OK;
    pthread_mutex_lock(&job->lock);
    const gs_status st = job->failed;
    pthread_mutex_unlock(&job->lock);
    return gs_fail(st, "%s", job->message);
}

void gs_part__tick(gs_part_job *job, const char *what, double done)
{
    if (job->opt->progress != NULL && pthread_equal(pthread_self(), job->owner))
        job->opt->progress(job->opt->context, what, done);
}
