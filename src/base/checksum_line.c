#include "base/checksum_line.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

#define TAIL       "\"\n}\n"
#define TAIL_BYTES (sizeof(TAIL) - 1)
#define SEAL_BYTES (GS_HEX_DIGITS + TAIL_BYTES)

void gs_hex_format(char out[GS_HEX_DIGITS + 1], uint64_t v)
{
    snprintf(out, GS_HEX_DIGITS + 1, "%016llx", (unsigned long long)v);
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
