/* fuzz.h - what a fuzz target has: libFuzzer's entry point, and seeds to begin from. */
#ifndef GS_TESTS_FUZZ_H
#define GS_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Must come back, without a fault, whatever the bytes are; aborts where an
 * input is accepted that breaks the target's promise. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes seed number k; its size, 0 where there is none. */
size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity);

/* Prints how many inputs were accepted and refused. 1 where the run proves
 * nothing, because one of the two never happened; else 0. */
int gs_fuzz_report(void);

#endif /* GS_TESTS_FUZZ_H */
