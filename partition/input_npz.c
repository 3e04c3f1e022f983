/* input_npz.c - graphs in a .npz file: the arrays that are in it, and which array is what, by its name.
 *
 * shchur's files (gnn-benchmark; torch_geometric's Amazon and Coauthor) hold a CSR adjacency matrix, whose entry (i, j)
 * is the edge i -> j, and attributes as CSR or dense. Others hold what a folder of .npy files would. */


#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <minizip/unzip.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/edge_text.h"
#include "partition/input_files.h"
#include "partition/job.h"

/* ---- arrays by name: minizip, unlike other readers of zip files, says where a member's bytes are -- */

#define MOST_MEMBERS 4096u
#define NAME_BYTES 256u
#define PIECE_BYTES (256 * GS_KIB)
#define METHOD_STORED 0u
#define METHOD_DEFLATE 8u

typedef struct member {
    char *name; /* as in the file */
    uint64_t packed, bytes, method;
    bool encrypted;
} member;

struct gs_npz {
    const char *path;
    unzFile zip;
    member *member;
    uint64_t count;
};

static gs_status damaged(const gs_npz *z, const char *what)
{
    return gs_fail(GS_EFORMAT, "%s: %s; the .npz file is cut short or damaged: fetch or save it again", z->path, what);
}

static gs_status take_member(gs_npz *z)
{
    unz_file_info64 info;
    char name[NAME_BYTES] = "";
    member *const m = &z->member[z->count];

    if (unzGetCurrentFileInfo64(z->zip, &info, name, sizeof(name), NULL, 0, NULL, 0) != UNZ_OK)
        return damaged(z, "its directory cannot be read");
    if (info.size_filename >= sizeof(name) || strlen(name) != info.size_filename)
        return damaged(z, "it has a member with a name that no array has");
    *m = (member){.name = gs_strdup(name), .packed = info.compressed_size, .bytes = info.uncompressed_size,
                  .method = info.compression_method, .encrypted = (info.flag & 1) != 0};
    GS_NEED(m->name != NULL, "%s: no memory for the names of its arrays", z->path);
    const size_t n = strlen(m->name);
    if (n > 4 && strcmp(m->name + n - 4, ".npy") == 0)
        m->name[n - 4] = '\0';
    z->count++;
    return GS_OK;
}

static gs_status read_directory(gs_npz *z)
{
    unz_global_info64 all;

    if (unzGetGlobalInfo64(z->zip, &all) != UNZ_OK || all.number_entry == 0 || all.number_entry > MOST_MEMBERS)
        return damaged(z, "its directory lists no arrays, or more than 4096");
    GS_NEED((z->member = gs_calloc(all.number_entry, sizeof(*z->member))) != NULL,
            "%s: no memory for the names of its arrays", z->path);
    int rc = unzGoToFirstFile(z->zip);
    for (; rc == UNZ_OK && z->count < all.number_entry; rc = unzGoToNextFile(z->zip))
        GS_TRY(take_member(z));
    if (z->count != all.number_entry || rc != UNZ_END_OF_LIST_OF_FILE)
        return damaged(z, "its directory cannot be read");
    return GS_OK;
}

gs_status gs_part__npz_open(gs_npz **out, const char *path)
{
    GS_ENDS(gs_part__npz_close_at) gs_npz *z = gs_calloc(1, sizeof(*z));

    GS_NEED(z != NULL, "%s: no memory to read it", path);
    z->path = path;
    z->zip = unzOpen64(path);
    GS_TRY(z->zip != NULL ? read_directory(z) : damaged(z, "it has no directory at its end"));
    *out = GS_HANDED_OVER(z);
    return GS_OK;
}

void gs_part__npz_close(gs_npz *z)
{
    if (z == NULL)
        return;
    if (z->zip != NULL)
        unzClose(z->zip);
    for (uint64_t i = 0; i < z->count; i++)
        gs_free(z->member[i].name);
    gs_free(z->member);
    gs_free(z);
}

uint64_t gs_part__npz_count(const gs_npz *z) { return z->count; }
const char *gs_part__npz_name(const gs_npz *z, uint64_t k) { return z->member[k].name; }

static const member *find(const gs_npz *z, const char *name)
{
    for (uint64_t i = 0; i < z->count; i++)
        if (strcmp(z->member[i].name, name) == 0)
            return &z->member[i];
    return NULL;
}

bool gs_part__npz_has(const gs_npz *z, const char *name) { return find(z, name) != NULL; }

