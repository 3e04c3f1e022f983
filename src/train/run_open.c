/* run_open.c - opening, running and ending a run. */
#include <string.h>

#include "base/clock.h"
#include "base/machine.h"
#include "base/option_table.h"
#include "base/size.h"
#include "plan/plan.h"
#include "ranks/ranks.h"
#include "schedule/schedule.h"
#include "train/options.h"
#include "train/provenance.h"
#include "train/run_internal.h"

/* ---- the session of a run ------------------------------------------------ */

#define MOST_TRIALS 12
/* By so much a budget is raised, at the least, that was named and does not do. */
#define RAISED_PART 32u
/* And by so much where nothing says what would do. */
#define GUESSED_PART 4u

static gs_status open_beside(gs_session **out, gs_session_config *config, const gs_run_batches *batches)
{
    config->beside_bytes = gs_run_batches_bytes(batches);
    config->beside_device_bytes = gs_batches_device_bytes(gs_run_batches_lead(batches));
    return gs_session_open(out, config);
}

/* Rows of features stay in GPUs' memory where the run fits so: fewer and fewer, then none. */
static gs_status open_spread(gs_session **out, gs_session_config *config, gs_run_batches *batches)
{
    static const uint32_t shares[] = {2, 4, 8, 0};
    gs_status st = GS_EBUDGET;

    for (size_t k = 0; k < GS_ARRAY_LEN(shares) && st == GS_EBUDGET; k++)
        if (gs_run_batches_spread(batches, shares[k]) || shares[k] == 0)
            st = open_beside(out, config, batches);
    return st;
}

/* What is short may be the host's memory alone: then such rows are tried again with what is left of it. */
static gs_status open_fitting(gs_session **out, gs_session_config *config, gs_run_batches *batches)
{
    gs_status st = open_spread(out, config, batches);
    bool shrunk = false;

    while (st == GS_EBUDGET && gs_run_batches_shrink(batches)) {
        shrunk = true;
        st = open_beside(out, config, batches);
    }
    if (st != GS_OK || !shrunk || !gs_run_batches_spread(batches, 2))
        return st;
    gs_session_close(*out);
    *out = NULL;
    return open_spread(out, config, batches);
}

/* Edges are in memory where the run fits so, and in the store where only that does. */
static gs_status open_on_batches(gs_session **out, gs_session_config *config, gs_run_batches **batches)
{
    bool stream = false;

    for (;;) {
        config->on_batches = false;
        config->timed = config->options->profile;
        *config->refused = (gs_refusal){0};
        GS_TRY(gs_run_batches_open(batches, config, stream));
        config->on_batches = true;
        config->timed = false; /* evaluations are not */
        const gs_status st = open_fitting(out, config, *batches);
        if (st != GS_EBUDGET || !gs_run_batches_may_stream(*batches))
            return st;
        gs_run_batches_close(*batches);
        *batches = NULL;
        stream = true;
    }
}

/* What batches of pairs take beside the session is known before it is planned. */
static gs_status count_pairs(gs_session_config *config, gs_param param[GS_PAIR_PARAMS], bool seeds)
{
    const gs_train_options *const o = config->options;
    const bool trains = config->purpose == GS_FOR_TRAINING;
    GS_ENDS(gs_store_close_at) gs_store *store = NULL;
    GS_ENDS(gs_run_pairs_close_at) gs_run_pairs *pairs = NULL;

    GS_TRY(gs_run_pairs_are_rows_alone(&config->rows_alone, o));
    if (seeds && config->rows_alone)
        return gs_fail(GS_EINVAL, ".seeds edges: the model has no layer that neighbours' messages come to; leave it "
                       "out");
    if (config->rows_alone && gs_ranks_count() == 1 && strcmp(o->device, "cpu") != 0)
        return gs_fail(GS_EUNSUPPORTED, ".device %s: rows without a layer are learned, and scored, by processors; use "
                       "cpu", o->device);
    GS_TRY(gs_session_open_store(&store, config->store));
    if (seeds && gs_store_get_shard(store) != NULL && !gs_store_array(store, GS_ARRAY_TRAIN_LINKS)->present)
        return gs_fail(GS_EUNSUPPORTED, ".seeds edges: seeds are edges of all shards, and %s is one; give ranks the "
                       "whole store, or train_edges.npy to its input", config->store);
    config->pair_params = gs_run_pairs_params(param, store, o);
    config->pairs = param;
    if (!trains)
        return o->edges != NULL ? gs_run_pairs_score_bytes(&config->beside_bytes, store, o) : GS_OK;
    if (seeds)
        return GS_OK;
    GS_TRY(gs_run_pairs_open(&pairs, store, o, config->rows_alone));
    config->beside_bytes = gs_run_pairs_bytes(pairs);
    config->on_batches = config->rows_alone;
    return GS_OK;
}

