#include "plan_sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/size.h"
#include "plan/part.h"
#include "support/support.h"
#include "plan_sim_internal.h"

static uint32_t mix(uint64_t v)
{
    v ^= v >> 31;
    v *= 0x9E3779B97F4A7C15ull;
    v ^= v >> 29;
    v *= 0xBF58476D1CE4E5B9ull;
    return (uint32_t)(v >> 32);
}

uint32_t plan_sim__next(struct sim *s)
{
    s->rng = s->rng * 1664525u + 1013904223u;
    return s->rng >> 8 ^ s->rng >> 20; /* low bits alone come again after some thousand draws */
}

static uint64_t row_bytes(const struct sim *s, uint32_t a)
{
    return s->p->array[a].width * (uint64_t)gs_dtype_bytes(s->p->array[a].dtype);
}

static uint32_t chunk_word(const struct sim *s, uint32_t direction, uint32_t target, uint32_t operand)
{
    return mix(((uint64_t)direction << 60) ^ ((uint64_t)target << 30) ^ operand ^ ((uint64_t)s->run << 50));
}

static bool is_back(const gs_stage *st) { return st->sums == 1 && st->sum[0].kind == GS_SUM_LSTM_BACK; }

/* Is the array what a sequence's derivative adds up at the operand end? */
static bool is_added_up(const struct sim *s, uint32_t file)
{
    for (uint32_t k = 0; file < s->p->arrays && k < s->p->stages; k++)
        if (is_back(&s->p->stage[k]) && s->p->stage[k].sum[0].array == file)
            return true;
    return false;
}

/* Every element of an interval's such rows: the words of the chunks with edges from them. */
static uint32_t added_up_word(const struct sim *s, uint32_t operand)
{
    uint32_t word = 0;
    for (uint32_t t = 0; t < s->cfg->chunks->parts; t++)
        if (gs_chunk_at(s->cfg->chunks, 0, t, operand)->edges)
            word += chunk_word(s, 0, t, operand);
    return word;
}

static void added_up_bytes(const struct sim *s, uint32_t file, uint64_t at, uint64_t n, uint8_t *to)
{
    const uint64_t interval = row_bytes(s, file) * s->cfg->chunks->interval_rows;
    for (const uint64_t end = at + n; at < end;) {
        const uint64_t stop = GS_MIN(end, (at / interval + 1) * interval);
        const uint32_t word = added_up_word(s, (uint32_t)(at / interval));
        for (; at < stop; at++)
            *to++ = ((const uint8_t *)&word)[at % 4];
    }
}

/* Words of eight bytes come in lines of eight words, each of which has one random number. */
#define LINE_WORDS 8u

static uint64_t line_of(uint64_t key, uint64_t line)
{
    uint64_t v = key ^ line;
    v ^= v >> 31;
    v *= 0x9E3779B97F4A7C15ull;
    v ^= v >> 29;
    v *= 0xBF58476D1CE4E5B9ull;
    return v ^ v >> 32;
}

/* What distinguishes the words of a line. */
static uint64_t word_of(uint64_t line, uint64_t word) { return line + (word % LINE_WORDS) * 0xD1B54A32D192ED03ull; }

void plan_sim__bytes_of(const struct sim *s, uint32_t file, uint64_t at, uint64_t n, uint8_t *to)
{
    if (is_added_up(s, file)) {
        added_up_bytes(s, file, at, n, to);
        return;
    }
    const bool made =
        file < s->p->arrays && s->p->array[file].store_id < 0 && !(file < 63 && (s->lasting >> file & 1) != 0);
    const uint64_t key = ((uint64_t)file << 48) ^ ((uint64_t)(made ? s->run + 1 : 0) << 40);
    while (n > 0) {
        const uint64_t line = line_of(key, at / (8 * LINE_WORDS));
        if (at % (8 * LINE_WORDS) == 0 && n >= 8 * LINE_WORDS) { /* nearly always: copies that need no call */
            for (uint64_t k = 0; k < LINE_WORDS; k++)
                memcpy(to + 8 * k, &(uint64_t){word_of(line, k)}, 8);
            to += 8 * LINE_WORDS, at += 8 * LINE_WORDS, n -= 8 * LINE_WORDS;
            continue;
        }
        const uint64_t word = word_of(line, at / 8), bytes = GS_MIN(n, 8 - at % 8);
        memcpy(to, (const uint8_t *)&word + at % 8, bytes);
        to += bytes, at += bytes, n -= bytes;
    }
}

