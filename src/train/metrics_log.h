/* metrics_log.h - one line of JSON an epoch, in the file of --metrics.
 *
 * The line's fields are a contract (docs, other programs): epoch, loss,
 * train_acc, valid_acc, test_acc, lr, seconds, read_bytes, written_bytes,
 * compute_seconds, stall_seconds, peak_host_bytes, peak_device_bytes; and, on a device
 * with memory of its own or several, copied_in_bytes, copied_out_bytes and handed_over (each where there is something
 * to say), forwarded_bytes along chains, and loaded_bytes (of read_bytes) past the host; of several ranks sent_bytes;
 * on batches sample_seconds, pick_seconds, copy_seconds, step_seconds;
 * valid_loss; of classes train_macro_f1 and _balanced_acc, of several labels train_micro_f1 and _macro_f1, of numbers
 * train_mse, _mae and _r2, and so of valid and test; accuracies are null but of classes. A figure that was not
 * evaluated is null. Lines are written one by one, so
 * that a run can be watched; each is in the file whole or not at all, also on a full disk.
 */
#ifndef GS_TRAIN_METRICS_LOG_H
#define GS_TRAIN_METRICS_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/outfile.h"
#include "base/status.h"
#include "gnnstream_reports.h" /* gs_epoch_report */

#define GS_METRICS_LINE 1536 /* bytes that any line fits in */

typedef struct gs_metrics_log {
    gs_outfile out;  /* GS_OUTFILE_NONE: no log */
    uint64_t bytes; /* of whole lines */
} gs_metrics_log;

#define GS_METRICS_NONE {.out = GS_OUTFILE_NONE}

/* An empty file at `path`, in place of what was there; a pipe or a terminal is written to. NULL gives a log that takes
 * nothing. */
gs_status gs_metrics_log_open(gs_metrics_log *log, const char *path);
gs_status gs_metrics_log_write(gs_metrics_log *log, const gs_epoch_report *epoch);
/* Safe on GS_METRICS_NONE, and twice. */
gs_status gs_metrics_log_close(gs_metrics_log *log);

/* The line with its newline into `buf` of GS_METRICS_LINE bytes; its length.
 * Numbers have a decimal point in every locale. */
size_t gs_metrics_line(char *buf, const gs_epoch_report *epoch);

/* The metrics of a run so far, in the folder of its checkpoints: metrics.jsonl, a line an epoch.
 *
 * Lines are appended as epochs end; a checkpoint says how many bytes of the file belong to it and their checksum, so a
 * run that goes on from it cuts off what came later. From here the file of .metrics is made again.
 */

#define GS_KEPT_LINES_NAME "metrics.jsonl"

typedef struct gs_kept_lines {
    char *path;       /* owned; NULL: none are kept */
    int fd;           /* owned */
    uint64_t bytes;   /* of whole lines */
    gs_hash_stream *hash; /* of these, owned */
} gs_kept_lines;

/* Starts anew in `folder`: what was there is gone. It is to be closed also where this, or the next, fails. */
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

#endif /* GS_TRAIN_METRICS_LOG_H */
