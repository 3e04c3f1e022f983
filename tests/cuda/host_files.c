#include "host_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host_memory.h"
#include "host_streams.h"

#define BLOCK 4096u
#define BATCH_MOST 128u
#define LOOKS 2u /* that find a request still under way */

enum { FAILED = 0x40 };
enum { NO_DRIVER = 5001, NO_BATCHES = 5002, NOT_SUPPORTED = 5008, BROKEN = 5030, NO_MEMORY = 5036 };

typedef struct batch {
    unsigned most, under_way, looks;
    gs_cu_handle stream; /* of the GPU that it was made for */
    struct request {
        gs_cufile_request want;
        ssize_t moved;
        bool bad;
    } request[BATCH_MOST];
} batch;

static unsigned long requests, looks, files_open, batches_open, opened;
static unsigned long long bytes_read;

static bool fault(const char *kind, unsigned long n)
{
    const char *const is = getenv("GS_HOST_CUFILE");
    const size_t length = strlen(kind);
    if (is == NULL || strncmp(is, kind, length) != 0 || (is[length] != '\0' && is[length] != ':'))
        return false;
    return is[length] == '\0' || strtoul(is + length + 1, NULL, 10) == n ||
           (strcmp(kind, "short") == 0 && n > strtoul(is + length + 1, NULL, 10));
}

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "host cuFile: %s\n", what);
    abort();
}

static gs_cufile_error answer(int error) { return (gs_cufile_error){error, 0}; }

/* ---- the driver, files and memory ---- */

static gs_cufile_error driver_open(void)
{
    if (fault("driver", 0))
        return answer(NO_DRIVER);
    need(opened++ == 0, "the driver is opened twice");
    return answer(0);
}

static void __attribute__((destructor)) write_counts(void)
{
    const char *const path = getenv("GS_HOST_CUFILE_COUNTS");
    need(files_open == 0 && batches_open == 0, "the program ends with files or batches open");
    FILE *const out = path == NULL ? NULL : fopen(path, "w");
    if (out == NULL)
        return;
    fprintf(out, "{\"requests\": %lu, \"bytes\": %llu}\n", requests, bytes_read);
    fclose(out);
}

static gs_cufile_error file_register(gs_cu_handle *file, gs_cufile_descr *descr)
{
    need(opened == 1 && descr->type == GS_CUFILE_FD && descr->handle.fd >= 0, "a file that is none");
    if (fault("file", 0))
        return answer(NOT_SUPPORTED);
    files_open++;
    *file = (gs_cu_handle)(uintptr_t)(descr->handle.fd + 1);
    return answer(0);
}

static void file_deregister(gs_cu_handle file)
{
    need(file != NULL && files_open-- > 0, "a file that was not registered");
}

static gs_cufile_error memory_register(const void *base, size_t bytes, int flags)
{
    host_gpu_lock();
    host_need_device((gs_cu_memory)base, bytes, host_current_device(), "registering memory for cuFile");
    host_gpu_unlock();
    need(flags == 0 && (uintptr_t)base % BLOCK == 0, "memory that begins at no page");
    return answer(fault("memory", 0) ? NO_MEMORY : 0);
}

static gs_cufile_error memory_deregister(const void *base)
{
    need(base != NULL && !fault("memory", 0), "memory that was not registered");
    return answer(0);
}

/* ---- batches ---- */

static gs_cufile_error batch_make(gs_cu_handle *handle, unsigned most)
{
    if (fault("batch", 0))
        return answer(NO_BATCHES);
    batch *const b = calloc(1, sizeof(*b));
    need(b != NULL && most <= BATCH_MOST && opened == 1, "a batch that is too large");
    b->most = most;
    host_gpu_lock();
    need(host_stream_create(&b->stream, 0) == 0, "no GPU is the thread's");
    host_gpu_unlock();
    batches_open++;
    *handle = b;
    return answer(0);
}

static void batch_drop(gs_cu_handle handle)
{
    batch *const b = handle;
    need(b->under_way == 0, "a batch is dropped with requests under way");
    host_gpu_lock();
    host_stream_destroy(b->stream);
    host_gpu_unlock();
    batches_open--;
    free(b);
}

