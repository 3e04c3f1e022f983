#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define REASON_BYTES 256 /* of an error number, with what to do */
#define PLACE_BYTES 1536

static _Thread_local char last_error[GS_ERROR_BYTES];
static _Thread_local char last_place[PLACE_BYTES];
static _Thread_local size_t last_hint; /* where the line's general hint begins; its length where it has none */

const char *gs_status_text(gs_status st)
{
    switch (st) {
#define X(name, value, text) \
    case name:               \
        return text;
        GS_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

/* Makes `text` the last error. File names may hold anything; what is not
 * printable becomes '?', so that one error is one line and no terminal codes. */
static void record(char *text)
{
    for (char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    last_place[0] = '\0';
    last_hint = strlen(text);
    memcpy(last_error, text, last_hint + 1);
}

/* A text too long for `capacity`, as a name in it is, loses its middle: the name's place and the reason stay. */
static void format(char *out, size_t capacity, const char *fmt, va_list args)
{
    static const char gap[] = " ... ";
    va_list again;

    va_copy(again, args);
    const int length = vsnprintf(out, capacity, fmt, args);
    if (length < 0)
        out[0] = '\0';
    char *const whole = length < 0 || (size_t)length < capacity ? NULL : malloc((size_t)length + 1);
    if (whole != NULL) { /* without it the end is cut off */
        const size_t head = capacity / 3, tail = capacity - head - sizeof(gap);
        vsnprintf(whole, (size_t)length + 1, fmt, again);
        memcpy(out + head, gap, sizeof(gap) - 1);
        memcpy(out + head + sizeof(gap) - 1, whole + (size_t)length - tail, tail + 1);
        free(whole);
    }
    va_end(again);
}

/* Both functions format into their own buffer first: the arguments may point
 * into last_error, where a caller puts a chunk's name before its reason. */
gs_status gs_fail(gs_status st, const char *fmt, ...)
{
    char text[GS_ERROR_BYTES];
    va_list args;

    va_start(args, fmt);
    format(text, sizeof(text), fmt, args);
    va_end(args);
    record(text);
    return st;
}

static gs_status status_of_errno(int err)
{
    switch (err) {
    case ENOMEM:
        return GS_ENOMEM;
    case ENOENT:
    case ENOTDIR:
        return GS_ENOTFOUND;
    case EEXIST:
    case EISDIR: /* where a file is to be made */
    case ENOTEMPTY:
        return GS_EEXIST;
    case EINTR:
        return GS_EINTERRUPTED;
    case EAGAIN:
        return GS_EAGAIN;
    case ENOSYS:
    case EOPNOTSUPP:
        return GS_EUNSUPPORTED;
    default: /* ENOSPC, EACCES, EPERM, EROFS, EMFILE, EIO, ...; EINVAL too: the system will not, the caller was right */
        return GS_EIO;
    }
}

static const char *general_hint(int err)
{
    return err == ENOSPC || err == EDQUOT ? "; free some, or choose a folder on another disk" : "";
}

gs_status gs_fail_errno(int err, const char *fmt, ...)
{
    char text[GS_ERROR_BYTES], reason_buf[128];
    va_list args;

    va_start(args, fmt);
    format(text, sizeof(text) - REASON_BYTES, fmt, args);
    va_end(args);

    const size_t used = strlen(text);
    snprintf(text + used, sizeof(text) - used, ": %s", strerror_r(err, reason_buf, sizeof(reason_buf)));
    const size_t reason_end = strlen(text);
    snprintf(text + reason_end, sizeof(text) - reason_end, "%s", general_hint(err));
    record(text);
    last_hint = reason_end;
    return status_of_errno(err);
}

gs_status gs_fail_hint(gs_status st, const char *hint)
{
    return gs_fail(st, "%.*s; %s", (int)last_hint, last_error, hint);
}

const char *gs_last_error(void) { return last_error; }

void gs_failure_keep(gs_failure *f, gs_status st)
{
    if (st == GS_OK || f->st != GS_OK)
        return;
    f->st = st;
    memcpy(f->why, last_error, sizeof(f->why));
}

gs_status gs_failure_tell(const gs_failure *f) { return f->st == GS_OK ? GS_OK : gs_fail(f->st, "%s", f->why); }

void gs_fail_place(const char *lines) { snprintf(last_place, sizeof(last_place), "%s", lines); }

const char *gs_last_error_place(void) { return last_place; }

/* ---- arguments of callers ---------------------------------------------- */

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
        return gs_fail(GS_EINVAL, "%s: .size %lu: is no size of this struct; fill it with %s() first", name, size,
                       init);
    for (size_t at = own_size; at < size; at++)
        if (((const unsigned char *)given)[at] != 0)
            return gs_fail(GS_EINVAL,
                           "%s: .size %lu: sets fields that this version of the library (" GS_VERSION
                           ") does not know; use a newer library, or leave them at 0",
                           name, size);
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
