/* .safetensors: what is written, what comes back, and files that mean harm. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/support.h"

#include "tiny_program.h"
#include "session/params.h"
#include "base/alloc.h"
#include "train/safetensors.h"

static gs_params fresh(void)
{
    gs_params p;
    gs_assert_ok(gs_params_alloc(&p, &tiny_program, false, 0));
    return p;
}

static void write_weights(const char *path, const gs_params *p)
{
    gs_outfile o = GS_OUTFILE_NONE;
    gs_assert_ok(gs_outfile_begin(&o, path));
    gs_assert_ok(gs_safetensors_reserve(&o, &tiny_program, p->value, NULL));
    gs_assert_ok(gs_safetensors_write(&o, &tiny_program, p->value, NULL, NULL, 0));
    gs_assert_ok(gs_outfile_finish(&o));
}

static size_t read_bytes(const char *path, void *bytes, size_t room)
{
    FILE *const f = fopen(path, "rb");
    assert_non_null(f);
    const size_t length = fread(bytes, 1, room, f);
    fclose(f);
    return length;
}

/* The first number that is not finite is named, and nothing is taken of the file. */
static void safetensors__numbers_are_finite(void **state)
{
    const char *const path = gs_test_path(*state, "nan.safetensors");
    gs_params a = fresh(), b = fresh();

    gs_params_init(&a, &tiny_program, 3);
    a.value[1][3] = INFINITY;
    a.value[1][4] = NAN;
    write_weights(path, &a);
    gs_assert_fails(gs_safetensors_load(b.value, &tiny_program, NULL, path), GS_EFORMAT,
                    "is infinite in float32 at number 3");
    for (uint64_t i = 0; i < b.elements; i++)
        assert_true(b.values[i] == 0);
    gs_params_free(&a);
    gs_params_free(&b);
}

/* A file of this header and `data_bytes` bytes of the pattern 0, 1, 2, ... */
static void forge(const char *path, uint64_t claimed, const char *header, size_t data_bytes)
{
    FILE *const f = fopen(path, "wb");
    assert_non_null(f);
    for (int i = 0; i < 8; i++)
        fputc((int)(claimed >> (8 * i) & 255), f);
    fputs(header, f);
    for (size_t i = 0; i < data_bytes; i++)
        fputc((int)(i & 63), f);
    fclose(f);
}

static void forge_whole(const char *path, const char *header, size_t data_bytes)
{
    forge(path, strlen(header), header, data_bytes);
}

/* ---- what is written ---- */

static void safetensors__round_trip(void **state)
{
    const char *const path = gs_test_path(*state, "w.safetensors");
    gs_params a = fresh(), b = fresh();

    gs_params_init(&a, &tiny_program, 3);
    a.value[1][4] = -0.0f;
    a.value[1][3] = 1e-42f; /* subnormal */
    write_weights(path, &a);
    gs_assert_ok(gs_safetensors_load(b.value, &tiny_program, NULL, path));
    assert_memory_equal(a.values, b.values, a.elements * sizeof(float));
    gs_params_free(&a);
    gs_params_free(&b);
}

