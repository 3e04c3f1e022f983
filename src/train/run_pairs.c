/* run_pairs.c - losses of pairs of vertices, and their ranks, by rows that the session has. */
#include "train/run_pairs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/npy.h"
#include "base/option_table.h"
#include "base/radix.h"
#include "base/size.h"
#include "pairs/pair_batch.h"
#include "pairs/pair_rank.h"
#include "pairs/pair_step.h"
#include "model/model.h"
#include "session/learned.h"
#include "session/session_plan.h"
#include "session/tables.h"
#include "train/figures.h"
#include "train/run_internal.h"

#define TYPES_NAME "rel_emb.weight" /* PyG's, in its knowledge graph embeddings */
#define TYPES_DEVIATION 0.1

#define NOT_AT_PAIRS UINT32_MAX /* between epochs, and while passes run */

struct gs_run_pairs {
    const gs_decoder *decoder;
    uint32_t width, threads;
    bool by_auc;                   /* edges have no types */
    gs_pair_batches batches;
    gs_pair_step step;
    gs_pair_ranks *ranks;
    uint32_t *named, *order, *spare; /* [most_rows] of a batch, ascending */
    uint32_t at;                     /* the epoch's batch at work, or NOT_AT_PAIRS; any thread reads it */
    /* behind layers: */
    bool layers;
    uint64_t numbers;
    float *gradient; /* [numbers] of what the decoder has learned, in the order of its parameters */
};

/* ---- opening --------------------------------------------------------------- */

gs_status gs_run_pairs_are_rows_alone(bool *out, const gs_train_options *o)
{
    gs_model *m = NULL, *rows = NULL;
    gs_status st = gs_session_open_model(&m, o);

    if (st == GS_OK && (st = gs_model_open(&rows, "embedding")) == GS_OK)
        *out = gs_model_text_id(m) == gs_model_text_id(rows);
    gs_model_close(m);
    gs_model_close(rows);
    return st;
}

gs_status gs_run_pairs_check(const gs_train_options *o)
{
    const struct {
        const char *name;
        bool given;
    } of_vertices[] = {
        {".class_weights", o->class_weights != NULL}, {".label_smoothing", o->label_smoothing > 0},
        {".sampler", gs_choice(o, sampler) > 0},      {".trace", o->trace != NULL},
        {".batches_per_step", o->batches_per_step > 1}, {".embeddings", o->embeddings},
        {".softmax", o->softmax},                     {".argmax", o->argmax != NULL},
        {".shuffle", o->shuffle != NULL},
    };

    for (size_t k = 0; k < GS_ARRAY_LEN(of_vertices); k++)
        if (of_vertices[k].given)
            return gs_fail(GS_EINVAL, "%s: does not go with .task link; leave it out", of_vertices[k].name);
    if (strcmp(o->device, "cpu") != 0)
        return gs_fail(GS_EUNSUPPORTED, ".device %s: pairs are learned by processors; use cpu", o->device);
    if (o->loss != NULL && gs_choice(o, loss) < GS_LOSSES)
        return gs_fail(GS_EINVAL, ".loss %s: is of labels; use softmax, logistic or margin with .task link", o->loss);
    if (o->margin != 0 && (o->loss == NULL || gs_choice(o, loss) != GS_LOSSES + GS_PAIR_MARGIN))
        return gs_fail(GS_EINVAL, ".margin %g: is of .loss margin; leave it out", o->margin);
    if (gs_decoder_of((gs_decoder_kind)gs_choice(o, decoder))->halves && o->hidden % 2 != 0)
        return gs_fail(GS_EINVAL, ".hidden %u: rows of %s are complex numbers; use an even width", o->hidden,
                       o->decoder);
    return GS_OK;
}

static uint32_t types_of(const gs_store *store) { return GS_MAX(gs_store_get_info(store)->edge_types, 1); }

