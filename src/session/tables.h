/* tables.h - learned rows of vertices of a run: where their state is, and going over all of them.
 *
 * docs/design/tables.md. One thread; everything but adding and charging is for a started session, between passes.
 */
#ifndef GS_SESSION_TABLES_H
#define GS_SESSION_TABLES_H

#include "base/alloc.h" /* gs_arena */
#include "exec/exec.h"
#include "ir/ir.h"

typedef struct gs_session gs_session;

/* A table that the model's text has, whether a pass reads it or not: files of weights may have one that a pass with
 * batch statistics read. */
typedef struct gs_declared_table {
    char name[GS_NAME_BYTES]; /* in files */
    uint32_t width, blocks;   /* as in gs_table */
} gs_declared_table;

/* Notes those of a model's graph. GS_ENOMEM. */
gs_status gs_session_note_tables(gs_session *s, const gs_ir *ir);

/* When the program is compiled: arrays for the optimiser's state and, where they are kept, the best rows; none for
 * batches, whose rows are those of the session that evaluates. GS_ENOMEM. */
gs_status gs_session_add_tables(gs_session *s, bool best);
/* Host memory for rows that are spilled, 0 without tables; it is taken, and given back. */
uint64_t gs_session_sweep_bytes(const gs_session *s);
gs_status gs_session_take_tables(gs_session *s);
void gs_session_free_tables(gs_session *s);

/* Numbers that are learned, those of tables too. */
uint64_t gs_session_learned(const gs_session *s);

/* Goes over columns of one width, of tables or of a run of pairs, with their input ids where they are asked for:
 * gs_exec_sweep(). */
typedef gs_status gs_session_rows_fn(void *context, uint64_t rows, float *const *row, const uint32_t *id);
gs_status gs_session_sweep(gs_session *s, const gs_exec_column *column, uint32_t columns, bool ids,
                           gs_session_rows_fn *fn, void *context);

/* Rows of the store, each once, in its order. */
typedef struct gs_row_list {
    uint32_t rows;
    uint32_t *named;   /* [rows] ascending */
    uint32_t *order;   /* [rows] the place of each among those that it was made of; NULL: they were in this order */
    uint32_t *scratch; /* [rows] */
    gs_arena arrays;
} gs_row_list;
#define GS_ROW_LIST_BYTES (3 * sizeof(uint32_t)) /* of each row that there is room for */

/* GS_ENOMEM. Release with gs_row_list_close() in any case. */
gs_status gs_row_list_open(gs_row_list *l, uint32_t most);
void gs_row_list_close(gs_row_list *l);
/* The list of these vertices, which are distinct. */
void gs_row_list_make(gs_row_list *l, const uint32_t *vertex, uint32_t rows);

/* Rows of an array by list, to `to`, [rows, its width], by their places. Blocks while it reads. Of several ranks all
 * call it with the same list, and each gets all of its rows. GS_EIO. */
gs_status gs_session_read_rows(gs_session *s, uint32_t array, const gs_row_list *list, float *to);
/* Rows of arrays of one width, GS_EXEC_COLUMNS at most, which `fn` changes: row[k] is of array[k], `place` the row's.
 * Threads call it at the same time, for rows of their own. False: what it left is not finite. */
typedef bool gs_row_fn(void *context, float *const *row, uint32_t place);
/* Each row of the list, once; blocks while it reads and writes. *finite: all are. A rank changes those of its own
 * vertices. GS_EIO. */
gs_status gs_session_write_rows(gs_session *s, const uint32_t *array, uint32_t arrays, const gs_row_list *list,
                                gs_row_fn *fn, void *context, bool *finite);

/* Of several ranks, for a list of one of them, `of`, that has `rows`: all call it, each with a list of its own, and of
 * the others' nothing is looked at. Rows of an array come to `to` there; or what `source` says for each place is added
 * to the array's, by who has them. Blocks while it reads and writes. One process does so with its list. GS_EIO. */
typedef const float *gs_row_source(const void *context, uint32_t place);
typedef struct gs_row_array {
    const float *row; /* [rows, width] by places */
    uint32_t width;
} gs_row_array;
const float *gs_row_at(const void *array, uint32_t place); /* a gs_row_source of a gs_row_array */
gs_status gs_session_read_rows_for(gs_session *s, uint32_t array, uint32_t of, uint32_t rows, const gs_row_list *list,
                                   float *to);
gs_status gs_session_add_rows_of(gs_session *s, uint32_t array, uint32_t of, uint32_t rows, const gs_row_list *list,
                                 gs_row_source *source, const void *context);
/* The same of several ranks, where the owner does something else with rows as wide as the array's: `fn` gets them as
 * they come, some at a time, in the order of names. */
typedef gs_status gs_rows_fn(void *context, const gs_row_list *own, const float *row);
gs_status gs_session_send_rows_of(gs_session *s, uint32_t array, uint32_t of, uint32_t rows, const gs_row_list *list,
                                  gs_row_source *source, const void *context, gs_rows_fn *fn, void *receiver);
/* Rows of any bytes of one's own vertices, as `fn` says them, [own->rows] in the order of names, come to `to` there
 * by their places. */
typedef gs_status gs_own_rows_fn(void *context, const gs_row_list *own, void *to);
gs_status gs_session_fetch_rows_for(gs_session *s, uint64_t row_bytes, uint32_t of, uint32_t rows,
                                    const gs_row_list *list, gs_own_rows_fn *fn, void *context, void *to);
/* Bytes that either moves between ranks for these rows of `of`, by s->machine.owners; of ranks in a plan, too. */
uint64_t gs_session_visit_bytes(const gs_session *s, uint64_t row_bytes, uint32_t of, const uint32_t *vertex,
                                uint32_t rows);

/* Rows [first, first + rows) of the logits or of an array of a table, to `dst`. Of several ranks rank 0 calls it, as
 * often as it wants, while the others are in gs_session_give_rows(), which sends those of theirs. GS_EIO. */
gs_status gs_session_read_array(gs_session *s, uint32_t array, uint64_t first, uint64_t rows, float *dst);
/* Ends when rank 0 calls it, too, with what it has come to, which all return. One process returns `st`. */
gs_status gs_session_give_rows(gs_session *s, gs_status st);
/* The same of the logits, after the pass "predict": a gs_logits_source. */
gs_status gs_session_logits(void *session, uint64_t first, uint64_t rows, float *dst);

/* First rows, by the table's rule from seed, input id and table. The optimiser's state is 0 when a run starts. */
gs_status gs_session_start_tables(gs_session *s);
/* State of 0 alone: the tables have other rows. */
gs_status gs_session_clear_table_state(gs_session *s);
/* The rows become the best ones, or the best ones the rows. */
gs_status gs_session_copy_tables(gs_session *s, bool to_best);

#endif /* GS_SESSION_TABLES_H */
