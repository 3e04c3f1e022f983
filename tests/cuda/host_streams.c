#include "host_streams.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "host_disk.h"
#include "host_memory.h"

#define BLOCKS 64u
#define NAMES 8192u /* of work that is remembered, a stream */
#define HOST_RANGES 4096u
#define PAGES 4096u       /* whose blocks are remembered */
#define PAGE_BYTES 4096u

typedef struct stream {
    bool used, is_default;
    int device;
    unsigned number;
    uint32_t issued, done;      /* pieces of work */
    double ended[NAMES];        /* when each of the last was, by its time */
    uint32_t clock[HOST_CLOCKS]; /* what is before the next piece */
    host_work *first, *last;
    char name[NAMES][48];
} stream;

typedef struct event {
    bool recorded;
    int device;
    unsigned stream;
    uint32_t time, clock[HOST_CLOCKS];
    bool timing;
    double asked; /* when it was recorded by the host */
} event;

/* Who was at a word of the device: times in their streams, 0 for nobody. Rows of an odd number of columns of two bytes
 * begin at any two. Of readers the last is enough while each is before the next; `readers` are all of them, else 0. */
#define WORD_BYTES 2
typedef struct word {
    uint32_t write_time, read_time;
    uint32_t readers; /* in all_readers */
    uint8_t write_stream, read_stream;
} word;

typedef struct block {
    char *first;
    size_t bytes;
    word *words;
    uint32_t *seen; /* of each word, the work that was there last: 2 * turn, + 1 where it wrote */
} block;

/* Times in their streams of those that read a word and are not one before the other; those that are free form a list
 * by their first member, and member 0 is none. */
static uint32_t (*all_readers)[HOST_STREAMS];
static uint32_t readers_made, readers_free;

/* Host memory that work under way reads or writes. */
typedef struct range {
    const char *first, *end;
    bool write;
    unsigned stream;
    uint32_t time;
} range;

static stream streams[HOST_STREAMS];
static unsigned most; /* streams that there were at a time */
static uint32_t host_clock[HOST_CLOCKS]; /* what the host has waited for */
static block blocks[BLOCKS];
static const char *lowest = (const char *)UINTPTR_MAX, *highest; /* of all blocks that ever were */
static range ranges[HOST_RANGES];
static unsigned range_count;
static const host_work *running;
static uint32_t turn; /* counts the work that ran */
static int checks = -1, drop_from = -2, drop_to = -2;

bool host_streams_checks(void)
{
    if (checks < 0) {
        const char *const drop = getenv("GS_TEST_GPU_DROP");
        checks = getenv("GS_TEST_GPU_RACES") != NULL;
        if (drop != NULL)
            sscanf(drop, "%d>%d", &drop_from, &drop_to);
    }
    return checks > 0;
}

