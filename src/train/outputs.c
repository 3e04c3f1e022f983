#include "train/outputs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "store/store_write.h"

typedef struct named {
    const char *option, *path; /* of an output of a call of its own the option is "" */
    gs_file_kind kind;
} named;

#define INPUTS 3u

static void list_inputs(named in[INPUTS], const gs_train_options *o, gs_run_kind kind)
{
    in[0] = (named){kind == GS_RUN_PREDICT ? "the weights" : ".init", o->init, GS_FILE_KIND_SAFETENSORS};
    in[1] = (named){".model", o->model, GS_FILE_KIND_TEXT};
    in[2] = (named){".topology", o->topology, GS_FILE_KIND_JSON};
}

static const char *space_after(const char *option) { return *option != '\0' ? " " : ""; }

/* ---- stores -------------------------------------------------------------- */

static bool is_store(void *context, const char *dir)
{
    (void)context;
    return gs_store_is_at(dir);
}

/* Is it, under another name, a file in the folder `dir`? */
static bool is_linked_into(const gs_file_identity *p, const char *dir)
{
    DIR *const d = p->there && !p->sink ? opendir(dir) : NULL;
    bool found = false;

    if (d == NULL)
        return false;
    for (const struct dirent *e; !found && (e = readdir(d)) != NULL;) {
        char *const path = gs_path_join(dir, e->d_name);
        if (path != NULL) {
            const gs_file_identity there = gs_file_identity_of(path);
            found = there.there && there.device == p->device && there.inode == p->inode;
        }
        gs_free(path);
    }
    closedir(d);
    return found;
}

static gs_status check_stores(const named *out, const gs_file_identity *p, const char *store)
{
    const char *const space = space_after(out->option);
    bool inside = false;
    const gs_status st = gs_path_climb(&inside, out->path, is_store, NULL);

    if (st != GS_OK)
        return st;
    if (inside)
        return gs_fail(GS_EINVAL, "%s%s%s: is in the folder of a store; choose another folder", out->option, space,
                       out->path);
    if (is_linked_into(p, store))
        return gs_fail(GS_EINVAL, "%s%s%s: is a file of the store %s under another name; give another", out->option,
                       space, out->path, store);
    return GS_OK;
}

/* ---- the folder of checkpoints ------------------------------------------- */

/* The run writes there, or goes on from there and then does: of .checkpoint, else of .resume; NULL path: none. */
static named checkpoints_of(const gs_train_options *o, gs_run_kind kind)
{
    if (kind != GS_RUN_TRAIN)
        return (named){"", NULL, GS_FILE_KIND_TEXT};
    return o->checkpoint != NULL ? (named){".checkpoint", o->checkpoint, GS_FILE_KIND_TEXT}
                                 : (named){".resume", o->resume, GS_FILE_KIND_TEXT};
}

static bool is_place(void *context, const char *dir)
{
    const gs_file_identity p = gs_file_identity_of(dir), *const of = context;
    return p.there && of->there && p.device == of->device && p.inode == of->inode;
}

/* Is the file, there or not, in the folder, there or not? */
static gs_status is_within(bool *inside, const char *file, const char *folder)
{
    char *const own = gs_path_without_slashes(folder), *const above = gs_path_folder(file);
    gs_status st = GS_OK;

    if (own == NULL || above == NULL) {
        st = gs_fail(GS_ENOMEM, "%s: out of memory", file);
    } else {
        gs_file_identity of = gs_file_identity_of(own);
        const gs_file_identity p = gs_file_identity_of(file), in = gs_file_identity_of(above);
        *inside = gs_file_identity_is_same(&p, &of) || gs_file_identity_is_same(&in, &of);
        if (!*inside)
            st = gs_path_climb(inside, file, is_place, &of);
    }
    gs_free(above);
    gs_free(own);
    return st;
}