uint32_t gs_run_pairs_params(gs_param out[GS_PAIR_PARAMS], const gs_store *store, const gs_train_options *o)
{
    const gs_decoder *const d = gs_decoder_of((gs_decoder_kind)gs_choice(o, decoder));
    const uint32_t width = o->hidden;
    const gs_initial wide = gs_initial_fan_in(2 * width), narrow = gs_initial_fan_in(width);
    const gs_param types = {.name = TYPES_NAME, .dims = 2, .rows = types_of(store), .cols = width,
                            .initial = {GS_INITIAL_NORMAL, TYPES_DEVIATION}},
                   perceptron[] = { /* torch.nn.Linear's, of [2 width] to [width], and to one number */
        {.name = "lin1.weight", .dims = 2, .rows = width, .cols = 2 * width, .initial = wide},
        {.name = "lin1.bias", .dims = 1, .rows = 1, .cols = width, .initial = wide},
        {.name = "lin2.weight", .dims = 2, .rows = 1, .cols = width, .initial = narrow},
        {.name = "lin2.bias", .dims = 1, .rows = 1, .cols = 1, .initial = narrow}};
    uint32_t n = 0;

    if (d->of_types)
        out[n++] = types;
    for (size_t k = 0; k < GS_ARRAY_LEN(perceptron) && d->projects; k++)
        out[n++] = perceptron[k];
    for (uint32_t k = 0; k < n; k++) {
        out[k].learns = true;
        out[k].running = GS_NONE;
    }
    return n;
}

/* What the decoder has among a session's parameters, or their gradients. */
static gs_decoder_values values_in(const gs_session *s, float *const *of)
{
    gs_decoder_values v = {0};
    const struct {
        const char *name;
        float **to;
    } named[] = {{TYPES_NAME, &v.types}, {"lin1.weight", &v.lin1}, {"lin1.bias", &v.lin1_bias},
                 {"lin2.weight", &v.lin2}, {"lin2.bias", &v.lin2_bias}};

    for (uint32_t i = s->program->params - s->config.pair_params; i < s->program->params; i++)
        for (size_t k = 0; k < GS_ARRAY_LEN(named); k++)
            if (strcmp(s->program->param[i].name, named[k].name) == 0)
                *named[k].to = of[i];
    return v;
}

/* Numbers of the decoder's parameters, where their gradients are of a whole epoch. */
static uint64_t gradient_floats(const gs_run_pairs *p, const gs_store *store, const gs_train_options *o)
{
    gs_param param[GS_PAIR_PARAMS];
    uint64_t n = 0;

    for (uint32_t k = 0; k < GS_PAIR_PARAMS && p->layers; k++)
        n += k < gs_run_pairs_params(param, store, o) ? gs_param_elements(&param[k]) : 0;
    return n;
}

static gs_status open_batches(gs_run_pairs *p, const gs_store *store, const gs_train_options *o)
{
    const int corrupt = gs_choice(o, corrupt); /* both, head, tail */
    const gs_pair_batch_options of_batches = {
        .seed = o->seed, .batch_size = gs_count(o, batch_size), .negatives = gs_count(o, negatives),
        .asks = {corrupt != 1, corrupt != 2}, .by = (gs_negatives_by)gs_choice(o, negatives_by), .stop = o->stop};
    gs_status st = gs_pair_batches_open(&p->batches, store, &of_batches);

    if (st != GS_OK)
        return st;
    const gs_pair_step_options of_step = {
        .decoder = p->decoder, .width = p->width, .types = types_of(store), .threads = p->threads,
        .loss = o->loss == NULL ? GS_PAIR_SOFTMAX : (gs_pair_loss)(gs_choice(o, loss) - (int)GS_LOSSES),
        .margin = o->margin > 0 ? (float)o->margin : 1, .asks = {of_batches.asks[0], of_batches.asks[1]},
        .negatives = of_batches.negatives, .most_pairs = p->batches.most_pairs, .most_slots = p->batches.most_slots,
        .most_rows = p->batches.most_rows, .mean_over = p->layers ? p->batches.source.pairs : 0};
    if ((st = gs_pair_step_open(&p->step, &of_step)) != GS_OK)
        return st;
    p->named = gs_malloc_array(p->batches.most_rows, sizeof(*p->named));
    p->order = gs_malloc_array(p->batches.most_rows, sizeof(*p->order));
    p->spare = gs_malloc_array(p->batches.most_rows, sizeof(*p->spare));
    p->numbers = gradient_floats(p, store, o);
    p->gradient = gs_malloc_array(p->numbers + 1, sizeof(*p->gradient));
    return p->named != NULL && p->order != NULL && p->spare != NULL && p->gradient != NULL
               ? GS_OK
               : gs_fail(GS_ENOMEM, "no memory for the rows of a batch of pairs");
}

