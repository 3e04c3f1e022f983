/* input_snap.c - SNAP edge lists, parsed into a temporary file of binary records, since N is known only at the end. */
#include "partition/input_snap.h"

#include <string.h>

#include "partition/edge_text.h"
#include "partition/input_csv.h"
#include "partition/input_konect.h"
#include "partition/text_ids.h"
#include "partition/text_lines.h"

/* The word at p; *p is then behind it and the blanks after it. */
static gs_text_id take_word(const char **p)
{
    gs_text_id id = gs_part__id_of_digits(*p);
    const char *end = id.at + id.length;

    if (!gs_part__is_blank(*end) && !gs_part__is_end(*end)) {
        id.is_number = false;
        while (!gs_part__is_blank(*end) && !gs_part__is_end(*end))
            end++;
        id.length = (size_t)(end - id.at);
    }
    *p = gs_part__skip_blanks(end);
    return id;
}

static gs_status snap_line(gs_edge_block *b, const gs_line *l, const char **end)
{
    const char *p = gs_part__skip_blanks(l->text);
    gs_text_id ends[2];

    if (gs_part__is_comment(p) || *p == '\n') {
        *end = strchr(p, '\n');
        return GS_OK;
    }
    ends[0] = take_word(&p);
    ends[1] = take_word(&p);
    if (*p != '\n')
        return gs_part__line_wrong(l, p, "expected the end of the line after two ids");
    *end = p;
    return gs_part__reading_put(b, l, ends, 1, 0);
}

static gs_status snap_lines(gs_text_reading *r)
{
    gs_lines l;
    gs_status st;

    r->lines.line = snap_line;
    if ((st = gs_part__lines_open(&l, r->lines.job, r->lines.in->path)) == GS_OK &&
        (st = gs_part__reading_begin(r)) == GS_OK)
        st = gs_part__reading_lines(r, &l);
    gs_part__lines_close(&l);
    return st;
}

/* Lists of more than two columns are read as tables. */
gs_status gs_part__snap_read(gs_part_input *in, gs_part_job *job)
{
    uint32_t columns;
    const gs_status st = gs_part__konect_look(in, job, &columns);

    if (st != GS_OK)
        return st;
    return columns > 2 ? gs_part__csv_read(in, job) : gs_part__text_read(in, job, snap_lines);
}
