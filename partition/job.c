/* job.c - failures, interrupts and the memory bound of one partitioning run. */
#include "partition/job.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/machine.h"
#include "base/size.h"
#include "ranks/ranks.h"

/* Bytes a vertex costs at worst: interval or position (4), which intervals
 * need it (8), input id (4); later position, input id, two degrees, label. */
#define TABLE_BYTES_PER_VERTEX 20u
#define LEAST_BUFFERS (1u * GS_MIB)
/* Resident bytes of a program that does nothing but this: its code, its libraries' code, and what those allocate. The
 * rest of a larger process is its caller's. */
#define PROCESS_BYTES (12 * GS_MIB)
/* What MPI takes beside, from the first message on (MPICH 4.0 over UCX: some 2 MiB). */
#define MESSAGE_BYTES (4 * GS_MIB)
/* Bytes of a chunk in one direction: its entry in the table (40), and its record while that is written and read back
 * (48). */
#define TABLE_BYTES_PER_CHUNK 88u

static void take_process(gs_part_job *job, uint64_t bytes)
{
    job->process = bytes;
    job->memory = job->given - GS_MIN(job->given, bytes);
    job->buffers = job->memory / 4; /* until N is known */
}

void gs_part__job_init(gs_part_job *job, const gs_partition_options *opt, const char *place)
{
    memset(job, 0, sizeof(*job));
    job->opt = opt;
    job->place = place;
    job->threads = GS_MIN(gs_machine_cpus(), GS_PART_MOST_THREADS);
    job->given = opt->memory != 0 ? opt->memory : gs_machine_free_memory() / 2;
    take_process(job, PROCESS_BYTES);
    job->owner = pthread_self();
    job->failure.st = GS_OK;
    job->ranks = 1;
    pthread_mutex_init(&job->lock, NULL);
}

gs_status gs_part__job_join(gs_part_job *job, uint32_t ranks, uint32_t rank)
{
    const uint64_t process = gs_align_up(gs_process_resident_bytes() + MESSAGE_BYTES, GS_MIB);
    uint64_t own[3] = {job->given, GS_MAX(process, PROCESS_BYTES), job->threads}, all[GS_RANKS_MOST][3];

    GS_TRY(gs_ranks_gather(all, own, sizeof(own)));
    for (uint32_t r = 0; r < ranks; r++) {
        own[0] = GS_MIN(own[0], all[r][0]);
        own[1] = GS_MAX(own[1], all[r][1]);
        own[2] = GS_MIN(own[2], all[r][2]);
    }
    job->ranks = ranks;
    job->rank = rank;
    job->given = own[0];
    job->threads = (uint32_t)own[2];
    take_process(job, own[1]);
    return GS_OK;
}

void gs_part__job_free(gs_part_job *job) { pthread_mutex_destroy(&job->lock); }

/* Reserve for threads' stacks and the slack of the C library's heap, out of what is left beside the process. */
static uint64_t reserve_bytes(uint64_t memory) { return GS_MIN(12 * GS_MIB, memory / 8); }

/* The .memory that leaves so many bytes, in MiB, rounded up as a user types it. */
static uint64_t least_mib(const gs_part_job *job, uint64_t bytes)
{
    uint64_t mib = gs_div_up(bytes, GS_MIB);
    while (mib * GS_MIB - reserve_bytes(mib * GS_MIB) < bytes)
        mib++;
    return mib + gs_div_up(job->process, GS_MIB);
}

/* Most parts whose tables, of so many directions, take `bytes`. */
static uint64_t parts_within(uint64_t bytes, uint32_t directions)
{
    uint64_t parts = (uint64_t)sqrt((double)(bytes / directions / TABLE_BYTES_PER_CHUNK));
    while (parts > 0 && parts * parts * directions * TABLE_BYTES_PER_CHUNK > bytes)
        parts--;
    return parts;
}

/* Tables of P x P chunks are more than what `left` bytes hold beside the rest. `once`: MiB where edges have their
 * reverses, so that chunks have one table; 0 where `twice`, which is enough, is exact. */
