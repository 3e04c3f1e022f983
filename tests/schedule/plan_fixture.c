#include "plan_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "support/support.h"

static gs_array array_of(const char *name, gs_dtype t, uint32_t width, int store_id)
{
    gs_array a = {.dtype = t, .width = width, .store_id = store_id};
    strncpy(a.name, name, sizeof(a.name) - 1);
    return a;
}

static gs_reg load(const struct fixture *f, uint32_t a)
{
    return (gs_reg){GS_REG_LOAD, f->array[a].dtype, f->array[a].width, a};
}
static gs_reg temp(uint32_t width, uint32_t array) { return (gs_reg){GS_REG_TEMP, GS_F32, width, array}; }
static gs_reg sum_reg(uint32_t width) { return (gs_reg){GS_REG_SUM, GS_F32, width, GS_NONE}; }

static void add_reg(struct fixture *f, uint32_t s, gs_reg r) { f->reg[s][f->stage[s].regs++] = r; }
static void add_instr(struct fixture *f, uint32_t s, uint32_t dst, uint32_t a)
{
    f->instr[s][f->stage[s].instrs++] = (gs_instr){.op = GS_OP_RELU, .dst = dst, .a = {GS_FROM_REG, a, 0}};
}

static void add_sum(struct fixture *f, uint32_t s, gs_row_sum rows, uint32_t reg, bool self)
{
    if (s < 4) {
        f->stage[s].edge_reg = f->row_reg[s];
        f->stage[s].edge_instr = f->product[s];
    }
    gs_stage_add_row_sum(&f->stage[s], &rows, f->array[rows.array].width, reg, self);
}

