/* cli_memory.c - memory that ends inside a C++ library ends the program in one line.
 *
 * oneDNN makes its code at run time with operator new. What that throws where memory is short finds no C function that
 * could catch it: the program would abort in the words of the C++ runtime. Its new-handler, which is asked before, is
 * found by name, as no header of C has it; a program without libstdc++ needs none.
 *
 * For the code itself oneDNN maps memory, and where it gets none it calls, or writes, at address 0 (2.6 does not look).
 * Such a fault ends the program with the line, too; any other fault is left to what would have come of it.
 */
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "cli.h"

#define RESERVE_BYTES ((size_t)512 * 1024) /* more than oneDNN makes of a kind of product */
#define NEAR_ZERO ((uintptr_t)1 << 20)     /* addresses within what oneDNN takes to be its new code */
#define MOST_PIECES 4

static const char words[] = "gnnstream: out of memory in the library that multiplies matrices; "
                            "free some, or raise what limits this program's (ulimit -v, a container)\n";

static void end(void)
{
    const ssize_t written = write(STDERR_FILENO, words, sizeof(words) - 1);
    (void)written;
    _exit(CLI_FAILED);
}

/* ---- operator new -------------------------------------------------------- */

static _Atomic(void *) reserve;

/* Called when operator new has failed; it tries again when this returns. */
static void out_of_memory(void)
{
    void *const kept = atomic_exchange(&reserve, NULL);
    if (kept != NULL)
        free(kept);
    else
        end();
}

static void watch_new(void)
{
    typedef void handler(void);
    handler *(*set)(handler *);
    void *const found = dlsym(RTLD_DEFAULT, "_ZSt15set_new_handlerPFvvE");
    if (found == NULL)
        return;
    memcpy(&set, &found, sizeof(set)); /* C has no cast from an object's pointer to a function's */
    free(atomic_exchange(&reserve, malloc(RESERVE_BYTES)));
    set(out_of_memory);
}

/* ---- memory for code ----------------------------------------------------- */

#if defined(__x86_64__)

/* Where oneDNN's own code is. */
static struct {
    uintptr_t from, to;
} piece[MOST_PIECES];
static int pieces;

static int note_pieces(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    for (int i = 0; strstr(info->dlpi_name, "libdnnl") != NULL && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const h = &info->dlpi_phdr[i];
        if (h->p_type != PT_LOAD || (h->p_flags & PF_X) == 0 || pieces == MOST_PIECES)
            continue;
        piece[pieces].from = info->dlpi_addr + h->p_vaddr;
        piece[pieces++].to = info->dlpi_addr + h->p_vaddr + h->p_memsz;
    }
    return 0;
}

static bool is_in_library(uintptr_t at)
{
    for (int i = 0; i < pieces; i++)
        if (at >= piece[i].from && at < piece[i].to)
            return true;
    return false;
}

static struct sigaction before;
static bool watching;

/* Where it returns, the same instruction faults again, as before. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    const ucontext_t *const u = context;
    const uintptr_t at = (uintptr_t)u->uc_mcontext.gregs[REG_RIP], address = (uintptr_t)info->si_addr;

    /* a call of nothing leaves the address to return to on the stack */
    if (address < NEAR_ZERO &&
        (is_in_library(at) || (at < NEAR_ZERO && is_in_library(*(const uintptr_t *)u->uc_mcontext.gregs[REG_RSP]))))
        end();
    sigaction(number, &before, NULL);
}

static void watch_code(void)
{
    const struct sigaction own = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

    if (watching) /* tests call many commands in one process */
        return;
    dl_iterate_phdr(note_pieces, NULL);
    watching = pieces > 0 && sigaction(SIGSEGV, &own, &before) == 0;
}

#else

static void watch_code(void) {}

#endif

void cli_memory_prepare(void)
{
    watch_new();
    watch_code();
}
