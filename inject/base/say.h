/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's words to the user, once per cause and process. A line on stderr says that nothing
 * is recorded, or that a setting is wrong: nobody would find it elsewhere. What a recording lacks
 * goes into the recording, whose readers say it once for all processes: a note, unless a record
 * or a META record says it already.
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
    SAY_CLIENT, /* another one of CUPTI's */
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

/* On stderr. Async-signal-safe as far as snprintf of strings and numbers is (glibc: yes). */
__attribute__((format(printf, 2, 3))) void say(enum say_cause cause, const char *format, ...);

/* Into the recording; as async-signal-safe as say. */
__attribute__((format(printf, 2, 3))) void note(enum say_cause cause, const char *format, ...);

/* The text of a note that was not asked for yet, or NULL. By the writer. */
const char *note_next(void);

/* In the child of a fork: all may be said again. */
void say_reset(void);

#pragma weak strerrordesc_np /* see libc_is_strange in start.c */

/* "No space left on device" and the like: thread-safe, unlike strerror. */
static inline const char *error_text(int error)
{
    const char *text = strerrordesc_np ? strerrordesc_np(error) : NULL;
    return text ? text : "unknown error";
}

#endif
