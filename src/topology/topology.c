/* topology.c - devices under switches, and clusters: made, and read from files. */
#include "topology/topology.h"

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/record.h"
#include "base/size.h"

/* ---- the text of a tree ------------------------------------------------ */

void gs_topology_of_groups(gs_topology *out, const uint32_t *group, uint32_t devices)
{
    *out = (gs_topology){.devices = devices};
    for (uint32_t d = 0; d < devices; d++) {
        if (d == 0 || group[d] != group[d - 1])
            out->at[out->switches++] = (gs_topology_switch){.first = d};
        out->at[out->switches - 1].devices++;
    }
}

#ifdef GS_HAVE_HWLOC
#include <hwloc.h>
#include <pthread.h>
#include <stdlib.h>

/* Reading a machine is hundreds of reads of small files, and what a GPU needs at least is found by opening it a hundred
 * times: the tree stays for as long as the process, and is read again where hwloc is told of another machine. */
struct gs_tree {
    hwloc_topology_t of;
    uint64_t source; /* of_source() when it was read */
    bool read;
    uint32_t users; /* between gs_tree_open() and gs_tree_close() */
};

static gs_tree machine_tree;
static pthread_mutex_t tree_lock = PTHREAD_MUTEX_INITIALIZER; /* of all of it, but of `of` while there are users */

/* What hwloc is told by the environment, as one number. */
static uint64_t of_source(void)
{
    static const char *const variable[] = {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_COMPONENTS",
                                           "HWLOC_THISSYSTEM"};
    uint64_t hash = 0;
    for (size_t i = 0; i < GS_ARRAY_LEN(variable); i++) {
        const char *const value = getenv(variable[i]);
        hash = hash * 31 + (value == NULL ? i : gs_hash64(value, strlen(value)));
    }
    return hash;
}

