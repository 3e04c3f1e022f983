/* messages.c - what ranks send each other in a pass, and add up behind it. */
#include "exec/messages.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"
#include "exec/lane.h"

/* ---- in a pass ------------------------------------------------------------ */

static bool sends(const gs_task *t) { return t->place.memory >= GS_RANK_MEMORIES; }

/* Where the pass has the rows. */
static uint8_t *rows_of(const gs_exec *e, const gs_task *t)
{
    return gs_exec__at(e, &e->on[0], sends(t) ? t->source : t->place);
}

/* Does what goes lie side by side in a message, and elsewhere before it or behind it? Rows that go by themselves, and
 * all that comes to a device with memory of its own. */
static bool is_packed(const gs_exec *e, const gs_task *t)
{
    return gs_task_moves_rows(t) || (!sends(t) && e->defers);
}

/* A piece of what goes, in the order of a message: bytes from the first row's on. */
typedef struct stretch {
    gs_row_stretch rows; /* of rows that go by themselves */
    uint32_t next;       /* number of the piece behind it */
    gs_ranks_piece at;
} stretch;

/* False: there is none more. */
static bool next_piece(const gs_exec *e, const gs_task *t, stretch *x)
{
    const uint32_t n = x->next++;

    if (gs_task_moves_rows(t)) {
        const bool more = gs_task_next_rows(e->plan, t, &x->rows);
        x->at = (gs_ranks_piece){x->rows.first * t->row_bytes, x->rows.rows * t->row_bytes};
        return more;
    }
    if (t->runs == 0) {
        x->at = (gs_ranks_piece){0, t->bytes};
        return n == 0;
    }
    if (n < t->runs) {
        const gs_block_run run = e->plan->run[t->first_run + n];
        const uint64_t from = run.first * GS_BLOCK_BYTES;
        x->at = (gs_ranks_piece){from, GS_MIN(run.blocks * GS_BLOCK_BYTES, t->bytes - from)};
    }
    return n < t->runs;
}

/* Rows that go by themselves, into a message or out of it. Row by row: where stretches of them end is not foreseen.
 * `step`, a constant where it can be: bytes of which rows have a multiple. */
static inline __attribute__((always_inline)) void copy_rows(const gs_exec *e, const gs_task *t, uint8_t *packed,
                                                            bool in, const uint32_t step)
{
    const uint64_t *const bits = e->plan->row_bits + t->first_word, words = gs_task_row_words(t);
    uint8_t *const rows = rows_of(e, t);

    for (uint64_t w = 0; w < words; w++)
        for (uint64_t left = bits[w]; left != 0; left &= left - 1, packed += t->row_bytes) {
            uint8_t *const row = rows + (w * 64 + (uint64_t)__builtin_ctzll(left)) * t->row_bytes;
            for (uint32_t b = 0; b < t->row_bytes; b += step)
                memcpy(in ? row + b : packed + b, in ? packed + b : row + b, step);
        }
}

static void copy_packed(const gs_exec *e, const gs_task *t, uint8_t *packed, bool in)
{
    if (t->row_bytes % 32 == 0)
        copy_rows(e, t, packed, in, 32);
    else if (t->row_bytes % 4 == 0)
        copy_rows(e, t, packed, in, 4);
    else
        copy_rows(e, t, packed, in, t->row_bytes);
}

/* No device of the rank takes rows from another, so that way is this thread's alone. */
static gs_status unpack(const gs_exec *e, const gs_task *t, uint8_t *packed)
{
    gs_device *const d = e->on[0].device;
    uint8_t *const rows = rows_of(e, t);

    if (!e->defers) {
        copy_packed(e, t, packed, true);
        return GS_OK;
    }
    for (stretch x = {.next = 0}; next_piece(e, t, &x); packed += x.at.bytes)
        GS_TRY(gs_device_transfer(d, GS_DEVICE_FROM_PEER, NULL, rows + x.at.offset, packed, x.at.bytes));
    return gs_exec__wait_copied(d, GS_DEVICE_FROM_PEER);
}

