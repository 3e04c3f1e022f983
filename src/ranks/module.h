/* module.h - what ranks.c asks of MPI: a table of functions that the module libgnnstream_mpi.so has.
 *
 * The module alone is linked to MPI, and is loaded where a launcher started the process: no other run has MPI's
 * libraries in its memory. Nothing here waits but opening, closing and `cancel`. All return 0, or MPI's error.
 */
#ifndef GS_RANKS_MODULE_H
#define GS_RANKS_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "ranks/ranks.h"

/* Messages of the run; of meetings; of the watch. */
enum { GS_RANKS_ROWS, GS_RANKS_MEETINGS, GS_RANKS_SIGNS, GS_RANKS_CHANNELS };

typedef struct gs_ranks_module {
    /* here[0]: which of the here[1] ranks of this machine it is. *threads: MPI may be called by several at a time. */
    int (*open)(uint32_t *self, uint32_t *count, uint32_t here[2], bool *threads);
    int (*close)(void);
    void (*abort)(void);
    /* A message that is sent or received as often as it is begun, until it is dropped. */
    int (*make)(gs_ranks_message *m, int channel, bool send, uint32_t rank, void *memory, const gs_ranks_piece *piece,
                uint32_t pieces);
    int (*begin)(gs_ranks_message *m);
    int (*share)(gs_ranks_message *m, void *x, uint32_t bytes, uint32_t from);
    int (*test)(gs_ranks_message *m, bool *done);
    int (*drop)(gs_ranks_message *m); /* which is not under way */
    void (*explain)(int error, char *text, uint32_t bytes);
} gs_ranks_module;

#define GS_RANKS_MODULE_NAME "gs_ranks_module_table"

#endif /* GS_RANKS_MODULE_H */
