#include "train/metrics_log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"

/* ---- lines --------------------------------------------------------------- */

typedef struct fields {
    char *at; /* of GS_METRICS_LINE bytes */
    size_t bytes;
} fields;

static void put_bytes(fields *l, const char *name, uint64_t v)
{
    l->bytes += (size_t)snprintf(l->at + l->bytes, GS_METRICS_LINE - l->bytes, ", \"%s\": %lu", name, v);
}

/* JSON has no NaN; printf may write a comma where the process's locale does. */
static void put_number(fields *l, const char *before, const char *name, double v)
{
    char number[32] = "null", *comma;
    if (isfinite(v))
        snprintf(number, sizeof(number), "%.10g", v);
    if ((comma = strchr(number, ',')) != NULL)
        *comma = '.';
    l->bytes += (size_t)snprintf(l->at + l->bytes, GS_METRICS_LINE - l->bytes, ", \"%s%s\": %s", before, name,
                                 number);
}

/* ", "train_mse": 0.5, "valid_mse": ..." */
static void put_splits(fields *l, int first, const char *name, const double v[3])
{
    static const char *const split[] = {"train_", "valid_", "test_"};
    for (int s = first; s < 3; s++)
        put_number(l, split[s], name, v[s]);
}

/* Of pairs with types their ranks, of others the area. */
static void put_pairs(fields *l, const gs_task_figures *f)
{
    if (isfinite(f->roc_auc[1]) || isfinite(f->roc_auc[2])) {
        put_splits(l, 1, "auc", f->roc_auc);
        return;
    }
    put_splits(l, 1, "mrr", f->mrr);
    put_splits(l, 1, "hits@1", f->hits1);
    put_splits(l, 1, "hits@3", f->hits3);
    put_splits(l, 1, "hits@10", f->hits10);
}

static void put_figures(fields *l, const gs_task_figures *f)
{
    put_number(l, "", "valid_loss", f->valid_loss);
    if (strcmp(f->task, "multilabel") == 0) {
        put_splits(l, 0, "micro_f1", f->micro_f1);
        put_splits(l, 0, "macro_f1", f->macro_f1);
    } else if (strstr(f->task, "regress") != NULL) {
        put_splits(l, 0, "mse", f->mse);
        if (strcmp(f->task, "regress") != 0) /* of edges: what ratings are judged by */
            put_splits(l, 0, "rmse", f->rmse);
        put_splits(l, 0, "mae", f->mae);
        put_splits(l, 0, "r2", f->r2);
    } else if (strcmp(f->task, "link") == 0) {
        put_pairs(l, f);
    } else {
        put_splits(l, 0, "macro_f1", f->macro_f1);
        put_splits(l, 0, "balanced_acc", f->balanced_acc);
    }
}

/* Of several devices, of reads past the host, and of ranks. */
static void put_moved(fields *l, const gs_epoch_report *e)
{
    if (e->copied_in_bytes + e->copied_out_bytes > 0) {
        put_bytes(l, "copied_in_bytes", e->copied_in_bytes);
        put_bytes(l, "copied_out_bytes", e->copied_out_bytes);
        put_bytes(l, "handed_over", e->handed_over);
    }
    if (e->forwarded_bytes > 0)
        put_bytes(l, "forwarded_bytes", e->forwarded_bytes);
    if (e->loaded_bytes > 0)
        put_bytes(l, "loaded_bytes", e->loaded_bytes);
    if (e->sent_bytes > 0)
        put_bytes(l, "sent_bytes", e->sent_bytes);
}

size_t gs_metrics_line(char *buf, const gs_epoch_report *e)
{
    fields l = {buf, (size_t)snprintf(buf, GS_METRICS_LINE, "{\"epoch\": %u", e->epoch)};

    put_number(&l, "", "loss", e->loss);
    put_splits(&l, 0, "acc", e->accuracy);
    put_number(&l, "", "lr", e->lr);
    put_number(&l, "", "seconds", e->seconds);
    put_bytes(&l, "read_bytes", e->read_bytes);
    put_bytes(&l, "written_bytes", e->written_bytes);
    put_number(&l, "", "compute_seconds", e->compute_seconds);
    put_number(&l, "", "stall_seconds", e->stall_seconds);
    put_bytes(&l, "peak_host_bytes", e->peak_host_bytes);
    put_bytes(&l, "peak_device_bytes", e->peak_device_bytes);
    put_moved(&l, e);
    if (e->sample_seconds > 0) { /* of batches: what seconds went to, beside computing and waiting */
        put_number(&l, "", "sample_seconds", e->sample_seconds);
        put_number(&l, "", "pick_seconds", e->pick_seconds);
        put_number(&l, "", "copy_seconds", e->copy_seconds);
        put_number(&l, "", "step_seconds", e->step_seconds);
    }
    put_figures(&l, &e->figures);
    memcpy(buf + l.bytes, "}\n", 3);
    return l.bytes + 2;
}

static gs_status named(gs_status st)
{
    return st == GS_OK ? GS_OK : gs_fail(st, ".metrics %s", gs_last_error());
}

/* At its path from the start: it is there to be watched. */
gs_status gs_metrics_log_open(gs_metrics_log *log, const char *path)
{
    *log = (gs_metrics_log)GS_METRICS_NONE;
    if (path == NULL)
        return GS_OK;
    GS_TRY(named(gs_outfile_begin(&log->out, path)));
    const gs_status st = gs_outfile_show(&log->out);
    if (st != GS_OK)
        gs_outfile_abandon(&log->out);
    return named(st);
}

/* Takes back what there is of a line that did not fit. What went to a pipe or a terminal is gone. */
static void cut_back(const gs_metrics_log *log)
{
    while (!gs_outfile_is_stream(&log->out) && ftruncate(log->out.fd, (off_t)log->bytes) != 0 && errno == EINTR)
        continue;
}

