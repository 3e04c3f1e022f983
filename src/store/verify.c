/* verify.c - reads every byte of a store's vertex arrays and says what is wrong.
 *
 * Manifest, chunk table and checksums were verified when the store was opened;
 * the edges are verify_edges.c's. Here: each block's checksum, zero padding, and
 * what the values must be: finite features, labels below the number of
 * classes, split sizes as promised, input ids that are a permutation. */
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "store/store_internal.h"

#define WINDOW_BYTES (8 * GS_MIB) /* enough for an SSD's full sequential rate */

/* Sums over all blocks of an array. */
typedef struct array_scan {
    const gs_store *store;
    gs_array_id id;
    uint64_t splits[4]; /* rows of each gs_split */
    uint64_t *seen;     /* GS_ARRAY_INPUT_ID: a bit an input id */
    struct name_scan *names; /* GS_ARRAY_NAMES */
} array_scan;

/* Checks `count` elements of which the first is element `first` of the array.
 * Gives the number of good ones before the first bad one: `count` if all are. */
typedef uint64_t (*element_check)(array_scan *scan, const void *data, uint64_t count);

static uint64_t features_f32(array_scan *scan, const void *data, uint64_t count)
{
    const uint32_t *v = data;
    uint32_t bad = 0;
    (void)scan;
    for (uint64_t k = 0; k < count; k++)
        bad |= (v[k] & 0x7F800000u) == 0x7F800000u;
    for (uint64_t k = 0; bad && k < count; k++)
        if ((v[k] & 0x7F800000u) == 0x7F800000u)
            return k;
    return count;
}

/* bf16 and f16: all bits of the exponent set means infinite or NaN. */
static uint64_t features_16(const uint16_t *v, uint64_t count, uint16_t exponent)
{
    uint16_t bad = 0;
    for (uint64_t k = 0; k < count; k++)
        bad |= (v[k] & exponent) == exponent;
    for (uint64_t k = 0; bad && k < count; k++)
        if ((v[k] & exponent) == exponent)
            return k;
    return count;
}

static uint64_t features_check(array_scan *scan, const void *data, uint64_t count)
{
    switch (gs_store_get_info(scan->store)->feature_type) {
    case GS_BF16:
        return features_16(data, count, 0x7F80);
    case GS_F16:
        return features_16(data, count, 0x7C00);
    default:
        return features_f32(scan, data, count);
    }
}

/* 0, 1, or not known. */
static uint64_t truths_check(const uint8_t *v, uint64_t count)
{
    for (uint64_t k = 0; k < count; k++)
        if (v[k] > 1 && v[k] != GS_LABEL_UNKNOWN)
            return k;
    return count;
}

/* Not infinite; not a number where none is known. */
static uint64_t numbers_check(const uint32_t *v, uint64_t count)
{
    for (uint64_t k = 0; k < count; k++)
        if ((v[k] & 0x7FFFFFFFu) == 0x7F800000u)
            return k;
    return count;
}

static uint64_t labels_check(array_scan *scan, const void *data, uint64_t count)
{
    const gs_train_task task = gs_store_get_info(scan->store)->labels;
    if (task != GS_TRAIN_TASK_CLASSIFY)
        return task == GS_TRAIN_TASK_MULTILABEL ? truths_check(data, count) : numbers_check(data, count);
    const int32_t *v = data, classes = (int32_t)gs_store_get_info(scan->store)->classes;
    for (uint64_t k = 0; k < count; k++)
        if (v[k] < -1 || v[k] >= classes)
            return k;
    return count;
}

static uint64_t split_check(array_scan *scan, const void *data, uint64_t count)
{
    const uint8_t *v = data;
    for (uint64_t k = 0; k < count; k++) {
        if (v[k] > GS_SPLIT_TEST)
            return k;
        scan->splits[v[k]]++;
    }
    return count;
}

