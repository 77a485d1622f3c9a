/* SPDX-License-Identifier: Apache-2.0 */
/* What a check of `gpuprof doctor` has found. */
#ifndef GPUPROF_COLLECTOR_FINDING_H
#define GPUPROF_COLLECTOR_FINDING_H

#include <stdbool.h>

#define FINDING_TEXT_BYTES 768

enum finding_state {
    FINDING_OK,
    FINDING_LIMITED, /* something of what could be recorded will be missing */
    FINDING_BROKEN,  /* nothing will be recorded, or nothing that the program is about */
};

struct finding {
    enum finding_state state;
    char text[FINDING_TEXT_BYTES];
    char advice[FINDING_TEXT_BYTES]; /* one thing to do; "" with FINDING_OK */
};

/*
 * Fills it: `advice` is NULL with FINDING_OK. Always true, as a check answers that has something to
 * say.
 */
bool finding_set(struct finding *f, enum finding_state state, const char *advice,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
