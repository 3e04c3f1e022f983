/* launches.h - the same launch on every device.
 *
 * Tests have what launches use in the host's memory. A device with memory of its own gets an arena for the launch, with
 * copies of all that the launch names, and what the launch wrote is copied back. All of them wait.
 */
#ifndef GS_TESTS_DEVICE_LAUNCHES_H
#define GS_TESTS_DEVICE_LAUNCHES_H

#include "device/device.h"

gs_status launch_vertex(gs_device *d, const gs_vertex_launch *l);
gs_status launch_edges(gs_device *d, const gs_edge_launch *l);
/* The same of several, in a group. */
#define LAUNCH_GROUP 48u
gs_status launch_edge_group(gs_device *d, const gs_edge_launch *l, uint32_t count);
gs_status launch_edge_program(gs_device *d, const gs_edge_program_launch *l);
gs_status launch_begin_sum(gs_device *d, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                           uint32_t heads);
gs_status launch_finish_sum(gs_device *d, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                            uint32_t heads);
gs_status launch_sequence(gs_device *d, const gs_sequence_launch *l);
gs_status launch_sequence_back(gs_device *d, const gs_sequence_launch *l);

#endif /* GS_TESTS_DEVICE_LAUNCHES_H */
