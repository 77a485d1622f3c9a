/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How `gpuprof ctl` and `gpuprof top` talk to the processes that record into a folder: they put
 * commands into the file CONTROL_NAME there, and each process answers in a file of its own, named
 * as its stream file with CONTROL_STATUS_SUFFIX behind it. Both are texts that appear whole
 * (rename), and both sides take what they read for hostile. No path comes from either, and no name
 * but a function's.
 */
#ifndef GPUPROF_FORMATS_CONTROL_TEXT_H
#define GPUPROF_FORMATS_CONTROL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schedule.h"

#define CONTROL_NAME           "control"
#define CONTROL_STATUS_SUFFIX  ".status"
#define CONTROL_COMMANDS_MAX   32   /* that a file holds, the newest last */
#define CONTROL_WAITS_MAX      32   /* of a process's commands that are not due yet */
#define CONTROL_BYTES_MAX      8192 /* of either file */
#define CONTROL_WATCH_SECONDS  10   /* for which a process tells of itself, once it is asked to */
#define CONTROL_UNKNOWN        UINT64_MAX
#define CONTROL_NAME_BYTES_MAX 80 /* of a function, and a 0 */

enum control_what {
    CONTROL_START,
    CONTROL_STOP,
    CONTROL_STATUS,
    CONTROL_DUMP,
    CONTROL_SCHEDULE, /* these steps, from the step of the command on; active 0: none any more */
    CONTROL_WATCH,    /* once a second what `top` shows; another one replaces it in the file */
    CONTROL_WHATS
};

/* As a user says it. NULL: of no such number. */
const char *control_word(unsigned what);

/* Does a process that begins later follow it, too? */
static inline bool control_lasts(enum control_what what)
{
    return what == CONTROL_START || what == CONTROL_STOP || what == CONTROL_SCHEDULE;
}

/* When a command is due. */
enum control_when { CONTROL_AT_ONCE, CONTROL_AT_STEP, CONTROL_AT_TIME };

struct control_command {
    uint64_t id; /* random: who repeats a command repeats it, and nobody acts on it twice */
    bool is_for_all;
    uint8_t process_id[16]; /* else of which process: as in its stream's header */
    enum control_what what;
    enum control_when when;
    uint64_t at; /* the number of a step, or CLOCK_REALTIME in nanoseconds */
    struct schedule schedule;
};

struct control_text {
    unsigned count;
    struct control_command commands[CONTROL_COMMANDS_MAX];
};

/* Who keeps a process from recording calls: bits. */
enum control_stopped { STOPPED_BY_PROGRAM = 1, STOPPED_BY_CONTROL = 2, STOPPED_BY_WINDOW = 4 };

/* What became of a command: it is done, or waits until it is due; its step was over already, so it
 * is done at once, or with the next one; or this process cannot. */
enum control_answer { ANSWER_DONE, ANSWER_LATE, ANSWER_REFUSED, CONTROL_ANSWERS };

/* What a process knows of itself; CONTROL_UNKNOWN: it does not. Times are of CLOCK_MONOTONIC. */
enum control_figure {
    FIGURE_RANK,           /* among those of its job */
    FIGURE_NOW_NS,         /* when the rest was so */
    FIGURE_CALLS,          /* that were recorded since it was asked first, ... */
    FIGURE_LAUNCHES,       /* ... and of these launches of kernels and graphs */
    FIGURE_BUSY_NS,        /* of the device, since it was asked first: the sum of all devices */
    FIGURE_DEVICES,        /* that were busy since */
    FIGURE_HELD_BYTES,     /* of device memory that its calls have got and not given back */
    FIGURE_TENSOR_BYTES,   /* of it, in use by PyTorch's allocator ... */
    FIGURE_RESERVED_BYTES, /* ... and reserved by that; of all devices */
    FIGURE_STEPS,          /* that it has seen */
    FIGURE_STEP,           /* the number of the last one */
    FIGURE_STEP_BEGIN_NS,  /* when that one began */
    FIGURE_STEP_NS,        /* how long the one before it took */
    FIGURE_STEP_MEDIAN_NS, /* ... and the last 64 */
    FIGURE_OPEN_NS,        /* for how long the call has been open that has been so longest */
    FIGURE_WINDOW,         /* number of the last one that is complete in the stream file */
    FIGURE_QUIET_NS,       /* for how long it has made no call that is recorded, and is in none */
    CONTROL_FIGURES
};

struct control_wait {
    enum control_what what;
    enum control_when when;
    uint64_t at;
};

struct control_status {
    uint8_t process_id[16];
    uint32_t stopped; /* enum control_stopped */
    bool has_flight;  /* it has a flight recorder, ... */
    uint64_t dumps;   /* ... which has written so many dumps */
    uint64_t figures[CONTROL_FIGURES];
    char open_call[CONTROL_NAME_BYTES_MAX]; /* whose call FIGURE_OPEN_NS is of; letters, digits, _
                                             */
    unsigned wait_count;
    struct control_wait waits[CONTROL_WAITS_MAX];
    unsigned count;
    uint64_t answered[CONTROL_COMMANDS_MAX]; /* ids, ... */
    enum control_answer answers[CONTROL_COMMANDS_MAX];
};

/* No process, nothing known. */
void control_status_init(struct control_status *status);

/* False: it is none, not whole, or of another version; *text is anything then. */
bool control_text_parse(struct control_text *text, const char *data, size_t bytes);
bool control_status_parse(struct control_status *status, const char *data, size_t bytes);

/* The bytes written; `out` has room for CONTROL_BYTES_MAX. */
size_t control_text_write(const struct control_text *text, char *out);
size_t control_status_write(const struct control_status *status, char *out);

/* Adds the command. In a full file the oldest one goes by which no later process knows what to
 * record; if all are such, the oldest. */
void control_text_add(struct control_text *text, const struct control_command *command);

/* Has the file that command? */
bool control_text_has(const struct control_text *text, uint64_t id);

#endif
