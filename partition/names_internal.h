/* names_internal.h - what the two halves of names share: runs of sorted names on disk. */
#ifndef GS_PARTITION_NAMES_INTERNAL_H
#define GS_PARTITION_NAMES_INTERNAL_H

#include "base/external_sort.h"
#include "partition/names.h"

typedef struct gs_names_run {
    uint64_t begin, end; /* bytes in the file of runs */
} gs_names_run;

/* A record in memory and in a run: its length in two bytes, then the name. */
struct gs_names {
    const char *path;
    const char *dir;
    uint64_t memory, seed;
    /* what is gathered; NULL later */
    char *bytes;         /* [room] records */
    uint64_t fill, room;
    uint32_t *slot;      /* [slots] 1 + where in `bytes`; 0: empty. A power of two */
    uint64_t slots, held;
    uint64_t *slot_key;  /* [slots] */
    int fd;              /* of the runs */
    char *runs_path;     /* for messages */
    uint64_t runs_end;
    gs_names_run *run;
    uint32_t runs, run_cap;
    /* the result */
    uint64_t count;
    uint64_t bytes_written, *sums;
    uint32_t sums_cap;
    uint64_t *key;       /* [cap] an open table */
    uint32_t *vertex;    /* [cap] UINT32_MAX: empty */
    uint64_t cap;
};

/* Shortest first, then by bytes. */
int gs_names__compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes);
/* names_gather.c: what is in memory becomes a run. */
gs_status gs_names__flush(gs_names *n);
uint64_t gs_names__hash(const gs_names *n, const char *name, size_t length);

#endif /* GS_PARTITION_NAMES_INTERNAL_H */
