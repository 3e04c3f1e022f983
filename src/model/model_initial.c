/* model_initial.c - how a text says that parameters start, and the text without that.
 *
 *   rule := "glorot" | "fan_in" "(" dim ")" | ("uniform" | "normal" | "constant") "(" NUMBER ")" | "zeros" | "ones"
 *
 * Weights and checkpoints know their model by the text without its rules, so a rule may be added to a text that has
 * some, as the built-in ones got theirs.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "model/model_builder.h"
#include "model/model_parser.h"

static const struct {
    const char *name;
    bool has_number;
    gs_initial initial;
} drawn[] = {
    {"uniform", true, {GS_INITIAL_UNIFORM, 0}}, {"normal", true, {GS_INITIAL_NORMAL, 0}},
    {"constant", true, {GS_INITIAL_FILL, 0}},   {"zeros", false, {GS_INITIAL_FILL, 0}},
    {"ones", false, {GS_INITIAL_FILL, 1}},
};

/* "(NUMBER)" */
static gs_status take_number(gs_parser *p, gs_initial *out)
{
    const bool sign = out->rule == GS_INITIAL_FILL;
    float number = 0;
    gs_status st;

    if ((st = gs_parser__take_char(p, '(')) != GS_OK ||
        (st = gs_parser__take_number(p, &number, sign, "a number")) != GS_OK)
        return st;
    if (!sign && number < 0) /* a constant's */
        return GS_PARSER_ERROR(p, "%g is below 0, and what is drawn has no such %s", (double)number,
                               out->rule == GS_INITIAL_NORMAL ? "standard deviation" : "bounds");
    out->number = (double)number;
    return gs_parser__take_char(p, ')');
}

gs_status gs_parser__initial(gs_parser *p, gs_text_initial *out)
{
    gs_status st = gs_parser__next(p);

    *out = (gs_text_initial){.rule = GS_RULE_DRAWN, .line = p->t.line, .column = p->t.column};
    if (st != GS_OK)
        return st;
    if (gs_parser__is_word(p, "glorot")) {
        out->rule = GS_RULE_GLOROT;
        return gs_parser__next(p);
    }
    if (gs_parser__is_word(p, "fan_in")) {
        out->rule = GS_RULE_FAN_IN;
        if ((st = gs_parser__next(p)) != GS_OK || (st = gs_parser__take_char(p, '(')) != GS_OK ||
            (st = gs_parser__dim(p, &out->fan)) != GS_OK)
            return st;
        return gs_parser__take_char(p, ')');
    }
    for (size_t i = 0; i < sizeof(drawn) / sizeof(drawn[0]); i++)
        if (gs_parser__is_word(p, drawn[i].name)) {
            out->drawn = drawn[i].initial;
            st = gs_parser__next(p);
            return st == GS_OK && drawn[i].has_number ? take_number(p, &out->drawn) : st;
        }
    return gs_parser__expected(p, "how it starts (glorot, fan_in(WIDTH), uniform(NUMBER), normal(NUMBER), "
                                  "constant(NUMBER), zeros or ones)");
}

void gs_model__start_param(gs_builder *b, const gs_text_param *p, uint32_t node)
{
    const gs_text_initial *const i = &p->initial;
    const bool is_table = node != GS_IR_NONE && gs_node_table(gs_ir_node(b->ir, node)) != NULL;
    gs_initial initial = i->drawn;

    if (i->rule == GS_RULE_NONE || node == GS_IR_NONE)
        return;
    gs_ir_at(b->ir, i->line, i->column);
    if (i->rule == GS_RULE_GLOROT) {
        if (p->dims < 2 || is_table) {
            gs_ir_error(b->ir, GS_EFORMAT, "'%s' is no matrix, and Glorot's rule is of matrices", p->name);
            return;
        }
        initial = (gs_initial){GS_INITIAL_GLOROT, 0};
    } else if (i->rule == GS_RULE_FAN_IN) {
        initial = gs_initial_fan_in(gs_model__width_of(b, &i->fan));
    }
    if (p->fixed && initial.rule != GS_INITIAL_FILL)
        gs_ir_error(b->ir, GS_EFORMAT, "the buffer '%s' is not drawn: it starts as zeros, ones or constant(NUMBER)",
                    p->name);
    else
        gs_ir_initial(b->ir, node, initial);
}

/* ---- the text without rules ---- */

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static bool is_word(char c) { return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

/* Behind the rule that begins with the "~" at `at`: behind a comma after it, all white space but a blank, too. */
static size_t behind_rule(const char *text, size_t bytes, size_t at)
{
    at++;
    while (at < bytes && is_space(text[at]))
        at++;
    while (at < bytes && is_word(text[at]))
        at++;
    size_t open = at;
    while (open < bytes && (text[open] == ' ' || text[open] == '\t'))
        open++;
    if (open == bytes || text[open] != '(')
        return at;
    while (open < bytes && text[open++] != ')')
        continue;
    return open;
}

/* Copies `text` but for its rules, and returns how many bytes are left. As it was before rules were put in: a line
 * that goes on behind a rule's comma did so behind a blank. */
static size_t without_rules(char *out, const char *text, size_t bytes)
{
    size_t n = 0;
    bool comment = false;

    for (size_t at = 0; at < bytes;) {
        comment = text[at] != '\n' && (comment || text[at] == '#');
        if (comment || text[at] != '~') {
            out[n++] = text[at++];
            continue;
        }
        while (n > 0 && is_space(out[n - 1]))
            n--;
        at = behind_rule(text, bytes, at);
        if (at == bytes || text[at] != ',')
            continue;
        out[n++] = text[at++];
        out[n++] = ' '; /* there is room: "~" is gone */
        while (at < bytes && is_space(text[at]))
            at++;
    }
    return n;
}

gs_status gs_model_id_of(uint64_t *out, const char *text, size_t bytes)
{
    char *const plain = gs_malloc(bytes + 1);

    if (plain == NULL)
        return gs_fail(GS_ENOMEM, "no memory for a model's text");
    *out = gs_hash64(plain, without_rules(plain, text, bytes));
    gs_free(plain);
    return GS_OK;
}
