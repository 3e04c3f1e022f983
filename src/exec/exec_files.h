/* exec_files.h - the files of a run, and whether what arrived from them is what was written (check.c). */
#ifndef GS_EXEC_EXEC_FILES_H
#define GS_EXEC_EXEC_FILES_H

#include "exec/exec.h"

typedef struct gs_exec_files {
    gs_io *io;
    gs_exec_file *file;       /* [count] arrays, then edge sets; copied */
    uint32_t *io_file;        /* [count] GS_NONE where not open */
    uint32_t count;
    bool verify;
} gs_exec_files;

/* Text of failures names file and chunk or bytes. */
gs_status gs_exec__check_blocks(const gs_exec *e, uint32_t file, uint64_t offset, const uint8_t *data, uint64_t bytes);
/* `bytes` of a target's chunks, side by side from this operand interval on. */
gs_status gs_exec__check_chunks(const gs_exec *e, uint32_t set, uint32_t target, uint32_t operand,
                                const uint8_t *data, uint64_t bytes);

#endif /* GS_EXEC_EXEC_FILES_H */
