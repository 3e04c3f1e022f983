/* regrid.h - would a finer store of the same graph do with these budgets? Units: bytes and rows. */
#ifndef GS_SCHEDULE_REGRID_H
#define GS_SCHEDULE_REGRID_H

#include "schedule/layout.h"

/* The fewest parts of a finer store of the same graph that should do with both budgets; 0: none. This one's needs a
 * staging ring (several devices), a ring and tables of so many bytes at the least. */
uint32_t gs_regrid_parts(const gs_layout *l, uint64_t staging, uint64_t ring, uint64_t tables);

#endif /* GS_SCHEDULE_REGRID_H */
