/* load.h - chunks that a device reads past the host, and what is loaded before the first pass. */
#ifndef GS_EXEC_LOAD_H
#define GS_EXEC_LOAD_H

#include "exec/exec.h"

struct gs_exec_lane;

typedef struct gs_exec_direct {
    uint32_t *file;  /* [files] the device's number of it, GS_NONE: it reads none of that. NULL: it reads none */
    uint64_t *mark;  /* [sets * parts * parts] of chunks that come so (base/hash.h) */
} gs_exec_direct;

/* Opens the files to the device, and has the host read each chunk that comes so once, through the ring: its checksum is
 * compared, its indices are looked at in depth, and its mark is kept, which what the device reads must have. Before the
 * first pass. GS_EFORMAT, GS_EIO; GS_EUNSUPPORTED: the device cannot. */
gs_status gs_exec__open_direct(gs_exec *e);
/* Begins a move from the disk to the device; its number is the device's. */
gs_status gs_exec__load_chunk(struct gs_exec_lane *l, const gs_task *t, uint64_t *number);
/* Has it come? A failure names file and chunk. */
gs_status gs_exec__poll_chunk(struct gs_exec_lane *l, const gs_task *t, uint64_t number, bool wait, bool *done);

/* What is in memories before the first pass, and what devices keep of what a pass has made once for all.
 *
 * Outside passes only, by the driving thread. All of it waits.
 */

/* Loads the data that the plan keeps in memories: at open (GS_NONE), or after this pass, which was to make them. */
gs_status gs_exec__load(gs_exec *e, uint32_t pass);
/* Of a rank's part: does it send some of them to others, or get some? */
bool gs_exec__load_has_messages(const gs_plan *plan);
/* One read, waited for. */
gs_status gs_exec__read_now(gs_exec *e, uint32_t file, uint64_t offset, void *memory, uint64_t bytes);
/* Where in the run's file a row of an array is that the host does not keep. */
uint64_t gs_exec__spilled_at(const gs_exec *e, uint32_t array, uint64_t row);
/* The part of the file that the host keeps for good, or NULL. */
const gs_resident *gs_exec__resident_of(const gs_exec *e, uint32_t file);

#endif /* GS_EXEC_LOAD_H */
