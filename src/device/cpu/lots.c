/* How many lots the rows of a run are dealt in, and how large the partial sums of all of them may be. */
#include "base/size.h"
#include "device/cpu/lots.h"

#define PARTIAL_BYTES (2 * GS_MIB) /* of all lots together, where that leaves GS_CPU_LOTS_LEAST of them */
#define SMALL_BYTES (256 * GS_KIB) /* of a gradient: a part of a second-level cache */
/* Strips of 128 rows: a gradient of [256, 256] is made at half the speed that 256 have (237 of 450 GFLOP/s on two
 * threads of Zen 5), and adding up the lots takes as long again. */
#define SMALL_OF_FEW (128 * GS_KIB)
#define FEW_ROWS 4096u

bool gs_cpu__outer_is_small(uint32_t out, uint32_t in, uint32_t rows)
{
    return (uint64_t)out * in * sizeof(float) <= (rows < FEW_ROWS ? SMALL_OF_FEW : SMALL_BYTES);
}

uint32_t gs_cpu__most_lots(uint64_t floats)
{
    const uint64_t lots = PARTIAL_BYTES / GS_MAX(floats * sizeof(float), 1u);
    return (uint32_t)GS_MAX(GS_MIN(lots, (uint64_t)GS_CPU_LOTS), (uint64_t)GS_CPU_LOTS_LEAST);
}

/* Fewer floats than these have more lots, but not more than so many floats in all. */
uint64_t gs_cpu__partial_floats(uint64_t floats)
{
    return GS_MIN(GS_CPU_LOTS * floats, GS_MAX(PARTIAL_BYTES / sizeof(float), GS_CPU_LOTS_LEAST * floats));
}
