/* arrays.c - the small vertex arrays: made piece by piece in store order. */
#include "partition/arrays.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "partition/job.h"
#include "store/store.h"

#define WRITE_BYTES (16 * GS_SUM_BYTES)

static gs_status open_array(int *fd, char **path, const char *dir, gs_array_id id)
{
    char name[64];

    snprintf(name, sizeof(name), "%s.bin", gs_array_stem(id));
    if ((*path = gs_path_join(dir, name)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", dir);
    if ((*fd = open(*path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) < 0)
        return gs_fail_errno(errno, "%s: cannot make this file", *path);
    return GS_OK;
}

gs_status gs_part__array_write(gs_part_job *job, gs_array_id id, gs_dtype dtype, uint64_t rows,
                               gs_part_fill *fill, const void *context, gs_array_info *info)
{
    const uint64_t each = gs_dtype_bytes(dtype), bytes = rows * each, per_write = WRITE_BYTES / each;
    uint64_t *sums = gs_malloc_array(gs_div_up(bytes, GS_SUM_BYTES), 8);
    char *data = gs_malloc(WRITE_BYTES), *path = NULL;
    int fd = -1;
    gs_status st;

    if (sums == NULL || data == NULL) {
        st = gs_fail(GS_ENOMEM, "%s: no memory for %s", job->dir, gs_array_stem(id));
        goto done;
    }
    if ((st = open_array(&fd, &path, job->dir, id)) != GS_OK)
        goto done;
    for (uint64_t at = 0; at < rows; at += per_write) {
        const uint64_t count = GS_MIN(per_write, rows - at), n = count * each;
        const uint64_t padded = gs_align_up(n, GS_BLOCK_BYTES); /* WRITE_BYTES is a multiple of it */
        fill(context, data, at, count);
        memset(data + n, 0, padded - n);
        for (uint64_t b = 0; b < n; b += GS_SUM_BYTES)
            sums[(at * each + b) / GS_SUM_BYTES] = gs_hash64(data + b, GS_MIN(GS_SUM_BYTES, n - b));
        if ((st = gs_pwrite_exact(fd, data, padded, at * each, path)) != GS_OK ||
            (st = gs_part__job_result(job)) != GS_OK)
            goto done;
    }
    *info =
        (gs_array_info){.present = true, .dtype = dtype, .width = 1, .row_bytes = each, .bytes = bytes, .sums = sums};
    sums = NULL; /* now the caller's */
done:
    if (fd >= 0)
        close(fd);
    gs_free(sums);
    gs_free(data);
    gs_free(path);
    return st;
}
