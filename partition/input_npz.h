/* input_npz.h - the arrays in a .npz file, by name.
 *
 * An array that is stored as it is (numpy.savez) is read in place; one that is compressed (savez_compressed) is
 * unpacked into a temporary file first. One thread. */
#ifndef GS_PARTITION_INPUT_NPZ_H
#define GS_PARTITION_INPUT_NPZ_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/input_files.h"
#include "partition/job.h"

typedef struct gs_npz gs_npz;

/* Reads the directory. *path must live as long. GS_EFORMAT where it is no zip file, or a damaged one. */
gs_status gs_part__npz_open(gs_npz **out, const char *path);
void gs_part__npz_close(gs_npz *z); /* NULL is allowed */
uint64_t gs_part__npz_count(const gs_npz *z);
/* Without .npy, as numpy.load() names it. */
const char *gs_part__npz_name(const gs_npz *z, uint64_t k);
bool gs_part__npz_has(const gs_npz *z, const char *name);
/* Not an error where the array is not there: npy.fd is -1 then. */
gs_status gs_part__npz_array(gs_part_file *f, gs_npz *z, gs_part_job *job, const char *name);

#endif /* GS_PARTITION_INPUT_NPZ_H */
