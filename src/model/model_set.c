/* model_set.c - other numbers in a text's constants: "alpha=0.2,steps=5" writes them into the text, which then says
 * itself what runs. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/model_internal.h"

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

gs_status gs_model__set(char **out, size_t *bytes, const gs_model *m, const char *set)
{
    gs_setting *const of = gs_calloc((size_t)m->consts + 1, sizeof(*of));
    size_t length, done = 0, n = 0;
    const char *const text = gs_text_bytes(m->text, &length);
    char *const made = gs_malloc(length + strlen(set) + 1);
    gs_status st = of == NULL || made == NULL ? gs_fail(GS_ENOMEM, "%s: no memory for the model's text", m->path)
                                              : read_settings(of, m, set);

    for (uint32_t i = 0; st == GS_OK && i < m->consts; i++) { /* in the order of the text */
        const gs_text_const *const c = &m->constant[i];
        if (of[i].name == NULL)
            continue;
        memcpy(made + n, text + done, c->at - done);
        n += c->at - done;
        memcpy(made + n, of[i].number, of[i].number_bytes);
        n += of[i].number_bytes;
        done = c->at + c->bytes;
    }
    gs_free(of);
    if (st != GS_OK) {
        gs_free(made);
        return st;
    }
    memcpy(made + n, text + done, length - done);
    *bytes = n + length - done;
    *out = made;
    return GS_OK;
}
