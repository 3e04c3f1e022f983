/* exec_merge.c - chunks that stay in memory are laid out for speed before the first pass.
 *
 * Doubled edges of a chunk become one. Then the chunks of a column become one (store/chunk_view.c) wherever
 * every stage that goes over them has all their operand rows side by side: a column's first task does what all of its
 * tasks would, and the others nothing. An own row is added in its turn, before the chunk of its own interval, so
 * columns of sums with own rows are joined on either side of that. Every number is added as the plan has it.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/size.h"
#include "exec/exec_run.h"

/* Rows that an index of two bytes can name. Groups of chunks with so many operand rows take less memory joined. */
#define NARROW_ROWS 65536u
/* Edges of a target in each group, on average: with fewer its sum is gone back to too often. */
#define FEW_EDGES 2u

/* Neighbouring chunks of a column, which may become one. */
typedef struct run {
    uint64_t begin, end; /* in RESIDENT; the same: no task has gone over it */
    bool one_by_one;     /* some stage needs its chunks one by one */
} run;

/* How far the tasks of one sum have come in the run that they are going over. */
typedef struct progress {
    uint32_t head;       /* its first task; GS_NONE: they are in none */
    uint32_t operand;    /* of the next chunk that has edges, or the run's end */
    uint64_t at;         /* where that is in RESIDENT */
} progress;

struct joining {
    uint64_t others;     /* one bit an edge set: other tasks than sums of rows read its chunks */
    uint64_t own;        /* likewise: sums over it add own rows */
    uint8_t *scratch;    /* [room] */
    uint64_t room, *used; /* used: bytes of it that were written */
    run *run;            /* [sets * parts * 2] of a column, before its own interval and from it on */
    progress *progress;  /* [sets * parts * GS_STAGE_SUMS] */
};

/* Is this the pass of a sum that needs each row and nothing else of an edge? */
static bool sums_rows(const gs_exec *e, const gs_task *t)
{
    gs_row_sum rows;
    return gs_task_sums_rows(t) && gs_sum_of_rows(&rows, &e->program->stage[t->stage], t->sum) &&
           rows.types == GS_TYPES_NONE;
}

static void find_sets(const gs_exec *e, struct joining *j)
{
    for (uint32_t i = 0; i < e->plan->tasks; i++) {
        const gs_task *t = &e->plan->task[i];
        if (t->chunk.region == GS_REGION_NONE)
            continue;
        const uint64_t bit = 1ull << (t->file - e->program->arrays);
        if (!sums_rows(e, t))
            j->others |= bit;
        else if (e->program->stage[t->stage].sum[t->sum].self)
            j->own |= bit;
    }
}

/* Is its chunk in memory for good, and for sums of rows alone? */
static bool stays(const gs_exec *e, const gs_task *t, uint64_t others)
{
    return sums_rows(e, t) && t->chunk.region == GS_REGION_RESIDENT && t->chunk.offset < e->plan->lasting_bytes &&
           (others >> (t->file - e->program->arrays) & 1) == 0;
}

/* Memory that nothing is in before the first pass: the arena, or what lies behind everything that was loaded. */
static uint8_t *unused(const gs_exec *e, uint64_t *bytes)
{
    uint64_t loaded = 0;
    for (uint32_t i = 0; i < e->plan->residents; i++)
        if (e->plan->resident[i].load && e->plan->resident[i].memory == GS_HOST)
            loaded =
                GS_MAX(loaded, e->plan->resident[i].offset + gs_align_up(e->plan->resident[i].bytes, GS_BLOCK_BYTES));
    const uint64_t resident = e->region_bytes[GS_REGION_RESIDENT], arena = e->on->arena_bytes;
    const bool behind = loaded < resident && resident - loaded > arena;
    *bytes = behind ? resident - loaded : arena;
    return behind ? e->region[GS_REGION_RESIDENT] + loaded : e->on->arena;
}

