/* Dense products with oneDNN's sgemm, and rows by small matrices with the device's own kernel.
 *
 * oneDNN runs on one thread when it is called inside a parallel region, so the cutting
 * is done here, by sizes alone, and results do not depend on the number of
 * threads. Row-wise products are cut by rows (vertex.c: other instructions
 * then find the rows still in the cache). Gradients, whose long side is the rows, are cut
 * both ways: into tiles of the result, and, as small results give too few tiles,
 * into chunks of rows whose partial sums are added in order.
 *
 * Measured on 2 cores of Zen 3 against oneDNN's own threading (GFLOP/s, 16K rows,
 * 256 -> 256): 169 to 165 by 256 rows; gradient 159 to 140.
 *
 * A transposed weight is slower than one as it is multiplied: 256 rows at a time on a thread of Zen 5, 227 to 252
 * GFLOP/s for 500 -> 64 and the like; 128 at a time on two, 390 to 497 for 1024 -> 256 (a packed weight of oneDNN's
 * matmul: 498). Transposing it takes as long as some 200 rows gain; it is done once a stage and pass, also where it
 * does not pay, as a product has other bits. Matrices of edge types are laid side by side likewise, so that they are
 * one product.
 *
 * A gradient of [512, 64], 640 rows at a time, rows from memory: 428; its transpose 498.
 * Gradients of [256, 1024] on those, 1024 rows at a time: 356 in tiles of 64 x 1024, 391 to 426 of 256 x 256.
 */
#include <dnnl.h>
#include <string.h>

#include "base/size.h"
#include "device/cpu/bf16.h"
#include "device/cpu/gemm.h"
#include "device/cpu/steps.h"
#include "device/cpu/cpu.h"

#define TILES_LEAST 4u                     /* of the result, each a task of an outer product */
#define TILE_FLOATS 65536u                 /* at most */
#define TILE_STEP 64u                      /* a tile's short side is a multiple */
#define CHUNK_ROWS 1024                    /* at least: below, adding the partial sums shows */
#define PARTIAL_BYTES (2 * GS_MIB)         /* of all partial sums */
#define PARTIAL_MOST 64
#define TRANSPOSED_TILE 32     /* rows and columns: a few lines of the first-level cache on both sides */
#define TRANSPOSED_SIDES 4     /* a gradient so many times as high as wide is made lying */
#define LIBRARY_BYTES (2 * GS_MIB)         /* a thread: packed blocks of oneDNN's AVX-512 driver, about 1.4 MiB */

static bool sgemm(char ta, char tb, uint32_t m, uint32_t n, uint32_t k, const float *a, uint32_t lda, const float *b,
                  uint32_t ldb, float beta, float *c, uint32_t ldc)
{
    return dnnl_sgemm(ta, tb, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc) == dnnl_success;
}

bool gs_cpu__sgemm(char ta, char tb, uint32_t m, uint32_t n, uint32_t k, const float *a, uint32_t lda, const float *b,
                   uint32_t ldb, float beta, float *c, uint32_t ldc)
{
    return sgemm(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc);
}

/* Rows of c[m, n] = a b + beta c whose bits do not depend on m: how a run cuts its rows, by blocks, tiles and steps of
 * sequences, must not show. A maximum's gradient goes to the edges whose value, made again in other tiles, equals it.
 * Of oneDNN's kernels those for one to three rows at the end of a block (AVX2) add in an order of their own, as does
 * one row alone (AVX-512) and any product of a few rows by a transposed matrix. Its AVX2 driver cuts a product into
 * blocks of at most 72 rows, all about as long, and of the widest results into longer ones from some 300 rows on. So
 * what it is given are multiples of 64 rows, and once fewer; one to three at the end are multiplied as four, of a copy;
 * and weights are transposed before. Measured for results and rows of up to 2048 numbers (test_cpu_steady.c). */
#define BLOCK_ROWS 64u
#define BLOCKS 4u     /* of a call, */
#define WIDEST 2048u  /* where a row of the result has no more numbers */
#define STEP_ROWS 6u  /* of the kernel */
#define PAD_ROWS 4u
#define PAD_FLOATS 4096u /* of a row and its product: wider ones are left as they are */

