#include "train/logits.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/external_sort.h"
#include "base/size.h"
#include "session/store_rows.h"

#define LEAST_MEMORY (64u << 10)  /* bytes */

/* Input ids [window * window_rows, + window_rows) go to one window: a bucket of records, each a u32 id and a row. */
typedef struct dealer {
    const gs_logits_job *job;
    gs_outfile *out;
    uint64_t data_offset;
    uint64_t rows, row_bytes, window_rows, batch_rows;
    uint32_t windows, record_words;
    unsigned char *window;   /* [window_rows, row_bytes] */
    unsigned char *seen;     /* [window_rows] bits: rows of the window that are filled */
    uint64_t *dealt;         /* [windows] records so far */
    float *batch;            /* [batch_rows, classes] in store order */
    uint64_t buffers;        /* bytes of the windows' buffers, then of what is read of one at once */
    gs_external_sort *sort;  /* in job->scratch_dir; NULL for one window */
} dealer;

static uint64_t rows_of_window(const dealer *d, uint64_t w)
{
    return GS_MIN(d->window_rows, d->rows - w * d->window_rows);
}

static gs_status not_a_permutation(const gs_logits_job *job)
{
    return gs_fail(GS_EFORMAT, "%s: %s.bin holds an id twice or one out of range; make the store again",
                   gs_store_dir(job->store), gs_array_stem(GS_ARRAY_INPUT_ID));
}

/* Sizes: half of the memory for the window, a quarter for buckets, the rest for
 * a batch of rows and the bits. */
static void dealer_sizes(dealer *d, uint64_t logit_bytes, const gs_logits_job *job)
{
    const uint64_t half = GS_MAX(job->memory, LEAST_MEMORY) / 2;
    const uint64_t batch = half / 4 / logit_bytes;

    d->window_rows = GS_MAX(1, GS_MIN(half / d->row_bytes, d->rows));
    d->windows = (uint32_t)gs_div_up(d->rows, d->window_rows);
    /* A batch is what one checksummed block of ids names, at most. */
    d->batch_rows = GS_MAX(1, GS_MIN(batch, GS_SUM_BYTES / sizeof(uint32_t)));
    d->buffers = half / 2;
}

