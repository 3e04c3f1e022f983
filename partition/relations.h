/* relations.h - edge types that are words: which number has which.
 *
 * While lines are read, a word's number is that of its first reader; then words are ordered, shortest first and those
 * of one length by their bytes, as names of vertices are (names.h): so a graph's types have the same numbers in
 * whatever order its lines come. */
#ifndef GS_PARTITION_RELATIONS_H
#define GS_PARTITION_RELATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "partition/job.h"
#include "store/store.h" /* GS_MOST_NAME */

typedef struct gs_relations gs_relations;

/* GS_ENOMEM. *path, the input's, is for messages and must live as long. */
gs_status gs_part__relations_make(gs_relations **out, const char *path);
void gs_part__relations_free(gs_relations *r); /* NULL is allowed */
/* Any thread: the number of a word of 1 to GS_MOST_NAME bytes, until they are ordered. GS_EUNSUPPORTED:
 * more than 65,536 words, or 1 MiB of them. */
gs_status gs_part__relations_number(gs_relations *r, uint32_t *out, const char *word, size_t length);
/* After the last word; says by the job's `warn` which type each is. GS_ENOMEM. */
gs_status gs_part__relations_order(gs_relations *r, const gs_part_job *job);
/* [words] Type of each number. */
const uint32_t *gs_part__relations_type(const gs_relations *r);

#endif /* GS_PARTITION_RELATIONS_H */
