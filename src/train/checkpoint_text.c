#include "train/checkpoint_text.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/hash.h"
#include "base/option_table.h"
#include "base/record.h"
#include "base/size.h"
#include "train/options.h"

/* ---- options ------------------------------------------------------------- */

/* Not the model, whose text counts and not its name; nor what says where results go, nor what keeps numbers up to
 * rounding at least. */
#define EACH(x) GS_OPTION_EACH (x) if (x->changes != GS_OPTION_NOTHING)

static bool is(const gs_option *x, size_t field) { return x->field == field; }
#define IS(x, name) is(x, offsetof(gs_train_options, name))

/* Of numbers of 64 bits, as JSON's hold 53, and of all texts. */
static bool is_text_option(const gs_option *x) { return x->kind == GS_OPTION_LONG || gs_option_is_text(x); }

static void take_option_text(char text[GS_CHECKPOINT_WORDS], const gs_option *x, const gs_train_options *o)
{
    const char *const given = gs_option_text(x, o);

    if (given == NULL)
        snprintf(text, GS_CHECKPOINT_WORDS, "%s", x->counts_as != NULL ? x->counts_as : "");
    else if (x->kind == GS_OPTION_PATH || strlen(given) >= GS_CHECKPOINT_WORDS) /* a checksum stands for it */
        snprintf(text, GS_CHECKPOINT_WORDS, "%016lx", gs_hash64(given, strlen(given)));
    else
        snprintf(text, GS_CHECKPOINT_WORDS, "%s", given);
}

static void take_option(gs_checkpoint_option *to, const gs_option *x, const gs_train_options *o)
{
    if (gs_option_is_text(x))
        take_option_text(to->text, x, o);
    else if (x->kind == GS_OPTION_LONG)
        snprintf(to->text, sizeof(to->text), "%lu", *(const uint64_t *)(const void *)((const char *)o + x->field));
    else if (IS(x, batches_per_step))
        to->number = gs_batches_per_step_of(o);
    else if (IS(x, epochs) && gs_choice(o, schedule) != GS_RATES_COSINE)
        to->number = 0; /* says how much is trained */
    else
        to->number = gs_option_number(x, o);
}

void gs_checkpoint_list_options(gs_checkpoint *c)
{
    c->options = 0;
    for EACH (x) {
        gs_checkpoint_option *const to = &c->option[c->options++];
        *to = (gs_checkpoint_option){.name = x->name, .of = x, .is_text = is_text_option(x)};
        to->may_lack = x->field >= offsetof(gs_train_options, gather_type);
        if (to->may_lack)
            take_option(to, x, &gs_option_defaults);
        if (IS(x, keep_by))
            snprintf(to->text, sizeof(to->text), "%s", GS_KEPT_BEFORE);
    }
    assert(c->options <= GS_CHECKPOINT_OPTIONS);
}

gs_checkpoint_option *gs_checkpoint_find_option(gs_checkpoint *c, const char *name)
{
    uint32_t k = 0;

    while (strcmp(c->option[k].name, name) != 0)
        k++;
    return &c->option[k];
}

void gs_checkpoint_take_options(gs_checkpoint *c, const gs_train_options *o)
{
    gs_checkpoint_list_options(c);
    for (uint32_t k = 0; k < c->options; k++)
        take_option(&c->option[k], c->option[k].of, o);
}

static gs_status differs(const gs_checkpoint_option *mine, const gs_checkpoint_option *other, const char *path)
{
    if (mine->of->kind == GS_OPTION_PATH)
        return gs_fail(GS_EINVAL, ".%s: the checkpoint %s has weights of its own, and was begun with %s; leave it out",
                       mine->name, path, other->text[0] != '\0' ? "another file" : "none");
    if (mine->is_text)
        return gs_fail(GS_EINVAL, ".%s %s: the checkpoint %s is of a run with %s; give that, or train anew", mine->name,
                       mine->text, path, other->text);
    return gs_fail(GS_EINVAL, ".%s %.17g: the checkpoint %s is of a run with %.17g; give that, or train anew",
                   mine->name, mine->number, path, other->number);
}

