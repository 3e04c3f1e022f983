/* gnnstream.c - one table of commands. */
#include <errno.h>
#include <string.h>

#include "cli.h"

const cli_command *const cli_commands[] = {
    &cmd_generate, &cmd_partition, &cmd_shard,        &cmd_info,         &cmd_verify,      &cmd_model, &cmd_plan,
    &cmd_train,    &cmd_predict,   &cmd_report,       &cmd_bench_limits, &cmd_bench_train, NULL,
};

/* The command that `argv` starts with; *words is how many words its name has. */
static const cli_command *find_command(int argc, char **argv, int *words)
{
    for (const cli_command *const *c = cli_commands; *c != NULL; c++) {
        const char *const space = strchr((*c)->name, ' ');
        const size_t first = space == NULL ? strlen((*c)->name) : (size_t)(space - (*c)->name);

        if (strncmp((*c)->name, argv[0], first) != 0 || argv[0][first] != '\0')
            continue;
        if (space != NULL && (argc < 2 || strcmp(argv[1], space + 1) != 0))
            continue;
        *words = space == NULL ? 1 : 2;
        return *c;
    }
    return NULL;
}

/* Names the word that is wrong and the nearest that would be right. */
static int unknown_command(int argc, char **argv)
{
    static const char *const bench[] = {"limits", "train", NULL};
    const char *names[sizeof(cli_commands) / sizeof(cli_commands[0]) + 2], *near;
    size_t n = 0;

    if (strcmp(argv[0], "bench") == 0) {
        if (argc < 2)
            return cli_fail(NULL, CLI_USAGE, "bench what? use bench limits or bench train");
        near = cli_nearest(argv[1], bench);
        return cli_fail(NULL, CLI_USAGE, "unknown command bench %s%s%s; use bench limits or bench train", argv[1],
                        near == NULL ? "" : "; did you mean bench ", near == NULL ? "" : near);
    }
    for (const cli_command *const *c = cli_commands; *c != NULL; c++)
        if (strchr((*c)->name, ' ') == NULL)
            names[n++] = (*c)->name;
    names[n++] = "bench";
    names[n++] = "help";
    names[n] = NULL;
    near = cli_nearest(argv[0], names);
    return cli_fail(NULL, CLI_USAGE, "unknown command %s%s%s; see gnnstream help", argv[0],
                    near == NULL ? "" : "; did you mean ", near == NULL ? "" : near);
}

/* What the build asks for: `help --man [COMMAND]`, `help --completion SHELL`. */
static int help_files(int argc, char **argv)
{
    const cli_command *c = NULL;
    int words;

    if (strcmp(argv[0], "--completion") == 0) {
        if (argc == 2 && cli_print_completion(stdout, argv[1]))
            return CLI_DONE;
        return cli_fail(NULL, CLI_USAGE, "help --completion: of which shell? bash, zsh or fish");
    }
    if (argc > 1 && (c = find_command(argc - 1, argv + 1, &words)) == NULL)
        return unknown_command(argc - 1, argv + 1);
    cli_print_man(stdout, c);
    return CLI_DONE;
}

static int help(int argc, char **argv)
{
    const bool all = argc > 0 && strcmp(argv[0], "--all") == 0;
    const cli_command *c;
    int words;

    if (argc > 0 && (strcmp(argv[0], "--man") == 0 || strcmp(argv[0], "--completion") == 0))
        return help_files(argc, argv);
    argc -= all;
    argv += all;
    if (argc == 0) {
        cli_print_overview(stdout);
        return CLI_DONE;
    }
    if (strcmp(argv[0], "environment") == 0) {
        cli_print_environment(stdout);
        return CLI_DONE;
    }
    if (argc == 1 && strcmp(argv[0], "bench") == 0) {
        cli_print_help(stdout, &cmd_bench_limits, all);
        putchar('\n');
        cli_print_help(stdout, &cmd_bench_train, all);
        return CLI_DONE;
    }
    if ((c = find_command(argc, argv, &words)) == NULL)
        return unknown_command(argc, argv);
    cli_print_help(stdout, c, all);
    return CLI_DONE;
}

/* Of several ranks, which would all say the same, one speaks. */
static gs_status join_ranks(uint32_t *ranks)
{
    uint32_t rank;
    const gs_status st = gs_join_ranks(&rank, ranks);

    if (rank > 0)
        cli_be_silent();
    return st;
}

static int refuse_ranks(const cli_command *c)
{
    uint32_t ranks;
    const gs_status st = join_ranks(&ranks);
    const int status = cli_result(c, st);
    if (status != CLI_DONE || ranks == 1 || c == &cmd_train || c == &cmd_predict ||
        c == &cmd_partition)
        return status;
    return cli_fail(c, CLI_USAGE, "is done by one process; start it without mpirun");
}

static bool asks_for_help(const char *word) { return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0; }

static int dispatch(int argc, char **argv)
{
    const cli_command *c;
    int words, status;

    if (argc < 2) {
        (void)join_ranks(&(uint32_t){0});
        return cli_fail(NULL, CLI_USAGE, "no command given; see gnnstream help");
    }
    argc--;
    argv++;
    if (strcmp(argv[0], "help") == 0)
        return help(argc - 1, argv + 1);
    if (asks_for_help(argv[0]))
        return help(0, NULL);
    if (argc == 2 && strcmp(argv[0], "bench") == 0 && asks_for_help(argv[1])) /* two commands, and no one's own help */
        return help(1, argv);
    if (strcmp(argv[0], "--version") == 0) {
        printf("gnnstream %s\n", gs_version());
        return CLI_DONE;
    }
    if ((c = find_command(argc, argv, &words)) == NULL) {
        (void)join_ranks(&(uint32_t){0});
        return unknown_command(argc, argv);
    }
    if ((status = refuse_ranks(c)) != CLI_DONE)
        return status;
    return cli_run(c, argc - words, argv + words);
}

int cli_main(int argc, char **argv)
{
    cli_memory_prepare();
    cli_signals_prepare();
    cli_partition_prepare();
    gs_on_abort(cli_say, NULL);
    const int status = dispatch(argc, argv);

    cli_progress_end();
    /* A result that did not arrive is a failure, however well it was computed. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        const int status_out = cli_fail(NULL, CLI_FAILED, "cannot write to the standard output: %s", strerror(errno));
        return status == CLI_DONE ? status_out : status;
    }
    return status;
}
