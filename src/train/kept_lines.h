/* kept_lines.h - the metrics of a run so far, in the folder of its checkpoints: metrics.jsonl, a line an epoch.
 *
 * Lines are appended as epochs end; a checkpoint says how many bytes of the file belong to it and their checksum, so a
 * run that goes on from it cuts off what came later. From here the file of .metrics is made again.
 */
#ifndef GS_TRAIN_KEPT_LINES_H
#define GS_TRAIN_KEPT_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"
#include "gnnstream_reports.h" /* gs_epoch_report */
#include "train/metrics_log.h"

#define GS_KEPT_LINES_NAME "metrics.jsonl"

typedef struct gs_kept_lines {
    char *path;       /* owned; NULL: none are kept */
    int fd;           /* owned */
    uint64_t bytes;   /* of whole lines */
    gs_hash_stream *hash; /* of these, owned */
} gs_kept_lines;

/* Starts anew in `folder`: what was there is gone. */
gs_status gs_kept_lines_begin(gs_kept_lines *k, const char *folder);
/* Goes on behind the first `bytes` bytes of the lines in `from`, which may be `folder` itself. `*whole` is false where
 * they do not have this checksum, or are fewer: those that are there are kept. */
gs_status gs_kept_lines_continue(gs_kept_lines *k, const char *folder, const char *from, uint64_t bytes,
                                 uint64_t checksum, bool *whole);
gs_status gs_kept_lines_add(gs_kept_lines *k, const gs_epoch_report *epoch);
gs_status gs_kept_lines_sync(gs_kept_lines *k);
/* Writes the lines so far to an open, empty log; not where that is a pipe or a terminal, which has had them. */
gs_status gs_kept_lines_pour(const gs_kept_lines *k, gs_metrics_log *log);
/* Safe on a zeroed one. */
void gs_kept_lines_close(gs_kept_lines *k);

#endif /* GS_TRAIN_KEPT_LINES_H */
