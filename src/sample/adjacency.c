/* adjacency.c - in-edges of a store, from its chunks to one list a vertex; or lists that stay there, whose columns go
 * by when edges of theirs are drawn. */
#include "sample/sampler.h"

#include <string.h>

#include "base/size.h"
#include "sample/sample_internal.h"

/* While a list is sorted by type: one edge with all that it carries. */
typedef struct typed_edge {
    uint32_t type, other;
    float weight;
    uint64_t at; /* in the list as it was */
} typed_edge;

typedef struct loading {
    gs_adjacency *a;
    const gs_chunk_table *table;
    uint64_t *next; /* [vertices + 1] counts, then where the next edge of a vertex goes */
    uint32_t *other;
    void *type;
    float *weight;
    char *feature;
    uint64_t *loops;
    uint32_t *own;
    uint8_t *wanted; /* [parts * parts] of a shard: its chunks; NULL: all */
    const volatile int *stop;
} loading;

uint32_t gs_adjacency_loops(const gs_adjacency *a, uint32_t v)
{
    uint32_t own = 0;
    if (a->own != NULL)
        return a->own[v];
    if (a->loops == NULL || (a->loops[v / 64] >> (v % 64) & 1) == 0)
        return 0;
    for (uint64_t k = gs_adjacency_first(a, v); k < gs_adjacency_first(a, (uint64_t)v + 1); k++)
        own += a->other[k] == v;
    return own;
}

static bool is_wide(const gs_store_info *info) { return info->edges > UINT32_MAX; }

static uint64_t loop_words(const gs_store_info *info)
{
    return info->self_loops > 0 ? gs_div_up(info->vertices, 64) : 0;
}

uint64_t gs_adjacency_bytes(const gs_store *s)
{
    const gs_store_info *info = gs_store_get_info(s);
    const gs_edge_data data = gs_store_chunks(s)->data;
    return sizeof(gs_adjacency) + (info->vertices + 1) * (is_wide(info) ? 8 : 4) + loop_words(info) * 8 +
           info->edges * (4ull + data.type_bytes + (data.weights ? 4u : 0u) + data.feature_bytes);
}

uint64_t gs_adjacency_read_bytes(const gs_store *s)
{
    return (gs_store_get_info(s)->vertices + 1) * 8 + gs_edge_scan_least(s);
}

static gs_status check_stop(const loading *l)
{
    return l->stop == NULL || *l->stop == 0 ? GS_OK : gs_fail(GS_EINTERRUPTED, "interrupted while edges were read");
}

static gs_status count_edges(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    loading *l = context;
    const uint64_t base = gs_interval_first(l->table, target);
    for (uint32_t t = 0; t < v->targets; t++) {
        const uint32_t row = gs_index_at(v->target, v->index_bytes, t);
        l->next[base + row] += v->start[t + 1] - v->start[t];
        for (uint32_t k = v->start[t]; l->own != NULL && target == operand && k < v->start[t + 1]; k++)
            l->own[base + row] += gs_index_at(v->index, v->index_bytes, k) == row;
    }
    return check_stop(l);
}

static gs_status take_edges(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    loading *l = context;
    const uint64_t base = gs_interval_first(l->table, target);
    const uint32_t other = (uint32_t)gs_interval_first(l->table, operand);

    for (uint32_t t = 0; t < v->targets; t++) {
        const uint64_t row = base + gs_index_at(v->target, v->index_bytes, t);
        const uint32_t from = v->start[t], n = v->start[t + 1] - from;
        const uint64_t to = l->next[row];
        l->next[row] += n;
        for (uint32_t k = 0; k < n; k++)
            l->other[to + k] = other + gs_index_at(v->index, v->index_bytes, (uint64_t)from + k);
        if (l->type != NULL)
            memcpy((char *)l->type + to * v->type_bytes, (const char *)v->type + (uint64_t)from * v->type_bytes,
                   (size_t)n * v->type_bytes);
        if (l->weight != NULL)
            memcpy(l->weight + to, v->weight + from, n * sizeof(float));
        if (l->feature != NULL)
            memcpy(l->feature + to * v->feature_bytes,
                   (const char *)v->feature + (uint64_t)from * v->feature_bytes, (size_t)n * v->feature_bytes);
    }
    return check_stop(l);
}