static void join(uint32_t *to, const uint32_t *from)
{
    for (unsigned i = 0; i < HOST_CLOCKS; i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
}

const host_work *host_streams_running(void) { return running; }
unsigned host_stream_number(unsigned s) { return streams[s].number; }
uint32_t host_streams_disk_ended(void) { return ++host_clock[HOST_DISK]; }

/* ---- doing work ---- */

/* A library in the place of CUDA's has nothing of the program's. */
static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void do_next(stream *s);
static void abandon_lost(void);

static void do_until(stream *s, uint32_t time)
{
    while (s->done < time)
        do_next(s);
}

static void do_next(stream *s)
{
    host_work *const w = s->first;
    if (w->until != NULL) {
        do_until(&streams[w->value], w->time);
    } else {
        running = w;
        turn++;
        host_memory_open(host_memory_reach(w->device));
        w->run(w);
        running = NULL;
        s->ended[++s->done % NAMES] = seconds_now();
    }
    s->first = w->next;
    if (s->first == NULL)
        s->last = NULL;
    free(w->more);
    free(w);
}

/* A stream's work up to this piece, or what it waits for besides, because the host waits. */
static void wait_until(stream *s, uint32_t time, bool all)
{
    const bool any = all ? s->first != NULL : s->done < time;
    do_until(s, time);
    while (all && s->first != NULL)
        do_next(s);
    if (any)
        host_memory_open(0);
}

void host_streams_drain(void)
{
    abandon_lost();
    for (unsigned i = 0; i < HOST_STREAMS; i++)
        if (streams[i].used)
            (void)host_stream_synchronize(&streams[i]);
}

void host_streams_need_idle(int but, const char *what)
{
    abandon_lost();
    for (unsigned i = 0; i < HOST_STREAMS; i++)
        if (streams[i].used && streams[i].device != but && streams[i].first != NULL) {
            fprintf(stderr, "host GPU: %s while stream %u of GPU %d has work left (\"%s\")\n", what, streams[i].number,
                    streams[i].device, streams[i].first->until != NULL ? "a wait" : streams[i].first->what);
            abort();
        }
}

static atomic_uint lost; /* GPUs, one bit each */

void host_streams_lose(int device) { atomic_fetch_or(&lost, device < 0 ? UINT_MAX : 1u << device); }

static void abandon_lost(void)
{
    for (unsigned i = 0; i < HOST_STREAMS; i++) {
        stream *const s = &streams[i];
        if (!s->used || (atomic_load(&lost) & 1u << s->device) == 0)
            continue;
        while (s->first != NULL) {
            host_work *const w = s->first;
            s->first = w->next;
            free(w->more);
            free(w);
        }
        s->last = NULL;
        s->done = s->issued;
    }
}

unsigned host_streams_of(int device)
{
    unsigned n = 0;
    for (unsigned i = 0; i < HOST_STREAMS; i++)
        n += streams[i].used && !streams[i].is_default && streams[i].device == device;
    return n;
}

static void append(stream *s, host_work *w)
{
    w->next = NULL;
    *(s->last == NULL ? &s->first : &s->last->next) = w;
    s->last = w;
}

gs_cu_result host_streams_submit(gs_cu_handle handle, const host_work *w)
{
    stream *const s = handle;
    host_work *const own = malloc(sizeof(*own));
    if (s == NULL || !s->used || own == NULL)
        return 1;
    *own = *w;
    own->until = NULL;
    join(s->clock, host_clock);
    own->device = s->device;
    own->stream = (unsigned)(s - streams);
    own->time = s->clock[own->stream] = ++s->issued;
    memcpy(own->clock, s->clock, sizeof(own->clock));
    memcpy(s->name[own->time % NAMES], own->what, sizeof(own->what));
    append(s, own);
    return 0;
}

/* ---- streams and events ---- */

gs_cu_result host_stream_create(gs_cu_handle *handle, unsigned flags)
{
    (void)flags;
    for (unsigned i = 0; i < HOST_STREAMS && host_current_device() >= 0; i++)
        if (!streams[i].used) { /* its times go on: others' clocks know them */
            streams[i].used = true;
            streams[i].device = host_current_device();
            most = i + 1 > most ? i + 1 : most;
            streams[i].number = i; /* of devices that are opened again, the same */
            *handle = &streams[i];
            return 0;
        }
    return 1;
}

gs_cu_result host_stream_destroy(gs_cu_handle handle)
{
    const gs_cu_result r = host_stream_synchronize(handle);
    if (r == 0)
        ((stream *)handle)->used = false;
    return r;
}

/* NULL is the default stream of the thread's GPU, which a library of the process may work on: it takes events, waits
 * and who waits for it. No work of ours goes there, so for that it stays an invalid handle. */
static stream *find(gs_cu_handle handle)
{
    const int device = host_current_device();
    unsigned i = 0;
    if (handle != NULL || device < 0)
        return handle;
    while (i < HOST_STREAMS && !(streams[i].is_default && streams[i].device == device))
        i++;
    if (i == HOST_STREAMS && host_stream_create(&handle, 0) == 0)
        ((stream *)handle)->is_default = true;
    return i == HOST_STREAMS ? handle : &streams[i];
}

gs_cu_result host_stream_synchronize(gs_cu_handle handle)
{
    stream *const s = find(handle);
    if (s == NULL || !s->used)
        return 1;
    wait_until(s, s->issued, true);
    join(host_clock, s->clock);
    return 0;
}

int host_stream_device(gs_cu_handle handle) { return handle == NULL ? -1 : ((const stream *)handle)->device; }

gs_cu_result host_event_create_on(int device, gs_cu_handle *handle)
{
    if (device < 0 || (*handle = calloc(1, sizeof(event))) == NULL)
        return HOST_INVALID_CONTEXT;
    ((event *)*handle)->device = device;
    return 0;
}

gs_cu_result host_event_create(gs_cu_handle *handle, unsigned flags)
{
    const gs_cu_result r = host_event_create_on(host_current_device(), handle);
    if (r == 0)
        ((event *)*handle)->timing = (flags & GS_CU_EVENT_DISABLE_TIMING) == 0;
    return r;
}

gs_cu_result host_event_destroy(gs_cu_handle handle)
{
    free(handle);
    return handle == NULL;
}

static void run_nothing(const host_work *w) { (void)w; }

/* Times count pieces of work: where a wait is the last that the stream was told, one comes after it, for the event. */
gs_cu_result host_event_record(gs_cu_handle handle, gs_cu_handle on)
{
    event *const e = handle;
    stream *const s = find(on);
    if (e == NULL || s == NULL || !s->used || e->device != s->device)
        return HOST_INVALID_HANDLE;
    if (s->last != NULL && s->last->until != NULL &&
        host_streams_submit(s, &(host_work){.run = run_nothing, .what = "event"}) != 0)
        return 1;
    join(s->clock, host_clock);
    *e = (event){.recorded = true, .device = s->device, .stream = (unsigned)(s - streams), .time = s->issued,
                 .timing = e->timing, .asked = seconds_now()};
    memcpy(e->clock, s->clock, sizeof(e->clock));
    return 0;
}

/* Does $GS_TEST_GPU_DROP leave this wait out? `to`: a stream's number, or -1. */
static bool is_dropped(const event *e, int to)
{
    (void)host_streams_checks();
    return (drop_from == -1 || drop_from == (int)streams[e->stream].number) && to == drop_to;
}

/* An event that was never recorded holds nobody up, as in CUDA. What an event's stream waits for is done before it. */
gs_cu_result host_stream_wait(gs_cu_handle handle, gs_cu_handle what, unsigned flags)
{
    stream *const s = find(handle);
    const event *const e = what;
    host_work *w;
    if (s == NULL || !s->used || e == NULL || flags != 0)
        return 1;
    if (!e->recorded || is_dropped(e, (int)s->number))
        return 0;
    if ((w = calloc(1, sizeof(*w))) == NULL)
        return 1;
    w->until = w;
    w->value = (int)e->stream;
    w->time = e->time;
    append(s, w);
    join(s->clock, e->clock);
    return 0;
}

/* With GS_HOST_GPU_STALL each third thread that has waited goes on 5 ms late, as one that others have stopped. */
static void stall(void)
{
    static atomic_uint waits;
    if (getenv("GS_HOST_GPU_STALL") != NULL && atomic_fetch_add(&waits, 1) % 3 == 0)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

gs_cu_result host_event_synchronize(gs_cu_handle handle)
{
    const event *const e = handle;
    if (e == NULL)
        return 1;
    if (e->recorded && !is_dropped(e, -1)) {
        wait_until(&streams[e->stream], e->time, false);
        join(host_clock, e->clock);
        stall();
    }
    return 0;
}

gs_cu_result host_event_query(gs_cu_handle handle)
{
    const event *const e = handle;
    if (e == NULL)
        return 1;
    if (e->recorded && !is_dropped(e, -1) && streams[e->stream].done < e->time)
        return GS_CU_NOT_READY; /* and so until somebody waits */
    return host_event_synchronize(handle);
}

/* When its stream came to it. */
static double reached(const event *e)
{
    const double before = streams[e->stream].ended[e->time % NAMES];
    return before > e->asked ? before : e->asked;
}

/* As CUDA: both were made to keep time, were recorded and have been reached. */
gs_cu_result host_event_elapsed(float *milliseconds, gs_cu_handle begin, gs_cu_handle end)
{
    const event *const a = begin, *const b = end;
    if (a == NULL || b == NULL || !a->timing || !b->timing || !a->recorded || !b->recorded)
        return HOST_INVALID_HANDLE;
    if (streams[a->stream].done < a->time || streams[b->stream].done < b->time)
        return GS_CU_NOT_READY;
    *milliseconds = (float)((reached(b) - reached(a)) * 1e3);
    return 0;
}

/* ---- races ---- */

static void race(const char *how, const void *p, unsigned other, uint32_t time)
{
    fprintf(stderr, "host GPU: RACE: \"%s\" (stream %u) %s %p, where \"%s\" (stream %u) was, and nothing orders them\n",
            running->what, streams[running->stream].number, how, p, streams[other].name[time % NAMES],
            streams[other].number);
    abort();
}

/* Is that piece of work before the running one? */
static bool before(unsigned other, uint32_t time) { return time <= running->clock[other]; }

static uint32_t take_readers(void)
{
    uint32_t i = readers_free;
    if (i != 0) {
        readers_free = all_readers[i][0];
    } else {
        i = ++readers_made;
        if ((i & (i - 1)) == 0 && (all_readers = realloc(all_readers, 2 * i * sizeof(*all_readers))) == NULL)
            abort();
    }
    memset(all_readers[i], 0, sizeof(all_readers[i]));
    return i;
}

static void note_read(word *w)
{
    if (w->readers == 0 && w->read_time != 0 && !before(w->read_stream, w->read_time)) {
        w->readers = take_readers();
        all_readers[w->readers][w->read_stream] = w->read_time;
    }
    if (w->readers != 0)
        all_readers[w->readers][running->stream] = running->time;
    w->read_time = running->time;
    w->read_stream = (uint8_t)running->stream;
}

/* All that read it are before the running work, or there is a race. */
static void note_write(word *w, const char *p)
{
    const char *const how = "writes over what is being read at";
    if (w->read_time != 0 && !before(w->read_stream, w->read_time))
        race(how, p, w->read_stream, w->read_time);
    if (w->readers != 0) {
        uint32_t *const read_time = all_readers[w->readers];
        for (unsigned s = 0; s < most; s++)
            if (read_time[s] != 0 && !before(s, read_time[s]))
                race(how, p, s, read_time[s]);
        read_time[0] = readers_free;
        readers_free = w->readers;
    }
    *w = (word){.write_time = running->time, .write_stream = (uint8_t)running->stream};
}

/* What the running work did there before says nothing new. */
static void access_words(const block *b, size_t from, size_t words, bool write)
{
    const uint32_t wrote = turn << 1 | 1, mark = turn << 1 | write;
    for (size_t i = from; i < from + words; i++) {
        word *const w = &b->words[i];
        const char *const p = b->first + WORD_BYTES * i;
        if (b->seen[i] == mark || b->seen[i] == wrote)
            continue;
        b->seen[i] = mark;
        if (w->write_time != 0 && !before(w->write_stream, w->write_time))
            race(write ? "writes over what is being written at" : "reads", p, w->write_stream, w->write_time);
        if (write)
            note_write(w, p);
        else
            note_read(w);
    }
}

/* Forgets what the host has waited for. */
static void prune_ranges(void)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < range_count; i++)
        if (ranges[i].time > host_clock[ranges[i].stream])
            ranges[kept++] = ranges[i];
    range_count = kept;
}

