/* input_ogb.c - the folders of the Open Graph Benchmark, as the ogb package downloads and reads them:
 * raw/{edge,edge-feat,node-feat,node-label,num-node-list}.csv.gz, or, of its largest graph, raw/{data,node-label}.npz;
 * and split/NAME/{train,valid,test}.csv.gz. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/text_lines.h"

static const gs_part_array raw_arrays[] = {
    {GS_PART_ROLE(edge), "raw/edge.csv.gz", GS_PART_TABLE, GS_I64, {NULL}},
    {GS_PART_ROLE(feature), "raw/node-feat.csv.gz", GS_PART_TABLE, GS_F32, {"node_feat.csv.gz"}},
    {GS_PART_ROLE(edge_feature), "raw/edge-feat.csv.gz", GS_PART_TABLE, GS_F32, {"edge_feat.csv.gz"}},
    {GS_PART_ROLE(label), "raw/node-label.csv.gz", GS_PART_TABLE, GS_F64, {"node_label.csv.gz", "label.csv.gz"}},
    {0, "raw/num-node-list.csv.gz", GS_PART_OWN, 0, {NULL}},
    {0, "raw/num-edge-list.csv.gz", GS_PART_OWN, 0, {NULL}},
    {0, "raw/data.npz", GS_PART_OWN, 0, {NULL}},
    {0, "raw/node-label.npz", GS_PART_OWN, 0, {NULL}},
    {0},
};
static const gs_part_array split_arrays[] = {
    {GS_PART_ROLE(split[0]), "train.csv.gz", GS_PART_TABLE, GS_I64, {NULL}},
    {GS_PART_ROLE(split[1]), "valid.csv.gz", GS_PART_TABLE, GS_I64, {"val.csv.gz"}},
    {GS_PART_ROLE(split[2]), "test.csv.gz", GS_PART_TABLE, GS_I64, {NULL}},
    {0},
};

/* The one number of a list that has one for each graph of the folder; 0 where there is no such table. */
static gs_status read_count(uint64_t *out, const gs_part_input *in, gs_part_job *job, const char *name)
{
    GS_ENDS(gs_part__file_close) gs_part_file f = {.npy.fd = -1};
    int64_t v = 0;

    GS_TRY(gs_part__table_open(&f, job, in->path, name, GS_I64));
    if (f.path != NULL) {
        if (f.npy.shape[0] != 1 || f.npy.shape[1] != 1)
            return gs_fail(GS_EFORMAT, "%s: counts %lu graphs; a store holds one", f.path,
                           f.npy.shape[0] * f.npy.shape[1]);
        GS_TRY(gs_npy_read_rows(&f.npy, &v, 0, 1, f.path));
        if (v < 1)
            return gs_fail(GS_EFORMAT, "%s: line 1: is %lld, must be at least 1", f.path, (long long)v);
    }
    *out = (uint64_t)v;
    return GS_OK;
}

/* The only folder in split/, a new string; NULL where there is none. */
static gs_status find_split(char **out, const char *path)
{
    GS_FREED char *const split = gs_path_join(path, "split");

    *out = NULL;
    GS_NEED(split != NULL, "%s: no memory for a path", path);
    GS_ENDS(gs_closedir_at) DIR *const d = opendir(split);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        GS_FREED char *folder = gs_path_join(split, e->d_name);
        if (e->d_name[0] == '.' || folder == NULL || !gs_path_is_dir(folder))
            continue;
        if (*out != NULL)
            return gs_fail(GS_EFORMAT, "%s: has more than one way to split; move all but one away", split);
        *out = GS_HANDED_OVER(folder);
    }
    return GS_OK;
}

/* Warns of files that nothing reads, and of edges that the ogb package would add. */
static void warn_of_rest(const gs_part_input *in, const gs_part_job *job, const char *split)
{
    gs_part__arrays_warn(in->path, "raw", raw_arrays, job);
    if (split != NULL)
        gs_part__arrays_warn(split, "", split_arrays, job);
    if (!job->opt->undirected && (strstr(in->path, "products") != NULL || strstr(in->path, "proteins") != NULL))
        gs_part__warn(job,
                      "%s: ogb's loader adds the inverse of each edge of ogbn-products and ogbn-proteins, which are "
                      "stored once; partition with .undirected for the same",
                      in->path);
}

