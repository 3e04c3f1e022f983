/* input_lists.c - edge lists, a line an edge: of two columns (SNAP), or of more, with weights and types (CSV, TSV).
 *
 * They are parsed into a temporary file of binary records, since N is known only at the end. Columns are found by the
 * names in the header, in any order, or, where there is none, by their number: two are source and destination, a third
 * of numbers is the weight, and a word between two numbers, or of three words the one in the middle, is the edge's type
 * (head, relation, tail). A folder with train.txt, valid.txt and test.txt of such lines is a knowledge graph: the first
 * has the edges, the others pairs that are to be found. */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/edge_text.h"
#include "partition/input_files.h"
#include "partition/text_lines.h"

/* ---- KONECT -------------------------------------------------------------------------- */

/* "% sym weighted": a format, sym, asym or bip, and what weights are. The lines below have two ids, a
 * weight or how often the edge is there, and a time (konect.cc). */

static bool takes(const char **p, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*p, word, n) != 0 || !(gs_part__is_blank((*p)[n]) || gs_part__is_end((*p)[n])))
        return false;
    *p = gs_part__skip_blanks(*p + n);
    return true;
}

/* The first line's words, behind its %. */
static gs_status read_format(gs_part_input *in, const char *p)
{
    static const char *const weights[] = {"unweighted", "positive",      "posweighted", "signed",
                                          "multisigned", "weighted",     "multiweighted", "dynamic",
                                          "multiposweighted", NULL};
    const bool sym = takes(&p, "sym"), bip = !sym && takes(&p, "bip"), asym = !sym && !bip && takes(&p, "asym");

    if (!sym && !bip && !asym)
        return GS_OK;
    for (size_t i = 0; weights[i] != NULL && !in->konect; i++)
        in->konect = takes(&p, weights[i]) && gs_part__is_end(*p);
    in->undirected = in->konect && sym;
    if (in->konect && bip)
        return gs_fail(GS_EUNSUPPORTED,
                       "%s: is bipartite (%% bip): its two columns count different vertices, and a store has one kind; "
                       "number the second column's from where the first's end, and say asym",
                       in->path);
    return GS_OK;
}

static gs_status look_for_konect(gs_part_input *in, const gs_part_job *job, uint32_t *columns)
{
    GS_ENDS(gs_part__lines_close) gs_lines l = {0};
    char *text;

    *columns = 0;
    in->konect = in->undirected = false;
    GS_TRY(gs_part__lines_open(&l, job, in->path));
    while (*columns == 0) {
        GS_TRY(gs_part__lines_next(&l, &text));
        if (text == NULL)
            return GS_OK;
        const char *p = gs_part__skip_blanks(text);
        if (l.line.number == 1 && *p == '%')
            GS_TRY(read_format(in, gs_part__skip_blanks(p + 1)));
        for (; !gs_part__is_comment(p) && *p != '\0'; ++*columns) {
            while (*p != '\0' && !gs_part__is_blank(*p))
                p++;
            p = gs_part__skip_blanks(p);
        }
    }
    return GS_OK;
}

/* ---- columns ------------------------------------------------------------------------ */

#define MOST_COLUMNS 256u
#define MOST_TYPES 65536u
#define TRIPLES 1024u /* records of a text at a time */

#define LEAST_TIME 1e8f /* seconds: of March 1973; a third column of such whole numbers is no weight */

/* DIRECTION: of Gephi's files, Directed or Undirected, in a column called Type. */
typedef enum role { UNREAD, SOURCE, DESTINATION, WEIGHT, TYPE, DIRECTION, ROLES } role;

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
    bool konect; /* the file's first line says that its columns are KONECT's */
    bool header; /* its columns have names */
    bool triples; /* three columns without names are head, relation and tail, numbers or not */
    uint32_t columns;
    uint8_t what[MOST_COLUMNS]; /* role */
} table;

static char find_delimiter(const char *line)
{
    return strchr(line, ',') != NULL ? ',' : strchr(line, ';') != NULL ? ';' : strchr(line, '\t') != NULL ? '\t' : ' ';
}

static bool is_blank(char c, char delimiter) { return (c == ' ' || c == '\t' || c == '\r') && c != delimiter; }

