/* deals.h - which device has which columns, and which way of dealing them is best. */
#ifndef GS_SCHEDULE_DEALS_H
#define GS_SCHEDULE_DEALS_H

#include "schedule/choice.h"
#include "schedule/schedule.h"

/* Fills c->deal: runs of target intervals of about equal predicted seconds, stage by stage. */
gs_status gs_choice_deal(gs_choice *c, const gs_layout *l);
/* Intervals that the device with most of them has in the stage. */
uint32_t gs_choice_longest(const gs_choice *c, const gs_layout *l, uint32_t stage);

/* How many columns does each of several devices that are not alike get? */

/* Devices that compute at once share more than a plan knows, such as the bandwidth of memory: two of cpu:2 took up to
 * an eighth longer than predicted, in comparison with one alone. So several must take at most so much of what some of
 * them take alone; where the topology says how fast links are, that is of the time in which they compute. */
#define GS_SEVERAL_WORTH 0.875

/* Where an epoch is predicted to be shorter, stages have no shares of their own: to find them takes longer than it
 * saves. */
#define GS_STAGED_SECONDS 0.02

/* Rows go from the host to each device, and not from device to device, where that saves the rest. */
#define GS_APART_SAVES 0.99

/* Do rows go from device to device in the plan, though each device might take just those that it needs from the host?
 * (In a chain what comes first is what all of them need.) */
bool gs_may_go_apart(const gs_schedule_config *config, const gs_plan *plan);

/* Are there several ways to deal columns, of which the shortest is to be found? */
bool gs_deals_differ(const gs_schedule_config *config);
/* Plans in which columns are dealt in other ways than in *best, whose predicted seconds are *cost; the shortest one
 * takes its place, and says what was tried. config->share is NULL. GS_ENOMEM, GS_EINTERRUPTED. */
gs_status gs_deals_try(gs_plan **best, double *cost, const gs_schedule_config *config);

#endif /* GS_SCHEDULE_DEALS_H */