/* The one number of an array that has one for each graph; 0 where there is none. */
static gs_status npz_count(uint64_t *out, gs_npz *z, gs_part_job *job, const char *name)
{
    GS_ENDS(gs_part__file_close) gs_part_file f = {.npy.fd = -1};
    char raw[8];
    int64_t v = 0;

    GS_TRY(gs_part__npz_array(&f, z, job, name));
    if (f.npy.fd >= 0) {
        if (f.npy.shape[0] * f.npy.shape[1] != 1 || !gs_part__is_integer(f.npy.dtype))
            return gs_fail(GS_EFORMAT, "%s: counts %lu graphs; a store holds one", f.path, f.npy.shape[0]);
        GS_TRY(gs_npy_read_rows(&f.npy, raw, 0, 1, f.path));
        gs_part__to_i64(&v, raw, f.npy.dtype, 1);
        if (v < 1)
            return gs_fail(GS_EFORMAT, "%s: is %lld, must be at least 1", f.path, (long long)v);
    }
    *out = (uint64_t)v;
    return GS_OK;
}

/* *z stays NULL where the file is not there; *path is the caller's. */
static gs_status npz_open(gs_npz **z, char **path, const gs_part_input *in, const char *file)
{
    GS_NEED((*path = gs_path_join(in->path, file)) != NULL, "%s: no memory for a path", in->path);
    return gs_path_is_absent(*path) ? GS_OK : gs_part__npz_open(z, *path);
}

static void warn_of_members(const gs_part_job *job, const gs_npz *z, const char *path)
{
    for (uint64_t k = 0; k < gs_part__npz_count(z); k++) {
        const char *const name = gs_part__npz_name(z, k);
        if (strcmp(name, "edge_index") != 0 && strcmp(name, "node_feat") != 0 && strcmp(name, "edge_feat") != 0 &&
            strncmp(name, "num_", 4) != 0)
            gs_part__warn(job, "%s/%s.npy: is not read", path, name);
    }
}

/* The binary form of the tables. */
static gs_status read_binary(gs_part_input *in, gs_part_job *job, uint64_t *vertices, uint64_t *edges)
{
    GS_ENDS(gs_part__npz_close_at) gs_npz *data = NULL;
    GS_ENDS(gs_part__npz_close_at) gs_npz *label = NULL;
    GS_FREED char *data_path = NULL;
    GS_FREED char *label_path = NULL;

    in->two_rows = true;
    GS_TRY(npz_open(&data, &data_path, in, "raw/data.npz"));
    GS_TRY(npz_open(&label, &label_path, in, "raw/node-label.npz"));
    warn_of_members(job, data, data_path);
    if (!gs_part__npz_has(data, "edge_index"))
        return gs_fail(GS_EFORMAT, "%s: holds no array edge_index; the first of its arrays is %s", data_path,
                       gs_part__npz_name(data, 0));
    else if (label != NULL && !gs_part__npz_has(label, "node_label"))
        return gs_fail(GS_EFORMAT, "%s: holds no array node_label; the first of its arrays is %s", label_path,
                       gs_part__npz_name(label, 0));
    GS_TRY(npz_count(vertices, data, job, "num_nodes_list"));
    GS_TRY(npz_count(edges, data, job, "num_edges_list"));
    GS_TRY(gs_part__npz_array(&in->edge, data, job, "edge_index"));
    GS_TRY(gs_part__npz_array(&in->feature, data, job, "node_feat"));
    GS_TRY(gs_part__npz_array(&in->edge_feature, data, job, "edge_feat"));
    if (label != NULL)
        GS_TRY(gs_part__npz_array(&in->label, label, job, "node_label"));
    return GS_OK;
}

static gs_status read_tables(gs_part_input *in, gs_part_job *job, uint64_t *vertices, uint64_t *edges)
{
    GS_TRY(read_count(vertices, in, job, "raw/num-node-list.csv.gz"));
    GS_TRY(read_count(edges, in, job, "raw/num-edge-list.csv.gz"));
    return gs_part__arrays_open(in, job, in->path, raw_arrays);
}

