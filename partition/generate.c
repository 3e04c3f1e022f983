/* generate.c - graphs of any size for benchmarks and tests, as .npy files. */
#include "partition/generate.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/npy.h"
#include "base/philox.h"
#include "base/size.h"
#include "base/status.h"
#include "base/temporary.h"
#include "gnnstream.h"
#include "store/store_write.h"

/* ---- R-MAT and planted-class graphs as functions of a counter. */

/* Graph500's quadrant probabilities a = 0.57, b = c = 0.19, d = 0.05, in
 * 1/65536: 16 random bits choose a quadrant, so one Philox call gives 8 levels. */
#define RMAT_A 37356u
#define RMAT_AB 49807u
#define RMAT_ABC 62259u

/* Planted classes: shares of the edges inside a community, inside the class,
 * anywhere; and the length of a class's mean feature vector, of which a
 * linear model alone can make about half of the vertices of 16 classes out. */
#define SBM_COMMUNITY 0.80
#define SBM_CLASS 0.12
#define SBM_COMMUNITY_VERTICES 2000u
#define SBM_SKEW 1.4 /* x^SKEW for uniform x: low places get more edges, mildly */
#define SBM_SIGNAL 1.75f
/* Vertices whose label is drawn at random: no model can do better than about
 * 1 - SBM_MISLABELLED, so an accuracy tells something. */
#define SBM_MISLABELLED 0.05

static void draw(uint32_t out[4], const gs_gen *g, uint64_t item, uint32_t round, uint32_t use)
{
    const uint32_t counter[4] = {(uint32_t)item, (uint32_t)(item >> 32), round, use};
    gs_philox4x32(out, counter, g->key);
}

/* -- rmat ------------------------------------------------------------------- */

/* One try; false where an end is beyond n or both are the same. */
static bool rmat_try(const gs_gen *g, uint64_t item, uint32_t attempt, uint64_t ends[2])
{
    uint64_t u = 0, v = 0;
    uint32_t bits[4] = {0};

    for (uint32_t level = 0; level < g->ids.bits; level++) {
        if (level % 8 == 0)
            draw(bits, g, item, attempt, GS_GEN_EDGE | level / 8);
        const uint32_t r = bits[level / 2 % 4] >> (level % 2 * 16) & 0xffff;
        u = u << 1 | (r >= RMAT_AB);
        v = v << 1 | ((r >= RMAT_A && r < RMAT_AB) || r >= RMAT_ABC);
    }
    ends[0] = gs_part__scramble(&g->ids, u);
    ends[1] = gs_part__scramble(&g->ids, v);
    return ends[0] < g->n && ends[1] < g->n && ends[0] != ends[1];
}

void gs_gen__rmat_edges(const gs_gen *g, int64_t *pairs, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t ends[2];
        for (uint32_t attempt = 0; !rmat_try(g, first + i, attempt, ends); attempt++)
            ;
        pairs[2 * i] = (int64_t)ends[0];
        pairs[2 * i + 1] = (int64_t)ends[1];
    }
}

static int64_t rmat_label(const gs_gen *g, uint64_t id)
{
    uint32_t bits[4];
    draw(bits, g, id, 0, GS_GEN_LABEL);
    return (int64_t)((uint64_t)bits[0] * g->classes >> 32);
}

/* -- sbm ---------------------------------------------------------------------- */

static uint64_t community_first(const gs_gen *g, uint64_t c)
{
    return (uint64_t)(((unsigned __int128)c * g->n + g->communities - 1) / g->communities);
}

static uint64_t community_of(const gs_gen *g, uint64_t place)
{
    return (uint64_t)((unsigned __int128)place * g->communities / g->n);
}

/* 0 .. n - 1 from 32 random bits. */
static uint64_t below(uint64_t n, uint32_t bits) { return (uint64_t)(((unsigned __int128)n * bits) >> 32); }

static uint64_t place_in(const gs_gen *g, uint64_t community, uint32_t bits)
{
    const uint64_t first = community_first(g, community), size = community_first(g, community + 1) - first;
    const uint64_t at = (uint64_t)((double)size * pow(gs_uniform_open(bits), SBM_SKEW));
    return first + GS_MIN(at, size - 1);
}