/* Makes `m` the current member of `zip`. */
static gs_status go_to(gs_npz *z, const member *m)
{
    int rc = unzGoToFirstFile(z->zip);

    for (const member *at = z->member; rc == UNZ_OK && at != m; at++)
        rc = unzGoToNextFile(z->zip);
    return rc == UNZ_OK ? GS_OK : damaged(z, "its directory changed while it was read");
}

/* `raw`: the bytes as they are in the file, for the place where they begin. */
static gs_status open_member(gs_npz *z, const member *m, int raw)
{
    GS_TRY(go_to(z, m));
    if (unzOpenCurrentFile2(z->zip, NULL, NULL, raw) == UNZ_OK)
        return GS_OK;
    return gs_fail(GS_EFORMAT, "%s/%s.npy: cannot be read; the .npz file is cut short or damaged: fetch or save it "
                               "again",
                   z->path, m->name);
}

static gs_status in_place(gs_part_file *f, gs_npz *z, const member *m)
{
    if (m->packed != m->bytes)
        return damaged(z, "an array is stored as it is, and its sizes differ");
    GS_TRY(open_member(z, m, 1));
    const uint64_t offset = unzGetCurrentFileZStreamPos64(z->zip);
    unzCloseCurrentFile(z->zip);
    GS_NEED((f->opened_as = gs_strdup(z->path)) != NULL, "%s: no memory for a path", z->path);
    return gs_npy_open_any_order(&f->npy, f->any_order ? &f->transposed : NULL, z->path, offset, m->bytes, f->path);
}

static gs_status unpack_pieces(gs_made *made, gs_npz *z, const member *m, gs_part_job *job, void *piece)
{
    uint64_t done = 0;
    int got;

    while ((got = unzReadCurrentFile(z->zip, piece, PIECE_BYTES)) > 0) {
        done += (uint64_t)got;
        GS_TRY(done <= m->bytes ? gs_part__made_put(made, piece, (uint64_t)got) : damaged(z, "an array is too long"));
        gs_part__tick(job, "unpacking arrays", (double)done / (double)GS_MAX(m->bytes, 1));
        GS_TRY(gs_part__job_result(job));
    }
    if (got < 0 || done != m->bytes)
        return gs_fail(GS_EFORMAT, "%s/%s.npy: its packed data are damaged near byte %lu; fetch or save it again",
                       z->path, m->name, done);
    return GS_OK;
}

static gs_status unpack(gs_part_file *f, gs_npz *z, const member *m, gs_part_job *job)
{
    GS_ENDS(gs_part__made_free) gs_made made = {0};
    GS_FREED void *const piece = gs_malloc(PIECE_BYTES);
    gs_status st = piece != NULL ? open_member(z, m, 0) : gs_fail(GS_ENOMEM, "%s: no memory to unpack it", z->path);

    if (st == GS_OK) {
        char *const path = f->path;
        if ((st = gs_part__made_begin(&made, f, job, path)) == GS_OK &&
            (st = unpack_pieces(&made, z, m, job, piece)) == GS_OK)
            st = gs_part__made_end_npy(&made);
        if (unzCloseCurrentFile(z->zip) == UNZ_CRCERROR && st == GS_OK)
            st = gs_fail(GS_EFORMAT, "%s: checksum mismatch; the .npz file is damaged: fetch or save it again", path);
    }
    return st;
}

gs_status gs_part__npz_array(gs_part_file *f, gs_npz *z, gs_part_job *job, const char *name)
{
    const member *const m = find(z, name);
    char path[NAME_BYTES + 8];

    if (m == NULL)
        return GS_OK;
    snprintf(path, sizeof(path), "%s.npy", name);
    GS_NEED((f->path = gs_path_join(z->path, path)) != NULL, "%s: no memory for a path", z->path);
    if (m->encrypted || (m->method != METHOD_STORED && m->method != METHOD_DEFLATE))
        return gs_fail(GS_EFORMAT, "%s: is packed in a way that numpy does not use (zip method %lu%s); save it again "
                       "with numpy.savez", f->path, m->method, m->encrypted ? ", encrypted" : "");
    return m->method == METHOD_STORED ? in_place(f, z, m) : unpack(f, z, m, job);
}

/* ---- the entries of a CSR matrix as edges ------------------------------------------ */

typedef struct csr {
    gs_part_file indptr, indices;
    gs_part_file data; /* npy.fd -1: none */
} csr;
#define CSR_NONE {.indptr.npy.fd = -1, .indices.npy.fd = -1, .data.npy.fd = -1}

#define PIECE 65536u

typedef struct walk {
    gs_part_input *in;
    gs_part_job *job;
    gs_csr_reader r;
} walk;

