/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder (run --flight): a sink that keeps the last blocks in the live file
 * (formats/flight.h), and writes to the stream file only when a dump is requested. Only on the
 * writer thread, except as noted.
 */
#ifndef GPUPROF_INJECT_FLIGHT_SINK_H
#define GPUPROF_INJECT_FLIGHT_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "store/block_sink.h"
#include "store/flight_watch.h"

struct thread;

/* A recording begins, whose live file has its name. Returns false, after a message, if there is not
 * enough space. Without --flight it does nothing, and returns true. */
bool flight_create(void);
/* Releases everything; also in the child of a fork. */
void flight_forget(void);

/* Any thread, when the recording has begun. */
bool flight_is_on(void);

/* Returns the sink for blocks: this one, or the stream file. */
struct block_sink *flight_or_stream(void);

/* Requests a dump. A request while another one waits to begin is merged with it. */
void flight_ask(const struct dump *d);

/* Called in each pass. Must everything be sealed, because a dump or the next segment begins? Then
 * it does. The end of the process is a dump, too. */
bool flight_is_due(uint64_t now_ns);
void flight_look(struct thread *writer, uint64_t now_ns, bool is_last);
/* Called in each pass: writes a part of the current dump, and reports refused requests. */
void flight_describe(struct thread *writer, bool is_last);

/* Is a dump requested, or being written? */
bool flight_is_busy(void);

/* Returns the number of complete dumps. */
uint64_t flight_dump_count(void);

#endif