static bool sbm_try(const gs_gen *g, uint64_t item, uint32_t attempt, uint64_t ends[2])
{
    uint32_t a[4], b[4];
    draw(a, g, item, attempt, GS_GEN_EDGE);
    draw(b, g, item, attempt, GS_GEN_EDGE | 1);
    /* a community by its size, then a place in it */
    const uint64_t home = community_of(g, (uint64_t)(((unsigned __int128)g->n * ((uint64_t)a[0] << 32 | a[1])) >> 64));
    const double kind = gs_uniform_open(a[3]);
    uint64_t away = home;

    if (kind > SBM_COMMUNITY + SBM_CLASS)
        away = below(g->communities, b[0]);
    else if (kind > SBM_COMMUNITY) /* communities of a class are `classes` apart */
        away = home % g->classes +
               g->classes * below((g->communities - 1 - home % g->classes) / g->classes + 1, b[0]);
    ends[0] = gs_part__permute(&g->ids, place_in(g, home, a[2]));
    ends[1] = gs_part__permute(&g->ids, place_in(g, away, b[1]));
    return ends[0] != ends[1];
}

static int64_t sbm_class(const gs_gen *g, uint64_t id)
{
    return (int64_t)(community_of(g, gs_part__permute_back(&g->ids, id)) % g->classes);
}

static void sbm_edges(const gs_gen *g, int64_t *pairs, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t ends[2];
        for (uint32_t attempt = 0; !sbm_try(g, first + i, attempt, ends); attempt++)
            ;
        pairs[4 * i] = pairs[4 * i + 3] = (int64_t)ends[0];
        pairs[4 * i + 1] = pairs[4 * i + 2] = (int64_t)ends[1];
    }
}

/* The planted class, and the label, which is another one for a few vertices. */
static int64_t sbm_label(const gs_gen *g, uint64_t id)
{
    uint32_t bits[4];
    draw(bits, g, id, 0, GS_GEN_LABEL);
    return gs_uniform_open(bits[0]) < SBM_MISLABELLED ? (int64_t)(bits[1] % g->classes) : sbm_class(g, id);
}

/* -- features ------------------------------------------------------------------ */

static void normal_row(const gs_gen *g, float *row, uint64_t item, uint32_t use)
{
    uint32_t bits[4];
    float four[4];
    for (uint32_t c = 0; c < g->width; c += 4) {
        draw(bits, g, item, c / 4, use);
        gs_part__normals(four, bits);
        memcpy(row + c, four, GS_MIN(4, g->width - c) * sizeof(float));
    }
}

/* Feature row of a vertex of this class. */
static void means(gs_gen *g)
{
    for (uint32_t k = 0; k < g->classes; k++) {
        float *const mean = g->mean + (uint64_t)k * g->width;
        double square = 0;
        normal_row(g, mean, k, GS_GEN_MEAN);
        for (uint32_t c = 0; c < g->width; c++)
            square += (double)mean[c] * (double)mean[c];
        for (uint32_t c = 0; c < g->width; c++)
            mean[c] *= SBM_SIGNAL / (float)sqrt(GS_MAX(square, 1e-12));
    }
}

static void feature_row(const gs_gen *g, float *row, uint64_t id, int64_t class)
{
    normal_row(g, row, id, GS_GEN_NOISE);
    if (g->mean == NULL)
        return;
    const float *const mean = g->mean + (uint64_t)class * g->width;
    for (uint32_t c = 0; c < g->width; c++)
        row[c] += mean[c];
}

/* ---- files of a graph ------------------------------------------------------------- */

#define PIECE_BYTES (4u * GS_MIB)
#define SPLIT_COUNT 3

static const char *const file_names[] = {"meta.json",     "edges.npy",     "features.npy", "labels.npy",
                                         "train_idx.npy", "valid_idx.npy", "test_idx.npy"};
enum { FILE_META, FILE_EDGES, FILE_FEATURES, FILE_LABELS, FILE_SPLIT };

