/* edge_plan.h - an edge program with everything looked up, as the CPU runs it.
 *
 * edge_plan.c makes a plan once a launch; kernels_edge_*.c run it on tiles of edges.
 * A tile has the edges of consecutive targets, or a piece of one target's. What a step
 * computes for a tile lies in a *slot*, [edges, width] in the thread's scratch, which the
 * first-level cache holds. Most values need no slot: rows of arrays are read where they are,
 * by the edge's number at that end; a product that is only added up, folded or spread is
 * never written. So a step reads *values*: rows, wherever they lie, one an edge.
 *
 * Rows of bfloat16 are read as they are where they are summed or folded, and else copied to a slot of float32 first.
 *
 * A value may be narrower than the result it is used for: one number an edge (a weight), or one
 * number for each group of columns (a head's). Columns a number: result's width / value's.
 */
#ifndef GS_DEVICE_CPU_EDGE_PLAN_H
#define GS_DEVICE_CPU_EDGE_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "device/device.h"

#define GS_CPU_TILE_EDGES 1024 /* at most */
#define GS_CPU_TILE_NUMBERS 10 /* 32-bit ones of a tile, an edge: gs_cpu_edge_tile */
#define GS_CPU_EDGE_GATHERS 8 /* arrays of the operand end that are prefetched */
#define GS_CPU_PACKED 4       /* numbers of a vertex beside each other: an edge reads one cache line for them */
#define GS_CPU_SPARSE_WIDTH 1024 /* columns of rows whose zeros are left out, at most */
#define GS_CPU_EDGE_LINKS 7    /* of a step */
#define GS_CPU_DOT_VECTORS 4   /* of rows that a walk multiplies and adds up, at most */
#define GS_CPU_EDGE_TOGETHER 2 /* sums of rows times numbers, and of numbers, that one walk over edges adds up */

typedef enum gs_cpu_edge_form {
    GS_CPU_EDGE_NOTHING, /* no second value */
    GS_CPU_EDGE_SLOT,    /* written by a step */
    GS_CPU_EDGE_OPERAND, /* rows at the operand end */
    GS_CPU_EDGE_TARGET,  /* rows at the target end */
    GS_CPU_EDGE_OPERAND_TYPE, /* of rows at the operand end, the columns of the edge's type */
    GS_CPU_EDGE_TARGET_TYPE,
    GS_CPU_EDGE_STORED,  /* rows in the order of edges: weights, features */
    GS_CPU_EDGE_FIXED,   /* the same row or number for all */
} gs_cpu_edge_form;

typedef struct gs_cpu_edge_value {
    gs_cpu_edge_form form;
    uint32_t width;
    uint32_t slot;  /* SLOT */
    uint32_t stride; /* STORED: from a row to the next */
    bool half;      /* OPERAND, TARGET: rows of bfloat16, of an even width */
    const float *p; /* else: row 0 */
} gs_cpu_edge_value;

static inline void gs_cpu_swap_values(gs_cpu_edge_value *a, gs_cpu_edge_value *b)
{
    const gs_cpu_edge_value t = *a;
    *a = *b;
    *b = t;
}

typedef enum gs_cpu_edge_kind {
    GS_CPU_EDGE_NUMBERS, /* `lists` slots from dst on = the columns of a, rows of GS_CPU_PACKED numbers */
    GS_CPU_EDGE_COPY,   /* dst = a, stretched to the width of dst */
    GS_CPU_EDGE_WIDEN,  /* dst = columns of the features of edges, which are stored in two bytes a number */
    GS_CPU_EDGE_UNARY,  /* dst = op(a), a contiguous */
    GS_CPU_EDGE_FLAT,   /* dst = a op b, each contiguous or one number for all */
    GS_CPU_EDGE_BINARY, /* dst = a op b, rows of half a vector, or at least one; for MUL, b may have one number a
                         * group */
    GS_CPU_EDGE_FOLD,   /* dst = sums of groups of a, or of a * b */
    GS_CPU_EDGE_ROWMAX, /* dst = the largest number of each row of a */
    GS_CPU_EDGE_MASK,   /* dst = 0 or a scale; a, b: input ids of the source and the destination */
    GS_CPU_EDGE_LOOP,   /* dst = 1 where the ids a and b are equal, else 0 */
    GS_CPU_EDGE_SUM,    /* acc += a, or a * b; or the largest, or the least, and which b has it */
    GS_CPU_EDGE_SUM_TYPE, /* acc[columns of the edge's type] += a, or a * b */
    GS_CPU_EDGE_BY_TYPE, /* dst = a by the matrix of the edge's type, a type at a time */
    GS_CPU_EDGE_DENSE,  /* dst = a, contiguous, by one matrix */
    GS_CPU_EDGE_KEEP,   /* kept[sum], at the edge's place, = a */
    GS_CPU_EDGE_OUTER,  /* the thread's sums += products of the columns of a with those of b, both contiguous */
    GS_CPU_EDGE_UNLESS, /* where no number of a is 0, the `skipped` steps behind it are left out */
    GS_CPU_EDGE_EQUAL,  /* dst = bits: which numbers of a and b are equal, full rows or one number */
    GS_CPU_EDGE_ELSE,   /* numbers of b, a slot, become those of c where those of a are 0; or its bits do */
    GS_CPU_EDGE_ATTEND, /* raises the running maximum to scores a, dst = exp(a - maximum), for all of the stage's sums
                         * that attend by these scores */
    GS_CPU_EDGE_KINDS
} gs_cpu_edge_kind;