static gs_status open_on_pairs(gs_session **out, gs_session_config *config, gs_run_batches **batches)
{
    const bool seeds = config->purpose == GS_FOR_TRAINING && gs_run_pairs_are_seeds(config->options);
    gs_param param[GS_PAIR_PARAMS];
    gs_status st = count_pairs(config, param, seeds);

    if (st == GS_OK)
        st = seeds ? open_on_batches(out, config, batches) : gs_session_open(out, config);
    config->pairs = NULL;
    if (st == GS_OK)
        (*out)->config.pairs = NULL; /* it was for its opening alone */
    return st;
}

static gs_status open_either(gs_session **out, gs_session_config *config, gs_run_batches **batches)
{
    if (gs_train_is_of_pairs(config->options))
        return open_on_pairs(out, config, batches);
    const bool on_batches = config->purpose == GS_FOR_TRAINING && gs_train_on_batches(config->options);
    return on_batches ? open_on_batches(out, config, batches) : gs_session_open(out, config);
}

/* ---- the budget that is named --------------------------------------------- */

#define TRIAL_LEAST (16 * GS_MIB)

/* What would take more than the machine, or a cgroup, has is not tried, as that would end the process. Whole graphs
 * take little: nothing is listed, and tables and answers that have no room are given up (session/edges.c). */
static bool may_try(const gs_session_config *config, const gs_refusal *named)
{
    const bool whole = !gs_train_is_of_pairs(config->options) && !gs_train_on_batches(config->options);
    return GS_MIN(named->host, whole ? TRIAL_LEAST : UINT64_MAX) < gs_machine_free_memory();
}

/* Opens all with the budget that `named` says, as a user types it, and closes it. */
static gs_status try_budget(gs_refusal *next, const gs_session_config *config, const gs_refusal *named)
{
    gs_train_options options = *config->options;
    gs_session_config trial = *config;
    GS_ENDS(gs_run_batches_close_at) gs_run_batches *batches = NULL;
    GS_ENDS(gs_session_close_at) gs_session *s = NULL;

    *(named->host > 0 ? &options.host_memory : &options.device_memory) =
        gs_align_up(GS_MAX(named->host, named->device), GS_MIB);
    options.warn = NULL;
    options.on_open = NULL;
    trial.options = &options;
    if (config->refused->process > 0) { /* what refused runs leave resident is not in the way of one that begins */
        trial.process_bytes = config->refused->process + GS_SESSION_PROCESS_STEP; /* it may find as much */
        trial.trial = true;
        trial.first = *config->refused_as;
    }
    trial.refused = next;
    *next = (gs_refusal){0};
    return open_either(&s, &trial, &batches);
}

/* The same budget, with what the trial of it asks for. (What a finer grid would do with is the first one.) False: that
 * asks for the other one. */
