/* batch_devices_internal.h - devices that train batches: batch_devices.c opens them, batch_round.c runs them. */
#ifndef GS_SESSION_BATCH_DEVICES_INTERNAL_H
#define GS_SESSION_BATCH_DEVICES_INTERNAL_H

#include <pthread.h>

#include "session/batch_devices.h"
#include "session/step_rows.h"

typedef struct gs_batch_member {
    gs_batch_devices *all;
    uint32_t number;
    gs_batches *engine;
    gs_train_options options; /* of one device */
    char spec[32];
    double waits; /* seconds for each of a pass, as its speed is less than that of what it runs on */
    gs_batch group[GS_BATCH_GROUP]; /* its batches of the group */
    pthread_t thread;
    bool started;
    gs_status status;
    char why[GS_ERROR_BYTES];
} gs_batch_member;

struct gs_batch_devices {
    uint32_t devices, gpus;
    gs_batch_member *at; /* [devices] processors before GPUs */
    gs_batch_deal deal;
    float *statistics; /* [GS_BATCH_ROUND][gs_batches_statistics()] of the passes of a round; NULL: there are none */
    gs_step_rows rows; /* of learned tables */
    pthread_mutex_t lock;
    pthread_cond_t begin, end, next;
    gs_batch_pass *pass; /* [passes] of the round at hand */
    uint32_t passes, added; /* the first so many of them have added their rows' gradients */
    uint64_t rounds;
    uint32_t running;
    bool quit;
};

void gs_batch_devices__open_round(gs_batch_devices *d);
/* Host memory that starting takes. */
uint64_t gs_batch_devices__round_bytes(const gs_batch_devices *d);
/* Takes memory, and a thread for each of several devices. GS_ENOMEM. */
gs_status gs_batch_devices__start_round(gs_batch_devices *d);
void gs_batch_devices__close_round(gs_batch_devices *d);

#endif /* GS_SESSION_BATCH_DEVICES_INTERNAL_H */
