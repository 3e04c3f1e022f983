/* external_sort.c - many buckets of fixed-size records in one temporary file.
 *
 * A bucket is a linked list of segments, each what a full buffer held; or, where the most records of a bucket are
 * known, one segment that grows.
 */
#include "base/external_sort.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/size.h"
#include "base/temporary.h"

#define NO_SEGMENT UINT32_MAX
#define LEAST_RECORDS 64u
#define MOST_BUFFER_BYTES (256u * GS_KIB) /* longer writes gain nothing here */
#define MOST_SPLIT 256u                   /* buckets of a bucket that is split */
#define PIECE_BYTES (64u * GS_KIB)        /* read at once to split one */

struct gs_sort_segment {
    uint64_t offset; /* bytes */
    uint32_t records;
    uint32_t next;
};

/* The segments of buckets whose sizes are known. */
static bool make_segments(gs_external_sort *s)
{
    if (s->spec.each == 0)
        return true;
    if ((s->segment = gs_malloc_array(s->spec.buckets, sizeof(*s->segment))) == NULL)
        return false;
    for (uint32_t b = 0; b < s->spec.buckets; b++) {
        s->segment[b] = (struct gs_sort_segment){b * s->spec.each * s->spec.words * 4u, 0, NO_SEGMENT};
        s->head[b] = b;
    }
    return true;
}

static gs_status make_buffers(gs_external_sort *s)
{
    const gs_sort_spec *const p = &s->spec;
    const uint64_t buffers = (uint64_t)p->buckets * p->writers, record = p->words * 4u;
    const uint64_t least = p->each != 0 ? 1 : LEAST_RECORDS; /* for each flush costs an entry of the bucket's list */
    const uint64_t even = p->records > 0 ? gs_div_up(p->records, buffers) : UINT64_MAX / 2; /* each has so many */
    const uint64_t room = GS_MIN(p->memory / buffers, MOST_BUFFER_BYTES) / record;
    const uint64_t cap = GS_MAX(GS_MIN(room, GS_MAX(2 * even, LEAST_RECORDS)), least);

    s->data_bytes = buffers * cap * record;
    s->data = gs_alloc_pages(s->data_bytes);
    s->buffer = gs_calloc(buffers, sizeof(*s->buffer));
    s->records = gs_arena_take(&s->lists, p->buckets, sizeof(*s->records));
    s->head = gs_arena_take(&s->lists, p->buckets, sizeof(*s->head));
    s->tail = gs_arena_take(&s->lists, p->buckets, sizeof(*s->tail));
    if (s->data == NULL || s->buffer == NULL || s->lists.is_short)
        return gs_fail(GS_ENOMEM, "%s: no memory for %lu buffers", s->path, buffers);
    for (uint64_t i = 0; i < buffers; i++)
        s->buffer[i] = (struct gs_sort_buffer){0, (uint32_t)cap, s->data + i * cap * p->words};
    memset(s->head, 0xff, p->buckets * sizeof(*s->head));
    memset(s->tail, 0xff, p->buckets * sizeof(*s->tail));
    return make_segments(s) ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory for %u buckets", s->path, p->buckets);
}

gs_status gs_sort_make(gs_external_sort **out, const gs_sort_spec *spec)
{
    GS_ENDS(gs_sort_free_at) gs_external_sort *s = gs_calloc(1, sizeof(*s));

    GS_NEED(s != NULL, "%s: no memory for a temporary file", spec->dir);
    s->fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    s->spec = *spec;
    GS_TRY(gs_unnamed_file_called(&s->fd, &s->path, spec->dir, spec->name));
    GS_TRY(make_buffers(s));
    *out = GS_HANDED_OVER(s);
    return GS_OK;
}

static void free_buffers(gs_external_sort *s)
{
    gs_free_pages(s->data, s->data_bytes);
    gs_free(s->buffer);
    s->data = NULL;
    s->data_bytes = 0;
    s->buffer = NULL;
}

