/* sampler.c - opens a sampler and hands each batch to the kind that draws it. */
#include "sample/sampler.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "sample/sample_internal.h"

static bool is_saint(const gs_sampler_options *o)
{
    return o->kind == GS_SAMPLER_SAINT_NODE || o->kind == GS_SAMPLER_SAINT_EDGE || o->kind == GS_SAMPLER_SAINT_WALK;
}

static gs_status check_neighbor(const gs_sampler_options *o, const gs_adjacency *in, uint32_t targets)
{
    if (targets == 0)
        return gs_fail(GS_EINVAL, "no vertex is to be trained, so there is none to draw the neighbours of");
    if (o->hops == 0 || o->hops > GS_SAMPLE_HOPS)
        return gs_fail(GS_EINVAL, "fanouts of %u hops: give 1 to %u", o->hops, GS_SAMPLE_HOPS);
    if (o->weighted && in->weight == NULL)
        return gs_fail(GS_EINVAL, "edges are to be drawn by weight, and the store has no weights");
    if (o->by_type && in->type == NULL)
        return gs_fail(GS_EINVAL, "edges are to be drawn by type, and the store has no types");
    for (uint64_t k = 0; o->weighted && k < in->edges; k++)
        if (in->weight[k] < 0)
            return gs_fail(GS_EINVAL, "edges are to be drawn by weight, and one has the weight %g",
                           (double)in->weight[k]);
    return GS_OK;
}

static gs_status check_options(const gs_sampler_options *o, const gs_adjacency *in, uint32_t targets)
{
    if (o->batch_size == 0)
        return gs_fail(GS_EINVAL, "batches of 0: give a batch size of 1 or more");
    if (o->kind == GS_SAMPLER_NEIGHBOR)
        return check_neighbor(o, in, targets);
    if (o->kind == GS_SAMPLER_CLUSTER && o->batch_size > in->parts)
        return gs_fail(GS_EINVAL, "batches of %u intervals, and the store has %u: give a batch size of fewer",
                       o->batch_size, in->parts);
    if (is_saint(o) && in->edges == 0)
        return gs_fail(GS_EINVAL, "the graph has no edges to draw a subgraph by");
    if (o->kind == GS_SAMPLER_SAINT_WALK && o->walk_length == 0)
        return gs_fail(GS_EINVAL, "walks of no edge: give a walk length of 1 or more");
    return GS_OK;
}

static gs_status copy_targets(gs_sampler *s, const uint32_t *target, uint32_t targets)
{
    const uint64_t words = gs_div_up(s->in->vertices, 64);
    const bool bits = s->options.kind != GS_SAMPLER_NEIGHBOR;

    s->targets = targets;
    s->target = gs_malloc_array(GS_MAX(targets, 1), sizeof(*s->target));
    if (bits)
        s->is_target = gs_calloc(words, sizeof(*s->is_target));
    if (s->target == NULL || (bits && s->is_target == NULL))
        return gs_fail(GS_ENOMEM, "no memory for the list of vertices that are trained");
    s->bytes += (uint64_t)targets * sizeof(*s->target) + (bits ? words * 8 : 0);
    for (uint32_t i = 0; i < targets; i++) {
        assert(target[i] < s->in->vertices && (i == 0 || target[i] > target[i - 1]));
        s->target[i] = target[i];
        if (bits)
            s->is_target[target[i] / 64] |= 1ull << (target[i] % 64);
    }
    return GS_OK;
}

static void count_batches(gs_sampler *s)
{
    const gs_sampler_options *o = &s->options;
    const uint64_t drawn = (uint64_t)o->batch_size * (o->kind == GS_SAMPLER_SAINT_EDGE   ? 2
                                                      : o->kind == GS_SAMPLER_SAINT_WALK ? o->walk_length + 1ull
                                                                                         : 1);
    s->things = o->kind == GS_SAMPLER_NEIGHBOR ? s->targets : s->in->parts;
    if (!is_saint(o))
        s->batches = (uint32_t)gs_div_up(s->things, o->batch_size);
    else
        s->batches = o->batches != 0 ? o->batches : (uint32_t)gs_div_up(s->in->vertices, drawn);
}

static gs_status check_limits(const gs_sampler *s)
{
    const gs_sampler_options *o = &s->options;
    char have[16], need[16];

    if (o->arena_bytes != 0 && s->limits.arena_bytes > o->arena_bytes)
        return gs_fail(GS_EBUDGET, "a batch takes %s at least, and %s are left: give smaller batches or more memory",
                       gs_size_format(need, sizeof(need), s->limits.arena_bytes),
                       gs_size_format(have, sizeof(have), o->arena_bytes));
    if (o->kind == GS_SAMPLER_NEIGHBOR && s->limits.vertices < GS_MIN(o->batch_size, s->targets))
        return gs_fail(GS_EBUDGET, "batches of %u vertices, and memory or a limit that holds %u: give smaller batches",
                       o->batch_size, s->limits.vertices);
    return GS_OK;
}

