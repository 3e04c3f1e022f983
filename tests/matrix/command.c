/* command.c - the command line inside this process, and the folder that it works in. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#include "base/file.h"
#include "matrix.h"

#define WORDS_MOST 96
#define OUTPUT_MOST (4u << 20) /* bytes of a stream that are looked at */

int cli_main(int argc, char **argv); /* tools/cli.h */

/* stdout and stderr: the test's own, where a command's words go, and the words of the last one. */
static struct {
    int own, words;
    char *said;
} stream[2] = {{-1, -1, NULL}, {-1, -1, NULL}};

static char folder[4096], results[4096], running[LINE_MOST];

bool sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return getenv("GS_TEST_ALL") == NULL;
#else
    return false;
#endif
}

/* ---- the folder ---- */

static void remove_folders(void)
{
    if (chdir("/") != 0)
        return;
    gs_remove_tree(folder);
    if (results[0] != '\0')
        gs_remove_tree(results);
}

void work_folder(const char *source_root)
{
    char texts[4200];

    if (getcwd(folder, sizeof(folder) - 32) == NULL)
        ref_die("no working folder: %s", strerror(errno));
    strcat(folder, "/gs_matrix.XXXXXX");
    if (mkdtemp(folder) == NULL || chdir(folder) != 0)
        ref_die("%s: %s", folder, strerror(errno));
    snprintf(results, sizeof(results), "/dev/shm/gs_matrix.XXXXXX"); /* results are synced, which takes a disk time */
    if (mkdtemp(results) == NULL || symlink(results, "out") != 0) {
        results[0] = '\0';
        if (mkdir("out", 0700) != 0)
            ref_die("%s/out: %s", folder, strerror(errno));
    }
    atexit(remove_folders);
    if (getenv("GS_TEST_TEXTS") != NULL) /* carried to another machine */
        snprintf(texts, sizeof(texts), "%s", getenv("GS_TEST_TEXTS"));
    else
        snprintf(texts, sizeof(texts), "%s/tests/e2e/texts", source_root);
    if (symlink(texts, "texts") != 0)
        ref_die("%s: %s", texts, strerror(errno));
}

/* ---- running ---- */

/* A program that ends inside a command says which, and what that had said. */
static void dying(int number)
{
    static char buffer[4096];
    ssize_t n;

    dup2(stream[1].own, STDERR_FILENO);
    if (write(STDERR_FILENO, "\nended in: gnnstream ", 21) < 0 ||
        write(STDERR_FILENO, running, strlen(running)) < 0 || write(STDERR_FILENO, "\n", 1) < 0 ||
        lseek(stream[1].words, 0, SEEK_SET) < 0)
        _exit(1);
    while ((n = read(stream[1].words, buffer, sizeof(buffer))) > 0)
        if (write(STDERR_FILENO, buffer, (size_t)n) < 0)
            break;
    signal(number, SIG_DFL);
    raise(number);
}

static void open_streams(void)
{
    for (int i = 0; i < 2; i++) {
        stream[i].own = dup(i == 0 ? STDOUT_FILENO : STDERR_FILENO);
        stream[i].words = memfd_create("words", MFD_CLOEXEC);
        stream[i].said = calloc(1, OUTPUT_MOST + 1);
        if (stream[i].own < 0 || stream[i].words < 0 || stream[i].said == NULL)
            ref_die("streams: %s", strerror(errno));
    }
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_set_report_fd((void *)(intptr_t)stream[1].own);
#else
    signal(SIGSEGV, dying);
#endif
    signal(SIGABRT, dying);
}

static void redirect(int i)
{
    if (ftruncate(stream[i].words, 0) != 0 || lseek(stream[i].words, 0, SEEK_SET) != 0 ||
        dup2(stream[i].words, i == 0 ? STDOUT_FILENO : STDERR_FILENO) < 0)
        ref_die("redirecting: %s", strerror(errno));
}

static void give_back(int i)
{
    dup2(stream[i].own, i == 0 ? STDOUT_FILENO : STDERR_FILENO);
    const ssize_t n = pread(stream[i].words, stream[i].said, OUTPUT_MOST, 0);
    stream[i].said[n > 0 ? n : 0] = '\0';
}

int command_status(const char *line)
{
    char words[LINE_MOST], *argv[WORDS_MOST + 2], *rest = NULL;
    int argc = 0, status;

    if (stream[0].own < 0)
        open_streams();
    snprintf(running, sizeof(running), "%s", line);
    snprintf(words, sizeof(words), "%s", line);
    argv[argc++] = (char[]){"gnnstream"};
    for (char *w = strtok_r(words, " ", &rest); w != NULL && argc <= WORDS_MOST; w = strtok_r(NULL, " ", &rest))
        argv[argc++] = w;
    argv[argc] = NULL;
    fflush(NULL);
    redirect(0);
    redirect(1);
    status = cli_main(argc, argv);
    fflush(NULL);
    give_back(0);
    give_back(1);
    return status;
}

/* Nothing but warnings that the matrix calls for, as it gives each model every graph and every option: edge weights
 * that the model does not look at, a width where one layer has none hidden. */
static bool silent_but_for_options_in_vain(const char *said)
{
    static const char *const expected[] = {"does not look at the edge weights of", "has no use for it",
                                            "--products runs: no product by edge type is made so",
                                            "--products pairs: no product by edge type is made so"};
    static const char start[] = "gnnstream: warning: ";

    while (*said != '\0') {
        const size_t length = strcspn(said, "\n");
        bool known = false;
        if (strncmp(said, start, sizeof(start) - 1) != 0)
            return false;
        for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]) && !known; i++) {
            const char *const at = strstr(said, expected[i]);
            known = at != NULL && at < said + length;
        }
        if (!known)
            return false;
        said += length + (said[length] == '\n');
    }
    return true;
}

bool command(const char *fmt, ...)
{
    char line[LINE_MOST];
    va_list args;

    va_start(args, fmt);
    if (vsnprintf(line, sizeof(line), fmt, args) >= (int)sizeof(line))
        ref_die("a command is too long: %s", line);
    va_end(args);
    const int status = command_status(line);
    return check(status == 0, "exit status %d: gnnstream %s\n     | %s", status, line, stream[1].said) &&
           check(silent_but_for_options_in_vain(stream[1].said), "words on stderr: gnnstream %s\n     | %s", line,
                 stream[1].said);
}

const char *command_output(void) { return stream[0].said; }

double number_in(const char *json, const char *after, const char *key)
{
    char quoted[64];

    snprintf(quoted, sizeof(quoted), "\"%s\":", key); /* strtod() passes over a blank */
    const char *const from = after == NULL ? json : strstr(json, after);
    const char *const at = from == NULL ? NULL : strstr(from, quoted);
    return at == NULL ? NAN : strtod(at + strlen(quoted), NULL);
}
