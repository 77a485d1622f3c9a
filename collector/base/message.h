/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's words to its user: one line each on stderr, prefixed "gpuprof: ". */
#ifndef GPUPROF_COLLECTOR_MESSAGE_H
#define GPUPROF_COLLECTOR_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Verdicts: what a verb ends with. They are no errors, which are negative (error.h): a function
 * returns the one or the other.
 */
enum exit_code {
    EXIT_OK = 0,          /* everything recorded was read, a recovered live tail included */
    EXIT_ENVIRONMENT = 1, /* input or output failed, memory ran out */
    EXIT_USAGE = 2,       /* a wrong option, a file that is not ours, nothing to read */
    EXIT_DAMAGED = 3,     /* something recorded is missing; what is whole was used */
    EXIT_UNFIT = 4,       /* doctor: nothing, or nothing that matters, would be recorded here */
};

#define RECORDING_ADVICE "; name a data folder of 'gpuprof run', or a .gpuprof file in one"

/* Prints one line; the newline is added here, control characters are shown as '?'. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a wrong option or argument; returns EXIT_USAGE, so that callers may return it. */
enum exit_code usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "VERB: no memory", or what else it is, if the error is below 0: then EXIT_ENVIRONMENT, else
 * EXIT_OK. */
enum exit_code say_error(const char *verb, int error);

/*
 * What to do about an errno that opening or reading a recording, or writing a result, ended with:
 * "; ..." to be put behind the message, or "".
 */
const char *reading_advice(int number);
const char *writing_advice(int number);

/* The same of a folder that a verb makes, and of one of several files that it writes there; of
 * standard output; and of a file without a name. */
const char *folder_advice(int number);
const char *stdout_advice(int number);
const char *aside_advice(int number);

/*
 * How far a long piece of work is, on one line of a terminal that is written anew and in the end
 * cleared. Where stderr is no terminal there is none, which costs nothing.
 */
#define PROGRESS_AFTER_NS 2000000000u /* what is done sooner says nothing */
#define PROGRESS_EVERY_NS 200000000u

struct progress {
    const char *verb;
    uint64_t total; /* bytes to be read; what is read twice counts twice */
    uint64_t done;
    uint64_t begin_ns;
    uint64_t shown_ns; /* when it was written last; 0: never */
    bool is_shown;     /* its line is there, to be cleared */
    int to;            /* the terminal */
};

/* Returns `p`, or NULL: stderr is no terminal that can do it. `total` may be set later. */
struct progress *progress_begin(struct progress *p, const char *verb);

/* So many bytes more are done. `p` may be NULL, and so in progress_clear. */
void progress_add(struct progress *p, uint64_t bytes);

/* Takes its line away: what follows on stderr has a line of its own. */
void progress_clear(struct progress *p);

/* A copy of it that several processes add to (workers.h), for who forks them. NULL: `p` is, or
 * there is no memory. */
struct progress *progress_share(const struct progress *p);
void progress_unshare(struct progress *p);

#endif
