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
#include "partition/stream.h"

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

static bool ogb_looks(const char *path, const gs_part_head *head)
{
    (void)head;
    return gs_path_has(path, "raw/edge.csv.gz") || gs_path_has(path, "raw/edge.csv") ||
           gs_path_has(path, "raw/edge.csv.zst") || gs_path_has(path, "raw/data.npz");
}

/* The one number of a list that has one for each graph of the folder; 0 where there is no such table. */
static gs_status read_count(uint64_t *out, const gs_part_input *in, gs_part_job *job, const char *name)
{
    gs_part_file f = {.npy.fd = -1};
    int64_t v = 0;
    gs_status st = gs_part__table_open(&f, job, in->path, name, GS_I64);

    if (st == GS_OK && f.path != NULL) {
        if (f.npy.shape[0] != 1 || f.npy.shape[1] != 1)
            st = gs_fail(GS_EFORMAT, "%s: counts %llu graphs; a store holds one", f.path,
                         (unsigned long long)(f.npy.shape[0] * f.npy.shape[1]));
        else if ((st = gs_npy_read_rows(&f.npy, &v, 0, 1, f.path)) == GS_OK && v < 1)
            st = gs_fail(GS_EFORMAT, "%s: line 1: is %lld, must be at least 1", f.path, (long long)v);
    }
    gs_part__file_close(&f);
    if (st == GS_OK)
        *out = (uint64_t)v;
    return st;
}

