/* Batches of neighbours (kernels/draw.cu): launches in the stream of copies from the host, each of as many lanes as
 * there can be rows or edges, so that nothing is waited for but the counts. */
#include "base/alloc.h"
#include "base/size.h"
#include "cuda/cuda_device.h"
#include "cuda/launch.h"
#include "cuda/streams.h"

_Static_assert(GS_DEVICE_DRAW_HOPS == GS_DRAW_HOPS && sizeof(gs_draw_counts) == sizeof(gs_draw_state),
               "what kernels count is what comes back");

/* At most half full of rows; what a hop reaches besides, for which there is no room, has a place, too. */
static uint32_t table_bits(uint64_t rows, uint64_t edges)
{
    uint32_t bits = 6;
    while (1ull << bits < GS_MAX(2 * rows, rows + edges + 1))
        bits++;
    return bits;
}

static uint64_t lay_out(gs_draw_args *a, uint8_t *memory, const gs_draw_launch *l)
{
    const uint32_t rows = l->most_rows, edges = l->most_edges;
    gs_placing placing = {.memory = memory, .align = 256}, *const p = &placing;
    a->bits = table_bits(rows, edges);
    a->state = gs_place_array(p, 1, sizeof(*a->state));
    a->slot = gs_place_array(p, 1ull << a->bits, sizeof(*a->slot));
    a->sums = gs_place_array(p, gs_cuda_blocks(GS_MAX(rows, edges)), sizeof(*a->sums));
    a->slot_of = gs_place_array(p, rows, sizeof(*a->slot_of));
    a->start = gs_place_array(p, rows + 1ull, sizeof(*a->start));
    a->count = gs_place_array(p, 2ull * rows, sizeof(*a->count));
    a->begin = gs_place_array(p, rows, sizeof(*a->begin));
    a->source = gs_place_array(p, edges, sizeof(*a->source));
    a->row = gs_place_array(p, edges, sizeof(*a->row));
    a->at = gs_place_array(p, edges, sizeof(*a->at));
    a->fresh = gs_place_array(p, edges, sizeof(*a->fresh));
    a->type_of = gs_place_array(p, l->type_bytes > 0 ? edges : 0, sizeof(*a->type_of));
    a->weight_of = gs_place_array(p, l->weights ? edges : 0, sizeof(*a->weight_of));
    a->placed = a->fresh; /* which no edge needs any more then */
    a->many = a->begin;   /* which is of lists alone */
    return p->bytes;
}

uint64_t gs_cuda_draw_bytes(const gs_draw_launch *l)
{
    gs_draw_args a;
    return lay_out(&a, NULL, l);
}

/* A batch on its way. */
typedef struct drawing {
    gs_cuda *c;
    const gs_draw_launch *l;
    gs_draw_args a;
    uint64_t rows, edges; /* that the hop at hand can have */
} drawing;

static gs_status run(drawing *d, int which, uint64_t lanes)
{
    return gs_cuda_launch_in(d->c, d->c->streams.in, d->c->fixed[which], gs_cuda_blocks(lanes), 1, GS_DRAW_SHARED,
                             &d->a, gs_cuda_fixed_name(which));
}

static gs_status fill(const drawing *d, void *memory, unsigned char value, uint64_t bytes)
{
    return gs_cuda_check(d->c, d->c->d->fill((gs_cu_memory)memory, value, bytes, d->c->streams.in), "drawing");
}

static gs_status draw_targets(drawing *d)
{
    const gs_draw_launch *const l = d->l;

    GS_TRY(fill(d, d->a.slot, 0xff, sizeof(*d->a.slot) << d->a.bits));
    GS_TRY(fill(d, d->a.state, 0, sizeof(*d->a.state)));
    GS_TRY(gs_cuda_check(d->c, d->c->d->copy_in((gs_cu_memory)l->vertex, l->targets,
                                                l->targets_held * sizeof(*l->targets), d->c->streams.in),
                         "copying the targets of a batch"));
    return run(d, GS_CUDA_DRAW_TARGETS, l->targets_held);
}

