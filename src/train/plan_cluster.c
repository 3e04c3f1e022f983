/* plan_cluster.c - training on a cluster that need not be there, of a graph that need not be there.
 *
 * The plan is the one that ranks would make (docs/design/ranks.md), of a store of counts alone. A run has a limited
 * number of ranks, and tables of all chunks grow with its square: of a larger cluster as many ranks are planned as a
 * run may have, each with the vertices, edges and remote edges that it has among all. What is less for so few is made
 * up for: the ends of remote edges are fewer vertices, as fewer are others', and messages are fewer.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/part.h"
#include "ranks/ranks.h"
#include "topology/topology.h"
#include "train/options.h"
#include "train/run_internal.h"

/* ---- the shape ------------------------------------------------------------ */

enum { OF_VERTICES, OF_EDGES, OF_FEATURES, OF_CLASSES, OF_PARTS, OF_REMOTE, OF_IDLE, OF_ENDS, OF_INSIDE, NUMBERS };
static const struct {
    const char *name;
    double least, most;
} numbers[NUMBERS] = {
    [OF_VERTICES] = {"vertices", 1, 0x1p53},
    [OF_EDGES] = {"edges", 1, 0x1p53},
    [OF_FEATURES] = {"features", 1, 1u << 20},
    [OF_CLASSES] = {"classes", 1, 1u << 20},
    [OF_PARTS] = {"parts", 1, 65536},
    [OF_REMOTE] = {"remote", 0, 1},
    [OF_IDLE] = {"idle", 0, 1 - 0x1p-20},
    [OF_ENDS] = {"ends", 0x1p-20, 1},
    [OF_INSIDE] = {"inside", 0, 1},
};

#define SHAPE_WORDS \
    "give it as vertices=N,edges=N,features=N, and where known classes=N, parts=N, and remote=X, inside=X, " \
    "idle=X and ends=X (from 0 to 1)"

/* One "NAME=NUMBER" at `text`; gives what is behind it, NULL where it is none. */
static const char *read_number(double x[NUMBERS], const char *text)
{
    int k = 0;
    size_t name = 0;
    char *end;

    for (; k < NUMBERS; k++)
        if (strncmp(text, numbers[k].name, name = strlen(numbers[k].name)) == 0 && text[name] == '=')
            break;
    if (k == NUMBERS || x[k] >= 0)
        return NULL;
    x[k] = strtod(text + name + 1, &end);
    if (end == text + name + 1 || !(x[k] >= numbers[k].least) || x[k] > numbers[k].most ||
        (k < OF_REMOTE && x[k] != floor(x[k])))
        return NULL;
    return *end == ',' && end[1] != '\0' ? end + 1 : *end == '\0' ? end : NULL;
}

static gs_status read_shape(gs_store_shape *out, const char *text)
{
    double x[NUMBERS] = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
    const char *at = text;

    while (at != NULL && *at != '\0')
        at = read_number(x, at);
    if (at == NULL || x[OF_VERTICES] < 0 || x[OF_EDGES] < 0 || x[OF_FEATURES] < 0)
        return gs_fail(GS_EINVAL, "shape %s: " SHAPE_WORDS, text);
    *out = (gs_store_shape){.vertices = (uint64_t)x[OF_VERTICES], .edges = (uint64_t)x[OF_EDGES],
                            .features = (uint32_t)x[OF_FEATURES],
                            .classes = x[OF_CLASSES] < 0 ? 16 : (uint32_t)x[OF_CLASSES],
                            .parts = x[OF_PARTS] < 0 ? 0 : (uint32_t)x[OF_PARTS], .remote = x[OF_REMOTE],
                            .inside = x[OF_INSIDE], .idle = GS_MAX(x[OF_IDLE], 0.0), .fuller = 0.5};
    if (x[OF_ENDS] > 0)
        out->fuller = gs_shape_fuller(x[OF_ENDS], x[OF_EDGES] / x[OF_VERTICES]);
    return GS_OK;
}

/* ---- the ranks that are planned ------------------------------------------- */

typedef struct scene {
    gs_cluster whole, few;  /* as the file says; of those that are planned */
    gs_store_shape all, of; /* the graph; that of those */
    double times;           /* of one of `few` so many ranks there are */
    double more_rows;       /* rows of others that a rank of `whole` needs, beside one of `few` */
    gs_store *store;
    gs_train_options options;
    char device[32];
} scene;

