/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From chunks to blocks: what the writer thread does in each pass. Used by that thread only, but
 * for seal_tell_end.
 */
#ifndef GPUPROF_INJECT_SEAL_H
#define GPUPROF_INJECT_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block_sink;
struct thread;
struct sealer;

/*
 * NULL if there is no memory (errno). All that sealing will need is allocated here. Blocks go to
 * `sink`, which has begun; an error of its ends the recording (said).
 */
struct sealer *seal_create(struct block_sink *sink);
void seal_free(struct sealer *s);

/* Each raw record that is about to be sealed, by the writer; before a recording begins. NULL: none.
 * The program can write where it stands. */
void seal_tell(void (*see)(const uint8_t *record, size_t bytes));

/* Gives the writer's own records a private chunk: the pool may be empty when it must write. */
void seal_attach(struct sealer *s, struct thread *me);

/*
 * Seals every thread that is due: enough for a good block, too long since the last one, or `all`.
 * Frees chunks. False: the stream cannot be written any more.
 */
bool seal_pass(struct sealer *s, struct thread *me, bool all, uint64_t now_ns);

/* Stores the writer's own records only. False: likewise. */
bool seal_own(struct sealer *s, struct thread *me);

/*
 * If the recording has ended before its process: says so in the stream's header, with all counters
 * and what is left in chunks of which there is no file. By the writer then, and again by whoever
 * ends the process.
 */
void seal_tell_end(void);

#endif
