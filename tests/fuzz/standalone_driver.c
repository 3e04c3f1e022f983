/* standalone_driver.c - runs a fuzz target without a fuzzer, as an ordinary test.
 *
 * usage: fuzz_NAME [ROUNDS [FOLDER]]  the target's own seeds and the folder's files, then ROUNDS mutations of them, a
 *                                     third of those without GS_TEST_ALL
 *        fuzz_NAME FILE...            each file once (a crash that a fuzzer found)
 *        fuzz_NAME --seeds FOLDER     writes the seeds there, for a fuzzer to begin from
 *
 * Mutations are seeded by their number, so that a failing round is the same
 * everywhere. Every input is copied to memory of exactly its size, so that a
 * sanitizer sees a read one byte beyond it. With -fsanitize=fuzzer this file is left out. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define INPUT_BYTES 65536u
#define MOST_SEEDS 1024u

static uint64_t random_state;
static uint64_t draw(uint64_t below)
{
    random_state += 0x9E3779B97F4A7C15ull; /* splitmix64 */
    uint64_t z = random_state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return (z ^ (z >> 31)) % below;
}

static void run(const uint8_t *data, size_t size)
{
    void *exact = NULL;
    if (posix_memalign(&exact, 16, size ? size : 1) != 0)
        abort();
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

/* One small change, in place; gives the new size. */
static size_t mutate(uint8_t *data, size_t size)
{
    static const uint64_t values[] = {0,      1,          2,           0x7F,        0xFF,       0xFFFF,
                                      0x8000, 0x7FFFFFFF, 0x80000000u, 0xFFFFFFFFu, 1ull << 32, ~0ull};
    static const char *const texts[] = {"1e999", "-1",      "0.5",        "null", "NaN", "{",
                                        "}",     "[",       "]",          "\"",   ",",   "9007199254740993",
                                        "true",  "\\u0000", "4294967296", "00",   "-0"};
    if (size == 0)
        return 0;
    const size_t at = draw(size), left = size - at;
    switch (draw(8)) {
    case 0:
        data[at] ^= (uint8_t)(1u << draw(8));
        return size;
    case 1:
        data[at] = (uint8_t)draw(256);
        return size;
    case 2: { /* a number of 1, 2, 4 or 8 bytes */
        const uint64_t v = values[draw(sizeof(values) / sizeof(values[0]))];
        const size_t n = (size_t)1 << draw(4);
        memcpy(data + at, &v, n < left ? n : left);
        return size;
    }
    case 3: { /* a piece of JSON over, or into, what is there */
        const char *text = texts[draw(sizeof(texts) / sizeof(texts[0]))];
        const size_t n = strlen(text);
        if (draw(2) && size + n <= INPUT_BYTES) {
            memmove(data + at + n, data + at, left);
            size += n;
        }
        memcpy(data + at, text, n < size - at ? n : size - at);
        return size;
    }
    case 4: /* cut the end off */
        return at;
    case 5: { /* take something out */
        const size_t n = 1 + draw(left < 40 ? left : 40);
        memmove(data + at, data + at + n, left - n);
        return size - n;
    }
    case 6: { /* repeat something */
        const size_t n = 1 + draw(left < 40 ? left : 40);
        if (size + n > INPUT_BYTES)
            return size;
        memmove(data + at + n, data + at, left);
        return size + n;
    }
    default: /* another digit */
        for (size_t k = at; k < size; k++)
            if (isdigit(data[k])) {
                data[k] = (uint8_t)('0' + draw(10));
                break;
            }
        return size;
    }
}

static int run_file(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return 1;
    }
    const size_t size = fread(data, 1, sizeof(data), f);
    fclose(f);
    run(data, size);
    return 0;
}

/* Seeds of the target, then files of its corpus. */
static struct {
    uint8_t *data;
    size_t size;
} seed[MOST_SEEDS];
static unsigned seeds;

static void add_seed(const uint8_t *data, size_t size)
{
    if (seeds == MOST_SEEDS || (seed[seeds].data = malloc(size)) == NULL) {
        fprintf(stderr, "more than %u seeds, or no memory\n", MOST_SEEDS);
        exit(1);
    }
    memcpy(seed[seeds].data, data, size);
    seed[seeds++].size = size;
}

static void add_own_seeds(void)
{
    static uint8_t data[INPUT_BYTES];
    unsigned k = 0;
    for (size_t size; (size = gs_fuzz_seed(k, data, sizeof(data))) > 0; k++)
        add_seed(data, size);
}

/* Sorted by name, so that a round is the same everywhere. */
static void add_folder(const char *folder)
{
    static uint8_t data[INPUT_BYTES];
    struct dirent **entry = NULL;
    const int n = scandir(folder, &entry, NULL, alphasort);
    for (int k = 0; k < n; k++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, entry[k]->d_name);
        FILE *const f = entry[k]->d_name[0] != '.' ? fopen(path, "rb") : NULL;
        if (f != NULL) {
            const size_t size = fread(data, 1, sizeof(data), f);
            fclose(f);
            if (size > 0)
                add_seed(data, size);
        }
        free(entry[k]);
    }
    free(entry);
}

static int write_seeds(const char *folder)
{
    for (unsigned k = 0; k < seeds; k++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/seed%02u", folder, k);
        FILE *const f = fopen(path, "wb");
        if (f == NULL || fwrite(seed[k].data, 1, seed[k].size, f) != seed[k].size || fclose(f) != 0) {
            fprintf(stderr, "%s: cannot be written\n", path);
            return 1;
        }
    }
    return 0;
}

static size_t draw_seed(uint8_t *data)
{
    const unsigned k = (unsigned)draw(seeds);
    memcpy(data, seed[k].data, seed[k].size);
    return seed[k].size;
}

int main(int argc, char **argv)
{
    static uint8_t data[INPUT_BYTES];
    const bool rounds_given = argc > 1 && isdigit((unsigned char)argv[1][0]);
    const unsigned long asked = rounds_given ? strtoul(argv[1], NULL, 10) : 5000;
    const unsigned long rounds = getenv("GS_TEST_ALL") != NULL ? asked : asked / 3;
    int failed = 0;

    add_own_seeds();
    if (argc == 3 && strcmp(argv[1], "--seeds") == 0)
        return write_seeds(argv[2]);
    if (argc > 1 && !rounds_given) {
        for (int k = 1; k < argc; k++)
            failed |= run_file(argv[k]);
        return failed;
    }
    if (argc > 2)
        add_folder(argv[2]);
    for (unsigned k = 0; k < seeds; k++)
        run(seed[k].data, seed[k].size);
    for (unsigned long round = 0; round < rounds; round++) {
        random_state = round;
        size_t size = draw_seed(data);
        for (uint64_t changes = 1 + draw(4); changes > 0; changes--)
            size = mutate(data, size);
        run(data, size);
    }
    printf("%u seeds, %lu mutations", seeds, rounds);
    for (unsigned k = 0; k < seeds; k++)
        free(seed[k].data);
    return gs_fuzz_report();
}