void plan_sim__disk_bytes_of(const struct sim *s, uint32_t file, uint64_t at, uint64_t n, uint8_t *to)
{
    const int id = file < s->p->arrays ? s->p->array[file].store_id : -1;

    plan_sim__bytes_of(s, file, at, n, to);
    if (s->dealt == NULL || id < 0 || (s->dealt->arrays >> id & 1) == 0)
        return;
    const uint64_t interval =
        s->cfg->chunks->interval_rows * (uint64_t)s->p->array[file].width * gs_dtype_bytes(s->p->array[file].dtype);
    const uint64_t first = s->dealt->first[s->plan->rank] * interval;
    const uint64_t end = s->dealt->first[s->plan->rank + 1] * interval;
    for (uint64_t i = 0; i < n; i++)
        if (at + i < first || at + i >= end)
            to[i] = 0xEE;
}

static const gs_row_runs *runs_of(const struct sim *s, uint32_t stage)
{
    return s->cfg->needs.stage_rows && s->cfg->needs.stage_rows[stage].first ? &s->cfg->needs.stage_rows[stage] : NULL;
}

static bool in_runs(const gs_row_runs *r, uint32_t interval, uint32_t row)
{
    for (uint32_t k = r->first[interval]; k < r->first[interval + 1]; k++)
        if (row >= r->run[k].first && row - r->run[k].first < r->run[k].rows)
            return true;
    return false;
}

static bool runs_for(const struct sim *s, uint32_t stage, uint32_t interval, uint32_t row)
{
    const gs_row_runs *r = runs_of(s, stage);
    return r == NULL || in_runs(r, interval, row);
}

/* Is this row of an array stored by some stage, and not 0? What is not, is 0. */
static bool stores(const struct sim *s, uint32_t array, uint64_t row)
{
    const uint32_t per = s->cfg->chunks->interval_rows, interval = (uint32_t)(row / per), at = (uint32_t)(row % per);
    if (s->cfg->needs.array_rows != NULL && s->cfg->needs.array_rows[array].first != NULL &&
        !in_runs(&s->cfg->needs.array_rows[array], interval, at))
        return false;
    for (uint32_t k = 0; k < s->p->stages; k++)
        for (uint32_t r = 0; r < s->p->stage[k].regs; r++)
            if (s->p->stage[k].reg[r].kind == GS_REG_TEMP && s->p->stage[k].reg[r].array == array)
                return runs_for(s, k, interval, at);
    return true;
}

/* Worked out once: a run asks it of every row that a chunk may use. */
static void find_stored(struct sim *s)
{
    const uint64_t rows = s->cfg->chunks->vertices;
    assert_non_null(s->stored = calloc(s->p->arrays * rows + 1, 1));
    for (uint32_t a = 0; a < s->p->arrays; a++)
        for (uint64_t row = 0; row < rows; row++)
            s->stored[a * rows + row] = stores(s, a, row);
}

static bool is_stored(const struct sim *s, uint32_t array, uint64_t row)
{
    return s->stored[array * s->cfg->chunks->vertices + row];
}

/* n bytes of a file, all of which were stored or came with it. */
static void expect_bytes(struct sim *s, uint32_t task, const uint8_t *got, uint32_t file, uint64_t at, uint64_t n)
{
    uint8_t want[1024];
    for (uint64_t i = 0, part; i < n; i += part) {
        part = GS_MIN(n - i, sizeof want);
        plan_sim__bytes_of(s, file, at + i, part, want);
        if (memcmp(got + i, want, part) == 0)
            continue;
        while (*(got + i) == want[i % sizeof want])
            i++;
        fail_msg("task %u (kind %d, stage %u): byte %llu of file %u is not there", task,
                 s->plan->task[task].kind, s->plan->task[task].stage, (unsigned long long)(at + i), file);
    }
}

/* Rows of an array from `first` on, the first of which is at `got`. */
static void expect_rows(struct sim *s, uint32_t task, const uint8_t *got, uint32_t array, uint64_t first, uint64_t rows)
{
    const uint64_t rb = row_bytes(s, array);
    for (uint64_t r = 0, end; r < rows; r = end) {
        const bool stored = is_stored(s, array, first + r);
        for (end = r + 1; end < rows && is_stored(s, array, first + end) == stored;)
            end++;
        if (stored) {
            expect_bytes(s, task, got + r * rb, array, (first + r) * rb, (end - r) * rb);
            continue;
        }
        for (uint64_t i = r * rb; i < end * rb; i++)
            if (got[i] != 0)
                fail_msg("task %u (stage %u): byte %llu of file %u was never stored and is not 0", task,
                         s->plan->task[task].stage, (unsigned long long)(first * rb + i), array);
    }
}

