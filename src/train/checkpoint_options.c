#include "train/checkpoint_options.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/size.h"
#include "model/model.h" /* GS_MODEL_BASES */
#include "train/batch_options.h"

typedef enum kind { COUNT, REAL, FLAG, LONG, TEXT, LIST, FILE_NAME } kind;

/* Not here: the model, whose text counts and not its name; what says how much is trained (epochs, but for a cosine over
 * them), where results go, and what keeps numbers up to rounding at least. */
static const struct {
    const char *name;
    kind kind;
    size_t field;
} table[] = {
#define ROW(name, kind) {#name, kind, offsetof(gs_train_options, name)}
    ROW(layers, COUNT),        ROW(hidden, COUNT),    ROW(heads, COUNT),    ROW(bases, COUNT),
    ROW(activation, TEXT),     ROW(dropout, REAL),    ROW(input_dropout, REAL), ROW(optimizer, TEXT),
    ROW(lr, REAL),             ROW(weight_decay, REAL), ROW(seed, LONG),    ROW(eval_every, COUNT),
    ROW(matmul, TEXT),         ROW(spill_type, TEXT), ROW(init, FILE_NAME), ROW(momentum, REAL),
    ROW(clip_norm, REAL),      ROW(schedule, TEXT),   ROW(warmup, COUNT),   ROW(schedule_every, COUNT),
    ROW(schedule_by, REAL),    ROW(keep, TEXT),       ROW(patience, COUNT), ROW(epochs, COUNT),
    ROW(task, TEXT),           ROW(class_weights, LIST), ROW(label_smoothing, REAL),
    ROW(ignore_edge_weights, FLAG),
    ROW(sampler, TEXT),        ROW(batch_size, COUNT), ROW(fanout, LIST),   ROW(replace, FLAG),
    ROW(walk_length, COUNT),   ROW(coverage, COUNT), ROW(batches_per_step, COUNT),
    ROW(gather_type, TEXT),   ROW(shuffle, TEXT),   ROW(weighted, FLAG),    ROW(by_type, FLAG),
    ROW(keep_by, TEXT),
#undef ROW
};

_Static_assert(GS_ARRAY_LEN(table) <= GS_CHECKPOINT_OPTIONS, "options of a checkpoint");

void gs_checkpoint_list_options(gs_checkpoint *c)
{
    c->options = GS_ARRAY_LEN(table);
    for (uint32_t k = 0; k < GS_ARRAY_LEN(table); k++) {
        gs_checkpoint_option *const o = &c->option[k];
        *o = (gs_checkpoint_option){.name = table[k].name, .is_text = table[k].kind >= LONG};
        o->may_lack = table[k].field >= offsetof(gs_train_options, gather_type);
        if (o->may_lack && o->is_text)
            snprintf(o->text, sizeof(o->text), "%s",
                     table[k].field == offsetof(gs_train_options, gather_type) ? "f32"
                     : table[k].field == offsetof(gs_train_options, keep_by)   ? GS_KEPT_BEFORE
                                                                               : "always");
    }
}

/* Numbers of 64 bits are text, as JSON's hold 53; of a file's name its checksum stands for it. */
static void take(gs_checkpoint_option *to, size_t k, const gs_train_options *o)
{
    const void *const field = (const char *)o + table[k].field;
    const char *const text = table[k].kind >= TEXT ? *(const char *const *)field : NULL;

    switch (table[k].kind) {
    case COUNT:
        to->number = *(const uint32_t *)field;
        if (table[k].field == offsetof(gs_train_options, bases) && o->bases == 0)
            to->number = GS_MODEL_BASES;
        if (table[k].field == offsetof(gs_train_options, batch_size))
            to->number = gs_batch_size_of(o);
        if (table[k].field == offsetof(gs_train_options, walk_length))
            to->number = gs_walk_length_of(o);
        if (table[k].field == offsetof(gs_train_options, batches_per_step))
            to->number = gs_batches_per_step_of(o);
        if (table[k].field == offsetof(gs_train_options, epochs) && strcmp(o->schedule, "cosine") != 0)
            to->number = 0;
        break;
    case REAL:
        to->number = *(const double *)field;
        break;
    case FLAG:
        to->number = *(const bool *)field;
        break;
    case LONG:
        snprintf(to->text, sizeof(to->text), "%llu", (unsigned long long)*(const uint64_t *)field);
        break;
    case TEXT:
        snprintf(to->text, sizeof(to->text), "%s", text != NULL ? text : "");
        if (table[k].field == offsetof(gs_train_options, keep) && text == NULL)
            snprintf(to->text, sizeof(to->text), "best"); /* wherever it is known */
        if (table[k].field == offsetof(gs_train_options, shuffle) && text == NULL)
            snprintf(to->text, sizeof(to->text), "always");
        break;
    case LIST: /* of any length */
        snprintf(to->text, sizeof(to->text), "%s", text != NULL ? text : "");
        if (text != NULL && strlen(text) >= sizeof(to->text))
            snprintf(to->text, sizeof(to->text), "%016llx", (unsigned long long)gs_hash64(text, strlen(text)));
        break;
    case FILE_NAME:
        if (text != NULL)
            snprintf(to->text, sizeof(to->text), "%016llx", (unsigned long long)gs_hash64(text, strlen(text)));
        break;
    }
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
    for (uint32_t k = 0; k < GS_ARRAY_LEN(table); k++)
        take(&c->option[k], k, o);
}

static gs_status differs(size_t k, const gs_checkpoint_option *mine, const gs_checkpoint_option *other,
                         const char *path)
{
    if (table[k].kind == FILE_NAME)
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
        if (table[k].kind == FILE_NAME && a->text[0] == '\0')
            continue; /* the first weights are not needed any more */
        if (a->is_text ? strcmp(a->text, b->text) != 0 : a->number != b->number)
            return differs(k, a, b, path);
    }
    return GS_OK;
}
