/* model_internal.h - tokens, syntax tree, and what parse gives to build.
 *
 * A model is parsed once into flat arrays: expressions refer to each other by index, so
 * that a tree is freed by freeing an array and its size is bounded.
 */
#ifndef GS_MODEL_MODEL_INTERNAL_H
#define GS_MODEL_MODEL_INTERNAL_H

#include <stddef.h>

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
extern const char *const gs_model__zoo_names[];

typedef enum gs_token_kind {
    GS_TOKEN_END,
    GS_TOKEN_NEWLINE,
    GS_TOKEN_NAME,  /* may have dots: lin.weight, u.x */
    GS_TOKEN_NUMBER,
    GS_TOKEN_ARROW, /* -> */
    GS_TOKEN_CHAR,  /* one of ( ) [ ] , : = + - * / @ ' */
} gs_token_kind;

typedef struct gs_token {
    gs_token_kind kind;
    uint32_t line, column;
    const char *text; /* into the model's text */
    size_t bytes;
    float number;
} gs_token;

typedef struct gs_lexer {
    const char *path, *text;
    size_t bytes, at;
    uint32_t line, column;
    uint32_t brackets; /* open ( and [: newlines do not count inside */
} gs_lexer;

gs_status gs_model__lex(gs_lexer *x, gs_token *out);
/* Records "PATH:LINE:COLUMN: ..." and returns GS_EFORMAT. */
gs_status gs_model__error(const char *path, uint32_t line, uint32_t column, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

typedef enum gs_expr_kind {
    GS_EXPR_NUMBER,
    GS_EXPR_NAME,   /* x, u.x, v.x, lin.weight */
    GS_EXPR_BINARY, /* a op b, op of the table */
    GS_EXPR_NEG,    /* -a */
    GS_EXPR_MATMUL, /* a @ name, or a @ name' */
    GS_EXPR_CALL,   /* name(a), name(a, number) */
} gs_expr_kind;

typedef struct gs_expr {
    gs_expr_kind kind;
    gs_op op;
    uint32_t line, column;
    uint32_t a, b;      /* expressions, GS_TEXT_NONE */
    float number;       /* NUMBER; CALL: the second argument */
    bool has_number, transposed;
    char name[GS_TEXT_NAME];
} gs_expr;

/* A length in a shape: a number, or the name of one of the layer's two widths. */
typedef struct gs_dim {
    char name[GS_TEXT_NAME]; /* "" for a number */
    uint32_t value;
    uint32_t line, column;
} gs_dim;

typedef struct gs_text_param {
    char name[GS_TEXT_NAME];
    uint32_t dims;
    gs_dim dim[2];
    uint32_t line, column;
} gs_text_param;

typedef struct gs_text_assign {
    char name[GS_TEXT_NAME];
    uint32_t expr;
    uint32_t line, column;
} gs_text_assign;

typedef struct gs_text_layer {
    char name[GS_TEXT_NAME], input[GS_TEXT_NAME];
    gs_dim in, out;
    uint32_t line, column;
    uint32_t params, assigns;
    gs_text_param *param;
    gs_text_assign *assign;
    uint32_t result; /* the returned expression */
} gs_text_layer;

struct gs_model {
    char *path; /* what error messages call the text */
    uint32_t layers, exprs, expr_cap;
    gs_text_layer *layer;
    gs_expr *expr;
};

/* Fills m->layer and m->expr from `bytes` bytes of text; m->path is set. On failure
 * what was made is still in *m, for gs_model_close(). */
gs_status gs_model__parse(gs_model *m, const char *text, size_t bytes);

/* The elementwise function of this name, with the default of its second argument
 * where it takes one. false where there is none. */
bool gs_model__function(const char *name, gs_op *op, bool *takes_number, float *number);

#endif /* GS_MODEL_MODEL_INTERNAL_H */