static bool raise(gs_refusal *named, const gs_refusal *asked)
{
    const bool host = named->host > 0, guess = asked->host == 0 && asked->device == 0;
    uint64_t *const bytes = host ? &named->host : &named->device;

    if (!guess && (asked->host > 0) != host)
        return false;
    *bytes = guess ? *bytes + *bytes / GUESSED_PART
                   : GS_MAX(host ? asked->host : asked->device, *bytes + *bytes / RAISED_PART);
    named->fixed = guess ? named->fixed : asked->fixed;
    named->libraries = guess ? named->libraries : asked->libraries;
    return true;
}

/* Of a refusal, with what it named: says a budget that does. */
static gs_status confirm(const gs_session_config *config, const gs_refusal *refused, gs_run_batches **batches)
{
    gs_refusal named = *refused, asked;
    char why[GS_ERROR_BYTES];
    const bool unplanned = refused->host > 0 && refused->fixed == 0; /* the line names no figure */
    bool raised = unplanned;
    gs_status st = GS_EBUDGET;

    snprintf(why, sizeof(why), "%s", gs_last_error());
    gs_run_batches_close(*batches);
    *batches = NULL;
    for (int k = 0; k < MOST_TRIALS && st == GS_EBUDGET && may_try(config, &named); k++) {
        st = try_budget(&asked, config, &named);
        if (st == GS_EINTERRUPTED)
            return st;
        if (st != GS_EBUDGET || !raise(&named, &asked))
            break;
        raised = true;
    }
    if (!raised)
        return gs_fail(GS_EBUDGET, "%s", why);
    (void)gs_refusal_fail(&named);
    return unplanned ? gs_fail_hint(GS_EBUDGET, why) : GS_EBUDGET;
}

static gs_session_config config_of(const char *store, const gs_train_options *options, gs_run_kind kind)
{
    const bool training = kind == GS_RUN_TRAIN;
    const gs_optim optim = gs_optim_open(options);

    return (gs_session_config){
        .store = store,
        .options = options,
        .purpose = training ? GS_FOR_TRAINING : GS_FOR_PREDICTION,
        .classes = training ? 0 : options->classes,
        .logits = !training || options->logits != NULL || options->argmax != NULL || options->keep_logits ||
                  gs_train_is_of_pairs(options), /* else its program would be empty */
        .timed = options->profile || (training && options->trace != NULL && !gs_train_on_batches(options)),
        .states = training ? gs_optim_states(&optim) : 0,
        .keep_best = training && gs_choice(options, keep) == 0,
        .ranks = training && gs_judge_ranks(options->keep_by),
        .eval_every = training ? options->eval_every : 0,
    };
}

static gs_status open_confirmed(gs_session **out, gs_session_config *config, gs_run_batches **batches)
{
    gs_refusal refused = {0};
    gs_variant refused_as = config->first;
    GS_ENDS(gs_scans_drop) gs_scans scans = {0};

    config->refused = &refused;
    config->refused_as = &refused_as;
    config->scans = &scans;
    gs_status st = open_either(out, config, batches);
    if (st == GS_EBUDGET && (refused.host > 0 || refused.device > 0))
        st = confirm(config, &refused, batches);
    return st;
}

gs_status gs_run__open_session(gs_session **out, const char *store, const gs_train_options *options, gs_run_kind kind,
                               uint64_t process_bytes, const gs_session_earlier *earlier, gs_variant first,
                               gs_run_batches **batches)
{
    gs_session_config config = config_of(store, options, kind);

    config.earlier = earlier;
    config.process_bytes = process_bytes;
    config.first = first;
    return open_confirmed(out, &config, batches);
}

gs_status gs_run__open_shape(gs_session **out, gs_store *shape, const gs_cluster *cluster,
                             const gs_train_options *options)
{
    gs_session_config config = config_of(gs_store_dir(shape), options, GS_RUN_TRAIN);
    gs_run_batches *batches = NULL;

    config.shape = shape;
    config.cluster = cluster;
    return open_confirmed(out, &config, &batches);
}

/* ---- opening and ending -------------------------------------------------- */

