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
    char *parent = NULL, *folder = NULL;

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
    gs_free(parent);
    return folder;
}

static char *record_path(const char *machine, const char *device, bool make)
{
    char key[256], name[64];
    char *const folder = cache_folder(make);
    char *path = NULL;

    if (folder == NULL)
        return NULL;
    snprintf(key, sizeof(key), "%s|%s", machine, device);
    snprintf(name, sizeof(name), "machine-%016llx.json", (unsigned long long)gs_hash64(key, strlen(key)));
    path = gs_path_join(folder, name);
    gs_free(folder);
    return path;
}

/* ---- reading ------------------------------------------------------------- */

/* After the first value that is missing or out of its range, `fine` is false. */
typedef struct reader {
    bool fine;
} reader;

static const cJSON *list(reader *r, const cJSON *object, const char *key, int count)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, key);
    r->fine = r->fine && cJSON_IsArray(item) && cJSON_GetArraySize(item) == count;
    return r->fine ? item : NULL;
}

static double number(reader *r, const cJSON *item, double least, double most)
{
    const double v = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    r->fine = r->fine && v >= least && v <= most; /* false for NaN */
    return r->fine ? v : 0;
}

static double rate(reader *r, const cJSON *object, const char *key)
{
    return number(r, cJSON_GetObjectItemCaseSensitive(object, key), 0, RATE_MOST);
}

/* `count` numbers, in rows of `columns` values: out[i * columns + k]. */
static void table(reader *r, const cJSON *object, const char *key, int count, double *out)
{
    const cJSON *item = NULL, *const all = list(r, object, key, count);
    int i = 0;
    cJSON_ArrayForEach(item, all) out[i++] = number(r, item, -1e300, 1e300);
}

static bool same_text(const cJSON *object, const char *key, const char *text)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) && strcmp(item->valuestring, text) == 0;
}

static uint32_t count_of(reader *r, double v)
{
    r->fine = r->fine && v >= 0 && v <= UINT32_MAX;
    return r->fine ? (uint32_t)v : 0;
}

struct name {
    char text[24];
};

static struct name named(const char *prefix, const char *table)
{
    struct name n;
    snprintf(n.text, sizeof(n.text), "%s%s", prefix, table);
    return n;
}

/* Ways of copies, which runs are fitted to. The way from the disk to a device is measured alone, and has an entry of
 * its own. */
#define COPY_WAYS GS_LINK_FROM_DISK

/* Records of before there were links have none. */
static void links_read(reader *r, const cJSON *o, gs_limits *l)
{
    double link[GS_LINK_WAYS * 2] = {0};

    if (cJSON_GetObjectItemCaseSensitive(o, "links") == NULL)
        return;
    table(r, o, "links", COPY_WAYS * 2, link);
    if (cJSON_GetObjectItemCaseSensitive(o, "disk_to_device") != NULL)
        table(r, o, "disk_to_device", 2, &link[2 * GS_LINK_FROM_DISK]);
    for (int i = 0; i < GS_LINK_WAYS; i++) {
        r->fine = r->fine && link[2 * i] >= 0 && link[2 * i] <= RATE_MOST && link[2 * i + 1] >= 0 &&
                  link[2 * i + 1] <= LINK_SECONDS_MOST;
        l->link[i] = (gs_link){link[2 * i], link[2 * i + 1]};
    }
    if (cJSON_GetObjectItemCaseSensitive(o, "pick_bps") != NULL) /* nor have some with links */
        l->found.pick_bps = rate(r, o, "pick_bps");
}

