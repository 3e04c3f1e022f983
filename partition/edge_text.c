/* edge_text.c - edges out of a text, as records of a temporary file: two ids, a weight, a type.
 *
 * Ids are taken as they are, or as names that are numbered later; types may be words. */
#include "partition/edge_text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/external_sort.h"
#include "base/hash.h"
#include "base/size.h"

/* ---- words in a table under a lock that readers share. */

#define MOST_WORDS 65536u
#define MOST_BYTES (1u << 20) /* of all words: they are beside what .memory is divided into */
#define LEAST_SLOTS 1024u
#define TOLD_BYTES 600u /* of words in a line */

typedef struct word {
    const char *text; /* owned, without a 0 */
    uint32_t length, number;
} word;

struct gs_relations {
    const char *path;
    pthread_rwlock_t lock; /* guards all below but `type`, until words are ordered */
    word *word; /* [count] by number; ordered by gs_part__relations_order() */
    uint32_t count, cap, bytes;
    uint32_t *slot; /* [slots] number + 1; 0: free */
    uint32_t slots;
    uint32_t *type; /* [count] */
};

gs_status gs_part__relations_make(gs_relations **out, const char *path)
{
    gs_relations *const r = gs_calloc(1, sizeof(*r));

    if (r == NULL || (r->slot = gs_calloc(LEAST_SLOTS, sizeof(*r->slot))) == NULL) {
        gs_free(r);
        return gs_fail(GS_ENOMEM, "%s: no memory for the names of edge types", path);
    }
    r->path = path;
    r->slots = LEAST_SLOTS;
    pthread_rwlock_init(&r->lock, NULL);
    *out = r;
    return GS_OK;
}

void gs_part__relations_free(gs_relations *r)
{
    if (r == NULL)
        return;
    for (uint32_t k = 0; k < r->count; k++)
        gs_free(r->word[k].text);
    gs_free(r->word);
    gs_free(r->slot);
    gs_free(r->type);
    pthread_rwlock_destroy(&r->lock);
    gs_free(r);
}

/* The slot of a word, or the free one where it belongs. Under the lock. */
static uint32_t *find(const gs_relations *r, const char *text, size_t length)
{
    uint32_t at = (uint32_t)gs_hash64(text, length) & (r->slots - 1);

    while (r->slot[at] != 0) {
        const word *const w = &r->word[r->slot[at] - 1];
        if (w->length == length && memcmp(w->text, text, length) == 0)
            break;
        at = (at + 1) & (r->slots - 1);
    }
    return &r->slot[at];
}

static bool widen(gs_relations *r)
{
    uint32_t *const old = r->slot, *const wider = gs_calloc(r->slots * 2ull, sizeof(*wider));

    if (wider == NULL)
        return false;
    r->slot = wider;
    r->slots *= 2;
    for (uint32_t k = 0; k < r->count; k++)
        *find(r, r->word[k].text, r->word[k].length) = k + 1;
    gs_free(old);
    return true;
}

/* A word that no one has read before. Under the lock, as its only holder. */
static gs_status enter(gs_relations *r, uint32_t *slot, const char *text, size_t length)
{
    if (r->count == MOST_WORDS || r->bytes + length > MOST_BYTES)
        return gs_fail(GS_EUNSUPPORTED, "%s: more than %u edge types, or 1 MiB of their names; is the column of types "
                       "another one?", r->path, MOST_WORDS);
    char *const own = gs_malloc(length);
    if (own == NULL || !gs_grow(&r->word, r->count, &r->cap, sizeof(*r->word))) {
        gs_free(own);
        return gs_fail(GS_ENOMEM, "%s: no memory for the names of edge types", r->path);
    }
    memcpy(own, text, length);
    r->bytes += (uint32_t)length;
    r->word[r->count] = (word){own, (uint32_t)length, r->count};
    *slot = ++r->count;
    if (r->count * 2 > r->slots && !widen(r))
        return gs_fail(GS_ENOMEM, "%s: no memory for the names of edge types", r->path);
    return GS_OK;
}

