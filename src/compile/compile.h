/* compile.h - IR to stages: passes over the graph, then cutting it at edge sums. */
#ifndef GS_COMPILE_COMPILE_H
#define GS_COMPILE_COMPILE_H

#include <stdbool.h>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/ir.h"
#include "program/program.h"

/* What a leaf of the IR ("features", "in_degree", "loops", "labels", "split",
 * "input_id") is in the store. */
typedef struct gs_leaf {
    const char *name;
    int store_id; /* -1: a lasting array of the run */
    gs_dtype dtype;
    uint32_t width;
} gs_leaf;

/* What was found out about graphs that were cut before. A compilation comes to the same graph again and again, as most
 * of what it tries makes no difference, and so does the next one of the same model. {0} is empty. One thread. */
#define GS_CUTS 256u
typedef struct gs_cuts {
    uint32_t next, next_cost; /* take the place of the oldest */
    struct {
        uint64_t question; /* checksum of the graph, and of what it is cut by; 0: none */
        uint32_t *found;   /* compile_cut.c */
    } known[GS_CUTS];
    struct {
        uint64_t question, cost; /* the same, of what it costs */
    } cost[GS_CUTS];
} gs_cuts;

void gs_cuts_drop(gs_cuts *c); /* makes it empty */

#define GS_HELD_VERTICES ((1u << 24) - 1) /* float32 counts them one by one, from 1 on */

typedef struct gs_compile_options {
    const char *pass;     /* "train", "eval", "predict" */
    const gs_leaf *leaf;
    uint32_t leaves;
    bool metrics;         /* evaluate the loss and what the task is judged by on the logits */
    gs_loss loss;         /* that loss, and what the graph has already */
    bool store_logits;    /* write them to an array: program->logits */
    bool no_move;         /* --no-move: operators stay where the model put them */
    bool no_fuse;         /* --no-fuse: sums that need an edge program share it with no other sum */
    bool recompute;       /* operations cost next to nothing: for runs that wait for a disk, where a value is better
                           * made again than stored */
    bool in_memory;       /* what is stored stays in memory, where a byte costs what a few operations do */
    bool lean;            /* what is computed once also costs the memory that it stands in all the time */
    bool hoist;           /* what depends on no parameter is computed once, by a pass "setup" */
    bool typed;           /* products with the matrix of an edge's type are made edge by edge, type by type */
    bool holders;         /* gradients of largest values of products on edges go by which source has one, not by the
                           * products once more, of GS_HELD_VERTICES at most; not where memory is to be little */
    bool given;           /* the pass has no loss: the gradient of the root is the leaf GS_IR_UPSTREAM */
    bool layer;           /* the same, as an array of the caller, and cut there: see gs_compile() */
    gs_dtype rest;        /* GS_F32, or GS_BF16: of what is stored for vertex programs alone, ... */
    gs_dtype read;        /* ... and of what sums of rows read, if no other edge pass does: ... */
    uint32_t rest_width;  /* ... in rows of an even number, so many or more */
    double edges_per_vertex; /* for choices by volume */
    gs_cuts *cuts;        /* of compilations before this one; NULL: none is known */
    const volatile int *stop; /* becomes nonzero: give up with GS_EINTERRUPTED; may be NULL */
    /* Called with the graph after each pass, for people; may be NULL. */
    void (*show)(void *context, const char *after, const gs_ir *ir);
    void *context;
} gs_compile_options;

#define GS_INPUT_GRAD "input_grad" /* rows of the gradient of "features" */

/* Compiles `ir`, which it takes and frees, also on failure, and appends it to `program`
 * as one more pass. Where gradients were asked for (gs_ir_differentiate()) they are derived again
 * after operators have moved. Arrays of the store and parameters are shared by name with
 * passes already there; arrays that passes make are their own, "PASS.label". What crosses from
 * one stage to a later one is stored, or done again from something that is:
 * fewest bytes win (compile_cut.c has the rule). With `hoist` the first pass that has something to hoist
 * puts a pass "setup" before itself, to be run once: its arrays ("hoisted.HASH") keep their rows, and
 * later passes read those of them that they compute, too. With `layer` the graph has no loss: gradients are those of
 * gs_ir_differentiate_from(), and the pass is cut where the upstream gradient comes in. What does not depend on it is
 * the pass "setup" then, which stores the root as program->logits and what the pass `pass` reads of it; that one gives
 * parameters' gradients and the array GS_INPUT_GRAD. `program` is unchanged on failure:
 *   GS_EUNSUPPORTED  a matrix product or dropout on edges, with its place in the text
 *   GS_ENOTFOUND     a vertex array that the store does not have
 *   GS_EINVAL        shapes of leaves or parameters contradict each other
 *   GS_ENOMEM */
gs_status gs_compile(gs_program *program, gs_ir *ir, const gs_compile_options *options);

#endif /* GS_COMPILE_COMPILE_H */
