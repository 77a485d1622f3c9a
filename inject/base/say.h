/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of the library to the user, each once per cause and process. A line on stderr says that
 * nothing is recorded or that a setting is wrong, since the user would not find that elsewhere.
 * Whatever a recording lacks is written into the recording as a note, which its readers report once
 * for all processes. A note is not needed where a record or META record says the same.
 */
#ifndef GPUPROF_INJECT_SAY_H
#define GPUPROF_INJECT_SAY_H

#include <string.h>

enum say_cause {
    SAY_SETTING,
    SAY_START,
    SAY_LIVE,
    SAY_WRITE,
    SAY_ZSTD,
    SAY_DROPPED,
    SAY_EXIT,
    SAY_GPU,
    SAY_CLIENT, /* another CUPTI client */
    SAY_STACKS,
    SAY_PYTHON,
    SAY_TORCH,
    SAY_WINDOWS,
    SAY_CONTROL,
    SAY_FLIGHT,
    SAY_FLIGHT_ROOM,
    SAY_DEVICE,
    SAY_HOST,
    SAY_SAMPLES,
    SAY_GC,
    SAY_COUNT
};

#define NOTE_BYTES 300

/* Prints a line on stderr. Async-signal-safe as far as glibc's snprintf of strings and numbers is,
 * which it is in practice. */
__attribute__((format(printf, 2, 3))) void say(enum say_cause cause, const char *format, ...);

/* Writes a note into the recording; async-signal-safe like say. */
__attribute__((format(printf, 2, 3))) void note(enum say_cause cause, const char *format, ...);

/* Returns the text of the next note that was not returned yet, or NULL. Called by the writer
 * thread. */
const char *note_next(void);

/* Called in the child of a fork: every cause may be reported again. */
void say_reset(void);

#pragma weak strerrordesc_np /* see libc_is_strange in start.c */

/* Returns a text such as "No space left on device". Thread-safe, unlike strerror. */
static inline const char *error_text(int error)
{
    const char *text = strerrordesc_np ? strerrordesc_np(error) : NULL;
    return text ? text : "unknown error";
}

#endif
