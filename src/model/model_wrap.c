/* model_wrap.c - normalisation, jumping knowledge and residuals around any layers, written into the text.
 *
 * The network that is written is torch_geometric.nn.models.BasicGNN (its forward(), and the names of its parameters):
 * behind a layer come norm, activation and dropout, in the order of act_first, and with `jk` the results of all layers
 * go into one linear map. A residual adds what a layer got to what comes of it, where both are hidden layers.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/model_internal.h"

/* A text that grows. Sticky: once memory is short nothing more is written. */
typedef struct gs_writer {
    char *text;
    size_t bytes, room;
    bool failed;
} gs_writer;

static void put(gs_writer *w, const char *text, size_t bytes)
{
    if (!w->failed && w->bytes + bytes + 1 > w->room) {
        const size_t room = 2 * w->room + bytes + 256;
        char *const more = gs_realloc(w->text, room);
        w->failed = more == NULL;
        w->text = more != NULL ? more : w->text;
        w->room = more != NULL ? room : w->room;
    }
    if (w->failed)
        return;
    memcpy(w->text + w->bytes, text, bytes);
    w->bytes += bytes;
}

__attribute__((format(printf, 2, 3))) static void say(gs_writer *w, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    const int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    put(w, text, n > 0 && (size_t)n < sizeof(text) ? (size_t)n : 0);
}

static gs_status give(gs_writer *w, char **out, size_t *bytes, const char *name)
{
    if (w->failed) {
        gs_free(w->text);
        return gs_fail(GS_ENOMEM, "%s: no memory for the model's text", name);
    }
    *out = w->text;
    *bytes = w->bytes;
    return GS_OK;
}

/* ---- norm_act(x, NAME) ---- */

static const struct {
    const char *option, *function, *module; /* the name that PyG's class gives its parameters' owner */
} norms[] = {
    [GS_NORM_NONE] = {"none", NULL, NULL},
    [GS_NORM_BATCH] = {"batch", "batch_norm", ".module"},
    [GS_NORM_LAYER] = {"layer", "layer_norm_all", ""},
    [GS_NORM_LAYER_NODE] = {"layer_node", "layer_norm", ""},
};

static const char *const jk_words[] = {
    [GS_JK_NONE] = "none", [GS_JK_CAT] = "cat", [GS_JK_MAX] = "max", [GS_JK_LSTM] = "lstm", [GS_JK_LAST] = "last",
};

/* What stands before and behind a value that is normalised and activated. */
static void open_norm_act(gs_writer *w, const gs_model_changes *c)
{
    const gs_norm_kind k = c == NULL ? GS_NORM_NONE : c->norm;
    if (k == GS_NORM_NONE)
        say(w, "act(");
    else if (c->act_first)
        say(w, "%s(act(", norms[k].function);
    else
        say(w, "act(%s(", norms[k].function);
}

static void close_norm_act(gs_writer *w, const gs_model_changes *c, const char *name, size_t bytes)
{
    const gs_norm_kind k = c == NULL ? GS_NORM_NONE : c->norm;
    if (k == GS_NORM_NONE)
        say(w, ")");
    else if (c->act_first)
        say(w, "), %.*s%s)", (int)bytes, name, norms[k].module);
    else
        say(w, ", %.*s%s))", (int)bytes, name, norms[k].module);
}

static bool is_char(const gs_token *t, char c) { return t->kind == GS_TOKEN_CHAR && t->bytes == 1 && t->text[0] == c; }

static bool is_norm_act(const gs_token *t)
{
    return t->kind == GS_TOKEN_NAME && t->bytes == 8 && memcmp(t->text, "norm_act", 8) == 0;
}

/* The next token, false at the end of what is one: the parser says what is wrong there. */
static bool next(gs_lexer *x, gs_token *t) { return gs_model__lex(x, t) == GS_OK && t->kind != GS_TOKEN_END; }

/* Behind "norm_act": "(" x "," NAME ")", into the token of the name, and where its brackets stand. */
static bool read_norm_act(gs_lexer *x, const char **first, const char **comma, gs_token *name, const char **behind)
{
    const uint32_t around = x->brackets;
    gs_token t;

    if (!next(x, &t) || !is_char(&t, '('))
        return false;
    *first = t.text + 1;
    *comma = NULL;
    while (next(x, &t) && x->brackets > around)
        if (is_char(&t, ',') && x->brackets == around + 1) {
            *comma = t.text;
            if (!next(x, name))
                return false;
        }
    *behind = t.text + 1;
    return *comma != NULL && name->kind == GS_TOKEN_NAME && is_char(&t, ')') && x->brackets == around;
}

