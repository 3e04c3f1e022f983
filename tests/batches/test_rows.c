/* Rows that batches pick are those of the store, whatever stays between batches, and less is read then; of however many
 * batches they are read at once; and whether they are read ahead or not, which reads the same bytes. */
#include "support/support.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnnstream.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/size.h"
#include "io/io_internal.h"
#include "batch/batch_rows.h"

/* The batch EMPTY of a group has no rows: a subgraph without training vertices, which is passed over. */
enum { VERTICES = 20000, BATCHES = 5, EMPTY = 2, MOST = 900, GROUPS = 3 };

static uint32_t rng;

static uint32_t draw(uint32_t n)
{
    rng = rng * 1664525u + 1013904223u;
    return (rng >> 8) % n;
}

static void make_group(gs_batch *b, uint32_t *list)
{
    static uint8_t seen[VERTICES];
    for (uint32_t k = 0; k < BATCHES; k++) {
        uint32_t *const vertex = list + k * MOST;
        memset(seen, 0, sizeof(seen));
        b[k] = (gs_batch){.vertex = vertex};
        for (uint32_t i = 0; k != EMPTY && i < MOST - k; i++) { /* the last rows of the store among them, many often */
            const uint32_t v = i == 0 ? VERTICES - 1 : draw(2) ? draw(VERTICES) : draw(1000) * 7;
            if (seen[v]++ == 0)
                vertex[b[k].vertices++] = v;
        }
    }
}

/* Batches become as many as are read, each with the rows of `side` of them. */
static uint32_t unite(gs_batch *b, uint32_t *rows, uint32_t side)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < BATCHES; k++) {
        memcpy(rows, b[k].vertex, b[k].vertices * sizeof(*rows));
        if (k % side == 0)
            b[n++] = (gs_batch){.vertex = rows, .vertices = b[k].vertices};
        else
            b[n - 1].vertices += b[k].vertices;
        rows = (uint32_t *)(uintptr_t)b[n - 1].vertex + b[n - 1].vertices;
    }
    return n;
}

/* Items that the same groups must read: those that the plan of what stays, which test_residency.c shows to be the
 * least, has no slot for. */
static uint64_t least_items(const gs_row_cache_shape *shape)
{
    uint32_t *const list = malloc(2 * BATCHES * MOST * sizeof(*list)), items = VERTICES / shape->rows_per_item + 1;
    uint8_t *const read = malloc(items);
    gs_residency *plan;
    gs_batch b[BATCHES];
    uint64_t count = 0;

    gs_assert_ok(gs_residency_open(&plan, VERTICES, shape->rows_per_item, shape->slots, BATCHES, shape->side * MOST));
    rng = 3;
    for (uint32_t g = 0; g < GROUPS; g++) {
        make_group(b, list);
        const uint32_t reads = unite(b, list + BATCHES * MOST, shape->side);
        gs_residency_begin(plan, b, reads);
        for (uint32_t k = 0; k < reads; k++) {
            gs_residency_step step;
            gs_residency_next(plan, &step);
            memset(read, 0, items);
            for (uint32_t e = 0; e < step.rows; e++) {
                const uint32_t item = b[k].vertex[step.place[e]] / shape->rows_per_item;
                count += step.from[e] == GS_RESIDENCY_NONE && !read[item];
                read[item] |= step.from[e] == GS_RESIDENCY_NONE;
            }
        }
    }
    gs_residency_close(plan);
    free(read);
    free(list);
    return count;
}

static void expect_rows(gs_batch_rows *r, const gs_batch *b, const uint8_t *features, uint8_t *got)
{
    const uint64_t row = r->row_bytes;
    gs_assert_ok(gs_batch_rows_pick(r, GS_ARRAY_FEATURES, b->vertex, b->vertices, got));
    for (uint32_t i = 0; i < b->vertices; i++)
        assert_memory_equal(got + i * row, features + b->vertex[i] * row, row);
}

/* Bytes read for the same groups, with a cache of so many bytes; `ring`: as in gs_batch_rows_open(); `gap` as in
 * gs_batch_rows; rows of `side` batches at once. */
