/* scans.h - what scans of the edge files said, while programs for one run are compared.
 *
 * Each program that is compared has a session of its own and asks for the same: which rows others name, how many edges
 * there are between two sets of rows, which rows chunks need. A scan goes over a whole edge file; its answer is a
 * table, most of whose bytes are 0, and which is kept without these. A cache: what it has no room for is scanned for
 * again. One thread.
 */
#ifndef GS_SESSION_SCANS_H
#define GS_SESSION_SCANS_H

#include <stdbool.h>
#include <stdint.h>

#define GS_SCANS 32u

typedef enum gs_scan_kind {
    GS_SCAN_REACH, /* rows that edges into `targets` name: bits */
    GS_SCAN_COUNT, /* edges from `operands` into `targets`: a chunk table, and what chunks need of rows */
    GS_SCAN_NEED,  /* rows that the store's chunks need: bits */
} gs_scan_kind;

/* A question. Sets of rows are bits, [words]; NULL: all rows. */
typedef struct gs_scan_key {
    gs_scan_kind kind;
    uint32_t direction;
    uint32_t rows, coarse_rows; /* of a granule of the sets, and of what chunks need */
    const uint64_t *targets, *operands;
    uint64_t words;
} gs_scan_key;

/* Memory of the asker; the second may be NULL with no bytes. */
typedef struct gs_scan_answer {
    void *part[2];
    uint64_t bytes[2];
} gs_scan_answer;

typedef struct gs_scans {
    uint64_t most, bytes; /* that it may hold, that it holds */
    uint32_t count;
    struct {
        gs_scan_key key;
        uint64_t bytes[2]; /* of the answer's parts, */
        uint8_t *packed[2]; /* and they without runs of 0 */
    } scan[GS_SCANS]; /* with copies of its own */
} gs_scans;

/* True where the question was answered before: the answer is copied into a's parts. `s` may be NULL. */
bool gs_scans_find(const gs_scans *s, const gs_scan_key *k, const gs_scan_answer *a);
void gs_scans_keep(gs_scans *s, const gs_scan_key *k, const gs_scan_answer *a);
void gs_scans_drop(gs_scans *s);

#endif /* GS_SESSION_SCANS_H */
