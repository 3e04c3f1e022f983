/* tiny_store.h - small stores made from a list of edges, for the tests of this room.
 *
 * The builder goes through the writer's interface as the partitioner does. What
 * it derives (degrees, loops, chunks) it derives by plain counting over the
 * edge list, apart from the code under test. All memory is libc's. */
#ifndef GS_TESTS_TINY_STORE_H
#define GS_TESTS_TINY_STORE_H

#include "support/support.h"

#include "store/store.h"
#include "store/store_write.h"

typedef struct tiny_edge {
    uint32_t source, dest; /* store order */
    uint32_t type;
    float weight;
} tiny_edge;

typedef struct tiny_graph {
    uint32_t vertices, parts, interval_rows;
    const tiny_edge *edge;
    uint32_t edges;
    bool symmetric, shared, weights;
    uint32_t edge_types;
    uint32_t features, classes; /* 0: none */
    gs_dtype feature_type;
    bool splits;
} tiny_graph;

/* Vertices 0..4 in two intervals of 3 and 2; a loop at 1, a double edge 3 -> 0, nothing in chunk (1, 1). */
extern const tiny_graph tiny_plain;
extern const tiny_graph tiny_symmetric; /* shared edge file */
extern const tiny_graph tiny_rich;      /* weights, types, bf16 features */

/* What vertex v has: closed forms, so that tests can ask for them again. */
float tiny_feature(uint32_t v, uint32_t column);
int32_t tiny_label(const tiny_graph *g, uint32_t v);
uint8_t tiny_split(uint32_t v);
uint32_t tiny_input_id(const tiny_graph *g, uint32_t v);

/* Writes a store through begin, files, finish; fails the test when that fails. */
void tiny_write(const char *dir, const tiny_graph *g);
/* As above, but stops before gs_store_finish(): the caller may change `contents`,
 * finish, and frees with tiny_contents_free(); it closes the staging. */
gs_staging *tiny_write_files(gs_store_contents *contents, const char *dir, const tiny_graph *g);
gs_staging *tiny_write_over(gs_store_contents *contents, const char *dir, const tiny_graph *g); /* by force */
void tiny_contents_free(gs_store_contents *contents);

/* Whole file; free() the result. A 0 byte follows. */
unsigned char *tiny_read(const char *dir, const char *name, size_t *bytes);
void tiny_replace(const char *dir, const char *name, const void *data, size_t bytes);

/* Replaces the first `from` in the manifest by `to` and makes its checksum right again: a forgery. */
void tiny_forge_manifest(const char *dir, const char *from, const char *to);
/* Puts `bytes` at `offset` of a file, and makes every checksum above it right again. */
void tiny_forge(const char *dir, const char *name, size_t offset, const void *data, size_t bytes);

/* gs_store_open() and, if that works, gs_store_verify(). */
gs_status tiny_open_and_verify(const char *dir);

#endif /* GS_TESTS_TINY_STORE_H */