static bool read_tree(gs_tree *t, uint64_t source)
{
    if (t->read)
        hwloc_topology_destroy(t->of);
    t->read = false;
    if (hwloc_topology_init(&t->of) != 0)
        return false;
    if (hwloc_topology_set_io_types_filter(t->of, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 || hwloc_topology_load(t->of) != 0) {
        hwloc_topology_destroy(t->of);
        return false;
    }
    t->read = true;
    t->source = source;
    return true;
}

gs_tree *gs_tree_open(void)
{
    gs_tree *const t = &machine_tree;
    const uint64_t source = of_source();

    pthread_mutex_lock(&tree_lock);
    const bool there = (t->read && t->source == source) || (t->users == 0 && read_tree(t, source));
    t->users += there;
    pthread_mutex_unlock(&tree_lock);
    return there ? t : NULL;
}

void gs_tree_close(gs_tree *t)
{
    if (t == NULL)
        return;
    pthread_mutex_lock(&tree_lock);
    t->users--;
    pthread_mutex_unlock(&tree_lock);
}

static hwloc_obj_t find(const gs_tree *t, const char *place)
{
    return t == NULL ? NULL : hwloc_get_pcidev_by_busidstring(t->of, place);
}

/* What it hangs under: the bridge from PCI to PCI that is next to the host's, which is the port that a switch is
 * plugged in; else itself. */
static hwloc_obj_t port_of(hwloc_obj_t device)
{
    hwloc_obj_t port = device;
    for (hwloc_obj_t o = device == NULL ? NULL : device->parent; o != NULL; o = o->parent)
        if (o->type == HWLOC_OBJ_BRIDGE && o->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI)
            port = o;
    return port;
}

static bool together(const gs_tree *t, const char *a, const char *b)
{
    const hwloc_obj_t x = find(t, a), y = find(t, b);
    return strcmp(a, b) == 0 || x == NULL || y == NULL || port_of(x) == port_of(y);
}

uint32_t gs_tree_node(const gs_tree *t, const char *place)
{
    const hwloc_obj_t device = find(t, place),
                      near = device == NULL ? NULL : hwloc_get_non_io_ancestor_obj(t->of, device);
    if (near == NULL || near->nodeset == NULL || hwloc_bitmap_weight(near->nodeset) != 1)
        return GS_TREE_NO_NODE;
    const int node = hwloc_bitmap_first(near->nodeset);
    return node >= 0 && node < (int)GS_TREE_NODES ? (uint32_t)node : GS_TREE_NO_NODE;
}

bool gs_tree_bind_thread(const gs_tree *t, uint32_t node)
{
    const hwloc_obj_t at =
        t == NULL || node == GS_TREE_NO_NODE ? NULL : hwloc_get_numanode_obj_by_os_index(t->of, node);
    return at != NULL && hwloc_set_cpubind(t->of, at->cpuset, HWLOC_CPUBIND_THREAD) == 0;
}

bool gs_tree_bind_memory(const gs_tree *t, void *memory, uint64_t bytes, uint64_t nodes)
{
    const hwloc_bitmap_t set = t == NULL || nodes == 0 ? NULL : hwloc_bitmap_alloc();
    if (set == NULL)
        return false;
    for (unsigned n = 0; n < GS_TREE_NODES; n++)
        if ((nodes >> n & 1) != 0)
            hwloc_bitmap_set(set, n);
    const hwloc_membind_policy_t how = (nodes & (nodes - 1)) == 0 ? HWLOC_MEMBIND_BIND : HWLOC_MEMBIND_INTERLEAVE;
    const bool bound = hwloc_set_area_membind(t->of, memory, bytes, set, how, HWLOC_MEMBIND_BYNODESET) == 0;
    hwloc_bitmap_free(set);
    return bound;
}

#else

gs_tree *gs_tree_open(void) { return NULL; }
void gs_tree_close(gs_tree *t) { (void)t; }

static bool together(const gs_tree *t, const char *a, const char *b)
{
    (void)t, (void)a, (void)b;
    return true;
}

uint32_t gs_tree_node(const gs_tree *t, const char *place)
{
    (void)t, (void)place;
    return GS_TREE_NO_NODE;
}

bool gs_tree_bind_thread(const gs_tree *t, uint32_t node)
{
    (void)t, (void)node;
    return false;
}

bool gs_tree_bind_memory(const gs_tree *t, void *memory, uint64_t bytes, uint64_t nodes)
{
    (void)t, (void)memory, (void)bytes, (void)nodes;
    return false;
}
#endif

void gs_tree_groups(const gs_tree *t, const char *const *place, uint32_t devices, uint32_t *group)
{
    uint32_t groups = 0;
    for (uint32_t d = 0; d < devices; d++) {
        uint32_t before = 0;
        while (before < d && !(t == NULL || together(t, place[d], place[before])))
            before++;
        group[d] = before < d ? group[before] : groups++;
    }
}

/* ---- links ------------------------------------------------------------- */

#define FILE_MOST (64 * GS_KIB)
/* A wire slower than this would stand still, a faster one needs no throttle. */
#define BPS_LEAST 1e3
#define BPS_MOST 1e15
/* A device slower than this is one that stands still. */
#define SPEED_LEAST 1e-3
#define MEMORY_MOST 1e15
#define SECONDS_MOST 10.0 /* of a message */
#define USUAL_MEETING 0x1p-12 /* of two ranks of one machine: 0.3 ms */
#define WHERE_BYTES 4200 /* a path, and which switch */

const gs_topology gs_topology_host = {
    .devices = 1, .switches = 1, .at = {{.devices = 1}}, .on_host = {true}, .in_place = {true}, .alone = true};

void gs_topology_one_switch(gs_topology *out, uint32_t devices)
{
    *out = (gs_topology){.devices = devices, .switches = 1, .at = {{.first = 0, .devices = devices}}};
}

void gs_topology_of_network(gs_topology *out, uint32_t ranks, double bps, double seconds, double meeting)
{
    *out = (gs_topology){.devices = ranks, .switches = ranks,
                         .across = {.joined = true, .bps = bps, .network = true, .seconds = seconds,
                                    .meeting = meeting}};
    for (uint32_t r = 0; r < ranks; r++)
        out->at[r] = (gs_topology_switch){.first = r, .devices = 1};
}

void gs_topology_drop_first(gs_topology *t)
{
    const uint32_t gone = t->at[0].devices;

    t->devices -= gone;
    t->switches--;
    memmove(t->at, t->at + 1, t->switches * sizeof(*t->at));
    for (uint32_t s = 0; s < t->switches; s++)
        t->at[s].first -= gone;
    memmove(t->speed, t->speed + gone, t->devices * sizeof(*t->speed));
    memmove(t->memory, t->memory + gone, t->devices * sizeof(*t->memory));
    memmove(t->on_host, t->on_host + gone, t->devices * sizeof(*t->on_host));
    memmove(t->in_place, t->in_place + gone, t->devices * sizeof(*t->in_place));
    t->place = (gs_topology_place){0}; /* its shares were among those who are gone */
}

uint32_t gs_topology_switch_of(const gs_topology *t, uint32_t device)
{
    uint32_t s = 0;
    while (s + 1 < t->switches && device >= t->at[s].first + t->at[s].devices)
        s++;
    return s;
}

double gs_topology_between(const gs_topology *t, uint32_t from, uint32_t to)
{
    const uint32_t at = gs_topology_switch_of(t, to);
    return gs_topology_switch_of(t, from) == at ? t->at[at].peer_bps : t->across.bps;
}

bool gs_topology_hands_on(const gs_topology *t, uint32_t from, uint32_t to)
{
    const uint32_t at = gs_topology_switch_of(t, to);
    const gs_topology_across *const a = &t->across;
    const bool slower = a->bps > 0 && (t->at[at].host_bps == 0 || a->bps < t->at[at].host_bps);

    return gs_topology_switch_of(t, from) == at || (a->joined && !a->network && !slower);
}

uint64_t gs_topology_more(const gs_topology *t, uint32_t device, uint64_t least)
{
    return t->memory[device] > least ? t->memory[device] - least : 0;
}

double gs_topology_speed(const gs_topology *t, uint32_t device)
{
    return t->speed[device] > 0 ? t->speed[device] : 1;
}

/* ---- files ------------------------------------------------------------- */

#define BPS_WORDS "be a number of bytes per second from 1000 to 1e+15"
#define DEVICES_WORDS "be a whole number from 1, of 16 in all at the most"
#define SHARE_WORDS "be \"chains\" or \"ring\"; without it the faster one is taken"
#define TAKE_WORDS "be \"all\"; without it those devices are taken that are faster"
#define WIDTH_WORDS \
    "be true, and not of ranks; without it the width of rows is dealt where that is predicted to be shorter"
#define IN_PLACE_WORDS \
    "be true or false, and true of one device in all, under a switch of its own without host_bps, as nothing is " \
    "copied to it"
#define BPS(of, member, key) \
    GS_FIELD(of, member, REAL, key, .least = BPS_LEAST, .most = BPS_MOST, .may_lack = true, .must = BPS_WORDS)

static const gs_field switch_fields[] = {
    GS_FIELD(gs_topology_switch, devices, U32, "devices", .least = 1, .most = GS_TOPOLOGY_DEVICES,
             .must = DEVICES_WORDS),
    BPS(gs_topology_switch, host_bps, "host_bps"),
    BPS(gs_topology_switch, peer_bps, "peer_bps"),
};
static const gs_field speeds_field = {
    .name = "speeds", .kind = GS_FIELD_REAL, .least = SPEED_LEAST, .most = 1,
    .must = "be shares of the fastest device's, from 0.001 to 1"};
static const gs_field memories_field = {.name = "memories", .kind = GS_FIELD_U64, .least = 1, .most = MEMORY_MOST,
                                        .must = "be whole numbers of bytes, up to 1e+15"};
static const gs_field in_place_field = {
    .name = "in_place", .kind = GS_FIELD_BOOL, .may_lack = true, .must = IN_PLACE_WORDS};
static const gs_field network_fields[] = {
    GS_FIELD(gs_topology_across, bps, REAL, "bps", .least = BPS_LEAST, .most = BPS_MOST),
    GS_FIELD(gs_topology_across, seconds, REAL, "seconds", .most = SECONDS_MOST),
    GS_FIELD(gs_topology_across, meeting, REAL, "meeting", .most = SECONDS_MOST, .may_lack = true),
    GS_FIELD(gs_topology_across, shards, BOOL, "shards", .may_lack = true),
};

/* A topology as its file has it, where that is not how it is kept. */
typedef struct said {
    char share[8], take[4];
    bool width;
} said;
static const gs_field said_fields[] = {
    GS_FIELD(said, share, TEXT, "share", .most = sizeof(((said *)0)->share), .may_lack = true, .must = SHARE_WORDS),
    GS_FIELD(said, take, TEXT, "take", .most = sizeof(((said *)0)->take), .may_lack = true, .must = TAKE_WORDS),
    GS_FIELD(said, width, BOOL, "width", .may_lack = true, .must = WIDTH_WORDS),
};
static const gs_field across_field[] = {BPS(gs_topology, across.bps, "across_bps")};

/* A number for each device, in order; `whose`: "its" of a switch, "the" of all. */
static void read_list(gs_record *r, const gs_field *each, uint32_t devices, const char *whose, void *to)
{
    const cJSON *const list = cJSON_GetObjectItemCaseSensitive(r->object, each->name);
    gs_field f = *each;
    char what[80];

    f.count = devices;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)devices) {
        snprintf(what, sizeof(what), "must be a list of a number for each of %s %u devices", whose, devices);
        gs_record_refuse(r, f.name, what);
    }
    gs_record_read(r, &f, 1, to);
}