void gs_sort_free(gs_external_sort *s)
{
    if (s == NULL)
        return;
    free_buffers(s);
    gs_arena_free(&s->lists);
    gs_free(s->segment);
    if (s->fd >= 0)
        close(s->fd);
    gs_free(s->path);
    pthread_mutex_destroy(&s->lock);
    gs_free(s);
}

/* Reserves room in the file, in a segment of its own or in the bucket's; false: no memory. Under the lock. */
static bool add_segment(gs_external_sort *s, uint32_t bucket, uint32_t records, uint64_t *offset)
{
    const uint64_t record = s->spec.words * 4u;

    if (s->spec.each != 0) {
        struct gs_sort_segment *const own = &s->segment[bucket];
        *offset = own->offset + own->records * record;
        own->records += records;
        return true;
    }
    if (!gs_grow(&s->segment, s->segments, &s->segment_cap, sizeof(*s->segment)))
        return false;
    const uint32_t id = s->segments++;
    s->segment[id] = (struct gs_sort_segment){s->end, records, NO_SEGMENT};
    if (s->tail[bucket] == NO_SEGMENT)
        s->head[bucket] = id;
    else
        s->segment[s->tail[bucket]].next = id;
    s->tail[bucket] = id;
    *offset = s->end;
    s->end += records * record;
    return true;
}

static gs_status flush_buffer(gs_external_sort *s, uint32_t writer, uint32_t bucket)
{
    struct gs_sort_buffer *buffer = &s->buffer[(uint64_t)writer * s->spec.buckets + bucket];
    const uint32_t records = buffer->fill;
    uint64_t offset;

    if (records == 0)
        return GS_OK;
    buffer->fill = 0;
    pthread_mutex_lock(&s->lock);
    const bool ok = add_segment(s, bucket, records, &offset);
    s->records[bucket] += records;
    pthread_mutex_unlock(&s->lock);
    GS_NEED(ok, "%s: no memory for the list of segments", s->path);
    return gs_pwrite_exact(s->fd, buffer->data, (uint64_t)records * s->spec.words * 4u, offset, s->path);
}

uint32_t *gs_sort_flush_put(gs_external_sort *s, uint32_t writer, uint32_t bucket)
{
    const gs_status st = flush_buffer(s, writer, bucket);
    if (st != GS_OK) {
        pthread_mutex_lock(&s->lock);
        s->failure = s->failure == GS_OK ? st : s->failure;
        pthread_mutex_unlock(&s->lock);
        return NULL;
    }
    struct gs_sort_buffer *buffer = &s->buffer[(uint64_t)writer * s->spec.buckets + bucket];
    return buffer->data + (uint64_t)buffer->fill++ * s->spec.words;
}

gs_status gs_sort_append(gs_external_sort *s, uint32_t writer, uint32_t bucket, const uint32_t *record, uint64_t count)
{
    struct gs_sort_buffer *const buffer = &s->buffer[(uint64_t)writer * s->spec.buckets + bucket];

    while (count > 0) {
        const uint32_t take = (uint32_t)GS_MIN(count, buffer->cap - buffer->fill);
        memcpy(buffer->data + (uint64_t)buffer->fill * s->spec.words, record, (size_t)take * s->spec.words * 4u);
        buffer->fill += take;
        record += (uint64_t)take * s->spec.words;
        count -= take;
        if (count > 0)
            GS_TRY(flush_buffer(s, writer, bucket));
    }
    return GS_OK;
}

gs_status gs_sort_failure(gs_external_sort *s)
{
    pthread_mutex_lock(&s->lock);
    const gs_status st = s->failure;
    pthread_mutex_unlock(&s->lock);
    return st;
}

gs_status gs_sort_finish(gs_external_sort *s)
{
    for (uint32_t bucket = 0; bucket < s->spec.buckets; bucket++) {
        for (uint32_t writer = 0; writer < s->spec.writers; writer++)
            GS_TRY(flush_buffer(s, writer, bucket));
    }
    free_buffers(s);
    return GS_OK;
}

uint64_t gs_sort_records(const gs_external_sort *s, uint32_t bucket) { return s->records[bucket]; }