static gs_status ogb_read(gs_part_input *in, gs_part_job *job)
{
    uint64_t vertices = 0, edges = 0;
    const bool binary = gs_path_has(in->path, "raw/data.npz");
    GS_FREED char *split = NULL;

    GS_TRY(find_split(&split, in->path));
    warn_of_rest(in, job, split);
    GS_TRY(binary ? read_binary(in, job, &vertices, &edges) : read_tables(in, job, &vertices, &edges));
    if (split != NULL)
        GS_TRY(gs_part__arrays_open(in, job, split, split_arrays));
    if (in->feature.npy.fd >= 0)
        in->feature.npy.dims = 2;
    GS_TRY(gs_part__files_check(in, vertices, 0));
    if (edges != 0 && edges != in->edges)
        return gs_fail(GS_EFORMAT, "%s: has %lu edges; raw/ says %lu", in->edge.path, in->edges, edges);
    return GS_OK;
}

/* ---- several types of vertices: ogbn-mag ---------------------------------------------
 *
 *   raw/num-node-dict.csv.gz              the types of vertices, and how many each has
 *   raw/triplet-type-list.csv.gz          source,relation,destination, a line each
 *   raw/relations/S___R___D/edge.csv.gz, num-edge-list.csv.gz
 *   raw/node-feat/TYPE/node-feat.csv.gz, raw/node-label/TYPE/node-label.csv.gz
 *   split/NAME/TYPE/{train,valid,test}.csv.gz
 *   raw/nodetype-has-feat.csv.gz, raw/nodetype-has-label.csv.gz, split/NAME/nodetype-has-split.csv.gz
 *                                         which types these are of; each may be missing
 *
 * Or, as ogb's DatasetSaver writes it, for all but the split an archive with an array for each TYPE or S___R___D.
 * Types and relations are numbered in the order of their names, as the ogb package sorts them. */

#define NODES "raw/num-node-dict.csv.gz"
#define TRIPLETS "raw/triplet-type-list.csv.gz"
#define SMALL_BYTES (256 * GS_KIB) /* of a text that lists types */
#define MOST_LINES GS_MOST_RELATIONS

enum { EDGES, EDGE_COUNTS, EDGE_FEATURES, VERTEX_COUNTS, VERTEX_FEATURES, VERTEX_LABELS, ARCHIVES };
/* All files of raw/, those first. */
static const gs_part_array typed_files[] = {
    [EDGES] = {0, "raw/edge_index_dict.npz", GS_PART_OWN, 0, {NULL}},
    [EDGE_COUNTS] = {0, "raw/num_edges_dict.npz", GS_PART_OWN, 0, {NULL}},
    [EDGE_FEATURES] = {0, "raw/edge_feat_dict.npz", GS_PART_OWN, 0, {NULL}},
    [VERTEX_COUNTS] = {0, "raw/num_nodes_dict.npz", GS_PART_OWN, 0, {NULL}},
    [VERTEX_FEATURES] = {0, "raw/node_feat_dict.npz", GS_PART_OWN, 0, {NULL}},
    [VERTEX_LABELS] = {0, "raw/node-label.npz", GS_PART_OWN, 0, {NULL}},
    {0, NODES, GS_PART_OWN, 0, {NULL}},
    {0, TRIPLETS, GS_PART_OWN, 0, {NULL}},
    {0, "raw/nodetype-has-feat.csv.gz", GS_PART_OWN, 0, {NULL}},
    {0, "raw/nodetype-has-label.csv.gz", GS_PART_OWN, 0, {NULL}},
    {0},
};
static const gs_part_array split_files[] = {{0, "nodetype-has-split.csv.gz", GS_PART_OWN, 0, {NULL}}, {0}};

static const gs_part_array feature_array[] = {
    {GS_PART_ROLE(feature), "node-feat.csv.gz", GS_PART_TABLE, GS_F32, {NULL}}, {0}};
static const gs_part_array label_array[] = {
    {GS_PART_ROLE(label), "node-label.csv.gz", GS_PART_TABLE, GS_F64, {NULL}}, {0}};
static const gs_part_array relation_arrays[] = {
    {GS_PART_ROLE(edge), "edge.csv.gz", GS_PART_TABLE, GS_I64, {NULL}},
    {GS_PART_ROLE(edge_feature), "edge-feat.csv.gz", GS_PART_TABLE, GS_F32, {"edge_feat.csv.gz"}},
    {0, "num-edge-list.csv.gz", GS_PART_OWN, 0, {NULL}},
    {0},
};

