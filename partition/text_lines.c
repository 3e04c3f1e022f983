/* text_lines.c - the bytes of a file, unpacked where it is gzip or Zstandard; lines of a text, one by one or in blocks
 * that several threads read at once, and numbers in them. */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_createDCtx_advanced: a context whose memory is counted */
#include "partition/text_lines.h"

#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <zstd.h>
#include <zstd_errors.h>

#include "base/file.h"
#include "base/size.h"

/* ---- bytes of a packed file. */

#define INPUT_BYTES (256u * GS_KIB)
#define LEAST_WINDOW 10 /* log2 of the bytes that Zstandard looks back on, of which it takes 10 to 31 */
#define MOST_WINDOW 31

typedef enum packing { PLAIN, GZIP, ZSTANDARD } packing;

struct gs_stream {
    const char *path;
    int fd;
    packing how;
    uint64_t size, offset;     /* of the file; read so far */
    unsigned char *input;      /* [INPUT_BYTES] packed; NULL for plain files */
    uint64_t have, at;         /* bytes in `input`; those of them that are unpacked */
    bool between;              /* no frame is begun: the file may end here */
    uint64_t frames;           /* that are whole */
    gs_gunzip *gzip;
    ZSTD_DCtx *zstd;
};

static void *take_zstd(void *context, size_t size)
{
    (void)context;
    return gs_malloc(size);
}

static void give(void *context, void *p)
{
    (void)context;
    gs_free(p);
}

static gs_status no_memory(const gs_stream *s) { return gs_fail(GS_ENOMEM, "%s: no memory to unpack it", s->path); }

static gs_status begin_gzip(gs_stream *s)
{
    s->gzip = gs_part__gunzip_make();
    return s->gzip != NULL ? GS_OK : no_memory(s);
}

static gs_status begin_zstandard(gs_stream *s, uint64_t memory)
{
    int window = LEAST_WINDOW;

    while (window < MOST_WINDOW && (2ull << window) <= memory)
        window++;
    if ((s->zstd = ZSTD_createDCtx_advanced((ZSTD_customMem){take_zstd, give, NULL})) == NULL ||
        ZSTD_isError(ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, window)))
        return no_memory(s);
    return GS_OK;
}

static gs_status find_packing(gs_stream *s)
{
    unsigned char magic[4] = {0};
    const gs_status st = gs_pread_exact(s->fd, magic, GS_MIN(s->size, sizeof(magic)), 0, s->path);

    if (memcmp(magic, "\x1f\x8b", 2) == 0)
        s->how = GZIP;
    else if (memcmp(magic, "\x28\xb5\x2f\xfd", 4) == 0 || (memcmp(magic + 1, "\x2a\x4d\x18", 3) == 0 &&
                                                           magic[0] >> 4 == 5)) /* a frame, or one to skip */
        s->how = ZSTANDARD;
    return st;
}

gs_status gs_part__stream_open(gs_stream **out, const char *path, uint64_t memory)
{
    GS_ENDS(gs_part__stream_close_at) gs_stream *s = gs_calloc(1, sizeof(*s));

    GS_NEED(s != NULL, "%s: no memory to read it", path);
    s->fd = -1;
    s->path = path;
    s->between = true;
    GS_TRY(gs_file_open_read(&s->fd, &s->size, path));
    GS_TRY(find_packing(s));
    posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    if (s->how != PLAIN && (s->input = gs_malloc(INPUT_BYTES)) == NULL)
        GS_TRY(no_memory(s));
    if (s->how != PLAIN)
        GS_TRY(s->how == GZIP ? begin_gzip(s) : begin_zstandard(s, memory));
    *out = GS_HANDED_OVER(s);
    return GS_OK;
}

void gs_part__stream_close(gs_stream *s)
{
    if (s == NULL)
        return;
    gs_part__gunzip_free(s->gzip);
    ZSTD_freeDCtx(s->zstd);
    if (s->fd >= 0)
        close(s->fd);
    gs_free(s->input);
    gs_free(s);
}

double gs_part__stream_done(const gs_stream *s) { return s->size == 0 ? 1 : (double)s->offset / (double)s->size; }

static gs_status read_plain(gs_stream *s, void *dst, uint64_t bytes, uint64_t *got)
{
    const uint64_t take = GS_MIN(bytes, s->size - s->offset);

    GS_TRY(gs_pread_exact(s->fd, dst, take, s->offset, s->path));
    s->offset += take;
    *got = take;
    return GS_OK;
}

