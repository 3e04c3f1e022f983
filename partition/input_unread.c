/* input_unread.c - files of an input folder that nothing reads. */
#include "partition/input_unread.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"

/* What is read; input_npy.c says so where labels_multi.npy is not. */
static const char *const npy_read[] = {
    "meta.json",        "edges.npy",     "edge_types.npy", "edge_weights.npy", "labels.npy",
    "features.npy",     "features_indptr.npy", "features_indices.npy", "features_data.npy", "train_idx.npy",
    "valid_idx.npy",    "test_idx.npy",  "labels_multi.npy", NULL,
};

/* Names that others give these files: torch_geometric's and DGL's attributes. */
static const char *const npy_other[][2] = {
    {"x.npy", "features.npy"},           {"feat.npy", "features.npy"},        {"node_feat.npy", "features.npy"},
    {"y.npy", "labels.npy"},             {"label.npy", "labels.npy"},         {"edge_index.npy", "edges.npy"},
    {"edge_attr.npy", "edge_weights.npy"}, {"edge_type.npy", "edge_types.npy"}, {"train_mask.npy", "train_idx.npy"},
    {"val_mask.npy", "valid_idx.npy"},   {"valid_mask.npy", "valid_idx.npy"}, {"test_mask.npy", "test_idx.npy"},
    {NULL, NULL},
};
const gs_part_known gs_part__known_npy = {npy_read, npy_other};

#define NEAR 2u        /* letters that differ: val_idx.npy, feature.npy */
#define LONGEST 32u    /* of names that could be near */
#define MOST_NAMED 4u  /* in the line about all others */

/* Letters to add, drop or change to make `b` of `a`; both are shorter than LONGEST. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[LONGEST + 1];
    const size_t n = strlen(b);

    for (unsigned k = 0; k <= n; k++)
        row[k] = k;
    for (unsigned i = 0; a[i] != '\0'; i++) {
        unsigned before = row[0];
        row[0] = i + 1;
        for (unsigned k = 0; k < n; k++) {
            const unsigned change = before + (a[i] != b[k]);
            before = row[k + 1];
            row[k + 1] = GS_MIN(change, GS_MIN(before, row[k]) + 1);
        }
    }
    return row[n];
}

const char *gs_part__near_name(const char *name, const char *const *names)
{
    const char *best = NULL;
    unsigned nearest = NEAR + 1;

    for (size_t i = 0; names[i] != NULL && strlen(name) < LONGEST; i++) {
        const unsigned d = strlen(names[i]) < LONGEST ? distance(name, names[i]) : NEAR + 1;
        if (d < nearest) {
            best = names[i];
            nearest = d;
        }
    }
    return best;
}

bool gs_part__near_file(char *out, size_t room, const char *folder, const char *name)
{
    const char *const slash = strrchr(name, '/'), *const last = slash != NULL ? slash + 1 : name;
    unsigned nearest = NEAR + 1;
    char *const whole = gs_path_join(folder, name);

    if (whole == NULL || strlen(last) >= LONGEST) {
        gs_free(whole);
        return false;
    }
    whole[strlen(whole) - strlen(last)] = '\0';
    DIR *const d = opendir(whole);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        const unsigned far = strlen(e->d_name) < LONGEST && e->d_name[0] != '.' ? distance(last, e->d_name) : NEAR + 1;
        if (far < nearest) {
            nearest = far;
            snprintf(out, room, "%.*s%s", (int)(last - name), name, e->d_name);
        }
    }
    if (d != NULL)
        closedir(d);
    gs_free(whole);
    return nearest <= NEAR;
}

/* Whether `name` is one that is read, or that with another ending of a packed table. */
static bool is_called(const char *name, const char *read)
{
    const size_t n = strlen(read), stem = n > 3 && strcmp(read + n - 3, ".gz") == 0 ? n - 3 : n;

    if (strcmp(name, read) == 0)
        return true;
    return stem < n && strncmp(name, read, stem) == 0 && (name[stem] == '\0' || strcmp(name + stem, ".zst") == 0);
}

static bool is_missing(const char *folder, const char *name)
{
    static const char *const ends[] = {"", ".gz", ".zst"};
    const size_t n = strlen(name), stem = n > 3 && strcmp(name + n - 3, ".gz") == 0 ? n - 3 : n;
    bool missing = true;

    for (size_t i = 0; i < (stem < n ? GS_ARRAY_LEN(ends) : 1) && missing; i++) {
        char one[LONGEST * 2];
        snprintf(one, sizeof(one), "%.*s%s", (int)stem, name, ends[i]);
        char *const path = gs_path_join(folder, stem < n ? one : name);
        missing = path != NULL && gs_path_is_absent(path);
        gs_free(path);
    }
    return missing;
}

/* What a file of this name was meant to be: a file that is read and missing, or NULL. */
static const char *meant(const char *folder, const gs_part_known *known, const char *name)
{
    const char *best = NULL;
    unsigned nearest = NEAR + 1;

    for (size_t i = 0; known->other[i][0] != NULL; i++)
        if (is_called(name, known->other[i][0]) && is_missing(folder, known->other[i][1]))
            return known->other[i][1];
    for (size_t i = 0; known->read[i] != NULL && strlen(name) < LONGEST; i++) {
        const unsigned d = distance(name, known->read[i]);
        if (d < nearest && is_missing(folder, known->read[i])) {
            best = known->read[i];
            nearest = d;
        }
    }
    return best;
}

static bool is_read(const gs_part_known *known, const char *name)
{
    for (size_t i = 0; known->read[i] != NULL; i++)
        if (is_called(name, known->read[i]))
            return true;
    return false;
}

static bool is_file(int folder, const char *name)
{
    struct stat s;
    return fstatat(folder, name, &s, 0) == 0 && S_ISREG(s.st_mode);
}

void gs_part__warn_of_unread(const char *folder, const gs_part_known *known, const gs_part_job *job)
{
    char others[600] = "";
    size_t used = 0, count = 0;
    DIR *const d = job->opt->warn != NULL ? opendir(folder) : NULL;

    if (d == NULL)
        return;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || is_read(known, e->d_name) || !is_file(dirfd(d), e->d_name))
            continue;
        const char *const name = meant(folder, known, e->d_name);
        if (name != NULL)
            gs_part__warn(job, "%s/%s: is not read; was %s meant?", folder, e->d_name, name);
        else if (count++ < MOST_NAMED && used < sizeof(others))
            used += (size_t)snprintf(others + used, sizeof(others) - used, "%s%s", count > 1 ? ", " : "", e->d_name);
    }
    closedir(d);
    if (count != 0)
        gs_part__warn(job, "%s: nothing reads %s%s", folder, others, count > MOST_NAMED ? " and others" : "");
}
