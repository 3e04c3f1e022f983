/* direct_reads.c - tries a device's own reads on the files, or the folder, that a run would have it read. */
#include "session/direct_reads.h"

#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/option_table.h"
#include "base/temporary.h"
#include "session/session.h"

/* Whoever asked for it is told why not. */
static void give_up(gs_session *s, const char *why)
{
    s->machine.direct.possible = false;
    if (gs_choice(s->config.options, disk_to_device) != GS_DIRECT_YES)
        why = "";
    snprintf(s->machine.direct.why, sizeof(s->machine.direct.why), "%s", why);
}

static gs_status probe_store(const gs_session *s)
{
    gs_status st = GS_OK;
    for (uint32_t d = 0; d < 2 && st == GS_OK; d++) {
        char *const path = gs_store_edges_path(s->store, (gs_direction)d);
        st = path == NULL ? gs_fail(GS_ENOMEM, "out of memory") : gs_device_probe_reads(s->machine.device[0], path);
        gs_free(path);
    }
    return st;
}

void gs_session_find_direct(gs_session *s)
{
    const int wish = gs_choice(s->config.options, disk_to_device);

    s->machine.direct = (gs_session_direct){.possible = false};
    if (wish == GS_DIRECT_NO ||
        (wish == GS_DIRECT_AUTO && s->machine.cost.source[GS_WORK_FROM_DISK] == GS_COST_DEFAULT))
        return;
    if (s->machine.devices != 1 || !gs_session_has_memories(s))
        give_up(s, "it is for one device that has memory of its own: .device cuda, or cuda:N");
    else if (s->config.batch != NULL)
        give_up(s, "it is for chunks of the whole graph, and batches have none");
    else if (probe_store(s) != GS_OK)
        give_up(s, gs_last_error());
    else
        s->machine.direct.possible = true;
}

/* A file without a name has one in /proc. */
static gs_status probe_folder(const gs_session *s, const char *dir)
{
    char path[64], why[GS_ERROR_BYTES];
    int fd = -1;
    gs_status st = gs_unnamed_file(&fd, dir);

    if (st != GS_OK)
        return st;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    st = gs_device_probe_reads(s->machine.device[0], path);
    (void)close(fd);
    if (st == GS_OK)
        return st;
    snprintf(why, sizeof(why), "%s", gs_last_error());
    return gs_fail(st, "%s: no file there: %.300s", dir, why);
}

void gs_session_find_direct_scratch(gs_session *s)
{
    if (s->machine.direct.possible && s->edges.sets > 2 && probe_folder(s, gs_session_scratch_dir(s)) != GS_OK)
        give_up(s, gs_last_error());
}
