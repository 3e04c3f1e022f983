/* run_epoch.c - epochs and evaluations: forward, backward, update, say how it went. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/machine.h"
#include "base/size.h"
#include "base/status.h"
#include "train/figures.h"
#include "train/ranking.h"
#include "train/run_internal.h"

/* ---- results of a pass --------------------------------------------------- */

static double ratio(uint64_t a, uint64_t b) { return b == 0 ? NAN : (double)a / (double)b; }

static void set_figures(const gs_session *s, double accuracy[3], gs_task_figures *figures, const gs_metrics *m)
{
    for (int k = 0; k < 3; k++)
        accuracy[k] = s->labels.task == GS_TRAIN_TASK_CLASSIFY ? ratio(m->correct[k + 1], m->rows[k + 1]) : NAN;
    gs_figures_of(figures, &s->labels, m);
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
    e->loaded_bytes += x->loaded_bytes;
}

static double judged(const gs_run *r, const gs_epoch_report *e)
{
    return gs_judge_figure(r->control.judge, &e->figures, e->accuracy);
}

/* ---- one epoch ----------------------------------------------------------- */

/* Areas under curves, of the logits that the pass "predict" has stored, among the figures. */
static gs_status rank(gs_task_figures *to, gs_session *s)
{
    gs_ranks ranks;
    const gs_status st = gs_rank_logits(&ranks, s);
    if (st != GS_OK)
        return st;
    memcpy(to->roc_auc, ranks.roc_auc, sizeof(ranks.roc_auc));
    memcpy(to->average_precision, ranks.average_precision, sizeof(ranks.average_precision));
    return GS_OK;
}

/* The pass "eval", or "predict" where logits are ranked, runs before the epoch's pass "train". */
static bool evaluates(const gs_session *s, uint32_t epoch)
{
    const uint32_t every = s->config.eval_every;
    return (s->pass.train_differs || s->config.ranks) && every != 0 && epoch % every == 0;
}

/* With dropout or batch statistics the train pass's logits are not the model's, so an evaluation
 * gives the accuracies, before the update like everything else of the epoch. */
static gs_status evaluate_epoch(gs_run *r, gs_epoch_report *e)
{
    const bool ranks = r->session->config.ranks;
    gs_exec_stats x = {0};
    gs_status st;

    if (!evaluates(r->session, e->epoch) || r->part.begun)
        return GS_OK;
    gs_run_batches_pause(r->batches);
    const uint32_t pass = ranks ? r->session->pass.predict : r->session->pass.eval;
    if ((st = gs_session_run(r->session, pass, e->epoch, false, &x)) != GS_OK)
        return st;
    set_figures(r->session, e->accuracy, &e->figures, &x.metrics);
    if (ranks && (st = rank(&e->figures, r->session)) != GS_OK)
        return st;
    add_stats(e, &x);
    return GS_OK;
}

/* The optimiser's step where the parameters are: in the devices' memory, or here; and of tables, which are here. */
static gs_status step(gs_session *s, gs_optim *o)
{
    double norm = 0;
    gs_status st = gs_run__gradient_norm(&norm, s, o);

    if (st != GS_OK)
        return st;
    const gs_update u = gs_optim_next(o, norm);
    if (!gs_session_steps_on_device(s))
        gs_optim_apply(&u, &s->run.params);
    else if ((st = gs_session_step(s, &u)) != GS_OK)
        return st;
    return gs_run__step_tables(s, &u);
}

