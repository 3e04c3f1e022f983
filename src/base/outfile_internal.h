/* outfile_internal.h - for tests: outputs as they are on a file system that has no files without a name. */
#ifndef GS_BASE_OUTFILE_INTERNAL_H
#define GS_BASE_OUTFILE_INTERNAL_H

#include <stdbool.h>

extern bool gs_outfile__all_named;

#endif /* GS_BASE_OUTFILE_INTERNAL_H */
