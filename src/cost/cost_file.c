/* cost_file.c - the record of a machine as JSON, read without trust. */
#include "cost/cost_file.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/outfile.h"
#include "base/record.h"
#include "base/size.h"

#define VERSION 5
#define FILE_MOST (1u << 20)
#define RATE_MOST 1e15 /* of anything, a second */
#define SLOWER_MOST 4.0
#define LINK_SECONDS_MOST 1.0 /* of telling a driver of a copy */

/* ---- which file ---------------------------------------------------------- */

/* Model name and number of processors. */
static void machine_name(char *out, size_t capacity)
{
    char model[GS_PROCESSOR_BYTES];

    gs_processor_name(model);
    snprintf(out, capacity, "%s, %u processors", model, gs_machine_cpus());
}

/* $XDG_CACHE_HOME/gnnstream or ~/.cache/gnnstream, made where `make`; NULL for neither. */
static char *cache_folder(bool make)
{
    const char *const cache = getenv("XDG_CACHE_HOME"), *const home = getenv("HOME");
    GS_FREED char *parent = NULL;
    char *folder = NULL;

    if (cache != NULL && cache[0] == '/')
        parent = gs_strdup(cache);
    else if (home != NULL && home[0] == '/')
        parent = gs_path_join(home, ".cache");
    if (parent != NULL && (!make || mkdir(parent, 0700) == 0 || gs_path_is_dir(parent)))
        folder = gs_path_join(parent, "gnnstream");
    if (folder != NULL && make && mkdir(folder, 0700) != 0 && !gs_path_is_dir(folder)) {
        gs_free(folder);
        folder = NULL;
    }
    return folder;
}

static char *record_path(const char *machine, const char *device, bool make)
{
    char key[256], name[64];
    GS_FREED char *const folder = cache_folder(make);

    if (folder == NULL)
        return NULL;
    snprintf(key, sizeof(key), "%s|%s", machine, device);
    snprintf(name, sizeof(name), "machine-%016lx.json", gs_hash64(key, strlen(key)));
    return gs_path_join(folder, name);
}

/* ---- fields -------------------------------------------------------------- */

/* Ways of copies, which runs are fitted to. The way from the disk to a device is measured alone. */
#define COPY_WAYS GS_LINK_FROM_DISK

#define REALS(of, member, key, ...) GS_FIELD(of, member, REAL, key, .least = -1e300, .most = 1e300, __VA_ARGS__)
#define RATE(of, member, key, ...) GS_FIELD(of, member, REAL, key, .most = RATE_MOST, __VA_ARGS__)
/* The sums of `kinds` kinds of work from `first` on. */
#define FIT(member, prefix, first, kinds) \
    REALS(gs_cost_record, member.tasks[first], prefix "tasks", .count = (kinds)), \
        REALS(gs_cost_record, member.square[first], prefix "square", \
              .count = (kinds) * GS_WORK_AMOUNTS * GS_WORK_AMOUNTS), \
        REALS(gs_cost_record, member.product[first], prefix "product", .count = (kinds) * GS_WORK_AMOUNTS)

/* What may lack came after the first records, and so did all that is of copies and of batches. */
static const gs_field record_fields[] = {
    RATE(gs_cost_record, read_bps, "epoch_read_bps"),
    RATE(gs_cost_record, write_bps, "epoch_write_bps"),
    GS_FIELD(gs_cost_record, slower_sum, REAL, "slower_sum", .least = -1e3, .most = 1e3),
    RATE(gs_cost_record, slower_weight, "slower_weight"),
    RATE(gs_cost_record, others_sum, "others_sum", .may_lack = true),
    RATE(gs_cost_record, others_weight, "others_weight", .may_lack = true),
    FIT(fit, "", 0, GS_WORK_LINKS),
};
static const gs_field copy_fields[] = {FIT(fit, "link_", GS_WORK_LINKS, COPY_WAYS)};
static const gs_field batch_fields[] = {
    FIT(batch_fit, "batch_", 0, GS_WORK_LINKS),
    RATE(gs_cost_record, draw_seconds, "batch_draw_seconds"),
    RATE(gs_cost_record, draw_amount, "batch_draw_amount"),
};
_Static_assert(sizeof(gs_link) == 2 * sizeof(double), "a link is two numbers of a list");
static const gs_field limit_fields[] = {
    RATE(gs_limits, found.disk_read_bps, "disk_read_bps"),
    RATE(gs_limits, found.disk_write_bps, "disk_write_bps"),
    RATE(gs_limits, found.copy_bps, "copy_bps"),
    RATE(gs_limits, link[0], "links", .count = 2 * COPY_WAYS, .may_lack = true),
    RATE(gs_limits, found.pick_bps, "pick_bps", .may_lack = true),
    RATE(gs_limits, link[GS_LINK_FROM_DISK], "disk_to_device", .count = 2, .may_lack = true),
    GS_FIELD(gs_limits, found.launch_seconds, REAL, "launch_seconds", .most = LINK_SECONDS_MOST, .may_lack = true),
    GS_FIELD(gs_limits, edge_count, U32, "edge_count", .most = UINT32_MAX, .may_lack = true),
    RATE(gs_limits, rounded[0], "rounded", .count = GS_LIMITS_ROUNDED, .may_lack = true),
};

