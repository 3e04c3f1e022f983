#include "train/outputs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/external_sort.h"
#include "base/file.h"
#include "base/size.h"
#include "session/store_rows.h"
#include "store/store_write.h"
#include "train/run_internal.h" /* gs_run__folder() */

/* ---- where a run may write ----------------------------------------------- */

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

/* NULL: of no file. */
static gs_file_identity identity_of(const char *path)
{
    return path != NULL ? gs_file_identity_of(path) : (gs_file_identity){0};
}

/* ---- stores -------------------------------------------------------------- */

static bool is_store(void *context, const char *dir)
{
    (void)context;
    return gs_store_is_at(dir);
}

/* Is it, under another name, a file in the folder `dir`? */
static bool is_linked_into(const gs_file_identity *p, const char *dir)
{
    GS_ENDS(gs_closedir_at) DIR *const d = p->there && !p->sink ? opendir(dir) : NULL;
    bool found = false;

    if (d == NULL)
        return false;
    for (const struct dirent *e; !found && (e = readdir(d)) != NULL;) {
        GS_FREED char *const path = gs_path_join(dir, e->d_name);
        if (path != NULL) {
            const gs_file_identity there = gs_file_identity_of(path);
            found = there.there && there.device == p->device && there.inode == p->inode;
        }
    }
    return found;
}

static gs_status check_stores(const named *out, const gs_file_identity *p, const char *store)
{
    const char *const space = space_after(out->option);
    bool inside = false;

    GS_TRY(gs_path_climb(&inside, out->path, is_store, NULL));
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
    GS_FREED char *const own = gs_path_without_slashes(folder);
    GS_FREED char *const above = gs_path_folder(file);

    GS_NEED(own != NULL && above != NULL, "%s: out of memory", file);
    gs_file_identity of = gs_file_identity_of(own);
    const gs_file_identity p = gs_file_identity_of(file), in = gs_file_identity_of(above);
    *inside = gs_file_identity_is_same(&p, &of) || gs_file_identity_is_same(&in, &of);
    return *inside ? GS_OK : gs_path_climb(inside, file, is_place, &of);
}

/* Checkpoints are removed in their turn, and what is beside them must not be taken for one. */
static gs_status check_checkpoints(const named *out, const named *folder)
{
    bool inside = false;

    GS_TRY(is_within(&inside, out->path, folder->path));
    if (!inside)
        return GS_OK;
    return gs_fail(GS_EINVAL, "%s%s%s: is in the folder of %s, which is for checkpoints alone; choose another folder",
                   out->option, space_after(out->option), out->path, folder->option);
}

/* Nor do checkpoints go into a store, or where an input is. */
static gs_status check_folder(const named *folder, const gs_train_options *o, gs_run_kind kind)
{
    GS_FREED char *const inner = gs_path_join(folder->path, "epoch"); /* any name in it */
    GS_FREED char *const own = gs_path_without_slashes(folder->path);
    named in[INPUTS];
    bool inside = false;

    GS_NEED(inner != NULL && own != NULL, "%s: out of memory", folder->path);
    GS_TRY(gs_path_climb(&inside, inner, is_store, NULL));
    if (!inside) /* one that is still to be made */
        GS_TRY(gs_path_climb(&inside, own, is_store, NULL));
    if (inside)
        return gs_fail(GS_EINVAL, "%s %s: is in the folder of a store; choose another folder", folder->option,
                       folder->path);
    list_inputs(in, o, kind);
    for (uint32_t i = 0; i < INPUTS; i++) {
        const gs_file_identity p = identity_of(in[i].path), q = gs_file_identity_of(folder->path);
        if (p.there && gs_file_identity_is_same(&p, &q))
            return gs_fail(GS_EINVAL, "%s %s: is the file of %s, which is read; give the name of a folder",
                           folder->option, folder->path, in[i].option);
    }
    return GS_OK;
}

/* ---- what is there already ----------------------------------------------- */

/* Arrays of a graph that a store may have been made from (partition/input_files.h). */
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
    GS_FREED char *const folder = gs_path_folder(out->path);
    GS_FREED char *const edges = folder != NULL ? gs_path_join(folder, "edges.npy") : NULL;

    GS_NEED(edges != NULL, "%s: out of memory", out->path);
    if (is_raw(gs_path_name(out->path)) && gs_path_exists(edges))
        return gs_fail(GS_EINVAL, "%s%s%s: is an array of the graph in that folder; give another name", out->option,
                       space_after(out->option), out->path);
    return GS_OK;
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

