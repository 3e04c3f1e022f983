/* session_run.c - a session with a plan: started, run pass by pass, closed. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "base/temporary.h"
#include "io/io.h" /* gs_io_stripe_bytes */
#include "plan/part.h"
#include "ranks/ranks.h"
#include "session/choose_products.h"
#include "session/describe.h"
#include "session/edges.h"
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

/* A comma in a name cannot be told from one between names. */
static gs_status cut_words(gs_spill_folders *f, const char *words)
{
    char *rest, *name;

    if (strchr(words, ',') != NULL && gs_path_exists(words))
        return gs_fail(GS_EINVAL, ".spill %s: is a name with a comma, which stands between folders; give a link to it "
                       "that has none", words);
    GS_NEED((f->words = gs_strdup(words)) != NULL, "out of memory");
    for (rest = f->words; (name = strsep(&rest, ",")) != NULL; f->parent[f->count++] = name)
        if (*name == '\0')
            return gs_fail(GS_EINVAL, ".spill \"%s\": a folder has no name; put one comma between two", words);
        else if (f->count == GS_SPILL_FOLDERS)
            return gs_fail(GS_EINVAL, ".spill %s: more than %u folders", words, GS_SPILL_FOLDERS);
    return GS_OK;
}

gs_status gs_session_list_spill(gs_session *s)
{
    gs_spill_folders *const f = &s->run.spill;

    if (s->config.options->spill != NULL)
        return cut_words(f, s->config.options->spill);
    f->parent[f->count++] = gs_store_dir(s->store);
    return GS_OK;
}

/* Edges go to where the least is. */
static void deal(gs_session *s)
{
    gs_spill_folders *const f = &s->run.spill;

    for (uint32_t i = 0; i < f->count; i++)
        f->bytes[i] = gs_io_stripe_bytes(s->plan->spill.total, f->count);
    for (uint32_t k = 2; k < s->edges.sets; k++) {
        uint32_t to = 0;
        for (uint32_t i = 1; i < f->count; i++)
            to = f->bytes[i] < f->bytes[to] ? i : to;
        s->edges.pruned[k].folder = to;
        f->bytes[to] += s->edges.pruned[k].bytes;
    }
}

/* Before anything is written. Several folders may share a disk. */
static gs_status check_disk(const gs_session *s, uint32_t folder)
{
    const gs_spill_folders *const f = &s->run.spill;
    const uint64_t left = gs_disk_free(f->own[folder].path);
    char wanted[32], there[32];
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < f->count; i++)
        bytes += gs_path_shares_disk(f->own[i].path, f->own[folder].path) ? f->bytes[i] : 0;
    if (bytes <= left)
        return GS_OK;
    return gs_fail(
        GS_EIO,
        "%s: no space: the run spills %s there, and the disk has %s left; choose another folder with .spill, or give "
        "more .host_memory%s",
        f->parent[folder], gs_size_format(wanted, sizeof(wanted), bytes), gs_size_format(there, sizeof(there), left),
        gs_program_pass(s->program, "setup") != GS_NONE ? ", or spill less with .no_hoist" : "");
}

/* A folder of its own (base/temporary.h) within each of --spill, or within the store: removed whole, with that of
 * --spill itself where it was made for it. */
static gs_status make_spill_dirs(gs_session *s)
{
    gs_spill_folders *const f = &s->run.spill;

    deal(s);
    for (uint32_t i = 0; i < f->count; i++) {
        const gs_status st = gs_scratch_make(&f->own[i], f->parent[i]);
        if (st != GS_OK)
            return gs_fail_hint(st, "choose a folder for what does not fit in memory with .spill");
        for (uint32_t k = 0; k < i; k++)
            if (gs_path_is_same(f->parent[k], f->parent[i]))
                return gs_fail(GS_EINVAL, ".spill %s: %s and %s are one folder; give it once",
                               s->config.options->spill, f->parent[k], f->parent[i]);
        GS_NEED((f->arrays[i] = gs_path_join(f->own[i].path, "arrays.bin")) != NULL, "out of memory");
    }
    for (uint32_t i = 0; i < f->count; i++)
        GS_TRY(check_disk(s, i));
    return GS_OK;
}

