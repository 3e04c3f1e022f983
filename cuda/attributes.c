/* Attributes of a GPU, as rates. */
#include "cuda/attributes.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/chain.h"
#include "cuda/cuda_device.h"

static double attribute(const gs_cuda *c, int which)
{
    int value = 0;
    return c->d->device_attribute(&value, which, c->device) == 0 && value > 0 ? value : 0;
}

/* The number that a file of sysfs begins with ("32.0 GT/s PCIe"); 0: there is none. */
static double number_in(const char *folder, const char *name)
{
    char path[256], line[64];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *const in = fopen(path, "re");
    if (in == NULL)
        return 0;
    const double value = fgets(line, sizeof(line), in) != NULL ? strtod(line, NULL) : 0;
    fclose(in);
    return isfinite(value) && value > 0 ? value : 0;
}

double gs_cuda_pcie_bps(const char *folder)
{
    const double transfers = number_in(folder, "max_link_speed") * 1e9, width = number_in(folder, "max_link_width");
    const double coded = transfers < 6e9 ? 0.8 : 128.0 / 130; /* PCIe 1, 2: 8 bits as 10; then 128 as 130 */
    return transfers * coded / 8 * width;
}

/* Guess for a link that the system does not show: 16 lanes of the PCIe that GPUs of this kind have. */
static double usual_pcie_bps(int major)
{
    return 16 * 128.0 / 130 / 8 * (major >= 9 ? 32e9 : major == 8 ? 16e9 : 8e9);
}

/* Of NVLink, where a GPU has it: half of what the modules of a generation have in all (V100, A100, H100: 150, 300, 450
 * GB/s a way), as bridges between cards have fewer links than switches. */
static double usual_linked_bps(int major)
{
    return 0.5 * (major >= 9 ? 450e9 : major == 8 ? 300e9 : 150e9);
}

/* Operations of a tensor core, for each of a float32 lane (sheets of the A100, H100 and RTX GPUs). */
static double rounded_gain(const gs_cuda *c)
{
    const bool large = c->major >= 9 || (c->major == 8 && c->minor == 0);
    const double tf32 = c->major < 8 ? 1 : large ? 8 : 2;
    return c->compute_type == GS_CUBLAS_COMPUTE_TF32   ? tf32
           : c->compute_type == GS_CUBLAS_COMPUTE_BF16 ? (c->major < 8 ? 1 : 2 * tf32)
                                                       : 1;
}

bool gs_cuda_speed(const void *context, gs_gpu_speed *out)
{
    const gs_cuda *const c = context;
    const double lanes = c->major == 7 || (c->major == 8 && c->minor == 0) ? 64 : 128; /* of a processor */
    char place[GS_DEVICE_PLACE_BYTES], folder[64];

    gs_cuda_bus_place(c, place);
    for (char *at = place; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    snprintf(folder, sizeof(folder), "/sys/bus/pci/devices/%s", place);
    *out = (gs_gpu_speed){
        .memory_bps = 2 * attribute(c, GS_CU_MEMORY_CLOCK) * 1e3 * attribute(c, GS_CU_MEMORY_BITS) / 8,
        .lane_ops = lanes * attribute(c, GS_CU_PROCESSORS) * attribute(c, GS_CU_CLOCK) * 1e3,
        .host_bps = gs_cuda_pcie_bps(folder),
        .linked_bps = usual_linked_bps(c->major),
    };
    out->rounding = c->compute_type == GS_CUBLAS_COMPUTE_TF32 ? 1 : c->compute_type == GS_CUBLAS_COMPUTE_BF16 ? 2 : 0;
    out->product_flops = 2 * out->lane_ops * rounded_gain(c);
    if (!(out->host_bps > 0))
        out->host_bps = usual_pcie_bps(c->major);
    return out->memory_bps > 0 && out->lane_ops > 0;
}