static void safetensors__bytes_are_as_the_format_says(void **state)
{
    static const char want[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"convs.0.lin.weight\":{\"dtype\":\"F32\",\"shape\":[5,7],\"data_offsets\":[0,140]},"
        "\"convs.0.bias\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[140,160]},"
        "\"convs.1.lin.weight\":{\"dtype\":\"F32\",\"shape\":[3,5],\"data_offsets\":[160,220]},"
        "\"convs.1.att\":{\"dtype\":\"F32\",\"shape\":[11],\"data_offsets\":[220,264]}}";
    const char *const path = gs_test_path(*state, "w.safetensors");
    unsigned char bytes[2048];
    gs_params p = fresh();
    size_t length, padded = (sizeof(want) - 1 + 7) / 8 * 8;

    gs_params_init(&p, &tiny_program, 3);
    write_weights(path, &p);
    length = read_bytes(path, bytes, sizeof(bytes));
    assert_int_equal(length, 8 + padded + 264);
    assert_int_equal(bytes[0] | bytes[1] << 8, padded);
    for (int i = 2; i < 8; i++)
        assert_int_equal(bytes[i], 0);
    assert_memory_equal(bytes + 8, want, sizeof(want) - 1);
    for (size_t i = 8 + sizeof(want) - 1; i < 8 + padded; i++)
        assert_int_equal(bytes[i], ' ');
    assert_memory_equal(bytes + 8 + padded, p.value[0], 140);
    assert_memory_equal(bytes + 8 + padded + 160, p.value[2], 60);
    assert_memory_equal(bytes + 8 + padded + 220, p.value[3], 44);
    gs_params_free(&p);
}

/* Counts are I64 without dimensions and come first, where they are aligned; statistics are in no file. */
static void safetensors__counts_and_statistics(void **state)
{
    static const char want[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                               "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
                               "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}";
    gs_param param[] = {
        {.name = "w", .dims = 1, .rows = 1, .cols = 1},
        {.name = "train.mean", .dims = 1, .rows = 1, .cols = 1, .fixed = true, .statistic = GS_STATISTIC_MEAN},
        {.name = "n", .dims = 1, .rows = 1, .cols = 1, .fixed = true, .counter = true},
    };
    const gs_program program = {.params = 3, .param = param};
    const char *const path = gs_test_path(*state, "count.safetensors");
    const size_t padded = (sizeof(want) - 1 + 7) / 8 * 8;
    float w = 2.5f, mean = 7, n = 300, back[3] = {0, 9, 0};
    float *const value[3] = {&w, &mean, &n}, *const loaded[3] = {&back[0], &back[1], &back[2]};
    unsigned char bytes[512];
    gs_outfile o = GS_OUTFILE_NONE;
    int64_t count;

    gs_assert_ok(gs_outfile_begin(&o, path));
    gs_assert_ok(gs_safetensors_write(&o, &program, value, NULL, NULL, 0));
    assert_int_equal(pread(o.fd, bytes, sizeof(bytes), 0), 8 + padded + 12);
    gs_assert_ok(gs_outfile_finish(&o));
    assert_memory_equal(bytes + 8, want, sizeof(want) - 1);
    memcpy(&count, bytes + 8 + padded, 8);
    assert_int_equal(count, 300);
    gs_assert_ok(gs_safetensors_load(loaded, &program, NULL, path));
    assert_true(back[0] == 2.5f && back[1] == 9 && back[2] == 300);
    forge_whole(path, "{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                      "\"n\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[4,8]}}", 8);
    gs_assert_fails(gs_safetensors_load(loaded, &program, NULL, path), GS_EFORMAT, "\"n\" is a count and must be I64");
}

/* ---- other element types, other orders ---- */

static gs_param one_param[] = {{.name = "w", .dims = 1, .rows = 1, .cols = 4}};
static const gs_program one = {.params = 1, .param = one_param};

static void load_one(float out[4], const char *path, const char *dtype, const void *data, size_t bytes)
{
    char header[160];
    float *value[1] = {out};
    FILE *f;

    snprintf(header, sizeof(header), "{\"w\":{\"dtype\":\"%s\",\"shape\":[4],\"data_offsets\":[0,%zu]}}", dtype, bytes);
    forge_whole(path, header, 0);
    assert_non_null(f = fopen(path, "ab"));
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
    gs_assert_ok(gs_safetensors_load(value, &one, NULL, path));
}

static void safetensors__reads_f16_bf16_and_f64(void **state)
{
    /* 1, -2, 0.5, 65504 (largest f16; 65536 as bf16) */
    static const uint16_t f16[4] = {0x3C00, 0xC000, 0x3800, 0x7BFF}, bf16[4] = {0x3F80, 0xC000, 0x3F00, 0x4780};
    static const double f64[4] = {1, -2, 0.1, 1e-3};
    const char *const path = gs_test_path(*state, "x.safetensors");
    float v[4];

    load_one(v, path, "F16", f16, sizeof(f16));
    assert_true(v[0] == 1 && v[1] == -2 && v[2] == 0.5f && v[3] == 65504);
    load_one(v, path, "BF16", bf16, sizeof(bf16));
    assert_true(v[0] == 1 && v[1] == -2 && v[2] == 0.5f && v[3] == 65536);
    load_one(v, path, "F64", f64, sizeof(f64));
    assert_true(v[0] == 1 && v[1] == -2 && v[2] == 0.1f && v[3] == 1e-3f);
}

static void safetensors__order_and_metadata_do_not_matter(void **state)
{
    const char *const path = gs_test_path(*state, "x.safetensors");
    gs_params p = fresh();

    forge_whole(path,
                "{ \"convs.1.att\": {\"shape\": [11], \"data_offsets\": [0, 44], \"dtype\": \"F32\"},\n"
                "\"convs.1.lin.weight\":{\"dtype\":\"F32\",\"shape\":[3,5],\"data_offsets\":[44,104]},"
                "\"convs.0.bias\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[104,124]},"
                "\"__metadata__\":{\"any\":\"thing\"},"
                "\"convs.0.lin.weight\":{\"dtype\":\"F32\",\"shape\":[5,7],\"data_offsets\":[124,264]}}  \n ",
                264);
    gs_assert_ok(gs_safetensors_load(p.value, &tiny_program, NULL, path));
    for (size_t i = 0; i < 44; i++) /* bytes of the pattern count up from 0 */
        assert_int_equal(((unsigned char *)p.value[3])[i], i);
    assert_int_equal(((unsigned char *)p.value[0])[0], 124 & 63);
    gs_params_free(&p);
}

/* ---- refusals ---- */

#define W0 "\"convs.0.lin.weight\":{\"dtype\":\"F32\",\"shape\":[5,7],\"data_offsets\":[0,140]}"
#define B0 "\"convs.0.bias\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[140,160]}"
#define W1 "\"convs.1.lin.weight\":{\"dtype\":\"F32\",\"shape\":[3,5],\"data_offsets\":[160,220]}"
#define A1 "\"convs.1.att\":{\"dtype\":\"F32\",\"shape\":[11],\"data_offsets\":[220,264]}"

static const struct refusal {
    const char *header, *text;
} refusals[] = {
    /* tensors that the model does not have, and the other way round: names and shapes */
    {"{" W0 "," B0 "," W1 "}", "\"convs.1.att\" is missing; the model wants it with shape [11]"},
    {"{" W0 "," B0 "," W1 "," A1 ",\"extra\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}",
     "unexpected tensor \"extra\" [2, 2]"},
    {"{\"convs.0.lin.weight\":{\"dtype\":\"F32\",\"shape\":[7,5],\"data_offsets\":[0,140]}," B0 "," W1 "," A1 "}",
     "\"convs.0.lin.weight\" has shape [7, 5], the model wants [5, 7]"},
    {"{\"convs.0.lin.weight\":{\"dtype\":\"F32\",\"shape\":[35],\"data_offsets\":[0,140]}," B0 "," W1 "," A1 "}",
     "has shape [35], the model wants [5, 7]"},
    {"{" W0 ",\"convs.0.bias\":{\"dtype\":\"F32\",\"shape\":[1,5],\"data_offsets\":[140,160]}," W1 "," A1 "}",
     "\"convs.0.bias\" has shape [1, 5], the model wants [5]"},
    {"{" W0 "," W0 "," B0 "," W1 "," A1 "}", "\"convs.0.lin.weight\" is there twice"},
    /* places that lie */
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[260,276]}}", "\"w\" does not fit"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[16,0]}}", "\"w\" does not fit"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,12]}}", "\"w\" does not fit"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[-16,0]}}", "\"w\" does not fit"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0.5,16.5]}}", "\"w\" does not fit"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,1e300]}}", "\"w\" does not fit"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16,32]}}", "\"w\" does not fit"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":{}}}", "\"w\" does not fit"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4]}}", "\"w\" does not fit"},
    /* shapes whose product wraps to a harmless one: 2^31 * 2^31 * 4 = 2^64 */
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2147483648,2147483648,4],\"data_offsets\":[0,0]}}", "impossible shape"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "no valid shape"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", "no valid shape"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,16]}}", "no valid shape"},
    {"{\"w\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]}}", "type I32"},
    {"{\"convs.0.bias\":{\"dtype\":\"I64\",\"shape\":[5],\"data_offsets\":[0,40]}}", "\"convs.0.bias\" is of type I64"},
    {"{\"w\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,8]}}", "type (none)"},
    /* bytes that two tensors have, and bytes that none has */
    {"{" W0 ",\"convs.0.bias\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[120,140]}," W1 "," A1 "}",
     "\"convs.0.bias\" begins at byte 120 of the data, but the one before it ends at byte 140"},
    {"{" W0 "," B0 ",\"convs.1.lin.weight\":{\"dtype\":\"F32\",\"shape\":[3,5],\"data_offsets\":[140,200]}," A1 "}",
     "\"convs.1.lin.weight\" begins at byte 140 of the data, but the one before it ends at byte 160"},
    {"{" W0 "," B0 ",\"convs.1.lin.weight\":{\"dtype\":\"F32\",\"shape\":[3,5],\"data_offsets\":[160,220]},"
     "\"convs.1.att\":{\"dtype\":\"F16\",\"shape\":[11],\"data_offsets\":[242,264]}}",
     "\"convs.1.att\" begins at byte 242 of the data, and nothing uses those from byte 220"},
    {"{" W0 "," B0 "," W1 ",\"convs.1.att\":{\"dtype\":\"F16\",\"shape\":[11],\"data_offsets\":[220,242]}}",
     "22 bytes follow the last tensor"},
    {"{\"w\":3}", "type (none)"},
    {"{\"w\\nx\":3}", "\"w?x\""},
    /* not such a header */
    {"[]", "not a JSON object"},
    {"", "not a JSON object"},
    {"{" W0, "not a JSON object"},
    {"{} {}", "not a JSON object"},
    {"{}x", "not a JSON object"},
    {"\xff\xfe\x00", "not a JSON object"},
};