#define PARTS_LEAST 64u
#define PARTS_MOST 256u

/* Rows in granules of `g` that the remote edges of a rank name, of `others` other ranks. */
static double rows_of_others(const scene *x, double others, double g)
{
    const double edges = (double)x->all.edges * x->all.remote / x->whole.ranks;
    const double rows = (double)x->all.vertices * (1 - x->all.idle) / x->whole.ranks * others;
    return rows > 0 ? rows * gs_shape_named(x->all.fuller, edges / rows, g) : 0;
}

static gs_status open_few(scene *x, uint32_t parts, const char *shape)
{
    x->of.parts = parts;
    GS_TRY(gs_store_open_shape(&x->store, shape, &x->of));
    /* rows that are sent together */
    const uint32_t known = gs_session_granules_within(gs_store_chunks(x->store), x->options.host_memory).rows;
    const uint32_t g = known > 0 ? known : gs_store_chunks(x->store)->interval_rows;
    x->more_rows = 1;
    if (x->whole.ranks > x->few.ranks && x->all.remote > 0)
        x->more_rows = rows_of_others(x, x->whole.ranks - 1, g) / rows_of_others(x, x->few.ranks - 1, g);
    x->few.bps = x->whole.bps / x->more_rows;
    x->few.seconds = x->whole.seconds * x->times;
    return GS_OK;
}

static void choose_few(scene *x)
{
    const uint32_t n = GS_MIN(x->whole.ranks, GS_RANKS_MOST);

    x->few = x->whole;
    x->few.ranks = n;
    x->few.all = x->whole.ranks;
    x->times = (double)x->whole.ranks / n;
    if (x->all.remote < 0)
        x->all.remote = 1 - 1.0 / x->whole.ranks;
    if (x->whole.ranks == 1)
        x->all.remote = 0;
    x->of = x->all;
    x->of.owners = n;
    x->of.vertices = (uint64_t)GS_MAX(nearbyint((double)x->all.vertices / x->times), 1.0);
    x->of.edges = (uint64_t)GS_MAX(nearbyint((double)x->all.edges / x->times), 1.0);
    snprintf(x->device, sizeof(x->device), n > 1 ? "cpu:%u" : "cpu", n);
    x->options.device = x->device;
}

static gs_status refuse(const char *what)
{
    return gs_fail(GS_EUNSUPPORTED, "%s: not planned for a cluster yet", what);
}

static gs_status read_scene(scene *x, const char *cluster, const char *shape, const gs_train_options *options)
{
    gs_train_options *const o = &x->options;

    GS_TRY(gs_train_options_read(o, options));
    GS_TRY(gs_train_options_check(o));
    GS_TRY(gs_cluster_load(&x->whole, cluster));
    GS_TRY(read_shape(&x->all, shape));
    if (gs_train_on_batches(o))
        return refuse(".sampler: batches");
    if (gs_train_is_of_pairs(o))
        return refuse(".task: pairs of vertices");
    if (strcmp(o->device, "cpu") != 0)
        return gs_fail(GS_EUNSUPPORTED, ".device %s: a rank has one device, the processors of its machine; use cpu",
                       o->device);
    if (o->topology != NULL)
        return gs_fail(GS_EINVAL, ".topology %s: %s says what the network is; leave one out", o->topology, cluster);
    if (x->whole.memory > 0 && o->host_memory > 0)
        return gs_fail(GS_EINVAL, ".host_memory: %s says what memory a rank has; leave one out", cluster);
    if (x->whole.memory == 0 && o->host_memory == 0)
        return gs_fail(GS_EINVAL, "%s: says no \"memory\" of a rank; give it there, or by .host_memory", cluster);
    o->host_memory = x->whole.memory > 0 ? x->whole.memory : o->host_memory;
    o->no_prune = true; /* there is no split that would leave rows out */
    choose_few(x);
    if (x->of.parts % x->of.owners != 0)
        return gs_fail(GS_EINVAL, "shape %s: %u ranks are planned, each with as many intervals; parts must be a "
                       "multiple of that", shape, x->of.owners);
    return GS_OK;
}