/* A field in quotes, at the first of them; NULL where there is no second. Two within stand for one, and are left so. */
static const char *take_quoted(gs_text_id *out, const char *at, char delimiter, const char **next)
{
    const char *p = at + 1;

    for (; !gs_part__is_end(*p) && (*p != '"' || p[1] == '"'); p++)
        p += *p == '"';
    if (*p != '"')
        return NULL;
    *out = gs_part__id_of_digits(at + 1);
    out->is_number &= out->at + out->length == p;
    out->length = (size_t)(p - out->at);
    for (p++; !gs_part__is_end(*p) && *p != delimiter && *p != '\t'; p++)
        ;
    *next = gs_part__is_end(*p) ? NULL : p + 1;
    return p;
}

/* The field at p, without blanks and quotes around it; *next is behind it, NULL after the last. Gives where it, and
 * blanks behind it, end. */
static const char *take_field(gs_text_id *out, const char *p, char delimiter, const char **next)
{
    while (is_blank(*p, delimiter) || (delimiter == ' ' && *p == ' '))
        p++;
    const char *end = *p == '"' ? take_quoted(out, p, delimiter, next) : NULL;
    if (end != NULL)
        return end;
    *out = gs_part__id_of_digits(p);
    end = p + out->length;
    if (*end == delimiter) { /* as it is mostly */
        *next = end + 1;
    } else {
        while (!gs_part__is_end(*end) && *end != delimiter && !(delimiter == ' ' && *end == '\t'))
            end++;
        const char *last = end;
        while (last > p && is_blank(last[-1], delimiter))
            last--;
        out->is_number &= out->at + out->length == last;
        out->length = (size_t)(last - p);
        *next = gs_part__is_end(*end) ? NULL : end + 1;
    }
    if (delimiter == ' ' && *next != NULL) {
        const char *const behind = gs_part__skip_blanks(*next);
        *next = behind;
        if (gs_part__is_end(*behind)) { /* blanks at the end are no field */
            *next = NULL;
            return behind;
        }
    }
    return end;
}

/* Whether a field begins as a number does, a wrong one of an edge type maybe. */
static bool may_be_number(const char *at) { return isdigit((unsigned char)*at) || *at == '-' || *at == '+'; }

static role role_of(const gs_text_id *name)
{
    for (size_t i = 0; i < GS_ARRAY_LEN(names); i++)
        if (strlen(names[i].name) == name->length && strncasecmp(name->at, names[i].name, name->length) == 0)
            return names[i].what;
    return UNREAD;
}

static bool is_number(const char *field)
{
    return isdigit((unsigned char)*field) || ((*field == '-' || *field == '+' || *field == '.') && field[1] != '\0');
}

static bool has_header(const char *line)
{
    bool ends[ROLES] = {false};
    gs_text_id name;

    if (strpbrk(line, ",;") != NULL)
        return true;
    for (const char *p = line; p != NULL;) {
        take_field(&name, p, find_delimiter(line), &p);
        ends[role_of(&name)] = true;
    }
    return ends[SOURCE] && ends[DESTINATION];
}

static void warn_of_unread(const table *t, const gs_part_job *job, const gs_line *l)
{
    gs_text_id name;

    for (const char *p = l->text; p != NULL;) {
        take_field(&name, p, t->delimiter, &p);
        if (role_of(&name) == UNREAD)
            gs_part__warn(job, "%s: the column '%.*s' is not read; columns are source, destination, weight, type",
                          l->path, (int)GS_MIN(name.length, 64), name.at);
    }
}

/* Names of the columns. What is not read is told of once, and where the header is good. */
static gs_status read_header(table *t, const gs_part_job *job, bool again, const gs_line *l)
{
    uint32_t seen[ROLES] = {0};
    gs_text_id name;

    for (const char *p = l->text; p != NULL; t->columns++) {
        if (t->columns == MOST_COLUMNS)
            return gs_part__line_wrong(l, p, "more than 256 columns; leave out those that are no edge's");
        take_field(&name, p, t->delimiter, &p);
        const role what = role_of(&name);
        t->what[t->columns] = (uint8_t)what;
        if (what != UNREAD && seen[what]++ != 0)
            return gs_part__line_wrong(l, name.at, "a second column of this meaning; rename or remove one");
    }
    if (seen[SOURCE] == 0 || seen[DESTINATION] == 0)
        return gs_part__line_wrong(l, l->text,
                                   "no columns called src and dst (or source and target, from and to); name them so");
    if (!again)
        warn_of_unread(t, job, l);
    return GS_OK;
}

