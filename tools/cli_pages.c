/* cli_pages.c - manual pages, in mdoc(7), and completions for bash, zsh and fish, from the tables that parsing and help
 * read. The build writes them to files. */
#include <string.h>

#include "cli.h"

/* ---- manual pages -------------------------------------------------------- */

#define DATE "November 22, 2026" /* of the pages' words, not of the build: builds repeat to the byte */

#define WIDTH 78

/* One character of running text: what roff would take as its own is escaped. */
static void put(FILE *out, char c, bool line_begins)
{
    if (line_begins && (c == '.' || c == '\''))
        fputs("\\&", out);
    if (c == '\\')
        fputs("\\e", out);
    else
        fputc(c, out);
}

/* Running text up to `end`, a line a sentence, as mdoc wants it, and none longer than WIDTH. */
static void print_part(FILE *out, const char *text, const char *end)
{
    size_t column = 0;

    for (const char *c = text; c < end; c++) {
        const bool blank = *c == ' ' || *c == '\n';
        const bool sentence = blank && c > text && strchr(".:!?", c[-1]) != NULL;
        if (blank && (sentence || column + 1 + strcspn(c + 1, " \n") > WIDTH)) {
            if (column > 0)
                fputc('\n', out);
            column = 0;
        } else if (!blank || column > 0) {
            put(out, blank ? ' ' : *c, column == 0);
            column++;
        }
    }
    if (column > 0)
        fputc('\n', out);
}

static void print_text(FILE *out, const char *text) { print_part(out, text, text + strlen(text)); }

/* Words of a macro's line: a hyphen is one to type. */
static void print_literal(FILE *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (*c == '-')
            fputs("\\-", out);
        else
            put(out, *c, false);
}

/* " Ar STORE Oo Ar TRACE Oc", on a macro's line */
static void print_places(FILE *out, const cli_command *c)
{
    for (int i = 0; i < CLI_PLACES && c->place[i] != NULL; i++) {
        const bool optional = c->place[i][0] == '[';
        const int length = (int)strlen(c->place[i]) - 2 * optional;
        fprintf(out, "%s Ar %.*s%s", optional ? " Oo" : "", length, c->place[i] + optional, optional ? " Oc" : "");
    }
    fputc('\n', out);
}

/* "gnnstream-bench-limits" */
static void print_page_name(FILE *out, const cli_command *c)
{
    fputs("gnnstream-", out);
    for (const char *at = c->name; *at != '\0'; at++)
        fputc(*at == ' ' ? '-' : *at, out);
}

static void print_head(FILE *out, const cli_command *c)
{
    const char *const name = c == NULL ? "" : c->name;

    fprintf(out, ".Dd %s\n.Dt GNNSTREAM", DATE);
    for (const char *at = name; *at != '\0'; at++) {
        if (at == name || *at == ' ')
            fputc('-', out);
        if (*at != ' ')
            fputc(*at - 'a' + 'A', out);
    }
    fputs(" 1\n.Os\n.Sh NAME\n", out);
}

static void print_option(FILE *out, const cli_option *o, const char *options)
{
    const char *const given = cli_default_text(o, options);

    fputs(".It Fl ", out);
    print_literal(out, o->name + 1); /* .Fl gives the first dash */
    if (o->value != NULL) {
        fputs(" Ar ", out);
        print_literal(out, o->value);
    }
    fputc('\n', out);
    print_text(out, o->help);
    if (*given == '\0')
        return;
    fputs("(default: ", out);
    print_literal(out, given);
    fputs(")\n", out);
}

static void print_options(FILE *out, const cli_command *c)
{
    _Alignas(16) char options[CLI_OPTIONS_BYTES] = {0};

    c->defaults(options);
    fputs(".Sh OPTIONS\nSizes take K, M, G (powers of 1024).\n", out);
    for (const cli_group *g = c->group; g->title != NULL; g++) {
        fputs(".Ss ", out);
        print_text(out, g->title);
        fputs(".Bl -tag -width Ds\n", out);
        for (const cli_option *o = g->option; o->name != NULL; o++)
            print_option(out, o, options);
        fputs(".El\n", out);
    }
}

