/* fuzz.c - what fuzz targets share: verdicts that are counted, and files to give to readers. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"

static unsigned long accepted, refused;
static char folder[256];

void gs_fuzz_require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "an accepted input breaks: %s\n", what);
    abort();
}

void gs_fuzz_judge(gs_status st)
{
    if (st == GS_OK) {
        accepted++;
        return;
    }
    refused++;
    gs_fuzz_require(gs_last_error()[0] != '\0', "a refusal has a text");
    gs_fuzz_require(strchr(gs_last_error(), '\n') == NULL, "a refusal's text is one line");
}

int gs_fuzz_report(void)
{
    printf(": %lu accepted, %lu refused\n", accepted, refused);
    return accepted < 10 || refused < 10;
}

static void remove_folder(void)
{
    (void)gs_remove_tree(folder);
}

const char *gs_fuzz_folder(void)
{
    if (folder[0] != '\0')
        return folder;
    const char *const tmp = getenv("TMPDIR");
    const char *const parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : tmp != NULL ? tmp : "/tmp";
    snprintf(folder, sizeof(folder), "%s/gs-fuzz-XXXXXX", parent);
    if (mkdtemp(folder) == NULL || atexit(remove_folder) != 0) {
        fprintf(stderr, "%s: cannot make a folder for inputs\n", folder);
        exit(1);
    }
    return folder;
}

const char *gs_fuzz_file(const char *name, const void *data, size_t size)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", gs_fuzz_folder(), name);
    FILE *const f = fopen(path, "wb");
    if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f) != 0) {
        fprintf(stderr, "%s: cannot be written\n", path);
        exit(1);
    }
    return path;
}

size_t gs_fuzz_text_seed(uint8_t *data, size_t capacity, const char *text)
{
    const size_t size = strlen(text);
    if (size > capacity)
        abort();
    memcpy(data, text, size);
    return size;
}

size_t gs_fuzz_source_seed(uint8_t *data, size_t capacity, const char *path)
{
    char whole[512];
    snprintf(whole, sizeof(whole), "%s/%s", GS_TEST_SOURCE_ROOT, path);
    FILE *const f = fopen(whole, "rb");
    if (f == NULL) {
        fprintf(stderr, "%s: cannot be read\n", whole);
        exit(1);
    }
    const size_t size = fread(data, 1, capacity, f);
    fclose(f);
    return size;
}

void gs_fuzz_try_sealed(const uint8_t *data, size_t size, void (*try_text)(const char *text, size_t size))
{
    char *const copy = malloc(size ? size : 1);

    if (copy == NULL)
        return;
    memcpy(copy, data, size);
    try_text(copy, size);
    if (gs_checksum_line_set(copy, size)) {
        if (size >= 4)
            memcpy(copy + size - 4, "\"\n}\n", 4);
        try_text(copy, size);
    }
    free(copy);
}

void gs_fuzz_bundle_put(gs_fuzz_bundle *b, unsigned which, const void *bytes, size_t size)
{
    if (b->size + 3 + size > b->capacity || size > UINT16_MAX)
        abort();
    b->data[b->size] = (uint8_t)which;
    b->data[b->size + 1] = (uint8_t)(size & 255);
    b->data[b->size + 2] = (uint8_t)(size >> 8);
    memcpy(b->data + b->size + 3, bytes, size);
    b->size += 3 + size;
}

void gs_fuzz_bundle_write(const char *const *names, size_t count, const uint8_t *data, size_t size)
{
    for (size_t k = 0; k < count; k++) {
        char path[400];
        snprintf(path, sizeof(path), "%s/%s", gs_fuzz_folder(), names[k]);
        unlink(path);
    }
    for (size_t at = 0; at + 3 <= size;) {
        const size_t length = GS_MIN((size_t)(data[at + 1] | data[at + 2] << 8), size - at - 3);
        gs_fuzz_file(names[data[at] % count], data + at + 3, length);
        at += 3 + length;
    }
}