static gs_pair_rank_options rank_options(const gs_store *store, const gs_train_options *o)
{
    return (gs_pair_rank_options){.store = store, .width = o->hidden, .seed = o->seed, .stop = o->stop,
                                  .decoder = gs_decoder_of((gs_decoder_kind)gs_choice(o, decoder)),
                                  .threads = o->threads != 0 ? o->threads : gs_machine_cpus()};
}

gs_status gs_run_pairs_open(gs_run_pairs **out, const gs_store *store, const gs_train_options *o, bool rows_alone)
{
    const gs_pair_rank_options of_ranks = rank_options(store, o);
    gs_run_pairs *p = gs_calloc(1, sizeof(*p));
    gs_status st;

    if (p == NULL)
        return gs_fail(GS_ENOMEM, "no memory for a run of pairs");
    p->decoder = of_ranks.decoder;
    p->width = of_ranks.width;
    p->threads = of_ranks.threads;
    p->layers = !rows_alone;
    p->at = NOT_AT_PAIRS;
    p->by_auc = gs_store_get_info(store)->edge_types == 0;
    if ((st = open_batches(p, store, o)) == GS_OK && (st = gs_pair_ranks_open(&p->ranks, &of_ranks)) == GS_OK)
        *out = p;
    else
        gs_run_pairs_close(p);
    return st;
}

void gs_run_pairs_close(gs_run_pairs *p)
{
    if (p == NULL)
        return;
    gs_pair_ranks_close(p->ranks);
    gs_pair_step_close(&p->step);
    gs_pair_batches_close(&p->batches);
    gs_free(p->named);
    gs_free(p->order);
    gs_free(p->spare);
    gs_free(p->gradient);
    gs_free(p);
}

uint64_t gs_run_pairs_bytes(const gs_run_pairs *p)
{
    return gs_pair_batches_bytes(&p->batches) + gs_pair_step_bytes(&p->step.o) + gs_pair_ranks_bytes(p->ranks) +
           3ull * p->batches.most_rows * sizeof(uint32_t) + (p->numbers + 1) * sizeof(float);
}

bool gs_run_pairs_step_by_batch(const gs_run_pairs *p) { return p != NULL && !p->layers; }

/* ---- rows ------------------------------------------------------------------ */

#define TABLE 0u /* of the model without layers: it has no other */

/* Rows of named[] as a sweep comes upon them; `at`: the first that is not behind. */
typedef struct going {
    gs_run_pairs *p;
    const uint32_t *named, *order;
    uint32_t rows, at, width, states;
    float *to;               /* that they are copied to, or */
    const gs_update *update; /* what is made of them */
    bool finite;
} going;

static uint32_t named_below(const going *g, uint64_t end)
{
    uint32_t k = g->at;
    while (k < g->rows && g->named[k] < end)
        k++;
    return k;
}

static gs_status copy_rows(void *context, uint64_t first, uint64_t rows, float *const *row)
{
    going *const g = context;
    const uint32_t from = g->at, end = named_below(g, first + rows);

#pragma omp parallel for schedule(static) if ((uint64_t)(end - from) * g->width > 16384)
    for (uint32_t k = from; k < end; k++)
        memcpy(g->to + (uint64_t)g->order[k] * g->width, row[0] + (g->named[k] - first) * g->width,
               g->width * sizeof(float));
    g->at = end;
    return GS_OK;
}

static gs_status update_rows(void *context, uint64_t first, uint64_t rows, float *const *row)
{
    going *const g = context;
    const uint32_t from = g->at, end = named_below(g, first + rows);
    bool finite = true;

#pragma omp parallel for schedule(static) reduction(&& : finite) if ((uint64_t)(end - from) * g->width > 4096)
    for (uint32_t k = from; k < end; k++) {
        const uint64_t at = (g->named[k] - first) * g->width;
        const gs_optim_rows r = {.count = g->width, .value = row[0] + at,
                                 .state = {g->states > 0 ? row[1] + at : NULL, g->states > 1 ? row[2] + at : NULL},
                                 .grad = gs_pair_step_gradient(&g->p->step, g->order[k])};
        gs_optim_apply_to(g->update, &r);
        finite = finite && gs_run__rows_are_finite(r.value, g->width);
    }
    g->at = end;
    g->finite = g->finite && finite;
    return GS_OK;
}