static gs_status too_many_parts(const gs_part_job *job, uint64_t parts, uint64_t left, uint32_t directions,
                                uint64_t twice, uint64_t once)
{
    const uint64_t most = parts_within(left, directions);
    char have[32], fewer[64] = "", less[64] = "";

    if (most > 0)
        snprintf(fewer, sizeof(fewer), "at most %lu .parts, or ", most);
    if (once != 0)
        snprintf(less, sizeof(less), " (%luM where each edge has its reverse)", once);
    return gs_fail(GS_EBUDGET, ".memory %s: is too little for the tables of %lu x %lu chunks; give %sat least %luM "
                   "with .memory%s", gs_size_format(have, sizeof(have), job->given), parts, parts, fewer, twice, less);
}

gs_status gs_part__job_plan(gs_part_job *job, uint64_t vertices, uint64_t edges, uint64_t least)
{
    const uint64_t parts = GS_MIN(job->opt->parts, vertices); /* 0: chosen by what is left */
    const uint64_t chunks = parts * parts * TABLE_BYTES_PER_CHUNK; /* once, or twice */
    const uint64_t usable = job->memory - reserve_bytes(job->memory), tables = vertices * TABLE_BYTES_PER_VERTEX;
    char have[32];

    job->least = GS_MAX(least, LEAST_BUFFERS);
    const uint64_t rest = tables + job->least, left = usable - GS_MIN(usable, rest);
    const uint64_t once = least_mib(job, rest + chunks);
    const uint64_t twice = least_mib(job, rest + (job->opt->undirected ? 1 : 2) * chunks);
    if (usable >= rest + chunks) {
        job->buffers = job->before_chunks = usable - tables;
        return GS_OK;
    }
    if (usable < rest && chunks <= (tables + chunks) / 8)
        return gs_fail(GS_EBUDGET, ".memory %s: is too little for %lu vertices and %lu edges; give at least %luM with "
                       ".memory", gs_size_format(have, sizeof(have), job->given), vertices, edges, twice);
    return too_many_parts(job, parts, left, job->opt->undirected ? 1 : 2, twice, once < twice ? once : 0);
}

gs_status gs_part__job_plan_chunks(gs_part_job *job, uint32_t parts, uint32_t directions)
{
    const uint64_t tables = (uint64_t)parts * parts * directions * TABLE_BYTES_PER_CHUNK;
    const uint64_t others = job->memory - reserve_bytes(job->memory) - job->before_chunks;

    if (job->before_chunks < tables + job->least)
        return too_many_parts(job, parts, job->before_chunks - GS_MIN(job->before_chunks, job->least), directions,
                              least_mib(job, others + tables + job->least), 0);
    job->buffers = job->before_chunks - tables;
    return GS_OK;
}

uint64_t gs_part__job_buffers(const gs_part_job *job, uint64_t memory)
{
    const uint64_t taken = job->memory - reserve_bytes(job->memory) - job->buffers;
    const uint64_t beside = memory - GS_MIN(memory, job->process), usable = beside - reserve_bytes(beside);
    return usable > taken ? usable - taken : 0;
}

uint32_t gs_part__job_most_parts(const gs_part_job *job, uint32_t directions)
{
    const uint64_t chunks = job->before_chunks / 4 / TABLE_BYTES_PER_CHUNK / directions;
    return (uint32_t)GS_MAX(sqrt((double)chunks), 1.0);
}

uint64_t gs_part__least_memory(uint64_t bytes, unsigned parts)
{
    return gs_div_up(bytes * parts + PROCESS_BYTES, GS_MIB);
}

void gs_part__job_fail(gs_part_job *job, gs_status st)
{
    if (st == GS_OK)
        return;
    pthread_mutex_lock(&job->lock);
    gs_failure_keep(&job->failure, st);
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
    const gs_status st = gs_failure_tell(&job->failure);
    pthread_mutex_unlock(&job->lock);
    return st;
}

/* A name may hold a newline, and a warning is one line. */
void gs_part__warn(const gs_part_job *job, const char *format, ...)
{
    char line[1024];
    va_list rest;

    if (job->opt->warn == NULL)
        return;
    va_start(rest, format);
    vsnprintf(line, sizeof(line), format, rest);
    va_end(rest);
    for (char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    job->opt->warn(job->opt->context, line);
}

void gs_part__tick(gs_part_job *job, const char *what, double done)
{
    if (job->opt->progress != NULL && pthread_equal(pthread_self(), job->owner))
        job->opt->progress(job->opt->context, what, done);
}
