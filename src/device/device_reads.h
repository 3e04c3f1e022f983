/* device_reads.h - files that a device reads into its own memory, past the host's (GPUDirect Storage).
 *
 * A device can or cannot, and that depends on the file too: gs_device_probe_reads() finds out. The bytes never are in
 * host memory, so nobody there can look at them. What arrives is what is meant if its mark (base/fingerprint.h) is that
 * of bytes which the host has read and checked before; the device makes the mark of each read, and compares.
 *
 * Units: bytes. Offsets, lengths and places are multiples of GS_BLOCK_BYTES. Threads: one thread at a time asks for
 * reads of a device; others may launch and copy meanwhile.
 */
#ifndef GS_DEVICE_DEVICE_READS_H
#define GS_DEVICE_DEVICE_READS_H

#include "device/device.h"

/* Can the device read this file so? GS_EUNSUPPORTED: a line that says why not. GS_ENOTFOUND, GS_EIO: the file. */
gs_status gs_device_probe_reads(gs_device *d, const char *path);

#define GS_DEVICE_READS 8u /* that may be under way */
/* Memory that they take, on the host and on the device, but for what cuFile takes itself. */
#define GS_DEVICE_READS_BYTES (256ull << 10)

/* Before the first read: the device's memory of the run, `bytes` from `first` on, is what reads may go to. To be called
 * again, or gs_device_give_memory(), when all is over. GS_EUNSUPPORTED; GS_ENOMEM. */
gs_status gs_device_open_reads(gs_device *d, void *first, uint64_t bytes);
/* A number for the file, from 0 on, until the device gives its memory back. Errors as gs_device_probe_reads(). */
gs_status gs_device_add_file(gs_device *d, const char *path, uint32_t *file);

typedef struct gs_device_read {
    uint32_t file;
    uint64_t offset, bytes;
    void *to;      /* the device's */
    uint64_t mark; /* gs_fingerprint64() of what is meant */
} gs_device_read;

/* Begins to[0 .. bytes) = the file's bytes from `offset` on. Returns at once, unless GS_DEVICE_READS are under way:
 * then the oldest is waited for. Numbers count the reads from 1. GS_EIO: what the system or cuFile says. */
gs_status gs_device_begin_read(gs_device *d, const gs_device_read *r, uint64_t *number);
/* Has read `number` come, and is it what was meant? Reads may come in any order; `wait` for this one. GS_EIO: it
 * failed, or the file ends before; GS_EFORMAT: its mark is another. The caller says of which file and bytes. */
gs_status gs_device_poll_read(gs_device *d, uint64_t number, bool wait, bool *done);

#endif /* GS_DEVICE_DEVICE_READS_H */
