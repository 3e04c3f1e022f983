/* train.c - epochs: forward, backward, update, say how it went. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/machine.h"
#include "base/size.h"
#include "train/logits.h"
#include "train/metrics_log.h"
#include "train/optim.h"
#include "train/options.h"
#include "train/outfile.h"
#include "train/safetensors.h"
#include "session/session.h"
#include "train/train.h"

/* A run and the files it is to leave. */
typedef struct run {
    const gs_train_options *options;
    gs_session *session;
    gs_optim optim;
    gs_metrics_log metrics;
    gs_outfile weights, logits, trace;
    uint64_t logits_offset;
    double began; /* gs_now() at the call */
    gs_profile profile; /* what timed tasks say */
    gs_train_report report;
} run;

/* ---- results of a pass --------------------------------------------------- */

static double ratio(uint64_t a, uint64_t b) { return b == 0 ? NAN : (double)a / (double)b; }

static double mean_loss(const gs_metrics *m)
{
    return m->rows[GS_SPLIT_TRAIN] == 0 ? NAN : m->loss_sum / (double)m->rows[GS_SPLIT_TRAIN];
}

static void set_accuracy(double accuracy[3], const gs_metrics *m)
{
    for (int k = 0; k < 3; k++)
        accuracy[k] = ratio(m->correct[k + 1], m->rows[k + 1]);
}

static void add_stats(gs_epoch_report *e, const gs_exec_stats *x)
{
    e->compute_seconds += x->compute_seconds;
    e->edge_seconds += x->edge_seconds;
    e->stall_seconds += x->stall_seconds;
    e->read_bytes += x->read_bytes;
    e->written_bytes += x->written_bytes;
    e->copied_in_bytes += x->copied_in_bytes;
    e->copied_out_bytes += x->copied_out_bytes;
    e->forwarded_bytes += x->forwarded_bytes;
}

/* ---- one epoch ----------------------------------------------------------- */

static gs_status interrupted(const run *r, uint32_t epoch)
{
    return gs_fail(GS_EINTERRUPTED, "interrupted in epoch %u of %u; no weights or logits were written", epoch,
                   r->options->epochs);
}

static gs_status check_loss(const run *r, uint32_t epoch, double loss)
{
    if (isfinite(loss))
        return GS_OK;
    return gs_fail(GS_EDEVICE,
                   "epoch %u: the loss is %s; lower --lr (now %g), or check the features with gnnstream verify", epoch,
                   isnan(loss) ? "not a number" : "infinite", r->options->lr);
}

/* The pass "eval" runs before the epoch's pass "train". */
static bool evaluates(const gs_session *s, uint32_t epoch)
{
    const uint32_t every = s->config.eval_every;
    return s->pass.train_differs && every != 0 && epoch % every == 0;
}

/* The optimiser's step where the parameters are: in the devices' memory, or here. */
static gs_status step(gs_session *s, gs_optim *o)
{
    if (!gs_session_steps_on_device(s)) {
        gs_optim_step(o, &s->run.params);
        return GS_OK;
    }
    const gs_update u = gs_optim_next(o);
    return gs_session_step(s, &u);
}

/* With dropout or batch statistics the train pass's logits are not the model's, so an evaluation
 * gives the accuracies, before the update like everything else of the epoch. */
static gs_status evaluate_epoch(run *r, gs_epoch_report *e)
{
    gs_exec_stats x = {0};
    gs_status st;

    if (!evaluates(r->session, e->epoch))
        return GS_OK;
    if ((st = gs_session_run(r->session, r->session->pass.eval, e->epoch, false, &x)) != GS_OK)
        return st;
    set_accuracy(e->accuracy, &x.metrics);
    add_stats(e, &x);
    return GS_OK;
}

static gs_status run_epoch(run *r, gs_epoch_report *e)
{
    const bool again = e->epoch < e->epochs && !evaluates(r->session, e->epoch + 1);
    const double began = gs_now();
    gs_exec_stats x = {0};
    double update;
    gs_status st;

    if ((st = evaluate_epoch(r, e)) != GS_OK ||
        (st = gs_session_run(r->session, r->session->pass.train, e->epoch, again, &x)) != GS_OK)
        return st;
    if (r->options->profile)
        gs_session_observe(r->session, &x, &r->profile);
    e->loss = mean_loss(&x.metrics);
    if ((st = check_loss(r, e->epoch, e->loss)) != GS_OK)
        return st;
    if (!r->session->pass.train_differs)
        set_accuracy(e->accuracy, &x.metrics);
    add_stats(e, &x);
    update = gs_now();
    if ((st = step(r->session, &r->optim)) != GS_OK)
        return st;
    gs_params_follow(&r->session->run.params, r->session->program, gs_store_get_info(r->session->store)->vertices);
    e->compute_seconds += gs_now() - update;
    e->seconds = gs_now() - began;
    e->peak_host_bytes = gs_process_peak_bytes();
    e->peak_device_bytes = r->session->plan->device_bytes;
    return GS_OK;
}

