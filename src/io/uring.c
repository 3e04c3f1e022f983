/* uring.c - pieces moved by one io_uring, with files and buffers registered
 * where the system allows it. */
#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/size.h"
#include "io/io_internal.h"

/* Files of a run are the program's arrays and two of edges; what comes after the table's end goes unregistered. */
#define TABLE_FILES 256u
/* Kernel limits: one registered buffer, and how many (IORING_MAX_REG_BUFFERS). */
#define BUFFER_BYTES GS_GIB
#define MAX_BUFFERS (1u << 14)
/* A kernel short of memory answers EAGAIN; wait this often, 1 ms each. */
#define MAX_WAITS 5000u

/* One gs_io_buffer: registered buffers [first, first + ceil(bytes / BUFFER_BYTES)). */
typedef struct region {
    const char *base;
    uint64_t bytes;
    uint32_t first;
} region;

typedef struct uring {
    struct io_uring ring;
    bool ring_open;
    region *regions;       /* sorted as in the config */
    uint32_t region_count; /* 0 where buffers are not registered */
    bool unregistered;     /* buffers were given and the kernel refused them */
    bool file_table;
    bool in_table[TABLE_FILES];
    gs_io__list unsent;    /* their entries stand in the submission queue, in this order */
    uint32_t unsent_count;
    gs_io__list failed;    /* could not be sent; `result` is set */
    uint32_t in_kernel;
    int broken;            /* errno of a ring that takes no more; 0 */
} uring;

static void uring_close(void *context)
{
    uring *u = context;
    if (u->ring_open)
        io_uring_queue_exit(&u->ring); /* unregisters everything */
    gs_free(u->regions);
    gs_free(u);
}

/* The value of kernel.io_uring_disabled, or -1. */
static int disabled_setting(void)
{
    int value = -1;
    FILE *f = fopen("/proc/sys/kernel/io_uring_disabled", "re");
    if (f == NULL)
        return -1;
    if (fscanf(f, "%d", &value) != 1) /* NOLINT(cert-err34-c): the kernel writes 0, 1 or 2 */
        value = -1;
    fclose(f);
    return value;
}

static gs_status refuse_setup(char *note, int error)
{
    const int disabled = disabled_setting();
    if (error == EPERM && disabled > 0)
        snprintf(note, GS_IO__NOTE_BYTES, "io_uring is switched off here (kernel.io_uring_disabled = %d)", disabled);
    else if (error == EPERM)
        snprintf(note, GS_IO__NOTE_BYTES, "io_uring is not allowed here (seccomp filter or container): %s",
                 strerror(error));
    else
        snprintf(note, GS_IO__NOTE_BYTES, "io_uring cannot be set up: %s", strerror(error));
    return gs_fail(GS_EUNSUPPORTED, "%s; let GS_IO be threads instead", note);
}

/* Cooperative task running keeps completions from interrupting the thread
 * that computes; it needs Linux 5.19. */
static int set_up_ring(uring *u, uint32_t depth)
{
    const unsigned modern = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL;
    int r = io_uring_queue_init(depth, &u->ring, modern);
    if (r == -EINVAL)
        r = io_uring_queue_init(depth, &u->ring, 0);
    u->ring_open = r == 0;
    return -r;
}

/* READ and WRITE without a vector came with Linux 5.6, as did the probe. */
static bool has_operations(uring *u)
{
    struct io_uring_probe *const probe = io_uring_get_probe_ring(&u->ring);
    const bool has = probe != NULL && io_uring_opcode_supported(probe, IORING_OP_READ) &&
                     io_uring_opcode_supported(probe, IORING_OP_WRITE) &&
                     io_uring_opcode_supported(probe, IORING_OP_READ_FIXED) &&
                     io_uring_opcode_supported(probe, IORING_OP_WRITE_FIXED);
    io_uring_free_probe(probe);
    return has;
}

/* An empty table that files are put in as they are opened. Without it every
 * request looks its descriptor up; nothing else is lost, so nothing is noted. */
static void register_file_table(uring *u)
{
    int none[TABLE_FILES];
    u->file_table = io_uring_register_files_sparse(&u->ring, TABLE_FILES) == 0;
    if (u->file_table)
        return;
    for (uint32_t i = 0; i < TABLE_FILES; i++)
        none[i] = -1; /* the way before Linux 5.19 */
    u->file_table = io_uring_register_files(&u->ring, none, TABLE_FILES) == 0;
}

/* Lays out regions and the vectors for the kernel; returns how many vectors,
 * 0 where they are too many for it. With vec == NULL only counts. */