/* Tables that some types of vertices have, in a folder of the type's name, and the table that says which types. */
typedef struct family {
    const char *folder, *says; /* within raw/, or within the one folder in split/ */
    const gs_part_array *tables;
} family;
enum { FEATURES, LABELS, SPLITS, FAMILIES };
static const family families[FAMILIES] = {
    {"raw/node-feat", "raw/nodetype-has-feat.csv.gz", feature_array},
    {"raw/node-label", "raw/nodetype-has-label.csv.gz", label_array},
    {"", "nodetype-has-split.csv.gz", split_arrays},
};
typedef enum has { HAS_UNSAID, HAS_NONE, HAS_THEM } has;

typedef struct typed_folder {
    gs_part_input *in;
    gs_part_job *job;
    gs_part_types t;
    char *split;                             /* the one folder in split/; NULL: none */
    has has[FAMILIES][GS_MOST_VERTEX_TYPES]; /* by type */
    gs_npz *archive[ARCHIVES];               /* NULL where it is not there */
    char *archive_path[ARCHIVES];
} typed_folder;

/* A small text, unpacked, and its lines that are not empty. */
typedef struct lines {
    char *path, *text, *line[MOST_LINES];
    uint32_t count;
} lines;

static gs_status read_lines(lines *out, const char *folder, gs_part_job *job, const char *name)
{
    GS_ENDS(gs_part__stream_close_at) gs_stream *stream = NULL;
    uint64_t got = 0;

    *out = (lines){.path = gs_path_join(folder, name), .text = gs_calloc(SMALL_BYTES + 1, 1)};
    GS_NEED(out->path != NULL && out->text != NULL, "%s: no memory to read it", folder);
    GS_TRY(gs_part__stream_open(&stream, out->path, job->memory));
    GS_TRY(gs_part__stream_read(stream, out->text, SMALL_BYTES, &got));
    if (got == SMALL_BYTES)
        return gs_fail(GS_EFORMAT, "%s: is longer than a list of types", out->path);
    char *rest = out->text;
    for (char *line; (line = strsep(&rest, "\r\n")) != NULL;) {
        if (*line == '\0')
            continue;
        if (out->count == MOST_LINES)
            return gs_fail(GS_EUNSUPPORTED, "%s: has more than %u lines", out->path, MOST_LINES);
        out->line[out->count++] = line;
    }
    return GS_OK;
}

static void lines_free(lines *l)
{
    gs_free(l->path);
    gs_free(l->text);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const gs_vertex_type *)a)->name, ((const gs_vertex_type *)b)->name);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* -- the types */

static gs_status add_type(typed_folder *f, const char *name, uint64_t vertices, const char *path)
{
    const uint32_t before = f->t.table->types;
    uint32_t k = 0;

    GS_TRY(gs_part__type_find(&k, &f->t, name, true, path));
    if (f->t.table->types == before)
        return gs_fail(GS_EFORMAT, "%s: type %s is there twice", path, name);
    f->t.table->type[k].vertices = vertices;
    return GS_OK;
}

/* What a table's second line says of a type: how many vertices, for `by_type` NULL, or whether it has something. */
static gs_status read_value(typed_folder *f, has *by_type, const char *type, const char *value, const char *path)
{
    char *end = NULL;
    const unsigned long long n = by_type == NULL && value != NULL ? strtoull(value, &end, 10) : 0;
    uint32_t k = 0;

    if (by_type == NULL && (value == NULL || end == value || *end != '\0' || n >= UINT32_MAX))
        return gs_fail(GS_EFORMAT, "%s: line 2: says not how many vertices of type %.80s there are", path, type);
    if (by_type == NULL)
        return add_type(f, type, n, path);
    GS_TRY(gs_part__type_find(&k, &f->t, type, false, path));
    if (value == NULL || (strcmp(value, "True") != 0 && strcmp(value, "False") != 0))
        return gs_fail(GS_EFORMAT, "%s: line 2: says of type %s neither True nor False", path, type);
    by_type[k] = *value == 'T' ? HAS_THEM : HAS_NONE;
    return GS_OK;
}

