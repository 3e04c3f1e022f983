/* The files that a run leaves: lines of metrics, logits in input order, and that
 * a file appears whole or not at all. */
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "support/support.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/npy.h"
#include "base/size.h"
#include "store/store_write.h"
#include "train/outputs.h"
#include "train/metrics_log.h"

/* ---- metrics ------------------------------------------------------------- */

static const gs_epoch_report sample = {
    .epoch = 12,
    .epochs = 100,
    .lr = 0.01,
    .loss = 1.0 / 3,
    .accuracy = {0.5, NAN, 1},
    .seconds = 0.25,
    .compute_seconds = 1e-7,
    .stall_seconds = 1234567.5,
    .edge_seconds = 0.125,
    .read_bytes = UINT64_C(1) << 52,
    .written_bytes = 0,
    .peak_host_bytes = 4096,
    .peak_device_bytes = 8192,
};


static const char *const fields[] = {"epoch",         "loss",            "train_acc",     "valid_acc",
                                     "test_acc",      "lr",              "seconds",       "read_bytes", "written_bytes",
                                     "compute_seconds", "stall_seconds", "peak_host_bytes", "peak_device_bytes",
                                     "valid_loss", "train_macro_f1", "valid_macro_f1", "test_macro_f1",
                                     "train_balanced_acc", "valid_balanced_acc", "test_balanced_acc"};

static void check_line(const char *line)
{
    cJSON *const json = cJSON_Parse(line);
    int n = 0;

    assert_non_null(json);
    for (const cJSON *c = json->child; c != NULL; c = c->next, n++)
        assert_string_equal(c->string, fields[n]); /* these, in this order, and no others */
    assert_int_equal(n, 20);
    assert_int_equal(cJSON_GetObjectItem(json, "epoch")->valueint, 12);
    gs_assert_close(cJSON_GetObjectItem(json, "loss")->valuedouble, 1.0 / 3, 1e-9);
    gs_assert_close(cJSON_GetObjectItem(json, "train_acc")->valuedouble, 0.5, 0);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(json, "valid_acc")));
    gs_assert_close(cJSON_GetObjectItem(json, "test_acc")->valuedouble, 1, 0);
    gs_assert_close(cJSON_GetObjectItem(json, "read_bytes")->valuedouble, 4503599627370496.0, 0);
    gs_assert_close(cJSON_GetObjectItem(json, "compute_seconds")->valuedouble, 1e-7, 1e-9);
    gs_assert_close(cJSON_GetObjectItem(json, "stall_seconds")->valuedouble, 1234567.5, 1e-9);
    gs_assert_close(cJSON_GetObjectItem(json, "peak_device_bytes")->valuedouble, 8192, 0);
    cJSON_Delete(json);
}

static void metrics__a_line_is_json_with_the_fields_of_the_contract(void **state)
{
    char line[GS_METRICS_LINE];

    (void)state;
    const size_t length = gs_metrics_line(line, &sample);
    assert_int_equal(length, strlen(line));
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    check_line(line);
}

static void metrics__a_device_with_memory_of_its_own_adds_what_was_copied(void **state)
{
    gs_epoch_report e = sample;
    char line[GS_METRICS_LINE];

    (void)state;
    e.copied_in_bytes = 77;
    e.handed_over = 78;
    gs_metrics_line(line, &e);
    cJSON *const json = cJSON_Parse(line);
    assert_non_null(json);
    gs_assert_close(cJSON_GetObjectItem(json, "copied_in_bytes")->valuedouble, 77, 0);
    gs_assert_close(cJSON_GetObjectItem(json, "copied_out_bytes")->valuedouble, 0, 0);
    gs_assert_close(cJSON_GetObjectItem(json, "handed_over")->valuedouble, 78, 0);
    assert_null(cJSON_GetObjectItem(json, "forwarded_bytes"));
    cJSON_Delete(json);
}