/* Rows of numbers of the figures, each kind of rows a list of all their numbers. */
typedef enum number_kind { REAL, COUNT, BYTES } number_kind; /* double, uint32_t, uint64_t */
#define MOST_COLUMNS 4
#define MOST_NUMBERS 32

typedef struct rows {
    const char *key;
    size_t row_bytes;
    int rows, columns;
    struct {
        number_kind kind;
        size_t at; /* of the first row */
    } column[MOST_COLUMNS];
} rows;

#define AT(field) offsetof(gs_limits_report, field)
#define ROWS(field) sizeof(((gs_limits_report *)0)->field[0])
_Static_assert(GS_LIMIT_DEPTHS == 3, "depths in the table below");
static const rows limit_rows[] = {
    {"random_read", ROWS(random_read), GS_LIMIT_SIZES, 2,
     {{BYTES, AT(random_read[0].bytes)}, {REAL, AT(random_read[0].bps)}}},
    {"depth", ROWS(depth), GS_LIMIT_DEPTHS, 1, {{COUNT, AT(depth)}}},
    {"at_depth", ROWS(random_read), GS_LIMIT_SIZES, GS_LIMIT_DEPTHS,
     {{REAL, AT(random_read[0].at_depth[0])}, {REAL, AT(random_read[0].at_depth[1])},
      {REAL, AT(random_read[0].at_depth[2])}}},
    {"gemm", ROWS(gemm), GS_LIMIT_GEMMS, 4,
     {{COUNT, AT(gemm[0].rows)}, {COUNT, AT(gemm[0].in)}, {COUNT, AT(gemm[0].out)}, {REAL, AT(gemm[0].flops)}}},
    {"gather", ROWS(gather), GS_LIMIT_GATHERS, 2, {{COUNT, AT(gather[0].width)}, {REAL, AT(gather[0].bps)}}},
    {"edges", ROWS(edges), GS_LIMIT_EDGES, 3,
     {{COUNT, AT(edges[0].degree)}, {COUNT, AT(edges[0].width)}, {REAL, AT(edges[0].edges_per_second)}}},
};

static gs_field numbers_of(const rows *t)
{
    return (gs_field){.name = t->key, .kind = GS_FIELD_REAL, .least = 0, .most = RATE_MOST,
                      .count = (uint32_t)(t->rows * t->columns)};
}

/* ---- reading ------------------------------------------------------------- */

static bool same_text(const cJSON *object, const char *key, const char *text)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) && strcmp(item->valuestring, text) == 0;
}

static void expect(gs_record *r, const char *key, double v, double most)
{
    if (!(v >= 0 && v <= most))
        gs_record_refuse(r, key, "has a number that cannot be");
}

static void rows_read(gs_record *r, const rows *t, gs_limits_report *l)
{
    const gs_field f = numbers_of(t);
    double v[MOST_NUMBERS] = {0};

    gs_record_read(r, &f, 1, v);
    for (int i = 0; r->st == GS_OK && i < t->rows * t->columns; i++) {
        const int column = i % t->columns;
        void *const to = (char *)l + (size_t)(i / t->columns) * t->row_bytes + t->column[column].at;
        if (t->column[column].kind != REAL)
            expect(r, t->key, v[i], UINT32_MAX);
        if (t->column[column].kind == REAL)
            *(double *)to = v[i];
        else if (t->column[column].kind == COUNT)
            *(uint32_t *)to = r->st == GS_OK ? (uint32_t)v[i] : 0;
        else
            *(uint64_t *)to = r->st == GS_OK ? (uint64_t)v[i] : 0;
    }
}