/* Records of a processor have none. */
static void gpu_read(reader *r, const cJSON *o, gs_limits *l)
{
    double gpu[GS_LIMITS_ROUNDED + 2] = {0};

    if (cJSON_GetObjectItemCaseSensitive(o, "gpu") == NULL)
        return;
    table(r, o, "gpu", GS_LIMITS_ROUNDED + 2, gpu);
    for (int i = 0; i < GS_LIMITS_ROUNDED + 2; i++)
        r->fine = r->fine && gpu[i] >= 0 && gpu[i] <= (i == 0 ? LINK_SECONDS_MOST : RATE_MOST);
    l->found.launch_seconds = gpu[0];
    l->edge_count = count_of(r, gpu[1]);
    for (int i = 0; i < GS_LIMITS_ROUNDED; i++)
        l->rounded[i] = gpu[2 + i];
}

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

static void rows_read(reader *r, const cJSON *o, const rows *t, gs_limits_report *l)
{
    double v[MOST_NUMBERS] = {0};

    table(r, o, t->key, t->rows * t->columns, v);
    for (int i = 0; r->fine && i < t->rows * t->columns; i++) {
        const int column = i % t->columns;
        void *const to = (char *)l + (size_t)(i / t->columns) * t->row_bytes + t->column[column].at;
        if (t->column[column].kind == REAL)
            *(double *)to = v[i];
        else if (t->column[column].kind == COUNT)
            *(uint32_t *)to = count_of(r, v[i]);
        else
            *(uint64_t *)to = count_of(r, v[i]);
    }
}

static void limits_read(reader *r, const cJSON *o, gs_limits *l)
{
    l->found.disk_read_bps = rate(r, o, "disk_read_bps");
    l->found.disk_write_bps = rate(r, o, "disk_write_bps");
    l->found.copy_bps = rate(r, o, "copy_bps");
    links_read(r, o, l);
    gpu_read(r, o, l);
    for (size_t i = 0; i < GS_ARRAY_LEN(limit_rows); i++)
        rows_read(r, o, &limit_rows[i], &l->found);
}

/* Reads the sums of `kinds` kinds from `first` on, out of tables whose names begin with `prefix`. */
static void fit_read(reader *r, const cJSON *root, const char *prefix, int kinds, int first, gs_fit *f)
{
    table(r, root, named(prefix, "tasks").text, kinds, &f->tasks[first]);
    table(r, root, named(prefix, "square").text, kinds * GS_WORK_AMOUNTS * GS_WORK_AMOUNTS, &f->square[first][0][0]);
    table(r, root, named(prefix, "product").text, kinds * GS_WORK_AMOUNTS, &f->product[first][0]);
}

static void batches_read(reader *r, const cJSON *root, gs_cost_record *out)
{
    fit_read(r, root, "batch_", GS_WORK_LINKS, 0, &out->batch_fit);
    out->draw_seconds = rate(r, root, "batch_draw_seconds");
    out->draw_amount = rate(r, root, "batch_draw_amount");
}

#define STAGE_COLUMNS (1 + (int)GS_COST_WAYS)
#define KEY_MOST 562949953421312.0

static void stages_read(reader *r, const cJSON *root, gs_cost_record *out)
{
    const cJSON *const all = cJSON_GetObjectItemCaseSensitive(root, "stages"), *item = NULL;
    double *to = NULL;
    int i = 0;

    r->fine = r->fine && cJSON_IsArray(all) && cJSON_GetArraySize(all) % STAGE_COLUMNS == 0 &&
              cJSON_GetArraySize(all) <= (int)GS_COST_STAGES * STAGE_COLUMNS;
    if (!r->fine)
        return;
    cJSON_ArrayForEach(item, all)
    {
        gs_cost_stage *const stage = &out->stage[i / STAGE_COLUMNS];
        to = i % STAGE_COLUMNS == 0 ? &stage->key : &stage->seconds[i % STAGE_COLUMNS - 1];
        *to = number(r, item, 0, i % STAGE_COLUMNS == 0 ? KEY_MOST : RATE_MOST);
        i++;
    }
    out->stages = (uint32_t)(i / STAGE_COLUMNS);
}

