/* piece.c - what became of a piece: all there, again, or failed? */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/size.h"
#include "io/io_internal.h"

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