static uint64_t read_groups_with(const gs_store *s, const uint8_t *features, uint64_t cache_bytes, uint64_t ring,
                                 uint64_t gap, uint32_t side)
{
    const uint64_t row = gs_store_array(s, GS_ARRAY_FEATURES)->row_bytes;
    const gs_row_cache_shape shape = gs_row_cache_shape_of(s, cache_bytes, BATCHES, MOST, side);
    uint32_t *list = malloc(BATCHES * MOST * sizeof(*list));
    uint8_t *got = malloc(MOST * row);
    gs_batch b[BATCHES];
    gs_batch_rows r;

    assert_true(gs_row_cache_bytes(s, &shape, MOST) <= cache_bytes);
    assert_int_equal(shape.slots > 0, cache_bytes > 0);
    assert_int_equal(shape.side, cache_bytes > 0 ? side : 0);
    rng = 3;
    gs_assert_ok(gs_batch_rows_open(&r, s, 0, NULL, MOST, &shape, ring));
    r.gap = gap;
    gs_alloc_freeze(true);
    for (uint32_t g = 0; g < GROUPS; g++) {
        make_group(b, list);
        gs_batch_rows_begin(&r, b, BATCHES);
        for (uint32_t k = 0; k < BATCHES; k++) {
            if (k == EMPTY) {
                gs_batch_rows_pass(&r);
                continue;
            }
            expect_rows(&r, &b[k], features, got);
        }
    }
    gs_alloc_freeze(false);
    assert_int_equal(gs_alloc_frozen_count(), 0);
    const uint64_t bytes = r.read_bytes;
    gs_batch_rows_close(&r);
    free(got);
    free(list);
    return bytes;
}

static uint64_t read_groups(const gs_store *s, const uint8_t *features, uint64_t cache_bytes, uint64_t ring)
{
    return read_groups_with(s, features, cache_bytes, ring, 0, 1);
}

/* Of several batches at once: some numbers of them, so that a group's last read is of fewer or not; without a cache to
 * speak of and with one; ahead or not. What is read is what the plan of what stays must read of the rows of so many. */
static void check_sides(const gs_store *s, const uint8_t *features)
{
    const uint64_t size = gs_store_array(s, GS_ARRAY_FEATURES)->bytes;

    for (uint32_t side = 2; side <= BATCHES; side += side == 2 ? 1 : 2) {
        const gs_row_cache_shape all = gs_row_cache_shape_of(s, 64 * GS_MIB, BATCHES, MOST, side);
        gs_row_cache_shape none = all;
        none.slots = 64;
        const uint64_t held = gs_row_cache_bytes(s, &none, MOST);
        const gs_row_cache_shape less = gs_row_cache_shape_of(s, held - 1, BATCHES, MOST, side);
        assert_int_equal(less.side, side - 1); /* they have no room, and one fewer has */
        for (uint32_t k = 0; k < 2; k++) {
            const gs_row_cache_shape shape = gs_row_cache_shape_of(s, held + k * size / 5, BATCHES, MOST, side);
            const uint64_t ring = k == side % 2 ? GS_BATCH_RING : 0,
                           got = read_groups_with(s, features, held + k * size / 5, ring, 1, side);
            if (shape.item_bytes == GS_BLOCK_BYTES)
                assert_int_equal(got, least_items(&shape) * GS_BLOCK_BYTES);
        }
    }
}

static void check_width(const char *folder, uint32_t features)
{
    gs_generate_options g;
    gs_partition_options p;
    gs_store *s;
    char *bytes;
    uint64_t size;
    const char *const graph = gs_test_path(folder, "graph%u", features),
               *const store = gs_test_path(folder, "store%u", features);

    gs_generate_options_init(&g);
    g.vertices = VERTICES;
    g.edges = 4 * VERTICES;
    g.features = features;
    gs_partition_options_init(&p);
    p.parts = 4;
    p.method = "natural";
    gs_assert_ok(gs_generate("rmat", graph, &g));
    gs_assert_ok(gs_partition(graph, store, &p, NULL));
    gs_assert_ok(gs_store_open(&s, store));
    gs_assert_ok(gs_file_read_all(&bytes, &size, gs_test_path(store, "features.bin"), GS_GIB));
    gs_row_cache_shape least = {.slots = 64, .rows_per_item = 4096 / (4 * features), .group = BATCHES,
                                      .item_bytes = 4096 / (4 * features) * 4 * features};
    const uint64_t little = gs_row_cache_bytes(s, &least, MOST) + size / 5, much = size + 4 * GS_MIB;
    const uint64_t none = read_groups(s, (const uint8_t *)bytes, 0, 0),
                   some = read_groups(s, (const uint8_t *)bytes, little, 0),
                   all = read_groups(s, (const uint8_t *)bytes, much, 0);
    for (uint64_t ring = GS_BATCH_RING; ring <= 2 * GS_BATCH_RING; ring += GS_BATCH_RING) { /* not a byte more */
        assert_int_equal(read_groups(s, (const uint8_t *)bytes, 0, ring), none);
        assert_int_equal(read_groups(s, (const uint8_t *)bytes, little, ring), some);
        assert_int_equal(read_groups(s, (const uint8_t *)bytes, much, ring), all);
    }
    assert_true(some < none);
    assert_true(all < some && all < 2 * size); /* each row once, and blocks that two items share or that lie between */
    least = gs_row_cache_shape_of(s, gs_row_cache_bytes(s, &least, MOST) + size / 5, BATCHES, MOST, 1);
    if (least.item_bytes == GS_BLOCK_BYTES) { /* what is read along is little */
        const uint64_t bound = least_items(&least) * GS_BLOCK_BYTES;
        assert_in_range(some, bound + 1, bound + bound / 10);
        /* Where requests cost nothing, nothing is; where they cost much, more. */
        assert_int_equal(read_groups_with(s, (const uint8_t *)bytes, little, 0, 1, 1), bound);
        assert_true(read_groups_with(s, (const uint8_t *)bytes, little, 0, 4 * GS_BLOCK_BYTES, 1) > some);
    }
    check_sides(s, (const uint8_t *)bytes);
    gs_free(bytes);
    gs_store_close(s);
}

