#include "base/fingerprint.h"

#include <string.h>

/* The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014) of the word and its place. */
static uint64_t mixed(uint64_t word, uint64_t at)
{
    uint64_t x = word + (at + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t gs_fingerprint64(const void *data, uint64_t bytes)
{
    const char *const from = data;
    uint64_t sum = 0, word;

    for (uint64_t i = 0; i < bytes / sizeof(word); i++) {
        memcpy(&word, from + i * sizeof(word), sizeof(word));
        sum += mixed(word, i);
    }
    return sum;
}
