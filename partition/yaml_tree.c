/* yaml_tree.c - libyaml's document, asked by key and number. */
#include "partition/yaml_tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <yaml.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/input_unread.h"

struct gs_yaml {
    const char *path;
    yaml_document_t document;
    bool loaded;
};

/* libyaml's scanner looks at all open levels for each token, and its loader at all anchors for each: a MiB of either
 * takes minutes. Metadata have some ten levels, and no anchors. */
#define MOST_LEVELS 64
#define MOST_REFERENCES 1000 /* anchors, aliases and directives */

/* What a token adds to the depth. */
static int step_of(yaml_token_type_t type)
{
    switch (type) {
    case YAML_BLOCK_SEQUENCE_START_TOKEN:
    case YAML_BLOCK_MAPPING_START_TOKEN:
    case YAML_FLOW_SEQUENCE_START_TOKEN:
    case YAML_FLOW_MAPPING_START_TOKEN:
        return 1;
    case YAML_BLOCK_END_TOKEN:
    case YAML_FLOW_SEQUENCE_END_TOKEN:
    case YAML_FLOW_MAPPING_END_TOKEN:
        return -1;
    default:
        return 0;
    }
}

/* GS_EFORMAT where the file is nested or refers to itself more than any metadata. What is no YAML ends this quietly:
 * load() says what is wrong there. */
static gs_status check_shape(const gs_yaml *y, const char *text, uint64_t bytes)
{
    yaml_parser_t parser;
    yaml_token_t token;
    int levels = 0, references = 0;
    unsigned long long line = 1;
    bool more = true;

    if (!yaml_parser_initialize(&parser))
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", y->path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
    while (more && levels <= MOST_LEVELS && references <= MOST_REFERENCES && yaml_parser_scan(&parser, &token)) {
        levels += step_of(token.type);
        references += token.type == YAML_ANCHOR_TOKEN || token.type == YAML_ALIAS_TOKEN ||
                      token.type == YAML_TAG_DIRECTIVE_TOKEN || token.type == YAML_VERSION_DIRECTIVE_TOKEN;
        line = token.start_mark.line + 1;
        more = token.type != YAML_STREAM_END_TOKEN;
        yaml_token_delete(&token);
    }
    yaml_parser_delete(&parser);
    if (levels > MOST_LEVELS)
        return gs_fail(GS_EFORMAT, "%s: line %llu: lists and mappings in more than %d levels; metadata have some ten",
                       y->path, line, MOST_LEVELS);
    if (references > MOST_REFERENCES)
        return gs_fail(GS_EFORMAT, "%s: line %llu: more than %d anchors, aliases and directives; write out what they "
                                   "stand for",
                       y->path, line, MOST_REFERENCES);
    return GS_OK;
}

static gs_status load(gs_yaml *y, const char *text, uint64_t bytes)
{
    yaml_parser_t parser;
    gs_status st = check_shape(y, text, bytes);

    if (st != GS_OK)
        return st;
    if (!yaml_parser_initialize(&parser))
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", y->path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
    y->loaded = yaml_parser_load(&parser, &y->document) != 0;
    if (!y->loaded && parser.error == YAML_MEMORY_ERROR)
        st = gs_fail(GS_ENOMEM, "%s: no memory to read it", y->path);
    else if (!y->loaded)
        st = gs_fail(GS_EFORMAT, "%s: line %llu: is no YAML: %s", y->path,
                     (unsigned long long)parser.problem_mark.line + 1,
                     parser.problem != NULL ? parser.problem : "it cannot be read");
    else if (yaml_document_get_root_node(&y->document) == NULL)
        st = gs_fail(GS_EFORMAT, "%s: is empty", y->path);
    yaml_parser_delete(&parser);
    return st;
}

