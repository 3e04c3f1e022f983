/* gnnstream_base.h - what the parts of gnnstream.h share: statuses and their words, sizes, callbacks.
 *
 * Programs include <gnnstream.h>, which includes this.
 */
#ifndef GS_GNNSTREAM_BASE_H
#define GS_GNNSTREAM_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GS_API __attribute__((visibility("default")))
#else
#define GS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What can go wrong: the code decides what a program does, the text is for logs. Codes keep their numbers. */
#define GS_STATUS_MAP(X)                                                                                      \
    X(GS_OK, 0, "success")                                                                                    \
    X(GS_EINVAL, -1, "invalid argument")            /* or option */                                           \
    X(GS_ENOMEM, -2, "out of memory")                                                                         \
    X(GS_ENOTFOUND, -3, "not found")                /* a file, store or model */                              \
    X(GS_EFORMAT, -4, "malformed or damaged data")                                                            \
    X(GS_EIO, -5, "input/output error")                                                                       \
    X(GS_EAGAIN, -6, "try again later")             /* never returned by this interface */                    \
    X(GS_EBUDGET, -7, "does not fit the memory budget") /* the line says what would */                        \
    X(GS_EUNSUPPORTED, -8, "not supported")         /* here */                                                \
    X(GS_EEXIST, -9, "already exists")              /* and is not replaced */                                 \
    X(GS_EINTERRUPTED, -10, "interrupted")          /* `stop` became nonzero */                               \
    X(GS_EDEVICE, -11, "device failure")            /* or a computation that left the finite numbers */

typedef enum gs_status {
#define GS_STATUS_CODE(name, value, text) name = value,
    GS_STATUS_MAP(GS_STATUS_CODE)
#undef GS_STATUS_CODE
} gs_status;

/* Short fixed text of a code. Never NULL. */
GS_API const char *gs_status_text(gs_status st);

#define GS_VERSION "0.1.0"
/* GS_VERSION of the library that is running. */
GS_API const char *gs_version(void);
/* The last failure's line on this thread, without newline; "" where there was none. */
GS_API const char *gs_last_error(void);
/* Where it is about a model's text: that line of it, and below it a caret under the column, without the last newline;
 * else "". */
GS_API const char *gs_last_error_place(void);

/* "4096", "64K", "1.5G" (powers of 1024) to bytes; GS_EINVAL otherwise. */
GS_API gs_status gs_size_parse(uint64_t *out, const char *text);
/* "1.5 GiB" into `buffer` of `capacity` (at least 16) bytes; returns `buffer`. */
GS_API char *gs_size_format(char *buffer, size_t capacity, uint64_t bytes);

/* Called now and then with what is being done and how far it is (0 to 1). */
typedef void (*gs_progress_fn)(void *context, const char *what, double done);
/* Called with a line, without newline, about something that was taken otherwise than it may have been meant. */
typedef void (*gs_warn_fn)(void *context, const char *line);

#ifdef __cplusplus
}
#endif

#endif /* GS_GNNSTREAM_BASE_H */
