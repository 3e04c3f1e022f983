/* LSTMs over edges (kernels/sequence.cu): which targets make tiles, and how many of them are under way at once.
 *
 * Targets are sorted by their edges, most first, on the host, GS_CUDA_SORTED at a time, each such slice a launch of its
 * own. The host does not see what is in the arena: where targets' edges begin, 4 bytes each, is copied back first,
 * while the launches before are still under way.
 * Backward, as many tiles as scratch has room for go through their windows together; after each window the
 * gradients of its edges are added to the operand rows, and to the weight's gradient by one product. Sizes alone
 * decide, so results are the same from run to run.
 */
#include "base/size.h"
#include "cuda/cuda_device.h"
#include "cuda/launch.h"
#include "cuda/streams.h"

#define DIGIT 256u /* of the sort */

typedef struct slice {
    const gs_cuda_sequence_code *code;
    const gs_sequence_launch *l;
    const uint32_t *order;
    const uint32_t *start; /* where edges begin of targets from `first` on, on the host */
    uint32_t first, count, param; /* targets with edges; of the weight, or GS_NONE */
    gs_sequence_args a;
    gs_cu_memory d_weight;
} slice;

static uint32_t degree_of(const slice *s, uint32_t t) { return s->start[t - s->first + 1] - s->start[t - s->first]; }

/* order[0..count) = targets from the slice's first on, those with most edges first, else as they come: a radix sort.
 * Returns how many have edges. */
static uint32_t sort_targets(uint32_t *order, uint32_t *spare, const slice *s, uint32_t count)
{
    uint32_t *from = order, *to = spare;
    for (uint32_t i = 0; i < count; i++)
        order[i] = s->first + i;
    for (uint32_t shift = 0; shift < 32; shift += 8) { /* four times: what is sorted ends in `order` */
        uint32_t place[DIGIT + 1] = {0};
        for (uint32_t i = 0; i < count; i++)
            place[DIGIT - (degree_of(s, from[i]) >> shift) % DIGIT]++;
        for (uint32_t d = 1; d <= DIGIT; d++)
            place[d] += place[d - 1];
        for (uint32_t i = 0; i < count; i++)
            to[place[DIGIT - 1 - (degree_of(s, from[i]) >> shift) % DIGIT]++] = from[i];
        uint32_t *const sorted = to;
        to = from;
        from = sorted;
    }
    while (count > 0 && degree_of(s, order[count - 1]) == 0)
        count--;
    return count;
}

/* ---- memory ---- */

/* Floats of a tile, by the levels that its longest sequence needs. */
static uint64_t tile_floats(const gs_sequence_kernel *k, uint32_t levels)
{
    const uint64_t cell = (uint64_t)k->rows * k->width;
    return GS_SEQUENCE_WINDOW * (5 * cell + k->rows) + (GS_SEQUENCE_WINDOW + 1) * cell +
           2ull * GS_SEQUENCE_BRANCH * levels * cell;
}

static uint64_t transposed_floats(const gs_sequence_kernel *k) { return gs_align_up(4ull * k->width * k->width, 64); }

uint64_t gs_cuda_sequence_bytes(const gs_cuda *c, const gs_sequence_kernel *k)
{
    const uint64_t share = gs_cuda_share(c, GS_CUDA_SEQUENCE_PARTS, 0, GS_CUDA_SEQUENCE_BYTES) / sizeof(float);
    const uint64_t wanted = GS_MIN(2ull * (uint64_t)c->processors * tile_floats(k, 1), share);
    return sizeof(float) * (transposed_floats(k) + GS_MAX(wanted, tile_floats(k, GS_SEQUENCE_LEVELS)));
}

static uint32_t levels_of(uint32_t steps)
{
    uint32_t levels = 0;
    for (uint64_t reach = GS_SEQUENCE_WINDOW; reach < steps; reach *= GS_SEQUENCE_BRANCH)
        levels++;
    return levels;
}

/* ---- a slice ---- */

