/* topology.c - devices under switches, and clusters: made, and read from files. */
#include "topology/topology.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
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

struct gs_tree {
    hwloc_topology_t of;
};

gs_tree *gs_tree_open(void)
{
    gs_tree *const t = gs_calloc(1, sizeof(*t));
    if (t == NULL || hwloc_topology_init(&t->of) != 0) {
        gs_free(t);
        return NULL;
    }
    if (hwloc_topology_set_io_types_filter(t->of, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 || hwloc_topology_load(t->of) != 0) {
        gs_tree_close(t);
        return NULL;
    }
    return t;
}

void gs_tree_close(gs_tree *t)
{
    if (t == NULL)
        return;
    hwloc_topology_destroy(t->of);
    gs_free(t);
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
#define WHERE_BYTES 4200 /* a path, and which switch */

void gs_topology_one_switch(gs_topology *out, uint32_t devices)
{
    *out = (gs_topology){.devices = devices, .switches = 1, .at = {{.first = 0, .devices = devices}}};
}

void gs_topology_of_network(gs_topology *out, uint32_t ranks, double bps, double seconds)
{
    *out = (gs_topology){.devices = ranks, .switches = ranks,
                         .across = {.joined = true, .bps = bps, .network = true, .seconds = seconds}};
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
    return t != NULL && t->speed[device] > 0 ? t->speed[device] : 1;
}

/* `where`: the file, and what of it. 0 where nothing is said. */
static gs_status rate(double *out, const cJSON *of, const char *key, const char *where)
{
    const cJSON *const v = cJSON_GetObjectItemCaseSensitive(of, key);
    *out = 0;
    if (v == NULL)
        return GS_OK;
    if (!cJSON_IsNumber(v) || !isfinite(v->valuedouble) || v->valuedouble < BPS_LEAST || v->valuedouble > BPS_MOST)
        return gs_fail(GS_EFORMAT, "%s: \"%s\" must be a number of bytes per second from %g to %g", where, key,
                       BPS_LEAST, BPS_MOST);
    *out = v->valuedouble;
    return GS_OK;
}

/* The first key of an object that is none of these; NULL: there is none. */
static const char *unknown_key(const cJSON *of, const char *const *known, size_t count)
{
    for (const cJSON *k = of->child; k != NULL; k = k->next) {
        size_t i = 0;
        while (i < count && strcmp(k->string, known[i]) != 0)
            i++;
        if (i == count)
            return k->string;
    }
    return NULL;
}

/* A number for each of the switch's devices, in order; *list NULL: nothing is said. */
static gs_status list_of(const cJSON **list, const cJSON *s, const char *key, const char *path, uint32_t index,
                         uint32_t devices)
{
    *list = cJSON_GetObjectItemCaseSensitive(s, key);
    if (*list == NULL || (cJSON_IsArray(*list) && cJSON_GetArraySize(*list) == (int)devices))
        return GS_OK;
    return gs_fail(GS_EFORMAT, "%s: switch %u: \"%s\" must be a list of a number for each of its %u devices", path,
                   index, key, devices);
}

static gs_status memories(gs_topology *t, const cJSON *s, const char *path, uint32_t index)
{
    const cJSON *list;
    uint32_t device = t->at[index].first;
    const gs_status st = list_of(&list, s, "memories", path, index, t->at[index].devices);

    for (const cJSON *v = st == GS_OK && list != NULL ? list->child : NULL; v != NULL; v = v->next, device++) {
        if (!cJSON_IsNumber(v) || !(v->valuedouble >= 1) || v->valuedouble > MEMORY_MOST ||
            v->valuedouble != floor(v->valuedouble))
            return gs_fail(GS_EFORMAT, "%s: switch %u: \"memories\" must be whole numbers of bytes, up to %g", path,
                           index, MEMORY_MOST);
        t->memory[device] = (uint64_t)v->valuedouble;
    }
    return st;
}

/* Nothing said: all are as fast. */
static gs_status speeds(gs_topology *t, const cJSON *s, const char *path, uint32_t index)
{
    const cJSON *list;
    uint32_t device = t->at[index].first;
    const gs_status st = list_of(&list, s, "speeds", path, index, t->at[index].devices);

    for (const cJSON *v = st == GS_OK && list != NULL ? list->child : NULL; v != NULL; v = v->next, device++) {
        if (!cJSON_IsNumber(v) || !(v->valuedouble >= SPEED_LEAST) || v->valuedouble > 1)
            return gs_fail(GS_EFORMAT, "%s: switch %u: \"speeds\" must be shares of the fastest device's, from %g to 1",
                           path, index, SPEED_LEAST);
        t->speed[device] = v->valuedouble;
    }
    return st;
}

/* Has the host another device that computes in place? Two would use the same rows, and each says when they may go. */
static bool has_in_place(const gs_topology *t)
{
    for (uint32_t d = 0; d < t->devices; d++)
        if (t->in_place[d])
            return true;
    return false;
}

static gs_status in_place(gs_topology *t, const cJSON *s, const char *path, uint32_t index)
{
    const cJSON *const said = cJSON_GetObjectItemCaseSensitive(s, "in_place");
    const gs_topology_switch *const at = &t->at[index];

    if (said == NULL || cJSON_IsFalse(said))
        return GS_OK;
    if (!cJSON_IsTrue(said) || at->devices != 1 || at->host_bps > 0 || has_in_place(t))
        return gs_fail(GS_EFORMAT, "%s: switch %u: \"in_place\" must be true or false, and true of one device in all, "
                       "under a switch of its own without host_bps, as nothing is copied to it", path, index);
    t->in_place[at->first] = true;
    return GS_OK;
}

static gs_status read_switch(gs_topology *t, const cJSON *s, const char *path)
{
    static const char *const known[] = {"devices", "host_bps", "peer_bps", "speeds", "memories", "in_place"};
    const uint32_t index = t->switches;
    const cJSON *const n = cJSON_GetObjectItemCaseSensitive(s, "devices");
    gs_topology_switch *const to = &t->at[index];
    char where[WHERE_BYTES];
    const char *key;
    gs_status st;

    if (!cJSON_IsObject(s))
        return gs_fail(GS_EFORMAT, "%s: switch %u is no object", path, index);
    if ((key = unknown_key(s, known, GS_ARRAY_LEN(known))) != NULL)
        return gs_fail(GS_EFORMAT,
                       "%s: switch %u: \"%.40s\" is not known; there are devices, host_bps, peer_bps, speeds, "
                       "memories and in_place",
                       path, index, key);
    if (!cJSON_IsNumber(n) || !(n->valuedouble >= 1) || n->valuedouble > GS_TOPOLOGY_DEVICES ||
        n->valuedouble != floor(n->valuedouble) || t->devices + n->valuedouble > GS_TOPOLOGY_DEVICES)
        return gs_fail(GS_EFORMAT, "%s: switch %u: \"devices\" must be a whole number from 1, of %u in all at the most",
                       path, index, GS_TOPOLOGY_DEVICES);
    snprintf(where, sizeof(where), "%s: switch %u", path, index);
    if ((st = rate(&to->host_bps, s, "host_bps", where)) != GS_OK ||
        (st = rate(&to->peer_bps, s, "peer_bps", where)) != GS_OK)
        return st;
    to->first = t->devices;
    to->devices = (uint32_t)n->valuedouble;
    t->devices += to->devices;
    t->switches++;
    if ((st = speeds(t, s, path, index)) == GS_OK && (st = memories(t, s, path, index)) == GS_OK)
        st = in_place(t, s, path, index);
    return st;
}

/* Between devices of different switches, and which of the two ways to share rows is taken. */
static gs_status read_across(gs_topology *t, const cJSON *root, const char *path)
{
    static const char *const words[] = {[GS_SHARE_CHAINS] = "chains", [GS_SHARE_ROUND] = "ring"};
    const cJSON *const share = cJSON_GetObjectItemCaseSensitive(root, "share");
    const char *const said = cJSON_GetStringValue(share);
    gs_status st = rate(&t->across.bps, root, "across_bps", path);

    t->across.joined = t->across.bps > 0;
    for (int w = GS_SHARE_CHAINS; said != NULL && w <= GS_SHARE_ROUND; w++)
        if (strcmp(said, words[w]) == 0)
            t->across.share = (gs_topology_share)w;
    if (st == GS_OK && share != NULL && t->across.share == GS_SHARE_FASTER)
        st = gs_fail(GS_EFORMAT, "%s: \"share\" must be \"chains\" or \"ring\"; without it the faster one is taken",
                     path);
    if (st == GS_OK && t->across.share == GS_SHARE_ROUND && t->switches > 1 && !t->across.joined)
        st = gs_fail(GS_EFORMAT,
                     "%s: a ring over several switches needs \"across_bps\", bytes per second between their devices",
                     path);
    return st;
}

/* "network" of a topology or of a cluster. .bps 0: nothing is said. */
static gs_status network_of(gs_topology_across *out, const cJSON *root, const char *path)
{
    static const char *const known[] = {"bps", "seconds", "shards"};
    const cJSON *const network = cJSON_GetObjectItemCaseSensitive(root, "network");
    const cJSON *const said = cJSON_GetObjectItemCaseSensitive(network, "seconds");
    const cJSON *const shards = cJSON_GetObjectItemCaseSensitive(network, "shards");
    gs_status st;

    *out = (gs_topology_across){.joined = true, .network = true};
    if (network == NULL)
        return GS_OK;
    if ((st = rate(&out->bps, network, "bps", path)) != GS_OK)
        return st;
    if (unknown_key(network, known, GS_ARRAY_LEN(known)) != NULL || out->bps == 0 || !cJSON_IsNumber(said) ||
        !(said->valuedouble >= 0) || said->valuedouble > SECONDS_MOST || (shards != NULL && !cJSON_IsBool(shards)))
        return gs_fail(GS_EFORMAT, "%s: \"network\" must be {\"bps\": 1e9, \"seconds\": 5e-5}, bytes a second and what "
                       "a message takes beside, up to %g, and \"shards\": true where each rank has its own rows of the "
                       "store alone", path, SECONDS_MOST);
    out->seconds = said->valuedouble;
    out->shards = cJSON_IsTrue(shards);
    return GS_OK;
}

/* Ranks, which have no other wires. */
static gs_status read_network(gs_topology *t, const cJSON *root, const char *path)
{
    gs_topology_across across;
    const gs_status st = network_of(&across, root, path);

    if (st != GS_OK || across.bps == 0)
        return st;
    if (t->across.bps > 0 || t->across.share != GS_SHARE_FASTER)
        return gs_fail(GS_EFORMAT, "%s: \"network\" is of ranks, which have no \"across_bps\" and no \"share\"", path);
    for (uint32_t s = 0; s < t->switches; s++)
        if (t->at[s].devices != 1 || t->at[s].host_bps > 0 || t->at[s].peer_bps > 0 || t->in_place[t->at[s].first])
            return gs_fail(GS_EFORMAT, "%s: switch %u: \"network\" is of ranks: a switch each, with one device, and "
                           "without host_bps, peer_bps and in_place", path, s);
    t->across = across;
    return GS_OK;
}

/* All devices' memories or none are said. */
static gs_status check_memories(const gs_topology *t, const char *path)
{
    for (uint32_t d = 1; d < t->devices; d++)
        if ((t->memory[d] > 0) != (t->memory[0] > 0))
            return gs_fail(GS_EFORMAT, "%s: \"memories\" must be said of all switches, or of none", path);
    return GS_OK;
}

static gs_status read_take(gs_topology *t, const cJSON *root, const char *path)
{
    const cJSON *const take = cJSON_GetObjectItemCaseSensitive(root, "take");
    const char *const said = cJSON_GetStringValue(take);

    if (take != NULL && (said == NULL || strcmp(said, "all") != 0))
        return gs_fail(GS_EFORMAT, "%s: \"take\" must be \"all\"; without it those devices are taken that are faster",
                       path);
    t->all = take != NULL;
    return GS_OK;
}

/* A share for each device, 0 or more, and one of them above 0. */
static gs_status read_shares(double *out, const gs_topology *t, const cJSON *place, const char *key, const char *path)
{
    const cJSON *const list = cJSON_GetObjectItemCaseSensitive(place, key);
    double sum = 0;

    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)t->devices)
        return gs_fail(GS_EFORMAT, "%s: \"place\": \"%s\" must be a list of a number for each of the %u devices", path,
                       key, t->devices);
    for (const cJSON *v = list->child; v != NULL; v = v->next) {
        if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0) || v->valuedouble > 1)
            return gs_fail(GS_EFORMAT, "%s: \"place\": \"%s\" must be shares from 0 to 1", path, key);
        sum += *out++ = v->valuedouble;
    }
    return sum > 0 ? GS_OK : gs_fail(GS_EFORMAT, "%s: \"place\": \"%s\": some device must have a share", path, key);
}

