/* fennel.c - one streaming pass that puts each vertex where its neighbours are.
 *
 * Tsourakakis et al., "FENNEL: streaming graph partitioning for massive scale
 * graphs", WSDM 2014, with gamma 3/2: vertex v goes to the interval i with the
 * largest |N(v) in i| - alpha * gamma * sqrt(|i|), alpha = m * sqrt(P) / N^1.5,
 * among those with room. Only smaller ids are placed when v comes, so only
 * edges to smaller ids are needed. Sequential, hence the same on any machine.
 */
#include "partition/fennel.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/grid.h"

#define AHEAD_NEIGHBOURS 64u

struct gs_fennel {
    gs_part_grid grid;
    uint32_t *part; /* the caller's */
    double scale;   /* alpha * gamma */
    double *cost;   /* [P] scale * sqrt(size) */
    uint32_t *size, *room; /* [P] */
    uint32_t *near; /* [P] neighbours of the current vertex in each interval */
    uint32_t *touched; /* [P] intervals with near != 0 */
    /* Intervals by ascending size, so that the emptiest is known: */
    uint32_t *ranked, *rank; /* [P] permutation and its inverse */
    uint32_t *neighbour; /* [neighbour_cap] of the block, by vertex */
    uint32_t *start;     /* [start_cap] */
    uint64_t neighbour_cap, start_cap;
};

void gs_part__fennel_free(gs_fennel *f)
{
    if (f == NULL)
        return;
    gs_free(f->cost);
    gs_free(f->size);
    gs_free(f->room);
    gs_free(f->near);
    gs_free(f->touched);
    gs_free(f->ranked);
    gs_free(f->rank);
    gs_free(f->neighbour);
    gs_free(f->start);
    gs_free(f);
}

gs_status gs_part__fennel_make(gs_fennel **out, const gs_part_grid *grid, uint64_t edges, bool symmetric,
                               uint32_t *part)
{
    const uint32_t parts = grid->parts;
    const double n = (double)grid->vertices, m = symmetric ? (double)edges / 2 : (double)edges;
    gs_fennel *f = gs_calloc(1, sizeof(*f));

    if (f == NULL)
        return gs_fail(GS_ENOMEM, "no memory for ordering");
    f->grid = *grid;
    f->part = part;
    /* A symmetric edge is seen twice, so twice the scale keeps the balance. */
    f->scale = 1.5 * (symmetric ? 2 : 1) * m * sqrt((double)parts) / (n * sqrt(n));
    f->cost = gs_calloc(parts, sizeof(*f->cost));
    f->size = gs_calloc(parts, 4);
    f->room = gs_calloc(parts, 4);
    f->near = gs_calloc(parts, 4);
    f->touched = gs_calloc(parts, 4);
    f->ranked = gs_calloc(parts, 4);
    f->rank = gs_calloc(parts, 4);
    if (!f->cost || !f->size || !f->room || !f->near || !f->touched || !f->ranked || !f->rank) {
        gs_part__fennel_free(f);
        return gs_fail(GS_ENOMEM, "no memory for ordering by %u intervals", parts);
    }
    for (uint32_t i = 0; i < parts; i++) {
        f->room[i] = gs_part__grid_capacity(grid, i);
        f->ranked[i] = f->rank[i] = i;
    }
    *out = f;
    return GS_OK;
}

