/* cli_start.c - where the program starts; all else is in a library that tests link, too. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli.h"

#define SPINS "1000"
#define STACK_BYTES (2048u * 1024)
#define STACK_LEAST (256u * 1024)

/* OpenMP's threads spin at barriers by default for milliseconds, which on a machine that does anything
 * else beside costs up to ten times the work itself (measured: 37 s an epoch for 6). Not at all is no better
 * where a launch takes as long as waking a thread (12.5 ms an epoch for 10). SPINS take some 15 us.
 * The runtime reads its settings when it is loaded, so they must be there before:
 * the program starts itself again, unless the user chose. */
static void wait_with_little_spinning(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") != NULL || getenv("GOMP_SPINCOUNT") != NULL)
        return;
    if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0 && setenv("GOMP_SPINCOUNT", SPINS, 1) == 0)
        execv("/proc/self/exe", argv); /* where that fails, spinning is merely slower */
}

/* Kernels have blocks of some 64 KiB on their threads' stacks, and plans of deep models are made with as much. Threads
 * are made as ulimit -s says, which need not be: they get what they need. The first one has what the limit allows,
 * which the program raises where it may. False, said in a line: that is too little. */
static bool has_stack(void)
{
    struct rlimit most;
    pthread_attr_t attr;

    if (getrlimit(RLIMIT_STACK, &most) != 0 || most.rlim_cur >= STACK_BYTES)
        return true;
    most.rlim_cur = most.rlim_max < STACK_BYTES ? most.rlim_max : STACK_BYTES;
    setrlimit(RLIMIT_STACK, &most);
    if (most.rlim_cur < STACK_LEAST) {
        fprintf(stderr, "gnnstream: the stack is limited to %lu KiB, and %u are needed; raise it: ulimit -s %u\n",
                most.rlim_cur / 1024, STACK_LEAST / 1024, STACK_BYTES / 1024);
        return false;
    }
    if (pthread_attr_init(&attr) == 0) {
        if (pthread_attr_setstacksize(&attr, STACK_BYTES) == 0)
            pthread_setattr_default_np(&attr);
        pthread_attr_destroy(&attr);
    }
    return true;
}

int main(int argc, char **argv)
{
    if (!has_stack())
        return CLI_FAILED;
    wait_with_little_spinning(argv);
    return cli_main(argc, argv);
}
