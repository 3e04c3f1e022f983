/* input_igb.c - IGB's homogeneous graphs, as the igb package lays them out and reads them:
 *
 *   processed/paper__cites__paper/edge_index.npy   int [E, 2]
 *   processed/paper/node_feat.npy                  float32 [N, 1024]; of large and full without a header
 *   processed/paper/node_label_19.npy, _2K.npy     float32 [N]; the same
 *
 * Without a header, a file's size says how many rows there are. Features are float32, 1024 a vertex, or as many as fit
 * the labels. Labels have 4 or 8 bytes a vertex, as the features' rows say, or else the numbers themselves: float32 as
 * the igb package has them, or whole numbers of 32 or 64 bits. The igb package trains on the first 60 % of the labelled
 * vertices, validates on the next 20 % and tests on the rest. */

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/input_files.h"
#include "partition/job.h"

#define WIDTH 1024u
#define MOST_LABEL (1 << 24) /* of whole numbers: 1.0f, read as one, is above */
#define LOOK_WORDS 16384u /* of labels that are looked at at once; even */
#define EDGES "paper__cites__paper/edge_index.npy"
#define FULL_VERTICES 269346174ull /* of which only the first are labelled, by the igb package's own numbers: */
#define FULL_LABELLED_19 227130858ull
#define FULL_LABELLED_2K 157675969ull

static const gs_part_array igb_arrays[] = {
    {GS_PART_ROLE(edge), EDGES, GS_PART_NPY, 0, {NULL}},
    {GS_PART_ROLE(feature), "paper/node_feat.npy", GS_PART_OWN, 0, {"features.npy", "feat.npy", "x.npy"}},
    {GS_PART_ROLE(label), "paper/node_label_19.npy", GS_PART_OWN, 0, {"labels.npy", "node_label.npy", "y.npy"}},
    {GS_PART_ROLE(label), "paper/node_label_2K.npy", GS_PART_OWN, 0, {NULL}},
    {0, "paper/paper_id_index_mapping.npy", GS_PART_OWN, 0, {NULL}},
    {0},
};

/* A .npy file, or numbers without a header: *plain then, and their bytes. */
static gs_status open_array(gs_part_file *f, const char *dir, const char *name, bool *plain)
{
    char magic[6] = "";
    uint64_t bytes = 0;
    int fd = -1;

    GS_NEED((f->path = gs_path_join(dir, name)) != NULL, "%s: no memory for a path", dir);
    if (gs_path_is_absent(f->path))
        return GS_OK;
    GS_TRY(gs_file_open_read(&fd, &bytes, f->path));
    const gs_status st = gs_pread_exact(fd, magic, GS_MIN(bytes, sizeof(magic)), 0, f->path);
    *plain = st == GS_OK && memcmp(magic, "\x93NUMPY", 6) != 0;
    if (*plain) {
        f->npy = (gs_npy){.dtype = GS_F32, .dims = 1, .shape = {bytes / 4, 1}, .data_bytes = bytes, .fd = fd};
        return bytes % 4 == 0 && bytes > 0 ? GS_OK
                                           : gs_fail(GS_EFORMAT, "%s: has %lu bytes and no .npy header; float32 "
                                                     "without one is 4 bytes a number", f->path, bytes);
    }
    close(fd);
    return st == GS_OK ? gs_npy_open(&f->npy, f->path) : st;
}

/* Labels without a header: which types their words could have so far. */
typedef struct looks {
    bool f32, i32, i64;
    bool says; /* something but 0 and -1 was there, which all of them could be */
} looks;

static void look_at_words(looks *k, const uint32_t *word, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t above = word[i | 1]; /* of the 64-bit number that this word is of */
        const int32_t whole = (int32_t)word[i];
        float real;
        memcpy(&real, &word[i], sizeof(real));
        k->f32 = k->f32 && (isnan(real) || (fabsf(real) < MOST_LABEL && floorf(real) == real));
        k->i32 = k->i32 && whole >= -1 && whole < MOST_LABEL;
        k->i64 = k->i64 && ((above == 0 && whole >= 0 && whole < MOST_LABEL) || (above == UINT32_MAX && whole == -1));
        k->says = k->says || (whole != 0 && whole != -1);
    }
}

