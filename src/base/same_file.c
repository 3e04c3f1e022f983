#include "base/same_file.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/alloc.h"
#include "base/file.h"

#define MOST_FOLDERS 4096 /* above a file: more than a path can name */

char *gs_path_folder(const char *path)
{
    const char *const slash = strrchr(path, '/');
    char *const folder = gs_strdup(slash == NULL ? "." : path);

    if (folder != NULL && slash != NULL)
        folder[slash == path ? 1 : slash - path] = '\0';
    return folder;
}

const char *gs_path_name(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

gs_file_identity gs_file_identity_of(const char *path)
{
    gs_file_identity p = {.name = gs_path_name(path)};
    char *const folder = gs_path_folder(path);
    struct stat sb;

    if (stat(path, &sb) == 0) {
        const unsigned k = minor(sb.st_rdev);
        p.there = true;
        p.sink = S_ISCHR(sb.st_mode) && major(sb.st_rdev) == 1 && (k == 3 || k == 5 || k == 7); /* null, zero, full */
        p.device = sb.st_dev;
        p.inode = sb.st_ino;
    }
    if (folder != NULL && stat(folder, &sb) == 0) {
        p.folder_there = true;
        p.folder_device = sb.st_dev;
        p.folder_inode = sb.st_ino;
    }
    gs_free(folder);
    return p;
}

bool gs_file_identity_is_same(const gs_file_identity *a, const gs_file_identity *b)
{
    if (a->there && b->there && a->device == b->device && a->inode == b->inode)
        return true;
    return a->folder_there && b->folder_there && a->folder_device == b->folder_device &&
           a->folder_inode == b->folder_inode && strcmp(a->name, b->name) == 0;
}

gs_status gs_path_climb(bool *found, const char *path, bool (*visit)(void *context, const char *dir), void *context)
{
    char *dir = gs_path_folder(path);
    struct stat here, last = {0};

    *found = false;
    for (uint32_t k = 0; dir != NULL && k < MOST_FOLDERS && stat(dir, &here) == 0; k++) {
        if (k > 0 && here.st_dev == last.st_dev && here.st_ino == last.st_ino)
            break; /* the root is in itself */
        if ((*found = visit(context, dir)))
            break;
        char *const above = gs_path_join(dir, "..");
        gs_free(dir);
        dir = above;
        last = here;
    }
    const gs_status st = dir != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: out of memory", path);
    gs_free(dir);
    return st;
}
