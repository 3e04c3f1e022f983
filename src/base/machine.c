/* Where the kernel says what is left: Documentation/admin-guide/cgroup-v1/memory.rst,
 * cgroup-v2.rst, and proc(5) for cgroup, mountinfo, meminfo and status.
 *
 * Everything here is advice for defaults: what cannot be read limits nothing. */
#include "base/machine.h"

#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"

#define TEXT_LIMIT (4 * GS_MIB)
#define NO_LIMIT UINT64_MAX

/* PATH's text, owned; NULL where it cannot be read. */
static char *read_text(const char *dir, const char *name)
{
    char path[PATH_MAX];
    char *text = NULL;
    uint64_t bytes;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
        return NULL;
    if (access(path, R_OK) != 0) /* not worth an error text: most of these files exist on some kernels only */
        return NULL;
    return gs_file_read_all(&text, &bytes, path, TEXT_LIMIT) == GS_OK ? text : NULL;
}

/* The number that follows `key` at the start of a line; false where there is none. */
static bool find_number(uint64_t *out, const char *text, const char *key)
{
    const size_t length = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, length) == 0) {
            const char *const p = line + length + strspn(line + length, " \t:");
            if (isdigit((unsigned char)*p)) {
                *out = strtoull(p, NULL, 10);
                return true;
            }
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return false;
}

static uint64_t file_number(const char *dir, const char *name, uint64_t missing)
{
    GS_FREED char *const text = read_text(dir, name);
    uint64_t value = missing;

    /* "max" of cgroup v2 and "-1" of v1 are no numbers, so they give `missing` */
    if (text != NULL)
        find_number(&value, text, "");
    return value;
}

/* One step up from the process's cgroup to the root of what is mounted. */
typedef void (*visit_fn)(const char *dir, bool v2, void *context);

/* Where the process is, by controller. */
typedef struct cgroup_place {
    char path[PATH_MAX]; /* within the hierarchy, "/..." */
    bool found;
} cgroup_place;

/* True where `word` is an item of the comma-separated list [list, end). */
static bool list_has(const char *list, const char *end, const char *word)
{
    const size_t length = strlen(word);
    for (const char *p = list; p < end;) {
        const char *const comma = memchr(p, ',', (size_t)(end - p));
        const char *const stop = comma != NULL ? comma : end;
        if ((size_t)(stop - p) == length && memcmp(p, word, length) == 0)
            return true;
        p = stop + 1;
    }
    return false;
}

/* Lines of /proc/self/cgroup: "ID:CONTROLLERS:PATH"; v2 is "0::PATH". */
static void find_place(cgroup_place *out, const char *cgroups, const char *controller, bool v2)
{
    out->found = false;
    for (const char *line = cgroups; line != NULL && *line != '\0';) {
        const char *const newline = strchr(line, '\n');
        const char *const end = newline != NULL ? newline : line + strlen(line);
        const char *const list = memchr(line, ':', (size_t)(end - line));
        const char *const path = list == NULL ? NULL : memchr(list + 1, ':', (size_t)(end - list - 1));

        line = newline != NULL ? newline + 1 : NULL;
        if (path == NULL || (size_t)(end - path) >= sizeof(out->path))
            continue;
        if (v2 ? path == list + 1 : list_has(list + 1, path, controller)) {
            memcpy(out->path, path + 1, (size_t)(end - path - 1));
            out->path[end - path - 1] = '\0';
            out->found = true;
            return;
        }
    }
}

/* mountinfo writes a blank within a name as \040. In place. */
static void decode_octal(char *s)
{
    char *to = s;
    for (; *s != '\0'; to++) {
        if (s[0] == '\\' && isdigit((unsigned char)s[1]) && isdigit((unsigned char)s[2]) &&
            isdigit((unsigned char)s[3])) {
            *to = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
            s += 4;
        } else {
            *to = *s++;
        }
    }
    *to = '\0';
}

/* Fields of a line of mountinfo that matter here; they point into the line. */
typedef struct mount_line {
    char *root, *point, *type, *options;
} mount_line;

