/* gpu_speed.h - what is known of a GPU before anything was measured: its attributes, as rates.
 *
 * A device answers it, and the cost model begins with it. Units: a second. 0: not known.
 */
#ifndef GS_BASE_GPU_SPEED_H
#define GS_BASE_GPU_SPEED_H

typedef struct gs_gpu_speed {
    double memory_bps;   /* bytes that its memory moves */
    double lane_ops;     /* float32 operations of all lanes, a fused multiply-add being one */
    double product_flops; /* of large products, rounded as they may be; a multiply-add being two */
    double host_bps;     /* bytes over its link to the host, each way */
    double linked_bps;   /* bytes over its links to other GPUs of its kind, each way, where it has them */
    unsigned rounding;   /* of products: 0 none, 1 to tf32, 2 to bf16 */
} gs_gpu_speed;

#endif /* GS_BASE_GPU_SPEED_H */