static const gs_chunk *chunk_at(const struct sim *s, uint32_t stage, uint32_t target, uint32_t operand)
{
    const uint32_t d = s->cfg->chunks->shared ? GS_BY_DEST : s->p->stage[stage].direction;
    const gs_chunk *chunk = s->cfg->needs.sets ? s->cfg->needs.set[d].chunk : s->cfg->chunks->chunk[d];
    return &chunk[(uint64_t)target * s->cfg->chunks->parts + operand];
}

/* Rows from the interval's first to the last that the stage runs for. */
static uint32_t rows_end(const struct sim *s, uint32_t stage, uint32_t interval)
{
    const gs_row_runs *r = runs_of(s, stage);
    if (r == NULL)
        return gs_interval_rows(s->cfg->chunks, interval);
    if (r->first[interval] == r->first[interval + 1])
        return 0;
    const gs_row_run last = r->run[r->first[interval + 1] - 1];
    return last.first + last.rows;
}

/* Rows of an operand interval that a chunk's edges name must be there; what lies between may not. */
static void expect_needed(struct sim *s, uint32_t task, const uint8_t *got, uint32_t array, uint32_t set,
                          uint32_t target, uint32_t operand)
{
    const gs_chunk_table *ch = s->cfg->chunks;
    const uint64_t rb = row_bytes(s, array), first = gs_interval_first(ch, operand);
    const gs_needs *const needs = &s->cfg->needs;
    const bool by_row = needs->sets > 0 && needs->set[set].rows != NULL;
    const gs_granules g_of = by_row ? needs->rows : needs->granules;
    const uint32_t rows = gs_interval_rows(ch, operand), granule = g_of.rows;
    const uint64_t *need = by_row ? needs->set[set].rows : needs->sets > 0 ? needs->set[set].need : NULL;

    if (need == NULL) {
        expect_rows(s, task, got, array, first, rows);
        return;
    }
    need += ((uint64_t)target * ch->parts + operand) * g_of.words;
    for (uint32_t from = 0, g = 0; from < rows; from += granule, g++)
        if (need[g / 64] >> (g % 64) & 1)
            expect_rows(s, task, got + from * rb, array, first + from, GS_MIN(granule, rows - from));
}

static uint32_t self_word(uint32_t interval) { return mix(0xABCDull << 32 | interval); }

static void add_words(uint32_t *to, uint64_t n, uint32_t word)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] += word;
}

static gs_row_sum rows_of(const gs_stage *st, const gs_sum *sum)
{
    gs_row_sum rows = {.array = GS_NONE, .scale = GS_NONE};
    (void)gs_sum_of_rows(&rows, st, (uint32_t)(sum - st->sum));
    return rows;
}

static void run_edges(struct sim *s, uint32_t index, const gs_task *t)
{
    const gs_stage *st = &s->p->stage[t->stage];
    const gs_chunk_table *ch = s->cfg->chunks;
    const gs_sum *sum = &st->sum[t->sum];
    const gs_row_sum rows = rows_of(st, sum);
    const gs_chunk *c = chunk_at(s, t->stage, t->target, t->operand);
    const uint32_t d = ch->shared ? 0 : st->direction;

    assert_int_equal(t->chunk_bytes, c->length);
    assert_int_equal(t->file, GS_FILE_EDGES(s->p, d));
    expect_bytes(s, index, place(s, t->chunk), t->file, c->offset, c->length);
    expect_needed(s, index, place(s, t->source), rows.array, d, t->target, t->operand);
    if (rows.scale != GS_NONE)
        expect_needed(s, index, place(s, s->plan->reg[t->first_reg]), rows.scale, d, t->target, t->operand);
    add_words(place(s, t->place), (uint64_t)rows_end(s, t->stage, t->target) * st->reg[sum->reg].width,
              chunk_word(s, st->direction, t->target, t->operand));
}

