/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How `gpuprof ctl` and `gpuprof top` communicate with the processes that record into a folder.
 * They put commands into the file CONTROL_NAME there, and each process answers in its own file,
 * named like its stream file with CONTROL_STATUS_SUFFIX. Both are texts that are replaced as a
 * whole (rename), and both sides treat what they read as hostile. Neither contains paths, nor names
 * except those of functions.
 */
#ifndef GPUPROF_FORMATS_CONTROL_TEXT_H
#define GPUPROF_FORMATS_CONTROL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schedule.h"

#define CONTROL_NAME          "control"
#define CONTROL_STATUS_SUFFIX ".status"
#define CONTROL_COMMANDS_MAX  32   /* per file, the newest last */
#define CONTROL_WAITS_MAX     32   /* commands of a process that are not due yet */
#define CONTROL_BYTES_MAX     8192 /* of either file */
/* how long a process reports its figures after it was asked to */
#define CONTROL_WATCH_SECONDS  10
#define CONTROL_UNKNOWN        UINT64_MAX
#define CONTROL_NAME_BYTES_MAX 80 /* of a function, with its zero */

enum control_what {
    CONTROL_START,
    CONTROL_STOP,
    CONTROL_STATUS,
    CONTROL_DUMP,
    CONTROL_SCHEDULE, /* record these steps, from the command's step on; active 0: none any more */
    /* report figures for `top` once a second; a new one replaces it in the file */
    CONTROL_WATCH,
    CONTROL_WHATS
};

/* Returns the word that users type; NULL: unknown number. */
const char *control_word(unsigned what);

/* Does a process that starts later follow it, too? */
static inline bool control_lasts(enum control_what what)
{
    return what == CONTROL_START || what == CONTROL_STOP || what == CONTROL_SCHEDULE;
}

/* When a command is due. */
enum control_when { CONTROL_AT_ONCE, CONTROL_AT_STEP, CONTROL_AT_TIME };

struct control_command {
    uint64_t id; /* random: a repeated command keeps its id, and no process acts on it twice */
    bool is_for_all;
    uint8_t process_id[16]; /* otherwise for this process: as in its stream header */
    enum control_what what;
    enum control_when when;
    uint64_t at; /* number of a step, or CLOCK_REALTIME in nanoseconds */
    struct schedule schedule;
};

struct control_text {
    unsigned count;
    struct control_command commands[CONTROL_COMMANDS_MAX];
};

/* Bits: what keeps a process from recording calls. */
enum control_stopped { STOPPED_BY_PROGRAM = 1, STOPPED_BY_CONTROL = 2, STOPPED_BY_WINDOW = 4 };

/* What became of a command: it is done, or waits until it is due; its step was over, so it is done
 * at once, or at the next one; or this process cannot do it. */
enum control_answer { ANSWER_DONE, ANSWER_LATE, ANSWER_REFUSED, CONTROL_ANSWERS };

/* Figures of a process; CONTROL_UNKNOWN: not known. Times are CLOCK_MONOTONIC. */
enum control_figure {
    FIGURE_RANK,           /* its rank in its job */
    FIGURE_NOW_NS,         /* time of the other figures */
    FIGURE_CALLS,          /* recorded since it was first asked, ... */
    FIGURE_LAUNCHES,       /* ... among them launches of kernels and graphs */
    FIGURE_BUSY_NS,        /* device time since it was first asked, summed over devices */
    FIGURE_DEVICES,        /* devices that were busy since then */
    FIGURE_HELD_BYTES,     /* device memory allocated by its calls and not freed */
    FIGURE_TENSOR_BYTES,   /* of it, in use by PyTorch's allocator ... */
    FIGURE_RESERVED_BYTES, /* ... and reserved by it; on all devices */
    FIGURE_STEPS,          /* steps so far */
    FIGURE_STEP,           /* number of the last one */
    FIGURE_STEP_BEGIN_NS,  /* when that began */
    FIGURE_STEP_NS,        /* duration of the one before */
    FIGURE_STEP_MEDIAN_NS, /* ... and median of the last 64 */
    FIGURE_OPEN_NS,        /* how long the call has been open that has been open longest */
    FIGURE_WINDOW,         /* number of the last window that is complete in the stream file */
    FIGURE_QUIET_NS,       /* time since its last recorded call, if it is in none */
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
    uint64_t dumps;   /* ... which has written this many dumps */
    uint64_t figures[CONTROL_FIGURES];
    char open_call[CONTROL_NAME_BYTES_MAX]; /* the function of FIGURE_OPEN_NS; letters, digits, _ */
    unsigned wait_count;
    struct control_wait waits[CONTROL_WAITS_MAX];
    unsigned count;
    uint64_t answered[CONTROL_COMMANDS_MAX]; /* ids, ... */
    enum control_answer answers[CONTROL_COMMANDS_MAX];
};

/* Sets it to no process and nothing known. */
void control_status_init(struct control_status *status);

/*
 * Returns false if the text is invalid, incomplete, or of another version; *text is undefined then.
 */
bool control_text_parse(struct control_text *text, const char *data, size_t bytes);
bool control_status_parse(struct control_status *status, const char *data, size_t bytes);

/* Returns the bytes written; `out` has space for CONTROL_BYTES_MAX. */
size_t control_text_write(const struct control_text *text, char *out);
size_t control_status_write(const struct control_status *status, char *out);

/* Adds the command. In a full file, drops the oldest one that no later process needs to know what
 * to record; if all are needed, the oldest. */
void control_text_add(struct control_text *text, const struct control_command *command);

/* Does the file have that command? */
bool control_text_has(const struct control_text *text, uint64_t id);

#endif