/* Has the host another device that computes in place? Two would use the same rows, and each says when they may go. */
static bool has_in_place(const gs_topology *t, uint32_t devices)
{
    for (uint32_t d = 0; d < devices; d++)
        if (t->in_place[d])
            return true;
    return false;
}

static gs_status read_switch(gs_topology *t, cJSON *s, const char *path)
{
    const uint32_t first = t->devices;
    gs_topology_switch *const to = &t->at[t->switches];
    char where[WHERE_BYTES];
    gs_record r = {.object = s, .path = where, .where = "", .advice = ""};

    snprintf(where, sizeof(where), "%s: switch %u", path, t->switches++);
    if (!cJSON_IsObject(s))
        return gs_fail(GS_EFORMAT, "%s is no object", where);
    gs_record_allow(&r, "devices, host_bps, peer_bps, speeds, memories, in_place");
    gs_record_read(&r, GS_FIELDS(switch_fields), to);
    if (r.st == GS_OK && first + to->devices > GS_TOPOLOGY_DEVICES)
        gs_record_refuse(&r, "devices", "must " DEVICES_WORDS);
    if (r.st != GS_OK)
        return r.st;
    to->first = first;
    t->devices += to->devices;
    if (gs_record_has(&r, "speeds")) /* nothing said: all are as fast */
        read_list(&r, &speeds_field, to->devices, "its", &t->speed[first]);
    if (gs_record_has(&r, "memories"))
        read_list(&r, &memories_field, to->devices, "its", &t->memory[first]);
    gs_record_read(&r, &in_place_field, 1, &t->in_place[first]);
    if (t->in_place[first] && (to->devices != 1 || to->host_bps > 0 || has_in_place(t, first)))
        gs_record_refuse(&r, "in_place", "must " IN_PLACE_WORDS);
    return r.st;
}