gs_status gs_model__expand(char **out, size_t *bytes, const gs_text *text, const gs_model_changes *c)
{
    gs_lexer x = {.whole = text, .line = 1, .column = 1};
    gs_writer w = {0};
    const char *done, *first, *comma, *behind;
    gs_token t, name;

    x.text = done = gs_text_bytes(text, &x.bytes);
    while (next(&x, &t)) {
        if (!is_norm_act(&t) || !read_norm_act(&x, &first, &comma, &name, &behind))
            continue;
        put(&w, done, (size_t)(t.text - done));
        open_norm_act(&w, c);
        put(&w, first, (size_t)(comma - first)); /* one inside another is none: the parser does not know the second */
        close_norm_act(&w, c, name.text, name.bytes);
        done = behind;
    }
    put(&w, done, (size_t)(x.text + x.bytes - done));
    return give(&w, out, bytes, gs_text_name(text));
}

/* ---- the network ---- */

/* The text of hidden layer i, of those before a last one; with `jk` there is no last one. */
static const char *layer_name(const gs_model *m, uint32_t i, bool last)
{
    if (m->layers == 1 || last)
        return m->layer[m->layers - 1].name;
    return m->layer[i < m->layers - 2 ? i : m->layers - 2].name;
}

/* One direction of torch's LSTM over the layers' results: states s0, s1, ... of layers 1, 2, ... */
static void write_direction(gs_writer *w, const gs_model_changes *c, const char *suffix, char s)
{
    const bool back = s == 'b';

    for (uint32_t k = 0; k < c->layers; k++) {
        const uint32_t i = back ? c->layers - k : k + 1, before = back ? i + 1 : i - 1;
        say(w, "    %cg%u = x%u @ jk.lstm.weight_ih_l0%s' + jk.lstm.bias_ih_l0%s + jk.lstm.bias_hh_l0%s", s, i, i,
            suffix, suffix, suffix);
        if (k > 0)
            say(w, " + %ch%u @ jk.lstm.weight_hh_l0%s'", s, before, suffix);
        say(w, "\n    %cc%u = sigmoid(part(%cg%u, 0, 4)) * tanh(part(%cg%u, 2, 4))", s, i, s, i, s, i);
        if (k > 0)
            say(w, " + sigmoid(part(%cg%u, 1, 4)) * %cc%u", s, i, s, before);
        say(w, "\n    %ch%u = sigmoid(part(%cg%u, 3, 4)) * tanh(%cc%u)\n", s, i, s, i, s, i);
    }
}

static void write_lstm_params(gs_writer *w, const gs_model_changes *c)
{
    const uint32_t h = c->layers * c->hidden / 2;
    static const char *const suffix[] = {"", "_reverse"};

    for (uint32_t k = 0; k < 2; k++)
        say(w,
            "    param jk.lstm.weight_ih_l0%s[%u, hidden], jk.lstm.weight_hh_l0%s[%u, %u] ~ fan_in(%u)\n"
            "    param jk.lstm.bias_ih_l0%s[%u], jk.lstm.bias_hh_l0%s[%u] ~ fan_in(%u)\n",
            suffix[k], 4 * h, suffix[k], 4 * h, h, h, suffix[k], 4 * h, suffix[k], 4 * h, h);
    say(w, "    param jk.att.weight[1, %u], jk.att.bias[1] ~ fan_in(%u)\n", 2 * h, 2 * h);
}

/* PyG's JumpingKnowledge("lstm"): a bidirectional LSTM over the layers scores them, and a softmax weighs them. */
static void write_lstm(gs_writer *w, const gs_model_changes *c)
{
    write_direction(w, c, "", 'f');
    write_direction(w, c, "_reverse", 'b');
    for (uint32_t i = 1; i <= c->layers; i++)
        say(w, "    score%u = concat(fh%u, bh%u) @ jk.att.weight' + jk.att.bias\n", i, i, i);
    if (c->layers == 1) {
        say(w, "    y = x1\n"); /* the softmax of one score is 1 */
        return;
    }
    say(w, "    share = row_softmax(concat(");
    for (uint32_t i = 1; i <= c->layers; i++)
        say(w, "%sscore%u", i > 1 ? ", " : "", i);
    say(w, "))\n    y = ");
    for (uint32_t i = 1; i <= c->layers; i++)
        say(w, "%spart(share, %u, %u) * x%u", i > 1 ? " + " : "", i - 1, c->layers, i);
    say(w, "\n");
}

static void write_jk(gs_writer *w, const gs_model_changes *c)
{
    if (c->jk == GS_JK_LSTM) {
        write_lstm(w, c);
    } else if (c->jk == GS_JK_LAST || c->layers == 1) {
        say(w, "    y = x%u\n", c->layers);
    } else if (c->jk == GS_JK_CAT) {
        say(w, "    y = concat(");
        for (uint32_t i = 1; i <= c->layers; i++)
            say(w, "%sx%u", i > 1 ? ", " : "", i);
        say(w, ")\n");
    } else {
        say(w, "    y = ");
        for (uint32_t i = 1; i < c->layers; i++)
            say(w, "max(");
        say(w, "x1");
        for (uint32_t i = 2; i <= c->layers; i++)
            say(w, ", x%u)", i);
        say(w, "\n");
    }
    say(w, "    return y @ lin.weight' + lin.bias\n");
}

