#include "host_memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "host_compiler.h"
#include "host_streams.h"

#define BLOCKS 64u /* of memory, at a time */
#define RANGES 32u /* of pinned host memory */
#define ALIGNMENT 256u /* of a block: what CUDA promises, and no more */

enum { HOST_ALREADY_REGISTERED = 712, HOST_NOT_REGISTERED = 713 };

host_gpu_counts host_counts;

static struct {
    uint64_t taken[HOST_GPUS];
    struct {
        void *at;
        size_t bytes;
        int device;
    } memory[BLOCKS];
    struct {
        char *at;
        size_t bytes;
        bool mapped; /* kernels reach it */
    } pinned[RANGES];
    unsigned retained[HOST_GPUS];
    unsigned opened;          /* GPUs whose memory can be read and written, one bit each */
    bool reaches[HOST_GPUS][HOST_GPUS];
    char context[HOST_GPUS]; /* addresses are handles */
} gpu;

static _Thread_local int current = -1;

int host_current_device(void) { return current >= 0 && gpu.retained[current] > 0 ? current : -1; }

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *const given = getenv(variable);
    return given != NULL ? strtoull(given, NULL, 10) : otherwise;
}

static uint64_t memory_bytes(void) { return number_of("GS_HOST_GPU_MEMORY", 1ull << 32); }

static int gpus(void)
{
    const char *const n = getenv("GS_HOST_GPUS");
    const int count = n == NULL ? 1 : atoi(n);
    return count < HOST_GPUS ? count : HOST_GPUS;
}

/* Of a context; -1: it is none. */
static int device_of(gs_cu_handle context)
{
    const char *const c = context;
    return c >= gpu.context && c < gpu.context + HOST_GPUS ? (int)(c - gpu.context) : -1;
}

/* ---- memory ---- */

/* A block lies at the end of whole huge pages: it is locked and unlocked again and again, which costs by the page. */
#define HUGE_PAGE ((size_t)2 << 20)

static size_t huge(size_t bytes) { return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE; }

static void *map(size_t bytes)
{
    char *const at =
        mmap(NULL, huge(bytes) + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    char *const first = (char *)huge((uintptr_t)at);
    if (first > at)
        munmap(at, (size_t)(first - at));
    if (at + HUGE_PAGE > first)
        munmap(first + huge(bytes), (size_t)(at + HUGE_PAGE - first));
    (void)madvise(first, huge(bytes), MADV_HUGEPAGE);
    return first + huge(bytes) - bytes;
}

static void protect(void *block, size_t bytes, int how)
{
    mprotect((char *)block + bytes - huge(bytes), huge(bytes), how);
}

void host_memory_open(unsigned which)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        const unsigned bit = 1u << gpu.memory[i].device;
        if (gpu.memory[i].at != NULL && (which & bit) != (gpu.opened & bit))
            protect(gpu.memory[i].at, gpu.memory[i].bytes, (which & bit) != 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
    gpu.opened = which;
}

unsigned host_memory_reach(int device)
{
    unsigned which = 1u << device;
    for (unsigned d = 0; d < HOST_GPUS; d++)
        which |= gpu.reaches[device][d] ? 1u << d : 0;
    return which;
}

/* Number of the range that has all of it; RANGES: none. */
static unsigned range_of(const void *p, size_t bytes)
{
    const char *const first = p;
    for (unsigned i = 0; i < RANGES; i++)
        if (gpu.pinned[i].at != NULL && first >= gpu.pinned[i].at &&
            first + bytes <= gpu.pinned[i].at + gpu.pinned[i].bytes)
            return i;
    return RANGES;
}

static bool is_pinned(const void *p, size_t bytes) { return range_of(p, bytes) < RANGES; }

/* GPU 0 is said to have what nobody took of a GPU and nobody pinned. */
static bool is_others(gs_cu_memory p, size_t bytes, int device)
{
    if (device != 0 || p == 0 || getenv("GS_HOST_GPU_HAS_ALL") == NULL || is_pinned((const void *)p, bytes))
        return false;
    for (unsigned i = 0; i < BLOCKS; i++) {
        const gs_cu_memory at = (gs_cu_memory)gpu.memory[i].at;
        if (at != 0 && p + bytes > at && p < at + gpu.memory[i].bytes)
            return false;
    }
    return true;
}

static bool is_device(gs_cu_memory p, size_t bytes, int device)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        const gs_cu_memory at = (gs_cu_memory)gpu.memory[i].at;
        if (at != 0 && gpu.memory[i].device == device && p >= at && p + bytes <= at + gpu.memory[i].bytes)
            return true;
    }
    return is_others(p, bytes, device);
}

