/* Keys with which masks and dropout draw. */
#include <assert.h>

#include "base/philox.h" /* gs_random_edge_key */
#include "device/cpu/dropout.h"

/* Elements are kept when their 24 random bits times 2^-24 are at least p, that is when the bits
 * are at least p * 2^24, which a double holds exactly. */
void gs_cpu__dropout(gs_cpu_dropout *out, const gs_instr *in, uint32_t epoch)
{
    const float p = in->alpha;
    assert(p >= 0.0f && p < 1.0f);
    const double exact = (double)p * 0x1p24;
    const uint32_t whole = (uint32_t)exact;
    *out = (gs_cpu_dropout){.site = in->site,
                            .epoch = epoch,
                            .threshold = whole + ((double)whole < exact),
                            .scale = 1.0f / (1.0f - p)};
}

void gs_cpu__edge_mask(gs_cpu_dropout *out, const gs_instr *in, uint64_t seed, uint32_t epoch)
{
    gs_cpu__dropout(out, in, epoch);
    gs_random_edge_key(out->key, seed, in->site, epoch);
}
