/* Work under way: launches, numbered, in the stream `compute`, and copies in those beside it. */
#include "cuda/streams.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/size.h"
#include "cuda/cuda_device.h"
#include "cuda/gpu_links.h"

/* ---- calls of the driver ---- */

/* CUresult after which the context is of no use, by what ended it (cuda.h has their names). */
static bool is_kernel_failure(gs_cu_result r) { return r == 700 || r == 702 || r == 710 || (r >= 714 && r <= 719); }
static bool is_lost(gs_cu_result r) { return r == 46 || r == 214 || r == 220 || r == 226 || r == 709 || r == 999; }

gs_status gs_cuda_check(const gs_cuda *c, gs_cu_result r, const char *what)
{
    const char *name = NULL, *text = NULL;
    if (r == 0)
        return GS_OK;
    if (c->d->error_name(r, &name) != 0 || name == NULL)
        name = "unknown error";
    if (c->d->error_text(r, &text) != 0 || text == NULL)
        text = "";
    if (r == GS_CU_OUT_OF_MEMORY)
        return gs_fail(GS_ENOMEM, "device cuda:%d: %s: the GPU is out of memory (%s); give less .device_memory",
                       c->device, what, name);
    if (is_kernel_failure(r)) /* kernels are not waited for, so others may hear of it first */
        return gs_fail(GS_EDEVICE, "device cuda:%d: a kernel failed, at the latest at %s: %s (%s)", c->device, what,
                       text, name);
    if (is_lost(r))
        return gs_fail(GS_EDEVICE, "device cuda:%d: the GPU is lost, at %s: %s (%s); the kernel's log may say why",
                       c->device, what, text, name);
    return gs_fail(GS_EDEVICE, "device cuda:%d: %s: %s (%s)", c->device, what, text, name);
}

/* Errors of calls that the system may refuse: locked memory is bounded (RLIMIT_MEMLOCK, containers), not all can be
 * pinned (a call of the system failed: 304), and what a library of the process has pinned before us stays so (712).
 * Where nothing is known but that it failed (999), the GPU may be lost: then it does not answer, either. */
static bool may_refuse(const gs_cuda *c, gs_cu_result r)
{
    size_t unused = 0, total = 0;
    if (r == 999)
        return c->d->memory_info(&unused, &total) == 0;
    return r == 1 || r == GS_CU_OUT_OF_MEMORY || r == 304 || r == 712 || r == 800 || r == 801;
}

gs_status gs_cuda_pin(gs_cuda *c, void *memory, uint64_t bytes, unsigned flags, bool *pinned)
{
    const gs_cu_result r = c->d->host_register(memory, bytes, flags);
    const char *name = NULL;
    char size[32];
    *pinned = r == 0;
    if (r == 0 || !may_refuse(c, r))
        return gs_cuda_check(c, r, "pinning host memory");
    if (c->d->error_name(r, &name) != 0 || name == NULL)
        name = "unknown error";
    snprintf(c->unpinned, sizeof(c->unpinned),
             "device cuda:%d: %s of host memory cannot be pinned (%s; see ulimit -l): copies are slower", c->device,
             gs_size_format(size, sizeof(size), bytes), name);
    return GS_OK;
}

/* The context that this thread's calls are about, NULL: not known; and the one of before it came, which may be another
 * library's. A device that closes leaves nothing behind. */
static _Thread_local gs_cu_handle current, former;
static _Thread_local bool came;

static void note_former(const gs_cuda *c)
{
    if (!came && c->d->context_get(&former) != 0)
        former = NULL;
    came = true;
}

gs_status gs_cuda_enter(const gs_cuda *c)
{
    if (current == c->context)
        return GS_OK;
    note_former(c);
    const gs_status st = gs_cuda_check(c, c->d->context_set(c->context), "turning to the GPU");
    current = st == GS_OK ? c->context : NULL;
    return st;
}

void gs_cuda_left(void) { current = NULL; }

