/* The check of races between the disk and a GPU (host_disk.h) finds each kind of them, and none where there is none.
 * Each case in a process of its own, which a race ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/size.h"
#include "host_disk.h"
#include "host_gpu.h"

static const gs_cuda_driver *gpu;
static gs_cu_handle stream, other, event;
static gs_cu_memory device;
static char *host; /* two blocks */

static void open_gpu(void)
{
    gs_cu_handle context = NULL;
    gpu = host_gpu_driver(GS_TEST_KERNELS);
    host = gs_alloc_pages(2 * GS_BLOCK_BYTES);
    if (host == NULL || gpu->context_retain(&context, 0) != 0 || gpu->context_set(context) != 0 ||
        gpu->stream_create(&stream, 0) != 0 || gpu->stream_create(&other, 0) != 0 ||
        gpu->event_create(&event, 0) != 0 || gpu->memory_alloc(&device, 2 * GS_BLOCK_BYTES) != 0)
        _exit(2);
}

static void copy_in(void) { gpu->copy_in(device, host, 100, stream); }
static void copy_out(void) { gpu->copy_out(host, device, 100, stream); }
static void wait_for_gpu(void) { gpu->stream_synchronize(stream); }
static void record(void) { gpu->event_record(event, stream); }
static void wait_for_event(void) { gpu->event_synchronize(event); }

/* By way of a stream that has no work of its own. */
static void wait_in_other(void)
{
    gpu->event_record(event, stream);
    gpu->stream_wait(other, event, 0);
    gpu->event_record(event, other);
    gpu->event_synchronize(event);
}

static void disk(size_t block, bool write, bool ended)
{
    const gs_io_request r = {.write = write, .length = GS_BLOCK_BYTES, .memory = host + block * GS_BLOCK_BYTES};
    host_disk_request(&r, ended);
}
static void begin_read(void) { disk(0, false, false); }
static void end_read(void) { disk(0, false, true); }
static void begin_write(void) { disk(0, true, false); }
static void end_write(void) { disk(0, true, true); }
static void begin_next_read(void) { disk(1, false, false); }

#define MOST 8
typedef void (*step)(void);

static bool is_race(const step steps[MOST])
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(3);
        open_gpu();
        for (int i = 0; i < MOST && steps[i] != NULL; i++)
            steps[i]();
        wait_for_gpu();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status))
        assert_int_equal(status, 0);
    return WIFSIGNALED(status);
}

static void test_host_disk__finds_what_nothing_orders(void **state)
{
    static const step races[][MOST] = {
        {copy_in, begin_read},                          /* overwrites what is being copied */
        {copy_in, begin_read, end_read},
        {begin_read, copy_in, end_read},                /* copies what has not come */
        {begin_read, end_read, copy_in, begin_read},    /* the same place again, too early */
        {copy_out, begin_write},                        /* writes what has not been computed */
        {begin_write, copy_out, end_write},             /* changes what is being written */
        {copy_out, begin_read},
        {begin_read, begin_read},
        {begin_write, begin_read},
        {begin_read, begin_write},
        /* What was asked for behind the event counts as done: a copy into the GPU that staging made while it waited
         * for room was once taken for one that is over, and the disk's next read changed what it copied. */
        {copy_in, record, copy_in, wait_for_event, begin_read},
        {copy_out, record, copy_out, wait_for_event, begin_write},
        {copy_in, record, copy_in, wait_for_event, begin_read, end_read, copy_in},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(races) / sizeof(races[0]); i++)
        if (!is_race(races[i]))
            fail_msg("race %zu is not found", i);
}

static void test_host_disk__is_content_with_what_is_in_order(void **state)
{
    static const step orders[][MOST] = {
        {begin_read, end_read, copy_in, wait_for_gpu, begin_read, end_read, copy_in},
        {copy_out, wait_for_gpu, begin_write, end_write, copy_out},
        {copy_in, begin_write, end_write}, /* two that change nothing */
        {begin_write, copy_in, begin_write, end_write, end_write},
        {copy_in, begin_next_read}, /* another block */
        {copy_in, wait_in_other, begin_read},
        {copy_in, copy_in, record, wait_for_event, begin_read},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
        if (is_race(orders[i]))
            fail_msg("order %zu is taken for a race", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_disk__finds_what_nothing_orders),
        cmocka_unit_test(test_host_disk__is_content_with_what_is_in_order),
    };
    setenv("GS_TEST_GPU_RACES", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
