/* reference.h - the float64 reference: what should the engine have computed?
 *
 * Graph neural networks straight from their formulas, the whole graph in
 * memory, loops over an edge list, everything in double. It is the yardstick
 * of the end-to-end tests, so it shares no code with the engine: its own
 * readers, its own generator, plain malloc. Not fast, not frugal, and any
 * failure ends the program with a line on stderr.
 *
 * Units: elements. Matrices are row-major. Threads: none.
 */
#ifndef GS_TESTS_REFERENCE_REFERENCE_H
#define GS_TESTS_REFERENCE_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- util.c: ends the program instead of returning errors ---- */

void ref_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
void *ref_alloc(size_t count, size_t size); /* zeroed */
char *ref_path(const char *dir, const char *name); /* "dir/name"; free() */
/* Whole file, with a 0 byte after it; free(). */
char *ref_read_file(const char *path, size_t *bytes);
FILE *ref_create(const char *path);
void ref_close(FILE *f, const char *path); /* a failed write shows here */

/* xorshift64*: enough for test data, and not the engine's generator. */
typedef struct ref_random {
    uint64_t state;
} ref_random;
ref_random ref_random_seed(uint64_t seed);
uint64_t ref_random_bits(ref_random *r);
uint64_t ref_random_below(ref_random *r, uint64_t n);
double ref_random_uniform(ref_random *r); /* [0, 1) */
double ref_random_normal(ref_random *r);

/* max |a - b| / max |b| and |a - b| / |b| (Frobenius). Infinite where b is 0 and a is not, or where anything is not
 * finite. */
void ref_difference(double out[2], const double *a, const double *b, size_t n);

/* What a float32 becomes in bfloat16 and float16, to nearest even. */
float ref_round_bf16(float v);
float ref_round_f16(float v);

/* ---- npy_file.c ---- */

typedef struct ref_npy {
    char type[4]; /* "i8", "f4", ... little-endian */
    size_t dims, shape[2]; /* shape[1] is 1 for one dimension */
    char *bytes; /* the file; free() */
    const char *data;
} ref_npy;

bool ref_npy_exists(const char *path);
ref_npy ref_npy_read(const char *path);
int64_t ref_npy_int(const ref_npy *a, size_t i);
double ref_npy_real(const ref_npy *a, size_t i);
/* `type` as in ref_npy; cols 0: one dimension. `data` is in that type. */
void ref_npy_write(const char *path, const char *type, size_t rows, size_t cols, const void *data);

/* ---- weights_file.c: .safetensors ---- */

typedef struct ref_tensor {
    char name[64];
    size_t dims, shape[3]; /* 1 beyond the dimensions */
    bool fixed;            /* not learned: its gradient stays 0 (of a network's; files do not say) */
    bool above_0;          /* starts at 1 or so, not around 0 */
    bool count;            /* a whole number, in files of type I64 and without dimensions */
    double *value;
} ref_tensor;

typedef struct ref_tensors {
    size_t count;
    ref_tensor *tensor;
} ref_tensors;

/* F32 and F64. Insists on what the format's description asks for: offsets
 * without holes that end where the file ends. */
ref_tensors ref_tensors_read(const char *path);
void ref_tensors_write(const char *path, const ref_tensors *t, bool as_f32);
void ref_tensors_free(ref_tensors *t);
size_t ref_tensor_size(const ref_tensor *t);
ref_tensor *ref_tensors_find(const ref_tensors *t, const char *name); /* NULL: none */

/* ---- graph.c ---- */

enum { REF_NO_SPLIT, REF_TRAIN, REF_VALID, REF_TEST };

typedef struct ref_graph {
    size_t vertices, edges, width, classes;
    size_t types;             /* of edges; 1 where the graph has none */
    int64_t *source, *target; /* [edges]: source -> target; every copy of an edge counts */
    int64_t *type;            /* [edges]; NULL: all 0 */
    double *weight;           /* [edges]; NULL: all 1 */
    double *feature;          /* [vertices, width] */
    int64_t *label;           /* [vertices], -1: none */
    uint8_t *split;           /* [vertices] */
} ref_graph;

/* An input folder as `gnnstream partition` reads it: edges, dense or CSR
 * features, labels, splits. */
ref_graph ref_graph_read(const char *dir);
void ref_graph_free(ref_graph *g);
/* The reverse of every edge (each copy of it) that lacks one; what --undirected means. */
void ref_graph_undirect(ref_graph *g);
/* Features to the nearest "bf16" or "f16" number; "f32" leaves them. */
void ref_graph_round(ref_graph *g, const char *type);
/* Small graphs with the shapes that break things; see graph_make.c for the kinds. */
void ref_graph_make(const char *kind, const char *dir, uint64_t seed);

/* ---- network.c ---- */

typedef struct ref_network {
    const char *model, *act; /* names; the strings stay the caller's. See ref_layer_of() in layers.c. */
    size_t layers, hidden, heads, bases;
    bool training;        /* a pass to learn from: batch statistics instead of running ones */
    bool follow;          /* and the running ones take it in */
    ref_tensors weight;   /* names and shapes of torch_geometric.nn.models */
    ref_tensors gradient; /* same order */
    /* How near any number came to the kink of a relu or to another maximum, as a fraction of the largest there, over
     * all calls of ref_network_backward(). Where float32 lands on the other side, the gradient jumps, and two exact
     * programs part: a comparison means something only with a margin above float32's error. */
    double margin;
} ref_network;

ref_network ref_network_new(const char *model, size_t layers, size_t hidden, size_t heads, size_t bases,
                            const char *act, const ref_graph *g);
void ref_network_free(ref_network *n);
/* Uniform in Glorot's bounds, biases and buffers too (so that a lost bias is seen),
 * rounded to float32. */
void ref_network_init(ref_network *n, uint64_t seed);
/* Copies values by name; every weight must be there in its shape, and nothing else. */
void ref_network_load(ref_network *n, const ref_tensors *from);
/* Logits [vertices, classes] of the weights; free(). */
double *ref_network_logits(ref_network *n, const ref_graph *g);
/* Mean cross-entropy over the training vertices, as a training pass computes it. */
double ref_network_loss(ref_network *n, const ref_graph *g);
/* The same, and fills n->gradient analytically. */
double ref_network_backward(ref_network *n, const ref_graph *g);

/* ---- optimiser.c: PyTorch's definitions, L2 weight decay ---- */

typedef struct ref_optimiser {
    bool adam;
    double lr, weight_decay;
    size_t step;
    ref_tensors first, second; /* Adam's moments */
} ref_optimiser;

ref_optimiser ref_optimiser_new(const char *name, double lr, double weight_decay, const ref_network *n);
void ref_optimiser_free(ref_optimiser *o);
void ref_optimiser_step(ref_optimiser *o, ref_network *n);

#endif /* GS_TESTS_REFERENCE_REFERENCE_H */
