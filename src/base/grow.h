/* grow.h - arrays that get longer one item at a time. */
#ifndef GS_BASE_GROW_H
#define GS_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes room for one more item behind the `count` that there are. `array` points to the pointer to the items, of `size`
 * bytes each; *room is how many fit, 0 (and the pointer NULL) before the first. Room doubles. False, with nothing
 * changed, when memory is short; gs_fail() is not called. Free the array with gs_free(). */
bool gs_grow(void *array, uint32_t count, uint32_t *room, size_t size);

#endif /* GS_BASE_GROW_H */
