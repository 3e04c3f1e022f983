/* Reads of files straight into the arena.
 *
 * A read is a batch of cuFile's requests. When all of its bytes have come, the GPU makes their mark
 * (base/hash.h) in a stream of its own, ahead of other kernels that wait, and 8 bytes a block come back; only
 * then is the read over. What came short is asked for again from where it ended. Nothing here has a thread: whoever
 * polls moves all reads on.
 */
#include "cuda/file_reads.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/size.h"
#include "cuda/cuda_device.h"
#include "cuda/file_library.h"
#include "cuda/streams.h"

/* ---- cuFile's library and driver, opened once a process ---- */

#define LIBRARY "libcufile.so.0"

const gs_cufile *gs_cuda_test_files;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gs_cufile table;
static void *library;
static bool started;

typedef struct entry {
    const char *symbol;
    size_t offset;
} entry;

#define X(type, member, symbol, parameters) {symbol, offsetof(gs_cufile, member)},
static const entry entries[] = {GS_CUFILE_MAP(X)};
static const entry newer[] = {GS_CUFILE_NEWER_MAP(X)};
#undef X

/* Words for a CUfileOpError. */
static const char *cufile_text(int error)
{
    switch (error) {
    case GS_CUFILE_DRIVER_NOT_INITIALIZED:
        return "the driver nvidia-fs is not loaded";
    case GS_CUFILE_PLATFORM_NOT_SUPPORTED:
        return "it does not support this machine";
    case GS_CUFILE_IO_NOT_SUPPORTED:
        return "it does not support the file's file system";
    case GS_CUFILE_DEVICE_NOT_SUPPORTED:
        return "it does not support this GPU";
    case GS_CUFILE_CUDA_ERROR:
        return "a call of CUDA's driver failed";
    case GS_CUFILE_PERMISSION_DENIED:
        return "permission denied";
    case GS_CUFILE_IO_DISABLED:
        return "its configuration turns it off for this file";
    default:
        return "see its log, cufile.log";
    }
}

static bool fill(const entry *e, size_t n)
{
    bool whole = true;
    for (size_t i = 0; i < n; i++) {
        void *const f = dlsym(library, e[i].symbol);
        whole = whole && f != NULL;
        memcpy((char *)&table + e[i].offset, &f, sizeof(f));
    }
    return whole;
}

static gs_status open_library(const gs_cufile **out)
{
    *out = gs_cuda_test_files;
    if (*out != NULL)
        return GS_OK;
    if (library == NULL && (library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL)) == NULL)
        return gs_fail(GS_EUNSUPPORTED, "cuFile's library (" LIBRARY ") was not found: GPUDirect Storage is not "
                       "installed here");
    if (!fill(entries, GS_ARRAY_LEN(entries)))
        return gs_fail(GS_EUNSUPPORTED, LIBRARY " has no batches of requests: it is older than CUDA 12");
    (void)fill(newer, GS_ARRAY_LEN(newer));
    *out = &table;
    return GS_OK;
}

static gs_status open_driver(const gs_cufile *f)
{
    if (f->set_bool != NULL) /* what it answers where it cannot is not asked: it then is slower, and right */
        (void)f->set_bool(GS_CUFILE_ALLOW_COMPAT_MODE, false);
    const gs_cufile_error r = f->driver_open();
    return r.error == 0 ? GS_OK : gs_fail(GS_EUNSUPPORTED, "cuFile does not start: %s (its error %d)",
                                          cufile_text(r.error), r.error);
}

/* Opens the library and its driver, once a process: to start takes long, so both stay until it ends, and the library
 * closes itself. GS_EUNSUPPORTED: which of the two is missing. Any thread, whose context is a GPU's. */
static gs_status cufile_open(const gs_cufile **out)
{
    pthread_mutex_lock(&lock);
    gs_status st = open_library(out);
    if (st == GS_OK && !started)
        st = open_driver(*out);
    started = started || st == GS_OK;
    pthread_mutex_unlock(&lock);
    return st;
}

