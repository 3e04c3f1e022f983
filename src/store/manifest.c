/* manifest.c - manifest.json, and the shard.json of a shard: text to checked values, and back.
 *
 * The file is checksummed (base/hash.h), which finds damage, not malice: every value is checked all the same.
 * Keys are exactly those of the format, each once. */
#include <cjson/cJSON.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/record.h"
#include "base/size.h"
#include "store/store_internal.h"

static const gs_field first_fields[] = {
    GS_FIELD(gs_manifest, info.vertices, U64, "vertices", .least = 1, .most = GS_MAX_VERTICES),
    GS_FIELD(gs_manifest, info.edges, U64, "edges", .most = GS_MAX_COUNT),
    GS_FIELD(gs_manifest, info.self_loops, U64, "self_loops", .most = GS_MAX_COUNT),
    GS_FIELD(gs_manifest, info.parts, U32, "parts", .least = 1, .most = GS_MAX_PARTS),
    GS_FIELD(gs_manifest, info.interval_rows, U32, "interval_rows", .least = 1, .most = GS_MAX_VERTICES),
    GS_FIELD(gs_manifest, info.symmetric, BOOL, "symmetric"),
    GS_FIELD(gs_manifest, shared, BOOL, "shared_edges"),
    GS_FIELD(gs_manifest, info.weights, BOOL, "weights"),
    GS_FIELD(gs_manifest, info.edge_types, U32, "edge_types", .most = GS_MAX_EDGE_TYPES),
    GS_FIELD(gs_manifest, data.type_bytes, U32, "type_bytes", .most = 2),
};
/* From GS_STORE_EDGE_FEATURES on. */
static const gs_field edge_fields[] = {
    GS_FIELD(gs_manifest, info.edge_features, U32, "edge_features", .most = GS_MAX_EDGE_FEATURE_BYTES),
    GS_FIELD(gs_manifest, info.edge_feature_type, TYPE, "edge_feature_type"),
};
static const gs_field vertex_fields[] = {
    GS_FIELD(gs_manifest, info.max_in_degree, U64, "max_in_degree", .most = GS_MAX_COUNT),
    GS_FIELD(gs_manifest, info.max_out_degree, U64, "max_out_degree", .most = GS_MAX_COUNT),
    GS_FIELD(gs_manifest, info.features, U32, "features", .most = GS_MAX_FEATURES),
    GS_FIELD(gs_manifest, info.feature_type, TYPE, "feature_type"),
    GS_FIELD(gs_manifest, info.feature_id, HEX, "feature_id"),
    GS_FIELD(gs_manifest, info.classes, U32, "classes", .most = INT32_MAX),
    GS_FIELD(gs_manifest, info.train, U64, "train", .most = GS_MAX_VERTICES),
    GS_FIELD(gs_manifest, info.valid, U64, "valid", .most = GS_MAX_VERTICES),
    GS_FIELD(gs_manifest, info.test, U64, "test", .most = GS_MAX_VERTICES),
    GS_FIELD(gs_manifest, info.method, TEXT, "method", .most = sizeof(((gs_store_info *)0)->method)),
    GS_FIELD(gs_manifest, info.seed, HEX, "seed"),
};
static const gs_field link_fields[] = {
    GS_FIELD(gs_manifest, info.link_classes, U32, "link_classes", .most = INT32_MAX),
};
static const gs_field last_fields[] = {
    GS_FIELD(gs_manifest, edge_bytes[GS_BY_DEST], U64, "edges_dest_bytes", .most = GS_MAX_COUNT),
    GS_FIELD(gs_manifest, edge_bytes[GS_BY_SOURCE], U64, "edges_source_bytes", .most = GS_MAX_COUNT),
    GS_FIELD(gs_manifest, chunks_checksum, HEX, "chunks_checksum"),
    GS_FIELD(gs_manifest, sums_checksum, HEX, "sums_checksum"),
};
static const gs_field array_fields[] = {
    GS_FIELD(struct gs_manifest_array, dtype, TYPE, "type"),
    GS_FIELD(struct gs_manifest_array, width, U32, "width", .least = 1, .most = GS_MAX_FEATURES),
};
static const gs_field type_fields[] = {
    GS_FIELD(gs_vertex_type, name, TEXT, "name", .most = GS_TYPE_NAME_BYTES),
    GS_FIELD(gs_vertex_type, vertices, U64, "vertices", .most = GS_MAX_VERTICES),
    GS_FIELD(gs_vertex_type, features, U32, "features", .most = GS_MAX_FEATURES),
};
static const gs_field relation_fields[] = {
    GS_FIELD(gs_relation, name, TEXT, "name", .most = GS_TYPE_NAME_BYTES),
    GS_FIELD(gs_relation, source, U32, "source", .most = GS_MOST_VERTEX_TYPES - 1),
    GS_FIELD(gs_relation, destination, U32, "destination", .most = GS_MOST_VERTEX_TYPES - 1),
};
static const gs_field table_fields[] = {
    GS_ROWS(gs_type_table, type, types, "vertex_types", type_fields, .least = 1, .most = GS_MOST_VERTEX_TYPES),
    GS_ROWS(gs_type_table, relation, relations, "relations", relation_fields, .most = GS_MOST_RELATIONS),
    GS_FIELD(gs_type_table, labelled, U32, "labelled_type", .most = GS_MOST_VERTEX_TYPES),
};
static const gs_field name_fields[] = {
    GS_FIELD(gs_named_feature, name, TEXT, "name", .most = GS_TYPE_NAME_BYTES),
    GS_FIELD(gs_named_feature, columns, U32, "columns", .least = 1, .most = GS_MAX_FEATURES),
};
static const gs_field named_fields[] = {
    GS_ROWS(gs_feature_table, vertex, vertices, "named_features", name_fields, .most = GS_MOST_NAMED_FEATURES),
    GS_ROWS(gs_feature_table, edge, edges, "named_edge_features", name_fields, .most = GS_MOST_NAMED_FEATURES),
};

