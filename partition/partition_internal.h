/* partition_internal.h - what the files of this room share.
 *
 * One run is a job; it flows input -> blocks -> order -> chunks and rows:
 *   input    opens and checks files, hands out edges by number
 *   blocks   edges on disk, bucketed by the larger endpoint id
 *   order    interval and row of every vertex, from one pass over the blocks,
 *            which also buckets the edges by chunk
 *   chunks   sorts and writes each chunk, both ways
 *   rows     moves feature rows to their place in one pass over the input
 *
 * Ids are input ids unless called a position or row (store order). Sizes are
 * bytes where a name says memory or bytes, else elements.
 */
#ifndef GS_PARTITION_PARTITION_INTERNAL_H
#define GS_PARTITION_PARTITION_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/npy.h"
#include "base/size.h"
#include "gnnstream.h" /* gs_partition_options */
#include "store/chunk_table.h"
#include "store/store_write.h" /* gs_store_contents */

/* -- job.c: failures, interrupts and memory of one run ------------------- */

#define GS_PART_MOST_THREADS 16u

typedef struct gs_part_job {
    const gs_partition_options *opt;
    gs_dtype feature_type; /* of opt->feature_type */
    const char *dir;
    uint32_t threads;
    uint64_t memory;  /* the bound as stated */
    const uint8_t *split; /* [vertices] gs_split by input id, or NULL; from before the order is made */
    uint64_t labelled, train; /* vertices in a split, in that one */
    uint64_t buffers; /* what is left of it for buffers, after tables of O(N) */
    pthread_t owner;  /* the only thread that may call opt->progress */
    pthread_mutex_t lock; /* guards the two fields below */
    gs_status failed;
    char message[768];
    int halted;       /* atomic; set with `failed`, read without the lock */
} gs_part_job;

void gs_part__job_init(gs_part_job *job, const gs_partition_options *opt, const char *dir);
void gs_part__job_free(gs_part_job *job);
/* Splits the bound once N is known. GS_EBUDGET with the least that would do. */
gs_status gs_part__job_plan(gs_part_job *job, uint64_t vertices, uint64_t edges);
/* Any thread: keeps the first failure and its text; tells the others to stop. */
void gs_part__job_fail(gs_part_job *job, gs_status st);
/* Any thread: true after a failure or an interrupt (which it records). */
bool gs_part__job_stop(gs_part_job *job);
/* The calling thread's view of what went wrong, text included. */
gs_status gs_part__job_result(gs_part_job *job);
void gs_part__tick(gs_part_job *job, const char *what, double done);

/* MurmurHash3's finalizer: a bijection in which every bit of x tells on every bit. */
static inline uint64_t gs_part__mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}

/* -- spill.c: many streams of records in one temporary file -------------- */

/* A file in `dir` that has lost its name, so that it goes away however the
 * process ends. *path is for messages and the caller's, on failure too. */
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
struct gs_spill_lane {
    uint32_t fill; /* records in `data` */
    uint32_t cap;
    uint32_t *data;
};
struct gs_spill {
    uint32_t streams, writers, words;
    struct gs_spill_lane *lane; /* [writers][streams] */
    uint32_t *data;             /* all lanes' buffers */
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
    struct gs_spill_lane *lane = &s->lane[(uint64_t)writer * s->streams + stream];
    if (__builtin_expect(lane->fill == lane->cap, 0))
        return gs_part__spill_flush_put(s, writer, stream);
    return lane->data + (uint64_t)lane->fill++ * s->words;
}

/* -- input: files to edges, features and labels -------------------------- */

typedef struct gs_part_file {
    gs_npy npy; /* fd -1: not there */
    char *path;
} gs_part_file;

typedef enum gs_part_form { GS_FORM_NONE, GS_FORM_DENSE, GS_FORM_CSR, GS_FORM_RANDOM } gs_part_form;