static void print_exit_status(FILE *out)
{
    fputs(".Sh EXIT STATUS\n.Bl -tag -width Ds\n.It 0\nIt is done.\n.It 1\nIt failed, or was interrupted; "
          "one line on the standard error says why.\n.It 2\nWrong usage: an option, an argument or their values.\n"
          ".El\n", out);
}

static void print_command_page(FILE *out, const cli_command *c)
{
    const size_t first = strcspn(c->summary, "\n");
    const size_t bare = first - (c->summary[first - 1] == '.');

    print_head(out, c);
    fputs(".Nm ", out);
    print_page_name(out, c);
    fprintf(out, "\n.Nd %c%.*s\n.Sh SYNOPSIS\n.Nm gnnstream Cm %s%s", c->summary[0] - 'A' + 'a', (int)bare - 1,
            c->summary + 1, c->name, c->group->title != NULL ? " Oo Ar OPTIONS Oc" : "");
    print_places(out, c);
    fputs(".Sh DESCRIPTION\n", out);
    print_text(out, c->summary);
    if (c->group->title != NULL)
        print_options(out, c);
    print_exit_status(out);
    fputs(".Sh SEE ALSO\n.Xr gnnstream 1\n", out);
}

static void print_commands(FILE *out)
{
    fputs(".Sh COMMANDS\nEach has a page of its own.\n.Bl -tag -width Ds\n", out);
    for (const cli_command *const *c = cli_commands; *c != NULL; c++) {
        fprintf(out, ".It Cm %s", (*c)->name);
        print_places(out, *c);
        print_part(out, (*c)->summary, (*c)->summary + strcspn((*c)->summary, "\n"));
    }
    fputs(".It Cm help Oo Fl \\-all Oc Ar COMMAND | Cm environment\n"
          "Shows a command's options: those that most runs need, or all.\n.El\n", out);
}

static void print_environment_section(FILE *out)
{
    fputs(".Sh ENVIRONMENT\n.Bl -tag -width Ds\n", out);
    for (const cli_variable *v = cli_environment; v->name != NULL; v++) {
        fprintf(out, ".It Ev %s\n", v->name);
        print_text(out, v->help);
    }
    fputs(".El\n", out);
}

/* The command that follows `after` in the alphabet; NULL: there is none. */
static const cli_command *next_name(const cli_command *after)
{
    const cli_command *best = NULL;

    for (const cli_command *const *c = cli_commands; *c != NULL; c++)
        if ((after == NULL || strcmp((*c)->name, after->name) > 0) &&
            (best == NULL || strcmp((*c)->name, best->name) < 0))
            best = *c;
    return best;
}

static void print_main_page(FILE *out)
{
    print_head(out, NULL);
    fputs(".Nm gnnstream\n.Nd trains graph neural networks on whole graphs larger than memory\n"
          ".Sh SYNOPSIS\n.Nm\n.Ar COMMAND\n.Op Ar OPTIONS\n.Ar ...\n"
          ".Sh DESCRIPTION\n.Nm\n"
          "makes a store of a graph once, and trains models on it as often as is wanted.\n"
          "What does not fit in the two memory budgets streams from the disk.\n",
          out);
    print_commands(out);
    fputs(".Pp\nCtrl-C, SIGTERM or SIGHUP end what is under way and clear it away (status 1).\n"
          "A second one ends the program at once.\n", out);
    print_environment_section(out);
    print_exit_status(out);
    fputs(".Sh EXAMPLES\n.Bd -literal -offset indent\n"
          "gnnstream generate sbm graph \\-\\-vertices 200000 \\-\\-edges 4000000\n"
          "gnnstream partition graph store \\-\\-memory 1G\n"
          "gnnstream train store \\-\\-model gcn \\-\\-host\\-memory 64M \\-\\-logits logits.npy\n"
          ".Ed\n.Sh SEE ALSO\n", out);
    for (const cli_command *c = next_name(NULL); c != NULL; c = next_name(c)) {
        fputs(".Xr ", out);
        print_page_name(out, c);
        fprintf(out, " 1%s\n", next_name(c) == NULL ? "" : " ,");
    }
}

void cli_print_man(FILE *out, const cli_command *c)
{
    if (c == NULL)
        print_main_page(out);
    else
        print_command_page(out, c);
}

/* ---- completions --------------------------------------------------------- */

/* Completions for bash, zsh and fish, from the tables that parsing and help read. The build writes
 * them to files. */

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
