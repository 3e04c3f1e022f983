/* manifest.c - manifest.json, and the shard.json of a shard: text to checked values, and back.
 *
 * The file is checksummed (base/hash.h), which finds damage, not malice: every value is checked all the same.
 * Keys are exactly those of the format, each once. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "store/store_internal.h"

/* Takes values out of an object; what is left in the end was not expected.
 * After a first failure `st` says so and every take gives 0. */
typedef struct reader {
    cJSON *object;
    const char *path, *where; /* where: "" or "arrays.features." */
    gs_status st;
} reader;

/* The item, detached; the caller deletes it. NULL after a failure. */
static cJSON *take(reader *r, const char *key)
{
    if (r->st != GS_OK)
        return NULL;
    cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(r->object, key);
    if (item == NULL)
        r->st = gs_fail(GS_EFORMAT, "%s: \"%s%s\" is missing" GS_STORE_DAMAGED, r->path, r->where, key);
    return item;
}

static uint64_t take_number(reader *r, const char *key, uint64_t least, uint64_t most)
{
    cJSON *item = take(r, key);
    double v = 0;
    if (item == NULL)
        return 0;
    if (!cJSON_IsNumber(item))
        r->st = gs_fail(GS_EFORMAT, "%s: \"%s%s\" is not a number" GS_STORE_DAMAGED, r->path, r->where, key);
    else if (v = item->valuedouble, !(v >= (double)least && v <= (double)most) || v != floor(v))
        r->st = gs_fail(GS_EFORMAT,
                        "%s: \"%s%s\" is %.17g, not a whole number from %llu to %llu" GS_STORE_DAMAGED,
                        r->path, r->where, key, v, (unsigned long long)least, (unsigned long long)most);
    cJSON_Delete(item);
    return r->st == GS_OK ? (uint64_t)v : 0;
}

static bool take_bool(reader *r, const char *key)
{
    cJSON *item = take(r, key);
    if (item == NULL)
        return false;
    const bool v = cJSON_IsTrue(item);
    if (!cJSON_IsBool(item))
        r->st = gs_fail(GS_EFORMAT, "%s: \"%s%s\" is neither true nor false" GS_STORE_DAMAGED, r->path,
                        r->where, key);
    cJSON_Delete(item);
    return v;
}

/* Copies a string of fewer than `cap` bytes. */
static void take_string(reader *r, const char *key, char *out, size_t cap)
{
    cJSON *item = take(r, key);
    out[0] = '\0';
    if (item == NULL)
        return;
    if (!cJSON_IsString(item) || strlen(item->valuestring) >= cap)
        r->st = gs_fail(GS_EFORMAT, "%s: \"%s%s\" is not a string of fewer than %zu bytes" GS_STORE_DAMAGED,
                        r->path, r->where, key, cap);
    else
        memcpy(out, item->valuestring, strlen(item->valuestring) + 1);
    cJSON_Delete(item);
}

static uint64_t take_hex(reader *r, const char *key)
{
    char text[GS_HEX_DIGITS + 2];
    uint64_t v = 0;
    take_string(r, key, text, sizeof(text));
    if (r->st == GS_OK && (strlen(text) != GS_HEX_DIGITS || !gs_hex_parse(&v, text)))
        r->st = gs_fail(GS_EFORMAT, "%s: \"%s%s\" is not 16 lower-case hex digits" GS_STORE_DAMAGED, r->path,
                        r->where, key);
    return v;
}

static gs_dtype take_dtype(reader *r, const char *key)
{
    char text[8];
    gs_dtype t = GS_F32;
    take_string(r, key, text, sizeof(text));
    if (r->st == GS_OK && !gs_dtype_parse(&t, text))
        r->st =
            gs_fail(GS_EFORMAT, "%s: \"%s%s\" is no element type" GS_STORE_DAMAGED, r->path, r->where, key);
    return t;
}

static void expect_empty(reader *r)
{
    if (r->st == GS_OK && r->object->child != NULL)
        r->st = gs_fail(GS_EFORMAT, "%s: \"%s%s\" is unknown or there twice" GS_STORE_DAMAGED, r->path,
                        r->where, r->object->child->string ? r->object->child->string : "");
}

/* An object inside the object, detached; the caller deletes it. */
static cJSON *take_object(reader *r, const char *key)
{
    cJSON *item = take(r, key);
    if (item != NULL && !cJSON_IsObject(item)) {
        r->st = gs_fail(GS_EFORMAT, "%s: \"%s%s\" is not an object" GS_STORE_DAMAGED, r->path, r->where, key);
        cJSON_Delete(item);
        item = NULL;
    }
    return item;
}

