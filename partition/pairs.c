/* pairs.c - pairs of one split: read front to back, sorted by bucket on disk, written in order. */
#include "partition/rows.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/external_sort.h"
#include "base/size.h"
#include "partition/integers.h"
#include "store/store_write.h"

#define READ_LINKS 65536u
#define MOST_CLASSES 1048576u
#define SORT_WORDS 4u      /* of a record: source and destination, in store order, type, and the bits of a label */
#define MOST_BUCKETS 256u  /* of the file that sorts */

typedef struct link_sort {
    gs_part_job *job;
    const gs_part_grid *grid;
    bool typed, labelled;
    uint64_t most;              /* links that fit */
    gs_part_key16 *key, *spare; /* [most] */
    gs_array_writer file;
    gs_arena memory;
} link_sort;

/* ---- sorting --------------------------------------------------------------- */

static uint64_t bucket_of(const gs_part_grid *g, const uint32_t *record)
{
    return (uint64_t)gs_fastdiv_of(g->by_rows, record[0]) * g->parts + gs_fastdiv_of(g->by_rows, record[1]);
}

static uint64_t sort_key(void *context, const uint32_t *record)
{
    return bucket_of(((const link_sort *)context)->grid, record);
}

static gs_status check_job(void *context)
{
    const link_sort *const s = context;
    return gs_part__job_stop(s->job) ? gs_part__job_result(s->job) : GS_OK;
}

static gs_status too_many(void *context, uint64_t bucket, uint64_t links)
{
    const link_sort *const s = context;
    return gs_fail(GS_EBUDGET, "%s: bucket (%lu, %lu) has %lu pairs, and %lu fit the memory bound; use more .parts or "
                   ".memory", s->file.path, bucket / s->grid->parts, bucket % s->grid->parts, links, s->most);
}

/* Within the part of buckets from `first` on: bucket, source, destination. */
static gs_part_key16 key_of(const gs_part_grid *g, const uint32_t *record, uint64_t first)
{
    const uint32_t source = record[0] - gs_fastdiv_of(g->by_rows, record[0]) * g->rows,
                   destination = record[1] - gs_fastdiv_of(g->by_rows, record[1]) * g->rows;
    const uint64_t bucket = bucket_of(g, record) - first;
    gs_part_key16 k = {.key = (bucket << g->local_bits | source) << g->local_bits | destination, .type = record[2]};

    memcpy(&k.weight, &record[3], sizeof(k.weight)); /* which is ordered by its bits */
    return k;
}

static gs_status put_key(link_sort *s, const gs_part_key16 *k, uint64_t first)
{
    const gs_part_grid *const g = s->grid;
    const uint64_t mask = (1ull << g->local_bits) - 1, bucket = first + (k->key >> g->local_bits >> g->local_bits);
    uint32_t row[SORT_WORDS] = {(uint32_t)(bucket / g->parts * g->rows + (k->key >> g->local_bits & mask)),
                                (uint32_t)(bucket % g->parts * g->rows + (k->key & mask)), k->type},
             width = 2 + s->typed;

    if (s->labelled)
        memcpy(&row[width++], &k->weight, sizeof(k->weight));
    return gs_array_put(&s->file, row, width * sizeof(*row));
}

static gs_status write_part(void *context, const gs_sort_part *p)
{
    link_sort *const s = context;
    gs_sort_cursor at = gs_sort_first(p->sort, p->bucket);
    uint32_t *const record = (uint32_t *)(void *)s->spare; /* read here before anything is sorted */
    const uint64_t room = s->most * sizeof(*s->spare) / (SORT_WORDS * sizeof(*record));
    uint64_t n = 0, count = 1;
    const uint32_t bits = GS_MIN(2 * s->grid->local_bits + gs_part__bits(p->keys), 64);
    gs_status st = GS_OK;

    while (count != 0 && (st = gs_sort_read(p->sort, &at, record, room, &count)) == GS_OK)
        for (uint64_t i = 0; i < count; i++)
            s->key[n++] = key_of(s->grid, record + i * SORT_WORDS, p->first);
    const gs_part_key16 *const sorted = gs_part__sort16(s->key, s->spare, n, bits, 0, 16);
    for (uint64_t i = 0; i < n && st == GS_OK; i++)
        st = put_key(s, &sorted[i], p->first);
    return st;
}

/* ---- reading --------------------------------------------------------------- */

/* Labels of links as the store has them, a piece at a time. */
typedef struct label_piece {
    const gs_part_file *file;
    bool there, numbers;
    uint32_t classes; /* of those that were read: the largest + 1 */
    void *raw;        /* [READ_LINKS] */
    int64_t *whole;
    uint32_t *label;
    gs_arena memory;
} label_piece;

static gs_status label_piece_make(label_piece *p, const gs_part_input *links)
{
    *p = (label_piece){.file = &links->label, .there = links->label.npy.fd >= 0,
                       .numbers = !gs_part__is_integer(links->label.npy.dtype)};
    if (!p->there)
        return GS_OK;
    p->raw = gs_arena_take(&p->memory, READ_LINKS, sizeof(int64_t));
    p->whole = gs_arena_take(&p->memory, READ_LINKS, sizeof(*p->whole));
    p->label = gs_arena_take(&p->memory, READ_LINKS, sizeof(*p->label));
    return p->memory.is_short ? gs_fail(GS_ENOMEM, "%s: no memory to read labels", links->label.path) : GS_OK;
}

