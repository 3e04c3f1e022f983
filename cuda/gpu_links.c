/* Copies to and from a device's arena, from GPUs before it in a chain or ring too.
 *
 * A copy from a peer is one within the GPU where both are on it, one from GPU to GPU where they reach each other, and
 * else goes through two halves of a pinned buffer: a stream of the peer's GPU fills one while a stream of this GPU
 * empties the other, and events of both order them.
 */
#include "cuda/gpu_links.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cuda/cuda_device.h"
#include "cuda/gpu_params.h"
#include "cuda/streams.h"
#include "device/device.h"

/* ---- attributes of a GPU, as rates ---- */

static double attribute(const gs_cuda *c, int which)
{
    int value = 0;
    return c->d->device_attribute(&value, which, c->device) == 0 && value > 0 ? value : 0;
}

/* The number that a file of sysfs begins with ("32.0 GT/s PCIe"); 0: there is none. */
static double number_in(const char *folder, const char *name)
{
    char path[256], line[64];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *const in = fopen(path, "re");
    if (in == NULL)
        return 0;
    const double value = fgets(line, sizeof(line), in) != NULL ? strtod(line, NULL) : 0;
    fclose(in);
    return isfinite(value) && value > 0 ? value : 0;
}

double gs_cuda_pcie_bps(const char *folder)
{
    const double transfers = number_in(folder, "max_link_speed") * 1e9, width = number_in(folder, "max_link_width");
    const double coded = transfers < 6e9 ? 0.8 : 128.0 / 130; /* PCIe 1, 2: 8 bits as 10; then 128 as 130 */
    return transfers * coded / 8 * width;
}

/* Guess for a link that the system does not show: 16 lanes of the PCIe that GPUs of this kind have. */
static double usual_pcie_bps(int major)
{
    return 16 * 128.0 / 130 / 8 * (major >= 9 ? 32e9 : major == 8 ? 16e9 : 8e9);
}

/* Of NVLink, where a GPU has it: half of what the modules of a generation have in all (V100, A100, H100: 150, 300, 450
 * GB/s a way), as bridges between cards have fewer links than switches. */
static double usual_linked_bps(int major)
{
    return 0.5 * (major >= 9 ? 450e9 : major == 8 ? 300e9 : 150e9);
}

/* Operations of a tensor core, for each of a float32 lane (sheets of the A100, H100 and RTX GPUs). */
static double rounded_gain(const gs_cuda *c)
{
    const bool large = c->major >= 9 || (c->major == 8 && c->minor == 0);
    const double tf32 = c->major < 8 ? 1 : large ? 8 : 2;
    return c->compute_type == GS_CUBLAS_COMPUTE_TF32   ? tf32
           : c->compute_type == GS_CUBLAS_COMPUTE_BF16 ? (c->major < 8 ? 1 : 2 * tf32)
                                                       : 1;
}

