/* model_parser.h - where a parser is in the text: the next token, which is taken or refused.
 *
 * Functions that return a status record "PATH:LINE:COLUMN: ..." and GS_EFORMAT where the text does not go on so.
 */
#ifndef GS_MODEL_MODEL_PARSER_H
#define GS_MODEL_MODEL_PARSER_H

#include "model/model_internal.h"

typedef struct gs_parser {
    gs_lexer lexer;
    gs_token t; /* the next token, not yet taken */
    gs_model *m;
    uint32_t depth;
} gs_parser;

/* At the next token. */
#define GS_PARSER_ERROR(p, ...) gs_model__error((p)->m->text, (p)->t.line, (p)->t.column, __VA_ARGS__)

gs_status gs_parser__next(gs_parser *p);
bool gs_parser__is_char(const gs_parser *p, char c);
bool gs_parser__is_word(const gs_parser *p, const char *word);
/* Refuses the next token: "expected WHAT, found ...". */
gs_status gs_parser__expected(const gs_parser *p, const char *what);
gs_status gs_parser__take_char(gs_parser *p, char c);
/* `what` names it in messages; `dots`: it may have some. */
gs_status gs_parser__take_name(gs_parser *p, char out[GS_TEXT_NAME], const char *what, bool dots);
gs_status gs_parser__skip_newlines(gs_parser *p);
/* One more element in an array that grows by powers of two. */
gs_status gs_parser__grow(const gs_parser *p, void **array, uint32_t count, size_t size);

/* ---- model_parse_number.c ---- */

/* The constant that the next token names, or NULL. */
const gs_text_const *gs_parser__const(const gs_parser *p);
/* A number or a constant's name; a sign before a number where `sign`. */
gs_status gs_parser__take_number(gs_parser *p, float *out, bool sign, const char *what);
/* const NAME = NUMBER */
gs_status gs_parser__take_const(gs_parser *p);
/* A width: a product of numbers and names. */
gs_status gs_parser__dim(gs_parser *p, gs_dim *out);
/* Behind "~": how parameters start (model_initial.c). */
gs_status gs_parser__initial(gs_parser *p, gs_text_initial *out);
/* An expression, whose number among the model's goes to *out (model_parse_expr.c). */
gs_status gs_parser__expr(gs_parser *p, uint32_t *out);

#endif /* GS_MODEL_MODEL_PARSER_H */
