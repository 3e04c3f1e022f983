/* checkpoint_text.h - checkpoint.json: what a checkpoint is of, as values and as text (docs/format.md).
 *
 * A checkpoint is a folder: checkpoint.json, and a .safetensors file for each section. The text names the store, the
 * model and the options that change numbers, so that no other run goes on from it; what the run's plan was made with,
 * so that the one that goes on has the same; and the checksums of the sections, and of itself.
 */
#ifndef GS_TRAIN_CHECKPOINT_TEXT_H
#define GS_TRAIN_CHECKPOINT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "cost/cost.h"
#include "device/device.h" /* GS_DEVICE_WORDS */
#include "gnnstream.h"
#include "gnnstream_reports.h" /* gs_task_figures */
#include "session/describe.h" /* GS_MAKER_BYTES */
#include "session/session.h" /* GS_BATCH_DEVICES */
#include "train/control.h"

#define GS_CHECKPOINT_JSON "checkpoint.json"
#define GS_CHECKPOINT_JSON_MOST 65536u /* bytes */
#define GS_CHECKPOINT_SECTIONS 8u
#define GS_CHECKPOINT_OPTIONS 48u
#define GS_CHECKPOINT_COMMAND 4096u /* of gs_train_options.command */
#define GS_CHECKPOINT_WORDS 64u /* bytes of an option's or a section's text */

/* A file NAME.safetensors. */
typedef struct gs_checkpoint_section {
    char name[GS_CHECKPOINT_WORDS];
    uint64_t bytes, checksum;
} gs_checkpoint_section;

/* An option of the run. */
typedef struct gs_checkpoint_option {
    const char *name; /* constant: not of the text */
    const struct gs_option *of;
    bool is_text;
    bool may_lack; /* checkpoints were written before there was such an option, and had the value that is here */
    double number;
    char text[GS_CHECKPOINT_WORDS];
} gs_checkpoint_option;

/* An epoch of several steps that is under way. */
typedef struct gs_epoch_part {
    bool begun;            /* it was judged by the evaluation before it, and its next batch is `batches` */
    uint32_t batches, of;  /* done, of so many */
    double lr, loss, mass; /* loss: the sum so far, over `mass` */
    double accuracy[3];    /* of that evaluation; figures, too */
    gs_task_figures figures;
} gs_epoch_part;

typedef struct gs_checkpoint {
    uint32_t epoch;      /* done */
    gs_epoch_part part;  /* of the next one; without .figures.task */
    uint64_t steps;      /* of the optimiser */
    gs_control_state control;
    uint64_t store_id, model_id;
    uint32_t options;
    gs_checkpoint_option option[GS_CHECKPOINT_OPTIONS];
    /* The run so far. */
    double seconds;
    uint64_t read_bytes, written_bytes;
    uint64_t lines_bytes, lines_checksum; /* of metrics.jsonl beside the checkpoints: so much of it */
    /* What its plan was made with and came to. */
    char device[GS_DEVICE_WORDS], taken[GS_DEVICE_WORDS]; /* as in gs_session_earlier; "": all */
    uint64_t host_memory, device_memory, process_bytes;
    uint32_t epochs;         /* as in gs_session_earlier */
    gs_cost cost, host_cost; /* as in gs_session_machine; all 0: all devices were alike */
    uint32_t batch_rates;    /* as in gs_session_earlier */
    double batch_rate[GS_BATCH_DEVICES];
    uint64_t plan_id;
    char maker[GS_MAKER_BYTES];
    char command[GS_CHECKPOINT_COMMAND]; /* "": none, or one that is longer */
    uint32_t sections;
    gs_checkpoint_section section[GS_CHECKPOINT_SECTIONS];
} gs_checkpoint;

/* A new checksummed text; free with gs_free(). GS_ENOMEM. */
gs_status gs_checkpoint_format(char **text, uint64_t *bytes, const gs_checkpoint *c);
/* `out->option` names those to be found there (gs_checkpoint_list_options()). GS_EFORMAT: damaged, or of a version that
 * this program does not know. `path` is for messages. */
gs_status gs_checkpoint_parse(gs_checkpoint *out, const char *text, uint64_t bytes, const char *path);
/* NULL where there is none of that name. */
const gs_checkpoint_section *gs_checkpoint_find_section(const gs_checkpoint *c, const char *name);

/* The options that change numbers: a checkpoint is of a run with these, and no other goes on
 * from it. All others may differ; which of those keep bits is on docs/design/results.md. */

/* .keep_by of a checkpoint that was written before there was such an option: accuracy, micro_f1 or mse, by the task. */
#define GS_KEPT_BEFORE "before"

/* Names and kinds, without values: what a text is read into. */
void gs_checkpoint_list_options(gs_checkpoint *c);
/* With the run's values. */
void gs_checkpoint_take_options(gs_checkpoint *c, const gs_train_options *o);
/* The option of that name. */
gs_checkpoint_option *gs_checkpoint_find_option(gs_checkpoint *c, const char *name);
/* GS_EINVAL names the field that differs, and both values. `path`: the checkpoint, for the message. */
gs_status gs_checkpoint_match_options(const gs_checkpoint *c, const gs_train_options *o, const char *path);

#endif /* GS_TRAIN_CHECKPOINT_TEXT_H */