/* ---- reads ---- */

#define REQUEST_BYTES GS_MIB /* a longer request is no faster; more of them than there is room for are longer */
#define SUMS_BYTES ((uint64_t)GS_DEVICE_READS * GS_MARK_BLOCKS * sizeof(uint64_t))
#define WORDS_OF_BLOCK (16u * GS_BLOCK_LANES) /* at least, of a block that makes a mark */

_Static_assert(sizeof(gs_cuda_reads) + SUMS_BYTES + GS_BLOCK_BYTES <= GS_DEVICE_READS_BYTES, "all of it is charged");

/* ---- files ---- */

static gs_status refused(gs_cufile_error r, const char *path)
{
    return gs_fail(GS_EUNSUPPORTED, "%s: cuFile does not read it: %s (its error %d)", path, cufile_text(r.error),
                   r.error);
}

static gs_status open_file(const gs_cufile *f, const char *path, int *fd, gs_cu_handle *handle)
{
    if ((*fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC)) < 0)
        return errno == EINVAL ? gs_fail(GS_EUNSUPPORTED, "%s: its file system has no direct reads (O_DIRECT)", path)
                               : gs_fail_errno(errno, "%s: cannot open", path);
    gs_cufile_descr descr = {.type = GS_CUFILE_FD, .handle = {.fd = *fd}};
    const gs_cufile_error r = f->file_register(handle, &descr);
    if (r.error == 0)
        return GS_OK;
    (void)close(*fd);
    return refused(r, path);
}

static gs_status make_batch(const gs_cufile *f, gs_cu_handle *batch)
{
    const gs_cufile_error r = f->batch_make(batch, GS_CUDA_REQUESTS);
    return r.error == 0 ? GS_OK : gs_fail(GS_EUNSUPPORTED, "cuFile takes no batches of requests: %s (its error %d)",
                                          cufile_text(r.error), r.error);
}

gs_status gs_cuda_probe_reads(void *context, const char *path)
{
    gs_cuda *const c = context;
    const gs_cufile *f = NULL;
    gs_cu_handle handle = NULL, batch = NULL;
    int fd = -1;
    gs_status st;

    GS_TRY(gs_cuda_enter(c));
    GS_TRY(cufile_open(&f));
    if ((st = open_file(f, path, &fd, &handle)) == GS_OK) {
        if ((st = make_batch(f, &batch)) == GS_OK)
            f->batch_drop(batch);
        f->file_deregister(handle);
        (void)close(fd);
    }
    return st;
}

gs_status gs_cuda_add_file(void *context, const char *path, uint32_t *file)
{
    gs_cuda_reads *const k = ((gs_cuda *)context)->reads;

    GS_TRY(gs_cuda_enter(context));
    if (k->files == GS_CUDA_FILES)
        return gs_fail(GS_EUNSUPPORTED, "%s: a device reads at most %u files by itself", path, GS_CUDA_FILES);
    GS_TRY(open_file(k->f, path, &k->file[k->files].fd, &k->file[k->files].handle));
    *file = k->files++;
    return GS_OK;
}

/* ---- opening and closing ---- */

static gs_status take_marks(gs_cuda *c, gs_cuda_reads *k)
{
    GS_TRY(gs_cuda_check(c, c->d->stream_create_first(&k->stream, GS_CU_STREAM_NON_BLOCKING, GS_CU_FIRST),
                         "making a stream"));
    GS_TRY(gs_cuda_check(c, c->d->memory_alloc(&k->sums, SUMS_BYTES), "memory for reads of files"));
    if ((k->came = gs_alloc_pages(GS_BLOCK_BYTES)) == NULL)
        return gs_fail(GS_ENOMEM, "device cuda:%d: out of memory for reads of files", c->device);
    return gs_cuda_pin(c, k->came, GS_BLOCK_BYTES, GS_CU_HOST_PORTABLE, &k->pinned);
}

