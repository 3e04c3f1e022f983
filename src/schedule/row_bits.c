/* row_bits.c - sets of rows as numbers: equal sets are one, nearly full ones are all rows. */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/row_sets_internal.h"

/* A set of more rows than this is taken as all: what it saves is not worth a file of edges. */
#define NEARLY_ALL 0.9

static uint64_t rows_in(const struct finder *f, const uint64_t *bits)
{
    uint64_t n = 0;
    for (uint64_t w = 0; w < f->words; w++)
        n += (uint64_t)__builtin_popcountll(bits[w]);
    return n * f->out.granules.rows;
}

static bool get(const uint64_t *bits, uint32_t g) { return bits[g / 64] >> (g % 64) & 1; }

static void fill(uint64_t *bits, uint32_t first, uint32_t end)
{
    for (uint32_t k = first; k < end; k++)
        bits[k / 64] |= 1ull << (k % 64);
}

/* Gaps within an interval, and at its ends, that are too short to leave out. */
static void fill_gaps(const struct finder *f, uint64_t *bits)
{
    const gs_granules g = f->out.granules;
    for (uint32_t i = 0; i < f->c->chunks->parts; i++) {
        uint64_t *const of = bits + (uint64_t)i * g.words;
        const uint32_t rows = gs_interval_rows(f->c->chunks, i), all = (uint32_t)gs_div_up(rows, g.rows);
        const uint32_t short_end = gs_short_end(rows);
        uint32_t end = UINT32_MAX;
        for (uint32_t k = 0; k < all; k++) {
            if (!get(of, k))
                continue;
            if (end == UINT32_MAX ? (uint64_t)k * g.rows < short_end : (uint64_t)(k - end) * g.rows < GS_ROW_GAP)
                fill(of, end == UINT32_MAX ? 0 : end, k);
            end = k + 1;
        }
        if (end < all && rows - end * g.rows < short_end)
            fill(of, end, all);
    }
}

/* Takes `bits`. */
static uint32_t number_of(struct finder *f, uint64_t *bits)
{
    if (f->closed)
        fill_gaps(f, bits);
    if ((double)rows_in(f, bits) > NEARLY_ALL * (double)f->c->chunks->vertices) {
        gs_free(bits);
        return GS_ALL_ROWS;
    }
    for (uint32_t s = 1; s < f->out.sets; s++)
        if (memcmp(f->out.bits[s], bits, f->words * sizeof(*bits)) == 0) {
            gs_free(bits);
            return s;
        }
    if (!gs_grow(&f->out.bits, f->out.sets, &f->out.room, sizeof(*f->out.bits))) {
        gs_free(bits);
        f->status = gs_fail(GS_ENOMEM, "out of memory for the rows that a loss sees");
        return GS_ALL_ROWS;
    }
    f->out.bits[f->out.sets] = bits;
    return f->out.sets++;
}

static uint64_t *new_bits(struct finder *f)
{
    uint64_t *bits = f->status == GS_OK ? gs_calloc(f->words, sizeof(*bits)) : NULL;
    if (bits == NULL && f->status == GS_OK)
        f->status = gs_fail(GS_ENOMEM, "out of memory for the rows that a loss sees");
    return bits;
}

uint32_t gs_rows__add(struct finder *f, const uint64_t *from)
{
    uint64_t *bits = new_bits(f);
    if (bits == NULL)
        return GS_ALL_ROWS;
    memcpy(bits, from, f->words * sizeof(*bits));
    return number_of(f, bits);
}

uint32_t gs_rows__unite(struct finder *f, uint32_t a, uint32_t b)
{
    if (a == b || a == GS_ALL_ROWS || b == f->none)
        return a;
    if (b == GS_ALL_ROWS || a == f->none)
        return b;
    uint64_t *bits = new_bits(f);
    for (uint64_t w = 0; bits != NULL && w < f->words; w++)
        bits[w] = f->out.bits[a][w] | f->out.bits[b][w];
    return bits == NULL ? GS_ALL_ROWS : number_of(f, bits);
}

uint32_t gs_rows__meet(struct finder *f, uint32_t a, uint32_t b)
{
    if (a == b || a == GS_ALL_ROWS || b == f->none)
        return b;
    if (b == GS_ALL_ROWS || a == f->none)
        return a;
    uint64_t *bits = new_bits(f);
    for (uint64_t w = 0; bits != NULL && w < f->words; w++)
        bits[w] = f->out.bits[a][w] & f->out.bits[b][w];
    return bits == NULL ? GS_ALL_ROWS : number_of(f, bits);
}

uint32_t gs_rows__reach(struct finder *f, uint32_t direction, uint32_t of)
{
    if (of == GS_ALL_ROWS || of == f->none)
        return of;
    if (f->c->chunks->shared)
        direction = GS_BY_DEST;
    for (uint32_t k = 0; k < f->knowns; k++)
        if (f->known[k].direction == direction && f->known[k].of == of)
            return f->known[k].set;
    uint64_t *bits = new_bits(f);
    if (bits == NULL)
        return GS_ALL_ROWS;
    if ((f->status = f->c->reach(f->c->context, direction, f->out.bits[of], bits)) != GS_OK) {
        gs_free(bits);
        return GS_ALL_ROWS;
    }
    const uint32_t set = number_of(f, bits);
    if (f->knowns < GS_ARRAY_LEN(f->known)) {
        f->known[f->knowns].direction = direction;
        f->known[f->knowns].of = of;
        f->known[f->knowns++].set = set;
    }
    return set;
}
