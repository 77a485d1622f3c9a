/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when the flight recorder's dump is due: requests of the program, a signal or `gpuprof
 * ctl`, and events in the records (--dump-on and others). Only on the writer thread, except as
 * noted.
 */
#ifndef GPUPROF_INJECT_FLIGHT_WATCH_H
#define GPUPROF_INJECT_FLIGHT_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flight.h"

struct dump {
    enum dump_reason reason;
    uint64_t value, ns, median_ns; /* as in the arguments of DUMP */
    const char *text;              /* or NULL; borrowed */
};

/* A recording begins, with a flight recorder or without. Called by the thread that starts it. */
void flight_watch_start(bool is_on);

/* Called with a record that is about to be kept; parses only its head and arguments. */
void flight_watch_see(const uint8_t *record, size_t bytes);

/* The same for a successful launch, which began then. Returns true if device records are not
 * visible now. */
void flight_watch_launched(uint64_t begin_ticks);
bool flight_watch_pass_work(void);

/* Called in each pass until it returns false: a dump that is due. Its text is valid until the next
 * call. */
bool flight_watch_due(struct dump *d);

/* gpuprof_dump(), or gpuprof ctl. Any thread; `text` is copied. A request while another one waits
 * is merged with it. Returns 0, or -1 without a flight recorder. */
int flight_watch_ask(enum dump_reason reason, const char *text);
bool flight_watch_waits(void);

#endif
