/* provenance.h - how did the weights of a .safetensors file come about?
 *
 * Files that gnnstream writes say so in their notes ("__metadata__", docs/format.md): the model's name and text, the
 * options that change numbers, the store, the program's version. A prediction takes what shapes the model from there.
 * Whatever stands in a file is somebody's text: no length of it is trusted.
 */
#ifndef GS_TRAIN_PROVENANCE_H
#define GS_TRAIN_PROVENANCE_H

#include "base/status.h"
#include "gnnstream.h"
#include "store/store.h"
#include "train/safetensors.h"

/* Where the notes that are written come from. Texts are the caller's. */
typedef struct gs_provenance_source {
    const gs_train_options *options;
    const char *model, *text; /* name and text */
    const gs_store *store;
    uint32_t classes, epochs;
    bool no_move, no_fuse; /* of the program that trained them */
} gs_provenance_source;

/* Fills *note with *notes notes, one block of memory to be freed with gs_free(). GS_ENOMEM. */
gs_status gs_provenance_notes(gs_safetensors_note **note, uint32_t *notes, const gs_provenance_source *from);

/* The notes that were read. Release with gs_provenance_free(). */
typedef struct gs_provenance {
    gs_weights_summary summary;
    char *text; /* the model's; NULL: the file does not say */
    bool ignores_edge_weights; /* as .ignore_edge_weights */
    char task[16], decoder[16]; /* of weights that score pairs of vertices, or say their labels; else "" */
    bool no_move, no_fuse;     /* the program that trained them did without these optimisations */
} gs_provenance;

/* Reads what the file says of its weights; all is 0 where another program wrote it. GS_ENOTFOUND, GS_EFORMAT, GS_EIO,
 * GS_ENOMEM. */
gs_status gs_provenance_read(gs_provenance *out, const char *path);
void gs_provenance_free(gs_provenance *p);

/* The options of a prediction with the weights `path`: fields that are 0 or NULL get what the file says, or their
 * defaults where it says nothing. Strings are then `p`'s. GS_EINVAL names a field that contradicts the file. */
gs_status gs_provenance_complete(gs_train_options *o, const gs_provenance *p, const char *path);

#endif /* GS_TRAIN_PROVENANCE_H */