/* "36 35 98:0 ROOT POINT rw,noatime [optional...] - TYPE SOURCE OPTIONS" */
static bool split_mount(mount_line *out, char *line)
{
    char *fields[6], *save = NULL, *tail = strstr(line, " - ");

    if (tail == NULL)
        return false;
    *tail = '\0';
    tail += 3;
    for (int i = 0; i < 6; i++)
        if ((fields[i] = strtok_r(i == 0 ? line : NULL, " ", &save)) == NULL)
            return false;
    out->root = fields[3];
    out->point = fields[4];
    out->type = strtok_r(tail, " ", &save);
    if (out->type == NULL || strtok_r(NULL, " ", &save) == NULL)
        return false;
    out->options = strtok_r(NULL, " ", &save);
    decode_octal(out->root);
    decode_octal(out->point);
    return out->options != NULL;
}

/* Calls `visit` for the process's own cgroup under this mount and every
 * ancestor that the mount shows. */
static void visit_upwards(const mount_line *m, const cgroup_place *place, bool v2, visit_fn visit, void *context)
{
    char dir[2 * PATH_MAX];
    const size_t root = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root), point = strlen(m->point);
    const bool inside = strncmp(place->path, m->root, root) == 0 &&
                        (place->path[root] == '/' || place->path[root] == '\0');

    /* A container without a cgroup namespace may see a path that its mount does
     * not have; the mount's top is then the nearest thing to its own group. */
    const char *const below = inside ? place->path + root : "";
    if (strstr(below, "/..") != NULL || (size_t)snprintf(dir, sizeof(dir), "%s%s", m->point, below) >= sizeof(dir))
        return;
    for (;;) {
        visit(dir, v2, context);
        char *const slash = strrchr(dir, '/');
        if (slash == NULL || (size_t)(slash - dir) < point || strlen(dir) <= point)
            return;
        *slash = '\0';
    }
}

