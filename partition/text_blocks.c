/* text_blocks.c - blocks of a text, dealt to workers and put into order again. */
#include "partition/text_blocks.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/stream.h"
#include "partition/text_number.h" /* GS_TEXT_PADDING */

#define LEAST_BLOCK (16 * GS_KIB)
#define MOST_BLOCK (256 * GS_KIB)
#define FLOW 6u /* what is made of a block takes at most so many times the bytes of usual text: its share of memory */

/* State that all workers share. */
typedef struct text {
    gs_lines *lines;
    gs_part_job *job;
    const gs_text_reader *how;
    uint64_t block_bytes;
    pthread_mutex_t reading; /* guards the four below, and `lines` */
    char *carry; /* what follows the last whole line */
    uint64_t carry_bytes, carry_room, blocks;
    bool ended;
    pthread_mutex_t turns; /* guards the two below; held while a block passes */
    pthread_cond_t turned;
    uint64_t turn; /* the block that is next */
    bool over;     /* by a failure, or because that was enough */
} text;

/* A worker's own. */
typedef struct worker {
    text *t;
    char *room; /* of the block's text */
    uint64_t room_bytes, number;
    gs_text_block block;
    gs_status failed; /* to read the block; told when its turn comes */
    void *own;
} worker;

static gs_status set_room(char **buffer, uint64_t *room, uint64_t bytes, const char *path)
{
    if (bytes <= *room)
        return GS_OK;
    char *const grown = gs_realloc(*buffer, bytes);
    if (grown == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", path);
    *buffer = grown;
    *room = bytes;
    return GS_OK;
}

/* Bytes of whole lines, or of whole words, in [begin, begin + bytes), of which the last `fresh` were not looked at. */
static uint64_t whole_bytes(const text *t, const char *begin, uint64_t bytes, uint64_t fresh)
{
    const char *const from = begin + bytes - fresh, *last = memrchr(from, '\n', fresh);

    if (last == NULL && t->how->pieces)
        for (const char *p = from + fresh; p > from && last == NULL; p--)
            last = gs_part__is_blank(p[-1]) ? p - 1 : NULL;
    return last != NULL ? (uint64_t)(last - begin) + 1 : 0;
}

/* Ends the block's text as it is promised. */
static void finish_text(worker *w, uint64_t bytes)
{
    w->block.text = w->room;
    if (bytes > 0 && w->room[bytes - 1] != '\n' && !w->t->how->pieces)
        w->room[bytes++] = '\n';
    memset(w->room + bytes, 0, GS_TEXT_PADDING);
    w->block.bytes = bytes;
}

/* Whole lines, and what follows them is carried over. Under t->reading. */
static gs_status fill_block(worker *w)
{
    text *const t = w->t;
    const char *const path = t->lines->line.path;
    const uint64_t more = t->block_bytes + 1 + GS_TEXT_PADDING;
    uint64_t got, bytes = t->carry_bytes, whole = 0;
    gs_status st;

    if ((st = set_room(&w->room, &w->room_bytes, bytes + more, path)) != GS_OK)
        return st;
    if (bytes > 0)
        memcpy(w->room, t->carry, bytes);
    t->carry_bytes = 0;
    w->block.cut = false;
    while (!t->ended && whole == 0 && !w->block.cut) {
        if ((st = set_room(&w->room, &w->room_bytes, bytes + more, path)) != GS_OK ||
            (st = gs_part__stream_read(t->lines->stream, w->room + bytes, t->block_bytes, &got)) != GS_OK)
            return st;
        bytes += got;
        t->ended = got < t->block_bytes;
        whole = whole_bytes(t, w->room, bytes, t->blocks == 0 ? bytes : got);
        w->block.cut = !t->ended && whole == 0 && bytes > t->how->limit;
    }
    t->ended |= w->block.cut;
    if (!t->ended) {
        if ((st = set_room(&t->carry, &t->carry_room, bytes - whole, path)) != GS_OK)
            return st;
        if (bytes > whole)
            memcpy(t->carry, w->room + whole, bytes - whole);
        t->carry_bytes = bytes - whole;
        bytes = whole;
    }
    finish_text(w, bytes);
    return GS_OK;
}

/* False after the last block. A failure is a block, too. */
static bool next_block(worker *w)
{
    text *const t = w->t;
    bool more;

    pthread_mutex_lock(&t->reading);
    if ((more = !t->ended || t->carry_bytes > 0)) {
        w->failed = fill_block(w);
        t->ended |= w->failed != GS_OK;
        more = w->failed != GS_OK || w->block.bytes > 0;
        w->number = t->blocks++;
        gs_part__tick(t->job, t->how->doing, gs_part__stream_done(t->lines->stream));
    }
    pthread_mutex_unlock(&t->reading);
    return more;
}

/* Waits until all blocks before it are through. */
static gs_status take_turn(worker *w)
{
    text *const t = w->t;
    gs_status st;

    pthread_mutex_lock(&t->turns);
    while (t->turn != w->number && !t->over)
        pthread_cond_wait(&t->turned, &t->turns);
    if (t->over)
        st = (st = gs_part__job_result(t->job)) == GS_OK ? GS_EAGAIN : st;
    else if ((st = w->failed) == GS_OK)
        st = t->how->pass(t->how->context, &w->block, w->own);
    if (st != GS_EAGAIN)
        gs_part__job_fail(t->job, st);
    t->over |= st != GS_OK;
    t->turn++;
    pthread_cond_broadcast(&t->turned);
    pthread_mutex_unlock(&t->turns);
    return st;
}

static void *work(void *shared)
{
    text *const t = shared;
    worker w = {.t = t, .own = gs_calloc(1, t->how->own_bytes)};
    gs_status st = w.own != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory to read it", t->lines->line.path);

    while (st == GS_OK && (st = gs_part__job_result(t->job)) == GS_OK && next_block(&w)) {
        if (w.failed == GS_OK && t->how->parse != NULL)
            t->how->parse(t->how->context, &w.block, w.own);
        if ((st = take_turn(&w)) == GS_OK && t->how->store != NULL)
            st = t->how->store(t->how->context, w.own);
    }
    if (st != GS_OK) {
        if (st != GS_EAGAIN)
            gs_part__job_fail(t->job, st);
        pthread_mutex_lock(&t->turns);
        t->over = true;
        pthread_cond_broadcast(&t->turned);
        pthread_mutex_unlock(&t->turns);
    }
    if (w.own != NULL)
        t->how->release(w.own);
    gs_free(w.own);
    gs_free(w.room);
    return NULL;
}

/* This thread works too. */
static gs_status work_together(text *t)
{
    const uint64_t each = t->block_bytes * (1 + FLOW);
    const uint64_t workers = GS_MAX(GS_MIN(t->job->threads, t->job->memory / 4 / each), 1);
    pthread_t thread[GS_PART_MOST_THREADS];
    uint64_t started = 0;

    while (started + 1 < workers && pthread_create(&thread[started], NULL, work, t) == 0)
        started++;
    work(t);
    for (uint64_t i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    return gs_part__job_result(t->job);
}

gs_status gs_part__text_blocks(gs_lines *l, gs_part_job *job, const gs_text_reader *reader)
{
    text t = {.lines = l, .job = job, .how = reader, .ended = l->ended};
    const uint64_t left = (uint64_t)(l->end - l->at);
    gs_status st;

    t.block_bytes = GS_MIN(GS_MAX(job->memory / 256, LEAST_BLOCK), MOST_BLOCK);
    pthread_mutex_init(&t.reading, NULL);
    pthread_mutex_init(&t.turns, NULL);
    pthread_cond_init(&t.turned, NULL);
    if ((st = set_room(&t.carry, &t.carry_room, GS_MAX(left, 1), l->line.path)) == GS_OK) {
        memcpy(t.carry, l->at, left);
        t.carry_bytes = left;
        l->at = l->end;
        st = work_together(&t);
    }
    gs_free(t.carry);
    pthread_mutex_destroy(&t.reading);
    pthread_mutex_destroy(&t.turns);
    pthread_cond_destroy(&t.turned);
    return st;
}