/* Keys of a dropout of vertices (site, epoch and key) or of edges (a key for site and epoch). */
typedef struct gs_cpu_dropout {
    uint32_t site, epoch;
    uint32_t key[2];
    uint32_t threshold; /* kept when the upper 24 bits of the word are at least this */
    float scale;
} gs_cpu_dropout;

typedef struct gs_cpu_edge_step {
    gs_cpu_edge_kind kind;
    gs_op op;         /* UNARY, FLAT, BINARY */
    gs_sum_kind fold; /* SUM: ADD, MAX or MIN; MAX_HELD or MIN_HELD, whose accumulator is three times as wide */
    float alpha;
    uint32_t width;   /* of dst; of the accumulator */
    uint32_t dst;     /* slot, or GS_NONE */
    uint32_t lists;   /* NUMBERS */
    uint32_t sum;     /* SUM, ATTEND: of the stage; KEEP: 0 or 1 */
    bool norm;        /* SUM: the norm of all that attend by its scores */
    gs_cpu_edge_value a, b, c; /* c: FLAT, of operators of three operands; ELSE; DENSE, OUTER: which of a's numbers
                                * count, as bits */
    const float *matrix; /* BY_TYPE: [a.width, width] of each type, one after the other; DENSE: [a.width, width] */
    uint32_t stride;     /* DENSE: of its rows; WIDEN: numbers from a row to the next; OUTER: its first sum */
    const char *stored;  /* WIDEN: those of the launch's first edge */
    gs_dtype stored_type;
    gs_cpu_dropout mask; /* MASK */
    bool loops_as_one;   /* MASK: program.h, `self` */
    bool sparse;         /* DENSE, OUTER: most numbers of a are 0, and are left out; ELSE: b is bits */
    uint32_t skipped;    /* UNLESS: steps up to its ELSE, and that */
    uint32_t links;      /* steps behind this one that are done with it, row by row: each takes the result before, or
                          * all are sums; of a FOLD, a sum of the same rows */
} gs_cpu_edge_step;

typedef struct gs_cpu_edge_slot {
    uint32_t width;
    uint32_t last;   /* step that reads it last */
    uint64_t offset; /* floats, for one edge; times the edges of a tile: where it starts */
    bool free;       /* while offsets are given: its place may be taken */
} gs_cpu_edge_slot;

/* An array of the operand end, prefetched row by row. */
typedef struct gs_cpu_edge_gather {
    const float *p;
    uint32_t bytes; /* of a row */
    bool typed;
    bool straddles; /* a row may touch one line more than fills it */
} gs_cpu_edge_gather;

struct gs_cpu_edge_plan;
/* The launch's sums of rows [first, end). */
typedef void gs_cpu_frame_fn(const struct gs_cpu_edge_plan *plan, uint32_t first, uint32_t end);

typedef struct gs_cpu_edge_plan {
    const gs_edge_program_launch *l;
    gs_cpu_frame_fn *begin, *finish; /* where the launch is `whole` */
    const struct gs_cpu_kernels *k;  /* with which they do */
    gs_cpu_edge_step *step;
    gs_cpu_edge_slot *slot;
    uint32_t steps, slots;
    uint32_t turns;  /* steps, those with their links as one */
    uint32_t outer_floats; /* of the sums of OUTER */
    uint64_t floats; /* of scratch, an edge */
    uint32_t tile;   /* edges of a full tile */
    uint32_t types;  /* of edges, where a value or a sum goes by them; else 0 */
    bool typed;    /* tiles have an order by type */
    bool products; /* edges are multiplied by matrices */
    int *failed;   /* set where a library refuses a product */
    bool only_rows;  /* one step, which adds up rows at the operand end, times at most a number: needs no tiles */
    bool picks;      /* edges are left out that add nothing: those of no number of `who` that is 0 or their `source` */
    gs_cpu_edge_value who, source;
    uint32_t picked; /* slot of bits that say where `who` is `source`, found while edges are picked; or GS_NONE */
    uint64_t picked_at[2]; /* offsets of these bits of two tiles */
    uint32_t packed; /* arrays of a number a row at the operand end, packed in rows of GS_CPU_PACKED */
    const float *pack[GS_CPU_PACKED];
    uint32_t gathers;
    gs_cpu_edge_gather gather[GS_CPU_EDGE_GATHERS];
} gs_cpu_edge_plan;

/* Work of one thread in one call: targets [first, end), or (where from < to) edges [from, to) of target `first`, into
 * row `row` of the accumulators; with an end > first of the targets from `first` on, into no accumulators. */
