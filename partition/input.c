/* input.c - which kind of input is it, and its edges piece by piece. */
#include "partition/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/edge_batch.h"
#include "partition/input_files.h"
#include "partition/input_npy.h"
#include "partition/input_text.h"
#include "partition/job.h"
#include "partition/spill.h"

#define KNOWN_FORMATS "npy (a folder with edges.npy), snap (an edge list), mtx (MatrixMarket)"

typedef enum kind { KIND_NPY, KIND_SNAP, KIND_MTX } kind;

static gs_status kind_by_name(kind *out, const char *format)
{
    static const char *const names[] = {"npy", "snap", "mtx"};
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
    const bool found = gs_path_exists(edges);
    gs_free(edges);
    if (!found)
        return gs_fail(GS_ENOTFOUND, "%s: this folder has no edges.npy; inputs are " KNOWN_FORMATS, path);
    *out = KIND_NPY;
    return GS_OK;
}

static gs_status look_into_file(kind *out, const char *path)
{
    char head[64] = {0};
    uint64_t bytes = 0;
    int fd = -1;
    gs_status st;

    if ((st = gs_file_open_read(&fd, &bytes, path)) != GS_OK)
        return st;
    if (bytes == 0)
        st = gs_fail(GS_EFORMAT, "%s: the file is empty; inputs are " KNOWN_FORMATS, path);
    else
        st = gs_pread_exact(fd, head, GS_MIN(bytes, sizeof(head) - 1), 0, path);
    close(fd);
    if (st != GS_OK)
        return st;
    if (strncmp(head, "%%MatrixMarket", 14) == 0)
        *out = KIND_MTX;
    else if (memcmp(head, "\x93NUMPY", 6) == 0)
        return gs_fail(GS_EINVAL, "%s: is one .npy file; give the folder that holds edges.npy", path);
    else if (head[strspn(head, " \t\r\n0123456789")] == '#' || strchr(" \t\r\n0123456789", head[0]) != NULL)
        *out = KIND_SNAP;
    else
        return gs_fail(GS_EFORMAT, "%s: no known format; inputs are " KNOWN_FORMATS ", or say .format", path);
    return GS_OK;
}

static gs_status find_kind(kind *out, const char *path, const char *format)
{
    if (!gs_path_exists(path))
        return gs_fail(GS_ENOTFOUND, "%s: there is no such file or folder", path);
    if (format == NULL)
        return gs_path_is_dir(path) ? look_into_folder(out, path) : look_into_file(out, path);
    const gs_status st = kind_by_name(out, format);
    if (st != GS_OK)
        return st;
    if (gs_path_is_dir(path) != (*out == KIND_NPY))
        return gs_fail(GS_EINVAL, "%s: format '%s' needs a %s here", path, format,
                       *out == KIND_NPY ? "folder" : "file");
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
}

gs_status gs_part__input_open(gs_part_input *in, gs_part_job *job, const char *path)
{
    kind k = KIND_NPY;
    gs_status st;

    memset(in, 0, sizeof(*in));
    files_reset(in);
    if ((st = find_kind(&k, path, job->opt->format)) != GS_OK)
        return st;
    if ((in->path = gs_strdup(path)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", path);
    in->parse = k == KIND_NPY ? NULL : k == KIND_SNAP ? gs_part__snap_read : gs_part__mtx_read;
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
        return gs_fail(GS_EINVAL, "random-features: %s has features of its own; leave the option out", in->path);
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
    gs_part__spill_free(in->text);
    gs_free(in->path);
    memset(in, 0, sizeof(*in));
    files_reset(in);
}

/* Text input was checked when it was parsed. */
static gs_status text_edges(const gs_part_input *in, gs_part_batch *b, uint64_t count)
{
    const uint32_t words = in->text->words;
    const uint32_t *record = b->raw;
    uint64_t got;
    const gs_status st = gs_part__spill_read(in->text, &b->at, b->raw, count, &got);

    if (st != GS_OK)
        return st;
    for (uint64_t i = 0; i < got; i++, record += words) {
        b->src[i] = record[0];
        b->dst[i] = record[1];
        if (in->weighted)
            memcpy(&b->weight[i], &record[2], 4);
    }
    b->count = got;
    return GS_OK;
}

gs_status gs_part__input_edges(const gs_part_input *in, gs_part_batch *b, uint64_t first, uint64_t count)
{
    b->first = first;
    b->count = count;
    return in->text != NULL ? text_edges(in, b, count) : gs_part__npy_edges(in, b, first, count);
}
