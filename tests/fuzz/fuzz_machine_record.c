/* What is known of a machine, from a file of any bytes, gives a cost model whose every number can be computed with.
 *
 * Input: the record's file, in which @MACHINE stands for this machine's name: a record of another one is as good as
 * none. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "cost/cost.h"
#include "fuzz.h"

#define DEVICE "cpu"
#define MARK "@MACHINE"

static char record_file[512], machine[256];

/* `record_file` and `machine` from a record that is saved. */
static void find_names(void)
{
    gs_cost_record r;
    char command[600], *text = NULL;
    uint64_t bytes;
    memset(&r, 0, sizeof(r));
    if (setenv("XDG_CACHE_HOME", gs_fuzz_folder(), 1) != 0 || gs_cost_record_save(&r, DEVICE) != GS_OK)
        abort();
    snprintf(command, sizeof(command), "ls %s/gnnstream/machine-*.json", gs_fuzz_folder());
    FILE *const p = popen(command, "r");
    if (p == NULL || fgets(record_file, sizeof(record_file), p) == NULL)
        abort();
    pclose(p);
    record_file[strcspn(record_file, "\n")] = '\0';
    if (gs_file_read_all(&text, &bytes, record_file, 1 << 20) != GS_OK)
        abort();
    const char *const at = strstr(text, "\"machine\":\t\"") + strlen("\"machine\":\t\"");
    snprintf(machine, sizeof(machine), "%.*s", (int)strcspn(at, "\""), at);
    gs_free(text);
}

static void write_record(const uint8_t *data, size_t size)
{
    char *const whole = malloc(size + sizeof(machine));
    const uint8_t *const mark = size > 0 ? memmem(data, size, MARK, strlen(MARK)) : NULL;
    size_t n = mark == NULL ? size : (size_t)(mark - data);
    if (whole == NULL)
        abort();
    memcpy(whole, data, n);
    if (mark != NULL) {
        const size_t after = size - n - strlen(MARK);
        memcpy(whole + n, machine, strlen(machine));
        n += strlen(machine);
        memcpy(whole + n, mark + strlen(MARK), after);
        n += after;
    }
    gs_fuzz_file(record_file + strlen(gs_fuzz_folder()) + 1, whole, n);
    free(whole);
}

static void check_cost(const gs_cost *c)
{
    for (int k = 0; k < GS_WORK_KINDS; k++)
        for (int a = 0; a < GS_WORK_AMOUNTS; a++)
            gs_fuzz_require(isfinite(c->seconds[k][a]) && c->seconds[k][a] >= 0, "seconds are finite, not below 0");
    gs_fuzz_require(isfinite(c->read_bps) && c->read_bps > 0 && isfinite(c->write_bps) && c->write_bps > 0,
                    "the disk moves bytes");
    gs_fuzz_require(isfinite(c->request_seconds) && c->request_seconds >= 0 && isfinite(c->latency_seconds) &&
                        c->latency_seconds >= 0,
                    "a request takes a time");
    for (int w = 0; w < GS_LINK_WAYS; w++) {
        const gs_link l = gs_cost_link(c, (gs_link_way)w);
        gs_fuzz_require(isfinite(l.bps) && l.bps >= 0 && isfinite(l.request_seconds) && l.request_seconds >= 0,
                        "links have a speed");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const gs_cost_record none;
    gs_cost_record r;
    gs_cost c;
    if (machine[0] == '\0')
        find_names();
    write_record(data, size);
    memset(&r, 0xEE, sizeof(r));
    gs_cost_record_load(&r, DEVICE);
    /* Nothing is said of a record that is not taken: one of the defaults is in its place. */
    gs_fuzz_judge(memcmp(&r, &none, sizeof(r)) != 0 ? GS_OK : gs_fail(GS_EFORMAT, "no record"));
    gs_cost_from_record(&c, &r, 2, NULL);
    check_cost(&c);
    return 0;
}

/* 0: nothing measured; 1: all there is. */
size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    gs_cost_record r;
    char *text = NULL, *at;
    uint64_t bytes;
    if (k > 1)
        return 0;
    if (machine[0] == '\0')
        find_names();
    memset(&r, 0, sizeof(r));
    if (k == 1) {
        r.read_bps = 2e9;
        r.write_bps = 1e9;
        r.slower_sum = 0.3;
        r.slower_weight = 2;
        for (int i = 0; i < GS_WORK_KINDS; i++) {
            r.fit.tasks[i] = 100;
            for (int j = 0; j < GS_WORK_AMOUNTS; j++) {
                r.fit.product[i][j] = 0.25 * (i + 1) / (j + 1);
                for (int l = 0; l < GS_WORK_AMOUNTS; l++)
                    r.fit.square[i][j][l] = i + j + l;
            }
        }
        r.limits.found.disk_read_bps = r.limits.found.disk_write_bps = r.limits.found.copy_bps = 3e9;
    }
    if (gs_cost_record_save(&r, DEVICE) != GS_OK || gs_file_read_all(&text, &bytes, record_file, capacity) != GS_OK ||
        (at = strstr(text, machine)) == NULL)
        abort();
    const size_t n = (size_t)snprintf((char *)data, capacity, "%.*s" MARK "%s", (int)(at - text), text,
                                      at + strlen(machine));
    gs_free(text);
    if (n >= capacity)
        abort();
    return n;
}