/* Checkpoints are removed in their turn, and what is beside them must not be taken for one. */
static gs_status check_checkpoints(const named *out, const named *folder)
{
    bool inside = false;
    const gs_status st = is_within(&inside, out->path, folder->path);

    if (st != GS_OK || !inside)
        return st;
    return gs_fail(GS_EINVAL, "%s%s%s: is in the folder of %s, which is for checkpoints alone; choose another folder",
                   out->option, space_after(out->option), out->path, folder->option);
}

/* Nor do checkpoints go into a store, or where an input is. */
static gs_status check_folder(const named *folder, const gs_train_options *o, gs_run_kind kind)
{
    char *const inner = gs_path_join(folder->path, "epoch"); /* any name in it */
    named in[INPUTS];
    bool inside = false;
    gs_status st = inner != NULL ? gs_path_climb(&inside, inner, is_store, NULL)
                                 : gs_fail(GS_ENOMEM, "%s: out of memory", folder->path);

    gs_free(inner);
    if (st == GS_OK && !inside) { /* one that is still to be made */
        char *const own = gs_path_without_slashes(folder->path);
        st = own != NULL ? gs_path_climb(&inside, own, is_store, NULL)
                         : gs_fail(GS_ENOMEM, "%s: out of memory", folder->path);
        gs_free(own);
    }
    if (st == GS_OK && inside)
        return gs_fail(GS_EINVAL, "%s %s: is in the folder of a store; choose another folder", folder->option,
                       folder->path);
    list_inputs(in, o, kind);
    for (uint32_t i = 0; i < INPUTS && st == GS_OK; i++) {
        const gs_file_identity p = in[i].path != NULL ? gs_file_identity_of(in[i].path) : (gs_file_identity){0};
        const gs_file_identity q = gs_file_identity_of(folder->path);
        if (p.there && gs_file_identity_is_same(&p, &q))
            st = gs_fail(GS_EINVAL, "%s %s: is the file of %s, which is read; give the name of a folder",
                         folder->option, folder->path, in[i].option);
    }
    return st;
}

/* ---- what is there already ----------------------------------------------- */

/* Arrays of a graph that a store may have been made from (partition/raw.h). */
static bool is_raw(const char *name)
{
    static const char *const raw[] = {"edges.npy", "features.npy", "features_indptr.npy", "features_indices.npy",
                                      "features_data.npy", "labels.npy", "labels_multi.npy", "edge_types.npy",
                                      "edge_weights.npy", "train_idx.npy", "valid_idx.npy", "test_idx.npy",
                                      "meta.json"};
    for (size_t i = 0; i < GS_ARRAY_LEN(raw); i++)
        if (strcmp(name, raw[i]) == 0)
            return true;
    return false;
}

static gs_status check_raw(const named *out)
{
    char *const folder = gs_path_folder(out->path);
    char *const edges = folder != NULL ? gs_path_join(folder, "edges.npy") : NULL;
    gs_status st = GS_OK;

    if (edges == NULL)
        st = gs_fail(GS_ENOMEM, "%s: out of memory", out->path);
    else if (is_raw(gs_path_name(out->path)) && gs_path_exists(edges))
        st = gs_fail(GS_EINVAL, "%s%s%s: is an array of the graph in that folder; give another name", out->option,
                     space_after(out->option), out->path);
    gs_free(edges);
    gs_free(folder);
    return st;
}

