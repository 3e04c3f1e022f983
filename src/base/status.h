/* status.h - what can go wrong, as a code for programs and a line for people.
 *
 * Every function that can fail returns a gs_status: 0, or a negative code.
 * Results go through an out parameter that is untouched on failure. The code
 * decides what a caller does; the text, recorded by gs_fail() on the thread
 * that failed, explains it to a person. Only tools/ prints it.
 */
#ifndef GS_BASE_STATUS_H
#define GS_BASE_STATUS_H

#define GS_STATUS_MAP(X)                                        \
    X(GS_OK, 0, "success")                                      \
    X(GS_EINVAL, -1, "invalid argument")                        \
    X(GS_ENOMEM, -2, "out of memory")                           \
    X(GS_ENOTFOUND, -3, "not found")                            \
    X(GS_EFORMAT, -4, "malformed or damaged data")              \
    X(GS_EIO, -5, "input/output error")                         \
    X(GS_EAGAIN, -6, "try again later")                         \
    X(GS_EBUDGET, -7, "does not fit the memory budget")         \
    X(GS_EUNSUPPORTED, -8, "not supported")                     \
    X(GS_EEXIST, -9, "already exists")                          \
    X(GS_EINTERRUPTED, -10, "interrupted")                      \
    X(GS_EDEVICE, -11, "device failure")

typedef enum gs_status {
#define X(name, value, text) name = value,
    GS_STATUS_MAP(X)
#undef X
} gs_status;

/* Short fixed text of a code, for logs. Never NULL. */
const char *gs_status_text(gs_status st);

/* Records one line (no newline; names the file, option or chunk, what is wrong
 * and what to do) as this thread's last error and returns `st`, so that
 * `return gs_fail(GS_EFORMAT, "%s: ...", path)` reads as one act. */
gs_status gs_fail(gs_status st, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* As gs_fail(), and appends ": " and the text of `err` (an errno value).
 * ENOSPC, ENOENT, EACCES and the like are mapped to a fitting code; of a full disk it also says what to do. */
gs_status gs_fail_errno(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Ends the last recorded line with "; " and `hint`, what to do: in place of the general one that gs_fail_errno() has
 * for a full disk, where the caller knows better. Returns `st`. */
gs_status gs_fail_hint(gs_status st, const char *hint);

/* This thread's last recorded line, "" where there is none. */
const char *gs_last_error(void);

#endif /* GS_BASE_STATUS_H */
