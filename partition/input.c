/* input.c - which kind of input is it, and its edges piece by piece. */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/external_sort.h"
#include "base/file.h"
#include "base/size.h"
#include "gnnstream.h"
#include "partition/edge_text.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/text_lines.h"

#define HEAD_BYTES 65536u /* of a file that are looked at */

/* In the order in which they look for their own. */
static const gs_part_format *const families[] = {
    gs_part__types_formats,  gs_part__folder_formats, gs_part__igb_formats, gs_part__npz_formats,
    gs_part__matrix_formats, gs_part__list_formats,   gs_part__ogb_formats, gs_part__graphbolt_formats,
};

/* The k-th of all; NULL after the last. */
static const gs_part_format *format_at(size_t k)
{
    for (size_t i = 0; i < GS_ARRAY_LEN(families); i++)
        for (const gs_part_format *f = families[i]; f->name != NULL; f++)
            if (k-- == 0)
                return f;
    return NULL;
}

static char names[256]; /* of all, with | between them */
static pthread_once_t named = PTHREAD_ONCE_INIT;

static void name_all(void)
{
    const gs_part_format *f;
    size_t used = 0;

    for (size_t k = 0; (f = format_at(k)) != NULL && used < sizeof(names); k++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", k == 0 ? "" : "|", f->name);
}

const char *gs_input_formats(void)
{
    pthread_once(&named, name_all);
    return names;
}

#define KNOWN_BYTES 800u
/* "npy (a folder with edges.npy), ...", for a line that refuses an input. */
#define KNOWN_FORMATS known_formats((char[KNOWN_BYTES]){0})
static const char *known_formats(char text[KNOWN_BYTES])
{
    const gs_part_format *f;
    size_t used = 0;

    for (size_t k = 0; (f = format_at(k)) != NULL && used < KNOWN_BYTES; k++)
        used += (size_t)snprintf(text + used, KNOWN_BYTES - used, "%s (%s), ", f->name, f->words);
    if (used + 32 < KNOWN_BYTES)
        snprintf(text + used - 2, KNOWN_BYTES - used + 2, "; texts may be .gz or .zst");
    return text;
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

static bool is_of_folders(const gs_part_format *f) { return f->has[0] != NULL; }

static bool looks(const gs_part_format *f, const char *path, const gs_part_head *head)
{
    bool found = false;

    if (f->looks != NULL)
        return f->looks(path, head);
    for (size_t i = 0; i < GS_ARRAY_LEN(f->has) && f->has[i] != NULL && !found; i++)
        found = gs_path_has(path, f->has[i]);
    return found;
}

/* The first that says so; NULL where none does. */
static const gs_part_format *find_looking(const char *path, bool folder, const gs_part_head *head)
{
    const gs_part_format *f;

    for (size_t k = 0; (f = format_at(k)) != NULL; k++)
        if (is_of_folders(f) == folder && looks(f, path, head))
            return f;
    return NULL;
}

static gs_status look_at_head(const gs_part_format **out, const char *path, char *head)
{
    if (strncmp(head, GS_TEXT_MARK, 3) == 0)
        head += 3;
    const bool comment = gs_part__is_comment(head + strspn(head, " \t\r\n0123456789"));

    if (memcmp(head, "\x93NUMPY", 6) == 0)
        return gs_fail(GS_EINVAL, "%s: is one .npy file; give the folder that holds edges.npy", path);
    *out = find_looking(path, false, &(gs_part_head){head, first_line(head), comment});
    if (*out == NULL)
        return gs_fail(GS_EFORMAT, "%s: no known format; inputs are %s, or say .format", path, KNOWN_FORMATS);
    return GS_OK;
}

static gs_status look_into_file(const gs_part_format **out, const char *path, uint64_t memory)
{
    GS_ENDS(gs_part__stream_close_at) gs_stream *s = NULL;
    GS_FREED char *const head = gs_calloc(HEAD_BYTES + 1 + GS_TEXT_PADDING, 1);
    uint64_t got = 0;

    GS_NEED(head != NULL, "%s: no memory to read it", path);
    GS_TRY(gs_part__stream_open(&s, path, memory / 4));
    GS_TRY(gs_part__stream_read(s, head, HEAD_BYTES, &got));
    if (got == 0)
        return gs_fail(GS_EFORMAT, "%s: the file is empty; inputs are %s", path, KNOWN_FORMATS);
    return look_at_head(out, path, head);
}

static gs_status find_format(const gs_part_format **out, const char *path, const char *name, uint64_t memory)
{
    const bool folder = gs_path_is_dir(path);

    if (gs_path_is_absent(path))
        return gs_fail(GS_ENOTFOUND, "%s: there is no such file or folder", path);
    if (name == NULL && !folder)
        return look_into_file(out, path, memory);
    if (name == NULL) {
        *out = find_looking(path, true, NULL);
        return *out != NULL ? GS_OK
                            : gs_fail(GS_ENOTFOUND, "%s: this folder has no edges.npy; inputs are %s", path,
                                      KNOWN_FORMATS);
    }
    for (size_t k = 0; (*out = format_at(k)) != NULL; k++)
        if (strcmp((*out)->name, name) == 0)
            break;
    if (*out == NULL)
        return gs_fail(GS_EINVAL, "format: '%s' is not known; the formats are %s", name, KNOWN_FORMATS);
    if (folder != is_of_folders(*out))
        return gs_fail(GS_EINVAL, "%s: format '%s' needs a %s here", path, name, folder ? "file" : "folder");
    return GS_OK;
}

gs_status gs_part__input_open(gs_part_input *in, gs_part_job *job, const char *path)
{
    memset(in, 0, sizeof(*in));
    gs_part__files_reset(in);
    GS_TRY(find_format(&in->format, path, job->opt->format, job->memory));
    GS_NEED((in->path = gs_strdup(path)) != NULL, "%s: no memory for a path", path);
    return in->format->open != NULL ? in->format->open(in, job) : GS_OK;
}

gs_status gs_part__input_parse(gs_part_input *in, gs_part_job *job)
{
    GS_TRY(in->format->read != NULL ? in->format->read(in, job) : GS_OK);
    if (in->vertices == 0)
        return gs_fail(GS_EFORMAT, "%s: the graph has no vertices", in->path);
    if (in->label_vertices == 0)
        in->label_vertices = in->vertices;
    if (in->vertices >= UINT32_MAX)
        return gs_fail(GS_EUNSUPPORTED, "%s: %lu vertices; a store holds fewer than 2^32 - 1", in->path, in->vertices);
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
    gs_part__files_close(in);
    gs_free(in->types);
    gs_free(in->names_of);
    gs_sort_free(in->text);
    gs_part__names_free(in->names);
    gs_part__relations_free(in->relations);
    gs_free(in->path);
    memset(in, 0, sizeof(*in));
    gs_part__files_reset(in);
}

/* Text input was checked when it was parsed. */
static gs_status text_edges(const gs_part_input *in, gs_part_edge_block *b, uint64_t count)
{
    const uint32_t words = in->text->spec.words;
    const uint32_t *const type = in->relations != NULL ? gs_part__relations_type(in->relations) : NULL;
    const uint32_t *record = b->raw;
    uint64_t got;

    GS_TRY(gs_sort_read(in->text, &b->at, b->raw, count, &got));
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