static void limits_read(gs_record *of, gs_limits *l)
{
    char where[GS_WHERE_BYTES];
    gs_record r = gs_record_open(of, "limits", where);

    gs_record_read(&r, GS_FIELDS(limit_fields), l);
    for (int i = 0; i < GS_LINK_WAYS; i++)
        expect(&r, "links", l->link[i].request_seconds, LINK_SECONDS_MOST);
    for (size_t i = 0; i < GS_ARRAY_LEN(limit_rows); i++)
        rows_read(&r, &limit_rows[i], &l->found);
    gs_record_close(of, &r);
}

#define STAGE_COLUMNS (1 + GS_COST_WAYS)
#define KEY_MOST 562949953421312.0

static void stages_read(gs_record *r, gs_cost_record *out)
{
    const cJSON *const all = cJSON_GetObjectItemCaseSensitive(r->object, "stages");
    const uint32_t count = (uint32_t)cJSON_GetArraySize(all);

    if (count % STAGE_COLUMNS != 0 || count > GS_COST_STAGES * STAGE_COLUMNS)
        expect(r, "stages", -1, 0);
    else if (count > 0)
        gs_record_read(r, &(gs_field){.name = "stages", .kind = GS_FIELD_REAL, .most = RATE_MOST, .count = count}, 1,
                       out->stage);
    out->stages = count / STAGE_COLUMNS;
    for (uint32_t k = 0; k < out->stages && r->st == GS_OK; k++)
        expect(r, "stages", out->stage[k].key, KEY_MOST);
}

void gs_cost_record_load(gs_cost_record *out, const char *device)
{
    char machine[192];
    GS_FREED char *text = NULL;
    uint64_t bytes = 0;
    gs_cost_record record;

    memset(out, 0, sizeof(*out));
    memset(&record, 0, sizeof(record));
    machine_name(machine, sizeof(machine));
    GS_FREED char *const path = record_path(machine, device, false);
    if (path == NULL || !gs_path_exists(path) || gs_file_read_all(&text, &bytes, path, FILE_MOST) != GS_OK)
        return;
    GS_ENDS(cJSON_Delete_at) cJSON *const root = cJSON_Parse(text);
    gs_record r = {.object = root, .path = path, .where = "", .advice = ""};
    if (!same_text(root, "machine", machine) || !same_text(root, "device", device) ||
        gs_record_number(&r, "version", VERSION, VERSION) != VERSION)
        return;
    gs_record_read(&r, GS_FIELDS(record_fields), &record);
    if (gs_record_has(&r, "link_tasks"))
        gs_record_read(&r, GS_FIELDS(copy_fields), &record);
    if (gs_record_has(&r, "batch_tasks"))
        gs_record_read(&r, GS_FIELDS(batch_fields), &record);
    stages_read(&r, &record);
    if (gs_record_has(&r, "limits"))
        limits_read(&r, &record.limits);
    if (r.st == GS_OK)
        *out = record;
}

/* ---- writing ------------------------------------------------------------- */

static void rows_write(cJSON *o, const rows *t, const gs_limits_report *l)
{
    const gs_field f = numbers_of(t);
    double v[MOST_NUMBERS];

    for (int i = 0; i < t->rows * t->columns; i++) {
        const int column = i % t->columns;
        const void *const from = (const char *)l + (size_t)(i / t->columns) * t->row_bytes + t->column[column].at;
        v[i] = t->column[column].kind == REAL    ? *(const double *)from
               : t->column[column].kind == COUNT ? *(const uint32_t *)from
                                                 : (double)*(const uint64_t *)from;
    }
    (void)gs_record_write(o, &f, 1, v);
}