static void record_read(reader *r, const cJSON *root, gs_cost_record *out)
{
    const cJSON *const limits = cJSON_GetObjectItemCaseSensitive(root, "limits");

    out->read_bps = rate(r, root, "epoch_read_bps");
    out->write_bps = rate(r, root, "epoch_write_bps");
    out->slower_sum = number(r, cJSON_GetObjectItemCaseSensitive(root, "slower_sum"), -1e3, 1e3);
    out->slower_weight = rate(r, root, "slower_weight");
    fit_read(r, root, "", GS_WORK_LINKS, 0, &out->fit);
    if (cJSON_GetObjectItemCaseSensitive(root, "link_tasks") != NULL) /* records of before there were links have none */
        fit_read(r, root, "link_", COPY_WAYS, GS_WORK_LINKS, &out->fit);
    if (cJSON_GetObjectItemCaseSensitive(root, "batch_tasks") != NULL) /* nor have those of before batches were timed */
        batches_read(r, root, out);
    if (cJSON_GetObjectItemCaseSensitive(root, "others_weight") != NULL) { /* nor have those of before load was */
        out->others_sum = rate(r, root, "others_sum");
        out->others_weight = rate(r, root, "others_weight");
    }
    if (cJSON_GetObjectItemCaseSensitive(root, "stages") != NULL) /* nor those of before ways were measured */
        stages_read(r, root, out);
    if (limits != NULL)
        limits_read(r, limits, &out->limits);
}

void gs_cost_record_load(gs_cost_record *out, const char *device)
{
    char machine[192];
    char *path, *text = NULL;
    uint64_t bytes = 0;
    reader r = {true};
    cJSON *root = NULL;
    gs_cost_record record;

    memset(out, 0, sizeof(*out));
    memset(&record, 0, sizeof(record));
    machine_name(machine, sizeof(machine));
    path = record_path(machine, device, false);
    if (path == NULL || !gs_path_exists(path) || gs_file_read_all(&text, &bytes, path, FILE_MOST) != GS_OK)
        goto done;
    root = cJSON_Parse(text);
    if (!same_text(root, "machine", machine) || !same_text(root, "device", device) ||
        number(&r, cJSON_GetObjectItemCaseSensitive(root, "version"), VERSION, VERSION) != VERSION)
        goto done;
    record_read(&r, root, &record);
    if (r.fine)
        *out = record;
done:
    cJSON_Delete(root);
    gs_free(text);
    gs_free(path);
}

/* ---- writing ------------------------------------------------------------- */

static void add_table(cJSON *o, const char *key, const double *v, int count)
{
    cJSON_AddItemToObject(o, key, cJSON_CreateDoubleArray(v, count));
}

static void rows_write(cJSON *o, const rows *t, const gs_limits_report *l)
{
    double v[MOST_NUMBERS];

    for (int i = 0; i < t->rows * t->columns; i++) {
        const int column = i % t->columns;
        const void *const from = (const char *)l + (size_t)(i / t->columns) * t->row_bytes + t->column[column].at;
        v[i] = t->column[column].kind == REAL    ? *(const double *)from
               : t->column[column].kind == COUNT ? *(const uint32_t *)from
                                                 : (double)*(const uint64_t *)from;
    }
    add_table(o, t->key, v, t->rows * t->columns);
}

