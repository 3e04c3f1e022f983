/* cli_again.c - the command line that was given, once more, for people to copy. */
#include <string.h>

#include "cli.h"

static struct {
    const cli_command *command;
    int argc;
    char **argv;
} given;

void cli_remember(const cli_command *c, int argc, char **argv)
{
    given.command = c;
    given.argc = argc;
    given.argv = argv;
}

/* As a shell reads it: whatever is not surely plain in quotes. */
static void print_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";

    fputc(' ', out);
    if (*word != '\0' && strspn(word, plain) == strlen(word)) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word != '\0'; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    fputc('\'', out);
}

void cli_print_again(FILE *out, const char *option, const char *value)
{
    const size_t length = strlen(option);

    fprintf(out, "gnnstream %s", given.command->name);
    for (int i = 0; i < given.argc; i++) {
        const char *const word = given.argv[i];
        if (strcmp(word, "--") == 0) /* what follows are no options: those go before */
            break;
        if (strncmp(word, option, length) == 0 && (word[length] == '\0' || word[length] == '=')) {
            i += word[length] == '\0';
            continue;
        }
        print_word(out, word);
    }
    print_word(out, option);
    print_word(out, value);
    for (int i = 0, behind = 0; i < given.argc; i++) {
        behind = behind || strcmp(given.argv[i], "--") == 0;
        if (behind)
            print_word(out, given.argv[i]);
    }
    fputc('\n', out);
}
