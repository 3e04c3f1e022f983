/* cli.h - commands and options as tables: parsing, help and defaults come from
 * the same rows, so that they cannot disagree.
 *
 * A command's options are fields of one plain struct. Its `defaults` fills the
 * struct (from the library's own initialiser), parsing overwrites fields, help
 * prints the fields of a freshly filled one.
 */
#ifndef GS_TOOLS_CLI_H
#define GS_TOOLS_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "gnnstream.h"

/* Exit statuses: a contract with scripts. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

typedef enum cli_kind {
    CLI_FLAG,    /* bool, no value */
    CLI_COUNT,   /* uint32_t in [least, most] */
    CLI_AUTO,    /* the same, or "auto", which is 0 */
    CLI_LONG,    /* uint64_t, at least `least` */
    CLI_REAL,    /* double, as is CLI_ABOVE; their ranges are the library's */
    CLI_ABOVE,
    CLI_TIME,    /* double, seconds: 90, 90s, 10m, 2h */
    CLI_SIZE,    /* uint64_t bytes: 64K, 1.5G */
    CLI_TEXT,    /* const char * */
    CLI_PATH,    /* the same: a file or a folder */
    CLI_CHOICE,  /* const char *, one of `value`'s words, "adam|sgd" */
    CLI_CONFIG,  /* a file of options; has no field */
} cli_kind;

typedef struct cli_option {
    const char *name; /* with its dashes; NULL ends a table */
    cli_kind kind;
    size_t field;      /* offset in the command's struct */
    const char *field_name; /* in gnnstream.h, as the library's errors have it; NULL: in no struct of it */
    const char *value; /* NULL for flags */
    const char *help;
    const char *unset; /* what a default of 0 or NULL means, or NULL */
    uint32_t least, most; /* counts; most == 0: no bound */
} cli_option;

typedef struct cli_group {
    const char *title; /* NULL ends a list */
    const cli_option *option;
} cli_group;

#define CLI_PLACES 3
#define CLI_OPTIONS_BYTES 1024 /* most of a command's struct */

typedef struct cli_command {
    const char *name;  /* "train", "bench train" */
    const char *place[CLI_PLACES]; /* "STORE": arguments without a name, required but for "[TRACE]" */
    const char *summary;
    const cli_group *group;
    void (*defaults)(void *options);
    size_t options_bytes;
    const char *const *common; /* NULL-terminated: options that --help shows, of those that there are; NULL: all */
    /* Where places are missing: the line of cli_whole_line() that the options say was given before. NULL: there is
     * none, which is said by then where *status is not CLI_DONE. May be missing. */
    const char *(*recall)(const struct cli_command *self, const void *options, int *status);
    /* Returns an exit status; errors are printed by then. */
    int (*run)(const struct cli_command *self, const void *options, const char *const *place);
} cli_command;

/* Runs the program in this process; argv[0] is not looked at. Returns the exit status; all that it says is
 * written by then, or the status tells. */
int cli_main(int argc, char **argv);

/* Commands, NULL-terminated: gnnstream.c. */
extern const cli_command *const cli_commands[];

/* cli_parse.c: --config, for the commands that take a file of options. */
extern const cli_option cli_config_options[];
/* The file that was named, or NULL. */
const char *cli_config_name(void);

/* Parses and runs. `argv` starts after the command's name. */
int cli_run(const cli_command *c, int argc, char **argv);
void cli_print_help(FILE *out, const cli_command *c, bool all);
void cli_print_overview(FILE *out);
/* An option's value before anything is parsed, from a filled struct, or "". One of the buffers below. */
const char *cli_default_text(const cli_option *o, const char *options);

/* cli_print.c: what the program takes from the environment; a NULL name ends the table. */
typedef struct cli_variable {
    const char *name; /* "GS_IO", or several with commas */
    const char *help;
} cli_variable;
extern const cli_variable cli_environment[];
void cli_print_environment(FILE *out);

/* cli_pages.c: the manual page of a command, of the program where `c` is NULL. */
void cli_print_man(FILE *out, const cli_command *c);
/* Names of the built-in models, with blanks between them: the build makes it. */
extern const char cli_zoo[];
/* cli_pages.c: false for a shell that it does not know. */
bool cli_print_completion(FILE *out, const char *shell);