/* Turns counts into first edges, both where they stay and where they count on. */
static void sum_counts(loading *l)
{
    uint64_t sum = 0;
    for (uint64_t v = 0; v <= l->a->vertices; v++) {
        const uint64_t n = v < l->a->vertices ? l->next[v] : 0;
        if (l->a->first32 != NULL)
            ((uint32_t *)(uintptr_t)l->a->first32)[v] = (uint32_t)sum;
        else
            ((uint64_t *)(uintptr_t)l->a->first64)[v] = sum;
        l->next[v] = sum;
        sum += n;
    }
}

static void note_loops(const gs_adjacency *a)
{
    uint64_t *const loops = (uint64_t *)(uintptr_t)a->loops;

    for (uint64_t v = 0; v < a->vertices && loops != NULL; v++)
        for (uint64_t k = gs_adjacency_first(a, v); k < gs_adjacency_first(a, v + 1); k++)
            if (a->other[k] == v)
                loops[v / 64] |= 1ull << (v % 64);
}

/* Stable, bottom up, by type and then by far end; the result is where *list points then. */
static void merge_sort(typed_edge **list, typed_edge **spare, uint64_t n)
{
    for (uint64_t run = 1; run < n; run *= 2) {
        const typed_edge *from = *list;
        typed_edge *to = *spare;
        for (uint64_t first = 0; first < n; first += 2 * run) {
            const uint64_t middle = GS_MIN(first + run, n), end = GS_MIN(first + 2 * run, n);
            uint64_t a = first, b = middle;
            for (uint64_t k = first; k < end; k++) {
                const bool left = b == end || (a < middle && (from[a].type < from[b].type ||
                                                              (from[a].type == from[b].type &&
                                                               from[a].other <= from[b].other)));
                to[k] = left ? from[a++] : from[b++];
            }
        }
        *spare = *list;
        *list = to;
    }
}

/* The list's rows of features in its new order; `spare` has room for them. */
static void sort_features(const gs_adjacency *a, uint64_t first, uint64_t n, const typed_edge *list, char *spare)
{
    const uint64_t bytes = a->data.feature_bytes;
    char *const rows = (char *)(uintptr_t)a->feature + first * bytes;

    for (uint64_t k = 0; k < n; k++)
        memcpy(spare + k * bytes, rows + list[k].at * bytes, bytes);
    memcpy(rows, spare, n * bytes);
}

static void sort_list(gs_adjacency *a, uint64_t first, uint64_t n, typed_edge *list, typed_edge *spare, char *rows)
{
    uint32_t *const other = (uint32_t *)(uintptr_t)a->other;
    float *const weight = (float *)(uintptr_t)a->weight;

    for (uint64_t k = 0; k < n; k++)
        list[k] = (typed_edge){gs_adjacency_type(a, first + k), other[first + k],
                               weight != NULL ? weight[first + k] : 0, k};
    merge_sort(&list, &spare, n);
    if (a->feature != NULL)
        sort_features(a, first, n, list, rows);
    for (uint64_t k = 0; k < n; k++) {
        other[first + k] = list[k].other;
        if (weight != NULL)
            weight[first + k] = list[k].weight;
        gs_type_put(a->type, a->data.type_bytes, first + k, list[k].type);
    }
}

/* Lists of several chunks are in order of type within each chunk alone. */
gs_status gs_adjacency_sort_types(gs_adjacency *a)
{
    uint64_t most = 0;
    typed_edge *list;
    char *rows;

    a->by_type = true;
    if (a->type == NULL || a->parts == 1)
        return GS_OK;
    for (uint32_t v = 0; v < a->vertices; v++)
        most = GS_MAX(most, gs_adjacency_degree(a, v));
    list = gs_malloc_array(2 * most + 1, sizeof(*list));
    rows = gs_malloc_array(most + 1, a->data.feature_bytes + 1ull);
    const bool there = list != NULL && rows != NULL;
    for (uint32_t v = 0; there && v < a->vertices; v++)
        sort_list(a, gs_adjacency_first(a, v), gs_adjacency_degree(a, v), list, list + most, rows);
    gs_free(list);
    gs_free(rows);
    return there ? GS_OK : gs_fail(GS_ENOMEM, "no memory to sort edges by type");
}

