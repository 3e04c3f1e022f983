/* verify_window.c - a large file read once, front to back, through one buffer.
 *
 * Reads are as large as the buffer, and what has been read is dropped from the
 * page cache, so that verifying a store does not push everything else out. */
#include <assert.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "store/store_internal.h"

gs_status gs_window__open(gs_window *w, char *path, uint64_t capacity)
{
    *w = (gs_window){.path = path, .fd = -1, .capacity = capacity};
    gs_status st;
    if (path == NULL)
        return gs_fail(GS_ENOMEM, "no memory to verify a file");
    if ((st = gs_file_open_own(&w->fd, &w->file_bytes, path)) != GS_OK)
        return st;
    if ((w->buffer = gs_alloc_pages(capacity)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a buffer of %llu bytes", path,
                       (unsigned long long)capacity);
    (void)posix_fadvise(w->fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* advice: a refusal changes nothing */
    return GS_OK;
}

gs_status gs_window__get(gs_window *w, const void **data, uint64_t offset, uint64_t bytes, uint64_t end)
{
    assert(bytes <= w->capacity && offset % GS_BLOCK_BYTES == 0);
    if (!gs_window__holds(w, offset, bytes)) {
        const uint64_t last = GS_MIN(end, w->file_bytes), left = offset < last ? last - offset : 0;
        const uint64_t take = GS_MAX(bytes, GS_MIN(left, w->capacity));
        (void)posix_fadvise(w->fd, (off_t)w->first, (off_t)w->valid, POSIX_FADV_DONTNEED);
        w->valid = 0;
        const gs_status st = gs_pread_exact(w->fd, w->buffer, take, offset, w->path);
        if (st != GS_OK)
            return st;
        w->read_bytes += take;
        w->first = offset;
        w->valid = take;
    }
    *data = w->buffer + (offset - w->first);
    return GS_OK;
}

void gs_window__close(gs_window *w)
{
    if (w->fd >= 0) {
        (void)posix_fadvise(w->fd, 0, 0, POSIX_FADV_DONTNEED);
        close(w->fd);
    }
    gs_free_pages(w->buffer, w->capacity);
    gs_free(w->path);
    *w = (gs_window)GS_WINDOW_NONE;
}