/* Visits this process's groups of `controller` in both versions of cgroups. */
static void visit_cgroups(const char *proc, const char *controller, visit_fn visit, void *context)
{
    GS_FREED char *const cgroups = read_text(proc, "self/cgroup");
    GS_FREED char *const mounts = read_text(proc, "self/mountinfo");
    char *save = NULL;
    GS_FREED cgroup_place *const place = gs_calloc(2, sizeof(*place)); /* [v1, v2] */

    if (cgroups == NULL || mounts == NULL || place == NULL)
        return;
    find_place(&place[0], cgroups, controller, false);
    find_place(&place[1], cgroups, controller, true);
    for (char *line = strtok_r(mounts, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        mount_line m;
        if (!split_mount(&m, line))
            continue;
        const bool v2 = strcmp(m.type, "cgroup2") == 0;
        const bool v1 = strcmp(m.type, "cgroup") == 0 &&
                        list_has(m.options, m.options + strlen(m.options), controller);
        if ((v1 || v2) && place[v2].found)
            visit_upwards(&m, &place[v2], v2, visit, context);
    }
}

/* Memory that a cgroup leaves: its limit less what it uses, file cache apart,
 * which the kernel drops before it refuses memory (as MemAvailable counts it). */
static void visit_memory(const char *dir, bool v2, void *context)
{
    uint64_t *const left = context;
    uint64_t limit, usage, inactive = 0, active = 0;
    GS_FREED char *const stat = read_text(dir, "memory.stat");

    if (v2) {
        limit = GS_MIN(file_number(dir, "memory.max", NO_LIMIT), file_number(dir, "memory.high", NO_LIMIT));
        usage = file_number(dir, "memory.current", 0);
    } else {
        limit = file_number(dir, "memory.limit_in_bytes", NO_LIMIT);
        usage = file_number(dir, "memory.usage_in_bytes", 0);
    }
    if (stat != NULL) {
        uint64_t ancestors = NO_LIMIT; /* v1 tells the least of them, also of those no mount shows */
        if (!v2 && find_number(&ancestors, stat, "hierarchical_memory_limit"))
            limit = GS_MIN(limit, ancestors);
        find_number(&inactive, stat, v2 ? "inactive_file " : "total_inactive_file ");
        find_number(&active, stat, v2 ? "active_file " : "total_active_file ");
    }

    if (limit > INT64_MAX - 65536) /* v1 writes "none" as 2^63 less a page */
        return;
    const uint64_t cache = GS_MIN(inactive + active, usage);
    const uint64_t held = usage - cache;
    *left = GS_MIN(*left, limit > held ? limit - held : 0);
}

uint64_t gs_machine__free_memory(const char *proc)
{
    GS_FREED char *const meminfo = read_text(proc, "meminfo");
    uint64_t kib, left = NO_LIMIT;

    if (meminfo != NULL && (find_number(&kib, meminfo, "MemAvailable:") || find_number(&kib, meminfo, "MemFree:")))
        left = kib * GS_KIB;
    visit_cgroups(proc, "memory", visit_memory, &left);

    if (left == NO_LIMIT) { /* no /proc: what the C library knows */
        const long pages = sysconf(_SC_AVPHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
        left = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : 0;
    }
    return GS_MAX(left, GS_BLOCK_BYTES);
}

uint64_t gs_machine_free_memory(void) { return gs_machine__free_memory("/proc"); }

/* Called once per epoch and more often: no heap, one small file. */
static uint64_t own_status_bytes(const char *key)
{
    char text[8192];
    size_t used = 0;
    uint64_t kib = 0;
    const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    for (ssize_t n; used < sizeof(text) - 1 && (n = read(fd, text + used, sizeof(text) - 1 - used)) > 0;)
        used += (size_t)n;
    close(fd);
    text[used] = '\0';
    find_number(&kib, text, key);
    return kib * GS_KIB;
}

uint64_t gs_process_resident_bytes(void) { return own_status_bytes("VmRSS:"); }
uint64_t gs_process_peak_bytes(void) { return own_status_bytes("VmHWM:"); }

/* Training calls little or nothing of these once it has begun: they read compressed input and files of options, order
 * vertices and find GPUs, or oneDNN loads them. LIBRARY_ALLOWANCE has the pages that it does call. */
static const char *const idle_libraries[] = {
    "libisal.",  "libminizip.", "libmetis.",  "libyaml-",   "libz.",     "libzstd.",
    "libhwloc.", "libudev.",    "libOpenCL.", "libstdc++.", "libgcc_s.",
};

static bool is_idle(const char *path)
{
    for (size_t i = 0; i < sizeof(idle_libraries) / sizeof(idle_libraries[0]); i++)
        if (strncmp(gs_path_name(path), idle_libraries[i], strlen(idle_libraries[i])) == 0)
            return true;
    return false;
}

/* Were addresses written into its code? Then its pages are not what the file has. */
static bool has_text_relocations(const struct dl_phdr_info *o)
{
    for (size_t i = 0; i < o->dlpi_phnum; i++) {
        if (o->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *d = (const ElfW(Dyn) *)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr);
        for (; d->d_tag != DT_NULL; d++)
            if (d->d_tag == DT_TEXTREL || (d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_TEXTREL) != 0))
                return true;
    }
    return false;
}

static int drop_idle(struct dl_phdr_info *o, size_t bytes, void *context)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)bytes;
    (void)context;
    if (o->dlpi_name == NULL || !is_idle(o->dlpi_name) || has_text_relocations(o))
        return 0;
    for (size_t i = 0; i < o->dlpi_phnum; i++) {
        const ElfW(Phdr) *const h = &o->dlpi_phdr[i];
        const uintptr_t from = (o->dlpi_addr + h->p_vaddr + page - 1) / page * page;
        const uintptr_t to = (o->dlpi_addr + h->p_vaddr + h->p_filesz) / page * page;
        if (h->p_type == PT_LOAD && (h->p_flags & PF_W) == 0 && from < to)
            madvise((void *)from, to - from, MADV_DONTNEED); // NOLINT(performance-no-int-to-ptr)
    }
    return 0;
}

void gs_process_drop_idle_code(void) { dl_iterate_phdr(drop_idle, NULL); }

static void visit_cpu(const char *dir, bool v2, void *context)
{
    unsigned *const cpus = context;
    uint64_t quota = 0, period = 0;

    if (v2) { /* "QUOTA PERIOD" or "max PERIOD", microseconds */
        GS_FREED char *const text = read_text(dir, "cpu.max");
        char *end = NULL;
        if (text != NULL && isdigit((unsigned char)text[0])) {
            quota = strtoull(text, &end, 10);
            period = strtoull(end, NULL, 10);
        }
    } else {
        quota = file_number(dir, "cpu.cfs_quota_us", 0);
        period = file_number(dir, "cpu.cfs_period_us", 0);
    }
    if (quota == 0 || period == 0)
        return;
    const uint64_t allowed = gs_div_up(quota, period);
    if (allowed < *cpus)
        *cpus = (unsigned)allowed;
}

