/* What callers may give: NULL where a value is due, and option structs of other versions of the header. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ranks/ranks.h"
#include "support/support.h"

#include "api_graph.h"

/* ---- NULL ------------------------------------------------------------------ */

typedef struct given_call {
    const char *call;
    gs_status st;
} given_call;
#define NULLS(call) {#call, call}

static void hear(void *context, const gs_why_row *row)
{
    (void)context;
    (void)row;
}

static void check_all_refused(const given_call *table, size_t calls)
{
    for (size_t i = 0; i < calls; i++)
        if (table[i].st != GS_EINVAL)
            fail_msg("%s: %s", table[i].call, gs_status_text(table[i].st));
}

/* One call of each public function for each of its parameters that must not be NULL; GS_OK is never right. */
static void given__null_is_refused_with_words(void **state)
{
    char buffer[32];
    float number[1] = {0};
    gs_train_options o = api_options();
    gs_generate_options g;
    gs_partition_options p;
    gs_store_summary summary;
    gs_weights_summary weights;
    gs_plan_report plan;
    static gs_cluster_report cluster; /* large */
    gs_limits_report limits;
    gs_bench_report bench;
    gs_evaluation evaluation;
    gs_tensor_info tensor;
    gs_progress progress;
    gs_checkpoint_report checkpoints;
    gs_model_graph graph = {.features = 1, .classes = 2};
    gs_type_table types;
    gs_loader *loader = NULL;
    gs_feature_table named;
    gs_loader_report batches;
    gs_loader_batch batch;
    gs_loader_pairs pairs = {0};
    gs_loader_arrays rows = {0};
    int64_t id = 0;
    uint64_t bytes;
    uint32_t ranks;
    char line[8];
    gs_run *run = NULL, *other = NULL;

    (void)state;
    gs_generate_options_init(&g);
    gs_partition_options_init(&p);
    gs_assert_ok(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN));
    const given_call table[] = {
        NULLS(gs_join_ranks(NULL, &ranks)),
        NULLS(gs_join_ranks(&ranks, NULL)),
        NULLS(gs_size_parse(NULL, "1K")), NULLS(gs_size_parse(&bytes, NULL)),
        NULLS(gs_generate(NULL, "f", &g)), NULLS(gs_generate("rmat", NULL, &g)), NULLS(gs_generate("rmat", "f", NULL)),
        NULLS(gs_partition(NULL, "s", &p, NULL)), NULLS(gs_partition("i", NULL, &p, NULL)),
        NULLS(gs_partition("i", "s", NULL, NULL)),
        NULLS(gs_shard(NULL, 2, "o", NULL)), NULLS(gs_shard(api_store, 2, NULL, NULL)),
        NULLS(gs_inspect(NULL, api_store)), NULLS(gs_inspect(&summary, NULL)),
        NULLS(gs_inspect_types(NULL, api_store)), NULLS(gs_inspect_types(&types, NULL)),
        NULLS(gs_inspect_features(NULL, api_store)), NULLS(gs_inspect_features(&named, NULL)),
        NULLS(gs_verify(NULL, 0)),
        NULLS(gs_write_ids(NULL, "ids")), NULLS(gs_write_ids(api_store, NULL)),
        NULLS(gs_inspect_weights(NULL, "w")), NULLS(gs_inspect_weights(&weights, NULL)),
        NULLS(gs_plan_train(NULL, api_store, &o)), NULLS(gs_plan_train(&plan, NULL, &o)),
        NULLS(gs_plan_train(&plan, api_store, NULL)), NULLS(gs_print_tasks(NULL, api_store, &o)),
        NULLS(gs_print_tasks(stdout, NULL, &o)), NULLS(gs_print_tasks(stdout, api_store, NULL)),
        NULLS(gs_print_plan(NULL, &plan)), NULLS(gs_print_plan(stderr, NULL)),
        NULLS(gs_plan_cluster(NULL, "c", "s", &o)), NULLS(gs_plan_cluster(&cluster, NULL, "s", &o)),
        NULLS(gs_plan_cluster(&cluster, "c", NULL, &o)), NULLS(gs_plan_cluster(&cluster, "c", "s", NULL)),
        NULLS(gs_print_cluster(NULL, &cluster)), NULLS(gs_print_cluster(stderr, NULL)),
        NULLS(gs_run_open(NULL, api_store, &o, GS_RUN_TRAIN)), NULLS(gs_run_open(&other, NULL, &o, GS_RUN_TRAIN)),
        NULLS(gs_run_open(&other, api_store, NULL, GS_RUN_TRAIN)),
        NULLS(gs_run_epoch(NULL, NULL)), NULLS(gs_run_evaluate(NULL, &evaluation)), NULLS(gs_run_evaluate(run, NULL)),
        NULLS(gs_run_logits(NULL, number, 1)), NULLS(gs_run_logits(run, NULL, 1)),
        NULLS(gs_run_write_logits(NULL, "l")), NULLS(gs_run_write_logits(run, NULL)),
        NULLS(gs_run_tensor(NULL, 0, &tensor)), NULLS(gs_run_tensor(run, 0, NULL)),
        NULLS(gs_run_get_tensor(NULL, 0, number, 1)), NULLS(gs_run_get_tensor(run, 0, NULL, 48)),
        NULLS(gs_run_set_tensor(NULL, 0, number, 1)), NULLS(gs_run_set_tensor(run, 0, NULL, 48)),
        NULLS(gs_run_load(NULL, "w")), NULLS(gs_run_load(run, NULL)),
        NULLS(gs_run_save(NULL, "w")), NULLS(gs_run_save(run, NULL)),
        NULLS(gs_run_checkpoint(NULL)), NULLS(gs_run_checkpoints(NULL, &checkpoints)),
        NULLS(gs_checkpoint_command(NULL, 1, "folder")), NULLS(gs_checkpoint_command(line, sizeof(line), NULL)),
        NULLS(gs_run_checkpoints(run, NULL)),
        NULLS(gs_run_progress(NULL, &progress)), NULLS(gs_run_progress(run, NULL)),
        NULLS(gs_run_plan(NULL, &plan)), NULLS(gs_run_plan(run, NULL)), NULLS(gs_run_finish(NULL, NULL)),
        NULLS(gs_train(NULL, &o, NULL)), NULLS(gs_train(api_store, NULL, NULL)),
        NULLS(gs_predict(NULL, &o, "w", "l", NULL)), NULLS(gs_predict(api_store, NULL, "w", "l", NULL)),
        NULLS(gs_predict(api_store, &o, NULL, "l", NULL)), NULLS(gs_predict(api_store, &o, "w", NULL, NULL)),
        NULLS(gs_print_model(NULL, &o, &graph, false)), NULLS(gs_print_model(stderr, NULL, &graph, false)),
        NULLS(gs_print_model(stderr, &o, NULL, false)),
        NULLS(gs_measure_limits(NULL, api_folder, 1)), NULLS(gs_measure_limits(&limits, NULL, 1)),
        NULLS(gs_measure_device_limits(NULL, NULL, "cpu", 1)),
        NULLS(gs_measure_device_limits(&limits, NULL, NULL, 1)),
        NULLS(gs_bench_train(NULL, api_store, &o)), NULLS(gs_bench_train(&bench, NULL, &o)),
        NULLS(gs_bench_train(&bench, api_store, NULL)),
        NULLS(gs_loader_open(NULL, api_store, &o, GS_SEEDS_ALL, NULL, 0)),
        NULLS(gs_loader_open(&loader, NULL, &o, GS_SEEDS_ALL, NULL, 0)),
        NULLS(gs_loader_open(&loader, api_store, NULL, GS_SEEDS_ALL, NULL, 0)),
        NULLS(gs_loader_open_pairs(&loader, api_store, NULL, &pairs)),
        NULLS(gs_loader_open_pairs(&loader, api_store, &o, NULL)),
        NULLS(gs_loader_open_rows(NULL, api_store, &o)), NULLS(gs_loader_open_rows(&loader, NULL, &o)),
        NULLS(gs_loader_open_rows(&loader, api_store, NULL)), NULLS(gs_loader_pick(NULL, &id, 1, &rows)),
        NULLS(gs_read_in_edges(NULL, NULL, api_store, GS_ALL_RELATIONS, 0)),
        NULLS(gs_read_in_edges(&id, NULL, NULL, GS_ALL_RELATIONS, 0)),
        NULLS(gs_loader_inspect(NULL, &batches)), NULLS(gs_loader_begin(NULL, 1, 0)),
        NULLS(gs_loader_next(NULL, &batch)), NULLS(gs_loader_fill(NULL, &rows)),
        NULLS(gs_bench_train_why(NULL, api_store, &o, hear, NULL)),
        NULLS(gs_bench_train_why(&bench, NULL, &o, hear, NULL)),
        NULLS(gs_bench_train_why(&bench, api_store, NULL, hear, NULL)),
        NULLS(gs_bench_train_why(&bench, api_store, &o, NULL, NULL)),
    };
    check_all_refused(table, sizeof(table) / sizeof(table[0]));
    gs_assert_fails(gs_run_save(run, NULL), GS_EINVAL, "path: is NULL, where a value is due");
    assert_null(gs_size_format(NULL, 16, 1));
    assert_ptr_equal(gs_size_format(buffer, 0, 1), buffer);
    assert_int_equal(gs_run_tensors(NULL), 0);
    assert_int_equal(gs_run_columns(NULL), 0);
    assert_int_equal(gs_run_vertices(NULL), 0);
    gs_train_options_sized(NULL, sizeof(o));
    gs_run_close(NULL);
    gs_run_close(run);
}

