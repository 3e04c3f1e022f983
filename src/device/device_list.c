/* Which devices exist: the one place that knows. */
#include <stdbool.h>
#include <string.h>

#include "device/cpu_internal.h" /* gs_cpu__open */
#include "device/device_internal.h"

/* "3"; with commas allowed, "0,1,2" too. */
static bool is_number_list(const char *text, bool commas)
{
    const size_t digits = strspn(text, "0123456789");
    if (digits == 0)
        return false;
    if (text[digits] == '\0')
        return true;
    return commas && text[digits] == ',' && is_number_list(text + digits + 1, commas);
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
