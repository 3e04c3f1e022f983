/* run_pairs.c - losses of pairs of vertices, and their ranks, by rows that the session has. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/option_table.h"
#include "base/size.h"
#include "model/model.h"
#include "ranks/ranks.h"
#include "session/session_plan.h"
#include "train/figures.h"
#include "train/run_internal.h"

#define TYPES_NAME "rel_emb.weight" /* PyG's, in its knowledge graph embeddings */
#define TYPES_DEVIATION 0.1

#define NOT_AT_PAIRS UINT32_MAX /* between epochs, and while passes run */

/* Scores a batch's pairs, or finds the logits of their labels: one at a time. */
typedef struct pair_scorer {
    struct gs_run_pairs *of;
    gs_pair_step step;
    gs_label_step labels; /* of labels, in its place */
} pair_scorer;

struct gs_run_pairs {
    const gs_decoder *decoder;
    uint32_t width, threads;
    bool by_auc;                   /* edges have no types */
    uint32_t ends;                 /* that pairs are asked for; 1 where they have labels */
    gs_pair_batches batches;
    pair_scorer scorer[GS_BATCH_DEVICES]; /* [scorers]: of seeds, one for each device that trains batches */
    uint32_t scorers;
    gs_pair_ranks *ranks;
    /* of labels, in the place of ranks: */
    bool labelled;
    gs_pair_batches judged[GS_LINK_SPLITS]; /* of validation and test; without a store where there are none */
    gs_session_labels figures;     /* what figures are of */
    uint32_t *found;               /* [GS_LOSS_SPLITS][columns][GS_LOSS_SUMS] */
    /* of either: */
    uint32_t most_rows;              /* of a batch */
    gs_row_list list;                /* of a batch */
    uint32_t at;                     /* the epoch's batch at work, or NOT_AT_PAIRS; any thread reads it */
    /* behind layers: */
    bool layers;
    bool seeds;      /* pairs are seeds of batches of neighbours, each of which has a mean, or a sum, of its own */
    uint64_t numbers;
    float *gradient; /* [numbers] of what the decoder has learned, in the order of its parameters */
};

/* ---- opening --------------------------------------------------------------- */

gs_status gs_run_pairs_are_rows_alone(bool *out, const gs_train_options *o)
{
    GS_ENDS(gs_model_close_at) gs_model *m = NULL;
    GS_ENDS(gs_model_close_at) gs_model *rows = NULL;

    GS_TRY(gs_session_open_model(&m, o));
    GS_TRY(gs_model_open(&rows, "embedding"));
    *out = gs_model_text_id(m) == gs_model_text_id(rows);
    return GS_OK;
}

bool gs_run_pairs_have_labels(const gs_train_options *o)
{
    return o->task != NULL && gs_train_task_is_of_edge_labels((gs_train_task)gs_choice(o, task));
}

bool gs_run_pairs_are_seeds(const gs_train_options *o) { return gs_choice(o, seeds) > 0; }

static bool are_classes(const gs_train_options *o) { return gs_choice(o, task) == GS_TRAIN_TASK_EDGE_CLASSIFY; }

/* What labels of vertices would be called that are as these of edges. */
static gs_train_task kind_of(const gs_train_options *o)
{
    return are_classes(o) ? GS_TRAIN_TASK_CLASSIFY : GS_TRAIN_TASK_REGRESS;
}

static gs_loss loss_of(const gs_train_options *o)
{
    return o->loss == NULL ? gs_loss_of_task(kind_of(o)) : (gs_loss)gs_choice(o, loss);
}

/* Labels have a decoder of their own where none is named. */
static gs_decoder_kind decoder_of(const gs_train_options *o)
{
    return gs_run_pairs_have_labels(o) && o->decoder == NULL ? GS_DECODER_MLP
                                                             : (gs_decoder_kind)gs_choice(o, decoder);
}

uint32_t gs_run_pairs_columns(const gs_store *store, const gs_train_options *o)
{
    if (!gs_run_pairs_have_labels(o))
        return 0;
    return !are_classes(o) ? 1 : o->classes > 0 ? o->classes : gs_store_get_info(store)->link_classes;
}

/* Loss and decoder of labels of edges, or of whether they are there. */
static gs_status check_decoder(const gs_train_options *o)
{
    const bool labels = gs_run_pairs_have_labels(o);
    const gs_decoder_kind decoder = decoder_of(o);

    if (labels && decoder != GS_DECODER_MLP && decoder != GS_DECODER_PRODUCT)
        return gs_fail(GS_EINVAL, ".decoder %s: scores a pair, and has no %s; use mlp or product with .task %s",
                       o->decoder, are_classes(o) ? "classes" : "numbers", o->task);
    if (labels && o->loss != NULL && (gs_choice(o, loss) >= GS_LOSSES || gs_loss_task(loss_of(o)) != kind_of(o)))
        return gs_fail(GS_EINVAL, ".loss %s: is not of .task %s, which has %s", o->loss, o->task,
                       are_classes(o) ? "xent" : "mse and huber");
    if (!labels && decoder == GS_DECODER_PRODUCT)
        return gs_fail(GS_EINVAL, ".decoder product: is of labels of edges; use mlp, or another one, with .task link");
    if (!labels && o->loss != NULL && gs_choice(o, loss) < GS_LOSSES)
        return gs_fail(GS_EINVAL, ".loss %s: is of labels; use softmax, logistic or margin with .task link", o->loss);
    return GS_OK;
}

