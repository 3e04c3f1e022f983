/* spill.c - many streams of fixed-size records in one temporary file.
 *
 * Each stream of each writer has a small buffer; a full one is appended to the
 * file as one segment, so the disk sees one sequential writer however many
 * streams there are. A stream is a linked list of segments. The order of
 * segments depends on timing: readers must not depend on record order.
 */
#include "partition/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/grow.h"
#include "base/size.h"
#include "base/temporary.h"

#define NO_SEGMENT UINT32_MAX
#define LEAST_RECORDS 64u
#define MOST_BUFFER_BYTES (256u * GS_KIB) /* longer writes gain nothing here */

struct gs_spill_segment {
    uint64_t offset; /* bytes */
    uint32_t records;
    uint32_t next;
};

gs_status gs_part__unnamed_file(int *fd, char **path, const char *dir, const char *name)
{
    if ((*path = gs_path_join(dir, name)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a temporary file", dir);
    return gs_unnamed_file(fd, dir);
}

static gs_status make_lanes(gs_spill *s, uint64_t memory)
{
    const uint64_t buffers = (uint64_t)s->streams * s->writers, record = s->words * 4u;
    uint64_t cap = GS_MIN(memory / buffers, MOST_BUFFER_BYTES) / record;

    cap = GS_MAX(cap, LEAST_RECORDS);
    s->data_bytes = buffers * cap * record;
    s->data = gs_alloc_pages(s->data_bytes);
    s->buffer = gs_calloc(buffers, sizeof(*s->buffer));
    s->records = gs_calloc(s->streams, sizeof(*s->records));
    s->head = gs_malloc_array(s->streams, sizeof(*s->head));
    s->tail = gs_malloc_array(s->streams, sizeof(*s->tail));
    if (!s->data || !s->buffer || !s->records || !s->head || !s->tail)
        return gs_fail(GS_ENOMEM, "%s: no memory for %llu stream buffers", s->path, (unsigned long long)buffers);
    for (uint64_t i = 0; i < buffers; i++)
        s->buffer[i] = (struct gs_spill_buffer){0, (uint32_t)cap, s->data + i * cap * s->words};
    memset(s->head, 0xff, s->streams * sizeof(*s->head));
    memset(s->tail, 0xff, s->streams * sizeof(*s->tail));
    return GS_OK;
}

gs_status gs_part__spill_make(gs_spill **out, const char *dir, const char *name, uint32_t streams,
                              uint32_t writers, uint32_t words, uint64_t memory)
{
    gs_spill *s = gs_calloc(1, sizeof(*s));
    gs_status st;

    if (s == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a temporary file", dir);
    s->fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    s->streams = streams;
    s->writers = writers;
    s->words = words;
    if ((st = gs_part__unnamed_file(&s->fd, &s->path, dir, name)) != GS_OK || (st = make_lanes(s, memory)) != GS_OK)
        goto done;
    *out = s;
    s = NULL; /* now the caller's */
done:
    gs_part__spill_free(s);
    return st;
}

static void free_lanes(gs_spill *s)
{
    gs_free_pages(s->data, s->data_bytes);
    gs_free(s->buffer);
    s->data = NULL;
    s->data_bytes = 0;
    s->buffer = NULL;
}

void gs_part__spill_free(gs_spill *s)
{
    if (s == NULL)
        return;
    if (s->data != NULL)
        free_lanes(s);
    gs_free(s->buffer);
    gs_free(s->records);
    gs_free(s->head);
    gs_free(s->tail);
    gs_free(s->segment);
    if (s->fd >= 0)
        close(s->fd);
    gs_free(s->path);
    pthread_mutex_destroy(&s->lock);
    gs_free(s);
}

/* Reserves room in the file and enters the segment; false: no memory. */
static bool add_segment(gs_spill *s, uint32_t stream, uint32_t records, uint64_t *offset)
{
    pthread_mutex_lock(&s->lock);
    const bool ok = gs_grow(&s->segment, s->segments, &s->segment_cap, sizeof(*s->segment));
    if (ok) {
        const uint32_t id = s->segments++;
        s->segment[id] = (struct gs_spill_segment){s->end, records, NO_SEGMENT};
        if (s->tail[stream] == NO_SEGMENT)
            s->head[stream] = id;
        else
            s->segment[s->tail[stream]].next = id;
        s->tail[stream] = id;
        s->records[stream] += records;
        *offset = s->end;
        s->end += (uint64_t)records * s->words * 4u;
    }
    pthread_mutex_unlock(&s->lock);
    return ok;
}

static gs_status flush_lane(gs_spill *s, uint32_t writer, uint32_t stream)
{
    struct gs_spill_buffer *buffer = &s->buffer[(uint64_t)writer * s->streams + stream];
    const uint32_t records = buffer->fill;
    uint64_t offset;

    if (records == 0)
        return GS_OK;
    buffer->fill = 0;
    if (!add_segment(s, stream, records, &offset))
        return gs_fail(GS_ENOMEM, "%s: no memory for the list of segments", s->path);
    return gs_pwrite_exact(s->fd, buffer->data, (uint64_t)records * s->words * 4u, offset, s->path);
}

uint32_t *gs_part__spill_flush_put(gs_spill *s, uint32_t writer, uint32_t stream)
{
    const gs_status st = flush_lane(s, writer, stream);
    if (st != GS_OK) {
        pthread_mutex_lock(&s->lock);
        s->failure = s->failure == GS_OK ? st : s->failure;
        pthread_mutex_unlock(&s->lock);
        return NULL;
    }
    struct gs_spill_buffer *buffer = &s->buffer[(uint64_t)writer * s->streams + stream];
    return buffer->data + (uint64_t)buffer->fill++ * s->words;
}

gs_status gs_part__spill_append(gs_spill *s, uint32_t writer, uint32_t stream, const uint32_t *record, uint64_t count)
{
    struct gs_spill_buffer *const buffer = &s->buffer[(uint64_t)writer * s->streams + stream];
    gs_status st = GS_OK;

    while (count > 0 && st == GS_OK) {
        const uint32_t take = (uint32_t)GS_MIN(count, buffer->cap - buffer->fill);
        memcpy(buffer->data + (uint64_t)buffer->fill * s->words, record, (size_t)take * s->words * 4u);
        buffer->fill += take;
        record += (uint64_t)take * s->words;
        count -= take;
        if (count > 0)
            st = flush_lane(s, writer, stream);
    }
    return st;
}

gs_status gs_part__spill_failure(gs_spill *s)
{
    pthread_mutex_lock(&s->lock);
    const gs_status st = s->failure;
    pthread_mutex_unlock(&s->lock);
    return st;
}

gs_status gs_part__spill_finish(gs_spill *s)
{
    for (uint32_t stream = 0; stream < s->streams; stream++) {
        for (uint32_t writer = 0; writer < s->writers; writer++) {
            const gs_status st = flush_lane(s, writer, stream);
            if (st != GS_OK)
                return st;
        }
    }
    free_lanes(s);
    return GS_OK;
}

uint64_t gs_part__spill_records(const gs_spill *s, uint32_t stream) { return s->records[stream]; }

void gs_part__spill_prefetch(const gs_spill *s, uint32_t stream)
{
    for (uint32_t id = s->head[stream]; id != NO_SEGMENT; id = s->segment[id].next) {
        const struct gs_spill_segment *g = &s->segment[id];
        posix_fadvise(s->fd, (off_t)g->offset, (off_t)((uint64_t)g->records * s->words * 4u), POSIX_FADV_WILLNEED);
    }
}

gs_spill_cursor gs_part__spill_first(const gs_spill *s, uint32_t stream)
{
    return (gs_spill_cursor){s->head[stream], 0};
}

gs_status gs_part__spill_read(const gs_spill *s, gs_spill_cursor *at, uint32_t *dst, uint64_t cap,
                              uint64_t *count)
{
    const uint64_t record = s->words * 4u;
    uint64_t got = 0;

    while (got < cap && at->segment != NO_SEGMENT) {
        const struct gs_spill_segment *g = &s->segment[at->segment];
        const uint64_t take = GS_MIN(cap - got, g->records - at->taken);
        const gs_status st = gs_pread_exact(s->fd, dst + got * s->words, take * record,
                                            g->offset + at->taken * record, s->path);
        if (st != GS_OK)
            return st;
        got += take;
        at->taken += take;
        if (at->taken == g->records)
            *at = (gs_spill_cursor){g->next, 0};
    }
    *count = got;
    return GS_OK;
}
