/* batch_rows.h - a store's rows, picked for a batch.
 *
 * Narrow arrays (labels, input ids, ...) are in host memory. So are features where the evaluation keeps them there;
 * else rows are read from the file, those that lie together in one request, and a cache keeps those that batches of the
 * group at hand, which are known, use next. Reads come through a ring of memory. With room for it, those of the next
 * batch of the group follow behind those of this one, so they are under way while this one is trained; their rows are
 * taken when it is picked. Of several batches that follow each other, as many as the shape has `side` by side, all rows
 * may be read at once, in one pass over the file: then those of the later ones are held until these are picked, and
 * what is said here of a batch's reads is said of theirs. All calls are one thread's at a time.
 */
#ifndef GS_BATCH_BATCH_ROWS_H
#define GS_BATCH_BATCH_ROWS_H

#include <pthread.h>

#include "base/status.h"
#include "exec/exec.h"
#include "io/io.h"
#include "plan/plan.h"
#include "sample/residency.h"
#include "sample/sampler.h"
#include "store/store.h"

/* -- runs of blocks of one file, read into a ring of memory in the order in which they are asked for, and
 * taken in the same order.
 *
 *     put ... put                                   front ... pop
 *     ------------> [ waits | under way | came ] ------------->
 *
 * A thread of its own hands them to the kernel and takes them back, so that the disk has work whatever the caller does:
 * a call of io_uring sleeps where the disk's queue is full. All calls are one thread's at a time. Nothing is allocated
 * after opening. A ring does not move in memory while it is open.
 */

typedef struct gs_read_run {
    uint64_t begin;  /* bytes of the file, a multiple of GS_BLOCK_BYTES */
    uint32_t blocks; /* of GS_BLOCK_BYTES */
    uint32_t place;  /* block of the ring's memory */
    uint32_t mark;   /* the caller's */
    bool came;       /* under the lock */
    gs_status status; /* of its read, once it came */
} gs_read_run;

typedef struct gs_read_ring {
    /* set by gs_read_ring_open() */
    gs_io *io;           /* the thread's, while it runs */
    uint32_t file;
    uint8_t *memory;
    uint64_t bytes;
    gs_read_run *run;    /* [capacity], a ring as well: */
    uint32_t capacity;
    bool locks, started; /* there are these, and the thread */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, news; /* what the thread waits for, and the caller */
    /* the caller's */
    uint64_t head;       /* of the memory: where the next run goes */
    uint32_t ready;      /* of the first runs, so many have come, as was seen last */
    /* under the lock */
    uint32_t first, count; /* runs */
    uint32_t waits;      /* of them, the last ones, which are not under way yet */
    uint32_t under_way;
    uint32_t wanted;     /* the caller waits for this one; GS_READ_RING_NONE: it does not wait */
    bool quit;
} gs_read_ring;

#define GS_READ_RING_NONE UINT32_MAX

/* Bytes of a run in a ring of so many, at the most, that leave room for another. */
uint64_t gs_read_ring_most(uint64_t bytes);
/* Bytes that one takes: as many runs have room as `bytes` has blocks, but no more than `runs`. */
uint64_t gs_read_ring_bytes(uint64_t bytes, uint32_t runs);
/* GS_ENOMEM and what opening `path` gives. Release with gs_read_ring_close() in any case, which waits for what is under
 * way. */
gs_status gs_read_ring_open(gs_read_ring *r, const char *path, uint64_t bytes, uint32_t runs);
void gs_read_ring_close(gs_read_ring *r);

/* Asks for a run of no more bytes than the ring has. False: there is no room yet, which there is when it is empty. */
bool gs_read_ring_put(gs_read_ring *r, uint64_t begin, uint64_t bytes, uint32_t mark);
/* The first run and its bytes, which stand until it is popped; there is one. Blocks. The status of its read. */
gs_status gs_read_ring_front(gs_read_ring *r, const gs_read_run **run, const uint8_t **bytes);
void gs_read_ring_pop(gs_read_ring *r);
/* Gives up what waits, waits for what is under way and forgets it. */
void gs_read_ring_drain(gs_read_ring *r);

/* Shape of the rows' cache. Zero: none. */
typedef struct gs_row_cache_shape {
    uint32_t slots, rows_per_item, group; /* group: batches of one, at most */
    uint32_t side;       /* batches whose rows are read at once; 0, 1: each one's by itself */
    uint64_t item_bytes;
} gs_row_cache_shape;

