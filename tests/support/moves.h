/* moves.h - moves of plans that tests make by hand, and which move a task is. */
#ifndef GS_SUPPORT_MOVES_H
#define GS_SUPPORT_MOVES_H

#include <string.h>

#include "plan/plan.h"

/* Fields of a task; devices by number. */
#define MOVES(from, to) .kind = GS_TASK_MOVE, .source = {.memory = (from)}, .place = {.memory = (to)}
#define READS MOVES(GS_DISK, GS_HOST)
#define WRITES MOVES(GS_HOST, GS_DISK)
#define UPLOADS_TO(d) MOVES(GS_HOST, GS_DEVICE_MEMORIES + (d)), .device = (d)
#define FORWARDS(from, to) MOVES(GS_DEVICE_MEMORIES + (from), GS_DEVICE_MEMORIES + (to)), .device = (to)
#define DOWNLOADS_FROM(d) MOVES(GS_DEVICE_MEMORIES + (d), GS_HOST), .device = (d)
#define LOADS_TO(d) MOVES(GS_DISK, GS_DEVICE_MEMORIES + (d)), .device = (d)

/* By its word for people: "read", "upload", ... */
static inline bool is_task(const gs_task *t, const char *word) { return strcmp(gs_task_word(t), word) == 0; }

#endif /* GS_SUPPORT_MOVES_H */
