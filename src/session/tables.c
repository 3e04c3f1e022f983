#include "session/tables.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/initial.h"
#include "base/philox.h"
#include "base/size.h"
#include "ranks/ranks.h"
#include "session/session.h"
#include "session/store_rows.h"

#define TILE_BYTES (512 * GS_KIB) /* of a column, where a block of its rows is not more */

/* ---- arrays ---- */

static gs_status add(gs_session *s, uint32_t *out, const gs_table *t, const char *what)
{
    gs_array a = {.dtype = GS_F32, .width = t->width, .store_id = -1, .lasting = true};
    snprintf(a.name, sizeof(a.name), "%.45s.%s", t->name, what);
    return gs_program_add_array(s->program, out, &a);
}

gs_status gs_session_add_tables(gs_session *s, bool best)
{
    const bool training = s->config.purpose == GS_FOR_TRAINING && s->config.batch == NULL;
    gs_program *const p = s->program;

    for (uint32_t i = 0; i < p->tables && training; i++) {
        gs_table *const t = &p->table[i];
        for (uint32_t k = 0; k < s->config.states; k++)
            GS_TRY(add(s, &t->state[k], t, k == 0 ? "exp_avg" : "exp_avg_sq"));
        if (best)
            GS_TRY(add(s, &t->best, t, "best"));
    }
    return GS_OK;
}

uint64_t gs_session_learned(const gs_session *s)
{
    uint64_t n = gs_params_learned(s->program);
    for (uint32_t t = 0; t < s->program->tables; t++)
        n += gs_store_get_info(s->store)->vertices * s->program->table[t].width;
    return n;
}

/* ---- going over rows ---- */

/* Rows of a tile: whole blocks of the disk. */
static uint64_t tile_rows(const gs_session *s, uint32_t width)
{
    uint64_t least = 1;
    while (least * width % (GS_BLOCK_BYTES / sizeof(float)) != 0)
        least *= 2;
    const uint64_t interval = gs_align_up(gs_store_chunks(s->store)->interval_rows, least);
    return GS_MIN(GS_MAX(gs_align_down(TILE_BYTES / (sizeof(float) * width), least), least), interval);
}

static uint64_t id_bytes(uint64_t rows) { return gs_align_up(rows * sizeof(uint32_t), GS_BLOCK_BYTES); }

static uint64_t column_bytes(const gs_session *s, uint32_t width, uint32_t columns)
{
    const uint64_t rows = tile_rows(s, width);
    return id_bytes(rows) + 2 * columns * rows * width * sizeof(float);
}

/* Floats that a row of so many bytes has, or would. */
static uint32_t floats_of(uint64_t row_bytes) { return (uint32_t)gs_div_up(row_bytes, sizeof(float)); }

uint64_t gs_session_sweep_bytes(const gs_session *s)
{
    const bool scored = s->pairs.judged != GS_NONE && !s->config.rows_alone;
    const uint32_t width = scored ? s->program->array[s->pairs.judged].width : 0;
    uint64_t most = scored ? column_bytes(s, width, 1) : 0;

    for (uint32_t i = 0; i < s->program->tables; i++)
        most = GS_MAX(most, column_bytes(s, s->program->table[i].width, s->pass.gradients ? GS_EXEC_COLUMNS : 1));
    if (scored && gs_ranks_count() > 1) /* and rows of a rank's batch */
        most += tile_rows(s, width) * width * sizeof(float);
    const uint32_t floats = floats_of(gs_store_array(s->store, GS_ARRAY_FEATURES)->row_bytes);
    if (s->config.on_batches && gs_store_get_shard(s->store) != NULL && floats > 0) /* so of features */
        most = GS_MAX(most, column_bytes(s, floats, 2));
    return most > 0 ? most + GS_SUM_BYTES : 0; /* and a block of input ids */
}

