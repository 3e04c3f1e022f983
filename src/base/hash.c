#include "base/hash.h"

#include <xxhash.h>

uint64_t gs_hash64(const void *data, size_t bytes) { return XXH3_64bits(data, bytes); }
