#include "host_nccl.h"

#include <stdlib.h>
#include <string.h>

#include "host_memory.h"
#include "host_streams.h"

enum { INVALID_USAGE = 5 };

typedef struct host_comm {
    int device, rank, ranks;
} host_comm;

/* What a rank has brought to the group that is open. */
typedef struct host_part {
    float *at;
    gs_cu_handle stream;
    int device;
} host_part;

typedef struct host_sum {
    host_part part[HOST_GPUS];
    int parts, ranks, type;
    size_t count;
} host_sum;

static host_comm comms[HOST_GPUS]; /* of the one group that there is at a time */
static host_sum group;
static bool open;

static gs_cu_result comm_init(gs_cu_handle *comm, int devices, const int *device)
{
    if (devices > HOST_GPUS)
        return INVALID_USAGE;
    for (int i = 0; i < devices; i++)
        for (int k = 0; k < i; k++)
            if (device[k] == device[i])
                return INVALID_USAGE;
    for (int i = 0; i < devices; i++) {
        comms[i] = (host_comm){device[i], i, devices};
        comm[i] = &comms[i];
    }
    return 0;
}

static gs_cu_result comm_destroy(gs_cu_handle comm) { return comm == NULL; }

static gs_cu_result group_start(void)
{
    group = (host_sum){.parts = 0};
    open = true;
    return 0;
}

static gs_cu_result all_reduce(const void *from, void *to, size_t count, int type, int how, gs_cu_handle comm,
                               gs_cu_handle stream)
{
    const host_comm *const c = comm;
    const size_t bytes = count * (type == GS_NCCL_F64 ? 8 : 4);
    if (!open || from != to || how != GS_NCCL_SUM || (type != GS_NCCL_F32 && type != GS_NCCL_F64) ||
        group.parts != c->rank || (group.parts > 0 && (group.count != count || group.type != type)) ||
        host_stream_device(stream) != c->device)
        return INVALID_USAGE;
    host_need_device((gs_cu_memory)to, bytes, c->device, "a sum");
    group.count = count;
    group.type = type;
    group.ranks = c->ranks;
    group.part[group.parts++] = (host_part){to, stream, c->device};
    host_counts.sums++;
    return 0;
}

/* From the last to the first: in another order than the host's. */
static void run_sum(const host_work *w)
{
    const host_sum *const s = w->more;
    const size_t bytes = s->count * (s->type == GS_NCCL_F64 ? 8 : 4);
    unsigned all = 0;
    for (int i = 0; i < s->parts; i++) {
        host_streams_access(s->part[i].at, bytes, true);
        all |= 1u << s->part[i].device;
    }
    host_memory_open(all);
    for (size_t k = 0; k < s->count; k++) {
        double sum = 0;
        for (int i = s->parts - 1; i >= 0; i--)
            sum += s->type == GS_NCCL_F64 ? ((const double *)(const void *)s->part[i].at)[k] : (double)s->part[i].at[k];
        for (int i = 0; i < s->parts; i++) {
            if (s->type == GS_NCCL_F64)
                ((double *)(void *)s->part[i].at)[k] = sum;
            else
                s->part[i].at[k] = (float)sum;
        }
    }
}

static gs_cu_result group_end(void)
{
    gs_cu_handle event[HOST_GPUS] = {NULL}, done = NULL;
    host_sum *const s = malloc(sizeof(*s));
    gs_cu_result r = s == NULL || !open || group.parts != group.ranks;

    open = false;
    for (int i = 1; i < group.parts && r == 0; i++) {
        r = host_event_create_on(group.part[i].device, &event[i]);
        r = r != 0 ? r : host_event_record(event[i], group.part[i].stream);
        r = r != 0 ? r : host_stream_wait(group.part[0].stream, event[i], 0);
    }
    if (r == 0) {
        *s = group;
        r = host_streams_submit(group.part[0].stream, &(host_work){.run = run_sum, .what = "sum over GPUs", .more = s});
    }
    r = r != 0 ? r : host_event_create_on(group.part[0].device, &done);
    r = r != 0 ? r : host_event_record(done, group.part[0].stream);
    for (int i = 1; i < group.parts; i++) {
        r = r != 0 ? r : host_stream_wait(group.part[i].stream, done, 0);
        if (event[i] != NULL)
            host_event_destroy(event[i]);
    }
    if (done != NULL)
        host_event_destroy(done);
    return r;
}

void host_nccl_fill(gs_cuda_driver *table)
{
    table->comm_init = comm_init;
    table->comm_destroy = comm_destroy;
    table->group_start = group_start;
    table->group_end = group_end;
    table->all_reduce = all_reduce;
}
