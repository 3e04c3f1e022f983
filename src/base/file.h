/* file.h - whole-file habits: read it all, say which file. Writing whole files is outfile.h's.
 * All functions block; paths are UTF-8 bytes; errors name the path. */
#ifndef GS_BASE_FILE_H
#define GS_BASE_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/status.h"

/* For GS_ENDS() (alloc.h); GS_CLOSED is a file's number, below 0 where there is none. */
#define GS_CLOSED GS_ENDS(gs_close_at)
static inline void gs_close_at(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
static inline void gs_closedir_at(DIR *const *dir)
{
    if (*dir != NULL)
        closedir(*dir);
}

/* Retries EINTR and short transfers. A file that ends early is GS_EFORMAT
 * ("file ends at byte ..."). `path` is for messages only. */
gs_status gs_pread_exact(int fd, void *dst, uint64_t bytes, uint64_t offset, const char *path);
gs_status gs_pwrite_exact(int fd, const void *src, uint64_t bytes, uint64_t offset, const char *path);

/* Opens for reading and gives its size. A folder or a pipe is GS_ENOTFOUND. */
gs_status gs_file_open_read(int *fd, uint64_t *bytes, const char *path);
/* The same, but the file itself: where the name is a link, it is GS_EFORMAT. */
gs_status gs_file_open_own(int *fd, uint64_t *bytes, const char *path);

/* Whole file into a new buffer with a 0 byte after it; free with gs_free().
 * Files above `limit` bytes are GS_EFORMAT. */
gs_status gs_file_read_all(char **out, uint64_t *bytes, const char *path, uint64_t limit);
/* The same of what gs_file_open_own() opens. */
gs_status gs_file_read_own(char **out, uint64_t *bytes, const char *path, uint64_t limit);

/* "dir/name" into a new string; free with gs_free(). NULL when memory is short. */
char *gs_path_join(const char *dir, const char *name);
/* The path without the slashes at its end, so that it has a name; a new string as above. */
char *gs_path_without_slashes(const char *path);
bool gs_path_exists(const char *path);
/* Is there something of this name in the folder? */
bool gs_path_has(const char *dir, const char *name);
/* Nothing has this name. False where a thing is there that cannot be reached: a link to nothing, a forbidden folder. */
bool gs_path_is_absent(const char *path);
bool gs_path_is_dir(const char *path);
/* Are they of one file? */
bool gs_stat_is_same(const struct stat *a, const struct stat *b);
bool gs_path_is_same(const char *a, const char *b); /* which both are there */
bool gs_path_shares_disk(const char *a, const char *b);
/* Does the name still lead to what is open at `fd`? */
bool gs_path_is_open_at(const char *path, int fd);
/* Bytes that may still be written to the disk that a folder, or an open file, is on; UINT64_MAX where that cannot be
 * told. */
uint64_t gs_disk_free(const char *dir);
uint64_t gs_disk_free_of(int fd);
/* What was made or renamed in the folder that is open lasts then. `path` is for the message. */
gs_status gs_folder_sync(int fd, const char *path);
/* mkdir; an existing folder is fine. */
gs_status gs_mkdir(const char *path);
/* Removes a folder and everything in it; a missing one is fine. Does not
 * follow links. */
gs_status gs_remove_tree(const char *path);

/* ---- which file a path means ------------------------------------------- */

/* Do two paths mean one file, also where it is still to be made?
 *
 * By what the system says of them (device, inode), not by how they are written: links, "..", and other names of one
 * file are seen through. What others change meanwhile is not. All functions block.
 */

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

#endif /* GS_BASE_FILE_H */