static gs_status take_slots(gs_cuda *c, gs_cuda_reads *k)
{
    for (uint32_t i = 0; i < GS_DEVICE_READS; i++) {
        GS_TRY(make_batch(k->f, &k->read[i].batch));
        GS_TRY(gs_cuda_check(c, c->d->event_create(&k->read[i].marked,
                                                   GS_CU_EVENT_BLOCKING | GS_CU_EVENT_DISABLE_TIMING),
                             "making an event"));
    }
    return GS_OK;
}

gs_status gs_cuda_open_reads(void *context, void *first, uint64_t bytes)
{
    gs_cuda *const c = context;
    gs_cuda_reads *k;
    gs_status st;

    gs_cuda_close_reads(c);
    GS_TRY(gs_cuda_enter(c));
    GS_NEED((k = gs_calloc(1, sizeof(*k))) != NULL, "device cuda:%d: out of memory for reads of files", c->device);
    if ((st = cufile_open(&k->f)) != GS_OK) {
        gs_free(k);
        return st;
    }
    c->reads = k;
    k->base = first;
    GS_TRY(take_marks(c, k));
    GS_TRY(take_slots(c, k));
    k->registered = k->f->memory_register(first, bytes, 0).error == 0;
    return GS_OK;
}

static void move_on(gs_cuda *c, gs_cuda_read *r, bool wait);

void gs_cuda_settle_reads(gs_cuda *c)
{
    for (uint32_t i = 0; c->reads != NULL && i < GS_DEVICE_READS; i++) {
        gs_cuda_read *const r = &c->reads->read[i];
        if (r->state == GS_CUDA_READ_READING)
            r->failure.st = GS_EIO; /* nobody wants its mark */
        while (r->state == GS_CUDA_READ_READING || r->state == GS_CUDA_READ_MARKING)
            move_on(c, r, true);
        r->state = GS_CUDA_READ_FREE;
    }
}

static void drop_slot(const gs_cuda *c, const gs_cuda_reads *k, gs_cuda_read *r)
{
    if (r->marked != NULL)
        c->d->event_destroy(r->marked);
    if (r->batch != NULL)
        k->f->batch_drop(r->batch);
}

void gs_cuda_close_reads(gs_cuda *c)
{
    gs_cuda_reads *const k = c->reads;
    char why[GS_ERROR_BYTES];

    if (k == NULL)
        return;
    snprintf(why, sizeof(why), "%s", gs_last_error());
    (void)gs_cuda_enter(c);
    gs_cuda_settle_reads(c);
    for (uint32_t i = 0; i < GS_DEVICE_READS; i++)
        drop_slot(c, k, &k->read[i]);
    if (k->registered)
        (void)k->f->memory_deregister(k->base);
    for (uint32_t i = 0; i < k->files; i++) {
        k->f->file_deregister(k->file[i].handle);
        (void)close(k->file[i].fd);
    }
    if (k->stream != NULL)
        c->d->stream_destroy(k->stream);
    if (k->sums != 0)
        c->d->memory_free(k->sums);
    if (k->pinned)
        c->d->host_unregister(k->came);
    gs_free_pages(k->came, GS_BLOCK_BYTES);
    gs_free(k);
    c->reads = NULL;
    (void)gs_fail(GS_EDEVICE, "%s", why);
}

/* ---- a read ---- */

static void fail(gs_cuda_read *r, gs_status st) { gs_failure_keep(&r->failure, st); }

/* Hands over what is left of its requests. Where that fails it is over. */
static void submit(gs_cuda *c, gs_cuda_read *r)
{
    r->left = r->requests;
    for (uint32_t i = 0; i < r->requests; i++)
        r->request[i].cookie = &r->request[i];
    const gs_cufile_error e = c->reads->f->batch_submit(r->batch, r->requests, r->request, 0);
    r->state = GS_CUDA_READ_READING;
    if (e.error == 0)
        return;
    fail(r, gs_fail(GS_EIO, "cuFile takes no request: %s (its error %d)", cufile_text(e.error), e.error));
    r->state = GS_CUDA_READ_OVER;
}