void fixture_program(struct fixture *f, uint32_t features, uint32_t hidden)
{
    f->array[FEATURES] = array_of("features", GS_F32, features, 0);
    f->array[DEGREE] = array_of("in_degree", GS_F32, 1, 3);
    f->array[SPLIT] = array_of("split", GS_U8, 1, 2);
    f->array[Y] = array_of("y", GS_F32, hidden, -1);
    f->array[H] = array_of("h", GS_F32, hidden + 3, -1);
    f->array[G] = array_of("g", GS_F32, 7, -1);
    for (uint32_t s = 0; s < 5; s++) {
        f->stage[s].reg = f->reg[s];
        f->stage[s].instr = f->instr[s];
    }
    /* 0: vertex only; two temps in a row */
    add_reg(f, 0, load(f, FEATURES));
    add_reg(f, 0, load(f, DEGREE));
    add_reg(f, 0, temp(hidden, GS_NONE));
    add_reg(f, 0, temp(hidden, GS_NONE));
    add_reg(f, 0, temp(hidden, Y));
    add_instr(f, 0, 2, 0);
    add_instr(f, 0, 3, 2);
    add_instr(f, 0, 4, 3);
    f->param[0] = (gs_param){.dims = 1, .rows = 1, .cols = hidden, .fixed = true, .statistic = GS_STATISTIC_MEAN,
                             .running = GS_NONE}; /* of all rows: stage 1 reads it */
    f->instr[0][f->stage[0].instrs++] = (gs_instr){.op = GS_OP_MEAN_ALL, .dst = 0, .a = {GS_FROM_REG, 3, 0}};
    /* 1: in-edges, own row too; two stores */
    add_sum(f, 1, (gs_row_sum){Y, GS_NONE, GS_TYPES_NONE, 0, 0}, 0, true);
    add_reg(f, 1, sum_reg(hidden));
    add_reg(f, 1, load(f, SPLIT));
    add_reg(f, 1, temp(hidden + 3, H));
    add_reg(f, 1, temp(7, G));
    add_instr(f, 1, 2, 0);
    add_instr(f, 1, 3, 2);
    f->instr[1][0].b = (gs_operand){.kind = GS_FROM_PARAM};
    /* 2: out-edges, two sums of two arrays, loads of a store array and a made one */
    f->stage[2].direction = GS_BY_SOURCE;
    add_sum(f, 2, (gs_row_sum){G, GS_NONE, GS_TYPES_NONE, 0, 0}, 0, false);
    add_sum(f, 2, (gs_row_sum){H, DEGREE, GS_TYPES_NONE, 0, 0}, 1, true);
    add_reg(f, 2, sum_reg(7));
    add_reg(f, 2, sum_reg(hidden + 3));
    add_reg(f, 2, load(f, H));
    add_reg(f, 2, load(f, FEATURES));
    add_reg(f, 2, temp(7, GS_NONE));
    add_instr(f, 2, 4, 0);
    /* 3 (second pass): straight from the store, the same array twice, once scaled */
    add_sum(f, 3, (gs_row_sum){FEATURES, GS_NONE, GS_TYPES_NONE, 0, 0}, 0, false);
    add_sum(f, 3, (gs_row_sum){FEATURES, DEGREE, GS_TYPES_NONE, 0, 0}, 1, true);
    add_reg(f, 3, sum_reg(features));
    add_reg(f, 3, sum_reg(features));
    add_reg(f, 3, load(f, DEGREE));
    add_reg(f, 3, temp(features, GS_NONE));
    add_instr(f, 3, 3, 0);
    /* 4: an edge program over rows of both ends, beside a plain sum */
    f->stage[4].sums = 2;
    f->stage[4].sum[0] = (gs_sum){.kind = GS_SUM_ATTEND, .reg = 0, .lse = 1, .value = 0, .score = 1};
    f->stage[4].sum[1] = (gs_sum){.kind = GS_SUM_MAX, .reg = 2, .value = 3};
    f->stage[4].edge_regs = 4;
    f->stage[4].edge_reg = f->edge_reg;
    f->edge_reg[0] = (gs_edge_reg){.kind = GS_EDGE_OPERAND, .width = features, .array = FEATURES};
    f->edge_reg[1] = (gs_edge_reg){.kind = GS_EDGE_TARGET, .width = 1, .array = DEGREE};
    f->edge_reg[2] = (gs_edge_reg){.kind = GS_EDGE_TARGET, .width = features, .array = FEATURES};
    f->edge_reg[3] = (gs_edge_reg){.kind = GS_EDGE_TEMP, .width = 5, .array = GS_NONE};
    add_sum(f, 4, (gs_row_sum){FEATURES, GS_NONE, GS_TYPES_NONE, 0, 0}, 3, false); /* the register that is there */
    add_reg(f, 4, sum_reg(features));
    add_reg(f, 4, sum_reg(1));
    add_reg(f, 4, sum_reg(5));
    add_reg(f, 4, sum_reg(features));
    add_reg(f, 4, temp(features, GS_NONE));
    add_instr(f, 4, 4, 0);
    f->pass[0] = (gs_pass){"train", 0, 3};
    f->pass[1] = (gs_pass){"eval", 3, 2};
    f->p = (gs_program){.arrays = ARRAYS, .stages = 5, .passes = 2, .array = f->array, .stage = f->stage,
                        .pass = f->pass, .param = f->param, .params = 1, .logits = GS_NONE};
}

/* Chunks of random sizes, a third of them empty. */
void fixture_chunks(struct fixture *f, uint64_t vertices, uint32_t parts, bool shared, uint32_t seed)
{
    const uint64_t n = (uint64_t)parts * parts;
    f->chunks = (gs_chunk_table){.vertices = vertices, .parts = parts, .shared = shared,
                                 .interval_rows = (uint32_t)gs_div_up(vertices, parts)};
    for (int d = 0; d < 2; d++) {
        uint64_t at = 0;
        f->chunk[d] = calloc(n, sizeof(*f->chunk[d]));
        for (uint64_t i = 0; i < n; i++) {
            seed = seed * 1664525u + 1013904223u;
            gs_chunk *c = &f->chunk[d][i];
            if ((seed >> 8) % 3 == 0)
                continue;
            c->edges = 1 + (seed >> 12) % 5000;
            c->targets = c->operands = 1;
            c->offset = at;
            c->length = gs_align_up(c->edges * 4, GS_BLOCK_BYTES);
            at += c->length;
        }
        f->set[d].chunk = f->chunks.chunk[d] = f->chunk[shared ? 0 : d];
    }
}

