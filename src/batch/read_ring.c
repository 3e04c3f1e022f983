/* read_ring.c - reads of one file, in order, through a ring of memory, by a thread of its own. */
#include "batch/batch_rows.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

/* With the kernel at a time. A disk's queue has 256 places and more; 64 to 1024 at a time gave 84,000 to 92,000 reads
 * of 4 KiB a second on a virtual disk. */
#define REQUESTS 256u
#define MOST_RUN_BYTES (8 * GS_MIB)
/* Who waits for a run waits for so many, as waking costs as much as the run of a block. */
#define RUNS_AT_ONCE 64u

uint64_t gs_read_ring_most(uint64_t bytes) { return GS_MIN(MOST_RUN_BYTES, bytes / 2); }

static uint32_t capacity_of(uint64_t bytes, uint32_t runs) { return (uint32_t)GS_MIN(bytes / GS_BLOCK_BYTES, runs); }

uint64_t gs_read_ring_bytes(uint64_t bytes, uint32_t runs)
{
    return bytes + capacity_of(bytes, runs) * sizeof(gs_read_run);
}

/* ---- the thread ---------------------------------------------------------- */

static uint32_t number_of(const gs_read_ring *r, uint32_t k)
{
    return (uint32_t)(((uint64_t)r->first + k) % r->capacity);
}

static void note(gs_read_run *run, gs_status st)
{
    run->came = true;
    run->status = st;
}

/* Runs that wait go to io, which hands them over when it is asked for what has come. Under the lock, as all here. */
static void send(gs_read_ring *r)
{
    for (; r->waits > 0 && r->under_way < REQUESTS; r->waits--) {
        const uint32_t k = number_of(r, r->count - r->waits);
        const gs_io_request q = {.file = r->file, .offset = r->run[k].begin, .tag = k,
                                 .length = r->run[k].blocks * GS_BLOCK_BYTES,
                                 .memory = r->memory + r->run[k].place * GS_BLOCK_BYTES};
        const gs_status st = gs_io_submit(r->io, &q);
        if (st == GS_OK)
            r->under_way++;
        else
            note(&r->run[k], st);
    }
}

/* Has what the caller waits for come? */
static bool is_news(const gs_read_ring *r)
{
    return r->wanted != GS_READ_RING_NONE && (r->run[r->wanted].came || (r->under_way == 0 && r->waits == 0));
}

