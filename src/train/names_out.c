/* names_out.c - the ids that vertices had in the input, as a text. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/outfile.h"
#include "base/size.h"
#include "base/status.h"
#include "gnnstream.h"
#include "store/store.h"
#include "train/outputs.h"

#define PIECE GS_SUM_BYTES

/* names.bin without its padding, each piece checked. */
static gs_status copy_names(const gs_store *s, gs_outfile *o, char *piece)
{
    const gs_array_info *const a = gs_store_array(s, GS_ARRAY_NAMES);
    int fd = -1;
    gs_status st = gs_store_open_array(&fd, s, GS_ARRAY_NAMES);

    for (uint64_t at = 0; at < a->bytes && st == GS_OK; at += PIECE) {
        const uint64_t bytes = GS_MIN(PIECE, a->bytes - at);
        if ((st = gs_pread_exact(fd, piece, bytes, at, "names.bin")) != GS_OK)
            break;
        if (gs_hash64(piece, bytes) != a->sums[at / GS_SUM_BYTES])
            st = gs_fail(GS_EFORMAT, "%s/names.bin: checksum mismatch; the store is damaged: make it again",
                         gs_store_dir(s));
        else
            st = gs_outfile_write(o, piece, bytes, at);
    }
    if (fd >= 0)
        close(fd);
    return st;
}

/* Without names, ids are numbers from 0. */
static gs_status write_numbers(const gs_store *s, gs_outfile *o, char *piece)
{
    const uint64_t n = gs_store_get_info(s)->vertices;
    uint64_t fill = 0, offset = 0;
    gs_status st = GS_OK;

    for (uint64_t v = 0; v < n && st == GS_OK; v++) {
        fill += (uint64_t)snprintf(piece + fill, PIECE - fill, "%" PRIu64 "\n", v);
        if (fill + 32 < PIECE && v + 1 < n)
            continue;
        st = gs_outfile_write(o, piece, fill, offset);
        offset += fill;
        fill = 0;
    }
    return st;
}

gs_status gs_write_ids(const char *store, const char *path)
{
    gs_outfile o = GS_OUTFILE_NONE;
    gs_store *s = NULL;
    char *const piece = gs_malloc(PIECE);
    gs_status st;

    if ((st = gs_check_argument(store, "store")) != GS_OK || (st = gs_check_argument(path, "path")) != GS_OK ||
        (st = gs_store_open(&s, store)) != GS_OK)
        goto done;
    if (piece == NULL) {
        st = gs_fail(GS_ENOMEM, "%s: no memory to write ids", store);
        goto done;
    }
    if ((st = gs_output_check_kind("", path, GS_FILE_KIND_TEXT)) != GS_OK || (st = gs_outfile_begin(&o, path)) != GS_OK)
        goto done;
    st = gs_store_array(s, GS_ARRAY_NAMES)->present ? copy_names(s, &o, piece) : write_numbers(s, &o, piece);
    if (st == GS_OK)
        st = gs_outfile_finish(&o);
    gs_outfile_abandon(&o);
done:
    gs_store_close(s);
    gs_free(piece);
    return st;
}