/* Rows that each chunk needs: a few granules, in clumps. One in `sparse` clumps is needed. */
void fixture_needs(struct fixture *f, uint32_t sparse, uint32_t seed)
{
    const uint64_t n = (uint64_t)f->chunks.parts * f->chunks.parts;
    f->granules = gs_granules_of(&f->chunks, GS_GRANULE_ROWS);
    for (int d = 0; d < 2; d++) {
        uint64_t *need = calloc(n * f->granules.words, sizeof(*need));
        for (uint64_t i = 0; i < n; i++) {
            const uint32_t rows = gs_interval_rows(&f->chunks, (uint32_t)(i % f->chunks.parts));
            const uint32_t granules = (rows + GS_GRANULE_ROWS - 1) / GS_GRANULE_ROWS;
            if (f->chunks.chunk[d][i].edges == 0)
                continue;
            for (uint32_t g = 0; g < granules; g++) {
                seed = seed * 1664525u + 1013904223u;
                const bool on = g == granules / 2 || (seed >> 8) % sparse == 0;
                for (uint32_t k = 0; on && k < 1 + (seed >> 20) % 9 && g + k < granules; k++)
                    need[i * f->granules.words + (g + k) / 64] |= 1ull << ((g + k) % 64);
            }
        }
        f->set[d] = (gs_edge_set){.chunk = f->chunks.chunk[d], .need = need};
    }
}

void fixture_take_rows(struct fixture *f, gs_schedule_config *c, uint32_t share, uint32_t seed)
{
    const uint64_t n = (uint64_t)f->chunks.parts * f->chunks.parts;
    const gs_granules one = gs_granules_of(&f->chunks, 1);
    for (int d = 0; d < 2; d++) {
        uint64_t *const rows = calloc(n * one.words, sizeof(*rows));
        for (uint64_t i = 0; i < n; i++)
            for (uint32_t r = 0; r < gs_interval_rows(&f->chunks, (uint32_t)(i % f->chunks.parts)); r++) {
                const uint32_t g = r / f->granules.rows;
                seed = seed * 1664525u + 1013904223u;
                if ((f->set[d].need[i * f->granules.words + g / 64] >> (g % 64) & 1) != 0 &&
                    (r % f->granules.rows == 0 || (seed >> 8) % share == 0))
                    rows[i * one.words + r / 64] |= 1ull << (r % 64);
            }
        f->set[d].rows = rows;
    }
    fixture_take_needs(c, f);
    c->needs.rows = one;
}

static bool in_runs(const gs_row_runs *r, uint32_t interval, uint32_t row)
{
    for (uint32_t k = r->first[interval]; k < r->first[interval + 1]; k++)
        if (row >= r->run[k].first && row - r->run[k].first < r->run[k].rows)
            return true;
    return false;
}

/* Of each interval's first run one row in `share`, from its first on. */
static gs_row_runs first_runs(const gs_row_runs *of, uint32_t parts, uint32_t share)
{
    gs_row_runs r = {.first = calloc(parts + 1, sizeof(*r.first)), .run = calloc(parts + 1, sizeof(*r.run))};
    for (uint32_t i = 0; i < parts; i++) {
        r.first[i + 1] = r.first[i] + (of->first[i + 1] > of->first[i]);
        r.run[r.first[i]] = of->run[of->first[i]];
        r.run[r.first[i]].rows = (r.run[r.first[i]].rows + share - 1) / share;
    }
    return r;
}

