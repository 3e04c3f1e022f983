/* Kernels over the edges of a chunk: sums of rows, and those of edge programs. */
#include "cuda/launch_edges.h"

#include <string.h>

#include "base/philox.h"
#include "base/size.h"
#include "cuda/context.h"
#include "cuda/cuda_device.h"
#include "cuda/streams.h"

_Static_assert(sizeof(gs_edge_args) <= 4096, "arguments of a kernel are at most 4 KiB");

/* Bytes of the sums of a piece, which may begin one target and end another. */
static uint64_t sums_bytes(const gs_edge_kernel *k) { return 2 * sizeof(float) * (uint64_t)k->row_floats; }

/* Stretches that the edges of a chunk are cut in for hubs, at the most: by the kernel and the budget alone. */
static uint32_t stretches_of(uint64_t hub_bytes, const gs_edge_kernel *k)
{
    return (uint32_t)GS_MAX(GS_MIN(hub_bytes / GS_MAX(sums_bytes(k), 1), GS_CUDA_PIECES), 1u);
}

uint32_t gs_cuda_piece_edges(uint64_t hub_bytes, const gs_edge_kernel *k, uint32_t edges)
{
    const uint32_t each = GS_MIN(GS_MAX(edges / GS_CUDA_PIECES, GS_CUDA_PIECE_LEAST), GS_CUDA_PIECE_MOST);
    return GS_MAX(each, (uint32_t)gs_div_up(edges, stretches_of(hub_bytes, k)));
}

static uint64_t hub_share(const gs_cuda *c)
{
    return gs_cuda_share(c, GS_CUDA_HUB_PARTS, GS_CUDA_HUB_LEAST, GS_CUDA_HUB_BYTES);
}

uint64_t gs_cuda_hub_bytes(const gs_cuda *c, const gs_edge_kernel *k)
{
    return k->row_floats > 0 ? GS_MAX(hub_share(c), sums_bytes(k)) : 0;
}

gs_cuda_edges gs_cuda_edges_of(const gs_edges *e)
{
    return (gs_cuda_edges){.chunk = {.target = e->target,
                                     .index = e->index,
                                     .start = e->start,
                                     .type = e->type,
                                     .weight = e->weight,
                                     .targets = e->targets,
                                     .edges = (uint32_t)e->end},
                           .all = {.index_bytes = e->index_bytes, .type_bytes = e->type == NULL ? 0 : e->type_bytes},
                           .largest = e->largest};
}

/* ---- launches of several chunks ---- */

/* Hubs are cut by the chunk's size, so that results do not depend on what is launched when. Where no target has more
 * edges than a piece, there is nothing to cut, and the sums are the same as if there were pieces. */
static void cut_hubs(const gs_cuda *c, gs_edge_chunk *chunk, const gs_edge_kernel *k, uint64_t largest)
{
    chunk->piece_edges = gs_cuda_piece_edges(hub_share(c), k, chunk->edges);
    chunk->pieces = 0;
    if (chunk->edges > chunk->piece_edges && (largest == 0 || largest > chunk->piece_edges))
        chunk->pieces = (uint32_t)gs_div_up(chunk->edges, chunk->piece_edges);
}

static uint64_t blocks_of(const gs_edge_kernel *k, uint64_t items)
{
    return gs_div_up(items, GS_BLOCK_LANES / k->lanes);
}

/* Has the launch room for one more chunk, with which it has all in common that chunks must have? */
static bool takes(const gs_cuda *c, const gs_cuda_edge_code *code, const gs_edge_common *all,
                  const gs_edge_chunk *chunk)
{
    const gs_cuda_held *const h = code->held;
    const uint64_t slots = h->slots + 2ull * chunk->pieces;
    return memcmp(&h->args.all, all, sizeof(*all)) == 0 && h->args.chunks < GS_EDGE_CHUNKS &&
           (h->args.chunks + 1) * code->k.owns <= GS_EDGE_POINTERS &&
           slots * code->k.row_floats * sizeof(float) <= c->state.scratch_bytes &&
           h->blocks + blocks_of(&code->k, chunk->targets + 2ull * chunk->pieces) <= INT32_MAX;
}

/* Launches the chunks that are held, if there are any, and their hubs' pieces are added up. */
static gs_status launch_held(gs_cuda *c, const gs_cuda_edge_code *code)
{
    const gs_edge_kernel *const k = &code->k;
    gs_cuda_held *const h = code->held;
    gs_status st = gs_cuda_launch(c, code->run, h->blocks, k->slices,
                                  GS_BLOCK_LANES / k->lanes * k->shared_floats * (uint32_t)sizeof(float), &h->args,
                                  k->name);
    if (st == GS_OK && !k->keeps)
        st = gs_cuda_launch(c, code->merge, h->merges, k->slices, 0, &h->args, k->name);
    h->args.chunks = 0;
    h->blocks = h->merges = h->slots = 0;
    return st;
}

