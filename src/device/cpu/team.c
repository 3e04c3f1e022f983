/* How many threads a launch uses, and the launches that are nothing but pieces of memory over threads. */
#include <omp.h>
#include <string.h>

#include "base/size.h"
#include "device/cpu/team.h"

/* Bytes below which a second thread costs more than it brings. */
#define PARALLEL_BYTES (256 * GS_KIB)

/* One or all, nothing between: libgomp ends the threads that a smaller team leaves out. */
int gs_cpu__enter(const gs_cpu *cpu, uint64_t tasks)
{
    const int before = omp_get_max_threads();
    omp_set_num_threads(tasks == 1 ? 1 : (int)cpu->threads);
    return before;
}

void gs_cpu__leave(int before) { omp_set_num_threads(before); }

float *gs_cpu__tile(const gs_cpu *cpu)
{
    const gs_cpu_room *const tiles = &cpu->room[GS_CPU_TILES];
    return tiles->at + (uint64_t)omp_get_thread_num() * tiles->floats;
}

/* Pieces of a flat launch: one a thread, none for what one thread does as fast. */
static uint64_t piece_bytes(const gs_cpu *cpu, uint64_t bytes)
{
    return bytes < PARALLEL_BYTES ? bytes : gs_align_up(gs_div_up(bytes, cpu->threads), 64);
}

gs_status gs_cpu__add_own(void *context, const gs_own_launch *l)
{
    const gs_cpu *const cpu = context;
    const uint64_t row = l->width * sizeof(float), piece = gs_div_up(piece_bytes(cpu, l->rows * row), row);
    const int before = gs_cpu__enter(cpu, gs_div_up(l->rows, piece));
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < l->rows; i += piece)
        cpu->k->add_own(l, i, GS_MIN(i + piece, l->rows));
    gs_cpu__leave(before);
    return GS_OK;
}

gs_status gs_cpu__zero(void *context, void *memory, uint64_t bytes)
{
    const gs_cpu *const cpu = context;
    const uint64_t piece = piece_bytes(cpu, bytes);
    const int before = gs_cpu__enter(cpu, gs_div_up(bytes, piece));
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < bytes; i += piece)
        memset((char *)memory + i, 0, GS_MIN(piece, bytes - i));
    gs_cpu__leave(before);
    return GS_OK;
}

gs_status gs_cpu__copy(void *context, void *to, const void *from, uint64_t bytes)
{
    const gs_cpu *const cpu = context;
    const uint64_t piece = piece_bytes(cpu, bytes);
    const int before = gs_cpu__enter(cpu, gs_div_up(bytes, piece));
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < bytes; i += piece)
        memcpy((char *)to + i, (const char *)from + i, GS_MIN(piece, bytes - i));
    gs_cpu__leave(before);
    return GS_OK;
}
