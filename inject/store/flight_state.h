/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a flight recorder's blocks need of those before them that are let go: what names mean, which
 * ranges are open, which memory is held. Records are kept here raw, until what they opened is
 * closed, or they are in the stream file. By the writer thread only.
 */
#ifndef GPUPROF_INJECT_FLIGHT_STATE_H
#define GPUPROF_INJECT_FLIGHT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "block.h"

/* With room for so many bytes of records. False: no memory (errno). */
bool flight_state_create(size_t bytes);
void flight_state_free(void);

/* One more record, which nobody else writes, if it is one that may be needed. `is_written`: the
 * stream file has a dump, so that what is closed here may have been opened there. */
void flight_state_see(uint32_t thread, uint64_t position, const uint8_t *record, size_t bytes,
                      bool is_written);

/* Everything so far: later ones have larger numbers. */
uint64_t flight_state_mark(void);
/* What was there at `mark` is in the stream file now. */
void flight_state_forget(uint64_t mark);

/* Records that found no room. */
uint64_t flight_state_lost(void);

/*
 * Makes blocks of what there is: fills the encoder, and calls `store` for each block, whose header
 * has the thread and the positions. False: `store` said so.
 */
bool flight_state_write(struct block_encoder *e,
                        bool (*store)(struct block_encoder *e, struct block_header *h));

#endif
