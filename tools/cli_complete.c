/* cli_complete.c - completions for bash, zsh and fish, from the tables that parsing and help read. The build writes
 * them to files. */
#include <string.h>

#include "cli.h"

/* Words that can come after an option, or in a place. */
typedef enum values {
    VALUES_NONE,  /* a number or a text that nobody can guess */
    VALUES_WORDS, /* of a list */
    VALUES_FILES, /* a file or a folder */
    VALUES_BOTH,  /* the zoo's names, or a file */
} values;

static values values_of(const cli_option *o)
{
    if (o->kind == CLI_CHOICE)
        return VALUES_WORDS;
    if (o->kind == CLI_PATH || o->kind == CLI_CONFIG)
        return VALUES_FILES;
    return strcmp(o->name, "--model") == 0 ? VALUES_BOTH : VALUES_NONE;
}

static values values_of_place(const char *place)
{
    return strcmp(place, "KIND") == 0 ? VALUES_WORDS : strcmp(place, "MODEL") == 0 ? VALUES_BOTH : VALUES_FILES;
}

/* "adam|sgd" as "adam sgd" */
static void print_choices(FILE *out, const char *choices)
{
    for (; *choices != '\0'; choices++)
        fputc(*choices == '|' ? ' ' : *choices, out);
}

static void print_words(FILE *out, values v, const char *choices)
{
    if (v == VALUES_BOTH)
        fputs(cli_zoo, out);
    else if (v == VALUES_WORDS)
        print_choices(out, choices);
}

/* Inside single quotes of a shell; characters of `special` get a backslash, ends of lines become blanks. */
static void print_quoted(FILE *out, const char *text, size_t length, const char *special)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\'')
            fputs("'\\'", out);
        else if (strchr(special, text[i]) != NULL)
            fputc('\\', out);
        fputc(text[i] == '\n' ? ' ' : text[i], out);
    }
}

/* ---- bash ---------------------------------------------------------------- */

static void print_bash_option_values(FILE *out, const cli_command *c)
{
    for (const cli_group *g = c->group; g->title != NULL; g++)
        for (const cli_option *o = g->option; o->name != NULL; o++) {
            const values v = values_of(o);
            if (o->value == NULL)
                continue;
            fprintf(out, "    '%s %s') words='", c->name, o->name);
            print_words(out, v, o->value);
            fprintf(out, "' files=%d ;;\n", v == VALUES_FILES || v == VALUES_BOTH);
        }
}

static void print_bash_options(FILE *out, const cli_command *c)
{
    fprintf(out, "        '%s') words='--help --help-all", c->name);
    for (const cli_group *g = c->group; g->title != NULL; g++)
        for (const cli_option *o = g->option; o->name != NULL; o++)
            fprintf(out, " %s", o->name);
    fputs("' ;;\n", out);
}

static void print_bash_places(FILE *out, const cli_command *c)
{
    const values v = c->place[0] == NULL ? VALUES_NONE : values_of_place(c->place[0]);

    fprintf(out, "        '%s') words='", c->name);
    print_words(out, v, "rmat|sbm");
    fprintf(out, "' files=%d ;;\n", v != VALUES_NONE);
}

/* The first words of all commands, each once, then help. */
static void print_first_words(FILE *out)
{
    const char *last = "";
    size_t last_length = 0;

    for (const cli_command *const *c = cli_commands; *c != NULL; c++) {
        const size_t length = strcspn((*c)->name, " ");
        if (length != last_length || strncmp(last, (*c)->name, length) != 0)
            fprintf(out, "%.*s ", (int)length, (*c)->name);
        last = (*c)->name;
        last_length = length;
    }
    fputs("help", out);
}