static gs_status dealer_init(dealer *d, gs_outfile *o, uint64_t data_offset, const gs_logits_job *job)
{
    const uint64_t logit_bytes = (uint64_t)job->classes * sizeof(float);
    const uint64_t row_bytes = job->form == GS_LOGITS_ARGMAX ? sizeof(int64_t) : logit_bytes;

    *d = (dealer){.job = job, .out = o, .data_offset = data_offset, .row_bytes = row_bytes};
    d->rows = gs_store_get_info(job->store)->vertices;
    d->record_words = 1 + (uint32_t)(row_bytes / sizeof(uint32_t));
    dealer_sizes(d, logit_bytes, job);
    d->window = gs_malloc_array(d->window_rows, row_bytes);
    d->seen = gs_calloc(d->window_rows / 8 + 1, 1);
    d->batch = gs_malloc_array(d->batch_rows, logit_bytes);
    d->dealt = gs_calloc(d->windows, sizeof(*d->dealt));
    if (d->window == NULL || d->seen == NULL || d->batch == NULL || d->dealt == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to put the logits in order", o->path);
    return GS_OK;
}

static gs_status make_sort(dealer *d)
{
    const gs_sort_spec spec = {.dir = d->job->scratch_dir, .name = "logits", .buckets = d->windows, .writers = 1,
                               .words = d->record_words, .memory = d->buffers, .each = d->window_rows};
    const gs_status st = gs_sort_make(&d->sort, &spec);
    return st == GS_OK || st == GS_ENOMEM ? st : gs_fail_hint(st, "choose another folder with .spill");
}

static void dealer_free(dealer *d)
{
    gs_sort_free(d->sort);
    gs_free(d->window);
    gs_free(d->seen);
    gs_free(d->dealt);
    gs_free(d->batch);
}

/* Puts the row of input id `id` into its place in the window that starts at `base`. */
static gs_status place(dealer *d, uint64_t base, uint32_t id, const void *row)
{
    const uint64_t r = id - base;

    if (d->seen[r / 8] >> (r % 8) & 1)
        return not_a_permutation(d->job);
    d->seen[r / 8] |= (unsigned char)(1u << (r % 8));
    memcpy(d->window + r * d->row_bytes, row, d->row_bytes);
    return GS_OK;
}

/* A row of logits that a user can compare. */
static gs_status check_row(const float *row, const gs_logits_job *job, uint32_t id)
{
    for (uint32_t c = 0; c < job->classes && job->form != GS_LOGITS_ROWS; c++)
        if (!isfinite(row[c]))
            return gs_fail(GS_EDEVICE, "the logit of vertex %u for class %u is %s", id, c,
                           isnan(row[c]) ? "not a number" : "infinite");
    return GS_OK;
}

/* In float64, of numbers below the row's largest, as libraries of float32 have it to their last bits. */
static void softmax(float *row, uint32_t classes)
{
    float most = row[0];
    double sum = 0;

    for (uint32_t c = 1; c < classes; c++)
        most = GS_MAX(most, row[c]);
    for (uint32_t c = 0; c < classes; c++)
        sum += exp((double)row[c] - (double)most);
    for (uint32_t c = 0; c < classes; c++)
        row[c] = (float)(exp((double)row[c] - (double)most) / sum);
}

/* The row in its form: itself, or `own`. */
static const void *form_of(float *row, int64_t *own, const gs_logits_job *job)
{
    if (job->form == GS_LOGITS_SOFTMAX)
        softmax(row, job->classes);
    for (uint32_t c = 0; c < job->classes && job->form == GS_LOGITS_SIGMOID; c++)
        row[c] = (float)(1 / (1 + exp(-(double)row[c])));
    if (job->form != GS_LOGITS_ARGMAX)
        return row;
    *own = 0;
    for (uint32_t c = 1; c < job->classes; c++)
        if (row[c] > row[*own])
            *own = c;
    return own;
}

static gs_status deal(dealer *d, uint32_t id, const void *row)
{
    const uint32_t w = (uint32_t)(id / d->window_rows);

    if (id >= d->rows || d->dealt[w] == rows_of_window(d, w))
        return not_a_permutation(d->job);
    d->dealt[w]++;
    if (d->windows == 1)
        return place(d, 0, id, row);
    uint32_t *const record = gs_sort_put(d->sort, 0, w);
    if (record == NULL)
        return gs_sort_failure(d->sort);
    *record = id;
    memcpy(record + 1, row, d->row_bytes);
    return GS_OK;
}

/* Deals rows [first, first + count), whose input ids are at `id`. */
static gs_status deal_rows(dealer *d, uint64_t first, uint64_t count, const uint32_t *id)
{
    gs_status st = GS_OK;

    for (uint64_t at = 0; at < count && st == GS_OK; at += d->batch_rows) {
        const uint64_t n = GS_MIN(d->batch_rows, count - at);
        if (d->job->stop != NULL && *d->job->stop)
            return gs_fail(GS_EINTERRUPTED, "%s: interrupted", d->out->path);
        st = d->job->source(d->job->context, first + at, n, d->batch);
        for (uint64_t i = 0; i < n && st == GS_OK; i++) {
            float *const row = d->batch + i * d->job->classes;
            int64_t own;
            if ((st = check_row(row, d->job, id[at + i])) == GS_OK)
                st = deal(d, id[at + i], form_of(row, &own, d->job));
        }
    }
    return st;
}

static gs_status deal_all(dealer *d)
{
    gs_block_reader ids = {0};
    gs_status st = gs_block_reader_open(&ids, d->job->store, GS_ARRAY_INPUT_ID);

    for (uint64_t first = 0, block = 0; first < d->rows && st == GS_OK; block++) {
        uint64_t bytes, count;
        if ((st = gs_block_reader_next(&ids, block, &bytes)) != GS_OK)
            break;
        count = GS_MIN(bytes / sizeof(uint32_t), d->rows - first);
        st = deal_rows(d, first, count, ids.block);
        first += count;
    }
    gs_block_reader_close(&ids);
    return st == GS_OK && d->sort != NULL ? gs_sort_finish(d->sort) : st;
}

/* Puts window `w` in order, its records read into `piece`. */
static gs_status order_window(dealer *d, uint32_t w, uint32_t *piece, uint64_t cap)
{
    gs_sort_cursor at = gs_sort_first(d->sort, w);
    uint64_t count = 1;
    gs_status st = GS_OK;

    memset(d->seen, 0, d->window_rows / 8 + 1);
    while (count != 0 && st == GS_OK && (st = gs_sort_read(d->sort, &at, piece, cap, &count)) == GS_OK)
        for (uint64_t i = 0; i < count && st == GS_OK; i++) {
            const uint32_t *const record = piece + i * d->record_words;
            st = place(d, w * d->window_rows, *record, record + 1);
        }
    return st;
}

static gs_status write_windows(dealer *d)
{
    const uint64_t record = d->record_words * sizeof(uint32_t), cap = GS_MAX(d->buffers / record, 1);
    uint32_t *const piece = d->windows > 1 ? gs_malloc_array(cap, record) : NULL;
    gs_status st = GS_OK;

    if (d->windows > 1 && piece == NULL)
        st = gs_fail(GS_ENOMEM, "%s: no memory to put the logits in order", d->out->path);
    for (uint32_t w = 0; w < d->windows && st == GS_OK; w++) {
        if (d->dealt[w] != rows_of_window(d, w))
            st = not_a_permutation(d->job);
        else if (d->windows > 1)
            st = order_window(d, w, piece, cap);
        if (st == GS_OK)
            st = gs_outfile_write(d->out, d->window, rows_of_window(d, w) * d->row_bytes,
                                 d->data_offset + w * d->window_rows * d->row_bytes);
    }
    gs_free(piece);
    return st;
}

gs_status gs_logits_write(gs_outfile *o, uint64_t data_offset, const gs_logits_job *job)
{
    dealer d;
    gs_status st = dealer_init(&d, o, data_offset, job);

    if (st == GS_OK && d.windows > 1)
        st = make_sort(&d);
    if (st == GS_OK)
        st = deal_all(&d);
    if (st == GS_OK)
        st = write_windows(&d);
    dealer_free(&d);
    return st;
}

/* ---- into memory --------------------------------------------------------- */

/* Rows [first, first + count), whose input ids are at `id`. */
static gs_status place_rows(float *out, const gs_logits_job *job, uint64_t first, uint64_t count, const uint32_t *id,
                            uint8_t *seen, float *batch, uint64_t batch_rows)
{
    const uint64_t vertices = gs_store_get_info(job->store)->vertices;
    gs_status st = GS_OK;

    for (uint64_t at = 0; at < count && st == GS_OK; at += batch_rows) {
        const uint64_t n = GS_MIN(batch_rows, count - at);
        if (job->stop != NULL && *job->stop)
            return gs_fail(GS_EINTERRUPTED, "interrupted while the logits are put in order");
        st = job->source(job->context, first + at, n, batch);
        for (uint64_t i = 0; i < n && st == GS_OK; i++) {
            const uint32_t to = id[at + i];
            if (to >= vertices || (seen[to / 8] >> (to % 8) & 1))
                return not_a_permutation(job);
            if ((st = check_row(batch + i * job->classes, job, to)) != GS_OK)
                break;
            seen[to / 8] |= (uint8_t)(1u << (to % 8));
            int64_t own;
            memcpy(out + (uint64_t)to * job->classes, form_of(batch + i * job->classes, &own, job),
                   job->classes * sizeof(float));
        }
    }
    return st;
}

gs_status gs_logits_place(float *out, const gs_logits_job *job)
{
    const uint64_t vertices = gs_store_get_info(job->store)->vertices, row_bytes = job->classes * sizeof(float);
    const uint64_t batch_rows = GS_MIN(GS_MAX(job->memory / row_bytes, 1), GS_SUM_BYTES / sizeof(uint32_t));
    uint8_t *const seen = gs_calloc(vertices / 8 + 1, 1);
    float *const batch = gs_malloc_array(batch_rows, row_bytes);
    gs_block_reader ids = {0};
    gs_status st = GS_ENOMEM;

    if (seen == NULL || batch == NULL)
        st = gs_fail(st, "no memory to put the logits in order");
    else
        st = gs_block_reader_open(&ids, job->store, GS_ARRAY_INPUT_ID);
    for (uint64_t first = 0, block = 0; first < vertices && st == GS_OK; block++) {
        uint64_t bytes, count;
        if ((st = gs_block_reader_next(&ids, block, &bytes)) != GS_OK)
            break;
        count = GS_MIN(bytes / sizeof(uint32_t), vertices - first);
        st = place_rows(out, job, first, count, ids.block, seen, batch, batch_rows);
        first += count;
    }
    gs_block_reader_close(&ids);
    gs_free(seen);
    gs_free(batch);
    return st;
}
