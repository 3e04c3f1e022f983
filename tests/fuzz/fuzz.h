/* fuzz.h - what a fuzz target has: libFuzzer's entry point, and seeds to begin from. */
#ifndef GS_TESTS_FUZZ_H
#define GS_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Must come back, without a fault, whatever the bytes are; aborts where an
 * input is accepted that breaks the target's promise. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes seed number k; its size, 0 where there is none. */
size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity);

/* ---- fuzz.c: what targets share ---- */

/* Counts an input as accepted or refused. A refusal must have a text, of one line. */
void gs_fuzz_judge(gs_status st);
/* Aborts, and says what an accepted input breaks. */
void gs_fuzz_require(bool holds, const char *what);
/* This process's own folder, in memory where there is such a file system; removed at exit. */
const char *gs_fuzz_folder(void);
/* A file of these bytes in it (NAME may begin with a folder that is there); its path, good until the next call. */
const char *gs_fuzz_file(const char *name, const void *data, size_t size);
/* A seed that is a text; its size. */
size_t gs_fuzz_text_seed(uint8_t *data, size_t capacity, const char *text);
/* A seed that is a file of the sources; its size. */
size_t gs_fuzz_source_seed(uint8_t *data, size_t capacity, const char *path);

/* Tries a text with a line of its checksum at the end, as it is, and with that checksum made right. */
void gs_fuzz_try_sealed(const uint8_t *data, size_t size, void (*try_text)(const char *text, size_t size));

/* A folder of files in an input: one after the other, each u8 which, u16 length, and so many bytes. */
typedef struct gs_fuzz_bundle {
    uint8_t *data;
    size_t size, capacity;
} gs_fuzz_bundle;

void gs_fuzz_bundle_put(gs_fuzz_bundle *b, unsigned which, const void *bytes, size_t size);
/* Writes those of an input into the process's folder, each under names[which], a path in it; of `names` those that the
 * input does not have are removed. Folders that the names are in must be there. */
void gs_fuzz_bundle_write(const char *const *names, size_t count, const uint8_t *data, size_t size);

/* Prints how many inputs were accepted and refused. 1 where the run proves
 * nothing, because one of the two never happened; else 0. */
int gs_fuzz_report(void);

#endif /* GS_TESTS_FUZZ_H */