static gs_status look_at_labels(looks *k, const gs_part_file *f)
{
    const uint64_t words = f->npy.data_bytes / 4;
    GS_FREED uint32_t *const word = gs_malloc_array(LOOK_WORDS, sizeof(*word));

    *k = (looks){.f32 = true, .i32 = true, .i64 = words % 2 == 0};
    GS_NEED(word != NULL, "%s: no memory to read it", f->path);
    for (uint64_t at = 0; at < words && !k->says; at += LOOK_WORDS) {
        const uint64_t count = GS_MIN(LOOK_WORDS, words - at);
        GS_TRY(gs_pread_exact(f->npy.fd, word, count * 4, at * 4, f->path));
        look_at_words(k, word, count - count % 2);
    }
    return GS_OK;
}

/* `rows`: of the features, 0 where they do not say. */
static gs_status shape_labels(gs_part_input *in, uint64_t rows)
{
    gs_npy *const l = &in->label.npy;
    looks k;

    GS_TRY(look_at_labels(&k, &in->label));
    if (rows != 0 && l->data_bytes != rows * 4 && l->data_bytes != rows * 8)
        return gs_fail(GS_EFORMAT, "%s: has no .npy header and %lu bytes, which are neither 4 nor 8 for each of the "
                       "%lu vertices of %s; save it with numpy.save()", in->label.path, l->data_bytes, rows,
                       in->feature.path);
    if (rows == 0 && (!k.says || (!k.f32 && !k.i64 && !k.i32)))
        return gs_fail(GS_EFORMAT,
                       "%s: has no .npy header, and neither its numbers nor the features say of which type they are; "
                       "save it with numpy.save()",
                       in->label.path);
    const bool wide = rows != 0 ? l->data_bytes == rows * 8 : !k.f32 && k.i64;
    if (wide)
        l->dtype = k.i64 ? GS_I64 : GS_F64;
    else
        l->dtype = k.f32 || !k.i32 ? GS_F32 : GS_I32;
    l->shape[0] = l->data_bytes / (wide ? 8 : 4);
    return GS_OK;
}

/* Features without a header: as many rows as labels, or of 1024. */
static gs_status shape_features(gs_part_input *in)
{
    gs_npy *const f = &in->feature.npy;
    const uint64_t numbers = f->shape[0], rows = in->label.npy.fd >= 0 ? in->label.npy.shape[0] : numbers / WIDTH;

    if (rows == 0 || numbers % rows != 0 || numbers / rows > INT32_MAX)
        return gs_fail(GS_EFORMAT, "%s: has no .npy header and %lu numbers of float32, which are no whole rows for %lu "
                       "vertices (as many as %s)", in->feature.path, numbers, rows,
                       in->label.npy.fd >= 0 ? in->label.path : "rows of 1024 would be");
    f->shape[0] = rows;
    f->shape[1] = numbers / rows;
    f->dims = 2;
    return GS_OK;
}

/* Sizes of what has no header: the features' rows say how wide labels are, where they have one, or where rows of 1024
 * fit the labels. */
static gs_status shape_plain(gs_part_input *in, bool plain_labels, bool plain_features)
{
    const gs_npy *const f = &in->feature.npy;
    const uint64_t bytes = in->label.npy.data_bytes;
    uint64_t rows = f->fd < 0 ? 0 : f->shape[0];

    if (plain_features) {
        rows = f->shape[0] % WIDTH == 0 ? f->shape[0] / WIDTH : 0;
        rows = bytes == rows * 4 || bytes == rows * 8 ? rows : 0;
    }
    if (plain_labels)
        GS_TRY(shape_labels(in, rows));
    return plain_features ? shape_features(in) : GS_OK;
}