static gs_status run_epochs(run *r)
{
    const gs_train_options *const o = r->options;
    const double began = gs_now();
    gs_status st = GS_OK;

    r->report.open_seconds = began - r->began;
    for (uint32_t epoch = 1; epoch <= o->epochs && st == GS_OK; epoch++) {
        gs_epoch_report e = {.epoch = epoch, .epochs = o->epochs, .accuracy = {NAN, NAN, NAN}};

        if (o->stop != NULL && *o->stop)
            return interrupted(r, epoch);
        if ((st = run_epoch(r, &e)) == GS_EINTERRUPTED)
            return interrupted(r, epoch);
        if (st != GS_OK || (st = gs_metrics_log_write(&r->metrics, &e)) != GS_OK)
            return st;
        r->report.epochs = epoch;
        r->report.read_bytes += e.read_bytes;
        r->report.written_bytes += e.written_bytes;
        if (o->on_epoch != NULL)
            o->on_epoch(o->context, &e);
    }
    r->report.seconds = gs_now() - began;
    return st;
}

/* ---- before and after ---------------------------------------------------- */

/* Names that would overwrite each other are a mistake worth stopping for. */
static gs_status check_outputs(const gs_train_options *o)
{
    const struct {
        const char *option, *path;
    } out[] = {{"--save", o->save}, {"--logits", o->logits}, {"--metrics", o->metrics}, {"--trace", o->trace}};

    for (size_t i = 0; i < GS_ARRAY_LEN(out); i++)
        for (size_t k = 0; k < i; k++)
            if (out[i].path != NULL && out[k].path != NULL && strcmp(out[i].path, out[k].path) == 0)
                return gs_fail(GS_EINVAL, "%s and %s both name %s", out[k].option, out[i].option, out[i].path);
    return GS_OK;
}

/* Result files are begun before the work, so that what cannot be written is
 * refused now; the metrics file comes last, as it replaces what was there. */
static gs_status begin_outputs(run *r, const char *logits)
{
    const gs_store_info *const info = gs_store_get_info(r->session->store);
    gs_status st = GS_OK;

    /* takes its room on the disk now */
    if (r->options->save != NULL && (st = gs_outfile_begin(&r->weights, r->options->save)) == GS_OK)
        st = gs_safetensors_reserve(r->weights.fd, r->weights.temporary, r->session->program,
                                    r->session->run.params.value);
    if (st == GS_OK && logits != NULL)
        st = gs_logits_begin(&r->logits, &r->logits_offset, logits, info->vertices, info->classes);
    if (st == GS_OK && r->options->trace != NULL)
        st = gs_outfile_begin(&r->trace, r->options->trace);
    if (st == GS_OK)
        st = gs_metrics_log_open(&r->metrics, r->options->metrics);
    return st;
}

/* Loss and accuracies of the weights as they are, by the pass that also stores
 * the logits where they are wanted. */
static gs_status evaluate_final(run *r)
{
    const gs_session *const s = r->session;
    const uint32_t pass = s->pass.predict != GS_NONE ? s->pass.predict : s->pass.eval;
    gs_exec_stats x = {0};
    const gs_status st = gs_session_run(r->session, pass, 0, false, &x);

    if (st == GS_EINTERRUPTED)
        return gs_fail(st, "interrupted in the last evaluation; no weights or logits were written");
    if (st != GS_OK)
        return st;
    r->report.loss = mean_loss(&x.metrics);
    set_accuracy(r->report.accuracy, &x.metrics);
    return GS_OK;
}

static gs_status check_weights(const run *r)
{
    const gs_program *const p = r->session->program;
    const uint32_t bad = gs_params_find_nonfinite(&r->session->run.params, p);

    if (bad == GS_NONE)
        return GS_OK;
    return gs_fail(GS_EDEVICE, "after epoch %u: parameter %s holds numbers that are not finite; lower --lr (now %g)",
                   r->report.epochs, p->param[bad].name, r->options->lr);
}