static gs_status fetch_of(gs_session *s, uint32_t array, const uint32_t *named, const uint32_t *order, uint32_t rows,
                          uint32_t width, float *to)
{
    const gs_exec_column column = {.array = array, .read = true};
    going g = {.named = named, .order = order, .rows = rows, .width = width, .to = to};

    return gs_session_sweep_named(s, &column, 1, named, rows, copy_rows, &g);
}

/* Rows that pairs are judged by. */
static gs_status fetch(void *context, const uint32_t *named, const uint32_t *order, uint32_t rows, uint32_t width,
                       float *to)
{
    gs_session *const s = context;
    return fetch_of(s, s->pairs.judged, named, order, rows, width, to);
}

typedef struct piece {
    gs_rows_piece_fn *fn;
    void *argument;
    uint64_t first;
} piece;

static gs_status hand_over(void *context, uint64_t rows, float *const *row, const uint32_t *id)
{
    piece *const x = context;
    const uint64_t first = x->first;

    x->first += rows;
    return x->fn(x->argument, first, rows, row[0], id);
}

static gs_status each(void *context, bool ids, gs_rows_piece_fn *fn, void *argument)
{
    gs_session *const s = context;
    const gs_exec_column column = {.array = s->pairs.judged, .read = true};
    piece x = {.fn = fn, .argument = argument};

    return gs_session_sweep(s, &column, 1, ids, hand_over, &x);
}

/* ---- a step ---------------------------------------------------------------- */

static double gradient_norm(const gs_run *r, const gs_pair_batch *batch)
{
    const gs_run_pairs *const p = r->pairs;
    const double rest = gs_optim_norm(&r->session->run.params);
    double sum = rest * rest;

    for (uint32_t k = 0; k < batch->rows; k++)
        sum = gs_run__add_squares(sum, gs_pair_step_gradient(&p->step, p->order[k]), 1, p->width);
    return sqrt(sum);
}

static gs_status update(gs_run *r, const gs_pair_batch *batch)
{
    gs_run_pairs *const p = r->pairs;
    gs_session *const s = r->session;
    const gs_table *const t = &s->program->table[TABLE];
    const gs_update u = gs_optim_next(&r->optim, r->optim.clip > 0 ? gradient_norm(r, batch) : 0);
    const gs_exec_column column[] = {{.array = t->array, .read = true, .write = true},
                                     {.array = t->state[0], .read = true, .write = true},
                                     {.array = t->state[1], .read = true, .write = true}};
    going g = {.p = p, .named = p->named, .order = p->order, .rows = batch->rows, .width = p->width,
               .states = gs_optim_states(&r->optim), .update = &u, .finite = true};

    gs_optim_apply(&u, &s->run.params);
    const gs_status st = gs_session_sweep_named(s, column, 1 + g.states, p->named, batch->rows, update_rows, &g);
    return st != GS_OK || g.finite ? st : gs_run__refuse_table(t->name);
}

/* The batch's rows in the order of the store. */
static gs_status bring_rows(gs_run *r, const gs_pair_batch *batch)
{
    gs_run_pairs *const p = r->pairs;

    gs_radix_order(p->order, p->spare, batch->vertex, batch->rows);
    for (uint32_t k = 0; k < batch->rows; k++)
        p->named[k] = batch->vertex[p->order[k]];
    return fetch_of(r->session, r->session->pairs.rows, p->named, p->order, batch->rows, p->width, p->step.rows);
}