static gs_status train_and_update(gs_run *r, gs_epoch_report *e)
{
    gs_session *const s = r->session;
    const bool again = e->epoch < r->options.epochs && !evaluates(s, e->epoch + 1);
    gs_exec_stats x = {0};
    gs_status st;

    if ((st = gs_session_run(s, s->pass.train, e->epoch, again, &x)) != GS_OK)
        return st;
    if (r->options.profile)
        gs_session_observe(s, &x, &r->profile);
    e->loss = gs_figures_loss(&s->labels, &x.metrics);
    if ((st = gs_run__check_pass(r, e->epoch, e->loss)) != GS_OK)
        return st;
    if (!s->pass.train_differs && !s->config.ranks)
        set_figures(s, e->accuracy, &e->figures, &x.metrics);
    add_stats(e, &x);
    const double update = gs_now();
    r->optim.lr = e->lr = gs_control_rate(&r->control, e->epoch);
    if (gs_control_note(&r->control, e->epoch, judged(r, e), e->loss) &&
        r->control.keeps_best && (st = gs_session_keep_best(s)) != GS_OK)
        return st;
    e->over = gs_control_is_over(&r->control, e->epoch);
    gs_run__before_step(r);
    r->whole = false;
    const uint64_t swept[2] = {s->run.swept[0], s->run.swept[1]};
    if ((st = step(s, &r->optim)) != GS_OK)
        return st;
    e->read_bytes += s->run.swept[0] - swept[0];
    e->written_bytes += s->run.swept[1] - swept[1];
    gs_params_follow(&s->run.params, s->program, gs_store_get_info(s->store)->vertices);
    e->compute_seconds += gs_now() - update;
    return gs_run__check_step(r, e->epoch);
}

/* An epoch that is a step for each batch is judged by the evaluation before it, if there was one. */
static gs_status begin_part(gs_run *r, const gs_epoch_report *e)
{
    gs_control *const c = &r->control;
    const double lr = gs_control_rate(c, e->epoch);
    gs_status st;

    if (c->valid && gs_control_note(c, e->epoch, judged(r, e), NAN) && c->keeps_best &&
        (st = gs_session_keep_best(r->session)) != GS_OK)
        return st;
    r->part = (gs_epoch_part){.begun = true, .lr = lr, .figures = e->figures};
    memcpy(r->part.accuracy, e->accuracy, sizeof(e->accuracy));
    return GS_OK;
}

/* Begins, or goes on where it was stopped. */
static gs_status train_on_batches(gs_run *r, gs_epoch_report *e)
{
    gs_control *const c = &r->control;
    gs_epoch_part *const p = &r->part;
    gs_status st;

    if (!p->begun && (st = begin_part(r, e)) != GS_OK)
        return st;
    memcpy(p->figures.task, e->figures.task, sizeof(p->figures.task));
    e->figures = p->figures;
    memcpy(e->accuracy, p->accuracy, sizeof(e->accuracy));
    r->optim.lr = e->lr = p->lr;
    if ((st = gs_run_batches_epoch(r, e)) != GS_OK)
        return st;
    e->loss = p->mass > 0 ? p->loss / p->mass : NAN;
    *p = (gs_epoch_part){0};
    gs_control_note_loss(c, e->epoch, e->loss);
    if (!c->valid)
        (void)gs_control_note(c, e->epoch, NAN, e->loss);
    e->over = gs_control_is_over(c, e->epoch);
    return GS_OK;
}

static gs_status run_epoch(gs_run *r, gs_epoch_report *e)
{
    const double began = gs_now();
    gs_status st;

    if (r->options.stop != NULL && *r->options.stop)
        return gs_run__stopped(r);
    r->evaluated = r->has_logits = false;
    if ((st = gs_run__place(r)) != GS_OK || (st = evaluate_epoch(r, e)) != GS_OK ||
        (st = r->batches != NULL ? train_on_batches(r, e) : train_and_update(r, e)) != GS_OK)
        return st == GS_EINTERRUPTED ? gs_run__stopped(r) : st;
    e->seconds = gs_now() - began;
    if (r->options.profile && r->batches != NULL)
        gs_run_batches_observe(r->batches, e, &r->profile);
    e->peak_host_bytes = gs_process_peak_bytes();
    e->peak_device_bytes = r->session->plan->device_bytes;
    if ((st = gs_kept_lines_add(&r->saver.lines, e)) != GS_OK)
        return st;
    return gs_metrics_log_write(&r->files.metrics, e);
}