#define MOST_TRIES 10 /* to open a store that others replace meanwhile */

/* ---- opening ------------------------------------------------------------- */

static gs_status start_weights(gs_run *r)
{
    gs_session *const s = r->session;
    const gs_safetensors_tables tables = gs_run__tables(r, GS_RUN_ROWS);

    if (r->saver.from != NULL)
        return gs_run__resume_params(r);
    if (r->options.init != NULL)
        return gs_safetensors_load(s->run.params.value, s->program, &tables, r->options.init);
    gs_params_init(&s->run.params, s->program, r->options.seed);
    return gs_session_start_tables(s);
}

/* A run that goes on from another is planned with what that one knew, on the same device. */
static gs_status open_session(gs_run *r, const char *store, uint64_t process_bytes)
{
    const gs_checkpoint *const c = r->saver.from;
    const bool same = c != NULL && strcmp(c->device, r->options.device) == 0;
    gs_session_earlier earlier = {0};

    if (same) {
        earlier = (gs_session_earlier){.host_memory = c->host_memory, .device_memory = c->device_memory,
                                       .cost = c->cost, .host_cost = c->host_cost, .batch_rates = c->batch_rates,
                                       .device = c->taken[0] != '\0' ? c->taken : NULL, .epochs = c->epochs};
        memcpy(earlier.batch_rate, c->batch_rate, sizeof(earlier.batch_rate));
    }
    return gs_run__open_session(&r->session, store, &r->options, r->kind,
                                same && process_bytes == 0 ? c->process_bytes : process_bytes, same ? &earlier : NULL,
                                r->first, &r->batches);
}

static gs_status start_batches(gs_run *r)
{
    if (r->batches == NULL && gs_train_is_of_pairs(&r->options) && r->kind == GS_RUN_TRAIN)
        return gs_run_pairs_open(&r->pairs, r->session->store, &r->options, r->session->config.rows_alone);
    if (r->batches == NULL)
        return GS_OK;
    r->pairs = gs_run_batches_take_pairs(r->batches);
    return gs_run_batches_start(r->batches, r->session);
}

static gs_status open_control(gs_run *r, const char *store)
{
    gs_train_options o = r->options;

    if (r->session->labels.task == GS_TRAIN_TASK_LINK && o.keep_by == NULL && gs_session_validates(r->session) > 0)
        o.keep_by = gs_store_get_info(r->session->store)->edge_types > 0 ? "mrr" : "auc";
    return gs_control_open(&r->control, &o, r->session->labels.task, gs_session_validates(r->session), store);
}

/* To .on_open. `run` can be asked how far it is; else NULL. */
static void say(const gs_run *r, const char *what, const gs_run *run)
{
    if (r->options.on_open != NULL)
        r->options.on_open(r->options.context, what, run);
}

static gs_status start_session(gs_run *r)
{
    say(r, "preparing the run", NULL);
    GS_TRY(gs_session_start(r->session));
    return start_batches(r);
}

/* Once more where another store has taken the place of this one meanwhile. A run that goes on keeps to its store. */
static gs_status open_and_start(gs_run *r, const char *store, uint64_t process_bytes)
{
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        say(r, "opening the store", NULL);
        GS_TRY(open_session(r, store, process_bytes));
        if (r->kind == GS_RUN_TRAIN)
            GS_TRY(open_control(r, store));
        const gs_status st = start_session(r);
        if (st != GS_EIO || r->saver.from != NULL || gs_store_check_place(r->session->store) == GS_OK)
            return st;
        gs_run_pairs_close(r->pairs);
        gs_run_batches_close(r->batches);
        gs_session_close(r->session);
        r->session = NULL;
        r->batches = NULL;
        r->pairs = NULL;
    }
    return gs_fail(GS_EIO, "%s: is replaced again and again while it is opened", store);
}