uint64_t gs_sort_most_records(const gs_external_sort *s)
{
    uint64_t most = 1;
    for (uint32_t b = 0; b < s->spec.buckets; b++)
        most = GS_MAX(most, s->records[b]);
    return most;
}

void gs_sort_prefetch(const gs_external_sort *s, uint32_t bucket)
{
    for (uint32_t id = s->head[bucket]; id != NO_SEGMENT; id = s->segment[id].next) {
        const struct gs_sort_segment *g = &s->segment[id];
        posix_fadvise(s->fd, (off_t)g->offset, (off_t)((uint64_t)g->records * s->spec.words * 4u), POSIX_FADV_WILLNEED);
    }
}

gs_sort_cursor gs_sort_first(const gs_external_sort *s, uint32_t bucket)
{
    return (gs_sort_cursor){s->head[bucket], 0};
}

gs_status gs_sort_read(const gs_external_sort *s, gs_sort_cursor *at, uint32_t *dst, uint64_t cap,
                              uint64_t *count)
{
    const uint64_t record = s->spec.words * 4u;
    uint64_t got = 0;

    while (got < cap && at->segment != NO_SEGMENT) {
        const struct gs_sort_segment *g = &s->segment[at->segment];
        const uint64_t take = GS_MIN(cap - got, g->records - at->taken);
        GS_TRY(gs_pread_exact(s->fd, dst + got * s->spec.words, take * record, g->offset + at->taken * record,
                              s->path));
        got += take;
        at->taken += take;
        if (at->taken == g->records)
            *at = (gs_sort_cursor){g->next, 0};
    }
    *count = got;
    return GS_OK;
}

/* -- one bucket after the other --------------------------------------------------- */

static gs_status split_records(gs_external_sort *sub, const gs_sort_part *p, uint32_t shift, const gs_sort_visitor *v)
{
    const uint32_t words = p->sort->spec.words;
    const uint64_t cap = PIECE_BYTES / (words * 4u) + 1;
    GS_FREED uint32_t *const piece = gs_malloc_array(cap, words * 4u);
    gs_sort_cursor at = gs_sort_first(p->sort, p->bucket);

    GS_NEED(piece != NULL, "%s: no memory to split a bucket", p->sort->path);
    for (uint64_t count = 1; count != 0;) {
        GS_TRY(gs_sort_read(p->sort, &at, piece, cap, &count));
        GS_TRY(v->check(v->context));
        for (const uint32_t *r = piece; r < piece + count * words; r += words)
            GS_TRY(gs_sort_append(sub, 0, (uint32_t)((v->key(v->context, r) - p->first) >> shift), r, 1));
    }
    return gs_sort_finish(sub);
}

static gs_status visit_large(const gs_sort_part *p, const gs_sort_visitor *v)
{
    GS_ENDS(gs_sort_free_at) gs_external_sort *sub = NULL;
    uint32_t shift = 0;

    if (p->keys == 1)
        return v->too_many(v->context, p->first, p->records);
    while ((p->keys - 1) >> shift >= MOST_SPLIT)
        shift++;
    const gs_sort_spec spec = {.dir = p->sort->spec.dir, .name = p->sort->spec.name,
                               .buckets = (uint32_t)((p->keys - 1) >> shift) + 1, .writers = 1,
                               .words = p->sort->spec.words, .memory = v->memory};
    GS_TRY(gs_sort_make(&sub, &spec));
    GS_TRY(split_records(sub, p, shift, v));
    for (uint32_t b = 0; b < spec.buckets; b++) {
        const uint64_t from = (uint64_t)b << shift;
        GS_TRY(gs_sort_visit(sub, b, p->first + from, GS_MIN(p->keys - from, 1ull << shift), v));
    }
    return GS_OK;
}

gs_status gs_sort_visit(const gs_external_sort *s, uint32_t bucket, uint64_t first, uint64_t keys,
                        const gs_sort_visitor *v)
{
    const gs_sort_part p = {s, bucket, first, keys, gs_sort_records(s, bucket)};

    GS_TRY(v->check(v->context));
    return p.records > v->most ? visit_large(&p, v) : v->visit(v->context, &p);
}