gs_status gs_cuda_come(const gs_cuda *c)
{
    came = false;
    gs_cuda_left();
    return gs_cuda_enter(c);
}

void gs_cuda_come_last(const gs_cuda *c)
{
    came = false;
    note_former(c);
    current = c->context;
    (void)c->d->context_set(c->context);
}

void gs_cuda_aside(const gs_cuda *c)
{
    if (came)
        (void)c->d->context_set(former); /* which may be gone, as none is */
    came = false;
    gs_cuda_left();
}

/* ---- launches ---- */

gs_status gs_cuda_make_streams(gs_cuda *c)
{
    gs_cuda_streams *const s = &c->streams;
    gs_cu_handle *const stream[] = {&s->in, &s->compute, &s->out};
    for (size_t i = 0; i < GS_ARRAY_LEN(stream); i++)
        GS_TRY(gs_cuda_check(c, c->d->stream_create(stream[i], GS_CU_STREAM_NON_BLOCKING), "making a stream"));
    for (uint32_t i = 0; i < GS_CUDA_FLIGHT; i++)
        GS_TRY(gs_cuda_check(c, c->d->event_create(&s->finished[i], GS_CU_EVENT_DISABLE_TIMING), "making an event"));
    return gs_cuda_check(c, c->d->event_create(&s->between, GS_CU_EVENT_DISABLE_TIMING), "making an event");
}

void gs_cuda_drop_streams(gs_cuda *c)
{
    gs_cuda_streams *const s = &c->streams;
    gs_cu_handle *const stream[] = {&s->in, &s->compute, &s->out};
    for (uint32_t i = 0; i < GS_CUDA_FLIGHT; i++) {
        if (s->finished[i] != NULL)
            c->d->event_destroy(s->finished[i]);
        if (s->begun[i] != NULL)
            c->d->event_destroy(s->begun[i]);
    }
    if (s->origin != NULL)
        c->d->event_destroy(s->origin);
    if (s->between != NULL)
        c->d->event_destroy(s->between);
    for (size_t k = 0; k < GS_ARRAY_LEN(stream); k++)
        if (*stream[k] != NULL)
            c->d->stream_destroy(*stream[k]);
}

/* ---- beside another library ---- */

/* What `stream` is told from now on comes behind what `of` was told so far. */
static gs_status go_behind(const gs_cuda *c, gs_cu_handle stream, gs_cu_handle of)
{
    GS_TRY(gs_cuda_check(c, c->d->event_record(c->streams.between, of), "an event of a stream"));
    return gs_cuda_check(c, c->d->stream_wait(stream, c->streams.between, 0), "the caller's stream");
}

gs_status gs_cuda_follow(void *context, void *stream)
{
    const gs_cuda *const c = context;
    return go_behind(c, c->streams.compute, stream);
}

gs_status gs_cuda_lead(void *context, void *stream)
{
    const gs_cuda *const c = context;
    return go_behind(c, stream, c->streams.compute);
}

gs_status gs_cuda_step_in(void *context) { return gs_cuda_come(context); }
void gs_cuda_step_aside(void *context) { gs_cuda_aside(context); }

/* The driver knows nothing of memory that is the host's alone. */
bool gs_cuda_has(const void *context, const void *memory)
{
    const gs_cuda *const c = context;
    unsigned kind = 0;
    int gpu = -1;
    return c->d->memory_attribute(&kind, GS_CU_MEMORY_KIND, (gs_cu_memory)memory) == 0 && kind == GS_CU_KIND_DEVICE &&
           c->d->memory_attribute(&gpu, GS_CU_MEMORY_GPU, (gs_cu_memory)memory) == 0 && gpu == c->device;
}

/* ---- times ---- */

/* How often two clocks are read one after the other, and how near that should be, in seconds. */
#define CLOCK_TRIES 8
#define CLOCKS_APART 50e-6

