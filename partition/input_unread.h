/* input_unread.h - which files of an input folder does nothing read, and what were they meant to be? */
#ifndef GS_PARTITION_INPUT_UNREAD_H
#define GS_PARTITION_INPUT_UNREAD_H

#include <stdbool.h>
#include <stddef.h>

#include "partition/job.h"

/* Names in a folder of some format. */
typedef struct gs_part_known {
    const char *const *read;       /* names that are read; NULL after the last */
    const char *const (*other)[2]; /* names that others give them, and which is meant; {NULL} after the last */
} gs_part_known;

/* Names that a folder of .npy files may have. */
extern const gs_part_known gs_part__known_npy;

/* Says so by the job's `warn`: a line for each file whose name is near one that is read and missing, and one for all
 * others. A name "a.csv.gz" among those read stands for "a.csv" and "a.csv.zst" too. Folders, links to them and names
 * that begin with a dot are nobody's business. Never fails: what cannot be listed is not. */
void gs_part__warn_of_unread(const char *folder, const gs_part_known *known, const gs_part_job *job);

/* The one of `names` (NULL after the last) that is `name` but for a letter or two; NULL where none is. */
const char *gs_part__near_name(const char *name, const char *const *names);
/* The same of the files in the folder of `folder`/`name`, as a path from `folder`; false where none is. */
bool gs_part__near_file(char *out, size_t room, const char *folder, const char *name);

#endif /* GS_PARTITION_INPUT_UNREAD_H */