/* A table of two lines, types and values. */
static gs_status read_values(typed_folder *f, has *by_type, const char *folder, const char *name)
{
    GS_ENDS(lines_free) lines l = {0};

    GS_TRY(read_lines(&l, folder, f->job, name));
    if (l.count != 2)
        return gs_fail(GS_EFORMAT, "%s: is not a line of types and one of %s", l.path,
                       by_type == NULL ? "numbers" : "True and False");
    char *types = l.line[0], *values = l.line[1];
    for (char *type; (type = strsep(&types, ",")) != NULL;)
        GS_TRY(read_value(f, by_type, type, strsep(&values, ","), l.path));
    return values == NULL ? GS_OK
                          : gs_fail(GS_EFORMAT, "%s: line 2: has more values than there are types in line 1", l.path);
}

static gs_status read_vertices(typed_folder *f)
{
    gs_npz *const counts = f->archive[VERTEX_COUNTS];

    if (counts == NULL)
        GS_TRY(read_values(f, NULL, f->in->path, NODES));
    for (uint64_t k = 0; counts != NULL && k < gs_part__npz_count(counts); k++) {
        uint64_t n = 0;
        GS_TRY(npz_count(&n, counts, f->job, gs_part__npz_name(counts, k)));
        GS_TRY(add_type(f, gs_part__npz_name(counts, k), n, f->archive_path[VERTEX_COUNTS]));
    }
    qsort(f->t.table->type, f->t.table->types, sizeof(f->t.table->type[0]), by_name);
    for (size_t k = 0; k < FAMILIES; k++) {
        const char *const folder = k == SPLITS ? f->split : f->in->path;
        if (folder != NULL && gs_path_has(folder, families[k].says))
            GS_TRY(read_values(f, f->has[k], folder, families[k].says));
    }
    return GS_OK;
}

/* -- relations */

/* Edges of "source___relation___destination", and how many there are said to be. */
static gs_status open_edges(typed_folder *f, gs_part_input *part, uint64_t *stated, const char *triplet)
{
    char folder[3 * GS_TYPE_NAME_BYTES + 64];

    if (f->archive[EDGES] != NULL) {
        part->two_rows = true;
        GS_NEED((part->path = gs_strdup(f->archive_path[EDGES])) != NULL, "%s: no memory for a path", f->in->path);
        GS_TRY(gs_part__npz_array(&part->edge, f->archive[EDGES], f->job, triplet));
        if (f->archive[EDGE_FEATURES] != NULL)
            GS_TRY(gs_part__npz_array(&part->edge_feature, f->archive[EDGE_FEATURES], f->job, triplet));
        return f->archive[EDGE_COUNTS] != NULL ? npz_count(stated, f->archive[EDGE_COUNTS], f->job, triplet) : GS_OK;
    }
    snprintf(folder, sizeof(folder), "raw/relations/%s", triplet);
    GS_NEED((part->path = gs_path_join(f->in->path, folder)) != NULL, "%s: no memory for a path", f->in->path);
    gs_part__arrays_warn(part->path, "", relation_arrays, f->job);
    GS_TRY(gs_part__arrays_open(part, f->job, part->path, relation_arrays));
    if (part->edge.path == NULL || part->edge.npy.fd < 0)
        return gs_fail(GS_ENOTFOUND, "%s/edge.csv.gz: there is no such file, but %s/" TRIPLETS " lists the relation",
                       part->path, f->in->path);
    strncat(folder, "/num-edge-list.csv.gz", sizeof(folder) - strlen(folder) - 1);
    return read_count(stated, f->in, f->job, folder);
}

