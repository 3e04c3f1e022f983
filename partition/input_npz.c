/* input_npz.c - graphs in a .npz file: which array is what, by its name.
 *
 * shchur's files (gnn-benchmark; torch_geometric's Amazon and Coauthor) hold a CSR adjacency matrix, whose entry (i, j)
 * is the edge i -> j, and attributes as CSR or dense. Others hold what a folder of .npy files would. */
#include "partition/input_npz.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/csr_edges.h"
#include "partition/input_npy.h"
#include "partition/input_unread.h"
#include "partition/job.h"
#include "partition/npz.h"

/* Arrays that are opened for this run alone: of the adjacency matrix, and shapes. */
typedef struct opened {
    gs_npz *z;
    gs_part_csr adjacency;
    gs_part_file shape, attributes;
} opened;

#define IN(field) offsetof(gs_part_input, field)

/* Names of one array, the first that is there; each name stands for one thing only. */
static const struct {
    size_t file; /* of a gs_part_input */
    const char *name;
} members[] = {
    {IN(edge), "edges"},           {IN(edge), "edge_index"},       {IN(type), "edge_types"},
    {IN(type), "edge_type"},       {IN(weight), "edge_weights"},   {IN(weight), "edge_weight"},
    {IN(feature), "features"},     {IN(feature), "x"},             {IN(feature), "feat"},
    {IN(feature), "node_feat"},    {IN(feature), "attr_matrix"},   {IN(indptr), "features_indptr"},
    {IN(indptr), "attr_indptr"},   {IN(indptr), "attr_matrix.indptr"}, {IN(indices), "features_indices"},
    {IN(indices), "attr_indices"}, {IN(indices), "attr_matrix.indices"}, {IN(data), "features_data"},
    {IN(data), "attr_data"},       {IN(data), "attr_matrix.data"}, {IN(label), "labels"},
    {IN(label), "y"},              {IN(label), "label"},           {IN(label), "node_label"},
    {IN(split[0]), "train_idx"},   {IN(split[0]), "train_mask"},   {IN(split[1]), "valid_idx"},
    {IN(split[1]), "valid_mask"},  {IN(split[1]), "val_mask"},     {IN(split[1]), "val_idx"},
    {IN(split[2]), "test_idx"},    {IN(split[2]), "test_mask"},
};

static const char *const adjacency_names[][4] = {
    {"adj_indptr", "adj_indices", "adj_data", "adj_shape"},
    {"adj_matrix.indptr", "adj_matrix.indices", "adj_matrix.data", "adj_matrix.shape"},
};
static const char *const attribute_shapes[] = {"attr_shape", "attr_matrix.shape"};

static bool is_read(const char *name)
{
    for (size_t i = 0; i < GS_ARRAY_LEN(members); i++)
        if (strcmp(name, members[i].name) == 0)
            return true;
    for (size_t i = 0; i < GS_ARRAY_LEN(adjacency_names); i++)
        for (size_t k = 0; k < 4; k++)
            if (strcmp(name, adjacency_names[i][k]) == 0)
                return true;
    return strcmp(name, attribute_shapes[0]) == 0 || strcmp(name, attribute_shapes[1]) == 0;
}

static void warn_of_rest(const gs_part_input *in, const gs_part_job *job, const gs_npz *z)
{
    char others[400] = "";
    size_t used = 0;

    for (uint64_t k = 0; k < gs_part__npz_count(z) && used < sizeof(others); k++)
        if (!is_read(gs_part__npz_name(z, k)))
            used += (size_t)snprintf(others + used, sizeof(others) - used, "%s%s", used == 0 ? "" : ", ",
                                     gs_part__npz_name(z, k));
    if (used != 0)
        gs_part__warn(job, "%s: nothing reads %s", in->path, others);
}

/* All members that are there; a second one of the same meaning is an error, as one of them would not count. */
static gs_status open_members(gs_part_input *in, gs_part_job *job, gs_npz *z)
{
    gs_status st = GS_OK;

    for (size_t i = 0; i < GS_ARRAY_LEN(members) && st == GS_OK; i++) {
        gs_part_file *const f = (gs_part_file *)((char *)in + members[i].file);
        if (!gs_part__npz_has(z, members[i].name))
            continue;
        if (f->path != NULL)
            return gs_fail(GS_EFORMAT, "%s: a second array of this meaning is %s; leave one out", f->path,
                           members[i].name);
        st = gs_part__npz_array(f, z, job, members[i].name);
    }
    return st;
}

