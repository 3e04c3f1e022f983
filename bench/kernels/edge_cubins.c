/* edge_cubins FOLDER [WIDTH...] - the edge kernels of models, compiled for sm_80 and sm_90.
 *
 * edge_instructions.py counts in them. Needs NVRTC and no GPU. Writes FOLDER/WHAT.sm_NN.cubin and prints a line for
 * each kernel, columns by tabs: file, kernel, what it computes, columns, columns of the frame, lanes of a group, groups
 * a target, edges of a burst, and bytes that an edge reads: its rows at the source end and its index of 4.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/outfile.h"
#include "base/size.h"
#include "bench_common.h"
#include "compile/compile.h"
#include "cuda/code.h"
#include "model/model.h"

static const uint32_t widths[] = {41, 47, 64, 100, 256};
static const gs_cuda_driver *compiler;
static const char *folder;

/* A file for each architecture, of `text`. */
static void write_images(const char *file, const char *text)
{
    static const int major[] = {8, 9};
    for (size_t i = 0; i < GS_ARRAY_LEN(major); i++) {
        char path[512], *image = NULL;
        size_t bytes = 0;
        bench_need(gs_cuda_compile(&image, &bytes, compiler, major[i], 0, text));
        snprintf(path, sizeof(path), "%s/%s.sm_%d0.cubin", folder, file, major[i]);
        bench_need(gs_file_write_atomic(path, image, bytes));
        gs_free(image);
    }
}

static const char *of_type(gs_dtype rows) { return rows == GS_BF16 ? ", bf16" : ""; }

static void print_kernel(const char *file, const gs_edge_kernel *k, const char *what, uint32_t width, uint64_t bytes)
{
    printf("%s\t%s\t%s\t%u\t%u\t%u\t%u\t%u\t%llu\n", file, k->name, what, width, k->width, k->lanes, k->slices,
           k->burst, (unsigned long long)bytes + 4);
}

static void sums_of_rows(uint32_t width, bool scaled, gs_dtype dtype)
{
    const gs_row_sums rows = {.by = GS_TYPES_NONE, .width = width, .types = 1, .dtype = dtype, .scaled = scaled};
    char *text = NULL, file[64], what[64];
    size_t bytes = 0;
    gs_edge_kernel k;
    FILE *const out = open_memstream(&text, &bytes);
    if (out == NULL)
        bench_die("out of memory");
    gs_generate_rows(out, &k, &rows);
    fclose(out);
    snprintf(file, sizeof(file), "%s-%s-%u", scaled ? "scaled" : "rows", gs_dtype_name(dtype), width);
    snprintf(what, sizeof(what), "%s%s", scaled ? "scaled sum" : "sum of rows", of_type(dtype));
    write_images(file, text);
    free(text); /* open_memstream's */
    print_kernel(file, &k, what, width, (uint64_t)width * gs_dtype_bytes(dtype) + (scaled ? 4 : 0));
}

static gs_program *compile_model(const char *model, const gs_model_config *config, gs_dtype read)
{
    const gs_leaf leaves[] = {
        {"features", 0, GS_F32, config->in_width}, {"in_degree", 1, GS_F32, 1}, {"loops", 2, GS_F32, 1},
        {"labels", 3, GS_I32, 1},                  {"split", 4, GS_U8, 1},      {"input_id", 5, GS_U32, 1},
    };
    const gs_compile_options options = {.pass = "train", .leaf = leaves, .leaves = (uint32_t)GS_ARRAY_LEN(leaves),
                                        .metrics = true, .rest = GS_F32, .rest_width = 1, .read = read,
                                        .edges_per_vertex = 50};
    gs_program *const p = gs_program_new();
    gs_model *m = NULL;
    gs_ir *ir = NULL;
    if (p == NULL)
        bench_die("out of memory");
    bench_need(gs_model_open(&m, model));
    bench_need(gs_model_build(&ir, m, config));
    bench_need(gs_ir_add_loss(ir, GS_LOSS_XENT, GS_I32));
    bench_need(gs_ir_differentiate(ir));
    bench_need(gs_compile(p, ir, &options));
    gs_model_close(m);
    return p;
}