static void print_bash(FILE *out)
{
    fputs("# bash completion for gnnstream\n"
          "_gnnstream()\n{\n"
          "    local at=$COMP_CWORD command=${COMP_WORDS[1]-} words='' files=0\n"
          "    local cur=${COMP_WORDS[at]} prev=${COMP_WORDS[at - 1]}\n"
          "    COMPREPLY=()\n"
          "    [ \"$cur\" = = ] && cur=''\n"
          "    [ \"$prev\" = = ] && prev=${COMP_WORDS[at - 2]}\n"
          "    if [ \"$at\" -eq 1 ] || [ \"$command\" = help ]; then\n        words='", out);
    print_first_words(out);
    fputs("'\n        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n        return\n    fi\n"
          "    if [ \"$command\" = bench ]; then\n"
          "        if [ \"$at\" -eq 2 ]; then\n"
          "            mapfile -t COMPREPLY < <(compgen -W 'limits train' -- \"$cur\")\n            return\n"
          "        fi\n        command=\"bench ${COMP_WORDS[2]}\"\n    fi\n"
          "    case \"$command $prev\" in\n", out);
    for (const cli_command *const *c = cli_commands; *c != NULL; c++)
        print_bash_option_values(out, *c);
    fputs("    *)\n        if [[ $cur == -* ]]; then case $command in\n", out);
    for (const cli_command *const *c = cli_commands; *c != NULL; c++)
        print_bash_options(out, *c);
    fputs("        esac; else case $command in\n", out);
    for (const cli_command *const *c = cli_commands; *c != NULL; c++)
        print_bash_places(out, *c);
    fputs("        esac; fi ;;\n    esac\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
          "    if [ $files -eq 1 ]; then\n"
          "        local found\n"
          "        mapfile -t found < <(compgen -f -- \"$cur\")\n"
          "        COMPREPLY+=(\"${found[@]}\")\n"
          "        compopt -o filenames 2>/dev/null\n"
          "    fi\n    return 0\n}\ncomplete -F _gnnstream gnnstream\n", out);
}

/* ---- zsh ----------------------------------------------------------------- */

#define ZSH_SPECIAL ":[]\\"

static void print_zsh_values(FILE *out, values v, const char *choices)
{
    fputc(':', out);
    if (v == VALUES_FILES)
        fputs("_files", out);
    if (v == VALUES_BOTH)
        fputs("_gnnstream_model", out);
    if (v != VALUES_WORDS)
        return;
    fputc('(', out);
    print_choices(out, choices);
    fputc(')', out);
}

static void print_zsh_command(FILE *out, const cli_command *c)
{
    fprintf(out, "    ('%s') _arguments '(- *)--help[the options that most runs need]' \\\n"
                 "        '(- *)--help-all[all options]'", c->name);
    for (const cli_group *g = c->group; g->title != NULL; g++)
        for (const cli_option *o = g->option; o->name != NULL; o++) {
            fprintf(out, " \\\n        '%s%s[", o->name, o->value == NULL || o->name[1] != '-' ? "" : "=");
            print_quoted(out, o->help, strlen(o->help), ZSH_SPECIAL);
            fputc(']', out);
            if (o->value != NULL) {
                fputc(':', out);
                print_quoted(out, o->value, strlen(o->value), ZSH_SPECIAL);
                print_zsh_values(out, values_of(o), o->value);
            }
            fputc('\'', out);
        }
    for (int i = 0; i < CLI_PLACES && c->place[i] != NULL; i++) {
        fprintf(out, " \\\n        '%d:%s", i + 1, c->place[i][0] == '[' ? ":" : "");
        print_quoted(out, c->place[i], strlen(c->place[i]), ZSH_SPECIAL);
        print_zsh_values(out, values_of_place(c->place[i]), "rmat|sbm");
        fputc('\'', out);
    }
    fputs(" ;;\n", out);
}

