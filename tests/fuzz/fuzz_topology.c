/* A topology of any bytes is refused with a text, or its switches hold the run's devices, each once.
 *
 * Input: a byte, how many devices the run has, then the file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "topology/topology.h"

static bool rate_holds(double bps)
{
    return bps == 0 || (isfinite(bps) && bps > 0);
}

static void check_promises(const gs_topology *t, uint32_t devices)
{
    uint32_t next = 0;
    gs_fuzz_require(t->devices == devices, "as many devices as the run has");
    gs_fuzz_require(t->switches >= 1 && t->switches <= GS_TOPOLOGY_DEVICES, "1 to 16 switches");
    for (uint32_t s = 0; s < t->switches; s++) {
        gs_fuzz_require(t->at[s].first == next && t->at[s].devices >= 1, "devices follow one another");
        next += t->at[s].devices;
        gs_fuzz_require(rate_holds(t->at[s].host_bps) && rate_holds(t->at[s].peer_bps), "speeds are finite");
    }
    gs_fuzz_require(rate_holds(t->across.bps) && t->across.joined == (t->across.bps > 0), "so is that across switches");
    gs_fuzz_require(t->across.share != GS_SHARE_ROUND || t->across.joined || t->switches == 1, "a ring is joined");
    gs_fuzz_require(next == devices, "switches cover the devices");
    for (uint32_t d = 0; d < devices; d++)
        gs_fuzz_require(gs_topology_switch_of(t, d) < t->switches, "each device has a switch");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const uint32_t devices = 1 + data[0] % GS_TOPOLOGY_DEVICES;
    gs_topology t, before;
    memset(&t, 0xEE, sizeof(t));
    before = t;
    const gs_status st = gs_topology_load(&t, gs_fuzz_file("topology.json", data + 1, size - 1), devices);
    gs_fuzz_judge(st);
    if (st == GS_OK)
        check_promises(&t, devices);
    else
        gs_fuzz_require(memcmp(&t, &before, sizeof(t)) == 0, "a refusal leaves the result as it was");
    return 0;
}

size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    static const char *const text[] = {
        "\1{\"switches\": [{\"devices\": 2, \"host_bps\": 1e9, \"peer_bps\": 2.5e10}]}",
        "\3{\"switches\": [{\"devices\": 1}, {\"devices\": 2, \"host_bps\": 12e9}, "
        "{\"devices\": 1, \"peer_bps\": 1e3}]}",
        "\1{\"switches\": [{\"devices\": 1}, {\"devices\": 1}], \"across_bps\": 4.5e11, \"share\": \"ring\"}",
        "\17{\"switches\": [{\"devices\": 8, \"host_bps\": 2e10}, {\"devices\": 8, \"host_bps\": 2e10}]}",
    };
    return k < sizeof(text) / sizeof(text[0]) ? gs_fuzz_text_seed(data, capacity, text[k]) : 0;
}
