/* SPDX-License-Identifier: Apache-2.0 */
/* Makes blocks of chunks: what the writer thread does in each pass. Only on that thread, except
 * seal_report_end. */
#ifndef GPUPROF_INJECT_SEAL_H
#define GPUPROF_INJECT_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block_sink;
struct thread;
struct sealer;

/* Allocates all that sealing needs; returns NULL with errno set if there is no memory. Blocks go to
 * `sink`, which has begun; an error of the sink ends the recording, with a message. */
struct sealer *seal_create(struct block_sink *sink);
void seal_free(struct sealer *s);

/* Sets the function that the writer calls with each raw record before it is sealed; NULL: none.
 * Call it before a recording begins. The program can overwrite the record. */
void seal_report(void (*see)(const uint8_t *record, size_t bytes));

/*
 * Gives the writer a private chunk for its own records: the pool may be empty when it must write.
 */
void seal_attach(struct sealer *s, struct thread *me);

/* Seals every thread that is due: it has enough for a good block, its last block is too old, or
 * `all`. Frees chunks. Returns false if the stream can no longer be written. */
bool seal_pass(struct sealer *s, struct thread *me, bool all, uint64_t now_ns);

/* Stores only the writer's own records. Returns false as above. */
bool seal_own(struct sealer *s, struct thread *me);

/*
 * If the recording has ended before its process: writes so into the stream's header, with all
 * counters and what is left in chunks without a file. Called by the writer then, and again by each
 * thread that ends the process.
 */
void seal_report_end(void);

#endif