static cJSON *limits_write(const gs_limits *l)
{
    cJSON *const o = cJSON_CreateObject();
    double link[GS_LINK_WAYS * 2];

    for (int i = 0; i < GS_LINK_WAYS; i++)
        memcpy(&link[2 * i], (double[]){l->link[i].bps, l->link[i].request_seconds}, 2 * sizeof(double));
    cJSON_AddNumberToObject(o, "disk_read_bps", l->found.disk_read_bps);
    cJSON_AddNumberToObject(o, "disk_write_bps", l->found.disk_write_bps);
    cJSON_AddNumberToObject(o, "copy_bps", l->found.copy_bps);
    add_table(o, "links", link, COPY_WAYS * 2);
    if (l->found.pick_bps > 0)
        cJSON_AddNumberToObject(o, "pick_bps", l->found.pick_bps);
    if (l->link[GS_LINK_FROM_DISK].bps > 0)
        add_table(o, "disk_to_device", &link[2 * GS_LINK_FROM_DISK], 2);
    if (l->found.launch_seconds > 0)
        add_table(o, "gpu", (double[]){l->found.launch_seconds, l->edge_count, l->rounded[0], l->rounded[1]},
                  GS_LIMITS_ROUNDED + 2);
    for (size_t i = 0; i < GS_ARRAY_LEN(limit_rows); i++)
        rows_write(o, &limit_rows[i], &l->found);
    return o;
}

static void fit_write(cJSON *root, const char *prefix, int kinds, int first, const gs_fit *f)
{
    add_table(root, named(prefix, "tasks").text, &f->tasks[first], kinds);
    add_table(root, named(prefix, "square").text, &f->square[first][0][0], kinds * GS_WORK_AMOUNTS * GS_WORK_AMOUNTS);
    add_table(root, named(prefix, "product").text, &f->product[first][0], kinds * GS_WORK_AMOUNTS);
}

static cJSON *stages_write(const gs_cost_record *r)
{
    cJSON *const all = cJSON_CreateArray();

    for (uint32_t k = 0; k < r->stages; k++) {
        cJSON_AddItemToArray(all, cJSON_CreateNumber(r->stage[k].key));
        for (uint32_t w = 0; w < GS_COST_WAYS; w++)
            cJSON_AddItemToArray(all, cJSON_CreateNumber(r->stage[k].seconds[w]));
    }
    return all;
}

static char *record_text(const gs_cost_record *r, const char *machine, const char *device)
{
    cJSON *const root = cJSON_CreateObject();
    char *text;

    cJSON_AddNumberToObject(root, "version", VERSION);
    cJSON_AddStringToObject(root, "machine", machine);
    cJSON_AddStringToObject(root, "device", device);
    cJSON_AddNumberToObject(root, "epoch_read_bps", r->read_bps);
    cJSON_AddNumberToObject(root, "epoch_write_bps", r->write_bps);
    cJSON_AddNumberToObject(root, "slower_sum", r->slower_sum);
    cJSON_AddNumberToObject(root, "slower_weight", r->slower_weight);
    cJSON_AddNumberToObject(root, "others_sum", r->others_sum);
    cJSON_AddNumberToObject(root, "others_weight", r->others_weight);
    fit_write(root, "", GS_WORK_LINKS, 0, &r->fit);
    fit_write(root, "link_", COPY_WAYS, GS_WORK_LINKS, &r->fit);
    fit_write(root, "batch_", GS_WORK_LINKS, 0, &r->batch_fit);
    cJSON_AddNumberToObject(root, "batch_draw_seconds", r->draw_seconds);
    cJSON_AddNumberToObject(root, "batch_draw_amount", r->draw_amount);
    cJSON_AddItemToObject(root, "stages", stages_write(r));
    cJSON_AddItemToObject(root, "limits", limits_write(&r->limits));
    text = cJSON_Print(root);
    cJSON_Delete(root);
    return text;
}

gs_status gs_cost_record_save(const gs_cost_record *r, const char *device)
{
    char machine[192];
    char *path = NULL, *text = NULL;
    gs_status st = GS_OK;

    machine_name(machine, sizeof(machine));
    if ((path = record_path(machine, device, true)) == NULL)
        return gs_fail(GS_ENOTFOUND, "no folder to keep measurements in; set XDG_CACHE_HOME");
    if ((text = record_text(r, machine, device)) == NULL)
        st = gs_fail(GS_ENOMEM, "%s: out of memory", path);
    else
        st = gs_file_write_atomic(path, text, strlen(text));
    cJSON_free(text);
    gs_free(path);
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
