#include "tiny_run.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "store/chunk_view.h"
#include "support/support.h"

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void put16(const void *where, uint64_t i, uint32_t v) { ((uint16_t *)(uintptr_t)where)[i] = (uint16_t)v; }

/* Bytes of one chunk from its edges, as (target << 32 | operand), both local. */
static uint64_t fill_chunk(uint8_t **out, uint64_t *key, uint64_t edges, gs_chunk *c, uint64_t rows)
{
    uint32_t targets = 0, operands = 0;
    bool *seen = calloc(rows, 1);
    qsort(key, edges, sizeof(*key), compare_u64);
    c->largest = 0;
    for (uint64_t k = 0, of_target = 0; k < edges; k++) {
        const bool next = k == 0 || key[k] >> 32 != key[k - 1] >> 32;
        of_target = next ? 1 : of_target + 1;
        c->largest = GS_MAX(c->largest, of_target);
        targets += next;
        operands += !seen[(uint32_t)key[k]];
        seen[(uint32_t)key[k]] = true;
    }
    const gs_chunk_expect counts = {(uint32_t)rows, (uint32_t)rows, 2, edges, targets, operands, 0};
    gs_chunk_view v;
    c->length = gs_chunk_bytes(edges, targets, operands, 2, (gs_edge_data){0});
    *out = calloc(1, c->length + 1);
    if (edges == 0) { /* an empty chunk has no bytes, not even a header */
        free(seen);
        return 0;
    }
    gs_chunk_layout(&v, *out, &counts, (gs_edge_data){0});
    uint32_t t = 0, o = 0, *start = (uint32_t *)(uintptr_t)v.start;
    for (uint64_t k = 0; k < edges; k++) {
        if (k == 0 || key[k] >> 32 != key[k - 1] >> 32) {
            put16(v.target, t, (uint32_t)(key[k] >> 32));
            start[t++] = (uint32_t)k;
        }
        put16(v.index, k, (uint32_t)key[k]);
    }
    start[t] = (uint32_t)edges;
    for (uint32_t r = 0; r < rows; r++)
        if (seen[r])
            put16(v.operand, o++, r);
    free(seen);
    c->edges = edges;
    c->targets = targets;
    c->operands = operands;
    c->checksum = gs_hash64(*out, c->length);
    return c->length;
}

static void write_edges(struct tiny *t, int d)
{
    const uint32_t rows = t->chunks.interval_rows;
    FILE *f = fopen(t->path[TINY_ARRAYS + d], "wb");
    uint64_t at = 0, *key = malloc(TINY_EDGES * sizeof(*key));
    for (uint32_t i = 0; i < TINY_PARTS * TINY_PARTS; i++) {
        uint64_t n = 0;
        for (uint32_t e = 0; e < TINY_EDGES; e++) {
            const uint32_t target = d == 0 ? t->dst[e] : t->src[e], operand = d == 0 ? t->src[e] : t->dst[e];
            if (target / rows == i / TINY_PARTS && operand / rows == i % TINY_PARTS)
                key[n++] = (uint64_t)(target % rows) << 32 | operand % rows;
        }
        uint8_t *bytes;
        gs_chunk *c = &t->chunk[d][i];
        c->offset = at;
        at += fill_chunk(&bytes, key, n, c, rows);
        assert_int_equal(fwrite(bytes, 1, c->length, f), c->length);
        free(bytes);
        t->exec_chunk[d][i] = (gs_exec_chunk){c->checksum, c->edges, c->targets, c->operands, c->length, c->largest};
    }
    free(key);
    fclose(f);
}

static void write_features(struct tiny *t)
{
    const uint64_t bytes = sizeof(t->features), padded = gs_align_up(bytes, GS_BLOCK_BYTES);
    uint8_t *all = calloc(1, padded);
    memcpy(all, t->features, bytes);
    gs_test_write_file(t->path[TINY_FEATURES], all, padded);
    for (uint64_t at = 0; at < bytes; at += 65536)
        t->sums[at / 65536] = gs_hash64(all + at, GS_MIN(65536, bytes - at));
    free(all);
}

static void relu_sum(float *out, const float *in, const struct tiny *t, const uint32_t *from, const uint32_t *to,
                     bool self)
{
    for (uint32_t i = 0; i < TINY_ROWS * TINY_WIDTH; i++)
        out[i] = self ? in[i] : 0;
    for (uint32_t e = 0; e < TINY_EDGES; e++)
        for (uint32_t c = 0; c < TINY_WIDTH; c++)
            out[to[e] * TINY_WIDTH + c] += in[from[e] * TINY_WIDTH + c];
    for (uint32_t i = 0; i < TINY_ROWS * TINY_WIDTH; i++)
        out[i] = out[i] > 0 ? out[i] : 0;
    (void)t;
}

static void make_program(struct tiny *t)
{
    static const char *const name[] = {"features", "h", "out"};
    for (int a = 0; a < TINY_ARRAYS; a++) {
        t->array[a] = (gs_array){.dtype = GS_F32, .width = TINY_WIDTH, .store_id = a == 0 ? 0 : -1};
        strcpy(t->array[a].name, name[a]);
    }
    for (int s = 0; s < 2; s++) {
        t->reg[s][0] = (gs_reg){GS_REG_SUM, GS_F32, TINY_WIDTH, GS_NONE};
        t->reg[s][1] = (gs_reg){GS_REG_TEMP, GS_F32, TINY_WIDTH, s == 0 ? TINY_H : TINY_OUT};
        t->instr[s][0] = (gs_instr){.op = GS_OP_RELU, .dst = 1, .a = {GS_FROM_REG, 0, 0}};
        t->stage[s] = (gs_stage){.direction = (uint32_t)s, .regs = 2, .instrs = 1,
                                 .reg = t->reg[s], .instr = t->instr[s], .edge_reg = t->edge_reg[s]};
        gs_stage_add_row_sum(&t->stage[s],
                             &(gs_row_sum){.array = s == 0 ? TINY_FEATURES : TINY_H, .scale = GS_NONE}, TINY_WIDTH, 0,
                             s == 0);
    }
    t->pass[0] = (gs_pass){"train", 0, 2};
    t->p = (gs_program){.arrays = TINY_ARRAYS, .stages = 2, .passes = 1, .array = t->array,
                        .stage = t->stage, .pass = t->pass, .logits = GS_NONE};
}

