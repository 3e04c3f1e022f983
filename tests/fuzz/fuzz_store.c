/* A store whose files were changed is refused with a text, or each of its chunks may be followed.
 *
 * Input: a byte, which of three tiny stores; then changes of 12 bytes each: u8 file, u8 how (bit 0: the checksums
 * above are made right again; bits 1 and 2: 1, 2, 4 or 8 bytes; bit 3: the file is cut there instead; bit 4: it gets
 * that much longer), u16 offset, u64 value. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/size.h"
#include "fuzz.h"
#include "store/chunk_view.h"
#include "store/store_internal.h"
#include "tiny_store.h"

#define CHANGE_BYTES 12u
#define MOST_CHANGES 6u
#define MOST_FILES 16u

typedef struct kept_file {
    char name[GS_FILE_NAME_BYTES];
    unsigned char *data;
    size_t bytes;
    bool changed;
} kept_file;

typedef struct kept_store {
    char dir[300];
    kept_file file[MOST_FILES];
    unsigned files;
    bool forged; /* checksums were made anew: any file may be another */
} kept_store;

static kept_store stores[3];

static void keep(kept_store *s, unsigned k)
{
    static const tiny_graph *const graphs[] = {&tiny_plain, &tiny_symmetric, &tiny_rich};
    snprintf(s->dir, sizeof(s->dir), "%s/store%u", gs_fuzz_folder(), k);
    tiny_write(s->dir, graphs[k]);
    for (unsigned f = 0; f < GS_STORE_FILES; f++) {
        kept_file *const to = &s->file[s->files];
        char buf[GS_FILE_NAME_BYTES], path[400];
        snprintf(to->name, sizeof(to->name), "%s", gs_store__file_name(buf, f));
        snprintf(path, sizeof(path), "%s/%s", s->dir, to->name);
        if (access(path, F_OK) != 0)
            continue;
        to->data = tiny_read(s->dir, to->name, &to->bytes);
        s->files++;
    }
}

static void restore(kept_store *s)
{
    for (unsigned f = 0; f < s->files; f++)
        if (s->forged || s->file[f].changed) {
            tiny_replace(s->dir, s->file[f].name, s->file[f].data, s->file[f].bytes);
            s->file[f].changed = false;
        }
    s->forged = false;
}

/* A file's size is changed, which no checksum covers. */
static void resize(const kept_store *s, const kept_file *f, uint64_t bytes)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/%s", s->dir, f->name);
    if (truncate(path, (off_t)bytes) != 0)
        abort();
}

/* The manifest is fuzz_manifest's, so it is changed but not made right again. After a change of a size, of the manifest
 * or of the chunk table no checksum is made anew: what does that believes them (`wild`). */
static void change(kept_store *s, const uint8_t *c, bool *wild)
{
    kept_file *const f = &s->file[c[0] % s->files];
    const size_t n = (size_t)1 << (c[1] >> 1 & 3);
    const size_t at = (size_t)(c[2] | c[3] << 8) % f->bytes;
    const bool manifest = strcmp(f->name, GS_MANIFEST_NAME) == 0;
    f->changed = true;
    if (c[1] & (8 | 16)) {
        resize(s, f, c[1] & 8 ? at : f->bytes + at);
    } else if ((c[1] & 1) && !manifest && !*wild) {
        tiny_forge(s->dir, f->name, at, c + 4, GS_MIN(n, f->bytes - at));
        s->forged = true;
    } else {
        char path[400];
        snprintf(path, sizeof(path), "%s/%s", s->dir, f->name);
        const int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || pwrite(fd, c + 4, GS_MIN(n, f->bytes - at), (off_t)at) < 0)
            abort();
        close(fd);
    }
    *wild = *wild || manifest || (c[1] & (8 | 16)) || strcmp(f->name, "chunks.bin") == 0;
}

static void follow_chunk(const gs_store *s, gs_direction d, uint32_t i, uint32_t j, const char *path)
{
    const gs_chunk_table *const t = gs_store_chunks(s);
    const gs_chunk *const c = &t->chunk[d][(uint64_t)i * t->parts + j];
    const gs_chunk_expect e = {.target_rows = gs_interval_rows(t, i), .operand_rows = gs_interval_rows(t, j),
                               .index_bytes = gs_index_bytes(t), .edges = c->edges, .targets = c->targets,
                               .operands = c->operands, .largest = c->largest};
    gs_chunk_view v;
    void *data = NULL;
    if (c->edges == 0)
        return;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || posix_memalign(&data, 16, c->length) != 0)
        abort();
    gs_fuzz_require(pread(fd, data, c->length, (off_t)c->offset) == (ssize_t)c->length, "a chunk is in its file");
    close(fd);
    gs_fuzz_require(gs_chunk_view_make(&v, data, c->length, &e, true) == GS_OK, "a verified chunk is a good one");
    free(data);
}

static void follow(const gs_store *s)
{
    const gs_chunk_table *const t = gs_store_chunks(s);
    for (int d = 0; d < 2; d++) {
        char *const path = gs_store_edges_path(s, (gs_direction)d);
        for (uint32_t i = 0; i < t->parts; i++)
            for (uint32_t j = 0; j < t->parts; j++)
                follow_chunk(s, (gs_direction)d, i, j, path);
        gs_free(path);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool wild = false;
    gs_store *open_store = NULL;
    if (size < 1)
        return 0;
    kept_store *const s = &stores[data[0] % 3];
    if (s->files == 0)
        keep(s, data[0] % 3);
    for (size_t at = 1, n = 0; at + CHANGE_BYTES <= size && n < MOST_CHANGES; at += CHANGE_BYTES, n++)
        change(s, data + at, &wild);
    gs_status st = gs_store_open(&open_store, s->dir);
    if (st == GS_OK)
        st = gs_store_verify(open_store, 4 * GS_MIB);
    gs_fuzz_judge(st);
    if (st == GS_OK)
        follow(open_store);
    gs_store_close(open_store);
    restore(s);
    return 0;
}

/* Each store as it is, and a change of every file, checksummed and not. */
size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    if (k >= 3 * MOST_FILES * 2 || capacity < 1 + CHANGE_BYTES)
        return 0;
    memset(data, 0, 1 + CHANGE_BYTES);
    data[0] = (uint8_t)(k % 3);
    data[1] = (uint8_t)(k / 6);
    data[2] = (uint8_t)(k / 3 % 2 | 4);
    data[3] = (uint8_t)(k * 8);
    data[5] = 1;
    return k < 3 ? 1 : 1 + CHANGE_BYTES;
}