static bool is_real(const gs_text_id *field, float *value)
{
    const char *after;
    *value = gs_text_real32(field->at, &after);
    return field->length > 0 && after == field->at + field->length;
}

/* Of three columns: what is the last one, and so the one between? KONECT's are known. */
static gs_status third_column(table *t, const gs_part_job *job, bool again, const gs_line *l, const gs_text_id field[3])
{
    float value, other;
    const bool real = is_real(&field[2], &value), word = !is_real(&field[1], &other);
    const bool triple = t->triples || (word && (!real || is_real(&field[0], &other)));

    if (!real && !triple)
        return gs_part__line_wrong(l, field[1].at,
                                   "is this a relation, or the next column? put a header above that names the three, "
                                   "such as src dst type");
    if (!t->konect && !triple && value >= LEAST_TIME && floorf(value) == value)
        return gs_part__line_wrong(l, field[2].at,
                                   "this column may hold times or weights; put a header above that names the three: "
                                   "src dst weight, or src dst time, which is not read");
    t->what[1] = triple ? TYPE : DESTINATION;
    t->what[2] = triple ? DESTINATION : WEIGHT;
    if (!again && !t->konect && !t->triples)
        gs_part__warn(job, "%s: has no header; its columns are taken as source, %s (a header, such as src dst time, "
                           "says otherwise)",
                      l->path, triple ? "edge type, destination" : "destination, weight");
    return GS_OK;
}

/* Without names: two columns, three, or KONECT's four, of which the last is a time. */
static gs_status without_header(table *t, const gs_part_job *job, bool again, const gs_line *l)
{
    gs_text_id field[4];
    const uint32_t most = t->konect ? 4 : 3;

    for (const char *p = l->text; p != NULL; t->columns++) {
        if (t->columns == most)
            return gs_part__line_wrong(l, l->text,
                                       "more than three columns, and no header that names them; put one above, such as "
                                       "src dst weight time");
        take_field(&field[t->columns], p, t->delimiter, &p);
    }
    if (t->columns < 2)
        return gs_part__line_wrong(l, l->text,
                                   "fewer than two columns, and no header that names them; put one above, such as "
                                   "src,dst,weight");
    t->what[0] = SOURCE;
    t->what[1] = DESTINATION;
    if (t->columns == 4 && !again)
        gs_part__warn(job, "%s: the fourth column, of times, is not read", l->path);
    return t->columns == 2 ? GS_OK : third_column(t, job, again, l, field);
}

static gs_status take_weight(float *out, const gs_text_id *field, const gs_line *l)
{
    const char *after;
    *out = gs_text_real32(field->at, &after);
    return field->length > 0 && after == field->at + field->length && isfinite(*out)
               ? GS_OK
               : gs_part__line_wrong(l, field->at, "expected a finite weight");
}

/* Words where the first edge has one: then all are. */
static gs_status take_type(uint32_t *out, const gs_text_id *field, const gs_line *l, gs_relations *relations)
{
    uint64_t v = 0;

    if (relations != NULL && (field->length == 0 || field->length > GS_MOST_NAME))
        return gs_part__line_wrong(l, field->at, "expected an edge type, a word of 1 to 4096 bytes");
    if (relations != NULL)
        return gs_part__relations_number(relations, out, field->at, field->length);
    const gs_status st = gs_part__id_number(&v, l, field, MOST_TYPES - 1, "the edge type");
    *out = (uint32_t)v;
    return st;
}

static bool is_word(const gs_text_id *field, const char *word)
{
    return strlen(word) == field->length && strncasecmp(field->at, word, field->length) == 0;
}

/* Gephi's words; an undirected edge stands for both directions. */
static bool take_direction(bool *both, const gs_text_id *field)
{
    *both = is_word(field, "undirected");
    return *both || is_word(field, "directed");
}

static bool is_comment(const char *text, char end)
{
    const char *const p = gs_part__skip_blanks(text);
    return gs_part__is_comment(p) || *p == end;
}