typedef struct gs_cpu_edge_work {
    uint32_t first, end;
    uint32_t from, to, row;
    uint32_t first_row, end_row; /* rows whose sums begin and finish with it, those without edges too; none: both 0 */
    float *kept[2];            /* KEEP: rows, */
    const uint32_t *place;     /* of which that of edge place_first + i is the place[i]th */
    uint32_t place_first;
    const gs_accumulator *sum; /* [stage->sums] */
    float *outer;              /* sums of OUTER */
    float *scratch;            /* [(plan->floats + 2 * GS_CPU_TILE_NUMBERS) * plan->tile], aligned to a cache line */
} gs_cpu_edge_work;

/* In the first column of a row of largest or least values that no edge was added to: the bits of a signalling NaN, as
 * no arithmetic makes one. */
#define GS_CPU_NO_EDGE 0xffa5a5a5u

static inline void gs_cpu_mark_no_edge(float *row) { memcpy(row, &(uint32_t){GS_CPU_NO_EDGE}, sizeof(*row)); }

static inline bool gs_cpu_has_no_edge(const float *row)
{
    uint32_t bits;
    memcpy(&bits, row, sizeof(bits));
    return bits == GS_CPU_NO_EDGE;
}

/* The edges [first, end) of a tile add to one row. */
typedef struct gs_cpu_edge_run {
    uint32_t row, first, end;
} gs_cpu_edge_run;

typedef struct gs_cpu_edge_tile {
    uint32_t edge; /* first one, of the launch */
    uint32_t edges, runs;
    const uint32_t *operand;      /* row numbers: in `room`, or in the chunk's own list */
    uint32_t *room, *target;
    uint32_t *type, *operand_type, *target_type; /* with types: rows of arrays of [rows * types, width] */
    uint32_t *order, *spare;    /* typed: its edges by type, those of a type in their order */
    gs_cpu_edge_run *run;
    uint64_t *bits;             /* plan->picked */
    bool ties;                  /* with these: some `who` is 0 */
} gs_cpu_edge_tile;

/* Floats of the bits of a row: words of 64. */
static inline uint32_t gs_cpu_bits_width(uint32_t width) { return (width + 63) / 64 * 2; }

/* `n` numbers for each of GS_CPU_TILE_NUMBERS lists. */
static inline gs_cpu_edge_tile gs_cpu_edge_tile_at(uint32_t *numbers, uint32_t n)
{
    return (gs_cpu_edge_tile){.room = numbers,
                              .target = numbers + n,
                              .type = numbers + 2ull * n,
                              .operand_type = numbers + 3ull * n,
                              .target_type = numbers + 4ull * n,
                              .order = numbers + 5ull * n,
                              .spare = numbers + 6ull * n,
                              .run = (gs_cpu_edge_run *)(numbers + 7ull * n)};
}

/* A tile being computed. */
typedef struct gs_cpu_edge_frame {
    const gs_cpu_edge_plan *plan;
    const gs_cpu_edge_work *work;
    const gs_cpu_edge_tile *tile;
} gs_cpu_edge_frame;

/* One byte of the types, from an order (NULL: 0, 1, 2, ...) to another. */
static inline void gs_cpu_edge_deal(const uint32_t *type, uint32_t n, uint32_t shift, const uint32_t *from,
                                    uint32_t *to)
{
    uint32_t first[257] = {0};
    for (uint32_t i = 0; i < n; i++)
        first[(type[i] >> shift & 255) + 1]++;
    for (uint32_t b = 0; b < 256; b++)
        first[b + 1] += first[b];
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t e = from == NULL ? i : from[i];
        to[first[type[e] >> shift & 255]++] = e;
    }
}

/* order[0, n) = 0, 1, ... n - 1 by type[], of at most 65,536 types; equal ones in their order. */
static inline void gs_cpu_edge_order(const uint32_t *type, uint32_t n, uint32_t types, uint32_t *order, uint32_t *spare)
{
    gs_cpu_edge_deal(type, n, 0, NULL, types <= 256 ? order : spare);
    if (types > 256)
        gs_cpu_edge_deal(type, n, 8, spare, order);
}

/* The target that an edge belongs to: start[it] <= edge < start[it + 1]. */
static inline uint32_t gs_cpu_edge_owner(const gs_edges *e, uint32_t edge)
{
    uint32_t low = 0, high = e->targets;
    while (high - low > 1) {
        const uint32_t mid = low + (high - low) / 2;
        if (e->start[mid] <= edge)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* State of an edge register while a plan is made. */
typedef struct gs_cpu_edge_state {
    uint32_t uses, late_uses;
    uint32_t late;           /* the choice whose second values it is for, all its uses being late_uses: its instruction
                              * from 1 on; 0: it is for others, too */
    bool products;           /* there are some below it */
    bool chooses;            /* it is such a choice */
    bool vanishes;           /* it is 0 where the choice is by which edges are picked */
    bool needed;             /* for the sums that the plan is of */
    bool bits;               /* 0 and 1, as bits */
    bool masked;             /* a: bits, that say which numbers of b it has beside 0 */
    bool ready, foldable;    /* foldable: the one that uses it can multiply on the way */
    gs_cpu_edge_value a, b;  /* b: the value is a * b */
} gs_cpu_edge_state;

#endif /* GS_DEVICE_CPU_EDGE_PLAN_H */
