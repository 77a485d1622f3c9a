/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the flight recorder's blocks need from earlier ones that were dropped: meanings of names,
 * open ranges, allocated memory. The raw records are kept until what they opened is closed, or
 * until they are in the stream file. Only on the writer thread.
 */
#ifndef GPUPROF_INJECT_FLIGHT_STATE_H
#define GPUPROF_INJECT_FLIGHT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "block.h"

/*
 * Allocates space for so many bytes of records. Returns false with errno set if there is no memory.
 */
bool flight_state_create(size_t bytes);
void flight_state_free(void);

/* Adds a record, which no thread changes meanwhile, if it may be needed. `is_written`: the stream
 * file has a dump, so that what is closed here may have been opened there. */
void flight_state_see(uint32_t thread, uint64_t position, const uint8_t *record, size_t bytes,
                      bool is_written);

/* Returns a mark after everything so far: later marks are larger. */
uint64_t flight_state_mark(void);
/* Everything up to `mark` is in the stream file now. */
void flight_state_forget(uint64_t mark);

/* Returns the number of records without space. */
uint64_t flight_state_lost(void);

/* Makes blocks of the records: fills the encoder, and calls `store` for each block, whose header
 * has the thread and the positions. Returns false if `store` does. */
bool flight_state_write(struct block_encoder *e,
                        bool (*store)(struct block_encoder *e, struct block_header *h));

#endif
