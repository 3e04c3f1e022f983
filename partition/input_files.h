/* input_files.h - what an input consists of: its files, their checked sizes, and integers of any type out of them.
 *
 * Ids are input ids. */
#ifndef GS_PARTITION_INPUT_FILES_H
#define GS_PARTITION_INPUT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/external_sort.h"
#include "base/npy.h"
#include "partition/job.h"

typedef struct gs_part_file {
    gs_npy npy; /* fd -1: not there */
    char *path;
    bool any_order;  /* set before it is opened: an array in Fortran order will do, too */
    bool transposed; /* it was one: npy is its transpose */
    char *opened_as; /* the name by which a temporary file can be opened; NULL: path */
} gs_part_file;

/* Arrays of features with names of their own, in the order of these: of features/, or of edge_features/. */
typedef struct gs_part_named {
    uint32_t count;
    char name[GS_MOST_NAMED_FEATURES][GS_TYPE_NAME_BYTES];
    gs_part_file file[GS_MOST_NAMED_FEATURES];
} gs_part_named;

typedef enum gs_part_form { GS_FORM_NONE, GS_FORM_DENSE, GS_FORM_CSR, GS_FORM_RANDOM } gs_part_form;

typedef struct gs_part_input {
    char *path;
    const struct gs_part_format *format;
    uint64_t vertices, edges;
    bool typed, weighted;
    bool both_ways; /* the format has each edge in both directions, with one weight */
    bool undirected; /* each edge stands for both directions, as .undirected makes them */
    bool konect;     /* of a list: its columns are KONECT's */
    bool two_rows;  /* `edge` is [2, E], all sources and then all destinations; else [E, 2] */
    uint32_t edge_types; /* stated, or found while reading: largest type + 1 */
    uint32_t classes, features;
    uint32_t edge_features; /* numbers of an edge; 0: none */
    gs_part_form form;
    gs_part_file edge, type, weight, edge_feature; /* npy */
    gs_part_file feature;                  /* dense */
    gs_part_file indptr, indices, data;    /* CSR */
    gs_part_file label, split[3];          /* train, valid, test */
    gs_part_file link[3], link_type[3], link_label[3]; /* pairs that losses on edges are of, likewise */
    gs_train_task task;                          /* that the labels are of, once they are loaded */
    gs_external_sort *text;                        /* edges of a text file, one stream */
    uint64_t held_out[2];                  /* records behind them: pairs of the validation's split, of the test's */
    struct gs_relations *relations;        /* edge types that are words (edge_text.h); NULL: numbers */
    gs_type_table *types;                  /* of vertices; NULL: one, without a name */
    gs_part_named *named[2];               /* of vertices, of edges; NULL: none */
    gs_feature_table *names_of;            /* columns that these became; NULL: none */
    uint64_t label_first, label_vertices;  /* those that labels and splits are of: all, or the vertices of one type */
    struct gs_names *names;                /* of the vertices (edge_text.h); NULL: ids are as they are */
    char note[160];
} gs_part_input;

/* -- formats ---------------------------------------------------------------- */

/* What there is to know a file's format by; nothing of a folder. */
typedef struct gs_part_head {
    const char *bytes; /* its first ones, unpacked, and a 0 */
    const char *line;  /* the first line that is no comment, and a 0 */
    bool comment;      /* it begins with a comment */
} gs_part_head;

typedef struct gs_part_format {
    const char *name;  /* of .format; NULL after the last of a family */
    const char *words; /* what it is, for the list of all */
    const char *has[4]; /* a folder's: it has one of these, unless `looks` asks for more; of a file none */
    bool (*looks)(const char *path, const gs_part_head *head); /* is it one of these? */
    gs_status (*open)(gs_part_input *in, gs_part_job *job); /* checks headers, without a temporary file; or NULL */
    gs_status (*read)(gs_part_input *in, gs_part_job *job); /* what has to be parsed; or NULL */
} gs_part_format;