/* By its first bytes. */
static bool is_of_kind(gs_file_kind kind, const unsigned char *head, size_t bytes)
{
    static const unsigned char npy[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    switch (kind) {
    case GS_FILE_KIND_JSON:
        return head[0] == '{' || head[0] == '[';
    case GS_FILE_KIND_NPY:
        return bytes >= sizeof(npy) && memcmp(head, npy, sizeof(npy)) == 0;
    case GS_FILE_KIND_SAFETENSORS: /* the length of the header, which is JSON */
        return bytes > 8 && head[5] == 0 && head[6] == 0 && head[7] == 0 && head[8] == '{';
    case GS_FILE_KIND_TEXT:
        break;
    }
    return memchr(head, 0, bytes) == NULL && memchr(head, npy[0], GS_MIN(bytes, 1)) == NULL;
}

gs_status gs_output_check_kind(const char *option, const char *path, gs_file_kind kind)
{
    static const char *const names[] = {[GS_FILE_KIND_TEXT] = "text", [GS_FILE_KIND_JSON] = "JSON",
                                        [GS_FILE_KIND_NPY] = ".npy", [GS_FILE_KIND_SAFETENSORS] = ".safetensors"};
    const named out = {option, path, kind};
    unsigned char head[64];
    struct stat sb;

    if (lstat(path, &sb) != 0 || !S_ISREG(sb.st_mode) || sb.st_size == 0)
        return GS_OK; /* what else may stand there is base/outfile.h's to say */
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head));
    const int err = errno;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return gs_fail_errno(err, "%s%s%s: is there already, and cannot be read; remove it or give another name",
                             option, space_after(option), path);
    if (n > 0 && !is_of_kind(kind, head, (size_t)n))
        return gs_fail(GS_EEXIST, "%s%s%s: is there already and is no %s file, so it is not replaced; remove it or give"
                       " another name", option, space_after(option), path, names[kind]);
    return check_raw(&out);
}

/* ---- one output, all outputs --------------------------------------------- */

static gs_status check(const named *out, const gs_train_options *o, gs_run_kind kind, const char *store)
{
    const gs_file_identity p = gs_file_identity_of(out->path);
    named in[INPUTS];

    list_inputs(in, o, kind);
    for (uint32_t i = 0; i < INPUTS; i++) {
        const gs_file_identity q = in[i].path != NULL ? gs_file_identity_of(in[i].path) : (gs_file_identity){0};
        if (q.there && !q.sink && gs_file_identity_is_same(&p, &q))
            return gs_fail(GS_EINVAL, "%s%s%s: is the file of %s, which is read; give another name",
                           out->option, space_after(out->option), out->path, in[i].option);
    }
    const named folder = checkpoints_of(o, kind);
    gs_status st = check_stores(out, &p, store);
    if (st == GS_OK)
        st = gs_output_check_kind(out->option, out->path, out->kind);
    return st != GS_OK || folder.path == NULL || p.sink ? st : check_checkpoints(out, &folder);
}

gs_status gs_outputs_check(const gs_train_options *o, gs_run_kind kind, const char *store)
{
    const named out[] = {{".save", o->save, GS_FILE_KIND_SAFETENSORS}, {".logits", o->logits, GS_FILE_KIND_NPY},
                         {".argmax", o->argmax, GS_FILE_KIND_NPY}, {".metrics", o->metrics, GS_FILE_KIND_JSON},
                         {".trace", o->trace, GS_FILE_KIND_JSON}};
    const named folder = checkpoints_of(o, kind);
    gs_status st = folder.path != NULL ? check_folder(&folder, o, kind) : GS_OK;

    for (size_t i = 0; i < GS_ARRAY_LEN(out) && st == GS_OK; i++) {
        const gs_file_identity p = out[i].path != NULL ? gs_file_identity_of(out[i].path) : (gs_file_identity){0};
        if (out[i].path == NULL)
            continue;
        for (size_t k = 0; k < i; k++) {
            const gs_file_identity q = out[k].path != NULL ? gs_file_identity_of(out[k].path) : (gs_file_identity){0};
            if (out[k].path != NULL && !p.sink && gs_file_identity_is_same(&p, &q))
                return gs_fail(GS_EINVAL, "%s and %s both name %s", out[k].option, out[i].option, out[i].path);
        }
        st = check(&out[i], o, kind, store);
    }
    return st;
}

gs_status gs_outputs_check_one(const gs_train_options *o, gs_run_kind kind, const char *store, const char *path,
                               gs_file_kind output)
{
    return check(&(named){"", path, output}, o, kind, store);
}
