/* batch_spread.c - rows of features that stay in the memories of GPUs, by out-degree. */
#include "session/batch_spread.h"

#include "base/alloc.h"
#include "base/size.h"
#include "session/store_rows.h"

/* Degrees of so many and more count as so many. */
#define DEGREES 65536u

static uint64_t words_of(uint64_t vertices) { return gs_div_up(vertices, 64); }

uint64_t gs_batch_spread_bytes(const gs_store *store)
{
    return words_of(gs_store_get_info(store)->vertices) * (sizeof(uint64_t) + sizeof(uint32_t)) +
           DEGREES * sizeof(uint32_t) + GS_SUM_BYTES;
}

static uint32_t degree_of(const gs_block_reader *r, uint64_t i)
{
    return (uint32_t)GS_MIN(((const float *)r->block)[i], (float)(DEGREES - 1));
}

typedef struct choice {
    gs_batch_spread *s;
    uint32_t *count;       /* [DEGREES] vertices of each */
    uint32_t least, equal; /* degrees that stay: those above, and of `least` so many more vertices */
} choice;

static gs_status count_degrees(choice *c, const gs_store *store)
{
    gs_block_reader r = {0};
    uint64_t bytes;
    gs_status st = gs_block_reader_open(&r, store, GS_ARRAY_OUT_DEGREE);

    for (uint64_t at = 0, k = 0; st == GS_OK && at < r.info->bytes; at += bytes, k++)
        if ((st = gs_block_reader_next(&r, k, &bytes)) == GS_OK)
            for (uint64_t i = 0; i < bytes / sizeof(float); i++)
                c->count[degree_of(&r, i)]++;
    gs_block_reader_close(&r);
    return st;
}

static void find_least(choice *c)
{
    c->equal = c->s->rows;
    for (c->least = DEGREES - 1; c->least > 0 && c->count[c->least] < c->equal; c->least--)
        c->equal -= c->count[c->least];
}

static gs_status mark_rows(choice *c, const gs_store *store)
{
    gs_block_reader r = {0};
    uint64_t bytes;
    gs_status st = gs_block_reader_open(&r, store, GS_ARRAY_OUT_DEGREE);

    for (uint64_t at = 0, k = 0; st == GS_OK && at < r.info->bytes; at += bytes, k++) {
        if ((st = gs_block_reader_next(&r, k, &bytes)) != GS_OK)
            break;
        for (uint64_t i = 0; i < bytes / sizeof(float); i++) {
            const uint64_t v = at / sizeof(float) + i;
            const uint32_t degree = degree_of(&r, i);
            const bool stays = degree > c->least || (degree == c->least && c->equal > 0);
            c->equal -= stays && degree == c->least;
            c->s->bit[v / 64] |= (uint64_t)stays << v % 64;
        }
    }
    gs_block_reader_close(&r);
    return st;
}

gs_status gs_batch_spread_open(gs_batch_spread *s, const gs_store *store, uint32_t rows)
{
    const uint64_t vertices = gs_store_get_info(store)->vertices, words = words_of(vertices);
    choice c = {.s = s, .count = gs_calloc(DEGREES, sizeof(*c.count))};
    gs_status st = GS_OK;

    *s = (gs_batch_spread){.vertices = (uint32_t)vertices, .rows = rows};
    s->bit = gs_calloc(words, sizeof(*s->bit));
    s->before = gs_calloc(words, sizeof(*s->before));
    if (c.count == NULL || s->bit == NULL || s->before == NULL)
        st = gs_fail(GS_ENOMEM, "out of memory for the numbers of rows that stay in devices' memory");
    if (st == GS_OK && (st = count_degrees(&c, store)) == GS_OK) {
        find_least(&c);
        st = mark_rows(&c, store);
    }
    for (uint64_t w = 1; st == GS_OK && w < words; w++)
        s->before[w] = s->before[w - 1] + (uint32_t)__builtin_popcountll(s->bit[w - 1]);
    gs_free(c.count);
    return st;
}

void gs_batch_spread_close(gs_batch_spread *s)
{
    gs_free(s->bit);
    gs_free(s->before);
    *s = (gs_batch_spread){0};
}

/* The number of a vertex's row; s->rows: it is not kept. */
static uint32_t number_of(const gs_batch_spread *s, uint32_t v)
{
    const uint64_t word = s->bit[v / 64], bit = 1ull << v % 64;
    return (word & bit) == 0 ? s->rows : s->before[v / 64] + (uint32_t)__builtin_popcountll(word & (bit - 1));
}

void gs_batch_spread_find(gs_batch_places *out, const gs_batch_spread *s, const uint32_t *vertex, uint32_t rows,
                          uint32_t own, uint32_t devices)
{
    out->lefts = out->from_peers = 0;
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t number = number_of(s, vertex[i]);
        if (number == s->rows) {
            number += out->lefts;
            out->left[out->lefts++] = vertex[i];
        } else {
            out->from_peers += number % devices != own;
        }
        if (out->place != NULL)
            out->place[i] = number;
    }
}

uint32_t gs_batch_spread_list(uint32_t *vertex, const gs_batch_spread *s, uint32_t rows, uint32_t own,
                              uint32_t devices, uint32_t *from)
{
    uint32_t n = 0;

    for (; *from < s->vertices && n < rows; ++*from) {
        const uint32_t number = number_of(s, *from);
        if (number < s->rows && number % devices == own)
            vertex[n++] = *from;
    }
    return n;
}
