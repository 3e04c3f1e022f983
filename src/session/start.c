/* start.c - taking the memory of the plan and making the files of the run. */
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "base/temporary.h"
#include "session/prune.h"
#include "session/session.h"
#include "session/tables.h"

#define SAY_AFTER 60.0 /* seconds in which nothing comes back, after which stderr is told */

/* ---- spill folder -------------------------------------------------------- */

static bool plan_spills(const gs_session *s)
{
    return s->edges.sets > 2 || s->plan->spill.total > 0;
}

uint64_t gs_session_spill_bytes(const gs_session *s)
{
    uint64_t bytes = s->plan->spill.total;
    for (uint32_t k = 2; k < s->edges.sets; k++)
        bytes += s->edges.pruned[k].bytes;
    return bytes;
}

/* Before anything is written. */
static gs_status check_disk(const gs_session *s)
{
    char wanted[32], there[32];
    const uint64_t bytes = gs_session_spill_bytes(s), left = gs_disk_free(s->run.spill.path);
    if (bytes <= left)
        return GS_OK;
    return gs_fail(
        GS_EIO,
        "%s: no space: the run spills %s, and the disk has %s left; choose another folder with .spill, or give "
        "more .host_memory%s",
        s->config.options->spill != NULL ? s->config.options->spill : gs_store_dir(s->store),
        gs_size_format(wanted, sizeof(wanted), bytes), gs_size_format(there, sizeof(there), left),
        gs_program_pass(s->program, "setup") != GS_NONE ? ", or spill less with .no_hoist" : "");
}

/* A folder of its own (base/temporary.h) within --spill, or within the store: removed whole, with --spill itself where
 * that was made for it. */
static gs_status make_spill_dir(gs_session *s)
{
    const gs_status st = gs_scratch_make(&s->run.spill, gs_session_scratch_dir(s));
    return st == GS_OK ? GS_OK : gs_fail_hint(st, "choose a folder for what does not fit in memory with .spill");
}

const char *gs_session_scratch_dir(const gs_session *s)
{
    if (s->run.spill.path != NULL)
        return s->run.spill.path;
    return s->config.options->spill != NULL ? s->config.options->spill : gs_store_dir(s->store);
}

/* ---- what exec must know ------------------------------------------------- */

static gs_status copy_chunks(gs_session *s)
{
    const uint32_t parts = gs_store_chunks(s->store)->parts;
    const uint64_t n = (uint64_t)parts * parts;

    for (uint32_t k = 0; k < s->edges.sets; k++) {
        if (!gs_session_uses_set(s, k))
            continue;
        if ((s->run.chunk[k] = gs_malloc_array(n, sizeof(*s->run.chunk[k]))) == NULL)
            return gs_fail(GS_ENOMEM, "no memory for the tables of %llu chunks", (unsigned long long)n);
        for (uint64_t i = 0; i < n; i++) {
            const gs_chunk *const c = &s->edges.set[k].chunk[i];
            s->run.chunk[k][i] = (gs_exec_chunk){c->checksum, c->edges, c->targets, c->operands, c->length, c->largest};
        }
    }
    return GS_OK;
}

static uint64_t edge_file_bytes(const gs_chunk_table *t, gs_direction d)
{
    uint64_t end = 0;
    for (uint64_t i = 0; i < (uint64_t)t->parts * t->parts; i++)
        end = GS_MAX(end, t->chunk[d][i].offset + t->chunk[d][i].length);
    return end;
}

/* Describes the files of a run; the session owns their paths. */
static gs_status describe_files(const gs_session *s, gs_exec_file *file)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    const uint32_t arrays = s->program->arrays;
    char **const path = s->run.path;

    for (uint32_t a = 0; a < arrays; a++) {
        const int id = s->program->array[a].store_id;
        if (id >= 0) {
            const gs_array_info *const info = gs_store_array(s->store, (gs_array_id)id);
            path[a] = gs_store_array_path(s->store, (gs_array_id)id);
            file[a] = (gs_exec_file){.sums = info->sums, .sum_bytes = GS_SUM_BYTES, .bytes = info->bytes};
        } else if (s->plan->spill.bytes[a] != 0) {
            path[a] = gs_path_join(s->run.spill.path, "arrays.bin");
            file[a] = (gs_exec_file){.create = true, .bytes = s->plan->spill.total};
        } else {
            continue; /* wholly in memory */
        }
        if (path[a] == NULL)
            return gs_fail(GS_ENOMEM, "out of memory");
        file[a].path = path[a];
    }
    for (uint32_t k = 2; k < s->edges.sets; k++)
        file[arrays + k] = (gs_exec_file){.path = s->edges.pruned[k].path, .bytes = s->edges.pruned[k].bytes};
    for (uint32_t d = 0; d < 2; d++) {
        if ((path[arrays + d] = gs_store_edges_path(s->store, (gs_direction)d)) == NULL)
            return gs_fail(GS_ENOMEM, "out of memory");
        file[arrays + d] = (gs_exec_file){.path = path[arrays + d], .bytes = edge_file_bytes(t, (gs_direction)d)};
    }
    return GS_OK;
}