static void run_self(struct sim *s, uint32_t index, const gs_task *t)
{
    const gs_stage *st = &s->p->stage[t->stage];
    const gs_sum *sum = &st->sum[t->sum];
    const gs_row_sum rows = rows_of(st, sum);
    const uint64_t first = gs_interval_first(s->cfg->chunks, t->operand);

    assert_true(t->first_row >= first && t->rows > 0);
    assert_true(t->first_row + t->rows <= first + gs_interval_rows(s->cfg->chunks, t->operand));
    for (uint32_t r = 0; r < t->rows; r++) {
        assert_true(runs_for(s, t->stage, t->operand, (uint32_t)(t->first_row - first) + r));
        assert_true(is_stored(s, rows.array, t->first_row + r));
    }
    expect_rows(s, index, place(s, t->source), rows.array, t->first_row, t->rows);
    if (rows.scale != GS_NONE)
        expect_rows(s, index, place(s, s->plan->reg[t->first_reg]), rows.scale, t->first_row, t->rows);
    add_words(place(s, t->place), (uint64_t)t->rows * st->reg[sum->reg].width, self_word(t->operand));
}

static bool of_rows(const gs_stage *st, const gs_sum *sum)
{
    return gs_stage_sums_rows(st, (uint32_t)(sum - st->sum));
}

/* Every part of an edge program's sum gets the same words; finishing adds this one. */
#define FINISHED 0x51515151u

static uint32_t part_width(const gs_stage *st, const gs_sum *sum, int part)
{
    if (part == GS_SUM_ACC || (part == GS_SUM_MAXIMUM && sum->kind == GS_SUM_LSTM))
        return st->reg[sum->reg].width;
    return sum->kind == GS_SUM_ATTEND ? st->reg[sum->lse].width : 0;
}

static void run_frame(struct sim *s, const gs_task *t)
{
    const gs_stage *st = &s->p->stage[t->stage];
    for (int k = 0; k < GS_SUM_PLACES; k++) {
        const uint64_t n = (uint64_t)t->rows * part_width(st, &st->sum[t->sum], k);
        uint32_t *to = place(s, s->plan->reg[t->first_reg + (uint32_t)k]);
        if (n > 0 && t->kind == GS_TASK_BEGIN)
            memset(to, 0, n * 4);
        else
            add_words(to, n, FINISHED);
    }
}

/* Sums that begin, or finish, in the task which goes over all of their edges. */
static void run_frames(struct sim *s, const gs_task *t, gs_task_kind kind)
{
    const gs_stage *st = &s->p->stage[t->stage];
    gs_task frame = *t;
    frame.kind = (uint8_t)kind;
    for (uint32_t i = 0; t->whole != 0 && i < st->sums; i++) {
        frame.sum = i;
        frame.first_reg = t->first_reg + st->edge_regs + i * GS_SUM_PLACES;
        if (!of_rows(st, &st->sum[i]))
            run_frame(s, &frame);
    }
}

/* Rows of both ends, the chunk, and the sums' memory. */
static void run_program(struct sim *s, uint32_t index, const gs_task *t)
{
    const gs_stage *st = &s->p->stage[t->stage];
    const gs_chunk_table *ch = s->cfg->chunks;
    const gs_place *reg = &s->plan->reg[t->first_reg];
    const gs_chunk *c = chunk_at(s, t->stage, t->target, t->operand);
    const uint64_t rows = rows_end(s, t->stage, t->target);

    expect_bytes(s, index, place(s, t->chunk), GS_FILE_EDGES(s->p, ch->shared ? 0 : st->direction), c->offset,
                 c->length);
    for (uint32_t r = 0; r < st->edge_regs; r++) {
        const gs_edge_reg *er = &st->edge_reg[r];
        if (er->kind != GS_EDGE_OPERAND && er->kind != GS_EDGE_TARGET)
            continue;
        const uint64_t rb = row_bytes(s, er->array);
        if (er->kind == GS_EDGE_OPERAND)
            expect_needed(s, index, place(s, reg[r]), er->array, ch->shared ? 0 : st->direction, t->target, t->operand);
        else
            for (uint32_t row = 0; row < rows; row++)
                if (runs_for(s, t->stage, t->target, row))
                    expect_rows(s, index, (uint8_t *)place(s, reg[r]) + row * rb, er->array,
                                gs_interval_first(ch, t->target) + row, 1);
    }
    run_frames(s, t, GS_TASK_BEGIN);
    for (uint32_t i = 0; i < st->sums; i++)
        for (int k = 0; !of_rows(st, &st->sum[i]) && k < GS_SUM_PLACES; k++)
            add_words(place(s, reg[st->edge_regs + i * GS_SUM_PLACES + (uint32_t)k]),
                      rows * part_width(st, &st->sum[i], k),
                      chunk_word(s, st->direction, t->target, t->operand));
    run_frames(s, t, GS_TASK_FINISH);
}

