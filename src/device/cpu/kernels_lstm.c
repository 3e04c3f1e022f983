/* The elementwise part of an LSTM's step and of its derivative. Gates in torch's order i, f, g, o. */
#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd_math.h"

/* Columns [c, c + n) of a row, n <= GS_LANES. */
GS_INLINE void step_part(float *gate, const float *before, float *cell, float *state, size_t width, size_t n)
{
    const gs_vf i = gs_v_sigmoid(gs_load_part(gate, n)), f = gs_v_sigmoid(gs_load_part(gate + width, n));
    const gs_vf g = gs_v_tanh(gs_load_part(gate + 2 * width, n)), o = gs_v_sigmoid(gs_load_part(gate + 3 * width, n));
    const gs_vf c = f * gs_load_part(before, n) + i * g;

    gs_store_part(gate, i, n);
    gs_store_part(gate + width, f, n);
    gs_store_part(gate + 2 * width, g, n);
    gs_store_part(gate + 3 * width, o, n);
    gs_store_part(cell, c, n);
    if (state != NULL)
        gs_store_part(state, o * gs_v_tanh(c), n);
}

void GS_KERNEL(lstm_step)(float *gate, const float *before, float *cell, float *state, uint32_t rows, uint32_t width)
{
    for (size_t r = 0; r < rows; r++, gate += 4 * (size_t)width)
        for (size_t c = 0; c < width; c += GS_LANES) {
            const size_t at = r * width + c, left = width - c;
            float *const s = state == NULL ? NULL : state + at;
            if (left >= GS_LANES)
                step_part(gate + c, before + at, cell + at, s, width, GS_LANES);
            else
                step_part(gate + c, before + at, cell + at, s, width, left);
        }
}

GS_INLINE void back_part(float *gate, const float *before, const float *cell, const float *d_state, float *d_cell,
                         size_t width, size_t n)
{
    const gs_vf i = gs_load_part(gate, n), f = gs_load_part(gate + width, n);
    const gs_vf g = gs_load_part(gate + 2 * width, n), o = gs_load_part(gate + 3 * width, n);
    const gs_vf t = gs_v_tanh(gs_load_part(cell, n)), dh = gs_load_part(d_state, n);
    const gs_vf dc = gs_load_part(d_cell, n) + dh * o * (1.0f - t * t);

    gs_store_part(gate, dc * g * i * (1.0f - i), n);
    gs_store_part(gate + width, dc * gs_load_part(before, n) * f * (1.0f - f), n);
    gs_store_part(gate + 2 * width, dc * i * (1.0f - g * g), n);
    gs_store_part(gate + 3 * width, dh * t * o * (1.0f - o), n);
    gs_store_part(d_cell, dc * f, n);
}

void GS_KERNEL(lstm_back)(float *gate, const float *before, const float *cell, const float *d_state, float *d_cell,
                          uint32_t rows, uint32_t width)
{
    for (size_t r = 0; r < rows; r++, gate += 4 * (size_t)width)
        for (size_t c = 0; c < width; c += GS_LANES) {
            const size_t at = r * width + c, left = width - c;
            if (left >= GS_LANES)
                back_part(gate + c, before + at, cell + at, d_state + at, d_cell + at, width, GS_LANES);
            else
                back_part(gate + c, before + at, cell + at, d_state + at, d_cell + at, width, left);
        }
}
