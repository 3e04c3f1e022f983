/* Includes no header of the library but the public one. */
#include "gnnstream.h"
#ifdef GS_STATUS_MAP
#error "gnnstream.h drew in base/status.h"
#endif

#include <string.h>

#include "public_user.h"

static const struct {
    const char *name;
    int value;
} statuses[] = {
    {"GS_OK", GS_OK},           {"GS_EINVAL", GS_EINVAL},   {"GS_ENOMEM", GS_ENOMEM},
    {"GS_ENOTFOUND", GS_ENOTFOUND}, {"GS_EFORMAT", GS_EFORMAT}, {"GS_EIO", GS_EIO},
    {"GS_EAGAIN", GS_EAGAIN},   {"GS_EBUDGET", GS_EBUDGET}, {"GS_EUNSUPPORTED", GS_EUNSUPPORTED},
    {"GS_EEXIST", GS_EEXIST},   {"GS_EINTERRUPTED", GS_EINTERRUPTED}, {"GS_EDEVICE", GS_EDEVICE},
};

int public_status(const char *name)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (strcmp(statuses[i].name, name) == 0)
            return statuses[i].value;
    return 1;
}

const char *public_version(void) { return gs_version(); }
