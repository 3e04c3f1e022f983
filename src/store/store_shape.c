/* store_shape.c - a store of counts alone: how many edges each chunk would have, and which rows they would name. */
#include <math.h>

#include "base/alloc.h"
#include "base/size.h"
#include "store/store.h"
#include "store/store_internal.h"

/* From so many vertices on, some are drawn as one. */
#define LOTS_MOST (1u << 21)

static uint32_t lot_of(uint64_t vertices)
{
    uint32_t lot = 1;
    while (vertices / lot >= LOTS_MOST)
        lot *= 2;
    return lot;
}

uint32_t gs_store_lot(const gs_store *s)
{
    return gs_store_is_shape(s) ? lot_of(gs_store_get_info(s)->vertices) : 1;
}

/* ---- rows that have more edges than others -------------------------------- */

#define HALVINGS 16u

/* Edges of a row that is `fuller` times in the fuller half, where all rows have one on average. */
static double edges_of(double part, uint32_t fuller)
{
    return pow(2 * part, fuller) * pow(2 * (1 - part), HALVINGS - fuller);
}

double gs_shape_named(double fuller, double each, double rows)
{
    double part = 1.0 / (1u << HALVINGS), named = 0;

    for (uint32_t k = 0; k <= HALVINGS; k++) {
        named -= part * expm1(-each * edges_of(fuller, k));
        part *= (double)(HALVINGS - k) / (k + 1);
    }
    return -expm1(rows * log1p(-GS_MIN(named, 1.0)));
}

double gs_shape_fuller(double ends, double each)
{
    double least = 0.5, most = 1;

    for (uint32_t k = 0; k < 30; k++) {
        const double half = (least + most) / 2;
        *(gs_shape_named(half, each, 1) > ends ? &least : &most) = half;
    }
    return least;
}

/* ---- chunks -------------------------------------------------------------- */

static uint32_t rows_named(double fuller, uint64_t edges, uint32_t rows)
{
    const double named = nearbyint(rows * gs_shape_named(fuller, (double)edges / rows, 1));
    return (uint32_t)GS_MIN(GS_MAX(named, 1.0), (double)GS_MIN(edges, (uint64_t)rows));
}

/* Edges that a chunk should have, of its owners' or between two. */
static double expected_edges(const gs_store_shape *x, const gs_manifest *m, uint32_t i, uint32_t j)
{
    const double parts = m->info.parts, own = parts / x->owners, busy = GS_MAX(nearbyint(own * (1 - x->idle)), 1.0);
    const uint64_t a = (uint64_t)i * x->owners / m->info.parts, b = (uint64_t)j * x->owners / m->info.parts;
    const double inside = x->inside < 0 || busy == 1 ? (1 - x->remote) / busy : GS_MIN(x->inside, 1 - x->remote);

    if (fmod(i, own) >= busy || fmod(j, own) >= busy)
        return 0;
    return (double)x->edges / (x->owners * busy) *
           (i == j ? inside : a == b ? (1 - x->remote - inside) / (busy - 1) : x->remote / ((x->owners - 1) * busy));
}

static void count_rows(gs_chunk *c, const gs_manifest *m, const gs_chunk_table *t, double fuller, uint64_t end,
                       uint32_t i, uint32_t j)
{
    c->offset = end;
    if (c->edges == 0)
        return;
    c->targets = rows_named(fuller, c->edges, gs_interval_rows(t, i));
    c->operands = rows_named(fuller, c->edges, gs_interval_rows(t, j));
    c->largest = gs_div_up(c->edges, c->targets);
    c->length = gs_chunk_bytes(c->edges, c->targets, c->operands, gs_index_bytes(t), m->data);
}

/* By destination, then what has the same edges by source. */
static gs_status fill(gs_chunk *chunks, gs_manifest *m, const gs_store_shape *x, const char *name)
{
    const uint32_t p = m->info.parts;
    const gs_chunk_table t = {.vertices = x->vertices, .parts = p, .interval_rows = m->info.interval_rows};
    double expected = 0;
    uint64_t end[2] = {0, 0};

    m->info.edges = 0;
    for (uint32_t i = 0; i < p; i++)
        for (uint32_t j = 0; j < p; j++) {
            gs_chunk *const c = &chunks[(uint64_t)i * p + j];
            expected += expected_edges(x, m, i, j);
            c->edges = (uint64_t)nearbyint(expected) - m->info.edges;
            m->info.edges += c->edges;
            if (c->edges > UINT32_MAX)
                return gs_fail(GS_EINVAL, "%s: chunks of %u parts would have more than 4294967295 edges; give it more "
                               "parts", name, p);
        }
    for (uint64_t d = 0; d < 2; d++)
        for (uint32_t i = 0; i < p; i++)
            for (uint32_t j = 0; j < p; j++) {
                gs_chunk *const c = &chunks[(d * p + i) * p + j];
                c->edges = chunks[d == 0 ? (uint64_t)i * p + j : (uint64_t)j * p + i].edges;
                count_rows(c, m, &t, x->fuller, end[d], i, j);
                end[d] += c->length;
            }
    m->edge_bytes[0] = end[0];
    m->edge_bytes[1] = end[1];
    return GS_OK;
}

