/* model_builder.h - a network while it is built from its text: model_build.c does the layers, model_build_expr.c
 * expressions, from the parts below. */
#ifndef GS_MODEL_MODEL_BUILDER_H
#define GS_MODEL_MODEL_BUILDER_H

#include "model/model_internal.h"

typedef struct gs_named {
    const char *name;
    uint32_t node;
} gs_named;

/* A softmax over in-edges: its value at an edge, and, where it is over the vertex itself, too, at the vertex; else
 * GS_IR_NONE. */
typedef struct gs_soft {
    uint32_t edge, self;
} gs_soft;

typedef struct gs_builder gs_builder;

struct gs_builder {
    const gs_model *m;
    const gs_model_config *config;
    gs_ir *ir;
    const gs_text_layer *l;
    uint32_t index;       /* of the layer in the network */
    bool network;         /* `l` is the network's text, and not that of a layer */
    uint32_t here;        /* node of what `l` gets */
    uint32_t calls;       /* of layers, so far */
    uint32_t in, out;     /* its widths */
    const char *unknown;  /* the name that the header's output gives a width to, and the width */
    uint32_t unknown_value;
    uint32_t input[GS_MODEL_MOST_LAYERS]; /* node of the input of each layer so far */
    uint32_t values;      /* variables that have a value so far */
    gs_named *value;      /* room for [l->statements] */
    uint32_t *param;      /* [l->params] nodes */
    uint32_t softs, soft_cap;
    gs_soft *soft;
    uint32_t next_site;   /* of a dropout inside a layer's text */
    uint32_t reduction;   /* expression of the reduction we are in, or GS_TEXT_NONE */
    gs_op act;            /* the network's activation */
    float act_alpha;
    bool has_act;
    /* model_build.c's: what the layer that a network calls with `e` makes of x. */
    uint32_t (*build_layer)(gs_builder *b, const gs_expr *e, uint32_t x);
};

/* ---- model_build_values.c ---- */

uint32_t gs_model__heads(const gs_builder *b);
uint32_t gs_model__types(const gs_builder *b);
uint32_t gs_model__bases(const gs_builder *b);
uint32_t gs_model__number(gs_builder *b, float v);
uint32_t gs_model__degree(gs_builder *b);
/* Value of a width's name where we are; 0 where it has none. */
uint32_t gs_model__width(const gs_builder *b, const char *name);
/* What a width of the text comes to; 1 with an error recorded where it comes to nothing. */
uint32_t gs_model__width_of(gs_builder *b, const gs_dim *d);
/* The name in files of what the text calls NAME; with a prefix PREFIX.NAME. */
void gs_model__full_name(const gs_builder *b, char *out, size_t bytes, const char *prefix, const char *name);
/* Self loops that the graph has, of each vertex. */
uint32_t gs_model__loops(gs_builder *b);
/* The weight of the self loop that PyG's add_remaining_self_loops() leaves each vertex with. */
uint32_t gs_model__loop_weight(gs_builder *b);
/* PyG's gcn_norm(): 1 / sqrt(sum of the weights into the vertex, with that loop), 0 where the sum is 0. */
uint32_t gs_model__gcn_norm(gs_builder *b);
/* 1 for the graph's self loops, 0 for its other edges. */
uint32_t gs_model__is_loop(gs_builder *b);
/* The vertex value or parameter called `name`, GS_IR_NONE where there is none (no error recorded). */
uint32_t gs_model__lookup(gs_builder *b, const char *name);
/* A row that is the same for all vertices, as one of each of them; another value as it is. */
uint32_t gs_model__of_vertices(gs_builder *b, uint32_t x);
/* What a name says where an expression has it: x, u.x, e.weight. */
uint32_t gs_model__build_name(gs_builder *b, const gs_expr *e);
/* A number a head against several a head: each is repeated for its head. */
void gs_model__fit_heads(gs_builder *b, uint32_t *x, uint32_t *y);
/* The operator of both, after that. */
uint32_t gs_model__binary(gs_builder *b, gs_op op, uint32_t x, uint32_t y);

/* [vertices, ...]: is it learned rows of vertices? Of a layer whose input's width is called so it is not. */
bool gs_model__is_of_vertices(const gs_text_param *p);

/* Columns of what the network gets: of a graph without features some, as long as nothing reads them. */
static inline uint32_t gs_model__in_width(const gs_model_config *c) { return c->in_width > 0 ? c->in_width : 1; }

static inline bool gs_model__is_of_edges(const gs_node *n)
{
    return (n->type & GS_TYPE_S) != 0;
}

/* ---- a file each, of operands that are built ---- */

/* model_build_reduce.c: sum, mean, max, min, or softmax of a value; b->reduction is the one around it. */
uint32_t gs_model__reduce(gs_builder *b, const gs_expr *e, uint32_t value);
/* model_build_matmul.c: a @ the parameter that `e` names. */
uint32_t gs_model__build_matmul(gs_builder *b, const gs_expr *e, uint32_t a);
/* The row of the edge's type of the parameter that `e` names. */
uint32_t gs_model__build_pick(gs_builder *b, const gs_expr *e);
/* model_build_norm.c: the normalised value of x. */
uint32_t gs_model__build_norm(gs_builder *b, const gs_expr *e, uint32_t x);

/* model_initial.c: the parameter starts as its text says. */
void gs_model__start_param(gs_builder *b, const gs_text_param *p, uint32_t node);

/* ---- model_build_expr.c ---- */

uint32_t gs_model__build_expr(gs_builder *b, uint32_t index);

#endif /* GS_MODEL_MODEL_BUILDER_H */
