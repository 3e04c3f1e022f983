/* input_ogb.c - the folders of the Open Graph Benchmark, as the ogb package downloads and reads them:
 * raw/{edge,edge-feat,node-feat,node-label,num-node-list}.csv.gz, or, of its largest graph, raw/{data,node-label}.npz;
 * and split/NAME/{train,valid,test}.csv.gz. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/input_files.h"
#include "partition/input_npz.h"
#include "partition/job.h"

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

const gs_part_format gs_part__ogb_formats[] = {
    {"ogb", "a folder with raw/edge.csv.gz or raw/data.npz", true, ogb_looks, NULL, ogb_read},
    {0},
};
