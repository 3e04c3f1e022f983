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

static bool is_cuda(const char *spec)
{
    return strcmp(spec, "cuda") == 0 || (strncmp(spec, "cuda:", 5) == 0 && is_number_list(spec + 5, true));
}

const char *gs_device_gpus_beside(const char *spec)
{
    return strncmp(spec, "cpu,", 4) == 0 && is_cuda(spec + 4) ? spec + 4 : NULL;
}

/* NULL: this build does not have it. */
static const gs_device_kind *find_kind(const char *word)
{
    for (uint32_t k = 0; k < gs_device__kind_count; k++)
        if (strcmp(gs_device__kinds[k]->word, word) == 0)
            return gs_device__kinds[k];
    return NULL;
}

static gs_status open_cpu(const gs_device_ops **ops, void **context, unsigned threads)
{
    return find_kind("cpu")->open(ops, context, &(gs_device_choice){.threads = threads});
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
    const char *const beside = gs_device_gpus_beside(spec);
    if (beside != NULL)
        return 1 + GS_MAX(gs_device_count(beside), 1);
    if (strncmp(spec, "cuda:", 5) == 0 && is_number_list(spec + 5, true)) {
        uint32_t numbers = 1;
        for (const char *comma = strchr(spec, ','); comma != NULL; comma = strchr(comma + 1, ','))
            numbers++;
        return numbers > 1 ? numbers : 0;
    }
    if (strncmp(spec, "cpu:", 4) != 0 || !is_number_list(spec + 4, false))
        return 0;
    if (strlen(spec + 4) > 4)
        return UINT32_MAX;
    return (uint32_t)strtoul(spec + 4, NULL, 10);
}

/* One of N has its share of the threads. */
static gs_status open_share(const gs_device_ops **ops, void **context, const gs_device_config *config)
{
    const uint32_t devices = gs_device_count(config->spec);
    const unsigned threads = config->threads != 0 ? config->threads : gs_machine_cpus();
    if (devices == 0 || devices > GS_DEVICE_COUNT_MOST)
        return gs_fail(GS_EINVAL, "device %s: must be cpu:1 to cpu:%u", config->spec, GS_DEVICE_COUNT_MOST);
    return open_cpu(ops, context, GS_MAX(threads / devices, 1));
}

gs_status gs_device__find(const gs_device_ops **ops, void **context, const gs_device_config *config)
{
    const char *const spec = config->spec;
    if (strcmp(spec, "cpu") == 0)
        return open_cpu(ops, context, config->threads);
    if (strncmp(spec, "cpu:", 4) == 0 && is_number_list(spec + 4, false))
        return open_share(ops, context, config);
    if ((is_cuda(spec) || gs_device_gpus_beside(spec) != NULL) && gs_device_count(spec) > GS_DEVICE_COUNT_MOST)
        return gs_fail(GS_EINVAL, "device %s: at most %u devices can run together", spec, GS_DEVICE_COUNT_MOST);
    if (is_cuda(spec))
        return open_cuda(ops, context, config, spec, config->index);
    if (gs_device_gpus_beside(spec) != NULL)
        return config->index == 0 ? open_cpu(ops, context, config->threads)
                                  : open_cuda(ops, context, config, gs_device_gpus_beside(spec), config->index - 1);
    return gs_fail(GS_EINVAL, "device \"%s\" is not known; use \"cpu\", \"cpu:N\", \"cuda\" or \"cpu,cuda:N\"", spec);
}