/* What take_quoted() has passed over: quotes are at a field's ends, and within it there are none. */
static gs_status check_quotes(const gs_text_id *field, const gs_line *l, char delimiter)
{
    const char *p = field->at + field->length;

    if (*field->at == '"' && (field->at == l->text || field->at[-1] != '"'))
        return gs_part__line_wrong(l, field->at, "this quote is not closed in its line");
    if (field->at == l->text || field->at[-1] != '"')
        return GS_OK;
    const char *const within = memchr(field->at, '"', field->length);
    for (p = within != NULL ? within + 1 : p + 1; is_blank(*p, delimiter); p++)
        ;
    return within == NULL &&
                   (gs_part__is_end(*p) || *p == delimiter || (delimiter == ' ' && *p == '\t'))
               ? GS_OK
               : gs_part__line_wrong(l, p, "more of a field behind its quotes; quotes within a field are not read");
}

static bool is_loop(const gs_text_id ends[2])
{
    return ends[0].length == ends[1].length && memcmp(ends[0].at, ends[1].at, ends[0].length) == 0;
}

static gs_status read_row(gs_edge_block *b, const gs_line *l, const char **end)
{
    const gs_text_reading *const r = b->lines->context;
    const table *const t = r->columns;
    gs_text_id ends[2] = {{.at = NULL}}, field;
    uint32_t type = 0;
    float weight = 1;
    uint32_t c = 0;
    bool both = false;

    if (is_comment(l->text, '\n')) {
        *end = strchr(l->text, '\n');
        return GS_OK;
    }
    for (const char *p = l->text; p != NULL; c++) {
        *end = take_field(&field, p, t->delimiter, &p);
        if (c == t->columns)
            return gs_part__line_wrong(l, field.at, "more columns than the first line has");
        if (t->what[c] != UNREAD)
            GS_TRY(check_quotes(&field, l, t->delimiter));
        if (t->what[c] == SOURCE || t->what[c] == DESTINATION)
            ends[t->what[c] == DESTINATION] = field;
        else if (t->what[c] == TYPE)
            GS_TRY(take_type(&type, &field, l, b->lines->in->relations));
        else if (t->what[c] == WEIGHT)
            GS_TRY(take_weight(&weight, &field, l));
        else if (t->what[c] == DIRECTION && !take_direction(&both, &field))
            return gs_part__line_wrong(l, field.at, "neither Directed nor Undirected, which the lines before are");
    }
    if (c < t->columns)
        return gs_part__line_wrong(l, l->text, "fewer columns than the first line has");
    GS_TRY(gs_part__reading_put(b, l, ends, weight, type));
    if (!both || is_loop(ends))
        return GS_OK;
    return gs_part__reading_put(b, l, (gs_text_id[2]){ends[1], ends[0]}, weight, type);
}

/* The next line that is no comment. */
static gs_status next_said(gs_lines *l)
{
    char *text;

    do {
        GS_TRY(gs_part__lines_next(l, &text));
        if (text == NULL)
            return gs_fail(GS_EFORMAT, "%s: holds no edge", l->line.path);
    } while (is_comment(text, '\0'));
    return GS_OK;
}

/* What the first edge says of the table: whether a column called type is Gephi's, or of words. It comes again. */
static gs_status look_at_edge(table *t, gs_lines *l, gs_part_input *in)
{
    gs_text_id field;
    uint32_t c = 0;
    bool both;

    GS_TRY(next_said(l));
    for (const char *p = l->line.text; p != NULL && c < t->columns; c++) {
        take_field(&field, p, t->delimiter, &p);
        if (t->what[c] == TYPE && take_direction(&both, &field))
            t->what[c] = DIRECTION;
        else if (t->what[c] == TYPE && in->relations == NULL && field.length > 0 && !may_be_number(field.at))
            GS_TRY(gs_part__relations_make(&in->relations, in->path));
    }
    gs_part__lines_back(l);
    return GS_OK;
}

/* The first line that is no comment: names of columns, or an edge, which comes again. */
static gs_status read_first(gs_text_reading *r, gs_lines *l, table *t)
{
    gs_part_input *const in = r->lines.in;
    const gs_part_job *const job = r->lines.job;
    const bool again = r->names != NULL && job->opt->ids == NULL; /* the first reading told of columns */

    GS_TRY(next_said(l));
    t->delimiter = find_delimiter(l->line.text);
    const char *const p = gs_part__skip_blanks(l->line.text);
    if ((t->header = has_header(p) && !is_number(p + (*p == '"')))) {
        GS_TRY(read_header(t, job, again, &l->line));
    } else {
        if (t->delimiter == '\t' && t->konect)
            t->delimiter = ' ';
        GS_TRY(without_header(t, job, again, &l->line));
        gs_part__lines_back(l);
    }
    GS_TRY(look_at_edge(t, l, in));
    in->weighted = memchr(t->what, WEIGHT, t->columns) != NULL;
    in->typed = memchr(t->what, TYPE, t->columns) != NULL;
    return gs_part__reading_begin(r);
}

