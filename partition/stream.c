/* stream.c - the bytes of a file, unpacked where it is gzip or Zstandard. */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_createDCtx_advanced: a context whose memory is counted */
#include "partition/stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>
#include <zstd_errors.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/job.h"

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
    *out = s;
    s = NULL; /* now the caller's */
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

static gs_status refill(gs_stream *s)
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
    gs_status st = GS_OK;

    while (st == GS_OK && (s->at < s->have || s->offset < s->size)) {
        if (s->at == s->have && (st = refill(s)) != GS_OK)
            break;
        while (s->at < s->have && s->input[s->at] == 0)
            s->at++;
        if (s->at < s->have)
            return s->input[s->at] == 0x1f ? GS_OK : damaged(s, "something else follows them");
    }
    return st;
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
            GS_TRY(refill(s));
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
