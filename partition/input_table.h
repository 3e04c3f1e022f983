/* input_table.h - rows of numbers in a text, as an array in a temporary file.
 *
 * The array is read as a .npy file is; the disk it takes goes back when it is closed. */
#ifndef GS_PARTITION_INPUT_TABLE_H
#define GS_PARTITION_INPUT_TABLE_H

#include "partition/input_files.h"

/* Commas between the numbers, no header, each row as long as the first; plain or packed. `as` is GS_I64, or GS_F32 or
 * GS_F64, in which an empty field is NaN. Takes `path`, which is freed with the file, on failure too. */
gs_status gs_part__table_read(gs_part_file *f, gs_part_job *job, char *path, gs_dtype as);

#endif /* GS_PARTITION_INPUT_TABLE_H */
