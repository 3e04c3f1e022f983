/* A file of options of any bytes is refused with its place, or each name has a value.
 *
 * Input: the file. */
#include <string.h>

#include "cli.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cli_config config;
    const char *const path = gs_fuzz_file("options.yaml", data, size);
    const bool good = cli_config_read(&config, path);

    gs_fuzz_judge(good ? GS_OK : gs_fail(GS_EFORMAT, "%s", config.error));
    gs_fuzz_require(good == (config.error[0] == '\0'), "an error is said, and only then");
    gs_fuzz_require(good || strstr(config.error, "options.yaml") != NULL, "it names the file");
    gs_fuzz_require(config.entries <= CLI_CONFIG_ENTRIES, "no more options than there is room for");
    for (size_t k = 0; k < config.entries; k++) {
        const cli_config_entry *const e = &config.entry[k];
        gs_fuzz_require(e->key != NULL && e->key[0] != '\0', "each has a name");
        gs_fuzz_require(e->line > 0 && e->column > 0, "and a place");
        gs_fuzz_require(!good || (e->text != NULL && e->text[0] != '\0'), "and a value");
        for (size_t j = 0; j < k; j++)
            gs_fuzz_require(strcmp(config.entry[j].key, e->key) != 0, "each once");
    }
    cli_config_free(&config);
    return 0;
}

size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    static const char *const text[] = {
        "# how\nmodel: gcn\nhidden: 64\nlr: 1e-2\nno-prune: true\nset: {alpha: 0.2, steps: 3}\n"
        "split: [0.6, 0.2, 0.2]\n",
        "---\nsave: \"w.safetensors\"\nact: 'elu'\nset:\n  alpha: 0.2\nfanout:\n  - 15\n  - 10\n...\n",
        "a: &x 1\nb: *x\n---\nc: !!str d\n? e\n: |\n  f\n",
    };
    return k < sizeof(text) / sizeof(text[0]) ? gs_fuzz_text_seed(data, capacity, text[k]) : 0;
}
