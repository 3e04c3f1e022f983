/* Which devices exist: the one place that knows. */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "device/cpu_internal.h" /* gs_cpu__open */
#include "device/device_internal.h"

/* "3", "0,1,2": numbers with commas between them. */
static bool is_number_list(const char *text, bool commas)
{
    for (; isdigit((unsigned char)*text); text++) {
        while (isdigit((unsigned char)text[1]))
            text++;
        if (text[1] == '\0')
            return true;
        if (!commas || text[1] != ',')
            return false;
        text++;
    }
    return false;
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