typedef struct gs_part_input {
    char *path;
    gs_status (*parse)(struct gs_part_input *in, gs_part_job *job); /* of a text file; else NULL */
    uint64_t vertices, edges;
    bool typed, weighted;
    uint32_t edge_types; /* stated, or found while reading: largest type + 1 */
    uint32_t classes, features;
    gs_part_form form;
    gs_part_file edge, type, weight;       /* npy */
    gs_part_file feature;                  /* dense */
    gs_part_file indptr, indices, data;    /* CSR */
    gs_part_file label, split[3];          /* train, valid, test */
    gs_spill *text;                        /* edges of a text file, one stream */
    char note[160];
} gs_part_input;

/* One piece of the edge list as plain arrays, owned by the caller. */
typedef struct gs_part_batch {
    uint32_t *src, *dst, *type;
    float *weight;
    void *raw; /* as in the file */
    uint64_t cap, count, first;
    gs_spill_cursor at; /* text only */
} gs_part_batch;

/* Opens and checks headers, without a temporary file; then reads what is text. */
gs_status gs_part__input_open(gs_part_input *in, gs_part_job *job, const char *path);
gs_status gs_part__input_parse(gs_part_input *in, gs_part_job *job);
void gs_part__input_close(gs_part_input *in);
gs_status gs_part__batch_make(gs_part_batch *b, const gs_part_input *in, uint64_t edges);
void gs_part__batch_free(gs_part_batch *b);
/* Edges [first, first + count), checked. With text input `first` must follow
 * the batch's last (one reader). */
gs_status gs_part__input_edges(const gs_part_input *in, gs_part_batch *b, uint64_t first, uint64_t count);

/* input_npy.c */
gs_status gs_part__npy_folder(gs_part_input *in, gs_part_job *job);
gs_status gs_part__npy_edges(const gs_part_input *in, gs_part_batch *b, uint64_t first, uint64_t count);
gs_status gs_part__file_open(gs_part_file *f, const char *dir, const char *name, bool required);
void gs_part__file_close(gs_part_file *f);
/* n integers of any type to i64; values above INT64_MAX become INT64_MAX. */
void gs_part__to_i64(int64_t *dst, const void *src, gs_dtype from, uint64_t n);
bool gs_part__is_integer(gs_dtype t);

/* input_text.c */
gs_status gs_part__snap_read(gs_part_input *in, gs_part_job *job);
gs_status gs_part__mtx_read(gs_part_input *in, gs_part_job *job);

/* labels.c: [vertices] in input order, checked; free with gs_free(). */
gs_status gs_part__labels_load(int32_t **labels, gs_part_input *in, gs_part_job *job);
gs_status gs_part__splits_load(uint8_t **split, uint64_t count[3], const gs_part_input *in,
                               const int32_t *labels, gs_part_job *job);

/* -- blocks.c: edges on disk by their larger endpoint -------------------- */

typedef struct gs_part_blocks {
    gs_spill *spill;
    uint32_t count, shift; /* block of an edge: max(src, dst) >> shift */
    uint32_t words;        /* of a record: src, dst, [type], [weight bits] */
    uint64_t vertices, edges, self_loops, cap; /* cap: most records in memory at once */
    uint32_t edge_types;
    bool symmetric; /* equal to its own transpose, payload included */
} gs_part_blocks;

gs_status gs_part__blocks_make(gs_part_blocks *b, gs_part_job *job, gs_part_input *in);
void gs_part__blocks_free(gs_part_blocks *b);

/* All edges whose larger endpoint lies in [first, first + vertices), in no
 * particular order, `count` records at `records`, which are the visitor's to
 * free with gs_free(). Blocks come in ascending order of vertices, none left out. */
typedef gs_status gs_part_visit(void *context, uint64_t first, uint64_t vertices, uint32_t *records,
                                uint64_t count);
gs_status gs_part__blocks_each(const gs_part_blocks *b, gs_part_job *job, gs_part_visit *visit, void *context);

