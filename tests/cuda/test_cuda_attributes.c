/* Attributes of a GPU become rates: those of the link to the host out of sysfs, beside the sheets of PCIe. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cuda/gpu_links.h"

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *const f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void remove_file(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

/* Bytes a second of 16 lanes: 4.0, 15.754, 31.508, 63.015 GB/s for PCIe 1, 3, 4 and 5. */
static void test_cuda_attributes__a_link_is_as_fast_as_it_can_be(void **state)
{
    (void)state;
    static const struct {
        const char *speed, *width;
        double want;
    } link[] = {{"2.5 GT/s PCIe\n", "16\n", 4.0e9},     {"8.0 GT/s PCIe\n", "16\n", 15.754e9},
                {"16.0 GT/s PCIe\n", "16\n", 31.508e9}, {"32.0 GT/s PCIe\n", "16\n", 63.015e9},
                {"16.0 GT/s PCIe\n", "4\n", 7.877e9},   {"Unknown\n", "0\n", 0}};
    char folder[] = "/tmp/gs_pcie.XXXXXX";
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof(link) / sizeof(link[0]); i++) {
        write_file(folder, "max_link_speed", link[i].speed);
        write_file(folder, "max_link_width", link[i].width);
        const double got = gs_cuda_pcie_bps(folder);
        assert_true(got >= link[i].want * 0.9999 && got <= link[i].want * 1.0001);
    }
    remove_file(folder, "max_link_width");
    assert_true(gs_cuda_pcie_bps(folder) == 0);
    remove_file(folder, "max_link_speed");
    assert_int_equal(rmdir(folder), 0);
    assert_true(gs_cuda_pcie_bps(folder) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_attributes__a_link_is_as_fast_as_it_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
