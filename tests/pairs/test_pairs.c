/* Pairs of vertices: batches, scores, losses, gradients and ranks beside formulas in float64. */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/size.h"
#include "gnnstream.h"
#include "pairs/pair_batch.h"
#include "pairs/pair_rank.h"
#include "pairs/pair_step.h"
#include "support/support.h"

#define VERTICES 23u
#define EDGES 90u
#define VALID 17u
#define TYPES 3u
#define WIDTH 6u

static uint32_t dice_state;
static uint32_t dice(uint32_t below)
{
    dice_state = dice_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(dice_state >> 8) * below >> 24);
}
static float noise(void) { return (float)dice(1u << 20) / (1 << 19) - 1; }

static void write_ints(const char *dir, const char *name, const int32_t *v, uint32_t rows, uint32_t columns)
{
    char head[128 + 1], shape[100];
    FILE *const f = fopen(gs_test_path(dir, "%s.npy", name), "wb");

    assert_non_null(f);
    snprintf(shape, sizeof(shape), columns > 1 ? "{'descr': '<i4', 'fortran_order': False, 'shape': (%u, %u), }"
                                               : "{'descr': '<i4', 'fortran_order': False, 'shape': (%u,), }",
             rows, columns);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    snprintf(head + 10, sizeof(head) - 10, "%-117s\n", shape);
    assert_int_equal(fwrite(head, 1, 128, f), 128);
    assert_int_equal(fwrite(v, 4, (size_t)rows * columns, f), rows * columns);
    assert_int_equal(fclose(f), 0);
}

static gs_pair known[EDGES + VALID];

/* Random pairs; `typed` or not; order "natural", so that ids are rows. */
static gs_store *make_store(const char *dir, bool typed, uint32_t parts)
{
    int32_t ends[2 * (EDGES + VALID)], type[EDGES + VALID];
    const char *const store = gs_test_path(dir, "store-%d-%u", typed, parts), *const in = gs_test_path(dir, "in");
    gs_partition_options o;
    gs_store *s = NULL;

    dice_state = 7 + parts;
    for (uint32_t k = 0; k < EDGES + VALID; k++) {
        ends[2 * k] = (int32_t)(dice(dice(VERTICES) + 1));
        ends[2 * k + 1] = (int32_t)dice(VERTICES);
        type[k] = typed ? (int32_t)dice(TYPES) : 0;
        known[k] = (gs_pair){(uint32_t)ends[2 * k], (uint32_t)ends[2 * k + 1], (uint32_t)type[k]};
    }
    (void)mkdir(in, 0777);
    write_ints(in, "edges", ends, EDGES, 2);
    write_ints(in, "valid_edges", ends + 2 * EDGES, VALID, 2);
    remove(gs_test_path(in, "edge_types.npy"));
    remove(gs_test_path(in, "valid_edge_types.npy"));
    if (typed) {
        type[0] = TYPES - 1;
        known[0].type = TYPES - 1;
        write_ints(in, "edge_types", type, EDGES, 1);
        write_ints(in, "valid_edge_types", type + EDGES, VALID, 1);
    }
    const char *const meta = "{\"num_nodes\": 23}";
    gs_test_write_file(gs_test_path(in, "meta.json"), meta, strlen(meta));
    gs_partition_options_init(&o);
    o.parts = parts;
    o.random_features = 4;
    o.method = "natural";
    o.memory = 64 * GS_MIB;
    gs_assert_ok(gs_partition(in, store, &o, NULL));
    gs_assert_ok(gs_store_open(&s, store));
    return s;
}

/* ---- formulas ---------------------------------------------------------------- */

/* Of the decoder "mlp": lin1 [WIDTH, 2 WIDTH], its bias, lin2 [WIDTH], its bias. */
#define LINEAR (WIDTH * 2 * WIDTH + WIDTH + WIDTH + 1)
static double linear[LINEAR];