bool gs_cuda_speed(const void *context, gs_gpu_speed *out)
{
    const gs_cuda *const c = context;
    const double lanes = c->major == 7 || (c->major == 8 && c->minor == 0) ? 64 : 128; /* of a processor */
    char place[GS_DEVICE_PLACE_BYTES], folder[64];

    gs_cuda_bus_place(c, place);
    for (char *at = place; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    snprintf(folder, sizeof(folder), "/sys/bus/pci/devices/%s", place);
    *out = (gs_gpu_speed){
        .memory_bps = 2 * attribute(c, GS_CU_MEMORY_CLOCK) * 1e3 * attribute(c, GS_CU_MEMORY_BITS) / 8,
        .lane_ops = lanes * attribute(c, GS_CU_PROCESSORS) * attribute(c, GS_CU_CLOCK) * 1e3,
        .host_bps = gs_cuda_pcie_bps(folder),
        .linked_bps = usual_linked_bps(c->major),
    };
    out->rounding = c->compute_type == GS_CUBLAS_COMPUTE_TF32 ? 1 : c->compute_type == GS_CUBLAS_COMPUTE_BF16 ? 2 : 0;
    out->product_flops = 2 * out->lane_ops * rounded_gain(c);
    if (!(out->host_bps > 0))
        out->host_bps = usual_pcie_bps(c->major);
    return out->memory_bps > 0 && out->lane_ops > 0;
}

/* ---- copies ---- */

void gs_cuda_bus_place(const void *context, char place[GS_DEVICE_PLACE_BYTES])
{
    const gs_cuda *const c = context;
    if (c->d->device_bus(place, (int)GS_DEVICE_PLACE_BYTES, c->device) != 0)
        place[0] = '\0';
}

gs_device_reach gs_cuda_reaches(const void *context, const void *peer)
{
    const gs_cuda *const c = context, *const p = peer;
    int access = 0, atomics = 0, rank = 0;

    if (c->device == p->device)
        return (gs_device_reach){.same = true, .reaches = true};
    if (c->d->peer_attribute(&access, GS_CU_PEER_ACCESS, c->device, p->device) != 0 || access == 0)
        return (gs_device_reach){.reaches = false};
    return (gs_device_reach){
        .reaches = true,
        .linked = c->d->peer_attribute(&atomics, GS_CU_PEER_ATOMICS, c->device, p->device) == 0 && atomics != 0,
        .rank = c->d->peer_attribute(&rank, GS_CU_PEER_RANK, c->device, p->device) == 0 ? rank : 0};
}

/* ---- joining and leaving ---- */

_Static_assert(2 * GS_CUDA_BOUNCE_BYTES <= GS_DEVICE_BETWEEN_BYTES, "both halves of the buffer are accounted for");

static gs_status make_events(gs_cuda *c, gs_cu_handle *event, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        GS_TRY(gs_cuda_check(c, c->d->event_create(&event[i], GS_CU_EVENT_BLOCKING | GS_CU_EVENT_DISABLE_TIMING),
                             "making an event"));
    return GS_OK;
}

static void drop_events(const gs_cuda *c, gs_cu_handle *event, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (event[i] != NULL)
            c->d->event_destroy(event[i]);
}

static gs_status take_bounce(gs_cuda *c)
{
    gs_cuda_chain *const k = &c->chain;
    if (k->bounce != NULL)
        return GS_OK;
    GS_TRY(make_events(c, k->emptied, 2));
    if ((k->bounce = gs_alloc_pages(2 * GS_CUDA_BOUNCE_BYTES)) == NULL)
        return gs_fail(GS_ENOMEM, "device cuda:%d: out of memory for copies from other GPUs", c->device);
    return gs_cuda_pin(c, k->bounce, 2 * GS_CUDA_BOUNCE_BYTES, GS_CU_HOST_PORTABLE, &k->bounce_pinned);
}

/* The peer's end of a bridge is made on its GPU. */
static gs_status make_bridge(gs_cuda *c, gs_cuda_link *l)
{
    GS_TRY(gs_cuda_enter(l->peer));
    GS_TRY(gs_cuda_check(l->peer, c->d->stream_create(&l->bridge, GS_CU_STREAM_NON_BLOCKING), "making a stream"));
    GS_TRY(make_events((gs_cuda *)(uintptr_t)l->peer, l->filled, 2));
    GS_TRY(gs_cuda_enter(c));
    return take_bounce(c);
}

static gs_status make_link(gs_cuda *c, const gs_cuda *peer)
{
    gs_cuda_link *const l = &c->chain.link[c->chain.links++];
    int can = 0;
    *l = (gs_cuda_link){.peer = peer, .same = peer->device == c->device};
    if (l->same)
        return GS_OK;

    GS_TRY(gs_cuda_check(c, c->d->peer_can(&can, c->device, peer->device), "asking for its peers"));
    if (can) {
        const gs_cu_result r = c->d->peer_enable(peer->context, 0);
        l->direct = true;
        return r == GS_CU_PEER_ALREADY ? GS_OK : gs_cuda_check(c, r, "reaching another GPU");
    }
    return make_bridge(c, l);
}

/* Takes from these devices, but not from itself. */
static gs_status join_one(gs_cuda *c, void *const *context, uint32_t devices)
{
    gs_cuda_chain *const k = &c->chain;
    GS_TRY(gs_cuda_enter(c));
    k->joined = true;
    if (devices > 1)
        GS_TRY(gs_cuda_check(c, c->d->stream_create(&k->forward, GS_CU_STREAM_NON_BLOCKING), "making a stream"));
    if (c->code.sequences > 0)
        GS_TRY(gs_cuda_check(c, c->d->stream_create(&k->starts, GS_CU_STREAM_NON_BLOCKING), "making a stream"));
    GS_TRY(make_events(c, &k->mark[0][0], GS_DEVICE_WAYS * GS_DEVICE_MARKS));
    for (uint32_t i = 0; i < devices; i++)
        GS_TRY(context[i] == c ? GS_OK : make_link(c, context[i]));
    return GS_OK;
}

/* Where NCCL is there and takes these GPUs, sums are its work; where it does not, they go by way of the host. */
static void join_nccl(void *const *context, uint32_t devices)
{
    gs_cu_handle comm[GS_DEVICE_COUNT_MOST] = {NULL};
    int gpu[GS_DEVICE_COUNT_MOST] = {0};
    gs_cuda *const first = context[0];

    if (devices == 1 || first->d->comm_init == NULL)
        return;
    for (uint32_t d = 0; d < devices; d++) {
        gpu[d] = ((gs_cuda *)context[d])->device;
        for (uint32_t before = 0; before < d; before++)
            if (gpu[before] == gpu[d]) /* it takes a GPU once */
                return;
    }
    const gs_cu_result r = first->d->comm_init(comm, (int)devices, gpu);
    gs_cuda_left(); /* it turns to each of the GPUs */
    if (r != 0)
        return;
    for (uint32_t d = 0; d < devices; d++)
        ((gs_cuda *)context[d])->chain.comm = comm[d];
}

gs_status gs_cuda_open_peer(void *context, const void *peer, bool *open)
{
    gs_cuda *const c = context;
    const gs_cuda *const p = peer;
    int can = 1;
    GS_TRY(gs_cuda_enter(c));

    if (c->device != p->device)
        GS_TRY(gs_cuda_check(c, c->d->peer_can(&can, c->device, p->device), "asking for its peers"));
    if (can && c->device != p->device) {
        const gs_cu_result r = c->d->peer_enable(p->context, 0);
        GS_TRY(r == GS_CU_PEER_ALREADY ? GS_OK : gs_cuda_check(c, r, "reaching another GPU"));
    }
    *open = can != 0;
    return GS_OK;
}

gs_status gs_cuda_join(void *const *context, uint32_t devices)
{
    for (uint32_t d = 0; d < devices; d++)
        GS_TRY(join_one(context[d], context, devices));
    join_nccl(context, devices);
    return GS_OK;
}

void gs_cuda_leave(gs_cuda *c)
{
    gs_cuda_chain *const k = &c->chain;
    if (!k->joined)
        return;
    if (k->comm != NULL)
        c->d->comm_destroy(k->comm);
    gs_cuda_left();
    for (uint32_t i = 0; i < k->links; i++) {
        if (k->link[i].bridge == NULL)
            continue;
        (void)gs_cuda_enter(k->link[i].peer); /* they are its GPU's */
        drop_events(c, k->link[i].filled, 2);
        c->d->stream_destroy(k->link[i].bridge);
    }
    (void)gs_cuda_enter(c);
    if (k->bounce != NULL) {
        if (k->bounce_pinned)
            c->d->host_unregister(k->bounce);
        gs_free_pages(k->bounce, 2 * GS_CUDA_BOUNCE_BYTES);
    }
    drop_events(c, k->emptied, 2);
    drop_events(c, &k->mark[0][0], GS_DEVICE_WAYS * GS_DEVICE_MARKS);
    if (k->forward != NULL)
        c->d->stream_destroy(k->forward);
    if (k->starts != NULL)
        c->d->stream_destroy(k->starts);
    *k = (gs_cuda_chain){.joined = false};
}

gs_status gs_cuda_wait_for_peers(gs_cuda *c)
{
    if (c->chain.forward == NULL)
        return GS_OK;
    gs_cu_result r = c->d->stream_synchronize(c->chain.forward);
    const gs_cuda *failed = r != 0 ? c : NULL;
    for (uint32_t i = 0; i < c->chain.links; i++) {
        const gs_cuda_link *const l = &c->chain.link[i];
        if (l->bridge == NULL)
            continue;
        (void)gs_cuda_enter(l->peer); /* a stream of its GPU, whatever has become of this one */
        const gs_cu_result now = c->d->stream_synchronize(l->bridge);
        if (failed == NULL && now != 0) {
            failed = l->peer;
            r = now;
        }
    }
    (void)gs_cuda_enter(c);
    return failed == NULL
               ? GS_OK
               : gs_cuda_check(failed, r, failed == c ? "copying from another GPU" : "copying to another GPU");
}

/* ---- copies ---- */

/* One piece through its half of the buffer. */
static gs_status bounce_piece(gs_cuda *c, const gs_cuda_link *l, gs_cu_memory to, gs_cu_memory from, uint64_t bytes)
{
    gs_cuda_chain *const k = &c->chain;
    const gs_cuda *const p = l->peer;
    const unsigned half = k->bounced % 2;
    char *const by = k->bounce + half * GS_CUDA_BOUNCE_BYTES;

    GS_TRY(gs_cuda_enter(p));
    if (k->bounced++ >= 2)
        GS_TRY(gs_cuda_check(p, c->d->stream_wait(l->bridge, k->emptied[half], 0), "an event"));
    GS_TRY(gs_cuda_check(p, c->d->copy_out(by, from, bytes, l->bridge), "copying to another GPU"));
    GS_TRY(gs_cuda_check(p, c->d->event_record(l->filled[half], l->bridge), "an event"));
    GS_TRY(gs_cuda_enter(c));
    GS_TRY(gs_cuda_check(c, c->d->stream_wait(k->forward, l->filled[half], 0), "an event"));
    GS_TRY(gs_cuda_check(c, c->d->copy_in(to, by, bytes, k->forward), "copying from another GPU"));
    return gs_cuda_check(c, c->d->event_record(k->emptied[half], k->forward), "an event");
}

static gs_status copy_from_peer(gs_cuda *c, const gs_cuda *peer, gs_cu_memory to, gs_cu_memory from, uint64_t bytes)
{
    const gs_cuda_link *l = c->chain.link;

    while (l < c->chain.link + c->chain.links && l->peer != peer)
        l++;
    if (l == c->chain.link + c->chain.links)
        return gs_fail(GS_EINVAL, "device cuda:%d: a copy from a device that it was not joined to", c->device);
    if (l->same)
        return gs_cuda_check(c, c->d->copy_within(to, from, bytes, c->chain.forward),
                             "copying from a device on the same GPU");
    if (l->direct)
        return gs_cuda_check(c, c->d->copy_peer(to, c->context, from, peer->context, bytes, c->chain.forward),
                             "copying from another GPU");
    for (uint64_t at = 0; at < bytes; at += GS_CUDA_BOUNCE_BYTES)
        GS_TRY(bounce_piece(c, l, to + at, from + at, GS_MIN(bytes - at, (uint64_t)GS_CUDA_BOUNCE_BYTES)));
    return GS_OK;
}

/* Of a device that is alone in its process the first such copy makes the stream. */
static gs_status copy_from_rank(gs_cuda *c, gs_cu_memory to, const void *from, uint64_t bytes)
{
    gs_cu_handle *const s = &c->chain.forward;

    if (*s == NULL)
        GS_TRY(gs_cuda_check(c, c->d->stream_create(s, GS_CU_STREAM_NON_BLOCKING), "making a stream"));
    return gs_cuda_check(c, c->d->copy_in(to, from, bytes, *s), "copying from another rank");
}

gs_status gs_cuda_transfer(void *context, gs_device_way way, const void *peer, void *to, const void *from,
                           uint64_t bytes)
{
    gs_cuda *const c = context;

    GS_TRY(gs_cuda_enter(c));
    if (way == GS_DEVICE_FROM_HOST)
        return gs_cuda_check(c, c->d->copy_in((gs_cu_memory)to, from, bytes, c->streams.in), "copying to the device");
    if (way == GS_DEVICE_TO_HOST)
        return gs_cuda_check(c, c->d->copy_out(to, (gs_cu_memory)from, bytes, c->streams.out),
                             "copying from the device");
    if (peer == NULL)
        return copy_from_rank(c, (gs_cu_memory)to, from, bytes);
    return copy_from_peer(c, peer, (gs_cu_memory)to, (gs_cu_memory)from, bytes);
}

static gs_cu_handle stream_of(const gs_cuda *c, gs_device_way way)
{
    return way == GS_DEVICE_FROM_HOST  ? c->streams.in
           : way == GS_DEVICE_TO_HOST  ? c->streams.out
           : way == GS_DEVICE_LAUNCHES ? c->streams.compute
                                       : c->chain.forward;
}

gs_status gs_cuda_mark_transfers(void *context, gs_device_way way, uint64_t *number)
{
    gs_cuda *const c = context;
    gs_cuda_chain *const k = &c->chain;

    *number = ++k->marks[way];
    GS_TRY(gs_cuda_enter(c));
    return gs_cuda_check(c, c->d->event_record(k->mark[way][*number % GS_DEVICE_MARKS], stream_of(c, way)), "an event");
}

/* An event that is of a later number by now says that this one is over. All that a stream is to wait for was asked for
 * before, so no two wait for each other. What a launch of a sequence reads beforehand waits as the launch does. */
gs_status gs_cuda_go_behind(void *context, gs_device_way way, gs_device_way of, uint64_t number)
{
    const gs_cuda *const c = context;
    const gs_cu_handle event = of == GS_DEVICE_LAUNCHES ? c->streams.finished[number % GS_CUDA_FLIGHT]
                                                        : c->chain.mark[of][number % GS_DEVICE_MARKS];

    GS_TRY(gs_cuda_enter(c));
    if (way == GS_DEVICE_LAUNCHES && c->chain.starts != NULL)
        GS_TRY(gs_cuda_check(c, c->d->stream_wait(c->chain.starts, event, 0), "an event"));
    return gs_cuda_check(c, c->d->stream_wait(stream_of(c, way), event, 0), "an event");
}

gs_status gs_cuda_poll_transfers(void *context, gs_device_way way, uint64_t number, bool wait, bool *done)
{
    gs_cuda *const c = context;
    const gs_cu_handle mark = c->chain.mark[way][number % GS_DEVICE_MARKS];

    GS_TRY(gs_cuda_enter(c));
    const gs_cu_result r = wait ? c->d->event_synchronize(mark) : c->d->event_query(mark);
    *done = r == 0;
    return r == GS_CU_NOT_READY
               ? GS_OK
               : gs_cuda_check(c, r, way == GS_DEVICE_FROM_PEER ? "copying from another GPU" : "a copy");
}

/* ---- sums over the devices of a run ---- */

static gs_status reduce_by_nccl(void *const *context, uint32_t devices, const gs_cu_memory *at, uint64_t count,
                                bool f64)
{
    const gs_cuda *const first = context[0];
    int r = first->d->group_start();
    for (uint32_t d = 0; d < devices && r == 0; d++) {
        const gs_cuda *const c = context[d];
        r = first->d->all_reduce((const void *)at[d], (void *)at[d], count, f64 ? GS_NCCL_F64 : GS_NCCL_F32,
                                 GS_NCCL_SUM, c->chain.comm, c->streams.compute);
    }
    const int ended = first->d->group_end();
    gs_cuda_left();
    return r == 0 && ended == 0
               ? GS_OK
               : gs_fail(GS_EDEVICE, "device cuda: NCCL could not add up what %u GPUs have (its error %d)", devices,
                         r != 0 ? r : ended);
}

bool gs_cuda_sums_alone(const void *context) { return ((const gs_cuda *)context)->chain.comm != NULL; }

static gs_status find_part(gs_cu_memory *at, const gs_cuda *c, const void *part)
{
    *at = gs_cuda_part(c, part);
    return *at != 0 ? GS_OK : gs_fail(GS_EINVAL, "device cuda: a sum over devices of what is no part of their passes");
}

gs_status gs_cuda_all_reduce(void *const *context, uint32_t devices, void *const *part, uint64_t count, bool f64)
{
    gs_cu_memory at[GS_DEVICE_COUNT_MOST];
    for (uint32_t d = 0; d < devices; d++)
        GS_TRY(find_part(&at[d], context[d], part[d]));
    return reduce_by_nccl(context, devices, at, count, f64);
}

/* Of the host's `part`; `out`: the same, where it comes here, or NULL. */
static gs_status move_part(gs_cuda *c, const void *part, void *out, uint64_t bytes)
{
    static const char what[] = "copying gradients";
    gs_cu_memory at;

    GS_TRY(find_part(&at, c, part));
    GS_TRY(gs_cuda_enter(c));
    GS_TRY(out != NULL ? gs_cuda_copy_out(c, out, at, bytes, what)
                       : gs_cuda_copy_in(c, at, part, bytes, what));
    return gs_cuda_check(c, c->d->stream_synchronize(c->streams.compute), what);
}

gs_status gs_cuda_fetch_part(void *context, void *part, uint64_t bytes)
{
    return move_part(context, part, part, bytes);
}

gs_status gs_cuda_put_part(void *context, const void *part, uint64_t bytes)
{
    return move_part(context, part, NULL, bytes);
}
