/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the user: one line each on stderr, prefixed "gpuprof: ". */
#ifndef GPUPROF_COLLECTOR_MESSAGE_H
#define GPUPROF_COLLECTOR_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

/* Exit codes of verbs. Errors are negative (error.h), so a function can return either. */
enum exit_code {
    EXIT_OK = 0,          /* everything recorded was read, a recovered live tail included */
    EXIT_ENVIRONMENT = 1, /* input or output failed */
    EXIT_USAGE = 2,       /* a wrong option, no gpuprof file, nothing to read, no memory */
    EXIT_DAMAGED = 3,     /* some recorded data is missing; the rest was used */
    EXIT_UNFIT = 4,       /* doctor: nothing useful would be recorded here */
};

#define RECORDING_ADVICE "; name a data folder that 'gpuprof run' wrote, or a .gpuprof file in one"

/* Prints one line and its newline; control characters are replaced. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a wrong option or argument. Returns EXIT_USAGE, so that callers can return it. */
enum exit_code usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints "VERB: no memory" or so for a negative `error`. Returns EXIT_ENVIRONMENT or EXIT_OK. */
enum exit_code say_error(const char *verb, int error);

/* Return advice for an errno from reading a recording, or from writing a file or folder that the
 * user named: "; ..." to append to the message, or "". */
const char *reading_advice(int number);
const char *writing_advice(int number);

/* A progress line on a terminal, rewritten in place and cleared at the end. Does nothing, at no
 * cost, if stderr is not a terminal. */
#define PROGRESS_AFTER_NS 2000000000u /* shorter work shows no progress */
#define PROGRESS_EVERY_NS 200000000u

struct progress {
    const char *verb;
    uint64_t total; /* bytes to read; bytes that are read twice count twice */
    uint64_t done;
    uint64_t begin_ns;
    uint64_t shown_ns; /* time of the last update; 0: the line is not visible */
    int to;            /* the terminal */
};

/* Returns one that worker processes share; NULL: stderr is not a suitable terminal. */
struct progress *progress_begin(const char *verb, uint64_t total);

/* Reports that `bytes` more bytes are done. `p` may be NULL, also in progress_clear. */
void progress_add(struct progress *p, uint64_t bytes);

/* Clears the line, so that the next message on stderr has a line of its own. */
void progress_clear(struct progress *p);

#endif
