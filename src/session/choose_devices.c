/* choose_devices.c - of processors and GPUs, which compute: all, or those of one kind alone.
 *
 * Alone, the processors compute in host memory, without an arena and copies, and GPUs wait for nobody. So each way is
 * planned as it would be if it were asked for, and the one whose run is predicted to be shortest is taken; all
 * together only where that is an eighth shorter than the better kind's (schedule/deals.h says why). One session is open
 * at a time, as each has its own tables of the store; the one that is taken is made again where it was not the last.
 */
#include <stdio.h>
#include <string.h>

#include "schedule/deals.h"
#include "session/describe.h"
#include "session/session.h"

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
    return o->topology != NULL && gs_topology_load(&wires, o->topology, gs_device_count(o->device)) == GS_OK &&
           wires.all;
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
        if (w == BOTH && s->machine.topology->all) {
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
        if ((st = open_way(&s, config, way[best].device, NULL)) != GS_OK)
            return st;
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
