/* status.h - what can go wrong, as a code for programs and a line for people.
 *
 * Every function that can fail returns a gs_status: 0, or a negative code.
 * Results go through an out parameter that is untouched on failure. The code
 * decides what a caller does; the text, recorded by gs_fail() on the thread
 * that failed, explains it to a person. Only tools/ prints it.
 */
#ifndef GS_BASE_STATUS_H
#define GS_BASE_STATUS_H

#include <stddef.h>

#include "gnnstream_base.h" /* gs_status, gs_status_text(), gs_last_error() */

#define GS_ERROR_BYTES 2048 /* any last error, with its 0 */

/* Texts print uint64_t by %lu and uint32_t by %u: this runs on Linux of 64 bits alone. */
_Static_assert(sizeof(long) == 8, "uint64_t is unsigned long");

/* Records one line (no newline; names the file, option or chunk, what is wrong
 * and what to do) as this thread's last error and returns `st`, so that
 * `return gs_fail(GS_EFORMAT, "%s: ...", path)` reads as one act. */
gs_status gs_fail(gs_status st, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* As gs_fail(), and appends ": " and the text of `err` (an errno value).
 * ENOSPC, ENOENT, EACCES and the like are mapped to a fitting code; of a full disk it also says what to do. */
gs_status gs_fail_errno(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Leaves the function with the status of `call` where that is not GS_OK; what it took goes by GS_ENDS (alloc.h). */
#define GS_TRY(call)                     \
    do {                                 \
        const gs_status tried_ = (call); \
        if (tried_ != GS_OK)             \
            return tried_;               \
    } while (0)

/* Leaves the function likewise with GS_ENOMEM and these words where what was taken is not there. */
#define GS_NEED(there, ...)                         \
    do {                                            \
        if (!(there))                               \
            return gs_fail(GS_ENOMEM, __VA_ARGS__); \
    } while (0)

/* Ends the last recorded line with "; " and `hint`, what to do: in place of the general one that gs_fail_errno() has
 * for a full disk, where the caller knows better. Returns `st`. */
gs_status gs_fail_hint(gs_status st, const char *hint);

/* A failure that is told later, as by another thread or behind what is still to be done; {0}: none. */
typedef struct gs_failure {
    gs_status st;
    char why[GS_ERROR_BYTES];
} gs_failure;

/* Keeps `st`, where that is not GS_OK, with its words, which are this thread's last error; of several the first. */
void gs_failure_keep(gs_failure *f, gs_status st);
/* Records what was kept as this thread's last error and returns its status; GS_OK: nothing was. */
gs_status gs_failure_tell(const gs_failure *f);

/* Gives the last error a place to show, for gs_last_error_place(): lines, the last one without its end. */
void gs_fail_place(const char *lines);

/* ---- arguments of callers ---------------------------------------------- */

/* What a caller of the public interface has given: is it there, and of which version of the header?
 *
 * The rules are gnnstream.h's: NULL where a value is due is GS_EINVAL, and option structs begin with their size.
 */

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

#endif /* GS_BASE_STATUS_H */