/* The last epoch's training pass. The evaluation that follows has other tasks,
 * so their times are still there. */
static gs_status write_trace(run *r)
{
    FILE *const out = fdopen(dup(r->trace.fd), "w");
    gs_status st;

    if (out == NULL)
        return gs_fail_errno(errno, "%s: cannot be written", r->trace.temporary);
    st = gs_exec_write_trace(r->session->run.exec, r->session->pass.train, out);
    if (fclose(out) != 0 && st == GS_OK)
        st = gs_fail_errno(errno, "%s: cannot be written", r->trace.temporary);
    return st;
}

static gs_status write_outputs(run *r)
{
    gs_session *const s = r->session;
    gs_status st = GS_OK;

    if (r->logits.path != NULL) {
        const gs_logits_job job = {
            .store = s->store,
            .classes = gs_store_get_info(s->store)->classes,
            .memory = s->memory.logits,
            .scratch_dir = gs_session_scratch_dir(s),
            .source = gs_session_logits,
            .context = s,
            .stop = r->options->stop,
        };
        st = gs_logits_write(&r->logits, r->logits_offset, &job);
    }
    if (st == GS_OK && r->weights.path != NULL)
        st = gs_safetensors_write(r->weights.fd, r->weights.temporary, s->program, s->run.params.value);
    if (st == GS_OK && r->trace.path != NULL)
        st = write_trace(r);
    /* Renamed only when all are whole. */
    if (st == GS_OK && r->trace.path != NULL)
        st = gs_outfile_finish(&r->trace);
    if (st == GS_OK && r->logits.path != NULL)
        st = gs_outfile_finish(&r->logits);
    if (st == GS_OK && r->weights.path != NULL)
        st = gs_outfile_finish(&r->weights);
    return st;
}

static gs_status fill_report(run *r)
{
    gs_session *const s = r->session;

    r->report.parameters = gs_params_learned(s->program);
    r->report.peak_host_bytes = gs_process_peak_bytes();
    r->report.peak_device_bytes = s->plan->device_bytes;
    if (s->machine.topology == NULL)
        snprintf(r->report.device, sizeof(r->report.device), "%s", gs_device_name(s->machine.device[0]));
    else if (gs_device_unified(s->machine.device[0]))
        snprintf(r->report.device, sizeof(r->report.device), "%u x %s", s->machine.devices,
                 gs_device_name(s->machine.device[0]));
    else
        snprintf(r->report.device, sizeof(r->report.device), "%s, the first %s", r->options->device,
                 gs_device_name(s->machine.device[0]));
    snprintf(r->report.io, sizeof(r->report.io), "%s", gs_exec_io_name(s->run.exec));
    snprintf(r->report.io_note, sizeof(r->report.io_note), "%s", gs_exec_io_note(s->run.exec));
    return s->pass.train == GS_NONE ? GS_OK : gs_session_describe_pass(s, &r->report.plan, s->pass.train);
}

#define LONG_TRANSFERS 3.0 /* seconds, of which one time says enough */

/* The median of three, as the epoch's is a median. Nothing else may run in the session after. The run is over and whole
 * by then, so what fails here, or is stopped, leaves only this figure 0. */
static void time_transfers(run *r)
{
    const gs_session *const s = r->session;
    double t[3] = {0};

    for (int time = 0; time < 3; time++) {
        if (gs_exec_replay(s->run.exec, s->pass.train, r->options->stop, &t[time]) != GS_OK)
            return;
        if (t[time] > LONG_TRANSFERS) {
            r->report.transfer_seconds = t[time];
            return;
        }
    }
    r->report.transfer_seconds = GS_MAX(GS_MIN(t[0], t[1]), GS_MIN(GS_MAX(t[0], t[1]), t[2]));
}

static gs_status run_end(run *r, gs_status st)
{
    const gs_status closed = gs_metrics_log_close(&r->metrics);

    if (st == GS_OK)
        st = closed;
    gs_outfile_abandon(&r->weights);
    gs_outfile_abandon(&r->logits);
    gs_outfile_abandon(&r->trace);
    gs_session_close(r->session);
    return st;
}

/* ---- the public calls ---------------------------------------------------- */

static gs_status start_weights(run *r, const char *from)
{
    gs_session *const s = r->session;

    if (from != NULL)
        return gs_safetensors_load(s->run.params.value, s->program, from);
    gs_params_init(&s->run.params, s->program, r->options->seed);
    return GS_OK;
}

