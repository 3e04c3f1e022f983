#include <string.h>

#include "cli.h"

typedef struct verify_options {
    uint64_t memory;
} verify_options;

static const cli_option opts[] = {
    {"--memory", CLI_SIZE, offsetof(verify_options, memory), NULL, "SIZE", "for its buffers", NULL, 0, 0},
    {0},
};

static void defaults(void *options) { ((verify_options *)options)->memory = 256u << 20; }

static int run(const cli_command *self, const void *options, const char *const *place)
{
    const verify_options *const o = options;
    gs_store_summary s;
    int status;

    if ((status = cli_result(self, gs_inspect(&s, place[0]))) != CLI_DONE ||
        (status = cli_result(self, gs_verify(place[0], o->memory))) != CLI_DONE)
        return status;
    printf("%s: all %s are as they were written\n", place[0], cli_size(s.total_bytes));
    return CLI_DONE;
}

const cli_command cmd_verify = {
    .name = "verify",
    .place = {"STORE"},
    .summary = "Reads every byte of a store and checks it.",
    .group = (const cli_group[]){{"Options", opts}, {0}},
    .defaults = defaults,
    .options_bytes = sizeof(verify_options),
    .run = run,
};
