#include "support/support.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

#define TEMP_DIRS 64

/* Every path given out, kept until the program ends so that none goes stale. */
typedef struct given_path {
    struct given_path *next;
    char text[];
} given_path;

static char *temp_dirs[TEMP_DIRS];
static given_path *given_paths;

static bool is_close(double a, double b, double tolerance)
{
    return a == b || fabs(a - b) <= tolerance; /* a == b: infinities; NaN fails both */
}

void gs_test_close(double a, double b, double rtol, const char *what, const char *file, int line)
{
    const double tolerance = rtol * fmax(fabs(a), fabs(b));
    if (is_close(a, b, isfinite(tolerance) ? tolerance : 0))
        return;
    print_error("%s: got %.9g, want %.9g, difference %.3g, allowed %.3g (rtol %.3g)\n", what, a, b, fabs(a - b),
                tolerance, rtol);
    _fail(file, line);
}

/* Where the arrays differ most, as a multiple of what is allowed. */
typedef struct worst {
    size_t index, bad;
    double got, want, excess;
} worst;

static void look(worst *w, size_t i, double got, double want, double rtol, double atol)
{
    const double allowed = isfinite(want) ? atol + rtol * fabs(want) : 0;
    if (is_close(got, want, allowed))
        return;
    const double over = fabs(got - want) / fmax(allowed, 1e-300);
    const double excess = isnan(over) ? INFINITY : over;
    if (w->bad++ == 0 || excess > w->excess)
        *w = (worst){.index = i, .bad = w->bad, .got = got, .want = want, .excess = excess};
}

static void report(const worst *w, size_t n, double rtol, double atol, const char *what, const char *file, int line)
{
    if (w->bad == 0)
        return;
    print_error("%s: %zu of %zu differ; worst at [%zu]: got %.9g, want %.9g, difference %.3g, allowed %.3g "
                "(rtol %.3g, atol %.3g)\n",
                what, w->bad, n, w->index, w->got, w->want, fabs(w->got - w->want), atol + rtol * fabs(w->want),
                rtol, atol);
    _fail(file, line);
}

void gs_test_all_close(const float *got, const float *want, size_t n, double rtol, double atol, const char *what,
                       const char *file, int line)
{
    worst w = {0};
    for (size_t i = 0; i < n; i++)
        look(&w, i, (double)got[i], (double)want[i], rtol, atol);
    report(&w, n, rtol, atol, what, file, line);
}

void gs_test_all_close_f64(const double *got, const double *want, size_t n, double rtol, double atol,
                           const char *what, const char *file, int line)
{
    worst w = {0};
    for (size_t i = 0; i < n; i++)
        look(&w, i, got[i], want[i], rtol, atol);
    report(&w, n, rtol, atol, what, file, line);
}

void gs_test_status(gs_status got, gs_status want, const char *part, const char *what, const char *file, int line)
{
    const bool as_wanted = part == NULL || strstr(gs_last_error(), part) != NULL;
    const bool one_line = part == NULL || strchr(gs_last_error(), '\n') == NULL;

    if (got == want && as_wanted && one_line)
        return;
    print_error("%s: got \"%s\", want \"%s\"; last error: \"%s\"", what, gs_status_text(got),
                gs_status_text(want), gs_last_error());
    if (!as_wanted)
        print_error(", which does not contain \"%s\"", part);
    if (!one_line)
        print_error(", which is more than one line");
    print_error("\n");
    _fail(file, line);
}

/* What is left at exit: folders of tests that failed, and the paths. */
static void clean_up(void)
{
    for (int i = 0; i < TEMP_DIRS; i++)
        if (temp_dirs[i] != NULL)
            gs_test_temp_remove(temp_dirs[i]);
    while (given_paths != NULL) {
        given_path *const next = given_paths->next;
        free(given_paths);
        given_paths = next;
    }
}

static void clean_up_at_exit(void)
{
    static bool registered;
    if (!registered)
        atexit(clean_up);
    registered = true;
}

