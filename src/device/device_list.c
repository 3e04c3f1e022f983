/* Which devices exist: the one place that knows. */
#include <stdbool.h>
#include <string.h>

#include "device/cpu_internal.h" /* gs_cpu__open */
#include "device/device_internal.h"

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

gs_status gs_device__find(const gs_device_ops **ops, void **context, const char *spec, unsigned threads)
{
    if (strcmp(spec, "cpu") == 0)
        return gs_cpu__open(ops, context, threads);
    if (strncmp(spec, "cpu:", 4) == 0 && is_number_list(spec + 4, false))
        return gs_fail(GS_EUNSUPPORTED, "device %s: several devices in one process are not built in; use \"cpu\"", spec);
    if (strcmp(spec, "cuda") == 0 || (strncmp(spec, "cuda:", 5) == 0 && is_number_list(spec + 5, true)))
        return gs_fail(GS_EUNSUPPORTED, "device %s: this build has no CUDA; use \"cpu\"", spec);
    return gs_fail(GS_EINVAL, "device \"%s\" is not known; use \"cpu\"", spec);
}
