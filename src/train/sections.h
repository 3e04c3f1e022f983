/* sections.h - the sections of a checkpoint: files NAME.safetensors, each with its size and checksum.
 *
 *   model               what gs_run_save() writes: weights, running statistics, counters, and of what they are
 *   best                the same of the best epoch so far, where there is one and it is kept
 *   exp_avg, exp_avg_sq Adam's moments of what is learned, under the same names
 */
#ifndef GS_TRAIN_SECTIONS_H
#define GS_TRAIN_SECTIONS_H

#include "program/program.h"
#include "train/checkpoint_text.h"
#include "train/safetensors.h"

#define GS_SECTION_MODEL "model"
#define GS_SECTION_BEST "best"
/* Name of the section of run `run` of the optimiser's state. */
const char *gs_section_of_state(uint32_t run);
/* "DIR/NAME.safetensors"; free with gs_free(). NULL when memory is short. */
char *gs_section_path(const char *dir, const char *name);

/* Notes of a section, which say how it came about. */
typedef struct gs_section_notes {
    const gs_safetensors_note *note;
    uint32_t notes;
} gs_section_notes;

/* Writes one, whose tensors are those of `p` with a `value`, and its tables, syncs it, and adds it to `c`. `n` may be
 * NULL. */
gs_status gs_section_write(gs_checkpoint *c, const char *dir, const char *name, const gs_program *p,
                           float *const *value, const gs_safetensors_tables *tables, const gs_section_notes *n);
/* GS_EFORMAT: not as it was written. GS_ENOTFOUND, GS_EIO, GS_ENOMEM. */
gs_status gs_section_check(const gs_checkpoint_section *section, const char *dir);

#endif /* GS_TRAIN_SECTIONS_H */
