/* input_csv.c - edge lists with a header: columns found by name, in any order, with weights and types. */
#include "partition/input_csv.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/size.h"
#include "partition/edge_text.h"
#include "partition/text_ids.h"
#include "partition/text_lines.h"

#define MOST_COLUMNS 256u
#define MOST_TYPES 65536u

typedef enum role { UNREAD, SOURCE, DESTINATION, WEIGHT, TYPE, ROLES } role;

/* What others call these columns: pandas' and NetworkX's habits, DGL, Neo4j, igraph. */
static const struct {
    const char *name;
    role what;
} names[] = {
    {"src", SOURCE},         {"source", SOURCE},           {"from", SOURCE},           {"u", SOURCE},
    {"src_id", SOURCE},      {"source_id", SOURCE},        {"from_id", SOURCE},        {":start_id", SOURCE},
    {"dst", DESTINATION},    {"dest", DESTINATION},        {"destination", DESTINATION}, {"target", DESTINATION},
    {"to", DESTINATION},     {"v", DESTINATION},           {"dst_id", DESTINATION},    {"target_id", DESTINATION},
    {"to_id", DESTINATION},  {"destination_id", DESTINATION}, {":end_id", DESTINATION}, {"weight", WEIGHT},
    {"w", WEIGHT},           {"edge_weight", WEIGHT},      {"type", TYPE},             {"edge_type", TYPE},
    {"etype", TYPE},         {"relation", TYPE},           {"rel", TYPE},
};

typedef struct table {
    char delimiter; /* ' ': any blanks */
    uint32_t columns;
    uint8_t what[MOST_COLUMNS]; /* role */
} table;

static char find_delimiter(const char *line)
{
    return strchr(line, ',') != NULL ? ',' : strchr(line, ';') != NULL ? ';' : strchr(line, '\t') != NULL ? '\t' : ' ';
}

static bool is_blank(char c, char delimiter) { return (c == ' ' || c == '\t' || c == '\r') && c != delimiter; }

/* The field at *p, without blanks and quotes around it, ended by a 0; *p is behind it, NULL after the last. */
static char *take_field(char **p, char delimiter)
{
    char *at = *p, *end;

    while (is_blank(*at, delimiter) || (delimiter == ' ' && *at == ' '))
        at++;
    if (*at == '"' && (end = strchr(at + 1, '"')) != NULL) {
        *end = '\0';
        for (end++; *end != '\0' && *end != delimiter && *end != '\t'; end++)
            ;
        *p = *end == '\0' ? NULL : end + 1;
        return at + 1;
    }
    for (end = at; *end != '\0' && *end != delimiter && !(delimiter == ' ' && *end == '\t'); end++)
        ;
    char *next = *end == '\0' ? NULL : end + 1;
    for (; end > at && (is_blank(end[-1], delimiter)); end--)
        ;
    *end = '\0';
    if (delimiter == ' ' && next != NULL && *(next = gs_part__skip_blanks(next)) == '\0')
        next = NULL; /* blanks at the end are no field */
    *p = next;
    return at;
}

static role role_of(const char *name)
{
    for (size_t i = 0; i < GS_ARRAY_LEN(names); i++)
        if (strcasecmp(name, names[i].name) == 0)
            return names[i].what;
    return UNREAD;
}

static bool is_number(const char *field)
{
    return isdigit((unsigned char)*field) || ((*field == '-' || *field == '+' || *field == '.') && field[1] != '\0');
}

bool gs_part__csv_looks(const char *line)
{
    char copy[1024];
    bool ends[ROLES] = {false};

    if (strpbrk(line, ",;") != NULL)
        return true;
    snprintf(copy, sizeof(copy), "%s", line);
    for (char *p = copy; p != NULL;)
        ends[role_of(take_field(&p, find_delimiter(line)))] = true;
    return ends[SOURCE] && ends[DESTINATION];
}

/* Names of the columns; the line is taken apart. */
static gs_status read_header(table *t, const gs_part_job *job, bool again, const gs_lines *l)
{
    uint32_t seen[ROLES] = {0};

    for (char *p = l->line; p != NULL; t->columns++) {
        if (t->columns == MOST_COLUMNS)
            return gs_part__lines_wrong(l, p, "more than 256 columns; leave out those that are no edge's");
        char *const name = take_field(&p, t->delimiter);
        const role what = role_of(name);
        t->what[t->columns] = (uint8_t)what;
        if (what == UNREAD && !again)
            gs_part__warn(job, "%s: the column '%.64s' is not read; columns are source, destination, weight, type",
                          l->path, name);
        if (what != UNREAD && seen[what]++ != 0)
            return gs_part__lines_wrong(l, name, "a second column of this meaning; rename or remove one");
    }
    if (seen[SOURCE] == 0 || seen[DESTINATION] == 0)
        return gs_part__lines_wrong(l, l->line,
                                    "no columns called src and dst (or source and target, from and to); name them so");
    return GS_OK;
}

