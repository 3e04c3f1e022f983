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
/* A floating-point number of two bytes. */
static inline bool gs_dtype_is_half(gs_dtype t) { return t == GS_BF16 || t == GS_F16; }
/* May features be of it at rest? */
static inline bool gs_dtype_is_feature(gs_dtype t) { return t == GS_F32 || gs_dtype_is_half(t); }
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

/* ---- train tasks ------------------------------------------------------- */

/* What a model is trained for, and what labels say of it.
 *
 * The store keeps one class a vertex (GS_TRAIN_TASK_CLASSIFY: i32 [N], -1 for none), a truth value for each label
 * (GS_TRAIN_TASK_MULTILABEL: u8 [N, labels], GS_LABEL_UNKNOWN where it is not known) or numbers (GS_TRAIN_TASK_REGRESS:
 * f32 [N, numbers], NaN where none is known). It stands in base because the store and the operators both speak of it.
 */

#define GS_TRAIN_TASK_MAP(X) /* enum, name, element type of its labels at rest */ \
    X(GS_TRAIN_TASK_CLASSIFY, "classify", GS_I32)                                 \
    X(GS_TRAIN_TASK_MULTILABEL, "multilabel", GS_U8)                              \
    X(GS_TRAIN_TASK_REGRESS, "regress", GS_F32)

typedef enum gs_train_task {
#define X(id, name, dtype) id,
    GS_TRAIN_TASK_MAP(X)
#undef X
    GS_TRAIN_TASK_COUNT,                      /* of those that labels are of */
    GS_TRAIN_TASK_LINK = GS_TRAIN_TASK_COUNT, /* pairs of vertices, which need none */
    GS_TRAIN_TASK_EDGE_CLASSIFY,              /* labels of pairs: classes */
    GS_TRAIN_TASK_EDGE_REGRESS,               /* or numbers */
    GS_TRAIN_TASKS
} gs_train_task;

static inline bool gs_train_task_is_of_pairs(gs_train_task t) { return t >= GS_TRAIN_TASK_LINK; }
static inline bool gs_train_task_is_of_edge_labels(gs_train_task t) { return t > GS_TRAIN_TASK_LINK; }

#define GS_LABEL_UNKNOWN 255 /* of a u8 label */

const char *gs_train_task_name(gs_train_task t);
/* false where `name` is none of the above. */
bool gs_train_task_parse(gs_train_task *out, const char *name);
gs_dtype gs_train_task_labels(gs_train_task t);
/* The task whose labels have this type at rest; false where no task's do. */
bool gs_train_task_of_labels(gs_train_task *out, gs_dtype t);

/* ---- widths of indices ------------------------------------------------- */

/* Numbers of rows and of edge types, in as few bytes each as a chunk of edges needs.
 *
 * Views of chunks have their arrays const; whoever fills a chunk writes through them.
 */

#define GS_INDEX_INLINE static inline __attribute__((always_inline))

/* Row `k` of a list, of 2 or 4 bytes each. */
GS_INDEX_INLINE uint32_t gs_index_at(const void *list, uint32_t bytes, uint64_t k)
{
    return bytes == 2 ? ((const uint16_t *)list)[k] : ((const uint32_t *)list)[k];
}

GS_INDEX_INLINE void gs_index_put(const void *list, uint32_t bytes, uint64_t k, uint32_t row)
{
    if (bytes == 2)
        ((uint16_t *)(uintptr_t)list)[k] = (uint16_t)row;
    else
        ((uint32_t *)(uintptr_t)list)[k] = row;
}

/* The type of edge `k`, of 1, 2 or 4 bytes each. */
GS_INDEX_INLINE uint32_t gs_type_at(const void *list, uint32_t bytes, uint64_t k)
{
    return bytes == 1   ? ((const uint8_t *)list)[k]
           : bytes == 2 ? ((const uint16_t *)list)[k]
                        : ((const uint32_t *)list)[k];
}

/* Of 1 or 2 bytes, as chunks have them. */
GS_INDEX_INLINE void gs_type_put(const void *list, uint32_t bytes, uint64_t k, uint32_t type)
{
    if (bytes == 1)
        ((uint8_t *)(uintptr_t)list)[k] = (uint8_t)type;
    else
        ((uint16_t *)(uintptr_t)list)[k] = (uint16_t)type;
}

#undef GS_INDEX_INLINE

#endif /* GS_BASE_DTYPE_H */