gs_status gs_part__relations_number(gs_relations *r, uint32_t *out, const char *text, size_t length)
{
    gs_status st = GS_OK;

    pthread_rwlock_rdlock(&r->lock);
    uint32_t number = *find(r, text, length);
    pthread_rwlock_unlock(&r->lock);
    if (number == 0) {
        pthread_rwlock_wrlock(&r->lock);
        uint32_t *const slot = find(r, text, length); /* another may have been faster */
        if (*slot == 0)
            st = enter(r, slot, text, length);
        number = *find(r, text, length);
        pthread_rwlock_unlock(&r->lock);
    }
    *out = number - 1;
    return st;
}

static int shorter_first(const void *a, const void *b)
{
    const word *const x = a, *const y = b;
    return x->length != y->length ? (x->length > y->length) - (x->length < y->length)
                                  : memcmp(x->text, y->text, x->length);
}

/* Which word has which number is said, and kept in the store. */
static void tell_of(const gs_relations *r, const gs_part_job *job)
{
    char text[TOLD_BYTES] = "";
    size_t used = 0;
    uint32_t told = 0;

    for (; told < r->count && used + r->word[told].length + 16 < sizeof(text); told++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u %.*s", told == 0 ? "" : ", ", told,
                                 (int)r->word[told].length, r->word[told].text);
    gs_part__warn(job, "%s: edge types are words, numbered shortest first, those of one length by their bytes: %s%s",
                  r->path, text, told < r->count ? ", ...; all are in edge_type_names.bin" : "");
}

