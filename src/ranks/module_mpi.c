/* module_mpi.c - the module that calls MPI. */
#include <mpi.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks/module.h"

/* Lengths in MPI's calls are ints. */
#define PIECE_MOST (1ull << 30)
#define HYDRA_MS 3000 /* for a byte of the launcher's answer */

static MPI_Comm channel_of[GS_RANKS_CHANNELS], meetings, machine;
static bool owns; /* MPI was not there before: Python's mpi4py may have begun it */

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t) && sizeof(MPI_Datatype) <= sizeof(uint64_t),
               "a message has room for MPI's handles");

static uint64_t word(const void *handle, size_t bytes)
{
    uint64_t x = 0;
    memcpy(&x, handle, bytes);
    return x;
}

static int open_communicators(void)
{
    int error = MPI_Comm_dup(MPI_COMM_WORLD, &meetings);
    for (int k = 0; k < GS_RANKS_CHANNELS && error == MPI_SUCCESS; k++)
        error = MPI_Comm_dup(MPI_COMM_WORLD, &channel_of[k]);
    if (error == MPI_SUCCESS)
        error = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    for (int k = 0; k < GS_RANKS_CHANNELS && error == MPI_SUCCESS; k++)
        error = MPI_Comm_set_errhandler(channel_of[k], MPI_ERRORS_RETURN);
    return error != MPI_SUCCESS ? error : MPI_Comm_set_errhandler(meetings, MPI_ERRORS_RETURN);
}

static int mpi_open(uint32_t *self, uint32_t *count, uint32_t here[2], bool *threads)
{
    int begun = 0, level = 0, rank = 0, size = 0, of_machine[2] = {0, 0};
    int error = MPI_Initialized(&begun);

    owns = !begun;
    if (error == MPI_SUCCESS)
        error = begun ? MPI_Query_thread(&level) : MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    if (error == MPI_SUCCESS)
        error = open_communicators();
    if (error != MPI_SUCCESS || (error = MPI_Comm_rank(meetings, &rank)) != MPI_SUCCESS ||
        (error = MPI_Comm_size(meetings, &size)) != MPI_SUCCESS ||
        (error = MPI_Comm_rank(machine, &of_machine[0])) != MPI_SUCCESS ||
        (error = MPI_Comm_size(machine, &of_machine[1])) != MPI_SUCCESS)
        return error;
    *self = (uint32_t)rank;
    *count = (uint32_t)size;
    here[0] = (uint32_t)of_machine[0];
    here[1] = (uint32_t)of_machine[1];
    *threads = level == MPI_THREAD_MULTIPLE;
    return MPI_SUCCESS;
}

/* MPICH started by its own launcher, which talks to it by PMI's lines of text, of version 1. */
static bool is_hydra(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;

    return getenv("HYDI_CONTROL_FD") != NULL && getenv("PMI_FD") != NULL &&
           MPI_Get_library_version(version, &length) == MPI_SUCCESS && strncmp(version, "MPICH ", 6) == 0 &&
           strstr(version, "with-pmi=") == NULL;
}

/* Sends Hydra a line, and reads until one begins with `answer`. False: none came in time. */
static bool ask_hydra(int fd, const char *line, const char *answer)
{
    const size_t length = strlen(line);
    char text[128];
    size_t got = 0;

    if (write(fd, line, length) != (ssize_t)length)
        return false;
    while (got < sizeof(text)) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        if (poll(&one, 1, HYDRA_MS) <= 0 || read(fd, text + got, 1) != 1) /* byte by byte: no more than is answered */
            return false;
        if (text[got++] != '\n')
            continue;
        if (strncmp(text, answer, strlen(answer)) == 0)
            return true;
        got = 0;
    }
    return false;
}

/* Tells Hydra what MPI_Finalize() tells it, without which it takes a process that ends for one that failed, and kills
 * the others. Before that all wait for all, by way of Hydra: no connection goes while another rank looks at it. */
static bool leave_hydra(void)
{
    const int fd = atoi(getenv("PMI_FD"));

    (void)ask_hydra(fd, "cmd=barrier_in\n", "cmd=barrier_out");
    return ask_hydra(fd, "cmd=finalize\n", "cmd=finalize_ack");
}

