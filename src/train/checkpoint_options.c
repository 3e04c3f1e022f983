#include "train/checkpoint_options.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/option_table.h"
#include "train/batch_options.h"

/* Not the model, whose text counts and not its name; nor what says where results go, nor what keeps numbers up to
 * rounding at least. */
#define EACH(x) GS_OPTION_EACH (x) if (x->changes != GS_OPTION_NOTHING)

static bool is(const gs_option *x, size_t field) { return x->field == field; }
#define IS(x, name) is(x, offsetof(gs_train_options, name))

/* Of numbers of 64 bits, as JSON's hold 53, and of all texts. */
static bool is_text(const gs_option *x) { return x->kind == GS_OPTION_LONG || gs_option_is_text(x); }

static void take_text(char text[GS_CHECKPOINT_WORDS], const gs_option *x, const gs_train_options *o)
{
    const char *const given = gs_option_text(x, o);

    if (given == NULL)
        snprintf(text, GS_CHECKPOINT_WORDS, "%s", x->counts_as != NULL ? x->counts_as : "");
    else if (x->kind == GS_OPTION_PATH || strlen(given) >= GS_CHECKPOINT_WORDS) /* a checksum stands for it */
        snprintf(text, GS_CHECKPOINT_WORDS, "%016llx", (unsigned long long)gs_hash64(given, strlen(given)));
    else
        snprintf(text, GS_CHECKPOINT_WORDS, "%s", given);
}

static void take(gs_checkpoint_option *to, const gs_option *x, const gs_train_options *o)
{
    if (gs_option_is_text(x))
        take_text(to->text, x, o);
    else if (x->kind == GS_OPTION_LONG)
        snprintf(to->text, sizeof(to->text), "%llu",
                 (unsigned long long)*(const uint64_t *)(const void *)((const char *)o + x->field));
    else if (IS(x, batches_per_step))
        to->number = gs_batches_per_step_of(o);
    else if (IS(x, epochs) && gs_choice(o, schedule) != GS_RATES_COSINE)
        to->number = 0; /* says how much is trained */
    else
        to->number = gs_option_number(x, o);
}

void gs_checkpoint_list_options(gs_checkpoint *c)
{
    c->options = 0;
    for EACH (x) {
        gs_checkpoint_option *const to = &c->option[c->options++];
        *to = (gs_checkpoint_option){.name = x->name, .of = x, .is_text = is_text(x)};
        to->may_lack = x->field >= offsetof(gs_train_options, gather_type);
        if (to->may_lack)
            take(to, x, &gs_option_defaults);
        if (IS(x, keep_by))
            snprintf(to->text, sizeof(to->text), "%s", GS_KEPT_BEFORE);
    }
    assert(c->options <= GS_CHECKPOINT_OPTIONS);
}

gs_checkpoint_option *gs_checkpoint_find_option(gs_checkpoint *c, const char *name)
{
    uint32_t k = 0;

    while (strcmp(c->option[k].name, name) != 0)
        k++;
    return &c->option[k];
}

void gs_checkpoint_take_options(gs_checkpoint *c, const gs_train_options *o)
{
    gs_checkpoint_list_options(c);
    for (uint32_t k = 0; k < c->options; k++)
        take(&c->option[k], c->option[k].of, o);
}

static gs_status differs(const gs_checkpoint_option *mine, const gs_checkpoint_option *other, const char *path)
{
    if (mine->of->kind == GS_OPTION_PATH)
        return gs_fail(GS_EINVAL, ".%s: the checkpoint %s has weights of its own, and was begun with %s; leave it out",
                       mine->name, path, other->text[0] != '\0' ? "another file" : "none");
    if (mine->is_text)
        return gs_fail(GS_EINVAL, ".%s %s: the checkpoint %s is of a run with %s; give that, or train anew", mine->name,
                       mine->text, path, other->text);
    return gs_fail(GS_EINVAL, ".%s %.17g: the checkpoint %s is of a run with %.17g; give that, or train anew",
                   mine->name, mine->number, path, other->number);
}

gs_status gs_checkpoint_match_options(const gs_checkpoint *c, const gs_train_options *o, const char *path)
{
    gs_checkpoint mine = {0};

    gs_checkpoint_take_options(&mine, o);
    for (uint32_t k = 0; k < mine.options; k++) {
        const gs_checkpoint_option *const a = &mine.option[k], *const b = &c->option[k];
        if (a->of->kind == GS_OPTION_PATH && a->text[0] == '\0')
            continue; /* the first weights are not needed any more */
        if (a->is_text ? strcmp(a->text, b->text) != 0 : a->number != b->number)
            return differs(a, b, path);
    }
    return GS_OK;
}