static gs_status take_classes(label_piece *p, uint64_t first, uint64_t count)
{
    gs_part__to_i64(p->whole, p->raw, p->file->npy.dtype, count);
    for (uint64_t i = 0; i < count; i++) {
        if (p->whole[i] < 0 || p->whole[i] >= MOST_CLASSES)
            return gs_fail(GS_EFORMAT, "%s: row %lu: %s is no class, which are 0 to %u; leave pairs without a label "
                           "out", p->file->path, first + i, GS_PART_I64(p->whole[i]), MOST_CLASSES - 1);
        p->label[i] = (uint32_t)p->whole[i];
        p->classes = GS_MAX(p->classes, p->label[i] + 1);
    }
    return GS_OK;
}

static gs_status take_numbers(label_piece *p, uint64_t first, uint64_t count)
{
    float *const number = (float *)(void *)p->label;

    gs_part__to_f32(number, p->raw, p->file->npy.dtype, count);
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(number[i]))
            return gs_fail(GS_EFORMAT, "%s: row %lu: %g is not a finite float32; leave pairs without a label out",
                           p->file->path, first + i, (double)number[i]);
    return GS_OK;
}

static gs_status read_labels(label_piece *p, uint64_t first, uint64_t count)
{
    GS_TRY(p->there ? gs_npy_read_rows(&p->file->npy, p->raw, first, count, p->file->path) : GS_OK);
    if (!p->there)
        return GS_OK;
    return p->numbers ? take_numbers(p, first, count) : take_classes(p, first, count);
}

static gs_status read_links(gs_external_sort *sort, const gs_part_input *links, const gs_part_order *o, uint64_t span,
                            uint32_t *classes)
{
    gs_part_edge_block b;
    label_piece labels;
    gs_status st = gs_part__edge_block_make(&b, links, READ_LINKS), made = label_piece_make(&labels, links);

    for (uint64_t at = 0; st == GS_OK && (st = made) == GS_OK && at < links->edges; at += b.count) {
        if ((st = gs_part__npy_edges(links, &b, at, GS_MIN(READ_LINKS, links->edges - at))) != GS_OK ||
            (st = read_labels(&labels, at, b.count)) != GS_OK)
            break;
        for (uint64_t i = 0; i < b.count && st == GS_OK; i++) {
            const uint32_t record[SORT_WORDS] = {o->position[b.src[i]], o->position[b.dst[i]],
                                                 links->typed ? b.type[i] : 0, labels.there ? labels.label[i] : 0};
            st = gs_sort_append(sort, 0, (uint32_t)(bucket_of(&o->grid, record) / span), record, 1);
        }
    }
    gs_part__edge_block_free(&b);
    gs_arena_free(&labels.memory);
    *classes = GS_MAX(*classes, labels.classes);
    return st == GS_OK ? gs_sort_finish(sort) : st;
}

static gs_status sort_links(link_sort *s, const gs_part_input *links, const gs_part_order *o, uint64_t memory,
                            uint32_t *classes)
{
    const uint64_t buckets = (uint64_t)o->grid.parts * o->grid.parts, span = gs_div_up(buckets, MOST_BUCKETS);
    const gs_sort_spec spec = {.dir = s->job->dir, .name = "pairs by bucket", .writers = 1, .words = SORT_WORDS,
                               .buckets = (uint32_t)gs_div_up(buckets, span), .memory = memory / 4};
    GS_ENDS(gs_sort_free_at) gs_external_sort *sort = NULL;

    GS_TRY(gs_sort_make(&sort, &spec));
    GS_TRY(read_links(sort, links, o, span, classes));
    s->most = GS_MIN(memory / 2 / (2 * sizeof(*s->key)), links->edges);
    s->key = gs_arena_take(&s->memory, s->most, sizeof(*s->key));
    s->spare = gs_arena_take(&s->memory, s->most, sizeof(*s->spare));
    GS_NEED(!s->memory.is_short, "%s: no memory to sort its pairs", s->file.path);
    const gs_sort_visitor v = {.most = s->most, .memory = memory / 4, .context = s, .visit = write_part,
                               .key = sort_key, .check = check_job, .too_many = too_many};
    for (uint32_t k = 0; k < spec.buckets; k++)
        GS_TRY(gs_sort_visit(sort, k, k * span, GS_MIN(span, buckets - k * span), &v));
    return GS_OK;
}

static void link_sort_end(link_sort *s)
{
    gs_array_writer_free(&s->file);
    gs_arena_free(&s->memory);
}

static gs_status write_split(gs_part_job *job, const gs_part_input *links, const gs_part_order *o, gs_array_id id,
                             gs_array_info *info, uint32_t *classes, uint64_t memory)
{
    GS_ENDS(link_sort_end) link_sort s = {.job = job, .grid = &o->grid, .typed = links->typed,
                                          .labelled = links->label.npy.fd >= 0, .file = GS_ARRAY_WRITER_NONE};

    GS_TRY(gs_array_begin(&s.file, job->dir, id));
    GS_TRY(sort_links(&s, links, o, memory, classes));
    return gs_array_end(&s.file, info, GS_U32, 2u + s.typed + s.labelled);
}

gs_status gs_part__links_write(gs_part_job *job, const gs_part_input *in, const gs_part_order *o, gs_array_info *info,
                               gs_store_info *store, uint64_t memory)
{
    gs_status st = GS_OK;

    for (uint32_t k = 0; k < GS_LINK_SPLITS && st == GS_OK; k++) {
        gs_part_input one;
        if ((st = gs_part__links_of(&one, in, k)) != GS_OK || one.edges == 0)
            continue;
        one.edge_types = store->edge_types;
        store->links[k] = one.edges;
        store->link_labels = one.label.npy.fd >= 0;
        st = write_split(job, &one, o, (gs_array_id)(GS_ARRAY_TRAIN_LINKS + k), &info[k], &store->link_classes, memory);
    }
    return st;
}
