/* result.c - what a run leaves, read with the reference's readers and compared. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "matrix.h"

double *npy_values(const char *path, size_t *rows, size_t *columns)
{
    ref_npy a = ref_npy_read(path);
    const size_t n = a.shape[0] * a.shape[1];
    double *const v = ref_alloc(n, sizeof(double));

    for (size_t i = 0; i < n; i++)
        v[i] = ref_npy_real(&a, i);
    *rows = a.shape[0];
    *columns = a.shape[1];
    free(a.bytes);
    return v;
}

void result_free(result *r)
{
    free(r->logits);
    free(r->metrics);
    ref_tensors_free(&r->weights);
    *r = (result){0};
}

bool train(result *r, const char *fmt, ...)
{
    char line[LINE_MOST];
    size_t bytes;
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    result_free(r);
    unlink("out/run.jsonl");
    if (!command("train %s --keep last --logits out/run.npy --save out/run.safetensors --metrics out/run.jsonl", line))
        return false;
    r->logits = npy_values("out/run.npy", &r->rows, &r->columns);
    r->weights = ref_tensors_read("out/run.safetensors");
    r->metrics = ref_read_file("out/run.jsonl", &bytes);
    return true;
}

/* ---- metrics ---- */

static double over_epochs(const result *r, const char *key, bool sum)
{
    char quoted[64];
    double found = 0;

    snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
    for (const char *line = r->metrics; line != NULL && *line != '\0';) {
        const char *const end = strchr(line, '\n'), *const at = strstr(line, quoted);
        if (at != NULL && (end == NULL || at < end))
            found = (sum ? found : 0) + strtod(at + strlen(quoted), NULL);
        line = end == NULL ? NULL : end + 1;
    }
    return found;
}

double last(const result *r, const char *key) { return over_epochs(r, key, false); }
double total(const result *r, const char *key) { return over_epochs(r, key, true); }

/* ---- comparisons ---- */

static bool alike(const double *got, const double *want, size_t n, double tolerance, const char *what,
                  const char *name)
{
    double d[2];
    ref_difference(d, got, want, n);
    return check(d[0] <= tolerance && d[1] <= tolerance, "%s: %s: max %.3g, frobenius %.3g (tolerance %.3g)", name,
                 what, d[0], d[1], tolerance);
}

double logits_apart(const result *r, const result *want)
{
    double d[2];
    ref_difference(d, r->logits, want->logits, want->rows * want->columns);
    return d[0];
}

bool same_logits(const result *r, const result *want, double tolerance, const char *name)
{
    return check(r->rows == want->rows && r->columns == want->columns, "%s: logits of another shape", name) &&
           alike(r->logits, want->logits, want->rows * want->columns, tolerance, "logits", name);
}

bool same_weights(const result *r, const result *want, double tolerance, const char *name)
{
    bool same = check(r->weights.count == want->weights.count, "%s: %zu tensors, expected %zu", name, r->weights.count,
                      want->weights.count);

    for (size_t i = 0; i < want->weights.count; i++) {
        const ref_tensor *const y = &want->weights.tensor[i], *const x = ref_tensors_find(&r->weights, y->name);
        const bool shaped = x != NULL && x->dims == y->dims && memcmp(x->shape, y->shape, sizeof(x->shape)) == 0;
        same &= check(shaped, "%s: %s is not there, or in another shape", name, y->name) &&
                alike(x->value, y->value, ref_tensor_size(y), tolerance, y->name, name);
    }
    return same;
}

bool same_results(const result *r, const result *want, double tolerance, const char *name)
{
    return same_logits(r, want, tolerance, name) & same_weights(r, want, tolerance, name);
}

bool same_bits(const result *r, const result *want, const char *name) { return same_results(r, want, 0, name); }
