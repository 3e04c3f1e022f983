/* gpu.h - what may a kernel use of the machine that runs it?
 *
 * Kernels are C that is C++ too, and name the machine through this header alone. CUDA compiles them for a
 * GPU; tests compile the same text for the host, where the lanes of a block are fibres
 * (tests/cuda/host_gpu.h), barriers switch between them, and sanitizers watch every access.
 *
 * Lanes work in groups of a power of two of at most 32; a group never spans two warps. All
 * lanes of a group must reach its barriers and shuffles, other groups need not.
 */
#ifndef GS_CUDA_KERNELS_GPU_H
#define GS_CUDA_KERNELS_GPU_H

#ifdef __CUDACC__

/* A kernel called NAME, whose arguments are a struct of this type called `a`. */
#define GS_KERNEL(name, type) extern "C" __global__ void __launch_bounds__(GS_BLOCK_LANES) name(const type a)
/* The same, so many blocks of which a processor must hold. */
#define GS_KERNEL_DENSE(name, type, blocks) \
    extern "C" __global__ void __launch_bounds__(GS_BLOCK_LANES, blocks) name(const type a)
#define GS_DEVICE static __device__ __forceinline__
#define GS_UNROLL _Pragma("unroll")
#define GS_UNROLL_8 _Pragma("unroll 8")
#define GS_ONCE _Pragma("unroll 1")
/* Memory of the block; its size is the launch's. */
#define GS_SHARED(name) extern __shared__ __align__(16) float name[]

typedef float4 gs_float4;
typedef float2 gs_float2;
typedef gs_u32 gs_halves2; /* two numbers of two bytes each */

GS_DEVICE unsigned gs_lane(void) { return threadIdx.x; }
GS_DEVICE unsigned gs_block_x(void) { return blockIdx.x; }
GS_DEVICE unsigned gs_block_y(void) { return blockIdx.y; }
GS_DEVICE unsigned gs_blocks_x(void) { return gridDim.x; }
GS_DEVICE void gs_block_sync(void) { __syncthreads(); }

GS_DEVICE unsigned gs_group_mask(unsigned lanes)
{
    return lanes == 32 ? 0xffffffffu : ((1u << lanes) - 1) << (threadIdx.x % 32 / lanes * lanes);
}
GS_DEVICE void gs_group_sync(unsigned lanes) { __syncwarp(gs_group_mask(lanes)); }
/* The value of the lane whose number differs in the bits `by`. */
GS_DEVICE float gs_group_exchange(float value, unsigned by, unsigned lanes)
{
    return __shfl_xor_sync(gs_group_mask(lanes), value, (int)by);
}
/* The same address, of whose making the compiler knows nothing: so it adds to it, in one instruction, and does not make
 * it anew. */
GS_DEVICE const char *gs_made_address(const char *p)
{
    asm("" : "+l"(p));
    __builtin_assume(__isGlobal(p));
    return p;
}
GS_DEVICE float *gs_made_rows(float *p)
{
    asm("" : "+l"(p));
    __builtin_assume(__isGlobal(p));
    return p;
}
/* The same number, of which the compiler knows nothing: what it leads to is loaded again, and not kept in registers
 * since it was used last. */
