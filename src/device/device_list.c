/* Which devices exist: the one place that knows. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu_internal.h" /* gs_cpu__open */
#include "device/device_table.h"

/* "3"; with commas allowed, "0,1,2" too. */
static bool is_number_list(const char *text, bool commas)
{
    bool after_digit = false;
    for (; *text != '\0'; text++) {
        const bool digit = *text >= '0' && *text <= '9';
        if (!digit && !(commas && after_digit && *text == ','))
            return false;
        after_digit = digit;
    }
    return after_digit;
}

static gs_status open_cuda(const gs_device_ops **ops, void **context, const gs_device_config *config)
{
    const char *const number = config->spec[4] == ':' ? config->spec + 5 : "0";
    if (strchr(number, ',') != NULL)
        return gs_fail(GS_EUNSUPPORTED, "device %s: several devices in one process are not built in; use \"cuda:%c\"",
                       config->spec, number[0]);
    if (strlen(number) > 3)
        return gs_fail(GS_EINVAL, "device %s: there are not so many GPUs", config->spec);
#ifdef GS_HAVE_CUDA
    return gs_cuda_open(ops, context, (unsigned)strtoul(number, NULL, 10), config->matmul);
#else
    (void)ops, (void)context;
    return gs_fail(GS_EUNSUPPORTED, "device %s: this build has no CUDA; use \"cpu\"", config->spec);
#endif
}

gs_status gs_device__find(const gs_device_ops **ops, void **context, const gs_device_config *config)
{
    const char *const spec = config->spec;
    if (strcmp(spec, "cpu") == 0)
        return gs_cpu__open(ops, context, config->threads);
    if (strncmp(spec, "cpu:", 4) == 0 && is_number_list(spec + 4, false))
        return gs_fail(GS_EUNSUPPORTED, "device %s: several devices in one process are not built in; use \"cpu\"", spec);
    if (strcmp(spec, "cuda") == 0 || (strncmp(spec, "cuda:", 5) == 0 && is_number_list(spec + 5, true)))
        return open_cuda(ops, context, config);
    return gs_fail(GS_EINVAL, "device \"%s\" is not known; use \"cpu\" or \"cuda\"", spec);
}
