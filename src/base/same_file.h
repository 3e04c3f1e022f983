/* same_file.h - do two paths mean one file, also where it is still to be made?
 *
 * By what the system says of them (device, inode), not by how they are written: links, "..", and other names of one
 * file are seen through. What others change meanwhile is not. All functions block.
 */
#ifndef GS_BASE_SAME_FILE_H
#define GS_BASE_SAME_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct gs_file_identity {
    bool there, folder_there;
    bool sink;       /* /dev/null and its like, which any number may write to */
    uint64_t device, inode;
    uint64_t folder_device, folder_inode; /* that it is in, or would be */
    const char *name;                     /* in the folder; within the path */
} gs_file_identity;

gs_file_identity gs_file_identity_of(const char *path);
bool gs_file_identity_is_same(const gs_file_identity *a, const gs_file_identity *b);

/* "." for a path without a folder; free with gs_free(). NULL: no memory. */
char *gs_path_folder(const char *path);
/* The part behind the last slash. */
const char *gs_path_name(const char *path);

/* Calls `visit` with the folder that `path` is in, the one that this is in, and so on up to the root or until it gives
 * true, which is then given. GS_ENOMEM. */
gs_status gs_path_climb(bool *found, const char *path, bool (*visit)(void *context, const char *dir), void *context);

#endif /* GS_BASE_SAME_FILE_H */