/* Families, each with its source, in which formats look for theirs in this order; input.c lists them. */
extern const gs_part_format gs_part__folder_formats[], gs_part__npz_formats[],
    gs_part__matrix_formats[], gs_part__list_formats[], gs_part__ogb_formats[], gs_part__graphbolt_formats[],
    gs_part__types_formats[], gs_part__igb_formats[];

/* An array of a folder: what it is, and where. */
typedef enum gs_part_kept {
    GS_PART_NPY,   /* a .npy file */
    GS_PART_TABLE, /* NAME.csv.gz stands for .csv and .csv.zst, too; rows of numbers of type `as` */
    GS_PART_OWN    /* the format has its own way to open it, or none */
} gs_part_kept;
typedef struct gs_part_array {
    size_t role;      /* the file of a gs_part_input: GS_PART_ROLE(edge) */
    const char *name; /* from the input's folder */
    gs_part_kept kept;
    gs_dtype as;
    const char *other[4]; /* names that others give it: where it is missing, a warning asks whether that was meant */
} gs_part_array;
#define GS_PART_ROLE(field) offsetof(gs_part_input, field)

/* Opens all that are there, of a table that ends with {0}, in the folder `dir`. A .npy file of edges that is not there
 * is GS_ENOTFOUND. */
gs_status gs_part__arrays_open(gs_part_input *in, gs_part_job *job, const char *dir, const gs_part_array *table);
/* One table of numbers, "NAME.csv.gz", packed or not. Not an error where it is not there. */
gs_status gs_part__table_open(gs_part_file *f, gs_part_job *job, const char *dir, const char *name, gs_dtype as);
/* Of the folder `dir` in `path` ("": itself), says by the job's `warn` which files nothing of the table is: a line for
 * each whose name is near one that is missing, or another's for it, and one for all others. Folders, links to them and
 * names that begin with a dot are nobody's business. Never fails: what cannot be listed is not. */
void gs_part__arrays_warn(const char *path, const char *dir, const gs_part_array *table, const gs_part_job *job);
/* The same of those of the edges alone: sets .edges, .two_rows, .weighted, .edge_features. */
gs_status gs_part__edges_check(gs_part_input *in);
/* IGB's features of the vertices of a type, with a header or without, and where it has some their labels and split. */
gs_status gs_part__igb_vertices(gs_part_input *part, gs_part_job *job, const char *processed, const char *type);
/* num_nodes of meta.json in the folder `dir`; *out stays where it does not say. */
gs_status gs_part__stated_vertices(uint64_t *out, const char *dir);
/* Checks that the open files fit together. `vertices`, `features`: as stated, or 0. */
gs_status gs_part__files_check(gs_part_input *in, uint64_t vertices, uint64_t features);
/* Pairs of a split that losses on edges are of, as the edges of an input of their own, which the caller does not close;
 * its edges are 0 where there are none, and its labels theirs. Checks their shapes, and that they have types where
 * edges do, and labels where pairs of another split do. GS_EFORMAT. */
gs_status gs_part__links_of(gs_part_input *out, const gs_part_input *in, uint32_t split);
/* The one of `names` (NULL after the last) that is `name` but for a letter or two; NULL where none is. */
const char *gs_part__near_name(const char *name, const char *const *names);
/* The same of the files in the folder of `folder`/`name`, as a path from `folder`; false where none is. */
bool gs_part__near_file(char *out, size_t room, const char *folder, const char *name);

/* -- files ------------------------------------------------------------------ */

/* Not an error where the file is not there and not `required`: npy.fd is -1 then. */
gs_status gs_part__file_open(gs_part_file *f, const char *dir, const char *name, bool required);
void gs_part__file_close(gs_part_file *f);
/* All files of an input: none is there, as before they are opened; closed. */
void gs_part__files_reset(gs_part_input *in);
void gs_part__files_close(gs_part_input *in);
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

/* -- one piece of the edge list as plain arrays. */

/* Owned by the caller. */
typedef struct gs_part_edge_block {
    uint32_t *src, *dst, *type;
    float *weight;
    uint64_t *mark; /* of the weight and features of an edge, where there are features: equal ones have the same */
    char *row;      /* of some edges, as in the file */
    void *raw; /* as in the file */
    uint64_t cap, count, first;
    gs_sort_cursor at; /* text only */
    gs_arena memory;
} gs_part_edge_block;

