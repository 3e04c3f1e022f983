/* model.c - finding a model's text, and giving it up again. */
#include "model/model.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
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

gs_status gs_model_open(gs_model **out, const char *name)
{
    const gs_zoo_text *z = find_zoo(name);
    gs_model *m = NULL;
    const char *text;
    char *file = NULL;
    size_t length;
    uint64_t bytes = 0;
    gs_status st;

    if (z == NULL && !gs_path_exists(name))
        return unknown(name);
    if (z == NULL && (st = gs_file_read_all(&file, &bytes, name, GS_TEXT_MAX_BYTES)) != GS_OK)
        goto done;
    st = GS_ENOMEM;
    m = gs_calloc(1, sizeof(*m));
    if (m == NULL || (m->text = gs_text_new(name, z != NULL ? z->text : file, z != NULL ? z->bytes : (size_t)bytes)) ==
                         NULL) {
        gs_fail(st, "%s: no memory for the model's text", name);
        goto done;
    }
    m->path = gs_text_name(m->text);
    text = gs_text_bytes(m->text, &length);
    m->text_id = gs_hash64(text, length);
    if ((st = gs_model__parse(m)) != GS_OK)
        goto done;
    *out = m;
    m = NULL;
done:
    gs_model_close(m);
    gs_free(file);
    return st;
}

uint64_t gs_model_text_id(const gs_model *m) { return m->text_id; }

void gs_model_close(gs_model *m)
{
    if (m == NULL)
        return;
    for (uint32_t i = 0; i < m->layers; i++) {
        gs_free(m->layer[i].param);
        gs_free(m->layer[i].statement);
    }
    gs_free(m->layer);
    gs_free(m->expr);
    gs_text_drop(m->text);
    gs_free(m);
}
