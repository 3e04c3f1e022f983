/* mpi_log.c - a library to preload: adds to the file $MPI_LOG how many types a rank had MPI make, and how
 * often it measured the network: by messages of 256 KiB. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* As in MPI, whatever a type and a communicator are there. */
int MPI_Type_commit(void *type);

static int types, measured;

int MPI_Type_commit(void *type)
{
    int (*real)(void *);
    *(void **)&real = dlsym(RTLD_DEFAULT, "PMPI_Type_commit");
    types++;
    return real(type);
}

int MPI_Send_init(const void *from, int count, void *type, int rank, int tag, void *channel, void *request);

int MPI_Send_init(const void *from, int count, void *type, int rank, int tag, void *channel, void *request)
{
    int (*real)(const void *, int, void *, int, int, void *, void *);
    *(void **)&real = dlsym(RTLD_DEFAULT, "PMPI_Send_init");
    measured += count == 1 << 18;
    return real(from, count, type, rank, tag, channel, request);
}

/* Not in MPI_Finalize(), which not every launcher asks of a rank. */
__attribute__((destructor)) static void tell(void)
{
    const char *const path = getenv("MPI_LOG");
    FILE *const log = path != NULL ? fopen(path, "a") : NULL;

    if (log == NULL)
        return;
    fprintf(log, "%d %d\n", types, measured);
    (void)fclose(log);
}