/* Bytes of rows at the source end of an edge that this kernel reads. */
static uint64_t row_bytes(const gs_program *p, const gs_stage *s, const gs_edge_kernel *k)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < k->inputs; i++) {
        const gs_edge_reg *const r = k->input[i].param ? NULL : &s->edge_reg[k->input[i].index];
        if (r != NULL && r->kind == GS_EDGE_OPERAND)
            bytes += (uint64_t)r->width * gs_dtype_bytes(p->array[r->array].dtype);
    }
    return bytes;
}

static void print_code(const gs_program *p, const gs_cuda_edge_code *code, const char *file, const char *title,
                       uint32_t width)
{
    const gs_edge_kernel *const k = &code->k;
    char what[160];
    if (code->stage == GS_NONE) {
        snprintf(what, sizeof(what), "%s: sum of rows%s", title, k->rows.by == GS_TYPES_NONE ? "" : " by type");
        print_kernel(file, k, what, width,
                     (uint64_t)k->rows.width * gs_dtype_bytes(k->rows.dtype) + (k->rows.scaled ? 4 : 0));
        return;
    }
    const gs_stage *const s = &p->stage[code->stage];
    const bool attends = s->sum[k->sum[0]].kind == GS_SUM_ATTEND, most = s->sum[k->sum[0]].kind == GS_SUM_MAX;
    if (attends || most)
        snprintf(what, sizeof(what), "%s: %s", title, attends ? "forward" : "maximum");
    else /* those of a layer in their order */
        snprintf(what, sizeof(what), "%s: backward, stage %u", title, code->stage);
    print_kernel(file, k, what, width, row_bytes(p, s, k));
}

/* Kernels of one layer whose rows have `width` columns; where heads share them as in a hidden layer, of such a layer.
 * Heads that do not divide them have so many each, as in a last layer. */
static void dropped_model(const char *name, const char *title, uint32_t heads, uint32_t width, uint32_t in,
                          gs_dtype read, float dropout)
{
    const bool hidden = heads > 1 && width % heads == 0;
    const gs_model_config config = {.layers = hidden ? 2 : 1, .in_width = in, .hidden = width,
                                    .classes = hidden ? 1 : width, .heads = heads, .edge_types = 4, .act = "relu",
                                    .dropout = dropout, .training = true, .self_loops = true};
    char *text = NULL, file[64], of[64];
    gs_cuda_code code;
    gs_program *const p = compile_model(name, &config, read);
    bench_need(gs_cuda_write_code(&code, &text, p, false));
    snprintf(file, sizeof(file), "%s%s-%s-%u-%u", name, dropout > 0 ? "-dropout" : "", gs_dtype_name(read), heads,
             width);
    snprintf(of, sizeof(of), "%s%s", title, of_type(read));
    write_images(file, text);
    for (uint32_t i = 0; i < code.edges; i++)
        if (code.edge[i].k.width >= width) /* else of the layer after, or of sums of weights */
            print_code(p, &code.edge[i], file, of, width);
    free(text); /* open_memstream's */
    gs_cuda_free_code(&code);
    gs_program_free(p);
}

static void model(const char *name, const char *title, uint32_t heads, uint32_t width, uint32_t in, gs_dtype read)
{
    dropped_model(name, title, heads, width, in, read, 0);
}

/* Rows of an odd number stay float32, whatever is asked for. */
static void all_of(uint32_t width)
{
    static const gs_dtype types[] = {GS_F32, GS_BF16};
    for (size_t t = 0; t < (width % 2 == 0 ? GS_ARRAY_LEN(types) : 1); t++) {
        sums_of_rows(width, false, types[t]);
        sums_of_rows(width, true, types[t]);
        model("gat", "GAT, 1 head", 1, width, 64, types[t]);
        model("gat", "GAT, 8 heads", 8, width, 64, types[t]);
    }
    dropped_model("gat", "GAT, 1 head, dropout", 1, width, 64, GS_F32, 0.6f);
    dropped_model("gat", "GAT, 8 heads, dropout", 8, width, 64, GS_F32, 0.6f);
    model("sage_max", "SAGE max", 1, width, width, GS_F32); /* of features */
    model("rgcn", "R-GCN, 4 types", 1, width, width, GS_F32);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        bench_die("edge_cubins FOLDER [WIDTH...]");
    folder = argv[1];
    bench_need(gs_cuda_compiler_open(&compiler));
    for (int i = 2; i < argc; i++)
        all_of((uint32_t)strtoul(argv[i], NULL, 10));
    for (size_t i = 0; i < GS_ARRAY_LEN(widths) && argc == 2; i++)
        all_of(widths[i]);
    return 0;
}
