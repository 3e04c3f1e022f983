/* input.c - which kind of input is it, and its edges piece by piece. */
#include "partition/input.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/external_sort.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/edge_block.h"
#include "partition/input_csv.h"
#include "partition/input_files.h"
#include "partition/input_graphbolt.h"
#include "partition/input_igb.h"
#include "partition/input_metis.h"
#include "partition/input_mtx.h"
#include "partition/input_npy.h"
#include "partition/input_npz.h"
#include "partition/input_ogb.h"
#include "partition/input_snap.h"
#include "partition/job.h"
#include "partition/names.h"
#include "partition/npy_edges.h"
#include "partition/relations.h"
#include "partition/stream.h"
#include "partition/text_lines.h" /* GS_TEXT_MARK */
#include "partition/text_number.h" /* GS_TEXT_PADDING */

#define KNOWN_FORMATS \
    "npy (a folder with edges.npy), npz (arrays in one file), snap (an edge list), mtx (MatrixMarket), csv (columns " \
    "with a header), metis (.graph), ogb (a folder with raw/edge.csv.gz or raw/data.npz), igb (a folder with " \
    "paper__cites__paper), graphbolt (a folder with metadata.yaml); texts may be .gz or .zst"
#define HEAD_BYTES 65536u /* of a file that are looked at */

typedef enum kind {
    KIND_NPY,
    KIND_SNAP,
    KIND_MTX,
    KIND_CSV,
    KIND_METIS,
    KIND_OGB,
    KIND_NPZ,
    KIND_IGB,
    KIND_GRAPHBOLT
} kind;

static gs_status kind_by_name(kind *out, const char *format)
{
    static const char *const names[] = {"npy", "snap", "mtx", "csv", "metis", "ogb", "npz", "igb", "graphbolt"};
    for (uint32_t i = 0; i < GS_ARRAY_LEN(names); i++) {
        if (strcmp(format, names[i]) == 0) {
            *out = (kind)i;
            return GS_OK;
        }
    }
    return gs_fail(GS_EINVAL, "format: '%s' is not known; the formats are " KNOWN_FORMATS, format);
}

