/* compile_internal.h - the steps of gs_compile(), for this room and its tests. */
#ifndef GS_COMPILE_COMPILE_INTERNAL_H
#define GS_COMPILE_COMPILE_INTERNAL_H

#include "base/alloc.h"
#include "compile/compile.h"

/* Between two steps of work that may take long. */
static inline gs_status gs_compile__check_stop(const gs_compile_options *o)
{
    return o->stop == NULL || *o->stop == 0 ? GS_OK
                                            : gs_fail(GS_EINTERRUPTED, "interrupted while the model was compiled");
}

/* One more value of a hash: Fibonacci hashing, 2^64 / golden ratio. */
static inline uint64_t gs_mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 29);
}

/* ---- compile_move.c: transform first or aggregate first ---- */

typedef enum gs_move { GS_MOVE_NONE, GS_MOVE_TRANSFORM_FIRST, GS_MOVE_AGGREGATE_FIRST } gs_move;

/* Names of parameters. */
typedef struct gs_names {
    const char **name;
    uint32_t count;
} gs_names;

/* Rewrites every product with one of these parameters, whose list it sorts, as `move` says. `once`: sums by type of
 * what no parameter changes stay, as they are computed once. `typed`: products in front of sums by type may have any
 * number of columns, as gs_compile__typed() follows. */
gs_status gs_compile__move(gs_ir *ir, gs_names *names, gs_move move, bool once, bool typed);
/* compile_hoist.c: gives each of weight[weights] a class in isomorphic[], from 0: weights of one class have the
 * same shapes, operators and neighbours around them, as those of a network's inner layers have. Returns how many
 * classes there are; 0 where memory is short. */
uint32_t gs_compile__isomorphic(uint32_t *isomorphic, const gs_ir *ir, const uint32_t *weight, uint32_t weights);
/* Replaces products for every type side by side, of which an edge reads those of its type: each edge makes its own. */
gs_status gs_compile__typed(gs_ir *ir);
/* Of a graph with gradients: those of a largest or least value of products on edges go by which source has it. */
gs_status gs_compile__holders(gs_ir *ir);

/* ---- compile_cone.c: what a sum over edges reads ---- */

/* Bits of a node in a cone. */
enum {
    GS_CONE_EDGE = 1, /* a value of edges, computed by the edge program */
    GS_CONE_SOURCE = 2, /* a vertex value, read at the source end */
    GS_CONE_DESTINATION = 4, /* a vertex value, read at the destination end */
    GS_CONE_TYPED_SOURCE = 8, /* a vertex value, read at the source end, of its columns those of the edge's type */
    GS_CONE_TYPED_DESTINATION = 16,
};

/* The columns of the edge's type, at one of its ends? */
static inline bool gs_compile__is_typed(const gs_node *n)
{
    return n->op == GS_OP_TYPE_SRC || n->op == GS_OP_TYPE_DST;
}
/* Does the node's value come from an edge pass? */
bool gs_compile__is_sum(const gs_node *n);
/* Is it one row that all vertices together make? */
static inline bool gs_compile__is_statistic(const gs_node *n) { return gs_op_classof(n->op) == GS_CLASS_STATISTIC; }
/* What a sum of rows may read instead of those rows: an input whose cast they are, or, with a scale, its product by
 * a number a vertex. */
typedef struct gs_rows_read {
    uint32_t operand, scale; /* scale: or GS_IR_NONE */
} gs_rows_read;
/* Marked nodes, so that what was marked for one stage is cleared without looking at the whole graph. */
typedef struct gs_marks {
    uint8_t *bits;  /* [nodes] */
    uint32_t *node; /* [nodes] those whose bits are not 0, in any order */
    uint32_t count;
} gs_marks;

void gs_compile__mark(gs_marks *m, uint32_t node, unsigned bits);
void gs_compile__unmark(gs_marks *m); /* all */
void gs_compile__sort_marks(gs_marks *m); /* in the order of the graph */
/* Adds the cone of sum `i`. */
void gs_compile__cone(const gs_ir *ir, uint32_t i, gs_marks *m);

/* ---- compile_cut.c: which stage computes, stores and loads what ---- */

/* Costs are in fractions of a byte a vertex. */
#define GS_COST_BYTE ((uint64_t)1 << 24)
#define GS_COST_INF ((uint64_t)1 << 60)
#define GS_COST_MOST ((uint64_t)1 << 48) /* of a value: above what loading the widest one costs; 4096 are no INF */