/* A relation, of a line "source,relation,destination". */
static gs_status read_relation(typed_folder *f, char *line, const char *place)
{
    gs_part_input *const part = gs_part__relation_part(&f->t, f->t.table->relations);
    const char *const source = strsep(&line, ","), *const name = strsep(&line, ",");
    char triplet[3 * GS_TYPE_NAME_BYTES + 16];
    uint32_t from = 0, to = 0;
    uint64_t stated = 0;

    if (name == NULL || line == NULL)
        return gs_fail(GS_EFORMAT, "%s: '%.80s' is not source,relation,destination", place, source);
    GS_TRY(gs_part__type_find(&from, &f->t, source, false, place));
    GS_TRY(gs_part__type_find(&to, &f->t, line, false, place));
    GS_TRY(gs_part__relation_add(&f->t, name, from, to, place));
    snprintf(triplet, sizeof(triplet), "%s___%s___%s", source, name, line);
    GS_TRY(open_edges(f, part, &stated, triplet));
    GS_TRY(gs_part__edges_check(part));
    if (stated != 0 && stated != part->edges)
        return gs_fail(GS_EFORMAT, "%s: has %lu edges; %s says %lu", part->edge.path, part->edges,
                       f->archive[EDGES] != NULL ? "num_edges_dict.npz" : "num-edge-list", stated);
    return GS_OK;
}

