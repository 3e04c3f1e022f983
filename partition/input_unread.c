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
static const char *const read_names[] = {
    "meta.json",   "edges.npy",         "edge_types.npy",       "edge_weights.npy",
    "labels.npy",  "features.npy",      "features_indptr.npy",  "features_indices.npy",
    "train_idx.npy", "valid_idx.npy",   "test_idx.npy",         "features_data.npy",
    "labels_multi.npy",
};

/* Names that others give these files: torch_geometric's and DGL's attributes. */
static const char *const other_names[][2] = {
    {"x.npy", "features.npy"},           {"feat.npy", "features.npy"},        {"node_feat.npy", "features.npy"},
    {"y.npy", "labels.npy"},             {"label.npy", "labels.npy"},         {"edge_index.npy", "edges.npy"},
    {"edge_attr.npy", "edge_weights.npy"}, {"edge_type.npy", "edge_types.npy"}, {"train_mask.npy", "train_idx.npy"},
    {"val_mask.npy", "valid_idx.npy"},   {"valid_mask.npy", "valid_idx.npy"}, {"test_mask.npy", "test_idx.npy"},
};

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

static bool is_missing(const char *folder, const char *name)
{
    char *const path = gs_path_join(folder, name);
    const bool missing = path != NULL && gs_path_is_absent(path);
    gs_free(path);
    return missing;
}

/* What a file of this name was meant to be: a file that is read and missing, or NULL. */
static const char *meant(const char *folder, const char *name)
{
    const char *best = NULL;
    unsigned nearest = NEAR + 1;

    for (size_t i = 0; i < GS_ARRAY_LEN(other_names); i++)
        if (strcmp(name, other_names[i][0]) == 0 && is_missing(folder, other_names[i][1]))
            return other_names[i][1];
    for (size_t i = 0; i < GS_ARRAY_LEN(read_names) && strlen(name) < LONGEST; i++) {
        const unsigned d = distance(name, read_names[i]);
        if (d < nearest && is_missing(folder, read_names[i])) {
            best = read_names[i];
            nearest = d;
        }
    }
    return best;
}

static bool is_read(const char *name)
{
    for (size_t i = 0; i < GS_ARRAY_LEN(read_names); i++)
        if (strcmp(name, read_names[i]) == 0)
            return true;
    return false;
}

static bool is_file(int folder, const char *name)
{
    struct stat s;
    return fstatat(folder, name, &s, 0) == 0 && S_ISREG(s.st_mode);
}

/* A name may hold a newline, and a warning is one line. */
static void warn(const gs_part_job *job, char *line)
{
    for (char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    job->opt->warn(job->opt->context, line);
}

void gs_part__warn_of_unread(const char *folder, const gs_part_job *job)
{
    char line[1024], others[600] = "";
    size_t used = 0, count = 0;
    DIR *const d = job->opt->warn != NULL ? opendir(folder) : NULL;

    if (d == NULL)
        return;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || is_read(e->d_name) || !is_file(dirfd(d), e->d_name))
            continue;
        const char *const name = meant(folder, e->d_name);
        if (name != NULL) {
            snprintf(line, sizeof(line), "%s/%s: is not read; was %s meant?", folder, e->d_name, name);
            warn(job, line);
        } else if (count++ < MOST_NAMED && used < sizeof(others)) {
            used += (size_t)snprintf(others + used, sizeof(others) - used, "%s%s", count > 1 ? ", " : "", e->d_name);
        }
    }
    closedir(d);
    if (count == 0)
        return;
    snprintf(line, sizeof(line), "%s: nothing reads %s%s", folder, others, count > MOST_NAMED ? " and others" : "");
    warn(job, line);
}
