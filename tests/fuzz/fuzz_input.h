/* fuzz_input.h - a raw graph of any bytes is refused with a text, or becomes a whole store. */
#ifndef GS_TESTS_FUZZ_INPUT_H
#define GS_TESTS_FUZZ_INPUT_H

/* Reads the graph at `path` as the partitioner does; where it is accepted every id must be one of its vertices, and
 * where it is small its store must pass verification. Counts the verdict. */
void gs_fuzz_input(const char *path);

#endif /* GS_TESTS_FUZZ_INPUT_H */