/* Where scratch is, for `tiles` tiles. */
static void lay_out(const gs_cuda *c, slice *s, uint32_t tiles)
{
    const gs_sequence_kernel *const k = &s->code->k;
    const uint64_t cell = (uint64_t)k->rows * k->width, edges = (uint64_t)tiles * GS_SEQUENCE_WINDOW * k->rows;
    float *at = s->a.transposed + transposed_floats(k);
    (void)c;
    s->a.gate = at;
    s->a.before = at += edges * 4 * k->width;
    s->a.cells = at += edges * k->width;
    s->a.kept = at += (uint64_t)tiles * (GS_SEQUENCE_WINDOW + 1) * cell;
    s->a.row = (gs_u32 *)(at + 2ull * GS_SEQUENCE_BRANCH * s->a.levels * tiles * cell);
}

static gs_status transpose_weight(gs_cuda *c, slice *s)
{
    const uint32_t width = s->code->k.width;
    return gs_cuda_launch(c, c->code.transpose_weight, gs_cuda_blocks(4ull * width * width), 1, 0, &s->a,
                          "gs_transpose_weight");
}

static uint32_t shared_bytes(const gs_sequence_kernel *k)
{
    return k->rows * (6 * k->width + 1) * (uint32_t)sizeof(float);
}

static gs_status forward(gs_cuda *c, slice *s)
{
    const gs_sequence_kernel *const k = &s->code->k;
    GS_TRY(transpose_weight(c, s));
    return gs_cuda_launch(c, s->code->forward, gs_div_up(s->count, k->rows), 1, shared_bytes(k), &s->a, k->name);
}

/* One window of the tiles that still have one. */
static gs_status run_window(gs_cuda *c, slice *s, uint32_t tiles)
{
    const gs_sequence_kernel *const k = &s->code->k;
    GS_TRY(gs_cuda_launch(c, s->code->window, tiles, 1, shared_bytes(k), &s->a, k->name));

    s->a.edges = tiles * GS_SEQUENCE_WINDOW * k->rows;
    GS_TRY(gs_cuda_launch(c, c->code.scatter_gates, 2ull * (uint64_t)c->processors, 1,
                          (GS_BLOCK_LANES + GS_BLOCK_LANES / 32) * 4, &s->a, "gs_scatter_gates"));
    if (s->d_weight != 0)
        return gs_cuda_multiply(c, true, false, 4 * k->width, k->width, s->a.edges, (gs_cu_memory)s->a.gate,
                                4 * k->width, (gs_cu_memory)s->a.before, k->width, 1.0f, s->d_weight);
    return GS_OK;
}

static uint32_t windows_of(const slice *s, uint32_t at)
{
    return (uint32_t)gs_div_up(degree_of(s, s->order[at]), GS_SEQUENCE_WINDOW);
}

static gs_status backward(gs_cuda *c, slice *s)
{
    const gs_sequence_kernel *const k = &s->code->k;
    const uint64_t room = c->state.scratch_bytes / sizeof(float) - transposed_floats(k);
    gs_status st = transpose_weight(c, s);

    for (uint32_t first = 0, tiles; first < s->count && st == GS_OK; first += tiles * k->rows) {
        s->a.first = first;
        s->a.levels = levels_of(degree_of(s, s->order[first]));
        tiles = (uint32_t)GS_MIN(gs_div_up(s->count - first, k->rows), room / tile_floats(k, s->a.levels));
        lay_out(c, s, tiles);
        const uint32_t rounds = windows_of(s, first);
        uint32_t busy = tiles;
        for (s->a.round = 0; s->a.round < rounds && st == GS_OK; s->a.round++) {
            while (windows_of(s, first + (busy - 1) * k->rows) <= s->a.round)
                busy--;
            st = run_window(c, s, busy);
        }
    }
    return st;
}

static uint32_t param_of(const gs_cuda *c, const float *weight)
{
    for (uint32_t i = 0; c->in_pass && c->pass.param != NULL && i < c->program->params; i++)
        if (c->pass.param[i] == weight)
            return i;
    return GS_NONE;
}

