/* Packed input: a file of any bytes behind gzip's or Zstandard's first ones is read to its end or refused with a text,
 * and what is packed here comes back as it was, however it is cut into frames and read.
 *
 * Input: u8 way, u8 size of a read, and the file's bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "base/size.h"
#include "fuzz.h"
#include "fuzz_input.h"
#include "partition/text_lines.h"

#define MOST_UNPACKED (4u << 20) /* of a bomb no more is read */
enum { AS_IT_IS, GRAPH, PACK_GZIP, PACK_ZSTANDARD, WAYS };

/* What a stream gives, in reads of `step` bytes, against `want` where that is known. */
static gs_status read_all(const char *path, size_t step, const uint8_t *want, size_t size)
{
    gs_stream *s = NULL;
    uint8_t *const piece = malloc(step); /* of its exact size, so that a sanitizer sees a byte beyond */
    uint64_t total = 0, got = step;
    gs_status st = gs_part__stream_open(&s, path, 8 * GS_MIB);

    while (st == GS_OK && got == step && total < MOST_UNPACKED) {
        if ((st = gs_part__stream_read(s, piece, step, &got)) != GS_OK)
            break;
        gs_fuzz_require(got <= step, "no more is read than asked for");
        gs_fuzz_require(want == NULL || (total + got <= size && memcmp(want + total, piece, got) == 0),
                        "what is unpacked is what was packed");
        const double done = gs_part__stream_done(s);
        gs_fuzz_require(done >= 0 && done <= 1, "a part of the file was read");
        total += got;
    }
    gs_fuzz_require(want == NULL || (st == GS_OK && total == size), "what is packed here is read to its end");
    gs_part__stream_close(s);
    free(piece);
    return st;
}

static size_t pack_gzip(uint8_t *to, size_t room, const uint8_t *from, size_t size)
{
    z_stream z = {0};
    if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    z.next_in = (uint8_t *)(uintptr_t)from;
    z.avail_in = (unsigned)size;
    z.next_out = to;
    z.avail_out = (unsigned)room;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    deflateEnd(&z);
    return room - z.avail_out;
}

/* In two frames, cut where `cut` says. */
static void pack_and_read(bool gzip, size_t step, size_t cut, const uint8_t *data, size_t size)
{
    const size_t room = 2 * (size + 1024), part[2] = {GS_MIN(cut, size), size - GS_MIN(cut, size)};
    uint8_t *const packed = malloc(room);
    size_t n = 0;
    for (int k = 0; k < 2; k++) {
        const uint8_t *const from = k == 0 ? data : data + part[0];
        n += gzip ? pack_gzip(packed + n, room - n, from, part[k])
                  : ZSTD_compress(packed + n, room - n, from, part[k], 1);
    }
    const gs_status st = read_all(gs_fuzz_file("packed", packed, n), step, data, size);
    free(packed);
    gs_fuzz_judge(st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const size_t step = data[1] == 0 ? 65536 : data[1];
    switch (data[0] % WAYS) {
    case AS_IT_IS:
        gs_fuzz_judge(read_all(gs_fuzz_file("packed", data + 2, size - 2), step, NULL, 0));
        break;
    case GRAPH:
        gs_fuzz_input(gs_fuzz_file("edges.txt.gz", data + 2, size - 2));
        break;
    default:
        pack_and_read(data[0] % WAYS == PACK_GZIP, step, (size_t)data[1] * 3, data + 2, size - 2);
    }
    return 0;
}

/* An edge list, packed each way, as bytes and as a graph; then one that is packed here. */
size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    static const char text[] = "# a comment\n0 1\n1\t2\r\n2 0\n0 1\n3 3\n7 2\n7 2\n7 2\n7 2\n";
    const size_t size = sizeof(text) - 1;
    if (k > 5)
        return 0;
    data[0] = (uint8_t)(k < 4 ? (k < 2 ? AS_IT_IS : GRAPH) : k == 4 ? PACK_GZIP : PACK_ZSTANDARD);
    data[1] = (uint8_t)(k == 0 ? 0 : 7);
    if (k > 3) {
        memcpy(data + 2, text, size);
        return 2 + size;
    }
    if (k % 2 == 0)
        return 2 + pack_gzip(data + 2, capacity - 2, (const uint8_t *)text, size);
    return 2 + ZSTD_compress(data + 2, capacity - 2, text, size, 3);
}