gs_status gs_session_take_tables(gs_session *s)
{
    const uint64_t bytes = gs_session_sweep_bytes(s);
    if (bytes > 0 && (s->run.sweep = gs_alloc_pages(bytes)) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for rows of learned tables (%llu bytes)", (unsigned long long)bytes);
    return GS_OK;
}

gs_status gs_session_note_tables(gs_session *s, const gs_ir *ir)
{
    for (uint32_t i = 0; i < gs_ir_count(ir); i++) {
        const gs_node *const n = gs_ir_node(ir, i);
        uint32_t k = 0;
        if (gs_node_table(n) == NULL)
            continue;
        while (k < s->declareds && strcmp(s->declared[k].name, gs_node_table(n)) != 0)
            k++;
        if (k < s->declareds)
            continue;
        if (!gs_grow(&s->declared, s->declareds, &s->declared_room, sizeof(*s->declared)))
            return gs_fail(GS_ENOMEM, "no memory for the names of a model's tables");
        s->declared[k].width = n->width;
        s->declared[k].blocks = gs_node_table_blocks(n);
        snprintf(s->declared[k].name, sizeof(s->declared[k].name), "%s", gs_node_table(n));
        s->declareds++;
    }
    return GS_OK;
}

void gs_session_free_tables(gs_session *s)
{
    if (s->run.sweep != NULL)
        gs_free_pages(s->run.sweep, gs_session_sweep_bytes(s));
    s->run.sweep = NULL;
    gs_free(s->declared);
    s->declared = NULL;
    s->declareds = s->declared_room = 0;
}

typedef struct going {
    gs_session_rows_fn *fn;
    void *context;
    gs_block_reader reader;
    uint32_t *id;              /* of the tile; NULL: nobody asks for them */
    uint64_t at, left;         /* in the reader's block: the next id, how many */
} going;

/* Of rows from `first` on; those of a rank may begin anywhere in a block. */
static gs_status next_ids(going *g, uint64_t first, uint64_t rows)
{
    const uint64_t block_ids = GS_SUM_BYTES / sizeof(uint32_t);

    for (uint64_t done = 0; done < rows;) {
        if (g->left == 0) {
            uint64_t bytes;
            GS_TRY(gs_block_reader_next(&g->reader, (first + done) / block_ids, &bytes));
            g->at = (first + done) % block_ids;
            g->left = bytes / sizeof(uint32_t) - g->at;
        }
        const uint64_t n = GS_MIN(g->left, rows - done);
        memcpy(g->id + done, (const uint32_t *)g->reader.block + g->at, n * sizeof(*g->id));
        g->at += n;
        g->left -= n;
        done += n;
    }
    return GS_OK;
}

static gs_status go_on(void *context, uint64_t first, uint64_t rows, float *const *row)
{
    going *const g = context;
    const gs_status st = g->id != NULL ? next_ids(g, first, rows) : GS_OK;
    return st == GS_OK ? g->fn(g->context, rows, row, g->id) : st;
}

gs_status gs_session_sweep(gs_session *s, const gs_exec_column *column, uint32_t columns, bool ids,
                           gs_session_rows_fn *fn, void *context)
{
    const uint64_t rows = tile_rows(s, s->program->array[column->array].width);
    going g = {.fn = fn, .context = context, .id = ids ? s->run.sweep : NULL};
    const gs_exec_sweep_config config = {.column = column, .columns = columns, .tile = rows, .fn = go_on,
                                         .buffer = (uint8_t *)s->run.sweep + id_bytes(rows), .context = &g};
    gs_status st = ids ? gs_block_reader_open(&g.reader, s->store, GS_ARRAY_INPUT_ID) : GS_OK;

    if (st == GS_OK)
        st = gs_exec_sweep(s->run.exec, &config, &s->run.swept[0], &s->run.swept[1]);
    if (ids)
        gs_block_reader_close(&g.reader);
    return st;
}

/* ---- rows by list ---- */

gs_status gs_row_list_open(gs_row_list *l, uint32_t most)
{
    l->named = gs_arena_take(&l->arrays, most, sizeof(*l->named));
    l->order = gs_arena_take(&l->arrays, most, sizeof(*l->order));
    l->scratch = gs_arena_take(&l->arrays, most, sizeof(*l->scratch));
    return l->arrays.is_short ? gs_fail(GS_ENOMEM, "out of memory for a list of rows") : GS_OK;
}

void gs_row_list_close(gs_row_list *l)
{
    gs_arena_free(&l->arrays);
    *l = (gs_row_list){0};
}

void gs_row_list_make(gs_row_list *l, const uint32_t *vertex, uint32_t rows)
{
    l->rows = rows;
    gs_radix_order(l->order, l->scratch, vertex, rows);
    for (uint32_t k = 0; k < rows; k++)
        l->named[k] = vertex[l->order[k]];
}

/* Which of a list's rows are whose: names [first[r], first[r + 1]) are rank r's. */
static void deal_names(uint32_t first[GS_RANKS_MOST + 1], const gs_session *s, const gs_row_list *l)
{
    const uint64_t per = gs_store_chunks(s->store)->interval_rows;
    const uint32_t ranks = gs_ranks_count();

    first[0] = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t k = first[r];
        while (k < l->rows && (ranks == 1 || l->named[k] < per * s->machine.owners[r + 1]))
            k++;
        first[r + 1] = k;
    }
}