static uint32_t lay_out_buffers(region *regions, struct iovec *vec, const gs_io_config *config)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < config->buffer_count; i++) {
        char *const base = config->buffers[i].base;
        const uint64_t bytes = config->buffers[i].bytes, pieces = gs_div_up(bytes, BUFFER_BYTES);
        if (count + pieces > MAX_BUFFERS)
            return 0;
        regions[i] = (region){.base = base, .bytes = bytes, .first = (uint32_t)count};
        for (uint64_t at = 0; vec != NULL && at < bytes; at += BUFFER_BYTES)
            vec[count + at / BUFFER_BYTES] =
                (struct iovec){.iov_base = base + at, .iov_len = GS_MIN(bytes - at, BUFFER_BYTES)};
        count += pieces;
    }
    return (uint32_t)count;
}

static void note_unregistered(uring *u, char *note, uint32_t vectors, int error)
{
    u->unregistered = true;
    if (vectors == 0)
        snprintf(note, GS_IO__NOTE_BYTES, "I/O buffers are not registered with io_uring: more than %u GiB",
                 (unsigned)MAX_BUFFERS);
    else
        snprintf(note, GS_IO__NOTE_BYTES, "I/O buffers are not registered with io_uring: %s%s", strerror(error),
                 error == ENOMEM ? " (raise the locked-memory limit, ulimit -l)" : "");
}