/* States depend on the order of the chunks that they have seen. */
static uint32_t passed(uint32_t state, uint32_t word) { return state * 16777619u + word; }

static uint32_t state_before(const struct sim *s, uint32_t target, uint32_t operand)
{
    uint32_t word = 0;
    for (uint32_t o = 0; o < operand; o++)
        if (gs_chunk_at(s->cfg->chunks, 0, target, o)->edges)
            word = passed(word, chunk_word(s, 0, target, o));
    return word;
}

/* Behind chunk `operand` a gradient that was `word` behind the last one is times * word + more. */
typedef struct gradient {
    uint32_t times, more;
} gradient;

static gradient gradient_behind(const struct sim *s, uint32_t target, uint32_t operand)
{
    gradient g = {1, 0};
    for (uint32_t o = s->cfg->chunks->parts; o-- > operand + 1;)
        if (gs_chunk_at(s->cfg->chunks, 0, target, o)->edges) {
            g.times = passed(g.times, 0);
            g.more = passed(g.more, chunk_word(s, 0, target, o));
        }
    return g;
}

/* n words of the target interval's rows of an array, from word `from` on. */
static void target_words(const struct sim *s, uint32_t array, uint32_t interval, uint64_t from, uint64_t n,
                         uint32_t *word)
{
    const uint64_t at = gs_interval_first(s->cfg->chunks, interval) * row_bytes(s, array) + 4 * from;
    plan_sim__bytes_of(s, array, at, 4 * n, (uint8_t *)word);
}

static void pass_chunk(uint32_t index, uint32_t *state, uint64_t n, uint32_t want, uint32_t word, const char *what)
{
    for (uint64_t i = 0; i < n; i++) {
        if (state[i] != want)
            fail_msg("task %u: the %s is not that of the chunk", index, what);
        state[i] = passed(want, word);
    }
}

static void run_back(struct sim *s, uint32_t index, const gs_task *t, uint64_t n)
{
    const gs_stage *st = &s->p->stage[t->stage];
    const gs_place *at = &s->plan->reg[t->first_reg];
    const uint32_t word = chunk_word(s, 0, t->target, t->operand), state = state_before(s, t->target, t->operand);
    const uint32_t *kept[2] = {place(s, at[GS_STATE]), place(s, at[GS_STATE_CELL])};
    const gradient behind = gradient_behind(s, t->target, t->operand);
    uint32_t *d_state = place(s, at[GS_STATE_D]), first[256];

    for (uint64_t i = 0; i < n; i++) {
        const uint64_t k = i % GS_ARRAY_LEN(first);
        if (k == 0)
            target_words(s, st->edge_reg[st->sum[0].score].array, t->target, i, GS_MIN(n - i, GS_ARRAY_LEN(first)),
                         first);
        if (kept[0][i] != state || kept[1][i] != state)
            fail_msg("task %u: the state is not that at the start of chunk (%u, %u)", index, t->target, t->operand);
        if (d_state[i] != behind.times * first[k] + behind.more)
            fail_msg("task %u: the state's gradient is not that behind chunk (%u, %u)", index, t->target, t->operand);
        d_state[i] = passed(d_state[i], word);
    }
    pass_chunk(index, place(s, at[GS_STATE_D_CELL]), n, behind.more, word, "cell's gradient");
    add_words(place(s, t->place),
              (uint64_t)gs_interval_rows(s->cfg->chunks, t->operand) * s->p->array[st->sum[0].array].width, word);
}

