/* edge_block.c - memory for a piece of the edge list. */
#include "partition/edge_block.h"

#include <string.h>

#include "base/alloc.h"
#include "base/external_sort.h"
#include "base/size.h"
#include "partition/input_files.h"

gs_status gs_part__edge_block_make(gs_part_edge_block *b, const gs_part_input *in, uint64_t edges)
{
    memset(b, 0, sizeof(*b));
    b->cap = GS_MAX(edges, 1);
    b->src = gs_malloc_array(b->cap, sizeof(*b->src));
    b->dst = gs_malloc_array(b->cap, sizeof(*b->dst));
    b->raw = gs_malloc_array(b->cap, 16); /* two 64-bit ids, or one record of text input */
    bool ok = b->src != NULL && b->dst != NULL && b->raw != NULL;
    if (in->typed)
        ok = (b->type = gs_malloc_array(b->cap, sizeof(*b->type))) != NULL && ok;
    if (in->weighted)
        ok = (b->weight = gs_malloc_array(b->cap, sizeof(*b->weight))) != NULL && ok;
    if (in->text != NULL)
        b->at = gs_sort_first(in->text, 0);
    return ok ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory to read edges", in->path);
}

void gs_part__edge_block_free(gs_part_edge_block *b)
{
    gs_free(b->src);
    gs_free(b->dst);
    gs_free(b->type);
    gs_free(b->weight);
    gs_free(b->raw);
    memset(b, 0, sizeof(*b));
}
