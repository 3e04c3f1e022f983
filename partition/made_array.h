/* made_array.h - an array that is not in the input as it is read: unpacked, parsed or put together, it lies in a
 * temporary file without a name, and is read as a .npy file of the input is. */
#ifndef GS_PARTITION_MADE_ARRAY_H
#define GS_PARTITION_MADE_ARRAY_H

#include <stdint.h>

#include "partition/input_files.h"
#include "partition/job.h"

/* Written front to back by one thread. */
typedef struct gs_made {
    gs_part_file *file;
    char *place; /* what a write that fails is about: the folder that is full, and what was to go there */
    char *buffer;
    uint64_t fill, offset; /* bytes */
} gs_made;

/* Takes `path`, by which messages name the array (NULL: no memory for it). Free after a failure too. */
gs_status gs_part__made_begin(gs_made *m, gs_part_file *file, const gs_part_job *job, char *path);
gs_status gs_part__made_put(gs_made *m, const void *bytes, uint64_t count);
/* Instead of putting: any thread, any place, in bytes from the array's first. */
gs_status gs_part__made_write(const gs_made *m, const void *bytes, uint64_t count, uint64_t offset);
/* `count` bytes of this value. */
gs_status gs_part__made_fill(gs_made *m, int value, uint64_t count);
/* All is written: [rows, columns] of `as`; columns 1 is one dimension. */
gs_status gs_part__made_end(gs_made *m, gs_dtype as, uint64_t rows, uint64_t columns);
/* All is written: the bytes of a .npy file. */
gs_status gs_part__made_end_npy(gs_made *m);
void gs_part__made_free(gs_made *m);

#endif /* GS_PARTITION_MADE_ARRAY_H */
