/* cli_config.h - a file of options, which --config names. cli_parse.c gives the options their values. */
#ifndef GS_TOOLS_CLI_CONFIG_H
#define GS_TOOLS_CLI_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

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

#endif /* GS_TOOLS_CLI_CONFIG_H */
