/* trace.c - when each task ran, as Chrome trace events.
 *
 * Launches follow each other, so they are complete events ("X") on one thread of
 * the device, and so are the copies over a wire of several devices; transfers overlap, so they are asynchronous ones
 * ("b", "e"), which viewers stack. A GPU's kernels, by its own clock, have a track of their own beside that of the
 * thread that asks for them. Times are microseconds from the pass's first task.
 */
#include <errno.h>

#include "base/size.h"
#include "exec/exec_run.h"

static const char *const kind_name[GS_TASK_KINDS] = {
    [GS_TASK_ZERO] = "zero",
    [GS_TASK_SELF] = "own rows", [GS_TASK_EDGES] = "edges", [GS_TASK_VERTEX] = "vertex program",
    [GS_TASK_COPY] = "copy",   [GS_TASK_UNROLL] = "unroll", [GS_TASK_BACK] = "back",
    [GS_TASK_BEGIN] = "begin sum", [GS_TASK_FINISH] = "finish sum", [GS_TASK_STATISTICS] = "statistics",
};

static const char *name_of(const gs_task *t)
{
    if (t->kind == GS_TASK_MOVE)
        return gs_task_word(t);
    return t->kind == GS_TASK_EDGES && !gs_task_sums_rows(t) ? "edge program" : kind_name[t->kind];
}

/* Reads and writes are 2 and 3, the first device's computations 1, whether it is alone or not. */
static uint32_t track_of(uint32_t lane)
{
    return lane == GS_LANE_READ                        ? 2
           : lane == GS_LANE_WRITE                     ? 3
           : lane == GS_LANE_DEVICES + GS_LANE_COMPUTE ? 1
                                                       : 2 + lane;
}

static void track_name(const gs_exec *e, uint32_t lane, char *name, size_t room)
{
    const uint32_t d = (lane - GS_LANE_DEVICES) / GS_DEVICE_LANES;
    if (lane < GS_LANE_DEVICES)
        snprintf(name, room, "%s", lane == GS_LANE_READ ? "reads" : "writes");
    else if (e->several == NULL)
        snprintf(name, room, "device");
    else
        switch ((lane - GS_LANE_DEVICES) % GS_DEVICE_LANES) {
        case GS_LANE_UPLOAD:
            snprintf(name, room, "host to device %u", d);
            break;
        case GS_LANE_FORWARD:
            snprintf(name, room, "chain to device %u", d);
            break;
        case GS_LANE_DOWNLOAD:
            snprintf(name, room, "device %u to host", d);
            break;
        case GS_LANE_LOAD:
            snprintf(name, room, "disk to device %u", d);
            break;
        default:
            snprintf(name, room, "device %u", d);
        }
}

void gs_trace_begin(FILE *out, const char *other, const char *what)
{
    fprintf(out, "{\"displayTimeUnit\":\"ms\",\"otherData\":%s,\"traceEvents\":[\n"
                 "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"gnnstream: %s\"}}",
            other, what);
}

void gs_trace_track(FILE *out, uint32_t track, const char *name)
{
    fprintf(out, ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}", track,
            name);
}

gs_status gs_trace_end(FILE *out, const char *path)
{
    fprintf(out, "\n]}\n");
    /* The last call that failed is the one that set errno: it also stopped all after it. */
    return fflush(out) != 0 || ferror(out) ? gs_fail_errno(errno, "%s: cannot write the trace", path) : GS_OK;
}

static const gs_exec_chunk *chunk_of(const gs_exec *e, const gs_task *t, uint32_t operand)
{
    return &e->chunks.chunk[t->file - e->program->arrays][(uint64_t)t->target * e->chunks.parts + operand];
}

/* How many chunks, side by side in the file, a read brings. */
static uint32_t chunks_read(const gs_exec *e, const gs_task *t)
{
    uint64_t bytes = 0;
    uint32_t n = 0;

    while (bytes < t->bytes && t->operand + n < e->chunks.parts)
        bytes += chunk_of(e, t, t->operand + n++)->length;
    return n;
}