static gs_status read_place(gs_topology *t, const cJSON *root, const char *path)
{
    static const char *const known[] = {"edges", "vertices"};
    const cJSON *const place = cJSON_GetObjectItemCaseSensitive(root, "place");
    const char *key;
    gs_status st;

    if (place == NULL)
        return GS_OK;
    if (!cJSON_IsObject(place) || (key = unknown_key(place, known, GS_ARRAY_LEN(known))) != NULL)
        return gs_fail(GS_EFORMAT, "%s: \"place\" must be {\"edges\": [...], \"vertices\": [...]}", path);
    t->place.said = t->all = true;
    if ((st = read_shares(t->place.edges, t, place, "edges", path)) != GS_OK)
        return st;
    return read_shares(t->place.vertices, t, place, "vertices", path);
}

static gs_status read_width(gs_topology *t, const cJSON *root, const char *path)
{
    const cJSON *const width = cJSON_GetObjectItemCaseSensitive(root, "width");

    if (width != NULL && (!cJSON_IsTrue(width) || t->across.network))
        return gs_fail(GS_EFORMAT, "%s: \"width\" must be true, and not of ranks; without it the width of rows is "
                       "dealt where that is predicted to be shorter", path);
    t->width = width != NULL;
    return GS_OK;
}

static gs_status read_all(gs_topology *t, const cJSON *root, const char *path)
{
    static const char *const known[] = {"switches", "across_bps", "share", "take", "place", "network",
                                        "width"};
    const cJSON *const switches = cJSON_GetObjectItemCaseSensitive(root, "switches");
    const char *key;
    gs_status st = GS_OK;

    if (!cJSON_IsObject(root) || !cJSON_IsArray(switches) || cJSON_GetArraySize(switches) == 0)
        return gs_fail(GS_EFORMAT,
                       "%s: not a topology: {\"switches\": [{\"devices\": 2, \"host_bps\": 1e9}, ...]} is expected",
                       path);
    if ((key = unknown_key(root, known, GS_ARRAY_LEN(known))) != NULL)
        return gs_fail(GS_EFORMAT, "%s: \"%.40s\" is not known; there are switches, across_bps, share, take, place, "
                       "network and width", path, key);
    for (const cJSON *s = switches->child; s != NULL && st == GS_OK; s = s->next) {
        if (t->switches == GS_TOPOLOGY_DEVICES)
            return gs_fail(GS_EFORMAT, "%s: more than %u switches", path, GS_TOPOLOGY_DEVICES);
        st = read_switch(t, s, path);
    }
    if (st != GS_OK || (st = check_memories(t, path)) != GS_OK || (st = read_across(t, root, path)) != GS_OK ||
        (st = read_network(t, root, path)) != GS_OK || (st = read_width(t, root, path)) != GS_OK)
        return st;
    return (st = read_take(t, root, path)) == GS_OK ? read_place(t, root, path) : st;
}

