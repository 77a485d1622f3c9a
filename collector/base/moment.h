/* SPDX-License-Identifier: Apache-2.0 */
/* Parses times and durations that users type, and reads the clock. */
#ifndef GPUPROF_COLLECTOR_MOMENT_H
#define GPUPROF_COLLECTOR_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

/* Parses a time: "2026-11-23T18:00:00" with an optional fraction, a space instead of T, and "Z" or
 * "+01:00" (default: local time). Without a date it means today, without a time 00:00, local.
 * "@1795456800.5" is seconds since 1970. Sets *ns of CLOCK_REALTIME. Returns false if invalid or
 * outside 1970 to 2096. */
bool moment_parse(const char *text, uint64_t *ns);

/* Parses "90", "1.5m", "2h", "800ms" or "20us", 0 or more. Returns false if invalid. */
bool duration_parse(const char *text, uint64_t *ns);

/* Read CLOCK_MONOTONIC. */
uint64_t monotonic_ns(void);
double monotonic_seconds(void);

#endif