/* So for a layer on a graph in memory: one edge, rows of two numbers to rows of three. */
static void given__null_is_refused_by_a_layer(void **state)
{
    static const int64_t zero[1] = {0}, one[1] = {1};
    const gs_layer_graph graph = {.vertices = 2, .edges = 1, .source = zero, .destination = one};
    const gs_layer_graph no_source = {.vertices = 2, .edges = 1, .destination = one};
    const gs_layer_graph no_destination = {.vertices = 2, .edges = 1, .source = zero};
    const float x[4] = {0}, w[6] = {0}, *const parameters[2] = {w, w}, *const no_parameters[2] = {NULL, NULL};
    float y[6], gradient[6];
    gs_train_options o = api_options();
    gs_layer *layer = NULL, *other = NULL;
    gs_tensor_info tensor;

    (void)state;
    o.dropout = 0;
    gs_assert_ok(gs_layer_open(&layer, &graph, 2, 3, &o));
    assert_in_range(gs_layer_tensors(layer), 1, 2);
    const given_call table[] = {
        NULLS(gs_layer_open(NULL, &graph, 2, 3, &o)), NULLS(gs_layer_open(&other, NULL, 2, 3, &o)),
        NULLS(gs_layer_open(&other, &graph, 2, 3, NULL)), NULLS(gs_layer_open(&other, &no_source, 2, 3, &o)),
        NULLS(gs_layer_open(&other, &no_destination, 2, 3, &o)),
        NULLS(gs_layer_set_stream(NULL, NULL)),
        NULLS(gs_layer_tensor(NULL, 0, &tensor)), NULLS(gs_layer_tensor(layer, 0, NULL)),
        NULLS(gs_layer_start(NULL, 0, y, 6)), NULLS(gs_layer_start(layer, 0, NULL, 6)),
        NULLS(gs_layer_forward(NULL, x, parameters, true, 0, y)),
        NULLS(gs_layer_forward(layer, NULL, parameters, true, 0, y)),
        NULLS(gs_layer_forward(layer, x, NULL, true, 0, y)),
        NULLS(gs_layer_forward(layer, x, no_parameters, true, 0, y)),
        NULLS(gs_layer_forward(layer, x, parameters, true, 0, NULL)),
        NULLS(gs_layer_backward(NULL, x, parameters, y, gradient, NULL)),
        NULLS(gs_layer_backward(layer, x, NULL, y, gradient, NULL)),
        NULLS(gs_layer_backward(layer, NULL, parameters, y, gradient, NULL)),
        NULLS(gs_layer_backward(layer, x, parameters, NULL, gradient, NULL)),
    };
    check_all_refused(table, sizeof(table) / sizeof(table[0]));
    assert_int_equal(gs_layer_tensors(NULL), 0);
    gs_layer_close(layer);
    gs_layer_close(NULL);
}

