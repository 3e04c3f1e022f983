#include "train/kept_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"

#define PIECE (64u << 10) /* bytes that are read at a time */

static gs_status open_lines(gs_kept_lines *k, const char *folder)
{
    *k = (gs_kept_lines){.fd = -1};
    if ((k->path = gs_path_join(folder, GS_KEPT_LINES_NAME)) == NULL || (k->hash = gs_hash_begin()) == NULL) {
        gs_kept_lines_close(k);
        return gs_fail(GS_ENOMEM, "%s: out of memory", folder);
    }
    k->fd = open(k->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (k->fd >= 0)
        return GS_OK;
    const gs_status st = gs_fail_errno(errno, "%s: cannot create", k->path);
    gs_kept_lines_close(k);
    return st;
}

void gs_kept_lines_close(gs_kept_lines *k)
{
    if (k->path != NULL && k->fd >= 0)
        close(k->fd);
    gs_hash_end(k->hash);
    gs_free(k->path);
    *k = (gs_kept_lines){.fd = -1};
}

static gs_status cut(const gs_kept_lines *k, uint64_t bytes)
{
    while (ftruncate(k->fd, (off_t)bytes) != 0)
        if (errno != EINTR)
            return gs_fail_errno(errno, "%s: cannot be cut to %llu bytes", k->path, (unsigned long long)bytes);
    return GS_OK;
}

gs_status gs_kept_lines_begin(gs_kept_lines *k, const char *folder)
{
    gs_status st = open_lines(k, folder);

    if (st == GS_OK && (st = cut(k, 0)) != GS_OK)
        gs_kept_lines_close(k);
    return st;
}

/* Takes in `bytes` bytes of the file `from`: they are k's so far, and written to it where that is another file. */
static gs_status take_in(gs_kept_lines *k, int from, uint64_t bytes, bool copy, const char *path)
{
    char *const piece = gs_malloc(PIECE);
    gs_status st = GS_OK;

    if (piece == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory", path);
    while (k->bytes < bytes && st == GS_OK) {
        const uint64_t n = GS_MIN(bytes - k->bytes, PIECE);
        if ((st = gs_pread_exact(from, piece, n, k->bytes, path)) != GS_OK ||
            (copy && (st = gs_pwrite_exact(k->fd, piece, n, k->bytes, k->path)) != GS_OK))
            break;
        gs_hash_add(k->hash, piece, n);
        k->bytes += n;
    }
    gs_free(piece);
    return st;
}

/* A run without this file has kept nothing. */
static gs_status open_earlier(int *fd, uint64_t *bytes, const char *path)
{
    if (gs_path_exists(path))
        return gs_file_open_read(fd, bytes, path);
    *fd = -1;
    *bytes = 0;
    return GS_OK;
}

/* True where `path` names the same file. */
static bool is_same(const gs_kept_lines *k, const char *path)
{
    struct stat a, b;
    return k->path != NULL && fstat(k->fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

gs_status gs_kept_lines_continue(gs_kept_lines *k, const char *folder, const char *from, uint64_t bytes,
                                 uint64_t checksum, bool *whole)
{
    char *const path = gs_path_join(from, GS_KEPT_LINES_NAME);
    uint64_t there = 0;
    int fd = -1;
    gs_status st;

    if (path == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory", from);
    if ((st = open_earlier(&fd, &there, path)) == GS_OK && (st = open_lines(k, folder)) == GS_OK) {
        const bool same = is_same(k, path);
        if ((!same && (st = cut(k, 0)) != GS_OK) ||
            (st = take_in(k, fd, GS_MIN(bytes, there), !same, path)) != GS_OK || (st = cut(k, k->bytes)) != GS_OK)
            gs_kept_lines_close(k);
        else
            *whole = k->bytes == bytes && gs_hash_so_far(k->hash) == checksum;
    }
    if (fd >= 0)
        close(fd);
    gs_free(path);
    return st;
}

gs_status gs_kept_lines_add(gs_kept_lines *k, const gs_epoch_report *epoch)
{
    char line[GS_METRICS_LINE];

    if (k->path == NULL)
        return GS_OK;
    const size_t n = gs_metrics_line(line, epoch);
    const gs_status st = gs_pwrite_exact(k->fd, line, n, k->bytes, k->path);
    if (st != GS_OK)
        return st;
    gs_hash_add(k->hash, line, n);
    k->bytes += n;
    return GS_OK;
}

gs_status gs_kept_lines_sync(gs_kept_lines *k)
{
    if (k->path == NULL || fdatasync(k->fd) == 0)
        return GS_OK;
    return gs_fail_errno(errno, "%s: sync failed", k->path);
}

gs_status gs_kept_lines_pour(const gs_kept_lines *k, gs_metrics_log *log)
{
    gs_status st = GS_OK;

    if (k->path == NULL || log->out.path == NULL || gs_outfile_is_stream(&log->out))
        return GS_OK;
    char *const piece = gs_malloc(PIECE);
    if (piece == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory", log->out.path);
    for (uint64_t at = 0; at < k->bytes && st == GS_OK; at += PIECE) {
        const uint64_t n = GS_MIN(k->bytes - at, PIECE);
        if ((st = gs_pread_exact(k->fd, piece, n, at, k->path)) == GS_OK)
            st = gs_metrics_log_append(log, piece, n);
    }
    gs_free(piece);
    return st;
}