/* What else an array's entry has: its bytes or rows, where neither follows from the vertices. */
static const gs_field more_fields[GS_ARRAY_COUNT] = {
    [GS_ARRAY_NAMES] = GS_FIELD(gs_manifest, info.name_bytes, U64, "bytes", .least = 1, .most = GS_MAX_COUNT),
    [GS_ARRAY_EDGE_TYPE_NAMES] = GS_FIELD(gs_manifest, info.edge_type_name_bytes, U64, "bytes", .least = 1,
                                          .most = GS_MAX_COUNT),
#define LINKS(split) \
    [GS_ARRAY_TRAIN_LINKS + (split)] = GS_FIELD(gs_manifest, info.links[split], U64, "rows", .least = 1, \
                                                .most = GS_MAX_COUNT / 16)
    LINKS(0), LINKS(1), LINKS(2),
};
_Static_assert(GS_ARRAY_TRAIN_LINKS + 3 == GS_ARRAY_COUNT, "links are the last arrays");

static bool has_more(gs_array_id id) { return more_fields[id].name != NULL; }

static void read_array(gs_record *r, gs_manifest *m, gs_array_id id)
{
    char where[GS_WHERE_BYTES];
    gs_record one = gs_record_open(r, gs_array_stem(id), where);

    m->array[id].present = true;
    gs_record_read(&one, GS_FIELDS(array_fields), &m->array[id]);
    gs_record_read(&one, &more_fields[id], has_more(id), m);
    gs_record_close(r, &one);
}

static void read_arrays(gs_record *r, gs_manifest *m)
{
    char where[GS_WHERE_BYTES];
    gs_record arrays = gs_record_open(r, "arrays", where);

    for (unsigned id = 0; id < GS_ARRAY_COUNT; id++)
        if (gs_record_has(&arrays, gs_array_stem(id)))
            read_array(&arrays, m, id);
    gs_record_close(r, &arrays);
}