static gs_status read_packed(gs_stream *s)
{
    s->at = 0;
    s->have = 0;
    return read_plain(s, s->input, INPUT_BYTES, &s->have);
}

static gs_status damaged(const gs_stream *s, const char *what)
{
    return gs_fail(GS_EFORMAT, "%s: the %s data are damaged near byte %lu of the file: %s; fetch or pack it again",
                   s->path, s->how == GZIP ? "gzip" : "Zstandard", s->offset - s->have + s->at, what);
}

/* Unpacks some of `input` into [*at, end). */
static gs_status step_gzip(gs_stream *s, unsigned char **at, const unsigned char *end)
{
    const unsigned char *in = s->input + s->at;
    const char *what = NULL;
    const gs_status st = gs_part__gunzip_step(s->gzip, &in, s->input + s->have, at, end, &s->between, &what);

    s->at = (uint64_t)(in - s->input);
    if (st != GS_OK)
        return st == GS_ENOMEM ? no_memory(s) : damaged(s, what);
    s->frames += s->between; /* files made of several, as by cat or bgzip */
    return GS_OK;
}

/* `from`: in the input, where the frame may begin. */
static gs_status window_too_large(const gs_stream *s, uint64_t from)
{
    ZSTD_frameHeader h;
    char least[40] = "";
    uint64_t window = 1;

    if (ZSTD_getFrameHeader(&h, s->input + from, s->have - from) == 0) {
        if (h.windowSize > 1ull << ZSTD_WINDOWLOG_MAX)
            return damaged(s, "a frame wants a larger window than any that may be packed");
        while (window < h.windowSize)
            window *= 2;
        snprintf(least, sizeof(least), ", at least %luM", gs_part__least_memory(window, 4));
    }
    return gs_fail(GS_EBUDGET,
                   "%s: to unpack it takes a larger window than a quarter of .memory; give more%s, or pack it again "
                   "with a smaller one",
                   s->path, least);
}

static gs_status step_zstandard(gs_stream *s, unsigned char **at, const unsigned char *end)
{
    ZSTD_inBuffer in = {s->input, s->have, s->at};
    ZSTD_outBuffer out = {*at, (size_t)(end - *at), 0};
    const uint64_t from = s->at;
    const size_t rc = ZSTD_decompressStream(s->zstd, &out, &in);

    s->at = in.pos;
    *at += out.pos;
    if (!ZSTD_isError(rc)) {
        s->between = rc == 0;
        s->frames += s->between;
        return GS_OK;
    }
    if (ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation)
        return no_memory(s);
    if (ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge)
        return window_too_large(s, from);
    return damaged(s, ZSTD_getErrorName(rc));
}

/* After a frame only another may come, or, after gzip's, zeros as tar adds them. */
static gs_status skip_zeros(gs_stream *s)
{
    while (s->at < s->have || s->offset < s->size) {
        if (s->at == s->have)
            GS_TRY(read_packed(s));
        while (s->at < s->have && s->input[s->at] == 0)
            s->at++;
        if (s->at < s->have)
            return s->input[s->at] == 0x1f ? GS_OK : damaged(s, "something else follows them");
    }
    return GS_OK;
}

gs_status gs_part__stream_read(gs_stream *s, void *dst, uint64_t bytes, uint64_t *got)
{
    unsigned char *at = dst, *const end = at + bytes;

    if (s->how == PLAIN)
        return read_plain(s, dst, bytes, got);
    while (at < end) {
        const unsigned char *const before = at;
        if (s->how == GZIP && s->between && s->frames > 0)
            GS_TRY(skip_zeros(s));
        if (s->at == s->have && s->offset < s->size)
            GS_TRY(read_packed(s));
        const bool dry = s->at == s->have; /* what is unpacked and not yet handed out may still come */
        if (dry && s->between)
            break;
        GS_TRY(s->how == GZIP ? step_gzip(s, &at, end) : step_zstandard(s, &at, end));
        if (dry && at == before && !s->between)
            return gs_fail(GS_EFORMAT, "%s: is cut short: the file ends within its %s data; fetch or pack it again",
                           s->path, s->how == GZIP ? "gzip" : "Zstandard");
    }
    *got = (uint64_t)(at - (unsigned char *)dst);
    return GS_OK;
}

/* ---- numbers with fractions and exponents. */

#define EXACT_DIGITS 15 /* whole numbers of so many, and powers of ten to 10^22, are exact as f64 */
#define EXACT_SCALE 22