/* Everything but the memory of the run itself. */
static gs_status open_run(gs_run *r, const char *store, uint64_t process_bytes)
{
    r->whole = true;
    r->optim = gs_optim_open(&r->options);
    GS_TRY(gs_outputs_check(&r->options, r->kind, store));
    GS_TRY(gs_run__identify_model(r));
    GS_TRY(gs_run__find_checkpoint(r, store));
    GS_TRY(gs_run__begin_checkpoints(r));
    GS_TRY(open_and_start(r, store, process_bytes));
    say(r, "starting the run", r);
    GS_TRY(start_weights(r));
    GS_TRY(gs_run__begin_lines(r));
    GS_TRY(gs_run__begin_files(r));
    GS_TRY(gs_kept_lines_pour(&r->saver.lines, &r->files.metrics));
    GS_TRY(gs_run__place(r));
    GS_TRY(gs_run__resume_state(r));
    GS_TRY(gs_run__compare_weights(r));
    gs_run__warn(r->session);
    r->report.open_seconds = gs_now() - r->began;
    return GS_OK;
}

/* Before planning, and before shapes of tensors say so in their way. */
static gs_status check_features(const char *store, const gs_provenance *p, const char *weights)
{
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;

    GS_TRY(gs_session_open_store(&s, store));
    if (p->summary.features == 0 || gs_store_get_info(s)->features == p->summary.features)
        return GS_OK;
    return gs_fail(GS_EINVAL, "%s: has %u features a vertex; the weights %s were trained on %u", store,
                   gs_store_get_info(s)->features, weights, p->summary.features);
}

/* Takes the options; a prediction's come from its weights where these have them. */
static gs_status take_options(gs_run *r, const char *store, const gs_train_options *given)
{
    GS_ENDS(gs_provenance_free) gs_provenance p = {0};
    char device[GS_DEVICE_WORDS];
    gs_train_options o;

    GS_TRY(gs_train_options_read(&o, given));
    GS_TRY(gs_run__join(&o, r->kind, device));
    GS_TRY(gs_run__take_folder(&r->folder, store));
    store = r->folder;
    if (r->kind == GS_RUN_TRAIN && o.classes != 0)
        return gs_fail(GS_EINVAL, ".classes %u: is of predictions; labels say how many there are to train on",
                       o.classes);
    if (r->kind == GS_RUN_TRAIN && (o.edges != NULL || o.scores != NULL))
        return gs_fail(GS_EINVAL, ".edges, .scores: are of predictions; train with .save, and predict with those "
                       "weights");
    if (r->kind == GS_RUN_TRAIN && o.embeddings)
        return gs_fail(GS_EINVAL, ".embeddings: are of predictions; train with .save, and predict with those weights");
    if (r->kind == GS_RUN_PREDICT) {
        GS_TRY(check_features(store, &p, ""));
        if (o.init != NULL) {
            GS_TRY(gs_provenance_read(&p, o.init));
            GS_TRY(check_features(store, &p, o.init));
        }
        GS_TRY(gs_provenance_complete(&o, &p, o.init != NULL ? o.init : "the run"));
        r->first = (gs_variant){.no_move = p.no_move ? GS_TAKEN_AS_TRAINED : GS_NOT_TAKEN,
                                .no_fuse = p.no_fuse ? GS_TAKEN_AS_TRAINED : GS_NOT_TAKEN};
    }
    return gs_train_options_own(&r->options, &r->texts, &o);
}

static gs_status new_run(gs_run **out, gs_run_kind kind)
{
    gs_run *const r = *out = gs_calloc(1, sizeof(*r));

    GS_NEED(r != NULL, "out of memory");
    r->files = (gs_run_files)GS_RUN_FILES_NONE;
    r->saver.folder = (gs_checkpoint_folder)GS_CHECKPOINT_FOLDER_NONE;
    r->kind = kind;
    r->began = gs_now();
    return GS_OK;
}

