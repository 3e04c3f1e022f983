/* run_epoch.c - epochs and evaluations of a run on the whole graph, and how a run ends that was stopped. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/size.h"
#include "ranks/ranks.h"
#include "train/figures.h"
#include "train/run_internal.h"

/* ---- rows of tables ------------------------------------------------------ */

#define EXPONENT 0x7F800000u /* all ones: infinite or not a number */

static bool rows_are_finite(const float *value, uint64_t count)
{
    uint32_t most = 0;

#pragma omp simd reduction(max : most)
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &value[i], sizeof(bits));
        most = GS_MAX(most, bits & EXPONENT);
    }
    return most != EXPONENT;
}

typedef struct source {
    gs_session *session;
    uint32_t array;
    uint32_t width, columns, block; /* where blocks of columns are asked for: of a row, of a block, and which */
    float *whole;                   /* rows as they are */
} source;

static gs_status rows_of(void *context, uint64_t first, uint64_t rows, float *dst)
{
    const source *const x = context;
    return gs_session_read_array(x->session, x->array, first, rows, dst);
}

static uint32_t array_of(const gs_table *t, uint32_t rows)
{
    return rows == GS_RUN_ROWS ? t->array : rows == GS_RUN_ROWS_BEST ? t->best : t->state[rows - GS_RUN_ROWS_STATE];
}

#define BLOCK_ROWS_BYTES (256 * GS_KIB)

/* The same of one block of the columns. */
static gs_status columns_of(void *context, uint64_t first, uint64_t rows, float *dst)
{
    const source *const x = context;
    const uint64_t step = GS_MAX(BLOCK_ROWS_BYTES / (x->width * sizeof(float)), 1);

    for (uint64_t at = 0; at < rows; at += step) {
        const uint64_t n = GS_MIN(step, rows - at);
        GS_TRY(gs_session_read_array(x->session, x->array, first + at, n, x->whole));
        for (uint64_t r = 0; r < n; r++)
            memcpy(dst + (at + r) * x->columns, x->whole + r * x->width + (uint64_t)x->block * x->columns,
                   x->columns * sizeof(float));
    }
    return GS_OK;
}

static gs_status write_rows(void *context, uint32_t rows, uint32_t table, gs_outfile *o, uint64_t at)
{
    gs_run *const r = context;
    gs_session *const s = r->session;
    const gs_table *const t = &s->program->table[table];
    const uint32_t blocks = GS_MAX(t->blocks, 1u);
    source x = {.session = s, .array = array_of(t, rows), .width = t->width, .columns = t->width / blocks};
    const gs_logits_job job = {.store = s->store, .classes = x.columns, .source = blocks > 1 ? columns_of : rows_of,
                               .form = GS_LOGITS_ROWS, .memory = s->memory.logits, .context = &x,
                               .scratch_dir = gs_session_scratch_dir(s)}; /* a run that was stopped is saved, too */
    const uint64_t bytes = gs_store_get_info(s->store)->vertices * x.columns * sizeof(float);
    GS_FREED float *const whole = blocks > 1 ? gs_malloc(GS_MAX(BLOCK_ROWS_BYTES, x.width * sizeof(float))) : NULL;

    GS_NEED(blocks <= 1 || whole != NULL, "%s: no memory to write table %s", o->path, t->name);
    x.whole = whole;
    for (x.block = 0; x.block < blocks; x.block++)
        GS_TRY(gs_logits_write(o, at + x.block * bytes, &job));
    return GS_OK;
}

typedef struct reading {
    int fd;
    uint64_t at, row;
    uint64_t blocks, vertices; /* a row is in so many places */
    bool finite; /* they must be */
    const char *path;
} reading;

/* Each from its place in the file: those of a tile may lie anywhere. */
static gs_status take_rows(void *context, uint64_t rows, float *const *row, const uint32_t *id)
{
    const reading *const f = context;

    for (uint64_t k = 0; k < rows * f->blocks; k++) {
        const uint64_t piece = f->row / f->blocks, r = k / f->blocks, block = k % f->blocks;
        GS_TRY(gs_pread_exact(f->fd, (char *)row[0] + k * piece, piece, f->at + (block * f->vertices + id[r]) * piece,
                              f->path));
    }
    if (!f->finite || rows_are_finite(row[0], rows * f->row / sizeof(float)))
        return GS_OK;
    return gs_fail(GS_EFORMAT, "%s: a table has numbers that are not finite; the weights are of no use", f->path);
}