/* Each function of the header `f` stands in a table above (`test` is this file), or needs nothing but values. */
static void check_header(FILE *f, const char *test)
{
    static const char *const others[] = {"gs_version", "gs_last_error", "gs_last_error_place", "gs_status_text",
                                         "gs_on_abort", "gs_input_formats", "gs_size_format",
                                         "gs_run_tensors", "gs_run_columns", "gs_run_vertices", "gs_run_close",
                                         "gs_layer_tensors", "gs_layer_close", "gs_loader_close"};
    char line[512];

    while (fgets(line, sizeof(line), f) != NULL) {
        char *name = strncmp(line, "GS_API", 6) == 0 ? strstr(line + 6, "gs_") : NULL, call[96];
        if (name != NULL && strncmp(name, "gs_status gs_", 13) == 0)
            name += 10;
        if (name == NULL || strstr(name, "_sized(") != NULL)
            continue;
        name[strcspn(name, "(")] = '\0';
        bool known = false;
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
            known = known || strcmp(name, others[i]) == 0;
        snprintf(call, sizeof(call), "NULLS(%s(", name);
        if (!known && strstr(test, call) == NULL)
            fail_msg("%s() is not called with NULL", name);
    }
}

static void given__every_public_function_is_asked(void **state)
{
    char headers[] = PUBLIC_HEADERS, test[200000], *rest = headers;
    FILE *f = fopen(TEST_SOURCE, "r");

    (void)state;
    assert_non_null(f);
    test[fread(test, 1, sizeof(test) - 1, f)] = '\0';
    fclose(f);
    for (const char *header; (header = strsep(&rest, ":")) != NULL;) {
        assert_non_null(f = fopen(header, "r"));
        check_header(f, test);
        fclose(f);
    }
}