/* Checks a file that stands at `path`, where there is one: GS_EEXIST where its first bytes are not of that kind (an
 * empty one is of any); GS_EINVAL where it is an array of a graph, beside the graph's edges; GS_EIO. `option` may be
 * "". */
static gs_status check_kind(const char *option, const char *path, gs_file_kind kind)
{
    static const char *const names[] = {[GS_FILE_KIND_TEXT] = "text", [GS_FILE_KIND_JSON] = "JSON",
                                        [GS_FILE_KIND_NPY] = ".npy", [GS_FILE_KIND_SAFETENSORS] = ".safetensors"};
    const named out = {option, path, kind};
    unsigned char head[64];
    struct stat sb;

    if (lstat(path, &sb) != 0 || !S_ISREG(sb.st_mode) || sb.st_size == 0)
        return GS_OK; /* what else may stand there is base/outfile.h's to say */
    GS_CLOSED const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head));
    if (n < 0)
        return gs_fail_errno(errno, "%s%s%s: is there already, and cannot be read; remove it or give another name",
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
        const gs_file_identity q = identity_of(in[i].path);
        if (q.there && !q.sink && gs_file_identity_is_same(&p, &q))
            return gs_fail(GS_EINVAL, "%s%s%s: is the file of %s, which is read; give another name",
                           out->option, space_after(out->option), out->path, in[i].option);
    }
    const named folder = checkpoints_of(o, kind);
    GS_TRY(check_stores(out, &p, store));
    GS_TRY(check_kind(out->option, out->path, out->kind));
    return folder.path == NULL || p.sink ? GS_OK : check_checkpoints(out, &folder);
}

gs_status gs_outputs_check(const gs_train_options *o, gs_run_kind kind, const char *store)
{
    const named out[] = {{".save", o->save, GS_FILE_KIND_SAFETENSORS}, {".logits", o->logits, GS_FILE_KIND_NPY},
                         {".argmax", o->argmax, GS_FILE_KIND_NPY}, {".scores", o->scores, GS_FILE_KIND_NPY},
                         {".targets", o->targets, GS_FILE_KIND_NPY},
                         {".metrics", o->metrics, GS_FILE_KIND_JSON},
                         {".trace", o->trace, GS_FILE_KIND_JSON}};
    const named folder = checkpoints_of(o, kind);

    GS_TRY(folder.path != NULL ? check_folder(&folder, o, kind) : GS_OK);
    for (size_t i = 0; i < GS_ARRAY_LEN(out); i++) {
        const gs_file_identity p = identity_of(out[i].path);
        if (out[i].path == NULL)
            continue;
        for (size_t k = 0; k < i; k++) {
            const gs_file_identity q = identity_of(out[k].path);
            if (out[k].path != NULL && !p.sink && gs_file_identity_is_same(&p, &q))
                return gs_fail(GS_EINVAL, "%s and %s both name %s", out[k].option, out[i].option, out[i].path);
        }
        GS_TRY(check(&out[i], o, kind, store));
    }
    return GS_OK;
}

gs_status gs_outputs_check_one(const gs_train_options *o, gs_run_kind kind, const char *store, const char *path,
                               gs_file_kind output)
{
    return check(&(named){"", path, output}, o, kind, store);
}

/* ---- logits -------------------------------------------------------------- */

#define LEAST_MEMORY (64u << 10)  /* bytes */

void gs_logits_range(uint64_t *first, uint64_t *rows, const gs_store *store)
{
    const gs_store_info *const info = gs_store_get_info(store);
    const gs_type_table *const t = info->types;
    const bool typed = t != NULL && t->labelled < t->types;

    *first = typed ? t->type[t->labelled].first : 0;
    *rows = typed ? t->type[t->labelled].vertices : info->vertices;
}

/* Rows that a job is of. */
static uint64_t rows_of_job(const gs_logits_job *job)
{
    return job->rows > 0 ? job->rows : gs_store_get_info(job->store)->vertices;
}

/* Is the row of this input id wanted? Ids that no vertex can have are, so that they are found. */
static bool is_wanted(const gs_logits_job *job, uint32_t id)
{
    const uint64_t vertices = gs_store_get_info(job->store)->vertices;
    return id >= vertices || (id >= job->first && id - job->first < rows_of_job(job));
}