static uint32_t mark_blocks(const gs_cuda_read *r)
{
    return (uint32_t)GS_MIN(gs_div_up(r->want.bytes / sizeof(uint64_t), WORDS_OF_BLOCK), (uint64_t)GS_MARK_BLOCKS);
}

static gs_status ask_for_mark(gs_cuda *c, const gs_cuda_read *r)
{
    gs_cuda_reads *const k = c->reads;
    const uint64_t at = (uint64_t)(r - k->read) * GS_MARK_BLOCKS;
    const uint32_t blocks = mark_blocks(r);
    gs_mark_args args = {.from = r->want.to, .to = (gs_u64 *)k->sums + at, .words = r->want.bytes / sizeof(gs_u64)};
    void *list[] = {&args};
    GS_TRY(gs_cuda_check(c, c->d->launch(c->fixed[GS_CUDA_MARK], blocks, 1, 1, GS_BLOCK_LANES, 1, 1, GS_MARK_SHARED,
                                         k->stream, list, NULL), "kernel gs_mark"));
    GS_TRY(gs_cuda_check(c, c->d->copy_out(k->came + at, (gs_cu_memory)args.to, blocks * sizeof(uint64_t), k->stream),
                         "copying a mark"));
    return gs_cuda_check(c, c->d->event_record(r->marked, k->stream), "an event");
}

/* Notes what has come back. Of a short one the rest is left. */
static void take_event(gs_cuda_read *r, const gs_cufile_event *e)
{
    gs_cufile_request *const q = e->cookie;
    const ssize_t moved = (ssize_t)e->bytes;

    r->left--;
    if (e->status != GS_CUFILE_COMPLETE || moved < 0) {
        const int error = moved < 0 && moved > -INT32_MAX ? (int)-moved : 0;
        fail(r, error > 5000 || error == 0
                    ? gs_fail(GS_EIO, "cuFile's read failed: %s (its error %d)", cufile_text(error), error)
                    : gs_fail_errno(error, "cuFile's read failed"));
    } else if (moved == 0 || (size_t)moved > q->bytes) {
        fail(r, gs_fail(GS_EIO, "the file ends before byte %lld", (long long)q->file_offset + (long long)q->bytes));
    } else {
        q->file_offset += moved;
        q->base_offset += moved;
        q->bytes -= (size_t)moved;
    }
}

/* All requests have come back. */
static void end_batch(gs_cuda *c, gs_cuda_read *r)
{
    uint32_t rest = 0;
    gs_status st;

    if (r->failure.st != GS_OK) {
        r->state = GS_CUDA_READ_OVER;
        return;
    }
    for (uint32_t i = 0; i < r->requests; i++)
        if (r->request[i].bytes > 0)
            r->request[rest++] = r->request[i];
    r->requests = rest;
    if (rest > 0) {
        submit(c, r);
        return;
    }
    r->state = GS_CUDA_READ_MARKING;
    if ((st = ask_for_mark(c, r)) != GS_OK) {
        fail(r, st);
        r->state = GS_CUDA_READ_OVER;
    }
}

static void reap(gs_cuda *c, gs_cuda_read *r, bool wait)
{
    unsigned count = r->left;
    const gs_cufile_error e = c->reads->f->batch_status(r->batch, wait ? r->left : 0, &count, r->event, NULL);

    if (e.error != 0) {
        fail(r, gs_fail(GS_EIO, "cuFile lost its requests: %s (its error %d)", cufile_text(e.error), e.error));
        r->state = GS_CUDA_READ_OVER;
        return;
    }
    for (unsigned i = 0; i < count && i < GS_CUDA_REQUESTS && r->left > 0; i++)
        if (r->event[i].status >= GS_CUFILE_INVALID)
            take_event(r, &r->event[i]);
    if (r->left == 0)
        end_batch(c, r);
}

