/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of texts, from 1 on, in the order in which they are met. Memory: the texts, 24 to 48
 * bytes each; what would be more than TEXT_NUMBERS_BYTES or TEXT_NUMBERS_MAX has no number.
 */
#ifndef GPUPROF_COLLECTOR_TEXT_NUMBERS_H
#define GPUPROF_COLLECTOR_TEXT_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/key_map.h"

#define TEXT_NUMBERS_MAX   65536
#define TEXT_NUMBERS_BYTES (16u << 20)

struct text_number {
    char *text; /* owned */
    uint32_t length;
    uint32_t hash;
};

struct text_numbers {
    struct text_number *texts; /* owned */
    uint32_t count;
    struct number_set set;
    size_t bytes;
};

void text_numbers_release(struct text_numbers *t);

/* 0: it has none. *is_new: it has just got it. */
uint32_t text_number(struct text_numbers *t, const char *text, size_t length, bool *is_new);

#endif