/* One to three rows. */
static bool last_rows(uint32_t m, uint32_t n, uint32_t k, const float *a, uint32_t lda, const float *b, uint32_t ldb,
                      float beta, float *c, uint32_t ldc)
{
    float pad[PAD_ROWS * PAD_FLOATS];

    if ((uint64_t)n + k > PAD_FLOATS)
        return sgemm('N', 'N', m, n, k, a, lda, b, ldb, beta, c, ldc);
    float *const pad_c = pad + (size_t)PAD_ROWS * k;
    memset(pad, 0, PAD_ROWS * ((size_t)n + k) * sizeof(*pad));
    for (uint32_t r = 0; r < m; r++) {
        memcpy(pad + (size_t)r * k, a + (size_t)r * lda, k * sizeof(*pad));
        if (beta != 0)
            memcpy(pad_c + (size_t)r * n, c + (size_t)r * ldc, n * sizeof(*pad));
    }
    if (!sgemm('N', 'N', PAD_ROWS, n, k, pad, k, b, ldb, beta, pad_c, n))
        return false;
    for (uint32_t r = 0; r < m; r++)
        memcpy(c + (size_t)r * ldc, pad_c + (size_t)r * n, n * sizeof(*pad));
    return true;
}

bool gs_cpu__steady_rows(uint32_t m, uint32_t n, uint32_t k, const float *a, uint32_t lda, const float *b, uint32_t ldb,
                         float beta, float *c, uint32_t ldc)
{
    const uint32_t most = (n <= WIDEST ? BLOCKS : 1) * BLOCK_ROWS;
    bool fine = true;

    for (uint32_t at = 0, rows; at < m && fine; at += rows) {
        const uint32_t left = m - at, over = left % STEP_ROWS;
        const float *const from = a + (size_t)at * lda;
        float *const to = c + (size_t)at * ldc;
        if (left >= BLOCK_ROWS)
            rows = GS_MIN(left - left % BLOCK_ROWS, most);
        else
            rows = over >= PAD_ROWS ? left : left - over;
        if (rows > 0) {
            fine = sgemm('N', 'N', rows, n, k, from, lda, b, ldb, beta, to, ldc);
        } else {
            rows = over;
            fine = last_rows(rows, n, k, from, lda, b, ldb, beta, to, ldc);
        }
    }
    return fine;
}

/* Each matrix by itself: its result, or its operand, is a block of the columns of wide rows. */
static bool fan_rows(const gs_cpu_step *s, const float *a, float *c, uint32_t rows)
{
    const bool transposed = s->op == GS_OP_FAN_T;
    const uint32_t in = s->weight.rows / s->weight.matrices, out = s->weight.cols;
    bool fine = true;
    for (uint32_t t = 0; t < s->weight.matrices && fine; t++) {
        const float *const w = s->weight.at + (size_t)t * in * out;
        fine = transposed ? sgemm('N', 'T', rows, in, out, a + (size_t)t * out, s->a_width, w, out,
                                  t == 0 && !s->adds ? 0.0f : 1.0f, c, in)
                          : gs_cpu__steady_rows(rows, out, in, a, in, w, out, s->adds ? 1.0f : 0.0f,
                                                c + (size_t)t * out, s->width);
    }
    return fine;
}

void gs_cpu__transpose(float *to, const float *from, uint32_t rows, uint32_t cols)
{
    for (uint32_t r0 = 0; r0 < rows; r0 += TRANSPOSED_TILE)
        for (uint32_t c0 = 0; c0 < cols; c0 += TRANSPOSED_TILE)
            for (uint32_t c = c0; c < GS_MIN(c0 + TRANSPOSED_TILE, cols); c++)
                for (uint32_t r = r0; r < GS_MIN(r0 + TRANSPOSED_TILE, rows); r++)
                    to[(size_t)c * rows + r] = from[(size_t)r * cols + c];
}

/* Matrices one above the other to side by side: one product gives what all of them do. */
static void lay_side_by_side(float *to, const float *from, uint32_t matrices, uint32_t rows, uint32_t cols)
{
    for (uint32_t t = 0; t < matrices; t++)
        for (uint32_t r = 0; r < rows; r++, from += cols)
            memcpy(to + ((size_t)r * matrices + t) * cols, from, cols * sizeof(*to));
}