static void metrics__batches_add_what_an_epochs_seconds_went_to(void **state)
{
    static const char *const name[] = {"sample_seconds", "pick_seconds", "copy_seconds", "step_seconds"};
    gs_epoch_report e = sample;
    char line[GS_METRICS_LINE];

    (void)state;
    e.sample_seconds = 1;
    e.pick_seconds = 2;
    e.step_seconds = 4;
    gs_metrics_line(line, &e);
    cJSON *const json = cJSON_Parse(line);
    assert_non_null(json);
    for (int k = 0; k < 4; k++)
        gs_assert_close(cJSON_GetObjectItem(json, name[k])->valuedouble, k == 2 ? 0 : k + 1, 0);
    cJSON_Delete(json);
}

static void metrics__several_devices_add_what_was_handed_on(void **state)
{
    gs_epoch_report e = sample;
    char line[GS_METRICS_LINE];

    (void)state;
    e.copied_in_bytes = 1001;
    e.forwarded_bytes = 1002;
    e.loaded_bytes = 1003;
    e.sent_bytes = 1004;
    gs_metrics_line(line, &e);
    cJSON *const json = cJSON_Parse(line);
    assert_non_null(json);
    gs_assert_close(cJSON_GetObjectItem(json, "copied_in_bytes")->valuedouble, 1001, 0);
    gs_assert_close(cJSON_GetObjectItem(json, "forwarded_bytes")->valuedouble, 1002, 0);
    gs_assert_close(cJSON_GetObjectItem(json, "loaded_bytes")->valuedouble, 1003, 0);
    gs_assert_close(cJSON_GetObjectItem(json, "sent_bytes")->valuedouble, 1004, 0);
    cJSON_Delete(json);
}

static void metrics__the_largest_numbers_fit_a_line(void **state)
{
    const double small = -1e-300 / 3;
    gs_epoch_report e = {UINT32_MAX, UINT32_MAX, true, small, -1.7e308 / 3, {small, small, small},
                         small, small, small, 0, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                         UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                         {"regress", {small, small, small}, {small, small, small}, {small, small, small},
                          {small, small, small}, {small, small, small}, {small, small, small}, {small, small, small},
                          {small, small, small}, small, {small, small, small}, {small, small, small},
                          {small, small, small}, {small, small, small}, {small, small, small}},
                         -small, small, small, small, UINT64_MAX, UINT64_MAX};
    char line[GS_METRICS_LINE];

    (void)state;
    for (int k = 0; k < 2; k++) {
        assert_true(gs_metrics_line(line, &e) < GS_METRICS_LINE);
        assert_int_equal(line[strlen(line) - 1], '\n');
        assert_non_null(strstr(line, k == 0 ? "\"valid_r2\": -" : "\"valid_macro_f1\": -"));
        strcpy(e.figures.task, "multilabel");
    }
}

static void metrics__a_comma_locale_changes_nothing(void **state)
{
    static const char *const comma[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "pt_BR.UTF-8"};
    char here[GS_METRICS_LINE], there[GS_METRICS_LINE];
    size_t i = 0;

    (void)state;
    gs_metrics_line(here, &sample);
    while (i < GS_ARRAY_LEN(comma) && setlocale(LC_NUMERIC, comma[i]) == NULL)
        i++;
    if (i == GS_ARRAY_LEN(comma)) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    gs_metrics_line(there, &sample);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(here, there);
}

static void metrics__lines_are_there_as_soon_as_they_are_written(void **state)
{
    const char *const path = gs_test_path(*state, "m.jsonl");
    gs_metrics_log log;
    char *text = NULL;
    uint64_t bytes;

    gs_test_write_file(path, "old\n", 4);
    gs_assert_ok(gs_metrics_log_open(&log, path));
    for (int i = 1; i <= 3; i++) {
        gs_assert_ok(gs_metrics_log_write(&log, &sample));
        gs_assert_ok(gs_file_read_all(&text, &bytes, path, 1 << 20));
        int lines = 0;
        for (uint64_t k = 0; k < bytes; k++)
            lines += text[k] == '\n';
        assert_int_equal(lines, i);
        gs_free(text);
    }
    gs_assert_ok(gs_metrics_log_close(&log));
    gs_assert_ok(gs_metrics_log_close(&log));
}

