/* gunzip.h - members of gzip data, unpacked piece by piece.
 *
 * By ISA-L, or by zlib where it was built without; one of the two files is compiled. One thread each. */
#ifndef GS_PARTITION_GUNZIP_H
#define GS_PARTITION_GUNZIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct gs_gunzip gs_gunzip;

/* NULL: no memory. */
gs_gunzip *gs_part__gunzip_make(void);
void gs_part__gunzip_free(gs_gunzip *g); /* NULL is allowed */
/* Unpacks some of [*in, in_end) into [*out, out_end), both of which move; *ended: the last byte of a member is out, and
 * the next one may begin. GS_ENOMEM; GS_EFORMAT, and *what is wrong; neither sets gs_last_error(). */
gs_status gs_part__gunzip_step(gs_gunzip *g, const unsigned char **in, const unsigned char *in_end,
                               unsigned char **out, const unsigned char *out_end, bool *ended, const char **what);

#endif /* GS_PARTITION_GUNZIP_H */