/* Rows of 100 bytes, which do not fill a block and straddle two, and of 512. */
static void test_rows__are_those_of_the_store_with_any_cache(void **state)
{
    (void)state;
    char *folder = gs_test_temp_dir();
    check_width(folder, 25);
    check_width(folder, 128);
    gs_test_temp_remove(folder);
}

/* ---- reads that go ahead ------------------------------------------------- */

/* A store of 1999 rows of 4096 bytes, with its features, and three batches of three rows each, none of them twice. */
enum { ROWS = 1999, ROW = 4096, OWN = 3 };

typedef struct small {
    char *folder, *features;
    const char *file;
    gs_store *store;
    uint32_t vertex[3][OWN];
    gs_batch batch[3];
} small;

static void make_small(small *t)
{
    gs_generate_options g;
    gs_partition_options p;
    uint64_t size;

    t->folder = gs_test_temp_dir();
    const char *const graph = gs_test_path(t->folder, "graph"), *const store = gs_test_path(t->folder, "store");
    t->file = gs_test_path(store, "features.bin");
    gs_generate_options_init(&g);
    g.vertices = ROWS;
    g.edges = 3000;
    g.features = ROW / 4;
    gs_partition_options_init(&p);
    p.parts = 2;
    p.method = "natural";
    gs_assert_ok(gs_generate("rmat", graph, &g));
    gs_assert_ok(gs_partition(graph, store, &p, NULL));
    gs_assert_ok(gs_store_open(&t->store, store));
    gs_assert_ok(gs_file_read_all(&t->features, &size, t->file, GS_GIB));
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < OWN; i++)
            t->vertex[k][i] = 1000 * k + 100 * i - (k == 2 ? 202 : 0);
        t->batch[k] = (gs_batch){.vertex = t->vertex[k], .vertices = OWN};
    }
}

static void drop_small(small *t)
{
    gs_free(t->features);
    gs_store_close(t->store);
    gs_test_temp_remove(t->folder);
}

/* Reads of one row of the file, by the thread that reads. */
typedef struct watched {
    uint64_t offset;
    int error;       /* what becomes of them */
    atomic_uint seen;
} watched;

static int watch(void *context, const gs_io_request *piece, uint64_t *length)
{
    watched *const w = context;
    (void)length;
    if (piece->offset > w->offset || piece->offset + piece->length <= w->offset)
        return 0;
    atomic_fetch_add(&w->seen, 1);
    return w->error;
}

/* Without a cache, or with one and rows of `side` batches read at once. */
static void open_small(gs_batch_rows *r, const small *t, uint32_t side, uint64_t ring)
{
    gs_row_cache_shape shape = {0};
    if (side > 0)
        shape = (gs_row_cache_shape){.slots = 64, .rows_per_item = 1, .group = 3, .item_bytes = ROW, .side = side};
    gs_assert_ok(gs_batch_rows_open(r, t->store, 0, NULL, OWN, &shape, ring));
}