static double score_mlp(const double *h, const double *r, const double *t)
{
    const double *const bias = linear + WIDTH * 2 * WIDTH, *const lin2 = bias + WIDTH;
    double score = lin2[WIDTH];

    for (uint32_t i = 0; i < WIDTH; i++) {
        double sum = bias[i] + r[i];
        for (uint32_t k = 0; k < WIDTH; k++)
            sum += linear[i * 2 * WIDTH + k] * h[k] + linear[i * 2 * WIDTH + WIDTH + k] * t[k];
        score += lin2[i] * fmax(sum, 0);
    }
    return score;
}

static gs_decoder_values values_of(float *types, float of[LINEAR])
{
    float *const bias = of + WIDTH * 2 * WIDTH;
    return (gs_decoder_values){.types = types, .lin1 = of, .lin1_bias = bias, .lin2 = bias + WIDTH,
                               .lin2_bias = bias + 2 * WIDTH};
}

static double score_of(gs_decoder_kind kind, const double *h, const double *r, const double *t)
{
    double sum = kind == GS_DECODER_MLP ? score_mlp(h, r, t) : 0;
    for (uint32_t i = 0; i < WIDTH; i++)
        sum += kind == GS_DECODER_DOT        ? h[i] * t[i]
               : kind == GS_DECODER_DISTMULT ? h[i] * r[i] * t[i]
               : kind == GS_DECODER_TRANSE   ? (h[i] + r[i] - t[i]) * (h[i] + r[i] - t[i])
                                             : 0;
    for (uint32_t i = 0; i < WIDTH / 2 && kind == GS_DECODER_COMPLEX; i++) {
        const uint32_t n = WIDTH / 2;
        sum += creal((h[i] + h[n + i] * I) * (r[i] + r[n + i] * I) * conj(t[i] + t[n + i] * I));
    }
    return kind == GS_DECODER_TRANSE ? -sqrt(sum) : sum;
}

static double loss_of(gs_pair_loss loss, double own, const double *other, uint32_t count, uint32_t all)
{
    double sum = loss == GS_PAIR_SOFTMAX ? exp(own) : loss == GS_PAIR_LOGISTIC ? log(1 + exp(-own)) / 2 : 0;
    for (uint32_t k = 0; k < count; k++)
        sum += loss == GS_PAIR_SOFTMAX    ? exp(other[k])
               : loss == GS_PAIR_LOGISTIC ? log(1 + exp(other[k])) / 2 / all
                                          : fmax(0, 0.7 - own + other[k]) / all;
    return loss == GS_PAIR_SOFTMAX ? log(sum) - own : sum;
}

/* The mean loss of a batch whose rows are row[batch->rows][WIDTH]. */
static double batch_loss(gs_decoder_kind kind, gs_pair_loss loss, const gs_pair_batch *b, const double *row,
                         const double *type)
{
    double sum = 0, other[16];

    for (uint32_t p = 0; p < b->pairs; p++)
        for (int given = 0; given < 2; given++) {
            const double *const h = row + b->row[p] * WIDTH, *const t = row + b->row[b->pairs + p] * WIDTH,
                         *const r = type + b->pair[p].type * WIDTH;
            uint32_t n = 0;
            for (uint32_t k = 0; k < b->negatives; k++) {
                const uint32_t w = b->row[b->wrong[given] + p / b->negatives * b->negatives + k];
                if (w != b->row[given == GS_PAIR_HEAD ? b->pairs + p : p])
                    other[n++] = given == GS_PAIR_HEAD ? score_of(kind, h, r, row + w * WIDTH)
                                                       : score_of(kind, row + w * WIDTH, r, t);
            }
            sum += loss_of(loss, score_of(kind, h, r, t), other, n, b->negatives);
        }
    return sum / b->pairs / 2;
}

/* ---- steps ------------------------------------------------------------------- */

static gs_pair_batch_options batch_options(void)
{
    return (gs_pair_batch_options){.seed = 5, .batch_size = 8, .negatives = 3, .asks = {true, true}};
}

