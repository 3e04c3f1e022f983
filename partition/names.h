/* names.h - ids of any kind, as bytes, to vertices 0, 1, 2, ..., within memory.
 *
 *   make --add, add, ...--> names and their keys --number--> names.bin of the store, and key -> vertex
 *
 * A key is a hash of 64 bits: edges lie on disk as keys until all names are known. Names are numbered shortest first,
 * those of one length by their bytes, so whole numbers stand in their own order. One thread. */
#ifndef GS_PARTITION_NAMES_H
#define GS_PARTITION_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "partition/job.h"
#include "store/store.h" /* gs_array_info, GS_MOST_NAME */

typedef struct gs_names gs_names;

/* *path, the input's, is for messages and must live as long. Another `seed` gives other keys. */
gs_status gs_part__names_make(gs_names **out, const gs_part_job *job, const char *path, uint64_t seed);
void gs_part__names_free(gs_names *n); /* NULL is allowed */
/* 1 to GS_MOST_NAME bytes without a line feed. */
gs_status gs_part__names_add(gs_names *n, const char *name, size_t length, uint64_t *key);
/* Writes names.bin. *same: two names have one key; begin again with another seed. */
gs_status gs_part__names_number(gs_names *n, gs_part_job *job, uint64_t *count, bool *same);
/* Vertex of a key that was given. */
uint32_t gs_part__names_vertex(const gs_names *n, uint64_t key);
/* Frees all but what the next one gives. */
void gs_part__names_forget(gs_names *n);
/* For the store's manifest; the sums stay the names'. */
gs_array_info gs_part__names_info(const gs_names *n);

#endif /* GS_PARTITION_NAMES_H */
