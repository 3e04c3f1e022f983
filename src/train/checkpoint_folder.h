/* checkpoint_folder.h - a folder of checkpoints: which are there, and how does a new one become the newest?
 *
 *   epoch-0000000012/      a checkpoint: whole, as it was renamed to this name when it was
 *   epoch-0000000024/      the newest; the last two are kept
 *   metrics.jsonl          a line an epoch (kept_lines.h)
 *   .making-0123456789abcdef/   of a run that is writing, or was killed: removed by the next that writes there
 *
 * Who writes there holds a lock on the folder (flock(2)), which ends with the process. All functions block.
 */
#ifndef GS_TRAIN_CHECKPOINT_FOLDER_H
#define GS_TRAIN_CHECKPOINT_FOLDER_H

#include <stdint.h>

#include "base/status.h"

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

/* A new folder to write one in; free with gs_free(), after: */
gs_status gs_checkpoint_begin(const gs_checkpoint_folder *f, char **dir);
/* Its files are synced. It becomes the checkpoint of `epoch`, in place of one that is there, and others than this
 * and `previous` (0: none) are removed, where that can be done. */
/* The number in a checkpoint's name: epochs that were begun. */
static inline uint32_t gs_checkpoint_number(uint32_t epochs, uint32_t batches) { return epochs + (batches > 0); }
gs_status gs_checkpoint_finish(const gs_checkpoint_folder *f, const char *dir, uint32_t epoch, uint32_t previous);
/* Removes it; leaves gs_last_error() as it is. */
void gs_checkpoint_abandon(const char *dir);

#endif /* GS_TRAIN_CHECKPOINT_FOLDER_H */