static gs_status read_rows(void *context, uint32_t rows, uint32_t table, int fd, uint64_t at, const char *path)
{
    gs_run *const r = context;
    gs_session *const s = r->session;
    const gs_exec_column column = {.array = array_of(&s->program->table[table], rows), .write = true};
    reading f = {.fd = fd, .at = at, .row = s->program->table[table].width * sizeof(float), .path = path,
                 .finite = rows == GS_RUN_ROWS, .blocks = GS_MAX(s->program->table[table].blocks, 1u),
                 .vertices = gs_store_get_info(s->store)->vertices};
    return gs_session_sweep(s, &column, 1, true, take_rows, &f);
}

gs_safetensors_tables gs_run__tables(gs_run *r, gs_run_rows rows)
{
    return (gs_safetensors_tables){.vertices = gs_store_get_info(r->session->store)->vertices, .run = rows,
                                   .write = write_rows, .read = read_rows, .context = r,
                                   .declared = r->session->declared, .declareds = r->session->declareds};
}

/* ---- the norm ---- */

typedef struct adding {
    uint32_t width;
    double sum;
} adding;

#define ADDED_ROWS 256u

/* Rows by themselves, then row after row: the bits are the same for all threads and tiles. */
double gs_run__add_squares(double sum, const float *row, uint64_t rows, uint32_t width)
{
    for (uint64_t first = 0; first < rows; first += ADDED_ROWS) {
        const uint64_t n = GS_MIN(rows - first, ADDED_ROWS);
        double of_row[ADDED_ROWS];
#pragma omp parallel for schedule(static)
        for (uint64_t r = 0; r < n; r++) {
            const float *const g = row + (first + r) * width;
            of_row[r] = 0;
            for (uint32_t c = 0; c < width; c++)
                of_row[r] += (double)g[c] * (double)g[c];
        }
        for (uint64_t r = 0; r < n; r++)
            sum += of_row[r];
    }
    return sum;
}

static gs_status add_squares(void *context, uint64_t rows, float *const *row, const uint32_t *id)
{
    adding *const a = context;
    (void)id;
    a->sum = gs_run__add_squares(a->sum, row[0], rows, a->width);
    return GS_OK;
}

/* The 2-norm of all gradients, 0 where none are clipped. */
static gs_status gradient_norm(double *out, gs_session *s, const gs_optim *o)
{
    const gs_program *const p = s->program;
    gs_status st = GS_OK;

    *out = 0;
    if (o->clip <= 0)
        return GS_OK;
    double rest = 0;
    if (gs_session_steps_on_device(s))
        GS_TRY(gs_device_gradient_norm(s->machine.device[0], &rest)); /* all have the same bits */
    else
        rest = gs_optim_norm(&s->run.params);
    const bool apart = gs_ranks_count() > 1 && p->tables > 0; /* each rank has rows of its own */
    adding a = {.sum = apart ? 0 : rest * rest};
    for (uint32_t t = 0; t < p->tables && st == GS_OK; t++) {
        const gs_exec_column column = {.array = p->table[t].gradient, .read = true};
        a.width = p->table[t].width;
        if (column.array != GS_NONE)
            st = gs_session_sweep(s, &column, 1, false, add_squares, &a);
    }
    if (apart && (st = gs_ranks_agree(st)) == GS_OK && (st = gs_ranks_sum_f64(&a.sum, 1)) == GS_OK)
        a.sum += rest * rest;
    *out = p->tables > 0 ? sqrt(a.sum) : rest;
    return st;
}

/* ---- the step ---- */

static gs_status refuse(const gs_table *table)
{
    return gs_fail(GS_EDEVICE, "the update left numbers that are not finite in table %s; lower .lr; nothing was saved",
                   table->name);
}

typedef struct stepping {
    const gs_update *u;
    const gs_table *table;
    gs_row_source *gradient; /* of rows by list */
    const void *context;
} stepping;

static bool step_row(void *context, float *const *row, uint32_t place)
{
    const stepping *const x = context;
    gs_optim_rows r = {.count = x->table->width, .value = row[0], .grad = x->gradient(x->context, place)};

    for (uint32_t k = 0; k < x->u->states; k++)
        r.state[k] = row[1 + k];
    gs_optim_apply_to(x->u, &r);
    return rows_are_finite(r.value, r.count);
}

