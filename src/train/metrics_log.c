#include "train/metrics_log.h"

#include <errno.h>
#include <math.h>

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
    *log = (gs_metrics_log){.path = path};
    if (path != NULL && (log->file = fopen(path, "we")) == NULL)
        return gs_fail_errno(errno, "--metrics %s: cannot create", path);
    return GS_OK;
}

gs_status gs_metrics_log_write(gs_metrics_log *log, const gs_epoch_report *epoch)
{
    char line[GS_METRICS_LINE];
    size_t n;

    if (log->file == NULL)
        return GS_OK;
    n = gs_metrics_line(line, epoch);
    if (fwrite(line, 1, n, log->file) != n || fflush(log->file) != 0)
        return gs_fail_errno(errno, "--metrics %s: cannot write", log->path);
    return GS_OK;
}

gs_status gs_metrics_log_close(gs_metrics_log *log)
{
    FILE *const file = log->file;

    log->file = NULL;
    if (file != NULL && fclose(file) != 0)
        return gs_fail_errno(errno, "--metrics %s: cannot write", log->path);
    return GS_OK;
}
