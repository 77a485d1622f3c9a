/* SPDX-License-Identifier: Apache-2.0 */
/* The records that say what stacks are (MODULE, PYTHON, STACK): do they mean anything? */
#ifndef GPUPROF_COLLECTOR_STACK_RECORD_H
#define GPUPROF_COLLECTOR_STACK_RECORD_H

#include <stdbool.h>

#include "record.h"

#define BUILD_ID_MAX 64 /* bytes of one; its text has twice as many */

/* The number that others know it by; 0: it says none. */
uint64_t stack_record_number(const struct record *r);

/* False of such a record that no reader can use; every reader counts it in losses.stacks_unread. */
bool stack_record_is_good(const struct record *r);

/* Of a good MODULE record: bytes of the build id in hexadecimal digits, before a blank; 0: none. */
uint32_t stack_record_id_bytes(const struct record *r);

/* Of a good MODULE or PYTHON record: bytes before what divides its two texts. */
uint32_t stack_record_first_bytes(const struct record *r);

#endif
