/* standalone_driver.c - runs a fuzz target without a fuzzer, as an ordinary test.
 *
 * usage: fuzz_NAME [ROUNDS]        the target's own seeds, then ROUNDS mutations of them
 *        fuzz_NAME FILE...         each file once (a crash that a fuzzer found)
 *
 * Mutations are seeded by their number, so that a failing round is the same
 * everywhere. Every input is copied to memory of exactly its size, so that a
 * sanitizer sees a read one byte beyond it. With -fsanitize=fuzzer this file is left out. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define INPUT_BYTES 65536u

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

int main(int argc, char **argv)
{
    static uint8_t data[INPUT_BYTES];
    const unsigned long rounds =
        argc == 2 && isdigit((unsigned char)argv[1][0]) ? strtoul(argv[1], NULL, 10) : 5000;
    unsigned seeds = 0;
    int failed = 0;

    if (argc > 1 && !isdigit((unsigned char)argv[1][0])) {
        for (int k = 1; k < argc; k++)
            failed |= run_file(argv[k]);
        return failed;
    }
    for (size_t size; (size = gs_fuzz_seed(seeds, data, sizeof(data))) > 0; seeds++)
        run(data, size);
    for (unsigned long round = 0; round < rounds; round++) {
        random_state = round;
        size_t size = gs_fuzz_seed((unsigned)draw(seeds), data, sizeof(data));
        for (uint64_t changes = 1 + draw(4); changes > 0; changes--)
            size = mutate(data, size);
        run(data, size);
    }
    printf("%u seeds, %lu mutations", seeds, rounds);
    return gs_fuzz_report();
}
