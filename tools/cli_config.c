/* cli_config.c - a file of options in YAML, by libyaml: one mapping of names as on the command line, without dashes, to
 * words, lists of words (for those that commas part) or NAME: NUMBER (for --set). */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#define MOST_BYTES ((size_t)1 << 20)

typedef struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the last one, to be deleted */
    bool has_event;
    cli_config *out;
    const char *path;
    FILE *file;
} reader;

__attribute__((format(printf, 3, 4))) static bool wrong(reader *r, const yaml_mark_t *at, const char *fmt, ...)
{
    int n = snprintf(r->out->error, sizeof(r->out->error), "%s:%zu:%zu: ", r->path, at->line + 1, at->column + 1);
    va_list args;

    if (n < 0 || (size_t)n >= sizeof(r->out->error))
        return false;
    va_start(args, fmt);
    vsnprintf(r->out->error + n, sizeof(r->out->error) - (size_t)n, fmt, args);
    va_end(args);
    return false;
}

/* The next event; false where the file is no YAML. */
static bool next(reader *r)
{
    if (r->has_event)
        yaml_event_delete(&r->event);
    r->has_event = yaml_parser_parse(&r->parser, &r->event) != 0;
    if (r->has_event)
        return true;
    return wrong(r, &r->parser.problem_mark, "no YAML: %s",
                 r->parser.problem != NULL ? r->parser.problem : "memory is short");
}

/* Adds `text` to what the entry has, behind a comma where it has some. */
static bool append(reader *r, cli_config_entry *e, const char *text)
{
    const size_t had = e->text != NULL ? strlen(e->text) : 0, length = strlen(text);
    char *const longer = realloc(e->text, had + length + 2);

    if (longer == NULL)
        return wrong(r, &r->event.start_mark, "memory is short");
    if (e->text != NULL)
        longer[had] = ',';
    memcpy(longer + had + (e->text != NULL), text, length + 1);
    e->text = longer;
    return true;
}

/* Fit for a line of an error. */
static bool is_plain(const yaml_event_t *scalar)
{
    for (size_t k = 0; k < scalar->data.scalar.length; k++)
        if (scalar->data.scalar.value[k] < ' ' || scalar->data.scalar.value[k] == 127)
            return false;
    return true;
}

/* A word; where none is written, as in "lr:", there is no value. */
static bool take_word(reader *r, const cli_config_entry *e, const char **word)
{
    const char *const text = (const char *)r->event.data.scalar.value;
    const bool plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

    if (r->event.type != YAML_SCALAR_EVENT)
        return wrong(r, &r->event.start_mark, "%s: must be a word, a list of words, or NAME: NUMBER", e->key);
    if (!is_plain(&r->event))
        return wrong(r, &r->event.start_mark, "%s: its value has a line end or another control character", e->key);
    if (*text == '\0' || (plain && strcmp(text, "~") == 0) ||
        (plain && strcmp(text, "null") == 0))
        return wrong(r, &r->event.start_mark, "%s: has no value", e->key);
    *word = text;
    return true;
}

static bool take_list(reader *r, cli_config_entry *e)
{
    const char *word;

    e->form = CLI_CONFIG_LIST;
    while (next(r) && r->event.type != YAML_SEQUENCE_END_EVENT)
        if (!take_word(r, e, &word) || !append(r, e, word))
            return false;
    return r->has_event && (e->text != NULL || wrong(r, &r->event.start_mark, "%s: the list is empty", e->key));
}

static bool take_pairs(reader *r, cli_config_entry *e)
{
    e->form = CLI_CONFIG_PAIRS;
    while (next(r) && r->event.type != YAML_MAPPING_END_EVENT) {
        const char *word;
        char pair[256];
        if (!take_word(r, e, &word))
            return false;
        const int n = snprintf(pair, sizeof(pair), "%s=", word);
        if (!next(r) || !take_word(r, e, &word))
            return false;
        if (n < 0 || (size_t)n + strlen(word) >= sizeof(pair))
            return wrong(r, &r->event.start_mark, "%s: a name and its number are too long", e->key);
        memcpy(pair + n, word, strlen(word) + 1);
        if (!append(r, e, pair))
            return false;
    }
    return r->has_event && (e->text != NULL || wrong(r, &r->event.start_mark, "%s: has no value", e->key));
}

