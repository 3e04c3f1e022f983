/* edge_text.c - edges out of a text, as records of a temporary file: two ids, a weight, a type. */
#include "partition/edge_text.h"

#include <string.h>

#include "base/alloc.h"
#include "base/external_sort.h"
#include "base/size.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/text_blocks.h"

#define LEAST_ROOM 4096u

gs_status gs_part__text_begin(gs_part_input *in, const gs_part_job *job)
{
    const uint32_t words = 2u + in->weighted + in->typed;
    const gs_sort_spec spec = {.dir = job->dir, .name = "tmp.edges", .buckets = 1, .writers = 1, .words = words,
                               .memory = 256 * GS_KIB};
    return gs_sort_make(&in->text, &spec);
}

static void set_record(uint32_t *record, const gs_part_input *in, uint64_t u, uint64_t v, float weight, uint32_t type)
{
    record[0] = (uint32_t)u;
    record[1] = (uint32_t)v;
    if (in->weighted)
        memcpy(&record[2], &weight, 4);
    if (in->typed)
        record[2 + in->weighted] = type;
}

gs_status gs_part__text_put(gs_part_input *in, uint64_t u, uint64_t v, float weight, uint32_t type)
{
    uint32_t *const record = gs_sort_put(in->text, 0, 0);
    if (record == NULL)
        return gs_sort_failure(in->text);
    set_record(record, in, u, v, weight, type);
    in->edges++;
    return GS_OK;
}

gs_status gs_part__text_end(gs_part_input *in)
{
    if (in->edges == 0 && in->vertices == 0)
        return gs_fail(GS_EFORMAT, "%s: holds no edge", in->path);
    return gs_sort_finish(in->text);
}

/* -- the records of a block ------------------------------------------------------------ */

static bool grow(gs_edge_block *b)
{
    const uint64_t room = GS_MAX(b->room * 2, LEAST_ROOM);
    uint32_t *const grown = gs_realloc(b->record, room * b->words * sizeof(*grown));
    if (grown == NULL)
        return false;
    b->record = grown;
    b->room = room;
    return true;
}

uint32_t *gs_part__edge_record(gs_edge_block *b)
{
    if (__builtin_expect(b->count == b->room, 0) && !grow(b)) {
        gs_fail(GS_ENOMEM, "%s: no memory to read edges", b->lines->in->path);
        return NULL;
    }
    return b->record + b->count++ * b->words;
}

gs_status gs_part__edge_put(gs_edge_block *b, uint64_t u, uint64_t v, float weight, uint32_t type)
{
    uint32_t *const record = gs_part__edge_record(b);
    if (record == NULL)
        return GS_ENOMEM;
    set_record(record, b->lines->in, u, v, weight, type);
    return GS_OK;
}

gs_status gs_part__edge_block_end(gs_part_input *in, gs_edge_block *b)
{
    const gs_status st = gs_sort_append(in->text, 0, 0, b->record, b->count);
    in->edges += b->count;
    b->count = 0;
    return st;
}

void gs_part__edge_block_release(void *own)
{
    gs_edge_block *const b = own;
    gs_free(b->record);
}

/* -- lines ----------------------------------------------------------------------------- */

/* Said of the line before it is read, where it is read to tell what is wrong. */
static gs_status check_line(const gs_line *l, const char *end)
{
    const char *const newline = memchr(l->text, '\n', (size_t)(end - l->text));
    const size_t length = (size_t)(newline - l->text);

    if (length <= GS_LINE_LIMIT)
        return gs_part__line_check(l, length);
    const gs_line before = {.path = l->path, .number = l->number - 1};
    return gs_part__line_too_long(&before, GS_LINE_LIMIT);
}

static gs_status read_lines(gs_edge_block *b, const gs_text_block *text)
{
    const gs_edge_lines *const lines = b->lines;
    const char *const end = text->text + text->bytes, *stop = NULL;
    gs_line l = {.path = lines->at.path, .number = b->exact ? lines->at.number : 0, .text = text->text};
    gs_status st;

    b->count = 0;
    b->seen = b->exact ? lines->seen : (gs_edge_counts){0};
    for (; l.text < end; l.text = stop + 1) {
        l.number++;
        if ((b->exact && (st = check_line(&l, end)) != GS_OK) || (st = lines->line(b, &l, &stop)) != GS_OK)
            return st;
        if (stop - l.text > GS_LINE_LIMIT)
            return GS_EFORMAT; /* and the second reading says so */
    }
    b->number = l.number;
    return GS_OK;
}

static void parse(void *context, const gs_text_block *text, void *own)
{
    gs_edge_block *const b = own;

    b->lines = context;
    b->words = b->lines->in->text->spec.words;
    b->whole = !b->lines->in_order && memchr(text->text, '\0', text->bytes) == NULL &&
               read_lines(b, text) == GS_OK;
}

static gs_edge_counts sum(const gs_edge_counts *a, const gs_edge_counts *b)
{
    return (gs_edge_counts){.most = GS_MAX(a->most, b->most), .entries = a->entries + b->entries,
                            .below = a->below || b->below, .above = a->above || b->above};
}

static gs_status pass(void *context, const gs_text_block *text, void *own)
{
    gs_edge_lines *const lines = context;
    gs_edge_block *const b = own;
    const gs_edge_counts all = sum(&lines->seen, &b->seen);

    if (b->whole && (lines->fits == NULL || lines->fits(lines, &all))) {
        lines->seen = all;
        lines->at.number += b->number;
    } else {
        b->exact = true;
        const gs_status st = read_lines(b, text);
        b->exact = false;
        if (st != GS_OK)
            return st;
        lines->seen = b->seen;
        lines->at.number = b->number;
    }
    return gs_part__edge_block_end(lines->in, b);
}

gs_status gs_part__edge_lines_read(gs_edge_lines *lines, gs_lines *l)
{
    const gs_text_reader reader = {.context = lines, .doing = "reading edges", .limit = GS_LINE_LIMIT,
                                   .own_bytes = sizeof(gs_edge_block), .parse = parse, .pass = pass,
                                   .release = gs_part__edge_block_release};
    lines->at = l->line;
    return gs_part__text_blocks(l, lines->job, &reader);
}
