/* Places in the staging ring against their definition, a block at a time: who used each block last, and the first
 * place from the head on in which no block is live. */
#include <stdlib.h>

#include "base/size.h"
#include "schedule/ring_sim.h"
#include "support/support.h"

enum { MOST_BLOCKS = 3000, WAITS = MOST_BLOCKS, NEVER = 0 };

static uint32_t rng;
static uint32_t below(uint32_t n)
{
    rng = rng * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(rng >> 4) * n >> 28);
}

/* A piece that was taken; `release`: GS_NONE while it is live. */
struct taken {
    uint32_t first, blocks, release;
};

struct model {
    struct taken *taken;
    uint32_t count, blocks, head;
    uint32_t user[MOST_BLOCKS]; /* NEVER, or 1 + the last taken that has it */
};

static bool is_live(const struct model *m, uint32_t block)
{
    return m->user[block] != NEVER && m->taken[m->user[block] - 1].release == GS_NONE;
}

/* GS_NONE: there is no place. */
static uint32_t place_of(const struct model *m, uint32_t blocks)
{
    uint32_t from = m->head;
    for (int round = 0; round < 2; round++, from = 0)
        for (uint32_t at = from; at + blocks <= m->blocks; at++) {
            uint32_t k = 0;
            while (k < blocks && !is_live(m, at + k))
                k++;
            if (k == blocks)
                return at;
            at += k; /* a block that is in the way is in the way of all that begin before it */
        }
    return GS_NONE;
}

/* The tasks after which [first, +blocks) is free, in the order of places: one for each stretch of one user. */
static uint32_t users_of(const struct model *m, uint32_t first, uint32_t blocks, uint32_t *task)
{
    uint32_t n = 0;
    for (uint32_t k = first; k < first + blocks; k++)
        if (m->user[k] != NEVER && (k == first || m->user[k] != m->user[k - 1]))
            task[n++] = m->taken[m->user[k] - 1].release;
    return n;
}

static void assert_waits(const uint32_t *waits, uint32_t count, const uint32_t *expected, uint32_t expected_count)
{
    assert_int_equal(count, expected_count);
    for (uint32_t k = 0; k < count; k++)
        assert_int_equal(waits[k], expected[k]);
}

/* False: no place. */
static bool take(gs_ring_sim *r, struct model *m, uint32_t blocks)
{
    static uint32_t waits[WAITS], expected[WAITS];
    const uint32_t at = place_of(m, blocks);
    const uint32_t users = at == GS_NONE ? 0 : users_of(m, at, blocks, expected);
    uint32_t count = 0;
    uint64_t offset = 0;
    const gs_status st = gs_ring_take(r, blocks * GS_BLOCK_BYTES, &offset, waits, WAITS, &count);

    assert_int_equal(st, at == GS_NONE ? GS_ENOFIT : GS_OK);
    if (at == GS_NONE)
        return false;
    assert_int_equal(offset, at * GS_BLOCK_BYTES);
    assert_waits(waits, count, expected, users);
    m->taken[m->count++] = (struct taken){at, blocks, GS_NONE};
    for (uint32_t k = 0; k < blocks; k++)
        m->user[at + k] = m->count;
    m->head = at + blocks;
    return true;
}

/* Stretches that are free, and such that are not. */
static void look(gs_ring_sim *r, const struct model *m)
{
    static uint32_t waits[WAITS], expected[WAITS];
    const uint32_t first = below(m->blocks), blocks = 1 + below(GS_MIN(m->blocks - first, 40));
    uint32_t count = 0;
    bool live = false;
    for (uint32_t k = 0; k < blocks; k++)
        live = live || is_live(m, first + k);
    const bool free = gs_ring_users(r, first * GS_BLOCK_BYTES, blocks * GS_BLOCK_BYTES, waits, WAITS, &count);
    assert_int_equal(free, !live);
    if (free)
        assert_waits(waits, count, expected, users_of(m, first, blocks, expected));
}

/* `most`: blocks of a piece. Some stay long, so that the head steps over them; some stand at the ring's ends. */
static void run(uint32_t blocks, uint32_t most, uint32_t steps, uint32_t *full)
{
    struct model m = {.taken = malloc(steps * sizeof(*m.taken)), .blocks = blocks};
    uint32_t oldest = 0;
    gs_ring_sim r;

    gs_ring_init(&r, blocks * GS_BLOCK_BYTES);
    for (uint32_t task = 1; task <= steps; task++) {
        const uint32_t size = 1 + below(most), lasting = below(8) == 0 ? size : 0;
        const uint64_t head = gs_ring_lasting_begin(&r, lasting * GS_BLOCK_BYTES);
        const uint32_t before = m.head;
        m.head = (uint32_t)(r.head / GS_BLOCK_BYTES);
        const bool taken = take(&r, &m, size);
        gs_ring_lasting_end(&r, lasting > 0 ? head : UINT64_MAX);
        m.head = lasting > 0 && head != UINT64_MAX ? before : m.head;
        *full += !taken;
        for (uint32_t k = oldest; k < m.count; k++) {
            struct taken *const t = &m.taken[k];
            if (t->release == GS_NONE && (!taken || below(k + 10 < m.count ? 3 : 12) == 0)) {
                t->release = task;
                gs_ring_release(&r, t->first * GS_BLOCK_BYTES, task);
            }
            oldest += k == oldest && t->release != GS_NONE;
        }
        look(&r, &m);
    }
    gs_ring_drop(&r);
    free(m.taken);
}

static void test_ring__is_the_next_free_place_and_waits_for_its_users(void **state)
{
    uint32_t full = 0;
    (void)state;
    rng = 1;
    for (uint32_t k = 0; k < 30; k++)
        run(1 + below(200), 1 + below(30), 400, &full);
    assert_true(full > 100);
    run(MOST_BLOCKS, 3, 12000, &full); /* more pieces than a few lots hold */
    run(MOST_BLOCKS, 100, 4000, &full);
}

/* Each goes round among so many others, and every other one stands at an end: to move them all for each would take
 * minutes. */
static void test_ring__takes_no_time_for_pieces_that_are_there(void **state)
{
    enum { PIECES = 400000, TAKEN = 4 * PIECES };
    uint32_t waits[4];
    gs_ring_sim r;
    (void)state;
    gs_ring_init(&r, PIECES * GS_BLOCK_BYTES);
    for (uint32_t task = 0; task < TAKEN; task++) {
        const uint64_t bytes = task % 2 ? GS_BLOCK_BYTES : 0;
        const uint64_t head = gs_ring_lasting_begin(&r, bytes);
        uint32_t count = 0;
        uint64_t at;
        gs_assert_ok(gs_ring_take(&r, GS_BLOCK_BYTES, &at, waits, GS_ARRAY_LEN(waits), &count));
        assert_true(count <= 1);
        gs_ring_lasting_end(&r, bytes > 0 ? head : UINT64_MAX);
        gs_ring_release(&r, at, task);
    }
    gs_ring_drop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring__is_the_next_free_place_and_waits_for_its_users),
        cmocka_unit_test(test_ring__takes_no_time_for_pieces_that_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
