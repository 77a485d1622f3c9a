/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How `gpuprof ctl` talks to the processes that record into a folder: it puts commands into the
 * file CONTROL_NAME there, and each process answers in a file of its own, named as its stream file
 * with CONTROL_STATUS_SUFFIX behind it. Both are texts that appear whole (rename), and both sides
 * take what they read for hostile. No path and no name comes from either.
 */
#ifndef GPUPROF_FORMATS_CONTROL_TEXT_H
#define GPUPROF_FORMATS_CONTROL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_NAME          "control"
#define CONTROL_STATUS_SUFFIX ".status"
#define CONTROL_COMMANDS_MAX  32   /* that a file holds, the newest last */
#define CONTROL_BYTES_MAX     4096 /* of either file */

enum control_what { CONTROL_START, CONTROL_STOP, CONTROL_STATUS, CONTROL_DUMP };

/* Does a process that begins later follow it, too? */
static inline bool control_lasts(enum control_what what)
{
    return what == CONTROL_START || what == CONTROL_STOP;
}

struct control_command {
    uint64_t id; /* random: who repeats a command repeats it, and nobody acts on it twice */
    bool is_for_all;
    uint8_t process_id[16]; /* else of which process: as in its stream's header */
    enum control_what what;
};

struct control_text {
    unsigned count;
    struct control_command commands[CONTROL_COMMANDS_MAX];
};

/* Who keeps a process from recording calls: bits. */
enum control_stopped { STOPPED_BY_PROGRAM = 1, STOPPED_BY_CONTROL = 2, STOPPED_BY_WINDOW = 4 };

struct control_status {
    uint8_t process_id[16];
    uint32_t stopped; /* enum control_stopped */
    bool has_flight;  /* it has a flight recorder, ... */
    uint64_t dumps;   /* ... which has written so many dumps */
    unsigned count;
    uint64_t answered[CONTROL_COMMANDS_MAX]; /* ids */
};

/* False: it is none, not whole, or of another version; *text is anything then. */
bool control_text_parse(struct control_text *text, const char *data, size_t bytes);
bool control_status_parse(struct control_status *status, const char *data, size_t bytes);

/* The bytes written; `out` has room for CONTROL_BYTES_MAX. */
size_t control_text_write(const struct control_text *text, char *out);
size_t control_status_write(const struct control_status *status, char *out);

/* Adds the command. In a full file the oldest one goes, but not the one by which later processes
 * know whether to record. */
void control_text_add(struct control_text *text, const struct control_command *command);

/* Has the file that command? */
bool control_text_has(const struct control_text *text, uint64_t id);

#endif
