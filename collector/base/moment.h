/* SPDX-License-Identifier: Apache-2.0 */
/* Moments as a user writes them, and the present one. */
#ifndef GPUPROF_COLLECTOR_MOMENT_H
#define GPUPROF_COLLECTOR_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * "2026-11-23T18:00:00" with a fraction, a space in place of T, "Z" or "+01:00" behind it (else
 * local time), or without its date: today, or without its time: 00:00, local; or "@1795456800.5",
 * seconds since 1970. In nanoseconds of CLOCK_REALTIME. False: it is none.
 */
bool moment_parse(const char *text, uint64_t *ns);

/* Of a text that is none: is it written as one, but on a day or at a time that does not exist, or
 * that is not counted (before 1970, after 2096)? */
bool moment_has_form(const char *text);

/* "90", "90s", "1.5m", "2h", "800ms", "20us": 0 or more, in nanoseconds. False: it is none. */
bool duration_parse(const char *text, uint64_t *ns);

/* CLOCK_MONOTONIC. */
uint64_t monotonic_ns(void);
double monotonic_seconds(void);

#endif
