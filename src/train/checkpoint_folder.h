/* checkpoint_folder.h - a folder of checkpoints: which are there, and how does a new one become the newest?
 *
 *   epoch-0000000012/      a checkpoint: whole, as it was renamed to this name when it was
 *   epoch-0000000024/      the newest; the last two are kept
 *   metrics.jsonl          a line an epoch (metrics_log.h)
 *   .making-0123456789abcdef/   of a run that is writing, or was killed: removed by the next that writes there
 *
 * Who writes there holds a lock on the folder (flock(2)), which ends with the process. All functions block.
 */
#ifndef GS_TRAIN_CHECKPOINT_FOLDER_H
#define GS_TRAIN_CHECKPOINT_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "program/program.h"
#include "train/checkpoint_text.h"
#include "train/safetensors.h"

typedef struct gs_checkpoint_folder {
    char *path; /* owned; NULL: none */
    int fd;     /* with the lock, owned; -1: none */
} gs_checkpoint_folder;

#define GS_CHECKPOINT_FOLDER_NONE {0, -1}

/* Makes the folder where it is missing (not what it is in), takes the lock, and removes what a killed run left.
 * GS_EEXIST: another run writes there, or it is no folder. GS_ENOTFOUND, GS_EIO, GS_ENOMEM. */
gs_status gs_checkpoint_folder_open(gs_checkpoint_folder *f, const char *path);
void gs_checkpoint_folder_close(gs_checkpoint_folder *f);

/* The newest checkpoint before epoch `before`, by its name alone; 0: there is none. GS_ENOTFOUND, GS_EIO. */
gs_status gs_checkpoint_before(const char *path, uint64_t before, uint32_t *epoch);
/* "PATH/epoch-0000000012"; free with gs_free(). NULL when memory is short. */
char *gs_checkpoint_dir(const char *path, uint32_t epoch);

/* A new folder in the folder of checkpoints `path`, to write one in; free with gs_free(), after: */
gs_status gs_checkpoint_begin(char **dir, const char *path);
/* The number in a checkpoint's name: epochs that were begun. */
static inline uint32_t gs_checkpoint_number(uint32_t epochs, uint32_t batches) { return epochs + (batches > 0); }
/* Its files are synced. It becomes the checkpoint of `epoch`, in place of one that is there, and others than this
 * and `previous` (0: none) are removed, where that can be done. */
gs_status gs_checkpoint_finish(const gs_checkpoint_folder *f, const char *dir, uint32_t epoch, uint32_t previous);
/* Removes it; leaves gs_last_error() as it is. */
void gs_checkpoint_abandon(const char *dir);

/* The sections of a checkpoint: files NAME.safetensors, each with its size and checksum.
 *
 *   model               what gs_run_save() writes: weights, running statistics, counters, and of what they are
 *   best                the same of the best epoch so far, where there is one and it is kept
 *   exp_avg, exp_avg_sq Adam's moments of what is learned, under the same names
 */

#define GS_SECTION_MODEL "model"
#define GS_SECTION_BEST "best"
/* Name of the section of run `run` of the optimiser's state. */
const char *gs_section_of_state(uint32_t run);
/* "DIR/NAME.safetensors"; free with gs_free(). NULL when memory is short. */
char *gs_section_path(const char *dir, const char *name);

/* Notes of a section, which say how it came about. */
typedef struct gs_section_notes {
    const gs_safetensors_note *note;
    uint32_t notes;
} gs_section_notes;

/* Writes one, whose tensors are those of `p` with a `value`, and its tables, syncs it, and adds it to `c`. `n` may be
 * NULL. */
gs_status gs_section_write(gs_checkpoint *c, const char *dir, const char *name, const gs_program *p,
                           float *const *value, const gs_safetensors_tables *tables, const gs_section_notes *n);
/* GS_EFORMAT: not as it was written. GS_ENOTFOUND, GS_EIO, GS_ENOMEM. */
gs_status gs_section_check(const gs_checkpoint_section *section, const char *dir);

/* When is the next checkpoint due?
 *
 * By epochs or by time, as the caller says; else by what checkpoints cost: planned for 1 % of the time, so that the
 * whole stays below 2 % where one takes twice as long as the one before, and no more than one in half a minute.
 */

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

#endif /* GS_TRAIN_CHECKPOINT_FOLDER_H */