gs_status gs_checkpoint_match_options(const gs_checkpoint *c, const gs_train_options *o, const char *path)
{
    gs_checkpoint mine = {0};

    gs_checkpoint_take_options(&mine, o);
    for (uint32_t k = 0; k < mine.options; k++) {
        const gs_checkpoint_option *const a = &mine.option[k], *const b = &c->option[k];
        if (a->of->kind == GS_OPTION_PATH && a->text[0] == '\0')
            continue; /* the first weights are not needed any more */
        if (a->is_text ? strcmp(a->text, b->text) != 0 : a->number != b->number)
            return differs(a, b, path);
    }
    return GS_OK;
}

/* ---- text ---------------------------------------------------------------- */

#define FORMAT "gnnstream checkpoint"
#define VERSION 1      /* of a state between two epochs, */
#define VERSION_PART 2 /* and within one */
#define MOST_EXACT 9007199254740992.0 /* 2^53: JSON numbers are doubles */
#define MOST_RATE 1e18                /* of anything that costs */

/* ---- fields -------------------------------------------------------------- */

static const gs_field first_fields[] = {
    GS_FIELD(gs_checkpoint, epoch, U32, "epoch", .most = UINT32_MAX),
    GS_FIELD(gs_checkpoint, steps, U64, "steps", .most = MOST_EXACT),
    GS_FIELD(gs_checkpoint, store_id, HEX, "store"),
    GS_FIELD(gs_checkpoint, model_id, HEX, "model"),
};
static const gs_field so_far_fields[] = {
    GS_FIELD(gs_checkpoint, seconds, REAL, "seconds", .most = MOST_RATE),
    GS_FIELD(gs_checkpoint, read_bytes, U64, "read_bytes", .most = MOST_RATE),
    GS_FIELD(gs_checkpoint, written_bytes, U64, "written_bytes", .most = MOST_RATE),
    GS_FIELD(gs_checkpoint, lines_bytes, U64, "metrics_bytes", .most = MOST_EXACT),
    GS_FIELD(gs_checkpoint, lines_checksum, HEX, "metrics_checksum"),
};
/* Those that may lack came after the first checkpoints. Some are no numbers. */
static const gs_field control_fields[] = {
    GS_FIELD(gs_checkpoint, control.best, BITS, "best"),
    GS_FIELD(gs_checkpoint, control.best_epoch, U32, "best_epoch", .most = UINT32_MAX),
    GS_FIELD(gs_checkpoint, control.last_better, U32, "last_better", .most = UINT32_MAX),
    GS_FIELD(gs_checkpoint, control.plateau_best, BITS, "plateau_best"),
    GS_FIELD(gs_checkpoint, control.plateau_bad, U32, "plateau_bad", .most = UINT32_MAX),
    GS_FIELD(gs_checkpoint, control.factor, BITS, "factor"),
    GS_FIELD(gs_checkpoint, control.last_loss, BITS, "last_loss", .may_lack = true),
    GS_FIELD(gs_checkpoint, control.largest_drop, BITS, "largest_drop", .may_lack = true),
    GS_FIELD(gs_checkpoint, control.elbow, U32, "elbow", .most = UINT32_MAX, .may_lack = true),
};
static const gs_field part_fields[] = {
    GS_FIELD(gs_checkpoint, part.batches, U32, "batches", .most = UINT32_MAX),
    GS_FIELD(gs_checkpoint, part.of, U32, "of", .most = UINT32_MAX),
};
static const gs_field cost_fields[] = {
    GS_FIELD(gs_cost, seconds, REAL, "seconds", .most = MOST_RATE, .lists = GS_WORK_KINDS, .count = GS_WORK_AMOUNTS),
    GS_FIELD(gs_cost, source, U32, "sources", .least = GS_COST_DEFAULT, .most = GS_COST_FITTED, .count = GS_WORK_KINDS),
    GS_FIELD(gs_cost, disk_source, U32, "disk_source", .least = GS_COST_DEFAULT, .most = GS_COST_FITTED),
    GS_FIELD(gs_cost, read_bps, REAL, "read_bps", .least = 1, .most = MOST_RATE),
    GS_FIELD(gs_cost, write_bps, REAL, "write_bps", .least = 1, .most = MOST_RATE),
    GS_FIELD(gs_cost, request_seconds, REAL, "request_seconds", .most = 1),
    GS_FIELD(gs_cost, block_seconds, REAL, "block_seconds", .most = 1, .may_lack = true),
    GS_FIELD(gs_cost, latency_seconds, REAL, "latency_seconds", .most = 1),
    GS_FIELD(gs_cost, pick_seconds, REAL, "pick_seconds", .most = 1, .may_lack = true),
};
static const gs_field plan_fields[] = {
    GS_FIELD(gs_checkpoint, plan_id, HEX, "id"),
    GS_FIELD(gs_checkpoint, maker, TEXT, "maker", .most = GS_MAKER_BYTES),
    GS_FIELD(gs_checkpoint, device, TEXT, "device", .most = GS_DEVICE_WORDS),
    GS_FIELD(gs_checkpoint, taken, TEXT, "devices_taken", .most = GS_DEVICE_WORDS, .may_lack = true),
    GS_FIELD(gs_checkpoint, host_memory, U64, "host_memory", .most = MOST_EXACT),
    GS_FIELD(gs_checkpoint, device_memory, U64, "device_memory", .most = MOST_EXACT),
    GS_FIELD(gs_checkpoint, process_bytes, U64, "process_bytes", .most = MOST_EXACT),
    GS_FIELD(gs_checkpoint, epochs, U32, "epochs", .most = UINT32_MAX, .may_lack = true),
    GS_OBJECT(gs_checkpoint, cost, "cost", cost_fields),
};
static const gs_field host_cost_field[] = {GS_OBJECT(gs_checkpoint, host_cost, "host_cost", cost_fields)};
static const gs_field rates_field[] = {
    GS_FIELD(gs_checkpoint, batch_rate, REAL, "batch_rates", .most = MOST_RATE, .may_lack = true,
             .count = GS_BATCH_DEVICES, .counted = true, .counter = offsetof(gs_checkpoint, batch_rates)),
};
static const gs_field command_field[] = {
    GS_FIELD(gs_checkpoint, command, TEXT, "command", .most = GS_CHECKPOINT_COMMAND, .may_lack = true),
};
static const gs_field section_fields[] = {
    GS_FIELD(gs_checkpoint_section, bytes, U64, "bytes", .most = MOST_EXACT),
    GS_FIELD(gs_checkpoint_section, checksum, HEX, "checksum"),
};