/* UNROLL and BACK. */
static void run_sequence(struct sim *s, uint32_t index, const gs_task *t)
{
    const gs_stage *st = &s->p->stage[t->stage];
    const gs_chunk_table *ch = s->cfg->chunks;
    const gs_chunk *c = gs_chunk_at(ch, st->direction, t->target, t->operand);
    const uint32_t gates = st->edge_reg[st->sum[0].value].array;
    const uint64_t n = (uint64_t)gs_interval_rows(ch, t->target) * s->p->param[st->sum[0].weight].cols;
    const gs_place *at = &s->plan->reg[t->first_reg];

    assert_int_equal(t->chunk_bytes, c->length);
    expect_bytes(s, index, place(s, t->chunk), t->file, c->offset, c->length);
    expect_needed(s, index, place(s, t->source), gates, t->file - s->p->arrays, t->target, t->operand);
    if (t->kind == GS_TASK_BACK) {
        run_back(s, index, t, n);
        return;
    }
    for (int k = GS_STATE; k <= GS_STATE_CELL; k++)
        pass_chunk(index, place(s, at[k]), n, state_before(s, t->target, t->operand),
                   chunk_word(s, st->direction, t->target, t->operand), "state");
}

/* Of the interval's edges alone: its own rows come besides. */
static uint32_t expected_sum(const struct sim *s, uint32_t stage, const gs_sum *sum, uint32_t interval)
{
    const gs_stage *st = &s->p->stage[stage];
    uint32_t word = of_rows(st, sum) ? 0 : FINISHED;
    for (uint32_t o = 0; o < s->cfg->chunks->parts; o++)
        if (chunk_at(s, stage, interval, o)->edges)
            word += chunk_word(s, st->direction, interval, o);
    return word;
}

/* Statistics that the program reads were made by a stage that is complete. */
static void expect_statistics(struct sim *s, const gs_task *t)
{
    const gs_stage *st = &s->p->stage[t->stage];
    s->stage_rows = (t->stage == s->stage ? s->stage_rows : 0) + t->rows;
    s->stage = t->stage;
    for (uint32_t i = 0; i < st->instrs; i++)
        for (uint32_t k = 0; st->instr[i].b.kind == GS_FROM_PARAM && k < s->p->stages; k++)
            for (uint32_t n = 0; n < s->p->stage[k].instrs; n++)
                if (gs_op_classof(s->p->stage[k].instr[n].op) == GS_CLASS_STATISTIC &&
                    s->p->stage[k].instr[n].dst == st->instr[i].b.index)
                    assert_true((s->complete >> k & 1) != 0);
}

static void run_vertex(struct sim *s, uint32_t index, const gs_task *t)
{
    const gs_stage *st = &s->p->stage[t->stage];
    const gs_place *reg = &s->plan->reg[t->first_reg];
    const uint32_t interval = (uint32_t)(t->first_row / s->cfg->chunks->interval_rows);
    const uint32_t first = (uint32_t)(t->first_row % s->cfg->chunks->interval_rows);

    for (uint32_t r = 0; r < t->rows; r++)
        assert_true(runs_for(s, t->stage, interval, first + r));
    s->rows += t->rows;

    expect_statistics(s, t);
    for (uint32_t r = 0; r < st->regs; r++)
        if (st->reg[r].kind == GS_REG_LOAD)
            expect_rows(s, index, place(s, reg[r]), st->reg[r].array, t->first_row, t->rows);
    for (uint32_t i = 0; i < st->sums; i++) {
        if (is_back(st))
            continue;
        const uint32_t want = expected_sum(s, t->stage, &st->sum[i], interval);
        const uint32_t seen[2] = {st->sum[i].reg, st->sum[i].kind == GS_SUM_ATTEND ? st->sum[i].lse : st->sum[i].reg};
        const uint32_t array = rows_of(st, &st->sum[i]).array;
        for (uint64_t n = 0; n < 2; n++) {
            const uint32_t *got = place(s, reg[seen[n]]);
            for (uint64_t k = 0; k < (uint64_t)t->rows * st->reg[seen[n]].width; k++) {
                const bool own =
                    st->sum[i].self && is_stored(s, array, t->first_row + k / st->reg[seen[n]].width);
                if (got[k] != want + (own ? self_word(interval) : 0))
                    fail_msg("task %u: a sum of interval %u is wrong", index, interval);
            }
        }
    }
    /* Scratch is scribbled over first: nothing else may live there. */
    for (uint32_t r = 0; r < st->regs; r++)
        if (st->reg[r].kind == GS_REG_TEMP && st->reg[r].array == GS_NONE)
            memset(place(s, reg[r]), 0x5a, (uint64_t)t->rows * st->reg[r].width * 4);
    for (uint32_t r = 0; r < st->regs; r++)
        if (st->reg[r].kind == GS_REG_TEMP && st->reg[r].array != GS_NONE) {
            const uint64_t rb = row_bytes(s, st->reg[r].array);
            plan_sim__bytes_of(s, st->reg[r].array, t->first_row * rb, t->rows * rb, place(s, reg[r]));
            for (uint64_t row = 0; row < t->rows; row++)
                if (!is_stored(s, st->reg[r].array, t->first_row + row))
                    memset((uint8_t *)place(s, reg[r]) + row * rb, 0, rb);
        }
}

