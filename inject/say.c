/* SPDX-License-Identifier: Apache-2.0 */
#include "say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "state.h"

void say(enum say_cause cause, const char *format, ...)
{
    if (atomic_fetch_or(&gp.said, 1u << cause) >> cause & 1)
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
    line[total++] = '\n';
    /* One write keeps the line whole among other writers; a closed stderr is the user's choice. */
    ssize_t written = write(STDERR_FILENO, line, total);
    (void)written;
    errno = saved;
}
