/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that ranges and labels have, as patterns of --step-range, for one who has asked for a name
 * that none has: those that are there most often.
 */
#ifndef GPUPROF_COLLECTOR_STEP_NAMES_H
#define GPUPROF_COLLECTOR_STEP_NAMES_H

#include <stdint.h>

#define STEP_NAMES_MAX       32 /* that are counted: the first ones */
#define STEP_NAME_BYTES      64 /* of a longer one its beginning, and '*' */
#define STEP_NAMES_TOLD      5
#define STEP_NAMES_ALL_BYTES (STEP_NAMES_TOLD * (STEP_NAME_BYTES + 4) + 16)

struct step_name {
    char pattern[STEP_NAME_BYTES]; /* with '*' for its numbers */
    uint64_t count;
};

struct step_names {
    struct step_name list[STEP_NAMES_MAX];
    uint32_t count;
};

void step_names_take(struct step_names *n, const char *text);

/* "; there are 'load', 'step *'", or "". Returns `text`. */
const char *step_names_text(struct step_names *n, char text[STEP_NAMES_ALL_BYTES]);

#endif