gs_status gs_metrics_log_write(gs_metrics_log *log, const gs_epoch_report *epoch)
{
    char line[GS_METRICS_LINE];
    gs_status st;

    if (log->out.path == NULL)
        return GS_OK;
    const size_t n = gs_metrics_line(line, epoch);
    if ((st = gs_outfile_write(&log->out, line, n, log->bytes)) != GS_OK) {
        cut_back(log);
        return gs_fail(st, ".metrics: cannot write the line of epoch %u: %s", epoch->epoch, gs_last_error());
    }
    log->bytes += n;
    return GS_OK;
}

/* Lines of an earlier run that this one goes on from. */
static gs_status append(gs_metrics_log *log, const char *text, size_t bytes)
{
    const gs_status st = gs_outfile_write(&log->out, text, bytes, log->bytes);

    if (st != GS_OK)
        return gs_fail(st, ".metrics: cannot write the lines of earlier epochs: %s", gs_last_error());
    log->bytes += bytes;
    return GS_OK;
}

gs_status gs_metrics_log_close(gs_metrics_log *log)
{
    const gs_status st = log->out.path != NULL ? gs_outfile_finish(&log->out) : GS_OK;

    gs_outfile_abandon(&log->out);
    return named(st);
}

/* ---- lines beside checkpoints -------------------------------------------- */

#define PIECE (64u << 10) /* bytes that are read at a time */

static gs_status open_lines(gs_kept_lines *k, const char *folder)
{
    *k = (gs_kept_lines){.fd = -1};
    if ((k->path = gs_path_join(folder, GS_KEPT_LINES_NAME)) == NULL || (k->hash = gs_hash_begin()) == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory", folder);
    k->fd = open(k->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    return k->fd >= 0 ? GS_OK : gs_fail_errno(errno, "%s: cannot create", k->path);
}

void gs_kept_lines_close(gs_kept_lines *k)
{
    if (k->path != NULL && k->fd >= 0)
        close(k->fd);
    gs_hash_end(k->hash);
    gs_free(k->path);
    *k = (gs_kept_lines){.fd = -1};
}

static gs_status cut(const gs_kept_lines *k, uint64_t bytes)
{
    while (ftruncate(k->fd, (off_t)bytes) != 0)
        if (errno != EINTR)
            return gs_fail_errno(errno, "%s: cannot be cut to %lu bytes", k->path, bytes);
    return GS_OK;
}

gs_status gs_kept_lines_begin(gs_kept_lines *k, const char *folder)
{
    GS_TRY(open_lines(k, folder));
    return cut(k, 0);
}

/* Takes in `bytes` bytes of the file `from`: they are k's so far, and written to it where that is another file. */
static gs_status take_in(gs_kept_lines *k, int from, uint64_t bytes, bool copy, const char *path)
{
    GS_FREED char *const piece = gs_malloc(PIECE);

    GS_NEED(piece != NULL, "%s: out of memory", path);
    while (k->bytes < bytes) {
        const uint64_t n = GS_MIN(bytes - k->bytes, PIECE);
        GS_TRY(gs_pread_exact(from, piece, n, k->bytes, path));
        if (copy)
            GS_TRY(gs_pwrite_exact(k->fd, piece, n, k->bytes, k->path));
        gs_hash_add(k->hash, piece, n);
        k->bytes += n;
    }
    return GS_OK;
}

gs_status gs_kept_lines_continue(gs_kept_lines *k, const char *folder, const char *from, uint64_t bytes,
                                 uint64_t checksum, bool *whole)
{
    GS_FREED char *const path = gs_path_join(from, GS_KEPT_LINES_NAME);
    uint64_t there = 0;
    GS_CLOSED int fd = -1;

    GS_NEED(path != NULL, "%s: out of memory", from);
    if (gs_path_exists(path)) /* a run without it has kept nothing */
        GS_TRY(gs_file_open_read(&fd, &there, path));
    GS_TRY(open_lines(k, folder));
    const bool same = k->path != NULL && gs_path_is_open_at(path, k->fd);
    if (!same)
        GS_TRY(cut(k, 0));
    GS_TRY(take_in(k, fd, GS_MIN(bytes, there), !same, path));
    *whole = k->bytes == bytes && gs_hash_so_far(k->hash) == checksum;
    return cut(k, k->bytes);
}

gs_status gs_kept_lines_add(gs_kept_lines *k, const gs_epoch_report *epoch)
{
    char line[GS_METRICS_LINE];

    if (k->path == NULL)
        return GS_OK;
    const size_t n = gs_metrics_line(line, epoch);
    GS_TRY(gs_pwrite_exact(k->fd, line, n, k->bytes, k->path));
    gs_hash_add(k->hash, line, n);
    k->bytes += n;
    return GS_OK;
}

gs_status gs_kept_lines_sync(gs_kept_lines *k)
{
    if (k->path == NULL || fdatasync(k->fd) == 0)
        return GS_OK;
    return gs_fail_errno(errno, "%s: sync failed", k->path);
}

gs_status gs_kept_lines_pour(const gs_kept_lines *k, gs_metrics_log *log)
{
    if (k->path == NULL || log->out.path == NULL || gs_outfile_is_stream(&log->out))
        return GS_OK;
    GS_FREED char *const piece = gs_malloc(PIECE);
    GS_NEED(piece != NULL, "%s: out of memory", log->out.path);
    for (uint64_t at = 0; at < k->bytes; at += PIECE) {
        const uint64_t n = GS_MIN(k->bytes - at, PIECE);
        GS_TRY(gs_pread_exact(k->fd, piece, n, at, k->path));
        GS_TRY(append(log, piece, n));
    }
    return GS_OK;
}