/* Rows of the second batch are read before it is picked, and those of the third not before the second is. */
static void test_rows__are_read_ahead(void **state)
{
    uint8_t got[OWN * ROW];
    gs_batch_rows r;
    small t;

    (void)state;
    make_small(&t);
    for (int cache = 0; cache < 2; cache++) {
        for (int ahead = 0; ahead < 2; ahead++) {
            watched w = {.offset = (uint64_t)t.vertex[1][1] * ROW};
            open_small(&r, &t, (uint32_t)cache, ahead ? GS_BATCH_RING : 0);
            gs_io_set_fault(r.ring.io, watch, &w);
            gs_batch_rows_begin(&r, t.batch, 3);
            expect_rows(&r, &t.batch[0], (const uint8_t *)t.features, got);
            for (int k = 0; k < (ahead ? 10000 : 20) && atomic_load(&w.seen) == 0; k++)
                gs_sleep(0.001);
            assert_int_equal(atomic_load(&w.seen), ahead);
            expect_rows(&r, &t.batch[1], (const uint8_t *)t.features, got);
            expect_rows(&r, &t.batch[2], (const uint8_t *)t.features, got);
            assert_int_equal(atomic_load(&w.seen), 1);
            gs_batch_rows_close(&r);
        }
    }
    drop_small(&t);
}

/* A read that fails ahead is the failure of the batch that it is for, or of the first of those that are read at once;
 * what comes after begins anew. */
static void test_rows__that_fail_ahead_fail_their_batch(void **state)
{
    uint8_t got[OWN * ROW];
    gs_batch_rows r;
    small t;

    (void)state;
    make_small(&t);
    for (uint32_t side = 0; side < 3; side++) {
        watched w = {.offset = (uint64_t)t.vertex[2][1] * ROW, .error = EIO};
        open_small(&r, &t, side, GS_BATCH_RING);
        gs_io_set_fault(r.ring.io, watch, &w);
        gs_batch_rows_begin(&r, t.batch, 3);
        expect_rows(&r, &t.batch[0], (const uint8_t *)t.features, got);
        expect_rows(&r, &t.batch[1], (const uint8_t *)t.features, got);
        gs_assert_fails(gs_batch_rows_pick(&r, GS_ARRAY_FEATURES, t.vertex[2], OWN, got), GS_EIO,
                        "rows of features could not be read");
        w.error = 0;
        gs_batch_rows_begin(&r, t.batch, 3);
        for (uint32_t k = 0; k < 3; k++)
            expect_rows(&r, &t.batch[k], (const uint8_t *)t.features, got);
        gs_batch_rows_close(&r);
    }
    drop_small(&t);
}

/* A group that is given up in the middle, as a run that is stopped does: what was planned ahead is no row of the next
 * one. Rows that are of no batch of the group are read in between where one is passed over. */
static void test_rows__of_another_group_are_read_anew(void **state)
{
    uint8_t got[OWN * ROW];
    gs_batch_rows r;
    gs_batch with_empty[3];
    small t;

    (void)state;
    make_small(&t);
    for (uint32_t side = 0; side < 4; side++) {
        open_small(&r, &t, side, GS_BATCH_RING);
        gs_batch_rows_begin(&r, t.batch, 3);
        expect_rows(&r, &t.batch[0], (const uint8_t *)t.features, got);
        gs_batch_rows_begin(&r, t.batch + 1, 2); /* the first of which is in the ring, or held */
        expect_rows(&r, &t.batch[1], (const uint8_t *)t.features, got);
        expect_rows(&r, &t.batch[2], (const uint8_t *)t.features, got);
        gs_batch_rows_close(&r);
        open_small(&r, &t, side, GS_BATCH_RING); /* nothing has stayed */
        memcpy(with_empty, t.batch, sizeof(with_empty));
        with_empty[1] = (gs_batch){0};
        gs_batch_rows_begin(&r, with_empty, 3);
        expect_rows(&r, &with_empty[0], (const uint8_t *)t.features, got);
        gs_batch_rows_pass(&r);
        gs_batch_rows_apart(&r, true);
        expect_rows(&r, &t.batch[1], (const uint8_t *)t.features, got);
        expect_rows(&r, &t.batch[2], (const uint8_t *)t.features, got);
        gs_batch_rows_apart(&r, false);
        expect_rows(&r, &with_empty[2], (const uint8_t *)t.features, got);
        with_empty[0] = (gs_batch){0}; /* all of one read, or the first of it */
        gs_batch_rows_begin(&r, with_empty, 3);
        gs_batch_rows_pass(&r);
        gs_batch_rows_pass(&r);
        expect_rows(&r, &with_empty[2], (const uint8_t *)t.features, got);
        gs_batch_rows_close(&r);
    }
    drop_small(&t);
}

static atomic_int under_way;

static void count_under_way(const gs_io_request *request, bool ended)
{
    (void)request;
    atomic_fetch_add(&under_way, ended ? -1 : 1);
}

