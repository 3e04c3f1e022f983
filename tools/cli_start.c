/* cli_start.c - where the program starts; all else is in a library that tests link, too. */
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"

#define SPINS "1000"

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

int main(int argc, char **argv)
{
    wait_with_little_spinning(argv);
    return cli_main(argc, argv);
}