/* A thread that is stopped in between looks at its clock too late, and is to look again. */
static gs_status compare_clocks(gs_cuda *c)
{
    gs_cuda_streams *const s = &c->streams;
    double begin = 0;

    for (int k = 0; k < CLOCK_TRIES && (k == 0 || s->origin_now - begin > CLOCKS_APART); k++) {
        begin = gs_now();
        GS_TRY(gs_cuda_check(c, c->d->event_record(s->origin, s->compute), "an event"));
        GS_TRY(gs_cuda_check(c, c->d->event_synchronize(s->origin), "an event"));
        s->origin_now = gs_now();
    }
    return GS_OK;
}

gs_status gs_cuda_time_launches(void *context)
{
    gs_cuda *const c = context;
    gs_cuda_streams *const s = &c->streams;
    GS_TRY(s->origin == NULL ? gs_cuda_synchronize(c) : gs_cuda_enter(c));
    for (uint32_t i = 0; i < GS_CUDA_FLIGHT && s->origin == NULL; i++) {
        c->d->event_destroy(s->finished[i]); /* which keeps no time */
        s->finished[i] = NULL;
        GS_TRY(gs_cuda_check(c, c->d->event_create(&s->finished[i], 0), "making an event"));
        GS_TRY(gs_cuda_check(c, c->d->event_create(&s->begun[i], 0), "making an event"));
    }
    if (s->origin == NULL)
        GS_TRY(gs_cuda_check(c, c->d->event_create(&s->origin, 0), "making an event"));
    return compare_clocks(c);
}

/* Seconds are floats of milliseconds: a launch's length is asked for by itself, as its begin may be far from the
 * origin. */
void gs_cuda_note_done(gs_cuda *c)
{
    gs_cuda_streams *const s = &c->streams;
    const uint32_t at = (uint32_t)(++s->waited % GS_CUDA_FLIGHT);
    double *const span = s->span[s->waited % GS_DEVICE_TIMED];
    float before = 0, length = 0;
    if (s->origin == NULL)
        return;
    const bool known = c->d->event_elapsed(&before, s->origin, s->begun[at]) == 0 &&
                       c->d->event_elapsed(&length, s->begun[at], s->finished[at]) == 0;
    span[0] = known ? s->origin_now + before * 1e-3 : 0;
    span[1] = known ? span[0] + length * 1e-3 : 0;
}

bool gs_cuda_launch_span(const void *context, uint64_t first, uint64_t last, double span[2])
{
    const gs_cuda_streams *const s = &((const gs_cuda *)context)->streams;
    if (s->origin == NULL || last > s->waited || s->waited - first >= GS_DEVICE_TIMED)
        return false;
    span[0] = s->span[first % GS_DEVICE_TIMED][0];
    span[1] = s->span[last % GS_DEVICE_TIMED][1];
    return span[0] > 0 && span[1] >= span[0];
}

/* ---- launches ---- */

static gs_cu_handle event_of(const gs_cuda *c, uint64_t ticket) { return c->streams.finished[ticket % GS_CUDA_FLIGHT]; }

gs_status gs_cuda_wait(gs_cuda *c, uint64_t ticket)
{
    while (c->streams.waited < ticket) {
        GS_TRY(gs_cuda_check(c, c->d->event_synchronize(event_of(c, c->streams.waited + 1)), "a launch"));
        gs_cuda_note_done(c);
    }
    return GS_OK;
}

/* All streams, also behind one that failed: host memory is given back after this. The first failure counts. */
gs_status gs_cuda_synchronize(gs_cuda *c)
{
    const struct {
        gs_cu_handle stream;
        const char *what;
    } all[] = {{c->streams.in, "copying to the device"},
               {c->streams.compute, "a launch"},
               {c->streams.out, "copying from the device"},
               {c->chain.starts != NULL ? c->chain.starts : c->streams.compute, "copying the sizes of a chunk"}};
    gs_failure first = {0};

    GS_TRY(gs_cuda_enter(c));
    for (size_t k = 0; k < GS_ARRAY_LEN(all); k++)
        gs_failure_keep(&first, gs_cuda_check(c, c->d->stream_synchronize(all[k].stream), all[k].what));
    gs_failure_keep(&first, gs_cuda_wait_for_peers(c));
    GS_TRY(gs_failure_tell(&first));
    while (c->streams.waited < c->streams.ticket)
        gs_cuda_note_done(c);
    return GS_OK;
}

