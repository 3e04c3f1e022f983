/* device_budget.h - what does a run take of a device's memory, and what do a device's libraries take of the host's?
 * Bytes. */
#ifndef GS_DEVICE_DEVICE_BUDGET_H
#define GS_DEVICE_DEVICE_BUDGET_H

#include <stdint.h>

#include "device/device.h"

/* Of a device with memory of its own: bytes of it that a run takes, 0: all (as at first). Scratch is sized by it, so it
 * is said before gs_device_scratch_bytes() and gs_device_prepare(). */
void gs_device_set_budget(gs_device *d, uint64_t bytes);

/* What the libraries of devices of this kind hold now of what is resident, with all such devices that the process has
 * opened so far, and what they may take besides once a program runs. Both 0 of the processors. */
typedef struct gs_device_libraries {
    uint64_t held, later;
} gs_device_libraries;

gs_device_libraries gs_device_libraries_bytes(const gs_device *d);

#endif /* GS_DEVICE_DEVICE_BUDGET_H */
