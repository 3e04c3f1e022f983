/* flight.h - how many bytes should the disk have under way? */
#ifndef GS_SCHEDULE_FLIGHT_H
#define GS_SCHEDULE_FLIGHT_H

#include "base/size.h"
#include "schedule/simulate.h"

#define GS_FLIGHT_LEAST (4 * GS_MIB) /* pieces of a MiB: some are under way while one ends */
#define GS_FLIGHT_MOST (64 * GS_MIB)

/* The bytes that the disk should have under way in this pass, whole MiB from GS_FLIGHT_LEAST to GS_FLIGHT_MOST: as many
 * as it moves until the thread that feeds it looks again, and a quarter more. With fewer the disk runs dry; with more,
 * urgent reads wait behind others. A smaller staging ring bounds what goes through it by itself. `in->cost` may be
 * NULL; `in->together` is not read. */
uint64_t gs_flight_bytes(const gs_simulation_input *in);

#endif /* GS_SCHEDULE_FLIGHT_H */
