/* io_fixture.h - what the tests of src/io share: a folder, files whose every byte
 * is known, and faults that can be repeated. */
#ifndef GS_TESTS_IO_FIXTURE_H
#define GS_TESTS_IO_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/io.h"

typedef enum fixture_fault { FIXTURE_NONE, FIXTURE_SHORT, FIXTURE_INTERRUPT, FIXTURE_FAULTS } fixture_fault;

/* One combination that a test body runs in. */
typedef struct fixture_case {
    gs_io_backend backend;
    bool buffered;    /* as on a file system without O_DIRECT */
    fixture_fault fault;
    char name[64];    /* "uring direct short" */
} fixture_case;

typedef struct fixture {
    const fixture_case *c;
    gs_io *io;
    char dir[256];
    char path[300];
    uint32_t rng;       /* of the faults */
    uint8_t *memory;    /* registered, page aligned */
    uint64_t bytes;
    uint64_t live;      /* heap bytes before it was opened */
} fixture;

/* A folder under the current one for a group of tests: its setup, and its teardown, which fails where something is
 * left in it. */
extern char fixture_dir[64];
int fixture_dir_make(void **state);
int fixture_dir_remove(void **state);

/* Opens a gs_io with a registered area of `bytes` and a folder under the
 * current one; fails the test where it cannot. */
void fixture_open(fixture *b, const fixture_case *c, uint32_t requests, uint32_t depth, uint64_t piece_bytes,
                  uint64_t bytes);
void fixture_close(fixture *b);
/* Adds DIR/NAME; its path is then in b->path. */
uint32_t fixture_add(fixture *b, const char *name, gs_io_mode mode);

/* Byte of a test file at `offset`; different for different salts. */
uint8_t fixture_byte(uint64_t offset, uint32_t salt);
void fixture_fill(uint8_t *dst, uint64_t offset, uint64_t bytes, uint32_t salt);
/* Fails the test at the first byte that differs. */
void fixture_expect(const uint8_t *got, uint64_t offset, uint64_t bytes, uint32_t salt);
/* Writes DIR/NAME with stdio, so that what io reads was not written by io. */
void fixture_make_file(fixture *b, const char *name, uint64_t bytes, uint32_t salt);
/* Reads b->path with stdio and compares. */
void fixture_expect_file(const fixture *b, uint64_t bytes, uint32_t salt);

/* Submits, reaping when the queue is full; completions are counted and must be GS_OK. */
void fixture_submit(fixture *b, const gs_io_request *r);
void fixture_drain(fixture *b);

uint32_t fixture_random(uint32_t *state); /* xorshift */
void fixture_expect_text(const char *part); /* in gs_last_error() */

#endif /* GS_TESTS_IO_FIXTURE_H */