const char *gs_session_scratch_dir(const gs_session *s)
{
    const gs_spill_folders *const f = &s->run.spill;
    return f->own[0].path != NULL ? f->own[0].path : f->parent[0];
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
            file[a] = (gs_exec_file){.sums = info->sums, .sum_bytes = GS_SUM_BYTES, .bytes = info->bytes,
                                     .first = gs_store_array_extent(s->store, (gs_array_id)id).first};
        } else if (s->plan->spill.bytes[a] != 0) {
            path[a] = gs_strdup(s->run.spill.arrays[0]);
            file[a] = (gs_exec_file){.create = true, .stripe = s->run.spill.arrays + 1, .bytes = s->plan->spill.total};
        } else {
            continue; /* wholly in memory */
        }
        GS_NEED(path[a] != NULL, "out of memory");
        file[a].path = path[a];
    }
    for (uint32_t k = 2; k < s->edges.sets; k++)
        file[arrays + k] = (gs_exec_file){.path = s->edges.pruned[k].path, .bytes = s->edges.pruned[k].bytes};
    for (uint32_t d = 0; d < 2; d++) {
        GS_NEED((path[arrays + d] = gs_store_edges_path(s->store, (gs_direction)d)) != NULL, "out of memory");
        file[arrays + d] = (gs_exec_file){.path = path[arrays + d], .bytes = edge_file_bytes(t, (gs_direction)d),
                                          .first = gs_store_edges_extent(s->store, (gs_direction)d).first};
    }
    return GS_OK;
}

/* The bytes of a file of the run's that are there; of the run's own all. */
static gs_extent extent_of(const gs_session *s, uint32_t file)
{
    const uint32_t arrays = s->program->arrays;
    const int id = file < arrays ? s->program->array[file].store_id : -1;

    if (id >= 0)
        return gs_store_array_extent(s->store, (gs_array_id)id);
    if (file >= arrays && file - arrays < 2)
        return gs_store_edges_extent(s->store, (gs_direction)(file - arrays));
    return (gs_extent){0, UINT64_MAX};
}

/* A rank reads nothing that its shard has not got. */
static gs_status check_reads(const gs_session *s)
{
    const gs_plan *const p = s->run.part;

    if (gs_store_get_shard(s->store) == NULL)
        return GS_OK;
    for (const gs_task *t = p->task; t < p->task + p->tasks; t++)
        if (gs_task_reads(t))
            GS_TRY(gs_extent_check(extent_of(s, t->file), t->source.offset, t->bytes, s->run.path[t->file]));
    for (const gs_resident *r = p->resident; r < p->resident + p->residents; r++)
        if (r->load && r->made_by == GS_NONE && r->rank == p->rank)
            GS_TRY(gs_extent_check(extent_of(s, r->file), r->first, r->bytes, s->run.path[r->file]));
    return GS_OK;
}

/* Open files need no name: without one, spilled data goes away however the
 * process ends. A file system that refuses keeps it until the session closes. */
static void unname_spill(const gs_session *s)
{
    for (uint32_t i = 0; s->plan->spill.total > 0 && i < s->run.spill.count; i++)
        (void)unlink(s->run.spill.arrays[i]);
    for (uint32_t k = 2; k < s->edges.sets; k++)
        (void)unlink(s->edges.pruned[k].path);
}