void host_need_device(gs_cu_memory p, size_t bytes, int device, const char *what)
{
    if (is_device(p, bytes, device))
        return;
    fprintf(stderr, "host GPU: %s: %zu bytes at %p are not those of GPU %d\n", what, bytes, (void *)p, device);
    abort();
}

static gs_cu_result memory_alloc(gs_cu_memory *p, size_t bytes)
{
    const size_t whole = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    const int device = host_current_device();
    unsigned i = 0;
    if (device < 0)
        return HOST_INVALID_CONTEXT;
    while (i < BLOCKS && gpu.memory[i].at != NULL)
        i++;
    if (i == BLOCKS || gpu.taken[device] + whole > memory_bytes())
        return GS_CU_OUT_OF_MEMORY;
    if ((gpu.memory[i].at = map(whole)) == NULL)
        return GS_CU_OUT_OF_MEMORY;
    memset(gpu.memory[i].at, 0xff, whole); /* NaN: nothing may be taken for cleared */
    protect(gpu.memory[i].at, whole, PROT_NONE);
    gpu.memory[i].bytes = whole;
    gpu.memory[i].device = device;
    gpu.taken[device] += whole;
    host_streams_memory(gpu.memory[i].at, whole);
    host_counts.allocations++;
    *p = (gs_cu_memory)gpu.memory[i].at;
    return 0;
}

/* CUDA waits for the GPU whose memory it is; that others are done with it is the caller's to know. */
static gs_cu_result memory_free(gs_cu_memory p)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if ((gs_cu_memory)gpu.memory[i].at == p && p != 0)
            host_streams_need_idle(gpu.memory[i].device, "memory is given back");
    host_streams_drain();
    for (unsigned i = 0; i < BLOCKS; i++)
        if ((gs_cu_memory)gpu.memory[i].at == p && p != 0) {
            host_streams_memory(gpu.memory[i].at, 0);
            munmap((char *)gpu.memory[i].at + gpu.memory[i].bytes - huge(gpu.memory[i].bytes),
                   huge(gpu.memory[i].bytes));
            gpu.taken[gpu.memory[i].device] -= gpu.memory[i].bytes;
            gpu.memory[i].at = NULL;
            return 0;
        }
    return 1;
}

static gs_cu_result memory_info(size_t *free_bytes, size_t *total)
{
    const int device = host_current_device();
    if (device < 0)
        return HOST_INVALID_CONTEXT;
    *free_bytes = memory_bytes() - gpu.taken[device];
    *total = memory_bytes();
    return 0;
}

bool host_is_mapped(const void *p, size_t bytes)
{
    const unsigned i = range_of(p, bytes);
    return i < RANGES && gpu.pinned[i].mapped;
}

/* Copies are checked when they are asked for, and made when the stream comes to them. */

static void run_copy_in(const host_work *w)
{
    host_streams_host_access(w->from, w->bytes, false);
    host_streams_access(w->to, w->bytes, true);
    memcpy(w->to, w->from, w->bytes);
}

static gs_cu_result copy_in(gs_cu_memory to, const void *from, size_t bytes, gs_cu_handle stream)
{
    host_need_device(to, bytes, host_stream_device(stream), "a copy in");
    host_need_whole(from, bytes);
    host_counts.bytes_in += bytes;
    host_counts.pinned_in += is_pinned(from, bytes) ? bytes : 0;
    return host_streams_submit(
        stream, &(host_work){.run = run_copy_in, .what = "copy in", .to = (void *)to, .from = from, .bytes = bytes});
}

static void run_copy_out(const host_work *w)
{
    host_streams_access(w->from, w->bytes, false);
    host_streams_host_access(w->to, w->bytes, true);
    memcpy(w->to, w->from, w->bytes);
}

