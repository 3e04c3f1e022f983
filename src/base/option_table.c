#include "base/option_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROW(field_, kind_, normal, least_, most_, changes_, counts_as_, shown, option, value, help, unset) \
    {.name = #field_, .field = offsetof(gs_train_options, field_), .kind = GS_OPTION_##kind_,               \
     .changes = GS_OPTION_##changes_, .least = (least_), .most = (most_), .words = (value),                 \
     .counts_as = (counts_as_)},
const gs_option gs_option_table[] = {GS_TRAIN_OPTION_MAP(ROW){.name = NULL}};
#undef ROW

#define DEFAULT(field, kind, normal, ...) .field = (normal),
const gs_train_options gs_option_defaults = {.size = sizeof(gs_train_options), GS_TRAIN_OPTION_MAP(DEFAULT)};
#undef DEFAULT

static const void *field_of(const gs_option *x, const gs_train_options *o) { return (const char *)o + x->field; }

const char *gs_option_text(const gs_option *x, const gs_train_options *o)
{
    return *(const char *const *)field_of(x, o);
}

/* As it stands in the field. */
static double number_of(const gs_option *x, const gs_train_options *o)
{
    const void *const field = field_of(x, o);

    switch (x->kind) {
    case GS_OPTION_FLAG:
        return *(const bool *)field;
    case GS_OPTION_COUNT:
        return *(const uint32_t *)field;
    case GS_OPTION_LONG:
    case GS_OPTION_SIZE:
        return (double)*(const uint64_t *)field;
    case GS_OPTION_REAL:
    case GS_OPTION_ABOVE:
    case GS_OPTION_TIME:
        return *(const double *)field;
    case GS_OPTION_TEXT:
    case GS_OPTION_PATH:
    case GS_OPTION_CHOICE:
        break;
    }
    return 0; /* no number */
}

bool gs_option_is_unset(const gs_option *x, const gs_train_options *o)
{
    return gs_option_is_text(x) ? gs_option_text(x, o) == NULL : number_of(x, o) == 0;
}

double gs_option_number(const gs_option *x, const gs_train_options *o)
{
    const double v = number_of(x, o);
    return v == 0 && x->kind == GS_OPTION_COUNT && x->counts_as != NULL ? strtod(x->counts_as, NULL) : v;
}

/* ---- choices ------------------------------------------------------------- */

int gs_word_place(const char *words, const char *word)
{
    const size_t length = strlen(word);
    int place = 0;

    for (const char *at = words;; place++) {
        const size_t n = strcspn(at, "|");
        if (n == length && strncmp(at, word, n) == 0 && n > 0)
            return place;
        if (at[n] == '\0')
            return -1;
        at += n + 1;
    }
}

const gs_option *gs_option_at(size_t field)
{
    for GS_OPTION_EACH (x)
        if (x->field == field)
            return x;
    return NULL;
}

int gs_option_choice(const gs_train_options *o, size_t field)
{
    const gs_option *const x = gs_option_at(field);
    const char *const text = gs_option_text(x, o), *const counts = text != NULL ? text : x->counts_as;
    return counts == NULL ? -1 : gs_word_place(x->words, counts);
}

uint32_t gs_option_count(const gs_train_options *o, size_t field)
{
    return (uint32_t)gs_option_number(gs_option_at(field), o);
}

/* ---- ranges -------------------------------------------------------------- */

static gs_status check_text(const gs_option *x, const gs_train_options *o)
{
    const char *const text = gs_option_text(x, o), *const normal = gs_option_text(x, &gs_option_defaults);

    if (x->kind != GS_OPTION_CHOICE)
        return normal == NULL || (text != NULL && text[0] != '\0')
                   ? GS_OK
                   : gs_fail(GS_EINVAL, ".%s: none given; use %s", x->name, normal);
    if (text != NULL ? gs_word_place(x->words, text) >= 0 : normal == NULL || x->counts_as != NULL)
        return GS_OK;
    return gs_fail(GS_EINVAL, ".%s %s: must be one of %s", x->name, text == NULL ? "(none)" : text, x->words);
}

static gs_status check_real(const gs_option *x, double v)
{
    const bool above = x->kind == GS_OPTION_ABOVE, allowed = v == 0 && x->counts_as != NULL;

    if (allowed || (isfinite(v) && (above ? v > x->least : v >= x->least) && (x->most == 0 || v < x->most)))
        return GS_OK;
    if (x->kind == GS_OPTION_TIME)
        return gs_fail(GS_EINVAL, ".%s %g: must be seconds, or 0 for %s", x->name, v, x->counts_as);
    if (x->most != 0)
        return gs_fail(GS_EINVAL, ".%s %g: must be %s %g and below %g", x->name, v, above ? "above" : "at least",
                       x->least, x->most);
    if (!above)
        return gs_fail(GS_EINVAL, ".%s %g: must be a number, at least %g", x->name, v, x->least);
    return gs_fail(GS_EINVAL, ".%s %g: must be a number above %g%s%s", x->name, v, x->least,
                   x->counts_as != NULL ? ", or 0 for " : "", x->counts_as != NULL ? x->counts_as : "");
}

static gs_status check_integer(const gs_option *x, double v)
{
    const double normal = number_of(x, &gs_option_defaults);

    if ((v == 0 && normal == 0) || (v >= x->least && (x->most == 0 || v <= x->most)))
        return GS_OK;
    return gs_fail(GS_EINVAL, ".%s %.0f: must be from %.0f to %.0f", x->name, v, x->least,
                   x->most != 0 ? x->most : (double)UINT32_MAX);
}

gs_status gs_options_check_ranges(const gs_train_options *o)
{
    for GS_OPTION_EACH (x)
        GS_TRY(gs_option_is_text(x)        ? check_text(x, o)
               : x->kind >= GS_OPTION_REAL ? check_real(x, number_of(x, o))
                                           : check_integer(x, number_of(x, o)));
    return GS_OK;
}