/* Pairs are seeds of batches of neighbours, or there are no such batches. */
static gs_status check_seeds(const gs_train_options *o)
{
    const bool seeds = gs_run_pairs_are_seeds(o);
    const gs_sampler_kind kind = (gs_sampler_kind)(gs_choice(o, sampler) - 1); /* the first word is none */

    if (seeds && gs_choice(o, sampler) == 0)
        return gs_fail(GS_EINVAL, ".seeds edges: of which batches? Give .sampler neighbor");
    if (seeds && kind != GS_SAMPLER_NEIGHBOR)
        return gs_fail(GS_EINVAL, ".sampler %s: draws no neighbours of pairs; use neighbor with .seeds edges",
                       o->sampler);
    if (!seeds && gs_choice(o, sampler) > 0)
        return gs_fail(GS_EINVAL, ".sampler: does not go with .task %s without .seeds edges; leave it out, or give "
                       "that", o->task);
    return GS_OK;
}

gs_status gs_run_pairs_check(const gs_train_options *o)
{
    const bool seeds = gs_run_pairs_are_seeds(o);
    const struct {
        const char *name;
        bool given;
    } of_vertices[] = {
        {".class_weights", o->class_weights != NULL}, {".label_smoothing", o->label_smoothing > 0},
        {".trace", o->trace != NULL && !seeds},
        {".batches_per_step", o->batches_per_step > 1 && !seeds}, {".embeddings", o->embeddings},
        {".softmax", o->softmax},                     {".argmax", o->argmax != NULL},
        {".shuffle", o->shuffle != NULL},
    };

    for (size_t k = 0; k < GS_ARRAY_LEN(of_vertices); k++)
        if (of_vertices[k].given)
            return gs_fail(GS_EINVAL, "%s: does not go with .task %s; leave it out", of_vertices[k].name, o->task);
    GS_TRY(check_seeds(o));
    GS_TRY(check_decoder(o));
    if (o->margin != 0 && (o->loss == NULL || gs_choice(o, loss) != GS_LOSSES + GS_PAIR_MARGIN))
        return gs_fail(GS_EINVAL, ".margin %g: is of .loss margin; leave it out", o->margin);
    if (gs_decoder_of(decoder_of(o))->halves && o->hidden % 2 != 0)
        return gs_fail(GS_EINVAL, ".hidden %u: rows of %s are complex numbers; use an even width", o->hidden,
                       o->decoder);
    return GS_OK;
}

static uint32_t types_of(const gs_store *store) { return GS_MAX(gs_store_get_info(store)->edge_types, 1); }

/* Does the decoder have a row for each type? Labels have one where edges have types, scores one in any case. */
static bool learns_types(const gs_store *store, const gs_train_options *o)
{
    return gs_run_pairs_have_labels(o) ? gs_store_get_info(store)->edge_types > 0
                                       : gs_decoder_of(decoder_of(o))->of_types;
}

uint32_t gs_run_pairs_params(gs_param out[GS_PAIR_PARAMS], const gs_store *store, const gs_train_options *o)
{
    const bool labels = gs_run_pairs_have_labels(o);
    const uint32_t width = o->hidden, of_pair = decoder_of(o) == GS_DECODER_PRODUCT ? width : 2 * width,
                   columns = labels ? gs_run_pairs_columns(store, o) : 1;
    const gs_initial wide = gs_initial_fan_in(of_pair), narrow = gs_initial_fan_in(width);
    const gs_param types = {.name = TYPES_NAME, .dims = 2, .rows = types_of(store), .cols = width,
                            .initial = {GS_INITIAL_NORMAL, TYPES_DEVIATION}},
                   perceptron[] = { /* torch.nn.Linear's, of [2 width] to [width], and to one number or logits */
        {.name = "lin1.weight", .dims = 2, .rows = width, .cols = of_pair, .initial = wide},
        {.name = "lin1.bias", .dims = 1, .rows = 1, .cols = width, .initial = wide},
        {.name = "lin2.weight", .dims = 2, .rows = columns, .cols = width, .initial = narrow},
        {.name = "lin2.bias", .dims = 1, .rows = 1, .cols = columns, .initial = narrow}};
    uint32_t n = 0;

    if (learns_types(store, o))
        out[n++] = types;
    for (size_t k = 0; k < GS_ARRAY_LEN(perceptron) && (labels || gs_decoder_of(decoder_of(o))->projects); k++)
        out[n++] = perceptron[k];
    for (uint32_t k = 0; k < n; k++) {
        out[k].learns = true;
        out[k].running = GS_NONE;
    }
    return n;
}