static bool take_value(reader *r, cli_config_entry *e)
{
    const char *word;

    if (!next(r))
        return false;
    if (r->event.type == YAML_SEQUENCE_START_EVENT)
        return take_list(r, e);
    if (r->event.type == YAML_MAPPING_START_EVENT)
        return take_pairs(r, e);
    e->form = r->event.type == YAML_SCALAR_EVENT && r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE
                  ? CLI_CONFIG_PLAIN
                  : CLI_CONFIG_QUOTED;
    return take_word(r, e, &word) && append(r, e, word);
}

static bool take_entry(reader *r)
{
    const char *const key = (const char *)r->event.data.scalar.value;

    if (r->event.type != YAML_SCALAR_EVENT || *key == '\0' || !is_plain(&r->event))
        return wrong(r, &r->event.start_mark, "must be the name of an option and its value");
    for (size_t k = 0; k < r->out->entries; k++)
        if (strcmp(r->out->entry[k].key, key) == 0)
            return wrong(r, &r->event.start_mark, "%s stands here a second time, after line %zu", key,
                         r->out->entry[k].line);
    if (r->out->entries == CLI_CONFIG_ENTRIES)
        return wrong(r, &r->event.start_mark, "more than %d options", CLI_CONFIG_ENTRIES);
    cli_config_entry *const e = &r->out->entry[r->out->entries];
    if ((e->key = strdup(key)) == NULL)
        return wrong(r, &r->event.start_mark, "memory is short");
    e->line = r->event.start_mark.line + 1;
    e->column = r->event.start_mark.column + 1;
    r->out->entries++;
    return take_value(r, e);
}

static bool take_document(reader *r)
{
    if (!next(r) || r->event.type != YAML_STREAM_START_EVENT || !next(r))
        return r->has_event && wrong(r, &r->event.start_mark, "no YAML");
    if (r->event.type == YAML_STREAM_END_EVENT) /* comments alone */
        return true;
    if (!next(r))
        return false;
    if (r->event.type == YAML_SCALAR_EVENT && r->event.data.scalar.length == 0)
        return true;
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return wrong(r, &r->event.start_mark, "must be options, as in hidden: 64, one a line");
    while (next(r) && r->event.type != YAML_MAPPING_END_EVENT)
        if (!take_entry(r))
            return false;
    if (!r->has_event || !next(r) || !next(r)) /* the document's end, the stream's */
        return false;
    return r->event.type == YAML_STREAM_END_EVENT ||
           wrong(r, &r->event.start_mark, "a second document; a file of options has one");
}

/* Pipes, too; what is longer than a file of options ever is ends there. */
static int read_some(void *context, unsigned char *buffer, size_t size, size_t *got)
{
    reader *const r = context;
    const bool more = ftell(r->file) < (long)MOST_BYTES;

    *got = more ? fread(buffer, 1, size, r->file) : 0;
    return more && !ferror(r->file);
}

bool cli_config_read(cli_config *out, const char *path)
{
    reader r = {.out = out, .path = path};
    bool good;

    *out = (cli_config){0};
    if ((r.file = fopen(path, "r")) == NULL) {
        snprintf(out->error, sizeof(out->error), "--config %s: %s", path, strerror(errno));
        return false;
    }
    if (yaml_parser_initialize(&r.parser) == 0) {
        fclose(r.file);
        snprintf(out->error, sizeof(out->error), "--config %s: memory is short", path);
        return false;
    }
    yaml_parser_set_input(&r.parser, read_some, &r);
    good = take_document(&r);
    if (r.has_event)
        yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    fclose(r.file);
    return good;
}

void cli_config_free(cli_config *config)
{
    for (size_t k = 0; k < config->entries; k++) {
        free(config->entry[k].key);
        free(config->entry[k].text);
    }
    config->entries = 0;
}
