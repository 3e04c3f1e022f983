#include "session/plan_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/machine.h"
#include "session/session.h"

static gs_status add_program(gs_hash_stream *h, const gs_program *p)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const f = open_memstream(&text, &bytes);
    bool whole;

    if (f == NULL)
        return gs_fail(GS_ENOMEM, "no memory to tell the plan's program");
    gs_program_print(p, f);
    whole = fclose(f) == 0;
    if (whole)
        gs_hash_add(h, text, bytes);
    free(text);
    return whole ? GS_OK : gs_fail(GS_ENOMEM, "no memory to tell the plan's program");
}

/* By which checkpoints know kinds: reads and writes come first, copies and loads last. */
static uint64_t number_of(const gs_task *t)
{
    const uint32_t lane = gs_task_lane(t);
    if (t->kind != GS_TASK_MOVE)
        return 1u + t->kind;
    return lane < GS_LANE_DEVICES ? lane : GS_TASK_KINDS + (lane - GS_LANE_DEVICES) % GS_DEVICE_LANES;
}

static void add_task(gs_hash_stream *h, const gs_plan *p, const gs_task *t)
{
    const bool disk = gs_task_is_transfer(t), peer = gs_task_driver(t) == GS_DRIVER_PEER;
    const uint64_t field[] = {
        number_of(t), t->stage, t->file, t->sum, t->target, t->operand, t->rows,
        peer ? t->source.memory - GS_DEVICE_MEMORIES : 0, t->device, t->first_row,
        disk ? gs_task_on_disk(t)->offset : 0, t->bytes, t->chunk_bytes,
        disk ? gs_task_off_disk(t)->region : t->place.region, disk ? GS_REGION_NONE : t->source.region,
    };

    gs_hash_add(h, field, sizeof(field));
    if (t->kind == GS_TASK_MOVE && t->runs > 0)
        gs_hash_add(h, p->run + t->first_run, t->runs * sizeof(*p->run));
}

static void add_plan(gs_hash_stream *h, const gs_plan *p)
{
    for (uint32_t i = 0; i < p->tasks; i++)
        add_task(h, p, &p->task[i]);
    for (uint32_t i = 0; i < p->residents; i++) {
        const gs_resident *const r = &p->resident[i];
        const uint64_t field[] = {r->file, r->memory - GS_HOST, r->first, r->bytes, r->load,
                                  r->made_by, r->target, r->operand};
        gs_hash_add(h, field, sizeof(field));
    }
}

gs_status gs_session_plan_id(const gs_session *s, uint64_t *out)
{
    gs_hash_stream *const h = gs_hash_begin();
    const uint64_t devices = s->machine.devices;
    gs_status st;

    if (h == NULL)
        return gs_fail(GS_ENOMEM, "no memory to tell the plan");
    gs_hash_add(h, &devices, sizeof(devices));
    if ((st = add_program(h, s->program)) == GS_OK) {
        add_plan(h, s->plan);
        *out = gs_hash_so_far(h);
    }
    gs_hash_end(h);
    return st;
}

void gs_session_maker(const gs_session *s, char out[GS_MAKER_BYTES])
{
    const char *const name = gs_device_name(s->machine.device[0]), *const threads = strrchr(name, ',');
    const bool unified = gs_device_unified(s->machine.device[0]), beside = unified && gs_session_has_memories(s);
    const size_t named = unified && threads != NULL ? (size_t)(threads - name) : strlen(name);
    char model[GS_PROCESSOR_BYTES];

    gs_processor_name(model);
    snprintf(out, GS_MAKER_BYTES, "gnnstream %s on %s: %.*s%s%s%s", GS_VERSION, model, (int)named, name,
             named < strlen(name) ? ")" : "", beside ? ", " : "",
             beside ? gs_device_name(s->machine.device[s->machine.lead]) : "");
}