static void check_gradients(const gs_pair_batches *of, const gs_pair_batch *b, gs_decoder_kind kind, gs_pair_loss loss)
{
    const gs_pair_step_options o = {.decoder = gs_decoder_of(kind), .loss = loss, .margin = 0.7f, .asks = {true, true},
                                    .width = WIDTH, .types = TYPES, .threads = 2, .negatives = 3,
                                    .most_pairs = of->most_pairs, .most_slots = of->most_slots,
                                    .most_rows = of->most_rows};
    double row[2 * VERTICES * WIDTH], type[TYPES * WIDTH], sum;
    float types[TYPES * WIDTH], d_types[TYPES * WIDTH] = {0}, value[LINEAR], d_value[LINEAR] = {0};
    const gs_decoder_values values = values_of(types, value), d = values_of(d_types, d_value);
    const uint32_t rows = b->rows * WIDTH, numbers = rows + TYPES * WIDTH + LINEAR;
    gs_pair_step s;

    gs_assert_ok(gs_pair_step_open(&s, &o));
    for (uint32_t k = 0; k < rows; k++)
        row[k] = (double)(s.rows[k] = noise());
    for (uint32_t k = 0; k < TYPES * WIDTH; k++)
        type[k] = (double)(types[k] = noise());
    for (uint32_t k = 0; k < LINEAR; k++)
        linear[k] = (double)(value[k] = noise());
    gs_pair_step_run(&s, b, &values, &d, &sum);
    gs_assert_close(sum / (2 * b->pairs), batch_loss(kind, loss, b, row, type), 1e-5);
    for (uint32_t k = 0; k < numbers; k++) {
        const uint32_t t = k - rows, l = t - TYPES * WIDTH;
        const bool of_row = k < rows, of_type = !of_row && t < TYPES * WIDTH;
        double *const x = of_row ? &row[k] : of_type ? &type[t] : &linear[l], at = *x;
        *x = at + 1e-6;
        const double up = batch_loss(kind, loss, b, row, type);
        *x = at - 1e-6;
        const double want = (up - batch_loss(kind, loss, b, row, type)) / 2e-6;
        const float got = of_row    ? gs_pair_step_gradient(&s, k / WIDTH)[k % WIDTH]
                          : of_type ? d_types[t]
                                    : d_value[l];
        *x = at;
        assert_true(fabs((double)got - want) < 2e-5 + 1e-4 * fabs(want));
    }
    gs_pair_step_close(&s);
}

static void test_pair_step__gradients_are_those_of_the_formulas(void **state)
{
    gs_store *const store = make_store(*state, true, 2);
    const gs_pair_batch_options o = batch_options();
    gs_pair_batches batches;
    gs_pair_batch b;

    gs_assert_ok(gs_pair_batches_open(&batches, store, &o));
    for (int kind = 0; kind < GS_DECODERS; kind++)
        for (int loss = 0; loss < 3; loss++) {
            gs_assert_ok(gs_pair_batches_seek(&batches, 1, (uint32_t)(3 * kind + loss) % batches.batches));
            gs_assert_ok(gs_pair_batches_next(&batches, &b));
            check_gradients(&batches, &b, (gs_decoder_kind)kind, (gs_pair_loss)loss);
        }
    gs_pair_batches_close(&batches);
    gs_store_close(store);
}

/* ---- batches ----------------------------------------------------------------- */

static bool same_pair(const gs_pair *a, const gs_pair *b) { return memcmp(a, b, sizeof(*a)) == 0; }

static void check_negatives(const gs_store *store, const gs_pair_batch *b)
{
    const uint32_t rows = gs_store_get_info(store)->interval_rows;

    for (int given = 0; given < 2; given++)
        for (uint32_t k = 0; k < b->groups * b->negatives; k++) {
            const uint32_t v = b->vertex[b->row[b->wrong[given] + k]];
            assert_int_equal(v / rows, (given == GS_PAIR_HEAD ? b->pair->destination : b->pair->source) / rows);
        }
}