static void read_arrays(reader *r, gs_manifest *m)
{
    cJSON *object = take_object(r, "arrays");
    if (object == NULL)
        return;
    reader arrays = {.object = object, .path = r->path, .where = "arrays."};
    for (unsigned id = 0; id < GS_ARRAY_COUNT && arrays.st == GS_OK; id++) {
        const char *stem = gs_array_stem(id);
        char where[32];
        if (cJSON_GetObjectItemCaseSensitive(object, stem) == NULL)
            continue;
        cJSON *one = take_object(&arrays, stem);
        if (one == NULL)
            break;
        snprintf(where, sizeof(where), "arrays.%s.", stem);
        reader fields = {.object = one, .path = r->path, .where = where};
        m->array[id].present = true;
        m->array[id].dtype = take_dtype(&fields, "type");
        m->array[id].width = (uint32_t)take_number(&fields, "width", 1, GS_MAX_FEATURES);
        if (id == GS_ARRAY_NAMES)
            m->info.name_bytes = take_number(&fields, "bytes", 1, GS_MAX_COUNT);
        if (id == GS_ARRAY_EDGE_TYPE_NAMES)
            m->info.edge_type_name_bytes = take_number(&fields, "bytes", 1, GS_MAX_COUNT);
        if (id >= GS_ARRAY_TRAIN_LINKS)
            m->info.links[id - GS_ARRAY_TRAIN_LINKS] = take_number(&fields, "rows", 1, GS_MAX_COUNT / 16);
        expect_empty(&fields);
        arrays.st = fields.st;
        cJSON_Delete(one);
    }
    expect_empty(&arrays);
    r->st = arrays.st;
    cJSON_Delete(object);
}

/* A list inside the object, detached; the caller deletes it. */
static cJSON *take_list(reader *r, const char *key, uint64_t least, uint64_t most, uint32_t *count)
{
    cJSON *const list = take(r, key);
    const int items = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : -1;

    *count = 0;
    if (r->st == GS_OK && (items < (int)least || items > (int)most))
        r->st = gs_fail(GS_EFORMAT, "%s: \"%s%s\" is not a list of %llu to %llu" GS_STORE_DAMAGED, r->path, r->where,
                        key, (unsigned long long)least, (unsigned long long)most);
    if (r->st == GS_OK)
        *count = (uint32_t)items;
    return list;
}

/* The k-th object of a list, which is not detached. */
static reader item_of(const reader *r, const cJSON *list, uint32_t k, const char *where)
{
    reader item = {.object = cJSON_GetArrayItem(list, (int)k), .path = r->path, .where = where, .st = r->st};

    if (item.st == GS_OK && !cJSON_IsObject(item.object))
        item.st = gs_fail(GS_EFORMAT, "%s: \"%s\" is not an object" GS_STORE_DAMAGED, r->path, where);
    return item;
}

static void read_vertex_types(reader *r, gs_type_table *t)
{
    cJSON *const list = take_list(r, "vertex_types", 1, GS_MOST_VERTEX_TYPES, &t->types);
    uint64_t first = 0;

    for (uint32_t k = 0; k < t->types && r->st == GS_OK; k++) {
        gs_vertex_type *const v = &t->type[k];
        reader one = item_of(r, list, k, "vertex_types.");
        take_string(&one, "name", v->name, sizeof(v->name));
        v->first = first;
        v->vertices = take_number(&one, "vertices", 0, GS_MAX_VERTICES);
        v->features = (uint32_t)take_number(&one, "features", 0, GS_MAX_FEATURES);
        expect_empty(&one);
        first += v->vertices;
        r->st = one.st;
    }
    cJSON_Delete(list);
}

static void read_relations(reader *r, gs_type_table *t)
{
    cJSON *const list = take_list(r, "relations", 0, GS_MOST_RELATIONS, &t->relations);

    for (uint32_t k = 0; k < t->relations && r->st == GS_OK; k++) {
        gs_relation *const e = &t->relation[k];
        reader one = item_of(r, list, k, "relations.");
        take_string(&one, "name", e->name, sizeof(e->name));
        e->source = (uint32_t)take_number(&one, "source", 0, t->types - 1);
        e->destination = (uint32_t)take_number(&one, "destination", 0, t->types - 1);
        expect_empty(&one);
        r->st = one.st;
    }
    cJSON_Delete(list);
}

static bool has(const reader *r, const char *key)
{
    return r->st == GS_OK && cJSON_GetObjectItemCaseSensitive(r->object, key) != NULL;
}

/* To a new table, which is the caller's whatever follows. */
static void read_types(reader *r, gs_store_info *i)
{
    gs_type_table *const t = r->st == GS_OK ? gs_calloc(1, sizeof(*t)) : NULL;

    if (t == NULL && r->st == GS_OK)
        r->st = gs_fail(GS_ENOMEM, "%s: no memory for the types of vertices", r->path);
    if (t == NULL)
        return;
    i->types = t;
    read_vertex_types(r, t);
    read_relations(r, t);
    t->labelled = (uint32_t)take_number(r, "labelled_type", 0, t->types);
}

