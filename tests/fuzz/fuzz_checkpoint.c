/* The text of a checkpoint, of any bytes, is refused with a text, or says what a second reading of it says again, and
 * names no file outside the checkpoint.
 *
 * Input: u8 whether the checksum at the end is made good, and the text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "fuzz.h"
#include "train/checkpoint_text.h"
#include "train/checkpoint_folder.h"

#define SEAL 20u /* bytes at the end that gs_checksum_line_set() needs */

static const char section_bytes[] = "the bytes of a section";

static void check_accepted(const gs_checkpoint *c)
{
    gs_train_options o;
    gs_checkpoint again;
    char *text = NULL;
    uint64_t bytes = 0;

    gs_fuzz_require(c->sections <= GS_CHECKPOINT_SECTIONS, "sections fit");
    for (uint32_t k = 0; k < c->sections; k++) {
        gs_fuzz_require(strpbrk(c->section[k].name, "/.") == NULL && *c->section[k].name != '\0',
                        "a section is a file of the checkpoint");
        (void)gs_section_check(&c->section[k], gs_fuzz_folder());
    }
    gs_train_options_init(&o);
    (void)gs_checkpoint_match_options(c, &o, "checkpoint");
    if (gs_checkpoint_format(&text, &bytes, c) != GS_OK)
        abort();
    gs_checkpoint_list_options(&again);
    gs_fuzz_require(gs_checkpoint_parse(&again, text, bytes, "again") == GS_OK, "what was read is written and read");
    gs_fuzz_require(again.epoch == c->epoch && again.steps == c->steps && again.sections == c->sections &&
                        again.lines_bytes == c->lines_bytes && again.host_memory == c->host_memory &&
                        again.control.best_epoch == c->control.best_epoch &&
                        memcmp(&again.control.best, &c->control.best, sizeof(double)) == 0,
                    "and says the same");
    gs_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool begun;
    gs_checkpoint c;

    if (!begun)
        gs_fuzz_file("model.safetensors", section_bytes, sizeof(section_bytes));
    begun = true;
    if (size == 0)
        return 0;
    char *const text = malloc(size); /* one byte more than the text, which is ended by a 0 */
    if (text == NULL)
        abort();
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 4 != 0 && size - 1 >= SEAL)
        gs_checksum_line_set(text, size - 1);
    memset(&c, 0, sizeof(c));
    gs_checkpoint_list_options(&c);
    const gs_status st = gs_checkpoint_parse(&c, text, size - 1, "checkpoint.json");
    gs_fuzz_judge(st);
    if (st == GS_OK)
        check_accepted(&c);
    free(text);
    return 0;
}

/* 0: the least; 1: all there is; 2: with a checksum that is left as it is. */
size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    gs_checkpoint c = {.cost = {.read_bps = 1e9, .write_bps = 2e9}};
    gs_train_options o;
    char *text = NULL;
    uint64_t bytes = 0;

    if (k > 2)
        return 0;
    gs_train_options_init(&o);
    gs_checkpoint_take_options(&c, &o);
    if (k > 0) {
        c.epoch = 12;
        c.steps = 12;
        c.store_id = UINT64_MAX;
        c.control = (gs_control_state){.best = 0.5, .best_epoch = 3, .last_better = 3, .factor = 1};
        c.lines_bytes = 77;
        c.host_memory = 1ull << 30;
        c.sections = 2;
        snprintf(c.section[0].name, sizeof(c.section[0].name), "%s", GS_SECTION_MODEL);
        snprintf(c.section[1].name, sizeof(c.section[1].name), "%s", GS_SECTION_BEST);
        c.section[0].bytes = sizeof(section_bytes);
    }
    if (gs_checkpoint_format(&text, &bytes, &c) != GS_OK || bytes + 1 > capacity)
        abort();
    data[0] = k == 2 ? 0 : 1;
    memcpy(data + 1, text, bytes);
    gs_free(text);
    return bytes + 1;
}
