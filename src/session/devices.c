/* devices.c - the devices of a run: which they are, how they are joined, how fast they are, which of them compute. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/option_table.h"
#include "base/size.h"
#include "base/temporary.h"
#include "cost/cost.h"
#include "ranks/ranks.h"
#include "schedule/deals.h"
#include "schedule/schedule.h"
#include "session/describe.h"
#include "session/devices.h"
#include "session/session.h"

/* Whoever asked for it is told why not. */
static void give_up(gs_session *s, const char *why)
{
    s->machine.direct.possible = false;
    if (gs_choice(s->config.options, disk_to_device) != GS_DIRECT_YES)
        why = "";
    snprintf(s->machine.direct.why, sizeof(s->machine.direct.why), "%s", why);
}

static gs_status probe_store(const gs_session *s)
{
    for (uint32_t d = 0; d < 2; d++) {
        GS_FREED char *const path = gs_store_edges_path(s->store, (gs_direction)d);
        GS_TRY(path == NULL ? gs_fail(GS_ENOMEM, "out of memory")
                            : gs_device_probe_reads(s->machine.device[0], path));
    }
    return GS_OK;
}

void gs_session_find_direct(gs_session *s)
{
    const int wish = gs_choice(s->config.options, disk_to_device);

    s->machine.direct = (gs_session_direct){.possible = false};
    if (wish == GS_DIRECT_NO ||
        (wish == GS_DIRECT_AUTO && s->machine.cost.source[GS_WORK_FROM_DISK] == GS_COST_DEFAULT))
        return;
    if (s->machine.devices != 1 || !gs_session_has_memories(s))
        give_up(s, "it is for one device that has memory of its own: .device cuda, or cuda:N");
    else if (s->config.batch != NULL)
        give_up(s, "it is for chunks of the whole graph, and batches have none");
    else if (probe_store(s) != GS_OK)
        give_up(s, gs_last_error());
    else
        s->machine.direct.possible = true;
}

/* A file without a name has one in /proc. */
static gs_status probe_folder(const gs_session *s, const char *dir)
{
    char path[64];
    GS_CLOSED int fd = -1;

    GS_TRY(gs_unnamed_file(&fd, dir));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const gs_status st = gs_device_probe_reads(s->machine.device[0], path);
    return st == GS_OK ? GS_OK : gs_fail(st, "%s: no file there: %.300s", dir, gs_last_error());
}

void gs_session_find_direct_scratch(gs_session *s)
{
    for (uint32_t f = 0; s->edges.sets > 2 && f < s->run.spill.count; f++)
        if (s->machine.direct.possible && probe_folder(s, s->run.spill.parent[f]) != GS_OK)
            give_up(s, gs_last_error());
}

/* True if each GPU is joined to each by links of their own, none of them slower than the others. Devices on one GPU
 * are. */
static bool are_linked(gs_device *const *device, uint32_t devices)
{
    int rank = 0, links = 0;

    for (uint32_t a = 0; a < devices; a++)
        for (uint32_t b = 0; b < devices; b++) {
            const gs_device_reach r = gs_device_reaches(device[a], device[b]);
            if (r.same)
                continue;
            if (!r.linked || (links > 0 && r.rank != rank))
                return false;
            rank = r.rank;
            links++;
        }
    return links > 0;
}

/* Looks at how GPUs are linked, and which NUMA node each is near to. */
static void look_around(gs_session *s)
{
    char place[GS_DEVICE_PLACE_BYTES];

    s->machine.linked = are_linked(s->machine.device, s->machine.devices);
    for (uint32_t d = 0; d < s->machine.devices; d++) {
        gs_device_bus_place(s->machine.device[d], place);
        s->machine.node[d] = gs_tree_node(s->machine.tree, place);
    }
}