gs_status gs_run_epoch(gs_run *run, gs_epoch_report *out)
{
    const double began = gs_now();
    gs_status st;

    if ((st = gs_check_argument(run, "run")) != GS_OK || (st = gs_run__check_open(run)) != GS_OK)
        return st;
    if (run->kind != GS_RUN_TRAIN)
        return gs_fail(GS_EINVAL, "run: was opened with GS_RUN_PREDICT; epochs need GS_RUN_TRAIN");
    gs_epoch_report e = {
        .epoch = run->epoch + 1,
        .epochs = GS_MAX(run->options.epochs, run->epoch + 1),
        .accuracy = {NAN, NAN, NAN},
    };
    gs_figures_none(&e.figures, &run->session->labels);
    if ((st = run_epoch(run, &e)) != GS_OK) {
        run->state = st == GS_EINTERRUPTED && run->whole ? GS_RUN_IS_STOPPED : GS_RUN_IS_FAILED;
        if (run->part.batches > 0) { /* what it took is not lost either */
            run->report.seconds += gs_now() - began;
            run->report.read_bytes += e.read_bytes;
        }
        return gs_run__checkpoint_failed(run, st);
    }
    run->whole = true;
    __atomic_store_n(&run->epoch, e.epoch, __ATOMIC_RELAXED);
    run->report.epochs = e.epoch;
    run->report.read_bytes += e.read_bytes;
    run->report.written_bytes += e.written_bytes;
    run->report.seconds += gs_now() - began;
    if ((st = gs_run__checkpoint_if_due(run)) != GS_OK) {
        run->state = GS_RUN_IS_FAILED;
        return st;
    }
    if (out != NULL)
        *out = e;
    return GS_OK;
}

/* ---- evaluation ---------------------------------------------------------- */

/* Loss and figures of the weights as they are, by the pass that also stores
 * the logits where they are wanted. */
gs_status gs_run__evaluate(gs_run *r, gs_exec_stats *x)
{
    gs_session *const s = r->session;
    const uint32_t pass = s->pass.predict != GS_NONE ? s->pass.predict : s->pass.eval;
    gs_exec_stats own = {0}, *const stats = x != NULL ? x : &own;
    gs_status st;

    gs_run_batches_pause(r->batches);
    if ((st = gs_run__place(r)) == GS_OK)
        st = gs_session_run(s, pass, 0, false, stats);
    if (st != GS_OK) {
        r->state = st == GS_EINTERRUPTED ? GS_RUN_IS_STOPPED : GS_RUN_IS_FAILED;
        if (st == GS_EINTERRUPTED)
            (void)gs_run__stopped(r);
        return gs_run__checkpoint_failed(r, st);
    }
    const double loss = gs_figures_loss(&s->labels, &stats->metrics);
    if ((st = gs_run__check_evaluation(r, pass, loss, stats->metrics.rows[GS_SPLIT_TRAIN] > 0)) != GS_OK)
        return gs_run__checkpoint_failed(r, st);
    r->report.loss = loss;
    set_figures(s, r->report.accuracy, &r->report.figures, &stats->metrics);
    if (s->pass.ranked && (st = rank(&r->report.figures, s)) != GS_OK) {
        r->state = st == GS_EINTERRUPTED ? GS_RUN_IS_STOPPED : GS_RUN_IS_FAILED;
        return gs_run__checkpoint_failed(r, st);
    }
    r->constant = r->kind == GS_RUN_TRAIN ? gs_figures_constant(r->control.judge, &s->labels, &stats->metrics,
                                                                r->options.label_smoothing)
                                          : NAN;
    r->evaluated = true;
    r->has_logits = pass == s->pass.predict;
    return GS_OK;
}

gs_status gs_run_evaluate(gs_run *run, gs_evaluation *out)
{
    const double began = gs_now();
    gs_exec_stats x = {0};
    gs_status st;

    if ((st = gs_check_argument(run, "run")) != GS_OK || (st = gs_check_argument(out, "out")) != GS_OK ||
        (st = gs_run__check_open(run)) != GS_OK || (st = gs_run__evaluate(run, &x)) != GS_OK)
        return st;
    *out = (gs_evaluation){.loss = run->report.loss, .seconds = gs_now() - began, .read_bytes = x.read_bytes,
                           .written_bytes = x.written_bytes};
    memcpy(out->accuracy, run->report.accuracy, sizeof(out->accuracy));
    out->figures = run->report.figures;
    return GS_OK;
}
