/* fibres.h - many lanes on one thread, for kernels that wait for each other.
 *
 * A fibre is a stack of its own; switching costs a few instructions. Sanitizers are told of each switch. Lanes that do
 * not wait run one after the other on the same one, and one that waits is not switched to before it can go on.
 */
#ifndef GS_TESTS_CUDA_FIBRES_H
#define GS_TESTS_CUDA_FIBRES_H

#include <stdbool.h>
#include <stddef.h>

/* Runs body(lane) for lanes 0 .. n - 1, at most FIBRES_MOST. A lane runs until it returns or calls
 * fibres_wait(); then the next one that can goes on, in turn, in an order that changes with each round. */
#define FIBRES_MOST 256u
void fibres_run(unsigned n, void (*body)(unsigned lane));
/* Lets the others run until *count is another number than `seen`. False: no lane can go on. */
bool fibres_wait(const unsigned *count, unsigned seen);
/* The lane that runs. */
unsigned fibres_current(void);
/* Their stacks lie one behind the other, and behind them is room for what all lanes of a kernel have. */
#define FIBRE_STACK_BYTES (256u * 1024)
#define FIBRES_ROOM 65536u
#define FIBRES_BYTES (FIBRES_MOST * (size_t)FIBRE_STACK_BYTES + FIBRES_ROOM)
char *fibres_stacks(void);
static inline char *fibres_room(void) { return fibres_stacks() + FIBRES_MOST * (size_t)FIBRE_STACK_BYTES; }

#endif /* GS_TESTS_CUDA_FIBRES_H */