/* -- permute.c: a seeded bijection of [0, n), computed, never stored ------- */

typedef struct gs_permute {
    uint64_t n, mask, multiply[3], inverse[3], add[3];
    uint32_t bits, shift;
} gs_permute;
gs_permute gs_part__permute_make(uint64_t n, uint64_t seed, uint32_t use);
uint64_t gs_part__permute(const gs_permute *p, uint64_t x);
uint64_t gs_part__permute_back(const gs_permute *p, uint64_t y);
/* One step on [0, 2^bits) without the restriction to n. */
uint64_t gs_part__scramble(const gs_permute *p, uint64_t x);

/* -- order.c, fennel.c, order_metis.c, position.c ----------------------------------- */

/* Division of u32 by a fixed number (Lemire, Kaser, Kurz: "Faster remainder
 * by direct computation", 2019): exact for every u32. */
typedef struct gs_fastdiv {
    uint64_t magic;
    uint32_t divisor;
} gs_fastdiv;
static inline gs_fastdiv gs_fastdiv_make(uint32_t d)
{
    return (gs_fastdiv){d == 1 ? 0 : UINT64_MAX / d + 1, d};
}
static inline uint32_t gs_fastdiv_of(gs_fastdiv f, uint32_t n)
{
    return f.divisor == 1 ? n : (uint32_t)(((unsigned __int128)f.magic * n) >> 64);
}

typedef struct gs_part_grid {
    uint64_t vertices;
    uint32_t parts, rows; /* intervals; rows of each but perhaps the last */
    uint32_t local_bits;  /* of a row number within an interval */
    gs_fastdiv by_rows;
} gs_part_grid;
/* Cuts N vertices into at most `parts` equal intervals, none empty. */
gs_part_grid gs_part__grid_make(uint64_t vertices, uint32_t parts);
static inline uint32_t gs_part__grid_capacity(const gs_part_grid *g, uint32_t i)
{
    const uint64_t left = g->vertices - (uint64_t)i * g->rows;
    return left < g->rows ? (uint32_t)left : g->rows;
}

/* How near a vertex is to a label: what a loss on few vertices sees first. LEARNED: of the training split, FED: an edge
 * leads to such a one; LABELLED: of another split, HEARD: an edge leads to one of any split. Gradients are 0 but in the
 * first two. */
enum { GS_PART_LEARNED, GS_PART_FED, GS_PART_LABELLED, GS_PART_HEARD, GS_PART_OTHER, GS_PART_LEVELS };

typedef struct gs_part_order {
    gs_part_grid grid;
    uint32_t *part;     /* [N] interval by input id; becomes `position` */
    uint8_t *level;     /* [N] GS_PART_LEARNED, ...; NULL where most are trained on, or no order is made */
    bool hears;         /* FED and HEARD are told from OTHER */
    uint64_t *need;     /* [N] intervals that need this row, 64 bits; NULL: not asked for */
    uint32_t *position; /* [N] by input id */
    uint32_t *input_id; /* [N] by position */
    uint32_t groups;    /* runs of ascending input ids that positions consist of, upper bound */
    gs_spill *chunked[2]; /* edges by chunk, [direction] */
    uint32_t region_shift; /* stream of chunk c: c >> region_shift */
    uint64_t cut;       /* edges between intervals */
    char method[16];
} gs_part_order;

gs_status gs_part__order_make(gs_part_order *o, gs_part_job *job, const gs_part_blocks *b, uint32_t parts,
                              const char *method, char *note, size_t note_cap);
void gs_part__order_free(gs_part_order *o);
/* Interval of every vertex by METIS; `part` is [N]. */
gs_status gs_part__metis(uint32_t *part, const gs_part_grid *grid, gs_part_job *job, const gs_part_blocks *b);
/* The same for any size, by label propagation (lp.c). */
gs_status gs_part__lp(uint32_t *part, const gs_part_grid *grid, gs_part_job *job, const gs_part_blocks *b);
/* "" or why METIS cannot be used. */
void gs_part__metis_fits(char *why, size_t cap, const gs_part_job *job, const gs_part_blocks *b,
                         const gs_part_grid *grid);
