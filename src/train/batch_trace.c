/* batch_trace.c - spans of batches, kept in a ring, and written as Chrome trace events. */
#include "train/batch_trace.h"

#include <math.h>

#include "base/alloc.h"
#include "base/size.h"

#define MOST_SPANS 65536u
#define OF_A_DEVICE 3u /* tracks: its computations, what is picked for it, copies */

static uint32_t spans_of(uint32_t batches)
{
    return (uint32_t)GS_MIN((uint64_t)batches * GS_BATCH_TRACED_PARTS, MOST_SPANS);
}

uint64_t gs_batch_trace_bytes(uint32_t batches) { return spans_of(batches) * sizeof(gs_batch_span); }

gs_status gs_batch_trace_open(gs_batch_trace *t, uint32_t batches)
{
    *t = (gs_batch_trace){.most = spans_of(batches)};
    t->span = gs_malloc_array(t->most, sizeof(*t->span));
    return t->span != NULL ? GS_OK : gs_fail(GS_ENOMEM, "out of memory for the trace");
}

void gs_batch_trace_close(gs_batch_trace *t)
{
    gs_free(t->span);
    *t = (gs_batch_trace){0};
}

void gs_batch_trace_clear(gs_batch_trace *t) { t->spans = 0; }

void gs_batch_trace_add(gs_batch_trace *t, gs_batch_span span)
{
    if (t->span != NULL)
        t->span[t->spans++ % t->most] = span;
}

void gs_batch_trace_add_pass(gs_batch_trace *t, const gs_batch_pass *p)
{
    const double at[][2] = {{p->began, p->picked}, {p->picked, p->sent}, {p->stats.entered, p->stats.computed},
                            {p->stats.computed, p->ended}};
    const bool copied = p->stats.copied_in_bytes + p->stats.copied_out_bytes > 0;

    for (uint16_t k = GS_BATCH_PICK; k <= GS_BATCH_RETURN && p->batch != NULL; k++) {
        if (k != GS_BATCH_PICK && k != GS_BATCH_COMPUTE && !copied)
            continue;
        const double *const span = at[k - GS_BATCH_PICK];
        gs_batch_trace_add(t, (gs_batch_span){.begin = span[0], .end = span[1], .batch = p->batch->number,
                                              .vertices = p->batch->vertices, .edges = p->batch->edges, .part = k,
                                              .device = (uint16_t)p->device});
    }
}

/* ---- written ------------------------------------------------------------- */

static uint32_t track_of(const gs_batch_span *s)
{
    static const uint32_t of[] = {[GS_BATCH_DRAW] = 0,    [GS_BATCH_STEP] = 1, [GS_BATCH_COMPUTE] = 2,
                                  [GS_BATCH_PICK] = 3, [GS_BATCH_SEND] = 4, [GS_BATCH_RETURN] = 4};
    return 1 + of[s->part] + (s->part < GS_BATCH_PICK ? 0 : OF_A_DEVICE * s->device);
}

static void write_tracks(FILE *out, uint32_t devices)
{
    static const char *const of[OF_A_DEVICE] = {"device", "rows of device", "copies of device"};

    gs_trace_track(out, 1, "drawing");
    gs_trace_track(out, 2, "optimiser");
    for (uint32_t k = 0; k < devices * OF_A_DEVICE; k++) {
        char name[32];
        snprintf(name, sizeof(name), "%s %u", of[k % OF_A_DEVICE], k / OF_A_DEVICE);
        gs_trace_track(out, 3 + k, name);
    }
}

static void write_span(const gs_batch_span *s, double origin, FILE *out)
{
    static const char *const name[] = {"draw", "step", "pick", "send", "compute", "return"};

    fprintf(out,
            ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%.1f,\"dur\":%.1f,\"name\":\"%s\",\"args\":{\"batch\":%u",
            track_of(s), (s->begin - origin) * 1e6, (s->end - s->begin) * 1e6, name[s->part], s->batch);
    if (s->vertices > 0)
        fprintf(out, ",\"vertices\":%u,\"edges\":%llu", s->vertices, (unsigned long long)s->edges);
    fputs("}}", out);
}

gs_status gs_batch_trace_write(const gs_batch_trace *t, uint32_t devices, const char *other, FILE *out,
                               const char *path)
{
    const uint64_t first = t->spans > t->most ? t->spans - t->most : 0;
    double origin = INFINITY;

    for (uint64_t k = first; k < t->spans; k++)
        origin = GS_MIN(origin, t->span[k % t->most].begin);
    gs_trace_begin(out, other, "batches");
    write_tracks(out, devices);
    for (uint64_t k = first; k < t->spans; k++)
        write_span(&t->span[k % t->most], origin, out);
    return gs_trace_end(out, path);
}