gs_status gs_train_open(gs_session **out, const char *store, const gs_train_options *options, uint64_t process_bytes)
{
    gs_session_config config = {
        .store = store,
        .options = options,
        .purpose = GS_FOR_TRAINING,
        .logits = options->logits != NULL,
        .timed = options->profile || options->trace != NULL,
        .eval_every = options->eval_every,
        .process_bytes = process_bytes,
    };
    gs_optim_kind kind;
    gs_status st;

    if ((st = gs_optim_parse(&kind, options->optimizer)) != GS_OK)
        return st;
    config.states = gs_optim_states(kind);
    return gs_session_open(out, &config);
}

gs_status gs_train(const char *store, const gs_train_options *options, gs_train_report *report)
{
    return gs_train_after(store, options, 0, report);
}

gs_status gs_train_after(const char *store, const gs_train_options *options, uint64_t process_bytes,
                         gs_train_report *report)
{
    run r = {.options = options, .weights = GS_OUTFILE_NONE, .logits = GS_OUTFILE_NONE, .trace = GS_OUTFILE_NONE,
             .began = gs_now()};
    gs_status st;

    if ((st = gs_train_options_check(options)) != GS_OK || (st = check_outputs(options)) != GS_OK ||
        (st = gs_train_open(&r.session, store, options, process_bytes)) != GS_OK)
        goto done;
    r.optim = (gs_optim){.lr = options->lr, .weight_decay = options->weight_decay};
    if ((st = gs_optim_parse(&r.optim.kind, options->optimizer)) != GS_OK ||
        (st = gs_session_start(r.session)) != GS_OK || (st = start_weights(&r, options->init)) != GS_OK ||
        (st = begin_outputs(&r, options->logits)) != GS_OK || (st = gs_session_keep_params(r.session)) != GS_OK ||
        (st = gs_session_setup(r.session)) != GS_OK || (st = run_epochs(&r)) != GS_OK ||
        (st = gs_session_bring_params(r.session)) != GS_OK || (st = check_weights(&r)) != GS_OK ||
        (st = evaluate_final(&r)) != GS_OK || (st = write_outputs(&r)) != GS_OK)
        goto done;
    if (options->profile) /* a cache: where it cannot be kept, the run is no worse */
        (void)gs_session_remember(r.session, &r.profile);
    st = fill_report(&r);
    if (st == GS_OK && options->profile)
        time_transfers(&r);
done:
    st = run_end(&r, st);
    if (st == GS_OK && report != NULL)
        *report = r.report;
    return st;
}

gs_status gs_predict(const char *store, const gs_train_options *options, const char *weights, const char *logits,
                     gs_train_report *report)
{
    gs_train_options own = *options;
    run r = {.options = &own, .weights = GS_OUTFILE_NONE, .logits = GS_OUTFILE_NONE, .trace = GS_OUTFILE_NONE,
             .began = gs_now()};
    const gs_session_config config = {
        .store = store, .options = &own, .purpose = GS_FOR_PREDICTION, .logits = true, .timed = own.profile};
    gs_status st;

    own.save = own.metrics = own.init = own.trace = NULL;
    own.logits = logits;
    if (weights == NULL || logits == NULL)
        return gs_fail(GS_EINVAL, "%s: none given", weights == NULL ? "--weights" : "--logits");
    if ((st = gs_train_options_check(&own)) != GS_OK ||
        (st = gs_session_open(&r.session, &config)) != GS_OK ||
        (st = gs_session_start(r.session)) != GS_OK || (st = start_weights(&r, weights)) != GS_OK ||
        (st = begin_outputs(&r, logits)) != GS_OK || (st = evaluate_final(&r)) != GS_OK ||
        (st = write_outputs(&r)) != GS_OK)
        goto done;
    st = fill_report(&r);
done:
    st = run_end(&r, st);
    if (st == GS_OK && report != NULL)
        *report = r.report;
    return st;
}

gs_status gs_plan_train(gs_plan_report *out, const char *store, const gs_train_options *options)
{
    gs_session *session = NULL;
    gs_status st;

    if ((st = gs_train_options_check(options)) != GS_OK ||
        (st = gs_train_open(&session, store, options, 0)) != GS_OK)
        return st;
    st = gs_session_describe(session, out);
    gs_session_close(session);
    return st;
}
