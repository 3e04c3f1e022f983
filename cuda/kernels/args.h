/* args.h - what is handed to a kernel? Shared by the kernels and the code that launches them.
 *
 * Pointers are the device's. Passed by value, so each is at most 4 KiB.
 */
#ifndef GS_CUDA_KERNELS_ARGS_H
#define GS_CUDA_KERNELS_ARGS_H

#include "base/exponential.h"
#include "device/update.h"

#define GS_BLOCK_LANES 256 /* of every launch */
#define GS_BLOCK_COLUMNS 32 /* that a block adds up over rows */

typedef unsigned char gs_u8;
typedef unsigned short gs_u16;
typedef unsigned int gs_u32;
typedef unsigned long long gs_u64;

#define GS_EDGE_INPUTS 32
#define GS_EDGE_SUMS 4
/* Pointers that a chunk has of its own, at the most: three a sum, and rows at its targets. */
#define GS_EDGE_OWNS (GS_EDGE_INPUTS + 3 * GS_EDGE_SUMS)
#define GS_EDGE_CHUNKS 32 /* of a launch */
#define GS_EDGE_POINTERS 176 /* that the chunks of a launch have of their own */
#define GS_VERTEX_INPUTS 64
#define GS_ROUND_KEYS 20 /* of Philox: two of each round */

/* gs_edge_common.feature_type */
#define GS_FEATURE_F32 0u
#define GS_FEATURE_BF16 1u
#define GS_FEATURE_F16 2u

/* Sums over the edges of a chunk. Work items are pieces of targets with more edges than `piece_edges` (hubs), two for
 * each stretch of that many edges, as at most two hubs meet in one; and the other targets. */
typedef struct gs_edge_chunk {
    const void *target, *index;
    const gs_u32 *start;
    const void *type;                  /* of edges; NULL: masks draw for type 0 */
    const float *weight;               /* NULL: 1 */
    float *partial;                    /* [2 * pieces][floats of one target's sums] */
    gs_u32 targets, edges, piece_edges, pieces; /* the edges may be some of the targets' only */
    gs_u32 first_block, first_merge;   /* the launch's blocks before its own, and those of its merge */
} gs_edge_chunk;

/* What the chunks of a launch have in common. */
typedef struct gs_edge_common {
    const float *in[GS_EDGE_INPUTS];   /* rows at the operand end and parameters; the generated code knows which */
    const gs_u32 *place;               /* [edges] which row of a table by type is the edge's; NULL: there is none */
    gs_u32 index_bytes, type_bytes, first_edge, feature_type;
    gs_u32 key[2], epoch;              /* masks: of gs_random_key(seed, GS_RANDOM_EDGES) */
    gs_u32 round[GS_ROUND_KEYS];       /* of the kernel's first mask (common.cu) */
} gs_edge_common;

/* Chunks whose targets are different rows: each block has one of them. */
typedef struct gs_edge_args {
    gs_edge_chunk chunk[GS_EDGE_CHUNKS];
    float *own[GS_EDGE_POINTERS];      /* [chunks][owns] sums and rows at the target end; the generated code knows
                                        * which */
    gs_edge_common all;
    gs_u32 chunks, owns;
} gs_edge_args;

/* Edges of a portion in the order of their types (typed.cu). */
#define GS_SORT_EDGES 512u   /* that a warp puts in order */
#define GS_SORT_DIGITS 256u
#define GS_TASK_ROWS 128u    /* of edges of one type, which a block multiplies by their matrix */
#define GS_PIECE_ROWS 1024u  /* of edges of one type, whose outer products a block adds up */

/* A row for each edge of a portion, by type: row i of a table, or where the operand of edge order[i] is. */
typedef struct gs_typed_rows {
    const float *row;
    gs_u32 gathered;
} gs_typed_rows;

typedef struct gs_typed_args {
    const void *index, *type;          /* of the chunk */
    gs_u32 index_bytes, type_bytes, first_edge, edges, types;
    /* The sort: one digit of types after the other, first the low one. */
    gs_u32 shift, stretches;           /* of the digit; of GS_SORT_EDGES edges */
    const gs_u32 *from;                /* [edges] as sorted by the digit before; NULL: as they come */
    gs_u32 *to;                        /* [edges] */
    gs_u32 *count, *total;             /* [GS_SORT_DIGITS, stretches], [GS_SORT_DIGITS] */
    gs_u32 *order, *place;             /* [edges] edges (less first_edge) by type, and where each of them is */
    gs_u32 *begin, *task, *piece, *slot; /* [types + 1] before each type: edges, tasks, pieces, pieces of types that
                                          * have several */
    /* Rows by matrices, and outer products of rows. */
    gs_typed_rows x, y;
    const float *matrix;               /* [types, in, out]; or a part of one, with rows of `stride` */
    float *made;                       /* table of the product's rows */
    float *partial, *grad;             /* [slots, in * out], [types, in * out] += */
    gs_u32 numbers, out;               /* in * out */
    gs_u32 each, stride;               /* from a type's matrix to the next, 0 where there is one; of its rows */
} gs_typed_args;