/* Derives the chains from the GPUs' PCIe positions: those of one switch become neighbours. */
static void find_chains(gs_session *s)
{
    char place[GS_DEVICE_COUNT_MOST][GS_DEVICE_PLACE_BYTES];
    const char *at[GS_DEVICE_COUNT_MOST];
    gs_device *given[GS_DEVICE_COUNT_MOST];
    uint32_t group[GS_DEVICE_COUNT_MOST], sorted[GS_DEVICE_COUNT_MOST], n = 0;

    for (uint32_t d = 0; d < s->machine.devices; d++) {
        given[d] = s->machine.device[d];
        gs_device_bus_place(given[d], place[d]);
        at[d] = place[d];
    }
    gs_tree_groups(s->machine.tree, at, s->machine.devices, group);
    for (uint32_t d = 0; d < s->machine.devices; d++) /* a device on host memory stands in no chain */
        group[d] = gs_device_unified(given[d]) ? d : s->machine.devices + group[d];
    for (uint32_t g = 0; g < 2 * s->machine.devices; g++)
        for (uint32_t d = 0; d < s->machine.devices; d++)
            if (group[d] == g) {
                sorted[n] = g;
                s->machine.device[n++] = given[d];
            }
    gs_topology_of_groups(&s->machine.wires, sorted, n);
    look_around(s);
    s->machine.wires.across.joined = s->machine.linked;
}

static void name_kinds(gs_session *s)
{
    gs_session_machine *const m = &s->machine;
    uint32_t first[2] = {GS_NONE, GS_NONE};

    for (uint32_t d = m->devices; d-- > 0;)
        first[m->wires.on_host[d]] = d;
    m->kind[1] = GS_NONE;
    for (int k = 0; k < 2; k++)
        if (first[k] != GS_NONE)
            m->kind[m->kinds++] = first[k];
}

/* A device on host memory stands in no chain with others, and in no ring, and computes on what is there. */
static gs_status place_kinds(gs_session *s)
{
    gs_session_machine *const m = &s->machine;

    for (uint32_t d = 0; d < m->devices; d++)
        m->wires.on_host[d] = gs_device_unified(m->device[d]);
    name_kinds(s);
    if (m->kinds == 1)
        return GS_OK;
    if (m->wires.across.share == GS_SHARE_ROUND)
        return gs_fail(GS_EINVAL, ".topology %s: \"share\" ring: of .device %s one computes on host memory, which is "
                       "in no ring; leave it out", s->config.options->topology, s->config.options->device);
    m->wires.across.joined = false;
    for (uint32_t d = 0; d < m->devices; d++) {
        const gs_topology_switch *const at = &m->wires.at[gs_topology_switch_of(&m->wires, d)];
        if (m->wires.in_place[d] && !m->wires.on_host[d])
            return gs_fail(GS_EINVAL, ".topology %s: device %u of .device %s has memory of its own; leave its "
                           "\"in_place\" out", s->config.options->topology, d, s->config.options->device);
        m->wires.in_place[d] = m->wires.on_host[d];
        if (gs_topology_speed(&m->wires, d) < 1)
            return gs_fail(GS_EINVAL, ".topology %s: \"speeds\": of processors and GPUs each is as fast as was "
                           "measured; leave it out", s->config.options->topology);
        if (m->wires.on_host[d] && at->devices > 1)
            return gs_fail(GS_EINVAL, ".topology %s: device %u of .device %s computes on host memory; give it a switch "
                           "of its own", s->config.options->topology, d, s->config.options->device);
    }
    return GS_OK;
}

/* Threads that all devices share, 0 for those of the machine. Of several ranks each has one device, and those of a
 * machine share it. */
static unsigned threads_of_all(const gs_train_options *o, uint32_t devices)
{
    if (gs_ranks_count() == 1 || devices == 1) /* batches are of this one's alone */
        return o->threads;
    return gs_ranks_threads(o->threads) * gs_ranks_count();
}