static void lay_out_floats(float *to, const gs_cpu_step *s)
{
    const uint32_t rows = s->op == GS_OP_MATMUL_T ? s->weight.rows : s->weight.rows / s->weight.matrices;
    if (s->op == GS_OP_MATMUL_T)
        gs_cpu__transpose(to, s->weight.at, rows, s->weight.cols);
    else if (s->op == GS_OP_FAN)
        lay_side_by_side(to, s->weight.at, s->weight.matrices, rows, s->weight.cols);
    else
        for (uint32_t t = 0; t < s->weight.matrices; t++)
            gs_cpu__transpose(to + (size_t)t * rows * s->weight.cols,
                              s->weight.at + (size_t)t * rows * s->weight.cols, rows, s->weight.cols);
}

bool gs_cpu__is_transposed(const gs_cpu *cpu, gs_op op)
{
    return cpu->bf16 != NULL ? gs_cpu__is_product(op) : op == GS_OP_MATMUL_T || op == GS_OP_FAN || op == GS_OP_FAN_T;
}

static void lay_out(float *to, const gs_cpu_step *s)
{
    const uint32_t n = s->width, k = (uint32_t)((uint64_t)s->weight.rows * s->weight.cols / n);
    if (s->op != GS_OP_MATMUL)
        lay_out_floats(to, s);
    if (s->weight.bf16 != NULL)
        s->weight.bf16->pair_rows((uint32_t *)(void *)to, s->op == GS_OP_MATMUL ? s->weight.at : to, k, n);
}

void gs_cpu__transpose_weights(gs_cpu *cpu, const gs_vertex_launch *l)
{
    const bool there = cpu->in_pass && cpu->transposed_stage == l->stage;
    uint64_t used = 0;

    cpu->transposed_stage = cpu->in_pass ? l->stage : NULL;
    for (uint32_t i = 0; i < l->stage->instrs; i++) {
        gs_cpu_step *const s = &cpu->step[i];
        const uint64_t n = (uint64_t)s->weight.rows * s->weight.cols;
        s->weight.transposed = NULL;
        s->weight.pairs = NULL;
        s->weight.bf16 = cpu->bf16;
        if (!gs_cpu__is_transposed(cpu, s->op) || used + n > cpu->room[GS_CPU_TRANSPOSED].floats)
            continue;
        float *const to = cpu->room[GS_CPU_TRANSPOSED].at + used;
        if (!there)
            lay_out(to, s);
        if (cpu->bf16 != NULL)
            s->weight.pairs = (const uint32_t *)(const void *)to;
        else
            s->weight.transposed = to;
        used += n;
    }
}

/* ---- matrices of edges ----
 *
 * The matrices that edges are multiplied by, those of their types or a part of one for all, transposed where the
 * product is: made once a pass, one after the other in the order of the stage's instructions.
 */

static bool is_transposed(const gs_stage *stage, const gs_instr *in, uint32_t params)
{
    return gs_op_by_transpose(in->op) && in->b.kind == GS_FROM_PARAM && in->b.index < params &&
           in->dst < stage->edge_regs && in->a.kind == GS_FROM_REG && in->a.index < stage->edge_regs;
}

static uint64_t transposed_floats(const gs_program *p, const gs_stage *stage, const gs_instr *in)
{
    return gs_op_is_dense(in->op) ? (uint64_t)stage->edge_reg[in->dst].width * stage->edge_reg[in->a.index].width
                                  : gs_param_elements(&p->param[in->b.index]);
}

uint64_t gs_cpu__transposed_matrix_floats(const gs_program *p, const gs_stage *stage)
{
    uint64_t floats = 0;
    for (uint32_t i = 0; i < stage->edge_instrs; i++)
        if (is_transposed(stage, &stage->edge_instr[i], p->params))
            floats += transposed_floats(p, stage, &stage->edge_instr[i]);
    return floats;
}

const float *gs_cpu__transposed_matrices(const gs_cpu *cpu, const gs_edge_program_launch *l, const gs_instr *in)
{
    const gs_stage *const stage = l->stage;
    const float *at = cpu->room[GS_CPU_MATRICES].at;
    for (const gs_instr *i = stage->edge_instr; i < in; i++)
        if (is_transposed(stage, i, l->program->params))
            at += transposed_floats(l->program, stage, i);
    return at;
}

