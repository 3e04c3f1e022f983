/* exponential.h - which key has a thing of a weight, of which those with the least keys are drawn?
 *
 * An exponential number whose rate is the weight (Efraimidis and Spirakis, 2006). For the host and for GPUs, whose
 * kernels are compiled with this text: it is C and C++, and includes nothing. Both round each operation by itself, so
 * the same random bits and weight give the same key, bit for bit, on every machine.
 */
#ifndef GS_BASE_EXPONENTIAL_H
#define GS_BASE_EXPONENTIAL_H

#ifdef __CUDACC__
#define GS_EXPONENTIAL_FN static __device__ __forceinline__
GS_EXPONENTIAL_FN double gs_plus_f64(double x, double y) { return __dadd_rn(x, y); }
GS_EXPONENTIAL_FN double gs_times_f64(double x, double y) { return __dmul_rn(x, y); }
GS_EXPONENTIAL_FN double gs_over_f64(double x, double y) { return __ddiv_rn(x, y); }
GS_EXPONENTIAL_FN double gs_f64_of_bits(unsigned long long bits) { return __longlong_as_double((long long)bits); }
#else
#define GS_EXPONENTIAL_FN static inline __attribute__((always_inline, unused))
GS_EXPONENTIAL_FN double gs_plus_f64(double x, double y) { return x + y; }
GS_EXPONENTIAL_FN double gs_times_f64(double x, double y)
{
    double product = x * y;
#ifdef __FP_FAST_FMA /* the compiler would put the sum that follows into one instruction with it */
    __asm__("" : "+m"(product));
#endif
    return product;
}
GS_EXPONENTIAL_FN double gs_over_f64(double x, double y) { return x / y; }
GS_EXPONENTIAL_FN double gs_f64_of_bits(unsigned long long bits)
{
    double x;
    __builtin_memcpy(&x, &bits, sizeof(x));
    return x;
}
#endif

/* -log(u) / weight, to 2^-51 of it, where u = (n + 1/2) / 2^52 and n is the upper 52 of the random bits: in (0, 1),
 * exactly. weight > 0.
 *
 * u is 2^e m, with m within sqrt(2) of 1, and log(m) = 2 atanh(s), s = (m - 1) / (m + 1), by its series: |s| < 0.172,
 * so what comes behind s^21 is below 2^-54 of it. */
GS_EXPONENTIAL_FN double gs_exponential_key(unsigned high, unsigned low, float weight)
{
    const unsigned long long n = (((unsigned long long)high << 32 | low) >> 12) * 2 + 1; /* u 2^53, below 2^53 */
    const double as_double = (double)n;
    unsigned long long bits;
#ifdef __CUDACC__
    bits = (unsigned long long)__double_as_longlong(as_double);
#else
    __builtin_memcpy(&bits, &as_double, sizeof(bits));
#endif
    /* The exponent rises by one where the fraction is above sqrt(2)'s. */
    const unsigned long long fraction = bits & 0xfffffffffffffull, above = fraction > 0x6a09e667f3bcdull;
    const double e = (double)((int)(bits >> 52) - 1023 - 53 + (int)above);
    const double m = gs_f64_of_bits(fraction | (1023 - above) << 52);
    const double s = gs_over_f64(m - 1.0, m + 1.0), z = gs_times_f64(s, s);
    double sum = 1.0 / 21.0;
    sum = gs_plus_f64(gs_times_f64(sum, z), 1.0 / 19.0);
    sum = gs_plus_f64(gs_times_f64(sum, z), 1.0 / 17.0);
    sum = gs_plus_f64(gs_times_f64(sum, z), 1.0 / 15.0);
    sum = gs_plus_f64(gs_times_f64(sum, z), 1.0 / 13.0);
    sum = gs_plus_f64(gs_times_f64(sum, z), 1.0 / 11.0);
    sum = gs_plus_f64(gs_times_f64(sum, z), 1.0 / 9.0);
    sum = gs_plus_f64(gs_times_f64(sum, z), 1.0 / 7.0);
    sum = gs_plus_f64(gs_times_f64(sum, z), 1.0 / 5.0);
    sum = gs_plus_f64(gs_times_f64(sum, z), 1.0 / 3.0);
    sum = gs_plus_f64(gs_times_f64(sum, z), 1.0);
    const double log_m = gs_times_f64(2.0 * s, sum);
    return gs_over_f64(-gs_plus_f64(gs_times_f64(e, 0x1.62e42fefa39efp-1), log_m), (double)weight);
}

#endif /* GS_BASE_EXPONENTIAL_H */