/* Where lists begin, and how long they are while that is counted. */
static bool make_first(loading *l, const gs_store_info *info)
{
    void *const first = gs_malloc_array(info->vertices + 1, is_wide(info) ? 8 : 4);

    *(is_wide(info) ? (const void **)&l->a->first64 : (const void **)&l->a->first32) = first;
    l->next = gs_calloc(info->vertices + 1, sizeof(*l->next));
    return first != NULL && l->next != NULL;
}

static bool make_arrays(loading *l, const gs_store_info *info)
{
    gs_adjacency *a = l->a;

    a->other = l->other = gs_malloc_array(info->edges, sizeof(uint32_t));
    if (a->data.type_bytes > 0)
        a->type = l->type = gs_malloc_array(info->edges, a->data.type_bytes);
    if (info->weights)
        a->weight = l->weight = gs_malloc_array(info->edges, sizeof(float));
    if (a->data.feature_bytes > 0)
        a->feature = l->feature = gs_malloc_array(info->edges, a->data.feature_bytes);
    if (loop_words(info) > 0)
        a->loops = l->loops = gs_calloc(loop_words(info), sizeof(uint64_t));
    return make_first(l, info) && l->other != NULL && (a->data.type_bytes == 0 || l->type != NULL) &&
           (!info->weights || l->weight != NULL) && (a->data.feature_bytes == 0 || l->feature != NULL) &&
           (loop_words(info) == 0 || l->loops != NULL);
}

static gs_status check_budget(const gs_store *s, uint64_t memory)
{
    const uint64_t need = gs_adjacency_bytes(s) + gs_adjacency_read_bytes(s);
    char have[16], want[16];
    if (need <= memory)
        return GS_OK;
    return gs_fail(GS_EBUDGET, "%s: its edges take %s of host memory while they are read, and %s are left",
                   gs_store_dir(s), gs_size_format(want, sizeof(want), need),
                   gs_size_format(have, sizeof(have), memory));
}

static void end_loading(loading *l)
{
    gs_free(l->next);
    gs_free(l->wanted);
    gs_adjacency_free(l->a);
}

/* What was loaded is the caller's. */
static gs_status hand_over(loading *l, gs_adjacency **out)
{
    *out = l->a;
    l->a = NULL;
    return GS_OK;
}

static gs_status begin_loading(loading *l, const gs_store *s, const volatile int *stop)
{
    const gs_store_info *info = gs_store_get_info(s);

    *l = (loading){.table = gs_store_chunks(s), .stop = stop, .a = gs_calloc(1, sizeof(*l->a))};
    GS_NEED(l->a != NULL, "%s: no memory for its edges", gs_store_dir(s));
    *l->a = (gs_adjacency){.vertices = (uint32_t)info->vertices, .edges = info->edges, .edge_types = info->edge_types,
                           .data = l->table->data, .parts = info->parts,
                           .interval_rows = info->interval_rows, .chunks = l->table};
    const gs_store_shard *const x = gs_store_get_shard(s);
    if (x == NULL)
        return GS_OK;
    l->wanted = gs_calloc((uint64_t)info->parts * info->parts, 1);
    GS_NEED(l->wanted != NULL, "%s: no memory for its edges", gs_store_dir(s));
    memset(l->wanted + (uint64_t)x->first[x->rank] * info->parts, 1,
           (uint64_t)(x->first[x->rank + 1] - x->first[x->rank]) * info->parts);
    return GS_OK;
}