/* Closing ends what goes ahead. */
static void test_rows__leave_no_read_under_way(void **state)
{
    uint8_t got[OWN * ROW];
    gs_batch_rows r;
    small t;

    (void)state;
    make_small(&t);
    gs_io__observer = count_under_way;
    for (int k = 0; k < 20; k++) {
        open_small(&r, &t, (uint32_t)k % 3, GS_BATCH_RING);
        gs_batch_rows_begin(&r, t.batch, 3);
        expect_rows(&r, &t.batch[0], (const uint8_t *)t.features, got);
        gs_batch_rows_close(&r);
        assert_int_equal(atomic_load(&under_way), 0);
    }
    gs_io__observer = NULL;
    drop_small(&t);
}

/* ---- bytes that change --------------------------------------------------- */

static void turn_over(const char *path, long at)
{
    FILE *const f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    const int was = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fputc(was ^ 16, f), was ^ 16);
    assert_int_equal(fclose(f), 0);
}

/* A byte that changes while a run goes on is seen by who reads its row, in the last, short block, too; one that changed
 * before, when the run begins. */
static void test_rows__a_flipped_byte_is_seen(void **state)
{
    char *folder = gs_test_temp_dir();
    const char *const graph = gs_test_path(folder, "graph"), *const store = gs_test_path(folder, "store"),
               *const file = gs_test_path(store, "features.bin");
    const gs_row_cache_shape none = {0};
    const uint32_t row[] = {3, 1000, 1998};
    float got[3 * 25];
    gs_generate_options g;
    gs_partition_options p;
    gs_batch_rows r;
    gs_store *s;

    (void)state;
    gs_generate_options_init(&g);
    g.vertices = 1999;
    g.edges = 3000;
    g.features = 25;
    gs_partition_options_init(&p);
    p.parts = 2;
    p.method = "natural";
    gs_assert_ok(gs_generate("rmat", graph, &g));
    gs_assert_ok(gs_partition(graph, store, &p, NULL));
    gs_assert_ok(gs_store_open(&s, store));
    gs_assert_ok(gs_batch_rows_open(&r, s, 0, NULL, 3, &none, 0));
    gs_assert_ok(gs_batch_rows_pick(&r, GS_ARRAY_FEATURES, row, 3, got));
    for (uint32_t k = 0; k < 3; k++) {
        turn_over(file, (long)row[k] * 100 + 99);
        gs_assert_fails(gs_batch_rows_pick(&r, GS_ARRAY_FEATURES, row, 3, got), GS_EFORMAT, "features.bin");
        turn_over(file, (long)row[k] * 100 + 99);
        gs_assert_ok(gs_batch_rows_pick(&r, GS_ARRAY_FEATURES, row, 3, got));
    }
    gs_batch_rows_close(&r);
    turn_over(file, 5);
    gs_assert_fails(gs_batch_rows_open(&r, s, 0, NULL, 3, &none, 0), GS_EFORMAT, "features.bin");
    gs_batch_rows_close(&r);
    gs_store_close(s);
    gs_test_temp_remove(folder);
}

/* Also where the block that changed is one of the next batch, which is read ahead. */
static void test_rows__a_flipped_byte_is_seen_ahead(void **state)
{
    uint8_t got[OWN * ROW];
    gs_batch_rows r;
    small t;

    (void)state;
    make_small(&t);
    for (int cache = 0; cache < 2; cache++) {
        open_small(&r, &t, (uint32_t)cache, GS_BATCH_RING);
        turn_over(t.file, (long)t.vertex[1][2] * ROW + 77);
        gs_batch_rows_begin(&r, t.batch, 3);
        expect_rows(&r, &t.batch[0], (const uint8_t *)t.features, got);
        gs_assert_fails(gs_batch_rows_pick(&r, GS_ARRAY_FEATURES, t.vertex[1], OWN, got), GS_EFORMAT, "features.bin");
        turn_over(t.file, (long)t.vertex[1][2] * ROW + 77);
        gs_batch_rows_close(&r);
    }
    drop_small(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows__are_those_of_the_store_with_any_cache),
        cmocka_unit_test(test_rows__are_read_ahead),
        cmocka_unit_test(test_rows__that_fail_ahead_fail_their_batch),
        cmocka_unit_test(test_rows__of_another_group_are_read_anew),
        cmocka_unit_test(test_rows__leave_no_read_under_way),
        cmocka_unit_test(test_rows__a_flipped_byte_is_seen),
        cmocka_unit_test(test_rows__a_flipped_byte_is_seen_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