gs_decoder_values gs_run_pairs__values(const gs_session *s, float *const *of)
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

    for (uint32_t k = 0; k < GS_PAIR_PARAMS && p->layers && !p->seeds; k++)
        n += k < gs_run_pairs_params(param, store, o) ? gs_param_elements(&param[k]) : 0;
    return n;
}

/* Do the pairs have labels of the task's kind? */
static gs_status check_labels(const gs_store *store, const gs_train_options *o)
{
    const gs_store_info *const info = gs_store_get_info(store);
    const char *const dir = gs_store_dir(store);

    if (!info->link_labels || info->links[0] == 0)
        return gs_fail(GS_ENOTFOUND, "%s: the store has no labels of edges to train on; its input needs a "
                       "train_edges.npy and a train_edge_labels.npy", dir);
    if (are_classes(o) && info->link_classes == 0)
        return gs_fail(GS_EINVAL, ".task edge-classify: the labels of the edges of %s are numbers; use edge-regress, "
                       "or partition with integers", dir);
    return GS_OK;
}

gs_label_step_options gs_run_pairs__label_options(const gs_store *store, const gs_train_options *o)
{
    const bool whole = gs_store_get_info(store)->link_classes > 0;
    return (gs_label_step_options){
        .product = decoder_of(o) == GS_DECODER_PRODUCT, .loss = loss_of(o), .width = o->hidden,
        .label_type = whole ? GS_I32 : GS_F32, .columns = gs_run_pairs_columns(store, o),
        .of_types = learns_types(store, o), .threads = gs_ranks_threads(o->threads)};
}

/* Room for rows of the largest batch. */
static gs_status take_names(gs_run_pairs *p, const gs_store *store, const gs_train_options *o)
{
    p->numbers = gradient_floats(p, store, o);
    p->gradient = gs_malloc_array(p->numbers + 1, sizeof(*p->gradient));
    return p->gradient != NULL ? gs_row_list_open(&p->list, p->most_rows)
                               : gs_fail(GS_ENOMEM, "no memory for the gradients of a decoder");
}

/* What the gradient's mean is over, where not the pairs of a batch. */
static uint64_t mean_over(const gs_run_pairs *p)
{
    return p->layers && !p->seeds ? p->batches.source.pairs : 0;
}

static gs_status open_labels(gs_run_pairs *p, const gs_store *store, const gs_train_options *o)
{
    gs_label_step_options of_step = gs_run_pairs__label_options(store, o);
    gs_pair_batch_options of_batches = {.seed = o->seed, .batch_size = gs_count(o, batch_size), .negatives = 1,
                                        .stop = o->stop, .labels = true};

    GS_TRY(check_labels(store, o));
    for (uint32_t k = 0; k < GS_LINK_SPLITS; k++) {
        gs_pair_batches *const b = k == 0 ? &p->batches : &p->judged[k];
        of_batches.split = k;
        if (!gs_pair_source_is_there(store, k))
            continue;
        GS_TRY(gs_pair_batches_open(b, store, &of_batches));
        p->most_rows = GS_MAX(p->most_rows, b->most_rows);
        of_step.most_pairs = GS_MAX(of_step.most_pairs, b->most_pairs);
    }
    p->ends = 1;
    p->figures = (gs_session_labels){.task = kind_of(o),
                                     .columns = of_step.columns};
    of_step.most_rows = p->most_rows;
    of_step.mean_over = mean_over(p);
    p->found = gs_malloc_array(GS_LOSS_SPLITS * GS_LOSS_SUMS * (uint64_t)of_step.columns, sizeof(*p->found));
    p->figures.moments = gs_malloc_array(GS_LOSS_SPLITS, sizeof(*p->figures.moments));
    GS_NEED(p->found != NULL && p->figures.moments != NULL, "no memory for figures of labels");
    of_step.threads = GS_MAX(of_step.threads / p->scorers, 1);
    for (uint32_t d = 0; d < p->scorers; d++)
        GS_TRY(gs_label_step_open(&p->scorer[d].labels, &of_step));
    return take_names(p, store, o);
}