gs_status gs_adjacency_load(gs_adjacency **out, const gs_store *s, gs_direction d, uint64_t memory,
                            const volatile int *stop)
{
    const gs_store_info *info = gs_store_get_info(s);
    GS_ENDS(end_loading) loading l = {0};

    GS_TRY(check_budget(s, memory));
    GS_TRY(begin_loading(&l, s, stop));
    l.a->bytes = gs_adjacency_bytes(s);
    memory -= gs_adjacency_bytes(s) + (info->vertices + 1) * 8;
    GS_NEED(make_arrays(&l, info), "%s: no memory for its edges", gs_store_dir(s));
    GS_TRY(gs_edge_scan(s, d, memory, l.wanted, count_edges, &l));
    sum_counts(&l);
    GS_TRY(gs_edge_scan(s, d, memory, l.wanted, take_edges, &l));
    note_loops(l.a);
    return hand_over(&l, out);
}

/* ---- lists of shards ----------------------------------------------------- */

static void put_first(gs_adjacency *a, uint64_t v, uint64_t first)
{
    if (a->first32 != NULL)
        ((uint32_t *)(uintptr_t)a->first32)[v] = (uint32_t)first;
    else
        ((uint64_t *)(uintptr_t)a->first64)[v] = first;
}

/* A rank's own lists lie at the front, as those of others have no edges yet. */
gs_status gs_adjacency_share(gs_adjacency *a, const gs_store_shard *x, gs_adjacency_give *give)
{
    const uint64_t each = a->first32 != NULL ? 4 : 8, edges = gs_adjacency_first(a, a->vertices);
    const struct {
        const void *of;
        uint64_t bytes;
    } array[] = {{a->other, 4}, {a->type, a->data.type_bytes}, {a->weight, 4}, {a->feature, a->data.feature_bytes}};
    uint64_t row[GS_SHARDS_MOST + 1], at[GS_SHARDS_MOST + 1], sum = 0;

    for (uint32_t r = 0; r <= x->ranks; r++) {
        row[r] = GS_MIN((uint64_t)x->first[r] * a->interval_rows, a->vertices);
        at[r] = row[r] * each;
    }
    for (uint64_t v = 0; v < a->vertices; v++)
        put_first(a, v, gs_adjacency_first(a, v + 1) - gs_adjacency_first(a, v));
    GS_TRY(give((void *)(uintptr_t)(a->first32 != NULL ? (const void *)a->first32 : a->first64), at));
    for (uint64_t v = 0; v <= a->vertices; v++) {
        const uint64_t n = v < a->vertices ? gs_adjacency_first(a, v) : 0;
        put_first(a, v, sum);
        sum += n;
    }
    for (uint32_t k = 0; k < GS_ARRAY_LEN(array); k++) {
        char *const to = (char *)(uintptr_t)array[k].of;
        if (to == NULL)
            continue;
        for (uint32_t r = 0; r <= x->ranks; r++)
            at[r] = gs_adjacency_first(a, row[r]) * array[k].bytes;
        memmove(to + at[x->rank], to, edges * array[k].bytes);
        GS_TRY(give(to, at));
    }
    note_loops(a);
    return GS_OK;
}

/* ---- lists that stay in the store ---------------------------------------- */

static gs_status make_counts(loading *l, const gs_store *s, bool loops)
{
    const gs_store_info *info = gs_store_get_info(s);
    gs_adjacency *a = l->a;

    if (loops)
        a->own = l->own = gs_calloc(info->vertices, sizeof(*l->own));
    a->bytes = sizeof(*a) + (info->vertices + 1) * (is_wide(info) ? 8 : 4) +
               (loops ? info->vertices * sizeof(*l->own) : 0);
    GS_NEED(make_first(l, info) && (!loops || l->own != NULL), "%s: no memory to count its edges", gs_store_dir(s));
    return GS_OK;
}

static gs_status open_columns(gs_adjacency *a, const gs_store *s, gs_direction d)
{
    const uint64_t parts = gs_store_chunks(s)->parts;
    gs_columns *const c = a->columns = gs_calloc(1, sizeof(*c));

    GS_NEED(c != NULL && (c->wanted = gs_malloc_array(parts, parts)) != NULL, "%s: no memory to read its edges",
            gs_store_dir(s));
    GS_TRY(gs_edge_scanner_open(&c->scan, s, d, UINT64_MAX)); /* a window of 8 MiB, or of the largest chunk */
    c->table = gs_store_chunks(s);
    a->bytes += sizeof(*c) + parts * parts + gs_edge_scanner_bytes(c->scan);
    return GS_OK;
}