GS_DEVICE unsigned gs_made_number(unsigned n)
{
    asm volatile("" : "+r"(n));
    return n;
}
/* to[b] = own[b / lanes] of the group's lane b % lanes. */
GS_DEVICE void gs_group_share(gs_u32 *to, const gs_u32 *own, unsigned count, unsigned lanes)
{
    GS_UNROLL for (unsigned b = 0; b < count; b++)
        to[b] = lanes == 1 ? own[b]
                           : __shfl_sync(gs_group_mask(lanes), own[b / lanes], (int)(b % lanes), (int)lanes);
}
/* What the group's lane `lane` has; each may ask for another. */
GS_DEVICE unsigned gs_group_read(unsigned value, unsigned lane, unsigned lanes)
{
    return lanes == 1 ? value : __shfl_sync(gs_group_mask(lanes), value, (int)lane, (int)lanes);
}
/* Bit i: what lane i of the group says. */
GS_DEVICE unsigned gs_group_votes(int yes, unsigned lanes)
{
    return lanes == 1 ? yes != 0 : __ballot_sync(gs_group_mask(lanes), yes) >> (threadIdx.x % 32 / lanes * lanes);
}
/* Bit i: what lane i of the warp says. All 32 lanes must ask. */
GS_DEVICE unsigned gs_warp_votes(int yes) { return __ballot_sync(0xffffffffu, yes); }
/* Number of the highest bit, of a number that is not 0. */
GS_DEVICE unsigned gs_highest(unsigned bits) { return 31 - (unsigned)__clz((int)bits); }
GS_DEVICE unsigned gs_ones(unsigned bits) { return (unsigned)__popc(bits); }
/* Tensor cores: c[16, 8] += a[16, 8] b[8, 8] by all lanes of a warp, numbers of a and b rounded to tf32. Lane 4 g + t
 * has a[g][t], a[g + 8][t], a[g][t + 4], a[g + 8][t + 4]; b[t][g], b[t + 4][g]; c[g][2 t], c[g][2 t + 1],
 * c[g + 8][2 t], c[g + 8][2 t + 1]. */
GS_DEVICE unsigned gs_tf32(float x)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}
GS_DEVICE void gs_warp_multiply(float c[4], const float a[4], const float b[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(gs_tf32(a[0])), "r"(gs_tf32(a[1])), "r"(gs_tf32(a[2])), "r"(gs_tf32(a[3])), "r"(gs_tf32(b[0])),
                   "r"(gs_tf32(b[1])));
}
/* *p += 1, by any number of lanes. */
GS_DEVICE void gs_count_one(gs_u32 *p) { atomicAdd(p, 1u); }
/* By any number of lanes; what *p was: *p += 1; *p = `to`, where it is `from`. */
GS_DEVICE gs_u32 gs_take_number(gs_u32 *p) { return atomicAdd(p, 1u); }
GS_DEVICE gs_u64 gs_swap_if(gs_u64 *p, gs_u64 from, gs_u64 to) { return atomicCAS(p, from, to); }
/* *p becomes the least or the largest, by any number of lanes; few of which raise it. */
GS_DEVICE void gs_lower(gs_u64 *p, gs_u64 to) { atomicMin(p, to); }
GS_DEVICE void gs_raise(gs_u32 *p, gs_u32 to)
{
    if (*(volatile gs_u32 *)p < to)
        atomicMax(p, to);
}
GS_DEVICE float gs_float_of_bits(unsigned bits) { return __uint_as_float(bits); }
GS_DEVICE unsigned gs_bits_of_float(float f) { return __float_as_uint(f); }
GS_DEVICE gs_u64 gs_bits_of_double(double x) { return (gs_u64)__double_as_longlong(x); }

#else

#include <math.h>
#include <stddef.h>

/* The lane that runs and how it waits for others; filled by whoever runs the kernel. */
typedef struct gs_host_gpu {
    unsigned lane, block_x, block_y, blocks_x;
    float *shared;
    void (*block_sync)(void);
    void (*group_sync)(unsigned lanes);
    float (*group_exchange)(float value, unsigned by, unsigned lanes);
    void (*group_share)(unsigned *to, const unsigned *own, unsigned count, unsigned lanes);
    unsigned (*warp_votes)(int yes);
    void (*warp_multiply)(float c[4], const float a[4], const float b[2]);
} gs_host_gpu;

extern const gs_host_gpu *gs_gpu;
const gs_host_gpu *gs_gpu;