/* The last columns of `all`. */
static uint32_t read_names(reader *r, gs_named_feature *named, const char *key, uint32_t all)
{
    uint32_t count = 0, columns = 0;
    cJSON *const list = take_list(r, key, 0, GS_MOST_NAMED_FEATURES, &count);
    char where[40];

    snprintf(where, sizeof(where), "%s.", key);
    for (uint32_t k = 0; k < count && r->st == GS_OK; k++) {
        reader one = item_of(r, list, k, where);
        take_string(&one, "name", named[k].name, sizeof(named[k].name));
        named[k].columns = (uint32_t)take_number(&one, "columns", 1, all > columns ? all - columns : 0);
        expect_empty(&one);
        columns += named[k].columns;
        r->st = one.st;
    }
    cJSON_Delete(list);
    for (uint32_t k = 0, first = all - columns; k < count && r->st == GS_OK; first += named[k++].columns)
        named[k].first = first;
    return count;
}

/* To a new table, as read_types(). */
static void read_named(reader *r, gs_store_info *i)
{
    gs_feature_table *const t = r->st == GS_OK ? gs_calloc(1, sizeof(*t)) : NULL;

    if (t == NULL && r->st == GS_OK)
        r->st = gs_fail(GS_ENOMEM, "%s: no memory for the names of features", r->path);
    if (t == NULL)
        return;
    i->named = t;
    t->vertices = read_names(r, t->vertex, "named_features", i->features);
    t->edges = read_names(r, t->edge, "named_edge_features", i->edge_features);
}

static uint32_t read_identity(reader *r)
{
    char format[32];
    take_string(r, "format", format, sizeof(format));
    if (r->st == GS_OK && strcmp(format, GS_MANIFEST_FORMAT) != 0)
        r->st = gs_fail(GS_EFORMAT, "%s: \"format\" is not \"" GS_MANIFEST_FORMAT "\", so this is no store",
                        r->path);
    const uint64_t version = take_number(r, "version", 0, GS_MAX_COUNT);
    if (r->st == GS_OK && (version < 1 || version > GS_STORE_VERSION))
        r->st =
            gs_fail(GS_EFORMAT,
                    "%s: store version %llu, but this program reads versions 1 to %d; partition the input again",
                    r->path, (unsigned long long)version, GS_STORE_VERSION);
    return (uint32_t)version;
}

static void read_fields(reader *r, gs_manifest *m)
{
    gs_store_info *i = &m->info;
    m->version = read_identity(r);
    i->vertices = take_number(r, "vertices", 1, GS_MAX_VERTICES);
    i->edges = take_number(r, "edges", 0, GS_MAX_COUNT);
    i->self_loops = take_number(r, "self_loops", 0, GS_MAX_COUNT);
    i->parts = (uint32_t)take_number(r, "parts", 1, GS_MAX_PARTS);
    i->interval_rows = (uint32_t)take_number(r, "interval_rows", 1, GS_MAX_VERTICES);
    i->symmetric = take_bool(r, "symmetric");
    m->shared = take_bool(r, "shared_edges");
    i->weights = take_bool(r, "weights");
    i->edge_types = (uint32_t)take_number(r, "edge_types", 0, GS_MAX_EDGE_TYPES);
    m->data = (gs_edge_data){.type_bytes = (uint32_t)take_number(r, "type_bytes", 0, 2), .weights = i->weights};
    if (m->version >= GS_STORE_EDGE_FEATURES) {
        i->edge_features = (uint32_t)take_number(r, "edge_features", m->version == GS_STORE_EDGE_FEATURES,
                                                 GS_MAX_EDGE_FEATURE_BYTES);
        i->edge_feature_type = take_dtype(r, "edge_feature_type");
        m->data.feature_bytes = i->edge_features * (uint32_t)gs_dtype_bytes(i->edge_feature_type);
    }
    i->max_in_degree = take_number(r, "max_in_degree", 0, GS_MAX_COUNT);
    i->max_out_degree = take_number(r, "max_out_degree", 0, GS_MAX_COUNT);
    i->features = (uint32_t)take_number(r, "features", 0, GS_MAX_FEATURES);
    i->feature_type = take_dtype(r, "feature_type");
    i->feature_id = take_hex(r, "feature_id");
    i->classes = (uint32_t)take_number(r, "classes", 0, INT32_MAX);
    i->train = take_number(r, "train", 0, GS_MAX_VERTICES);
    i->valid = take_number(r, "valid", 0, GS_MAX_VERTICES);
    i->test = take_number(r, "test", 0, GS_MAX_VERTICES);
    take_string(r, "method", i->method, sizeof(i->method));
    i->seed = take_hex(r, "seed");
    if (m->version == GS_STORE_LINK_LABELS || (m->version > GS_STORE_LINK_LABELS && has(r, "link_classes"))) {
        i->link_labels = true;
        i->link_classes = (uint32_t)take_number(r, "link_classes", 0, INT32_MAX);
    }
    if (m->version == GS_STORE_VERTEX_TYPES || (m->version > GS_STORE_VERTEX_TYPES && has(r, "vertex_types")))
        read_types(r, i);
    if (m->version == GS_STORE_NAMED_FEATURES || (m->version > GS_STORE_NAMED_FEATURES && has(r, "named_features")))
        read_named(r, i);
    read_arrays(r, m);
    if (m->array[GS_ARRAY_LABELS].present && !gs_train_task_of_labels(&i->labels, m->array[GS_ARRAY_LABELS].dtype))
        i->labels = GS_TRAIN_TASK_CLASSIFY; /* refused by gs_manifest__check() */
    m->edge_bytes[GS_BY_DEST] = take_number(r, "edges_dest_bytes", 0, GS_MAX_COUNT);
    m->edge_bytes[GS_BY_SOURCE] = take_number(r, "edges_source_bytes", 0, GS_MAX_COUNT);
    m->chunks_checksum = take_hex(r, "chunks_checksum");
    m->sums_checksum = take_hex(r, "sums_checksum");
    i->id = take_hex(r, "checksum"); /* gs_checksum_line_check() has looked at it */
    expect_empty(r);
}

