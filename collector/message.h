/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's words to its user: one line each on stderr, prefixed "gpuprof: ". */
#ifndef GPUPROF_COLLECTOR_MESSAGE_H
#define GPUPROF_COLLECTOR_MESSAGE_H

/* Prints one line; the newline is added here, control characters are shown as '?'. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a wrong option or argument; returns EXIT_USAGE, so that callers may return it. */
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