#define GS_KERNEL(name, type)                                          \
    static void name##_lane(const type a);                            \
    extern const unsigned name##_bytes;                               \
    const unsigned name##_bytes = sizeof(type);                       \
    void name(const void *args);                                      \
    void name(const void *args) { name##_lane(*(const type *)args); } \
    static void name##_lane(const type a)
#define GS_KERNEL_DENSE(name, type, blocks) GS_KERNEL(name, type)
#define GS_DEVICE static inline
#define GS_UNROLL
#define GS_UNROLL_8
#define GS_ONCE
#define GS_SHARED(name) float *const name = gs_gpu->shared

typedef struct gs_float4 {
    float x, y, z, w;
} __attribute__((aligned(16), may_alias)) gs_float4;
typedef struct gs_float2 {
    float x, y;
} __attribute__((aligned(8), may_alias)) gs_float2;
typedef gs_u32 gs_halves2 __attribute__((may_alias));

GS_DEVICE unsigned gs_lane(void) { return gs_gpu->lane; }
GS_DEVICE unsigned gs_block_x(void) { return gs_gpu->block_x; }
GS_DEVICE unsigned gs_block_y(void) { return gs_gpu->block_y; }
GS_DEVICE unsigned gs_blocks_x(void) { return gs_gpu->blocks_x; }
GS_DEVICE void gs_block_sync(void) { gs_gpu->block_sync(); }
GS_DEVICE void gs_group_sync(unsigned lanes) { gs_gpu->group_sync(lanes); }
GS_DEVICE float gs_group_exchange(float value, unsigned by, unsigned lanes)
{
    return gs_gpu->group_exchange(value, by, lanes);
}
GS_DEVICE const char *gs_made_address(const char *p) { return p; }
GS_DEVICE float *gs_made_rows(float *p) { return p; }
GS_DEVICE unsigned gs_made_number(unsigned n) { return n; }
GS_DEVICE void gs_group_share(gs_u32 *to, const gs_u32 *own, unsigned count, unsigned lanes)
{
    gs_gpu->group_share(to, own, count, lanes);
}
GS_DEVICE unsigned gs_group_read(unsigned value, unsigned lane, unsigned lanes)
{
    unsigned all[32];
    gs_gpu->group_share(all, &value, lanes, lanes);
    return all[lane % lanes];
}
GS_DEVICE unsigned gs_group_votes(int yes, unsigned lanes)
{
    unsigned all[32], own = yes != 0, votes = 0;
    gs_gpu->group_share(all, &own, lanes, lanes);
    for (unsigned i = 0; i < lanes; i++)
        votes |= all[i] << i;
    return votes;
}
GS_DEVICE unsigned gs_warp_votes(int yes) { return gs_gpu->warp_votes(yes); }
GS_DEVICE unsigned gs_highest(unsigned bits) { return 31 - (unsigned)__builtin_clz(bits); }
GS_DEVICE unsigned gs_ones(unsigned bits) { return (unsigned)__builtin_popcount(bits); }
GS_DEVICE void gs_warp_multiply(float c[4], const float a[4], const float b[2]) { gs_gpu->warp_multiply(c, a, b); }
GS_DEVICE void gs_count_one(gs_u32 *p) { (void)__atomic_fetch_add(p, 1u, __ATOMIC_RELAXED); }
/* Lanes take turns where they wait, and nowhere else. */
GS_DEVICE gs_u32 gs_take_number(gs_u32 *p) { return (*p)++; }
GS_DEVICE gs_u64 gs_swap_if(gs_u64 *p, gs_u64 from, gs_u64 to)
{
    const gs_u64 was = *p;
    if (was == from)
        *p = to;
    return was;
}
GS_DEVICE void gs_lower(gs_u64 *p, gs_u64 to) { *p = to < *p ? to : *p; }
GS_DEVICE void gs_raise(gs_u32 *p, gs_u32 to) { *p = to > *p ? to : *p; }
GS_DEVICE float gs_float_of_bits(unsigned bits)
{
    float f;
    __builtin_memcpy(&f, &bits, sizeof(f));
    return f;
}
GS_DEVICE gs_u64 gs_bits_of_double(double x)
{
    gs_u64 bits;
    __builtin_memcpy(&bits, &x, sizeof(bits));
    return bits;
}
GS_DEVICE unsigned gs_bits_of_float(float f)
{
    unsigned bits;
    __builtin_memcpy(&bits, &f, sizeof(bits));
    return bits;
}

#endif
/* Where the name is a macro. */
#define GS_KERNEL_OF(name, type, blocks) GS_KERNEL_DENSE(name, type, blocks)
#endif /* GS_CUDA_KERNELS_GPU_H */
