/* ranks.c - the ranks of a run, by a module that calls MPI; nothing where the process is alone. */
#include "ranks/ranks.h"

#include <assert.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/size.h"
#include "gnnstream.h"
#include "ranks/ranks_internal.h"

#define CHUNK_BYTES (256 * GS_KIB) /* that each rank says in a meeting, at most */
#define WORD_BYTES 8ull            /* before that: what it has come to */
#define SAID_BYTES (WORD_BYTES + CHUNK_BYTES)

static struct {
    const gs_ranks_module *module; /* NULL: alone */
    uint32_t self, count, here[2];
    uint8_t *said; /* [count][SAID_BYTES] in a meeting */
    bool failed;
    gs_ranks_network network; /* zeroed: not measured */
} ranks = {.count = 1, .here = {0, 1}};

const gs_ranks_module *gs_ranks__module(void) { return ranks.module; }
uint32_t gs_ranks_count(void) { return ranks.count; }
uint32_t gs_ranks_self(void) { return ranks.self; }
uint32_t gs_ranks_place_on_host(void) { return ranks.here[0]; }
uint32_t gs_ranks_on_host(void) { return ranks.here[1]; }

uint32_t gs_ranks_threads(uint32_t said)
{
    return said != 0 ? said : GS_MAX(gs_machine_cpus() / ranks.here[1], 1u);
}
bool gs_ranks_have_failed(void) { return ranks.failed; }

static gs_status fail(int error)
{
    char text[256] = "";
    ranks.module->explain(error, text, sizeof(text));
    return gs_fail(GS_EIO, "rank %u: MPI: %s", ranks.self, text);
}

/* ---- waiting -------------------------------------------------------------- */

#define SPINS 64
#define NAP_LEAST 10e-6
#define NAP_MOST 500e-6

/* MPI's own waits take a processor, which the others may need. */
static gs_status wait_for(gs_ranks_message *m, double nap_most)
{
    double nap = NAP_LEAST;
    bool done = false;

    for (int spins = 0;; spins++) {
        const int error = ranks.module->test(m, &done);
        if (error != 0)
            return fail(error);
        if (done)
            return GS_OK;
        if (spins < SPINS)
            continue;
        gs_sleep(nap);
        nap = GS_MIN(2 * nap, nap_most);
    }
}

/* What goes to another rank, or comes from it; *made: there is something. */
static gs_status begin_one(gs_ranks_message *m, bool *made, int channel, bool send, uint32_t rank, void *memory,
                           uint64_t bytes)
{
    const gs_ranks_piece all = {0, bytes};
    int error = 0;

    *made = rank != ranks.self && bytes > 0;
    if (*made && (error = ranks.module->make(m, channel, send, rank, memory, &all, 1)) == 0)
        error = ranks.module->begin(m);
    return error != 0 ? fail(error) : GS_OK;
}

/* Waits for [2 * ranks] messages, of those that were made. */
static gs_status end_all(gs_ranks_message *m, const bool *made, gs_status st)
{
    for (uint32_t k = 0; k < 2 * ranks.count && st == GS_OK; k++)
        st = made[k] ? wait_for(&m[k], NAP_MOST) : GS_OK;
    for (uint32_t k = 0; k < 2 * ranks.count && st == GS_OK; k++)
        if (made[k])
            (void)ranks.module->drop(&m[k]);
    return st;
}

/* ---- meetings ------------------------------------------------------------- */

static char *said_by(uint32_t rank) { return (char *)ranks.said + rank * SAID_BYTES + WORD_BYTES; }

/* Each tells each other what it has come to and `bytes` of x, in one message: a rank that waits for its processor is
 * waited for once. */