/* Each pair comes once an epoch; a batch is the same wherever an epoch is begun from. */
static void check_epoch(const gs_store *store, gs_negatives_by by)
{
    gs_pair_batch_options o = batch_options();
    bool seen[EDGES] = {false};
    gs_pair_batches batches, again;
    gs_pair_batch b, c;
    uint32_t pairs = 0;

    o.by = by;
    gs_assert_ok(gs_pair_batches_open(&batches, store, &o));
    gs_assert_ok(gs_pair_batches_open(&again, store, &o));
    gs_assert_ok(gs_pair_batches_seek(&batches, 3, 0));
    for (uint32_t k = 0; k < batches.batches; k++, pairs += b.pairs) {
        gs_assert_ok(gs_pair_batches_next(&batches, &b));
        const uint32_t before = k - (k > 0);
        gs_assert_ok(gs_pair_batches_seek(&again, 4 - k % 2, before));
        gs_assert_ok(gs_pair_batches_next(&again, &c));
        gs_assert_ok(gs_pair_batches_seek(&again, 3, before));
        for (uint32_t i = before; i <= k; i++)
            gs_assert_ok(gs_pair_batches_next(&again, &c));
        assert_int_equal(b.slots, c.slots);
        assert_memory_equal(b.row, c.row, b.slots * sizeof(*b.row));
        assert_memory_equal(b.vertex, c.vertex, b.rows * sizeof(*b.vertex));
        check_negatives(store, &b);
        for (uint32_t p = 0; p < b.pairs; p++) {
            uint32_t i = 0;
            while (i < EDGES && (seen[i] || !same_pair(&known[i], &b.pair[p])))
                i++;
            assert_true(i < EDGES);
            seen[i] = true;
            assert_int_equal(b.vertex[b.row[p]], b.pair[p].source);
            assert_int_equal(b.vertex[b.row[b.pairs + p]], b.pair[p].destination);
        }
    }
    assert_int_equal(pairs, EDGES);
    gs_pair_batches_close(&batches);
    gs_pair_batches_close(&again);
}

static void test_pair_batch__an_epoch_has_each_pair_once(void **state)
{
    static const uint32_t parts[] = {1, 3};

    for (size_t k = 0; k < GS_ARRAY_LEN(parts); k++) {
        gs_store *const store = make_store(*state, true, parts[k]);
        for (int by = 0; by < 3; by++)
            check_epoch(store, (gs_negatives_by)by);
        gs_store_close(store);
    }
}

/* ---- ranks ------------------------------------------------------------------- */

static float all_rows[VERTICES * WIDTH];

static gs_status fetch(void *context, const gs_row_list *list, uint32_t width, float *to)
{
    (void)context;
    for (uint32_t k = 0; k < list->rows; k++)
        memcpy(to + list->order[k] * width, all_rows + list->named[k] * width, width * sizeof(float));
    return GS_OK;
}

/* Rows in the order of the store, 10 of them first; ids go the other way. */
static gs_status each(void *context, bool ids, gs_rows_piece_fn *fn, void *argument)
{
    uint32_t id[VERTICES];

    (void)context;
    for (uint32_t v = 0; v < VERTICES; v++)
        id[v] = VERTICES - 1 - v;
    const gs_status st = fn(argument, 0, 10, all_rows, ids ? id : NULL);
    return st == GS_OK ? fn(argument, 10, VERTICES - 10, all_rows + 10 * WIDTH, ids ? id + 10 : NULL) : st;
}

/* Rows are of few values, so scores are equal now and then, and exact in either precision. */
static double rank_of(gs_decoder_kind kind, const double *types, const gs_pair *p, bool tails)
{
    double row[VERTICES * WIDTH], greater = 0, equal = 0;

    for (uint32_t k = 0; k < VERTICES * WIDTH; k++)
        row[k] = (double)all_rows[k];
    const double own = score_of(kind, row + p->source * WIDTH, types + p->type * WIDTH, row + p->destination * WIDTH);
    for (uint32_t v = 0; v < VERTICES; v++) {
        const gs_pair q = {tails ? p->source : v, tails ? v : p->destination, p->type};
        bool is_known = false;
        for (uint32_t k = 0; k < EDGES + VALID; k++)
            is_known = is_known || same_pair(&known[k], &q);
        const double s = score_of(kind, row + q.source * WIDTH, types + q.type * WIDTH, row + q.destination * WIDTH);
        greater += !is_known && s > own;
        equal += !is_known && s == own;
    }
    return 1 + greater + equal / 2;
}