gs_status gs_run__open_after(gs_run **out, const char *store, const gs_train_options *options, gs_run_kind kind,
                             uint64_t process_bytes)
{
    gs_run *r = NULL;

    GS_TRY(gs_check_argument(out, "out"));
    GS_TRY(gs_check_argument(store, "store"));
    if (kind != GS_RUN_TRAIN && kind != GS_RUN_PREDICT)
        return gs_fail(GS_EINVAL, "kind %d: is neither GS_RUN_TRAIN nor GS_RUN_PREDICT", (int)kind);
    GS_TRY(new_run(&r, kind));
    gs_status st = take_options(r, store, options);
    if (st == GS_OK)
        st = open_run(r, r->folder, process_bytes);
    st = gs_ranks_agree(st);
    if (st == GS_OK && r->options.profile)
        gs_profile_begin(&r->profile);
    if (st == GS_OK) {
        *out = r;
    } else {
        say(r, "closing the run", NULL); /* whoever asks it how far it is stops before */
        gs_run_close(r);
    }
    return st;
}

gs_status gs_run_open(gs_run **out, const char *store, const gs_train_options *options, gs_run_kind kind)
{
    return gs_run__open_after(out, store, options, kind, 0);
}

void gs_run_close(gs_run *run)
{
    if (run == NULL)
        return;
    (void)gs_metrics_log_close(&run->files.metrics); /* gs_run_finish() has said what can be wrong with it */
    gs_run__abandon_files(run);
    gs_run__end_checkpoints(run);
    gs_run_pairs_close(run->pairs);
    gs_run_batches_close(run->batches);
    gs_session_close(run->session);
    gs_free(run->texts);
    gs_free(run->folder);
    gs_free(run->model_name);
    gs_free(run->model_text);
    gs_free(run);
}

/* ---- finishing ----------------------------------------------------------- */

static gs_status fill_report(gs_run *r)
{
    gs_session *const s = r->session;
    gs_train_report *const out = &r->report;

    out->parameters = gs_session_learned(s);

    GS_TRY(gs_run__peak_bytes(&out->peak_host_bytes));
    out->peak_device_bytes = s->plan->device_bytes;
    if (s->machine.wires.alone)
        snprintf(out->device, sizeof(out->device), "%s", gs_device_name(s->machine.device[0]));
    else if (!gs_session_has_memories(s) || gs_ranks_count() > 1)
        snprintf(out->device, sizeof(out->device), "%u x %s", s->machine.devices,
                 gs_device_name(s->machine.device[0]));
    else
        snprintf(out->device, sizeof(out->device), "%s, the first %s", s->machine.spec,
                 gs_device_name(s->machine.device[0]));
    snprintf(out->io, sizeof(out->io), "%s", gs_exec_io_name(s->run.exec));
    snprintf(out->io_note, sizeof(out->io_note), "%s", gs_exec_io_note(s->run.exec));
    if (r->batches != NULL)
        return gs_batches_describe(gs_run_batches_lead(r->batches), &out->plan);
    return s->pass.train == GS_NONE ? GS_OK : gs_session_describe_pass(s, &out->plan, s->pass.train);
}

#define LONG_TRANSFERS 3.0 /* seconds, of which one time says enough */

/* The median of three, as the epoch's is a median. Nothing else may run in the session after. The run is over and whole
 * by then, so what fails here, or is stopped, leaves only this figure 0. */
static void time_transfers(gs_run *r)
{
    const gs_session *const s = r->session;
    double t[3] = {0};

    r->has_logits = false;
    for (int time = 0; time < 3; time++) {
        if (gs_exec_replay(s->run.exec, s->pass.train, r->options.stop, &t[time]) != GS_OK)
            return;
        if (t[time] > LONG_TRANSFERS) {
            r->report.transfer_seconds = t[time];
            return;
        }
    }
    r->report.transfer_seconds = GS_MAX(GS_MIN(t[0], t[1]), GS_MIN(GS_MAX(t[0], t[1]), t[2]));
}

