/* npz.c - .npz files by minizip, which, unlike other readers of zip files, says where a member's bytes are. */
#include "partition/npz.h"

#include <stdio.h>
#include <string.h>

#include <minizip/unzip.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/made_array.h"

#define MOST_MEMBERS 4096u
#define NAME_BYTES 256u
#define PIECE_BYTES (256 * GS_KIB)
#define METHOD_STORED 0u
#define METHOD_DEFLATE 8u

typedef struct member {
    char *name; /* as in the file */
    uint64_t packed, bytes, method;
    bool encrypted;
} member;

struct gs_npz {
    const char *path;
    unzFile zip;
    member *member;
    uint64_t count;
};

static gs_status damaged(const gs_npz *z, const char *what)
{
    return gs_fail(GS_EFORMAT, "%s: %s; the .npz file is cut short or damaged: fetch or save it again", z->path, what);
}

static gs_status take_member(gs_npz *z)
{
    unz_file_info64 info;
    char name[NAME_BYTES] = "";
    member *const m = &z->member[z->count];

    if (unzGetCurrentFileInfo64(z->zip, &info, name, sizeof(name), NULL, 0, NULL, 0) != UNZ_OK)
        return damaged(z, "its directory cannot be read");
    if (info.size_filename >= sizeof(name) || strlen(name) != info.size_filename)
        return damaged(z, "it has a member with a name that no array has");
    *m = (member){.name = gs_strdup(name), .packed = info.compressed_size, .bytes = info.uncompressed_size,
                  .method = info.compression_method, .encrypted = (info.flag & 1) != 0};
    if (m->name == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the names of its arrays", z->path);
    const size_t n = strlen(m->name);
    if (n > 4 && strcmp(m->name + n - 4, ".npy") == 0)
        m->name[n - 4] = '\0';
    z->count++;
    return GS_OK;
}

static gs_status read_directory(gs_npz *z)
{
    unz_global_info64 all;
    gs_status st = GS_OK;

    if (unzGetGlobalInfo64(z->zip, &all) != UNZ_OK || all.number_entry == 0 || all.number_entry > MOST_MEMBERS)
        return damaged(z, "its directory lists no arrays, or more than 4096");
    if ((z->member = gs_calloc(all.number_entry, sizeof(*z->member))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the names of its arrays", z->path);
    int rc = unzGoToFirstFile(z->zip);
    while (rc == UNZ_OK && z->count < all.number_entry && (st = take_member(z)) == GS_OK)
        rc = unzGoToNextFile(z->zip);
    if (st == GS_OK && (z->count != all.number_entry || rc != UNZ_END_OF_LIST_OF_FILE))
        st = damaged(z, "its directory cannot be read");
    return st;
}

gs_status gs_part__npz_open(gs_npz **out, const char *path)
{
    gs_npz *z = gs_calloc(1, sizeof(*z));
    gs_status st;

    if (z == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", path);
    z->path = path;
    z->zip = unzOpen64(path);
    st = z->zip != NULL ? read_directory(z) : damaged(z, "it has no directory at its end");
    if (st == GS_OK)
        *out = z;
    else
        gs_part__npz_close(z);
    return st;
}

void gs_part__npz_close(gs_npz *z)
{
    if (z == NULL)
        return;
    if (z->zip != NULL)
        unzClose(z->zip);
    for (uint64_t i = 0; i < z->count; i++)
        gs_free(z->member[i].name);
    gs_free(z->member);
    gs_free(z);
}

uint64_t gs_part__npz_count(const gs_npz *z) { return z->count; }
const char *gs_part__npz_name(const gs_npz *z, uint64_t k) { return z->member[k].name; }

static const member *find(const gs_npz *z, const char *name)
{
    for (uint64_t i = 0; i < z->count; i++)
        if (strcmp(z->member[i].name, name) == 0)
            return &z->member[i];
    return NULL;
}

bool gs_part__npz_has(const gs_npz *z, const char *name) { return find(z, name) != NULL; }

/* Makes `m` the current member of `zip`. */
static gs_status go_to(gs_npz *z, const member *m)
{
    int rc = unzGoToFirstFile(z->zip);

    for (const member *at = z->member; rc == UNZ_OK && at != m; at++)
        rc = unzGoToNextFile(z->zip);
    return rc == UNZ_OK ? GS_OK : damaged(z, "its directory changed while it was read");
}

/* `raw`: the bytes as they are in the file, for the place where they begin. */
static gs_status open_member(gs_npz *z, const member *m, int raw)
{
    const gs_status st = go_to(z, m);

    if (st != GS_OK || unzOpenCurrentFile2(z->zip, NULL, NULL, raw) == UNZ_OK)
        return st;
    return gs_fail(GS_EFORMAT, "%s/%s.npy: cannot be read; the .npz file is cut short or damaged: fetch or save it "
                               "again",
                   z->path, m->name);
}

static gs_status in_place(gs_part_file *f, gs_npz *z, const member *m)
{
    gs_status st;

    if (m->packed != m->bytes)
        return damaged(z, "an array is stored as it is, and its sizes differ");
    if ((st = open_member(z, m, 1)) != GS_OK)
        return st;
    const uint64_t offset = unzGetCurrentFileZStreamPos64(z->zip);
    unzCloseCurrentFile(z->zip);
    if ((f->opened_as = gs_strdup(z->path)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", z->path);
    st = gs_npy_open_any_order(&f->npy, f->any_order ? &f->transposed : NULL, z->path, offset, m->bytes, f->path);
    if (st != GS_OK)
        f->npy.fd = -1;
    return st;
}

static gs_status unpack_pieces(gs_made *made, gs_npz *z, const member *m, gs_part_job *job, void *piece)
{
    uint64_t done = 0;
    int got = 0;
    gs_status st = GS_OK;

    while (st == GS_OK && (got = unzReadCurrentFile(z->zip, piece, PIECE_BYTES)) > 0) {
        done += (uint64_t)got;
        st = done <= m->bytes ? gs_part__made_put(made, piece, (uint64_t)got) : damaged(z, "an array is too long");
        gs_part__tick(job, "unpacking arrays", (double)done / (double)GS_MAX(m->bytes, 1));
        if (st == GS_OK)
            st = gs_part__job_result(job);
    }
    if (st == GS_OK && (got < 0 || done != m->bytes))
        st = gs_fail(GS_EFORMAT, "%s/%s.npy: its packed data are damaged near byte %llu; fetch or save it again",
                     z->path, m->name, (unsigned long long)done);
    return st;
}

static gs_status unpack(gs_part_file *f, gs_npz *z, const member *m, gs_part_job *job)
{
    gs_made made = {0};
    void *const piece = gs_malloc(PIECE_BYTES);
    gs_status st = piece != NULL ? open_member(z, m, 0) : gs_fail(GS_ENOMEM, "%s: no memory to unpack it", z->path);

    if (st == GS_OK) {
        char *const path = f->path;
        if ((st = gs_part__made_begin(&made, f, job, path)) == GS_OK &&
            (st = unpack_pieces(&made, z, m, job, piece)) == GS_OK)
            st = gs_part__made_end_npy(&made);
        if (unzCloseCurrentFile(z->zip) == UNZ_CRCERROR && st == GS_OK)
            st = gs_fail(GS_EFORMAT, "%s: checksum mismatch; the .npz file is damaged: fetch or save it again", path);
    }
    gs_part__made_free(&made);
    gs_free(piece);
    return st;
}

gs_status gs_part__npz_array(gs_part_file *f, gs_npz *z, gs_part_job *job, const char *name)
{
    const member *const m = find(z, name);
    char path[NAME_BYTES + 8];

    if (m == NULL)
        return GS_OK;
    snprintf(path, sizeof(path), "%s.npy", name);
    if ((f->path = gs_path_join(z->path, path)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", z->path);
    if (m->encrypted || (m->method != METHOD_STORED && m->method != METHOD_DEFLATE))
        return gs_fail(GS_EFORMAT, "%s: is packed in a way that numpy does not use (zip method %llu%s); save it again "
                                   "with numpy.savez",
                       f->path, (unsigned long long)m->method, m->encrypted ? ", encrypted" : "");
    return m->method == METHOD_STORED ? in_place(f, z, m) : unpack(f, z, m, job);
}
