/* io_internal.h - what the two backends and the request table agree on.
 *
 * io.c opens files, keeps requests, cuts them into pieces, and judges what became of each; uring.c and threads.c move
 * one piece once.
 *
 *   request  FREE -> PENDING -> CUT -> DONE -> FREE      (pieces under way in PENDING and CUT)
 *   piece    free -> issued -> settled -> free, or issued again for what is left
 */
#ifndef GS_IO_IO_INTERNAL_H
#define GS_IO_IO_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/io.h"

#define GS_IO__MAX_DEPTH 4096u
#define GS_IO__MAX_REQUESTS (1u << 20)
#define GS_IO__THREADS 4u
#define GS_IO__NOTE_BYTES 256u

typedef struct gs_io__file {
    char *path;    /* owned */
    int fd;        /* owned */
    bool direct;
    bool writable;
    uint32_t stripes; /* files after it that its bytes go to in turn */
} gs_io__file;

/* A stretch of one request, at most piece_bytes long, and what is left of it. */
typedef struct gs_io__piece {
    struct gs_io__piece *next; /* a piece is in at most one list */
    uint32_t slot;             /* of its request */
    uint32_t file;
    int fd;
    bool write;
    bool direct;               /* the file was in direct mode when the piece went out */
    uint32_t tries;            /* resubmissions in a row that moved nothing */
    uint64_t bytes;            /* all of it */
    uint64_t needed;           /* at most `bytes`: the file may end after so many */
    uint64_t offset, left;     /* still to be moved */
    char *memory;
    uint64_t length;           /* handed out this time, at most `left` */
    uint64_t counts;           /* most of `length` that counts (fault hook) */
    int64_t result;            /* the backend's: bytes, or -errno */
} gs_io__piece;

typedef struct gs_io__list {
    gs_io__piece *head, *tail;
} gs_io__list;

static inline void gs_io__push(gs_io__list *l, gs_io__piece *p)
{
    p->next = NULL;
    if (l->head == NULL)
        l->head = p;
    else
        l->tail->next = p;
    l->tail = p;
}

static inline gs_io__piece *gs_io__pop(gs_io__list *l)
{
    gs_io__piece *const p = l->head;
    if (p != NULL)
        l->head = p->next;
    return p;
}

/* Moves all of `from` to the end of `to`. */
static inline void gs_io__splice(gs_io__list *to, gs_io__list *from)
{
    if (from->head == NULL)
        return;
    if (to->head == NULL)
        to->head = from->head;
    else
        to->tail->next = from->head;
    to->tail = from->tail;
    from->head = NULL;
}

/* How pieces are moved. All entries are called by the owner thread. At most
 * `depth` pieces are with a backend at a time. */
typedef struct gs_io__ops {
    /* `config` has its defaults filled in. `note` (GS_IO__NOTE_BYTES) is left
     * as it is or says what the system did not allow. */
    gs_status (*open)(void **context, const gs_io_config *config, char *note);
    void (*close)(void *context); /* nothing is under way any more */
    const char *(*name)(const void *context);
    void (*add_file)(void *context, uint32_t file, int fd);
    /* Takes a piece: `length` bytes at `offset`. It may rest until submit(). */
    void (*queue)(void *context, gs_io__piece *piece);
    /* Sets what was queued in motion. Then waits until collect() would give something, `wait` seconds at most
     * (INFINITY: however long; 0: not at all); pieces are under way where it waits. */
    void (*submit)(void *context, double wait);
    /* Appends the pieces that have ended, `result` set. Does not block. */
    void (*collect)(void *context, gs_io__list *ended);
} gs_io__ops;

extern const gs_io__ops gs_io__uring_ops;
extern const gs_io__ops gs_io__threads_ops;

/* What to do with a piece that came back. */
typedef enum gs_io__verdict { GS_IO__COMPLETE, GS_IO__AGAIN, GS_IO__FAILED } gs_io__verdict;

/* Judges `p->result`, moves `p` past the bytes that were moved and adds their
 * number to `*moved`. GS_IO__FAILED sets *st and *error. May take a file
 * out of direct mode. */
gs_io__verdict gs_io__judge(gs_io__piece *p, gs_io__file *file, uint64_t *moved, gs_status *st, int *error);

/* For tests: told of each request of any gs_io of the process when it is taken, and again (`ended`) when its completion
 * is given back. NULL: nobody is told. Set before the first request. */
extern void (*gs_io__observer)(const gs_io_request *request, bool ended);

/* For tests: a piece for whose request this is true never comes back, as on a disk that hangs. NULL: all do. */
extern bool (*gs_io__withheld)(const gs_io_request *request);

/* For tests: files added from now on are opened without O_DIRECT, as on a file
 * system that does not have it. */
void gs_io__force_buffered(gs_io *io, bool on);

#endif /* GS_IO_IO_INTERNAL_H */
