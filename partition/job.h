/* job.h - one run of the partitioner: what was asked for, its memory, and its first failure.
 *
 * Sizes are bytes where a name says memory or bytes, else elements. */
#ifndef GS_PARTITION_JOB_H
#define GS_PARTITION_JOB_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"
#include "gnnstream_store.h" /* gs_partition_options */

#define GS_PART_MOST_THREADS 16u

typedef struct gs_part_job {
    const gs_partition_options *opt;
    gs_dtype feature_type; /* of opt->feature_type */
    const char *place; /* the store, as it was given */
    const char *dir;   /* the folder that it is made in; NULL before it is begun */
    uint32_t threads;
    uint64_t given;   /* the bound as stated, of the whole process */
    uint64_t process; /* of it, what is the process's own */
    uint64_t memory;  /* the rest of it */
    const uint8_t *split; /* [vertices] gs_split by input id, or NULL; from before the order is made */
    uint64_t labelled, train; /* vertices in a split, in that one */
    uint64_t buffers; /* what is left of it for buffers, after tables of O(N), and of O(P * P) once P is known */
    uint64_t least;   /* that has to be left for them */
    uint64_t before_chunks; /* the same before those of O(P * P) */
    uint32_t ranks, rank; /* that make a shard each, of which this is one; 1, 0: a whole store is made */
    pthread_t owner;  /* the only thread that may call opt->progress */
    pthread_mutex_t lock; /* guards `failure` */
    gs_failure failure;
    int halted;       /* atomic; set with `failure`, read without the lock */
} gs_part_job;

void gs_part__job_init(gs_part_job *job, const gs_partition_options *opt, const char *place);
/* It makes a shard beside other ranks, whose library is the process's own, too. A meeting: what is read and sent at a
 * time follows from memory and threads, and is to be the same everywhere, so the least that any has counts for all. */
gs_status gs_part__job_join(gs_part_job *job, uint32_t ranks, uint32_t rank);
void gs_part__job_free(gs_part_job *job);
/* Splits the bound once N is known; `least`: bytes that buffers take at the least. GS_EBUDGET, before edges are read,
 * with what would do: of memory, and of .parts where their tables cannot fit whatever the edges are. */
gs_status gs_part__job_plan(gs_part_job *job, uint64_t vertices, uint64_t edges, uint64_t least);
/* The same once P is known: chunks have tables of `directions` (1 where the graph is symmetric). May be called again
 * with another P. */
gs_status gs_part__job_plan_chunks(gs_part_job *job, uint32_t parts, uint32_t directions);
/* Buffers that another bound, as stated, would leave beside the tables as they are. */
uint64_t gs_part__job_buffers(const gs_part_job *job, uint64_t memory);
/* Most parts whose tables are a quarter of the buffers. */
uint32_t gs_part__job_most_parts(const gs_part_job *job, uint32_t directions);
/* The .memory, in MiB, of which one part in `parts` is `bytes` when a reader begins. */
uint64_t gs_part__least_memory(uint64_t bytes, unsigned parts);
/* Any thread: keeps the first failure and its text; tells the others to stop. */
void gs_part__job_fail(gs_part_job *job, gs_status st);
/* Any thread: true after a failure or an interrupt (which it records). */
bool gs_part__job_stop(gs_part_job *job);
/* The calling thread's view of what went wrong, text included. */
gs_status gs_part__job_result(gs_part_job *job);
/* One line to the user, if there is anyone to hear it; control characters become '?'. The owner's thread only. */
void gs_part__warn(const gs_part_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
void gs_part__tick(gs_part_job *job, const char *what, double done);

#endif /* GS_PARTITION_JOB_H */
