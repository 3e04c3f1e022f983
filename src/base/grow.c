#include "base/grow.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

#define LEAST_ROOM 16u

bool gs_grow(void *array, uint32_t count, uint32_t *room, size_t size)
{
    void *items; /* pointers of any type have one representation here, but may not be accessed as another's */

    if (count < *room)
        return true;
    if (*room > UINT32_MAX / 2)
        return false;
    const uint32_t more = GS_MAX(2 * *room, LEAST_ROOM);
    memcpy(&items, array, sizeof(items));
    if ((items = gs_realloc(items, more * size)) == NULL)
        return false;
    memcpy(array, &items, sizeof(items));
    *room = more;
    return true;
}
