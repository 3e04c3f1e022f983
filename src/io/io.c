/* io.c - the request table: cuts requests into pieces, in the order in which
 * they came, and puts what became of the pieces together again. */
#include "io/io.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/size.h"
#include "io/io_internal.h"

/* ---- pieces of requests ------------------------------------------------ */

/* What became of a piece: all there, again, or failed? */

/* A transfer that moves nothing this many times in a row is given up. */
#define MAX_TRIES 1000u
/* The page cache keeps up to this much as one folio, and drops it only whole. */
#define FOLIO_BYTES (2 * GS_MIB)

static gs_io__verdict fail(gs_status *st, int *error, gs_status why, int number)
{
    *st = why;
    *error = number;
    return GS_IO__FAILED;
}

static gs_io__verdict try_again(gs_io__piece *p, gs_status *st, int *error, int number)
{
    if (p->tries++ < MAX_TRIES)
        return GS_IO__AGAIN;
    return fail(st, error, GS_EIO, number);
}

/* Some file systems accept O_DIRECT at open() and refuse it, or the alignment
 * that it has here, with EINVAL at the transfer. */
static bool leave_direct_mode(gs_io__file *file)
{
    const int flags = fcntl(file->fd, F_GETFL);
    if (flags < 0 || fcntl(file->fd, F_SETFL, flags & ~O_DIRECT) != 0)
        return false;
    file->direct = false;
    return true;
}

static gs_io__verdict judge_error(gs_io__piece *p, gs_io__file *file, gs_status *st, int *error, int number)
{
    if (number == EINTR || number == EAGAIN)
        return try_again(p, st, error, number);
    if (number == EINVAL && p->direct && (!file->direct || leave_direct_mode(file)))
        return GS_IO__AGAIN;
    return fail(st, error, GS_EIO, number);
}

/* A direct read that stopped at `end` for a reason other than the end of the
 * file (a block device has no st_size to compare with; its reads end with 0). */
static bool ends_before(const gs_io__file *file, uint64_t end)
{
    struct stat info;
    return fstat(file->fd, &info) == 0 && S_ISREG(info.st_mode) && (uint64_t)info.st_size <= end;
}

/* The page cache is no place for a stream. A folio that began in an earlier
 * piece goes with the piece that ends it. */
static void drop_behind(const gs_io__file *file, uint64_t start, uint64_t end)
{
    start -= GS_MIN(start, FOLIO_BYTES);
    posix_fadvise(file->fd, (off_t)start, (off_t)(end - start), POSIX_FADV_DONTNEED);
}

gs_io__verdict gs_io__judge(gs_io__piece *p, gs_io__file *file, uint64_t *moved, gs_status *st, int *error)
{
    if (p->result < 0)
        return judge_error(p, file, st, error, (int)-p->result);

    uint64_t bytes = GS_MIN((uint64_t)p->result, p->counts);
    assert(bytes <= p->left);
    const bool last = p->bytes - p->left + bytes >= p->needed; /* the file may end here */
    if (bytes == 0 && !p->write)
        return last ? GS_IO__COMPLETE : fail(st, error, GS_EFORMAT, 0);
    if (bytes < p->left && p->direct) {
        if (!p->write && ends_before(file, p->offset + bytes)) {
            if (!last)
                return fail(st, error, GS_EFORMAT, 0);
            *moved += bytes;
            return GS_IO__COMPLETE;
        }
        bytes = gs_align_down(bytes, GS_BLOCK_BYTES); /* what is left must stay aligned */
    }
    if (!p->write && !p->direct)
        drop_behind(file, p->offset, p->offset + bytes);
    p->offset += bytes;
    p->memory += bytes;
    p->left -= bytes;
    *moved += bytes;
    if (p->left == 0)
        return GS_IO__COMPLETE;
    if (bytes == 0)
        return try_again(p, st, error, EIO);
    p->tries = 0;
    return GS_IO__AGAIN;
}