/* A run of elementwise instructions, or one instruction. */
typedef struct gs_vertex_args {
    const void *in[GS_VERTEX_INPUTS];
    float *out[GS_VERTEX_INPUTS];
    gs_u32 rows, epoch;
    gs_u32 key[2], edge_key[2]; /* of dropout, and of what vertices draw for their own edge */
} gs_vertex_args;

/* Rows of one width from rows of another: sums over groups of columns, or their transposes. */
typedef enum gs_regroup {
    GS_REGROUP_FOLD,   /* to[j] = sum of from[j * d, +d) */
    GS_REGROUP_EXPAND, /* to[j] = from[j / d] */
    GS_REGROUP_ACROSS, /* to[j] = sum of from[h * narrow + j] over h */
    GS_REGROUP_TILE,   /* to[j] = from[j % narrow] */
    GS_REGROUP_CONCAT, /* to = from, then other */
    GS_REGROUP_PART,   /* to[j] = from[first + j] */
    GS_REGROUP_MOST,   /* to[0] = the largest of from */
    GS_REGROUP_MIX,    /* blocks of to, each a sum of those of from, `other` [blocks of from, blocks of to] times */
    GS_REGROUP_MIX_T,  /* the same with `other` [blocks of to, blocks of from] */
} gs_regroup;

typedef struct gs_regroup_args {
    const float *from;
    float *to;
    gs_u32 rows, from_width, to_width, how;
    const float *other; /* CONCAT, MIX */
    gs_u32 first;       /* PART */
    gs_u32 blocks;      /* MIX: of from */
} gs_regroup_args;

/* Dot products of the blocks of a with those of b, over rows: parts as column sums have them. */
typedef struct gs_mix_args {
    const float *a, *b;
    float *partial; /* [parts, m * n] */
    gs_u32 rows, m, n, each, part_rows;
} gs_mix_args;

/* Column sums: of `rows` in `parts` of `part_rows`, then the parts in order. */
typedef struct gs_colsum_args {
    const float *from;
    float *partial; /* [parts, width] */
    float *grad;    /* += */
    gs_u32 rows, width, parts, part_rows;
} gs_colsum_args;

/* Sums of columns and of their squares, in the same way. */
typedef struct gs_moments_args {
    const float *from;
    double *partial; /* [parts, 2 * width] */
    double *sums;    /* [2 * width], += */
    gs_u32 rows, width, parts, part_rows;
} gs_moments_args;

/* Mean or variance of each column of all `rows`. */
typedef struct gs_statistic_args {
    const double *sums; /* [2 * width] */
    float *to;          /* [width] */
    gs_u64 rows;
    gs_u32 width, variance;
} gs_statistic_args;

/* LSTMs over edges (sequence.cu). */
#define GS_TILE_ROWS 16       /* targets of a tile, at most */
#define GS_SEQUENCE_WINDOW 16 /* steps */
#define GS_SEQUENCE_BRANCH 16 /* parts of a block */
#define GS_SEQUENCE_LEVELS 7  /* of blocks: 16^8 steps are more than a launch has edges */

typedef struct gs_sequence_args {
    const void *target, *index, *type; /* type: NULL where edges have none */
    const gs_u32 *start, *order;       /* order: [targets] of the launch, those with the most edges first */
    const float *gates, *weight;
    float *transposed;                 /* [width, 4 * width], the weight transposed */
    float *state, *cell;               /* rows of the target interval */
    float *d_state, *d_cell, *d_gates; /* backward */
    /* What tiles have of their windows: [tiles * WINDOW * rows of a tile] edges, and states. */
    float *gate, *before;              /* [edges, 4 * width], [edges, width] */
    float *cells, *kept;               /* [tiles, WINDOW + 1, rows, width], [tiles, levels, BRANCH, 2, rows, width] */
    gs_u32 *row;                       /* [edges] operand row, or GS_NO_SLOT */
    gs_u32 targets, width, index_bytes, type_bytes;
    gs_u32 first, round, levels, edges; /* of the first tile in `order`; windows done; that there is room for; of
                                         * spread */
} gs_sequence_args;