static gs_status open_each(gs_session *s, uint32_t devices)
{
    const gs_train_options *const o = s->config.options;

    for (uint32_t d = 0; d < GS_MIN(devices, GS_DEVICE_COUNT_MOST); d++) {
        if (d > 0 && gs_ranks_count() > 1) { /* a rank has one, which stands for those of the others */
            s->machine.device[s->machine.devices++] = s->machine.device[0];
            continue;
        }
        const gs_device_config config = {.spec = s->machine.spec, .threads = threads_of_all(o, devices), .index = d,
                                         .matmul = (gs_matmul)gs_choice(o, matmul)};
        GS_TRY(gs_device_open_with(&s->machine.device[d], &config));
        /* where it is given; else when the budgets are drawn up */
        gs_device_set_budget(s->machine.device[s->machine.devices++], o->device_memory);
    }
    return GS_OK;
}

/* How devices are joined, where no file says it. */
static gs_status find_wires(gs_session *s)
{
    gs_topology *const wires = &s->machine.wires;
    const gs_cluster *const c = s->config.cluster;
    gs_ranks_network found;

    if (gs_session_has_memories(s))
        find_chains(s);
    else
        gs_topology_one_switch(wires, s->machine.devices);
    if (c != NULL) {
        gs_topology_of_network(wires, s->machine.devices, c->bps, c->seconds, c->meeting);
        wires->across.shards = c->shards;
    } else if (gs_ranks_count() > 1) {
        GS_TRY(gs_ranks_measure(&found));
        gs_topology_of_network(wires, gs_ranks_count(), found.bps, found.seconds, found.meeting);
    }
    return GS_OK;
}

/* `alone`: leaves out the file's first device, the processors. */
static gs_status read_wires(gs_session *s, bool alone)
{
    const char *const path = s->config.options->topology;
    gs_topology *const wires = &s->machine.wires;

    if (gs_session_has_memories(s))
        look_around(s);
    GS_TRY(gs_topology_load(wires, path, s->machine.devices + alone));
    if (alone && wires->switches > 1 && wires->at[0].devices == 1)
        gs_topology_drop_first(wires);
    else if (alone)
        return gs_fail(GS_EINVAL, ".topology %s: device 0 of .device %s computes on host memory; give it a switch of "
                       "its own", path, s->config.options->device);
    if (wires->memory[0] > 0 && s->config.options->device_memory != 0)
        return gs_fail(GS_EINVAL, ".topology %s: \"memories\" and .device_memory both say what devices have; leave one "
                       "out", path);
    if (wires->across.network && gs_session_has_memories(s) && gs_ranks_count() == 1)
        return gs_fail(GS_EINVAL, ".topology %s: \"network\" is of ranks; start them, or use .device cpu:N", path);
    if (!wires->across.network && gs_ranks_count() > 1)
        return gs_fail(GS_EINVAL, ".topology %s: of several ranks it says their \"network\"", path);
    return GS_OK;
}

gs_status gs_session_open_devices(gs_session *s)
{
    const gs_train_options *const o = s->config.options;
    const char *const spec = s->config.device != NULL ? s->config.device : o->device;
    const bool alone = strcmp(spec, o->device) != 0;
    const uint32_t several = gs_device_count(spec);

    if (several == 0 && o->topology != NULL && !alone)
        return gs_fail(GS_EINVAL, ".topology %s: is for several devices; use it with .device cpu:N, cuda:A,B or "
                       "cpu,cuda:N", o->topology);
    snprintf(s->machine.spec, sizeof(s->machine.spec), "%s", spec);
    GS_TRY(open_each(s, several > 0 ? several : 1));
    if (gs_session_has_memories(s))
        s->machine.tree = gs_tree_open();
    else if (several == 0) {
        s->machine.wires = gs_topology_host;
        return place_kinds(s);
    }
    GS_TRY(o->topology != NULL ? read_wires(s, alone) : find_wires(s));
    s->machine.wires.across.shards |= gs_store_get_shard(s->store) != NULL;
    return place_kinds(s);
}

bool gs_session_has_memories(const gs_session *s)
{
    return gs_devices_have_memory(s->machine.device, s->machine.devices);
}

const gs_cost *gs_session_host_cost(const gs_session *s)
{
    return s->machine.kinds == 1 ? NULL : &s->machine.host_cost;
}

