/* input_files.c - opens the .npy files of an input; integers of any type. */
#include "partition/input_files.h"

#include <fcntl.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

gs_status gs_part__file_open(gs_part_file *f, const char *dir, const char *name, bool required)
{
    if ((f->path = gs_path_join(dir, name)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", dir);
    if (!required && gs_path_is_absent(f->path))
        return GS_OK;
    const gs_status st = gs_npy_open(&f->npy, f->path);
    if (st != GS_OK) {
        f->npy.fd = -1;
        return st;
    }
    posix_fadvise(f->npy.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return GS_OK;
}

void gs_part__file_close(gs_part_file *f)
{
    if (f->npy.fd >= 0)
        gs_npy_close(&f->npy);
    f->npy.fd = -1;
    gs_free(f->path);
    f->path = NULL;
}

bool gs_part__is_integer(gs_dtype t)
{
    return t != GS_F32 && t != GS_F64 && t != GS_F16 && t != GS_BF16;
}

void gs_part__to_i64(int64_t *dst, const void *src, gs_dtype from, uint64_t n)
{
#define CASE(tag, type)                                 \
    case tag:                                           \
        for (uint64_t i = 0; i < n; i++)                \
            dst[i] = (int64_t)((const type *)src)[i];   \
        break;
    switch (from) {
        CASE(GS_U8, uint8_t)
        CASE(GS_I8, int8_t)
        CASE(GS_U16, uint16_t)
        CASE(GS_I16, int16_t)
        CASE(GS_U32, uint32_t)
        CASE(GS_I32, int32_t)
        CASE(GS_I64, int64_t)
    case GS_U64:
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t v = ((const uint64_t *)src)[i];
            dst[i] = v > INT64_MAX ? INT64_MAX : (int64_t)v;
        }
        break;
    default:
        memset(dst, 0, n * sizeof(*dst));
    }
#undef CASE
}
