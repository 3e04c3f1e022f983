/* text_internal.h - the state of one edge kernel while it is written.
 *
 *   text_sums.c   registers as a lane holds them: loads, stores, instructions; and the kernel's sums
 *   text_edges.c  which registers it needs and what comes from memory into them, how lanes share its columns, masks of
 *                 edges, the kernel
 *
 * All registers are seen in the columns of one frame, whose width is a multiple of all of theirs. A lane
 * holds of each register what belongs to its columns of the frame:
 *
 *   WIDE    as wide as the frame: a number for each column of the lane
 *   GROUPED narrower (numbers of heads): one for each vector, as a vector never spans two groups; or one, the same in
 *           all lanes, where none of them has columns of two (one_group)
 *   SINGLE  of width 1: one, the same in all lanes
 *
 * So copies from one end, products of heads and rows, and `expand` need no other lane. Only `fold` does:
 * through shuffles where a group of columns is a power of two of lanes, through shared memory else.
 */
#ifndef GS_CUDA_TEXT_INTERNAL_H
#define GS_CUDA_TEXT_INTERNAL_H

#include "cuda/kernel_text.h"

#define GS_GEN_EDGE_REGS 256

typedef enum gs_gen_shape { GS_GEN_SINGLE, GS_GEN_GROUPED, GS_GEN_WIDE } gs_gen_shape;

typedef struct gs_gen_writer {
    FILE *out;
    gs_edge_kernel *k;
    const gs_program *p;
    const gs_stage *s;
    bool needed[GS_GEN_EDGE_REGS];   /* registers that the kernel's sums depend on */
    bool per_edge[GS_GEN_EDGE_REGS]; /* and that change from edge to edge */
    gs_status st;
} gs_gen_writer;

/* GS_EUNSUPPORTED, of the first thing that is not there. */
gs_status gs_gen_refuse(gs_gen_writer *w, const char *what);

/* Does it make fewer columns of those of other lanes, too? */
static inline bool gs_gen_folds(gs_op op)
{
    return gs_op_form_of(op) == GS_FORM_FEWER || gs_op_form_of(op) == GS_FORM_ROW;
}

gs_gen_shape gs_gen_shape_of(const gs_gen_writer *w, uint32_t width);
static inline uint32_t gs_gen_width(const gs_gen_writer *w, uint32_t reg) { return w->s->edge_reg[reg].width; }
/* Columns of the frame to one of a register of this width. */
static inline uint32_t gs_gen_each(const gs_gen_writer *w, uint32_t width) { return w->k->width / width; }
/* True where some lanes have columns that are not there. */
bool gs_gen_ragged(const gs_gen_writer *w);

/* Numbers that a lane has of a register of this shape. */
uint32_t gs_gen_length(const gs_gen_writer *w, gs_gen_shape s);
void gs_gen_declare(gs_gen_writer *w, const char *name, gs_gen_shape s);
/* name = the lane's part of the row of `width` numbers at `row`, of bfloat16 where `half`, then at an address of bytes;
 * and the reverse, each number written once. */
void gs_gen_load(gs_gen_writer *w, const char *name, const char *row, uint32_t width, bool half);
void gs_gen_store(gs_gen_writer *w, const char *name, const char *row, uint32_t width);
/* The head of a loop over the lane's vectors, with c its first column and `within` the condition that it is there. */
void gs_gen_each_slot(gs_gen_writer *w);
/* The loop head over a register's values. */
void gs_gen_over(gs_gen_writer *w, gs_gen_shape s);

/* Index of a chunk's own pointer in own[]. */
uint32_t gs_gen_own(gs_gen_writer *w, gs_kernel_own_kind kind, uint32_t index);

/* Instructions whose values change with the edge, or the others. */
void gs_gen_write_instrs(gs_gen_writer *w, bool per_edge);

void gs_gen_take_mask(gs_gen_writer *w, const gs_instr *in);

/* Floats of a target's sums, as a hub's piece has them. */
uint32_t gs_gen_row_floats(const gs_gen_writer *w);
/* What is there before the first edge of `it`; edge k; what is there after the last; and all pieces of a hub. */
void gs_gen_begin_sums(gs_gen_writer *w);
void gs_gen_add_edge(gs_gen_writer *w);
/* Attention: the scores of a burst's edges come first ("score0[b]"), then the maxima with all of them, then the edges;
 * so sums are rescaled once a burst, and an edge takes one exponential. */
bool gs_gen_attends(const gs_gen_writer *w);
void gs_gen_declare_scores(gs_gen_writer *w);
void gs_gen_keep_scores(gs_gen_writer *w);
void gs_gen_rescale_sums(gs_gen_writer *w);
void gs_gen_end_sums(gs_gen_writer *w);
void gs_gen_merge_sums(gs_gen_writer *w);

#endif /* GS_CUDA_TEXT_INTERNAL_H */