gs_status gs_manifest__parse(gs_manifest *out, const char *text, uint64_t bytes, const char *path)
{
    gs_manifest m = {0};
    gs_status st = gs_checksum_line_check(text, bytes, path, GS_STORE_DAMAGED);
    if (st != GS_OK)
        return st;
    cJSON *root = cJSON_ParseWithLength(text, bytes);
    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return gs_fail(GS_EFORMAT, "%s: not a JSON object" GS_STORE_DAMAGED, path);
    }
    reader r = {.object = root, .path = path, .where = ""};
    read_fields(&r, &m);
    cJSON_Delete(root);
    if (r.st == GS_OK)
        r.st = gs_manifest__check(&m, path);
    if (r.st == GS_OK)
        *out = m;
    else {
        gs_free((void *)(uintptr_t)m.info.types);
        gs_free((void *)(uintptr_t)m.info.named);
    }
    return r.st;
}

static const char *array_fault(const gs_manifest *m)
{
    const struct gs_manifest_array *a = m->array;
    const gs_store_info *i = &m->info;
    static const gs_dtype type[GS_ARRAY_COUNT] = {
        [GS_ARRAY_SPLIT] = GS_U8,  [GS_ARRAY_IN_DEGREE] = GS_F32, [GS_ARRAY_OUT_DEGREE] = GS_F32,
        [GS_ARRAY_LOOPS] = GS_F32, [GS_ARRAY_INPUT_ID] = GS_U32, [GS_ARRAY_VERTEX_TYPE] = GS_F32,
        [GS_ARRAY_NAMES] = GS_U8,  [GS_ARRAY_EDGE_TYPE_NAMES] = GS_U8, [GS_ARRAY_TRAIN_LINKS] = GS_U32,
        [GS_ARRAY_VALID_LINKS] = GS_U32, [GS_ARRAY_TEST_LINKS] = GS_U32,
    };
    const uint32_t link_width = gs_store_link_width(i);
    bool links = false;
    if (!gs_dtype_is_feature(i->feature_type) || !gs_dtype_is_feature(i->edge_feature_type))
        return "\"feature_type\" or \"edge_feature_type\" is not f32, bf16 or f16";
    if (a[GS_ARRAY_FEATURES].present != (i->features > 0))
        return "\"features\" and the array of features disagree";
    if (i->features > 0 &&
        (a[GS_ARRAY_FEATURES].width != i->features || a[GS_ARRAY_FEATURES].dtype != i->feature_type))
        return "\"features\" and the array of features disagree";
    for (unsigned id = GS_ARRAY_LABELS + 1; id < GS_ARRAY_COUNT; id++)
        if (a[id].present &&
            (a[id].dtype != type[id] || a[id].width != (id >= GS_ARRAY_TRAIN_LINKS ? link_width : 1)))
            return "an array has another element type or width than its name demands";
    if (!a[GS_ARRAY_IN_DEGREE].present || !a[GS_ARRAY_OUT_DEGREE].present || !a[GS_ARRAY_INPUT_ID].present)
        return "in_degree, out_degree or input_id is not among the arrays";
    if (a[GS_ARRAY_LABELS].present != (i->classes > 0))
        return "\"classes\" and the array of labels disagree";
    if (a[GS_ARRAY_LABELS].present && a[GS_ARRAY_LABELS].dtype != gs_train_task_labels(i->labels))
        return "the array of labels has another element type than any task's labels have";
    const uint32_t label_width = i->labels == GS_TRAIN_TASK_CLASSIFY ? 1 : i->classes;
    if (a[GS_ARRAY_LABELS].present && a[GS_ARRAY_LABELS].width != label_width)
        return "the array of labels has another width than \"classes\" demands";
    if (!a[GS_ARRAY_SPLIT].present && i->train + i->valid + i->test > 0)
        return "there are split sizes but no array of splits";
    if (a[GS_ARRAY_VERTEX_TYPE].present != (i->types != NULL))
        return "\"vertex_types\" and the array of them disagree";
    if (a[GS_ARRAY_LOOPS].present != (i->self_loops > 0))
        return "\"self_loops\" and the array of loops disagree";
    for (unsigned id = GS_ARRAY_TRAIN_LINKS; id < GS_ARRAY_COUNT; id++)
        links = links || a[id].present;
    if (links && m->version < 3)
        return "there are links, which no store of this version has";
    if (i->link_labels && !links)
        return "there are labels of links, and no links";
    if (a[GS_ARRAY_NAMES].present && i->name_bytes < 2 * i->vertices) /* a letter and a line feed each */
        return "\"bytes\" of the names are fewer than all vertices' names have";
    if (a[GS_ARRAY_EDGE_TYPE_NAMES].present != (m->version >= GS_STORE_EDGE_TYPE_NAMES) ||
        (a[GS_ARRAY_EDGE_TYPE_NAMES].present && (i->edge_types == 0 || i->edge_type_name_bytes < 2 * i->edge_types)))
        return "types of edges have no names, which those of this version do, and no other; or too few";
    return NULL;
}