/* The caller deletes *root, also on failure. */
static gs_status read_json(cJSON **root, const char *path)
{
    char *text = NULL;
    uint64_t bytes = 0;
    gs_status st = gs_file_read_all(&text, &bytes, path, FILE_MOST);

    if (st == GS_OK &&
        (memchr(text, '\0', bytes) != NULL || (*root = cJSON_ParseWithOpts(text, NULL, 1)) == NULL))
        st = gs_fail(GS_EFORMAT, "%s: not JSON", path);
    gs_free(text);
    return st;
}

gs_status gs_topology_load(gs_topology *out, const char *path, uint32_t devices)
{
    gs_topology t = {0};
    cJSON *root = NULL;
    gs_status st = read_json(&root, path);

    if (st == GS_OK)
        st = read_all(&t, root, path);
    if (st == GS_OK && t.devices != devices)
        st = gs_fail(GS_EINVAL, "%s: a topology of %u devices, and .device names %u", path, t.devices, devices);
    if (st == GS_OK)
        *out = t;
    cJSON_Delete(root);
    return st;
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
    static const char *const known[] = {"ranks", "threads", "memory", "speed", "disk_bps", "price", "network"};
    gs_record r = {root, path, "", "", GS_OK};
    gs_topology_across across;
    const char *key;
    gs_status st;

    if (!cJSON_IsObject(root) || cJSON_GetObjectItemCaseSensitive(root, "ranks") == NULL)
        return gs_fail(GS_EFORMAT, "%s: not a cluster: {\"ranks\": 64, \"memory\": 256e9, \"network\": {\"bps\": 1e9, "
                       "\"seconds\": 5e-5}} is expected", path);
    if ((key = unknown_key(root, known, GS_ARRAY_LEN(known))) != NULL)
        return gs_fail(GS_EFORMAT, "%s: \"%.40s\" is not known; there are ranks, threads, memory, speed, disk_bps, "
                       "price and network", path, key);
    gs_record_read(&r, GS_FIELDS(cluster_fields), out);
    if (r.st != GS_OK || (st = network_of(&across, root, path)) != GS_OK)
        return r.st != GS_OK ? r.st : st;
    if (across.bps == 0 && out->ranks > 1)
        return gs_fail(GS_EFORMAT, "%s: of several ranks it says their \"network\"", path);
    out->bps = across.bps;
    out->seconds = across.seconds;
    out->shards = across.shards;
    return GS_OK;
}

gs_status gs_cluster_load(gs_cluster *out, const char *path)
{
    gs_cluster c = {.speed = 1};
    cJSON *root = NULL;
    gs_status st = read_json(&root, path);

    if (st == GS_OK && (st = read_cluster(&c, root, path)) == GS_OK)
        *out = c;
    cJSON_Delete(root);
    return st;
}
