/* stream.h - what are the bytes of a file, front to back, plain or compressed?
 *
 * gzip (.gz) and Zstandard (.zst) are known by their first bytes, not by the name. One thread a stream. Sizes are
 * bytes. */
#ifndef GS_PARTITION_STREAM_H
#define GS_PARTITION_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/status.h"

typedef struct gs_stream gs_stream;

/* `memory` bounds what unpacking holds. *path must live as long. GS_ENOTFOUND, GS_EIO. */
gs_status gs_part__stream_open(gs_stream **out, const char *path, uint64_t memory);
void gs_part__stream_close(gs_stream *s); /* NULL is allowed */
GS_ENDS_BY(gs_stream, gs_part__stream_close)
/* Fills `dst`; *got is less than `bytes` at the end only. GS_EFORMAT: damaged or cut short; GS_EBUDGET: needs more. */
gs_status gs_part__stream_read(gs_stream *s, void *dst, uint64_t bytes, uint64_t *got);
/* The part of the file that was read, 0 to 1. */
double gs_part__stream_done(const gs_stream *s);

/* -- members of gzip data, unpacked piece by piece.
 *
 * By ISA-L, or by zlib where it was built without; one of the two files is compiled. One thread each. */

typedef struct gs_gunzip gs_gunzip;

/* NULL: no memory. */
gs_gunzip *gs_part__gunzip_make(void);
void gs_part__gunzip_free(gs_gunzip *g); /* NULL is allowed */
/* Unpacks some of [*in, in_end) into [*out, out_end), both of which move; *ended: the last byte of a member is out, and
 * the next one may begin. GS_ENOMEM; GS_EFORMAT, and *what is wrong; neither sets gs_last_error(). */
gs_status gs_part__gunzip_step(gs_gunzip *g, const unsigned char **in, const unsigned char *in_end,
                               unsigned char **out, const unsigned char *out_end, bool *ended, const char **what);

#endif /* GS_PARTITION_STREAM_H */