static gs_status open_exec(gs_session *s)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    const uint32_t files = s->program->arrays + s->edges.sets;
    const double timeout = s->config.options->io_timeout;
    GS_FREED gs_exec_file *const file = gs_calloc(files, sizeof(*file));

    s->run.path = gs_calloc(files, sizeof(*s->run.path));
    GS_NEED(file != NULL && s->run.path != NULL, "out of memory");
    GS_TRY(describe_files(s, file));
    GS_TRY(check_reads(s));
    const gs_exec_config config = {
        .program = s->program,
        .plan = s->run.part != NULL ? s->run.part : s->plan,
        .device = &s->machine.device[s->run.part != NULL ? s->run.part->rank : 0],
        .topology = &s->machine.wires,
        .tree = s->machine.tree,
        .node = s->machine.tree != NULL ? s->machine.node : NULL,
        .gradients = s->pass.gradients,
        .file = file,
        .parts = t->parts,
        .interval_rows = t->interval_rows,
        .vertices = t->vertices,
        .index_bytes = gs_index_bytes(t),
        .edge_data = t->data,
        .edge_types = gs_store_get_info(s->store)->edge_types,
        .edge_feature_type = gs_store_get_info(s->store)->edge_feature_type,
        .sets = s->edges.sets,
        .chunk = (const gs_exec_chunk *const *)s->run.chunk,
        .io = GS_IO_AUTO,
        .no_verify = s->config.options->no_verify,
        .trace = s->config.timed,
        .say_after = timeout > 0 ? GS_MIN(SAY_AFTER, timeout / 2) : SAY_AFTER,
        .end_after = timeout,
    };
    GS_TRY(gs_exec_open(&s->run.exec, &config));
    GS_TRY(gs_store_check_place(s->store));
    unname_spill(s);
    return GS_OK;
}

/* Each rank has made the plan by itself: is it the same? */
static gs_status compare_plans(const gs_session *s)
{
    uint64_t own = 0, all[GS_RANKS_MOST];

    GS_TRY(gs_session_plan_id(s, &own));
    GS_TRY(gs_ranks_gather(all, &own, sizeof(own)));
    for (uint32_t r = 1; r < gs_ranks_count(); r++)
        if (all[r] != all[0])
            return gs_fail(GS_EINVAL, "rank %u makes another plan than rank 0: give .host_memory, .device_memory and "
                           ".threads, and see that the ranks have one store", r);
    return GS_OK;
}

/* Of several ranks, what this one runs. */
static gs_status take_part(gs_session *s)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);

    if (gs_ranks_count() == 1)
        return GS_OK;
    const gs_part_rows rows = {gs_session_owners(s), gs_session_dealt_arrays(s)};
    if ((s->program->tables > 0 || s->pairs.judged != GS_NONE) && rows.first == NULL)
        return gs_fail(GS_EUNSUPPORTED, ".topology %s: says how ranks lie, and rows of vertices that are learned, or "
                       "that pairs read, are dealt by the store alone; leave it out", s->config.options->topology);
    GS_TRY(compare_plans(s));
    return gs_plan_take_part(&s->run.part, s->plan, s->program, t->parts, t->interval_rows,
                             rows.first != NULL ? &rows : NULL, gs_ranks_self());
}