/* Rows [window * window_rows, + window_rows) go to one window: a bucket of records, each a u32 row and its numbers. */
typedef struct dealer {
    const gs_logits_job *job;
    gs_outfile *out;
    uint64_t data_offset;
    uint64_t rows, row_bytes, window_rows, batch_rows;
    uint32_t windows, record_words;
    unsigned char *window;   /* [window_rows, row_bytes]; the caller's where all goes into memory */
    unsigned char *seen;     /* [window_rows] bits: rows of the window that are filled */
    uint64_t *dealt;         /* [windows] records so far */
    float *batch;            /* [batch_rows, classes] in store order */
    uint64_t buffers;        /* bytes of the windows' buffers, then of what is read of one at once */
    gs_external_sort *sort;  /* in job->scratch_dir; NULL for one window */
    gs_arena memory;
} dealer;

static uint64_t rows_of_window(const dealer *d, uint64_t w)
{
    return GS_MIN(d->window_rows, d->rows - w * d->window_rows);
}

static gs_status not_a_permutation(const gs_logits_job *job)
{
    return gs_fail(GS_EFORMAT, "%s: %s.bin holds an id twice or one out of range; make the store again",
                   gs_store_dir(job->store), gs_array_stem(GS_ARRAY_INPUT_ID));
}

/* Sizes: half of the memory for the window, a quarter for buckets, the rest for
 * a batch of rows and the bits. */
static void dealer_sizes(dealer *d, uint64_t logit_bytes, const gs_logits_job *job)
{
    const uint64_t half = GS_MAX(job->memory, LEAST_MEMORY) / 2;
    const uint64_t batch = half / 4 / logit_bytes;

    d->window_rows = GS_MAX(1, GS_MIN(half / d->row_bytes, d->rows));
    d->windows = (uint32_t)gs_div_up(d->rows, d->window_rows);
    /* A batch is what one checksummed block of ids names, at most. */
    d->batch_rows = GS_MAX(1, GS_MIN(batch, GS_SUM_BYTES / sizeof(uint32_t)));
    d->buffers = half / 2;
}

/* All but the window. */
static bool take_arrays(dealer *d)
{
    d->seen = gs_arena_take(&d->memory, d->window_rows / 8 + 1, 1);
    d->batch = gs_arena_take(&d->memory, d->batch_rows, d->job->classes * sizeof(float));
    d->dealt = gs_arena_take(&d->memory, d->windows, sizeof(*d->dealt));
    return !d->memory.is_short;
}

static gs_status dealer_init(dealer *d, gs_outfile *o, uint64_t data_offset, const gs_logits_job *job)
{
    const uint64_t logit_bytes = (uint64_t)job->classes * sizeof(float);
    const uint64_t row_bytes = job->form == GS_LOGITS_ARGMAX ? sizeof(int64_t) : logit_bytes;

    *d = (dealer){.job = job, .out = o, .data_offset = data_offset, .row_bytes = row_bytes};
    d->rows = rows_of_job(job);
    d->record_words = 1 + (uint32_t)(row_bytes / sizeof(uint32_t));
    dealer_sizes(d, logit_bytes, job);
    d->window = gs_arena_take(&d->memory, d->window_rows, row_bytes);
    GS_NEED(take_arrays(d), "%s: no memory to put the logits in order", o->path);
    return GS_OK;
}

static gs_status make_sort(dealer *d)
{
    const gs_sort_spec spec = {.dir = d->job->scratch_dir, .name = "logits", .buckets = d->windows, .writers = 1,
                               .words = d->record_words, .memory = d->buffers, .each = d->window_rows};
    const gs_status st = gs_sort_make(&d->sort, &spec);
    return st == GS_OK || st == GS_ENOMEM ? st : gs_fail_hint(st, "choose another folder with .spill");
}

static void dealer_free(dealer *d)
{
    gs_sort_free(d->sort);
    gs_arena_free(&d->memory);
}

/* Puts the row of input id `id` into its place in the window that starts at `base`. */
static gs_status place(dealer *d, uint64_t base, uint32_t id, const void *row)
{
    const uint64_t r = id - base;

    if (d->seen[r / 8] >> (r % 8) & 1)
        return not_a_permutation(d->job);
    d->seen[r / 8] |= (unsigned char)(1u << (r % 8));
    memcpy(d->window + r * d->row_bytes, row, d->row_bytes);
    return GS_OK;
}