static void safetensors__refuses_and_names_the_tensor(void **state)
{
    const char *const path = gs_test_path(*state, "bad.safetensors");
    gs_params p = fresh();

    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        forge_whole(path, refusals[i].header, 264);
        gs_assert_fails(gs_safetensors_load(p.value, &tiny_program, NULL, path), GS_EFORMAT, refusals[i].text);
        assert_non_null(strstr(gs_last_error(), path));
    }
    for (uint64_t i = 0; i < p.elements; i++)
        assert_true(p.values[i] == 0); /* untouched by all of them */
    gs_params_free(&p);
}

static void safetensors__refuses_lengths_that_lie(void **state)
{
    static const uint64_t claimed[] = {3, 1000, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 7};
    const char *const path = gs_test_path(*state, "bad.safetensors");
    gs_params p = fresh();

    for (size_t i = 0; i < sizeof(claimed) / sizeof(claimed[0]); i++) {
        forge(path, claimed[i], "{" W0 "}", 8);
        gs_assert_fails(gs_safetensors_load(p.value, &tiny_program, NULL, path), GS_EFORMAT, path);
    }
    for (size_t n = 0; n < 8; n++) {
        gs_test_write_file(path, "\2\0\0\0\0\0\0", n);
        gs_assert_fails(gs_safetensors_load(p.value, &tiny_program, NULL, path), GS_EFORMAT, "too few");
    }
    gs_params_free(&p);
}