/* What is read for a batch, or for several at once: places of its rows in the batch, by their row of the store, and the
 * slot that each one's item is kept in, or GS_RESIDENCY_NONE; with a cache. */
typedef struct gs_batch_reads {
    const uint32_t *row; /* the batch's, or those of one after the other */
    uint32_t *order, *keep; /* [rows], of [most] of each batch */
    uint32_t rows, asked, taken; /* of them, places [0, asked) are in the ring or were, [0, taken) came */
} gs_batch_reads;

/* Batches of a group, of which `next` is picked or passed over next. */
typedef struct gs_batch_queue {
    const gs_batch *batch;
    uint32_t batches, next;
    const gs_batch *read; /* [reads] rows that are read at once, of `side` batches each; with a side of 1: `batch` */
    uint32_t reads, begun; /* of them, so many were begun */
    bool listed;         /* what is read next */
} gs_batch_queue;

typedef struct gs_batch_rows {
    const gs_store *store;
    uint8_t *array[GS_ARRAY_COUNT]; /* all rows, or NULL */
    const uint8_t *features;        /* the same, of another owner, or NULL */
    uint64_t base;                  /* of a shard: bytes of features before those that it has */
    /* Rows of features that are read: */
    gs_read_ring ring;
    gs_row_cache_shape cache;
    gs_residency *plan;  /* NULL: no cache */
    gs_residency_step step; /* of the list that was made last */
    uint8_t *slot;       /* [cache.slots][cache.item_bytes] */
    gs_batch_reads reads[2]; /* of the batch that is picked, and of the next one; the second where reads go ahead */
    uint32_t now;        /* which is the first's */
    gs_batch_queue queue;
    uint32_t side;       /* 1 or more; where more: */
    gs_batch *joined;    /* [reads of a group] their rows one after the other, in: */
    uint32_t *list;      /* [cache.group][most] */
    uint8_t *held;       /* [side - 1][most][row_bytes] rows of the read that was begun last, but for those of the */
    uint32_t first, firsts; /* batch that it was begun by, whose places in `joined` are [first, first + firsts) */
    uint32_t *scratch;   /* [side][most] */
    uint32_t *sums;      /* [blocks of the file] what each is known by */
    uint32_t most;
    uint64_t row_bytes;
    bool ahead;
    bool apart;          /* rows are not those that the plan has next */
    uint64_t gap;        /* the caller's, once it is open: so many bytes between two rows are read along, as a request
                          * takes the disk longer; 0: not known */
    uint64_t read_bytes, gap_bytes; /* so far; of them, between rows that were wanted */
    double wait_seconds; /* so far, for what was not there when it was wanted */
} gs_batch_rows;

/* Bytes of features that one has who has those of all vertices; of shards, those of the largest. */
uint64_t gs_batch_rows_bytes(const gs_store *s);
/* Bytes that reading rows of features takes, for batches of `most` rows, without a cache and not ahead. */
uint64_t gs_batch_rows_reading(const gs_store *s, uint32_t most);
/* The least ring through which rows are read ahead. */
#define GS_BATCH_RING (8 * GS_MIB)
/* Bytes that reading ahead through a ring of `ring` bytes takes besides; 0 of 0 bytes, which is not ahead. */
uint64_t gs_batch_rows_ahead(uint64_t ring, uint32_t most);
/* The cache of at most `bytes`, all that it takes included, for groups of `group` batches of `most` rows, `side` of
 * which are read at once: fewer, where the rows that are held for these have no room. */
gs_row_cache_shape gs_row_cache_shape_of(const gs_store *s, uint64_t bytes, uint32_t group, uint32_t most,
                                         uint32_t side);
uint64_t gs_row_cache_bytes(const gs_store *s, const gs_row_cache_shape *c, uint32_t most);
/* Reads the arrays of `wanted` (bits of gs_array_id), checked as they come. `features`: where all rows of these are,
 * the caller's; NULL, and not wanted: they are read as they are needed, and once now, so that what comes later can be
 * checked by blocks of the disk. `most`: rows of them that a batch has; 0: none are picked. `ring`: as above. GS_EIO,
 * GS_EFORMAT, GS_ENOMEM; blocks. Release with gs_batch_rows_close() in any case, which waits for what is under way. */