gs_status gs_part__edge_block_make(gs_part_edge_block *b, const gs_part_input *in, uint64_t edges);
void gs_part__edge_block_free(gs_part_edge_block *b);

/* -- edges by number out of the arrays of an input. */

/* Edges [first, first + count), checked. */
gs_status gs_part__npy_edges(const gs_part_input *in, gs_part_edge_block *b, uint64_t first, uint64_t count);
/* posix_fadvise() for these edges, as far as there are so many. */
void gs_part__npy_advise(const gs_part_input *in, uint64_t first, uint64_t count, int advice);

/* -- the entries of a CSR matrix, front to back, a piece at a time.
 *
 * Three arrays: where each row begins and the last one ends, the column of each entry, and, where there is one, its
 * value. What they say is checked as it is read.
 */

typedef struct gs_csr_reader {
    const gs_part_file *indptr, *indices, *data; /* set by the caller, as are the next three */
    uint64_t rows, columns;
    const char *columns_are; /* "vertices", for errors */
    int64_t *column; /* [have] of entries from `from` on */
    float *value;    /* [have] the same, if they were asked for */
    uint64_t from, have;
    int64_t *end;    /* [ends] indptr from `first_end` on */
    uint64_t first_end, ends;
    void *raw;
    uint64_t piece;
    gs_arena memory; /* of the arrays */
} gs_csr_reader;

/* Room for `piece` entries at a time. The caller frees r->memory, also after GS_ENOMEM. */
gs_status gs_csr__alloc(gs_csr_reader *r, uint64_t piece, const char *path);

/* *at = indptr[row], for row from 0 to `rows`, each `before` or more: where the row begins or, for `rows`, the last one
 * ends. */
gs_status gs_csr__bound(gs_csr_reader *r, uint64_t row, uint64_t before, uint64_t *at);
/* The entries from `at` on come to column[] and, with `values`, to value[]. */
gs_status gs_csr__entries(gs_csr_reader *r, uint64_t at, bool values);
/* value[0 .. count) = the values from `at` on. */
gs_status gs_csr__values(gs_csr_reader *r, uint64_t at, uint64_t count);

/* -- an array that is not in the input as it is read: unpacked, parsed or put together, it lies in a
 * temporary file without a name, and is read as a .npy file of the input is. */

/* Written front to back by one thread. */
typedef struct gs_made {
    gs_part_file *file;
    char *place; /* what a write that fails is about: the folder that is full, and what was to go there */
    char *buffer;
    uint64_t fill, offset; /* bytes */
} gs_made;

/* Takes `path`, by which messages name the array (NULL: no memory for it). Free after a failure too. */
gs_status gs_part__made_begin(gs_made *m, gs_part_file *file, const gs_part_job *job, char *path);
gs_status gs_part__made_put(gs_made *m, const void *bytes, uint64_t count);
/* `count` bytes of this value. */
gs_status gs_part__made_fill(gs_made *m, int value, uint64_t count);
/* All is written: [rows, columns] of `as`; columns 1 is one dimension. */
gs_status gs_part__made_end(gs_made *m, gs_dtype as, uint64_t rows, uint64_t columns);
/* All is written: the bytes of a .npy file. */
gs_status gs_part__made_end_npy(gs_made *m);
void gs_part__made_free(gs_made *m);

/* -- features with names (input_types.c) -------------------------------------------- */

#define GS_MOST_EDGE_FEATURES (1u << 18) /* a mebibyte of an edge */

/* Opens features/NAME.npy and edge_features/NAME.npy of a folder, where it has such. */
gs_status gs_part__named_open(gs_part_input *in, const gs_part_job *job, const char *folder);
/* Has each so many rows? GS_EFORMAT. */
gs_status gs_part__named_check(const gs_part_input *in, uint64_t rows, bool of_edges);
/* Rows of in->feature and in->edge_feature, and the arrays with names behind them, as one array in a temporary file;
 * sets in->names_of. */
