/* batch_group.h - how many batches are drawn before the first of them is trained?
 *
 * A run sees as far ahead as its group: the cache keeps the rows that the group uses soonest, and edges that stay in
 * the store are read once a hop for the whole group. But each batch of a group takes memory that the cache lacks.
 * Pure functions; nothing is allocated.
 */
#ifndef GS_TRAIN_BATCH_GROUP_H
#define GS_TRAIN_BATCH_GROUP_H

#include <stdint.h>

#define GS_GROUP_FORESEEN 64u /* most batches of a group whose reads are predicted */

/* Items that a batch reads, in the mean over an epoch, when `slots` of `items` stay and groups have `group` batches,
 * 1 to GS_GROUP_FORESEEN. Each batch uses `uses` items, all as likely, so a graph whose batches share more than chance
 * reads less. This follows the plan of residency.h in expectation: an item stays if the group uses it again and no item
 * that is used sooner needs its slot; items without a known use get the slots that are left. */
double gs_group_misses(double uses, double items, double slots, uint32_t group);

#endif /* GS_TRAIN_BATCH_GROUP_H */
