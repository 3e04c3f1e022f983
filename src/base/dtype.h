/* dtype.h - element types of arrays in memory and in files.
 *
 * They stand in base, not in tensor, because a file's arrays have them too.
 * Everything is little-endian. bf16/f16 exist at rest only; arithmetic is f32.
 */
#ifndef GS_BASE_DTYPE_H
#define GS_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GS_DTYPE_MAP(X) /* enum, name, bytes */ \
    X(GS_F32, "f32", 4)                         \
    X(GS_BF16, "bf16", 2)                       \
    X(GS_F16, "f16", 2)                         \
    X(GS_F64, "f64", 8)                         \
    X(GS_U8, "u8", 1)                           \
    X(GS_I8, "i8", 1)                           \
    X(GS_U16, "u16", 2)                         \
    X(GS_I16, "i16", 2)                         \
    X(GS_U32, "u32", 4)                         \
    X(GS_I32, "i32", 4)                         \
    X(GS_U64, "u64", 8)                         \
    X(GS_I64, "i64", 8)

typedef enum gs_dtype {
#define X(id, name, bytes) id,
    GS_DTYPE_MAP(X)
#undef X
    GS_DTYPE_COUNT
} gs_dtype;

size_t gs_dtype_bytes(gs_dtype t);
const char *gs_dtype_name(gs_dtype t);
/* false where `name` is none of the above. */
bool gs_dtype_parse(gs_dtype *out, const char *name);

/* Round to nearest even; NaN stays NaN. */
uint16_t gs_bf16_from_f32(float v);
float gs_f32_from_bf16(uint16_t v);
uint16_t gs_f16_from_f32(float v);
float gs_f32_from_f16(uint16_t v);
/* n elements of `from` (GS_F32, GS_BF16, GS_F16) to f32, and back. */
void gs_convert_to_f32(float *dst, const void *src, gs_dtype from, size_t n);
void gs_convert_from_f32(void *dst, gs_dtype to, const float *src, size_t n);

#endif /* GS_BASE_DTYPE_H */
