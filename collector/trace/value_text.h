/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of arguments as JSON. Grids, blocks and streams are few and come millions of times, so
 * their texts are kept in a small direct-mapped cache.
 */
#ifndef GPUPROF_COLLECTOR_VALUE_TEXT_H
#define GPUPROF_COLLECTOR_VALUE_TEXT_H

#include <stdint.h>

#include "base/json_text.h"

#define VALUE_EXACT_MAX   (1ull << 53) /* larger numbers are rounded by JavaScript */
#define VALUE_CACHE_SLOTS 256
#define VALUE_TEXT_MAX    32 /* bytes of any value below, and room for json_copy */

struct value_slot {
    uint64_t value;
    uint8_t style; /* 0: free */
    uint8_t length;
    char text[VALUE_TEXT_MAX];
};

struct value_cache {
    struct value_slot slots[VALUE_CACHE_SLOTS];
};

/* Each writes at `out`, at most VALUE_TEXT_MAX bytes, and returns the place behind. */
char *value_number(char *out, uint64_t value);    /* a string above VALUE_EXACT_MAX */
char *value_signed(char *out, uint64_t value);    /* the low 32 bits, as a C int */
char *value_copy_kind(char *out, uint64_t value); /* enum cudaMemcpyKind */
char *value_dim3(struct value_cache *c, char *out, uint64_t value);
char *value_handle(struct value_cache *c, char *out, uint64_t value); /* 0x12" without a first " */

#endif
