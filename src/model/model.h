/* model.h - model text to typed IR; the built-in models are such texts.
 *
 * A file holds one or more `layer`s (docs/models.md is the language's reference). A
 * network stacks `layers` copies as torch_geometric.nn.models does: layer,
 * activation, dropout; the last layer alone. Parameters get PyG's names:
 * "convs.<i>." before the name in the text.
 */
#ifndef GS_MODEL_MODEL_H
#define GS_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/status.h"
#include "gnnstream_store.h" /* gs_type_table */
#include "ir/ir.h"

typedef struct gs_model gs_model;

#define GS_MODEL_BASES 4u
#define GS_MODEL_MOST_LAYERS 64u /* at most, in a network */

/* In the order of the words of .norm and .jk. */
typedef enum gs_norm_kind { GS_NORM_NONE, GS_NORM_BATCH, GS_NORM_LAYER, GS_NORM_LAYER_NODE } gs_norm_kind;
typedef enum gs_jk_kind { GS_JK_NONE, GS_JK_CAT, GS_JK_MAX, GS_JK_LSTM, GS_JK_LAST } gs_jk_kind;

/* What is changed in a text before it is used. The changed text says itself what runs. */
typedef struct gs_model_changes {
    gs_norm_kind norm;
    gs_jk_kind jk;
    bool residual, act_first;
    uint32_t layers, hidden; /* of the network that is written for these */
    const char *set;         /* "alpha=0.2,steps=5": numbers of constants; NULL: as they are */
} gs_model_changes;

typedef struct gs_model_config {
    uint32_t layers, in_width, hidden, classes;
    uint32_t heads;                /* 0 is 1 */
    uint32_t bases;                /* of matrices by edge type; 0 is GS_MODEL_BASES */
    uint32_t edge_types;           /* of the graph; 0 is 1 */
    bool edge_weights;             /* the graph has some; else `e.weight` is the constant 1 */
    bool edge_coefficients;        /* what edges weigh is no matter of the text, and `edge_weights` is false: each
                                    * term of a sum or mean over edges, and of a softmax, counts so often, which
                                    * estimates it from a part of the edges */
    const char *act;               /* "relu", "elu", "tanh", ... */
    float dropout, input_dropout;
    bool training;                 /* false: dropout is the identity */
    bool self_loops;               /* the graph has some; else `v.loops` is the constant 0 */
    bool embeddings;               /* the root is what the last layer gets, in place of the logits */
    uint32_t edge_features;        /* that each edge has: the width of `e.x`; 0: none */
    const gs_type_table *types;    /* of vertices; NULL: one, without a name */
    const gs_feature_table *named; /* features with names; NULL: none */
    uint64_t vertices;             /* of the graph; counts where it has no features */
} gs_model_config;

/* `name` is a built-in model ("gcn", "gat", ...), a path to a text, or, where it has a line end, a text itself. Syntax
 * errors are GS_EFORMAT: "FILE:LINE:COLUMN: ...". An unknown name is GS_ENOTFOUND and lists the built-in ones. */
gs_status gs_model_open(gs_model **out, const char *name);
/* The same with changes: GS_EINVAL names the one that the text has no use for. */
gs_status gs_model_open_changed(gs_model **out, const char *name, const gs_model_changes *changes);
/* The text that runs, with its changes, and what errors call it. Both live as long as the model. */
const char *gs_model_text(const gs_model *m);
const char *gs_model_name(const gs_model *m);
void gs_model_close(gs_model *m);
GS_ENDS_BY(gs_model, gs_model_close)

/* Does the text put its layers together itself? Then it has as many as it says. */
bool gs_model_has_network(const gs_model *m);

/* Checksum of the text without the rules that say how parameters start: whoever has weights does not start. */
uint64_t gs_model_text_id(const gs_model *m);
/* The checksum that a text of so many bytes has. GS_ENOMEM. */
gs_status gs_model_id_of(uint64_t *out, const char *text, size_t bytes);

/* Does any width or function of the text speak of heads? */
bool gs_model_has_heads(const gs_model *m);

/* Does any width speak of bases? */
bool gs_model_has_bases(const gs_model *m);
/* Has it learned rows of vertices, on a graph of so many features: param NAME[vertices, n], or, of a graph without any,
 * matrices [in, n] of a first layer that does nothing with what it gets but multiply it by them, the identity? Only
 * then a graph may be without features. */
bool gs_model_learns_rows(const gs_model *m, uint32_t features);

/* Builds the network's forward graph, with its logits marked as the root.
 * Shape and type errors are GS_EFORMAT at line and column. The caller frees *out with gs_ir_free(). */
gs_status gs_model_build(gs_ir **out, const gs_model *m, const gs_model_config *config);

#endif /* GS_MODEL_MODEL_H */