/* The narrowest type that numbers them all. */
static uint32_t type_bytes_of(uint32_t edge_types)
{
    if (edge_types == 0)
        return 0;
    return edge_types <= 256 ? 1 : 2;
}

static const char *number_fault(const gs_manifest *m)
{
    const gs_store_info *i = &m->info;
    const uint64_t p = i->parts, r = i->interval_rows;

    if (i->vertices == 0 || i->vertices > GS_MAX_VERTICES || i->edges > GS_MAX_COUNT)
        return "the number of vertices or edges is out of range";
    if (p == 0 || p > GS_MAX_PARTS || r == 0 || p * r < i->vertices || (p - 1) * r >= i->vertices)
        return "\"parts\" intervals of \"interval_rows\" do not cut \"vertices\" with a last one that is not "
               "empty";
    if (i->self_loops > i->edges || i->max_in_degree > i->edges || i->max_out_degree > i->edges)
        return "\"self_loops\" or a greatest degree is above \"edges\"";
    if (i->train + i->valid + i->test > i->vertices)
        return "\"train\", \"valid\" and \"test\" are more than \"vertices\"";
    if (m->shared && !i->symmetric)
        return "edges are shared by both directions, but the graph is not symmetric";
    if (m->shared && m->edge_bytes[GS_BY_SOURCE] != 0)
        return "edges are shared by both directions, but there are bytes by source";
    if (i->edge_types > GS_MAX_EDGE_TYPES || m->data.type_bytes != type_bytes_of(i->edge_types))
        return "\"type_bytes\" does not fit \"edge_types\"";
    if (m->data.feature_bytes > GS_MAX_EDGE_FEATURE_BYTES ||
        m->data.feature_bytes != i->edge_features * gs_dtype_bytes(i->edge_feature_type))
        return "\"edge_features\" is out of range";
    if (i->features > GS_MAX_FEATURES || i->classes > INT32_MAX || (i->features == 0 && i->feature_id != 0))
        return "\"features\", \"feature_id\" or \"classes\" is out of range";
    if (m->edge_bytes[0] % GS_BLOCK_BYTES != 0 || m->edge_bytes[1] % GS_BLOCK_BYTES != 0 ||
        m->edge_bytes[0] > GS_MAX_COUNT || m->edge_bytes[1] > GS_MAX_COUNT)
        return "the size of an edge file is not a multiple of 4096";
    return NULL;
}

/* "metis", "fennel": letters, digits, '-' and '_'; it is printed to people. */
static const char *method_fault(const gs_manifest *m)
{
    const char *text = m->info.method;
    const size_t n = strnlen(text, sizeof(m->info.method));
    if (n == sizeof(m->info.method))
        return "\"method\" is too long";
    for (size_t k = 0; k < n; k++)
        if (!((text[k] >= 'a' && text[k] <= 'z') || (text[k] >= '0' && text[k] <= '9') || text[k] == '-' ||
              text[k] == '_'))
            return "\"method\" has a character other than a-z, 0-9, '-' and '_'";
    return NULL;
}

/* Names are printed, and stand in models' texts. */
static bool is_type_name(const char *name)
{
    const size_t n = strnlen(name, GS_TYPE_NAME_BYTES);
    return n > 0 && n < GS_TYPE_NAME_BYTES && strspn(name, GS_TYPE_NAME_LETTERS) == n;
}

static const char *type_fault(const gs_manifest *m)
{
    const gs_type_table *const t = m->info.types;
    uint64_t vertices = 0;
    uint32_t widest = 0;

    if (t == NULL)
        return NULL;
    if (t->types == 0 || t->types > GS_MOST_VERTEX_TYPES || t->relations > GS_MOST_RELATIONS)
        return "the number of types of vertices or of edges is out of range";
    for (uint32_t k = 0; k < t->types; k++) {
        if (!is_type_name(t->type[k].name))
            return "a type of vertices has no name of letters, digits, '_', '-' and '.'";
        for (uint32_t j = 0; j < k; j++)
            if (strcmp(t->type[j].name, t->type[k].name) == 0)
                return "two types of vertices have one name";
        vertices += t->type[k].vertices;
        widest = t->type[k].features > widest ? t->type[k].features : widest;
    }
    for (uint32_t k = 0; k < t->relations; k++)
        if (!is_type_name(t->relation[k].name) || t->relation[k].source >= t->types ||
            t->relation[k].destination >= t->types)
            return "a type of edges has no name, or ends at types of vertices that there are not";
    if (vertices != m->info.vertices || t->relations < m->info.edge_types || t->labelled > t->types)
        return "\"vertex_types\" and \"relations\" are not those of all vertices and edges";
    /* random ones are as wide for all */
    return widest > m->info.features ? "a type of vertices has more features than there are" : NULL;
}