char *gs_test_temp_dir(void)
{
    const char *const base = getenv("TMPDIR");
    char path[PATH_MAX];
    int slot = 0;

    snprintf(path, sizeof(path), "%s/gnnstream-test-XXXXXX", base != NULL && base[0] != '\0' ? base : "/tmp");
    while (slot < TEMP_DIRS && temp_dirs[slot] != NULL)
        slot++;
    if (slot == TEMP_DIRS || mkdtemp(path) == NULL) {
        print_error("%s: cannot make a folder for the test: %s\n", path,
                    slot == TEMP_DIRS ? "too many are open" : strerror(errno));
        fail();
    }
    clean_up_at_exit();
    temp_dirs[slot] = strdup(path);
    return temp_dirs[slot];
}

void gs_test_temp_remove(char *dir)
{
    for (int i = 0; i < TEMP_DIRS; i++)
        if (temp_dirs[i] == dir)
            temp_dirs[i] = NULL;
    if (gs_remove_tree(dir) != GS_OK)
        print_error("%s\n", gs_last_error());
    free(dir);
}

int gs_test_temp_setup(void **state)
{
    *state = gs_test_temp_dir();
    return 0;
}

int gs_test_temp_teardown(void **state)
{
    gs_test_temp_remove(*state);
    return 0;
}

bool gs_test_all(void) { return getenv("GS_TEST_ALL") != NULL; }

bool gs_test_takes(size_t i, size_t of) { return gs_test_all() || i % of == 0; }

const char *gs_test_path(const char *dir, const char *name, ...)
{
    char tail[PATH_MAX];
    va_list args;

    va_start(args, name);
    vsnprintf(tail, sizeof(tail), name, args);
    va_end(args);

    const size_t bytes = strlen(dir) + 1 + strlen(tail) + 1;
    given_path *const path = malloc(sizeof(*path) + bytes);
    if (path == NULL) {
        print_error("no memory for a path\n");
        fail();
        return NULL;
    }
    snprintf(path->text, bytes, "%s/%s", dir, tail);
    path->next = given_paths;
    given_paths = path;
    clean_up_at_exit();
    return path->text;
}

void gs_test_write_file(const char *path, const void *data, size_t bytes)
{
    /* A file that is written over is cut at the end, not emptied first: ext4 sends what stands in an emptied one to the
     * disk when it is closed, and emptying it again waits for that. */
    FILE *f = fopen(path, "r+b");
    if (f == NULL)
        f = fopen(path, "wb");
    const bool ok = f != NULL && fwrite(data, 1, bytes, f) == bytes && fflush(f) == 0 &&
                    ftruncate(fileno(f), (off_t)bytes) == 0;
    if ((f != NULL && fclose(f) != 0) || !ok) {
        print_error("%s: cannot write it for the test: %s\n", path, strerror(errno));
        fail();
    }
}

int gs_test_entries(const char *dir)
{
    DIR *const d = opendir(dir);
    int n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

void gs_test_file_is(const char *path, const char *want)
{
    char *text = NULL;
    uint64_t bytes = 0;
    gs_assert_ok(gs_file_read_all(&text, &bytes, path, 1 << 20));
    assert_string_equal(text, want);
    gs_free(text);
}

const char *gs_test_data(const char *name)
{
    const char *const folder = getenv("GS_TEST_DATA");
    const char *const path = folder != NULL && folder[0] != '\0'
                                 ? gs_test_path(folder, "%s", name)
                                 : gs_test_path(GS_TEST_SOURCE_ROOT, "../shared/data/%s", name);
    return access(path, R_OK) == 0 ? path : NULL;
}

const char *gs_test_need_data(const char *name)
{
    const char *const path = gs_test_data(name);
    if (path == NULL) {
        print_message("skipped: no \"%s\" in GS_TEST_DATA or ../shared/data\n", name);
        skip();
    }
    return path;
}
