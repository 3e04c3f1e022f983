/* input_graphbolt.c - GraphBolt's folders, before its own preprocessing: metadata.yaml names a file of edges (numpy
 * [2, E], or CSV) for each of their types, features of the vertices, and, for each split, a list of vertices with their
 * labels. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/input_files.h"
#include "partition/job.h"

/* ---- a YAML file as a tree, by libyaml ------------------------------------------------ */

typedef struct yaml_tree {
    const char *path;
    yaml_document_t document;
    bool loaded;
} yaml_tree;
/* A node is a number of the tree; 0 is none, and what is asked of it is none again. */
typedef int tree_node;

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
static gs_status check_shape(const yaml_tree *y, const char *text, uint64_t bytes)
{
    yaml_parser_t parser;
    yaml_token_t token;
    int levels = 0, references = 0;
    unsigned long long line = 1;
    bool more = true;

    GS_NEED(yaml_parser_initialize(&parser), "%s: no memory to read it", y->path);
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

static gs_status load(yaml_tree *y, const char *text, uint64_t bytes)
{
    yaml_parser_t parser;
    gs_status st = GS_OK;

    GS_TRY(check_shape(y, text, bytes));
    GS_NEED(yaml_parser_initialize(&parser), "%s: no memory to read it", y->path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
    y->loaded = yaml_parser_load(&parser, &y->document) != 0;
    if (!y->loaded && parser.error == YAML_MEMORY_ERROR)
        st = gs_fail(GS_ENOMEM, "%s: no memory to read it", y->path);
    else if (!y->loaded)
        st = gs_fail(GS_EFORMAT, "%s: line %lu: is no YAML: %s", y->path, parser.problem_mark.line + 1,
                     parser.problem != NULL ? parser.problem : "it cannot be read");
    else if (yaml_document_get_root_node(&y->document) == NULL)
        st = gs_fail(GS_EFORMAT, "%s: is empty", y->path);
    yaml_parser_delete(&parser);
    return st;
}

static void tree_close(yaml_tree *y)
{
    if (y != NULL && y->loaded)
        yaml_document_delete(&y->document);
    gs_free(y);
}

/* Files above 1 MiB are GS_EFORMAT. *path must live as long. */
static gs_status tree_open(yaml_tree **out, const char *path)
{
    GS_FREED char *text = NULL;
    uint64_t bytes = 0;

    GS_TRY(gs_file_read_all(&text, &bytes, path, GS_MIB));
    yaml_tree *const y = gs_calloc(1, sizeof(*y));
    GS_NEED(y != NULL, "%s: no memory to read it", path);
    y->path = path;
    const gs_status st = load(y, text, bytes);
    if (st == GS_OK)
        *out = y;
    else
        tree_close(y);
    return st;
}

/* libyaml's functions take a document that they could change; none here does. */
static yaml_node_t *node(const yaml_tree *y, tree_node n)
{
    return n == 0 ? NULL : yaml_document_get_node((yaml_document_t *)(uintptr_t)&y->document, n);
}

static tree_node tree_root(const yaml_tree *y)
{
    (void)y;
    return 1;
}

/* From 1. */
static uint64_t tree_line(const yaml_tree *y, tree_node n)
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

/* NULL where it is no word. */
static const char *tree_word(const yaml_tree *y, tree_node n)
{
    const yaml_node_t *const at = node(y, n);

    if (at == NULL || at->type != YAML_SCALAR_NODE || strlen((const char *)at->data.scalar.value) !=
                                                          at->data.scalar.length) /* a byte of 0 within */
        return NULL;
    return (const char *)at->data.scalar.value;
}

/* The value of `key` in a mapping; 0 where there is none, or null. */
static tree_node tree_get(const yaml_tree *y, tree_node n, const char *key)
{
    const yaml_node_t *const at = node(y, n);

    if (at == NULL || at->type != YAML_MAPPING_NODE)
        return 0;
    for (const yaml_node_pair_t *p = at->data.mapping.pairs.start; p < at->data.mapping.pairs.top; p++) {
        const char *const word = tree_word(y, p->key);
        const yaml_node_t *const value = node(y, p->value);
        if (word != NULL && strcmp(word, key) == 0)
            return value == NULL || is_null(value) ? 0 : p->value;
    }
    return 0;
}

/* Of a list; 0 of anything else. */
static uint64_t tree_length(const yaml_tree *y, tree_node n)
{
    const yaml_node_t *const at = node(y, n);
    return at == NULL || at->type != YAML_SEQUENCE_NODE
               ? 0
               : (uint64_t)(at->data.sequence.items.top - at->data.sequence.items.start);
}

static tree_node tree_item(const yaml_tree *y, tree_node n, uint64_t k)
{
    return k < tree_length(y, n) ? node(y, n)->data.sequence.items.start[k] : 0;
}

/* GS_EFORMAT with file and line. */
__attribute__((format(printf, 3, 4)))
static gs_status tree_wrong(const yaml_tree *y, tree_node n, const char *format, ...)
{
    char text[600];
    va_list rest;

    va_start(rest, format);
    vsnprintf(text, sizeof(text), format, rest);
    va_end(rest);
    return gs_fail(GS_EFORMAT, "%s: line %lu: %s", y->path, tree_line(y, n), text);
}

/* GS_EFORMAT where it is there and no whole number of 0 or more; else *out, which stays where there is none. */
static gs_status tree_number(const yaml_tree *y, uint64_t *out, tree_node n, const char *what)
{
    const char *const word = tree_word(y, n);
    uint64_t v = 0;

    if (n == 0)
        return GS_OK;
    if (word == NULL || *word == '\0' || strlen(word) > 18 || strspn(word, "0123456789") != strlen(word))
        return tree_wrong(y, n, "%s is not a whole number of 0 or more", what);
    for (const char *c = word; *c != '\0'; c++)
        v = v * 10 + (uint64_t)(*c - '0');
    *out = v;
    return GS_OK;
}

/* Says by the job's `warn` which keys of a mapping are none of `known` (NULL after the last). */
static void tree_warn_of_keys(const yaml_tree *y, tree_node n, const char *const *known, const gs_part_job *job)
{
    const yaml_node_t *const at = node(y, n);

    if (at == NULL || at->type != YAML_MAPPING_NODE)
        return;
    for (const yaml_node_pair_t *p = at->data.mapping.pairs.start; p < at->data.mapping.pairs.top; p++) {
        const char *const key = tree_word(y, p->key);
        bool found = false;
        for (size_t i = 0; known[i] != NULL && key != NULL; i++)
            found |= strcmp(key, known[i]) == 0;
        if (found)
            continue;
        const char *const near = key != NULL ? gs_part__near_name(key, known) : NULL;
        gs_part__warn(job, "%s: line %lu: '%.64s' is not read%s%s%s", y->path, tree_line(y, p->key),
                      key != NULL ? key : "a key", near != NULL ? "; was " : "", near != NULL ? near : "",
                      near != NULL ? " meant?" : "");
    }
}

/* ---- the folder -------------------------------------------------------------------- */

#define NAME "metadata.yaml"
#define PIECE 65536u

typedef struct graphbolt {
    gs_part_input *in;
    gs_part_job *job;
    yaml_tree *yaml;
    uint64_t vertices, classes;
    gs_part_input *of;     /* whose seeds are labelled: `in`, or a type of vertices */
    gs_part_types types;   /* of several types; table NULL: of one */
    gs_part_file label[3]; /* of the vertices in each split */
} graphbolt;

/* -- one file that the metadata names ------------------------------------------------- */

static gs_status missing(const graphbolt *g, tree_node path, const char *name)
{
    char near[300];

    if (gs_part__near_file(near, sizeof(near), g->in->path, name))
        return tree_wrong(g->yaml, path, "there is no file %s; was %s meant?", name, near);
    return tree_wrong(g->yaml, path, "there is no file %s in %s", name, g->in->path);
}

/* `what` has a format and a path. CSV is read as numbers of `table`; GS_F32 stands for no CSV at all. */
static gs_status open_file(graphbolt *g, gs_part_file *f, tree_node what, gs_dtype table)
{
    const tree_node where = tree_get(g->yaml, what, "path");
    const tree_node how = tree_get(g->yaml, what, "format");
    const char *const name = tree_word(g->yaml, where), *const format = tree_word(g->yaml, how);

    if (name == NULL || *name == '\0')
        return tree_wrong(g->yaml, what, "a path is missing");
    char *const path = gs_path_join(g->in->path, name);
    GS_NEED(path != NULL, "%s: no memory for a path", g->in->path);
    const bool absent = gs_path_is_absent(path);
    if (!absent && format != NULL && strcmp(format, "csv") == 0 && table != GS_F32)
        return gs_part__table_read(f, g->job, path, table); /* which takes the path */
    gs_free(path);
    if (absent)
        return missing(g, where, name);
    if (format == NULL || strcmp(format, "numpy") != 0)
        return tree_wrong(g->yaml, how != 0 ? how : what,
                                   "%s: the format is %s; numpy%s is read: save it with numpy.save()", name,
                                   format != NULL ? format : "not stated", table != GS_F32 ? " or csv" : "");
    return gs_part__file_open(f, g->in->path, name, true);
}

/* -- the parts of the metadata -------------------------------------------------------- */

/* A type of edges, of which `type` is "source:relation:destination". */
static gs_status read_relation(graphbolt *g, tree_node one)
{
    gs_part_types *const t = &g->types;
    gs_part_input *const part = gs_part__relation_part(t, t->table->relations);
    const tree_node where = tree_get(g->yaml, one, "type");
    const char *const word = tree_word(g->yaml, where);
    char text[3 * GS_TYPE_NAME_BYTES], *rest = text, *name[3];
    uint32_t end[2] = {0, 0};

    snprintf(text, sizeof(text), "%s", word != NULL ? word : "");
    for (int k = 0; k < 3; k++)
        if ((name[k] = strsep(&rest, ":")) == NULL)
            return tree_wrong(g->yaml, where != 0 ? where : one, "a type of edges is source:relation:destination");
    GS_TRY(gs_part__type_find(&end[0], t, name[0], false, g->yaml->path));
    GS_TRY(gs_part__type_find(&end[1], t, name[2], false, g->yaml->path));
    GS_TRY(gs_part__relation_add(t, name[1], end[0], end[1], g->yaml->path));
    part->two_rows = true;
    GS_NEED((part->path = gs_strdup(g->in->path)) != NULL, "%s: no memory for a path", g->in->path);
    GS_TRY(open_file(g, &part->edge, one, GS_I64));
    return gs_part__edges_check(part);
}

static gs_status read_types(graphbolt *g, tree_node nodes, tree_node edges)
{
    const yaml_tree *const y = g->yaml;

    GS_TRY(gs_part__types_make(&g->types, g->in->path));
    for (uint64_t k = 0; k < tree_length(y, nodes); k++) {
        const tree_node one = tree_item(y, nodes, k);
        const char *const name = tree_word(y, tree_get(y, one, "type"));
        uint32_t type = 0;
        if (name == NULL)
            return tree_wrong(y, one, "a type of vertices has no name (type)");
        GS_TRY(gs_part__type_find(&type, &g->types, name, true, y->path));
        GS_TRY(tree_number(y, &g->types.table->type[type].vertices, tree_get(y, one, "num"),
                           "the number of vertices (num)"));
    }
    for (uint64_t k = 0; k < tree_length(y, edges); k++)
        GS_TRY(read_relation(g, tree_item(y, edges, k)));
    return GS_OK;
}

static gs_status read_edges(graphbolt *g, tree_node graph)
{
    static const char *const keys[] = {"nodes", "edges", "feature_data", NULL};
    const yaml_tree *const y = g->yaml;
    const tree_node nodes = tree_get(y, graph, "nodes"), edges = tree_get(y, graph, "edges");

    tree_warn_of_keys(y, graph, keys, g->job);
    if (tree_length(y, edges) == 0)
        return tree_wrong(y, graph, "graph: edges: no file of edges is listed");
    GS_TRY(tree_number(y, &g->vertices, tree_get(y, tree_item(y, nodes, 0), "num"), "the number of vertices (num)"));
    if (tree_get(y, graph, "feature_data") != 0)
        gs_part__warn(g->job, "%s/" NAME ": line %lu: feature_data of the graph is not read", g->in->path,
                      tree_line(y, tree_get(y, graph, "feature_data")));
    if (tree_length(y, nodes) > 1 || tree_length(y, edges) > 1)
        return read_types(g, nodes, edges);
    g->in->two_rows = true;
    return open_file(g, &g->in->edge, tree_item(y, edges, 0), GS_I64);
}

static bool is_word(const graphbolt *g, tree_node n, const char *key, const char *word)
{
    const char *const text = tree_word(g->yaml, tree_get(g->yaml, n, key));
    return text != NULL && strcmp(text, word) == 0;
}

/* Features of the vertices, or of the edges, of one type where `type` is not NULL: those called feat, or the first; 0:
 * none. */
static tree_node choose_features(const graphbolt *g, tree_node list, const char *domain, const char *type)
{
    tree_node chosen = 0;
    for (uint64_t k = 0; k < tree_length(g->yaml, list); k++) {
        const tree_node one = tree_item(g->yaml, list, k);
        const bool better = is_word(g, one, "name", "feat") && !is_word(g, chosen, "name", "feat");
        if (is_word(g, one, "domain", domain) && (type == NULL || is_word(g, one, "type", type)) &&
            (chosen == 0 || better))
            chosen = one;
    }
    return chosen;
}

static gs_status open_features(graphbolt *g, gs_part_file *f, tree_node list, const char *domain, const char *type)
{
    const tree_node chosen = choose_features(g, list, domain, type);

    if (chosen != 0)
        GS_TRY(open_file(g, f, chosen, GS_F32));
    if (f->npy.fd >= 0 && strcmp(domain, "node") == 0)
        f->npy.dims = 2; /* [N] is one column */
    return GS_OK;
}

/* Is it one of those that are read? */
static bool is_chosen(const graphbolt *g, tree_node list, tree_node one)
{
    const char *const type = g->types.table != NULL ? tree_word(g->yaml, tree_get(g->yaml, one, "type")) : NULL;
    return one == choose_features(g, list, "node", type) || one == choose_features(g, list, "edge", type);
}

/* All others are named. */
static gs_status read_features(graphbolt *g, tree_node list)
{
    const yaml_tree *const y = g->yaml;
    const gs_type_table *const t = g->types.table;
    char name[3 * GS_TYPE_NAME_BYTES];

    for (uint64_t k = 0; k < tree_length(y, list); k++) {
        const tree_node one = tree_item(y, list, k);
        const char *const word = tree_word(y, tree_get(y, one, "name"));
        if (!is_chosen(g, list, one))
            gs_part__warn(g->job, "%s/" NAME ": line %lu: the features '%.64s' are not read", g->in->path,
                          tree_line(y, one), word != NULL ? word : "without a name");
    }
    if (t == NULL) {
        GS_TRY(open_features(g, &g->in->feature, list, "node", NULL));
        return open_features(g, &g->in->edge_feature, list, "edge", NULL);
    }
    for (uint32_t k = 0; k < t->types; k++)
        GS_TRY(open_features(g, &gs_part__type_part(&g->types, k)->feature, list, "node", t->type[k].name));
    for (uint32_t k = 0; k < t->relations; k++) {
        gs_part_input *const part = gs_part__relation_part(&g->types, k);
        snprintf(name, sizeof(name), "%s:%s:%s", t->type[t->relation[k].source].name, t->relation[k].name,
                 t->type[t->relation[k].destination].name);
        GS_TRY(open_features(g, &part->edge_feature, list, "edge", name));
        GS_TRY(gs_part__edges_check(part));
    }
    return GS_OK;
}

/* Whose vertices a set is of: one type for all sets. */
static gs_status find_seeds(graphbolt *g, tree_node set)
{
    const char *const name = tree_word(g->yaml, tree_get(g->yaml, set, "type"));
    uint32_t type = 0;

    if (g->types.table == NULL)
        return GS_OK;
    if (name == NULL)
        return tree_wrong(g->yaml, set, "a set of vertices has no type");
    GS_TRY(gs_part__type_find(&type, &g->types, name, false, g->yaml->path));
    gs_part_input *const part = gs_part__type_part(&g->types, type);
    if (g->of != g->in && g->of != part)
        return tree_wrong(g->yaml, set, "sets of several types of vertices; a loss is of one");
    part->vertices = g->types.table->type[type].vertices;
    g->of = part;
    return GS_OK;
}

/* One split: a list of vertices, and one of their labels. */
static gs_status read_set(graphbolt *g, int split, tree_node list)
{
    const yaml_tree *const y = g->yaml;
    const tree_node data = tree_get(y, tree_item(y, list, 0), "data");

    if (tree_length(y, list) > 1)
        return tree_wrong(y, list, "sets of several types of vertices; a loss is of one");
    GS_TRY(find_seeds(g, tree_item(y, list, 0)));
    for (uint64_t k = 0; k < tree_length(y, data); k++) {
        const tree_node one = tree_item(y, data, k);
        const char *const name = tree_word(y, tree_get(y, one, "name"));
        const bool seeds = name == NULL ? k == 0 : strcmp(name, "seeds") == 0 || strcmp(name, "seed_nodes") == 0;
        const bool labels = name == NULL ? k == 1 : strcmp(name, "labels") == 0;
        gs_part_file *const f = seeds ? &g->of->split[split] : &g->label[split];
        if (!seeds && !labels)
            return tree_wrong(y, one, "a set of '%s'; sets of vertices are read: seeds, and their labels",
                                       name != NULL ? name : "more than two arrays");
        if (f->path != NULL)
            return tree_wrong(y, one, "a second array of %s in this set", seeds ? "seeds" : "labels");
        GS_TRY(open_file(g, f, one, GS_F32));
    }
    if (g->label[split].path != NULL && g->of->split[split].path == NULL)
        return tree_wrong(y, data, "labels without seeds, the vertices that have them");
    return GS_OK;
}

static gs_status read_tasks(graphbolt *g, tree_node tasks)
{
    static const char *const keys[] = {"name", "num_classes", "train_set", "validation_set", "test_set", NULL};
    static const char *const sets[] = {"train_set", "validation_set", "test_set"};
    const tree_node task = tree_item(g->yaml, tasks, 0);

    GS_TRY(tree_number(g->yaml, &g->classes, tree_get(g->yaml, task, "num_classes"), "num_classes"));
    tree_warn_of_keys(g->yaml, task, keys, g->job);
    if (tree_length(g->yaml, tasks) > 1)
        gs_part__warn(g->job, "%s/" NAME ": line %lu: the first task is read, the others are not", g->in->path,
                      tree_line(g->yaml, tasks));
    for (int i = 0; i < 3; i++)
        if (tree_get(g->yaml, task, sets[i]) != 0)
            GS_TRY(read_set(g, i, tree_get(g->yaml, task, sets[i])));
    return GS_OK;
}

/* -- labels of splits to labels of all vertices ---------------------------------------- */

typedef struct scatter {
    double *all; /* [vertices] NaN for none: labels may be numbers of any type */
    void *raw;
    int64_t *id;
    double *value;
} scatter;

static gs_status scatter_set(graphbolt *g, scatter *s, int split)
{
    const gs_part_file *const ids = &g->of->split[split], *const labels = &g->label[split];
    const uint64_t n = ids->npy.shape[0];

    if (labels->npy.shape[0] != n || labels->npy.shape[1] != 1)
        return gs_fail(GS_EFORMAT, "%s: is [%lu, %lu]; labels are [%lu], one for each vertex of %s", labels->path,
                       labels->npy.shape[0], labels->npy.shape[1], n, ids->path);
    if (!gs_part__is_integer(ids->npy.dtype) || ids->npy.truth || ids->npy.shape[1] != 1)
        return gs_fail(GS_EFORMAT, "%s: is %s [%lu, %lu]; seeds are vertices, integers [K]", ids->path,
                       gs_dtype_name(ids->npy.dtype), n, ids->npy.shape[1]);
    for (uint64_t at = 0; at < n; at += PIECE) {
        const uint64_t count = GS_MIN(PIECE, n - at);
        GS_TRY(gs_part__job_result(g->job));
        GS_TRY(gs_npy_read_rows(&ids->npy, s->raw, at, count, ids->path));
        gs_part__to_i64(s->id, s->raw, ids->npy.dtype, count);
        GS_TRY(gs_npy_read_rows(&labels->npy, s->raw, at, count, labels->path));
        gs_part__to_f64(s->value, s->raw, labels->npy.dtype, count);
        for (uint64_t i = 0; i < count; i++) {
            if (s->id[i] < 0 || (uint64_t)s->id[i] >= g->of->vertices)
                return gs_fail(GS_EFORMAT, "%s: row %lu: vertex %s is not one of the %lu vertices (ids start at 0)",
                               ids->path, at + i, GS_PART_I64(s->id[i]), g->of->vertices);
            s->all[s->id[i]] = s->value[i];
        }
    }
    return GS_OK;
}

static gs_status scatter_labels(graphbolt *g)
{
    const uint64_t n = g->of->vertices;
    GS_ENDS(gs_arena_free) gs_arena memory = {0};
    scatter s = {.all = gs_arena_take(&memory, n, 8), .raw = gs_arena_take(&memory, PIECE, 8),
                 .id = gs_arena_take(&memory, PIECE, 8), .value = gs_arena_take(&memory, PIECE, 8)};
    GS_ENDS(gs_part__made_free) gs_made m = {0};

    GS_NEED(!memory.is_short, "%s: no memory for the labels", g->in->path);
    memset(s.all, 0xff, n * 8); /* NaN */
    for (int i = 0; i < 3; i++)
        if (g->label[i].path != NULL)
            GS_TRY(scatter_set(g, &s, i));
    GS_TRY(gs_part__made_begin(&m, &g->of->label, g->job, gs_path_join(g->in->path, "labels")));
    GS_TRY(gs_part__made_put(&m, s.all, n * 8));
    return gs_part__made_end(&m, GS_F64, n, 1);
}

/* -- the whole --------------------------------------------------------------------------- */

static gs_status read_metadata(graphbolt *g)
{
    static const char *const keys[] = {"dataset_name", "graph", "feature_data", "tasks", NULL};
    const tree_node root = tree_root(g->yaml), graph = tree_get(g->yaml, root, "graph");
    const tree_node made = tree_get(g->yaml, root, "graph_topology");

    if (made != 0)
        return tree_wrong(g->yaml, made,
                                   "is of a folder that GraphBolt has preprocessed; give the one with its source, "
                                   "whose " NAME " has 'graph'");
    tree_warn_of_keys(g->yaml, root, keys, g->job);
    if (graph == 0)
        return tree_wrong(g->yaml, root, "'graph' is missing, with nodes and edges");
    GS_TRY(read_edges(g, graph));
    GS_TRY(read_features(g, tree_get(g->yaml, root, "feature_data")));
    GS_TRY(read_tasks(g, tree_get(g->yaml, root, "tasks")));
    if (g->classes > INT32_MAX)
        return gs_fail(GS_EFORMAT, "%s/" NAME ": num_classes is %lu; at most %d are supported", g->in->path,
                       g->classes, INT32_MAX);
    if (g->types.table == NULL)
        GS_TRY(gs_part__files_check(g->in, g->vertices, 0));
    const bool labelled = g->label[0].path != NULL || g->label[1].path != NULL || g->label[2].path != NULL;
    /* Where not even the tables of all vertices fit, the run ends soon, in a line that says what would do. */
    if (labelled && g->of->vertices <= g->job->memory / 20)
        GS_TRY(scatter_labels(g));
    if (g->types.table != NULL)
        GS_TRY(gs_part__types_join(g->in, g->job, &g->types));
    if (labelled)
        g->in->classes = (uint32_t)g->classes;
    return GS_OK;
}

static gs_status graphbolt_read(gs_part_input *in, gs_part_job *job)
{
    graphbolt g = {.in = in, .job = job, .of = in, .label = {{.npy.fd = -1}, {.npy.fd = -1}, {.npy.fd = -1}}};
    GS_FREED char *const path = gs_path_join(in->path, NAME);
    gs_status st;

    GS_NEED(path != NULL, "%s: no memory for a path", in->path);
    if ((st = tree_open(&g.yaml, path)) == GS_OK)
        st = read_metadata(&g);
    for (int i = 0; i < 3; i++)
        gs_part__file_close(&g.label[i]);
    gs_part__types_free(&g.types);
    tree_close(g.yaml);
    return st;
}

const gs_part_format gs_part__graphbolt_formats[] = {
    {.name = "graphbolt", .words = "a folder with " NAME, .has = {NAME}, .read = graphbolt_read},
    {0},
};