typedef struct generating {
    gs_gen g;
    bool sbm;
    const char *place, *dir; /* the folder as it was given; where it is made */
    uint32_t threads;
    char *piece; /* PIECE_BYTES */
    uint64_t split[SPLIT_COUNT + 1]; /* ranks at which splits begin */
    uint64_t done, total;            /* bytes, for progress */
} generating;

/* Makes items [first, first + count) at `dst`; called by several threads. */
typedef void make_items(const generating *w, void *dst, uint64_t first, uint64_t count);

static gs_status check_stop(generating *w, const char *what, uint64_t bytes)
{
    const gs_generate_options *const o = w->g.opt;
    w->done += bytes;
    if (o->progress != NULL)
        o->progress(o->context, what, (double)w->done / (double)GS_MAX(w->total, 1));
    return o->stop != NULL && *o->stop != 0
               ? gs_fail(GS_EINTERRUPTED, "%s: interrupted; nothing was kept", w->place)
               : GS_OK;
}

static gs_status write_pieces(generating *w, gs_outfile *o, uint64_t offset, uint64_t items, uint64_t item_bytes,
                              make_items *make, const char *what)
{
    const uint64_t per_piece = GS_MAX(PIECE_BYTES / item_bytes, 1);

    for (uint64_t at = 0; at < items; at += per_piece) {
        const uint64_t count = GS_MIN(per_piece, items - at);
#pragma omp parallel num_threads(w->threads)
        {
            const uint64_t t = (uint64_t)omp_get_thread_num(), threads = (uint64_t)omp_get_num_threads();
            const uint64_t from = count * t / threads, to = count * (t + 1) / threads;
            make(w, w->piece + from * item_bytes, at + from, to - from);
        }
        GS_TRY(gs_outfile_write(o, w->piece, count * item_bytes, offset + at * item_bytes));
        GS_TRY(check_stop(w, what, count * item_bytes));
    }
    return GS_OK;
}

/* One array: `rows` x `cols` of `dtype`, made by items of `item_bytes`. */
static gs_status write_array(generating *w, int file, gs_dtype dtype, uint64_t rows, uint64_t cols, uint64_t items,
                             make_items *make)
{
    GS_FREED char *path = gs_path_join(w->dir, file_names[file]);
    const uint64_t bytes = rows * GS_MAX(cols, 1) * gs_dtype_bytes(dtype);
    GS_ENDS(gs_outfile_abandon) gs_outfile o = GS_OUTFILE_NONE;
    uint64_t offset;

    GS_NEED(path != NULL, "%s: no memory for a path", w->dir);
    GS_TRY(gs_npy_create(&o, &offset, path, dtype, rows, cols));
    if (items != 0)
        GS_TRY(write_pieces(w, &o, offset, items, bytes / items, make, file_names[file]));
    return gs_outfile_finish(&o);
}

static void make_edges(const generating *w, void *dst, uint64_t first, uint64_t count)
{
    if (w->sbm)
        sbm_edges(&w->g, dst, first, count);
    else
        gs_gen__rmat_edges(&w->g, dst, first, count);
}

static int64_t label_of(const generating *w, uint64_t id)
{
    return w->sbm ? sbm_label(&w->g, id) : rmat_label(&w->g, id);
}

static void make_labels(const generating *w, void *dst, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        ((int64_t *)dst)[i] = label_of(w, first + i);
}

static void make_features(const generating *w, void *dst, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        feature_row(&w->g, (float *)dst + i * w->g.width, first + i,
                    w->g.mean != NULL ? sbm_class(&w->g, first + i) : 0);
}

/* Ids in ascending order whose rank in a seeded permutation is in the split's
 * range: exactly as many as stated, none in two splits. */
