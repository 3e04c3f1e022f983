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

/* Kernels that no program changes, by number and name: those of typed.cu, and those that every program has. */
#define GS_CUDA_TYPED_MAP(X) \
    X(COUNT, gs_typed_count) X(TOTALS, gs_typed_totals) X(PLACE, gs_typed_place) X(BEGINS, gs_typed_begins) \
    X(TASKS, gs_typed_tasks) X(MERGE, gs_typed_merge)
#define GS_CUDA_FIXED_MAP(X) \
    X(ADD, gs_add) X(PICK, gs_pick_rows) X(SEND, gs_send_rows) X(DRAW_TARGETS, gs_draw_targets) \
    X(DRAW_COUNT, gs_draw_count) X(DRAW_PLACES, gs_draw_places) X(DRAW_EDGES, gs_draw_edges) \
    X(DRAW_COUNT_WEIGHTED, gs_draw_count_weighted) X(DRAW_WEIGHTED, gs_draw_weighted) X(DRAW_FIND, gs_draw_find) \
    X(DRAW_NEW, gs_draw_new) X(DRAW_ROWS, gs_draw_rows) X(DRAW_SOURCES, gs_draw_sources) \
    X(DRAW_COUNT_SOURCES, gs_draw_count_sources) X(DRAW_COUNT_LISTED, gs_draw_count_listed) \
    X(DRAW_LIST, gs_draw_list_rows_of) X(DRAW_BY_ROW, gs_draw_by_row) X(DRAW_PLACE, gs_draw_place) \
    X(DRAW_BY_SOURCE, gs_draw_by_source) X(DRAW_FINISH, gs_draw_finish) X(MARK, gs_mark) X(BEGIN, gs_begin) \
    X(FINISH_MOST, gs_finish_most) X(FINISH_ATTEND, gs_finish_attend) X(FINISH_LSE, gs_finish_lse) \
    X(REGROUP, gs_regroup_rows) X(ROW_SUMS, gs_row_sums) X(MIX_PART, gs_mix_parts) X(COLSUM_PART, gs_colsum_parts) \
    X(COLSUM_TOTAL, gs_colsum_total) X(MOMENTS_PART, gs_moments_parts) X(MOMENTS_TOTAL, gs_moments_total) \
    X(STATISTIC, gs_statistic) X(LOSS, gs_loss) X(LOSS_TOTAL, gs_loss_total) X(LOSS_COLUMNS, gs_loss_columns) \
    X(LOSS_COLUMNS_TOTAL, gs_loss_columns_total) X(SQUARES, gs_squares) X(STEP, gs_step)

enum gs_cuda_typed_fixed {
#define X(which, name) GS_CUDA_TYPED_##which,
    GS_CUDA_TYPED_MAP(X)
#undef X
    GS_CUDA_TYPED_FIXED_COUNT
};

enum gs_cuda_fixed {
#define X(which, name) GS_CUDA_##which,
    GS_CUDA_FIXED_MAP(X)
#undef X
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
/* The name of one of gs_cuda_fixed, or of gs_cuda_typed_fixed. */
const char *gs_cuda_fixed_name(int which);
const char *gs_cuda_typed_name(int which);
/* Compiled for this GPU, or from the file where that is kept, and loaded. */
gs_status gs_cuda_load(gs_cuda *c, gs_cu_handle *module, const char *text);
/* The functions of the kernels that every program has. */
gs_status gs_cuda_load_fixed(gs_cuda *c);
/* Launches one of them, as gs_cuda_launch(); or as a launch by itself, a lane for each of `lanes`. */
gs_status gs_cuda_launch_fixed(gs_cuda *c, enum gs_cuda_fixed which, uint64_t blocks_x, uint32_t blocks_y,
                               uint32_t shared, void *args);
gs_status gs_cuda_launch_alone(gs_cuda *c, enum gs_cuda_fixed which, uint64_t lanes, void *args);
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
