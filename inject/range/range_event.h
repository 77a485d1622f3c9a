/* SPDX-License-Identifier: Apache-2.0 */
/* What the program gives for a range, a mark or a step. */
#ifndef GPUPROF_INJECT_RANGE_EVENT_H
#define GPUPROF_INJECT_RANGE_EVENT_H

#include <stdint.h>

#define RANGE_TEXT_BYTES_MAX 4096 /* longer texts are cut, and counted */

#define RANGE_DATA_WORDS 4 /* of a payload of NVTX's extension; longer ones are cut */

struct range_data {
    uint64_t schema; /* never 0 */
    uint64_t byte_count;
    uint64_t words[RANGE_DATA_WORDS];
};

struct range_event {
    uint32_t domain; /* below LABEL_DOMAIN_MAX; 0: the default one */
    uint32_t category;
    uint32_t color; /* ARGB; 0: none */
    uint32_t payload_type;
    uint64_t payload;
    uint64_t message; /* handle of a registered string; 0: use `text` */
    const char *text;
    const struct range_data *data; /* NULL: none */
    uint32_t byte_count;
};

#endif