/* A header that is long but lawful is not parsed: its tree would cost far more. */
static void safetensors__refuses_a_header_beyond_the_limit(void **state)
{
    const char *const path = gs_test_path(*state, "bad.safetensors");
    const size_t n = GS_SAFETENSORS_HEADER_LIMIT + 1;
    char *const header = malloc(n + 1);
    gs_params p = fresh();

    assert_non_null(header);
    memset(header, ' ', n);
    header[0] = '{';
    header[n - 1] = '}';
    header[n] = '\0';
    forge_whole(path, header, 0);
    gs_assert_fails(gs_safetensors_load(p.value, &tiny_program, NULL, path), GS_EFORMAT, "limit");
    /* at the limit it is: and then lacks a tensor */
    header[n - 1] = '\0';
    header[n - 2] = '}';
    forge_whole(path, header, 0);
    gs_assert_fails(gs_safetensors_load(p.value, &tiny_program, NULL, path), GS_EFORMAT, "is missing");
    free(header);
    gs_params_free(&p);
}

/* Every prefix of a good file, and a bit of every byte of its header turned over, gives
 * an error or the tensors; nothing reads outside the file. */
static void safetensors__cut_short_or_flipped_is_never_a_crash(void **state)
{
    const char *const path = gs_test_path(*state, "w.safetensors");
    unsigned char bytes[2048];
    gs_params p = fresh();
    size_t length;

    gs_params_init(&p, &tiny_program, 3);
    write_weights(path, &p);
    length = read_bytes(path, bytes, sizeof(bytes));
    for (size_t n = 0; n < length; n++) {
        gs_test_write_file(path, bytes, n);
        assert_int_equal(gs_safetensors_load(p.value, &tiny_program, NULL, path), GS_EFORMAT);
    }
    for (size_t i = 0; i < length - 264; i++) {
        const unsigned char bit = (unsigned char)(1u << i % 8);
        bytes[i] ^= bit;
        gs_test_write_file(path, bytes, length);
        const gs_status st = gs_safetensors_load(p.value, &tiny_program, NULL, path);
        assert_true(st == GS_OK || st == GS_EFORMAT);
        bytes[i] ^= bit;
    }
    gs_params_free(&p);
}