static void check_ranks(const gs_store *store, gs_decoder_kind kind)
{
    const gs_pair_rank_options o = {.store = store, .decoder = gs_decoder_of(kind), .width = WIDTH, .threads = 2};
    const gs_pair_rows rows = {.fetch = fetch, .each = each};
    double types[TYPES * WIDTH], mrr = 0, hits[3] = {0};
    float row[TYPES * WIDTH], value[LINEAR];
    const gs_decoder_values values = values_of(row, value);
    gs_pair_ranks *r = NULL;
    gs_pair_figures got;

    for (uint32_t k = 0; k < TYPES * WIDTH; k++)
        types[k] = (double)(row[k] = (float)dice(3) - 1);
    for (uint32_t k = 0; k < LINEAR; k++)
        linear[k] = (double)(value[k] = (float)dice(3) - 1);
    for (uint32_t k = 0; k < VERTICES * WIDTH; k++)
        all_rows[k] = (float)dice(3) - 1;
    for (uint32_t p = EDGES; p < EDGES + VALID; p++)
        for (int tails = 0; tails < 2; tails++) {
            const double rank = rank_of(kind, types, &known[p], tails);
            mrr += 1 / rank / (2 * VALID);
            hits[0] += (rank <= 1) / (2.0 * VALID);
            hits[1] += (rank <= 3) / (2.0 * VALID);
            hits[2] += (rank <= 10) / (2.0 * VALID);
        }
    gs_assert_ok(gs_pair_ranks_open(&r, &o));
    gs_assert_ok(gs_pair_ranks_find(r, &got, 1, false, &rows, &values));
    gs_assert_close(got.mrr, mrr, 1e-12);
    for (int k = 0; k < 3; k++)
        assert_true(fabs(got.hits[k] - hits[k]) < 1e-12);
    gs_assert_ok(gs_pair_ranks_find(r, &got, 2, false, &rows, &values)); /* no test pairs */
    assert_true(isnan(got.mrr) && isnan(got.auc));
    gs_pair_ranks_close(r);
}

static void test_pair_rank__ranks_are_filtered_and_mean(void **state)
{
    static const uint32_t parts[] = {1, 3};

    for (size_t k = 0; k < GS_ARRAY_LEN(parts); k++) {
        gs_store *const store = make_store(*state, true, parts[k]);
        for (int kind = 0; kind < GS_DECODERS; kind++)
            check_ranks(store, (gs_decoder_kind)kind);
        gs_store_close(store);
    }
}

/* Against all scores by the formula, each the best of what is left; of equal ones that of the lowest id. */
static void check_top(const double *score, const uint32_t *id, const float *got, uint32_t top)
{
    bool taken[VERTICES] = {false};

    for (uint32_t k = 0; k < top; k++) {
        uint32_t best = VERTICES;
        for (uint32_t v = VERTICES; v-- > 0;)
            best = !taken[v] && (best == VERTICES || score[v] > score[best]) ? v : best;
        assert_int_equal(id[k], VERTICES - 1 - best);
        gs_assert_close(got[k], score[best], 1e-5);
        taken[best] = true;
    }
}

static void test_pair_rank__the_best_are_those_of_all_scores(void **state)
{
    static const uint32_t tops[] = {1, 5, VERTICES};
    gs_store *const store = make_store(*state, true, 2);
    const gs_pair_rows rows = {.fetch = fetch, .each = each};
    double row[VERTICES * WIDTH], types[TYPES * WIDTH], score[VERTICES];
    float type[TYPES * WIDTH], value[LINEAR];
    const gs_decoder_values values = values_of(type, value);

    for (uint32_t k = 0; k < LINEAR; k++)
        linear[k] = (double)(value[k] = (float)dice(3) - 1);
    for (uint32_t k = 0; k < TYPES * WIDTH; k++)
        types[k] = (double)(type[k] = (float)dice(3) - 1);
    for (uint32_t k = 0; k < VERTICES * WIDTH; k++)
        row[k] = (double)(all_rows[k] = (float)dice(3) - 1);
    for (size_t t = 0; t < GS_ARRAY_LEN(tops); t++) {
        const gs_decoder_kind kind = t == 1 ? GS_DECODER_MLP : GS_DECODER_COMPLEX;
        const gs_pair_rank_options o = {.store = store, .decoder = gs_decoder_of(kind), .width = WIDTH,
                                        .threads = 2, .top = tops[t]};
        gs_pair_ranks *r = NULL;
        const uint32_t *id;
        const float *got;
        gs_assert_ok(gs_pair_ranks_open(&r, &o));
        gs_assert_ok(gs_pair_ranks_top(r, &id, &got, known, EDGES, &rows, &values));
        for (uint32_t p = 0; p < EDGES; p++) {
            for (uint32_t v = 0; v < VERTICES; v++)
                score[v] = score_of(kind, row + known[p].source * WIDTH, types + known[p].type * WIDTH,
                                    row + v * WIDTH);
            check_top(score, id + p * tops[t], got + p * tops[t], tops[t]);
        }
        gs_pair_ranks_close(r);
    }
    gs_store_close(store);
}