/* Digits, a point, digits, e and an exponent as digits * 10^scale; NULL where there is no digit or they are too many to
 * be exact. Zeros in front count as digits. */
static const char *take_decimal(const char *text, uint64_t *digits, int *scale)
{
    const char *p = gs_text_digits(text, digits);
    ptrdiff_t count = p - text;

    *scale = 0;
    if (*p == '.') {
        const char *const fraction = p + 1;
        p = gs_text_digits(fraction, digits);
        *scale = -(int)(p - fraction);
        count += p - fraction;
    }
    if (count == 0 || count > EXACT_DIGITS)
        return NULL;
    if (*p == 'e' || *p == 'E') {
        const char sign = p[1], *const from = p + 1 + (sign == '-' || sign == '+');
        uint64_t e = 0;
        const char *const q = gs_text_digits(from, &e);
        if (q == from) /* the number ends before the e */
            return p;
        if (q - from > 3)
            return NULL;
        *scale += sign == '-' ? -(int)e : (int)e;
        p = q;
    }
    return p;
}

/* By strtod() or strtof(), which pass over blanks, and so over the end of a line. */
static double slow_real(const char *text, const char **after)
{
    char *end = (char *)(uintptr_t)text;
    const double v = isspace((unsigned char)*text) ? 0 : strtod(text, &end);
    *after = end;
    return v;
}

static float slow_real32(const char *text, const char **after)
{
    char *end = (char *)(uintptr_t)text;
    const float v = isspace((unsigned char)*text) ? 0 : strtof(text, &end);
    *after = end;
    return v;
}