static gs_cu_result copy_out(void *to, gs_cu_memory from, size_t bytes, gs_cu_handle stream)
{
    host_need_device(from, bytes, host_stream_device(stream), "a copy out");
    host_need_whole(to, bytes);
    host_counts.bytes_out += bytes;
    host_counts.pinned_out += is_pinned(to, bytes) ? bytes : 0;
    return host_streams_submit(
        stream,
        &(host_work){.run = run_copy_out, .what = "copy out", .to = to, .from = (const void *)from, .bytes = bytes});
}

static void run_copy_within(const host_work *w)
{
    host_streams_access(w->from, w->bytes, false);
    host_streams_access(w->to, w->bytes, true);
    memmove(w->to, w->from, w->bytes);
}

static gs_cu_result copy_within(gs_cu_memory to, gs_cu_memory from, size_t bytes, gs_cu_handle stream)
{
    host_need_device(to, bytes, host_stream_device(stream), "a copy");
    host_need_device(from, bytes, host_stream_device(stream), "a copy");
    return host_streams_submit(
        stream,
        &(host_work){
            .run = run_copy_within, .what = "copy", .to = (void *)to, .from = (const void *)from, .bytes = bytes});
}

/* Between two GPUs, both of whose memory it touches. */
static void run_copy_peer(const host_work *w)
{
    host_memory_open(1u << w->device | 1u << w->value);
    run_copy_within(w);
}

static gs_cu_result copy_peer(gs_cu_memory to, gs_cu_handle to_context, gs_cu_memory from, gs_cu_handle from_context,
                              size_t bytes, gs_cu_handle stream)
{
    const int at = device_of(to_context), peer = device_of(from_context);
    if (at < 0 || peer < 0 || at == peer || host_stream_device(stream) != at || at != host_current_device())
        return HOST_INVALID_CONTEXT;
    if (!gpu.reaches[at][peer]) {
        fprintf(stderr, "host GPU: a copy from GPU %d to GPU %d, which does not reach it\n", peer, at);
        abort();
    }
    host_need_device(to, bytes, at, "a copy between GPUs");
    host_need_device(from, bytes, peer, "a copy between GPUs");
    host_counts.bytes_between += bytes;
    return host_streams_submit(stream, &(host_work){.run = run_copy_peer, .what = "copy between GPUs", .to = (void *)to,
                                                    .from = (const void *)from, .bytes = bytes, .value = peer});
}

static void run_fill(const host_work *w)
{
    host_streams_access(w->to, w->bytes, true);
    memset(w->to, w->value, w->bytes);
}

static gs_cu_result fill(gs_cu_memory p, unsigned char value, size_t bytes, gs_cu_handle stream)
{
    host_need_device(p, bytes, host_stream_device(stream), "a fill");
    return host_streams_submit(
        stream, &(host_work){.run = run_fill, .what = "fill", .to = (void *)p, .bytes = bytes, .value = value});
}

/* Once, whichever GPU asks. */
static gs_cu_result host_register(void *p, size_t bytes, unsigned flags)
{
    unsigned free_one = RANGES;
    if (host_current_device() < 0)
        return HOST_INVALID_CONTEXT;
    if (p == NULL || bytes == 0 || (flags & ~(unsigned)(GS_CU_HOST_PORTABLE | GS_CU_HOST_MAPPED)) != 0)
        return 1;
    for (unsigned i = 0; i < RANGES; i++) {
        if (gpu.pinned[i].at == NULL)
            free_one = i;
        else if ((char *)p < gpu.pinned[i].at + gpu.pinned[i].bytes && gpu.pinned[i].at < (char *)p + bytes)
            return HOST_ALREADY_REGISTERED;
    }
    if (free_one == RANGES)
        return 1;
    gpu.pinned[free_one].at = p;
    gpu.pinned[free_one].bytes = bytes;
    gpu.pinned[free_one].mapped = (flags & GS_CU_HOST_MAPPED) != 0;
    return 0;
}