/* Pairs' scores are all 1, others' 0; and all the same. */
static void test_pair_rank__areas_of_what_is_certain(void **state)
{
    gs_store *const store = make_store(*state, false, 2);
    const gs_pair_rank_options o = {.store = store, .decoder = gs_decoder_of(GS_DECODER_DOT), .width = WIDTH,
                                    .threads = 1};
    const gs_pair_rows rows = {.fetch = fetch, .each = each};
    const gs_decoder_values none = {0};
    gs_pair_ranks *r = NULL;
    gs_pair_figures got;

    gs_assert_ok(gs_pair_ranks_open(&r, &o));
    for (uint32_t k = 0; k < VERTICES * WIDTH; k++)
        all_rows[k] = 1;
    gs_assert_ok(gs_pair_ranks_find(r, &got, 1, true, &rows, &none));
    gs_assert_close(got.auc, 0.5, 1e-12);
    assert_true(isnan(got.mrr));
    gs_pair_ranks_close(r);
    gs_store_close(store);
}

/* ---- layers ------------------------------------------------------------------ */

static gs_train_options layer_options(const char *model, const char *decoder, const char *loss)
{
    gs_train_options o;

    gs_train_options_init(&o);
    o.task = "link";
    o.model = model;
    o.decoder = decoder;
    o.loss = loss;
    o.hidden = WIDTH;
    o.activation = "tanh";
    o.seed = 5;
    o.batch_size = 8;
    o.negatives = 3;
    o.epochs = 1;
    o.eval_every = 0;
    o.keep = "last";
    o.optimizer = "sgd";
    o.lr = 1;
    return o;
}

/* The mean loss of all pairs of an epoch, by rows in the order of the input, which is the store's. */
static double epoch_loss(const gs_store *store, gs_decoder_kind kind, gs_pair_loss loss, const float *rows,
                         const double *type)
{
    const gs_pair_batch_options o = batch_options();
    gs_pair_batches batches;
    gs_pair_batch b;
    double row[2 * VERTICES * WIDTH], sum = 0;

    gs_assert_ok(gs_pair_batches_open(&batches, store, &o));
    gs_assert_ok(gs_pair_batches_seek(&batches, 1, 0));
    for (uint32_t k = 0; k < batches.batches; k++) {
        gs_assert_ok(gs_pair_batches_next(&batches, &b));
        for (uint32_t r = 0; r < b.rows * WIDTH; r++)
            row[r] = (double)rows[b.vertex[r / WIDTH] * WIDTH + r % WIDTH];
        sum += b.pairs * batch_loss(kind, loss, &b, row, type);
    }
    gs_pair_batches_close(&batches);
    return sum / EDGES;
}

#define NUMBERS 2048u /* of all tensors, at most */

/* The loss with `by` times a direction of 1 and -1 added to all that is learned, and in `step` what the step took off
 * along that direction. */
