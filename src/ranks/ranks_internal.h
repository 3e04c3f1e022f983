/* ranks_internal.h - what the sources of the room share. */
#ifndef GS_RANKS_RANKS_INTERNAL_H
#define GS_RANKS_RANKS_INTERNAL_H

#include "ranks/module.h"

/* NULL: this process is alone. */
const gs_ranks_module *gs_ranks__module(void);

/* signs.c: the thread that hears of the others. */
gs_status gs_ranks__start_watch(void);
void gs_ranks__stop_watch(void);

#endif /* GS_RANKS_RANKS_INTERNAL_H */