typedef struct gs_loss_part {
    double loss_sum;
    gs_u64 rows[4], correct[4];
    double valid_loss;
} gs_loss_part;

typedef struct gs_loss_args {
    const float *logits;
    const int *label;
    const gs_u8 *split;
    float *gradient;    /* or NULL */
    gs_loss_part *part; /* [parts], one of each block */
    gs_loss_part *total; /* += */
    const float *weight; /* [classes], or NULL: 1 */
    const float *factor; /* of each training row, the first ones, its loss's; or NULL: 1 */
    gs_u32 *found;       /* gs_metrics.found of the device */
    gs_u32 rows, classes, parts;
    float scale, smoothing;
} gs_loss_args;

/* Of each column of a loss of labels one by one: what GS_LOSS_SPLITS splits have of GS_LOSS_SUMS figures, the training
 * rows' loss, how many labels are known in each split, and the validation rows' loss. */
#define GS_LOSS_FIGURES 14
#define GS_LOSS_OF_TRAIN 9
#define GS_LOSS_KNOWN 10
#define GS_LOSS_OF_VALID 13

/* The losses of tensor/op.h. */
typedef enum gs_columns_loss { GS_COLUMNS_XENT, GS_COLUMNS_BCE, GS_COLUMNS_MSE, GS_COLUMNS_HUBER } gs_columns_loss;

typedef enum gs_label_type { GS_LABEL_BYTES, GS_LABEL_WHOLE, GS_LABEL_FLOATS } gs_label_type;

typedef struct gs_columns_args {
    const float *logits;
    const void *label;
    const gs_u8 *split;
    float *gradient;     /* or NULL */
    double *partial;     /* [parts][GS_LOSS_FIGURES][classes] */
    double *total;       /* [GS_LOSS_FIGURES][classes], += */
    const float *weight; /* [classes], or NULL: 1 */
    const float *factor; /* as in gs_loss_args */
    gs_u32 rows, classes, parts, part_rows;
    gs_u32 loss;         /* gs_columns_loss, but the first */
    gs_u32 numbers;      /* the labels are numbers; else 0 and 1 */
    gs_u32 label_type;   /* gs_label_type; WHOLE: one a row */
    float scale;
} gs_columns_args;

/* Bits of a largest or least value that no edge was added to: a signalling NaN, as no arithmetic makes one. */
#define GS_NO_EDGE 0xffa5a5a5u

/* Numbers over the rows of a sum: before its first chunk and after its last. */
typedef struct gs_frame_args {
    float *acc, *maximum, *norm;
    gs_u64 count;      /* rows * width */
    gs_u64 heads_count; /* rows * heads */
    gs_u32 each;       /* width / heads */
    gs_u32 neutral;    /* bits of what acc begins with */
    gs_u32 beside;     /* gs_sum */
} gs_frame_args;

/* The learned parameters, all of them: multiples of 64 floats, gaps of 0 between them. */
typedef struct gs_step_args {
    float *value;
    const float *grad;
    float *first, *second; /* the update's states, as many as it has */
    float *previous;       /* takes what the values were */
    gs_u32 *fault;         /* becomes 1 where a value is not finite */
    gs_u64 count;
    gs_update update;
} gs_step_args;

/* Sums of squares: of `count` numbers, every GS_SQUARES-th times 4 from each lane's own on. */
enum { GS_SQUARES = 4 * GS_BLOCK_LANES };
typedef struct gs_squares_args {
    const float *value;
    double *partial;       /* [GS_SQUARES], a lane each */
    gs_u64 count;
} gs_squares_args;

/* Rows from wherever they are: row r of those that devices keep is row r / devices of kept[r % devices], and row r -
 * rows_kept of `sent` else. */
#define GS_PICK_TABLES 8 /* most devices */
#define GS_PICK_COPIES 4 /* units of a lane that are on their way at once */
typedef struct gs_pick_args {
    const gs_u8 *kept[GS_PICK_TABLES], *sent;
    const gs_u32 *place; /* [rows] */
    gs_u8 *to;           /* [rows][row_bytes] */
    gs_u32 rows_kept, first_sent; /* first_sent: row that `sent` begins with */
    gs_u32 rows, devices, row_bytes;
    gs_u32 unit, lanes;  /* bytes that a lane copies at once, 16, 8, 4 or 2; lanes of a row, a power of 2 to 32 */
} gs_pick_args;