static gs_status open_batches(gs_run_pairs *p, const gs_store *store, const gs_train_options *o)
{
    const int corrupt = gs_choice(o, corrupt); /* both, head, tail */
    const gs_pair_batch_options of_batches = {
        .seed = o->seed, .batch_size = gs_count(o, batch_size), .negatives = gs_count(o, negatives),
        .asks = {corrupt != 1, corrupt != 2}, .by = (gs_negatives_by)gs_choice(o, negatives_by), .stop = o->stop};

    GS_TRY(gs_pair_batches_open(&p->batches, store, &of_batches));
    const gs_pair_step_options of_step = {
        .decoder = p->decoder, .width = p->width, .types = types_of(store),
        .threads = GS_MAX(p->threads / p->scorers, 1),
        .loss = o->loss == NULL ? GS_PAIR_SOFTMAX : (gs_pair_loss)(gs_choice(o, loss) - (int)GS_LOSSES),
        .margin = o->margin > 0 ? (float)o->margin : 1, .asks = {of_batches.asks[0], of_batches.asks[1]},
        .negatives = of_batches.negatives, .most_pairs = p->batches.most_pairs, .most_slots = p->batches.most_slots,
        .most_rows = p->batches.most_rows, .mean_over = mean_over(p)};
    p->ends = of_batches.asks[0] + of_batches.asks[1];
    p->most_rows = p->batches.most_rows;
    for (uint32_t d = 0; d < p->scorers; d++)
        GS_TRY(gs_pair_step_open(&p->scorer[d].step, &of_step));
    return take_names(p, store, o);
}

gs_pair_rank_options gs_run_pairs__rank_options(const gs_store *store, const gs_train_options *o)
{
    return (gs_pair_rank_options){.store = store, .width = o->hidden, .seed = o->seed,
                                  .stop = gs_ranks_count() > 1 ? NULL : o->stop, /* ranks are asked together */
                                  .decoder = gs_decoder_of(decoder_of(o)), .threads = gs_ranks_threads(o->threads)};
}

gs_status gs_run_pairs_open(gs_run_pairs **out, const gs_store *store, const gs_train_options *o, bool rows_alone)
{
    const gs_pair_rank_options of_ranks = gs_run_pairs__rank_options(store, o);
    GS_ENDS(gs_run_pairs_close_at) gs_run_pairs *p = gs_calloc(1, sizeof(*p));

    GS_NEED(p != NULL, "no memory for a run of pairs");
    p->decoder = of_ranks.decoder;
    p->width = of_ranks.width;
    p->threads = of_ranks.threads;
    p->layers = !rows_alone;
    p->at = NOT_AT_PAIRS;
    p->by_auc = gs_store_get_info(store)->edge_types == 0;
    p->labelled = gs_run_pairs_have_labels(o);
    p->seeds = gs_run_pairs_are_seeds(o);
    p->scorers = p->seeds ? GS_MAX(gs_device_count(o->device), 1) : 1;
    for (uint32_t d = 0; d < p->scorers; d++)
        p->scorer[d].of = p;
    GS_TRY(p->labelled ? open_labels(p, store, o) : open_batches(p, store, o));
    if (!p->labelled)
        GS_TRY(gs_pair_ranks_open(&p->ranks, &of_ranks));
    *out = GS_HANDED_OVER(p);
    return GS_OK;
}

void gs_run_pairs_close(gs_run_pairs *p)
{
    if (p == NULL)
        return;
    gs_pair_ranks_close(p->ranks);
    for (uint32_t d = 0; d < p->scorers; d++) {
        gs_pair_step_close(&p->scorer[d].step);
        gs_label_step_close(&p->scorer[d].labels);
    }
    gs_pair_batches_close(&p->batches);
    for (uint32_t k = 1; k < GS_LINK_SPLITS; k++)
        if (p->judged[k].source.store != NULL)
            gs_pair_batches_close(&p->judged[k]);
    gs_free(p->found);
    gs_free(p->figures.moments);
    gs_row_list_close(&p->list);
    gs_free(p->gradient);
    gs_free(p);
}

static uint64_t judging_bytes(const gs_run_pairs *p)
{
    uint64_t bytes = GS_LOSS_SPLITS * (GS_LOSS_SUMS * (uint64_t)p->figures.columns * sizeof(*p->found) +
                                       sizeof(*p->figures.moments));

    for (uint32_t k = 1; k < GS_LINK_SPLITS; k++)
        bytes += p->judged[k].source.store != NULL ? gs_pair_batches_bytes(&p->judged[k]) : 0;
    return bytes;
}

uint64_t gs_run_pairs_bytes(const gs_run_pairs *p)
{
    return gs_pair_batches_bytes(&p->batches) + p->most_rows * GS_ROW_LIST_BYTES +
           (p->numbers + 1) * sizeof(float) +
           (p->labelled ? p->scorers * gs_label_step_bytes(&p->scorer->labels.o) + judging_bytes(p)
                        : p->scorers * gs_pair_step_bytes(&p->scorer->step.o) + gs_pair_ranks_bytes(p->ranks));
}

bool gs_run_pairs_step_by_batch(const gs_run_pairs *p) { return p != NULL && !p->layers; }