static gs_status start(gs_session *s)
{
    GS_TRY(take_part(s));
    GS_TRY(gs_session_read_labels(s));
    GS_TRY(gs_params_alloc(&s->run.params, s->program, s->pass.gradients,
                           gs_session_steps_on_device(s) ? 0 : s->config.states));
    for (uint32_t d = 0; d < s->machine.devices; d++)
        if (s->run.part == NULL || d == s->run.part->rank)
            GS_TRY(gs_device_prepare(s->machine.device[d], s->program));
    if (gs_session_keeps_best(s))
        GS_TRY(gs_params_take_best(&s->run.params));
    GS_TRY(gs_session_take_tables(s));
    if (plan_spills(s))
        GS_TRY(make_spill_dirs(s));
    GS_TRY(gs_session_write_pruned(s));
    GS_TRY(copy_chunks(s));
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

/* ---- a step --------------------------------------------------------------- */

/* Parameters that devices hold for the run, and the optimiser's step there. */

/* A model may have no parameters beside tables, and then no memory of theirs. */
static void copy_values(float *to, const float *from, uint64_t elements)
{
    if (elements > 0)
        memcpy(to, from, elements * sizeof(float));
}

bool gs_session_steps_on_device(const gs_session *s)
{
    /* Not where two sessions share them, nor where the host makes gradients of some, which score pairs, or adds those
     * of other ranks. */
    bool all = s->pass.gradients && s->config.batch == NULL && !s->config.on_batches && s->config.pair_params == 0 &&
               gs_ranks_count() == 1;
    for (uint32_t d = 0; d < s->machine.devices; d++)
        all = all && gs_device_steps(s->machine.device[d]);
    return all;
}

gs_status gs_session_keep_params(gs_session *s)
{
    for (uint32_t d = 0; gs_session_steps_on_device(s) && d < s->machine.devices; d++)
        GS_TRY(gs_device_keep_params(s->machine.device[d], (const float *const *)s->run.params.value,
                                     s->config.states));
    return GS_OK;
}

/* The gradients are the same bits on all devices (gs_device_all_reduce), and so is what each makes of its own copy. */
gs_status gs_session_step(gs_session *s, const gs_update *u)
{
    for (uint32_t d = 0; d < s->machine.devices; d++)
        GS_TRY(gs_device_step(s->machine.device[d], u));
    return GS_OK;
}

gs_status gs_session_fetch_params(gs_session *s)
{
    return gs_session_steps_on_device(s) ? gs_device_fetch_params(s->machine.device[0], s->run.params.value) : GS_OK;
}

uint64_t gs_session_validates(const gs_session *s)
{
    const bool evaluated = s->pass.gradients && (!s->pass.train_differs || s->config.eval_every != 0);
    const gs_store_info *const info = gs_store_get_info(s->store);
    return !evaluated ? 0 : gs_train_task_is_of_pairs(s->labels.task) ? info->links[1] : info->valid;
}

bool gs_session_keeps_best(const gs_session *s) { return s->config.keep_best && gs_session_validates(s) > 0; }

gs_status gs_session_keep_best(gs_session *s)
{
    gs_params *const p = &s->run.params;

    GS_TRY(gs_session_copy_tables(s, true));
    copy_values(p->best, p->values, p->elements);
    return gs_session_steps_on_device(s) ? gs_device_fetch_params(s->machine.device[0], p->best_value) : GS_OK;
}

gs_status gs_session_back_to_best(gs_session *s)
{
    gs_params *const p = &s->run.params;

    GS_TRY(gs_session_copy_tables(s, false));
    copy_values(p->values, p->best, p->elements);
    return gs_session_keep_params(s);
}

/* Devices that step themselves keep the learned ones; what is not learned follows on the host. */
void gs_session_keep_previous(gs_session *s)
{
    gs_params *const p = &s->run.params;
    const uint64_t first = gs_session_steps_on_device(s) ? p->elements - p->fixed_elements : 0;
    copy_values(p->previous + first, p->values + first, p->elements - first);
}

gs_status gs_session_back_to_previous(gs_session *s)
{
    gs_params *const p = &s->run.params;
    const uint64_t first = gs_session_steps_on_device(s) ? p->elements - p->fixed_elements : 0;

    if (gs_session_steps_on_device(s))
        GS_TRY(gs_device_fetch_previous(s->machine.device[0], p->value));
    copy_values(p->values + first, p->previous + first, p->elements - first);
    return gs_session_keep_params(s);
}

/* Gradients of devices that step themselves never come to the host, so there is room for one run. */
gs_status gs_session_state(gs_session *s, uint32_t run, bool bring, float **state)
{
    const bool on_device = gs_session_steps_on_device(s);
    const gs_params *const p = &s->run.params;

    for (uint32_t i = 0; i < p->count; i++) {
        const uint64_t at = (uint64_t)(p->value[i] - p->values);
        state[i] = s->program->param[i].fixed ? NULL : (on_device ? p->grads : p->state[run]) + at;
    }
    return on_device && bring ? gs_device_fetch_state(s->machine.device[0], run, state) : GS_OK;
}

gs_status gs_session_put_state(gs_session *s, uint32_t run, float *const *state)
{
    for (uint32_t d = 0; gs_session_steps_on_device(s) && d < s->machine.devices; d++)
        GS_TRY(gs_device_put_state(s->machine.device[d], run, (const float *const *)state));
    return GS_OK;
}

/* ---- passes of callers ---------------------------------------------------- */

/* Running the passes of a started session. */

gs_status gs_session_setup(gs_session *s)
{
    const uint32_t setup = gs_program_pass(s->program, "setup");
    gs_exec_stats once;
    const gs_status st = setup == GS_NONE ? GS_OK : gs_session_run(s, setup, 0, false, &once);
    return st == GS_OK ? gs_session_measure_products(s) : st;
}

static gs_exec_args args_of(gs_session *s, uint32_t pass, uint32_t epoch)
{
    const bool gradients = pass == s->pass.train;
    return (gs_exec_args){
        .param = (const float *const *)s->run.params.value,
        .grad = gradients ? s->run.params.grad : NULL,
        .made = s->run.params.value,
        .statistic = s->run.params.statistic,
        .seed = s->config.options->seed,
        .epoch = epoch,
        .loss_scale = s->labels.mass > 0 ? (float)(1.0 / s->labels.mass) : 0.0f,
        .loss_smoothing = (float)s->config.options->label_smoothing,
        .loss_weight = s->labels.weight,
        .stop = s->run.part != NULL ? NULL : s->config.options->stop, /* ranks agree on it between passes */
    };
}

static gs_status run(gs_session *s, uint32_t pass, const gs_exec_args *args, gs_exec_stats *out)
{
    if (args->grad != NULL)
        gs_params_zero_grads(&s->run.params);
    gs_params_zero_sums(&s->run.params);
    return gs_exec_run(s->run.exec, pass, args, out);
}

gs_status gs_session_run(gs_session *s, uint32_t pass, uint32_t epoch, bool again, gs_exec_stats *out)
{
    gs_exec_args args = args_of(s, pass, epoch);
    args.again = again;
    return run(s, pass, &args, out);
}

gs_status gs_session_watch(gs_session *s, uint32_t pass, uint32_t epoch, gs_exec_watch *watch, gs_exec_stats *out)
{
    gs_exec_args args = args_of(s, pass, epoch);
    args.watch = watch;
    return run(s, pass, &args, out);
}

gs_status gs_session_rehearse(gs_session *s, uint32_t pass,
                              gs_status (*fn)(void *context, gs_device *device, const gs_edge_program_launch *l),
                              void *context)
{
    gs_exec_args args = args_of(s, pass, 1);
    gs_exec_stats once;
    args.rehearse = fn;
    args.rehearsal = context;
    return run(s, pass, &args, &once);
}

/* ---- closing -------------------------------------------------------------- */

/* Closing a session in whatever state it is. */

/* Held, so that who looks for lost memory sees that it is on purpose. */
static gs_session *given_up;
static pthread_mutex_t given_up_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep(gs_session *s)
{
    pthread_mutex_lock(&given_up_lock);
    s->next = given_up;
    given_up = s;
    pthread_mutex_unlock(&given_up_lock);
}

void gs_session_close(gs_session *s)
{
    if (s == NULL)
        return;
    const bool gave_up = gs_exec_gave_up(s->run.exec);
    gs_exec_close(s->run.exec);
    for (uint32_t i = s->run.spill.count; i-- > 0;) /* one may be within what was made for one before */
        gs_scratch_remove(&s->run.spill.own[i]);
    if (gave_up) { /* the run may still work with the rest */
        keep(s);
        return;
    }
    for (uint32_t i = 0; i < s->run.spill.count; i++)
        gs_free(s->run.spill.arrays[i]);
    gs_free(s->run.spill.words);
    for (uint32_t f = 0; s->run.path != NULL && f < s->program->arrays + s->edges.sets; f++)
        gs_free(s->run.path[f]);
    gs_free(s->run.path);
    for (uint32_t k = 0; k < s->edges.sets; k++)
        gs_free(s->run.chunk[k]);
    gs_session_drop_needs(s);
    gs_session_drop_pruned(s);
    gs_session_drop_labels(s);
    gs_free(s->edges.stage_set);
    gs_session_free_tables(s);
    gs_params_free(&s->run.params);
    gs_plan_free(s->run.part);
    gs_plan_free(s->plan);
    gs_program_free(s->program);
    for (uint32_t d = 0; d < s->machine.devices; d++)
        if (d == 0 || s->machine.device[d] != s->machine.device[0]) /* of ranks one stands for all */
            gs_device_close(s->machine.device[d]);
    gs_tree_close(s->machine.tree);
    gs_store_close(s->store);
    gs_free(s);
}