static void access_host(const char *p, size_t bytes, bool write)
{
    if (range_count == HOST_RANGES)
        prune_ranges();
    for (unsigned i = 0; i < range_count; i++) {
        const range *const r = &ranges[i];
        if (p < r->end && r->first < p + bytes && (write || r->write) && !before(r->stream, r->time))
            race(write ? "writes host memory" : "reads host memory", p, r->stream, r->time);
    }
    range *const last = range_count > 0 ? &ranges[range_count - 1] : NULL;
    if (last != NULL && last->end == p && last->write == write && last->stream == running->stream &&
        last->time == running->time)
        last->end = p + bytes; /* a kernel goes on */
    else if (range_count < HOST_RANGES)
        ranges[range_count++] = (range){p, p + bytes, write, running->stream, running->time};
}

/* NULL: none of them. Kernels touch a few pages of many blocks again and again. */
static const block *block_of(const char *p)
{
    static const block *at_page[PAGES];
    const block **const at = &at_page[(uintptr_t)p / PAGE_BYTES % PAGES];
    if (p < lowest || p >= highest)
        return NULL;
    if (*at != NULL && p >= (*at)->first && p < (*at)->first + (*at)->bytes)
        return *at;
    for (unsigned i = 0; i < BLOCKS; i++)
        if (p >= blocks[i].first && p < blocks[i].first + blocks[i].bytes)
            return *at = &blocks[i];
    return NULL;
}