static gs_status look_into_folder(kind *out, const char *path)
{
    char *edges = gs_path_join(path, "edges.npy");
    if (edges == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", path);
    const bool npy = gs_path_exists(edges);
    gs_free(edges);
    if (npy)
        *out = KIND_NPY;
    else if (gs_part__graphbolt_looks(path))
        *out = KIND_GRAPHBOLT;
    else if (gs_part__ogb_looks(path))
        *out = KIND_OGB;
    else if (gs_part__igb_looks(path))
        *out = KIND_IGB;
    else
        return gs_fail(GS_ENOTFOUND, "%s: this folder has no edges.npy; inputs are " KNOWN_FORMATS, path);
    return GS_OK;
}

/* Whether the name ends so, before .gz or .zst. */
static bool is_named(const char *path, const char *end)
{
    size_t n = strlen(path);
    const size_t e = strlen(end);

    n -= n > 3 && strcmp(path + n - 3, ".gz") == 0 ? 3 : n > 4 && strcmp(path + n - 4, ".zst") == 0 ? 4 : 0;
    return n > e && strncmp(path + n - e, end, e) == 0;
}

/* The first line that is no comment, ended by a 0. */
static char *first_line(char *head)
{
    char *line = head;
    while (gs_part__is_comment(line) || strchr(" \t\r\n", *line) != NULL) {
        if (*line == '\0')
            break;
        line = gs_part__is_comment(line) ? line + strcspn(line, "\n") : line + 1;
    }
    line[strcspn(line, "\n")] = '\0';
    return line;
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

static gs_status look_at_head(kind *out, const char *path, char *head)
{
    if (strncmp(head, GS_TEXT_MARK, 3) == 0)
        head += 3;
    const bool comment = gs_part__is_comment(head + strspn(head, " \t\r\n0123456789"));

    if (strncmp(head, "%%MatrixMarket", 14) == 0) {
        *out = KIND_MTX;
        return GS_OK;
    }
    if (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0) {
        *out = KIND_NPZ;
        return GS_OK;
    }
    if (memcmp(head, "\x93NUMPY", 6) == 0)
        return gs_fail(GS_EINVAL, "%s: is one .npy file; give the folder that holds edges.npy", path);
    if (is_named(path, ".graph") || is_named(path, ".metis")) {
        *out = KIND_METIS;
        return GS_OK;
    }
    const char *const line = first_line(head);
    if (*line != '\0' && gs_part__csv_looks(line))
        *out = KIND_CSV;
    else if (comment || strchr(" \t\r\n0123456789", *line) != NULL || has_words(line))
        *out = KIND_SNAP;
    else
        return gs_fail(GS_EFORMAT, "%s: no known format; inputs are " KNOWN_FORMATS ", or say .format", path);
    return GS_OK;
}

static gs_status look_into_file(kind *out, const char *path, uint64_t memory)
{
    gs_stream *s = NULL;
    char *const head = gs_calloc(HEAD_BYTES + 1 + GS_TEXT_PADDING, 1);
    uint64_t got = 0;
    gs_status st;

    if (head == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", path);
    if ((st = gs_part__stream_open(&s, path, memory / 4)) == GS_OK &&
        (st = gs_part__stream_read(s, head, HEAD_BYTES, &got)) == GS_OK)
        st = got == 0 ? gs_fail(GS_EFORMAT, "%s: the file is empty; inputs are " KNOWN_FORMATS, path)
                      : look_at_head(out, path, head);
    gs_part__stream_close(s);
    gs_free(head);
    return st;
}

static gs_status find_kind(kind *out, const char *path, const char *format, uint64_t memory)
{
    if (gs_path_is_absent(path))
        return gs_fail(GS_ENOTFOUND, "%s: there is no such file or folder", path);
    if (format == NULL)
        return gs_path_is_dir(path) ? look_into_folder(out, path) : look_into_file(out, path, memory);
    const gs_status st = kind_by_name(out, format);
    if (st != GS_OK)
        return st;
    const bool folder = *out == KIND_NPY || *out == KIND_OGB || *out == KIND_IGB || *out == KIND_GRAPHBOLT;
    if (gs_path_is_dir(path) != folder)
        return gs_fail(GS_EINVAL, "%s: format '%s' needs a %s here", path, format, folder ? "folder" : "file");
    return GS_OK;
}

static void files_reset(gs_part_input *in)
{
    gs_part_file *const files[] = {&in->edge,    &in->type, &in->weight, &in->feature,  &in->indptr,  &in->indices,
                                   &in->data,    &in->label, &in->split[0], &in->split[1], &in->split[2]};
    for (size_t i = 0; i < GS_ARRAY_LEN(files); i++) {
        memset(files[i], 0, sizeof(*files[i]));
        files[i]->npy.fd = -1;
    }
    in->edge.any_order = true; /* np.save(edge_index.T) is in Fortran order, and no less clear */
}

gs_status gs_part__input_open(gs_part_input *in, gs_part_job *job, const char *path)
{
    static gs_status (*const parsers[])(gs_part_input *, gs_part_job *) = {
        [KIND_SNAP] = gs_part__snap_read,
        [KIND_MTX] = gs_part__mtx_read,
        [KIND_CSV] = gs_part__csv_read,
        [KIND_METIS] = gs_part__metis_read,
        [KIND_OGB] = gs_part__ogb_read,
        [KIND_NPZ] = gs_part__npz_read,
        [KIND_IGB] = gs_part__igb_read,
        [KIND_GRAPHBOLT] = gs_part__graphbolt_read,
    };
    kind k = KIND_NPY;
    gs_status st;

    memset(in, 0, sizeof(*in));
    files_reset(in);
    if ((st = find_kind(&k, path, job->opt->format, job->memory)) != GS_OK)
        return st;
    if ((in->path = gs_strdup(path)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", path);
    in->parse = parsers[k];
    return k == KIND_NPY ? gs_part__npy_folder(in, job) : GS_OK;
}

gs_status gs_part__input_parse(gs_part_input *in, gs_part_job *job)
{
    const gs_status st = in->parse != NULL ? in->parse(in, job) : GS_OK;

    if (st != GS_OK)
        return st;
    if (in->vertices == 0)
        return gs_fail(GS_EFORMAT, "%s: the graph has no vertices", in->path);
    if (in->vertices >= UINT32_MAX)
        return gs_fail(GS_EUNSUPPORTED, "%s: %llu vertices; a store holds fewer than 2^32 - 1", in->path,
                       (unsigned long long)in->vertices);
    if (job->opt->random_features == 0)
        return GS_OK;
    if (in->form != GS_FORM_NONE)
        return gs_fail(GS_EINVAL, ".random_features: %s has features of its own; leave the option out", in->path);
    in->form = GS_FORM_RANDOM;
    in->features = job->opt->random_features;
    return GS_OK;
}

void gs_part__input_close(gs_part_input *in)
{
    gs_part_file *const files[] = {&in->edge,    &in->type, &in->weight, &in->feature,  &in->indptr,  &in->indices,
                                   &in->data,    &in->label, &in->split[0], &in->split[1], &in->split[2]};
    for (size_t i = 0; i < GS_ARRAY_LEN(files); i++)
        gs_part__file_close(files[i]);
    gs_sort_free(in->text);
    gs_part__names_free(in->names);
    gs_part__relations_free(in->relations);
    gs_free(in->path);
    memset(in, 0, sizeof(*in));
    files_reset(in);
}

/* Text input was checked when it was parsed. */
static gs_status text_edges(const gs_part_input *in, gs_part_edge_block *b, uint64_t count)
{
    const uint32_t words = in->text->spec.words;
    const uint32_t *const type = in->relations != NULL ? gs_part__relations_type(in->relations) : NULL;
    const uint32_t *record = b->raw;
    uint64_t got;
    const gs_status st = gs_sort_read(in->text, &b->at, b->raw, count, &got);

    if (st != GS_OK)
        return st;
    for (uint64_t i = 0; i < got; i++, record += words) {
        b->src[i] = record[0];
        b->dst[i] = record[1];
        if (in->weighted)
            memcpy(&b->weight[i], &record[2], 4);
        if (in->typed)
            b->type[i] = type == NULL ? record[2 + in->weighted] : type[record[2 + in->weighted]];
    }
    b->count = got;
    return GS_OK;
}

gs_status gs_part__input_edges(const gs_part_input *in, gs_part_edge_block *b, uint64_t first, uint64_t count)
{
    b->first = first;
    b->count = count;
    return in->text != NULL ? text_edges(in, b, count) : gs_part__npy_edges(in, b, first, count);
}