static gs_status tell_all(int32_t own, const void *x, uint64_t bytes)
{
    uint8_t *const mine = ranks.said + ranks.self * SAID_BYTES;
    gs_ranks_message m[2 * GS_RANKS_MOST];
    bool made[2 * GS_RANKS_MOST] = {false};
    gs_status st = GS_OK;

    assert(bytes <= CHUNK_BYTES);
    memcpy(mine, &own, sizeof(own));
    if (bytes > 0)
        memmove(mine + WORD_BYTES, x, bytes); /* it may be there */
    for (uint32_t r = 0; r < ranks.count && st == GS_OK; r++)
        st = begin_one(&m[r], &made[r], GS_RANKS_MEETINGS, false, r, ranks.said + r * SAID_BYTES, SAID_BYTES);
    for (uint32_t r = 0; r < ranks.count && st == GS_OK; r++)
        st = begin_one(&m[ranks.count + r], &made[ranks.count + r], GS_RANKS_MEETINGS, true, r, mine,
                       WORD_BYTES + bytes);
    return end_all(m, made, st);
}

#define SHARE_MOST (1ull << 30) /* MPI counts in int */
static gs_status share(void *x, uint64_t bytes, uint32_t from)
{
    gs_ranks_message m;
    const int error = ranks.module->share(&m, x, (uint32_t)bytes, from);
    return error != 0 ? fail(error) : wait_for(&m, NAP_MOST);
}

/* Every meeting begins so, and has what others say behind it. One that is not well meets them in any. */
static gs_status meet(gs_status own, const void *x, uint64_t bytes)
{
    int32_t all[GS_RANKS_MOST];
    char why[GS_ERROR_BYTES];
    uint32_t first = 0;

    if (ranks.failed)
        return own != GS_OK ? own : gs_fail(GS_EIO, "the ranks have failed before");
    snprintf(why, sizeof(why), "%s", own != GS_OK ? gs_last_error() : "");
    GS_TRY(tell_all((int32_t)own, x, bytes));
    for (uint32_t r = 0; r < ranks.count; r++)
        memcpy(&all[r], ranks.said + r * SAID_BYTES, sizeof(all[r]));
    while (first < ranks.count && all[first] == GS_OK)
        first++;
    if (first == ranks.count)
        return GS_OK;
    ranks.failed = true;
    GS_TRY(share(why, sizeof(why), first));
    bool same = true;
    for (uint32_t r = 0; r < ranks.count; r++)
        same = same && all[r] == all[first];
    if (same) /* whatever it is, it is of all */
        return gs_fail((gs_status)all[first], "%s", why);
    return gs_fail((gs_status)all[first], "rank %u: %s", first, why);
}

gs_status gs_ranks_agree(gs_status st) { return ranks.count == 1 ? st : meet(st, NULL, 0); }

gs_status gs_ranks_gather(void *all, const void *own, uint64_t bytes)
{
    if (ranks.count == 1) {
        memcpy(all, own, bytes);
        return GS_OK;
    }
    GS_TRY(meet(GS_OK, own, bytes));
    for (uint32_t r = 0; r < ranks.count; r++)
        memcpy((char *)all + r * bytes, said_by(r), bytes);
    return GS_OK;
}

gs_status gs_ranks_share_of(uint32_t rank, void *x, uint64_t bytes)
{
    const uint64_t said = GS_MIN(bytes, CHUNK_BYTES);

    if (ranks.count == 1)
        return GS_OK;
    GS_TRY(meet(GS_OK, x, ranks.self == rank ? said : 0));
    memcpy(x, said_by(rank), said);
    for (uint64_t at = said; at < bytes; at += SHARE_MOST)
        GS_TRY(share((char *)x + at, GS_MIN(SHARE_MOST, bytes - at), rank));
    return GS_OK;
}

gs_status gs_ranks_share(void *x, uint64_t bytes) { return gs_ranks_share_of(0, x, bytes); }

/* to[i] is made of number i of those that each rank has said from byte `at` on. */
typedef void join_fn(void *to, uint64_t at, uint64_t count);

static gs_status join_all(char *x, uint64_t bytes, uint64_t size, join_fn *join)
{
    uint64_t at = 0;

    do {
        const uint64_t n = GS_MIN(CHUNK_BYTES, bytes - at);
        GS_TRY(meet(GS_OK, x + at, n));
        join(x + at, 0, n / size);
        at += n;
    } while (at < bytes);
    return GS_OK;
}

