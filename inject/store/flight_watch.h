/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a flight recorder's dump is due: what the program, a signal or `gpuprof ctl` ask for, and
 * what shows in the records (--dump-on and the like). By the writer thread, but for what says
 * otherwise.
 */
#ifndef GPUPROF_INJECT_FLIGHT_WATCH_H
#define GPUPROF_INJECT_FLIGHT_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flight.h"

struct dump {
    enum dump_reason reason;
    uint64_t value, ns, median_ns; /* as the arguments of DUMP */
    const char *text;              /* or NULL; a view */
};

/* A recording with a flight recorder begins, or one without: by the thread that begins it. */
void flight_watch_start(bool is_on);

/* A record that is about to be kept; `record` is parsed no further than its head and arguments. */
void flight_watch_see(const uint8_t *record, size_t bytes);

/* The same of a launch that was well, which began then; true: of what the device did nothing is to
 * be seen now. */
void flight_watch_launched(uint64_t begin_ticks);
bool flight_watch_pass_work(void);

/* In each pass, until it is false: a dump that is due. Its text holds until the next call. */
bool flight_watch_due(struct dump *d);

/*
 * gpuprof_dump(), or gpuprof ctl: by any thread; `text` is copied. One that comes while another
 * waits is one with it. 0, or -1 without a flight recorder.
 */
int flight_watch_ask(enum dump_reason reason, const char *text);
bool flight_watch_waits(void);

#endif