gs_status gs_run__step_rows(gs_run *r, const gs_update *u, const gs_table *table, const gs_row_list *list,
                            gs_row_source *gradient, const void *context)
{
    stepping x = {.u = u, .table = table, .gradient = gradient, .context = context};
    bool finite;

    GS_TRY(gs_session_write_rows(r->session, (const uint32_t[]){table->array, table->state[0], table->state[1]},
                                 1 + gs_optim_states(&r->optim), list, step_row, &x, &finite));
    return finite ? GS_OK : refuse(table);
}

#define SHARE_ROWS 64u

/* Columns: the rows, their gradient, the state. */
static gs_status step_rows(void *context, uint64_t rows, float *const *row, const uint32_t *id)
{
    const stepping *const x = context;
    const uint32_t width = x->table->width;
    bool finite = true;

    (void)id;
#pragma omp parallel for schedule(static) reduction(&& : finite)
    for (uint64_t first = 0; first < rows; first += SHARE_ROWS) {
        const uint64_t at = first * width;
        gs_optim_rows r = {.value = row[0] + at, .grad = row[1] + at};
        r.count = GS_MIN(rows - first, SHARE_ROWS) * width;
        for (uint32_t k = 0; k < x->u->states; k++)
            r.state[k] = row[2 + k] + at;
        gs_optim_apply_to(x->u, &r);
        finite = finite && rows_are_finite(r.value, r.count);
    }
    return finite ? GS_OK : refuse(x->table);
}

/* A step of tables; the parameters' is made by whoever has them. GS_EDEVICE: it left rows that are not finite. */
static gs_status step_tables(gs_session *s, const gs_update *u)
{
    gs_status st = GS_OK;

    for (uint32_t t = 0; t < s->program->tables && st == GS_OK; t++) {
        const gs_table *const table = &s->program->table[t];
        const gs_exec_column column[GS_EXEC_COLUMNS] = {{.array = table->array, .read = true, .write = true},
                                                        {.array = table->gradient, .read = true},
                                                        {.array = table->state[0], .read = true, .write = true},
                                                        {.array = table->state[1], .read = true, .write = true}};
        stepping x = {.u = u, .table = table};
        if (table->gradient != GS_NONE)
            st = gs_session_sweep(s, column, 2 + u->states, false, step_rows, &x);
    }
    return s->program->tables > 0 ? gs_ranks_agree(st) : st;
}

/* ---- results of a pass --------------------------------------------------- */

static double ratio(uint64_t a, uint64_t b) { return b == 0 ? NAN : (double)a / (double)b; }

static void set_figures(const gs_session *s, double accuracy[3], gs_task_figures *figures, const gs_metrics *m)
{
    for (int k = 0; k < 3; k++)
        accuracy[k] = s->labels.task == GS_TRAIN_TASK_CLASSIFY ? ratio(m->correct[k + 1], m->rows[k + 1]) : NAN;
    gs_figures_of(figures, &s->labels, m);
}

void gs_run__add_stats(gs_epoch_report *e, const gs_exec_stats *x)
{
    e->compute_seconds += x->compute_seconds;
    e->edge_seconds += x->edge_seconds;
    e->stall_seconds += x->stall_seconds;
    e->read_bytes += x->read_bytes;
    e->written_bytes += x->written_bytes;
    e->handed_over += x->handed_over;
    e->copied_in_bytes += x->copied_in_bytes;
    e->copied_out_bytes += x->copied_out_bytes;
    e->forwarded_bytes += x->forwarded_bytes;
    e->loaded_bytes += x->loaded_bytes;
    e->sent_bytes += x->sent_bytes;
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

    GS_TRY(gs_session_give_rows(s, gs_ranks_self() == 0 ? gs_rank_logits(&ranks, s) : GS_OK));
    GS_TRY(gs_ranks_share(&ranks, sizeof(ranks)));
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
    double loss; /* the training pass's own is the epoch's */

    if (!evaluates(r->session, e->epoch) || r->part.begun)
        return GS_OK;
    gs_run_batches_pause(r->batches);
    if (r->pairs != NULL) {
        GS_TRY(gs_run_pairs_evaluate(r, e->epoch, &e->figures, e->accuracy, &loss, &x));
    } else {
        GS_TRY(gs_session_run(r->session, ranks ? r->session->pass.predict : r->session->pass.eval, e->epoch, false,
                              &x));
        set_figures(r->session, e->accuracy, &e->figures, &x.metrics);
        if (ranks)
            GS_TRY(rank(&e->figures, r->session));
    }
    gs_run__add_stats(e, &x);
    return GS_OK;
}

