#include "base/initial.h"

#include <math.h>

#include "base/philox.h"

#define TWO_PI 6.283185307179586477

gs_initial gs_initial_fan_in(uint32_t fan) { return (gs_initial){GS_INITIAL_UNIFORM, 1 / sqrt((double)fan)}; }

gs_initial gs_initial_glorot(uint32_t n, uint32_t m)
{
    return (gs_initial){GS_INITIAL_UNIFORM, sqrt(6.0 / ((double)n + m))};
}

static float uniform(double bound, uint32_t word)
{
    return (float)((2.0 * (double)gs_uniform_f32(word) - 1.0) * bound);
}

void gs_initial_draw(float pair[2], const gs_initial *from, const uint32_t word[2])
{
    if (from->rule == GS_INITIAL_NORMAL) { /* Box and Muller, 1958 */
        const double length = sqrt(-2 * log(gs_uniform_open(word[0]))), angle = TWO_PI * gs_uniform_open(word[1]);
        pair[0] = (float)(from->number * (length * cos(angle)));
        pair[1] = (float)(from->number * (length * sin(angle)));
    } else {
        for (int k = 0; k < 2; k++)
            pair[k] = from->rule == GS_INITIAL_FILL ? (float)from->number : uniform(from->number, word[k]);
    }
}