typedef enum gs_cut_state { GS_CUT_UNUSED, GS_CUT_COMPUTED, GS_CUT_LOADED } gs_cut_state;

/* Stages are numbered from 1; leaves are there from stage 0 on. */
typedef struct gs_cut_stages {
    uint32_t *level;      /* [nodes] first stage that can compute the node */
    uint32_t *by_level, *level_start; /* nodes of level t: by_level[level_start[t]], ... [level_start[t + 1]) */
    uint32_t *place;      /* [outputs] stage of each output */
    uint32_t *by_place, *place_start; /* outputs of stage t, as nodes of a level are listed */
} gs_cut_stages;

/* The sums over edges, and what they read. */
typedef struct gs_cut_sums {
    uint32_t *operand;    /* [nodes] of a sum of rows: the vertex value, else GS_IR_NONE */
    uint32_t *scale;      /* [nodes] of a sum of rows: what they are multiplied by, or GS_IR_NONE */
    uint32_t *partner;    /* [nodes] of an LSE_IN: gs_compile__partner() */
    uint32_t *direction;  /* [stages + 1] of the stage's sums */
    uint32_t *count;      /* [stages + 1] */
    uint32_t *attend, *lse; /* [attends], [lses] nodes of these operators */
    uint32_t attends, lses;
} gs_cut_sums;

/* Which values become arrays: [nodes] each. */
typedef struct gs_cut_kept {
    bool *must_store;     /* read by edge passes later, or logits to keep */
    bool *gathered;       /* stored as options.read: edges read it at their operand ends */
    bool *target;         /* else as float32: edge passes read it at the target ends */
    bool *full;           /* stored as float32 anyhow: for sums by type and sequences, other passes, or as logits */
    bool *may_not_store;  /* the search ruled it out */
    bool *stored;         /* result: becomes an array */
} gs_cut_kept;

/* Result: what each stage computes or loads, in the order of the graph. Stages know a few of all nodes each. */
typedef struct gs_cut_values {
    uint32_t *value;      /* [count] node * 4 + gs_cut_state */
    uint32_t count, room;
    uint32_t *start, *end; /* [stages + 1] of stage t: value[start[t]], ... [end[t]) */
} gs_cut_values;

/* Scratch of the search. */
typedef struct gs_cut_search {
    bool *candidate;      /* [nodes] */
    gs_marks marks;
    struct gs_flow *flow;
    uint8_t *seen;        /* [nodes], all 0 */
    uint32_t *vertex;     /* [nodes] of the network being made */
    uint32_t *stack;      /* [4 * nodes] */
    uint64_t *load, *keep; /* [nodes] cost of loading what is stored anyhow, and of storing it, too */
    uint64_t *compute;     /* [nodes] cost of making it in a stage */
    /* Of the best cut so far, whose stages were cut from the last to the first; out.value has what they looked at. */
    uint32_t *met, *since; /* [nodes] first stage that looked at a value, and that stored it; 0: none */
    uint64_t *cost;        /* [stages + 1] of each */
    bool *stored;          /* [nodes] by stages that come before the one at hand */
} gs_cut_search;

typedef struct gs_cut {
    const gs_ir *ir;
    gs_arena memory;         /* of all arrays but out.value, which grows */
    uint32_t nodes, stages;
    uint32_t first_gradient; /* gradients of the loss come after this node, which computes it; `nodes`: no such loss */
    gs_cut_stages when;
    gs_cut_sums sum;
    gs_cut_kept keep;
    gs_cut_values out;
    gs_cut_search search;
    bool no_fuse;
    bool scales, may_scale; /* rows may be multiplied as they are read; result: some could be */
    gs_dtype rest, read;  /* gs_compile_options ... */
    uint32_t rest_width;
    uint64_t flop_cost;   /* of an operation done once more; a byte costs GS_COST_BYTE */
    uint64_t cost;        /* result */
    gs_status failed;     /* memory was short */
} gs_cut;

static inline uint32_t gs_cut_node(uint32_t value) { return value / 4; }
static inline gs_cut_state gs_cut_state_of(uint32_t value) { return (gs_cut_state)(value % 4); }

