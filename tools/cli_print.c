/* cli_print.c - words for people: errors with options in them, help from the tables, numbers, JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ---- fields as options --------------------------------------------------- */

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

/* ---- words for people ---------------------------------------------------- */

/* Help from the tables, and numbers for people and for JSON. */

#define HELP_COLUMN 30

/* ---- buffers used in turn ------------------------------------------------ */

#define TEXT_BYTES 512

#define BUFFERS 8

static char *next_buffer(void)
{
    static char buffer[BUFFERS][TEXT_BYTES];
    static unsigned turn;
    return buffer[turn++ % BUFFERS];
}

/* One of `bytes` bytes, for text of any length; NULL: no memory. */
static char *next_long_buffer(size_t bytes)
{
    static char *buffer[BUFFERS];
    static unsigned turn;
    char **const own = &buffer[turn++ % BUFFERS], *const grown = realloc(*own, bytes);

    if (grown != NULL)
        *own = grown;
    return grown;
}

const char *cli_size(uint64_t bytes) { return gs_size_format(next_buffer(), TEXT_BYTES, bytes); }

const char *cli_count(uint64_t n)
{
    char digits[24];
    char *const out = next_buffer();
    size_t at = 0;
    const size_t length = (size_t)snprintf(digits, sizeof(digits), "%lu", n);

    for (size_t i = 0; i < length; i++) {
        if (i != 0 && (length - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

const char *cli_json_text(const char *text)
{
    char *const out = next_long_buffer(6 * strlen(text) + 3); /* each byte may be \u00XX */
    size_t at = 0;

    if (out == NULL)
        return "null";
    out[at++] = '"';
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            at += (size_t)snprintf(out + at, 3, "\\%c", *c);
        else if (*c < ' ')
            at += (size_t)snprintf(out + at, 7, "\\u%04x", *c);
        else
            out[at++] = (char)*c;
    }
    out[at++] = '"';
    out[at] = '\0';
    return out;
}

const char *cli_json_real(double v)
{
    char *const out = next_buffer();

    if (!isfinite(v))
        return "null";
    snprintf(out, TEXT_BYTES, "%.9g", v);
    return out;
}

/* ---- help ---------------------------------------------------------------- */

const char *cli_default_text(const cli_option *o, const char *options)
{
    const void *const field = options + o->field;
    char *const out = next_buffer();
    uint64_t integer = 0;

    switch (o->kind) {
    case CLI_FLAG:
    case CLI_CONFIG:
        return "";
    case CLI_TEXT:
    case CLI_PATH:
    case CLI_CHOICE:
        if (*(const char *const *)field != NULL)
            return *(const char *const *)field;
        return o->unset == NULL ? "" : o->unset;
    case CLI_TIME:
        snprintf(out, TEXT_BYTES, "%g s", *(const double *)field);
        return out;
    case CLI_REAL:
    case CLI_ABOVE:
        snprintf(out, TEXT_BYTES, "%g", *(const double *)field);
        return out;
    case CLI_COUNT:
    case CLI_AUTO:
        integer = *(const uint32_t *)field;
        break;
    case CLI_LONG:
    case CLI_SIZE:
        integer = *(const uint64_t *)field;
        break;
    }
    if (integer == 0 && o->unset != NULL)
        return o->unset;
    if (o->kind == CLI_SIZE)
        return cli_size(integer);
    snprintf(out, TEXT_BYTES, "%lu", integer);
    return out;
}

/* Lines but the first begin where the first does. */
static void print_indented(FILE *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        fputc(*c, out);
        if (*c == '\n')
            fprintf(out, "%*s", HELP_COLUMN, "");
    }
}

static void print_option(FILE *out, const cli_option *o, const char *options)
{
    char left[128];
    const char *const given = cli_default_text(o, options);

    snprintf(left, sizeof(left), "  %s%s%s", o->name, o->value == NULL ? "" : " ", o->value == NULL ? "" : o->value);
    fprintf(out, "%-*s", HELP_COLUMN, left);
    if (strlen(left) >= HELP_COLUMN)
        fprintf(out, "\n%*s", HELP_COLUMN, "");
    print_indented(out, o->help);
    const bool bounded = o->most != 0 && (o->kind == CLI_COUNT || o->kind == CLI_AUTO); /* reals: in words */
    if (bounded && o->least == 0)
        fprintf(out, ", at most %u", o->most);
    else if (bounded)
        fprintf(out, ", %u to %u", o->least, o->most);
    if (*given != '\0')
        fprintf(out, " (default: %s)", given);
    fputc('\n', out);
}

static bool is_common(const cli_command *c, const cli_option *o)
{
    for (const char *const *name = c->common; name != NULL && *name != NULL; name++)
        if (strcmp(*name, o->name) == 0)
            return true;
    return c->common == NULL;
}

/* Returns how many options were left out. */
static unsigned print_group(FILE *out, const cli_command *c, const cli_group *g, bool all, const char *options)
{
    unsigned left_out = 0, printed = 0;

    for (const cli_option *o = g->option; o->name != NULL; o++) {
        if (!all && !is_common(c, o)) {
            left_out++;
            continue;
        }
        if (printed++ == 0)
            fprintf(out, "\n%s:\n", g->title);
        print_option(out, o, options);
    }
    return left_out;
}

void cli_print_help(FILE *out, const cli_command *c, bool all)
{
    _Alignas(16) char options[CLI_OPTIONS_BYTES] = {0};
    unsigned left_out = 0;

    c->defaults(options);
    fprintf(out, "Usage: gnnstream %s", c->name);
    for (int i = 0; i < CLI_PLACES && c->place[i] != NULL; i++)
        fprintf(out, " %s", c->place[i]);
    fprintf(out, "%s\n\n%s\n", c->group->title == NULL ? "" : " [OPTIONS]", c->summary);
    for (const cli_group *g = c->group; g->title != NULL; g++)
        left_out += print_group(out, c, g, all, options);
    if (left_out > 0)
        fprintf(out, "\n%u more options: gnnstream %s --help-all\n", left_out, c->name);
}

void cli_print_environment(FILE *out)
{
    fputs("What gnnstream takes from the environment:\n", out);
    for (const cli_variable *v = cli_environment; v->name != NULL; v++) {
        fprintf(out, "\n  %s\n      ", v->name);
        for (const char *at = v->help; *at != '\0'; at++)
            fprintf(out, "%c%s", *at, *at == '\n' ? "      " : "");
        fputc('\n', out);
    }
}

/* Length of the first line, its full stop excluded. */
static size_t first_line(const char *text)
{
    const size_t n = strcspn(text, "\n");
    return n > 0 && text[n - 1] == '.' ? n - 1 : n;
}

void cli_print_overview(FILE *out)
{
    fprintf(out, "gnnstream %s: trains graph neural networks on whole graphs larger than memory\n\n"
                 "Usage: gnnstream COMMAND ...\n\n",
            gs_version());
    for (const cli_command *const *c = cli_commands; *c != NULL; c++) {
        char left[128];
        int n = snprintf(left, sizeof(left), "%s", (*c)->name);
        for (int i = 0; i < CLI_PLACES && (*c)->place[i] != NULL; i++)
            n += snprintf(left + n, sizeof(left) - (size_t)n, " %s", (*c)->place[i]);
        fprintf(out, "  %-26s %.*s\n", left, (int)first_line((*c)->summary), (*c)->summary);
    }
    fprintf(out,
            "\nSizes take K, M, G (powers of 1024). gnnstream help COMMAND shows the options that most runs need,\n"
            "COMMAND --help-all all of them, gnnstream help environment what is taken from the environment.\n"
            "Exit status: 0 done, 1 failed, 2 wrong usage. Ctrl-C, SIGTERM or SIGHUP: what is under way is\n"
            "ended and cleared away (status 1); a second one ends the program at once.\n");
}

/* ---- warnings ------------------------------------------------------------ */

void cli_say(void *kind, const char *line)
{
    char text[2048];

    fprintf(stderr, "gnnstream: %s%s\n", kind == NULL ? "" : (const char *)kind,
            cli_name_options(text, sizeof(text), line));
}

void cli_warn(void *context, const char *line)
{
    (void)context;
    cli_progress_end();
    cli_say("warning: ", line);
}

/* ---- what is taken from the environment ---------------------------------- */

/* What the program takes from the environment. A test compares it with what the sources ask for. */

const cli_variable cli_environment[] = {
    {"GS_ISA", "The newest instruction set that the cpu device uses: generic, avx2 or avx512.\n"
               "Results differ in their last bits between them. Unset: what the processor has."},
    {"GS_IO", "How files are read: uring or threads. Unset: io_uring where the system has it."},
    {"PATH", "Where the python3 is whose packages CUDA's libraries may be among, as pip installs them."},
    {"XDG_CACHE_HOME, HOME",
     "What was measured of this machine is kept in $XDG_CACHE_HOME/gnnstream, else in\n"
     "$HOME/.cache/gnnstream; without either (absolute) path it is forgotten."},
    {"GS_CUDA_CACHE", "Folder for compiled kernels of GPUs. Unset: cuda in the folder above."},
    {"GS_CUDA_PORTION_EDGES", "Edges that one launch on a GPU takes at most. For tests; unset: by the GPU's memory."},
    {"OMP_WAIT_POLICY, GOMP_SPINCOUNT",
     "How threads wait for each other. Where neither is set, the program starts itself again with\n"
     "passive and 1000, which is fastest where other programs run beside it."},
    {"GS_LOG_EVERY", "Seconds between two lines about progress where stderr is no terminal. Unset: 60."},
    {"PMI_SIZE, PMI_RANK, OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_RANK, PMIX_RANK, HYDI_CONTROL_FD, PMI_FD",
     "By mpirun and srun: train and predict are one of several ranks."},
    {"TERM", "Progress is one line that is rewritten where stderr is a terminal and this is not dumb."},
    {NULL, NULL},
};
