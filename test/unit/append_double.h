/* SPDX-License-Identifier: Apache-2.0 */
/* In place of inject/record/thread.c and its state: what is appended is kept, for any thread. */
#ifndef GPUPROF_TEST_APPEND_DOUBLE_H
#define GPUPROF_TEST_APPEND_DOUBLE_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"
#include "record/state.h"

/* Forgets everything, settings included. */
void append_reset(void);

/* From here on there is no room, or there is again. */
void append_refuse(bool refuse);

/* Records of that type so far, and the one whose first argument is `number`; NULL if there is none,
 * or more than one. A view until append_reset. */
unsigned append_count(unsigned type);
const struct record *append_find(unsigned type, uint64_t number);

uint64_t append_counter(enum counter_index index);

#endif
