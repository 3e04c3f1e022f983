/* model.c - finding a model's text, and giving it up again. */
#include "model/model.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "model/model_internal.h"

/* ---- words ------------------------------------------------------------- */

/* The names that a text may call: those of the table of operators, and those of the language. */

bool gs_model__function(const char *name, gs_op *op)
{
    for (gs_op i = 0; i < GS_OP_COUNT; i++) {
        const char *const text = gs_op_facts_of(i)->text;
        if (text != NULL && isalpha((unsigned char)text[0]) && strcmp(text, name) == 0) {
            *op = i;
            return true;
        }
    }
    return false;
}

const char *gs_model__function_names(char *text, size_t bytes)
{
    size_t at = 0;
    text[0] = 0;
    for (gs_op i = 0; i < GS_OP_COUNT && at < bytes; i++) {
        const char *const name = gs_op_facts_of(i)->text;
        if (name != NULL && isalpha((unsigned char)name[0]) && !gs_model__is_reduction(name))
            at += (size_t)snprintf(text + at, bytes - at, ", %s", name);
    }
    return text;
}

bool gs_model__is_reduction(const char *name)
{
    static const char *const names[] = {"sum", "mean", "max", "min", "softmax", "lstm"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

bool gs_model__is_norm(const char *name)
{
    return strcmp(name, "batch_norm") == 0 || strcmp(name, "layer_norm") == 0 || strcmp(name, "layer_norm_all") == 0;
}

bool gs_model__is_reserved(const char *name)
{
    static const char *const words[] = {"layer",   "param",   "buffer", "return",    "repeat", "end",
                                        "u",       "v",       "e",      "self",      "type",   "heads",
                                        "types",   "bases",   "loops",  "in_degree", "dot",    "act",
                                        "concat",  "part",    "const",  "head_mean", "network", "row_softmax",
                                        "vertex_types", "vertex_mean",
                                        "dropout", "l2_normalize", "norm_act", "loop_weight", "gcn_norm"};
    gs_op op;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return gs_model__is_reduction(name) || gs_model__is_norm(name) || gs_model__function(name, &op);
}

/* ---- initial values ---------------------------------------------------- */

/* How a text says that parameters start, and the text without that.
 *
 *   rule := "glorot" | "fan_in" "(" dim ")" | ("uniform" | "normal" | "constant") "(" NUMBER ")" | "zeros" | "ones"
 *
 * Weights and checkpoints know their model by the text without its rules, so a rule may be added to a text that has
 * some, as the built-in ones got theirs.
 */

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

    GS_TRY(gs_parser__take_char(p, '('));
    GS_TRY(gs_parser__take_number(p, &number, sign, "a number"));
    if (!sign && number < 0) /* a constant's */
        return GS_PARSER_ERROR(p, "%g is below 0, and what is drawn has no such %s", (double)number,
                               out->rule == GS_INITIAL_NORMAL ? "standard deviation" : "bounds");
    out->number = (double)number;
    return gs_parser__take_char(p, ')');
}

gs_status gs_parser__initial(gs_parser *p, gs_text_initial *out)
{
    GS_TRY(gs_parser__next(p));
    *out = (gs_text_initial){.rule = GS_RULE_DRAWN, .line = p->t.line, .column = p->t.column};
    if (gs_parser__is_word(p, "glorot")) {
        out->rule = GS_RULE_GLOROT;
        return gs_parser__next(p);
    }
    if (gs_parser__is_word(p, "fan_in")) {
        out->rule = GS_RULE_FAN_IN;
        GS_TRY(gs_parser__next(p));
        GS_TRY(gs_parser__take_char(p, '('));
        GS_TRY(gs_parser__dim(p, &out->fan));
        return gs_parser__take_char(p, ')');
    }
    for (size_t i = 0; i < sizeof(drawn) / sizeof(drawn[0]); i++)
        if (gs_parser__is_word(p, drawn[i].name)) {
            out->drawn = drawn[i].initial;
            GS_TRY(gs_parser__next(p));
            return drawn[i].has_number ? take_number(p, &out->drawn) : GS_OK;
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
        if (is_table && b->identity && gs_model__is_of_input(b->l, p)) {
            return; /* as it does without a rule */
        }
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
    GS_FREED char *const plain = gs_malloc(bytes + 1);

    GS_NEED(plain != NULL, "no memory for a model's text");
    *out = gs_hash64(plain, without_rules(plain, text, bytes));
    return GS_OK;
}

/* ---- --set ------------------------------------------------------------- */

/* Other numbers in a text's constants: "alpha=0.2,steps=5" writes them into the text, which then says
 * itself what runs. */

/* One NAME=NUMBER of the list. */
typedef struct gs_setting {
    const char *name, *number;
    size_t name_bytes, number_bytes;
} gs_setting;

static gs_status no_constant(const gs_model *m, const gs_setting *s)
{
    char names[256] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < m->consts && used < sizeof(names); i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "", m->constant[i].name);
    if (m->consts == 0)
        return gs_fail(GS_EINVAL, ".set %.*s: model %s declares no constants", (int)s->name_bytes, s->name, m->path);
    return gs_fail(GS_EINVAL, ".set %.*s: model %s has no constant of this name (%s)", (int)s->name_bytes, s->name,
                   m->path, names);
}

/* What a text may have as a number, with a sign. */
static bool is_number(const gs_setting *s)
{
    char text[48];
    char *end;

    if (s->number_bytes == 0 || s->number_bytes >= sizeof(text) || isalpha((unsigned char)s->number[0]) ||
        isspace((unsigned char)s->number[0]) || s->number[0] == '+' ||
        memchr(s->number, 'x', s->number_bytes) != NULL || memchr(s->number, 'X', s->number_bytes) != NULL)
        return false;
    memcpy(text, s->number, s->number_bytes);
    text[s->number_bytes] = '\0';
    return isfinite(strtof(text, &end)) && *end == '\0';
}

/* The next one of the list from *at on; false where it has another form. */
static bool read_setting(gs_setting *s, const char **at)
{
    const char *const end = *at + strcspn(*at, ","), *const sign = memchr(*at, '=', (size_t)(end - *at));

    if (sign == NULL || sign == *at || (*end == ',' && end[1] == '\0'))
        return false;
    *s = (gs_setting){*at, sign + 1, (size_t)(sign - *at), (size_t)(end - sign - 1)};
    *at = *end == ',' ? end + 1 : end;
    return true;
}

/* Which number each constant gets; one that none is given for is left as it is. */
static gs_status read_settings(gs_setting *of, const gs_model *m, const char *set)
{
    for (const char *at = set; *at != '\0';) {
        gs_setting s;
        uint32_t i = 0;
        if (!read_setting(&s, &at))
            return gs_fail(GS_EINVAL, ".set %s: must be NAME=NUMBER, and more of them behind commas", set);
        while (i < m->consts && (strlen(m->constant[i].name) != s.name_bytes ||
                                 memcmp(m->constant[i].name, s.name, s.name_bytes) != 0))
            i++;
        if (i == m->consts)
            return no_constant(m, &s);
        if (!is_number(&s))
            return gs_fail(GS_EINVAL, ".set %.*s=%.*s: what is given is no number", (int)s.name_bytes, s.name,
                           (int)s.number_bytes, s.number);
        if (of[i].name != NULL)
            return gs_fail(GS_EINVAL, ".set %s: gives %s twice", set, m->constant[i].name);
        of[i] = s;
    }
    return GS_OK;
}

/* With other numbers in its constants. */
static gs_status set_constants(char **out, size_t *bytes, const gs_model *m, const char *set)
{
    GS_FREED gs_setting *const of = gs_calloc((size_t)m->consts + 1, sizeof(*of));
    size_t length, done = 0, n = 0;
    const char *const text = gs_text_bytes(m->text, &length);
    GS_FREED char *made = gs_malloc(length + strlen(set) + 1);

    GS_NEED(of != NULL && made != NULL, "%s: no memory for the model's text", m->path);
    GS_TRY(read_settings(of, m, set));
    for (uint32_t i = 0; i < m->consts; i++) { /* in the order of the text */
        const gs_text_const *const c = &m->constant[i];
        if (of[i].name == NULL)
            continue;
        memcpy(made + n, text + done, c->at - done);
        n += c->at - done;
        memcpy(made + n, of[i].number, of[i].number_bytes);
        n += of[i].number_bytes;
        done = c->at + c->bytes;
    }
    memcpy(made + n, text + done, length - done);
    *bytes = n + length - done;
    *out = made;
    made = NULL;
    return GS_OK;
}

/* ---- models ------------------------------------------------------------ */

static const gs_zoo_text *find_zoo(const char *name)
{
    for (const gs_zoo_text *z = gs_model__zoo; z->name != NULL; z++)
        if (strcmp(z->name, name) == 0)
            return z;
    return NULL;
}

static gs_status unknown(const char *name)
{
    char names[256] = "";
    size_t used = 0;
    for (const gs_zoo_text *z = gs_model__zoo; z->name != NULL && used < sizeof(names); z++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? ", " : "", z->name);
    return gs_fail(GS_ENOTFOUND, "%s: neither a built-in model (%s) nor a file", name, names);
}

/* A model of this text; *out is untouched on failure. */
static gs_status parse(gs_model **out, const char *name, const char *text, size_t bytes)
{
    GS_ENDS(gs_model_close_at) gs_model *m = gs_calloc(1, sizeof(*m));

    if (m == NULL || (m->text = gs_text_new(name, text, bytes)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the model's text", name);
    m->path = gs_text_name(m->text);
    GS_TRY(gs_model_id_of(&m->text_id, text, bytes));
    GS_TRY(gs_model__parse(m));
    *out = m;
    m = NULL; /* now the caller's */
    return GS_OK;
}

/* *m of another text, which is taken. */
static gs_status parse_again(gs_model **m, const char *name, char *text, size_t bytes)
{
    GS_FREED char *const taken = text;
    gs_model *made = NULL;

    GS_TRY(parse(&made, name, taken, bytes));
    gs_model_close(*m);
    *m = made;
    return GS_OK;
}

/* The text as it is used: norm_act() written out, then a network around the layers, then other constants. */
static gs_status change(gs_model **out, const char *name, const gs_text *given, const gs_model_changes *c)
{
    GS_ENDS(gs_model_close_at) gs_model *m = NULL;
    char *text = NULL;
    size_t bytes = 0;

    GS_TRY(gs_model__check_changes(c));
    GS_TRY(gs_model__expand(&text, &bytes, given, c));
    GS_TRY(parse_again(&m, name, text, bytes));
    if (gs_model__wraps(c)) {
        GS_TRY(gs_model__wrap(&text, &bytes, m, c));
        GS_TRY(parse_again(&m, name, text, bytes));
    }
    if (c != NULL && c->set != NULL) {
        GS_TRY(set_constants(&text, &bytes, m, c->set));
        GS_TRY(parse_again(&m, name, text, bytes));
    }
    *out = m;
    m = NULL;
    return GS_OK;
}

gs_status gs_model_open(gs_model **out, const char *name) { return gs_model_open_changed(out, name, NULL); }

gs_status gs_model_open_changed(gs_model **out, const char *name, const gs_model_changes *changes)
{
    const bool is_text = strchr(name, '\n') != NULL;
    const gs_zoo_text *const z = is_text ? NULL : find_zoo(name);
    const char *const called = is_text ? "(text)" : name;
    gs_text *given = NULL;
    GS_FREED char *file = NULL;
    uint64_t bytes = strlen(name);
    gs_status st;

    if (is_text && bytes > GS_TEXT_MAX_BYTES)
        return gs_fail(GS_EFORMAT, "the model's text has %lu bytes; at most %u are read", bytes, GS_TEXT_MAX_BYTES);
    if (z == NULL && !is_text && !gs_path_exists(name))
        return unknown(name);
    if (z == NULL && !is_text && (st = gs_file_read_all(&file, &bytes, name, GS_TEXT_MAX_BYTES)) != GS_OK)
        return st;
    if (z != NULL)
        given = gs_text_new(called, z->text, z->bytes);
    else
        given = gs_text_new(called, is_text ? name : file, (size_t)bytes);
    st = given != NULL ? change(out, called, given, changes)
                       : gs_fail(GS_ENOMEM, "%s: no memory for the model's text", called);
    gs_text_drop(given);
    return st;
}

const char *gs_model_text(const gs_model *m)
{
    size_t bytes;
    return gs_text_bytes(m->text, &bytes);
}

const char *gs_model_name(const gs_model *m) { return m->path; }

bool gs_model_has_network(const gs_model *m) { return m->network != NULL; }

uint64_t gs_model_text_id(const gs_model *m) { return m->text_id; }

static void free_layer(const gs_text_layer *l)
{
    gs_free(l->param);
    gs_free(l->statement);
}

void gs_model_close(gs_model *m)
{
    if (m == NULL)
        return;
    for (uint32_t i = 0; i < m->layers; i++)
        free_layer(&m->layer[i]);
    if (m->network != NULL)
        free_layer(m->network);
    gs_free(m->network);
    gs_free(m->constant);
    gs_free(m->dim);
    gs_free(m->layer);
    gs_free(m->expr);
    gs_text_drop(m->text);
    gs_free(m);
}
