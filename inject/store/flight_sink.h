/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder (run --flight): a sink that keeps the last blocks in the live file
 * (formats/flight.h) and writes nothing to the stream file until a dump is asked for. By the writer
 * thread only, but for what says otherwise.
 */
#ifndef GPUPROF_INJECT_FLIGHT_SINK_H
#define GPUPROF_INJECT_FLIGHT_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "store/block_sink.h"
#include "store/flight_watch.h"

struct thread;

/* A recording begins, whose live file has its name. False: there is no room for what is wanted
 * (said). Without --flight: nothing, and true. */
bool flight_create(void);
/* Lets go of all that; in the child of a fork, too. */
void flight_forget(void);

/* By any thread, once the recording has begun. */
bool flight_is_on(void);

/* Where blocks go: this one, or the stream file. */
struct block_sink *flight_or_stream(void);

/* Asks for a dump. One that is asked for while another one waits to begin is one with it. */
void flight_ask(const struct dump *d);

/* In each pass: is all to be sealed, because a dump begins, or the next segment? Then it does. The
 * end of the process is a dump, too. */
bool flight_is_due(uint64_t now_ns);
void flight_look(struct thread *writer, uint64_t now_ns, bool is_last);
/* In each pass: writes a part of the dump that has begun, and says what was refused. */
void flight_describe(struct thread *writer, bool is_last);

/* Is one asked for, or being written? */
bool flight_is_busy(void);

/* How many dumps are whole. */
uint64_t flight_dump_count(void);

#endif