/* The optimiser's step where the parameters are: in the devices' memory, or here; and of tables, which are here. */
static gs_status step(gs_session *s, gs_optim *o)
{
    double norm = 0;

    GS_TRY(gradient_norm(&norm, s, o));
    const gs_update u = gs_optim_next(o, norm);
    if (gs_session_steps_on_device(s))
        GS_TRY(gs_session_step(s, &u));
    else
        gs_optim_apply(&u, &s->run.params);
    return step_tables(s, &u);
}

/* The gradients of all that is learned, and the loss, which is finite. */
static gs_status differentiate(gs_run *r, gs_epoch_report *e, gs_exec_stats *x)
{
    gs_session *const s = r->session;
    const bool again = e->epoch < r->options.epochs && !evaluates(s, e->epoch + 1);

    if (r->pairs != NULL)
        return gs_run_pairs_differentiate(r, e, x);
    GS_TRY(gs_session_run(s, s->pass.train, e->epoch, again, x));
    e->loss = gs_figures_loss(&s->labels, &x->metrics);
    return gs_run__check_pass(r, e->epoch, e->loss);
}

static gs_status train_and_update(gs_run *r, gs_epoch_report *e)
{
    gs_session *const s = r->session;
    gs_exec_stats x = {0};

    GS_TRY(differentiate(r, e, &x));
    if (r->options.profile)
        gs_session_observe(s, &x, &r->profile);
    if (!s->pass.train_differs && !s->config.ranks)
        set_figures(s, e->accuracy, &e->figures, &x.metrics);
    gs_run__add_stats(e, &x);
    const double update = gs_now();
    r->optim.lr = e->lr = gs_control_rate(&r->control, e->epoch);
    if (gs_control_note(&r->control, e->epoch, judged(r, e), e->loss) && r->control.keeps_best)
        GS_TRY(gs_session_keep_best(s));
    e->over = gs_control_is_over(&r->control, e->epoch);
    gs_run__before_step(r);
    r->whole = false;
    const uint64_t before[2] = {s->run.swept[0], s->run.swept[1]};
    GS_TRY(step(s, &r->optim));
    uint64_t swept[2] = {s->run.swept[0] - before[0], s->run.swept[1] - before[1]};
    if (s->program->tables > 0)
        GS_TRY(gs_ranks_sum_u64(swept, 2));
    e->read_bytes += swept[0];
    e->written_bytes += swept[1];
    gs_params_follow(&s->run.params, s->program, gs_store_get_info(s->store)->vertices);
    e->compute_seconds += gs_now() - update;
    return gs_run__check_step(r, e->epoch);
}

/* An epoch that is a step for each batch is judged by the evaluation before it, if there was one. */
static gs_status begin_part(gs_run *r, const gs_epoch_report *e)
{
    gs_control *const c = &r->control;
    const double lr = gs_control_rate(c, e->epoch);

    if (c->valid && gs_control_note(c, e->epoch, judged(r, e), NAN) && c->keeps_best)
        GS_TRY(gs_session_keep_best(r->session));
    r->part = (gs_epoch_part){.begun = true, .lr = lr, .figures = e->figures};
    memcpy(r->part.accuracy, e->accuracy, sizeof(e->accuracy));
    return GS_OK;
}

/* Begins, or goes on where it was stopped. */
static gs_status train_on_batches(gs_run *r, gs_epoch_report *e)
{
    gs_control *const c = &r->control;
    gs_epoch_part *const p = &r->part;

    if (!p->begun)
        GS_TRY(begin_part(r, e));
    memcpy(p->figures.task, e->figures.task, sizeof(p->figures.task));
    e->figures = p->figures;
    memcpy(e->accuracy, p->accuracy, sizeof(e->accuracy));
    r->optim.lr = e->lr = p->lr;
    GS_TRY(r->batches != NULL ? gs_run_batches_epoch(r, e) : gs_run_pairs_epoch(r, e));
    e->loss = p->mass > 0 ? p->loss / p->mass : NAN;
    *p = (gs_epoch_part){0};
    gs_control_note_loss(c, e->epoch, e->loss);
    if (!c->valid)
        (void)gs_control_note(c, e->epoch, NAN, e->loss);
    e->over = gs_control_is_over(c, e->epoch);
    return GS_OK;
}

static bool steps_by_batch(const gs_run *r) { return r->batches != NULL || gs_run_pairs_step_by_batch(r->pairs); }

