/* cli_fields.c - the library's errors name fields of gnnstream.h's structs; people know options. */
#include <string.h>

#include "cli.h"

/* The option of a field, from the tables of all commands: an error of training can name what partitioning takes. */
static const char *option_of(const char *field, size_t length)
{
    for (const cli_command *const *c = cli_commands; *c != NULL; c++)
        for (const cli_group *g = (*c)->group; g->title != NULL; g++)
            for (const cli_option *o = g->option; o->name != NULL; o++)
                if (o->field_name != NULL && strncmp(o->field_name, field, length) == 0 &&
                    o->field_name[length] == '\0')
                    return o->name;
    return NULL;
}

/* A field stands at the beginning, or behind a space or a parenthesis. So does a file in this folder whose name begins
 * with a dot, but few are called like a field. */
static bool may_begin(const char *text, const char *at)
{
    return *at == '.' && (at == text || at[-1] == ' ' || at[-1] == '(');
}

char *cli_name_options(char *out, size_t capacity, const char *error)
{
    size_t n = 0;

    for (const char *at = error; *at != '\0' && n + 1 < capacity;) {
        const size_t length = strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_");
        const char *const option = may_begin(error, at) && length > 0 ? option_of(at + 1, length) : NULL;
        if (option == NULL || strlen(option) >= capacity - n) {
            out[n++] = *at++;
            continue;
        }
        memcpy(out + n, option, strlen(option));
        n += strlen(option);
        at += 1 + length;
    }
    out[n] = '\0';
    return out;
}
