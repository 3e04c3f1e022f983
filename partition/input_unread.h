/* input_unread.h - which files of an input folder does nothing read, and what were they meant to be? */
#ifndef GS_PARTITION_INPUT_UNREAD_H
#define GS_PARTITION_INPUT_UNREAD_H

#include "partition/job.h"

/* Says so by the job's `warn`: a line for each file whose name is near one that is read and missing, and one for all
 * others. Folders, links to them and names that begin with a dot are nobody's business. Never fails: what cannot be
 * listed is not. */
void gs_part__warn_of_unread(const char *folder, const gs_part_job *job);

#endif /* GS_PARTITION_INPUT_UNREAD_H */