static void *read_thread(void *arg)
{
    gs_read_ring *const r = arg;
    gs_io_completion done[64];

    pthread_mutex_lock(&r->lock);
    for (;;) {
        send(r);
        if (is_news(r))
            pthread_cond_signal(&r->news);
        if (r->under_way == 0) {
            if (r->quit)
                break;
            pthread_cond_wait(&r->work, &r->lock);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        const uint32_t n = gs_io_reap(r->io, done, GS_ARRAY_LEN(done), true);
        pthread_mutex_lock(&r->lock);
        for (uint32_t i = 0; i < n; i++)
            note(&r->run[done[i].tag], done[i].status);
        r->under_way -= n;
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* Signals are for the program's own threads. */
static gs_status start(gs_read_ring *r)
{
    sigset_t all, before;

    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->work, NULL);
    pthread_cond_init(&r->news, NULL);
    r->locks = true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&r->thread, NULL, read_thread, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    r->started = error == 0;
    return r->started ? GS_OK : gs_fail_errno(error, "cannot start a thread that reads rows of features");
}

/* ---- opening ------------------------------------------------------------- */

gs_status gs_read_ring_open(gs_read_ring *r, const char *path, uint64_t bytes, uint32_t runs)
{
    *r = (gs_read_ring){.bytes = bytes, .capacity = capacity_of(bytes, runs), .wanted = GS_READ_RING_NONE};
    r->memory = gs_alloc_pages(bytes);
    r->run = gs_malloc_array(r->capacity, sizeof(*r->run));
    GS_NEED(r->memory != NULL && r->run != NULL, "out of memory for reading rows of features");
    const struct gs_io_buffer buffer = {r->memory, bytes};
    const gs_io_config io = {.requests = REQUESTS, .depth = REQUESTS, .buffers = &buffer, .buffer_count = 1};
    GS_TRY(gs_io_open(&r->io, &io));
    GS_TRY(gs_io_add_file(r->io, &r->file, path, GS_IO_READ));
    return start(r);
}

void gs_read_ring_close(gs_read_ring *r)
{
    if (r->started) {
        gs_read_ring_drain(r);
        pthread_mutex_lock(&r->lock);
        r->quit = true;
        pthread_cond_signal(&r->work);
        pthread_mutex_unlock(&r->lock);
        pthread_join(r->thread, NULL);
    }
    if (r->locks) {
        pthread_mutex_destroy(&r->lock);
        pthread_cond_destroy(&r->work);
        pthread_cond_destroy(&r->news);
    }
    gs_io_close(r->io);
    gs_free(r->run);
    if (r->memory != NULL)
        gs_free_pages(r->memory, r->bytes);
    *r = (gs_read_ring){0};
}

/* ---- the caller ---------------------------------------------------------- */

/* Where a run of so many bytes goes: in one piece, behind the last one or, where that ends the memory, at its begin.
 * False: something is there. Under the lock. */
static bool find_place(const gs_read_ring *r, uint64_t bytes, uint64_t *place)
{
    const uint64_t tail = r->count == 0 ? 0 : r->run[r->first].place * GS_BLOCK_BYTES,
                   head = r->count == 0 ? 0 : r->head;
    const bool round = r->count > 0 && head <= tail; /* the last run lies before the first, or all is full */

    *place = head + bytes > r->bytes ? 0 : head;
    if (r->count == r->capacity)
        return false;
    return round ? head + bytes <= tail : *place == head || bytes <= tail;
}

bool gs_read_ring_put(gs_read_ring *r, uint64_t begin, uint64_t bytes, uint32_t mark)
{
    uint64_t place;

    assert(bytes > 0 && bytes <= r->bytes);
    pthread_mutex_lock(&r->lock);
    const bool put = find_place(r, bytes, &place);
    if (put) {
        r->run[number_of(r, r->count)] = (gs_read_run){
            .begin = begin, .blocks = (uint32_t)(bytes / GS_BLOCK_BYTES), .place = (uint32_t)(place / GS_BLOCK_BYTES),
            .mark = mark};
        r->head = place + bytes;
        r->count++;
        r->waits++;
        if (r->under_way == 0)
            pthread_cond_signal(&r->work);
    }
    pthread_mutex_unlock(&r->lock);
    return put;
}

/* Counts those of the first runs that have come; waits for some where none has. */
static void wait_for_some(gs_read_ring *r)
{
    pthread_mutex_lock(&r->lock);
    if (!r->run[r->first].came) {
        r->wanted = number_of(r, GS_MIN(r->count, RUNS_AT_ONCE) - 1);
        while (!is_news(r) || !r->run[r->first].came)
            pthread_cond_wait(&r->news, &r->lock);
        r->wanted = GS_READ_RING_NONE;
    }
    for (r->ready = 0; r->ready < r->count && r->run[number_of(r, r->ready)].came;)
        r->ready++;
    pthread_mutex_unlock(&r->lock);
}

gs_status gs_read_ring_front(gs_read_ring *r, const gs_read_run **run, const uint8_t **bytes)
{
    assert(r->count > 0);
    if (r->ready == 0)
        wait_for_some(r);
    *run = &r->run[r->first];
    *bytes = r->memory + r->run[r->first].place * GS_BLOCK_BYTES;
    return r->run[r->first].status;
}

void gs_read_ring_pop(gs_read_ring *r)
{
    pthread_mutex_lock(&r->lock);
    r->first = number_of(r, 1);
    r->count--;
    r->ready--;
    pthread_mutex_unlock(&r->lock);
}

void gs_read_ring_drain(gs_read_ring *r)
{
    pthread_mutex_lock(&r->lock);
    r->count -= r->waits;
    r->waits = 0;
    r->wanted = r->first; /* what is given up is told, too, when nothing is under way */
    while (r->under_way > 0)
        pthread_cond_wait(&r->news, &r->lock);
    r->wanted = GS_READ_RING_NONE;
    r->count = r->ready = 0;
    pthread_mutex_unlock(&r->lock);
}