/* Doubled edges of each chunk. */
static gs_status merge_doubled(gs_exec *e, const struct joining *j)
{
    for (uint32_t i = 0; i < e->plan->tasks; i++) {
        const gs_task *t = &e->plan->task[i];
        gs_chunk_view view;
        if (!stays(e, t, j->others) || gs_exec__chunk_state(e, t) != GS_CHUNK_UNSEEN)
            continue;
        GS_TRY(gs_exec__view_chunk(e, e->on, t, &view));
        if (view.edges > j->room)
            continue;
        *j->used = GS_MAX(*j->used, view.edges);
        if (gs_chunk_merge(&view, gs_exec__host(e, t->chunk), j->scratch))
            gs_exec__set_chunk_state(e, t, GS_CHUNK_MERGED);
    }
    return GS_OK;
}

/* ---- which columns may be joined ---- */

static uint32_t set_of(const gs_exec *e, const gs_task *t) { return t->file - e->program->arrays; }

/* Operand intervals of the run that this chunk is in. */
static uint32_t run_first(const struct joining *j, uint32_t set, uint32_t target, uint32_t operand)
{
    const uint32_t split = j->own >> set & 1 ? target : 0;
    return operand >= split ? split : 0;
}

static uint32_t run_end(const gs_exec *e, const struct joining *j, uint32_t set, uint32_t target, uint32_t operand)
{
    const uint32_t split = j->own >> set & 1 ? target : 0;
    return operand >= split ? e->chunks.parts : split;
}

static run *run_of(const gs_exec *e, const struct joining *j, uint32_t set, uint32_t target, uint32_t operand)
{
    const bool second = run_first(j, set, target, operand) != 0;
    return &j->run[((uint64_t)set * e->chunks.parts + target) * 2 + second];
}

static uint32_t next_with_edges(const gs_exec *e, uint32_t set, uint32_t target, uint32_t from, uint32_t end)
{
    const gs_exec_chunk *const c = &e->chunks.chunk[set][(uint64_t)target * e->chunks.parts];
    while (from < end && c[from].edges == 0)
        from++;
    return from;
}

/* Does a place lie as many rows behind another as its interval does? */
static bool is_beside(const gs_exec *e, gs_place head, gs_place p, uint32_t array, uint32_t intervals)
{
    const gs_array *const a = &e->program->array[array];
    const uint64_t row = a->width * (uint64_t)gs_dtype_bytes(a->dtype);
    return p.region == head.region && p.offset == head.offset + intervals * row * e->chunks.interval_rows;
}

/* Could `head` have done what this task does? */
static bool follows(const gs_exec *e, const gs_task *head, const gs_task *t)
{
    const uint32_t intervals = t->operand - head->operand;
    gs_row_sum rows;
    return t->stage == head->stage && gs_sum_of_rows(&rows, &e->program->stage[t->stage], t->sum) && t->deps == 0 &&
           t->rows == head->rows && t->place.region == head->place.region && t->place.offset == head->place.offset &&
           is_beside(e, head->source, t->source, rows.array, intervals) &&
           (rows.scale == GS_NONE || is_beside(e, e->plan->reg[head->first_reg], e->plan->reg[t->first_reg], rows.scale,
                                               intervals));
}

/* The sum goes from one run, which must be done, to another. */
static void enter_run(const gs_exec *e, struct joining *j, progress *p, uint32_t task)
{
    const gs_task *const t = &e->plan->task[task];
    const uint32_t set = set_of(e, t), first = run_first(j, set, t->target, t->operand);
    const uint32_t end = run_end(e, j, set, t->target, t->operand);
    run *const r = run_of(e, j, set, t->target, t->operand);

    if (t->operand != next_with_edges(e, set, t->target, first, end) ||
        (r->begin != r->end && r->begin != t->chunk.offset))
        r->one_by_one = true;
    r->begin = t->chunk.offset;
    *p = (progress){.head = task, .operand = t->operand, .at = t->chunk.offset};
}

static bool is_done(const gs_exec *e, const struct joining *j, const progress *p)
{
    if (p->head == GS_NONE)
        return true;
    const gs_task *const t = &e->plan->task[p->head];
    return p->operand == run_end(e, j, set_of(e, t), t->target, t->operand);
}

static void leave_run(const gs_exec *e, struct joining *j, const progress *p)
{
    if (is_done(e, j, p))
        return;
    const gs_task *const t = &e->plan->task[p->head];
    run_of(e, j, set_of(e, t), t->target, t->operand)->one_by_one = true;
}

