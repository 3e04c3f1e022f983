/* input_ogb.c - the folders of the Open Graph Benchmark: raw/{edge,node-feat,node-label,num-node-list}.csv.gz and
 * split/NAME/{train,valid,test}.csv.gz, as the ogb package downloads and reads them. */
#include "partition/input_ogb.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/input_npy.h"
#include "partition/input_table.h"
#include "partition/job.h"

/* DIR/NAME.csv, .csv.gz or .csv.zst, whichever is there; *path is NULL where none is. */
static gs_status find_table(char **path, const char *dir, const char *name)
{
    static const char *const ends[] = {".csv.gz", ".csv", ".csv.zst"};
    char file[300];

    for (size_t i = 0; i < GS_ARRAY_LEN(ends); i++) {
        snprintf(file, sizeof(file), "%s%s", name, ends[i]);
        if ((*path = gs_path_join(dir, file)) == NULL)
            return gs_fail(GS_ENOMEM, "%s: no memory for a path", dir);
        if (!gs_path_is_absent(*path))
            return GS_OK;
        gs_free(*path);
    }
    *path = NULL;
    return GS_OK;
}

bool gs_part__ogb_looks(const char *path)
{
    char *table = NULL;
    const bool found = find_table(&table, path, "raw/edge") == GS_OK && table != NULL;
    gs_free(table);
    return found;
}

/* Not an error where the table is not there. */
static gs_status read_table(gs_part_file *f, gs_part_job *job, const char *dir, const char *name, gs_dtype as)
{
    char *path = NULL;
    const gs_status st = find_table(&path, dir, name);
    return st != GS_OK || path == NULL ? st : gs_part__table_read(f, job, path, as);
}

/* The one number of a list that has one for each graph of the folder; 0 where there is no such table. */
static gs_status read_count(uint64_t *out, const gs_part_input *in, gs_part_job *job, const char *name)
{
    gs_part_file f = {.npy.fd = -1};
    int64_t v = 0;
    gs_status st = read_table(&f, job, in->path, name, GS_I64);

    if (st == GS_OK && f.path != NULL) {
        if (f.npy.shape[0] != 1 || f.npy.shape[1] != 1)
            st = gs_fail(GS_EFORMAT, "%s: counts %llu graphs; a store holds one", f.path,
                         (unsigned long long)(f.npy.shape[0] * f.npy.shape[1]));
        else if ((st = gs_npy_read_rows(&f.npy, &v, 0, 1, f.path)) == GS_OK && v < 1)
            st = gs_fail(GS_EFORMAT, "%s: line 1: is %lld, must be at least 1", f.path, (long long)v);
    }
    gs_part__file_close(&f);
    if (st == GS_OK)
        *out = (uint64_t)v;
    return st;
}

/* The only folder in split/, as "split/NAME"; "" where there is none. */
static gs_status find_split(char *out, size_t room, const char *path)
{
    char *const split = gs_path_join(path, "split");
    gs_status st = GS_OK;

    *out = '\0';
    if (split == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for a path", path);
    DIR *const d = opendir(split);
    for (const struct dirent *e; d != NULL && st == GS_OK && (e = readdir(d)) != NULL;) {
        char *const folder = gs_path_join(split, e->d_name);
        if (e->d_name[0] != '.' && folder != NULL && gs_path_is_dir(folder)) {
            if (*out != '\0')
                st = gs_fail(GS_EFORMAT, "%s: has more than one way to split; move all but one away", split);
            snprintf(out, room, "split/%s", e->d_name);
        }
        gs_free(folder);
    }
    if (d != NULL)
        closedir(d);
    gs_free(split);
    return st;
}

static gs_status read_splits(gs_part_input *in, gs_part_job *job)
{
    static const char *const names[] = {"train", "valid", "test"};
    char folder[280], name[296];
    gs_status st = find_split(folder, sizeof(folder), in->path);

    for (int i = 0; i < 3 && st == GS_OK && *folder != '\0'; i++) {
        snprintf(name, sizeof(name), "%s/%s", folder, names[i]);
        st = read_table(&in->split[i], job, in->path, name, GS_I64);
    }
    return st;
}

static void warn(const gs_part_job *job, const char *path, const char *what)
{
    char line[512];

    if (job->opt->warn == NULL)
        return;
    snprintf(line, sizeof(line), "%s: %s", path, what);
    for (char *c = line; *c != '\0'; c++)
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    job->opt->warn(job->opt->context, line);
}

/* What is there and nothing reads, and what the ogb package would add. */
static gs_status warn_of_rest(const gs_part_input *in, const gs_part_job *job)
{
    static const char *const unread[] = {"raw/edge-feat", "raw/edge_reltype", "raw/node_year", "raw/node_species"};

    for (size_t i = 0; i < GS_ARRAY_LEN(unread); i++) {
        char *path = NULL;
        const gs_status st = find_table(&path, in->path, unread[i]);
        if (st != GS_OK)
            return st;
        if (path != NULL)
            warn(job, path, "is not read");
        gs_free(path);
    }
    if (!job->opt->undirected && (strstr(in->path, "products") != NULL || strstr(in->path, "proteins") != NULL))
        warn(job, in->path, "ogb's loader adds the inverse of each edge of ogbn-products and ogbn-proteins, which are "
                            "stored once; partition with .undirected for the same");
    return GS_OK;
}

gs_status gs_part__ogb_read(gs_part_input *in, gs_part_job *job)
{
    uint64_t vertices = 0, edges = 0;
    gs_status st;

    if ((st = warn_of_rest(in, job)) != GS_OK ||
        (st = read_count(&vertices, in, job, "raw/num-node-list")) != GS_OK ||
        (st = read_count(&edges, in, job, "raw/num-edge-list")) != GS_OK ||
        (st = read_table(&in->edge, job, in->path, "raw/edge", GS_I64)) != GS_OK ||
        (st = read_table(&in->feature, job, in->path, "raw/node-feat", GS_F32)) != GS_OK ||
        (st = read_table(&in->label, job, in->path, "raw/node-label", GS_F64)) != GS_OK ||
        (st = read_splits(in, job)) != GS_OK)
        return st;
    if (edges != 0 && edges != in->edge.npy.shape[0])
        return gs_fail(GS_EFORMAT, "%s: has %llu lines; raw/num-edge-list says %llu edges", in->edge.path,
                       (unsigned long long)in->edge.npy.shape[0], (unsigned long long)edges);
    if (in->feature.npy.fd >= 0)
        in->feature.npy.dims = 2;
    return gs_part__files_check(in, vertices);
}