/* "network" of a topology or of a cluster. .bps 0: nothing is said. */
static void read_network(gs_topology_across *out, gs_record *of)
{
    char where[GS_WHERE_BYTES];

    *out = (gs_topology_across){.joined = true, .network = true, .meeting = USUAL_MEETING};
    if (!gs_record_has(of, "network"))
        return;
    gs_record r = gs_record_open(of, "network", where);
    gs_record_allow(&r, "bps, seconds, meeting, shards");
    gs_record_read(&r, GS_FIELDS(network_fields), out);
    gs_record_close(of, &r);
    if (of->st != GS_OK)
        of->st = gs_fail(GS_EFORMAT, "%s: \"network\" must be {\"bps\": 1e9, \"seconds\": 5e-5}, bytes a second and "
                         "what a message takes beside, up to %g, \"meeting\": 2e-4 where one is known to take so long, "
                         "and \"shards\": true where each rank has its own rows of the store alone", of->path,
                         SECONDS_MOST);
}

/* Ranks, which have no other wires. */
static gs_status take_network(gs_topology *t, const gs_topology_across *across, const char *path)
{
    if (t->across.bps > 0 || t->across.share != GS_SHARE_FASTER)
        return gs_fail(GS_EFORMAT, "%s: \"network\" is of ranks, which have no \"across_bps\" and no \"share\"", path);
    for (uint32_t s = 0; s < t->switches; s++)
        if (t->at[s].devices != 1 || t->at[s].host_bps > 0 || t->at[s].peer_bps > 0 || t->in_place[t->at[s].first])
            return gs_fail(GS_EFORMAT, "%s: switch %u: \"network\" is of ranks: a switch each, with one device, and "
                           "without host_bps, peer_bps and in_place", path, s);
    t->across = *across;
    return GS_OK;
}

