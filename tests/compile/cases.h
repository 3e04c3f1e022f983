/* cases.h - graphs, compiled models and formulas that the tests of compile share. */
#ifndef GS_TESTS_COMPILE_CASES_H
#define GS_TESTS_COMPILE_CASES_H

#include "compile/compile.h"
#include "interp.h"
#include "model/model.h"
#include "support/support.h"

typedef struct test_case {
    const char *model; /* built-in, or path of a text */
    uint32_t layers, in, hidden, classes;
    bool self_loops, no_move;
    float dropout, input_dropout;
    gs_dtype feature_type;
    double edges_per_vertex;
    const char *act;
    uint32_t heads, edge_types; /* 0: 1 */
    uint32_t bases;             /* 0: the default */
    bool edge_weights, no_fuse, hoist, recompute, lean, typed;
    bool rounded;               /* what vertex programs alone read is stored as bf16 */
    bool gathered;              /* what sums of rows read is */
} test_case;

/* A small random graph with multi-edges and isolated vertices, and self loops if asked for
 * (some vertices with several). Free with graph_free(). */
test_graph *graph_new(uint32_t n, uint32_t m, uint32_t features, uint32_t classes, bool self_loops, uint64_t seed);
void graph_free(test_graph *g);

/* The graph of pass "train", "eval" or "predict" of the case. */
gs_status build_case(gs_ir **out, const test_case *t, const char *pass);
/* Compiles pass "train", "eval" or "predict" of the case into `p`, as train does. */
gs_status compile_case(gs_program *p, const test_case *t, const char *pass);

/* Seeded values in [-0.5, 0.5) for every parameter of the program; free with params_free(). */
double **params_new(const gs_program *p, uint64_t seed);
void params_free(const gs_program *p, double **param);
uint32_t param_index(const gs_program *p, const char *name);

/* Text in a file of the test's own folder, as a path for `model`. */
const char *model_text(const char *dir, const char *text);

/* Opens an interpreter with a seed and an epoch. */
void start(interp *x, const gs_program *p, const test_graph *g, double **param);
/* Central differences of the pass's own loss, for some elements of each parameter. */
void check_gradients(interp *x, const gs_program *p, uint32_t pass, double **param);

#endif