/* Into the GPU's memory, which is open while work runs. */
static void bring(const host_work *w)
{
    struct request *const r = *(struct request *const *)w->more;
    const gs_cufile_request *const q = &r->want;
    char *const to = (char *)q->base + q->base_offset;
    char *const page = aligned_alloc(BLOCK, q->bytes);
    const unsigned long n = ++requests;
    size_t bytes = q->bytes;

    need(page != NULL, "out of memory");
    if (fault("short", n) && bytes > BLOCK)
        bytes = bytes / BLOCK / 2 * BLOCK;
    r->moved = fault("end", n) ? 0 : pread((int)(uintptr_t)q->file - 1, page, bytes, q->file_offset);
    r->bad = fault("error", n) || r->moved < 0;
    if (fault("bits", n))
        page[bytes / 2] ^= 4;
    if (!r->bad && r->moved > 0) {
        host_streams_access(to, (size_t)r->moved, true);
        memcpy(to, page, (size_t)r->moved);
        bytes_read += (unsigned long long)r->moved;
    }
    free(page);
}

static gs_cufile_error batch_submit(gs_cu_handle handle, unsigned count, gs_cufile_request *request, unsigned flags)
{
    batch *const b = handle;
    need(flags == 0 && count > 0 && count <= b->most && b->under_way == 0, "a batch of too many requests");
    host_gpu_lock();
    for (unsigned i = 0; i < count; i++) {
        const gs_cufile_request *const q = &request[i];
        const struct request **const which = malloc(sizeof(*which));
        need(which != NULL && q->mode == GS_CUFILE_BATCH && q->opcode == GS_CUFILE_READ, "a request that is none");
        need(q->file_offset % BLOCK == 0 && q->bytes % BLOCK == 0 && q->bytes > 0 &&
                 ((uintptr_t)q->base + (uintptr_t)q->base_offset) % BLOCK == 0,
             "a request that is not of whole pages");
        host_need_device((gs_cu_memory)q->base + (gs_cu_memory)q->base_offset, q->bytes, host_current_device(),
                         "a read by cuFile");
        b->request[i] = (struct request){.want = *q};
        *which = &b->request[i];
        need(host_streams_submit(b->stream, &(host_work){.run = bring, .what = "cuFile's read", .more = which}) == 0,
             "no stream");
    }
    host_gpu_unlock();
    b->under_way = count;
    b->looks = 0;
    return answer(0);
}

/* The caller learns of all at once, or of none. */
static gs_cufile_error batch_status(gs_cu_handle handle, unsigned least, unsigned *count, gs_cufile_event *event,
                                    struct timespec *timeout)
{
    batch *const b = handle;
    const unsigned n = b->under_way;
    need(timeout == NULL && least <= n && *count >= n && n > 0, "a look at a batch that has nothing under way");
    host_gpu_lock();
    const bool lost = fault("lost", ++looks);
    if (least > 0 || lost || ++b->looks > LOOKS)
        host_stream_synchronize(b->stream);
    host_gpu_unlock();
    *count = 0;
    if (lost)
        b->under_way = 0;
    if (lost)
        return answer(BROKEN);
    if (least == 0 && b->looks <= LOOKS)
        return answer(0);
    for (unsigned i = 0; i < n; i++)
        event[(*count)++] = (gs_cufile_event){
            .cookie = b->request[n - 1 - i].want.cookie, /* in another order */
            .status = b->request[n - 1 - i].bad ? FAILED : GS_CUFILE_COMPLETE,
            .bytes = b->request[n - 1 - i].bad ? (size_t)-EIO : (size_t)b->request[n - 1 - i].moved};
    b->under_way = 0;
    return answer(0);
}

const gs_cufile *host_files(void)
{
    static const gs_cufile table = {
        .driver_open = driver_open,
        .file_register = file_register,
        .file_deregister = file_deregister,
        .memory_register = memory_register,
        .memory_deregister = memory_deregister,
        .batch_make = batch_make,
        .batch_submit = batch_submit,
        .batch_status = batch_status,
        .batch_drop = batch_drop,
    };
    return fault("none", 0) ? NULL : &table;
}
