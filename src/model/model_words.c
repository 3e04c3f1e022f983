/* model_words.c - the names that a text may call: those of the table of operators, and those of the language. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "model/model_internal.h"

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
                                        "dropout", "l2_normalize", "norm_act", "loop_weight", "gcn_norm"};
    gs_op op;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return gs_model__is_reduction(name) || gs_model__is_norm(name) || gs_model__function(name, &op);
}
