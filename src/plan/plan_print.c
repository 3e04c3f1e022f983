/* plan_print.c - a plan as text (plan.h). */
#include "plan/plan.h"

#include <inttypes.h>

static const char *const regions[GS_REGION_COUNT] = {
    [GS_REGION_NONE] = "-", [GS_REGION_RING] = "ring", [GS_REGION_RESIDENT] = "resident", [GS_REGION_ARENA] = "arena",
};

static void print_place(const char *name, gs_place place, FILE *out)
{
    if (place.region != GS_REGION_NONE)
        fprintf(out, " %s %s+%" PRIu64, name, regions[place.region], place.offset);
}

static void print_number(const char *name, uint64_t value, FILE *out)
{
    if (value != 0)
        fprintf(out, " %s %" PRIu64, name, value);
}

/* Indices that may be GS_NONE. */
static void print_index(const char *name, uint32_t value, FILE *out)
{
    if (value != GS_NONE)
        fprintf(out, " %s %" PRIu32, name, value);
}

static void print_runs_or_rows(const gs_plan *plan, const gs_program *program, const gs_task *t, FILE *out)
{
    if (t->kind != GS_TASK_MOVE) {
        print_number("rows", t->rows, out);
        for (uint32_t r = 0; r < gs_task_registers(t, program); r++)
            print_place("reg", plan->reg[t->first_reg + r], out);
        return;
    }
    for (uint32_t r = 0; r < t->runs; r++)
        fprintf(out, " run %" PRIu32 "+%" PRIu32, plan->run[t->first_run + r].first,
                plan->run[t->first_run + r].blocks);
}

/* Tasks of the same run, or of the run before (`of`), by number. */
static void print_waits(const gs_plan *plan, const char *of, uint32_t first, uint32_t deps, FILE *out)
{
    if (deps > 0)
        fprintf(out, " %s", of);
    for (uint32_t d = 0; d < deps; d++)
        fprintf(out, "%s%" PRIu32, d > 0 ? "," : " ", plan->dep[first + d]);
}

static void print_task(const gs_plan *plan, const gs_program *program, uint32_t number, FILE *out)
{
    const gs_task *const t = &plan->task[number];

    fprintf(out, "%" PRIu32 " %s lane %" PRIu32 " stage %" PRIu32, number, gs_task_word(t), gs_task_lane(t), t->stage);
    print_number("check", t->check, out);
    print_number("device", t->device, out);
    if (gs_task_driver(t) == GS_DRIVER_PEER)
        print_number("peer", t->source.memory - GS_DEVICE_MEMORIES, out);
    print_number("file", t->file, out);
    print_index(gs_task_moves_rows(t) ? "row_bytes" : "sum", t->sum, out);
    print_number("target", t->target, out);
    print_number("operand", t->operand, out);
    print_number(gs_task_moves_rows(t) ? "rows" : "row", t->first_row, out);
    if (gs_task_is_transfer(t))
        print_number("offset", gs_task_on_disk(t)->offset, out);
    print_number("bytes", t->bytes, out);
    print_number("chunk_bytes", t->chunk_bytes, out);
    print_place("at", gs_task_writes(t) ? t->source : t->place, out);
    print_place("from", gs_task_writes(t) ? t->place : t->source, out);
    print_place("chunk", t->chunk, out);
    print_runs_or_rows(plan, program, t, out);
    print_waits(plan, "after", t->first_dep, t->deps, out);
    fputc('\n', out);
}

static void print_pass(const gs_plan_pass *x, uint32_t number, FILE *out)
{
    fprintf(out, "pass %" PRIu32 " tasks %" PRIu32 "+%" PRIu32, number, x->first_task, x->tasks);
    print_number("read", x->read_bytes, out);
    print_number("requests", x->read_requests, out);
    print_number("written", x->written_bytes, out);
    print_number("loaded", x->loaded_bytes, out);
    print_number("skipped", x->skipped_bytes, out);
    print_number("cached", x->cached_bytes, out);
    print_number("device_cached", x->device_cached_bytes, out);
    print_number("edges", x->edges, out);
    print_number("rows", x->rows, out);
    print_number("edge_bytes", x->edge_bytes, out);
    print_number("uploaded", x->upload_bytes, out);
    print_number("forwarded", x->forward_bytes, out);
    print_number("downloaded", x->download_bytes, out);
    fprintf(out, " blocks %" PRIu32 " dense %.0f edge %.0f\n", x->blocks, x->dense_flops, x->edge_flops);
}

static void print_resident(const gs_resident *r, FILE *out)
{
    fprintf(out, "kept file %" PRIu32 " memory %" PRIu32 " %" PRIu64 "+%" PRIu64 " at %" PRIu64 "%s", r->file,
            r->memory - GS_HOST, r->first, r->bytes, r->offset, r->load ? " load" : "");
    print_index("made_by", r->made_by, out);
    print_number("target", r->target, out);
    print_number("operand", r->operand, out);
    fputc('\n', out);
}

static void print_totals(const gs_plan *plan, const gs_program *program, FILE *out)
{
    for (uint32_t a = 0; a < program->arrays && plan->spill.bytes != NULL; a++)
        if (plan->spill.bytes[a] > 0)
            fprintf(out, "spill array %" PRIu32 " %" PRIu64 "+%" PRIu64 "\n", a, plan->spill.first[a],
                    plan->spill.bytes[a]);
    for (uint32_t d = 0; d < plan->devices; d++)
        fprintf(out, "arena %" PRIu32 " %" PRIu64 "\n", d, plan->arena_bytes[d]);
    fprintf(out, "regions %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", plan->region_bytes[GS_REGION_RING],
            plan->region_bytes[GS_REGION_RESIDENT], plan->region_bytes[GS_REGION_ARENA]);
    fprintf(out, "spilled %" PRIu64 " lasting %" PRIu64 " flight %" PRIu64 " tables %" PRIu64 " host %" PRIu64
                 " device %" PRIu64 "\n",
            plan->spill.total, plan->lasting_bytes, plan->flight_bytes, plan->table_bytes, plan->host_bytes,
            plan->device_bytes);
}

void gs_plan_print(const gs_plan *plan, const gs_program *program, FILE *out)
{
    fprintf(out, "devices %" PRIu32 "%s%s\n", plan->devices, plan->ring ? " ring" : "", plan->loads ? " loads" : "");
    for (uint32_t t = 0; t < plan->tasks; t++)
        print_task(plan, program, t, out);
    for (uint32_t a = 0; a < plan->aheads; a++) {
        fprintf(out, "ahead %" PRIu32, plan->ahead[a].task);
        print_waits(plan, "after", plan->ahead[a].first_dep, plan->ahead[a].deps, out);
        fputc('\n', out);
    }
    for (uint32_t r = 0; r < plan->residents; r++)
        print_resident(&plan->resident[r], out);
    for (uint32_t p = 0; p < plan->passes; p++)
        print_pass(&plan->pass[p], p, out);
    print_totals(plan, program, out);
}
