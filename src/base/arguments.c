#include "base/arguments.h"

#include <stdint.h>
#include <string.h>

#include "base/size.h"

#define MOST_BYTES 65536u /* no struct of options is larger: its size was not set */

gs_status gs_check_argument(const void *value, const char *name)
{
    return value != NULL ? GS_OK : gs_fail(GS_EINVAL, "%s: is NULL, where a value is due", name);
}

gs_status gs_options_take(void *own, size_t own_size, size_t least, const void *given, const char *name,
                          const char *init)
{
    size_t size;

    if (given == NULL)
        return gs_check_argument(given, name);
    memcpy(&size, given, sizeof(size));
    if (size < least || size > MOST_BYTES)
        return gs_fail(GS_EINVAL, "%s: .size %llu: is no size of this struct; fill it with %s() first", name,
                       (unsigned long long)size, init);
    for (size_t at = own_size; at < size; at++)
        if (((const unsigned char *)given)[at] != 0)
            return gs_fail(GS_EINVAL,
                           "%s: .size %llu: sets fields that this version of the library (" GS_VERSION
                           ") does not know; use a newer library, or leave them at 0",
                           name, (unsigned long long)size);
    memcpy((unsigned char *)own + sizeof(size), (const unsigned char *)given + sizeof(size),
           GS_MIN(size, own_size) - sizeof(size));
    return GS_OK;
}

void gs_options_give(void *given, size_t size, const void *defaults, size_t defaults_size)
{
    if (given == NULL || size < sizeof(size))
        return;
    memset(given, 0, size);
    memcpy(given, defaults, GS_MIN(size, defaults_size));
    memcpy(given, &size, sizeof(size));
}
