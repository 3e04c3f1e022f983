#include "train/sections.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"

#define PIECE (256u << 10) /* bytes that are read at a time */

const char *gs_section_of_state(uint32_t run) { return run == 0 ? "exp_avg" : "exp_avg_sq"; }

char *gs_section_path(const char *dir, const char *name)
{
    char file[GS_CHECKPOINT_WORDS + sizeof(".safetensors")];
    snprintf(file, sizeof(file), "%s.safetensors", name);
    return gs_path_join(dir, file);
}

/* Checksum of the whole file, as it is read back. */
static gs_status sum_file(uint64_t *checksum, int fd, uint64_t bytes, const char *path)
{
    gs_hash_stream *const h = gs_hash_begin();
    char *const piece = gs_malloc(PIECE);
    gs_status st = h != NULL && piece != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: out of memory", path);

    for (uint64_t at = 0; at < bytes && st == GS_OK; at += PIECE) {
        const uint64_t n = GS_MIN(bytes - at, PIECE);
        if ((st = gs_pread_exact(fd, piece, n, at, path)) == GS_OK)
            gs_hash_add(h, piece, n);
    }
    if (st == GS_OK)
        *checksum = gs_hash_so_far(h);
    gs_hash_end(h);
    gs_free(piece);
    return st;
}

static gs_status write_file(gs_checkpoint_section *s, gs_outfile *o, const gs_program *p, float *const *value,
                            const gs_safetensors_tables *tables, const gs_section_notes *n)
{
    struct stat file;
    gs_status st =
        gs_safetensors_write(o, p, value, tables, n != NULL ? n->note : NULL, n != NULL ? n->notes : 0);

    if (st != GS_OK)
        return st;
    if (fsync(o->fd) != 0 || fstat(o->fd, &file) != 0)
        return gs_fail_errno(errno, "%s: cannot write", o->path);
    s->bytes = (uint64_t)file.st_size;
    st = sum_file(&s->checksum, o->fd, s->bytes, o->path);
    return st == GS_OK ? gs_outfile_finish(o) : st;
}

gs_status gs_section_write(gs_checkpoint *c, const char *dir, const char *name, const gs_program *p,
                           float *const *value, const gs_safetensors_tables *tables, const gs_section_notes *n)
{
    gs_checkpoint_section *const s = &c->section[c->sections];
    char *const path = gs_section_path(dir, name);
    gs_outfile o = GS_OUTFILE_NONE;
    gs_status st;

    if (path == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory", dir);
    if ((st = gs_outfile_begin(&o, path)) == GS_OK)
        st = write_file(s, &o, p, value, tables, n);
    gs_outfile_abandon(&o);
    gs_free(path);
    if (st == GS_OK) {
        snprintf(s->name, sizeof(s->name), "%s", name);
        c->sections++;
    }
    return st;
}

gs_status gs_section_check(const gs_checkpoint_section *section, const char *dir)
{
    char *const path = gs_section_path(dir, section->name);
    uint64_t bytes = 0, checksum = 0;
    int fd = -1;
    gs_status st;

    if (path == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory", dir);
    if ((st = gs_file_open_read(&fd, &bytes, path)) == GS_OK) {
        if (bytes != section->bytes)
            st = gs_fail(GS_EFORMAT, "%s: has %llu bytes in place of %llu", path, (unsigned long long)bytes,
                         (unsigned long long)section->bytes);
        else if ((st = sum_file(&checksum, fd, bytes, path)) == GS_OK && checksum != section->checksum)
            st = gs_fail(GS_EFORMAT, "%s: checksum mismatch", path);
        close(fd);
    }
    gs_free(path);
    return st;
}
