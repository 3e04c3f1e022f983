/* cli_environment.c - what the program takes from the environment. A test compares it with what the sources ask for. */
#include "cli.h"

const cli_variable cli_environment[] = {
    {"GS_ISA", "The newest instruction set that the cpu device uses: generic, avx2 or avx512.\n"
               "Results differ in their last bits between them. Unset: what the processor has."},
    {"GS_IO", "How files are read: uring or threads. Unset: io_uring where the system has it."},
    {"PATH", "Where the python3 is whose packages CUDA's libraries may be among, as pip installs them."},
    {"XDG_CACHE_HOME, HOME",
     "What was measured of this machine is kept in $XDG_CACHE_HOME/gnnstream, else in\n"
     "$HOME/.cache/gnnstream; without either (absolute) path it is forgotten."},
    {"GS_CUDA_CACHE", "Folder for compiled kernels of GPUs. Unset: cuda in the folder above."},
    {"GS_CUDA_PORTION_EDGES", "Edges that one launch on a GPU takes at most. For tests; unset: by the GPU's memory."},
    {"OMP_WAIT_POLICY, GOMP_SPINCOUNT",
     "How threads wait for each other. Where neither is set, the program starts itself again with\n"
     "passive and 1000, which is fastest where other programs run beside it."},
    {"GS_LOG_EVERY", "Seconds between two lines about progress where stderr is no terminal. Unset: 60."},
    {"TERM", "Progress is one line that is rewritten where stderr is a terminal and this is not dumb."},
    {NULL, NULL},
};