bool gs_is_feature_name(const char *name)
{
    static const char *const words[] = {"type", "weight", "x", "in_degree", "loops", "loop_weight", "gcn_norm"};
    const size_t n = strnlen(name, GS_TYPE_NAME_BYTES);

    for (size_t k = 0; k < GS_ARRAY_LEN(words); k++)
        if (strcmp(words[k], name) == 0)
            return false;
    return n > 0 && n < GS_TYPE_NAME_BYTES && (name[0] < '0' || name[0] > '9') &&
           strspn(name, GS_TYPE_NAME_LETTERS) == n && strpbrk(name, "-.") == NULL;
}

/* `all`: columns that there are. */
static const char *names_fault(const gs_named_feature *named, uint32_t count, uint32_t all)
{
    uint64_t columns = 0;

    if (count > GS_MOST_NAMED_FEATURES)
        return "the number of features with names is out of range";
    for (uint32_t k = 0; k < count; k++) {
        if (!gs_is_feature_name(named[k].name))
            return "a feature's name is not of letters, digits and '_', or is a word of models' texts";
        for (uint32_t j = 0; j < k; j++)
            if (strcmp(named[j].name, named[k].name) == 0)
                return "two features have one name";
        columns += named[k].columns;
    }
    for (uint32_t k = 0; k < count && columns <= all; k++)
        if (named[k].columns == 0 ||
            named[k].first != (k == 0 ? all - columns : named[k - 1].first + named[k - 1].columns))
            return "features with names are not the last columns";
    return columns > all ? "features with names have more columns than there are" : NULL;
}

static const char *named_fault(const gs_manifest *m)
{
    const gs_feature_table *const t = m->info.named;
    const char *fault;

    if (t == NULL)
        return NULL;
    if ((fault = names_fault(t->vertex, t->vertices, m->info.features)) != NULL ||
        (fault = names_fault(t->edge, t->edges, m->info.edge_features)) != NULL)
        return fault;
    return t->vertices + t->edges == 0 ? "no feature has a name" : NULL;
}

gs_status gs_manifest__check(const gs_manifest *m, const char *path)
{
    const char *fault = number_fault(m);
    if (fault == NULL)
        fault = array_fault(m);
    if (fault == NULL)
        fault = method_fault(m);
    if (fault == NULL)
        fault = type_fault(m);
    if (fault == NULL)
        fault = named_fault(m);
    return fault == NULL ? GS_OK : gs_fail(GS_EFORMAT, "%s: %s" GS_STORE_DAMAGED, path, fault);
}

static bool add_number(cJSON *root, const char *key, uint64_t v)
{
    return cJSON_AddNumberToObject(root, key, (double)v) != NULL;
}

static bool add_arrays(cJSON *root, const gs_manifest *m)
{
    cJSON *arrays = cJSON_AddObjectToObject(root, "arrays");
    bool ok = arrays != NULL;
    for (unsigned id = 0; ok && id < GS_ARRAY_COUNT; id++) {
        if (!m->array[id].present)
            continue;
        cJSON *one = cJSON_AddObjectToObject(arrays, gs_array_stem(id));
        ok = one != NULL && cJSON_AddStringToObject(one, "type", gs_dtype_name(m->array[id].dtype)) != NULL &&
             add_number(one, "width", m->array[id].width) &&
             (id != GS_ARRAY_NAMES || add_number(one, "bytes", m->info.name_bytes)) &&
             (id != GS_ARRAY_EDGE_TYPE_NAMES || add_number(one, "bytes", m->info.edge_type_name_bytes)) &&
             (id < GS_ARRAY_TRAIN_LINKS || add_number(one, "rows", m->info.links[id - GS_ARRAY_TRAIN_LINKS]));
    }
    return ok;
}

static bool add_edge_features(cJSON *root, const gs_manifest *m)
{
    return m->version < GS_STORE_EDGE_FEATURES ||
           (add_number(root, "edge_features", m->info.edge_features) &&
            cJSON_AddStringToObject(root, "edge_feature_type", gs_dtype_name(m->info.edge_feature_type)) != NULL);
}

static bool add_types(cJSON *root, const gs_type_table *t)
{
    if (t == NULL)
        return true;
    cJSON *const types = cJSON_AddArrayToObject(root, "vertex_types");
    cJSON *const relations = cJSON_AddArrayToObject(root, "relations");
    bool ok = types != NULL && relations != NULL;

    for (uint32_t k = 0; k < t->types && ok; k++) {
        cJSON *const one = cJSON_CreateObject();
        ok = cJSON_AddItemToArray(types, one) && cJSON_AddStringToObject(one, "name", t->type[k].name) != NULL &&
             add_number(one, "vertices", t->type[k].vertices) && add_number(one, "features", t->type[k].features);
    }
    for (uint32_t k = 0; k < t->relations && ok; k++) {
        cJSON *const one = cJSON_CreateObject();
        ok = cJSON_AddItemToArray(relations, one) &&
             cJSON_AddStringToObject(one, "name", t->relation[k].name) != NULL &&
             add_number(one, "source", t->relation[k].source) &&
             add_number(one, "destination", t->relation[k].destination);
    }
    return ok && add_number(root, "labelled_type", t->labelled);
}