static gs_status check_shape(const gs_part_input *in, const csr *m)
{
    const gs_npy *const p = &m->indptr.npy, *const x = &m->indices.npy, *const d = &m->data.npy;

    if (!gs_part__is_integer(p->dtype) || p->truth || p->shape[1] != 1 || p->shape[0] != in->vertices + 1)
        return gs_fail(GS_EFORMAT, "%s: is %s [%lu]; it must be integers [%lu], one a row and one more", m->indptr.path,
                       gs_dtype_name(p->dtype), p->shape[0], in->vertices + 1);
    if (!gs_part__is_integer(x->dtype) || x->truth || x->shape[1] != 1)
        return gs_fail(GS_EFORMAT, "%s: must be integers, the column of each entry", m->indices.path);
    if (d->fd >= 0 && (d->shape[1] != 1 || d->shape[0] != x->shape[0]))
        return gs_fail(GS_EFORMAT, "%s: has %lu values for %lu entries in %s", m->data.path, d->shape[0], x->shape[0],
                       m->indices.path);
    return GS_OK;
}

static gs_status check_weights(const walk *w, uint64_t at, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(w->r.value[i]))
            return gs_fail(GS_EFORMAT, "%s: row %lu: the weight is not a finite float32", w->r.data->path, at + i);
    return GS_OK;
}

/* Is any value another than 1? */
static gs_status find_weights(walk *w)
{
    const uint64_t n = w->r.indices->npy.shape[0];

    for (uint64_t at = 0; w->r.data->npy.fd >= 0 && at < n && !w->in->weighted; at += PIECE) {
        const uint64_t count = GS_MIN(PIECE, n - at);
        GS_TRY(gs_part__job_result(w->job));
        GS_TRY(gs_csr__values(&w->r, at, count));
        GS_TRY(check_weights(w, at, count));
        for (uint64_t i = 0; i < count; i++)
            w->in->weighted |= w->r.value[i] != 1;
    }
    return GS_OK;
}

static gs_status load_entries(walk *w, uint64_t at)
{
    GS_TRY(gs_part__job_result(w->job));
    GS_TRY(gs_csr__entries(&w->r, at, w->in->weighted));
    gs_part__tick(w->job, "reading edges", (double)at / (double)w->r.indices->npy.shape[0]);
    return w->in->weighted ? check_weights(w, at, w->r.have) : GS_OK;
}

static gs_status put_rows(walk *w)
{
    uint64_t at = 0, end = 0;

    GS_TRY(gs_csr__bound(&w->r, 0, 0, &end));
    for (uint64_t row = 0; row < w->in->vertices; row++) {
        GS_TRY(gs_csr__bound(&w->r, row + 1, at, &end));
        for (; at < end; at++) {
            if (at >= w->r.from + w->r.have)
                GS_TRY(load_entries(w, at));
            const uint64_t k = at - w->r.from;
            GS_TRY(gs_part__text_put(w->in, row, (uint64_t)w->r.column[k], w->in->weighted ? w->r.value[k] : 1, 0));
        }
    }
    return GS_OK;
}

/* Entry (i, j) of the square matrix of in->vertices rows is the edge i -> j, in the order of the file; its value is the
 * weight, but where all values are 1. */
static gs_status csr_edges(gs_part_input *in, gs_part_job *job, const csr *matrix)
{
    walk w = {.in = in, .job = job, .r = {.indptr = &matrix->indptr, .indices = &matrix->indices,
                                          .data = &matrix->data, .rows = in->vertices, .columns = in->vertices,
                                          .columns_are = "vertices"}};
    gs_status st;

    if (in->vertices > GS_MOST_ID)
        return gs_fail(GS_EUNSUPPORTED, "%s: %lu vertices; a store holds fewer than 2^32 - 1", in->path, in->vertices);
    GS_TRY(check_shape(in, matrix));
    st = gs_csr__alloc(&w.r, PIECE, in->path);
    if (st == GS_OK && (st = find_weights(&w)) == GS_OK && (st = gs_part__text_begin(in, job)) == GS_OK &&
        (st = put_rows(&w)) == GS_OK)
        st = gs_part__text_end(in);
    gs_arena_free(&w.r.memory);
    return st;
}

static void csr_close(csr *matrix)
{
    gs_part__file_close(&matrix->indptr);
    gs_part__file_close(&matrix->indices);
    gs_part__file_close(&matrix->data);
}

/* ---- which array is what ------------------------------------------------------------ */

