/* SPDX-License-Identifier: Apache-2.0 */
/* What can be found: the rows of finding_kinds.def. */
#ifndef GPUPROF_COLLECTOR_FINDING_KIND_H
#define GPUPROF_COLLECTOR_FINDING_KIND_H

#include <stdint.h>

enum finding_id {
#define FINDING(NAME, ...) FINDING_##NAME,
#include "find/finding_kinds.def"
    FINDING_KINDS
};

struct finding_kind {
    const char *id;    /* stable */
    uint32_t share;    /* in percent of the window, and ... */
    uint64_t floor_ns; /* ... so long: only if it takes more than both; of the whole run */
    const char *title;
    const char *advice;
    const char *next;
};

extern const struct finding_kind finding_kinds[FINDING_KINDS];

#endif
