/* load.h - what is in memories before the first pass, and what devices keep of what a pass has made once for all.
 *
 * Outside passes only, by the driving thread. All of it waits.
 */
#ifndef GS_EXEC_LOAD_H
#define GS_EXEC_LOAD_H

#include "exec/exec.h"

/* Loads the data that the plan keeps in memories: at open (GS_NONE), or after this pass, which was to make them. */
gs_status gs_exec__load(gs_exec *e, uint32_t pass);
/* One read, waited for. */
gs_status gs_exec__read_now(gs_exec *e, uint32_t file, uint64_t offset, void *memory, uint64_t bytes);
/* The part of the file that the host keeps for good, or NULL. */
const gs_resident *gs_exec__resident_of(const gs_exec *e, uint32_t file);

#endif /* GS_EXEC_LOAD_H */