/* compile_cone.c: fills `when`. */
void gs_compile__find_levels(gs_cut *c);
/* Lists items 0, 1, ... of each stage, in their order: those of t are list[start[t]], ... [start[t + 1]). */
void gs_compile__sort_by_stage(const gs_cut *c, const uint32_t *stage, uint32_t items, uint32_t *list,
                               uint32_t *start);
/* May rows of so many numbers be stored in two bytes each? Only if a row is whole words (program_check.c). */
static inline bool gs_compile__may_round(uint32_t width, uint32_t least) { return width >= least && width % 2 == 0; }
/* Type of the array that node v is, or is stored in. */
gs_dtype gs_compile__stored_type(const gs_cut *c, uint32_t v);
/* `search`: also try other sets of stored values and other stages for gradients. */
gs_status gs_compile__cut(gs_cut **out, const gs_ir *ir, const gs_compile_options *options, bool search);
void gs_compile__cut_free(gs_cut *c);
GS_ENDS_BY(gs_cut, gs_compile__cut_free)
/* What that costs. */
gs_status gs_compile__cut_cost(uint64_t *cost, const gs_ir *ir, const gs_compile_options *options, bool search);

/* ---- compile_flow.c: minimum cut of a small network ---- */

typedef struct gs_flow gs_flow;
/* Room for `vertices` vertices and `arcs` arcs, of `memory`, which is short where that is. */
gs_flow *gs_compile__flow_new(gs_arena *memory, uint32_t vertices, uint32_t arcs);
void gs_compile__flow_reset(gs_flow *f);
/* One more vertex: its number, from 0. */
uint32_t gs_compile__flow_vertex(gs_flow *f);
void gs_compile__flow_arc(gs_flow *f, uint32_t from, uint32_t to, uint64_t capacity);
/* Value of the minimum cut, or `most`, GS_COST_INF at the most, where it is no less: which side is whose is not known
 * then. */
uint64_t gs_compile__flow_run(gs_flow *f, uint32_t source, uint32_t sink, uint64_t most);
/* After a run: is v on the source's side? */
bool gs_compile__flow_source_side(const gs_flow *f, uint32_t v);

/* ---- compile_emit.c: learned tables ---- */

/* Does the run, or another pass, read it when the pass is over? */
static inline bool gs_compile__is_stored(const gs_output *o)
{
    return o->kind == GS_OUTPUT_STORE || o->kind == GS_OUTPUT_GRAD_ROWS;
}

/* ---- compile_hoist.c ---- */

#define GS_HOISTED "hoisted." /* how names of arrays of the setup pass begin */

/* Makes inputs of what needs no parameter, but an edge pass; rounded as `options` say where no edge
 * reads them. `setup`, if not NULL, gets the graph
 * that computes them, or stays as it is where there are none. `program`: where a setup pass may be
 * already, whose arrays are then all there are. */
gs_status gs_compile__hoist(gs_ir *ir, gs_ir **setup, const gs_program *program, const gs_compile_options *options);
/* The name of the array for a value of a setup graph. */
gs_status gs_compile__hoisted_name(const gs_ir *ir, uint32_t node, char *name, size_t bytes);

/* ---- compile_move.c ---- */

/* On a finished graph: values that can be had back from an array of theirs over a scalar
 * are, where that moves fewer bytes. */
gs_status gs_compile__undo_quotients(gs_ir *ir, const gs_compile_options *options);

/* ---- compile_emit.c: a cut graph to stages of a program ---- */

typedef struct gs_emitter {
    gs_program *p;
    const gs_cut *c;
    const gs_compile_options *options;
    uint32_t *array;  /* [nodes] program array of an INPUT or a stored value */
    uint32_t *param;  /* [nodes] program parameter of a PARAM */
    uint32_t *reg;    /* [nodes] register in the stage being made */
    uint32_t *edge;   /* [nodes] edge register at the source end or of the edge, in the stage being made */
    uint32_t *edge_destination; /* [nodes] the same at the destination end */
    uint8_t *state;   /* [nodes] gs_cut_state in the stage being made */
    gs_marks marks;   /* scratch */
} gs_emitter;

gs_status gs_compile__emit(gs_program *p, const gs_cut *c, const gs_compile_options *options);
/* Takes away what was appended since the program was `old` (its counts). */
void gs_compile__roll_back(gs_program *p, const gs_program *old);

#endif /* GS_COMPILE_COMPILE_INTERNAL_H */