unsigned gs_machine__quota_cpus(const char *proc, unsigned most)
{
    visit_cgroups(proc, "cpu", visit_cpu, &most);
    return most;
}

void gs_processor_name(char out[GS_PROCESSOR_BYTES])
{
    char line[256];
    FILE *const f = fopen("/proc/cpuinfo", "re");

    snprintf(out, GS_PROCESSOR_BYTES, "unknown");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        const char *const colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL)
            continue;
        snprintf(out, GS_PROCESSOR_BYTES, "%.127s", colon + 1 + strspn(colon + 1, " \t"));
        out[strcspn(out, "\n")] = '\0';
        break;
    }
    if (f != NULL)
        fclose(f);
}

static unsigned quota_cpus;
static void read_quota(void) { quota_cpus = gs_machine__quota_cpus("/proc", UINT_MAX); }

unsigned gs_machine_cpus(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    unsigned cpus = 0;

    /* The kernel refuses a set smaller than the processors it knows. */
    for (int room = CPU_SETSIZE; cpus == 0 && room <= 1 << 20; room *= 2) {
        const size_t bytes = CPU_ALLOC_SIZE((size_t)room);
        cpu_set_t *const set = gs_calloc(1, bytes);
        if (set == NULL)
            break;
        if (sched_getaffinity(0, bytes, set) == 0)
            cpus = (unsigned)CPU_COUNT_S(bytes, set);
        gs_free(set);
    }
    pthread_once(&once, read_quota);
    return GS_MIN(GS_MAX(cpus, 1u), quota_cpus);
}

/* ---- load ---- */

#define LOAD_LEAST 0.5 /* seconds of processors */
#define STAT_COLUMNS 8 /* of "cpu" in /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal */

void gs_machine_load_now(gs_machine_load *out)
{
    GS_FREED char *const text = read_text("/proc", "stat");
    const double each = 1.0 / (double)sysconf(_SC_CLK_TCK);
    unsigned long long x[STAT_COLUMNS] = {0};
    struct timespec own = {0};

    *out = (gs_machine_load){0};
    if (text != NULL && sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &x[0], &x[1], &x[2], &x[3], &x[4],
                               &x[5], &x[6], &x[7]) == STAT_COLUMNS) {
        for (int i = 0; i < STAT_COLUMNS; i++)
            out->all += (double)x[i] * each;
        out->idle = (double)(x[3] + x[4]) * each;
    }
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) == 0)
        out->own = (double)own.tv_sec + 1e-9 * (double)own.tv_nsec;
}

double gs_machine_others(const gs_machine_load *from, const gs_machine_load *to)
{
    const double all = to->all - from->all, idle = to->idle - from->idle, own = to->own - from->own;
    const double others = from->all > 0 && all >= LOAD_LEAST ? (all - idle - own) / all : 0;
    return others < 0 ? 0 : others > 1 ? 1 : others;
}

/* ---- threads ----------------------------------------------------------- */

/* All of them are there at the same time: each waits for the lock that the caller has. */
static void *wait_for(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

static gs_status start_and_end(unsigned threads)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *const thread = gs_malloc_array(threads, sizeof(*thread));
    unsigned started = 0;
    int error = 0;

    GS_NEED(thread != NULL, "out of memory");
    pthread_mutex_lock(&lock);
    for (; error == 0 && started + 1 < threads; started += error == 0)
        error = pthread_create(&thread[started], NULL, wait_for, &lock);
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    gs_free(thread);
    if (error == 0)
        return GS_OK;
    return gs_fail(GS_ENOMEM,
                   "%u threads could not be had: %s; raise what limits this program's (ulimit -v or -u, a container)",
                   threads, strerror(error));
}

gs_status gs_threads_check(unsigned threads)
{
    static atomic_uint had; /* the most so far. Of two threads that write it, either's is true */
    const bool known = threads <= atomic_load_explicit(&had, memory_order_relaxed);
    const gs_status st = known ? GS_OK : start_and_end(threads);

    if (st == GS_OK && !known)
        atomic_store_explicit(&had, threads, memory_order_relaxed);
    return st;
}

gs_status gs_threads_begin(unsigned threads)
{
    atomic_uint there = 0;

    GS_TRY(start_and_end(threads));
#pragma omp parallel num_threads(threads)
    atomic_fetch_add_explicit(&there, 1, memory_order_relaxed);
    return GS_OK;
}