/* Those of this rank; their places are among all. */
static gs_row_list own_names(const gs_session *s, const gs_row_list *l)
{
    uint32_t first[GS_RANKS_MOST + 1];

    deal_names(first, s, l);
    const uint32_t from = first[gs_ranks_self()], end = first[gs_ranks_self() + 1];
    return (gs_row_list){.rows = end - from, .named = l->named + from,
                         .order = l->order != NULL ? l->order + from : NULL};
}

/* What goes over a list; `at`: the first of named[] that is not behind. */
typedef struct listed {
    const gs_row_list *list;
    uint32_t at, arrays;
    uint64_t width;
    float *to; /* that rows are read to, or */
    gs_row_fn *fn;
    void *context;
    bool finite;
} listed;

static uint32_t place_of(const gs_row_list *l, uint32_t k) { return l->order != NULL ? l->order[k] : k; }

/* Ends behind the last name below `end`. */
static uint32_t names_below(const listed *g, uint64_t end)
{
    uint32_t k = g->at;
    while (k < g->list->rows && g->list->named[k] < end)
        k++;
    return k;
}

static gs_status read_tile(void *context, uint64_t first, uint64_t rows, float *const *row)
{
    listed *const g = context;
    const uint32_t from = g->at, end = names_below(g, first + rows);

#pragma omp parallel for schedule(static) if ((end - from) * g->width > 16384)
    for (uint32_t k = from; k < end; k++)
        memcpy(g->to + place_of(g->list, k) * g->width, row[0] + (g->list->named[k] - first) * g->width,
               g->width * sizeof(float));
    g->at = end;
    return GS_OK;
}

static gs_status write_tile(void *context, uint64_t first, uint64_t rows, float *const *row)
{
    listed *const g = context;
    const uint32_t from = g->at, end = names_below(g, first + rows);
    bool finite = true;

#pragma omp parallel for schedule(static) reduction(&& : finite) if ((end - from) * g->width > 4096)
    for (uint32_t k = from; k < end; k++) {
        float *of[GS_EXEC_COLUMNS];
        for (uint32_t i = 0; i < g->arrays; i++)
            of[i] = row[i] + (g->list->named[k] - first) * g->width;
        const bool good = g->fn(g->context, of, place_of(g->list, k));
        finite = finite && good;
    }
    g->at = end;
    g->finite = g->finite && finite;
    return GS_OK;
}

static gs_status sweep_list(gs_session *s, const gs_exec_column *column, gs_exec_sweep_fn *fn, listed *g)
{
    g->width = s->program->array[column->array].width;
    const uint64_t rows = tile_rows(s, (uint32_t)g->width);
    const gs_exec_sweep_config config = {.column = column, .columns = g->arrays, .tile = rows, .named = g->list->named,
                                         .names = g->list->rows, .buffer = (uint8_t *)s->run.sweep + id_bytes(rows),
                                         .fn = fn, .context = g};
    return gs_exec_sweep(s->run.exec, &config, &s->run.swept[0], &s->run.swept[1]);
}

