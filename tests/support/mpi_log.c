/* mpi_log.c - a library to preload: adds to the file $MPI_LOG how many types a rank had MPI make. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* As in MPI, whatever a type is there. */
int MPI_Type_commit(void *type);

static int types;

int MPI_Type_commit(void *type)
{
    int (*real)(void *);
    *(void **)&real = dlsym(RTLD_DEFAULT, "PMPI_Type_commit");
    types++;
    return real(type);
}

/* Not in MPI_Finalize(), which not every launcher asks of a rank. */
__attribute__((destructor)) static void tell(void)
{
    const char *const path = getenv("MPI_LOG");
    FILE *const log = path != NULL ? fopen(path, "a") : NULL;

    if (log == NULL)
        return;
    fprintf(log, "%d\n", types);
    (void)fclose(log);
}
