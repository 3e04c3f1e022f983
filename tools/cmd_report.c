/* cmd_report.c - a run as a page: report.py, which lies beside the program, made by Python, as its charts are of a
 * library there. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

typedef struct report_options {
    const char *out;
} report_options;

static const cli_option opts[] = {
    {"-o", CLI_PATH, offsetof(report_options, out), NULL, "OUT.html", "where the page goes", NULL, 0, 0},
    {0},
};

static void defaults(void *options) { *(report_options *)options = (report_options){.out = "report.html"}; }

/* Where `gnnstream` is installed, or, in a build folder, beside it. */
static bool find_script(char out[PATH_MAX])
{
    static const char *const place[] = {"../share/gnnstream/report.py", "report.py"};
    char program[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

    if (n <= 0)
        return false;
    program[n] = '\0';
    const char *const folder = dirname(program);
    for (size_t i = 0; i < sizeof(place) / sizeof(place[0]); i++)
        if (snprintf(out, PATH_MAX, "%s/%s", folder, place[i]) < PATH_MAX && access(out, R_OK) == 0)
            return true;
    return false;
}

static int run(const cli_command *self, const void *options, const char *const *place)
{
    const report_options *const o = options;
    char script[PATH_MAX], out[PATH_MAX + 2];

    if (!find_script(script))
        return cli_fail(self, CLI_FAILED, "report.py is not where it was installed; install gnnstream again, or "
                                          "run python3 -m gnnstream.report of the Python package");
    if (snprintf(out, sizeof(out), "-o%s", o->out) >= (int)sizeof(out))
        return cli_fail(self, CLI_FAILED, "-o: the path is too long");
    execlp("python3", "python3", script, out, "--", place[0], place[1], (char *)NULL);
    return cli_fail(self, CLI_FAILED, "python3: %s; the page is made by Python 3.9 or later and vl-convert-python "
                                      "(pip install vl-convert-python)", strerror(errno));
}

const cli_command cmd_report = {
    .name = "report",
    .place = {"RUN.jsonl", "[TRACE]"},
    .summary = "Makes a page to look at of a run: one HTML file with its charts.\n"
               "RUN.jsonl is what train --metrics wrote, TRACE what train --trace did: with it the page shows\n"
               "where an epoch's time went, the plan beside it, memory, edges and bytes of each chunk, and a\n"
               "timeline. Needs Python 3 and vl-convert-python (pip install vl-convert-python).",
    .group = (const cli_group[]){{"Options", opts}, {0}},
    .defaults = defaults,
    .options_bytes = sizeof(report_options),
    .run = run,
};
