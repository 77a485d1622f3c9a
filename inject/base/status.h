/* SPDX-License-Identifier: Apache-2.0 */
/* A sentence on the state of a part of the library: any thread sets it, others copy it. */
#ifndef GPUPROF_INJECT_STATUS_H
#define GPUPROF_INJECT_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/futex.h"

#define STATUS_BYTES_MAX 1400

struct status {
    struct lock lock;
    _Atomic uint32_t version; /* incremented by each change */
    char text[STATUS_BYTES_MAX];
};

/* Sets the text; cuts it if it is too long. */
void status_set(struct status *status, const char *text);

/*
 * Copies the text if it has changed since version *seen, or if `anyway` is set, and sets *seen.
 * Returns false if it has not changed, is not set, or if another thread holds the lock for too
 * long.
 */
bool status_copy(struct status *status, uint32_t *seen, bool anyway, char text[STATUS_BYTES_MAX]);

#endif