/* ---- sizes ------------------------------------------------------------------ */

/* A caller of an older header: its struct ends early, and what lies behind is not the library's to read. */
static void given__a_shorter_struct_has_defaults(void **state)
{
    unsigned char memory[sizeof(gs_train_options)];
    gs_train_options *const older = (gs_train_options *)(void *)memory;
    const size_t size = offsetof(gs_train_options, no_pipeline);
    gs_plan_report plan, whole;
    gs_train_options o = api_options();

    (void)state;
    memset(memory, 0xee, sizeof(memory));
    gs_train_options_sized(older, size);
    for (size_t at = size; at < sizeof(memory); at++)
        assert_int_equal(memory[at], 0xee); /* not written either */
    assert_int_equal(older->size, size);
    assert_int_equal(older->hidden, 64);
    older->model = o.model;
    older->hidden = o.hidden;
    older->threads = 1;
    gs_assert_ok(gs_plan_train(&plan, api_store, older));
    gs_assert_ok(gs_plan_train(&whole, api_store, &o));
    assert_int_equal(plan.parameters, whole.parameters);
    assert_int_equal(plan.device_bytes, whole.device_bytes);
}

/* A caller of a newer header. */
static void given__a_longer_struct_must_end_in_zeros(void **state)
{
    struct {
        gs_train_options o;
        uint64_t more[3];
    } newer;
    gs_plan_report plan;

    (void)state;
    gs_train_options_sized(&newer.o, sizeof(newer));
    assert_int_equal(newer.o.size, sizeof(newer));
    assert_int_equal(newer.more[0] | newer.more[1] | newer.more[2], 0);
    newer.o.model = "gcn";
    gs_assert_ok(gs_plan_train(&plan, api_store, &newer.o));
    newer.more[2] = 1;
    gs_assert_fails(gs_plan_train(&plan, api_store, &newer.o), GS_EINVAL, "does not know; use a newer library");
}

static void given__a_size_that_was_not_set_is_refused(void **state)
{
    gs_train_options o = api_options();
    gs_generate_options g = {.vertices = 10, .edges = 10};
    gs_partition_options p = {.parts = 2};
    gs_shard_options cut = {.force = true};
    gs_plan_report plan;

    (void)state;
    o.size = 0;
    gs_assert_fails(gs_plan_train(&plan, api_store, &o), GS_EINVAL, "fill it with gs_train_options_init() first");
    o.size = SIZE_MAX;
    gs_assert_fails(gs_train(api_store, &o, NULL), GS_EINVAL, ".size 18446744073709551615");
    gs_assert_fails(gs_generate("rmat", "f", &g), GS_EINVAL, "gs_generate_options_init()");
    gs_assert_fails(gs_partition("i", "s", &p, NULL), GS_EINVAL, "gs_partition_options_init()");
    gs_assert_fails(gs_shard(api_store, 2, "o", &cut), GS_EINVAL, "gs_shard_options_init()");
}

/* ---- the end of all ranks --------------------------------------------------- */

static void say(void *context, const char *line)
{
    fprintf(stderr, "%s %s", (const char *)context, line);
}

/* What a process that ends all ranks says; whoever calls a library has no options with dashes. */
static void given__who_ends_all_ranks_says_why_as_the_caller_would(void **state)
{
    const char *const said[] = {"gnnstream: rank 0: set .io_timeout\n", "ended: rank 0: set .io_timeout"};

    (void)state;
    for (int own = 0; own < 2; own++) {
        char text[128] = "";
        int to[2], status;
        assert_int_equal(pipe(to), 0);
        const pid_t pid = fork();
        if (pid == 0) {
            dup2(to[1], STDERR_FILENO);
            if (own)
                gs_on_abort(say, "ended:");
            gs_ranks_abort("set .io_timeout");
        }
        close(to[1]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        assert_true(read(to[0], text, sizeof(text) - 1) > 0);
        close(to[0]);
        assert_string_equal(text, said[own]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given__null_is_refused_with_words),
        cmocka_unit_test(given__null_is_refused_by_a_layer),
        cmocka_unit_test(given__every_public_function_is_asked),
        cmocka_unit_test(given__a_shorter_struct_has_defaults),
        cmocka_unit_test(given__a_longer_struct_must_end_in_zeros),
        cmocka_unit_test(given__a_size_that_was_not_set_is_refused),
        cmocka_unit_test(given__who_ends_all_ranks_says_why_as_the_caller_would),
    };
    return cmocka_run_group_tests(tests, api_graph_make, api_graph_remove);
}
