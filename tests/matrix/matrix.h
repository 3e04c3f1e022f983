/* matrix.h - many configurations in one process: what do hundreds of training runs give, against a yardstick?
 *
 * The command line's own code runs inside the test program, so a run costs its epochs alone and not a process, its
 * libraries and the products' code generation; a line that fails can be typed as it is printed. The float64 reference
 * (tests/reference) is linked in, and what it says of a graph and a model is computed once. Graphs, stores and results
 * lie in the folder that the program works in, by the names given here: stores on disk, results in memory where there
 * is a tmpfs. A check that fails is printed and counted; the rest goes on.
 *
 * Units: elements. Threads: one. Memory: what is returned belongs to the caller, who may leave it to the end of the
 * program where nothing else is said.
 */
#ifndef GS_TESTS_MATRIX_MATRIX_H
#define GS_TESTS_MATRIX_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

#include "reference/reference.h"

#define LINE_MOST 2048 /* characters of a command line */

/* ---- checks: checks.c ---- */

/* Counts; where it does not hold, prints the words. Returns `holds`. */
bool check(bool holds, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* |a - b| <= tolerance * |b|. */
bool check_near(double a, double b, double tolerance, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints the counts; the exit status: nothing failed, and something was checked. */
int check_report(void);
/* printf into a text that lives as long as the program. */
const char *text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Is this `i` of a list one for `m`? All are where the environment asks for every case (GS_TEST_ALL); else one of `of`,
 * in turn. */
bool in_turn(size_t i, size_t m, size_t of);

/* ---- commands: command.c ---- */

/* The folder that the program is in from now on; `texts` there are those of tests/e2e, `out` is for results. Removed at
 * exit. */
void work_folder(const char *source_root);
/* `gnnstream LINE`, words between blanks: must succeed, with nothing on stderr. */
bool command(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same without checks: its exit status. */
int command_status(const char *line);
/* What the last command wrote to stdout; until the next. */
const char *command_output(void);
/* `"KEY":NUMBER`, or with a blank, behind the first `after` (NULL: from the start); NaN where there is none. */
double number_in(const char *json, const char *after, const char *key);

/* ---- results of a run: result.c ---- */

typedef struct result {
    size_t rows, columns;
    double *logits;      /* [rows, columns] */
    ref_tensors weights; /* learned, and what follows */
    char *metrics;       /* a line of JSON an epoch */
} result;

/* `gnnstream train LINE` with results; false where it fails, and `r` is then empty. What `r` held is freed. */
bool train(result *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void result_free(result *r);
/* Of a key in the metrics: its last value, the sum over epochs; 0 where it is not there. */
double last(const result *r, const char *key);
double total(const result *r, const char *key);
/* Every element and every tensor alike, within `tolerance` of the largest and of the norm. */
bool same_logits(const result *r, const result *want, double tolerance, const char *name);
bool same_weights(const result *r, const result *want, double tolerance, const char *name);
bool same_results(const result *r, const result *want, double tolerance, const char *name);
bool same_bits(const result *r, const result *want, const char *name); /* of both */
/* The largest difference of the logits, as a part of the largest of `want`. */
double logits_apart(const result *r, const result *want);
double *npy_values(const char *path, size_t *rows, size_t *columns);

/* ---- graphs, stores, networks: fixture.c ---- */

/* The made graph `kind` (graph_make.c of the reference), in the folder `kind`. */
const ref_graph *graph_of(const char *kind);
/* The store of a graph's folder, partitioned by `method` and with further options ("" for none), made once. */
const char *store_of(const char *graph, const char *method, unsigned parts, const char *options);

typedef struct network {
    const char *name, *text; /* of the zoo, or of tests/e2e/texts; what --model takes */
    const char *act;
    unsigned layers, hidden, heads, bases;
} network;

/* The activations are spread over the models. */
network network_of(const char *name);
const char *network_options(const network *n);
/* How a graph is partitioned for a model. An LSTM runs over the in-neighbours in the order of the store, which must be
 * the input's where another store or the reference is to give the same; others take "fennel". */
const char *method_of(const char *name);
/* Other options of a model that takes some: heads. */
const char *options_of(const char *name);
/* Its text or name. */
const char *model_of(const char *name);

typedef struct learning {
    const char *optimizer, *feature_type;
    unsigned epochs;
    double lr, weight_decay, margin;
    bool undirected;
} learning;

typedef struct yardstick {
    const char *init; /* file of the weights to start from */
    result end;       /* logits and weights of the reference */
    ref_tensors start, gradient; /* weights to start from; the first epoch's gradient */
    double loss;      /* of the last epoch, before its update */
} yardstick;

/* Trains the reference from the first seed whose relus and maxima stay `margin` away from their kinks (a fraction of
 * the largest number there): a number that float64 has at 1e-9 float32 may have at -1e-9, and then the two follow
 * different, equally right, gradients. */
yardstick reference_of(const char *kind, const network *n, const learning *l);
void yardstick_free(yardstick *y);
/* "--optimizer sgd --lr 0.1 --epochs 3 ..." of the engine. */
const char *learning_options(const learning *l);

/* pairs.json and lopsided.json, of four devices. */
void write_topologies(void);
/* Whether GPUs that are none have NCCL; a GPU that is there has what it has. gpu_host.c, gpu_none.c */
void gpu_have_nccl(bool have);

/* ---- the matrices; arguments are those of meson.build ---- */

typedef struct arguments {
    int count;
    char **word;
} arguments;

void matrix_exact(const arguments *a);
void matrix_zoo(const arguments *a);
void matrix_gradients(const arguments *a);
void matrix_layouts(const arguments *a);
void matrix_determinism(const arguments *a);
/* MODEL...: the rows of a GPU. */
void matrix_determinism_gpu(const arguments *a);
void matrix_properties(const arguments *a);
void matrix_rounded(const arguments *a);
void matrix_gathered(const arguments *a);
void matrix_half_features(const arguments *a);
void matrix_less_work(const arguments *a);
void matrix_tables(const arguments *a);
void matrix_tables_gpu(const arguments *a); /* on a GPU */
void matrix_several(const arguments *a);
void matrix_gpu(const arguments *a);
void matrix_gpu_batches(const arguments *a);
void matrix_several_gpus(const arguments *a);

/* Sanitized builds run each switch once, and leave what needs many runs to the others; not where every case is asked
 * for (GS_TEST_ALL). */
bool sanitized(void);

#endif /* GS_TESTS_MATRIX_MATRIX_H */