/* Open files need no name: without one, spilled data goes away however the
 * process ends. A file system that refuses keeps it until the session closes. */
static void unname_spill(const gs_session *s)
{
    for (uint32_t a = 0; a < s->program->arrays; a++)
        if (s->plan->spill.bytes[a] != 0)
            (void)unlink(s->run.path[a]);
    for (uint32_t k = 2; k < s->edges.sets; k++)
        (void)unlink(s->edges.pruned[k].path);
}

static gs_status open_exec(gs_session *s)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    const uint32_t files = s->program->arrays + s->edges.sets;
    const double timeout = s->config.options->io_timeout;
    gs_exec_file *const file = gs_calloc(files, sizeof(*file));
    gs_status st;

    s->run.path = gs_calloc(files, sizeof(*s->run.path));
    if (file == NULL || s->run.path == NULL) {
        st = gs_fail(GS_ENOMEM, "out of memory");
        goto done;
    }
    if ((st = describe_files(s, file)) != GS_OK)
        goto done;
    const gs_exec_config config = {
        .program = s->program,
        .plan = s->plan,
        .device = s->machine.device,
        .topology = s->machine.topology,
        .tree = s->machine.tree,
        .node = s->machine.tree != NULL ? s->machine.node : NULL,
        .gradients = s->pass.gradients,
        .file = file,
        .parts = t->parts,
        .interval_rows = t->interval_rows,
        .vertices = t->vertices,
        .index_bytes = gs_index_bytes(t),
        .type_bytes = t->type_bytes,
        .edge_types = gs_store_get_info(s->store)->edge_types,
        .weights = t->weights,
        .sets = s->edges.sets,
        .chunk = (const gs_exec_chunk *const *)s->run.chunk,
        .io = GS_IO_AUTO,
        .no_verify = s->config.options->no_verify,
        .trace = s->config.timed,
        .say_after = timeout > 0 ? GS_MIN(SAY_AFTER, timeout / 2) : SAY_AFTER,
        .end_after = timeout,
    };
    st = gs_exec_open(&s->run.exec, &config);
    if (st == GS_OK)
        st = gs_store_check_place(s->store);
    if (st == GS_OK)
        unname_spill(s);
done:
    gs_free(file);
    return st;
}

static gs_status start(gs_session *s)
{
    gs_status st;

    if ((st = gs_session_read_labels(s)) != GS_OK)
        return st;
    st = gs_params_alloc(&s->run.params, s->program, s->pass.gradients,
                         gs_session_steps_on_device(s) ? 0 : s->config.states);
    for (uint32_t d = 0; d < s->machine.devices && st == GS_OK; d++)
        st = gs_device_prepare(s->machine.device[d], s->program);
    if (st == GS_OK && gs_session_keeps_best(s))
        st = gs_params_take_best(&s->run.params);
    if (st != GS_OK)
        return st;
    if ((st = gs_session_take_tables(s)) != GS_OK)
        return st;
    if (plan_spills(s) && ((st = make_spill_dir(s)) != GS_OK || (st = check_disk(s)) != GS_OK))
        return st;
    if ((st = gs_session_write_pruned(s)) != GS_OK || (st = copy_chunks(s)) != GS_OK)
        return st;
    gs_alloc_trim(); /* of the plans that were tried, before the memory of the chosen one is taken */
    return open_exec(s);
}

gs_status gs_session_start(gs_session *s)
{
    const gs_status st = start(s);

    /* Files may look damaged because another store has taken this one's place. */
    if (st == GS_EFORMAT || st == GS_EIO || st == GS_ENOTFOUND)
        return gs_store_check_place(s->store) != GS_OK ? GS_EIO : st;
    return st;
}
