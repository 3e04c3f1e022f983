/* cli_again.c - the command line that was given, once more, for people to copy. */
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define LINE_BYTES 4096 /* as checkpoints keep */
#define LINE_WORDS 1024

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

const char *cli_whole_line(void)
{
    static char line[LINE_BYTES];
    char folder[LINE_BYTES];
    FILE *const out = getcwd(folder, sizeof(folder)) == NULL ? NULL : fmemopen(line, sizeof(line), "w");
    bool whole;

    if (out == NULL)
        return NULL;
    fputs("cd", out);
    print_word(out, folder);
    fprintf(out, " && gnnstream %s", given.command->name);
    for (int i = 0; i < given.argc; i++)
        print_word(out, given.argv[i]);
    whole = fflush(out) == 0 && ftell(out) < (long)sizeof(line) - 1;
    fclose(out);
    return whole ? line : NULL;
}

/* Takes the next word of `*from`, as print_word() wrote it, into `*to`; NULL at the end, or where it is none. */
static char *next_word(const char **from, char **to)
{
    char *const word = *to;
    bool quoted = false;

    while (**from == ' ')
        (*from)++;
    if (**from == '\0')
        return NULL;
    for (; **from != '\0' && (quoted || **from != ' '); (*from)++)
        if (**from == '\'')
            quoted = !quoted;
        else if (!quoted && **from == '\\' && (*from)[1] != '\0')
            *(*to)++ = *++(*from);
        else
            *(*to)++ = **from;
    *(*to)++ = '\0';
    return quoted ? NULL : word;
}

/* Does the line go on with these words? They are taken. */
static bool takes(const char **from, const char *words)
{
    const size_t length = strlen(words);
    const bool same = strncmp(*from, words, length) == 0;
    *from += same ? length : 0;
    return same;
}

bool cli_recall_line(const cli_command *c, const char *line, int *argc, char ***argv, const char **folder)
{
    static char text[LINE_BYTES + LINE_WORDS];
    static char *all[2 * LINE_WORDS];
    char *to = text, *word;
    int words = 0, end;

    *folder = "";
    if (strlen(line) >= LINE_BYTES || !takes(&line, "cd ") || (word = next_word(&line, &to)) == NULL)
        return false;
    *folder = word;
    if (!takes(&line, " && gnnstream ") || !takes(&line, c->name))
        return false;
    while (words < LINE_WORDS && (word = next_word(&line, &to)) != NULL)
        all[words++] = word;
    if (*line != '\0' || given.argc > LINE_WORDS)
        return false;
    /* behind "--" there are no options */
    for (end = 0; end < words && strcmp(all[end], "--") != 0; end++) {
    }
    memmove(all + end + given.argc, all + end, (size_t)(words - end) * sizeof(*all));
    memcpy(all + end, given.argv, (size_t)given.argc * sizeof(*all));
    *argc = words + given.argc;
    *argv = all;
    cli_remember(c, *argc, all);
    return true;
}
