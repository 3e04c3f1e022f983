/* weights_file.c - .safetensors: 8 bytes of header length, JSON, data.
 * The format: github.com/huggingface/safetensors, "Format". */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

size_t ref_tensor_size(const ref_tensor *t) { return t->shape[0] * t->shape[1] * t->shape[2]; }

ref_tensor *ref_tensors_find(const ref_tensors *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->tensor[i].name, name) == 0)
            return &t->tensor[i];
    return NULL;
}

void ref_tensors_free(ref_tensors *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->tensor[i].value);
    free(t->tensor);
    *t = (ref_tensors){0};
}

/* A cursor over the header. Only as much JSON as the format has. */
typedef struct cursor {
    const char *p, *path;
} cursor;

static void blanks(cursor *c)
{
    while (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r')
        c->p++;
}

static bool take(cursor *c, char ch)
{
    blanks(c);
    if (*c->p != ch)
        return false;
    c->p++;
    return true;
}

static void expect(cursor *c, char ch)
{
    if (!take(c, ch))
        ref_die("%s: header has \"%.12s\" where '%c' should be", c->path, c->p, ch);
}

static void string(cursor *c, char *out, size_t cap)
{
    size_t n = 0;
    expect(c, '"');
    for (; *c->p != '"'; c->p++) {
        if (*c->p == 0 || *c->p == '\\' || n + 1 == cap)
            ref_die("%s: a name in the header is not plain or not ended", c->path);
        out[n++] = *c->p;
    }
    c->p++;
    out[n] = 0;
}

/* Up to `cap` numbers of an array; how many there are. */
static size_t numbers(cursor *c, uint64_t *out, size_t cap)
{
    size_t n = 0;
    expect(c, '[');
    if (take(c, ']'))
        return 0;
    do {
        char *end;
        blanks(c);
        const uint64_t number = strtoull(c->p, &end, 10);
        if (end == c->p || n == cap)
            ref_die("%s: \"%.12s\" is no number, or one too many", c->path, c->p);
        out[n++] = number;
        c->p = end;
    } while (take(c, ','));
    expect(c, ']');
    return n;
}

typedef enum { F32, F64, I64 } element_type;

static size_t element_bytes(element_type type) { return type == F32 ? 4 : 8; }

/* {"dtype": ..., "shape": [...], "data_offsets": [...]} in any order. */
static void entry(cursor *c, ref_tensor *t, element_type *type, uint64_t offsets[2])
{
    char key[64], dtype[16] = "";
    uint64_t shape[3] = {1, 1, 1};
    size_t pairs = 0;
    expect(c, '{');
    do {
        string(c, key, sizeof(key));
        expect(c, ':');
        if (strcmp(key, "dtype") == 0)
            string(c, dtype, sizeof(dtype));
        else if (strcmp(key, "shape") == 0)
            t->dims = numbers(c, shape, 3);
        else if (strcmp(key, "data_offsets") == 0)
            pairs = numbers(c, offsets, 2);
        else
            ref_die("%s: unknown key \"%s\"", c->path, key);
    } while (take(c, ','));
    expect(c, '}');
    *type = strcmp(dtype, "F64") == 0 ? F64 : strcmp(dtype, "I64") == 0 ? I64 : F32;
    t->count = *type == I64 && t->dims == 0;
    if (t->count)
        t->dims = shape[0] = 1;
    if ((*type == F32 && strcmp(dtype, "F32") != 0) || t->dims == 0 || pairs != 2)
        ref_die("%s: %s: needs F32, F64 or I64, a shape of 1 to 3 and two offsets", c->path, t->name);
    for (size_t i = 0; i < 3; i++)
        t->shape[i] = shape[i];
}

/* Of any length, with any escapes: a model's text. */
static void skip_string(cursor *c)
{
    expect(c, '"');
    for (; *c->p != '"'; c->p++)
        if (*c->p == 0 || (*c->p == '\\' && *++c->p == 0))
            ref_die("%s: a text in the header is not ended", c->path);
    c->p++;
}

static void skip_metadata(cursor *c)
{
    expect(c, '{');
    if (take(c, '}'))
        return;
    do {
        skip_string(c);
        expect(c, ':');
        skip_string(c);
    } while (take(c, ','));
    expect(c, '}');
}

static void values(ref_tensor *t, element_type type, const char *data)
{
    const size_t n = ref_tensor_size(t);
    t->value = ref_alloc(n, sizeof(double));
    for (size_t i = 0; i < n; i++) {
        float narrow;
        int64_t whole;
        if (type == F64) {
            memcpy(&t->value[i], data + 8 * i, 8);
        } else if (type == I64) {
            memcpy(&whole, data + 8 * i, 8);
            t->value[i] = (double)whole;
        } else {
            memcpy(&narrow, data + 4 * i, 4);
            t->value[i] = narrow;
        }
    }
}

ref_tensors ref_tensors_read(const char *path)
{
    ref_tensors out = {0};
    size_t bytes;
    uint64_t header, covered = 0;
    char *file = ref_read_file(path, &bytes);
    if (bytes < 8)
        ref_die("%s: shorter than its first 8 bytes", path);
    memcpy(&header, file, 8);
    if (header > bytes - 8)
        ref_die("%s: a header of %" PRIu64 " bytes in a file of %zu", path, header, bytes);
    char *text = ref_alloc(header + 1, 1);
    memcpy(text, file + 8, header);
    cursor c = {text, path};
    out.tensor = ref_alloc(header / 8 + 1, sizeof(*out.tensor));
    expect(&c, '{');
    do {
        uint64_t offsets[2] = {0, 0};
        element_type type = F32;
        ref_tensor *t = &out.tensor[out.count];
        string(&c, t->name, sizeof(t->name));
        expect(&c, ':');
        if (strcmp(t->name, "__metadata__") == 0) {
            skip_metadata(&c);
            continue;
        }
        entry(&c, t, &type, offsets);
        if (offsets[1] - offsets[0] != ref_tensor_size(t) * element_bytes(type) || offsets[1] > bytes - 8 - header)
            ref_die("%s: %s: offsets do not fit its shape and the file", path, t->name);
        values(t, type, file + 8 + header + offsets[0]);
        covered += offsets[1] - offsets[0];
        out.count++;
    } while (take(&c, ','));
    expect(&c, '}');
    if (covered != bytes - 8 - header)
        ref_die("%s: tensors cover %" PRIu64 " of %zu bytes", path, covered, bytes - 8 - (size_t)header);
    free(text);
    free(file);
    return out;
}

void ref_tensors_write(const char *path, const ref_tensors *t, bool as_f32)
{
    const size_t width = as_f32 ? 4 : 8;
    const size_t cap = 256 * (t->count + 1);
    char *text = ref_alloc(cap, 1);
    size_t n = 0, offset = 0;
    for (size_t i = 0; i < t->count; i++) {
        const ref_tensor *x = &t->tensor[i];
        const size_t bytes = ref_tensor_size(x) * (x->count ? 8 : width);
        char shape[72];
        snprintf(shape, sizeof(shape),
                 x->count       ? ""
                 : x->dims == 3 ? "%zu,%zu,%zu"
                 : x->dims == 2 ? "%zu,%zu"
                                : "%zu",
                 x->shape[0], x->shape[1], x->shape[2]);
        n +=
            (size_t)snprintf(text + n, cap - n, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                             i ? "," : "{", x->name,
                             x->count ? "I64"
                             : as_f32 ? "F32"
                                      : "F64",
                             shape, offset, offset + bytes);
        offset += bytes;
    }
    text[n++] = '}';
    while (n % 8)
        text[n++] = ' ';
    const uint64_t header = n;
    FILE *f = ref_create(path);
    fwrite(&header, 8, 1, f);
    fwrite(text, 1, n, f);
    for (size_t i = 0; i < t->count; i++)
        for (size_t k = 0; k < ref_tensor_size(&t->tensor[i]); k++) {
            const float narrow = (float)t->tensor[i].value[k];
            const int64_t whole = (int64_t)t->tensor[i].value[k];
            if (t->tensor[i].count)
                fwrite(&whole, 8, 1, f);
            else
                fwrite(as_f32 ? (const void *)&narrow : &t->tensor[i].value[k], width, 1, f);
        }
    ref_close(f, path);
    free(text);
}