/* ---- the store ----------------------------------------------------------- */

static void describe(gs_manifest *m, const gs_store_shape *x)
{
    const uint32_t rows = (uint32_t)gs_div_up(x->vertices, x->parts);
    const uint64_t third = gs_div_up(x->vertices, 3);

    *m = (gs_manifest){
        .version = 2,
        .info = {.vertices = x->vertices, .interval_rows = rows, .parts = (uint32_t)gs_div_up(x->vertices, rows),
                 .features = x->features, .feature_type = GS_F32, .classes = x->classes, .train = third,
                 .valid = GS_MIN(third, x->vertices - third), .method = "shape"},
    };
    m->info.test = x->vertices - m->info.train - m->info.valid;
    m->array[GS_ARRAY_FEATURES] = (struct gs_manifest_array){x->features > 0, GS_F32, x->features};
    m->array[GS_ARRAY_LABELS] = (struct gs_manifest_array){true, GS_I32, 1};
    m->array[GS_ARRAY_SPLIT] = (struct gs_manifest_array){true, GS_U8, 1};
    m->array[GS_ARRAY_IN_DEGREE] = m->array[GS_ARRAY_OUT_DEGREE] = (struct gs_manifest_array){true, GS_F32, 1};
    m->array[GS_ARRAY_INPUT_ID] = (struct gs_manifest_array){true, GS_U32, 1};
}

static uint64_t bytes_of(const gs_manifest *m)
{
    uint64_t total = 0, bytes;

    for (unsigned k = GS_FILE_CHUNKS; k < GS_STORE_FILES; k++)
        total += gs_store__file_expected(m, k, &bytes) ? bytes : 0;
    return total;
}

static bool is_possible(const gs_store_shape *x)
{
    return x->vertices > 0 && x->vertices <= GS_MAX_VERTICES && x->edges <= GS_MAX_COUNT &&
           x->features <= GS_MAX_FEATURES && x->parts > 0 && x->parts <= GS_MAX_PARTS;
}

gs_status gs_store_open_shape(gs_store **out, const char *name, const gs_store_shape *shape)
{
    gs_store_shape whole = *shape; /* its intervals are whole lots */
    gs_manifest m;
    gs_status st;

    if (shape->parts > 0 && lot_of(shape->vertices) > 1)
        whole.vertices = shape->parts * gs_align_up(gs_div_up(shape->vertices, shape->parts), lot_of(shape->vertices));
    if (!is_possible(&whole))
        return gs_fail(GS_EINVAL, "%s: a store has from 1 to 4294967295 vertices, at most 2^53 edges, 2^24 features "
                       "and 65536 parts", name);
    describe(&m, &whole);
    gs_chunk *const chunks = gs_calloc(2 * (uint64_t)m.info.parts * m.info.parts, sizeof(*chunks));
    GS_NEED(chunks != NULL, "%s: no memory for tables of %u parts", name, m.info.parts);
    if ((st = fill(chunks, &m, &whole, name)) == GS_OK) {
        m.info.total_bytes = bytes_of(&m);
        st = gs_store__of_table(out, name, &m, chunks, whole.fuller);
    }
    if (st != GS_OK)
        gs_free(chunks);
    return st;
}

/* ---- the rows that chunks name ------------------------------------------- */

/* Vigna's splitmix64 at a place of its sequence. */
static uint64_t drawn(uint64_t place)
{
    uint64_t z = place * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Each granule with the probability that one of its rows is named, a lot with that of a row. A row has as many edges in
 * each chunk as in all others: `below` is of rows that are so many times in the fuller half. */
void gs_store_draw_needs(const gs_store *s, gs_direction d, gs_granules g, bool lots, uint64_t *bits)
{
    const uint32_t named_of = lots ? 1 : g.rows;
    const double fuller = gs_store__fuller(s);
    const gs_chunk_table *const t = gs_store_chunks(s);
    const uint64_t chunks = (uint64_t)t->parts * t->parts;

    for (uint64_t k = 0; k < chunks; k++) {
        const uint32_t j = (uint32_t)(k % t->parts), rows = gs_interval_rows(t, j);
        const double each = (double)t->chunk[d][k].edges / rows;
        uint64_t below[HALVINGS + 1];
        for (uint32_t h = 0; h <= HALVINGS; h++) {
            const double named = named_of == 1 ? -expm1(-each * edges_of(fuller, h))
                                               : gs_shape_named(fuller, each, GS_MIN(named_of, rows));
            below[h] = named >= 1 ? UINT64_MAX : (uint64_t)(named * 0x1p64);
        }
        for (uint32_t at = 0; at < gs_div_up(rows, g.rows); at++) {
            const uint64_t of_row = drawn((2 * chunks + d * t->parts + j) * t->interval_rows + at);
            const uint64_t most = below[__builtin_popcountll(of_row >> (64 - HALVINGS))];
            if (drawn((d * chunks + k) * t->interval_rows + at) <= most && most > 0)
                bits[k * g.words + at / 64] |= 1ull << (at % 64);
        }
    }
}
