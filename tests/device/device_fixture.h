/* device_fixture.h - devices of every instruction set that runs here, small
 * programs, and random numbers, for the tests of this folder. */
#ifndef GS_TESTS_DEVICE_FIXTURE_H
#define GS_TESTS_DEVICE_FIXTURE_H

#include "device/device.h"
#include "launches.h"
#include "support/support.h"

/* Opens "cpu" with GS_ISA = isa ("generic", "avx2", "avx512"), or "wide": the code of AVX-512
 * made for vectors that every CPU has. NULL where this machine does not have it. */
gs_device *open_isa(const char *isa, unsigned threads);

/* How many there are, and their names (cpu_devices.c, and that of another room's tests). */
extern const size_t isas;
/* A device is tried with 1 to so many threads; a GPU has none and is run twice, as results must repeat. */
extern const unsigned most_threads;
extern const char *const isa_names[];

/* Calls body(device, context) for every instruction set here, and 1 and 2 threads. */
void on_every_device(void (*body)(gs_device *d, void *context), void *context);
/* For processors that round products to bf16, where these do, and 1, 2 and 5 threads. */
void on_rounding_devices(void (*body)(gs_device *d, void *context), void *context);
/* Of a device that rounds what products take, numbers of a fixture are rounded: results are held against their sums. */
void round_inputs(const gs_device *d, const float *numbers, size_t n);

/* Edges of a target that are cut in pieces: so many on the CPU, fewer where fewer are enough. */
uint32_t hub_edges(uint32_t edges);
/* Is shape `i` of a list one for this device? All are for the CPU, in a build for speed, and for a GPU that is there.
 * Else one of `every` is; under sanitizers of a pretended GPU, whose kernels for a shape take long to build, one of
 * 2 * `every`, from `first` on. All where $GS_TEST_EVERY_SHAPE or $GS_TEST_ALL is set. */
bool takes_shape(size_t i, size_t every, size_t first);
/* The same where each i is another thing and no other size of one: only a pretended GPU under sanitizers leaves some
 * out. */
bool takes_kind(size_t i, size_t every, size_t first);

/* Deterministic numbers: uniform in [low, high), and below n. */
float random_between(uint32_t i, uint32_t stream, float low, float high);
uint32_t random_below(uint32_t i, uint32_t stream, uint32_t n);
/* n of them, in memory that test_free() takes. */
float *random_floats(size_t n, uint32_t stream, float low, float high);

/* array[i] = value, in an array of numbers of 1, 2 or 4 bytes; and back. */
void put_number(void *array, uint32_t bytes, uint32_t i, uint32_t value);
uint32_t get_number(const void *array, uint32_t bytes, uint32_t i);

#define FIXTURE_MAX 64

/* A program of one stage with registers and parameters added one by one. */
typedef struct fixture {
    gs_program program;
    gs_stage stage;
    gs_param param[FIXTURE_MAX];
    gs_reg reg[FIXTURE_MAX];
    gs_instr instr[FIXTURE_MAX];
    void *memory[FIXTURE_MAX]; /* of registers, exactly [rows, width] so that sanitizers see the ends */
    const float *weight[FIXTURE_MAX];
    float *grad[FIXTURE_MAX];
    gs_metrics metrics;
    gs_vertex_launch launch;
} fixture;

void fixture_init(fixture *f, uint32_t rows);
void fixture_free(fixture *f); /* and the memory of its registers, parameters and gradients */
uint32_t add_reg(fixture *f, gs_dtype dtype, uint32_t width);         /* memory filled with a pattern (NaN) */
uint32_t add_random(fixture *f, uint32_t width, float low, float high); /* f32 */
uint32_t add_ids(fixture *f);                                         /* u32, width 1 */
uint32_t add_param(fixture *f, uint32_t dims, uint32_t rows, uint32_t cols); /* random; gradient 0.5 everywhere */
gs_instr *add_instr(fixture *f, gs_op op, uint32_t dst, gs_operand a, gs_operand b);
void fixture_run(fixture *f, gs_device *d); /* prepares and runs; must succeed */
/* The sum of n products of elements so far apart. */
double dot(const float *a, size_t a_step, const float *b, size_t b_step, size_t n);

gs_operand in_reg(uint32_t index);
gs_operand in_param(uint32_t index);
gs_operand in_const(float value);
#define NO_OPERAND ((gs_operand){0})

#endif /* GS_TESTS_DEVICE_FIXTURE_H */