static gs_status train_batch(gs_run *r, gs_epoch_report *e)
{
    gs_run_pairs *const p = r->pairs;
    gs_params *const params = &r->session->run.params;
    const uint32_t ends = p->step.o.asks[0] + p->step.o.asks[1];
    const gs_decoder_values values = values_in(r->session, params->value), d = values_in(r->session, params->grad);
    gs_pair_batch batch;
    double loss;
    gs_status st;

    if ((st = gs_pair_batches_next(&p->batches, &batch)) != GS_OK || (st = bring_rows(r, &batch)) != GS_OK)
        return st;
    gs_params_zero_grads(params);
    gs_pair_step_run(&p->step, &batch, &values, &d, &loss);
    if ((st = gs_run__check_pass(r, e->epoch, loss)) != GS_OK)
        return st;
    r->part.loss += loss;
    r->part.mass += (double)batch.pairs * ends;
    gs_run__before_step(r);
    r->whole = false;
    if ((st = update(r, &batch)) != GS_OK)
        return st;
    st = gs_run__check_step(r, e->epoch);
    r->whole = st == GS_OK;
    return st;
}

static void say_how_far(gs_run_pairs *p, uint32_t batches) { __atomic_store_n(&p->at, batches, __ATOMIC_RELAXED); }

bool gs_run_pairs_progress(const gs_run_pairs *p, gs_progress *out)
{
    const uint32_t at = p != NULL ? __atomic_load_n(&p->at, __ATOMIC_RELAXED) : NOT_AT_PAIRS;

    if (at == NOT_AT_PAIRS)
        return false;
    snprintf(out->pass, sizeof(out->pass), "%s", p->layers ? "pairs" : "train");
    out->tasks_done = at;
    out->tasks = p->batches.batches;
    return true;
}

gs_status gs_run_pairs_epoch(gs_run *r, gs_epoch_report *e)
{
    gs_run_pairs *const p = r->pairs;
    gs_epoch_part *const part = &r->part;
    const uint64_t *const swept = r->session->run.swept, before[2] = {swept[0], swept[1]};
    const double began = gs_now();
    gs_status st = gs_pair_batches_seek(&p->batches, e->epoch, part->batches);

    part->of = p->batches.batches;
    say_how_far(p, part->batches);
    while (st == GS_OK && part->batches < part->of) {
        if (r->options.stop != NULL && *r->options.stop) {
            st = gs_fail(GS_EINTERRUPTED, "interrupted");
            break;
        }
        if ((st = train_batch(r, e)) != GS_OK)
            break;
        part->batches++;
        say_how_far(p, part->batches);
        if (part->batches < part->of)
            st = gs_run__checkpoint_if_due(r);
    }
    say_how_far(p, NOT_AT_PAIRS);
    e->compute_seconds += gs_now() - began;
    e->read_bytes += swept[0] - before[0];
    e->written_bytes += swept[1] - before[1];
    return st;
}

/* ---- behind layers ----------------------------------------------------------- */

static gs_status clear_rows(void *context, uint64_t rows, float *const *row, const uint32_t *id)
{
    (void)id;
    memset(row[0], 0, rows * *(const uint32_t *)context * sizeof(float));
    return GS_OK;
}

static gs_status add_gradients(void *context, uint64_t first, uint64_t rows, float *const *row)
{
    going *const g = context;
    const uint32_t from = g->at, end = named_below(g, first + rows);

#pragma omp parallel for schedule(static) if ((uint64_t)(end - from) * g->width > 16384)
    for (uint32_t k = from; k < end; k++) {
        float *const to = row[0] + (g->named[k] - first) * g->width;
        const float *const more = gs_pair_step_gradient(&g->p->step, g->order[k]);
        for (uint32_t c = 0; c < g->width; c++)
            to[c] += more[c];
    }
    g->at = end;
    return GS_OK;
}

/* What all pairs say of the rows, added up in the order of batches: *loss is their sum. */
static gs_status add_batches(gs_run *r, uint32_t epoch, double *loss)
{
    gs_run_pairs *const p = r->pairs;
    gs_session *const s = r->session;
    const gs_exec_column column = {.array = s->pairs.upstream, .read = true, .write = true};
    const gs_decoder_values values = values_in(s, s->run.params.value), d = values_in(s, s->run.params.grad);
    gs_status st = gs_pair_batches_seek(&p->batches, epoch, 0);

    *loss = 0;
    for (uint32_t k = 0; k < p->batches.batches && st == GS_OK; k++) {
        going g = {.p = p, .named = p->named, .order = p->order, .width = p->width};
        gs_pair_batch batch;
        double part;
        say_how_far(p, k);
        if (r->options.stop != NULL && *r->options.stop)
            return gs_fail(GS_EINTERRUPTED, "interrupted");
        if ((st = gs_pair_batches_next(&p->batches, &batch)) != GS_OK || (st = bring_rows(r, &batch)) != GS_OK)
            break;
        gs_pair_step_run(&p->step, &batch, &values, &d, &part);
        *loss += part;
        g.rows = batch.rows;
        st = gs_session_sweep_named(s, &column, 1, p->named, batch.rows, add_gradients, &g);
    }
    return st;
}

