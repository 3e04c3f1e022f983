/* spill.h - many streams of records in one temporary file. */
#ifndef GS_PARTITION_SPILL_H
#define GS_PARTITION_SPILL_H

#include <pthread.h>
#include <stdint.h>

#include "base/status.h"

/* A file in `dir` without a name (base/temporary.h), so that it goes away however
 * the process ends. *path, of `name`, is for messages and the caller's, on failure too. */
gs_status gs_part__unnamed_file(int *fd, char **path, const char *dir, const char *name);

typedef struct gs_spill gs_spill;

/* Records of `words` u32. `writers` threads may put at the same time, each
 * with its own number. `memory` bounds the buffers (at least 64 records a
 * stream and writer all the same). The file has no name after this call, so
 * it goes away however the process ends. */
gs_status gs_part__spill_make(gs_spill **out, const char *dir, const char *name, uint32_t streams,
                              uint32_t writers, uint32_t words, uint64_t memory);
void gs_part__spill_free(gs_spill *s); /* NULL is allowed */
/* The slow path of gs_part__spill_put(). */
uint32_t *gs_part__spill_flush_put(gs_spill *s, uint32_t writer, uint32_t stream);
/* Puts `count` records behind one another. */
gs_status gs_part__spill_append(gs_spill *s, uint32_t writer, uint32_t stream, const uint32_t *record, uint64_t count);
/* Why a put gave NULL; its text is in gs_last_error() of the thread that put. */
gs_status gs_part__spill_failure(gs_spill *s);
/* Writes what is buffered and frees the buffers; reading comes after. */
gs_status gs_part__spill_finish(gs_spill *s);
uint64_t gs_part__spill_records(const gs_spill *s, uint32_t stream);
/* Asks the kernel to read ahead. */
void gs_part__spill_prefetch(const gs_spill *s, uint32_t stream);

typedef struct gs_spill_cursor {
    uint32_t segment; /* of the stream's list; UINT32_MAX at its end */
    uint64_t taken;   /* records of it already read */
} gs_spill_cursor;
gs_spill_cursor gs_part__spill_first(const gs_spill *s, uint32_t stream);
/* Up to `cap` records; *count is 0 at the end only. */
gs_status gs_part__spill_read(const gs_spill *s, gs_spill_cursor *at, uint32_t *dst, uint64_t cap,
                              uint64_t *count);

/* Open so that putting a record is inlined: this is the innermost store of
 * every pass over the edges. */
struct gs_spill_buffer {
    uint32_t fill; /* records in `data` */
    uint32_t cap;
    uint32_t *data;
};
struct gs_spill {
    uint32_t streams, writers, words;
    struct gs_spill_buffer *buffer; /* [writers][streams] */
    uint32_t *data;                 /* of all buffers */
    uint64_t data_bytes;
    uint64_t *records; /* [streams], under `lock` */
    uint32_t *head, *tail; /* [streams] first and last segment, under `lock` */
    struct gs_spill_segment *segment; /* under `lock` while writing */
    uint32_t segments, segment_cap;
    uint64_t end; /* of the file, under `lock` */
    gs_status failure; /* the first one, under `lock` */
    int fd;
    char *path;
    pthread_mutex_t lock;
};
/* Where to put one record of `stream`; NULL on failure. */
static inline uint32_t *gs_part__spill_put(gs_spill *s, uint32_t writer, uint32_t stream)
{
    struct gs_spill_buffer *buffer = &s->buffer[(uint64_t)writer * s->streams + stream];
    if (__builtin_expect(buffer->fill == buffer->cap, 0))
        return gs_part__spill_flush_put(s, writer, stream);
    return buffer->data + (uint64_t)buffer->fill++ * s->words;
}

#endif /* GS_PARTITION_SPILL_H */
