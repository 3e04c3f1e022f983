/* flight.h - how many bytes should the disk have under way? */
#ifndef GS_SCHEDULE_FLIGHT_H
#define GS_SCHEDULE_FLIGHT_H

#include "base/size.h"
#include "schedule/simulate.h"

#define GS_FLIGHT_LEAST (4 * GS_MIB) /* pieces of a MiB: some are under way while one ends */
#define GS_FLIGHT_MOST (64 * GS_MIB)

/* Of the pass: whole MiB from GS_FLIGHT_LEAST to GS_FLIGHT_MOST. What the disk moves until the thread that feeds it
 * looks again, and a quarter more: with fewer bytes the disk runs dry, with more what is needed first waits behind what
 * is not. A staging ring that is smaller bounds what goes through it by itself. `in->cost` may be NULL; `in->together`
 * says nothing. */
uint64_t gs_flight_bytes(const gs_simulation_input *in);

#endif /* GS_SCHEDULE_FLIGHT_H */