/* In the order of the ranks: of `one`, what there is so far, and `next`. */
#define EACH(X)                                                                 \
    X(gs_ranks_unite, uint64_t, uint64_t, one | next)                           \
    X(gs_ranks_sum_u64, uint64_t, uint64_t, one + next)                         \
    X(gs_ranks_sum_u32, uint32_t, uint64_t, GS_MIN(one + next, UINT32_MAX))     \
    X(gs_ranks_least_u8, uint8_t, uint8_t, GS_MIN(one, next))                   \
    X(gs_ranks_sum_f32, float, float, one + next)                               \
    X(gs_ranks_sum_f64, double, double, one + next)

#define X(name, type, wide, joined)                                                                        \
    static void name##_of(void *to, uint64_t at, uint64_t count)                                           \
    {                                                                                                      \
        for (uint64_t i = 0; i < count; i++) {                                                             \
            wide one = ((const type *)(said_by(0) + at))[i];                                               \
            for (uint32_t r = 1; r < ranks.count; r++) {                                                   \
                const type next = ((const type *)(said_by(r) + at))[i];                                    \
                one = (wide)(joined);                                                                      \
            }                                                                                              \
            ((type *)to)[i] = (type)one;                                                                   \
        }                                                                                                  \
    }                                                                                                      \
    gs_status name(type *x, uint64_t count)                                                                \
    {                                                                                                      \
        return ranks.count == 1 ? GS_OK : join_all((char *)x, count * sizeof(*x), sizeof(*x), name##_of);  \
    }
EACH(X)
#undef X

gs_status gs_ranks_sum_both(double *x, uint64_t doubles, float *y, uint64_t floats)
{
    const uint64_t first = doubles * sizeof(*x), bytes = first + floats * sizeof(*y);

    if (bytes > CHUNK_BYTES) {
        GS_TRY(gs_ranks_sum_f64(x, doubles));
        return gs_ranks_sum_f32(y, floats);
    }
    memcpy(said_by(ranks.self), x, first);
    if (floats > 0)
        memcpy(said_by(ranks.self) + first, y, bytes - first);
    GS_TRY(meet(GS_OK, said_by(ranks.self), bytes));
    gs_ranks_sum_f64_of(x, 0, doubles);
    gs_ranks_sum_f32_of(y, first, floats);
    return GS_OK;
}

/* ---- messages ------------------------------------------------------------- */

gs_status gs_ranks_make(gs_ranks_message *m, bool send, uint32_t rank, void *memory, const gs_ranks_piece *piece,
                        uint32_t pieces)
{
    const int error = ranks.module->make(m, GS_RANKS_ROWS, send, rank, memory, piece, pieces);
    return error != 0 ? fail(error) : GS_OK;
}

void gs_ranks_drop(gs_ranks_message *m) { (void)ranks.module->drop(m); }

gs_status gs_ranks_begin(gs_ranks_message *m)
{
    const int error = ranks.module->begin(m);
    return error != 0 ? fail(error) : GS_OK;
}

gs_status gs_ranks_test(gs_ranks_message *m, bool *done)
{
    const int error = ranks.module->test(m, done);
    return error != 0 ? fail(error) : GS_OK;
}

gs_status gs_ranks_pass(bool send, uint32_t rank, void *memory, uint64_t bytes)
{
    const gs_ranks_piece all = {0, bytes};
    gs_ranks_message m;
    gs_status st;

    GS_TRY(gs_ranks_make(&m, send, rank, memory, &all, 1));
    if ((st = gs_ranks_begin(&m)) == GS_OK)
        st = wait_for(&m, NAP_MOST);
    gs_ranks_drop(&m);
    return st;
}

gs_status gs_ranks_share_parts(void *x, const uint64_t *first)
{
    gs_ranks_message m[2 * GS_RANKS_MOST];
    bool made[2 * GS_RANKS_MOST] = {false};
    gs_status st = ranks.count == 1 ? GS_OK : meet(GS_OK, NULL, 0);

    for (uint32_t r = 0; r < ranks.count && st == GS_OK; r++)
        st = begin_one(&m[r], &made[r], GS_RANKS_ROWS, false, r, (char *)x + first[r], first[r + 1] - first[r]);
    for (uint32_t r = 0; r < ranks.count && st == GS_OK; r++)
        st = begin_one(&m[ranks.count + r], &made[ranks.count + r], GS_RANKS_ROWS, true, r,
                       (char *)x + first[ranks.self], first[ranks.self + 1] - first[ranks.self]);
    return end_all(m, made, st);
}

gs_status gs_ranks_swap(void *out, const uint64_t *sent, void *in, uint64_t *come, uint64_t room, uint64_t *all)
{
    uint64_t table[GS_RANKS_MOST * GS_RANKS_MOST] = {0};
    gs_ranks_message m[2 * GS_RANKS_MOST];
    bool made[2 * GS_RANKS_MOST] = {false};
    gs_status st = GS_OK;

    GS_TRY(gs_ranks_gather(table, sent, ranks.count * sizeof(*sent)));
    *all = 0;
    for (uint32_t k = 0; k < ranks.count * ranks.count; k++)
        *all += table[k];
    for (uint32_t r = 0; r < ranks.count; r++) {
        come[r] = table[r * ranks.count + ranks.self];
        if (come[r] > room)
            return gs_fail(GS_EIO, "rank %u sends %lu bytes, of %lu that there is room for", r, come[r], room);
    }
    for (uint32_t r = 0; r < ranks.count && st == GS_OK; r++)
        st = begin_one(&m[r], &made[r], GS_RANKS_ROWS, false, r, (char *)in + r * room, come[r]);
    for (uint32_t r = 0; r < ranks.count && st == GS_OK; r++)
        st = begin_one(&m[ranks.count + r], &made[ranks.count + r], GS_RANKS_ROWS, true, r, (char *)out + r * room,
                       sent[r]);
    return end_all(m, made, st);
}

/* ---- the network ---------------------------------------------------------- */

/* Within a machine: bytes are copied into memory and out of it, by processors that the ranks share. */
static const gs_ranks_network of_one_machine = {.bps = 0x1p28, .seconds = 0x1p-15, .meeting = 0x1p-12};

/* The first of some times that each sends to the next goes as fast as what shapes traffic lets a burst go. Which of two
 * is ahead changes from round to round: a round alone may find what it waits for there. */
#define TIMES 6
#define ROUNDS 4

static gs_status do_rounds(gs_ranks_message *send, gs_ranks_message *receive)
{
    gs_status st = GS_OK;

    for (int i = 0; i < ROUNDS && st == GS_OK; i++)
        if ((st = gs_ranks_begin(receive)) == GS_OK && (st = gs_ranks_begin(send)) == GS_OK &&
            (st = wait_for(receive, NAP_LEAST)) == GS_OK)
            st = wait_for(send, NAP_LEAST);
    return st;
}

/* Seconds of a round in which each sends to the next. */
static gs_status time_round(double *seconds, uint64_t bytes)
{
    const uint32_t next = (ranks.self + 1) % ranks.count, before = (ranks.self + ranks.count - 1) % ranks.count;
    const gs_ranks_piece all = {0, bytes};
    gs_ranks_message send, receive;
    gs_status st = GS_OK;

    GS_TRY(gs_ranks_make(&send, true, next, said_by(0), &all, 1));
    GS_TRY(gs_ranks_make(&receive, false, before, said_by(1), &all, 1));
    *seconds = INFINITY;
    for (int i = 0; i < TIMES && st == GS_OK; i++) {
        const double begin = gs_now();
        st = do_rounds(&send, &receive);
        *seconds = i == 0 ? INFINITY : fmin(*seconds, (gs_now() - begin) / ROUNDS);
    }
    gs_ranks_drop(&send);
    gs_ranks_drop(&receive);
    return st;
}

/* Seconds of a meeting behind so much work: a rank that waits sleeps meanwhile. */
#define WORK_SECONDS 1e-3

static gs_status time_meeting(double *seconds)
{
    gs_status st = GS_OK;

    *seconds = INFINITY;
    for (int i = 0; i < TIMES && st == GS_OK; i++) {
        const double begin = gs_now();
        for (int k = 0; k < ROUNDS && st == GS_OK; k++) {
            for (const double work = gs_now(); gs_now() < work + WORK_SECONDS;)
                ;
            st = gs_ranks_agree(GS_OK);
        }
        *seconds = fmin(*seconds, (gs_now() - begin) / ROUNDS - WORK_SECONDS);
    }
    return st;
}

static gs_status measure(gs_ranks_network *out)
{
    double own[3], all[GS_RANKS_MOST][3], most[3] = {1e-6, 1e-6, 1e-6};

    GS_TRY(time_round(&own[0], 1));
    GS_TRY(time_round(&own[1], CHUNK_BYTES));
    GS_TRY(time_meeting(&own[2]));
    own[1] -= own[0];
    GS_TRY(gs_ranks_gather(all, own, sizeof(own)));
    for (uint32_t r = 0; r < ranks.count; r++)
        for (int k = 0; k < 3; k++)
            most[k] = fmax(most[k], all[r][k]);
    *out = (gs_ranks_network){.seconds = exp2(round(log2(most[0]))), .meeting = exp2(round(log2(most[2]))),
                              .bps = exp2(round(log2((double)CHUNK_BYTES / most[1])))};
    return GS_OK;
}

gs_status gs_ranks_measure(gs_ranks_network *out)
{
    if (ranks.network.bps == 0 && ranks.here[1] != ranks.count) /* once: a run's programs are compared by one network */
        GS_TRY(measure(&ranks.network));
    *out = ranks.here[1] != ranks.count ? ranks.network : of_one_machine;
    return GS_OK;
}

/* ---- joining, leaving ----------------------------------------------------- */

/* How many ranks the launcher says that it started; 1 where it does not say how many, 0 where there is none. */
static uint32_t launched(void)
{
    const char *const said[] = {getenv("PMI_SIZE"), getenv("OMPI_COMM_WORLD_SIZE")};
    for (size_t k = 0; k < GS_ARRAY_LEN(said); k++)
        if (said[k] != NULL && atoi(said[k]) > 0)
            return (uint32_t)atoi(said[k]);
    return getenv("PMIX_RANK") != NULL ? 1 : 0;
}

/* Which of them this one is, by the launcher. */
static uint32_t launched_as(void)
{
    const char *const said[] = {getenv("PMI_RANK"), getenv("OMPI_COMM_WORLD_RANK"), getenv("PMIX_RANK")};
    for (size_t k = 0; k < GS_ARRAY_LEN(said); k++)
        if (said[k] != NULL && atoi(said[k]) > 0)
            return (uint32_t)atoi(said[k]);
    return 0;
}

/* Beside this library, or beside the program where that has all of it. */
static void *load_module(void)
{
    char path[4096];
    Dl_info at;
    if (dladdr((const void *)&ranks, &at) == 0 || at.dli_fname == NULL)
        return NULL;
    const char *const slash = strrchr(at.dli_fname, '/');
    const int folder = slash == NULL ? 0 : (int)(slash + 1 - at.dli_fname);
    snprintf(path, sizeof(path), "%.*slibgnnstream_mpi.so", folder, at.dli_fname);
    (void)setenv("UCX_LOG_LEVEL", "error", 0); /* signs that nobody takes at the end are no news */
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

/* MPI may wait for ever as it closes, as MPICH 4.0 over UCX's TCP does now and then in any program that shares
 * something at its end; where the module knows the launcher it leaves that out. All is written and taken by then. */
#define CLOSE_SECONDS 8.0 /* more than the module gives a launcher to answer */

static void *end_anyway(void *status)
{
    gs_sleep(CLOSE_SECONDS);
    _exit((int)(intptr_t)status);
}

/* Files may still be written by another rank, which does not hear of this one any more then. One that was refused what
 * the others were not is met here by theirs, which would wait for ever else. */
static void leave(int status, void *unused)
{
    pthread_t thread;

    (void)unused;
    if (!ranks.failed)
        (void)meet(status == 0 ? GS_OK
                               : gs_fail(GS_EINVAL, "ended with status %d: start all ranks by the same command and "
                                                    "options, or try that of this rank alone", status), NULL, 0);
    gs_ranks__stop_watch();
    (void)fflush(NULL);
    const bool watched = pthread_create(&thread, NULL, end_anyway, (void *)(intptr_t)status) == 0; /* else it waits */
    (void)ranks.module->close();
    if (watched && pthread_cancel(thread) == 0) /* what else there is to be done at exit takes its time */
        (void)pthread_join(thread, NULL);
}

static gs_status check_count(uint32_t count)
{
    return count <= GS_RANKS_MOST ? GS_OK : gs_fail(GS_EINVAL, "%u ranks: %u are the most", count, GS_RANKS_MOST);
}

static gs_status join(void)
{
    bool threads = false;
    const int error = ranks.module->open(&ranks.self, &ranks.count, ranks.here, &threads);

    if (error != 0)
        return fail(error);
    ranks.failed = true; /* one that is refused leaves, too, else its launcher kills the others; it meets nobody */
    (void)on_exit(leave, NULL);
    if (launched() > 1 && ranks.count == 1) {
        ranks.self = launched_as();
        return gs_fail(GS_EUNSUPPORTED, "one of %u ranks, but its MPI knows of no other: start it with the mpirun of "
                       "the MPI that gnnstream was built with", launched());
    }
    GS_TRY(check_count(ranks.count)); /* not all launchers say how many they start */
    if (!threads)
        return gs_fail(GS_EUNSUPPORTED, "this MPI cannot be called by several threads (MPI_THREAD_MULTIPLE)");
    GS_NEED((ranks.said = gs_malloc_array(ranks.count, SAID_BYTES)) != NULL, "out of memory: %u ranks", ranks.count);
    ranks.failed = false;
    return ranks.count > 1 ? gs_ranks__start_watch() : GS_OK;
}

/* Until the ranks are joined, which is for ever where one never comes, a signal ends this one as any program. */
static void *take_signals(void *unused)
{
    (void)unused;
    for (;;)
        pause();
    return NULL;
}

gs_status gs_ranks_open(void)
{
    const uint32_t started = launched();
    void *library;

    if (ranks.module != NULL || started == 0)
        return GS_OK;
    if (started > 1)
        ranks.self = launched_as(); /* one speaks for all that are refused before they have joined */
    GS_TRY(check_count(started));
    library = load_module();
    const char *const why = library == NULL ? dlerror() : NULL;
    if (library != NULL)
        ranks.module = dlsym(library, GS_RANKS_MODULE_NAME);
    if (ranks.module != NULL) {
        sigset_t all, before;
        pthread_t taker;
        const bool takes = pthread_create(&taker, NULL, take_signals, NULL) == 0;
        sigfillset(&all); /* of MPI's threads none takes what ends the program: that is for whoever listens for it */
        pthread_sigmask(SIG_SETMASK, &all, &before);
        const gs_status st = join();
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (takes && pthread_cancel(taker) == 0)
            (void)pthread_join(taker, NULL);
        return st;
    }
    if (started == 1) /* as good as alone */
        return GS_OK;
    return gs_fail(GS_EUNSUPPORTED, "one of %u ranks, but gnnstream finds no MPI (%s): install the one that it was "
                   "built with, or libmpich-dev or libopenmpi-dev, and build all of it again", started,
                   why == NULL ? "libgnnstream_mpi.so has not what is called" : why);
}

static void print(void *unused, const char *line)
{
    (void)unused;
    fprintf(stderr, "gnnstream: %s\n", line);
}

static struct {
    gs_warn_fn line;
    void *context;
} say = {.line = print};

void gs_on_abort(gs_warn_fn line, void *context)
{
    say.line = line == NULL ? print : line;
    say.context = context;
}

/* A launcher that is told to end all may do it before it has passed on what they said. */
#define WORDS_ARRIVE 0.1

void gs_ranks_abort(const char *why)
{
    char line[GS_ERROR_BYTES + 32];
    snprintf(line, sizeof(line), "rank %u: %s", ranks.self, why);
    say.line(say.context, line);
    gs_sleep(WORDS_ARRIVE);
    if (ranks.module != NULL)
        ranks.module->abort();
    _exit(1);
}