/* part (and need) to position and input_id. */
gs_status gs_part__positions(gs_part_order *o, gs_part_job *job);
/* Edges of the largest chunk, exactly where it has more than `cap`. */
gs_status gs_part__largest_chunk(uint64_t *edges, const gs_part_order *o, uint64_t cap);

typedef struct gs_fennel gs_fennel;
gs_status gs_part__fennel_make(gs_fennel **out, const gs_part_grid *grid, uint64_t edges, bool symmetric,
                               uint32_t *part);
void gs_part__fennel_free(gs_fennel *f);
/* Assigns the vertices of one block, in order. */
gs_status gs_part__fennel_block(gs_fennel *f, uint64_t first, uint64_t vertices, const uint32_t *records,
                                uint64_t count, uint32_t words);

/* -- sort.c ---------------------------------------------------------------- */

typedef struct gs_part_key16 {
    uint64_t key;
    uint32_t type;
    float weight;
} gs_part_key16;

/* Stable radix sorts by the lowest `bits` of the key; `spare` is as long as
 * `data`. They return where the result is: one of the two. key16: by key's
 * bits above `low`, then type, then key's `low` bits, then weight. */
uint64_t *gs_part__sort8(uint64_t *data, uint64_t *spare, uint64_t n, uint32_t bits);
gs_part_key16 *gs_part__sort16(gs_part_key16 *data, gs_part_key16 *spare, uint64_t n, uint32_t bits,
                               uint32_t low, uint32_t type_bits);

/* -- chunks.c, rows.c, arrays.c -------------------------------------------- */

typedef struct gs_part_degrees {
    uint32_t *count[2]; /* [direction][N] by position: in-, out-degree */
    uint32_t *loops;    /* [N] or NULL */
} gs_part_degrees;

typedef struct gs_part_chunks_spec {
    const gs_part_order *order;
    gs_direction direction;
    uint32_t words;
    bool typed, weighted;
    uint32_t type_bytes;
    gs_chunk *chunk; /* [P * P] filled */
    gs_part_degrees *degrees;
    uint64_t memory;
    uint32_t threads;
    double progress_from, progress_to;
} gs_part_chunks_spec;
/* What a chunk's size depends on: rows of an interval, payload of an edge. */
typedef struct gs_part_chunk_kind {
    uint64_t rows;
    bool typed, weighted;
} gs_part_chunk_kind;
/* Most edges for which a chunk surely has at most `bytes` at rest. */
uint64_t gs_part__chunk_edges(uint64_t bytes, const gs_part_chunk_kind *kind);
/* Most edges a chunk may have for `threads` to sort one each within `memory`. */
uint64_t gs_part__chunk_cap(uint32_t threads, uint64_t memory, const gs_part_chunk_kind *kind);
gs_status gs_part__chunks_write(gs_part_job *job, const gs_part_chunks_spec *spec);

/* Moves or makes the feature rows; fills `info` (its sums are owned by the
 * caller). `memory` bounds its buffers. */
gs_status gs_part__rows_write(gs_part_job *job, const gs_part_input *in, const gs_part_order *o,
                              gs_array_info *info, uint64_t memory);
/* A small vertex array: makes rows [first, first + count) at `dst`. */
typedef void gs_part_fill(const void *context, void *dst, uint64_t first, uint64_t count);
gs_status gs_part__array_write(gs_part_job *job, gs_array_id id, gs_dtype dtype, uint64_t rows,
                               gs_part_fill *fill, const void *context, gs_array_info *info);
/* Seeded standard normal features: columns [0, width) of one vertex. */
void gs_part__normal_row(float *dst, uint64_t seed, uint32_t id, uint32_t width);

#endif /* GS_PARTITION_PARTITION_INTERNAL_H */
