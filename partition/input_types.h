/* input_types.h - a graph whose vertices and edges are of several types, put together as one input.
 *
 * A reader of a format opens the arrays of each type; joining them makes the arrays that an input of one type has, in
 * temporary files. Vertices are numbered type after type, as the table has them; a relation is a type of edges. */
#ifndef GS_PARTITION_INPUT_TYPES_H
#define GS_PARTITION_INPUT_TYPES_H

#include "partition/input_files.h"

typedef struct gs_part_types {
    gs_type_table *table; /* names, ends of relations, vertices where they are stated; becomes the input's */
    gs_part_input *part;  /* [GS_PART_MOST_TYPES] by gs_part__type_part() and gs_part__relation_part() */
} gs_part_types;

#define GS_PART_MOST_TYPES (GS_MOST_VERTEX_TYPES + GS_MOST_RELATIONS)

/* None yet. gs_part__types_free() frees it, also after GS_ENOMEM. */
gs_status gs_part__types_make(gs_part_types *t, const char *path);
void gs_part__types_free(gs_part_types *t);

/* The type of this name, by which *out is its number; a new one where there is none and `add`. `place`: what names it,
 * for messages. GS_EFORMAT: no such type, or no name that a type can have; GS_EUNSUPPORTED: too many. */
gs_status gs_part__type_find(uint32_t *out, gs_part_types *t, const char *name, bool add, const char *place);
/* A new relation of the last number. Errors likewise. */
gs_status gs_part__relation_add(gs_part_types *t, const char *name, uint32_t source, uint32_t destination,
                                const char *place);
/* Where the arrays are opened: of a type features, labels, splits; of a relation edges, weights, features. */
gs_part_input *gs_part__type_part(const gs_part_types *t, uint32_t type);
gs_part_input *gs_part__relation_part(const gs_part_types *t, uint32_t relation);

/* Checks that all fits together and makes *in of it, which takes the table. With .undirected each relation has a
 * reverse, rev_NAME. */
gs_status gs_part__types_join(gs_part_input *in, gs_part_job *job, gs_part_types *t);

#endif /* GS_PARTITION_INPUT_TYPES_H */