/* Machines with other processors than this one's `threads`. Each has a disk of its own, and a plan has one, which is as
 * fast as all. */
static void take_cluster(const gs_session *s, gs_cost *c, uint32_t threads)
{
    const gs_cluster *const k = s->config.cluster;
    const double at_once = k->threads > 0 ? (double)k->threads / threads : 1;

    for (int kind = 0; kind < GS_WORK_LINKS; kind++)
        for (int a = 0; a < GS_WORK_AMOUNTS; a++)
            c->seconds[kind][a] /= a > 0 ? k->speed * at_once : k->speed;
    if (k->disk_bps > 0)
        c->read_bps = c->write_bps = k->disk_bps;
    c->read_bps *= s->machine.devices;
    c->write_bps *= s->machine.devices;
    c->request_seconds /= s->machine.devices;
    c->block_seconds /= s->machine.devices;
}

void gs_session_cost_of(const gs_session *s, gs_cost *out, const gs_cost_record *record, uint32_t device)
{
    const bool cluster = s->config.cluster != NULL;
    const uint32_t threads = s->config.options->threads != 0 ? s->config.options->threads : gs_machine_cpus();
    /* beside GPUs it has all threads, as a rank has those of its machine */
    const uint32_t sharing = device == s->machine.kind[1] || cluster ? 1 : s->machine.devices;
    gs_gpu_speed gpu;
    const bool known = gs_device_speed(s->machine.device[device], &gpu);
    if (!s->machine.linked)
        gpu.linked_bps = 0;
    gs_cost_from_record(out, record, GS_MAX(threads / sharing, 1), known ? &gpu : NULL);
    if (cluster)
        take_cluster(s, out, threads);
}

static bool same_gpu(const gs_device *a, const gs_device *b)
{
    char at[2][GS_DEVICE_PLACE_BYTES];
    gs_device_bus_place(a, at[0]);
    gs_device_bus_place(b, at[1]);
    return strcmp(at[0], at[1]) == 0;
}

/* What ranks tell each other of their GPUs. */
typedef struct rank_gpu {
    uint64_t place; /* the same for ranks of a machine that have the same one */
    uint64_t free;
} rank_gpu;

/* The least that a rank has, the same for all. */
static gs_status free_of_ranks(const gs_device *d, uint64_t *bytes)
{
    rank_gpu own, all[GS_RANKS_MOST];
    char place[256 + GS_DEVICE_PLACE_BYTES] = "";

    (void)gethostname(place, 256);
    gs_device_bus_place(d, place + strlen(place));
    own.place = gs_hash64(place, strlen(place));
    GS_TRY(gs_device_free_memory(d, &own.free));
    GS_TRY(gs_ranks_gather(all, &own, sizeof(own)));
    for (uint32_t r = 0; r < gs_ranks_count(); r++) {
        uint32_t sharing = 0;
        for (uint32_t k = 0; k < gs_ranks_count(); k++)
            sharing += all[k].place == all[r].place;
        *bytes = GS_MIN(*bytes, all[r].free / sharing);
    }
    return GS_OK;
}

gs_status gs_session_free_device_memory(const gs_session *s, uint64_t *bytes)
{
    *bytes = UINT64_MAX;
    if (gs_ranks_count() > 1)
        return free_of_ranks(s->machine.device[0], bytes);
    for (uint32_t d = 0; d < s->machine.devices; d++) {
        uint32_t sharing = 0;
        uint64_t of_gpu;
        for (uint32_t k = 0; k < s->machine.devices; k++)
            sharing += same_gpu(s->machine.device[d], s->machine.device[k]);
        GS_TRY(gs_device_free_memory(s->machine.device[d], &of_gpu));
        *bytes = GS_MIN(*bytes, of_gpu / sharing);
    }
    return GS_OK;
}

/* ---- which of processors and GPUs compute --------------------------------- */

