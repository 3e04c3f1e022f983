/* checkpoint_pace.h - when is the next checkpoint due?
 *
 * By epochs or by time, as the caller says; else by what checkpoints cost: planned for 1 % of the time, so that the
 * whole stays below 2 % where one takes twice as long as the one before, and no more than one in half a minute.
 */
#ifndef GS_TRAIN_CHECKPOINT_PACE_H
#define GS_TRAIN_CHECKPOINT_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct gs_checkpoint_pace {
    uint32_t epochs;   /* between two; 0: not by epochs */
    double seconds;    /* between two; 0: not by time */
    double began;      /* gs_now() before the first epoch */
    double last;       /* end of the last one; `began` before the first */
    double guess;      /* seconds of the next one */
    double spent;      /* seconds of all */
} gs_checkpoint_pace;

/* "10" (epochs), "90s", "10m", "1.5h"; NULL: by cost. GS_EINVAL. */
gs_status gs_checkpoint_pace_parse(gs_checkpoint_pace *out, const char *text);
/* Begins the pace, now, for checkpoints of so many bytes. */
void gs_checkpoint_pace_begin(gs_checkpoint_pace *p, double now, uint64_t bytes);
/* After an epoch, before the next; `last`: none follows. */
bool gs_checkpoint_is_due(const gs_checkpoint_pace *p, uint32_t epoch, double now, bool last);
/* One was written from `from` to `to`. */
void gs_checkpoint_took(gs_checkpoint_pace *p, double from, double to);

#endif /* GS_TRAIN_CHECKPOINT_PACE_H */