gs_status gs_part__yaml_open(gs_yaml **out, const char *path)
{
    gs_yaml *y = gs_calloc(1, sizeof(*y));
    char *text = NULL;
    uint64_t bytes = 0;
    gs_status st;

    if (y == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", path);
    y->path = path;
    if ((st = gs_file_read_all(&text, &bytes, path, GS_MIB)) == GS_OK)
        st = load(y, text, bytes);
    gs_free(text);
    if (st == GS_OK)
        *out = y;
    else
        gs_part__yaml_close(y);
    return st;
}

void gs_part__yaml_close(gs_yaml *y)
{
    if (y != NULL && y->loaded)
        yaml_document_delete(&y->document);
    gs_free(y);
}

/* libyaml's functions take a document that they could change; none here does. */
static yaml_node_t *node(const gs_yaml *y, gs_yaml_node n)
{
    return n == 0 ? NULL : yaml_document_get_node((yaml_document_t *)(uintptr_t)&y->document, n);
}

gs_yaml_node gs_part__yaml_root(const gs_yaml *y)
{
    (void)y;
    return 1;
}

uint64_t gs_part__yaml_line(const gs_yaml *y, gs_yaml_node n)
{
    const yaml_node_t *const at = node(y, n);
    return at == NULL ? 1 : at->start_mark.line + 1;
}

static bool is_null(const yaml_node_t *at)
{
    if (at->type != YAML_SCALAR_NODE || at->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    const char *const word = (const char *)at->data.scalar.value;
    return *word == '\0' || strcmp(word, "null") == 0 || strcmp(word, "~") == 0;
}

gs_yaml_node gs_part__yaml_get(const gs_yaml *y, gs_yaml_node n, const char *key)
{
    const yaml_node_t *const at = node(y, n);

    if (at == NULL || at->type != YAML_MAPPING_NODE)
        return 0;
    for (const yaml_node_pair_t *p = at->data.mapping.pairs.start; p < at->data.mapping.pairs.top; p++) {
        const char *const word = gs_part__yaml_word(y, p->key);
        const yaml_node_t *const value = node(y, p->value);
        if (word != NULL && strcmp(word, key) == 0)
            return value == NULL || is_null(value) ? 0 : p->value;
    }
    return 0;
}

uint64_t gs_part__yaml_length(const gs_yaml *y, gs_yaml_node n)
{
    const yaml_node_t *const at = node(y, n);
    return at == NULL || at->type != YAML_SEQUENCE_NODE
               ? 0
               : (uint64_t)(at->data.sequence.items.top - at->data.sequence.items.start);
}

gs_yaml_node gs_part__yaml_item(const gs_yaml *y, gs_yaml_node n, uint64_t k)
{
    return k < gs_part__yaml_length(y, n) ? node(y, n)->data.sequence.items.start[k] : 0;
}

const char *gs_part__yaml_word(const gs_yaml *y, gs_yaml_node n)
{
    const yaml_node_t *const at = node(y, n);

    if (at == NULL || at->type != YAML_SCALAR_NODE || strlen((const char *)at->data.scalar.value) !=
                                                          at->data.scalar.length) /* a byte of 0 within */
        return NULL;
    return (const char *)at->data.scalar.value;
}

gs_status gs_part__yaml_number(const gs_yaml *y, uint64_t *out, gs_yaml_node n, const char *what)
{
    const char *const word = gs_part__yaml_word(y, n);
    uint64_t v = 0;

    if (n == 0)
        return GS_OK;
    if (word == NULL || *word == '\0' || strlen(word) > 18 || strspn(word, "0123456789") != strlen(word))
        return gs_part__yaml_wrong(y, n, "%s is not a whole number of 0 or more", what);
    for (const char *c = word; *c != '\0'; c++)
        v = v * 10 + (uint64_t)(*c - '0');
    *out = v;
    return GS_OK;
}

gs_status gs_part__yaml_wrong(const gs_yaml *y, gs_yaml_node n, const char *format, ...)
{
    char text[600];
    va_list rest;

    va_start(rest, format);
    vsnprintf(text, sizeof(text), format, rest);
    va_end(rest);
    return gs_fail(GS_EFORMAT, "%s: line %llu: %s", y->path, (unsigned long long)gs_part__yaml_line(y, n), text);
}

void gs_part__yaml_warn_of_keys(const gs_yaml *y, gs_yaml_node n, const char *const *known, const gs_part_job *job)
{
    const yaml_node_t *const at = node(y, n);

    if (at == NULL || at->type != YAML_MAPPING_NODE)
        return;
    for (const yaml_node_pair_t *p = at->data.mapping.pairs.start; p < at->data.mapping.pairs.top; p++) {
        const char *const key = gs_part__yaml_word(y, p->key);
        bool found = false;
        for (size_t i = 0; known[i] != NULL && key != NULL; i++)
            found |= strcmp(key, known[i]) == 0;
        if (found)
            continue;
        const char *const near = key != NULL ? gs_part__near_name(key, known) : NULL;
        gs_part__warn(job, "%s: line %llu: '%.64s' is not read%s%s%s", y->path,
                      (unsigned long long)gs_part__yaml_line(y, p->key), key != NULL ? key : "a key",
                      near != NULL ? "; was " : "", near != NULL ? near : "", near != NULL ? " meant?" : "");
    }
}
