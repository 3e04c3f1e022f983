/* mpi_log.c - a library to preload: adds to the file $MPI_LOG how many types a rank had MPI make. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* As in MPI, whatever a type is there. */
int MPI_Type_commit(void *type);
int MPI_Finalize(void);

static int types;

int MPI_Type_commit(void *type)
{
    int (*real)(void *);
    *(void **)&real = dlsym(RTLD_DEFAULT, "PMPI_Type_commit");
    types++;
    return real(type);
}

int MPI_Finalize(void)
{
    int (*real)(void);
    FILE *const log = fopen(getenv("MPI_LOG"), "a");

    *(void **)&real = dlsym(RTLD_DEFAULT, "PMPI_Finalize");
    if (log != NULL) {
        fprintf(log, "%d\n", types);
        (void)fclose(log);
    }
    return real();
}