/* A mask of n vertices, true in [from, to). */
static gs_status make_split(gs_part_file *f, const gs_part_job *job, const char *name, uint64_t from, uint64_t to,
                            uint64_t n)
{
    GS_ENDS(gs_part__made_free) gs_made m = {0};

    GS_TRY(gs_part__made_begin(&m, f, job, gs_strdup(name)));
    GS_TRY(gs_part__made_fill(&m, 0, from));
    GS_TRY(gs_part__made_fill(&m, 1, to - from));
    GS_TRY(gs_part__made_fill(&m, 0, n - to));
    GS_TRY(gs_part__made_end(&m, GS_U8, n, 1));
    f->npy.truth = true;
    return GS_OK;
}

static gs_status make_splits(gs_part_input *in, const gs_part_job *job, bool few)
{
    const uint64_t n = in->label.npy.shape[0];
    const uint64_t labelled = n != FULL_VERTICES ? n : few ? FULL_LABELLED_19 : FULL_LABELLED_2K;
    const uint64_t train = (uint64_t)((double)labelled * 0.6), valid = train + (uint64_t)((double)labelled * 0.2);

    GS_TRY(make_split(&in->split[0], job, "IGB's training split", 0, train, n));
    GS_TRY(make_split(&in->split[1], job, "IGB's validation split", train, valid, n));
    return make_split(&in->split[2], job, "IGB's test split", valid, labelled, n);
}

static gs_status read_papers(gs_part_input *in, gs_part_job *job, const char *dir)
{
    GS_FREED char *const papers = gs_path_join(dir, "paper");
    const bool few = gs_path_has(dir, "paper/node_label_19.npy"), many = gs_path_has(dir, "paper/node_label_2K.npy");
    bool plain_labels = false, plain_features = false;

    GS_NEED(papers != NULL, "%s: no memory for a path", dir);
    gs_part__arrays_warn(dir, "paper", igb_arrays, job);
    if (few && many)
        gs_part__warn(job, "%s: labels are of node_label_19.npy; for those of node_label_2K.npy, move it away", papers);
    GS_TRY(open_array(&in->label, papers, few || !many ? "node_label_19.npy" : "node_label_2K.npy", &plain_labels));
    GS_TRY(open_array(&in->feature, papers, "node_feat.npy", &plain_features));
    GS_TRY(shape_plain(in, plain_labels, plain_features));
    if (in->label.npy.fd < 0 || job->opt->split != NULL)
        return GS_OK;
    return make_splits(in, job, few || !many);
}

gs_status gs_part__igb_vertices(gs_part_input *part, gs_part_job *job, const char *processed, const char *type)
{
    GS_FREED char *const folder = gs_path_join(processed, type);
    bool plain = false;

    GS_NEED(folder != NULL, "%s: no memory for a path", processed);
    if (strcmp(type, "paper") == 0)
        GS_TRY(read_papers(part, job, processed));
    else
        GS_TRY(open_array(&part->feature, folder, "node_feat.npy", &plain));
    if (plain)
        GS_TRY(shape_features(part));
    if (part->feature.npy.fd < 0)
        return gs_fail(GS_ENOTFOUND, "%s: there is no such file; each type of IGB's vertices has features: download it",
                       part->feature.path);
    return GS_OK;
}

static gs_status igb_read(gs_part_input *in, gs_part_job *job)
{
    GS_FREED char *const processed = gs_path_join(in->path, "processed");
    const char *dir;

    GS_NEED(processed != NULL, "%s: no memory for a path", in->path);
    dir = gs_path_has(in->path, EDGES) ? in->path : processed;
    if (gs_path_has(dir, "paper__written_by__author"))
        gs_part__warn(job, "%s: is heterogeneous; papers and the citations between them are read, the rest is not",
                      dir);
    GS_TRY(gs_part__arrays_open(in, job, dir, igb_arrays));
    GS_TRY(read_papers(in, job, dir));
    return gs_part__files_check(in, 0, 0);
}

const gs_part_format gs_part__igb_formats[] = {
    {.name = "igb", .words = "a folder with paper__cites__paper", .has = {EDGES, "processed/" EDGES}, .read = igb_read},
    {0},
};