static bool add_names(cJSON *root, const char *key, const gs_named_feature *named, uint32_t count)
{
    cJSON *const list = cJSON_AddArrayToObject(root, key);
    bool ok = list != NULL;

    for (uint32_t k = 0; k < count && ok; k++) {
        cJSON *const one = cJSON_CreateObject();
        ok = cJSON_AddItemToArray(list, one) && cJSON_AddStringToObject(one, "name", named[k].name) != NULL &&
             add_number(one, "columns", named[k].columns);
    }
    return ok;
}

static bool add_named(cJSON *root, const gs_feature_table *t)
{
    return t == NULL || (add_names(root, "named_features", t->vertex, t->vertices) &&
                         add_names(root, "named_edge_features", t->edge, t->edges));
}

static bool add_fields(cJSON *root, const gs_manifest *m)
{
    const gs_store_info *i = &m->info;
    return cJSON_AddStringToObject(root, "format", GS_MANIFEST_FORMAT) != NULL &&
           add_number(root, "version", m->version) && add_number(root, "vertices", i->vertices) &&
           add_number(root, "edges", i->edges) && add_number(root, "self_loops", i->self_loops) &&
           add_number(root, "parts", i->parts) && add_number(root, "interval_rows", i->interval_rows) &&
           cJSON_AddBoolToObject(root, "symmetric", i->symmetric) != NULL &&
           cJSON_AddBoolToObject(root, "shared_edges", m->shared) != NULL &&
           cJSON_AddBoolToObject(root, "weights", i->weights) != NULL &&
           add_number(root, "edge_types", i->edge_types) && add_number(root, "type_bytes", m->data.type_bytes) &&
           add_edge_features(root, m) &&
           add_number(root, "max_in_degree", i->max_in_degree) &&
           add_number(root, "max_out_degree", i->max_out_degree) &&
           add_number(root, "features", i->features) &&
           cJSON_AddStringToObject(root, "feature_type", gs_dtype_name(i->feature_type)) != NULL &&
           gs_json_add_hex(root, "feature_id", i->feature_id) && add_number(root, "classes", i->classes) &&
           add_number(root, "train", i->train) && add_number(root, "valid", i->valid) &&
           add_number(root, "test", i->test) && cJSON_AddStringToObject(root, "method", i->method) != NULL &&
           gs_json_add_hex(root, "seed", i->seed) && add_types(root, i->types) &&
           add_named(root, i->named) &&
           (!i->link_labels || add_number(root, "link_classes", i->link_classes)) && add_arrays(root, m) &&
           add_number(root, "edges_dest_bytes", m->edge_bytes[GS_BY_DEST]) &&
           add_number(root, "edges_source_bytes", m->edge_bytes[GS_BY_SOURCE]) &&
           gs_json_add_hex(root, "chunks_checksum", m->chunks_checksum) &&
           gs_json_add_hex(root, "sums_checksum", m->sums_checksum) &&
           gs_json_add_hex(root, "checksum", 0); /* last: checksummed below */
}

gs_status gs_manifest__format(char **text, uint64_t *bytes, const gs_manifest *m)
{
    cJSON *const root = cJSON_CreateObject();
    const bool ok = root != NULL && add_fields(root, m) && gs_checksum_line_print(text, bytes, root);

    cJSON_Delete(root);
    return ok ? GS_OK : gs_fail(GS_ENOMEM, GS_MANIFEST_NAME ": no memory to write it");
}

/* ---- shards --------------------------------------------------------------- */

/* An object for each of the store's files that a shard has a part of. */
static void read_extents(reader *r, gs_extent *extent, const gs_manifest *m)
{
    cJSON *const object = take_object(r, "files");
    reader files = {.object = object, .path = r->path, .where = "files.", .st = r->st};

    for (unsigned k = GS_FILE_DEST; k < GS_STORE_FILES && files.st == GS_OK; k++) {
        char buf[GS_FILE_NAME_BYTES];
        uint64_t all;
        cJSON *const one = !gs_store__file_expected(m, k, &all) ? NULL
                                                                : take_object(&files, gs_store__file_name(buf, k));
        reader fields = {.object = one, .path = r->path, .where = buf, .st = files.st};
        if (one == NULL)
            continue;
        extent[k].first = take_number(&fields, "first", 0, all);
        extent[k].bytes = take_number(&fields, "bytes", 0, all - extent[k].first);
        expect_empty(&fields);
        files.st = fields.st;
        cJSON_Delete(one);
    }
    if (object != NULL)
        expect_empty(&files);
    r->st = files.st;
    cJSON_Delete(object);
}