static void write_launch(const gs_exec *e, const gs_task *t, double begin, double seconds, FILE *out)
{
    fprintf(out,
            ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%.1f,\"dur\":%.1f,\"name\":\"%s\",\"args\":{\"stage\":\"%s\"",
            track_of(gs_task_lane(t)), begin * 1e6, seconds * 1e6, name_of(t),
            e->program->stage[t->stage].name);
    if (gs_task_goes_over_edges(t))
        fprintf(out, ",\"target\":%u,\"operand\":%u,\"set\":%u,\"edges\":%llu", t->target, t->operand,
                t->file - e->program->arrays, (unsigned long long)chunk_of(e, t, t->operand)->edges);
    else if (t->kind == GS_TASK_VERTEX)
        fprintf(out, ",\"first_row\":%llu,\"rows\":%u", (unsigned long long)t->first_row, t->rows);
    else if (t->kind == GS_TASK_MOVE)
        fprintf(out, ",\"bytes\":%llu", (unsigned long long)gs_task_bytes(e->plan, t));
    if (t->kind == GS_TASK_MOVE && t->chunk_bytes > 0)
        fprintf(out, ",\"target\":%u,\"operand\":%u,\"set\":%u", t->target, t->operand,
                t->file - e->program->arrays);
    if (gs_task_driver(t) == GS_DRIVER_PEER)
        fprintf(out, ",\"from\":%u", t->source.memory - GS_DEVICE_MEMORIES);
    fprintf(out, "}}");
}

#define KERNEL_TRACKS 1000u /* behind all lanes */

static void write_kernel_tracks(const gs_exec *e, FILE *out)
{
    for (uint32_t d = 0; d < e->devices && e->kernels != NULL; d++) {
        char name[32];
        snprintf(name, sizeof(name), "kernels of device %u", d);
        gs_trace_track(out, KERNEL_TRACKS + d, name);
    }
}

/* Writes the task's computation; its launch says which edges and rows. */
static void write_kernels(const gs_exec *e, uint32_t index, double origin, FILE *out)
{
    const gs_task *const t = &e->plan->task[index];
    if (e->kernels == NULL || t->kind == GS_TASK_MOVE || !(e->kernels[index][1] > 0))
        return;
    fprintf(out, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%.1f,\"dur\":%.1f,\"name\":\"kernels\",\"args\":{"
                 "\"stage\":\"%s\",\"task\":\"%s\"}}", KERNEL_TRACKS + t->device,
            (e->kernels[index][0] - origin) * 1e6, (e->kernels[index][1] - e->kernels[index][0]) * 1e6,
            e->program->stage[t->stage].name, name_of(t));
}

static void write_transfer(const gs_exec *e, uint32_t index, double begin, double end, FILE *out)
{
    const gs_task *t = &e->plan->task[index];
    const bool edges = t->file >= e->program->arrays;
    const char *what = edges ? "edges" : e->program->array[t->file].name;
    fprintf(out, ",\n{\"ph\":\"b\",\"cat\":\"%s\",\"id\":%u,\"pid\":1,\"tid\":%u,\"ts\":%.1f,\"name\":\"%s\","
                 "\"args\":{\"bytes\":%llu,\"offset\":%llu",
            name_of(t), index, track_of(gs_task_lane(t)), begin * 1e6, what, (unsigned long long)t->bytes,
            (unsigned long long)gs_task_on_disk(t)->offset);
    if (edges && t->check == GS_CHECK_CHUNK)
        fprintf(out, ",\"set\":%u,\"target\":%u,\"operand\":%u,\"operands\":%u", t->file - e->program->arrays,
                t->target, t->operand, chunks_read(e, t));
    fputs("}}", out);
    fprintf(out, ",\n{\"ph\":\"e\",\"cat\":\"%s\",\"id\":%u,\"pid\":1,\"tid\":%u,\"ts\":%.1f,\"name\":\"%s\"}",
            name_of(t), index, track_of(gs_task_lane(t)), end * 1e6, what);
}

gs_status gs_exec_write_trace(const gs_exec *e, uint32_t pass, const char *other, FILE *out, const char *path)
{
    const gs_plan_pass *p = &e->plan->pass[pass];
    double origin = 0;

    for (uint32_t i = p->first_task; i < p->first_task + p->tasks; i++)
        origin = i == p->first_task ? e->span[i][0] : GS_MIN(origin, e->span[i][0]);
    gs_trace_begin(out, other, e->program->pass[pass].name);
    for (uint32_t lane = 0; lane < e->lanes.lanes; lane++) {
        char name[32];
        track_name(e, lane, name, sizeof(name));
        gs_trace_track(out, track_of(lane), name);
    }
    write_kernel_tracks(e, out);
    for (uint32_t i = p->first_task; i < p->first_task + p->tasks; i++) {
        const gs_task *t = &e->plan->task[i];
        const double begin = e->span[i][0] - origin, end = e->span[i][1] - origin;
        if (gs_task_driver(t) == GS_DRIVER_IO)
            write_transfer(e, i, begin, end, out);
        else
            write_launch(e, t, begin, end - begin, out);
        write_kernels(e, i, origin, out);
    }
    return gs_trace_end(out, path);
}