static void print_zsh(FILE *out)
{
    fprintf(out, "#compdef gnnstream\n"
                 "_gnnstream_model() { _alternative 'zoo:built-in model:(%s)' 'file:text of a model:_files' }\n",
            cli_zoo);
    fputs("_gnnstream() {\n    local command=$words[2]\n    local -a commands=(\n", out);
    for (const cli_command *const *c = cli_commands; *c != NULL; c++)
        if (strchr((*c)->name, ' ') == NULL) {
            fprintf(out, "        '%s:", (*c)->name);
            print_quoted(out, (*c)->summary, strcspn((*c)->summary, "\n"), ZSH_SPECIAL);
            fputs("'\n", out);
        }
    fputs("        'bench:Measures this machine, or training on it.' 'help:Shows a command'\\''s options.')\n"
          "    if (( CURRENT == 2 )) || [[ $command == help ]]; then _describe command commands; return; fi\n"
          "    shift words; (( CURRENT-- ))\n"
          "    if [[ $command == bench ]]; then\n"
          "        if (( CURRENT == 2 )); then _values bench limits train; return; fi\n"
          "        command=\"bench $words[2]\"; shift words; (( CURRENT-- ))\n    fi\n"
          "    case $command in\n", out);
    for (const cli_command *const *c = cli_commands; *c != NULL; c++)
        print_zsh_command(out, *c);
    fputs("    esac\n}\n_gnnstream \"$@\"\n", out);
}

/* ---- fish ---------------------------------------------------------------- */

static void print_fish_command(FILE *out, const cli_command *c)
{
    const values first = c->place[0] == NULL ? VALUES_NONE : values_of_place(c->place[0]);

    fprintf(out, "complete -c gnnstream -n '__gnnstream_in %s' -l help-all -d 'all options'\n", c->name);
    for (const cli_group *g = c->group; g->title != NULL; g++)
        for (const cli_option *o = g->option; o->name != NULL; o++) {
            const values v = values_of(o);
            const bool is_long = o->name[1] == '-';
            fprintf(out, "complete -c gnnstream -n '__gnnstream_in %s' -%c %s", c->name, is_long ? 'l' : 's',
                    o->name + 1 + is_long);
            if (o->value != NULL)
                fputs(v == VALUES_FILES || v == VALUES_BOTH ? " -r -F" : " -x", out);
            if (v == VALUES_WORDS || v == VALUES_BOTH) {
                fputs(" -a '", out);
                print_words(out, v, o->value);
                fputc('\'', out);
            }
            fputs(" -d '", out);
            print_quoted(out, o->help, strlen(o->help), "");
            fputs("'\n", out);
        }
    if (first == VALUES_NONE)
        return;
    fprintf(out, "complete -c gnnstream -n '__gnnstream_in %s' -F", c->name);
    if (first != VALUES_FILES) {
        fputs(" -a '", out);
        print_words(out, first, "rmat|sbm");
        fputc('\'', out);
    }
    fputc('\n', out);
}

static void print_fish(FILE *out)
{
    fputs("# fish completion for gnnstream\n"
          "function __gnnstream_in\n"
          "    set -l words (commandline -opc)\n"
          "    set -e words[1]\n"
          "    test (count $words) -ge (count $argv); and test \"$words[1..\"(count $argv)\"]\" = \"$argv\"\n"
          "end\n"
          "complete -c gnnstream -f\n"
          "complete -c gnnstream -n __fish_use_subcommand -a bench -d 'Measures this machine, or training on it.'\n"
          "complete -c gnnstream -n __fish_use_subcommand -a help -d 'Shows the options of a command.'\n"
          "complete -c gnnstream -n '__gnnstream_in bench; and test (count (commandline -opc)) -eq 2' "
          "-a 'limits train'\n", out);
    for (const cli_command *const *c = cli_commands; *c != NULL; c++) {
        if (strchr((*c)->name, ' ') == NULL) {
            fprintf(out, "complete -c gnnstream -n __fish_use_subcommand -a %s -d '", (*c)->name);
            print_quoted(out, (*c)->summary, strcspn((*c)->summary, "\n"), "");
            fputs("'\n", out);
            fprintf(out, "complete -c gnnstream -n '__gnnstream_in help' -a %s\n", (*c)->name);
        }
        print_fish_command(out, *c);
    }
}

bool cli_print_completion(FILE *out, const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        print_bash(out);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(out);
    else if (strcmp(shell, "fish") == 0)
        print_fish(out);
    else
        return false;
    return true;
}
