/* text_ids.c - one reading after another, and edges of keys to edges of vertices. */
#include "partition/text_ids.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/external_sort.h"
#include "base/size.h"
#include "partition/edge_text.h"

#define MOST_TRIES 4 /* of seeds, when two of all names have one key: one in 2^64 each for each pair */
#define PIECE 16384u
/* Numbers are taken as they are where at most so many vertices would have no edge. */
#define SPARE_VERTICES (1u << 20)
#define SPARE_PER_EDGE 8u

gs_status gs_part__ids_option(const char *ids)
{
    if (ids == NULL || strcmp(ids, "keep") == 0 || strcmp(ids, "compact") == 0)
        return GS_OK;
    return gs_fail(GS_EINVAL, ".ids %s: is neither keep nor compact", ids);
}

/* What take_number() says of a field that something else may be behind, as a comma: a 0 stands there meanwhile. Texts
 * are their worker's own, and so may be written to. */
gs_status gs_part__id_number(uint64_t *out, const gs_line *l, const gs_text_id *id, uint64_t most, const char *what)
{
    if (id->is_number && id->number <= most) {
        *out = id->number;
        return GS_OK;
    }
    char *const end = (char *)(uintptr_t)(id->at + id->length);
    const char behind = *end, *p = id->at;

    *end = '\0';
    gs_status st = gs_part__take_number(out, &p, l, 0, most, what);
    if (st == GS_OK && *p != '\0')
        st = gs_part__line_wrong(l, p, "expected one number a column");
    *end = behind;
    return st;
}

/* May ids be names, as this one, of the last entry, is none that a vertex has? Where a list begins with numbers, a word
 * in it is damage; so is anywhere a number that no unsigned one of 64 bits is. */
static bool may_be_name(const gs_edge_block *b, const gs_text_id *id)
{
    const size_t sign = id->at[0] == '-' || id->at[0] == '+';
    size_t digits = sign;
    uint64_t v = 0;
    bool fits = true;

    for (; digits < id->length && id->at[digits] >= '0' && id->at[digits] <= '9'; digits++) {
        const uint64_t digit = (uint64_t)(id->at[digits] - '0');
        fits = fits && v <= (UINT64_MAX - digit) / 10;
        v = v * 10 + digit;
    }
    return digits > sign && digits == id->length ? sign == 0 && fits : b->seen.entries == 1;
}

/* An id that is none at first sight. Ends the reading where it is a name; the block is exact. */
static gs_status look_closer(uint64_t *v, gs_edge_block *b, const gs_line *l, const gs_text_id *id, const char *what)
{
    gs_text_reading *const r = b->lines->context;

    if (!r->look || id->length == 0)
        return gs_part__id_number(v, l, id, GS_MOST_ID, what);
    if (!may_be_name(b, id))
        return gs_fail_hint(gs_part__id_number(v, l, id, GS_MOST_ID, what), ".ids compact takes all ids as names");
    snprintf(r->why, sizeof(r->why),
             "%s: line %llu, column %llu: '%.*s' is no number from 0 to %u, so ids are taken as names; the store keeps "
             "them (.ids keep refuses them)",
             l->path, (unsigned long long)l->number, (unsigned long long)(id->at - l->text) + 1,
             (int)GS_MIN(id->length, 64), id->at, GS_MOST_ID);
    r->again = true;
    return GS_EAGAIN;
}

static gs_status put_names(gs_edge_block *b, const gs_line *l, const gs_text_id ends[2], float weight, uint32_t type)
{
    const gs_part_input *const in = b->lines->in;
    const gs_text_reading *const r = b->lines->context;
    uint64_t key[2];

    for (int i = 0; i < 2; i++) {
        if (ends[i].length == 0)
            return gs_part__line_wrong(l, ends[i].at,
                                       i == 0 ? "the source id is empty" : "the destination id is empty");
        if (ends[i].length > GS_MOST_NAME)
            return gs_part__line_wrong(l, ends[i].at, "an id of more than 4096 bytes");
        const gs_status st = gs_part__names_add(r->names, ends[i].at, ends[i].length, &key[i]);
        if (st != GS_OK)
            return st;
    }
    uint32_t *const record = gs_part__edge_record(b);
    if (record == NULL)
        return GS_ENOMEM;
    memcpy(record, key, sizeof(key));
    if (in->weighted)
        memcpy(&record[4], &weight, 4);
    if (in->typed)
        record[4 + in->weighted] = type;
    return GS_OK;
}

static gs_status put_as_they_are(gs_edge_block *b, const gs_line *l, const gs_text_id ends[2], float weight,
                                 uint32_t type)
{
    static const char *const what[] = {"the source id", "the destination id"};
    uint64_t v[2] = {ends[0].number, ends[1].number};

    for (int i = 0; i < 2; i++) {
        if (ends[i].is_number && v[i] <= GS_MOST_ID)
            continue;
        const gs_status st = b->exact ? look_closer(&v[i], b, l, &ends[i], what[i]) : GS_EFORMAT;
        if (st != GS_OK)
            return st;
    }
    b->seen.most = GS_MAX(b->seen.most, GS_MAX(v[0], v[1]));
    return gs_part__edge_put(b, v[0], v[1], weight, type);
}

gs_status gs_part__reading_put(gs_edge_block *b, const gs_line *l, const gs_text_id ends[2], float weight,
                               uint32_t type)
{
    const gs_text_reading *const r = b->lines->context;

    b->seen.entries++;
    return r->names != NULL ? put_names(b, l, ends, weight, type) : put_as_they_are(b, l, ends, weight, type);
}

