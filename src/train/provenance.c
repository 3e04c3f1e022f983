#include "train/provenance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "session/session_plan.h"
#include "train/checkpoint_text.h"

#define VALUE_BYTES 112u /* of a note's value but the model's text */

/* The options that shape a model: weights fit these and no others. */
static const struct {
    const char *name;
    size_t field;  /* gs_train_options */
    bool is_text;
    size_t summary, room; /* gs_weights_summary; bytes there */
} shape[] = {
#define ROW(name, is_text)                                                                                    \
    {#name, offsetof(gs_train_options, name), is_text, offsetof(gs_weights_summary, name),                        \
     sizeof(((gs_weights_summary *)0)->name)}
    ROW(layers, false), ROW(hidden, false), ROW(heads, false), ROW(bases, false), ROW(activation, true),
#undef ROW
};

/* ---- writing ------------------------------------------------------------- */

typedef struct noted {
    gs_safetensors_note *note;
    uint32_t notes;
    char *value; /* [GS_SAFETENSORS_NOTES][VALUE_BYTES] behind the notes */
} noted;

static void add(noted *n, const char *key, const char *value)
{
    char *const own = n->value + (size_t)n->notes * VALUE_BYTES;
    snprintf(own, VALUE_BYTES, "%s", value);
    n->note[n->notes++] = (gs_safetensors_note){key, own};
}

/* The shortest text that reads as the same number. */
static void add_number(noted *n, const char *key, double value)
{
    char text[40];

    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    add(n, key, text);
}

static void add_options(noted *n, const gs_train_options *o)
{
    gs_checkpoint c = {0};

    gs_checkpoint_take_options(&c, o);
    for (uint32_t k = 0; k < c.options; k++) {
        const gs_checkpoint_option *const x = &c.option[k];
        if (strcmp(x->name, "epochs") == 0 || /* how many there were is said besides */
            (strcmp(x->name, "bases") == 0 && o->bases == 0) ||
            (strcmp(x->name, "ignore_edge_weights") == 0 && !o->ignore_edge_weights))
            continue;
        if (x->is_text && x->text[0] != '\0')
            add(n, x->name, x->text);
        else if (!x->is_text)
            add_number(n, x->name, x->number);
    }
}