/* The archive's names as lines of a list of relations: "S___R___D" becomes "S,R,D". */
static gs_status list_relations(lines *out, const typed_folder *f)
{
    const gs_npz *const z = f->archive[EDGES];
    const uint64_t count = gs_part__npz_count(z);
    size_t room = 1;
    char *at;

    *out = (lines){.path = gs_strdup(f->archive_path[EDGES])};
    for (uint64_t k = 0; k < count; k++)
        room += strlen(gs_part__npz_name(z, k)) + 1;
    if (out->path == NULL || (out->text = at = gs_calloc(room, 1)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", f->in->path);
    if (count > MOST_LINES)
        return gs_fail(GS_EUNSUPPORTED, "%s: has more than %u types of edges", out->path, MOST_LINES);
    for (uint64_t k = 0; k < count; k++) {
        const char *name = gs_part__npz_name(z, k);
        out->line[out->count++] = at;
        for (const char *bar; (bar = strstr(name, "___")) != NULL; name = bar + 3) {
            memcpy(at, name, (size_t)(bar - name));
            at += bar - name;
            *at++ = ',';
        }
        at = stpcpy(at, name) + 1;
    }
    return GS_OK;
}

static gs_status read_relations(typed_folder *f)
{
    GS_ENDS(lines_free) lines l = {0};

    GS_TRY(f->archive[EDGES] != NULL ? list_relations(&l, f) : read_lines(&l, f->in->path, f->job, TRIPLETS));
    if (l.count == 0)
        return gs_fail(GS_EFORMAT, "%s: lists no relation", l.path);
    qsort(l.line, l.count, sizeof(l.line[0]), by_text);
    for (uint32_t k = 0; k < l.count; k++)
        GS_TRY(read_relation(f, l.line[k], l.path));
    return GS_OK;
}

/* -- what the types have */

static gs_status missing(const typed_folder *f, size_t k, uint32_t type, const char *folder, const char *name)
{
    char near[GS_TYPE_NAME_BYTES];

    if (gs_part__near_file(near, sizeof(near), folder, name))
        return gs_fail(GS_ENOTFOUND, "%s/%s: there is no such file; was %s meant?", folder, name, near);
    return gs_fail(GS_ENOTFOUND, "%s/%s: there is no such file, but %s", folder, name,
                   f->has[k][type] == HAS_THEM ? "a table says that its type has one (nodetype-has-)"
                                               : "there is a folder for it");
}

/* All tables of a family are there for a type, or none. */
static gs_status read_family(typed_folder *f, size_t k, uint32_t type)
{
    gs_part_input *const part = gs_part__type_part(&f->t, type);
    GS_FREED char *const all = k == SPLITS ? gs_strdup(f->split) : gs_path_join(f->in->path, families[k].folder);
    GS_FREED char *const folder = all != NULL ? gs_path_join(all, f->t.table->type[type].name) : NULL;

    GS_NEED(folder != NULL, "%s: no memory for a path", f->in->path);
    const bool there = gs_path_is_dir(folder);
    if (there && f->has[k][type] == HAS_NONE)
        gs_part__warn(f->job, "%s: is not read; %s says that its type has none", folder, families[k].says);
    else if (there || f->has[k][type] == HAS_THEM) {
        gs_part__arrays_warn(folder, "", families[k].tables, f->job);
        GS_TRY(gs_part__arrays_open(part, f->job, folder, families[k].tables));
        for (const gs_part_array *a = families[k].tables; a->name != NULL; a++)
            if (((const gs_part_file *)(const void *)((const char *)part + a->role))->npy.fd < 0)
                return missing(f, k, type, folder, a->name);
    }
    return GS_OK;
}

static gs_status read_type(typed_folder *f, uint32_t type)
{
    gs_part_input *const part = gs_part__type_part(&f->t, type);
    const char *const name = f->t.table->type[type].name;
    gs_npz *const features = f->archive[VERTEX_FEATURES], *const labels = f->archive[VERTEX_LABELS];

    if (features != NULL)
        GS_TRY(gs_part__npz_array(&part->feature, features, f->job, name));
    if (labels != NULL)
        GS_TRY(gs_part__npz_array(&part->label, labels, f->job, name));
    for (size_t k = f->archive[EDGES] != NULL ? SPLITS : FEATURES; k < FAMILIES; k++)
        if (k != SPLITS || f->split != NULL)
            GS_TRY(read_family(f, k, type));
    if (part->feature.npy.fd >= 0)
        part->feature.npy.dims = 2;
    return GS_OK;
}

/* -- the whole */

/* Arrays of types and relations that are not there are of no use. */
static gs_status check_members(typed_folder *f, size_t k)
{
    gs_npz *const z = f->archive[k];
    uint32_t type = 0;

    for (uint64_t i = 0; z != NULL && i < gs_part__npz_count(z); i++) {
        const char *const name = gs_part__npz_name(z, i);
        if (k >= VERTEX_COUNTS)
            GS_TRY(gs_part__type_find(&type, &f->t, name, false, f->archive_path[k]));
        else if (!gs_part__npz_has(f->archive[EDGES], name))
            return gs_fail(GS_EFORMAT, "%s: has an array '%.120s', and %s has no such edges; add them, or remove it",
                           f->archive_path[k], name, typed_files[EDGES].name);
    }
    return GS_OK;
}

static gs_status open_archives(typed_folder *f)
{
    for (size_t k = 0; k < ARCHIVES; k++) {
        GS_TRY(npz_open(&f->archive[k], &f->archive_path[k], f->in, typed_files[k].name));
        if (f->archive[k] == NULL && (k == EDGES || k == VERTEX_COUNTS))
            return gs_fail(GS_ENOTFOUND, "%s: there is no such file, and its types are in it", f->archive_path[k]);
    }
    return GS_OK;
}

static gs_status read_typed(typed_folder *f)
{
    GS_TRY(find_split(&f->split, f->in->path));
    gs_part__arrays_warn(f->in->path, "raw", typed_files, f->job);
    if (f->split != NULL)
        gs_part__arrays_warn(f->split, "", split_files, f->job);
    if (!gs_path_has(f->in->path, TRIPLETS))
        GS_TRY(open_archives(f));
    GS_TRY(gs_part__types_make(&f->t, f->in->path));
    GS_TRY(read_vertices(f));
    for (size_t k = 0; k < ARCHIVES; k++)
        GS_TRY(check_members(f, k));
    GS_TRY(read_relations(f));
    for (uint32_t k = 0; k < f->t.table->types; k++)
        GS_TRY(read_type(f, k));
    return gs_part__types_join(f->in, f->job, &f->t);
}

static gs_status ogb_types_read(gs_part_input *in, gs_part_job *job)
{
    GS_FREED typed_folder *const f = gs_calloc(1, sizeof(*f));

    GS_NEED(f != NULL, "%s: no memory to read it", in->path);
    f->in = in;
    f->job = job;
    const gs_status st = read_typed(f);
    gs_part__types_free(&f->t);
    for (size_t k = 0; k < ARCHIVES; k++) {
        gs_part__npz_close(f->archive[k]);
        gs_free(f->archive_path[k]);
    }
    gs_free(f->split);
    return st;
}

const gs_part_format gs_part__ogb_formats[] = {
    {.name = "ogb-types", .words = "a folder with raw/triplet-type-list.csv.gz or raw/edge_index_dict.npz",
     .has = {TRIPLETS, "raw/edge_index_dict.npz"}, .read = ogb_types_read},
    {.name = "ogb", .words = "a folder with raw/edge.csv.gz or raw/data.npz",
     .has = {"raw/edge.csv.gz", "raw/edge.csv", "raw/edge.csv.zst", "raw/data.npz"}, .read = ogb_read},
    {0},
};