static double loss_along(const gs_store *store, const gs_train_options *o, uint32_t direction, double by, double *step)
{
    static float before[NUMBERS], after[NUMBERS], sign[NUMBERS];
    gs_epoch_report e;
    gs_run *run = NULL;
    uint64_t at = 0;

    dice_state = direction;
    gs_assert_ok(gs_run_open(&run, gs_store_dir(store), o, GS_RUN_TRAIN));
    for (uint32_t i = 0; i < gs_run_tensors(run); i++) {
        gs_tensor_info info;
        gs_assert_ok(gs_run_tensor(run, i, &info));
        assert_true(info.learned && at + info.count <= NUMBERS);
        gs_assert_ok(gs_run_get_tensor(run, i, before + at, info.count));
        for (uint64_t k = at; k < at + info.count; k++) {
            sign[k] = dice(2) == 0 ? 1 : -1;
            before[k] = 3 * before[k] + (float)by * sign[k]; /* larger, for steeper slopes */
        }
        gs_assert_ok(gs_run_set_tensor(run, i, before + at, info.count));
        at += info.count;
    }
    gs_assert_ok(gs_run_epoch(run, &e));
    at = 0;
    *step = 0;
    for (uint32_t i = 0; i < gs_run_tensors(run); i++) {
        gs_tensor_info info;
        gs_assert_ok(gs_run_tensor(run, i, &info));
        gs_assert_ok(gs_run_get_tensor(run, i, after + at, info.count));
        for (uint64_t k = at; k < at + info.count; k++)
            *step += (double)((before[k] - after[k]) * sign[k]);
        at += info.count;
    }
    gs_run_close(run);
    return e.loss;
}

/* A step of 1 against central differences of the loss. */
static void check_layers(const gs_store *store, const gs_train_options *o)
{
    const double h = 1.0 / 1024;
    double most = 0;

    for (uint32_t direction = 1; direction <= 2; direction++) {
        double got, ignored;
        (void)loss_along(store, o, direction, 0, &got);
        const double up = loss_along(store, o, direction, h, &ignored);
        const double want = (up - loss_along(store, o, direction, -h, &ignored)) / 2 / h;
        if (fabs(got - want) > 4e-4 + 1e-3 * fabs(want))
            fail_msg("%s, direction %u: %g, expected %g", o->model, direction, got, want);
        most = fmax(most, fabs(want));
    }
    assert_true(most > 0.02);
}

static void test_pair_layers__loss_and_gradients_are_those_of_the_formulas(void **state)
{
    static const struct {
        const char *model, *decoder, *loss;
        double dropout;
    } ways[] = {{"gcn", "distmult", "softmax", 0}, {"rgcn", "complex", "logistic", 0}, {"sage", "dot", "softmax", 0.3}};

    gs_store *const store = make_store(*state, true, 2);

    for (size_t k = 0; k < GS_ARRAY_LEN(ways); k++) {
        gs_train_options o = layer_options(ways[k].model, ways[k].decoder, ways[k].loss);
        o.dropout = ways[k].dropout;
        check_layers(store, &o);
    }
    gs_store_close(store);
}

static void test_pair_layers__loss_is_of_the_last_layers_rows(void **state)
{
    gs_train_options o = layer_options("gcn", "distmult", "softmax");
    gs_store *const store = make_store(*state, true, 2);
    float rows[VERTICES * WIDTH], type[TYPES * WIDTH];
    double types[TYPES * WIDTH];
    gs_epoch_report e;
    gs_run *run = NULL;

    o.keep_logits = true;
    gs_assert_ok(gs_run_open(&run, gs_store_dir(store), &o, GS_RUN_TRAIN));
    gs_assert_ok(gs_run_logits(run, rows, VERTICES * WIDTH));
    gs_assert_ok(gs_run_get_tensor(run, gs_run_tensors(run) - 1, type, TYPES * WIDTH));
    for (uint32_t k = 0; k < TYPES * WIDTH; k++)
        types[k] = (double)type[k];
    gs_assert_ok(gs_run_epoch(run, &e));
    gs_assert_close(e.loss, epoch_loss(store, GS_DECODER_DISTMULT, GS_PAIR_SOFTMAX, rows, types), 1e-5);
    gs_run_close(run);
    gs_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pair_step__gradients_are_those_of_the_formulas, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_pair_batch__an_epoch_has_each_pair_once, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_pair_rank__ranks_are_filtered_and_mean, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_pair_rank__the_best_are_those_of_all_scores, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_pair_rank__areas_of_what_is_certain, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_pair_layers__loss_and_gradients_are_those_of_the_formulas,
                                        gs_test_temp_setup, gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_pair_layers__loss_is_of_the_last_layers_rows, gs_test_temp_setup,
                                        gs_test_temp_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
