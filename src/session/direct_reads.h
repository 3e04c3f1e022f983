/* direct_reads.h - can the run's device read chunks of edges past the host, and is it to? */
#ifndef GS_SESSION_DIRECT_READS_H
#define GS_SESSION_DIRECT_READS_H

#include <stdbool.h>

#include "base/status.h"

typedef struct gs_session gs_session;

/* The words of .disk_to_device, in their order. */
enum { GS_DIRECT_AUTO, GS_DIRECT_YES, GS_DIRECT_NO };

typedef struct gs_session_direct {
    bool possible;  /* it was asked for, or may save time, and the device can */
    char why[GS_ERROR_BYTES]; /* not, where it was asked for; "": it can, or nobody asked */
} gs_session_direct;

/* Of the edge files of the store; before memory is charged. With `auto` asks nobody unless the machine's record has the
 * speed of that link. */
void gs_session_find_direct(gs_session *s);
/* And of those that the run writes itself, in the scratch folder: where the program has pruned edges. */
void gs_session_find_direct_scratch(gs_session *s);

#endif /* GS_SESSION_DIRECT_READS_H */
