/* input_files.c - opens the .npy files of an input; numbers of any type. */
#include "partition/input_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

gs_status gs_part__file_open(gs_part_file *f, const char *dir, const char *name, bool required)
{
    if ((f->path = gs_path_join(dir, name)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", dir);
    if (!required && gs_path_is_absent(f->path))
        return GS_OK;
    const gs_status st = gs_npy_open_any_order(&f->npy, f->any_order ? &f->transposed : NULL, f->path, 0, UINT64_MAX,
                                               f->path);
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
    gs_free(f->opened_as);
    f->path = NULL;
    f->opened_as = NULL;
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

const char *gs_part__i64_words(char text[32], int64_t v)
{
    snprintf(text, 32, "%lld%s", (long long)v, v == INT64_MAX ? " or more" : "");
    return text;
}

#define CONVERT(name, to)                                                       \
    static void name(to *dst, const void *src, gs_dtype from, uint64_t n)       \
    {                                                                           \
        switch (from) {                                                         \
            CASE(GS_F64, double, to)                                            \
            CASE(GS_F32, float, to)                                             \
            CASE(GS_U8, uint8_t, to)                                            \
            CASE(GS_I8, int8_t, to)                                             \
            CASE(GS_U16, uint16_t, to)                                          \
            CASE(GS_I16, int16_t, to)                                           \
            CASE(GS_U32, uint32_t, to)                                          \
            CASE(GS_I32, int32_t, to)                                           \
            CASE(GS_U64, uint64_t, to)                                          \
            CASE(GS_I64, int64_t, to)                                           \
        default:                                                                \
            memset(dst, 0, n * sizeof(*dst));                                   \
        }                                                                       \
    }
#define CASE(tag, type, to)                         \
    case tag:                                       \
        for (uint64_t i = 0; i < n; i++)            \
            dst[i] = (to)((const type *)src)[i];    \
        break;
CONVERT(plain_to_f32, float)
CONVERT(plain_to_f64, double)
#undef CASE
#undef CONVERT

void gs_part__to_f32(float *dst, const void *src, gs_dtype from, uint64_t n)
{
    if (from == GS_F16 || from == GS_BF16)
        gs_convert_to_f32(dst, src, from, n);
    else
        plain_to_f32(dst, src, from, n);
}

void gs_part__to_f64(double *dst, const void *src, gs_dtype from, uint64_t n)
{
    const uint16_t *const half = src;

    if (from != GS_F16 && from != GS_BF16)
        plain_to_f64(dst, src, from, n);
    else
        for (uint64_t i = 0; i < n; i++)
            dst[i] = (double)(from == GS_F16 ? gs_f32_from_f16(half[i]) : gs_f32_from_bf16(half[i]));
}
