/* The words that name devices, and which kind each stands for. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "base/size.h"
#include "device/device_table.h"

/* "3"; with commas allowed, "0,1,2" too. */
static bool is_number_list(const char *text, bool commas)
{
    bool after_digit = false;
    for (; *text != '\0'; text++) {
        const bool digit = *text >= '0' && *text <= '9';
        if (!digit && !(commas && after_digit && *text == ','))
            return false;
        after_digit = digit;
    }
    return after_digit;
}

gs_device_words gs_device_words_of(const char *spec)
{
    const bool beside = strncmp(spec, "cpu,", 4) == 0;
    const char *const gpus = beside ? spec + 4 : spec;

    if (strcmp(spec, "cpu") == 0)
        return GS_DEVICES_CPU;
    if (strcmp(gpus, "cuda") == 0 || (strncmp(gpus, "cuda:", 5) == 0 && is_number_list(gpus + 5, true)))
        return beside ? GS_DEVICES_BESIDE : strchr(gpus, ',') != NULL ? GS_DEVICES_GPUS : GS_DEVICES_GPU;
    return strncmp(spec, "cpu:", 4) == 0 && is_number_list(spec + 4, false) ? GS_DEVICES_PARTS : GS_DEVICES_UNKNOWN;
}

const char *gs_device_gpus_beside(const char *spec)
{
    return gs_device_words_of(spec) == GS_DEVICES_BESIDE ? spec + 4 : NULL;
}

/* NULL: this build does not have it. */
static const gs_device_kind *find_kind(const char *word)
{
    for (uint32_t k = 0; k < gs_device__kind_count; k++)
        if (strcmp(gs_device__kinds[k]->word, word) == 0)
            return gs_device__kinds[k];
    return NULL;
}

static gs_status open_cpu(const gs_device_ops **ops, void **context, unsigned threads, gs_matmul matmul)
{
    return find_kind("cpu")->open(ops, context, &(gs_device_choice){.threads = threads, .matmul = matmul});
}

/* The one of `gpus` that has this number in their list. */
static gs_status open_cuda(const gs_device_ops **ops, void **context, const gs_device_config *config, const char *gpus,
                           uint32_t index)
{
    const char *number = gpus[4] == ':' ? gpus + 5 : "0";
    for (uint32_t i = 0; i < index && strchr(number, ',') != NULL; i++)
        number = strchr(number, ',') + 1;
    if (strcspn(number, ",") > 3)
        return gs_fail(GS_EINVAL, "device %s: there are not so many GPUs", config->spec);
    const gs_device_kind *const cuda = find_kind("cuda");
    if (cuda == NULL)
        return gs_fail(GS_EUNSUPPORTED, "device %s: this build has no CUDA; use \"cpu\"", config->spec);
    const gs_device_choice choice = {.number = (unsigned)strtoul(number, NULL, 10), .matmul = config->matmul};
    return cuda->open(ops, context, &choice);
}

uint32_t gs_device_count(const char *spec)
{
    const gs_device_words words = gs_device_words_of(spec);
    uint32_t gpus = 1;

    if (words == GS_DEVICES_PARTS)
        return strlen(spec + 4) > 4 ? UINT32_MAX : (uint32_t)strtoul(spec + 4, NULL, 10);
    if (words != GS_DEVICES_GPUS && words != GS_DEVICES_BESIDE)
        return 0;
    for (const char *comma = strchr(spec, ','); comma != NULL; comma = strchr(comma + 1, ','))
        gpus++; /* one in front of the first; with processors, they are what is there */
    return gpus;
}

/* One of N has its share of the threads. */
static gs_status open_share(const gs_device_ops **ops, void **context, const gs_device_config *config)
{
    const uint32_t devices = gs_device_count(config->spec);
    const unsigned threads = config->threads != 0 ? config->threads : gs_machine_cpus();
    if (devices == 0 || devices > GS_DEVICE_COUNT_MOST)
        return gs_fail(GS_EINVAL, "device %s: must be cpu:1 to cpu:%u", config->spec, GS_DEVICE_COUNT_MOST);
    return open_cpu(ops, context, GS_MAX(threads / devices, 1), config->matmul);
}

gs_status gs_device__find(const gs_device_ops **ops, void **context, const gs_device_config *config)
{
    const char *const spec = config->spec;
    const gs_device_words words = gs_device_words_of(spec);

    if (words > GS_DEVICES_PARTS && gs_device_count(spec) > GS_DEVICE_COUNT_MOST)
        return gs_fail(GS_EINVAL, "device %s: at most %u devices can run together", spec, GS_DEVICE_COUNT_MOST);
    switch (words) {
    case GS_DEVICES_CPU:
        return open_cpu(ops, context, config->threads, config->matmul);
    case GS_DEVICES_PARTS:
        return open_share(ops, context, config);
    case GS_DEVICES_GPU:
    case GS_DEVICES_GPUS:
        return open_cuda(ops, context, config, spec, config->index);
    case GS_DEVICES_BESIDE:
        return config->index == 0 ? open_cpu(ops, context, config->threads, config->matmul)
                                  : open_cuda(ops, context, config, gs_device_gpus_beside(spec), config->index - 1);
    case GS_DEVICES_UNKNOWN:
        break;
    }
    return gs_fail(GS_EINVAL, "device \"%s\" is not known; use \"cpu\", \"cpu:N\", \"cuda\" or \"cpu,cuda:N\"", spec);
}
