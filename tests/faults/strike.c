#include "strike.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const class_name[CLASSES] = {
#define X(name) #name,
    CLASS_MAP(X)
#undef X
};


static const struct {
    const char *name;
    int kind;
} kinds[] = {
    {"EINTR", EINTR},   {"EAGAIN", EAGAIN}, {"EIO", EIO},         {"ENOSPC", ENOSPC}, {"EMFILE", EMFILE},
    {"ENOMEM", ENOMEM}, {"EACCES", EACCES}, {"EDQUOT", EDQUOT},   {"ENOENT", ENOENT}, {"ENOSYS", ENOSYS},
    {"EPERM", EPERM},   {"EBUSY", EBUSY},   {"short", KIND_SHORT}, {"torn", KIND_TORN}, {"late", KIND_LATE},
};

#define MOST_FRAMES 14

static atomic_bool armed;
static atomic_long count[CLASSES];
int strike_class = -1, strike_kind;
static long nth;
static bool lasting;
static atomic_bool struck;
static __thread bool inside; /* what this file itself calls is not the program's */

static void read_wish(void)
{
    char text[64];
    const char *const wish = getenv("GS_FAULT");
    if (wish == NULL || strlen(wish) >= sizeof(text))
        return;
    strcpy(text, wish);
    char *save, *const c = strtok_r(text, ":", &save), *const k = strtok_r(NULL, ":", &save);
    char *const n = strtok_r(NULL, ":", &save);
    for (int i = 0; c != NULL && i < CLASSES; i++)
        if (strcmp(c, class_name[i]) == 0)
            strike_class = i;
    for (size_t i = 0; k != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(k, kinds[i].name) == 0)
            strike_kind = kinds[i].kind;
    nth = n != NULL ? atol(n) : 0;
    lasting = strtok_r(NULL, ":", &save) != NULL;
    if (strike_class < 0 || strike_kind == 0 || nth < 1) {
        dprintf(2, "preload: GS_FAULT=%s: is not CLASS:KIND:N\n", wish);
        _exit(99);
    }
}

static int open_report(void)
{
    const char *const path = getenv("GS_FAULT_REPORT");
    return path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* At once: the program may not live to its end. */
static void report_hit(const char *function)
{
    void *frame[MOST_FRAMES];
    const int fd = open_report(), n = fd < 0 ? 0 : backtrace(frame, MOST_FRAMES);
    if (fd < 0)
        return;
    dprintf(fd, "hit %s", function);
    for (int i = 2; i < n; i++) { /* not this function, not strike() */
        Dl_info info;
        if (dladdr(frame[i], &info) == 0 || info.dli_fname == NULL)
            continue;
        const char *const slash = strrchr(info.dli_fname, '/');
        dprintf(fd, " %s+%lx", slash != NULL ? slash + 1 : info.dli_fname,
                (unsigned long)((char *)frame[i] - (char *)info.dli_fbase));
    }
    dprintf(fd, "\n");
    close(fd);
}

static void write_report(void)
{
    atomic_store(&armed, false);
    const int fd = open_report();
    for (int i = 0; fd >= 0 && i < CLASSES; i++)
        dprintf(fd, "%s %ld\n", class_name[i], atomic_load(&count[i]));
    if (fd >= 0)
        close(fd);
}

__attribute__((destructor)) static void at_end(void)
{
    write_report();
}

__attribute__((noinline)) int strike(class c, const char *function)
{
    if (!atomic_load_explicit(&armed, memory_order_relaxed) || inside)
        return 0;
    const long n = atomic_fetch_add(&count[c], 1) + 1;
    if ((int)c != strike_class || (lasting ? n < nth : n != nth))
        return 0;
    if (!atomic_exchange(&struck, true)) {
        inside = true;
        report_hit(function);
        inside = false;
    }
    return strike_kind;
}

/* Code of libraries that have words or ends of their own where they have no memory. */
static struct {
    uintptr_t from, to;
} alien[16];
static int aliens;

static int note_alien(struct dl_phdr_info *info, size_t size, void *context)
{
    static const char *const names[] = {"libstdc++", "libdnnl", "libgomp", "libomp", "libmetis"};
    (void)size, (void)context;
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
        for (int i = 0; strstr(info->dlpi_name, names[k]) != NULL && i < info->dlpi_phnum; i++) {
            const ElfW(Phdr) *const h = &info->dlpi_phdr[i];
            if (h->p_type != PT_LOAD || (h->p_flags & PF_X) == 0 || aliens == 16)
                continue;
            alien[aliens].from = info->dlpi_addr + h->p_vaddr;
            alien[aliens++].to = info->dlpi_addr + h->p_vaddr + h->p_memsz;
        }
    return 0;
}

class strike_whose(class own, const void *caller)
{
    for (int i = 0; i < aliens; i++)
        if ((uintptr_t)caller >= alien[i].from && (uintptr_t)caller < alien[i].to)
            return own == CLASS_map ? CLASS_alien_map : CLASS_alien;
    return own;
}

void strike_begin(void)
{
    void *frame[1];
    backtrace(frame, 1); /* loads what it needs */
    dl_iterate_phdr(note_alien, NULL);
    read_wish();
    atomic_store(&armed, true);
}

void strike_end(void)
{
    atomic_store(&armed, false);
}