void tiny_make(struct tiny *t)
{
    static const char *const name[] = {"features.bin", "h.bin", "out.bin", "dest.bin", "source.bin"};
    float *h = malloc(sizeof(t->want));
    uint32_t seed = 12345;
    memset(t, 0, sizeof(*t));
    t->dir = gs_test_temp_dir();
    for (int f = 0; f < TINY_ARRAYS + 2; f++)
        snprintf(t->path[f], sizeof(t->path[f]), "%s/%s", t->dir, name[f]);
    for (uint32_t e = 0; e < TINY_EDGES; e++) {
        seed = seed * 1664525u + 1013904223u;
        t->src[e] = (seed >> 8) % TINY_ROWS;
        seed = seed * 1664525u + 1013904223u;
        t->dst[e] = (seed >> 8) % (TINY_ROWS / 2); /* half of the rows have no in-edge */
    }
    for (uint32_t i = 0; i < TINY_ROWS * TINY_WIDTH; i++) {
        seed = seed * 1664525u + 1013904223u;
        t->features[i] = (float)(int)((seed >> 8) % 17) - 8; /* small integers: sums are exact */
    }
    relu_sum(h, t->features, t, t->src, t->dst, true);
    relu_sum(t->want, h, t, t->dst, t->src, false);
    free(h);
    t->chunks = (gs_chunk_table){.vertices = TINY_ROWS, .parts = TINY_PARTS, .interval_rows = TINY_ROWS / TINY_PARTS};
    t->chunks.chunk[0] = t->chunk[0];
    t->chunks.chunk[1] = t->chunk[1];
    write_features(t);
    write_edges(t, 0);
    write_edges(t, 1);
    make_program(t);
    for (int d = 0; d < TINY_DEVICES; d++) {
        gs_assert_ok(gs_device_open(&t->device[d], "cpu", 2));
        gs_assert_ok(gs_device_prepare(t->device[d], &t->p));
    }
}

void tiny_forge_index(struct tiny *t, uint32_t target, uint32_t operand)
{
    gs_chunk *c = &t->chunk[0][target * TINY_PARTS + operand];
    uint8_t *bytes = malloc(c->length);
    const gs_chunk_expect counts = {1000, 1000, 2, c->edges, c->targets, c->operands, c->largest};
    gs_chunk_view v;
    const int fd = open(t->path[TINY_ARRAYS], O_RDWR);
    assert_int_equal(pread(fd, bytes, c->length, (off_t)c->offset), c->length);
    gs_assert_ok(gs_chunk_view_make(&v, bytes, c->length, &counts, true));
    put16(v.index, 0, 60000);
    assert_int_equal(pwrite(fd, bytes, c->length, (off_t)c->offset), c->length);
    close(fd);
    t->exec_chunk[0][target * TINY_PARTS + operand].checksum = gs_hash64(bytes, c->length);
    free(bytes);
}

void tiny_drop(struct tiny *t)
{
    gs_plan_free(t->plan);
    for (int d = 0; d < TINY_DEVICES; d++)
        gs_device_close(t->device[d]);
    gs_test_temp_remove(t->dir);
}

gs_status tiny_open(gs_exec **out, struct tiny *t, uint64_t host, uint64_t device, gs_io_backend io)
{
    if (t->copying > 0)
        gs_topology_one_switch(&t->wires, t->copying);
    else
        t->wires = gs_topology_host;
    memset(t->wires.on_host, true, sizeof(t->wires.on_host));
    const gs_schedule_config sc = {.program = &t->p, .chunks = &t->chunks, .array_sum_bytes = 65536,
                                   .host_memory = host, .device_memory = device, .topology = &t->wires,
                                   .task_bytes = t->copying == 0 ? 0 : GS_EXEC_TRACE_TASK_BYTES};
    gs_plan_free(t->plan);
    t->plan = NULL;
    gs_assert_ok(gs_schedule(&t->plan, &sc));
    for (uint32_t f = 0; f < TINY_ARRAYS + 2; f++)
        t->file[f] = (gs_exec_file){.path = t->path[f], .create = f == TINY_H || f == TINY_OUT};
    t->file[TINY_FEATURES].sums = t->sums;
    t->file[TINY_FEATURES].sum_bytes = 65536;
    t->file[TINY_FEATURES].bytes = sizeof(t->features);
    t->exec_set[0] = t->exec_chunk[0];
    t->exec_set[1] = t->exec_chunk[1];
    const gs_exec_config c = {.program = &t->p, .plan = t->plan, .device = t->device, .topology = &t->wires,
                              .file = t->file, .parts = TINY_PARTS, .interval_rows = t->chunks.interval_rows,
                              .vertices = TINY_ROWS, .index_bytes = 2,
                              .sets = 2, .chunk = t->exec_set, .io = io,
                              .say_after = t->say_after, .end_after = t->end_after};
    return gs_exec_open(out, &c);
}
