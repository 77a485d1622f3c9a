/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read, and say, several of them: "0-3, 7". */
#ifndef GPUPROF_COLLECTOR_NUMBER_SPANS_H
#define GPUPROF_COLLECTOR_NUMBER_SPANS_H

#include <stdint.h>

#define NUMBER_SPANS_BYTES 512

/* Puts the numbers, some of which may be there twice, into order, and the first eight spans of them
 * into `text`, which it returns. */
char *number_spans_text(uint64_t *numbers, uint32_t count, char text[static NUMBER_SPANS_BYTES]);

#endif