/* ---- rows ------------------------------------------------------------------ */

#define TABLE 0u /* of the model without layers: it has no other */

/* Rows of a batch, and their gradients once it ran. */
static float *batch_rows(const pair_scorer *x) { return x->of->labelled ? x->labels.rows : x->step.rows; }

static const float *batch_gradient(const void *scorer, uint32_t row)
{
    const pair_scorer *const x = scorer;
    return x->of->labelled ? x->labels.d_rows + (uint64_t)row * x->of->width : gs_pair_step_gradient(&x->step, row);
}

static void run_batch(pair_scorer *x, const gs_pair_batch *batch, const gs_decoder_values *values,
                      const gs_decoder_values *d, double *loss)
{
    if (x->of->labelled)
        gs_label_step_run(&x->labels, batch, values, d, loss);
    else
        gs_pair_step_run(&x->step, batch, values, d, loss);
}

/* Rows that pairs are judged by. */
static gs_status fetch(void *context, const gs_row_list *list, uint32_t width, float *to)
{
    gs_run *const r = context;
    (void)width;
    GS_TRY(gs_run__check_stop(r));
    return gs_session_read_rows(r->session, r->session->pairs.judged, list, to);
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
    gs_session *const s = ((gs_run *)context)->session;
    const gs_exec_column column = {.array = s->pairs.judged, .read = true};
    piece x = {.fn = fn, .argument = argument, .first = s->run.part != NULL ? s->run.part->own_rows[0] : 0};

    return gs_session_sweep(s, &column, 1, ids, hand_over, &x);
}

gs_pair_rows gs_run_pairs__rows(gs_run *r) { return (gs_pair_rows){.context = r, .fetch = fetch, .each = each}; }

/* ---- a step ---------------------------------------------------------------- */

static double gradient_norm(const gs_run *r, const gs_pair_batch *batch)
{
    const gs_run_pairs *const p = r->pairs;
    const double rest = gs_optim_norm(&r->session->run.params);
    double sum = rest * rest;

    for (uint32_t k = 0; k < batch->rows; k++)
        sum = gs_run__add_squares(sum, batch_gradient(p->scorer, p->list.order[k]), 1, p->width);
    return sqrt(sum);
}

static gs_status update(gs_run *r, const gs_pair_batch *batch)
{
    gs_run_pairs *const p = r->pairs;
    gs_session *const s = r->session;
    const gs_update u = gs_optim_next(&r->optim, r->optim.clip > 0 ? gradient_norm(r, batch) : 0);

    gs_optim_apply(&u, &s->run.params);
    return gs_run__step_rows(r, &u, &s->program->table[TABLE], &p->list, batch_gradient, p->scorer);
}

/* The batch's rows of an array. */
static gs_status bring(gs_run *r, uint32_t array, const gs_pair_batch *batch)
{
    gs_run_pairs *const p = r->pairs;

    gs_row_list_make(&p->list, batch->vertex, batch->rows);
    return gs_session_read_rows(r->session, array, &p->list, batch_rows(p->scorer));
}