void gs_cpu__transpose_matrices(gs_cpu *cpu, const gs_edge_program_launch *l)
{
    const gs_stage *const stage = l->stage;
    if (cpu->room[GS_CPU_MATRICES].floats < gs_cpu__transposed_matrix_floats(l->program, stage) || l->param == NULL ||
        (cpu->in_pass && cpu->matrix_stage == stage))
        return;
    for (uint32_t k = 0; k < stage->edge_instrs; k++) {
        const gs_instr *const i = &stage->edge_instr[k];
        if (!is_transposed(stage, i, l->program->params))
            continue;
        const gs_param *const w = &l->program->param[i->b.index];
        const uint32_t in = stage->edge_reg[i->dst].width, out = w->cols;
        const float *const from = l->param[i->b.index];
        float *const all = cpu->room[GS_CPU_MATRICES].at;
        float *const to = all + (gs_cpu__transposed_matrices(cpu, l, i) - all);
        if (gs_op_is_dense(i->op)) {
            const float *const part = from + gs_param_part(w, in, i->site);
            const uint32_t width = stage->edge_reg[i->a.index].width;
            for (uint32_t r = 0; r < in; r++)
                for (uint32_t c = 0; c < width; c++)
                    to[(uint64_t)c * in + r] = part[(uint64_t)r * out + c];
            continue;
        }
        for (uint64_t m = 0; m + in <= w->rows; m += in)
            for (uint32_t r = 0; r < in; r++)
                for (uint32_t c = 0; c < out; c++)
                    to[m * out + (uint64_t)c * in + r] = from[(m + r) * out + c];
    }
    cpu->matrix_stage = stage;
}

/* ---- gradients of matrices of all edges ---- */

#define OUTERS_BYTES (2 * GS_MIB) /* that are added up beside other sums, */
#define OUTERS_PARTS 128u         /* in so many parts at most, */
#define OUTERS_LEAST 16u          /* and so many at least */

gs_cpu_outers gs_cpu__outers_beside(const gs_stage *stage)
{
    uint64_t floats = 0;
    for (uint32_t i = 0; i < stage->sums; i++) {
        const gs_sum *const m = &stage->sum[i];
        if (m->kind == GS_SUM_OUTER && m->dense && m->score < stage->edge_regs && m->value < stage->edge_regs)
            floats += (uint64_t)stage->edge_reg[m->score].width * stage->edge_reg[m->value].width;
    }
    const uint64_t parts = floats == 0 ? 0 : GS_MIN(OUTERS_BYTES / sizeof(float) / floats, (uint64_t)OUTERS_PARTS);
    return parts < OUTERS_LEAST ? (gs_cpu_outers){0} : (gs_cpu_outers){.floats = floats, .parts = (uint32_t)parts};
}

/* ---- rows ---- */

#define OWN_LANES 8u             /* AVX2 and wider, */
#define OWN_VECTORS 2u           /* of a row of the result, at least, */
#define OWN_BYTES (512 * GS_KIB) /* and of the matrix, at most: half a second-level cache */

/* c[m, n] = a b + beta c, all rows contiguous, with the same bits whatever m is. The device's own kernel fetches rows
 * ahead from memory, which oneDNN waits for: of 256 rows at a time on a thread of Zen 5 250 to 180 GFLOP/s for
 * 128 -> 64, 260 to 240 for 256 -> 256, and as much of rows in the cache (oneDNN 250); 64 -> 16, a vector a row, 155 to
 * 205, and 1024 -> 256 225 to 240. */
static bool rows_by(const gs_cpu_kernels *kernels, uint32_t m, uint32_t n, uint32_t k, const float *a, const float *b,
                    float beta, float *c)
{
    if (kernels->lanes < OWN_LANES || n < OWN_VECTORS * kernels->lanes || (uint64_t)n * k * sizeof(*b) > OWN_BYTES)
        return gs_cpu__steady_rows(m, n, k, a, k, b, n, beta, c, n);
    kernels->by_matrix(c, a, b, m, k, n, beta != 0);
    return true;
}

bool gs_cpu__product_rows(const gs_cpu_kernels *k, const gs_cpu_step *s, uint32_t first, uint32_t rows)
{
    const uint32_t wide = s->weight.cols;
    const float *const a = s->a.p + (size_t)first * s->a_width;
    float *const c = s->dst + (size_t)first * s->width;
    const float beta = s->adds ? 1.0f : 0.0f;

    const uint32_t from = s->weight.first;

    if (s->weight.pairs != NULL) {
        s->weight.bf16->rows_by(rows, s->width, s->a_width, a, s->weight.pairs, from, s->adds, c);
        return true;
    }
    if (s->weight.transposed != NULL)
        return rows_by(k, rows, s->width, s->a_width, a, s->weight.transposed + (size_t)from * s->width, beta, c);
    if (s->op == GS_OP_FAN || s->op == GS_OP_FAN_T)
        return fan_rows(s, a, c, rows);
    /* matmul_t: x[., in] w[out, in]'; matmul: x[., out] w[out, in] */
    if (s->op == GS_OP_MATMUL_T)
        return sgemm('N', 'T', rows, s->width, s->a_width, a, s->a_width, s->weight.at + from, wide, beta, c, s->width);
    return rows_by(k, rows, s->width, s->a_width, a, s->weight.at + (size_t)from * wide, beta, c);
}