static gs_status read_columns(gs_text_reading *r)
{
    GS_ENDS(gs_part__lines_close) gs_lines l = {0};
    table t = {.konect = r->lines.in->konect};
    gs_status st;

    r->lines.line = read_row;
    r->columns = &t;
    if ((st = gs_part__lines_open(&l, r->lines.job, r->lines.in->path)) == GS_OK &&
        (st = read_first(r, &l, &t)) == GS_OK)
        st = gs_part__reading_lines(r, &l);
    r->columns = NULL;
    return st;
}

static gs_status csv_read(gs_part_input *in, gs_part_job *job)
{
    uint32_t columns;

    GS_TRY(look_for_konect(in, job, &columns)); /* whatever .format says */
    GS_TRY(gs_part__text_read(in, job, read_columns));
    return in->relations == NULL ? GS_OK : gs_part__relations_order(in->relations, job);
}

/* ---- two columns -------------------------------------------------------------------- */

/* The word at p; *p is then behind it and the blanks after it. */
static gs_text_id take_word(const char **p)
{
    gs_text_id id = gs_part__id_of_digits(*p);
    const char *end = id.at + id.length;

    if (!gs_part__is_blank(*end) && !gs_part__is_end(*end)) {
        id.is_number = false;
        while (!gs_part__is_blank(*end) && !gs_part__is_end(*end))
            end++;
        id.length = (size_t)(end - id.at);
    }
    *p = gs_part__skip_blanks(end);
    return id;
}

static gs_status snap_line(gs_edge_block *b, const gs_line *l, const char **end)
{
    const char *p = gs_part__skip_blanks(l->text);
    gs_text_id ends[2];

    if (gs_part__is_comment(p) || *p == '\n') {
        *end = strchr(p, '\n');
        return GS_OK;
    }
    ends[0] = take_word(&p);
    ends[1] = take_word(&p);
    if (*p != '\n')
        return gs_part__line_wrong(l, p, "expected the end of the line after two ids");
    *end = p;
    return gs_part__reading_put(b, l, ends, 1, 0);
}

static gs_status snap_lines(gs_text_reading *r)
{
    GS_ENDS(gs_part__lines_close) gs_lines l = {0};

    r->lines.line = snap_line;
    GS_TRY(gs_part__lines_open(&l, r->lines.job, r->lines.in->path));
    GS_TRY(gs_part__reading_begin(r));
    return gs_part__reading_lines(r, &l);
}

/* Lists of more than two columns are read as tables. */
static gs_status snap_read(gs_part_input *in, gs_part_job *job)
{
    uint32_t columns;

    GS_TRY(look_for_konect(in, job, &columns));
    return columns > 2 ? csv_read(in, job) : gs_part__text_read(in, job, snap_lines);
}

/* ---- knowledge graphs: train.txt, valid.txt and test.txt ---------------------------------- */

static const char *const triple_files[GS_LINK_SPLITS] = {"train.txt", "valid.txt", "test.txt"};

/* Lines of one of them behind those of the ones before, whose columns it has. */
static gs_status read_more(gs_text_reading *r, const char *path, table *t, bool first)
{
    GS_ENDS(gs_part__lines_close) gs_lines l = {0};

    GS_TRY(gs_part__lines_open(&l, r->lines.job, path));
    GS_TRY(first ? read_first(r, &l, t) : next_said(&l));
    if (!first && !(t->header && has_header(l.line.text)))
        gs_part__lines_back(&l);
    return gs_part__reading_lines(r, &l);
}

static gs_status read_triples(gs_text_reading *r)
{
    gs_part_input *const in = r->lines.in;
    table t = {.triples = true};
    gs_status st = GS_OK;

    r->lines.line = read_row;
    r->columns = &t;
    for (uint32_t k = 0; k < GS_LINK_SPLITS && st == GS_OK && !r->again; k++) {
        const uint64_t before = in->edges;
        GS_FREED char *const path = gs_path_join(in->path, triple_files[k]);
        GS_NEED(path != NULL, "%s: no memory for a path", in->path);
        if (k == 0 || !gs_path_is_absent(path))
            st = read_more(r, path, &t, k == 0);
        if (k > 0)
            in->held_out[k - 1] = in->edges - before;
    }
    r->columns = NULL;
    return st;
}

