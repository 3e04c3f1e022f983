/* input_files.h - what an input consists of: its files, their checked sizes, and integers of any type out of them.
 *
 * Ids are input ids. */
#ifndef GS_PARTITION_INPUT_FILES_H
#define GS_PARTITION_INPUT_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/external_sort.h"
#include "base/npy.h"
#include "base/train_task.h"
#include "partition/job.h"

typedef struct gs_part_file {
    gs_npy npy; /* fd -1: not there */
    char *path;
    bool any_order;  /* set before it is opened: an array in Fortran order will do, too */
    bool transposed; /* it was one: npy is its transpose */
    char *opened_as; /* the name by which a temporary file can be opened; NULL: path */
} gs_part_file;

typedef enum gs_part_form { GS_FORM_NONE, GS_FORM_DENSE, GS_FORM_CSR, GS_FORM_RANDOM } gs_part_form;

typedef struct gs_part_input {
    char *path;
    gs_status (*parse)(struct gs_part_input *in, gs_part_job *job); /* of a text file; else NULL */
    uint64_t vertices, edges;
    bool typed, weighted;
    bool both_ways; /* the format has each edge in both directions, with one weight */
    bool undirected; /* each edge stands for both directions, as .undirected makes them */
    bool konect;     /* of a list: its columns are KONECT's */
    bool two_rows;  /* `edge` is [2, E], all sources and then all destinations; else [E, 2] */
    uint32_t edge_types; /* stated, or found while reading: largest type + 1 */
    uint32_t classes, features;
    gs_part_form form;
    gs_part_file edge, type, weight;       /* npy */
    gs_part_file feature;                  /* dense */
    gs_part_file indptr, indices, data;    /* CSR */
    gs_part_file label, split[3];          /* train, valid, test */
    gs_train_task task;                          /* that the labels are of, once they are loaded */
    gs_external_sort *text;                        /* edges of a text file, one stream */
    struct gs_relations *relations;        /* edge types that are words (partition/relations.h); NULL: numbers */
    struct gs_names *names;                /* of the vertices (partition/names.h); NULL: ids are as they are */
    char note[160];
} gs_part_input;

/* Not an error where the file is not there and not `required`: npy.fd is -1 then. */
gs_status gs_part__file_open(gs_part_file *f, const char *dir, const char *name, bool required);
void gs_part__file_close(gs_part_file *f);
/* n integers of any type to i64; values above INT64_MAX become INT64_MAX. */
void gs_part__to_i64(int64_t *dst, const void *src, gs_dtype from, uint64_t n);
/* Such a value for people, until the block is left: INT64_MAX stands for larger ones, too. */
#define GS_PART_I64(v) gs_part__i64_words((char[32]){0}, v)
const char *gs_part__i64_words(char text[32], int64_t v);
bool gs_part__is_integer(gs_dtype t);
/* n numbers of any type to f32, the nearest. */
void gs_part__to_f32(float *dst, const void *src, gs_dtype from, uint64_t n);
/* Numbers to f64, of any type of at most 53 bits. */
void gs_part__to_f64(double *dst, const void *src, gs_dtype from, uint64_t n);

#endif /* GS_PARTITION_INPUT_FILES_H */