/* The weights as they are have been evaluated; those that the run kept take their place where they are better. */
static gs_status choose_weights(gs_run *r)
{
    const gs_control *const c = &r->control;

    r->report.kept_epochs = r->epoch;
    r->report.saved_epochs = gs_control_is_over(c, r->epoch) && r->options.epochs > r->epoch
                                 ? r->options.epochs - r->epoch
                                 : 0;
    if (!c->keeps_best || c->state.best_epoch == 0 ||
        gs_judge_worth(c->judge, gs_judge_figure(c->judge, &r->report.figures, r->report.accuracy)) > c->state.best)
        return GS_OK;
    r->evaluated = r->has_logits = r->has_previous = r->whole = false;
    r->report.kept_epochs = c->state.best_epoch - 1;
    GS_TRY(gs_session_back_to_best(r->session));
    return gs_run__evaluate(r, NULL);
}

static gs_status finish(gs_run *run, gs_train_report *report)
{
    gs_status st;

    if ((st = gs_check_argument(run, "run")) == GS_OK && run->state == GS_RUN_IS_STOPPED)
        return gs_run__finish_stopped(run, report);
    if (st != GS_OK || (st = gs_run__check_open(run)) != GS_OK ||
        (st = gs_run__fetch(run)) != GS_OK || (!run->evaluated && (st = gs_run__evaluate(run, NULL)) != GS_OK) ||
        (st = choose_weights(run)) != GS_OK)
        return st;
    gs_run__warn_of_kept(run);
    run->state = GS_RUN_IS_FINISHED;
    if ((st = gs_run__write_files(run)) != GS_OK) {
        run->state = st == GS_EINTERRUPTED ? GS_RUN_IS_STOPPED : run->state;
        return st;
    }
    const bool timed = run->options.profile && run->kind == GS_RUN_TRAIN;
    if (timed) /* a cache: where it cannot be kept, the run is no worse */
        (void)(run->batches != NULL
                   ? gs_profile_remember_batches(&run->profile, gs_batches_device(gs_run_batches_lead(run->batches)))
                   : gs_session_remember(run->session, &run->profile));
    st = fill_report(run);
    if (st == GS_OK && timed && run->batches == NULL)
        time_transfers(run);
    const gs_status closed = gs_metrics_log_close(&run->files.metrics);
    st = st == GS_OK ? closed : st;
    if (st == GS_OK && report != NULL)
        *report = run->report;
    return st;
}

gs_status gs_run_finish(gs_run *run, gs_train_report *report)
{
    const bool stopped = run != NULL && run->state == GS_RUN_IS_STOPPED;
    const gs_status st = finish(run, report);
    return st == GS_EINTERRUPTED && stopped ? st : gs_run__end_all(st);
}

/* ---- a loop over a run --------------------------------------------------- */

gs_status gs_train(const char *store, const gs_train_options *options, gs_train_report *report)
{
    gs_epoch_report e;
    GS_ENDS(gs_run_close_at) gs_run *run = NULL;
    gs_status st = gs_run_open(&run, store, options, GS_RUN_TRAIN);

    bool over = st == GS_OK && run->saver.report.over;

    while (st == GS_OK && run->epoch < run->options.epochs && !over)
        if ((st = gs_run_epoch(run, &e)) == GS_OK) {
            over = e.over;
            if (run->options.on_epoch != NULL)
                run->options.on_epoch(run->options.context, &e);
        }
    if (st == GS_OK)
        st = gs_run_finish(run, report);
    if (run != NULL && run->state == GS_RUN_IS_STOPPED)
        st = gs_run_finish(run, report);
    return st;
}