/* The lane's next message in the order of tasks. */
static gs_status make(gs_exec *e, gs_exec_messages *m, uint32_t task, gs_ranks_piece *piece)
{
    const gs_task *const t = &e->plan->task[task];
    const bool send = sends(t);
    const uint32_t rank = (send ? t->place.memory : t->source.memory) - GS_RANK_MEMORIES;
    gs_ranks_message *const out = &m->of[m->made];
    uint32_t pieces = 0;

    m->task[m->made] = task;
    m->packed_at[m->made] = NULL;
    if (is_packed(e, t)) {
        piece[0] = (gs_ranks_piece){0, gs_task_bytes(e->plan, t)};
        m->packed_at[m->made] = m->packed + m->packs++ % GS_PLAN_PACKED * m->packed_bytes;
        return gs_ranks_make(out, send, rank, m->packed_at[m->made], piece, 1);
    }
    for (stretch x = {.next = 0}; next_piece(e, t, &x); pieces++)
        piece[pieces] = x.at;
    return gs_ranks_make(out, send, rank, rows_of(e, t), piece, pieces);
}

static gs_status take(gs_exec *e, uint32_t lane, gs_exec_messages **out)
{
    gs_exec_messages *const m = gs_calloc(1, sizeof(*m));
    GS_FREED gs_ranks_piece *piece = NULL;
    uint32_t runs = 1, tasks = 0;
    uint64_t packed = 0;

    for (uint32_t i = 0; i < e->plan->tasks; i++) {
        const gs_task *const t = &e->plan->task[i];
        if (gs_task_lane(t) != lane)
            continue;
        packed = GS_MAX(packed, is_packed(e, t) ? gs_task_bytes(e->plan, t) : 0);
        runs = GS_MAX(runs, t->runs);
        tasks++;
    }
    piece = gs_malloc_array(runs, sizeof(*piece));
    if ((*out = m) != NULL) {
        pthread_mutex_init(&m->lock, NULL);
        m->of = gs_malloc_array((size_t)tasks + 1, sizeof(*m->of));
        m->task = gs_malloc_array((size_t)tasks + 1, sizeof(*m->task));
        m->packed_at = gs_malloc_array((size_t)tasks + 1, sizeof(*m->packed_at));
        m->packed = gs_malloc_array(GS_PLAN_PACKED, packed + 1);
        m->packed_bytes = packed;
    }
    if (m == NULL || piece == NULL || m->of == NULL || m->task == NULL || m->packed_at == NULL || m->packed == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: messages to other ranks");
    for (uint32_t i = 0; i < e->plan->tasks; i++)
        if (gs_task_lane(&e->plan->task[i]) == lane) {
            GS_TRY(make(e, m, i, piece));
            m->made++;
        }
    return GS_OK;
}

gs_status gs_exec__take_messages(gs_exec *e)
{
    const uint32_t lane = GS_LANE_SEND - GS_LANE_DEVICES;

    for (uint32_t k = lane; e->plan->ranks > 0 && k < lane + 2; k++)
        GS_TRY(take(e, GS_LANE_DEVICES + k, &e->lane[k].messages));
    return GS_OK;
}

void gs_exec__give_messages(gs_exec *e)
{
    for (uint32_t k = 0; e->lane != NULL && k < e->lanes.lanes - GS_LANE_DEVICES; k++) {
        gs_exec_messages *const m = e->lane[k].messages;
        for (uint32_t i = 0; m != NULL && i < m->made; i++)
            gs_ranks_drop(&m->of[i]);
        if (m != NULL) {
            pthread_mutex_destroy(&m->lock);
            gs_free(m->of);
            gs_free(m->task);
            gs_free(m->packed_at);
            gs_free(m->packed);
        }
        gs_free(m);
    }
}

void gs_exec__enter_messages(gs_exec_lane *l)
{
    const gs_plan_pass *const pass = &l->e->plan->pass[l->e->lanes.pass];
    gs_exec_messages *const m = l->messages;

    m->next = 0;
    while (m->next < m->made && m->task[m->next] < pass->first_task)
        m->next++;
    m->first = m->next;
}

static uint32_t under_way(const gs_exec_messages *m) { return m->next - m->first; }

/* Is there room for the lane's next, which there is? */
static bool may_begin(const gs_exec_messages *m)
{
    return under_way(m) < GS_EXEC_MESSAGES && (m->packs_under_way < GS_PLAN_PACKED || m->packed_at[m->next] == NULL);
}

static gs_status begin_message(gs_exec_lane *l, uint32_t task)
{
    gs_exec_messages *const m = l->messages;
    gs_exec *const e = l->e;
    uint8_t *const packed = m->packed_at[m->next];

    assert(m->task[m->next] == task);
    gs_lanes_begin(&e->lanes, l->lane);
    if (gs_exec__beginning != NULL)
        gs_exec__beginning(e, task);
    if (e->span != NULL)
        e->span[task][0] = gs_now();
    l->bytes += gs_task_bytes(e->plan, &e->plan->task[task]);
    m->packs_under_way += packed != NULL;
    if (packed != NULL && sends(&e->plan->task[task]))
        copy_packed(e, &e->plan->task[task], packed, false);
    return gs_ranks_begin(&m->of[m->next++]);
}

/* The oldest is over. */
static gs_status end_message(gs_exec_lane *l)
{
    gs_exec_messages *const m = l->messages;
    gs_exec *const e = l->e;
    const uint32_t task = m->task[m->first];
    uint8_t *const packed = m->packed_at[m->first];

    if (packed != NULL && !sends(&e->plan->task[task]))
        GS_TRY(unpack(e, &e->plan->task[task], packed));
    m->packs_under_way -= packed != NULL;
    m->first++;
    l->last = gs_now();
    if (e->span != NULL)
        e->span[task][1] = l->last;
    gs_exec__finish(e, task);
    return GS_OK;
}

static gs_status attend(gs_exec_lane *l, gs_exec_attended *out)
{
    gs_exec_messages *const m = l->messages;
    bool done = true;
    uint32_t task;

    while ((task = gs_lanes_next(&l->e->lanes, l->lane)) != GS_NONE && may_begin(m)) {
        if ((out->missing = gs_lanes_missing_dep(&l->e->lanes, task)) != GS_NONE)
            break;
        GS_TRY(begin_message(l, task));
        out->some = true;
    }
    while (m->first < m->next && done) {
        GS_TRY(gs_ranks_test(&m->of[m->first], &done));
        if (done)
            GS_TRY(end_message(l));
        out->some = out->some || done;
    }
    out->under_way = m->first < m->next;
    out->over = !out->under_way && gs_lanes_next(&l->e->lanes, l->lane) == GS_NONE;
    return GS_OK;
}

gs_status gs_exec__attend_messages(gs_exec_lane *l, gs_exec_attended *out)
{
    *out = (gs_exec_attended){.missing = GS_NONE};
    pthread_mutex_lock(&l->messages->lock);
    const gs_status st = attend(l, out);
    pthread_mutex_unlock(&l->messages->lock);
    return st;
}

/* ---- behind a pass -------------------------------------------------------- */

/* All that is counted, as numbers that are added in the order of the ranks. */
typedef void number_fn(double *at, double *number);

static void put_number(double *at, double *number) { *at = *number; }
static void take_number(double *at, double *number) { *number = *at; }

static double *each_count(double *at, uint64_t *count, uint64_t counts, number_fn *fn)
{
    for (uint64_t i = 0; i < counts; i++) {
        double x = (double)count[i];
        fn(at++, &x);
        count[i] = (uint64_t)x;
    }
    return at;
}

static void each_number(gs_exec *e, double *at, number_fn *fn)
{
    gs_exec_stats *const x = &e->stats;
    gs_metrics *const m = &x->metrics;
    uint64_t *const bytes[] = {&x->read_bytes, &x->written_bytes, &x->copied_in_bytes, &x->copied_out_bytes,
                               &x->sent_bytes, &x->checked_bytes};

    fn(at++, &m->loss_sum);
    fn(at++, &m->valid_loss);
    at = each_count(at, m->rows, 4, fn);
    at = each_count(at, m->correct, 4, fn);
    for (size_t k = 0; k < GS_ARRAY_LEN(bytes); k++)
        at = each_count(at, bytes[k], 1, fn);
    for (uint64_t i = 0; m->column != NULL && i < e->shares.columns; i++)
        fn(at++, &m->column[i]);
    for (uint64_t i = 0; m->found != NULL && i < e->shares.founds; i++) {
        double n = m->found[i];
        fn(at++, &n);
        m->found[i] = (uint32_t)n;
    }
}

gs_status gs_exec__sum_ranks(gs_exec *e)
{
    const gs_exec_shares *const s = &e->shares;

    if (e->plan->ranks == 0)
        return GS_OK;
    const uint64_t learned = e->args->grad != NULL ? s->learned : 0;
    each_number(e, s->numbers, put_number);
    GS_TRY(gs_ranks_sum_both(s->numbers, s->number_count, learned > 0 ? e->on[0].grad[s->first] : NULL, learned));
    each_number(e, s->numbers, take_number);
    return GS_OK;
}