static void metrics__no_path_takes_nothing_and_a_full_disk_is_said(void **state)
{
    gs_metrics_log log;

    gs_assert_ok(gs_metrics_log_open(&log, NULL));
    gs_assert_ok(gs_metrics_log_write(&log, &sample));
    gs_assert_ok(gs_metrics_log_close(&log));
    gs_assert_fails(gs_metrics_log_open(&log, gs_test_path(*state, "no/such/m.jsonl")), GS_ENOTFOUND, "no/such");
    if (access("/dev/full", W_OK) != 0)
        return;
    gs_assert_ok(gs_metrics_log_open(&log, "/dev/full"));
    assert_true(gs_metrics_log_write(&log, &sample) < 0);
    assert_non_null(strstr(gs_last_error(), "/dev/full"));
    (void)gs_metrics_log_close(&log);
}

/* A limit on the size of files stops a write in its middle, as a disk does that is full. */
static void metrics__a_line_that_does_not_fit_is_not_there(void **state)
{
    const char *const path = gs_test_path(*state, "m.jsonl");
    char line[GS_METRICS_LINE], *text = NULL;
    const size_t length = gs_metrics_line(line, &sample);
    struct rlimit before, limit;
    gs_metrics_log log;
    uint64_t bytes;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){.rlim_cur = 2 * length + length / 2, .rlim_max = before.rlim_max};
    void (*const old)(int) = signal(SIGXFSZ, SIG_IGN);
    gs_assert_ok(gs_metrics_log_open(&log, path));
    gs_assert_ok(gs_metrics_log_write(&log, &sample));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    gs_assert_ok(gs_metrics_log_write(&log, &sample));
    const gs_status st = gs_metrics_log_write(&log, &sample);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, old);
    gs_assert_fails(st, GS_EIO, "cannot write the line of epoch 12");
    gs_assert_ok(gs_metrics_log_close(&log));
    gs_assert_ok(gs_file_read_all(&text, &bytes, path, 1 << 20));
    assert_int_equal(bytes, 2 * length);
    assert_memory_equal(text + length, line, length);
    gs_free(text);
}

/* ---- logits -------------------------------------------------------------- */

#define CLASSES 5u

/* A store of vertices and input ids alone; `id` in store order. */
static gs_store *store_of_ids(const char *dir, const uint32_t *id, uint32_t vertices)
{
    gs_store_contents c = {.info = {.vertices = vertices, .parts = 1, .interval_rows = vertices, .method = "natural"}};
    const uint64_t bytes = vertices * sizeof(*id), sums = gs_div_up(bytes, GS_SUM_BYTES);
    uint64_t *const sum = malloc(sums * sizeof(*sum));
    gs_chunk empty[2] = {{0}};
    gs_array_info *const a = &c.array[GS_ARRAY_INPUT_ID];
    char *const file = calloc(1, gs_align_up(bytes, GS_BLOCK_BYTES));
    float *const degree = calloc(vertices, sizeof(float));
    gs_store *store = NULL;

    assert_true(sum != NULL && file != NULL && degree != NULL);
    memcpy(file, id, bytes);
    gs_staging *staging = NULL;
    gs_assert_ok(gs_store_begin(&staging, dir, false));
    const char *const made = gs_staging_dir(staging);
    gs_test_write_file(gs_test_path(made, "input_id.bin"), file, gs_align_up(bytes, GS_BLOCK_BYTES));
    for (uint64_t i = 0; i < sums; i++)
        sum[i] = gs_hash64(file + i * GS_SUM_BYTES, GS_MIN(GS_SUM_BYTES, bytes - i * GS_SUM_BYTES));
    *a = (gs_array_info){true, GS_U32, 1, 4, bytes, sum};
    /* degrees of a graph without edges: all 0, the same bytes for both */
    memset(file, 0, gs_align_up(bytes, GS_BLOCK_BYTES));
    uint64_t *const zero_sum = malloc(sums * sizeof(*sum));
    assert_non_null(zero_sum);
    for (uint64_t i = 0; i < sums; i++)
        zero_sum[i] = gs_hash64(file + i * GS_SUM_BYTES, GS_MIN(GS_SUM_BYTES, bytes - i * GS_SUM_BYTES));
    gs_test_write_file(gs_test_path(made, "in_degree.bin"), file, gs_align_up(bytes, GS_BLOCK_BYTES));
    gs_test_write_file(gs_test_path(made, "out_degree.bin"), file, gs_align_up(bytes, GS_BLOCK_BYTES));
    c.array[GS_ARRAY_IN_DEGREE] = c.array[GS_ARRAY_OUT_DEGREE] = (gs_array_info){true, GS_F32, 1, 4, bytes, zero_sum};
    gs_test_write_file(gs_test_path(made, "edges.dest.bin"), "", 0);
    gs_test_write_file(gs_test_path(made, "edges.source.bin"), "", 0);
    c.chunks =
        (gs_chunk_table){.vertices = vertices, .parts = 1, .interval_rows = vertices, .chunk = {&empty[0], &empty[1]}};
    gs_assert_ok(gs_store_finish(staging, &c));
    gs_staging_close(staging);
    free(sum);
    free(zero_sum);
    free(file);
    free(degree);
    gs_assert_ok(gs_store_open(&store, dir));
    return store;
}

