#include "train/metrics_log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"

/* ---- lines --------------------------------------------------------------- */

/* JSON has no NaN; printf may write a comma where the process's locale does. */
static const char *number(char out[32], double v)
{
    if (!isfinite(v))
        return "null";
    snprintf(out, 32, "%.10g", v);
    for (char *c = out; *c != '\0'; c++)
        if (*c == ',')
            *c = '.';
    return out;
}

/* ", "train_mse": 0.5, "valid_mse": ..." */
static size_t put_figure(char *buf, size_t at, const char *name, const double v[3])
{
    static const char *const split[] = {"train", "valid", "test"};
    char text[32];
    for (int s = 0; s < 3; s++)
        at += (size_t)snprintf(buf + at, GS_METRICS_LINE - at, ", \"%s_%s\": %s", split[s], name, number(text, v[s]));
    return at;
}

/* Of validation and test: of pairs with types their ranks, of others the area. */
static size_t put_pairs(char *buf, size_t at, const gs_task_figures *f)
{
    const struct {
        const char *name;
        const double *v;
        bool of_types;
    } figure[] = {{"mrr", f->mrr, true}, {"hits@1", f->hits1, true}, {"hits@3", f->hits3, true},
                  {"hits@10", f->hits10, true}, {"auc", f->roc_auc, false}};
    const bool untyped = isfinite(f->roc_auc[1]) || isfinite(f->roc_auc[2]);
    char text[32];

    for (size_t k = 0; k < GS_ARRAY_LEN(figure); k++)
        for (int s = 1; s < 3 && figure[k].of_types != untyped; s++)
            at += (size_t)snprintf(buf + at, GS_METRICS_LINE - at, ", \"%s_%s\": %s", s == 1 ? "valid" : "test",
                                   figure[k].name, number(text, figure[k].v[s]));
    return at;
}

static size_t put_figures(char *buf, size_t at, const gs_task_figures *f)
{
    char text[32];

    at += (size_t)snprintf(buf + at, GS_METRICS_LINE - at, ", \"valid_loss\": %s", number(text, f->valid_loss));
    if (strcmp(f->task, "multilabel") == 0) {
        at = put_figure(buf, at, "micro_f1", f->micro_f1);
        at = put_figure(buf, at, "macro_f1", f->macro_f1);
    } else if (strstr(f->task, "regress") != NULL) {
        at = put_figure(buf, at, "mse", f->mse);
        if (strcmp(f->task, "regress") != 0) /* of edges: what ratings are judged by */
            at = put_figure(buf, at, "rmse", f->rmse);
        at = put_figure(buf, at, "mae", f->mae);
        at = put_figure(buf, at, "r2", f->r2);
    } else if (strcmp(f->task, "link") == 0) {
        at = put_pairs(buf, at, f);
    } else {
        at = put_figure(buf, at, "macro_f1", f->macro_f1);
        at = put_figure(buf, at, "balanced_acc", f->balanced_acc);
    }
    return at;
}

/* Of batches: what an epoch's seconds went to, beside computing and waiting. */
static size_t put_batches(char *buf, size_t at, const gs_epoch_report *e)
{
    const struct {
        const char *name;
        double v;
    } part[] = {{"sample", e->sample_seconds}, {"pick", e->pick_seconds}, {"copy", e->copy_seconds},
                {"step", e->step_seconds}};
    char text[32];

    for (size_t k = 0; k < GS_ARRAY_LEN(part) && e->sample_seconds > 0; k++)
        at += (size_t)snprintf(buf + at, GS_METRICS_LINE - at, ", \"%s_seconds\": %s", part[k].name,
                               number(text, part[k].v));
    return at;
}

size_t gs_metrics_line(char *buf, const gs_epoch_report *e)
{
    char loss[32], acc[3][32], lr[32], seconds[32], compute[32], stall[32], copied[96] = "", forwarded[48] = "",
         loaded[48] = "", sent[48] = "";
    if (e->copied_in_bytes + e->copied_out_bytes > 0)
        snprintf(copied, sizeof(copied), ", \"copied_in_bytes\": %lu, \"copied_out_bytes\": %lu", e->copied_in_bytes,
                 e->copied_out_bytes);
    if (e->forwarded_bytes > 0)
        snprintf(forwarded, sizeof(forwarded), ", \"forwarded_bytes\": %lu", e->forwarded_bytes);
    if (e->loaded_bytes > 0)
        snprintf(loaded, sizeof(loaded), ", \"loaded_bytes\": %lu", e->loaded_bytes);
    if (e->sent_bytes > 0)
        snprintf(sent, sizeof(sent), ", \"sent_bytes\": %lu", e->sent_bytes);
    const int n = snprintf(buf, GS_METRICS_LINE, "{\"epoch\": %u, \"loss\": %s, \"train_acc\": %s, \"valid_acc\": %s, "
                           "\"test_acc\": %s, \"lr\": %s, \"seconds\": %s, \"read_bytes\": %lu, "
                           "\"written_bytes\": %lu, \"compute_seconds\": %s, \"stall_seconds\": %s, "
                           "\"peak_host_bytes\": %lu, \"peak_device_bytes\": %lu%s%s%s%s", e->epoch,
                           number(loss, e->loss), number(acc[0], e->accuracy[0]), number(acc[1], e->accuracy[1]),
                           number(acc[2], e->accuracy[2]), number(lr, e->lr), number(seconds, e->seconds),
                           e->read_bytes, e->written_bytes, number(compute, e->compute_seconds),
                           number(stall, e->stall_seconds), e->peak_host_bytes, e->peak_device_bytes, copied, forwarded,
                           loaded, sent);
    const size_t at = put_figures(buf, put_batches(buf, (size_t)n, e), &e->figures);
    buf[at] = '}';
    buf[at + 1] = '\n';
    buf[at + 2] = '\0';
    return at + 2;
}