/* Each rank has its own of the list's rows, and gets the others': some at a time, by way of the sweep's buffer. */
static gs_status share_rows(gs_session *s, uint32_t width, const gs_row_list *l, float *to)
{
    const uint64_t row = width * sizeof(float), rows = tile_rows(s, width);
    const uint32_t ranks = gs_ranks_count(), self = gs_ranks_self(), most = (uint32_t)GS_MIN(2 * rows, l->rows);
    uint8_t *const some = (uint8_t *)s->run.sweep + id_bytes(rows);
    uint32_t first[GS_RANKS_MOST + 1], n;

    deal_names(first, s, l);
    for (uint32_t at = 0; at < l->rows && ranks > 1; at += n) {
        uint64_t byte[GS_RANKS_MOST + 1];
        n = GS_MIN(most, l->rows - at);
        for (uint32_t r = 0; r <= ranks; r++)
            byte[r] = (GS_MIN(GS_MAX(first[r], at), at + n) - at) * row;
        for (uint64_t b = byte[self]; b < byte[self + 1]; b += row)
            memcpy(some + b, to + l->order[at + b / row] * (uint64_t)width, row);
        GS_TRY(gs_ranks_share_parts(some, byte));
        for (uint32_t k = 0; k < n; k++)
            memcpy(to + l->order[at + k] * (uint64_t)width, some + k * row, row);
        s->run.swept[2] += n * row * (ranks - 1);
    }
    return GS_OK;
}

gs_status gs_session_read_rows(gs_session *s, uint32_t array, const gs_row_list *list, float *to)
{
    const gs_exec_column column = {.array = array, .read = true};
    const gs_row_list own = own_names(s, list);
    listed g = {.list = &own, .arrays = 1, .to = to};

    GS_TRY(sweep_list(s, &column, read_tile, &g));
    return share_rows(s, s->program->array[array].width, list, to);
}

gs_status gs_session_write_rows(gs_session *s, const uint32_t *array, uint32_t arrays, const gs_row_list *list,
                                gs_row_fn *fn, void *context, bool *finite)
{
    gs_exec_column column[GS_EXEC_COLUMNS];
    const gs_row_list own = own_names(s, list);
    listed g = {.list = &own, .arrays = arrays, .fn = fn, .context = context, .finite = true};

    for (uint32_t i = 0; i < arrays; i++)
        column[i] = (gs_exec_column){.array = array[i], .read = true, .write = true};
    const gs_status st = sweep_list(s, column, write_tile, &g);
    *finite = g.finite;
    return st;
}

/* ---- rows of one rank's list ---- */

/* Of rank `of`'s list some names, which all ranks get, and their rows, of which each has its own. */
typedef struct visit {
    gs_session *s;
    uint32_t of, most, at;
    uint64_t row_bytes;
    gs_row_list some; /* without an order: rows lie in that of names */
    uint8_t *row;     /* [most][row_bytes] */
    uint32_t first[GS_RANKS_MOST + 1];
} visit;

static visit visit_of(gs_session *s, uint64_t row_bytes, uint32_t of)
{
    const uint64_t rows = tile_rows(s, floats_of(row_bytes));

    return (visit){.s = s, .of = of, .row_bytes = row_bytes, .most = (uint32_t)rows,
                   .some = {.named = s->run.sweep},
                   .row = (uint8_t *)s->run.sweep + id_bytes(rows) + 2 * rows * floats_of(row_bytes) * sizeof(float)};
}

static uint8_t *own_rows(const visit *v) { return v->row + v->first[gs_ranks_self()] * v->row_bytes; }

uint64_t gs_session_visit_bytes(const gs_session *s, uint64_t row_bytes, uint32_t of, const uint32_t *vertex,
                                uint32_t rows)
{
    const uint64_t per = gs_store_chunks(s->store)->interval_rows;
    const uint32_t *const owners = s->machine.owners, ranks = s->machine.wires.devices;
    uint64_t far = 0;

    for (uint32_t k = 0; k < rows; k++)
        far += vertex[k] < per * owners[of] || vertex[k] >= per * owners[of + 1];
    return far * row_bytes + (ranks - 1ull) * rows * sizeof(*vertex);
}