/* [rows, columns] of a matrix, as SciPy saves them. */
static gs_status read_shape(uint64_t shape[2], const gs_part_file *f)
{
    int64_t v[2];
    char raw[16];
    gs_status st;

    if (!gs_part__is_integer(f->npy.dtype) || f->npy.shape[0] != 2 || f->npy.shape[1] != 1)
        return gs_fail(GS_EFORMAT, "%s: is not two whole numbers, the rows and columns of a matrix", f->path);
    if ((st = gs_npy_read_rows(&f->npy, raw, 0, 2, f->path)) != GS_OK)
        return st;
    gs_part__to_i64(v, raw, f->npy.dtype, 2);
    if (v[0] < 1 || v[1] < 1)
        return gs_fail(GS_EFORMAT, "%s: is %lld, %lld, which no matrix can have", f->path, (long long)v[0],
                       (long long)v[1]);
    shape[0] = (uint64_t)v[0];
    shape[1] = (uint64_t)v[1];
    return GS_OK;
}

static gs_status read_adjacency(gs_part_input *in, gs_part_job *job, opened *o, const char *const names[4])
{
    gs_part_csr *const a = &o->adjacency;
    uint64_t shape[2] = {0};
    gs_status st;

    for (size_t i = 0; i < 4; i++)
        if (!gs_part__npz_has(o->z, names[i]) && i != 2)
            return gs_fail(GS_EFORMAT,
                           "%s: has %s, but not %s; an adjacency matrix is CSR: data, indices, indptr, shape", in->path,
                           names[0], names[i]);
    if ((st = gs_part__npz_array(&a->indptr, o->z, job, names[0])) != GS_OK ||
        (st = gs_part__npz_array(&a->indices, o->z, job, names[1])) != GS_OK ||
        (st = gs_part__npz_array(&a->data, o->z, job, names[2])) != GS_OK ||
        (st = gs_part__npz_array(&o->shape, o->z, job, names[3])) != GS_OK ||
        (st = read_shape(shape, &o->shape)) != GS_OK)
        return st;
    if (shape[0] != shape[1])
        return gs_fail(GS_EFORMAT, "%s: has %llu rows and %llu columns; a graph's matrix is square", o->shape.path,
                       (unsigned long long)shape[0], (unsigned long long)shape[1]);
    gs_part__warn(job, "%s: all entries are taken as they are; torch_geometric's reader also adds the reverse of each "
                       "edge (.undirected does), drops self loops, and makes positive features 1",
                  in->path);
    in->vertices = shape[0];
    return gs_part__csr_edges(in, job, a);
}

static gs_status read_graph(gs_part_input *in, gs_part_job *job, opened *o)
{
    uint64_t attributes[2] = {0};
    size_t way = 0;
    gs_status st;

    while (way < GS_ARRAY_LEN(adjacency_names) && !gs_part__npz_has(o->z, adjacency_names[way][0]))
        way++;
    in->two_rows = gs_part__npz_has(o->z, "edge_index");
    if ((st = open_members(in, job, o->z)) != GS_OK)
        return st;
    if (in->edge.path == NULL && way == GS_ARRAY_LEN(adjacency_names))
        return gs_fail(GS_EFORMAT,
                       "%s: holds no array of edges: neither edges, nor edge_index, nor adj_indptr; the first of its "
                       "%llu arrays is %s",
                       in->path, (unsigned long long)gs_part__npz_count(o->z), gs_part__npz_name(o->z, 0));
    for (size_t i = 0; i < GS_ARRAY_LEN(attribute_shapes) && in->indptr.path != NULL && st == GS_OK; i++) {
        if (!gs_part__npz_has(o->z, attribute_shapes[i]) || o->attributes.path != NULL)
            continue;
        if ((st = gs_part__npz_array(&o->attributes, o->z, job, attribute_shapes[i])) == GS_OK)
            st = read_shape(attributes, &o->attributes);
    }
    if (st != GS_OK || (in->edge.path == NULL && (st = read_adjacency(in, job, o, adjacency_names[way])) != GS_OK))
        return st;
    return gs_part__files_check(in, in->vertices, attributes[1]);
}

gs_status gs_part__npz_read(gs_part_input *in, gs_part_job *job)
{
    opened o = {.adjacency = GS_PART_CSR_NONE, .shape.npy.fd = -1, .attributes.npy.fd = -1};
    gs_status st;

    if ((st = gs_part__npz_open(&o.z, in->path)) == GS_OK) {
        warn_of_rest(in, job, o.z);
        st = read_graph(in, job, &o);
    }
    gs_part__csr_close(&o.adjacency);
    gs_part__file_close(&o.shape);
    gs_part__file_close(&o.attributes);
    gs_part__npz_close(o.z);
    return st;
}