/* A permutation of 0..n-1 with no locality: 7919 is prime to n. */
static uint32_t scattered(uint32_t i, uint32_t n) { return (uint32_t)((uint64_t)i * 7919 % n); }

static uint32_t bad_row = UINT32_MAX; /* its last logit is not a number */

static float logit(uint32_t row, uint32_t c)
{
    return row == bad_row && c + 1 == CLASSES ? NAN : (float)row + (float)c / 8;
}

static gs_status give_rows(void *context, uint64_t first, uint64_t rows, float *dst)
{
    *(uint64_t *)context += rows;
    for (uint64_t i = 0; i < rows; i++)
        for (uint32_t c = 0; c < CLASSES; c++)
            dst[i * CLASSES + c] = logit((uint32_t)(first + i), c);
    return GS_OK;
}

static gs_status write_logits(const char *dir, const gs_store *store, uint64_t memory, const volatile int *stop)
{
    const char *const path = gs_test_path(dir, "logits.npy");
    const uint64_t rows = gs_store_get_info(store)->vertices;
    gs_outfile o = GS_OUTFILE_NONE;
    uint64_t offset = 0, given = 0;
    const gs_logits_job job = {.store = store, .classes = CLASSES, .memory = memory, .scratch_dir = dir,
                               .source = give_rows, .context = &given, .stop = stop};
    gs_status st;

    gs_assert_ok(gs_npy_create(&o, &offset, path, GS_F32, rows, CLASSES));
    if ((st = gs_logits_write(&o, offset, &job)) == GS_OK) {
        assert_int_equal(given, rows); /* each row was asked for once */
        st = gs_outfile_finish(&o);
    }
    gs_outfile_abandon(&o);
    return st;
}

static void check_logits(const char *dir, uint32_t vertices)
{
    const char *const path = gs_test_path(dir, "logits.npy");
    float *const got = malloc(vertices * CLASSES * sizeof(float));
    gs_npy npy;

    assert_non_null(got);
    gs_assert_ok(gs_npy_open(&npy, path));
    assert_true(npy.dtype == GS_F32 && npy.dims == 2 && npy.shape[0] == vertices && npy.shape[1] == CLASSES);
    gs_assert_ok(gs_npy_read_rows(&npy, got, 0, vertices, path));
    for (uint32_t i = 0; i < vertices; i++)
        for (uint32_t c = 0; c < CLASSES; c++)
            if (got[scattered(i, vertices) * CLASSES + c] != logit(i, c))
                fail_msg("row %u, class %u", i, c);
    gs_npy_close(&npy);
    free(got);
}

/* 40,000 rows are 800 KB: one window in 4 MiB, many in 64 KiB. */
static void logits__come_in_input_order_in_any_memory(void **state)
{
    static const uint64_t memory[] = {4 << 20, 800000, 300000, 64 << 10, 1};
    const uint32_t n = 40000;
    uint32_t *const id = malloc(n * sizeof(*id));
    gs_store *store;

    assert_non_null(id);
    for (uint32_t i = 0; i < n; i++)
        id[i] = scattered(i, n);
    store = store_of_ids(gs_test_path(*state, "store"), id, n);
    for (size_t k = 0; k < GS_ARRAY_LEN(memory); k++) {
        gs_assert_ok(write_logits(*state, store, memory[k], NULL));
        check_logits(*state, n);
        assert_false(gs_path_exists(gs_test_path(*state, "logits.order.bin")));
        assert_int_equal(unlink(gs_test_path(*state, "logits.npy")), 0);
    }
    gs_store_close(store);
    free(id);
}

