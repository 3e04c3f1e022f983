/* check.c - compares what arrived with the checksums of the store. */
#include "base/hash.h"
#include "base/size.h"
#include "exec/exec_run.h"

gs_status gs_exec__check_blocks(const gs_exec *e, uint32_t file, uint64_t offset, const uint8_t *data,
                                uint64_t bytes)
{
    const gs_exec_file *f = &e->files.file[file];
    if (!e->files.verify || f->sums == NULL)
        return GS_OK;
    /* `offset` is a multiple of sum_bytes; the file's padding is under no sum. */
    const uint64_t end = GS_MIN(offset + bytes, f->bytes);
    for (uint64_t at = offset; at < end; at += f->sum_bytes) {
        const uint64_t n = GS_MIN(f->sum_bytes, f->bytes - at);
        if (at + n > offset + bytes)
            break;
        if (gs_hash64(data + (at - offset), n) != f->sums[at / f->sum_bytes])
            return gs_fail(GS_EFORMAT,
                           "%s: bytes %llu to %llu do not match their checksum: the store is damaged; run"
                           " `gnnstream verify` and partition again",
                           f->path, (unsigned long long)at, (unsigned long long)(at + n));
    }
    return GS_OK;
}

static gs_status check_chunk(const gs_exec *e, uint32_t set, uint32_t target, uint32_t operand, const uint8_t *data)
{
    const gs_exec_chunk *c = &e->chunks.chunk[set][(uint64_t)target * e->chunks.parts + operand];
    if (gs_hash64(data, c->length) == c->checksum)
        return GS_OK;
    return gs_fail(GS_EFORMAT,
                   "%s: chunk (%u, %u) does not match its checksum: the store is damaged; run"
                   " `gnnstream verify` and partition again",
                   e->files.file[GS_FILE_EDGES(e->program, set)].path, target, operand);
}

gs_status gs_exec__check_chunks(const gs_exec *e, uint32_t set, uint32_t target, uint32_t operand,
                                const uint8_t *data, uint64_t bytes)
{
    for (uint64_t at = 0; e->files.verify && at < bytes; operand++) {
        const uint64_t length = e->chunks.chunk[set][(uint64_t)target * e->chunks.parts + operand].length;
        if (length > 0)
            GS_TRY(check_chunk(e, set, target, operand, data + at));
        at += length;
    }
    return GS_OK;
}