/* The coarsest store from PARTS_LEAST intervals on of which a plan fits, where the shape says nothing. */
static gs_status open_session(gs_session **out, scene *x, const char *shape)
{
    const uint32_t n = x->of.owners, said = x->of.parts;

    for (uint32_t parts = said > 0 ? said : n * gs_div_up(PARTS_LEAST, n);; parts *= 2) {
        GS_TRY(open_few(x, parts, shape));
        const gs_status st = gs_run__open_shape(out, x->store, &x->few, &x->options);
        if (st != GS_EBUDGET || said > 0 || 2 * parts > PARTS_MOST)
            return st;
        gs_store_close(x->store);
        x->store = NULL;
    }
}

/* ---- what a rank moves ---------------------------------------------------- */

typedef struct moved {
    double read, requests, written, sent, received;
} moved;

/* Rows that the store has of other ranks' vertices are read as they are needed, so of all ranks as more of them. */
static double read_bytes(const scene *x, const gs_session *s, const gs_plan *part, const gs_task *t, uint32_t rank)
{
    const double bytes = (double)gs_task_bytes(part, t);
    const gs_array *const a = t->file < s->program->arrays ? &s->program->array[t->file] : NULL;

    if (a == NULL || a->store_id < 0)
        return bytes;
    const gs_chunk_table *const c = gs_store_chunks(s->store);
    const uint64_t row = a->width * (uint64_t)gs_dtype_bytes(a->dtype);
    const uint64_t interval = t->source.offset / (row * c->interval_rows);
    return interval * x->of.owners / c->parts == rank ? bytes : bytes * x->more_rows;
}

static void add_up(moved *out, const scene *x, const gs_session *s, const gs_plan *part, uint32_t rank)
{
    const gs_plan_pass *const pass = &part->pass[s->pass.train];

    for (const gs_task *t = part->task + pass->first_task; t < part->task + pass->first_task + pass->tasks; t++) {
        if (t->kind != GS_TASK_MOVE)
            continue;
        out->requests += gs_task_is_transfer(t) ? gs_task_requests(t) : 0;
        out->read += gs_task_reads(t) ? read_bytes(x, s, part, t, rank) : 0;
    }
    out->written = (double)pass->written_bytes;
    out->sent = (double)pass->sent_bytes * x->more_rows;
    out->received = (double)pass->received_bytes * x->more_rows;
}

/* Of a rank in the middle: edges are spread evenly, so it has what others have. */
static gs_status measure(moved *out, const scene *x, const gs_session *s)
{
    const gs_chunk_table *const t = gs_store_chunks(s->store);
    const gs_part_rows rows = {s->machine.owners, gs_session_dealt_arrays(s)};
    const uint32_t rank = s->plan->devices / 2;
    gs_plan *part = NULL;
    gs_status st = GS_OK;

    if (s->plan->devices > 0)
        st = gs_plan_take_part(&part, s->plan, s->program, t->parts, t->interval_rows,
                               &rows, rank);
    if (st == GS_OK)
        add_up(out, x, s, part != NULL ? part : s->plan, rank);
    gs_plan_free(part);
    return st;
}

/* ---- the report ----------------------------------------------------------- */

static double add_link(gs_cluster_report *out, const char *name, double bytes, double seconds)
{
    if (bytes > 0) {
        snprintf(out->link[out->links].name, sizeof(out->link[0].name), "%s", name);
        out->link[out->links].bytes = bytes;
        out->link[out->links++].seconds = seconds;
    }
    return bytes > 0 ? seconds : 0;
}

static void describe_links(gs_cluster_report *out, const scene *x, const gs_session *s, const moved *m)
{
    const gs_cost *const cost = &s->machine.cost; /* of a disk as fast as all */
    const double n = x->few.ranks, others = x->whole.ranks - 1, bps = x->whole.bps;
    const double gradients = 4.0 * (double)out->parameters * others;
    const double turns = x->whole.ranks > 1 ? ceil(log2(x->whole.ranks)) : 0;

    const double requests = m->requests * cost->request_seconds * n;
    out->disk_seconds = add_link(out, "disk to host", m->read, m->read / cost->read_bps * n + requests);
    out->disk_seconds += add_link(out, "host to disk", m->written, m->written / cost->write_bps * n);
    if (x->whole.ranks == 1)
        return;
    const double sending = add_link(out, "rows to other ranks", m->sent, m->sent / bps);
    const double receiving = add_link(out, "rows from other ranks", m->received, m->received / bps);
    out->network_seconds = GS_MAX(sending, receiving) +
                           add_link(out, "gradients of other ranks", gradients,
                                    gradients / bps + turns * x->whole.seconds);
}