/* A quotient or product of two exact numbers is the nearest one; whatever else there is, strtod() reads. */
double gs_text_real(const char *text, const char **after)
{
    static const double tens[EXACT_SCALE + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t digits = 0;
    int scale = 0;
    const char *const p = take_decimal(text + (*text == '-'), &digits, &scale);

    if (p == NULL || *p == 'x' || *p == 'X' || scale < -EXACT_SCALE || scale > EXACT_SCALE)
        return slow_real(text, after);
    *after = p;
    const double v = scale < 0 ? (double)digits / tens[-scale] : (double)digits * tens[scale];
    return *text == '-' ? -v : v;
}

/* Rounding twice errs only where the first rounding ends half way between two floats, or below the normal ones. */
float gs_text_real32(const char *text, const char **after)
{
    const double v = gs_text_real(text, after);
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    const uint64_t exponent = bits >> 52 & 2047;
    if ((bits & 0x1fffffff) == 0x10000000 || exponent < 1023 - 126 || exponent > 1023 + 127)
        return v == 0 && *after > text ? (float)v : slow_real32(text, after);
    return (float)v;
}

/* ---- lines of a text file, piece by piece. */

#define READ_BYTES (64 * GS_KIB)
#define SAFE_DIGITS 19 /* a number of so many fits 64 bits */

/* Moves what is left to the front and reads more behind it. */
static gs_status refill(gs_lines *l)
{
    const size_t left = (size_t)(l->end - l->at);
    uint64_t got = 0;

    if (left > GS_LINE_LIMIT)
        return gs_part__line_too_long(&l->line, GS_LINE_LIMIT);
    memmove(l->buffer, l->at, left);
    l->at = l->buffer;
    l->end = l->buffer + left;
    const gs_status st = gs_part__stream_read(l->stream, l->end, READ_BYTES, &got);
    l->end += got;
    l->ended = got < READ_BYTES;
    return st;
}

gs_status gs_part__lines_open(gs_lines *l, const gs_part_job *job, const char *path)
{
    memset(l, 0, sizeof(*l));
    l->line.path = path;
    GS_TRY(gs_part__stream_open(&l->stream, path, job->memory / 4));
    if ((l->buffer = gs_malloc(READ_BYTES + GS_LINE_LIMIT + 1 + GS_TEXT_PADDING)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", path);
    l->at = l->end = l->buffer;
    GS_TRY(refill(l));
    if (l->end - l->at >= 3 && memcmp(l->at, GS_TEXT_MARK, 3) == 0)
        l->at += 3;
    return GS_OK;
}

void gs_part__lines_close(gs_lines *l)
{
    gs_part__stream_close(l->stream);
    gs_free(l->buffer);
    memset(l, 0, sizeof(*l));
}

gs_status gs_part__lines_next(gs_lines *l, char **text)
{
    char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));

    if (newline == NULL && !l->ended) {
        const gs_status st = refill(l);
        if (st != GS_OK)
            return st;
        newline = memchr(l->at, '\n', (size_t)(l->end - l->at));
        if (newline == NULL && !l->ended)
            return gs_part__line_too_long(&l->line, GS_LINE_LIMIT);
    }
    *text = NULL;
    if (newline == NULL && l->at == l->end)
        return GS_OK;
    if (newline == NULL)
        newline = l->end; /* the last line has no newline; the buffer has room for the 0 */
    *text = l->at;
    l->line.text = l->at;
    l->line.number++;
    l->at = GS_MIN(newline + 1, l->end);
    const gs_status st = gs_part__line_check(&l->line, (size_t)(newline - l->line.text));
    *newline = '\0';
    return st;
}

gs_status gs_part__lines_next_said(gs_lines *l, const char **p, const char *missing)
{
    char *text = NULL;

    do {
        GS_TRY(gs_part__lines_next(l, &text));
        if (text == NULL)
            return gs_fail(GS_EFORMAT, "%s: %s", l->line.path, missing);
        *p = gs_part__skip_blanks(text);
    } while (**p == '%' || **p == '\0');
    return GS_OK;
}

void gs_part__lines_back(gs_lines *l)
{
    char *const newline = l->buffer + (l->line.text - l->buffer) + strlen(l->line.text);

    if (newline < l->end)
        *newline = '\n';
    l->at = l->buffer + (l->line.text - l->buffer);
    l->line.number--;
}

gs_status gs_part__line_wrong(const gs_line *l, const char *at, const char *what)
{
    return gs_fail(GS_EFORMAT, "%s: line %lu, column %lu: %s", l->path, l->number, (at - l->text) + 1, what);
}

gs_status gs_part__line_too_long(const gs_line *l, uint64_t limit)
{
    return gs_fail(GS_EFORMAT, "%s: line %lu is longer than %lu bytes", l->path, l->number + 1, limit);
}

gs_status gs_part__line_check(const gs_line *l, size_t length)
{
    const char *const zero = memchr(l->text, '\0', length);
    return zero == NULL ? GS_OK : gs_part__line_wrong(l, zero, GS_ZERO_IN_TEXT);
}

/* Number of as many digits as there are; beyond 64 bits it stays large. */
static uint64_t saturated(const char *p)
{
    uint64_t v = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        v = v > UINT64_MAX / 16 ? v : v * 10 + (uint64_t)(*p - '0');
    return v;
}

gs_status gs_part__take_number(uint64_t *out, const char **p, const gs_line *l, uint64_t least, uint64_t most,
                               const char *what)
{
    uint64_t v = 0;
    const char *const at = gs_text_digits(*p, &v);
    char text[160];

    if (at == *p) {
        snprintf(text, sizeof(text), "expected %s, a whole number", what);
        return gs_part__line_wrong(l, at, text);
    }
    if (at - *p > SAFE_DIGITS)
        v = saturated(*p);
    if (v < least || v > most) {
        snprintf(text, sizeof(text), "%s is outside %lu to %lu", what, least, most);
        return gs_part__line_wrong(l, *p, text);
    }
    if (!gs_part__is_end(*at) && !gs_part__is_blank(*at))
        return gs_part__line_wrong(l, at, "a number ends in something that is neither a digit nor a blank");
    *out = v;
    *p = gs_part__skip_blanks(at);
    return GS_OK;
}

/* ---- blocks of a text, dealt to workers and put into order again. */

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
    GS_NEED(grown != NULL, "%s: no memory to read it", path);
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

    GS_TRY(set_room(&w->room, &w->room_bytes, bytes + more, path));
    if (bytes > 0)
        memcpy(w->room, t->carry, bytes);
    t->carry_bytes = 0;
    w->block.cut = false;
    while (!t->ended && whole == 0 && !w->block.cut) {
        GS_TRY(set_room(&w->room, &w->room_bytes, bytes + more, path));
        GS_TRY(gs_part__stream_read(t->lines->stream, w->room + bytes, t->block_bytes, &got));
        bytes += got;
        t->ended = got < t->block_bytes;
        whole = whole_bytes(t, w->room, bytes, t->blocks == 0 ? bytes : got);
        w->block.cut = !t->ended && whole == 0 && bytes > t->how->limit;
    }
    t->ended |= w->block.cut;
    if (!t->ended) {
        GS_TRY(set_room(&t->carry, &t->carry_room, bytes - whole, path));
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