static char *record_text(const gs_cost_record *r, const char *machine, const char *device)
{
    const gs_field stages = {.name = "stages", .kind = GS_FIELD_REAL, .count = r->stages * STAGE_COLUMNS};
    GS_ENDS(cJSON_Delete_at) cJSON *const root = cJSON_CreateObject();
    char *text;

    cJSON_AddNumberToObject(root, "version", VERSION);
    cJSON_AddStringToObject(root, "machine", machine);
    cJSON_AddStringToObject(root, "device", device);
    (void)gs_record_write(root, GS_FIELDS(record_fields), r);
    (void)gs_record_write(root, GS_FIELDS(copy_fields), r);
    (void)gs_record_write(root, GS_FIELDS(batch_fields), r);
    (void)gs_record_write(root, &stages, r->stages > 0, r->stage);
    cJSON *const limits = cJSON_AddObjectToObject(root, "limits");
    (void)gs_record_write(limits, GS_FIELDS(limit_fields), &r->limits);
    for (size_t i = 0; i < GS_ARRAY_LEN(limit_rows); i++)
        rows_write(limits, &limit_rows[i], &r->limits.found);
    text = cJSON_Print(root);
    return text;
}

gs_status gs_cost_record_save(const gs_cost_record *r, const char *device)
{
    char machine[192];
    GS_FREED char *path = NULL;
    char *text = NULL;
    gs_status st = GS_OK;

    machine_name(machine, sizeof(machine));
    if ((path = record_path(machine, device, true)) == NULL)
        return gs_fail(GS_ENOTFOUND, "no folder to keep measurements in; set XDG_CACHE_HOME");
    if ((text = record_text(r, machine, device)) == NULL)
        st = gs_fail(GS_ENOMEM, "%s: out of memory", path);
    else
        st = gs_file_write_atomic(path, text, strlen(text));
    cJSON_free(text);
    return st;
}

const gs_cost_stage *gs_cost_record_stage(const gs_cost_record *r, double key)
{
    for (uint32_t k = 0; k < r->stages; k++)
        if (r->stage[k].key == key)
            return &r->stage[k];
    return NULL;
}

void gs_cost_record_add_stage(gs_cost_record *r, const gs_cost_stage *stage)
{
    const gs_cost_stage *const known = gs_cost_record_stage(r, stage->key);
    uint32_t at = known != NULL ? (uint32_t)(known - r->stage) : r->stages;

    if (at == GS_COST_STAGES)
        at--;
    r->stages = at >= r->stages ? at + 1 : r->stages;
    memmove(&r->stage[1], &r->stage[0], at * sizeof(*stage));
    r->stage[0] = *stage;
}

void gs_cost_from_record(gs_cost *out, const gs_cost_record *r, uint32_t threads, const gs_gpu_speed *gpu)
{
    gs_cost_defaults(out, threads);
    if (gpu != NULL)
        gs_cost_gpu_defaults(out, gpu);
    gs_cost_take_limits(out, &r->limits, gpu != NULL ? gpu->rounding : 0);
    gs_fit_solve(&r->fit, out);
    if (r->read_bps > 0) {
        out->read_bps = r->read_bps;
        out->disk_source = GS_COST_FITTED;
    }
    if (r->write_bps > 0)
        out->write_bps = r->write_bps;
    if (r->slower_weight > 0)
        gs_cost_slow_disk(out, exp(r->slower_sum / r->slower_weight));
    out->others = r->others_weight > 0 ? fmin(r->others_sum / r->others_weight, 1) : 0;
}

void gs_cost_take_batches(gs_cost *c, const gs_cost_record *r)
{
    gs_fit_solve(&r->batch_fit, c);
    c->draw_seconds = r->draw_amount > 0 ? r->draw_seconds / r->draw_amount : 0;
}

void gs_cost_slow_disk(gs_cost *c, double times)
{
    times = times > SLOWER_MOST ? SLOWER_MOST : times < 1 / SLOWER_MOST ? 1 / SLOWER_MOST : times;
    c->read_bps /= times;
    c->write_bps /= times;
    c->request_seconds *= times;
    c->block_seconds *= times;
    c->seconds[GS_WORK_FROM_DISK][0] *= times; /* it is the same disk */
    c->seconds[GS_WORK_FROM_DISK][1] *= times;
}

void gs_cost_record_slower(gs_cost_record *r, double times, double share)
{
    if (!(times > 0) || !isfinite(times))
        return;
    r->slower_sum = r->slower_sum * share + log(times);
    r->slower_weight = r->slower_weight * share + 1;
}

void gs_cost_record_others(gs_cost_record *r, double others, double share)
{
    r->others_sum = r->others_sum * share + others;
    r->others_weight = r->others_weight * share + 1;
}