static void note_task(const gs_exec *e, struct joining *j, uint32_t task)
{
    const gs_task *const t = &e->plan->task[task];
    const uint32_t set = set_of(e, t), end = run_end(e, j, set, t->target, t->operand);
    run *const r = run_of(e, j, set, t->target, t->operand);

    if (!stays(e, t, j->others)) {
        r->one_by_one = true;
        return;
    }
    progress *const p = &j->progress[((uint64_t)set * e->chunks.parts + t->target) * GS_STAGE_SUMS + t->sum];
    const bool same = p->head != GS_NONE && run_of(e, j, set, t->target, e->plan->task[p->head].operand) == r;
    if (is_done(e, j, p) || !same) {
        leave_run(e, j, p);
        enter_run(e, j, p, task);
    }
    if (t->operand != p->operand || t->chunk.offset != p->at ||
        (task != p->head && !follows(e, &e->plan->task[p->head], t)))
        r->one_by_one = true;
    p->operand = next_with_edges(e, set, t->target, t->operand + 1, end);
    p->at = t->chunk.offset + t->chunk_bytes;
    r->end = GS_MAX(r->end, p->at);
}

/* ---- joining them ---- */

/* Views of the run's chunks one after the other. */
static gs_status next_view(gs_exec *e, gs_task *t, uint64_t at, uint32_t operand, gs_chunk_view *view)
{
    t->operand = operand;
    t->chunk = gs_place_on_host(GS_REGION_RESIDENT, at);
    t->chunk_bytes = e->chunks.chunk[set_of(e, t)][(uint64_t)t->target * e->chunks.parts + operand].length;
    return gs_exec__view_chunk(e, e->on, t, view);
}

/* Neighbouring chunks that become one. */
typedef struct span {
    uint32_t first, end; /* operand intervals; `first` has edges */
    uint64_t at, bytes;  /* in RESIDENT */
} span;

/* Goes over the chunks twice: what they have, then into the scratch. */
static gs_status gather(gs_exec *e, gs_chunk_join *to, gs_task *t, const span *s, bool add)
{
    const uint32_t set = set_of(e, t);
    uint64_t at = s->at;

    for (uint32_t o = s->first; o < s->end; o = next_with_edges(e, set, t->target, o + 1, s->end)) {
        gs_chunk_view view;
        GS_TRY(next_view(e, t, at, o, &view));
        if (add)
            gs_chunk_join_add(to, &view, (o - s->first) * e->chunks.interval_rows);
        else
            gs_chunk_join_count(to, &view);
        at += t->chunk_bytes;
    }
    return GS_OK;
}

static uint64_t rows_between(const gs_exec *e, uint32_t first, uint32_t end)
{
    return GS_MIN((uint64_t)end * e->chunks.interval_rows, e->chunks.vertices) -
           (uint64_t)first * e->chunks.interval_rows;
}

/* Where they fit and have fewer edges a target than `most`: *joined. */
static gs_status join_span(gs_exec *e, struct joining *j, gs_task *t, const span *s, uint64_t most, bool *joined)
{
    const uint32_t rows = gs_exec__interval_rows(e, t->target);
    gs_chunk_join to;
    gs_status st;

    *joined = false;
    if (next_with_edges(e, set_of(e, t), t->target, s->first + 1, s->end) == s->end ||
        !gs_chunk_join_begin(&to, rows, rows_between(e, s->first, s->end), j->scratch, j->room))
        return GS_OK;
    st = gather(e, &to, t, s, false);
    *joined = st == GS_OK && to.edges / to.targets < most && gs_chunk_join_fits(&to, s->bytes);
    if (*joined && (st = gather(e, &to, t, s, true)) == GS_OK) {
        gs_chunk_join_write(&to, e->region[GS_REGION_RESIDENT] + s->at);
        for (t->operand = s->first; t->operand < s->end; t->operand++)
            gs_exec__set_chunk_state(e, t, t->operand == s->first ? GS_CHUNK_JOINED : GS_CHUNK_ELSEWHERE);
    }
    *j->used = GS_MAX(*j->used, to.used);
    return st;
}