/* ---- files ------------------------------------------------------------- */

/* Opening and sizing the files of a gs_io. */

/* A store's files and a run's own: links are refused by who names them, or were put there meanwhile. */
static int open_flags(gs_io_mode mode)
{
    switch (mode) {
    case GS_IO_CREATE:
        return O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
    case GS_IO_WRITE:
        return O_RDWR | O_NOFOLLOW | O_CLOEXEC;
    case GS_IO_INPUT:
        return O_RDONLY | O_CLOEXEC;
    case GS_IO_READ:
    default:
        return O_RDONLY | O_NOFOLLOW | O_CLOEXEC;
    }
}

static int open_retrying(const char *path, int flags)
{
    int fd;
    do
        fd = open(path, flags, 0644);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static void close_file(gs_io__file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    gs_free(file->path);
    file->path = NULL;
}

static gs_status open_file(gs_io__file *out, const char *path, gs_io_mode mode, bool buffered)
{
    const int flags = open_flags(mode);
    gs_io__file f = {.fd = -1, .direct = !buffered, .writable = mode == GS_IO_WRITE || mode == GS_IO_CREATE};
    struct stat info;
    gs_status st;

    GS_NEED((f.path = gs_strdup(path)) != NULL, "%s: out of memory opening it", path);
    f.fd = open_retrying(path, flags | (f.direct ? O_DIRECT : 0));
    if (f.fd < 0 && f.direct && errno == EINVAL) { /* this file system has no O_DIRECT */
        f.direct = false;
        f.fd = open_retrying(path, flags);
    }
    if (f.fd < 0) {
        st = gs_fail_errno(errno, "%s: cannot be opened for %s", path, f.writable ? "writing" : "reading");
        goto done;
    }
    if (fstat(f.fd, &info) != 0) {
        st = gs_fail_errno(errno, "%s: cannot be examined", path);
        goto done;
    }
    if (!S_ISREG(info.st_mode) && !S_ISBLK(info.st_mode)) {
        st = gs_fail(GS_EINVAL, "%s: is neither a file nor a block device", path);
        goto done;
    }
    *out = f;
    return GS_OK;
done:
    close_file(&f);
    return st;
}

/* Asking for more than there is would first take all that there is, which
 * others may need. */
static bool disk_has(const gs_io__file *file, const struct stat *now, uint64_t bytes)
{
    const uint64_t allocated = (uint64_t)now->st_blocks * 512;
    return bytes <= allocated || bytes - allocated <= gs_disk_free_of(file->fd);
}

/* 0 or an errno. fallocate() allocates blocks, which posix_fallocate() would
 * imitate by writing where a file system cannot; a sparse file serves there. */
static int reserve(int fd, uint64_t bytes)
{
    int r;
    do
        r = fallocate(fd, 0, 0, (off_t)bytes);
    while (r != 0 && errno == EINTR);
    if (r == 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return errno;
    return ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
}

static gs_status set_file_size(const gs_io__file *file, uint64_t bytes)
{
    char size[32];
    struct stat info;
    int error = 0;

    if (!file->writable)
        return gs_fail(GS_EINVAL, "%s: is open for reading only, its size cannot be set", file->path);
    if (bytes > INT64_MAX)
        return gs_fail(GS_EINVAL, "%s: a file cannot have %lu bytes", file->path, bytes);
    if (fstat(file->fd, &info) != 0)
        return gs_fail_errno(errno, "%s: cannot be examined", file->path);
    if (S_ISBLK(info.st_mode))
        return gs_fail(GS_EINVAL, "%s: is a block device, its size cannot be set", file->path);
    if (!disk_has(file, &info, bytes))
        error = ENOSPC;
    else if (bytes > 0)
        error = reserve(file->fd, bytes);
    if (error == 0 && ftruncate(file->fd, (off_t)bytes) != 0)
        error = errno;
    if (error == 0)
        return GS_OK;
    /* A reservation that ran out of space may have grown the file: give that back. */
    if (ftruncate(file->fd, info.st_size) != 0)
        return gs_fail_errno(errno, "%s: cannot be cut back to its size", file->path);
    gs_size_format(size, sizeof(size), bytes);
    if (error == ENOSPC || error == EDQUOT)
        return gs_fail(GS_EIO, "%s: disk full: %s cannot be reserved; free space or choose a folder on another disk",
                       file->path, size);
    return gs_fail_errno(error, "%s: cannot be given a size of %s", file->path, size);
}

/* ---- readers ----------------------------------------------------------- */

typedef struct slot {
    struct slot *next;     /* in the list of free, pending or done ones, or in none */
    gs_io_request request;
    uint64_t cut;          /* bytes that pieces were made of */
    uint32_t pieces;       /* under way */
    gs_status status;      /* of the first piece that failed */
    int error;
    uint32_t stripe;       /* its file */
} slot;

typedef struct slot_list {
    slot *head, *tail;
} slot_list;

/* How long nothing came back, and what becomes of a table that is given up. */
typedef struct waiting {
    double patience, quiet; /* seconds: gs_io_set_patience(), gs_io_quiet_seconds() */
    bool abandoned;
    struct gs_io *next;    /* of those that were abandoned */
} waiting;

/* What tests ask for. */
typedef struct hooks {
    bool buffered;         /* no O_DIRECT */
    gs_io_fault_fn fault;
    void *fault_context;
    gs_io__list withheld;  /* pieces that never come back */
} hooks;

struct gs_io {
    /* set by gs_io_open() */
    const gs_io__ops *ops;
    void *backend;
    uint32_t depth;
    uint64_t piece_bytes, flight_bytes;
    slot *slots;
    gs_io__piece *pieces;
    char note[GS_IO__NOTE_BYTES];
    /* by gs_io_add_file() */
    gs_io__file *files;
    uint32_t file_count, file_capacity;
    /* as requests come and go */
    slot_list free, pending, done; /* only the head of `pending` is cut in part */
    gs_io__list free_pieces;
    gs_io__list refused;   /* failed by the fault hook before they went out */
    uint32_t outstanding;  /* submitted and not yet reaped */
    uint64_t flying;       /* bytes of the pieces under way */
    uint32_t in_backend;   /* pieces */
    gs_io_counters counters;
    waiting wait;
    hooks test;
};

void (*gs_io__observer)(const gs_io_request *request, bool ended);
bool (*gs_io__withheld)(const gs_io_request *request);

/* Held, so that who looks for lost memory sees that it is on purpose. */
static gs_io *abandoned;
static pthread_mutex_t abandoned_lock = PTHREAD_MUTEX_INITIALIZER;

static void push_slot(slot_list *l, slot *s)
{
    s->next = NULL;
    if (l->head == NULL)
        l->head = s;
    else
        l->tail->next = s;
    l->tail = s;
}

static slot *pop_slot(slot_list *l)
{
    slot *const s = l->head;
    if (s != NULL)
        l->head = s->next;
    return s;
}

/* --- opening and closing --- */

static gs_status fill_defaults(gs_io_config *c)
{
    if (c->requests == 0)
        c->requests = 64;
    if (c->depth == 0)
        c->depth = GS_IO_DEPTH;
    if (c->piece_bytes == 0)
        c->piece_bytes = GS_IO_PIECE_BYTES;
    if (c->requests > GS_IO__MAX_REQUESTS || c->depth > GS_IO__MAX_DEPTH || c->piece_bytes > GS_GIB)
        return gs_fail(GS_EINVAL, "I/O: %u requests, depth %u, pieces of %lu bytes: at most %u, %u and %lu are "
                       "possible", c->requests, c->depth, c->piece_bytes, GS_IO__MAX_REQUESTS, GS_IO__MAX_DEPTH,
                       GS_GIB);
    c->piece_bytes = gs_align_up(c->piece_bytes, GS_BLOCK_BYTES);
    return GS_OK;
}

/* GS_IO in the environment decides what the caller left open. */
static gs_status choose_backend(gs_io_backend *out)
{
    const char *const word = getenv("GS_IO");
    if (*out != GS_IO_AUTO || word == NULL || *word == '\0')
        return GS_OK;
    if (strcmp(word, "uring") == 0)
        *out = GS_IO_URING;
    else if (strcmp(word, "threads") == 0)
        *out = GS_IO_THREADS;
    else
        return gs_fail(GS_EINVAL, "environment variable GS_IO is '%s'; set it to uring or threads, or unset it", word);
    return GS_OK;
}

static gs_status open_backend(gs_io *io, const gs_io_config *config)
{
    if (config->backend != GS_IO_THREADS) {
        const gs_status st = gs_io__uring_ops.open(&io->backend, config, io->note);
        if (st == GS_OK)
            io->ops = &gs_io__uring_ops;
        if (st != GS_EUNSUPPORTED || config->backend == GS_IO_URING)
            return st;
    }
    const gs_status st = gs_io__threads_ops.open(&io->backend, config, io->note);
    if (st == GS_OK)
        io->ops = &gs_io__threads_ops;
    return st;
}

static gs_status take_tables(gs_io *io, uint32_t requests)
{
    io->slots = gs_calloc(requests, sizeof(*io->slots));
    io->pieces = gs_calloc(io->depth, sizeof(*io->pieces));
    GS_NEED(io->slots != NULL && io->pieces != NULL, "out of memory for %u I/O requests", requests);
    for (uint32_t i = 0; i < requests; i++)
        push_slot(&io->free, &io->slots[i]);
    for (uint32_t i = 0; i < io->depth; i++)
        gs_io__push(&io->free_pieces, &io->pieces[i]);
    return GS_OK;
}

gs_status gs_io_open(gs_io **out, const gs_io_config *config)
{
    gs_io_config c = *config;
    GS_ENDS(gs_io_close_at) gs_io *io = NULL;

    GS_TRY(fill_defaults(&c));
    GS_TRY(choose_backend(&c.backend));
    GS_NEED((io = gs_calloc(1, sizeof(*io))) != NULL, "out of memory for I/O");
    io->depth = c.depth;
    io->piece_bytes = c.piece_bytes;
    io->flight_bytes = c.flight_bytes != 0 ? c.flight_bytes : UINT64_MAX;
    GS_TRY(take_tables(io, c.requests));
    GS_TRY(open_backend(io, &c));
    *out = GS_HANDED_OVER(io);
    return GS_OK;
}

void gs_io_close(gs_io *io)
{
    gs_io_completion done;

    if (io == NULL)
        return;
    if (io->wait.abandoned)
        return;
    io->wait.patience = 0;
    while (io->outstanding > 0)
        gs_io_reap(io, &done, 1, true);
    if (io->ops != NULL)
        io->ops->close(io->backend);
    for (uint32_t i = 0; i < io->file_count; i++)
        close_file(&io->files[i]);
    gs_free(io->files);
    gs_free(io->pieces);
    gs_free(io->slots);
    gs_free(io);
}

const char *gs_io_backend_name(const gs_io *io) { return io->ops->name(io->backend); }
const char *gs_io_fallback_reason(const gs_io *io) { return io->note; }

/* --- files --- */

gs_status gs_io_add_file(gs_io *io, uint32_t *index, const char *path, gs_io_mode mode)
{
    if (!gs_grow(&io->files, io->file_count, &io->file_capacity, sizeof(*io->files)))
        return gs_fail(GS_ENOMEM, "%s: out of memory opening it", path);
    GS_TRY(open_file(&io->files[io->file_count], path, mode, io->test.buffered));
    io->ops->add_file(io->backend, io->file_count, io->files[io->file_count].fd);
    *index = io->file_count++;
    return GS_OK;
}

gs_status gs_io_add_stripe(gs_io *io, uint32_t file, const char *path)
{
    uint32_t index;

    assert(file + io->files[file].stripes + 1 == io->file_count);
    GS_TRY(gs_io_add_file(io, &index, path, GS_IO_CREATE));
    io->files[file].stripes++;
    return GS_OK;
}

uint64_t gs_io_stripe_bytes(uint64_t bytes, uint32_t files)
{
    const uint64_t rounds = gs_div_up(bytes, files * (uint64_t)GS_IO_STRIPE_BYTES);
    return files == 1 ? bytes : GS_MIN(bytes, rounds * GS_IO_STRIPE_BYTES);
}

bool gs_io_is_direct(const gs_io *io, uint32_t file)
{
    assert(file < io->file_count);
    return io->files[file].direct;
}

gs_status gs_io_set_size(gs_io *io, uint32_t file, uint64_t bytes)
{
    assert(file < io->file_count);
    const uint32_t files = io->files[file].stripes + 1;
    for (uint32_t k = 0; k < files; k++)
        GS_TRY(set_file_size(&io->files[file + k], gs_io_stripe_bytes(bytes, files)));
    return GS_OK;
}

void gs_io__force_buffered(gs_io *io, bool on) { io->test.buffered = on; }

/* --- pieces --- */

/* Sends a piece, or what is left of one, out. */
static void issue(gs_io *io, gs_io__piece *p)
{
    const gs_io_request *const whole = &io->slots[p->slot].request;
    int error = 0;

    p->length = p->counts = p->left;
    p->direct = io->files[p->file].direct;
    if (io->test.fault != NULL) {
        const gs_io_request piece = {.file = p->file, .write = p->write, .offset = p->offset,
                                     .length = p->left, .memory = p->memory, .tag = whole->tag};
        error = io->test.fault(io->test.fault_context, &piece, &p->counts);
        p->counts = GS_MIN(p->counts, p->left);
        /* O_DIRECT moves whole blocks; what goes beyond `counts` is as if it had not moved. */
        p->length = p->direct ? GS_MIN(gs_align_up(p->counts, GS_BLOCK_BYTES), p->left) : p->counts;
    }
    if (error != 0) {
        p->result = -error;
        gs_io__push(&io->refused, p);
        return;
    }
    io->ops->queue(io->backend, p);
    io->in_backend++;
}

/* Number of bytes that the request needs of a piece that begins at `cut`. */
static uint64_t needed_of(const gs_io_request *r, uint64_t cut, uint64_t bytes)
{
    if (r->write || r->needed == 0)
        return bytes;
    return GS_MIN(bytes, r->needed - GS_MIN(r->needed, cut));
}

/* Where a byte of a file is: which file of those in turn, and the offset there. Returns how many are side by side from
 * there on. */
static uint64_t find_stripe(const gs_io *io, uint32_t *file, uint64_t *offset)
{
    const uint64_t files = io->files[*file].stripes + 1, stripe = *offset / GS_IO_STRIPE_BYTES;
    const uint64_t inside = *offset % GS_IO_STRIPE_BYTES;

    if (files == 1)
        return UINT64_MAX;
    *file += (uint32_t)(stripe % files);
    *offset = stripe / files * GS_IO_STRIPE_BYTES + inside;
    return GS_IO_STRIPE_BYTES - inside;
}

/* Cuts pending requests while there are pieces to be had: the order of
 * submission is the order in which the device sees them. */
static void feed(gs_io *io)
{
    while (io->pending.head != NULL && io->free_pieces.head != NULL) {
        slot *const s = io->pending.head;
        uint32_t file = s->request.file;
        uint64_t offset = s->request.offset + s->cut;
        const uint64_t stretch = find_stripe(io, &file, &offset);
        const uint64_t bytes = GS_MIN(GS_MIN(s->request.length - s->cut, io->piece_bytes), stretch);
        if (io->flying > 0 && bytes > io->flight_bytes - GS_MIN(io->flying, io->flight_bytes))
            return;
        gs_io__piece *const p = gs_io__pop(&io->free_pieces);

        p->slot = (uint32_t)(s - io->slots);
        p->file = file;
        p->fd = io->files[p->file].fd;
        p->write = s->request.write;
        p->tries = 0;
        p->offset = offset;
        p->memory = (char *)s->request.memory + s->cut;
        p->bytes = p->left = bytes;
        p->needed = needed_of(&s->request, s->cut, bytes);
        io->flying += bytes;
        s->cut += bytes;
        s->pieces++;
        if (s->cut == s->request.length)
            pop_slot(&io->pending);
        io->counters.pieces++;
        issue(io, p);
    }
}

static void fail_request(gs_io *io, slot *s, uint32_t file, gs_status st, int error)
{
    if (s->status == GS_OK) {
        s->status = st;
        s->error = error;
        s->stripe = file - s->request.file;
    }
    if (s->cut < s->request.length) { /* no more pieces of this one */
        assert(io->pending.head == s);
        pop_slot(&io->pending);
        s->cut = s->request.length;
    }
}

static void settle(gs_io *io, gs_io__piece *p)
{
    slot *const s = &io->slots[p->slot];
    gs_status st = GS_OK;
    uint64_t moved = 0;
    int error = 0;
    const gs_io__verdict verdict = gs_io__judge(p, &io->files[p->file], &moved, &st, &error);

    *(p->write ? &io->counters.written_bytes : &io->counters.read_bytes) += moved;
    if (verdict == GS_IO__FAILED)
        fail_request(io, s, p->file, st, error);
    if (verdict == GS_IO__AGAIN && s->status == GS_OK) {
        io->counters.retries++;
        issue(io, p);
        return;
    }
    io->flying -= p->bytes;
    gs_io__push(&io->free_pieces, p);
    if (--s->pieces == 0 && s->cut == s->request.length)
        push_slot(&io->done, s);
}

/* Takes what the backend has completed. */
static void collect(gs_io *io, gs_io__list *out)
{
    gs_io__list ended = {0};
    gs_io__piece *p;

    io->ops->collect(io->backend, &ended);
    while ((p = gs_io__pop(&ended)) != NULL) {
        io->in_backend--;
        const bool lost = gs_io__withheld != NULL && gs_io__withheld(&io->slots[p->slot].request);
        gs_io__push(lost ? &io->test.withheld : out, p);
    }
}

/* A process that was stopped in between has not waited all that time. */
static void wait_for_a_piece(gs_io *io)
{
    const double begin = gs_now();

    io->ops->submit(io->backend, io->wait.patience > 0 ? io->wait.patience : INFINITY);
    if (io->in_backend == 0 && io->test.withheld.head != NULL)
        gs_sleep(io->wait.patience);
    const double waited = gs_now() - begin;
    io->wait.quiet += io->wait.patience > 0 ? GS_MIN(waited, 2 * io->wait.patience) : waited;
}

/* One round: what has ended makes room for what is next. */
static void turn(gs_io *io, bool wait)
{
    gs_io__list ended = io->refused;
    gs_io__piece *p;

    io->refused = (gs_io__list){0};
    collect(io, &ended);
    if (ended.head != NULL)
        io->wait.quiet = 0;
    while ((p = gs_io__pop(&ended)) != NULL)
        settle(io, p);
    feed(io);
    /* With a request outstanding and none done, pieces of it are with the backend now. */
    if (wait && io->outstanding > 0 && io->done.head == NULL && io->refused.head == NULL)
        wait_for_a_piece(io);
    else
        io->ops->submit(io->backend, 0);
}

/* --- requests --- */

static gs_status check_request(const gs_io *io, const gs_io_request *r)
{
    if (r->file >= io->file_count)
        return gs_fail(GS_EINVAL, "I/O request for file %u of %u", r->file, io->file_count);
    const gs_io__file *const f = &io->files[r->file];
    const char *const what = r->write ? "write" : "read";
    uint64_t end;
    if (r->length == 0 || r->memory == NULL || !gs_add_u64(&end, r->offset, r->length) || end > INT64_MAX)
        return gs_fail(GS_EINVAL, "%s: %s of %lu bytes at %lu is not possible", f->path, what, r->length, r->offset);
    if (r->write && !f->writable)
        return gs_fail(GS_EINVAL, "%s: write to a file that is open for reading only", f->path);
    if (f->direct && ((r->offset | r->length | (uintptr_t)r->memory) & (GS_BLOCK_BYTES - 1)) != 0)
        return gs_fail(GS_EINVAL, "%s: %s of %lu bytes at %lu to memory at %p is not aligned to %lu bytes", f->path,
                       what, r->length, r->offset, r->memory, GS_BLOCK_BYTES);
    return GS_OK;
}

gs_status gs_io_submit(gs_io *io, const gs_io_request *request)
{
    GS_TRY(check_request(io, request));
    slot *const s = pop_slot(&io->free);
    if (s == NULL)
        return GS_EAGAIN; /* no text: callers meet this all the time */
    s->request = *request;
    s->cut = 0;
    s->pieces = 0;
    s->status = GS_OK;
    s->error = 0;
    s->stripe = 0;
    if (gs_io__observer != NULL)
        gs_io__observer(request, false);
    push_slot(&io->pending, s);
    io->wait.quiet = io->outstanding == 0 ? 0 : io->wait.quiet;
    io->outstanding++;
    io->counters.requests++;
    return GS_OK;
}

uint32_t gs_io_reap(gs_io *io, gs_io_completion *out, uint32_t max, bool wait)
{
    uint32_t count = 0;

    wait = wait && max > 0;
    do /* a round that waited has not looked yet at what it waited for */
        turn(io, wait);
    while (wait && io->done.head == NULL && io->outstanding > 0 &&
           (io->wait.patience == 0 || io->wait.quiet < io->wait.patience));
    while (count < max && io->done.head != NULL) {
        slot *const s = pop_slot(&io->done);
        if (gs_io__observer != NULL)
            gs_io__observer(&s->request, true);
        out[count++] = (gs_io_completion){.tag = s->request.tag, .status = s->status, .error = s->error,
                                          .stripe = s->stripe};
        push_slot(&io->free, s);
        io->outstanding--;
    }
    return count;
}

uint32_t gs_io_outstanding(const gs_io *io) { return io->outstanding; }
void gs_io_set_patience(gs_io *io, double seconds) { io->wait.patience = seconds; }
double gs_io_quiet_seconds(const gs_io *io) { return io->wait.quiet; }

void gs_io_abandon(gs_io *io)
{
    if (io->wait.abandoned)
        return;
    io->wait.abandoned = true;
    pthread_mutex_lock(&abandoned_lock);
    io->wait.next = abandoned;
    abandoned = io;
    pthread_mutex_unlock(&abandoned_lock);
}

void gs_io_get_counters(const gs_io *io, gs_io_counters *out) { *out = io->counters; }

gs_status gs_io_explain(const gs_io *io, const gs_io_request *request, const gs_io_completion *done)
{
    const char *const path = request->file < io->file_count ? io->files[request->file + done->stripe].path : "?";
    const char *const what = request->write ? "write" : "read";
    const unsigned long long bytes = request->length, offset = request->offset;

    if (done->status == GS_OK)
        return GS_OK;
    if (done->status == GS_EFORMAT)
        return gs_fail(GS_EFORMAT, "%s: file ends inside a read of %llu bytes at %llu; it was cut short, make it again",
                       path, bytes, offset);
    return gs_fail(done->status, "%s: %s of %llu bytes at %llu failed: %s", path, what, bytes, offset,
                   strerror(done->error));
}

void gs_io_set_fault(gs_io *io, gs_io_fault_fn fn, void *context)
{
    io->test.fault = fn;
    io->test.fault_context = context;
}
