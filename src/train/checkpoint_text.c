#include "train/checkpoint_text.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/hash.h"
#include "base/option_table.h"
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
        snprintf(text, GS_CHECKPOINT_WORDS, "%016llx", (unsigned long long)gs_hash64(given, strlen(given)));
    else
        snprintf(text, GS_CHECKPOINT_WORDS, "%s", given);
}

static void take_option(gs_checkpoint_option *to, const gs_option *x, const gs_train_options *o)
{
    if (gs_option_is_text(x))
        take_option_text(to->text, x, o);
    else if (x->kind == GS_OPTION_LONG)
        snprintf(to->text, sizeof(to->text), "%llu",
                 (unsigned long long)*(const uint64_t *)(const void *)((const char *)o + x->field));
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

/* ---- writing ------------------------------------------------------------- */

static bool add_number(cJSON *to, const char *key, double v) { return cJSON_AddNumberToObject(to, key, v) != NULL; }

static bool add_text(cJSON *to, const char *key, const char *text)
{
    return cJSON_AddStringToObject(to, key, text) != NULL;
}

static bool add_options(cJSON *root, const gs_checkpoint *c)
{
    cJSON *const to = cJSON_AddObjectToObject(root, "options");
    bool ok = to != NULL;

    for (uint32_t k = 0; ok && k < c->options; k++) {
        const gs_checkpoint_option *const o = &c->option[k];
        ok = o->is_text ? add_text(to, o->name, o->text) : add_number(to, o->name, o->number);
    }
    return ok;
}

static bool add_cost(cJSON *to, const char *name, const gs_cost *c)
{
    cJSON *const cost = cJSON_AddObjectToObject(to, name);
    cJSON *const kinds = cost == NULL ? NULL : cJSON_AddArrayToObject(cost, "seconds");
    cJSON *const sources = kinds == NULL ? NULL : cJSON_AddArrayToObject(cost, "sources");
    bool ok = sources != NULL;

    for (int k = 0; ok && k < GS_WORK_KINDS; k++) {
        cJSON *const row = cJSON_CreateDoubleArray(c->seconds[k], GS_WORK_AMOUNTS);
        ok = row != NULL && cJSON_AddItemToArray(kinds, row) &&
             cJSON_AddItemToArray(sources, cJSON_CreateNumber(c->source[k]));
    }
    return ok && add_number(cost, "disk_source", c->disk_source) && add_number(cost, "read_bps", c->read_bps) &&
           add_number(cost, "write_bps", c->write_bps) &&
           add_number(cost, "request_seconds", c->request_seconds) &&
           add_number(cost, "block_seconds", c->block_seconds) &&
           add_number(cost, "latency_seconds", c->latency_seconds) && add_number(cost, "pick_seconds", c->pick_seconds);
}

/* A disk always moves something. */
static bool has_host_cost(const gs_checkpoint *c) { return c->host_cost.read_bps > 0; }

static bool add_rates(cJSON *to, const gs_checkpoint *c)
{
    cJSON *const rates = c->batch_rates == 0 ? NULL : cJSON_AddArrayToObject(to, "batch_rates");
    bool ok = c->batch_rates == 0 || rates != NULL;
    for (uint32_t k = 0; k < c->batch_rates && ok; k++)
        ok = cJSON_AddItemToArray(rates, cJSON_CreateNumber(c->batch_rate[k]));
    return ok;
}

static bool add_plan(cJSON *root, const gs_checkpoint *c)
{
    cJSON *const to = cJSON_AddObjectToObject(root, "plan");
    return to != NULL && gs_json_add_hex(to, "id", c->plan_id) && add_text(to, "maker", c->maker) &&
           add_text(to, "device", c->device) &&
           (c->taken[0] == '\0' || add_text(to, "devices_taken", c->taken)) &&
           add_number(to, "host_memory", (double)c->host_memory) &&
           add_number(to, "device_memory", (double)c->device_memory) &&
           add_number(to, "process_bytes", (double)c->process_bytes) && add_number(to, "epochs", c->epochs) &&
           add_cost(to, "cost", &c->cost) &&
           (!has_host_cost(c) || add_cost(to, "host_cost", &c->host_cost)) && add_rates(to, c);
}

static bool add_so_far(cJSON *root, const gs_checkpoint *c)
{
    cJSON *const to = cJSON_AddObjectToObject(root, "so_far");
    return to != NULL && add_number(to, "seconds", c->seconds) &&
           add_number(to, "read_bytes", (double)c->read_bytes) &&
           add_number(to, "written_bytes", (double)c->written_bytes) &&
           add_number(to, "metrics_bytes", (double)c->lines_bytes) &&
           gs_json_add_hex(to, "metrics_checksum", c->lines_checksum);
}

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

/* Doubles as their bits: some are not numbers. */
static bool add_control(cJSON *root, const gs_control_state *s)
{
    cJSON *const to = cJSON_AddObjectToObject(root, "control");
    return to != NULL && gs_json_add_hex(to, "best", bits_of(s->best)) &&
           add_number(to, "best_epoch", s->best_epoch) && add_number(to, "last_better", s->last_better) &&
           gs_json_add_hex(to, "plateau_best", bits_of(s->plateau_best)) &&
           add_number(to, "plateau_bad", s->plateau_bad) && gs_json_add_hex(to, "factor", bits_of(s->factor)) &&
           gs_json_add_hex(to, "last_loss", bits_of(s->last_loss)) &&
           gs_json_add_hex(to, "largest_drop", bits_of(s->largest_drop)) && add_number(to, "elbow", s->elbow);
}

/* All numbers of a part, as their bits; before there were some of the figures, so many. */
#define PART_FIGURES 40u
#define PART_NUMBERS (6u + PART_FIGURES)
static const int part_numbers_before[] = {27, 31, 43};
_Static_assert(sizeof(gs_task_figures) == offsetof(gs_task_figures, micro_f1) + PART_FIGURES * sizeof(double),
               "of a part");

static void list_part(double number[PART_NUMBERS], const gs_epoch_part *p)
{
    const double first[] = {p->lr, p->loss, p->mass, p->accuracy[0], p->accuracy[1], p->accuracy[2]};
    memcpy(number, first, sizeof(first));
    memcpy(number + 6, (const char *)&p->figures + offsetof(gs_task_figures, micro_f1),
           PART_FIGURES * sizeof(double));
}

static bool add_part(cJSON *root, const gs_epoch_part *p)
{
    double number[PART_NUMBERS];
    char digits[GS_HEX_DIGITS + 1];

    if (!p->begun)
        return true;
    cJSON *const to = cJSON_AddObjectToObject(root, "part");
    cJSON *const list = to == NULL ? NULL : cJSON_AddArrayToObject(to, "numbers");
    bool ok = list != NULL && add_number(to, "batches", p->batches) && add_number(to, "of", p->of);
    list_part(number, p);
    for (uint32_t k = 0; ok && k < PART_NUMBERS; k++) {
        gs_hex_format(digits, bits_of(number[k]));
        ok = cJSON_AddItemToArray(list, cJSON_CreateString(digits));
    }
    return ok;
}

static bool add_sections(cJSON *root, const gs_checkpoint *c)
{
    cJSON *const to = cJSON_AddObjectToObject(root, "sections");
    bool ok = to != NULL;

    for (uint32_t k = 0; ok && k < c->sections; k++) {
        cJSON *const section = cJSON_AddObjectToObject(to, c->section[k].name);
        ok = section != NULL && add_number(section, "bytes", (double)c->section[k].bytes) &&
             gs_json_add_hex(section, "checksum", c->section[k].checksum);
    }
    return ok;
}

static bool add_all(cJSON *root, const gs_checkpoint *c)
{
    return add_text(root, "format", FORMAT) && add_number(root, "version", c->part.begun ? VERSION_PART : VERSION) &&
           add_number(root, "epoch", c->epoch) && add_number(root, "steps", (double)c->steps) &&
           gs_json_add_hex(root, "store", c->store_id) && gs_json_add_hex(root, "model", c->model_id) &&
           add_options(root, c) && add_so_far(root, c) && add_control(root, &c->control) && add_part(root, &c->part) &&
           add_plan(root, c) && (c->command[0] == '\0' || add_text(root, "command", c->command)) &&
           add_sections(root, c) && gs_json_add_hex(root, "checksum", 0);
}

gs_status gs_checkpoint_format(char **text, uint64_t *bytes, const gs_checkpoint *c)
{
    cJSON *const root = cJSON_CreateObject();
    const bool ok = root != NULL && add_all(root, c) && gs_checksum_line_print(text, bytes, root);

    cJSON_Delete(root);
    return ok ? GS_OK : gs_fail(GS_ENOMEM, "no memory for the text of a checkpoint");
}

/* ---- reading ------------------------------------------------------------- */

/* After a first failure `st` says so, and every take gives 0 or "". */
typedef struct reader {
    const char *path;
    gs_status st;
} reader;

static const cJSON *item(reader *r, const cJSON *object, const char *key, bool good)
{
    const cJSON *const found = cJSON_GetObjectItemCaseSensitive(object, key);

    if (r->st == GS_OK && (found == NULL || !good))
        r->st = gs_fail(GS_EFORMAT, "%s: \"%s\" is missing or cannot be so", r->path, key);
    return found;
}

static double take_real(reader *r, const cJSON *object, const char *key, double least, double most)
{
    const cJSON *const found = cJSON_GetObjectItemCaseSensitive(object, key);
    const bool good = cJSON_IsNumber(found) && found->valuedouble >= least && found->valuedouble <= most;
    (void)item(r, object, key, good);
    return good ? found->valuedouble : 0;
}

static uint64_t take_whole(reader *r, const cJSON *object, const char *key, double most)
{
    const double v = take_real(r, object, key, 0, most);
    (void)item(r, object, key, v == floor(v));
    return (uint64_t)v;
}

static void take_text(reader *r, const cJSON *object, const char *key, char *out, size_t capacity)
{
    const cJSON *const found = cJSON_GetObjectItemCaseSensitive(object, key);
    const bool good = cJSON_IsString(found) && strlen(found->valuestring) < capacity;
    (void)item(r, object, key, good);
    snprintf(out, capacity, "%s", good ? found->valuestring : "");
}

static uint64_t take_hex(reader *r, const cJSON *object, const char *key)
{
    const cJSON *const found = cJSON_GetObjectItemCaseSensitive(object, key);
    uint64_t v = 0;
    const bool good = cJSON_IsString(found) && strlen(found->valuestring) == GS_HEX_DIGITS &&
                      gs_hex_parse(&v, found->valuestring);
    (void)item(r, object, key, good);
    return v;
}

static void read_options(reader *r, const cJSON *root, gs_checkpoint *c)
{
    const cJSON *const from = cJSON_GetObjectItemCaseSensitive(root, "options");

    for (uint32_t k = 0; k < c->options; k++) {
        gs_checkpoint_option *const o = &c->option[k];
        if (o->may_lack && cJSON_GetObjectItemCaseSensitive(from, o->name) == NULL)
            continue;
        if (o->is_text)
            take_text(r, from, o->name, o->text, sizeof(o->text));
        else
            o->number = take_real(r, from, o->name, -HUGE_VAL, HUGE_VAL);
    }
}

static gs_cost_source source_of(reader *r, const cJSON *cost, const cJSON *v)
{
    const bool good = cJSON_IsNumber(v) && v->valuedouble >= GS_COST_DEFAULT && v->valuedouble <= GS_COST_FITTED;
    (void)item(r, cost, "sources", good);
    return good ? (gs_cost_source)v->valueint : GS_COST_DEFAULT;
}

static void read_cost(reader *r, const cJSON *cost, gs_cost *c)
{
    const cJSON *const kinds = item(r, cost, "seconds", true), *const sources = item(r, cost, "sources", true);

    for (int k = 0; r->st == GS_OK && k < GS_WORK_KINDS; k++) {
        for (int a = 0; a < GS_WORK_AMOUNTS; a++) {
            const cJSON *const v = cJSON_GetArrayItem(cJSON_GetArrayItem(kinds, k), a);
            const bool good = cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble <= MOST_RATE;
            (void)item(r, cost, "seconds", good);
            c->seconds[k][a] = good ? v->valuedouble : 0;
        }
        c->source[k] = source_of(r, cost, cJSON_GetArrayItem(sources, k));
    }
    c->disk_source = source_of(r, cost, cJSON_GetObjectItemCaseSensitive(cost, "disk_source"));
    c->read_bps = take_real(r, cost, "read_bps", 1, MOST_RATE);
    c->write_bps = take_real(r, cost, "write_bps", 1, MOST_RATE);
    c->request_seconds = take_real(r, cost, "request_seconds", 0, 1);
    c->latency_seconds = take_real(r, cost, "latency_seconds", 0, 1);
    if (cJSON_GetObjectItemCaseSensitive(cost, "block_seconds") != NULL) /* later than the first checkpoints */
        c->block_seconds = take_real(r, cost, "block_seconds", 0, 1);
    /* of a program that picked no rows, whose plan has none */
    c->pick_seconds = cJSON_GetObjectItemCaseSensitive(cost, "pick_seconds") == NULL
                          ? 1
                          : take_real(r, cost, "pick_seconds", 0, 1);
}

static void read_rates(reader *r, const cJSON *plan, gs_checkpoint *c)
{
    const cJSON *const rates = cJSON_GetObjectItemCaseSensitive(plan, "batch_rates");
    const int n = cJSON_GetArraySize(rates);

    if (rates == NULL)
        return;
    (void)item(r, plan, "batch_rates", cJSON_IsArray(rates) && n > 0 && n <= (int)GS_BATCH_DEVICES);
    for (int k = 0; k < n && r->st == GS_OK; k++) {
        const cJSON *const v = cJSON_GetArrayItem(rates, k);
        (void)item(r, plan, "batch_rates", cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble <= MOST_RATE);
        c->batch_rate[k] = r->st == GS_OK ? v->valuedouble : 1;
    }
    c->batch_rates = r->st == GS_OK ? (uint32_t)n : 0;
}

static void read_plan(reader *r, const cJSON *root, gs_checkpoint *c)
{
    const cJSON *const plan = cJSON_GetObjectItemCaseSensitive(root, "plan");

    c->plan_id = take_hex(r, plan, "id");
    take_text(r, plan, "maker", c->maker, sizeof(c->maker));
    take_text(r, plan, "device", c->device, sizeof(c->device));
    if (cJSON_GetObjectItemCaseSensitive(plan, "devices_taken") != NULL)
        take_text(r, plan, "devices_taken", c->taken, sizeof(c->taken));
    c->host_memory = take_whole(r, plan, "host_memory", MOST_EXACT);
    c->device_memory = take_whole(r, plan, "device_memory", MOST_EXACT);
    c->process_bytes = take_whole(r, plan, "process_bytes", MOST_EXACT);
    if (cJSON_GetObjectItemCaseSensitive(plan, "epochs") != NULL) /* versions before did not plan for them */
        c->epochs = (uint32_t)take_whole(r, plan, "epochs", UINT32_MAX);
    read_cost(r, cJSON_GetObjectItemCaseSensitive(plan, "cost"), &c->cost);
    const cJSON *const host = cJSON_GetObjectItemCaseSensitive(plan, "host_cost");
    if (host != NULL)
        read_cost(r, host, &c->host_cost);
    read_rates(r, plan, c);
}

static double take_bits(reader *r, const cJSON *object, const char *key)
{
    const uint64_t bits = take_hex(r, object, key);
    double v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

static void read_part(reader *r, const cJSON *root, gs_epoch_part *p)
{
    const cJSON *const from = item(r, root, "part", true), *const list = item(r, from, "numbers", true);
    double number[PART_NUMBERS] = {0};
    int before = (int)PART_NUMBERS;

    for (size_t k = 0; k < GS_ARRAY_LEN(part_numbers_before); k++)
        before = cJSON_GetArraySize(list) == part_numbers_before[k] ? part_numbers_before[k] : before;
    for (int k = before; k < (int)PART_NUMBERS; k++)
        number[k] = NAN;
    for (int k = 0; k < before; k++) {
        const cJSON *const digits = cJSON_GetArrayItem(list, k);
        uint64_t bits = 0;
        (void)item(r, from, "numbers", cJSON_IsString(digits) && strlen(digits->valuestring) == GS_HEX_DIGITS &&
                                           gs_hex_parse(&bits, digits->valuestring));
        memcpy(&number[k], &bits, sizeof(bits));
    }
    *p = (gs_epoch_part){.begun = true, .lr = number[0], .loss = number[1], .mass = number[2],
                         .accuracy = {number[3], number[4], number[5]}};
    p->of = (uint32_t)take_whole(r, from, "of", UINT32_MAX);
    p->batches = (uint32_t)take_whole(r, from, "batches", p->of);
    memcpy((char *)&p->figures + offsetof(gs_task_figures, micro_f1), number + 6, PART_FIGURES * sizeof(double));
}

static void read_control(reader *r, const cJSON *root, gs_checkpoint *c)
{
    const cJSON *const from = cJSON_GetObjectItemCaseSensitive(root, "control");
    const double most = (double)c->epoch + c->part.begun; /* epochs that were judged */

    c->control = (gs_control_state){.best = take_bits(r, from, "best"),
                                    .best_epoch = (uint32_t)take_whole(r, from, "best_epoch", most),
                                    .last_better = (uint32_t)take_whole(r, from, "last_better", most),
                                    .plateau_best = take_bits(r, from, "plateau_best"),
                                    .plateau_bad = (uint32_t)take_whole(r, from, "plateau_bad", most),
                                    .factor = take_bits(r, from, "factor"), .last_loss = NAN};
    if (cJSON_GetObjectItemCaseSensitive(from, "elbow") == NULL)
        return; /* written before there were any */
    c->control.elbow = (uint32_t)take_whole(r, from, "elbow", c->epoch);
    c->control.last_loss = take_bits(r, from, "last_loss");
    c->control.largest_drop = take_bits(r, from, "largest_drop");
}

/* A name becomes a file's: nothing but letters, digits and _. */
static bool is_section_name(const char *name)
{
    const size_t n = strlen(name);
    return n > 0 && n < GS_CHECKPOINT_WORDS &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n;
}

static void read_sections(reader *r, const cJSON *root, gs_checkpoint *c)
{
    const cJSON *const from = item(r, root, "sections", true), *entry;

    cJSON_ArrayForEach(entry, from)
    {
        if (r->st != GS_OK)
            return;
        if (c->sections == GS_CHECKPOINT_SECTIONS || entry->string == NULL || !is_section_name(entry->string)) {
            r->st = gs_fail(GS_EFORMAT, "%s: \"sections\" are too many or are not called so", r->path);
            return;
        }
        gs_checkpoint_section *const s = &c->section[c->sections++];
        snprintf(s->name, sizeof(s->name), "%s", entry->string);
        s->bytes = take_whole(r, entry, "bytes", MOST_EXACT);
        s->checksum = take_hex(r, entry, "checksum");
    }
}

static void read_all(reader *r, const cJSON *root, gs_checkpoint *c)
{
    char format[GS_CHECKPOINT_WORDS];

    take_text(r, root, "format", format, sizeof(format));
    if (r->st == GS_OK && strcmp(format, FORMAT) != 0)
        r->st = gs_fail(GS_EFORMAT, "%s: is no text of a checkpoint", r->path);
    const uint64_t version = take_whole(r, root, "version", MOST_EXACT);
    if (r->st == GS_OK && version != VERSION && version != VERSION_PART)
        r->st = gs_fail(GS_EFORMAT, "%s: checkpoint version %llu, but this program reads versions %d and %d", r->path,
                        (unsigned long long)version, VERSION, VERSION_PART);
    c->epoch = (uint32_t)take_whole(r, root, "epoch", UINT32_MAX);
    c->steps = take_whole(r, root, "steps", MOST_EXACT);
    c->store_id = take_hex(r, root, "store");
    c->model_id = take_hex(r, root, "model");
    const cJSON *const so_far = cJSON_GetObjectItemCaseSensitive(root, "so_far");
    c->seconds = take_real(r, so_far, "seconds", 0, MOST_RATE);
    c->read_bytes = take_whole(r, so_far, "read_bytes", MOST_RATE);
    c->written_bytes = take_whole(r, so_far, "written_bytes", MOST_RATE);
    c->lines_bytes = take_whole(r, so_far, "metrics_bytes", MOST_EXACT);
    c->lines_checksum = take_hex(r, so_far, "metrics_checksum");
    read_options(r, root, c);
    if (version == VERSION_PART)
        read_part(r, root, &c->part);
    read_control(r, root, c);
    read_plan(r, root, c);
    if (cJSON_GetObjectItemCaseSensitive(root, "command") != NULL)
        take_text(r, root, "command", c->command, sizeof(c->command));
    read_sections(r, root, c);
}

gs_status gs_checkpoint_parse(gs_checkpoint *out, const char *text, uint64_t bytes, const char *path)
{
    gs_checkpoint c = {.options = out->options};
    reader r = {path, gs_checksum_line_check(text, bytes, path, "")};

    if (r.st != GS_OK)
        return r.st;
    memcpy(c.option, out->option, sizeof(c.option));
    cJSON *const root = cJSON_ParseWithLength(text, bytes);
    if (!cJSON_IsObject(root))
        r.st = gs_fail(GS_EFORMAT, "%s: not a JSON object", path);
    else
        read_all(&r, root, &c);
    cJSON_Delete(root);
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