gs_status gs_predict(const char *store, const gs_train_options *options, const char *weights, const char *logits,
                     gs_train_report *report)
{
    gs_train_options own;
    GS_ENDS(gs_run_close_at) gs_run *run = NULL;

    GS_TRY(gs_check_argument(weights, "weights"));
    GS_TRY(gs_check_argument(logits, "logits"));
    GS_TRY(gs_train_options_read(&own, options));
    own.save = own.metrics = own.trace = own.checkpoint = own.checkpoint_every = own.resume = NULL;
    own.init = weights;
    own.logits = logits;
    GS_TRY(gs_run_open(&run, store, &own, GS_RUN_PREDICT));
    return gs_run_finish(run, report);
}

/* The passes over the whole graph, and behind them the one that trains a batch. */
gs_status gs_run_plan(const gs_run *run, gs_plan_report *out)
{
    GS_TRY(gs_check_argument(run, "run"));
    GS_TRY(gs_check_argument(out, "out"));
    GS_TRY(gs_session_describe(run->session, out));
    if (run->batches == NULL)
        return gs_run_pairs_sent(&out->pair_bytes, run->session);
    gs_run_batches_describe_devices(run->batches, out);
    if (out->passes == GS_PLAN_PASSES)
        return GS_OK;
    return gs_batches_describe(gs_run_batches_lead(run->batches), &out->pass[out->passes++]);
}

/* A run as gs_train() would plan it, which is not started, and which the caller closes, also on failure. It is a whole
 * run, as what is live beside a session counts when its budgets are drawn up. */
static gs_status open_planned(gs_run **out, const char *store, const gs_train_options *options)
{
    GS_TRY(gs_check_argument(store, "store"));
    GS_TRY(new_run(out, GS_RUN_TRAIN));
    gs_run *const r = *out;
    GS_TRY(gs_train_options_own(&r->options, &r->texts, options));
    GS_TRY(gs_run__identify_model(r));
    GS_TRY(gs_run__open_session(&r->session, store, &r->options, r->kind, 0, NULL, r->first, &r->batches));
    gs_run__warn_of_unread(&r->options);
    if (r->batches == NULL)
        gs_run__warn(r->session);
    return GS_OK;
}

gs_status gs_plan_train(gs_plan_report *out, const char *store, const gs_train_options *options)
{
    GS_ENDS(gs_run_close_at) gs_run *run = NULL;

    GS_TRY(gs_check_argument(out, "out"));
    GS_TRY(open_planned(&run, store, options));
    return gs_run_plan(run, out);
}

gs_status gs_print_tasks(void *file, const char *store, const gs_train_options *options)
{
    GS_ENDS(gs_run_close_at) gs_run *run = NULL;

    GS_TRY(gs_check_argument(file, "file"));
    GS_TRY(open_planned(&run, store, options));
    gs_plan_print(run->session->plan, run->session->program, file);
    if (run->batches != NULL) {
        const gs_session *const s = gs_batches_session(gs_run_batches_lead(run->batches));
        gs_plan_print(s->plan, s->program, file);
    }
    return ferror((FILE *)file) != 0 ? gs_fail(GS_EIO, "the tasks cannot be written") : GS_OK;
}

gs_status gs_run_progress(const gs_run *run, gs_progress *out)
{
    gs_exec_progress x;

    GS_TRY(gs_check_argument(run, "run"));
    GS_TRY(gs_check_argument(out, "out"));
    *out = (gs_progress){.epoch = __atomic_load_n(&run->epoch, __ATOMIC_RELAXED), .epochs = run->options.epochs};
    if (gs_run_pairs_progress(run->pairs, out))
        return GS_OK;
    gs_exec_get_progress(run->session->run.exec, &x);
    if (x.pass == GS_NONE)
        return GS_OK;
    const gs_plan_pass *const planned = &run->session->plan->pass[x.pass];
    snprintf(out->pass, sizeof(out->pass), "%s", run->session->program->pass[x.pass].name);
    out->tasks_done = x.tasks;
    out->tasks = planned->tasks;
    out->bytes_done = x.bytes;
    out->bytes = planned->read_bytes + planned->written_bytes;
    return GS_OK;
}
