/* hash.h - numbers that stand for bytes: the checksum of the store, XXH3, 64 bits, seed 0 (libxxhash); fingerprints
 * within a run; and lines of text that hold a checksum. */
#ifndef GS_BASE_HASH_H
#define GS_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/status.h"

uint64_t gs_hash64(const void *data, size_t bytes);
/* The same function with another seed: for tables in memory, not for files. */
uint64_t gs_hash64_seeded(const void *data, size_t bytes, uint64_t seed);

/* The same of bytes that come in pieces. */
typedef struct gs_hash_stream gs_hash_stream;

gs_hash_stream *gs_hash_begin(void); /* NULL when memory is short */
void gs_hash_add(gs_hash_stream *h, const void *data, size_t bytes);
uint64_t gs_hash_so_far(const gs_hash_stream *h); /* more may follow */
void gs_hash_end(gs_hash_stream *h);              /* NULL is allowed */
GS_ENDS_BY(gs_hash_stream, gs_hash_end)

/* ---- fingerprints ------------------------------------------------------ */

/* A number for many bytes that many threads can make at once: a sum of mixed words.
 *
 * Each word of 8 bytes is mixed with its place, which is one to one, and all are added up. So bytes that differ in one
 * word have another fingerprint for certain, and others but for one case in 2^64. A GPU makes the same number in one
 * pass (cuda/kernels/fixed.cu). It stands for bytes within a run and is in no file: the store has checksums.
 */

/* `data`: at a multiple of 8, and so is `bytes`. */
uint64_t gs_fingerprint64(const void *data, uint64_t bytes);

/* ---- checksum lines ---------------------------------------------------- */

/* The checksum at the end of a JSON text, over all bytes before it.
 *
 * Such a text ends with `"checksum": "<16 hex digits>"\n}\n`. The digits are the checksum of the bytes before them, and
 * the bytes behind them are always the same, so that every byte is covered. A checksum finds damage, not malice.
 */

struct cJSON;

#define GS_HEX_DIGITS 16u

void gs_hex_format(char out[GS_HEX_DIGITS + 1], uint64_t v);
/* Reads so many lower-case digits; false, with nothing read behind it, at the first character that is none. */
bool gs_hex_parse(uint64_t *out, const char *text);
bool gs_json_add_hex(struct cJSON *to, const char *key, uint64_t v); /* false when memory is short */

/* The object `root`, whose last key is "checksum" with any hex digits, as a checksummed text; free with gs_free().
 * False when memory is short. */
bool gs_checksum_line_print(char **text, uint64_t *bytes, const struct cJSON *root);
/* Puts the checksum of the text into its last bytes (again); false where it is too short to have one. */
bool gs_checksum_line_set(char *text, uint64_t bytes);
/* GS_EFORMAT: the text does not end with its checksum. `path` begins the message and `advice` ends it. */
gs_status gs_checksum_line_check(const char *text, uint64_t bytes, const char *path, const char *advice);

#endif /* GS_BASE_HASH_H */