/* The next names of `rows` that the list has. */
static gs_status next_names(visit *v, uint32_t rows, const gs_row_list *list)
{
    gs_row_list *const some = &v->some;

    v->at += some->rows;
    some->rows = GS_MIN(v->most, rows - v->at);
    if (v->of == gs_ranks_self())
        memcpy(some->named, list->named + v->at, some->rows * sizeof(*some->named));
    GS_TRY(gs_ranks_share_of(v->of, some->named, some->rows * sizeof(*some->named)));
    deal_names(v->first, v->s, some);
    v->s->run.swept[2] += gs_session_visit_bytes(v->s, v->row_bytes, v->of, some->named, some->rows);
    return GS_OK;
}

/* Rows of each other rank come to the list's, or go back. */
static gs_status pass_rows(const visit *v, bool back)
{
    const uint32_t self = gs_ranks_self();

    for (uint32_t r = 0; r < gs_ranks_count(); r++) {
        const uint64_t rows = v->first[r + 1] - v->first[r];
        if (r != v->of && rows > 0 && (self == v->of || self == r))
            GS_TRY(gs_ranks_pass((self == v->of) == back, self == v->of ? r : v->of,
                                 v->row + v->first[r] * v->row_bytes, rows * v->row_bytes));
    }
    return GS_OK;
}

gs_status gs_session_fetch_rows_for(gs_session *s, uint64_t row_bytes, uint32_t of, uint32_t rows,
                                    const gs_row_list *list, gs_own_rows_fn *fn, void *context, void *to)
{
    visit v = visit_of(s, row_bytes, of);

    while (v.at + v.some.rows < rows) {
        GS_TRY(next_names(&v, rows, list));
        const gs_row_list own = own_names(s, &v.some);
        GS_TRY(fn(context, &own, own_rows(&v)));
        GS_TRY(pass_rows(&v, false));
        for (uint32_t k = 0; k < v.some.rows && of == gs_ranks_self(); k++)
            memcpy((uint8_t *)to + list->order[v.at + k] * row_bytes, v.row + k * row_bytes, row_bytes);
    }
    return GS_OK;
}

typedef struct of_array {
    gs_session *s;
    uint32_t array;
} of_array;

static gs_status read_own(void *context, const gs_row_list *own, void *to)
{
    const of_array *const x = context;
    const gs_exec_column column = {.array = x->array, .read = true};
    listed g = {.list = own, .arrays = 1, .to = to};

    return sweep_list(x->s, &column, read_tile, &g);
}

static uint64_t row_bytes_of(const gs_session *s, uint32_t array)
{
    return s->program->array[array].width * sizeof(float);
}

gs_status gs_session_read_rows_for(gs_session *s, uint32_t array, uint32_t of, uint32_t rows, const gs_row_list *list,
                                   float *to)
{
    of_array x = {s, array};

    if (gs_ranks_count() == 1)
        return gs_session_read_rows(s, array, list, to);
    return gs_session_fetch_rows_for(s, row_bytes_of(s, array), of, rows, list, read_own, &x, to);
}

typedef struct adding {
    uint32_t width;
    gs_row_source *source;
    const void *context;
} adding;

static bool add_row(void *context, float *const *row, uint32_t place)
{
    const adding *const a = context;
    const float *const more = a->source(a->context, place);

    for (uint32_t c = 0; c < a->width; c++)
        row[0][c] += more[c];
    return true;
}

typedef struct rows_in_order {
    const float *row;
    uint32_t width;
} rows_in_order;

static const float *row_in_order(const void *context, uint32_t place)
{
    const rows_in_order *const x = context;
    return x->row + (uint64_t)place * x->width;
}

const float *gs_row_at(const void *array, uint32_t place)
{
    const gs_row_array *const x = array;
    return x->row + (uint64_t)place * x->width;
}