void plan_sim__run_compute(struct sim *s, uint32_t index)
{
    const gs_task *t = &s->plan->task[index];
    s->region[GS_REGION_ARENA] = s->arena[t->device];
    switch (t->kind) {
    case GS_TASK_ZERO: memset(place(s, t->place), 0, t->bytes); break;
    case GS_TASK_SELF: run_self(s, index, t); break;
    case GS_TASK_EDGES: (gs_task_sums_rows(t) ? run_edges : run_program)(s, index, t); break;
    case GS_TASK_BEGIN:
    case GS_TASK_FINISH: run_frame(s, t); break;
    case GS_TASK_STATISTICS:
        if (s->ranks == NULL || s->stage_rows > 0)
            assert_int_equal(t->stage, s->stage);
        if (s->ranks == NULL) /* else others have the rest */
            assert_int_equal(s->stage_rows, s->cfg->chunks->vertices);
        s->complete |= 1ull << t->stage;
        break;
    case GS_TASK_COPY: memmove(place(s, t->place), place(s, t->source), t->bytes); break;
    case GS_TASK_UNROLL:
    case GS_TASK_BACK: run_sequence(s, index, t); break;
    case GS_TASK_VERTEX: run_vertex(s, index, t); break;
    default: fail_msg("not a compute task");
    }
}

/* Of those that are made by a stage of `pass`, or of none (GS_NONE). */
static void load_residents(struct sim *s, uint32_t pass)
{
    for (uint32_t i = 0; i < s->plan->residents; i++) {
        const gs_resident *r = &s->plan->resident[i];
        if (r->memory >= GS_RANK_MEMORIES) /* which this rank sends */
            continue;
        const bool here = gs_is_device_memory(r->memory);
        const gs_region region = here ? GS_REGION_ARENA : GS_REGION_RESIDENT;
        uint8_t *const to = (here ? s->arena[r->memory - GS_DEVICE_MEMORIES] : s->region[region]) + r->offset;
        assert_true(r->offset + r->bytes <= s->plan->region_bytes[region]);
        const uint32_t by = here ? r->made_by : GS_NONE;
        const gs_pass *const p = pass == GS_NONE ? NULL : &s->p->pass[pass];
        if (!r->load || (p == NULL ? by != GS_NONE : by < p->first_stage || by >= p->first_stage + p->stages))
            continue;
        const uint64_t row = r->file < s->p->arrays ? row_bytes(s, r->file) : r->bytes;
        if (r->memory == GS_HOST)
            plan_sim__disk_bytes_of(s, r->file, r->first, r->bytes, to);
        else
            plan_sim__bytes_of(s, r->file, r->first, r->bytes, to);
        for (uint64_t at = 0; r->file < s->p->arrays && at < r->bytes; at += row)
            if (!is_stored(s, r->file, (r->first + at) / row))
                memset(to + at, 0, row);
    }
}

static uint32_t pass_of(const struct sim *s, uint32_t pass, uint32_t run)
{
    const uint32_t once = s->lasting != 0 && run > 0; /* a pass "setup" runs first and never again */
    return pass == GS_NONE ? once + (run - once) % (s->plan->passes - once) : pass;
}

static void open_sim(struct sim *s, const gs_plan *plan, const gs_schedule_config *config, const gs_part_rows *dealt,
                     uint32_t seed)
{
    *s = (struct sim){.plan = plan, .dealt = dealt, .cfg = config, .p = config->program, .rng = seed * 2654435761u + 1};
    for (int r = 1; r < GS_REGION_ARENA; r++)
        assert_non_null(s->region[r] = calloc(1, plan->region_bytes[r] + 64));
    for (uint32_t d = 0; d < GS_MAX(plan->devices, 1); d++)
        assert_non_null(s->arena[d] = calloc(1, plan->arena_bytes[d] + 64));
    assert_non_null(s->spill = calloc(1, plan->spill.total + 1));
    assert_int_equal(gs_lanes_open(&s->lanes, plan), GS_OK);
    find_stored(s);
    for (uint32_t k = 0; strcmp(s->p->pass[0].name, "setup") == 0 && k < s->p->pass[0].stages; k++)
        for (uint32_t r = 0; r < s->p->stage[k].regs; r++)
            s->lasting |= s->p->stage[k].reg[r].kind == GS_REG_TEMP ? 1ull << s->p->stage[k].reg[r].array % 64 : 0;
    load_residents(s, GS_NONE);
}

