/* When a checkpoint is due, and its text: what it says comes back, and no byte of it may be another. */
#include <math.h>
#include <string.h>

#include "support/support.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "train/checkpoint_folder.h"
#include "train/checkpoint_text.h"

static gs_checkpoint_pace pace_of(const char *text)
{
    gs_checkpoint_pace p;
    gs_assert_ok(gs_checkpoint_pace_parse(&p, text));
    return p;
}

static void pace__is_read(void **state)
{
    static const char *const wrong[] = {"", "0", "-1", "3.5", "10x", "m", "10mm", "nan", "1e99", " 3", "inf",
                                        "5000000000"};
    gs_checkpoint_pace p;

    (void)state;
    assert_int_equal(pace_of("12").epochs, 12);
    assert_true(pace_of("90s").seconds == 90 && pace_of("10m").seconds == 600 && pace_of("1.5h").seconds == 5400);
    assert_true(pace_of(NULL).epochs == 0 && pace_of(NULL).seconds == 0);
    for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++)
        gs_assert_fails(gs_checkpoint_pace_parse(&p, wrong[k]), GS_EINVAL, ".checkpoint_every");
}

static void pace__follows_epochs_and_time(void **state)
{
    gs_checkpoint_pace p = pace_of("3");

    (void)state;
    gs_checkpoint_pace_begin(&p, 0, 1000);
    assert_true(!gs_checkpoint_is_due(&p, 2, 1, false) && gs_checkpoint_is_due(&p, 3, 1, false));
    p = pace_of("10s");
    gs_checkpoint_pace_begin(&p, 100, 1000);
    assert_true(!gs_checkpoint_is_due(&p, 1, 109, false) && gs_checkpoint_is_due(&p, 2, 110, false));
    gs_checkpoint_took(&p, 110, 112);
    assert_true(!gs_checkpoint_is_due(&p, 3, 121, false) && gs_checkpoint_is_due(&p, 3, 122, false));
}

/* Epochs of a second, for an hour: whatever one costs, up to twice what the one before took, all of them stay below 2 %
 * of the time, and where they are cheap one comes every half minute. */
static void pace__by_cost_takes_less_than_2_percent(void **state)
{
    static const double costs[] = {0.01, 0.2, 1, 7, 30};

    (void)state;
    for (size_t k = 0; k < sizeof(costs) / sizeof(costs[0]); k++) {
        gs_checkpoint_pace p = pace_of(NULL);
        const uint64_t bytes = (uint64_t)(costs[k] * 100e6);
        double now = 0, spent = 0;
        uint32_t written = 0, epoch;
        gs_checkpoint_pace_begin(&p, 0, bytes);
        for (epoch = 1; now < 3600; epoch++) {
            now += 1;
            if (!gs_checkpoint_is_due(&p, epoch, now, false))
                continue;
            const double cost = costs[k] * (written % 2 + 1);
            gs_checkpoint_took(&p, now, now + cost);
            now += cost;
            spent += cost;
            written++;
            assert_true(spent <= 0.02 * now);
        }
        assert_true(costs[k] > 0.2 || written >= 100);
        assert_true(costs[k] > 7 || written >= 2);
    }
}

static gs_checkpoint example(void)
{
    gs_checkpoint c = {.epoch = 12, .steps = 11, .store_id = UINT64_MAX, .model_id = 1, .seconds = 0.1,
                       .read_bytes = 1ull << 50, .lines_bytes = 3, .plan_id = 5, .host_memory = 7,
                       .cost = {.read_bps = 1e9, .write_bps = 2e9}, .sections = 1};
    gs_train_options o;
    gs_train_options_init(&o);
    o.seed = UINT64_MAX;
    o.lr = 0.1;
    gs_checkpoint_take_options(&c, &o);
    strcpy(c.device, "cpu");
    strcpy(c.maker, "a \"maker\"");
    c.section[0] = (gs_checkpoint_section){"model", 99, 0xabcdef};
    return c;
}

static void text__comes_back(void **state)
{
    const gs_checkpoint c = example();
    gs_checkpoint back = {0};
    gs_train_options o;
    char *text;
    uint64_t bytes;

    (void)state;
    gs_assert_ok(gs_checkpoint_format(&text, &bytes, &c));
    gs_checkpoint_list_options(&back);
    gs_assert_ok(gs_checkpoint_parse(&back, text, bytes, "t"));
    assert_int_equal(back.epoch, 12);
    assert_int_equal(back.steps, 11);
    assert_true(back.store_id == UINT64_MAX && back.model_id == 1 && back.seconds == 0.1 && back.plan_id == 5);
    assert_true(back.read_bytes == 1ull << 50 && back.lines_bytes == 3 && back.host_memory == 7);
    assert_string_equal(back.maker, "a \"maker\"");
    assert_true(back.cost.read_bps == 1e9 && back.cost.write_bps == 2e9);
    assert_int_equal(gs_checkpoint_find_section(&back, "model")->checksum, 0xabcdef);
    assert_null(gs_checkpoint_find_section(&back, "best"));
    gs_train_options_init(&o);
    o.seed = UINT64_MAX;
    o.lr = 0.1;
    gs_assert_ok(gs_checkpoint_match_options(&back, &o, "t"));
    o.lr = 0.1f;
    gs_assert_fails(gs_checkpoint_match_options(&back, &o, "t"), GS_EINVAL, ".lr 0.10000000149");
    gs_free(text);
}

