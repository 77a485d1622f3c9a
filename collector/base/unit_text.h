/* SPDX-License-Identifier: Apache-2.0 */
/* Times, sizes, counts, power and energy as people read them. Each writes at most UNIT_TEXT_BYTES
 * to `text` and returns it. */
#ifndef GPUPROF_COLLECTOR_UNIT_TEXT_H
#define GPUPROF_COLLECTOR_UNIT_TEXT_H

#include <stdint.h>

#define UNIT_TEXT_BYTES 32

const char *time_text(char *text, uint64_t ns);       /* "1.500 ms" */
const char *bytes_text(char *text, uint64_t bytes);   /* "1.5 MiB" */
const char *count_text(char *text, uint64_t count);   /* "1,234,567" */
const char *amount_text(char *text, uint64_t amount); /* "1.235 M" */
const char *power_text(char *text, uint64_t mw);      /* "312.5 W" */
const char *energy_text(char *text, uint64_t mj);     /* "1.235 kJ" */

/* Returns the plural ending for such a count, "s" or "". */
static inline const char *plural_end(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* A list of numbers as people write it: "0-3, 7". */
#define NUMBER_SPANS_BYTES 512

/* Sorts the numbers and writes their first eight spans to `text`, which it returns. */
char *number_spans_text(uint64_t *numbers, uint32_t count, char text[static NUMBER_SPANS_BYTES]);

#endif