/* The weight is one of the pass's parameters, or in the arena. */
static void set_args(const gs_cuda *c, slice *s)
{
    const gs_sequence_launch *const l = s->l;
    const gs_edges *const e = &l->edges;
    const bool own = s->param == GS_NONE;
    s->a = (gs_sequence_args){.target = e->target,
                              .index = e->index,
                              .type = e->type,
                              .start = e->start,
                              .order = (const gs_u32 *)(c->state.at + c->state.order_offset),
                              .gates = l->gates,
                              .weight = own ? l->weight : (const float *)gs_cuda_param(c, s->param),
                              .transposed = (float *)(c->state.at + c->state.scratch_offset),
                              .state = l->state,
                              .cell = l->cell,
                              .d_state = l->d_state,
                              .d_cell = l->d_cell,
                              .d_gates = l->d_gates,
                              .targets = s->count,
                              .width = l->width,
                              .index_bytes = e->index_bytes,
                              .type_bytes = e->type_bytes};
    s->d_weight = l->d_weight == NULL ? 0 : own ? (gs_cu_memory)l->d_weight : gs_cuda_grad(c, s->param);
}

/* start[0..count]: where edges begin of `count` targets from `first` on, and where those of the last end. */
static gs_status find_starts(gs_cuda *c, const gs_sequence_launch *l, uint32_t first, uint32_t count, uint32_t *start)
{
    static const char what[] = "copying the sizes of a chunk";
    const gs_cu_memory there = (gs_cu_memory)(uintptr_t)(l->edges.start + first);
    const uint64_t bytes = (count + 1ull) * sizeof(*start);
    GS_TRY(gs_cuda_enter(c));
    c->streams.copied.out += bytes;
    GS_TRY(gs_cuda_check(c, c->d->copy_out(start, there, bytes, c->chain.starts), what));
    return gs_cuda_check(c, c->d->stream_synchronize(c->chain.starts), what);
}

static gs_status copy_order(gs_cuda *c, const slice *s)
{
    return gs_cuda_copy_in(c, c->state.at + c->state.order_offset, s->order, s->count * sizeof(*s->order),
                           "copying an order");
}

static gs_status run_slice(gs_cuda *c, const gs_cuda_sequence_code *code, const gs_sequence_launch *l, uint32_t first,
                           uint32_t count, bool back)
{
    uint32_t *const spare = c->state.order + GS_CUDA_FLIGHT * GS_CUDA_SORTED, *const start = spare + GS_CUDA_SORTED;
    slice s = {.code = code, .l = l, .start = start, .first = first, .param = param_of(c, l->weight)};
    gs_status st;

    GS_TRY(find_starts(c, l, first, count, start));
    st = gs_cuda_begin(c);
    /* nobody reads it any more */
    uint32_t *const order = c->state.order + c->streams.ticket % GS_CUDA_FLIGHT * GS_CUDA_SORTED;
    s.order = order;
    s.count = st == GS_OK ? sort_targets(order, spare, &s, count) : 0;
    if (s.count > 0 && (st = copy_order(c, &s)) == GS_OK) {
        set_args(c, &s);
        st = back ? backward(c, &s) : forward(c, &s);
    }
    return gs_cuda_end(c, st);
}

static gs_status run(gs_cuda *c, const gs_sequence_launch *l, bool back)
{
    const gs_cuda_sequence_code *code = NULL;
    const uint32_t targets = l->edges.targets;

    for (uint32_t i = 0; i < c->code.sequences; i++)
        if (c->code.sequence[i].k.width == l->width)
            code = &c->code.sequence[i];
    if (code == NULL)
        return gs_fail(GS_EINVAL, "device cuda: an lstm of width %u that was not prepared for", l->width);
    for (uint32_t first = 0; first < targets; first += GS_MIN(GS_CUDA_SORTED, targets - first))
        GS_TRY(run_slice(c, code, l, first, GS_MIN(GS_CUDA_SORTED, targets - first), back));
    return GS_OK;
}

gs_status gs_cuda_run_sequence(void *context, const gs_sequence_launch *l) { return run(context, l, false); }
gs_status gs_cuda_run_sequence_back(void *context, const gs_sequence_launch *l) { return run(context, l, true); }