gs_status gs_session_send_rows_of(gs_session *s, uint32_t array, uint32_t of, uint32_t rows, const gs_row_list *list,
                                  gs_row_source *source, const void *context, gs_rows_fn *fn, void *receiver)
{
    visit v = visit_of(s, row_bytes_of(s, array), of);

    while (v.at + v.some.rows < rows) {
        GS_TRY(next_names(&v, rows, list));
        for (uint32_t k = 0; k < v.some.rows && of == gs_ranks_self(); k++)
            memcpy(v.row + k * v.row_bytes, source(context, list->order[v.at + k]), v.row_bytes);
        GS_TRY(pass_rows(&v, true));
        const gs_row_list own = own_names(s, &v.some);
        GS_TRY(fn(receiver, &own, (const float *)(const void *)own_rows(&v)));
    }
    return GS_OK;
}

static gs_status add_rows(void *context, const gs_row_list *own, const float *row)
{
    const of_array *const x = context;
    const uint32_t width = x->s->program->array[x->array].width;
    const rows_in_order rows = {row, width};
    adding a = {width, row_in_order, &rows};
    bool finite;

    return gs_session_write_rows(x->s, &x->array, 1, own, add_row, &a, &finite);
}

gs_status gs_session_add_rows_of(gs_session *s, uint32_t array, uint32_t of, uint32_t rows, const gs_row_list *list,
                                 gs_row_source *source, const void *context)
{
    of_array x = {s, array};
    adding a = {s->program->array[array].width, source, context};
    bool finite;

    if (gs_ranks_count() == 1)
        return gs_session_write_rows(s, &array, 1, list, add_row, &a, &finite);
    return gs_session_send_rows_of(s, array, of, rows, list, source, context, add_rows, &x);
}

/* ---- rows of ranks ---- */

/* What rank 0 asks of the one that has them; rows of 0: nothing any more. */
typedef struct asking {
    uint64_t first, rows;
    uint32_t array, rank;
} asking;

#define ASKED_BYTES TILE_BYTES /* or one row; who puts rows in order has more, which the others do not use */

static uint64_t asked_rows(uint32_t width) { return GS_MAX(ASKED_BYTES / (sizeof(float) * width), 1); }

/* Of the intervals of a table those of its vertices, of logits those that it makes. GS_RANKS_MOST or more: nobody's. */
static uint32_t rank_of(const gs_session *s, uint32_t array, uint64_t interval)
{
    const gs_pass *const p = &s->program->pass[s->pass.predict == GS_NONE ? 0 : s->pass.predict];
    uint32_t rank = 0;

    for (uint32_t k = p->first_stage; !s->program->array[array].lasting && k < p->first_stage + p->stages; k++)
        for (gs_array_use u = {0}; gs_stage_next_use(&s->program->stage[k], &u);)
            if (u.role == GS_USE_STORE && u.array == array)
                return s->run.part->maker[k * (uint64_t)gs_store_chunks(s->store)->parts + interval];
    while (interval >= s->machine.owners[rank + 1])
        rank++;
    return rank;
}

static gs_status ask(gs_session *s, asking *a, float *dst)
{
    const uint64_t bytes = a->rows * s->program->array[a->array].width * sizeof(*dst);

    if (a->rank == gs_ranks_self())
        return gs_exec_read_rows(s->run.exec, a->array, a->first, a->rows, dst);
    if (a->rank >= gs_ranks_count()) {
        memset(dst, 0, bytes);
        return GS_OK;
    }
    GS_TRY(gs_ranks_share(a, sizeof(*a)));
    return gs_ranks_pass(false, a->rank, dst, bytes);
}

gs_status gs_session_read_array(gs_session *s, uint32_t array, uint64_t first, uint64_t rows, float *dst)
{
    const uint32_t width = s->program->array[array].width;
    const uint64_t per = gs_store_chunks(s->store)->interval_rows, end = first + rows;

    if (gs_ranks_count() == 1)
        return gs_exec_read_rows(s->run.exec, array, first, rows, dst);
    for (asking a = {.first = first, .array = array}; a.first < end; a.first += a.rows) {
        const uint64_t interval = a.first / per;
        a.rank = rank_of(s, array, interval);
        a.rows = GS_MIN(GS_MIN(end, per * (interval + 1)) - a.first, asked_rows(width));
        GS_TRY(ask(s, &a, dst + (a.first - first) * width));
    }
    return GS_OK;
}

