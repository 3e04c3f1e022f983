/* io_bed.h - what the tests of src/io share: a folder, files whose every byte
 * is known, and faults that can be repeated. */
#ifndef GS_TESTS_IO_BED_H
#define GS_TESTS_IO_BED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/io.h"

typedef enum bed_fault { BED_NONE, BED_SHORT, BED_INTERRUPT, BED_FAULTS } bed_fault;

/* One combination that a test body runs in. */
typedef struct bed_case {
    gs_io_backend backend;
    bool buffered;    /* as on a file system without O_DIRECT */
    bed_fault fault;
    char name[64];    /* "uring direct short" */
} bed_case;

typedef struct bed {
    const bed_case *c;
    gs_io *io;
    char dir[256];
    char path[300];
    uint32_t rng;       /* of the faults */
    uint8_t *memory;    /* registered, page aligned */
    uint64_t bytes;
    uint64_t live;      /* heap bytes before it was opened */
} bed;

/* A folder under the current one for a group of tests: its setup, and its teardown, which fails where something is
 * left in it. */
extern char bed_dir[64];
int bed_dir_make(void **state);
int bed_dir_remove(void **state);

/* Opens a gs_io with a registered area of `bytes` and a folder under the
 * current one; fails the test where it cannot. */
void bed_open(bed *b, const bed_case *c, uint32_t requests, uint32_t depth, uint64_t piece_bytes, uint64_t bytes);
void bed_close(bed *b);
/* Adds DIR/NAME; its path is then in b->path. */
uint32_t bed_add(bed *b, const char *name, gs_io_mode mode);

/* Byte of a test file at `offset`; different for different salts. */
uint8_t bed_byte(uint64_t offset, uint32_t salt);
void bed_fill(uint8_t *dst, uint64_t offset, uint64_t bytes, uint32_t salt);
/* Fails the test at the first byte that differs. */
void bed_expect(const uint8_t *got, uint64_t offset, uint64_t bytes, uint32_t salt);
/* Writes DIR/NAME with stdio, so that what io reads was not written by io. */
void bed_make_file(bed *b, const char *name, uint64_t bytes, uint32_t salt);
/* Reads b->path with stdio and compares. */
void bed_expect_file(const bed *b, uint64_t bytes, uint32_t salt);

/* Submits, reaping when the queue is full; completions are counted and must be GS_OK. */
void bed_submit(bed *b, const gs_io_request *r);
void bed_drain(bed *b);

uint32_t bed_random(uint32_t *state); /* xorshift */
void bed_expect_text(const char *part); /* in gs_last_error() */

#endif /* GS_TESTS_IO_BED_H */