gs_status gs_adjacency_stream(gs_adjacency **out, const gs_store *s, gs_direction d, const volatile int *stop)
{
    GS_ENDS(end_loading) loading l = {0};

    GS_TRY(begin_loading(&l, s, stop));
    GS_TRY(make_counts(&l, s, d == GS_BY_DEST && gs_store_get_info(s)->self_loops > 0));
    GS_TRY(open_columns(l.a, s, d));
    GS_TRY(gs_edge_scanner_run(l.a->columns->scan, NULL, count_edges, &l));
    sum_counts(&l);
    return hand_over(&l, out);
}

gs_status gs_adjacency_count(gs_adjacency **out, const gs_store *s, gs_direction d, const volatile int *stop)
{
    GS_ENDS(end_loading) loading l = {0};

    GS_TRY(begin_loading(&l, s, stop));
    GS_TRY(make_counts(&l, s, false));
    GS_TRY(gs_edge_scan(s, d, UINT64_MAX, l.wanted, count_edges, &l));
    sum_counts(&l);
    return hand_over(&l, out);
}

uint64_t gs_adjacency_bytes_read(const gs_adjacency *a)
{
    return a->columns != NULL ? gs_edge_scanner_read_bytes(a->columns->scan) : 0;
}

void gs_adjacency_free(gs_adjacency *a)
{
    if (a == NULL)
        return;
    gs_free(a->first32);
    gs_free(a->first64);
    gs_free(a->other);
    gs_free(a->type);
    gs_free(a->weight);
    gs_free(a->feature);
    gs_free(a->loops);
    gs_free(a->own);
    if (a->columns != NULL) {
        gs_edge_scanner_close(a->columns->scan);
        gs_free(a->columns->wanted);
    }
    gs_free(a->columns);
    gs_free(a);
}

/* ---- rows and queries, sorted, meet the columns of the store, which go by once -- */

/* The first target of the chunk from t on that is at least `row`; v->targets where there is none. */
static uint32_t find_target(const gs_chunk_view *v, uint32_t t, uint32_t row)
{
    uint32_t low = t, step = 1, high;

    while ((uint64_t)low + step <= v->targets && gs_index_at(v->target, v->index_bytes, low + step - 1) < row) {
        low += step;
        step *= 2;
    }
    high = (uint32_t)GS_MIN((uint64_t)low + step - 1, v->targets);
    GS_BISECT(low, high, gs_index_at(v->target, v->index_bytes, middle) < row);
    return low;
}

/* All chunks of the vertex' column. */
static void want_column(gs_columns *c, uint32_t vertex)
{
    const uint64_t parts = c->table->parts;
    uint8_t *const column = c->wanted + vertex / c->table->interval_rows * parts;
    if (column[0] == 0)
        memset(column, 1, parts);
}

/* order[0..n): rows from `first` on by their vertices. */
static void sort_rows(gs_batch_arena *a, uint32_t first)
{
    gs_column_rows *const r = &a->rows;

    r->count = a->unique.count - first;
    gs_radix_order(r->order, r->passed, a->unique.vertex + first, r->count);
    for (uint32_t p = 0; p < r->count; p++)
        r->order[p] += first;
}

void gs_columns__sort_rows(const gs_sample_pass *w, bool named)
{
    const uint64_t parts = w->columns->table->parts;

    memset(w->columns->wanted, 0, parts * parts);
    for (uint32_t k = 0; k < w->batches; k++) {
        const gs_batch_arena *const a = w->arena[k];
        if (w->batch[k].overflows)
            continue;
        sort_rows(w->arena[k], w->batch[k].expanded);
        for (uint32_t row = w->batch[k].expanded; row < a->unique.count; row++)
            if (!named || a->raw.start[row] < a->raw.start[row + 1])
                want_column(w->columns, a->unique.vertex[row]);
    }
}

