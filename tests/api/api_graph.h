/* api_graph.h - a small graph of planted classes and its store, for the tests of the public interface. */
#ifndef GS_TESTS_API_GRAPH_H
#define GS_TESTS_API_GRAPH_H

#include "gnnstream.h"

#define API_VERTICES 400u
#define API_CLASSES 3u

/* Makes them in a folder of their own, once; cmocka's group functions. */
int api_graph_make(void **state);
int api_graph_remove(void **state);
extern char *api_folder;
extern const char *api_store;

/* A small GCN, 8 wide, 6 epochs, one thread, on the device that the environment's GS_TEST_DEVICE names, or the cpu. */
gs_train_options api_options(void);

/* Both are there, with the same bytes. */
void api_assert_same_file(const char *a, const char *b);

#endif /* GS_TESTS_API_GRAPH_H */
