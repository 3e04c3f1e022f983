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
    GS_EXPR_MATMUL, /* a @ name, a @ name', or a @ name[e.type] */
    GS_EXPR_CALL,   /* name(a), name(a, number), name(a, word), name(a, b), name(a, b, c) */
    GS_EXPR_PICK,   /* name[e.type] */
    GS_EXPR_LAYER,  /* of a network: name(a, width), of layer number `layer` */
} gs_expr_kind;

/* What a reduction runs over besides the in-edges, or how. */
typedef enum gs_over {
    GS_OVER_EDGES,
    GS_OVER_SELF, /* the vertex itself too, once, instead of its self loops */
    GS_OVER_TYPE, /* mean: of each edge type alone, and these added */
} gs_over;

typedef struct gs_expr {
    gs_expr_kind kind;
    gs_op op;
    uint32_t line, column;
    uint32_t a, b, c;   /* expressions, GS_TEXT_NONE */
    float number;       /* NUMBER; CALL: the second argument */
    float third;        /* CALL of part(): of how many */
    uint32_t layer, dim; /* LAYER: its text, and its width among the model's */
    bool has_number, transposed, typed;
    gs_over over;
    char name[GS_TEXT_NAME];
    char prefix[GS_TEXT_NAME]; /* of a norm's parameters, or "" */
} gs_expr;

#define GS_DIM_FACTORS 3

/* A length: a product of numbers and names of widths. */
typedef struct gs_dim {
    uint32_t factors;
    struct {
        char name[GS_TEXT_NAME]; /* "" for a number */
        uint32_t value;
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

typedef struct gs_text_layer {
    char name[GS_TEXT_NAME], input[GS_TEXT_NAME];
    gs_dim in, out;
    uint32_t line, column;
    uint32_t params, statements;
    uint32_t first_expr, end_expr; /* the expressions of its text */
    gs_text_param *param;
    gs_statement *statement;
    uint32_t result; /* the returned expression */
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
/* model_set.c: with other numbers in its constants. */
gs_status gs_model__set(char **out, size_t *bytes, const gs_model *m, const char *set);

#endif /* GS_MODEL_MODEL_INTERNAL_H */