gs_status gs_batch_rows_open(gs_batch_rows *r, const gs_store *s, uint32_t wanted, const void *features, uint32_t most,
                             const gs_row_cache_shape *cache, uint64_t ring);
/* These batches come next, each once and in this order: rows of features are picked of `batch[0].vertex`, then of
 * `batch[1].vertex`. They stand until the next group. What was read ahead of the group before is given up. */
void gs_batch_rows_begin(gs_batch_rows *r, const gs_batch *batch, uint32_t batches);
/* The next of them is passed over, as it has no rows: nothing is picked for it but by gs_batch_rows_apart(). */
void gs_batch_rows_pass(gs_batch_rows *r);
/* From here on rows are picked that are of none of these batches (true), or of the next of them again. */
void gs_batch_rows_apart(gs_batch_rows *r, bool apart);
void gs_batch_rows_close(gs_batch_rows *r);

/* dst[i] = row row[i] of the array. GS_EIO; GS_EFORMAT: a block is not what it was when all were checked. After a
 * failure the group is over. */
gs_status gs_batch_rows_pick(gs_batch_rows *r, gs_array_id id, const uint32_t *row, uint32_t rows, void *dst);

/* Features of a batch that are named, not copied.
 *
 * Where all rows are in memory, a batch's are picked for each tile of a vertex program, and sums over edges read them
 * where they are.
 */

typedef struct gs_batch_named {
    gs_exec_named rows;     /* of the batch at hand; `all` NULL: features are copied */
    gs_edges edges;         /* its in-edges, with operands as rows of `all` */
    uint32_t *target, *index; /* of those; NULL where no sum reads features */
    uint8_t *tile;
    uint64_t bytes;
} gs_batch_named;

/* May they be named in these stages? Takes memory for the largest tile and, where sums read features, for the edges of
 * a batch. Else, and without GS_OK, nothing. */
gs_status gs_batch_named_open(gs_batch_named *n, const gs_program *p, const gs_plan *plan,
                              const gs_batch_limits *limits);
/* Bytes that gs_batch_named_open() takes; 0 where rows may not be named. */
uint64_t gs_batch_named_bytes(const gs_program *p, const gs_plan *plan, const gs_batch_limits *limits);
void gs_batch_named_close(gs_batch_named *n);
/* `all`: features of all vertices of the store. */
void gs_batch_named_fill(gs_batch_named *n, const gs_batch *b, const void *all);

/* Which rows of features do GPUs keep in memory of their own, and which of a batch's are not there?
 *
 * Those of the vertices with the most out-edges, which neighbours are drawn from most often (PaGraph, SoCC'20); of as
 * many, the first ones. They are numbered in the order of the store, and dealt to the devices in turn, so that each of
 * them is read as often. What is kept is the same for the whole run: beyond a group no use is known.
 */

typedef struct gs_batch_spread {
    uint32_t vertices, rows;
    uint64_t *bit;    /* [words] of vertices: it is kept */
    uint32_t *before; /* [words] how many are kept before the word's first */
} gs_batch_spread;

/* Takes the `rows` vertices, fewer than there are or all. GS_ENOMEM, GS_EIO, GS_EFORMAT; blocks while it reads degrees.
 * Release with gs_batch_spread_close() in any case. */
gs_status gs_batch_spread_open(gs_batch_spread *s, const gs_store *store, uint32_t rows);
void gs_batch_spread_close(gs_batch_spread *s);
/* Memory that one takes, also while it is opened. */
uint64_t gs_batch_spread_bytes(const gs_store *store);

/* A batch's rows. */
typedef struct gs_batch_places {
    uint32_t *place; /* [rows] the number of the row; those that are not kept: s->rows on, in order */
    uint32_t *left;  /* vertices of these */
    uint32_t lefts, from_peers;
} gs_batch_places;

/* Of `devices` that the rows are dealt to, for the one of number `own`. place may be NULL. */
void gs_batch_spread_find(gs_batch_places *out, const gs_batch_spread *s, const uint32_t *vertex, uint32_t rows,
                          uint32_t own, uint32_t devices);
/* The next vertices from *from on whose rows are dealt to number `own`, `rows` of them at most: how many. *from becomes
 * the vertex behind. */
uint32_t gs_batch_spread_list(uint32_t *vertex, const gs_batch_spread *s, uint32_t rows, uint32_t own,
                              uint32_t devices, uint32_t *from);

#endif /* GS_BATCH_BATCH_ROWS_H */