/* What was said in words, and whether all of it goes together. */
static gs_status take_said(gs_topology *t, const said *x, const gs_topology_across *across, gs_record *r, bool width)
{
    t->across.joined = t->across.bps > 0;
    t->across.share = strcmp(x->share, "chains") == 0 ? GS_SHARE_CHAINS
                      : strcmp(x->share, "ring") == 0 ? GS_SHARE_ROUND
                                                      : GS_SHARE_FASTER;
    t->all = strcmp(x->take, "all") == 0;
    t->width = x->width;
    for (uint32_t d = 1; d < t->devices; d++)
        if ((t->memory[d] > 0) != (t->memory[0] > 0))
            return gs_fail(GS_EFORMAT, "%s: \"memories\" must be said of all switches, or of none", r->path);
    if (x->share[0] != '\0' && t->across.share == GS_SHARE_FASTER)
        gs_record_refuse(r, "share", "must " SHARE_WORDS);
    if (r->st == GS_OK && t->across.share == GS_SHARE_ROUND && t->switches > 1 && !t->across.joined)
        return gs_fail(GS_EFORMAT, "%s: a ring over several switches needs \"across_bps\", bytes per second between "
                       "their devices", r->path);
    if (r->st == GS_OK && across->bps > 0)
        GS_TRY(take_network(t, across, r->path));
    if (width && (!x->width || t->across.network))
        gs_record_refuse(r, "width", "must " WIDTH_WORDS);
    if (x->take[0] != '\0' && !t->all)
        gs_record_refuse(r, "take", "must " TAKE_WORDS);
    return r->st;
}

/* A share for each device, 0 or more, and one of them above 0. */
static void read_shares(gs_record *r, const char *key, const gs_topology *t, double *out)
{
    const gs_field each = {.name = key, .kind = GS_FIELD_REAL, .most = 1, .must = "be shares from 0 to 1"};
    double sum = 0;

    read_list(r, &each, t->devices, "the", out);
    for (uint32_t d = 0; d < t->devices; d++)
        sum += out[d];
    if (r->st == GS_OK && sum == 0)
        r->st = gs_fail(GS_EFORMAT, "%s: \"%s\": some device must have a share", r->path, key);
}

static gs_status read_place(gs_topology *t, gs_record *of)
{
    char where[WHERE_BYTES], within[GS_WHERE_BYTES];

    if (!gs_record_has(of, "place"))
        return of->st;
    snprintf(where, sizeof(where), "%s: \"place\"", of->path);
    gs_record r = gs_record_open(of, "place", within);
    gs_record_allow(&r, "edges, vertices");
    if (r.st != GS_OK)
        r.st = gs_fail(GS_EFORMAT, "%s: \"place\" must be {\"edges\": [...], \"vertices\": [...]}", of->path);
    r.path = where;
    r.where = "";
    t->place.said = t->all = true;
    read_shares(&r, "edges", t, t->place.edges);
    read_shares(&r, "vertices", t, t->place.vertices);
    gs_record_close(of, &r);
    return of->st;
}

