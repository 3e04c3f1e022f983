/* choose_products.h - for what are the products by the matrices of edges' types made: edges, or runs or pairs
 * of them? */
#ifndef GS_SESSION_CHOOSE_PRODUCTS_H
#define GS_SESSION_CHOOSE_PRODUCTS_H

#include "base/status.h"
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

/* What each stage with such products takes in either way, into out->product_stage. */
void gs_session_describe_products(const gs_session *s, gs_plan_report *out);

#endif /* GS_SESSION_CHOOSE_PRODUCTS_H */