static gs_status draw_hop(drawing *d, uint32_t hop)
{
    static const int of_edges[] = {GS_CUDA_DRAW_FIND, GS_CUDA_DRAW_NEW, GS_CUDA_DRAW_ROWS, GS_CUDA_DRAW_SOURCES};

    d->a.hop = hop;
    d->a.fanout = d->l->fanout[hop];
    d->edges = GS_MIN(d->rows * d->a.fanout * GS_MAX(d->l->by_types, 1), d->l->most_edges);
    GS_TRY(d->l->weighted ? run(d, GS_CUDA_DRAW_COUNT_WEIGHTED, d->rows * 32) : GS_OK);
    GS_TRY(run(d, GS_CUDA_DRAW_COUNT, d->rows));
    GS_TRY(run(d, GS_CUDA_DRAW_PLACES, d->rows));
    GS_TRY(d->l->weighted ? run(d, GS_CUDA_DRAW_WEIGHTED, d->rows * 32) : run(d, GS_CUDA_DRAW_EDGES, d->rows));
    for (size_t k = 0; k < GS_ARRAY_LEN(of_edges); k++)
        GS_TRY(run(d, of_edges[k], d->edges));
    d->rows = GS_MIN(d->edges, d->l->most_rows);
    return GS_OK;
}

static gs_status make_list(drawing *d, uint32_t number)
{
    const gs_draw_list *const list = &d->l->list[number];
    const uint64_t rows = d->l->most_rows, edges = d->l->most_edges;
    const bool by_source = list->operands > 0;

    d->a.list = number;
    d->a.operands = list->operands;
    d->a.list_target = list->target;
    d->a.list_index = list->index;
    d->a.list_type = list->type;
    d->a.list_weight = list->weight;
    d->a.list_start = list->start;
    if (by_source) {
        GS_TRY(fill(d, d->a.count, 0, 2 * rows * sizeof(*d->a.count)));
        GS_TRY(run(d, GS_CUDA_DRAW_COUNT_SOURCES, edges));
    }
    GS_TRY(run(d, GS_CUDA_DRAW_COUNT_LISTED, rows));
    GS_TRY(run(d, GS_CUDA_DRAW_LIST, rows));
    if (by_source)
        GS_TRY(run(d, GS_CUDA_DRAW_PLACE, edges));
    return run(d, by_source ? GS_CUDA_DRAW_BY_SOURCE : GS_CUDA_DRAW_BY_ROW, edges);
}

static gs_draw_args args_of(const gs_draw_launch *l)
{
    gs_draw_args a = {.first = l->first, .other = l->other, .type = l->type_bytes > 0 ? l->type : NULL,
                      .weight = l->weights ? l->weight : NULL, .weighted = l->weighted, .by_type = l->by_types > 0,
                      .type_bytes = l->type_bytes, .vertex = l->vertex, .in_degree = l->in_degree,
                      .split = l->split, .loops = l->loops, .own = l->own,
                      .most_rows = l->most_rows, .most_edges = l->most_edges, .index_bytes = l->index_bytes,
                      .hops = l->hops, .targets = l->targets_held, .key = {l->key[0], l->key[1]},
                      .batch = l->number, .epoch = l->epoch, .in_split = l->in_split, .out_split = l->out_split};
    lay_out(&a, l->scratch, l);
    a.taken = a.count + l->most_rows;
    return a;
}

gs_status gs_cuda_draw(void *context, const gs_draw_launch *l, gs_draw_counts *out)
{
    drawing d = {.c = context, .l = l, .a = args_of(l), .rows = l->targets_held};
    gs_cuda *const c = d.c;

    GS_TRY(gs_cuda_enter(c));
    GS_TRY(draw_targets(&d));
    for (uint32_t h = 0; h < l->hops; h++)
        GS_TRY(draw_hop(&d, h));
    for (uint32_t k = 0; k < l->lists; k++)
        GS_TRY(make_list(&d, k));
    GS_TRY(run(&d, GS_CUDA_DRAW_FINISH, l->most_rows));
    GS_TRY(gs_cuda_check(c, c->d->copy_out(out, (gs_cu_memory)d.a.state, sizeof(*out), c->streams.in),
                         "copying the counts of a batch"));
    return gs_cuda_check(c, c->d->stream_synchronize(c->streams.in), "drawing a batch");
}
