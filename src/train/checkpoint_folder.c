#include "train/checkpoint_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"

/* ---- the folder ---------------------------------------------------------- */

#define PREFIX "epoch-"
#define DIGITS 10
#define MAKING ".making-"

/* ---- names --------------------------------------------------------------- */

/* The epoch of a checkpoint's name; 0 for other names. */
static uint32_t epoch_of(const char *name)
{
    const size_t n = sizeof(PREFIX) - 1;

    if (strncmp(name, PREFIX, n) != 0 || strlen(name + n) != DIGITS || strspn(name + n, "0123456789") != DIGITS)
        return 0;
    const unsigned long long v = strtoull(name + n, NULL, 10);
    return v <= UINT32_MAX ? (uint32_t)v : 0;
}

char *gs_checkpoint_dir(const char *path, uint32_t epoch)
{
    char name[sizeof(PREFIX) + DIGITS + 1];
    snprintf(name, sizeof(name), PREFIX "%0*u", DIGITS, epoch);
    return gs_path_join(path, name);
}

/* Calls `visit` for every name, as long as it gives GS_OK. */
static gs_status each(const char *path, gs_status (*visit)(void *context, const char *name), void *context)
{
    GS_ENDS(gs_closedir_at) DIR *const dir = opendir(path);
    const struct dirent *entry;

    if (dir == NULL)
        return gs_fail_errno(errno, "%s: cannot list", path);
    while ((errno = 0, entry = readdir(dir)) != NULL)
        GS_TRY(visit(context, entry->d_name));
    if (errno != 0)
        return gs_fail_errno(errno, "%s: cannot list", path);
    return GS_OK;
}

struct newest {
    uint64_t before;
    uint32_t epoch;
};

static gs_status see_newest(void *context, const char *name)
{
    struct newest *const n = context;
    const uint32_t epoch = epoch_of(name);
    if (epoch < n->before)
        n->epoch = GS_MAX(n->epoch, epoch);
    return GS_OK;
}

gs_status gs_checkpoint_before(const char *path, uint64_t before, uint32_t *epoch)
{
    struct newest n = {.before = before};
    GS_TRY(each(path, see_newest, &n));
    *epoch = n.epoch;
    return GS_OK;
}

/* ---- removing ------------------------------------------------------------ */

struct keep {
    const char *path;
    uint32_t epoch[2];
};

/* Whose name nobody can have made before. */
gs_status gs_checkpoint_begin(char **out, const char *path)
{
    char name[sizeof(MAKING) + 16];
    uint64_t word = 0;

    if (getrandom(&word, sizeof(word), 0) != sizeof(word))
        return gs_fail_errno(errno, "%s: no random name", path);
    snprintf(name, sizeof(name), MAKING "%016lx", word);
    GS_FREED char *dir = gs_path_join(path, name);
    GS_NEED(dir != NULL, "%s: out of memory", path);
    if (mkdir(dir, 0777) != 0)
        return gs_fail_errno(errno, "%s: cannot make the folder", dir);
    *out = GS_HANDED_OVER(dir);
    return GS_OK;
}

/* First out of sight: what is half removed must not look like a checkpoint. */
static gs_status remove_checkpoint(const char *path, const char *dir)
{
    GS_FREED char *away = NULL;

    GS_TRY(gs_checkpoint_begin(&away, path));
    const gs_status st = rename(dir, away) != 0 ? gs_fail_errno(errno, "%s: cannot be removed", dir) : GS_OK;
    const gs_status removed = gs_remove_tree(away);
    return st != GS_OK ? st : removed;
}

static gs_status remove_other(void *context, const char *name)
{
    const struct keep *const k = context;
    const uint32_t epoch = epoch_of(name);

    if (epoch == 0 || epoch == k->epoch[0] || epoch == k->epoch[1])
        return GS_OK;
    GS_FREED char *const dir = gs_path_join(k->path, name);
    return dir == NULL ? gs_fail(GS_ENOMEM, "%s: out of memory", k->path) : remove_checkpoint(k->path, dir);
}

static gs_status remove_making(void *context, const char *name)
{
    if (strncmp(name, MAKING, sizeof(MAKING) - 1) != 0)
        return GS_OK;
    GS_FREED char *const dir = gs_path_join(context, name);
    return dir == NULL ? gs_fail(GS_ENOMEM, "%s: out of memory", (const char *)context) : gs_remove_tree(dir);
}

