/* made_array.c - arrays in temporary files without names. */
#include "partition/made_array.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "base/temporary.h"

#define WRITE_BYTES (256 * GS_KIB)
#define DATA_OFFSET 4096u /* whole blocks, as rows are read */

/* "DIR/tmp.array, made of PATH"; NULL: no memory. */
static char *place_of(const char *hidden, const char *path)
{
    const size_t bytes = strlen(hidden) + strlen(path) + 16;
    char *const text = gs_malloc(bytes);
    if (text != NULL)
        snprintf(text, bytes, "%s, made of %s", hidden, path);
    return text;
}

gs_status gs_part__made_begin(gs_made *m, gs_part_file *file, const gs_part_job *job, char *path)
{
    char link[64], *hidden = NULL;
    gs_status st;

    *m = (gs_made){.file = file, .offset = DATA_OFFSET};
    file->path = path;
    file->npy = (gs_npy){.fd = -1};
    if (path == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", job->place);
    if ((st = gs_unnamed_file_called(&file->npy.fd, &hidden, job->dir, "tmp.array")) != GS_OK)
        goto done;
    file->npy.dims = 1; /* so that it is closed, whatever follows */
    snprintf(link, sizeof(link), "/proc/self/fd/%d", file->npy.fd); /* its only name */
    file->opened_as = gs_strdup(link);
    m->place = place_of(hidden, path);
    m->buffer = gs_malloc(WRITE_BYTES);
    if (m->place == NULL || m->buffer == NULL || file->opened_as == NULL)
        st = gs_fail(GS_ENOMEM, "%s: no memory to read it", path);
done:
    gs_free(hidden);
    return st;
}

static gs_status flush(gs_made *m)
{
    const gs_status st = gs_pwrite_exact(m->file->npy.fd, m->buffer, m->fill, m->offset, m->place);
    m->offset += m->fill;
    m->fill = 0;
    return st;
}

gs_status gs_part__made_put(gs_made *m, const void *bytes, uint64_t count)
{
    const char *from = bytes;
    gs_status st = GS_OK;

    if (m->fill == 0 && count >= WRITE_BYTES) { /* large pieces go as they are */
        st = gs_pwrite_exact(m->file->npy.fd, bytes, count, m->offset, m->place);
        m->offset += count;
        return st;
    }
    while (count > 0 && st == GS_OK) {
        const uint64_t take = GS_MIN(count, WRITE_BYTES - m->fill);
        memcpy(m->buffer + m->fill, from, take);
        m->fill += take;
        from += take;
        count -= take;
        if (m->fill == WRITE_BYTES)
            st = flush(m);
    }
    return st;
}

gs_status gs_part__made_write(const gs_made *m, const void *bytes, uint64_t count, uint64_t offset)
{
    return gs_pwrite_exact(m->file->npy.fd, bytes, count, DATA_OFFSET + offset, m->place);
}

gs_status gs_part__made_fill(gs_made *m, int value, uint64_t count)
{
    gs_status st = GS_OK;

    while (count > 0 && st == GS_OK) {
        const uint64_t take = GS_MIN(count, WRITE_BYTES - m->fill);
        memset(m->buffer + m->fill, value, take);
        m->fill += take;
        count -= take;
        if (m->fill == WRITE_BYTES)
            st = flush(m);
    }
    return st;
}

gs_status gs_part__made_end(gs_made *m, gs_dtype as, uint64_t rows, uint64_t columns)
{
    const int fd = m->file->npy.fd;
    const gs_status st = flush(m);

    if (st == GS_OK)
        m->file->npy = (gs_npy){.dtype = as, .dims = columns == 1 ? 1 : 2, .shape = {rows, columns}, .fd = fd,
                                .data_offset = DATA_OFFSET, .data_bytes = rows * columns * gs_dtype_bytes(as)};
    return st;
}

gs_status gs_part__made_end_npy(gs_made *m)
{
    const int fd = m->file->npy.fd;
    gs_npy npy = {.fd = -1};
    gs_status st = flush(m);

    if (st != GS_OK ||
        (st = gs_npy_open_any_order(&npy, m->file->any_order ? &m->file->transposed : NULL, m->file->opened_as,
                                    DATA_OFFSET, m->offset - DATA_OFFSET, m->file->path)) != GS_OK)
        return st;
    close(npy.fd);
    npy.fd = fd; /* the one that the name leads to */
    m->file->npy = npy;
    return GS_OK;
}

void gs_part__made_free(gs_made *m)
{
    gs_free(m->buffer);
    gs_free(m->place);
    m->buffer = m->place = NULL;
}
