/* choose_products.h - for what are the products by the matrices of edges' types made: edges, or runs or pairs
 * of them? */
#ifndef GS_SESSION_CHOOSE_PRODUCTS_H
#define GS_SESSION_CHOOSE_PRODUCTS_H

#include <stdbool.h>

#include "base/status.h"
#include "cost/cost.h"    /* GS_COST_WAYS */
#include "gnnstream_reports.h" /* gs_plan_report */

typedef struct gs_session gs_session;

/* Counts runs and pairs, where a stage has such products, and gives each stage the way that is predicted to
 * take least, or that .products asks for. Reads the edge files once for each direction that is needed and was
 * not counted before. GS_EIO, GS_EFORMAT, GS_ENOMEM. */
gs_status gs_session_choose_products(gs_session *s);

/* Stages whose products are those of pairs, or may become so, get the shortest of the other ways. False: there is
 * none. */
bool gs_session_leave_pairs(gs_session *s);
/* All make them edge by edge. */
void gs_session_leave_ways(gs_session *s);

/* With a plan, which stays as it is: each stage takes the way that was measured to be shortest on this store, by a run
 * of the same device. */
void gs_session_recall_products(gs_session *s);
/* Behind the pass "setup" of a long run of a session that has started: of stages of which that is not known yet, it is
 * measured on some of their chunks, in processor seconds, kept in the machine's record, and taken. So the same run has
 * the same bits the next time. Errors of gs_session_run(), GS_ENOMEM. */
gs_status gs_session_measure_products(gs_session *s);

/* The ways of a stage on trial: in each round all that may be the shortest yet run on the same edges, and those that
 * are behind by more than the rounds so far can be mistaken about leave. For choose_products.c and its test. */
#define GS_TRIAL_ROUNDS 4u  /* at most */
#define GS_TRIAL_PIECES 16u /* of a stage's edges: a round has about one */
typedef struct gs_way_trial {
    unsigned ways;      /* bits of those that may be the shortest yet; set by the caller at first */
    double stage_edges; /* set by the caller */
    uint32_t rounds;    /* that have ended */
    uint32_t of[GS_COST_WAYS]; /* rounds that a way was in */
    double edges[GS_TRIAL_ROUNDS], seconds[GS_COST_WAYS][GS_TRIAL_ROUNDS];
} gs_way_trial;

/* False: more measurements would change nothing. */
bool gs_way_trial_goes_on(const gs_way_trial *t);
/* Some edges, on which each of the ways in t->ways took so long. */
void gs_way_trial_add(gs_way_trial *t, double edges, const double seconds[GS_COST_WAYS]);
/* Seconds an edge of each way, as ratios of the same rounds say; 0: never on trial, or nothing was measured. */
void gs_way_trial_end(const gs_way_trial *t, double seconds[GS_COST_WAYS]);

/* What each stage with such products takes in either way, into out->product_stage. */
void gs_session_describe_products(const gs_session *s, gs_plan_report *out);

#endif /* GS_SESSION_CHOOSE_PRODUCTS_H */