void host_streams_access(const void *at, size_t bytes, bool write)
{
    const char *const p = at;
    if (running == NULL || bytes == 0 || !host_streams_checks())
        return;
    const block *const b = block_of(p);
    if (b == NULL && host_is_mapped(p, bytes)) {
        host_streams_host_access(p, bytes, write);
        return;
    }
    if (b == NULL) {
        fprintf(stderr, "host GPU: \"%s\" %s %p, which is no memory that a GPU sees\n", running->what,
                write ? "writes" : "reads", at);
        abort();
    }
    const size_t first = (size_t)(p - b->first), from = first / WORD_BYTES;
    access_words(b, from, (first + bytes + WORD_BYTES - 1) / WORD_BYTES - from, write);
}

void host_streams_host_access(const void *at, size_t bytes, bool write)
{
    if (!host_streams_checks() || running == NULL || bytes == 0)
        return;
    access_host(at, bytes, write);
    host_disk_access(at, bytes, write);
}

/* Zeroed, and taken page by page as it is touched. */
static void *sparse(size_t count, size_t size)
{
    void *const p =
        mmap(NULL, (count + 1) * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        abort();
    return p;
}

void host_streams_memory(void *p, size_t bytes)
{
    if (!host_streams_checks())
        return;
    for (unsigned i = 0; i < BLOCKS; i++) {
        block *const b = &blocks[i];
        const size_t words = (bytes == 0 ? b->bytes : bytes) / WORD_BYTES;
        if (bytes == 0 && b->first == p) {
            munmap(b->words, (words + 1) * sizeof(*b->words));
            munmap(b->seen, (words + 1) * sizeof(*b->seen));
            *b = (block){NULL, 0, NULL, NULL};
            return;
        }
        if (bytes > 0 && b->first == NULL) {
            *b = (block){p, bytes, sparse(words, sizeof(*b->words)), sparse(words, sizeof(*b->seen))};
            lowest = b->first < lowest ? b->first : lowest;
            highest = b->first + bytes > highest ? b->first + bytes : highest;
            return;
        }
    }
}
