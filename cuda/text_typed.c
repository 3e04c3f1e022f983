/* Kernels of products by the type of edges: kernels/typed.cu with its constants. */
#include "base/size.h"
#include "cuda/kernel_text.h"

#define LANES_MOST 16u /* that share columns: 64 of them */
#define STEP 16u       /* GS_STEP of typed.cu */
#define PAD 8u         /* of its strides */

/* Lanes of 4 columns each, a power of two. */
static uint32_t lanes_for(uint32_t columns, uint32_t least)
{
    uint32_t lanes = least;
    while (lanes < LANES_MOST && 4 * lanes < columns)
        lanes *= 2;
    return lanes;
}

static void write_kernel(FILE *out, const gs_typed_kernel *k, const char *function, uint32_t first, uint32_t second)
{
    fprintf(out, "\nGS_KERNEL(%s, gs_typed_args) { %s%s(&a, %uu, %uu, %uu, %uu); }\n", k->name, function,
            k->tf32 ? "_tf32" : "", k->in, k->out, first, second);
}

static void write_product(FILE *out, gs_typed_kernel *k)
{
    const bool transposed = k->kind == GS_TYPED_PRODUCT_T;
    k->across = lanes_for(k->out, 2); /* a block has two lanes for each row of a task; a tensor core makes 8 columns */
    k->blocks = (uint32_t)gs_div_up(k->out, 4 * k->across);
    k->shared_bytes =
        (STEP * (GS_TASK_ROWS + PAD) + STEP * (4 * k->across + PAD) + GS_TASK_ROWS) * (uint32_t)sizeof(float);
    snprintf(k->name, sizeof(k->name), "gs_product_%u_%u%s", k->in, k->out, transposed ? "_t" : "");
    write_kernel(out, k, "gs_typed_product", k->across, transposed);
}

static void write_outer(FILE *out, gs_typed_kernel *k)
{
    k->down = lanes_for(k->in, k->tf32 ? 4 : 1); /* a tensor core makes 16 rows of 8 columns */
    k->across = lanes_for(k->out, k->tf32 ? 2 : 1);
    const uint32_t tall = 4 * k->down, wide = 4 * k->across,
                   groups = k->tf32 ? GS_BLOCK_LANES / 32 / (tall / 16) : GS_BLOCK_LANES / (k->down * k->across),
                   step = GS_MAX(k->tf32 ? 8 * groups : groups, STEP);
    k->blocks = (uint32_t)(gs_div_up(k->in, tall) * gs_div_up(k->out, wide));
    k->shared_bytes = GS_MAX(step * (tall + wide + 2), groups * tall * wide) * (uint32_t)sizeof(float);
    snprintf(k->name, sizeof(k->name), "gs_outer_%u_%u", k->in, k->out);
    write_kernel(out, k, "gs_typed_outer", k->down, k->across);
}

void gs_generate_typed(FILE *out, gs_typed_kernel *k, gs_typed_kind kind, uint32_t in, uint32_t out_width, bool tf32)
{
    *k = (gs_typed_kernel){.kind = kind, .in = in, .out = out_width, .tf32 = tf32};
    if (kind == GS_TYPED_OUTER)
        write_outer(out, k);
    else
        write_product(out, k);
}