static gs_field option_field(const gs_checkpoint_option *o)
{
    if (o->is_text)
        return (gs_field)GS_FIELD(gs_checkpoint_option, text, TEXT, o->name, .most = sizeof(o->text));
    return (gs_field)GS_FIELD(gs_checkpoint_option, number, REAL, o->name, .least = -HUGE_VAL, .most = HUGE_VAL);
}

/* ---- writing ------------------------------------------------------------- */

static bool add_options(cJSON *root, const gs_checkpoint *c)
{
    cJSON *const to = cJSON_AddObjectToObject(root, "options");
    bool ok = to != NULL;

    for (uint32_t k = 0; ok && k < c->options; k++) {
        const gs_field f = option_field(&c->option[k]);
        ok = gs_record_write(to, &f, 1, &c->option[k]);
    }
    return ok;
}

static bool add_object(cJSON *root, const char *key, const gs_field *field, size_t fields, const gs_checkpoint *c)
{
    return gs_record_write(cJSON_AddObjectToObject(root, key), field, fields, c);
}

/* A disk always moves something. */
static bool has_host_cost(const gs_checkpoint *c) { return c->host_cost.read_bps > 0; }

static bool add_plan(cJSON *root, const gs_checkpoint *c)
{
    cJSON *const to = cJSON_AddObjectToObject(root, "plan");
    return gs_record_write(to, GS_FIELDS(plan_fields), c) &&
           (!has_host_cost(c) || gs_record_write(to, GS_FIELDS(host_cost_field), c)) &&
           gs_record_write(to, GS_FIELDS(rates_field), c);
}

/* All numbers of a part, as their bits; before there were some of the figures, so many. */
#define PART_FIGURES 40u
#define PART_NUMBERS (6u + PART_FIGURES)
static const uint32_t part_numbers_of[] = {27, 31, 43, PART_NUMBERS};
_Static_assert(sizeof(gs_task_figures) == offsetof(gs_task_figures, micro_f1) + PART_FIGURES * sizeof(double) &&
                   offsetof(gs_epoch_part, figures) == offsetof(gs_epoch_part, lr) + 6 * sizeof(double),
               "of a part");

typedef struct part_numbers {
    uint32_t count;
    double number[PART_NUMBERS];
} part_numbers;

