/* util.c - files, memory, random numbers and rounding for the reference. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

void ref_die(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("reference: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void *ref_alloc(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size ? size : 1);
    if (p == NULL)
        ref_die("out of memory");
    return p;
}

char *ref_path(const char *dir, const char *name)
{
    const size_t bytes = strlen(dir) + strlen(name) + 2;
    char *path = ref_alloc(bytes, 1);
    snprintf(path, bytes, "%s/%s", dir, name);
    return path;
}

char *ref_read_file(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        ref_die("%s: %s", path, strerror(errno));
    if (fseek(f, 0, SEEK_END) != 0)
        ref_die("%s: cannot seek", path);
    const long size = ftell(f);
    if (size < 0)
        ref_die("%s: cannot tell its size", path);
    rewind(f);
    char *data = ref_alloc((size_t)size + 1, 1);
    if (fread(data, 1, (size_t)size, f) != (size_t)size)
        ref_die("%s: short read", path);
    fclose(f);
    *bytes = (size_t)size;
    return data;
}

FILE *ref_create(const char *path)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL)
        ref_die("%s: %s", path, strerror(errno));
    return f;
}

void ref_close(FILE *f, const char *path)
{
    const bool failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed)
        ref_die("%s: write failed", path);
}

ref_random ref_random_seed(uint64_t seed)
{
    /* splitmix64's finaliser, so that neighbouring seeds differ at once */
    uint64_t z = seed + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (ref_random){z ? z : 1};
}

uint64_t ref_random_bits(ref_random *r)
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return r->state * 0x2545F4914F6CDD1Du;
}

uint64_t ref_random_below(ref_random *r, uint64_t n) { return (ref_random_bits(r) >> 11) % n; }

double ref_random_uniform(ref_random *r) { return (double)(ref_random_bits(r) >> 11) * 0x1p-53; }

double ref_random_normal(ref_random *r)
{
    const double u = 1.0 - ref_random_uniform(r), v = ref_random_uniform(r);
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

float ref_round_bf16(float v)
{
    /* 8 bits of significand: round the value scaled so that they are the integer part. */
    int exponent;
    if (v == 0.0f || !isfinite(v))
        return v;
    const double m = frexp(v, &exponent);
    return (float)ldexp(nearbyint(ldexp(m, 8)), exponent - 8);
}

float ref_round_f16(float v)
{
    int exponent;
    if (v == 0.0f || !isfinite(v))
        return v;
    frexp(v, &exponent);
    /* 11 bits of significand; below 2^-14 (frexp's exponent -13) the spacing stays 2^-24. */
    const int last = (exponent < -13 ? -13 : exponent) - 11;
    return (float)ldexp(nearbyint(ldexp(v, -last)), last);
}

void ref_difference(double out[2], const double *a, const double *b, size_t n)
{
    double most = 0.0, scale = 0.0, sum = 0.0, norm = 0.0;
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs(a[i] - b[i]);
        finite = finite && isfinite(a[i]) && isfinite(b[i]);
        most = fmax(most, d);
        scale = fmax(scale, fabs(b[i]));
        sum += d * d;
        norm += b[i] * b[i];
    }
    out[0] = !finite ? INFINITY : most == 0.0 ? 0.0 : most / scale;
    out[1] = !finite ? INFINITY : sum == 0.0 ? 0.0 : sqrt(sum / norm);
}
