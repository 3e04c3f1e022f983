/* aio.c - a few large reads and writes in flight, without copies where the
 * file system allows O_DIRECT; plain pread and pwrite where io_uring is not. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <liburing.h>

#include "base/alloc.h"
#include "base/file.h"
#include "partition/partition_internal.h"

typedef struct operation {
    gs_part_aio_file *file;
    char *data;
    uint64_t bytes, need, offset, tag;
    bool write;
} operation;

struct gs_part_aio {
    struct io_uring ring;
    bool has_ring;
    uint32_t depth, in_flight;
    operation *operation; /* [depth] */
    uint32_t *vacant;     /* [depth] stack of unused operations */
    uint32_t *finished;   /* [depth] without a ring: done at once, not yet waited for */
    uint32_t finished_count;
};

gs_status gs_part__aio_file_open(gs_part_aio_file *f, const char *path, int flags)
{
    f->path = path;
    f->plain = open(path, flags | O_CLOEXEC, 0644);
    if (f->plain < 0)
        return gs_fail_errno(errno, "%s: cannot open this file", path);
    f->direct = open(path, (flags & ~(O_CREAT | O_TRUNC)) | O_CLOEXEC | O_DIRECT);
    return GS_OK; /* without O_DIRECT, as on tmpfs, the plain one serves */
}

void gs_part__aio_file_close(gs_part_aio_file *f)
{
    if (f->direct >= 0)
        close(f->direct);
    if (f->plain >= 0)
        close(f->plain);
    f->direct = f->plain = -1;
}

gs_status gs_part__aio_open(gs_part_aio **out, uint32_t depth)
{
    gs_part_aio *a = gs_calloc(1, sizeof(*a));

    if (a == NULL)
        return gs_fail(GS_ENOMEM, "no memory for asynchronous reads and writes");
    a->depth = depth;
    a->operation = gs_calloc(depth, sizeof(*a->operation));
    a->vacant = gs_malloc_array(depth, 4);
    a->finished = gs_malloc_array(depth, 4);
    if (!a->operation || !a->vacant || !a->finished) {
        gs_part__aio_close(a);
        return gs_fail(GS_ENOMEM, "no memory for asynchronous reads and writes");
    }
    for (uint32_t i = 0; i < depth; i++)
        a->vacant[i] = i;
    a->has_ring = io_uring_queue_init(depth, &a->ring, 0) == 0;
    *out = a;
    return GS_OK;
}

/* What the ring did not do, or not wholly. */
static gs_status complete(const operation *o, uint64_t done)
{
    if (o->write)
        return gs_pwrite_exact(o->file->plain, o->data + done, o->bytes - done, o->offset + done, o->file->path);
    return done >= o->need ? GS_OK
                           : gs_pread_exact(o->file->plain, o->data + done, o->need - done, o->offset + done,
                                            o->file->path);
}

static gs_status settle(const operation *o, int result)
{
    if (result >= 0)
        return (uint64_t)result == o->bytes ? GS_OK : complete(o, (uint64_t)result);
    if (result == -EINVAL || result == -EOPNOTSUPP || result == -EAGAIN || result == -EINTR)
        return complete(o, 0); /* alignment beyond 4 KiB, or no asynchronous path */
    return gs_fail_errno(-result, "%s: %s failed at byte %llu", o->file->path, o->write ? "writing" : "reading",
                         (unsigned long long)o->offset);
}

static gs_status wait_ring(gs_part_aio *a, uint32_t *index)
{
    struct io_uring_cqe *cqe;
    int rc;

    do
        rc = io_uring_wait_cqe(&a->ring, &cqe);
    while (rc == -EINTR);
    if (rc < 0)
        return gs_fail_errno(-rc, "waiting for a read or write failed");
    *index = (uint32_t)io_uring_cqe_get_data64(cqe);
    const int result = cqe->res;
    io_uring_cqe_seen(&a->ring, cqe);
    return settle(&a->operation[*index], result);
}

gs_status gs_part__aio_wait(gs_part_aio *a, uint64_t *tag)
{
    uint32_t index = UINT32_MAX;
    gs_status st = GS_OK;

    if (a->finished_count != 0)
        index = a->finished[--a->finished_count];
    else
        st = wait_ring(a, &index);
    if (index == UINT32_MAX)
        return st;
    *tag = a->operation[index].tag;
    a->vacant[a->depth - a->in_flight] = index;
    a->in_flight--;
    return st;
}

uint32_t gs_part__aio_in_flight(const gs_part_aio *a) { return a->in_flight; }

gs_status gs_part__aio_submit(gs_part_aio *a, gs_part_aio_file *f, bool write, void *data, uint64_t bytes,
                              uint64_t need, uint64_t offset, uint64_t tag)
{
    const uint32_t index = a->vacant[a->depth - 1 - a->in_flight];
    operation *const o = &a->operation[index];
    struct io_uring_sqe *sqe = a->has_ring ? io_uring_get_sqe(&a->ring) : NULL;
    gs_status st = GS_OK;

    *o = (operation){
        .file = f, .data = data, .bytes = bytes, .need = need, .offset = offset, .tag = tag, .write = write};
    const int fd = f->direct >= 0 ? f->direct : f->plain;
    if (sqe != NULL) {
        if (write)
            io_uring_prep_write(sqe, fd, data, (unsigned)bytes, offset);
        else
            io_uring_prep_read(sqe, fd, data, (unsigned)bytes, offset);
        io_uring_sqe_set_data64(sqe, index);
        const int rc = io_uring_submit(&a->ring);
        if (rc < 0)
            return gs_fail_errno(-rc, "%s: a read or write could not be started", f->path);
    } else if ((st = complete(o, 0)) == GS_OK) {
        a->finished[a->finished_count++] = index;
    }
    a->in_flight += st == GS_OK;
    return st;
}

void gs_part__aio_close(gs_part_aio *a)
{
    uint64_t tag;

    if (a == NULL)
        return;
    while (a->in_flight != 0) { /* the kernel still owns their buffers */
        const uint32_t before = a->in_flight;
        gs_part__aio_wait(a, &tag);
        if (a->in_flight == before)
            break;
    }
    if (a->has_ring)
        io_uring_queue_exit(&a->ring);
    gs_free(a->operation);
    gs_free(a->vacant);
    gs_free(a->finished);
    gs_free(a);
}