gs_status gs_sampler_open(gs_sampler **sampler, const gs_adjacency *in, const gs_adjacency *out,
                          const uint32_t *target, uint32_t targets, const gs_sampler_options *options)
{
    gs_sampler *s = NULL;
    gs_status st = check_options(options, in, targets);

    if (st != GS_OK)
        return st;
    if ((s = gs_calloc(1, sizeof(*s))) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for a sampler");
    *s = (gs_sampler){.in = in, .out = out, .options = *options, .bytes = sizeof(*s)};
    if (options->kind != GS_SAMPLER_NEIGHBOR)
        s->options.hops = 0;
    gs_random_key(s->key, options->seed, GS_RANDOM_SAMPLE);
    if ((st = copy_targets(s, target, targets)) != GS_OK)
        goto done;
    count_batches(s);
    if (is_saint(options) && (st = gs_saint__open(s)) != GS_OK)
        goto done;
    gs_sample__bounds(&s->limits, s);
    if ((st = check_limits(s)) != GS_OK)
        goto done;
    if (is_saint(options) && options->coverage > 0)
        st = gs_saint__cover(s);
done:
    if (st == GS_OK)
        *sampler = s;
    else
        gs_sampler_close(s);
    return st;
}

void gs_sampler_close(gs_sampler *s)
{
    if (s == NULL)
        return;
    gs_free(s->target);
    gs_free(s->is_target);
    gs_free(s->mass);
    gs_free(s->out_degree);
    gs_free(s->edge_factor);
    gs_free(s->loss_factor);
    gs_free(s);
}

uint32_t gs_sampler_batches(const gs_sampler *s) { return s->batches; }
uint64_t gs_sampler_bytes(const gs_sampler *s) { return s->bytes; }
const gs_batch_limits *gs_sampler_limits(const gs_sampler *s) { return &s->limits; }

gs_status gs_sampler_draw(gs_batch *out, const gs_sampler *s, gs_batch_arena *a, uint32_t epoch, uint32_t number)
{
    return gs_sampler_draw_part(out, s, a, epoch, number, 0, UINT32_MAX);
}

gs_status gs_sampler_draw_part(gs_batch *out, const gs_sampler *s, gs_batch_arena *a, uint32_t epoch, uint32_t number,
                               uint32_t first, uint32_t count)
{
    gs_batch b = {.epoch = epoch, .number = number};
    gs_status st;

    assert(number < s->batches);
    if (s->options.kind != GS_SAMPLER_CLUSTER)
        gs_unique_clear(&a->unique);
    a->raw.count = 0;
    a->pendings = 0;
    st = s->options.kind == GS_SAMPLER_NEIGHBOR  ? gs_sample__neighbor(&b, s, a, first, count)
         : s->options.kind == GS_SAMPLER_CLUSTER ? gs_sample__cluster(&b, s, a)
                                                 : gs_sample__saint(&b, s, a);
    if (st != GS_OK)
        return st;
    b.vertex = a->unique.vertex;
    b.in_degree = a->in_degree;
    b.loops = a->loops;
    b.loss_weight = a->loss_weight;
    gs_sample__assemble(&b, s, a);
    *out = b;
    return GS_OK;
}

gs_status gs_sampler_draw_group(gs_batch *out, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t count,
                                uint32_t epoch, uint32_t first, uint32_t threads)
{
    char line[GS_ERROR_BYTES] = "";
    gs_status worst = GS_OK;
    uint32_t of = UINT32_MAX;

#pragma omp parallel for schedule(dynamic) num_threads((int)GS_MAX(threads, 1u)) if (threads > 1)
    for (uint32_t k = 0; k < count; k++) {
        const gs_status st = gs_sampler_draw(&out[k], s, arena[k], epoch, first + k);
        if (st == GS_OK)
            continue;
        out[k] = (gs_batch){.epoch = epoch, .number = first + k, .overflows = st == GS_EBUDGET};
#pragma omp critical(gs_sampler_error)
        if (k < of) { /* the line is the thread's that failed */
            worst = st;
            of = k;
            memcpy(line, gs_last_error(), strnlen(gs_last_error(), sizeof(line) - 1) + 1);
        }
    }
    return worst == GS_OK ? GS_OK : gs_fail(worst, "%s", line);
}

gs_status gs_sampler_fit(gs_sampler_options *options, const gs_adjacency *in, const gs_adjacency *out,
                         const uint32_t *target, uint32_t targets, uint32_t trials)
{
    gs_sampler_options trial = *options;
    uint64_t vertices = 0, edges = 0;
    gs_sampler *s = NULL;
    gs_batch_arena *a = NULL;
    gs_status st;

    trial.coverage = 0;
    if ((st = gs_sampler_open(&s, in, out, target, targets, &trial)) == GS_OK)
        st = gs_batch_arena_make(&a, s);
    for (uint64_t k = 0; k < trials && st == GS_OK; k++) {
        gs_batch b;
        const uint64_t last = s->batches - 1u;
        if ((st = gs_sampler_draw(&b, s, a, 0, (uint32_t)(trials > 1 ? last * k / (trials - 1) : 0))) != GS_OK)
            break;
        vertices = GS_MAX(vertices, b.vertices);
        edges = GS_MAX(edges, b.edges);
    }
    if (st == GS_OK) {
        options->most_vertices = (uint32_t)GS_MIN(s->limits.vertices, vertices + gs_div_up(vertices, 4));
        options->most_edges = GS_MIN(s->limits.edges, edges + gs_div_up(edges, 4));
    }
    gs_batch_arena_free(a);
    gs_sampler_close(s);
    return st;
}