/* Bytes of the store that a rank has beyond its share: the rows that it reads of others' vertices, or of a shard what
 * each has of all vertices. */
static double bytes_of_others(const scene *x, const gs_session *s)
{
    const gs_array_info *const f = gs_store_array(s->store, GS_ARRAY_FEATURES);
    double bytes = 0;

    if (x->whole.ranks == 1)
        return 0;
    if (!x->whole.shards)
        return rows_of_others(x, x->whole.ranks - 1, 1) * (double)f->row_bytes;
    for (unsigned id = 0; id < GS_ARRAY_COUNT; id++)
        if (gs_array_is_of_vertices((gs_array_id)id) && !gs_store_deals_array((gs_array_id)id))
            bytes += (double)gs_store_array(s->store, (gs_array_id)id)->bytes * (x->times - 1.0 / x->few.ranks);
    return bytes;
}

/* The list of tasks has as many for each rank and interval; both grow as ranks do. */
static void describe_room(gs_cluster_report *out, const scene *x, const gs_session *s)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    const double square = x->times * x->times, parts = (double)info->parts * info->parts;

    out->memory = s->memory.host;
    out->memory_bytes = s->plan->host_bytes;
    out->table_bytes = (uint64_t)(square * (2 * parts * sizeof(gs_chunk) + (double)s->plan->table_bytes));
    out->store_bytes = (uint64_t)((double)info->total_bytes / x->few.ranks + bytes_of_others(x, s));
    out->spill_bytes = gs_session_spill_bytes(s) / x->few.ranks;
}

static void describe_seconds(gs_cluster_report *out, const scene *x, const gs_session *s)
{
    const gs_predicted *const p = &out->plan.pass[s->pass.train].predicted;
    const double gradients = out->links > 0 && x->whole.ranks > 1 ? out->link[out->links - 1].seconds : 0;
    const double most = GS_MAX(out->compute_seconds, GS_MAX(out->disk_seconds, out->network_seconds));

    out->epoch_seconds = GS_MAX(p->seconds, out->disk_seconds) + gradients;
    out->run_seconds = out->plan.run_seconds + out->plan.epochs * (out->epoch_seconds - p->seconds);
    snprintf(out->bound, sizeof(out->bound), "%s",
             2 * most < out->epoch_seconds     ? "waiting"
             : most == out->compute_seconds    ? "compute"
             : most == out->network_seconds    ? "network"
                                               : "disk");
    out->epoch_price = out->epoch_seconds / 3600 * x->whole.price * x->whole.ranks;
    out->run_price = out->run_seconds / 3600 * x->whole.price * x->whole.ranks;
}

static gs_status describe(gs_cluster_report *out, const scene *x, const gs_session *s)
{
    moved own = {0};

    GS_TRY(measure(&own, x, s));
    *out = (gs_cluster_report){.ranks = x->whole.ranks, .planned = x->few.ranks, .vertices = x->all.vertices,
                               .edges = x->all.edges, .parts = gs_store_chunks(s->store)->parts};
    GS_TRY(gs_session_describe(s, &out->plan));
    const gs_predicted *const p = &out->plan.pass[s->pass.train].predicted;
    out->parameters = out->plan.parameters;
    out->compute_seconds = p->edge_seconds + p->vertex_seconds + (s->plan->devices == 0 ? p->check_seconds : 0);
    describe_links(out, x, s, &own);
    describe_room(out, x, s);
    describe_seconds(out, x, s);
    return GS_OK;
}

static void close_scene(scene *x) { gs_store_close(x->store); }

gs_status gs_plan_cluster(gs_cluster_report *out, const char *cluster, const char *shape,
                          const gs_train_options *options)
{
    GS_ENDS(close_scene) scene x = {.more_rows = 1};
    GS_ENDS(gs_session_close_at) gs_session *s = NULL;

    GS_TRY(gs_check_argument(out, "out"));
    GS_TRY(gs_check_argument(cluster, "cluster"));
    GS_TRY(gs_check_argument(shape, "shape"));
    GS_TRY(read_scene(&x, cluster, shape, options));
    gs_run__warn_of_unread(&x.options);
    GS_TRY(open_session(&s, &x, shape));
    return describe(out, &x, s);
}