/* Both the chunk's targets and the rows ascend. */
static void meet_chunk(const gs_sampler *s, gs_batch *b, gs_batch_arena *a, const gs_chunk_view *v, uint32_t target,
                       uint32_t operand, gs_column_visit *visit)
{
    gs_column_rows *const r = &a->rows;
    const uint32_t *const vertex = a->unique.vertex;

    while (r->at < r->count && vertex[r->order[r->at]] < target)
        r->at++;
    for (uint32_t t = 0, p = r->at; p < r->count && !b->overflows; p++) {
        const uint32_t row = vertex[r->order[p]] - target;
        if ((t = find_target(v, t, row)) == v->targets)
            break;
        if (gs_index_at(v->target, v->index_bytes, t) == row)
            visit(s, b, a, p, v, t, operand);
    }
}

/* Those of one vertex are together, and what has gone by of its list is counted at the first of them. */
static void answer_chunk(gs_list_query *q, const gs_chunk_view *v, uint32_t target, uint32_t operand)
{
    while (q->at < q->count && q->near[q->order[q->at]] < target)
        q->at++;
    for (uint32_t t = 0, p = q->at, end; p < q->count; p = end) {
        const uint32_t near = q->near[q->order[p]], row = near - target;
        for (end = p + 1; end < q->count && q->near[q->order[end]] == near;)
            end++;
        if ((t = find_target(v, t, row)) == v->targets)
            break;
        if (gs_index_at(v->target, v->index_bytes, t) != row)
            continue;
        const uint32_t n = v->start[t + 1] - v->start[t];
        for (uint32_t i = p; i < end; i++) {
            const uint64_t place = q->place[q->order[i]] - q->passed[p];
            if (place < n) /* else of a chunk before or after this one */
                q->far[q->order[i]] = operand + gs_index_at(v->index, v->index_bytes, v->start[t] + place);
        }
        q->passed[p] += n;
    }
}

/* What goes by: rows are visited, or queries are answered. */
typedef struct meeting {
    const gs_sample_pass *w;
    gs_column_want *wants;
    gs_column_visit *visit; /* NULL: queries number `which` */
    uint32_t which;
} meeting;

static gs_status meet(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    const meeting *const m = context;
    const gs_sample_pass *const w = m->w;
    const uint32_t base = (uint32_t)gs_interval_first(w->columns->table, target),
                   other = (uint32_t)gs_interval_first(w->columns->table, operand);

    for (uint32_t k = 0; k < w->batches; k++)
        if (!w->batch[k].overflows && (m->wants == NULL || m->wants(w->arena[k], target, operand))) {
            if (m->visit != NULL)
                meet_chunk(w->s, &w->batch[k], w->arena[k], v, base, other, m->visit);
            else
                answer_chunk(&w->arena[k]->query[m->which], v, base, other);
        }
    return gs_sample__check_stop(w->s);
}

gs_status gs_columns__meet(const gs_sample_pass *w, gs_column_want *batch_wants, gs_column_visit *visit)
{
    meeting m = {.w = w, .wants = batch_wants, .visit = visit};

    for (uint32_t k = 0; k < w->batches; k++) {
        gs_column_rows *const r = &w->arena[k]->rows;
        r->at = 0;
        if (!w->batch[k].overflows)
            memset(r->passed, 0, r->count * sizeof(*r->passed));
    }
    return gs_edge_scanner_run(w->columns->scan, w->columns->wanted, meet, &m);
}

gs_status gs_columns__ask(const gs_sample_pass *w, uint32_t which)
{
    const uint64_t parts = w->columns->table->parts;
    meeting m = {.w = w, .which = which};

    memset(w->columns->wanted, 0, parts * parts);
    for (uint32_t k = 0; k < w->batches; k++) {
        gs_list_query *const q = &w->arena[k]->query[which];
        if (w->batch[k].overflows)
            continue;
        gs_radix_order(q->order, q->spare, q->near, q->count);
        q->at = 0;
        memset(q->passed, 0, q->count * sizeof(*q->passed));
        for (uint32_t i = 0; i < q->count; i++)
            want_column(w->columns, q->near[i]);
    }
    return gs_edge_scanner_run(w->columns->scan, w->columns->wanted, meet, &m);
}