/* Arrays that are opened for this run alone: of the adjacency matrix, and shapes. */
typedef struct opened {
    gs_npz *z;
    csr adjacency;
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
    for (size_t i = 0; i < GS_ARRAY_LEN(members); i++) {
        gs_part_file *const f = (gs_part_file *)((char *)in + members[i].file);
        if (!gs_part__npz_has(z, members[i].name))
            continue;
        if (f->path != NULL)
            return gs_fail(GS_EFORMAT, "%s: a second array of this meaning is %s; leave one out", f->path,
                           members[i].name);
        GS_TRY(gs_part__npz_array(f, z, job, members[i].name));
    }
    return GS_OK;
}

/* [rows, columns] of a matrix, as SciPy saves them. */
static gs_status read_shape(uint64_t shape[2], const gs_part_file *f)
{
    int64_t v[2];
    char raw[16];

    if (!gs_part__is_integer(f->npy.dtype) || f->npy.shape[0] != 2 || f->npy.shape[1] != 1)
        return gs_fail(GS_EFORMAT, "%s: is not two whole numbers, the rows and columns of a matrix", f->path);
    GS_TRY(gs_npy_read_rows(&f->npy, raw, 0, 2, f->path));
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
    csr *const a = &o->adjacency;
    uint64_t shape[2] = {0};

    for (size_t i = 0; i < 4; i++)
        if (!gs_part__npz_has(o->z, names[i]) && i != 2)
            return gs_fail(GS_EFORMAT,
                           "%s: has %s, but not %s; an adjacency matrix is CSR: data, indices, indptr, shape", in->path,
                           names[0], names[i]);
    GS_TRY(gs_part__npz_array(&a->indptr, o->z, job, names[0]));
    GS_TRY(gs_part__npz_array(&a->indices, o->z, job, names[1]));
    GS_TRY(gs_part__npz_array(&a->data, o->z, job, names[2]));
    GS_TRY(gs_part__npz_array(&o->shape, o->z, job, names[3]));
    GS_TRY(read_shape(shape, &o->shape));
    if (shape[0] != shape[1])
        return gs_fail(GS_EFORMAT, "%s: has %lu rows and %lu columns; a graph's matrix is square", o->shape.path,
                       shape[0], shape[1]);
    gs_part__warn(job, "%s: all entries are taken as they are; torch_geometric's reader also adds the reverse of each "
                       "edge (.undirected does), drops self loops, and makes positive features 1",
                  in->path);
    in->vertices = shape[0];
    return csr_edges(in, job, a);
}

static gs_status read_graph(gs_part_input *in, gs_part_job *job, opened *o)
{
    uint64_t attributes[2] = {0};
    size_t way = 0;

    while (way < GS_ARRAY_LEN(adjacency_names) && !gs_part__npz_has(o->z, adjacency_names[way][0]))
        way++;
    in->two_rows = gs_part__npz_has(o->z, "edge_index");
    GS_TRY(open_members(in, job, o->z));
    if (in->edge.path == NULL && way == GS_ARRAY_LEN(adjacency_names))
        return gs_fail(GS_EFORMAT, "%s: holds no array of edges: neither edges, nor edge_index, nor adj_indptr; the "
                       "first of its %lu arrays is %s", in->path, gs_part__npz_count(o->z), gs_part__npz_name(o->z, 0));
    for (size_t i = 0; i < GS_ARRAY_LEN(attribute_shapes) && in->indptr.path != NULL; i++) {
        if (!gs_part__npz_has(o->z, attribute_shapes[i]) || o->attributes.path != NULL)
            continue;
        GS_TRY(gs_part__npz_array(&o->attributes, o->z, job, attribute_shapes[i]));
        GS_TRY(read_shape(attributes, &o->attributes));
    }
    if (in->edge.path == NULL)
        GS_TRY(read_adjacency(in, job, o, adjacency_names[way]));
    return gs_part__files_check(in, in->vertices, attributes[1]);
}

static gs_status npz_read(gs_part_input *in, gs_part_job *job)
{
    opened o = {.adjacency = CSR_NONE, .shape.npy.fd = -1, .attributes.npy.fd = -1};
    gs_status st;

    if ((st = gs_part__npz_open(&o.z, in->path)) == GS_OK) {
        warn_of_rest(in, job, o.z);
        st = read_graph(in, job, &o);
    }
    csr_close(&o.adjacency);
    gs_part__file_close(&o.shape);
    gs_part__file_close(&o.attributes);
    gs_part__npz_close(o.z);
    return st;
}

static bool npz_looks(const char *path, const gs_part_head *head)
{
    (void)path;
    return memcmp(head->bytes, "PK\3\4", 4) == 0 || memcmp(head->bytes, "PK\5\6", 4) == 0;
}

const gs_part_format gs_part__npz_formats[] = {
    {.name = "npz", .words = "arrays in one file", .looks = npz_looks, .read = npz_read}, {0}};