/* GS_OK also where the kernel refuses: requests then carry plain addresses. */
static gs_status register_buffers(uring *u, const gs_io_config *config, char *note)
{
    GS_FREED struct iovec *vec = NULL;
    uint32_t vectors;
    int r = 0;

    if (config->buffer_count == 0)
        return GS_OK;
    if ((u->regions = gs_malloc_array(config->buffer_count, sizeof(*u->regions))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the table of I/O buffers");
    vectors = lay_out_buffers(u->regions, NULL, config);
    if (vectors > 0) {
        GS_NEED((vec = gs_malloc_array(vectors, sizeof(*vec))) != NULL, "out of memory for the table of I/O buffers");
        lay_out_buffers(u->regions, vec, config);
        r = io_uring_register_buffers(&u->ring, vec, vectors);
    }
    if (vectors > 0 && r == 0)
        u->region_count = config->buffer_count;
    else
        note_unregistered(u, note, vectors, -r);
    return GS_OK;
}

static gs_status uring_open(void **context, const gs_io_config *config, char *note)
{
    uring *u = gs_calloc(1, sizeof(*u));
    gs_status st;
    int error;

    GS_NEED(u != NULL, "out of memory for io_uring");
    if ((error = set_up_ring(u, config->depth)) != 0) {
        st = refuse_setup(note, error);
        goto done;
    }
    if (!has_operations(u)) {
        snprintf(note, GS_IO__NOTE_BYTES, "this kernel's io_uring is too old (Linux 5.6 is needed)");
        st = gs_fail(GS_EUNSUPPORTED, "%s; let GS_IO be threads instead", note);
        goto done;
    }
    register_file_table(u);
    if ((st = register_buffers(u, config, note)) != GS_OK)
        goto done;
    *context = u;
    return GS_OK;
done:
    uring_close(u);
    return st;
}

static const char *uring_name(const void *context)
{
    const uring *u = context;
    return u->unregistered ? "io_uring (unregistered buffers)" : "io_uring";
}

static void uring_add_file(void *context, uint32_t file, int fd)
{
    uring *u = context;
    if (u->file_table && file < TABLE_FILES)
        u->in_table[file] = io_uring_register_files_update(&u->ring, file, &fd, 1) == 1;
}

/* Index of the registered buffer that holds all of the piece, or -1. Regions
 * are few (ring, resident memory), so they are tried in turn. */
static int buffer_of(const uring *u, const gs_io__piece *p)
{
    for (uint32_t i = 0; i < u->region_count; i++) {
        const region *const r = &u->regions[i];
        const uint64_t at = (uint64_t)((uintptr_t)p->memory - (uintptr_t)r->base);
        if (at >= r->bytes) /* below the region wraps to above it */
            continue;
        const bool inside = p->length <= r->bytes - at;
        const bool one = inside && at / BUFFER_BYTES == (at + p->length - 1) / BUFFER_BYTES;
        return one ? (int)(r->first + at / BUFFER_BYTES) : -1;
    }
    return -1;
}

static void fill_entry(const uring *u, struct io_uring_sqe *sqe, gs_io__piece *p)
{
    const int buffer = p->length > 0 ? buffer_of(u, p) : -1;
    const bool table = p->file < TABLE_FILES && u->in_table[p->file];
    const int fd = table ? (int)p->file : p->fd;
    const unsigned bytes = (unsigned)p->length; /* at most 1 GiB */

    if (p->write && buffer >= 0)
        io_uring_prep_write_fixed(sqe, fd, p->memory, bytes, p->offset, buffer);
    else if (p->write)
        io_uring_prep_write(sqe, fd, p->memory, bytes, p->offset);
    else if (buffer >= 0)
        io_uring_prep_read_fixed(sqe, fd, p->memory, bytes, p->offset, buffer);
    else
        io_uring_prep_read(sqe, fd, p->memory, bytes, p->offset);
    if (table)
        io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
    io_uring_sqe_set_data(sqe, p);
}

static void uring_queue(void *context, gs_io__piece *piece)
{
    uring *u = context;
    struct io_uring_sqe *const sqe = u->broken ? NULL : io_uring_get_sqe(&u->ring);

    if (sqe == NULL) { /* the queue has `depth` entries, so only a broken ring gives none */
        assert(u->broken);
        piece->result = -(u->broken ? u->broken : EIO);
        gs_io__push(&u->failed, piece);
        return;
    }
    fill_entry(u, sqe, piece);
    gs_io__push(&u->unsent, piece);
    u->unsent_count++;
}

/* Takes from `unsent` what the kernel has consumed of the submission queue. */
static void note_sent(uring *u)
{
    const unsigned left = io_uring_sq_ready(&u->ring);
    for (; u->unsent_count > left; u->unsent_count--, u->in_kernel++)
        gs_io__pop(&u->unsent);
}

/* The ring refuses to work (its descriptor was closed by someone, say): what
 * was not sent fails, so that nobody waits for it. */
static void give_up(uring *u, int error)
{
    gs_io__piece *p;
    u->broken = error;
    u->unsent_count = 0;
    while ((p = gs_io__pop(&u->unsent)) != NULL) {
        p->result = -error;
        gs_io__push(&u->failed, p);
    }
}

static void pause_1ms(void)
{
    const struct timespec t = {.tv_nsec = 1000000};
    nanosleep(&t, NULL);
}

/* A kernel before Linux 5.11 has no time limit here, and one that hangs is not noticed. */
static int send_and_wait(uring *u, double seconds)
{
    struct __kernel_timespec limit = {0};
    struct io_uring_cqe *cqe;

    if (isinf(seconds) || (u->ring.features & IORING_FEAT_EXT_ARG) == 0)
        return io_uring_submit_and_wait(&u->ring, 1);
    limit.tv_sec = (long long)floor(seconds);
    limit.tv_nsec = (long long)((seconds - floor(seconds)) * 1e9);
    return io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1, &limit, NULL);
}

/* One attempt; 0 or an errno. Also gives EAGAIN where the kernel took only a
 * part and nothing has ended that could be collected. */
static int send_once(uring *u, double wait)
{
    const int r = wait > 0 ? send_and_wait(u, wait) : io_uring_submit(&u->ring);
    note_sent(u);
    if (r < 0 && r != -ETIME)
        return -r;
    return u->unsent_count == 0 || io_uring_cq_ready(&u->ring) > 0 ? 0 : EAGAIN;
}

static void uring_submit(void *context, double wait)
{
    uring *u = context;
    uint32_t waits = 0;

    while (u->broken == 0) {
        if (wait == 0 && u->unsent_count == 0)
            return;
        const int error = send_once(u, wait);
        if (error == 0)
            return;
        if (error == EINTR)
            continue;
        const bool busy = error == EAGAIN || error == EBUSY;
        if (busy && u->in_kernel > 0) { /* whatever ends there gives the kernel room */
            struct io_uring_cqe *cqe;
            if (wait > 0 && (isinf(wait) || (u->ring.features & IORING_FEAT_EXT_ARG) == 0))
                io_uring_wait_cqe(&u->ring, &cqe);
            else if (wait > 0)
                pause_1ms();
            return;
        }
        if (!busy || waits++ == MAX_WAITS)
            give_up(u, error);
        else
            pause_1ms();
    }
    if (wait > 0 && u->failed.head == NULL && u->in_kernel > 0)
        pause_1ms(); /* a broken ring cannot be waited on, only looked at again */
}

static void uring_collect(void *context, gs_io__list *ended)
{
    uring *u = context;
    struct io_uring_cqe *cqe[64];
    unsigned n;

    gs_io__splice(ended, &u->failed);
    while (u->in_kernel > 0 && (n = io_uring_peek_batch_cqe(&u->ring, cqe, GS_ARRAY_LEN(cqe))) > 0) {
        for (unsigned i = 0; i < n; i++) {
            gs_io__piece *const p = io_uring_cqe_get_data(cqe[i]);
            p->result = cqe[i]->res;
            gs_io__push(ended, p);
        }
        io_uring_cq_advance(&u->ring, n);
        u->in_kernel -= n;
    }
}

const gs_io__ops gs_io__uring_ops = {
    .open = uring_open,
    .close = uring_close,
    .name = uring_name,
    .add_file = uring_add_file,
    .queue = uring_queue,
    .submit = uring_submit,
    .collect = uring_collect,
};
