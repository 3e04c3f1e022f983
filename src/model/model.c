/* model.c - finding a model's text, and giving it up again. */
#include "model/model.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/model_internal.h"

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
    gs_model *m = gs_calloc(1, sizeof(*m));
    gs_status st = GS_ENOMEM;

    if (m == NULL || (m->text = gs_text_new(name, text, bytes)) == NULL) {
        gs_fail(st, "%s: no memory for the model's text", name);
        goto done;
    }
    m->path = gs_text_name(m->text);
    if ((st = gs_model_id_of(&m->text_id, text, bytes)) != GS_OK || (st = gs_model__parse(m)) != GS_OK)
        goto done;
    *out = m;
    m = NULL;
done:
    gs_model_close(m);
    return st;
}

/* *m of another text, which is taken. */
static gs_status parse_again(gs_model **m, const char *name, char *text, size_t bytes)
{
    gs_model *made = NULL;
    const gs_status st = parse(&made, name, text, bytes);

    gs_free(text);
    if (st != GS_OK)
        return st;
    gs_model_close(*m);
    *m = made;
    return GS_OK;
}

/* The text as it is used: norm_act() written out, then a network around the layers, then other constants. */
static gs_status change(gs_model **out, const char *name, const gs_text *given, const gs_model_changes *c)
{
    gs_model *m = NULL;
    char *text = NULL;
    size_t bytes = 0;
    gs_status st;

    if ((st = gs_model__check_changes(c)) != GS_OK || (st = gs_model__expand(&text, &bytes, given, c)) != GS_OK)
        return st;
    st = parse_again(&m, name, text, bytes);
    if (st == GS_OK && gs_model__wraps(c) && (st = gs_model__wrap(&text, &bytes, m, c)) == GS_OK)
        st = parse_again(&m, name, text, bytes);
    if (st == GS_OK && c != NULL && c->set != NULL && (st = gs_model__set(&text, &bytes, m, c->set)) == GS_OK)
        st = parse_again(&m, name, text, bytes);
    if (st == GS_OK)
        *out = m;
    else
        gs_model_close(m);
    return st;
}

gs_status gs_model_open(gs_model **out, const char *name) { return gs_model_open_changed(out, name, NULL); }

gs_status gs_model_open_changed(gs_model **out, const char *name, const gs_model_changes *changes)
{
    const bool is_text = strchr(name, '\n') != NULL;
    const gs_zoo_text *const z = is_text ? NULL : find_zoo(name);
    const char *const called = is_text ? "(text)" : name;
    gs_text *given = NULL;
    char *file = NULL;
    uint64_t bytes = strlen(name);
    gs_status st;

    if (is_text && bytes > GS_TEXT_MAX_BYTES)
        return gs_fail(GS_EFORMAT, "the model's text has %llu bytes; at most %u are read", (unsigned long long)bytes,
                       GS_TEXT_MAX_BYTES);
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
    gs_free(file);
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