static gs_status train_batch(gs_run *r, gs_epoch_report *e)
{
    gs_run_pairs *const p = r->pairs;
    gs_params *const params = &r->session->run.params;
    const gs_decoder_values values = gs_run_pairs__values(r->session, params->value),
                            d = gs_run_pairs__values(r->session, params->grad);
    gs_pair_batch batch;
    double loss;
    gs_status st;

    GS_TRY(gs_pair_batches_next(&p->batches, &batch));
    GS_TRY(bring(r, r->session->pairs.rows, &batch));
    gs_params_zero_grads(params);
    run_batch(p->scorer, &batch, &values, &d, &loss);
    GS_TRY(gs_run__check_pass(r, e->epoch, loss));
    r->part.loss += loss;
    r->part.mass += (double)batch.pairs * p->ends;
    gs_run__before_step(r);
    r->whole = false;
    GS_TRY(update(r, &batch));
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

/* What was swept since `before`, by all ranks where they have come to `st` together. Returns that. */
static gs_status count_swept(gs_epoch_report *e, const uint64_t swept[3], const uint64_t before[3], gs_status st)
{
    uint64_t moved[2] = {swept[0] - before[0], swept[1] - before[1]};
    const gs_status met = st == GS_OK || st == GS_EINTERRUPTED ? gs_ranks_sum_u64(moved, 2) : GS_OK;

    e->read_bytes += moved[0];
    e->written_bytes += moved[1];
    e->sent_bytes += swept[2] - before[2];
    return st == GS_OK ? met : st;
}

gs_status gs_run_pairs_epoch(gs_run *r, gs_epoch_report *e)
{
    gs_run_pairs *const p = r->pairs;
    gs_epoch_part *const part = &r->part;
    const uint64_t *const swept = r->session->run.swept, before[] = {swept[0], swept[1], swept[2]};
    const double began = gs_now();
    gs_status st = gs_pair_batches_seek(&p->batches, e->epoch, part->batches);

    part->of = p->batches.batches;
    say_how_far(p, part->batches);
    while (st == GS_OK && part->batches < part->of) {
        if ((st = gs_run__check_stop(r)) != GS_OK || (st = train_batch(r, e)) != GS_OK)
            break;
        part->batches++;
        say_how_far(p, part->batches);
        if (part->batches < part->of)
            st = gs_run__checkpoint_if_due(r);
    }
    say_how_far(p, NOT_AT_PAIRS);
    e->compute_seconds += gs_now() - began;
    return count_swept(e, swept, before, st);
}

/* ---- behind layers ----------------------------------------------------------- */

static gs_status loss_of_rows(void *context, gs_session *s, const gs_batch *drawn, const float *rows, float *upstream,
                              bool mean, double *loss, double *mass)
{
    pair_scorer *const x = context;
    const gs_run_pairs *const p = x->of;
    const gs_pair_batch *const batch = drawn->seeds;
    const gs_decoder_values values = gs_run_pairs__values(s, s->run.params.value),
                            d = gs_run_pairs__values(s, s->run.params.grad);

    x->step.o.mean_over = x->labels.o.mean_over = mean ? 0 : 1;
    memcpy(batch_rows(x), rows, (uint64_t)batch->rows * p->width * sizeof(*rows));
    run_batch(x, batch, &values, &d, loss);
    for (uint32_t k = 0; k < batch->rows; k++)
        memcpy(upstream + (uint64_t)k * p->width, batch_gradient(x, k), p->width * sizeof(*upstream));
    *loss /= p->ends;
    *mass = batch->pairs;
    return GS_OK;
}

gs_seed_source gs_run_pairs_seeds(gs_run_pairs *p) { return gs_pair_batches_seeds(&p->batches); }

gs_batch_loss gs_run_pairs_loss(gs_run_pairs *p, uint32_t device)
{
    return (gs_batch_loss){.context = &p->scorer[device], .of_rows = loss_of_rows};
}

static gs_status clear_rows(void *context, uint64_t rows, float *const *row, const uint32_t *id)
{
    (void)id;
    memset(row[0], 0, rows * *(const uint32_t *)context * sizeof(float));
    return GS_OK;
}

static const float *gradient_at(const void *context, uint32_t place) { return batch_gradient(context, place); }

/* What a batch says of the decoder is added to what those before it have said, which goes from rank to rank: batches of
 * a step are of `ranks` ranks, and the first has it when all are through. */
static gs_status add_to_decoder(gs_run *r, uint32_t ranks)
{
    gs_run_pairs *const p = r->pairs;
    const gs_session *const s = r->session;
    const uint32_t self = gs_ranks_self(), end = s->program->params;
    const uint64_t bytes = p->numbers * sizeof(float);
    float *sum = p->gradient;

    if (p->numbers == 0 || self >= ranks)
        return GS_OK;
    if (self > 0)
        GS_TRY(gs_ranks_pass(false, self - 1, p->gradient, bytes));
    for (uint32_t i = end - s->config.pair_params; i < end; i++)
        for (uint64_t k = 0; k < gs_param_elements(&s->program->param[i]); k++)
            *sum++ += s->run.params.grad[i][k];
    if (ranks == 1)
        return GS_OK;
    GS_TRY(gs_ranks_pass(true, (self + 1) % ranks, p->gradient, bytes));
    return self == 0 ? gs_ranks_pass(false, ranks - 1, p->gradient, bytes) : GS_OK;
}

/* That this sends, from rank to rank. */
static uint64_t decoder_bytes(const gs_run_pairs *p, uint32_t ranks)
{
    return ranks > 1 ? ranks * p->numbers * sizeof(*p->gradient) : 0;
}

/* Of a step what a rank's batch has come to. */
typedef struct part_of_step {
    double loss;
    uint64_t rows;
} part_of_step;

/* A batch for each rank, from number `first` on: *loss gets what they have, in their order. */
static gs_status add_step(gs_run *r, uint32_t epoch, uint32_t first, double *loss)
{
    gs_run_pairs *const p = r->pairs;
    gs_session *const s = r->session;
    gs_params *const params = &s->run.params;
    const gs_decoder_values values = gs_run_pairs__values(s, params->value), d = gs_run_pairs__values(s, params->grad);
    const uint32_t ranks = GS_MIN(gs_ranks_count(), p->batches.batches - first), self = gs_ranks_self();
    part_of_step own = {0}, all[GS_RANKS_MOST];
    gs_pair_batch batch;

    GS_TRY(gs_run__check_stop(r));
    if (self < ranks) {
        GS_TRY(gs_pair_batches_seek(&p->batches, epoch, first + self));
        GS_TRY(gs_pair_batches_next(&p->batches, &batch));
        gs_row_list_make(&p->list, batch.vertex, batch.rows);
        own.rows = batch.rows;
    } else {
        GS_TRY(gs_pair_batches_pass(&p->batches));
    }
    GS_TRY(gs_ranks_gather(all, &own, sizeof(own)));
    for (uint32_t k = 0; k < ranks; k++)
        GS_TRY(gs_session_read_rows_for(s, s->pairs.rows, k, (uint32_t)all[k].rows, &p->list, batch_rows(p->scorer)));
    if (self < ranks) {
        gs_params_zero_grads(params);
        run_batch(p->scorer, &batch, &values, &d, &own.loss);
    }
    GS_TRY(add_to_decoder(r, ranks));
    s->run.swept[2] += decoder_bytes(p, ranks);
    GS_TRY(gs_ranks_gather(all, &own, sizeof(own)));
    for (uint32_t k = 0; k < ranks; k++) {
        *loss += all[k].loss;
        GS_TRY(gs_session_add_rows_of(s, s->pairs.upstream, k, (uint32_t)all[k].rows, &p->list, gradient_at,
                                      p->scorer));
    }
    return GS_OK;
}

gs_status gs_run_pairs_sent(uint64_t *out, gs_session *s)
{
    GS_ENDS(gs_run_pairs_close_at) gs_run_pairs *p = NULL;
    const gs_train_options *const o = s->config.options;
    gs_pair_batch batch;

    *out = 0;
    if (!gs_train_is_of_pairs(o) || s->config.rows_alone || gs_run_pairs_are_seeds(o) || gs_session_owners(s) == NULL)
        return GS_OK;
    GS_TRY(gs_run_pairs_open(&p, s->store, o, false));
    GS_TRY(gs_pair_batches_seek(&p->batches, 1, 0));
    const uint64_t row_bytes = s->program->array[s->pairs.rows].width * sizeof(float);
    for (uint32_t k = 0; k < p->batches.batches; k++) {
        const uint32_t ranks = s->machine.wires.devices, of = k % ranks;
        *out += of == 0 ? decoder_bytes(p, GS_MIN(ranks, p->batches.batches - k)) : 0;
        GS_TRY(gs_pair_batches_next(&p->batches, &batch));
        *out += 2 * gs_session_visit_bytes(s, row_bytes, of, batch.vertex, batch.rows); /* and their gradients */
    }
    return GS_OK;
}

/* What all pairs say of the rows, and of the decoder, added up in the order of batches: *loss is their sum. */
static gs_status add_batches(gs_run *r, uint32_t epoch, double *loss)
{
    gs_run_pairs *const p = r->pairs;

    *loss = 0;
    memset(p->gradient, 0, p->numbers * sizeof(*p->gradient));
    for (uint32_t k = 0; k < p->batches.batches; k += gs_ranks_count()) {
        say_how_far(p, k);
        GS_TRY(add_step(r, epoch, k, loss));
    }
    return gs_ranks_share(p->gradient, p->numbers * sizeof(*p->gradient));
}

/* The pass "train" begins with gradients of 0; then the decoder's are there, too. */
static void take_gradient(gs_run *r)
{
    const gs_session *const s = r->session;
    const float *from = r->pairs->gradient;

    for (uint32_t i = s->program->params - s->config.pair_params; i < s->program->params; i++) {
        const uint64_t n = gs_param_elements(&s->program->param[i]);
        memcpy(s->run.params.grad[i], from, n * sizeof(*from));
        from += n;
    }
}

gs_status gs_run_pairs_differentiate(gs_run *r, gs_epoch_report *e, gs_exec_stats *x)
{
    gs_run_pairs *const p = r->pairs;
    gs_session *const s = r->session;
    const gs_exec_column column = {.array = s->pairs.upstream, .write = true};
    const uint64_t *const swept = s->run.swept, before[] = {swept[0], swept[1], swept[2]};
    const bool there = r->has_logits && s->pass.forward == s->pass.predict;
    gs_exec_stats forward = {0};
    double loss;

    r->has_logits = false;
    if (!there)
        GS_TRY(gs_session_run(s, s->pass.forward, e->epoch, false, &forward));
    gs_run__add_stats(e, &forward);
    const double began = gs_now();
    GS_TRY(gs_session_sweep(s, &column, 1, false, clear_rows, &p->width));
    GS_TRY(add_batches(r, e->epoch, &loss));
    say_how_far(p, NOT_AT_PAIRS);
    e->compute_seconds += gs_now() - began;
    GS_TRY(count_swept(e, swept, before, GS_OK));
    e->loss = loss / ((double)p->batches.source.pairs * p->ends);
    GS_TRY(gs_run__check_pass(r, e->epoch, e->loss));
    GS_TRY(gs_session_run(s, s->pass.train, e->epoch, false, x));
    take_gradient(r);
    return GS_OK;
}

/* ---- evaluation ------------------------------------------------------------- */

/* Labels of the batch, where they are numbers. */
static void note_numbers(gs_run_pairs *p, const gs_pair_batch *batch, uint32_t split)
{
    gs_label_moments *const m = &p->figures.moments[split];

    for (uint32_t k = 0; k < batch->pairs && p->figures.task == GS_TRAIN_TASK_REGRESS; k++) {
        float number;
        memcpy(&number, &batch->label[k], sizeof(number));
        const double value = p->scorer->labels.o.label_type == GS_I32 ? (double)(int32_t)batch->label[k]
                                                                      : (double)number;
        gs_label_moments_add(m, value);
    }
}

/* Logits of all pairs that have labels, beside these. */
static gs_status judge_labels(gs_run *r, gs_metrics *m)
{
    gs_run_pairs *const p = r->pairs;
    const gs_decoder_values values = gs_run_pairs__values(r->session, r->session->run.params.value);

    for (uint32_t split = 0; split < GS_LINK_SPLITS; split++) {
        gs_pair_batches *const b = split == 0 ? &p->batches : &p->judged[split];
        GS_TRY(b->source.store != NULL ? gs_pair_batches_seek(b, 0, 0) : GS_OK);
        for (uint32_t k = 0; k < b->batches; k++) {
            gs_pair_batch batch;
            GS_TRY(gs_run__check_stop(r));
            GS_TRY(gs_pair_batches_next(b, &batch));
            GS_TRY(bring(r, r->session->pairs.judged, &batch));
            gs_label_step_forward(&p->scorer->labels, &batch, &values);
            gs_label_step_judge(&p->scorer->labels, &batch, (uint8_t)(GS_SPLIT_TRAIN + split), m);
            note_numbers(p, &batch, split);
        }
    }
    return GS_OK;
}

static gs_status evaluate_labels(gs_run *r, gs_task_figures *out, double accuracy[3], double *loss)
{
    gs_run_pairs *const p = r->pairs;
    const uint64_t counts = GS_LOSS_SPLITS * GS_LOSS_SUMS * (uint64_t)p->figures.columns;
    const bool classes = p->figures.task == GS_TRAIN_TASK_CLASSIFY;
    double column[GS_LOSS_SPLITS * GS_LOSS_SUMS] = {0};
    gs_metrics m = {.found = classes ? p->found : NULL, .column = classes ? NULL : column};

    memset(p->found, 0, counts * sizeof(*p->found));
    memset(p->figures.moments, 0, GS_LOSS_SPLITS * sizeof(*p->figures.moments));

    GS_TRY(judge_labels(r, &m));
    gs_figures_of(out, &p->figures, &m);
    for (int k = 0; k < 3; k++)
        out->rmse[k] = sqrt(out->mse[k]);
    snprintf(out->task, sizeof(out->task), "%s", gs_train_task_name(r->session->labels.task));
    for (int k = 0; k < 3 && classes; k++)
        accuracy[k] = m.rows[k + 1] > 0 ? (double)m.correct[k + 1] / (double)m.rows[k + 1] : NAN;
    *loss = m.loss_sum / (double)m.rows[GS_SPLIT_TRAIN];
    return GS_OK;
}

gs_status gs_run_pairs_evaluate(gs_run *r, uint32_t epoch, gs_task_figures *out, double accuracy[3], double *loss,
                                gs_exec_stats *x)
{
    gs_run_pairs *const p = r->pairs;
    gs_session *const s = r->session;
    const gs_decoder_values values = gs_run_pairs__values(s, s->run.params.value);
    const gs_pair_rows rows = gs_run_pairs__rows(r);
    const uint64_t sent = s->run.swept[2];
    gs_status st = GS_OK;

    if (p->layers)
        st = gs_session_run(s, s->pass.predict, epoch, false, x);
    r->has_logits = st == GS_OK && p->layers;
    gs_figures_none(out, &s->labels);
    *loss = NAN;
    for (int k = 0; k < 3; k++)
        accuracy[k] = NAN;
    if (p->labelled && st == GS_OK)
        st = evaluate_labels(r, out, accuracy, loss);
    for (uint32_t split = 1; split < GS_LINK_SPLITS && !p->labelled && st == GS_OK; split++) {
        gs_pair_figures f;
        if ((st = gs_pair_ranks_find(p->ranks, &f, split, p->by_auc, &rows, &values)) != GS_OK)
            break;
        out->mrr[split] = f.mrr;
        out->hits1[split] = f.hits[0];
        out->hits3[split] = f.hits[1];
        out->hits10[split] = f.hits[2];
        out->roc_auc[split] = f.auc;
    }
    x->sent_bytes += s->run.swept[2] - sent;
    return st;
}