/* A new table, which is the caller's whatever follows; NULL after a failure. */
static void *new_table(gs_record *r, size_t bytes, const char *of)
{
    void *const t = r->st == GS_OK ? gs_calloc(1, bytes) : NULL;

    if (t == NULL && r->st == GS_OK)
        r->st = gs_fail(GS_ENOMEM, "%s: no memory for the %s", r->path, of);
    return t;
}

static void read_types(gs_record *r, gs_store_info *i)
{
    gs_type_table *const t = new_table(r, sizeof(*t), "types of vertices");

    if ((i->types = t) == NULL)
        return;
    gs_record_read(r, GS_FIELDS(table_fields), t);
    for (uint32_t k = 1; k < t->types; k++)
        t->type[k].first = t->type[k - 1].first + t->type[k - 1].vertices;
}

/* The last columns of `all`. */
static void place_names(gs_named_feature *named, uint32_t count, uint32_t all)
{
    for (uint32_t k = count; k-- > 0;)
        named[k].first = all -= named[k].columns;
}

static void read_named(gs_record *r, gs_store_info *i)
{
    gs_feature_table *const t = new_table(r, sizeof(*t), "names of features");

    if ((i->named = t) == NULL)
        return;
    gs_record_read(r, GS_FIELDS(named_fields), t);
    place_names(t->vertex, t->vertices, i->features);
    place_names(t->edge, t->edges, i->edge_features);
}

static void read_format(gs_record *r, const char *format, const char *instead)
{
    char text[32] = "";

    gs_record_read(r, &(gs_field){.name = "format", .kind = GS_FIELD_TEXT, .most = sizeof(text)}, 1, text);
    if (r->st == GS_OK && strcmp(text, format) != 0)
        r->st = gs_fail(GS_EFORMAT, "%s: %s", r->path, instead);
}

static uint32_t read_identity(gs_record *r)
{
    read_format(r, GS_MANIFEST_FORMAT, "\"format\" is not \"" GS_MANIFEST_FORMAT "\", so this is no store");
    const uint64_t version = gs_record_number(r, "version", 0, GS_MAX_COUNT);
    if (r->st == GS_OK && (version < 1 || version > GS_STORE_VERSION))
        r->st =
            gs_fail(GS_EFORMAT, "%s: store version %lu, but this program reads versions 1 to %d; partition the input "
                    "again", r->path, version, GS_STORE_VERSION);
    return (uint32_t)version;
}

/* Is there what came with a version, and is said in those after it where it is needed? */
static bool has_since(const gs_record *r, const gs_manifest *m, uint32_t version, const char *key)
{
    return m->version == version || (m->version > version && gs_record_has(r, key));
}

static void read_fields(gs_record *r, gs_manifest *m)
{
    gs_store_info *i = &m->info;
    m->version = read_identity(r);
    gs_record_read(r, GS_FIELDS(first_fields), m);
    m->data.weights = i->weights;
    if (m->version >= GS_STORE_EDGE_FEATURES) {
        gs_record_read(r, GS_FIELDS(edge_fields), m);
        m->data.feature_bytes = i->edge_features * (uint32_t)gs_dtype_bytes(i->edge_feature_type);
    }
    gs_record_read(r, GS_FIELDS(vertex_fields), m);
    i->link_labels = has_since(r, m, GS_STORE_LINK_LABELS, "link_classes");
    if (i->link_labels)
        gs_record_read(r, GS_FIELDS(link_fields), m);
    if (has_since(r, m, GS_STORE_VERTEX_TYPES, "vertex_types"))
        read_types(r, i);
    if (has_since(r, m, GS_STORE_NAMED_FEATURES, "named_features"))
        read_named(r, i);
    read_arrays(r, m);
    if (m->array[GS_ARRAY_LABELS].present && !gs_train_task_of_labels(&i->labels, m->array[GS_ARRAY_LABELS].dtype))
        i->labels = GS_TRAIN_TASK_CLASSIFY; /* refused by gs_manifest__check() */
    gs_record_read(r, GS_FIELDS(last_fields), m);
    /* gs_checksum_line_check() has looked at it */
    gs_record_read(r, &(gs_field)GS_FIELD(gs_manifest, info.id, HEX, "checksum"), 1, m);
    gs_record_end(r);
}