/* One more chunk, with its own pointers own[code->k.owns]; launched now, or with those that come after it. */
static gs_status add_chunk(gs_cuda *c, const gs_cuda_edge_code *code, const gs_cuda_edges *e, float *const *own)
{
    gs_cuda_held *const h = code->held;
    gs_edge_chunk chunk = e->chunk;
    gs_status st = GS_OK;

    cut_hubs(c, &chunk, &code->k, e->largest);
    if (h->args.chunks > 0 && !takes(c, code, &e->all, &chunk))
        st = launch_held(c, code);
    chunk.partial = (float *)(c->state.at + c->state.scratch_offset) + h->slots * code->k.row_floats;
    chunk.first_block = (uint32_t)h->blocks;
    chunk.first_merge = (uint32_t)h->merges;
    h->blocks += blocks_of(&code->k, chunk.targets + 2ull * chunk.pieces);
    h->merges += blocks_of(&code->k, 2ull * chunk.pieces);
    h->slots += 2ull * chunk.pieces;
    h->args.all = e->all;
    h->args.owns = code->k.owns;
    memcpy(&h->args.own[h->args.chunks * code->k.owns], own, code->k.owns * sizeof(*own));
    h->args.chunk[h->args.chunks++] = chunk;
    /* steps of a burst by type find what the ones before have made */
    return st == GS_OK && (!c->grouping || e->all.place != NULL) ? launch_held(c, code) : st;
}

gs_status gs_cuda_begin_group(void *context)
{
    gs_cuda *const c = context;
    const gs_status st = gs_cuda_begin(c);
    c->grouping = true;
    return st;
}

gs_status gs_cuda_end_group(void *context, gs_status st)
{
    gs_cuda *const c = context;
    c->grouping = false;
    for (uint32_t i = 0; i < c->code.edges; i++) {
        gs_cuda_held *const h = c->code.edge[i].held;
        if (st == GS_OK && h->args.chunks > 0)
            st = launch_held(c, &c->code.edge[i]);
        h->args.chunks = 0;
        h->blocks = h->merges = h->slots = 0;
    }
    return gs_cuda_end(c, st);
}

/* ---- sums of rows ---- */

static const gs_cuda_edge_code *find_rows(const gs_cuda *c, const gs_row_sums *rows)
{
    for (uint32_t i = 0; i < c->code.edges; i++)
        if (gs_cuda_sums_rows(&c->code.edge[i], rows))
            return &c->code.edge[i];
    return NULL;
}

gs_status gs_cuda_run_edges(void *context, const gs_edge_launch *l)
{
    gs_cuda *const c = context;
    const gs_sum_types by = l->types == 0 ? GS_TYPES_NONE : l->pick ? GS_TYPES_OF_ROWS : GS_TYPES_OF_SUM;
    const gs_row_sums rows = {by, l->width, GS_MAX(l->types, 1), l->dtype, l->scale != NULL};
    const gs_cuda_edge_code *const code = find_rows(c, &rows);
    gs_cuda_edges e = gs_cuda_edges_of(&l->edges);
    gs_status st = gs_cuda_begin(c);

    if (code == NULL)
        st = gs_fail(GS_EINVAL, "device cuda: not prepared for sums of%s rows of %u %s of %u types",
                     rows.scaled ? " scaled" : "", l->width, gs_dtype_name(l->dtype), rows.types);
    e.chunk.weight = NULL;
    if (l->types == 0) {
        e.chunk.type = NULL;
        e.all.type_bytes = 0;
    }
    e.all.in[0] = l->operand;
    e.all.in[1] = l->scale;
    if (st == GS_OK)
        st = add_chunk(c, code, &e, &l->acc);
    return gs_cuda_end(c, st);
}

/* ---- kernels of edge programs ---- */

static float *own_of(const gs_cuda *c, const gs_cuda_edge_run *r, const gs_edge_kernel *k, const gs_kernel_own *own)
{
    const gs_accumulator *const sum = &r->l->sum[k->sum[own->kind == GS_OWN_ROWS ? 0 : own->index]];
    return own->kind == GS_OWN_ROWS      ? (float *)c->where[own->index]
           : own->kind == GS_OWN_ACC     ? sum->acc
           : own->kind == GS_OWN_MAXIMUM ? sum->maximum
                                         : sum->norm;
}

/* Keys of Philox's rounds for the kernel's first mask (kernels/common.cu). */
static void make_round_keys(gs_edge_common *all, const gs_edge_program_launch *l, uint32_t site)
{
    uint32_t key[2];
    gs_random_edge_key(key, l->seed, site, l->epoch);
    for (uint32_t i = 0; i < GS_ROUND_KEYS / 2; i++) {
        all->round[2 * i] = key[0] + i * GS_PHILOX_W0;
        all->round[2 * i + 1] = key[1] + i * GS_PHILOX_W1;
    }
}

gs_status gs_cuda_run_edge_kernel(gs_cuda *c, const gs_cuda_edge_run *r, const gs_cuda_edge_code *code, float *kept)
{
    const gs_edge_kernel *const k = &code->k;
    float *own[GS_EDGE_OWNS];
    gs_cuda_edges e = r->edges;
    if (k->draws)
        make_round_keys(&e.all, r->l, k->site);
    for (uint32_t q = 0; q < k->inputs; q++)
        e.all.in[q] = (const float *)(k->input[q].param ? gs_cuda_param(c, k->input[q].index)
                                                        : c->where[k->input[q].index]);
    for (uint32_t q = 0; q < k->owns; q++)
        own[q] = k->keeps && k->own[q].kind == GS_OWN_ACC ? kept : own_of(c, r, k, &k->own[q]);
    return add_chunk(c, code, &e, own);
}

gs_status gs_cuda_run_edge_kernels(gs_cuda *c, const gs_cuda_edge_run *r)
{
    const uint32_t stage = (uint32_t)(r->l->stage - r->l->program->stage);
    gs_status st = GS_OK;
    for (uint32_t i = 0; i < c->code.edges && st == GS_OK; i++)
        if (c->code.edge[i].stage == stage && !c->code.edge[i].k.keeps)
            st = gs_cuda_run_edge_kernel(c, r, &c->code.edge[i], NULL);
    return st;
}
