/* text.h - a text that a user wrote, and errors at a place in it.
 *
 * What is made of a text (tokens, a graph) outlives its parser and still says where it came from, so the text is
 * shared: whoever keeps it drops it, and the last one frees it.
 *
 * Threads: a text never changes; keeping and dropping may happen in any thread.
 */
#ifndef GS_BASE_TEXT_H
#define GS_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct gs_text gs_text;

/* A copy of `bytes` bytes, any of them, kept once; `name` is what errors call it. NULL when memory is short. */
gs_text *gs_text_new(const char *name, const char *text, size_t bytes);
gs_text *gs_text_keep(gs_text *t); /* `t` again; NULL is allowed */
void gs_text_drop(gs_text *t);     /* NULL is allowed */

const char *gs_text_name(const gs_text *t);
const char *gs_text_bytes(const gs_text *t, size_t *bytes); /* ends with a 0 that is not counted */

/* As gs_fail() with "NAME:LINE:COLUMN: ..."; gs_last_error_place() then has the line, and below it a caret under the
 * column. Both count from 1, columns in bytes; a line that the text does not have is not shown. */
gs_status gs_fail_in_text(gs_status st, const gs_text *t, uint32_t line, uint32_t column, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

#endif /* GS_BASE_TEXT_H */