/* Without names, two columns are source and destination; of more nobody knows the meaning. */
static gs_status without_header(table *t, const gs_lines *l)
{
    const char *p = l->line;
    for (t->columns = 1; (p = strchr(p, t->delimiter)) != NULL; p++)
        t->columns++;
    if (t->columns != 2)
        return gs_part__lines_wrong(l, l->line,
                                    "more or fewer than two columns, and no header that names them; put one above, "
                                    "such as src,dst,weight");
    t->what[0] = SOURCE;
    t->what[1] = DESTINATION;
    return GS_OK;
}

static gs_status take_type(uint32_t *out, char *field, const gs_lines *l)
{
    uint64_t v = 0;
    const gs_status st = gs_part__take_number(&v, &field, l, 0, MOST_TYPES - 1, "the edge type");
    *out = (uint32_t)v;
    return st != GS_OK || *field == '\0' ? st : gs_part__lines_wrong(l, field, "expected one number a column");
}

static gs_status take_weight(float *out, char *field, const gs_lines *l)
{
    char *after;
    *out = strtof(field, &after);
    return after != field && *after == '\0' && isfinite(*out)
               ? GS_OK
               : gs_part__lines_wrong(l, field, "expected a finite weight");
}

static gs_status read_row(gs_text_reading *r, const table *t, const gs_lines *l)
{
    gs_text_id ends[2] = {{NULL, 0}};
    uint32_t type = 0;
    float weight = 1;
    uint32_t c = 0;
    gs_status st = GS_OK;

    for (char *p = l->line; p != NULL && st == GS_OK; c++) {
        char *const field = take_field(&p, t->delimiter);
        if (c == t->columns)
            return gs_part__lines_wrong(l, field, "more columns than the first line has");
        if (t->what[c] == SOURCE || t->what[c] == DESTINATION)
            ends[t->what[c] == DESTINATION] = (gs_text_id){field, strlen(field)};
        else if (t->what[c] == TYPE)
            st = take_type(&type, field, l);
        else if (t->what[c] == WEIGHT)
            st = take_weight(&weight, field, l);
    }
    if (st != GS_OK)
        return st;
    if (c < t->columns)
        return gs_part__lines_wrong(l, l->line, "fewer columns than the first line has");
    return gs_part__reading_put(r, l, ends, weight, type);
}

static bool is_comment(const gs_lines *l)
{
    const char *const p = gs_part__skip_blanks(l->line);
    return *p == '#' || *p == '\0';
}

/* The first line that is no comment; *header: it holds names, not an edge. */
static gs_status read_first(gs_text_reading *r, gs_lines *l, table *t, bool *header)
{
    gs_part_input *const in = r->in;
    bool more;
    gs_status st;

    do {
        if ((st = gs_part__lines_next(l, &more)) != GS_OK)
            return st;
        if (!more)
            return gs_fail(GS_EFORMAT, "%s: holds no edge", in->path);
    } while (is_comment(l));
    if (l->number == 1 && strncmp(l->line, "\xef\xbb\xbf", 3) == 0)
        l->line += 3; /* the mark that spreadsheets put in front of UTF-8 */
    t->delimiter = find_delimiter(l->line);
    const char *const p = gs_part__skip_blanks(l->line);
    *header = !is_number(p + (*p == '"'));
    const bool again = r->names != NULL && r->job->opt->ids == NULL; /* columns were named in the first reading */
    if ((st = *header ? read_header(t, r->job, again, l) : without_header(t, l)) != GS_OK)
        return st;
    in->weighted = memchr(t->what, WEIGHT, t->columns) != NULL;
    in->typed = memchr(t->what, TYPE, t->columns) != NULL;
    return gs_part__reading_begin(r);
}

static gs_status read_table(gs_text_reading *r)
{
    gs_lines l;
    table t = {0};
    bool header = false, more = true;
    gs_status st;

    if ((st = gs_part__lines_open(&l, r->job, r->in->path, GS_LINE_LIMIT)) != GS_OK ||
        (st = read_first(r, &l, &t, &header)) != GS_OK)
        goto done;
    if (!header)
        st = read_row(r, &t, &l);
    while (st == GS_OK && (st = gs_part__lines_next(&l, &more)) == GS_OK && more)
        if (!is_comment(&l) && (st = read_row(r, &t, &l)) == GS_OK)
            st = gs_part__lines_tick(r->job, &l, "reading edges");
done:
    gs_part__lines_close(&l);
    return st;
}

gs_status gs_part__csv_read(gs_part_input *in, gs_part_job *job) { return gs_part__text_read(in, job, read_table); }