/* Kernels find it where the host does. */
static gs_cu_result host_address(gs_cu_memory *p, void *host, unsigned flags)
{
    if (host_current_device() < 0)
        return HOST_INVALID_CONTEXT;
    if (flags != 0 || !host_is_mapped(host, 1))
        return 1;
    *p = (gs_cu_memory)host;
    return 0;
}

void host_need_whole(const void *p, size_t bytes)
{
    const char *const first = p;
    for (unsigned i = 0; i < RANGES; i++) {
        const char *const at = gpu.pinned[i].at, *const end = at + gpu.pinned[i].bytes;
        if (at != NULL && first < end && at < first + bytes && (first < at || first + bytes > end)) {
            fprintf(stderr, "host GPU: a copy of %zu bytes at %p, which are pinned in part\n", bytes, p);
            abort();
        }
    }
}

/* CUDA does not say that it waits for anybody. */
static gs_cu_result host_unregister(void *p)
{
    host_streams_need_idle(-1, "host memory is unpinned");
    for (unsigned i = 0; i < RANGES; i++)
        if (p != NULL && gpu.pinned[i].at == p) {
            gpu.pinned[i].at = NULL;
            return 0;
        }
    return HOST_NOT_REGISTERED;
}

/* ---- devices, streams, events: numbers that are there ---- */

static gs_cu_result init(unsigned flags) { return (gs_cu_result)flags; }
static gs_cu_result version(int *v) { return *v = host_cuda_release(), 0; }
static gs_cu_result device_count(int *n) { return *n = gpus(), 0; }
static gs_cu_result device_get(int *device, int ordinal)
{
    return *device = ordinal, ordinal < gpus() ? 0 : GS_CU_INVALID_DEVICE;
}

static const struct {
    gs_cu_result r;
    const char *name, *text;
} errors[] = {
    {GS_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these two devices"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static gs_cu_result error_name(gs_cu_result r, const char **name)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].r == r)
            return *name = errors[i].name, 0;
    return 1;
}

static gs_cu_result error_text(gs_cu_result r, const char **text)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].r == r)
            return *text = errors[i].text, 0;
    return 1;
}

static gs_cu_result context_get(gs_cu_handle *context)
{
    *context = current < 0 ? NULL : &gpu.context[current];
    return 0;
}

/* Of memory that is the host's alone CUDA knows nothing. */
static gs_cu_result memory_attribute(void *value, int attribute, gs_cu_memory p)
{
    for (int d = 0; d < HOST_GPUS; d++)
        if (is_device(p, 1, d)) {
            const int kind = GS_CU_KIND_DEVICE;
            memcpy(value, attribute == GS_CU_MEMORY_KIND ? &kind : &d, sizeof(int));
            return 0;
        }
    return 1;
}

static gs_cu_result device_name(char *name, int bytes, int device)
{
    (void)device;
    snprintf(name, (size_t)bytes, "host");
    return 0;
}

static gs_cu_result device_attribute(int *value, int attribute, int device)
{
    const char *const given = getenv("GS_HOST_GPU_PROCESSORS");
    const int processors = given != NULL ? atoi(given) : 1;
    (void)device;
    if (getenv("GS_HOST_GPU_SPEED") != NULL && attribute != GS_CU_MAJOR && attribute != GS_CU_PROCESSORS)
        return *value = 0, 0;
    switch (attribute) { /* a slice of an H200, which has 132 processors and a bus of 6144 bits */
    case GS_CU_MAJOR:
        *value = getenv("GS_HOST_GPU_CAPABILITY") != NULL ? atoi(getenv("GS_HOST_GPU_CAPABILITY")) : 9;
        break;
    case GS_CU_CLOCK: *value = 1980000; break;
    case GS_CU_MEMORY_CLOCK: *value = 3201000; break;
    case GS_CU_MEMORY_BITS: *value = 6144 * processors / 132; break;
    case GS_CU_PROCESSORS: *value = processors; break;
    default: *value = 0;
    }
    return 0;
}

/* As a driver does, it keeps them. */
static void hold_host_memory(void)
{
    static bool holds;
    const uint64_t bytes = number_of("GS_HOST_GPU_RESIDENT", 0);
    if (holds || bytes == 0)
        return;
    holds = true;
    void *const at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED)
        memset(at, 1, bytes);
}

