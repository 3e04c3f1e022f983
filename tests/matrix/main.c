/* main.c - matrix NAME ARGUMENTS...: one of the matrices of matrix.h. */
#include <stdlib.h>
#include <string.h>

#include "matrix.h"

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const arguments *a);
    } matrices[] = {
        {"exact", matrix_exact},
        {"zoo", matrix_zoo},
        {"gradients", matrix_gradients},
        {"layouts", matrix_layouts},
        {"determinism", matrix_determinism},
        {"determinism-gpu", matrix_determinism_gpu},
        {"properties", matrix_properties},
        {"rounded", matrix_rounded},
        {"gathered", matrix_gathered},
        {"half-features", matrix_half_features},
        {"less-work", matrix_less_work},
        {"tables", matrix_tables},
        {"tables-gpu", matrix_tables_gpu},
        {"several", matrix_several},
        {"gpu", matrix_gpu},
        {"gpu-batches", matrix_gpu_batches},
        {"several-gpus", matrix_several_gpus},
    };

    /* Set before OpenMP is loaded, or the command starts itself again. */
    if (getenv("OMP_WAIT_POLICY") == NULL)
        ref_die("OMP_WAIT_POLICY is not set: run it as meson test does, with OMP_WAIT_POLICY=passive");
    if (setenv("GS_LOG_EVERY", "1e6", 1) != 0) /* a busy machine is no reason for words on stderr */
        ref_die("no memory for the environment");
    for (size_t i = 0; argc > 1 && i < sizeof(matrices) / sizeof(matrices[0]); i++) {
        if (strcmp(argv[1], matrices[i].name) != 0)
            continue;
        work_folder(GS_TEST_SOURCE_ROOT);
        matrices[i].run(&(arguments){argc - 2, argv + 2});
        return check_report();
    }
    ref_die("no such matrix; see tests/matrix/main.c");
}