/* The decoder's gradients to a place of their own, or back: the pass "train" begins with gradients of 0. */
static void copy_gradient(gs_run *r, bool away)
{
    const gs_session *const s = r->session;
    float *own = r->pairs->gradient;

    for (uint32_t i = s->program->params - s->config.pair_params; i < s->program->params; i++) {
        const uint64_t n = gs_param_elements(&s->program->param[i]);
        float *const of_run = s->run.params.grad[i];
        memcpy(away ? own : of_run, away ? of_run : own, n * sizeof(*own));
        own += n;
    }
}

gs_status gs_run_pairs_differentiate(gs_run *r, gs_epoch_report *e, gs_exec_stats *x)
{
    gs_run_pairs *const p = r->pairs;
    gs_session *const s = r->session;
    const gs_exec_column column = {.array = s->pairs.upstream, .write = true};
    const uint32_t ends = p->step.o.asks[0] + p->step.o.asks[1];
    const uint64_t *const swept = s->run.swept, before[2] = {swept[0], swept[1]};
    gs_exec_stats forward = {0};
    double loss;
    gs_status st = GS_OK;

    if (!r->has_logits || s->pass.forward != s->pass.predict)
        st = gs_session_run(s, s->pass.forward, e->epoch, false, &forward);
    gs_run__add_stats(e, &forward);
    r->has_logits = false;
    gs_params_zero_grads(&s->run.params);
    const double began = gs_now();
    if (st != GS_OK || (st = gs_session_sweep(s, &column, 1, false, clear_rows, &p->width)) != GS_OK ||
        (st = add_batches(r, e->epoch, &loss)) != GS_OK)
        return st;
    say_how_far(p, NOT_AT_PAIRS);
    e->compute_seconds += gs_now() - began;
    e->read_bytes += swept[0] - before[0];
    e->written_bytes += swept[1] - before[1];
    e->loss = loss / ((double)p->batches.source.pairs * ends);
    if ((st = gs_run__check_pass(r, e->epoch, e->loss)) != GS_OK)
        return st;
    copy_gradient(r, true);
    st = gs_session_run(s, s->pass.train, e->epoch, false, x);
    copy_gradient(r, false);
    return st;
}

/* ---- evaluation ------------------------------------------------------------- */

gs_status gs_run_pairs_evaluate(gs_run *r, uint32_t epoch, gs_task_figures *out, gs_exec_stats *x)
{
    gs_run_pairs *const p = r->pairs;
    gs_session *const s = r->session;
    const gs_decoder_values values = values_in(s, s->run.params.value);
    const gs_pair_rows rows = {.context = s, .fetch = fetch, .each = each};
    gs_status st = GS_OK;

    if (p->layers)
        st = gs_session_run(s, s->pass.predict, epoch, false, x);
    r->has_logits = st == GS_OK && p->layers;
    gs_figures_none(out, &s->labels);
    for (uint32_t split = 1; split < GS_LINK_SPLITS && st == GS_OK; split++) {
        gs_pair_figures f;
        if ((st = gs_pair_ranks_find(p->ranks, &f, split, p->by_auc, &rows, &values)) != GS_OK)
            break;
        out->mrr[split] = f.mrr;
        out->hits1[split] = f.hits[0];
        out->hits3[split] = f.hits[1];
        out->hits10[split] = f.hits[2];
        out->roc_auc[split] = f.auc;
    }
    return st;
}

/* ---- pairs of a file --------------------------------------------------------- */

/* Scores of pairs, or the best destinations of sources (.top). */

#define PAIR_COLUMNS 3u /* at most */

static gs_pair_rank_options file_options(const gs_store *store, const gs_train_options *o)
{
    gs_pair_rank_options of_ranks = rank_options(store, o);
    of_ranks.top = (uint32_t)GS_MIN(o->top, gs_store_get_info(store)->vertices);
    return of_ranks;
}