static gs_cu_result context_retain(gs_cu_handle *context, int device)
{
    if (device < 0 || device >= gpus())
        return GS_CU_INVALID_DEVICE;
    hold_host_memory();
    *context = &gpu.context[device];
    gpu.retained[device]++;
    return 0;
}

/* With the last one goes all that the context has: by then it should be nothing. */
static gs_cu_result context_release(int device)
{
    if (device < 0 || device >= HOST_GPUS || gpu.retained[device] == 0)
        return HOST_INVALID_CONTEXT;
    if (--gpu.retained[device] == 0 && (gpu.taken[device] != 0 || host_streams_of(device) != 0)) {
        fprintf(stderr, "host GPU: the context of GPU %d ends with %llu bytes and %u streams\n", device,
                (unsigned long long)gpu.taken[device], host_streams_of(device));
        abort();
    }
    for (int other = 0; gpu.retained[device] == 0 && other < HOST_GPUS; other++)
        gpu.reaches[device][other] = gpu.reaches[other][device] = false;
    return 0;
}

static gs_cu_result context_set(gs_cu_handle context)
{
    current = device_of(context);
    if (current >= 0 && gpu.retained[current] == 0)
        current = -1;
    return current < 0 ? HOST_INVALID_CONTEXT : 0;
}

static gs_cu_result device_bus(char *text, int bytes, int device)
{
    const char *at = getenv("GS_HOST_GPU_BUS");
    for (int i = 0; i < device && at != NULL; i++)
        at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL;
    if (at != NULL)
        snprintf(text, (size_t)bytes, "%.*s", (int)strcspn(at, ","), at);
    else
        snprintf(text, (size_t)bytes, "0000:%02X:00.0", 0x10 + (unsigned)device);
    return 0;
}

static gs_cu_result peer_can(int *can, int device, int peer)
{
    const char *const peers = getenv("GS_HOST_GPU_PEERS");
    *can = device != peer && (peers == NULL || strcmp(peers, "none") != 0);
    return 0;
}

static gs_cu_result peer_attribute(int *value, int attribute, int device, int peer)
{
    const char *const peers = getenv("GS_HOST_GPU_PEERS");
    const int linked = peers != NULL && strcmp(peers, "linked") == 0;
    int can = 0;

    if (device == peer)
        return GS_CU_INVALID_DEVICE;
    (void)peer_can(&can, device, peer);
    *value = attribute == GS_CU_PEER_ACCESS ? can : attribute == GS_CU_PEER_ATOMICS ? linked : !linked;
    return 0;
}

static gs_cu_result peer_enable(gs_cu_handle peer, unsigned flags)
{
    const int to = host_current_device(), from = device_of(peer);
    int can = 0;
    if (to < 0 || from < 0 || flags != 0 || peer_can(&can, to, from) != 0 || !can)
        return 217;
    if (gpu.reaches[to][from])
        return GS_CU_PEER_ALREADY;
    gpu.reaches[to][from] = true;
    return 0;
}

void host_memory_fill(gs_cuda_driver *table)
{
    table->init = init;
    table->version = version;
    table->error_name = error_name;
    table->error_text = error_text;
    table->device_count = device_count;
    table->device_get = device_get;
    table->device_name = device_name;
    table->device_attribute = device_attribute;
    table->device_bus = device_bus;
    table->peer_can = peer_can;
    table->peer_attribute = peer_attribute;
    table->peer_enable = peer_enable;
    table->context_retain = context_retain;
    table->context_release = context_release;
    table->context_set = context_set;
    table->context_get = context_get;
    table->memory_attribute = memory_attribute;
    table->memory_info = memory_info;
    table->memory_alloc = memory_alloc;
    table->memory_free = memory_free;
    table->host_register = host_register;
    table->host_address = host_address;
    table->host_unregister = host_unregister;
    table->copy_in = copy_in;
    table->copy_out = copy_out;
    table->copy_within = copy_within;
    table->copy_peer = copy_peer;
    table->fill = fill;
}


host_gpu_counts host_gpu_take_counts(void)
{
    const host_gpu_counts counts = host_counts;
    memset(&host_counts, 0, sizeof(host_counts));
    return counts;
}