static void write_layers(gs_writer *w, const gs_model *m, const gs_model_changes *c)
{
    char name[32];

    for (uint32_t i = 1; i <= c->layers; i++) {
        const bool last = i == c->layers && c->jk == GS_JK_NONE;
        char from[16] = "x";
        if (i > 1)
            snprintf(from, sizeof(from), "x%u", i - 1);
        if (last) {
            say(w, "    return %s(%s, out)\n", layer_name(m, i - 1, true), from);
            return;
        }
        say(w, "    x%u = dropout(", i);
        open_norm_act(w, c);
        say(w, "%s(%s, hidden)", layer_name(m, i - 1, false), from);
        close_norm_act(w, c, name, (size_t)snprintf(name, sizeof(name), "norms.%u", i - 1));
        say(w, ")%s%s\n", c->residual && i > 1 ? " + " : "", c->residual && i > 1 ? from : "");
    }
}

bool gs_model__wraps(const gs_model_changes *c)
{
    return c != NULL && (c->norm != GS_NORM_NONE || c->jk != GS_JK_NONE || c->residual);
}

gs_status gs_model__check_changes(const gs_model_changes *c)
{
    if (c == NULL)
        return GS_OK;
    if (c->act_first && c->norm == GS_NORM_NONE)
        return gs_fail(GS_EINVAL, ".act_first: says that the activation comes before the norm; give .norm one");
    return GS_OK;
}

/* Does any layer but the last one, which is alone or not, look at edges? */
static bool hidden_layers_reduce(const gs_model *m)
{
    for (uint32_t l = 0; l < (m->layers > 1 ? m->layers - 1 : 1); l++)
        for (uint32_t i = m->layer[l].first_expr; i < m->layer[l].end_expr; i++)
            if (m->expr[i].kind == GS_EXPR_CALL && gs_model__is_reduction(m->expr[i].name))
                return true;
    return false;
}

static gs_status check(const gs_model *m, const gs_model_changes *c)
{
    if (m->network != NULL)
        return gs_fail(GS_EINVAL,
                       "model %s: has a network of its own, at line %u, and what stands around its layers is written "
                       "there: leave out .norm, .jk, .residual and .act_first",
                       m->path, m->network->line);
    if (c->layers == 0 || c->layers > GS_MODEL_MOST_LAYERS)
        return gs_fail(GS_EINVAL, ".layers %u: must be from 1 to %u", c->layers, GS_MODEL_MOST_LAYERS);
    if (c->jk != GS_JK_NONE && !hidden_layers_reduce(m))
        return gs_fail(GS_EINVAL,
                       ".jk %s: all layers are hidden ones then, and of model %s only the last one looks at edges",
                       jk_words[c->jk], m->path);
    if (c->residual && c->layers < (c->jk != GS_JK_NONE ? 2u : 3u))
        return gs_fail(GS_EINVAL, ".residual: is between two hidden layers; %u layer%s %s not two of them", c->layers,
                       c->layers == 1 ? "" : "s", c->layers == 1 ? "has" : "have");
    if (c->jk == GS_JK_LSTM && ((uint64_t)c->layers * c->hidden < 2 || (uint64_t)c->layers * c->hidden * 2 > 1000000))
        return gs_fail(GS_EINVAL, ".jk lstm: .layers %u times .hidden %u must be from 2 to 500000", c->layers,
                       c->hidden);
    for (uint32_t i = 0; i < m->layers; i++)
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(m->layer[i].name, m->layer[k].name) == 0)
                return gs_fail(GS_EINVAL, "model %s: two layers are called '%s', so no network can call one of them",
                               m->path, m->layer[i].name);
    return GS_OK;
}

gs_status gs_model__wrap(char **out, size_t *bytes, const gs_model *m, const gs_model_changes *c)
{
    gs_writer w = {0};
    size_t length;
    const char *const text = gs_text_bytes(m->text, &length);

    GS_TRY(check(m, c));
    put(&w, text, length);
    say(&w, "%s\n# As torch_geometric.nn.models.BasicGNN with norm %s%s, jk %s%s.\nnetwork(x[in]) -> [out]:\n",
        length > 0 && text[length - 1] == '\n' ? "" : "\n", norms[c->norm].option, c->act_first ? ", act_first" : "",
        jk_words[c->jk], c->residual ? ", and residuals" : "");
    if (c->jk == GS_JK_LSTM)
        write_lstm_params(&w, c);
    if (c->jk != GS_JK_NONE) {
        if (c->jk == GS_JK_CAT && c->layers > 1)
            say(&w, "    param lin.weight[out, %u * hidden], lin.bias[out] ~ fan_in(%u * hidden)\n", c->layers,
                c->layers);
        else
            say(&w, "    param lin.weight[out, hidden], lin.bias[out] ~ fan_in(hidden)\n");
    }
    write_layers(&w, m, c);
    if (c->jk != GS_JK_NONE)
        write_jk(&w, c);
    return give(&w, out, bytes, m->path);
}