/* "papers" of "/data/papers/". */
static void add_store(noted *n, const gs_store *store)
{
    const gs_store_shard *const shard = gs_store_get_shard(store);
    const char *const dir = shard != NULL ? shard->name : gs_store_dir(store);
    size_t end = strlen(dir), begin;
    char text[96];

    while (end > 1 && dir[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && dir[begin - 1] != '/'; begin--) {
    }
    snprintf(text, sizeof(text), "%.*s", (int)GS_MIN(end - begin, sizeof(text) - 1), dir + begin);
    add(n, "store", text);
    snprintf(text, sizeof(text), "%016lx", gs_store_get_info(store)->id);
    add(n, "store_id", text);
}

gs_status gs_provenance_notes(gs_safetensors_note **note, uint32_t *notes, const gs_provenance_source *from)
{
    const gs_store_info *const info = gs_store_get_info(from->store);
    noted n = {.note = gs_calloc(GS_SAFETENSORS_NOTES, sizeof(*n.note) + VALUE_BYTES)};

    GS_NEED(n.note != NULL, "out of memory for what weights say of themselves");
    n.value = (char *)(n.note + GS_SAFETENSORS_NOTES);
    add(&n, "gnnstream", GS_VERSION);
    add(&n, "model", from->model);
    n.note[n.notes++] = (gs_safetensors_note){"model_text", from->text};
    add_store(&n, from->store);
    add_number(&n, "features", info->features);
    add_number(&n, "classes", from->classes);
    add_number(&n, "edge_types", info->edge_types);
    add_number(&n, "epochs", from->epochs);
    if (from->options->config != NULL)
        add(&n, "config", from->options->config);
    if (from->no_move)
        add(&n, "no_move", "1");
    if (from->no_fuse)
        add(&n, "no_fuse", "1");
    add_options(&n, from->options);
    *note = n.note;
    *notes = n.notes;
    return GS_OK;
}

/* ---- reading ------------------------------------------------------------- */

static const char *find(const gs_safetensors_note *note, uint32_t notes, const char *key)
{
    for (uint32_t k = 0; k < notes; k++)
        if (strcmp(note[k].key, key) == 0)
            return note[k].value;
    return NULL;
}

static gs_status take_count(uint32_t *out, const gs_safetensors_note *note, uint32_t notes, const char *key,
                            const char *path)
{
    const char *const value = find(note, notes, key);
    char *end;

    if (value == NULL)
        return GS_OK;
    const unsigned long long v = *value >= '0' && *value <= '9' ? strtoull(value, &end, 10) : UINT64_MAX;
    if (v > UINT32_MAX || *end != '\0')
        return gs_fail(GS_EFORMAT, "%s: \"%s\" in \"__metadata__\" is no count; the header is damaged", path, key);
    *out = (uint32_t)v;
    return GS_OK;
}

static bool says_yes(const gs_safetensors_note *note, uint32_t notes, const char *key)
{
    const char *const value = find(note, notes, key);
    return value != NULL && strcmp(value, "1") == 0;
}

static gs_status take_all(gs_provenance *p, const gs_safetensors_note *note, uint32_t notes, const char *path)
{
    gs_weights_summary *const s = &p->summary;
    const char *const text = find(note, notes, "model_text"), *const id = find(note, notes, "store_id");

    gs_safetensors_printable(s->version, sizeof(s->version), find(note, notes, "gnnstream"));
    if (s->version[0] == '\0')
        return GS_OK; /* another program's, whose notes are its own */
    gs_safetensors_printable(s->model, sizeof(s->model), find(note, notes, "model"));
    gs_safetensors_printable(s->store, sizeof(s->store), find(note, notes, "store"));
    s->store_id = id != NULL ? strtoull(id, NULL, 16) : 0;
    for (size_t k = 0; k < GS_ARRAY_LEN(shape); k++) {
        void *const to = (char *)s + shape[k].summary;
        if (shape[k].is_text)
            gs_safetensors_printable(to, shape[k].room, find(note, notes, shape[k].name));
        else
            GS_TRY(take_count(to, note, notes, shape[k].name, path));
    }
    GS_TRY(take_count(&s->features, note, notes, "features", path));
    GS_TRY(take_count(&s->classes, note, notes, "classes", path));
    GS_TRY(take_count(&s->edge_types, note, notes, "edge_types", path));
    GS_TRY(take_count(&s->epochs, note, notes, "epochs", path));
    p->ignores_edge_weights = says_yes(note, notes, "ignore_edge_weights");
    const char *const task = find(note, notes, "task"), *const decoder = find(note, notes, "decoder");
    for (int t = GS_TRAIN_TASK_LINK; t < GS_TRAIN_TASKS && task != NULL; t++)
        if (strcmp(task, gs_train_task_name((gs_train_task)t)) == 0) {
            gs_safetensors_printable(p->task, sizeof(p->task), task);
            gs_safetensors_printable(p->decoder, sizeof(p->decoder),
                      decoder != NULL ? decoder : t == GS_TRAIN_TASK_LINK ? "dot" : "mlp");
        }
    p->no_move = says_yes(note, notes, "no_move");
    p->no_fuse = says_yes(note, notes, "no_fuse");
    if (text != NULL && strchr(text, '\n') != NULL && (p->text = gs_strdup(text)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory", path);
    return GS_OK;
}

gs_status gs_provenance_read(gs_provenance *out, const char *path)
{
    GS_FREED gs_safetensors_note *note = NULL;
    GS_ENDS(gs_provenance_free) gs_provenance p = {0};
    uint32_t notes;

    GS_TRY(gs_safetensors_read_notes(&note, &notes, path));
    GS_TRY(take_all(&p, note, notes, path));
    *out = p;
    p = (gs_provenance){0};
    return GS_OK;
}

void gs_provenance_free(gs_provenance *p)
{
    gs_free(p->text);
    p->text = NULL;
}

/* ---- options of a prediction --------------------------------------------- */

static gs_status complete_model(gs_train_options *o, const gs_provenance *p, const char *path)
{
    GS_ENDS(gs_model_close_at) gs_model *m = NULL;
    uint64_t id;

    if (p->text == NULL)
        return o->model != NULL ? GS_OK
                                : gs_fail(GS_EINVAL, ".model: none given, and %s does not say what model it is of; "
                                          "name it", path);
    /* Texts are noted as they run: with what was put around their layers, and their constants as they were set. */
    if (o->model == NULL && gs_session_model_changed(o))
        return gs_fail(GS_EINVAL, ".norm, .jk, .residual, .act_first and .set are in the text that the weights %s "
                       "have; leave them out", path);
    if (o->model == NULL) {
        o->model = p->text;
        return GS_OK;
    }
    GS_TRY(gs_model_id_of(&id, p->text, strlen(p->text)));
    GS_TRY(gs_session_open_model(&m, o));
    if (gs_model_text_id(m) != id)
        return gs_fail(GS_EINVAL, ".model %s: the weights %s are of %s, which is another text; leave it out",
                       gs_model_name(m), path, p->summary.model);
    return GS_OK;
}

static gs_status complete_text(const char **field, const char *has, const char *name, const char *usual,
                               const char *path)
{
    if (*field == NULL)
        *field = *has != '\0' ? has : usual;
    else if (*has != '\0' && strcmp(*field, has) != 0)
        return gs_fail(GS_EINVAL, ".%s %s: the weights %s have %s; leave it out", name, *field, path, has);
    return GS_OK;
}

static gs_status complete_count(uint32_t *field, uint32_t has, const char *name, uint32_t usual, const char *path)
{
    if (*field == 0)
        *field = has != 0 ? has : usual;
    else if (has != 0 && *field != has)
        return gs_fail(GS_EINVAL, ".%s %u: the weights %s have %u; leave it out", name, *field, path, has);
    return GS_OK;
}

gs_status gs_provenance_complete(gs_train_options *o, const gs_provenance *p, const char *path)
{
    const bool says = p->summary.version[0] != '\0';
    gs_train_options usual;

    gs_train_options_init(&usual);
    for (size_t k = 0; k < GS_ARRAY_LEN(shape); k++) {
        const void *const has = (const char *)&p->summary + shape[k].summary;
        char *const field = (char *)o + shape[k].field, *const normal = (char *)&usual + shape[k].field;
        if (shape[k].is_text)
            GS_TRY(complete_text((const char **)(void *)field, has, shape[k].name, *(const char **)(void *)normal,
                                 path));
        else
            GS_TRY(complete_count((uint32_t *)(void *)field, *(const uint32_t *)has, shape[k].name,
                                  *(const uint32_t *)(void *)normal, path));
    }
    o->ignore_edge_weights |= p->ignores_edge_weights;
    if (p->decoder[0] != '\0') {
        o->task = p->task;
        GS_TRY(complete_text(&o->decoder, p->decoder, "decoder", "dot", path));
    }
    GS_TRY(complete_model(o, p, path));
    return says ? complete_count(&o->classes, p->summary.classes, "classes", 0, path) : GS_OK;
}