/* ---- the folder ---------------------------------------------------------- */

/* Checkpoints last no longer than the name of the folder that they are in. */
static gs_status sync_parent(int fd, const char *path)
{
    GS_CLOSED const int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (parent < 0) /* it may be nobody's to read: then its owner sees to it */
        return errno == EACCES ? GS_OK : gs_fail_errno(errno, "%s: cannot open the folder that it is in", path);
    if (fsync(parent) != 0 && errno != EINVAL) /* EINVAL: a file system that cannot sync folders */
        return gs_fail_errno(errno, "%s: the folder that it is in cannot be synced", path);
    return GS_OK;
}

gs_status gs_checkpoint_folder_open(gs_checkpoint_folder *f, const char *path)
{
    GS_ENDS(gs_checkpoint_folder_close) gs_checkpoint_folder made = GS_CHECKPOINT_FOLDER_NONE;

    GS_TRY(gs_mkdir(path));
    GS_NEED((made.path = gs_strdup(path)) != NULL, "%s: out of memory", path);
    if ((made.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return gs_fail_errno(errno, "%s: cannot open", path);
    if (flock(made.fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) /* without locks there is none to refuse */
        return gs_fail(GS_EEXIST, "%s: another run writes its checkpoints there; name another folder", path);
    GS_TRY(sync_parent(made.fd, path));
    GS_TRY(each(path, remove_making, made.path));
    *f = made;
    made = (gs_checkpoint_folder)GS_CHECKPOINT_FOLDER_NONE;
    return GS_OK;
}

void gs_checkpoint_folder_close(gs_checkpoint_folder *f)
{
    if (f->fd >= 0)
        close(f->fd);
    gs_free(f->path);
    *f = (gs_checkpoint_folder)GS_CHECKPOINT_FOLDER_NONE;
}

/* ---- a new one ----------------------------------------------------------- */

static gs_status sync_dir(const char *dir)
{
    GS_CLOSED const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? gs_fail_errno(errno, "%s: cannot open", dir) : gs_folder_sync(fd, dir);
}

gs_status gs_checkpoint_finish(const gs_checkpoint_folder *f, const char *dir, uint32_t epoch, uint32_t previous)
{
    struct keep keep = {f->path, {epoch, previous}};
    GS_FREED char *const to = gs_checkpoint_dir(f->path, epoch);

    GS_NEED(to != NULL, "%s: out of memory", f->path);
    GS_TRY(sync_dir(dir));
    if (gs_path_exists(to)) /* damaged, or of the same epoch with other weights */
        GS_TRY(remove_checkpoint(f->path, to));
    if (rename(dir, to) != 0)
        return gs_fail_errno(errno, "%s: cannot rename to %s", dir, to);
    GS_TRY(gs_folder_sync(f->fd, f->path));
    (void)each(f->path, remove_other, &keep); /* what cannot be removed is tried again behind the next one */
    return GS_OK;
}

void gs_checkpoint_abandon(const char *dir)
{
    char error[2048];

    snprintf(error, sizeof(error), "%s", gs_last_error());
    if (gs_remove_tree(dir) != GS_OK && error[0] != '\0')
        (void)gs_fail(GS_EIO, "%s", error);
}

/* ---- sections ------------------------------------------------------------ */

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
    GS_ENDS(gs_hash_end_at) gs_hash_stream *const h = gs_hash_begin();
    GS_FREED char *const piece = gs_malloc(PIECE);

    GS_TRY(h != NULL && piece != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: out of memory", path));
    for (uint64_t at = 0; at < bytes; at += PIECE) {
        const uint64_t n = GS_MIN(bytes - at, PIECE);
        GS_TRY(gs_pread_exact(fd, piece, n, at, path));
        gs_hash_add(h, piece, n);
    }
    *checksum = gs_hash_so_far(h);
    return GS_OK;
}

static gs_status write_file(gs_checkpoint_section *s, gs_outfile *o, const gs_program *p, float *const *value,
                            const gs_safetensors_tables *tables, const gs_section_notes *n)
{
    struct stat file;
    GS_TRY(gs_safetensors_write(o, p, value, tables, n != NULL ? n->note : NULL, n != NULL ? n->notes : 0));
    if (fsync(o->fd) != 0 || fstat(o->fd, &file) != 0)
        return gs_fail_errno(errno, "%s: cannot write", o->path);
    s->bytes = (uint64_t)file.st_size;
    GS_TRY(sum_file(&s->checksum, o->fd, s->bytes, o->path));
    return gs_outfile_finish(o);
}

gs_status gs_section_write(gs_checkpoint *c, const char *dir, const char *name, const gs_program *p,
                           float *const *value, const gs_safetensors_tables *tables, const gs_section_notes *n)
{
    gs_checkpoint_section *const s = &c->section[c->sections];
    GS_FREED char *const path = gs_section_path(dir, name);
    GS_ENDS(gs_outfile_abandon) gs_outfile o = GS_OUTFILE_NONE;

    GS_NEED(path != NULL, "%s: out of memory", dir);
    GS_TRY(gs_outfile_begin(&o, path));
    GS_TRY(write_file(s, &o, p, value, tables, n));
    snprintf(s->name, sizeof(s->name), "%s", name);
    c->sections++;
    return GS_OK;
}

gs_status gs_section_check(const gs_checkpoint_section *section, const char *dir)
{
    GS_FREED char *const path = gs_section_path(dir, section->name);
    uint64_t bytes = 0, checksum = 0;
    GS_CLOSED int fd = -1;

    GS_NEED(path != NULL, "%s: out of memory", dir);
    GS_TRY(gs_file_open_read(&fd, &bytes, path));
    if (bytes != section->bytes)
        return gs_fail(GS_EFORMAT, "%s: has %lu bytes in place of %lu", path, bytes, section->bytes);
    GS_TRY(sum_file(&checksum, fd, bytes, path));
    return checksum == section->checksum ? GS_OK : gs_fail(GS_EFORMAT, "%s: checksum mismatch", path);
}

/* ---- when the next is due ------------------------------------------------ */

#define TIME_SHARE 0.01      /* of the time, as planned */
#define TIME_SHARE_MOST 0.02 /* at the end of the run, after which nothing is lost any more by waiting */
#define LEAST_SECONDS 30.0
#define GUESS_SECONDS 0.1 /* of the first one: several syncs, */
#define GUESS_BPS 100e6   /* and a slow disk */

gs_status gs_checkpoint_pace_parse(gs_checkpoint_pace *out, const char *text)
{
    static const char units[] = "smh";
    static const double seconds[] = {1, 60, 3600};
    char *end;

    *out = (gs_checkpoint_pace){0};
    if (text == NULL)
        return GS_OK;
    const double v = strtod(text, &end);
    const char *const unit = *end != '\0' && end[1] == '\0' ? strchr(units, *end) : NULL;
    if (*text >= '0' && *text <= '9' && end != text && isfinite(v) && v > 0) {
        if (*end == '\0' && v == floor(v) && v <= UINT32_MAX) {
            out->epochs = (uint32_t)v;
            return GS_OK;
        }
        if (unit != NULL) {
            out->seconds = v * seconds[unit - units];
            return GS_OK;
        }
    }
    return gs_fail(GS_EINVAL, ".checkpoint_every %s: must be a number of epochs, or a time such as 90s, 10m or 1h",
                   text);
}

void gs_checkpoint_pace_begin(gs_checkpoint_pace *p, double now, uint64_t bytes)
{
    p->began = p->last = now;
    p->guess = GUESS_SECONDS + (double)bytes / GUESS_BPS;
    p->spent = 0;
}

bool gs_checkpoint_is_due(const gs_checkpoint_pace *p, uint32_t epoch, double now, bool last)
{
    if (p->epochs != 0)
        return epoch % p->epochs == 0;
    if (p->seconds > 0)
        return now - p->last >= p->seconds;
    if (last)
        return p->spent + p->guess <= TIME_SHARE_MOST * (now - p->began);
    return now - p->last >= LEAST_SECONDS && p->spent + p->guess <= TIME_SHARE * (now - p->began);
}

void gs_checkpoint_took(gs_checkpoint_pace *p, double from, double to)
{
    p->last = to;
    p->spent += to - from;
    p->guess = to - from;
}