/* A row of logits that a user can compare. */
static gs_status check_row(const float *row, const gs_logits_job *job, uint32_t id)
{
    for (uint32_t c = 0; c < job->classes && job->form != GS_LOGITS_ROWS; c++)
        if (!isfinite(row[c]))
            return gs_fail(GS_EDEVICE, "the logit of vertex %u for class %u is %s", id, c,
                           isnan(row[c]) ? "not a number" : "infinite");
    return GS_OK;
}

/* In float64, of numbers below the row's largest, as libraries of float32 have it to their last bits. */
static void softmax(float *row, uint32_t classes)
{
    float most = row[0];
    double sum = 0;

    for (uint32_t c = 1; c < classes; c++)
        most = GS_MAX(most, row[c]);
    for (uint32_t c = 0; c < classes; c++)
        sum += exp((double)row[c] - (double)most);
    for (uint32_t c = 0; c < classes; c++)
        row[c] = (float)(exp((double)row[c] - (double)most) / sum);
}

/* The row in its form: itself, or `own`. */
static const void *form_of(float *row, int64_t *own, const gs_logits_job *job)
{
    if (job->form == GS_LOGITS_SOFTMAX)
        softmax(row, job->classes);
    for (uint32_t c = 0; c < job->classes && job->form == GS_LOGITS_SIGMOID; c++)
        row[c] = (float)(1 / (1 + exp(-(double)row[c])));
    if (job->form != GS_LOGITS_ARGMAX)
        return row;
    *own = 0;
    for (uint32_t c = 1; c < job->classes; c++)
        if (row[c] > row[*own])
            *own = c;
    return own;
}

static gs_status deal(dealer *d, uint32_t id, const void *row)
{
    const uint32_t w = (uint32_t)(id / d->window_rows);

    if (id >= d->rows || d->dealt[w] == rows_of_window(d, w))
        return not_a_permutation(d->job);
    d->dealt[w]++;
    if (d->windows == 1)
        return place(d, 0, id, row);
    uint32_t *const record = gs_sort_put(d->sort, 0, w);
    if (record == NULL)
        return gs_sort_failure(d->sort);
    *record = id;
    memcpy(record + 1, row, d->row_bytes);
    return GS_OK;
}

/* Deals rows [first, first + count), whose input ids are at `id`. */
static gs_status deal_rows(dealer *d, uint64_t first, uint64_t count, const uint32_t *id)
{
    for (uint64_t at = 0; at < count; at += d->batch_rows) {
        const uint64_t n = GS_MIN(d->batch_rows, count - at);
        if (d->job->stop != NULL && *d->job->stop)
            return gs_fail(GS_EINTERRUPTED, "interrupted while the logits are put in order");
        GS_TRY(d->job->source(d->job->context, first + at, n, d->batch));
        for (uint64_t i = 0; i < n; i++) {
            float *const row = d->batch + i * d->job->classes;
            int64_t own;
            if (is_wanted(d->job, id[at + i])) {
                GS_TRY(check_row(row, d->job, (uint32_t)(id[at + i] - d->job->first)));
                GS_TRY(deal(d, (uint32_t)(id[at + i] - d->job->first), form_of(row, &own, d->job)));
            }
        }
    }
    return GS_OK;
}

static gs_status deal_all(dealer *d)
{
    GS_ENDS(gs_block_reader_close) gs_block_reader ids = {0};
    gs_status st = gs_block_reader_open(&ids, d->job->store, GS_ARRAY_INPUT_ID);

    while (gs_block_reader_more(&ids, &st))
        st = deal_rows(d, ids.at / sizeof(uint32_t), ids.bytes / sizeof(uint32_t), ids.block);
    return st == GS_OK && d->sort != NULL ? gs_sort_finish(d->sort) : st;
}

/* Puts window `w` in order, its records read into `piece`. */
static gs_status order_window(dealer *d, uint32_t w, uint32_t *piece, uint64_t cap)
{
    gs_sort_cursor at = gs_sort_first(d->sort, w);
    uint64_t count = 1;

    memset(d->seen, 0, d->window_rows / 8 + 1);
    while (count != 0) {
        GS_TRY(gs_sort_read(d->sort, &at, piece, cap, &count));
        for (const uint32_t *record = piece; record < piece + count * d->record_words; record += d->record_words)
            GS_TRY(place(d, w * d->window_rows, *record, record + 1));
    }
    return GS_OK;
}