/* The next `count` records of a text, of at most four numbers, and where arrays are given their ends and their types
 * into these; in->edge_types grows to hold all types. */
static gs_status take_records(gs_part_input *in, gs_sort_cursor *at, uint64_t count, gs_made *pairs, gs_made *type)
{
    const uint32_t words = in->text->spec.words;
    const uint32_t *const number = in->relations != NULL ? gs_part__relations_type(in->relations) : NULL;
    uint32_t record[4 * TRIPLES];
    uint64_t got = 1;

    for (uint64_t done = 0; done < count && got > 0; done += got) {
        GS_TRY(gs_sort_read(in->text, at, record, GS_MIN(count - done, TRIPLES), &got));
        for (uint64_t i = 0; i < got; i++) {
            const uint32_t *const one = record + i * words;
            const uint32_t word = in->typed ? one[words - 1] : 0, t = number != NULL ? number[word] : word;
            in->edge_types = in->typed ? GS_MAX(in->edge_types, t + 1) : 0;
            if (pairs != NULL)
                GS_TRY(gs_part__made_put(pairs, one, 2 * sizeof(*one)));
            if (pairs != NULL && in->typed)
                GS_TRY(gs_part__made_put(type, &t, sizeof(t)));
        }
    }
    return GS_OK;
}

static gs_status make_pairs(gs_part_input *in, const gs_part_job *job, gs_sort_cursor *at, uint32_t split)
{
    const uint64_t count = in->held_out[split - 1];
    GS_ENDS(gs_part__made_free) gs_made pairs = {0};
    GS_ENDS(gs_part__made_free) gs_made type = {0};
    const char *const name = triple_files[split];

    if (count == 0)
        return GS_OK;
    GS_TRY(gs_part__made_begin(&pairs, &in->link[split], job, gs_path_join(in->path, name)));
    if (in->typed)
        GS_TRY(gs_part__made_begin(&type, &in->link_type[split], job, gs_path_join(in->path, name)));
    GS_TRY(take_records(in, at, count, &pairs, &type));
    GS_TRY(gs_part__made_end(&pairs, GS_U32, count, 2));
    return in->typed ? gs_part__made_end(&type, GS_U32, count, 1) : GS_OK;
}

static gs_status triples_read(gs_part_input *in, gs_part_job *job)
{
    GS_TRY(gs_part__text_read(in, job, read_triples));
    if (in->relations != NULL)
        GS_TRY(gs_part__relations_order(in->relations, job));
    in->edges -= in->held_out[0] + in->held_out[1];
    gs_sort_cursor at = gs_sort_first(in->text, 0);
    GS_TRY(take_records(in, &at, in->edges, NULL, NULL));
    GS_TRY(make_pairs(in, job, &at, 1));
    return make_pairs(in, job, &at, 2);
}

/* ---- by their first lines --------------------------------------------------------------- */

static bool csv_looks(const char *path, const gs_part_head *head)
{
    (void)path;
    return *head->line != '\0' && has_header(head->line);
}

/* True where the line has two or three words of letters, not of any bytes: an edge between names. */
static bool has_words(const char *line)
{
    int words = 0;

    for (const char *p = line; *p != '\0'; p++) {
        const bool blank = *p == ' ' || *p == '\t' || *p == '\r';
        if (!blank && ((unsigned char)*p < ' ' || *p == 127))
            return false;
        words += !blank && (p == line || p[-1] == ' ' || p[-1] == '\t');
    }
    return words == 2 || words == 3;
}

static bool snap_looks(const char *path, const gs_part_head *head)
{
    (void)path;
    return head->comment || strchr(" \t\r\n0123456789", *head->line) != NULL || has_words(head->line);
}

const gs_part_format gs_part__list_formats[] = {
    {.name = "csv", .words = "columns with a header", .looks = csv_looks, .read = csv_read},
    {.name = "snap", .words = "an edge list", .looks = snap_looks, .read = snap_read},
    {.name = "triples", .words = "a folder with train.txt: head, relation, tail", .has = {"train.txt"},
     .read = triples_read},
    {0},
};
