/* input_konect.c - "% sym weighted": a format, sym, asym or bip, and what weights are. The lines below have two ids, a
 * weight or how often the edge is there, and a time (konect.cc). */
#include "partition/input_konect.h"

#include <string.h>

#include "partition/text_lines.h"

static bool takes(const char **p, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*p, word, n) != 0 || !(gs_part__is_blank((*p)[n]) || gs_part__is_end((*p)[n])))
        return false;
    *p = gs_part__skip_blanks(*p + n);
    return true;
}

/* The first line's words, behind its %. */
static gs_status read_format(gs_part_input *in, const char *p)
{
    static const char *const weights[] = {"unweighted", "positive",      "posweighted", "signed",
                                          "multisigned", "weighted",     "multiweighted", "dynamic",
                                          "multiposweighted", NULL};
    const bool sym = takes(&p, "sym"), bip = !sym && takes(&p, "bip"), asym = !sym && !bip && takes(&p, "asym");

    if (!sym && !bip && !asym)
        return GS_OK;
    for (size_t i = 0; weights[i] != NULL && !in->konect; i++)
        in->konect = takes(&p, weights[i]) && gs_part__is_end(*p);
    in->undirected = in->konect && sym;
    if (in->konect && bip)
        return gs_fail(GS_EUNSUPPORTED,
                       "%s: is bipartite (%% bip): its two columns count different vertices, and a store has one kind; "
                       "number the second column's from where the first's end, and say asym",
                       in->path);
    return GS_OK;
}

gs_status gs_part__konect_look(gs_part_input *in, const gs_part_job *job, uint32_t *columns)
{
    gs_lines l;
    char *text = NULL;
    gs_status st = gs_part__lines_open(&l, job, in->path);

    *columns = 0;
    in->konect = in->undirected = false;
    while (st == GS_OK && *columns == 0 && (st = gs_part__lines_next(&l, &text)) == GS_OK && text != NULL) {
        const char *p = gs_part__skip_blanks(text);
        if (l.line.number == 1 && *p == '%')
            st = read_format(in, gs_part__skip_blanks(p + 1));
        for (; !gs_part__is_comment(p) && *p != '\0'; ++*columns) {
            while (*p != '\0' && !gs_part__is_blank(*p))
                p++;
            p = gs_part__skip_blanks(p);
        }
    }
    gs_part__lines_close(&l);
    return st;
}
