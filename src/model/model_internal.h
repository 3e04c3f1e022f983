/* model_internal.h - tokens, syntax tree, and what parse gives to build.
 *
 * A model is parsed once into flat arrays: expressions refer to each other by index, so
 * that a tree is freed by freeing an array and its size is bounded.
 */
#ifndef GS_MODEL_MODEL_INTERNAL_H
#define GS_MODEL_MODEL_INTERNAL_H

#include <stddef.h>

#include "base/text.h"
#include "model/model.h"

#define GS_TEXT_MAX_BYTES (1u << 20)
#define GS_TEXT_MAX_EXPRS 4096u /* bounds the recursion of build, too */
#define GS_TEXT_MAX_DEPTH 100u  /* nested parentheses, calls and signs */
#define GS_TEXT_NAME 32         /* bytes of a name in a text, with its 0 */
#define GS_TEXT_NONE UINT32_MAX
#define GS_TEXT_EDGE_VALUES 8u /* values of edges that layers hand on, in a text */

typedef struct gs_zoo_text {
    const char *name, *text; /* not 0-terminated */
    size_t bytes;
} gs_zoo_text;

extern const gs_zoo_text gs_model__zoo[]; /* ends with a NULL name */

typedef enum gs_token_kind {
    GS_TOKEN_END,
    GS_TOKEN_NEWLINE,
    GS_TOKEN_NAME,  /* may have dots: lin.weight, u.x */
    GS_TOKEN_NUMBER,
    GS_TOKEN_ARROW, /* -> */
    GS_TOKEN_CHAR,  /* one of ( ) [ ] , : = @ ' ~, or an infix sign of the table of operators */
} gs_token_kind;

typedef struct gs_token {
    gs_token_kind kind;
    uint32_t line, column;
    const char *text; /* into the model's text */
    size_t bytes;
    float number;
} gs_token;

typedef struct gs_lexer {
    const gs_text *whole; /* whose bytes `text` are */
    const char *text;
    size_t bytes, at;
    uint32_t line, column;
    uint32_t brackets; /* open ( and [: newlines do not count inside */
} gs_lexer;

