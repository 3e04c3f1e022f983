/* support.h - what test programs share: comparisons that print both sides, a
 * folder of their own, and the way to the real graphs.
 *
 * Includes cmocka.h with what it needs. Everything that fails does so through
 * cmocka, at the caller's line. One thread.
 */
#ifndef GS_TESTS_SUPPORT_H
#define GS_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/status.h"

/* |a - b| <= rtol * max(|a|, |b|); equal infinities pass, NaN never does. */
#define gs_assert_close(a, b, rtol) gs_test_close((a), (b), (rtol), #a, __FILE__, __LINE__)
/* |got[i] - want[i]| <= atol + rtol * |want[i]| for n floats or doubles; the
 * worst offender is printed with its index, both numbers and the tolerance. */
#define gs_assert_all_close(got, want, n, rtol, atol) \
    gs_test_all_close((got), (want), (n), (rtol), (atol), #got, __FILE__, __LINE__)
#define gs_assert_all_close_f64(got, want, n, rtol, atol) \
    gs_test_all_close_f64((got), (want), (n), (rtol), (atol), #got, __FILE__, __LINE__)

/* The call gives GS_OK; prints gs_last_error() where it does not. */
#define gs_assert_ok(call) gs_test_status((call), GS_OK, NULL, #call, __FILE__, __LINE__)
/* The call gives `status`, and gs_last_error() is one line that contains `part`
 * (NULL: not looked at). */
#define gs_assert_fails(call, status, part) gs_test_status((call), (status), (part), #call, __FILE__, __LINE__)

void gs_test_close(double a, double b, double rtol, const char *what, const char *file, int line);
void gs_test_all_close(const float *got, const float *want, size_t n, double rtol, double atol, const char *what,
                       const char *file, int line);
void gs_test_all_close_f64(const double *got, const double *want, size_t n, double rtol, double atol,
                           const char *what, const char *file, int line);
void gs_test_status(gs_status got, gs_status want, const char *part, const char *what, const char *file, int line);

/* Does the environment ask for every case (GS_TEST_ALL, as `tools/check --all` sets it)? Else a test takes of its
 * broadest lists what tells one thing from another. */
bool gs_test_all(void);
/* Is `i` of a list one to look at? One of `of` is, but where every case is asked for. */
bool gs_test_takes(size_t i, size_t of);

/* A new empty folder under $TMPDIR or /tmp. Free it, and all in it, with
 * gs_test_temp_remove(); a test that fails leaves none behind either: what is
 * left is removed when the program ends. */
char *gs_test_temp_dir(void);
void gs_test_temp_remove(char *dir);

/* cmocka setup and teardown with such a folder as *state. */
int gs_test_temp_setup(void **state);
int gs_test_temp_teardown(void **state);

/* "dir/name", printf style; valid until the program ends, nothing to free. */
const char *gs_test_path(const char *dir, const char *name, ...) __attribute__((format(printf, 2, 3)));
void gs_test_write_file(const char *path, const void *data, size_t bytes);
/* How many names a folder has, which must be there. */
int gs_test_entries(const char *dir);
/* Fails where the file's bytes are not this text. */
void gs_test_file_is(const char *path, const char *want);

/* Path of `name` within $GS_TEST_DATA, or the folder of real graphs beside the
 * sources; NULL where it is not there. Lives as gs_test_path() does. */
const char *gs_test_data(const char *name);
/* As gs_test_data(), but says so and skips the running test where it is not there. */
const char *gs_test_need_data(const char *name);

#endif /* GS_TESTS_SUPPORT_H */
