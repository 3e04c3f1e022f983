/* Kernels of LSTMs over edges: kernels/sequence.cu with its constants. */
#include "base/size.h"
#include "cuda/kernel_text.h"

#define SHARED_BYTES (40 * 1024u) /* of a block, so that two fit a processor of any GPU */

static uint32_t power_below(uint32_t n)
{
    uint32_t p = 1;
    while (2 * p <= n)
        p *= 2;
    return p;
}

gs_status gs_generate_sequence(FILE *out, gs_sequence_kernel *k, uint32_t width)
{
    const uint32_t fit = SHARED_BYTES / ((6 * width + 1) * (uint32_t)sizeof(float));
    if (width == 0 || fit == 0)
        return gs_fail(GS_EUNSUPPORTED,
                       "device cuda: an lstm of width %u does not fit a processor of the GPU; use .device cpu", width);
    *k = (gs_sequence_kernel){.width = width, .rows = power_below(GS_MIN(fit, (uint32_t)GS_TILE_ROWS))};
    /* Backward a column is shared by a few lanes where there are more lanes than columns. */
    const uint32_t lanes = power_below(GS_MIN(GS_MAX(GS_BLOCK_LANES / width, 1u), k->rows));
    snprintf(k->name, sizeof(k->name), "gs_lstm_%u", width);
    fprintf(out, "\nGS_KERNEL(%s, gs_sequence_args) { gs_sequence_forward(&a, %uu, %uu); }\n", k->name, width, k->rows);
    fprintf(out, "GS_KERNEL(%s_back, gs_sequence_args) { gs_sequence_window(&a, %uu, %uu, %uu); }\n", k->name, width,
            k->rows, lanes);
    return GS_OK;
}