/* As gs_cuda_synchronize(): what failed has been told, and leaves the last error as it is. */
void gs_cuda_quiet(void *context)
{
    gs_cuda *const c = context;
    char why[GS_ERROR_BYTES];
    snprintf(why, sizeof(why), "%s", gs_last_error());
    if (gs_cuda_synchronize(c) != GS_OK)
        (void)gs_fail(GS_EDEVICE, "%s", why);
}

gs_status gs_cuda_copy_in(gs_cuda *c, gs_cu_memory to, const void *from, uint64_t bytes, const char *what)
{
    c->streams.copied.in += bytes;
    return gs_cuda_check(c, c->d->copy_in(to, from, bytes, c->streams.compute), what);
}

gs_status gs_cuda_copy_out(gs_cuda *c, void *to, gs_cu_memory from, uint64_t bytes, const char *what)
{
    c->streams.copied.out += bytes;
    return gs_cuda_check(c, c->d->copy_out(to, from, bytes, c->streams.compute), what);
}

/* No part of what a pass copies. */
gs_status gs_cuda_peek(void *context, void *to, const void *from, uint64_t bytes)
{
    gs_cuda *const c = context;

    GS_TRY(gs_cuda_enter(c));
    GS_TRY(gs_cuda_check(c, c->d->copy_out(to, (gs_cu_memory)from, bytes, c->streams.compute), "looking at memory"));
    return gs_cuda_check(c, c->d->stream_synchronize(c->streams.compute), "looking at memory");
}

gs_status gs_cuda_begin(gs_cuda *c)
{
    const uint64_t next = c->streams.ticket + 1; /* its events were those of GS_CUDA_FLIGHT launches before */
    gs_status st = gs_cuda_enter(c);
    if (c->grouping)
        return st;
    if (st == GS_OK && next > GS_CUDA_FLIGHT)
        st = gs_cuda_wait(c, next - GS_CUDA_FLIGHT);
    c->streams.ticket++;
    if (st == GS_OK && c->streams.origin != NULL)
        st = gs_cuda_check(c, c->d->event_record(c->streams.begun[c->streams.ticket % GS_CUDA_FLIGHT],
                                                 c->streams.compute), "an event");
    return st;
}

gs_status gs_cuda_end(gs_cuda *c, gs_status st)
{
    if (c->grouping)
        return st;
    /* Recorded after a failure too: who waits for this launch must not wait for one of eight before. */
    const gs_status recorded =
        gs_cuda_check(c, c->d->event_record(event_of(c, c->streams.ticket), c->streams.compute), "an event");
    return st != GS_OK ? st : recorded;
}

gs_status gs_cuda_launch_in(gs_cuda *c, gs_cu_handle stream, gs_cu_handle function, uint64_t blocks_x,
                            uint32_t blocks_y, uint32_t shared, void *args, const char *what)
{
    void *list[] = {args};
    char text[128];
    if (blocks_x == 0 || blocks_y == 0)
        return GS_OK;
    if (blocks_x > INT32_MAX || blocks_y > UINT16_MAX)
        return gs_fail(GS_EUNSUPPORTED, "device cuda: a launch is too large; use a store with more .parts");
    snprintf(text, sizeof(text), "kernel %s", what);
    return gs_cuda_check(c,
                         c->d->launch(function, (unsigned)blocks_x, blocks_y, 1, GS_BLOCK_LANES, 1, 1, shared,
                                      stream, list, NULL),
                         text);
}

gs_status gs_cuda_launch(gs_cuda *c, gs_cu_handle function, uint64_t blocks_x, uint32_t blocks_y, uint32_t shared,
                         void *args, const char *what)
{
    return gs_cuda_launch_in(c, c->streams.compute, function, blocks_x, blocks_y, shared, args, what);
}
