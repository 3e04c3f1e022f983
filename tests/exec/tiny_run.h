/* tiny_run.h - a small random graph on disk, a two-stage program over it, and
 * what it must give, computed edge by edge without chunks.
 *
 *   h   = relu(sum over in-edges of features + own features)
 *   out = relu(sum over out-edges of h)
 */
#ifndef GS_TESTS_TINY_RUN_H
#define GS_TESTS_TINY_RUN_H

#include "exec/exec.h"
#include "schedule/schedule.h"

enum { TINY_FEATURES, TINY_H, TINY_OUT, TINY_ARRAYS };
enum { TINY_ROWS = 3000, TINY_PARTS = 3, TINY_WIDTH = 8, TINY_EDGES = 20000, TINY_DEVICES = 2 };

struct tiny {
    char *dir;
    char path[TINY_ARRAYS + 2][512];
    uint32_t src[TINY_EDGES], dst[TINY_EDGES];
    float features[TINY_ROWS * TINY_WIDTH], want[TINY_ROWS * TINY_WIDTH];
    uint64_t sums[16];
    gs_chunk chunk[2][TINY_PARTS * TINY_PARTS];
    const gs_exec_chunk *exec_set[2];
    gs_exec_chunk exec_chunk[2][TINY_PARTS * TINY_PARTS];
    gs_chunk_table chunks;
    gs_program p;
    gs_array array[TINY_ARRAYS];
    gs_stage stage[2];
    gs_edge_reg edge_reg[2][1];
    gs_reg reg[2][2];
    gs_instr instr[2][1];
    gs_pass pass[1];
    gs_exec_file file[TINY_ARRAYS + 2];
    gs_device *device[TINY_DEVICES];
    gs_plan *plan;
    uint32_t copying; /* devices whose copies are tasks; 0: one, which computes on host memory */
    gs_topology wires; /* of those */
    double say_after, end_after; /* gs_exec_config */
};

void tiny_make(struct tiny *t);
/* Writes chunk (target, operand) of by-dest edges again with its first index
 * out of range and the checksum made to fit. */
void tiny_forge_index(struct tiny *t, uint32_t target, uint32_t operand);
void tiny_drop(struct tiny *t);
/* Plans under these budgets and opens the run. */
gs_status tiny_open(gs_exec **out, struct tiny *t, uint64_t host, uint64_t device, gs_io_backend io);

#endif /* GS_TESTS_TINY_RUN_H */
