/* npy_file.c - NumPy's .npy, version 1 and 2, little-endian, C order. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reference.h"

bool ref_npy_exists(const char *path) { return access(path, F_OK) == 0; }

static size_t type_bytes(const char *type) { return (size_t)(type[1] - '0'); }

/* The text after `key` in the header, blanks skipped. */
static const char *after(const char *header, const char *key, const char *path)
{
    const char *p = strstr(header, key);
    if (p == NULL)
        ref_die("%s: no %s in its header", path, key);
    p += strlen(key);
    while (*p == ' ' || *p == ':')
        p++;
    return p;
}

static void parse_header(ref_npy *a, const char *header, const char *path)
{
    const char *p = after(header, "'descr'", path);
    if (p[0] != '\'' || (p[1] != '<' && p[1] != '|') || strchr("iuf", p[2]) == NULL)
        ref_die("%s: unknown type", path);
    a->type[0] = p[2];
    a->type[1] = p[3];
    if (strncmp(after(header, "'fortran_order'", path), "False", 5) != 0)
        ref_die("%s: Fortran order", path);
    p = after(header, "'shape'", path);
    for (p++, a->shape[0] = a->shape[1] = 1; *p != ')' && *p != 0; p++) {
        if (*p < '0' || *p > '9')
            continue;
        char *end;
        if (a->dims == 2)
            ref_die("%s: more than two dimensions", path);
        a->shape[a->dims++] = strtoull(p, &end, 10);
        p = end - 1;
    }
}

ref_npy ref_npy_read(const char *path)
{
    ref_npy a = {0};
    size_t bytes;
    a.bytes = ref_read_file(path, &bytes);
    const unsigned char *u = (const unsigned char *)a.bytes;
    if (bytes < 12 || memcmp(u, "\x93NUMPY", 6) != 0)
        ref_die("%s: not an .npy file", path);
    const bool v1 = u[6] == 1;
    const size_t start = v1 ? 10 : 12;
    const size_t length = v1 ? u[8] + 256u * u[9] : u[8] + 256u * u[9] + 65536u * u[10];
    if (start + length > bytes)
        ref_die("%s: its header ends outside the file", path);
    char *header = ref_alloc(length + 1, 1);
    memcpy(header, a.bytes + start, length);
    parse_header(&a, header, path);
    free(header);
    a.data = a.bytes + start + length;
    if (bytes - start - length != a.shape[0] * a.shape[1] * type_bytes(a.type))
        ref_die("%s: %zu bytes of data for a shape of %zu x %zu", path, bytes - start - length, a.shape[0],
                a.shape[1]);
    return a;
}

#define GET(ctype)                                                    \
    {                                                                 \
        ctype v;                                                      \
        memcpy(&v, a->data + i * sizeof(v), sizeof(v));               \
        return v;                                                     \
    }

int64_t ref_npy_int(const ref_npy *a, size_t i)
{
    if (strcmp(a->type, "i8") == 0 || strcmp(a->type, "u8") == 0)
        GET(int64_t)
    if (strcmp(a->type, "i4") == 0)
        GET(int32_t)
    if (strcmp(a->type, "u4") == 0)
        GET(uint32_t)
    if (strcmp(a->type, "i2") == 0)
        GET(int16_t)
    if (strcmp(a->type, "u1") == 0)
        GET(uint8_t)
    ref_die("an integer array has type %s", a->type);
}

double ref_npy_real(const ref_npy *a, size_t i)
{
    if (strcmp(a->type, "f4") == 0)
        GET(float)
    if (strcmp(a->type, "f8") == 0)
        GET(double)
    return (double)ref_npy_int(a, i);
}

void ref_npy_write(const char *path, const char *type, size_t rows, size_t cols, const void *data)
{
    char header[128], shape[64];
    if (cols)
        snprintf(shape, sizeof(shape), "%zu, %zu", rows, cols);
    else
        snprintf(shape, sizeof(shape), "%zu,", rows);
    /* 128 bytes in all, as NumPy pads: tests overwrite bytes at 128 + row * size. */
    memset(header, ' ', sizeof(header));
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int n =
        snprintf(header + 10, sizeof(header) - 10, "{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }",
                 type[1] == '1' ? "|" : "<", type, shape);
    header[10 + n] = ' ';
    header[127] = '\n';
    FILE *f = ref_create(path);
    fwrite(header, 1, sizeof(header), f);
    fwrite(data, type_bytes(type), rows * (cols ? cols : 1), f);
    ref_close(f, path);
}