static const gs_field numbers_field[] = {
    GS_FIELD(part_numbers, number, BITS, "numbers", .count = PART_NUMBERS, .counted = true,
             .counter = offsetof(part_numbers, count)),
};

static bool add_part(cJSON *root, const gs_checkpoint *c)
{
    part_numbers n = {.count = PART_NUMBERS};

    if (!c->part.begun)
        return true;
    cJSON *const to = cJSON_AddObjectToObject(root, "part");
    memcpy(n.number, (const char *)&c->part + offsetof(gs_epoch_part, lr), 6 * sizeof(double));
    memcpy(n.number + 6, (const char *)&c->part.figures + offsetof(gs_task_figures, micro_f1),
           PART_FIGURES * sizeof(double));
    return gs_record_write(to, GS_FIELDS(numbers_field), &n) && gs_record_write(to, GS_FIELDS(part_fields), c);
}

static bool add_sections(cJSON *root, const gs_checkpoint *c)
{
    cJSON *const to = cJSON_AddObjectToObject(root, "sections");
    bool ok = to != NULL;

    for (uint32_t k = 0; ok && k < c->sections; k++)
        ok = gs_record_write(cJSON_AddObjectToObject(to, c->section[k].name), GS_FIELDS(section_fields),
                             &c->section[k]);
    return ok;
}

static bool add_all(cJSON *root, const gs_checkpoint *c)
{
    return cJSON_AddStringToObject(root, "format", FORMAT) != NULL &&
           cJSON_AddNumberToObject(root, "version", c->part.begun ? VERSION_PART : VERSION) != NULL &&
           gs_record_write(root, GS_FIELDS(first_fields), c) && add_options(root, c) &&
           add_object(root, "so_far", GS_FIELDS(so_far_fields), c) &&
           add_object(root, "control", GS_FIELDS(control_fields), c) && add_part(root, c) && add_plan(root, c) &&
           gs_record_write(root, GS_FIELDS(command_field), c) && add_sections(root, c) &&
           gs_json_add_hex(root, "checksum", 0);
}

gs_status gs_checkpoint_format(char **text, uint64_t *bytes, const gs_checkpoint *c)
{
    cJSON *const root = cJSON_CreateObject();
    const bool ok = root != NULL && add_all(root, c) && gs_checksum_line_print(text, bytes, root);

    cJSON_Delete(root);
    return ok ? GS_OK : gs_fail(GS_ENOMEM, "no memory for the text of a checkpoint");
}

/* ---- reading ------------------------------------------------------------- */

static void refuse(gs_record *r, const char *key) { gs_record_refuse(r, key, "cannot be so"); }

/* Another version's may have other keys, too. */
static void read_object(gs_record *r, const char *key, const gs_field *field, size_t fields, gs_checkpoint *c)
{
    char where[GS_WHERE_BYTES];
    gs_record of = gs_record_open(r, key, where);

    gs_record_read(&of, field, fields, c);
    gs_record_close(r, &of);
}

static void read_options(gs_record *r, gs_checkpoint *c)
{
    char where[GS_WHERE_BYTES];
    gs_record from = gs_record_open(r, "options", where);

    for (uint32_t k = 0; k < c->options; k++) {
        gs_checkpoint_option *const o = &c->option[k];
        gs_field f = option_field(o);
        f.may_lack = o->may_lack;
        gs_record_read(&from, &f, 1, o);
    }
    gs_record_close(r, &from);
}

static void read_plan(gs_record *r, gs_checkpoint *c)
{
    char where[GS_WHERE_BYTES];
    gs_record plan = gs_record_open(r, "plan", where);
    const bool host = gs_record_has(&plan, "host_cost");

    c->cost.pick_seconds = 1; /* of a program that picked no rows, whose plan has none */
    c->host_cost.pick_seconds = host;
    gs_record_read(&plan, GS_FIELDS(plan_fields), c);
    gs_record_read(&plan, host_cost_field, host, c);
    gs_record_read(&plan, GS_FIELDS(rates_field), c);
    gs_record_close(r, &plan);
}