gs_status gs_run_pairs_score_bytes(uint64_t *out, const gs_store *store, const gs_train_options *o)
{
    const gs_pair_rank_options of_ranks = file_options(store, o);
    gs_pair_ranks *ranks = NULL;
    const gs_status st = gs_pair_ranks_open(&ranks, &of_ranks);

    if (st == GS_OK)
        *out = gs_pair_ranks_bytes(ranks) + gs_store_get_info(store)->vertices * sizeof(uint32_t) +
               GS_RANK_PAIRS * (sizeof(gs_pair) + sizeof(float) + PAIR_COLUMNS * sizeof(int64_t)) + GS_SUM_BYTES +
               of_ranks.top * sizeof(int64_t);
    gs_pair_ranks_close(ranks);
    return st;
}

/* What scoring the pairs of a file holds. */
typedef struct scoring {
    const gs_store *store;
    const char *path;
    gs_npy npy;
    uint32_t ends, columns, types, top;
    gs_pair_ranks *ranks;
    uint32_t *row_of; /* [vertices] of an input id */
    void *raw;
    gs_pair *pair;
    float *score;
    int64_t *target;  /* [top] */
} scoring;

static gs_status find_rows(scoring *x)
{
    gs_block_reader reader = {0};
    uint64_t row = 0, bytes;
    gs_status st = gs_block_reader_open(&reader, x->store, GS_ARRAY_INPUT_ID);

    for (uint64_t block = 0; st == GS_OK && row < gs_store_get_info(x->store)->vertices; block++) {
        if ((st = gs_block_reader_next(&reader, block, &bytes)) != GS_OK)
            break;
        for (uint64_t k = 0; k < bytes / sizeof(uint32_t); k++) {
            const uint32_t id = ((const uint32_t *)reader.block)[k];
            if (id < gs_store_get_info(x->store)->vertices)
                x->row_of[id] = (uint32_t)row;
            row++;
        }
    }
    gs_block_reader_close(&reader);
    return st;
}

/* Are there as many columns as pairs, or sources, have? */
static gs_status check_columns(const scoring *x)
{
    const gs_npy *const npy = &x->npy;
    const bool typed = x->columns > x->ends;
    const char *const shape = x->columns == 1 ? "[M]" : x->columns == 2 ? "[M, 2]" : "[M, 3]";
    const char *const what = !typed ? "" : x->ends == 1 ? ": source and type" : ": source, destination and type";

    if ((npy->dtype == GS_I64 || npy->dtype == GS_I32) && npy->shape[1] == x->columns &&
        (npy->dims == 2 || x->columns == 1))
        return GS_OK;
    return gs_fail(GS_EFORMAT, "%s: is %s [%llu, %llu]; %s are int64 or int32 %s%s", x->path, gs_dtype_name(npy->dtype),
                   (unsigned long long)npy->shape[0], (unsigned long long)npy->shape[1],
                   x->ends == 1 ? "sources whose best targets are wanted" : "pairs to score", shape, what);
}