/* The vertex is named as the input has it. */
static void logits__are_finite(void **state)
{
    static const uint32_t id[3] = {2, 0, 1};
    gs_store *const store = store_of_ids(gs_test_path(*state, "store"), id, 3);

    bad_row = 1;
    gs_assert_fails(write_logits(*state, store, 1 << 20, NULL), GS_EDEVICE, "the logit of vertex 0 for class ");
    bad_row = UINT32_MAX;
    assert_false(gs_path_exists(gs_test_path(*state, "logits.npy")));
    gs_store_close(store);
}

static void logits__stop_leaves_nothing(void **state)
{
    static const uint32_t id[3] = {2, 0, 1};
    static const volatile int stop = 1;
    gs_store *const store = store_of_ids(gs_test_path(*state, "store"), id, 3);

    gs_assert_fails(write_logits(*state, store, 1 << 20, &stop), GS_EINTERRUPTED, "interrupted");
    assert_false(gs_path_exists(gs_test_path(*state, "logits.npy")));
    assert_false(gs_path_exists(gs_test_path(*state, "logits.npy.tmp")));
    gs_store_close(store);
}

/* An id twice, or beyond the vertices, in a store whose checksums are right. */
static void logits__refuse_ids_that_are_no_permutation(void **state)
{
    const uint32_t n = 9000;
    uint32_t *const id = malloc(n * sizeof(*id));
    gs_store *store;

    assert_non_null(id);
    for (uint32_t bad = 0; bad < 2; bad++) {
        for (uint32_t i = 0; i < n; i++)
            id[i] = scattered(i, n);
        id[4321] = bad == 0 ? id[4320] : n;
        store = store_of_ids(gs_test_path(*state, "store%u", bad), id, n);
        gs_assert_fails(write_logits(*state, store, 1 << 20, NULL), GS_EFORMAT, "input_id");
        gs_assert_fails(write_logits(*state, store, 1, NULL), GS_EFORMAT, "input_id");
        assert_false(gs_path_exists(gs_test_path(*state, "logits.npy")));
        gs_store_close(store);
    }
    free(id);
}

static void logits__a_damaged_id_file_is_named(void **state)
{
    static const uint32_t id[3] = {2, 0, 1}, other = 7;
    gs_store *const store = store_of_ids(gs_test_path(*state, "store"), id, 3);
    FILE *const f = fopen(gs_test_path(*state, "store/input_id.bin"), "r+b");

    assert_non_null(f);
    assert_int_equal(fwrite(&other, 4, 1, f), 1);
    fclose(f);
    gs_assert_fails(write_logits(*state, store, 1 << 20, NULL), GS_EFORMAT, "input_id.bin");
    gs_store_close(store);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, gs_test_temp_setup, gs_test_temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics__a_line_is_json_with_the_fields_of_the_contract),
        cmocka_unit_test(metrics__batches_add_what_an_epochs_seconds_went_to),
        cmocka_unit_test(metrics__several_devices_add_what_was_handed_on),
        cmocka_unit_test(metrics__a_device_with_memory_of_its_own_adds_what_was_copied),
        cmocka_unit_test(metrics__the_largest_numbers_fit_a_line),
        cmocka_unit_test(metrics__a_comma_locale_changes_nothing),
        IN_FOLDER(metrics__lines_are_there_as_soon_as_they_are_written),
        IN_FOLDER(metrics__no_path_takes_nothing_and_a_full_disk_is_said),
        IN_FOLDER(metrics__a_line_that_does_not_fit_is_not_there),
        IN_FOLDER(logits__come_in_input_order_in_any_memory),
        IN_FOLDER(logits__are_finite),
        IN_FOLDER(logits__stop_leaves_nothing),
        IN_FOLDER(logits__refuse_ids_that_are_no_permutation),
        IN_FOLDER(logits__a_damaged_id_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