gs_status gs_part__named_join(gs_part_input *in, gs_part_job *job);
void gs_part__named_close(gs_part_input *in);

/* -- rows of numbers in a text, as an array in a temporary file.
 *
 * The array is read as a .npy file is; the disk it takes goes back when it is closed. */

/* Commas between the numbers, no header, each row as long as the first; plain or packed. `as` is GS_I64, or GS_F32 or
 * GS_F64, in which an empty field is NaN. Takes `path`, which is freed with the file, on failure too. */
gs_status gs_part__table_read(gs_part_file *f, gs_part_job *job, char *path, gs_dtype as);

/* -- any input that can be read: what kind it is, and its edges by number. */

/* Opens and checks headers, without a temporary file; then reads what is text. */
gs_status gs_part__input_open(gs_part_input *in, gs_part_job *job, const char *path);
gs_status gs_part__input_parse(gs_part_input *in, gs_part_job *job);
void gs_part__input_close(gs_part_input *in);
/* Edges [first, first + count), checked. With text input `first` must follow
 * the block's last (one reader). */
gs_status gs_part__input_edges(const gs_part_input *in, gs_part_edge_block *b, uint64_t first, uint64_t count);

/* -- the arrays in a .npz file, by name.
 *
 * An array that is stored as it is (numpy.savez) is read in place; one that is compressed (savez_compressed) is
 * unpacked into a temporary file first. One thread. */

typedef struct gs_npz gs_npz;

/* Reads the directory. *path must live as long. GS_EFORMAT where it is no zip file, or a damaged one. */
gs_status gs_part__npz_open(gs_npz **out, const char *path);
void gs_part__npz_close(gs_npz *z); /* NULL is allowed */
GS_ENDS_BY(gs_npz, gs_part__npz_close)
uint64_t gs_part__npz_count(const gs_npz *z);
/* Without .npy, as numpy.load() names it. */
const char *gs_part__npz_name(const gs_npz *z, uint64_t k);
bool gs_part__npz_has(const gs_npz *z, const char *name);
/* Not an error where the array is not there: npy.fd is -1 then. */
gs_status gs_part__npz_array(gs_part_file *f, gs_npz *z, gs_part_job *job, const char *name);

/* -- a graph whose vertices and edges are of several types, put together as one input.
 *
 * A reader of a format opens the arrays of each type; joining them makes the arrays that an input of one type has, in
 * temporary files. Vertices are numbered type after type, as the table has them; a relation is a type of edges. */

typedef struct gs_part_types {
    gs_type_table *table; /* names, ends of relations, vertices where they are stated; becomes the input's */
    gs_part_input *part;  /* [GS_PART_MOST_TYPES] by gs_part__type_part() and gs_part__relation_part() */
} gs_part_types;

#define GS_PART_MOST_TYPES (GS_MOST_VERTEX_TYPES + GS_MOST_RELATIONS)

/* None yet. gs_part__types_free() frees it, also after GS_ENOMEM. */
gs_status gs_part__types_make(gs_part_types *t, const char *path);
void gs_part__types_free(gs_part_types *t);

/* The type of this name, by which *out is its number; a new one where there is none and `add`. `place`: what names it,
 * for messages. GS_EFORMAT: no such type, or no name that a type can have; GS_EUNSUPPORTED: too many. */
gs_status gs_part__type_find(uint32_t *out, gs_part_types *t, const char *name, bool add, const char *place);
/* A new relation of the last number. Errors likewise. */
gs_status gs_part__relation_add(gs_part_types *t, const char *name, uint32_t source, uint32_t destination,
                                const char *place);
/* Where the arrays are opened: of a type features, labels, splits; of a relation edges, weights, features. */
gs_part_input *gs_part__type_part(const gs_part_types *t, uint32_t type);
gs_part_input *gs_part__relation_part(const gs_part_types *t, uint32_t relation);

/* Checks that all fits together and makes *in of it, which takes the table. With .undirected each relation has a
 * reverse, rev_NAME. */
gs_status gs_part__types_join(gs_part_input *in, gs_part_job *job, gs_part_types *t);

#endif /* GS_PARTITION_INPUT_FILES_H */
