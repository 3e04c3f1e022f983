/* cli_man.c - manual pages, in mdoc(7), from the tables that parsing and help read. The build writes them to files. */
#include <string.h>

#include "cli.h"

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