/* Of processors and GPUs, which compute: all, or those of one kind alone.
 *
 * Alone, the processors compute in host memory, without an arena and copies, and GPUs wait for nobody. So each way is
 * planned as it would be if it were asked for, and the one whose run is predicted to be shortest is taken; all
 * together only where that is an eighth shorter than the better kind's (schedule/deals.h says why). One session is open
 * at a time, as each has its own tables of the store; the one that is taken is made again where it was not the last.
 */

enum { BOTH, PROCESSORS, GPUS, WAYS };
_Static_assert((int)WAYS <= (int)GS_SESSION_WAYS, "a session has place for them");

static gs_status open_way(gs_session **out, const gs_session_config *config, const char *device, gs_refusal *refused)
{
    gs_session_config one = *config;
    one.device = device;
    one.refused = refused;
    return gs_session_open_on(out, &one);
}

/* True if `x` asks for less than `than`. Where a refusal is for host memory, the device's is enough. */
static bool asks_less(const gs_refusal *x, const gs_refusal *than)
{
    return x->host != 0 && (than->host == 0 || x->host < than->host);
}

static bool takes_all(const gs_session_config *config)
{
    const gs_train_options *const o = config->options;
    gs_topology wires = {0};
    return gs_topology_load(&wires, o->topology, gs_device_count(o->device)) == GS_OK && wires.all;
}

static void note_ways(gs_session *s, const gs_session_way *way, uint32_t taken)
{
    memcpy(s->machine.way, way, WAYS * sizeof(*way));
    s->machine.ways = WAYS;
    s->machine.way_taken = taken;
}

static gs_status choose(gs_session **out, const gs_session_config *config)
{
    const char *const device = config->options->device;
    gs_session_way way[WAYS] = {{.seconds = 0}};
    double run_seconds[WAYS] = {0};
    char why[GS_ERROR_BYTES] = "";
    gs_session *s = NULL;
    gs_refusal least = {0};
    uint32_t best = WAYS;
    gs_status st = GS_OK;

    snprintf(way[BOTH].device, sizeof(way[BOTH].device), "%s", device);
    snprintf(way[PROCESSORS].device, sizeof(way[PROCESSORS].device), "cpu");
    snprintf(way[GPUS].device, sizeof(way[GPUS].device), "%s", gs_device_gpus_beside(device));
    for (uint32_t w = 0; w < WAYS; w++) {
        gs_refusal refused = {0};
        gs_session_close(s);
        s = NULL;
        if ((st = open_way(&s, config, way[w].device, &refused)) != GS_OK && st != GS_EBUDGET)
            return st;
        if (st != GS_OK) { /* where no way keeps the budgets, the words of the one that asks least */
            if (w == BOTH || asks_less(&refused, &least)) {
                snprintf(why, sizeof(why), "%s", gs_last_error());
                least = refused;
            }
            if (w == BOTH && takes_all(config))
                break;
            continue;
        }
        if (w == BOTH && s->machine.wires.all) {
            *out = s;
            return GS_OK;
        }
        way[w].seconds = gs_session_epoch_seconds(s);
        run_seconds[w] = gs_session_run_seconds(s);
        if (best == WAYS || run_seconds[w] * (best == BOTH ? GS_SEVERAL_WORTH : 1) < run_seconds[best])
            best = w;
    }
    if (best == WAYS) {
        if (config->refused != NULL)
            *config->refused = least;
        return gs_fail(GS_EBUDGET, "%s", why);
    }
    if (best != WAYS - 1 || st != GS_OK) {
        gs_session_close(s);
        s = NULL;
        GS_TRY(open_way(&s, config, way[best].device, NULL));
    }
    note_ways(s, way, best);
    *out = s;
    return GS_OK;
}

gs_status gs_session_open(gs_session **out, const gs_session_config *config)
{
    if (config->earlier != NULL)
        return open_way(out, config, config->earlier->device, NULL);
    return gs_device_gpus_beside(config->options->device) == NULL ? gs_session_open_on(out, config)
                                                                  : choose(out, config);
}
