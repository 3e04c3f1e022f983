#include "base/hash.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#define XXH_STATIC_LINKING_ONLY /* the size of a state */
#include <xxhash.h>

uint64_t gs_hash64(const void *data, size_t bytes) { return XXH3_64bits(data, bytes); }

uint64_t gs_hash64_seeded(const void *data, size_t bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, bytes, seed);
}

/* Aligned to 64 bytes, which the allocator does not promise. */
struct gs_hash_stream {
    char room[sizeof(XXH3_state_t) + 64];
};

static XXH3_state_t *state_of(const gs_hash_stream *h)
{
    const uintptr_t at = ((uintptr_t)h->room + 63) & ~(uintptr_t)63;
    return (XXH3_state_t *)at;
}

gs_hash_stream *gs_hash_begin(void)
{
    gs_hash_stream *const h = gs_calloc(1, sizeof(*h));

    if (h != NULL)
        XXH3_64bits_reset(state_of(h));
    return h;
}

void gs_hash_add(gs_hash_stream *h, const void *data, size_t bytes) { XXH3_64bits_update(state_of(h), data, bytes); }

uint64_t gs_hash_so_far(const gs_hash_stream *h) { return XXH3_64bits_digest(state_of(h)); }

void gs_hash_end(gs_hash_stream *h) { gs_free(h); }

/* ---- fingerprints ------------------------------------------------------ */

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

/* ---- checksum lines ---------------------------------------------------- */

#define TAIL       "\"\n}\n"
#define TAIL_BYTES (sizeof(TAIL) - 1)
#define SEAL_BYTES (GS_HEX_DIGITS + TAIL_BYTES)

void gs_hex_format(char out[GS_HEX_DIGITS + 1], uint64_t v)
{
    snprintf(out, GS_HEX_DIGITS + 1, "%016lx", v);
}

bool gs_hex_parse(uint64_t *out, const char *text)
{
    uint64_t v = 0;
    for (unsigned k = 0; k < GS_HEX_DIGITS; k++) {
        const char c = text[k];
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            v = v << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *out = v;
    return true;
}

bool gs_json_add_hex(cJSON *to, const char *key, uint64_t v)
{
    char digits[GS_HEX_DIGITS + 1];
    gs_hex_format(digits, v);
    return cJSON_AddStringToObject(to, key, digits) != NULL;
}

bool gs_checksum_line_print(char **text, uint64_t *bytes, const cJSON *root)
{
    char *const printed = cJSON_Print(root);
    const size_t n = printed == NULL ? 0 : strlen(printed);
    char *const own = printed == NULL ? NULL : gs_malloc(n + 2);

    if (own != NULL) {
        memcpy(own, printed, n);
        memcpy(own + n, "\n", 2);
    }
    cJSON_free(printed);
    if (own == NULL || !gs_checksum_line_set(own, n + 1)) {
        gs_free(own);
        return false;
    }
    *text = own;
    *bytes = n + 1;
    return true;
}

bool gs_checksum_line_set(char *text, uint64_t bytes)
{
    char digits[GS_HEX_DIGITS + 1];
    if (bytes < SEAL_BYTES)
        return false;
    gs_hex_format(digits, gs_hash64(text, bytes - SEAL_BYTES));
    memcpy(text + bytes - SEAL_BYTES, digits, GS_HEX_DIGITS);
    return true;
}

gs_status gs_checksum_line_check(const char *text, uint64_t bytes, const char *path, const char *advice)
{
    uint64_t said;
    if (bytes < SEAL_BYTES || memcmp(text + bytes - TAIL_BYTES, TAIL, TAIL_BYTES) != 0 ||
        !gs_hex_parse(&said, text + bytes - SEAL_BYTES))
        return gs_fail(GS_EFORMAT, "%s: does not end with a checksum%s", path, advice);
    if (said != gs_hash64(text, bytes - SEAL_BYTES))
        return gs_fail(GS_EFORMAT, "%s: checksum mismatch%s", path, advice);
    return GS_OK;
}