static void compare_mark(gs_cuda *c, gs_cuda_read *r, bool wait)
{
    const uint64_t *const came = c->reads->came + (uint64_t)(r - c->reads->read) * GS_MARK_BLOCKS;
    const gs_cu_result e = wait ? c->d->event_synchronize(r->marked) : c->d->event_query(r->marked);
    uint64_t mark = 0;

    if (e == GS_CU_NOT_READY)
        return;
    r->state = GS_CUDA_READ_OVER;
    if (e != 0) {
        fail(r, gs_cuda_check(c, e, "a mark"));
        return;
    }
    for (uint32_t b = 0; b < mark_blocks(r); b++)
        mark += came[b];
    if (mark != r->want.mark)
        fail(r, gs_fail(GS_EFORMAT, "these are not the bytes that matched their checksum when the run began"));
}

/* One step, if there is one; `wait`: until there is. */
static void move_on(gs_cuda *c, gs_cuda_read *r, bool wait)
{
    if (r->state == GS_CUDA_READ_READING)
        reap(c, r, wait);
    else if (r->state == GS_CUDA_READ_MARKING)
        compare_mark(c, r, wait);
}

/* It is over: the slot is free, and somebody is told. */
static gs_status tell(gs_cuda_read *r)
{
    r->state = GS_CUDA_READ_FREE;
    return gs_failure_tell(&r->failure);
}

gs_status gs_cuda_begin_read(void *context, const gs_device_read *want, uint64_t *number)
{
    gs_cuda *const c = context;
    gs_cuda_reads *const k = c->reads;
    gs_cuda_read *const r = &k->read[(k->numbers + 1) % GS_DEVICE_READS];
    const uint64_t each = gs_align_up(GS_MAX(gs_div_up(want->bytes, GS_CUDA_REQUESTS), REQUEST_BYTES), GS_BLOCK_BYTES);
    gs_status st = gs_cuda_enter(c);

    while (r->state == GS_CUDA_READ_READING || r->state == GS_CUDA_READ_MARKING)
        move_on(c, r, true);
    if (st != GS_OK || (r->state == GS_CUDA_READ_OVER && (st = tell(r)) != GS_OK))
        return st;
    r->number = *number = ++k->numbers;
    r->want = *want;
    r->failure.st = GS_OK;
    r->requests = 0;
    for (uint64_t at = 0; at < want->bytes; at += each)
        r->request[r->requests++] = (gs_cufile_request){
            .mode = GS_CUFILE_BATCH, .base = k->base, .file_offset = (off_t)(want->offset + at),
            .base_offset = (off_t)((char *)want->to - k->base + (ptrdiff_t)at), .bytes = GS_MIN(each, want->bytes - at),
            .file = k->file[want->file].handle, .opcode = GS_CUFILE_READ};
    submit(c, r);
    return r->state == GS_CUDA_READ_OVER ? tell(r) : GS_OK;
}

gs_status gs_cuda_poll_read(void *context, uint64_t number, bool wait, bool *done)
{
    gs_cuda *const c = context;
    gs_cuda_read *const r = &c->reads->read[number % GS_DEVICE_READS];

    GS_TRY(gs_cuda_enter(c));
    for (uint32_t i = 0; i < GS_DEVICE_READS; i++)
        move_on(c, &c->reads->read[i], false);
    while (wait && r->number == number && (r->state == GS_CUDA_READ_READING || r->state == GS_CUDA_READ_MARKING))
        move_on(c, r, true);
    *done = r->number != number || r->state == GS_CUDA_READ_FREE || r->state == GS_CUDA_READ_OVER;
    return *done && r->number == number && r->state == GS_CUDA_READ_OVER ? tell(r) : GS_OK;
}