/* Neighbours by vertex, as CSR: counts, places, fill. */
static gs_status group(gs_fennel *f, uint64_t first, uint64_t vertices, const uint32_t *records, uint64_t count,
                       uint32_t words)
{
    if (count > f->neighbour_cap) {
        gs_free(f->neighbour);
        f->neighbour_cap = 0;
        if ((f->neighbour = gs_malloc_array(count, 4)) == NULL)
            return gs_fail(GS_ENOMEM, "no memory for the neighbours of a block of %llu edges",
                           (unsigned long long)count);
        f->neighbour_cap = count;
    }
    if (vertices + 2 > f->start_cap) {
        gs_free(f->start);
        f->start_cap = 0;
        if ((f->start = gs_malloc_array(vertices + 2, 4)) == NULL)
            return gs_fail(GS_ENOMEM, "no memory for a block of %llu vertices", (unsigned long long)vertices);
        f->start_cap = vertices + 2;
    }
    uint32_t *const place = f->start + 1; /* counts two ahead, so that filling leaves starts behind */
    memset(f->start, 0, (vertices + 2) * 4);
    for (const uint32_t *r = records; r < records + count * words; r += words)
        place[GS_MAX(r[0], r[1]) - first + 1]++;
    for (uint64_t i = 1; i <= vertices; i++)
        place[i] += place[i - 1];
    for (const uint32_t *r = records; r < records + count * words; r += words)
        f->neighbour[place[GS_MAX(r[0], r[1]) - first]++] = GS_MIN(r[0], r[1]);
    return GS_OK;
}

/* The interval with least in it that has room: full ones are at the end, but
 * for the last interval, whose capacity may be less than another's size. */
static uint32_t emptiest(const gs_fennel *f)
{
    uint32_t k = 0;
    while (f->room[f->ranked[k]] == 0)
        k++;
    return f->ranked[k];
}

/* One vertex more in interval i; keeps `ranked` sorted: i trades places with
 * the last interval of its size. */
static void grow(gs_fennel *f, uint32_t i)
{
    uint32_t last = f->rank[i], beyond = f->grid.parts; /* sizes at last and beyond: equal, larger */
    while (beyond - last > 1) {
        const uint32_t middle = last + (beyond - last) / 2;
        if (f->size[f->ranked[middle]] == f->size[i])
            last = middle;
        else
            beyond = middle;
    }
    const uint32_t other = f->ranked[last], from = f->rank[i];
    f->ranked[from] = other;
    f->rank[other] = from;
    f->ranked[last] = i;
    f->rank[i] = last;
    f->size[i]++;
    f->room[i]--;
    f->cost[i] = f->scale * sqrt((double)f->size[i]);
}

static void place_vertex(gs_fennel *f, uint32_t v, const uint32_t *neighbour, uint32_t degree)
{
    uint32_t touched = 0, best = emptiest(f);

    for (uint32_t k = 0; k < degree; k++) {
        if (neighbour[k] == v) /* a self loop pulls nowhere */
            continue;
        const uint32_t i = f->part[neighbour[k]];
        if (f->near[i]++ == 0)
            f->touched[touched++] = i;
    }
    double score = (double)f->near[best] - f->cost[best];
    for (uint32_t k = 0; k < touched; k++) {
        const uint32_t i = f->touched[k];
        const double s = (double)f->near[i] - f->cost[i];
        /* ties to the lower number: the order of `touched` must not matter */
        if (f->room[i] != 0 && (s > score || (s == score && i < best))) {
            score = s;
            best = i;
        }
    }
    for (uint32_t k = 0; k < touched; k++)
        f->near[f->touched[k]] = 0;
    f->part[v] = best;
    grow(f, best);
}

gs_status gs_part__fennel_block(gs_fennel *f, uint64_t first, uint64_t vertices, const uint32_t *records,
                                uint64_t count, uint32_t words)
{
    const gs_status st = group(f, first, vertices, records, count, words);
    if (st != GS_OK)
        return st;
    uint64_t ahead = 0; /* neighbours whose intervals are on their way into the cache */
    for (uint64_t i = 0; i < vertices; i++) {
        for (const uint64_t to = GS_MIN(f->start[i] + AHEAD_NEIGHBOURS, count); ahead < to; ahead++)
            __builtin_prefetch(&f->part[f->neighbour[ahead]]);
        place_vertex(f, (uint32_t)(first + i), f->neighbour + f->start[i], f->start[i + 1] - f->start[i]);
    }
    return GS_OK;
}