static gs_status read_all(gs_topology *t, cJSON *root, const char *path)
{
    const cJSON *const switches = cJSON_GetObjectItemCaseSensitive(root, "switches");
    gs_record r = {.object = root, .path = path, .where = "", .advice = ""};
    gs_topology_across across;
    said x = {0};

    if (!cJSON_IsObject(root) || !cJSON_IsArray(switches) || cJSON_GetArraySize(switches) == 0)
        return gs_fail(GS_EFORMAT,
                       "%s: not a topology: {\"switches\": [{\"devices\": 2, \"host_bps\": 1e9}, ...]} is expected",
                       path);
    for (cJSON *s = switches->child; s != NULL; s = s->next)
        GS_TRY(t->switches < GS_TOPOLOGY_DEVICES
                   ? read_switch(t, s, path)
                   : gs_fail(GS_EFORMAT, "%s: more than %u switches", path, GS_TOPOLOGY_DEVICES));
    gs_record_allow(&r, "switches, across_bps, share, take, place, network, width");
    const bool width = gs_record_has(&r, "width");
    gs_record_read(&r, GS_FIELDS(across_field), t);
    gs_record_read(&r, GS_FIELDS(said_fields), &x);
    read_network(&across, &r);
    GS_TRY(r.st);
    GS_TRY(take_said(t, &x, &across, &r, width));
    return read_place(t, &r);
}

/* The caller deletes *root, also on failure. */
static gs_status read_json(cJSON **root, const char *path)
{
    GS_FREED char *text = NULL;
    uint64_t bytes = 0;

    GS_TRY(gs_file_read_all(&text, &bytes, path, FILE_MOST));
    if ((memchr(text, '\0', bytes) != NULL || (*root = cJSON_ParseWithOpts(text, NULL, 1)) == NULL))
        return gs_fail(GS_EFORMAT, "%s: not JSON", path);
    return GS_OK;
}

gs_status gs_topology_load(gs_topology *out, const char *path, uint32_t devices)
{
    gs_topology t = {0};
    GS_ENDS(cJSON_Delete_at) cJSON *root = NULL;

    if (path == NULL)
        return GS_OK;
    GS_TRY(read_json(&root, path));
    GS_TRY(read_all(&t, root, path));
    if (t.devices != devices)
        return gs_fail(GS_EINVAL, "%s: a topology of %u devices, and .device names %u", path, t.devices, devices);
    *out = t;
    return GS_OK;
}

/* ---- clusters ---------------------------------------------------------- */

static const gs_field cluster_fields[] = {
    GS_FIELD(gs_cluster, ranks, U32, "ranks", .least = 1, .most = 65536),
    GS_FIELD(gs_cluster, threads, U32, "threads", .least = 1, .most = 4096, .may_lack = true),
    GS_FIELD(gs_cluster, memory, U64, "memory", .least = 1, .most = MEMORY_MOST, .may_lack = true),
    GS_FIELD(gs_cluster, speed, REAL, "speed", .least = SPEED_LEAST, .most = 1 / SPEED_LEAST, .may_lack = true),
    GS_FIELD(gs_cluster, disk_bps, REAL, "disk_bps", .least = BPS_LEAST, .most = BPS_MOST, .may_lack = true),
    GS_FIELD(gs_cluster, price, REAL, "price", .most = MEMORY_MOST, .may_lack = true),
};

static gs_status read_cluster(gs_cluster *out, cJSON *root, const char *path)
{
    gs_record r = {.object = root, .path = path, .where = "", .advice = ""};
    gs_topology_across across;

    if (!cJSON_IsObject(root) || cJSON_GetObjectItemCaseSensitive(root, "ranks") == NULL)
        return gs_fail(GS_EFORMAT, "%s: not a cluster: {\"ranks\": 64, \"memory\": 256e9, \"network\": {\"bps\": 1e9, "
                       "\"seconds\": 5e-5}} is expected", path);
    gs_record_allow(&r, "ranks, threads, memory, speed, disk_bps, price, network");
    gs_record_read(&r, GS_FIELDS(cluster_fields), out);
    read_network(&across, &r);
    if (r.st == GS_OK && across.bps == 0 && out->ranks > 1)
        return gs_fail(GS_EFORMAT, "%s: of several ranks it says their \"network\"", path);
    out->bps = across.bps;
    out->seconds = across.seconds;
    out->meeting = across.meeting;
    out->shards = across.shards;
    return r.st;
}

gs_status gs_cluster_load(gs_cluster *out, const char *path)
{
    gs_cluster c = {.speed = 1};
    GS_ENDS(cJSON_Delete_at) cJSON *root = NULL;
    gs_status st = read_json(&root, path);

    if (st == GS_OK && (st = read_cluster(&c, root, path)) == GS_OK)
        *out = c;
    return st;
}
