/* cli_parse.c - the words of a command line into a command's struct, and once more for people to copy. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* ---- the line once more -------------------------------------------------- */

#define LINE_BYTES 4096 /* as checkpoints keep */
#define LINE_WORDS 1024

static struct {
    const cli_command *command;
    int argc;
    char **argv;
} this_line;

static void remember(const cli_command *c, int argc, char **argv)
{
    this_line.command = c;
    this_line.argc = argc;
    this_line.argv = argv;
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

    fprintf(out, "gnnstream %s", this_line.command->name);
    for (int i = 0; i < this_line.argc; i++) {
        const char *const word = this_line.argv[i];
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
    for (int i = 0, behind = 0; i < this_line.argc; i++) {
        behind = behind || strcmp(this_line.argv[i], "--") == 0;
        if (behind)
            print_word(out, this_line.argv[i]);
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
    fprintf(out, " && gnnstream %s", this_line.command->name);
    for (int i = 0; i < this_line.argc; i++)
        print_word(out, this_line.argv[i]);
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

/* The words behind the command's of what cli_whole_line() was, of the same command, and then those of the command line;
 * of two of one option the later counts. False where it is no such line, and `folder` is "". Both live as long as the
 * program. */
static bool recall_line(const cli_command *c, const char *line, int *argc, char ***argv, const char **folder)
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
    if (*line != '\0' || this_line.argc > LINE_WORDS)
        return false;
    /* behind "--" there are no options */
    for (end = 0; end < words && strcmp(all[end], "--") != 0; end++) {
    }
    memmove(all + end + this_line.argc, all + end, (size_t)(words - end) * sizeof(*all));
    memcpy(all + end, this_line.argv, (size_t)this_line.argc * sizeof(*all));
    *argc = words + this_line.argc;
    *argv = all;
    remember(c, *argc, all);
    return true;
}

/* ---- values and options -------------------------------------------------- */

/* The words of a command line into a command's struct. */

#define MOST_OPTIONS 64
static const char *config_path; /* of --config; NULL: none */
static char config_place[512];  /* "FILE:LINE:COLUMN: " while an option of it gets its value, else "" */

#define ERROR_BYTES 4096 /* the library's have 2048, and options are not much longer than fields */

static bool silent;

void cli_be_silent(void) { silent = true; }

int cli_fail(const cli_command *c, int status, const char *fmt, ...)
{
    char line[2 * ERROR_BYTES];
    va_list args;

    if (silent)
        return status;
    cli_progress_end();
    const int n = snprintf(line, sizeof(line), "gnnstream%s%s: %s", c == NULL ? "" : " ", c == NULL ? "" : c->name,
                           config_place);
    va_start(args, fmt);
    vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, args);
    va_end(args);
    for (char *p = line; *p != '\0'; p++) /* words of a command line may hold anything; one error is one line */
        if (iscntrl((unsigned char)*p))
            *p = '?';
    fprintf(stderr, "%s\n", line);
    return status;
}

int cli_result(const cli_command *c, gs_status st)
{
    char text[ERROR_BYTES];

    if (st == GS_OK)
        return CLI_DONE;
    const char *const place = gs_last_error_place();
    cli_fail(c, CLI_FAILED, "%s", cli_name_options(text, sizeof(text), gs_last_error()));
    if (*place != '\0' && !silent)
        fprintf(stderr, "%s\n", place);
    return st == GS_EINVAL ? CLI_USAGE : CLI_FAILED;
}

/* ---- the nearest name ---------------------------------------------------- */

#define WORD_MOST 40

/* Levenshtein's distance, a swap of neighbours counting one. */
static size_t edit_distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    size_t row[3][WORD_MOST + 1];

    if (n > WORD_MOST || m > WORD_MOST)
        return WORD_MOST;
    for (size_t j = 0; j <= m; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *const now = row[i % 3], *const last = row[(i + 2) % 3], *const before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *cli_nearest(const char *word, const char *const *list)
{
    const size_t length = strlen(word + strspn(word, "-"));
    const char *best = NULL;
    size_t best_distance = 3; /* at most 2, and less than half of the word */

    for (; *list != NULL; list++) {
        const size_t d = edit_distance(word, *list);
        if (d < best_distance && 2 * d < length) {
            best = *list;
            best_distance = d;
        }
    }
    return best;
}

static int unknown_option(const cli_command *c, const char *name)
{
    const char *list[MOST_OPTIONS + 1];
    const char *near;
    size_t n = 0;

    for (const cli_group *g = c->group; g->title != NULL; g++)
        for (const cli_option *o = g->option; o->name != NULL && n < MOST_OPTIONS; o++)
            list[n++] = o->name;
    list[n] = NULL;
    near = cli_nearest(name, list);
    const size_t dashes = config_place[0] != '\0' ? 2 : 0; /* which a file of options does not write */
    return cli_fail(c, CLI_USAGE, "unknown option %s%s%s; see gnnstream help %s", name + dashes,
                    near == NULL ? "" : "; did you mean ", near == NULL ? "" : near + dashes, c->name);
}

/* ---- values -------------------------------------------------------------- */

/* Digits alone: strtoull() would take " -3" and wrap it. */
static bool parse_integer(uint64_t *out, const char *text)
{
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static int set_integer(const cli_command *c, const cli_option *o, void *field, const char *text)
{
    const bool wide = o->kind == CLI_LONG;
    const uint64_t most = o->most != 0 ? o->most : wide ? UINT64_MAX : UINT32_MAX;
    uint64_t v;

    if (o->kind == CLI_AUTO && strcmp(text, "auto") == 0)
        v = 0;
    else if (!parse_integer(&v, text) || v < o->least || v > most)
        return cli_fail(c, CLI_USAGE, "%s %s: must be a whole number from %u to %lu%s", o->name, text, o->least, most,
                        o->kind == CLI_AUTO ? ", or auto" : "");
    if (wide)
        *(uint64_t *)field = v;
    else
        *(uint32_t *)field = (uint32_t)v;
    return CLI_DONE;
}

static int set_real(const cli_command *c, const cli_option *o, double *field, const char *text)
{
    char *end;
    const double v = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(v))
        return cli_fail(c, CLI_USAGE, "%s %s: must be a number", o->name, text);
    *field = v; /* its range is the library's to check */
    return CLI_DONE;
}

static int set_time(const cli_command *c, const cli_option *o, double *field, const char *text)
{
    static const struct {
        const char *name;
        double seconds;
    } unit[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
    char *end;
    const double v = strtod(text, &end);

    for (size_t i = 0; end != text && isfinite(v) && v >= 0 && i < sizeof(unit) / sizeof(unit[0]); i++) {
        if (strcmp(end, unit[i].name) != 0)
            continue;
        *field = v * unit[i].seconds;
        return CLI_DONE;
    }
    return cli_fail(c, CLI_USAGE, "%s %s: must be a time such as 90s, 10m or 2h", o->name, text);
}

static int set_size(const cli_command *c, const cli_option *o, uint64_t *field, const char *text)
{
    uint64_t v;

    if (gs_size_parse(&v, text) != GS_OK || v == 0)
        return cli_fail(c, CLI_USAGE, "%s %s: must be a size such as 512M or 1.5G", o->name, text);
    *field = v;
    return CLI_DONE;
}

/* True where `text` is one of the words of "a|b|c". */
static bool is_choice(const char *words, const char *text)
{
    const size_t n = strlen(text);

    for (const char *at = words; n != 0 && at != NULL; at = strchr(at, '|') == NULL ? NULL : strchr(at, '|') + 1)
        if (strncmp(at, text, n) == 0 && (at[n] == '|' || at[n] == '\0'))
            return true;
    return false;
}

static int set_choice(const cli_command *c, const cli_option *o, const char **field, const char *text)
{
    if (!is_choice(o->value, text))
        return cli_fail(c, CLI_USAGE, "%s %s: must be one of %s", o->name, text, o->value);
    *field = text;
    return CLI_DONE;
}

static int set_option(const cli_command *c, const cli_option *o, char *options, const char *text)
{
    void *const field = options + o->field;

    switch (o->kind) {
    case CLI_FLAG:
        *(bool *)field = true;
        return CLI_DONE;
    case CLI_COUNT:
    case CLI_AUTO:
    case CLI_LONG:
        return set_integer(c, o, field, text);
    case CLI_REAL:
    case CLI_ABOVE:
        return set_real(c, o, field, text);
    case CLI_TIME:
        return set_time(c, o, field, text);
    case CLI_SIZE:
        return set_size(c, o, field, text);
    case CLI_TEXT:
    case CLI_PATH:
        if (*text == '\0')
            return cli_fail(c, CLI_USAGE, "%s: its value is empty", o->name);
        *(const char **)field = text;
        return CLI_DONE;
    case CLI_CHOICE:
        return set_choice(c, o, field, text);
    case CLI_CONFIG:
        config_path = text;
        return CLI_DONE;
    }
    return CLI_USAGE; /* no other kind */
}

/* ---- the line ------------------------------------------------------------ */

static const cli_option *find_option(const cli_command *c, const char *name, size_t length)
{
    for (const cli_group *g = c->group; g->title != NULL; g++)
        for (const cli_option *o = g->option; o->name != NULL; o++)
            if (strncmp(o->name, name, length) == 0 && o->name[length] == '\0')
                return o;
    return NULL;
}

/* Takes argv[*at], and its value after "=" or in the next word. */
static int take_option(const cli_command *c, char *options, int argc, char **argv, int *at)
{
    char *const word = argv[*at], *const equals = strchr(word, '=');
    const size_t length = equals == NULL ? strlen(word) : (size_t)(equals - word);
    const cli_option *const o = find_option(c, word, length);
    const char *text = equals == NULL ? NULL : equals + 1;

    if (o == NULL) {
        word[length] = '\0';
        return unknown_option(c, word);
    }
    if (o->value == NULL && text != NULL)
        return cli_fail(c, CLI_USAGE, "%s takes no value", o->name);
    if (o->value != NULL && text == NULL) {
        if (*at + 1 == argc || strncmp(argv[*at + 1], "--", 2) == 0)
            return cli_fail(c, CLI_USAGE, "%s needs a value: %s", o->name, o->value);
        text = argv[++*at];
    }
    return set_option(c, o, options, text);
}

static int check_places(const cli_command *c, size_t given)
{
    for (size_t i = given; i < CLI_PLACES && c->place[i] != NULL && c->place[i][0] != '['; i++)
        return cli_fail(c, CLI_USAGE, "%s is missing; see gnnstream help %s", c->place[i], c->name);
    return CLI_DONE;
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "--help-all") == 0;
}

#define HELPED (-1) /* no exit status: help was asked for, and is printed */

static int take_words(const cli_command *c, char *options, int argc, char **argv, const char **place, size_t *places)
{
    bool only_places = false;
    int status;

    *places = 0;
    for (int i = 0; i < argc; i++) {
        if (!only_places && asks_for_help(argv[i])) {
            cli_print_help(stdout, c, strcmp(argv[i], "--help-all") == 0);
            return HELPED;
        }
        if (!only_places && strcmp(argv[i], "--") == 0) {
            only_places = true;
        } else if (!only_places && argv[i][0] == '-' && argv[i][1] != '\0') {
            if ((status = take_option(c, options, argc, argv, &i)) != CLI_DONE)
                return status;
        } else if (*places == CLI_PLACES || c->place[*places] == NULL) {
            return cli_fail(c, CLI_USAGE, "%s: one argument too many; see gnnstream help %s", argv[i], c->name);
        } else {
            place[(*places)++] = argv[i];
        }
    }
    return CLI_DONE;
}

/* ---- a file of options --------------------------------------------------- */

static int take_flag(const cli_command *c, const cli_option *o, char *options, const cli_config_entry *e)
{
    const bool yes = strcmp(e->text, "true") == 0;

    if (e->form != CLI_CONFIG_PLAIN || (!yes && strcmp(e->text, "false") != 0))
        return cli_fail(c, CLI_USAGE, "%s %s: must be true or false", e->key, e->text);
    *(bool *)(options + o->field) = yes;
    return CLI_DONE;
}

static int take_entry(const cli_command *c, char *options, const cli_config_entry *e)
{
    char name[256];

    snprintf(name, sizeof(name), "--%s", e->key);
    const cli_option *const o = find_option(c, name, strlen(name));
    if (o == NULL)
        return unknown_option(c, name);
    if (o->kind == CLI_CONFIG)
        return cli_fail(c, CLI_USAGE, "config: a file of options names no other");
    if (e->form == CLI_CONFIG_PAIRS && strcmp(e->key, "set") != 0)
        return cli_fail(c, CLI_USAGE, "%s: takes no NAME: NUMBER; that is for set", e->key);
    return o->kind == CLI_FLAG ? take_flag(c, o, options, e) : set_option(c, o, options, e->text);
}

/* Over the defaults; the words of the command line come after. Texts stay until the program ends. */
static int take_config(const cli_command *c, char *options)
{
    static cli_config config;
    int status = CLI_DONE;

    if (!cli_config_read(&config, config_path))
        status = cli_fail(c, CLI_USAGE, "%s", config.error);
    for (size_t k = 0; k < config.entries && status == CLI_DONE; k++) {
        const cli_config_entry *const e = &config.entry[k];
        snprintf(config_place, sizeof(config_place), "%s:%zu:%zu: ", config_path, e->line, e->column);
        status = take_entry(c, options, e);
    }
    config_place[0] = '\0';
    if (status != CLI_DONE)
        cli_config_free(&config);
    return status;
}

/* The defaults, what a file of options says, and the words over both. */
static int take_all(const cli_command *c, char *options, int argc, char **argv, const char **place, size_t *places)
{
    int status;

    config_path = NULL;
    c->defaults(options);
    status = take_words(c, options, argc, argv, place, places);
    if (status != CLI_DONE || config_path == NULL)
        return status;
    c->defaults(options);
    if ((status = take_config(c, options)) == CLI_DONE)
        status = take_words(c, options, argc, argv, place, places);
    return status;
}

/* The words of an earlier command line, and these over them. */
static int take_recalled(const cli_command *c, char *options, const char *line, const char **place, size_t *places)
{
    char here[PATH_MAX];
    const char *folder;
    char **argv;
    int argc;

    if (!recall_line(c, line, &argc, &argv, &folder))
        return cli_fail(c, CLI_FAILED, "how the run was begun cannot be read from its checkpoint (%s); give %s and the "
                                       "options again", line, c->place[0]);
    if (getcwd(here, sizeof(here)) == NULL || strcmp(here, folder) != 0)
        return cli_fail(c, CLI_FAILED, "the run was begun in the folder %s, where its paths begin; go on there, or "
                                       "give %s and the options again", folder, c->place[0]);
    return take_all(c, options, argc, argv, place, places);
}

int cli_run(const cli_command *c, int argc, char **argv)
{
    _Alignas(16) char options[CLI_OPTIONS_BYTES] = {0};
    const char *place[CLI_PLACES] = {NULL}, *line;
    size_t places = 0;
    int status;

    if (c->options_bytes > sizeof(options))
        abort(); /* CLI_OPTIONS_BYTES is to be raised */
    remember(c, argc, argv);
    status = take_all(c, options, argc, argv, place, &places);
    if (status == CLI_DONE && places == 0 && c->recall != NULL && (line = c->recall(c, options, &status)) != NULL)
        status = take_recalled(c, options, line, place, &places);
    if (status != CLI_DONE)
        return status == HELPED ? CLI_DONE : status;
    if ((status = check_places(c, places)) != CLI_DONE)
        return status;
    return c->run(c, options, place);
}

const char *cli_config_name(void) { return config_path; }

const cli_option cli_config_options[] = {
    {"--config", CLI_CONFIG, 0, NULL, "FILE.yaml",
     "a mapping of these options' names to values;\nwhat stands on the command line comes before", NULL, 0, 0},
    {0},
};
