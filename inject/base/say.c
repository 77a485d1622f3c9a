/* SPDX-License-Identifier: Apache-2.0 */
#include "base/say.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "base/signals.h"

#define WAIT_MS 100 /* time to wait for space in the pipe behind stderr */

/* One bit per cause: set by the first thread that reports it, and when its note is complete. */
static _Atomic uint32_t said, noted;
static char notes[SAY_COUNT][NOTE_BYTES];

/*
 * Writes the line with one write(), so that other writers do not split it. A closed pipe, a file at
 * its size limit, or a terminal that stops background writers must not stop the program, and a full
 * pipe must not block it. If stderr is closed, the user chose so.
 */
static void write_undisturbed(const char *line, size_t length)
{
    static const int signals[] = {SIGPIPE, SIGXFSZ, SIGTTOU};
    struct pollfd stderr_poll = {.fd = STDERR_FILENO, .events = POLLOUT};
    sigset_t ours, old, before;
    int ready = poll(&stderr_poll, 1, WAIT_MS);
    if (ready == 0 || (ready < 0 && poll(&stderr_poll, 1, 0) <= 0))
        return;
    sigpending(&before);
    sigemptyset(&ours);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (!sigismember(&before, signals[i]))
            sigaddset(&ours, signals[i]);
    pthread_sigmask(SIG_BLOCK, &ours, &old);
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written;
    drop_pending(&ours);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void say(enum say_cause cause, const char *format, ...)
{
    if (atomic_fetch_or(&said, 1u << cause) >> cause & 1)
        return;
    int saved = errno;
    char line[600] = "gpuprof: ";
    size_t head = sizeof "gpuprof: " - 1;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + head, sizeof line - head - 1, format, arguments);
    va_end(arguments);
    size_t total = head + (length < 0 ? 0 : (size_t)length);
    if (total > sizeof line - 2)
        total = sizeof line - 2;
    /* the line may contain a path with terminal control characters */
    for (char *p = line; p < line + total; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f ||
            (p[0] == '\xc2' && ((unsigned char)p[1] & 0xe0) == 0x80))
            *p = '?';
    line[total++] = '\n';
    write_undisturbed(line, total);
    errno = saved;
}

void note(enum say_cause cause, const char *format, ...)
{
    if (atomic_fetch_or(&said, 1u << cause) >> cause & 1)
        return;
    int saved = errno;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(notes[cause], sizeof notes[cause], format, arguments);
    va_end(arguments);
    atomic_fetch_or(&noted, 1u << cause);
    errno = saved;
}

const char *note_next(void)
{
    uint32_t causes = atomic_load(&noted);
    if (!causes)
        return NULL;
    unsigned cause = (unsigned)__builtin_ctz(causes);
    atomic_fetch_and(&noted, ~(1u << cause));
    return notes[cause];
}

void say_reset(void)
{
    atomic_store(&said, 0);
    atomic_store(&noted, 0);
}