/* Chunks from `first` on whose operand rows two bytes tell apart; `at`: where the first is. */
static span next_group(const gs_exec *e, uint32_t set, uint32_t target, uint32_t first, uint32_t end, uint64_t at)
{
    span s = {.first = first, .end = first + 1, .at = at};
    while (s.end < end && rows_between(e, first, s.end + 1) <= NARROW_ROWS)
        s.end++;
    for (uint32_t o = first; o < s.end; o = next_with_edges(e, set, target, o + 1, s.end))
        s.bytes += e->chunks.chunk[set][(uint64_t)target * e->chunks.parts + o].length;
    return s;
}

/* All of a run's chunks where targets have few edges, so that going back to their sums counts; else, and where that
 * does not fit, groups of them, which always do. */
static gs_status join_run(gs_exec *e, struct joining *j, uint32_t set, uint32_t target, uint32_t operand)
{
    const uint32_t end = run_end(e, j, set, target, operand);
    const uint32_t first = next_with_edges(e, set, target, run_first(j, set, target, operand), end);
    const run *const r = run_of(e, j, set, target, operand);
    const bool groups = 2ull * e->chunks.interval_rows <= NARROW_ROWS;
    const span whole = {first, end, r->begin, r->end - r->begin};
    gs_task t = {.file = GS_FILE_EDGES(e->program, set), .target = target};
    bool joined = true;

    if (r->one_by_one || r->begin == r->end)
        return GS_OK;
    const uint64_t most = groups ? FEW_EDGES * gs_div_up(rows_between(e, first, end), NARROW_ROWS) : UINT64_MAX;
    GS_TRY(join_span(e, j, &t, &whole, most, &joined));
    if (joined || !groups)
        return GS_OK;
    uint64_t at = r->begin;
    for (uint32_t o = first; o < end;) {
        const span s = next_group(e, set, target, o, end, at);
        GS_TRY(join_span(e, j, &t, &s, UINT64_MAX, &joined));
        at += s.bytes;
        o = next_with_edges(e, set, target, s.end, end);
    }
    return GS_OK;
}

static gs_status join_columns(gs_exec *e, struct joining *j)
{
    const uint32_t parts = e->chunks.parts;

    for (uint64_t i = 0; i < (uint64_t)e->chunks.sets * parts * GS_STAGE_SUMS; i++)
        j->progress[i].head = GS_NONE;
    for (uint32_t i = 0; i < e->plan->tasks; i++)
        if (e->plan->task[i].chunk.region != GS_REGION_NONE && sums_rows(e, &e->plan->task[i]))
            note_task(e, j, i);
    for (uint64_t i = 0; i < (uint64_t)e->chunks.sets * parts * GS_STAGE_SUMS; i++)
        leave_run(e, j, &j->progress[i]);
    for (uint32_t set = 0; set < e->chunks.sets; set++)
        for (uint32_t target = 0; target < parts && e->chunks.chunk[set] != NULL; target++) {
            GS_TRY(join_run(e, j, set, target, parts - 1));
            if ((j->own >> set & 1) != 0 && target > 0)
                GS_TRY(join_run(e, j, set, target, 0));
        }
    return GS_OK;
}

gs_status gs_exec__merge_chunks(gs_exec *e)
{
    const uint64_t columns = (uint64_t)e->chunks.sets * e->chunks.parts;
    uint64_t used = 0;
    struct joining j = {.used = &used};

    if (e->defers) /* its edges are its own, and counts would be new to it */
        return GS_OK;
    find_sets(e, &j);
    j.scratch = unused(e, &j.room);
    GS_FREED const run *const runs = j.run = gs_calloc(columns * 2, sizeof(*j.run));
    GS_FREED const progress *const begun = j.progress = gs_malloc_array(columns * GS_STAGE_SUMS, sizeof(*j.progress));
    GS_NEED(runs != NULL && begun != NULL, "out of memory: the list of %lu columns of edges", columns);
    GS_TRY(merge_doubled(e, &j));
    if (e->devices == 1)
        GS_TRY(join_columns(e, &j));
    memset(j.scratch, 0, used); /* as it was: rows that no stage makes are read as 0 */
    return GS_OK;
}

bool gs_exec_is_joined(const gs_exec *e, uint32_t task)
{
    const gs_task *const t = &e->plan->task[task];
    return t->chunk.region != GS_REGION_NONE && gs_exec__chunk_state(e, t) >= GS_CHUNK_JOINED;
}