/* c[m, n] = a' b over `rows` rows, or +=. */
static bool outer(const gs_cpu_step *s, uint32_t m, uint32_t n, uint32_t rows, const float *a, uint32_t lda,
                  const float *b, uint32_t ldb, bool adds, float *c, uint32_t ldc)
{
    if (s->weight.bf16 == NULL)
        return sgemm('T', 'N', m, n, rows, a, lda, b, ldb, adds ? 1.0f : 0.0f, c, ldc);
    s->weight.bf16->outer(m, n, rows, a, lda, b, ldb, adds, c, ldc);
    return true;
}

bool gs_cpu__outer_is_transposed(const gs_cpu_step *s)
{
    return s->op == GS_OP_OUTER && s->weight.rows >= TRANSPOSED_SIDES * s->weight.cols;
}

bool gs_cpu__outer_rows(const gs_cpu_step *s, uint32_t first, uint32_t rows, float *sum, bool add)
{
    const uint32_t some = s->weight.some; /* OUTER: columns of b; the others of the gradient are 0 */
    if (s->op == GS_OP_OUTER && some < s->weight.cols && !add)
        memset(sum, 0, (size_t)s->weight.rows * s->weight.cols * sizeof(*sum));
    if (gs_cpu__outer_is_transposed(s)) {
        const uint32_t out = s->weight.rows;
        return outer(s, some, out, rows, s->b.p + (size_t)first * some, some, s->a.p + (size_t)first * out, out, add,
                     sum + (size_t)s->weight.first * out, out);
    }
    /* FAN_OUTER: the matrices side by side, as their blocks in b are; else one */
    const uint32_t matrices = s->op == GS_OP_FAN_OUTER ? s->weight.matrices : 1;
    const uint32_t m = s->weight.rows / matrices, wide = s->weight.cols * matrices,
                   n = s->op == GS_OP_FAN_OUTER ? wide : some;
    return outer(s, m, n, rows, s->a.p + (size_t)first * m, m, s->b.p + (size_t)first * n, n, add,
                 sum + s->weight.first, wide);
}

/* How an outer product [out, in] over `rows` is cut. Chunks beyond one need
 * partial sums [chunks, out, in]. Tiles are columns of the result, or rows where it has more of them. */
typedef struct outer_cut {
    uint32_t chunks, chunk_rows, tiles, tile_side;
} outer_cut;

static uint32_t most_chunks(uint32_t out, uint32_t in)
{
    const uint64_t bytes = (uint64_t)out * in * sizeof(float);
    return (uint32_t)GS_MAX(GS_MIN(PARTIAL_BYTES / bytes, (uint64_t)PARTIAL_MOST), 1u);
}

static outer_cut cut_outer(uint32_t out, uint32_t in, uint32_t rows)
{
    const uint32_t most = most_chunks(out, in);
    const uint64_t chunk_rows = GS_MAX(gs_align_up(gs_div_up(rows, most), 64), (uint64_t)CHUNK_ROWS);
    const uint64_t tiles = GS_MAX(gs_div_up((uint64_t)out * in, TILE_FLOATS), (uint64_t)TILES_LEAST);
    const uint32_t side = GS_MAX(out, in), tile_side = (uint32_t)gs_align_up(gs_div_up(side, tiles), TILE_STEP);
    return (outer_cut){.chunks = (uint32_t)gs_div_up(rows, chunk_rows),
                       .chunk_rows = (uint32_t)GS_MIN(chunk_rows, (uint64_t)UINT32_MAX),
                       .tiles = (uint32_t)gs_div_up(side, tile_side),
                       .tile_side = tile_side};
}

uint64_t gs_cpu__outer_floats(uint32_t out, uint32_t in)
{
    const uint64_t chunks = out == 0 || in == 0 ? 1 : most_chunks(out, in);
    return chunks == 1 ? 0 : chunks * out * in;
}

