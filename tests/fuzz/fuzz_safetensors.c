/* Weights from a file of any bytes are refused with a text and change nothing, or are those of the program. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "train/provenance.h"
#include "train/safetensors.h"

static gs_param param[] = {
    {.name = "convs.0.lin.weight", .dims = 2, .rows = 2, .cols = 3},
    {.name = "convs.0.bias", .dims = 1, .rows = 1, .cols = 5, .initial = {GS_INITIAL_FILL, 0}},
    {.name = "n", .dims = 1, .rows = 1, .cols = 1, .fixed = true, .counter = true},
};
static const gs_program program = {.params = 3, .param = param, .logits = GS_NONE};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Of their exact sizes, so that a sanitizer sees a write beyond one. */
    float *value[3];
    for (int k = 0; k < 3; k++) {
        const size_t bytes = gs_param_elements(&param[k]) * sizeof(float);
        if ((value[k] = malloc(bytes)) == NULL)
            abort();
        memset(value[k], 0xEE, bytes);
    }
    const gs_status st = gs_safetensors_load(value, &program, NULL, gs_fuzz_file("w.safetensors", data, size));
    gs_fuzz_judge(st);
    for (int k = 0; k < 3; k++) {
        for (uint64_t i = 0; st != GS_OK && i < gs_param_elements(&param[k]); i++) {
            uint32_t bits;
            memcpy(&bits, &value[k][i], sizeof(bits));
            gs_fuzz_require(bits == 0xEEEEEEEEu, "a refusal changes no weight");
        }
        free(value[k]);
    }
    /* Notes are texts of anybody's. */
    gs_provenance p;
    const gs_status read = gs_provenance_read(&p, gs_fuzz_file("w.safetensors", data, size));
    gs_fuzz_judge(read);
    if (read == GS_OK)
        gs_provenance_free(&p);
    return 0;
}

size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    static const char *const header[] = {
        "{\"__metadata__\":{\"format\":\"pt\",\"gnnstream\":\"0.1.0\",\"model_text\":\"\\n\",\"layers\":\"2\"},"
        "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
        "\"convs.0.lin.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]},"
        "\"convs.0.bias\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[32,52]}}   ",
        "{\"convs.0.lin.weight\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[40,52]},"
        "\"convs.0.bias\":{\"dtype\":\"F64\",\"shape\":[5],\"data_offsets\":[0,40]},"
        "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[52,60]}}",
        "{\"convs.0.lin.weight\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[28,40]},"
        "\"convs.0.bias\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[8,28]},"
        "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}}",
    };
    static const size_t bytes[] = {52, 60, 40};
    if (k >= sizeof(header) / sizeof(header[0]))
        return 0;
    const size_t length = strlen(header[k]);
    if (8 + length + bytes[k] > capacity)
        abort();
    memset(data, 0, 8 + length + bytes[k]);
    data[0] = (uint8_t)(length & 255);
    data[1] = (uint8_t)(length >> 8);
    memcpy(data + 8, header[k], length);
    return 8 + length + bytes[k];
}