static gs_status run_epoch(gs_run *r, gs_epoch_report *e)
{
    const double began = gs_now();

    GS_TRY(gs_run__check_stop(r));
    r->evaluated = r->has_logits = false;
    GS_TRY(gs_run__place(r));
    GS_TRY(evaluate_epoch(r, e));
    GS_TRY(steps_by_batch(r) ? train_on_batches(r, e) : train_and_update(r, e));
    e->seconds = gs_now() - began;
    if (r->options.profile && r->batches != NULL)
        gs_run_batches_observe(r->batches, e, &r->profile);
    e->peak_device_bytes = r->session->plan->device_bytes;
    GS_TRY(gs_run__peak_bytes(&e->peak_host_bytes));
    GS_TRY(gs_kept_lines_add(&r->saver.lines, e));
    return gs_metrics_log_write(&r->files.metrics, e);
}

gs_status gs_run_epoch(gs_run *run, gs_epoch_report *out)
{
    const double began = gs_now();

    GS_TRY(gs_check_argument(run, "run"));
    GS_TRY(gs_run__check_open(run));
    if (run->kind != GS_RUN_TRAIN)
        return gs_fail(GS_EINVAL, "run: was opened with GS_RUN_PREDICT; epochs need GS_RUN_TRAIN");
    gs_epoch_report e = {
        .epoch = run->epoch + 1,
        .epochs = GS_MAX(run->options.epochs, run->epoch + 1),
        .accuracy = {NAN, NAN, NAN},
    };
    gs_figures_none(&e.figures, &run->session->labels);
    gs_status st = run_epoch(run, &e);
    if (st != GS_OK) {
        if (st == GS_EINTERRUPTED)
            (void)gs_run__stopped(run);
        run->state = st == GS_EINTERRUPTED && run->whole ? GS_RUN_IS_STOPPED : GS_RUN_IS_FAILED;
        if (run->part.batches > 0) { /* what it took is not lost either */
            run->report.seconds += gs_now() - began;
            run->report.read_bytes += e.read_bytes;
        }
        st = gs_run__checkpoint_failed(run, st);
        return st == GS_EINTERRUPTED ? st : gs_run__end_all(st);
    }
    run->whole = true;
    __atomic_store_n(&run->epoch, e.epoch, __ATOMIC_RELAXED);
    run->report.epochs = e.epoch;
    run->report.read_bytes += e.read_bytes;
    run->report.written_bytes += e.written_bytes;
    run->report.seconds += gs_now() - began;
    if ((st = gs_run__checkpoint_if_due(run)) != GS_OK) {
        run->state = GS_RUN_IS_FAILED;
        return gs_run__end_all(st);
    }
    if (out != NULL)
        *out = e;
    return GS_OK;
}

/* ---- evaluation ---------------------------------------------------------- */

/* Loss and figures of the weights as they are, by the pass that also stores
 * the logits where they are wanted. */
static gs_status evaluate_vertices(gs_run *r, gs_exec_stats *x)
{
    gs_session *const s = r->session;
    const uint32_t pass = s->pass.predict != GS_NONE ? s->pass.predict : s->pass.eval;

    GS_TRY(gs_session_run(s, pass, 0, false, x));
    const double loss = gs_figures_loss(&s->labels, &x->metrics);
    GS_TRY(gs_run__check_evaluation(r, pass, loss, x->metrics.rows[GS_SPLIT_TRAIN] > 0));
    r->report.loss = loss;
    set_figures(s, r->report.accuracy, &r->report.figures, &x->metrics);
    if (s->pass.ranked)
        GS_TRY(rank(&r->report.figures, s));
    r->constant = r->kind == GS_RUN_TRAIN ? gs_figures_constant(r->control.judge, &s->labels, &x->metrics,
                                                                r->options.label_smoothing)
                                          : NAN;
    r->has_logits = pass == s->pass.predict;
    return GS_OK;
}

/* Pairs have figures of their own; without layers the pass "predict" is for rows that are asked for. */
static gs_status evaluate_pairs(gs_run *r, gs_exec_stats *x)
{
    const bool rows = r->options.logits != NULL || r->options.keep_logits;

    GS_TRY(gs_run_pairs_evaluate(r, 0, &r->report.figures, r->report.accuracy, &r->report.loss, x));
    if (rows && !r->has_logits)
        GS_TRY(gs_session_run(r->session, r->session->pass.predict, 0, false, x));
    r->constant = NAN;
    r->has_logits = r->has_logits || rows;
    return GS_OK;
}

