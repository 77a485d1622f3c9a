/* SPDX-License-Identifier: Apache-2.0 */
/* What the program says of a range, a mark or a step. */
#ifndef GPUPROF_INJECT_RANGE_EVENT_H
#define GPUPROF_INJECT_RANGE_EVENT_H

#include <stdint.h>

#define RANGE_TEXT_BYTES_MAX 4096 /* longer texts are cut, and counted */

struct range_event {
    uint32_t domain; /* below LABEL_DOMAIN_MAX; 0 = the default one */
    uint32_t category;
    uint32_t color; /* ARGB; 0 = none */
    uint32_t payload_type;
    uint64_t payload;
    uint64_t message; /* handle of a registered string; 0: `text` */
    const char *text;
    uint32_t byte_count;
};

#endif
