/* arguments.h - what a caller of the public interface has given: is it there, and of which version of the header?
 *
 * The rules are gnnstream.h's: NULL where a value is due is GS_EINVAL, and option structs begin with their size.
 */
#ifndef GS_BASE_ARGUMENTS_H
#define GS_BASE_ARGUMENTS_H

#include <stddef.h>

#include "base/status.h"

/* GS_EINVAL with words where `value` is NULL; `name` is the parameter's. */
gs_status gs_check_argument(const void *value, const char *name);

/* Copies an option struct of a caller, who may have been compiled with another header, to `own` of `own_size` bytes,
 * which holds the defaults and keeps them where the caller's struct ends earlier. Both begin with a size_t, their size;
 * own's stays. `least`: bytes that every version has had. `name` is the parameter's, `init` the function that sets the
 * size.
 * GS_EINVAL: NULL, a size that cannot be, or bytes beyond `own_size` that are not 0. */
gs_status gs_options_take(void *own, size_t own_size, size_t least, const void *given, const char *name,
                          const char *init);
/* The other way: defaults to a caller's struct of `size` bytes, as far as it goes. What it has beyond becomes 0. */
void gs_options_give(void *given, size_t size, const void *defaults, size_t defaults_size);

#endif /* GS_BASE_ARGUMENTS_H */
