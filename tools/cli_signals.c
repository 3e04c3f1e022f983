/* cli_signals.c - what ends the program from outside: signals, and memory that is short inside a C++ library. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "cli.h"

/* ---- signals ------------------------------------------------------------- */

#define STACK_BYTES ((size_t)256 * 1024)
#define SAME_SECONDS 0.5 /* timeout(1) sends its signal to the process and to its group */

static volatile int stop_flag;

/* By the signal itself, as whoever waits for the program expects. A terminal that takes no text must not keep it
 * alive. */
static void end_by(int number)
{
    static const char words[] =
        "gnnstream: interrupted again: ended at once; what was being written may be left unfinished\n";
    sigset_t open;

    signal(number, SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    sigemptyset(&open);
    sigaddset(&open, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &open, NULL);
    alarm(1);
    const ssize_t written = write(STDERR_FILENO, words, sizeof(words) - 1);
    (void)written;
    sigaddset(&open, number);
    pthread_sigmask(SIG_UNBLOCK, &open, NULL);
    raise(number);
}

static void *wait_for_signals(void *asked)
{
    int first = 0, number;
    double began = 0;

    pthread_setname_np(pthread_self(), "signals");
    for (;;) {
        if (sigwait(asked, &number) != 0)
            continue;
        if (first == 0) {
            first = number;
            began = cli_now();
            stop_flag = 1;
        } else if (number != first || cli_now() - began > SAME_SECONDS) {
            end_by(number);
        }
    }
    return NULL;
}

/* Sent by others, or by a library that gives up. On a working thread it may write over its data, which nobody reads any
 * more. */
static void on_abort(int number)
{
    static const char words[] =
        "gnnstream: aborted (SIGABRT), from outside or by a library; what was being written may be left unfinished\n";
    const ssize_t written = write(STDERR_FILENO, words, sizeof(words) - 1);
    (void)written;
    raise(number);
}

void cli_signals_prepare(void)
{
    const struct sigaction abort_once = {.sa_handler = on_abort, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (sigaction(SIGABRT, NULL, &before) == 0 && before.sa_handler == SIG_DFL) /* tests have their own */
        sigaction(SIGABRT, &abort_once, NULL);
}

const volatile int *cli_stop(void)
{
    static sigset_t asked; /* the thread's, for as long as the program runs */
    struct sigaction hangup;
    pthread_attr_t attr;
    pthread_t thread;

    sigemptyset(&asked);
    sigaddset(&asked, SIGINT);
    sigaddset(&asked, SIGTERM);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* nohup(1) has it ignored */
        sigaddset(&asked, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &asked, NULL);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    if (pthread_create(&thread, &attr, wait_for_signals, &asked) != 0)
        pthread_sigmask(SIG_UNBLOCK, &asked, NULL); /* then they end the program as they would any other */
    pthread_attr_destroy(&attr);
    return &stop_flag;
}

/* ---- memory that ends ---------------------------------------------------- */

/* Memory that ends inside a C++ library ends the program in one line.
 *
 * oneDNN makes its code at run time with operator new. What that throws where memory is short finds no C function that
 * could catch it: the program would abort in the words of the C++ runtime. Its new-handler, which is asked before, is
 * found by name, as no header of C has it; a program without libstdc++ needs none.
 *
 * For the code itself oneDNN maps memory, and where it gets none it calls, or writes, at address 0 (2.6 does not look).
 * Such a fault ends the program with the line, too; any other fault is left to what would have come of it.
 */

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