/* The only folder in split/, a new string; NULL where there is none. */
static gs_status find_split(char **out, const char *path)
{
    char *const split = gs_path_join(path, "split");
    gs_status st = GS_OK;

    *out = NULL;
    if (split == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", path);
    DIR *const d = opendir(split);
    for (const struct dirent *e; d != NULL && st == GS_OK && (e = readdir(d)) != NULL;) {
        char *const folder = gs_path_join(split, e->d_name);
        if (e->d_name[0] == '.' || folder == NULL || !gs_path_is_dir(folder)) {
            gs_free(folder);
            continue;
        }
        if (*out != NULL)
            st = gs_fail(GS_EFORMAT, "%s: has more than one way to split; move all but one away", split);
        gs_free(*out);
        *out = folder;
    }
    if (d != NULL)
        closedir(d);
    gs_free(split);
    return st;
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
    gs_part_file f = {.npy.fd = -1};
    char raw[8];
    int64_t v = 0;
    gs_status st = gs_part__npz_array(&f, z, job, name);

    if (st == GS_OK && f.npy.fd >= 0) {
        if (f.npy.shape[0] * f.npy.shape[1] != 1 || !gs_part__is_integer(f.npy.dtype))
            st = gs_fail(GS_EFORMAT, "%s: counts %llu graphs; a store holds one", f.path,
                         (unsigned long long)f.npy.shape[0]);
        else if ((st = gs_npy_read_rows(&f.npy, raw, 0, 1, f.path)) == GS_OK) {
            gs_part__to_i64(&v, raw, f.npy.dtype, 1);
            if (v < 1)
                st = gs_fail(GS_EFORMAT, "%s: is %lld, must be at least 1", f.path, (long long)v);
        }
    }
    gs_part__file_close(&f);
    *out = (uint64_t)v;
    return st;
}

/* *z stays NULL where the file is not there; *path is the caller's. */
static gs_status npz_open(gs_npz **z, char **path, const gs_part_input *in, const char *file)
{
    if ((*path = gs_path_join(in->path, file)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", in->path);
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
    gs_npz *data = NULL, *label = NULL;
    char *data_path = NULL, *label_path = NULL;
    gs_status st;

    in->two_rows = true;
    if ((st = npz_open(&data, &data_path, in, "raw/data.npz")) != GS_OK ||
        (st = npz_open(&label, &label_path, in, "raw/node-label.npz")) != GS_OK)
        goto done;
    warn_of_members(job, data, data_path);
    if (!gs_part__npz_has(data, "edge_index"))
        st = gs_fail(GS_EFORMAT, "%s: holds no array edge_index; the first of its arrays is %s", data_path,
                     gs_part__npz_name(data, 0));
    else if (label != NULL && !gs_part__npz_has(label, "node_label"))
        st = gs_fail(GS_EFORMAT, "%s: holds no array node_label; the first of its arrays is %s", label_path,
                     gs_part__npz_name(label, 0));
    if (st == GS_OK && (st = npz_count(vertices, data, job, "num_nodes_list")) == GS_OK &&
        (st = npz_count(edges, data, job, "num_edges_list")) == GS_OK &&
        (st = gs_part__npz_array(&in->edge, data, job, "edge_index")) == GS_OK &&
        (st = gs_part__npz_array(&in->feature, data, job, "node_feat")) == GS_OK &&
        (st = gs_part__npz_array(&in->edge_feature, data, job, "edge_feat")) == GS_OK && label != NULL)
        st = gs_part__npz_array(&in->label, label, job, "node_label");
done:
    gs_part__npz_close(data);
    gs_part__npz_close(label);
    gs_free(data_path);
    gs_free(label_path);
    return st;
}

static gs_status read_tables(gs_part_input *in, gs_part_job *job, uint64_t *vertices, uint64_t *edges)
{
    gs_status st;

    if ((st = read_count(vertices, in, job, "raw/num-node-list.csv.gz")) != GS_OK ||
        (st = read_count(edges, in, job, "raw/num-edge-list.csv.gz")) != GS_OK)
        return st;
    return gs_part__arrays_open(in, job, in->path, raw_arrays);
}

static gs_status ogb_read(gs_part_input *in, gs_part_job *job)
{
    uint64_t vertices = 0, edges = 0;
    const bool binary = gs_path_has(in->path, "raw/data.npz");
    char *split = NULL;
    gs_status st = find_split(&split, in->path);

    if (st != GS_OK)
        goto done;
    warn_of_rest(in, job, split);
    if ((st = binary ? read_binary(in, job, &vertices, &edges) : read_tables(in, job, &vertices, &edges)) != GS_OK ||
        (split != NULL && (st = gs_part__arrays_open(in, job, split, split_arrays)) != GS_OK))
        goto done;
    if (in->feature.npy.fd >= 0)
        in->feature.npy.dims = 2;
    st = gs_part__files_check(in, vertices, 0);
    if (st == GS_OK && edges != 0 && edges != in->edges)
        st = gs_fail(GS_EFORMAT, "%s: has %llu edges; raw/ says %llu", in->edge.path, (unsigned long long)in->edges,
                     (unsigned long long)edges);
done:
    gs_free(split);
    return st;
}

/* ---- several types of vertices: ogbn-mag ---------------------------------------------
 *
 *   raw/num-node-dict.csv.gz              the types of vertices, and how many each has
 *   raw/triplet-type-list.csv.gz          source,relation,destination, a line each
 *   raw/relations/S___R___D/edge.csv.gz, num-edge-list.csv.gz
 *   raw/node-feat/TYPE/node-feat.csv.gz, raw/node-label/TYPE/node-label.csv.gz
 *   split/NAME/TYPE/{train,valid,test}.csv.gz
 *
 * Types and relations are numbered in the order of their names, as the ogb package sorts them. */

#define NODES "raw/num-node-dict.csv.gz"
#define TRIPLETS "raw/triplet-type-list.csv.gz"
#define SMALL_BYTES (256 * GS_KIB) /* of a text that lists types */
#define MOST_LINES GS_MOST_RELATIONS

static const gs_part_array type_arrays[] = {
    {GS_PART_ROLE(feature), "node-feat.csv.gz", GS_PART_TABLE, GS_F32, {NULL}},
    {GS_PART_ROLE(label), "node-label.csv.gz", GS_PART_TABLE, GS_F64, {NULL}},
    {0},
};
static const gs_part_array relation_arrays[] = {
    {GS_PART_ROLE(edge), "edge.csv.gz", GS_PART_TABLE, GS_I64, {NULL}},
    {GS_PART_ROLE(edge_feature), "edge-feat.csv.gz", GS_PART_TABLE, GS_F32, {NULL}},
    {0},
};

static bool ogb_types_looks(const char *path, const gs_part_head *head)
{
    (void)head;
    return gs_path_has(path, TRIPLETS);
}

/* A small text, unpacked, and its lines that are not empty. */
typedef struct lines {
    char *path, *text, *line[MOST_LINES];
    uint32_t count;
} lines;

static gs_status read_lines(lines *out, const gs_part_input *in, gs_part_job *job, const char *name)
{
    gs_stream *stream = NULL;
    uint64_t got = 0;
    gs_status st;

    *out = (lines){.path = gs_path_join(in->path, name), .text = gs_calloc(SMALL_BYTES + 1, 1)};
    if (out->path == NULL || out->text == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", in->path);
    if ((st = gs_part__stream_open(&stream, out->path, job->memory)) == GS_OK)
        st = gs_part__stream_read(stream, out->text, SMALL_BYTES, &got);
    gs_part__stream_close(stream);
    if (st == GS_OK && got == SMALL_BYTES)
        return gs_fail(GS_EFORMAT, "%s: is longer than a list of types", out->path);
    char *rest = out->text;
    for (char *line; st == GS_OK && (line = strsep(&rest, "\r\n")) != NULL;) {
        if (*line == '\0')
            continue;
        if (out->count == MOST_LINES)
            return gs_fail(GS_EUNSUPPORTED, "%s: has more than %u lines", out->path, MOST_LINES);
        out->line[out->count++] = line;
    }
    return st;
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

/* The types, and how many vertices each has. */
static gs_status read_nodes(gs_part_types *t, gs_part_input *in, gs_part_job *job)
{
    lines l;
    char *names, *numbers, *name, *number, *end;
    gs_part_types unsorted = {.table = NULL};
    gs_status st = read_lines(&l, in, job, NODES);

    if (st == GS_OK && l.count != 2)
        st = gs_fail(GS_EFORMAT, "%s: is not a line of types and one of numbers", l.path);
    if (st == GS_OK)
        st = gs_part__types_make(&unsorted, in->path);
    for (names = l.line[0], numbers = l.line[1]; st == GS_OK && (name = strsep(&names, ",")) != NULL;) {
        uint32_t k = 0;
        number = strsep(&numbers, ",");
        const unsigned long long n = number != NULL ? strtoull(number, &end, 10) : 0;
        if (number == NULL || end == number || *end != '\0' || n >= UINT32_MAX)
            st = gs_fail(GS_EFORMAT, "%s: line 2: says not how many vertices of type %.80s there are", l.path, name);
        else if ((st = gs_part__type_find(&k, &unsorted, name, true, l.path)) == GS_OK)
            unsorted.table->type[k].vertices = n;
    }
    if (st == GS_OK) {
        *t->table = *unsorted.table;
        qsort(t->table->type, t->table->types, sizeof(t->table->type[0]), by_name);
    }
    gs_part__types_free(&unsorted);
    lines_free(&l);
    return st;
}

/* A relation, of a line "source,relation,destination". */
static gs_status read_relation(gs_part_types *t, gs_part_input *in, gs_part_job *job, char *line, const char *place)
{
    gs_part_input *const part = gs_part__relation_part(t, t->table->relations);
    const char *const source = strsep(&line, ","), *const name = strsep(&line, ",");
    uint32_t from = 0, to = 0;
    char folder[3 * GS_TYPE_NAME_BYTES + 32];
    uint64_t stated = 0;
    gs_status st;

    if (name == NULL || line == NULL)
        return gs_fail(GS_EFORMAT, "%s: '%.80s' is not source,relation,destination", place, source);
    if ((st = gs_part__type_find(&from, t, source, false, place)) != GS_OK ||
        (st = gs_part__type_find(&to, t, line, false, place)) != GS_OK ||
        (st = gs_part__relation_add(t, name, from, to, place)) != GS_OK)
        return st;
    snprintf(folder, sizeof(folder), "raw/relations/%s___%s___%s", source, name, line);
    if ((part->path = gs_path_join(in->path, folder)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", in->path);
    if ((st = gs_part__arrays_open(part, job, part->path, relation_arrays)) != GS_OK)
        return st;
    if (part->edge.path == NULL || part->edge.npy.fd < 0)
        return gs_fail(GS_ENOTFOUND, "%s/edge.csv.gz: there is no such file, but %s lists the relation", part->path,
                       place);
    strncat(folder, "/num-edge-list.csv.gz", sizeof(folder) - strlen(folder) - 1);
    if ((st = gs_part__edges_check(part)) == GS_OK && (st = read_count(&stated, in, job, folder)) == GS_OK &&
        stated != 0 && stated != part->edges)
        st = gs_fail(GS_EFORMAT, "%s: has %llu edges; num-edge-list says %llu", part->edge.path,
                     (unsigned long long)part->edges, (unsigned long long)stated);
    return st;
}

static gs_status read_relations(gs_part_types *t, gs_part_input *in, gs_part_job *job)
{
    lines l;
    gs_status st = read_lines(&l, in, job, TRIPLETS);

    if (st == GS_OK && l.count == 0)
        st = gs_fail(GS_EFORMAT, "%s: lists no relation", l.path);
    qsort(l.line, l.count, sizeof(l.line[0]), by_text);
    for (uint32_t k = 0; k < l.count && st == GS_OK; k++)
        st = read_relation(t, in, job, l.line[k], l.path);
    lines_free(&l);
    return st;
}

/* What the folders of a type hold, of which each may be missing. */
static gs_status read_type(gs_part_types *t, gs_part_input *in, gs_part_job *job, uint32_t type, const char *split)
{
    static const char *const folders[] = {"raw/node-feat", "raw/node-label", ""};
    const char *const name = t->table->type[type].name;
    gs_part_input *const part = gs_part__type_part(t, type);
    gs_status st = GS_OK;

    for (size_t k = 0; k < GS_ARRAY_LEN(folders) && st == GS_OK; k++) {
        char *const family = k < 2 ? gs_path_join(in->path, folders[k]) : split != NULL ? gs_strdup(split) : NULL;
        char *const folder = family != NULL ? gs_path_join(family, name) : NULL;
        if (folder != NULL && gs_path_is_dir(folder))
            st = k < 2 ? gs_part__table_open(k == 0 ? &part->feature : &part->label, job, folder, type_arrays[k].name,
                                             type_arrays[k].as)
                       : gs_part__arrays_open(part, job, folder, split_arrays);
        gs_free(folder);
        gs_free(family);
    }
    if (st == GS_OK && part->feature.npy.fd >= 0)
        part->feature.npy.dims = 2;
    return st;
}

static gs_status ogb_types_read(gs_part_input *in, gs_part_job *job)
{
    gs_part_types t;
    char *split = NULL;
    gs_status st = find_split(&split, in->path);

    if (st == GS_OK && (st = gs_part__types_make(&t, in->path)) == GS_OK) {
        if ((st = read_nodes(&t, in, job)) == GS_OK)
            st = read_relations(&t, in, job);
        for (uint32_t k = 0; k < t.table->types && st == GS_OK; k++)
            st = read_type(&t, in, job, k, split);
        if (st == GS_OK)
            st = gs_part__types_join(in, job, &t);
        gs_part__types_free(&t);
    }
    gs_free(split);
    return st;
}

const gs_part_format gs_part__ogb_formats[] = {
    {"ogb-types", "a folder with raw/triplet-type-list.csv.gz", true, ogb_types_looks, NULL, ogb_types_read},
    {"ogb", "a folder with raw/edge.csv.gz or raw/data.npz", true, ogb_looks, NULL, ogb_read},
    {0},
};