gs_status gs_part__relations_order(gs_relations *r, const gs_part_job *job)
{
    if ((r->type = gs_malloc_array(GS_MAX(r->count, 1), sizeof(*r->type))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the names of edge types", r->path);
    qsort(r->word, r->count, sizeof(*r->word), shorter_first);
    for (uint32_t k = 0; k < r->count; k++)
        r->type[r->word[k].number] = k;
    tell_of(r, job);
    return GS_OK;
}

const uint32_t *gs_part__relations_type(const gs_relations *r) { return r->type; }

gs_status gs_part__relations_text(const gs_relations *r, uint32_t types, char **text, uint64_t *bytes)
{
    uint64_t at = 0;

    /* Those of edges that were all left out come to stand behind the types that the store has, or it has them all. */
    if ((*text = gs_malloc(r->bytes + GS_MAX(r->count, 1))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the names of edge types", r->path);
    for (uint32_t k = 0; k < GS_MIN(types, r->count); k++) {
        memcpy(*text + at, r->word[k].text, r->word[k].length);
        at += r->word[k].length;
        (*text)[at++] = '\n';
    }
    *bytes = at;
    return GS_OK;
}

/* ---- edges out of a text, as records of a temporary file: two ids, a weight, a type. */

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

static uint32_t *edge_record(gs_edge_block *b)
{
    if (__builtin_expect(b->count == b->room, 0) && !grow(b)) {
        gs_fail(GS_ENOMEM, "%s: no memory to read edges", b->lines->in->path);
        return NULL;
    }
    return b->record + b->count++ * b->words;
}

gs_status gs_part__edge_put(gs_edge_block *b, uint64_t u, uint64_t v, float weight, uint32_t type)
{
    uint32_t *const record = edge_record(b);
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

    b->count = 0;
    b->seen = b->exact ? lines->seen : (gs_edge_counts){0};
    for (; l.text < end; l.text = stop + 1) {
        l.number++;
        if (b->exact)
            GS_TRY(check_line(&l, end));
        GS_TRY(lines->line(b, &l, &stop));
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

/* ---- one reading after another, and edges of keys to edges of vertices. */

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
    snprintf(r->why, sizeof(r->why), "%s: line %lu, column %lu: '%.*s' is no number from 0 to %u, so ids are taken as "
             "names; the store keeps them (.ids keep refuses them)", l->path, l->number, (id->at - l->text) + 1,
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
        GS_TRY(gs_part__names_add(r->names, ends[i].at, ends[i].length, &key[i]));
    }
    uint32_t *const record = edge_record(b);
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
        GS_TRY(b->exact ? look_closer(&v[i], b, l, &ends[i], what[i]) : GS_EFORMAT);
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
    GS_FREED uint32_t *const piece = gs_malloc_array(PIECE, keys->spec.words * sizeof(*piece));
    uint64_t done = 0;
    const uint64_t edges = in->edges;

    GS_NEED(piece != NULL, "%s: no memory to read edges", in->path);
    in->edges = 0;
    for (uint64_t got = 1; got > 0; done += got) {
        GS_TRY(gs_sort_read(keys, &at, piece, PIECE, &got));
        for (uint64_t i = 0; i < got; i++) {
            const uint32_t *const record = piece + i * keys->spec.words;
            float weight = 1;
            uint64_t key[2];
            memcpy(key, record, sizeof(key));
            if (in->weighted)
                memcpy(&weight, &record[4], 4);
            GS_TRY(gs_part__text_put(in, gs_part__names_vertex(names, key[0]), gs_part__names_vertex(names, key[1]),
                                     weight, in->typed ? record[4 + in->weighted] : 0));
        }
        gs_part__tick(job, "naming vertices", (double)(done + got) / (double)edges);
        GS_TRY(gs_part__job_result(job));
    }
    return GS_OK;
}

/* The edges that were read become edges of vertices; *same: with another seed, please. */
static gs_status compact(gs_text_reading *r, bool *same)
{
    gs_part_input *const in = r->lines.in;
    gs_part_job *const job = r->lines.job;
    uint64_t count = 0;

    if (in->edges == 0)
        return gs_fail(GS_EFORMAT, "%s: holds no edge", in->path);
    GS_TRY(gs_sort_finish(in->text));
    GS_TRY(gs_part__names_number(r->names, job, &count, same));
    if (*same)
        return GS_OK;
    GS_ENDS(gs_sort_free_at) gs_external_sort *const keys = in->text;
    in->text = NULL;
    GS_TRY(gs_part__text_begin(in, job));
    GS_TRY(translate(in, job, keys, r->names));
    GS_TRY(gs_part__text_end(in));
    gs_part__names_forget(r->names);
    in->vertices = count;
    return GS_OK;
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
    bool same = true;

    for (uint64_t seed = 0; seed < MOST_TRIES && same; seed++) {
        gs_text_reading r = {.lines = {.in = in, .job = job}};
        begin_again(in);
        gs_part__names_free(in->names);
        in->names = NULL;
        GS_TRY(gs_part__names_make(&in->names, job, in->path, seed));
        r.names = in->names;
        GS_TRY(read(&r));
        GS_TRY(compact(&r, &same));
    }
    return same ? gs_fail(GS_EFORMAT, "%s: two of its ids have one key, whatever the seed", in->path) : GS_OK;
}

gs_status gs_part__text_read(gs_part_input *in, gs_part_job *job, gs_status (*read)(gs_text_reading *r))
{
    const char *const ids = job->opt->ids;
    gs_text_reading r = {.lines = {.in = in, .job = job}, .look = ids == NULL};

    if (ids != NULL && strcmp(ids, "compact") == 0)
        return read_names(in, job, read);
    GS_TRY(read(&r));
    if (r.again) {
        gs_part__warn(job, "%s", r.why);
        return read_names(in, job, read);
    }
    if (r.look && in->edges > 0 && r.lines.seen.most > SPARE_VERTICES + SPARE_PER_EDGE * in->edges) {
        gs_part__warn(job, "%s: the largest id is %lu, and there are %lu edges: ids are compacted, and the store keeps "
                      "them (.ids keep makes a vertex of each number)", in->path, r.lines.seen.most, in->edges);
        return read_names(in, job, read);
    }
    GS_TRY(gs_part__text_end(in));
    in->vertices = r.lines.seen.most + 1;
    return GS_OK;
}