static void read_part(gs_record *r, gs_checkpoint *c)
{
    char where[GS_WHERE_BYTES];
    gs_record from = gs_record_open(r, "part", where);
    part_numbers n = {0};
    bool fits = false;

    for (size_t k = 0; k < PART_NUMBERS; k++)
        n.number[k] = NAN;
    gs_record_read(&from, GS_FIELDS(numbers_field), &n);
    for (size_t k = 0; k < GS_ARRAY_LEN(part_numbers_of); k++)
        fits = fits || n.count == part_numbers_of[k];
    if (!fits)
        refuse(&from, "numbers");
    c->part.begun = true;
    memcpy((char *)&c->part + offsetof(gs_epoch_part, lr), n.number, 6 * sizeof(double));
    memcpy((char *)&c->part.figures + offsetof(gs_task_figures, micro_f1), n.number + 6,
           PART_FIGURES * sizeof(double));
    gs_record_read(&from, GS_FIELDS(part_fields), c);
    if (c->part.batches > c->part.of)
        refuse(&from, "batches");
    gs_record_close(r, &from);
}

static void read_control(gs_record *r, gs_checkpoint *c)
{
    gs_control_state *const x = &c->control;
    const uint64_t most = (uint64_t)c->epoch + c->part.begun; /* epochs that were judged */

    x->last_loss = NAN;
    read_object(r, "control", GS_FIELDS(control_fields), c);
    if (x->best_epoch > most || x->last_better > most || x->plateau_bad > most || x->elbow > c->epoch)
        refuse(r, "control");
}

/* A name becomes a file's: nothing but letters, digits and _. */
static bool is_section_name(const char *name)
{
    const size_t n = strlen(name);
    return n > 0 && n < GS_CHECKPOINT_WORDS &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n;
}

static void read_sections(gs_record *r, gs_checkpoint *c)
{
    char where[GS_WHERE_BYTES], within[GS_WHERE_BYTES];
    gs_record from = gs_record_open(r, "sections", where);
    bool good = true;

    while (from.st == GS_OK && from.object->child != NULL && good) {
        const char *const name = from.object->child->string;
        if (!(good = c->sections < GS_CHECKPOINT_SECTIONS && name != NULL && is_section_name(name)))
            break;
        gs_checkpoint_section *const s = &c->section[c->sections++];
        snprintf(s->name, sizeof(s->name), "%s", name);
        gs_record one = gs_record_open(&from, s->name, within);
        gs_record_read(&one, GS_FIELDS(section_fields), s);
        gs_record_close(&from, &one);
    }
    gs_record_close(r, &from);
    if (!good)
        refuse(r, "sections");
}

static void read_all(gs_record *r, gs_checkpoint *c)
{
    char format[GS_CHECKPOINT_WORDS] = "";

    gs_record_read(r, &(gs_field){.name = "format", .kind = GS_FIELD_TEXT, .most = sizeof(format)}, 1, format);
    if (r->st == GS_OK && strcmp(format, FORMAT) != 0)
        r->st = gs_fail(GS_EFORMAT, "%s: is no text of a checkpoint", r->path);
    const uint64_t version = gs_record_number(r, "version", 0, MOST_EXACT);
    if (r->st == GS_OK && version != VERSION && version != VERSION_PART)
        r->st = gs_fail(GS_EFORMAT, "%s: checkpoint version %lu, but this program reads versions %d and %d", r->path,
                        version, VERSION, VERSION_PART);
    gs_record_read(r, GS_FIELDS(first_fields), c);
    read_object(r, "so_far", GS_FIELDS(so_far_fields), c);
    read_options(r, c);
    if (version == VERSION_PART)
        read_part(r, c);
    read_control(r, c);
    read_plan(r, c);
    gs_record_read(r, GS_FIELDS(command_field), c);
    read_sections(r, c);
}

gs_status gs_checkpoint_parse(gs_checkpoint *out, const char *text, uint64_t bytes, const char *path)
{
    gs_checkpoint c = {.options = out->options};
    gs_record r = {.path = path, .where = "", .advice = ""};

    memcpy(c.option, out->option, sizeof(c.option));
    gs_record_of_text(&r, text, bytes);
    read_all(&r, &c);
    cJSON_Delete(r.object);
    if (r.st == GS_OK)
        *out = c;
    return r.st;
}

const gs_checkpoint_section *gs_checkpoint_find_section(const gs_checkpoint *c, const char *name)
{
    for (uint32_t k = 0; k < c->sections; k++)
        if (strcmp(c->section[k].name, name) == 0)
            return &c->section[k];
    return NULL;
}
