/* external_sort.h - records by key, more of them than fit memory: put in any order, taken bucket by bucket.
 *
 *   make -- put, put, ... --> finish --> read each bucket, or visit it, in pieces that fit memory
 *
 * Whoever puts says which bucket a record's key is in; buckets lie in one temporary file without a name (temporary.h),
 * so that it goes away however the process ends. One writer a thread puts into buffers of its own, which go to the file
 * when they are full: the disk sees long writes, one behind the other, however many buckets there are. A bucket's
 * records are in no particular order, but for those of one writer where there is no other. Units: records are of
 * `words` u32; memory is bytes. */
#ifndef GS_BASE_EXTERNAL_SORT_H
#define GS_BASE_EXTERNAL_SORT_H

#include <pthread.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/status.h"

typedef struct gs_external_sort gs_external_sort;

typedef struct gs_sort_spec {
    const char *dir;   /* where the file is */
    const char *name;  /* by which messages call it */
    uint32_t buckets;
    uint32_t writers;  /* that put at the same time, each with its own number */
    uint32_t words;    /* of a record */
    uint64_t memory;   /* of all buffers; where it is little, each holds 64 records all the same, or 1 with `each` */
    uint64_t each;     /* most records of a bucket, where that is known: it is one piece of the file then; else 0 */
    uint64_t records;  /* that will be put in all, about: a buffer has room for twice its part at most; 0: not known */
} gs_sort_spec;

gs_status gs_sort_make(gs_external_sort **out, const gs_sort_spec *spec);
void gs_sort_free(gs_external_sort *s); /* NULL is allowed */
GS_ENDS_BY(gs_external_sort, gs_sort_free)
/* The slow path of gs_sort_put(). */
uint32_t *gs_sort_flush_put(gs_external_sort *s, uint32_t writer, uint32_t bucket);
/* Puts `count` records behind one another. */
gs_status gs_sort_append(gs_external_sort *s, uint32_t writer, uint32_t bucket, const uint32_t *record, uint64_t count);
/* Why a put gave NULL; its text is in gs_last_error() of the thread that put. */
gs_status gs_sort_failure(gs_external_sort *s);
/* Writes what is buffered and frees the buffers; reading comes after, by any number of threads. */
gs_status gs_sort_finish(gs_external_sort *s);
uint64_t gs_sort_records(const gs_external_sort *s, uint32_t bucket);
/* Of the bucket that has the most; at least 1. */
uint64_t gs_sort_most_records(const gs_external_sort *s);
/* Asks the kernel to read ahead. */
void gs_sort_prefetch(const gs_external_sort *s, uint32_t bucket);

typedef struct gs_sort_cursor {
    uint32_t segment; /* of the bucket's list; UINT32_MAX at its end */
    uint64_t taken;   /* records of it already read */
} gs_sort_cursor;
gs_sort_cursor gs_sort_first(const gs_external_sort *s, uint32_t bucket);
/* Up to `cap` records; *count is 0 at the end only. */
gs_status gs_sort_read(const gs_external_sort *s, gs_sort_cursor *at, uint32_t *dst, uint64_t cap, uint64_t *count);

/* A bucket, or a part of one, that fits memory: all records of [first, first + keys). */
typedef struct gs_sort_part {
    const gs_external_sort *sort;
    uint32_t bucket;
    uint64_t first, keys, records;
} gs_sort_part;

/* Who visits a bucket, and how one that does not fit memory is split. */
typedef struct gs_sort_visitor {
    uint64_t most;    /* records that fit */
    uint64_t memory;  /* for a split's buffers */
    void *context;    /* of the four below */
    gs_status (*visit)(void *context, const gs_sort_part *part);
    uint64_t (*key)(void *context, const uint32_t *record);
    gs_status (*check)(void *context);                              /* whether to go on */
    gs_status (*too_many)(void *context, uint64_t key, uint64_t records); /* of one key: what to say */
} gs_sort_visitor;

/* Visits the bucket, whose keys are [first, first + keys): whole where it fits, else split by key into another file,
 * and so on, each part in the order of keys. */
gs_status gs_sort_visit(const gs_external_sort *s, uint32_t bucket, uint64_t first, uint64_t keys,
                        const gs_sort_visitor *v);

/* Open so that putting a record is inlined: this is the innermost store of every pass over the edges. */
struct gs_sort_buffer {
    uint32_t fill; /* records in `data` */
    uint32_t cap;
    uint32_t *data;
};
struct gs_external_sort {
    gs_sort_spec spec;
    struct gs_sort_buffer *buffer; /* [writers][buckets] */
    uint32_t *data;                /* of all buffers */
    uint64_t data_bytes;
    uint64_t *records; /* [buckets], under `lock` */
    uint32_t *head, *tail; /* [buckets] first and last segment, under `lock` */
    struct gs_sort_segment *segment; /* under `lock` while writing */
    uint32_t segments, segment_cap;
    gs_arena lists; /* of what is [buckets] */
    uint64_t end; /* of the file, under `lock` */
    gs_status failure; /* the first one, under `lock` */
    int fd;
    char *path;
    pthread_mutex_t lock;
};
/* Where to put one record of `bucket`; NULL on failure. */
static inline uint32_t *gs_sort_put(gs_external_sort *s, uint32_t writer, uint32_t bucket)
{
    struct gs_sort_buffer *const buffer = &s->buffer[(uint64_t)writer * s->spec.buckets + bucket];
    if (__builtin_expect(buffer->fill == buffer->cap, 0))
        return gs_sort_flush_put(s, writer, bucket);
    return buffer->data + (uint64_t)buffer->fill++ * s->spec.words;
}

#endif /* GS_BASE_EXTERNAL_SORT_H */