static void read_deal(reader *r, gs_store_shard *x, const gs_manifest *m)
{
    uint32_t count;
    cJSON *const list = take_list(r, "first", x->ranks + 1, x->ranks + 1, &count);

    for (uint32_t k = 0; k < count && r->st == GS_OK; k++) {
        const cJSON *const item = cJSON_GetArrayItem(list, (int)k);
        const double least = k == 0 ? 0 : x->first[k - 1] + 1.0, v = cJSON_IsNumber(item) ? item->valuedouble : -1;
        if (!(v >= least && v <= m->info.parts) || v != floor(v) || (k == 0 && v != 0) ||
            (k == x->ranks && v != m->info.parts))
            r->st = gs_fail(GS_EFORMAT, "%s: \"first\" is no deal of %u intervals to %u ranks" GS_STORE_DAMAGED,
                            r->path, m->info.parts, x->ranks);
        else
            x->first[k] = (uint32_t)v;
    }
    cJSON_Delete(list);
}

static void read_shard(reader *r, gs_store_shard *x, gs_extent *extent, const gs_manifest *m)
{
    char format[sizeof(GS_SHARD_FORMAT) + 1];

    take_string(r, "format", format, sizeof(format));
    if (r->st == GS_OK && strcmp(format, GS_SHARD_FORMAT) != 0)
        r->st = gs_fail(GS_EFORMAT, "%s: not of a shard" GS_STORE_DAMAGED, r->path);
    if (take_number(r, "version", 1, GS_MAX_COUNT) != 1 && r->st == GS_OK)
        r->st = gs_fail(GS_EFORMAT, "%s: of a newer version than this program's; shard the store again", r->path);
    take_string(r, "name", x->name, sizeof(x->name));
    x->store_id = take_hex(r, "store");
    x->ranks = (uint32_t)take_number(r, "ranks", 2, GS_SHARDS_MOST);
    x->rank = (uint32_t)take_number(r, "rank", 0, x->ranks > 0 ? x->ranks - 1 : 0);
    read_deal(r, x, m);
    read_extents(r, extent, m);
    take_hex(r, "checksum");
    expect_empty(r);
}

gs_status gs_shard__parse(gs_store_shard *out, gs_extent *extent, const gs_manifest *m, const char *text,
                          uint64_t bytes, const char *path)
{
    gs_store_shard x = {0};
    const gs_status st = gs_checksum_line_check(text, bytes, path, GS_STORE_DAMAGED);
    if (st != GS_OK)
        return st;
    cJSON *const root = cJSON_ParseWithLength(text, bytes);
    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return gs_fail(GS_EFORMAT, "%s: not a JSON object" GS_STORE_DAMAGED, path);
    }
    reader r = {.object = root, .path = path, .where = ""};
    read_shard(&r, &x, extent, m);
    cJSON_Delete(root);
    if (r.st == GS_OK && x.store_id != m->info.id)
        r.st = gs_fail(GS_EFORMAT, "%s: is of another store than the manifest beside it; shard the store again", path);
    if (r.st == GS_OK)
        *out = x;
    return r.st;
}

static bool add_extents(cJSON *root, const gs_extent *extent, const gs_manifest *m)
{
    cJSON *const files = cJSON_AddObjectToObject(root, "files");
    bool ok = files != NULL;

    for (unsigned k = GS_FILE_DEST; k < GS_STORE_FILES && ok; k++) {
        char buf[GS_FILE_NAME_BYTES];
        uint64_t all;
        if (!gs_store__file_expected(m, k, &all))
            continue;
        cJSON *const one = cJSON_AddObjectToObject(files, gs_store__file_name(buf, k));
        ok = one != NULL && add_number(one, "first", extent[k].first) && add_number(one, "bytes", extent[k].bytes);
    }
    return ok;
}

gs_status gs_shard__format(char **text, uint64_t *bytes, const gs_store_shard *x, const gs_extent *extent,
                           const gs_manifest *m)
{
    cJSON *const root = cJSON_CreateObject();
    bool ok = root != NULL && cJSON_AddStringToObject(root, "format", GS_SHARD_FORMAT) != NULL &&
              add_number(root, "version", 1) && cJSON_AddStringToObject(root, "name", x->name) != NULL &&
              gs_json_add_hex(root, "store", x->store_id) && add_number(root, "ranks", x->ranks) &&
              add_number(root, "rank", x->rank);
    cJSON *const first = ok ? cJSON_AddArrayToObject(root, "first") : NULL;

    ok = first != NULL;
    for (uint32_t k = 0; k <= x->ranks && ok; k++)
        ok = cJSON_AddItemToArray(first, cJSON_CreateNumber(x->first[k]));
    ok = ok && add_extents(root, extent, m) && gs_json_add_hex(root, "checksum", 0) &&
         gs_checksum_line_print(text, bytes, root);
    cJSON_Delete(root);
    return ok ? GS_OK : gs_fail(GS_ENOMEM, GS_SHARD_FILE ": no memory to write it");
}
