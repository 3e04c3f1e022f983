/* edge_text.c - edges out of a text, as records of a temporary file: two ids, a weight, a type. */
#include "partition/edge_text.h"

#include <string.h>

#include "base/size.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/spill.h"

gs_status gs_part__text_begin(gs_part_input *in, const gs_part_job *job)
{
    const uint32_t words = 2u + in->weighted + in->typed;
    return gs_part__spill_make(&in->text, job->dir, "tmp.edges", 1, 1, words, 256 * GS_KIB);
}

gs_status gs_part__text_put(gs_part_input *in, uint64_t u, uint64_t v, float weight, uint32_t type)
{
    uint32_t *const record = gs_part__spill_put(in->text, 0, 0);
    if (record == NULL)
        return gs_part__spill_failure(in->text);
    record[0] = (uint32_t)u;
    record[1] = (uint32_t)v;
    if (in->weighted)
        memcpy(&record[2], &weight, 4);
    if (in->typed)
        record[2 + in->weighted] = type;
    in->edges++;
    return GS_OK;
}

gs_status gs_part__text_end(gs_part_input *in)
{
    if (in->edges == 0 && in->vertices == 0)
        return gs_fail(GS_EFORMAT, "%s: holds no edge", in->path);
    return gs_part__spill_finish(in->text);
}
