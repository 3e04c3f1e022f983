/* limits_data.h - what this server can do at best, as numbers.
 *
 * train/limits.h measures them, cost_file.h keeps them from run to run, cost.h starts its
 * coefficients from them. Units: bytes and floating-point operations per second; 0: not measured.
 */
#ifndef GS_COST_LIMITS_DATA_H
#define GS_COST_LIMITS_DATA_H

#include <stdbool.h>
#include <stdint.h>

#define GS_LIMITS_RUNS 5    /* row runs of 4K, 16K, 64K, 256K, 1M */
#define GS_LIMITS_DEPTHS 3  /* of the queue */
#define GS_LIMITS_GEMMS 5
#define GS_LIMITS_GATHERS 3
#define GS_LIMITS_EDGES 9   /* three degrees by three widths */
#define GS_LIMITS_COPIES 5  /* of 4K, 64K, 1M, 16M, 64M */
#define GS_LIMITS_ROUNDED 2 /* products of factors rounded to tf32, to bf16 */

/* What goes over a link that ends in a device's memory. */
typedef enum gs_link_way {
    GS_LINK_TO_DEVICE,   /* from the host */
    GS_LINK_FROM_DEVICE, /* to the host */
    GS_LINK_BETWEEN,     /* from the device before in a chain */
    GS_LINK_FROM_DISK,   /* past the host */
    GS_LINK_WAYS
} gs_link_way;

/* A copy takes request_seconds beside its bytes. */
typedef struct gs_link {
    double bps, request_seconds; /* bps 0: not measured */
} gs_link;

typedef struct gs_limits {
    double disk_read_bps;  /* sequential */
    double disk_write_bps; /* sequential, fsync included */
    struct {
        uint64_t bytes;    /* of a request at a random place */
        double bps;        /* at the engine's depth */
    } random_read[GS_LIMITS_RUNS];
    uint32_t depth[GS_LIMITS_DEPTHS];
    double at_depth[GS_LIMITS_RUNS][GS_LIMITS_DEPTHS]; /* the same at other depths, bytes a second */
    bool disk_direct;      /* false: no O_DIRECT there, so memory may have served the reads */
    char io_name[48];      /* "io_uring", "threads" */
    char device_name[192];
    double copy_bps;
    gs_link link[GS_LINK_WAYS];
    struct {
        uint32_t rows, in, out;
        double flops;
    } gemm[GS_LIMITS_GEMMS];
    struct {
        uint32_t width;    /* floats a row */
        double bps;
    } gather[GS_LIMITS_GATHERS];
    struct {
        uint32_t degree, width; /* edges a target, floats a row */
        double edges_per_second;
    } edges[GS_LIMITS_EDGES];
    uint32_t edge_count;   /* in each of them; 0: a million */
    /* of a device with memory of its own; else 0 */
    double launch_seconds; /* of a kernel with next to nothing to do, one behind the other */
    double rounded[GS_LIMITS_ROUNDED]; /* operations a second of the fastest product */
    struct {
        uint64_t bytes;    /* of a copy, from and to pinned memory of the host; FROM_DISK: 0 */
        double bps[GS_LINK_WAYS];
    } copies[GS_LIMITS_COPIES];
} gs_limits;

#endif /* GS_COST_LIMITS_DATA_H */
