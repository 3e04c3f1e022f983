/* cache_curve STORE MODEL HIDDEN HOST DEVICE - bytes an epoch reads with a cache of part of its working set, by
 * policy: Belady's with the future known (cache.c), least recently used, and a fixed first part of each file.
 *
 * The accesses are the reads of the train pass of a plan that keeps nothing (--no-cache) in HOST and DEVICE bytes
 * of memory; the tiles of an interval of an array are one access. Policies are played through on the same list, so the
 * figures say what a policy reads, not what a run with it would (bench train says that).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/cache.h"
#include "train/run_internal.h"

#define STEPS 16u

typedef struct trace {
    gs_cache_access *access;
    uint32_t accesses, units;
    uint64_t working_set;
    uint64_t *bytes; /* [units] */
} trace;

static void stop(void)
{
    fprintf(stderr, "cache_curve: %s\n", gs_last_error());
    exit(1);
}

/* Arrays come by intervals, edges by chunks. */
static uint32_t unit_of(const gs_session *s, const gs_task *t)
{
    const gs_chunk_table *const c = gs_store_chunks(s->store);
    const uint32_t parts = c->parts, arrays = s->program->arrays;

    if (t->file >= arrays)
        return arrays * parts + ((t->file - arrays) * parts + t->target) * parts + t->operand;
    const gs_array *const a = &s->program->array[t->file];
    const uint64_t interval = a->width * (uint64_t)gs_dtype_bytes(a->dtype) * c->interval_rows;
    const uint64_t step = a->store_id >= 0 ? interval : gs_align_up(interval, GS_BLOCK_BYTES);
    return t->file * parts + (uint32_t)GS_MIN((t->source.offset + t->bytes / 2) / step, parts - 1);
}

static trace trace_of(const gs_session *s)
{
    const gs_plan_pass *const pass = &s->plan->pass[s->pass.train];
    const uint32_t parts = gs_store_chunks(s->store)->parts;
    trace t = {.units = s->program->arrays * parts + s->edges.sets * parts * parts};
    uint32_t last = UINT32_MAX;

    t.access = gs_calloc(pass->tasks + 1, sizeof(*t.access));
    t.bytes = gs_calloc(t.units, sizeof(*t.bytes));
    if (t.access == NULL || t.bytes == NULL)
        exit(1);
    for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
        const gs_task *const task = &s->plan->task[i];
        if (gs_task_lane(task) != GS_LANE_READ)
            continue;
        const uint32_t unit = unit_of(s, task);
        if (unit != last)
            t.access[t.accesses++] = (gs_cache_access){.unit = unit, .whole = true};
        t.access[t.accesses - 1].cost += task->bytes;
        t.bytes[unit] = GS_MAX(t.bytes[unit], t.access[t.accesses - 1].cost);
        last = unit;
    }
    for (uint32_t k = 0; k < t.accesses; k++)
        t.access[k].bytes = t.bytes[t.access[k].unit];
    for (uint32_t u = 0; u < t.units; u++)
        t.working_set += t.bytes[u];
    return t;
}

static uint64_t belady(const trace *t, uint64_t capacity)
{
    gs_cache_plan p;
    const gs_cache_input in = {.access = t->access, .accesses = t->accesses, .units = t->units, .capacity = capacity,
                               .across = true};
    if (gs_cache_plan_make(&p, &in) != GS_OK)
        stop();
    const uint64_t read = p.read_bytes;
    gs_cache_plan_drop(&p);
    return read;
}

/* The last of four epochs. */
static uint64_t lru(const trace *t, uint64_t capacity)
{
    uint64_t *seen = gs_calloc(t->units, sizeof(*seen)), now = 0, used = 0, read = 0;

    if (seen == NULL)
        exit(1);
    for (int epoch = 0; epoch < 4; epoch++) {
        read = 0;
        for (uint32_t k = 0; k < t->accesses; k++) {
            const gs_cache_access *const a = &t->access[k];
            if (seen[a->unit] == 0) {
                read += a->cost;
                if (a->bytes > capacity)
                    continue;
                for (used += a->bytes; used > capacity;) {
                    uint32_t oldest = UINT32_MAX;
                    for (uint32_t u = 0; u < t->units; u++)
                        if (seen[u] != 0 && (oldest == UINT32_MAX || seen[u] < seen[oldest]))
                            oldest = u;
                    used -= t->bytes[oldest];
                    seen[oldest] = 0;
                }
            }
            seen[a->unit] = ++now;
        }
    }
    gs_free(seen);
    return read;
}

/* Units used most often for good, files in their order among equals. */
static uint64_t prefix(const trace *t, uint64_t capacity)
{
    uint32_t *uses = gs_calloc(t->units, sizeof(*uses)), most = 0;
    bool *kept = gs_calloc(t->units, sizeof(*kept));
    uint64_t read = 0;

    if (uses == NULL || kept == NULL)
        exit(1);
    for (uint32_t k = 0; k < t->accesses; k++)
        most = GS_MAX(most, ++uses[t->access[k].unit]);
    for (uint32_t n = most; n > 0; n--)
        for (uint32_t u = 0; u < t->units; u++)
            if (uses[u] == n && t->bytes[u] <= capacity) {
                kept[u] = true;
                capacity -= t->bytes[u];
            }
    for (uint32_t k = 0; k < t->accesses; k++)
        read += kept[t->access[k].unit] ? 0 : t->access[k].cost;
    gs_free(uses);
    gs_free(kept);
    return read;
}

int main(int argc, char **argv)
{
    gs_train_options o;
    gs_session *s = NULL;

    if (argc != 6) {
        fprintf(stderr, "usage: cache_curve STORE MODEL HIDDEN HOST DEVICE\n");
        return 2;
    }
    gs_train_options_init(&o);
    o.model = argv[2];
    o.hidden = (uint32_t)strtoul(argv[3], NULL, 10);
    o.no_cache = true;
    if (gs_size_parse(&o.host_memory, argv[4]) != GS_OK || gs_size_parse(&o.device_memory, argv[5]) != GS_OK ||
        gs_run__open_session(&s, argv[1], &o, GS_RUN_TRAIN, 0, NULL, (gs_variant){0}, NULL) != GS_OK)
        stop();
    const trace t = trace_of(s);
    printf("%u reads of %.1f MiB; working set %.1f MiB\n", t.accesses, (double)belady(&t, 0) / GS_MIB,
           (double)t.working_set / GS_MIB);
    printf("cache / set  belady MiB  lru MiB  prefix MiB  belady / lru\n");
    for (uint32_t k = 0; k <= STEPS; k++) {
        const uint64_t capacity = t.working_set * k / STEPS;
        const double b = (double)belady(&t, capacity), l = (double)lru(&t, capacity), p = (double)prefix(&t, capacity);
        printf("%11.3f %11.1f %8.1f %11.1f %13.3f\n", (double)k / STEPS, b / GS_MIB, l / GS_MIB, p / GS_MIB,
               l > 0 ? b / l : 1);
    }
    gs_free(t.access);
    gs_free(t.bytes);
    gs_session_close(s);
    return 0;
}
