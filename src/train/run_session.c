/* run_session.c - the session of a run, and the batches that it trains on; and the budget that a refusal names.
 *
 * A plan's refusal knows what the plan needs. What else there is of a run depends on its budgets in ways of its own:
 * groups of batches, lists of edges in memory, rows that are left out, shares of devices. So the budget that is named
 * is tried before it is said, with all but the run, and a larger one until one does.
 */
#include <stdio.h>

#include "base/machine.h"
#include "base/option_table.h"
#include "base/size.h"
#include "schedule/schedule.h"
#include "session/session.h"
#include "train/batch_options.h"
#include "train/judge.h"
#include "train/run_internal.h"

#define MOST_TRIALS 12
/* By so much a budget is raised, at the least, that was named and does not do. */
#define RAISED_PART 32u
/* And by so much where nothing says what would do. */
#define GUESSED_PART 4u

static gs_status open_beside(gs_session **out, gs_session_config *config, const gs_run_batches *batches)
{
    config->beside_bytes = gs_run_batches_bytes(batches);
    config->beside_device_bytes = gs_run_batches_device_bytes(batches);
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
        gs_status st = gs_run_batches_open(batches, config, stream);
        if (st != GS_OK)
            return st;
        config->on_batches = true;
        config->timed = false; /* evaluations are not */
        st = open_fitting(out, config, *batches);
        if (st != GS_EBUDGET || !gs_run_batches_may_stream(*batches))
            return st;
        gs_run_batches_close(*batches);
        *batches = NULL;
        stream = true;
    }
}

static gs_status open_either(gs_session **out, gs_session_config *config, gs_run_batches **batches)
{
    const bool on_batches = config->purpose == GS_FOR_TRAINING && gs_train_on_batches(config->options);
    return on_batches ? open_on_batches(out, config, batches) : gs_session_open(out, config);
}

/* ---- the budget that is named --------------------------------------------- */

/* What the machine, or a cgroup, does not have is not tried, as that would end the process. */
static bool may_try(const gs_refusal *named) { return named->host < gs_machine_free_memory(); }

/* Opens all with the budget that `named` says, as a user types it, and closes it. */
static gs_status try_budget(gs_refusal *next, const gs_session_config *config, const gs_refusal *named)
{
    gs_train_options options = *config->options;
    gs_session_config trial = *config;
    gs_run_batches *batches = NULL;
    gs_session *s = NULL;

    *(named->host > 0 ? &options.host_memory : &options.device_memory) =
        gs_align_up(GS_MAX(named->host, named->device), GS_MIB);
    options.warn = NULL;
    options.on_open = NULL;
    trial.options = &options;
    if (config->refused->process > 0) { /* what refused runs leave resident is not in the way of one that begins */
        trial.process_bytes = config->refused->process;
        trial.trial = true;
    }
    trial.refused = next;
    *next = (gs_refusal){0};
    const gs_status st = open_either(&s, &trial, &batches);
    gs_run_batches_close(batches);
    gs_session_close(s);
    return st;
}

/* The same budget, with what the trial of it asks for. False: that asks for the other one. */
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
    named->parts = guess ? named->parts : asked->parts;
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
    for (int k = 0; k < MOST_TRIALS && st == GS_EBUDGET && may_try(&named); k++) {
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

gs_status gs_run__open_session(gs_session **out, const char *store, const gs_train_options *options, gs_run_kind kind,
                               uint64_t process_bytes, const gs_session_earlier *earlier, gs_variant first,
                               gs_run_batches **batches)
{
    const bool training = kind == GS_RUN_TRAIN;
    gs_session_config config = {
        .store = store,
        .options = options,
        .purpose = training ? GS_FOR_TRAINING : GS_FOR_PREDICTION,
        .classes = training ? 0 : options->classes,
        .logits = !training || options->logits != NULL || options->argmax != NULL || options->keep_logits,
        .timed = options->profile || (training && options->trace != NULL),
        .keep_best = training && gs_choice(options, keep) == 0,
        .ranks = training && gs_judge_ranks(options->keep_by),
        .eval_every = training ? options->eval_every : 0,
        .earlier = earlier,
        .process_bytes = process_bytes,
        .first = first,
    };
    gs_refusal refused = {0};
    const gs_optim optim = gs_optim_open(options);
    gs_status st;

    config.refused = &refused;
    config.states = training ? gs_optim_states(&optim) : 0;
    st = open_either(out, &config, batches);
    return st == GS_EBUDGET && (refused.host > 0 || refused.device > 0) ? confirm(&config, &refused, batches) : st;
}