static bool outer_task(gs_cpu *cpu, const gs_cpu_step *s, const outer_cut *cut, uint32_t rows, uint32_t task)
{
    const uint32_t out = s->weight.rows, in = s->weight.cols; /* of one matrix */
    const uint32_t chunk = task / cut->tiles, tile = task % cut->tiles;
    const uint64_t first = (uint64_t)chunk * cut->chunk_rows;
    const uint32_t k = (uint32_t)GS_MIN(cut->chunk_rows, rows - first);
    const uint32_t at = tile * cut->tile_side, side = GS_MIN(cut->tile_side, GS_MAX(out, in) - at);
    const uint32_t row = in >= out ? 0 : at, column = in >= out ? at : 0;
    float *const c = cut->chunks == 1 ? s->grad : cpu->room[GS_CPU_OUTER].at + (uint64_t)chunk * out * in;

    return outer(s, in >= out ? out : side, in >= out ? side : in, k, s->a.p + first * out + row, out,
                 s->b.p + first * s->weight.matrices * in + column, s->weight.matrices * in, cut->chunks == 1,
                 c + (uint64_t)row * in + column, in);
}

/* The outer product for one matrix: the rows of b are s->weight.matrices times as wide as it. */
static gs_status outer_of_one(gs_cpu *cpu, const gs_cpu_step *s, uint32_t rows)
{
    const outer_cut cut = cut_outer(s->weight.rows, s->weight.cols, rows);
    const uint64_t n = (uint64_t)s->weight.rows * s->weight.cols;
    const int before = gs_cpu__enter(cpu, cut.chunks * cut.tiles);
    bool failed = false;

#pragma omp parallel
    {
#pragma omp for schedule(dynamic, 1)
        for (uint32_t t = 0; t < cut.chunks * cut.tiles; t++)
            if (!outer_task(cpu, s, &cut, rows, t)) {
#pragma omp atomic write
                failed = true;
            }
        if (cut.chunks > 1) {
#pragma omp for schedule(static)
            for (uint64_t first = 0; first < n; first += GS_BLOCK_BYTES)
                for (uint32_t c = 0; c < cut.chunks; c++)
                    cpu->k->add(s->grad + first, cpu->room[GS_CPU_OUTER].at + c * n + first,
                                GS_MIN(GS_BLOCK_BYTES, n - first));
        }
    }
    gs_cpu__leave(before);
    return failed ? gs_fail(GS_EDEVICE, "device cpu: oneDNN could not multiply [%u, %u]' by [%u, %u]", rows,
                            s->weight.rows, rows, s->weight.cols)
                  : GS_OK;
}

gs_status gs_cpu__outer(gs_cpu *cpu, const gs_cpu_step *s, uint32_t rows)
{
    gs_cpu_step one = *s;
    one.weight.matrices = s->op == GS_OP_FAN_OUTER ? s->weight.matrices : 1;
    one.weight.rows = s->weight.rows / one.weight.matrices;
    for (uint32_t t = 0; t < one.weight.matrices; t++) {
        GS_TRY(outer_of_one(cpu, &one, rows));
        one.b.p += one.weight.cols;
        one.grad += (size_t)one.weight.rows * one.weight.cols;
    }
    return GS_OK;
}

uint64_t gs_cpu__gemm_bytes(const gs_cpu *cpu) { return cpu->threads * LIBRARY_BYTES; }

gs_status gs_cpu__gemm_warm(const gs_cpu *cpu)
{
    enum { N = 16 };
    float a[N * N], b[N * N], sum = 0;
    bool failed = false;

    for (int i = 0; i < N * N; i++)
        a[i] = b[i] = 1.0f;
    const int before = gs_cpu__enter(cpu, cpu->threads);
#pragma omp parallel reduction(+ : sum)
    {
        float c[N * N];
        const bool fine = sgemm('N', 'T', N, N, N, a, N, b, N, 0.0f, c, N) &&
                          sgemm('N', 'N', N, N, N, a, N, b, N, 0.0f, c, N) &&
                          sgemm('T', 'N', N, N, N, a, N, b, N, 1.0f, c, N);
        sum += fine ? c[0] : 0.0f;
        if (!fine) {
#pragma omp atomic write
            failed = true;
        }
    }
    gs_cpu__leave(before);
    return failed ? gs_fail(GS_EDEVICE, "device cpu: oneDNN's sgemm does not run on this machine") : GS_OK;
}
