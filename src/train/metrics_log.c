#include "train/metrics_log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"

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

size_t gs_metrics_line(char *buf, const gs_epoch_report *e)
{
    char loss[32], acc[3][32], seconds[32], compute[32], stall[32], copied[96] = "", forwarded[48] = "";
    if (e->copied_in_bytes + e->copied_out_bytes > 0)
        snprintf(copied, sizeof(copied), ", \"copied_in_bytes\": %llu, \"copied_out_bytes\": %llu",
                 (unsigned long long)e->copied_in_bytes, (unsigned long long)e->copied_out_bytes);
    if (e->forwarded_bytes > 0)
        snprintf(forwarded, sizeof(forwarded), ", \"forwarded_bytes\": %llu", (unsigned long long)e->forwarded_bytes);
    const int n = snprintf(
        buf, GS_METRICS_LINE,
        "{\"epoch\": %u, \"loss\": %s, \"train_acc\": %s, \"valid_acc\": %s, \"test_acc\": %s, \"seconds\": %s, "
        "\"read_bytes\": %llu, \"written_bytes\": %llu, \"compute_seconds\": %s, \"stall_seconds\": %s, "
        "\"peak_host_bytes\": %llu, \"peak_device_bytes\": %llu%s%s}\n",
        e->epoch, number(loss, e->loss), number(acc[0], e->accuracy[0]), number(acc[1], e->accuracy[1]),
        number(acc[2], e->accuracy[2]), number(seconds, e->seconds), (unsigned long long)e->read_bytes,
        (unsigned long long)e->written_bytes, number(compute, e->compute_seconds), number(stall, e->stall_seconds),
        (unsigned long long)e->peak_host_bytes, (unsigned long long)e->peak_device_bytes, copied, forwarded);
    return (size_t)n;
}

gs_status gs_metrics_log_open(gs_metrics_log *log, const char *path)
{
    *log = (gs_metrics_log){0};
    if (path == NULL)
        return GS_OK;
    if (gs_path_is_dir(path))
        return gs_fail(GS_EEXIST, ".metrics %s: is a folder; give the name of a file", path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return gs_fail_errno(errno, ".metrics %s: cannot create", path);
    *log = (gs_metrics_log){.path = path, .fd = fd};
    return GS_OK;
}

/* 0 or an errno. One call where the disk has room. */
static int write_all(int fd, const char *text, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = write(fd, text + done, bytes - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return n == 0 ? EIO : errno;
    }
    return 0;
}

/* Takes back what there is of a line that did not fit. What went to a pipe or a terminal is gone. */
static void cut_back(const gs_metrics_log *log)
{
    while (ftruncate(log->fd, (off_t)log->bytes) != 0 && errno == EINTR)
        continue;
}

gs_status gs_metrics_log_write(gs_metrics_log *log, const gs_epoch_report *epoch)
{
    char line[GS_METRICS_LINE];

    if (log->path == NULL)
        return GS_OK;
    const size_t n = gs_metrics_line(line, epoch);
    const int err = write_all(log->fd, line, n);
    if (err != 0) {
        cut_back(log);
        return gs_fail_errno(err, ".metrics %s: cannot write the line of epoch %u", log->path, epoch->epoch);
    }
    log->bytes += n;
    return GS_OK;
}

gs_status gs_metrics_log_append(gs_metrics_log *log, const char *text, size_t bytes)
{
    const int err = write_all(log->fd, text, bytes);

    if (err != 0)
        return gs_fail_errno(err, ".metrics %s: cannot write the lines of earlier epochs", log->path);
    log->bytes += bytes;
    return GS_OK;
}

gs_status gs_metrics_log_close(gs_metrics_log *log)
{
    const gs_metrics_log closed = *log;

    *log = (gs_metrics_log){0};
    if (closed.path != NULL && close(closed.fd) != 0)
        return gs_fail_errno(errno, ".metrics %s: cannot write", closed.path);
    return GS_OK;
}
