#include "api_graph.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/support.h"

#include "base/alloc.h"
#include "base/file.h"

char *api_folder;
const char *api_store;

int api_graph_make(void **state)
{
    gs_generate_options g;
    gs_partition_options p;
    static char path[512];

    (void)state;
    api_folder = gs_test_temp_dir();
    snprintf(path, sizeof(path), "%s/store", api_folder);
    api_store = path;
    gs_generate_options_init(&g);
    g.vertices = API_VERTICES;
    g.edges = 3000;
    g.features = 6;
    g.classes = API_CLASSES;
    gs_assert_ok(gs_generate("sbm", gs_test_path(api_folder, "graph"), &g));
    gs_partition_options_init(&p);
    p.parts = 2;
    p.method = "random";
    gs_assert_ok(gs_partition(gs_test_path(api_folder, "graph"), api_store, &p, NULL));
    return 0;
}

int api_graph_remove(void **state)
{
    (void)state;
    gs_test_temp_remove(api_folder);
    return 0;
}

gs_train_options api_options(void)
{
    gs_train_options o;

    gs_train_options_init(&o);
    o.model = "gcn";
    o.hidden = 8;
    o.epochs = 6;
    o.lr = 0.05;
    o.keep = "last";
    o.threads = 1;
    if (getenv("GS_TEST_DEVICE") != NULL)
        o.device = getenv("GS_TEST_DEVICE");
    return o;
}

void api_assert_same_file(const char *a, const char *b)
{
    uint64_t bytes[2];
    char *text[2];
    gs_assert_ok(gs_file_read_all(&text[0], &bytes[0], a, 1 << 20));
    gs_assert_ok(gs_file_read_all(&text[1], &bytes[1], b, 1 << 20));
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(text[0], text[1], bytes[0]);
    gs_free(text[0]);
    gs_free(text[1]);
}
