/* The devices of device_fixture.h: a GPU. Where $GS_TEST_GPU is set, the one that is there; else the host's. */
#include "gpu_devices.h"

#include <stdlib.h>

#include "base/option_table.h" /* gs_word_place */
#include "device_fixture.h"
#include "host_files.h"
#include "host_gpu.h"

const char *const isa_names[] = {"cuda"};
const size_t isas = 1;
const unsigned most_threads = 2;

bool real_gpu(void) { return getenv("GS_TEST_GPU") != NULL; }

void choose_gpu(void)
{
    gs_cuda_test_driver = real_gpu() ? NULL : host_gpu_driver(GS_TEST_KERNELS);
    gs_cuda_test_files = real_gpu() ? NULL : host_files();
}

gs_device *open_gpu(void)
{
    const char *const asked = getenv("GS_TEST_MATMUL");
    const gs_matmul matmul = asked == NULL ? GS_MATMUL_FP32 : (gs_matmul)gs_word_place("fp32|tf32|bf16", asked);
    gs_device *d = NULL;

    choose_gpu();
    gs_assert_ok(gs_device_open_with(&d, &(gs_device_config){.spec = "cuda", .threads = 1, .matmul = matmul}));
    return d;
}

static bool takes_all(void)
{
    return real_gpu() || getenv("GS_TEST_EVERY_SHAPE") != NULL || getenv("GS_TEST_ALL") != NULL;
}

/* It has no threads: twice shows that results repeat, of a pretended one every third time that it is asked. */
gs_device *open_isa(const char *isa, unsigned threads)
{
    static unsigned asked;
    (void)isa;
    return threads > 2 || (threads == 2 && !takes_all() && asked++ % 3 != 0) ? NULL : open_gpu();
}

/* Its pieces of a hub are of 64 edges and more, and of one type's rows 1,024; the CPU's are of 4,096. */
uint32_t hub_edges(uint32_t edges) { return takes_all() ? edges : edges / 3; }

bool takes_kind(size_t i, size_t every, size_t first)
{
#ifdef __SANITIZE_ADDRESS__
    return takes_all() || i % (2 * every) == first;
#else
    (void)i, (void)every, (void)first;
    return true;
#endif
}

bool takes_shape(size_t i, size_t every, size_t first)
{
#ifdef __SANITIZE_ADDRESS__
    return takes_kind(i, every, first);
#else
    return takes_all() || i % every == (first + 1) % every; /* others than sanitized builds take */
#endif
}

void on_every_device(void (*body)(gs_device *d, void *context), void *context)
{
    gs_device *const d = open_isa("cuda", 1);
    body(d, context);
    gs_device_close(d);
}

void on_rounding_devices(void (*body)(gs_device *d, void *context), void *context) { (void)body, (void)context; }
