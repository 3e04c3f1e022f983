/* gunzip_zlib.c - by zlib, where ISA-L is not there. */
#include "partition/text_lines.h"

#include <zlib.h>

#include "base/size.h"

#define MOST_BYTES (1 << 30) /* at once; counts have 32 bits */

struct gs_gunzip {
    z_stream z;
};

static void *take(void *context, unsigned count, unsigned size)
{
    (void)context;
    return gs_malloc_array(count, size);
}

static void give(void *context, void *p)
{
    (void)context;
    gs_free(p);
}

gs_gunzip *gs_part__gunzip_make(void)
{
    gs_gunzip *const g = gs_calloc(1, sizeof(*g));
    if (g == NULL)
        return NULL;
    g->z.zalloc = take;
    g->z.zfree = give;
    if (inflateInit2(&g->z, 15 + 16) == Z_OK) /* the largest window; a gzip header */
        return g;
    gs_free(g);
    return NULL;
}

void gs_part__gunzip_free(gs_gunzip *g)
{
    if (g != NULL)
        inflateEnd(&g->z);
    gs_free(g);
}

gs_status gs_part__gunzip_step(gs_gunzip *g, const unsigned char **in, const unsigned char *in_end,
                               unsigned char **out, const unsigned char *out_end, bool *ended, const char **what)
{
    g->z.next_in = (unsigned char *)(uintptr_t)*in;
    g->z.avail_in = (unsigned)GS_MIN(in_end - *in, MOST_BYTES);
    g->z.next_out = *out;
    g->z.avail_out = (unsigned)GS_MIN(out_end - *out, MOST_BYTES);
    const int rc = inflate(&g->z, Z_NO_FLUSH);
    *in = g->z.next_in;
    *out = g->z.next_out;
    if (rc == Z_MEM_ERROR)
        return GS_ENOMEM;
    if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
        *what = g->z.msg != NULL ? g->z.msg : "they cannot be unpacked";
        return GS_EFORMAT;
    }
    if ((*ended = rc == Z_STREAM_END))
        inflateReset(&g->z);
    return GS_OK;
}