static gs_status write_split(generating *w, int which)
{
    const uint64_t low = w->split[which], high = w->split[which + 1], cap = PIECE_BYTES / 8;
    GS_FREED char *path = gs_path_join(w->dir, file_names[FILE_SPLIT + which]);
    int64_t *ids = (int64_t *)(void *)w->piece;
    GS_ENDS(gs_outfile_abandon) gs_outfile o = GS_OUTFILE_NONE;
    uint64_t offset, have = 0;

    GS_NEED(path != NULL, "%s: no memory for a path", w->dir);
    GS_TRY(gs_npy_create(&o, &offset, path, GS_I64, high - low, 0));
    for (uint64_t v = 0; v < w->g.n; v++) {
        const uint64_t rank = gs_part__permute(&w->g.splits, v);
        if (rank >= low && rank < high)
            ids[have++] = (int64_t)v;
        if (have == cap || (v + 1 == w->g.n && have != 0)) {
            GS_TRY(gs_outfile_write(&o, ids, have * 8, offset));
            offset += have * 8;
            have = 0;
        }
        if (v % 1048576 == 0)
            GS_TRY(check_stop(w, file_names[FILE_SPLIT + which], 0));
    }
    return gs_outfile_finish(&o);
}

static gs_status write_meta(const generating *w, const char *kind)
{
    GS_FREED char *path = gs_path_join(w->dir, file_names[FILE_META]);
    char text[1024];

    GS_NEED(path != NULL, "%s: no memory for a path", w->dir);
    const int length = snprintf(
        text, sizeof(text),
        "{\n \"generator\": \"%s\",\n \"seed\": %lu,\n \"num_nodes\": %lu,\n \"num_edges\": %lu,\n"
        " \"feature_format\": \"%s\",\n \"num_features\": %u,\n \"num_classes\": %u,\n"
        " \"num_train\": %lu,\n \"num_valid\": %lu,\n \"num_test\": %lu\n}\n",
        kind, w->g.opt->seed, w->g.n, w->g.edges,
        w->g.width != 0 ? "dense" : "none", w->g.width, w->g.classes,
        w->split[1] - w->split[0], w->split[2] - w->split[1],
        (w->split[3] - w->split[2]));
    return gs_file_write_atomic(path, text, (uint64_t)length);
}

static gs_status write_files(generating *w, const char *kind)
{
    const uint64_t n = w->g.n, edges = w->g.edges;

    GS_TRY(write_array(w, FILE_EDGES, GS_I64, edges, 2, w->sbm ? edges / 2 : edges, make_edges));
    if (w->g.width != 0)
        GS_TRY(write_array(w, FILE_FEATURES, GS_F32, n, w->g.width, n, make_features));
    if (w->g.classes != 0) {
        GS_TRY(write_array(w, FILE_LABELS, GS_I64, n, 0, n, make_labels));
        for (int i = 0; i < SPLIT_COUNT; i++)
            GS_TRY(write_split(w, i));
    }
    return write_meta(w, kind);
}

/* -- the folder ------------------------------------------------------------------- */

/* What partition reads beside these, and would take for the new graph's. */
static const char *const other_names[] = {"edge_types.npy",       "edge_weights.npy",  "features_indptr.npy",
                                          "features_indices.npy", "features_data.npy", "labels_multi.npy"};

static bool owns(const char *name)
{
    for (size_t i = 0; i < GS_ARRAY_LEN(file_names); i++)
        if (strcmp(name, file_names[i]) == 0)
            return true;
    return false;
}

static bool has(const char *dir, const char *name)
{
    GS_FREED char *const path = gs_path_join(dir, name);
    const bool there = path == NULL || !gs_path_is_absent(path);
    return there;
}

static gs_status may_replace(const char *dir, bool force)
{
    bool graph = false;

    if (!force)
        return gs_fail(GS_EEXIST, "%s: the folder is not empty; use .force to replace the graph in it", dir);
    for (size_t i = 0; i < GS_ARRAY_LEN(other_names); i++)
        if (has(dir, other_names[i]))
            return gs_fail(GS_EEXIST,
                           "%s: holds %s, which generate does not make and partition would take for the new graph's; "
                           "remove it, or choose another folder",
                           dir, other_names[i]);
    for (size_t i = 0; i < GS_ARRAY_LEN(file_names); i++)
        graph = graph || has(dir, file_names[i]);
    return graph ? GS_OK
                 : gs_fail(GS_EEXIST, "%s: holds files, and no graph to replace; choose another folder", dir);
}

static const gs_staging_kind graph_folder = {owns, may_replace};

