/* safetensors.h - the model's weights as a .safetensors file, and back.
 *
 * Format: u64 little-endian length of a JSON header; the header, {"name":
 * {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, ..}; the data.
 * The writer gives F32 in the program's order, behind counters as I64, and pads the header with spaces so that data
 * starts at a multiple of 8. The reader takes F32, F16, BF16 and F64, trusts no
 * length, and is strict: the file's tensors and the program's are the same
 * names with the same shapes; one whose `value` is NULL is not in the file. All functions block.
 */
#ifndef GS_TRAIN_SAFETENSORS_H
#define GS_TRAIN_SAFETENSORS_H

#include "base/outfile.h"
#include "program/program.h"
#include "session/tables.h" /* gs_declared_table */

/* Longest header that is read: some thousands of tensors, and a model's text. Bounds what a
 * hostile file can make the JSON parser allocate. */
#define GS_SAFETENSORS_HEADER_LIMIT (4u << 20)

/* A note of the header's "__metadata__", texts by name. "format": "pt", which Python's loaders look for, is
 * always there and none of these. */
typedef struct gs_safetensors_note {
    const char *key, *value;
} gs_safetensors_note;
#define GS_SAFETENSORS_NOTES 64u /* most that are read */

/* The parameter that is the k-th tensor of a file, or GS_NONE behind the last. */
uint32_t gs_safetensors_param(const gs_program *p, uint32_t k);
/* A parameter's shape in the file, of as many dimensions as it returns. */
uint32_t gs_safetensors_shape(uint64_t shape[3], const gs_param *q);

/* The tables of `p`, as tensors [vertices, width] behind its parameters, F32 when read; NULL: without. `write` puts the
 * rows of one into the file from byte `at` on, in input order; `read` takes them from there; `run`: of which of the
 * arrays that a table has. */
typedef struct gs_safetensors_tables {
    uint64_t vertices;
    uint32_t run;
    gs_status (*write)(void *context, uint32_t run, uint32_t table, gs_outfile *o, uint64_t at);
    gs_status (*read)(void *context, uint32_t run, uint32_t table, int fd, uint64_t at, const char *path);
    void *context;
    const gs_declared_table *declared; /* [declareds]: a file may have these, too, which nobody reads */
    uint32_t declareds;
} gs_safetensors_tables;

/* Takes the room of the tensors of `p` on the disk: until they are written, no reader takes the file for a model. */
gs_status gs_safetensors_reserve(gs_outfile *o, const gs_program *p, float *const *value,
                                 const gs_safetensors_tables *tables);
/* Writes them, in order from the first byte, behind `notes` notes. GS_EINVAL: more than GS_SAFETENSORS_HEADER_LIMIT. */
gs_status gs_safetensors_write(gs_outfile *o, const gs_program *p, float *const *value,
                               const gs_safetensors_tables *tables, const gs_safetensors_note *note, uint32_t notes);

/* Fills `value` ([params], each of gs_param_elements()), and the tables.
 *   GS_ENOTFOUND, GS_EIO
 *   GS_EFORMAT  not such a file, damaged, or other tensors than `p` has: the
 *               text names the tensor and both shapes. `value` is untouched. */
gs_status gs_safetensors_load(float *const *value, const gs_program *p, const gs_safetensors_tables *tables,
                              const char *path);
/* The same of a run's state, whose numbers need not be finite (a moment may be infinite where a weight is not); on
 * failure `value` may be filled in part. */
gs_status gs_safetensors_load_state(float *const *value, const gs_program *p, const gs_safetensors_tables *tables,
                                    const char *path);

/* The notes of a file: *notes of them in *note, one block of memory to be freed with gs_free(). Texts are the file's
 * and not to be trusted. GS_ENOTFOUND, GS_EIO, GS_ENOMEM; GS_EFORMAT: no such file, or one whose notes are no texts. */
gs_status gs_safetensors_read_notes(gs_safetensors_note **note, uint32_t *notes, const char *path);

/* Of a file's text what fits a line of a person's and `room` bytes, with its end; NULL: "". Returns `out`. */
const char *gs_safetensors_printable(char *out, size_t room, const char *text);

#endif /* GS_TRAIN_SAFETENSORS_H */