gs_status gs_part__reading_begin(gs_text_reading *r)
{
    gs_part_input *const in = r->lines.in;

    if (r->names == NULL)
        return gs_part__text_begin(in, r->lines.job);
    const gs_sort_spec spec = {.dir = r->lines.job->dir, .name = "tmp.keys", .buckets = 1, .writers = 1,
                               .words = 4u + in->weighted + in->typed, .memory = 256 * GS_KIB};
    return gs_sort_make(&in->text, &spec);
}

gs_status gs_part__reading_lines(gs_text_reading *r, gs_lines *l)
{
    r->lines.context = r;
    r->lines.in_order = r->names != NULL;
    return gs_part__edge_lines_read(&r->lines, l);
}

/* -- keys to vertices ------------------------------------------------------------------ */

static gs_status translate(gs_part_input *in, gs_part_job *job, gs_external_sort *keys, const gs_names *names)
{
    gs_sort_cursor at = gs_sort_first(keys, 0);
    uint32_t *const piece = gs_malloc_array(PIECE, keys->spec.words * sizeof(*piece));
    uint64_t got = 1, done = 0;
    const uint64_t edges = in->edges;
    gs_status st = piece != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory to read edges", in->path);

    in->edges = 0;
    while (st == GS_OK && got > 0 && (st = gs_sort_read(keys, &at, piece, PIECE, &got)) == GS_OK) {
        for (uint64_t i = 0; i < got && st == GS_OK; i++) {
            const uint32_t *const record = piece + i * keys->spec.words;
            float weight = 1;
            uint64_t key[2];
            memcpy(key, record, sizeof(key));
            if (in->weighted)
                memcpy(&weight, &record[4], 4);
            st = gs_part__text_put(in, gs_part__names_vertex(names, key[0]), gs_part__names_vertex(names, key[1]),
                                   weight, in->typed ? record[4 + in->weighted] : 0);
        }
        done += got;
        gs_part__tick(job, "naming vertices", (double)done / (double)edges);
        if (st == GS_OK)
            st = gs_part__job_result(job);
    }
    gs_free(piece);
    return st;
}

/* The edges that were read become edges of vertices; *same: with another seed, please. */
static gs_status compact(gs_text_reading *r, bool *same)
{
    gs_part_input *const in = r->lines.in;
    gs_part_job *const job = r->lines.job;
    gs_external_sort *const keys = in->text;
    uint64_t count = 0;
    gs_status st;

    if (in->edges == 0)
        return gs_fail(GS_EFORMAT, "%s: holds no edge", in->path);
    if ((st = gs_sort_finish(keys)) != GS_OK ||
        (st = gs_part__names_number(r->names, job, &count, same)) != GS_OK || *same)
        return st;
    in->text = NULL;
    if ((st = gs_part__text_begin(in, job)) == GS_OK && (st = translate(in, job, keys, r->names)) == GS_OK)
        st = gs_part__text_end(in);
    gs_sort_free(keys);
    gs_part__names_forget(r->names);
    in->vertices = count;
    return st;
}

/* -- readings ----------------------------------------------------------------------------- */

static void begin_again(gs_part_input *in)
{
    gs_sort_free(in->text);
    in->text = NULL;
    in->edges = in->vertices = 0;
    in->typed = in->weighted = false;
}

static gs_status read_names(gs_part_input *in, gs_part_job *job, gs_status (*read)(gs_text_reading *r))
{
    gs_status st = GS_OK;
    bool same = true;

    for (uint64_t seed = 0; seed < MOST_TRIES && st == GS_OK && same; seed++) {
        gs_text_reading r = {.lines = {.in = in, .job = job}};
        begin_again(in);
        gs_part__names_free(in->names);
        in->names = NULL;
        if ((st = gs_part__names_make(&in->names, job, in->path, seed)) != GS_OK)
            break;
        r.names = in->names;
        if ((st = read(&r)) == GS_OK)
            st = compact(&r, &same);
    }
    return st == GS_OK && same ? gs_fail(GS_EFORMAT, "%s: two of its ids have one key, whatever the seed", in->path)
                               : st;
}

gs_status gs_part__text_read(gs_part_input *in, gs_part_job *job, gs_status (*read)(gs_text_reading *r))
{
    const char *const ids = job->opt->ids;
    gs_text_reading r = {.lines = {.in = in, .job = job}, .look = ids == NULL};
    gs_status st;

    if (ids != NULL && strcmp(ids, "compact") == 0)
        return read_names(in, job, read);
    st = read(&r);
    if (st == GS_OK && r.again) {
        gs_part__warn(job, "%s", r.why);
        return read_names(in, job, read);
    }
    if (st != GS_OK)
        return st;
    if (r.look && in->edges > 0 && r.lines.seen.most > SPARE_VERTICES + SPARE_PER_EDGE * in->edges) {
        gs_part__warn(job,
                      "%s: the largest id is %llu, and there are %llu edges: ids are compacted, and the store keeps "
                      "them (.ids keep makes a vertex of each number)",
                      in->path, (unsigned long long)r.lines.seen.most, (unsigned long long)in->edges);
        return read_names(in, job, read);
    }
    if ((st = gs_part__text_end(in)) == GS_OK)
        in->vertices = r.lines.seen.most + 1;
    return st;
}
