/* gunzip_isal.c - by ISA-L, which takes a third of zlib's time. */
#include "partition/text_lines.h"

#include <isa-l/igzip_lib.h>

#include "base/size.h"

#define MOST_BYTES (1 << 30) /* at once; counts have 32 bits */

struct gs_gunzip {
    struct inflate_state state;
};

static void begin(gs_gunzip *g)
{
    isal_inflate_init(&g->state);
    g->state.crc_flag = ISAL_GZIP; /* the header is read, checksum and length are compared */
}

gs_gunzip *gs_part__gunzip_make(void)
{
    gs_gunzip *const g = gs_malloc(sizeof(*g));
    if (g != NULL)
        begin(g);
    return g;
}

void gs_part__gunzip_free(gs_gunzip *g) { gs_free(g); }

static const char *fault(int rc)
{
    switch (rc) {
    case ISAL_INVALID_WRAPPER: return "what should be a header of gzip is none";
    case ISAL_UNSUPPORTED_METHOD: return "they are packed in a way that gzip does not know";
    case ISAL_INCORRECT_CHECKSUM: return "the checksum or the length is another than that of what they unpack to";
    default: return "they cannot be unpacked";
    }
}

gs_status gs_part__gunzip_step(gs_gunzip *g, const unsigned char **in, const unsigned char *in_end,
                               unsigned char **out, const unsigned char *out_end, bool *ended, const char **what)
{
    struct inflate_state *const s = &g->state;

    s->next_in = (unsigned char *)(uintptr_t)*in;
    s->avail_in = (uint32_t)GS_MIN(in_end - *in, MOST_BYTES);
    s->next_out = *out;
    s->avail_out = (uint32_t)GS_MIN(out_end - *out, MOST_BYTES);
    const int rc = isal_inflate(s);
    *in = s->next_in;
    *out = s->next_out;
    if (rc < 0) {
        *what = fault(rc);
        return GS_EFORMAT;
    }
    if ((*ended = s->block_state == ISAL_BLOCK_FINISH))
        begin(g);
    return GS_OK;
}