static gs_status check_options(bool *sbm, const char *kind, const gs_generate_options *o)
{
    *sbm = strcmp(kind, "sbm") == 0;
    if (!*sbm && strcmp(kind, "rmat") != 0)
        return gs_fail(GS_EINVAL, "kind: '%s' is not known; use rmat or sbm", kind);
    if (o->vertices < 2 || o->vertices >= UINT32_MAX)
        return gs_fail(GS_EINVAL, ".vertices %lu: is outside 2 to 2^32 - 2", o->vertices);
    if (o->edges > UINT64_MAX / 64)
        return gs_fail(GS_EINVAL, ".edges %lu: is too many", o->edges);
    if (*sbm && o->edges % 2 != 0)
        return gs_fail(GS_EINVAL, ".edges %lu: is odd; sbm writes both directions of each edge", o->edges);
    if (o->features > PIECE_BYTES / 4)
        return gs_fail(GS_EINVAL, ".features %u: is more than %lu", o->features, PIECE_BYTES / 4);
    if (*sbm && (o->classes == 0 || o->vertices / o->classes < 2))
        return gs_fail(GS_EINVAL, ".classes %u: sbm needs at least 1 class, and 2 vertices a class", o->classes);
    if (o->classes > INT32_MAX)
        return gs_fail(GS_EINVAL, ".classes %u: is too many", o->classes);
    return GS_OK;
}

static gs_status setup(generating *w, const gs_generate_options *o)
{
    gs_gen *const g = &w->g;

    g->opt = o;
    g->n = o->vertices;
    g->edges = o->edges;
    g->classes = o->classes;
    g->width = o->features;
    gs_random_key(g->key, o->seed, GS_RANDOM_GENERATE);
    g->ids = gs_part__permute_make(g->n, o->seed, GS_RANDOM_GENERATE);
    g->splits = gs_part__permute_make(g->n, o->seed ^ 0x73706c6974ull, GS_RANDOM_GENERATE); /* "split" */
    g->communities = GS_MAX(o->classes, g->n / 2000);
    for (int i = 0; i <= SPLIT_COUNT; i++)
        w->split[i] = i == SPLIT_COUNT ? g->n * 4 / 10 : g->n * (uint64_t)i / 10;
    w->threads = gs_machine_cpus();

    GS_TRY(gs_threads_begin(w->threads));
    w->total = g->edges * 16 + g->n * g->width * 4 + (g->classes != 0 ? g->n * 8 : 0);
    if ((w->piece = gs_alloc_pages(PIECE_BYTES)) == NULL ||
        (w->sbm && (g->mean = gs_malloc_array((uint64_t)g->classes * GS_MAX(g->width, 1), 4)) == NULL))
        return gs_fail(GS_ENOMEM, "%s: no memory to generate a graph", w->dir);
    if (w->sbm)
        means(g);
    return GS_OK;
}

static const gs_generate_options defaults = {
    .size = sizeof(gs_generate_options), .vertices = 100000, .edges = 1000000, .features = 64, .classes = 8};

void gs_generate_options_sized(gs_generate_options *options, size_t size)
{
    gs_options_give(options, size, &defaults, sizeof(defaults));
}

static void end_generating(generating *w)
{
    gs_free_pages(w->piece, PIECE_BYTES);
    gs_free(w->g.mean);
}

gs_status gs_generate(const char *kind, const char *out_dir, const gs_generate_options *options)
{
    gs_generate_options own = defaults;
    GS_ENDS(end_generating) generating w = {.place = out_dir};
    GS_ENDS(gs_staging_close_at) gs_staging *staging = NULL;

    GS_TRY(gs_check_argument(kind, "kind"));
    GS_TRY(gs_check_argument(out_dir, "folder"));
    GS_TRY(gs_options_take(&own, sizeof(own), offsetof(gs_generate_options, edges), options, "options",
                           "gs_generate_options_init"));
    GS_TRY(check_options(&w.sbm, kind, &own));
    GS_TRY(gs_store_check_outside(out_dir));
    GS_TRY(gs_staging_begin(&staging, out_dir, &graph_folder, own.force));
    w.dir = gs_staging_dir(staging);
    GS_TRY(setup(&w, &own));
    GS_TRY(write_files(&w, kind));
    return gs_staging_publish(staging);
}