static void safetensors__missing_file_and_folder(void **state)
{
    gs_params p = fresh();

    gs_assert_fails(gs_safetensors_load(p.value, &tiny_program, NULL, gs_test_path(*state, "none")), GS_ENOTFOUND,
                    "none");
    gs_assert_fails(gs_safetensors_load(p.value, &tiny_program, NULL, *state), GS_ENOTFOUND, "is a folder");
    gs_params_free(&p);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, gs_test_temp_setup, gs_test_temp_teardown)

/* Notes come back as they were, and a file of other notes is refused. */
static void safetensors__notes_come_back(void **state)
{
    static const gs_safetensors_note given[] = {{"model", "gcn"}, {"model_text", "layer \"a\":\n\t\\ \xc3\xa9"}};
    const char *const path = gs_test_path(*state, "w.safetensors");
    gs_params p = fresh();
    gs_outfile o = GS_OUTFILE_NONE;
    gs_safetensors_note *note = NULL;
    uint32_t notes;

    gs_assert_ok(gs_outfile_begin(&o, path));
    gs_assert_ok(gs_safetensors_reserve(&o, &tiny_program, p.value, NULL));
    gs_assert_ok(gs_safetensors_write(&o, &tiny_program, p.value, NULL, given, 2));
    gs_assert_ok(gs_outfile_finish(&o));
    gs_assert_ok(gs_safetensors_load(p.value, &tiny_program, NULL, path));
    gs_assert_ok(gs_safetensors_read_notes(&note, &notes, path));
    assert_int_equal(notes, 3);
    assert_string_equal(note[0].value, "pt");
    for (uint32_t k = 0; k < 2; k++) {
        assert_string_equal(note[1 + k].key, given[k].key);
        assert_string_equal(note[1 + k].value, given[k].value);
    }
    gs_free(note);
    forge_whole(path, "{\"__metadata__\": {\"model\": 3}}", 0);
    gs_assert_fails(gs_safetensors_read_notes(&note, &notes, path), GS_EFORMAT, "no list of at most 64 texts");
    forge_whole(path, "{}", 0);
    gs_assert_ok(gs_safetensors_read_notes(&note, &notes, path));
    assert_int_equal(notes, 0);
    gs_free(note);
    gs_params_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(safetensors__notes_come_back),
        IN_FOLDER(safetensors__round_trip),
        IN_FOLDER(safetensors__numbers_are_finite),
        IN_FOLDER(safetensors__bytes_are_as_the_format_says),
        IN_FOLDER(safetensors__counts_and_statistics),
        IN_FOLDER(safetensors__reads_f16_bf16_and_f64),
        IN_FOLDER(safetensors__order_and_metadata_do_not_matter),
        IN_FOLDER(safetensors__refuses_and_names_the_tensor),
        IN_FOLDER(safetensors__refuses_lengths_that_lie),
        IN_FOLDER(safetensors__refuses_a_header_beyond_the_limit),
        IN_FOLDER(safetensors__cut_short_or_flipped_is_never_a_crash),
        IN_FOLDER(safetensors__missing_file_and_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
