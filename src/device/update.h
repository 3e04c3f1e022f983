/* update.h - how does a step of an optimiser change a number?
 *
 * For the host and for GPUs, whose kernels are compiled with this text: it is C and C++, and includes nothing.
 */
#ifndef GS_DEVICE_UPDATE_H
#define GS_DEVICE_UPDATE_H

/* In the order of .optimizer's words. */
typedef enum gs_optim_kind { GS_OPTIM_ADAM, GS_OPTIM_ADAMW, GS_OPTIM_SGD } gs_optim_kind;

/* Formulas of steps, and the runs of state that each works on: SGD's, with momentum, Adam's two moments. */
#define GS_UPDATE_MAP(X) X(SGD, 0) X(MOMENTUM, 1) X(ADAM, 2)

typedef enum gs_update_rule {
#define X(rule, states) GS_UPDATE_##rule,
    GS_UPDATE_MAP(X)
#undef X
} gs_update_rule;

/* Scalars of one step. */
typedef struct gs_update {
    gs_update_rule rule;
    unsigned states;     /* the rule's */
    float scale, shrink; /* of the gradient; of the number. 1: as they are */
    float decay;         /* the number, times it, is added to the gradient */
    float rate;          /* of what the rule makes of the gradient */
    float momentum;
    float add1, keep2, add2, root, epsilon; /* Adam's */
} gs_update;

/* Rounded each, never two in one instruction: a GPU's bits are those of a host without such instructions. */
#ifdef __CUDACC__
#define GS_UPDATE_FN static __device__ __forceinline__
GS_UPDATE_FN float gs_plus(float x, float y) { return __fadd_rn(x, y); }
GS_UPDATE_FN float gs_minus(float x, float y) { return __fsub_rn(x, y); }
GS_UPDATE_FN float gs_times(float x, float y) { return __fmul_rn(x, y); }
GS_UPDATE_FN float gs_over(float x, float y) { return __fdiv_rn(x, y); }
GS_UPDATE_FN float gs_root(float x) { return __fsqrt_rn(x); }
#else
#define GS_UPDATE_FN static inline __attribute__((always_inline, unused))
GS_UPDATE_FN float gs_plus(float x, float y) { return x + y; }
GS_UPDATE_FN float gs_minus(float x, float y) { return x - y; }
GS_UPDATE_FN float gs_times(float x, float y) { return x * y; }
GS_UPDATE_FN float gs_over(float x, float y) { return x / y; }
GS_UPDATE_FN float gs_root(float x) { return __builtin_sqrtf(x); }
#endif

/* What the number w of gradient `grad` becomes; *m and *v are its states, as many as the rule has. */
GS_UPDATE_FN float gs_update_number(const gs_update *u, gs_update_rule rule, float w, float grad, float *m, float *v)
{
    const float g = gs_plus(gs_times(u->scale, grad), gs_times(u->decay, w));
    float step = g;

    if (rule == GS_UPDATE_MOMENTUM) {
        step = *m = gs_plus(gs_times(u->momentum, *m), g);
    } else if (rule == GS_UPDATE_ADAM) {
        *m = gs_plus(*m, gs_times(u->add1, gs_minus(g, *m)));
        *v = gs_plus(gs_times(*v, u->keep2), gs_times(gs_times(u->add2, g), g));
        step = gs_over(*m, gs_plus(gs_over(gs_root(*v), u->root), u->epsilon));
    }
    return gs_minus(gs_times(u->shrink, w), gs_times(u->rate, step));
}

#endif /* GS_DEVICE_UPDATE_H */