gs_status gs_model__lex(gs_lexer *x, gs_token *out);
/* Records "NAME:LINE:COLUMN: ..." and that line of the text, and returns GS_EFORMAT. */
gs_status gs_model__error(const gs_text *where, uint32_t line, uint32_t column, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

typedef enum gs_expr_kind {
    GS_EXPR_NUMBER,
    GS_EXPR_NAME,   /* x, u.x, v.x, lin.weight */
    GS_EXPR_BINARY, /* a op b, op of the table */
    GS_EXPR_NEG,    /* -a */
    GS_EXPR_MATMUL, /* a @ name, a @ name', or a @ name[e.type], [u.type], [v.type] */
    GS_EXPR_INPUT,  /* input(TYPE), input(TYPE)[number] */
    GS_EXPR_CALL,   /* name(a), name(a, number), name(a, word), name(a, b), name(a, b, c) */
    GS_EXPR_PICK,   /* name[e.type], [u.type], [v.type] */
    GS_EXPR_LAYER,  /* of a network: name(a, width), of layer number `layer` */
} gs_expr_kind;

/* What a reduction runs over besides the in-edges, or how. */
typedef enum gs_over {
    GS_OVER_EDGES,
    GS_OVER_SELF, /* the vertex itself too, once, instead of its self loops */
    GS_OVER_TYPE, /* each edge type alone; these are then added, or what `prefix` says */
} gs_over;

typedef struct gs_expr {
    gs_expr_kind kind;
    gs_op op;
    uint32_t line, column;
    uint32_t a, b, c;   /* expressions, GS_TEXT_NONE */
    float number;       /* NUMBER; CALL: the second argument */
    float third;        /* CALL of part(): of how many */
    uint32_t layer, dim; /* LAYER: its text, and its width among the model's */
    bool has_number, transposed;
    char end;           /* MATMUL, PICK: [e.type], [u.type] or [v.type], by its first letter; 0: none */
    gs_over over;
    char name[GS_TEXT_NAME];
    char prefix[GS_TEXT_NAME]; /* of a norm's parameters, or ""; INPUT: of which type; of a reduction by
                                * type the one over types, or "" */
} gs_expr;

#define GS_DIM_FACTORS 6

/* A length: a product of numbers and names of widths, or a sum of such. */
typedef struct gs_dim {
    uint32_t factors;
    struct {
        char name[GS_TEXT_NAME]; /* "" for a number */
        uint32_t value;
        bool plus; /* the first one of a further product */
    } factor[GS_DIM_FACTORS];
    uint32_t line, column;
} gs_dim;

/* const NAME = NUMBER: where the number stands in the text, so that another one can be put there. */
typedef struct gs_text_const {
    char name[GS_TEXT_NAME];
    float value;
    size_t at, bytes;
    uint32_t line;
} gs_text_const;

/* ~ RULE: how a parameter starts. */
typedef enum gs_text_rule { GS_RULE_NONE, GS_RULE_GLOROT, GS_RULE_FAN_IN, GS_RULE_DRAWN } gs_text_rule;

typedef struct gs_text_initial {
    gs_text_rule rule;
    gs_dim fan;         /* FAN_IN */
    gs_initial drawn;   /* DRAWN: of a number that the text has */
    uint32_t line, column;
} gs_text_initial;

typedef struct gs_text_param {
    char name[GS_TEXT_NAME];
    uint32_t dims;
    gs_dim dim[3];
    bool fixed; /* a buffer */
    gs_text_initial initial;
    uint32_t line, column;
} gs_text_param;

typedef enum gs_statement_kind { GS_STATEMENT_ASSIGN, GS_STATEMENT_REPEAT, GS_STATEMENT_END } gs_statement_kind;

typedef struct gs_statement {
    gs_statement_kind kind;
    char name[GS_TEXT_NAME];
    uint32_t expr;
    uint32_t count, other; /* REPEAT: how often, and its END; END: its REPEAT */
    uint32_t line, column;
} gs_statement;

/* e.NAME[width] in a layer's header: a value of edges that it gets, or returns. */
typedef struct gs_text_edge {
    char name[GS_TEXT_NAME]; /* with its "e." */
    gs_dim dim;
    uint32_t result; /* what is returned */
} gs_text_edge;

typedef struct gs_text_layer {
    char name[GS_TEXT_NAME], input[GS_TEXT_NAME];
    gs_dim in, out;
    uint32_t line, column;
    uint32_t params, statements;
    uint32_t first_expr, end_expr; /* the expressions of its text */
    gs_text_param *param;
    gs_statement *statement;
    uint32_t result; /* the returned expression */
    uint32_t edges_in, edges_out;
    gs_text_edge edge_in[GS_TEXT_EDGE_VALUES], edge_out[GS_TEXT_EDGE_VALUES];
} gs_text_layer;

struct gs_model {
    gs_text *text;
    const char *path; /* what error messages call the text: its name */
    uint32_t layers, exprs, expr_cap, consts, dims;
    gs_text_layer *layer;
    gs_expr *expr;
    gs_text_const *constant;
    gs_dim *dim;            /* widths that layers are called with */
    gs_text_layer *network; /* how the layers are put together; NULL: one behind the other */
    uint64_t text_id;       /* gs_model_id_of() */
};

/* Fills m->layer and m->expr from m->text. On failure what was made is still in *m, for gs_model_close(). */
gs_status gs_model__parse(gs_model *m);

/* The elementwise function of this name. false where the table of operators has none. */
bool gs_model__function(const char *name, gs_op *op);

/* Does the name mean something already, in every text? */
bool gs_model__is_reserved(const char *name);

/* Is it sum, mean, max, min, softmax or lstm? */
bool gs_model__is_reduction(const char *name);

/* ", relu, leaky_relu, ...": what the table of operators has; `text` again. */
const char *gs_model__function_names(char *text, size_t bytes);

/* Is it one of the normalisations, which may have a name for their parameters? */
bool gs_model__is_norm(const char *name);

/* ---- what becomes of a text before it is built: each a new text of *bytes, to be freed with gs_free() ---- */

/* model_wrap.c: are the changes what they may be, and is there anything around the layers? */
gs_status gs_model__check_changes(const gs_model_changes *c);
bool gs_model__wraps(const gs_model_changes *c);
/* model_wrap.c: norm_act(x, NAME) as the norms and activations that it stands for. */
gs_status gs_model__expand(char **out, size_t *bytes, const gs_text *text, const gs_model_changes *c);
/* model_wrap.c: with a network behind the layers, as `c` says. */
gs_status gs_model__wrap(char **out, size_t *bytes, const gs_model *m, const gs_model_changes *c);

/* ---- model_parse.c ----------------------------------------------------- */

/* Where a parser is in the text: the next token, which is taken or refused.
 *
 * Functions that return a status record "PATH:LINE:COLUMN: ..." and GS_EFORMAT where the text does not go on so.
 */

typedef struct gs_parser {
    gs_lexer lexer;
    gs_token t; /* the next token, not yet taken */
    gs_model *m;
    uint32_t depth;
} gs_parser;

/* At the next token. */
#define GS_PARSER_ERROR(p, ...) gs_model__error((p)->m->text, (p)->t.line, (p)->t.column, __VA_ARGS__)

gs_status gs_parser__next(gs_parser *p);
bool gs_parser__is_word(const gs_parser *p, const char *word);
/* Refuses the next token: "expected WHAT, found ...". */
gs_status gs_parser__expected(const gs_parser *p, const char *what);
gs_status gs_parser__take_char(gs_parser *p, char c);

/* ---- model_parse.c: numbers ---- */

/* A number or a constant's name; a sign before a number where `sign`. */
gs_status gs_parser__take_number(gs_parser *p, float *out, bool sign, const char *what);
/* A width: a product of numbers and names. */
gs_status gs_parser__dim(gs_parser *p, gs_dim *out);
/* Behind "~": how parameters start (model.c). */
gs_status gs_parser__initial(gs_parser *p, gs_text_initial *out);

/* ---- model_build.c ----------------------------------------------------- */

/* A network while it is built from its text: model_build.c does the layers, model_build_expr.c
 * expressions, from the parts below. */

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
    uint32_t columns;     /* node of all features */
    uint32_t features;    /* node of what the network gets: x, the features without a name */
    bool identity;        /* what `l` gets is the identity: a graph without features */
    uint32_t here;        /* node of what `l` gets */
    uint32_t calls;       /* of layers, so far */
    uint32_t in, out;     /* its widths */
    const char *unknown;  /* the name that the header's output gives a width to, and the width */
    uint32_t unknown_value;
    uint32_t input[GS_MODEL_MOST_LAYERS]; /* node of the input of each layer so far */
    uint32_t values;      /* variables that have a value so far */
    gs_named *value;      /* room for [l->statements] */
    uint32_t *param;      /* [l->params] nodes */
    uint32_t edge_values; /* that a layer returned, or the network named, so far */
    gs_named edge_value[GS_TEXT_EDGE_VALUES];
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

/* ---- model_build.c: values ---- */

uint32_t gs_model__heads(const gs_builder *b);
uint32_t gs_model__types(const gs_builder *b);
uint32_t gs_model__number(gs_builder *b, float v);
uint32_t gs_model__degree(gs_builder *b);
/* What a width of the text comes to; 1 with an error recorded where it comes to nothing. */
uint32_t gs_model__width_of(gs_builder *b, const gs_dim *d);
/* The name in files of what the text calls NAME; with a prefix PREFIX.NAME. */
void gs_model__full_name(const gs_builder *b, char *out, size_t bytes, const char *prefix, const char *name);
/* Self loops that the graph has, of each vertex. */
uint32_t gs_model__loops(gs_builder *b);
/* 1 for the graph's self loops, 0 for its other edges. */
uint32_t gs_model__is_loop(gs_builder *b);
/* The vertex value or parameter called `name`, GS_IR_NONE where there is none (no error recorded). */
uint32_t gs_model__lookup(gs_builder *b, const char *name);
/* What a name says where an expression has it: x, u.x, e.weight. */
uint32_t gs_model__build_name(gs_builder *b, const gs_expr *e);
/* A number a head against several a head: each is repeated for its head. */
void gs_model__fit_heads(gs_builder *b, uint32_t *x, uint32_t *y);
/* The operator of both, after that. */
uint32_t gs_model__binary(gs_builder *b, gs_op op, uint32_t x, uint32_t y);

/* Columns of what the network gets, the features before the first with a name; of a graph without features some, as
 * long as nothing reads them. */
static inline uint32_t gs_model__in_width(const gs_model_config *c)
{
    const bool named = c->named != NULL && c->named->vertices > 0 && c->named->vertex[0].first > 0;
    return named ? c->named->vertex[0].first : c->in_width > 0 ? c->in_width : 1;
}
/* The same of edges: the columns of e.x; 0: none. */
static inline uint32_t gs_model__edge_width(const gs_model_config *c)
{
    const bool named = c->named != NULL && c->named->edges > 0 && c->named->edge[0].first > 0;
    return named ? c->named->edge[0].first : c->edge_features;
}
/* The features of the vertex, or of the edge, that have this name; GS_IR_NONE where none has. */
uint32_t gs_model__named(gs_builder *b, const char *name, bool of_edges);
/* What is wrong with a name that nothing has, with the names that features have. */
uint32_t gs_model__unknown(gs_builder *b, const char *name, bool of_edges);

static inline bool gs_model__is_of_edges(const gs_node *n)
{
    return (n->type & GS_TYPE_S) != 0;
}

/* ---- a file each, of operands that are built ---- */

/* model.c: the parameter starts as its text says. */
void gs_model__start_param(gs_builder *b, const gs_text_param *p, uint32_t node);

/* ---- model_build_types.c: types of vertices ---- */

uint32_t gs_model__vertex_types(const gs_builder *b);
/* The number of a vertex' type, of the in-neighbour's or this vertex'. */
uint32_t gs_model__vertex_type(gs_builder *b, bool source);
/* type.NAME as a number. */
uint32_t gs_model__type_number(gs_builder *b, const char *name);
/* The width that NAME.features names; 0 where it is none. */
uint32_t gs_model__type_features(const gs_builder *b, const char *name);
/* input(TYPE): the features of the vertices of a type, 0 for all others. */
uint32_t gs_model__input_of(gs_builder *b, const gs_expr *e);
/* a @ w[v.type], w[v.type]. */
uint32_t gs_model__product_of_type(gs_builder *b, const gs_expr *e, uint32_t a, uint32_t w);
uint32_t gs_model__row_of_type(gs_builder *b, const gs_expr *e, uint32_t w);

/* ---- model_build_types.c: a graph without features, which are the identity then ---- */

/* Does the first layer multiply what it gets by matrices [in, n], and nothing else? */
bool gs_model__takes_identity(const gs_model *m);
/* Is the parameter [in, n], [types, in, n] or [bases, in, n], of the width `in` of what the layer gets? */
bool gs_model__is_of_input(const gs_text_layer *l, const gs_text_param *p);
/* It as learned rows of vertices, side by side for each type or basis. */
uint32_t gs_model__rows_of_input(gs_builder *b, const gs_text_param *p, const char *name);
/* a @ what `e` names, in a layer that gets the identity; false where it is a product like any other. */
bool gs_model__product_of_identity(gs_builder *b, const gs_expr *e, uint32_t a, uint32_t *out);
/* ---- model_build_types.c: reductions in two levels, of graphs with several types of edges ---- */

/* v.x @ w[e.type], a value of edges. */
uint32_t gs_model__product_here(gs_builder *b, uint32_t x, uint32_t w);
/* The softmax over the in-edges of the edge's own type. */
uint32_t gs_model__softmax_of_type(gs_builder *b, uint32_t score);
/* The reduction `e` of a value within each type, and over types the one that e->prefix names, or the sum. */
uint32_t gs_model__reduce_of_types(gs_builder *b, const gs_expr *e, uint32_t value);

/* ---- model_build_expr.c ---- */

uint32_t gs_model__build_expr(gs_builder *b, uint32_t index);

#endif /* GS_MODEL_MODEL_INTERNAL_H */