static void close_sim(struct sim *s)
{
    for (int r = 1; r < GS_REGION_ARENA; r++)
        free(s->region[r]);
    for (uint32_t d = 0; d < GS_PLAN_DEVICES; d++)
        free(s->arena[d]);
    free(s->spill);
    free(s->stored);
    gs_lanes_close(&s->lanes);
}

static void enter(struct sim *s)
{
    s->read_bytes = s->loaded_bytes = s->rows = 0;
    memset(s->copied, 0, sizeof(s->copied));
    s->stage = GS_NONE;
    s->complete = 0;
}

/* Registers of tasks lie one behind the other, none of them nobody's. */
static void check_registers(const gs_plan *plan, const gs_program *program)
{
    uint32_t regs = 0;
    for (uint32_t i = 0; i < plan->tasks; i++) {
        const uint32_t own = gs_task_registers(&plan->task[i], program);
        assert_true(own == 0 || plan->task[i].first_reg == regs);
        regs += own;
    }
    assert_int_equal(regs, plan->regs);
}

void plan_sim_run(const gs_plan *plan, const gs_schedule_config *config, uint32_t pass, uint32_t runs,
                  uint32_t seed)
{
    struct sim s;

    check_registers(plan, config->program);
    open_sim(&s, plan, config, NULL, seed);
    for (s.run = 0; s.run < runs; s.run++) {
        const uint32_t which = pass_of(&s, pass, s.run);
        enter(&s);
        plan_sim__run_once(&s, which, s.run + 1 < runs && pass_of(&s, pass, s.run + 1) == which);
        load_residents(&s, which);
        assert_int_equal(s.rows, plan->pass[which].rows);
        assert_int_equal(s.read_bytes, plan->pass[which].read_bytes); /* a plan says what it reads */
        assert_int_equal(s.loaded_bytes, plan->pass[which].loaded_bytes);
        assert_int_equal(s.copied[0], plan->pass[which].upload_bytes);
        assert_int_equal(s.copied[1], plan->pass[which].forward_bytes);
        assert_int_equal(s.copied[2], plan->pass[which].download_bytes);
    }
    close_sim(&s);
}

/* Each rank has a machine of its own, and what one does not send is not in another's memory. */
void plan_sim_run_parts(const gs_plan *plan, const gs_schedule_config *config, const gs_part_rows *dealt,
                        uint32_t runs, uint32_t seed)
{
    struct sim rank[GS_PLAN_DEVICES];
    gs_plan *part[GS_PLAN_DEVICES];

    for (uint32_t r = 0; r < plan->devices; r++) {
        gs_assert_ok(gs_plan_take_part(&part[r], plan, config->program, config->chunks->parts,
                                       config->chunks->interval_rows, dealt, r));
        open_sim(&rank[r], part[r], config, dealt, seed + r);
        rank[r].ranks = rank;
    }
    for (uint32_t run = 0; run < runs; run++) {
        const uint32_t which = pass_of(&rank[0], GS_NONE, run);
        uint64_t rows = 0, sent = 0, received = 0;
        for (uint32_t r = 0; r < plan->devices; r++) {
            rank[r].run = run;
            enter(&rank[r]);
        }
        plan_sim__run_parts(rank, which);
        for (uint32_t r = 0; r < plan->devices; r++) {
            load_residents(&rank[r], which);
            assert_int_equal(rank[r].read_bytes, part[r]->pass[which].read_bytes);
            rows += rank[r].rows;
            sent += part[r]->pass[which].sent_bytes;
            received += part[r]->pass[which].received_bytes;
        }
        assert_int_equal(rows, plan->pass[which].rows);
        assert_int_equal(sent, received);
    }
    for (uint32_t r = 0; r < plan->devices; r++) {
        close_sim(&rank[r]);
        gs_plan_free(part[r]);
    }
}
