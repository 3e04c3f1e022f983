/* checksum_line.h - the checksum at the end of a JSON text, over all bytes before it.
 *
 * Such a text ends with `"checksum": "<16 hex digits>"\n}\n`. The digits are the checksum of the bytes before them, and
 * the bytes behind them are always the same, so that every byte is covered. A checksum finds damage, not malice.
 */
#ifndef GS_BASE_CHECKSUM_LINE_H
#define GS_BASE_CHECKSUM_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

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

#endif /* GS_BASE_CHECKSUM_LINE_H */
