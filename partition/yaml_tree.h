/* yaml_tree.h - a YAML file as a tree of mappings, lists and words, by libyaml; each node knows its line. */
#ifndef GS_PARTITION_YAML_TREE_H
#define GS_PARTITION_YAML_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/job.h"

typedef struct gs_yaml gs_yaml;
/* A node is a number of the tree; 0 is none, and what is asked of it is none again. */
typedef int gs_yaml_node;

/* Files above 1 MiB are GS_EFORMAT. *path must live as long. */
gs_status gs_part__yaml_open(gs_yaml **out, const char *path);
void gs_part__yaml_close(gs_yaml *y); /* NULL is allowed */
gs_yaml_node gs_part__yaml_root(const gs_yaml *y);
uint64_t gs_part__yaml_line(const gs_yaml *y, gs_yaml_node n); /* from 1 */

/* The value of `key` in a mapping; 0 where there is none, or null. */
gs_yaml_node gs_part__yaml_get(const gs_yaml *y, gs_yaml_node n, const char *key);
uint64_t gs_part__yaml_length(const gs_yaml *y, gs_yaml_node n); /* of a list; 0 of anything else */
gs_yaml_node gs_part__yaml_item(const gs_yaml *y, gs_yaml_node n, uint64_t k);
const char *gs_part__yaml_word(const gs_yaml *y, gs_yaml_node n); /* NULL where it is no word */
/* GS_EFORMAT where it is there and no whole number of 0 or more; else *out, which stays where there is none. */
gs_status gs_part__yaml_number(const gs_yaml *y, uint64_t *out, gs_yaml_node n, const char *what);
/* GS_EFORMAT with file and line. */
gs_status gs_part__yaml_wrong(const gs_yaml *y, gs_yaml_node n, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Says by the job's `warn` which keys of a mapping are none of `known` (NULL after the last). */
void gs_part__yaml_warn_of_keys(const gs_yaml *y, gs_yaml_node n, const char *const *known, const gs_part_job *job);

#endif /* GS_PARTITION_YAML_TREE_H */