/* A batch of neighbours (draw.cu). Hop h has rows [rows[h - 1], rows[h]), hop 0 the targets. */
#define GS_DRAW_HOPS 16
#define GS_DRAW_LISTS (GS_DRAW_HOPS + 1)
#define GS_DRAW_PART 16 /* lanes of a block that one of them adds up */
#define GS_DRAW_SHARED ((GS_BLOCK_LANES + GS_BLOCK_LANES / GS_DRAW_PART) * 8)
/* Edges in the order of one of their ends: counts of those of the first rows[h] rows, which have `targets` rows with
 * edges. */
typedef struct gs_draw_list_state {
    gs_u32 targets[GS_DRAW_HOPS + 1], ends[GS_DRAW_HOPS + 1], largest;
} gs_draw_list_state;

/* device.h has the same as gs_draw_counts. */
typedef struct gs_draw_state {
    gs_u32 rows[GS_DRAW_HOPS + 1], edges[GS_DRAW_HOPS + 1]; /* edges[h]: into the rows before hop h */
    gs_u32 overflows;
    gs_draw_list_state list[GS_DRAW_LISTS];
} gs_draw_state;

typedef struct gs_draw_args {
    gs_draw_state *state;
    const gs_u32 *first, *other; /* in-edges of vertex v: other[first[v]..first[v + 1]) */
    const void *type;            /* of these, of type_bytes, or NULL */
    const float *weight;         /* likewise */
    gs_u64 *slot;                /* [1 << bits] table of vertices: vertex << 32 | row, or the edge that has it first */
    gs_u64 *sums;                /* of each block */
    gs_u32 *vertex, *slot_of;    /* [most_rows] of each row; its place in the table */
    gs_u32 *start;               /* [most_rows + 1] first edge of a row */
    gs_u32 *source, *row;        /* [most_edges] of each edge: first which one of the graph's it is, then its source */
    gs_u32 *at, *fresh;          /* [most_edges] the source's place in the table; the row that an edge has first */
    gs_u16 *type_of;             /* [most_edges] what they carry, where the graph's do */
    float *weight_of;
    gs_u32 *many;                /* [most_rows] edges of a row of the hop */
    /* of a list by source */
    gs_u32 *count, *taken, *begin; /* [most_rows] edges of a row, those that have a place, where the first one's is */
    gs_u32 *placed;              /* [most_edges] which edge has the place */
    void *list_target, *list_index, *list_type;
    gs_u32 *list_start;
    float *list_weight;
    float *in_degree;            /* of rows; NULL: not wanted */
    gs_u8 *split;                /* likewise */
    float *loops;                /* likewise, self loops; `own`: of each vertex of the graph; NULL: there are none */
    const gs_u32 *own;
    gs_u32 bits, most_rows, most_edges, index_bytes;
    gs_u32 hop, hops, fanout, targets;
    gs_u32 weighted, by_type, type_bytes; /* draws as likely as weights; a fanout of each type */
    gs_u32 list, operands;       /* number of a list; 0: by destination, else of edges into hops before this one */
    gs_u32 key[2], batch, epoch;
    gs_u32 in_split, out_split;  /* of targets, and of other rows */
} gs_draw_args;

/* Rows of the host's memory whose bits are set. */
#define GS_SEND_ROWS 4 /* that a group of lanes looks at; it divides 64 */
typedef struct gs_send_args {
    const gs_u8 *from;
    const gs_u64 *bits;    /* [rows] */
    gs_u8 *to;             /* as `from`, [rows][row_bytes] */
    gs_u64 rows;
    gs_u32 row_bytes;
    gs_u32 unit, lanes;    /* as in gs_pick_args; 1, too */
} gs_send_args;

/* The mark of 8 * words bytes (base/hash.h), as a sum for each block. */
#define GS_MARK_BLOCKS 32 /* most */
#define GS_MARK_SHARED (GS_BLOCK_LANES * 8)
typedef struct gs_mark_args {
    const gs_u64 *from;
    gs_u64 *to; /* [blocks] */
    gs_u64 words;
} gs_mark_args;

enum { GS_ADD_F32, GS_ADD_BF16, GS_ADD_F16 };

typedef struct gs_add_args {
    float *acc;
    const void *src;
    const float *scale; /* of each `width` numbers, or NULL */
    gs_u64 count;
    gs_u32 width, how;
} gs_add_args;

#endif /* GS_CUDA_KERNELS_ARGS_H */
