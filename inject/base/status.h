/* SPDX-License-Identifier: Apache-2.0 */
/* What there is to say of a part of us, in a sentence: any thread sets it, others copy it. */
#ifndef GPUPROF_INJECT_STATUS_H
#define GPUPROF_INJECT_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/futex.h"

#define STATUS_BYTES_MAX 1400

struct status {
    struct lock lock;
    _Atomic uint32_t version; /* raised by each change */
    char text[STATUS_BYTES_MAX];
};

/* Cuts what is too long. */
void status_set(struct status *status, const char *text);

/*
 * Copies it if it has changed since the version *seen, which becomes the one copied, or `anyway`.
 * False: it has not, there is none, or it cannot be had now, since another thread holds it for
 * long.
 */
bool status_copy(struct status *status, uint32_t *seen, bool anyway, char text[STATUS_BYTES_MAX]);

#endif