gs_status gs_session_logits(void *session, uint64_t first, uint64_t rows, float *dst)
{
    gs_session *const s = session;
    return gs_session_read_array(s, s->program->logits, first, rows, dst);
}

static gs_status give(gs_session *s, const asking *a)
{
    const uint32_t width = s->program->array[a->array].width;
    GS_FREED float *const row = gs_malloc_array(asked_rows(width), width * sizeof(*row));

    GS_NEED(row != NULL, "no memory for rows that rank 0 asks for");
    GS_TRY(gs_exec_read_rows(s->run.exec, a->array, a->first, a->rows, row));
    return gs_ranks_pass(true, 0, row, a->rows * width * sizeof(*row));
}

gs_status gs_session_give_rows(gs_session *s, gs_status st)
{
    gs_failure first = {0};

    gs_failure_keep(&first, st);
    for (asking a = {0};;) {
        GS_TRY(gs_ranks_share(&a, sizeof(a)));
        if (a.rows == 0 || gs_ranks_self() == 0)
            break;
        if (a.rank == gs_ranks_self())
            GS_TRY(give(s, &a));
    }
    GS_TRY(gs_ranks_share(&first, sizeof(first)));
    return gs_ranks_self() == 0 ? st : gs_failure_tell(&first);
}

/* ---- first rows ---- */

typedef struct drawing {
    uint32_t key[2], table, width;
    gs_initial from;
} drawing;

static void draw_row(float *row, const drawing *d, uint32_t id)
{
    for (uint32_t c = 0; c < d->width; c += 2) {
        const uint32_t counter[4] = {id, c / 2, d->table, 0};
        uint32_t word[4];
        float pair[2];
        gs_philox4x32(word, counter, d->key);
        gs_initial_draw(pair, &d->from, word);
        row[c] = pair[0];
        if (c + 1 < d->width)
            row[c + 1] = pair[1];
    }
}

static gs_status draw(void *context, uint64_t rows, float *const *row, const uint32_t *id)
{
    const drawing *const d = context;
#pragma omp parallel for schedule(static)
    for (uint64_t r = 0; r < rows; r++)
        draw_row(row[0] + r * d->width, d, id[r]);
    return GS_OK;
}

static gs_status clear(void *context, uint64_t rows, float *const *row, const uint32_t *id)
{
    (void)id;
    memset(row[0], 0, rows * *(const uint32_t *)context * sizeof(float));
    return GS_OK;
}

gs_status gs_session_clear_table_state(gs_session *s)
{
    for (uint32_t t = 0; t < s->program->tables; t++)
        for (uint32_t k = 0; k < 2; k++) {
            const gs_exec_column column = {.array = s->program->table[t].state[k], .write = true};
            if (column.array != GS_NONE)
                GS_TRY(gs_session_sweep(s, &column, 1, false, clear, &s->program->table[t].width));
        }
    return GS_OK;
}

gs_status gs_session_start_tables(gs_session *s)
{
    for (uint32_t t = 0; t < s->program->tables; t++) {
        const gs_exec_column column = {.array = s->program->table[t].array, .write = true};
        drawing d = {.table = t, .width = s->program->table[t].width, .from = s->program->table[t].initial};
        gs_random_key(d.key, s->config.options->seed, GS_RANDOM_TABLE);
        GS_TRY(gs_session_sweep(s, &column, 1, true, draw, &d));
    }
    return GS_OK;
}

/* ---- the best ---- */

static gs_status copy(void *context, uint64_t rows, float *const *row, const uint32_t *id)
{
    (void)id;
    memcpy(row[1], row[0], rows * *(const uint32_t *)context * sizeof(float));
    return GS_OK;
}

gs_status gs_session_copy_tables(gs_session *s, bool to_best)
{
    for (uint32_t t = 0; t < s->program->tables; t++) {
        const uint32_t now = s->program->table[t].array, best = s->program->table[t].best;
        const gs_exec_column column[] = {{.array = to_best ? now : best, .read = true},
                                         {.array = to_best ? best : now, .write = true}};
        GS_TRY(gs_session_sweep(s, column, 2, false, copy, &s->program->table[t].width));
    }
    return GS_OK;
}