/* N ids below N, none twice: a permutation. */
static uint64_t input_id_check(array_scan *scan, const void *data, uint64_t count)
{
    const uint64_t vertices = gs_store_get_info(scan->store)->vertices;
    const uint32_t *v = data;
    for (uint64_t k = 0; k < count; k++) {
        const uint64_t bit = 1ull << (v[k] % 64);
        if (v[k] >= vertices || (scan->seen[v[k] / 64] & bit) != 0)
            return k;
        scan->seen[v[k] / 64] |= bit;
    }
    return count;
}

/* Progress of reading the names. */
typedef struct name_scan {
    uint64_t names;
    uint32_t length, last_length;
    unsigned char name[GS_MOST_NAME], last[GS_MOST_NAME];
} name_scan;

/* Each is longer than the one before it, or as long and behind it by its bytes: so none is there twice. */
static uint64_t names_check(array_scan *scan, const void *data, uint64_t count)
{
    const unsigned char *v = data;
    name_scan *const n = scan->names;

    for (uint64_t k = 0; k < count; k++) {
        if (v[k] != '\n') {
            if (n->length == GS_MOST_NAME || v[k] == 0)
                return k;
            n->name[n->length++] = v[k];
            continue;
        }
        const bool longer = n->length > n->last_length, as_long = n->length == n->last_length;
        if (n->length == 0 || (!longer && !(as_long && memcmp(n->name, n->last, n->length) > 0)))
            return k;
        memcpy(n->last, n->name, n->length);
        n->last_length = n->length;
        n->length = 0;
        n->names++;
    }
    return count;
}

/* Rules of an element, for the check above and the message. Degrees and
 * loops are compared with the edges in verify_edges.c. */
static const struct {
    element_check check;
    const char *fault;
} element[GS_ARRAY_COUNT] = {
    [GS_ARRAY_FEATURES] = {features_check, "a feature is not finite"},
    [GS_ARRAY_LABELS] = {labels_check,
                         "is no label: a class is -1 or below their number, one of several is 0, 1 or 255, a number is "
                         "not infinite"},
    [GS_ARRAY_SPLIT] = {split_check, "the split is not 0, 1, 2 or 3"},
    [GS_ARRAY_INPUT_ID] = {input_id_check, "the input id is out of range or that of an earlier row"},
    [GS_ARRAY_NAMES] = {names_check,
                        "a name is empty, too long, holds a byte of 0 or does not follow the one before it"},
};

static gs_status block_check(array_scan *scan, const gs_window *w, const void *data, uint64_t block,
                             uint64_t bytes)
{
    const gs_array_info *a = gs_store_array(scan->store, scan->id);
    const uint64_t size = gs_dtype_bytes(a->dtype), first = block * (GS_SUM_BYTES / size);

    if (gs_hash64(data, bytes) != a->sums[block])
        return gs_fail(GS_EFORMAT,
                       "%s: checksum mismatch in rows %llu to %llu (bytes %llu to %llu)" GS_STORE_DAMAGED,
                       w->path, (unsigned long long)(first / a->width),
                       (unsigned long long)((first + bytes / size - 1) / a->width),
                       (unsigned long long)(block * GS_SUM_BYTES),
                       (unsigned long long)(block * GS_SUM_BYTES + bytes - 1));
    if (element[scan->id].check == NULL)
        return GS_OK;
    const uint64_t good = element[scan->id].check(scan, data, bytes / size);
    if (good != bytes / size)
        return gs_fail(GS_EFORMAT, "%s: row %llu: %s" GS_STORE_DAMAGED, w->path,
                       (unsigned long long)((first + good) / a->width), element[scan->id].fault);
    return GS_OK;
}

/* Bytes from the end of the rows to the end of the file. */
static gs_status padding_check(gs_window *w, uint64_t bytes)
{
    const uint64_t block = gs_align_down(bytes, GS_BLOCK_BYTES), end = gs_align_up(bytes, GS_BLOCK_BYTES);
    const void *data = NULL;
    gs_status st = block == end ? GS_OK : gs_window__get(w, &data, block, end - block, UINT64_MAX);
    if (st != GS_OK || block == end)
        return st;
    for (uint64_t k = bytes - block; k < end - block; k++)
        if (((const unsigned char *)data)[k] != 0)
            return gs_fail(GS_EFORMAT, "%s: byte %llu of the padding is not zero" GS_STORE_DAMAGED, w->path,
                           (unsigned long long)(block + k));
    return GS_OK;
}

