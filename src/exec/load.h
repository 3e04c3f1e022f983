/* load.h - what is in memories before the first pass, and what devices keep of what a pass has made once for all.
 *
 * Outside passes only, by the driving thread. All of it waits.
 */
#ifndef GS_EXEC_LOAD_H
#define GS_EXEC_LOAD_H

#include "exec/exec.h"

/* What the plan says stays in memories: at open (GS_NONE), or what this pass, which has run, was to make. */
gs_status gs_exec__load(gs_exec *e, uint32_t pass);
/* One read, waited for. */
gs_status gs_exec__read_now(gs_exec *e, uint32_t file, uint64_t offset, void *memory, uint64_t bytes);
/* What the host keeps of the file for good, or NULL. */
const gs_resident *gs_exec__resident_of(const gs_exec *e, uint32_t file);

#endif /* GS_EXEC_LOAD_H */