gs_status gs_run__evaluate(gs_run *r, gs_exec_stats *x)
{
    gs_exec_stats own = {0}, *const stats = x != NULL ? x : &own;

    gs_run_batches_pause(r->batches);
    gs_status st = gs_run__place(r);
    if (st == GS_OK)
        st = r->pairs != NULL ? evaluate_pairs(r, stats) : evaluate_vertices(r, stats);
    r->evaluated = st == GS_OK;
    if (st == GS_OK)
        return GS_OK;
    r->state = st == GS_EINTERRUPTED ? GS_RUN_IS_STOPPED : GS_RUN_IS_FAILED;
    if (st == GS_EINTERRUPTED)
        (void)gs_run__stopped(r);
    return gs_run__checkpoint_failed(r, st);
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

/* ---- a run that was stopped ---------------------------------------------- */

/* A run that .stop has ended: what it has learned by then is not lost.
 *
 * A step is all or nothing, so the weights are those after the last whole epoch, of a run on batches those after the
 * last batch, or the best ones before. */

/* No pass has to say which are better: of those after the last epoch nothing is known. *best: they are not the last
 * ones. */
static gs_status choose_weights(gs_run *r, bool *best)
{
    const gs_control *const c = &r->control;

    r->report.kept_epochs = r->epoch;
    *best = c->keeps_best && c->state.best_epoch != 0 &&
            (c->state.best_epoch <= r->epoch || r->part.batches > 0);
    if (!*best)
        return GS_OK;
    r->report.kept_epochs = c->state.best_epoch - 1;
    r->evaluated = r->has_logits = r->has_previous = r->whole = false;
    return gs_session_back_to_best(r->session);
}

/* The line about the pass again, and what there is of the run: `left`, which may be empty. */
static gs_status say_why(gs_run *r, const char *left)
{
    const char *const folder = r->saver.folder.path;
    const gs_checkpoint_report *const c = &r->saver.report;
    char hint[1500], state[400] = "", far[GS_HOW_FAR_BYTES];

    if (folder != NULL && gs_run__has_learned(r) && c->epoch == r->epoch && c->batches == r->part.batches)
        snprintf(state, sizeof(state), "%s has its state after %s", folder, gs_run__how_far(r, far));
    snprintf(hint, sizeof(hint), "%s%s%s", state, state[0] != '\0' && left[0] != '\0' ? "; " : "", left);
    (void)gs_run__stopped(r);
    return hint[0] != '\0' ? gs_fail_hint(GS_EINTERRUPTED, hint) : GS_EINTERRUPTED;
}

static gs_status say_what_was_written(gs_run *r, bool best)
{
    const gs_train_options *const o = &r->options;
    char left[1024], far[GS_HOW_FAR_BYTES];
    const char *const named[] = {o->save, o->logits, o->argmax};
    size_t n = 0;

    for (size_t k = 0; k < GS_ARRAY_LEN(named) && n < sizeof(left); k++)
        if (named[k] != NULL)
            n += (size_t)snprintf(left + n, sizeof(left) - n, "%s%s", n > 0 ? " and " : "wrote ", named[k]);
    if (n < sizeof(left) && best)
        snprintf(left + n, sizeof(left) - n, " of the best weights, after epoch %u", r->report.kept_epochs);
    else if (n < sizeof(left))
        snprintf(left + n, sizeof(left) - n, " of the last weights, after %s", gs_run__how_far(r, far));
    return say_why(r, left);
}

gs_status gs_run__finish_stopped(gs_run *r, gs_train_report *report)
{
    const gs_train_options *const o = &r->options;
    bool best = false;

    const bool files = o->save != NULL || o->logits != NULL || o->argmax != NULL;

    if (r->kind == GS_RUN_PREDICT || (!files && gs_ranks_count() == 1)) /* rank 0 may want the others' rows */
        return say_why(r, "");
    if (!gs_run__has_learned(r))
        return say_why(r, "no epoch was done, so no weights or logits were written");
    r->options.stop = NULL; /* it was heard */
    r->state = GS_RUN_IS_OPEN;
    GS_TRY(gs_run__fetch(r));
    GS_TRY(choose_weights(r, &best));
    if ((o->logits != NULL || o->argmax != NULL || (o->keep_logits && gs_ranks_count() > 1)) && !r->has_logits)
        GS_TRY(gs_run__evaluate(r, NULL));
    r->state = GS_RUN_IS_FINISHED;
    gs_outfile_abandon(&r->files.trace); /* of a whole epoch, which is not there */
    GS_TRY(gs_run__write_files(r));
    if (report != NULL)
        *report = r->report;
    return files ? say_what_was_written(r, best) : say_why(r, "");
}
