/* library.h - which of the CUDA libraries that are installed here fits the driver?
 *
 * A machine may have several releases of a library: a toolkit's, and those that Python packages brought. What a
 * compiler of CUDA 13 makes does not load on a driver of CUDA 12, and a cuBLAS of 13 does not start there; the other
 * way round all is well, and within a release too (CUDA's "minor version compatibility", which holds for images, and
 * images are what is made).
 */
#ifndef GS_CUDA_LIBRARY_H
#define GS_CUDA_LIBRARY_H

#include <stdbool.h>

#include "base/status.h"

#define GS_CUDA_OLDEST 11 /* release, of libraries and of the driver */
#define GS_CUDA_NEWEST 13 /* that is looked for by its own name, and whatever the driver's is */

/* Asks an open library for its version; false: it does not say. */
typedef bool gs_cuda_library_version(void *library, int *major, int *minor);

/* Opens the newest STEM.so whose release the driver takes (`driver` as cuDriverGetVersion() has it, 1000 * major + 10 *
 * minor; 0: not known, any will do). *out is dlopen()'s. GS_EUNSUPPORTED: there is none, or only newer ones; the line
 * names one, and what to do. */
gs_status gs_cuda_library_open(void **out, const char *stem, gs_cuda_library_version *version, int driver);

/* Opens what a library will ask the loader for by name, from the library's own folder, where the loader may not look:
 * files of this pattern beside the file that has the library's `symbol`. They stay open; where there are none, the
 * library says so itself. */
void gs_cuda_library_open_beside(void *library, const char *symbol, const char *pattern);

#endif /* GS_CUDA_LIBRARY_H */
