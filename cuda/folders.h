/* folders.h - where may CUDA's libraries be, where the loader does not look? */
#ifndef GS_CUDA_FOLDERS_H
#define GS_CUDA_FOLDERS_H

#include <glob.h>

/* Folders that are there, each with a slash at its end: toolkits', then those of Python's packages as pip installs them
 * (nvidia/cu13/lib, nvidia/cublas/lib): beside this program's own package, of the environments that are active, of the
 * python3 in $PATH, the user's and the system's. The caller gives them back with globfree(). */
void gs_cuda_folders(glob_t *out);
/* Files of this pattern beside the one that has `symbol`, which a library's function is. Likewise. */
void gs_cuda_beside(glob_t *out, const void *symbol, const char *pattern);

#endif /* GS_CUDA_FOLDERS_H */