/* Within an epoch on batches; some of its numbers are none. */
static void text__of_a_part_comes_back(void **state)
{
    gs_checkpoint c = example(), back = {0};
    char *text;
    uint64_t bytes;

    (void)state;
    c.part = (gs_epoch_part){.begun = true, .batches = 3, .of = 7, .lr = 0.1, .loss = 1.0 / 3, .mass = 96,
                             .accuracy = {NAN, 0.5, 0.25}, .figures = {.micro_f1 = {1, 2, 3}, .r2 = {4, 5, 6}}};
    c.control.best_epoch = c.control.last_better = c.epoch + 1;
    gs_assert_ok(gs_checkpoint_format(&text, &bytes, &c));
    gs_checkpoint_list_options(&back);
    gs_assert_ok(gs_checkpoint_parse(&back, text, bytes, "t"));
    assert_memory_equal(&back.part, &c.part, sizeof(c.part));
    assert_int_equal(back.control.best_epoch, c.epoch + 1);
    gs_free(text);
}

static void text__no_byte_may_be_another(void **state)
{
    const gs_checkpoint c = example();
    gs_checkpoint back = {0};
    char *text;
    uint64_t bytes;

    (void)state;
    gs_assert_ok(gs_checkpoint_format(&text, &bytes, &c));
    gs_checkpoint_list_options(&back);
    for (uint64_t k = 0; k < bytes; k++) {
        text[k] ^= 1;
        gs_assert_fails(gs_checkpoint_parse(&back, text, bytes, "t"), GS_EFORMAT, "t: ");
        gs_assert_fails(gs_checkpoint_parse(&back, text, k, "t"), GS_EFORMAT, "t: ");
        text[k] ^= 1;
    }
    gs_free(text);
}

/* Checksummed again by whoever forged it. */
static void text__forged_values_are_refused(void **state)
{
    static const char *const forged[][3] = {{"\"model\":\t{\n", "\"../..\":\t{\n", "sections"},
                                            {"\"version\":\t1", "\"version\":\t3", "version 3"},
                                            {"\"epoch\":\t12", "\"epoch\":\t-2", "epoch"},
                                            {"\"epoch\":\t12", "\"epoch\":9e9", "epoch"},
                                            {"\"steps\":\t11", "\"steps\":1.5", "steps"},
                                            {"\"read_bps\":\t1000000000", "\"read_bps\":\t0000000000", "JSON"},
                                            {"\"write_bps\":\t2", "\"write_bps\":\t-", "write_bps"},
                                            {"\"version\":\t1", "\"version\":\t2", "part"}};
    const gs_checkpoint c = example();
    gs_checkpoint back = {0};

    (void)state;
    gs_checkpoint_list_options(&back);
    for (size_t k = 0; k < sizeof(forged) / sizeof(forged[0]); k++) {
        char *text, *at;
        uint64_t bytes;
        gs_assert_ok(gs_checkpoint_format(&text, &bytes, &c));
        at = strstr(text, forged[k][0]);
        assert_non_null(at);
        if (k == 0) /* the options have no "model": the section does, at the end */
            for (char *next = at; next != NULL; next = strstr(at + 1, forged[k][0]))
                at = next;
        memcpy(at, forged[k][1], strlen(forged[k][1]));
        gs_checksum_line_set(text, bytes);
        const gs_status st = gs_checkpoint_parse(&back, text, bytes, "t");
        if (st == GS_OK && k == 5) /* some readers take leading zeros: then the rate is refused */
            fail_msg("a rate of 0 is taken");
        gs_assert_fails(st, GS_EFORMAT, k == 5 ? "t: " : forged[k][2]);
        gs_free(text);
    }
}

/* What options of today were before there were any; another value is refused. */
static void text__of_an_earlier_program_goes_on(void **state)
{
    static const char *const later[] = {"\"gather_type\"", "\"shuffle\"", "\"elbow\"", "\"last_loss\""};
    const gs_checkpoint c = example();
    gs_checkpoint back = {0};
    gs_train_options o;
    char *text;
    uint64_t bytes;

    (void)state;
    gs_assert_ok(gs_checkpoint_format(&text, &bytes, &c));
    for (size_t k = 0; k < sizeof(later) / sizeof(later[0]); k++) {
        char *const at = strstr(text, later[k]);
        assert_non_null(at);
        at[1] = 'X';
    }
    gs_checksum_line_set(text, bytes);
    gs_checkpoint_list_options(&back);
    gs_assert_ok(gs_checkpoint_parse(&back, text, bytes, "t"));
    gs_free(text);
    assert_true(isnan(back.control.last_loss) && back.control.elbow == 0);
    gs_train_options_init(&o);
    o.seed = UINT64_MAX;
    o.lr = 0.1;
    gs_assert_ok(gs_checkpoint_match_options(&back, &o, "t"));
    o.shuffle = "never";
    gs_assert_fails(gs_checkpoint_match_options(&back, &o, "t"), GS_EINVAL, ".shuffle never");
    o.shuffle = "always";
    o.gather_type = "bf16";
    gs_assert_fails(gs_checkpoint_match_options(&back, &o, "t"), GS_EINVAL, ".gather_type bf16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pace__is_read),
        cmocka_unit_test(pace__follows_epochs_and_time),
        cmocka_unit_test(pace__by_cost_takes_less_than_2_percent),
        cmocka_unit_test(text__comes_back),
        cmocka_unit_test(text__of_a_part_comes_back),
        cmocka_unit_test(text__no_byte_may_be_another),
        cmocka_unit_test(text__forged_values_are_refused),
        cmocka_unit_test(text__of_an_earlier_program_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
