/* gpu_none.c - the matrices on the GPU that is there, if one is. */
#include "matrix.h"

void gpu_have_nccl(bool have) { (void)have; }
