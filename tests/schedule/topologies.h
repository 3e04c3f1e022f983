/* topologies.h - devices as they may be joined, for tests of plans: one, chains, and switches with unlike wires. */
#ifndef GS_TESTS_TOPOLOGIES_H
#define GS_TESTS_TOPOLOGIES_H

#include "topology/topology.h"

/* The memory of each is a part of the host's. */
#define ON_HOST .on_host = {true, true, true, true, true}

static const gs_topology one = {.devices = 1, .switches = 1, .at = {{0, 1, 0, 0}}, ON_HOST},
                         two = {.devices = 2, .switches = 1, .at = {{0, 2, 0, 0}}, ON_HOST},
                         four = {.devices = 4, .switches = 1, .at = {{0, 4, 0, 0}}, ON_HOST},
                         pairs = {.devices = 4, .switches = 2, .at = {{0, 2, 1e9, 2e9}, {2, 2, 1e9, 0}}, ON_HOST},
                         lopsided = {.devices = 5, .switches = 3,
                                     .at = {{0, 1, 0, 0}, {1, 3, 5e8, 0}, {4, 1, 0, 0}}, ON_HOST},
                         one_gpu = {.devices = 1, .switches = 1, .at = {{.devices = 1}}};
static const gs_topology *const all[] = {&one, &two, &four, &pairs, &lopsided};

#endif /* GS_TESTS_TOPOLOGIES_H */