static gs_status named(gs_status st)
{
    return st == GS_OK ? GS_OK : gs_fail(st, ".metrics %s", gs_last_error());
}

/* At its path from the start: it is there to be watched. */
gs_status gs_metrics_log_open(gs_metrics_log *log, const char *path)
{
    gs_status st;

    *log = (gs_metrics_log)GS_METRICS_NONE;
    if (path == NULL)
        return GS_OK;
    if ((st = gs_outfile_begin(&log->out, path)) == GS_OK && (st = gs_outfile_show(&log->out)) != GS_OK)
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
    gs_status st = GS_OK;

    if (log->out.path != NULL)
        st = gs_outfile_finish(&log->out);
    gs_outfile_abandon(&log->out);
    return named(st);
}

/* ---- lines beside checkpoints -------------------------------------------- */

#define PIECE (64u << 10) /* bytes that are read at a time */

static gs_status open_lines(gs_kept_lines *k, const char *folder)
{
    *k = (gs_kept_lines){.fd = -1};
    if ((k->path = gs_path_join(folder, GS_KEPT_LINES_NAME)) == NULL || (k->hash = gs_hash_begin()) == NULL) {
        gs_kept_lines_close(k);
        return gs_fail(GS_ENOMEM, "%s: out of memory", folder);
    }
    k->fd = open(k->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (k->fd >= 0)
        return GS_OK;
    const gs_status st = gs_fail_errno(errno, "%s: cannot create", k->path);
    gs_kept_lines_close(k);
    return st;
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
    gs_status st = open_lines(k, folder);

    if (st == GS_OK && (st = cut(k, 0)) != GS_OK)
        gs_kept_lines_close(k);
    return st;
}

/* Takes in `bytes` bytes of the file `from`: they are k's so far, and written to it where that is another file. */
static gs_status take_in(gs_kept_lines *k, int from, uint64_t bytes, bool copy, const char *path)
{
    GS_FREED char *const piece = gs_malloc(PIECE);
    gs_status st = GS_OK;

    if (piece == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory", path);
    while (k->bytes < bytes && st == GS_OK) {
        const uint64_t n = GS_MIN(bytes - k->bytes, PIECE);
        if ((st = gs_pread_exact(from, piece, n, k->bytes, path)) != GS_OK ||
            (copy && (st = gs_pwrite_exact(k->fd, piece, n, k->bytes, k->path)) != GS_OK))
            break;
        gs_hash_add(k->hash, piece, n);
        k->bytes += n;
    }
    return st;
}

/* A run without this file has kept nothing. */
static gs_status open_earlier(int *fd, uint64_t *bytes, const char *path)
{
    if (gs_path_exists(path))
        return gs_file_open_read(fd, bytes, path);
    *fd = -1;
    *bytes = 0;
    return GS_OK;
}

/* True where `path` names the same file. */
static bool is_same(const gs_kept_lines *k, const char *path)
{
    struct stat a, b;
    return k->path != NULL && fstat(k->fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

gs_status gs_kept_lines_continue(gs_kept_lines *k, const char *folder, const char *from, uint64_t bytes,
                                 uint64_t checksum, bool *whole)
{
    GS_FREED char *const path = gs_path_join(from, GS_KEPT_LINES_NAME);
    uint64_t there = 0;
    GS_CLOSED int fd = -1;
    gs_status st;

    if (path == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory", from);
    if ((st = open_earlier(&fd, &there, path)) == GS_OK && (st = open_lines(k, folder)) == GS_OK) {
        const bool same = is_same(k, path);
        if ((!same && (st = cut(k, 0)) != GS_OK) ||
            (st = take_in(k, fd, GS_MIN(bytes, there), !same, path)) != GS_OK || (st = cut(k, k->bytes)) != GS_OK)
            gs_kept_lines_close(k);
        else
            *whole = k->bytes == bytes && gs_hash_so_far(k->hash) == checksum;
    }
    return st;
}

gs_status gs_kept_lines_add(gs_kept_lines *k, const gs_epoch_report *epoch)
{
    char line[GS_METRICS_LINE];

    if (k->path == NULL)
        return GS_OK;
    const size_t n = gs_metrics_line(line, epoch);
    const gs_status st = gs_pwrite_exact(k->fd, line, n, k->bytes, k->path);
    if (st != GS_OK)
        return st;
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
    gs_status st = GS_OK;

    if (k->path == NULL || log->out.path == NULL || gs_outfile_is_stream(&log->out))
        return GS_OK;
    GS_FREED char *const piece = gs_malloc(PIECE);
    if (piece == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory", log->out.path);
    for (uint64_t at = 0; at < k->bytes && st == GS_OK; at += PIECE) {
        const uint64_t n = GS_MIN(k->bytes - at, PIECE);
        if ((st = gs_pread_exact(k->fd, piece, n, at, k->path)) == GS_OK)
            st = append(log, piece, n);
    }
    return st;
}