static gs_status open_scoring(scoring *x, const gs_run *r)
{
    const gs_train_options *const o = &r->options;
    const gs_pair_rank_options of_ranks = file_options(r->session->store, o);
    const bool typed = of_ranks.decoder->of_types && gs_store_get_info(of_ranks.store)->edge_types > 0;
    const uint32_t ends = of_ranks.top > 0 ? 1 : 2;
    gs_status st;

    *x = (scoring){.store = of_ranks.store, .path = o->edges, .npy = {.fd = -1}, .ends = ends, .columns = ends + typed,
                   .types = types_of(of_ranks.store), .top = of_ranks.top};
    if ((st = gs_npy_open(&x->npy, x->path)) != GS_OK || (st = check_columns(x)) != GS_OK)
        return st;
    x->row_of = gs_calloc(gs_store_get_info(x->store)->vertices, sizeof(*x->row_of));
    x->raw = gs_malloc_array((size_t)GS_RANK_PAIRS * PAIR_COLUMNS, sizeof(int64_t));
    x->pair = gs_malloc_array(GS_RANK_PAIRS, sizeof(*x->pair));
    x->score = gs_malloc_array(GS_RANK_PAIRS, sizeof(*x->score));
    x->target = gs_malloc_array(x->top + 1ull, sizeof(*x->target));
    if (x->row_of == NULL || x->raw == NULL || x->pair == NULL || x->score == NULL || x->target == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to score its pairs", x->path);
    return (st = find_rows(x)) != GS_OK ? st : gs_pair_ranks_open(&x->ranks, &of_ranks);
}

static void close_scoring(scoring *x)
{
    gs_npy_close(&x->npy);
    gs_pair_ranks_close(x->ranks);
    gs_free(x->row_of);
    gs_free(x->raw);
    gs_free(x->pair);
    gs_free(x->score);
    gs_free(x->target);
}

static gs_status read_pairs(scoring *x, uint64_t first, uint32_t pairs)
{
    const uint64_t vertices = gs_store_get_info(x->store)->vertices;
    const gs_status st = gs_npy_read_rows(&x->npy, x->raw, first, pairs, x->path);

    for (uint32_t p = 0; p < pairs && st == GS_OK; p++) {
        int64_t v[PAIR_COLUMNS] = {0};
        for (uint32_t c = 0; c < x->columns; c++) {
            const uint64_t k = (uint64_t)p * x->columns + c;
            v[c] = x->npy.dtype == GS_I64 ? ((const int64_t *)x->raw)[k] : ((const int32_t *)x->raw)[k];
            const bool vertex = c < x->ends;
            if (v[c] < 0 || (uint64_t)v[c] >= (vertex ? vertices : x->types))
                return gs_fail(GS_EFORMAT, "%s: row %llu: %s %lld is none of the store's %llu", x->path,
                               (unsigned long long)(first + p), vertex ? "vertex" : "type", (long long)v[c],
                               (unsigned long long)(vertex ? vertices : x->types));
        }
        x->pair[p] = (gs_pair){x->row_of[v[0]], x->row_of[v[x->ends - 1]], (uint32_t)v[x->ends]};
    }
    return st;
}

static gs_status write_scores(scoring *x, gs_run *r, uint64_t first, uint32_t pairs, const gs_pair_rows *rows,
                              const gs_decoder_values *values)
{
    const gs_status st = gs_pair_ranks_score(x->ranks, x->score, x->pair, pairs, rows, values);
    return st != GS_OK ? st
                       : gs_outfile_write(&r->files.scores, x->score, pairs * sizeof(*x->score),
                                          r->files.scores_offset + first * sizeof(*x->score));
}

static gs_status write_top(scoring *x, gs_run *r, uint64_t first, uint32_t sources, const gs_pair_rows *rows,
                           const gs_decoder_values *values)
{
    const uint64_t row = x->top * sizeof(*x->target), scores = x->top * sizeof(float);
    const uint32_t *id;
    const float *score;
    gs_status st = gs_pair_ranks_top(x->ranks, &id, &score, x->pair, sources, rows, values);

    for (uint64_t k = 0; k < sources && st == GS_OK; k++) {
        for (uint32_t t = 0; t < x->top; t++)
            x->target[t] = id[k * x->top + t];
        st = gs_outfile_write(&r->files.targets, x->target, row, r->files.targets_offset + (first + k) * row);
    }
    return st != GS_OK ? st
                       : gs_outfile_write(&r->files.scores, score, sources * scores,
                                          r->files.scores_offset + first * scores);
}

gs_status gs_run_pairs_score(gs_run *r)
{
    const gs_decoder_values values = values_in(r->session, r->session->run.params.value);
    const gs_pair_rows rows = {.context = r->session, .fetch = fetch, .each = each};
    scoring x;
    gs_status st = open_scoring(&x, r);
    const uint32_t block = st != GS_OK ? 1 : x.top > 0 ? gs_pair_ranks_top_pairs(x.ranks) : GS_RANK_PAIRS;

    for (uint64_t at = 0; st == GS_OK && at < x.npy.shape[0]; at += block) {
        const uint32_t n = (uint32_t)GS_MIN(block, x.npy.shape[0] - at);
        if ((st = read_pairs(&x, at, n)) == GS_OK)
            st = x.top > 0 ? write_top(&x, r, at, n, &rows, &values) : write_scores(&x, r, at, n, &rows, &values);
    }
    close_scoring(&x);
    return st;
}
