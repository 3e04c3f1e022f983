/* code.h - the kernels of a program, as they were compiled. */
#ifndef GS_CUDA_CODE_H
#define GS_CUDA_CODE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "cuda/driver.h"
#include "cuda/kernel_text.h"

typedef struct gs_cuda gs_cuda;

/* The text that every module begins with, that of the fixed kernels, what kernels of LSTMs are made with, and those of
 * products by the type of edges. */
extern const char gs_cuda_common_text[];
extern const char gs_cuda_fixed_text[];
extern const char gs_cuda_sequence_text[];
extern const char gs_cuda_typed_text[];
/* walk.inc, which the texts of programs include. */
extern const char gs_cuda_walk_text[];

/* What is compiled for: the GPU, or where the compiler is older than it, the newest before it: machine code of the same
 * generation (compute capability 9.x runs that of 9.0), else an intermediate text that the driver compiles (PTX). */
typedef struct gs_cuda_target {
    int architecture; /* 90: compute capability 9.0 */
    bool intermediate;
} gs_cuda_target;

gs_cuda_target gs_cuda_target_of(const gs_cuda_driver *d, int major, int minor);

/* Compiles `text` (which follows gs_cuda_common_text) for what gs_cuda_target_of() says. On GS_OK *image is the
 * caller's, to be freed with gs_free(). GS_EDEVICE: the first line that the compiler complains of. */
gs_status gs_cuda_compile(char **image, size_t *bytes, const gs_cuda_driver *d, int major, int minor, const char *text);

/* A launch over edges that is being put together. */
typedef struct gs_cuda_held {
    gs_edge_args args;
    uint64_t blocks, merges, slots; /* of all its chunks: blocks, those of the merge, and sums of pieces of hubs */
} gs_cuda_held;

typedef struct gs_cuda_edge_code {
    gs_edge_kernel k;
    uint32_t stage;     /* GS_NONE: sums of rows */
    gs_cu_handle run, merge;
    gs_cuda_held *held; /* where there are functions */
} gs_cuda_edge_code;

typedef struct gs_cuda_vertex_code {
    gs_vertex_kernel k;
    gs_cu_handle run;
} gs_cuda_vertex_code;

typedef struct gs_cuda_sequence_code {
    gs_sequence_kernel k;
    gs_cu_handle forward, window;
} gs_cuda_sequence_code;

typedef struct gs_cuda_typed_code {
    gs_typed_kernel k;
    gs_cu_handle run;
} gs_cuda_typed_code;

/* Kernels of typed.cu that no program changes. */
enum gs_cuda_typed_fixed {
    GS_CUDA_TYPED_COUNT,
    GS_CUDA_TYPED_TOTALS,
    GS_CUDA_TYPED_PLACE,
    GS_CUDA_TYPED_BEGINS,
    GS_CUDA_TYPED_TASKS,
    GS_CUDA_TYPED_MERGE,
    GS_CUDA_TYPED_FIXED_COUNT
};
#define GS_CUDA_TYPED_NAMES                                                                                            \
    {"gs_typed_count", "gs_typed_totals", "gs_typed_place", "gs_typed_begins", "gs_typed_tasks", "gs_typed_merge"}

enum gs_cuda_fixed {
    GS_CUDA_ADD,
    GS_CUDA_PICK,
    GS_CUDA_SEND,
    GS_CUDA_DRAW_TARGETS,
    GS_CUDA_DRAW_COUNT,
    GS_CUDA_DRAW_PLACES,
    GS_CUDA_DRAW_EDGES,
    GS_CUDA_DRAW_COUNT_WEIGHTED,
    GS_CUDA_DRAW_WEIGHTED,
    GS_CUDA_DRAW_FIND,
    GS_CUDA_DRAW_NEW,
    GS_CUDA_DRAW_ROWS,
    GS_CUDA_DRAW_SOURCES,
    GS_CUDA_DRAW_COUNT_SOURCES,
    GS_CUDA_DRAW_COUNT_LISTED,
    GS_CUDA_DRAW_LIST,
    GS_CUDA_DRAW_BY_ROW,
    GS_CUDA_DRAW_PLACE,
    GS_CUDA_DRAW_BY_SOURCE,
    GS_CUDA_DRAW_FINISH,
    GS_CUDA_MARK,
    GS_CUDA_BEGIN,
    GS_CUDA_FINISH_MOST,
    GS_CUDA_FINISH_ATTEND,
    GS_CUDA_FINISH_LSE,
    GS_CUDA_REGROUP,
    GS_CUDA_ROW_SUMS,
    GS_CUDA_MIX_PART,
    GS_CUDA_COLSUM_PART,
    GS_CUDA_COLSUM_TOTAL,
    GS_CUDA_MOMENTS_PART,
    GS_CUDA_MOMENTS_TOTAL,
    GS_CUDA_STATISTIC,
    GS_CUDA_LOSS,
    GS_CUDA_LOSS_TOTAL,
    GS_CUDA_LOSS_COLUMNS,
    GS_CUDA_LOSS_COLUMNS_TOTAL,
    GS_CUDA_SQUARES,
    GS_CUDA_STEP,
    GS_CUDA_FIXED_COUNT
};

typedef struct gs_cuda_code {
    gs_cu_handle module;
    gs_cuda_edge_code *edge;
    gs_cuda_vertex_code *vertex;
    gs_cuda_sequence_code *sequence;
    uint32_t edges, vertices, sequences;
    gs_cu_handle transpose_weight, scatter_gates; /* where there are sequences */
    gs_typed_plan *typed;                   /* of stages that multiply by the type of edges */
    gs_cuda_typed_code *typed_code;
    uint32_t typed_stages, typed_codes;
    gs_cu_handle typed_fixed[GS_CUDA_TYPED_FIXED_COUNT];
} gs_cuda_code;

/* Kernels of a program: their list, without functions, and their text, to be freed with free(). Needs no GPU. `tf32`:
 * products of edges' rows may round so. After a failure, too, both are the caller's. */
gs_status gs_cuda_write_code(gs_cuda_code *k, char **text, const gs_program *p, bool tf32);
void gs_cuda_free_code(gs_cuda_code *k); /* but for its module */
/* The name of one of gs_cuda_fixed. */
const char *gs_cuda_fixed_name(int which);
/* Compiled for this GPU, or from the file where that is kept, and loaded. */
gs_status gs_cuda_load(gs_cuda *c, gs_cu_handle *module, const char *text);
/* The functions of the kernels that every program has. */
gs_status gs_cuda_load_fixed(gs_cuda *c);
/* Those of c->code, whose module is loaded. */
gs_status gs_cuda_find_code(gs_cuda *c);

/* Is it the kernel of such sums of rows? */
static inline bool gs_cuda_sums_rows(const gs_cuda_edge_code *code, const gs_row_sums *rows)
{
    const gs_row_sums *const has = &code->k.rows;
    return code->stage == GS_NONE && has->by == rows->by && has->width == rows->width &&
           has->types == rows->types && has->dtype == rows->dtype && has->scaled == rows->scaled;
}
static inline bool gs_cuda_makes_typed(const gs_cuda_typed_code *code, gs_typed_kind kind, uint32_t in, uint32_t out)
{
    return code->k.kind == kind && code->k.in == in && code->k.out == out;
}

#endif /* GS_CUDA_CODE_H */
