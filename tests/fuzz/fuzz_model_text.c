/* A model's text of any bytes is refused with a text, or it becomes a program that holds together.
 *
 * Input: a byte of switches, then the text. Bits 0 and 1: layers less 1; 2: train, else predict; 3: the graph has
 * types and weights of edges, and self loops; 4: hoist; 5: batch; 6: recompute and lean; 7: two heads. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "compile/compile.h"
#include "fuzz.h"
#include "ir/ir.h"
#include "model/model.h"
#include "program/program.h"

static const gs_leaf leaves[] = {
    {"features", 0, GS_F32, 6}, {"labels", 1, GS_I32, 1},    {"split", 2, GS_U8, 1},
    {"in_degree", 3, GS_F32, 1}, {"out_degree", 4, GS_F32, 1}, {"loops", 5, GS_F32, 1},
    {"input_id", 6, GS_U32, 1},
};

static gs_status build(gs_program *p, const gs_model *m, uint8_t switches)
{
    const bool train = switches & 4, rich = switches & 8;
    const gs_model_config config = {.layers = 1 + (switches & 3u), .in_width = 6, .hidden = 4, .classes = 3,
                                    .heads = (switches & 128) && gs_model_has_heads(m) ? 2 : 0,
                                    .bases = gs_model_has_bases(m) ? 2 : 0, .edge_types = rich ? 3 : 0,
                                    .edge_weights = rich, .act = "relu", .dropout = 0.5f, .training = train,
                                    .self_loops = rich};
    const gs_compile_options options = {.pass = train ? "train" : "predict", .leaf = leaves,
                                        .leaves = sizeof(leaves) / sizeof(leaves[0]), .metrics = train,
                                        .store_logits = !train, .hoist = switches & 16, .typed = switches & 32,
                                        .recompute = switches & 64, .lean = switches & 64, .edges_per_vertex = 8};
    gs_ir *ir = NULL;
    gs_status st = gs_model_build(&ir, m, &config);
    if (st == GS_OK && train)
        st = gs_ir_add_loss(ir, GS_LOSS_XENT, GS_I32);
    if (st == GS_OK && train)
        st = gs_ir_differentiate(ir);
    if (st == GS_OK)
        return gs_compile(p, ir, &options); /* takes it */
    gs_ir_free(ir);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t live = gs_alloc_live_bytes();
    gs_model *m = NULL;
    if (size < 1)
        return 0;
    gs_program *const p = gs_program_new();
    /* of four layers, with a network around them */
    static const gs_model_changes around = {.norm = GS_NORM_BATCH, .jk = GS_JK_LSTM,
                                            .residual = true, .layers = 4, .hidden = 4};
    gs_status st = gs_model_open_changed(&m, gs_fuzz_file("m.gnn", data + 1, size - 1),
                                         (data[0] & 3) == 3 ? &around : NULL);
    if (st == GS_OK)
        st = build(p, m, data[0]);
    gs_fuzz_judge(st);
    if (st == GS_OK)
        gs_fuzz_require(gs_program_check(p) == GS_OK, "the program holds together");
    else
        gs_fuzz_require(p->arrays + p->params + p->stages + p->passes == 0, "a refusal leaves the program empty");
    gs_model_close(m);
    gs_program_free(p);
    gs_fuzz_require(gs_alloc_live_bytes() == live, "everything is given back");
    return 0;
}

size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    static const char *const zoo[] = {"appnp", "commnet", "gat",        "gatv2", "gcn",       "ggcn",    "ggnn",
                                      "gin",   "rgcn",    "rgcn_bases", "sage",  "sage_lstm", "sage_max"};
    char path[64];
    if (k >= 2 * sizeof(zoo) / sizeof(zoo[0]))
        return 0;
    strcat(strcat(strcpy(path, "src/model/zoo/"), zoo[k / 2]), ".gnn");
    data[0] = k % 2 ? 4 | 8 | 16 : 1 | 8;
    return 1 + gs_fuzz_source_seed(data + 1, capacity - 1, path);
}