/* Every stage runs for the same rows: up to three runs an interval, none in some. What chunks need is within. */
void fixture_rows(struct fixture *f, uint32_t seed)
{
    const uint32_t parts = f->chunks.parts, words = f->granules.words;
    gs_row_runs r = {.first = calloc(parts + 1, sizeof(*r.first)), .run = calloc(3 * parts, sizeof(*r.run))};
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t at = 0, n = r.first[i];
        for (int k = 0; k < 3 && i % 5 != 3; k++) {
            seed = seed * 1664525u + 1013904223u;
            const uint32_t first = at + 16 * ((seed >> 8) % 30), rows = 16 + 16 * ((seed >> 16) % 100);
            if (first + rows > gs_interval_rows(&f->chunks, i))
                break;
            r.run[n++] = (gs_row_run){first, rows};
            at = first + rows + GS_ROW_GAP;
        }
        r.first[i + 1] = n;
    }
    for (int s = 0; s < 5; s++)
        f->rows[s] = r;
    /* Stage 1 stores only a part of an interval's first run; later stages read 0 for the others. */
    f->rows[1] = (gs_row_runs){.first = calloc(parts + 1, sizeof(*r.first)), .run = calloc(3 * parts, sizeof(*r.run))};
    for (uint32_t i = 0; i < parts; i++) {
        f->rows[1].first[i + 1] = f->rows[1].first[i] + (r.first[i + 1] > r.first[i]);
        gs_row_run *part = &f->rows[1].run[f->rows[1].first[i]];
        *part = r.run[r.first[i]];
        if (part->rows > 48) {
            part->first += 16;
            part->rows -= 32;
        }
    }
    f->held[Y] = first_runs(&r, parts, 1);
    f->held[H] = first_runs(&f->rows[1], parts, 2);
    for (int d = 0; d < 2; d++) {
        f->pruned[d] = malloc((uint64_t)parts * parts * sizeof(gs_chunk));
        memcpy(f->pruned[d], f->chunks.chunk[d], (uint64_t)parts * parts * sizeof(gs_chunk));
        for (uint32_t i = 0; i < parts * parts; i++) {
            uint64_t *need = (uint64_t *)(uintptr_t)f->set[d].need + (uint64_t)i * words, any = 0;
            for (uint32_t g = 0; g < words * 64; g++)
                if (!in_runs(&r, i % parts, g * GS_GRANULE_ROWS))
                    need[g / 64] &= ~(1ull << (g % 64));
            for (uint32_t w = 0; w < words; w++)
                any |= need[w];
            if (any == 0 || r.first[i / parts] == r.first[i / parts + 1])
                f->pruned[d][i].edges = f->pruned[d][i].length = 0;
        }
        f->set[d].chunk = f->pruned[d];
    }
}

void fixture_drop(struct fixture *f)
{
    free(f->pruned[0]);
    free(f->pruned[1]);
    free(f->rows[0].first);
    free(f->rows[0].run);
    free(f->rows[1].first);
    free(f->rows[1].run);
    for (int a = 0; a < ARRAYS; a++) {
        free(f->held[a].first);
        free(f->held[a].run);
    }
    for (int d = 0; d < 2; d++) {
        free((void *)(uintptr_t)f->set[d].need);
        free((void *)(uintptr_t)f->set[d].rows);
    }
    free(f->chunk[0]);
    free(f->chunk[1]);
}

gs_schedule_config fixture_config(const struct fixture *f, uint64_t host, uint64_t device)
{
    return (gs_schedule_config){.program = &f->p, .chunks = &f->chunks, .array_sum_bytes = 65536,
                                .host_memory = host, .device_memory = device, .topology = &gs_topology_host,
                                .host_fixed = 1 * GS_MIB, .device_fixed = 64 * GS_KIB};
}

void fixture_take_needs(gs_schedule_config *c, const struct fixture *f)
{
    c->needs.sets = 2;
    c->needs.set = f->set;
    c->needs.granules = f->granules;
}

void fixture_within(const gs_plan *p, const gs_schedule_config *c)
{
    uint64_t regions = 0;
    for (int r = 1; r < GS_REGION_COUNT; r++)
        regions += p->region_bytes[r];
    assert_true(p->host_bytes <= c->host_memory);
    assert_true(p->device_bytes <= c->device_memory);
    assert_true(p->host_bytes >= c->host_fixed + c->device_fixed + regions);
}