static gs_status write_windows(dealer *d)
{
    const uint64_t record = d->record_words * sizeof(uint32_t), cap = GS_MAX(d->buffers / record, 1);
    GS_FREED uint32_t *const piece = d->windows > 1 ? gs_malloc_array(cap, record) : NULL;

    GS_NEED(d->windows <= 1 || piece != NULL, "%s: no memory to put the logits in order", d->out->path);
    for (uint32_t w = 0; w < d->windows; w++) {
        if (d->dealt[w] != rows_of_window(d, w))
            GS_TRY(not_a_permutation(d->job));
        else if (d->windows > 1)
            GS_TRY(order_window(d, w, piece, cap));
        GS_TRY(gs_outfile_write(d->out, d->window, rows_of_window(d, w) * d->row_bytes,
                                d->data_offset + w * d->window_rows * d->row_bytes));
    }
    return GS_OK;
}

gs_status gs_logits_write(gs_outfile *o, uint64_t data_offset, const gs_logits_job *job)
{
    GS_ENDS(dealer_free) dealer d = {0};

    GS_TRY(dealer_init(&d, o, data_offset, job));
    if (d.windows > 1)
        GS_TRY(make_sort(&d));
    GS_TRY(deal_all(&d));
    return write_windows(&d);
}

/* ---- into memory --------------------------------------------------------- */

gs_status gs_logits_place(float *out, const gs_logits_job *job)
{
    const uint64_t rows = rows_of_job(job), row_bytes = job->classes * sizeof(float);
    GS_ENDS(dealer_free) dealer d = {
        .job = job, .rows = rows, .row_bytes = row_bytes, .window_rows = rows, .windows = 1,
        .window = (unsigned char *)out,
        .batch_rows = GS_MIN(GS_MAX(job->memory / row_bytes, 1), GS_SUM_BYTES / sizeof(uint32_t))};

    return take_arrays(&d) ? deal_all(&d) : gs_fail(GS_ENOMEM, "no memory to put the logits in order");
}

/* ---- ids of the input ---------------------------------------------------- */

#define PIECE GS_SUM_BYTES

/* names.bin without its padding, each piece checked. */
static gs_status copy_names(const gs_store *s, gs_outfile *o, char *piece)
{
    const gs_array_info *const a = gs_store_array(s, GS_ARRAY_NAMES);
    GS_CLOSED int fd = -1;

    GS_TRY(gs_store_open_array(&fd, s, GS_ARRAY_NAMES));
    for (uint64_t at = 0; at < a->bytes; at += PIECE) {
        const uint64_t bytes = GS_MIN(PIECE, a->bytes - at);
        GS_TRY(gs_pread_exact(fd, piece, bytes, at, "names.bin"));
        if (gs_hash64(piece, bytes) != a->sums[at / GS_SUM_BYTES])
            return gs_fail(GS_EFORMAT, "%s/names.bin: checksum mismatch; the store is damaged: make it again",
                           gs_store_dir(s));
        GS_TRY(gs_outfile_write(o, piece, bytes, at));
    }
    return GS_OK;
}

/* Without names, ids are numbers from 0. */
static gs_status write_numbers(const gs_store *s, gs_outfile *o, char *piece)
{
    uint64_t first, n, fill = 0, offset = 0;

    gs_logits_range(&first, &n, s);
    for (uint64_t v = 0; v < n; v++) {
        fill += (uint64_t)snprintf(piece + fill, PIECE - fill, "%lu\n", v);
        if (fill + 32 < PIECE && v + 1 < n)
            continue;
        GS_TRY(gs_outfile_write(o, piece, fill, offset));
        offset += fill;
        fill = 0;
    }
    return GS_OK;
}

gs_status gs_write_ids(const char *store, const char *path)
{
    GS_ENDS(gs_outfile_abandon) gs_outfile o = GS_OUTFILE_NONE;
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;
    GS_FREED char *folder = NULL;
    GS_FREED char *const piece = gs_malloc(PIECE);

    GS_TRY(gs_check_argument(store, "store"));
    GS_TRY(gs_check_argument(path, "path"));
    GS_TRY(gs_run__folder(&folder, store));
    GS_TRY(gs_store_open_part(&s, folder));
    GS_NEED(piece != NULL, "%s: no memory to write ids", store);
    GS_TRY(check_kind("", path, GS_FILE_KIND_TEXT));
    GS_TRY(gs_outfile_begin(&o, path));
    GS_TRY(gs_store_array(s, GS_ARRAY_NAMES)->present ? copy_names(s, &o, piece) : write_numbers(s, &o, piece));
    return gs_outfile_finish(&o);
}