/* All ranks have said that nothing is under way. MPICH's MPI_Finalize() over UCX's TCP may still wait for ever, so
 * under Hydra the launcher alone is told; what MPI holds goes with the process. Open MPI's wants MPI_Finalize(). */
static int mpi_close(void)
{
    if (!owns || (is_hydra() && leave_hydra()))
        return MPI_SUCCESS;
    return MPI_Finalize();
}

static void mpi_abort(void)
{
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* A type of all pieces. */
static int make_type(MPI_Datatype *type, const gs_ranks_piece *piece, uint32_t pieces)
{
    uint64_t blocks = 0, n = 0;
    for (uint32_t k = 0; k < pieces; k++)
        blocks += (piece[k].bytes + PIECE_MOST - 1) / PIECE_MOST;
    int *const length = malloc((blocks + 1) * sizeof(*length));
    MPI_Aint *const at = malloc((blocks + 1) * sizeof(*at));
    int error = length == NULL || at == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;

    for (uint32_t k = 0; k < pieces && error == MPI_SUCCESS; k++)
        for (uint64_t done = 0; done < piece[k].bytes; done += (uint64_t)length[n++]) {
            const uint64_t left = piece[k].bytes - done;
            length[n] = (int)(left < PIECE_MOST ? left : PIECE_MOST);
            at[n] = (MPI_Aint)(piece[k].offset + done);
        }
    if (error == MPI_SUCCESS)
        error = MPI_Type_create_hindexed((int)n, length, at, MPI_BYTE, type);
    if (error == MPI_SUCCESS)
        error = MPI_Type_commit(type);
    free(length);
    free(at);
    return error;
}

static int make_request(MPI_Request *request, int channel, bool send, uint32_t rank, void *memory, int count,
                        MPI_Datatype type)
{
    return send ? MPI_Send_init(memory, count, type, (int)rank, 0, channel_of[channel], request)
                : MPI_Recv_init(memory, count, type, (int)rank, 0, channel_of[channel], request);
}

static int mpi_make(gs_ranks_message *m, int channel, bool send, uint32_t rank, void *memory,
                    const gs_ranks_piece *piece, uint32_t pieces)
{
    const bool plain = pieces == 1 && piece->bytes <= PIECE_MOST;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype type = MPI_BYTE;
    int error = MPI_SUCCESS;

    if (plain)
        error = make_request(&request, channel, send, rank, (char *)memory + piece->offset, (int)piece->bytes, type);
    else if ((error = make_type(&type, piece, pieces)) == MPI_SUCCESS) {
        error = make_request(&request, channel, send, rank, memory, 1, type);
        (void)MPI_Type_free(&type); /* which goes with the request */
    }
    m->request = word(&request, sizeof(request));
    return error;
}

static int mpi_begin(gs_ranks_message *m)
{
    MPI_Request request;
    memcpy(&request, &m->request, sizeof(request));
    return MPI_Start(&request);
}

static int mpi_share(gs_ranks_message *m, void *x, uint32_t bytes, uint32_t from)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = MPI_Ibcast(x, (int)bytes, MPI_BYTE, (int)from, meetings, &request);
    m->request = word(&request, sizeof(request));
    return error;
}

static int mpi_test(gs_ranks_message *m, bool *done)
{
    MPI_Request request;
    int over = 0;

    memcpy(&request, &m->request, sizeof(request));
    const int error = MPI_Test(&request, &over, MPI_STATUS_IGNORE);
    m->request = word(&request, sizeof(request));
    *done = over != 0;
    return error;
}

static int mpi_drop(gs_ranks_message *m)
{
    MPI_Request request;
    memcpy(&request, &m->request, sizeof(request));
    return MPI_Request_free(&request);
}

static void mpi_explain(int error, char *text, uint32_t bytes)
{
    char all[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, all, &length);
    all[strcspn(all, "\n")] = '\0';
    snprintf(text, bytes, "%s", all);
}

extern const gs_ranks_module gs_ranks_module_table;
__attribute__((visibility("default"))) const gs_ranks_module gs_ranks_module_table = {
    .open = mpi_open,
    .close = mpi_close,
    .abort = mpi_abort,
    .make = mpi_make,
    .begin = mpi_begin,
    .share = mpi_share,
    .test = mpi_test,
    .drop = mpi_drop,
    .explain = mpi_explain,
};