gs_status gs_manifest__parse(gs_manifest *out, const char *text, uint64_t bytes, const char *path)
{
    gs_record r = {.path = path, .where = "", .advice = GS_STORE_DAMAGED, .exact = true};
    gs_manifest m = {0};

    gs_record_of_text(&r, text, bytes);
    read_fields(&r, &m);
    cJSON_Delete(r.object);
    if (r.st == GS_OK)
        r.st = gs_manifest__check(&m, path);
    if (r.st == GS_OK)
        *out = m;
    else {
        gs_free(m.info.types);
        gs_free(m.info.named);
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
        (m->version == GS_STORE_EDGE_FEATURES && i->edge_features == 0) ||
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

static bool add_text(cJSON *to, const char *key, const char *text)
{
    return cJSON_AddStringToObject(to, key, text) != NULL;
}

static bool add_arrays(cJSON *root, const gs_manifest *m)
{
    cJSON *arrays = cJSON_AddObjectToObject(root, "arrays");
    bool ok = arrays != NULL;
    for (unsigned id = 0; ok && id < GS_ARRAY_COUNT; id++) {
        if (!m->array[id].present)
            continue;
        cJSON *one = cJSON_AddObjectToObject(arrays, gs_array_stem(id));
        ok = gs_record_write(one, GS_FIELDS(array_fields), &m->array[id]) &&
             gs_record_write(one, &more_fields[id], has_more(id), m);
    }
    return ok;
}

static bool add_fields(cJSON *root, const gs_manifest *m)
{
    return add_text(root, "format", GS_MANIFEST_FORMAT) &&
           cJSON_AddNumberToObject(root, "version", m->version) != NULL &&
           gs_record_write(root, GS_FIELDS(first_fields), m) &&
           (m->version < GS_STORE_EDGE_FEATURES || gs_record_write(root, GS_FIELDS(edge_fields), m)) &&
           gs_record_write(root, GS_FIELDS(vertex_fields), m) &&
           (m->info.types == NULL || gs_record_write(root, GS_FIELDS(table_fields), m->info.types)) &&
           (m->info.named == NULL || gs_record_write(root, GS_FIELDS(named_fields), m->info.named)) &&
           (!m->info.link_labels || gs_record_write(root, GS_FIELDS(link_fields), m)) && add_arrays(root, m) &&
           gs_record_write(root, GS_FIELDS(last_fields), m) &&
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

static const gs_field shard_fields[] = {
    GS_FIELD(gs_store_shard, name, TEXT, "name", .most = GS_SHARD_NAME_BYTES),
    GS_FIELD(gs_store_shard, store_id, HEX, "store"),
    GS_FIELD(gs_store_shard, ranks, U32, "ranks", .least = 2, .most = GS_SHARDS_MOST),
    GS_FIELD(gs_store_shard, rank, U32, "rank", .most = GS_SHARDS_MOST - 1),
};
static const gs_field extent_fields[] = {
    GS_FIELD(gs_extent, first, U64, "first", .most = GS_MAX_COUNT),
    GS_FIELD(gs_extent, bytes, U64, "bytes", .most = GS_MAX_COUNT),
};

/* An object for each of the store's files that a shard has a part of. */
static void read_extents(gs_record *r, gs_extent *extent, const gs_manifest *m)
{
    char where[GS_WHERE_BYTES], within[GS_WHERE_BYTES];
    gs_record files = gs_record_open(r, "files", where);

    for (unsigned k = GS_FILE_DEST; k < GS_STORE_FILES && files.st == GS_OK; k++) {
        char buf[GS_FILE_NAME_BYTES];
        uint64_t all;
        if (!gs_store__file_expected(m, k, &all))
            continue;
        gs_record one = gs_record_open(&files, gs_store__file_name(buf, k), within);
        gs_record_read(&one, GS_FIELDS(extent_fields), &extent[k]);
        gs_record_close(&files, &one);
        if (extent[k].first > all || extent[k].bytes > all - extent[k].first)
            gs_record_refuse(&files, buf, "has no such bytes");
    }
    gs_record_close(r, &files);
}

static gs_field deal_field(uint32_t ranks)
{
    return (gs_field)GS_FIELD(gs_store_shard, first, U32, "first", .most = GS_MAX_PARTS, .count = ranks + 1);
}

static void read_deal(gs_record *r, gs_store_shard *x, const gs_manifest *m)
{
    const gs_field f = deal_field(x->ranks);
    bool deals = true;

    gs_record_read(r, &f, r->st == GS_OK, x);
    for (uint32_t k = 0; k < x->ranks; k++)
        deals = deals && x->first[k] < x->first[k + 1];
    if (r->st == GS_OK && (!deals || x->first[0] != 0 || x->first[x->ranks] != m->info.parts))
        r->st = gs_fail(GS_EFORMAT, "%s: \"first\" is no deal of %u intervals to %u ranks%s", r->path, m->info.parts,
                        x->ranks, r->advice);
}

static void read_shard(gs_record *r, gs_store_shard *x, gs_extent *extent, const gs_manifest *m)
{
    uint64_t checksum;

    read_format(r, GS_SHARD_FORMAT, "not of a shard" GS_STORE_DAMAGED);
    if (gs_record_number(r, "version", 1, GS_MAX_COUNT) != 1 && r->st == GS_OK)
        r->st = gs_fail(GS_EFORMAT, "%s: of a newer version than this program's; shard the store again", r->path);
    gs_record_read(r, GS_FIELDS(shard_fields), x);
    if (r->st == GS_OK && x->rank >= x->ranks)
        r->st = gs_fail(GS_EFORMAT, "%s: \"rank\" is %u of %u%s", r->path, x->rank, x->ranks, r->advice);
    read_deal(r, x, m);
    read_extents(r, extent, m);
    gs_record_read(r, &(gs_field){.name = "checksum", .kind = GS_FIELD_HEX}, 1, &checksum);
    gs_record_end(r);
}

gs_status gs_shard__parse(gs_store_shard *out, gs_extent *extent, const gs_manifest *m, const char *text,
                          uint64_t bytes, const char *path)
{
    gs_record r = {.path = path, .where = "", .advice = GS_STORE_DAMAGED, .exact = true};
    gs_store_shard x = {0};

    gs_record_of_text(&r, text, bytes);
    read_shard(&r, &x, extent, m);
    cJSON_Delete(r.object);
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
        ok = gs_record_write(one, GS_FIELDS(extent_fields), &extent[k]);
    }
    return ok;
}

gs_status gs_shard__format(char **text, uint64_t *bytes, const gs_store_shard *x, const gs_extent *extent,
                           const gs_manifest *m)
{
    cJSON *const root = cJSON_CreateObject();
    const gs_field deal = deal_field(x->ranks);
    const bool ok = root != NULL && add_text(root, "format", GS_SHARD_FORMAT) &&
                    cJSON_AddNumberToObject(root, "version", 1) != NULL &&
                    gs_record_write(root, GS_FIELDS(shard_fields), x) && gs_record_write(root, &deal, 1, x) &&
                    add_extents(root, extent, m) && gs_json_add_hex(root, "checksum", 0) &&
                    gs_checksum_line_print(text, bytes, root);

    cJSON_Delete(root);
    return ok ? GS_OK : gs_fail(GS_ENOMEM, GS_SHARD_FILE ": no memory to write it");
}