static gs_status splits_check(const array_scan *scan, const gs_window *w)
{
    const gs_store_info *i = gs_store_get_info(scan->store);
    const uint64_t said[4] = {0, i->train, i->valid, i->test};
    for (unsigned k = GS_SPLIT_TRAIN; k <= GS_SPLIT_TEST; k++)
        if (scan->splits[k] != said[k])
            return gs_fail(GS_EFORMAT,
                           "%s: %llu rows of split %u, but the manifest says %llu" GS_STORE_DAMAGED, w->path,
                           (unsigned long long)scan->splits[k], k, (unsigned long long)said[k]);
    return GS_OK;
}

static gs_status array_verify(const gs_store *s, gs_array_id id, uint64_t window_bytes)
{
    const gs_array_info *a = gs_store_array(s, id);
    array_scan scan = {.store = s, .id = id};
    gs_window w = GS_WINDOW_NONE;
    gs_status st = gs_window__open(&w, gs_store_array_path(s, id), window_bytes);

    if (st == GS_OK && id == GS_ARRAY_INPUT_ID) {
        scan.seen = gs_calloc(gs_div_up(gs_store_get_info(s)->vertices, 64), sizeof(*scan.seen));
        if (scan.seen == NULL)
            st = gs_fail(GS_ENOMEM, "%s: no memory for a bit a vertex", w.path);
    }
    if (st == GS_OK && id == GS_ARRAY_NAMES && (scan.names = gs_calloc(1, sizeof(*scan.names))) == NULL)
        st = gs_fail(GS_ENOMEM, "%s: no memory for a name", w.path);
    for (uint64_t block = 0; st == GS_OK && block * GS_SUM_BYTES < a->bytes; block++) {
        const uint64_t offset = block * GS_SUM_BYTES, bytes = GS_MIN(a->bytes - offset, GS_SUM_BYTES);
        const void *data = NULL;
        if ((st = gs_window__get(&w, &data, offset, bytes, UINT64_MAX)) == GS_OK)
            st = block_check(&scan, &w, data, block, bytes);
    }
    if (st == GS_OK)
        st = padding_check(&w, a->bytes);
    if (st == GS_OK && id == GS_ARRAY_SPLIT)
        st = splits_check(&scan, &w);
    if (st == GS_OK && id == GS_ARRAY_NAMES &&
        (scan.names->names != gs_store_get_info(s)->vertices || scan.names->length != 0))
        st = gs_fail(GS_EFORMAT, "%s: holds %llu names for %llu vertices" GS_STORE_DAMAGED, w.path,
                     (unsigned long long)scan.names->names, (unsigned long long)gs_store_get_info(s)->vertices);
    gs_free(scan.names);
    gs_free(scan.seen);
    gs_window__close(&w);
    return st;
}

gs_status gs_store_verify(const gs_store *s, uint64_t memory)
{
    const uint64_t bitmap = gs_div_up(gs_store_get_info(s)->vertices, 64) * sizeof(uint64_t);
    const uint64_t least = bitmap + GS_SUM_BYTES;
    char need[16], have[16];

    if (memory < least)
        return gs_fail(GS_EBUDGET, "%s: verifying it takes at least %s of memory, and %s are allowed",
                       gs_store_dir(s), gs_size_format(need, sizeof(need), least),
                       gs_size_format(have, sizeof(have), memory));
    const uint64_t window = gs_align_down(GS_MIN(memory - bitmap, WINDOW_BYTES), GS_SUM_BYTES);
    for (unsigned id = 0; id < GS_ARRAY_COUNT; id++) {
        const gs_status st = gs_store_array(s, id)->present ? array_verify(s, id, window) : GS_OK;
        if (st != GS_OK)
            return st;
    }
    return gs_store__verify_edges(s, memory);
}