/* Another process says what there is to say: no errors from here on. */
void cli_be_silent(void);
/* "gnnstream train: TEXT" on stderr; returns `status`. */
int cli_fail(const cli_command *c, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* cli_print.c: an error of the library, in which a field is written ".host_memory", with options in place of fields:
 * "--host-memory". Into `out` of `capacity` bytes; returns it. */
char *cli_name_options(char *out, size_t capacity, const char *error);

/* The library's last error, and the exit status that fits: an argument it will
 * not take is wrong usage, whatever files there are; what depends on them (none is
 * there, a folder instead) has failed. GS_OK gives CLI_DONE. */
int cli_result(const cli_command *c, gs_status st);

/* The nearest of a NULL-terminated list by edit distance, or NULL where none is near: at most 2 letters, and less than
 * half of the word. */
const char *cli_nearest(const char *word, const char *const *list);

/* A pipe without a reader and a file above `ulimit -f` are failed writes, which end the work in one line and clear it
 * away, instead of signals that end the program as it stands. */
void cli_signals_prepare(void);
/* Set to 1 by SIGINT, SIGTERM and SIGHUP from the call on, which comes once and before any thread is started; a second
 * one ends the program at once, with a line, unless it is the same within half a second. */
const volatile int *cli_stop(void);

/* From the call on, memory that ends inside a C++ library ends the program with a line. */
void cli_memory_prepare(void);

/* cli_parse.c: all of the command line as a shell takes it, on one line, with `option` given the value `value` in place
 * of what it had. */
void cli_print_again(FILE *out, const char *option, const char *value);
/* "cd FOLDER && gnnstream train STORE ...": all of it and the folder that the program is in; NULL where it has 4096
 * bytes or more. Lives as long as the program. */
const char *cli_whole_line(void);

/* ---- words for people ---------------------------------------------------- */

/* cli_progress.c. A gs_progress_fn: one line on stderr, rewritten with a bar where that is a terminal that can do so
 * (TERM is set and is not "dumb"), a line a minute elsewhere. `done` below 0: not known. */
void cli_progress(void *context, const char *what, double done);
/* Before other words on stderr: the line goes. Any thread. */
void cli_progress_end(void);
/* Is the line rewritten? */
bool cli_shows_progress(void);
/* Something begins: the next line is due when the time between two lines is over. */
void cli_log_begin(void);
/* Seconds of a clock that nobody sets; any thread, and handlers of signals too. */
double cli_now(void);

/* "gnnstream: warning: LINE" on stderr: a gs_warn_fn. */
void cli_warn(void *context, const char *line);
/* "gnnstream: KIND" and the line, likewise; without a kind for NULL. From any thread. */
void cli_say(void *kind, const char *line);

/* One of 8 buffers, used in turn. */
const char *cli_size(uint64_t bytes);  /* "1.5 GiB" */
const char *cli_count(uint64_t n);     /* "1,234,567" */
/* JSON: a quoted string; a number, null where it is not finite. Same buffers. */
const char *cli_json_text(const char *text);
const char *cli_json_real(double v);

/* cli_progress.c: a line about a run, from before it is opened until the end, shown as cli_progress() does. NULL where
 * there is no thread for it; the others take that. Ends before the run is closed. */
typedef struct cli_watch cli_watch;
cli_watch *cli_watch_begin(void);
void cli_watch_open(void *watch, const char *what, const gs_run *run); /* .on_open, of which it is the context */
void cli_watch_epoch(cli_watch *w, const gs_epoch_report *e); /* the last one was this */
void cli_watch_end(cli_watch *w);

/* ---- commands: cmd_*.c ---- */
/* Names the formats that the library reads in the options of `partition`. */
void cli_partition_prepare(void);
extern const cli_command cmd_generate, cmd_partition, cmd_shard, cmd_info, cmd_verify, cmd_model, cmd_plan, cmd_train,
    cmd_predict, cmd_report, cmd_bench_limits, cmd_bench_train;

/* -- a file of options, which --config names. cli_parse.c gives the options their values. */

#define CLI_CONFIG_ENTRIES 64

typedef enum cli_config_form {
    CLI_CONFIG_PLAIN,  /* lr: 0.01, no-cache: true */
    CLI_CONFIG_QUOTED, /* model: "gcn" */
    CLI_CONFIG_LIST,   /* fanout: [15, 10]: "15,10" */
    CLI_CONFIG_PAIRS,  /* set: {alpha: 0.2}: "alpha=0.2" */
} cli_config_form;

typedef struct cli_config_entry {
    char *key, *text; /* text: NULL where the file is wrong there */
    size_t line, column; /* of the key, from 1 */
    cli_config_form form;
} cli_config_entry;

typedef struct cli_config {
    size_t entries;
    cli_config_entry entry[CLI_CONFIG_ENTRIES];
    char error[1024]; /* of cli_config_read(): "FILE:LINE:COLUMN: ..." */
} cli_config;

/* All of a file of at most 1 MiB. False, with `error`, where it cannot be read or is something else. In both cases
 * cli_config_free() is due. Blocks while it reads. */
bool cli_config_read(cli_config *out, const char *path);
void cli_config_free(cli_config *config);

#endif /* GS_TOOLS_CLI_H */
