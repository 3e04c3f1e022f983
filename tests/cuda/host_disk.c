#include "host_disk.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/size.h"
#include "host_memory.h"
#include "host_streams.h"

#define BLOCKS ((size_t)1 << 20) /* of host memory that the disk was at, at most half of them: 2 GiB */

/* What the disk does, and did, at a block of host memory. Index: gs_io_request.write. */
typedef struct block {
    uintptr_t number;      /* address / GS_BLOCK_BYTES; 0: free */
    uint32_t under_way[2]; /* requests */
    uint32_t ended[2];     /* the last that ended, in the disk's clock; 0: none */
} block;

static block *blocks; /* a hash table with linear probing */

/* The block's entry, or the free one that would be its. */
static block *entry_of(uintptr_t number)
{
    size_t i = (size_t)((uint64_t)number * 0x9e3779b97f4a7c15u >> 32) % BLOCKS;
    while (blocks[i].number != 0 && blocks[i].number != number)
        i = (i + 1) % BLOCKS;
    return &blocks[i];
}

static block *make_entry(uintptr_t number)
{
    static size_t used;
    if (blocks == NULL)
        blocks = mmap(NULL, BLOCKS * sizeof(*blocks), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (blocks == MAP_FAILED || used == BLOCKS / 2) {
        fprintf(stderr, "host GPU: no room to remember where in host memory the disk was\n");
        abort();
    }
    block *const b = entry_of(number);
    used += b->number == 0;
    b->number = number;
    return b;
}

static const char *transfer(bool write) { return write ? "a write to the disk" : "a read of the disk"; }

/* Work that runs, against the disk's transfers one way. */
static void need_order(const block *b, const host_work *w, bool writes, bool transfer_writes)
{
    const bool under_way = b->under_way[transfer_writes] > 0;
    if (!under_way && b->ended[transfer_writes] <= w->clock[HOST_DISK])
        return;
    fprintf(stderr, "host GPU: RACE: \"%s\" (stream %u) %s host memory %p, where %s %s, and nothing orders them\n",
            w->what, host_stream_number(w->stream), writes ? "writes" : "reads", (void *)(b->number * GS_BLOCK_BYTES),
            transfer(transfer_writes), under_way ? "is under way" : "was");
    abort();
}

void host_disk_access(const void *p, size_t bytes, bool write)
{
    const uintptr_t first = (uintptr_t)p / GS_BLOCK_BYTES, last = ((uintptr_t)p + bytes - 1) / GS_BLOCK_BYTES;
    for (uintptr_t n = first; n <= last && blocks != NULL; n++) {
        const block *const b = entry_of(n);
        if (b->number == 0)
            continue;
        need_order(b, host_streams_running(), write, false);
        if (write)
            need_order(b, host_streams_running(), write, true);
    }
}

static void begin(block *b, const gs_io_request *r)
{
    if (b->under_way[false] > 0 || (!r->write && b->under_way[true] > 0)) {
        fprintf(stderr, "host GPU: RACE: %s begins at host memory %p, where %s is under way\n", transfer(r->write),
                (void *)(b->number * GS_BLOCK_BYTES), transfer(b->under_way[false] == 0));
        abort();
    }
    b->under_way[r->write]++;
}

void host_disk_request(const gs_io_request *r, bool ended)
{
    const uintptr_t first = (uintptr_t)r->memory / GS_BLOCK_BYTES,
                    last = ((uintptr_t)r->memory + r->length - 1) / GS_BLOCK_BYTES;
    host_gpu_lock();
    const uint32_t now = ended ? host_streams_disk_ended() : 0;
    for (uintptr_t n = first; n <= last; n++) {
        block *const b = make_entry(n);
        if (ended) {
            b->under_way[r->write]--;
            b->ended[r->write] = now;
        } else {
            begin(b, r);
        }
    }
    host_gpu_unlock();
}
