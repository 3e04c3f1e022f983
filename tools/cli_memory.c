/* cli_memory.c - memory that ends inside a C++ library ends the program in one line.
 *
 * oneDNN makes its code at run time with operator new. What that throws where memory is short finds no C function that
 * could catch it: the program would abort in the words of the C++ runtime. Its new-handler, which is asked before, is
 * found by name, as no header of C has it; a program without libstdc++ needs none.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define RESERVE_BYTES ((size_t)512 * 1024) /* more than oneDNN makes of a kind of product */

static _Atomic(void *) reserve;

/* Called when operator new has failed; it tries again when this returns. */
static void out_of_memory(void)
{
    static const char words[] = "gnnstream: out of memory in the library that multiplies matrices; "
                                "free some, or raise what limits this program's (ulimit -v, a container)\n";
    void *const kept = atomic_exchange(&reserve, NULL);
    if (kept != NULL) {
        free(kept);
        return;
    }
    const ssize_t written = write(STDERR_FILENO, words, sizeof(words) - 1);
    (void)written;
    _exit(CLI_FAILED);
}

void cli_memory_prepare(void)
{
    typedef void handler(void);
    handler *(*set)(handler *);
    void *const found = dlsym(RTLD_DEFAULT, "_ZSt15set_new_handlerPFvvE");
    if (found == NULL)
        return;
    memcpy(&set, &found, sizeof(set)); /* C has no cast from an object's pointer to a function's */
    free(atomic_exchange(&reserve, malloc(RESERVE_BYTES))); /* tests call many commands in one process */
    set(out_of_memory);
}
